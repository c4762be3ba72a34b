"""EvalTask: a data set and metrics; `evaluate` runs an agent on it, or scores what is there.

    dataset ──given_parts──▶ columns that metrics read ─┐
    runnable ──run_all──▶ what it answered ────────────────┴──▶ measure ──▶ EvalResult

Without a runnable the data is scored as it streams by (score.py).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.engines.remote import open_dataset
from agent_eval_schema.evaluation.findings import Findings
from agent_eval_schema.evaluation.given import Given, columns_read, given_parts, of_turns
from agent_eval_schema.evaluation.journal import Finished, Journal, journal_at
from agent_eval_schema.evaluation.metrics import OUTPUTS, Metric, name_of, require_metrics, trajectory_metrics
from agent_eval_schema.evaluation.outputs import encode_plain, read_output
from agent_eval_schema.evaluation.result import FAILURE, LATENCY, RUN_COLUMNS, EvalResult
from agent_eval_schema.evaluation.runnables import calling
from agent_eval_schema.evaluation.runner import Outcome, run_all
from agent_eval_schema.evaluation.score import beside, measure, measure_rows, score_rows
from agent_eval_schema.evaluation.tally import Tally
from agent_eval_schema.evaluation.trajectories import TrajectoryOptions
from agent_eval_schema.frames import open_source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.trajectory import Duplicates, Empty
from agent_eval_schema.metrics.trajectory_columns import PREDICTED
from agent_eval_schema.progress import Screen, notebook, progress


class EvalTask:
    """A data set, and what is to be measured on it.

    Parameters
    ----------
    dataset
        A pandas frame, an Arrow table, a list of dicts, a path (JSONL, JSON, CSV, Parquet), the URL of a file (`gs://`,
        `s3://`, `abfss://`, with the driver of fsspec installed) or of a BigQuery table (`bq://project.dataset.table`),
        in any form that `validate_eval_set` knows; files of CES are their turns. A file is read into memory to run an
        agent on it; scored without one, it streams by, and only its scores are kept.
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
            runnable (or its `.ainvoke`), an mlflow pyfunc model, ChatAgent or ResponsesAgent. It returns a text,
            `{"response", "predicted_trajectory"}`, LangChain's `intermediate_steps` or messages, or a chat object; a
            trajectory that it does not return is taken from the mlflow trace of the call, if there is one. Its outputs
            take the place of those in the data.
        max_workers
            Calls at a time, of the agent and of a judge.
        timeout
            Seconds that a call may take. A coroutine is cancelled, a thread is left behind; the row fails.
        journal
            A file that keeps finished rows: run again with it, and only the others are called.
        make_input
            What the runnable is called with, made of the prompt, such as `lambda prompt: {"question": prompt}`; by
            default by its own schema.

        Returns
        -------
        EvalResult
            A row that raised, hung, or returned nothing that can be read has failure 1 and says why in `error`.

        Raises
        ------
        EvalSetError
            There is no prompt, the runnable is none or takes nobody knows what, the journal belongs to other prompts, a
            package is missing.
        """
        if max_workers < 1 or (timeout is not None and timeout <= 0):
            raise EvalSetError(f"expected workers and seconds above 0, got {max_workers} and {timeout}")
        if runnable is not None:
            call = calling(runnable, make_input)
            return self._run(call, max_workers, timeout, None if journal is None else os.fspath(journal))
        if journal is not None or make_input is not None:
            raise EvalSetError("a journal and make_input are for a runnable, and there is none")
        if len(self._options.metrics) == len(self.metrics):
            return score_rows(self._source, self._options, self._format, notebook())
        return measure_rows(self._source, self.metrics, self._options, self._format, max_workers, notebook())

    def _run(
        self, call: Callable[[Any], Any], max_workers: int, timeout: float | None, journal: str | None
    ) -> EvalResult:
        source, format, left_out = of_turns(self._source, self._format)
        reads = {"prompt", *columns_read(self.metrics)}
        [given] = given_parts(source, format, reads, ran=True, trajectories=bool(self._options.metrics))
        prompts = given.values["prompt"]
        if all(prompt is None for prompt in prompts):
            why = f"; {len(left_out)} invalid evaluations were left out: `validate` says why" if left_out else ""
            raise EvalSetError(f"there is nothing to run the agent on: the data has no prompt and no request{why}")
        with journal_at(journal, prompts) as kept:
            answers = _answers(call, prompts, kept, max_workers, timeout, notebook())
        tallies = _take_answers(given, answers)
        unscored = Counter[tuple[str, str]]()
        scores = measure(self.metrics, self._options, given, max_workers, unscored, _failed(answers))
        tallies |= {name_of(metric): Tally(scores[f"{name_of(metric)}/score"]) for metric in self.metrics}
        table = beside(given.frame, scores, map(str, scores.columns))
        findings = Findings(left_out)
        findings.add(given.log, 0)
        return EvalResult(
            metrics=tuple(map(name_of, self.metrics)),
            tallies=tallies,
            row_count=len(table),
            parts=lambda: iter([table]),
            options=self._options.said,
            unscored=unscored,
            findings=findings,
            name=self._source.name,
        )


# ---------------------------------------------------------------------------------------------------------------------
# the run


def _answers(
    call: Callable[[Any], Any],
    prompts: list[Any],
    journal: Journal,
    max_workers: int,
    timeout: float | None,
    screen: Screen | None,
) -> list[Finished]:
    """What became of each row, in order: of those that the journal has, and of those that are called now."""
    done = dict(journal.finished)
    with progress(open_source([{"row": i} for i in range(len(prompts))]), screen) as so_far:
        so_far.add(len(done))
        for finished in _called(call, prompts, done, max_workers, timeout):
            journal.add(finished)
            done[finished.row] = finished
            so_far.add(1)
    ordered = [done[row] for row in range(len(prompts))]
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


def _failed(answers: list[Finished]) -> frozenset[int]:
    return frozenset(row for row, answer in enumerate(answers) if answer.failed)


def _take_answers(given: Given, answers: list[Finished]) -> dict[str, Tally]:
    """Put what the agent did into the rows, in the place of what the data had; the tallies of the run."""
    columns: dict[str, list[Any]] = {
        "response": [a.response for a in answers],
        LATENCY: [a.seconds for a in answers],
        FAILURE: [int(a.failed) for a in answers],
        PREDICTED: [a.trajectory for a in answers],
        "error": [a.error for a in answers],
    }
    given.frame = given.frame.drop(columns=[c for c in RUN_COLUMNS if c in given.frame.columns])
    for name, values in columns.items():
        kind = {LATENCY: "float64", FAILURE: "int64"}.get(name, "object")
        given.frame[name] = pd.Series(values, dtype=kind, index=given.frame.index)
    given.values.update({name: columns[name] for name in OUTPUTS if name in given.values})
    calls = pa.array([None if v is None else encode_plain(v) for v in columns[PREDICTED]], pa.string())
    given.trajectories = given.trajectories.set_column(0, PREDICTED, calls)
    return {LATENCY: Tally(np.nan if s is None else s for s in columns[LATENCY]), FAILURE: Tally(columns[FAILURE])}
