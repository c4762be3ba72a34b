"""What backends and exporters put around spans → the spans.

    {"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans": [...]}]}]}  OTLP; a collector writes many, by line
    {"batches": [{"resource", "instrumentationLibrarySpans": [...]}]}             Grafana Tempo
    {"resource_spans": [{"scope_spans": [{"spans": [...]}]}]}                     protobuf field names, Phoenix
    {"data": [{"traceID", "spans": [...], "processes"}]}                          Jaeger
    [{"trace_id", "span_id", "attributes": {…}, …}, …]                            Strands, ADOT: a flat list, or lines
    {"context": {"trace_id", "span_id"}, "span_kind", "attributes", …}            Phoenix: a line per span
    {"trace": {…}, "observations": [...]}                                         Langfuse: a downloaded trace

The usual document is read without making objects of it; the others are parsed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.spans import NOTHING, Context

Json = dict[str, Any]
S = TypeVar("S")


class FoundSpan(NamedTuple):
    """A span as it was written, the trace that it belongs to, and what stood around it."""

    trace_id: str
    span: Any
    resource: Any = None
    scope: Any = None


_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_TRACE_IDS, _SPAN_IDS = ("traceId", "trace_id", "traceID"), ("spanId", "span_id", "spanID")


def parts_of(document: Any) -> Iterator[FoundSpan]:
    """The spans in a document of any tool; none if it is not one. What is no span is passed on to be reported."""
    if isinstance(document, list):
        for item in document:
            yield from parts_of(item)
        return
    if not isinstance(document, dict):
        return
    for key in ("resourceSpans", "resource_spans", "batches"):
        for group in _list(document.get(key)):
            if not isinstance(group, dict):
                yield FoundSpan("", group)
                continue
            for scope in (scope for name in _SCOPES for scope in _list(group.get(name))):
                inner = scope if isinstance(scope, dict) else {"spans": [scope]}
                about = inner.get("scope", inner.get("instrumentationLibrary"))
                for span in _list(inner.get("spans")):
                    yield FoundSpan(trace_id_of(span), span, group.get("resource"), about)
    if isinstance(document.get("observations"), list):
        yield from (FoundSpan(trace_id_of(span), span) for span in spans_of_download(document))
    elif isinstance(document.get("data"), list):
        for item in document["data"]:
            yield from _of_jaeger(item) if isinstance(item, dict) and "spans" in item else parts_of(item)
    elif is_span(document):
        yield FoundSpan(trace_id_of(document), document, None, document.get("scope"))


def _of_jaeger(trace: Json) -> Iterator[FoundSpan]:
    processes = trace["processes"] if isinstance(trace.get("processes"), dict) else {}
    for span in _list(trace.get("spans")):
        about = processes.get(str(span.get("processID"))) if isinstance(span, dict) else None
        tags = about.get("tags") if isinstance(about, dict) else None
        yield FoundSpan(trace_id_of(span) or _id(trace.get("traceID")), span, {"attributes": tags} if tags else None)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def is_span(value: Mapping[str, Any]) -> bool:
    """Whether an object is a span by its keys: it has the id of its trace and its own."""
    inner = value.get("context")
    home = inner if isinstance(inner, dict) else value
    has_ids = any(k in home for k in _TRACE_IDS) and any(k in home for k in _SPAN_IDS)
    return has_ids and ("attributes" in value or "tags" in value)


def trace_id_of(span: Any) -> str:
    """The id of the trace of a span, as hexadecimal digits; empty if it has none."""
    context = span.get("context") if isinstance(span, dict) else None
    homes = [home for home in (span, context) if isinstance(home, dict)]
    return next((_id(home[k]) for home in homes for k in _TRACE_IDS if home.get(k)), "")


def _id(value: Any) -> str:
    return normal_id(value, 16) if isinstance(value, str) else ""


_HEX = re.compile("(?:[0-9a-fA-F]{2})+").fullmatch


def normal_id(text: str, size: int) -> str:
    """An id in small hexadecimal digits. Protobuf's own JSON writes bytes in base64; any other text is kept."""
    if len(text) == size * 2 and _HEX(text):
        return text if text.islower() else text.lower()
    if len(text) == 4 * -(-size // 3) and text[-1:] == "=":
        try:
            return base64.b64decode(text, validate=True).hex()
        except ValueError:
            return text
    return text


# ---------------------------------------------------------------------------------------------------------------------
# the usual document, without making objects of it
class _Ids(Struct, gc=False):
    traceId: str = ""
    trace_id: str = ""
    traceID: str = ""
    context: Context | None = None


class Scope(Struct, Generic[S], gc=False):
    scope: Raw = NOTHING
    spans: list[S] = []


class Resource(Struct, Generic[S], gc=False):
    """The spans of a resource in the usual document, each decoded as an S."""

    resource: Raw = NOTHING
    scopeSpans: list[Scope[S]] = []


_ids = jsontext.decoder(list[Resource[_Ids]])


def trace_ids(groups: bytes) -> list[str] | None:
    """The ids of the traces in the text of a list of `resourceSpans`; None if it has to be read part by part."""
    first = _lone_trace_id(groups)
    if first is not None:
        return [first]
    try:
        resources = _ids(groups)
    except ValueError:
        return None
    ids = [span.traceId for group in resources for scope in group.scopeSpans for span in scope.spans]
    return None if not all(ids) else list(dict.fromkeys(normal_id(i, 16) for i in ids))


_KEY = b'"traceId"'


def _lone_trace_id(groups: bytes) -> str | None:
    """The one id that a text names, found without parsing: links name those of other traces, and attributes may be
    called so, in which case there are several."""
    at = groups.find(_KEY)
    if at < 0:
        return None
    start = groups.find(b'"', at + len(_KEY)) + 1
    end = groups.find(b'"', start, start + 64)
    pair = groups[at : end + 1]
    if end < 0 or groups.count(pair) != groups.count(_KEY):
        return None
    between = pair[len(_KEY) : start - at - 1]
    return normal_id(pair[start - at : -1].decode("ascii", "replace"), 16) if between.strip() == b":" else None


_groups = jsontext.decoder(list[Resource[Raw]])
_span_ids = msgspec.json.Decoder(_Ids).decode


def raw_parts(groups: bytes) -> list[FoundSpan]:
    """The spans in the text of a list of `resourceSpans`, each as its JSON text; read generically if it is unusual."""
    try:
        parts = []
        for group in _groups(groups):
            for scope in group.scopeSpans:
                around = [None if raw is NOTHING else raw for raw in (group.resource, scope.scope)]
                for span in scope.spans:
                    ids = _span_ids(span)
                    of_context = ids.context.trace_id if ids.context is not None else None
                    trace_id = ids.traceId or ids.trace_id or ids.traceID or of_context or ""
                    parts.append(FoundSpan(normal_id(trace_id, 16), span, *around))
        return parts
    except ValueError:
        value = jsontext.parse_leniently(groups.decode("utf-8", "replace"))
        return list(parts_of({"resourceSpans": value}))


def joined(parts: Sequence[FoundSpan]) -> str:
    """The text of a list of `resourceSpans` with these spans; neighbors with the same resource and scope share it."""
    groups: list[Json] = []
    last: tuple[bytes, bytes] | None = None
    spelled: dict[bytes, bytes] = {}  # each text of a resource or a scope as it is without blanks

    def compact(value: Any) -> bytes:
        text = bytes(value) if isinstance(value, Raw) else jsontext.encode(value)
        if text not in spelled:
            spelled[text] = jsontext.encode(jsontext.parse_leniently(text.decode("utf-8", "replace")))
        return spelled[text]

    for part in parts:
        about = compact(part.resource), compact(part.scope)
        if about != last or not groups:
            scope = {} if part.scope is None else {"scope": part.scope}
            resource = {} if part.resource is None else {"resource": part.resource}
            groups.append({**resource, "scopeSpans": [{**scope, "spans": []}]})
        groups[-1]["scopeSpans"][0]["spans"].append(part.span)
        last = about
    return jsontext.encode(groups).decode()


# ---------------------------------------------------------------------------------------------------------------------
# recognition
OTHER_SIGNALS = frozenset({"resourceMetrics", "resourceLogs", "resource_metrics", "resource_logs", "resourceProfiles"})
"""The keys of documents of OTLP that hold no spans."""


def are_empty_groups(value: Any) -> bool:
    """Whether a value is a list of resources without spans, as an exporter may send it."""
    return isinstance(value, list) and all(isinstance(group, dict) and _OF_GROUP.issuperset(group) for group in value)


_OF_GROUP = frozenset({"resource", "schemaUrl", "schema_url", *_SCOPES})


def is_document(value: Any) -> bool:
    """Whether a value is a document of spans, or a span, of any of these tools."""
    if isinstance(value, list):
        return bool(value) and is_document(value[0])
    if not isinstance(value, dict):
        return False
    if "resourceSpans" in value or "resource_spans" in value or not OTHER_SIGNALS.isdisjoint(value):
        return True
    groups = value.get("batches")
    if isinstance(groups, list):
        return any(isinstance(g, dict) and any(key in g for key in _SCOPES) for g in groups[:1])
    if isinstance(value.get("observations"), list):
        return (
            "trace" in value
            or "scores" in value
            or any(isinstance(o, dict) and "parentObservationId" in o for o in value["observations"][:1])
        )
    if isinstance(value.get("data"), list):
        first = value["data"][:1]
        return any(isinstance(t, dict) and (("traceID" in t and "spans" in t) or is_span(t)) for t in first)
    return is_span(value)


# ---------------------------------------------------------------------------------------------------------------------
# Langfuse
_OF_OBSERVATION = {
    "input": "langfuse.observation.input",
    "output": "langfuse.observation.output",
    "usageDetails": "langfuse.observation.usage_details",
    "level": "langfuse.observation.level",
    "statusMessage": "langfuse.observation.status_message",
}
_OF_DOWNLOAD = {"input": "langfuse.trace.input", "output": "langfuse.trace.output", "sessionId": "session.id"}


def spans_of_download(document: dict[str, Any]) -> Iterator[Any]:
    """The observations of a trace that was downloaded from Langfuse as spans, with the attributes that its SDK writes:
    `{"trace": {"id", "input", "output", "sessionId"}, "observations": [...]}` up to Langfuse 3, `{"observations",
    "scores"}` from 4 on. The values of the trace itself belong to the spans without a parent."""
    trace = document["trace"] if isinstance(document.get("trace"), dict) else {}
    of_trace = {}
    for key, name in _OF_DOWNLOAD.items():
        if (value := trace.get(key)) is not None:  # the input and the output are JSON text inside of JSON text
            is_text = isinstance(value, str) and value[:1] == '"'
            of_trace[name] = jsontext.parse_leniently(value) if is_text else value
    for observation in document["observations"]:
        if not isinstance(observation, dict):
            yield observation
            continue
        fields = {name: observation[key] for key, name in _OF_OBSERVATION.items() if observation.get(key) is not None}
        kind = observation.get("type")
        parent = observation.get("parentObservationId")
        yield {
            "trace_id": observation.get("traceId") or trace.get("id"),
            "span_id": observation.get("id"),
            "parent_id": parent,
            "name": observation.get("name"),
            "start_time": observation.get("startTime"),
            "end_time": observation.get("endTime"),
            "attributes": {
                **({} if parent else of_trace),
                **fields,
                **({"langfuse.observation.type": kind.lower()} if isinstance(kind, str) else {}),
                **({"session.id": of_trace["session.id"]} if "session.id" in of_trace else {}),
            },
        }
