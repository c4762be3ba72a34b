"""SIGINT and SIGTERM end a command within a second, and leave no temporary files.

The main thread raises, and what it was doing cleans up after itself. If it does not come to that, because it waits in
another library or for a thread that reads from a pipe, a watching thread removes the files and ends the process.
"""

import os
import shutil
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

GRACE = 0.6
"""Seconds that a run has to end by itself."""

TEMPORARY: set[str] = set()
"""The paths of the temporary files and folders of this process."""

_at_once = threading.Event()
"""Set if the main thread cannot end the run itself."""

_ENDING = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Within the block the signals raise KeyboardInterrupt or Terminated in the main thread; one that is ignored, as
    `nohup` does, stays ignored. After the first of them the process ends."""
    default = (signal.SIG_DFL, signal.default_int_handler)
    chosen = [number for number in _ENDING if signal.getsignal(number) in default]
    if threading.current_thread() is not threading.main_thread() or not chosen:
        yield
        return
    writing = -1
    if sys.platform != "win32":  # where only a socket could be written to
        # the numbers of signals are written to a pipe, for a thread that reads them
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    raised: list[KeyboardInterrupt] = []
    before = {number: signal.signal(number, partial(_raise, raised)) for number in chosen}
    try:
        yield
    except BaseException as error:
        if raised:
            before = {}  # what comes now is the end of the process
            if error is not raised[0]:  # a library has made an error of its own of it, as DuckDB does
                raise raised[0] from error
        raise
    finally:
        if before:
            for number, handler in before.items():
                signal.signal(number, handler)
            if writing >= 0:
                signal.set_wakeup_fd(-1)
                os.close(writing)


def _raise(raised: list[KeyboardInterrupt], number: int, frame: FrameType | None) -> None:
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    while frame is not None and frame.f_globals.get("__name__") != "importlib._bootstrap":
        frame = frame.f_back
    is_importing = frame is not None
    if is_importing and sys.platform != "win32":  # compiled modules may crash where one is broken off
        os.write(2, b"agent-eval-schema: " + (b"terminated\n" if number == signal.SIGTERM else b"interrupted\n"))
        _at_once.set()
        return  # the watching thread ends the process
    raised.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
    raise raised[0]


def exit_code(error: KeyboardInterrupt) -> int:
    """The exit code of a process that a signal has ended: 128 and the number of the signal."""
    return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)


def _watch(reading: int) -> None:
    """End the process a while after a signal."""
    while number := os.read(reading, 1):
        if number[0] in _ENDING:
            _at_once.wait(GRACE)
            remove_temporary()
            os._exit(128 + number[0])
    os.close(reading)


def remove_temporary() -> None:
    """Remove all temporary files and folders of this process."""
    for path in list(TEMPORARY):
        with suppress(OSError):
            os.unlink(path)
        shutil.rmtree(path, ignore_errors=True)


class TemporaryFolder:
    """A folder that only its owner may read; deleted when nothing refers to this object any more, or by `remove`."""

    def __init__(self) -> None:
        import tempfile  # a command without temporary files does not wait for it

        self.path = tempfile.mkdtemp(prefix="agent-eval-schema-")
        TEMPORARY.add(self.path)
        self.remove = weakref.finalize(self, _remove, self.path)

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def append(self, name: str, content: bytes) -> None:
        with open(self.file(name), "ab") as file:
            file.write(content)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    TEMPORARY.discard(path)
