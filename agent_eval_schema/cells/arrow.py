"""Arrow arrays: strings as bytes and back, encodings simplified, Python values, filters, packed batches."""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import MAY_BE_FIRST, is_too_deep

Array = np.ndarray[Any, Any]


def is_valid_text(array: pa.Array) -> bool:
    """Whether it is a column of texts that are all UTF-8, which Arrow does not check."""
    if not is_text(array.type):
        return False
    try:
        data = bytes_of(array)
        is_ascii = not len(data) or (data[:_SAMPLE].max() < _NOT_ASCII and data.max() < _NOT_ASCII)
        array.validate(full=not is_ascii)
    except ValueError:
        return False
    return True


_NOT_ASCII = 0x80
"""The least byte that ASCII, which is UTF-8, does not have: found in a fifth of the time that a full look takes."""
_SAMPLE = 1 << 16
"""Bytes that show of most texts in another language what they are."""


def bytes_of(array: pa.Array) -> Array:
    """All bytes of the texts, one after the other, without a copy."""
    ends, data = _offsets(array), array.buffers()[2]
    size = int(ends[-1] - ends[0])
    return np.frombuffer(data, np.uint8, size, int(ends[0])) if size else np.zeros(0, np.uint8)


def text_bytes(array: pa.Array) -> tuple[bytes, Array]:
    """The UTF-8 of all strings in one piece, and where each begins (and the last ends)."""
    bounds = _offsets(array)
    return bytes_of(array).tobytes(), bounds - bounds[0]


def text_array(cells: Sequence[str | bytes | None]) -> pa.Array:
    """Texts, or the UTF-8 of texts, as an Arrow array. Large ones are copied once: `pa.array` copies each of them
    several times, into a buffer that grows. Raises ArrowInvalid for bytes that are not UTF-8."""
    pieces = [b"" if c is None else c if c.__class__ is bytes else c.encode() for c in cells]  # type: ignore[union-attr]
    offsets = bounds(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    kind, width = (pa.large_string(), np.int64) if offsets[-1] > LARGEST_OFFSET else (pa.string(), np.int32)
    valid = np.array([c is not None for c in cells], bool)
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(b"".join(pieces))
    array = pa.Array.from_buffers(kind, len(pieces), [bits, pa.py_buffer(offsets.astype(width)), data])
    array.validate(full=True)
    return array


LARGEST_OFFSET = (1 << 31) - 1
"""Texts of more bytes than this need offsets of 64 bits: a column of type large_string."""


def bounds(lengths: Sequence[int] | Array) -> Array:
    """Where pieces of these lengths begin, and where the last one ends: `[2, 0, 3]` → `[0, 2, 2, 5]`."""
    return np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])


def as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array as another type. PyArrow before 19 adds no field to a struct, so its values are read one by one."""
    try:
        return array.cast(kind)
    except pa.ArrowTypeError:
        return pa.array(array.to_pylist(), kind)


def list_array(
    lengths: Sequence[int] | Array, values: pa.Array, absent: pa.Array | Sequence[bool] | None = None
) -> pa.ListArray:
    """The values as lists of these lengths, one after the other; null where `absent` is true."""
    mask = absent if absent is None or isinstance(absent, pa.Array) else pa.array(absent, pa.bool_())
    return pa.ListArray.from_arrays(pa.array(bounds(lengths), pa.int32()), values, mask=mask)


def strings(values: Iterable[str | bytes | None]) -> pa.Array:
    """Python values that are texts, or absent as in pandas, as an array. Raises an ArrowException for others."""
    array = pa.array(values, pa.string(), from_pandas=True)
    if isinstance(array, pa.ChunkedArray):  # more bytes than offsets of 32 bits reach
        array = pa.array(values, pa.large_string(), from_pandas=True)
    return array


def _offsets(array: pa.Array) -> Array:
    """Where each text begins, and the last one ends. Raises ValueError if that is not in the array's data: Arrow does
    not check offsets, and would read beyond the data."""
    wide = pa.types.is_large_string(array.type)
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(len(array) + 1, np.int64)
    edges = np.frombuffer(offsets, np.int64 if wide else np.int32, len(array) + 1, array.offset * (8 if wide else 4))
    if edges[0] < 0 or edges[-1] > (0 if data is None else data.size) or np.diff(edges).min() < 0:
        raise ValueError("the offsets of a string column are not in order or exceed its data")
    return edges


def rows_beginning_with(array: pa.Array, first: bytes, *, or_empty: bool = False) -> Array:
    """The rows of a column of strings whose text begins with one of these bytes, or is empty."""
    data, ends = array.buffers()[2], _offsets(array)
    wanted, mask = np.zeros(256, bool), np.full(len(array), or_empty)
    wanted[list(first)] = True
    begun = np.flatnonzero(np.diff(ends))
    if len(begun):
        mask[begun] = wanted[np.frombuffer(data, np.uint8)[ends[begun]]]
    return np.flatnonzero(mask)


def rows_passing(array: pa.Array, rows: Array, test: Callable[[pa.Array], pa.Array]) -> list[int]:
    """Those of these rows of a column that pass a test of Arrow, which others are spared: most often there is none."""
    return rows[np.asarray(test(array.take(pa.array(rows))).fill_null(False))].tolist() if len(rows) else []


def simplified(array: pa.Array) -> pa.Array:
    """The array without encodings of storage: dictionaries, runs, views, extensions, bytes that are text."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return simplified(array.storage)
    if (stored := _stored_once(array)) is not None:
        values, places = simplified(stored[0]), stored[1]
        # A text that is stored once may be repeated any number of times: offsets of 32 bits overflow without an error.
        return (values.cast(pa.large_string()) if pa.types.is_string(values.type) else values).take(places)
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        wide = array.cast(pa.large_binary())
        return pa.Array.from_buffers(pa.large_string(), len(wide), wide.buffers(), wide.null_count, wide.offset)
    if pa.types.is_fixed_size_binary(kind):
        return simplified(array.cast(pa.large_binary()))
    return array


