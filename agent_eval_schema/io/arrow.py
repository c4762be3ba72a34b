"""An Arrow table ⇄ batches of cells; normalized columns back as Python values; tables of other libraries ⇄ Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.arrow import filtered, plain_values, to_values, unchanged
from agent_eval_schema.cells.batch import is_json_column, repeated, without_marks
from agent_eval_schema.cells.sizes import batch_bytes, joined, one_batch
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.source import BATCH_BYTES, Source, rows_per_batch
from agent_eval_schema.schema import OTHER_KEYS, ROW_SCHEMA
from agent_eval_schema.text import jsontext


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
    """JSON cells as text: a JSON string becomes its content, anything else stays JSON."""
    if not pc.any(pc.starts_with(array, '"')).as_py():
        return array
    texts = [jsontext.parse_leniently(t) if t is not None and t[:1] == '"' else t for t in array.to_pylist()]
    return pa.array(texts, pa.string())


def from_arrow(table: pa.Table, back: Callable[[pa.Table], Any]) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        step = rows_per_batch(sum(map(batch_bytes, table.to_batches())) / max(len(table), 1))
        parts = table.to_batches(max_chunksize=step)
        # each batch has a cost of its own; the dictionaries of several chunks may not fit into one
        joins = len(parts) > 1 + len(table) // step and "dictionary<" not in str(table.schema.types)
        return map(without_marks, joined(parts, step, BATCH_BYTES) if joins else parts)

    return Source(
        "arrow",
        batches,
        lambda mask: back(filtered(table, mask)),
        columns=tuple(table.schema.names),
        metadata=table.schema.metadata,
        can_hold_objects=False,
        repeated_columns=repeated(table.schema.names),
        read_share=lambda rows: rows / max(len(table), 1),
    )


def canonical_values(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The cells of a normalized (or passed-through) column as Python values: objects, and dicts for maps."""
    values = to_values(column)
    if is_json_column(field):
        return [None if v is None else jsontext.parse_leniently(v) for v in values]
    if (field.metadata or {}).get(b"cells") == b"canonical":
        # documents and calls: the input as an object, other keys among their own
        for entry in chain.from_iterable([cell for cell in values if cell is not None]):
            others = entry.pop(OTHER_KEYS, None)
            if "tool_input" in entry:
                text = entry["tool_input"]
                entry["tool_input"] = {} if text is None else jsontext.decode(text)
            if others:
                parsed = jsontext.parse_leniently(others)
                entry.update(parsed if isinstance(parsed, dict) else {OTHER_KEYS: others})  # not made here
        return values
    plain = plain_values(field.type)
    return values if plain is unchanged else [plain(v) for v in values]


def to_columns(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, pa.DataType], dict[str, list[Any]]]:
    """The Arrow types and the Python values of normalized rows; a column that some batches lack is None there."""
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


def to_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The normalized rows of a batch, with None where a value is absent."""
    _, columns = to_columns([batch])
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# --- tables of other libraries: Polars, DuckDB, Hugging Face, and what has the Arrow PyCapsule interface
Back = Callable[[pa.Table], Any]
"""Makes a table of the library that the data is from."""


def to_arrow(data: Any, option: str) -> pa.Table | None:
    """The table in an object of another library; None if the object is not a table."""
    if _is_a(data, "datasets", "DatasetDict", "IterableDatasetDict"):
        names = list(data)
        hint = f"; use data[{names[0]!r}]" if names else ""
        raise EvalSetError(f"{option}: expected one split, got a DatasetDict of {', '.join(names)}{hint}")
    kind = _kind(data)
    if kind is None and (isinstance(data, type) or not _exchanges(data) or _is_a(data, "pandas", "Series")):
        return None  # pandas 3 exports a Series of objects as a table, earlier versions do not: no version reads one
    try:
        return pa.table(data) if kind is None else kind.to_arrow(data)
    except EvalSetError as error:
        raise EvalSetError(f"{option}: {error}") from error.__cause__
    except (pa.ArrowException, TypeError, ValueError):  # a column alone, or an array that is not a record batch
        return None


def like(data: Any) -> Back | None:
    """How an Arrow table becomes one of the kind of the data; None if the data is no table that Arrow exchanges."""
    kind = _kind(data)
    if kind is not None:
        return kind.back
    return (lambda table: table) if _exchanges(data) and not _is_a(data, "pandas", "DataFrame") else None


def _exchanges(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


class _Kind(Struct, frozen=True):
    """A class of tables: its library and name, and the ways to and from Arrow."""

    library: str
    name: str
    to_arrow: Callable[[Any], pa.Table]
    back: Back


def _kind(data: Any) -> _Kind | None:
    return next((kind for kind in _KINDS if _is_a(data, kind.library, kind.name)), None)


def _is_a(data: Any, library: str, *names: str) -> bool:
    """Whether a class of an object has one of these names in the library, or in its compiled part (`_duckdb`)."""
    homes = (library, f"_{library}")
    return any(c.__name__ in names and c.__module__.partition(".")[0] in homes for c in type(data).__mro__)


def _from_polars(frame: Any) -> pa.Table:
    import polars

    oldest = polars.CompatLevel.oldest()  # views of text cannot be filtered by Arrow
    try:
        return frame.to_arrow(compat_level=oldest)
    except pa.ArrowException as error:
        for name, kind in frame.schema.items():
            try:
                frame.select(polars.col(name)).to_arrow(compat_level=oldest)
            except pa.ArrowException:
                why = f"has the type {kind}, which Arrow does not support: cast it, for example to String"
                raise EvalSetError(f"the column {name!r} {why}") from error
        raise


def _to_hugging_face(table: pa.Table) -> Any:
    """A dataset, which has no maps: they become JSON text."""
    from datasets import Dataset

    for at, field in enumerate(table.schema):
        if pa.types.is_map(field.type):
            texts = [None if v is None else jsontext.encode(dict(v)).decode() for v in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return Dataset(table)


_KINDS = (
    _Kind("pyarrow", "Table", lambda table: table, lambda table: table),
    _Kind("pyarrow", "RecordBatch", lambda batch: pa.Table.from_batches([batch]), one_batch),
    _Kind("pyarrow", "RecordBatchReader", lambda reader: reader.read_all(), pa.Table.to_reader),
    _Kind("polars", "DataFrame", _from_polars, lambda t: import_module("polars").from_arrow(t)),
    _Kind("polars", "LazyFrame", lambda f: _from_polars(f.collect()), lambda t: import_module("polars").LazyFrame(t)),
    # DuckDB 1.0 has no stream
    _Kind(
        *("duckdb", "DuckDBPyRelation", lambda r: pa.table(r) if _exchanges(r) else r.arrow()),
        lambda t: import_module("duckdb").from_arrow(t),
    ),
    _Kind("datasets", "Dataset", lambda dataset: dataset.with_format("arrow")[:], _to_hugging_face),
)
