"""Run an agent on the rows of a dataset and score its outputs."""
