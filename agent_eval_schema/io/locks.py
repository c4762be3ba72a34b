"""One writer at a time: whoever changes what another process may change takes its lock, reads it again, and writes.

    OUT          what is written: a file, a folder, a journal
    .OUT.lock    the process that writes it; the system frees the lock when that process ends, however it ends

Not `filelock`: it leaves the lock file behind, and where flock is missing it waits for a file that a killed run leaves.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.places import real_path
from agent_eval_schema.runtime.signals import TEMPORARY


@contextmanager
def sole_writer(paths: Iterable[str | None]) -> Iterator[None]:
    """Write these files, or folders, as the only run that does. Raises EvalSetError if another one is at it."""
    with ExitStack() as stack:
        for path in filter(None, paths):
            stack.enter_context(locked(path))
        yield


@contextmanager
def locked(
    path: str,
    failure: str = "cannot be written",
    advice: str = "wait until that has ended, or choose another output",
    *,
    wait: float = 0,
) -> Iterator[None]:
    """Hold the lock of a file or folder. Raises EvalSetError if another process has it for longer than `wait` seconds:
    with what has failed, and what to do."""
    lock, end = lock_of(path), time.monotonic() + wait
    try:
        while (handle := _try(lock)) is None:
            if time.monotonic() > end:
                raise EvalSetError(f"{path}: {failure}: another run{_owner(lock)} is writing it: {advice}")
            time.sleep(0.002 if wait else 0)
    except OSError as error:
        raise EvalSetError(f"{path}: {failure}: {error.strerror}") from error
    TEMPORARY.add(lock)
    try:
        yield
    finally:
        TEMPORARY.discard(lock)
        with suppress(OSError):  # who has opened the file before sees that it is gone: see `claim`
            os.unlink(lock)
        os.close(handle)


def lock_of(path: str) -> str:
    """The lock file of a file or folder."""
    folder, name = os.path.split(real_path(path))
    return os.path.join(folder, f".{name}.lock")


def _try(lock: str) -> int | None:
    """The handle of a lock that is now ours, with our name in it; None if another process has it. Raises OSError, and
    changes nothing, if the file is another one's."""
    try:
        while (handle := claim(lock, 0o666, _LOCK)) is None:  # its last owner has just removed it
            pass
    except BlockingIOError:
        return None
    mark = os.read(handle, len(_MARK))
    if mark != _MARK[: len(mark)]:
        os.close(handle)
        raise FileExistsError(0, f"{os.path.basename(lock)} is not a lock of agent-eval-schema: rename it")
    with suppress(OSError):  # on a full disk the lock holds all the same
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, _MARK + f"{os.getpid()} on {platform.node() or 'unknown'}\n".encode())
    return handle


_MARK = b"agent-eval-schema: process "
_OWNER = re.compile(_MARK.decode() + r"(\d+) on (\S{1,255})\n")
_LOCK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_TEMPORARY", 0)


def _owner(lock: str) -> str:
    """Who holds a lock, as far as its file names a process."""
    with suppress(OSError), open(lock, encoding="utf-8", errors="replace") as file:
        if found := _OWNER.match(file.read(400)):
            return f" (process {found[1]}{'' if found[2] == platform.node() else f' on {found[2]}'})"
    return ""


def claim(path: str, mode: int, flags: int = 0) -> int | None:
    """The handle of a file, made if there is none, that is locked until it is closed; None if the file was removed or
    renamed before it could be locked. Raises BlockingIOError if another process has locked it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | flags, mode)
    try:
        lock_file(handle)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def open_locked(path: str) -> IO[bytes]:
    """A file, made if there is none, to be changed by this process only. Raises BlockingIOError if another has it."""
    while (handle := claim(path, 0o666)) is None:
        pass
    return open(handle, "rb+")


# lock_file: lock an open file, until it is closed or its process ends. Returns whether there are such locks here.
# Raises BlockingIOError if another process has it.
if sys.platform == "win32":
    import msvcrt

    def lock_file(handle: int) -> bool:
        place = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, 1 << 30, os.SEEK_SET)  # beyond what is in it: there a lock does not block readers
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError from error
        finally:
            os.lseek(handle, place, os.SEEK_SET)
        return True

else:
    import errno
    import fcntl

    def lock_file(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:  # some file systems of a network have no locks: then none is taken
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                raise
            return False
        return True
