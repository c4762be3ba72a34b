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
from msgspec import Raw, Struct, field

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.rules.reading import TOO_DEEP
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.text.privacy import error_text
from agent_eval_schema.text.visible import visible

_ATTRIBUTE_KEYS = {
    "type": "mlflow.spanType",
    "inputs": "mlflow.spanInputs",
    "outputs": "mlflow.spanOutputs",
    "function_name": "mlflow.spanFunctionName",
    "token_usage": "mlflow.chat.tokenUsage",
    "tool_name": "gen_ai.tool.name",
}
_METADATA_KEYS = {
    "token_usage": "mlflow.trace.tokenUsage",
    "session": "mlflow.trace.session",
    "is_truncated": "is_truncated",
}

NOTHING = Raw()
"""What an attribute that is not there holds."""


class Attributes(Struct, rename=_ATTRIBUTE_KEYS, gc=False):
    """The span attributes that something is derived from; each value is JSON text (or, tolerated, a value)."""

    type: str | None = None
    inputs: Raw = NOTHING
    outputs: Raw = NOTHING
    function_name: Raw = NOTHING
    token_usage: Raw = NOTHING
    tool_name: Raw = NOTHING


KINDS = ("AGENT", "CHAIN", "LLM", "CHAT_MODEL", "RETRIEVER", "TOOL", "EMBEDDING", "RERANKER", "PARSER", "UNKNOWN")
_AS_MLFLOW_WRITES = frozenset(f'"{kind}"' for kind in KINDS)


def is_kind(text: str | None) -> bool:
    """Whether the type of a span is one of mlflow's, a text of another name, or absent: mlflow 3.17 loses the whole
    trace for a type that is an object or a list."""
    return text is None or text in _AS_MLFLOW_WRITES or isinstance(jsontext.parse_leniently(text), str)


def grounded(parents: dict[str, str | None], root: str) -> dict[str, str | None]:
    """The parent of each span; every span is below the root: directly, if its parent is missing or is below the span
    itself. A store accepts no other trace (MLflow 3.17)."""
    found: dict[str, str | None] = {**parents, root: None}
    done = {root}
    for start in parents:
        way: set[str] = set()
        at = start
        while at not in done:
            way.add(at)
            above = found[at]
            if above is None or above not in found or above in way:
                found[at] = above = root
            at = above
        done |= way
    return found


class Context(Struct, gc=False):
    span_id: str | None = None


class Status(Struct, gc=False):
    code: str | int | None = None
    message: str | None = None


class Span(Struct, eq=False, gc=False):
    """One span; the keys of all generations side by side. Two spans are the same only if they are one object."""

    name: str | None = None
    span_id: str | None = None
    context: Context | None = None
    parent_span_id: str | None = None
    parent_id: str | None = None
    start_time_unix_nano: int | str | None = None
    start_time: int | str | None = None
    end_time_unix_nano: int | str | None = None
    end_time: int | str | None = None
    status: Status | str | None = None
    status_code: str | None = None
    status_message: str | None = None
    attributes: Attributes | str | None = None
    events: Raw = NOTHING

    @property
    def id(self) -> str | None:
        return self.span_id or (self.context.span_id if self.context else None)

    @property
    def parent(self) -> str | None:
        """The id of the parent, or None: the root of 3.0 - 3.4 has an empty one."""
        return self.parent_span_id or self.parent_id or None

    @property
    def start(self) -> int | None:
        return _nanoseconds(self.start_time_unix_nano if self.start_time_unix_nano is not None else self.start_time)

    @property
    def end(self) -> int | None:
        return _nanoseconds(self.end_time_unix_nano if self.end_time_unix_nano is not None else self.end_time)

    @property
    def code(self) -> str | int | None:
        """The status as it was written: OK, ERROR, STATUS_CODE_OK, STATUS_CODE_ERROR …"""
        status = self.status
        return status.code if isinstance(status, Status) else status or self.status_code


FAILED_CODES = frozenset(["ERROR", "STATUS_CODE_ERROR", 2])


class Metadata(Struct, rename=_METADATA_KEYS, gc=False):
    token_usage: Raw = NOTHING
    session: Raw = NOTHING
    is_truncated: Raw = NOTHING


class Info(Struct, gc=False):
    """A trace's info of v2 (request_id, status, request_metadata) and v3 (trace_id, state, trace_metadata)."""

    trace_id: str | None = None
    request_id: str | None = None
    client_request_id: str | None = None
    state: str | None = None
    status: str | None = None
    execution_duration_ms: int | float | None = None
    execution_time_ms: int | float | None = None
    trace_metadata: Metadata | None = None
    request_metadata: Metadata | None = None
    tags: Raw = NOTHING
    assessments: Raw = NOTHING


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


