"""Files → record batches of cells, streamed; and rows → files, written whole or not at all.

    .jsonl .ndjson   one object a line      each cell keeps its JSON text: nothing is parsed twice
    .json            an array of objects    read element by element in a sliding window
    .csv .tsv        RFC 4180               every cell is text, a blank one is absent
    .parquet .pq     any Arrow types        one page at a time: memory does not grow with the row group

Text files may be compressed (.gz, .bz2, .zst). Memory does not grow with the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Raw

from agent_eval_schema import jsontext
from agent_eval_schema.cells import (
    Problem,
    filtered,
    is_json_column,
    make_batch,
    native,
    own_columns,
    repeated,
    without_marks,
)
from agent_eval_schema.diagnose import describe
from agent_eval_schema.frames import Source, canonical_values, rows_per_batch
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.rules import reading
from agent_eval_schema.visible import visible

CHUNK = 1 << 20
"""Bytes that are read from a text file at once."""

TEXT_BATCH_BYTES = 8 << 20

COMPRESSIONS = (".gz", ".bz2", ".zst")


def open_file(path: str) -> Source:
    """The source for a file, by its ending. Raises EvalSetError if there is no such file or it is not a table."""
    _require_file(path)
    read = _READERS.get(_ending(path))
    if read is None:
        known = ", ".join(_READERS)
        raise EvalSetError(f"{path}: cannot tell the kind of file from its name: expected one of {known}")
    kind, batches, columns = read
    _require_utf8_family(path, kind)
    names = columns(path)
    return Source(
        kind=kind,
        batches=lambda: batches(path),
        take=lambda mask: frame_of(rows_where(batches(path), mask)),
        name=path,
        nests=kind in ("jsonl", "json"),
        repeated_columns=repeated(names),
    )


def _require_file(path: str) -> None:
    if os.path.isdir(path):
        raise EvalSetError(f"{path}: is a directory: give a file")
    if not os.path.exists(path):
        raise EvalSetError(f"{path}: no such file")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be read: {error.strerror}") from error


def _ending(path: str) -> str:
    name = path.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return os.path.splitext(name)[1]


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """The file's bytes, decompressed by its ending."""
    compression = pa.Codec.detect(visible(path)).name if path.lower().endswith(COMPRESSIONS) else None
    try:
        with open(path, "rb") as file, pa.input_stream(file, compression=compression) as stream:
            yield stream
    except (OSError, pa.ArrowException) as error:
        raise EvalSetError(f"{path}: cannot be read: {error}") from error


def _require_utf8_family(path: str, kind: str) -> None:
    """A file in UTF-16 or UTF-32 is not a text that has a wrong byte somewhere: no line of it can be read."""
    if kind == "parquet":
        return
    with _opened(path) as stream:
        head = stream.read(4)
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        if head.startswith(mark):
            raise EvalSetError(f"{path}: line 1: expected UTF-8, got UTF-16 or UTF-32: save the file as UTF-8")


# ---------------------------------------------------------------------------------------------------------------------
# JSON Lines


_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode


def _jsonl_batches(path: str) -> Iterator[pa.RecordBatch]:
    builder = _CellBuilder()
    for number, line in enumerate(_lines(path), start=1):
        if not line or line.isspace():
            continue
        builder.add(line, f"line {number}")
        if builder.full:
            yield builder.take()
    if builder.size:
        yield builder.take()


def _lines(path: str) -> Iterator[bytes]:
    """The lines of a file without their ends; a BOM and CRLF are no part of a line."""
    with _opened(path) as stream:
        rest, first = [b""], True
        while chunk := stream.read(CHUNK):
            if first:
                chunk, first = chunk.removeprefix(codecs.BOM_UTF8), False
            head, newline, tail = chunk.rpartition(b"\n")
            if newline:
                rest.append(head)
                yield from b"".join(rest).split(b"\n")
                rest = [tail]
            else:
                rest.append(chunk)
        if last := b"".join(rest):
            yield last


