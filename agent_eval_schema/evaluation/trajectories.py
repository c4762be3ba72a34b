"""Batches of any format → trajectory scores: what `score_trajectories` and `EvalTask` share.

batch ──format──▶ both columns, no trace ─────────────────────▶ read_pair ──▶ score_pair
                └ anything else ──check_batch──▶ canonical ──┘     │
                  (derived from traces, other names)               └▶ why a row has no score
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.notes import IssueLog, reading_problems
from agent_eval_schema.evaluation.table import FAILED_CALL
from agent_eval_schema.formats.registry import column_at, find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.metrics import trajectory
from agent_eval_schema.metrics.batch.columns import PREDICTED, REFERENCE, Pair, read_pair, score_pair
from agent_eval_schema.metrics.batch.numbers import ABSENT, GIVEN, UNREADABLE, Numbers
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, Duplicates, Empty
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.gc_pause import without_collector
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan


class TrajectorySingleToolUse(Struct, frozen=True):
    """Whether a tool was called at all: 1 or 0; needs no reference. `name` is for when there are several."""

    tool_name: str
    name: str = SINGLE_TOOL_USE


TrajectoryMetric = str | TrajectorySingleToolUse


class TrajectoryOptions(Struct, frozen=True):
    """What is scored, and how: `duplicates` and `empty` as in metrics/trajectory.py."""

    metrics: tuple[TrajectoryMetric, ...]
    duplicates: Duplicates = "membership"
    empty: Empty = "nan"

    def __post_init__(self) -> None:
        trajectory.require_options(self.duplicates, self.empty)
        for metric in self.metrics:
            if isinstance(metric, str) and metric not in TRAJECTORY_METRICS:
                if metric == SINGLE_TOOL_USE:
                    hint = "give it as TrajectorySingleToolUse(tool_name=...), on the command line as --tool-name T"
                    raise EvalSetError(f"{metric} needs the name of a tool: {hint}")
                known = ", ".join((*TRAJECTORY_METRICS, SINGLE_TOOL_USE))
                raise EvalSetError(f"no metric {metric!r}: use {known}")

    @property
    def names_tools(self) -> bool:
        """Whether the names of tools are asked for."""
        return any(isinstance(m, TrajectorySingleToolUse) for m in self.metrics)

    @property
    def said(self) -> dict[str, str]:
        """How trajectories were compared, as a result says it."""
        return {"duplicates": self.duplicates, "empty": self.empty}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(m if isinstance(m, str) else m.name for m in self.metrics)


class ScoredBatch(Struct):
    """A batch with the scores of its rows by metric (NaN where there is none), what was found wrong, and how many rows
    have no score for which reason."""

    batch: pa.RecordBatch
    scores: dict[str, Numbers]
    log: IssueLog
    unscored: Counter[tuple[str, str]]


def score_source(source: Source, format: str, options: TrajectoryOptions) -> Iterator[ScoredBatch]:
    """The batches of a source with their scores, one at a time."""
    plan = make_plan(source, format, "provided", select=("AE0", "AE5", "AE6"))
    for batch in source.batches():
        yield score_batch(batch, plan, options)


def score_batch(batch: pa.RecordBatch, plan: Plan, options: TrajectoryOptions) -> ScoredBatch:
    """The scores of one batch; pure, so it can run anywhere."""
    log = IssueLog(batch.num_rows)
    canonical, where = _canonical(batch, plan, log)
    with without_collector():
        pair = read_pair(canonical, where, names=options.names_tools)
    mark_unreadable(pair, log)
    scores = score_numbers(pair, options)
    return ScoredBatch(batch, scores, log, reasons(pair, options, scores))


def mark_unreadable(pair: Pair, log: IssueLog) -> None:
    """Cells that a reader or a check could not read are absent in its rows; its log says which they were."""
    columns = {PREDICTED: [pair.predicted], REFERENCE: [pair.reference], None: [pair.predicted, pair.reference]}
    for row, (code, column, *_) in zip(log.rows, log.notes, strict=True):
        if RULES[code].severity is Severity.ERROR:
            for found in columns.get(column, ()):
                found.states[row] = UNREADABLE


def score_numbers(pair: Pair, options: TrajectoryOptions) -> dict[str, Numbers]:
    """The scores of numbered trajectories, by the name of the metric."""
    define = options.empty == "define"
    found = score_pair(pair, one_to_one=options.duplicates == "one_to_one", define_empty=define)
    return {
        name: found[metric] if isinstance(metric, str) else _uses(pair, metric.tool_name, define)
        for metric, name in zip(options.metrics, options.names, strict=True)
    }


def _canonical(batch: pa.RecordBatch, plan: Plan, log: IssueLog) -> tuple[pa.RecordBatch, IssueLog]:
    """The batch with the canonical trajectory columns, and where to log what is wrong with them (what the check has
    said already is said once)."""
    format = find_format(plan.format)
    read = batch if _is_ready(batch) else format.read(batch)
    if _is_ready(read):
        for row, problems in reading_problems(read).items():
            for problem in problems:
                log.add_finding(row, problem)
        return read, log
    checked = check_batch(batch, replace(plan, columns=True))
    origins = format.origins
    for row, notes in enumerate(verdict(checked, "issues").to_pylist()):
        for note in notes or ():
            column = column_at(note["path"] or note["column"] or "", origins) or note["column"]
            log.rows.append(row)
            log.notes.append((note["code"], column, note["path"], note["message"], note["hint"]))
    return rows_of(checked).select([PREDICTED, REFERENCE]), IssueLog(batch.num_rows)


def _is_ready(batch: pa.RecordBatch) -> bool:
    """Whether both trajectories stand in columns of ours, and no trace could say more."""
    return {PREDICTED, REFERENCE} <= set(batch.schema.names) and "trace" not in batch.schema.names


def _uses(pair: Pair, tool: str, define_empty: bool) -> Numbers:
    """Whether each predicted trajectory calls the tool; NaN where there is none."""
    predicted = pair.predicted
    is_tool = np.array([*(name == tool for name in pair.names), False])[pair.tools[predicted.ids]]
    before = np.cumsum(np.append(0, is_tool))
    used = before[predicted.starts + predicted.lengths] > before[predicted.starts]
    given = (predicted.states == GIVEN) & ((predicted.lengths > 0) | define_empty)
    return np.where(given, used, np.nan)


def reasons(
    pair: Pair, options: TrajectoryOptions, scores: dict[str, Numbers], failed: Numbers | None = None
) -> Counter[tuple[str, str]]:
    """For each metric and reason the number of rows that have no score for it; the first reason of a row counts. On the
    rows `failed` an agent that was run did so."""
    columns = {PREDICTED: pair.predicted, REFERENCE: pair.reference}
    counted: Counter[tuple[str, str]] = Counter()
    for metric, name in zip(options.metrics, options.names, strict=True):
        left = np.isnan(scores[name])
        if failed is not None:
            counted[name, FAILED_CALL] += int((left & failed).sum())
            left &= ~failed
        if not left.any():
            continue
        for column in (PREDICTED, REFERENCE) if isinstance(metric, str) else (PREDICTED,):
            found = columns[column]
            for words, rows in (
                ("the row lacks {}", found.states == ABSENT),
                ("{} cannot be read", found.states == UNREADABLE),
                ("{} is empty", found.lengths == 0),
            ):
                counted[name, words.format(column)] += int((left & rows).sum())
                left &= ~rows
    return +counted
