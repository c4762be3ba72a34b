"""How many bytes cells have once they are written out; batches cut and joined by that number.

The memory of a batch does not determine it: a dictionary, a run or a view contains one text for any number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import LARGEST_OFFSET, Array, changed, filtered, per_cell, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import Notes, is_hidden, with_notes
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import LARGE_CELL
from agent_eval_schema.text import jsontext


def cell_bytes(array: pa.Array) -> Array:
    """The bytes of each cell, without those of offsets and of marks for null."""
    if not len(array):  # a writer may omit the offsets of a column without items
        return np.zeros(0, np.int64)
    if (counts := per_cell(array, cell_bytes)) is not None:
        return counts
    if (sizes := _SIZES.get(array.type.id)) is not None:
        return sizes(array)
    try:
        return np.full(len(array), -(-array.type.bit_width // 8), np.int64)
    except ValueError:  # of no fixed width: a union
        return np.full(len(array), -(-array.nbytes // len(array)), np.int64)


def batch_bytes(batch: pa.RecordBatch) -> int:
    """The bytes of the cells; with those of offsets and of marks for null, if they need not be counted cell by cell."""
    return batch.nbytes if all(map(_is_stored_per_cell, batch.schema.types)) else int(_row_bytes(batch).sum())


def split_batches(batches: Iterable[pa.RecordBatch], size: int, most: int) -> Iterator[pa.RecordBatch]:
    """The rows of batches; each batch above `most` bytes is cut into pieces of `size` bytes, or of one row."""
    # Only the reader references a batch while it is read: a generator expression would keep it.
    for box in map(lambda batch: [batch], batches):  # noqa: C417
        small = all(map(_is_stored_per_cell, box[0].schema.types)) and box[0].nbytes <= most
        ends = np.zeros(0) if small else np.cumsum(_row_bytes(box[0]))
        if not len(ends) or ends[-1] <= most:
            yield box.pop()
            continue
        start = done = 0
        while start < len(ends):
            end = max(int(np.searchsorted(ends, done + size, "right")), start + 1)
            yield box[0].slice(start, end - start)
            start, done = end, ends[end - 1]


def _is_stored_per_cell(kind: pa.DataType) -> bool:
    """Whether an array of the type takes no less memory than its cells, written out, have bytes."""
    if kind.id in _NESTED:
        return all(_is_stored_per_cell(kind.field(i).type) for i in range(kind.num_fields))
    return kind.id in _PLAIN


_NESTED = frozenset({pa.struct([]).id, pa.list_(pa.null()).id})
_PLAIN = frozenset(k.id for k in (pa.string(), pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.null()))


def one_batch(rows: pa.Table | Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of a table, or of at least one batch, in one batch; of types with offsets of 64 bits if need be."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches(list(rows))
    if table.get_total_buffer_size() > LARGEST_OFFSET and sum(map(batch_bytes, table.to_batches())) > LARGEST_OFFSET:
        wide = [f.with_type(changed(f.type, lambda kind: _WIDE.get(str(kind), kind))) for f in table.schema]
        table = table.cast(pa.schema(wide, table.schema.metadata))
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


_WIDE = {"string": pa.large_string(), "binary": pa.large_binary()}


def taken(batch: pa.RecordBatch, rows: Iterable[int]) -> pa.RecordBatch:
    """These rows of a batch, in its order."""
    mask = np.zeros(batch.num_rows, bool)
    mask[list(rows)] = True
    part = filtered(batch, mask)
    return one_batch(part) if isinstance(part, pa.Table) else part


def joined(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least this number of rows or bytes in memory, except the last one."""
    parts: list[pa.RecordBatch] = []
    count = total = 0
    for batch in batches:
        parts.append(batch)
        count, total = count + batch.num_rows, total + batch.nbytes
        if count >= rows or total >= size:
            yield one_batch(parts)
            parts, count, total = [], 0, 0
    if parts:
        yield one_batch(parts)


