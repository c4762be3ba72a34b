"""The cells that could not be read, in addition to those that could: the column `unreadable` of
`normalize_eval_set(on_invalid="keep")`.

    request   response   unreadable
    None      "Hello"    {"request": {"mesages": [...]}}     the cell as it came, under the name of its column
    None      None       "{\\"request\\": \\"H"                  the text of a line that is not a row

A canonical column has one type, so a cell of another one cannot stay there. As JSON text it fits every kind of file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Raw

from agent_eval_schema.cells.arrow import text_views
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import is_hidden, line_texts
from agent_eval_schema.formats.registry import column_at
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import Issue
from agent_eval_schema.rule import Severity
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.validation.checked_batch import rows_of
from agent_eval_schema.validation.checked_run import CheckedRun

UNREADABLE = "unreadable"


def unreadable_cells(run: CheckedRun) -> dict[int, str]:
    """By row the JSON text of an object of its unreadable cells by column, or the text of a line that is not a row."""
    errors = (issue for issue in run.issues() if issue.severity is Severity.ERROR)
    noted = by_key((issue.row, issue) for issue in errors if issue.row is not None)
    if not noted:
        return {}
    invalid = run.source.take(~run.builder.valid)
    of_list = np.flatnonzero(~run.builder.valid).tolist() if isinstance(invalid, list) else ()
    no_rows = dict(zip(of_list, invalid, strict=False))  # the entries of a list that are not rows, among others
    original = run.source.original

    @cache
    def column(name: str) -> list[Any] | None:
        """A column of data in memory with its original cells."""
        values = None if original is None else original(name)
        return None if values is None else list(values)

    texts, start = dict[int, str](), 0
    for batch, checked in run.reread():
        lines, normal, read = line_texts(batch), rows_of(checked), cache(partial(read_cells, batch))

        def cell(name: str, row: int, batch: pa.RecordBatch = batch, start: int = start, read: Any = read) -> Any:
            """A cell as JSON, or as text if it is not JSON."""
            cells = read(name)
            if (text := cells.texts[row]) is not None:
                is_json = cells.json and not isinstance(jsontext.parse(text), jsontext.Malformed)
                return Raw(text.encode()) if is_json else text
            if row in cells.unreadable:
                return _written(bytes(text_views(batch.column(name))[row] or b""))
            values = column(name)
            return None if values is None else _written(values[start + row])

        for i in range(batch.num_rows):
            here = noted.get(start + i, [])
            content: Any = None if lines is None else lines[i].as_py()
            if not content:
                names = _lost(here, batch, normal.slice(i, 1), run.plan.origins)
                content = {name: value for name in names if (value := cell(name, i)) is not None}
            if not content and any(issue.column is None for issue in here):
                content = _written(no_rows.get(start + i))
            if content:
                texts[start + i] = jsontext.encode(content).decode()
        start += batch.num_rows
    return texts


def _lost(issues: Iterable[Issue], batch: pa.RecordBatch, row: pa.RecordBatch, places: Mapping[str, str]) -> list[str]:
    """The columns of the input whose values may be missing from the normalized row."""
    names: dict[str | None, None] = {}
    for issue in issues:
        canonical = column_at(issue.path or issue.column or "", places)
        if canonical is not None and row.column(row.schema.get_field_index(canonical))[0].is_valid:
            continue  # it could be read: it does not go with another cell
        # else it is about the whole row, or about a cell that several columns make up
        whole = (f.name for f in batch.schema if not is_hidden(f))
        names |= dict.fromkeys([issue.column] if issue.column in batch.schema.names else whole)
    return [name for name in names if name is not None]


def _written(value: Any) -> str | None:
    """A Python value that no JSON can hold, in words."""
    if is_absent(value):
        return None
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    text = value if isinstance(value, str) else _repr(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return describe(value)
