"""Files of the repository that are generated from the package: each test compares one.

`UPDATE_GOLDEN=1 python -m pytest tests/generated` writes them.
"""
