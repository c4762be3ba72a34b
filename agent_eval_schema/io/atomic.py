"""Files that are there whole or not at all: written beside the target, fsynced and renamed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.privacy import error_text


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """A temporary name beside `path` that takes its place when the block ends well: the old file or the new one, never
    half of one. A link stays one, and a file that nobody else may read stays so. Raises EvalSetError if the place
    cannot be written."""
    place = os.path.realpath(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(place), prefix=f".{os.path.basename(place)}.")
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror}") from error
    os.close(handle)
    try:
        yield temporary
        _flush(temporary)
        os.chmod(temporary, _permissions(place))
        os.replace(temporary, place)
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror or error}") from error
    except pa.ArrowException as error:  # a type that the format does not have
        raise EvalSetError(f"{path}: cannot be written: {error_text(error)}") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def as_new_folder(path: str) -> Iterator[str]:
    """A temporary folder beside `path` that becomes it when the block ends well, as `replacing` does for a file. There
    may be an empty folder at `path`, nothing else. Raises EvalSetError if the place cannot be written."""
    place = os.path.abspath(path)
    try:
        temporary = tempfile.mkdtemp(dir=os.path.dirname(place), prefix=f".{os.path.basename(place)}.")
        try:
            yield temporary
            for folder, _, files in os.walk(temporary):
                for file in files:
                    _flush(os.path.join(folder, file))
            os.chmod(temporary, 0o777 & ~_umask())
            os.replace(temporary, place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror or error}") from error


def _flush(path: str) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _permissions(path: str) -> int:
    """Those of the file that is there, else those of any new one."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str, text: str) -> None:
    with replacing(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8", newline="")  # the line ends that the text has


def require_place(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if nothing can be written to `path`."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise EvalSetError(f"{path}: cannot be written: there is no folder {folder}")
    if os.path.exists(path) and not os.path.isfile(path):  # a folder, or a device such as /dev/null
        raise EvalSetError(f"{path}: cannot be written: it is no file")
    if not os.access(folder, os.W_OK):
        raise EvalSetError(f"{path}: cannot be written")


def require_apart(read: Mapping[str, str | None], written: Mapping[str, str | None]) -> None:
    """Raise EvalSetError now, rather than after the work, if something would be written over what is read, or over
    something else that is written. Both are paths by the names that they have for the user."""
    seen = {_real(path): name for name, path in read.items() if path}
    for name, path in written.items():
        if path:
            real = _real(path)
            if real in seen:
                raise EvalSetError(f"{path}: {seen[real]} and {name} must not be the same file")
            seen[real] = name


def _real(path: str) -> str:
    # of a path with a NUL, which names no file, the place that it would have
    return os.path.normcase(path if "\0" in path else os.path.realpath(path))
