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
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.decoding.json_types import (
    Check,
    Entries,
    Items,
    Member,
    Object,
    Place,
    Type,
    UnknownKey,
    Words,
    one_of,
    path_of,
)
from agent_eval_schema.formats.ces.inspection import decode_base64
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import adk
from agent_eval_schema.runtime.tables import packaged
from agent_eval_schema.text.describe import describe, key_name

Schema = Mapping[str, Any]

Found = tuple[Place, Finding]
"""What google-adk rejects, and where: a finding on a whole row, whose path is the place in the file."""

EVALSET, PART, TURN, SESSION, CRITERIA = "EvalSet", "Part", "TURN", "SESSION", "CRITERIA"
"""What is judged. A turn and a session are of the older forms, where google-adk reads some keys and ignores others."""


@lru_cache(maxsize=1)
def models() -> Mapping[str, Schema]:
    """The JSON Schema of each model, by name."""
    evalset = packaged(__package__, "adk_schema.json", dict[str, Any])
    return {EVALSET: evalset, **evalset["$defs"], **packaged(__package__, "adk_forms.json", dict[str, Schema])}


def inspect_value(value: Any, name: str = EVALSET, *, strict: bool = False) -> list[Found]:
    """Every reason for which google-adk or google-genai rejects a value of a model; `strict` reports the keys that it
    ignores, too."""
    kind = _model(name)
    return list((replace(kind, strict=True) if strict else kind).problems(value))


@lru_cache(maxsize=1)
def known_keys() -> frozenset[str]:
    """The keys of all models, in both spellings: they are not user data."""
    return frozenset(
        key for model in models().values() for name in model.get("properties", ()) for key in _spellings(name)
    )


@lru_cache(maxsize=4096)
def snake_case(key: str) -> str:
    """A key of a model as Python writes it."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


def _spellings(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, snake_case(name))))


# --- the words
def _found(rule: Rule, place: Place, message: str, hint: str = "") -> Found:
    return place, Finding(rule, message, None, path_of(place), hint)


def _wrong_type(expected: str, value: Any, place: Place) -> Found:
    return _found(adk.KEY_TYPE, place, f"expected {expected}, got {describe(value)}")


def _unknown(one: UnknownKey, place: Place) -> Found:
    if not one.owner.strict and one.meant:  # the key is ignored, and the one that it means is missing
        return _absent((*place[:-1], snake_case(one.meant)), f"Rename `{place[-1]}`.")
    hint = f"Did you mean `{one.meant}`? Rename the key." if one.meant else ""
    return _found(adk.UNKNOWN_KEY, place, f"unknown key `{place[-1]}`", hint)


def _missing(_: Object[Found], name: str, __: Any, place: Place) -> Found:
    return _absent((*place, snake_case(name)), f"Add `{snake_case(name)}`.")


def _absent(place: Place, hint: str) -> Found:
    return _found(adk.MISSING_KEY, place, f"`{place[-1]}` is missing", hint)


_WORDS = Words(_wrong_type, _unknown, _missing, lambda key: key if key in known_keys() else key_name(key))


# --- the types
@lru_cache(maxsize=256)
def _model(name: str) -> Type[Found]:
    return _type_of(models()[name])


def _type_of(schema: Schema) -> Type[Found]:
    if "$ref" in schema:
        return _model(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        constants = [s["const"] for s in schema["anyOf"] if "const" in s]
        types = [_type_of(s) for s in schema["anyOf"] if "const" not in s]
        return one_of(_WORDS, [*types, _type_of({"enum": constants})] if constants else types)
    if names := schema.get("enum"):
        return Type(_WORDS, f"one of {', '.join(names)}" if names[1:] else f"`{names[0]}`", lambda v: v in names)
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            return _list(schema)
        case None:
            return Type(_WORDS)
        case kind:
            return Type(_WORDS, *_SCALARS[schema.get("format", kind)], _at_least(schema.get("minimum")))


def _list(schema: Schema) -> Type[Found]:
    items = [_type_of(item) for item in schema.get("prefixItems", [schema.get("items", {})])]
    if (length := schema.get("maxItems")) is None:
        return Items(_WORDS, of=items)
    words = f"a list of {length}"
    return Items(_WORDS, expected=words, accepts=lambda v: isinstance(v, list) and len(v) == length, of=items)


def _object(schema: Schema) -> Type[Found]:
    others, required = schema.get("additionalProperties"), schema.get("required", ())
    if isinstance(others, dict):
        return Entries(_WORDS, key=Type(_WORDS), value=_type_of(others))
    properties = schema.get("properties", {})

    def members() -> dict[str, Member[Found]]:
        return {n: Member(_type_of(s), _spellings(n), n in required) for n, s in properties.items()}

    checks = (_one_conversation,) if "conversationScenario" in properties else ()
    return Object(_WORDS, checks=checks, make_members=members, strict=others is False)


def _one_conversation(value: Any, place: Place) -> Iterator[Found]:
    scenario = value.get("conversationScenario", value.get("conversation_scenario"))
    if (value.get("conversation") is None) == (scenario is None):
        got = "neither" if scenario is None else "both"
        message = f"expected one of `conversation` and `conversation_scenario`, got {got}"
        yield _found(adk.ONE_CONVERSATION, place, message)


def _at_least(least: float | None) -> tuple[Check[Found], ...]:
    def check(value: Any, place: Place) -> Iterator[Found]:
        if least is not None and float(value) < least:
            yield _wrong_type(f"at least {least}", value, place)

    return () if least is None else (check,)


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
    "null": ("", lambda value: value is None),
}
