"""A type and a value → every problem, each with its path, what was expected, what came, and the likely remedy.

The typed decode of msgspec is fast and stops at the first thing it does not like. This module is the slow second
look, taken only at cells that failed: it walks the same type (``msgspec.inspect``) and reports everything.
``diagnose(type, value)`` is empty exactly when ``msgspec.convert(value, type)`` succeeds; a property test holds that.
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct, inspect

from agent_eval_schema.quoting import length_of, may_quote
from agent_eval_schema.visible import visible

Kind = Literal["type", "null", "blank", "choice", "missing", "unknown"]

ALIASES: dict[str, tuple[str, ...]] = {
    "doc_uri": ("uri", "url", "source", "doc_id", "document_id", "id", "path"),
    "content": ("page_content", "text", "body", "chunk", "snippet"),
    "tool_name": ("name", "tool", "function", "function_name"),
    "tool_input": ("input", "inputs", "args", "arguments", "parameters", "input_parameters"),
    "name": ("tool_name", "tool", "function", "function_name"),
    "arguments": ("input", "inputs", "args", "tool_input", "parameters", "input_parameters"),
    "role": ("type", "author", "speaker", "sender"),
    "messages": ("message", "chat", "conversation", "dialogue", "turns"),
    "query": ("question", "prompt", "input", "text", "user_input"),
    "history": ("chat_history", "previous", "context"),
}
"""Names that other tools give to our keys. An alias is a better guess than the spelling."""


_OUR_WORDS = frozenset(ALIASES).union(*ALIASES.values())


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


@lru_cache(maxsize=64)
def _type_info(expected: Any) -> inspect.Type:
    return inspect.type_info(expected)


def _walk(node: inspect.Type, value: Any, path: str, field: str) -> Iterable[Problem]:
    if isinstance(node, inspect.Metadata):
        node = node.type
    if isinstance(node, inspect.UnionType):
        return _walk_union(node, value, path, field)
    if not _accepts(node, value):
        return [_wrong_type([node], value, path, field)]
    if isinstance(node, inspect.StructType):
        return _walk_struct(node, value, path)
    if isinstance(node, inspect.ListType):
        return _walk_items(node.item_type, value, path)
    if isinstance(node, inspect.DictType):
        return _walk_entries(node, value, path)
    if isinstance(node, inspect.LiteralType):
        return _walk_choice(node.values, value, path, field)
    if isinstance(node, inspect.IntType) and node.ge is not None and not node.ge <= value <= (node.le or value):
        message = f"expected a whole number from {node.ge} to {node.le}, got {describe(value)}"
        return [Problem(path, field, "type", message)]
    if isinstance(node, inspect.StrType) and node.pattern and not re.search(node.pattern, value):
        return [Problem(path, field, "blank", f"expected text that is not blank, got {describe(value)}")]
    return ()


def _walk_union(node: inspect.UnionType, value: Any, path: str, field: str) -> Iterable[Problem]:
    members = [m.type if isinstance(m, inspect.Metadata) else m for m in node.types]
    for member in members:
        if _accepts(member, value):
            return _walk(member, value, path, field)
    return [_wrong_type(members, value, path, field)]


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
            # The misspelt key absorbs the "missing" that it causes: one cause, one problem.
            name = key_name(key)
            message = f"no key `{meant[key]}`, but there is `{name}`"
            yield Problem(
                f"{path}.{name}", meant[key], "missing", message, f"did you mean `{meant[key]}`? Rename `{name}`"
            )
            missing.remove(meant[key])
        elif strict:
            name = key_name(key)
            hint = f"did you mean `{meant[key]}`?" if key in meant else f"known keys: {names(fields)}"
            yield Problem(f"{path}.{name}", key, "unknown", f"unknown key `{name}` is ignored", hint)
    for name in missing:
        yield Problem(path, name, "missing", f"`{name}` is missing, got {describe(value)}", f"add the key `{name}`")


def _walk_items(item: inspect.Type, value: list[Any], path: str) -> Iterable[Problem]:
    for i, entry in enumerate(value):
        yield from _walk(item, entry, f"{path}[{i}]", "[]")


def _walk_entries(node: inspect.DictType, value: dict[Any, Any], path: str) -> Iterable[Problem]:
    for key, entry in value.items():
        place = f"{path}.{key if may_quote() else '*'}"
        yield from _walk(node.key_type, key, place, "key")
        yield from _walk(node.value_type, entry, place, "{}")


def _walk_choice(choices: tuple[Any, ...], value: Any, path: str, field: str) -> Iterable[Problem]:
    if value in choices:
        return
    close = match_names([value], choices)
    hint = f"did you mean '{close[value]}'?" if close else f"use one of {names(choices)}"
    yield Problem(path, field, "choice", f"expected one of {names(choices)}, got {describe(value)}", hint)


def _wrong_type(nodes: list[inspect.Type], value: Any, path: str, field: str) -> Problem:
    wanted = dict.fromkeys(_NAMES.get(type(n), "null") for n in nodes if not _is_none(n))
    message = f"expected {' or '.join(wanted)}, got {describe(value)}"
    return Problem(path, field, "null" if value is None else "type", message, _remedy(set(wanted), value))


def _remedy(wanted: set[str], value: Any) -> str:
    if "a list" in wanted and isinstance(value, dict | str):
        return "put it into a list: [...]" if isinstance(value, dict) else "put the text into a list: ['...']"
    if "text" in wanted and isinstance(value, int | float) and not isinstance(value, bool):
        is_short = may_quote() and describe(value) != "the number huge"
        return f"write it as text: '{value}'" if is_short else "write it as text"
    return ""


def _is_none(node: inspect.Type) -> bool:
    return isinstance(node, inspect.NoneType)


_ACCEPTS: dict[type[inspect.Type], Callable[[Any], bool]] = {
    inspect.AnyType: lambda _: True,
    inspect.NoneType: lambda v: v is None,
    inspect.BoolType: lambda v: isinstance(v, bool),
    inspect.IntType: lambda v: isinstance(v, int) and not isinstance(v, bool),
    inspect.FloatType: lambda v: _is_number(v),
    inspect.StrType: lambda v: isinstance(v, str),
    inspect.LiteralType: lambda v: isinstance(v, str),
    inspect.ListType: lambda v: isinstance(v, list),
    inspect.DictType: lambda v: isinstance(v, dict),
    inspect.StructType: lambda v: isinstance(v, dict),
}

_NAMES: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.LiteralType: "text",
    inspect.ListType: "a list",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
}


def _accepts(node: inspect.Type, value: Any) -> bool:
    return _ACCEPTS[type(node)](value)


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < 1024  # what a float can hold
    return isinstance(value, float) and math.isfinite(value)


def match_names(wrong: Iterable[str], right: Iterable[str], cutoff: float = 0.75) -> dict[str, str]:
    """The names of `right` that those of `wrong` most likely mean, each used once: by alias, else by spelling."""
    free, found = list(right), dict[str, str]()
    for name in wrong:
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        alias = [r for r in free if plain == r or plain in ALIASES.get(r, ())]
        close = alias or difflib.get_close_matches(plain, free, n=1, cutoff=cutoff)
        if close:
            found[name] = close[0]
            free.remove(close[0])
    return found


def names(items: Iterable[Any]) -> str:
    """`a, b, c` for a message."""
    return ", ".join(visible(i) for i in items)


def describe(value: Any, limit: int = 60) -> str:
    """What a value is, in a few words: the "got" of a message. Long text is cut, containers are summed up."""
    if not may_quote() and (kind := _kind(value)):
        return kind
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        text = str(value) if not isinstance(value, int) or value.bit_length() < 256 else "huge"
        return f"the number {text}"
    if isinstance(value, str):
        return f"the text {excerpt(value, limit)}" if value.strip() else ("blank text" if value else "empty text")
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, dict):
        return f"an object with the keys {excerpt_names(value)}" if value else "an empty object"
    return f"a {type(value).__name__}"


def _kind(value: Any) -> str:
    """What a value is without what it says; nothing for what says nothing (null, blanks, the length of a list)."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str) and value.strip():
        return length_of(value)
    return f"an object with {len(value):,} key{'' if len(value) == 1 else 's'}" if isinstance(value, dict) else ""


