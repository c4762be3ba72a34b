"""Interpreters of our own that do a share of some work: each receives a job once, and sends numbered messages back.
What only this process has, such as a DataFrame, can be sent after the job, piece by piece (`more`, `received`).

They are started with a command, not forked (Arrow's threads do not survive that) and not spawned by multiprocessing
(which would run the user's script again): a notebook and a script without a main guard work alike.

Nothing is imported from the working directory, where a file `signal.py` may be among the data. The option `-P` does
that from Python 3.11 on; `-I` would do it too, but also ignores PYTHONPATH and the user's own packages.
"""

from __future__ import annotations

import gc
import heapq
import os
import queue
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

from agent_eval_schema.errors import EvalSetError

if TYPE_CHECKING:
    import pyarrow as pa

AHEAD = 32
"""Messages that a worker may be ahead of the reader."""

PIPE_BYTES = 1 << 20
"""A batch passes a pipe in a few pieces instead of hundreds (where the system lets its size be set). Shared memory
would cost this process, which has the most to do, twice as much: its pages are new (25 instead of 13 ms for 40 MB)."""

ENDED_EARLY = "a worker process ended before its work was done: try again with one process (--jobs 1)"

_HEADER = struct.Struct("<qq")
_FAILED, _END = -1, -2

_T = TypeVar("_T")

_HOME = str(Path(__file__).absolute().parents[2])

_START = """
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import collections.abc, importlib, signal, typing
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.insert(0, {home!r})
import agent_eval_schema
del sys.path[0]
sys.path += [folder for folder in {more!r} if folder not in sys.path]
from agent_eval_schema.runtime.lazy import put_off_pandas
put_off_pandas()
from {module} import {function}
from agent_eval_schema.runtime.processes import serve
serve({function}, {gets_more})
"""
"""What a worker runs. `python -c` puts the working directory, written as an empty text, before all other folders. The
folder of this package comes first for as long as the package itself is imported: there may be another version of it
among the installed packages, and anything beside it. An interrupt reaches the workers too, and we stop them. They make
no DataFrame."""

_OPTIONS = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s"}
"""The flags of this interpreter that a worker is started with, too, and their options."""


class WorkerMessage(NamedTuple):
    """The message of a worker on a unit of its work; a unit below 0 ends a worker's messages."""

    unit: int
    payload: bytes


class Worker:
    """A worker process, and the thread that takes in its messages while this process is busy.

    `run` names a function ("package.module:function") that takes the job and gives messages (`serve` runs it there).
    `modules` are folders in which modules are looked for, after all others. A worker that gets `more` messages answers
    the job with an empty one, when it has started, and each of them with one, in order. They are made by another
    thread, each when the one before it was taken.
    """

    def __init__(
        self,
        run: str,
        job: bytes,
        ahead: int = AHEAD,
        modules: Iterable[str] = (),
        more: Iterable[bytes | pa.Buffer] | None = None,
    ) -> None:
        module, _, function = run.partition(":")
        folders = [os.path.abspath(folder) for folder in modules]
        code = _START.format(home=_HOME, more=folders, module=module, function=function, gets_more=more is not None)
        options = [option for flag, option in _OPTIONS.items() if getattr(sys.flags, flag)]
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy's threads, one per core, would only wait for work
            pipesize=PIPE_BYTES,
        )
        self._messages: queue.Queue[WorkerMessage] = queue.Queue(ahead)
        self._stopped = False
        self._started = threading.Event()
        threading.Thread(target=self._deliver, args=(job, more), daemon=True).start()
        threading.Thread(target=self._receive, args=(more is not None,), daemon=True).start()

    @property
    def has_started(self) -> bool:
        """Whether a worker that gets more messages has answered the job."""
        return self._started.is_set()

    def has_message(self) -> bool:
        return not self._messages.empty()

    def _deliver(self, job: bytes, more: Iterable[bytes | pa.Buffer] | None) -> None:
        assert self._process.stdin is not None
        # a dead worker is detected by its missing messages
        with suppress(BrokenPipeError):
            _send(self._process.stdin, 0, job)
            if more is None:
                return  # the pipe stays open until this process ends, and the worker with it
            with self._process.stdin as stdin:  # also where a message cannot be made
                self._started.wait()
                for message in more:
                    _send(stdin, 0, message)

    def _receive(self, starts: bool) -> None:
        assert self._process.stdout is not None
        message = WorkerMessage(0, b"")
        while message.unit >= 0 and not self._stopped:
            message = _read_message(self._process.stdout)
            if starts and not self._started.is_set():
                self._started.set()
                if message.unit >= 0:
                    continue
            while not self._stopped:
                with suppress(queue.Full):
                    self._messages.put(message, timeout=0.5)
                    break

    def messages(self) -> Iterator[WorkerMessage]:
        """The messages of this worker, in order. Raises EvalSetError if it could not do its share."""
        while (message := self._messages.get()).unit >= 0:
            yield message
        if message.unit == _FAILED:
            raise EvalSetError(message.payload.decode("utf-8", "replace"))

    def stop(self) -> None:
        self._stopped = True
        self._started.set()
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


def in_order(shares: Iterable[Iterator[tuple[int, _T]]]) -> Iterator[tuple[int, _T]]:
    """The results of the shares in the order of the units, each of which belongs to one share."""
    return heapq.merge(*shares, key=itemgetter(0))


def _read_message(stream: IO[bytes]) -> WorkerMessage:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return WorkerMessage(_FAILED, ENDED_EARLY.encode())
    unit, size = _HEADER.unpack(header)
    return WorkerMessage(unit, stream.read(size))


# --- in the worker
def serve(run: Callable[[bytes], Iterator[tuple[int, bytes]]], gets_more: bool) -> None:
    """The whole life of a worker: read the job from stdin, write the messages to stdout. It ends when the process that
    started it does, however that ended: what it wrote then would be in the way of another run."""
    out = sys.stdout.buffer
    gc.freeze()  # the imported objects live as long as the process: no collection need examine them
    try:
        job = next(received())
        if not gets_more:
            threading.Thread(target=_end_with_stdin, daemon=True).start()
        for unit, payload in run(job):
            _send(out, unit, payload)
        _send(out, _END, b"")
    except EvalSetError as error:
        _send(out, _FAILED, str(error).encode("utf-8", "replace"))
    except BrokenPipeError:
        pass  # the result is no longer needed
    except OSError as error:  # a file that went away, a disk that is full
        _send(out, _FAILED, f"a worker process ended early: {error}".encode("utf-8", "replace"))
    except Exception as error:  # a defect of ours; its text may quote cells
        why = f"internal error in a worker process: {type(error).__name__}: try again with one process (--jobs 1)"
        _send(out, _FAILED, why.encode())


def _end_with_stdin() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def received() -> Iterator[bytes]:
    """In the worker: the messages that are sent to it, the first of which is its job."""
    while header := sys.stdin.buffer.read(_HEADER.size):
        yield sys.stdin.buffer.read(_HEADER.unpack(header)[1])


def _send(out: IO[bytes], unit: int, payload: bytes | pa.Buffer) -> None:
    out.write(_HEADER.pack(unit, len(payload)))
    out.write(payload)
    out.flush()
