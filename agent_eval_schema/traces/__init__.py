"""MLflow traces: the fields of a row that its trace contains, and rows back into traces."""
