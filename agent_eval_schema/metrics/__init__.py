"""The catalog of metrics, which rows support which, and the metrics that need no model."""
