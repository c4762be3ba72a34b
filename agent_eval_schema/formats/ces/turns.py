"""Turns of a golden evaluation ⇄ the columns of a row: the chat so far, and the expectations of the current turn.

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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import SEPARATOR
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import encode_text, without_null_keys

Object = Mapping[str, Any]
Row = dict[str, Any]

# ---------------------------------------------------------------------------------------------------------------------
# parts of evaluations and their results, as rows contain them: texts, calls, expectations, ID and tags
EXPECTATIONS_KEY = "expectations"
"""The key of custom_expected for the expectations that no column represents, as the API writes them."""

EVALUATION_KEY = "evaluation"
"""The key of custom_expected for the part of an evaluation that its rows do not represent: fields of it, and the
original turns of a row if its columns would give others."""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none if the value is not a list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def each(items: Iterable[Object], key: str) -> list[dict[str, Any]]:
    """The objects that the items have under a key."""
    return [item[key] for item in items if isinstance(item.get(key), dict)]


def tool_name(call: Object) -> str:
    """The tool of a ToolCall or ToolResponse: `tool`, or toolset and ID with a slash between."""
    toolset = call.get("toolsetTool")
    if isinstance(toolset, dict):
        return f"{toolset.get('toolset', '')}/{toolset.get('toolId', '')}"
    return str(call.get("tool") or call.get("displayName") or "?")


def tool_call(call: Object) -> Row:
    return {"tool_name": tool_name(call), "tool_input": call.get("args") if isinstance(call.get("args"), dict) else {}}


def message_text(message: Object) -> str | None:
    """The text of a Message {role, chunks}."""
    chunks = objects(message.get("chunks"))
    texts = [t for c in chunks for t in (c.get("text"), c.get("transcript")) if isinstance(t, str)]
    return "".join(texts) if texts else None


def joined_text(messages: Iterable[Object]) -> str | None:
    """The texts of messages as one; None if there is none."""
    texts = [text for message in messages if (text := message_text(message)) is not None]
    return "\n".join(texts) if texts else None


def expected_text(expected: Sequence[Object]) -> tuple[str | None, list[str]]:
    """The expected text, and the agents that say it."""
    responses = each(expected, "agentResponse")
    return joined_text(responses), [r["role"] for r in responses if isinstance(r.get("role"), str)]


def expected_calls(expected: Sequence[Object]) -> list[Row] | None:
    """The expected calls; an empty list is an expectation only where it is explicit."""
    calls = list(map(tool_call, each(expected, "toolCall")))
    return calls or ([] if any(e.get("noToolCalls") is True for e in expected) else None)


def has_column(expectation: Object) -> bool:
    """Whether the columns of a row represent all of an expectation."""
    call, response = expectation.get("toolCall"), expectation.get("agentResponse")
    if isinstance(call, dict):
        return expectation.keys() == {"toolCall"} and call.keys() == {"tool", "args"}
    if isinstance(response, dict):
        chunks = objects(response.get("chunks"))
        plain = all(chunk.keys() == {"text"} for chunk in chunks) and len(chunks) == 1
        return expectation.keys() == {"agentResponse"} and response.keys() <= {"role", "chunks"} and plain
    return expectation == {"noToolCalls": True}


# ---------------------------------------------------------------------------------------------------------------------
# the fields of an evaluation as a whole ⇄ request_id and tags of its rows
HEAD = ("name", "displayName", "description", "tags")
HEAD_TAGS = ("display_name", "description", "tags")
"""The fields of an evaluation that are read here, and their tags."""


def identity(evaluation: Object) -> str:
    """The id of an evaluation: the last part of its resource name, else its display name."""
    name = evaluation.get("name")
    return str(name).rpartition("/")[2] if name else str(evaluation.get("displayName") or "evaluation")


def head_tags(evaluation: Object, groups: Sequence[str] = ()) -> dict[str, str]:
    """The tags of an evaluation's rows; the display name only where the id is another."""
    tags = [t for t in evaluation.get("tags") or () if isinstance(t, str)]
    shown = evaluation.get("displayName")
    texts = {
        "display_name": shown if evaluation.get("name") else None,
        "description": evaluation.get("description"),
        "tags": SEPARATOR.join(tags),
        "evaluation_groups": SEPARATOR.join(groups),
    }
    return {k: v for k, v in texts.items() if isinstance(v, str) and v}


