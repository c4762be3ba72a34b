"""Labels become cells of the format, without a loss that is not told."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.jsonl import REMOVED
from agent_eval_schema.review.dataset import Reviewed
from agent_eval_schema.review.journal import Journal, State
from agent_eval_schema.review.labels import LABELS, merged
from agent_eval_schema.review.session import Session
from agent_eval_schema.text.jsontext import encode
from tests.conftest import SAMPLES
from tests.helpers.traces import span, trace

EVERY: State = {
    "expected_facts": ["It takes 16 weeks", "It is paid"],
    "guidelines": ["Be brief"],
    "documents": {"https://wiki.example.com/a": True, "https://wiki.example.com/b": False},
    "reference_trajectory": [{"tool_name": "search", "tool_input": {"q": "leave"}}],
    "tags": {"topic": "hr"},
}


def cells(row: dict[str, Any], state: State) -> tuple[dict[str, Any], list[str]]:
    applied = Reviewed(open_source([row])).applied(0, state)
    return applied.edits.get(0, {}), applied.unheld.get(0, [])


def test_in_our_own_columns_a_label_is_its_cell() -> None:
    assert cells({"request": "Hi", "response": "Ho"}, EVERY) == (
        {
            "expected_facts": EVERY["expected_facts"],
            "guidelines": ["Be brief"],
            "expected_retrieved_context": [{"doc_uri": "https://wiki.example.com/a"}],
            "reference_trajectory": EVERY["reference_trajectory"],
            "tags": {"topic": "hr"},
        },
        [],
    )


def test_an_integer_that_a_browser_would_round_comes_back_as_it_is() -> None:
    large = 12_345_678_901_234_567_891
    call = {"tool_name": "get", "tool_input": {"id": large, "ids": [2**53, 7], "name": str(2**53 + 1)}}
    row = {"request": "Hi", "response": "Ho", "reference_trajectory": [call], "predicted_trajectory": [call]}
    session = Session(Reviewed(open_source([row])), Journal("maria"))
    shown = session.detail(0)
    sent = shown["truth"]["reference_trajectory"]
    assert sent == shown["calls"]
    assert sent[0]["tool_input"] == {"id": str(large), "ids": [str(2**53), 7], "name": str(2**53 + 1)}
    changed = [{**sent[0], "tool_name": "fetch"}]
    assert cells(row, {"reference_trajectory": changed}) == (
        {"reference_trajectory": [{**call, "tool_name": "fetch"}]},
        [],
    )


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400", "1" + "0" * 400])
def test_a_number_that_json_lacks_is_no_label_and_ends_no_row(number: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    cell = f'{{"tool_name": "s", "tool_input": {{"x": {number}}}}}'
    path.write_text(f'{{"request": "Hi", "response": "a", "own": {number}, "reference_trajectory": [{cell}]}}\n')
    reviewed = Reviewed(open_source(str(path)))
    session = Session(reviewed, Journal("maria"))
    json.loads(encode(session.detail(0)), parse_constant=pytest.fail)
    json.loads(encode(session.check(0, {"tags": {"a": "x"}})), parse_constant=pytest.fail)
    assert reviewed.applied(0, {"tags": {"a": "x"}}).edits == {0: {"tags": {"a": "x"}}}


def test_what_is_not_labeled_stays_in_its_cell() -> None:
    row = {"inputs": {"q": "Hi"}, "outputs": "Ho", "expectations": {"expected_response": "x", "by": "IT"}}
    found, unheld = cells(row, {"expected_response": "", "expected_facts": ["y"]})
    assert found == {"expectations": {"by": "IT", "expected_facts": ["y"]}}
    assert unheld == []


def test_an_expected_document_without_a_mark_stays() -> None:
    row = {"request": "Hi", "response": "Ho", "expected_retrieved_context": [{"doc_uri": "a"}, {"doc_uri": "b"}]}
    found, _ = cells(row, {"documents": {"a": False, "c": True}})
    assert found == {"expected_retrieved_context": [{"doc_uri": "b"}, {"doc_uri": "c"}]}


def test_a_retrieved_document_without_a_uri_is_not_expected() -> None:
    documents = [{"page_content": "A"}, {"page_content": "C", "metadata": {"doc_uri": "c"}}]
    spans = span(inputs={"query": "Hi"}, outputs="Ho"), span("2", "1", "RETRIEVER", outputs=documents)
    edits, _ = cells({"request_id": "1", "trace": json.dumps(trace(*spans))}, {"documents": {"c": True}})
    assert edits == {"expected_retrieved_context": [{"doc_uri": "c"}]}


def test_guidelines_stay_in_their_groups() -> None:
    row = {"request": "Hi", "response": "Ho", "guidelines": {"tone": ["Be kind"], "form": ["Be brief"]}}
    found, _ = cells(row, {"guidelines": ["Be brief", "Say hello"]})
    assert found == {"guidelines": {"tone": ["Say hello"], "form": ["Be brief"]}}


def test_an_empty_label_takes_the_cell_away() -> None:
    row = {"request": "Hi", "response": "Ho", "expected_facts": ["x"], "tags": {"a": "b"}}
    assert cells(row, {"expected_facts": []})[0] == {"expected_facts": REMOVED}


def test_a_label_that_the_format_cannot_hold_leaves_nothing_behind() -> None:
    sample = json.loads((SAMPLES / "bedrock.jsonl").read_text(encoding="utf-8").splitlines()[0])
    found, unheld = cells(sample, {"tags": {"a": "b"}, "expected_response": "16 weeks"})
    assert found == {"referenceResponse": "16 weeks"}
    assert unheld == ["tags"]


ROWS = sorted(p.name for p in SAMPLES.glob("*.jsonl") if "broken" not in p.name and "edited" not in p.name)


@pytest.mark.parametrize("name", [name for name in ROWS if name != "inference_table.jsonl"])
def test_each_format_holds_a_label_or_says_that_it_cannot(name: str) -> None:
    reviewed = Reviewed(open_source(str(SAMPLES / name)))
    session = Session(reviewed, Journal("maria"))
    state = {**EVERY, "expected_response": "16 weeks"} if reviewed.format == "ragas" else EVERY
    applied = reviewed.applied(0, state)
    unheld = session.check(0, state)["unheld"]
    back = Reviewed(open_source([json.loads(json.dumps(row)) for row in _rows(applied)], format=reviewed.plan.format))
    truth = Session(back, Journal("maria")).detail(0)["truth"]
    kept = set(state) - set(unheld) - {"documents"}
    assert {name: truth[name] for name in kept} == {name: state[name] for name in kept} or reviewed.is_document
    assert set(unheld) <= set(LABELS)


def _rows(applied: Any) -> list[dict[str, Any]]:
    from agent_eval_schema.cells.cells import native_rows

    return native_rows(applied.batch)


@pytest.mark.parametrize(
    ("own", "before", "after", "expected"),
    [
        ({"a": 1, "x": 2}, {"a": 1}, {"a": 3}, {"a": 3, "x": 2}),
        ({"a": 1, "x": 2}, {"a": 1}, None, {"x": 2}),
        (None, None, {"a": 1}, {"a": 1}),
        ([{"u": 1, "more": 2}], [{"u": 1}], [{"u": 1}, {"u": 2, "n": None}], [{"u": 1, "more": 2}, {"u": 2}]),
        ("x", "x", "y", "y"),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"b": 1, "d": 3}}, {"a": {"b": 1, "c": 2, "d": 3}}),
    ],
)
def test_only_what_differs_is_changed(own: Any, before: Any, after: Any, expected: Any) -> None:
    assert merged(own, before, after) == expected


def test_an_accepted_fix_comes_before_the_labels(tmp_path: Path) -> None:
    rows = [{"request": "Hi", "response": "Ho", "expected_facts": "one text"}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    reviewed = Reviewed(open_source(str(path)))
    assert reviewed.applied(0, {"fix:expected_facts": "accept"}).edits == {0: {"expected_facts": ["one text"]}}
    assert reviewed.applied(0, {"fix:expected_facts": "reject"}).edits == {}
