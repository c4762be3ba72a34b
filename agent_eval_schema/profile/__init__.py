"""What an evaluation dataset can show: size, duplicates, leakage, coverage and cost."""
