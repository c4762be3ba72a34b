"""A record batch with other values in some of its cells: the others, and the type if it can, stay as they are."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.arrow import is_text, plain_values, simplified
from agent_eval_schema.cells.batch import JSON_CELLS, is_json_column
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import is_hidden, without_notes
from agent_eval_schema.text import jsontext


def with_cells(batch: pa.RecordBatch, column: str, values: dict[int, Any], can_hold_objects: bool) -> pa.RecordBatch:
    """The batch with other values in some cells of a column: as JSON texts, if its type cannot contain them."""
    at = batch.schema.get_field_index(column)
    field = batch.schema.field(at)
    array = None if is_json_column(field) else _replaced(batch.column(at), values, can_hold_objects)
    if array is not None:
        return batch.set_column(at, pa.field(column, array.type), array)
    batch = with_json(batch, column)
    texts = {i: None if v is None else jsontext.write_exactly(v) for i, v in values.items()}
    return batch.set_column(at, batch.schema.field(at), _spliced(batch.column(at), texts))


def with_edits(batch: pa.RecordBatch, cells: Mapping[str, dict[int, Any]], can_hold_objects: bool) -> pa.RecordBatch:
    """The batch with other values in cells of several columns, some of which it may lack."""
    for column, values in cells.items():
        if column not in batch.schema.names:
            absent = pa.field(column, pa.string(), metadata=JSON_CELLS)
            batch = batch.append_column(absent, pa.nulls(batch.num_rows, pa.string()))
        batch = with_cells(batch, column, values, can_hold_objects)
    return batch


def _replaced(array: pa.Array, values: dict[int, Any], can_hold_objects: bool) -> pa.Array | None:
    """The array with other values, or None if its type cannot hold them."""
    if is_text(simplified(array).type):
        if can_hold_objects and not all(v is None or isinstance(v, str) for v in values.values()):
            return None
        texts = {i: v if v is None or isinstance(v, str) else jsontext.write_exactly(v) for i, v in values.items()}
        try:
            return _spliced(array, texts)
        except (pa.ArrowException, TypeError):  # a type that is text in another encoding
            return _spliced(simplified(array), texts)
    try:
        spliced = _spliced(array, values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    plain = plain_values(array.type)
    same = all(jsontext.without_null(plain(spliced[i].as_py())) == jsontext.without_null(v) for i, v in values.items())
    return spliced if same else None


def _spliced(array: pa.Array, values: dict[int, Any]) -> pa.Array:
    pieces, end = [], 0
    for i in sorted(values):
        pieces += [array.slice(end, i - end), pa.array([values[i]], array.type)]
        end = i + 1
    return pa.concat_arrays([*pieces, array.slice(end)])


def with_json(batch: pa.RecordBatch, column: str) -> pa.RecordBatch:
    """The batch with a column as JSON texts, whatever its type was."""
    at = batch.schema.get_field_index(column)
    if at < 0 or is_json_column(batch.schema.field(at)):
        return batch
    field = pa.field(column, pa.string(), metadata=JSON_CELLS)
    return batch.set_column(at, field, pa.array(json_texts(batch, column), pa.string()))


def json_texts(batch: pa.RecordBatch, column: str) -> list[str | None]:
    cells = read_cells(batch, column)
    assert cells is not None
    if cells.json:
        return list(cells.texts)
    return [None if t is None else jsontext.encode(t).decode() for t in cells.texts]


def with_columns(
    batch: pa.RecordBatch, new: Mapping[str, Sequence[str | None]], replaced: Container[str]
) -> pa.RecordBatch:
    """The batch with new columns of JSON texts, then its own except those that are `replaced`. Where a new column has
    the name of another one, the cells of the batch fill the rows in which the new column is null."""
    columns = {n: _completed(texts, batch, n) if n not in replaced else texts for n, texts in new.items()}
    arrays = [pa.array(texts, pa.string()) for texts in columns.values()]
    fields = [pa.field(name, pa.string(), metadata=JSON_CELLS) for name in columns]
    own = [i for i, f in enumerate(batch.schema) if is_hidden(f) or (f.name not in replaced and f.name not in new)]
    arrays += [batch.column(i) for i in own]
    fields += [batch.schema.field(i) for i in own]
    if not arrays:
        return without_notes(batch.num_rows)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _completed(new: Sequence[str | None], batch: pa.RecordBatch, column: str) -> Sequence[str | None]:
    """The new cells, and those of the batch's own column where there is none."""
    if column not in batch.schema.names or None not in new:
        return new
    return [own if text is None else text for text, own in zip(new, json_texts(batch, column), strict=True)]
