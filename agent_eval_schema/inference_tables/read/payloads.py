"""The content of a logged payload: the request, the response, or why it cannot be read.

    request    {messages} · {input} · {query, history} · "text"  → messages
    batch      {dataframe_records | dataframe_split | inputs | instances}  → one record per row of them
    response   {choices} · {messages} · {output: [items]} · {predictions} · "text" · [{content}]  → text
               {databricks_output: {trace}}  → the trace's JSON text, unchanged
    stream     (traces/streams.py)  → the response in one piece

Two speeds: the most common bodies are decoded directly into Structs with only the necessary fields; all others are
decoded generically and read by decoding/chat.py.
"""

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.requests import PlainMessage, has_nothing_odd, is_plain_chat
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import production as rules
from agent_eval_schema.rules.reading import LONE_SURROGATE, NAN_LITERAL
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe, excerpt
from agent_eval_schema.traces import streams
from agent_eval_schema.traces.reading import Tokens, Usage, counts_of, usage_of


class Unreadable(Struct, frozen=True):
    """A payload that cannot be read, or not be split into records: the reason it is excluded for, and why."""

    reason: str
    detail: str


class Request(Struct, gc=False):
    """The request: the canonical request, and the values next to it. `question` is the same for the same request in
    every format; `plain` is true if validation will find no issue in it. `inputs` is the whole body, if it has more
    keys than the request. `records` are the calls of a batch, which has no request of its own."""

    request: bytes | None = None
    inputs: bytes | None = None
    question: bytes | None = None
    plain: bool = False
    session_id: str | None = None
    tags: dict[str, str] | None = None
    findings: list[Finding] = field(default_factory=list)
    records: list[Any] | None = None


class Response(Struct, gc=False):
    """The response. `outputs` is the whole body, if the text and the columns contain less; `trace` is the text inside
    databricks_output; `value` is the result of a wrapped call; `partial` and `error` are the reason why a stream ended
    early, and the error that was returned instead."""

    text: str | bytes | None = None
    outputs: bytes | None = None
    trace: bytes | None = None
    tokens: Tokens | None = None
    calls: list[tuple[str, dict[str, Any] | None]] | None = None
    request_id: str | None = None
    partial: str | None = None
    error: str | None = None
    value: Any = None
    findings: list[Finding] = field(default_factory=list)


def parse_payload(text: bytes, column: str) -> tuple[Any, list[Finding], str]:
    """The value of a payload; the corrections in it; why it cannot be read."""
    value = jsontext.parse(text)
    if not isinstance(value, jsontext.Malformed):
        return value, [], ""
    if value.rule in (NAN_LITERAL, LONE_SURROGATE):
        read = jsontext.parse_leniently(text.decode("utf-8", "replace"))
        if not isinstance(read, str) or text.lstrip().startswith(b'"'):
            return read, [Finding(rules.NONSTANDARD_JSON, value.message, column)], ""
    return None, [], value.message


# --- several records in one body
WRAPPERS = ("dataframe_records", "dataframe_split", "inputs", "instances")
"""Keys under which a model server takes records."""


def records_of(wrapper: str, value: Any) -> list[Any] | Unreadable:
    """The records of a wrapper, each a plain request."""
    if wrapper == "dataframe_split":
        path = "request.dataframe_split"
        columns, data = (value.get(k) if isinstance(value, dict) else None for k in ("columns", "data"))
        if not isinstance(columns, list) or not isinstance(data, list):
            return Unreadable("malformed", f"{path}: expected `columns` and `data`, got {describe(value)}")
        for i, row in enumerate(data):
            if not isinstance(row, list) or len(row) != len(columns):
                problem = f"expected a list of {len(columns)}, got {describe(row)}"
                return Unreadable("malformed", f"{path}.data[{i}]: {problem}")
        return [dict(zip(map(str, columns), row, strict=True)) for row in data]
    if isinstance(value, list):
        is_chat = bool(value) and all([isinstance(m, dict) and "role" in m for m in value])
        return [value] if is_chat else value
    if wrapper == "dataframe_records":
        return Unreadable("malformed", f"request.{wrapper}: expected a list of records, got {describe(value)}")
    return _column_records(wrapper, value) if isinstance(value, dict) else [value]


