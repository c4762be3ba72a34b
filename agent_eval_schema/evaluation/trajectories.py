"""Batches of any format → trajectory scores: the part of scoring that is done for all rows of a batch at once.

batch ──format──▶ both columns, no trace ─────────────────────▶ read_trajectories ──▶ score_pair
                └ anything else ──check_batch──▶ canonical ──┘     │
                  (derived from traces, other names)               └▶ why a row has no score
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import IssueLog, reading_problems
from agent_eval_schema.decoding.texts import decode_text
from agent_eval_schema.decoding.values import TextColumn
from agent_eval_schema.evaluation.row_keys import keys_of, row_keys
from agent_eval_schema.evaluation.table import FAILED_CALL, REQUEST_ID, ScoredPart, issues_of, score_column
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.independence import RowKeys
from agent_eval_schema.metrics.intervals import Numbers
from agent_eval_schema.metrics.trajectory import DEFAULT_METRICS, Duplicates, Empty, Match, require_options
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
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan


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
        found: dict[str, str] = {"duplicates": self.duplicates, "empty": self.empty}
        return found if self.match == "call" else {**found, "match": self.match}

    @property
    def not_default(self) -> dict[str, Any]:
        """The options of a call that are not the defaults, as `score` takes them."""
        names = tuple(m for m in self.metrics if isinstance(m, str))
        found: dict[str, Any] = {"metrics": names} if names and names != DEFAULT_METRICS else {}
        tools = [m.tool_name for m in self.metrics if not isinstance(m, str)]
        found |= {"tool_name": tools[-1]} if tools else {}
        defaults = TrajectoryOptions(self.metrics)
        return found | {name: value for name, value in asdict(self).items() if value != getattr(defaults, name)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(m if isinstance(m, str) else m.name for m in self.metrics)


def session_calls(plan: Plan) -> SessionCalls | None:
    """The calls of sessions for rows of a format that expects those of all turns; None for any other format."""
    return SessionCalls() if find_format(plan.format).calls_of == "session" else None


def score_source(source: Source, options: TrajectoryOptions) -> Iterator[ScoredPart]:
    """The trajectory scores of a source, a batch at a time."""
    plan = make_plan(source.read_as(outputs="provided", select=("AE0", "AE5", "AE6")))
    whole = session_calls(plan)
    for batch in source.batches():
        calls, log, unread, keys = _canonical(batch, plan)
        scores, reasons = score_calls(calls, options, log, unread, keys=keys, whole=whole)
        columns = {score_column(name): found for name, found in scores.items()}
        yield ScoredPart(columns, log, reasons, () if REQUEST_ID in batch.schema.names else _ids(calls), keys)


def _ids(rows: pa.RecordBatch) -> list[str | None]:
    cells = read_cells(rows, REQUEST_ID)
    if cells is None:
        return [None] * rows.num_rows
    found = decode_text(REQUEST_ID, cells, IssueLog(rows.num_rows))
    ids = found.array.to_pylist() if isinstance(found, TextColumn) else found
    return [id if isinstance(id, str) else None for id in ids]


def score_calls(
    calls: pa.RecordBatch,
    options: TrajectoryOptions,
    log: IssueLog,
    unread: IssueLog,
    failed: Numbers | None = None,
    *,
    keys: RowKeys | None = None,
    whole: SessionCalls | None = None,
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """The scores of both canonical columns by metric, and by metric the reason of each row without one.

    `log` has the issues that are known; what reading finds goes to `unread`, which may be the same. On the rows
    `failed` an agent was run and failed. `whole` are the calls of sessions, by the `keys` of the rows, if these are
    compared."""
    size, found = calls.num_rows, []
    # Cells that a reader or the validation could not read are absent in its rows; its log has them.
    errors = [(row, column) for row, (code, column, *_) in zip(log.rows, log.notes, strict=True) if _is_error(code)]
    unreadable = [[row for row, column in errors if column in (name, None)] for name in (PREDICTED, REFERENCE)]
    with gc_paused():
        for start in range(0, max(size, 1), _AT_ONCE):
            rows, part = np.arange(size)[start : start + _AT_ONCE], calls.slice(start, _AT_ONCE)
            own = IssueLog(len(rows))
            predicted = read_trajectories(part, PREDICTED, own)
            reference = read_trajectories(part, REFERENCE, own, predicted)
            unread.extend(own, rows.tolist())
            for read, at in zip((predicted, reference), unreadable, strict=True):
                read.states[np.isin(rows, at)] = UNREADABLE_CALLS
            joined = predicted
            if whole is not None and keys is not None:
                joined = whole.joined(predicted, reference, keys.sessions[rows])
            scores = _scores(joined, reference, predicted, options)
            columns = {PREDICTED: joined, REFERENCE: reference}
            found.append((scores, _reasons(columns, options, scores, None if failed is None else failed[rows])))
    of_scores, of_reasons = zip(*found, strict=True)
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
    found = score_pair(
        joined, reference, metrics=metrics, one_to_one=one_to_one, define_empty=define, match=options.match
    )
    named = zip(options.names, options.metrics, strict=True)
    return {name: found[m] if isinstance(m, str) else _uses(predicted, m.tool_name, define) for name, m in named}


def _canonical(batch: pa.RecordBatch, plan: Plan) -> tuple[pa.RecordBatch, IssueLog, IssueLog, RowKeys | None]:
    """The batch with the canonical trajectory columns and the IDs, its issues, the log for issues of reading them
    (after a validation, which has reported them already, none), and the keys of its rows."""
    form = find_format(plan.format)
    read = batch if _is_ready(batch) else form.read(batch)
    if not _is_ready(read) or form.calls_of == "session":
        checked = check_batch(batch, replace(plan, columns=True))
        rows = rows_of(checked)
        calls = rows.select([PREDICTED, REFERENCE, REQUEST_ID])
        return calls, issues_of(checked, plan), IssueLog(batch.num_rows), keys_of(rows, batch)
    log = IssueLog(batch.num_rows)
    for row, problems in reading_problems(read).items():
        for problem in problems:
            log.add_finding(row, problem)
    return read, log, log, row_keys(batch)


def _is_ready(batch: pa.RecordBatch) -> bool:
    """Whether both trajectories are in canonical columns, and there is no trace that could add to them."""
    return {PREDICTED, REFERENCE} <= set(batch.schema.names) and "trace" not in batch.schema.names


def _uses(predicted: Trajectories, tool: str, define_empty: bool) -> Numbers:
    """Whether each predicted trajectory calls the tool; NaN where there is none."""
    has_calls = (predicted.states == GIVEN) & ((predicted.lengths > 0) | define_empty)
    pairs = zip(predicted.calls, has_calls, strict=True)
    return np.array([any(c.tool_name == tool for c in calls) if given else np.nan for calls, given in pairs], float)


def _reasons(
    columns: dict[str, Trajectories], options: TrajectoryOptions, scores: dict[str, Numbers], failed: Numbers | None
) -> dict[str, Numbers]:
    """For each metric the reason of each row without a score; the first one counts. On the rows `failed` an
    agent was run and failed."""
    by_row: dict[str, Numbers] = {}
    for metric, name in zip(options.metrics, options.names, strict=True):
        left = np.isnan(scores[name])
        found = [] if failed is None else [(FAILED_CALL, failed)]
        for column in (PREDICTED, REFERENCE) if isinstance(metric, str) else (PREDICTED,):
            calls = columns[column]
            found += [
                (f"the row lacks {column}", calls.states == ABSENT),
                (f"{column} cannot be read", calls.states == UNREADABLE_CALLS),
                (f"{column} is empty", calls.lengths == 0),
            ]
        by_row[name] = np.full(len(left), None)
        for reason, rows in reversed(found):
            by_row[name][left & rows] = reason
    return by_row
