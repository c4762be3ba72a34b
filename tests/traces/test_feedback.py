"""Feedback: every sentence of the reference page's section on calls, logs and traces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_eval_schema.traces.feedback import Feedback, read_feedback
from tests.helpers.inference_tables import codes, convert, convert_one, logged

RATED = {"step_id": None, "ratings": {"answer_correct": {"value": "positive", "rationale": "right"}}}
STEP = "0x2f2e3d4c5b6a7988"


def call(**record: Any) -> dict[str, Any]:
    return logged({"dataframe_records": [{"request_id": "r-0", "source": "ana", **record}]}, "")


@pytest.mark.parametrize("wrap", [lambda v: v, json.dumps], ids=["objects", "json strings"])
@pytest.mark.parametrize("several", [lambda v: [v], lambda v: v], ids=["list", "one"])
def test_assessments_are_objects_or_json_strings(wrap: Any, several: Any) -> None:
    retrieval = {"position": 1, "step_id": STEP, "ratings": {"answer_correct": {"value": "negative"}}}
    record = convert_one(
        call(
            source=wrap({"id": "ana", "type": "human"}),
            text_assessments=wrap(several(RATED)),
            retrieval_assessments=wrap(several(retrieval)),
        )
    )
    assert record["reason"] == "feedback"
    got = [
        (f["kind"], f["request_id"], f["source"], f["step_id"], f["position"], f["value"]) for f in record["feedback"]
    ]
    assert got == [("text", "r-0", "ana", None, None, True), ("retrieval", "r-0", "ana", STEP, 1, False)]
    assert record["feedback"][0]["rationale"] == "right"


@pytest.mark.parametrize(
    ("rating", "value"),
    [
        ({"value": "positive"}, True),
        ({"value": "negative"}, False),
        ({"bool_value": True}, True),
        ({"bool_value": False}, False),
        ({"value": None, "bool_value": False}, False),
        ({"value": "true"}, True),
        ({"value": "false"}, False),
        ({"value": None}, None),
        ({}, None),
    ],
)
def test_ratings_of_every_generation(rating: Any, value: bool | None) -> None:
    record = convert_one(call(text_assessments=[{"ratings": {"answer_correct": rating}}]))
    assert ([f["value"] for f in record["feedback"]], codes(record)) == ([value], [])


def test_of_several_ratings_none_is_taken_for_that_of_the_answer() -> None:
    ratings = {name: {"value": "positive"} for name in ("polite", "short")}
    for given, value in (({"polite": ratings["polite"]}, True), (ratings, None)):
        record = convert_one(call(text_assessments=[{"ratings": given}]))
        assert [f["value"] for f in record["feedback"]] == [value]


def test_suggested_output_and_comment() -> None:
    record = convert_one(
        call(text_assessments=[{**RATED, "suggested_output": "18 weeks.", "free_text_comment": "new"}])
    )
    assert [(f["suggested_output"], f["comment"]) for f in record["feedback"]] == [("18 weeks.", "new")]


@pytest.mark.parametrize(
    ("ratings", "told"),
    [
        (None, None),
        ({}, None),
        ("perhaps", "the text 'perhaps'"),
        (["positive"], "a list of 1"),
        ({"polite": 5}, "the number 5"),
    ],
    ids=str,
)
def test_a_rating_that_is_neither_is_reported_with_its_path(ratings: Any, told: str | None) -> None:
    record = convert_one(call(text_assessments=[{"ratings": ratings, "free_text_comment": 7}]))
    assert [(f["value"], f["comment"]) for f in record["feedback"]] == [(None, "7")]
    notes = [(note["path"], note["message"]) for note in record["notes"] or ()]
    path = "request.dataframe_records[0].text_assessments[0].ratings"
    assert notes == ([] if told is None else [(path, f"expected positive or negative, got {told}")])


@pytest.mark.parametrize("position", [None, "1", True, -1, 1 << 31], ids=str)
def test_a_document_without_a_position_is_reported_and_its_rating_kept(position: Any) -> None:
    record = convert_one(call(retrieval_assessments=[{**RATED, "position": position}]))
    assert [(f["value"], f["position"]) for f in record["feedback"]] == [(True, None)]
    assert [(note["code"], note["path"].rpartition(".")[2]) for note in record["notes"]] == [("AE713", "position")]
    assert record["notes"][0]["message"].startswith("expected a position, got ")


@pytest.mark.parametrize(
    "assessments",
    [[17], ["text"], [{"ratings": {"answer_correct": {"value": "perhaps"}}}], [None]],
)
def test_odd_feedback_is_told(assessments: Any) -> None:
    record = convert_one(call(text_assessments=assessments))
    assert (record["reason"], codes(record)) == ("feedback", ["AE713"])


def test_feedback_without_the_id_of_a_call_is_told() -> None:
    record = convert_one(call(request_id=None, text_assessments=[RATED]))
    assert (codes(record), record["feedback"][0]["request_id"]) == (["AE713"], None)


def test_feedback_is_feedback_whatever_the_window_and_the_status() -> None:
    """A click comes after the call: a window that ends between the two keeps the label."""
    row = {**call(text_assessments=[RATED]), "status_code": 500}
    record = convert_one(row, until=0)
    assert (record["reason"], len(record["feedback"])) == ("feedback", 1)


def test_feedback_can_be_kept_as_a_row() -> None:
    assert convert_one(call(text_assessments=[RATED]), kept=frozenset({"feedback", "invalid"}))["reason"] is None


def test_feedback_among_other_records_is_excluded_alone() -> None:
    body = {"dataframe_records": [{"query": "a"}, {"request_id": "r-0", "text_assessments": [RATED]}]}
    records = convert([logged(body, {"predictions": ["b", None]})])
    assert [(r["request_id"], r["reason"]) for r in records] == [("r-1#0", None), ("r-1#1", "feedback")]
    assert [f["request_id"] for f in records[1]["feedback"]] == ["r-0"]


def test_a_question_about_assessments_is_a_question() -> None:
    row = logged({"messages": [{"role": "user", "content": "What are text_assessments?"}]})
    assert convert_one(row)["reason"] is None


def test_only_people_label_a_trace() -> None:
    judged = {"source": {"source_type": "LLM_JUDGE", "source_id": "j"}, "feedback": {"value": "yes"}}
    overridden = {"source": {"source_type": "HUMAN", "source_id": "a"}, "feedback": {"value": True}, "valid": False}
    row = {"trace_id": "tr-1", "state": "OK", "trace": {"info": {}, "data": {}}, "assessments": [judged, overridden]}
    assert convert_one(row)["feedback"] is None


def test_entries_of_a_call_are_read_without_a_table() -> None:
    entries, notes = read_feedback([{"request_id": "r", "source": {"id": "ana"}, "text_assessments": RATED}], 5)
    assert (entries, notes) == ([Feedback("r", "ana", time=5, value=True, rationale="right")], [])