class _CellBuilder:
    """Objects as JSON text, one after the other → a batch whose cells are the texts of their values."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._bytes = 0
        self._cells: dict[str, list[bytes | None]] = {}
        self._problems: dict[int, list[Problem]] = {}
        self._lines: dict[int, str] = {}

    @property
    def full(self) -> bool:
        return self._bytes >= TEXT_BATCH_BYTES or self.size >= 8192

    def add(self, text: bytes, where: str, problem: str = "") -> None:
        """Take the next object; with a `problem`, the text is no row, and that is why."""
        row: dict[str, Raw] = {}
        try:
            if problem:
                raise _NoRow(problem)
            text.isascii() or text.decode()
            row = _decode_object(text)
        except (msgspec.MsgspecError, ValueError, RecursionError, _NoRow) as error:
            self._problems[self.size] = [_row_problem(text, where, error)]
            self._lines[self.size] = text.decode("utf-8", "replace")
        for name, raw in row.items():
            column = self._cells.get(name)
            if column is None:
                column = self._cells[name] = [None] * self.size
            cell = bytes(raw)  # not a memoryview: pyarrow 25 never releases one that it made an array of
            column.append(None if cell == b"null" else cell)
        self.size += 1
        self._bytes += len(text)
        if len(row) < len(self._cells):
            for column in self._cells.values():
                if len(column) < self.size:
                    column.append(None)

    def take(self) -> pa.RecordBatch:
        columns = {n: (pa.array(cells, pa.binary()).cast(pa.string()), True) for n, cells in self._cells.items()}
        batch = make_batch(columns, self._problems, self.size, self._lines)
        self._clear()
        return batch


class _NoRow(Exception):
    pass


def _row_problem(text: bytes, where: str, error: Exception) -> Problem:
    """Why a line is not a row, with its number (and the byte in it)."""
    if isinstance(error, _NoRow):
        return None, reading.MALFORMED_ROW.code, f"{where}: {error}"
    if isinstance(error, UnicodeDecodeError):
        byte = f"0x{error.object[error.start]:02X} at byte {error.start}"
        return None, reading.NOT_UTF8.code, f"{where}: expected UTF-8, got the byte {byte}"
    value = jsontext.parse(text)
    if isinstance(value, jsontext.Malformed):
        rule = reading.MALFORMED_ROW if value.rule is reading.MALFORMED_JSON else value.rule
        return None, rule.code, f"{where}: {value.message}"
    return None, reading.NOT_A_ROW.code, f"{where}: expected an object with columns, got {describe(value)}"


# ---------------------------------------------------------------------------------------------------------------------
# JSON: an array of objects (or one object)


def _json_batches(path: str) -> Iterator[pa.RecordBatch]:
    builder = _CellBuilder()
    for number, (text, problem) in enumerate(_elements(path), start=1):
        builder.add(text, f"element {number}", problem)
        if builder.full:
            yield builder.take()
    if builder.size:
        yield builder.take()


def _elements(path: str) -> Iterator[tuple[bytes, str]]:
    """The texts of the elements of a JSON array, or the one text if the file is not an array.

    Elements end where a comma or the closing bracket stands outside of strings and brackets. What follows a place that
    cannot be JSON comes as one last element, with the reason why it is none: nothing is dropped.
    """
    window = _Window(path)
    start = window.skip_blanks(0)
    if window.byte(start) != b"[":
        rest = window.rest(start)
        if rest:
            yield rest, ""
        return
    at = window.skip_blanks(start + 1)
    closed = window.byte(at) == b"]"
    while not closed:
        if window.byte(at) in (b"", b"]"):
            yield (
                window.rest(at),
                "expected another element of the array" + ("" if window.byte(at) else ", the file ends"),
            )
            return
        end = window.end_of_value(at)
        yield window.text(at, end), ""
        at = window.skip_blanks(window.release(end))
        byte = window.byte(at)
        closed = byte == b"]"
        if byte == b",":
            at = window.skip_blanks(at + 1)
        elif not closed:
            yield window.rest(at), "expected a comma or the end of the array" + ("" if byte else ", the file ends")
            return
    rest = window.rest(at + 1)
    if rest:
        yield rest, "expected nothing after the array"


class _Window:
    """A sliding window over a file's bytes: only the element that is being read is in memory."""

    def __init__(self, path: str) -> None:
        self._chunks = self._read(path)
        self._data = bytearray(next(self._chunks, b"").removeprefix(codecs.BOM_UTF8))

    @staticmethod
    def _read(path: str) -> Iterator[bytes]:
        with _opened(path) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._data += chunk
        return bool(chunk)

    def byte(self, at: int) -> bytes:
        while at >= len(self._data):
            if not self._more():
                return b""
        return bytes(self._data[at : at + 1])

    def skip_blanks(self, at: int) -> int:
        while (byte := self.byte(at)) and byte in b" \t\r\n":
            at += 1
        return at

    def text(self, start: int, end: int) -> bytes:
        return bytes(self._data[start:end])

    def rest(self, start: int) -> bytes:
        while self._more():
            pass
        return bytes(self._data[start:]).strip()

    def release(self, end: int) -> int:
        """Forget what was read up to `end`; returns where that place is now."""
        if end < CHUNK:
            return end
        del self._data[:end]
        return 0

    def end_of_value(self, start: int) -> int:
        """The place behind the value that begins at `start` (the end of the file if it does not end)."""
        at, depth = start, 0
        while True:
            found = (_INSIDE if depth else _OUTSIDE).search(self._data, at)
            if found is None:
                at = len(self._data)
                if not self._more():
                    return len(self._data)
                continue
            byte = found.group()
            if byte == b'"':
                at = self._end_of_string(found.end())
            elif byte in (b"[", b"{"):
                depth, at = depth + 1, found.end()
            elif depth == 0:
                return found.start()
            else:
                depth, at = depth - 1, found.end()
                if depth == 0:
                    return at

    def _end_of_string(self, start: int) -> int:
        """The place behind the closing quote. A step takes 64 KiB at most and never goes back: strings may be large."""
        at = start
        while True:
            found = _STRING_PART.match(self._data, at, min(len(self._data), at + 65536))
            at = found.end() if found else at
            if self._data[at : at + 1] == b'"':
                return at + 1
            if at + 1 >= len(self._data) and not self._more():
                return len(self._data)


