"""Files of CES to measure with: golden CSV rows and evaluations of a help desk, as an export has them."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

APP = "projects/acme-helpdesk/locations/eu/apps/hr-desk"
TURNS = 4
CELLS = (
    *("display_name", "turn_index", "action_type", "evaluation_id", "tags", "response_agent", "text_content"),
    *("tool_name", "tool_call_args_json", "tool_response_json", "expectation_note"),
)
GOLDEN_SCHEMA = pa.schema([(name, pa.string()) for name in CELLS])
EVALUATION_SCHEMA = pa.schema([("evaluation", pa.string())])

BATCH = 5_000


def golden_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of a golden CSV: an evaluation row, then its turns of four rows each."""
    rng, made = random.Random("golden"), list[dict[str, str]]()
    number = written = 0
    while written < rows:
        made += golden_rows(rng, number)
        number += 1
        if len(made) >= min(BATCH, rows - written):
            part = made[: rows - written]
            yield pa.RecordBatch.from_pylist(part, GOLDEN_SCHEMA)
            written += len(part)
            made = []


def golden_rows(rng: random.Random, number: int) -> Iterator[dict[str, str]]:
    from tests.benchmarks.data import prose

    yield {"display_name": f"Case {number}", "evaluation_id": f"case-{number}", "tags": "hr;p1"}
    for turn in range(1, TURNS + 1):
        arguments = json.dumps({"employee_id": f"E-{rng.randrange(10_000)}", "year": 2025, "days": rng.random()})
        for action, cells in (
            ("INPUT_TEXT", {"text_content": prose(rng, 60)}),
            ("EXPECTATION_TOOL_CALL", {"tool_name": "get_leave_balance", "tool_call_args_json": arguments}),
            (
                "INPUT_TOOL_RESPONSE",
                {"tool_name": "get_leave_balance", "tool_response_json": '{"output": {"days": 12}}'},
            ),
            (
                "EXPECTATION_TEXT",
                {"response_agent": "hr_agent", "text_content": prose(rng, 120), "expectation_note": "n"},
            ),
        ):
            yield {"turn_index": str(turn), "action_type": action, **cells}


def evaluation_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Evaluations of eight turns, with names in full, as the API gives them."""
    rng = random.Random("evaluations")
    for start in range(0, rows, BATCH):
        made = [
            {"evaluation": json.dumps(evaluation(rng, n), indent=2)} for n in range(start, min(start + BATCH, rows))
        ]
        yield pa.RecordBatch.from_pylist(made, EVALUATION_SCHEMA)


def evaluation(rng: random.Random, number: int) -> dict[str, Any]:
    turns = [{"steps": steps(rng)} for _ in range(2 * TURNS)]
    return {"name": f"{APP}/evaluations/{number}", "displayName": f"Case {number}", "golden": {"turns": turns}}


def steps(rng: random.Random) -> list[dict[str, Any]]:
    from tests.benchmarks.data import prose

    tool = {"tool": f"{APP}/tools/get_leave_balance"}
    arguments = {"employee_id": f"E-{rng.randrange(10_000)}", "year": 2025, "reason": prose(rng, 40)}
    answer = {"role": "hr_agent", "chunks": [{"text": prose(rng, 200)}]}
    return [
        {"userInput": {"text": prose(rng, 80)}},
        {"expectation": {"note": "Looks_Up_Balance", "toolCall": {**tool, "args": arguments}}},
        {"expectation": {"toolResponse": {**tool, "response": {"output": {"days": 12, "source": prose(rng, 80)}}}}},
        {"expectation": {"agentResponse": answer}},
    ]


def write_csv(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, schema.names)
        writer.writeheader()
        for batch in batches:
            writer.writerows(batch.to_pylist())


def write_lines(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:  # noqa: ARG001 (one signature)
    """A text a line, as a JSON string: the texts themselves are of several lines."""
    with path.open("w", encoding="utf-8") as stream:
        for batch in batches:
            stream.writelines(f"{json.dumps(text)}\n" for text in batch.column(0).to_pylist())
