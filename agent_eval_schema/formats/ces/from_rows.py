"""Canonical rows → golden evaluations: the way back of rows.py.

A row becomes one evaluation: the chat before the last question are turns before it, the ground truth is expected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import SEPARATOR
from agent_eval_schema.formats.ces.parts import (
    EXPECTATIONS_KEY,
    Object,
    as_json_text,
    tool_call,
    without_none,
)
from agent_eval_schema.text import jsontext


def goldens_of(rows: Sequence[Object]) -> list[dict[str, Any]]:
    """Canonical rows as golden evaluations, one each. A row `x#1` that is alone with its `x` becomes the evaluation
    `x`, which is `x#1` again when it is read; otherwise an evaluation is called as its row."""
    bases = [_base(row, place) for place, row in enumerate(rows)]
    shared = {base for base, count in Counter(bases).items() if count > 1}
    return [
        golden_of(row, str(row.get("request_id") or base) if base in shared else base)
        for row, base in zip(rows, bases, strict=True)
    ]


def _base(row: Object, place: int) -> str:
    identity_ = str(row.get("request_id") or f"row {place}")
    base, mark, number = identity_.rpartition("#")
    return base if mark and base and number.isdecimal() else identity_


def golden_of(row: Object, name: str) -> dict[str, Any]:
    """A canonical row as a golden evaluation of that name: what was said before the last question are turns before."""
    tags = dict(row.get("tags") or {})
    turns: list[dict[str, Any]] = []
    for message in row["request"]["messages"]:
        role = message["role"]
        asks = role in ("user", "system", "developer") or (role == "tool" and "tool_call_id" not in message)
        if not turns or (asks and any("expectation" in step for step in turns[-1]["steps"])):
            turns.append({"steps": []})
        turns[-1]["steps"].extend(_inputs_of(message) if asks else _expectations_of(message))
    turns[-1]["steps"].extend({"expectation": e} for e in _expected(row, tags.get("response_agent")))
    made: dict[str, Any] = {
        "displayName": name,
        "golden": {"turns": turns},
        "description": tags.get("description"),
        "tags": [t for t in tags.get("tags", "").split(SEPARATOR) if t] or None,
    }
    return without_none(made)


def groups_of(row: Object) -> list[str]:
    """The names of the data sets that a row belongs to, which only the CSV can say."""
    return [g for g in (row.get("tags") or {}).get("evaluation_groups", "").split(SEPARATOR) if g]


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
    return {"text": part["text"] if isinstance(part.get("text"), str) else as_json_text(part)}


_INLINE_IMAGE = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


def _expectations_of(message: Object) -> list[dict[str, Any]]:
    """A message of the agent in the history as expectations."""
    if message["role"] == "tool":
        response = {"tool": message.get("name") or "?", "response": _object(message.get("content"))}
        return [{"expectation": {"toolResponse": response}}]
    calls = [{"toolCall": {"tool": name, "args": given or {}}} for name, given in chat.read_tool_calls([message])]
    text = chat.join_text(message.get("content"))
    said = [_agent_says(text, message.get("name"))] if isinstance(text, str) and text else []
    return [{"expectation": e} for e in [*calls, *said]]


def _expected(row: Object, agent: str | None) -> Iterator[dict[str, Any]]:
    custom = row.get("custom_expected") or {}
    others = custom.get(EXPECTATIONS_KEY) if isinstance(custom, Mapping) else None
    others = [e for e in others if isinstance(e, dict)] if isinstance(others, list) else []
    said = {as_json_text(tool_call(e["toolCall"])) for e in others if isinstance(e.get("toolCall"), dict)}
    for call in row.get("reference_trajectory") or ():
        if as_json_text(dict(call)) not in said:
            yield {"toolCall": {"tool": call["tool_name"], "args": call["tool_input"]}}
    if row.get("reference_trajectory") == []:
        yield {"noToolCalls": True}
    yield from others
    text = row.get("expected_response")
    if text is not None and not any("agentResponse" in e for e in others):
        yield _agent_says(text, agent)


def _agent_says(text: str, agent: Any) -> dict[str, Any]:
    return {"agentResponse": without_none({"role": agent, "chunks": [{"text": text}]})}


def _object(content: Any) -> dict[str, Any]:
    """The content of a tool message as the object that it must be there."""
    value = jsontext.parse_leniently(content) if isinstance(content, str) else content
    return value if isinstance(value, dict) else {"output": value}
