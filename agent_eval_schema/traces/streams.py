"""Streamed responses → the response that the same call would have given in one piece.

    SSE     data: {...}\\n\\ndata: {...}\\n\\ndata: [DONE]        NDJSON  {...}\\n{...}        array   [{...}, {...}]

No source shows how endpoints store streams, so all three are read; the trace of a generator has an array. Three kinds
of pieces: chunks of chat completions (deltas by choice), chunks of chat agents (deltas by message id), events of the
Responses API (deltas by item id). A final piece that repeats the text replaces its deltas. A stream that ends in an
error, or without an end, is partial.
"""

from typing import Any

from msgspec import Raw, Struct

from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe, excerpt

_NONE = Raw()


class Stream(Struct):
    """A joined stream: the response as one value, the text of the trace in its pieces, and why it is partial."""

    value: Any
    events: int
    trace: Raw | None = None
    partial: str | None = None


class Output(Struct, gc=False):
    """What an endpoint of Databricks adds to a response."""

    trace: Raw = _NONE
    databricks_request_id: str | None = None


class OutputHolder(Struct, gc=False):
    databricks_output: Output | None = None


class _Event(OutputHolder, gc=False):
    response: OutputHolder | None = None


_event = jsontext.decoder(_Event)
_items = jsontext.decoder(list[Raw])


def is_stream(text: bytes) -> bool:
    """Whether a text begins like an event stream."""
    return text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def read_stream(text: bytes) -> Stream | None:
    """The stream in a text, joined; None if it is not a stream. Never raises."""
    if is_stream(text):
        return _join(*_events_of_sse(text))
    start = text.lstrip()[:1]
    if start == b"[":
        try:
            lines = [bytes(item) for item in _items(text)]
        except ValueError:
            return None
        values = [jsontext.parse(line) for line in lines]
    elif start == b"{":  # NDJSON: every line is an object; the last may be cut off
        lines = [line for line in text.splitlines() if line.strip()]
        if not _is_value(lines[0]):  # one object, on several lines
            return None
        values = [jsontext.parse(line) for line in lines[:-1] or lines]
    else:
        return None
    # pieces of a response, and not a list of answers
    are_pieces = any([_is_piece(v) for v in values]) and all([isinstance(v, dict) for v in values])
    return _join(lines, False) if are_pieces else None


