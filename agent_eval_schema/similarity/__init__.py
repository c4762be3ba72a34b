"""Which questions are the same, or nearly the same, for profiles and for builds from logged calls."""
