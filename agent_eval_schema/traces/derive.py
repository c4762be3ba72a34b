"""The fields that are derived from a trace: one table, `DERIVATIONS`, of field, place and reader.

A value in a column of the user takes precedence over all of this. A `Reading` gives access to one trace; each
derivation reads from it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.schema import Document, ToolCall
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.privacy import may_quote
from agent_eval_schema.traces.documents import documents_of_span, retrieved_context
from agent_eval_schema.traces.reading import Reading, Tokens, attributes, start_of, token_counts
from agent_eval_schema.traces.spans import NOTHING, Span, Status, Trace, content_text, text_of, value_of
from agent_eval_schema.traces.streams import read_stream


class Derived(Struct, gc=False):
    """The fields of a row that its trace contains (None: it does not), and the notes of the readers.

    The first fields are in the order of DERIVATIONS. A document may lack its doc_uri, which is noted. `inputs` and
    `outputs` are those of the root span; request and response are views of them.
    """

    request: chat.Messages | None = None
    response: str | None = None
    retrieved_context: list[Document] | None = None
    predicted_trajectory: list[ToolCall] | None = None
    token_counts: Tokens | None = None
    latency_seconds: float | None = None
    failure: bool | None = None
    error: str | None = None
    expectations: dict[str, Any] | None = None
    session_id: str | None = None
    request_id: str | None = None
    has_retriever_span: bool = False
    has_tool_span: bool = False
    notes: list[Finding] = []
    input_token_count: int | None = None
    output_token_count: int | None = None
    total_token_count: int | None = None
    inputs: Raw = NOTHING
    outputs: Raw = NOTHING


def derive(trace: Trace, values: bool = True, figures: bool = True) -> Derived:
    """All fields that are derived from a trace; without `values`, long fields may contain a part of theirs, and without
    `figures` there are none."""
    # The expectations of a trace are compared with its other fields.
    reading = Reading(trace, values or trace.info.assessments is not NOTHING)
    raw = reading.metadata.is_truncated if reading.metadata else NOTHING
    mark = None if raw is NOTHING else value_of(raw)
    if trace.is_truncated or mark is True or (mark is not None and str(mark).lower() == "true"):
        reading.note(rules.TRUNCATED_TRACE, "", "the trace is marked is_truncated")
    if not trace.spans and trace.request is trace.response is NOTHING:
        reading.note(rules.EMPTY_TRACE, trace.spans_path, "expected spans, got none")
    derived = Derived(*[read(reading) for read in (_READERS if figures else _WITHOUT_FIGURES)])
    tags: Any = trace.info.tags
    if tags.__class__ is Raw:  # else they are decoded already (traces/mlflow_readable.py)
        tags = value_of(tags) if _MADE in bytes(tags) else None
    origin = tags.get(MADE) if tags.__class__ is dict else None
    if origin is not None and isinstance(origin, str) and origin.startswith("of a row"):
        derived.request_id = None  # such a trace has an ID, a state and times, whether the row had them or not
        for name in ("latency_seconds", "failure"):
            if name not in origin:
                setattr(derived, name, None)
    is_silent = derived.response is None is not derived.request and reading.root not in (None, *reading.failed)
    if is_silent and trace.answer is None and (reading.outputs is NOTHING or value_of(reading.outputs) is None):
        reading.note(rules.NO_OUTPUTS, trace.spans_path, "expected outputs of the root span, got none")
    if reading.retrievers:  # the documents are those of the last one; a judge reads all
        has_content = any([document.content for document in derived.retrieved_context or ()])
        if not has_content and len(reading.retrievers) > 1:
            has_content = any(d.content for span in reading.retrievers for d in documents_of_span(span))
        derived.has_retriever_span = has_content
    derived.has_tool_span = bool(reading.tools)
    derived.notes = reading.notes
    derived.inputs, derived.outputs = reading.inputs, reading.outputs
    if derived.token_counts is not None:
        derived.input_token_count, derived.output_token_count, derived.total_token_count = derived.token_counts
    return derived


MADE = "agent_eval_schema.made"
"""The tag of a trace that was made of a row's columns or rewritten; its value contains which and, for a made one, the
columns: where none of them was a latency, a state or a tool call, the trace's own have no meaning."""
_MADE = MADE.encode()


# ---------------------------------------------------------------------------------------------------------------------
# request and response
def _request(reading: Reading) -> chat.Messages | None:
    if reading.trace.messages is not None:
        return reading.trace.messages or None
    value = value_of(reading.inputs, reading.spare)
    messages = chat.read_messages(value)
    if messages and any([m.get("content") is None and chat.lacks_content(m) for m in messages]):
        messages = None  # no column could hold them
    if messages is None and (question := chat.read_question(value)) is not None:
        return chat.user_message(question)
    if messages is None and value is not None and value not in ({}, []):
        text = jsontext.encode(value).decode()
        reading.note(rules.REQUEST_AS_JSON, "request", f"got {describe(value)}; its JSON text is taken")
        return chat.user_message(text)
    return messages or None


