"""EvalTask: a data set and metrics; `evaluate` runs an agent on it, or scores what is there.

    dataset ──check──▶ columns that metrics read ─┐
    runnable ──run_rows──▶ what it answered ──────┴──▶ Table ──each metric──▶ EvalResult

What columns are called where: `prompt` or the canonical request; `reference` or expected_response; response,
predicted_trajectory, reference_trajectory, retrieved_context, expected_retrieved_context as they are.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.check import check_source
from agent_eval_schema.engines.remote import open_dataset
from agent_eval_schema.evaluation.findings import Findings
from agent_eval_schema.evaluation.journal import Finished, Journal, journal_at
from agent_eval_schema.evaluation.metrics import (
    ROW_METRICS,
    CustomMetric,
    Measured,
    Metric,
    PointwiseMetric,
    Table,
    measure_custom,
    measure_row_metric,
    name_of,
    require_metrics,
    trajectory_metrics,
)
from agent_eval_schema.evaluation.outputs import encode_plain, read_output
from agent_eval_schema.evaluation.result import FAILURE, LATENCY, RUN_COLUMNS, EvalResult
from agent_eval_schema.evaluation.runnables import calling
from agent_eval_schema.evaluation.runner import Outcome, run_all
from agent_eval_schema.evaluation.score import whole_frame
from agent_eval_schema.evaluation.tally import Tally
from agent_eval_schema.evaluation.trajectories import TrajectoryOptions, mark_unreadable, reasons, score_numbers
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.frames import Source, is_absent, open_source
from agent_eval_schema.issues import EvalSetError, IssueLog
from agent_eval_schema.metrics.trajectory import Duplicates, Empty
from agent_eval_schema.metrics.trajectory_columns import PREDICTED, REFERENCE, read_pair
from agent_eval_schema.progress import Screen, notebook, progress
from agent_eval_schema.report import Report

READ = (PREDICTED, REFERENCE, "response", "retrieved_context", "expected_retrieved_context")
"""The canonical columns that metrics read under their own names."""

_CHECKED = ("AE0", "AE3", "AE4", "AE5", "AE6")
"""Whether a request is there and well formed is not asked here: a prompt may stand in its place."""


class EvalTask:
    """A data set, and what is to be measured on it.

    Parameters
    ----------
    dataset
        A pandas frame, an Arrow table, a list of dicts, a path (JSONL, JSON, CSV, Parquet), the URL of a file (`gs://`,
        `s3://`, `abfss://`, with the driver of fsspec installed) or of a BigQuery table (`bq://project.dataset.table`),
        in any form that `validate_eval_set` knows. It is read into memory.
    metrics
        Names (`"trajectory_exact_match"`, `"rouge_l_sum"`, `"document_recall"` …) and metrics with options
        (`TrajectorySingleToolUse`, `CustomMetric`, `PointwiseMetric`).
    duplicates, empty
        How trajectories are compared: see `score_trajectories`.
    format
        The form of the data; `"auto"` looks at its columns.

    Raises
    ------
    EvalSetError
        There is no such file or metric, or two metrics have one name.
    """

    def __init__(
        self,
        dataset: Any,
        metrics: Iterable[Metric],
        *,
        duplicates: Duplicates = "membership",
        empty: Empty = "nan",
        format: str = "auto",
    ) -> None:
        self.metrics = require_metrics(metrics)
        self._options = TrajectoryOptions(trajectory_metrics(self.metrics), duplicates, empty)
        self._source = open_dataset(dataset)
        self._format = format

    def evaluate(
        self,
        runnable: Any = None,
        *,
        max_workers: int = 4,
        timeout: float | None = None,
        journal: str | os.PathLike[str] | None = None,
        make_input: Callable[[Any], Any] | None = None,
    ) -> EvalResult:
        """Run the agent on every prompt, if one is given, and measure.

        Parameters
        ----------
        runnable
            A function or coroutine function of the prompt, an object with `.query(input=)`, a LangChain or LangGraph
            runnable, an mlflow pyfunc model. It returns a text, `{"response", "predicted_trajectory"}`, LangChain's
            `intermediate_steps` or messages, or a chat object; a trajectory that it does not return is taken from the
            mlflow trace of the call, if there is one. Its outputs take the place of those in the data.
        max_workers
            Calls at a time, of the agent and of a judge.
        timeout
            Seconds that a call may take. A coroutine is cancelled, a thread is left behind; the row fails.
        journal
            A file that keeps finished rows: run again with it, and only the others are called.
        make_input
            What the runnable is called with, made of the prompt; by default by its own schema.

        Returns
        -------
        EvalResult
            A row that raised, hung, or returned nothing that can be read has failure 1 and says why in `error`.

        Raises
        ------
        EvalSetError
            There is no prompt, the runnable is none, the journal belongs to other prompts, a package is missing.
        """
        if max_workers < 1 or (timeout is not None and timeout <= 0):
            raise EvalSetError(f"expected workers and seconds above 0, got {max_workers} and {timeout}")
        call = calling(runnable, make_input) if runnable is not None else None
        prepared = _prepare(self._source, self._format, ran=call is not None)
        if call is not None:
            path = None if journal is None else os.fspath(journal)
            with journal_at(path, prepared.prompts) as kept:
                answers = _run(call, prepared, kept, max_workers, timeout, notebook())
            _take_answers(prepared, answers)
        elif journal is not None or make_input is not None:
            raise EvalSetError("a journal and make_input are for a runnable, and there is none")
        return _measure(self.metrics, self._options, prepared, max_workers)


class _Prepared(Struct):
    """The data set, read: the frame that the result begins with, what metrics read, the prompts, what was found wrong
    with cells, and the tallies of a run."""

    frame: pd.DataFrame
    values: dict[str, list[Any]]
    prompts: list[Any]
    findings: Findings
    log: IssueLog
    name: str | None
    tallies: dict[str, Tally] = {}


def _prepare(source: Source, format: str, *, ran: bool) -> _Prepared:
    report = check_source(source, format=format, outputs="generated" if ran else "provided", select=_CHECKED, jobs=1)
    rows, frame = report.rows, whole_frame(source, report.row_count)
    values = {name: _cells(rows[name]) for name in READ}
    texts = {name: _cells(frame[name]) for name in ("prompt", "reference") if name in frame.columns}
    values["prompt"] = texts.get("prompt") or [_prompt(request) for request in _cells(rows["request"])]
    values["reference"] = texts.get("reference") or _cells(rows["expected_response"])
    if ran and all(prompt is None for prompt in values["prompt"]):
        raise EvalSetError("there is nothing to run the agent on: the data has no prompt and no request")
    findings, log = _findings(report, without={PREDICTED} if ran else set())
    return _Prepared(frame, values, values["prompt"], findings, log, report.name)


def _cells(column: pd.Series[Any]) -> list[Any]:
    return [None if is_absent(v) else v for v in column.tolist()]


def _prompt(request: Any) -> Any:
    """A request as what an agent is asked: the text of a lone user message, else all the messages."""
    if request is None:
        return None
    messages = request.get("messages") or []
    alone = messages[0] if len(messages) == 1 else {}
    return alone["content"] if alone.get("role") == "user" and isinstance(alone.get("content"), str) else request


def _findings(report: Report, without: set[str]) -> tuple[Findings, IssueLog]:
    """What is wrong with the cells that metrics read, and the same as the log of one batch."""
    findings, log = Findings(), IssueLog(report.row_count)
    ours = {theirs.partition(".")[0]: name for name, theirs in find_format(report.format).origins.items()}
    for issue in report.iter_issues():
        column = ours.get(issue.column or "", issue.column)
        if issue.row is not None and column not in without:
            log.rows.append(issue.row)
            log.notes.append((issue.code, column, issue.path, issue.message, issue.hint))
    findings.add(log, 0)
    return findings, log


# ---------------------------------------------------------------------------------------------------------------------
# the run


def _run(
    call: Callable[[Any], Any],
    prepared: _Prepared,
    journal: Journal,
    max_workers: int,
    timeout: float | None,
    screen: Screen | None,
) -> list[Finished]:
    """What became of each row, in order: of those that the journal has, and of those that are called now."""
    done = dict(journal.finished)
    with progress(open_source([{"row": i} for i in range(len(prepared.prompts))]), screen) as so_far:
        so_far.add(len(done))
        for finished in _called(call, prepared.prompts, done, max_workers, timeout):
            journal.add(finished)
            done[finished.row] = finished
            so_far.add(1)
    ordered = [done[row] for row in range(len(prepared.prompts))]
    _fill_from_traces(ordered)
    return ordered


def _called(
    call: Callable[[Any], Any], prompts: list[Any], done: dict[int, Finished], max_workers: int, timeout: float | None
) -> Iterator[Finished]:
    left = [(row, prompt) for row, prompt in enumerate(prompts) if row not in done]
    for row, prompt in left:
        if prompt is None:
            yield Finished(row, failed=True, error="the row has no prompt")
    asked = [(row, prompt) for row, prompt in left if prompt is not None]
    for outcome in run_all(call, asked, max_workers=max_workers, timeout=timeout):
        yield _finished(outcome)


def _finished(outcome: Outcome) -> Finished:
    if outcome.error is not None:
        return Finished(outcome.row, failed=True, error=outcome.error, trace_id=outcome.trace_id)
    answer = read_output(outcome.value)
    seconds = None if answer.failed else outcome.seconds
    found = Finished(
        outcome.row, answer.response, answer.trajectory, seconds, answer.failed, answer.error, outcome.trace_id
    )
    found.response = None if found.response is None else found.response.encode("utf-8", "replace").decode()
    return found


def _fill_from_traces(rows: list[Finished]) -> None:
    """The calls that an agent did not return, from the traces that it left."""
    lacking = [row for row in rows if row.trace_id and row.trajectory is None and not row.failed and not row.error]
    if lacking:
        from agent_eval_schema.integrations.call_traces import trajectories_of

        for row, calls in zip(lacking, trajectories_of([str(r.trace_id) for r in lacking]), strict=True):
            row.trajectory = calls


def _take_answers(prepared: _Prepared, answers: list[Finished]) -> None:
    """Put what the agent did into the table, in the place of what the data had."""
    columns: dict[str, list[Any]] = {
        "response": [a.response for a in answers],
        LATENCY: [a.seconds for a in answers],
        FAILURE: [int(a.failed) for a in answers],
        PREDICTED: [a.trajectory for a in answers],
        "error": [a.error for a in answers],
    }
    prepared.frame = prepared.frame.drop(columns=[c for c in RUN_COLUMNS if c in prepared.frame.columns])
    for name, values in columns.items():
        kind = {LATENCY: "float64", FAILURE: "int64"}.get(name, "object")
        prepared.frame[name] = pd.Series(values, dtype=kind, index=prepared.frame.index)
    prepared.values["response"], prepared.values[PREDICTED] = columns["response"], columns[PREDICTED]
    prepared.tallies = {
        LATENCY: Tally(np.nan if s is None else s for s in columns[LATENCY]),
        FAILURE: Tally(columns[FAILURE]),
    }


# ---------------------------------------------------------------------------------------------------------------------
# the measuring


def _measure(
    metrics: tuple[Metric, ...], options: TrajectoryOptions, prepared: _Prepared, max_workers: int
) -> EvalResult:
    frame = prepared.frame
    by_numbers = _measure_trajectories(options, prepared) if options.metrics else {}
    tallies, unscored = dict(prepared.tallies), Counter[tuple[str, str]]()
    scores: dict[str, pd.Series[Any]] = {}
    for metric in metrics:
        name = name_of(metric)
        measured = by_numbers.get(name) or _measured(metric, Table(frame, prepared.values), max_workers)
        for part, column in measured.columns.items():
            scores[f"{name}/{part}"] = pd.Series(
                column, dtype="float64" if part == "score" else "object", index=frame.index
            )
        tallies[name] = Tally(measured.columns["score"])
        unscored.update({(name, why): rows for why, rows in measured.unscored.items()})
    table = frame.assign(**scores)
    return EvalResult(
        metrics=tuple(map(name_of, metrics)),
        tallies=tallies,
        row_count=len(frame),
        parts=lambda: iter([table]),
        options={"duplicates": options.duplicates, "empty": options.empty},
        unscored=unscored,
        findings=prepared.findings,
        name=prepared.name,
    )


def _measured(metric: Metric, table: Table, max_workers: int) -> Measured:
    if isinstance(metric, CustomMetric):
        return measure_custom(metric, table)
    if isinstance(metric, PointwiseMetric):
        from agent_eval_schema.integrations.pointwise import measure_pointwise

        return measure_pointwise(metric, table, max_workers)
    return measure_row_metric(ROW_METRICS[name_of(metric)], table)


def _measure_trajectories(options: TrajectoryOptions, prepared: _Prepared) -> dict[str, Measured]:
    """All trajectory metrics at once; an agent's answers were read already, so only the data's cells may be bad."""
    columns = {
        name: pa.array([None if v is None else encode_plain(v) for v in prepared.values[name]], pa.string())
        for name in (PREDICTED, REFERENCE)
    }
    said = IssueLog(len(prepared.frame))
    pair = read_pair(pa.RecordBatch.from_pydict(columns), said, names=options.names_tools)
    mark_unreadable(pair, prepared.log)
    scores = score_numbers(pair, options)
    why = reasons(pair, options, scores)
    return {
        name: Measured({"score": scores[name].tolist()}, Counter({r: n for (m, r), n in why.items() if m == name}))
        for name in options.names
    }
