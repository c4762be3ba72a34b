"""A row → a trace that MLflow can read.

mlflow's reader rejects a whole trace for one unknown key or one span without its trace id and does not support the
older encodings, and `mlflow.genai.evaluate` raises an exception for a row without a trace among rows with one. So a
trace that is not plainly in the format of MLflow 3 is rewritten, and a row without one gets one made of its columns
(both tagged MADE).

    rewritten       the spans of any encoding, in today's
    made_of         request, response, retrieved documents and tool calls as spans
"""

from __future__ import annotations

import base64
import hashlib
from binascii import b2a_base64
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Any

from msgspec import MsgspecError, Raw, Struct

from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import MADE, derive, status_message
from agent_eval_schema.traces.documents import documents_of_span, output_of
from agent_eval_schema.traces.mlflow_readable import are_documents, are_events, readable_assessments
from agent_eval_schema.traces.spans import (
    ATTRIBUTE_KEYS,
    FAILED_CODES,
    NOTHING,
    Attributes,
    AttributesById,
    Metadata,
    Span,
    Trace,
    grounded,
    is_kind,
    json_of,
    text_of,
    value_of,
)


def rewritten(text: str) -> str | None:
    """Any trace in the encoding of today, or None if it cannot be read. The spans keep all their attributes, the trace
    its tags, its metadata, and its assessments: expectations and feedback."""
    trace = decode_trace(text)
    if not isinstance(trace, Trace):
        return None
    document = jsontext.parse_leniently(text)
    document = jsontext.parse_leniently(document) if isinstance(document, str) else document
    document = document if isinstance(document, dict) else {}
    home = document["data"] if isinstance(document.get("data"), dict) else document
    spans = home["spans"] if isinstance(home.get("spans"), list) else []
    attributes = [_attributes_of(s) for s in spans] if len(spans) == len(trace.spans) else [{}] * len(trace.spans)
    derived = derive(trace)
    root = min((s for s in trace.spans if s.parent is None), key=lambda s: s.start or 0, default=None)
    drawn = [
        _Drawn(
            name=span.name,
            identity=span.id,
            parent=None if span is root else span.parent or "",
            start=span.start,
            attributes=_merged(span, original),
            end=span.end,
            failed=span.code in FAILED_CODES,
            events=span.events,
            message=status_message(span) or "",
        )
        for span, original in zip(trace.spans, attributes, strict=True)
    ]
    if root is None:
        contents = _texts(inputs=value_of(derived.inputs), outputs=value_of(derived.outputs))
        drawn.insert(0, _Drawn("root", "root", None, None, contents))
    info: dict[str, Any] = document["info"] if isinstance(document.get("info"), dict) else {}
    identity = trace.info.trace_id or trace.info.request_id or text
    # The session and the tokens of a trace that has no metadata of MLflow.
    own = trace.info.trace_metadata
    metadata = {} if own is None else {_SESSION: text_of(own.session), _TOKENS: json_of(own.token_usage)}
    return _trace(
        drawn,
        identity,
        "ERROR" if derived.failure else "OK",
        derived.latency_seconds,
        trace.info.client_request_id,
        {n: t for n, t in metadata.items() if t}
        | _strings(info.get("request_metadata"))
        | _strings(info.get("trace_metadata")),
        {**_strings(info.get("tags")), MADE: "rewritten"},
        info.get("assessments"),
    )


def as_mlflow_loads(text: str) -> str:
    """The trace as MLflow loads it: the text itself, if it has the two parts of a trace of MLflow."""
    try:
        _parts_in(text)
    except MsgspecError:
        return rewritten(text) or text
    return text


class _Parts(Struct):
    info: Raw
    data: Raw


_parts_in = jsontext.decoder(_Parts)


def made_of(row: dict[str, Any], identity: str, start: int) -> str:
    """A trace of a row without one: a root span with request and response, its documents and tool calls below it.
    `start` is in nanoseconds since 1970."""
    row = {**_NO_VALUES, **row}
    failed = row["failure"] is True
    inputs = row["request"] if row["inputs"] is None else row["inputs"]
    outputs = row["response"] if row["outputs"] is None else row["outputs"]
    own = _texts(inputs=inputs, outputs=outputs)
    # A store computes the state of a trace from the status of its root span.
    root = _Drawn("row", "0", None, start, own, failed=failed, message=row["error"] or "" if failed else "")
    spans = [root]
    if row["retrieved_context"] is not None:
        documents = [_as_retrieved(d.get("doc_uri"), d.get("content")) for d in row["retrieved_context"]]
        own = _texts(inputs=inputs, outputs=documents, type="RETRIEVER")
        spans.append(_Drawn("retrieved_context", "1", "0", start + 1, own))
    for i, call in enumerate(row["predicted_trajectory"] or ()):
        own = _texts(inputs=call.get("tool_input") or {}, type="TOOL")
        spans.append(_Drawn(call["tool_name"], f"call {i}", "0", start + 2 + i, own))
    counts = {n: count for n, column in _COUNTS.items() if (count := row[column]) is not None}
    metadata = {_SESSION: row["session_id"]} if row["session_id"] else {}
    if counts:
        metadata[_TOKENS] = jsontext.encode_text({n: int(c) for n, c in counts.items()})
    known = [name for name in TRACED_COLUMNS if row[name] is not None]
    tags = {MADE: f"of a row's columns: {', '.join(known)}"}
    return _trace(spans, identity, "ERROR" if failed else "OK", row["latency_seconds"], None, metadata, tags)


