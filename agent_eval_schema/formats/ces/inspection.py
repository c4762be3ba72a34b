"""The second look at an evaluation: every problem, each with its JSON path, after the rules of ProtoJSON.

    {"golden": {"turns": [{"steps": [{"userInput": {"text": 1}}]}]}}
                                      └─▶ golden.turns[0].steps[0].userInput.text: expected text, got the number 1

The walk follows the wire table (`schema.py`). Where the vendor's parser loses data without a word (base64 that is none,
a list for an object, both spellings of a field), it is stricter.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.shapes import MAX_TURNS, PRECISE, REFUSED, resource_pattern
from agent_eval_schema.issues import Rule
from agent_eval_schema.rules import ces, reading
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe, key_name, names
from agent_eval_schema.text.privacy import may_quote
from agent_eval_schema.text.spelling import match_names

DEEPEST = 40
"""Levels of an object of free content; the API's parsers follow about 46 at the usual place, fewer further down."""

_FLOAT_MAX = 3.4028234663852886e38


class Defect(NamedTuple):
    """What is wrong at a path; an empty hint is the rule's own."""

    rule: Rule
    path: str
    message: str
    hint: str = ""


class Repeated(dict[str, Any]):
    """An object in whose text keys stand twice; the last value of each was kept."""

    repeated: tuple[str, ...] = ()


def parse_keeping_repeats(text: str) -> Any:
    """The value of JSON text, with `Repeated` objects; or a `Malformed` that says why not."""
    value = jsontext.parse(text)
    if isinstance(value, jsontext.Malformed):
        return value
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_object)
    except (ValueError, RecursionError):  # which msgspec has read: Python's parser has less depth, and fewer digits
        return jsontext.Malformed(reading.TOO_DEEP, "expected JSON of ordinary depth and numbers of ordinary length")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    repeated = Repeated(found)
    repeated.repeated = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return repeated


def inspect_evaluation(value: Any) -> list[Defect]:
    """Every problem of an evaluation as Python data, in reading order."""
    return list(_Walk(_is_stored(value)).message(schema.EVALUATION, value, ""))


def inspect_message(name: str, value: Any) -> list[Defect]:
    """Every problem of a message of that name, as the server gives it."""
    return list(_Walk(True).message(name, value, ""))


def inspect_object(value: Any, path: str) -> list[Defect]:
    """Every problem of an object of free content (arguments, variables, a response)."""
    return list(_free_object(value, path, 1))


def _is_stored(value: Any) -> bool:
    """Whether this is an evaluation as the server gave it: then what only the server sets is no surprise."""
    stamps = ("createTime", "updateTime", "create_time", "update_time")
    return isinstance(value, dict) and any(value.get(stamp) for stamp in stamps)


class _Walk:
    def __init__(self, stored: bool) -> None:
        self._stored = stored

    def message(self, name: str, value: Any, path: str) -> Iterator[Defect]:
        if not isinstance(value, dict):
            yield _wrong_type("an object", value, path)
            return
        message = schema.message(name)
        unknown = [key for key in value if message.json_name(str(key)) is None]
        absent = [n for n in message.fields if not _is_given(value, n, message.fields[n])]
        meant = match_names(map(str, unknown), absent)
        yield from _repeats(value, message, path)
        for key, item in value.items():
            json_name = message.json_name(str(key))
            if json_name is None:
                yield _unknown(str(key), meant.get(str(key)), path)
            elif item is not None:
                yield from self._field(name, json_name, message.fields[json_name], item, _join(path, str(key)))
        yield from _missing(name, message, value, set(meant.values()), path)
        yield from _oneofs(message, value, set(meant.values()), path)

    def _field(self, message: str, name: str, field: schema.FieldType, value: Any, path: str) -> Iterator[Defect]:
        if field.output_only and not self._stored:
            yield Defect(ces.OUTPUT_ONLY, path, f"`{name}` is set by the server only, what is sent there is ignored")
            return
        if field.type == "map":
            yield from self._map(field, value, path)
        elif field.repeated:
            yield from self._list(message, name, field, value, path)
        else:
            yield from self._single(field, value, path)
            most = _as_int(value) if name == "maxTurns" and _is_int32(value) else None
            if most is not None and not 0 <= most <= MAX_TURNS:
                hint = f"give {MAX_TURNS} or less"
                yield Defect(ces.LIMIT, path, f"expected 0 to {MAX_TURNS} turns, got {describe(value)}", hint)

    def _list(self, message: str, name: str, field: schema.FieldType, value: Any, path: str) -> Iterator[Defect]:
        if not isinstance(value, list):
            yield _wrong_type("a list", value, path)
            return
        for i, item in enumerate(value):
            yield from self._single(field, item, f"{path}[{i}]")
        if (message, name) == ("Evaluation.Golden", "turns") and len(value) > MAX_TURNS:
            yield Defect(ces.LIMIT, path, f"expected at most {MAX_TURNS} turns, got {len(value)}")

    def _map(self, field: schema.FieldType, value: Any, path: str) -> Iterator[Defect]:
        if not isinstance(value, dict):
            yield _wrong_type("an object", value, path)
            return
        of = schema.FieldType(proto_name="", type=field.map_value)
        for key, item in value.items():
            yield from self._single(of, item, _join(path, key_name(str(key))))

    def _single(self, field: schema.FieldType, value: Any, path: str) -> Iterator[Defect]:
        if field.message:
            yield from self.message(field.message, value, path)
        elif field.enum:
            yield from _enum(field.enum, value, path)
        elif field.type == schema.STRUCT:
            yield from _free_object(value, path, 1)
        else:
            expected, accepts = _SCALARS[field.type]
            if not accepts(value):
                yield _wrong_type(expected, value, path)
            elif isinstance(value, str):
                yield from _text(field, value, path)


