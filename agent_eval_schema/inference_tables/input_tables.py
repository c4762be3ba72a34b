"""The tables that a build reads: their columns, and their identity when a build is resumed."""

from __future__ import annotations

import os
import time
from typing import Any

from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.formats.inference_tables import detect_family
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.options import BuildOptions, aliases_of
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.parquet import parquet_columns
from agent_eval_schema.io.places import files_of
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.streams import STDIN_NAME
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
    naming = (options.where, options.stratify, options.balance_by, options.column_map)
    if source.vary and (any(option is not None for option in naming) or not _is_known(names, options)):
        return [str(n) for n in schema_of(source).names]
    return names


def _is_known(names: list[str], options: BuildOptions) -> bool:
    if options.family != "auto":
        return True
    try:
        detect_family(names, aliases_of(options.column_map))
    except EvalSetError:
        return False
    return True


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
