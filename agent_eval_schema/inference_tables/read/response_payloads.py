"""Logged responses → the response: the text, the tool calls, the tokens and the trace in it."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.inference_tables.read import streams
from agent_eval_schema.inference_tables.read.payloads import Answered, Broken, parse_payload
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe, excerpt
from agent_eval_schema.traces.reading import Tokens, Usage, counts_of, usage_of

_NONE = Raw()


class _Part(Struct, gc=False):
    text: str


class _Message(Struct, gc=False):
    """A message of a chat, or an item of the Responses API."""

    role: str | None = None
    content: str | list[_Part] | None = None
    type: str | None = None
    tool_calls: Raw = _NONE


class _Choice(Struct, gc=False):
    message: _Message


class _Output(Struct, gc=False):
    trace: Raw = _NONE
    databricks_request_id: str | None = None


class _Reply(Struct, gc=False, forbid_unknown_fields=True):
    """The response body of a chat, agent or Responses endpoint; one with other keys is kept whole."""

    choices: list[_Choice] | None = None
    messages: list[_Message] | None = None
    output: list[_Message] | None = None
    usage: Usage | None = None
    databricks_output: _Output | None = None
    id: Raw = _NONE
    object: Raw = _NONE
    created: Raw = _NONE
    created_at: Raw = _NONE
    model: Raw = _NONE
    system_fingerprint: Raw = _NONE
    service_tier: Raw = _NONE
    status: Raw = _NONE
    finish_reason: Raw = _NONE


_OF_THE_CALL = frozenset(_Reply.__struct_fields__)
"""Keys of a response that add nothing to the text, the calls, the tokens and the trace."""


class _Sliced(Struct, gc=False):
    databricks_output: _Output | None = None


_reply = jsontext.decoder(_Reply)
_sliced = jsontext.decoder(_Sliced)


def read_response(text: bytes, *, is_payload: bool = True, wrapped: bool = False) -> Answered | Broken:
    """The response of a logged body; the value itself as well where the call is `wrapped`."""
    if wrapped:
        return _other_response(text, is_payload, wrapped)
    try:
        reply = _reply(text)
    except ValueError:
        return _other_response(text, is_payload, wrapped)
    answer = _answer_in(reply)
    output = reply.databricks_output
    trace = _trace_text(output.trace) if output else None
    if answer is None or (trace is None and _has_calls(reply)):
        return _other_response(text, is_payload, wrapped)
    tokens = _storable(counts_of(reply.usage)) if reply.usage else None
    request_id = output.databricks_request_id if output else None
    return Answered(answer, trace=trace, tokens=tokens, request_id=request_id)


def _answer_in(reply: _Reply) -> str | None:
    """The answer of the commonest bodies, as chat.read_answer reads it; None where that has to look."""
    if reply.choices is not None:
        content = reply.choices[0].message.content if reply.choices else None
        return content if content.__class__ is str else None
    items = reply.messages if reply.messages is not None else reply.output
    for item in reversed(items or ()):
        if item.role == "assistant":
            content = item.content
            joined = content if content.__class__ is str else "".join([p.text for p in content or ()])  # type: ignore[union-attr]
            if joined:
                return joined
        elif item.role is None and item.type in chat.LANGCHAIN_ROLES:
            return None
    return None


def _has_calls(reply: _Reply) -> bool:
    if reply.choices is not None:
        return any([c.message.tool_calls is not _NONE for c in reply.choices])
    items = reply.messages if reply.messages is not None else reply.output or ()
    return any([m.tool_calls is not _NONE or m.type == "function_call" for m in items])


def _other_response(text: bytes, is_payload: bool, wrapped: bool) -> Answered | Broken:
    if not text.strip():
        return Answered()
    if not is_payload and not text.lstrip().startswith((b"{", b"[", b'"')) and not streams.is_stream(text):
        return Answered(text.decode("utf-8", "replace"))
    stream = streams.read_stream(text)
    if stream is not None:
        return _streamed(stream, wrapped)
    value, findings, why = parse_payload(text, "response")
    if why:
        if text.lstrip().startswith((b"{", b"[", b'"')):
            return Broken("malformed", f"response: {why}")
        plain = text.decode("utf-8", "replace")
        findings = [Finding(rules.ODD_RESPONSE, "expected JSON, got text; the text is taken", "response")]
        return Answered(plain, findings=findings, value=plain)
    answer = answer_of(value, wrapped)
    answer.findings[:0] = findings
    _note_output(answer, text, value)
    return answer


def _streamed(stream: streams.Stream, wrapped: bool) -> Answered:
    answer = answer_of(stream.value, wrapped)
    answer.partial = stream.partial
    answer.trace = _trace_text(stream.trace) if stream.trace is not None else None
    if answer.trace is not None:
        answer.calls = None
    message = f"reassembled from {stream.events:,} chunks"
    answer.findings.append(Finding(rules.JOINED_STREAM, message, "response"))
    return answer


def answer_of(value: Any, wrapped: bool = False) -> Answered:
    """The response of a body, or of one prediction."""
    answer = Answered(value=value)
    if isinstance(value, dict):
        answer.error = _error_of(value)
        answer.tokens = _storable(usage_of(value.get("usage")))
    if answer.error:
        answer.text = jsontext.encode(value).decode()
    if wrapped or answer.error:
        return answer
    inner = value["predictions"] if isinstance(value, dict) and "predictions" in value else value
    text, known = chat.read_answer(inner)
    if not known and inner not in ({}, []):
        text = jsontext.encode(inner).decode()
        message = f"got {describe(inner)}; its JSON text is taken"
        answer.findings.append(Finding(rules.ODD_RESPONSE, message, "response"))
    answer.text = text
    answer.calls = chat.read_tool_calls(inner) or None
    if isinstance(inner, dict) and not inner.keys() <= _OF_THE_CALL:
        answer.outputs = jsontext.encode({k: v for k, v in inner.items() if k != "databricks_output"})
    elif not known and inner not in ({}, []):
        answer.outputs = jsontext.encode(inner)
    return answer


_ANSWERS = ("choices", "messages", "output", "predictions", "content")


def _error_of(value: dict[str, Any]) -> str | None:
    """The error, if the body is an error and no answer: {error_code, message} of a guardrail, {error: …}."""
    if any([value.get(k) is not None for k in _ANSWERS]):
        return None
    code, error = value.get("error_code"), value.get("error")
    if code is None and error in (None, "", {}, False):
        return None
    message = value.get("message")
    if isinstance(error, dict):
        code, message = code or error.get("code") or error.get("type"), message or error.get("message")
    elif isinstance(error, str):
        message = message or error
    parts = [excerpt(str(p), 200) for p in (code, message) if p not in (None, "")]
    return ": ".join(parts) or "an error"


def error_in(text: bytes | None) -> str | None:
    """The error that the body of a failed call holds, if it can be read."""
    value = jsontext.parse(text) if text and text.lstrip().startswith(b"{") else None
    return _error_of(value) if isinstance(value, dict) else None


def _note_output(answer: Answered, text: bytes, value: Any) -> None:
    """The trace in databricks_output: cut out of the text; rewritten where the text had to be corrected."""
    output = value.get("databricks_output") if isinstance(value, dict) else None
    if not isinstance(output, dict):
        return
    named = output.get("databricks_request_id")
    answer.request_id = named if isinstance(named, str) else None
    if output.get("trace") is not None:
        try:
            sliced = _sliced(text).databricks_output
            trace = sliced.trace if sliced else _NONE
        except ValueError:
            trace = Raw(jsontext.encode(output["trace"]))
        answer.trace = _trace_text(trace)
    if answer.trace is not None:
        answer.calls = None  # the trace contains the trajectory


def _trace_text(raw: Raw) -> bytes | None:
    """The text of a trace; None for null, and the content of a JSON string where it was encoded twice."""
    text = bytes(raw)
    if text[:1] == b'"':
        inner = jsontext.parse_leniently(text.decode("utf-8", "replace"))
        return inner.encode() if isinstance(inner, str) and inner.strip() else None
    return None if text in (b"", b"null") else text


def _storable(tokens: Tokens | None) -> Tokens | None:
    """The counts that fit a column: not below zero, in 64 bits."""
    if tokens is None:
        return None
    given, made, total = [n if n is not None and 0 <= n < 1 << 63 else None for n in tokens]
    return None if given is made is total is None else (given, made, total)
