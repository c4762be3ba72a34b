"""Scores → the confidence interval of their mean: the only one of profiles, results, pages, the terminal and JSON.

    scores of 0 and 1   Wilson's interval (1927) of n / deff scores
    other scores        mean ± t · SE, clipped to the scale of the metric

    SE   = √( G / (G − 1) · Σ over units (Σ of their scores' distances from the mean)² ) / n
    deff = (SE / SE of independent rows)², at least 1, and between that and the largest possible one, Σ sizes² / n, the
           fewer units contain an answer of the rarer kind

n scores are in G independent units (independence.py). SE is the cluster-robust standard error of a mean (Liang and
Zeger, 1986; Miller, "Adding Error Bars to Evals", 2024), t has G − 1 degrees of freedom (Cameron, Gelbach and Miller,
2008). Wilson's interval takes t in the place of z where units contain several rows, as deff is then an estimate. There
is no interval of fewer than LEAST_UNITS units, and none of equal scores that are neither 0 nor 1: they show no spread.
`python -m tests.benchmarks.coverage` measures how often the intervals contain the true mean.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from msgspec import Struct

Numbers = np.ndarray[Any, Any]

LEAST_UNITS = 5
"""Independent units below which a mean has no interval."""

ANY: tuple[float, float] = (-math.inf, math.inf)

NAN = math.nan


class MeanInterval(Struct, frozen=True):
    """The mean of `rows` scores in `units` independent units, its clustered standard error, its interval (NaN where
    `note` gives the reason) and the square of the ratio of the standard error to that of independent rows."""

    rows: int
    units: int
    mean: float = NAN
    std_error: float = NAN
    low: float = NAN
    high: float = NAN
    design_effect: float = NAN
    note: str = ""

    @property
    def report(self) -> dict[str, float | str]:
        """The part that a JSON report has beside the mean and the rows."""
        return {name: getattr(self, name) for name in ("units", "std_error", "low", "high", "note")}


def mean_interval(
    scores: Numbers, units: Numbers | None = None, level: float = 0.95, scale: tuple[float, float] | None = None
) -> MeanInterval:
    """The interval of the mean of some scores (NaN where there is none). `units` has a number per independent unit,
    None if each row is one; the interval is clipped to the scale, if that is known."""
    there = np.isfinite(scores)
    scores = scores[there].astype(np.float64, copy=False)
    rows = len(scores)
    codes = np.arange(rows) if units is None else np.unique(units[there], return_inverse=True)[1]
    count = int(codes.max()) + 1 if rows else 0
    if not rows:
        return MeanInterval(0, 0, note="no row has a score")
    unit = unit_of(scores.min(), scores.max())
    mean = math.fsum(scores / unit) / rows * unit
    error, alone = (unit * standard_error(scores / unit, of) for of in (codes, None))
    effect = (error / alone) ** 2 if alone else NAN
    found = (rows, count, mean, error)
    if count < LEAST_UNITS:
        note = f"no interval: {count} independent unit{'s' * (count > 1)}, at least {LEAST_UNITS} are needed"
        return MeanInterval(*found, design_effect=effect, note=note)
    t = t_quantile((1 + level) / 2, count - 1)
    if is_binary(scores):
        sizes = np.bincount(codes)
        ones = np.bincount(codes, weights=scores)
        telling = min(np.count_nonzero(ones), np.count_nonzero(ones < sizes))
        measured, widest = max(1.0, effect) if telling else 1.0, float((sizes.astype(float) ** 2).sum()) / rows
        used = (telling * measured + max(measured, widest)) / (telling + 1)
        low, high = wilson(mean, rows / used, NormalDist().inv_cdf((1 + level) / 2) if count == rows else t)
    elif scores.min() == scores.max():
        return MeanInterval(*found, design_effect=effect, note="no interval: all scores are the same")
    else:
        lowest, highest = scale or ANY
        low, high = max(mean - t * error, lowest), min(mean + t * error, highest)
    return MeanInterval(*found, float(low), float(high), effect)


def unit_of(lowest: float, highest: float) -> float:
    """What scores are divided by before they are added and squared: 1, unless the results would be infinite."""
    largest = float(max(-lowest, highest))
    return largest if largest > 1e150 else 1.0


def is_binary(scores: Numbers) -> bool:
    return bool(np.isin(scores, (0.0, 1.0)).all())


def standard_error(scores: Numbers, units: Numbers | None = None) -> float:
    """The standard error of the mean of scores (no NaN) in these units; NaN if there are fewer than two."""
    rows = len(scores)
    codes = np.arange(rows) if units is None else np.unique(units, return_inverse=True)[1]
    count = int(codes.max()) + 1 if rows else 0
    if count < 2:
        return NAN
    sums = np.bincount(codes, weights=scores - scores.mean())
    return math.sqrt(count / (count - 1) * float((sums**2).sum())) / rows


NO_REPEATS = NAN, NAN


def spread_by_group(scores: Numbers, groups: Numbers) -> tuple[float, float]:
    """The standard deviation of scores (no NaN) between groups and within them, by analysis of variance; NaN if no
    group has two scores, or there is one group. A variance below 0 counts as 0."""
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rows, count = len(scores), len(sizes)
    if rows == count or count < 2:
        return NO_REPEATS
    means = np.bincount(codes, weights=scores) / sizes
    between = float((sizes * (means - scores.mean()) ** 2).sum()) / (count - 1)
    within = float(((scores - means[codes]) ** 2).sum()) / (rows - count)
    size = (rows - float((sizes.astype(float) ** 2).sum()) / rows) / (count - 1)
    return math.sqrt(max(between - within, 0.0) / size), math.sqrt(within)


def wilson(rate: float, rows: float, z: float) -> tuple[float, float]:
    """Wilson's interval of a rate that was found on so many rows."""
    center = (rate + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(rate * (1 - rate) / rows + z * z / (4 * rows * rows))
    # At the ends it is exactly 0 or 1, which rounding would miss.
    return (center - half if rate else 0.0), (center + half if rate < 1 else 1.0)


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t distribution, above the median.

    Few degrees of freedom: the closed form of the distribution (Abramowitz and Stegun, 26.7.3 and 26.7.4), inverted by
    bisection; many: the expansion of the quantile around that of the normal distribution (26.7.5).
    """
    z = NormalDist().inv_cdf(share)
    if freedom > 100:
        terms = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
        )
        return float(z + sum(term / freedom**i for i, term in enumerate(terms, 1)))
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _t_within(angle, freedom) < 2 * share - 1 else (low, angle)
    return math.tan(low) * math.sqrt(freedom)


def _t_within(angle: float, freedom: int) -> float:
    """The probability that |t| is below √freedom · tan(angle)."""
    odd = freedom % 2
    term = total = math.cos(angle) if odd else 1.0
    for i in range(2 + odd, freedom, 2):
        term *= (i - 1) / i * math.cos(angle) ** 2
        total += term
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if freedom > 1 else 0.0))
