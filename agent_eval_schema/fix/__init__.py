"""Fixes that are safe without asking, and the search for the ones that help."""
