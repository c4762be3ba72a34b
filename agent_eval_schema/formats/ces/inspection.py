"""Every problem of an evaluation that is not valid, each with its JSON path, by the rules of ProtoJSON.

    {"golden": {"turns": [{"steps": [{"userInput": {"text": 1}}]}]}}
                                      └─▶ golden.turns[0].steps[0].userInput.text: expected text, got the number 1

The messages of the wire table (`schema.py`) become types of `json_types.py`; what only this API has is in their checks.
Where the vendor's parser loses data without an error (invalid base64, a list for an object, both spellings of a field),
they are stricter."""

import base64
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache, partial
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.decoding.json_types import Items, Member, Object, Place, Type, UnknownKey, Words, path_of
from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import IMAGE_TYPES, image_problem
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import ces, golden, reading
from agent_eval_schema.text.describe import describe, first_names, key_name, names, truncate
from agent_eval_schema.text.jsontext import as_list, column_of, texts_in
from agent_eval_schema.text.privacy import may_quote, quoted
from agent_eval_schema.text.spelling import ALIASES, match_names, odd_blanks

PRECISE = 1 << 53
"""Whole numbers up to here are the same as doubles."""

FLOAT_MAX = 3.4028234663852886e38

DEEPEST = 40
"""Levels of an object of free content; the API's parsers follow about 46 at the usual place, fewer further down."""


def finding_at(rule: Rule, path: str, message: str, hint: str = "") -> Finding:
    """A finding at a path of an evaluation; its column is the top-level field."""
    return Finding(rule, message, column_of(path) if path else None, path or None, hint)


def inspect_evaluation(value: Any) -> list[Finding]:
    """Every problem of an evaluation as Python data, in reading order; its output-only fields together."""
    stamps = ("createTime", "updateTime", "create_time", "update_time")  # then it is from the server
    is_stored = isinstance(value, dict) and any(value.get(stamp) for stamp in stamps)
    issues = list(_message(schema.EVALUATION, is_stored).problems(value))
    ignored = [one for one in issues if one.rule is ces.OUTPUT_ONLY]
    if ignored:
        first = replace(ignored[0], message=f"only the server sets {first_names([one.path for one in ignored], 3)}")
        issues = [first if d is ignored[0] else d for d in issues if d is ignored[0] or d.rule is not ces.OUTPUT_ONLY]
    issues += _unpaired(schema.with_json_names(value, schema.EVALUATION))
    if isinstance(value, dict) and value.get("invalid") is True:
        issues.append(finding_at(ces.STORED_INVALID, "invalid", "the server marks the evaluation as invalid"))
    return issues


def inspect_message(name: str, value: Any) -> list[Finding]:
    """Every problem of a message of that name, as the server gives it."""
    return list(_message(name, True).problems(value))


def inspect_object(value: Any, path: str) -> list[Finding]:
    """Every problem of an object of free content (arguments, variables, a response)."""
    return list(_free_object().problems(value, (path,) if path else ()))


# --- the words
def _at(rule: Rule, place: Place, message: str, hint: str = "") -> Finding:
    return finding_at(rule, path_of(place), message, hint)


def _wrong_type(expected: str, value: Any, place: Place) -> Finding:
    return _at(ces.FIELD_TYPE, place, f"expected {expected}, got {describe(value)}")


def _unknown(one: UnknownKey, place: Place) -> Finding:
    *above, shown = place
    if (name := one.owner.names.get(one.key)) is not None:
        both = f"`{name}` and `{one.key}` are the same field"
        return _at(ces.REPEATED_KEY, (*above, name), both)
    if one.owner.name == "ToolCall" and one.key in ALIASES["tool_input"]:
        return _at(ces.CALL_ARGUMENTS, place, f"expected the arguments in `args`, got them in `{shown}`")
    hint = f"Did you mean `{one.meant}`?" if one.meant else ""
    return _at(ces.UNKNOWN_FIELD, place, f"unknown field `{shown}` is kept as it is", hint)


