"""The pictures of a result's page, counted while its rows pass by: scores over the rows, and by group.

part ─▶ steps    per metric: what the scores of each step of the rows lack to 1
     ─▶ groups   per column with few values: the rows and the scores of each value
     ─▶ errors   the calls that failed with each error
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from agent_eval_schema.evaluation.result_blocks import GroupMean, GroupOfRows, ScoreSteps
from agent_eval_schema.evaluation.score_stats import Groups, ScoreStats, add_by_group, scores_in
from agent_eval_schema.evaluation.table import REQUEST_ID, RUN_COLUMNS, score_column
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.render.figures import CELLS

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
            self._add_steps(part)
            self._add_groups(part)
            self._add_errors(part)
            self._rows += len(part)
            yield part

    def _add_steps(self, part: pd.DataFrame) -> None:
        at = np.searchsorted(self._bounds, self._rows + np.arange(len(part)), side="right") - 1
        for name in self._unit:
            scores = scores_in(part, name)
            np.add.at(self._lost[name], at, np.nan_to_num(1 - scores))
            np.add.at(self._unscored[name], at, np.isnan(scores))

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

    def _add_errors(self, part: pd.DataFrame) -> None:
        if FAILURE in self._names:
            told = part.loc[(part[FAILURE] == 1).to_numpy(bool, na_value=False), "error"].dropna()
            for error in told.astype(str).str.slice(0, LONGEST_ERROR):
                if error in self._errors or len(self._errors) < ERRORS_COUNTED:
                    self._errors[error] += 1

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
                groups = [_group(value, tallies) for value, tallies in values.items()]
                found[column] = sorted(groups, key=lambda group: -group.rows)
        return dict(list(found.items())[:GROUPINGS])


def _group(value: str, tallies: Mapping[str, ScoreStats]) -> GroupOfRows:
    rows = max(tally.rows for tally in tallies.values())
    return GroupOfRows(value, rows, [_mean(name, tally) for name, tally in tallies.items()])


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
