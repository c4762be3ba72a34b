"""Notes on cells whose JSON text has a key twice: decoding keeps one of the values."""

from collections.abc import Collection
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text, rows_beginning_with, rows_passing, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import Notes, plain_requests, with_notes
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep

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
    return with_notes(batch, {row: found for row, found in notes.items() if found})
