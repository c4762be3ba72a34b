"""Every problem of an evaluation that is not valid, each with its JSON path, by the rules of ProtoJSON.

    {"golden": {"turns": [{"steps": [{"userInput": {"text": 1}}]}]}}
                                      └─▶ golden.turns[0].steps[0].userInput.text: expected text, got the number 1

The walk follows the wire table (`schema.py`). Where the vendor's parser loses data without an error (invalid base64, a
list for an object, both spellings of a field), it is stricter."""

import base64
import math
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

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
    issues = list(_Walk(is_stored).message(schema.EVALUATION, value, ""))
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
    return list(_Walk(True).message(name, value, ""))


def inspect_object(value: Any, path: str) -> list[Finding]:
    """Every problem of an object of free content (arguments, variables, a response)."""
    return list(_free_value(value, path, 1)) if isinstance(value, dict) else [_wrong_type("an object", value, path)]


class _Walk:
    """The walk through a message and its fields; if it is `stored`, fields that only the server sets are no issue."""

    def __init__(self, stored: bool) -> None:
        self._stored = stored

    def message(self, name: str, value: Any, path: str) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield _wrong_type("an object", value, path)
            return
        message = schema.message(name)
        unknown = [key for key in value if message.json_name(str(key)) is None]
        meant = dict[str, str]()
        if unknown:
            absent = [n for n, field in message.fields.items() if _value(value, n, field) is None]
            meant = match_names(map(str, unknown), absent)
        yield from _repeats(value, message, path)
        for key, item in value.items():
            json_name = message.json_name(str(key))
            if json_name is None:
                place, shown, right = _join(path, key_name(str(key))), key_name(str(key)), meant.get(str(key))
                if name == "ToolCall" and key in ALIASES["tool_input"]:
                    message_ = f"expected the arguments in `args`, got them in `{shown}`"
                    yield finding_at(ces.CALL_ARGUMENTS, place, message_)
                else:
                    hint = f"Did you mean `{right}`?" if right else ""
                    yield finding_at(ces.UNKNOWN_FIELD, place, f"unknown field `{shown}` is kept as it is", hint)
            elif item is not None:
                yield from self._field(name, json_name, message.fields[json_name], item, _join(path, str(key)))
        named = set(meant.values())
        for json_name, field in message.fields.items():
            if not field.required or json_name in named:
                continue
            found = _value(value, json_name, field)
            if found is None or field.is_default(found):  # to the API, empty is missing
                rule = ces.MISSING_DETAIL if schema.is_tolerated(name, json_name) else ces.MISSING_FIELD
                yield finding_at(rule, _join(path, json_name), f"`{json_name}` is missing", f"Add `{json_name}`.")
        for group in message.oneofs.values():
            present = [n for n in group if _value(value, n, message.fields[n]) is not None]
            if len(present) > 1:
                several = f"expected one of {names(group)}, got {len(present)}: {names(present)}"
                yield finding_at(ces.ONEOF, path, several)
            elif not present and group in message.choices and not named & set(group):
                yield finding_at(ces.ONEOF, path, f"expected one of {names(group)}, got none", "Set one of them.")
        yield from _doubtful(name, value, path)

    def _field(self, message: str, name: str, field: schema.FieldType, value: Any, path: str) -> Iterator[Finding]:
        if field.output_only and not self._stored:
            ignored = f"`{name}` is set by the server only; a value sent for it is ignored"
            yield finding_at(ces.OUTPUT_ONLY, path, ignored)
            return
        if field.deprecated and not field.output_only:
            replacement = f"Use {schema.DOCUMENTED.replacements[name]}."
            yield finding_at(ces.UNUSED_FIELD, path, f"`{name}` is obsolete", replacement)
        limits = schema.range_of(message, name)
        if name in _NAMES or field.resource_format:
            yield from _blanks(value, path)
        if field.repeated:
            if not isinstance(value, list):
                yield _wrong_type("a list", value, path)
                return
            for i, item in enumerate(value):
                yield from self._single(field, item, f"{path}[{i}]")
            if limits and len(value) > limits[1]:
                yield finding_at(ces.LIMIT, path, f"expected at most {limits[1]} {name}, got {len(value)}")
            return
        findings = list(self._single(field, value, path))
        yield from findings
        if findings:
            return
        if limits and not limits[0] <= (number := float(value)) <= limits[1]:
            message_ = f"expected a number from {limits[0]} to {limits[1]}, got {describe(value)}"
            is_percent = limits == (0, 1) and 1 < number <= 100 and may_quote()
            hint = f"Write {limits[1]} or less." if number > limits[1] else f"Write {limits[0]} or more."
            hint = f"Write {number / 100:g} for {number:g} %." if is_percent else hint
            yield finding_at(ces.LIMIT, path, message_, hint)
        elif (text := schema.text_of(message, name)) is not None:
            pattern, words = text
            if not re.match(pattern, value):
                yield finding_at(ces.ENUM, path, f"expected {words}, got {describe(value)}", f"Use {words}.")

    def _single(self, field: schema.FieldType, value: Any, path: str) -> Iterator[Finding]:
        if field.message:
            yield from self.message(field.message, value, path)
        elif field.enum:
            values = schema.table().enums[field.enum]
            if _as_int(value) not in values.values() and not (isinstance(value, str) and value in values):
                message = f"expected one of {names(values)}, got {describe(value)}"
                yield finding_at(ces.ENUM, path, message, hint_for_name(value, values))
        elif field.type == schema.STRUCT:
            yield from inspect_object(value, path)
        else:
            expected, accepts = _SCALARS[field.type]
            if not accepts(value):
                yield _wrong_type(expected, value, path)
            elif isinstance(value, str):
                yield from _encodable(value, path)
                if field.resource_format and not re.search(resource_pattern(field), value):
                    message = f"expected a bare name or {field.resource_format[0]}, got {describe(value, 120)}"
                    yield finding_at(ces.RESOURCE_NAME, path, message)


