"""The columns of a result's table, the rows that metrics are computed on, the outcome of one metric on them, the issues
of their cells, what the means cover, and the statistics of scores.

Rows without a score (NaN) are excluded from all statistics. The standard deviation is that of a sample (ddof 1), NaN
for one row, as in the Vertex AI SDK.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.evaluation.row_keys import joined_keys
from agent_eval_schema.formats.registry import column_at
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.metrics.intervals import Numbers, unit_of
from agent_eval_schema.metrics.trajectory_columns import SessionCalls
from agent_eval_schema.render.figures import Bar
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.plan import Plan

RUN_COLUMNS = ("response", LATENCY, FAILURE, "predicted_trajectory", "error")
"""The columns that running an agent adds; `error` is ours, the documented run loses it."""


REQUEST_ID = "request_id"
"""The first column, if any row has an id and the data has no column of that name."""


def score_column(metric: str) -> str:
    return metric if metric in (LATENCY, FAILURE) else f"{metric}/score"


def cell_text(cell: Any) -> str:
    """A cell as the text that is shown of it."""
    return cell if isinstance(cell, str) else msgspec.json.encode(cell, enc_hook=str).decode("utf-8", "replace")


# --- the rows
class EvalInputs(Struct):
    """Some rows as metrics take them: their original cells, the columns that metrics read (None where absent), both
    trajectories as Arrow arrays, the issues of the cells that are read, the rows' request_id, what makes rows depend on
    each other, and the calls of sessions if these are compared. Rows on which the agent `failed` have no outputs. The
    issues of trajectories are in the log already if the rows are `validated`. Where only trajectories are compared, the
    frame is empty."""

    frame: pd.DataFrame
    values: dict[str, list[Any]]
    trajectories: pa.RecordBatch
    log: IssueLog
    ids: Sequence[str | None]
    keys: RowKeys | None
    whole: SessionCalls | None = None
    failed: frozenset[int] = frozenset()
    validated: bool = True

    @property
    def size(self) -> int:
        return self.log.size

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


Measured = tuple[dict[str, list[Any]], list[str | None]]
"""The result of a metric: columns by their part after the slash (`score`, `explanation`), and for each row the reason
for its missing score, or the rationale of its score."""


class ScoredPart(Struct):
    """Some rows with their scores: the `columns` that a table gets (NaN where there is no score), the issues of the
    cells, by metric the reason of each row (a metric that scored all rows may have none), the request_id of each row,
    unless the original rows have a column of that name, what makes rows depend on each other (None if nothing can),
    and the original rows if they were at hand."""

    columns: dict[str, Numbers]
    log: IssueLog
    reasons: dict[str, Numbers] = {}
    ids: Sequence[str | None] = ()
    keys: RowKeys | None = None
    frame: pd.DataFrame | None = None


def joined_parts(parts: Sequence[ScoredPart], metrics: Iterable[str]) -> ScoredPart:
    """All rows as one part, without their issues; no part has no score of these metrics."""

    def joined(by_part: Sequence[dict[str, Numbers]]) -> dict[str, Numbers]:
        of_parts = [(of, np.full(part.log.size, None)) for of, part in zip(by_part, parts, strict=True)]
        names = dict.fromkeys(name for of in by_part for name in of)
        return {name: np.concatenate([of.get(name, none) for of, none in of_parts]) for name in names}

    parts = parts or [ScoredPart({score_column(name): np.empty(0) for name in metrics}, IssueLog(0))]
    keys = [part.keys for part in parts if part.keys is not None]
    return ScoredPart(
        joined([part.columns for part in parts]),
        IssueLog(sum(part.log.size for part in parts)),
        joined([part.reasons for part in parts]),
        [id for part in parts for id in part.ids],
        joined_keys(keys) if keys else None,
    )


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


WITHOUT_REASON = "the file has no score and no reason"


def error_text(cell: Any) -> str:
    """The error of a row that failed; a file of another tool may have none."""
    return "no error is recorded" if is_absent(cell) else str(cell)


NAMED = 10
"""Rows that are named."""

NAMED_METRICS = 2
"""Metrics with the same number of scored rows that are named."""


def headline(rows: int, scored: Mapping[str, int], failed: int, names: Sequence[str], left_out: int = 0) -> str:
    """What is missing of the rows that were given; "" if every metric has a score on every row. `scored` are the rows
    with a score by metric, `names` the first of those on which a call failed."""
    parts = []
    if failed:
        which = f"row{'' if failed == 1 else 's'} {', '.join(names)}{', …' if failed > len(names) else ''}"
        parts.append(f"{failed:,} of {plural(rows, 'call')} failed ({which})")
    counts = set(scored.values())
    if not rows or counts == {0}:
        parts.append("no row was scored" if rows else "no row to score")
    elif counts and min(counts) < rows:
        for count, of in by_key((count, name) for name, count in scored.items() if count < rows).items():
            which = " and ".join(of) if len(of) <= NAMED_METRICS else f"{len(of)} of {len(scored)} metrics"
            parts.append(f"{count:,} of {plural(rows, 'row')} scored" + (f" by {which}" if len(counts) > 1 else ""))
    if left_out:
        parts.append(f"{plural(left_out, 'invalid evaluation')} left out")
    return "; ".join(parts)


# --- scores → mean, standard deviation, percentiles
class ScoreStats:
    """The scores of one metric, `by_row` (NaN where there is none) and those that are `known`: the finite ones."""

    def __init__(self, scores: Sequence[float] | Numbers = ()) -> None:
        self.by_row = np.asarray(scores, np.float64)
        self.known = self.by_row[np.isfinite(self.by_row)]
        self.scored = len(self.known)
        self._unit = unit_of(self.known.min(), self.known.max()) if self.scored else 1.0

    @cached_property
    def mean(self) -> float:
        return math.fsum(self.known / self._unit) / self.scored * self._unit if self.scored else math.nan

    @cached_property
    def std(self) -> float:
        squares = ((self.known - self.mean) / self._unit) ** 2
        return math.sqrt(float(squares.sum()) / (self.scored - 1)) * self._unit if self.scored > 1 else math.nan

    @property
    def is_share(self) -> bool:
        return self.scored > 0 and self.known.min() >= 0 and self.known.max() <= 1

    @property
    def tenths(self) -> list[Bar]:
        """Scores from 0 to 1 in ten bars; the last one has the ones."""
        counts = np.bincount(np.minimum((self.known * 10 + 1e-9).astype(int), 9), minlength=10)
        return [Bar(i / 10, (i + 1) / 10, n) for i, n in enumerate(counts.tolist())]

    def percentile(self, share: float) -> float:
        return float(np.quantile(self.known, share)) if self.scored else math.nan


def rows_by(labels: pd.Series[Any]) -> dict[str, Numbers]:
    """The positions of the rows of each label, in the order of the labels; not those without one."""
    places = pd.Series(np.arange(len(labels))).groupby(labels.to_numpy(), sort=False)
    return {str(label): rows.to_numpy() for label, rows in places}
