"""What a row holds, as every page shows it: conversation, answers and what is expected, documents, calls, steps.

Made of the texts of its cells, also of those with issues: what cannot be read as one of these stays a cell.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_eval_schema.decoding.chat import join_text, read_tool_calls
from agent_eval_schema.metrics.alignment import CallPair, ShownCall, aligned
from agent_eval_schema.metrics.trajectory import Match
from agent_eval_schema.render.phrases import seconds
from agent_eval_schema.render.rows import RowContent, ShownSpan, ShownTurn
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import exception_message, status_message
from agent_eval_schema.traces.spans import FAILED_CODES, Attributes, Span, Trace, json_of

CELL, SPAN_TEXT = 4_000, 1_000
"""Characters of a cell, and of the inputs or outputs of a span, at most."""

SPANS = 100
"""Spans of a trace, at most."""

TURNS = 100
"""Turns of a conversation, the last ones, and documents and calls that are shown as such, at most."""

PREDICTED = {"predicted_trajectory": "Tool calls"}
"""The cell with the calls of the agent, and their title."""

EXPECTED = ("expected_response", "reference", "expected_facts", "guidelines")
"""The cells that are shown beside the answer."""


def content_of(
    cells: Mapping[str, str],
    read: Mapping[str, str] | None = None,
    *,
    answers: Sequence[str] = ("response",),
    predicted: Mapping[str, str] = PREDICTED,
    match: Match = "call",
) -> RowContent:
    """The content of a row with these cells, which are `read` under the names of our columns. `answers` and `predicted`
    name the cells with an answer and with the calls of the agent."""
    read = cells if read is None else read
    turns = _turns(read.get("request", ""))
    documents = _documents(read.get("retrieved_context", ""))
    reference = _calls(read.get("reference_trajectory", ""))
    trajectories = {name: calls for name in predicted if (calls := _calls(read.get(name, ""))) is not None}
    pairs = [(predicted[name], _pairs(calls, reference, match)) for name, calls in trajectories.items()]
    if not pairs and reference:
        pairs = [("Expected calls", _pairs(None, reference, match))]
    expected = [(name, cut_text(read[name], CELL)) for name in EXPECTED if name in read]
    expected = [pair for name, text in expected for pair in _listed(name, text)]
    drawn = {"request": turns, "retrieved_context": documents, "reference_trajectory": reference is not None}
    drawn |= {**dict.fromkeys(trajectories, True), **dict.fromkeys((*answers, *EXPECTED), True)}
    return RowContent(
        turns=[ShownTurn(t.path, cut_text(t.role, 40), cut_text(t.text, CELL), t.calls) for t in turns[-TURNS:]],
        answers=[(name, cut_text(read[name], CELL)) for name in answers if name in read],
        expected=expected,
        documents=documents,
        calls=[(title, of) for title, of in pairs if of],
        spans=spans_of(read["trace"]) if "trace" in read else [],
        cells=[(name, cut_text(text, CELL)) for name, text in cells.items() if not drawn.get(name) or name not in read],
    )


def _listed(name: str, text: str) -> Iterable[tuple[str, str]]:
    """Each text of a list with its path; a cell that is none as it is."""
    value = jsontext.structured(text)
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return [(f"{name}[{i}]", entry) for i, entry in enumerate(value)]
    return [(name, text)]


def _documents(cell: str) -> list[tuple[str, str, str]]:
    """The path, the URI and the text of each document, and what it has besides as JSON; none if there is another
    value among them."""
    value = jsontext.structured(cell)
    if not isinstance(value, list) or len(value) > TURNS or not all(isinstance(entry, dict) for entry in value):
        return []
    return [_document(f"retrieved_context[{i}]", entry) for i, entry in enumerate(value)]


def _document(path: str, entry: dict[str, Any]) -> tuple[str, str, str]:
    texts = {name: value for name in ("doc_uri", "content") if isinstance(value := entry.get(name), str)}
    rest = {name: value for name, value in entry.items() if name not in texts and value is not None}
    text = "\n".join(filter(None, (texts.get("content"), jsontext.encode_text(rest) if rest else "")))
    return path, cut_text(texts.get("doc_uri", ""), SPAN_TEXT), cut_text(text, CELL)


def _calls(cell: str) -> list[ToolCall] | None:
    try:
        calls = msgspec.convert(jsontext.structured(cell), list[ToolCall])
    except msgspec.ValidationError:
        return None
    return calls if len(calls) <= TURNS else None


def _pairs(predicted: list[ToolCall] | None, reference: list[ToolCall] | None, match: Match) -> list[CallPair]:
    """The calls of both trajectories side by side; of one alone without marks."""
    pairs: list[tuple[ShownCall | None, ShownCall | None]]
    if predicted is not None and reference is not None:
        pairs = [(pair.predicted, pair.reference) for pair in aligned(predicted, reference, match)]
    else:
        both = (predicted or (), reference or ())
        calls = [[ShownCall(call.tool_name, _json(call.tool_input), "") for call in side] for side in both]
        pairs = [*((call, None) for call in calls[0]), *((None, call) for call in calls[1])]
    return [CallPair(*(call and replace(call, input=cut_text(call.input, CELL)) for call in pair)) for pair in pairs]


def _json(value: Any) -> str:
    return jsontext.encode_text(value or {})


def _turns(cell: str) -> list[ShownTurn]:
    """The turns of a request, also of one with issues; none if it is no conversation."""
    value = jsontext.structured(cell)
    if isinstance(value, str):
        return [ShownTurn("request", "user", value)] if value.strip() else []
    fields = value if isinstance(value, dict) else {"": value}
    places = [(f"request.{key}" if key else "request", fields.get(key)) for key in ("", "messages", "history")]
    messages = [(f"{path}[{i}]", m) for path, chat in places if isinstance(chat, list) for i, m in enumerate(chat)]
    if isinstance(fields.get("query"), str):
        messages.append(("request.query", {"role": "user", "content": fields["query"]}))
    if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for _, m in messages):
        return []
    return [_turn(path, message) for path, message in messages]


def _turn(path: str, message: dict[str, Any]) -> ShownTurn:
    """The text of a message and its calls, and what it has besides as JSON."""
    content = join_text(message.get("content"))
    spoken = content if isinstance(content, str) else ""
    entries = message.get("tool_calls")
    calls = read_tool_calls([message]) if isinstance(entries, list) else []
    shown = {"role", *(["content"] if spoken or content is None else []), *(["tool_calls"] if calls else [])}
    rest = {key: value for key, value in message.items() if key not in shown and value is not None}
    if calls and len(calls) < len(entries or ()):
        rest["tool_calls"] = entries
    text = "\n".join(filter(None, (spoken, jsontext.encode_text(rest) if rest else "")))
    shown_calls = [(cut_text(name, 80), cut_text(_json(inputs), SPAN_TEXT)) for name, inputs in calls]
    return ShownTurn(path, message["role"], text, shown_calls)


def spans_of(text: str) -> list[ShownSpan]:
    """The spans of a trace by their start, each with the place of its bar."""
    trace = decode_trace(text)
    if not isinstance(trace, Trace):
        return []
    timed = sorted((span for span in trace.spans if span.start is not None), key=lambda s: s.start or 0)[:SPANS]
    if not timed:
        return []
    first = min(span.start or 0 for span in timed)
    whole = max(max((span.end or span.start or 0) - first for span in timed), 1)
    parents = {span.id: span.parent for span in timed}
    return [_span(span, first, whole, _depth(span.id, parents)) for span in timed]


def _depth(id: str | None, parents: Mapping[str | None, str | None]) -> int:
    depth = 0
    while (id := parents.get(id)) is not None and depth < 20:  # a circle ends too
        depth += 1
    return depth


def _span(span: Span, first: int, whole: int, depth: int) -> ShownSpan:
    start = span.start or first
    length = max((span.end or start) - start, 0)
    attributes = span.attributes if isinstance(span.attributes, Attributes) else Attributes()
    has_failed = span.code in FAILED_CODES
    return ShownSpan(
        name=cut_text(span.name or "", 80),
        type=cut_text((attributes.type or "").strip('"'), 40),
        status="error" if has_failed else "ok",
        start=round(100 * (start - first) / whole, 2),
        width=round(100 * length / whole, 2),
        depth=depth,
        duration=seconds(length / 1e9),
        inputs=cut_text(json_of(attributes.inputs) or "", SPAN_TEXT),
        outputs=cut_text(json_of(attributes.outputs) or "", SPAN_TEXT),
        error=cut_text((exception_message(span) or status_message(span) or "") if has_failed else "", SPAN_TEXT),
    )


def cut_text(text: str, most: int) -> str:
    """The start of a text, and how much of it is missing."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
