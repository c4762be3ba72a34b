"""A span of OpenTelemetry → a span as the derivation of MLflow's traces reads it (`traces/spans.py`).

The attributes are looked up in ENTRIES (conventions.py), each once: those that nothing is derived from are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import traces as rules
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe
from agent_eval_schema.traces.otel.conventions import ENTRIES, MERGED_TOOLS, NAMES, PREFIXES, Entry
from agent_eval_schema.traces.otel.events import details_in, exceptions_in, messages_in
from agent_eval_schema.traces.otel.spans import AnySpan, Event, OtelSpan, Pair, PlainSpan, SpanStatus, Value
from agent_eval_schema.traces.otel.values import content_of, count_in, decoded, flattened, text_in, unflattened
from agent_eval_schema.traces.spans import FAILED_CODES, NOTHING, Attributes, Span, Status, text_of

UNKNOWN = "UNKNOWN"
_OF_TOOL = "execute_tool "
"""How the conventions call the span of a tool: this and its name."""


Leaves = list[tuple[str, Raw]]
Found = dict[str, list[tuple[Entry, Raw | Leaves]]]


class Told(Struct, gc=False):
    """A span in our form, and what has no place in it: the session, and instructions beside the input."""

    span: Span
    found: Found = {}

    @property
    def is_known(self) -> bool:
        return bool(self.found)

    @property
    def session(self) -> str | None:
        return text_of_field(self.found, "session") if "session" in self.found else None

    @property
    def system(self) -> Raw:
        return first_of_field(self.found, "system")


def told_by(span: AnySpan, path: str, notes: list[Finding]) -> Told | None:
    """The span in our form; None for one that only repeats others."""
    events, pairs = span.happened, span.pairs()
    if events:
        pairs += details_in(events)
    attributes, found = attributes_of(pairs, span.title or "", events, path, notes)
    if attributes is None:
        return None
    code, message = _status_of(span, found)
    told = Span(
        name=span.title,
        span_id=span.id,
        parent_span_id=span.parent,
        start_time_unix_nano=span.start,
        end_time_unix_nano=span.end,
        status=Status(code, message),
        attributes=attributes,
        events=exceptions_in(events) if events else NOTHING,
    )
    return Told(told, found)


def attributes_of(
    pairs: Iterable[Pair], name: str, events: Sequence[Event], path: str, notes: list[Finding]
) -> tuple[Attributes | None, Found]:
    """The attributes from which something is derived, and all that the conventions know of; none for a span that only
    repeats others."""
    found = _found(pairs)
    if not found and not events:
        return Attributes(type=UNKNOWN), found
    kind = _kind(found, name)
    tool = first_of_field(found, "tool")
    if kind == "TOOL":
        if tool is NOTHING and name.startswith(_OF_TOOL):
            tool = _as_raw(name.removeprefix(_OF_TOOL))
        if text_in(tool) == MERGED_TOOLS:
            return None, found
    inputs, outputs = first_of_field(found, "inputs"), first_of_field(found, "outputs")
    if kind == "RETRIEVER" and (documents := first_of_field(found, "documents")) is not NOTHING:
        outputs = documents
    if events and (inputs is NOTHING or outputs is NOTHING):
        given, answered = messages_in(events)
        inputs = _as_raw({"messages": given}) if inputs is NOTHING and given else inputs
        outputs = _as_raw({"messages": answered}) if outputs is NOTHING and answered else outputs
    usage = _usage(found, path, notes)
    return Attributes(kind, inputs, outputs, NOTHING, usage, tool), found


# ---------------------------------------------------------------------------------------------------------------------
# the attributes by field
_known: dict[str, tuple[tuple[Entry, ...], str | None] | None] = {}
"""What a name holds, and the place in a flattened list: few names are in many spans."""

_MOST_NAMES = 8192
_TOPS = frozenset(name.partition(".")[0] for name in ENTRIES)
_NAMES = frozenset(ENTRIES)


def _look_up(name: str) -> tuple[tuple[Entry, ...], str | None] | None:
    hit: tuple[tuple[Entry, ...], str | None] | None = None
    if name in ENTRIES:
        hit = ENTRIES[name], "" if ENTRIES[name][0].prefix else None
    else:
        prefix = next((p for p in PREFIXES if name.startswith(p) and name[len(p) : len(p) + 1] == "."), None)
        if prefix is not None:
            hit = ENTRIES[prefix], name[len(prefix) + 1 :]
    if len(_known) < _MOST_NAMES:
        _known[name] = hit
    return hit


def _found(pairs: Iterable[Pair]) -> Found:
    found: Found = {}
    lists: dict[str, Leaves] = {}
    for name, value in pairs:
        hit = _known.get(name, _UNSEEN)
        if hit is _UNSEEN:
            hit = _look_up(name)
        if hit is None:
            if name in _TOPS and isinstance(value, Raw) and bytes(memoryview(value)[:1]) == b"{":
                _add_nested(found, name, value)
            continue
        if isinstance(value, Value):
            text = value.stringValue  # mostly
            raw = text if text is not NOTHING else value.raw()
        else:
            raw = NOTHING if value is None else value
        if raw is NOTHING:
            continue
        entries, place = hit
        if place is None:
            for entry in entries:
                field = entry.field
                if field in found:
                    found[field].append((entry, raw))
                else:
                    found[field] = [(entry, raw)]
        elif place == "":
            found.setdefault(entries[0].field, []).append((entries[0], raw))
        else:
            lists.setdefault(entries[0].prefix or "", []).append((place, raw))
    for prefix, leaves in lists.items():
        entry = ENTRIES[prefix][0]
        found.setdefault(entry.field, []).append((entry, leaves))
    return found


_UNSEEN: Any = object()


def _add_nested(found: Found, name: str, raw: Raw) -> None:
    """The attributes of a backend that nests them (Phoenix): {"llm": {"input_messages": [...]}}."""
    inner = {n: Raw(jsontext.encode(v)) for n, v in flattened(decoded(raw), _NAMES, name) if n not in _TOPS}
    for field, values in _found(inner.items()).items():
        found.setdefault(field, []).extend(values)


def _kind(found: Found, name: str) -> str:
    given = found.get("kind", ())
    if len(given) == 1 and (kind := _type_of(*given[0])) is not None:
        return kind
    ranked = [(entry.rank, kind) for entry, raw in given if (kind := _type_of(entry, raw)) is not None]
    if ranked:
        return min(ranked)[1]
    if found and (known := next((kind for start, kind in NAMES if name.startswith(start)), None)):
        return known
    flat = [e.prefix for field in ("inputs", "outputs") for e, raw in found.get(field, ()) if isinstance(raw, list)]
    return "LLM" if flat else UNKNOWN


def _type_of(entry: Entry, raw: Raw | Leaves) -> str | None:
    """The type of the kind that an attribute holds, if the convention has it."""
    if isinstance(raw, list) or entry.kinds is None:
        return None
    kind = entry.kinds.get(bytes(raw)[1:-1].decode("utf-8", "replace"))
    return kind if kind is not None else entry.kinds.get(text_in(content_of(raw)) or "")


_EMPTY = frozenset([b'""', b"null", b"", b"{}", b'"null"'])
_SHORT = 7


def first_of_field(found: Found, field: str) -> Raw:
    """The JSON of the first attribute of a field that has a value, made plain if it has to be."""
    given = found.get(field)
    if given is None:
        return NOTHING
    for entry, raw in given if len(given) == 1 else sorted(given, key=_rank):
        if isinstance(raw, list):
            value = entry.read(unflattened((key, _leaf(leaf)) for key, leaf in raw)) if entry.read else None
        else:
            content = content_of(raw)
            if len(content) < _SHORT and bytes(content) in _EMPTY:
                continue
            if entry.read is None:
                return content
            value = entry.read(decoded(content))
        if value is not None and value not in ("", []):
            return _as_raw(value)
    return NOTHING


def _rank(pair: tuple[Entry, Raw | Leaves]) -> int:
    return pair[0].rank


def _leaf(raw: Raw) -> Any:
    value = jsontext.parse_leniently(bytes(content_of(raw)).decode("utf-8", "replace"))
    return jsontext.parse_leniently(value) if isinstance(value, str) and value[:1] == '"' else value


def _as_raw(value: Any) -> Raw:
    """A value as MLflow writes it: its JSON text as a text."""
    return Raw(jsontext.encode(value if isinstance(value, str) else jsontext.encode(value).decode()))


def text_of_field(found: Found, field: str) -> str | None:
    raw = first_of_field(found, field)
    return None if raw is NOTHING else text_in(raw)


# ---------------------------------------------------------------------------------------------------------------------
# tokens and status
def _usage(found: Found, path: str, notes: list[Finding]) -> Raw:
    if _COUNTS.isdisjoint(found):
        return NOTHING
    counts = [_count(found, field, path, notes) for field in ("input_tokens", "output_tokens", "total_tokens")]
    if "usage" in found and counts == [None, None, None]:
        usage = decoded(first_of_field(found, "usage"))
        usage = usage if isinstance(usage, dict) else {}
        counts = [_count_of(usage.get(key)) for key in ("input", "output", "total")]
    if counts == [None, None, None]:
        return NOTHING
    names = ("input_tokens", "output_tokens", "total_tokens")
    inner = ",".join(f'\\"{name}\\":{count}' for name, count in zip(names, counts, strict=True) if count is not None)
    return Raw(f'"{{{inner}}}"'.encode())


_COUNTS = frozenset(["input_tokens", "output_tokens", "total_tokens", "usage"])


def _count_of(value: Any) -> int | None:
    return None if value is None else count_in(Raw(jsontext.encode(value)))


def _count(found: Found, field: str, path: str, notes: list[Finding]) -> int | None:
    given = found.get(field)
    if given is None:
        return None
    for entry, raw in given if len(given) == 1 else sorted(given, key=_rank):
        count = None if isinstance(raw, list) else count_in(content_of(raw))
        if count is not None:
            return count
        value = None if isinstance(raw, list) else decoded(content_of(raw))
        message = f"omitted: expected a count of tokens, got {describe(value)}"
        notes.append(Finding(rules.ODD_TRACE, message, path=f"{path}.attributes.{_name_of(entry)}"))
    return None


def _name_of(entry: Entry) -> str:
    return next(name for name, entries in ENTRIES.items() if entry in entries)


def _status_of(span: AnySpan, found: Found) -> tuple[str | int | None, str | None]:
    """The status of a span: Jaeger has it in tags, Langfuse in a level."""
    status = span.status
    if isinstance(status, SpanStatus):
        code, message = status.code if status.code is not None else status.status_code, status.message
        message = message or status.description
    else:
        code, message = (
            (status, None) if isinstance(span, PlainSpan) else (status or span.status_code, span.status_message)
        )
    if code not in FAILED_CODES and isinstance(span, OtelSpan) and span.tags is not None:
        code, message = _status_in_tags(span, code, message)
    if code not in FAILED_CODES and "level" in found and text_of_field(found, "level") == "ERROR":
        code = "ERROR"
    if code in FAILED_CODES and not message:
        message = text_of_field(found, "message")
    return code, message or None


def _status_in_tags(span: OtelSpan, code: str | int | None, message: str | None) -> tuple[str | int | None, str | None]:
    tags = {pair.key: pair.value for pair in span.tags or ()}
    is_error = text_in(tags.get("otel.status_code", NOTHING)) == "ERROR" or tags.get("error") == Raw(b"true")
    return ("ERROR", text_in(tags.get("otel.status_description", NOTHING))) if is_error else (code, message)


def pairs_of_mlflow(attributes: dict[str, Raw]) -> Iterator[Pair]:
    """The attributes of a span of MLflow that are not MLflow's own. The value of each is JSON text, also that of a
    text."""
    for name, raw in attributes.items():
        if not name.startswith("mlflow."):
            text = text_of(raw)
            inner = jsontext.parse_leniently(text) if text is not None and text[:1] == '"' else None
            yield name, Raw(jsontext.encode(inner)) if isinstance(inner, str) else raw
