"""A type and a value → every problem, each with its path, the expected and the actual value, and the likely fix.

The typed decode of msgspec is fast and stops at the first problem. This module is slow and examines only the cells that
failed: it makes the same type a type of `json_types.py`, whose walk reports every problem.
``diagnose(type, value)`` is empty exactly when ``msgspec.convert(value, type)`` succeeds; a property test holds that.
"""

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal

import msgspec
from msgspec import Struct, inspect

from agent_eval_schema.decoding.json_types import (
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
from agent_eval_schema.schema import OTHER_KEYS
from agent_eval_schema.text.describe import describe, names
from agent_eval_schema.text.privacy import may_quote
from agent_eval_schema.text.spelling import meant_value

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
    return list(_type_of(expected).problems(value, (path,)))


@lru_cache(maxsize=64)
def _type_of(expected: Any) -> Type[Problem]:
    return _typed(inspect.type_info(expected))


def is_type(expected: Any, value: Any) -> bool:
    """Whether `value` is of the type: the fast check that `diagnose` explains."""
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError:
        return False
    return True


# --- the words
def _problem(place: Place, kind: Kind, message: str, hint: str = "") -> Problem:
    last = place[-1] if place[1:] else ""
    return Problem(path_of(place), "[]" if isinstance(last, int) else last, kind, message, hint)


def _wrong_type(expected: str, value: Any, place: Place) -> Problem:
    message = f"expected {expected}, got {describe(value)}"
    return _problem(place, "null" if value is None else "type", message, _remedy(expected, value))


def _remedy(expected: str, value: Any) -> str:
    if "a list" in expected and isinstance(value, dict | str):
        return "Put it into a list: `[...]`." if isinstance(value, dict) else "Put the text into a list: `['...']`."
    if "text" in expected and isinstance(value, int | float) and not isinstance(value, bool):
        is_short = may_quote() and describe(value) != "the number huge"
        return f"Write it as text: '{value}'." if is_short else "Write it as text."
    return ""


def _unknown(one: UnknownKey, place: Place) -> Problem:
    path, name = path_of(place), place[-1]
    if one.meant is not None and one.is_needed:
        # The misspelled key absorbs the "missing" that it causes: one cause, one problem.
        message = f"no key `{one.meant}`, but there is `{name}`"
        return Problem(path, one.meant, "missing", message, f"Did you mean `{one.meant}`? Rename `{name}`.")
    known = f"Known keys: {names(n for n in one.owner.members if n != OTHER_KEYS)}."
    message = f"unknown key `{name}` is kept, but no metric reads it"
    return Problem(path, one.key, "unknown", message, f"Did you mean `{one.meant}`?" if one.meant else known)


def _missing(_: Object[Problem], name: str, value: Any, place: Place) -> Problem:
    message = f"`{name}` is missing, got {describe(value)}"
    return Problem(path_of(place), name, "missing", message, f"Add the key `{name}`.")


_WORDS = Words(_wrong_type, _unknown, _missing)


# --- the types
def _typed(node: inspect.Type) -> Type[Problem]:
    if isinstance(node, inspect.Metadata):
        node = node.type
    if isinstance(node, inspect.UnionType):
        return one_of(_WORDS, [*map(_typed, node.types)])
    if isinstance(node, inspect.StructType):
        strict = node.cls.__struct_config__.forbid_unknown_fields
        return Object(_WORDS, make_members=partial(_members, node), strict=strict)
    if isinstance(node, inspect.ListType):
        return Items(_WORDS, of=[_typed(node.item_type)])
    if isinstance(node, inspect.DictType):
        return Entries(_WORDS, key=_typed(node.key_type), value=_typed(node.value_type))
    expected, accepts, *checks = _SCALARS[type(node)]
    return Type(_WORDS, expected, accepts, tuple([partial(check, node) for check in checks]))


def _members(node: inspect.StructType) -> dict[str, Member[Problem]]:
    return {f.encode_name: Member(_typed(f.type), (f.encode_name,), f.required) for f in node.fields}


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < 1024  # the range of a float
    return isinstance(value, float) and math.isfinite(value)


def _choice(node: inspect.LiteralType, value: Any, place: Place) -> Iterable[Problem]:
    if value not in node.values:
        close = meant_value(value, [*map(str, node.values)])
        hint = f"Did you mean '{close}'?" if close else f"Use one of {names(node.values)}."
        yield _problem(place, "choice", f"expected one of {names(node.values)}, got {describe(value)}", hint)


def _in_range(node: inspect.IntType, value: Any, place: Place) -> Iterable[Problem]:
    if node.ge is not None and not node.ge <= value <= (node.le or value):
        yield _problem(place, "type", f"expected a whole number from {node.ge} to {node.le}, got {describe(value)}")


def _filled(node: inspect.StrType, value: Any, place: Place) -> Iterable[Problem]:
    if node.pattern and not re.search(node.pattern, value):
        yield _problem(place, "blank", f"expected text that is not blank, got {describe(value)}")


_SCALARS: Mapping[type[inspect.Type], tuple[Any, ...]] = {
    inspect.AnyType: ("any value", lambda _: True),
    inspect.NoneType: ("", lambda v: v is None),  # null is accepted where it may be, and never advised
    inspect.BoolType: ("true or false", lambda v: isinstance(v, bool)),
    inspect.IntType: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool), _in_range),
    inspect.FloatType: ("a number", _is_number),
    inspect.StrType: ("text", lambda v: isinstance(v, str), _filled),
    inspect.LiteralType: ("text", lambda v: isinstance(v, str), _choice),
}
"""The values of each kind of type in words, as a test, and what else is required of one of the right kind."""
