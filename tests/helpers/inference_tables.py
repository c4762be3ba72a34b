"""Logged rows for tests: one of each family, and what the conversion makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from agent_eval_schema.formats.inference_tables import detect_family
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.plan import BuildPlan
from agent_eval_schema.inference_tables.read.convert import convert_batch

Row = dict[str, Any]

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "inference_tables"
QUESTION = "How many days of parental leave do I get?"
ANSWER = "Full-time staff get 16 weeks (80 working days) of paid parental leave."
ASKED = {"messages": [{"role": "user", "content": QUESTION}]}
ANSWERED = {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}


def sample(name: str) -> Any:
    """The rows of a sample, by the number that its name begins with."""
    (path,) = SAMPLES.glob(f"{name}_*.json")
    return json.loads(path.read_text())


def logged(request: Any = ASKED, response: Any = ANSWERED, **cells: Any) -> Row:
    """A row of an AI Gateway payload table."""
    return {
        "databricks_request_id": "r-1",
        "request_time": "2025-11-03T09:01:11.204Z",
        "status_code": 200,
        "execution_duration_ms": 2311,
        "request": _text(request),
        "response": _text(response),
        "logging_error_codes": [],
        **cells,
    }


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bytes) else json.dumps(value)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    return next(iter(open_source(rows).batches()))


def convert(rows: list[Row] | pa.RecordBatch, **plan: Any) -> list[Row]:
    """The records of rows, with the family told by the columns."""
    batch = rows if isinstance(rows, pa.RecordBatch) else batch_of(rows)
    family, _ = detect_family(batch.schema.names, plan.get("fields", ()))
    return list(convert_batch(batch, BuildPlan(**{"family": family.name, **plan})).to_pylist())


def convert_one(row: Row, **plan: Any) -> Row:
    (record,) = convert([row], **plan)
    return record


def codes(record: Row) -> list[str]:
    return [note["code"] for note in record["notes"] or ()]
