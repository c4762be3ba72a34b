"""The tables that the decisions read: `calls` (a line per converted row), `entries` (per feedback entry), `traces`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.inference_tables.decide.sql import ENTRY
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_TYPE
from agent_eval_schema.similarity.near import NEAR, repeats

_WHERE = [("part", pa.int64()), ("place", pa.int64())]

CALL_TABLE = pa.schema(
    [
        *_WHERE,
        ("logged_id", pa.string()),
        ("request_id", pa.string()),
        ("label_id", pa.string()),
        ("record", pa.int32()),
        ("reason", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("content_hash", pa.int64()),
        ("question_hash", pa.int64()),
        ("sample_hash", pa.int64()),
        ("shingles", pa.binary()),
        ("stratum", pa.string()),
        ("without_trace", pa.bool_()),
    ]
)
ENTRY_TABLE = pa.schema([*_WHERE, *(FEEDBACK_TYPE.field(n) for n in ENTRY)])
TRACE_TABLE = pa.schema([("key", pa.string()), ("trace", pa.string())])

DECISION_TABLES = {"calls": CALL_TABLE, "entries": ENTRY_TABLE, "traces": TRACE_TABLE}


NEAR_TABLE = pa.schema([*_WHERE, ("alike", pa.int64())])


def near_table(questions: pa.Table, threshold: float | None) -> pa.Table:
    """The table `near_groups`: which of the questions (part, place, question_hash, shingles) are alike."""
    cells = questions.column("shingles").combine_chunks()
    cells = cells.chunk(0) if isinstance(cells, pa.ChunkedArray) and cells.num_chunks else cells
    flat = np.frombuffer(b"".join(cells.to_pylist()), np.uint32)
    ends = bounds(np.asarray(pc.binary_length(cells)).astype(np.int64) // flat.itemsize)
    exact = np.asarray(pc.fill_null(questions.column("question_hash"), 0)).astype(np.int64).view(np.uint64)
    _, alike = repeats(exact, exact != 0, flat, ends, NEAR if threshold is None else threshold)
    return pa.table([questions.column("part"), questions.column("place"), pa.array(alike)], schema=NEAR_TABLE)


def call_columns(part: int, rows: pa.RecordBatch, stratum: pa.Array | None) -> dict[str, pa.Array]:
    """The columns of `calls` for the converted rows of a part."""
    size = rows.num_rows
    made = {
        "part": pa.array(np.full(size, part, np.int64)),
        "place": pa.array(np.arange(size)),
        "stratum": pa.nulls(size, pa.string()) if stratum is None else stratum,
        "without_trace": rows.column("trace").is_null(),
    }
    return {n: made[n] if n in made else rows.column(n) for n in CALL_TABLE.names}


def entry_table(part: int, rows: pa.RecordBatch) -> pa.Table:
    """The table `entries` for the feedback of the converted rows of a part."""
    lists = rows.column("feedback")
    entries = lists.flatten()
    of = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
    columns = [pa.array(np.full(len(of), part, np.int64)), pa.array(of), *(entries.field(n) for n in ENTRY)]
    return pa.table(columns, schema=ENTRY_TABLE)
