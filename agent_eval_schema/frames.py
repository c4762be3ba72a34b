"""Data → record batches of cells. The only module that knows pandas frames, lists and numpy inside cells.

A `Source` is what a check reads: it can be read more than once, in batches, and knows how to give back some of its rows
in the form in which they came.

    pandas frame · Arrow table, batch, reader · list of dicts or objects · path (engines/files.py)
    Spark DataFrame (engines/spark.py)
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema import jsontext
from agent_eval_schema.cells import (
    Problem,
    filtered,
    infinite_told,
    is_hidden,
    is_json_column,
    make_batch,
    plain_values,
    repeated,
    to_values,
    without_marks,
)
from agent_eval_schema.diagnose import describe
from agent_eval_schema.issues import EvalSetError, Rule
from agent_eval_schema.model import COLUMNS, ROW_SCHEMA
from agent_eval_schema.quoting import byte_name, error_text, without_quoting
from agent_eval_schema.rules import reading
from agent_eval_schema.visible import visible

if TYPE_CHECKING:
    from agent_eval_schema.plan import Plan

BATCH_BYTES = 8 << 20
"""Batches are about this large: small enough for memory to stay flat, large enough for Arrow to be worth it."""

MAX_BATCH_ROWS = 8_192

HEAD_START_BYTES = 128 << 20
"""What a process checks, about, in the half second that another one takes to start."""


class Source(Struct, frozen=True):
    """Something that can be checked.

    `nests` says that a cell could have held an object, so that an object written as text is worth a word.
    `take(mask)` gives the rows where the mask is true, in the form and with the cells in which they came;
    `original(name)` a column of data in memory, as it came; `lines(rows)` the lines of a file on which rows begin.
    `read_share(rows)` is the part of the data that has been read when so many rows are checked, if anybody knows;
    `stored_bytes` the size of a table of several files. What is `elsewhere` is checked there. A repaired source says
    which columns it `renamed`; as its batches are not those of the file, they are made and checked in one process
    (`repaired`). `in_order` says that a batch can only be made or judged after those before it. `remarks` are what
    there is to say of the data as a whole: rule, column, message, hint.
    """

    kind: str
    batches: Callable[[], Iterator[pa.RecordBatch]]
    take: Callable[[np.ndarray[Any, Any]], Any]
    name: str | None = None
    nests: bool = True
    repeated_columns: tuple[str, ...] = ()
    original: Callable[[str], Any] | None = None
    shares: Callable[[Share], Iterator[tuple[int, pa.RecordBatch]]] | None = None
    repaired: bool = False
    renamed: tuple[tuple[str, str], ...] = ()
    lines: Callable[[Iterable[int]], dict[int, int]] | None = None
    read_share: Callable[[int], float | None] | None = None
    stored_bytes: int | None = None
    elsewhere: Elsewhere | None = None
    in_order: bool = False
    remarks: tuple[tuple[Rule, str | None, str, str], ...] = ()

    def units(self, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The batches of a share of the data, with the number of the unit that each belongs to. A unit is a batch,
        unless the kind of file has larger parts (`shares`)."""
        if self.shares is not None:
            return self.shares(share)
        return ((i, batch) for i, batch in enumerate(self.batches()) if share.has(i, BATCH_BYTES))

    def quoting(self, values: bool) -> Source:
        """The source whose readers quote cells in what they say of them, or do not."""
        shares = self.shares
        return (
            self
            if values
            else replace(
                self,
                batches=lambda: without_quoting(self.batches()),
                shares=shares and (lambda share: without_quoting(shares(share))),
            )
        )


class Elsewhere(Protocol):
    """Rows that are not here but on a cluster: they are checked there, and only what was found out comes here."""

    def any(self, test: Callable[[pa.RecordBatch], bool], /) -> bool:
        """Whether the test, which can be pickled, is true of any batch."""

    def checked(self, plan: Plan, /) -> Iterator[pa.RecordBatch]:
        """The checked batches, in the order of the rows."""


class Share(Struct, frozen=True):
    """What one of several workers checks: the units in turn, after a head start (in bytes) of number 0, which need not
    wait for the others to start."""

    worker: int
    workers: int
    head_start: int = HEAD_START_BYTES

    def has(self, unit: int, unit_bytes: float) -> bool:
        """Whether a unit of about this size belongs to the share."""
        first = unit < int(self.head_start / max(unit_bytes, 1))
        return self.worker == (0 if first else unit % self.workers)


