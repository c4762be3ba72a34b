"""Outputs that one run at a time may write: next to each is a lock file, which the system frees when its owner ends.

Not `filelock`: it leaves the lock file behind, and where flock is missing it waits for a file that a killed run leaves;
a checkpoint file is locked itself, which needs `lock_file` anyway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.signals import TEMPORARY


@contextmanager
def sole_writer(paths: Iterable[str | None]) -> Iterator[None]:
    """Write these files, or folders, as the only run that does. Raises EvalSetError if another one is at it."""
    with ExitStack() as stack:
        for path in paths:
            if path:
                stack.enter_context(_lock_beside(path))
        yield


@contextmanager
def _lock_beside(path: str) -> Iterator[None]:
    folder, name = os.path.split(os.path.realpath(path))
    lock = os.path.join(folder, f".{name}.lock")
    try:
        while (handle := _locked(lock)) is None:
            pass
    except BlockingIOError as error:
        raise EvalSetError(
            f"{path}: another run is writing it: wait until that has ended, or choose another output"
        ) from error
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror}") from error
    TEMPORARY.add(lock)
    try:
        yield
    finally:
        TEMPORARY.discard(lock)
        with suppress(OSError):  # who has opened the file before sees that it is gone: see `_locked`
            os.unlink(lock)
        os.close(handle)


def _locked(lock: str) -> int | None:
    """The handle of the lock file, locked; None if its last owner has just removed it. Raises BlockingIOError if it has
    an owner."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_TEMPORARY", 0), 0o666)
    try:
        lock_file(handle)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(lock), os.fstat(handle)):
                return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


# lock_file: lock an open file, until it is closed or its process ends. Raises BlockingIOError if another one has it.
if sys.platform == "win32":
    import msvcrt

    def lock_file(handle: int) -> None:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error

else:
    import errno
    import fcntl

    def lock_file(handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:  # some file systems of a network have no locks: then none is taken
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                raise
