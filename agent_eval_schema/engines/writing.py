"""Rows and reports → files, written whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agent_eval_schema import jsontext
from agent_eval_schema.cells import is_json_column, is_text
from agent_eval_schema.frames import canonical_values
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.quoting import error_text


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


def write_batches(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a JSONL, JSON, CSV or Parquet file, or a new Delta folder `….delta`, by its ending. Returns how
    many.

    `schema` names all columns: a batch may lack some, and then they are null.
    """
    require_writable(path)
    if _written_ending(path) == DELTA:
        from agent_eval_schema.engines.delta import write_delta

        return write_delta(path, batches, schema)
    with replacing(path) as temporary:
        return _WRITERS[_written_ending(path)](temporary, batches, schema)


def require_writable(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    if _written_ending(path) == DELTA:
        from agent_eval_schema.engines.delta import require_new_delta

        return require_new_delta(path)
    if _written_ending(path) not in _WRITERS:
        known = " or ".join([*_WRITERS, DELTA])
        raise EvalSetError(f"{path}: cannot tell the kind of file from its name: expected {known}")
    return require_place(path)


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


DELTA = ".delta"
"""The ending by which the folder of a new Delta table is told from a file; one that is read needs none."""


def _written_ending(path: str) -> str:
    return os.path.splitext(path.lower().rstrip("/"))[1]


def _write_jsonl(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    count = 0
    with open(path, "wb") as file:
        for batch in batches:
            names = [n for n in schema.names if n in batch.schema.names]
            keys = [jsontext.encode(n) + b":" for n in names]
            columns = [_json_texts(batch, n) for n in names]
            for cells in zip(*columns, strict=True):
                given = [k + c for k, c in zip(keys, cells, strict=True) if c is not None]
                file.write(b"{" + b",".join(given) + b"}\n")
            count += batch.num_rows
    return count


def _json_texts(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    """Each cell as JSON; a cell that is JSON already goes out as it came in."""
    at = batch.schema.get_field_index(name)
    if is_json_column(batch.schema.field(at)):
        # An indented JSON file has line ends between the parts of a value (never inside of a text); a line must not.
        return [None if v is None else _ENDS.sub(" ", v).encode() for v in batch.column(at).to_pylist()]
    values = canonical_values(batch.column(at), batch.schema.field(at))
    return [None if v is None else _encode(v) for v in values]


def _write_json(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """A JSON array, a row a line."""
    lines = f"{path}.lines"
    try:
        count = _write_jsonl(lines, batches, schema)
        with open(lines, "rb") as rows, open(path, "wb") as file:
            between = b"[\n"
            for row in rows:
                file.write(between + row.rstrip(b"\n"))
                between = b",\n"
            file.write(b"\n]\n" if count else b"[]\n")
    finally:
        with suppress(FileNotFoundError):
            os.unlink(lines)
    return count


def _write_csv(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Texts as they are, anything else as JSON; an absent cell is empty."""
    count = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(schema.names)
        for batch in batches:
            columns = [_csv_cells(batch, n) for n in schema.names]
            writer.writerows(zip(*columns, strict=True))
            count += batch.num_rows
    return count


def _csv_cells(batch: pa.RecordBatch, name: str) -> list[str | None]:
    at = batch.schema.get_field_index(name)
    if at < 0:
        return [None] * batch.num_rows
    field = batch.schema.field(at)
    if is_json_column(field):
        values = as_text(batch.column(at)).to_pylist()
    else:
        values = canonical_values(batch.column(at), field)
    return [v if v is None or isinstance(v, str) else _csv_text(v) for v in values]


def _csv_text(value: Any) -> str:
    """A value as JSON, but what JSON has only as text (a time, a date) without its quotes."""
    encoded = _encode(value)
    return str(msgspec.json.decode(encoded)) if encoded[:1] == b'"' else encoded.decode()


_encode = msgspec.json.Encoder(enc_hook=str).encode
_ENDS = re.compile(r"[\r\n]+")


def _write_parquet(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    schema = pa.schema([f.remove_metadata() for f in schema])
    _require_parquet_types(schema)
    count = 0
    # The least and the greatest of large texts help nobody, and stay in memory until the file is closed.
    narrow = [f.name for f in schema if not is_text(f.type) and not pa.types.is_nested(f.type)]
    with pq.ParquetWriter(path, schema, write_statistics=narrow or False, **_PARQUET) as writer:
        for table in _in_groups(fitted(batch, schema) for batch in batches):
            try:
                writer.write_table(table)
            except pa.ArrowException as error:
                raise pa.ArrowInvalid(f"the column {_culprit(table)!r}: {error}") from error
            count += table.num_rows
    return count


GROUP_BYTES = 16 << 20
"""A row group of Parquet has at least so many bytes. What is said of a group stays in memory until the file is closed,
25 KB of an evaluation set: small groups would make memory grow with the file."""


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of that size; none of them is copied for it."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)


_PARQUET: dict[str, Any] = {"compression": "snappy", "use_dictionary": False}
"""Snappy takes half the time of zstd for half as much again of disk. Cells of an evaluation set hardly ever repeat, so
that a dictionary of them is made in vain."""


def _require_parquet_types(schema: pa.Schema) -> None:
    """Name the column whose type Parquet does not have."""
    for field in schema:
        try:
            pq.write_metadata(pa.schema([field]), io.BytesIO())
        except pa.ArrowException as error:
            raise pa.ArrowInvalid(f"the column {field.name!r} of type {field.type}: {error}") from error


def _culprit(table: pa.Table) -> str:
    for name in table.schema.names:
        try:
            pq.write_table(table.select([name]), io.BytesIO())
        except pa.ArrowException:
            return str(name)
    return "?"


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The batch with all columns of the schema, those of native values as text."""
    arrays = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        array = pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at)
        if at >= 0 and is_json_column(batch.schema.field(at)):
            array = as_text(array)
        arrays.append(array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=pa.schema([f.remove_metadata() for f in schema]))


def as_text(array: pa.Array) -> pa.Array:
    """JSON cells as text: a JSON string becomes the text that it says, anything else stays JSON."""
    if not pc.any(pc.starts_with(array, '"')).as_py():
        return array
    texts = [jsontext.parse_leniently(t) if t is not None and t[:1] == '"' else t for t in array.to_pylist()]
    return pa.array(texts, pa.string())


_WRITERS = {
    ".jsonl": _write_jsonl,
    ".ndjson": _write_jsonl,
    ".json": _write_json,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
}