# ---------------------------------------------------------------------------------------------------------------------
# an object as a whole
def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _wrong_type(expected: str, value: Any, path: str) -> Defect:
    return Defect(ces.FIELD_TYPE, path, f"expected {expected}, got {describe(value)}")


def _unknown(key: str, meant: str | None, path: str) -> Defect:
    name = key_name(key)
    return Defect(
        ces.UNKNOWN_FIELD,
        _join(path, name),
        f"unknown field `{name}` is kept as it is",
        f"did you mean `{meant}`?" if meant else "",
    )


def _is_given(value: dict[Any, Any], name: str, field: schema.FieldType) -> bool:
    """Whether a field is set, under either of its names; null is unset."""
    return value.get(name) is not None or value.get(field.proto_name) is not None


def _repeats(value: dict[Any, Any], message: schema.MessageType | None, path: str) -> Iterator[Defect]:
    for key in getattr(value, "repeated", ()):
        name = key if message is not None and message.json_name(key) else key_name(key)
        yield Defect(ces.REPEATED_KEY, _join(path, name), f"the key `{name}` stands twice")
    for name, field in message.fields.items() if message is not None else ():
        if name != field.proto_name and name in value and field.proto_name in value:
            said = f"`{name}` and `{field.proto_name}` are the same field"
            yield Defect(ces.REPEATED_KEY, _join(path, name), said)


def _missing(
    name: str, message: schema.MessageType, value: dict[Any, Any], meant: set[str], path: str
) -> Iterator[Defect]:
    for json_name, field in message.fields.items():
        if not field.required or json_name in meant or _is_filled(value, json_name, field):
            continue
        refused = json_name in REFUSED.get(name, ())
        rule = ces.MISSING_FIELD if refused else ces.MISSING_DETAIL
        yield Defect(rule, _join(path, json_name), f"`{json_name}` is missing", f"add `{json_name}`")


def _is_filled(value: dict[Any, Any], name: str, field: schema.FieldType) -> bool:
    """Whether a required field says something: an empty text or list is the same as none in the API."""
    given = value.get(name) if value.get(name) is not None else value.get(field.proto_name)
    return given is not None and given not in ("", [])


def _oneofs(message: schema.MessageType, value: dict[Any, Any], meant: set[str], path: str) -> Iterator[Defect]:
    for group in message.oneofs.values():
        fields = [message.fields[n] for n in group]
        given = [n for n, field in zip(group, fields, strict=True) if _is_given(value, n, field)]
        if len(given) > 1:
            message_ = f"expected one of {names(group)}, got {len(given)}: {names(given)}"
            yield Defect(ces.ONEOF, path, message_)
        elif not given and len(group) > 1 and not meant & set(group) and not any(f.output_only for f in fields):
            yield Defect(ces.ONEOF, path, f"expected one of {names(group)}, got none", "set one of them")


# ---------------------------------------------------------------------------------------------------------------------
# single values
def _enum(name: str, value: Any, path: str) -> Iterator[Defect]:
    values = schema.enum_values(name)
    number = _as_int(value)
    if number in values.values() or (isinstance(value, str) and value in values):
        return
    is_guessed = isinstance(value, str) and may_quote()  # a guess says something of the value
    close = match_names([value], [known.lower() for known in values], cutoff=0.8) if is_guessed else {}
    hint = f"did you mean {close[value].upper()}?" if close else f"use one of {names(values)}"
    yield Defect(ces.ENUM, path, f"expected one of {names(values)}, got {describe(value)}", hint)


