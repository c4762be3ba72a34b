"""The validation report."""