def key_name(key: str) -> str:
    """A key of somebody's object for a message or a path; `*` if it may not be quoted and is no word of ours."""
    return key if may_quote() or key in _OUR_WORDS else "*"


def excerpt(text: str, limit: int = 60) -> str:
    """The text in quotes, on one line, cut to `limit` characters."""
    if not may_quote():
        return length_of(text)
    line = visible(" ".join(text[: limit * 4].split()))
    return f"'{line[: limit - 1]}…'" if len(line) > limit or len(text) > limit * 4 else f"'{line}'"


def excerpt_difference(before: str, after: str, limit: int = 60) -> tuple[str, str]:
    """Two texts, each on one line and cut around where they differ: what they share is shown only next to it."""
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    return _around(before, start, end, limit), _around(after, start, end, limit)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _around(text: str, start: int, end: int, limit: int) -> str:
    """The text between `start` and the last `end` characters, with some of what stands beside it."""
    if len(text) <= limit:
        return visible(text)
    last = len(text) - end
    room = max(limit - (last - start), limit // 2)
    first, behind = max(0, start - room // 2), min(len(text), last + room // 2)
    piece = text[first:behind]
    if len(piece) > limit:  # what differs is long itself
        piece = f"{piece[: limit * 2 // 3]}…{piece[-limit // 3 :]}"
    return visible(f"{'…' if first else ''}{piece}{'…' if behind < len(text) else ''}")


def excerpt_names(value: Iterable[Any], most: int = 6) -> str:
    keys = [key_name(str(k))[:40] for k in value]
    return names(keys[:most]) + (", …" if len(keys) > most else "")


def is_type(expected: Any, value: Any) -> bool:
    """Whether `value` is of the type: the fast check that `diagnose` explains."""
    try:
        msgspec.convert(value, expected)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