_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\[\]{}]')
_STRING_PART = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


# ---------------------------------------------------------------------------------------------------------------------
# CSV


class _Record(NamedTuple):
    """One record of a CSV file: the line where it starts, its fields, its text, and what is wrong with it."""

    line: int
    fields: list[str]
    text: str
    error: str


def _csv_batches(path: str) -> Iterator[pa.RecordBatch]:
    with _opened(path) as stream:
        records = _records(stream, path)
        header = _header(path, records)
        rows: list[_Record] = []
        size = 0
        for record in records:
            rows.append(record)
            size += len(record.text)
            if size >= TEXT_BATCH_BYTES or len(rows) >= 8192:
                yield _csv_batch(header, rows)
                rows, size = [], 0
        if rows:
            yield _csv_batch(header, rows)


def _csv_columns(path: str) -> list[str]:
    with _opened(path) as stream:
        return _header(path, _records(stream, path))


def _header(path: str, records: Iterator[_Record]) -> list[str]:
    first = next(records, _Record(1, [], "", ""))
    if first.error:
        raise EvalSetError(f"{path}: line 1: the header cannot be read: {first.error}")
    wrong = _wrong_byte(first.text)
    if wrong:
        raise EvalSetError(
            f"{path}: line 1: expected UTF-8 in the header, got the byte {wrong}: save the file as UTF-8"
        )
    return [n.strip() for n in first.fields]