def _missing(owner: Object[Finding], name: str, _: Any, place: Place) -> Finding:
    rule = ces.MISSING_DETAIL if schema.is_tolerated(owner.name, name) else ces.MISSING_FIELD
    return _at(rule, (*place, name), f"`{name}` is missing", f"Add `{name}`.")


def _shown(key: str) -> str:
    """A key for a message: the names of fields are not user data."""
    return key if key in schema.field_names(*schema.table().messages) else key_name(key)


_WORDS = Words(_wrong_type, _unknown, _missing, _shown)


# --- the types
@lru_cache(maxsize=256)
def _message(name: str, stored: bool) -> Object[Finding]:
    """The type of a message; if it is `stored`, fields that only the server sets are no issue."""
    message = schema.message(name)

    def members() -> dict[str, Member[Finding]]:
        return {n: _member(name, n, field, stored) for n, field in message.fields.items()}

    oneofs = (partial(_one_of_each, name),) if message.oneofs else ()
    return Object(_WORDS, checks=(*oneofs, _repeats, *_DOUBTS.get(name, ())), make_members=members, name=name)


def _fields(name: str, value: dict[Any, Any]) -> dict[str, Any]:
    """The fields of a message that are set, by their JSON names."""
    names = _message(name, True).names
    return {names[key]: item for key, item in value.items() if key in names and item is not None}


def _meant(name: str, value: dict[Any, Any]) -> Iterable[str]:
    return _message(name, True).meant(value).values()


def _one_of_each(name: str, value: dict[Any, Any], place: Place) -> Iterator[Finding]:
    """Of the fields of a oneof, at most one is set; of one that is a choice, exactly one."""
    message, fields = schema.message(name), _fields(name, value)
    for group in message.oneofs.values():
        present = [n for n in group if n in fields]
        if len(present) > 1:
            yield _at(ces.ONEOF, place, f"expected one of {names(group)}, got {len(present)}: {names(present)}")
        elif not present and group in message.choices and set(group).isdisjoint(_meant(name, value)):
            yield _at(ces.ONEOF, place, f"expected one of {names(group)}, got none", "Set one of them.")


def _member(message: str, name: str, field: schema.FieldType, stored: bool) -> Member[Finding]:
    is_ignored = field.output_only and not stored
    kind = Type(_WORDS, checks=(partial(_ignored, name),)) if is_ignored else _field(message, name, field, stored)
    spellings = tuple(dict.fromkeys((name, field.proto_name)))
    return Member(kind, spellings, field.required, lambda value: value is None, field.is_default)


def _ignored(name: str, _: Any, place: Place) -> Iterator[Finding]:
    yield _at(ces.OUTPUT_ONLY, place, f"`{name}` is set by the server only; a value sent for it is ignored")


def _field(message: str, name: str, field: schema.FieldType, stored: bool) -> Type[Finding]:
    kind, limits, text = _single(field, stored), schema.range_of(message, name), schema.text_of(message, name)
    is_obsolete, is_name = field.deprecated and not field.output_only, name in _NAMES or field.resource_format

    def check(value: Any, place: Place) -> Iterator[Finding]:
        if is_obsolete:
            hint = f"Use {schema.DOCUMENTED.replacements[name]}."
            yield _at(ces.UNUSED_FIELD, place, f"`{name}` is obsolete", hint)
        if is_name:
            yield from _blanks(value, place)
        if limits and not field.repeated:
            yield from _outside(limits, value, place)
        elif limits and len(value) > limits[1]:
            yield _at(ces.LIMIT, place, f"expected at most {limits[1]} {name}, got {len(value)}")
        if text and not re.match(text[0], value):
            yield _at(ces.ENUM, place, f"expected {text[1]}, got {describe(value)}", f"Use {text[1]}.")

    kind = Items(_WORDS, of=[kind]) if field.repeated else kind
    return replace(kind, checks=(*kind.checks, check)) if is_obsolete or is_name or limits or text else kind


