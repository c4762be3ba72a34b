"""Labels: every sentence of the reference page's section on what feedback means for a row."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from agent_eval_schema.schema import Document
from agent_eval_schema.traces.feedback import Feedback
from agent_eval_schema.traces.labels import chunks_of, labels_of, latest, step_key

UP, DOWN = Feedback("r", "ana", time=1, value=True), Feedback("r", "ana", time=2, value=False)
STEP = "0x2f2e3d4c5b6a7988"


def test_an_edited_answer_is_the_expected_response() -> None:
    for value in (True, False, None):
        edit = Feedback("r", "ana", value=value, suggested_output="18 weeks.")
        labels = labels_of([edit], response="16 weeks.")
        assert (labels.expected_response, labels.copied) == ("18 weeks.", False)


def test_positive_without_an_edit_copies_the_response_and_says_so() -> None:
    labels = labels_of([UP], response="16 weeks.")
    assert (labels.expected_response, labels.copied, labels.thumb) == ("16 weeks.", True, True)
    assert [finding.rule.code for finding in labels.notes] == ["AE714"]
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
    assert [finding.rule.code for finding in labels.notes] == ["AE715"]


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
    assert [finding.rule.code for finding in labels.notes] == ["AE716"]


def test_without_a_step_the_only_one_is_meant() -> None:
    only = {k: v for k, v in CHUNKS.items() if k[0] == "a1"}
    assert labels_of([chunk(None, 1)], chunks=only).expected_retrieved_context == [Document("b.pdf", "B")]


def test_people_who_disagree_on_a_document_label_nothing() -> None:
    labels = labels_of([chunk("a1", 0), chunk("a1", 0, False, "bo")], chunks=CHUNKS)
    assert labels.expected_retrieved_context is None
    assert [finding.rule.code for finding in labels.notes] == ["AE715"]


@pytest.mark.parametrize("written", ["0x4a6d5c79ed90d1a0", "4A6D5C79ED90D1A0", "4a6d5c79ed90d1a0", "Sm1cee2Q0aA="])
def test_a_span_is_the_same_in_every_spelling(written: str) -> None:
    assert step_key(written) == "4a6d5c79ed90d1a0"


@pytest.mark.parametrize("step_id", ["Retriever 2=", "étape-trois="])
def test_a_name_that_looks_like_base64_is_the_id_of_its_step(step_id: str) -> None:
    assert step_key(step_id) == step_id


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
