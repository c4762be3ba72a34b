"""`convert_batch`: rows as they were logged → one row a record, in one schema whatever the table was."""

from __future__ import annotations

import pyarrow as pa

from agent_eval_schema.issues import NOTE
from agent_eval_schema.model import TOOL_CALL
from agent_eval_schema.production.plan import BuildPlan

FEEDBACK = pa.struct(
    [
        ("request_id", pa.string()),
        ("source", pa.string()),
        ("step_id", pa.string()),
        ("position", pa.int32()),
        ("time", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("value", pa.bool_()),
        ("suggested_output", pa.string()),
        ("rationale", pa.string()),
        ("comment", pa.string()),
    ]
)
"""One judgement: the Arrow form of `feedback.Feedback`."""

CONVERTED = pa.schema(
    [
        ("logged_id", pa.string()),  # id of the logged row
        ("record", pa.int32()),  # of a call with a batch of records; null for a plain call
        ("request_id", pa.string()),  # logged_id, or <logged_id>#<record>
        ("label_id", pa.string()),  # what feedback calls name: request_id, but logged_id if the call has one record
        ("reason", pa.string()),  # why the row is set aside (REASONS), known from the row alone
        ("detail", pa.string()),
        ("notes", pa.list_(NOTE)),  # AE7 warnings and infos
        ("time", pa.timestamp("us", "UTC")),
        ("content_hash", pa.int64()),  # of the logged cells: a tie-break among repeated ids
        ("question_hash", pa.int64()),  # of the canonical request
        ("sample_hash", pa.int64()),  # hash(seed, request_id)
        ("day", pa.date32()),
        ("served_entity", pa.string()),
        ("requester", pa.string()),
        ("status_code", pa.int32()),
        ("failed", pa.bool_()),  # status >= 400, an error for an answer, or a failed span in the trace
        ("latency_seconds", pa.float64()),
        ("request", pa.string()),  # as given to validation; of rows that are set aside: the logged cell
        ("response", pa.string()),
        ("trace", pa.string()),
        ("predicted_trajectory", pa.list_(TOOL_CALL)),  # tool calls of the response, where there is no trace
        ("session_id", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("input_token_count", pa.int64()),
        ("output_token_count", pa.int64()),
        ("total_token_count", pa.int64()),
        ("feedback", pa.list_(FEEDBACK)),  # of feedback calls and of a trace's assessments
    ]
)
"""One row a record: a logged call, or one record of a batch call. Columns that the plan carries come after these."""


def carried_column(name: str) -> str:
    """The name under which a column of the table is carried."""
    return f"column_{name}"


def converted_schema(plan: BuildPlan) -> pa.Schema:
    """CONVERTED and the columns that the plan carries along (text; JSON text of what is not)."""
    return pa.schema([*CONVERTED, *(pa.field(carried_column(n), pa.string()) for n in plan.carried)])
