"""What a trace says about its row: one table, `DERIVATIONS`, of field, where it stands and how it is read.

The rules are the decisions of mlflow.md (seed 003 where it speaks). What a column holds wins over all of this.
A `Reading` looks things up in one trace; each derivation asks it for what it needs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.issues import Rule
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.rules.retrieval import DERIVED_DOCUMENT_EMPTY, DERIVED_URI_GUESSED, DERIVED_WITHOUT_URI
from agent_eval_schema.schema import Document, ToolCall
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.privacy import may_quote
from agent_eval_schema.traces.decode import (
    FAILED_CODES,
    NOTHING,
    Attributes,
    Info,
    Note,
    Span,
    Status,
    Trace,
    text_of,
    value_of,
)

TEXT_KEYS = ("page_content", "content", "text")
GUESSED_URI_KEYS = ("source", "url", "uri", "document_id")
Tokens = tuple[int | None, int | None, int | None]
"""Input, output and total."""

DOCUMENT_LIST_KEYS = ("documents", "docs", "results", "chunks", "context")


class Derived(Struct, gc=False):
    """The fields of a row that its trace holds (None: it does not say), and what was noteworthy on the way.

    The first fields stand in the order of DERIVATIONS. A document may lack its doc_uri: a note says so.
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
    has_retriever: bool = False
    notes: list[Note] = []

    @property
    def input_token_count(self) -> int | None:
        return self.token_counts[0] if self.token_counts else None

    @property
    def output_token_count(self) -> int | None:
        return self.token_counts[1] if self.token_counts else None

    @property
    def total_token_count(self) -> int | None:
        return self.token_counts[2] if self.token_counts else None


class Reading:
    """One trace while it is being read: its root, its spans by type, and the notes of the readers.

    Without `values` only the verdict matters: a reader may say that there is something by giving a part of it.
    """

    __slots__ = (
        *("trace", "values", "notes", "retrievers", "tools", "models", "failed"),
        *("root", "inputs", "outputs", "metadata", "state", "_top", "_by_id"),
    )

    def __init__(self, trace: Trace, values: bool = True) -> None:
        self.trace = trace
        self.values = values
        self.notes: list[Note] = trace.notes
        self.retrievers: list[Span] = []
        self.tools: list[Span] = []
        self.models: list[Span] = []
        self.failed: list[Span] = []
        orphans: list[Span] = []
        homes = {"RETRIEVER": self.retrievers, "TOOL": self.tools, "LLM": self.models, "CHAT_MODEL": self.models}
        for span in trace.spans:
            kind = span.attributes.type  # type: ignore[union-attr]  # as `attributes` says, without the call
            if kind is not None and (home := homes.get(kind.strip('"'))) is not None:
                home.append(span)
            if not (span.parent_span_id or span.parent_id):
                orphans.append(span)
            status = span.status
            # `code`, without the call. Asking for text is quick; for a Struct that may be a stricter one it is not.
            text = status is None or isinstance(status, str)
            if (status or span.status_code if text else status.code) in FAILED_CODES:  # type: ignore[union-attr]
                self.failed.append(span)
        # No parent, the earliest if several; if every parent is missing from the trace, the earliest span.
        self.root = orphans[0] if len(orphans) == 1 else min(orphans or trace.spans, key=_start, default=None)
        self._top = self.root.id if self.root else None
        found = attributes(self.root) if self.root else Attributes()
        self.inputs = trace.request if found.inputs is NOTHING else found.inputs
        self.outputs = trace.response if found.outputs is NOTHING else found.outputs
        self.metadata = trace.info.trace_metadata or trace.info.request_metadata
        self.state = trace.info.state or trace.info.status
        self._by_id: dict[str | None, Span] = {}

    def ancestors(self, span: Span) -> list[Span]:
        """The parents of a span up to the root; a loop in a broken trace ends the walk."""
        if not self._by_id:
            self._by_id = {s.id: s for s in self.trace.spans}
        found: list[Span] = []
        parent = self._by_id.get(span.parent) if span.parent else None
        while parent is not None and parent not in found:
            found.append(parent)
            parent = self._by_id.get(parent.parent) if parent.parent else None
        return found

    def outermost(self, spans: list[Span]) -> list[Span]:
        """The spans that do not lie below another one of them."""
        # Mostly all are children of the root; asking for the keys themselves saves the calls.
        parents = [s.parent_span_id or s.parent_id or None for s in spans]
        if len(spans) == 1 or (parents.count(self._top) == len(parents) and self.root not in spans):
            return spans
        # In a broken trace whose parents form a loop, no span is outside: then all are.
        return [s for s in spans if not any(a in spans for a in self.ancestors(s))] or spans

    def note(self, rule: Rule, path: str, message: str) -> None:
        self.notes.append((rule, path, message))


