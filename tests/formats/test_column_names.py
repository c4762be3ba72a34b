"""Columns that the user names, with paths into objects and lists; and what unknown columns look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    EvalTask,
    eval_set_from_traces,
    normalize_eval_set,
    prepare_for_evaluate,
    validate_eval_set,
)
from agent_eval_schema.formats.column_names import _flat, _put, _without
from agent_eval_schema.formats.suggestions import SAMPLED_ROWS, suggested_columns
from agent_eval_schema.validation.report import summary_of

Row = dict[str, Any]

CONTENT, URI = "retrieved_context[].content", "retrieved_context[].doc_uri"

LISTS: list[tuple[dict[str, str], Row, Row]] = [
    # a key of each object of a list, and what stays
    (
        {"ctx[].text": CONTENT, "ctx[].id": URI},
        {"ctx": [{"text": "a", "id": "u1", "score": 0.5}, {"text": "b", "id": "u2"}]},
        {
            "retrieved_context": [{"content": "a", "doc_uri": "u1"}, {"content": "b", "doc_uri": "u2"}],
            "ctx": [{"score": 0.5}, {}],
        },
    ),
    # an element without the key keeps its place
    (
        {"ctx[].id": URI, "ctx[].text": CONTENT},
        {"ctx": [{"id": "u1"}, {"id": "u2", "text": "b"}]},
        {"retrieved_context": [{"doc_uri": "u1"}, {"doc_uri": "u2", "content": "b"}]},
    ),
    # each string of a list, the list itself, and one value
    ({"a[]": URI}, {"a": ["x", "y"]}, {"retrieved_context": [{"doc_uri": "x"}, {"doc_uri": "y"}]}),
    ({"a": URI}, {"a": ["x", "y"]}, {"retrieved_context": [{"doc_uri": "x"}, {"doc_uri": "y"}]}),
    ({"a": URI}, {"a": "x"}, {"retrieved_context": [{"doc_uri": "x"}]}),
    ({"a": "expected_facts[]"}, {"a": "one fact"}, {"expected_facts": ["one fact"]}),
    # lists in a list
    (
        {"hits[].docs[].id": URI},
        {"hits": [{"docs": [{"id": "x"}, {"id": "y"}]}, {"docs": []}, {"docs": [{"id": "z"}]}]},
        {"retrieved_context": [{"doc_uri": "x"}, {"doc_uri": "y"}, {"doc_uri": "z"}]},
    ),
    # into an object of ours
    ({"who": "tags.team"}, {"who": "search"}, {"tags": {"team": "search"}}),
    (
        {"turns[].by": "request.messages[].role", "turns[].text": "request.messages[].content"},
        {"request": None, "turns": [{"by": "user", "text": "Hi"}]},
        {},
    ),
    # numbers as IDs
    ({"a[]": URI}, {"a": [7]}, {"retrieved_context": [{"doc_uri": "7"}]}),
    # another shape stays where it is
    ({"ctx[].text": CONTENT}, {"ctx": {"text": "a"}}, {"ctx": {"text": "a"}}),
    ({"ctx[].text": CONTENT}, {"ctx": "no list"}, {"ctx": "no list"}),
    ({"item.text.more": "response"}, {"item": {"text": "a"}}, {"item": {"text": "a"}}),
    # a part of a column of ours
    (
        {"response.text": "response"},
        {"response": {"text": "a", "lang": "en"}},
        {"response": "a", "response.rest": {"lang": "en"}},
    ),
    # a name that looks like a path
    ({"a.b": "response"}, {"a.b": "x", "a": {"b": "y"}}, {"response": "x", "a": {"b": "y"}}),
    ({"a[]": "response"}, {"a[]": "x"}, {"response": "x"}),
]


@pytest.mark.parametrize(("columns", "row", "expected"), LISTS)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_path_leads_into_objects_and_lists(columns: dict[str, str], row: Row, expected: Row, as_text: bool) -> None:
    given = {"request": "Hi", **row}
    if as_text:
        given = {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in given.items()}
    (found,) = normalize_eval_set([given], columns=columns, on_invalid="keep", format="databricks")
    wanted = {"request": {"messages": [{"role": "user", "content": "Hi"}]}, **expected}
    assert {k: _parsed(v) for k, v in found.items() if v is not None and k not in ("inputs", "unreadable")} == wanted


def _parsed(value: Any) -> Any:
    """A cell without what is absent in its documents, parsed where it is passed through as JSON text."""
    value = json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
    if not isinstance(value, list):
        return value
    return [{k: v for k, v in e.items() if v is not None} if isinstance(e, dict) else e for e in value]


def test_every_input_has_the_same_columns(every_input: Callable[[list[Row]], Any]) -> None:
    rows = [{"question": f"Q{i}?", "ctx": [{"text": "a", "n": i}] if i else None} for i in range(3)]
    names = {"question": "request", "ctx[].text": CONTENT}
    report = validate_eval_set(every_input(rows), columns=names)
    assert [bool(row["retrieved_context"]) for row in report.iter_rows()] == [False, True, True]
    assert [_parsed(row.get("ctx")) for row in report.iter_rows()] == [None, [{"n": 1}], [{"n": 2}]]


def test_a_document_of_content_alone_has_an_id_made_of_it() -> None:
    names = {"q": "request", "ctx": CONTENT}
    (row,) = normalize_eval_set([{"q": "Hi", "ctx": ["a", "a", "b"]}], columns=names)
    first, second, third = (d["doc_uri"] for d in row["retrieved_context"])
    assert first == second != third


@pytest.mark.parametrize(
    ("path", "target", "said"),
    [
        ("a.", "request", "expected a path such as item.text or ctx[].text; got 'a.'"),
        ("a[].", "request", "expected a path"),
        ("a[0]", "request", "expected one of a; got 'a[0]'"),
        ("a", "request..b", "expected a path"),
        ("a", "", "expected one of request_id"),
        ("a", 1, "expected one of request_id"),
    ],
)
def test_a_malformed_path_is_an_error_of_the_call(path: str, target: Any, said: str) -> None:
    with pytest.raises(EvalSetError) as raised:
        validate_eval_set([{"a": "Hi"}], columns={path: target})
    assert said in str(raised.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from(["a", "b", "[]"]), max_size=4).map(tuple)


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in _leaves(v)]
    if isinstance(value, list):
        return [leaf for v in value for leaf in _leaves(v)]
    return [] if value is None else [repr(value)]


@given(VALUES, STEPS)
def test_nothing_is_lost_of_what_is_moved(value: Any, steps: tuple[str, ...]) -> None:
    rest, found = _without(value, steps)
    assert sorted([*_leaves(rest), *_leaves(found)]) == sorted(_leaves(value))


@given(VALUES, st.integers(0, 3), STEPS)
def test_nothing_is_lost_of_what_is_put(value: Any, levels: int, steps: tuple[str, ...]) -> None:
    flat = _flat(value, levels)
    assert _leaves(flat) == _leaves(value)
    assert _leaves(_put(None, steps, flat)) == _leaves(flat)


# ---------------------------------------------------------------------------------------------------------------------
# what columns look like

LOOKS: list[tuple[Row, dict[str, str]]] = [
    ({"question": "Hi", "answer": "a"}, {"question": "request", "answer": "expected_response"}),
    (
        {"Question": "Hi", "answer": "a", "ground_truth": "b"},
        {"Question": "request", "answer": "response", "ground_truth": "expected_response"},
    ),
    ({"query": "Hi", "contexts": ["a", "b"]}, {"query": "request", "contexts[]": CONTENT}),
    ({"query": "Hi", "context": "a"}, {"query": "request", "context": CONTENT}),
    (
        {"q": "Hi", "hits": [{"page_content": "a", "source": "u"}]},
        {"q": "request", "hits[].page_content": CONTENT, "hits[].source": URI},
    ),
    ({"item": {"question": "Hi", "facts": ["a"]}}, {"item.question": "request", "item.facts": "expected_facts"}),
    ({"dialog": [{"role": "user", "content": "Hi"}]}, {"dialog": "request.messages"}),
    ({"x": "Where is it?"}, {"x": "request"}),
    (
        {"x": "Where is it?", "log": [{"name": "f", "arguments": {}}]},
        {
            "x": "request",
            "log[].name": "predicted_trajectory[].tool_name",
            "log[].arguments": "predicted_trajectory[].tool_input",
        },
    ),
    (
        {"question": "Hi", "latency": "1.5", "uid": "a"},
        {"uid": "request_id", "question": "request", "latency": "latency_seconds"},
    ),
    ({"question": "Hi", "latency_ms": 1500, "durationInMinutes": 2}, {"question": "request"}),  # of seconds is ours
    # another kind of value, a name of ours that is there, nothing that looks like anything
    ({"question": 7, "latency": "slow"}, {}),
    ({"question": "Hi", "request": "Hi"}, {}),
    ({"team": "a", "score": 0.5, "flags": [1, 2], "meta": {"by": "x"}}, {}),
    ({"question": None}, {}),
]


@pytest.mark.parametrize(("row", "expected"), LOOKS)
def test_what_columns_look_like(row: Row, expected: dict[str, str]) -> None:
    found = suggested_columns(list(row), [row], whole=True)
    assert found == expected
    if found:
        assert validate_eval_set([row], columns=found, outputs="generated").format != "unknown"


@given(st.lists(st.dictionaries(st.sampled_from(["question", "answer", "ctx", "x", "a.b", "[]"]), VALUES), max_size=3))
def test_any_row_can_be_looked_at_and_what_is_suggested_can_be_given(rows: list[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if found := suggested_columns(names, rows, whole=True):
        validate_eval_set(rows, columns=found)


def test_a_suggestion_is_a_hint_and_is_not_applied() -> None:
    rows = [{"request": "Hi", "response": "a", "ground_truth": "b"}] * 2
    report = validate_eval_set(rows)
    (issue,) = report.iter_issues()
    assert (issue.code, issue.hint) == (
        "AE119",
        "Name the column, which looks like `expected_response` by its name: certain "
        '(`--columns ground_truth=expected_response`, `columns={"ground_truth": "expected_response"}`).',
    )
    assert [row["expected_response"] for row in report.iter_rows()] == [None, None]
    beside = validate_eval_set([{**row, "expected_facts": ["b"]} for row in rows])
    assert beside.counts == {"AE103": 1}
    unknown = validate_eval_set([{"ask": "Where?", "hits": [{"text": "a", "url": "u"}]}])
    (issue,) = unknown.iter_issues()
    paths = '"hits[].url": "retrieved_context[].doc_uri", "hits[].text": "retrieved_context[].content"}`)'
    assert f"{paths}: `ask` like `request` by its name: certain, `hits[].url` like" in issue.hint


BOTH = [{"frage": "Wann?", "expected_response": "Heute.", "expected_facts": facts} for facts in (["heute"], [])]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [{**row, "Wichtige Punkte": "a; b"} for row in ({"frage": "Wann?", "Musterantwort": "Heute."},) * 2],
            " Under these names the rows are those of databricks. As databricks, a row with an answer and facts, such "
            "as 2 of the first 2, is invalid (AE301); as a row of MLflow",
        ),
        (BOTH, " As databricks, a row with an answer and facts, such as 1 of the first 2, is invalid (AE301)"),
        (
            [{"prompt": "When?", "messages_count": 3, "ground_truth": "Now.", "response": "Now."}] * 2,
            " Under these names the rows are those of databricks.",
        ),
        ([{"request": "When?", "response": "Now.", "ground_truth": "Now."}], "`)."),
    ],
)
def test_a_mapping_that_chooses_a_platform_names_it_and_what_another_one_accepts(
    rows: list[Row], expected: str
) -> None:
    report = validate_eval_set(rows)
    hints = [issue.hint for issue in report.iter_issues() if issue.code in ("AE103", "AE113", "AE119")]
    assert any(expected in hint for hint in hints), hints
    mapping = summary_of(report).suggested
    named = validate_eval_set(rows, columns=mapping)
    assert named.format == "databricks"
    assert ("AE301" in named.counts) == ("AE301" in expected)
    assert validate_eval_set(rows, columns=mapping, format="mlflow").valid_count == len(rows)
    assert not any("AE301" in i.hint for i in validate_eval_set(rows, format="databricks").iter_issues())


def test_hidden_values_are_not_in_the_reason_why_auto_is_refused() -> None:
    rows = [{"case": {"secret": "s", "question": f"Who is {n}?"}, "output": "a", "reply": "b"} for n in range(3)]
    with pytest.raises(EvalSetError, match="question") as shown:
        validate_eval_set(rows, columns="auto")
    with pytest.raises(EvalSetError) as hidden:
        validate_eval_set(rows, columns="auto", show_values=False)
    assert "case.question=request" in str(shown.value)
    assert "question" not in str(hidden.value)


def test_rows_for_an_evaluator_and_traces_are_named_too() -> None:
    rows = [{"ask": "Hi", "reply": "Hello", "gold": "Hello"}]
    columns = {"ask": "request", "reply": "response", "gold": "expected_response"}
    assert EvalTask(rows, ["exact_match"], columns=columns).evaluate().summary_metrics["exact_match/mean"] == 1
    frame = prepare_for_evaluate(rows, columns=columns)
    assert frame["expectations"].tolist() == [{"expected_response": "Hello"}]
    root = {
        "name": "agent",
        "span_id": "1",
        "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'},
    }
    traces = [{"payload": {"info": {"trace_id": "t"}, "data": {"spans": [root]}}}]
    assert eval_set_from_traces(traces, columns={"payload": "trace"})["response"].tolist() == ["Hello"]


def test_keys_of_cells_are_not_quoted_without_values() -> None:
    rows = [{"ask": "Where?", "hits": [{"text": "a", "secret_id": "u", "id": "v"}]}]
    assert "hits[].id" in next(validate_eval_set(rows).iter_issues()).hint
    (issue,) = validate_eval_set(rows, show_values=False).iter_issues()
    assert '`columns={"ask": "request"}`): `ask` like `request` by its name: certain. Under' in issue.hint


def test_suggestions_depend_on_the_first_rows_only(every_input: Callable[[list[Row]], Any]) -> None:
    rows: list[Row] = [{"ask": f"Where is {i}?", "label": "x"} for i in range(SAMPLED_ROWS + 9)]
    rows[-1]["ask"] = "no question"
    hints = {issue.hint for issue in validate_eval_set(every_input(rows)).iter_issues()}
    assert len(hints) == 1
    assert "--columns ask=request" in hints.pop()


def test_a_column_of_conversations_is_no_list_of_rows() -> None:
    chat = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "Now."}]
    (hint,) = {issue.hint for issue in validate_eval_set([{"chat": chat}] * 2).iter_issues()}
    assert "Pass the list" not in hint
