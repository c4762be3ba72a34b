"""The JSON Schema of an Evaluation, read off the wire table: for editors, and for programs that write evaluations.

It describes the errors of this package, after the rules of ProtoJSON (null is unset, numbers may be texts, both names
of a field are known). Unknown fields are allowed: newer ones will come.
"""

from typing import Any

from agent_eval_schema.formats.ces import schema
from agent_eval_schema.formats.ces.golden import IMAGE_TYPES
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.schema import DIALECT, REF

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
    if field.type == "map":
        kind = {"type": "object", "additionalProperties": kind}
    elif field.repeated:
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
    name = field.map_value or field.type
    if name in schema.table().messages:
        _define(name, definitions)
        return {"$ref": REF.format(name=name)}
    return _SCALARS[name]