def attributes(span: Span) -> Attributes:
    """A decoded trace's spans all have attributes."""
    found = span.attributes
    assert found is not None
    assert not isinstance(found, str)
    return found


def _start(span: Span) -> int:
    return span.start or 0


def derive(trace: Trace, values: bool = True, figures: bool = True) -> Derived:
    """Everything that the trace says about its row; without `values`, long fields may hold a part of what it says, and
    without `figures` there are none."""
    # The expectations of a trace are compared with what else it says.
    reading = Reading(trace, values or trace.info.assessments is not NOTHING)
    if trace.is_truncated or (reading.metadata and _is_true(reading.metadata.is_truncated)):
        reading.note(rules.TRUNCATED_TRACE, "", "the trace is marked is_truncated")
    if not trace.spans and trace.request is trace.response is NOTHING:
        reading.note(rules.EMPTY_TRACE, "data.spans", "expected spans, got none")
    derived = Derived(*[read(reading) for read in (_READERS if figures else _WITHOUT_FIGURES)])
    derived.has_retriever = bool(reading.retrievers)
    derived.notes = reading.notes
    return derived


def _is_true(raw: Raw) -> bool:
    value = value_of(raw) if raw is not NOTHING else None
    return value is True or (isinstance(value, str) and value.lower() == "true")


# ---------------------------------------------------------------------------------------------------------------------
# request and response
def _request(reading: Reading) -> chat.Messages | None:
    value = value_of(reading.inputs)
    messages = chat.read_messages(value)
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
    """The commonest output by far: decoding only what is needed of it saves half of the time of this module."""

    choices: list[_Choice]


_completion = msgspec.json.Decoder(_Completion | str).decode


def _response(reading: Reading) -> str | None:
    try:
        found = _completion(text_of(reading.outputs) or "")
    except (msgspec.MsgspecError, RecursionError):
        return _other_response(reading)
    if isinstance(found, str):
        return found
    return found.choices[0].message.content if found.choices else None


def _other_response(reading: Reading) -> str | None:
    value = value_of(reading.outputs)
    text, known = chat.read_answer(value)
    if not known and value not in ({}, []):
        reading.note(rules.RESPONSE_AS_JSON, "response", f"got {describe(value)}; its JSON text is taken")
        return jsontext.encode(value).decode()
    return text


# ---------------------------------------------------------------------------------------------------------------------
# retrieved_context
def _retrieved_context(reading: Reading) -> list[Document] | None:
    """The documents of the last RETRIEVER to start that is not part of another one."""
    if not reading.retrievers:
        return None
    outer = reading.outermost(reading.retrievers)
    last = max(reversed(outer), key=_start) if len(outer) > 1 else outer[0]
    output = attributes(last).outputs
    try:
        found = (_usual_documents if reading.values else _glimpse_of_documents)(text_of(output) or "")
    except (msgspec.MsgspecError, RecursionError):
        found = None
    if found is not None:
        return found
    value = value_of(output)
    return None if value is None else _documents(reading, value)


class _Metadata(Struct, gc=False):
    doc_uri: str


