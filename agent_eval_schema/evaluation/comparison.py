"""Two results of the same rows: what became better, what worse, and whether that can be chance.

The test is a paired permutation test on the mean of the differences. If nothing changed, each difference could as well
have had the other sign; p is the share of the sign patterns whose mean is at least as far from 0 as the one that was
found. Of up to 16 rows that differ all patterns are counted; of up to 5,000, 10,000 random ones (seeded); beyond, the
sum of so many signs is normal. Of scores that are 0 or 1 this is McNemar's test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from agent_eval_schema.evaluation.columns import score_column
from agent_eval_schema.evaluation.score_stats import ScoreStats
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.result.summary import MetricComparison

Numbers = np.ndarray[Any, Any]

EXACT_PAIRS, DRAWN, DRAWS = 16, 5_000, 10_000


class ScoreComparison:
    """What `EvalResult.compare` gives: `summary` has a line a metric, `rows` one for each score that differs (row, key,
    metric, old, new, difference), `only_old` and `only_new` are the keys of rows that the other result lacks."""

    def __init__(
        self, lines: list[MetricComparison], rows: pd.DataFrame, only_old: list[Any], only_new: list[Any]
    ) -> None:
        self.lines, self.rows, self.only_old, self.only_new = lines, rows, only_old, only_new

    @property
    def summary(self) -> pd.DataFrame:
        names = MetricComparison.__struct_fields__
        return pd.DataFrame([[getattr(line, n) for n in names] for line in self.lines], columns=list(names))

    def to_text(self, width: int | None = None) -> str:
        """The summary as text."""
        from agent_eval_schema.render.result.text import comparison_text

        return comparison_text(self.lines, len(self.only_old), len(self.only_new), width)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.lines)} metrics, {len(self.rows):,} scores differ>"


def compare(old: pd.DataFrame, new: pd.DataFrame, metrics: Iterable[str], key: str | None) -> ScoreComparison:
    """Compare the scores of two tables by these metrics; `EvalResult.compare` says what `key` is."""
    if key is None:
        _require_same_rows(old, new)
    tables = [_keyed(table, key) for table in (old, new)]
    shared = tables[0].index.intersection(tables[1].index, sort=False)
    if not len(shared):
        raise EvalSetError("the two results share no row")
    lines, changed = [], []
    for metric in metrics:
        before, after = (t.loc[shared, score_column(metric)].to_numpy(np.float64, na_value=np.nan) for t in tables)
        lines.append(_line(metric, before, after))
        changed.append(_changes(metric, shared, before, after))
    rows = pd.concat(changed, ignore_index=True) if changed else pd.DataFrame()
    only = [t.index.difference(shared, sort=False).tolist() for t in tables]
    return ScoreComparison(lines, rows, *only)


ASKED = ("request_id", "prompt", "request", "inputs")
"""Columns that say which row is which, or what it asks: where they differ, a position says nothing."""


def _require_same_rows(old: pd.DataFrame, new: pd.DataFrame) -> None:
    """Rows are only compared by their position if the two tables have the same rows, as far as can be seen."""
    if len(old) != len(new):
        raise EvalSetError(f"the results have {len(old):,} and {len(new):,} rows: {_GIVE_KEY}")
    for name in ASKED:
        if name in old.columns and name in new.columns:
            pairs = zip(old[name].tolist(), new[name].tolist(), strict=True)
            row = next((i for i, (a, b) in enumerate(pairs) if not _is_same(a, b)), None)
            if row is not None:
                raise EvalSetError(f"row {row} has another {name} in the other result: {_GIVE_KEY}")


_GIVE_KEY = "say with key= which column tells which row is which, such as key='request_id'"


def _is_same(one: Any, other: Any) -> bool:
    return (is_absent(one) and is_absent(other)) or bool(one == other)


def _keyed(table: pd.DataFrame, key: str | None) -> pd.DataFrame:
    if key is None:
        return table.reset_index(drop=True)
    if key not in table.columns:
        raise EvalSetError(f"no column {key!r} in the result: give one that both have, such as request_id")
    if table[key].duplicated().any():
        raise EvalSetError(
            f"the column {key!r} does not tell rows apart: {table[key].duplicated().sum():,} repeat another"
        )
    return table.set_index(key, drop=False)


def _line(metric: str, before: Numbers, after: Numbers) -> MetricComparison:
    both = ~(np.isnan(before) | np.isnan(after))
    old, new = before[both], after[both]
    difference = new - old
    return MetricComparison(
        metric,
        int(both.sum()),
        ScoreStats(old).mean,
        ScoreStats(new).mean,
        ScoreStats(difference).mean,
        int((difference > 0).sum()),
        int((difference < 0).sum()),
        paired_test(difference),
    )


def _changes(metric: str, keys: pd.Index, before: Numbers, after: Numbers) -> pd.DataFrame:
    differs = np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after)))
    return pd.DataFrame(
        {
            "row": differs,
            "key": keys[differs].tolist(),
            "metric": metric,
            "old": before[differs],
            "new": after[differs],
            "difference": after[differs] - before[differs],
        }
    )


def paired_test(differences: Numbers, *, seed: int = 0) -> float:
    """The two-sided p value of the mean difference; 1 if no row differs, NaN if there is no row."""
    if not len(differences):
        return math.nan
    sizes = np.abs(differences[differences != 0])
    found = abs(float(differences.sum())) - 1e-9 * float(
        sizes.sum()
    )  # sums of the same numbers may differ in the last bit
    if not len(sizes):
        return 1.0
    if len(sizes) <= EXACT_PAIRS:
        signs = 1 - 2 * (np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes)) & 1)
        return float((np.abs(signs @ sizes) >= found).mean())
    if len(sizes) <= DRAWN:
        at_least = sum(int((np.abs(sums) >= found).sum()) for sums in _drawn(sizes, seed))
        return (at_least + 1) / (DRAWS + 1)
    return math.erfc(found / math.sqrt(2 * float((sizes**2).sum())))


def _drawn(sizes: Numbers, seed: int) -> Iterator[Numbers]:
    """The sums of randomly signed sizes, a hundred patterns at a time."""
    random = np.random.default_rng(seed)
    for _ in range(DRAWS // 100):
        yield (1 - 2 * random.integers(0, 2, (100, len(sizes)), np.int8)) @ sizes
