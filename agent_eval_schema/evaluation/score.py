"""Scores of data that has its predictions already, streamed.

score_trajectories, EvalTask ──▶ score_rows ──score_source, or input_parts and measure──▶ ScoredPart ──▶ Scoring
                 an agent's answers (task.py) ────────────────────────────measure──────────▶            ──▶ EvalResult

Trajectory metrics alone take whole batches, without anything per row, and of a file they are computed again for its
table. The scores of others are kept, as a metric may be slow or have a price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.evaluation.columns import RUN_COLUMNS, score_column
from agent_eval_schema.evaluation.custom import CustomMetric, measure_custom
from agent_eval_schema.evaluation.findings import Findings
from agent_eval_schema.evaluation.inputs import EvalInputs, columns_read, input_parts, of_turns, whole_frame
from agent_eval_schema.evaluation.judges import PointwiseMetric, measure_pointwise
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.row_metrics import ROW_METRICS, measure_row_metric
from agent_eval_schema.evaluation.score_stats import ScoreStats
from agent_eval_schema.evaluation.table import Measured, Table
from agent_eval_schema.evaluation.task_metrics import TaskMetric, metric_name
from agent_eval_schema.evaluation.trajectories import (
    ScoredPart,
    TrajectoryMetric,
    TrajectoryOptions,
    TrajectorySingleToolUse,
    score_calls,
    score_source,
)
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.metrics.batch.numbers import Numbers
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, Duplicates, Empty
from agent_eval_schema.runtime.progress import ProgressDisplay, notebook, progress


def score_trajectories(
    data: Any,
    metrics: Sequence[TrajectoryMetric] = tuple(TRAJECTORY_METRICS),
    *,
    tool_name: str | None = None,
    duplicates: Duplicates = "membership",
    empty: Empty = "nan",
    format: str = "auto",
) -> EvalResult:
    """Score what an agent called against what it should have called.

    Parameters
    ----------
    data
        Anything that `validate_eval_set` takes, a remote file (`gs://`, `s3://`, …) or a BigQuery table (`bq://`), with
        `predicted_trajectory` and `reference_trajectory`: lists of `{"tool_name", "tool_input"}`, as values or as JSON
        text. What only a trace says is taken from it. Of a file memory does not grow with the number of rows.
    metrics
        Names of `TRAJECTORY_METRICS`, by default all five, and `TrajectorySingleToolUse(tool_name=...)`.
    tool_name
        Adds trajectory_single_tool_use of this tool.
    duplicates
        How precision and recall count a call that is repeated: `"membership"`, each time that it occurs at all in the
        other trajectory; `"one_to_one"`, once for each time that it occurs there.
    empty
        The score of an empty trajectory: `"nan"`, none, as the service refuses such rows; `"define"`, by definition.

    Returns
    -------
    EvalResult
        Its `options` say what was used; `issues` and `unscored` why rows have no score.

    Raises
    ------
    EvalSetError
        No such file, metric or option. Never for what a row holds.
    """
    return score_dataset(data, metrics, tool_name, duplicates, empty, format, notebook())


def score_dataset(
    data: Any,
    metrics: Sequence[TrajectoryMetric],
    tool_name: str | None,
    duplicates: Duplicates,
    empty: Empty,
    format: str,
    screen: ProgressDisplay | None,
) -> EvalResult:
    """`score_trajectories` with its progress on a screen."""
    for metric in metrics:
        if metric in ROW_METRICS:
            raise EvalSetError(f"{metric} is no trajectory metric: EvalTask(data, [{metric!r}]).evaluate() measures it")
    chosen = [m for m in metrics if m != SINGLE_TOOL_USE or tool_name is None]
    if tool_name is not None:
        chosen.append(TrajectorySingleToolUse(tool_name))
    options = TrajectoryOptions(tuple(chosen), duplicates, empty)
    return score_rows(open_source(data), options.metrics, options, format, screen)


def score_rows(
    data: Source,
    metrics: Sequence[TaskMetric],
    options: TrajectoryOptions,
    format: str,
    screen: ProgressDisplay | None,
    max_workers: int = 1,
) -> EvalResult:
    """The scores of a source by any metrics, `options` by those that compare trajectories."""
    source, format, left_out = of_turns(data, format)
    alone = len(options.metrics) == len(metrics)

    def parts() -> Iterator[ScoredPart]:
        if alone:
            return score_source(source, format, options)
        inputs = input_parts(source, format, columns_read(metrics), trajectories=bool(options.metrics))
        return (measure(given, metrics, options, max_workers) for given in inputs)

    names = tuple(map(metric_name, metrics))
    scoring = Scoring(source, names, options, left_out, again=parts if alone and source.name is not None else None)
    with progress(source.read_share, screen) as so_far:
        for part in parts():
            so_far.add(scoring.add(part))
    return scoring.result()


class Scoring:
    """The scores of the parts of a source, as they come. They are kept, unless the parts can be had `again`."""

    def __init__(
        self,
        source: Source,
        metrics: tuple[str, ...],
        options: TrajectoryOptions,
        left_out: Iterable[Issue],
        *,
        ran: bool = False,
        again: Callable[[], Iterator[ScoredPart]] | None = None,
    ) -> None:
        self._source, self._metrics, self._options, self._again = source, metrics, options, again
        self._stats = {name: ScoreStats() for name in (*((LATENCY, FAILURE) if ran else ()), *metrics)}
        self._findings, self._unscored = Findings(left_out), Counter[tuple[str, str]]()
        self._kept: list[dict[str, Numbers]] = []
        self._frame: pd.DataFrame | None = None
        self._rows = 0

    def add(self, part: ScoredPart) -> int:
        """Take in the next part; returns how many rows it has."""
        for name, stats in self._stats.items():
            stats.add(part.columns[score_column(name)].astype(np.float64, copy=False))
        self._findings.add(part.log, self._rows)
        self._unscored.update(part.unscored)
        self._rows += part.log.size
        self._frame = part.frame
        if self._again is None:
            self._kept.append(part.columns)
        return part.log.size

    def result(self) -> EvalResult:
        """The result of all parts."""
        return EvalResult(
            metrics=self._metrics,
            tallies=self._stats,
            row_count=self._rows,
            parts=self._table,
            options=self._options.reported,
            unscored=self._unscored,
            findings=self._findings,
            name=self._source.name,
        )

    def _table(self) -> Iterator[pd.DataFrame]:
        """The rows with their scores, in parts, numbered through all of them."""
        names = list(dict.fromkeys(name for columns in self._kept for name in columns))
        start = 0
        for frame, columns in self._rows_and_columns():
            whole = _beside(frame, columns, names or list(columns))
            whole.index = pd.RangeIndex(start, start + len(whole))
            start += len(whole)
            yield whole

    def _rows_and_columns(self) -> Iterator[tuple[pd.DataFrame, dict[str, Numbers]]]:
        if self._source.name is None:  # one frame, of whatever kind the data is
            frame = whole_frame(self._source, self._rows) if self._frame is None else self._frame
            kept = self._kept or [{score_column(name): np.empty(0) for name in self._stats}]
            yield frame, {name: np.concatenate([columns[name] for columns in kept]) for name in kept[0]}
        elif self._again is not None:
            yield from ((frame_of([part.batch]), part.columns) for part in self._again() if part.batch is not None)
        else:
            frames = (frame_of([batch]) for batch in self._source.batches())
            yield from zip(frames, self._kept, strict=True)


def _beside(frame: pd.DataFrame, columns: Mapping[str, Numbers], names: Iterable[str]) -> pd.DataFrame:
    """The rows with these columns; one that there is not is None. What an agent did takes the place of what was there,
    columns keep their types."""
    none = np.full(len(frame), None)
    found = {name: columns.get(name, none) for name in names}
    kept = frame.drop(columns=[name for name in RUN_COLUMNS if name in found and name in frame.columns])
    return kept.assign(**{name: pd.Series(v, kept.index, dtype=v.dtype) for name, v in found.items()})


# ---------------------------------------------------------------------------------------------------------------------
# metrics of any kind
def measure(
    given: EvalInputs,
    metrics: Sequence[TaskMetric],
    options: TrajectoryOptions,
    max_workers: int,
    ran: pd.DataFrame | None = None,
) -> ScoredPart:
    """The columns that metrics give for some rows, `<metric>/score` as numbers. `ran` has the columns that an agent
    has left in their frame, which come first: of a file they cannot be read again."""
    columns = {} if ran is None else {name: ran[name].to_numpy() for name in RUN_COLUMNS}
    failed = np.zeros(len(given.frame), bool) if ran is None else columns[FAILURE] > 0
    table = Table(given.frame, given.values, frozenset(np.flatnonzero(failed).tolist()))
    # What is wrong with cells was reported by the validation; what an agent returned is read already.
    unread = IssueLog(table.size)
    scores, why = score_calls(given.trajectories, options, given.log, unread, failed) if options.metrics else ({}, {})
    unscored = Counter[tuple[str, str]]()
    for metric in metrics:
        name = metric_name(metric)
        if name in scores:
            columns[score_column(name)] = scores[name]
            unscored.update({key: rows for key, rows in why.items() if key[0] == name})
            continue
        measured = _measured(metric, table, max_workers)
        for part, values in measured.columns.items():
            columns[f"{name}/{part}"] = pd.Series(values, dtype="float64" if part == "score" else "object").to_numpy()
        unscored.update({(name, reason): rows for reason, rows in measured.unscored.items()})
    return ScoredPart(columns, given.log, unscored, frame=given.frame)


def _measured(metric: TaskMetric, table: Table, max_workers: int) -> Measured:
    if isinstance(metric, CustomMetric):
        return measure_custom(metric, table)
    if isinstance(metric, PointwiseMetric):
        return measure_pointwise(metric, table, max_workers)
    return measure_row_metric(ROW_METRICS[metric_name(metric)], table)
