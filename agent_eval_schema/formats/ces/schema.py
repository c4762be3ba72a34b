"""The wire table: every message, field and enum of the vendor's evaluation API, as data.

    Evaluation ── golden ──▶ Evaluation.Golden ── turns[] ──▶ Evaluation.GoldenTurn ── steps[] ──▶ …
        └──────── oneof inputs: at most one of golden, scenario

`evaluation_schema.json` is made from the public descriptors of google-cloud-ces (v1beta); a test compares the two where
that package is installed. The JSON Schema, the types of the checks (`inspection.py`) and the masks of updates are all
read off this table, so a newer API is a newer file.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import IMAGE_TYPES
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.schema import DIALECT, REF

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
STRUCT, STATUS = "google.protobuf.Struct", "google.rpc.Status"
"""Types that are not a message of the table: the first two are text in JSON, the others objects."""

EVALUATION, RESULT = "Evaluation", "EvaluationResult"


class FieldType(Struct, frozen=True, rename="camel"):
    """One field of a message. `type` is a scalar, a well-known type, the name of a message, `enum:NAME` or `map`
    (from text to `map_value`); `behavior` is REQUIRED, OPTIONAL, OUTPUT_ONLY, IDENTIFIER or empty."""

    proto_name: str
    type: str
    repeated: bool = False
    behavior: str = ""
    oneof: str = ""
    explicit_presence: bool = False
    deprecated: bool = False
    map_value: str = ""
    resource_format: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        return self.behavior == "REQUIRED"

    @property
    def output_only(self) -> bool:
        """Whether only the server sets it: the value of a client is ignored."""
        return self.behavior == "OUTPUT_ONLY"

    @property
    def enum(self) -> str:
        """The name of its enum, or nothing."""
        return self.type[len("enum:") :] if self.type.startswith("enum:") else ""

    @property
    def message(self) -> str:
        """The name of its message, or nothing; the values of a map are `map_value`."""
        return self.type if self.type in table().messages else ""

    def is_default(self, value: Any) -> bool:
        """Whether the API does not distinguish the value from absence, where the field has no explicit presence."""
        number = table().enums[self.enum].get(value, value) if self.enum and isinstance(value, str) else value
        has_presence = self.explicit_presence or self.oneof
        return not has_presence and isinstance(number, str | list | int | float) and number in ("", [], 0)

    @property
    def is_nested(self) -> bool:
        """Whether its value is an object or a list."""
        return bool(self.message) or self.repeated or self.type in (STRUCT, STATUS, "map")


class MessageType(Struct, frozen=True, dict=True):
    """One message: its fields by their JSON names, and its oneofs (of the fields of one, at most one is set)."""

    fields: dict[str, FieldType]
    oneofs: dict[str, tuple[str, ...]] = {}

    @property
    def choices(self) -> list[tuple[str, ...]]:
        """The oneofs that require a field: they have several, and the server sets none of them."""
        groups = self.oneofs.values()
        return [group for group in groups if len(group) > 1 and not any(self.fields[n].output_only for n in group)]

    def json_name(self, name: str) -> str | None:
        """The JSON name of a field given by either of its names (`displayName`, `display_name`); None if unknown."""
        return self._names.get(name)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {spelling: name for name, field in self.fields.items() for spelling in (name, field.proto_name)}


class WireTable(Struct, frozen=True):
    """The descriptors that the table was made from; every message, by its name below the package
    (`Evaluation.GoldenTurn`); the names of every enum with their numbers, in the order of their declaration."""

    source: str
    messages: dict[str, MessageType]
    enums: dict[str, dict[str, int]]


@lru_cache(maxsize=1)
def table() -> WireTable:
    return packaged(__package__, "evaluation_schema.json", WireTable)


def message(name: str) -> MessageType:
    """The message of that name; KeyError if there is none."""
    return table().messages[name]


@lru_cache(maxsize=8)
def field_names(*types: str, nested: bool = False) -> frozenset[str]:
    """The names of all fields of these messages, JSON and protobuf; or only of those that hold objects or lists."""
    fields = [entry for name in types for entry in message(name).fields.items() if not nested or entry[1].is_nested]
    return frozenset(name for json_name, field in fields for name in (json_name, field.proto_name))


def each(value: Any, field: FieldType, rewrite: Callable[[Any, FieldType], Any]) -> Any:
    """The value of a field, or the values in its list, rewritten."""
    if field.repeated and isinstance(value, list):
        return [rewrite(v, field) for v in value]
    return rewrite(value, field)


def with_json_names(value: Any, kind: str, on_repeat: Callable[[str, str], None] | None = None) -> Any:
    """A copy of a message with the JSON names of its fields. `on_repeat` gets both names of a field that occurs under
    both; without it the copy is for reading: it has no nulls, and the last one of a field."""
    if not isinstance(value, dict) or kind not in table().messages:
        return value
    descriptor, result = message(kind), dict[str, Any]()
    for key, part in value.items():
        name = descriptor.json_name(key) or key
        if part is None and on_repeat is None:
            continue
        if name in result and on_repeat is not None:
            on_repeat(name, key)
        field = descriptor.fields.get(name)
        if field is not None and isinstance(part, dict | list):
            part = each(part, field, lambda v, f: with_json_names(v, f.message, on_repeat))
        result[name] = part
    return result


def part_at(value: Any, path: str) -> Any:
    """What is at a dotted path of JSON names; None if something on the way is no object."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def kind_of(name: str) -> str:
    """The kind of a resource, from its name: `…/tools/7f3e` → `tools`."""
    return name.rsplit("/", 2)[-2] if name.count("/") > 1 else ""


