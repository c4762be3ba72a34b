"""Judged rows → a checked batch: the verdict on each row and, if the plan asks, the normalised columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text, is_valid_text, list_array
from agent_eval_schema.cells.batch import CANONICAL_CELLS, JSON_CELLS, is_json_column
from agent_eval_schema.cells.hashing import hash_texts
from agent_eval_schema.cells.notes import NOTE, IssueLog, is_hidden
from agent_eval_schema.decoding.requests import Chat, canonical_request, request_key
from agent_eval_schema.decoding.values import FAILED, Column, Mask
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.issues import Severity
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import (
    COLUMNS,
    DOCUMENT,
    ROW_SCHEMA,
    ChatRequest,
    Contexts,
    JsonObject,
    NamedGuidelines,
    RetrievedContext,
    Tags,
    ToolCall,
    Trajectory,
    columns_of,
)
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.doc_uris import nearness
from agent_eval_schema.validation.fill_from_traces import leave_to_traces
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.rows import Rows


def assemble(rows: Rows, plan: Plan) -> pa.RecordBatch:
    """The checked batch of judged rows."""
    log, values = _named(_switched_off(rows.log, plan.codes), find_format(plan.format).origins), rows.values
    column = rows.column
    valid = np.ones(rows.size, bool)
    valid[list(log.failed)] = False
    presence = np.zeros(rows.size, np.uint32)
    for field, name, holds in _PRESENCE:
        if name in values:
            presence |= holds(values[name]) * np.uint32(BIT[field])
    if rows.derived is not None:
        retrieves = [d is not None and d.has_retriever for d in rows.derived]
        presence |= np.array(retrieves, np.uint32) * np.uint32(BIT["retriever_span"])
    truths = _truths(column("expected_response"), column("expected_facts"))
    nearness_of, pairs = nearness(column("expected_retrieved_context"), column("retrieved_context"))
    made = {
        "valid": pa.array(valid),
        "issues": log.to_arrow(),
        "presence": pa.array(presence, pa.uint32()),
        "id": column("request_id").texts().cast(pa.string()),
        "request_hash": _hashes(_asked(column("request"), truths) if any(truths) else truths),
        "truth_hash": _hashes(truths),
        "copied": _copied(column("expected_response"), column("response")),
        "nearness": pa.array(nearness_of, pa.int8()),
        "near_pair": pa.array(pairs, pa.list_(pa.string())),
        "derived": pa.array(rows.filled, pa.uint32()),
        **{name: _numbers(column(of), read) for name, (of, read) in _FIGURES.items()},
        "mlflow_reads": pa.array(rows.trace_states, pa.bool_())
        if plan.beside_traces
        else pa.nulls(rows.size, pa.bool_()),
    }
    verdict, fields = [made[field.name] for field in VERDICT], list(VERDICT)
    if plan.columns:
        if plan.beside_traces:
            leave_to_traces(rows)
        for name in COLUMNS:
            verdict.append(normalized(name, rows))
            fields.append(FIELDS[name])
        for field, array in zip(rows.batch.schema, rows.batch.columns, strict=True):
            if field.name not in COLUMNS and not is_hidden(field):
                verdict.append(array)
                fields.append(field)
    batch = pa.RecordBatch.from_arrays(verdict, schema=pa.schema(fields))
    return batch.replace_schema_metadata({"columns": json.dumps(_column_names(rows.batch.schema, plan))})


def _column_names(schema: pa.Schema, plan: Plan) -> list[str]:
    """The columns that the data set has, of which a word may be said. A frame of search_traces has columns of its
    own, which are no surprise."""
    form = find_format(plan.format)
    if form.knows_columns:
        return []
    known = form.own_columns
    return [f.name for f in schema if not is_hidden(f) and f.name not in known]


def _switched_off(log: IssueLog, codes: frozenset[str]) -> IssueLog:
    """The log without the rules that are off."""
    if len(codes) == len(RULES) or not log.rows:
        return log
    kept = IssueLog(log.size)
    for row, note in zip(log.rows, log.notes, strict=True):
        if note[0] in codes:
            kept.rows.append(row)
            kept.notes.append(note)
            if RULES[note[0]].severity is Severity.ERROR:
                kept.failed.add(row)
    return kept


def _named(log: IssueLog, origins: dict[str, str]) -> IssueLog:
    """The log with the names that the columns have in the user's table."""
    if not origins:
        return log
    for i, (code, column, path, message, hint) in enumerate(log.notes):
        origin = origins.get(column or "")
        if origin is not None:
            rest = (path or "").removeprefix(column or "")
            log.notes[i] = (code, origin.partition(".")[0], origin + rest, message, hint)
    return log