_NO_VALUES = dict.fromkeys(COLUMNS)
_COUNTS = {f"{kind}_tokens": f"{kind}_token_count" for kind in ("input", "output", "total")}

NOWHERE = "-1"
"""The experiment of a trace that is in none: mlflow takes a trace of the current experiment for one that it has."""
_NOWHERE = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": NOWHERE}}

TRACED_COLUMNS = (
    *("retrieved_context", "predicted_trajectory", "latency_seconds", "failure"),
    *("input_token_count", "output_token_count", "total_token_count"),
)
"""The columns that a scorer reads from a trace only; a trace that is made of a row contains those that the row has."""


def place_of(text: str) -> tuple[str, str | None]:
    """The ID of a plain trace, and the experiment that it names."""
    info = jsontext.decode(text)["info"]
    return info["trace_id"], (info["trace_location"].get("mlflow_experiment") or {}).get("experiment_id")


def with_session(text: str, session: str) -> str:
    """A plain trace in a session, which MLflow reads in its metadata only; its own session stays if it is the same."""
    value = jsontext.decode(text)
    metadata = value["info"].get("trace_metadata") or {}
    if metadata.get(_SESSION) == session:
        return text
    value["info"]["trace_metadata"] = {**metadata, _SESSION: session}
    return jsontext.encode_text(value)


def placed_nowhere(text: str, tags: dict[str, str]) -> str:
    """The trace with these tags as one that no store has."""
    value = jsontext.decode(text)
    value["info"]["tags"] = {**(value["info"].get("tags") or {}), **tags}
    value["info"]["trace_location"] = _NOWHERE
    return jsontext.encode_text(value)


def _texts(**values: Any) -> dict[str, str]:
    """Span attributes: each value is JSON text."""
    return {ATTRIBUTE_KEYS[k]: jsontext.encode(v).decode() for k, v in values.items() if v is not None}


_TYPE = ATTRIBUTE_KEYS["type"]


def _attributes_of(span: Any) -> dict[str, str]:
    pairs = span.get("attributes") if isinstance(span, dict) else None
    pairs = jsontext.parse_leniently(pairs) if isinstance(pairs, str) else pairs
    texts = (
        {k: v if isinstance(v, str) else jsontext.encode_text(v) for k, v in pairs.items()}
        if isinstance(pairs, dict)
        else {}
    )
    if not is_kind(texts.get(_TYPE)):
        del texts[_TYPE]
    return texts


def _merged(span: Span, original: dict[str, str]) -> dict[str, str]:
    """The original attributes, and those that were derived from an encoding that had none of MLflow's."""
    own = span.attributes if isinstance(span.attributes, Attributes) else Attributes()
    original = {k: v for k, v in original.items() if k != _TYPE or own.type is None or v.strip('"') != "UNKNOWN"}
    derived = {_TYPE: jsontext.encode_text(own.type.strip('"'))} if own.type is not None else {}
    for field in ("inputs", "outputs", "token_usage", "tool_name"):
        raw, name = getattr(own, field), ATTRIBUTE_KEYS[field]
        if field == "outputs" and isinstance(own, AttributesById):
            raw = Raw(jsontext.encode(output_of(own)))
        text = text_of(raw) if bytes(raw)[:1] == b'"' else bytes(raw).decode()
        if text and name not in original:
            derived[name] = text
    if (own.type or "").strip('"') == "RETRIEVER" and not are_documents(own.outputs):
        documents = documents_of_span(span)
        if any(d.doc_uri or d.content for d in documents):  # else there is nothing that could be read
            original |= _texts(outputs=[_as_retrieved(d.doc_uri, d.content) for d in documents])
    return {**derived, **original}


def _as_retrieved(uri: str | None, content: str | None) -> dict[str, Any]:
    """A document as MLflow's retriever spans have it."""
    return {"page_content": content or "", "metadata": {"doc_uri": uri}}


_TOKENS, _SESSION, _ = Metadata.__struct_encode_fields__


def _strings(value: Any) -> dict[str, str]:
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


