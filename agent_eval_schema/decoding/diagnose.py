"""A type and a value → every problem, each with its path, the expected and the actual value, and the likely fix.

The typed decode of msgspec is fast and stops at the first problem. This module is slow and examines only the cells that
failed: it walks the same type (``msgspec.inspect``) and reports every problem.
``diagnose(type, value)`` is empty exactly when ``msgspec.convert(value, type)`` succeeds; a property test holds that.
"""

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct, inspect

from agent_eval_schema.schema import OTHER_KEYS
from agent_eval_schema.text.describe import describe, key_name, names
from agent_eval_schema.text.privacy import may_quote
from agent_eval_schema.text.spelling import match_names, meant_value

Kind = Literal["type", "null", "blank", "choice", "missing", "unknown"]


class Problem(Struct, frozen=True):
    """One thing that keeps a value from being of a type. `field` is the last name in the path ("[]" for an item)."""

    path: str
    field: str
    kind: Kind
    message: str
    hint: str = ""


def diagnose(expected: Any, value: Any, path: str) -> list[Problem]:
    """Every problem of `value` (JSON-like Python data) as a value of the type `expected`, in reading order."""
    return list(_walk(_type_info(expected), value, path, ""))


_type_info = lru_cache(maxsize=64)(inspect.type_info)


def _walk(node: inspect.Type, value: Any, path: str, field: str) -> Iterable[Problem]:
    if isinstance(node, inspect.Metadata):
        node = node.type
    if isinstance(node, inspect.UnionType):
        members = [m.type if isinstance(m, inspect.Metadata) else m for m in node.types]
        for member in members:
            if _accepts(member, value):
                return _walk(member, value, path, field)
        return [_wrong_type(members, value, path, field)]
    if not _accepts(node, value):
        return [_wrong_type([node], value, path, field)]
    if isinstance(node, inspect.StructType):
        return _walk_struct(node, value, path)
    if isinstance(node, inspect.ListType):
        items = enumerate(value)
        return [problem for i, item in items for problem in _walk(node.item_type, item, f"{path}[{i}]", "[]")]
    if isinstance(node, inspect.DictType):
        return _walk_entries(node, value, path)
    if isinstance(node, inspect.LiteralType):
        if value in node.values:
            return ()
        close = meant_value(value, [*map(str, node.values)])
        hint = f"Did you mean '{close}'?" if close else f"Use one of {names(node.values)}."
        message = f"expected one of {names(node.values)}, got {describe(value)}"
        return [Problem(path, field, "choice", message, hint)]
    if isinstance(node, inspect.IntType) and node.ge is not None and not node.ge <= value <= (node.le or value):
        message = f"expected a whole number from {node.ge} to {node.le}, got {describe(value)}"
        return [Problem(path, field, "type", message)]
    if isinstance(node, inspect.StrType) and node.pattern and not re.search(node.pattern, value):
        return [Problem(path, field, "blank", f"expected text that is not blank, got {describe(value)}")]
    return ()


def _walk_struct(node: inspect.StructType, value: dict[str, Any], path: str) -> Iterable[Problem]:
    fields = {f.encode_name: f for f in node.fields}
    strict = node.cls.__struct_config__.forbid_unknown_fields
    missing = [name for name, f in fields.items() if f.required and name not in value]
    unknown = [key for key in value if key not in fields]
    absent = [name for name in fields if name not in value]
    meant = match_names(unknown, absent if strict else missing)
    for key, item in value.items():
        if key in fields:
            yield from _walk(fields[key].type, item, f"{path}.{key}", key)
        elif key in meant and meant[key] in missing:
            # The misspelled key absorbs the "missing" that it causes: one cause, one problem.
            name = key_name(key)
            message = f"no key `{meant[key]}`, but there is `{name}`"
            hint = f"Did you mean `{meant[key]}`? Rename `{name}`."
            yield Problem(f"{path}.{name}", meant[key], "missing", message, hint)
            missing.remove(meant[key])
        elif strict:
            name = key_name(key)
            known = f"Known keys: {names(f for f in fields if f != OTHER_KEYS)}."
            hint = f"Did you mean `{meant[key]}`?" if key in meant else known
            message = f"unknown key `{name}` is kept, but no metric reads it"
            yield Problem(f"{path}.{name}", key, "unknown", message, hint)
    for name in missing:
        yield Problem(path, name, "missing", f"`{name}` is missing, got {describe(value)}", f"Add the key `{name}`.")


def _walk_entries(node: inspect.DictType, value: dict[Any, Any], path: str) -> Iterable[Problem]:
    for key, entry in value.items():
        place = f"{path}.{key if may_quote() else '*'}"
        yield from _walk(node.key_type, key, place, "key")
        yield from _walk(node.value_type, entry, place, "{}")


def _wrong_type(nodes: list[inspect.Type], value: Any, path: str, field: str) -> Problem:
    expected = dict.fromkeys(_KINDS[type(n)][0] for n in nodes if not isinstance(n, inspect.NoneType))
    message = f"expected {' or '.join(expected)}, got {describe(value)}"
    return Problem(path, field, "null" if value is None else "type", message, _remedy(set(expected), value))


def _remedy(expected: set[str], value: Any) -> str:
    if "a list" in expected and isinstance(value, dict | str):
        return "Put it into a list: `[...]`." if isinstance(value, dict) else "Put the text into a list: `['...']`."
    if "text" in expected and isinstance(value, int | float) and not isinstance(value, bool):
        is_short = may_quote() and describe(value) != "the number huge"
        return f"Write it as text: '{value}'." if is_short else "Write it as text."
    return ""


_KINDS: dict[type[inspect.Type], tuple[str, Callable[[Any], bool]]] = {
    inspect.AnyType: ("any value", lambda _: True),
    inspect.NoneType: ("null", lambda v: v is None),
    inspect.BoolType: ("true or false", lambda v: isinstance(v, bool)),
    inspect.IntType: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    inspect.FloatType: ("a number", lambda v: _is_number(v)),
    inspect.StrType: ("text", lambda v: isinstance(v, str)),
    inspect.LiteralType: ("text", lambda v: isinstance(v, str)),
    inspect.ListType: ("a list", lambda v: isinstance(v, list)),
    inspect.DictType: ("an object", lambda v: isinstance(v, dict)),
    inspect.StructType: ("an object", lambda v: isinstance(v, dict)),
}
"""The values of each kind of type, in words and as a test."""


def _accepts(node: inspect.Type, value: Any) -> bool:
    return _KINDS[type(node)][1](value)


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < 1024  # the range of a float
    return isinstance(value, float) and math.isfinite(value)


def is_type(expected: Any, value: Any) -> bool:
    """Whether `value` is of the type: the fast check that `diagnose` explains."""
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError:
        return False
    return True