def _stored_once(array: pa.Array) -> tuple[pa.Array, pa.Array] | None:
    """The values of a dictionary or of runs, and for each cell the place of its value; None of other arrays."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary, array.indices
    if isinstance(array.type, pa.RunEndEncodedType):
        cells = np.arange(array.offset, array.offset + len(array))
        return array.values, pa.array(np.searchsorted(np.asarray(array.run_ends), cells, "right"))
    return None


def per_cell(array: pa.Array, of_values: Callable[[pa.Array], Array]) -> Array | None:
    """What holds of the cells of a dictionary or of runs, found once per value; None of other arrays."""
    if (stored := _stored_once(array)) is None:
        return None
    results, places = of_values(stored[0]), stored[1]
    at = np.asarray(places.cast(pa.int64()).fill_null(len(results)))
    return np.append(results, results.dtype.type(0)).take(at, mode="clip")


def present(array: pa.Array) -> Array:
    """Which cells have a value. Arrow's own mask does not contain the nulls in a dictionary or in runs."""
    mask = per_cell(array, present)
    return np.asarray(array.is_valid()).astype(bool) if mask is None else mask


def has_value(array: pa.Array) -> bool:
    known = not (pa.types.is_dictionary(array.type) or isinstance(array.type, pa.RunEndEncodedType))
    return array.null_count < len(array) and (known or bool(present(array).any()))


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def to_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The Python values of an array; as text where Python has no value (a date in the year 100,000)."""
    try:
        values: list[Any] = array.to_pylist()
        return values
    except UnicodeDecodeError:
        return [None if v is None else v.decode("utf-8", "replace") for v in array.cast(pa.large_binary()).to_pylist()]
    except (ValueError, OverflowError, pa.ArrowException):
        return [_as_words(array[i]) for i in range(len(array))]


def _as_words(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, pa.ArrowException):
        try:
            return scalar.cast(pa.string()).as_py()
        except pa.ArrowException:
            return str(getattr(scalar, "value", scalar.type))


def _text_of_bytes(value: bytes) -> str:
    """The text in bytes; base64 where they have none, as JSON writes bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode()


def plain_values(kind: pa.DataType) -> Callable[[Any], Any]:
    """The function that makes the Python values of an Arrow type JSON-like: a map is a list of pairs in Python."""
    if pa.types.is_map(kind):
        item = plain_values(kind.item_type)
        return lambda v: None if v is None else {str(k): item(x) for k, x in v}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = plain_values(kind.value_type)
        return item if item is unchanged else lambda v: None if v is None else [item(x) for x in v]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return lambda v: _text_of_bytes(v) if isinstance(v, bytes) else v
    if pa.types.is_struct(kind):
        fields = {f.name: plain_values(f.type) for f in kind}
        if all(f is unchanged for f in fields.values()):
            return unchanged
        return lambda v: None if v is None else {k: fields[k](x) for k, x in v.items()}
    return unchanged


def unchanged(value: Any) -> Any:
    return value


def text_views(array: pa.Array) -> list[memoryview | None]:
    """The UTF-8 bytes of each string, without copying them: traces are large, and most of one is skipped."""
    if len(array) == 0:
        return []
    data = array.buffers()[2]
    view, bounds = memoryview(data) if data is not None else memoryview(b""), _offsets(array).tolist()
    slices: list[memoryview | None] = [view[a:b] for a, b in itertools.pairwise(bounds)]
    if array.null_count:
        for i in np.flatnonzero(np.asarray(array.is_null())):
            slices[i] = None
    return slices


