"""How often the intervals and the tests keep their promise: ``python -m tests.metrics.interval_coverage``.

Prints the tables of docs/concepts/statistics.md: exact coverage of intervals of a rate, simulated coverage of clustered
rows, and false alarms of repeated looks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from agent_eval_schema.metrics.differences import p_value, paired_test
from agent_eval_schema.metrics.intervals import LEAST_UNITS, mean_interval, standard_error, t_quantile

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


SCORES: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], float, tuple[float, float]]] = {  # type: ignore[type-arg]
    "0 and 1, rate 0.9": (lambda random, n: (random.random(n) < 0.9).astype(float), 0.9, (0, 1)),
    "0.99 to 1, 2 % zeros": (
        lambda random, n: np.where(random.random(n) < 0.02, 0, random.uniform(0.99, 1, n)),
        0.98 * 0.995,
        (0, 1),
    ),
    "a judge: 0, 0.5, 1": (lambda random, n: random.choice([0, 0.5, 1], n, p=[0.05, 0.15, 0.8]), 0.875, (0, 1)),
    "1 to 5": (
        lambda random, n: random.choice([1.0, 2, 3, 4, 5], n, p=[0.02, 0.03, 0.1, 0.25, 0.6]),
        4.38,
        (1, 5),
    ),
    "90 % ties": (
        lambda random, n: np.where(random.random(n) < 0.9, 0.8, random.choice([0, 0.4, 1], n)),
        0.72 + 0.14 / 3,
        (0, 1),
    ),
}
"""Scores of a known scale: how they are drawn, their mean, and the ends of the scale."""

SIZES = (10, 20, 50, 100)


def coverage_of_scores(name: str, rows: int, repeats: int = REPEATS) -> tuple[float, float]:
    """How often the interval of a mean contains it, and how wide it is beside mean ± t · standard error."""
    draw, mean, scale = SCORES[name]
    random = np.random.default_rng(3)
    hits, width, plain = 0, 0.0, 0.0
    for _ in range(repeats):
        scores = draw(random, rows)
        found = mean_interval(scores, scale=scale)
        hits += found.low <= mean <= found.high
        width += found.high - found.low
        plain += 2 * t_quantile(0.975, rows - 1) * standard_error(scores)
    return hits / repeats, width / plain


def coverage_of_differences(name: str, rows: int, repeats: int = REPEATS // 10) -> float:
    """How often the interval of the mean difference of two runs that are alike contains 0."""
    draw, _, scale = SCORES[name]
    random = np.random.default_rng(4)
    hits = 0
    for _ in range(repeats):
        found = paired_test(draw(random, rows) - draw(random, rows), np.arange(rows), scale[1] - scale[0])
        hits += found.low <= 0 <= found.high
    return hits / repeats


def coverage_of_clustered_scores(name: str, units: int, repeats: int = REPEATS // 10) -> tuple[float, float]:
    """How often the interval of a mean contains it, and that of the difference of two runs that are alike contains 0,
    for units of 1 to 10 rows: each row has the score of its unit with a probability of 0.5, the correlation."""
    draw, mean, scale = SCORES[name]
    random = np.random.default_rng(5)
    hits, alike = 0, 0
    for _ in range(repeats):
        codes = np.repeat(np.arange(units), random.integers(1, 11, units))
        rows = len(codes)
        old, new = (
            np.where(random.random(rows) < 0.5, draw(random, units)[codes], draw(random, rows)) for _ in range(2)
        )
        found = mean_interval(old, codes, scale=scale)
        hits += found.low <= mean <= found.high
        difference = paired_test(old - new, codes, scale[1] - scale[0])
        alike += difference.low <= 0 <= difference.high
    return hits / repeats, alike / repeats


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
    for title, cell in (
        ("Coverage", lambda *case: percent(coverage_of_scores(*case)[0])),
        ("Width beside mean ± t · SE", lambda *case: f"{coverage_of_scores(*case, repeats=REPEATS // 10)[1]:.2f}"),
        ("Coverage of a difference", lambda *case: percent(coverage_of_differences(*case))),
    ):
        print(f"\n| {title} | " + " | ".join(f"{rows} rows" for rows in SIZES) + " |")
        print("|---|" + "--:|" * len(SIZES))
        for name in SCORES:
            print(f"| {name} | " + " | ".join(cell(name, rows) for rows in SIZES) + " |", flush=True)
    print("\n| Clustered: mean, difference | " + " | ".join(f"{units} units" for units in SIZES) + " |")
    print("|---|" + "--:|" * len(SIZES))
    for name in SCORES:
        pairs = (map(percent, coverage_of_clustered_scores(name, units)) for units in SIZES)
        print(f"| {name} | " + " | ".join(map(", ".join, pairs)) + " |", flush=True)
    print("\n| Looks | false alarms |\n|--:|--:|")
    for looks in LOOKS:
        print(f"| {looks} | {percent(false_alarms(looks))} |", flush=True)
    print("\n| Rows | false alarms of skewed differences |\n|--:|--:|")
    for rows in SKEWED:
        print(f"| {rows} | {percent(alarms_of_skewed_differences(rows))} |", flush=True)


if __name__ == "__main__":
    main()
