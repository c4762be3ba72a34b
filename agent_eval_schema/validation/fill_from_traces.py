"""Traces → the cells that they fill.

The value of a column takes precedence over that of its trace; a conflict is reported.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import to_builtins

from agent_eval_schema.cells.arrow import depths, is_text, simplified, text_views
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.decoding import requests as requests_
from agent_eval_schema.decoding.columns import Typed, typed_value, value_of_cell
from agent_eval_schema.decoding.values import FAILED, ListColumn, Values
from agent_eval_schema.formats.mlflow import EXPECTATIONS, TOOL_CALLS, typed_calls
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import traces as trace_rules
from agent_eval_schema.rules.columns import PREFERRED_TRUTH
from agent_eval_schema.rules.expectations import EXPECTED_AS_JSON, EXPECTED_RESPONSE_TYPE
from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.rules.retrieval import DERIVED_WITHOUT_URI
from agent_eval_schema.schema import COLUMNS, Document, JsonValue, columns_of
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.decode import decode_shallow, too_deep
from agent_eval_schema.traces.derive import Derived, derive
from agent_eval_schema.traces.feedback import Feedback, read_trace_feedback
from agent_eval_schema.traces.labels import COPIED, TAG, labels_of
from agent_eval_schema.traces.mlflow_readable import decode_for_mlflow
from agent_eval_schema.traces.spans import Trace
from agent_eval_schema.validation.rows import BIT_OF, Rows


def read_traces(rows: Rows) -> None:
    """Decode the traces and derive their fields; a trace that cannot be read is an issue of the trace column."""
    if "trace" not in rows.batch.schema.names:
        return
    plan, (cells, deep, spare) = rows.plan, _trace_texts(rows.batch)
    rows.derived = [None] * rows.size
    values, states = ListColumn(cells), list[bool | None]([None] * rows.size)
    values_matter = (plan.columns and not plan.beside_traces) or not _COMPARED_WITH_DOCUMENTS.isdisjoint(rows.values)
    for row, cell in enumerate(cells):
        if cell is not None:
            if row in deep:
                trace: Trace | list[Finding] = too_deep()
            elif plan.beside_traces:
                trace = decode_for_mlflow(cell, values_matter, spare[row])
            else:
                trace = decode_shallow(cell, values_matter)
            if isinstance(trace, Trace):
                trace.spare = spare[row]
                rows.derived[row], states[row] = derive(trace, values_matter, plan.figures), trace.plain
                if plan.labeled and (feedback := read_trace_feedback(bytes(trace.info.assessments), None, None)):
                    rows.feedback[row] = feedback
            else:
                _log_notes(rows, row, trace)
                values[row] = FAILED
    for row in rows.unread_cells.get("trace", ()):
        values[row] = FAILED
    rows.values["trace"], rows.trace_states = values, states


_COMPARED_WITH_DOCUMENTS = frozenset(["retrieved_context", "expected_retrieved_context", "expected_response"])


def trace_texts(batch: pa.RecordBatch) -> list[str | None]:
    if "trace" not in batch.schema.names:
        return [None] * batch.num_rows
    texts, _, _ = _trace_texts(batch)
    return [t if t is None or isinstance(t, str) else bytes(t).decode("utf-8", "replace") for t in texts]


def _trace_texts(batch: pa.RecordBatch) -> tuple[Sequence[str | memoryview | None], Collection[int], Sequence[int]]:
    """The traces' JSON texts (of a text cell, the text), the rows of those that are nested too deep, and what each has
    to `spare`."""
    at = batch.schema.get_field_index("trace")
    if not is_json_column(batch.schema.field(at)):
        column = simplified(batch.column(at))
        if is_text(column.type):
            deep, opening = depths(column)
            return text_views(column), frozenset(deep), (MAX_DEPTH - opening).tolist()
    cells = read_cells(batch, "trace")
    assert cells is not None
    inner = [jsontext.parse_leniently(t) if t is not None and t[0] == '"' else t for t in cells.texts]
    texts = [v if v is None or isinstance(v, str) else t for v, t in zip(inner, cells.texts, strict=True)]
    return texts, [row for row, text in enumerate(texts) if text is not None and is_too_deep(text)], [0] * len(texts)


def _log_notes(rows: Rows, row: int, notes: Iterable[Finding]) -> None:
    """Log the issues of a trace; their paths are those inside of it."""
    for note in notes:
        if note.rule is trace_rules.TRACE_WITHOUT_CONTENT and rows.plan.format == "otel":
            continue  # it is reported once for the data
        rows.log.add(note.rule, row, "trace", note.message, path=f"trace.{note.path}" if note.path else "trace")


_FROM_TRACE = {n: attrgetter(n) for n in COLUMNS if n in Derived.__struct_fields__ and n not in columns_of(JsonValue)}
_NOTHING_SAID = Derived()

LEFT_TO_TRACES = frozenset(["trace", *_FROM_TRACE]) - {"request", "request_id", "response"}
"""The columns that the reader of a trace takes from the trace only."""


def leave_to_traces(rows: Rows) -> None:
    """Keep, of the columns left to traces, the cells of rows without a trace and a session that a trace lacks."""
    for name in LEFT_TO_TRACES & rows.values.keys():
        if name == "session_id":
            of_trace = (rows.filled & np.uint32(BIT_OF[name])).astype(bool).tolist()
            pairs = zip(rows.values[name], of_trace, strict=True)
            rows.values[name] = ListColumn(None if taken else value for value, taken in pairs)
        elif name == "trace" or None not in rows.trace_states:
            del rows.values[name]
        else:
            pairs = zip(rows.values[name], rows.trace_states, strict=True)
            rows.values[name] = ListColumn(value if state is None else None for value, state in pairs)


def fill_from_traces(rows: Rows) -> None:
    """The value of a column takes precedence over that of its trace; an absent cell is filled."""
    if rows.derived is None:
        return
    if _CONTEXT in rows.values:
        _judge_missing_uris(rows)
    if not rows.values.keys().isdisjoint(_COMPARED):
        _note_disagreements(rows)
    if _CONTEXT in rows.values:
        # A field that a column holds is not taken from the trace: how it would have been read does not matter.
        contexts = rows.values[_CONTEXT]
        for row, derived in enumerate(rows.derived):
            if derived and contexts[row] is not None:
                derived.notes[:] = [n for n in derived.notes if not (n.path or "").startswith(_CONTEXT)]
    derived_rows = [d or _NOTHING_SAID for d in rows.derived]
    for name, read in _FROM_TRACE.items():
        values = list(map(read, derived_rows))
        if values.count(None) < len(values):
            _fill(rows, name, values)
    if any([d.expectations for d in derived_rows]):
        _fill_expectations(rows)
    for row, feedback in rows.feedback.items():
        _label(rows, row, feedback)
    for row, derived in enumerate(derived_rows):
        if derived.notes:
            has_response = rows.values["response"][row] is not None
            notes = [n for n in derived.notes if not (has_response and n.rule is trace_rules.NO_OUTPUTS)]
            _log_notes(rows, row, notes)


def _fill(rows: Rows, name: str, derived: Values) -> None:
    filled = np.array([v is not None for v in derived], bool)
    if name not in rows.values:
        rows.values[name] = ListColumn(derived)
    else:
        filled &= ~rows.values[name].given()
        if not filled.any():
            return  # nothing to fill: a column can stay in Arrow
        values = rows.writable(name)
        for row in np.flatnonzero(filled).tolist():
            if values[row] is FAILED:
                filled[row] = False
            else:
                values[row] = derived[row]
    rows.filled |= filled * BIT_OF[name]
    if name == "request":
        for row in np.flatnonzero(filled).tolist():
            requests_.check_messages(derived[row], row, rows.log)
            if rows.plan.format == "databricks":
                rows.log.add(trace_rules.REQUEST_DERIVED, row, "request", "taken from the trace's root span")


def _judge_missing_uris(rows: Rows) -> None:
    """Accept documents without doc_uri that the row's trace has alike: rows made of traces can be read again."""
    contexts = rows.values[_CONTEXT]
    for row, documents in enumerate(contexts if isinstance(contexts, ListColumn) else ()):
        uris = None if documents is None or documents is FAILED else _uris(documents)
        if uris is None or None not in uris:
            continue
        derived = rows.derived[row] if rows.derived else None
        if derived is not None and derived.retrieved_context is not None and _uris(derived.retrieved_context) == uris:
            message = "doc_uri is missing in the document and in its trace"
            for i in [i for i, uri in enumerate(uris) if uri is None]:
                rows.log.add(DERIVED_WITHOUT_URI, row, _CONTEXT, message, path=f"{_CONTEXT}[{i}].doc_uri")
        else:
            rows.writable(_CONTEXT)[row], problems = typed_value(_CONTEXT, to_builtins(documents), _CONTEXT)
            for problem in problems:
                rows.log.add_finding(row, problem, _CONTEXT)