class _Message(Struct, gc=False):
    content: str


class _Choice(Struct, gc=False):
    message: _Message


class _Completion(Struct, gc=False):
    """By far the most common output: decoding only the necessary parts of it saves half of the time of this module."""

    choices: list[_Choice]


_completion = msgspec.json.Decoder(_Completion | str).decode


def _response(reading: Reading) -> str | None:
    if reading.trace.answer is not None:
        return _opened(reading.trace.answer)
    try:
        completion = _completion(content_text(reading.outputs, reading.spare))
    except msgspec.MsgspecError:
        value = value_of(reading.outputs)
        if isinstance(value, list) and value:
            value = _in_one_piece(reading, value)
        text, known = chat.read_answer(value)
        if not known and value not in ({}, []):
            reading.note(rules.RESPONSE_AS_JSON, "response", f"got {describe(value)}; its JSON text is taken")
            return jsontext.encode(value).decode()
        return text
    if isinstance(completion, str):
        return _opened(completion)
    return _opened(completion.choices[0].message.content) if completion.choices else None


def _in_one_piece(reading: Reading, pieces: list[Any]) -> Any:
    """What a generator gave piece by piece, in one: texts, whose span records each of them, or chunks of an API."""
    if all([isinstance(piece, str) for piece in pieces]):
        return "".join(pieces) if reading.root is not None and _PIECE in bytes(reading.root.events) else pieces
    stream = read_stream(jsontext.encode(pieces))
    if stream is None:
        return pieces
    if stream.partial:
        reading.note(rules.PARTIAL_STREAM, "response", f"{stream.partial}: the pieces until then are the response")
    return stream.value


_PIECE = b"mlflow.chunk.item"
"""The name of the event by which MLflow records each item of a generator."""


def _opened(text: str) -> str | None:
    """The answer in a text, as it is read of the column: a chat object may stand there as text."""
    return chat.read_answer(text)[0] if text[:1] == "{" else text


# ---------------------------------------------------------------------------------------------------------------------
# predicted_trajectory
def _predicted_trajectory(reading: Reading) -> list[ToolCall] | None:
    """The TOOL spans by start (a call that raised still counts), else the calls that the models asked for."""
    tools = [span for span in reading.tools if span.name != _MERGED]
    if tools and not reading.values and all([span.name and not span.name.isspace() for span in tools]):
        return [ToolCall(_NO_NAME)] * len(tools)
    if tools:
        return _named([_tool_call(span) for span in sorted(tools, key=start_of)], reading)
    requested: dict[Span, list[tuple[str, dict[str, Any] | None]]] = {}
    for span in sorted(reading.models, key=start_of):
        outputs = attributes(span).outputs
        text = bytes(outputs)  # most outputs hold no call: a search of the bytes saves parsing them
        if any(
            mark in text for mark in (b"tool_call", b"function_call", b"functionCall", b"toolName", b"toolUse")
        ) and (calls := chat.read_tool_calls(value_of(outputs))):
            requested[span] = calls
    # A span around a model repeats the model's calls: they count once, as its tokens do.
    outermost = reading.outermost(list(requested))
    return _named([ToolCall(*call) for span in outermost for call in requested[span]], reading) or None


_NO_NAME = "?"

_MERGED = "execute_tool (merged)"
"""The name of a span of google-adk that repeats parallel calls, and is none."""


def _named(calls: list[ToolCall], reading: Reading) -> list[ToolCall]:
    """The calls, each with the name that a cell requires."""
    if all([call.tool_name.strip() for call in calls]):
        return calls
    message = f"expected the name of each tool, got a call without one: `{_NO_NAME}`"
    reading.note(rules.ODD_TRACE, reading.trace.spans_path, message)
    return [call if call.tool_name.strip() else ToolCall(_NO_NAME, call.tool_input) for call in calls]


def _tool_call(span: Span) -> ToolCall:
    attrs = attributes(span)
    tool_name, name = value_of(attrs.tool_name), span.name or ""
    if name[-1:].isdigit():  # up to 3.5 repeated span names were numbered
        function = value_of(attrs.function_name)
        if isinstance(function, str) and name.startswith(f"{function}_") and name[len(function) + 1 :].isdigit():
            name = function
    if isinstance(tool_name, str) and tool_name.strip():
        name = tool_name
    return ToolCall(name, chat.read_arguments(value_of(attrs.inputs)))


