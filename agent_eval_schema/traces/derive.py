"""What a trace says about its row: one table, `DERIVATIONS`, of field, where it stands and how it is read.

The rules are the decisions of mlflow.md (seed 003 where it speaks). What a column holds wins over all of this.
A `Reading` looks things up in one trace; each derivation asks it for what it needs.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from agent_eval_schema import chat, jsontext
from agent_eval_schema.diagnose import describe
from agent_eval_schema.issues import Rule
from agent_eval_schema.model import ToolCall
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.rules.retrieval import DERIVED_DOCUMENT_EMPTY, DERIVED_URI_GUESSED, DERIVED_WITHOUT_URI
from agent_eval_schema.traces.decode import Attributes, Note, Span, Status, Trace, value_of

TEXT_KEYS = ("page_content", "content", "text")
GUESSED_URI_KEYS = ("source", "url", "uri", "document_id")
DOCUMENT_LIST_KEYS = ("documents", "docs", "results", "chunks", "context")


class Derived(Struct):
    """The fields of a row that its trace holds (None: it does not say), and what was noteworthy on the way."""

    request: chat.Messages | None = None
    response: str | None = None
    retrieved_context: list[tuple[str | None, str | None]] | None = None
    predicted_trajectory: list[ToolCall] | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    total_token_count: int | None = None
    latency_seconds: float | None = None
    failure: bool | None = None
    error: str | None = None
    expectations: dict[str, Any] | None = None
    session_id: str | None = None
    request_id: str | None = None
    has_retriever: bool = False
    has_tool: bool = False
    notes: list[Note] = []


class Reading:
    """One trace while it is being read: its root, its spans by type, and the notes of the readers."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.notes: list[Note] = trace.notes
        self.retrievers: list[Span] = []
        self.tools: list[Span] = []
        self.models: list[Span] = []
        homes = {"RETRIEVER": self.retrievers, "TOOL": self.tools, "LLM": self.models, "CHAT_MODEL": self.models}
        for span in trace.spans:
            kind = attributes(span).type
            if kind is not None and (home := homes.get(kind.strip('"'))) is not None:
                home.append(span)
        self.root = _root(trace.spans)

    @cached_property
    def by_id(self) -> dict[str | None, Span]:
        return {span.id: span for span in self.trace.spans}

    @cached_property
    def root_inputs(self) -> Any:
        return (
            value_of(attributes(self.root).inputs or self.trace.request) if self.root else value_of(self.trace.request)
        )

    @cached_property
    def root_outputs(self) -> Any:
        return value_of(self._root_outputs())

    def _root_outputs(self) -> Raw:
        return (attributes(self.root).outputs if self.root else Raw()) or self.trace.response

    def ancestors(self, span: Span) -> list[Span]:
        """The parents of a span up to the root; a loop in a broken trace ends the walk."""
        found: list[Span] = []
        parent = self.by_id.get(span.parent) if span.parent else None
        while parent is not None and parent not in found:
            found.append(parent)
            parent = self.by_id.get(parent.parent) if parent.parent else None
        return found

    def note(self, rule: Rule, path: str, message: str) -> None:
        self.notes.append((rule, path, message))


def attributes(span: Span) -> Attributes:
    """A decoded trace's spans all have attributes."""
    assert isinstance(span.attributes, Attributes)
    return span.attributes


def _root(spans: list[Span]) -> Span | None:
    """No parent, the earliest if several; if every parent is missing from the trace, the earliest span."""
    orphans = [s for s in spans if s.parent is None]
    return min(orphans or spans, key=_start, default=None) if len(orphans) != 1 else orphans[0]


def _start(span: Span) -> int:
    return span.start or 0


def derive(trace: Trace) -> Derived:
    """Everything that the trace says about its row."""
    reading = Reading(trace)
    derived = Derived(has_retriever=bool(reading.retrievers), has_tool=bool(reading.tools), notes=reading.notes)
    if trace.is_truncated or (_metadata(trace) and _is_true(value_of(_metadata(trace).is_truncated))):
        reading.note(rules.TRUNCATED_TRACE, "", "the trace is marked is_truncated")
    if not trace.spans and not (trace.request or trace.response):
        reading.note(rules.EMPTY_TRACE, "data.spans", "expected spans, got none")
    for field, _, read in DERIVATIONS:
        setattr(derived, field, read(reading))
    _read_tokens(reading, derived)
    return derived


def _metadata(trace: Trace) -> Any:
    return trace.info.trace_metadata or trace.info.request_metadata


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


# ---------------------------------------------------------------------------------------------------------------------
# request and response


