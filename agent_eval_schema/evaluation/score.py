"""Scores of data that has its predictions already, streamed.

score_trajectories, EvalTask with nothing but trajectory metrics ──▶ score_rows      whole batches at once
EvalTask with others too ──given_parts──▶ measure_rows                               metric by metric
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.evaluation.columns import RUN_COLUMNS, column_of
from agent_eval_schema.evaluation.custom import CustomMetric, measure_custom
from agent_eval_schema.evaluation.findings import Findings
from agent_eval_schema.evaluation.inputs import Given, columns_read, given_parts, of_turns, whole_frame
from agent_eval_schema.evaluation.judges import PointwiseMetric
from agent_eval_schema.evaluation.metrics import Metric, name_of
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.row_metrics import ROW_METRICS, measure_row_metric
from agent_eval_schema.evaluation.score_stats import ScoreStats
from agent_eval_schema.evaluation.table import Measured, Table
from agent_eval_schema.evaluation.trajectories import (
    TrajectoryMetric,
    TrajectoryOptions,
    TrajectorySingleToolUse,
    mark_unreadable,
    reasons,
    score_numbers,
    score_source,
)
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.metrics.batch.columns import read_pair
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.definitions import SINGLE_TOOL_USE
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, Duplicates, Empty
from agent_eval_schema.runtime.progress import Screen, notebook, progress


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
    screen: Screen | None,
) -> EvalResult:
    """`score_trajectories` with its progress on a screen."""
    for metric in metrics:
        if metric in ROW_METRICS:
            raise EvalSetError(f"{metric} is no trajectory metric: EvalTask(data, [{metric!r}]).evaluate() measures it")
    chosen = [m for m in metrics if m != SINGLE_TOOL_USE or tool_name is None]
    if tool_name is not None:
        chosen.append(TrajectorySingleToolUse(tool_name))
    options = TrajectoryOptions(tuple(chosen), duplicates, empty)
    return score_rows(open_source(data), options, format, screen)


def score_rows(data: Source, options: TrajectoryOptions, format: str, screen: Screen | None) -> EvalResult:
    """The trajectory scores of a source. Of a file nothing a row is kept: its table is read, and scored, again."""
    source, format, left_out = of_turns(data, format)
    tallies = {name: ScoreStats() for name in options.names}
    findings, unscored = Findings(left_out), Counter[tuple[str, str]]()
    kept: list[dict[str, Any]] | None = None if source.name else []
    rows = 0
    with progress(source.read_share, screen) as so_far:
        for found in score_source(source, format, options):
            for name, tally in tallies.items():
                tally.add(found.scores[name])
            findings.add(found.log, rows)
            unscored.update(found.unscored)
            rows += found.batch.num_rows
            so_far.add(found.batch.num_rows)
            if kept is not None:
                kept.append(found.scores)

    def parts() -> Iterator[pd.DataFrame]:
        if kept is None:
            scored = score_source(source, format, options)
            yield from _numbered(_with_scores(frame_of([part.batch]), part.scores) for part in scored)
            return
        scores = {n: np.concatenate([k[n] for k in kept]) if kept else np.empty(0) for n in options.names}
        yield _with_scores(whole_frame(source, rows), scores)

    return EvalResult(
        metrics=options.names,
        tallies=tallies,
        row_count=rows,
        parts=parts,
        options=options.said,
        unscored=unscored,
        findings=findings,
        name=source.name,
    )


def _with_scores(frame: pd.DataFrame, scores: dict[str, np.ndarray[Any, Any]]) -> pd.DataFrame:
    return frame.assign(**{column_of(name): values for name, values in scores.items()})


def _numbered(parts: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The parts of a table with the places of their rows as index."""
    start = 0
    for frame in parts:
        frame.index = pd.RangeIndex(start, start + len(frame))
        start += len(frame)
        yield frame


# ---------------------------------------------------------------------------------------------------------------------
# metrics of any kind
def measure_rows(
    data: Source,
    metrics: tuple[Metric, ...],
    options: TrajectoryOptions,
    format: str,
    max_workers: int,
    screen: Screen | None,
) -> EvalResult:
    """The scores of a source by any metrics, `options` by those that compare trajectories. Of a file the scores are
    kept, and what a metric gives beside them, as it may be slow or have a price; the rows are read again."""
    source, format, left_out = of_turns(data, format)
    scoring = Scoring(source, metrics, options, left_out, max_workers)
    with progress(source.read_share, screen) as so_far:
        for given in given_parts(source, format, columns_read(metrics), trajectories=bool(options.metrics)):
            so_far.add(scoring.add(given))
    return scoring.result()


