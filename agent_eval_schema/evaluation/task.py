"""EvalTask: a data set and metrics; `evaluate` runs an agent on it, or scores what is there.

    dataset ──input_parts──▶ columns that metrics read ──run_parts──▶ what the agent answered ──▶ Scoring ──▶ EvalResult

Without a runnable the data is scored as it is (score.py). Either way a file streams by.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from agent_eval_schema.evaluation.columns import RUN_COLUMNS
from agent_eval_schema.evaluation.inputs import EvalInputs, columns_read, input_parts, of_turns
from agent_eval_schema.evaluation.journal import Finished, journal_at
from agent_eval_schema.evaluation.outputs import encode_plain
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.run import run_parts
from agent_eval_schema.evaluation.runnables import calling
from agent_eval_schema.evaluation.score import Scoring, measure, score_rows
from agent_eval_schema.evaluation.table import OUTPUTS
from agent_eval_schema.evaluation.task_metrics import TaskMetric, metric_name, require_metrics, trajectory_metrics
from agent_eval_schema.evaluation.trajectories import TrajectoryOptions
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.issues import EvalSetError, Issue
from agent_eval_schema.metrics.batch.columns import PREDICTED
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.trajectory import Duplicates, Empty
from agent_eval_schema.runtime.progress import notebook, progress


class EvalTask:
    """A data set, and what is to be measured on it.

    Parameters
    ----------
    dataset
        A pandas frame, an Arrow table, a list of dicts, a path (JSONL, JSON, CSV, Parquet), the URL of a file (`gs://`,
        `s3://`, `abfss://`, with the driver of fsspec installed) or of a BigQuery table (`bq://project.dataset.table`),
        in any form that `validate_eval_set` knows; files of CES are their turns. A file streams by: kept are the scores
        and what an agent did, and it is read again for `metrics_table`.
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
        metrics: Iterable[TaskMetric],
        *,
        duplicates: Duplicates = "membership",
        empty: Empty = "nan",
        format: str = "auto",
    ) -> None:
        self.metrics = require_metrics(metrics)
        self._options = TrajectoryOptions(trajectory_metrics(self.metrics), duplicates, empty)
        self._source = open_source(dataset)
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
            A file that keeps finished rows: run again with it, and only the others are called. It is known by its
            prompts, as what an agent does depends on nothing else of the data: with other references or metrics it goes
            on. That the agent is another one nobody can tell; that needs a journal of its own.
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
        return score_rows(self._source, self.metrics, self._options, self._format, notebook(), max_workers)

    def _run(
        self, call: Callable[[Any], Any], max_workers: int, timeout: float | None, journal: str | None
    ) -> EvalResult:
        source, format, left_out = of_turns(self._source, self._format)

        def parts(reads: Collection[str]) -> Iterator[EvalInputs]:
            return input_parts(source, format, reads, ran=True, trajectories=bool(self._options.metrics))

        def done(given: EvalInputs, answers: list[Finished]) -> None:
            ran = _take_answers(given, answers)
            scoring.add(measure(given, self.metrics, self._options, max_workers, ran))

        names = tuple(map(metric_name, self.metrics))
        scoring = Scoring(source, names, self._options, left_out, ran=True)
        prompts = (prompt for given in parts({"prompt"}) for prompt in given.values["prompt"])
        with (
            journal_at(journal, _required(prompts, left_out)) as kept,
            progress(source.read_share, notebook()) as so_far,
        ):
            reads = {"prompt", *columns_read(self.metrics)}
            asked = run_parts(call, parts(reads), kept, done, so_far, max_workers=max_workers, timeout=timeout)
        if not asked:
            raise _nothing_to_ask(left_out)
        return scoring.result()


def _required(prompts: Iterable[Any], left_out: list[Issue]) -> Iterator[Any]:
    """The prompts. Raises EvalSetError if there was none, before a journal is made of them."""
    found = False
    for prompt in prompts:
        found |= prompt is not None
        yield prompt
    if not found:
        raise _nothing_to_ask(left_out)


def _nothing_to_ask(left_out: list[Issue]) -> EvalSetError:
    why = f"; {len(left_out)} invalid evaluations were left out: `validate` says why" if left_out else ""
    return EvalSetError(f"there is nothing to run the agent on: the data has no prompt and no request{why}")


def _take_answers(given: EvalInputs, answers: list[Finished]) -> pd.DataFrame:
    """Put what the agent did into the rows, in the place of what the data had; these columns by themselves."""
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
    return given.frame[[*RUN_COLUMNS]]
