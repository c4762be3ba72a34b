"""Feedback: every sentence of the reference page's section, from the call to the labels."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from agent_eval_schema.inference_tables.read.feedback import (
    Feedback,
    chunks_of,
    labels_of,
    latest,
    read_feedback,
    step_key,
)
from agent_eval_schema.schema import Document
from tests.helpers.inference_tables import codes, convert, convert_one, logged

RATED = {"step_id": None, "ratings": {"answer_correct": {"value": "positive", "rationale": "right"}}}
UP, DOWN = Feedback("r", "ana", time=1, value=True), Feedback("r", "ana", time=2, value=False)
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


def test_suggested_output_and_comment() -> None:
    record = convert_one(
        call(text_assessments=[{**RATED, "suggested_output": "18 weeks.", "free_text_comment": "new"}])
    )
    assert [(f["suggested_output"], f["comment"]) for f in record["feedback"]] == [("18 weeks.", "new")]


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
    assert convert_one(call(text_assessments=[RATED]), kept=frozenset({"feedback"}))["reason"] is None


def test_feedback_among_other_records_is_set_aside_alone() -> None:
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


# ---------------------------------------------------------------------------------------------------------------------
# labels


def test_an_edited_answer_is_the_expected_response() -> None:
    for value in (True, False, None):
        edit = Feedback("r", "ana", value=value, suggested_output="18 weeks.")
        labels = labels_of([edit], response="16 weeks.")
        assert (labels.expected_response, labels.copied) == ("18 weeks.", False)


def test_positive_without_an_edit_copies_the_response_and_says_so() -> None:
    labels = labels_of([UP], response="16 weeks.")
    assert (labels.expected_response, labels.copied, labels.thumb) == ("16 weeks.", True, True)
    assert [rule.code for rule, _, _ in labels.notes] == ["AE714"]
    assert labels_of([UP], response=None).expected_response is None


def test_negative_without_an_edit_expects_nothing() -> None:
    labels = labels_of([DOWN], response="16 weeks.")
    assert (labels.expected_response, labels.copied, labels.thumb, labels.notes) == (None, False, False, ())


def test_the_latest_click_of_a_person_counts_in_any_order() -> None:
    for entries in permutations([UP, DOWN]):
        assert latest(entries) == [DOWN]
        assert labels_of(entries, response="x").expected_response is None


def test_the_latest_is_of_each_source_step_and_position() -> None:
    entries = [
        Feedback("r", source, step, position, time, "retrieval", True)
        for source in ("ana", "bo")
        for step in ("1", "2")
        for position in (0, 1)
        for time in (1, 2)
    ]
    assert len(latest(entries)) == 8
    assert {e.time for e in latest(entries)} == {2}


def test_people_who_disagree_label_nothing_and_it_is_told() -> None:
    labels = labels_of([UP, Feedback("r", "bo", time=3, value=False)], response="x")
    assert (labels.expected_response, labels.thumb) == (None, None)
    assert [rule.code for rule, _, _ in labels.notes] == ["AE715"]


def test_the_newest_edit_wins() -> None:
    edits = [Feedback("r", s, time=t, suggested_output=s) for s, t in (("ana", 5), ("bo", 7), ("cy", 6))]
    assert labels_of(edits).expected_response == "bo"


def test_no_feedback_no_labels() -> None:
    assert labels_of([]) == labels_of([Feedback("r", "ana", comment="hm")], response="x")


CHUNKS = {
    ("a1", 0): ("a.pdf", "A"),
    ("a1", 1): ("b.pdf", "B"),
    ("b2", 0): ("c.pdf", None),
    ("b2", 1): (None, "D"),
}


def chunk(step: str | None, position: int | None, value: bool = True, source: str = "ana") -> Feedback:
    return Feedback("r", source, step, position, 1, "retrieval", value)


def test_documents_match_by_step_and_position_not_by_order() -> None:
    labels = labels_of([chunk("b2", 0), chunk("a1", 1), chunk("a1", 0, False)], chunks=CHUNKS)
    assert labels.expected_retrieved_context == [Document("b.pdf", "B"), Document("c.pdf", None)]
    assert labels.notes == ()


@pytest.mark.parametrize("entry", [chunk("b2", 1), chunk("a1", 9), chunk("x", 0), chunk(None, 0), chunk("a1", None)])
def test_a_document_that_is_not_there_is_told(entry: Feedback) -> None:
    labels = labels_of([entry], chunks=CHUNKS)
    assert labels.expected_retrieved_context is None
    assert [rule.code for rule, _, _ in labels.notes] == ["AE716"]


def test_without_a_step_the_only_one_is_meant() -> None:
    only = {k: v for k, v in CHUNKS.items() if k[0] == "a1"}
    assert labels_of([chunk(None, 1)], chunks=only).expected_retrieved_context == [Document("b.pdf", "B")]


def test_people_who_disagree_on_a_document_label_nothing() -> None:
    labels = labels_of([chunk("a1", 0), chunk("a1", 0, False, "bo")], chunks=CHUNKS)
    assert labels.expected_retrieved_context is None
    assert [rule.code for rule, _, _ in labels.notes] == ["AE715"]


@pytest.mark.parametrize("written", ["0x4a6d5c79ed90d1a0", "4A6D5C79ED90D1A0", "4a6d5c79ed90d1a0", "Sm1cee2Q0aA="])
def test_a_span_is_the_same_in_every_spelling(written: str) -> None:
    assert step_key(written) == "4a6d5c79ed90d1a0"


def test_the_documents_of_every_step_of_a_trace() -> None:
    documents = [{"page_content": "A", "metadata": {"doc_uri": "a"}}, {"page_content": "B", "metadata": {}}]
    spans = [
        {
            "span_id": f"0x{i}",
            "attributes": {"mlflow.spanType": kind, "mlflow.spanOutputs": json.dumps(documents)},
        }
        for i, kind in enumerate(('"RETRIEVER"', '"TOOL"', "RETRIEVER"))
    ]
    trace = json.dumps({"info": {}, "data": {"spans": spans}})
    expected = [(("0", 0), ("a", "A")), (("0", 1), (None, "B")), (("2", 0), ("a", "A")), (("2", 1), (None, "B"))]
    assert list(chunks_of(trace).items()) == expected
    steps = {
        "steps": [{"step_id": "7", "type": "RETRIEVAL", "retrieval": {"chunks": [{"doc_uri": "a", "content": "A"}]}}]
    }
    assert chunks_of(json.dumps(steps)) == {("7", 0): ("a", "A")}
    assert chunks_of("no trace") == chunks_of(None) == {}


def test_entries_of_a_call_are_read_without_a_table() -> None:
    entries, notes = read_feedback([{"request_id": "r", "source": {"id": "ana"}, "text_assessments": RATED}], 5)
    assert (entries, notes) == ([Feedback("r", "ana", time=5, value=True, rationale="right")], [])
