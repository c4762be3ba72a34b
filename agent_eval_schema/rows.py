"""The rows of one batch while they are checked: decoded columns, filled from traces, judged by rules across columns.

Each step below takes the rows and writes issues or values into them; `STEPS` is their order. A rule whose input did not
decode (`FAILED`) is not run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema import jsontext
from agent_eval_schema import request as requests_
from agent_eval_schema.cells import Cells, is_json_column, is_text, read_cells, reading_problems, simplified, text_views
from agent_eval_schema.decoding import (
    FAILED,
    SHAPES,
    TEXT_COLUMNS,
    Values,
    decode_column,
    decode_response,
    decode_text,
)
from agent_eval_schema.diagnose import describe, excerpt, is_type, match_names
from agent_eval_schema.documents import DocumentColumn
from agent_eval_schema.issues import IssueLog
from agent_eval_schema.model import COLUMNS, Document, ToolCall
from agent_eval_schema.rules import RULES, expectations, reading, requests, retrieval, tools
from agent_eval_schema.rules import traces as trace_rules
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.traces.derive import Derived, derive

BIT_OF = {name: np.uint32(1 << i) for i, name in enumerate(COLUMNS)}
"""One bit a canonical column: `Rows.filled` says with them which fields of a row were taken from its trace."""


class Rows:
    """A batch of rows. `values[column]` has one entry a row; a column that the batch lacks has no entry."""

    def __init__(self, batch: pa.RecordBatch, format: str, outputs: str, nests: bool) -> None:
        self.batch = batch
        self.size = batch.num_rows
        self.format = format
        self.outputs = outputs
        self.nests = nests
        self.log = IssueLog(self.size)
        self.values: dict[str, Values | DocumentColumn] = {}
        self.derived: list[Derived | None] | None = None
        self.unread: set[int] = set()
        self.filled = np.zeros(self.size, np.uint32)
        self.misspelt = {right: wrong for wrong, right in misspelt_columns(batch.schema.names).items()}

    def column(self, name: str) -> Values | DocumentColumn:
        """The decoded column, all None if there is none."""
        values = self.values.get(name)
        return [None] * self.size if values is None else values

    def writable(self, name: str) -> Values:
        """The decoded column, made if there is none."""
        values = self.values.get(name)
        if not isinstance(values, list):
            values = [None] * self.size if values is None else list(values)
            self.values[name] = values
        return values


def misspelt_columns(names: Sequence[str]) -> dict[str, str]:
    """Columns that are nearly one of ours: {as written: as meant}."""
    unknown = [n for n in names if n not in COLUMNS]
    # 0.85 tells `expected_respones` from `trace_id` and `request_time`, which are names of their own.
    found = {n: match_names([n], COLUMNS, cutoff=0.85) for n in unknown}
    return {wrong: meant[wrong] for wrong, meant in found.items() if meant}


# ---------------------------------------------------------------------------------------------------------------------
# reading the cells


def note_reading_problems(rows: Rows) -> None:
    """What the reader of the file or frame could not read; a row that is no row is not judged further."""
    for row, problems in enumerate(reading_problems(rows.batch)):
        for column, code, message in problems:
            rows.log.add(RULES[code], row, column, message)
            if column is None:
                rows.unread.add(row)
            elif column in COLUMNS:
                rows.writable(column)[row] = FAILED


def read_columns(rows: Rows) -> None:
    """Decode every column that we know."""
    for name in COLUMNS:
        cells = None if name in ("trace", *_CONTEXTS) else read_cells(rows.batch, name)
        if cells is not None:
            values = _decode(name, cells, rows)
            for row, message in cells.unreadable.items():
                rows.log.add(reading.NOT_UTF8, row, name, message)
                values[row] = FAILED
            _merge(rows, name, values)
    for name in _CONTEXTS:
        _read_context(rows, name)


_CONTEXTS = ("expected_retrieved_context", "retrieved_context")


def _decode(name: str, cells: Cells, rows: Rows) -> Values:
    if name == "request":
        return requests_.decode_requests(cells, rows.nests, rows.log)
    if name == "response":
        return decode_response(cells, rows.log)
    if name in TEXT_COLUMNS:
        return decode_text(name, cells, rows.log)
    return decode_column(name, cells, rows.log)


def _merge(rows: Rows, name: str, values: Values) -> None:
    """Keep what the reader already said of a cell."""
    for row, value in enumerate(rows.values.get(name, ())):
        if value is FAILED:
            values[row] = FAILED
    rows.values[name] = values


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
    _merge(rows, name, decode_column(name, cells, rows.log))


def note_empty_lists(rows: Rows) -> None:
    """Lists that are there and say nothing where something was expected."""
    for name, rule, noun in _EMPTY:
        values = rows.values.get(name, ())
        if isinstance(values, DocumentColumn):
            empty = np.flatnonzero(values.given() & ~values.filled()).tolist()
        else:
            empty = [row for row, v in enumerate(values) if v is not None and v is not FAILED and not v]
        for row in empty:
            rows.log.add(rule, row, name, f"expected at least one {noun}, got an empty list")


_EMPTY = (
    ("expected_retrieved_context", retrieval.EMPTY_EXPECTED_CONTEXT, "document"),
    ("predicted_trajectory", tools.EMPTY_TRAJECTORY, "call"),
    ("reference_trajectory", tools.EMPTY_TRAJECTORY, "call"),
)


# ---------------------------------------------------------------------------------------------------------------------
# traces


def read_traces(rows: Rows) -> None:
    """Decode the traces and derive what they say; a trace that cannot be read is an issue of the trace column."""
    at = rows.batch.schema.get_field_index("trace")
    if at < 0:
        return
    column = simplified(rows.batch.column(at))
    cells = _trace_texts(rows.batch, column, at)
    rows.derived = [None] * rows.size
    values: Values = [None] * rows.size
    for row, cell in enumerate(cells):
        if cell is not None:
            trace = decode_trace(cell)
            if isinstance(trace, Trace):
                rows.derived[row] = derive(trace)
            else:
                _note_unreadable(rows, row, trace)
            values[row] = cell if isinstance(trace, Trace) else FAILED
    _merge(rows, "trace", values)


def _trace_texts(batch: pa.RecordBatch, column: pa.Array, at: int) -> Sequence[str | memoryview | None]:
    """The traces' JSON texts: an object is its JSON, a text is what it says."""
    if is_text(column.type) and not is_json_column(batch.schema.field(at)):
        return text_views(column)
    cells = read_cells(batch, "trace")
    assert cells is not None
    return [_unquoted(t) if t is not None and t[0] == '"' else t for t in cells.texts]


