"""Traces in the encoding of MLflow 3, without MLflow (tests/integrations/mlflow/test_prepare.py lets it read them)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_eval_schema.traces.encode import MADE, as_mlflow_loads, rewritten, with_session
from agent_eval_schema.traces.mlflow_readable import readable_assessments

MOMENT, NOW = "2026-11-03T09:00:00Z", "2026-11-04T09:00:00Z"
GOOD: dict[str, Any] = {"assessment_name": "good", "source": {"source_type": "HUMAN"}, "create_time": MOMENT}
YES, FACTS = {"feedback": {"value": True}}, {"serialization_format": "JSON_FORMAT", "value": "[1]"}


def span(name: str, parent: str | None, **attributes: Any) -> dict[str, Any]:
    ids = {"context": {"span_id": f"0x{name}", "trace_id": "0x1"}, "parent_id": parent and f"0x{parent}"}
    texts = {f"mlflow.{key}": json.dumps(value) for key, value in attributes.items()}
    times = {"start_time": 1_000, "end_time": 2_000, "status_code": "OK", "events": []}
    return {"name": name, **ids, **times, "attributes": texts}


def again(*spans: dict[str, Any], **info: Any) -> dict[str, Any]:
    text = rewritten(json.dumps({"info": {"request_id": "tr-1", **info}, "data": {"spans": spans}}))
    assert text is not None
    found: dict[str, Any] = json.loads(text)
    assert found["info"]["tags"][MADE] == "rewritten"
    return found


def test_spans_without_a_root_are_below_one() -> None:
    spans = again(span("a1", "f1"), span("a2", "a1"), span("a3", "f3"))["data"]["spans"]
    names = {s["span_id"]: s["name"] for s in spans}
    parents = {s["name"]: names.get(s["parent_span_id"]) for s in spans}
    assert parents == {"root": None, "a1": "root", "a2": "a1", "a3": "root"}


@pytest.mark.parametrize(
    "spans", [[{}], [{"parent_id": ""}], [{"parent_id": "x"}], [{"parent_id": ""}, {"span_id": "a"}]]
)
def test_spans_without_ids_are_the_root_or_below_it(spans: list[dict[str, Any]]) -> None:
    first, *others = again(*spans)["data"]["spans"]
    assert first["parent_span_id"] is None
    assert {s["parent_span_id"] for s in others} <= {first["span_id"]}


def test_documents_of_a_retriever_are_as_mlflow_reads_them() -> None:
    document = {"page_content": "16 weeks", "metadata": {"doc_uri": "a.md"}}
    plain = [{"page_content": text, "metadata": {"doc_uri": None}} for text in ("16 weeks", "a month")]
    for outputs, expected in (
        ([document], [document]),
        ({"documents": [document]}, [document]),
        (json.dumps([document]), [document]),
        ([{"content": "16 weeks", "doc_uri": "a.md"}], [{"content": "16 weeks", "doc_uri": "a.md"}]),
        (["16 weeks", "a month"], plain),
        ("16 weeks", plain[:1]),
        ({"found": 3}, {"found": 3}),  # what is no document stays as it is
        ([{"found": 3}], [{"found": 3}]),
        ([{"found": 3}, *plain[:1]], [{"page_content": "", "metadata": {"doc_uri": None}}, *plain[:1]]),
    ):
        retriever = span("a2", "a1", spanType="RETRIEVER", spanOutputs=outputs)
        written = again(span("a1", None), retriever)["data"]["spans"][1]["attributes"]["mlflow.spanOutputs"]
        assert json.loads(written) == expected, outputs


def test_an_assessment_names_its_span_as_it_is_written() -> None:
    found = again(
        span("a1", None), assessments=[{**GOOD, **YES, "span_id": "0xa1"}, {**GOOD, **YES, "span_id": "b2"}, 7]
    )
    assert [a["assessment_name"] for a in found["info"]["assessments"]] == ["good", "good"]
    assert found["info"]["assessments"][0]["span_id"] != "0xa1"
    assert found["info"]["assessments"][1]["span_id"] == "b2"
    assert "assessments" not in again(span("a1", None), assessments=[7])["info"]


@pytest.mark.parametrize(
    ("change", "is_read"),
    [
        (YES, True),
        ({"expectation": {"value": "x"}}, True),
        ({"expectation": {"serialized_value": FACTS}}, True),
        ({"expectation": {"serialized_value": {**FACTS, "value": "["}}}, False),
        ({"expectation": {"value": None}}, False),
        ({"expectation": {}}, False),
        ({}, False),
        ({**YES, "expectation": {"value": "x"}}, False),
        ({**YES, "create_time": "2026-13-01T00:00:00Z"}, False),
        ({**YES, "create_time": "yesterday"}, False),
        ({**YES, "source": {"source_type": "A GHOST"}}, False),
        ({**YES, "span_id": 5}, False),
        ({**YES, "colour": "red"}, True),
    ],
    ids=str,
)
def test_an_assessment_that_mlflow_cannot_read_is_left_out(change: dict[str, Any], is_read: bool) -> None:
    assert bool(readable_assessments([{**GOOD, **change}], "tr-1", NOW, {})) == is_read


def test_an_assessment_without_a_time_has_that_of_its_trace() -> None:
    (known,) = readable_assessments([{**GOOD, **YES}], "tr-1", NOW, {})
    (bare,) = readable_assessments([{"assessment_name": "bare", **YES}], "tr-1", NOW, {})
    assert (known["create_time"], known["last_update_time"]) == (MOMENT, MOMENT)
    assert (bare["create_time"], bare["last_update_time"], bare["trace_id"]) == (NOW, NOW, "tr-1")
    assert bare["source"] == {"source_type": "SOURCE_TYPE_UNSPECIFIED"}


def test_mlflow_loads_a_trace_of_its_two_parts_only() -> None:
    of_mlflow = json.dumps({"info": {}, "data": {}})
    assert as_mlflow_loads(of_mlflow) == of_mlflow
    assert as_mlflow_loads("no trace") == "no trace"
    assert json.loads(as_mlflow_loads(json.dumps({"steps": []})))["info"]["tags"][MADE] == "rewritten"


def test_a_trace_in_its_own_session_stays_as_it_is() -> None:
    text = json.dumps(again(span("a1", None)))
    moved = with_session(text, "s-1")
    assert json.loads(moved)["info"]["trace_metadata"]["mlflow.trace.session"] == "s-1"
    assert with_session(moved, "s-1") == moved
