"""Row counts per step of a build."""