def _column_records(wrapper: str, value: dict[str, Any]) -> list[Any] | Unreadable:
    """`{column: [cell, ...]}`: a record per cell; a request, or an object of other values than lists, is one record."""
    lists = [v for v in value.values() if isinstance(v, list)]
    if chat.read_messages(value) or not lists or len(lists) < len(value):
        return [value]
    sizes = {len(v) for v in lists}
    if len(sizes) > 1:
        counts = ", ".join(map(str, sorted(sizes)))
        return Unreadable("batch_mismatch", f"request.{wrapper}: expected columns of one length, got {counts}")
    return [dict(zip(value, cells, strict=True)) for cells in zip(*value.values(), strict=True)]


def predictions_of(answer: Response, count: int) -> list[Any] | Unreadable:
    """The answer of each of `count` records. A different count is reported; nothing is assumed."""
    predictions = answer.value
    if isinstance(predictions, dict) and "predictions" in predictions:
        predictions = predictions["predictions"]
    if predictions is None:
        return [None] * count
    if isinstance(predictions, list) and len(predictions) == count:
        return predictions
    if count == 1 and not isinstance(predictions, list):
        return [predictions]
    columns = list(predictions.values()) if isinstance(predictions, dict) else []
    if columns and all([isinstance(c, list) and len(c) == count for c in columns]):
        return [dict(zip(predictions, cells, strict=True)) for cells in zip(*columns, strict=True)]
    got = f"{len(predictions):,}" if isinstance(predictions, list) else describe(predictions)
    return Unreadable("batch_mismatch", f"expected {count:,} predictions for {count:,} records, got {got}")


# --- the request
class _Body(Struct, gc=False):
    messages: list[PlainMessage]


_body = msgspec.json.Decoder(_Body).decode
_members = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


def read_chat(text: bytes) -> Request | None:
    """The request of a logged chat, if its messages have a role and a text and nothing else. It is not to be nested too
    deep."""
    try:
        body = _body(text)
    except ValueError:
        return None
    if not body.messages:
        return None
    messages = _encode(body.messages)
    request = b'{"messages":' + messages + b"}"
    content = Request(request, plain=has_nothing_odd(body.messages), question=request)
    if len(text) > len(request) and {*(members := _members(text))} != {"messages"}:
        try:
            if beside := _BESIDE & members.keys():
                _note_beside(content, {k: jsontext.decode_shallow(members[k]) for k in beside})
        except ValueError:
            return None
        content.inputs = _whole_body(text, members, len(body.messages), Raw(messages))
    return content


def _whole_body(text: bytes, members: dict[str, Raw], count: int, messages: Raw) -> bytes:
    """The JSON text of a body, as encoding its value gives it. The `messages` are encoded already: so are
    those in the text if each begins with its role. A body that cannot be read as a whole is the text that it is."""
    try:
        if len(_ROLE_FIRST(bytes(members["messages"]))) != count:
            return _encode(jsontext.decode_shallow(text))
        return _encode({k: messages if k == "messages" else jsontext.decode_shallow(v) for k, v in members.items()})
    except ValueError:
        return _encode(text.decode("utf-8", "replace"))


_ROLE_FIRST = re.compile(rb'\{\s*"role"').findall
"""Messages that begin with their role: a quotation mark inside of a text has a backslash before it."""