_CONTEXT = "retrieved_context"


def _fill_expectations(rows: Rows) -> None:
    for row, derived in enumerate(rows.derived or ()):
        if derived is None or not derived.expectations:
            continue
        custom = {}
        for name, value in derived.expectations.items():
            column = EXPECTATIONS.get(name)
            if column is None:
                custom[name] = value
                continue
            typed = _expectation(rows, row, name, value)
            if typed is not None:
                _fill_one(rows, column, row, typed)
        if custom:
            _fill_one(rows, "custom_expected", row, custom)


def _fill_one(rows: Rows, column: str, row: int, value: Any) -> None:
    preferred = rows.plan.preferred
    other = {"expected_response": "expected_facts", "expected_facts": "expected_response"}.get(column)
    if other and rows.values[other][row] is not None:  # a row's own ground truth wins over the trace's, in either form
        is_of_trace = rows.filled[row] & BIT_OF[other]
        if is_of_trace and preferred in (column, other):
            message = f"dropped, as the trace has `{preferred}`"
            if preferred == column:
                rows.writable(other)[row], rows.writable(column)[row] = None, value
                rows.filled[row] ^= BIT_OF[other] | BIT_OF[column]
            rows.log.add(PREFERRED_TRUTH, row, other if preferred == column else column, message)
        elif is_of_trace:
            message = f"{column} is dropped: expected at most one of it and {other}, the trace has both"
            path, hint = f"trace.info.assessments.{column}", "Delete one of the two expectations in MLflow."
            rows.log.add(trace_rules.ODD_TRACE, row, "trace", message, path=path, hint=hint)
        return
    values = rows.writable(column)
    if values[row] is None:
        values[row] = value
        rows.filled[row] |= BIT_OF[column]