def _request(reading: Reading) -> chat.Messages | None:
    value = reading.root_inputs
    messages = chat.read_messages(value)
    if messages is None and value is not None and value not in ({}, []):
        text = jsontext.encode(value).decode()
        reading.note(rules.REQUEST_AS_JSON, "request", f"got {describe(value)}; its JSON text is taken")
        return chat.user_message(text)
    return messages or None


def _response(reading: Reading) -> str | None:
    value = reading.root_outputs
    text, known = chat.read_answer(value)
    if not known and value not in ({}, []):
        reading.note(rules.RESPONSE_AS_JSON, "response", f"got {describe(value)}; its JSON text is taken")
        return jsontext.encode(value).decode()
    return text


# ---------------------------------------------------------------------------------------------------------------------
# retrieved_context


def _retrieved_context(reading: Reading) -> list[tuple[str | None, str | None]] | None:
    """The documents of the last RETRIEVER to start that is not part of another one."""
    if not reading.retrievers:
        return None
    outer = [s for s in reading.retrievers if not _inside_retriever(reading, s)] or reading.retrievers
    output = value_of(attributes(max(outer, key=_start)).outputs)
    return None if output is None else _documents(reading, output)


def _inside_retriever(reading: Reading, span: Span) -> bool:
    return len(reading.retrievers) > 1 and any(a in reading.retrievers for a in reading.ancestors(span))


def _documents(reading: Reading, output: Any) -> list[tuple[str | None, str | None]]:
    if isinstance(output, dict):
        key = next((k for k in DOCUMENT_LIST_KEYS if isinstance(output.get(k), list)), None)
        output = output[key] if key else [output]
    if isinstance(output, str):
        output = [output]
    if not isinstance(output, list):
        reading.note(DERIVED_DOCUMENT_EMPTY, "retrieved_context", f"expected documents, got {describe(output)}")
        return []
    return [_document(reading, item, f"retrieved_context[{i}]") for i, item in enumerate(output)]


def _document(reading: Reading, item: Any, path: str) -> tuple[str | None, str | None]:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, dict):
        reading.note(DERIVED_DOCUMENT_EMPTY, path, f"expected a document, got {describe(item)}")
        return None, None
    content = next((item[k] for k in TEXT_KEYS if isinstance(item.get(k), str)), None)
    uri = _uri(reading, item, path)
    if uri is None and content is None:
        reading.note(DERIVED_DOCUMENT_EMPTY, path, f"expected text or a URI, got {describe(item)}")
    elif uri is None:
        reading.note(DERIVED_WITHOUT_URI, f"{path}.doc_uri", "the retriever's document has no doc_uri")
    return uri, content


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
    if reading.tools:
        return [_tool_call(span) for span in sorted(reading.tools, key=_start)]
    asked = [c for s in sorted(reading.models, key=_start) for c in _asked_calls(attributes(s).outputs)]
    return [ToolCall(name, arguments) for name, arguments in asked] or None


def _tool_call(span: Span) -> ToolCall:
    found = attributes(span)
    given, function, name = value_of(found.tool_name), value_of(found.function_name), span.name or ""
    if isinstance(function, str) and name.startswith(f"{function}_") and name[len(function) + 1 :].isdigit():
        name = function  # up to 3.5 repeated span names were numbered
    return ToolCall(given if isinstance(given, str) and given else name, chat.read_arguments(value_of(found.inputs)))


def _asked_calls(outputs: Raw) -> list[tuple[str, dict[str, Any] | None]]:
    # Most outputs hold no call: a search of the bytes saves parsing them.
    text = bytes(outputs)
    return chat.read_tool_calls(value_of(outputs)) if b"tool_calls" in text or b"function_call" in text else []


# ---------------------------------------------------------------------------------------------------------------------
# token counts


def _read_tokens(reading: Reading, derived: Derived) -> None:
    """Models' usage summed up from the root, skipping what lies below a counted span (mlflow#24307), else the "
    "trace's."""
    counted: list[Span] = []
    usages: list[Usage] = []
    for span in sorted(reading.models, key=lambda s: len(reading.ancestors(s))) if reading.models else ():
        usage = _span_usage(attributes(span))
        if usage is not None and not (counted and any(a in counted for a in reading.ancestors(span))):
            counted.append(span)
            usages.append(usage)
    if not usages:
        usages = [u for u in (_trace_usage(reading),) if u is not None]
    if usages:
        derived.input_token_count = _sum(u.input for u in usages)
        derived.output_token_count = _sum(u.output for u in usages)
        derived.total_token_count = _sum(u.total for u in usages)


class Usage(NamedTuple):
    input: int | None
    output: int | None
    total: int | None


def _sum(counts: Any) -> int | None:
    known = [c for c in counts if c is not None]
    return sum(known) if known else None


