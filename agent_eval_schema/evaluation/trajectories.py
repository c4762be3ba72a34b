"""Both trajectories of rows → their scores: the part of scoring that is done for all rows of a batch at once.

EvalInputs ──▶ read_trajectories ──▶ score_pair
                    └──▶ why a row has no score
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.evaluation.table import FAILED_CALL, EvalInputs
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.intervals import Numbers
from agent_eval_schema.metrics.trajectory import Duplicates, Empty, Match, require_options
from agent_eval_schema.metrics.trajectory_columns import (
    ABSENT,
    GIVEN,
    PREDICTED,
    REFERENCE,
    UNREADABLE_CALLS,
    SessionCalls,
    Trajectories,
    read_trajectories,
    score_pair,
)
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.text.choices import require_kind
from agent_eval_schema.validation.plan import Plan


class ToolUseMetric(Struct, frozen=True):
    """Whether an agent called a tool: 1 or 0.

    It requires no reference.

    Parameters
    ----------
    tool_name : str
        The name of the tool.
    name : str, default "trajectory_single_tool_use"
        The name of the metric; it must differ between several of them.

    See Also
    --------
    score_trajectories : Compute trajectory metrics.

    Examples
    --------
    >>> from agent_eval_schema import ToolUseMetric, score_trajectories
    >>> data = [{"predicted_trajectory": [{"tool_name": "search", "tool_input": {}}]}, {"predicted_trajectory": []}]
    >>> result = score_trajectories(data, [ToolUseMetric("search")])
    >>> result.metrics_table["trajectory_single_tool_use/score"].tolist()
    [1.0, 0.0]
    """

    tool_name: str
    name: str = SINGLE_TOOL_USE

    def __post_init__(self) -> None:
        require_kind("tool_name", self.tool_name, str, "a string")
        require_kind("name", self.name, str, "a string")


TrajectoryMetric = str | ToolUseMetric


class TrajectoryOptions(Struct, frozen=True):
    """What is scored, and how: `duplicates`, `empty` and `match` as in metrics/trajectory.py."""

    metrics: tuple[TrajectoryMetric, ...]
    duplicates: Duplicates = "membership"
    empty: Empty = "define"
    match: Match = "call"

    def __post_init__(self) -> None:
        require_options(self.duplicates, self.empty, self.match)

    @property
    def reported(self) -> dict[str, str]:
        """How trajectories were compared, as a result reports it; the usual `match` is not reported."""
        options: dict[str, str] = {"duplicates": self.duplicates, "empty": self.empty}
        return options if self.match == "call" else {**options, "match": self.match}

    @property
    def not_default(self) -> dict[str, Any]:
        """The options of a call that are not the defaults, as `score` takes them, but for the names of its metrics."""
        tools = [m.tool_name for m in self.metrics if not isinstance(m, str)]
        defaults = TrajectoryOptions(self.metrics)
        options = {name: value for name, value in asdict(self).items() if value != getattr(defaults, name)}
        return {"tool_name": tools[-1], **options} if tools else options

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(m if isinstance(m, str) else m.name for m in self.metrics)


def session_calls(plan: Plan) -> SessionCalls | None:
    """The calls of sessions for rows of a format that expects those of all turns; None for any other format."""
    return SessionCalls() if find_format(plan.format).calls_of == "session" else None


def score_calls(
    inputs: EvalInputs, options: TrajectoryOptions, unread: IssueLog
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """The scores of both trajectories by metric, and by metric the reason of each row without one. Issues that reading
    them finds go to `unread`, which may be the log of the inputs."""
    size, log, batches = inputs.size, inputs.log, []
    failed = np.isin(np.arange(size), list(inputs.failed))
    # Cells that a reader or the validation could not read are absent in its rows; its log has them.
    errors = [(row, column) for row, (code, column, *_) in zip(log.rows, log.notes, strict=True) if _is_error(code)]
    unreadable = [[row for row, column in errors if column in (name, None)] for name in (PREDICTED, REFERENCE)]
    with gc_paused():
        for start in range(0, max(size, 1), _AT_ONCE):
            rows, part = np.arange(size)[start : start + _AT_ONCE], inputs.trajectories.slice(start, _AT_ONCE)
            own = IssueLog(len(rows))
            predicted = read_trajectories(part, PREDICTED, own)
            reference = read_trajectories(part, REFERENCE, own, predicted)
            unread.extend(own, rows.tolist())
            for read, at in zip((predicted, reference), unreadable, strict=True):
                read.states[np.isin(rows, at)] = UNREADABLE_CALLS
            joined = predicted
            if inputs.whole is not None and inputs.keys is not None:
                joined = inputs.whole.joined(predicted, reference, inputs.keys.sessions[rows])
            scores = _scores(joined, reference, predicted, options)
            batches.append((scores, _reasons({PREDICTED: joined, REFERENCE: reference}, options, scores, failed[rows])))
    of_scores, of_reasons = zip(*batches, strict=True)
    return _in_one(of_scores), _in_one(of_reasons)


_AT_ONCE = 1024
"""Rows whose calls are read, compared and dropped together: memory stays flat."""


def _in_one(parts: Sequence[dict[str, Numbers]]) -> dict[str, Numbers]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _is_error(code: str) -> bool:
    return RULES[code].severity is Severity.ERROR


def _scores(
    joined: Trajectories, reference: Trajectories, predicted: Trajectories, options: TrajectoryOptions
) -> dict[str, Numbers]:
    """The scores by the names of the metrics; `predicted` are the calls of the row alone."""
    metrics = [metric for metric in options.metrics if isinstance(metric, str)]
    one_to_one, define = options.duplicates == "one_to_one", options.empty == "define"
    scores = score_pair(
        joined, reference, metrics=metrics, one_to_one=one_to_one, define_empty=define, match=options.match
    )
    named = zip(options.names, options.metrics, strict=True)
    return {name: scores[m] if isinstance(m, str) else _uses(predicted, m.tool_name, define) for name, m in named}


def _uses(predicted: Trajectories, tool: str, define_empty: bool) -> Numbers:
    """Whether each predicted trajectory calls the tool; NaN where there is none."""
    has_calls = (predicted.states == GIVEN) & ((predicted.lengths > 0) | define_empty)
    pairs = zip(predicted.calls, has_calls, strict=True)
    return np.array([any(c.tool_name == tool for c in calls) if known else np.nan for calls, known in pairs], float)


def _reasons(
    columns: dict[str, Trajectories], options: TrajectoryOptions, scores: dict[str, Numbers], failed: Numbers
) -> dict[str, Numbers]:
    """For each metric the reason of each row without a score; the first one counts. On the rows `failed` an
    agent was run and failed."""
    by_row: dict[str, Numbers] = {}
    for metric, name in zip(options.metrics, options.names, strict=True):
        unscored = np.isnan(scores[name])
        causes = [(FAILED_CALL, failed)]
        for column in (PREDICTED, REFERENCE) if isinstance(metric, str) else (PREDICTED,):
            calls = columns[column]
            causes += [
                (f"the row lacks {column}", calls.states == ABSENT),
                (f"{column} cannot be read", calls.states == UNREADABLE_CALLS),
                (f"{column} is empty", calls.lengths == 0),
            ]
        by_row[name] = np.full(len(unscored), None)
        for reason, rows in reversed(causes):
            by_row[name][unscored & rows] = reason
    return by_row
