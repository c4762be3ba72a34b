"""The slow explanation and the fast decode agree: the explanation is empty exactly when the decode succeeds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.decoding.diagnose import diagnose, is_type
from agent_eval_schema.schema import Contexts, Document, Facts, Guidelines, Message, RequestObject, Trajectory
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.spelling import match_names

TYPES = (
    Contexts,
    Trajectory,
    Facts,
    Guidelines,
    RequestObject,
    list[Message],
    Document,
    dict[str, Any],
    int,
    float,
    bool,
)

KEYS = [
    *("role", "content", "name", "tool_calls", "tool_call_id", "type", "text", "function", "arguments", "id"),
    *("messages", "query", "history", "mesages", "doc_uri", "doc_url", "page_content", "tool_name", "tool_input"),
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2.0]),
    st.sampled_from(["user", "usr", "", " ", "text", "tool", "a.md"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(expected=st.sampled_from(TYPES), value=values)
def test_diagnose_is_empty_exactly_when_the_decode_succeeds(expected: Any, value: Any) -> None:
    assert (diagnose(expected, value, "cell") == []) == is_type(expected, value)


@given(expected=st.sampled_from(TYPES), value=values)
def test_every_problem_has_a_path_into_the_value(expected: Any, value: Any) -> None:
    for problem in diagnose(expected, value, "cell"):
        assert problem.path.startswith("cell")
        assert problem.message


@pytest.mark.parametrize(
    ("expected", "value", "problems"),
    [
        (Contexts, [{"doc_uri": "a"}], []),
        (Contexts, {"doc_uri": "a"}, [("c", "type", "expected a list, got an object with the keys doc_uri")]),
        (
            Contexts,
            [{"content": "x"}, None, {"doc_uri": 3, "content": 4}],
            [
                ("c[0]", "missing", "`doc_uri` is missing, got an object with the keys content"),
                ("c[1]", "null", "expected an object, got null"),
                ("c[2].doc_uri", "type", "expected text, got the number 3"),
                ("c[2].content", "type", "expected text, got the number 4"),
            ],
        ),
        # One cause, one problem: the misspelled key absorbs the "missing" that it causes.
        (Contexts, [{"doc_url": "a"}], [("c[0].doc_url", "missing", "no key `doc_uri`, but there is `doc_url`")]),
        (
            Contexts,
            [{"doc_uri": "a", "text": "b"}],
            [("c[0].text", "unknown", "unknown key `text` is kept, but no metric reads it")],
        ),
        (Facts, ["a", " "], [("c[1]", "blank", "expected text that is not blank, got blank text")]),
        (
            Guidelines,
            {"tone": "polite"},
            [("c.tone", "type", "expected a list, got the text 'polite'")],
        ),
    ],
)
def test_every_problem_is_told(expected: Any, value: Any, problems: list[tuple[str, str, str]]) -> None:
    assert [(p.path, p.kind, p.message) for p in diagnose(expected, value, "c")] == problems


@pytest.mark.parametrize(
    ("wrong", "right", "found"),
    [
        (["usr"], ["user", "assistant"], {"usr": "user"}),
        (["page_content"], ["doc_uri", "content"], {"page_content": "content"}),
        (["Doc-URI"], ["doc_uri"], {"Doc-URI": "doc_uri"}),
        (["zzz"], ["doc_uri"], {}),
        (["doc_urll", "doc_url"], ["doc_uri"], {"doc_urll": "doc_uri"}),
    ],
)
def test_names_are_matched_by_alias_then_by_spelling(wrong: list[str], right: list[str], found: dict[str, str]) -> None:
    assert match_names(wrong, right) == found


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        (3, "the number 3"),
        (10**400, "the number huge"),
        ("", "empty text"),
        ("  ", "blank text"),
        ("a\nb", "the text 'a b'"),
        ("x" * 200, "the text '" + "x" * 59 + "…'"),
        ([], "an empty list"),
        ([1], "a list of 1"),
        ({}, "an empty object"),
        ({str(i): i for i in range(9)}, "an object with the keys 0, 1, 2, 3, 4, 5, …"),
    ],
)
def test_a_value_is_described_in_a_few_words(value: Any, words: str) -> None:
    assert describe(value) == words
