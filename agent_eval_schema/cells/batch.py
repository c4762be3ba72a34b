"""A record batch whose nested cells are JSON text: how readers build one, and which columns are the user's.

Readers (io/) mark a column of JSON texts in its field's metadata; everything else follows from the Arrow type.
"""

from collections.abc import Sequence

import pyarrow as pa

from agent_eval_schema.cells.notes import _ROLE_LINE, _ROLE_READING, LINE, READING, READING_TYPE, Problem, free

JSON_CELLS = {b"cells": b"json"}
"""Metadata of a column whose cells are JSON texts of native values."""

CANONICAL_CELLS = {b"cells": b"canonical"}
"""Metadata of a normalised column whose Arrow form differs from its Python form (tool_input is JSON text in a "
"struct)."""


def is_json_column(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"cells") == b"json"


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A user's batch without field metadata, which only our readers may set, and without repeated columns."""
    names = batch.schema.names
    kept = [i for i, n in enumerate(names) if n not in names[:i]]
    if not kept:  # Arrow forgets the number of rows of a batch without columns
        return make_batch({}, {}, batch.num_rows)
    fields = [batch.schema.field(i).remove_metadata() for i in kept]
    return pa.RecordBatch.from_arrays([batch.column(i) for i in kept], schema=pa.schema(fields))


def repeated(names: Sequence[str]) -> tuple[str, ...]:
    """The column names that stand more than once."""
    return tuple(dict.fromkeys(n for i, n in enumerate(names) if n in names[:i]))


def make_batch(
    columns: dict[str, tuple[pa.Array, bool]],
    problems: dict[int, list[Problem]],
    size: int,
    lines: dict[int, str] | None = None,
) -> pa.RecordBatch:
    """A record batch of cells: per column an array and whether it holds JSON texts; the reader's problems; and the
    original text of the rows that are none."""
    arrays = [array for array, _ in columns.values()]
    fields = [pa.field(n, a.type, metadata=JSON_CELLS if j else None) for n, (a, j) in columns.items()]
    if lines:
        arrays.append(pa.array([lines.get(i) for i in range(size)], pa.string()))
        fields.append(pa.field(free(LINE, columns), pa.string(), metadata=_ROLE_LINE))
    if problems or not columns:
        rows = [
            [{"column": c, "code": code, "message": m} for c, code, m in problems.get(i, ())] or None
            for i in range(size)
        ]
        arrays.append(pa.array(rows, READING_TYPE))
        fields.append(pa.field(free(READING, columns), READING_TYPE, metadata=_ROLE_READING))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
