"""EvalTask: a dataset and metrics; `evaluate` runs an agent on it, or scores the outputs of the data.

    dataset ──input_parts──▶ columns that metrics read ──run_parts──▶ what the agent answered ──▶ Scoring ──▶ EvalResult

Without a runnable the data is scored as it is (score.py). In both cases a file is streamed.

An agent is run part by part, and a line per finished row goes into a checkpoint file:

    parts ──▶ at most OPEN of them with rows that have no answer yet ──run_all──▶ done(part, answers), in order

Memory holds these parts only, however many rows there are: while a row of the oldest one is running, no third part is
read. A part is done when all its rows have an answer, possibly from the checkpoint file of an earlier run:

    {"journal":1,"rows":500,"prompts":"9f…"}                          the data of the run
    {"row":3,"response":"…","trajectory":[…],"seconds":0.4, …}        in the order in which the rows ended

A line is written as soon as its row is finished: an interruption loses the calls in flight, and at most half a line,
which is removed when the run is resumed.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Literal

import msgspec
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.runnables import agent_name, as_plain, calling, encode_plain, read_output
from agent_eval_schema.evaluation.runner import CallOutcome, run_all
from agent_eval_schema.evaluation.score import Scoring, columns_read, input_parts, measure, of_turns, score_rows
from agent_eval_schema.evaluation.table import OUTPUTS, RUN_COLUMNS, EvalInputs
from agent_eval_schema.evaluation.task_metrics import GivenMetric, require_metrics, trajectory_metrics
from agent_eval_schema.evaluation.trajectories import TrajectoryOptions
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.io.atomic import require_local_place, require_no_journal
from agent_eval_schema.io.locks import open_locked
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY
from agent_eval_schema.metrics.trajectory import Duplicates, Empty, Match
from agent_eval_schema.metrics.trajectory_columns import PREDICTED
from agent_eval_schema.runtime.progress import Progress, progress
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.guarded import decoded, decoded_or_none
from agent_eval_schema.text.jsontext import cleaned
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import Trace


class EvalTask:
    """An evaluation dataset and the metrics to compute on it.

    Parameters
    ----------
    dataset : EvalSetLike
        Any input of `validate_eval_set`, the URL of a file (`gs://`, `s3://`, `abfss://`; requires its fsspec driver)
        or a BigQuery table (`bq://project.dataset.table`). Rows of Google Customer Engagement Suite are their turns. A
        file is streamed; only scores and the agent's outputs stay in memory.
    metrics : iterable of MetricName, ToolUseMetric, CustomMetric or PointwiseMetric
        Names of metrics (`"trajectory_exact_match"`, `"rouge_l_sum"`, `"document_recall"`) and metrics with options.
    duplicates : {"membership", "one_to_one"}, default "membership"
        How precision and recall count repeated calls, as in `score_trajectories`.
    empty : {"define", "nan"}, default "define"
        The score of an empty trajectory, as in `score_trajectories`.
    match : {"call", "tool_name", "subset"}, default "call"
        When two tool calls are the same, as in `score_trajectories`.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Attributes
    ----------
    metrics : tuple
        The metrics, as they were given.

    Raises
    ------
    EvalSetError
        There is no such file or metric, or two metrics have the same name.

    See Also
    --------
    evaluate_eval_set : Evaluate with MLflow.
    score_trajectories : Compute trajectory metrics only.

    Examples
    --------
    >>> from agent_eval_schema import EvalTask
    >>> data = [{"prompt": "What is Delta Lake?", "response": "A table format", "reference": "A table format"}]
    >>> EvalTask(data, ["exact_match"]).evaluate().summary_metrics["exact_match/mean"]
    1.0
    """

    def __init__(
        self,
        dataset: EvalSetLike,
        metrics: Iterable[GivenMetric],
        *,
        duplicates: Duplicates = "membership",
        empty: Empty = "define",
        match: Match = "call",
        format: InputFormat = "auto",
        columns: ColumnNames = None,
    ) -> None:
        self.metrics = require_metrics(metrics)
        self._options = TrajectoryOptions(trajectory_metrics(self.metrics), duplicates, empty, match)
        self._source = open_source(dataset, "dataset", columns, format=format)

    def evaluate(
        self,
        runnable: Any = None,
        *,
        max_workers: int = 4,
        timeout: float | None = None,
        journal: str | os.PathLike[str] | None = None,
        make_input: Callable[[Any], Any] | Literal["text", "messages", "request"] | None = None,
    ) -> EvalResult:
        """Run an agent on every prompt, if one is given, and compute the metrics.

        Parameters
        ----------
        runnable : object or None, default None
            The agent: a function or coroutine function, an object with a method `query(input=...)`, a
            LangChain or LangGraph runnable, or an MLflow pyfunc model, ChatAgent or ResponsesAgent. It returns a
            string, `{"response": ..., "predicted_trajectory": ...}`, LangChain's `intermediate_steps` or messages, or a
            chat object. A missing trajectory is taken from the MLflow trace of the call. Its outputs replace those of
            the data. None scores the outputs of the data.
        max_workers : int, default 4
            The number of concurrent calls of the agent, and of a judge.
        timeout : float or None, default None
            The maximum duration of a call, in seconds; the row fails after it. A coroutine is canceled, a thread keeps
            running. None sets no limit.
        journal : str, os.PathLike or None, default None
            The path of a checkpoint file with the finished rows: an interrupted run that is started again with it calls
            the agent on the other rows only. It belongs to the prompts of the data; use a new file for another agent.
            None writes none.
        make_input : callable, {"text", "messages", "request"} or None, default None
            What the agent is called with: `"text"`, the text of the last user message; `"messages"`, the list of
            messages; `"request"`, the object with the messages; or a function from the prompt, such as
            `lambda prompt: {"question": prompt}`. None uses the input schema of the agent; a function gets the text,
            unless its first parameter is called `messages` or `request`.

        Returns
        -------
        EvalResult
            The scores and the columns of the run. If a call raises, times out or returns an unsupported value, only
            that row fails: its `failure` is 1 and its `error` is the reason.

        Raises
        ------
        EvalSetError
            The dataset has no prompts, `runnable` is not supported, the checkpoint file was written for other prompts,
            or an option is not valid.
        MissingExtraError
            A package that a metric requires is not installed.

        See Also
        --------
        EvalResult : The result.

        Examples
        --------
        >>> from agent_eval_schema import EvalTask
        >>> data = [{"prompt": "2 + 2", "reference": "4"}, {"prompt": "2 / 0", "reference": "undefined"}]
        >>> def agent(prompt):
        ...     left, operator, right = prompt.split()
        ...     return str(int(left) + int(right) if operator == "+" else int(left) // int(right))
        >>> result = EvalTask(data, ["exact_match"]).evaluate(agent)
        >>> result.metrics_table[["response", "failure", "exact_match/score"]]
          response  failure  exact_match/score
        0        4        0                1.0
        1     None        1                NaN
        """
        if max_workers < 1 or (timeout is not None and timeout <= 0):
            raise EvalSetError(f"expected workers and seconds above 0, got {max_workers} and {timeout}")
        if runnable is not None:
            call = calling(runnable, make_input)
            path = None if journal is None else os.fspath(journal)
            return self._run(call, agent_name(runnable), max_workers, timeout, path)
        if journal is not None or make_input is not None:
            raise EvalSetError("`journal` and `make_input` require a runnable")
        return score_rows(self._source, self.metrics, self._options, max_workers)

    def _run(
        self, call: Callable[[Any], Any], agent: str, max_workers: int, timeout: float | None, journal: str | None
    ) -> EvalResult:
        source, left_out = of_turns(self._source)

        def parts(reads: Collection[str]) -> Iterator[EvalInputs]:
            return input_parts(source, reads, ran=True, trajectories=bool(self._options.metrics))

        def done(part: EvalInputs, answers: list[Finished]) -> None:
            _take_answers(part, answers)
            scoring.add(measure(part, self.metrics, self._options, max_workers, ran=True))

        scoring = Scoring(source, self.metrics, self._options, left_out, agent=agent)
        prompts = (prompt for part in parts({"prompt"}) for prompt in part.values["prompt"])
        with journal_at(journal, prompts) as checkpoint, progress(source.read_share) as so_far:
            window = _Window(parts({"prompt", *columns_read(self.metrics)}), checkpoint, done, so_far)
            for outcome in run_all(call, window.inputs(), max_workers=max_workers, timeout=timeout):
                window.take(_finished(outcome))
        if not window.prompts:
            count = len(left_out)
            why = f"; {count} invalid evaluations were excluded: run `validate` for the reasons" if count else ""
            raise EvalSetError(f"the agent cannot run: the data has no prompt and no request{why}")
        return scoring.result()


def _take_answers(part: EvalInputs, answers: list[Finished]) -> None:
    """Put the outputs of the agent into the rows, in the place of those of the data."""
    columns: dict[str, list[Any]] = {
        "response": [a.response for a in answers],
        LATENCY: [a.seconds for a in answers],
        FAILURE: [int(a.failed) for a in answers],
        PREDICTED: [a.trajectory for a in answers],
        "error": [a.error for a in answers],
    }
    part.frame = part.frame.drop(columns=[c for c in RUN_COLUMNS if c in part.frame.columns])
    for name, values in columns.items():
        kind = {LATENCY: "float64", FAILURE: "int64"}.get(name, "object")
        part.frame[name] = pd.Series(values, dtype=kind, index=part.frame.index)
    part.values.update({name: columns[name] for name in OUTPUTS if name in part.values})
    calls = [v if v is None or isinstance(v, str) else encode_plain(v) for v in columns[PREDICTED]]
    part.trajectories = part.trajectories.set_column(0, PREDICTED, pa.array(calls, pa.string()))
    part.failed = frozenset(row for row, answer in enumerate(answers) if answer.failed)


# --- the checkpoint file
JOURNAL_VERSION = 1


class Finished(Struct, omit_defaults=True):
    row: int
    response: str | None = None
    trajectory: Any = None  # calls, or what was returned in their place
    seconds: float | None = None
    failed: bool = False
    error: str | None = None
    trace_id: str | None = None


class _Head(Struct):
    journal: int
    rows: int
    prompts: str


class Journal(Struct):
    """An open checkpoint file: `finished` are the rows that earlier runs wrote, `add` writes one more."""

    file: IO[bytes] | None
    finished: dict[int, Finished]

    def add(self, row: Finished) -> None:
        if self.file is not None:
            self.file.write(jsontext.encode(row) + b"\n")
            self.file.flush()  # a killed process loses nothing; a machine that stops costs calls, not results


@contextmanager
def journal_at(path: str | None, prompts: Iterable[Any]) -> Iterator[Journal]:
    """The checkpoint file of a run over these prompts, new or continued; without a path or a prompt no file is written.

    Raises EvalSetError if the file cannot be written, is not a checkpoint file, or is that of other prompts.
    """
    if path is None:
        yield Journal(None, {})
        return
    require_local_place(path)
    require_no_journal(path)
    digest, rows, has_prompt = hashlib.sha256(), 0, False
    for prompt in prompts:
        text = msgspec.json.encode(prompt, enc_hook=str, order="deterministic")
        digest.update(b"%d:" % len(text) + text)
        rows, has_prompt = rows + 1, has_prompt or prompt is not None
    if not has_prompt:
        yield Journal(None, {})
        return
    head = _Head(JOURNAL_VERSION, rows, digest.hexdigest()[:32])
    try:
        with open_locked(path) as file:
            first = jsontext.encode(head) + b"\n"
            if first.startswith(file.read()):  # it is new, or its run was killed before it had its head
                file.seek(0)
                file.write(first)
                file.flush()
            file.seek(0)
            yield Journal(file, _read_finished(path, file, head))
    except BlockingIOError:
        raise EvalSetError(f"{path}: another run is writing this checkpoint file") from None
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror or error}") from error


def _read_finished(path: str, file: IO[bytes], head: _Head) -> dict[int, Finished]:
    """The finished rows; the file is left at the end of its last whole line."""
    file_head = decoded(file.readline(), _Head, f"{path}: is not a checkpoint file of a run", "use another path")
    if file_head != head:
        raise EvalSetError(f"{path}: is the checkpoint file of a run with other prompts: delete it or use another path")
    finished, end = dict[int, Finished](), file.tell()
    for line in file:
        if not line.endswith(b"\n"):
            break
        if (row := decoded_or_none(line, Finished)) is not None:  # a damaged line costs its row, and not those after it
            finished[row.row] = row
        end += len(line)
    file.seek(end)
    file.truncate()
    return finished


# --- the rows, part by part
OPEN = 2
"""Parts whose rows are asked at the same time: the next one begins while the last calls of one are still out."""


class _Part(Struct):
    """Some rows, the number of the first of them, what became of each, and how many are left."""

    inputs: EvalInputs
    start: int
    answers: list[Finished | None]
    left: int


class _Window(Struct):
    """The pending parts: yields the rows that the checkpoint file does not have, accepts their answers, and calls
    `done` with each part and its answers, both in order. `prompts` counts the rows with a prompt."""

    parts: Iterable[EvalInputs]
    journal: Journal
    done: Callable[[EvalInputs, list[Finished]], None]
    so_far: Progress
    pending: deque[_Part] = msgspec.field(default_factory=deque)
    prompts: int = 0

    def inputs(self) -> Iterator[tuple[int, Any] | None]:
        """The rows that are to be asked; None while there are enough of them."""
        start = 0
        for inputs in self.parts:
            while len(self.pending) >= OPEN:
                yield None
            prompts = inputs.values["prompt"]
            self.pending.append(_Part(inputs, start, [None] * len(prompts), len(prompts)))
            for row, prompt in enumerate(prompts, start):
                self.prompts += prompt is not None
                if (known := self.journal.finished.pop(row, None)) is not None:
                    self._note(known)
                elif prompt is None:
                    self.take(Finished(row, failed=True, error="the row has no prompt"))
                else:
                    yield row, prompt
            start += len(prompts)
            self._pass_on()  # a part without rows, too

    def take(self, finished: Finished) -> None:
        self.journal.add(finished)
        self._note(finished)

    def _note(self, finished: Finished) -> None:
        part = next(p for p in self.pending if p.start <= finished.row < p.start + len(p.answers))
        part.answers[finished.row - part.start] = finished
        part.left -= 1
        self.so_far.add(1)
        self._pass_on()

    def _pass_on(self) -> None:
        while self.pending and not self.pending[0].left:
            part = self.pending.popleft()
            answers = [a for a in part.answers if a is not None]
            # the calls that an agent did not return, from the traces that it left
            lacking = [a for a in answers if a.trace_id and a.trajectory is None and not a.failed and not a.error]
            if lacking:
                trajectories = trajectories_of([str(answer.trace_id) for answer in lacking])
                for answer, calls in zip(lacking, trajectories, strict=True):
                    answer.trajectory = calls
            self.done(part.inputs, answers)


def _finished(outcome: CallOutcome) -> Finished:
    if outcome.error is not None:
        return Finished(outcome.row, failed=True, error=outcome.error, trace_id=outcome.trace_id)
    answer = read_output(outcome.value)
    seconds = None if answer.failed else outcome.seconds
    response = cleaned(answer.response)
    return Finished(outcome.row, response, answer.trajectory, seconds, answer.failed, answer.error, outcome.trace_id)


def trajectories_of(trace_ids: Iterable[str]) -> list[list[dict[str, Any]] | None]:
    """The calls of each trace, None without a trace. MLflow may still be writing: it is asked to finish first."""
    import mlflow

    if hasattr(mlflow, "flush_trace_async_logging"):
        mlflow.flush_trace_async_logging()
    calls: list[list[dict[str, Any]] | None] = []
    for trace_id in trace_ids:
        try:
            found = mlflow.get_trace(trace_id)
        # the store is unavailable or rejects the call: the row then lacks a trajectory, and its reason reports that
        except Exception:
            found = None
        trace = decode_trace(found.to_json()) if found is not None else None
        calls.append(as_plain(derive(trace).predicted_trajectory or []) if isinstance(trace, Trace) else None)
    return calls