def _records(stream: IO[bytes], path: str) -> Iterator[_Record]:
    """The records one by one. Blank lines are no records."""
    csv.field_size_limit(1 << 30)
    lines = _TextLines(stream)
    reader = csv.reader(lines, delimiter="\t" if ".tsv" in path.lower() else ",", strict=True)
    while True:
        lines.taken.clear()
        start = lines.number + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            yield _Record(start, [], "".join(lines.taken), str(error))
            continue
        if fields is None:
            return
        if lines.nul and fields:
            fields = [f.replace(_NUL, "\0") for f in fields]
        if fields:
            yield _Record(start, fields, "".join(lines.taken), "")


class _TextLines:
    """The lines of a byte stream as text, remembered for error messages; a wrong byte stays visible as a surrogate."""

    def __init__(self, stream: IO[bytes]) -> None:
        # newline="": a quoted newline stays as it is, and only \n, \r and \r\n end a line
        self._lines = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
        self.number = 0
        self.nul = False
        self.taken: list[str] = []

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        line = self._lines.readline()
        if not line:
            raise StopIteration
        self.number += 1
        self.taken.append(line)
        if "\0" in line:  # which the csv module of Python 3.10 refuses
            self.nul = True
            return line.replace("\0", _NUL)
        return line


_NUL = "\U0010fffe"
"""Stands for NUL while the csv module reads: a code point that Unicode gives to nobody."""


def _csv_batch(header: list[str], records: list[_Record]) -> pa.RecordBatch:
    problems: dict[int, list[Problem]] = {}
    rows: list[list[str]] = []
    lines: dict[int, str] = {}
    for i, record in enumerate(records):
        problem = _record_problem(header, record)
        if problem is not None:
            problems[i] = [problem]
            lines[i] = record.text.rstrip("\r\n").encode("utf-8", "replace").decode()
        rows.append(record.fields if problem is None else [""] * len(header))
    places = {n: c for c, n in reversed(list(enumerate(header)))}
    columns = {n: (_texts(row[places[n]] for row in rows), False) for n in dict.fromkeys(header)}
    return make_batch(columns, problems, len(rows), lines)


def _texts(cells: Iterable[str]) -> pa.Array:
    return pa.array([c or None for c in cells], pa.string())


def _record_problem(header: list[str], record: _Record) -> Problem | None:
    where = f"line {record.line}"
    if record.error:
        return None, reading.MALFORMED_ROW.code, f"{where}: expected CSV after RFC 4180, got: {record.error}"
    if len(record.fields) != len(header):
        message = f"{where} has {len(record.fields)} fields, the header has {len(header)}"
        return None, reading.MALFORMED_ROW.code, message
    for name, field in zip(header, record.fields, strict=True):
        wrong = _wrong_byte(field)
        if wrong:
            return None, reading.NOT_UTF8.code, f"{where}: expected UTF-8 in `{name}`, got the byte {wrong}"
    return None


def _wrong_byte(text: str) -> str:
    """The first byte that was not UTF-8, which Python keeps as a surrogate."""
    wrong = next((c for c in text if "\udc80" <= c <= "\udcff"), None) if not text.isascii() else None
    return f"0x{ord(wrong) - 0xDC00:02X}" if wrong else ""


# ---------------------------------------------------------------------------------------------------------------------
# Parquet


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    try:
        # A buffered stream reads page by page; without it a whole row group's columns would be in memory.
        with open(path, "rb") as file, pq.ParquetFile(file, buffer_size=CHUNK, pre_buffer=False) as table:
            yield table
    except (OSError, pa.ArrowException) as error:
        raise EvalSetError(f"{path}: cannot be read as Parquet: {error}") from error


def _parquet_batches(path: str) -> Iterator[pa.RecordBatch]:
    with _parquet(path) as file:
        metadata = file.metadata
        per_row = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        step = rows_per_batch(per_row / max(metadata.num_rows, 1))
        if metadata.num_rows == 0:
            yield without_marks(pa.RecordBatch.from_pylist([], schema=file.schema_arrow))
        for batch in file.iter_batches(batch_size=step):
            yield without_marks(batch)


