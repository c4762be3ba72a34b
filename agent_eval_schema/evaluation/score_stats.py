"""Scores → mean, standard deviation, percentiles, a confidence interval.

`ScoreStats` counts how often each value occurs, so that a million scores of 0, 0.5 and 1 are three numbers. Rows
without a score (NaN) are counted and excluded from all other statistics. The standard deviation is that of a sample
(ddof 1), NaN for one row, as in the Vertex AI SDK.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.evaluation.table import score_column
from agent_eval_schema.render.figures import Bar, Distribution

Numbers = np.ndarray[Any, Any]

RESAMPLES = 2_000
"""Samples that an interval is read from: its ends then differ by about a percent of its width from run to run."""


Groups = dict[str, dict[str, "ScoreStats"]]
"""The scores of groups of rows: by group, by metric."""


class ScoreStats:
    """The scores of one metric: how often each value occurs, and how many rows have none."""

    def __init__(self, scores: Iterable[float] = ()) -> None:
        self._counts: Counter[float] = Counter()
        self.rows = 0
        self.add(np.fromiter(scores, np.float64))

    def add(self, scores: Numbers) -> None:
        """Add the scores of some rows, NaN where there is none."""
        self.rows += len(scores)
        for one in pc.value_counts(pa.array(scores[~np.isnan(scores)])).to_pylist():  # numpy would sort them
            self._counts[one["values"]] += one["counts"]

    @property
    def scored(self) -> int:
        return self._counts.total()

    @property
    def counts(self) -> list[tuple[float, int]]:
        """The values in order, and how often each came."""
        return sorted(self._counts.items())

    @property
    def mean(self) -> float:
        return math.fsum(v * n for v, n in self._counts.items()) / self.scored if self.scored else math.nan

    @property
    def std(self) -> float:
        if self.scored < 2:
            return math.nan
        mean = self.mean
        return math.sqrt(math.fsum(n * (v - mean) ** 2 for v, n in self._counts.items()) / (self.scored - 1))

    @property
    def distribution(self) -> Distribution:
        """The scores from 0 on, as a report draws them."""
        found = Distribution()
        found.add(np.repeat(*(np.array(c) for c in zip(*self.counts, strict=True))) if self.scored else np.empty(0))
        return found

    @property
    def is_binary(self) -> bool:
        """Whether all scores are 0 or 1, so that the mean describes them completely."""
        return all(value in (0, 1) for value in self._counts)

    @property
    def is_share(self) -> bool:
        """Whether all scores lie from 0 to 1."""
        return bool(self._counts) and min(self._counts) >= 0 and max(self._counts) <= 1

    @property
    def tenths(self) -> list[Bar]:
        """Scores from 0 to 1 in ten bars; the last one has the ones."""
        values, counts = (np.array(column) for column in zip(*self.counts, strict=True))
        sums = np.bincount(np.minimum((values * 10 + 1e-9).astype(int), 9), weights=counts, minlength=10)
        return [Bar(i / 10, (i + 1) / 10, int(n)) for i, n in enumerate(sums.tolist())]

    def percentile(self, share: float) -> float:
        """The quantile of the scores, interpolated linearly (as in NumPy)."""
        if not self.scored:
            return math.nan
        values, counts = (np.array(column) for column in zip(*self.counts, strict=True))
        last = np.cumsum(counts) - 1  # the place of the last score of each value
        place = share * (self.scored - 1)
        low, high = (float(values[np.searchsorted(last, at)]) for at in (math.floor(place), math.ceil(place)))
        return low + (high - low) * (place - math.floor(place))

    def interval(self, level: float = 0.95, *, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
        """A bootstrap confidence interval of the mean: resampled means of as many scores each. The same seed gives the
        same interval."""
        if not self.scored:
            return math.nan, math.nan
        values, counts = (np.array(column) for column in zip(*self.counts, strict=True))
        drawn = np.random.default_rng(seed).multinomial(self.scored, counts / counts.sum(), size=resamples)
        low, high = np.quantile(drawn @ values / self.scored, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def scores_in(table: pd.DataFrame, metric: str) -> Numbers:
    return table[score_column(metric)].to_numpy(np.float64, na_value=np.nan)


def add_by_group(groups: Groups, part: pd.DataFrame, keys: pd.Series[Any], metrics: Iterable[str]) -> None:
    """Add the scores of a part of a result's table to the groups of its rows, by the key of each row."""
    for key, rows in part.groupby(keys.to_numpy(), sort=False):
        tallies = groups.setdefault(str(key), {name: ScoreStats() for name in metrics})
        for name, tally in tallies.items():
            tally.add(scores_in(rows, name))
