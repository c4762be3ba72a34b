"""Two results of the same rows: what became better, what worse, and whether that can be chance.

The test is a paired permutation test on the mean of the differences. If nothing changed, each difference could as well
have had the other sign; p is the share of the sign patterns whose mean is at least as far from 0 as the one that was
found. Of up to 16 rows that differ all patterns are counted; of up to 5,000, 10,000 random ones (seeded); beyond, the
sum of so many signs is normal. Of scores that are 0 or 1 this is McNemar's test. Rows of one cluster change their signs
together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from agent_eval_schema.evaluation.result_blocks import MetricComparison, written_alike
from agent_eval_schema.evaluation.table import ScoreStats, score_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.standard_errors import AUTO, Z_INTERVAL, clusters_of, standard_error
from agent_eval_schema.render.blocks import Block, Cell, Document, Line, Only, Part, Section, Table, Terms, Words
from agent_eval_schema.render.phrases import MISSING, number, plural, signed
from agent_eval_schema.render.printable import Printable

Numbers = np.ndarray[Any, Any]

EXACT_PAIRS, DRAWN, DRAWS = 16, 5_000, 10_000


class ScoreComparison(Printable):  # numpydoc ignore=PR01
    """The changes between the scores of two results.

    Attributes
    ----------
    lines : list of MetricComparison
        The rows of `summary` as objects.
    rows : pandas.DataFrame
        One row per score that differs, with a RangeIndex and the columns `row` (int64), `key`, `request_id` if the old
        result has it, `metric` (str), `old`, `new` and `difference` (float64).
    only_old : list
        The keys of the rows that are in the old result only.
    only_new : list
        The keys of the rows that are in the new result only.

    See Also
    --------
    EvalResult.compare : The method that returns a comparison.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask
    >>> old = EvalTask([{"response": "3", "reference": "4"}], ["exact_match"]).evaluate()
    >>> new = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
    >>> old.compare(new).rows[["metric", "old", "new", "difference"]]
            metric  old  new  difference
    0  exact_match  0.0  1.0         1.0
    """

    def __init__(
        self, lines: list[MetricComparison], rows: pd.DataFrame, only_old: list[Any], only_new: list[Any]
    ) -> None:
        self.lines, self.rows, self.only_old, self.only_new = lines, rows, only_old, only_new

    @property
    def summary(self) -> pd.DataFrame:
        """The change of each metric.

        Returns
        -------
        pandas.DataFrame
            One row per metric, with a RangeIndex and the columns `metric` (str), `rows` (int64; rows with a score in
            both results), `old`, `new` and `difference` (float64; means), `higher` and `lower` (int64; rows),
            `p_value` and `std_error` (float64; of the mean difference, NaN for fewer than two clusters).

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> old = EvalTask([{"response": "3", "reference": "4"}], ["exact_match"]).evaluate()
        >>> new = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate()
        >>> old.compare(new).summary[["metric", "rows", "old", "new", "difference"]]
                metric  rows  old  new  difference
        0  exact_match     1  0.0  1.0         1.0
        """
        names = [name for name in MetricComparison.__struct_fields__ if name not in ("low", "high")]
        return pd.DataFrame([[getattr(line, n) for n in names] for line in self.lines], columns=names)

    def _document(self) -> Document:
        rows = self.rows
        names, blank = ("key", "request_id", "metric", "old", "new", "difference"), pd.Series("", rows.index)
        cells = zip(*(rows.get(name, blank).tolist() for name in names), strict=True)
        changed = [(str(key), "" if id is None else str(id), *scores) for key, id, *scores in cells]
        return comparison_document(self.lines, changed, len(self.only_old), len(self.only_new))

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.lines)} metrics, {len(self.rows):,} scores differ>"


def compare(
    old: pd.DataFrame, new: pd.DataFrame, metrics: Iterable[str], key: str | None, cluster: str | None = AUTO
) -> ScoreComparison:
    """Compare the scores of two tables by these metrics; `EvalResult.compare` documents `key` and `cluster`."""
    if key is None:
        _require_same_rows(old, new)
    tables = [_keyed(table, key) for table in (old, new)]
    shared = tables[0].index.intersection(tables[1].index, sort=False)
    if not len(shared):
        raise EvalSetError("the two results share no row")
    ids = tables[0].loc[shared, "request_id"].to_numpy() if "request_id" in old.columns else None
    clusters = clusters_of(tables[0].loc[shared], cluster)
    lines, changed = [], []
    for metric in metrics:
        before, after = (t.loc[shared, score_column(metric)].to_numpy(np.float64, na_value=np.nan) for t in tables)
        lines.append(_line(metric, before, after, clusters))
        changed.append(_changes(metric, shared, ids, before, after))
    filled = [part for part in changed if len(part)] or changed[:1]  # an empty one would turn whole keys into floats
    rows = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()
    only = [t.index.difference(shared, sort=False).tolist() for t in tables]
    return ScoreComparison(lines, rows, *only)


IDENTIFYING = ("request_id", "prompt", "request", "inputs")
"""Columns that identify a row or its prompt: where they differ, a position does not identify a row."""


def _require_same_rows(old: pd.DataFrame, new: pd.DataFrame) -> None:
    """Rows are only compared by their position if the two tables have the same rows, as far as can be seen."""
    if len(old) != len(new):
        raise EvalSetError(f"the results have {len(old):,} and {len(new):,} rows: {_GIVE_KEY}")
    for name in IDENTIFYING:
        if name in old.columns and name in new.columns:
            pairs = zip(old[name].tolist(), new[name].tolist(), strict=True)
            differing = (i for i, (a, b) in enumerate(pairs) if not ((is_absent(a) and is_absent(b)) or bool(a == b)))
            row = next(differing, None)
            if row is not None:
                raise EvalSetError(f"row {row} has another {name} in the other result: {_GIVE_KEY}")


_GIVE_KEY = "set key= to a column that identifies the rows, such as key='request_id'"


def _keyed(table: pd.DataFrame, key: str | None) -> pd.DataFrame:
    if key is None:
        return table.reset_index(drop=True)
    if key not in table.columns:
        raise EvalSetError(f"no column {key!r} in the result: give one that both have, such as request_id")
    if table[key].duplicated().any():
        raise EvalSetError(
            f"the column {key!r} does not identify rows: {table[key].duplicated().sum():,} repeat another"
        )
    return table.set_index(key, drop=False)


def _line(metric: str, before: Numbers, after: Numbers, clusters: Numbers | None) -> MetricComparison:
    both = ~(np.isnan(before) | np.isnan(after))
    old, new = before[both], after[both]
    difference = new - old
    own = None if clusters is None else clusters[both]
    error, mean = standard_error(difference, own), ScoreStats(difference).mean
    # The rows of a cluster change their signs together: the test is on their sums.
    units = difference if own is None else np.bincount(np.unique(own, return_inverse=True)[1], weights=difference)
    return MetricComparison(
        metric,
        int(both.sum()),
        ScoreStats(old).mean,
        ScoreStats(new).mean,
        mean,
        int((difference > 0).sum()),
        int((difference < 0).sum()),
        paired_test(units),
        error,
        mean - Z_INTERVAL * error,
        mean + Z_INTERVAL * error,
    )


def _changes(metric: str, keys: pd.Index, ids: Numbers | None, before: Numbers, after: Numbers) -> pd.DataFrame:
    differs = np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after)))
    return pd.DataFrame(
        {
            "row": differs,
            "key": keys[differs].tolist(),
            **({} if ids is None else {"request_id": ids[differs]}),
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
    # Sums of the same numbers may differ in the last bit.
    found = max(abs(float(differences.sum())) - 1e-9 * float(sizes.sum()), 0.0)
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


CHANCE = 0.05
"""A p value below it is colored."""

AT_ONCE = 5
"""Rows of a table that a notebook does not fold."""

Changed = tuple[str, str, str, float, float, float]
"""The key, the ID and the metric of a score that differs, the old score, the new one and the difference."""


def comparison_document(
    lines: Sequence[MetricComparison], changed: Iterable[Changed], only_old: int, only_new: int
) -> Document:
    """A line per metric: before, after, and whether the difference can be chance; the number of rows in only one of
    the two results; then the scores that differ."""
    rows = sorted(changed, key=lambda row: (_gain(row[2], row[5]), row[2], row[0]))
    worse = sum(_gain(row[2], row[5]) < 0 for row in rows)
    better = sum(_gain(row[2], row[5]) > 0 for row in rows)
    only = [(which, plural(count, "row")) for which, count in (("before", only_old), ("after", only_new)) if count]
    names = ["metric", "#before", "#after", "#difference", "%#95% interval", "#higher", "#lower", "#rows", "#p"]
    means = Table(names, list(map(_mean, lines)), title="Metrics", at_once=AT_ONCE)
    names = ["Row", "request_id", "Metric", "#before", "#after", "#difference"]
    title = "Scores that differ, regressions first"
    scores = Table(names, list(map(_score, rows)), title=title, at_once=AT_ONCE, sortable=True)
    verdict = f"{plural(worse, 'score')} lower or missing, {better:,} higher" if rows else "No score differs"
    on_page: list[Block] = [
        *([Terms([(f"Only {which}", count) for which, count in only])] if only else []),
        *([Section("means", "Metrics", [means])] if lines else []),
        *([Section("scores", title, [scores])] if rows else []),
    ]
    return Document(
        title=verdict,
        verdict=verdict,
        mood="error" if worse else "good",
        blocks=[
            Only("text", [means, *(Line(f"{count} only {which}") for which, count in only)]),
            Only("html", on_page),
        ],
    )


def _gain(metric: str, difference: float) -> float:
    """How much better the new score is: of latency and failures less is better; a score that is lost is a loss."""
    if difference != difference:
        return -1.0
    return -difference if metric in (LATENCY, FAILURE) else difference


def _mood(metric: str, difference: float) -> str:
    gain = _gain(metric, difference)
    return "error" if gain < 0 else "good" if gain > 0 else ""


def _mean(line: MetricComparison) -> list[Words | Cell]:
    mood = _mood(line.metric, line.difference) if line.p_value < CHANCE else ""
    interval = MISSING if line.low != line.low else f"{signed(line.low)} to {signed(line.high)}"
    counts = [f"{count:,}" for count in (line.higher, line.lower, line.rows)]
    old, new = written_alike(line.metric, [line.old, line.new])
    name, p_value = Part(line.metric, "name"), Cell(number(line.p_value), mood)
    return [name, old, new, Cell(signed(line.difference), mood), interval, *counts, p_value]


def _score(row: Changed) -> list[Words | Cell]:
    key, request_id, metric, old, new, difference = row
    pair = [Cell(text, number=value) for text, value in zip(written_alike(metric, [old, new]), (old, new), strict=True)]
    return [key, request_id, metric, *pair, Cell(signed(difference), _mood(metric, difference), difference)]