def open_source(data: Any) -> Source:
    """The source for a pandas frame, an Arrow table, batch or reader, a list of rows, a path, or a Spark DataFrame; a
    source is its own.

    Raises EvalSetError if the data is none of these, or the file cannot be read as a table.
    """
    if isinstance(data, Source):
        return data
    from agent_eval_schema.formats.documents import unfolded

    if isinstance(data, str | os.PathLike):
        from agent_eval_schema.engines.files import open_file

        return unfolded(open_file(os.fspath(data)))
    if isinstance(data, Mapping) and (rows := unfolded(_from_list([data]), alone=True)).in_order:
        return rows
    if isinstance(data, pd.DataFrame):
        return _from_pandas(data)
    if type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pyspark.sql"):
        from agent_eval_schema.engines.spark import spark_source

        return spark_source(data)
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()  # a reader can be read once only; give a path to stream
    if isinstance(data, pa.RecordBatch):
        return _from_arrow(pa.Table.from_batches([data]), lambda t: one_batch(t))
    if isinstance(data, pa.Table):
        return _from_arrow(data, lambda t: t)
    if isinstance(data, list | tuple):
        return unfolded(_from_list(list(data)))
    raise EvalSetError(
        f"cannot read a {type(data).__name__} as a table: give a pandas frame, an Arrow table, a list of dicts, a dict "
        "of columns (lists of one length, among them prompt, request or a trajectory) or a path"
    )


def schema_of(kind: str, batches: Iterator[pa.RecordBatch]) -> pa.Schema:
    """The columns of a source as Arrow has them; a list of objects is read through once, as any row may bring more."""
    some = batches if kind in ("jsonl", "json", "list", "pandas") else islice(batches, 1)
    schemas = [pa.schema([f.remove_metadata() for f in b.schema if not is_hidden(f)]) for b in some]
    return pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])


def column_name(label: Any) -> str:
    """A column's label as text that every file can hold."""
    return "None" if is_absent(label) else str(label).encode("utf-8", "replace").decode()


def rows_per_batch(bytes_per_row: float) -> int:
    return int(min(MAX_BATCH_ROWS, max(16, BATCH_BYTES / max(bytes_per_row, 1))))


# ---------------------------------------------------------------------------------------------------------------------
# pandas


def _from_pandas(frame: pd.DataFrame) -> Source:
    kept = (
        frame.copy()
    )  # of the cells, not of what they refer to: later assignments to the frame do not reach the report
    names = [column_name(c) for c in frame.columns]
    positions = {n: i for i, n in reversed(list(enumerate(names)))}

    def batches() -> Iterator[pa.RecordBatch]:
        head = [kept.iloc[:64, i].tolist() for i in range(kept.shape[1])]
        step = rows_per_batch(_bytes_per_row(zip(*head, strict=True)))
        for start in range(0, len(kept), step):
            part = kept.iloc[start : start + step]
            columns, problems = dict[str, tuple[pa.Array, bool]](), dict[int, list[Problem]]()
            for name in dict.fromkeys(names):
                columns[name] = _series_cells(part.iloc[:, positions[name]], name, problems)
            yield make_batch(columns, problems, len(part))

    def original(name: str) -> pd.Series[Any]:
        return kept.iloc[:, positions[name]]

    return Source(
        "pandas",
        batches,
        lambda mask: kept[mask],
        repeated_columns=repeated(names),
        original=original,
        read_share=lambda rows: rows / max(len(kept), 1),
    )


def _bytes_per_row(head: Iterable[Iterable[Any]]) -> float:
    sizes = [sum(map(_size, row)) for row in head]
    return sum(sizes) / max(len(sizes), 1)


def _size(value: Any) -> int:
    """About how many bytes a cell has; what cannot be written says so later."""
    try:
        return len(value) if isinstance(value, str) else len(_encode(value))
    except Exception:
        return 64


def _series_cells(series: pd.Series[Any], name: str, problems: dict[int, list[Problem]]) -> tuple[pa.Array, bool]:
    if series.dtype == object:
        return encode_cells(series.to_numpy(), name, problems)
    try:
        array = (
            _timestamps(series) if isinstance(series.dtype, pd.DatetimeTZDtype) else pa.array(series, from_pandas=True)
        )
    except (pa.ArrowException, TypeError, ValueError, UnicodeError):
        return encode_cells(series.astype(object).to_numpy(), name, problems)
    return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array), False


