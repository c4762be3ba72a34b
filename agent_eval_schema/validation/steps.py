"""STEPS: what is done to the rows of a batch, in order.

Each step takes the rows and writes issues or values into them: decode the cells, fill them from the traces, judge what
stands side by side. A rule whose input did not decode (`FAILED`) is not run.
"""

from collections.abc import Callable

from agent_eval_schema.cells.arrow import simplified
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import findings_in, plain_requests, reading_problems, repair_notes
from agent_eval_schema.decoding import requests as requests_
from agent_eval_schema.decoding.arrow_columns import ArrowColumn, DocumentColumn
from agent_eval_schema.decoding.columns import decode_column, documents_of_trace, native_values
from agent_eval_schema.decoding.texts import TEXT_COLUMNS, decode_response, decode_text
from agent_eval_schema.decoding.values import FAILED, Values
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.rules import RULES, columns, reading
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.cross_field import (
    forbid_two_truths,
    look_at_ground_truth,
    look_at_tags,
    note_empty_lists,
    require_request_and_output,
)
from agent_eval_schema.validation.fill_from_traces import fill_from_traces, read_traces
from agent_eval_schema.validation.rows import Rows, merge


def note_reading_problems(rows: Rows) -> None:
    """What the reader of the file or frame could not read; a row that is no row is not judged further."""
    for row, problems in enumerate(reading_problems(rows.batch)):
        for column, code, message in problems:
            rows.log.add(RULES[code], row, column, message)
            if column is None:
                rows.unread.add(row)
            elif column in COLUMNS:
                rows.writable(column)[row] = FAILED


def note_repairs(rows: Rows) -> None:
    """Which cells are not as they came."""
    for row, notes in enumerate(repair_notes(rows.batch)):
        for column, path, message in notes:
            rows.log.add(columns.REPAIRED_CELL, row, column, message, path=path)


def note_findings(rows: Rows) -> None:
    """What the format itself found, reading the rows in order."""
    for row, notes in enumerate(findings_in(rows.batch)):
        for code, column, path, message, hint in notes:
            rows.log.add(RULES[code], row, column, message, path=path, hint=hint)


def inspect_other_rows(rows: Rows) -> None:
    """What the format finds in rows that are no evaluation rows, and the name of each."""
    inspect = find_format(rows.format).inspect
    if inspect is None:
        return
    names: Values = [None] * rows.size
    for row, name, notes in inspect(rows.batch, rows.unread):
        names[row] = name
        for code, column, path, message, hint in notes:
            rows.log.add(RULES[code], row, column, message, path=path, hint=hint)
    rows.values["request_id"] = names


def read_columns(rows: Rows) -> None:
    """Decode every column that we know."""
    for name in COLUMNS:
        at = rows.batch.schema.get_field_index(name)
        native = None if at < 0 else native_values(name, rows.batch.column(at))
        if native is not None:
            merge(rows, name, native)
            continue
        cells = None if name in ("trace", *_CONTEXTS) else read_cells(rows.batch, name)
        if cells is not None:
            merge(rows, name, _decode(name, cells, rows))
            for row, message in cells.unreadable.items():
                rows.log.add(reading.NOT_UTF8, row, name, message)
                rows.writable(name)[row] = FAILED
    for name in _CONTEXTS:
        _read_context(rows, name)


_CONTEXTS = ("expected_retrieved_context", "retrieved_context")


def _decode(name: str, cells: Cells, rows: Rows) -> Values | ArrowColumn:
    if name == "request":
        return requests_.decode_requests(cells, rows.nests, rows.log, plain_requests(rows.batch))
    if name == "response":
        return decode_response(cells, rows.log)
    if name in TEXT_COLUMNS:
        return decode_text(name, cells, rows.log)
    return decode_column(name, cells, rows.log, find_format(rows.format).words.get(name))


def _read_context(rows: Rows, name: str) -> None:
    at = rows.batch.schema.get_field_index(name)
    if at < 0:
        return
    documents = DocumentColumn.of(simplified(rows.batch.column(at)))
    if documents is not None:
        rows.values[name] = documents
        return
    cells = read_cells(rows.batch, name)
    assert cells is not None
    has_traces = name == "retrieved_context" and "trace" in rows.batch.schema.names
    merge(rows, name, decode_column(name, cells, rows.log, documents_of_trace if has_traces else None))


STEPS: tuple[Callable[[Rows], None], ...] = (
    note_reading_problems,
    note_repairs,
    read_columns,
    note_empty_lists,
    look_at_tags,
    read_traces,
    fill_from_traces,
    require_request_and_output,
    forbid_two_truths,
    look_at_ground_truth,
)

STEPS_OF_OTHER_ROWS: tuple[Callable[[Rows], None], ...] = (note_reading_problems, note_findings, inspect_other_rows)
"""The steps of a format whose rows are no evaluation rows (`Format.is_rows`)."""
