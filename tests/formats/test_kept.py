"""What the own class of a platform drops is a loss. The table is recorded: tests/recorders/kept.py."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.formats.kept import kept_by_classes
from agent_eval_schema.formats.registry import find_format
from tests.conftest import DATA
from tests.recorders.kept import digest

FILE = DATA / "platforms" / "columns.json"
KEPT = kept_by_classes()
CLOSED = sorted(name for name, kept in KEPT.items() if kept.columns is not None)
OPEN = sorted(KEPT.keys() - set(CLOSED))


def columns_of(name: str) -> list[str]:
    form = find_format(name)
    assert form.writer is not None
    return sorted({*form.writer.columns, *form.own_columns})


def test_each_column_of_a_format_was_tried() -> None:
    columns = {name: columns_of(name) for name in sorted(KEPT)}
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(json.dumps(columns, indent=1) + "\n", encoding="utf-8")
    assert json.loads(FILE.read_text(encoding="utf-8")) == columns
    assert {name: kept.digest for name, kept in KEPT.items()} == {n: digest(c) for n, c in columns.items()}


WRITTEN_AND_DROPPED = {
    "deepeval": {"completion_time", "tags"},
    "mlflow": {"session"},
    "openai": {"input", "ideal"},
}
"""The columns that we write and a class drops."""


@pytest.mark.parametrize("name", CLOSED)
def test_what_is_written_is_kept(name: str) -> None:
    writer, kept = find_format(name).writer, KEPT[name].columns
    assert writer is not None
    assert kept is not None
    assert set(writer.columns) - kept == WRITTEN_AND_DROPPED.get(name, set())


ROW = {"request": "How many days?", "response": "12.", "expected_response": "12 days.", "owner": "hr"}


@pytest.mark.parametrize("name", [*CLOSED, *OPEN])
def test_a_column_that_the_class_drops_is_a_loss(name: Any) -> None:
    losses = convert_eval_set([{**ROW, "owner": None}, ROW], name).losses
    found = losses[losses["column"] == "owner"]
    assert list(zip(found["row"], found["code"], strict=True)) == [(1, "AE817")] * (name in CLOSED)


SPOKEN = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]
OF_OTHER_KIND: list[dict[str, Any]] = [
    {"user_input": "Hi", "response": "Hello", "reference_topics": ["leave"]},
    {"user_input": SPOKEN, "persona_name": "Ann"},
]


@pytest.mark.parametrize("row", OF_OTHER_KIND)
def test_a_field_of_the_other_kind_is_reported(row: dict[str, Any]) -> None:
    *_, name = row
    (issue,) = [i for i in validate_eval_set([row]).issues.itertuples() if i.code == "AE198"]
    assert issue.column == name
    made = convert_eval_set([{"request": "Hi", "response": "Hello", name: row[name]}], "ragas")
    is_single = isinstance(row["user_input"], str)
    assert list(made.losses["code"]) == (["AE198"] if is_single else [])