class Scoring:
    """The scores of the parts of a source, as they come."""

    def __init__(
        self,
        source: Source,
        metrics: tuple[Metric, ...],
        options: TrajectoryOptions,
        left_out: Iterable[Issue],
        max_workers: int,
        *,
        ran: bool = False,
    ) -> None:
        self._source, self._metrics, self._options, self._max_workers = source, metrics, options, max_workers
        self._tallies = {name: ScoreStats() for name in ((LATENCY, FAILURE) if ran else ())}
        self._tallies |= {name_of(metric): ScoreStats() for metric in metrics}
        self._findings, self._unscored = Findings(left_out), Counter[tuple[str, str]]()
        self._kept: list[pd.DataFrame] = []
        self._table: pd.DataFrame | None = None
        self._rows = 0

    def add(self, given: Given, ran: pd.DataFrame | None = None) -> int:
        """Score the next part; returns how many rows it has. `ran` has the columns that an agent has left in its
        frame: they cannot be read again, so of a file they are kept beside the scores."""
        failed = frozenset[int]() if ran is None else frozenset(np.flatnonzero(ran[FAILURE]).tolist())
        scores = measure(self._metrics, self._options, given, self._max_workers, self._unscored, failed)
        numbers = {name: ran[name] for name in (LATENCY, FAILURE)} if ran is not None else {}
        numbers |= {name_of(metric): scores[f"{name_of(metric)}/score"] for metric in self._metrics}
        for name, values in numbers.items():
            self._tallies[name].add(values.to_numpy(np.float64))
        self._findings.add(given.log, self._rows)
        self._rows += len(scores)
        if self._source.name is None:
            self._table = given.frame
        elif ran is not None:
            scores = beside(ran.reset_index(drop=True), scores, scores.columns)
        self._kept.append(scores)
        return len(scores)

    def result(self) -> EvalResult:
        """What came out of all parts."""
        names = list(dict.fromkeys(name for scores in self._kept for name in scores.columns))
        ran = [name for name in RUN_COLUMNS if name in names]
        source, kept, table = self._source, self._kept, self._table

        def parts() -> Iterator[pd.DataFrame]:
            frames = [table] if table is not None else (frame_of([batch]) for batch in source.batches())
            yield from _numbered(
                beside(frame.drop(columns=[c for c in ran if c in frame.columns]), scores, names)
                for frame, scores in zip(frames, kept, strict=True)
            )

        return EvalResult(
            metrics=tuple(map(name_of, self._metrics)),
            tallies=self._tallies,
            row_count=self._rows,
            parts=parts,
            options=self._options.said,
            unscored=self._unscored,
            findings=self._findings,
            name=source.name,
        )


def beside(frame: pd.DataFrame, scores: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The rows with these columns of their scores; one that the scores lack is None. Columns keep their types."""
    none = pd.Series([None] * len(frame), frame.index, dtype="object")
    columns = {name: scores[name].set_axis(frame.index) if name in scores else none for name in names}
    return frame.assign(**columns)


def measure(
    metrics: tuple[Metric, ...],
    options: TrajectoryOptions,
    given: Given,
    max_workers: int,
    unscored: Counter[tuple[str, str]],
    failed: frozenset[int] = frozenset(),
) -> pd.DataFrame:
    """The columns that metrics give for some rows, `<metric>/score` as numbers; why rows have no score is added to
    `unscored`. On the rows `failed` an agent was run and failed."""
    table = Table(given.frame, given.values, failed)
    by_numbers = _measure_trajectories(options, given, failed) if options.metrics else {}
    columns: dict[str, pd.Series[Any]] = {}
    for metric in metrics:
        name = name_of(metric)
        measured = by_numbers.get(name) or _measured(metric, table, max_workers)
        for part, values in measured.columns.items():
            columns[f"{name}/{part}"] = pd.Series(values, dtype="float64" if part == "score" else "object")
        unscored.update({(name, why): rows for why, rows in measured.unscored.items()})
    return pd.DataFrame(columns, index=pd.RangeIndex(table.size))


def _measured(metric: Metric, table: Table, max_workers: int) -> Measured:
    if isinstance(metric, CustomMetric):
        return measure_custom(metric, table)
    if isinstance(metric, PointwiseMetric):
        from agent_eval_schema.evaluation.judges import measure_pointwise

        return measure_pointwise(metric, table, max_workers)
    return measure_row_metric(ROW_METRICS[name_of(metric)], table)


def _measure_trajectories(options: TrajectoryOptions, given: Given, failed: frozenset[int]) -> dict[str, Measured]:
    """All trajectory metrics at once. What is wrong with cells was said by the check, what an agent returned is read
    already."""
    pair = read_pair(given.trajectories, IssueLog(len(given.frame)), names=options.names_tools)
    mark_unreadable(pair, given.log)
    scores = score_numbers(pair, options)
    mask = np.isin(np.arange(len(given.frame)), list(failed))
    why = reasons(pair, options, scores, mask)
    return {
        name: Measured({"score": scores[name].tolist()}, Counter({r: n for (m, r), n in why.items() if m == name}))
        for name in options.names
    }