def read_other_request(text: bytes, is_payload: bool) -> Request | Unreadable:
    """The request of any other logged body."""
    if not is_payload and not text.lstrip().startswith((b"{", b"[", b'"')):
        return request_content(text.decode("utf-8", "replace"))
    value, findings, why = parse_payload(text, "request")
    if why:
        if is_payload or text.lstrip().startswith((b"{", b"[")):
            return Unreadable("malformed", f"request: {why}")
        return request_content(text.decode("utf-8", "replace"))
    content = read_body(value)
    if isinstance(content, Request):
        content.findings[:0] = findings
    return content


def read_body(value: Any) -> Request | Unreadable:
    """The request of a body: a chat, or the records of a wrapper."""
    wrapper = next((k for k in WRAPPERS if isinstance(value, dict) and value.get(k) is not None), None)
    if wrapper is None or "messages" in value:
        content = request_content(value)
    else:
        records = records_of(wrapper, value[wrapper])
        if isinstance(records, Unreadable):
            return records
        if not records:
            return Unreadable("no_request", f"expected records, got none in `{wrapper}`")
        content = Request(records=records)
    if isinstance(content, Request) and isinstance(value, dict):
        _note_beside(content, value)
    return content


def request_content(value: Any) -> Request | Unreadable:
    """The request of one record or body, as the canonical request, and the body itself if it has more keys."""
    content = _request_of(value)
    if isinstance(content, Request) and isinstance(value, dict) and value.keys() - {"messages", "query", "history"}:
        content.inputs = _encode(value)
    return content


def _request_of(value: Any) -> Request | Unreadable:
    messages = chat.read_messages(value)
    if messages:
        request = b'{"messages":' + _encode(messages) + b"}"
        ordered = [_ordered(message) for message in messages]  # the same bytes, in whatever order the keys are
        return Request(request, question=b'{"messages":' + _encode(ordered) + b"}", plain=is_plain_chat(request))
    if messages == [] and isinstance(value, dict):
        return Unreadable("no_request", "expected messages, got an empty list")
    if value is None or value in ({}, []) or messages == []:
        return Unreadable("no_request", f"expected a request, got {describe(value)}")
    if isinstance(value, dict):
        known = {k: value[k] for k in ("messages", "query", "history") if value.get(k) is not None}
        if "messages" in known or "query" in known:  # of a format that validation explains
            text = _encode(known)
            if not any(known.values()):
                return Unreadable("no_request", "expected messages, got none")
            return Request(text, question=text)
    text = _encode(chat.user_message(_encode(value).decode()))
    request = b'{"messages":' + text + b"}"
    finding = Finding(rules.ODD_REQUEST, f"got {describe(value)}; its JSON text is taken", "request")
    return Request(request, question=request, findings=[finding])


def _ordered(message: dict[str, Any]) -> dict[str, Any]:
    first = {k: message[k] for k in ("role", "content") if message.get(k) is not None}
    return {**first, **{k: message[k] for k in sorted(message) if k not in first and message[k] is not None}}


_SESSIONS = (
    *(("context", "conversation_id"), ("databricks_options", "conversation_id")),
    *(("custom_inputs", name) for name in ("session_id", "conversation_id", "thread_id")),
    *(("extra_params", "session_id"), ("extra_params", "conversation_id"), ("conversation_id",), ("session_id",)),
)
"""Where a request has the ID of its conversation, by precedence."""
_BESIDE = frozenset(["user", *(path[0] for path in _SESSIONS)])


def _note_beside(content: Request, body: dict[str, Any]) -> None:
    """Session, user and custom inputs, as session_id and tags."""
    for path in _SESSIONS:
        if path[0] in body and (found := _id_at(body, path)):
            content.session_id = found
            break
    user = _id_at(body, ("context", "user_id")) or _id_at(body, ("user",))
    tags, custom = {"user_id": user} if user else {}, body.get("custom_inputs")
    for key, entry in custom.items() if isinstance(custom, dict) else ():
        if entry is not None:
            tags[f"custom_inputs.{key}"] = entry if isinstance(entry, str) else _encode(entry).decode()
    content.tags = tags or None


