"""The smallest difference between two runs on the same rows that `paired_test` shows with a power of 80 %.

    rates     McNemar's exact test: of all numbers of rows that became better and worse, those with p < 0.05. For more
              than 2,000 rows its normal approximation with a correction for continuity (Connor, 1987)
    others    the t test of the differences, which the permutation test is close to

The differing rows of two rates follow from their correlation r on the same rows: P(both right) = p₁ p₂ + r s₁ s₂. The
difference is in the direction in which the rate has room: from 0.98 it is a loss.
"""

import math
from bisect import bisect_left
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from agent_eval_schema.metrics.differences import LEAST_UNITS, Z
from agent_eval_schema.metrics.intervals import Numbers, t_quantile

POWER = 0.8
Z_POWER = NormalDist().inv_cdf(POWER)

EXACT_ROWS = 2_000

STEPS = 1 << 24
"""The resolution of a difference of a rate."""


def differing(rate: float, difference: float, correlation: float) -> tuple[float, float]:
    """The shares of rows on which the second of two runs is better, and worse, in the direction of the difference."""
    rate = max(rate, 1 - rate)  # by symmetry a loss
    other = rate - difference
    both = rate * other + correlation * math.sqrt(rate * (1 - rate) * max(other * (1 - other), 0.0))
    both = min(max(both, rate + other - 1, 0.0), rate, other)
    return other - both, rate - both


def _critical(counts: Numbers) -> Numbers:
    """The smallest number of better rows with p < 0.05 among the rows that differ; one more than these if none has."""
    normal: Numbers = np.floor((counts + 1 + Z * np.sqrt(counts)) / 2).astype(int) + 1
    return np.where(counts < len(_exactly()), _exactly()[np.minimum(counts, len(_exactly()) - 1)], normal)


@lru_cache(maxsize=1)
def _exactly(most: int = 300) -> Numbers:
    """The same of up to 300 rows, by the binomial distribution."""
    logs = _log_factorials(most)
    count, better = np.indices((most + 1, most + 1))
    log = logs[count] - logs[better] - logs[np.maximum(count - better, 0)] - count * math.log(2)
    chances = np.where(better <= count, np.exp(log), 0.0)
    at_least = np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]
    critical: Numbers = np.minimum((at_least >= 0.025).sum(axis=1), np.arange(most + 1) + 1)
    return critical


def _log_factorials(most: int) -> Numbers:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def power_of_rates(rows: int, better: float, worse: float) -> float:
    """The power of McNemar's exact test where these shares of the rows become better and worse."""
    ups, downs = (_likely(rows, share) for share in (better, worse))
    logs = _log_factorials(rows)
    ups, downs = (numbers.ravel() for numbers in np.meshgrid(ups, downs))
    lowest = _critical(np.arange(int(ups.max() + downs.max()) + 1))
    significant = (ups + downs <= rows) & (np.maximum(ups, downs) >= lowest[ups + downs])
    ups, downs = ups[significant], downs[significant]
    rest = rows - ups - downs
    log_chances = logs[rows] - logs[ups] - logs[downs] - logs[rest]
    for numbers, share in ((ups, better), (downs, worse), (rest, 1 - better - worse)):
        log_chances = log_chances + numbers * (math.log(share) if share > 1e-300 else -1e9)
    return float(np.exp(log_chances).sum())


def _likely(rows: int, share: float) -> Numbers:
    """The numbers of rows that occur with a share, but for a negligible probability."""
    mean, far = rows * share, 7 * math.sqrt(rows * share * (1 - share)) + 7
    return np.arange(max(0, int(mean - far)), min(rows, int(mean + far)) + 1)


def _rows_by_approximation(better: float, worse: float) -> float:
    share, difference = better + worse, worse - better
    rows = (Z * math.sqrt(share) + Z_POWER * math.sqrt(max(share - difference**2, 0.0))) ** 2 / difference**2
    return rows / 4 * (1 + math.sqrt(1 + 4 / (rows * difference))) ** 2


@lru_cache(maxsize=256)
def smallest_rate_difference(rate: float, rows: float, correlation: float) -> float | None:
    """The smallest difference of a rate that this number of independent rows shows; None if they show none."""
    count, most = int(rows + 1e-9), max(rate, 1 - rate)

    def enough(difference: float) -> bool:
        shares = differing(rate, difference, correlation)
        if count > EXACT_ROWS:
            return _rows_by_approximation(*shares) <= rows
        return power_of_rates(count, *shares) >= POWER

    if count < LEAST_UNITS or not enough(most):
        return None
    return most * bisect_left(range(STEPS), True, lo=1, key=lambda step: enough(most * step / STEPS)) / STEPS


@lru_cache(maxsize=256)
def rows_for_rate_difference(rate: float, difference: float, correlation: float) -> int:
    """The independent rows on which that difference is the smallest that is shown."""
    shares = differing(rate, difference, correlation)
    if power_of_rates(EXACT_ROWS, *shares) < POWER:
        return max(math.ceil(_rows_by_approximation(*shares) - 1e-9), EXACT_ROWS + 1)
    possible = range(LEAST_UNITS, EXACT_ROWS)
    return LEAST_UNITS + bisect_left(possible, True, key=lambda rows: power_of_rates(rows, *shares) >= POWER)


def smallest_difference(deviation: float, rows: float, correlation: float) -> float | None:
    """The same of scores with this standard deviation."""
    count = int(rows + 1e-9)
    if count < LEAST_UNITS:
        return None
    quantiles = t_quantile(0.975, count - 1) + t_quantile(POWER, count - 1)
    return quantiles * deviation * math.sqrt(2 * (1 - correlation) / rows)


def rows_for_difference(deviation: float, difference: float, correlation: float) -> int:
    """The independent rows on which that difference is the smallest that is shown."""
    share = 2 * (1 - correlation) * (deviation / difference) ** 2
    rows = max(math.ceil((Z + Z_POWER) ** 2 * share - 1e-9), LEAST_UNITS)
    while (smallest_difference(deviation, rows, correlation) or math.inf) > difference:
        rows += 1
    return rows
