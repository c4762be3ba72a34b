"""Two trajectories side by side."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.metrics.alignment import aligned
from agent_eval_schema.metrics.trajectory import Match
from agent_eval_schema.schema import ToolCall


@pytest.mark.parametrize(
    ("predicted", "reference", "lines"),
    [
        ("ab", "ab", ["a= a=", "b= b="]),
        ("axb", "ab", ["a= a=", "x+ .", "b= b="]),
        ("a", "ab", ["a= a=", ". b-"]),
        ("ba", "ab", [". a~", "b= b=", "a~ ."]),
        ("", "a", [". a-"]),
        ("a", "", ["a+ ."]),
        ("", "", []),
        ("aab", "ab", ["a= a=", "a+ .", "b= b="]),
    ],
)
def test_calls_side_by_side(predicted: str, reference: str, lines: list[str]) -> None:
    signs = {"matched": "=", "extra": "+", "missing": "-", "moved": "~"}

    def drawn(side: Any) -> str:
        return "." if side is None else side.tool + signs[side.mark]

    found = aligned([ToolCall(t) for t in predicted], [ToolCall(t) for t in reference])
    assert sorted(f"{drawn(line.predicted)} {drawn(line.reference)}" for line in found) == sorted(lines)


def test_calls_of_one_tool_with_other_inputs_stand_on_one_line() -> None:
    (line,) = aligned([ToolCall("a", {"x": 1})], [ToolCall("a", {"x": 2})])
    assert line.predicted is not None
    assert line.reference is not None
    assert (line.predicted.mark, line.reference.mark) == ("extra", "missing")
    assert (line.predicted.input, line.reference.input) == ('{"x":1}', '{"x":2}')


@pytest.mark.parametrize(
    ("made", "expected", "marks"),
    [
        ([{"x": 1, "y": 2}], [{"x": 1}], ["matched"]),
        ([{"x": 1}], [{"x": 1, "y": 2}], ["extra"]),
        ([{"x": 1, "y": 2}, {"x": 1}], [{"x": 1}, {"y": 2}], ["matched", "moved"]),
        ([{"z": 1}, {"x": 1}, {"y": 2}], [{}, {"y": 2}], ["matched", "extra", "matched"]),
    ],
)
def test_calls_with_further_arguments_are_shown_as_they_are_scored(
    made: list[Any], expected: list[Any], marks: list[str]
) -> None:
    lines = aligned([ToolCall("a", i) for i in made], [ToolCall("a", i) for i in expected], "subset")
    assert [line.predicted.mark for line in lines if line.predicted] == marks


calls = st.lists(st.builds(ToolCall, st.sampled_from("abc"), st.sampled_from([None, {"x": 1}])), max_size=7)


@given(calls, calls, st.sampled_from(get_args(Match)))
def test_every_call_is_shown_once_in_its_order(
    predicted: list[ToolCall], reference: list[ToolCall], match: Match
) -> None:
    lines = aligned(predicted, reference, match)
    left, right = ([side for line in lines if (side := getattr(line, s))] for s in ("predicted", "reference"))
    assert [s.tool for s in left] == [c.tool_name for c in predicted]
    assert [s.tool for s in right] == [c.tool_name for c in reference]
    for mark in ("matched", "moved"):
        assert sum(s.mark == mark for s in left) == sum(s.mark == mark for s in right)