def filtered(rows: Any, mask: Array) -> Any:
    """The rows of a table or batch where the mask is true; by slices for types that Arrow cannot filter (views)."""
    if mask.all():  # which most often is so: cells are not copied
        return rows
    try:
        return rows.filter(pa.array(mask))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        return pa.concat_tables([table.slice(0, 0), *(table.slice(i, 1) for i in np.flatnonzero(mask).tolist())])


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
    """Moments as moments, in whatever time zone they are displayed."""
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def pack(batch: pa.RecordBatch, codec: str) -> bytes:
    """A batch with its schema as bytes for a cell. `codec` is "lz4" (quick) or "zstd" (small)."""
    return bytes(packed(batch, codec))


def packed(batch: pa.RecordBatch, codec: str | None = None) -> pa.Buffer:
    """The same for a pipe."""
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def unpack(data: bytes | bytearray | pa.Buffer) -> pa.RecordBatch:
    """The batch that `pack` or `packed` made bytes of."""
    return pa.ipc.open_stream(data).read_next_batch()


def write_one(path: str | Path, batch: pa.RecordBatch, codec: str | None = None) -> None:
    """Write a batch into a file for `mapped`."""
    with pa.ipc.new_file(str(path), batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(batch)


def mapped(path: str | Path) -> pa.RecordBatch:
    """The batch of a file, which is in memory only where it is read."""
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).get_batch(0)


# --- The cells of a column that are nested too deep, found for a whole column at once.
#
# A cell of at most MAX_DEPTH bytes, one that begins with a letter, and one with at most as many opening brackets cannot
# be: only the others are measured one by one.
_BLOCK = 255 * 8
"""Bytes whose opening brackets are counted together: eight sums of one byte each hold the result."""
_AT_ONCE = 128 * _BLOCK
"""Bytes that are looked at together: what they are compared with stays in the processor's cache."""


def deep_cells(array: pa.Array) -> list[int]:
    """The rows of a column of strings whose text is nested deeper than MAX_DEPTH."""
    return depths(array)[0]


def depths(array: pa.Array) -> tuple[list[int], Array]:
    """The rows of a column of strings whose text is nested deeper than MAX_DEPTH; and, for each row, a number of
    brackets than which no more open in its text."""
    if not len(array) or (data := array.buffers()[2]) is None:
        return [], np.zeros(len(array), np.int64)
    return _depths(np.frombuffer(data, np.uint8), _offsets(array), MAX_DEPTH)


def deep_texts(texts: Sequence[bytes], levels: int) -> list[int]:
    """The places of the texts that are nested deeper than this number of levels."""
    return _depths(np.frombuffer(b"".join(texts), np.uint8), bounds([len(text) for text in texts]), levels)[0]


def _depths(data: Array, ends: Array, levels: int) -> tuple[list[int], Array]:
    opening = np.diff(ends)
    long = np.flatnonzero(opening > levels)
    long = long[MAY_BE_FIRST[data[ends[long]]]]
    if not len(long):
        return [], opening
    starts, stops = ends[long], ends[long + 1]
    begin = int(starts[0])
    so_far = np.concatenate([[0], np.cumsum(_opening_in_blocks(data[begin : int(stops[-1])]))])
    in_blocks = so_far[(stops - begin - 1) // _BLOCK + 1] - so_far[(starts - begin) // _BLOCK]
    opening[long] = np.minimum(opening[long], in_blocks)
    suspects = long[in_blocks > levels].tolist()
    return [row for row in suspects if is_too_deep(data[ends[row] : ends[row + 1]].tobytes(), levels)], opening


def _opening_in_blocks(data: Array) -> Array:
    """How many brackets open in each block."""
    counts = []
    for start in range(0, len(data), _AT_ONCE):
        part = data[start : start + _AT_ONCE]
        opening = np.empty(-(-len(part) // _BLOCK) * _BLOCK, np.bool_)
        np.equal(part & 0xDF, _OPENING, out=opening[: len(part)])
        opening[len(part) :] = False
        counts.append(np.add.reduce(opening.view(np.uint64).reshape(-1, _BLOCK // 8), axis=1))
    eights = np.concatenate(counts)
    fours = (eights & _EVEN) + (eights >> _8 & _EVEN)
    return (fours * _ONES >> _48).astype(np.int64)


_8, _48 = np.uint64(8), np.uint64(48)
_EVEN, _ONES = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0001000100010001)
_OPENING = ord("[")
"""Of the ASCII characters, `[` and `{` alone have these bits."""


def type_depth(kind: pa.DataType) -> int:
    depth, level = -1, [kind]
    while level:
        depth, level = depth + 1, [inner for outer in level for inner in types_in(outer)]
    return depth


def types_in(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.item_type]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [kind.value_type]
    return [field.type for field in kind] if pa.types.is_struct(kind) else []


def stored_types(kind: pa.DataType) -> list[pa.DataType]:
    """The type of the values that a type of storage encodes: a dictionary, runs, an extension."""
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    return [kind.value_type] if pa.types.is_dictionary(kind) or isinstance(kind, pa.RunEndEncodedType) else []
