"""A large file on all cores: each process reads the file itself and checks its share; the verdicts come together here.

    process k of n     every n-th unit of the file             (a unit: a row group of Parquet, else a batch)
    this process       is number 0; it has the first few units to itself while the others start, and takes the results
                       in the order of the units, so that they are those of one process

The workers are interpreters of their own, started with a command, not forked (Arrow's threads do not survive that) and
not spawned by multiprocessing (which would run the user's script again): a notebook and a script without a main guard
work alike. What travels is small: a path and a plan there, a few bytes a row back.
"""

from __future__ import annotations

import io
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.frames import HEAD_START_BYTES, Share, Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.plan import Plan

WORTH_IT = 64 << 20
"""From this size on a file takes longer to check than workers take to start (half a second)."""

AHEAD = 32
"""Checked batches that a worker may be ahead of the reader."""

_HEADER = struct.Struct("<qq")
_FAILED, _END = -1, -2


class Job(Struct, frozen=True):
    """What a worker is told: which file, how to check it, and which share."""

    path: str
    plan: Plan
    share: Share


class Part(NamedTuple):
    """A checked batch and the unit of the file that it belongs to; a unit below 0 ends a worker's parts."""

    unit: int
    payload: bytes


def worth_workers(path: str | None) -> int:
    """How many processes a file deserves: one a core if it is large (AGENT_EVAL_SCHEMA_JOBS sets how many)."""
    if path is None or os.path.getsize(path) < WORTH_IT or not sys.executable:  # no interpreter: Python is embedded
        return 1
    given = os.environ.get("AGENT_EVAL_SCHEMA_JOBS", "")
    return max(int(given), 1) if given.isdecimal() else _cores()


def _cores() -> int:
    # the cores that this process may use, where the system says so
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_with_workers(
    source: Source, path: str, plan: Plan, workers: int, head_start: int = HEAD_START_BYTES
) -> Iterator[pa.RecordBatch]:
    """The checked batches of a file, in order. Raises EvalSetError if a worker could not do its share."""
    from agent_eval_schema.check import check_batch

    first, *rest = (Share(k, workers, head_start) for k in range(workers))
    others = [_Worker(Job(path, plan, share)) for share in rest]
    own = ((unit, check_batch(batch, plan)) for unit, batch in source.units(first))
    shares = [own, *(worker.parts() for worker in others)]
    try:
        waiting = {k: part for k, share in enumerate(shares) if (part := next(share, None)) is not None}
        while waiting:
            k = min(waiting, key=lambda k: waiting[k][0])  # every unit is one process's: the lowest is the next
            yield waiting.pop(k)[1]
            if (part := next(shares[k], None)) is not None:
                waiting[k] = part
    finally:
        for worker in others:
            worker.stop()


class _Worker:
    """A worker process, and the thread that takes in its parts while this process is busy."""

    def __init__(self, job: Job) -> None:
        home = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path.insert(0, {home!r}); from agent_eval_schema.engines.workers import work; work()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy's threads, one a core, would only wait for work
        )
        self._parts: queue.Queue[Part] = queue.Queue(AHEAD)
        self._stopped = False
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:  # a dead worker is told by its missing parts
            stdin.write(msgspec.msgpack.encode(job))
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        assert self._process.stdout is not None
        part = Part(0, b"")
        while part.unit >= 0 and not self._stopped:
            part = _read_part(self._process.stdout)
            while not self._stopped:
                try:
                    self._parts.put(part, timeout=0.5)
                    break
                except queue.Full:
                    continue

    def parts(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The units of this worker, in order, each batch with the number of its unit."""
        while (part := self._parts.get()).unit >= 0:
            yield part.unit, pa.ipc.open_stream(part.payload).read_next_batch()
        if part.unit == _FAILED:
            raise EvalSetError(part.payload.decode("utf-8", "replace"))

    def stop(self) -> None:
        self._stopped = True
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _read_part(stream: IO[bytes]) -> Part:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return Part(_FAILED, b"a worker process ended before its work was done: try again with one process (--jobs 1)")
    unit, size = _HEADER.unpack(header)
    return Part(unit, stream.read(size))


# ---------------------------------------------------------------------------------------------------------------------
# in the worker


def work() -> None:
    """The whole life of a worker: read the job from stdin, write the parts to stdout."""
    from agent_eval_schema.check import check_batch
    from agent_eval_schema.engines.files import open_file

    out = sys.stdout.buffer
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Job)
    try:
        for unit, batch in open_file(job.path).quoting(job.plan.values).units(job.share):
            _send(out, unit, _message(check_batch(batch, job.plan)))
        _send(out, _END, b"")
    except EvalSetError as error:
        _send(out, _FAILED, str(error).encode("utf-8", "replace"))
    except BrokenPipeError:
        pass  # nobody wants to know any more


def _message(batch: pa.RecordBatch) -> bytes:
    """The batch with its own schema: each names the columns that its part of the file has."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _send(out: IO[bytes], unit: int, payload: bytes) -> None:
    out.write(_HEADER.pack(unit, len(payload)) + payload)
    out.flush()
