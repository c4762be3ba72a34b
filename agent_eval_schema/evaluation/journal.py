"""The checkpoint file of a run: one line per finished row, so that an interrupted run can be resumed.

    {"journal":1,"rows":500,"prompts":"9f…"}                          the data of the run
    {"row":3,"response":"…","trajectory":[…],"seconds":0.4, …}        in the order in which the rows ended

A line is written as soon as its row is finished: an interruption loses the calls in flight, and at most half a line,
which is removed when the run is resumed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import msgspec
from msgspec import Struct

from agent_eval_schema.io.atomic import lock_file, require_local_place
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text import jsontext

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
