"""The language server: evaluation datasets in an editor."""