class Trace(Struct):
    """A trace, whatever its encoding was. `request` and `response` are the copies that v2 has in addition to the
    spans."""

    info: Info
    spans: list[Span]
    request: Raw = NOTHING
    response: Raw = NOTHING
    is_truncated: bool = False
    notes: list[Finding] = field(default_factory=list)
    plain: bool = False


_document = msgspec.json.Decoder(TraceDocument).decode
_attributes = msgspec.json.Decoder(Attributes).decode
_span = msgspec.json.Decoder(Span).decode
_info = msgspec.json.Decoder(Info).decode
_raw_text = msgspec.json.Decoder(str).decode


def decode_trace(text: str | bytes | memoryview) -> Trace | list[Finding]:
    """The trace in JSON text, or the notes with the reason why there is none (never an exception)."""
    try:
        return trace_in(_document(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _mend(text)


def trace_in(document: TraceDocument) -> Trace | list[Finding]:
    if document.data is not None or document.info is not None:
        data, info = document.data or Data(), document.info or Info()
        trace = Trace(info, data.spans or [], data.request, data.response)
    elif document.spans is not None:
        is_truncated = bool(document.is_truncated)
        trace = Trace(Info(), document.spans, document.request, document.response, is_truncated)
    elif bytes(document.steps).startswith(b"["):
        return _from_steps(document)
    else:
        return [Finding(rules.NOT_A_TRACE, "expected an object with `info` and `data`, got neither")]
    if not all([isinstance(span.attributes, Attributes) for span in trace.spans]):
        for i, span in enumerate(trace.spans):
            if not isinstance(span.attributes, Attributes):
                span.attributes = _read_attributes(span.attributes, i, trace.notes)
    return trace


def _read_attributes(value: Attributes | str | None, i: int, notes: list[Finding]) -> Attributes:
    """Flat v2 writes the attributes as one JSON text, whose values are values."""
    if not isinstance(value, str):
        return Attributes()
    try:
        return _attributes(value)
    except (msgspec.MsgspecError, RecursionError):
        given = jsontext.parse_leniently(value)
    path = f"spans[{i}].attributes"
    if not isinstance(given, dict):
        notes.append(Finding(rules.ODD_TRACE, f"expected an object, got {describe(given)}", path=path))
        return Attributes()
    return _attributes(jsontext.encode(_mend_struct(given, Attributes, path, notes)))


def text_of(raw: Raw) -> str | None:
    """The text that an attribute holds (JSON text, for most of them), or None if it is absent or no text."""
    if raw is NOTHING:
        return None
    try:
        return _raw_text(raw)
    except (msgspec.DecodeError, ValueError):
        value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
        return value if isinstance(value, str) else None


def value_of(raw: Raw) -> Any:
    """The content of an attribute: its value is JSON text in JSON; text that is not JSON is taken as it is."""
    if raw is NOTHING:
        return None
    text = text_of(raw)
    return jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace") if text is None else text)


def json_of(raw: Raw) -> str | None:
    """The JSON text of the content of an attribute; None if it is absent."""
    if raw is NOTHING:
        return None
    text = text_of(raw)
    text = bytes(raw).decode("utf-8", "replace") if text is None else text
    return text if jsontext.is_json(text) else jsontext.encode(jsontext.parse_leniently(text)).decode()


# ---------------------------------------------------------------------------------------------------------------------
# The second look: traces that do not fit the types.
def _mend(text: str | bytes | memoryview) -> Trace | list[Finding]:
    value = jsontext.parse(text)
    notes: list[Finding] = []
    if isinstance(value, jsontext.Malformed):
        lenient = jsontext.parse_leniently(
            bytes(text).decode("utf-8", "replace") if not isinstance(text, str) else text
        )
        if not isinstance(lenient, dict):
            return [Finding(rules.MALFORMED_TRACE, value.message)]
        notes.append(Finding(rules.TRACE_NAN, value.message))
        value = lenient
    if isinstance(value, str):  # encoded twice
        inner = decode_trace(value)
        return inner if value.lstrip().startswith("{") else [Finding(rules.NOT_A_TRACE, f"got {describe(value)}")]
    if not isinstance(value, dict):
        return [Finding(rules.NOT_A_TRACE, f"expected an object with `info` and `data`, got {describe(value)}")]
    _mend_parts(value, notes)
    try:
        trace = trace_in(_document(jsontext.encode(value)))
    except RecursionError:
        return [Finding(TOO_DEEP, "expected a trace of ordinary depth, got one nested too deep to read")]
    except msgspec.MsgspecError as error:  # a part without a correction
        return [
            Finding(rules.NOT_A_TRACE, f"expected a trace, got one that cannot be read: {visible(error_text(error))}")
        ]
    if isinstance(trace, Trace):
        trace.notes[:0] = notes
    return trace


def _mend_parts(value: dict[str, Any], notes: list[Finding]) -> None:
    """Make every part fit its type by omitting the parts that do not, and note them."""
    _require(value, "info", dict, notes)
    _require(value, "data", dict, notes)
    _require(value, "is_truncated", bool, notes)
    for key in ("start_timestamp", "end_timestamp"):
        _require(value, key, str, notes)
    if value.get("info") is not None:
        value["info"] = _mend_struct(value["info"], Info, "info", notes)
    for home, path in ((value, "spans"), (value.get("data") or {}, "data.spans")):
        if home.get("spans") is not None and not isinstance(home["spans"], list):
            notes.append(Finding(rules.ODD_TRACE, f"expected a list, got {describe(home.pop('spans'))}", path=path))
        spans = [_mend_span(s, f"{path}[{i}]", notes) for i, s in enumerate(home.get("spans") or ())]
        if spans:
            home["spans"] = [s for s in spans if s is not None]


def _require(value: dict[str, Any], key: str, kind: type, notes: list[Finding]) -> None:
    if value.get(key) is not None and not isinstance(value[key], kind):
        notes.append(Finding(rules.ODD_TRACE, f"omitted: got {describe(value.pop(key))}", path=key))


def _mend_span(span: Any, path: str, notes: list[Finding]) -> Any:
    if not isinstance(span, dict):
        notes.append(Finding(rules.ODD_TRACE, f"expected a span (an object), got {describe(span)}", path=path))
        return None
    if isinstance(span.get("attributes"), dict):
        span["attributes"] = _mend_struct(span["attributes"], Attributes, f"{path}.attributes", notes)
    return _mend_struct(span, Span, path, notes)


def _mend_struct(value: dict[str, Any], expected: type[Struct], path: str, notes: list[Finding]) -> dict[str, Any]:
    """The object without the keys whose values do not fit; floats that are whole are let through as such."""
    kept = {}
    for key, entry in value.items():
        if _fits(expected, key, entry):
            kept[key] = entry
        elif isinstance(entry, float) and _fits(expected, key, int(entry)):
            kept[key] = int(entry)
        elif entry is not None:
            notes.append(Finding(rules.ODD_TRACE, f"omitted: got {describe(entry)}", path=f"{path}.{key}"))
    return kept


def _fits(expected: type[Struct], key: str, value: Any) -> bool:
    try:
        msgspec.json.decode(jsontext.encode({key: value}), type=expected)
    except msgspec.MsgspecError:
        return False
    return True


def _nanoseconds(value: int | str | None) -> int | None:
    """A time in ns; protobuf's JSON writes 64-bit integers as text."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and value.isascii() and len(value) < 20 else None
    return value if value is not None and value.bit_length() < 64 else None


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
            trace.notes.append(
                Finding(rules.ODD_TRACE, f"expected a step (an object), got {describe(step)}", path=f"steps[{i}]")
            )
            continue
        trace.spans.append(_step_span(step, i))
        generation = step.get("text_generation")
        answer = generation.get("generated_text", answer) if isinstance(generation, dict) else answer
    root.attributes = Attributes(type="AGENT", outputs=Raw(jsontext.encode({"content": answer})))
    return trace


def _step_span(step: dict[str, Any], i: int) -> Span:
    retrieval = step.get("retrieval")
    chunks = retrieval.get("chunks") if isinstance(retrieval, dict) else None
    span = Span(name=str(step.get("name")), span_id=str(step.get("step_id", i)), parent_span_id="root")
    span.start_time = _instant(step.get("start_timestamp"))
    span.end_time = _instant(step.get("end_timestamp"))
    kind = {"RETRIEVAL": "RETRIEVER", "LLM_GENERATION": "LLM"}.get(str(step.get("type")), "UNKNOWN")
    outputs = Raw(jsontext.encode(chunks)) if chunks is not None else NOTHING
    span.attributes = Attributes(type=kind, outputs=outputs)
    return span


def _instant(text: Any) -> int | None:
    """ISO time → ns (v1 writes no offset; only differences are used)."""
    try:
        return micros_since_epoch(read_iso(str(text))) * 1_000
    except ValueError:
        return None
