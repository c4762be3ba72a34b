"""The commands that write, each with its input, its output and what it writes beside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from msgspec import Struct

from agent_eval_schema import EvalSetError, load_result
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.review.dataset import Reviewed
from agent_eval_schema.review.journal import Change, Journal
from tests.conftest import ROOT
from tests.helpers.logged_calls import chat, table


def _rows(folder: Path, rows: int) -> None:
    with (folder / "in.jsonl").open("w") as file:
        for i in range(rows):
            row = {"request_id": f"r{i}", "request": f"question {i}" if i % 10 else "", "expected_respones": "x"}
            file.write(json.dumps({**row, "response": "answer " * (1 + i % 40)}) + "\n")


def _logged(folder: Path, rows: int) -> None:
    calls = [chat(f"c{i}", f"question {i}", "answer " * (i % 40)) for i in range(rows // 10)]
    pq.write_table(table(calls), folder / "in.parquet", row_group_size=200)


def _calls(folder: Path, rows: int) -> None:
    call = {"tool_name": "search", "tool_input": {"query": "x"}}
    with (folder / "in.jsonl").open("w") as file:
        for i in range(rows):
            row = {"request": f"question {i}", "reference_trajectory": [call], "predicted_trajectory": [call] * (i % 3)}
            file.write(json.dumps(row) + "\n")


def _traces(folder: Path, rows: int) -> None:
    lines = (ROOT / "sample_data" / "traces_mlflow2.jsonl").read_text().splitlines()
    (folder / "in.jsonl").write_text("".join(f"{lines[i % len(lines)]}\n" for i in range(rows // 10)))


def _few_rows(folder: Path, rows: int) -> None:
    _rows(folder, rows // 20)


def _reviewed(folder: Path, rows: int) -> None:
    """A dataset and the journals of two reviewers, who agree."""
    _rows(folder, rows)
    keys = Reviewed(open_source(str(folder / "in.jsonl")))
    for name in "ab":
        changes = [Change(keys.key(row), path, None, v) for row in range(9) for path, v in LABELED.items()]
        Journal(name, str(folder / f"{name}.review.jsonl")).append(changes)


LABELED = {"expected_facts": ["a fact"], "status": "submitted"}


def _scores(folder: Path, rows: int) -> None:
    for name in ("in", "in2"):
        with (folder / f"{name}.jsonl").open("w") as file:
            file.writelines(json.dumps({"id": f"r{i}", "a/score": i % 3 / 2}) + "\n" for i in range(rows))


def _for_a_pair(folder: Path, rows: int) -> None:
    _calls(folder, rows)
    (folder / PAIR).parent.mkdir(parents=True)


PAIR = "data/support/acme/agent/0b9ad5de-4a86-4c8b-9a5f-6a1c1a0b7d11.json"
SAMPLES = PAIR.replace(".json", "_samples.jsonl")


def _old_pair(folder: Path) -> None:
    load_result([{"prompt": "q", "exact_match/score": 1.0}]).write(folder / PAIR)


def _pair(folder: Path) -> bytes:
    """The bytes of both files without the time of their run; b"" if there is one, or a reader says that they do not
    belong together."""
    aggregate, samples = folder / PAIR, folder / SAMPLES
    if not aggregate.exists() or not samples.exists():
        return b""
    try:
        read = load_result(aggregate)
    except EvalSetError as error:
        return b"" if "is not the file that" in str(error) else str(error).encode()
    found = json.loads(aggregate.read_bytes())
    content = aggregate.read_bytes().replace(found["detailed_evaluation_results"]["checksum"].encode(), b"")
    both = content + samples.read_bytes()
    return b"old" if read.row_count == 1 else both.replace(found["retrieved_timestamp"].encode(), b"")


class Command(Struct, frozen=True):
    """A command. Its output may be there before, or must not; `beside` are other files that it writes for good, `work`
    is the folder that it leaves for `--resume`. Of what is not one file or one folder, `content` reads it, and
    `old` writes what is there before."""

    arguments: tuple[str, ...]
    out: str
    prepare: Callable[[Path, int], None] = _rows
    inputs: tuple[str, ...] = ("in.jsonl",)
    beside: tuple[str, ...] = ()
    work: str = ""
    may_be_there: bool = True
    content: Callable[[Path], bytes] | None = None
    old: Callable[[Path], None] | None = None


COMMANDS = {
    "validate --write-normalized": Command(
        ("validate", "in.jsonl", "--write-normalized", "out.parquet"), "out.parquet"
    ),
    "validate --resume": Command(
        ("validate", "in.jsonl", "--write-normalized", "out.parquet", "--resume"), "out.parquet",
        work=".out.parquet.work",
    ),
    "validate --write-invalid": Command(("validate", "in.jsonl", "--write-invalid", "out.jsonl"), "out.jsonl"),
    "validate --fix": Command(("validate", "in.jsonl", "--fix", "out.jsonl"), "out.jsonl"),
    "validate --html": Command(("validate", "in.jsonl", "--html", "out.html", "--quiet"), "out.html"),
    "convert to JSON Lines": Command(("convert", "in.jsonl", "out.jsonl", "--to", "vertex"), "out.jsonl"),
    "convert --resume": Command(
        ("convert", "in.jsonl", "out.jsonl", "--to", "vertex", "--resume"), "out.jsonl", work=".out.jsonl.work"
    ),
    "import": Command(
        ("import", "in.jsonl", "out.jsonl", "--prefer", "expected_facts", "--mapping", "in.toml"), "out.jsonl",
        beside=("in.toml",),
    ),
    "convert to CSV": Command(("convert", "in.jsonl", "out.csv", "--to", "mlflow"), "out.csv"),
    "convert to an evalset": Command(("convert", "in.jsonl", "out.json", "--to", "adk"), "out.json"),
    "convert to Delta": Command(
        ("convert", "in.jsonl", "out.delta", "--to", "mlflow"), "out.delta", may_be_there=False
    ),
    "score --write-scores": Command(("score", "in.jsonl", "--write-scores", "out.csv"), "out.csv", _calls),
    "score --write-scores, of every-eval-ever": Command(
        ("score", "in.jsonl", "--write-scores", PAIR), PAIR, _for_a_pair, beside=(SAMPLES,), content=_pair,
        old=_old_pair,
    ),
    "convert --html": Command(
        ("convert", "in.jsonl", "rows.jsonl", "--to", "vertex", "--html", "out.html"), "out.html",
        beside=("rows.jsonl",),
    ),
    "diff --html": Command(("diff", "in.jsonl", "in.jsonl", "--html", "out.html"), "out.html"),
    "from-traces": Command(("from-traces", "in.jsonl", "out.jsonl"), "out.jsonl", _traces),
    "profile --write-distinct": Command(("profile", "in.jsonl", "--write-distinct", "out.jsonl"), "out.jsonl"),
    "review --merge": Command(
        ("review", "in.jsonl", "--merge", "a.review.jsonl", "b.review.jsonl", "--out", "out.jsonl"), "out.jsonl",
        _reviewed, ("in.jsonl", "a.review.jsonl", "b.review.jsonl"),
    ),
    "review --bundle": Command(("review", "in.jsonl", "--bundle", "out.html"), "out.html", _few_rows),
    "compare --html": Command(
        ("compare", "in.jsonl", "in2.jsonl", "--html", "out.html"), "out.html", _scores, ("in.jsonl", "in2.jsonl")
    ),
    "from-inference-table": Command(
        ("from-inference-table", "in.parquet", "out.jsonl"), "out.jsonl", _logged, ("in.parquet",),
        beside=("out.jsonl.manifest.json",), work=".out.jsonl.work",
    ),
}  # fmt: skip
