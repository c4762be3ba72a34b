"""Texts, from every place that rows are read from: a file, a compressed one, a URL, stdin (`-`), a named pipe.

Stdin or a pipe becomes a local copy, whose file extension is that of its content: a stream has no name.

    PAR1…, PK…                           .parquet, .xlsx
    {"request": …}⏎{"request": …}⏎       .jsonl     an object per line
    {…} or […]                           .json      one value, on one line or on many
    request,response⏎                    .csv       .tsv if there are tabs and no commas

Each of them may be compressed (gzip, bzip2, Zstandard).
"""

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import IO

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.jsonl import jsonl_lines
from agent_eval_schema.io.places import compression_of, is_pipe, is_url
from agent_eval_schema.io.remote import fetch_url
from agent_eval_schema.io.streams import COMPRESSIONS, STDIN, STDIN_NAME, extension_of, naming, opened, require_bounded
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.text import jsontext


def copy_stdin(path: str) -> str:
    """Copy stdin to a file named `path` plus extension; returns its name. Raises EvalSetError if there is no data."""
    stream = getattr(sys.stdin, "buffer", None) or io.BytesIO()  # a notebook has none
    return _copied(stream, path, STDIN_NAME, "(stdin can be read only once)")


def copy_pipe(name: str, path: str) -> str:
    """As `copy_stdin`, of a named pipe, which can be read only once too: `mkfifo`, or `<(…)` of a shell."""
    with open(name, "rb") as stream:
        return _copied(stream, path, name, "through the pipe")


@contextmanager
def stdin_as_file() -> Iterator[str]:
    """A copy of stdin for a reader that takes a path."""
    folder = TemporaryFolder()
    path = copy_stdin(folder.file("stdin"))
    with naming(path, STDIN_NAME):
        yield path
    folder.remove()


def _copied(stream: IO[bytes], path: str, name: str, lacking: str) -> str:
    """The name of the copy of a stream, which has the file extension of its content."""
    with open(path, "wb") as file:
        shutil.copyfileobj(stream, file)
    if not os.path.getsize(path):
        raise EvalSetError(f"{name}: expected JSON Lines, JSON, CSV or Parquet; got no data {lacking}")
    with open(path, "rb") as file:
        compression = extension_of(file.read(4))
    plain = _renamed(path, compression)
    if compression and compression not in COMPRESSIONS:
        return plain
    lines = (line.strip() for line in jsonl_lines(plain))
    with naming(plain, STDIN_NAME):
        first, second = (*islice((line for line in lines if line), 2), b"", b"")[:2]
    if not first.startswith((b"{", b"[")):
        extension = ".tsv" if b"\t" in first and b"," not in first else ".csv"
    else:
        has_object = any(isinstance(jsontext.parse(line), dict) for line in (first, second))
        goes_on = first.endswith((b"{", b"[", b",", b":"))
        extension = ".jsonl" if second and has_object and not goes_on else ".json"
    return _renamed(plain, extension, before=compression)


def _renamed(path: str, extension: str, before: str = "") -> str:
    name = path.removesuffix(before) + extension + before
    os.replace(path, name)
    return name


def read_bytes(name: str) -> bytes:
    """What is in a place. Raises EvalSetError if it cannot be read, or is too large for memory."""
    if name == STDIN:
        with stdin_as_file() as path:
            return _read_file(path)
    if is_pipe(name):
        with open(name, "rb") as pipe:
            return pipe.read()
    if not is_url(name):
        if not os.path.isfile(name):
            reason = "expected a file, got a folder" if os.path.isdir(name) else "No such file"
            raise EvalSetError(f"{name}: {reason}")
        return _read_file(name)
    folder = TemporaryFolder()
    path = folder.file(f"text{compression_of(name)}")
    fetch_url(name, path)
    with naming(path, name):
        return _read_file(path)


def _read_file(path: str) -> bytes:
    parts: list[bytes] = []
    with opened(path) as stream:
        while chunk := stream.read(1 << 20):
            parts.append(chunk)
            require_bounded(path, sum(map(len, parts)))
    return b"".join(parts)
