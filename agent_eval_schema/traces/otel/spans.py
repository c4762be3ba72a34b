"""One span in any spelling → its parts: ids, times, status, attributes and events.

OTLP, its spelling in snake_case, Jaeger, Phoenix, Strands and Langfuse name the same parts; one Struct has the keys of
all of them side by side, as `traces/spans.py` has those of MLflow's generations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.traces.otel.envelopes import Resource, Scope, normal_id
from agent_eval_schema.traces.spans import NOTHING, Context

S = TypeVar("S", bound=Struct)


class KeyValue(Struct, gc=False):
    """An attribute of OTLP, or a tag of Jaeger."""

    key: str
    value: Raw = NOTHING


Attributes = list[KeyValue] | dict[str, Raw]


class Event(Struct, gc=False):
    """An event of a span, a log of Jaeger (`fields`), or a log record of ADOT (`body`)."""

    name: str | None = None
    event_name: str | None = None
    attributes: Attributes | None = None
    fields: list[KeyValue] | None = None
    body: Raw = NOTHING


class SpanStatus(Struct, gc=False):
    code: int | str | None = None
    status_code: int | str | None = None
    message: str | None = None
    description: str | None = None


class Reference(Struct, gc=False):
    """The parent of a span of Jaeger."""

    refType: str | None = None
    spanID: str | None = None


Outline = tuple[str | None, str, str | None, int | None, int | None, Sequence[Event]]
"""The name of a span, its id and that of its parent, its times in nanoseconds, and its events."""


class OtelSpan(Struct, gc=False, kw_only=True):
    """One span; the keys of all tools side by side."""

    traceId: str | None = None
    trace_id: str | None = None
    traceID: str | None = None
    spanId: str | None = None
    span_id: str | None = None
    spanID: str | None = None
    context: Context | None = None
    parentSpanId: str | None = None
    parent_span_id: str | None = None
    parent_id: str | None = None
    references: list[Reference] | None = None
    name: str | None = None
    operationName: str | None = None
    startTimeUnixNano: int | str | float | None = None
    start_time_unix_nano: int | str | float | None = None
    start_time: int | str | float | None = None
    startTime: int | str | float | None = None
    endTimeUnixNano: int | str | float | None = None
    end_time_unix_nano: int | str | float | None = None
    end_time: int | str | float | None = None
    duration: int | float | None = None
    status: SpanStatus | str | None = None
    status_code: str | int | None = None
    status_message: str | None = None
    span_kind: str | None = None
    attributes: Attributes | None = None
    tags: list[KeyValue] | None = None
    events: list[Event] | None = None
    span_events: list[Event] | None = None
    logs: list[Event] | None = None

    @property
    def trace(self) -> str:
        own = self.traceId or self.trace_id or self.traceID or (self.context.trace_id if self.context else None)
        return normal_id(own or "", 16)

    @property
    def id(self) -> str:
        own = self.spanId or self.span_id or self.spanID or (self.context.span_id if self.context else None)
        return normal_id(own or "", 8)

    @property
    def parent(self) -> str | None:
        parent = self.parentSpanId or self.parent_span_id or self.parent_id
        if parent is None and self.references:
            parent = next((r.spanID for r in self.references if r.refType in (None, "CHILD_OF")), None)
        return normal_id(parent, 8) if parent and parent != "0000000000000000" else None

    @property
    def start(self) -> int | None:
        if self.startTime is not None and self.startTimeUnixNano is None:  # Jaeger, in microseconds
            return _nanoseconds(self.startTime, 1_000)
        times = (self.startTimeUnixNano, self.start_time_unix_nano, self.start_time)
        return _nanoseconds(next((t for t in times if t is not None), None))

    @property
    def end(self) -> int | None:
        times = (self.endTimeUnixNano, self.end_time_unix_nano, self.end_time)
        end = next((t for t in times if t is not None), None)
        if end is None and self.duration is not None and self.start is not None:
            end = self.start + int(self.duration * 1_000)
        return _nanoseconds(end)

    def outline(self) -> Outline:
        name, events = self.name or self.operationName, self.events or self.span_events or self.logs or ()
        return name, self.id, self.parent, self.start, self.end, events

    def pairs(self) -> list[Pair]:
        """The attributes."""
        pairs: list[Pair] = as_pairs(pairs_of(self.attributes if self.attributes is not None else self.tags))
        if self.span_kind and not self.span_kind.startswith("SPAN_KIND"):  # Phoenix takes it out of the attributes
            pairs.append(KeyValue("openinference.span.kind", Raw(jsontext.encode(self.span_kind.upper()))))
        return pairs


class Value(Struct, gc=False):
    """The AnyValue of an attribute, the scalars first."""

    stringValue: Raw = NOTHING
    intValue: Raw = NOTHING
    boolValue: Raw = NOTHING
    doubleValue: Raw = NOTHING
    arrayValue: Raw = NOTHING
    kvlistValue: Raw = NOTHING
    bytesValue: Raw = NOTHING

    def raw(self) -> Raw:
        """The JSON of a scalar; a list or a map as it is wrapped."""
        for scalar in (self.stringValue, self.intValue, self.boolValue, self.doubleValue):
            if scalar is not NOTHING:
                return scalar
        for name in ("arrayValue", "kvlistValue", "bytesValue"):
            if (inner := getattr(self, name)) is not NOTHING:
                return Raw(b'{"%s":%s}' % (name.encode(), bytes(inner)))
        return NOTHING


class PlainKeyValue(Struct, gc=False):
    key: str
    value: Value | None = None


Pair = KeyValue | PlainKeyValue
"""An attribute, whose value is made plain only if something is derived from it."""


def as_pairs(attributes: Iterable[tuple[str, Raw]]) -> list[Pair]:
    return [KeyValue(name, raw) for name, raw in attributes]


class PlainSpan(Struct, gc=False):
    """A span as the exporters write it: the few keys of it cost less than those of all tools."""

    traceId: str
    spanId: str
    name: str | None = None
    parentSpanId: str | None = None
    startTimeUnixNano: int | None = None
    endTimeUnixNano: int | None = None
    attributes: list[PlainKeyValue] = []
    status: SpanStatus | None = None
    events: list[Event] | None = None

    @property
    def trace(self) -> str:
        return normal_id(self.traceId, 16)

    def outline(self) -> Outline:
        own, parent, start = self.spanId, self.parentSpanId, self.startTimeUnixNano
        if parent is not None:
            if not parent or parent == "0000000000000000":
                parent = None
            else:
                parent = parent.lower() if len(parent) == 16 else normal_id(parent, 8)
        if start is not None and start.bit_length() > 63:
            start = None
        identity = own.lower() if len(own) == 16 else normal_id(own, 8)
        return self.name, identity, parent, start, self.endTimeUnixNano, self.events or ()

    def pairs(self) -> Sequence[Pair]:
        return self.attributes


AnySpan = PlainSpan | OtelSpan


def _nanoseconds(value: int | str | float | None, factor: int = 1) -> int | None:
    """A time in ns: a number, the same as text, or an ISO time."""
    if isinstance(value, str):
        if value.isdecimal() and value.isascii():
            value = int(value) if len(value) < 20 else None
        else:
            try:
                return micros_since_epoch(read_iso(value)) * 1_000
            except (ValueError, OverflowError):
                return None
    if isinstance(value, float):
        value = int(value) if abs(value) < 1 << 62 else None
    return value * factor if value is not None and (value * factor).bit_length() < 64 else None


# ---------------------------------------------------------------------------------------------------------------------
# the usual document
class _PlainDocument(Struct, gc=False):
    resourceSpans: list[Resource[PlainSpan]]


_plain_document = msgspec.json.Decoder(_PlainDocument, strict=False).decode
"""Not strict: protobuf's JSON writes the 64 bits of a time as text."""


