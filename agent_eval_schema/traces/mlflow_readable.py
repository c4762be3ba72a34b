"""Whether MLflow reads a trace as it is.

MLflow rejects a whole trace for an unknown key, or for a span without its trace ID. So these are the exact types that
MLflow 3.6 and later write: the types of decode.py made strict, so that the answer comes with the decode that is needed
anyway. A trace that is not plain may still be valid: encode.py rewrites it before MLflow reads it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, field

from agent_eval_schema.issues import Finding
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.moments import read_iso
from agent_eval_schema.traces.decode import Data, TraceDocument, decode_shallow
from agent_eval_schema.traces.documents import WithText
from agent_eval_schema.traces.spans import NOTHING, Attributes, Info, Span, Status, Trace, content_text, is_kind


# ---------------------------------------------------------------------------------------------------------------------
# The assessments of people and judges on a trace, as MLflow reads them.
#
# MLflow rejects a whole trace for one assessment that it cannot read. Here are the exact types of the two kinds that
# describe a run; when a trace is rewritten, the assessments of these types are kept. A reference to an issue is not one
# of them: it points into the store of the trace, and MLflow 3.5 rejects a trace with it.
class _Source(Struct, forbid_unknown_fields=True, gc=False):
    source_type: Literal["HUMAN", "LLM_JUDGE", "CODE", "SOURCE_TYPE_UNSPECIFIED"]
    source_id: str | None = None


class _Serialized(Struct, gc=False):
    serialization_format: str
    value: str


class _Expectation(Struct, gc=False):
    value: Any = UNSET
    serialized_value: _Serialized | None = None


class _Error(Struct, forbid_unknown_fields=True, gc=False):
    error_code: str
    error_message: str | None = None
    stack_trace: str | None = None


class _Feedback(Struct, gc=False):
    value: Any  # the key has to be there
    error: _Error | None = None


class _Assessment(Struct, forbid_unknown_fields=True, gc=False):
    assessment_name: str
    source: _Source
    create_time: str
    last_update_time: str
    expectation: _Expectation | None = None
    feedback: _Feedback | None = None
    assessment_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    rationale: str | None = None
    metadata: dict[str, str] | None = None
    overrides: str | None = None
    valid: bool | None = None


_assessments = msgspec.json.Decoder(list[_Assessment]).decode


def _is_readable(assessment: _Assessment) -> bool:
    """The conditions that types cannot express."""
    expectation = assessment.expectation
    if (expectation is None) == (assessment.feedback is None):
        return False
    if expectation is not None:
        value = expectation.value
        if value is UNSET and expectation.serialized_value is not None:
            try:
                value = jsontext.decode(expectation.serialized_value.value)
            except msgspec.MsgspecError:
                return False
        if value in (None, UNSET):
            return False
    return is_moment(assessment.create_time) and is_moment(assessment.last_update_time)


def is_moment(text: str) -> bool:
    """Whether protobuf reads the text as a time."""
    if _ANY_MOMENT(text):
        return True
    try:
        return bool(_MOMENT(text) and read_iso(text))
    except ValueError:  # the thirteenth month
        return False


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z").fullmatch
_ANY_MOMENT = re.compile(
    r"[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?Z"
).fullmatch
"""A time of a day that every month has, which is almost any: it needs no calendar."""


def readable_assessments(value: Any, trace_id: str, moment: str, spans: Mapping[str, str]) -> list[dict[str, Any]]:
    """The assessments that MLflow reads, as those of the trace `trace_id`; one without a time gets `moment`. `spans`
    has the new name of each span of the trace."""
    readable = []
    for item in value if isinstance(value, list) else ():
        if not isinstance(item, dict):
            continue
        known = {key: item[key] for key in _Assessment.__struct_fields__ if item.get(key) is not None}
        times = {"create_time": moment, "last_update_time": known.get("create_time", moment)}
        source = {"source_type": "SOURCE_TYPE_UNSPECIFIED"}
        assessment = {"source": source, **times, **known, "trace_id": trace_id}
        if isinstance(known.get("span_id"), str):
            assessment["span_id"] = spans.get(known["span_id"], known["span_id"])
        with suppress(msgspec.ValidationError):
            if _is_readable(msgspec.convert(assessment, _Assessment)):
                readable.append(assessment)
    return readable


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


def _is_plain(document: _PlainDocument, spare: int) -> bool:
    """The conditions that types cannot express."""
    info = document.info
    if info.request_id is not None or info.status is not None or info.request_metadata is not None:
        return False  # keys of v2
    if not is_moment(info.request_time) or not _are_plain(document.data.spans, spare):
        return False
    try:
        return info.assessments is NOTHING or all(map(_is_readable, _assessments(info.assessments)))
    except msgspec.MsgspecError:
        return False


def _are_plain(spans: list[_PlainSpan], spare: int) -> bool:
    """Whether there is one root above all, the IDs have the required form, and the events are events. It is called for
    every trace, so the parts that its spans share are examined once."""
    attributes = [span.attributes for span in spans]
    if not all(map(_TRACE_ID, {span.trace_id for span in spans})):
        return False
    if not all(map(_REQUEST_ID, {own.request_id for own in attributes})):
        return False
    if not all(map(is_kind, {own.type for own in attributes})):
        return False
    if not all([_gives_documents(own, spare) for own in attributes if own.type == '"RETRIEVER"']):
        return False
    if not all([are_events(span.events) for span in spans if span.events != _EMPTY]):
        return False
    ids = [span.span_id for span in spans]
    roots, late, seen = list[str](), set[str](), set[str]()
    for span_id, span in zip(ids, spans, strict=True):
        parent = span.parent_span_id
        if parent is None:
            roots.append(span_id)
        elif parent not in seen:
            late.add(parent)
        seen.add(span_id)
    # A store loses a trace with a span before its parent, unless that is the root (mlflow 3.17).
    if len(roots) != 1 or (late and late != {*roots}):
        return False
    # Each ID is eight bytes in base64: eleven digits and a "=". The types determine the length of each, so none can
    # hide another when they are joined.
    joined, ends = "".join(ids), "=" * len(ids)
    return joined[11::12] == ends and joined.encode().translate(None, _DIGITS) == ends.encode()


_TRACE_ID = re.compile("[A-Za-z0-9+/]{22}==").fullmatch
_REQUEST_ID = re.compile('".+"').fullmatch
_DIGITS = f"{string.ascii_letters}{string.digits}+/".encode()


_documents = msgspec.json.Decoder(list[WithText]).decode


def are_documents(outputs: Raw) -> bool:
    """Whether MLflow reads the outputs of a RETRIEVER span: it skips an entry that is no object, and reads nothing of
    an object or a text (mlflow/mlflow#23817)."""
    return _are_documents(content_text(outputs))


def _are_documents(text: str | Raw) -> bool:
    try:
        return not text or not any([d.page_content is d.content is d.text for d in _documents(text)])  # NOTHING
    except msgspec.MsgspecError:
        return False


def _gives_documents(own: Attributes, spare: int) -> bool:
    """As `are_documents`; whoever reads a list or an object later need not read JSON in JSON again."""
    text = content_text(own.outputs, spare)
    if isinstance(text, str) and text.startswith(jsontext.OPENING):
        try:
            own.outputs = text = Raw(text.encode())
        except UnicodeEncodeError:  # a lone surrogate
            return False
    return _are_documents(text)


def are_events(value: Raw) -> bool:
    """Whether MLflow reads these as the events of a span."""
    try:
        if value is not NOTHING:
            _events(value)
    except msgspec.MsgspecError:
        return False
    return True


def decode_for_mlflow(text: str | bytes | memoryview, whole: bool = True, spare: int = 0) -> Trace | list[Finding]:
    """As `decode_shallow`; the trace is `plain` if mlflow can read the text as it is, which has brackets to `spare`."""
    try:
        document = _plain_document(text)
    except ValueError:
        return decode_shallow(text, whole)
    data = document.data
    return Trace(document.info, [*data.spans], data.request, data.response, plain=_is_plain(document, spare))
