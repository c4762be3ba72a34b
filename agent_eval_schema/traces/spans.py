"""A trace, whatever its encoding was: spans, with the few attributes from which something is derived.

The Structs name the keys of all generations of MLflow traces side by side, so `traces/decode.py` decodes
them straight into these; `traces/otel` translates the spans of OpenTelemetry.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from agent_eval_schema.issues import Finding
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep

NOTHING = Raw()
"""What an attribute that is not there holds."""


class Attributes(Struct, gc=False):
    """The span attributes that something is derived from; each value is JSON text (or, tolerated, a value). By the
    kinds, MLflow knows the type of a span that it gets by OTLP: it keeps them beside its own."""

    type: str | None = field(default=None, name="mlflow.spanType")
    inputs: Raw = field(default=NOTHING, name="mlflow.spanInputs")
    outputs: Raw = field(default=NOTHING, name="mlflow.spanOutputs")
    function_name: Raw = field(default=NOTHING, name="mlflow.spanFunctionName")
    token_usage: Raw = field(default=NOTHING, name="mlflow.chat.tokenUsage")
    tool_name: Raw = field(default=NOTHING, name="gen_ai.tool.name")
    tools: Raw = field(default=NOTHING, name="mlflow.chat.tools")
    genai_kind: Raw = field(default=NOTHING, name="gen_ai.operation.name")
    openinference_kind: Raw = field(default=NOTHING, name="openinference.span.kind")
    traceloop_kind: Raw = field(default=NOTHING, name="traceloop.span.kind")
    vercel_kind: Raw = field(default=NOTHING, name="ai.operationId")
    langfuse_kind: Raw = field(default=NOTHING, name="langfuse.observation.type")


ATTRIBUTE_KEYS = dict(zip(Attributes.__struct_fields__, Attributes.__struct_encode_fields__, strict=True))


class AttributesById(Attributes, gc=False):
    """Those of a retriever whose documents are named by their `id`, as in the GenAI conventions."""


KINDS = ("AGENT", "CHAIN", "LLM", "CHAT_MODEL", "RETRIEVER", "TOOL", "EMBEDDING", "RERANKER", "PARSER", "UNKNOWN")
_KIND_TEXTS = frozenset(f'"{kind}"' for kind in KINDS)


def is_kind(text: str | None) -> bool:
    """Whether the type of a span is one of mlflow's, a text of another name, or absent: mlflow 3.17 loses the whole
    trace for a type that is an object or a list."""
    return text is None or text in _KIND_TEXTS or isinstance(jsontext.parse_leniently(text), str)


def grounded(parents: dict[str, str | None], root: str) -> dict[str, str | None]:
    """The parent of each span; every span is below the root: directly, if its parent is missing or is below the span
    itself. A store accepts no other trace (MLflow 3.17)."""
    result: dict[str, str | None] = {**parents, root: None}
    done = {root}
    for start in parents:
        path: set[str] = set()
        at = start
        while at not in done:
            path.add(at)
            above = result[at]
            if above is None or above not in result or above in path:
                result[at] = above = root
            at = above
        done |= path
    return result


class Context(Struct, gc=False):
    span_id: str | None = None
    trace_id: str | None = None


class Status(Struct, gc=False):
    code: str | int | None = None
    message: str | None = None


class Span(Struct, eq=False, gc=False):
    """One span; the keys of all generations side by side. Two spans are the same only if they are one object.

    First are the keys that MLflow 3 writes, in its order: the decoder looks for a key behind the last one.
    """

    span_id: str | None = None
    parent_span_id: str | None = None
    name: str | None = None
    start_time_unix_nano: int | str | None = None
    end_time_unix_nano: int | str | None = None
    events: Raw = NOTHING
    status: Status | str | None = None
    attributes: Attributes | str | None = None
    context: Context | None = None
    parent_id: str | None = None
    start_time: int | str | None = None
    end_time: int | str | None = None
    status_code: str | None = None
    status_message: str | None = None

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


class Metadata(Struct, gc=False):
    token_usage: Raw = field(default=NOTHING, name="mlflow.trace.tokenUsage")
    session: Raw = field(default=NOTHING, name="mlflow.trace.session")
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


class Trace(Struct):
    """A trace, whatever its encoding was. `request` and `response` are the copies that v2 has in addition to the
    spans; `messages` and `answer` are those of the root span, if its reader had to find them anyway."""

    info: Info
    spans: list[Span]
    request: Raw = NOTHING
    response: Raw = NOTHING
    is_truncated: bool = False
    notes: list[Finding] = field(default_factory=list)
    plain: bool = False
    messages: list[dict[str, Any]] | None = None
    answer: str | None = None
    spare: int = 0
    """How many brackets more than open in its text could open without that a part of it is nested too deep."""

    spans_path: str = "data.spans"
    """Where its text holds the spans."""


_raw_text = msgspec.json.Decoder(str).decode


def text_of(raw: Raw) -> str | None:
    """The text that an attribute holds (JSON text, for most of them), or None if it is absent or no text."""
    if raw is NOTHING:
        return None
    try:
        return _raw_text(raw)
    except (msgspec.DecodeError, ValueError):
        if bytes(memoryview(raw)[:1]) != b'"':
            return None
        value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
        return value if isinstance(value, str) else None


def content_text(raw: Raw, spare: int = 0) -> str | Raw:
    """The JSON text that an attribute holds: in a text mostly, as it is for spans that were translated; none that is
    nested too deep. Where the trace has brackets to spare, those of a text need not be counted."""
    if raw is NOTHING:
        return ""
    if memoryview(raw)[0] in _STRUCTURED:
        return raw
    try:
        text = _raw_text(raw)  # as in `text_of`, without the call
    except ValueError:
        text = text_of(raw) or ""
    # An escaped bracket (`\\u005b`), which the trace's text does not show, takes five bytes more than it is.
    shallow = spare > 0 and len(raw) - len(text) < 5 * spare
    return text if shallow or not is_too_deep(text) else ""


_STRUCTURED = frozenset(b"{[")


def value_of(raw: Raw, spare: int = 0) -> Any:
    """The content of an attribute: its value is JSON text in JSON; text that is not JSON is taken as it is."""
    if raw is NOTHING:
        return None
    text = text_of(raw)
    text = bytes(raw).decode("utf-8", "replace") if text is None else text
    return jsontext.parse_leniently(text, spare > 0 and len(raw) - len(text) < 5 * spare)


def json_of(raw: Raw) -> str | None:
    """The JSON text of the content of an attribute; None if it is absent."""
    if raw is NOTHING:
        return None
    text = text_of(raw)
    text = bytes(raw).decode("utf-8", "replace") if text is None else text
    return text if jsontext.is_json(text) else jsontext.encode(jsontext.parse_leniently(text)).decode()


def _nanoseconds(value: int | str | None) -> int | None:
    """A time in ns; protobuf's JSON writes 64-bit integers as text."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and value.isascii() and len(value) < 20 else None
    return value if value is not None and value.bit_length() < 64 else None
