"""The profile of an evaluation dataset."""
