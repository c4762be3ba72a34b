"""A record batch whose nested cells are JSON text: how readers build one, and which columns are the user's.

Readers (io/) mark a column of JSON texts in its field's metadata; everything else follows from the Arrow type.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from agent_eval_schema.cells.notes import Notes, with_line_texts, with_notes, without_notes

JSON_CELLS = {b"cells": b"json"}
"""Metadata of a column whose cells are JSON texts of native values."""

CANONICAL_CELLS = {b"cells": b"canonical"}
"""Metadata of a normalized column whose Arrow form differs from its Python form: tool_input is JSON text in Arrow."""


def is_json_column(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"cells") == b"json"


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A user's batch without field metadata, which only our readers may set, and without repeated columns."""
    places = {name: i for i, name in reversed(list(enumerate(batch.schema.names)))}
    kept = sorted(places.values())
    if not kept:  # Arrow forgets the number of rows of a batch without columns
        return make_batch({}, {}, batch.num_rows)
    fields = [batch.schema.field(i).remove_metadata() for i in kept]
    return pa.RecordBatch.from_arrays([batch.column(i) for i in kept], schema=pa.schema(fields))


def repeated(names: Sequence[str]) -> tuple[str, ...]:
    """The column names that occur more than once."""
    return tuple(name for name, count in Counter(names).items() if count > 1)


def make_batch(
    columns: Mapping[str, tuple[pa.Array, bool]], notes: Notes, size: int, lines: Mapping[int, str] | None = None
) -> pa.RecordBatch:
    """A record batch of columns (array, whether it holds JSON texts), with notes and the lines that are not rows."""
    arrays = [array for array, _ in columns.values()]
    fields = [pa.field(n, a.type, metadata=JSON_CELLS if j else None) for n, (a, j) in columns.items()]
    # Arrow forgets the number of rows of a batch without columns
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)) if columns else without_notes(size)
    batch = with_line_texts(batch, lines) if lines else batch
    return with_notes(batch, notes) if notes else batch
