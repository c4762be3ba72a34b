"""How a table of each format is recognised, read and written: one file per format."""
