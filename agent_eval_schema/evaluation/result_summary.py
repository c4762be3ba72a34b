"""What a report on scores shows, as plain values.

EvalResult.summary() ──▶ ResultSummary ──▶ result_blocks.py
                         lines             a line per metric
                         reason_groups     why rows have no score
                         plots, worst      only with `worst`: how scores are distributed, the rows, worst first,
                         intervals …       and the pictures: confidence intervals, scores by row and by group
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from agent_eval_schema.metrics.alignment import CallPair
from agent_eval_schema.render.figures import Bar, Distribution


class Worst(Struct, frozen=True):
    """A row with its scores (None: none), what the user asked, the cells to identify it, and its trajectories side by
    side (None: it does not have both)."""

    row: int
    failed: bool
    scores: list[tuple[str, float | None]]
    asked: str
    cells: list[tuple[str, str]]
    lines: list[CallPair] | None


class Scored(Struct, frozen=True):
    """One line of a result's table of metrics."""

    metric: str
    mean: float
    std: float
    rows: int
    scored: int


class ScorePlot(Struct, frozen=True):
    """How the scores of a metric are distributed; `bars` if they have bars of their own, and `quantiles` by share."""

    metric: str
    distribution: Distribution
    bars: list[Bar] | None
    quantiles: dict[float, float]


class ScoreSteps(Struct, frozen=True):
    """Over the rows in order, in equal steps: the mean of what a score lacks to 1, and the share of unscored rows."""

    metric: str
    lost: list[float]
    unscored: list[float]


class GroupMean(Struct, frozen=True):
    """The mean of a metric in a group of rows, with its 95 % confidence interval (NaN for fewer than two scores)."""

    metric: str
    mean: float
    low: float
    high: float
    scored: int


class GroupOfRows(Struct, frozen=True):
    """The rows with one value of a column."""

    value: str
    rows: int
    means: list[GroupMean]


class ResultSummary(Struct, frozen=True, kw_only=True):
    """A result as plain values. `reason_groups` has (reason, rows, metrics), `findings` (row, path, message) of the
    first issues, `latency` the percentiles in seconds; the `headline` names the rows without a score.
    `intervals` are the 95 % confidence intervals of the means by metric, `groups` the groups by column,
    `errors` the most frequent errors of failed calls, with their rows."""

    name: str | None
    row_count: int
    metrics: tuple[str, ...]
    options: dict[str, str]
    numbers: dict[str, float]
    lines: list[Scored]
    reasons: dict[tuple[str, str], int]
    reason_groups: list[tuple[str, int, list[str]]]
    issue_counts: dict[str, int]
    headline: str
    latency: dict[str, float]
    findings: list[tuple[Any, Any, str]] = []
    plots: list[ScorePlot] = []
    worst: list[Worst] = []
    intervals: dict[str, tuple[float, float]] = {}
    steps: list[ScoreSteps] = []
    groups: dict[str, list[GroupOfRows]] = {}
    errors: list[tuple[str, int]] = []


class MetricComparison(Struct, frozen=True):
    """One metric in two results: over the `rows` that have a score in both, the means, the mean difference, how many
    rows have a higher and a lower score in the new result, the p value of the test, the standard error of the mean
    difference and its 95 % confidence interval (NaN for fewer than two clusters)."""

    metric: str
    rows: int
    old: float
    new: float
    difference: float
    higher: int
    lower: int
    p_value: float
    std_error: float = math.nan
    low: float = math.nan
    high: float = math.nan