def _outside(limits: tuple[int, int], value: Any, place: Place) -> Iterator[Finding]:
    least, most = limits
    if not least <= (number := float(value)) <= most:
        is_percent = limits == (0, 1) and 1 < number <= 100 and may_quote()
        hint = f"Write {most} or less." if number > most else f"Write {least} or more."
        hint = f"Write {number / 100:g} for {number:g} %." if is_percent else hint
        yield _at(ces.LIMIT, place, f"expected a number from {least} to {most}, got {describe(value)}", hint)


def _single(field: schema.FieldType, stored: bool) -> Type[Finding]:
    """The type of a field, or of an item of its list."""
    if field.message:
        return _message(field.message, stored)
    if field.enum:
        return Type(_WORDS, checks=(partial(_other_value, schema.table().enums[field.enum]),))
    if field.type == schema.STRUCT:
        return _free_object()
    checks = (_encodable, partial(_no_resource, field)) if field.resource_format else (_encodable,)
    return Type(_WORDS, *_SCALARS[field.type], checks)


def _other_value(known: Mapping[str, int], value: Any, place: Place) -> Iterator[Finding]:
    if _as_int(value) not in known.values() and not (isinstance(value, str) and value in known):
        message = f"expected one of {names(known)}, got {describe(value)}"
        yield _at(ces.ENUM, place, message, hint_for_name(value, known))


def _no_resource(field: schema.FieldType, value: str, place: Place) -> Iterator[Finding]:
    if not re.search(resource_pattern(field), value):
        message = f"expected a bare name or {field.resource_format[0]}, got {describe(value, 120)}"
        yield _at(ces.RESOURCE_NAME, place, message)


_NAMES = frozenset(("displayName", "tags", "id", "toolId"))
"""The fields that name something, beside those with the name of a resource."""


def _blanks(value: Any, place: Place) -> Iterator[Finding]:
    for path, text in texts_in(value, path_of(place)):
        if odd_blanks(text) and text.strip():
            message = f"expected single blanks inside only, got {quoted(truncate(text, 120))}"
            yield finding_at(ces.BLANKS_IN_NAME, path, message)


# --- fields whose problem another one of their message shows
def _doubtful_image(value: dict[Any, Any], place: Place) -> Iterator[Finding]:
    fields = _fields("Image", value)
    kind, text = fields.get("mimeType"), fields.get("data")
    data = decode_base64(text) if isinstance(text, str) else None
    if isinstance(kind, str) and kind and data and (problem := image_problem(kind, data)):
        yield _at(golden.IMAGE, (*place, "data" if kind in IMAGE_TYPES else "mimeType"), *problem)


def _doubtful_input(value: dict[Any, Any], place: Place) -> Iterator[Finding]:
    fields = _fields("SessionInput", value)
    if "willContinue" in fields and (kind := next((n for n in ("audio", "dtmf") if n in fields), "")):
        message = f"`willContinue` does not apply to `{kind}`"
        yield _at(ces.UNUSED_FIELD, (*place, "willContinue"), message, "Remove it.")


def _doubtful_response(value: dict[Any, Any], place: Place) -> Iterator[Finding]:
    response = _fields("Evaluation.GoldenExpectation", value).get("agentResponse")
    if isinstance(response, dict) and "eventTime" in _fields("Message", response):
        message = "`eventTime` is for messages of a conversation"
        yield _at(ces.UNUSED_FIELD, (*place, "agentResponse", "eventTime"), message, "Remove it.")


_DOUBTS = {
    "Image": (_doubtful_image,),
    "SessionInput": (_doubtful_input,),
    "Evaluation.GoldenExpectation": (_doubtful_response,),
    "Evaluation.ScenarioExpectation": (_doubtful_response,),
}


def _steps(evaluation: Any) -> Iterator[tuple[str, Any]]:
    """The steps of a golden evaluation, each with its path."""
    for i, turn in enumerate(as_list(schema.part_at(evaluation, "golden.turns"))):
        for j, step in enumerate(as_list(schema.part_at(turn, "steps"))):
            yield f"golden.turns[{i}].steps[{j}]", step


