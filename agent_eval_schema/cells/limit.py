"""The largest cell that is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import Notes, is_hidden, with_notes
from agent_eval_schema.cells.sizes import cell_bytes
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import LARGE_CELL
from agent_eval_schema.text import jsontext


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
                sizes[row] = _text_bytes(batch.column(at)[row].as_py())
            large = sizes > most
        if not large.any():
            continue
        for row in np.flatnonzero(large).tolist():
            message = f"expected at most {most:,} bytes, got {int(sizes[row]):,}"
            notes.setdefault(row, []).append(Finding(LARGE_CELL, message, field.name))
        array = simplified(batch.column(at))
        kept = array.take(pa.array(np.arange(len(array)), mask=large))
        batch = batch.set_column(at, field.with_type(kept.type), kept)
    return with_notes(batch, notes)


def _text_bytes(text: str) -> int:
    """The bytes of a JSON cell; of a text those of its content, which is never longer than its JSON text."""
    value = jsontext.parse_leniently(text) if text[:1] == '"' else text
    return len((value if isinstance(value, str) else text).encode("utf-8", "surrogatepass"))
