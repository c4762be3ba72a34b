"""The text of a cell → a typed value, or every problem with its path."""
