"""Feedback on converted rows → the columns of evaluation rows: what was asked and answered, and what should have been.

What feedback means is feedback.py's; here each row's entries meet its response and the documents of its trace.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.issues import IssueLog
from agent_eval_schema.model import ROW_SCHEMA
from agent_eval_schema.production.feedback import Feedback, Labels, chunks_of, labels_of
from agent_eval_schema.production.plan import BuildPlan
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.traces.derive import derive

TAG, EDITED, COPIED = "expected_response_source", "feedback: edited", "feedback: copied from the response"
"""The tag that tells where an expected_response comes from."""

_AS_CONVERTED = (
    *("request_id", "request", "response", "trace", "predicted_trajectory", "session_id", "tags"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds"),
)


class Labelled(NamedTuple):
    """The canonical columns of a batch that a call can fill; the notes of the labels; and, a list a row, which labels
    it was given."""

    columns: dict[str, pa.Array]
    notes: pa.Array
    names: pa.Array


def label(batch: pa.RecordBatch, plan: BuildPlan) -> Labelled:
    """The columns of the evaluation rows of a batch of converted rows, with the labels of their feedback."""
    columns: dict[str, pa.Array] = {n: batch.column(n).cast(ROW_SCHEMA.field(n).type) for n in _AS_CONVERTED}
    # Whether the call failed is the trace's to say, if there is one.
    columns["failure"] = pc.if_else(columns["trace"].is_null(), batch.column("failed"), pa.scalar(None, pa.bool_()))
    log = IssueLog(batch.num_rows)
    names: list[list[str]] = [[] for _ in range(batch.num_rows)]
    entries = batch.column("entries")
    rated = np.flatnonzero(np.asarray(entries.is_valid())).tolist() if plan.labelled else []
    if rated:
        _fill(columns, {row: _labels(columns, entries, row) for row in rated}, names, log)
    return Labelled(columns, log.to_arrow(), pa.array(names, pa.list_(pa.string())))


def _labels(columns: dict[str, pa.Array], entries: pa.Array, row: int) -> Labels:
    said = [_feedback(e) for e in entries[row].as_py()]
    response, trace = columns["response"][row].as_py(), columns["trace"][row].as_py()
    decoded = decode_trace(trace) if trace is not None else None
    if response is None and isinstance(decoded, Trace):
        response = derive(decoded).response
    chunks = chunks_of(decoded) if isinstance(decoded, Trace) and any(e.kind == "retrieval" for e in said) else None
    return labels_of(said, response=response, chunks=chunks)


def _feedback(entry: dict[str, Any]) -> Feedback:
    return Feedback(**{**entry, "time": _microseconds(entry["time"])})


def _microseconds(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _fill(columns: dict[str, pa.Array], found: dict[int, Labels], names: list[list[str]], log: IssueLog) -> None:
    """Write the labels into the columns, the notes into the log, and which labels there are into the names."""
    size = len(names)
    texts, contexts, tags = [None] * size, [None] * size, columns["tags"].to_pylist()
    for row, labels in found.items():
        for rule, path, message in labels.notes:
            log.add(rule, row, path.partition(".")[0], message, path=path)
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
