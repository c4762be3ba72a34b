"""`convert_batch`: rows as they were logged → one row per record, in one schema for every table.

    RecordBatch ─columns.py─▶ facts and payload bytes ─calls.py─▶ records ─▶ RecordBatch (CONVERTED)

Pure and picklable: the same function runs in this process, in worker processes and in Spark's `mapInArrow`. Every cell
results in a row or in a reason; nothing is raised.
"""

import zlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import asdict

from agent_eval_schema.cells.arrow import list_array, text_array
from agent_eval_schema.cells.hashing import Array, seeded_hashes
from agent_eval_schema.cells.notes import NOTE, IssueLog
from agent_eval_schema.inference_tables.plan import BuildPlan, carried_column
from agent_eval_schema.inference_tables.read.calls import convert_call
from agent_eval_schema.inference_tables.read.columns import Bytes, LoggedColumns
from agent_eval_schema.inference_tables.read.payloads import Request
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.schema import TOOL_CALL
from agent_eval_schema.similarity.shingles import (
    beside_questions,
    messages_of,
    question_hashes,
    question_texts,
    shingled,
)
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.traces.feedback import Feedback

_OF_FEEDBACK = {"position": pa.int32(), "time": pa.timestamp("us", "UTC"), "value": pa.bool_()}
FEEDBACK_TYPE = pa.struct([(name, _OF_FEEDBACK.get(name, pa.string())) for name in Feedback.__struct_fields__])
"""One judgment: the Arrow form of `feedback.Feedback`."""

FEEDBACK_LISTS = pa.list_(FEEDBACK_TYPE)