def _unquoted(text: str) -> str:
    value = jsontext.parse_leniently(text)
    return value if isinstance(value, str) else text


def _note_unreadable(rows: Rows, row: int, notes: list[Any]) -> None:
    for rule, path, message in notes:
        rows.log.add(rule, row, "trace", message, path=f"trace.{path}" if path else "trace")


_FROM_TRACE = (
    "request_id",
    "response",
    "predicted_trajectory",
    "input_token_count",
    "output_token_count",
    "total_token_count",
    "latency_seconds",
    "failure",
    "error",
    "session_id",
)


def fill_from_traces(rows: Rows) -> None:
    """What a column holds wins over what its trace says; an absent cell is filled."""
    if rows.derived is None:
        return
    _note_disagreements(rows)
    _fill_requests(rows)
    for name in _FROM_TRACE:
        _fill(rows, name, [None if d is None else getattr(d, name) for d in rows.derived])
    _fill_contexts(rows)
    _fill_expectations(rows)
    for row, derived in enumerate(rows.derived):
        for rule, path, message in derived.notes if derived else ():
            rows.log.add(rule, row, "trace", message, path=f"trace.{path}" if path else "trace")


def _fill(rows: Rows, name: str, derived: Values) -> None:
    if derived.count(None) == len(derived):
        return
    given = rows.values.get(name)
    if given is None:
        rows.values[name] = derived
        rows.filled |= np.array([v is not None for v in derived]).astype(np.uint32) * BIT_OF[name]
        return
    values, bit = rows.writable(name), BIT_OF[name]
    for row, value in enumerate(derived):
        if value is not None and values[row] is None:
            values[row] = value
            rows.filled[row] |= bit


def _fill_requests(rows: Rows) -> None:
    requests_of = [d.request if d else None for d in rows.derived or ()]
    given = rows.column("request")
    for row, messages in enumerate(requests_of if rows.format == "databricks" else ()):
        if messages is not None and given[row] is None:
            rows.log.add(trace_rules.REQUEST_DERIVED, row, "request", "taken from the trace's root span")
    _fill(rows, "request", requests_of)


def _fill_contexts(rows: Rows) -> None:
    """Documents from traces are judged mildly (their notes say what they lack), so they may have no doc_uri."""
    assert rows.derived is not None
    documents = [
        None if d is None or d.retrieved_context is None else [Document(u, c) for u, c in d.retrieved_context]  # type: ignore[arg-type]
        for d in rows.derived
    ]
    given = rows.values.get("retrieved_context")
    for row, derived in enumerate(rows.derived):
        if derived and given and given[row] is not None:
            _drop_notes(derived, "retrieved_context")
    _fill(rows, "retrieved_context", documents)