def _numbers(column: Column, read: Callable[[Any], float | None]) -> pa.Array:
    return pa.array([None if v is None or v is FAILED else read(v) for v in column], pa.float64())


def _number(value: Any) -> float | None:
    return float(value) if abs(value) < _HUGE else None


_HUGE = 1 << 63


def _length(calls: list[Any]) -> float:
    return float(len(calls))


_FIGURES: dict[str, tuple[str, Callable[[Any], float | None]]] = {
    "latency_seconds": ("latency_seconds", _number),
    "total_token_count": ("total_token_count", _number),
    "tool_calls": ("predicted_trajectory", _length),
}
"""The numbers of which a report shows the distribution: the column, and what is counted of its cells."""


def _hashes(texts: list[str | None]) -> pa.Array:
    """The hash of each text; null stays null."""
    if texts.count(None) == len(texts):
        return pa.nulls(len(texts), pa.uint64())
    found, absent = hash_texts(texts)
    return pa.array(found, pa.uint64(), mask=absent)


def _asked(requests: Column, truths: list[str | None]) -> list[str | None]:
    """The key of each request that has a ground truth (the others have nothing to disagree about)."""
    pairs = zip(requests, truths, strict=True)
    return [None if t is None else v if v.__class__ is str else _key(v) for v, t in pairs]


def _key(request: Any) -> str | None:
    return None if request is None or request is FAILED else request_key(request)


def _truths(responses: Column, facts: Column) -> list[str | None]:
    """The ground truth of each row as one text to compare."""
    texts: list[str | None] = responses.texts().to_pylist()
    for row in np.flatnonzero(facts.filled()).tolist():
        texts[row] = jsontext.encode(facts[row]).decode()
    return texts


def _copied(truths: Column, answers: Column) -> pa.Array:
    """Whether the ground truth is the response (null: one of the two is absent)."""
    return pc.equal(truths.texts(), answers.texts())


_PRESENCE: tuple[tuple[str, str, Callable[[Column], Mask]], ...] = (
    ("request", "request", methodcaller("given")),
    ("response", "response", methodcaller("with_text")),
    ("retrieved_content", "retrieved_context", methodcaller("with_content")),
    ("retrieved_uri", "retrieved_context", methodcaller("with_uri")),
    ("expected_uri", "expected_retrieved_context", methodcaller("filled")),
    ("expected_response", "expected_response", methodcaller("given")),
    ("expected_facts", "expected_facts", methodcaller("filled")),
    ("guidelines", "guidelines", methodcaller("filled")),
    ("trace", "trace", methodcaller("given")),
    ("input_tokens", "input_token_count", methodcaller("given")),
    ("output_tokens", "output_token_count", methodcaller("given")),
    ("total_tokens", "total_token_count", methodcaller("given")),
    ("latency", "latency_seconds", methodcaller("given")),
    ("session", "session_id", methodcaller("filled")),
    ("failure", "failure", methodcaller("given")),
    ("predicted_trajectory", "predicted_trajectory", methodcaller("filled")),
    ("reference_trajectory", "reference_trajectory", methodcaller("filled")),
)
"""A field of the metric catalogue, the column that holds it, and which of its cells count."""

# ---------------------------------------------------------------------------------------------------------------------
# normalised columns
_METADATA = {
    **dict.fromkeys(columns_of(ChatRequest, JsonObject), JSON_CELLS),
    **dict.fromkeys(columns_of(Trajectory), CANONICAL_CELLS),
}
FIELDS = {n: pa.field(n, ROW_SCHEMA.field(n).type, metadata=_METADATA.get(n)) for n in COLUMNS}
"""The normalised columns, each with what says how its cells are written."""