def _label(rows: Rows, row: int, feedback: list[Feedback]) -> None:
    """Copy the response of a trace with which people were content, unless its row has ground truth."""
    response = rows.values["response"][row]
    expected = [name for name in ("expected_response", "expected_facts") if rows.values[name][row] is not None]
    labels = labels_of(feedback, response=None if response is FAILED else response, expected=expected)
    for finding in labels.notes:
        rows.log.add_finding(row, finding)
    if labels.copied:
        rows.writable("expected_response")[row] = response
        tags = rows.writable("tags")
        tags[row] = {**(tags[row] if isinstance(tags[row], dict) else {}), TAG: COPIED}


def _expectation(rows: Rows, row: int, name: str, value: Any) -> Any:
    """The value of an expectation of a trace in its column's type, read as a cell is read; None if it cannot be."""
    path = f"trace.info.assessments.{name}"
    value = value_of_cell(value, False) if isinstance(value, str) and name != "expected_response" else value
    typed, problems = _typed(name, value, path)
    if typed is not FAILED:
        for problem in problems:
            rows.log.add_finding(row, problem, "trace")
        return typed
    errors = [p for p in problems if p.rule.severity is Severity.ERROR]
    why = "; ".join(p.message for p in errors[:3]) + ("; …" if len(errors) > 3 else "")
    hint = f"Correct the expectation in MLflow. {errors[0].hint or errors[0].rule.hint}"
    rows.log.add(trace_rules.ODD_TRACE, row, "trace", f"{name} is dropped: {why}", path=errors[0].path, hint=hint)
    return None


def _typed(name: str, value: Any, path: str) -> Typed:
    if isinstance(value, jsontext.Malformed):
        return FAILED, [Finding(value.rule, value.message, path=path)]
    if name == "expected_response":
        if value is None or (isinstance(value, str) and not value.strip()):
            return FAILED, [Finding(EXPECTED_RESPONSE_TYPE, f"expected text, got {describe(value)}", path=path)]
        if isinstance(value, str):
            return value, []
        message = f"got {describe(value)}; its JSON text is taken"
        return jsontext.encode(value).decode(), [Finding(EXPECTED_AS_JSON, message, path=path)]
    return typed_calls(value, path) if name == TOOL_CALLS else typed_value(EXPECTATIONS[name], value, path)


def _note_disagreements(rows: Rows) -> None:
    """A trace that was joined to the wrong row has another request, answer or set of documents."""
    compared = [(name, read, rows.values[name]) for name, read in _COMPARED.items() if rows.values.get(name)]
    for row, derived in enumerate(rows.derived or ()):
        for name, read, values in compared if derived is not None else ():
            own = values[row]
            if own is None or own is FAILED:
                continue
            derived_value = getattr(derived, name)
            if derived_value is None or own == derived_value:
                continue
            value, derived_value = read(own), read(derived_value)  # as they are compared
            if value is not None and derived_value is not None and value != derived_value:
                message = f"the column has {describe(value)}, its trace {describe(derived_value)}"
                rows.log.add(trace_rules.TRACE_DISAGREES, row, name, message)


def _squeezed(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def _uris(documents: list[Document]) -> list[str | None]:
    return [d.doc_uri for d in documents]


_COMPARED: dict[str, Callable[[Any], Any]] = {
    "request": lambda r: _squeezed(requests_.last_user_text(r)),
    "response": _squeezed,
    "retrieved_context": _uris,
}
