"""A checked batch: first what was found out about each row (`VERDICT`), then the normalised and carried columns.

The columns of the verdict are known by their place, so that no name that a user gives can clash with them.
"""

import pyarrow as pa

from agent_eval_schema.issues import NOTE

VERDICT = pa.schema(
    [
        ("valid", pa.bool_()),
        ("issues", pa.list_(NOTE)),
        ("presence", pa.uint32()),  # one bit per field of the metric catalogue
        ("id", pa.string()),
        ("request_hash", pa.uint64()),
        ("truth_hash", pa.uint64()),
        ("copied", pa.bool_()),  # whether the ground truth is the response
        ("nearness", pa.int8()),  # of expected and retrieved doc_uris, see uris.py
        ("near_pair", pa.list_(pa.string())),
        ("derived", pa.uint32()),  # one bit per canonical column that was taken from the trace
        ("latency_seconds", pa.float64()),  # these three for the distributions that a report shows
        ("total_token_count", pa.float64()),
        ("tool_calls", pa.float64()),
    ]
)


def verdict(checked: pa.RecordBatch, name: str) -> pa.Array:
    """A column of the verdict."""
    return checked.column(VERDICT.get_field_index(name))


def rows_of(checked: pa.RecordBatch) -> pa.RecordBatch:
    """The normalised and carried columns."""
    return checked.select(list(range(len(VERDICT), checked.num_columns)))