def _free_object(value: Any, path: str, depth: int) -> Iterator[Defect]:
    if not isinstance(value, dict):
        yield _wrong_type("an object", value, path)
        return
    yield from _free_value(value, path, depth)


def _free_value(value: Any, path: str, depth: int) -> Iterator[Defect]:
    if depth > DEEPEST:
        yield Defect(reading.TOO_DEEP, path, f"expected at most {DEEPEST} levels, got more")
    elif isinstance(value, dict):
        yield from _repeats(value, None, path)
        for key, item in value.items():
            if not isinstance(key, str):
                yield _wrong_type("a key that is text", key, path)
            else:
                yield from _whole_text(key, path)
                yield from _free_value(item, _join(path, key_name(key)), depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _free_value(item, f"{path}[{i}]", depth + 1)
    elif isinstance(value, str):
        yield from _whole_text(value, path)
    elif value is not None and not isinstance(value, bool):
        yield from _number(value, path)


def _number(value: Any, path: str) -> Iterator[Defect]:
    if isinstance(value, int) and value.bit_length() < 1024:
        if abs(value) > PRECISE and int(float(value)) != value:
            message = f"expected a whole number up to 2^53, got {describe(value)}, which is kept as a double"
            yield Defect(ces.PRECISION, path, message)
    elif not isinstance(value, float) or not math.isfinite(value):
        yield _wrong_type("a number of the size of a double", value, path)


def _text(field: schema.FieldType, value: str, path: str) -> Iterator[Defect]:
    yield from _whole_text(value, path)
    if field.resource_format and not re.search(resource_pattern(field), value):
        message = f"expected a bare name or {field.resource_format[0]}, got {describe(value, 120)}"
        yield Defect(ces.RESOURCE_NAME, path, message)


def _whole_text(value: str, path: str) -> Iterator[Defect]:
    if any("\ud800" <= c <= "\udfff" for c in value):
        yield Defect(reading.LONE_SURROGATE, path, "expected text, got half of a character (a lone surrogate)")


def _as_int(value: Any) -> int | None:
    """What an integer field makes of a value: a number without a fraction, or the text of one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d{1,20}", value, re.ASCII) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _is_int32(value: Any) -> bool:
    number = _as_int(value)
    return number is not None and -(1 << 31) <= number < 1 << 31


def _is_double(value: Any, most: float = math.inf) -> bool:
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return True
        if not re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value, re.ASCII):
            return False
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (not isinstance(value, int) or value.bit_length() < 1024) and abs(value) <= most and math.isfinite(value)


def decode_base64(text: str) -> bytes | None:
    """The bytes of base64 text, in the standard or the URL-safe alphabet, padded or not; None if it is none."""
    plain = text.translate(_URL_SAFE).rstrip("=")
    if len(text) - len(plain) not in (0, -len(plain) % 4) or len(plain) % 4 == 1 or not _BASE64.fullmatch(plain):
        return None
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


_URL_SAFE = str.maketrans("-_", "+/")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*", re.ASCII)

_TIMESTAMP = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(?P<offset>Z|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def _is_timestamp(value: Any) -> bool:
    found = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return False
    try:
        datetime.strptime(found["time"], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return False
    return True


_DURATION = re.compile(r"-?(\d{1,12})(\.\d{1,9})?s", re.ASCII)


def _is_duration(value: Any) -> bool:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return found is not None and int(found[1]) <= 315_576_000_000


_SCALARS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("text", lambda v: isinstance(v, str)),
    "bool": ("true or false", lambda v: isinstance(v, bool)),
    "bytes": ("base64 text", lambda v: isinstance(v, str) and decode_base64(v) is not None),
    "int32": ("a whole number of 32 bits", _is_int32),
    "float": ("a number", lambda v: _is_double(v, _FLOAT_MAX)),
    "double": ("a number", _is_double),
    schema.TIMESTAMP: ('a time with an offset ("2025-01-31T12:00:00Z")', _is_timestamp),
    schema.DURATION: ('a duration in seconds ("1.5s")', _is_duration),
    schema.STATUS: ("an object with code, message and details", lambda v: isinstance(v, dict)),
    "google.protobuf.FieldMask": ("text: field paths between commas", lambda v: isinstance(v, str)),
}
"""What a value of each type must be, in words and as a test."""
