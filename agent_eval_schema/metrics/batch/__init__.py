"""Trajectory metrics of a whole batch at once, in numpy."""
