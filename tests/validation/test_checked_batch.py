"""What the presence mask of a row has, by which metrics are supported."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.validation.checked_batch import _PASSED_THROUGH
from agent_eval_schema.validation.report import run_of
from tests.helpers.traces import span, trace

ROW: dict[str, Any] = {"request": "Hi", "response": "Hello"}
CALLS = {"predicted_trajectory": [{"tool_name": "f", "tool_input": {}}]}
CONTENT = {"retrieved_context": [{"doc_uri": "a", "content": "b"}]}


def traced(kind: str, outputs: Any) -> dict[str, Any]:
    return {"trace": trace(span(inputs="Hi", outputs="Hello"), span("2", "1", kind, outputs=outputs))}


OTHER_SPANS = traced("CHAIN", "x")


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        (ROW, set()),
        (ROW | CALLS, {"tool_span"}),
        (ROW | CONTENT, {"retriever_span"}),
        (traced("TOOL", "x"), {"tool_span"}),
        (traced("RETRIEVER", [{"page_content": "b", "metadata": {"doc_uri": "a"}}]), {"retriever_span"}),
        (OTHER_SPANS, set()),
        (OTHER_SPANS | CALLS, set()),
        (OTHER_SPANS | CONTENT, set()),
    ],
)
def test_the_spans_of_a_row_are_those_of_its_trace_or_without_one_of_its_columns(
    row: dict[str, Any], fields: set[str]
) -> None:
    report = validate_eval_set([row])
    assert report.ok
    (mask,) = run_of(report).builder.masks.tolist()
    assert {field for field in ("retriever_span", "tool_span") if mask & BIT[field]} == fields


def _masks(report: Any) -> list[int]:
    found: list[int] = run_of(report).builder.masks.tolist()
    return found


@pytest.mark.parametrize("name", sorted({name for _, name, _ in _PASSED_THROUGH}))
@pytest.mark.parametrize("value", [[{"name": "f"}], ["a: b"], {"type": "tool_call"}, [], [b"\xff"]], ids=str)
def test_a_column_that_is_passed_through_may_be_nested_in_arrow(name: str, value: Any) -> None:
    rows = [{"request": "Hi", name: value}, {"request": "Ho", name: None}]
    table = pa.Table.from_pylist(rows)
    report = validate_eval_set(table, format="databricks")
    assert report.ok
    if value != [b"\xff"]:  # which a list of rows cannot be written with
        assert _masks(report) == _masks(validate_eval_set(rows, format="databricks"))


def test_choices_of_a_table_are_those_of_a_list() -> None:
    rows = [{"input": "Which?", "target": "A", "choices": ["Lyon", "Paris"]}, {"input": "Where?", "target": "B"}]
    of_table, of_list = (
        validate_eval_set(data).metric_support["choice"] for data in (pa.Table.from_pylist(rows), rows)
    )
    assert of_table.tolist() == of_list.tolist() == [True, False]
