"""Runs that are killed: `python -m tests.kill --help`."""
