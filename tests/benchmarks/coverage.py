"""How often the intervals and the tests keep their promise: ``python -m tests.benchmarks.coverage``.

Prints the tables of docs/concepts/statistics.md: exact coverage of intervals of a rate, simulated coverage of clustered
rows, and false alarms of repeated looks.
"""

from __future__ import annotations

import numpy as np

from agent_eval_schema.metrics.differences import p_value
from agent_eval_schema.metrics.intervals import LEAST_UNITS, mean_interval

RATES = (0.02, 0.5, 0.98)
ROWS = (5, 20, 100, 500)
UNITS = (3, 5, 10, 20, 50, 100)
REPEATS = 4_000


def exact_coverage(rows: int, rate: float) -> float:
    """The probability that the interval contains the rate, summed over the numbers of ones."""
    logs = np.cumsum(np.log(np.arange(1, rows + 1)))
    of = np.concatenate([[0.0], logs])
    found = 0.0
    for ones in range(rows + 1):
        interval = mean_interval(np.arange(rows) < ones)
        log = of[rows] - of[ones] - of[rows - ones] + ones * np.log(rate) + (rows - ones) * np.log(1 - rate)
        found += float(np.exp(log)) * (interval.low <= rate <= interval.high)
    return found


def clustered(random: np.random.Generator, units: int, rate: float, correlation: float) -> tuple[np.ndarray, ...]:  # type: ignore[type-arg]
    """Scores of 0 and 1 in units of 1 to 10 rows: beta-binomial, with this correlation within a unit."""
    codes = np.repeat(np.arange(units), random.integers(1, 11, units))
    rates = np.full(units, rate)
    if correlation:
        size = (1 - correlation) / correlation
        rates = random.beta(rate * size, (1 - rate) * size, units)
    return (random.random(len(codes)) < rates[codes]).astype(float), codes


def simulated_coverage(units: int, rate: float, correlation: float, repeats: int = REPEATS) -> float:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(repeats):
        found = mean_interval(*clustered(random, units, rate, correlation))
        hits += found.low <= rate <= found.high
    return hits / repeats


LOOKS = (1, 2, 5, 10)
SKEWED = (10, 20, 50, 100)


def false_alarms(looks: int, rows: int = 200, repeats: int = REPEATS) -> float:
    """How often at least one of some looks at growing data has p < 0.05, if nothing changed."""
    random = np.random.default_rng(1)
    sizes = [rows * (i + 1) // looks for i in range(looks)]
    found = 0
    for _ in range(repeats):
        differences = random.choice([-1, 0, 0, 1], rows)
        found += any(p_value(differences[:size].astype(float)) < 0.05 for size in sizes)
    return found / repeats


def alarms_of_skewed_differences(rows: int, repeats: int = REPEATS // 4) -> float:
    """How often p < 0.05 for differences with a mean of 0 of which few are large (exponential)."""
    random = np.random.default_rng(2)
    return sum(p_value(random.exponential(size=rows) - 1) < 0.05 for _ in range(repeats)) / repeats


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    """Print the tables."""
    print("| Rows | " + " | ".join(f"rate {rate}" for rate in RATES) + " |")
    print("|--:|" + "--:|" * len(RATES))
    for rows in ROWS:
        print(f"| {rows} | " + " | ".join(percent(exact_coverage(rows, rate)) for rate in RATES) + " |")
    cases = [(rate, correlation) for correlation in (0.0, 0.5) for rate in RATES]
    print("\n| Units | " + " | ".join(f"rate {rate}, correlation {c:g}" for rate, c in cases) + " |")
    print("|--:|" + "--:|" * len(cases))
    for units in UNITS:
        found = (percent(simulated_coverage(units, *case)) if units >= LEAST_UNITS else "no interval" for case in cases)
        print(f"| {units} | " + " | ".join(found) + " |", flush=True)
    print("\n| Looks | false alarms |\n|--:|--:|")
    for looks in LOOKS:
        print(f"| {looks} | {percent(false_alarms(looks))} |", flush=True)
    print("\n| Rows | false alarms of skewed differences |\n|--:|--:|")
    for rows in SKEWED:
        print(f"| {rows} | {percent(alarms_of_skewed_differences(rows))} |", flush=True)


if __name__ == "__main__":
    main()
