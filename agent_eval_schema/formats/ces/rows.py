"""Evaluations of Customer Engagement Suite, and results of them, as evaluation rows (from_rows.py is the way back).

    golden      one row a turn that expects something of the agent: the turns before it are the chat so far
    scenario    one row: its task is the request, its rubrics and expectations are the ground truth
    result      one row a turn: what was expected, what was observed, latency and scores (result_rows.py)

What a row has no column for stands in `custom_expected` (other expectations: an agent transfer, variables, a mock) and
in tags (`display_name`, `tags`, `evaluation_groups`, …), so that it is there again on the way back.

| step of a turn | message, once the turn is history | in the row of its own turn |
|---|---|---|
| userInput.text, any other userInput | user: text, or a part of that type | the same: it is the request |
| userInput.toolResponses | tool, without a call id | the same |
| expectation.agentResponse, texts | assistant, `name` is its role | expected_response, tag response_agent |
| expectation.toolCall | assistant with tool_calls | reference_trajectory |
| expectation.toolResponse | tool, with the id of the call | custom_expected |
| any other expectation | | custom_expected |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import SEPARATOR
from agent_eval_schema.formats.ces.parts import (
    EXPECTATIONS_KEY,
    Object,
    Row,
    as_json_text,
    expected_calls,
    expected_texts,
    has_column,
    message_text,
    objects,
    tool_call,
    tool_name,
    without_none,
)
from agent_eval_schema.formats.ces.result_rows import replayed_rows, scenario_result_row


def rows_of(evaluation: Object, groups: Sequence[str] = ()) -> list[Row]:
    """The rows of an evaluation, or of the result of one, in the order of the turns; none if it expects nothing.

    `groups`: the names of the evaluation's data sets, which only the CSV says. Parts of a wrong type are passed over
    (`ces.validate_evaluation` tells them).
    """
    given = by_json_names(evaluation)
    if isinstance(given.get("golden"), dict):
        return list(_golden_rows(given, groups))
    if isinstance(given.get("scenario"), dict):
        return [_scenario_row(given, groups)]
    if isinstance(given.get("goldenResult"), dict):
        return list(replayed_rows(given))
    return [scenario_result_row(given)] if isinstance(given.get("scenarioResult"), dict) else []


def by_json_names(value: Object, message: str | None = None) -> dict[str, Any]:
    """The object with the JSON names of all fields: snake_case is accepted on input, as ProtoJSON says."""
    root = (
        schema.RESULT if {"goldenResult", "golden_result", "scenarioResult", "scenario_result"} & value.keys() else None
    )
    return _renamed(value, message or root or schema.EVALUATION)


def _renamed(value: Object, message: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    known = schema.message(message)
    for key, part in value.items():
        name = known.json_name(key)
        inner = known.fields[name].message if name else ""
        if inner and isinstance(part, list):
            part = [_renamed(p, inner) if isinstance(p, dict) else p for p in part]
        elif inner and isinstance(part, dict):
            part = _renamed(part, inner)
        if part is not None:
            made[name or key] = part
    return made


# ---------------------------------------------------------------------------------------------------------------------
# golden → rows
def _golden_rows(evaluation: Object, groups: Sequence[str]) -> Iterator[Row]:
    before: chat.Messages = []
    for number, turn in enumerate(objects(evaluation["golden"].get("turns")), start=1):
        steps = objects(turn.get("steps"))
        inputs = [m for step in steps for m in _asked(step.get("userInput"))]
        expected = [step["expectation"] for step in steps if isinstance(step.get("expectation"), dict)]
        if expected:
            yield _row_of_turn(evaluation, number, [*before, *inputs], expected, groups)
        before += [*inputs, *_told(expected)]


def _row_of_turn(
    evaluation: Object, number: int, messages: chat.Messages, expected: list[Any], groups: Sequence[str]
) -> Row:
    texts, agents = expected_texts(expected)
    others = [e for e in expected if not has_column(e)]
    tags = _tags(evaluation, groups)
    return without_none(
        {
            "request_id": f"{identity(evaluation)}#{number}",
            "request": {"messages": messages},
            "expected_response": "\n".join(texts) if texts else None,
            "reference_trajectory": expected_calls(expected),
            "custom_expected": {EXPECTATIONS_KEY: others} if others else None,
            "tags": {**tags, "response_agent": agents[-1]} if agents else tags or None,
        }
    )


def _asked(given: Any) -> Iterator[dict[str, Any]]:
    """What a user input says, as messages."""
    if not isinstance(given, dict):
        return
    for kind, value in given.items():
        if kind == "text":
            yield {"role": "user", "content": value}
        elif kind == "toolResponses" and isinstance(value, dict):
            for response in objects(value.get("toolResponses")):
                content = as_json_text(response.get("response") or {})
                yield {"role": "tool", "name": tool_name(response), "content": content}
        elif kind == "image" and isinstance(value, dict):  # as the OpenAI schema says it
            url = f"data:{value.get('mimeType')};base64,{value.get('data')}"
            yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        elif kind != "willContinue":
            yield {"role": "user", "content": [{"type": kind, kind: value}]}


def _told(expected: Sequence[Object]) -> Iterator[dict[str, Any]]:
    """What the agent was expected to do in a turn, as messages of the history."""
    called: dict[str, str] = {}
    for i, expectation in enumerate(expected):
        call, response = expectation.get("toolCall"), expectation.get("toolResponse")
        said = expectation.get("agentResponse")
        if isinstance(call, dict):
            made = tool_call(call)
            called[made["tool_name"]] = identity_ = str(call.get("id") or f"call_{i}")
            function = {"name": made["tool_name"], "arguments": as_json_text(made.get("tool_input") or {})}
            entry = {"id": identity_, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [entry]}
        elif isinstance(response, dict):
            name = tool_name(response)
            told = {"role": "tool", "name": name, "content": as_json_text(response.get("response") or {})}
            yield {**told, "tool_call_id": called.get(name, f"call_{i}")}
        elif isinstance(said, dict) and (text := message_text(said)) is not None:
            yield without_none({"role": "assistant", "content": text, "name": said.get("role")})


def identity(evaluation: Object) -> str:
    """The id of an evaluation: the last part of its resource name, else its display name."""
    name = evaluation.get("name")
    return str(name).rpartition("/")[2] if name else str(evaluation.get("displayName") or "evaluation")


def _tags(evaluation: Object, groups: Sequence[str]) -> dict[str, str]:
    """What is known of an evaluation as a whole; the display name only where the id is another."""
    tags = [t for t in evaluation.get("tags") or () if isinstance(t, str)]
    shown = evaluation.get("displayName")
    given = {
        "display_name": shown if evaluation.get("name") else None,
        "description": evaluation.get("description"),
        "tags": SEPARATOR.join(tags),
        "evaluation_groups": SEPARATOR.join(groups),
    }
    return {k: v for k, v in given.items() if isinstance(v, str) and v}


# ---------------------------------------------------------------------------------------------------------------------
# scenario → row
def _scenario_row(evaluation: Object, groups: Sequence[str]) -> Row:
    """The task is the request: a simulated user works from it. What the agent should do and say is the ground truth."""
    scenario = evaluation["scenario"]
    expected = objects(scenario.get("scenarioExpectations"))
    tools = [e["toolExpectation"] for e in expected if isinstance(e.get("toolExpectation"), dict)]
    calls = [tool_call(t["expectedToolCall"]) for t in tools if isinstance(t.get("expectedToolCall"), dict)]
    said = [e["agentResponse"] for e in expected if isinstance(e.get("agentResponse"), dict)]
    facts = [text for s in said if (text := message_text(s)) is not None]
    rubrics = [r for r in scenario.get("rubrics") or () if isinstance(r, str) and r.strip()]
    known = ("task", "rubrics", "scenarioExpectations")
    rest = {k: v for k, v in scenario.items() if k not in known}
    mocks = [t["mockToolResponse"] for t in tools if t.get("mockToolResponse")]
    return without_none(
        {
            "request_id": identity(evaluation),
            "request": {"messages": chat.user_message(str(scenario.get("task") or ""))},
            "expected_facts": facts or None,
            "guidelines": {"rubrics": rubrics} if rubrics else None,
            "reference_trajectory": calls or None,
            "custom_expected": {**rest, **({"mockToolResponses": mocks} if mocks else {})} or None,
            "tags": _tags(evaluation, groups) or None,
        }
    )
