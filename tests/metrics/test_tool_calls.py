"""The tool-call correctness of Customer Engagement Suite, by hand and by what always holds."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import EvalTask
from agent_eval_schema.metrics.tool_calls import (
    parameter_correctness,
    parameter_scores,
    tool_calls_pass,
    tool_invocation,
    tool_ordered_invocation,
)
from agent_eval_schema.schema import ToolCall


def calls(letters: str) -> list[ToolCall]:
    return [ToolCall(letter) for letter in letters]


@pytest.mark.parametrize(
    ("predicted", "reference", "called", "in_order"),
    [
        ("ab", "ab", 1, 1),
        ("ba", "ab", 1, 0.5),
        ("axb", "ab", 1, 1),
        ("a", "ab", 0.5, 0.5),
        ("x", "ab", 0, 0),
        ("", "ab", 0, 0),
        ("a", "aa", 0.5, 0.5),  # expected twice, called once
        ("aaa", "a", 1, 1),
        ("cab", "abc", 1, 2 / 3),
    ],
)
def test_invocation(predicted: str, reference: str, called: float, in_order: float) -> None:
    assert tool_invocation(calls(predicted), calls(reference)) == called
    assert tool_ordered_invocation(calls(predicted), calls(reference)) == in_order


def test_no_expected_call_has_no_score() -> None:
    for score in (tool_invocation, tool_ordered_invocation, parameter_correctness):
        assert math.isnan(score(calls("a"), []))


@pytest.mark.parametrize(
    ("predicted", "reference", "scores"),
    [
        ([{"x": 1, "y": 2}], [{"x": 1, "y": 2}], [1]),
        ([{"x": 1}], [{"x": 1, "y": 2}], [0.5]),
        ([{"x": 1, "y": 3}], [{"x": 1, "y": 2}], [0.5]),  # there, with another value
        ([{"x": 1, "y": 2, "z": 3}], [{"x": 1, "y": 2}], [1]),  # more than expected
        ([{"x": 1.0}], [{"x": 1}], [1]),
        ([{"x": True}], [{"x": 1}], [0]),
        ([{"x": 1}], [None], [1]),  # no parameters expected
        ([None], [{"x": 1}], [0]),
        ([], [{"x": 1}], [0]),
        ([{"x": 1}], [{"x": 1}, {"x": 1}], [1, 0]),  # one call answers one expectation
        ([{"x": 1, "y": 2}, {"x": 1}], [{"x": 1}, {"x": 1, "y": 2}], [1, 1]),  # equal calls meet
    ],
)
def test_parameters(predicted: list[Any], reference: list[Any], scores: list[float]) -> None:
    given, wanted = ([ToolCall("t", i) for i in inputs] for inputs in (predicted, reference))
    assert parameter_scores(given, wanted) == scores
    assert parameter_correctness(given, wanted) == sum(scores) / len(scores)


def test_parameters_of_another_tool_do_not_count() -> None:
    assert parameter_scores([ToolCall("u", {"x": 1})], [ToolCall("t", {"x": 1})]) == [0]


HALF = [ToolCall("a", {"x": 1, "y": 9}), ToolCall("b")]
WANTED = [ToolCall("a", {"x": 1, "y": 2}), ToolCall("b")]


@pytest.mark.parametrize(
    ("predicted", "reference", "options", "passes"),
    [
        (calls("ab"), calls("ab"), {}, True),
        (calls("ba"), calls("ab"), {}, True),  # the overall result does not look at the order
        (calls("abc"), calls("ab"), {}, False),
        (calls("abb"), calls("ab"), {}, False),
        (calls("abc"), calls("ab"), {"extra_calls": "ALLOW"}, True),
        (calls("a"), calls("ab"), {}, False),
        (calls("a"), calls("ab"), {"invocation_threshold": 0.5, "parameter_threshold": 0.0}, True),
        (HALF, WANTED, {}, False),
        (HALF, WANTED, {"parameter_threshold": 0.5}, True),
        ([], [], {}, True),  # no call was expected, and none was made
        (calls("a"), [], {}, False),
        (calls("a"), [], {"extra_calls": "ALLOW"}, True),
    ],
)
def test_pass(predicted: list[ToolCall], reference: list[ToolCall], options: dict[str, Any], passes: bool) -> None:
    assert tool_calls_pass(predicted, reference, **options) is passes


@pytest.mark.parametrize(
    ("predicted", "reference", "options", "passes", "invocation", "ordered", "parameters"),
    [
        ([], calls("a"), {}, False, 0, 0, [0]),
        (calls("aa"), calls("a"), {}, False, 1, 1, [1]),
        (HALF, WANTED, {}, False, 1, 1, [0.5, 1]),
        (HALF, WANTED, {"parameter_threshold": 0.5}, True, 1, 1, [0.5, 1]),
        (calls("b"), calls("ab"), {"invocation_threshold": 0.5, "parameter_threshold": 0}, True, 0.5, 0.5, [0, 1]),
    ],
)
def test_a_turn_is_judged(
    predicted: Any,
    reference: Any,
    options: dict[str, Any],
    passes: bool,
    invocation: float,
    ordered: float,
    parameters: list[float],
) -> None:
    assert tool_calls_pass(predicted, reference, **options) is passes
    assert tool_invocation(predicted, reference) == invocation
    assert tool_ordered_invocation(predicted, reference) == ordered
    assert parameter_scores(predicted, reference) == parameters


inputs = st.none() | st.dictionaries(st.sampled_from("xyz"), st.sampled_from([1, 2]))
trajectories = st.lists(st.builds(ToolCall, st.sampled_from("ab"), inputs), max_size=5)


@given(trajectories.filter(bool), st.randoms())
def test_the_expected_calls_in_any_order_are_right(reference: list[ToolCall], random: Any) -> None:
    predicted = random.sample(reference, len(reference))
    assert parameter_scores(predicted, reference) == [1] * len(reference)
    assert tool_invocation(predicted, reference) == 1
    assert tool_calls_pass(predicted, reference)


@given(trajectories, trajectories.filter(bool))
def test_order_is_the_stricter_question(predicted: list[ToolCall], reference: list[ToolCall]) -> None:
    assert 0 <= tool_ordered_invocation(predicted, reference) <= tool_invocation(predicted, reference) <= 1
    assert parameter_correctness(predicted, reference) <= tool_invocation(predicted, reference)


# ---------------------------------------------------------------------------------------------------------------------
# the first call of texts, as Vertex AI compares them


def text_of(name: Any, arguments: Any = None) -> str:
    return json.dumps({"content": "", "tool_calls": [{"name": name, "arguments": arguments}]})


FIND = text_of("find", {"city": "Oslo", "days": 2})


@pytest.mark.parametrize(
    ("response", "reference", "scores"),
    [
        (FIND, FIND, (1, 1, 1, 1)),
        (text_of("find", {"city": "Oslo", "days": 3, "more": 1}), FIND, (1, 1, 1, 0.5)),
        (text_of("find", {"city": "Oslo"}), FIND, (1, 1, 0.5, 0.5)),
        (text_of("find", {}), text_of("find", {}), (1, 1, 1, 1)),
        (text_of("find"), FIND, (0, 1, 0, 0)),
        (text_of("book", {"city": "Oslo", "days": 2}), FIND, (1, 0, 0, 0)),
        ("Oslo", FIND, (0, 0, 0, 0)),
        ('{"content": "", "tool_calls": []}', FIND, (0, 0, 0, 0)),
        (FIND, "Oslo", (1, math.nan, math.nan, math.nan)),
        (text_of("find", {"n": True}), text_of("find", {"n": 1}), (1, 1, 1, 0)),
    ],
)
def test_the_first_calls_of_two_texts(response: str, reference: str, scores: tuple[float, ...]) -> None:
    names = ["tool_call_valid", "tool_name_match", "tool_parameter_key_match", "tool_parameter_kv_match"]
    table = EvalTask([{"response": response, "reference": reference}], names).evaluate().metrics_table
    found = [table[f"{name}/score"].iloc[0] for name in names]
    assert found == pytest.approx(list(scores), nan_ok=True)
