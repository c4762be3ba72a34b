"""Values of attributes: what OTLP wraps, what backends flatten, what instrumentations wrap.

{"stringValue": "x"}                     the AnyValue of OTLP; its spelling in snake_case, too
llm.input_messages.0.message.role        a list that was flattened into one attribute per leaf
{"inputs": {…}, "tags": […], …}          the arguments of a function, as OpenLLMetry records them
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.spans import NOTHING

DEEPEST = 32
"""The depth at which a flattened or wrapped value is no longer read."""


class _AnyValue(Struct, gc=False):
    """The scalars of OTLP in both spellings; lists and maps are read generically."""

    stringValue: Raw = NOTHING
    intValue: Raw = NOTHING
    doubleValue: Raw = NOTHING
    boolValue: Raw = NOTHING
    string_value: Raw = NOTHING
    int_value: Raw = NOTHING
    double_value: Raw = NOTHING
    bool_value: Raw = NOTHING


_any_value = msgspec.json.Decoder(_AnyValue).decode


def content_of(raw: Raw) -> Raw:
    """The JSON of the value that an attribute holds, which may be an AnyValue or the value itself."""
    if bytes(memoryview(raw)[:1]) != b"{":
        return raw
    try:
        any_value = _any_value(raw)
    except msgspec.MsgspecError:
        return raw
    scalars: tuple[Raw, ...] = astuple(any_value)
    for scalar in scalars:
        if scalar is not NOTHING:
            return scalar
    value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
    plain = plain_value(value)
    return raw if plain is value else Raw(jsontext.encode(plain))


_NUMBERS = ("intValue", "int_value")
_SCALARS = ("stringValue", "string_value", "boolValue", "bool_value", "doubleValue", "double_value", *_NUMBERS)


def plain_value(value: Any, depth: int = 0) -> Any:
    """The value in an AnyValue; anything else comes back as it is, and the same object."""
    if not isinstance(value, dict) or len(value) != 1 or depth > DEEPEST:
        return value
    ((key, inner),) = value.items()
    if key in _SCALARS:
        return _whole(inner) if key in _NUMBERS else inner
    items = inner.get("values", []) if isinstance(inner, dict) else inner
    if key in ("arrayValue", "array_value") and isinstance(items, list):
        return [
            _map(item["values"], depth + 1)  # Google's converters write {"values": [{key, value}]} for a map in a list
            if isinstance(item, dict) and item.keys() == {"values"} and isinstance(item["values"], list)
            else plain_value(item, depth + 1)
            for item in items
        ]
    if key in ("kvlistValue", "kvlist_value") and isinstance(items, list):
        return _map(items, depth + 1)
    if key in ("bytesValue", "bytes_value") and isinstance(inner, str):
        try:
            return base64.b64decode(inner, validate=True).decode()
        except (binascii.Error, ValueError):
            return inner
    return value


def _map(items: list[Any], depth: int) -> dict[str, Any]:
    pairs = [item for item in items if isinstance(item, dict) and isinstance(item.get("key"), str)]
    return {pair["key"]: plain_value(pair.get("value"), depth) for pair in pairs}


def _whole(value: Any) -> Any:
    """Protobuf's JSON writes 64-bit integers as text."""
    return int(value) if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isdecimal() else value


def decoded(raw: Raw) -> Any:
    """The value of an attribute. MLflow writes each as JSON text, others objects only: text that is JSON is parsed."""
    value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
    for _ in range(2):
        if not isinstance(value, str) or value[:1] not in ('"', "{", "["):
            break
        value = jsontext.parse_leniently(value)
    return value


def text_in(raw: Raw) -> str | None:
    """The text of an attribute; None if it is no text, or an empty one."""
    value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
    if isinstance(value, str) and value[:1] == '"':
        value = jsontext.parse_leniently(value)
    return value if isinstance(value, str) and value.strip() else None


def count_in(raw: Raw) -> int | None:
    """The count of an attribute: a whole number that is not negative, or text that is one."""
    digits = bytes(raw).strip(b'"')
    if digits.isdigit() and len(digits) < 16:
        return int(digits)
    value = jsontext.parse_leniently(bytes(raw).decode("utf-8", "replace"))
    if isinstance(value, str):
        value = _whole(value.strip('"'))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    # a larger count of tokens is a defect, not a count
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < (1 << 53) else None


# ---------------------------------------------------------------------------------------------------------------------
# flattened lists
def unflattened(leaves: Iterable[tuple[str, Any]]) -> Any:
    """The list in attributes such as `0.message.role`: its places by number, without gaps."""
    tree: dict[str, Any] = {}
    for key, value in leaves:
        steps = key.split(".", DEEPEST)
        at = tree
        for step in steps[:-1]:
            inner = at.setdefault(step, {})
            if not isinstance(inner, dict):  # a leaf has a leaf below it: the first one counts
                break
            at = inner
        else:
            at.setdefault(steps[-1], value)
    return _listed(tree)


def _listed(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(key.isdecimal() and len(key) < 10 for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(value) for key, value in tree.items()}


def flattened(value: Any, known: frozenset[str], prefix: str = "", depth: int = 0) -> Iterable[tuple[str, Any]]:
    """The nested attributes of a span as dotted keys; a value at a `known` key is kept whole."""
    if prefix in known or not isinstance(value, dict) or depth > DEEPEST:
        yield prefix, value
        return
    for key, inner in value.items():
        yield from flattened(inner, known, f"{prefix}.{key}" if prefix else str(key), depth + 1)


# ---------------------------------------------------------------------------------------------------------------------
# wrapped arguments
def unwrapped_input(value: Any) -> Any:
    """The arguments in what OpenLLMetry records of a call: of a decorated function, a chain, or a tool of LangChain."""
    if not isinstance(value, dict):
        return value
    inner = jsontext.structured(value.get("inputs"))
    if "inputs" in value and (not {"tags", "kwargs", "metadata", "input_str"}.isdisjoint(value) or len(value) == 1):
        return value.get("input_str") if inner is None else inner
    if "input_str" in value:
        return jsontext.structured(value["input_str"])
    if "query" in value and {"tags", "kwargs"} <= value.keys():
        return value["query"]
    arguments, named = value.get("args"), value.get("kwargs")
    if value.keys() <= {"args", "kwargs"} and isinstance(named, dict | None) and isinstance(arguments, list | None):
        if not arguments:
            return named or {}
        return arguments[0] if len(arguments) == 1 and not named else {"args": arguments, **(named or {})}
    return value


def unwrapped_output(value: Any) -> Any:
    """The result in what OpenLLMetry records of a call; it may be JSON text twice."""
    if isinstance(value, dict):
        for key in ("outputs", "output"):
            if key in value and value.keys() <= {key, "kwargs", "tags", "metadata"}:
                return jsontext.structured(value[key])
    return value
