"""The fast yes: is a text an evaluation without any issue?

The wire table becomes msgspec Structs that are stricter than the API: one decode rejects wrong types, missing fields,
unknown names and enums, another one of a oneof's fields beside the first. A rejected text is not necessarily invalid:
it is inspected (`inspection.py`); so a yes must be right, while a no may cost time only.

A decoder does not see a duplicate key. Colons do: the decoded value is written again, and has as many of them
as the text if no key was lost.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct, defstruct

from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import image_problem
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep

PRECISE = 1 << 53
"""Whole numbers up to here are the same as doubles."""

FLOAT_MAX = 3.4028234663852886e38
_SCALARS: dict[str, Any] = {
    "string": str,
    "bytes": bytes,
    "bool": bool,
    "int32": Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)],
    "float": Annotated[float, Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)],
    "double": float,
    schema.TIMESTAMP: Annotated[
        str, Meta(pattern=r"^(?!0000)\d{4}-(0[1-9]|1[0-2])-([01]\d|2[0-8])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$")
    ],
    schema.DURATION: Annotated[str, Meta(pattern=r"^\d{1,9}(\.\d{1,9})?s$")],
}


def conforms(text: bytes) -> bool:
    """Whether the JSON text is an evaluation without any issue. False only means that it must be inspected."""
    if is_too_deep(text):
        return False
    for stored in (False, True):
        try:
            value = decoder(stored).decode(text)
            checker(stored)(value)
        except ValueError:
            continue
        if stored and (value.invalid or (value.create_time is None and value.update_time is None)):
            return False
        written = bytearray(len(text))  # of that size it need not grow
        _encoder.encode_into(value, written)
        return _colons(text) == _colons(written) and not _escaped_colon(text)
    return False


def _colons(text: bytes | bytearray) -> int:
    """As `text.count(b":")`, which stops at each of many."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _COLON))


_COLON = np.array(ord(":"), np.uint8)
_escaped_colon = re.compile(rb"\\u003[aA]").search


_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=2)
def decoder(stored: bool) -> msgspec.json.Decoder[Any]:
    """The decoder of an evaluation as a user writes it, or as the server stores it (with what only the server sets)."""
    return msgspec.json.Decoder(_struct(schema.EVALUATION, stored))


@lru_cache(maxsize=1)
def object_decoder() -> Callable[[str], dict[str, Any]]:
    """The decoder of an object of free content (arguments, variables) that the API keeps exactly."""
    return jsontext.decoder(_free())


def repeats_no_key(text: str, value: Any) -> bool:
    """Whether value and text have as many colons: then no key was lost. (No digit of an escape may hide one.)"""
    return text.count(":") == _encoder.encode(value).count(b":") and not ("\\" in text and "\\u003" in text)


@lru_cache(maxsize=1)
def _free() -> Any:
    """Any object; unrolled to a depth, as msgspec has no type that contains itself."""
    exact = Annotated[int, Meta(ge=-PRECISE, le=PRECISE)]
    found: Any = exact | float | str | bool | None
    for _ in range(5):
        found = exact | float | str | bool | list[found] | dict[str, found] | None
    return dict[str, found]


@lru_cache(maxsize=256)
def _struct(name: str, stored: bool) -> type[Struct]:
    fields: list[Any] = []
    for json_name, field in _kept(name, stored).items():
        kind: Any = _type(name, json_name, field, stored)
        fields.append((field.proto_name, kind) if field.required else (field.proto_name, kind and kind | None, None))
    return defstruct(
        name.replace(".", ""),
        fields,
        rename="camel",
        forbid_unknown_fields=True,
        omit_defaults=True,
        kw_only=True,
        gc=False,
    )


def _kept(name: str, stored: bool) -> dict[str, schema.FieldType]:
    fields = schema.message(name).fields.items()
    return {n: f for n, f in fields if (stored and f.output_only) or not (f.output_only or f.deprecated)}


@lru_cache(maxsize=2)
def checker(stored: bool) -> Callable[[Any], None]:
    """What a decoder cannot check, as a function of a decoded evaluation that raises ValueError: exactly one field of a
    oneof is set, names are bare or resources of their kind, and no field makes another one doubtful.

    A call for each message costs more than looking at it; hence, as for namedtuples, the source of one function that
    goes through the whole tree.
    """
    source = _Source(stored)
    lines = ["def check(v):", *source.checks(schema.EVALUATION, "v")]
    exec("\n".join(lines), source.scope)  # names of fields only, from the table that comes with the package
    check: Callable[[Any], None] = source.scope["check"]
    return check