def with_references(value: Any, kind: str, named: Callable[[str, str], str]) -> Any:
    """A copy of a message with other names of the resources that it refers to, by the name and the kind of each; its
    own name, free content and unknown fields stay."""
    if not isinstance(value, Mapping):
        return value

    def rewrite(part: Any, field: FieldType) -> Any:
        if field.resource_format and field.behavior != "IDENTIFIER" and isinstance(part, str):
            return named(part, kind_of(field.resource_format[0]))
        return with_references(part, field.message, named) if field.message else part

    fields = {key: message(kind).fields.get(message(kind).json_name(key) or "") for key in value}
    return {key: part if (field := fields[key]) is None else each(part, field, rewrite) for key, part in value.items()}


def field_at(path: str) -> tuple[FieldType, ...]:
    """The fields along a dotted path of JSON names (`golden.turns`), the last one last.

    Empty if the path leads nowhere: no field of that name, or a step into something that is not a message.
    """
    fields: list[FieldType] = []
    at = EVALUATION
    for name in path.split("."):
        field = message(at).fields.get(name) if at else None
        if field is None:
            return ()
        fields.append(field)
        at = field.message
    return tuple(fields)


# --- what the descriptors do not have, from the pages and comments of the API
class _Documented(Struct, frozen=True, forbid_unknown_fields=True):
    """What is documented of fields, by message and field: the least and the most of a number, or of the length of a
    list; the pattern of a text that is not free, and the pattern in words. The required fields without which a message
    has a meaning: public samples have no response of a tool, exports no empty list, as JSON of protobuf does, a
    model fills in a mock response, and the others only the server writes; an event without a name, for example, has
    none. The fields that are obsolete, and what to use instead."""

    ranges: dict[str, dict[str, tuple[int, int]]]
    texts: dict[str, dict[str, tuple[str, str]]]
    tolerated: dict[str, frozenset[str]]
    replacements: dict[str, str]


DOCUMENTED = packaged(__package__, "documented.json", _Documented)

MAX_TURNS = DOCUMENTED.ranges["Evaluation.Golden"]["turns"][1]


