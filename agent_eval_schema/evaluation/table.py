"""The columns of a result's table, the rows that metrics are computed on, the outcome of one metric on them, the issues
of their cells, what the means cover, and the statistics of scores.

`ScoreStats` counts how often each value occurs, so that a million scores of 0, 0.5 and 1 are three numbers. Rows
without a score (NaN) are counted and excluded from all other statistics. The standard deviation is that of a sample
(ddof 1), NaN for one row, as in the Vertex AI SDK.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.formats.registry import column_at
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.intervals import MeanInterval, mean_interval, spread_by_group, unit_of
from agent_eval_schema.metrics.trajectory_columns import Numbers
from agent_eval_schema.render.figures import Bar, Distribution
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules import RULES
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.plan import Plan

RUN_COLUMNS = ("response", LATENCY, FAILURE, "predicted_trajectory", "error")
"""The columns that running an agent adds; `error` is ours, the documented run loses it."""


REQUEST_ID = "request_id"
"""The first column, if any row has an id and the data has no column of that name."""


def score_column(metric: str) -> str:
    return metric if metric in (LATENCY, FAILURE) else f"{metric}/score"


# --- the rows
class RowTable(Struct):
    """The input of the metrics: the rows as they will be in the result, and the columns that metrics read, as plain
    values (None where absent). Rows on which the agent `failed` have no outputs."""

    frame: pd.DataFrame
    values: dict[str, list[Any]]
    failed: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        return len(self.frame)

    def why_lacking(self, row: int, column: str) -> str:
        """Why a metric that reads the column has no score on a row that does not have it."""
        return FAILED_CALL if row in self.failed and column in OUTPUTS else f"the row lacks {column}"

    def rows(self) -> Iterable[dict[str, Any]]:
        """The rows as dicts: the table's cells, absent ones None, and what metrics read under its own name. Text that a
        format has in an object, such as a reference of Vertex AI, is the text."""
        columns = [str(c) for c in self.frame.columns]
        extra = {n: v for n, v in self.values.items() if n not in columns}
        cells = [[None if is_absent(v) else v for v in self.frame.iloc[:, i].tolist()] for i in range(len(columns))]
        for name in TEXTS.intersection(columns, self.values):
            pairs = zip(cells[columns.index(name)], self.values[name], strict=True)
            cells[columns.index(name)] = [text if isinstance(cell, dict) and text else cell for cell, text in pairs]
        for line in zip(*cells, *extra.values(), strict=True) if cells or extra else ((),) * self.size:
            yield dict(zip((*columns, *extra), line, strict=True))


TEXTS = frozenset({"prompt", "response", "reference"})
"""The columns of texts, which a format may have under the same name in another form."""

OUTPUTS = ("response", "predicted_trajectory")
"""The columns that an agent fills."""


class Measured(Struct):
    """The result of a metric: columns by their part after the slash (`score`, `explanation`), and for each row the
    reason for its missing score, or the rationale of its score."""

    columns: dict[str, list[Any]]
    reasons: list[str | None]


FAILED_CALL = "the call failed"
"""The reason why a row on which an agent failed has no score of its outputs."""


KEPT = 10_000
"""The number of findings that are kept; a file may have one per row."""


class Findings:
    """The issues of a run, those of the whole data first: `counts` of all, `kept` the first in row order."""

    def __init__(self, of_the_whole: Iterable[Issue] = ()) -> None:
        self.kept = list(of_the_whole)
        self.counts = Counter(issue.code for issue in self.kept)

    def add(self, log: IssueLog, start: int) -> None:
        """Take in the log of a batch whose first row is row `start`."""
        self.counts.update(note[0] for note in log.notes)
        for at in sorted(range(len(log.rows)), key=log.rows.__getitem__)[: KEPT - len(self.kept)]:
            code, column, path, message, hint = log.notes[at]
            self.kept.append(Finding(RULES[code], message, column, path, hint).issue(start + log.rows[at]))


def issues_of(checked: pa.RecordBatch, plan: Plan, columns: Container[str | None] | None = None) -> IssueLog:
    """The issues of a checked batch, or those of these columns (None: of rows as a whole), by our names of columns."""
    log = IssueLog(checked.num_rows)
    for row, notes in enumerate(verdict(checked, "issues").to_pylist()):
        for note in notes or ():
            column = column_at(note["path"] or note["column"] or "", plan.origins) or note["column"]
            if columns is None or column in columns:
                log.rows.append(row)
                log.notes.append((note["code"], column, note["path"], note["message"], note["hint"]))
    return log


class FailedCalls(Struct):
    """How many rows failed, the first of them by their request_id or position, and how often each error occurred."""

    count: int = 0
    names: list[str] = []
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, row: int, id: str | None, error: str) -> None:
        self.count += 1
        if len(self.names) < NAMED:
            self.names.append(id or str(row))
        short = error[:LONGEST_ERROR]
        if short in self.errors or len(self.errors) < ERRORS_COUNTED:
            self.errors[short] += 1


def error_text(cell: Any) -> str:
    """The error of a row that failed; a file of another tool may have none."""
    return "no error is recorded" if is_absent(cell) else str(cell)


ERRORS_COUNTED, LONGEST_ERROR = 1_000, 200
"""Different errors that are counted, and the characters of one by which it is known."""


NAMED = 10
"""Rows that are named."""

NAMED_METRICS = 2
"""Metrics with the same number of scored rows that are named."""


def headline(rows: int, scored: Mapping[str, int], failed: int, names: Sequence[str], left_out: int = 0) -> str:
    """What is missing of the rows that were given; "" if every metric has a score on every row. `scored` are the rows
    with a score by metric, `names` the first of those on which a call failed."""
    parts = []
    if failed:
        more = ", …" if failed > len(names) else ""
        which = f"row{'' if failed == 1 else 's'} {', '.join(names)}{more}"
        parts.append(f"{failed:,} of {plural(rows, 'call')} failed ({which})")
    counts = set(scored.values())
    if not rows or counts == {0}:
        parts.append("no row was scored" if rows else "no row to score")
    elif counts and min(counts) < rows:
        if len(counts) == 1:
            parts.append(f"{min(counts):,} of {plural(rows, 'row')} scored")
        else:
            fewer: dict[int, list[str]] = {}
            for name, count in scored.items():
                fewer.setdefault(count, []).append(name)
            parts.append(_fewer({count: names for count, names in fewer.items() if count < rows}, rows, len(scored)))
    if left_out:
        parts.append(f"{plural(left_out, 'invalid evaluation')} left out")
    return "; ".join(parts)


def _fewer(names: Mapping[int, Sequence[str]], rows: int, metrics: int) -> str:
    """The rows that metrics scored, by that number; many metrics are counted, not named."""
    if len(names) == 1:
        ((count, found),) = names.items()
        if len(found) > NAMED_METRICS:
            return f"{count:,} of {plural(rows, 'row')} scored by {len(found)} of {metrics} metrics"
    sentence = (
        [f"{len(found)} metrics {count:,}"] if len(found) > NAMED_METRICS else [f"{name} {count:,}" for name in found]
        for count, found in names.items()
    )
    return f"fewer than {plural(rows, 'row')} scored: {', '.join(part for parts in sentence for part in parts)}"


# --- scores → mean, standard deviation, percentiles, a confidence interval
Groups = dict[str, dict[str, "ScoreStats"]]
"""The scores of groups of rows: by group, by metric."""

Places = dict[str, list[Numbers]]
"""The positions of the rows of groups, in parts."""


class ScoreStats:
    """The scores of one metric: how often each value occurs, and how many rows have none. Where it is known which rows
    depend on each other, also the scores in the order of the rows."""

    def __init__(self, scores: Iterable[float] = ()) -> None:
        self._counts: Counter[float] = Counter()
        self._by_row: list[Numbers] = []
        self.rows = 0
        self.add(np.fromiter(scores, np.float64), by_row=True)

    def add(self, scores: Numbers, *, by_row: bool = False) -> None:
        """Add the scores of some rows, NaN where there is none; one that is infinite is none."""
        self.rows += len(scores)
        if by_row:
            self._by_row.append(scores)
        for one in pc.value_counts(pa.array(scores[np.isfinite(scores)])).to_pylist():  # numpy would sort them
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
        if not self.scored:
            return math.nan
        unit = unit_of(min(self._counts), max(self._counts))
        return math.fsum(v / unit * n for v, n in self._counts.items()) / self.scored * unit

    @property
    def std(self) -> float:
        if self.scored < 2:
            return math.nan
        mean, unit = self.mean, unit_of(min(self._counts), max(self._counts))
        return (
            math.sqrt(math.fsum(n * ((v - mean) / unit) ** 2 for v, n in self._counts.items()) / (self.scored - 1))
            * unit
        )

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

    def interval(
        self, units: Numbers | None = None, level: float = 0.95, scale: tuple[float, float] | None = None
    ) -> MeanInterval:
        """The interval of the mean; `units` has the number of each row's independent unit, None if each row is one."""
        if units is None:
            values, counts = np.array(list(self._counts)), np.array(list(self._counts.values()), np.int64)
            return mean_interval(np.repeat(values, counts), None, level, scale)
        return mean_interval(np.concatenate(self._by_row), units, level, scale)

    def spread(self, questions: Numbers) -> tuple[float, float]:
        """The standard deviation between questions and between answers to one; `questions` are hashes (0: absent)."""
        scores = np.concatenate(self._by_row)
        there = np.isfinite(scores) & (questions != 0)
        return spread_by_group(scores[there], questions[there])


def scores_in(table: pd.DataFrame, metric: str) -> Numbers:
    return table[score_column(metric)].to_numpy(np.float64, na_value=np.nan)


def add_by_group(
    groups: Groups,
    part: pd.DataFrame,
    keys: pd.Series[Any],
    metrics: Iterable[str],
    places: Places | None = None,
    start: int = 0,
) -> None:
    """Add the scores of a part of a result's table, whose first row is row `start`, to the groups of its rows, by the
    key of each row; and the positions of the rows to `places`."""
    for key, rows in pd.Series(np.arange(len(part))).groupby(keys.to_numpy(), sort=False):
        at = rows.to_numpy()
        if places is not None:
            places.setdefault(str(key), []).append(start + at)
        for name, tally in groups.setdefault(str(key), {name: ScoreStats() for name in metrics}).items():
            tally.add(scores_in(part, name)[at], by_row=places is not None)
