"""Files → record batches of cells, streamed, by their file extensions; and the original rows back.

    .jsonl .ndjson   one object a line      each cell keeps its JSON text: nothing is parsed twice
    .json            an array of objects    read element by element in a sliding window; also objects one by one
    .csv .tsv        RFC 4180               every cell is text, a blank one is absent
    .parquet .pq     any Arrow types        one page at a time: memory does not grow with the row group
    a Delta folder   any Arrow types        one row group at a time (delta.py)

Text files may be compressed (.gz, .bz2, .zst). A folder or a glob of files of one kind is read file by file, which may
have different columns. Memory does not grow with the files.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from agent_eval_schema.cells.batch import repeated
from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, reading_file
from agent_eval_schema.io.atomic import FileState, OpenedFiles
from agent_eval_schema.io.csv import above_header, csv_above, csv_batches, csv_columns, csv_lines
from agent_eval_schema.io.delta import is_delta, open_delta
from agent_eval_schema.io.json import holds_json, json_batches, json_elements
from agent_eval_schema.io.jsonl import jsonl_batches, jsonl_line_numbers
from agent_eval_schema.io.pandas import frame_of, numbered
from agent_eval_schema.io.parquet import (
    parquet_batches,
    parquet_columns,
    parquet_metadata,
    parquet_rows,
    parquet_shares,
)
from agent_eval_schema.io.parts import Batches, Lines, Parts, columns_of_folders, lines_of
from agent_eval_schema.io.places import KINDS, compression_of, ending_of, files_of, is_glob, require_one_kind
from agent_eval_schema.io.source import Source, rows_where
from agent_eval_schema.io.streams import CHUNK, COMPRESSIONS, Position, extension_of, opened
from agent_eval_schema.runtime.signals import TEMPORARY


def open_file(path: str) -> Source:
    """The source for a file, for the files of a folder or glob in the order of their names, or for a Delta folder.
    Raises EvalSetError."""
    if is_delta(path):
        return open_delta(path)
    several = os.path.isdir(path) or is_glob(path)
    # their states, before anything is read of them
    state, opened_files, files = FileState.of(path), OpenedFiles(path, lambda: files_of(path)), files_of(path)
    for file in files:
        _require_file(file)
    kind = require_one_kind(path, files)
    for file in files if kind != "parquet" else ():
        _require_text(file)
    if kind == "jsonl" and any(map(holds_json, files)):
        kind = "json"  # whose reader takes lines of objects, too
    read, is_parquet = _READERS[kind], kind == "parquet"
    parts, position = Parts(path, files, read.batches, read.count), Position()
    read_all = (lambda: parquet_batches(path, position)) if is_parquet else parts.batches
    by_file = [parquet_columns(path)] if is_parquet else [read.columns(file) for file in files]
    twice = dict.fromkeys(name for names in by_file for name in repeated(names))
    if any(by_file) and not is_parquet:
        by_file += [list(columns_of_folders(path, file)) for file in files]
    columns = [name for names in by_file for name in names]
    of_file = None if any(map(compression_of, files)) else read.lines

    def lines(rows: Iterable[int]) -> dict[int, int]:
        assert of_file is not None
        opened_files.require_unchanged()
        return parts.lines(of_file, rows) if several else lines_of(of_file, path, rows)

    return Source(
        kind=kind,
        batches=lambda: opened_files.reading(read_all),
        take=lambda mask: numbered(frame_of(rows_where(opened_files.reading(read_all), mask)), mask),
        name=path,
        path=path,
        columns=tuple(dict.fromkeys(columns) if several else columns) or None,
        metadata=parquet_metadata(path) if is_parquet else None,
        can_hold_objects=kind in ("jsonl", "json"),
        repeated_columns=tuple(twice),
        remarks=above_header(sum(map(csv_above, files))) if kind == "csv" else (),
        shares=partial(parquet_shares, path) if is_parquet else None,
        read_share=position.share if is_parquet else parts.read_share,
        lines=lines if of_file else None,
        stored_bytes=sum(map(os.path.getsize, files)) if several else None,
        ragged=not is_parquet if several else None,
        state=None if several else state,
        file_of=parts.file_of if several else None,
    )


def _require_file(path: str) -> None:
    if not os.path.exists(path):
        raise EvalSetNotFoundError(f"{path}: no such file")
    with reading_file(path), open(path, "rb") as file:
        head = file.read(64)
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        folder = os.path.dirname(path)
        command = shlex.join(["git", *(["-C", folder] if folder else []), "lfs", "pull"])
        raise EvalSetError(f"{path}: expected the data, got a pointer of Git LFS: run `{command}`")


def _require_text(path: str) -> None:
    """Reject what is no text, and a file in UTF-16, UTF-32 or Windows-1252, which does not just contain an invalid
    byte."""
    with opened(path) as stream:
        head = stream.read(CHUNK)
    packed = compression_of(path)
    if extension := extension_of(head[:4]):
        name = (ending_of(path) if extension in COMPRESSIONS else "") + extension
        advice = "unpack the file" if packed else f"save it under a name that ends with {name}"
        raise EvalSetError(f"{path}: expected text, got what a {extension} file begins with: {advice}")
    if _HTML.match(head):
        raise EvalSetError(f"{path}: expected rows, got an HTML page: log in, or use the address of the file itself")
    if _WIDE.match(head):
        raise EvalSetError(f"{path}: line 1: expected UTF-8, got UTF-16 or UTF-32: save the file as UTF-8")
    high = re.findall(rb"[\x80-\xff]+", head[: head.rfind(b"\n") + 1] or head)
    if len(high) > 1 and not any(part.decode(errors="ignore") for part in high):  # nothing of it is UTF-8
        with suppress(UnicodeDecodeError):
            b"".join(high).decode("cp1252")
            target = shlex.quote(".utf-8".join(os.path.splitext(path)))
            command = f"run `iconv -f cp1252 -t utf-8 {shlex.quote(path)} > {target}`"
            if packed or os.path.dirname(path) in TEMPORARY:  # of a URL or a stream, which iconv cannot open
                command = f"save it as UTF-8 {'before it is compressed' if packed else 'in a file'}"
            raise EvalSetError(f"{path}: expected UTF-8, got Windows-1252: {command}")


_HTML = re.compile(rb"\s*<(?:!doctype )?html\b", re.IGNORECASE)
_WIDE = re.compile(rb"\xff\xfe|\xfe\xff|\0\0(?:\xfe\xff|\0[^\0])|[^\0]\0(?:[^\0]|\0)\0|\0[^\0]\0[^\0]", re.DOTALL)
"""Texts in UTF-16 and UTF-32: with a mark, or a NUL in every character."""


def same_form(path: str, other: str) -> bool:
    """Whether two names are those of files of one form."""
    one, two = ending_of(path), ending_of(other)
    return one in KINDS and KINDS[one] == KINDS.get(two) and (one == ".tsv") == (two == ".tsv")


class _Reader(NamedTuple):
    """How a kind of file is read: its batches, its columns (JSON rows have their own), its row count, its lines."""

    batches: Batches
    columns: Callable[[str], list[str]]
    count: Callable[[str], int]
    lines: Lines | None = None


def _counted(items: Callable[[str], Iterator[Any]]) -> Callable[[str], int]:
    return lambda path: sum(1 for _ in items(path))


_READERS = {
    "jsonl": _Reader(jsonl_batches, lambda _: [], _counted(jsonl_line_numbers), jsonl_line_numbers),
    "json": _Reader(json_batches, lambda _: [], _counted(json_elements)),
    "csv": _Reader(csv_batches, csv_columns, _counted(csv_lines), csv_lines),
    "parquet": _Reader(parquet_batches, parquet_columns, parquet_rows),
}
