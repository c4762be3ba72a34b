"""A key that is null, as in a table whose other rows fill it, hides no other key; keys keep their order in a file."""

from __future__ import annotations

import pytest

from agent_eval_schema import convert_eval_set, validate_eval_set
from agent_eval_schema.formats import azure, promptfoo
from agent_eval_schema.formats.agentcore import AGENTCORE
from agent_eval_schema.formats.genai import rows_of_agent_data


@pytest.mark.parametrize("beside", [{}, {"tool_call": None}, {"function": None}])
def test_a_call_of_azure(beside: dict[str, None]) -> None:
    part = {"type": "tool_call", "name": "f", "arguments": {"a": 1}, **beside}
    assert azure._call(part) == {"tool_name": "f", "tool_input": {"a": 1}}


def test_a_step_of_promptfoo() -> None:
    assert promptfoo._name({"name": None, "tool": "f"}) == "f"


def test_a_message_of_ragas() -> None:
    said = {"type": None, "role": "user", "content": "Hi"}
    report = validate_eval_set([{"user_input": [said], "response": "Hello"}], format="ragas")
    assert report.rows["request"].iloc[0] == {"messages": [{"role": "user", "content": "Hi"}]}


def test_a_file_of_agentcore_has_the_keys_in_the_order_of_the_row() -> None:
    names = sorted(AGENTCORE.passthrough_columns)
    for own in (names, names[::-1]):
        row = {"request": "Hi", **dict.fromkeys(own, "x")}
        (scenario,) = convert_eval_set([row], "agentcore", on_invalid="keep").data["scenarios"]
        assert [name for name in scenario if name in AGENTCORE.passthrough_columns] == own


def test_the_row_of_a_case_of_vertex_genai_has_its_ground_truth_in_the_order_of_the_case() -> None:
    names = ["reference", "reference_trajectory", "rubric_groups", "context"]
    event = {"author": "user", "content": {"role": "user", "parts": [{"text": "Hi"}]}}
    for own in (names, names[::-1]):
        case = {"agent_data": {"turns": [{"events": [event]}]}, **dict.fromkeys(own, "x")}
        ((row, _),) = rows_of_agent_data(case)
        assert [name for name in row if name in names] == own
