"""What agents return, in every form that is documented, and what is said of anything else."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_eval_schema.evaluation.runnables import Answer, parse_calls, read_output
from agent_eval_schema.rules.reading import MAX_DEPTH

CALL = {"tool_name": "search", "tool_input": {"q": "x"}}
STEP = SimpleNamespace(tool="search", tool_input={"q": "x"})
OPENAI_CALL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}


@pytest.mark.parametrize(
    ("value", "response", "trajectory"),
    [
        ("Done", "Done", None),
        ("", "", None),
        ({"response": "Done", "predicted_trajectory": [CALL]}, "Done", [CALL]),
        ({"response": "Done", "predicted_trajectory": json.dumps([CALL])}, "Done", [CALL]),
        ({"response": "Done", "predicted_trajectory": np.array([CALL])}, "Done", [CALL]),
        ({"response": "Done", "predicted_trajectory": (CALL,)}, "Done", [CALL]),
        (
            {"response": "Done", "predicted_trajectory": [{"tool_name": "a"}]},
            "Done",
            [{"tool_name": "a", "tool_input": {}}],
        ),
        ({"response": "Done", "predicted_trajectory": []}, "Done", []),
        ({"response": "Done"}, "Done", None),
        ({"predicted_trajectory": [CALL]}, None, [CALL]),
        ({"response": {"role": "assistant", "content": "Done"}}, "Done", None),
        ({"output": "Done", "intermediate_steps": [(STEP, "found")]}, "Done", [CALL]),
        ({"output": "Done", "intermediate_steps": []}, "Done", []),
        (
            {"output": "Done", "intermediate_steps": [[{"tool": "search", "tool_input": {"q": "x"}}, "found"]]},
            "Done",
            [CALL],
        ),
        (
            {"output": "Done", "intermediate_steps": [[{"kwargs": {"tool": "search", "tool_input": {"q": "x"}}}, 1]]},
            "Done",
            [CALL],
        ),
        (
            {"output": "Done", "intermediate_steps": [(SimpleNamespace(tool="search", tool_input="x"), "found")]},
            "Done",
            [{"tool_name": "search", "tool_input": {"tool_input": "x"}}],
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "tool_calls": [OPENAI_CALL]},
                    {"role": "assistant", "content": "Done"},
                ]
            },
            "Done",
            [CALL],
        ),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "Done"}], "Done", []),
        ([{"role": "assistant", "content": "Done"}], "Done", None),
        ({"role": "assistant", "content": "Done"}, "Done", None),
        ({"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}, None, [CALL]),
        ({"choices": [{"message": {"role": "assistant", "content": "Done"}}]}, "Done", None),
        (
            {
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]}
                ]
            },
            "Done",
            None,
        ),
        ({"answer": "Done"}, "Done", None),
        (pd.DataFrame({"answer": ["Done"]}), "Done", None),
        (["Done"], "Done", None),
        (np.array(["Done"]), "Done", None),
        (pd.Series(["Done"]), "Done", None),
        (SimpleNamespace(model_dump=lambda: {"answer": "Done"}), "Done", None),
    ],
)
def test_forms(value: Any, response: str | None, trajectory: Any) -> None:
    assert read_output(value) == Answer(response, trajectory)


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("do not look at me")


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "null"),
        (7, "the number 7"),
        (True, "got true"),
        ({}, "an empty object"),
        ([], "an empty list"),
        ({"verdict": 1}, "an object with the keys verdict"),
        ({"response": None}, "an object whose response is null"),
        ({"messages": [{"role": "user", "content": "q"}]}, "without an assistant's answer"),
        ({"role": "user", "content": "q"}, "without an assistant's answer"),
        (pd.DataFrame({"a": [1, 2]}), "a list"),
    ],
)
def test_what_is_no_answer_says_so(value: Any, got: str) -> None:
    found = read_output(value)
    assert found.failed
    assert (found.response, found.trajectory) == (None, None)
    assert (found.error or "").startswith('expected a text or {"response", "predicted_trajectory"}, got ')
    assert got in (found.error or "")


@pytest.mark.parametrize(
    ("trajectory", "error"),
    [
        ([CALL, {"tool_input": {}}], "predicted_trajectory[1]: `tool_name` is missing"),
        ("search, then book", "predicted_trajectory: expected a list"),
        ("[", "predicted_trajectory: expected JSON"),
        ({"tool_name": "a"}, "predicted_trajectory: expected a list"),
        (7, "predicted_trajectory: expected a list"),
    ],
)
def test_a_trajectory_that_cannot_be_read_leaves_the_response(trajectory: Any, error: str) -> None:
    found = read_output({"response": "Done", "predicted_trajectory": trajectory})
    assert (found.response, found.trajectory, found.failed) == ("Done", trajectory, False)
    assert (found.error or "").startswith(error)


def test_a_trajectory_of_any_depth_can_be_looked_at() -> None:
    for depth in (MAX_DEPTH, 5_000):  # and one level more
        deep: list[Any] = []
        for _ in range(depth):
            deep = [deep]
        calls, problem = parse_calls(deep)
        assert calls is None
        assert problem == (
            f"predicted_trajectory: expected at most {MAX_DEPTH} levels of lists and objects, "
            "got JSON nested too deep to read"
        )


def test_a_step_that_is_no_action_is_told() -> None:
    found = read_output({"output": "Done", "intermediate_steps": [(STEP, "x"), ("what?", "y")]})
    assert found.response == "Done"
    assert found.trajectory is None
    assert (found.error or "").startswith("intermediate_steps[1]: expected an action with a tool, got ")


def test_an_object_that_cannot_be_looked_at() -> None:
    found = read_output(Hostile())
    assert found.failed
    assert "cannot be read (RuntimeError)" in (found.error or "")
