"""What the columns leave to traces that are handed on, and what the verdict then says of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from agent_eval_schema import normalize_eval_set, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.checked_batch import VERDICT, rows_of, verdict
from agent_eval_schema.validation.fill_from_traces import LEFT_TO_TRACES, trace_texts
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import make_plan
from tests.conftest import DATA

NEW, OLD = ((DATA / "traces" / f"mlflow_{v}.json").read_text(encoding="utf-8") for v in ("v3_18_0", "v2_13_2"))


def test_columns_leave_to_traces_what_their_reader_finds_there() -> None:
    rows: list[dict[str, Any]] = [
        {"trace": NEW},
        {"trace": OLD},
        {"trace": "{"},
        {"request": "a", "response": "b", "latency_seconds": 1.5},
    ]
    source = open_source(rows)
    (batch,) = source.batches()
    plan = replace(make_plan(source), columns=True)
    whole, beside = check_batch(batch, plan), check_batch(batch, replace(plan, beside_traces=True))
    quick = check_batch(batch, replace(plan, beside_traces=True, figures=False))
    assert verdict(beside, "mlflow_reads").to_pylist() == [True, False, None, None]
    assert verdict(whole, "mlflow_reads").null_count == 4
    differing = {n for n in VERDICT.names if verdict(beside, n) != verdict(whole, n)}
    assert differing == {"mlflow_reads"}
    differing = {n for n in VERDICT.names if verdict(beside, n) != verdict(quick, n)}
    assert differing == {"presence", "derived", "latency_seconds", "total_token_count", "tool_calls"}
    assert rows_of(quick) == rows_of(beside)
    for name in COLUMNS:
        given, left = (rows_of(checked).column(name).to_pylist() for checked in (whole, beside))
        assert left == ([None, None, None, given[3]] if name in LEFT_TO_TRACES else given), name


def test_a_cell_that_cannot_be_read_is_not_filled_from_the_trace() -> None:
    rows = [{"request": 5, "trace": NEW}, {"trace": OLD}]
    report = validate_eval_set(rows)
    assert [(i.row, i.code) for i in report.iter_issues() if i.column == "request"] == [(0, "AE204"), (1, "AE606")]
    assert [row["request"] is None for row in normalize_eval_set(rows, on_invalid="keep")] == [True, False]


def test_expectations_that_cannot_be_used_are_corrected_where_they_are() -> None:
    said = [
        {"assessment_name": name, "source": {"source_type": "HUMAN"}, "expectation": {"value": value}}
        for name, value in (("expected_response", "a"), ("expected_facts", ["a"]), ("guidelines", 17))
    ]
    trace = {"info": {"trace_id": "x", "state": "OK", "assessments": said}, "data": {"spans": []}}
    rows = [{"request": "Hi", "response": "a", "trace": trace}]
    hints = [issue.hint for issue in validate_eval_set(rows).iter_issues() if issue.code == "AE603"]
    assert len(hints) == 2
    assert all("in MLflow" in hint and "Export" not in hint for hint in hints), hints


@pytest.mark.parametrize("order", [("expected_response", "expected_facts"), ("expected_facts", "expected_response")])
@pytest.mark.parametrize("preferred", ["expected_response", "expected_facts"])
def test_of_two_kinds_of_ground_truth_in_a_trace_the_preferred_one_is_kept(preferred: str, order: Any) -> None:
    values: dict[str, Any] = {"expected_response": "a", "expected_facts": ["b"]}
    said = [
        {"assessment_name": name, "source": {"source_type": "HUMAN"}, "expectation": {"value": values[name]}}
        for name in order
    ]
    trace = {"info": {"trace_id": "x", "state": "OK", "assessments": said}, "data": {"spans": []}}
    rows = [{"request": "Hi", "response": "a", "trace": trace}]
    report = validate_eval_set(rows, columns={preferred: "preferred"})
    assert (report.counts.get("AE183"), "AE603" in report.counts) == (1, False)
    (row,) = report.iter_rows()
    assert {name: row[name] for name in values} == {**dict.fromkeys(values), preferred: values[preferred]}
    own = [{"request": "Hi", "response": "a", "expected_response": "own", "trace": trace}]
    (row,) = validate_eval_set(own, columns={preferred: "preferred"}).iter_rows()
    assert (row["expected_response"], row["expected_facts"]) == ("own", None)


def test_a_batch_without_the_column_has_no_traces() -> None:
    assert trace_texts(pa.RecordBatch.from_pydict({"request": ["a", "b"]})) == [None, None]
