"""Logged requests → the canonical request."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.diagnose import is_type
from agent_eval_schema.decoding.requests import PlainMessage, has_nothing_odd, is_plain_chat
from agent_eval_schema.inference_tables.read.payloads import Asked, Broken, parse_payload
from agent_eval_schema.inference_tables.read.wrapped_records import WRAPPERS, records_of
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe


class _Where(Struct, gc=False):
    conversation_id: str | int | None = None
    session_id: str | int | None = None
    thread_id: str | int | None = None
    user_id: str | int | None = None


class _Beside(Struct, gc=False, kw_only=True):
    """The user and the conversation of a request."""

    context: _Where | None = None
    databricks_options: _Where | None = None
    extra_params: _Where | None = None
    custom_inputs: dict[str, Any] | None = None
    conversation_id: str | int | None = None
    session_id: str | int | None = None
    user: str | int | None = None


class _Body(_Beside, gc=False, kw_only=True):
    """A chat request."""

    messages: list[PlainMessage]


_body = jsontext.decoder(_Body)
_members = jsontext.decoder(dict[str, Raw])
_encode = msgspec.json.Encoder().encode


def read_chat(text: bytes) -> Asked | None:
    """The request of a logged chat, if its messages have a role and a text and nothing else."""
    try:
        body = _body(text)
    except ValueError:
        return None
    if not body.messages:
        return None
    messages = _encode(body.messages)
    request = b'{"messages":' + messages + b"}"
    asked = Asked(request, plain=has_nothing_odd(body.messages), question=request)
    if len(text) > len(request) and (members := _members(text)).keys() != {"messages"}:
        asked.inputs = _whole_body(text, members, len(body.messages), Raw(messages))
    _note_beside(asked, body)
    return asked


def _whole_body(text: bytes, members: dict[str, Raw], count: int, messages: Raw) -> bytes:
    """The JSON text of a body, as encoding its value gives it. The `messages` are encoded already: so are the
    given ones if each begins with its role. A body that cannot be read as a whole is the text that it is."""
    try:
        if len(_ROLE_FIRST(bytes(members["messages"]))) != count:
            return _encode(jsontext.decode(text))
        return _encode({k: messages if k == "messages" else jsontext.decode(v) for k, v in members.items()})
    except ValueError:
        return _encode(text.decode("utf-8", "replace"))


_ROLE_FIRST = re.compile(rb'\{\s*"role"').findall
"""Messages that begin with their role: a quotation mark inside of a text has a backslash before it."""


def read_other_request(text: bytes, is_payload: bool) -> Asked | Broken:
    """The request of any other logged body."""
    if not is_payload and not text.lstrip().startswith((b"{", b"[", b'"')):
        return asked_of(text.decode("utf-8", "replace"))
    value, findings, why = parse_payload(text, "request")
    if why:
        if is_payload or text.lstrip().startswith((b"{", b"[")):
            return Broken("malformed", f"request: {why}")
        return asked_of(text.decode("utf-8", "replace"))
    asked = read_body(value)
    if isinstance(asked, Asked):
        asked.findings[:0] = findings
    return asked


def read_body(value: Any) -> Asked | Broken:
    """The request of a body: a chat, or the records of a wrapper."""
    wrapper = next((k for k in WRAPPERS if isinstance(value, dict) and value.get(k) is not None), None)
    if wrapper is None or "messages" in value:
        asked = asked_of(value)
    else:
        records = records_of(wrapper, value[wrapper])
        if isinstance(records, Broken):
            return records
        if not records:
            return Broken("no_request", f"expected records, got none in `{wrapper}`")
        asked = Asked(records=records)
    if isinstance(asked, Asked) and isinstance(value, dict):
        _note_beside(asked, _beside_of(value))
    return asked


def asked_of(value: Any) -> Asked | Broken:
    """The request of one record or body, as the canonical request, and the body itself if it has more keys."""
    asked = _request_of(value)
    if isinstance(asked, Asked) and isinstance(value, dict) and not value.keys() <= {"messages", "query", "history"}:
        asked.inputs = _encode(value)
    return asked


def _request_of(value: Any) -> Asked | Broken:
    messages = chat.read_messages(value)
    if messages:
        request = b'{"messages":' + _encode(messages) + b"}"
        return Asked(request, question=_question(messages), plain=is_plain_chat(request))
    if messages == [] and isinstance(value, dict):
        return Broken("no_request", "expected messages, got an empty list")
    if value is None or value in ({}, []) or messages == []:
        return Broken("no_request", f"expected a request, got {describe(value)}")
    if isinstance(value, dict):
        known = {k: value[k] for k in ("messages", "query", "history") if value.get(k) is not None}
        if "messages" in known or "query" in known:  # of a format that validation explains
            text = _encode(known)
            if not any(known.values()):
                return Broken("no_request", "expected messages, got none")
            return Asked(text, question=text)
    text = _encode(chat.user_message(_encode(value).decode()))
    request = b'{"messages":' + text + b"}"
    asked = Asked(request, question=request)
    message = f"got {describe(value)}; its JSON text is taken"
    asked.findings.append(Finding(rules.ODD_REQUEST, message, "request"))
    return asked


def _question(messages: chat.Messages) -> bytes:
    """The same bytes for the same messages, in whatever order their keys are."""
    return b'{"messages":' + _encode([_ordered(m) for m in messages]) + b"}"


def _ordered(message: dict[str, Any]) -> dict[str, Any]:
    first = {k: message[k] for k in ("role", "content") if message.get(k) is not None}
    return {**first, **{k: message[k] for k in sorted(message) if k not in first and message[k] is not None}}


def _beside_of(value: dict[str, Any]) -> _Beside:
    """The same for a body that was decoded generically; parts that do not fit are omitted."""
    kept = {}
    for key in _Beside.__struct_fields__:
        given = value.get(key)
        if isinstance(given, dict) and key != "custom_inputs":
            given = {k: v for k, v in given.items() if isinstance(v, str | int) and not isinstance(v, bool)}
        if is_type(_Beside, {key: given}):
            kept[key] = given
    return msgspec.convert(kept, _Beside)


def _note_beside(asked: Asked, body: _Beside) -> None:
    """Session, user and custom inputs, as session_id and tags."""
    context, options, custom, extra = body.context, body.databricks_options, body.custom_inputs, body.extra_params
    found = (
        (context and context.conversation_id)
        or (options and options.conversation_id)
        or (custom and _own_session(custom))
        or (extra and (extra.session_id or extra.conversation_id))
        or body.conversation_id
        or body.session_id
    )
    user = (context and context.user_id) or body.user
    asked.session_id = str(found) if found else None
    if user or custom:
        tags = {"user_id": str(user)} if user else {}
        for key, entry in (custom or {}).items():
            if entry is not None:
                tags[f"custom_inputs.{key}"] = entry if isinstance(entry, str) else _encode(entry).decode()
        asked.tags = tags or None


def _own_session(custom: dict[str, Any]) -> str | None:
    """The conversation among the custom inputs, under any of the names that agents give it."""
    given = (custom.get(k) for k in ("session_id", "conversation_id", "thread_id"))
    return next((str(v) for v in given if v and isinstance(v, str | int) and v is not True), None)
