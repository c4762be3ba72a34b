"""A page that leaves the machine: with `--redact` nothing of it is private, whatever the keys in cells are called."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.review.journal import Event, RowKey
from agent_eval_schema.review.review import merge

KEYS = (
    *("key", "kind", "name", "severity", "code", "metrics", "needs", "format", "queue", "base", "fields", "hash", "n"),
    *("id", "title", "row", "what", "path", "before", "after", "state", "text", "role", "reason"),
)
"""Names that the page itself has for its own values."""


def canary(number: int) -> str:
    return f"canary{number}@example.com"


def rows() -> list[dict[str, Any]]:
    """Rows with a canary in every cell and under every key, valid, with fixes and with errors."""
    inside = {key: canary(100 + place) for place, key in enumerate(KEYS)}
    long = "How do I reach them? " * 7 + canary(40)  # a list of titles cuts it in the middle of the address
    return [
        {
            "request_id": canary(1),
            "request": {"messages": [{"role": "user", "content": canary(2)}]},
            "response": canary(3),
            "expected_facts": [canary(4)],
            "guidelines": [canary(5)],
            "retrieved_context": [{"doc_uri": canary(6), "content": canary(7)}],
            "predicted_trajectory": [{"tool_name": "mail", "tool_input": {"deep": {"deeper": [inside]}}}],
            "reference_trajectory": [{"tool_name": "mail", "tool_input": {canary(8): canary(9), **inside}}],
            "tags": {"owner": canary(10)},
        },
        {
            "request_id": "fix",
            "request": canary(11),
            "response": "a",
            "expected_facts": canary(12),
            "guidelines": canary(13),
        },
        {
            "request_id": "wrong",
            "request": {"messages": [{"role": canary(14), "content": 1}]},
            "response": [canary(15)],
        },
        {"request_id": "cut", "request": long, "response": "a"},
    ]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    command = ["review", "rows.jsonl", "--reviewer", "ana", "--bundle", "page.html", "--redact", "default", "--quiet"]
    assert main(command) == 0
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def test_no_canary_leaves(page: str) -> None:
    assert re.findall(r"canary\d*(?:@|\\u0040|%40)?\w*", page) == []
    assert "@example.com" not in page


def test_labels_of_the_redacted_page_find_their_rows(page: str, tmp_path: Path) -> None:
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    key = data["details"]["0"]["key"]
    assert key["id"] != canary(1)
    event = Event(
        v=1, seq=1, at="2026-01-01T00:00:00Z", by="ana", row=RowKey(**key), op="set", path="note", old=None, new="seen"
    )
    paths = [tmp_path / f"{name}.review.jsonl" for name in ("ana", "bob")]
    for path in paths:
        line = json.dumps({**json.loads(msgspec.json.encode(event)), "by": path.name.partition(".")[0]})
        path.write_text(line + "\n")
    session = merge(open_source(str(tmp_path / "rows.jsonl")), list(map(str, paths)))
    assert session.gone == []


def test_an_error_does_not_name_private_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mapping is proposed with the names of the columns, which may be private where values are."""
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps({f"{canary(1)} question": "How?", f"{canary(1)} id": "a", "x": 1}))
    command = ["review", str(path), "--reviewer", "ana", "--bundle", str(tmp_path / "page.html")]
    assert main(command) == 2
    assert canary(1) in capsys.readouterr().err
    assert main([*command, "--redact", "default"]) == 2
    assert canary(1) not in capsys.readouterr().err
