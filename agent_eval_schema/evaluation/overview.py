"""The pictures of a result's page, counted while its rows pass by: scores over the rows, and by group; and the rows.

part ─▶ steps    per metric: what the scores of each step of the rows lack to 1
     ─▶ groups   per column with few values: the rows and the scores of each value
     ─▶ errors   the calls that failed with each error
     ─▶ rows     those first that are to be examined first: those that failed, then the lowest scores
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from agent_eval_schema.decoding.requests import last_question
from agent_eval_schema.evaluation.result_blocks import GroupMean, GroupOfRows, ScoreSteps, written_alike
from agent_eval_schema.evaluation.runnables import read_calls
from agent_eval_schema.evaluation.score_stats import Groups, ScoreStats, add_by_group, scores_in
from agent_eval_schema.evaluation.table import REQUEST_ID, RUN_COLUMNS, score_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.alignment import aligned
from agent_eval_schema.metrics.batch.columns import PREDICTED, REFERENCE
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.trajectory import Match
from agent_eval_schema.render.blocks import LONGEST_CELL, LONGEST_TITLE, Cell, OpenRow, OpenRows
from agent_eval_schema.render.figures import CELLS
from agent_eval_schema.render.page import heat
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text.describe import cut

GROUPINGS, MOST_GROUPS = 3, 12
"""Columns that rows are grouped by, and the values of such a column, at most."""

CAUSES_SHOWN = 10
"""Errors that a result shows, at most."""

SMALLEST_GROUP = 2
"""Rows that a group has on average, at least: otherwise the values identify rows."""

ERRORS_COUNTED, LONGEST_ERROR = 1_000, 200
"""Different errors that are counted, and the characters of one by which it is known."""

GROUP_RESAMPLES = 500
"""Samples that the interval of a group is read from; there can be hundreds of them."""

_IDENTIFYING = {REQUEST_ID, "prompt", "request", "inputs", "reference", "expected_response", "trace", *RUN_COLUMNS}
"""Columns that are different in each row by what they mean."""


class Overview:
    """The parts of a result's table, in the order of the rows → the pictures."""

    def __init__(self, stats: Mapping[str, ScoreStats], row_count: int) -> None:
        self._names = list(stats)
        self._unit = [name for name in stats if name not in (LATENCY, FAILURE) and stats[name].is_share]
        self._bounds = np.linspace(0, row_count, min(row_count, CELLS) + 1).astype(int)
        self._lost = {name: np.zeros(len(self._bounds) - 1) for name in self._unit}
        self._unscored = {name: np.zeros(len(self._bounds) - 1) for name in self._unit}
        self._groups: dict[str, Groups] | None = None
        self._errors: Counter[str] = Counter()
        self._rows = 0

    def watching(self, parts: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The parts as they are; each is counted when it passes."""
        for part in parts:
            at = np.searchsorted(self._bounds, self._rows + np.arange(len(part)), side="right") - 1
            for name in self._unit:
                scores = scores_in(part, name)
                np.add.at(self._lost[name], at, np.nan_to_num(1 - scores))
                np.add.at(self._unscored[name], at, np.isnan(scores))
            self._add_groups(part)
            if FAILURE in self._names:
                errors = part.loc[(part[FAILURE] == 1).to_numpy(bool, na_value=False), "error"].dropna()
                for error in errors.astype(str).str.slice(0, LONGEST_ERROR):
                    if error in self._errors or len(self._errors) < ERRORS_COUNTED:
                        self._errors[error] += 1
            self._rows += len(part)
            yield part

    def _add_groups(self, part: pd.DataFrame) -> None:
        if self._groups is None:
            scores = {score_column(name) for name in self._names}
            names = (str(c) for c in part.columns if c not in scores and "/" not in str(c))
            self._groups = {name: {} for name in names if name not in _IDENTIFYING}
        for column in list(self._groups):
            keys = part[column].map(_label)
            found = self._groups[column]
            if len(found.keys() | set(keys.dropna())) > MOST_GROUPS or keys.eq("").any():
                del self._groups[column]
                continue
            add_by_group(found, part, keys, self._names)

    @property
    def errors(self) -> list[tuple[str, int]]:
        """The most frequent errors of calls that failed, each with its rows."""
        return self._errors.most_common(CAUSES_SHOWN)

    @property
    def steps(self) -> list[ScoreSteps]:
        """What the scores from 0 to 1 lack, a line per metric."""
        sizes = np.maximum(np.diff(self._bounds), 1)
        return [
            ScoreSteps(name, *((sums[name] / sizes).round(3).tolist() for sums in (self._lost, self._unscored)))
            for name in self._unit
        ]

    @property
    def groups(self) -> dict[str, list[GroupOfRows]]:
        """The groups of each column that has few values; the largest group first."""
        found = {}
        for column, values in (self._groups or {}).items():
            if len(values) >= 2 and len(values) * SMALLEST_GROUP <= self._rows:
                groups = []
                for value, tallies in values.items():
                    rows = max(tally.rows for tally in tallies.values())
                    groups.append(GroupOfRows(value, rows, [_mean(name, tally) for name, tally in tallies.items()]))
                found[column] = sorted(groups, key=lambda group: -group.rows)
        return dict(list(found.items())[:GROUPINGS])


def _mean(name: str, tally: ScoreStats) -> GroupMean:
    low, high = tally.interval(resamples=GROUP_RESAMPLES) if tally.scored > 1 else (math.nan, math.nan)
    return GroupMean(name, tally.mean, low, high, tally.scored)


def _label(value: Any) -> str | None:
    """The value as the name of a group: a short text, a whole number or a flag; "" for any other, None for none."""
    if isinstance(value, str):
        return value if len(value) <= 60 and value[:1] not in ("{", "[") else ""
    if isinstance(value, bool | int | np.bool_ | np.integer):
        return str(value)
    return None if is_absent(value) else ""


# ---------------------------------------------------------------------------------------------------------------------
# the rows
SHOWN_BESIDE = (
    *("request_id", "prompt", "request", "inputs", "response", "outputs"),
    *("reference", "expected_response", "expected_facts", "expectations", "error"),
)
"""The cells of a row that are shown with it, those that it has; after them what metrics explain."""


def worst_rows(
    parts: Iterable[pd.DataFrame], stats: Mapping[str, ScoreStats], row_count: int, most: int, match: Match
) -> OpenRows:
    """At most `most` rows of a table: those that failed, then those with the lowest mean of the scores from 0 to 1,
    those without a score, and last those with the full score."""
    metrics = [name for name in stats if name != FAILURE]
    unit = [name for name in metrics if name != LATENCY and stats[name].is_share]
    ranked = _ranked(parts, unit, FAILURE in stats, most)
    chosen = [(row, cells) for _, row, cells in heapq.nsmallest(most, ranked, key=lambda found: found[:2])]
    scores = [_scores(name, [cells[score_column(name)] for _, cells in chosen]) for name in metrics]
    columns = list(zip(*scores, strict=True)) if scores else [()] * len(chosen)
    rows = [_row(metrics, *row, match, columns[i], is_open=i == 0) for i, row in enumerate(chosen)]
    return OpenRows(metrics, rows, row_count)


def _ranked(
    parts: Iterable[pd.DataFrame], unit: list[str], ran: bool, most: int
) -> Iterator[tuple[float, int, dict[str, Any]]]:
    """(rank, row, cells) of the lowest rows of each part: the mean score, -1 of a row that failed, 2 of a full score,
    and between the two 1.5 of a row without a score."""
    start = 0
    for part in parts:
        means = part[[score_column(name) for name in unit]].mean(axis=1) if unit else pd.Series(math.nan, part.index)
        if ran:
            means = means.mask(part[FAILURE] == 1, -1.0)
        scores = means.to_numpy(np.float64)
        ranks = np.where(scores < 1, scores, np.where(np.isnan(scores), 1.5, 2.0))
        for place in np.argsort(ranks, kind="stable")[:most].tolist():
            cells = {str(c): part.iat[place, i] for i, c in enumerate(part.columns)}
            yield ranks[place].item(), start + place, cells
        start += len(part)


def _row(
    metrics: list[str], row: int, cells: dict[str, Any], match: Match, scores: Sequence[Cell], *, is_open: bool
) -> OpenRow:
    explained = [n for n in cells if n.rpartition("/")[0] in metrics and n != score_column(n.rpartition("/")[0])]
    shown = {n: cell_text(cells[n]) for n in (*SHOWN_BESIDE, *explained) if n in cells and not is_absent(cells[n])}
    calls = []
    for cell in (cells.get(PREDICTED), cells.get(REFERENCE)):
        found = None if is_absent(cell) else read_calls(cell)[0]
        calls.append(None if found is None else msgspec.convert(found, list[ToolCall]))
    failed = cells.get(FAILURE) == 1
    asked = next((cells[n] for n in ("prompt", "request", "inputs") if not is_absent(cells.get(n))), None)
    title = shown.get("error", "") if failed else "" if asked is None else last_question(asked) or cell_text(asked)
    return OpenRow(
        row=f"{row:,}",
        title=cut(title, LONGEST_TITLE) or f"Row {row:,}",
        scores=scores,
        values=[(name, cut(text, LONGEST_CELL)) for name, text in shown.items()],
        calls=None if calls[0] is None or calls[1] is None else aligned(calls[0], calls[1], match),
        request_id=shown.get("request_id", ""),
        failed=failed,
        is_open=is_open,
    )


def _scores(metric: str, cells: Sequence[Any]) -> list[Cell]:
    """The scores of a metric, aligned; the darker the more they lack to 1."""
    scores = [math.nan if is_absent(score) else float(score) for score in cells]
    lost = [1 - score if metric != LATENCY and 0 <= score <= 1 else 0.0 for score in scores]
    moods = ["muted" if math.isnan(score) else heat(share) for score, share in zip(scores, lost, strict=True)]
    return [
        Cell(text, mood, None if math.isnan(score) else score)
        for text, mood, score in zip(written_alike(metric, scores), moods, scores, strict=True)
    ]


def cell_text(cell: Any) -> str:
    """A cell as the text that is shown of it."""
    return cell if isinstance(cell, str) else msgspec.json.encode(cell, enc_hook=str).decode("utf-8", "replace")
