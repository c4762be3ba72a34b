"""Scores → the confidence interval of their mean: the only one of profiles, results, pages, the terminal and JSON.

    scores of 0 and 1       Wilson's interval (1927) of n / deff scores
    of a known scale        mean ± t · SE with one more unit at each end of the scale, not outside of Wilson's intervals
                            of the scores that are rounded down, and up, to the ends
    of an unknown scale     the same on the scale from 0 to 1, if all scores are on it, else mean ± t · SE

    SE   = √( G / (G − 1) · Σ over units (Σ of their scores' distances from the mean)² ) / n
    deff = (SE / SE of independent rows)², at least 1, and between that and the largest possible one, Σ sizes² / n, the
           fewer units contain an answer of the rarer kind

n scores are in G independent units (independence.py). SE is the cluster-robust standard error of a mean (Liang and
Zeger, 1986; Miller, "Adding Error Bars to Evals", 2024), t has G − 1 degrees of freedom (Cameron, Gelbach and Miller,
2008). Wilson's interval takes t in the place of z where units contain several rows, as deff is then an estimate.
Scores that are all near one end show too little spread: the added units (Agresti and Coull, 1998, do so for rates) keep
room for the rare score that is far from them, and the bounds by Wilson see to it that 0.99 in the place of a 1 never
raises a lower bound. There is no interval of fewer than LEAST_UNITS units, and none of equal scores whose scale
is unknown.
`python -m tests.metrics.interval_coverage` measures how often the intervals contain the true mean.
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

ASSUMED_SHARE, ASSUMED_NEAR = "that it is from 0 to 1, as all scores are", "that no score is far from the others"
"""What an interval assumes of scores whose scale is not known."""

NAN = math.nan


class MeanInterval(Struct, frozen=True):
    """The mean of `rows` scores in `units` independent units, its clustered standard error, its interval (NaN where
    `note` gives the reason) and the square of the ratio of the standard error to that of independent rows; and what the
    interval `assumes` of a scale that is not known."""

    rows: int
    units: int
    mean: float = NAN
    std_error: float = NAN
    low: float = NAN
    high: float = NAN
    design_effect: float = NAN
    note: str = ""
    assumes: str = ""

    @property
    def report(self) -> dict[str, float | str]:
        """The part that a JSON report has beside the mean and the rows."""
        return {name: getattr(self, name) for name in ("units", "std_error", "low", "high", "note", "assumes")}


def mean_interval(
    scores: Numbers, units: Numbers | None = None, level: float = 0.95, scale: tuple[float, float] | None = None
) -> MeanInterval:
    """The interval of the mean of some scores (NaN where there is none). `units` has a number per independent unit,
    None if each row is one; `scale` has the lowest and the highest score, if that is known."""
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
    values = (rows, count, mean, error)
    if count < LEAST_UNITS:
        note = f"no interval: {count} independent unit{'s' * (count > 1)}, at least {LEAST_UNITS} are needed"
        return MeanInterval(*values, design_effect=effect, note=note)
    ends = scale_of_scores(scores, scale)
    if is_binary(scores):
        low, high = _rate_interval(scores, codes, level)
    elif ends is not None:
        lowest, span = ends[0], ends[1] - ends[0]
        low, high = (lowest + span * end for end in _bounded_interval((scores - lowest) / span, codes, level))
    elif scores.min() == scores.max():
        return MeanInterval(*values, design_effect=effect, note="no interval: all scores are the same")
    else:
        t = t_quantile((1 + level) / 2, count - 1)
        lowest, highest = scale or ANY
        lowest = lowest if lowest <= scores.min() else -math.inf  # an end that scores are beyond is none
        highest = highest if scores.max() <= highest else math.inf
        low, high = max(mean - t * error, lowest), min(mean + t * error, highest)
    unknown = "" if scale is not None or is_binary(scores) else ASSUMED_SHARE if ends else ASSUMED_NEAR
    return MeanInterval(*values, float(low), float(high), effect, assumes=unknown)


def scale_of_scores(scores: Numbers, scale: tuple[float, float] | None) -> tuple[float, float] | None:
    """The ends between which scores can be: those of the scale, if no score is outside, else 0 and 1, if all are
    between them and the scale is not known; None if there are none."""
    lowest, highest = (0.0, 1.0) if scale is None else scale
    is_bounded = math.isfinite(highest - lowest) and lowest <= scores.min() and scores.max() <= highest
    return (lowest, highest) if is_bounded else None


def _rate_interval(scores: Numbers, codes: Numbers, level: float) -> tuple[float, float]:
    """Wilson's interval of scores of 0 and 1, for as many rows as the units are worth."""
    rows, sizes = len(scores), np.bincount(codes)
    ones = np.bincount(codes, weights=scores)
    error, alone = standard_error(scores, codes), standard_error(scores)
    effect = (error / alone) ** 2 if alone else NAN
    telling = min(np.count_nonzero(ones), np.count_nonzero(ones < sizes))
    measured, widest = max(1.0, effect) if telling else 1.0, float((sizes.astype(float) ** 2).sum()) / rows
    used = (telling * measured + max(measured, widest)) / (telling + 1)
    share = (1 + level) / 2
    z = NormalDist().inv_cdf(share) if len(sizes) == rows else t_quantile(share, len(sizes) - 1)
    return wilson(math.fsum(scores) / rows, rows / used, z)


def _bounded_interval(scores: Numbers, codes: Numbers, level: float) -> tuple[float, float]:
    """The interval of scores from 0 to 1 with one more unit of each end."""
    sums, sizes = np.bincount(codes, weights=scores), np.bincount(codes).astype(float)
    size = float(sizes.mean())
    sums, sizes = np.append(sums, [0.0, size]), np.append(sizes, [size, size])
    count, rows = len(sums), float(sizes.sum())
    mean = float(sums.sum()) / rows
    error = math.sqrt(count / (count - 1) * float(((sums - mean * sizes) ** 2).sum())) / rows
    half = t_quantile((1 + level) / 2, count - 1) * error
    worse, better = (_rate_interval(of, codes, level) for of in (np.floor(scores), np.ceil(scores)))
    low, high = (min(max(mean + by, one), two) for by, one, two in zip((-half, half), worse, better, strict=True))
    return low, high


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
    """Wilson's interval of a rate that was measured on this number of rows."""
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