class _Resource(Resource[OtelSpan], gc=False):
    scope_spans: list[Scope[OtelSpan]] = field(default_factory=list)
    instrumentationLibrarySpans: list[Scope[OtelSpan]] = field(default_factory=list)


class _Document(Struct, gc=False):
    resourceSpans: list[_Resource] = []
    resource_spans: list[_Resource] = []
    batches: list[_Resource] = []


_document = msgspec.json.Decoder(_Document).decode


def usual_spans(text: str | bytes | memoryview) -> Sequence[AnySpan]:
    """The spans of a document of OTLP or Tempo. Raises MsgspecError if a part of it has another type."""
    try:
        plain = _plain_document(text).resourceSpans
        if spans := [span for group in plain for scope in group.scopeSpans for span in scope.spans]:
            return spans
    except msgspec.MsgspecError:
        pass
    document = _document(text)
    groups = (*document.resourceSpans, *document.resource_spans, *document.batches)
    scopes = [s for g in groups for s in (*g.scopeSpans, *g.scope_spans, *g.instrumentationLibrarySpans)]
    return [span for scope in scopes for span in scope.spans]


# ---------------------------------------------------------------------------------------------------------------------
# the second look
def mended_span(value: Any, path: str, notes: list[Finding]) -> OtelSpan | None:
    """The span in a value, without the parts that do not fit, which are noted; None if it is not an object."""
    if not isinstance(value, dict):
        notes.append(Finding(rules.ODD_TRACE, f"expected a span (an object), got {describe(value)}", path=path))
        return None
    return typed(value, OtelSpan) or typed(fitting_parts(value, OtelSpan, path, notes), OtelSpan)


def fitting_parts(value: dict[str, Any], kind: type[Struct], path: str, notes: list[Finding]) -> dict[str, Any]:
    """The object without the keys whose values do not fit a type, which are noted: a whole number may be a float, and
    of a list the entries that fit are kept."""
    parts: dict[str, Any] = {}
    for key, entry in value.items():
        fitting = int(entry) if isinstance(entry, float) and isfinite(entry) else entry
        if isinstance(entry, list):
            fitting = [item for item in entry if typed({key: [item]}, kind) is not None]
        parts |= next(({key: v} for v in (entry, fitting) if typed({key: v}, kind) is not None), {})
        if entry is not None and (key not in parts or (isinstance(entry, list) and len(parts[key]) < len(entry))):
            notes.append(Finding(rules.ODD_TRACE, f"omitted: got {describe(entry)}", path=f"{path}.{key}"))
    return parts


def typed(value: Any, kind: type[S]) -> S | None:
    """The object as a Struct; None if a part of it does not fit."""
    try:
        return msgspec.json.decode(jsontext.encode(value), type=kind)
    except (ValueError, TypeError):
        return None


def pairs_of(attributes: Attributes | None) -> Iterator[tuple[str, Raw]]:
    if isinstance(attributes, dict):
        yield from attributes.items()
    elif attributes is not None:
        for pair in attributes:
            yield pair.key, pair.value
