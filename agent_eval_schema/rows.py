"""The rows of one batch while they are checked: decoded columns, filled from traces, judged by rules across columns.

Each step below takes the rows and writes issues or values into them; `STEPS` is their order. A rule whose input did not
decode (`FAILED`) is not run.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema import request as requests_
from agent_eval_schema.cells import Cells, is_text, read_cells, reading_problems, simplified, text_views
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
from agent_eval_schema.issues import IssueLog
from agent_eval_schema.model import COLUMNS, DOCUMENT, Document, ToolCall
from agent_eval_schema.rules import RULES, expectations, requests, retrieval, tools
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
        self.values: dict[str, Values] = {}
        self.derived: list[Derived | None] | None = None
        self.unread: set[int] = set()
        self.filled = np.zeros(self.size, np.uint32)
        self.misspelt = {right: wrong for wrong, right in misspelt_columns(batch.schema.names).items()}

    def column(self, name: str) -> Values:
        """The decoded column, all None if there is none."""
        return self.values.get(name) or [None] * self.size

    def writable(self, name: str) -> Values:
        """The decoded column, made if there is none."""
        if name not in self.values:
            self.values[name] = [None] * self.size
        return self.values[name]


def misspelt_columns(names: Sequence[str]) -> dict[str, str]:
    """Columns that are nearly one of ours: {as written: as meant}."""
    unknown = [n for n in names if n not in COLUMNS and not n.startswith("__")]
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
            _merge(rows, name, _decode(name, cells, rows))
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
    column = simplified(rows.batch.column(at))
    values = _plain_documents(column) if column.type == pa.list_(DOCUMENT) else None
    if values is None:
        cells = read_cells(rows.batch, name)
        assert cells is not None
        values = decode_column(name, cells, rows.log)
    _merge(rows, name, values)


def _plain_documents(column: pa.ListArray) -> Values | None:
    """The documents of an Arrow list of structs that is right throughout, without going through JSON."""
    flat = column.flatten()
    uris, contents = flat.field("doc_uri"), flat.field("content")
    if flat.null_count or uris.null_count or pc.any(pc.equal(pc.utf8_trim_whitespace(uris), "")).as_py():
        return None
    documents = list(map(Document, uris.to_pylist(), contents.to_pylist()))
    bounds = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(column).fill_null(0)))]).tolist()
    values: Values = [documents[a:b] for a, b in itertools.pairwise(bounds)]
    for row in np.flatnonzero(np.asarray(column.is_null())):
        values[row] = None
    return values


def note_empty_lists(rows: Rows) -> None:
    """Lists that are there and say nothing where something was expected."""
    for row, value in enumerate(rows.values.get("expected_retrieved_context", ())):
        if value is not None and value is not FAILED and not value:
            message = "expected at least one document, got an empty list"
            rows.log.add(retrieval.EMPTY_EXPECTED_CONTEXT, row, "expected_retrieved_context", message)
    for name in ("predicted_trajectory", "reference_trajectory"):
        for row, value in enumerate(rows.values.get(name, ())):
            if value is not None and value is not FAILED and not value:
                rows.log.add(tools.EMPTY_TRAJECTORY, row, name, "expected at least one call, got an empty list")


# ---------------------------------------------------------------------------------------------------------------------
# traces


def read_traces(rows: Rows) -> None:
    """Decode the traces and derive what they say; a trace that cannot be read is an issue of the trace column."""
    at = rows.batch.schema.get_field_index("trace")
    if at < 0:
        return
    column = simplified(rows.batch.column(at))
    cells = text_views(column) if is_text(column.type) else (read_cells(rows.batch, "trace") or Cells([], True)).texts
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
    if not any(v is not None for v in derived):
        return
    values, bit = rows.writable(name), BIT_OF[name]
    for row, value in enumerate(derived):
        if value is not None and values[row] is None:
            values[row] = value
            rows.filled[row] |= bit


def _fill_requests(rows: Rows) -> None:
    requests_of = [d.request if d else None for d in rows.derived or ()]
    given = rows.writable("request")
    for row, messages in enumerate(requests_of):
        if messages is not None and given[row] is None and rows.format == "databricks":
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
    if other and rows.column(other)[row] is not None:
        return  # the row's own ground truth wins over the trace's, in either form
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
    for row, request in enumerate(rows.column("request")):
        if request is None and row not in rows.unread and traced[row] is not FAILED:
            _note_missing(rows, row, ("request",), requests.MISSING_REQUEST, "expected a request, got none")
    for row, response in enumerate(rows.column("response") if rows.outputs == "provided" else ()):
        if response is None and traced[row] is None and row not in rows.unread:
            message = "expected a response or a trace, got neither"
            _note_missing(rows, row, ("response", "trace"), requests.MISSING_OUTPUT, message)


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
    truths = [v if isinstance(v, str) else None for v in rows.values.get("expected_response", ())]
    answers, contexts = rows.column("response"), rows.column("retrieved_context")
    array = pa.array(truths, pa.string())
    # Arrow's regex engine reads a column faster than a loop could look at its first letters.
    polite = set(np.flatnonzero(np.asarray(pc.match_substring_regex(array, _POLITE).fill_null(False))).tolist())
    for row, truth in enumerate(truths):
        if truth is not None and (len(truth) >= COPY_LENGTH or row in polite):
            signs = _signs(truth, answers[row], contexts[row], row in polite)
            if signs:
                message = f"expected the minimal facts, got {excerpt(truth)}: {'; '.join(signs)}"
                rows.log.add(expectations.NOT_MINIMAL, row, "expected_response", message)


def _signs(truth: str, answer: Any, documents: Any, polite: bool) -> list[str]:
    found, long = [], len(truth) >= COPY_LENGTH
    if long and truth == answer:
        found.append("it is identical to the response")
    elif isinstance(answer, str) and len(truth) > max(3 * len(answer), 200):
        found.append(f"it is {len(truth) // max(len(answer), 1)} times as long as the response")
    if long and documents and documents is not FAILED and _stands_in(truth, documents):
        found.append("it stands word for word in a retrieved document")
    if polite:
        found.append("it holds a greeting or a closing phrase")
    return found


def _stands_in(truth: str, documents: list[Document]) -> bool:
    for document in documents:  # noqa: SIM110 -- a generator would cost more than the search
        if document.content and truth in document.content:
            return True
    return False


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