class _Retrieved(Struct, gc=False):
    """A document as mlflow's retriever schema has it; anything else goes the long way."""

    page_content: str
    metadata: _Metadata


class _Glimpsed(Struct, gc=False):
    """As _Retrieved, without making a text of the content."""

    page_content: Raw
    metadata: _Metadata


_retrieved = msgspec.json.Decoder(list[_Retrieved]).decode
_glimpsed = msgspec.json.Decoder(list[_Glimpsed]).decode


def _usual_documents(text: str) -> list[Document] | None:
    """The documents, or None if there is one without a doc_uri."""
    found = [Document(d.metadata.doc_uri, d.page_content) for d in _retrieved(text)]
    return found if all([d.doc_uri.strip() for d in found]) else None


def _glimpse_of_documents(text: str) -> list[Document] | None:
    """One document for all of them, with content if any has content; None if there is an unusual one."""
    found = _glimpsed(text)
    glimpse = [_EMPTY_DOCUMENT] if found else []
    for document in found:
        content = bytes(document.page_content)
        if content[:1] != b'"' or not document.metadata.doc_uri.strip():
            return None
        if len(content) > 2:  # more than the two quotes
            glimpse = [_SOME_DOCUMENT]
    return glimpse


_SOME_DOCUMENT, _EMPTY_DOCUMENT = Document("?", "?"), Document("?", "")


def documents_of_span(span: Span) -> list[Document]:
    """The (doc_uri, content) of the documents that a RETRIEVER span gave; none for other spans."""
    found = attributes(span)
    if (found.type or "").strip('"') != "RETRIEVER" or (value := value_of(found.outputs)) is None:
        return []
    return _documents(Reading(Trace(Info(), [span])), value)


def _documents(reading: Reading, output: Any) -> list[Document]:
    output = jsontext.structured(output)
    if isinstance(output, dict):
        key = next((k for k in DOCUMENT_LIST_KEYS if isinstance(output.get(k), list)), None)
        output = output[key] if key else [output]
    if isinstance(output, str):
        output = [output]
    if not isinstance(output, list):
        reading.note(DERIVED_DOCUMENT_EMPTY, "retrieved_context", f"expected documents, got {describe(output)}")
        return []
    return [_document(reading, item, f"retrieved_context[{i}]") for i, item in enumerate(output)]


def _document(reading: Reading, item: Any, path: str) -> Document:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        reading.note(DERIVED_DOCUMENT_EMPTY, path, f"expected a document, got {describe(item)}")
        return Document(None, None)  # type: ignore[arg-type]
    content = next((item[k] for k in TEXT_KEYS if isinstance(item.get(k), str)), None)
    uri = _uri(reading, item, path)
    if uri is None and content is None:
        reading.note(DERIVED_DOCUMENT_EMPTY, path, f"expected text or a URI, got {describe(item)}")
    elif uri is None:
        reading.note(DERIVED_WITHOUT_URI, f"{path}.doc_uri", "the retriever's document has no doc_uri")
    return Document(uri, content)  # type: ignore[arg-type]


def _uri(reading: Reading, item: dict[str, Any], path: str) -> str | None:
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for home in (metadata, item):
        if isinstance(home.get("doc_uri"), str) and home["doc_uri"].strip():
            return str(home["doc_uri"])
    for key in GUESSED_URI_KEYS:
        for home in (metadata, item):
            if isinstance(home.get(key), str) and home[key].strip():
                reading.note(DERIVED_URI_GUESSED, f"{path}.doc_uri", f"taken from `{key}`: {describe(home[key])}")
                return str(home[key])
    return None


# ---------------------------------------------------------------------------------------------------------------------
# predicted_trajectory
def _predicted_trajectory(reading: Reading) -> list[ToolCall] | None:
    """The TOOL spans by start (a call that raised still counts), else the calls that the models asked for."""
    if reading.tools and not reading.values:
        return _SOME_CALLS * len(reading.tools)
    if reading.tools:
        return [_tool_call(span) for span in sorted(reading.tools, key=_start)]
    asked = {s: calls for s in sorted(reading.models, key=_start) if (calls := _asked_calls(attributes(s).outputs))}
    # A span around a model repeats the model's calls: they count once, as its tokens do.
    return [ToolCall(*call) for span in reading.outermost(list(asked)) for call in asked[span]] or None