class _Drawn(Struct):
    """A span to be written; `identity` and `parent` are names that only have to be distinct. Only the root has None as
    its parent; a span whose parent is missing becomes a child of the root."""

    name: str | None
    identity: str | None
    parent: str | None
    start: int | None
    attributes: dict[str, str]
    end: int | None = None
    failed: bool = False
    events: Raw = NOTHING
    message: str = ""


def _trace(
    spans: list[_Drawn],
    identity: str,
    state: str,
    latency: float | None,
    client_id: str | None,
    metadata: dict[str, str],
    tags: dict[str, str],
    assessments: Any = None,
) -> str:
    number = hashlib.sha256(identity.encode("utf-8", "replace")).digest()[:16]
    trace_id = identity if identity.startswith("tr-") and len(identity) == 35 else f"tr-{number.hex()}"
    # 146 years: a span that takes longer ends at a time that has no place in 64 bits of nanoseconds
    duration = round(min(max((latency or 0) * 1000, 0), (1 << 62) // 1_000_000))
    seconds = min(max(min([s.start or 0 for s in spans], default=0) / 1e9, 0), 253_402_300_799)
    moment = _moment(seconds)
    info = {
        "trace_id": trace_id,
        **({"client_request_id": client_id} if client_id else {}),
        "trace_location": _NOWHERE,
        "request_time": moment,
        "state": state,
        "execution_duration_ms": duration,
        "trace_metadata": {"mlflow.trace_schema.version": "3", **metadata},
        "tags": tags,
    }
    written = [_span_id(i, span.identity or "") for i, span in enumerate(spans)]
    ids: dict[str, str] = {}
    for span, short in zip(spans, written, strict=True):
        if span.identity:
            ids.setdefault(span.identity, short)  # of spans with one id, the first is the parent
    if assessments:
        # MLflow's name of a span is its ID in hexadecimal digits; assessments name it so, or as it was written before.
        names: dict[str, str] = {}
        for name, short in ids.items():
            new = base64.b64decode(short).hex()
            names.setdefault(name, new)
            with suppress(ValueError):
                names.setdefault(base64.b64decode(name, validate=True).hex(), new)
        if readable := readable_assessments(assessments, trace_id, moment, names):
            info["assessments"] = readable
    root = written[[span.parent for span in spans].index(None)]
    above = {w: ids.get(span.parent or "") for span, w in zip(spans, written, strict=True)}
    is_flat = list(above.values()) == [None, *[root] * (len(spans) - 1)]  # as all that are made of rows
    above = above if is_flat else grounded(above, root)
    written_id = b2a_base64(number, newline=False).decode()
    of_trace = {"mlflow.traceRequestId": jsontext.encode_text(trace_id)}
    drawn = [
        {
            "trace_id": written_id,
            "span_id": short,
            "parent_span_id": above[short],
            **_span(span, of_trace, duration),
        }
        for span, short in zip(spans, written, strict=True)
    ]
    if not is_flat:  # a store loses a trace with a span before its parent
        depths: dict[str, int] = {}
        sorter = TopologicalSorter({span: [parent] for span, parent in above.items() if parent})
        sorter.prepare()
        while ready := sorter.get_ready():
            depths |= dict.fromkeys(ready, len(depths))
            sorter.done(*ready)
        drawn.sort(key=lambda span: depths[span["span_id"]])
    return jsontext.encode_text({"info": info, "data": {"spans": drawn}})


@lru_cache(maxsize=1 << 12)
def _moment(seconds: float) -> str:
    """A time since 1970 as MLflow writes it; rows that have no time all begin at once."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=1 << 12)
def _span_id(number: int, identity: str) -> str:
    """Eight bytes that are the span's own, in base64, as OpenTelemetry has them; those of rows are the same ones."""
    digest = hashlib.sha256(f"{number} {identity}".encode("utf-8", "replace")).digest()
    return b2a_base64(digest[:8], newline=False).decode()


def _span(span: _Drawn, own: dict[str, str], duration: int) -> dict[str, Any]:
    """All fields of a span except its IDs; one without an end ends with the trace."""
    start = span.start or 0
    events: list[Any] = []
    if span.events is not NOTHING:
        value = jsontext.parse_leniently(bytes(span.events).decode("utf-8", "replace"))
        events = [  # up to 2.22 the time had another name; it was in nanoseconds, too
            {("time_unix_nano" if k == "timestamp" else k): v for k, v in e.items()} if isinstance(e, dict) else e
            for e in (value if isinstance(value, list) else [])
        ]
    return {
        "name": span.name or "span",
        "start_time_unix_nano": start,
        "end_time_unix_nano": span.end or start + duration * 1_000_000,
        "events": events if events and are_events(Raw(jsontext.encode(events))) else [],
        "status": {"code": "STATUS_CODE_ERROR" if span.failed else "STATUS_CODE_OK", "message": span.message},
        "attributes": {_TYPE: '"UNKNOWN"', **span.attributes, **own},
    }