def _span_usage(found: Attributes) -> Usage | None:
    usage = _usage(value_of(found.token_usage))
    if usage is None and b"usage" in bytes(found.outputs):
        output = value_of(found.outputs)
        usage = _usage(output.get("usage")) if isinstance(output, dict) else None
    return usage


def _trace_usage(reading: Reading) -> Usage | None:
    metadata = _metadata(reading.trace)
    usage = _usage(value_of(metadata.token_usage)) if metadata else None
    if usage is None and b"usage" in bytes(reading._root_outputs()) and isinstance(reading.root_outputs, dict):
        usage = _usage(reading.root_outputs.get("usage"))
    return usage


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    given = _count(value, "input_tokens", "prompt_tokens")
    made = _count(value, "output_tokens", "completion_tokens")
    total = _count(value, "total_tokens")
    if total is None and given is not None and made is not None:
        total = given + made
    return None if given is made is total is None else Usage(given, made, total)


def _count(value: dict[str, Any], *keys: str) -> int | None:
    return next((int(value[k]) for k in keys if isinstance(value.get(k), int | float) and value[k] is not True), None)


# ---------------------------------------------------------------------------------------------------------------------
# latency, failure, ids


def _latency(reading: Reading) -> float | None:
    info, root = reading.trace.info, reading.root
    milliseconds = info.execution_duration_ms if info.execution_duration_ms is not None else info.execution_time_ms
    if milliseconds is not None:
        return milliseconds / 1000
    return (root.end - root.start) / 1e9 if root and root.start is not None and root.end is not None else None


def _failure(reading: Reading) -> bool | None:
    state = reading.trace.info.state or reading.trace.info.status
    failed = [s for s in reading.trace.spans if s.failed]
    if failed and state == "OK":
        reading.note(rules.HIDDEN_FAILURE, "data.spans", f"the span '{failed[0].name}' failed, the trace's state is OK")
    if state in ("OK", "ERROR"):
        return state == "ERROR"
    return reading.root.failed if reading.root and (reading.root.status or reading.root.status_code) else None


def _error(reading: Reading) -> str | None:
    """The message of the first exception, root first; else the message of the root's status."""
    if not _failure_of(reading):
        return None
    ordered = sorted(reading.trace.spans, key=lambda s: (s is not reading.root, _start(s)))
    messages = [m for span in ordered for m in _exceptions(span)]
    return messages[0] if messages else _status_message(reading.root)


def _failure_of(reading: Reading) -> bool:
    state = reading.trace.info.state or reading.trace.info.status
    return state == "ERROR" if state in ("OK", "ERROR") else bool(reading.root and reading.root.failed)


def _exceptions(span: Span) -> list[str]:
    events = value_of(span.events) if b"exception" in bytes(span.events) else None
    found = [e.get("attributes") for e in events if isinstance(e, dict)] if isinstance(events, list) else []
    texts = [a.get("exception.message") for a in found if isinstance(a, dict)]
    read = [jsontext.parse_leniently(t) if isinstance(t, str) and t.startswith('"') else t for t in texts]
    return [t for t in read if isinstance(t, str)]


def _status_message(root: Span | None) -> str | None:
    if root is None:
        return None
    return (root.status.message if isinstance(root.status, Status) else root.status_message) or None


def _session(reading: Reading) -> str | None:
    metadata = _metadata(reading.trace)
    session = value_of(metadata.session) if metadata else None
    return None if session is None or session == "" else str(session)


def _request_id(reading: Reading) -> str | None:
    info = reading.trace.info
    return info.client_request_id or info.request_id or info.trace_id


def _expectations(reading: Reading) -> dict[str, Any] | None:
    """The valid expectations by name (overridden ones are marked invalid); the last of a name counts."""
    raw = reading.trace.info.assessments
    assessments = value_of(raw) if b"expectation" in bytes(raw) else None
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
    """A field of the row, where a trace holds it, and the function that reads it."""

    field: str
    source: str
    read: Callable[[Reading], Any]


DERIVATIONS = (
    Derivation("request", "root span: mlflow.spanInputs", _request),
    Derivation("response", "root span: mlflow.spanOutputs", _response),
    Derivation("retrieved_context", "last outer RETRIEVER span: mlflow.spanOutputs", _retrieved_context),
    Derivation("predicted_trajectory", "TOOL spans, else tool_calls of LLM spans", _predicted_trajectory),
    Derivation("latency_seconds", "info.execution_duration_ms, else the root span's times", _latency),
    Derivation("failure", "info.state", _failure),
    Derivation("error", "first exception event, root first", _error),
    Derivation("expectations", "info.assessments[].expectation", _expectations),
    Derivation("session_id", "info.trace_metadata: mlflow.trace.session", _session),
    Derivation("request_id", "info.client_request_id, request_id, trace_id", _request_id),
)
