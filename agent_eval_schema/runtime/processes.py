"""Interpreters of our own that do a share of some work: each is told a job once, and sends numbered messages back.

They are started with a command, not forked (Arrow's threads do not survive that) and not spawned by multiprocessing
(which would run the user's script again): a notebook and a script without a main guard work alike.
"""

from __future__ import annotations

import gc
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from agent_eval_schema.issues import EvalSetError

AHEAD = 32
"""Messages that a worker may be ahead of the reader."""

PIPE_BYTES = 1 << 20
"""A batch passes a pipe in a few pieces instead of hundreds (where the system lets its size be set)."""

_HEADER = struct.Struct("<qq")
_FAILED, _END = -1, -2

_T = TypeVar("_T")


class WorkerMessage(NamedTuple):
    """What a worker says of a unit of its work; a unit below 0 ends a worker's messages."""

    unit: int
    payload: bytes


class Worker:
    """A worker process, and the thread that takes in its messages while this process is busy.

    `run` names a function ("package.module:function") that takes the job and gives messages (`serve` runs it there).
    """

    def __init__(self, run: str, job: bytes, ahead: int = AHEAD) -> None:
        home = str(Path(__file__).resolve().parents[2])
        module, _, function = run.partition(":")
        code = (
            "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "  # it reaches us too, and we stop the worker
            f"import sys; sys.path.insert(0, {home!r}); from {module} import {function}; "
            f"from agent_eval_schema.runtime.processes import serve; serve({function})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy's threads, one a core, would only wait for work
            pipesize=PIPE_BYTES,
        )
        self._messages: queue.Queue[WorkerMessage] = queue.Queue(ahead)
        self._stopped = False
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:  # a dead worker is told by its missing messages
            stdin.write(job)
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        assert self._process.stdout is not None
        message = WorkerMessage(0, b"")
        while message.unit >= 0 and not self._stopped:
            message = _read(self._process.stdout)
            while not self._stopped:
                try:
                    self._messages.put(message, timeout=0.5)
                    break
                except queue.Full:
                    continue

    def messages(self) -> Iterator[WorkerMessage]:
        """The messages of this worker, in order. Raises EvalSetError if it could not do its share."""
        while (message := self._messages.get()).unit >= 0:
            yield message
        if message.unit == _FAILED:
            raise EvalSetError(message.payload.decode("utf-8", "replace"))

    def stop(self) -> None:
        self._stopped = True
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def in_order(shares: Iterable[Iterator[tuple[int, _T]]]) -> Iterator[tuple[int, _T]]:
    """What the shares give, in the order of the units: every unit is one share's, so the lowest is the next."""
    running = list(shares)
    waiting = {k: part for k, share in enumerate(running) if (part := next(share, None)) is not None}
    while waiting:
        k = min(waiting, key=lambda k: waiting[k][0])
        yield waiting.pop(k)
        if (part := next(running[k], None)) is not None:
            waiting[k] = part


def _read(stream: IO[bytes]) -> WorkerMessage:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        why = b"a worker process ended before its work was done: try again with one process (--jobs 1)"
        return WorkerMessage(_FAILED, why)
    unit, size = _HEADER.unpack(header)
    return WorkerMessage(unit, stream.read(size))


# ---------------------------------------------------------------------------------------------------------------------
# in the worker
def serve(run: Callable[[bytes], Iterator[tuple[int, bytes]]]) -> None:
    """The whole life of a worker: read the job from stdin, write the messages to stdout."""
    out = sys.stdout.buffer
    gc.freeze()  # what the imports made lives as long as the process: no collection need look at it
    try:
        for unit, payload in run(sys.stdin.buffer.read()):
            _send(out, unit, payload)
        _send(out, _END, b"")
    except EvalSetError as error:
        _send(out, _FAILED, str(error).encode("utf-8", "replace"))
    except BrokenPipeError:
        pass  # nobody wants to know any more
    except OSError as error:  # a file that went away, a disk that is full
        _send(out, _FAILED, f"a worker process could not go on: {error}".encode("utf-8", "replace"))


def _send(out: IO[bytes], unit: int, payload: bytes) -> None:
    out.write(_HEADER.pack(unit, len(payload)))
    out.write(payload)
    out.flush()