def _parquet_columns(path: str) -> list[str]:
    with _parquet(path) as file:
        return list(file.schema_arrow.names)


def _any_columns(_: str) -> list[str]:
    """Every line of a JSON file may bring its own; a repeated key is the same key."""
    return []


_Reader = tuple[str, Callable[[str], Iterator[pa.RecordBatch]], Callable[[str], list[str]]]

_READERS: dict[str, _Reader] = {
    ".jsonl": ("jsonl", _jsonl_batches, _any_columns),
    ".ndjson": ("jsonl", _jsonl_batches, _any_columns),
    ".json": ("json", _json_batches, _any_columns),
    ".csv": ("csv", _csv_batches, _csv_columns),
    ".tsv": ("csv", _csv_batches, _csv_columns),
    ".parquet": ("parquet", _parquet_batches, _parquet_columns),
    ".pq": ("parquet", _parquet_batches, _parquet_columns),
}


# ---------------------------------------------------------------------------------------------------------------------
# rows back


def rows_where(batches: Iterable[pa.RecordBatch], mask: np.ndarray[Any, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a stream where the mask is true, with their original cells."""
    start = 0
    for batch in batches:
        part = mask[start : start + batch.num_rows]
        start += batch.num_rows
        if part.any():
            yield filtered(batch, part)


def frame_of(batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
    """Original cells as a frame of the values that stand in the file."""
    parts = [_frame(batch) for batch in batches]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _frame(batch: pa.RecordBatch) -> pd.DataFrame:
    columns = {batch.schema.names[i]: pd.Series(native(batch, i), dtype="object") for i in own_columns(batch.schema)}
    return pd.DataFrame(columns, index=pd.RangeIndex(batch.num_rows))


# ---------------------------------------------------------------------------------------------------------------------
# writing


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """A temporary name beside `path` that takes its place when the block ends well: the old file or the new one, never
    half of one. Raises EvalSetError if the place cannot be written."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror}") from error
    os.close(handle)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise EvalSetError(f"{path}: cannot be written: {error.strerror or error}") from error
    except pa.ArrowException as error:  # a type that the format does not have
        raise EvalSetError(f"{path}: cannot be written: {error}") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str, text: str) -> None:
    with replacing(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def write_batches(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a JSONL or Parquet file, by its ending. Returns the number of rows.

    `schema` names all columns: a batch may lack some, and then they are null.
    """
    require_writable(path)
    with replacing(path) as temporary:
        return _WRITERS[_written_ending(path)](temporary, batches, schema)


def require_writable(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    if _written_ending(path) not in _WRITERS:
        raise EvalSetError(f"{path}: cannot tell the kind of file from its name: expected {' or '.join(_WRITERS)}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise EvalSetError(f"{path}: cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise EvalSetError(f"{path}: cannot be written")


def _written_ending(path: str) -> str:
    return os.path.splitext(path.lower())[1]


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
        return [None if v is None else v.encode() for v in batch.column(at).to_pylist()]
    values = canonical_values(batch.column(at), batch.schema.field(at))
    return [None if v is None else _encode(v) for v in values]


_encode = msgspec.json.Encoder(enc_hook=str).encode


def _write_parquet(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    schema = pa.schema([f.remove_metadata() for f in schema])
    _require_parquet_types(schema)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            table = fitted(batch, schema)
            try:
                writer.write_table(table)
            except pa.ArrowException as error:
                raise pa.ArrowInvalid(f"the column {_culprit(table)!r}: {error}") from error
            count += batch.num_rows
    return count


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
    texts = [jsontext.parse_leniently(t) if t is not None and t[:1] == '"' else t for t in array.to_pylist()]
    return pa.array(texts, pa.string())


_WRITERS = {".jsonl": _write_jsonl, ".ndjson": _write_jsonl, ".parquet": _write_parquet, ".pq": _write_parquet}
