"""MLflow traces: what a trace says of its row, and rows back into traces."""