def _timestamps(series: pd.Series[Any]) -> pa.Array:
    """Times with a zone, by way of UTC: Arrow's own conversion uses what pandas 3 deprecates."""
    naive = pa.array(series.dt.tz_convert("UTC").dt.tz_localize(None), from_pandas=True)
    return naive.cast(pa.timestamp(naive.type.unit, "UTC"))


# ---------------------------------------------------------------------------------------------------------------------
# Python values in cells


READ_COLUMNS = frozenset({*COLUMNS, "inputs", "outputs", "expectations"})
"""The columns that some format reads: a cell that cannot be read is told there, and not replaced by words."""


def encode_cells(values: Iterable[Any], name: str, problems: dict[int, list[Problem]]) -> tuple[pa.Array, bool]:
    """The cells of a column of Python values: strings as they are, or, if there is anything else, JSON texts."""
    try:
        array = pa.array(values, pa.string(), from_pandas=True)
        array.validate(full=True)  # bytes are taken for text without a look
        return array, False
    except (pa.ArrowException, TypeError, ValueError, UnicodeError):
        pass  # not only text
    texts: list[bytes | str | None] = []
    for i, value in enumerate(values):
        try:
            texts.append(None if is_absent(value) else _json_text(value, name in READ_COLUMNS))
        except Exception as error:
            if name in READ_COLUMNS:
                texts.append(None)
                problems.setdefault(i, []).append(_cell_problem(name, value, error))
            else:  # only carried along: some text will do
                texts.append(_encode(visible(value) if isinstance(value, str) else describe(value)))
    return pa.array(texts, pa.string()), True


def _json_text(value: Any, is_read: bool) -> bytes | str:
    """The JSON text of a value; of one that is read, with the infinite numbers in it, which are told."""
    if isinstance(value, bytes | bytearray):
        return _encode(value.decode())
    if type(value).__module__.startswith("mlflow.") and hasattr(value, "to_json"):
        return _encode(value.to_json())  # a live Trace: its fields are not those of its JSON
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity"  # which is no JSON, and is told as such
    return infinite_told(value, _encode(value), _plain) if is_read else _encode(value)


