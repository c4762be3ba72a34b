"""Run an agent on the rows of a dataset, part by part, and write a line per finished row into a checkpoint file.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import msgspec
from msgspec import Struct

from agent_eval_schema.evaluation.inputs import EvalInputs
from agent_eval_schema.evaluation.runnables import as_plain, read_output
from agent_eval_schema.evaluation.runner import CallOutcome, run_all
from agent_eval_schema.io.atomic import require_local_place
from agent_eval_schema.io.lock import lock_file
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.progress import Progress
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import cleaned
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import Trace

JOURNAL_VERSION = 1


class Finished(Struct, omit_defaults=True):
    """A row that was run."""

    row: int
    response: str | None = None
    trajectory: list[dict[str, Any]] | None = None
    seconds: float | None = None
    failed: bool = False
    error: str | None = None
    trace_id: str | None = None


class _Head(Struct):
    journal: int
    rows: int
    prompts: str


_head = msgspec.json.Decoder(_Head).decode
_line = msgspec.json.Decoder(Finished).decode


class Journal:
    """An open checkpoint file: `finished` are the rows that earlier runs wrote, `add` writes one more."""

    def __init__(self, file: IO[bytes] | None, finished: dict[int, Finished]) -> None:
        self.finished = finished
        self._file = file

    def add(self, row: Finished) -> None:
        if self._file is not None:
            self._file.write(jsontext.encode(row) + b"\n")
            self._file.flush()


@contextmanager
def journal_at(path: str | None, prompts: Iterable[Any]) -> Iterator[Journal]:
    """The checkpoint file of a run over these prompts, new or continued; without a path no file is written.

    Raises EvalSetError if the file cannot be written, is not a checkpoint file, or is that of other prompts.
    """
    if path is None:
        yield Journal(None, {})
        return
    require_local_place(path)
    head = _head_of(prompts)
    try:
        if not os.path.exists(path) or not os.path.getsize(path):
            with open(path, "wb") as file:
                file.write(jsontext.encode(head) + b"\n")
        with open(path, "rb+") as file:
            try:
                lock_file(file.fileno())
            except BlockingIOError:
                raise EvalSetError(f"{path}: another run is writing this checkpoint file") from None
            finished = _read(path, file, head)
            yield Journal(file, finished)
    except EvalSetError:
        raise
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror or error}") from error


def _head_of(prompts: Iterable[Any]) -> _Head:
    found = hashlib.sha256()
    rows = 0
    for prompt in prompts:
        text = msgspec.json.encode(prompt, enc_hook=str, order="deterministic")
        found.update(b"%d:" % len(text) + text)
        rows += 1
    return _Head(JOURNAL_VERSION, rows, found.hexdigest()[:32])


def _read(path: str, file: IO[bytes], head: _Head) -> dict[int, Finished]:
    """The finished rows; the file is left at the end of its last whole line."""
    try:
        found = _head(file.readline())
    except msgspec.MsgspecError:
        raise EvalSetError(f"{path}: is not a checkpoint file of a run: use another path") from None
    if found != head:
        raise EvalSetError(f"{path}: is the checkpoint file of a run with other prompts: delete it or use another path")
    finished, end = dict[int, Finished](), file.tell()
    for line in file:
        try:
            row = _line(line)
        except msgspec.MsgspecError:
            break
        if not line.endswith(b"\n"):
            break
        finished[row.row] = row
        end += len(line)
    file.seek(end)
    file.truncate()
    return finished


# ---------------------------------------------------------------------------------------------------------------------
# the rows, part by part
OPEN = 2
"""Parts whose rows are asked at the same time: the next one begins while the last calls of one are still out."""

Done = Callable[[EvalInputs, list[Finished]], None]


def run_parts(
    call: Callable[[Any], Any],
    parts: Iterable[EvalInputs],
    journal: Journal,
    done: Done,
    so_far: Progress,
    *,
    max_workers: int,
    timeout: float | None,
) -> int:
    """Call on the prompt of every row that the checkpoint file does not have; `done` is called with each part and its
    answers, both in order. Returns the number of rows with a prompt."""
    window = _Window(parts, journal, done, so_far)
    for outcome in run_all(call, window.inputs(), max_workers=max_workers, timeout=timeout):
        window.take(_finished(outcome))
    return window.prompts


class _Part(Struct):
    """Some rows, the number of the first of them, what became of each, and how many are left."""

    given: EvalInputs
    start: int
    answers: list[Finished | None]
    left: int


class _Window:
    """The open parts: yields the rows to run, accepts their answers, and passes on parts that are done."""

    def __init__(self, parts: Iterable[EvalInputs], journal: Journal, done: Done, so_far: Progress) -> None:
        self.prompts = 0
        self._parts, self._journal, self._done, self._so_far = parts, journal, done, so_far
        self._open: deque[_Part] = deque()

    def inputs(self) -> Iterator[tuple[int, Any] | None]:
        """The rows that are to be asked; None while there are enough of them."""
        start = 0
        for given in self._parts:
            while len(self._open) >= OPEN:
                yield None
            prompts = given.values["prompt"]
            self._open.append(_Part(given, start, [None] * len(prompts), len(prompts)))
            for row, prompt in enumerate(prompts, start):
                self.prompts += prompt is not None
                if (known := self._journal.finished.pop(row, None)) is not None:
                    self._note(known)
                elif prompt is None:
                    self.take(Finished(row, failed=True, error="the row has no prompt"))
                else:
                    yield row, prompt
            start += len(prompts)
            self._pass_on()  # a part without rows, too

    def take(self, finished: Finished) -> None:
        """Take in what became of a row."""
        self._journal.add(finished)
        self._note(finished)

    def _note(self, finished: Finished) -> None:
        part = next(p for p in self._open if p.start <= finished.row < p.start + len(p.answers))
        part.answers[finished.row - part.start] = finished
        part.left -= 1
        self._so_far.add(1)
        self._pass_on()

    def _pass_on(self) -> None:
        """Pass on the first parts, if they are done."""
        while self._open and not self._open[0].left:
            part = self._open.popleft()
            answers = [a for a in part.answers if a is not None]
            _fill_from_traces(answers)
            self._done(part.given, answers)


def _finished(outcome: CallOutcome) -> Finished:
    if outcome.error is not None:
        return Finished(outcome.row, failed=True, error=outcome.error, trace_id=outcome.trace_id)
    answer = read_output(outcome.value)
    seconds = None if answer.failed else outcome.seconds
    response = cleaned(answer.response)
    return Finished(outcome.row, response, answer.trajectory, seconds, answer.failed, answer.error, outcome.trace_id)


def _fill_from_traces(rows: list[Finished]) -> None:
    """The calls that an agent did not return, from the traces that it left."""
    lacking = [row for row in rows if row.trace_id and row.trajectory is None and not row.failed and not row.error]
    if lacking:
        for row, calls in zip(lacking, trajectories_of([str(r.trace_id) for r in lacking]), strict=True):
            row.trajectory = calls


def trajectories_of(trace_ids: Iterable[str]) -> list[list[dict[str, Any]] | None]:
    """The calls that each trace shows, `[]` if it shows none; None for a trace that is not there.

    mlflow may still be writing, so it is asked to finish first.
    """
    import mlflow

    if hasattr(mlflow, "flush_trace_async_logging"):
        mlflow.flush_trace_async_logging()
    return [_calls(mlflow, trace_id) for trace_id in trace_ids]


def _calls(mlflow: Any, trace_id: str) -> list[dict[str, Any]] | None:
    try:
        found = mlflow.get_trace(trace_id)
    # the store is unavailable or rejects the call: the row then lacks a trajectory, and its reason reports that
    except Exception:
        return None
    trace = decode_trace(found.to_json()) if found is not None else None
    return as_plain(derive(trace).predicted_trajectory or []) if isinstance(trace, Trace) else None