_SOME_CALLS = [ToolCall("?")]


def _tool_call(span: Span) -> ToolCall:
    found = attributes(span)
    given, name = value_of(found.tool_name), span.name or ""
    if name[-1:].isdigit():  # up to 3.5 repeated span names were numbered
        function = value_of(found.function_name)
        if isinstance(function, str) and name.startswith(f"{function}_") and name[len(function) + 1 :].isdigit():
            name = function
    return ToolCall(given if isinstance(given, str) and given else name, chat.read_arguments(value_of(found.inputs)))


def _asked_calls(outputs: Raw) -> list[tuple[str, dict[str, Any] | None]]:
    # Most outputs hold no call: a search of the bytes saves parsing them.
    text = bytes(outputs)
    return chat.read_tool_calls(value_of(outputs)) if b"tool_calls" in text or b"function_call" in text else []


# ---------------------------------------------------------------------------------------------------------------------
# token counts
class Usage(Struct, gc=False):
    """Token counts as mlflow names them, and as OpenAI does."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Output(Struct, gc=False):
    usage: Usage | None = None


_usage = msgspec.json.Decoder(Usage, strict=False).decode
_output = msgspec.json.Decoder(_Output, strict=False).decode


def _tokens(reading: Reading) -> Tokens | None:
    """The models' usage, but for what lies below a counted span (mlflow#24307); else the trace's, else the root's."""
    used = {s: tokens for s in reading.models if (tokens := _span_tokens(s)) is not None}
    if used:
        counts = zip(*[used[s] for s in reading.outermost(list(used))], strict=True)
        inputs, outputs, totals = [sum(c) if None not in c else _sum_of_known(c) for c in counts]
        return inputs, outputs, totals
    stated = _stated(reading.metadata.token_usage) if reading.metadata else None
    return stated or _stated_in_output(reading.outputs)


def _sum_of_known(counts: tuple[int | None, ...]) -> int | None:
    known = [c for c in counts if c is not None]
    return sum(known) if known else None


def _span_tokens(span: Span) -> Tokens | None:
    found = attributes(span)
    return _stated(found.token_usage) or _stated_in_output(found.outputs)


def _stated(raw: Raw) -> Tokens | None:
    if raw is NOTHING:
        return None
    try:
        return counts_of(_usage(text_of(raw) or ""))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return usage_of(value_of(raw))


def _stated_in_output(raw: Raw) -> Tokens | None:
    if raw is NOTHING or b"usage" not in bytes(raw):
        return None
    try:
        usage = _output(text_of(raw) or "").usage
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = value_of(raw)
        return usage_of(value.get("usage")) if isinstance(value, dict) else None
    return counts_of(usage) if usage else None


def usage_of(usage: Any) -> Tokens | None:
    """The counts among whatever else stands in a usage that is not of the usual types."""
    if not isinstance(usage, dict):
        return None
    kept = {k: v for k, v in usage.items() if isinstance(v, int) and not isinstance(v, bool)}
    return counts_of(msgspec.convert(kept, Usage))


def counts_of(usage: Usage) -> Tokens | None:
    """The counts in either vocabulary; the total is their sum where it is not stated."""
    given = usage.input_tokens if usage.input_tokens is not None else usage.prompt_tokens
    made = usage.output_tokens if usage.output_tokens is not None else usage.completion_tokens
    total = usage.total_tokens
    if total is None and given is not None and made is not None:
        total = given + made
    return None if given is made is total is None else (given, made, total)


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
        reading.note(rules.HIDDEN_FAILURE, "data.spans", f"{span} failed, the trace's state is OK")
    if reading.state in ("OK", "ERROR"):
        return reading.state == "ERROR"
    return reading.root in reading.failed if reading.root and reading.root.code else None


