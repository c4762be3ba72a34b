"""Messages that consist of parts → messages of OpenAI's form.

    {role, parts: [{type: "text", content}, {type: "tool_call", id, name, arguments}, {type: "tool_call_response", id,
                    response}]}                                                       GenAI conventions of OpenTelemetry
    {role: "model", parts: [{text}, {function_call: {name, args}}, {function_response}]}                          Gemini
    {role, content: [{type: "tool-call", toolName, input}, {type: "tool-result", toolCallId, output}]}         Vercel AI
    {role, content: [{text}, {toolUse: {name, input}}, {toolResult: {toolUseId, content}}]}                      Bedrock

Reasoning, images and files have no place in such a message.
"""

from __future__ import annotations

from typing import Any

from agent_eval_schema.text import jsontext

Message = dict[str, Any]

_CALLS = {"function_call": "args", "functionCall": "args", "toolUse": "input"}
"""The keys of a part that is a call below a key of its own, and the key of its arguments."""

_RESULTS = {"function_response": "response", "functionResponse": "response", "toolResult": "content"}
_OF_PARTS = frozenset({"tool-call", "tool-result", "tool_call", "tool_call_response", *_CALLS, *_RESULTS})


def of_parts(message: Any) -> list[Message] | None:
    """The messages in one whose content is in parts, one for each result of a tool; None if it is no such message."""
    if not isinstance(message, dict):
        return None
    if "toolName" in message and "role" not in message:  # a call of Vercel's, without its message
        return of_parts({"role": "assistant", "parts": [{"type": "tool-call", **message}]})
    parts = message.get("parts")
    if not isinstance(parts, list):
        content = message.get("content")
        if isinstance(content, dict) and isinstance(content.get("parts"), list):  # a response of Gemini
            return of_parts({"role": "model", **content})
        parts = content
        if not isinstance(parts, list) or not any(isinstance(p, dict) and _is_part(p) for p in parts):
            return None
    role = "assistant" if message.get("role") == "model" else message.get("role") or "user"
    objects = [part for part in parts if isinstance(part, dict)]
    texts = [text for text in map(_text, objects) if text is not None] + [p for p in parts if isinstance(p, str)]
    calls = [call for call in map(_call, objects) if call is not None]
    results = [result for result in map(_result, objects) if result is not None]
    if results and not texts and not calls:
        return results
    spoken: Message = {"role": role, "content": "".join(texts) if texts or not calls else None}
    if calls:
        spoken["tool_calls"] = calls
    return [*results, spoken]


def _is_part(part: Message) -> bool:
    return str(part.get("type")) in _OF_PARTS or not _OF_PARTS.isdisjoint(part) or part.keys() == {"text"}


def _text(part: Message) -> str | None:
    if part.get("thought") is True or part.get("type", "text") not in ("text", "input_text", "output_text"):
        return None
    found = part.get("text", part.get("content"))
    return found if isinstance(found, str) else None


def _call(part: Message) -> Message | None:
    if part.get("type") == "tool_call":
        return _function(part.get("id"), part.get("name"), part.get("arguments"))
    if part.get("type") == "tool-call":
        return _function(part.get("toolCallId"), part.get("toolName"), part.get("input", part.get("args")))
    for key, arguments in _CALLS.items():
        inner = part.get(key)
        if isinstance(inner, dict):
            return _function(inner.get("id", inner.get("toolUseId")), inner.get("name"), inner.get(arguments))
    return None


def _function(identity: Any, name: Any, arguments: Any) -> Message | None:
    if not isinstance(name, str):
        return None
    text = arguments if isinstance(arguments, str) else jsontext.encode({} if arguments is None else arguments).decode()
    function = {"name": name, "arguments": text}
    return {**({"id": identity} if isinstance(identity, str) else {}), "type": "function", "function": function}


def _result(part: Message) -> Message | None:
    if part.get("type") == "tool_call_response":
        return _answer(part.get("id"), part.get("response", part.get("result")))
    if part.get("type") == "tool-result":
        return _answer(part.get("toolCallId"), part.get("output", part.get("result")))
    for key, content in _RESULTS.items():
        inner = part.get(key)
        if isinstance(inner, dict):
            return _answer(inner.get("id", inner.get("toolUseId", inner.get("name"))), inner.get(content))
    return None


def _answer(identity: Any, value: Any) -> Message:
    text = value if isinstance(value, str) else jsontext.encode(value).decode()
    return {"role": "tool", **({"tool_call_id": identity} if isinstance(identity, str) else {}), "content": text}
