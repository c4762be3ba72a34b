"""Keys that an object of a JSON text has twice: parsers keep one of the values and drop the others without a word."""

import json
import re
from collections.abc import Iterator
from typing import Any

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import reading
from agent_eval_schema.rules.columns import REPEATED_KEY
from agent_eval_schema.text.describe import key_name
from agent_eval_schema.text.jsontext import Malformed, decode_shallow, encode, parse


class Repeated(dict[str, Any]):
    """An object whose JSON text has duplicate keys; the last value of each was kept."""

    repeated: tuple[str, ...] = ()


def parse_keeping_repeats(text: str) -> Any:
    """The value of JSON text, with `Repeated` objects; or a `Malformed` with the reason."""
    value = parse(text)
    if isinstance(value, Malformed):
        return value
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_object)
    except ValueError:  # which msgspec has read: Python's parser reads fewer digits
        return Malformed(reading.TOO_DEEP, "expected JSON of ordinary depth and numbers of ordinary length")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    repeated = Repeated(found)
    repeated.repeated = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return repeated


def repeated_keys(text: bytes, column: str) -> list[Finding]:
    """A finding per key that an object of a JSON text has twice; none of a text that is not JSON.

    A text that has as many keys as its value is not parsed again: a quote before a colon ends a key, and inside of a
    string it is escaped, in the text as in what is written of its value. It is not nested too deep.
    """
    keys = text.count(b'":')
    try:
        if _UNUSUAL(text) is None and (keys < 2 or keys == encode(decode_shallow(text)).count(b'":')):
            return []
    except ValueError:
        return []
    found = _repeats(parse_keeping_repeats(text.decode()), column)
    return [Finding(REPEATED_KEY, f"expected `{key}` once, got it several times", column, path) for path, key in found]


_UNUSUAL = re.compile(rb'"\s+:|\\u0022').search
"""Ways of writing a colon behind a key, or a quote, that the count of keys does not know."""


def _repeats(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Repeated):
        yield from ((f"{path}.{key_name(key)}", key_name(key)) for key in value.repeated)
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _repeats(part, f"{path}.{key_name(key)}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _repeats(part, f"{path}[{i}]")
