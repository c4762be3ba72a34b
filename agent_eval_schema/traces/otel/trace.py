"""Spans of OpenTelemetry → one `Trace`, from which everything is derived as from a trace of MLflow.

The root of such a trace is often a span of a web server, and parents may be missing. So the request is the input of
the outermost agent, or of the first model if no agent has any; the response is the output of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.otel.conventions import MARKS
from agent_eval_schema.traces.otel.envelopes import parts_of
from agent_eval_schema.traces.otel.spans import AnySpan, Event, PlainSpan, mended_span, usual_spans
from agent_eval_schema.traces.otel.translate import TranslatedSpan, attributes_of, pairs_of_mlflow, translate
from agent_eval_schema.traces.otel.values import decoded
from agent_eval_schema.traces.reading import attributes
from agent_eval_schema.traces.spans import (
    FAILED_CODES,
    NOTHING,
    Attributes,
    Info,
    Metadata,
    Span,
    Status,
    Trace,
    content_text,
    grounded,
    value_of,
)

_MODELS = frozenset({"LLM", "CHAT_MODEL"})
_LEAVES = _MODELS | {"TOOL", "RETRIEVER", "RERANKER", "EMBEDDING", "GUARDRAIL", "EVALUATOR", "PARSER", "MEMORY"}


def decode_otel(text: str | bytes | memoryview, whole: bool = True) -> Trace | list[Finding] | None:
    """The trace in a document of OpenTelemetry, the reason why it cannot be read, or None if it is no such document.

    A cell holds one trace: of several, the one with the most spans is read, and that is noted. If it does not have to
    be `whole`, it has the contents of those spans only on which an issue or a figure depends.
    """
    notes: list[Finding] = []
    try:
        spans = list(usual_spans(text))
    except ValueError:
        spans = []
    if not spans:
        value = jsontext.parse_leniently(text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))
        parts = list(parts_of(value))
        if not parts:
            return None
        candidates = [mended_span(part.span, f"spans[{i}]", notes) for i, part in enumerate(parts)]
        spans = [span for span in candidates if span is not None]
        if not spans:
            return [Finding(rules.NOT_A_TRACE, "expected the spans of a trace, got none that can be read")]
    spans = _of_one_trace(spans, notes)
    entries = [translate(span, i, notes) for i, span in enumerate(spans)]
    translated = _once([entry for entry in entries if entry is not None])
    info = Info(trace_id=spans[0].trace or None)
    trace = Trace(info, [t.span for t in translated], notes=notes, spans_path="resourceSpans")
    if translated:
        _assemble(trace, translated, whole)
    has_tools = any([t.kind == "TOOL" for t in translated])
    for entry in translated:
        # An issue or a figure depends on the contents of retrievers, and of models, which hold tokens that are not
        # stated otherwise, and calls of tools that have no spans.
        matters = entry.kind == "RETRIEVER"
        if entry.kind in _MODELS:
            matters = not has_tools or not _COUNTED.issubset(entry.found)
        if whole or matters:
            entry.attributes  # noqa: B018 - reads it
    return trace


def _of_one_trace(spans: list[AnySpan], notes: list[Finding]) -> list[AnySpan]:
    if isinstance(spans[0], PlainSpan) and len({getattr(span, "traceId", None) for span in spans}) == 1:
        return spans
    traces = by_key((span.trace, span) for span in spans)
    if len(traces) == 1:
        return spans
    chosen = max(traces, key=lambda identity: (len(traces[identity]), identity))
    message = f"expected the spans of one trace, got those of {len(traces)}; the largest is read"
    notes.append(Finding(rules.ODD_TRACE, message, path="resourceSpans"))
    return traces[chosen]


_COUNTED = frozenset(["input_tokens", "output_tokens"])


def _order(translated: TranslatedSpan) -> tuple[int, str, str]:
    return translated.span.start or 0, translated.span.span_id or "", translated.span.name or ""


def _once(translated: list[TranslatedSpan]) -> list[TranslatedSpan]:
    """The spans in the order of their starts: files are not in order. A span that was sent twice counts once."""
    ids = {t.span.span_id for t in translated}
    if len(ids) == len(translated) and "" not in ids:
        starts = [t.span.start_time_unix_nano or 0 for t in translated]
        if len(set(starts)) == len(starts) and starts == sorted(starts):
            return translated
    ordered = sorted(translated, key=_order)
    seen: dict[str, TranslatedSpan] = {}
    for place, entry in enumerate(ordered):
        identity = entry.span.span_id or f"span {place}"
        entry.span.span_id = identity
        other = seen.get(identity)
        if other is None or _size(entry) > _size(other):
            seen[identity] = entry
    return list(seen.values())


def _size(translated: TranslatedSpan) -> tuple[int, bytes, bytes]:
    """Of two spans with one id, the larger one is the later state of it."""
    inputs, outputs = bytes(translated.attributes.inputs), bytes(translated.attributes.outputs)
    return len(inputs) + len(outputs), inputs, outputs


def _assemble(trace: Trace, translated: Sequence[TranslatedSpan], whole: bool) -> None:
    """Put all spans below one root; read the request, the response, the state and the session."""
    by_id = {t.span.span_id or "": t for t in translated}
    parents = {identity: t.span.parent_span_id for identity, t in by_id.items()}
    request_span, response_span = _request_and_response_spans(translated, parents)
    main = request_span or response_span
    path_down = _path_from_root((main or translated[0]).span.span_id or "", parents)
    root = by_id[path_down[0]].span
    tops = [identity for identity, parent in parents.items() if parent is None or parent not in parents]
    kind = by_id[path_down[0]].kind
    if kind in _LEAVES and (len(tops) != 1 or (kind not in _MODELS and main is not None)):
        # A root above spans that have none in common: below a model or a tool they would count as a part of it.
        spans = [by_id[identity].span for identity in tops] or [root]
        root = Span(name="trace", span_id="root of the trace", status=Status())
        root.start_time_unix_nano = min((s.start for s in spans if s.start is not None), default=None)
        root.end_time_unix_nano = max((s.end for s in spans if s.end is not None), default=None)
        root.attributes = Attributes(type="UNKNOWN")
        trace.spans.insert(0, root)
        parents[root.span_id or ""] = None
    if list(parents.values()).count(root.span_id) != len(parents) - 1 or root.parent_span_id is not None:
        for identity, parent in grounded(parents, root.span_id or "").items():
            if identity in by_id:
                by_id[identity].span.parent_span_id = parent
    # A trace failed if the agent did, or what called it. A status that was never set means success.
    callers = [by_id[identity].span for identity in path_down] if main else []
    failed = next((span for span in (root, *callers) if span.code in FAILED_CODES), None)
    trace.info.state = "ERROR" if failed is not None else "OK"
    if failed is not None and failed is not root:
        root.status = Status("ERROR", failed.status.message if isinstance(failed.status, Status) else None)
    own = by_id[root.span_id or ""].attributes if root.span_id in by_id else attributes(root)
    inputs, outputs = own.inputs, own.outputs
    if request_span is not None:
        inputs, trace.messages = _request(request_span, whole)
    if response_span is not None:
        outputs, trace.answer = _response(response_span, whole)
    root.attributes = Attributes(own.type, inputs, outputs, own.function_name, own.token_usage, own.tool_name)
    session = next((session for t in translated if (session := t.session)), None)
    usage = _usage_of_agents(translated, parents)
    if session is not None or usage is not NOTHING:
        trace.info.trace_metadata = Metadata(usage, NOTHING if session is None else Raw(jsontext.encode(session)))
    if (
        main is None
        and any(t.found for t in translated)
        and not any(t.attributes.inputs is not NOTHING or t.attributes.outputs is not NOTHING for t in translated)
    ):
        trace.notes.append(Finding(rules.TRACE_WITHOUT_CONTENT, NO_CONTENT, path="resourceSpans"))


NO_CONTENT = "expected the texts of the agent or of a model, got spans without any: capturing them is off by default"


def _request_and_response_spans(
    translated: Sequence[TranslatedSpan], parents: dict[str, str | None]
) -> tuple[TranslatedSpan | None, TranslatedSpan | None]:
    """The span with the request and the one with the response: agents before models, outer ones before inner ones."""
    agents = [t for t in translated if t.kind not in _LEAVES and t.found]
    models = [t for t in translated if t.kind in _MODELS]
    request_span = response_span = None
    for group in (agents, models):
        if request_span is None and (found := [t for t in group if t.attributes.inputs is not NOTHING]):
            request_span = _outermost(found, parents)[0]
        if response_span is None and (found := [t for t in group if t.attributes.outputs is not NOTHING]):
            response_span = _outermost(found, parents)[-1]
    return request_span, response_span


def _outermost(translated: Sequence[TranslatedSpan], parents: dict[str, str | None]) -> Sequence[TranslatedSpan]:
    """Those that are not below another one; all, if a loop leaves none."""
    if len(translated) == 1:
        return translated
    ids = {t.span.span_id or "" for t in translated}
    return [t for t in translated if ids.isdisjoint(_path_from_root(t.span.span_id or "", parents)[:-1])] or translated


def _path_from_root(identity: str, parents: dict[str, str | None]) -> list[str]:
    """The spans from the root down to a span; a loop, or a missing parent, ends the walk."""
    path = [identity]
    seen = {identity}
    at = parents.get(identity)
    while at is not None and at in parents and at not in seen:
        path.append(at)
        seen.add(at)
        at = parents[at]
    return path[::-1]


def _usage_of_agents(translated: Sequence[TranslatedSpan], parents: dict[str, str | None]) -> Raw:
    """The tokens that agents report, which count where no model reports any."""
    agents = [t for t in translated if t.kind not in _LEAVES and t.attributes.token_usage is not NOTHING]
    if len(agents) < 2:
        return agents[0].attributes.token_usage if agents else NOTHING
    totals: dict[str, int] = {}
    for entry in _outermost(agents, parents):
        for name, count in decoded(entry.attributes.token_usage).items():
            totals[name] = totals.get(name, 0) + count
    return Raw(jsontext.encode(jsontext.encode(totals).decode()))


def _request(request_span: TranslatedSpan, whole: bool = True) -> tuple[Raw, chat.Messages | None]:
    """The input of an agent as it is; messages in OpenAI's form, and of a model only these, not the parameters of the
    call. The messages too, where they were read; the input need not be written then if the trace is not `whole`."""
    own = request_span.attributes
    system = _instructions(request_span.system) if "system" in request_span.found else None
    plain = _plain_messages(own.inputs)
    value = plain or value_of(own.inputs)
    if own.type not in _MODELS and system is None and not isinstance(value, list | str):
        return own.inputs, None
    messages = plain or chat.read_messages(value)
    if messages is None:
        return own.inputs, None
    if system is not None and not any(m.get("role") == "system" for m in messages):
        messages = [{"role": "system", "content": system}, *messages]
    return Raw(jsontext.encode({"messages": messages})) if whole else own.inputs, messages


def _response(response_span: TranslatedSpan, whole: bool = True) -> tuple[Raw, str | None]:
    """The output as it is; of a list of messages the text, if the last one has any."""
    raw = response_span.attributes.outputs
    plain = _plain_messages(raw)
    value = plain or value_of(raw)
    if isinstance(value, dict) and "messages" in value and chat.read_answer(value)[0] is None:  # calls only
        whole_value = (part for _, part in response_span.found.get("outputs", ()) if not isinstance(part, list))
        return next(whole_value, raw), None
    if plain is not None and len(plain) == 1:
        text, is_known = plain[0]["content"], True
    else:
        text, is_known = chat.read_answer(value) if isinstance(value, list) else (None, False)
    if text is None or not is_known:
        return raw, None
    return Raw(jsontext.encode(jsontext.encode(text).decode())) if whole else raw, text


class _Text(Struct, gc=False, forbid_unknown_fields=True):
    type: Literal["text"]
    content: str


class _TextMessage(Struct, gc=False, forbid_unknown_fields=True):
    role: Literal["system", "user", "assistant"]
    parts: list[_Text]
    finish_reason: str | None = None


_text_messages = msgspec.json.Decoder(list[_TextMessage]).decode


def _plain_messages(raw: Raw) -> chat.Messages | None:
    """Messages of the GenAI conventions that have texts only, which most have; None of any other."""
    try:
        messages = _text_messages(content_text(raw))
    except ValueError:
        return None
    return [{"role": m.role, "content": "".join([part.content for part in m.parts])} for m in messages]


def _instructions(raw: Raw) -> str | None:
    value: Any = None if raw is NOTHING else decoded(raw)
    if isinstance(value, list):
        value = "\n".join(p["content"] for p in value if isinstance(p, dict) and isinstance(p.get("content"), str))
    return value if isinstance(value, str) and value else None


# ---------------------------------------------------------------------------------------------------------------------
# traces of MLflow whose spans come from OpenTelemetry
class _Attributed(Struct, gc=False):
    attributes: dict[str, Raw] | str | None = None
    events: Raw = NOTHING


class _Data(Struct, gc=False):
    spans: list[_Attributed] = []


class _Document(Struct, gc=False):
    data: _Data | None = None
    spans: list[_Attributed] = []


_document = msgspec.json.Decoder(_Document).decode


_NO_TYPES = frozenset([None, "UNKNOWN", '"UNKNOWN"'])


def may_be_completed(spans: Sequence[Span]) -> bool:
    """Whether a span of a trace of MLflow may have attributes of a convention: it has no type, or one that MLflow has
    read of them. Looking through the text for them takes longer than decoding it."""
    for span in spans:
        attrs: Any = span.attributes
        if (
            attrs.type in _NO_TYPES
            or attrs.genai_kind is not NOTHING
            or attrs.openinference_kind is not NOTHING
            or attrs.traceloop_kind is not NOTHING
            or attrs.vercel_kind is not NOTHING
            or attrs.langfuse_kind is not NOTHING
        ):
            return True
    return False


def complete(trace: Trace, text: str | bytes | memoryview) -> None:
    """Read the attributes of the conventions in the spans that have any: MLflow stores what it gets by OTLP as it came,
    beside what its translators read of it, which is less."""
    json = text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
    for mark in MARKS:
        if mark in json:
            break
    else:
        return
    try:
        document = _document(json)
    except ValueError:
        return
    spans = document.data.spans if document.data is not None else document.spans
    if len(spans) != len(trace.spans):
        return
    pairs = enumerate(zip(trace.spans, spans, strict=True))
    translated = sorted([_completed(span, document, i, trace) for i, (span, document) in pairs], key=_order)
    parents = {t.span.span_id or "": t.span.parent for t in translated}
    request_span, response_span = _request_and_response_spans(translated, parents)
    trace.request = trace.request if request_span is None else _request(request_span)[0]
    trace.response = trace.response if response_span is None else _response(response_span)[0]
    metadata = trace.info.trace_metadata or trace.info.request_metadata
    session = next((t.session for t in translated if t.session), None)
    if session is not None and (metadata is None or metadata.session is NOTHING):
        metadata = metadata or Metadata()
        trace.info.trace_metadata = Metadata(metadata.token_usage, Raw(jsontext.encode(session)), metadata.is_truncated)


def _completed(span: Span, document: _Attributed, place: int, trace: Trace) -> TranslatedSpan:
    own = attributes(span)
    is_typed = own.type not in _NO_TYPES
    if not isinstance(document.attributes, dict):
        return TranslatedSpan(span, own.type, {"kind": []} if is_typed else {})
    try:
        events = [] if document.events is NOTHING else _read_events(document.events)
    except ValueError:
        events = []
    read, fields = attributes_of(pairs_of_mlflow(document.attributes), span.name or "", events, place, trace.notes)
    if read is None:
        return TranslatedSpan(span, own.type)
    if not fields:
        return TranslatedSpan(span, own.type, {"kind": []} if is_typed else {})
    completed = span.attributes = type(read)(
        read.type if read.type != "UNKNOWN" else own.type,
        own.inputs if read.inputs is NOTHING else read.inputs,
        own.outputs if read.outputs is NOTHING else read.outputs,
        own.function_name,
        own.token_usage if read.token_usage is NOTHING else read.token_usage,
        own.tool_name if read.tool_name is NOTHING else read.tool_name,
    )
    return TranslatedSpan(span, completed.type, fields)


_read_events = msgspec.json.Decoder(list[Event]).decode