_NAMES = frozenset(("displayName", "tags", "id", "toolId"))
"""The fields that name something, beside those with the name of a resource."""


def _blanks(value: Any, path: str) -> Iterator[Finding]:
    for place, text in texts_in(value, path):
        if odd_blanks(text) and text.strip():
            message = f"expected single blanks inside only, got {quoted(truncate(text, 120))}"
            yield finding_at(ces.BLANKS_IN_NAME, place, message)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _wrong_type(expected: str, value: Any, path: str) -> Finding:
    return finding_at(ces.FIELD_TYPE, path, f"expected {expected}, got {describe(value)}")


def _value(message: dict[Any, Any], name: str, field: schema.FieldType) -> Any:
    """The value of a field, under either of its names; null is unset."""
    value = message.get(name)
    return message.get(field.proto_name) if value is None else value


_AGENT_RESPONSES = ("Evaluation.GoldenExpectation", "Evaluation.ScenarioExpectation")


def _doubtful(name: str, value: dict[Any, Any], path: str) -> Iterator[Finding]:
    """The problems of a field that another one of its message shows."""
    if name not in ("Image", "SessionInput", *_AGENT_RESPONSES):
        return
    value = schema.with_json_names(value, name)
    if name == "Image":
        kind, text = value.get("mimeType"), value.get("data")
        data = decode_base64(text) if isinstance(text, str) else None
        if isinstance(kind, str) and kind and data and (problem := image_problem(kind, data)):
            place = "data" if kind in IMAGE_TYPES else "mimeType"
            yield finding_at(golden.IMAGE, _join(path, place), *problem)
    elif name in _AGENT_RESPONSES:
        if schema.part_at(value, "agentResponse.eventTime") is not None:
            place = _join(path, "agentResponse.eventTime")
            yield finding_at(ces.UNUSED_FIELD, place, "`eventTime` is for messages of a conversation", "Remove it.")
    elif "willContinue" in value and (kind := next((n for n in ("audio", "dtmf") if n in value), "")):
        message = f"`willContinue` does not apply to `{kind}`"
        yield finding_at(ces.UNUSED_FIELD, _join(path, "willContinue"), message, "Remove it.")


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


def _repeats(value: dict[Any, Any], message: schema.MessageType | None, path: str) -> Iterator[Finding]:
    for key in getattr(value, "repeated", ()):
        name = key if message is not None and message.json_name(key) else key_name(key)
        yield finding_at(ces.REPEATED_KEY, _join(path, name), f"the key `{name}` is duplicated")
    may_repeat = message is not None and any(["_" in str(key) for key in value])  # as all names of protobuf that differ
    for name, field in message.fields.items() if message is not None and may_repeat else ():
        if name != field.proto_name and name in value and field.proto_name in value:
            both = f"`{name}` and `{field.proto_name}` are the same field"
            yield finding_at(ces.REPEATED_KEY, _join(path, name), both)


def hint_for_name(value: Any, known: Collection[str]) -> str:
    """The hint for a value that is none of the known names, which are in capitals. A guess would quote the value."""
    is_guessed = isinstance(value, str) and may_quote()
    close = match_names([value], [name.lower() for name in known], cutoff=0.8) if is_guessed else {}
    return f"Did you mean {close[value].upper()}?" if close else f"Use one of {names(known)}."


def _free_value(value: Any, path: str, depth: int) -> Iterator[Finding]:
    if depth > DEEPEST:
        yield finding_at(reading.TOO_DEEP, path, f"expected at most {DEEPEST} levels, got more")
    elif isinstance(value, dict):
        yield from _repeats(value, None, path)
        for key, item in value.items():
            if not isinstance(key, str):
                yield _wrong_type("a key that is text", key, path)
            else:
                yield from _encodable(key, path)
                yield from _free_value(item, _join(path, key_name(key)), depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _free_value(item, f"{path}[{i}]", depth + 1)
    elif isinstance(value, str):
        yield from _encodable(value, path)
    elif value is not None and not isinstance(value, bool):
        if isinstance(value, int) and value.bit_length() < 1024:
            if abs(value) > PRECISE and int(float(value)) != value:
                message = f"expected a whole number up to 2^53, got {describe(value)}, which is kept as a double"
                yield finding_at(ces.PRECISION, path, message)
        elif not isinstance(value, float) or not math.isfinite(value):
            yield _wrong_type("a number of the size of a double", value, path)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _encodable(value: str, path: str) -> Iterator[Finding]:
    if not value.isascii() and _SURROGATE.search(value):
        yield finding_at(reading.LONE_SURROGATE, path, "expected text, got a lone surrogate (invalid Unicode)")


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
