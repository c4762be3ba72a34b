"""Numbers that JSON does not have: NaN and the infinite ones, in the cells of a batch and in Python's values.

    {"a": [1.0, -Infinity]}   ─▶   {"a":[1.0,null]}   and a note on `a[1]`

A NaN that is a whole cell is an absent cell, as in pandas.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import plain_values, simplified, stored_types, to_values, types_in
from agent_eval_schema.cells.notes import Notes, with_notes
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import NOT_FINITE
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import key_name

READ_COLUMNS = frozenset(COLUMNS)
"""The columns that some format reads: an infinite number there is an error. Other columns are passed through."""


def infinity(value: float) -> str:
    return "Infinity" if value > 0 else "-Infinity"


def with_infinite(value: Any, text: bytes, hook: Callable[[Any], Any]) -> bytes:
    """The JSON text of a value, with the infinite numbers in it as Python writes them: JSON does not have them, and
    they are reported. In `text`, which msgspec has made with that hook, they are null."""
    if b"null" not in text or not may_be_lost(repr(value)):
        return text
    return with_literals(msgspec.to_builtins(value, enc_hook=hook))


may_be_lost = re.compile(r"(?<![\w'\"])(?:inf|nan)\b|\.\.\.| at 0x", re.IGNORECASE).search
"""Finds how Python writes such a number, and what it writes in place of content: a long array, an object."""


def with_literals(value: Any) -> bytes:
    """The JSON text of a JSON-like value with its infinite numbers as Python writes them; NaN is null."""
    return json.dumps(_without_nan(value), ensure_ascii=False).encode()


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def note_of(value: Any, column: str) -> Finding | None:
    """The note on the numbers of a JSON-like value that become null; those of a column that is read are errors if they
    are infinite."""
    is_lost = math.isnan if column in READ_COLUMNS else lambda number: not math.isfinite(number)
    places = list(_lost(value, column, is_lost)) if isinstance(value, dict | list | tuple | float | np.floating) else []
    if not places:
        return None
    (path, number), others = places[0], len(places) - 1
    name = "NaN" if math.isnan(number) else infinity(number)
    more = f" (and {others:,} more in the cell)" if others else ""
    message = f"expected a finite number, got {name}: null takes its place in JSON{more}"
    return Finding(NOT_FINITE, message, column, path)


def _lost(value: Any, path: str, is_lost: Callable[[float], bool]) -> Iterator[tuple[str, float]]:
    """The numbers in a value that are lost, each with its path."""
    stack: list[tuple[str, Any]] = [(path, value)]
    while stack:
        at, part = stack.pop()
        if isinstance(part, float | np.floating):  # older releases of pyarrow have float16 of numpy
            number = float(part)
            if is_lost(number) and not (at == path and math.isnan(number)):
                yield at, number
        elif isinstance(part, dict):
            stack += [(f"{at}.{key_name(str(key))}", entry) for key, entry in reversed(part.items())]
        elif isinstance(part, list | tuple):
            stack += [(f"{at}[{i}]", part[i]) for i in reversed(range(len(part)))]


def with_lost_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with notes on the numbers of its Arrow columns that JSON does not have; those of Python's values are
    noted where these are read."""
    notes: Notes = {}
    for at, field in enumerate(batch.schema):
        kind = field.type.id
        is_read = kind in _FLOATS and field.name in READ_COLUMNS  # where an infinite number is an error
        if is_read or kind in _WITHOUT_FLOATS:
            continue
        words = str(field.type)
        if not ("float" in words or "double" in words or "extension" in words) or not _has_float(field.type):
            continue
        array = simplified(batch.column(at))
        plain, is_nested = plain_values(array.type), pa.types.is_nested(array.type)
        rows = np.flatnonzero(np.isinf(_numbers(array))) if not is_nested else _all_rows_if_lost(array)
        for row in rows.tolist():
            note = note_of(plain(to_values(array.slice(row, 1))[0]), field.name)
            if note is not None:
                notes[row] = [*notes.get(row, ()), note]
    return with_notes(batch, notes) if notes else batch


_WITHOUT_FLOATS = frozenset(kind.id for kind in (pa.string(), pa.large_string(), pa.null(), pa.bool_(), pa.int64()))
_FLOATS = frozenset(kind.id for kind in (pa.float16(), pa.float32(), pa.float64()))
"""The most frequent types: a look at each would cost calls."""


def _has_float(kind: pa.DataType) -> bool:
    """Whether a type has floating numbers; one that is too deep to be read has none."""
    depth, level = 0, [kind]
    while level and depth <= MAX_DEPTH:
        if any(map(pa.types.is_floating, level)):
            return True
        depth, level = depth + 1, [inner for outer in level for inner in (stored_types(outer) or types_in(outer))]
    return False


def _all_rows_if_lost(array: pa.Array) -> np.ndarray[Any, Any]:
    """All rows of an array of lists or objects if some number in it is not finite; its values are not made."""
    stack = [array]
    while stack:
        part = simplified(stack.pop())
        if pa.types.is_floating(part.type) and not np.isfinite(_numbers(part.drop_null())).all():
            return np.arange(len(array))
        if pa.types.is_nested(part.type) and _has_float(part.type):
            inner = part.items if pa.types.is_map(part.type) else part.flatten()
            stack += inner if pa.types.is_struct(part.type) else [inner]
    return np.arange(0)


def _numbers(array: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.float64)
