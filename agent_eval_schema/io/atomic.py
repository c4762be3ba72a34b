"""Files that are there whole or not at all: written next to the target, fsynced and renamed.

What goes to stdout or to a URL is a temporary file first.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import TypeVar

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.errors import EvalSetError, HardLinkWarning, warn_caller
from agent_eval_schema.io.locks import claim, lock_file, lock_of, locked
from agent_eval_schema.io.places import JOURNALS, compression_of, is_url, real_path
from agent_eval_schema.io.remote import require_store, send_file
from agent_eval_schema.io.streams import STDOUT, creating
from agent_eval_schema.runtime.signals import TEMPORARY, TemporaryFolder
from agent_eval_schema.text.privacy import error_text

T = TypeVar("T")


class FileState(Struct, frozen=True):
    """A file as it was when it was opened: which one it is, how large, and when it was changed last. The system itself
    sets `changed_ns` (except on Windows), so it shows a new content of the same size whose time was set back."""

    place: str
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @staticmethod
    def of(path: str) -> FileState | None:
        """The state that the file has now; None if there is no such file."""
        if "\0" in path:  # the name of no file
            return None
        place = real_path(path)
        try:
            state = os.stat(place)
        except OSError:
            return None
        return FileState(place, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@contextmanager
def replacing(path: str, read: FileState | None = None) -> Iterator[str]:
    """A temporary name next to `path` that takes its place when the block succeeds: the old file or the new one, never
    half of one. A link stays one, and permissions are kept. The name has the file extension of a compression that
    `path` has. Of `"-"` (stdout) and of a URL, the content is copied there when the block succeeds.

    `read` is the state of the file that the block reads. If that is the one at `path`, and it has changed since, it is
    kept, and the new content is written next to it. Raises EvalSetError then, and if the place cannot be written.
    """
    require_no_journal(path)
    if path == STDOUT or is_url(path):
        with _sent(path) as temporary:
            yield temporary
        return
    place = real_path(path)
    require_no_checkpoint(path)
    with _beside(path, place, compression_of(path)) as temporary:
        try:
            yield temporary
        except Exception as error:  # as happens where a file is not the same each time it is read
            if _has_changed(place, read):
                raise EvalSetError(f"{path}: changed while it was read: it stays as it is; try again") from error
            raise
        _flush(temporary)
        others = _take_over(place, temporary)
        if _has_changed(place, read):
            new_path = _kept_beside(path, temporary)
            raise EvalSetError(f"{path}: changed since it was read: it stays as it is; the result is in {new_path}")
        rename(temporary, place)
        if others > 0:
            links = "another hard link, which has" if others == 1 else f"{others} other hard links, which have"
            warn_caller(f"{path}: is a new file: the old one had {links} the old content", HardLinkWarning)


# --- temporary names: `.OUT.agent-eval-schema-MACHINE-RANDOM`, a file, or a folder with a file MARK
#
# That file is locked as long as its process lives, so what is not locked was left by one that was killed.
MARK = ".agent-eval-schema"
"""The file by which a folder is known as one of ours."""

_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:6]
_DAY = 86_400


def _start_of_names(name: str) -> str:
    return f".{os.fsdecode(os.fsencode(name)[:180])}.agent-eval-schema-"


@contextmanager
def _beside(path: str, place: str, extension: str = "", *, is_folder: bool = False) -> Iterator[str]:
    """A new temporary file or folder beside a place, which is gone or has another name when the block ends. It is
    locked for the block; where an open file cannot be renamed, it is not, and nothing is removed as a leftover. Raises
    EvalSetError if something cannot be written."""
    folder, name = os.path.split(place)
    temporary = os.path.join(folder, f"{_start_of_names(name)}{_MACHINE}-{secrets.token_hex(4)}{extension}")
    TEMPORARY.add(temporary)  # before there is one: a signal may come at any time
    handle = None
    # another run may take a new file or folder for a leftover before it is marked and locked
    passing = (BlockingIOError, FileExistsError, *([FileNotFoundError] if is_folder else []))
    try:
        remove_leftovers(place)
        while handle is None:
            if is_folder and not os.path.isdir(temporary):
                os.mkdir(temporary, 0o700)
            with suppress(*passing):
                handle = claim(os.path.join(temporary, MARK) if is_folder else temporary, 0o600, os.O_EXCL)
        if os.name != "posix":
            os.close(handle)
        yield temporary
    except (OSError, pa.ArrowException) as error:  # of Arrow: a type that the format does not have
        why = (error.strerror or error) if isinstance(error, OSError) else error_text(error)
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            why = "another run has written it in the meantime"
        raise EvalSetError(f"{path}: cannot be written: {why}") from error
    finally:
        with suppress(OSError):  # it has the other name already, or was never made
            shutil.rmtree(temporary, ignore_errors=True) if is_folder else os.unlink(temporary)
        if handle is not None and os.name == "posix":
            os.close(handle)
        TEMPORARY.discard(temporary)


def remove_leftovers(place: str) -> None:
    """Remove what killed runs that wrote to a place have left beside it. Locks of another machine may not be seen here:
    what it left is removed after a day without change."""
    folder, name = os.path.split(place)
    start = _start_of_names(name)
    if os.path.exists(lock_of(place)):
        with suppress(EvalSetError), locked(place):  # which removes it at the end
            pass
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if not entry.name.startswith(start) or entry.is_symlink() or os.name != "posix":
                continue
            is_here = entry.name.startswith(_MACHINE, len(start))
            if is_here or time.time() - entry.stat(follow_symlinks=False).st_mtime > _DAY:
                with suppress(OSError):
                    _remove_if_left(entry.path, entry.is_dir())


def _remove_if_left(path: str, is_folder: bool) -> None:
    try:
        handle = os.open(os.path.join(path, MARK) if is_folder else path, os.O_RDWR)
    except FileNotFoundError:
        os.rmdir(path)  # it is not marked yet, and removed only if nothing is in it
        return
    try:
        if lock_file(handle):  # else a process has it, or there are no locks here, which raise
            remove_folder(path) if is_folder else os.unlink(path)
    finally:
        os.close(handle)


def remove_folder(path: str) -> None:
    """Remove a folder with our mark, which goes last: what is left of it, if this process is killed, is still ours."""
    for entry in os.scandir(path):
        if entry.name != MARK:
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    shutil.rmtree(path)


def put(new: str, place: str) -> None:
    """Give a new file or folder its name: of its content nothing is lost then, even if the machine stops."""
    if os.path.isdir(new):
        for folder, _, files in os.walk(new):
            for file in files:
                _flush(os.path.join(folder, file))
            sync_folder(folder)
    else:
        _flush(new)
    rename(new, place)


def rename(path: str, place: str) -> None:
    """Give a file or folder another name, by which it is found even if the machine stops."""
    os.replace(path, place)
    sync_folder(os.path.dirname(place))


@contextmanager
def _sent(path: str) -> Iterator[str]:
    """A temporary file whose content goes to stdout or to a URL when the block succeeds."""
    folder = TemporaryFolder()
    try:
        temporary = folder.file(f"new{compression_of(path)}")
        yield temporary
        if path == STDOUT:
            stream = getattr(sys.stdout, "buffer", None)
            if stream is None:
                raise EvalSetError(f"{STDOUT}: cannot be written: there is no stdout for bytes")
            try:
                sys.stdout.flush()
                with open(temporary, "rb") as file:
                    shutil.copyfileobj(file, stream)
                stream.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                raise EvalSetError(f"<stdout>: cannot be written: {error.strerror or error}") from error
        else:
            send_file(temporary, path)
    except pa.ArrowException as error:  # a type that the format does not have
        raise EvalSetError(f"{path}: cannot be written: {error_text(error)}") from error
    finally:
        folder.remove()


def _has_changed(place: str, read: FileState | None) -> bool:
    return read is not None and read.place == place and FileState.of(place) != read


def require_uncut(name: str, read: FileState | None) -> None:
    """Raise EvalSetError if a file has become shorter since it was opened: what was read of it may not be all."""
    now = None if read is None else FileState.of(read.place)
    if read is not None and now is not None and now.inode == read.inode and now.size < read.size:
        raise EvalSetError(f"{name}: was cut while it was read: try again")


def require_unchanged(path: str, read: FileState | None) -> None:
    """Raise EvalSetError if a file has changed since it was opened."""
    if read is not None and FileState.of(path) not in (None, read):
        raise EvalSetError(f"{path}: {VALIDATE_AGAIN}")


VALIDATE_AGAIN = "changed since it was read: validate it again"
"""The end of the error about a file that is no longer the one that was read."""


class OpenedFiles:
    """The files of a table as they were when it was opened: what is read of them later must be of the same rows.

    `list_files` returns the names of the files; `name` is that of the table in messages.
    """

    def __init__(self, name: str, list_files: Callable[[], Sequence[str]]) -> None:
        self._name, self._list_files = name, list_files
        self._states, self._is_read = self._now(), False

    def _now(self) -> list[tuple[int, int, int] | None]:
        # not the inode: some file systems of a network give a file another one each time
        states = map(FileState.of, self._list_files())
        return [None if state is None else (state.size, state.modified_ns, state.changed_ns) for state in states]

    def require_unchanged(self) -> None:
        """Raise EvalSetError if a file has changed; of one that is gone its reader raises a better error."""
        now = self._now()
        if None not in now and now != self._states:
            raise EvalSetError(f"{self._name}: {VALIDATE_AGAIN}")

    def reading(self, read: Callable[[], Iterator[T]]) -> Iterator[T]:
        """The batches (or other parts) of the files. A log may grow while it is read for the first time: then its rows
        are those up to some place. Later the rows must be the same."""
        is_first, self._is_read = not self._is_read, True
        if is_first:
            self._states = self._now()
        self.require_unchanged()
        yield from read()
        if not is_first:
            self.require_unchanged()


def _kept_beside(path: str, temporary: str) -> str:
    """Keep the new content under the first unused name next to `path`: `set.new.jsonl`, `set.new2.jsonl` …"""
    stem, extension = os.path.splitext(path)
    for number in count(1):
        name = f"{stem}.new{number if number > 1 else ''}{extension}"
        with suppress(FileExistsError):
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
            rename(temporary, real_path(name))
            return name
    raise AssertionError


@contextmanager
def as_new_folder(path: str) -> Iterator[str]:
    """A path, without a folder yet, whose folder moves to `path` when the block succeeds: as `replacing` for a file.
    There may be an empty folder at `path`, nothing else. Raises EvalSetError if the place cannot be written."""
    place = os.path.abspath(path)
    with _beside(path, place, is_folder=True) as temporary:
        new = os.path.join(temporary, os.path.basename(place))
        yield new
        put(new, place)


def _flush(path: str) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _take_over(place: str, temporary: str) -> int:
    """Give a new file the owner, the mode and the access control list of the one that it replaces, and of none those of
    any new file. Returns the number of other names that the old file has."""
    try:
        old = os.stat(place)
    except FileNotFoundError:
        os.chmod(temporary, 0o666 & ~_umask())
        return 0
    if hasattr(os, "chown"):
        for owner in ((old.st_uid, -1), (-1, old.st_gid)):
            with suppress(PermissionError):  # only root gives files away; a member of its group keeps that
                os.chown(temporary, *owner)
    with suppress(OSError):  # some attributes only the system sets
        shutil.copystat(place, temporary)  # an access control list is an extended attribute
    os.chmod(temporary, stat.S_IMODE(old.st_mode))
    os.utime(temporary)
    return old.st_nlink - 1


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str, text: str) -> None:
    with replacing(path) as temporary, creating(temporary) as file:
        file.write(text.encode())


def write_private(path: str, content: bytes) -> None:
    """Replace a file by one that only its owner can read, whoever could read the old one."""
    place = real_path(path)
    with _beside(path, place) as temporary:
        with open(temporary, "wb") as file:
            file.write(content)
        put(temporary, place)


def require_place(path: str, *, stdout: bool = False) -> None:
    """Raise EvalSetError now, rather than after the work, if `path` (a URL; `"-"` if `stdout`) cannot be written."""
    if path == STDOUT and not stdout:
        raise EvalSetError(f"{path}: expected the path of a file: stdout has the report, and stdin cannot be replaced")
    if path == STDOUT:
        return
    if is_url(path):
        require_store(path)
        return
    folder = os.path.dirname(real_path(path))
    if not os.path.isdir(folder):
        raise EvalSetError(f"{path}: cannot be written: no such folder: {folder}")
    if os.path.exists(path) and not os.path.isfile(path):  # a folder, or a device such as /dev/null
        raise EvalSetError(f"{path}: cannot be written: it is not a file")
    if not os.access(folder, os.W_OK):
        raise EvalSetError(f"{path}: cannot be written: the folder is read-only: {folder}")


def require_local_place(path: str) -> None:
    """As `require_place`, for what is not written as one file."""
    if is_url(path):
        raise EvalSetError(f"{path}: cannot be written: expected a path on this machine, got a URL")
    require_place(path)


def require_no_journal(path: str) -> None:
    """Raise EvalSetError for the name of a journal: it may hold what people decided."""
    if path.endswith(JOURNALS):
        raise EvalSetError(f"{path}: is the name of a review journal, which is not overwritten: choose another path")


_CHECKPOINT = re.compile(rb'\{"journal":\d+,"rows":\d+,')
"""How the checkpoint file of a run begins; rows of a dataset may have a column `journal`."""


def require_no_checkpoint(path: str) -> None:
    """Raise EvalSetError if a file has the answers of an agent so far (evaluation/task.py)."""
    with suppress(OSError):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                begins = file.read(64)
            if _CHECKPOINT.match(begins):
                why = "is the checkpoint file of a run, whose answers would be lost"
                raise EvalSetError(f"{path}: {why}: choose another path, or delete it")


def append_synced(path: str, text: bytes) -> int:
    """Append text to a file and sync it; returns its size. If the disk is full, the file is as it was."""
    try:
        is_new = not os.path.exists(path)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            size = os.fstat(handle).st_size
            try:
                rest = memoryview(text)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, size)
                raise
        finally:
            os.close(handle)
        if is_new:
            sync_folder(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        raise EvalSetError(f"{path}: not saved: {error.strerror}") from error
    return len(text)


def sync_folder(folder: str) -> None:
    """Sync the names in a folder: of a file that is new there, or has another name now."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
