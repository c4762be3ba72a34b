"""The cells of a column that are nested too deep, found for a whole column at once.

A cell of at most MAX_DEPTH bytes, or with at most as many opening brackets, cannot be: only the others are measured one
by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import _offsets, bounds
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import is_too_deep

_AT_ONCE = 1 << 17
"""Bytes that are looked at together: what they are compared with stays in the processor's cache."""


def deep_cells(array: pa.Array) -> list[int]:
    """The rows of a column of strings whose text is nested deeper than MAX_DEPTH."""
    if not len(array) or (data := array.buffers()[2]) is None:
        return []
    return _deep(np.frombuffer(data, np.uint8), _offsets(array), MAX_DEPTH)


def deep_texts(texts: Sequence[bytes], levels: int) -> list[int]:
    """The places of the texts that are nested deeper than so many levels."""
    return _deep(np.frombuffer(b"".join(texts), np.uint8), bounds([len(text) for text in texts]), levels)


def _deep(data: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], levels: int) -> list[int]:
    long = np.flatnonzero(np.diff(ends) > levels)
    if not len(long):
        return []
    starts, stops = ends[long], ends[long + 1]
    found: list[int] = []
    parts = np.flatnonzero(np.diff(starts // _AT_ONCE, prepend=-1)).tolist()  # the first cell of each part
    for first, last in zip(parts, [*parts[1:], len(long)], strict=True):
        begin = int(starts[first])
        opening = (data[begin : int(stops[last - 1])] & 0xDF) == _OPENING
        counts = np.add.reduceat(opening, starts[first:last] - begin, dtype=np.int32)  # up to the next long cell
        suspects = (first + np.flatnonzero(counts > levels)).tolist()
        found += [int(long[i]) for i in suspects if is_too_deep(data[starts[i] : stops[i]].tobytes(), levels)]
    return found


_OPENING = ord("[")
"""Of the ASCII characters, `[` and `{` alone have these bits."""


def type_depth(kind: pa.DataType) -> int:
    """The levels of lists, structs and maps in an Arrow type."""
    depth, level = -1, [kind]
    while level:
        depth, level = depth + 1, [inner for outer in level for inner in _types_in(outer)]
    return depth


def _types_in(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.item_type]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_type]
    return [field.type for field in kind] if pa.types.is_struct(kind) else []