def _error(reading: Reading) -> str | None:
    """The message of the first exception, root first; else the message of the root's status."""
    if reading.state == "OK" or not (reading.state == "ERROR" or reading.root in reading.failed):
        return None
    ordered = sorted(reading.trace.spans, key=lambda s: (s is not reading.root, _start(s)))
    messages = [m for span in ordered for m in _exceptions(span)]
    return messages[0] if messages else status_message(reading.root)


def _exceptions(span: Span) -> list[str]:
    events = value_of(span.events) if b"exception" in bytes(span.events) else None
    found = [e.get("attributes") for e in events if isinstance(e, dict)] if isinstance(events, list) else []
    texts = [a.get("exception.message") for a in found if isinstance(a, dict)]
    read = [jsontext.parse_leniently(t) if isinstance(t, str) and t.startswith('"') else t for t in texts]
    return [t for t in read if isinstance(t, str)]


def status_message(span: Span | None) -> str | None:
    """What the status of a span says, beside its code."""
    if span is None:
        return None
    return (span.status.message if isinstance(span.status, Status) else span.status_message) or None


def _session(reading: Reading) -> str | None:
    return text_of(reading.metadata.session) or None if reading.metadata else None


def _request_id(reading: Reading) -> str | None:
    info = reading.trace.info
    return info.client_request_id or info.request_id or info.trace_id


def _expectations(reading: Reading) -> dict[str, Any] | None:
    """The valid expectations by name (overridden ones are marked invalid); the last of a name counts."""
    raw = reading.trace.info.assessments
    text = b"" if raw is NOTHING else bytes(raw)
    assessments = jsontext.parse_leniently(text.decode("utf-8", "replace")) if b'"expectation"' in text else None
    if not isinstance(assessments, list):
        return None
    return dict(e for a in assessments if (e := _expectation(a)) is not None) or None


def _expectation(assessment: Any) -> tuple[str, Any] | None:
    if not isinstance(assessment, dict) or assessment.get("valid") is False:
        return None
    expectation, name = assessment.get("expectation"), assessment.get("assessment_name") or assessment.get("name")
    if not isinstance(expectation, dict) or not isinstance(name, str):
        return None
    packed = expectation.get("serialized_value")
    if isinstance(packed, dict) and isinstance(packed.get("value"), str):
        return name, jsontext.parse_leniently(packed["value"])
    return (name, expectation["value"]) if expectation.get("value") is not None else None


class Derivation(NamedTuple):
    """A field of the row, where a trace holds it, and the function that reads it. A `figure` is counted and shown, and
    no issue depends on it."""

    field: str
    source: str
    read: Callable[[Reading], Any]
    figure: bool = False


DERIVATIONS = (
    Derivation("request", "root span: mlflow.spanInputs", _request),
    Derivation("response", "root span: mlflow.spanOutputs", _response),
    Derivation("retrieved_context", "last outer RETRIEVER span: mlflow.spanOutputs", _retrieved_context),
    Derivation("predicted_trajectory", "TOOL spans, else tool_calls of LLM spans", _predicted_trajectory),
    Derivation("token_counts", "LLM spans: mlflow.chat.tokenUsage or usage, else the trace's", _tokens, True),
    Derivation("latency_seconds", "info.execution_duration_ms, else the root span's times", _latency, True),
    Derivation("failure", "info.state", _failure),
    Derivation("error", "first exception event, root first", _error),
    Derivation("expectations", "info.assessments[].expectation", _expectations),
    Derivation("session_id", "info.trace_metadata: mlflow.trace.session", _session),
    Derivation("request_id", "info.client_request_id, request_id, trace_id", _request_id),
)


def _nothing(_: Reading) -> Any:
    return None


_READERS = tuple([d.read for d in DERIVATIONS])
_WITHOUT_FIGURES = tuple([_nothing if d.figure else d.read for d in DERIVATIONS])
