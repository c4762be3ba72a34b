"""Cells → 64-bit hashes that are equal where the cells have the same value, whatever file they came from.

    text             its characters
    JSON             its value: neither blanks nor the order of keys matter, and 1.0 is 1
    list, struct     the hashes of the parts, by their places
    absent           0

Canonical columns have one Arrow form, so their parts are hashed as columns. A passed-through column is text in one file
and JSON in another: there a JSON string is its text, text that holds a JSON object or list is that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import filtered, is_text, simplified, text_views, to_values
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.hashing import Array, hash_texts
from agent_eval_schema.cells.notes import line_texts
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.schema import COLUMNS, ChatRequest, JsonObject, JsonValue, columns_of
from agent_eval_schema.text.jsontext import (
    NOT_JSON,
    OPENING,
    canonical_bytes,
    canonical_json,
    decode_exact,
    encode_sorted,
)

ORIGINAL_LINE = "(line)"
"""The name of the field for a line of a file that is not a row: its text."""

_JSON_TEXTS = frozenset((*columns_of(ChatRequest, JsonObject, JsonValue), "trace", "tool_input"))
"""Columns, and keys in them, whose Arrow form is JSON text."""

_UNREADABLE = np.uint64(0x9E3779B97F4A7C15)


def fingerprints(rows: pa.RecordBatch, source_cells: pa.RecordBatch, unread: dict[str, list[int]]) -> dict[str, Array]:
    """One hash per row for each column of the normalized `rows` that has a value.

    A cell that could not be read has no normalized value: in the `unread` rows, the original cell is hashed.
    """
    found = {field.name: _column(rows, field) for field in rows.schema}
    for name, at in unread.items():
        cells = read_cells(filtered(source_cells.select([name]), np.isin(np.arange(source_cells.num_rows), at)), name)
        if cells is not None:
            hashes = _texts(_said(cells.texts, cells.json))
            # Different from cells that can be read: text that is not a list yet differs from the list.
            found[name][at] = np.where(hashes, mixed(hashes ^ _UNREADABLE), 0)
    lines = line_texts(source_cells)
    if lines is not None:
        found[ORIGINAL_LINE] = _texts(lines.to_pylist())
    return {name: hashes for name, hashes in found.items() if hashes.any()}


def mixed(hashes: Array) -> Array:
    """Hashes that share no pattern with these hashes (the finalizer of SplitMix64)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    last: Array = hashes ^ (hashes >> np.uint64(31))
    return last


def name_hash(name: str) -> Any:
    """The hash of a column's name."""
    return hash_texts([name])[0][0]


def _column(rows: pa.RecordBatch, field: pa.Field) -> Array:
    array = rows.column(rows.schema.get_field_index(field.name))
    if array.null_count == len(array):
        return np.zeros(len(array), np.uint64)
    if field.name in COLUMNS:
        if pa.types.is_map(array.type):
            return _texts([None if v is None else encode_sorted(v) for v in canonical_values(array, field)])
        return _parts(simplified(array), field.name)
    cells = read_cells(rows, field.name)
    return _texts(_said(cells.texts, cells.json) if cells else to_values(array))


def _texts(texts: Sequence[str | bytes | None]) -> Array:
    found, absent = hash_texts(texts)
    if absent is not None:
        found[absent] = 0
    return found


def _said(texts: Sequence[str | None], json: bool) -> list[str | None]:
    """The cells of a column of unknown type as text: a JSON string is its text, everything else its value as JSON."""
    if json:
        return [None if t is None else _plain(_unquoted(t)) if t[:1] == '"' else canonical_json(t) for t in texts]
    return [None if t is None else _plain(t) for t in texts]


def _plain(text: str) -> str:
    """Text as it is ("1.10" is not a number), unless it is an object or a list."""
    return canonical_json(text) if text.startswith(OPENING) else text


def _unquoted(text: str) -> str:
    try:
        return str(decode_exact(text))
    except NOT_JSON:
        return text


# ---------------------------------------------------------------------------------------------------------------------
# canonical columns


def _parts(array: pa.Array, name: str) -> Array:
    """The hash of each value of an Arrow array; `name` is the column's or the key's."""
    kind = array.type
    if is_text(kind):
        return _texts(list(map(canonical_bytes, text_views(array))) if name in _JSON_TEXTS else to_values(array))
    if pa.types.is_list(kind):
        hashes = _lists(array, name)
    elif pa.types.is_struct(kind):
        hashes = np.zeros(len(array), np.uint64)
        for part, values in zip(kind, array.flatten(), strict=True):
            hashes += mixed(_parts(values, part.name) ^ name_hash(part.name))
        hashes = mixed(hashes)
    else:
        numbers = np.asarray(array.cast(pa.float64() if pa.types.is_floating(kind) else pa.int64()).fill_null(0))
        hashes = mixed((numbers + 0).view(np.uint64) + _UNREADABLE)  # + 0: there is a zero with a minus sign
    return np.where(np.asarray(array.is_valid()), hashes, np.uint64(0))


def _lists(array: pa.Array, name: str) -> Array:
    """Each list's entries, every one mixed with its place in the list, summed up."""
    lengths = np.asarray(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    entries = mixed(_parts(array.flatten(), name) ^ mixed(places.astype(np.uint64) + np.uint64(1)))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return mixed(running[ends] - running[ends - lengths] + lengths.astype(np.uint64) + np.uint64(1))
