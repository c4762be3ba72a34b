"""Feedback on converted rows → the columns of evaluation rows: request, response and ground truth.

feedback_labels.py defines the meaning of feedback; here each row's entries meet its response and the documents of its
trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.columns import SHAPES
from agent_eval_schema.decoding.diagnose import is_type
from agent_eval_schema.inference_tables.finish.feedback_labels import Labels, chunks_of, labels_of
from agent_eval_schema.inference_tables.read.feedback import Feedback, read_trace_feedback
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text.moments import micros_since_epoch
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.spans import Trace

TAG, EDITED, COPIED = "expected_response_source", "feedback: edited", "feedback: copied from the response"
"""The tag with the source of an expected_response."""

_AS_CONVERTED = (
    *("request_id", "request", "inputs", "response", "outputs", "trace", "predicted_trajectory", "session_id", "tags"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds"),
)


class Labeled(NamedTuple):
    """The canonical columns of a batch that a call can fill; the notes of the labels; and, a list a row, which labels
    it was given."""

    columns: dict[str, pa.Array]
    notes: pa.Array
    names: pa.Array


def label(batch: pa.RecordBatch, plan: BuildPlan) -> Labeled:
    """The columns of the evaluation rows of a batch of converted rows, with the labels of their feedback."""
    columns: dict[str, pa.Array] = {n: batch.column(n).cast(ROW_SCHEMA.field(n).type) for n in _AS_CONVERTED}
    # The trace determines whether the call failed, if there is one.
    columns["failure"] = pc.if_else(columns["trace"].is_null(), batch.column("failed"), pa.scalar(None, pa.bool_()))
    log = IssueLog(batch.num_rows)
    names: list[list[str]] = [[] for _ in range(batch.num_rows)]
    rated = _rated(batch.column("entries"), columns["trace"], plan)
    if rated:
        _fill(columns, {row: labels_of_row(columns, batch, row, plan) for row in rated}, names, log)
    return Labeled(columns, log.to_arrow(), pa.array(names, pa.list_(pa.string())))


def _rated(entries: pa.Array, traces: pa.Array, plan: BuildPlan) -> list[int]:
    """The rows with a judgment, as far as known without reading their traces."""
    found = entries.is_valid()
    if plan.trace_feedback:
        # Arrow looks for the same as a pattern in a quarter of the time that it takes as a text.
        found = pc.or_(found, pc.match_substring_regex(traces, '"HUMAN"').fill_null(False))
    return np.flatnonzero(np.asarray(found)).tolist() if plan.labeled else []


def labels_of_row(columns: dict[str, pa.Array], batch: pa.RecordBatch, row: int, plan: BuildPlan) -> Labels:
    """The labels that the feedback on a row gives it: `batch` has its `entries` and its `time`."""
    request_id, response, trace = (columns[n][row].as_py() for n in ("request_id", "response", "trace"))
    # One row's judgments: that a record is a part of a call no longer matters.
    given = batch.column("entries")[row].as_py() or ()
    entries = [Feedback(**{**e, "request_id": request_id, "time": _microseconds(e["time"])}) for e in given]
    read = decode_trace(trace) if trace is not None else None
    if not isinstance(read, Trace):
        return labels_of(entries, response=response)
    if plan.trace_feedback:
        time = _microseconds(batch["time"][row].as_py())
        entries += read_trace_feedback(bytes(read.info.assessments), request_id, time)
    derived = derive(read)
    return labels_of(
        entries,
        response=derived.response if response is None else response,
        chunks=chunks_of(read) if any(e.kind == "retrieval" for e in entries) else None,
        expected=_expected(derived.expectations or {}),
    )


def _expected(expectations: Mapping[str, Any]) -> list[str]:
    """The columns of ground truth that a trace fills, except with blank values or values of another type."""
    return [n for n, kind in _TRUTHS.items() if (value := expectations.get(n)) and is_type(kind, value)]


_TRUTHS = {"expected_response": str, **{n: SHAPES[n].type for n in ("expected_facts", "expected_retrieved_context")}}


def _microseconds(time: datetime | None) -> int | None:
    return None if time is None else micros_since_epoch(time)


def _fill(columns: dict[str, pa.Array], found: dict[int, Labels], names: list[list[str]], log: IssueLog) -> None:
    """Write the labels into the columns, the notes into the log, and which labels there are into the names."""
    size = len(names)
    texts, contexts, tags = [None] * size, [None] * size, columns["tags"].to_pylist()
    for row, labels in found.items():
        for finding in labels.notes:
            log.add_finding(row, finding)
        if labels.expected_response is not None:
            texts[row] = labels.expected_response  # type: ignore[call-overload]
            names[row] += ["expected_response", *(["copied"] if labels.copied else [])]
            tags[row] = [*(tags[row] or ()), (TAG, COPIED if labels.copied else EDITED)]
        if labels.expected_retrieved_context is not None:
            documents = [{"doc_uri": d.doc_uri, "content": d.content} for d in labels.expected_retrieved_context]
            contexts[row] = documents  # type: ignore[call-overload]
            names[row].append("expected_retrieved_context")
    for name, cells in (("expected_response", texts), ("expected_retrieved_context", contexts), ("tags", tags)):
        columns[name] = pa.array(cells, ROW_SCHEMA.field(name).type)