def _drop_notes(derived: Derived, field: str) -> None:
    """A field that a column holds is not taken from the trace: how it would have been read does not matter."""
    derived.notes[:] = [n for n in derived.notes if not n[1].startswith(field)]


def _fill_expectations(rows: Rows) -> None:
    if not any(d is not None and d.expectations for d in rows.derived or ()):
        return
    for row, derived in enumerate(rows.derived or ()):
        if derived is None or not derived.expectations:
            continue
        custom = {}
        for name, value in derived.expectations.items():
            column, typed = _expectation(name, value)
            if column is None:
                custom[name] = value
            elif typed is FAILED:
                message = f"left out: got {describe(value)}"
                rows.log.add(trace_rules.ODD_TRACE, row, "trace", message, path=f"trace.info.assessments.{name}")
            else:
                _fill_one(rows, column, row, typed)
        if custom:
            _fill_one(rows, "custom_expected", row, custom)


def _fill_one(rows: Rows, column: str, row: int, value: Any) -> None:
    other = {"expected_response": "expected_facts", "expected_facts": "expected_response"}.get(column)
    if (
        other and rows.column(other)[row] is not None
    ):  # the row's own ground truth wins over the trace's, in either form
        if rows.filled[row] & BIT_OF[other]:
            message = f"left out: the trace has {other} too, and at most one of the two counts"
            rows.log.add(trace_rules.ODD_TRACE, row, "trace", message, path=f"trace.info.assessments.{column}")
        return
    values = rows.writable(column)
    if values[row] is None:
        values[row] = value
        rows.filled[row] |= BIT_OF[column]


def _expectation(name: str, value: Any) -> tuple[str | None, Any]:
    """The column that an expectation of a trace belongs to, and its value in that column's type."""
    if name == "expected_tool_calls":
        calls = (
            [
                {"tool_name": c.get("name"), "tool_input": c.get("arguments")} if isinstance(c, dict) else c
                for c in value
            ]
            if isinstance(value, list)
            else value
        )
        good = is_type(SHAPES["reference_trajectory"].type, calls)
        return "reference_trajectory", [ToolCall(**c) for c in calls] if good else FAILED
    if name == "expected_response":
        return name, value if isinstance(value, str) else FAILED
    if name in ("expected_facts", "guidelines"):
        return name, value if is_type(SHAPES[name].type, value) else FAILED
    if name == "expected_retrieved_context":
        good = is_type(SHAPES[name].type, value)
        return name, [Document(**d) for d in value] if good else FAILED
    return None, None


def _note_disagreements(rows: Rows) -> None:
    """A trace that was joined to the wrong row shows in another request, answer or set of documents."""
    if not any(name in rows.values for name in _COMPARED):
        return
    for row, derived in enumerate(rows.derived or ()):
        if derived is None:
            continue
        for name, mine, its in _pairs(rows, row, derived):
            if mine is not None and its is not None and mine != its:
                message = f"the column says {describe(mine)}, its trace {describe(its)}"
                rows.log.add(trace_rules.TRACE_DISAGREES, row, name, message)


def _pairs(rows: Rows, row: int, derived: Derived) -> list[tuple[str, Any, Any]]:
    pairs = []
    for name, read in _COMPARED.items():
        values = rows.values.get(name)
        if values and values[row] is not None and values[row] is not FAILED:
            its = getattr(derived, name)
            pairs.append((name, read(values[row]), None if its is None else read(its)))
    return pairs