# ---------------------------------------------------------------------------------------------------------------------
# latency, failure, ids
def _latency(reading: Reading) -> float | None:
    info, root = reading.trace.info, reading.root
    milliseconds = info.execution_duration_ms if info.execution_duration_ms is not None else info.execution_time_ms
    if milliseconds is not None and abs(milliseconds) < 1 << 63:
        return milliseconds / 1000
    return (root.end - root.start) / 1e9 if root and root.start is not None and root.end is not None else None


def _failure(reading: Reading) -> bool | None:
    if reading.state == "OK" and reading.failed:
        span = f"the span '{reading.failed[0].name}'" if may_quote() else "a span"
        reading.note(rules.HIDDEN_FAILURE, reading.trace.spans_path, f"{span} failed, the trace's state is OK")
    if reading.state in ("OK", "ERROR"):
        return reading.state == "ERROR"
    return reading.root in reading.failed if reading.root and reading.root.code else None


def _error(reading: Reading) -> str | None:
    """The message of the first exception, root first; else the message of the root's status."""
    if reading.state == "OK" or not (reading.state == "ERROR" or reading.root in reading.failed):
        return None
    ordered = sorted(reading.trace.spans, key=lambda s: (s is not reading.root, start_of(s)))
    return next(filter(None, map(exception_message, ordered)), None) or status_message(reading.root)


def exception_message(span: Span) -> str | None:
    """The message of the first exception of a span."""
    events = value_of(span.events) if b"exception" in bytes(span.events) else None
    for event in events if isinstance(events, list) else ():
        fields = event.get("attributes") if isinstance(event, dict) else None
        message = fields.get("exception.message") if isinstance(fields, dict) else None
        if isinstance(message, str) and message.startswith('"'):
            message = jsontext.parse_leniently(message)
        if isinstance(message, str):
            return message
    return None


def status_message(span: Span | None) -> str | None:
    if span is None:
        return None
    return (span.status.message if isinstance(span.status, Status) else span.status_message) or None


def _expectations(reading: Reading) -> dict[str, Any] | None:
    """The valid expectations by name (overridden ones are marked invalid); the last of a name counts."""
    raw = reading.trace.info.assessments
    text = b"" if raw is NOTHING else bytes(raw)
    assessments = jsontext.parse_leniently(text.decode("utf-8", "replace")) if b'"expectation"' in text else None
    expectations: dict[str, Any] = {}
    for assessment in assessments if isinstance(assessments, list) else ():
        if not isinstance(assessment, dict) or assessment.get("valid") is False:
            continue
        expectation, name = assessment.get("expectation"), assessment.get("assessment_name") or assessment.get("name")
        if not isinstance(expectation, dict) or not isinstance(name, str):
            continue
        packed = expectation.get("serialized_value")
        if isinstance(packed, dict) and isinstance(packed.get("value"), str):
            expectations[name] = jsontext.parse_leniently(packed["value"])
        elif expectation.get("value") is not None:
            expectations[name] = expectation["value"]
    return expectations or None


class Derivation(NamedTuple):
    """A field of the row, its place in a trace, and its reader. A `figure` is shown, and no issue depends on it."""

    field: str
    source: str
    read: Callable[[Reading], Any]
    figure: bool = False


DERIVATIONS = (
    Derivation("request", "root span: mlflow.spanInputs", _request),
    Derivation("response", "root span: mlflow.spanOutputs", _response),
    Derivation("retrieved_context", "last outer RETRIEVER span: mlflow.spanOutputs", retrieved_context),
    Derivation("predicted_trajectory", "TOOL spans, else tool_calls of LLM spans", _predicted_trajectory, True),
    Derivation("token_counts", "LLM spans: mlflow.chat.tokenUsage or usage, else the trace's", token_counts, True),
    Derivation("latency_seconds", "info.execution_duration_ms, else the root span's times", _latency, True),
    Derivation("failure", "info.state", _failure),
    Derivation("error", "first exception event, root first", _error),
    Derivation("expectations", "info.assessments[].expectation", _expectations),
    Derivation(
        "session_id",
        "info.trace_metadata: mlflow.trace.session",
        lambda reading: text_of(reading.metadata.session) or None if reading.metadata else None,
        True,
    ),
    Derivation(
        "request_id",
        "info.client_request_id, request_id, trace_id",
        lambda r: r.trace.info.client_request_id or r.trace.info.request_id or r.trace.info.trace_id,
    ),
)


_READERS = tuple([d.read for d in DERIVATIONS])
_WITHOUT_FIGURES: tuple[Callable[[Reading], Any], ...] = tuple(
    [(lambda _: None) if d.figure else d.read for d in DERIVATIONS]
)
