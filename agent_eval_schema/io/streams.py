"""A file as a stream of bytes, compressed by its file extension."""

import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.text.visible import visible

STDIN, STDIN_NAME = "-", "<stdin>"
"""The path that means stdin, and what messages and reports call it."""

STDOUT = "-"
"""The path that means stdout."""

CHUNK = 1 << 20
"""Bytes that are read from a text file at once."""

COMPRESSIONS = (".gz", ".bz2", ".zst")

_BEGINNINGS = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".xlsx",
}


def extension_of(head: bytes) -> str:
    """The file extension of what begins so, if it is compressed or no text; else ""."""
    return next((extension for magic, extension in _BEGINNINGS.items() if head.startswith(magic)), "")


MOST_UNPACKED = 512 << 20
"""Bytes of one row of a compressed file, and of a file that is unpacked as a whole: a small file may unpack to more
than memory holds. AGENT_EVAL_SCHEMA_MAX_UNPACKED sets another number of MB."""

WHOLE = (".xlsx", ".zip")
"""Files that are archives, which a reader unpacks as a whole."""


def unpacked_limit() -> int:
    """The bytes that what was packed may have: a reader of any container asks it before it unpacks."""
    megabytes = os.environ.get("AGENT_EVAL_SCHEMA_MAX_UNPACKED", "")
    return int(megabytes) << 20 if megabytes.isascii() and megabytes.isdigit() else MOST_UNPACKED


def most_unpacked(path: str) -> int:
    """The bytes that a row of a file, or an archive, may have; -1 without a limit."""
    return unpacked_limit() if path.lower().endswith((*COMPRESSIONS, *WHOLE)) else -1


def require_bounded(path: str, size: int) -> None:
    """Raise EvalSetError if a row of a compressed file, or an archive, of this number of bytes is too large."""
    if size > most_unpacked(path) > 0:
        raise too_large(path)


def too_large(path: str) -> EvalSetError:
    what, got = ("a file", "more") if path.lower().endswith(WHOLE) else ("rows", "a larger one")
    option = "set AGENT_EVAL_SCHEMA_MAX_UNPACKED to more MB"
    otherwise = ", or unpack the file" if path.lower().endswith(COMPRESSIONS) else ""
    return EvalSetError(f"{path}: expected {what} of up to {unpacked_limit() >> 20} MB, got {got}: {option}{otherwise}")


class Position:
    """The progress of reading a file: its reader reports it, and the progress bar reads the share."""

    def __init__(self) -> None:
        self.rows: int | None = None
        self.file: IO[bytes] | None = None

    def share(self, rows: int) -> float | None:
        """The part of the file that has been read: by its rows, if it reports how many it has, else by its bytes. The
        system knows the place in a file, so a reader in another thread need not be asked."""
        if self.rows is not None:
            return min(1.0, rows / max(self.rows, 1))
        try:
            handle = self.file.fileno() if self.file is not None else -1
            return os.lseek(handle, 0, os.SEEK_CUR) / max(os.fstat(handle).st_size, 1)
        except (OSError, ValueError):  # closed: all of it has been read
            return None if self.file is None else 1.0


@contextmanager
def opened(path: str, position: Position | None = None) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed by its file extension."""
    compression = pa.Codec.detect(visible(path)).name if path.lower().endswith(COMPRESSIONS) else None
    try:
        with open(path, "rb") as file, pa.input_stream(file, compression=compression) as stream:
            if position is not None:
                position.file = file
            yield stream
    except (OSError, pa.ArrowException) as error:
        raise EvalSetError(f"{path}: cannot be read: {error}") from error


def text_chunks(path: str, position: Position | None = None) -> Iterator[bytes]:
    """The bytes of a text file in pieces, without a BOM; at least one."""
    with opened(path, position) as stream:
        yield stream.read(CHUNK).removeprefix(BOM_UTF8)
        while chunk := stream.read(CHUNK):
            yield chunk


@contextmanager
def creating(path: str) -> Iterator[IO[bytes]]:
    """A new file for bytes, compressed by its file extension."""
    compression = pa.Codec.detect(visible(path)).name if path.lower().endswith(COMPRESSIONS) else None
    with open(path, "wb") as file:
        if compression is None:
            yield file
        else:
            with pa.CompressedOutputStream(file, compression) as stream:
                yield stream


@contextmanager
def naming(path: str, name: str) -> Iterator[None]:
    """Let errors on the file at `path`, which is a copy, name the original."""
    try:
        yield
    except EvalSetError as error:
        raise type(error)(str(error).replace(path, name)) from error


Edits = Iterator[dict[str, Any]]
"""For each row of the file, in order, the cells that are replaced: {column, as it is called now: value}; or DROPPED."""

DROPPED: dict[str, Any] = {}
"""The placeholder for a row that is excluded from a rewritten file; it is compared by identity."""

Renames = dict[str, str]
"""Columns that are called otherwise in a rewritten file: {as written: as meant}."""
