"""How a table of each format is recognized, read and written: one file per format."""
