"""STEPS: the steps of validating the rows of a batch, in order.

Each step takes the rows and writes issues or values into them: decode the cells, fill them from the traces, judge
several cells of a row together. A rule whose input did not decode (`FAILED`) is not run; a step runs only if the batch
has something for it.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import NOTES, is_unread, notes_on
from agent_eval_schema.decoding.columns import decode_column, documents_of_trace, native_values
from agent_eval_schema.decoding.requests import decode_requests
from agent_eval_schema.decoding.texts import TEXT_COLUMNS, decode_response, decode_text
from agent_eval_schema.decoding.values import FAILED, DecodedColumn, DocumentColumn, ListColumn
from agent_eval_schema.errors import RAISED
from agent_eval_schema.formats.mlflow import WRITTEN_ANEW
from agent_eval_schema.formats.registry import hint_for_unknown
from agent_eval_schema.io.arrow import to_rows
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rule import RowRule, Severity
from agent_eval_schema.rules import RULES, reading, rules_of_packages
from agent_eval_schema.rules.columns import UNKNOWN_FORMAT
from agent_eval_schema.rules.expectations import BESIDE_INPUTS
from agent_eval_schema.rules.reading import RULE_NOT_RUN
from agent_eval_schema.runtime.extensions import Extension
from agent_eval_schema.schema import COLUMNS, Contexts, JsonValue, RetrievedContext, columns_of
from agent_eval_schema.text.privacy import first_line, may_quote
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.cross_field import (
    LISTS,
    forbid_two_truths,
    inspect_ground_truth,
    inspect_tags,
    note_empty_lists,
    note_null_placeholders,
    note_placeholder_entries,
    note_placeholders,
    require_request_and_output,
)
from agent_eval_schema.validation.fill_from_traces import fill_from_traces, read_traces
from agent_eval_schema.validation.normalized_columns import FIELDS, normalized
from agent_eval_schema.validation.rows import Rows


def log_notes(rows: Rows) -> None:
    """Log the issues of the reader, of a fix and of the format. A cell that could not be read is not judged further,
    and a row that is rejected as a whole has no missing fields."""
    for row, findings in notes_on(rows.batch).items():
        for finding in findings:
            if rows.plan.complete and finding.rule.code in WRITTEN_ANEW:
                continue
            rows.log.add_finding(row, finding)
            if finding.rule is BESIDE_INPUTS and finding.column == finding.path:
                rows.uncounted.setdefault(finding.column or "", []).append(row)
            if finding.column is None and finding.rule.severity is Severity.ERROR:
                rows.unread.add(row)
            elif is_unread(finding) and finding.column in COLUMNS:
                rows.unread_cells.setdefault(finding.column, []).append(row)


def inspect_other_rows(rows: Rows) -> None:
    """The issues of the format in rows that are not evaluation rows, and the name of each."""
    inspect = rows.form.inspect
    assert inspect is not None
    names = rows.writable("request_id")
    for row, name, findings in inspect(rows.batch, rows.unread):
        names[row] = name
        for finding in findings:
            if finding.rule is UNKNOWN_FORMAT and rows.plan.suggested:
                hint = hint_for_unknown(rows.batch, rows.plan.suggested, rows.plan.unread, rows.plan.then)
                finding = replace(finding, hint=hint)
            rows.log.add_finding(row, finding)


def read_columns(rows: Rows) -> None:
    """Decode every canonical column of the batch but the traces."""
    schema = rows.batch.schema
    for name in _READ:
        at = schema.get_field_index(name)
        if at < 0:
            continue
        array = rows.batch.column(at)
        in_arrow = None if is_text(array.type) or is_json_column(schema.field(at)) else _in_arrow(name, array)
        if in_arrow is not None:
            rows.values[name] = in_arrow
            continue
        cells = read_cells(rows.batch, name)
        assert cells is not None
        decode = _DECODERS.get(name)
        decoded = (
            decode_column(name, cells, rows.log, rows.form.cell_readers.get(name))
            if decode is None
            else decode(name, cells, rows)
        )
        rows.values[name] = ListColumn(decoded) if isinstance(decoded, list) else decoded
        for row, message in cells.unreadable.items():
            rows.log.add(reading.NOT_UTF8, row, name, message)
            rows.unread_cells.setdefault(name, []).append(row)
    for name, unread in rows.unread_cells.items():
        rows.fail(name, unread)


def _in_arrow(name: str, array: pa.Array) -> DecodedColumn | None:
    """The column as it is in Arrow, if it has the required type and no issue."""
    if name in _CONTEXTS:
        return DocumentColumn.of(simplified(array))
    native = native_values(name, array)
    return None if native is None else ListColumn(native)


_CONTEXTS = columns_of(Contexts, RetrievedContext)
_READ = (*(n for n in COLUMNS if n not in ("trace", *columns_of(JsonValue), *_CONTEXTS)), *_CONTEXTS)
"""The columns in the order in which issues are logged: documents are last; originals (originals.py) may be anything."""

Decoded = DecodedColumn | list[Any]


_DECODERS: dict[str, Callable[[str, Cells, Rows], Decoded]] = {
    "request": lambda _, cells, rows: decode_requests(cells, rows.plan.can_hold_objects, rows.log, rows.plain),
    "response": lambda _, cells, rows: decode_response(cells, rows.log),
    **dict.fromkeys(TEXT_COLUMNS, lambda name, cells, rows: decode_text(name, cells, rows.log)),
    "retrieved_context": lambda name, cells, rows: decode_column(
        name, cells, rows.log, documents_of_trace if "trace" in rows.batch.schema.names else None
    ),
}
"""The columns that are not JSON values of one type."""


class Step(Struct, frozen=True):
    """A function that is applied to the rows if they have one of these columns; without any, always."""

    run: Callable[[Rows], None]
    columns: tuple[str, ...] = ()


STEPS = (
    Step(log_notes, (NOTES,)),
    Step(read_columns),
    Step(note_null_placeholders, ("request", "response")),
    Step(note_empty_lists, LISTS),
    Step(read_traces, ("trace",)),
    Step(inspect_tags, ("tags",)),
    Step(fill_from_traces, ("trace",)),
    Step(require_request_and_output),
    Step(forbid_two_truths, ("expected_facts",)),
    Step(inspect_ground_truth, ("expected_response",)),
    Step(note_placeholders, ("response", "expected_response")),
    Step(note_placeholder_entries, ("expected_facts", "guidelines")),
)

STEPS_OF_OTHER_ROWS = (Step(log_notes, (NOTES,)), Step(inspect_other_rows))
"""The steps of a format whose rows are not evaluation rows (`Format.is_rows`)."""


# --- the rules of other packages: one that raises an exception costs only its own issue
MOST, LONGEST = 1000, 2000
"""Issues of a rule per row, and characters of a message: a rule whose issues do not end, ends."""


def apply_package_rules(rows: Rows) -> None:
    """Log the issues of the rules that are installed, and those that are missing here: in another process, or on an
    executor of Spark, a package may not be installed."""
    installed = rules_of_packages()
    for code in sorted(rows.codes - RULES.keys() - installed.keys()):
        for row in range(rows.size):
            rows.log.add(RULE_NOT_RUN, row, None, f"expected the rule {code}, got none: its package is not installed")
    for code in sorted(rows.codes & installed.keys()):
        with installed[code].watch(f"for {plural(rows.size, 'row')}", rows.size):
            _apply(installed[code], rows)


def _apply(entry: Extension[RowRule], rows: Rows) -> None:
    rule, columns = entry.value.rule, [name for name in entry.value.columns if name in COLUMNS]
    schema = pa.schema([FIELDS[name] for name in columns])
    values = pa.RecordBatch.from_arrays([normalized(name, rows) for name in columns], schema=schema)
    decoded = [rows.values[name] for name in columns]
    for row, cells in enumerate(to_rows(values)):
        if row in rows.unread or any(column[row] is FAILED for column in decoded):
            continue
        try:
            issues = list(islice(entry.value.check(cells), MOST + 1))
            if len(issues) > MOST:
                raise ValueError(f"more than {MOST:,} issues of a row")
            issues = [(visible(path)[:LONGEST], visible(str(message)[:LONGEST])) for path, message in issues]
        except RAISED as error:
            why = f"`{rule.code}` of {entry.package} raised an exception: {type(error).__name__}: {first_line(error)}"
            rows.log.add(RULE_NOT_RUN, row, None, why)
            continue
        for path, message in issues:
            column = path.partition(".")[0].partition("[")[0]
            known = column if column in COLUMNS else None
            if may_quote():
                rows.log.add(rule, row, known, message, path=path)
            else:  # what another package writes may quote a cell
                rows.log.add(rule, row, known, rule.summary, path=known)