def _row_bytes(batch: pa.RecordBatch) -> Array:
    return sum(map(cell_bytes, batch.columns), start=np.zeros(batch.num_rows, np.int64))


# --- kinds of arrays
def _of_texts(array: pa.Array) -> Array:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    return np.diff(_numbers(array, 8 if wide else 4, 1)).astype(np.int64).clip(0)


def _of_views(array: pa.Array) -> Array:
    lengths = _numbers(array, 16, 0).view(np.int32)[::4]  # 16 bytes per view; the first four are its length
    return np.where(np.asarray(array.is_valid()), lengths, 0).astype(np.int64).clip(0)


def _numbers(array: pa.Array, width: int, more: int) -> Array:
    """The offsets or views of an array, `width` bytes each; none is read beyond its buffer."""
    buffer = array.buffers()[1]
    kind, count = (np.int64 if width == 8 else np.int32), (len(array) + more) * (4 if width == 16 else 1)
    if buffer is None or buffer.size < (array.offset + len(array) + more) * width:
        return np.zeros(count, kind)
    return np.frombuffer(buffer, kind, count, array.offset * width)


def _of_lists(array: pa.Array) -> Array:
    ends = np.append(0, np.cumsum(cell_bytes(array.values)))
    starts = np.asarray(array.offsets)
    stops = starts + np.asarray(array.sizes) if hasattr(array, "sizes") else starts[1:]
    return np.asarray(ends.take(stops, mode="clip") - ends.take(starts[: len(array)], mode="clip"))


def _of_fixed_lists(array: pa.Array) -> Array:
    width = array.type.list_size
    if not width:
        return np.zeros(len(array), np.int64)
    items = cell_bytes(array.values.slice(array.offset * width, len(array) * width))
    return np.asarray(items.reshape(len(array), width).sum(axis=1))


def _of_structs(array: pa.Array) -> Array:
    fields = (cell_bytes(array.field(i)) for i in range(array.type.num_fields))
    return sum(fields, start=np.zeros(len(array), np.int64))


_SIZES: dict[int, Callable[[pa.Array], Array]] = {
    **dict.fromkeys((pa.string().id, pa.binary().id, pa.large_string().id, pa.large_binary().id), _of_texts),
    **dict.fromkeys((pa.string_view().id, pa.binary_view().id), _of_views),
    **{kind(pa.null()).id: _of_lists for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)},
    pa.map_(pa.string(), pa.null()).id: _of_lists,
    pa.list_(pa.null(), 1).id: _of_fixed_lists,
    pa.struct([]).id: _of_structs,
    pa.null().id: lambda array: np.zeros(len(array), np.int64),
    pa.fixed_shape_tensor(pa.int8(), [1]).id: lambda array: cell_bytes(array.storage),  # that of all extensions
}
"""How the sizes of a kind of array are found; any other has cells of one width."""


# --- cells that are too large
def without_large_cells(batch: pa.RecordBatch, most: int) -> pa.RecordBatch:
    """The batch without its cells of more than `most` bytes, and with a note on each of them."""
    notes: Notes = {}
    for at, field in enumerate(batch.schema):
        if is_hidden(field):
            continue
        sizes = cell_bytes(batch.column(at))
        large = sizes > most
        if is_json_column(field):
            for row in np.flatnonzero(large).tolist():
                text = batch.column(at)[row].as_py()
                # a JSON string has the bytes of its content, which is never longer than its JSON text
                value = jsontext.parse_leniently(text) if text[:1] == '"' else text
                sizes[row] = len((value if isinstance(value, str) else text).encode("utf-8", "surrogatepass"))
            large = sizes > most
        if not large.any():
            continue
        for row in np.flatnonzero(large).tolist():
            message = f"expected at most {most:,} bytes, got {int(sizes[row]):,}"
            notes.setdefault(row, []).append(Finding(LARGE_CELL, message, field.name))
        array = simplified(batch.column(at))
        cells = array.take(pa.array(np.arange(len(array)), mask=large))
        batch = batch.set_column(at, field.with_type(cells.type), cells)
    return with_notes(batch, notes)
