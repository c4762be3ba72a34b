"""`score_trajectories`: trajectory scores of data that has its predictions already, streamed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.engines.files import frame_of
from agent_eval_schema.engines.remote import open_dataset
from agent_eval_schema.evaluation.findings import Findings
from agent_eval_schema.evaluation.result import EvalResult, column_of
from agent_eval_schema.evaluation.tally import Tally
from agent_eval_schema.evaluation.trajectories import (
    SINGLE_TOOL_USE,
    ScoredBatch,
    TrajectoryMetric,
    TrajectoryOptions,
    TrajectorySingleToolUse,
    score_source,
)
from agent_eval_schema.frames import Source
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS, Duplicates, Empty
from agent_eval_schema.progress import Screen, notebook, progress


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
    chosen = [m for m in metrics if m != SINGLE_TOOL_USE or tool_name is None]
    if tool_name is not None:
        chosen.append(TrajectorySingleToolUse(tool_name))
    options = TrajectoryOptions(tuple(chosen), duplicates, empty)
    source = open_dataset(data)
    tallies = {name: Tally() for name in options.names}
    findings, unscored = Findings(), Counter[tuple[str, str]]()
    kept: list[dict[str, Any]] | None = None if source.name else []
    rows = 0
    with progress(source, screen) as so_far:
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
            yield from _parts(score_source(source, format, options))
            return
        scores = {n: np.concatenate([k[n] for k in kept]) if kept else np.empty(0) for n in options.names}
        yield _with_scores(whole_frame(source, rows), scores)

    return EvalResult(
        metrics=options.names,
        tallies=tallies,
        row_count=rows,
        parts=parts,
        options={"duplicates": duplicates, "empty": empty},
        unscored=unscored,
        findings=findings,
        name=source.name,
    )


def whole_frame(source: Source, rows: int) -> pd.DataFrame:
    """All rows of a source as a frame, with the cells in which they came."""
    given = source.take(np.ones(rows, bool))
    if isinstance(given, pd.DataFrame):
        return given.reset_index(drop=True)
    if isinstance(given, pa.Table | pa.RecordBatch):
        return frame_of(given.to_batches() if isinstance(given, pa.Table) else [given])
    return frame_of(source.batches())


def _parts(batches: Iterable[ScoredBatch]) -> Iterator[pd.DataFrame]:
    start = 0
    for found in batches:
        frame = _with_scores(frame_of([found.batch]), found.scores)
        frame.index = pd.RangeIndex(start, start + len(frame))
        start += len(frame)
        yield frame


def _with_scores(frame: pd.DataFrame, scores: dict[str, np.ndarray[Any, Any]]) -> pd.DataFrame:
    return frame.assign(**{column_of(name): values for name, values in scores.items()})
