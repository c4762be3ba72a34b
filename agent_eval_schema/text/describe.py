"""Values described for messages: kind, length and a short excerpt."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent_eval_schema.text.privacy import length_of, may_quote
from agent_eval_schema.text.spelling import OUR_WORDS
from agent_eval_schema.text.visible import visible


def names(items: Iterable[Any]) -> str:
    """`a, b, c` for a message."""
    return ", ".join(visible(i) for i in items)


def first_names(items: Sequence[Any], most: int) -> str:
    """As `names`, of the first items: `a, b, c, …`."""
    return names(items[:most]) + (", …" if len(items) > most else "")


def describe(value: Any, limit: int = 60) -> str:
    """A description of a value: the "got" of a message. Long text is cut, containers are summarized."""
    if not may_quote() and (kind := _kind(value)):
        return kind
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {_digits(value)}"
    if isinstance(value, str):
        return f"the text {excerpt(value, limit)}" if value.strip() else ("blank text" if value else "empty text")
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, dict):
        return f"an object with the keys {excerpt_names(value)}" if value else "an empty object"
    return f"a {type(value).__name__}"


def _digits(value: float) -> str:
    """A number, a whole one without a point: of a column with gaps pandas makes floats."""
    if isinstance(value, float):
        return str(int(value)) if abs(value) < 2**53 and value.is_integer() else str(value)
    return str(value) if value.bit_length() < 256 else "huge"


def _kind(value: Any) -> str:
    """A description of a value without its content; empty for values without content (null, blanks, a list)."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str) and value.strip():
        return length_of(value)
    return f"an object with {len(value):,} key{'' if len(value) == 1 else 's'}" if isinstance(value, dict) else ""


def key_name(key: str) -> str:
    """A user's key for a message or a path; `*` if it may not be quoted and is not one of our names."""
    return key if may_quote() or key in OUR_WORDS else "*"


def truncate(text: str, limit: int) -> str:
    """The text, or its beginning and `…`, in at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def excerpt(text: str, limit: int = 60) -> str:
    """The text in quotes, on one line, cut to `limit` characters."""
    if not may_quote():
        return length_of(text)
    line = visible(" ".join(text[: limit * 4].split()))
    return f"'{line[: limit - 1]}…'" if len(line) > limit or len(text) > limit * 4 else f"'{line}'"


def excerpt_difference(before: str, after: str, limit: int = 60) -> tuple[str, str]:
    """Two texts, each on one line and cut around the place where they differ."""
    start = shared_start(before, after)
    end = shared_start(before[start:][::-1], after[start:][::-1])
    return _around(before, start, end, limit), _around(after, start, end, limit)


def shared_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters two texts begin with in common, or how many words two lists."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _around(text: str, start: int, end: int, limit: int) -> str:
    """The text between `start` and the last `end` characters, with some of its surroundings."""
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
    return first_names([key_name(str(k))[:40] for k in value], most)
