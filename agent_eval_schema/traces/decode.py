"""Every encoding of an MLflow trace → one `Trace`.

    v3 (3.0 - 3.18)   {info: {trace_id, state, ...}, data: {spans: [{span_id, start_time_unix_nano, ...}]}}
    v2 (2.13 - 2.22)  {info: {request_id, status, ...}, data: {spans: [{context: {span_id}, start_time, ...}]}}
    flat v2           {spans: [{..., attributes: "JSON text"}], "mlflow.trace_schema.version": "2"}
    traces.json       {spans: [...]}, the artifact of a trace; up to 2.22 with request and response in addition
    v1                {app_version_id, steps: [{type: RETRIEVAL | LLM_GENERATION, ...}]}

One Struct names the keys of all of them, so a good trace costs one typed decode that skips everything else; values
that may never be needed stay `Raw`. A trace that does not fit is decoded generically and corrected part by part: what
cannot be read is omitted and reported. mlflow's own reader rejects a whole trace for one unknown key; we must not.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.rules.reading import MAX_DEPTH, TOO_DEEP
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.text.privacy import error_text
from agent_eval_schema.text.visible import visible
from agent_eval_schema.traces.otel.spans import fitting_parts
from agent_eval_schema.traces.otel.trace import complete, decode_otel, may_be_completed
from agent_eval_schema.traces.spans import NOTHING, Attributes, Info, Span, Trace


class Data(Struct, gc=False):
    spans: list[Span] | None = None
    request: Raw = NOTHING
    response: Raw = NOTHING


class TraceDocument(Struct, gc=False):
    """The whole text of a trace in any encoding."""

    info: Info | None = None
    data: Data | None = None
    spans: list[Span] | None = None
    request: Raw = NOTHING
    response: Raw = NOTHING
    steps: Raw = NOTHING
    is_truncated: bool | None = None
    start_timestamp: str | None = None
    end_timestamp: str | None = None


_document = msgspec.json.Decoder(TraceDocument).decode
_attributes = jsontext.decoder(Attributes)


def decode_trace(text: str | bytes | memoryview) -> Trace | list[Finding]:
    """The trace in JSON text, or the notes with the reason why there is none (never an exception)."""
    return too_deep() if is_too_deep(text) else decode_shallow(text)


def too_deep() -> list[Finding]:
    """The reason why there is no trace in a text that is nested too deep."""
    return [Finding(TOO_DEEP, f"expected a trace of at most {MAX_DEPTH} levels, got one nested too deep to read")]


def decode_shallow(text: str | bytes | memoryview, whole: bool = True) -> Trace | list[Finding]:
    """As `decode_trace`, of text that is known not to be nested too deep. If the trace does not have to be `whole`,
    spans on which no issue and no figure depends may lack their contents."""
    # one character first: to compare a view with a text takes longer than a tenth of the decoding
    is_otel = len(text) > 2 and text[2] in _R and text[:16] in ('{"resourceSpans"', b'{"resourceSpans"')
    if is_otel and (found := decode_otel(text, whole)) is not None:
        return found
    try:
        trace = trace_in(_document(text))
    except ValueError:
        return decode_otel(text) or _mend(text)
    if not isinstance(trace, Trace):
        return decode_otel(text) or trace
    if may_be_completed(trace.spans):
        complete(trace, text)
    return trace


_R = frozenset(["r", ord("r")])
_EXPECTED = "expected a trace of MLflow (`info` and `data`) or of OpenTelemetry (`resourceSpans` with its spans)"


def trace_in(document: TraceDocument) -> Trace | list[Finding]:
    if document.data is not None or document.info is not None:
        data, info = document.data or Data(), document.info or Info()
        trace = Trace(info, data.spans or [], data.request, data.response)
    elif document.spans is not None:
        is_truncated = bool(document.is_truncated)
        trace = Trace(Info(), document.spans, document.request, document.response, is_truncated, spans_path="spans")
    elif bytes(document.steps).startswith(b"["):
        return _from_steps(document)
    else:
        return [Finding(rules.NOT_A_TRACE, f"{_EXPECTED}, got neither")]
    for i, span in enumerate(trace.spans):
        if span.attributes.__class__ is not Attributes and not isinstance(span.attributes, Attributes):
            span.attributes = _read_attributes(span.attributes, i, trace.notes)
    return trace


def _read_attributes(value: Attributes | str | None, i: int, notes: list[Finding]) -> Attributes:
    """Flat v2 writes the attributes as one JSON text, whose values are values."""
    if not isinstance(value, str):
        return Attributes()
    try:
        return _attributes(value)
    except msgspec.MsgspecError:
        values = jsontext.parse_leniently(value)
    path = f"spans[{i}].attributes"
    if not isinstance(values, dict):
        notes.append(Finding(rules.ODD_TRACE, f"expected an object, got {describe(values)}", path=path))
        return Attributes()
    return _attributes(jsontext.encode(fitting_parts(values, Attributes, path, notes)))


# ---------------------------------------------------------------------------------------------------------------------
# The second look: traces that do not fit the types.
def _mend(text: str | bytes | memoryview) -> Trace | list[Finding]:
    value = jsontext.parse(text)
    notes: list[Finding] = []
    if isinstance(value, jsontext.Malformed):
        lenient = jsontext.parse_leniently(text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))
        if not isinstance(lenient, dict):
            return [Finding(rules.MALFORMED_TRACE, value.message)]
        notes.append(Finding(rules.TRACE_NAN, value.message))
        value = lenient
    if isinstance(value, str):  # encoded twice
        inner = decode_trace(value)
        return inner if value.lstrip().startswith("{") else [Finding(rules.NOT_A_TRACE, f"got {describe(value)}")]
    if not isinstance(value, dict):
        return [Finding(rules.NOT_A_TRACE, f"{_EXPECTED}, got {describe(value)}")]
    _mend_parts(value, notes)
    corrected = jsontext.encode(value)
    try:
        trace = trace_in(_document(corrected))
    except msgspec.MsgspecError as error:  # a part without a correction
        why = visible(error_text(error))
        return [Finding(rules.NOT_A_TRACE, f"expected a trace, got one that cannot be read: {why}")]
    if isinstance(trace, Trace):
        if may_be_completed(trace.spans):
            complete(trace, corrected)
        trace.notes[:0] = notes
    return trace


def _mend_parts(value: dict[str, Any], notes: list[Finding]) -> None:
    """Make every part fit its type by omitting the parts that do not, and note them."""
    kinds = {"info": dict, "data": dict, "is_truncated": bool, "start_timestamp": str, "end_timestamp": str}
    for key, kind in kinds.items():
        if value.get(key) is not None and not isinstance(value[key], kind):
            notes.append(Finding(rules.ODD_TRACE, f"omitted: got {describe(value.pop(key))}", path=key))
    if value.get("info") is not None:
        value["info"] = fitting_parts(value["info"], Info, "info", notes)
    for home, path in ((value, "spans"), (value.get("data") or {}, "data.spans")):
        if home.get("spans") is not None and not isinstance(home["spans"], list):
            notes.append(Finding(rules.ODD_TRACE, f"expected a list, got {describe(home.pop('spans'))}", path=path))
        spans = home.get("spans") or ()
        if spans:
            home["spans"] = []
        for i, span in enumerate(spans):
            place = f"{path}[{i}]"
            if not isinstance(span, dict):
                notes.append(Finding(rules.ODD_TRACE, f"expected a span (an object), got {describe(span)}", path=place))
                continue
            if isinstance(span.get("attributes"), dict):
                span["attributes"] = fitting_parts(span["attributes"], Attributes, f"{place}.attributes", notes)
            home["spans"].append(fitting_parts(span, Span, place, notes))


# ---------------------------------------------------------------------------------------------------------------------
# v1: steps instead of spans.
def _from_steps(document: TraceDocument) -> Trace:
    """The steps as spans below a root that contains the last generated text. v1 does not contain the request."""
    root = Span(name="root", span_id="root")
    root.start_time, root.end_time = _instant(document.start_timestamp), _instant(document.end_timestamp)
    trace = Trace(Info(), [root], is_truncated=bool(document.is_truncated))
    answer = None
    for i, step in enumerate(jsontext.decode(document.steps)):
        if not isinstance(step, dict):
            message = f"expected a step (an object), got {describe(step)}"
            trace.notes.append(Finding(rules.ODD_TRACE, message, path=f"steps[{i}]"))
            continue
        retrieval = step.get("retrieval")
        chunks = retrieval.get("chunks") if isinstance(retrieval, dict) else None
        span = Span(name=str(step.get("name")), span_id=str(step.get("step_id", i)), parent_span_id="root")
        span.start_time = _instant(step.get("start_timestamp"))
        span.end_time = _instant(step.get("end_timestamp"))
        kind = {"RETRIEVAL": "RETRIEVER", "LLM_GENERATION": "LLM"}.get(str(step.get("type")), "UNKNOWN")
        outputs = Raw(jsontext.encode(chunks)) if chunks is not None else NOTHING
        span.attributes = Attributes(type=kind, outputs=outputs)
        trace.spans.append(span)
        generation = step.get("text_generation")
        answer = generation.get("generated_text", answer) if isinstance(generation, dict) else answer
    root.attributes = Attributes(type="AGENT", outputs=Raw(jsontext.encode({"content": answer})))
    return trace


def _instant(text: Any) -> int | None:
    """ISO time → ns (v1 writes no offset; only differences are used)."""
    try:
        return micros_since_epoch(read_iso(str(text))) * 1_000
    except ValueError:
        return None
