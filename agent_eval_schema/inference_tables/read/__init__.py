"""A logged row → its records."""