def _squeezed(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def _uris(documents: list[Any]) -> list[str | None]:
    return [d[0] if isinstance(d, tuple) else d.doc_uri for d in documents]


_COMPARED: dict[str, Callable[[Any], Any]] = {
    "request": lambda r: _squeezed(requests_.last_user_text(r)),
    "response": _squeezed,
    "retrieved_context": _uris,
}


# ---------------------------------------------------------------------------------------------------------------------
# rules across columns


def require_request_and_output(rows: Rows) -> None:
    """Every row needs a request; with outputs provided it needs a response or a trace."""
    traced = rows.column("trace")
    for row in _absent(rows.column("request")):
        if row not in rows.unread and traced[row] is not FAILED:
            _note_missing(rows, row, ("request",), requests.MISSING_REQUEST, "expected a request, got none")
    for row in _absent(rows.column("response")) if rows.outputs == "provided" else ():
        if traced[row] is None and row not in rows.unread:
            message = "expected a response or a trace, got neither"
            _note_missing(rows, row, ("response", "trace"), requests.MISSING_OUTPUT, message)


def _absent(values: Values | DocumentColumn) -> list[int]:
    return [row for row, v in enumerate(values) if v is None]


def _note_missing(rows: Rows, row: int, names: tuple[str, ...], rule: Any, message: str) -> None:
    """A misspelt column absorbs the "missing" that it causes: one cause, one issue."""
    wrong = next((rows.misspelt[n] for n in names if n in rows.misspelt), None)
    hint = f"rename the column `{wrong}`: did you mean `{_meant(rows, wrong)}`?" if wrong else ""
    rows.log.add(rule, row, names[0], message, hint=hint)


def _meant(rows: Rows, wrong: str) -> str:
    return next(right for right, w in rows.misspelt.items() if w == wrong)


def forbid_two_truths(rows: Rows) -> None:
    """expected_response and expected_facts: at most one."""
    if "expected_response" in rows.values and "expected_facts" in rows.values:
        pairs = zip(rows.values["expected_response"], rows.values["expected_facts"], strict=True)
        for row, (response, facts) in enumerate(pairs):
            if response is not None and facts and response is not FAILED and facts is not FAILED:
                message = "expected at most one of expected_response and expected_facts, got both"
                rows.log.add(expectations.BOTH_RESPONSE_AND_FACTS, row, "expected_response", message)


COPY_LENGTH = 60
"""From this many characters on, the same text is taken for a copy; short answers are rightly the same."""
OPENINGS = ("hi", "hello", "hey", "dear", "thank you", "thanks for", "great question", "sure", "certainly", "of course")
CLOSINGS = ("hope this helps", "hope that helps", "let me know if", "feel free to", "happy to help", "best regards")
_POLITE = rf"(?i)^\s*({'|'.join(OPENINGS)})\b.{{12}}|({'|'.join(CLOSINGS)})[^.!?]*[.!?]?\s*$"


def look_at_ground_truth(rows: Rows) -> None:
    """The signs of seed 003 that expected_response was copied rather than written."""
    if "expected_response" not in rows.values:
        return
    truths, answers = _texts(rows.column("expected_response")), _texts(rows.column("response"))
    size, answer_size = pc.utf8_length(truths), pc.utf8_length(answers)
    long = _rows_where(pc.greater_equal(size, COPY_LENGTH))
    signs: dict[int, list[str]] = {}
    for row in _rows_where(pc.and_(pc.equal(truths, answers), pc.greater_equal(size, COPY_LENGTH))):
        signs.setdefault(row, []).append("it is identical to the response")
    for row in _rows_where(pc.greater(size, pc.max_element_wise(pc.multiply(answer_size, 3), 200, skip_nulls=False))):
        times = size[row].as_py() // max(answer_size[row].as_py(), 1)
        signs.setdefault(row, []).append(f"it is {times} times as long as the response")
    for row in _found_in_documents(rows, long):
        signs.setdefault(row, []).append("it stands word for word in a retrieved document")
    for row in _rows_where(pc.match_substring_regex(truths, _POLITE)):
        signs.setdefault(row, []).append("it holds a greeting or a closing phrase")
    for row, found in sorted(signs.items()):
        message = f"expected the minimal facts, got {excerpt(truths[row].as_py())}: {'; '.join(found)}"
        rows.log.add(expectations.NOT_MINIMAL, row, "expected_response", message)


def _texts(values: Values | DocumentColumn) -> pa.Array:
    return pa.array([v if v.__class__ is str else None for v in values], pa.string())


def _rows_where(mask: pa.Array) -> list[int]:
    found: list[int] = np.flatnonzero(np.asarray(mask.fill_null(False))).tolist()
    return found


def _found_in_documents(rows: Rows, candidates: list[int]) -> list[int]:
    """The rows whose ground truth is a passage of a retrieved document."""
    truths, contexts = rows.column("expected_response"), rows.column("retrieved_context")
    wanted: list[Any] = [None] * rows.size
    for row in candidates:
        wanted[row] = truths[row]
    if isinstance(contexts, DocumentColumn):
        return contexts.rows_holding(wanted)
    given = [row for row in candidates if contexts[row] and contexts[row] is not FAILED]
    return [row for row in given if any([d.content and wanted[row] in d.content for d in contexts[row] or ()])]


STEPS: tuple[Callable[[Rows], None], ...] = (
    note_reading_problems,
    read_columns,
    note_empty_lists,
    read_traces,
    fill_from_traces,
    require_request_and_output,
    forbid_two_truths,
    look_at_ground_truth,
)
