"""Files → record batches of cells, streamed, by their file extensions; and the original rows back.

    .jsonl .ndjson   one object a line      each cell keeps its JSON text: nothing is parsed twice
    .json            an array of objects    read element by element in a sliding window
    .csv .tsv        RFC 4180               every cell is text, a blank one is absent
    .parquet .pq     any Arrow types        one page at a time: memory does not grow with the row group
    a folder of them any Arrow types        file by file, which may have different columns
    a Delta folder   any Arrow types        one row group at a time (delta.py)

Text files may be compressed (.gz, .bz2, .zst). Memory does not grow with the file.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from agent_eval_schema.cells.batch import repeated
from agent_eval_schema.io.atomic import FileState
from agent_eval_schema.io.csv import csv_batches, csv_columns, csv_lines
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.json import json_batches
from agent_eval_schema.io.jsonl import jsonl_batches, jsonl_line_numbers
from agent_eval_schema.io.pandas import frame_of, numbered
from agent_eval_schema.io.parquet import files_of, parquet_batches, parquet_columns, parquet_metadata, parquet_shares
from agent_eval_schema.io.source import Source, rows_where
from agent_eval_schema.io.streams import COMPRESSIONS, Position, opened
from agent_eval_schema.issues import EvalSetError, EvalSetNotFoundError, cannot_read


def open_file(path: str) -> Source:
    """The source for a file, by its file extension, for a folder of Parquet files, or for a Delta folder. Raises
    EvalSetError if it does not exist or is not a table."""
    if is_delta(path):
        from agent_eval_schema.io.delta import open_delta

        return open_delta(path)
    folder = os.path.isdir(path)
    if folder:
        _require_parquet_in(path)
    else:
        _require_file(path)
    read = _PARQUET if folder else _READERS.get(_ending(path))
    if read is None:
        known = ", ".join(_READERS)
        raise EvalSetError(f"{path}: unknown file extension: expected one of {known}")
    kind, batches, columns, lines = read
    state = None if folder else FileState.of(path)  # before anything is read of it
    _require_utf8_family(path, kind)
    names, position = columns(path), Position()
    return Source(
        kind=kind,
        batches=lambda: batches(path, position),
        take=lambda mask: numbered(frame_of(rows_where(batches(path, None), mask)), mask),
        name=path,
        path=path,
        columns=tuple(names) or None,
        metadata=parquet_metadata(path) if kind == "parquet" else None,
        nests=kind in ("jsonl", "json"),
        repeated_columns=repeated(names),
        shares=partial(parquet_shares, path) if kind == "parquet" else None,
        read_share=position.share,
        lines=partial(_lines_of, lines, path) if lines and not _is_packed(path) else None,
        stored_bytes=sum(map(os.path.getsize, files_of(path))) if folder else None,
        state=state,
    )


def _require_parquet_in(folder: str) -> None:
    if not files_of(folder):
        raise EvalSetError(f"{folder}: is a directory without Parquet files: give a file, or a folder of Parquet files")


def _require_file(path: str) -> None:
    if not os.path.exists(path):
        raise EvalSetNotFoundError(f"{path}: no such file")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise cannot_read(path, error) from error


def _is_packed(path: str) -> bool:
    return path.lower().endswith(COMPRESSIONS)


def _ending(path: str) -> str:
    name = path.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return os.path.splitext(name)[1]


def _require_utf8_family(path: str, kind: str) -> None:
    """A file in UTF-16 or UTF-32 does not just contain an invalid byte: no line of it can be read."""
    if kind == "parquet":
        return
    with opened(path) as stream:
        head = stream.read(4)
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        if head.startswith(mark):
            raise EvalSetError(f"{path}: line 1: expected UTF-8, got UTF-16 or UTF-32: save the file as UTF-8")


def same_form(path: str, other: str) -> bool:
    """Whether two names are those of files of one form, the second one not compressed."""
    ending, plain = _ending(path), os.path.splitext(other.lower())[1]
    known = ending in _READERS and plain in _READERS and (ending == ".tsv") == (plain == ".tsv")
    return known and _READERS[ending][0] == _READERS[plain][0]


def _any_columns(_: str) -> list[str]:
    """Every line of a JSON file may bring its own; a repeated key is the same key."""
    return []


class _Reader(NamedTuple):
    """How a kind of file is read: its batches, its columns, and the lines of its rows if it has lines."""

    kind: str
    batches: Callable[[str, Position | None], Iterator[pa.RecordBatch]]
    columns: Callable[[str], list[str]]
    lines: Callable[[str], Iterator[int]] | None = None


_JSONL = _Reader("jsonl", jsonl_batches, _any_columns, jsonl_line_numbers)
_JSON = _Reader("json", json_batches, _any_columns)
_CSV = _Reader("csv", csv_batches, csv_columns, csv_lines)
_PARQUET = _Reader("parquet", parquet_batches, parquet_columns)

_READERS: dict[str, _Reader] = {
    ".jsonl": _JSONL,
    ".ndjson": _JSONL,
    ".json": _JSON,
    ".csv": _CSV,
    ".tsv": _CSV,
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
}


def _lines_of(lines: Callable[[str], Iterator[int]], path: str, rows: Iterable[int]) -> dict[int, int]:
    """The lines of these rows: the file is read again up to the last of them, nothing is kept for the others."""
    wanted, found = set(rows), dict[int, int]()
    for row, line in enumerate(lines(path) if wanted else ()):
        if row in wanted:
            found[row] = line
            if len(found) == len(wanted):
                break
    return found