def range_of(message: str, name: str) -> tuple[int, int] | None:
    """The least and the most of a number, or of the length of a list; None if any will do."""
    is_count = name.endswith("Count") or name == "turnIndex"
    return (0, (1 << 31) - 1) if is_count else DOCUMENTED.ranges.get(message, {}).get(name)


def text_of(message: str, name: str) -> tuple[str, str] | None:
    """The pattern of a text that is not free, and the pattern in words."""
    return DOCUMENTED.texts.get(message, {}).get(name)


def is_tolerated(message: str, name: str) -> bool:
    """Whether a message has a meaning without the required field."""
    return name in DOCUMENTED.tolerated.get(message, ())


# --- The JSON Schema of an Evaluation, read off the wire table: for editors, and for programs that write evaluations.
#
# It describes the errors of this package, after the rules of ProtoJSON (null is unset, numbers may be texts, both names
# of a field are known). Unknown fields are allowed: newer ones will come.
_SCALARS = packaged(__package__, "scalars.json", dict[str, dict[str, Any]])


def evaluation_schema() -> dict[str, Any]:
    """The JSON Schema of one Evaluation, with a definition for each message below it."""
    definitions: dict[str, Any] = {}
    _define(schema.EVALUATION, definitions)
    return {
        "$schema": DIALECT,
        "title": "An evaluation of Google Customer Engagement Suite",
        "$comment": schema.table().source,
        "$ref": REF.format(name=schema.EVALUATION),
        "$defs": definitions,
    }


def _define(name: str, definitions: dict[str, Any]) -> None:
    if name in definitions:
        return
    message = schema.message(name)
    definition = definitions[name] = {"type": "object"}
    properties: dict[str, Any] = {}
    for json_name, field in message.fields.items():
        kind = _field(name, json_name, field, definitions)
        properties[json_name] = kind
        properties.setdefault(field.proto_name, kind)
    definition["properties"] = properties
    required = [n for n, f in message.fields.items() if f.required and not schema.is_tolerated(name, n)]
    rules = [_is_set(message, n, filled=True) for n in required]
    rules += [{"oneOf": [_is_set(message, n) for n in group]} for group in message.choices]
    if rules:
        definition["allOf"] = rules


def _is_set(message: schema.MessageType, name: str, *, filled: bool = False) -> dict[str, Any]:
    """The schema of an object that has the field under one of its names, not null (and not empty)."""
    enum = message.fields[name].enum
    empty = [None, *(("", [], 0, *(list(schema.table().enums[enum])[:1] if enum else ())) if filled else ())]
    spellings = dict.fromkeys((name, message.fields[name].proto_name))
    options = [{"required": [n], "properties": {n: {"not": {"enum": empty}}}} for n in spellings]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _field(message: str, name: str, field: schema.FieldType, definitions: dict[str, Any]) -> dict[str, Any]:
    kind, limits = _single(field, definitions), schema.range_of(message, name)
    if field.repeated:
        kind = {"type": "array", "items": kind, **({"maxItems": limits[1]} if limits else {})}
    elif limits:
        number = {**kind["anyOf"][0], "minimum": limits[0], "maximum": limits[1]}
        kind = {"anyOf": [number, kind["anyOf"][-1]]}
    elif (text := schema.text_of(message, name)) is not None:
        kind = {"type": "string", "pattern": text[0].replace(r"\Z", "$")}
    elif (message, name) == ("Image", "mimeType"):
        kind = {"enum": [*IMAGE_TYPES]}
    notes = {"readOnly": field.output_only, "deprecated": field.deprecated}
    return {"anyOf": [kind, {"type": "null"}], **{key: True for key, holds in notes.items() if holds}}


def _single(field: schema.FieldType, definitions: dict[str, Any]) -> dict[str, Any]:
    if field.enum:
        values = schema.table().enums[field.enum]
        return {"enum": [*values, *values.values()]}
    if field.message:
        _define(field.message, definitions)
        return {"$ref": REF.format(name=field.message)}
    return _SCALARS[field.type]