def _tool_expectations(evaluation: Any) -> Iterator[tuple[str, Any]]:
    """The expectations of a scenario on tools, each with its path."""
    for i, item in enumerate(as_list(schema.part_at(evaluation, "scenario.scenarioExpectations"))):
        yield f"scenario.scenarioExpectations[{i}].toolExpectation", schema.part_at(item, "toolExpectation")


def expected_calls(evaluation: Any) -> Iterator[tuple[str, Any]]:
    """The calls that an evaluation with JSON names expects, each with its path."""
    for path, step in _steps(evaluation):
        yield f"{path}.expectation.toolCall", schema.part_at(step, "expectation.toolCall")
    for path, pair in _tool_expectations(evaluation):
        yield f"{path}.expectedToolCall", schema.part_at(pair, "expectedToolCall")


def _unpaired(evaluation: Any) -> Iterator[Finding]:
    """Tool responses without their call: the expected call before of that ID, or for a mock the call beside it."""
    calls: dict[Any, Any] = {}
    for path, step in _steps(evaluation):
        call = schema.part_at(step, "expectation.toolCall")
        if isinstance(own := schema.part_at(call, "id"), str):
            calls[own] = call
        inputs = enumerate(as_list(schema.part_at(step, "userInput.toolResponses.toolResponses")))
        responses = [(f"{path}.userInput.toolResponses.toolResponses[{i}]", response) for i, response in inputs]
        expected = f"{path}.expectation.toolResponse", schema.part_at(step, "expectation.toolResponse")
        for place, response in [*responses, expected]:
            own = schema.part_at(response, "id")
            if isinstance(own, str) and own and own not in calls:
                message = f"expected the id of a tool call before it, got {describe(own)}"
                yield finding_at(ces.TOOL_PAIR, f"{place}.id", message)
            elif isinstance(own, str) and own:
                yield from _same_tool(calls[own], response, place)
    for path, pair in _tool_expectations(evaluation):
        call, mock = (schema.part_at(pair, side) for side in ("expectedToolCall", "mockToolResponse"))
        yield from _same_tool(call, mock, f"{path}.mockToolResponse")
        ids = [schema.part_at(side, "id") for side in (call, mock)]
        if all(isinstance(own, str) and own for own in ids) and ids[0] != ids[1]:
            message = f"expected the id of the expected call, {describe(ids[0])}, got {describe(ids[1])}"
            yield finding_at(ces.TOOL_PAIR, f"{path}.mockToolResponse.id", message)


def _same_tool(call: Any, response: Any, path: str) -> Iterator[Finding]:
    """Names in different conventions cannot be compared."""
    for name in ("tool", "toolsetTool"):
        column, others = schema.part_at(call, name), schema.part_at(response, name)
        is_same_convention = isinstance(column, str) and isinstance(others, str) and ("/" in column) == ("/" in others)
        if column != others and (is_same_convention or (isinstance(column, dict) and isinstance(others, dict))):
            message = f"expected the tool of the call, {describe(column, 120)}, got {describe(others, 120)}"
            yield finding_at(ces.TOOL_PAIR, f"{path}.{name}", message)


def _repeats(value: Any, place: Place) -> Iterator[Finding]:
    for key in getattr(value, "repeated", ()):
        yield _at(ces.REPEATED_KEY, (*place, _shown(key)), f"the key `{_shown(key)}` is duplicated")


def hint_for_name(value: Any, known: Collection[str]) -> str:
    """The hint for a value that is none of the known names, which are in capitals. A guess would quote the value."""
    is_guessed = isinstance(value, str) and may_quote()
    close = match_names([value], [name.lower() for name in known], cutoff=0.8) if is_guessed else {}
    return f"Did you mean {close[value].upper()}?" if close else f"Use one of {names(known)}."


@lru_cache(maxsize=1)
def _free_object() -> Type[Finding]:
    return Type(_WORDS, "an object", lambda value: isinstance(value, dict), (_free_value,))


