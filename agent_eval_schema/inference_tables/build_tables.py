"""The tables that a build reads, and the rows that it writes.

Read: the columns of a table, and its identity when a build is resumed. Written: larger batches, into a file or a new
Delta table, and read again from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.cells.sizes import joined
from agent_eval_schema.formats.inference_tables import detect_family, fields_of
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.options import BuildOptions
from agent_eval_schema.inference_tables.work_folder import WorkFolder
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.parquet import parquet_columns
from agent_eval_schema.io.places import ending_of, files_of
from agent_eval_schema.io.source import Source, rows_where, schema_of
from agent_eval_schema.io.streams import STDIN_NAME
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.issues import EvalSetError


def table_columns(source: Source, table: Any, options: BuildOptions) -> list[str]:
    """The columns of a table: for Parquet those of all files; for a table whose rows have columns of their own, those
    of the first batch, or of all if these do not identify it, or an option may name another one."""
    if source.kind == "parquet" and source.path is not None:
        return parquet_columns(source.path)
    first = source.head()
    if first is None:  # data in memory without rows has columns all the same
        return [str(n) for n in getattr(table, "column_names", getattr(table, "columns", ()))]
    names = column_names(first.schema)
    if source.vary:
        naming = (options.where, options.stratify, options.balance_by, options.columns)
        try:
            if options.format == "auto":
                detect_family(names, fields_of(options.columns))
        except EvalSetError:
            return [str(n) for n in schema_of(source).names]
        if any(option is not None for option in naming):
            return [str(n) for n in schema_of(source).names]
    return names


def inputs_of(source: Source, options: BuildOptions) -> list[dict[str, Any]]:
    """The inputs of a build: each file with its size and modification time, so that a changed one is detected."""
    others = [open_source(table).name for table in options.tables.values()]
    # A URL or stdin may be another table each time: the results of the last one are not reused.
    return [
        input_of(name) | ({"fetched_ns": time.time_ns()} if "://" in name or name == STDIN_NAME else {})
        for name in (source.name, *others)
        if name is not None
    ]


def input_of(path: str) -> dict[str, Any]:
    """A file, or the files of a folder or glob, by name, size and time; a version of a Delta folder by its name, which
    holds the version."""
    files = [] if is_delta(path) else [os.stat(name) for name in files_of(path) if os.path.exists(name)]
    if not files:
        return {"path": path}
    found = {"path": path, "bytes": sum(s.st_size for s in files), "modified_ns": max(s.st_mtime_ns for s in files)}
    return found if os.path.isfile(path) else {**found, "files": len(files)}


ROWS_AT_LEAST, BYTES_AT_LEAST = 1_024, 4 << 20
"""Rows are written in batches of one of these sizes or more, however few of them each part of the table has."""


def regrouped(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches, at least one (without rows, if there are none)."""
    rows = 0
    for batch in joined(batches, ROWS_AT_LEAST, BYTES_AT_LEAST):
        rows += batch.num_rows
        yield batch
    if not rows:
        yield pa.RecordBatch.from_pylist([], schema=schema)


def stored_rows(rows: Iterator[pa.RecordBatch], work: WorkFolder, out: str | None, schema: pa.Schema) -> Source:
    """Write the rows where they belong; gives the source that reads them again."""
    if out is not None:
        write_rows(out, rows, schema)
        return open_source(out)
    path = work.write_rows(rows)

    def batches() -> Iterator[pa.RecordBatch]:
        return work.read_rows(path)

    return Source("arrow", batches, lambda mask: frame_of(rows_where(batches(), mask)), nests=False)


def write_rows(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a Parquet or JSONL file, by its file extension, or else into a new Delta table; whole or not at
    all."""
    if ending_of(path):
        return write_batches(path, batches, schema)
    from agent_eval_schema.io.delta import write_delta

    return write_delta(path, batches, schema)


def require_out(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    if ending_of(path):
        require_writable(path)
        return
    from agent_eval_schema.io.delta import require_new_delta

    require_new_delta(path)
