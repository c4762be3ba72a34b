"""Mutation of the package: `python -m tests.mutation --help`."""
