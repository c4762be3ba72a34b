"""An Arrow table ⇄ batches of cells; normalized columns back as Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import filtered, plain_values, to_values, unchanged
from agent_eval_schema.cells.batch import is_json_column, repeated, without_marks
from agent_eval_schema.cells.sizes import batch_bytes
from agent_eval_schema.io.source import Source, rows_per_batch
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


# ---------------------------------------------------------------------------------------------------------------------
# Arrow
def from_arrow(table: pa.Table, back: Callable[[pa.Table], Any]) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        size = sum(map(batch_bytes, table.to_batches()))
        return map(without_marks, table.to_batches(max_chunksize=rows_per_batch(size / max(len(table), 1))))

    return Source(
        "arrow",
        batches,
        lambda mask: back(filtered(table, mask)),
        columns=tuple(table.schema.names),
        metadata=table.schema.metadata,
        nests=False,
        repeated_columns=repeated(table.schema.names),
        read_share=lambda rows: rows / max(len(table), 1),
    )


# ---------------------------------------------------------------------------------------------------------------------
# and back
def canonical_values(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The cells of a normalized (or passed-through) column as Python values: objects, dicts for maps, lists for
    lists."""
    values = to_values(column)
    if is_json_column(field):
        return [None if v is None else jsontext.parse_leniently(v) for v in values]
    if (field.metadata or {}).get(b"cells") == b"canonical":
        return [None if v is None else [_entry(c) for c in v] for v in values]
    plain = plain_values(field.type)
    return values if plain is unchanged else [plain(v) for v in values]


def _entry(cell: dict[str, Any]) -> dict[str, Any]:
    """A document or a call as Python has it: with its input as an object, and its other keys among its own."""
    others = cell.pop(OTHER_KEYS, None)
    if "tool_input" in cell:
        text = cell["tool_input"]
        cell["tool_input"] = {} if text is None else jsontext.decode(text)
    return {**cell, **jsontext.decode(others)} if others else cell


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
