"""Traces → the cells that they fill.

What a column holds wins over what its trace says; where the two disagree, it is said.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema import jsontext
from agent_eval_schema import request as requests_
from agent_eval_schema.cells import is_json_column, is_text, read_cells, simplified, text_views
from agent_eval_schema.decoding import (
    FAILED,
    SHAPES,
    Values,
)
from agent_eval_schema.diagnose import describe, is_type
from agent_eval_schema.model import Document, ToolCall
from agent_eval_schema.rows import BIT_OF, Rows, merge
from agent_eval_schema.rules import traces as trace_rules
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.traces.derive import Derived, derive
from agent_eval_schema.traces.plain import decode_for_mlflow


def read_traces(rows: Rows) -> None:
    """Decode the traces and derive what they say; a trace that cannot be read is an issue of the trace column."""
    at = rows.batch.schema.get_field_index("trace")
    if at < 0:
        return
    column = simplified(rows.batch.column(at))
    cells = _trace_texts(rows.batch, column, at)
    rows.derived = [None] * rows.size
    values: Values = [None] * rows.size
    states: list[bool | None] = [None] * rows.size
    decode = decode_for_mlflow if rows.beside_traces else decode_trace
    for row, cell in enumerate(cells):
        if cell is not None:
            trace = decode(cell)
            if isinstance(trace, Trace):
                rows.derived[row] = derive(trace, rows.columns)
            else:
                _note_unreadable(rows, row, trace)
            values[row] = cell if isinstance(trace, Trace) else FAILED
            states[row] = trace.plain if isinstance(trace, Trace) else None
    rows.trace_states = states
    merge(rows, "trace", values)


def trace_texts(batch: pa.RecordBatch) -> list[str | None]:
    """The traces' JSON texts of a batch."""
    at = batch.schema.get_field_index("trace")
    if at < 0:
        return [None] * batch.num_rows
    found = _trace_texts(batch, simplified(batch.column(at)), at)
    return [t if t is None or isinstance(t, str) else bytes(t).decode("utf-8", "replace") for t in found]


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
        return _expectation("reference_trajectory", as_trajectory(value) if isinstance(value, list) else value)
    if name == "reference_trajectory":
        good = is_type(SHAPES[name].type, value)
        return name, [ToolCall(**c) for c in value] if good else FAILED
    if name == "expected_response":
        return name, value if isinstance(value, str) else FAILED
    if name in ("expected_facts", "guidelines"):
        return name, value if is_type(SHAPES[name].type, value) else FAILED
    if name == "expected_retrieved_context":
        good = is_type(SHAPES[name].type, value)
        return name, [Document(**d) for d in value] if good else FAILED
    return None, None


def as_trajectory(calls: Iterable[Any]) -> list[Any]:
    """mlflow's [{name, arguments}] as [{tool_name, tool_input}]; an entry that is no object stays as it is, to be
    told."""
    return [
        {"tool_name": c.get("name"), "tool_input": c.get("arguments")} if isinstance(c, Mapping) else c for c in calls
    ]


def _note_disagreements(rows: Rows) -> None:
    """A trace that was joined to the wrong row shows in another request, answer or set of documents."""
    if not any(name in rows.values for name in _COMPARED):
        return
    for row, derived in enumerate(rows.derived or ()):
        if derived is None:
            continue
        for name, mine, its in _pairs(rows, row, derived):
            if mine is not None and its is not None and mine != its:  # as they are compared
                message = f"the column says {describe(mine)}, its trace {describe(its)}"
                rows.log.add(trace_rules.TRACE_DISAGREES, row, name, message)


def _pairs(rows: Rows, row: int, derived: Derived) -> list[tuple[str, Any, Any]]:
    pairs = []
    for name, read in _COMPARED.items():
        values = rows.values.get(name)
        if values and values[row] is not None and values[row] is not FAILED:
            mine, its = values[row], getattr(derived, name)
            if its is not None and mine != its:
                pairs.append((name, read(mine), read(its)))
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
