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
from agent_eval_schema.formats.ces.parts import (
    EXPECTATIONS_KEY,
    Object,
    Row,
    each,
    expected_calls,
    expected_text,
    has_column,
    message_text,
    objects,
    tool_call,
    tool_name,
    without_none,
)
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import encode_text

Turn = dict[str, Any]


# ---------------------------------------------------------------------------------------------------------------------
# turns → columns
def expectations_of(turn: Object) -> list[dict[str, Any]]:
    """The expectations of a turn."""
    return each(objects(turn.get("steps")), "expectation")


def asked_in(turn: Object) -> chat.Messages:
    """The inputs of a turn, as messages."""
    return [m for step in objects(turn.get("steps")) for m in _asked(step.get("userInput"))]


def history_of(turns: Iterable[Object]) -> chat.Messages:
    """The messages of turns that have gone by."""
    return [m for turn in turns for m in (*asked_in(turn), *told(expectations_of(turn)))]


def row_turn(span: Sequence[Object]) -> int:
    """The turn of a span whose row it is: the last one that expects something; the last one if none does."""
    return next((i for i in reversed(range(len(span))) if expectations_of(span[i])), len(span) - 1)


def span_columns(before: chat.Messages, span: Sequence[Object]) -> Row:
    """The columns of the row that a span of turns makes, after the messages before it."""
    at = row_turn(span)
    expected = expectations_of(span[at])
    text, agents = expected_text(expected)
    others = [e for e in expected if not has_column(e)]
    return without_none(
        {
            "request": {"messages": [*before, *history_of(span[:at]), *asked_in(span[at])]},
            "expected_response": text,
            "reference_trajectory": expected_calls(expected),
            "custom_expected": {EXPECTATIONS_KEY: others} if others else None,
            "tags": {"response_agent": agents[-1]} if agents else None,
        }
    )


def _asked(given: Any) -> Iterator[dict[str, Any]]:
    """A user input as messages."""
    if not isinstance(given, dict):
        return
    for kind, value in given.items():
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


def told(expected: Iterable[Object]) -> Iterator[dict[str, Any]]:
    """The expected behavior of the agent in a turn, as messages of the history."""
    called: dict[str, str] = {}
    for i, expectation in enumerate(expected):
        call, response = expectation.get("toolCall"), expectation.get("toolResponse")
        said = expectation.get("agentResponse")
        if isinstance(call, dict):
            made = tool_call(call)
            called[made["tool_name"]] = identity_ = str(call.get("id") or f"call_{i}")
            function = {"name": made["tool_name"], "arguments": encode_text(made.get("tool_input") or {})}
            entry = {"id": identity_, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [entry]}
        elif isinstance(response, dict):
            name = tool_name(response)
            answer = {"role": "tool", "name": name, "content": encode_text(response.get("response") or {})}
            yield {**answer, "tool_call_id": called.get(name, f"call_{i}")}
        elif isinstance(said, dict) and (text := message_text(said)) is not None:
            yield without_none({"role": "assistant", "content": text, "name": said.get("role")})


# ---------------------------------------------------------------------------------------------------------------------
# columns → turns
def turns_of(messages: Iterable[Object], row: Object) -> list[Turn]:
    """The turns of the messages and the ground truth of a row: the messages before the last question are turns before
    the row's own."""
    turns: list[Turn] = []
    for message in messages:
        role = message["role"]
        asks = role in ("user", "system", "developer") or (role == "tool" and "tool_call_id" not in message)
        if not turns or (asks and any("expectation" in step for step in turns[-1]["steps"])):
            turns.append({"steps": []})
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
            said = encode_text(tool_call(other["toolCall"]))
            of_row = next((call for call in calls if call[0] == said), None)
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
        yield _agent_says(text, (row.get("tags") or {}).get("response_agent"))


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
    calls = [{"toolCall": {"tool": name, "args": given or {}}} for name, given in chat.read_tool_calls([message])]
    text = chat.join_text(message.get("content"))
    said = [_agent_says(text, message.get("name"))] if isinstance(text, str) and text else []
    return [{"expectation": e} for e in [*calls, *said]]


def _agent_says(text: str, agent: Any) -> dict[str, Any]:
    return {"agentResponse": without_none({"role": agent, "chunks": [{"text": text}]})}


def _object(content: Any) -> dict[str, Any]:
    """The content of a tool message as the object that it must be there."""
    value = jsontext.parse_leniently(content) if isinstance(content, str) else content
    return value if isinstance(value, dict) else {"output": value}
