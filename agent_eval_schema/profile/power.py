"""How exact a score is, and which difference between two versions a run can detect.

Standard formulas on the normal distribution, with a two-sided level of 5 % and a power of 80 %:

    half-width of the 95 % interval     z · s / √n                      z = 1.96
    smallest difference, unpaired       (z + 0.84) · s · √(2 / n)
    smallest difference, paired         (z + 0.84) · s · √(2 (1 − r) / n)

s is the standard deviation of the scores (of a rate p: √(p (1 − p))), r the correlation of both versions' scores on the
same rows, n the effective number of rows: distinct questions divided by the design effect of their clusters, Kish's
1 + (m − 1) · ρ with m the mean size of the cluster in which a row is. See Miller, "Adding Error Bars to Evals" (2024).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from agent_eval_schema.metrics.standard_errors import Z_INTERVAL

Numbers = np.ndarray[Any, Any]

Z_POWER = NormalDist().inv_cdf(0.8)


def half_width(deviation: float, rows: float) -> float:
    """Half the width of the 95 % interval of a mean."""
    return Z_INTERVAL * deviation / math.sqrt(rows)


def smallest_difference(deviation: float, rows: float, correlation: float = 0.0) -> float:
    """The smallest difference between two means of so many rows each that a run detects at 80 % power. The rows are
    the same ones if there is a correlation."""
    return (Z_INTERVAL + Z_POWER) * deviation * math.sqrt(2 * (1 - correlation) / rows)


def rows_needed(difference: float, deviation: float, correlation: float = 0.0, design_effect: float = 1.0) -> int:
    """The rows at which that difference is the smallest that a run detects."""
    rows = 2 * (1 - correlation) * ((Z_INTERVAL + Z_POWER) * deviation / difference) ** 2
    return math.ceil(rows * design_effect - 1e-9)


def deviation_of_rate(rate: float) -> float:
    """The standard deviation of scores that are 0 or 1."""
    return math.sqrt(rate * (1 - rate))


def design_effect(sizes: Numbers, correlation: float) -> float:
    """By how much clusters of these sizes widen the variance of a mean, at this correlation within a cluster."""
    total = sizes.sum()
    return 1.0 if not total else float(1 + ((sizes.astype(float) ** 2).sum() / total - 1) * correlation)


def correlation_within(scores: Numbers, clusters: Numbers) -> float | None:
    """The correlation within clusters, by analysis of variance; None if no cluster has two scores, or all have the
    same score. Below 0 counts as 0."""
    _, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    count, groups = len(scores), len(sizes)
    if count == groups or groups < 2 or np.ptp(scores) == 0:
        return None
    means = np.bincount(codes, weights=scores) / sizes
    between = float((sizes * (means - scores.mean()) ** 2).sum()) / (groups - 1)
    within = float(((scores - means[codes]) ** 2).sum()) / (count - groups)
    size = (count - float((sizes.astype(float) ** 2).sum()) / count) / (groups - 1)
    return max(0.0, (between - within) / (between + (size - 1) * within))
