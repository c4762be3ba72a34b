"""The commands that write, each with its input, its output and what it writes beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from msgspec import Struct

from tests.helpers.logged_calls import chat, table


def _rows(folder: Path, rows: int) -> None:
    with (folder / "in.jsonl").open("w") as file:
        for i in range(rows):
            row = {"request_id": f"r{i}", "request": f"question {i}" if i % 10 else "", "expected_respones": "x"}
            file.write(json.dumps({**row, "response": "answer " * (1 + i % 40)}) + "\n")


def _logged(folder: Path, rows: int) -> None:
    calls = [chat(f"c{i}", f"question {i}", "answer " * (i % 40)) for i in range(rows // 10)]
    pq.write_table(table(calls), folder / "in.parquet", row_group_size=200)


class Command(Struct, frozen=True):
    """A command. Its output may be there before, or must not; `beside` are other files that it writes for good."""

    arguments: tuple[str, ...]
    out: str
    prepare: Callable[[Path, int], None] = _rows
    inputs: tuple[str, ...] = ("in.jsonl",)
    beside: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    may_be_there: bool = True


COMMANDS = {
    "validate --write-normalized": Command(
        ("validate", "in.jsonl", "--write-normalized", "out.parquet"), "out.parquet"
    ),
    "validate --write-invalid": Command(("validate", "in.jsonl", "--write-invalid", "out.jsonl"), "out.jsonl"),
    "validate --fix": Command(("validate", "in.jsonl", "--fix", "out.jsonl"), "out.jsonl"),
    "validate --html": Command(("validate", "in.jsonl", "--html", "out.html", "--quiet"), "out.html"),
    "convert to JSON Lines": Command(("convert", "in.jsonl", "out.jsonl", "--to", "vertex"), "out.jsonl"),
    "convert to CSV": Command(("convert", "in.jsonl", "out.csv", "--to", "mlflow"), "out.csv"),
    "convert to an evalset": Command(("convert", "in.jsonl", "out.json", "--to", "adk"), "out.json"),
    "profile --write-distinct": Command(("profile", "in.jsonl", "--write-distinct", "out.jsonl"), "out.jsonl"),
    "from-inference-table": Command(
        ("from-inference-table", "in.parquet", "out.jsonl"), "out.jsonl", _logged, ("in.parquet",),
        beside=("out.jsonl.manifest.json",), resume=("--resume",),
    ),
}  # fmt: skip
