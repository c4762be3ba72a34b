"""Two versions of an evaluation dataset, compared row by row."""
