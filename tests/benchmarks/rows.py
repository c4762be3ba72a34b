"""Rows to measure with: recorded ones, in which only a number differs from row to row.

`tests/data/benchmarks/rows.jsonl` has for each kind one row or more, which take turns: `plain` (a question, an
answer, a reference, documents), `documents` (short ones, none of which is expected), `trace` (20 KB of MLflow: an agent
plans, retrieves twice, calls two tools and answers), `short trace` (4 KB), `otel` (the long one in OpenTelemetry),
`payload` (a logged call of 5 KB, every other one with its trace), `trajectory` (five calls, every other one as
expected), `golden` (an evaluation of a golden CSV) and `evaluation` (Evaluation JSON of eight turns).
"""

from __future__ import annotations

import csv
import datetime
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

RECORDED = Path(__file__).resolve().parents[1] / "data" / "benchmarks" / "rows.jsonl"
GOLDEN = (
    *("display_name", "turn_index", "action_type", "evaluation_id", "tags", "response_agent", "text_content"),
    *("tool_name", "tool_call_args_json", "tool_response_json", "expectation_note"),
)
PART = 2_000
"""Rows that are made and written at once: a file may be larger than memory."""


@lru_cache(maxsize=1)
def _recorded() -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts.setdefault(row.pop("kind"), []).append(json.dumps(row))
    return texts


def rows_of(kind: str, rows: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows of a kind, from the number `start` on."""
    texts = _recorded()[kind]
    found = [json.loads(texts[n % len(texts)].replace("@number@", f"{n:08}")) for n in range(start, start + rows)]
    return [_logged(row, n) for n, row in enumerate(found, start)] if kind == "payload" else found


def _logged(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A logged call with its time; one in 200 is delivered twice, one in 100 was refused."""
    day = datetime.datetime(2026, 11, 1 + number % 20, tzinfo=datetime.timezone.utc)
    row |= {"request_date": day.date(), "request_time": day, "logging_error_codes": None}
    if number % 200 == 9:
        row["databricks_request_id"] = rows_of("payload", 1, number - 1)[0]["databricks_request_id"]
    refused = {"status_code": 429, "response": '{"error_code": "REQUEST_LIMIT_EXCEEDED"}'}
    return row | refused if number % 100 == 7 else row


def table(kind: str, rows: int) -> pa.Table:
    """The same as a table."""
    return pa.concat_tables(
        pa.Table.from_pylist(rows_of(kind, min(PART, rows - start), start)) for start in range(0, rows, PART)
    )


def file(kind: str, rows: int, path: str, *, one_group: bool = False) -> str:
    """The same as a file: Parquet, JSON Lines, a golden CSV, or a text per line; one that is there is kept."""
    if Path(path).exists():
        return path
    if path.endswith(".parquet"):
        pq.write_table(table(kind, rows), path, row_group_size=rows if one_group else PART)
        return path
    with open(path, "w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out)
        for start in range(0, rows, PART):
            for row in rows_of(kind, min(PART, rows - start), start):
                if kind != "golden":
                    out.write(json.dumps(row) + "\n")
                    continue
                lines.writerows([GOLDEN] * (not out.tell()))
                lines.writerows([[cells.get(name) for name in GOLDEN] for cells in row["rows"]])
    return path


def texts(kind: str, rows: int, column: str) -> list[Any]:
    """One column of the rows."""
    return [row[column] for row in rows_of(kind, rows)]