CONVERTED = pa.schema(
    [
        ("logged_id", pa.string()),  # id of the logged row
        ("record", pa.int32()),  # of a call with a batch of records; null for a plain call
        ("request_id", pa.string()),  # logged_id, or <logged_id>#<record>
        ("label_id", pa.string()),  # what feedback calls name: request_id, but logged_id if the call has one record
        ("reason", pa.string()),  # why the row is excluded (REASONS), known from the row alone
        ("detail", pa.string()),
        ("notes", pa.list_(NOTE)),  # AE7 warnings and infos
        ("time", pa.timestamp("us", "UTC")),
        ("content_hash", pa.int64()),  # of the logged cells: a tie-break among repeated ids
        ("question_hash", pa.int64()),  # the same for the same question; null if it is not compared
        ("sample_hash", pa.int64()),  # hash(seed, request_id)
        ("shingles", pa.binary()),  # what is compared of the question (uint32 each)
        ("day", pa.date32()),
        ("served_entity", pa.string()),
        ("requester", pa.string()),
        ("status_code", pa.int32()),
        ("failed", pa.bool_()),  # status >= 400, an error for an answer, or a failed span in the trace
        ("latency_seconds", pa.float64()),
        ("request", pa.string()),  # as given to validation; of rows that are excluded: the logged cell
        ("plain_request", pa.bool_()),  # whether the request has no issue
        ("inputs", pa.string()),  # the body of the request, if it has more keys than the request
        ("response", pa.string()),
        ("outputs", pa.string()),  # the body of the response, if the other columns contain less
        ("trace", pa.string()),
        ("predicted_trajectory", pa.list_(pa.struct(list(TOOL_CALL)[:2]))),  # of the response, if there is no trace
        ("session_id", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("input_token_count", pa.int64()),
        ("output_token_count", pa.int64()),
        ("total_token_count", pa.int64()),
        ("feedback", FEEDBACK_LISTS),  # of feedback calls and of a trace's assessments
    ]
)
"""One row per record: a logged call, or one record of a batch call. Passed-through columns come after these."""


def converted_schema(plan: BuildPlan) -> pa.Schema:
    """CONVERTED and the columns that the plan passes through (text; JSON text of other values)."""
    return pa.schema([*CONVERTED, *(pa.field(carried_column(n), pa.string()) for n in plan.carried)])


def convert_batch(batch: pa.RecordBatch, plan: BuildPlan) -> pa.RecordBatch:
    """The records of a batch of logged rows, in their order, in the schema `converted_schema(plan)`.

    Rows of a call with a batch of records come one after the other. A row that is excluded has a `reason` and its
    logged cells; how rows are cut into batches changes nothing. Never raises for the content of a cell.
    """
    with quoting(plan.values), gc_paused():
        logged = LoggedColumns(batch, plan)
        records = [record for row in range(logged.size) for record in convert_call(logged, row, plan)]
        parents = np.array([r.row for r in records], np.int64)
        schema = converted_schema(plan)
        cells = {name: [*map(attrgetter(path), records)] for name, path in _FIELDS.items()}
        tokens = [t or (None, None, None) for t in cells["tokens"]]
        log = IssueLog(len(records))
        for row, record in enumerate(records):
            for finding in record.findings:
                log.add_finding(row, finding)
        feedback: list[list[Feedback] | None] = cells["feedback"]
        values = cells | {
            "label_id": [r.label_id or r.request_id for r in records],
            "notes": log.to_arrow(),
            "content_hash": _content_hashes(logged)[parents],
            "sample_hash": seeded_hashes(cells["request_id"], plan.seed),
            **dict.fromkeys(("question_hash", "shingles"), [None] * len(records)),
            "predicted_trajectory": [calls and [*map(_tool_call, calls)] for calls in cells["predicted_trajectory"]],
            "tags": [None if tags is None else list(tags.items()) for tags in cells["tags"]],
            "input_token_count": [t[0] for t in tokens],
            "output_token_count": [t[1] for t in tokens],
            "total_token_count": [t[2] for t in tokens],
            "feedback": list_array(
                [len(entries or ()) for entries in feedback],
                pa.array([asdict(f) for entries in feedback for f in entries or ()], FEEDBACK_TYPE),
                [entries is None for entries in feedback],
            ),
        }
        if plan.by_question:
            requests = [r.request if r.reason is None else Request() for r in records]
            values |= question_columns([r.question for r in requests], [r.inputs for r in requests], plan)
        plain = len(records) == logged.size
        facts = {n: a if plain else a.take(pa.array(parents)) for n, a in logged.facts.items()}
        whole = [r.shared for r in records]
        if any(whole):
            facts["latency_seconds"] = pc.if_else(
                pa.array(whole), pa.scalar(None, pa.float64()), facts["latency_seconds"]
            )
        arrays = [facts[f.name] if f.name in facts else _array(f.name, values[f.name], f.type) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


_FIELDS = {
    **{n: n for n in ("logged_id", "record", "request_id", "reason", "detail", "failed", "trace", "session_id")},
    **{n: f"request.{n}" for n in ("request", "inputs", "tags")},
    "feedback": "feedback",
    "plain_request": "request.plain",
    "response": "response.text",
    "outputs": "response.outputs",
    "tokens": "response.tokens",
    "predicted_trajectory": "response.calls",
}
"""The columns that are fields of a record, or of its payloads."""


def _tool_call(call: tuple[str, dict[str, Any] | None]) -> dict[str, str | None]:
    name, arguments = call
    return {"tool_name": name, "tool_input": None if arguments is None else jsontext.encode(arguments).decode()}


def _array(name: str, values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if name in ("request", "inputs", "response", "outputs", "trace"):
        return text_array(values)
    return pa.array(values, kind)


def _content_hashes(logged: LoggedColumns) -> np.ndarray[Any, Any]:
    """64 bits of each row's logged cells: they only have to distinguish deliveries of one ID."""
    hashes = np.zeros(logged.size, np.uint64)
    crc = zlib.crc32
    columns: dict[int, tuple[Bytes, Bytes]] = {  # odd numbers that spread bits: a text in another column differs
        1: (logged.requests, logged.responses),
        0x9E3779B97F4A7C15: (logged.traces, logged.request_texts),
        0xC2B2AE3D27D4EB4F: (logged.assessments, logged.response_texts),
    }
    for factor, (high, low) in columns.items():
        if any(high) or any(low):
            pairs = [(crc(a) << 32 if a else 0) | (crc(b) if b else 0) for a, b in zip(high, low, strict=True)]
            hashes += np.array(pairs, np.uint64) * np.uint64(factor)
    return hashes.view(np.int64)


def question_columns(
    requests: Sequence[bytes | None], inputs: Sequence[bytes | None], plan: BuildPlan
) -> dict[str, pa.Array]:
    """`question_hash` and, for near duplicates, `shingles` of canonical requests that were sent with these inputs."""
    chats = messages_of(requests)
    questions = question_texts(chats)
    beside = beside_questions(chats, questions, inputs)
    if plan.near is None:
        hashes = _known(question_hashes(questions, beside))
        return {"question_hash": hashes, "shingles": pa.nulls(len(chats), pa.binary())}
    of = shingled(questions, beside)
    ends = pa.py_buffer((of.ends * 4).astype(np.int32).tobytes())
    buffers = [None, ends, pa.py_buffer(of.shingles.astype(np.uint32).tobytes())]
    return {"question_hash": _known(of.exact), "shingles": pa.Array.from_buffers(pa.binary(), len(chats), buffers)}


def _known(hashes: Array) -> pa.Array:
    """Null where there is no question."""
    return pa.array(hashes.view(np.int64), mask=hashes == 0)
