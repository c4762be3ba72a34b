"""A record batch whose nested cells are JSON text: how readers build one, and which columns are the user's.

Readers (io/) mark a column of JSON texts in its field's metadata; everything else follows from the Arrow type.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text, rows_beginning_with, rows_passing, simplified
from agent_eval_schema.cells.notes import Notes, plain_requests, with_line_texts, with_notes, without_notes
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep

JSON_CELLS = {b"cells": b"json"}
"""Metadata of a column whose cells are JSON texts of native values."""

CANONICAL_CELLS = {b"cells": b"canonical"}
"""Metadata of a normalized column whose Arrow form differs from its Python form: tool_input is JSON text in Arrow."""


def is_json_column(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"cells") == b"json"


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A user's batch without field metadata, which only our readers may set, and without repeated columns."""
    places = {name: i for i, name in reversed(list(enumerate(batch.schema.names)))}
    columns = sorted(places.values())
    if not columns:  # Arrow forgets the number of rows of a batch without columns
        return make_batch({}, {}, batch.num_rows)
    fields = [batch.schema.field(i).remove_metadata() for i in columns]
    return pa.RecordBatch.from_arrays([batch.column(i) for i in columns], schema=pa.schema(fields))


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


# --- keys that a JSON text has twice: decoding keeps one of the values
json_in_string = partial(pc.call_function, "match_substring_regex", options=pc.MatchSubstringOptions(r'^"[{\[]'))
"""Which cells of a column (in a list) are a string of a file of JSON that may itself hold JSON."""


def with_repeated_keys(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """The batch with these notes on the JSON texts in columns, for a file of JSON on those in strings: its reader notes
    the keys of objects."""
    notes, plain = Notes(), plain_requests(batch)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name not in names or not is_text((array := simplified(column)).type):
            continue
        is_json = is_json_column(field)
        begun = rows_beginning_with(array, b'"' if is_json else b"{[")
        rows = rows_passing(array, begun, lambda cells: json_in_string([cells])) if is_json else begun.tolist()
        texts = array.take(pa.array(rows, pa.int64())).cast(pa.large_binary()).fill_null(b"").to_pylist()
        for row, text in zip(rows, texts, strict=True):
            if is_json:
                text = jsontext.decode_shallow(text).encode("utf-8", "replace")
            is_question = field.name == "request" and (b'"messages"' not in text or (plain != [] and plain[row]))
            if not is_question and not is_too_deep(text):
                notes.setdefault(row, []).extend(jsontext.repeated_keys(text, field.name))
    return with_notes(batch, {row: findings for row, findings in notes.items() if findings})