def _id_at(value: Any, path: tuple[str, ...]) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return str(value) if value and isinstance(value, str | int) and value is not True else ""


_NONE = Raw()


# --- the response
class _Part(Struct, gc=False):
    text: str


class _AnswerMessage(Struct, gc=False):
    role: str | None = None
    content: str | list[_Part] | None = None
    type: str | None = None
    tool_calls: Raw = _NONE


class _Choice(Struct, gc=False):
    message: _AnswerMessage


class _Reply(Struct, gc=False, forbid_unknown_fields=True):
    """The response body of a chat, agent or Responses endpoint; one with other keys is kept whole."""

    choices: list[_Choice] | None = None
    messages: list[_AnswerMessage] | None = None
    output: list[_AnswerMessage] | None = None
    usage: Usage | None = None
    databricks_output: streams.Output | None = None
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


_reply = msgspec.json.Decoder(_Reply).decode
_sliced = jsontext.decoder(streams.OutputHolder)


def read_response(text: bytes, *, is_payload: bool, wrapped: bool, deep: bool) -> Response | Unreadable:
    """The response of a logged body, which may be nested too `deep`; the value itself as well where the call is
    `wrapped`."""
    if wrapped or deep:
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
    return Response(answer, trace=trace, tokens=tokens, request_id=output.databricks_request_id if output else None)


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


def _other_response(text: bytes, is_payload: bool, wrapped: bool) -> Response | Unreadable:
    if not text.strip():
        return Response()
    if not is_payload and not text.lstrip().startswith((b"{", b"[", b'"')) and not streams.is_stream(text):
        return Response(text.decode("utf-8", "replace"))
    stream = streams.read_stream(text)
    if stream is not None:
        answer = response_content(stream.value, wrapped)
        answer.partial = stream.partial
        answer.trace = _trace_text(stream.trace) if stream.trace is not None else None
        if answer.trace is not None:
            answer.calls = None
        answer.findings.append(Finding(rules.JOINED_STREAM, f"reassembled from {stream.events:,} chunks", "response"))
        return answer
    value, findings, why = parse_payload(text, "response")
    if why:
        if text.lstrip().startswith((b"{", b"[", b'"')):
            return Unreadable("malformed", f"response: {why}")
        plain = text.decode("utf-8", "replace")
        findings = [Finding(rules.ODD_RESPONSE, "expected JSON, got text; the text is taken", "response")]
        return Response(plain, findings=findings, value=plain)
    answer = response_content(value, wrapped)
    answer.findings[:0] = findings
    _note_output(answer, text, value)
    return answer


def response_content(value: Any, wrapped: bool = False) -> Response:
    """The response of a body, or of one prediction."""
    answer = Response(value=value)
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


def _error_of(value: dict[str, Any]) -> str | None:
    """The error, if the body is an error and no answer: {error_code, message} of a guardrail, {error: …}."""
    if any([value.get(k) is not None for k in ("choices", "messages", "output", "predictions", "content")]):
        return None
    code, error = value.get("error_code"), value.get("error")
    if code is None and error in (None, "", {}, False):
        return None
    message = value.get("message")
    if isinstance(error, dict):
        code, message = code or error.get("code") or error.get("type"), message or error.get("message")
    elif isinstance(error, str):
        message = message or error
    return ": ".join(excerpt(str(part), 200) for part in (code, message) if part not in (None, "")) or "an error"


def error_in(text: bytes | None) -> str | None:
    """The error that the body of a failed call holds, if it can be read."""
    value = jsontext.parse(text) if text and text.lstrip().startswith(b"{") else None
    return _error_of(value) if isinstance(value, dict) else None


def _note_output(answer: Response, text: bytes, value: Any) -> None:
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
    read, written, total = [n if n is not None and 0 <= n < 1 << 63 else None for n in tokens]
    return None if read is written is total is None else (read, written, total)
