"""STEPS: what is done to the rows of a batch, in order.

Each step takes the rows and writes issues or values into them: decode the cells, fill them from the traces, judge what
stands side by side. A rule whose input did not decode (`FAILED`) is not run.
"""

from collections.abc import Callable

from agent_eval_schema.cells.arrow import simplified
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import is_unread, notes_on, plain_requests
from agent_eval_schema.decoding import requests as requests_
from agent_eval_schema.decoding.arrow_columns import ArrowColumn, DocumentColumn
from agent_eval_schema.decoding.columns import decode_column, documents_of_trace, native_values
from agent_eval_schema.decoding.texts import TEXT_COLUMNS, decode_response, decode_text
from agent_eval_schema.decoding.values import FAILED, Values
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.rules import reading
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


def log_notes(rows: Rows) -> None:
    """What the reader, a fix or the format found; a row that is no row is not judged further."""
    for row, findings in notes_on(rows.batch).items():
        for finding in findings:
            rows.log.add_finding(row, finding)
            if not is_unread(finding):
                continue
            if finding.column is None:
                rows.unread.add(row)
            elif finding.column in COLUMNS:
                rows.writable(finding.column)[row] = FAILED


def inspect_other_rows(rows: Rows) -> None:
    """What the format finds in rows that are no evaluation rows, and the name of each."""
    inspect = find_format(rows.format).inspect
    if inspect is None:
        return
    names: Values = [None] * rows.size
    for row, name, findings in inspect(rows.batch, rows.unread):
        names[row] = name
        for finding in findings:
            rows.log.add_finding(row, finding)
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
    log_notes,
    read_columns,
    note_empty_lists,
    look_at_tags,
    read_traces,
    fill_from_traces,
    require_request_and_output,
    forbid_two_truths,
    look_at_ground_truth,
)

STEPS_OF_OTHER_ROWS: tuple[Callable[[Rows], None], ...] = (log_notes, inspect_other_rows)
"""The steps of a format whose rows are no evaluation rows (`Format.is_rows`)."""
