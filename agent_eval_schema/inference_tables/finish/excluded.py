"""Excluded rows: rows of a table that are not in the evaluation dataset, each with the reason and its payload."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.inference_tables.finish.finish import errors_of, evaluation_rows, fitted
from agent_eval_schema.inference_tables.finish.redact import Redactor
from agent_eval_schema.inference_tables.options import Hook
from agent_eval_schema.rules.exclusions import find_reason

EXCLUDED = pa.schema(
    [
        ("request_id", pa.string()),
        ("reason", pa.string()),
        ("message", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("status_code", pa.int32()),
        ("request", pa.string()),
        ("response", pa.string()),
    ]
)
"""The columns of an excluded row: its place, the reason (rules/exclusions.py), the details, and the payload."""


def rows_excluded(rows: pa.RecordBatch, reasons: pa.Array) -> pa.RecordBatch:
    """Converted rows as excluded rows: the reason, and its meaning or the details in words."""
    columns = {n: rows.column(n) for n in rows.schema.names}
    sentences = pa.array([find_reason(r).sentence for r in reasons.to_pylist()], pa.string())
    own = pc.equal(columns["reason"], reasons).fill_null(False)
    columns["message"] = pc.if_else(own, pc.coalesce(columns["detail"], sentences), sentences)
    columns["reason"] = reasons
    return fitted(columns, EXCLUDED, rows.num_rows)


def invalid_rows(finished: pa.RecordBatch) -> pa.RecordBatch:
    """Finished rows as they are excluded because the check found errors in them."""
    rows = evaluation_rows(finished)
    columns = {**{n: rows.column(n) for n in rows.schema.names}, "time": rows.column("request_time")}
    columns["reason"] = pa.array(["invalid"] * finished.num_rows)
    columns["message"] = pa.array(errors_of(finished), pa.string())
    return fitted(columns, EXCLUDED, finished.num_rows)


def redacted(batch: pa.RecordBatch, redaction: str | Hook | None) -> pa.RecordBatch:
    """Excluded rows, with their content replaced as in the rows that are kept."""
    if not redaction:
        return batch
    names, redactor = ("message", "request", "response"), Redactor(redaction)
    arrays = [redactor.column(a) if n in names else a for n, a in zip(EXCLUDED.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EXCLUDED)
