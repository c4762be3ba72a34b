"""A fuzzer of the whole package: `python -m tests.fuzz --help`."""