def normalized(name: str, rows: Rows) -> pa.Array:
    """A canonical column of judged rows, as `FIELDS` has it; a cell that could not be read is null."""
    kind = ROW_SCHEMA.field(name).type
    if name not in rows.values:
        return pa.nulls(rows.size, kind)
    given = rows.values[name]
    if given.array is not None:
        return given.array.cast(kind)
    if (array := _as_it_came(name, rows, given)) is not None:
        return array.cast(kind)
    values = [None if v is FAILED else v for v in given]
    try:
        return _in_arrow(name, values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # A cell that Arrow cannot hold costs that cell, never the row.
        return pa.concat_arrays([_cell(name, value, kind) for value in values])


def _as_it_came(name: str, rows: Rows, values: Column) -> pa.Array | None:
    """The column of the batch itself, if every cell goes out as it came in: large texts need not be written anew."""
    at = rows.batch.schema.get_field_index(name)
    if name not in ("request", "trace") or at < 0 or is_json_column(rows.batch.schema.field(at)):
        return None
    array = rows.batch.column(at)
    if not is_text(array.type) or not all([v is None or v.__class__ in (Chat, memoryview) for v in values]):
        return None
    return array if name == "request" or is_valid_text(array) else None  # a Chat is of a column that is valid


def _in_arrow(name: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    form = _ARROW_FORMS.get(name, _as_it_is)(values)
    return form if isinstance(form, pa.Array) else pa.array(form, kind)


def _cell(name: str, value: Any, kind: pa.DataType) -> pa.Array:
    try:
        return _in_arrow(name, [value], kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.nulls(1, kind)


def _as_it_is(values: list[Any]) -> list[Any]:
    return values


def _requests(values: list[Any]) -> list[Any]:
    return [None if v is None else canonical_request(v).decode() for v in values]


def _documents(values: list[Any]) -> pa.Array:
    """Built of flat columns: Arrow takes twice as long to make them of dicts."""
    flat = [d for v in values for d in v or ()]
    columns = [pa.array([d.doc_uri for d in flat], pa.string()), pa.array([d.content for d in flat], pa.string())]
    documents = pa.StructArray.from_arrays(columns, fields=list(DOCUMENT))
    return list_array([len(v or ()) for v in values], documents, [v is None for v in values])


def _calls(values: list[Any]) -> list[Any]:
    return [None if v is None else [_call(c) for c in v] for v in values]


def _call(call: ToolCall) -> dict[str, Any]:
    given = {} if call.tool_input is None else call.tool_input
    return {"tool_name": call.tool_name, "tool_input": jsontext.encode(given).decode()}


def _guidelines(values: list[Any]) -> list[Any]:
    named = [{"guidelines": v} if isinstance(v, list) else v for v in values]
    return [None if v is None else list(v.items()) for v in named]


def _tags(values: list[Any]) -> list[Any]:
    return [None if v is None else [(k, _tag(t)) for k, t in v.items()] for v in values]


def _tag(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else jsontext.encode(value).decode()


def _objects(values: list[Any]) -> list[Any]:
    return [None if v is None else jsontext.encode(v).decode() for v in values]


def _texts(values: list[Any]) -> list[Any]:
    return [v if v is None or isinstance(v, str) else bytes(v).decode("utf-8", "replace") for v in values]


_FORMS: tuple[tuple[Any, Callable[[list[Any]], list[Any] | pa.Array]], ...] = (
    (ChatRequest, _requests),
    (Contexts, _documents),
    (RetrievedContext, _documents),
    (Trajectory, _calls),
    (NamedGuidelines, _guidelines),
    (Tags, _tags),
    (JsonObject, _objects),
    (str, _texts),
)
_ARROW_FORMS = {name: form for kind, form in _FORMS for name in columns_of(kind)}
"""How the cells of a column are written in Arrow, where they are no Arrow values already."""

VERDICT = pa.schema(
    [
        ("valid", pa.bool_()),
        ("issues", pa.list_(NOTE)),
        ("presence", pa.uint32()),  # one bit per field of the metric catalogue
        ("id", pa.string()),
        ("request_hash", pa.uint64()),
        ("truth_hash", pa.uint64()),
        ("copied", pa.bool_()),  # whether the ground truth is the response
        ("nearness", pa.int8()),  # of expected and retrieved doc_uris, see doc_uris.py
        ("near_pair", pa.list_(pa.string())),
        ("derived", pa.uint32()),  # one bit per canonical column that was taken from the trace
        ("latency_seconds", pa.float64()),  # these three for the distributions that a report shows
        ("total_token_count", pa.float64()),
        ("tool_calls", pa.float64()),
        ("mlflow_reads", pa.bool_()),  # the trace as it is; only asked of traces that are handed on
    ]
)


def verdict(checked: pa.RecordBatch, name: str) -> pa.Array:
    """A column of the verdict."""
    return checked.column(VERDICT.get_field_index(name))


def rows_of(checked: pa.RecordBatch) -> pa.RecordBatch:
    """The normalised and carried columns."""
    return checked.select(list(range(len(VERDICT), checked.num_columns)))
