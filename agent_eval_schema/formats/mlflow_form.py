"""The tables that mlflow.genai.evaluate rejects as a whole, and the columns that it ignores.

    inputs of the first row are not an object   the run ends before any scoring (no other row is examined)
    request, response beside inputs, outputs  ignored; up to mlflow 3.6, which renamed the columns, the run ends
    expected_response beside inputs           ignored: ground truth is read from `expectations` only

Measured with mlflow 3.3 to 3.17. Rows that are passed to mlflow are rewritten, so that none of this remains.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import Notes, filled_rows
from agent_eval_schema.decoding.columns import value_of_cell
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import expectations, mlflow_inputs
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe

WRITTEN_ANEW = frozenset(
    rule.code for rule in (expectations.BESIDE_INPUTS, mlflow_inputs.IGNORED_BESIDE, mlflow_inputs.FIRST_INPUTS)
)
"""The rules that do not apply to rows that are passed to mlflow: what they report is not in the rows as written."""


def remarks(first: Sequence[pa.RecordBatch]) -> list[Finding]:
    """The issues of the table as a whole, of which these are the first rows."""
    if any(filled_rows(b, "trace").any() for b in first):  # which mlflow reads: search_traces has all of these columns
        return []
    found = [
        Finding(mlflow_inputs.IGNORED_BESIDE, f"`{ignored}` is ignored beside `{read}`", ignored)
        for ignored, read in (("request", "inputs"), ("response", "outputs"))
        if any((filled_rows(b, ignored) & filled_rows(b, read)).any() for b in first)
    ]
    cells = read_cells(first[0].slice(0, 1), "inputs") if first else None
    text = cells.texts[0] if cells is not None else None
    if cells is not None and text is not None:
        value = value_of_cell(text, cells.json)
        if value is not None and not isinstance(value, dict | jsontext.Malformed):
            message = f"expected an object in the first row, got {describe(value)}"
            found.append(Finding(mlflow_inputs.FIRST_INPUTS, message, "inputs"))
    return found


def notes_beside_inputs(batch: pa.RecordBatch, expected: Sequence[str]) -> Notes:
    """The ground truth in the expected columns next to `inputs`, by row; where `expectations` have the same key, that
    one is read."""
    notes = Notes()
    names = [n for n in expected if n in batch.schema.names] if "inputs" in batch.schema.names else []
    if not names:
        return notes
    own = read_cells(batch, "expectations")
    for name in names:
        cells = read_cells(batch, name)
        for row, text in enumerate(cells.texts if cells is not None else ()):
            if text is None or text == "null":
                continue
            read = own is not None and own.texts[row] is not None and f'"{name}"' in str(own.texts[row])
            message = f"`{name}` beside `inputs` is ignored{': expectations have their own' if read else ''}"
            place = ("expectations", f"expectations.{name}") if read else (name, name)
            notes.setdefault(row, []).append(Finding(expectations.BESIDE_INPUTS, message, *place))
    return notes
