"""The events of a span: messages that older conventions write there, and exceptions.

gen_ai.{system,user,assistant,tool}.message, gen_ai.choice       1.28 to 1.36 of the conventions: one per message
gen_ai.client.inference.operation.details                        attributes of the span itself
{"event_name", "body": {"input": {"messages"}, "output": …}}     ADOT, on CloudWatch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.otel.spans import Event, pairs_of
from agent_eval_schema.traces.otel.values import content_of
from agent_eval_schema.traces.spans import NOTHING

DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_CHOICE = "gen_ai.choice"
_EXCEPTION = "exception"

Messages = list[dict[str, Any]]


def messages_in(events: Sequence[Event]) -> tuple[Messages, Messages]:
    """The messages that a span was given, and those that it answered."""
    given: Messages = []
    answered: Messages = []
    for event in events:
        if event.body is not NOTHING:
            inner_given, inner_answered = _of_body(_value(event.body))
            given += inner_given
            answered += inner_answered
        elif event.name in _ROLES or event.name == _CHOICE:
            values = {key: _value(raw) for key, raw in pairs_of(event.attributes)}
            message = _message(values, _ROLES.get(event.name, "assistant"))
            (answered if event.name == _CHOICE else given).append(message)
    return given, answered


def _value(raw: Raw) -> Any:
    found = jsontext.parse_leniently(bytes(content_of(raw)).decode("utf-8", "replace"))
    return jsontext.parse_leniently(found) if isinstance(found, str) and found[:1] == '"' else found


def _message(values: dict[str, Any], role: str) -> dict[str, Any]:
    """The message in the attributes of an event: a choice has it below `message`."""
    inner = jsontext.structured(values.get("message"))
    if isinstance(inner, dict):
        values = {**values, **inner}
    content = values.get("content") if not isinstance(inner, list | str) else inner
    made: dict[str, Any] = {"role": role, "content": jsontext.structured(content)}
    if not isinstance(made["content"], list):
        made["content"] = content if isinstance(content, str | None) else jsontext.encode(content).decode()
    calls = jsontext.structured(values.get("tool_calls"))
    if isinstance(calls, list):
        made["tool_calls"] = calls
    identity = values.get("id")
    if role == "tool" and isinstance(identity, str):
        made["tool_call_id"] = identity
    return made


def _of_body(body: Any) -> tuple[Messages, Messages]:
    sides = []
    for side, role in (("input", "user"), ("output", "assistant")):
        inner = body.get(side) if isinstance(body, dict) else None
        messages = inner.get("messages") if isinstance(inner, dict) else None
        found = [m for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
        sides.append([_of_log(m, role) for m in found])
    return sides[0], sides[1]


def _of_log(message: dict[str, Any], role: str) -> dict[str, Any]:
    content = jsontext.structured(message.get("content"))
    if isinstance(content, dict):  # {"content": …} of a request, {"message": …} of an answer
        content = next((content[k] for k in ("content", "message", "text") if content.get(k) is not None), content)
        content = jsontext.structured(content)
    if not isinstance(content, list | str | None):
        content = jsontext.encode(content).decode()
    return {"role": message.get("role") or role, "content": content}


def details_in(events: Sequence[Event]) -> list[tuple[str, Raw]]:
    """The attributes that belong to the span itself."""
    return [pair for event in events if event.name == DETAILS for pair in pairs_of(event.attributes)]


def exceptions_in(events: Sequence[Event]) -> Raw:
    """The exceptions as the events of a span of MLflow; nothing if there is none."""
    found = []
    for event in events:
        pairs = dict(pairs_of(event.fields if event.fields is not None else event.attributes))
        named = event.name if event.fields is None else _text(pairs.get("event"))
        message = _text(pairs.get("exception.message"))
        if named == _EXCEPTION and message is not None:
            found.append({"name": _EXCEPTION, "attributes": {"exception.message": message}})
    return Raw(jsontext.encode(found)) if found else NOTHING


def _text(raw: Raw | None) -> str | None:
    value = None if raw is None else _value(raw)
    return value if isinstance(value, str) else None