def _events_of_sse(text: bytes) -> tuple[list[bytes], bool]:
    """The data of each event, and whether [DONE] came."""
    events: list[bytes] = []
    data: list[bytes] = []
    for line in [*text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if line.startswith(b"data:"):
            piece = line[5:].removeprefix(b" ")
            if len(data) == 1 and _is_value(data[0]):  # some logs lose the blank lines between events
                events.append(data.pop())
            data.append(piece)
        elif not line.strip() and data:
            events.append(b"\n".join(data))
            data = []
    texts = [e for e in events if e.strip()]
    pieces = [e for e in texts if e.strip() != b"[DONE]"]
    return pieces, len(pieces) < len(texts)


def _is_value(text: bytes) -> bool:
    try:
        jsontext.decode(text)
    except ValueError:
        return text.strip() == b"[DONE]"
    return True


def _is_piece(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("object") == "chat.completion.chunk" or isinstance(value.get("delta"), dict):
        return True
    if isinstance(value.get("type"), str) and value["type"].startswith("response."):
        return True
    choices = value.get("choices")
    return isinstance(choices, list) and any([isinstance(c, dict) and "delta" in c for c in choices])


# --- joining
class _Joined:
    """The result of the pieces that were read so far."""

    def __init__(self) -> None:
        self.texts: dict[str, dict[str, Any]] = {}  # chat agents: messages by id
        self.items: dict[str, dict[str, Any]] = {}  # Responses: items by id
        self.whole: dict[str, Any] | None = None
        self.choice: dict[str, Any] = {"role": "assistant", "content": None}
        self.calls: dict[int, dict[str, Any]] = {}
        self.usage: Any = None
        self.trace: Raw | None = None
        self.pieces = 0  # of the text of the choice
        self.kind = ""
        self.ended = False
        self.error: str | None = None

    def value(self) -> Any:
        usage: dict[str, Any] = {"usage": self.usage} if self.usage is not None else {}
        if self.whole is not None:
            return {**usage, **self.whole}
        if self.kind == "responses":
            return {**usage, "output": list(self.items.values())}
        if self.kind == "agent":
            return {**usage, "messages": list(self.texts.values())}
        message = {**self.choice, **({"tool_calls": [self.calls[i] for i in sorted(self.calls)]} if self.calls else {})}
        return {**usage, "choices": [{"index": 0, "message": message}]}


def _join(lines: list[bytes], done: bool) -> Stream:
    joined, broken = _Joined(), ""
    for i, line in enumerate(lines):
        event = jsontext.parse(line)
        if isinstance(event, jsontext.Malformed):
            broken = broken or f"piece {i + 1:,} of {len(lines):,}: {event.message}"
            continue
        if not isinstance(event, dict):
            broken = broken or f"piece {i + 1:,} of {len(lines):,}: expected an object, got {describe(event)}"
            continue
        _take(joined, event)
        if b'"databricks_output"' in line:
            joined.trace = _trace_in(line, event) or joined.trace
    partial = joined.error or broken or None
    # Chat completions end with a finish_reason, Responses with a finished item or response; agents just stop.
    if partial is None and not (done or joined.ended or joined.kind == "agent"):
        partial = "the stream has no end" if joined.kind else "the stream holds no piece of an answer"
    return Stream(joined.value(), len(lines), joined.trace, partial)


def _trace_in(line: bytes, event: dict[str, Any]) -> Raw | None:
    """The text of the trace in a piece; rewritten if the rest of the piece is unusual."""
    try:
        piece = _event(line)
    except ValueError:
        outputs = [h.get("databricks_output") for h in (event, event.get("response")) if isinstance(h, dict)]
        traces = [o["trace"] for o in outputs if isinstance(o, dict) and o.get("trace") is not None]
        return Raw(jsontext.encode(traces[0])) if traces else None
    homes = (piece.databricks_output, piece.response.databricks_output if piece.response else None)
    return next((h.trace for h in homes if h is not None and h.trace not in (_NONE, Raw(b"null"))), None)


def _take(joined: _Joined, event: dict[str, Any]) -> None:
    kind = event.get("type")
    if event.get("error") not in (None, "", {}, False) or kind == "error" or "error_code" in event:
        joined.error = f"the stream ends in an error: {_error(event)}"
        return
    if event.get("usage") is not None:
        joined.usage = event["usage"]
    if isinstance(kind, str) and kind.startswith("response."):
        _take_response_event(joined, kind, event)
    elif isinstance(event.get("choices"), list):
        for choice in event["choices"]:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                _take_choice(joined, choice)
    elif isinstance(event.get("delta"), dict):
        joined.kind = "agent"
        delta = event["delta"]
        key = str(delta.get("id") or "")
        joined.pieces = joined.pieces + 1 if key in joined.texts else 1
        message = joined.texts.setdefault(key, {**delta, "content": None, "tool_calls": None})
        piece, whole = _text_of(delta.get("content")), message["content"] or ""
        if piece is not None:
            message["content"] = whole if joined.pieces > 2 and piece == whole else whole + piece
        if isinstance(delta.get("tool_calls"), list):
            message["tool_calls"] = [*(message["tool_calls"] or []), *delta["tool_calls"]]
        joined.ended |= event.get("finish_reason") is not None
    elif any([isinstance(event.get(k), list) for k in ("messages", "output")]):
        joined.whole, joined.ended = event, True


def _error(event: dict[str, Any]) -> str:
    error = event.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    message = message or event.get("message") or event.get("error_code")
    return excerpt(message, 200) if isinstance(message, str) else describe(message)


def _take_choice(joined: _Joined, choice: dict[str, Any]) -> None:
    joined.kind = joined.kind or "chat"
    joined.ended |= choice.get("finish_reason") is not None
    message = choice.get("message")
    if isinstance(message, dict):  # the final piece repeats the whole
        joined.choice, joined.calls, joined.ended = message, {}, True
        return
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {"content": choice.get("text")}  # of a completion that is no chat
    piece = _text_of(delta.get("content"))
    if piece is not None:
        whole = _text_of(joined.choice.get("content")) or ""
        repeats = choice.get("finish_reason") is not None and joined.pieces > 1 and piece == whole
        joined.choice["content"] = whole if repeats else whole + piece
        joined.pieces += bool(piece)
    entries = delta.get("tool_calls")
    for entry in entries if isinstance(entries, list) else ():
        _take_call(joined.calls, entry)


def _text_of(content: Any) -> str | None:
    """A delta's text; some models send parts."""
    if isinstance(content, list):
        return "".join([p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str)])
    return content if isinstance(content, str) else None


def _take_call(calls: dict[int, dict[str, Any]], entry: Any) -> None:
    """A piece of a tool call: the name comes first, the arguments in pieces."""
    if not isinstance(entry, dict):
        return
    index = entry.get("index")
    call = calls.setdefault(index if isinstance(index, int) else len(calls), {"type": "function", "function": {}})
    if isinstance(entry.get("id"), str):
        call["id"] = entry["id"]
    inner = entry.get("function")
    function = inner if isinstance(inner, dict) else {}
    for key in ("name", "arguments"):
        if isinstance(function.get(key), str):
            call["function"][key] = call["function"].get(key, "") + function[key]


def _take_response_event(joined: _Joined, kind: str, event: dict[str, Any]) -> None:
    joined.kind = "responses"
    response = event.get("response")
    if isinstance(response, dict) and response.get("usage") is not None:
        joined.usage = response["usage"]
    if kind == "response.output_text.delta":
        joined.ended = False
        key = str(event.get("item_id") or "#0")
        empty = {"type": "message", "id": key, "role": "assistant", "content": [{"type": "output_text", "text": ""}]}
        item = joined.items.setdefault(key, empty)
        content = item.get("content")
        if (
            isinstance(event.get("delta"), str)
            and isinstance(content, list)
            and content
            and isinstance(content[-1], dict)
        ):
            content[-1]["text"] = str(content[-1].get("text") or "") + event["delta"]
    elif kind == "response.output_item.done" and isinstance(event.get("item"), dict):
        item = event["item"]
        joined.items[str(item.get("id") or event.get("item_id") or f"#{len(joined.items)}")] = item
        joined.ended = True
    elif kind in ("response.completed", "response.done"):
        joined.ended = True
        if isinstance(response, dict) and response.get("output"):
            joined.whole = {k: v for k, v in response.items() if k != "databricks_output"}
    elif kind in ("response.failed", "response.incomplete", "response.error"):
        details = response if isinstance(response, dict) else {}
        message = details.get("error") or details.get("incomplete_details") or event.get("message")
        joined.error = f"the stream ends with {kind}" + (f": {_error({'error': message})}" if message else "")