class _Source:
    """Lines of Python that check the message in a variable, and the values of the names in them (`scope`)."""

    def __init__(self, stored: bool) -> None:
        self.stored = stored
        self.scope: dict[str, Any] = {"image_problem": image_problem}
        self._numbers: dict[tuple[str, ...], int] = {}

    def checks(self, name: str, value: str) -> list[str]:
        """The lines for a message, indented by one; none if there is nothing to check in it or below it."""
        kept, message = _kept(name, self.stored), schema.message(name)
        chosen = {n: message.fields[n] for group in message.choices for n in group}
        lines = self._choice(name, chosen, value) if chosen else []
        for json_name, field in kept.items():
            if json_name not in chosen:
                lines += self._below(name, field, value)
            if field.resource_format and not field.repeated:
                lines.append(self._name(field, value))
        if name in _DOUBTFUL:
            lines.append(f"if {_DOUBTFUL[name].format(v=value)}: raise ValueError('to be inspected')")
        return [f" {line}" for line in lines]

    def _choice(self, name: str, chosen: dict[str, schema.FieldType], value: str) -> list[str]:
        """A chain of jumps: a sum of truth values takes three times as long."""
        fields, lines = list(chosen.values()), list[str]()
        for i, field in enumerate(fields):
            others = " or ".join(f"{value}.{other.proto_name} is not None" for other in fields[i + 1 :])
            lines.append(f"{'elif' if i else 'if'} {value}.{field.proto_name} is not None:")
            below = self._below(name, field, value)
            lines += [f" {line}" for line in ([f"if {others}: {_NOT_ONE}"] if others else ["pass"]) + below]
        return [*lines, f"else: {_NOT_ONE}"]

    def _below(self, name: str, field: schema.FieldType, value: str) -> list[str]:
        """The lines for what is in a field of the message."""
        kind = field.map_value or field.type
        if kind not in schema.table().messages or _is_left_out(name, field):
            return []
        inner = f"{value}_"
        lines = self.checks(kind, inner)
        if not lines:
            return []
        if field.repeated or field.map_value:
            values = ".values()" if field.map_value else ""
            return [f"for {inner} in ({value}.{field.proto_name} or {{}}){values}:", *lines]
        return [f"{inner} = {value}.{field.proto_name}", f"if {inner} is not None:", *lines]

    def _name(self, field: schema.FieldType, value: str) -> str:
        """A file has few names, each of them often: the good ones are kept."""
        number = self._numbers.setdefault(field.resource_format, len(self._numbers))
        good: set[str | None] = self.scope.setdefault(f"good{number}", {None})
        is_name = re.compile(resource_pattern(field)).match

        def check(name: str) -> None:
            if not is_name(name):
                raise ValueError("neither a bare name nor a resource of the kind")
            if len(good) < 10_000:
                good.add(name)

        self.scope.setdefault(f"check{number}", check)
        return f"if {value}.{field.proto_name} not in good{number}: check{number}({value}.{field.proto_name})"


_DOUBTFUL = {
    "Image": "image_problem({v}.mime_type, {v}.data)",
    "SessionInput": "{v}.will_continue is not None and ({v}.audio is not None or {v}.dtmf is not None)",
    "ToolResponse": "{v}.id",
    "Evaluation.GoldenExpectation": "{v}.agent_response is not None and {v}.agent_response.event_time is not None",
    "Evaluation.ScenarioExpectation": "{v}.agent_response is not None and {v}.agent_response.event_time is not None",
    "Evaluation.ScenarioExpectation.ToolExpectation": (
        "{v}.expected_tool_call.tool != {v}.mock_tool_response.tool"
        " or {v}.expected_tool_call.toolset_tool != {v}.mock_tool_response.toolset_tool"
    ),
}
"""The condition under which a message is inspected."""

_NOT_ONE = "raise ValueError('not exactly one is set')"


def _is_left_out(message: str, field: schema.FieldType) -> bool:
    """A Span in a Span; an error: rare, so it is left to the inspection."""
    return field.message == message or field.type == schema.STATUS


def _type(message: str, name: str, field: schema.FieldType, stored: bool) -> Any:
    if _is_left_out(message, field):
        return None
    kind: Any = _single(field, stored)
    if field.type == "map":
        return dict[str, kind]
    limits = schema.range_of(message, name)
    if field.repeated:
        items: Any = list[kind]
        return Annotated[items, Meta(min_length=1 if field.required else None, max_length=limits and limits[1])]
    if limits:
        number: Any = int if field.type == "int32" else float
        return Annotated[number, Meta(ge=limits[0], le=limits[1])]
    if (message, name) in schema.TEXTS:
        return Annotated[str, Meta(pattern=schema.TEXTS[message, name][0])]
    if field.required and field.type == "int32":
        return Annotated[int, Meta(ge=1, le=(1 << 31) - 1)]
    if field.required and field.enum:
        return Literal[tuple(name for name, number in schema.table().enums[field.enum].items() if number)]
    return Annotated[kind, Meta(min_length=1)] if field.required and kind in (str, bytes) else kind


def _single(field: schema.FieldType, stored: bool) -> Any:
    """The type of one value of the field."""
    if field.enum:
        return Literal[tuple(schema.table().enums[field.enum])]
    if field.type == schema.STRUCT:
        return _free()
    if field.resource_format and field.repeated:
        return Annotated[str, Meta(pattern=resource_pattern(field))]
    name = field.map_value or field.type
    return _struct(name, stored) if name in schema.table().messages else _SCALARS[name]


@lru_cache(maxsize=64)
def resource_pattern(field: schema.FieldType) -> str:
    """The pattern of a name: bare (as app packages write it), or in full."""
    full = [re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(form)) for form in field.resource_format]
    return "^(?:" + "|".join(full) + r"|[^/]*)\Z"  # the longer form first: its first letters identify it
