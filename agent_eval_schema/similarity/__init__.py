"""Which questions are the same, and which are near duplicates, for profiles and for builds from logged calls."""