def head_by(identity_: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The fields that follow from an ID and tags."""
    shown = tags.get("display_name")
    return without_null_keys(
        {
            "name": identity_ if shown else None,
            "displayName": shown or identity_,
            "description": tags.get("description"),
            "tags": _items(tags.get("tags")) or None,
        }
    )


def groups_by(tags: Mapping[str, str]) -> list[str]:
    """The names of the datasets of a row, which only the CSV has."""
    return _items(tags.get("evaluation_groups"))


def _items(text: str | None) -> list[str]:
    return [item for item in (text or "").split(SEPARATOR) if item]


Turn = dict[str, Any]


# ---------------------------------------------------------------------------------------------------------------------
# turns → columns
def expectations_of(turn: Object) -> list[dict[str, Any]]:
    """The expectations of a turn."""
    return each(objects(turn.get("steps")), "expectation")


def input_messages(turn: Object) -> chat.Messages:
    """The inputs of a turn, as messages."""
    return [m for step in objects(turn.get("steps")) for m in _messages_of_input(step.get("userInput"))]


def history_of(turns: Iterable[Object]) -> chat.Messages:
    """The messages of turns that have gone by."""
    return [m for turn in turns for m in (*input_messages(turn), *expected_messages(expectations_of(turn)))]


def row_turn(span: Sequence[Object]) -> int:
    """The turn of a span whose row it is: the last one that expects something; the last one if none does."""
    return next((i for i in reversed(range(len(span))) if expectations_of(span[i])), len(span) - 1)


def span_columns(before: chat.Messages, span: Sequence[Object]) -> Row:
    """The columns of the row that a span of turns makes, after the messages before it."""
    at = row_turn(span)
    expected = expectations_of(span[at])
    text, agents = expected_text(expected)
    others = [e for e in expected if not has_column(e)]
    return without_null_keys(
        {
            "request": {"messages": [*before, *history_of(span[:at]), *input_messages(span[at])]},
            "expected_response": text,
            "reference_trajectory": expected_calls(expected),
            "custom_expected": {EXPECTATIONS_KEY: others} if others else None,
            "tags": {"response_agent": agents[-1]} if agents else None,
        }
    )


def _messages_of_input(user_input: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(user_input, dict):
        return
    for kind, value in user_input.items():
        if kind == "text":
            yield {"role": "user", "content": value}
        elif kind == "toolResponses" and isinstance(value, dict):
            for response in objects(value.get("toolResponses")):
                content = encode_text(response.get("response") or {})
                yield {"role": "tool", "name": tool_name(response), "content": content}
        elif kind == "image" and isinstance(value, dict):  # as in the OpenAI schema
            url = f"data:{value.get('mimeType')};base64,{value.get('data')}"
            yield {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        elif kind != "willContinue":
            yield {"role": "user", "content": [{"type": kind, kind: value}]}


def expected_messages(expected: Iterable[Object]) -> Iterator[dict[str, Any]]:
    """The expected behavior of the agent in a turn, as messages of the history."""
    call_ids: dict[str, str] = {}
    for i, expectation in enumerate(expected):
        call, response = expectation.get("toolCall"), expectation.get("toolResponse")
        answer = expectation.get("agentResponse")
        if isinstance(call, dict):
            expected_call = tool_call(call)
            name = expected_call["tool_name"]
            call_ids[name] = call_id = str(call.get("id") or f"call_{i}")
            function = {"name": name, "arguments": encode_text(expected_call.get("tool_input") or {})}
            entry = {"id": call_id, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [entry]}
        elif isinstance(response, dict):
            name = tool_name(response)
            result = {"role": "tool", "name": name, "content": encode_text(response.get("response") or {})}
            yield {**result, "tool_call_id": call_ids.get(name, f"call_{i}")}
        elif isinstance(answer, dict) and (text := message_text(answer)) is not None:
            yield without_null_keys({"role": "assistant", "content": text, "name": answer.get("role")})


# ---------------------------------------------------------------------------------------------------------------------
# columns → turns
def turns_of(messages: Iterable[Object], row: Object) -> list[Turn]:
    """The turns of the messages and the ground truth of a row: the messages before the last question are turns before
    the row's own."""
    turns: list[Turn] = []
    messages = list(messages)
    tools = chat.tools_of_calls(messages)
    for message in messages:
        role = message["role"]
        asks = role in ("user", "system", "developer") or (role == "tool" and "tool_call_id" not in message)
        if not turns or (asks and any("expectation" in step for step in turns[-1]["steps"])):
            turns.append({"steps": []})
        if role == "tool" and not message.get("name"):
            message = {**message, "name": tools.get(str(message.get("tool_call_id")))}
        turns[-1]["steps"].extend(_inputs_of(message) if asks else _steps_of(message))
    if not turns:
        turns.append({"steps": []})
    turns[-1]["steps"].extend({"expectation": e} for e in expected_by(row))
    return turns


def expected_by(row: Object) -> Iterator[dict[str, Any]]:
    """The expectations of the columns of a row. An expectation that `custom_expected` has in full replaces its call or
    text, as long as the row's own columns agree with it."""
    custom = row.get("custom_expected")
    others = objects(custom.get(EXPECTATIONS_KEY)) if isinstance(custom, Mapping) else []
    calls = [(encode_text(dict(call)), call) for call in row.get("reference_trajectory") or ()]
    kept = []
    for other in others:
        if isinstance(other.get("toolCall"), dict):
            key = encode_text(tool_call(other["toolCall"]))
            of_row = next((call for call in calls if call[0] == key), None)
            if of_row is None:
                continue
            calls.remove(of_row)
        kept.append(other)
    text = row.get("expected_response")
    if text != expected_text(kept)[0]:
        kept = [e for e in kept if "agentResponse" not in e]
    for _, call in calls:
        yield {"toolCall": {"tool": call["tool_name"], "args": call["tool_input"]}}
    if row.get("reference_trajectory") == []:
        yield {"noToolCalls": True}
    yield from kept
    if text is not None and not any("agentResponse" in e for e in kept):
        yield _agent_response(text, (row.get("tags") or {}).get("response_agent"))


def _inputs_of(message: Object) -> list[dict[str, Any]]:
    content = message.get("content")
    if message["role"] == "tool":
        response = {"tool": message.get("name") or "?", "response": _object(content)}
        return [{"userInput": {"toolResponses": {"toolResponses": [response]}}}]
    if not isinstance(content, list):
        return [{"userInput": {"text": content or ""}}]
    return [{"userInput": _input(part)} for part in content]


def _input(part: Object) -> dict[str, Any]:
    kind = part.get("type")
    image = _INLINE_IMAGE.match(str((part.get("image_url") or {}).get("url"))) if kind == "image_url" else None
    if image:
        return {"image": {"mimeType": image[1], "data": image[2]}}
    if kind in schema.message("SessionInput").fields and kind in part:
        return {str(kind): part[kind]}
    return {"text": part["text"] if isinstance(part.get("text"), str) else encode_text(part)}


_INLINE_IMAGE = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


def _steps_of(message: Object) -> list[dict[str, Any]]:
    """A message of the agent in the history as expectations."""
    if message["role"] == "tool":
        response = {"tool": message.get("name") or "?", "response": _object(message.get("content"))}
        return [{"expectation": {"toolResponse": response}}]
    calls = [{"toolCall": {"tool": name, "args": args or {}}} for name, args in chat.read_tool_calls([message])]
    text = chat.join_text(message.get("content"))
    answers = [_agent_response(text, message.get("name"))] if isinstance(text, str) and text else []
    return [{"expectation": e} for e in [*calls, *answers]]


def _agent_response(text: str, agent: Any) -> dict[str, Any]:
    return {"agentResponse": without_null_keys({"role": agent, "chunks": [{"text": text}]})}


def _object(content: Any) -> dict[str, Any]:
    """The content of a tool message as the object that it must be there."""
    value = jsontext.parse_leniently(content) if isinstance(content, str) else content
    return value if isinstance(value, dict) else {"output": value}


# ---------------------------------------------------------------------------------------------------------------------
# scenarios ⇄ the columns of a row: a simulated user works from the task, which is the request; what the agent should do
# and say is the ground truth
def scenario_columns(scenario: Object) -> Row:
    """The columns of the row that a scenario makes."""
    expected = objects(scenario.get("scenarioExpectations"))
    calls = list(map(tool_call, each(each(expected, "toolExpectation"), "expectedToolCall")))
    facts = [text for answer in each(expected, "agentResponse") if (text := message_text(answer) or "").strip()]
    rubrics = [r for r in scenario.get("rubrics") or () if isinstance(r, str) and r.strip()]
    return without_null_keys(
        {
            "request": {"messages": chat.user_message(str(scenario.get("task") or ""))},
            "expected_facts": facts or None,
            "guidelines": {"rubrics": rubrics} if rubrics else None,
            "reference_trajectory": calls or None,
        }
    )


def scenario_by(row: Object, original: Object) -> dict[str, Any]:
    """The original scenario of a row, with the parts replaced in which the columns differ from it."""
    before = scenario_columns(original)
    changed = {name for name in _PARTS if row.get(name) != before.get(name)}
    return {**original, **{key: value for name in changed for key, value in _PARTS[name](row, original).items()}}


def _task(row: Object, _: Object) -> dict[str, Any]:
    return {"task": "\n".join(str(chat.join_text(m.get("content")) or "") for m in row["request"]["messages"])}


def _rubrics(row: Object, _: Object) -> dict[str, Any]:
    return {"rubrics": [line for lines in (row.get("guidelines") or {}).values() for line in lines]}


def _expectations(row: Object, original: Object) -> dict[str, Any]:
    """The values of the columns; of the original scenario, those that agree with the columns."""
    facts, calls = list(row.get("expected_facts") or ()), list(row.get("reference_trajectory") or ())
    kept = []
    for expectation in objects(original.get("scenarioExpectations")):
        one = scenario_columns({"scenarioExpectations": [expectation]})
        (fact,), (call,) = one.get("expected_facts", [None]), one.get("reference_trajectory", [None])
        if fact in (None, *facts) and call in (None, *calls):
            kept.append(expectation)
            for items, item in ((facts, fact), (calls, call)):
                if item in items:
                    items.remove(item)
    tools = [{"expectedToolCall": {"tool": c["tool_name"], "args": c["tool_input"]}} for c in calls]
    answers = [{"chunks": [{"text": fact}]} for fact in facts]
    new = [*({"toolExpectation": tool} for tool in tools), *({"agentResponse": answer} for answer in answers)]
    return {"scenarioExpectations": [*kept, *new]}


_PARTS = {
    "request": _task,
    "guidelines": _rubrics,
    "expected_facts": _expectations,
    "reference_trajectory": _expectations,
}
"""The columns of a scenario's row, and the functions that make its fields of them."""
