"""What the own class of a platform drops is a loss. The table is recorded: tests/recorders/kept.py."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.formats.kept import KEPT_BY_CLASSES
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.metrics.support import metrics_of
from tests.conftest import DATA
from tests.recorders.kept import digest

FILE = DATA / "platforms" / "columns.json"
KEPT = KEPT_BY_CLASSES
CLOSED = sorted(name for name, kept in KEPT.items() if kept.columns is not None)
OPEN = sorted(KEPT.keys() - set(CLOSED))


def columns_of(name: str) -> list[str]:
    form = find_format(name)
    assert form.writer is not None
    return sorted({*form.writer.columns, *form.own_columns}.difference(form._originals.values()))  # which are ours


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
    "phoenix": {"example_id"},
}
"""The columns that we write and a class drops."""


@pytest.mark.parametrize("name", CLOSED)
def test_what_is_written_is_kept(name: str) -> None:
    writer, kept = find_format(name).writer, KEPT[name].columns
    assert writer is not None
    assert kept is not None
    assert set(writer.columns) - kept == WRITTEN_AND_DROPPED.get(name, set())


OF_OTHER_LOADERS = {
    "deepeval": {"retrievalContext", "toolsCalled"},  # of a test case
    "ragas": {"contexts"},  # of a `datasets.Dataset`
}
"""The columns that the recorded loader drops and another one of the platform reads."""

OF_EACH_TYPE: list[Any] = ["x", ["x"], {"x": "y"}, [{"name": "f", "args": {}}], 1.5, [{"role": "user", "content": "x"}]]


@pytest.mark.parametrize("name", [name for name in CLOSED if find_format(name).columns])
def test_no_metric_of_the_platform_is_promised_by_a_column_that_it_drops(name: Any) -> None:
    form = find_format(name)
    made = convert_eval_set([ROW | {"owner": None}], name).data
    (row,) = [made["cases"][0]] if isinstance(made, dict) else made.to_dict("records")
    own = {metric.name for metric in metrics_of(form.system)}

    dropped = form.own_columns - (KEPT[name].columns or set()) - row.keys()
    added = [(column, value) for column in sorted(dropped) for value in OF_EACH_TYPE]
    rows = [row, *({**row, column: value} for column, value in added)]
    support = validate_eval_set(rows, format=name).metric_support
    without, *with_one = [
        {metric for metric, is_supported in one.items() if is_supported} & own for one in support.to_dict("records")
    ]
    found = {column for (column, _), metrics in zip(added, with_one, strict=True) if metrics - without}
    assert found == OF_OTHER_LOADERS.get(name, set())


ROW = {"request": "How many days?", "response": "12.", "expected_response": "12 days.", "owner": "hr"}


@pytest.mark.parametrize("name", [*CLOSED, *OPEN])
def test_a_column_that_the_class_drops_is_a_loss(name: Any) -> None:
    losses = convert_eval_set([{**ROW, "owner": None}, ROW], name).losses
    found = losses[losses["column"] == "owner"]
    writer = find_format(name).writer
    assert writer is not None
    code = "AE811" if writer.document is not None else "AE817" if name in CLOSED else ""  # a document has no such key
    assert list(zip(found["row"], found["code"], strict=True)) == [(1, code)] * bool(code)


def test_a_document_contains_what_its_class_keeps() -> None:
    full = {**ROW, "reference_trajectory": [{"tool_name": "f"}], "session_id": "s", "tags": {"a": "b"}}
    cases = convert_eval_set([{**full, "request_id": "a", "guidelines": ["Be brief."]}], "strands").data["cases"]
    assert len(cases[0]) > 5
    assert set(cases[0]) <= set(KEPT["strands"].columns or ())


def test_phoenix_gets_objects() -> None:
    """`create_dataset(examples=...)` raises on texts, and on an example without an output."""
    asked = {"messages": [{"role": role, "content": role} for role in ("user", "assistant", "user")]}
    rows = [ROW, {"request": "Hi", "response": None}, {"request": asked, "expected_facts": ["a"]}]
    made = convert_eval_set(rows, "phoenix").data[["input", "output"]].to_dict("records")
    assert made == [
        {"input": {"question": "How many days?"}, "output": {"answer": "12 days."}},
        {"input": {"question": "Hi"}, "output": {}},
        {"input": asked, "output": {"expected_facts": ["a"]}},
    ]
    texts = [{"input": "Hi", "output": "Hello", "metadata": {}}]  # which the columns of a DataFrame may be
    assert convert_eval_set(texts, "phoenix", format="phoenix").data.to_dict("records") == texts


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