def is_absent(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA are absent; an empty list or text is a value."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)


def _plain(value: Any) -> Any:
    """JSON-like data for what msgspec does not know: numpy, pandas, pydantic, mlflow objects."""
    if isinstance(value, np.ndarray | np.generic | pd.Series | pd.Index):
        return value.tolist()
    if value is None:
        raise TypeError("a key must be text")
    if is_absent(value):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    for method in ("model_dump", "to_dict", "isoformat", "_asdict"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def _cell_problem(name: str, value: Any, error: Exception) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        byte = f"{byte_name(error.object[error.start])} at byte {error.start}"
        return name, reading.NOT_UTF8.code, f"expected UTF-8, got {byte}"
    if isinstance(error, UnicodeError):
        return name, reading.LONE_SURROGATE.code, "text with half of a character (a lone surrogate)"
    if isinstance(error, RecursionError):
        return name, reading.TOO_DEEP.code, f"expected a value of ordinary depth, got {describe(value)} nested too deep"
    why = visible(error_text(error))[:200]
    return name, reading.UNREADABLE_CELL.code, f"expected plain data, got {describe(value)}: {why}"


# ---------------------------------------------------------------------------------------------------------------------
# lists


def _from_list(rows: list[Any]) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        step = rows_per_batch(_bytes_per_row([row] for row in rows[:64]))
        for start in range(0, len(rows), step):
            yield batch_of_rows(rows[start : start + step])

    def take(mask: np.ndarray[Any, Any]) -> list[Any]:
        return [rows[i] for i in np.flatnonzero(mask)]

    def original(name: str) -> list[Any]:
        return [next((v for k, v in (_as_mapping(row) or {}).items() if column_name(k) == name), None) for row in rows]

    keys = {k for row in rows if isinstance(row, Mapping) for k in row}
    names = tuple(map(column_name, keys))
    return Source(
        "list",
        batches,
        take,
        original=original,
        repeated_columns=repeated(names),
        read_share=lambda done: done / max(len(rows), 1),
    )


def batch_of_rows(rows: list[Any]) -> pa.RecordBatch:
    """The cells of rows that are objects; what is no object is told."""
    problems: dict[int, list[Problem]] = {}
    objects = []
    for i, row in enumerate(rows):
        given = _as_mapping(row)
        if given is None:
            problems[i] = [(None, reading.NOT_A_ROW.code, f"expected an object with columns, got {describe(row)}")]
        objects.append(given or {})
    keys: dict[str, Any] = {}  # in the order in which they come up; of two labels that read the same the first
    for row in objects:
        for key in row:
            keys.setdefault(column_name(key), key)
    columns = {n: encode_cells([row.get(k) for row in objects], n, problems) for n, k in keys.items()}
    return make_batch(columns, problems, len(rows))


def _as_mapping(row: Any) -> Mapping[Any, Any] | None:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    if isinstance(row, Struct):
        return {name: getattr(row, name) for name in row.__struct_fields__}
    try:
        plain = _plain(row)
    except Exception:
        return None
    return plain if isinstance(plain, dict) else None


# ---------------------------------------------------------------------------------------------------------------------
# Arrow


def _from_arrow(table: pa.Table, back: Callable[[pa.Table], Any]) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        return map(without_marks, table.to_batches(max_chunksize=rows_per_batch(table.nbytes / max(len(table), 1))))

    return Source(
        "arrow",
        batches,
        lambda mask: back(filtered(table, mask)),
        nests=False,
        repeated_columns=repeated(table.schema.names),
        read_share=lambda rows: rows / max(len(table), 1),
    )


def one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


# ---------------------------------------------------------------------------------------------------------------------
# and back


def canonical_values(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The cells of a normalised (or carried) column as Python values: objects, dicts for maps, lists for lists."""
    values = to_values(column)
    if is_json_column(field):
        return [None if v is None else jsontext.parse_leniently(v) for v in values]
    if (field.metadata or {}).get(b"cells") == b"canonical":
        return [None if v is None else [_tool_call(c) for c in v] for v in values]
    plain = plain_values(field.type)
    return [plain(v) for v in values]


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    given = call["tool_input"]
    return {"tool_name": call["tool_name"], "tool_input": {} if given is None else jsontext.decode(given)}


def to_pandas(batches: Iterable[pa.RecordBatch], source: Source) -> pd.DataFrame:
    """Normalised rows as a frame: objects in cells are Python objects, absent is None (or NA in numbers)."""
    kinds, columns = to_columns(batches)
    return pd.DataFrame({n: _column(n, columns[n], kind, source) for n, kind in kinds.items()})


def canonical_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Canonical rows as a frame with the canonical columns, then the others that the first row has."""
    names = dict.fromkeys([*COLUMNS, *(rows[0] if rows else ())])
    kinds = {f.name: f.type for f in ROW_SCHEMA}
    return pd.DataFrame({n: _series([row[n] for row in rows], kinds.get(n, pa.string())) for n in names})


def _column(name: str, values: list[Any], kind: pa.DataType, source: Source) -> Any:
    if name in COLUMNS or source.original is None:
        return _series(values, kind)
    given = source.original(name)  # carried along unchanged, its dtype too
    return given.reset_index(drop=True) if isinstance(given, pd.Series) else pd.Series(given, dtype="object")


def to_columns(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, pa.DataType], dict[str, list[Any]]]:
    """The Arrow types and the Python values of normalised rows; a column that some batches lack is None there."""
    kinds: dict[str, pa.DataType] = {f.name: f.type for f in ROW_SCHEMA}
    columns: dict[str, list[Any]] = {n: [] for n in kinds}
    size = 0
    for batch in batches:
        for i, field in enumerate(batch.schema):
            if field.name not in columns:
                kinds[field.name] = field.type
                columns[field.name] = [None] * size
            columns[field.name].extend(canonical_values(batch.column(i), field))
        size += batch.num_rows
        for values in columns.values():
            values.extend([None] * (size - len(values)))
    return kinds, columns


def _series(values: list[Any], kind: pa.DataType) -> pd.Series[Any]:
    if pa.types.is_integer(kind):
        return pd.Series(values, dtype="UInt64" if pa.types.is_unsigned_integer(kind) else "Int64")
    if pa.types.is_floating(kind):
        return pd.Series(values, dtype="float64")
    if pa.types.is_boolean(kind):
        return pd.Series(values, dtype="boolean")
    return pd.Series(values, dtype="object")
