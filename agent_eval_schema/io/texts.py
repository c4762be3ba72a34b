"""Texts, from every place that rows are read from: a file, a compressed one, a URL, stdin (`-`), a named pipe."""

from __future__ import annotations

import os

from agent_eval_schema.io.places import compression_of, is_pipe, is_url
from agent_eval_schema.io.remote import fetch_url
from agent_eval_schema.io.stdin import stdin_as_file
from agent_eval_schema.io.streams import STDIN, naming, opened, require_bounded
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder


def read_bytes(name: str) -> bytes:
    """What is in a place. Raises EvalSetError if it cannot be read, or is too large for memory."""
    if name == STDIN:
        with stdin_as_file() as path:
            return _read(path)
    if is_pipe(name):
        with open(name, "rb") as pipe:
            return pipe.read()
    if not is_url(name):
        if not os.path.isfile(name):
            reason = "expected a file, got a folder" if os.path.isdir(name) else "No such file"
            raise EvalSetError(f"{name}: {reason}")
        return _read(name)
    folder = TemporaryFolder()
    path = folder.file(f"text{compression_of(name)}")
    fetch_url(name, path)
    with naming(path, name):
        return _read(path)


def _read(path: str) -> bytes:
    parts: list[bytes] = []
    with opened(path) as stream:
        while chunk := stream.read(1 << 20):
            parts.append(chunk)
            require_bounded(path, sum(map(len, parts)))
    return b"".join(parts)
