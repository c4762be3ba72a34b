"""Rows → a new Excel file with one sheet: texts are texts, whatever they begin with, and issues are comments of cells.

A text that a sheet would change is an error, which names its place: Excel has no characters below a space but tabs and
line breaks, and at most 32,767 characters in a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.cells import native
from agent_eval_schema.cells.notes import NOTE
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.csv import csv_cells
from agent_eval_schema.io.streams import creating
from agent_eval_schema.text.visible import visible

MOST_ROWS, LONGEST = 1_048_575, 32_767
"""The rows of a sheet without its header, and the characters of a cell."""

AUTHOR = "agent-eval-schema"
"""The author of comments."""

_CHANGED = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
"""What does not come back from an XML file as it was, or is read as another character."""


def write_excel(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Numbers as numbers, texts as texts, anything else as JSON. A list of notes is no column: each is a comment."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    try:
        count = _fill(sheet, batches, schema)
    except BaseException:
        sheet.close()
        sheet._writer.cleanup()
        raise
    with creating(path) as file:
        book.save(file)
    return count


def _fill(sheet: Any, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    names = [field.name for field in schema if field.type != _ISSUES]
    notes = [field.name for field in schema if field.type == _ISSUES]
    sheet.append([_cell(sheet, checked(name, "the header", name), []) for name in names])
    count = 0
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in notes if name in batch.schema.names]
        for row, values in enumerate(zip(*(_values(batch, name) for name in names), strict=True)):
            if count == MOST_ROWS:
                raise EvalSetError(f"expected at most {MOST_ROWS:,} rows, which a sheet has: write .jsonl")
            issues: dict[str, list[dict[str, Any]]] = {}
            for note in (note for column in columns for note in column[row] or ()):
                issues.setdefault(note["column"] if note["column"] in names else names[0], []).append(note)
            cells = [(checked(v, f"row {count}", n), issues.get(n, [])) for n, v in zip(names, values, strict=True)]
            sheet.append([_cell(sheet, value, own) for value, own in cells])
            count += 1
    return count


def _cell(sheet: Any, value: Any, issues: list[dict[str, Any]]) -> Any:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.comments import Comment

    if not isinstance(value, str) and not issues:
        return value
    cell = WriteOnlyCell(sheet, value)
    if isinstance(value, str):
        cell.data_type = "s"  # also of what begins as a formula or an error does
    if issues:
        cell.comment = Comment("\n".join(map(comment_text, issues)), AUTHOR, 120, 480)
    return cell


_ISSUES = pa.list_(NOTE)


def _values(batch: pa.RecordBatch, name: str) -> Iterator[Any]:
    """The cells of a column: numbers and booleans that a sheet holds exactly, else their texts as in a CSV file."""
    at = batch.schema.get_field_index(name)
    values = native(batch, at) if at >= 0 else [None] * batch.num_rows
    for value, text in zip(values, csv_cells(batch, name), strict=True):
        yield value if is_exact(value) else text


def is_exact(value: Any) -> bool:
    """Whether a value is a number or boolean that a sheet holds as it is."""
    return type(value) is bool or (type(value) in (int, float) and abs(value) <= 1 << 53)


def checked(value: Any, where: str, name: str) -> Any:
    """The value of a cell. Raises EvalSetError for a text that a sheet would change."""
    if isinstance(value, str) and (len(value) > LONGEST or _CHANGED.search(value)):
        found = _CHANGED.search(value)
        got = f"{len(value):,} characters" if found is None else repr(found[0])
        raise EvalSetError(
            f"{where}, {visible(name)}: expected a text that a sheet holds (up to {LONGEST:,} characters, no "
            f"control characters), got {got}: write .jsonl"
        )
    return value


def comment_text(note: dict[str, Any]) -> str:
    """An issue as the comment of its cell."""
    hint = f"\n→ {visible(note['hint'])}" if note["hint"] else ""
    return f"{note['code']} {visible(note['message'])}{hint}"
