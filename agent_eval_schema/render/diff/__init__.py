"""The comparison of two datasets."""
