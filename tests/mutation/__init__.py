"""Mutation of the kernel: `python -m tests.mutation --help`."""
