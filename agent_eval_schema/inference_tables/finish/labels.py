"""The labels of feedback (traces/labels.py) in converted rows, and in rows that a dataset already has."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import as_type
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.columns import SHAPES
from agent_eval_schema.decoding.diagnose import is_type
from agent_eval_schema.formats.shapes import as_text
from agent_eval_schema.inference_tables.finish.redact import Redactor
from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.text.moments import micros_since_epoch
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.feedback import Feedback, read_trace_feedback
from agent_eval_schema.traces.labels import COPIED, EDITED, TAG, Labels, chunks_of, labels_of
from agent_eval_schema.traces.spans import Trace

_AS_CONVERTED = (
    *("request_id", "request", "inputs", "response", "outputs", "trace", "predicted_trajectory", "session_id", "tags"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds"),
)


def label(batch: pa.RecordBatch, plan: BuildPlan) -> tuple[dict[str, pa.Array], pa.Array, pa.Array]:
    """The canonical columns that a call can fill, of a batch of converted rows, with the labels of their feedback; the
    notes of the labels; and, a list per row, which labels it has."""
    columns: dict[str, pa.Array] = {n: as_type(batch.column(n), ROW_SCHEMA.field(n).type) for n in _AS_CONVERTED}
    # The trace determines whether the call failed, if there is one.
    columns["failure"] = pc.if_else(columns["trace"].is_null(), batch.column("failed"), pa.scalar(None, pa.bool_()))
    # The rows with a judgment, as far as known without reading their traces.
    mask = batch.column("entries").is_valid()
    if plan.trace_feedback:
        # Arrow looks for the same as a pattern in a quarter of the time that it takes as a text.
        mask = pc.or_(mask, pc.match_substring_regex(columns["trace"], '"HUMAN"').fill_null(False))
    columns, notes, changes = _labeled(columns, batch, mask, plan)
    names: list[list[str]] = [[] for _ in range(batch.num_rows)]
    for row, new in changes.items():
        names[row] = [*(n for n in new if n != "tags"), *(["copied"] if (TAG, COPIED) in new.get("tags", ()) else [])]
    return columns, notes, pa.array(names, pa.list_(pa.string()))


def labels_of_row(columns: dict[str, pa.Array], batch: pa.RecordBatch, row: int, plan: BuildPlan) -> Labels:
    """The labels that the feedback on a row gives it: `batch` has its `entries` and its `time`."""
    request_id, response, trace = (columns[n][row].as_py() for n in ("request_id", "response", "trace"))
    # One row's judgments: that a record is a part of a call no longer matters.
    cells = batch.column("entries")[row].as_py() or ()
    entries = [Feedback(**{**e, "request_id": request_id, "time": _microseconds(e["time"])}) for e in cells]
    read = decode_trace(trace) if trace is not None else None
    if not isinstance(read, Trace):
        return labels_of(entries, response=response)
    if plan.trace_feedback:
        time = _microseconds(batch["time"][row].as_py())
        entries += read_trace_feedback(bytes(read.info.assessments), request_id, time)
    derived = derive(read)
    truths = derived.expectations or {}
    return labels_of(
        entries,
        response=derived.response if response is None else response,
        chunks=chunks_of(read) if any(e.kind == "retrieval" for e in entries) else None,
        # the columns of ground truth that a trace fills, except with blank values or values of another type
        expected=[n for n, kind in _TRUTHS.items() if (value := truths.get(n)) and is_type(kind, value)],
    )


_TRUTHS = {"expected_response": str, **{n: SHAPES[n].type for n in ("expected_facts", "expected_retrieved_context")}}


def _microseconds(time: datetime | None) -> int | None:
    return None if time is None else micros_since_epoch(time)


# --- later feedback on rows of a dataset
#
# no expected_response               takes the label of the feedback
# one from feedback (by its tag)     a newer edit replaces it; a thumb down withdraws a copy of the response
# any other                          is the user's own: it stays, and an issue reports that
# expected_retrieved_context         documents that were rated positive are added, if all in it were retrieved
CHANGES = pa.list_(pa.struct([("column", pa.string()), ("before", pa.string()), ("after", pa.string())]))
"""The labels of a row that changed; a label that is not text is JSON text."""

_LABELS = ("expected_response", "expected_retrieved_context", "tags")


def updated(
    columns: dict[str, pa.Array], judged: pa.RecordBatch, plan: BuildPlan, redactor: Redactor | None
) -> tuple[dict[str, pa.Array], pa.Array, pa.Array]:
    """The canonical columns of rows with later feedback, the notes on their labels, and what changed (CHANGES):
    `judged` has the `entries` of each row, and its `time`."""
    new_columns, notes, changes = _labeled(columns, judged, judged.column("entries").is_valid(), plan, redactor)
    rows: list[list[dict[str, Any]] | None] = [None] * judged.num_rows
    for at, new in changes.items():
        texts = ((n, as_text(columns[n][at].as_py()), as_text(v)) for n, v in new.items() if n != "tags")
        rows[at] = [{"column": n, "before": old, "after": value} for n, old, value in texts] or None
    return new_columns, notes, pa.array(rows, CHANGES)


def _labeled(
    columns: dict[str, pa.Array],
    judged: pa.RecordBatch,
    mask: pa.Array,
    plan: BuildPlan,
    redactor: Redactor | None = None,
) -> tuple[dict[str, pa.Array], pa.Array, dict[int, dict[str, Any]]]:
    """The columns with the labels that feedback gives to rows for which `mask` is true, the notes on them, and by row
    the cells that change. Columns of calls have no labels yet."""
    size, log, changes = judged.num_rows, IssueLog(judged.num_rows), dict[int, dict[str, Any]]()
    rows = np.flatnonzero(np.asarray(mask)).tolist() if plan.labeled else []
    cells = {n: columns[n].to_pylist() if n in columns else [None] * size for n in _LABELS if rows}
    for at in rows:
        labels = labels_of_row(columns, judged, at, plan)
        notes: list[Finding] = []
        row = {n: columns[n][at].as_py() if n in columns else None for n in _COMPARED}
        new = changes[at] = dict(_changed(row, labels, redactor, notes))
        for finding in [*(labels.notes if new or "expected_response" not in columns else ()), *notes]:
            log.add_finding(at, finding)
        for name, value in new.items():
            cells[name][at] = value
    filled = {n: pa.array(values, ROW_SCHEMA.field(n).type) for n, values in cells.items()}
    return {**columns, **filled}, log.to_arrow(), changes


_COMPARED = (*_LABELS, "response", "expected_facts", "trace")


def _changed(
    row: dict[str, Any], labels: Labels, redactor: Redactor | None, notes: list[Finding]
) -> Iterator[tuple[str, Any]]:
    """The cells of a row that change."""
    label, expected, tags = labels.expected_response, row["expected_response"], dict(row["tags"] or ())
    if label is not None and redactor is not None:
        label = redactor.cell(label)
    source, new_source = tags.get(TAG), COPIED if labels.copied else EDITED
    # The user's own ground truth: facts, a response that is not from feedback, a copy that was edited later.
    from_feedback = source == EDITED or (source == COPIED and expected == row["response"])
    if row["expected_facts"] or (expected is not None and not from_feedback):
        if label is not None and not labels.copied and label != expected:
            message = "users edited the answer, but the dataset states its own ground truth"
            notes.append(Finding(rules.LABEL_YIELDS, message, "expected_response"))
    elif label is None:
        if source == COPIED and labels.judged:
            yield "expected_response", None
            yield "tags", [(k, v) for k, v in tags.items() if k != TAG] or None
    elif not (labels.copied and source == EDITED) and (label, new_source) != (expected, source):
        yield "expected_response", label
        yield "tags", list({**tags, TAG: new_source}.items())
    context = row["expected_retrieved_context"] or ()
    known = {d["doc_uri"] for d in context}
    more = [d for d in labels.expected_retrieved_context or () if d.doc_uri not in known]
    if more and not known <= {uri for uri, _ in (chunks_of(row["trace"]) if known else {}).values()}:
        message = "users rate documents, but the dataset states expected_retrieved_context"
        notes.append(Finding(rules.LABEL_YIELDS, message, "expected_retrieved_context"))
    elif more:
        yield "expected_retrieved_context", [*context, *({"doc_uri": d.doc_uri, "content": d.content} for d in more)]
