"""The differences between two scores of the same rows → one test, its p value and its interval, which agree.

If nothing changed, the difference of each independent unit could as well have had the other sign. p is the share of the
sign patterns whose sum is at least as far from 0 as the one that was found: a paired permutation test, and of scores
that are 0 or 1 McNemar's exact test. The interval are the differences δ that the test of "the difference is δ" does not
reject. A pattern rejects δ together with the mean of the units whose sign it keeps, so that the ends of the interval
are quantiles of the means of random subsets of the units (Hartigan, "Using Subsample Values as Typical Values", 1969).

    units that differ    p                                 ends of the interval
    up to 16             all patterns                      all subsets of up to 16 units, else 10,000 random ones
    up to 1,000          10,000 random patterns            10,000 random subsets
    more                 the sum of this many signs is normal, and the ends are the roots of a quadratic
    all alike in size    the binomial distribution

The share of the subsets whose mean is below 0 is known from p, which weights the random ones: 0 is in the interval
exactly when p >= 0.05. To the differences of scores of a known scale one unit that became better by all of it and one
that became worse are added for the ends (as Bonett and Price, 2012, do for scores of 0 and 1): equal differences show
no certainty.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from agent_eval_schema.metrics.intervals import NAN, Numbers

LEAST_UNITS = 6
"""Independent units below which no pattern of signs has p < 0.05: of 5 the smallest p is 2 / 2⁵."""

EXACT_UNITS, DRAWN, DRAWS = 16, 1_000, 10_000

SMALLEST_P = 1 / (DRAWS + 1)
"""The smallest p value that random patterns can show."""

TAIL = 0.025
Z = 1.959963984540054


class PairedTest(Struct, frozen=True):
    """The p value of a mean difference and its 95 % interval; NaN where the note gives the reason."""

    p_value: float = NAN
    low: float = NAN
    high: float = NAN
    note: str = ""


def paired_test(differences: Numbers, units: Numbers, span: float | None = None) -> PairedTest:
    """Test differences (no NaN) of rows in these units; `span`: how far two scores can differ, if that is known."""
    codes = np.unique(units, return_inverse=True)[1]
    sums, sizes = np.bincount(codes, weights=differences), np.bincount(codes).astype(float)
    if len(sums) < LEAST_UNITS:
        return PairedTest(note="cannot be tested")
    p = p_value(sums)
    if span is not None:
        size = float(sizes.mean())
        sums, sizes = np.append(sums, [span * size, -span * size]), np.append(sizes, [size, size])
    elif np.ptp(sums / sizes) == 0:
        what = "all differences are the same" if sums.any() else "no score differs"
        return PairedTest(p, note=f"no interval: {what}")
    sign = -1.0 if sums.sum() < 0 else 1.0
    low, high = _ends(sign * sums, sizes, p / 2)
    low, high = (low, high) if sign > 0 else (-high, -low)
    largest = float(np.abs(differences).max()) if span is None else span
    return PairedTest(p, max(low, -largest), min(high, largest))


def p_value(sums: Numbers, *, seed: int = 0) -> float:
    """The two-sided p value of the sum of some differences; 1 if none differs from 0."""
    sizes = np.abs(sums[sums != 0])
    if not len(sizes):
        return 1.0
    # Sums of the same numbers may differ in the last bit.
    statistic = max(abs(float(sums.sum())) - 1e-9 * float(sizes.sum()), 0.0)
    if np.ptp(sizes) <= 1e-12 * sizes[0] and len(sizes) <= DRAWN:
        return sign_test(len(sizes), int(np.count_nonzero(sums > 0)))
    if len(sizes) <= EXACT_UNITS:
        return float((np.abs(_patterns(len(sizes)) @ sizes) >= statistic).mean())
    if len(sizes) <= DRAWN:
        drawn = (np.abs((2.0 * draw - 1) @ sizes) >= statistic for draw in _drawn(len(sizes), seed))
        return (sum(int(far.sum()) for far in drawn) + 1) / (DRAWS + 1)
    return math.erfc(statistic / math.sqrt(2 * float((sizes**2).sum())))


def sign_test(count: int, higher: int) -> float:
    """The two-sided p value of the number of higher scores among those that differ: McNemar's exact test."""
    tail = sum(math.comb(count, i) for i in range(max(higher, count - higher), count + 1))
    return min(1.0, float(2 * tail / 2**count))


@lru_cache(maxsize=2)
def _patterns(count: int) -> Numbers:
    return 1.0 - 2 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)


def _drawn(count: int, seed: int) -> Iterator[Numbers]:
    """Random subsets of this number of units, a row of 0 and 1 each, a hundred at a time."""
    random = np.random.default_rng(seed)
    for _ in range(DRAWS // 100):
        yield random.integers(0, 2, (100, count), np.int8).astype(float)


def _ends(sums: Numbers, sizes: Numbers, below: float) -> tuple[float, float]:
    """The ends of the interval around a mean difference from 0 up; `below`: the share of subset means up to 0."""
    differ = sums != 0
    if np.count_nonzero(differ) > DRAWN:
        total, rows = float(sums.sum()), float(sizes.sum())
        a = rows**2 - Z**2 * float((sizes**2).sum())
        b = total * rows - Z**2 * float((sums * sizes).sum())
        c = total**2 - Z**2 * float((sums**2).sum())
        root = math.sqrt(max(b**2 - a * c, 0.0))
        return (b - root) / a, (b + root) / a
    ordered = np.sort(_subset_means(sums, sizes, differ))
    cut = int(np.searchsorted(ordered, 0.0, side="right"))
    lower, upper = ordered[:cut], ordered[cut:]
    if below < TAIL and len(upper):
        at = (TAIL - below) / (1 - below) * len(upper)
        low = float(upper[min(int(at), len(upper) - 1)])
    else:
        low = float(lower[min(int(TAIL / below * len(lower)), len(lower) - 1)]) if len(lower) else 0.0
    return low, float(ordered[min(len(ordered) - int(TAIL * len(ordered)), len(ordered) - 1)])


def _subset_means(sums: Numbers, sizes: Numbers, differ: Numbers) -> Numbers:
    """The mean differences of subsets of the units; the empty one is below, and in the same way above, all others."""
    if len(sums) <= EXACT_UNITS:
        subsets = (_patterns(len(sums)) + 1) / 2
        totals, rows = subsets @ sums, subsets @ sizes
    else:
        # Of many units without a difference only the number of rows matters, which is normal.
        alike = ~differ if len(sums) > DRAWN else np.zeros(len(sums), bool)
        own, of = sums[~alike], sizes[~alike]
        pairs = [(draw @ own, draw @ of) for draw in _drawn(len(own), 1)]
        totals, rows = (np.concatenate(column) for column in zip(*pairs, strict=True))
        others = sizes[alike]
        spread = math.sqrt(float((others**2).sum())) / 2
        rows = rows + np.maximum(np.random.default_rng(2).normal(float(others.sum()) / 2, spread, len(rows)), 0.0)
    means: Numbers = np.divide(totals, rows, out=np.full(len(rows), -math.inf), where=rows > 0)
    return means


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted for their number (Holm, 1979): the smallest times n, the next times n − 1 …; NaN stays."""
    tested = [i for i in np.argsort(p_values, kind="stable").tolist() if not math.isnan(p_values[i])]
    adjusted, highest = list(p_values), 0.0
    for place, i in enumerate(tested):
        highest = adjusted[i] = max(highest, min(1.0, p_values[i] * (len(tested) - place)))
    return adjusted
