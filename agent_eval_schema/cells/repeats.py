"""Notes on cells whose JSON text has a key twice: decoding keeps one of the values."""

from collections.abc import Collection

import pyarrow as pa

from agent_eval_schema.cells.arrow import is_text, rows_beginning_with, simplified
from agent_eval_schema.cells.notes import Notes, plain_requests, with_notes
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.jsontext import repeated_keys


def with_repeated_keys(batch: pa.RecordBatch, objects: Collection[str]) -> pa.RecordBatch:
    """The batch with these notes on the texts of columns that hold objects; a reader of JSON notes them itself."""
    notes, plain = Notes(), plain_requests(batch)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name not in objects or field.metadata or not is_text((array := simplified(column)).type):
            continue
        rows = rows_beginning_with(array, b"{[")
        texts = array.take(pa.array(rows)).cast(pa.large_binary()).fill_null(b"").to_pylist() if len(rows) else []
        for row, text in zip(rows.tolist(), texts, strict=True):
            is_question = field.name == "request" and (b'"messages"' not in text or (plain != [] and plain[row]))
            if not is_question and not is_too_deep(text):
                notes.setdefault(row, []).extend(repeated_keys(text, field.name))
    return with_notes(batch, {row: found for row, found in notes.items() if found})
