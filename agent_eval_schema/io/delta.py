"""A Delta table in a folder → batches of cells, by the log of one version; and batches → a new Delta table.

    table/            the last version when it was opened: every reading of a source reads that one
    table@v12         version 12; as this is also the name that a report gives, a set can be checked again as it was

delta-rs reads, as it supports all features of a log (deletion vectors, column mapping, columns that were added later):
with its SQL engine in one partition. With several, as in `DeltaTable.scan`, the rows come in another order each time as
soon as a predicate skips files (measured: delta-rs 1.6.6), and a report identifies rows by their position.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from agent_eval_schema.cells.arrow import cast_all, changed, without_view
from agent_eval_schema.cells.batch import without_marks
from agent_eval_schema.cells.sizes import split_batches
from agent_eval_schema.errors import EvalSetError, missing
from agent_eval_schema.io.arrow import fitted
from agent_eval_schema.io.atomic import OpenedFiles, as_new_folder, require_local_place
from agent_eval_schema.io.pandas import frame_of
from agent_eval_schema.io.places import is_url
from agent_eval_schema.io.source import BATCH_BYTES, CUT_BYTES, SAMPLED_ROWS, Source, rows_per_batch, rows_where
from agent_eval_schema.io.streams import Position
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    from deltalake import DeltaTable


def open_delta(name: str) -> Source:
    """The source for a Delta folder, `table` or `table@v12`. Raises EvalSetError for a broken log or a missing file."""
    table, position = open_table(name), Position()
    files = _files(table)
    opened_files = OpenedFiles(version := f"{folder_of(name)[0]}@v{table.version()}", lambda: _paths(name, table))
    position.rows = sum(n or 0 for n in files["num_records"].to_pylist())
    return Source(
        kind="delta",
        batches=lambda: opened_files.reading(lambda: delta_batches(table)),
        take=lambda mask: frame_of(rows_where(opened_files.reading(lambda: delta_batches(table)), mask)),
        name=version,
        path=version,
        columns=tuple(field.name for field in table.schema().fields),
        can_hold_objects=False,
        read_share=position.share,
        stored_bytes=sum(n or 0 for n in files["size_bytes"].to_pylist()),
    )


def open_table(name: str) -> DeltaTable:
    """The table of delta-rs for `table` or `table@v12`; all that is read from it is of one version.

    Raises EvalSetError if the log cannot be read, or lists a data file that is missing.
    """
    folder, version = folder_of(name)
    _require_plain_name(folder)
    deltalake = _deltalake()
    with _reporting_errors(name):
        try:
            table: DeltaTable = deltalake.DeltaTable(folder, version=version)
        except deltalake.exceptions.DeltaError as error:  # whose message mentions segments of its log
            if version is not None and version > (newest := deltalake.DeltaTable(folder).version()):
                raise EvalSetError(f"{name}: unknown version {version}: the newest is {newest}") from error
            raise
        for log in sorted(Path(folder, "_delta_log").glob("*.json")):  # delta-rs takes it for a version without changes
            if not log.stat().st_size and log.stem <= f"{table.version():020}":
                raise OSError(f"the log has an empty file: {log}")
        # a file of the log that does not exist is reported before the work, not in the middle of it
        if gone := _first_gone(folder, table):
            raise EvalSetError(
                f"{name}: the log of version {table.version()} lists a data file that is missing: {gone}: "
                f"{_restore(folder, table.version())}"
            )
    return table


def _first_gone(folder: str, table: DeltaTable) -> str | None:
    return next((place for place in _paths(folder, table) if not os.path.exists(place)), None)


def _restore(folder: str, version: int) -> str:
    """What to do about a missing file: the last version without it, if it is one of the last before this one."""
    for older in reversed(range(max(0, version - MOST_OLDER), version)):
        with suppress(Exception):  # the log of an older version may be gone
            if not _first_gone(folder, _deltalake().DeltaTable(folder, version=older)):
                return f"restore it, or read the last version without it: {folder}@v{older}"
    return "restore it from a copy"


MOST_OLDER = 10
"""Versions that are looked at when a file is missing."""


def delta_batches(table: DeltaTable) -> Iterator[pa.RecordBatch]:
    """The rows of a table, always in the same order; one batch without rows if there are none.

    Memory holds a row group of one file, whatever the size of the table. Raises EvalSetError if a file cannot be read.
    """
    from urllib.request import url2pathname  # which imports an HTTP client

    query, place = "SELECT * FROM t", url2pathname(urlsplit(table.table_uri).path).rstrip("/")
    with _reporting_errors(f"{place}@v{table.version()}"):
        head = list(_query(table, f"{query} LIMIT {SAMPLED_ROWS}", SAMPLED_ROWS))
        size = sum(b.nbytes for b in head) / max(sum(b.num_rows for b in head), 1)
        yield from _query(table, query, rows_per_batch(size))


def _query(table: DeltaTable, query: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The answer in batches of about this many rows, at least one; without storage's own types and marks."""
    settings = {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": str(rows)}
    builder = _deltalake().QueryBuilder(settings).register("t", table)
    reader = pa.RecordBatchReader.from_stream(builder.execute(query))
    empty = True
    for batch in split_batches(reader, BATCH_BYTES, CUT_BYTES):  # a view has a text once for many rows
        empty = False
        yield without_marks(cast_all(batch, without_view))
    if empty:
        yield without_marks(cast_all(pa.RecordBatch.from_pylist([], schema=reader.schema), without_view))


# --- types
_STORED = {
    "null": pa.string(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.int64(),
    "halffloat": pa.float32(),
}
"""Types that Delta does not have, as those with the same content; a number too large for its type is an error."""


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return _STORED.get(str(kind), without_view(kind))


# --- the log
def _files(table: DeltaTable) -> pa.Table:
    return pa.table(table.get_add_actions())


def _paths(name: str, table: DeltaTable) -> list[str]:
    """The data files of a version that are in its folder; the log writes their names as URIs."""
    folder, paths = folder_of(name)[0], _files(table)["path"].to_pylist()
    return [os.path.join(folder, unquote(path)) for path in paths if ":" not in path.partition("/")[0]]


@contextmanager
def _reporting_errors(name: str) -> Iterator[None]:
    """An error of delta-rs as one line: its own errors continue with the place in its code."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        why = f"cannot be read as a Delta table: {first_line(error).partition(': ParsedLogPath')[0]}"
        raise EvalSetError(f"{name}: {why}: restore its files from a copy, or read it with Spark") from error


def _deltalake() -> Any:
    try:
        import deltalake
        from deltalake import DeltaTable, QueryBuilder  # noqa: F401 (older versions have less)
    except ImportError as error:
        raise missing("delta", "deltalake 1.6.6", error) from None
    if not hasattr(deltalake.DeltaTable, "scan"):  # came with the settings of a query, without which rows have no order
        raise missing("delta", "deltalake 1.6.6", ImportError(f"there is {deltalake.__version__}"))
    return deltalake


def _require_plain_name(folder: str) -> None:
    if "%" in os.path.abspath(folder):
        raise EvalSetError(
            f"{folder}: delta-rs takes a % in a folder's name for the beginning of an escape and would look elsewhere: "
            "rename the folder"
        )


# --- writing
def write_delta(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a new Delta table: a folder that appears, log and all, when they are written. Returns how many.

    `schema` names all columns, as for `write_batches`. The table does not keep the order of the rows, as no Delta table
    does. A folder that holds anything is left alone: it may be the table that the rows come from. Raises EvalSetError
    if there is one, or a column has a type that Delta does not have.
    """
    require_new_delta(path)
    deltalake = _deltalake()
    from deltalake import Schema

    fields = [pa.field(f.name, changed(f.type, _stored)) for f in schema]
    for field in fields:
        try:
            Schema.from_arrow(pa.schema([field]))
        except Exception as error:  # delta-rs has no type for it
            raise EvalSetError(
                f"{path}: cannot be written: the column {field.name!r} of type {field.type}: {first_line(error)}"
            ) from error
    schema, count, failure = pa.schema(fields), 0, list[Exception]()

    def read() -> Iterator[pa.RecordBatch]:
        nonlocal count
        try:
            for batch in batches:
                yield from fitted(batch, schema).to_batches()
                count += batch.num_rows
        except Exception as error:  # delta-rs would pass it on as its own
            failure.append(error)
            raise

    with as_new_folder(path) as temporary:
        try:
            deltalake.write_deltalake(temporary, pa.RecordBatchReader.from_batches(schema, read()))
        except Exception as error:  # of delta-rs, whose types differ from version to version, or of the rows
            if not failure or isinstance(failure[0], pa.ArrowException):
                raise EvalSetError(f"{path}: cannot be written: {first_line([*failure, error][0])}") from error
            raise failure[0] from None
    return count


def require_new_delta(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if no new Delta table can be made at `path`."""
    if is_url(path):
        require_local_place(path)
    _require_plain_name(path)
    if os.path.isdir(path) and not os.listdir(path):
        return
    if os.path.lexists(path):
        raise EvalSetError(f"{path}: there is something already: a new Delta table is written to a new folder")
    require_local_place(path)


def is_delta(path: str) -> bool:
    """Whether this is the name of a Delta table, `folder` or `folder@v12`: a folder with a log."""
    return os.path.isdir(os.path.join(folder_of(path)[0], "_delta_log"))


def folder_of(path: str) -> tuple[str, int | None]:
    """The folder and the version in the name of a Delta table: `("folder", 12)` for `folder@v12`."""
    found = _VERSIONED.fullmatch(path)
    return (path, None) if found is None or os.path.isdir(path) else (found[1], int(found[2]))


_VERSIONED = re.compile(r"(.+)@v(\d{1,18})", re.DOTALL)
