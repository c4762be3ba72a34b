"""What google-adk accepts of an evalset: its own pydantic models, as the JSON Schema that they give of themselves.

    {"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [{"user_contents": …}]}]}
                                                             └─▶ eval_cases[0].conversation[0].user_contents: unknown

`adk_schema.json` is `EvalSet.model_json_schema()`, and the models of the criteria beside it (adk_criteria.py); a test
compares them where google-adk is installed. Keys are accepted in camelCase and in snake_case where a model has aliases.
Values are judged as pydantic judges JSON: a number may be text, a text may not be a number.
"""

import base64
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from agent_eval_schema.formats.ces.inspection import decode_base64
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import adk
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.text.describe import describe, key_name
from agent_eval_schema.text.spelling import match_names

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]


Found = tuple[Place, Finding]
"""What google-adk rejects, and where: a finding on a whole row, whose path is the place in the file."""


def _found(rule: Rule, place: Place, message: str, hint: str = "") -> Found:
    return place, Finding(rule, message, None, path_of(place), hint)


def path_of(place: Place) -> str:
    """`eval_cases[0].conversation[1]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in place).removeprefix(".")


def _shown(key: str) -> str:
    """A key for a message: the keys of the models are not user data."""
    return key if key in known_keys() else key_name(key)


@lru_cache(maxsize=1)
def known_keys() -> frozenset[str]:
    """The keys of all models, in both spellings."""
    models = (table(), *table()["$defs"].values(), SESSION, TURN)
    return frozenset(
        key for model in models for name in model.get("properties", ()) for key in (name, snake_case(name))
    )


@lru_cache(maxsize=4096)
def snake_case(key: str) -> str:
    """A key of a model as Python writes it."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    return packaged(__package__, "adk_schema.json", dict[str, Any])


def inspect_value(value: Any, schema: Schema | None = None) -> list[Found]:
    """Every reason for which google-adk or google-genai rejects an evalset, a PART, a SESSION or a TURN."""
    return list(_value(table() if schema is None else schema, value, ()))


PART: Schema = {"$ref": "Part"}


_FORMS = packaged(__package__, "adk_forms.json", dict[str, Schema])

TURN, SESSION, CRITERIA = _FORMS["TURN"], _FORMS["SESSION"], _FORMS["CRITERIA"]
"""A turn and a session of the older forms, where google-adk reads some keys and ignores the others; and criteria."""


def _value(schema: Schema, value: Any, place: Place) -> Iterator[Found]:
    if "$ref" in schema:
        schema = table()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        yield from _any_of(schema["anyOf"], value, place)
    elif schema.get("type") == "object":
        yield from _members(schema, value, place)
    elif schema.get("type") == "array":
        yield from _items(schema, value, place)
    elif "type" in schema:
        expected, accepts = _SCALARS[schema.get("format", schema["type"])]
        if not accepts(value):
            yield _wrong_type(expected, value, place)
        elif "const" in schema and value != schema["const"]:
            yield _wrong_type(f"`{schema['const']}`", value, place)
        elif value not in schema.get("enum", (value,)):
            yield _wrong_type(f"one of {', '.join(schema['enum'])}", value, place)
        elif "minimum" in schema and float(value) < schema["minimum"]:
            yield _wrong_type(f"at least {schema['minimum']}", value, place)


def _any_of(schemas: Sequence[Schema], value: Any, place: Place) -> Iterator[Found]:
    """The problems of the closest of several models: of those for the type of the value, which has most of the keys."""
    models = [s for s in schemas if s.get("type") != "null"]
    if value is None and len(models) < len(schemas):
        return
    problems = [list(_value(s, value, place)) for s in models]
    fitting = [of for of in problems if not any(p == place and f.rule is adk.KEY_TYPE for p, f in of)]
    constants = [s["const"] for s in models if "const" in s]
    if not fitting and len(constants) > 1:
        yield _wrong_type(f"an object or one of {', '.join(constants)}", value, place)
        return
    here = len(place) + 1
    closest = fitting or problems
    yield from min(closest, key=lambda of: (sum(f.rule is adk.UNKNOWN_KEY and len(p) == here for p, f in of), len(of)))


def _members(schema: Schema, value: Any, place: Place) -> Iterator[Found]:
    if not isinstance(value, dict):
        yield _wrong_type("an object", value, place)
        return
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    names = {name if name in value else snake_case(name): name for name in properties}  # of two spellings the first
    absent = [name for spelled, name in names.items() if spelled not in value]
    meant = match_names([key for key in value if key not in names], absent) if others is not True else {}
    for key, item in value.items():
        if key in names:
            yield from _value(properties[names[key]], item, (*place, key))
        elif isinstance(others, dict):
            yield from _value(others, item, (*place, key))
        elif others is False:
            hint = f"Did you mean `{meant[key]}`? Rename the key." if key in meant else ""
            yield _found(adk.UNKNOWN_KEY, (*place, key), f"unknown key `{_shown(key)}`", hint)
    for name in schema.get("required", ()):
        if name in absent and not (others is False and name in meant.values()):
            spelled = next((key for key, right in meant.items() if right == name), None)
            hint = f"Rename `{_shown(spelled)}`." if spelled else f"Add `{snake_case(name)}`."
            yield _found(adk.MISSING_KEY, (*place, snake_case(name)), f"`{snake_case(name)}` is missing", hint)
    if "conversationScenario" in properties:
        scenario = value.get("conversationScenario", value.get("conversation_scenario"))
        if (value.get("conversation") is None) == (scenario is None):
            got = "neither" if scenario is None else "both"
            message = f"expected one of `conversation` and `conversation_scenario`, got {got}"
            yield _found(adk.ONE_CONVERSATION, place, message)


def _items(schema: Schema, value: Any, place: Place) -> Iterator[Found]:
    if not isinstance(value, list):
        yield _wrong_type("a list", value, place)
        return
    fixed = schema.get("prefixItems")
    if fixed is not None and len(value) != len(fixed):
        yield _wrong_type(f"a list of {len(fixed)}", value, place)
        return
    for i, item in enumerate(value):
        yield from _value(schema["items"] if fixed is None else fixed[i], item, (*place, i))


def _wrong_type(expected: str, value: Any, place: Place) -> Found:
    return _found(adk.KEY_TYPE, place, f"expected {expected}, got {describe(value)}")


# --- single values, as pydantic reads them from JSON
def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return value.isascii()
    return isinstance(value, int | float)


def _is_integer(value: Any) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0+)?\s*", value, re.ASCII) is not None
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value.is_integer())


def _is_base64(value: Any) -> bool:
    """In either alphabet, padded or not; no bit is set that no byte has."""
    data = decode_base64(value) if isinstance(value, str) else None
    return data is not None and base64.b64encode(data, b"-_").decode().rstrip("=") == value.rstrip("=").translate(_SAFE)


_SAFE = str.maketrans("+/", "-_")
_BOOLEANS = ("0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes")

_SCALARS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("text", lambda value: isinstance(value, str)),
    "number": ("a number", _is_number),
    "integer": ("a whole number", _is_integer),
    "boolean": ("true or false", lambda v: v.lower() in _BOOLEANS if isinstance(v, str) else v in (0, 1)),
    "base64url": ("base64 text", _is_base64),
    "null": ("null", lambda value: value is None),
}
