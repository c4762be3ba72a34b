"""Services and libraries of other projects."""
