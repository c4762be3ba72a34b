"""One format → another, with every loss reported."""
