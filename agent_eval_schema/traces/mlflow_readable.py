"""Whether MLflow reads a trace as it is.

MLflow rejects a whole trace for an unknown key, or for a span without its trace ID. So these are the exact types that
MLflow 3.6 and later write: the types of decode.py made strict, so that the answer comes with the decode that is needed
anyway. A trace that is not plain may still be valid: encode.py rewrites it before MLflow reads it.
"""

from __future__ import annotations

import re
import string
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct, field

from agent_eval_schema.issues import Finding
from agent_eval_schema.traces.assessments import are_judged, is_moment
from agent_eval_schema.traces.decode import Data, TraceDocument, decode_shallow
from agent_eval_schema.traces.spans import NOTHING, Attributes, Info, Span, Status, Trace, is_kind


class _PlainAttributes(Attributes, kw_only=True, gc=False):
    request_id: str = field(name="mlflow.traceRequestId")


_SpanId = Annotated[str, Meta(min_length=12, max_length=12)]
_Nothing = Annotated[list[None], Meta(max_length=0)]
_Nanoseconds = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class _PlainStatus(Status, kw_only=True, gc=False):
    code: Literal["STATUS_CODE_OK", "STATUS_CODE_ERROR", "STATUS_CODE_UNSET"]


class _PlainSpan(Span, eq=False, kw_only=True, gc=False):
    name: str
    span_id: _SpanId
    trace_id: str
    start_time_unix_nano: _Nanoseconds
    end_time_unix_nano: _Nanoseconds
    status: _PlainStatus
    attributes: _PlainAttributes
    parent_span_id: _SpanId | None  # the key has to be there
    links: _Nothing = field(default_factory=list)


class _Experiment(Struct, gc=False):
    experiment_id: str


class _PlainLocation(Struct, gc=False):
    type: Literal["MLFLOW_EXPERIMENT"]
    mlflow_experiment: _Experiment


class _PlainInfo(Info, forbid_unknown_fields=True, kw_only=True, gc=False):
    trace_id: str
    trace_location: _PlainLocation
    request_time: str
    state: Literal["OK", "ERROR", "IN_PROGRESS", "STATE_UNSPECIFIED"]
    execution_duration_ms: int | None = None
    request_preview: str | None = None
    response_preview: str | None = None
    tags: dict[str, str] | None = None  # type: ignore[assignment]


class _PlainData(Data, kw_only=True, gc=False):
    spans: list[_PlainSpan]  # type: ignore[assignment]


class _PlainDocument(TraceDocument, kw_only=True, gc=False):
    info: _PlainInfo
    data: _PlainData


class _Event(Struct, gc=False):
    name: str
    time_unix_nano: _Nanoseconds
    attributes: dict[str, str | int | float | bool] = {}


_plain_document = msgspec.json.Decoder(_PlainDocument).decode
_events = msgspec.json.Decoder(list[_Event]).decode
_EMPTY = Raw(b"[]")


def _is_plain(document: _PlainDocument) -> bool:
    """The conditions that types cannot express."""
    info = document.info
    if info.request_id is not None or info.status is not None or info.request_metadata is not None:
        return False  # keys of v2
    return is_moment(info.request_time) and _are_plain(document.data.spans) and are_judged(info.assessments)


def _are_plain(spans: list[_PlainSpan]) -> bool:
    """Whether there is one root above all, the IDs have the required form, and the events are events. It is called for
    every trace, so the parts that its spans share are examined once."""
    ids: list[str] = []
    seen: set[str | None] = set()
    roots: list[str] = []
    late: list[str] = []
    trace_id = request_id = None
    for span in spans:
        if span.trace_id != trace_id and not _TRACE_ID(trace_id := span.trace_id):
            return False
        if span.attributes.request_id != request_id and not _REQUEST_ID(request_id := span.attributes.request_id):
            return False
        if not is_kind(span.attributes.type):
            return False
        if span.events != _EMPTY and not are_events(span.events):
            return False
        if span.parent_span_id is None:
            roots.append(span.span_id)
        elif span.parent_span_id not in seen:
            late.append(span.parent_span_id)
        ids.append(span.span_id)
        seen.add(span.span_id)
    # A store loses a trace with a span before its parent, unless that is the root (mlflow 3.17).
    return len(roots) == 1 and _are_span_ids(ids) and (not late or set(late) == set(roots))


_TRACE_ID = re.compile("[A-Za-z0-9+/]{22}==").fullmatch
_REQUEST_ID = re.compile('".+"').fullmatch
_DIGITS = f"{string.ascii_letters}{string.digits}+/".encode()


def _are_span_ids(ids: list[str]) -> bool:
    """Whether each is eight bytes in base64: eleven digits and a "=". The types determine the length of each, so none
    can hide another when they are joined."""
    joined, ends = "".join(ids), "=" * len(ids)
    return joined[11::12] == ends and joined.encode().translate(None, _DIGITS) == ends.encode()


def are_events(given: Raw) -> bool:
    """Whether mlflow reads these as the events of a span."""
    try:
        if given is not NOTHING:
            _events(given)
    except msgspec.MsgspecError:
        return False
    return True


def decode_for_mlflow(text: str | bytes | memoryview, whole: bool = True) -> Trace | list[Finding]:
    """As `decode_shallow`; the trace is `plain` if mlflow can read the text as it is."""
    try:
        document = _plain_document(text)
    except ValueError:
        return decode_shallow(text, whole)
    data = document.data
    return Trace(document.info, [*data.spans], data.request, data.response, plain=_is_plain(document))
