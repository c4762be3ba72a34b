"""A column of a record batch → its cells, as text or as JSON.

    text   Arrow strings: what stands in the cell is what the user wrote; it may happen to hold JSON
    json   the JSON text of a native value: a Python object, a JSON file's value, an Arrow list, struct or number

The readers (frames.py, engines/files.py) mark a column of JSON texts in its field's metadata; everything else follows
from the Arrow type. What a reader could not read travels with the rows, in the column READING.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema import jsontext

READING = "__reading_problems__"
"""list<struct<column, code, message>> a row; a problem without a column concerns the whole row."""

LINE = "__line__"
"""The original text of a line that is no row: handed back with the invalid rows, never part of a normalised one."""

HIDDEN = (READING, LINE)

READING_TYPE = pa.list_(pa.struct([("column", pa.string()), ("code", pa.string()), ("message", pa.string())]))

JSON_CELLS = {b"cells": b"json"}
"""Metadata of a column whose cells are JSON texts of native values."""

CANONICAL_CELLS = {b"cells": b"canonical"}
"""Metadata of a normalised column whose Arrow form differs from its Python form (tool_input is JSON text in a "
"struct)."""

Problem = tuple[str | None, str, str]
"""What a reader says of a row: the column (None: the whole row), the code of the rule, the message."""


class Cells(Struct):
    """The cells of one column. A cell is None where it is absent; `nul` says that some text holds a NUL character."""

    texts: Sequence[str | None]
    json: bool
    nul: bool = False
    array: pa.Array | None = None

    def suspects(self) -> list[int]:
        """The rows of a text column that may be blank or JSON, by their first character: few need a closer look."""
        if self.array is None:
            return [row for row, t in enumerate(self.texts) if t is not None and t[:1] in "{[ \t\r\n"]
        return np.flatnonzero(np.asarray(pc.match_substring_regex(self.array, _SUSPECT).fill_null(False))).tolist()


_SUSPECT = r"^([\s{\[\p{Z}]|$)"


def read_cells(batch: pa.RecordBatch, name: str) -> Cells | None:
    """The cells of a column, or None if the batch does not have it."""
    at = batch.schema.get_field_index(name)
    if at < 0:
        return None
    array = simplified(batch.column(at))
    if is_json_column(batch.schema.field(at)):
        return Cells(array.to_pylist(), True, _holds(array, rb"\u0000"))
    if is_text(array.type):
        return Cells(array.to_pylist(), False, _holds(array, b"\0"), array)
    texts = _as_json(array)
    return Cells(texts, True, any(t is not None and "\\u0000" in t for t in texts))


def _holds(array: pa.Array, what: bytes) -> bool:
    """Whether any of the strings holds these bytes: one search over the buffer that they share."""
    data = array.buffers()[2]
    return data is not None and data.to_pybytes().find(what) >= 0


def is_json_column(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"cells") == b"json"


def simplified(array: pa.Array) -> pa.Array:
    """The array without encodings that only concern storage: dictionaries, views, extensions, bytes that are text."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return simplified(array.storage)
    if pa.types.is_dictionary(kind):
        return simplified(array.dictionary_decode())
    if pa.types.is_string_view(kind) if hasattr(pa.types, "is_string_view") else False:
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return array.cast(pa.large_string())
        except pa.ArrowInvalid:
            return pa.array(
                [None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()], pa.string()
            )
    return array


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _as_json(array: pa.Array) -> list[str | None]:
    plain = plain_values(array.type)
    values = array.to_pylist()
    return [None if v is None else jsontext.encode(plain(v)).decode() for v in values]


def plain_values(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that makes the Python values of an Arrow type JSON-like: a map is a list of pairs in Python."""
    if pa.types.is_map(kind):
        item = plain_values(kind.item_type)
        return lambda v: None if v is None else {str(k): item(x) for k, x in v}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = plain_values(kind.value_type)
        return item if item is _same else lambda v: None if v is None else [item(x) for x in v]
    if pa.types.is_struct(kind):
        fields = {f.name: plain_values(f.type) for f in kind}
        if all(f is _same for f in fields.values()):
            return _same
        return lambda v: None if v is None else {k: fields[k](x) for k, x in v.items()}
    return _same


def _same(value: Any) -> Any:
    return value


def text_views(array: pa.Array) -> list[memoryview | None]:
    """The UTF-8 bytes of each string, without copying them: traces are large, and most of one is skipped."""
    if len(array) == 0:
        return []
    wide = pa.types.is_large_string(array.type)
    _, offsets, data = array.buffers()
    numbers = np.frombuffer(offsets, np.int64 if wide else np.int32, len(array) + 1, array.offset * (8 if wide else 4))
    view, bounds = memoryview(data) if data is not None else memoryview(b""), numbers.tolist()
    slices: list[memoryview | None] = [view[a:b] for a, b in itertools.pairwise(bounds)]
    if array.null_count:
        for i in np.flatnonzero(np.asarray(array.is_null())):
            slices[i] = None
    return slices


def native(batch: pa.RecordBatch, name: str) -> list[Any]:
    """The cells of a column as the Python values that the user gave."""
    at = batch.schema.get_field_index(name)
    values = batch.column(at).to_pylist()
    if is_json_column(batch.schema.field(at)):
        return [None if v is None else jsontext.parse_leniently(v) for v in values]
    plain = plain_values(batch.column(at).type)
    return [plain(v) for v in values]


def reading_problems(batch: pa.RecordBatch) -> list[list[Problem]]:
    """What the reader said of each row (empty lists where all was well)."""
    if READING not in batch.schema.names:
        return []
    rows = batch.column(READING).to_pylist()
    return [[(p["column"], p["code"], p["message"]) for p in row or ()] for row in rows]


def make_batch(
    columns: dict[str, tuple[pa.Array, bool]], problems: dict[int, list[Problem]], size: int
) -> pa.RecordBatch:
    """A record batch of cells: per column an array and whether it holds JSON texts, and the reader's problems."""
    arrays = [array for array, _ in columns.values()]
    fields = [pa.field(n, a.type, metadata=JSON_CELLS if j else None) for n, (a, j) in columns.items()]
    if problems or not columns:
        rows = [
            [{"column": c, "code": code, "message": m} for c, code, m in problems.get(i, ())] or None
            for i in range(size)
        ]
        arrays.append(pa.array(rows, READING_TYPE))
        fields.append(pa.field(READING, READING_TYPE))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
