"""Arrow types that engines use among themselves, at any depth of a column, and those that the rest of us read."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


def changed(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with its innermost types changed; every list is a plain one."""
    if pa.types.is_map(kind):
        return pa.map_(changed(kind.key_type, change), changed(kind.item_type, change))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(changed(kind.value_type, change))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, changed(f.type, change)) for f in kind])
    return change(kind)


def cast_all(batch: pa.RecordBatch, change: Callable[[pa.DataType], pa.DataType]) -> pa.RecordBatch:
    """The batch with the innermost types of all columns changed."""
    arrays = [column.cast(changed(column.type, change)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names) if arrays else batch


_PLAIN = {"string_view": pa.string(), "binary_view": pa.binary()}


def without_view(kind: pa.DataType) -> pa.DataType:
    """Views, which Arrow can neither filter nor slice everywhere, as ordinary texts."""
    return _PLAIN.get(str(kind), kind)


def in_utc(kind: pa.DataType) -> pa.DataType:
    """Moments as moments, whatever zone somebody wants to see them in."""
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind
