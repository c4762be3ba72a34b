"""The review screen: people give rows their ground truth, and decide what no rule can decide."""