def _free_value(value: Any, place: Place, depth: int = 1) -> Iterator[Finding]:
    if depth > DEEPEST:
        yield _at(reading.TOO_DEEP, place, f"expected at most {DEEPEST} levels, got more")
    elif isinstance(value, dict):
        yield from _repeats(value, place)
        for key, item in value.items():
            if not isinstance(key, str):
                yield _wrong_type("a key that is text", key, place)
            else:
                yield from _encodable(key, place)
                yield from _free_value(item, (*place, key_name(key)), depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _free_value(item, (*place, i), depth + 1)
    elif isinstance(value, str):
        yield from _encodable(value, place)
    elif value is not None and not isinstance(value, bool):
        if isinstance(value, int) and value.bit_length() < 1024:
            if abs(value) > PRECISE and int(float(value)) != value:
                message = f"expected a whole number up to 2^53, got {describe(value)}, which is kept as a double"
                yield _at(ces.PRECISION, place, message)
        elif not isinstance(value, float) or not math.isfinite(value):
            yield _wrong_type("a number of the size of a double", value, place)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _encodable(value: Any, place: Place) -> Iterator[Finding]:
    if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
        yield _at(reading.LONE_SURROGATE, place, "expected text, got a lone surrogate (invalid Unicode)")


def _as_int(value: Any) -> int | None:
    """The integer that a field reads: of a number without a fraction, or of the text of one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d{1,20}", value, re.ASCII) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _is_double(value: Any, most: float = math.inf) -> bool:
    if isinstance(value, str):
        is_decimal = re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value, re.ASCII) is not None
        return value in ("NaN", "Infinity", "-Infinity") or (is_decimal and _is_double(float(value), most))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_finite = is_number and (value.bit_length() < 1024 if isinstance(value, int) else math.isfinite(value))
    return is_finite and abs(value) <= most


def decode_base64(text: str) -> bytes | None:
    """The bytes of base64 text, in the standard or the URL-safe alphabet, padded or not; None if it is not base64."""
    plain = text.translate(_URL_SAFE).rstrip("=")
    if len(text) - len(plain) not in (0, -len(plain) % 4) or len(plain) % 4 == 1 or not _BASE64.fullmatch(plain):
        return None
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


_URL_SAFE = str.maketrans("-_", "+/")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*", re.ASCII)

_TIMESTAMP = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(?P<offset>Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


_DURATION = re.compile(r"-?(\d{1,12})(\.\d{1,9})?s", re.ASCII)


def _timestamp(value: Any) -> datetime | None:
    found = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        with suppress(ValueError, OverflowError):  # in UTC, where the years 1 to 9999 end too
            text = f"{found['time']}{found['offset']}"
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").astimezone(timezone.utc)
    return None


_SCALARS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("text", lambda v: isinstance(v, str)),
    "bool": ("true or false", lambda v: isinstance(v, bool)),
    "bytes": ("base64 text", lambda v: isinstance(v, str) and decode_base64(v) is not None),
    "int32": (
        "a whole number of 32 bits",
        lambda v: -(1 << 31) <= (1 << 31 if (n := _as_int(v)) is None else n) < 1 << 31,
    ),
    "float": ("a number", lambda v: _is_double(v, FLOAT_MAX)),
    "double": ("a number", _is_double),
    schema.TIMESTAMP: ('a time with an offset ("2025-01-31T12:00:00Z")', lambda v: _timestamp(v) is not None),
    schema.DURATION: (
        'a duration in seconds ("1.5s")',
        lambda v: bool(isinstance(v, str) and (m := _DURATION.fullmatch(v)) and int(m[1]) <= 315_576_000_000),
    ),
    schema.STATUS: ("an object with code, message and details", lambda v: isinstance(v, dict)),
    "google.protobuf.FieldMask": ("text: field paths between commas", lambda v: isinstance(v, str)),
}
"""The expected value of each type, in words and as a test."""


@lru_cache(maxsize=64)
def resource_pattern(field: schema.FieldType) -> str:
    """The pattern of a name: bare (as app packages write it), or in full."""
    full = [re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(form)) for form in field.resource_format]
    return "^(?:" + "|".join(full) + r"|[^/]*)\Z"  # the longer form first: its first letters identify it
