"""The typed value of a cell and its problems; and the columns that need no look at their cells."""

from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema.decoding.columns import SHAPES, documents_of_trace, native_values, typed_value, whole_number
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.schema import Document, ToolCall

F = ToolCall("f", {"x": 1})
DOC = Document("a.md", "text")


@pytest.mark.parametrize(
    ("name", "value", "typed", "problems"),
    [
        ("reference_trajectory", [{"tool_name": "f", "tool_input": {"x": 1}}], [F], []),
        ("reference_trajectory", [{"tool_name": "f", "tool_input": '{"x": 1}'}], [F], []),
        ("reference_trajectory", [{"tool_name": "f", "tool_input": "[1]"}], [ToolCall("f", {"tool_input": "[1]"})], []),
        ("reference_trajectory", [{"tool_name": "f", "tool_input": [1]}], [ToolCall("f", {"tool_input": [1]})], []),
        ("reference_trajectory", [{"tool_name": "f", "tool_input": "{"}], FAILED, [("AE503", "p[0].tool_input")]),
        ("reference_trajectory", ["f"], FAILED, [("AE501", "p[0]")]),
        ("reference_trajectory", [{"tool_name": ""}], FAILED, [("AE502", "p[0].tool_name")]),
        (
            "reference_trajectory",
            [{"tool_name": "f", "tool_input": '{"x": 1}', "n": 2}],
            [ToolCall("f", {"x": 1}, '{"n":2}')],
            [("AE504", "p[0].n")],
        ),
        ("retrieved_context", [{"doc_uri": "a.md", "content": "text"}], [DOC], []),
        (
            "retrieved_context",
            [{"doc_uri": "a.md", "content": "text", "score": 1}],
            [Document("a.md", "text", '{"score":1}')],
            [("AE406", "p[0].score")],
        ),
        ("retrieved_context", [{"doc_uri": None}], FAILED, [("AE404", "p[0].doc_uri")]),
        ("total_token_count", 7.0, 7, []),
        ("total_token_count", 7.5, FAILED, [("AE107", "p")]),
        ("total_token_count", -1, FAILED, [("AE107", "p")]),
        ("failure", " False ", False, []),
        ("failure", "TRUE", True, []),
        ("failure", "no", FAILED, [("AE107", "p")]),
        ("failure", 0, FAILED, [("AE107", "p")]),
    ],
)
def test_the_typed_value_of_a_cell(name: str, value: Any, typed: Any, problems: list[tuple[str, str]]) -> None:
    found, findings = typed_value(name, value, "p")
    assert (found, [(f.rule.code, f.path) for f in findings]) == (typed, problems)


@pytest.mark.parametrize(
    ("value", "typed", "problems"),
    [
        ([{"doc_uri": "a.md", "content": "text"}], [DOC], []),
        ([{"doc_uri": None, "content": "x"}, {"doc_uri": "?"}], [Document(None, "x"), Document("?")], []),  # type: ignore[arg-type]
        (
            [{"doc_uri": None, "score": 1}],
            [Document(None, None, '{"score":1}')],  # type: ignore[arg-type]
            [("AE406", "p[0].score")],
        ),
        ([{"doc_uri": None}, {"content": "x"}], FAILED, [("AE404", "p[0].doc_uri"), ("AE403", "p[1]")]),
        ([{"doc_uri": None}, "x"], FAILED, [("AE404", "p[0].doc_uri"), ("AE402", "p[1]")]),
        ("x", FAILED, [("AE401", "p")]),
    ],
)
def test_a_document_of_a_trace_may_have_no_doc_uri(value: Any, typed: Any, problems: list[tuple[str, str]]) -> None:
    found, findings = documents_of_trace(value, "p")
    assert (found, [(f.rule.code, f.path) for f in findings]) == (typed, problems)


@pytest.mark.parametrize(
    ("name", "array", "fits"),
    [
        ("total_token_count", pa.array([0, None, 7]), True),
        ("total_token_count", pa.array([0, -1]), False),
        ("total_token_count", pa.array([1.0]), False),
        ("total_token_count", pa.array([1], pa.int32()), False),
        ("latency_seconds", pa.array([0.5, None]), True),
        ("latency_seconds", pa.array([0.5, float("inf")]), False),
        ("latency_seconds", pa.array([0.5, float("nan")]), False),
        ("latency_seconds", pa.array([1]), False),
        ("failure", pa.array([True, None]), True),
        ("failure", pa.array([1.5]), False),
        ("tags", pa.array([True]), False),
        ("tags", pa.nulls(2), True),
        ("latency_seconds", pa.nulls(2, pa.float64()), True),
        ("total_token_count", pa.nulls(2, pa.string()), True),
        ("response", pa.nulls(2), False),
    ],
)
def test_columns_that_are_taken_as_they_are(name: str, array: pa.Array, fits: bool) -> None:
    assert native_values(name, array) == (array.to_pylist() if fits else None)


def test_a_count_in_a_column_of_floats_is_a_whole_number() -> None:
    assert [type(whole_number(n)) for n in (7.0, 7.5, 7, "7")] == [int, float, int, str]


def test_a_shape_is_a_value() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        SHAPES["tags"].type = str


def test_a_shape_names_the_problems_of_other_notations_too() -> None:
    calls = [{"tool_name": "f", "tool_input": '{"x": 1}'}]
    assert SHAPES["reference_trajectory"].problems(calls, "p") == []


@pytest.mark.parametrize("text", ["{", '{"a": 1', "{a}"])
def test_an_input_that_begins_like_an_object_is_shown_as_it_is(text: str) -> None:
    (problem,) = typed_value("reference_trajectory", [{"tool_name": "f", "tool_input": text}], "p")[1]
    assert problem.message == f"expected an object, got the text '{text}'"


@pytest.mark.parametrize("key", ["doc_uri", "source", "url", "uri", "path", "document_id", "doc_id"])
def test_a_uri_in_the_metadata_of_a_document_is_named(key: str) -> None:
    documents = [{"doc_uri": "b"}, {"content": "x", "metadata": {"page": 1, key: "a"}}]
    (problem,) = [f for f in typed_value("retrieved_context", documents, "p")[1] if f.rule.code == "AE403"]
    assert (problem.path, problem.message) == ("p[1]", f"`doc_uri` is missing, but metadata has `{key}`")
