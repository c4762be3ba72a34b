"""A span of OpenTelemetry → a span as the derivation of MLflow's traces reads it (`traces/spans.py`).

The attributes are looked up in ENTRIES (conventions.py), each once: those that nothing is derived from are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct

from agent_eval_schema.decoding import chat
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import python_value
from agent_eval_schema.traces.otel.conventions import ENTRIES, MERGED_TOOLS, NAMES, PREFIXES, Entry
from agent_eval_schema.traces.otel.spans import (
    AnySpan,
    Event,
    KeyValue,
    OtelSpan,
    Pair,
    PlainSpan,
    SpanStatus,
    Value,
    as_pairs,
    pairs_of,
)
from agent_eval_schema.traces.otel.values import content_of, count_in, decoded, flattened, text_in, unflattened
from agent_eval_schema.traces.spans import FAILED_CODES, NOTHING, Attributes, AttributesById, Span, Status, text_of

# ---------------------------------------------------------------------------------------------------------------------
# The events of a span: messages that older conventions write there, and exceptions.
#
# gen_ai.{system,user,assistant,tool}.message, gen_ai.choice       1.28 to 1.36 of the conventions: one per message
# gen_ai.client.inference.operation.details                        attributes of the span itself
# {"event_name", "body": {"input": {"messages"}, "output": …}}     ADOT, on CloudWatch
DETAILS = "gen_ai.client.inference.operation.details"
_ROLES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_CHOICE = "gen_ai.choice"
_EXCEPTION = "exception"

Messages = list[dict[str, Any]]


def messages_in(events: Sequence[Event]) -> tuple[Messages, Messages]:
    """The messages of the input of a span, and those of its output."""
    sides: tuple[Messages, Messages] = [], []
    for event in events:
        if event.body is not NOTHING:
            body = _value(event.body)
            for key, role, messages in zip(("input", "output"), ("user", "assistant"), sides, strict=True):
                inner = body.get(key) if isinstance(body, dict) else None
                logged = inner.get("messages") if isinstance(inner, dict) else None
                items = logged if isinstance(logged, list) else []
                messages += [m for item in items if isinstance(item, dict) for m in _logged_messages(item, role)]
        elif event.name in _ROLES or event.name == _CHOICE:
            values = {key: _value(raw) for key, raw in pairs_of(event.attributes)}
            role = _ROLES.get(event.name, "assistant")
            inner = jsontext.structured(values.get("message"))
            if isinstance(inner, dict):
                values = {**values, **inner}
            content = values.get("content") if not isinstance(inner, list | str) else inner
            message: dict[str, Any] = {"role": role, "content": jsontext.structured(content)}
            if not isinstance(message["content"], list):
                message["content"] = content if isinstance(content, str | None) else jsontext.encode(content).decode()
            calls = jsontext.structured(values.get("tool_calls"))
            if isinstance(calls, list):
                message["tool_calls"] = calls
            identity = values.get("id")
            if role == "tool" and isinstance(identity, str):
                message["tool_call_id"] = identity
            sides[event.name == _CHOICE].append(message)
    return sides


def _value(raw: Raw) -> Any:
    return None if raw is NOTHING else _leaf(content_of(raw))


def _logged_messages(message: dict[str, Any], role: str) -> Messages:
    """A message of an event. That of LangChain has the state of a graph, the generations of a model, or the message of
    a tool as its content."""
    content = jsontext.structured(message.get("content"))
    if isinstance(content, dict) and isinstance(content.get("messages"), list):
        return chat.read_messages(content) or []
    generations = content.get("generations") if isinstance(content, dict) else None
    if isinstance(generations, list):
        flat = [g for batch in generations if isinstance(batch, list) for g in batch if isinstance(g, dict)]
        return [{"role": "assistant", "content": str(g.get("text") or "")} for g in flat]
    if isinstance(content, dict):  # {"content": …} of a request, {"message": …} of an answer
        content = next((content[k] for k in ("content", "message", "text") if content.get(k) is not None), content)
        content = jsontext.structured(content)
    if not isinstance(content, list | str | None):
        content = jsontext.encode(content).decode()
    return [{"role": message.get("role") or role, "content": content}]


def _tool_in(events: Sequence[Event]) -> Attributes | None:
    """The call of a tool by LangChain, whose span has nothing but an event of ADOT: the result has the name."""
    for body in (_value(event.body) for event in events if event.body is not NOTHING):
        sides = [body.get(key) if isinstance(body, dict) else None for key in ("input", "output")]
        logged = [side.get("messages") if isinstance(side, dict) else None for side in sides]
        request, result = (
            (m[0].get("content") if isinstance(m, list) and m and isinstance(m[0], dict) else None) for m in logged
        )
        result = jsontext.structured(result)
        if isinstance(result, dict) and result.get("type") == "tool" and isinstance(result.get("name"), str):
            arguments = python_value(request) or jsontext.structured(request)
            return Attributes(
                "TOOL",
                inputs=_as_raw(arguments),
                outputs=_as_raw(result.get("content")),
                tool_name=_as_raw(result["name"]),
            )
    return None


def exceptions_in(events: Sequence[Event]) -> Raw:
    """The exceptions as the events of a span of MLflow; nothing if there is none."""
    exceptions = []
    for event in events:
        pairs = dict(pairs_of(event.fields if event.fields is not None else event.attributes))
        name = event.name if event.fields is None else _value(pairs.get("event", NOTHING))
        message = _value(pairs.get("exception.message", NOTHING))
        if name == _EXCEPTION and isinstance(message, str):
            exceptions.append({"name": _EXCEPTION, "attributes": {"exception.message": message}})
    return Raw(jsontext.encode(exceptions)) if exceptions else NOTHING


UNKNOWN = "UNKNOWN"
_OF_TOOL = "execute_tool "
"""How the conventions call the span of a tool: this and its name."""


Leaves = list[tuple[str, Raw]]
Found = dict[str, list[tuple[Entry, Raw | Leaves]]]


class TranslatedSpan(Struct, gc=False):
    """A span of a `Trace`, and what has no place in it: the session, and instructions in addition to the input. Its
    inputs and outputs are read on first use: a validation result needs those of few spans."""

    span: Span
    kind: str | None
    found: Found = {}
    events: Sequence[Event] = ()
    is_read: bool = True

    @property
    def attributes(self) -> Attributes:
        """The attributes of the span, with its inputs and outputs."""
        attributes = self.span.attributes
        assert isinstance(attributes, Attributes)
        if not self.is_read:
            self.is_read = True
            attributes = self.span.attributes = _with_contents(attributes, self.found, self.events)
        return attributes

    @property
    def session(self) -> str | None:
        return text_of_field(self.found, "session") if "session" in self.found else None

    @property
    def system(self) -> Raw:
        return first_of_field(self.found, "system")


def translate(span: AnySpan, place: int, notes: list[Finding]) -> TranslatedSpan | None:
    """The span as one of a `Trace`; None for one that only repeats others."""
    name, identity, parent, start, end, events = span.outline()
    pairs = span.pairs()
    if events:
        pairs = [*pairs, *as_pairs(p for e in events if e.name == DETAILS for p in pairs_of(e.attributes))]
    fields = _found(pairs)
    attributes = _attributes_of(fields, name or "", place, notes)
    if attributes is None:
        return None
    tool = _tool_in(events) if events and not fields else None
    attributes = tool or attributes
    translated = Span(
        name=name,
        span_id=identity,
        parent_span_id=parent,
        start_time_unix_nano=start,
        end_time_unix_nano=end,
        status=_status_of(span, fields),
        attributes=attributes,
        events=exceptions_in(events) if events else NOTHING,
    )
    return TranslatedSpan(translated, attributes.type, fields, events, tool is not None)


def attributes_of(
    pairs: Iterable[Pair], name: str, events: Sequence[Event], place: int, notes: list[Finding]
) -> tuple[Attributes | None, Found]:
    """The attributes with inputs and outputs (None: the span only repeats others), and all that was found."""
    fields = _found(pairs)
    attributes = _attributes_of(fields, name, place, notes)
    return (None if attributes is None else _with_contents(attributes, fields, events)), fields


def _attributes_of(fields: Found, name: str, place: int, notes: list[Finding]) -> Attributes | None:
    """The same without inputs and outputs."""
    if not fields:
        return Attributes(type=UNKNOWN)
    kinds = fields.get("kind")
    # Mostly one attribute has the kind; one more call for each span would be a tenth of the time.
    known = kinds[0][0].kinds_as_json.get(bytes(kinds[0][1])) if kinds and len(kinds) == 1 else None  # type: ignore[arg-type]  # no list
    kind = _kind(fields, name) if known is None else known
    tool = first_of_field(fields, "tool") if "tool" in fields else NOTHING
    if kind == "TOOL":
        if tool is NOTHING and name.startswith(_OF_TOOL):
            tool = _as_raw(name.removeprefix(_OF_TOOL))
        if MERGED_TOOLS.encode() in bytes(tool) and text_in(tool) == MERGED_TOOLS:
            return None
    usage = NOTHING if _COUNTS.isdisjoint(fields) else _usage(fields, place, notes)
    return Attributes(kind, NOTHING, NOTHING, NOTHING, usage, tool)


def _with_contents(attributes: Attributes, fields: Found, events: Sequence[Event]) -> Attributes:
    inputs, outputs = first_of_field(fields, "inputs"), first_of_field(fields, "outputs")
    kind = Attributes
    if attributes.type == "RETRIEVER":
        documents = first_of_field(fields, "documents")
        if documents is NOTHING and (documents := first_of_field(fields, "documents_by_id")) is not NOTHING:
            kind = AttributesById
        outputs = outputs if documents is NOTHING else documents
    if events and (inputs is NOTHING or outputs is NOTHING):
        of_input, of_output = messages_in(events)
        inputs = _as_raw({"messages": of_input}) if inputs is NOTHING and of_input else inputs
        outputs = _as_raw({"messages": of_output}) if outputs is NOTHING and of_output else outputs
    return kind(attributes.type, inputs, outputs, NOTHING, attributes.token_usage, attributes.tool_name)


# ---------------------------------------------------------------------------------------------------------------------
# the attributes by field
_MOST_NAMES = 8192
_TOPS = frozenset(name.partition(".")[0] for name in ENTRIES)
_NAMES = frozenset(ENTRIES)

Hit = tuple[tuple[Entry, ...], str | None]


class _KnownNames(dict[str, Hit | None]):
    """What a name holds, and the place in a flattened list: few names are in many spans."""

    def __missing__(self, name: str) -> Hit | None:
        hit: Hit | None = None
        if name in ENTRIES:
            hit = ENTRIES[name], "" if ENTRIES[name][0].prefix else None
        elif name in _TOPS:
            hit = (), name
        else:
            prefix = next((p for p in PREFIXES if name.startswith(p) and name[len(p) : len(p) + 1] == "."), None)
            if prefix is not None:
                hit = ENTRIES[prefix], name[len(prefix) + 1 :]
        if len(self) < _MOST_NAMES:
            self[name] = hit
        return hit


_known = _KnownNames()


def _found(pairs: Iterable[Pair]) -> Found:
    fields: Found = {}
    lists: dict[str, Leaves] = {}
    for pair in pairs:
        hit = _known[pair.key]
        if hit is None:
            continue
        value = pair.value
        if isinstance(value, Value):
            raw = value.stringValue  # mostly
            if raw is NOTHING:
                raw = content_of(value.raw())
        else:
            raw = NOTHING if value is None else content_of(value)
        if raw is NOTHING:
            continue
        entries, place = hit
        if place is None:
            for entry in entries:
                if entry.field in fields:
                    fields[entry.field].append((entry, raw))
                else:
                    fields[entry.field] = [(entry, raw)]
        elif not entries:
            if bytes(memoryview(raw)[:1]) == b"{":  # nested by the backend (Phoenix): {"llm": {"input_messages": …}}
                nested = flattened(decoded(raw), _NAMES, place)
                inner = {name: Raw(jsontext.encode(value)) for name, value in nested if name not in _TOPS}
                for field, values in _found(as_pairs(inner.items())).items():
                    fields.setdefault(field, []).extend(values)
        elif place == "":
            fields.setdefault(entries[0].field, []).append((entries[0], raw))
        else:
            lists.setdefault(entries[0].prefix or "", []).append((place, raw))
    for prefix, leaves in lists.items():
        entry = ENTRIES[prefix][0]
        fields.setdefault(entry.field, []).append((entry, leaves))
    return fields


def _kind(fields: Found, name: str) -> str:
    ranked = []
    for entry, raw in fields.get("kind", ()):
        if not isinstance(raw, list) and entry.kinds is not None:
            kind = entry.kinds_as_json.get(bytes(raw)) or entry.kinds.get(text_in(raw) or "")
            if kind is not None:
                ranked.append((entry.rank, kind))
    if ranked:
        return min(ranked)[1]
    if fields and (known := next((kind for start, kind in NAMES if name.startswith(start)), None)):
        return known
    flat = [e.prefix for field in ("inputs", "outputs") for e, raw in fields.get(field, ()) if isinstance(raw, list)]
    return "LLM" if flat else UNKNOWN


_EMPTY = frozenset([b'""', b"null", b"", b"{}", b'"null"'])
_SHORT = 7
_JSON_IN_TEXT = frozenset([b'"{', b'"['])


def first_of_field(found: Found, field: str) -> Raw:
    """The JSON of the first attribute of a field that has a value, made plain if it has to be."""
    pairs = found.get(field)
    if pairs is None:
        return NOTHING
    for entry, raw in pairs if len(pairs) == 1 else sorted(pairs, key=_rank):
        if isinstance(raw, list):
            value = entry.read(unflattened((path, _leaf(leaf)) for path, leaf in raw)) if entry.read else None
        else:
            if len(raw) < _SHORT and bytes(raw) in _EMPTY:
                continue
            text = bytes(raw) if entry.marks else b""  # a JSON text without the marks of a wrapped one is plain
            if entry.read is None or (text[:2] in _JSON_IN_TEXT and not any([mark in text for mark in entry.marks])):
                return raw
            value = entry.read(decoded(raw))
        if value is not None and value not in ("", []):
            return _as_raw(value)
    return NOTHING


def _rank(pair: tuple[Entry, Raw | Leaves]) -> int:
    return pair[0].rank


def _leaf(raw: Raw) -> Any:
    value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
    return jsontext.parse_leniently(value) if isinstance(value, str) and value[:1] == '"' else value


def _as_raw(value: Any) -> Raw:
    """A value as an attribute holds it. Unlike MLflow, which writes its JSON text as a text, an object is written as it
    is: it is read at once."""
    return Raw(jsontext.encode(value))


def text_of_field(found: Found, field: str) -> str | None:
    raw = first_of_field(found, field)
    return None if raw is NOTHING else text_in(raw)


# ---------------------------------------------------------------------------------------------------------------------
# tokens and status
def _usage(fields: Found, place: int, notes: list[Finding]) -> Raw:
    counts = [_count(fields, field, place, notes) if field in fields else None for field in _COUNTED]
    if "usage" in fields and counts == [None, None, None]:
        usage = decoded(first_of_field(fields, "usage"))
        usage = usage if isinstance(usage, dict) else {}
        details = [usage.get(key) for key in ("input", "output", "total")]
        counts = [None if value is None else count_in(Raw(jsontext.encode(value))) for value in details]
    if counts == [None, None, None]:
        return NOTHING
    return Raw(jsontext.encode({n: count for n, count in zip(_COUNTED, counts, strict=True) if count is not None}))


_COUNTED = ("input_tokens", "output_tokens", "total_tokens")
_COUNTS = frozenset([*_COUNTED, "usage"])


def _count(fields: Found, field: str, place: int, notes: list[Finding]) -> int | None:
    pairs = fields[field]
    for entry, raw in pairs if len(pairs) == 1 else sorted(pairs, key=_rank):
        count = None if isinstance(raw, list) else count_in(raw)
        if count is not None:
            return count
        value = None if isinstance(raw, list) else decoded(raw)
        message = f"omitted: expected a count of tokens, got {describe(value)}"
        name = next(name for name, entries in ENTRIES.items() if entry in entries)
        notes.append(Finding(rules.ODD_TRACE, message, path=f"spans[{place}].attributes.{name}"))
    return None


_NO_STATUS = Status()


def _status_of(span: AnySpan, fields: Found) -> Status:
    """The status of a span: Jaeger has it in tags, Langfuse in a level."""
    status = span.status
    if isinstance(span, PlainSpan) and "level" not in fields:
        plain = span.status
        if plain is None or not (plain.code or plain.status_code):
            return _NO_STATUS
    if isinstance(status, SpanStatus):
        code, message = status.code if status.code is not None else status.status_code, status.message
        message = message or status.description
    else:
        code, message = (
            (status, None) if isinstance(span, PlainSpan) else (status or span.status_code, span.status_message)
        )
    if code not in FAILED_CODES and isinstance(span, OtelSpan) and span.tags is not None:
        tags = {pair.key: pair.value for pair in span.tags}
        if text_in(tags.get("otel.status_code", NOTHING)) == "ERROR" or tags.get("error") == Raw(b"true"):
            code, message = "ERROR", text_in(tags.get("otel.status_description", NOTHING))
    if code not in FAILED_CODES and "level" in fields and text_of_field(fields, "level") == "ERROR":
        code = "ERROR"
    if code in FAILED_CODES and not message:
        message = text_of_field(fields, "message")
    return Status(code, message or None)


def pairs_of_mlflow(attributes: dict[str, Raw]) -> Iterator[Pair]:
    """The attributes of a span of MLflow that are not its own, as JSON: each value is JSON text, even a text's."""
    for name, raw in attributes.items():
        if not name.startswith("mlflow."):
            text = text_of(raw)
            inner = jsontext.parse_leniently(text) if text is not None and text[:1] == '"' else None
            yield KeyValue(name, Raw(jsontext.encode(inner)) if isinstance(inner, str) else raw)
