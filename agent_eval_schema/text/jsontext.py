"""JSON text → value, or the reason why it is malformed.

The fast path is one call of msgspec, on text that is not nested too deep (depth.py). Text that fails is examined again:
NaN literals and lone surrogates have causes of their own, everything else is malformed at a byte that we name.
"""

import ast
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import reading
from agent_eval_schema.rules.columns import REPEATED_KEY
from agent_eval_schema.rules.reading import MALFORMED_JSON, PYTHON_LIST
from agent_eval_schema.text.depth import JSONText, TooDeep, is_deeper, is_too_deep
from agent_eval_schema.text.describe import key_name
from agent_eval_schema.text.privacy import byte_at, error_text

T = TypeVar("T")


def decoder(kind: type[T], **options: Any) -> Callable[[JSONText], T]:
    """A function that decodes JSON text as a type. Raises MsgspecError, a ValueError, of text nested too deep as well.

    A decoder of msgspec itself is for text whose `is_too_deep` is known: a part of a cell that was examined.
    """
    read: Callable[[JSONText], T] = msgspec.json.Decoder(kind, **options).decode

    def decode(text: JSONText) -> T:
        if len(text) > reading.MAX_DEPTH and is_deeper(text):
            raise TooDeep(_TOO_DEEP)
        return read(text)

    return decode


_TOO_DEEP = f"expected at most {reading.MAX_DEPTH} levels of lists and objects, got JSON nested too deep to read"

decode: Callable[[JSONText], Any] = decoder(object)
decode_shallow = msgspec.json.Decoder().decode
"""As `decode`, of text that is known not to be nested too deep."""

encode = msgspec.json.Encoder().encode


def encode_text(value: Any) -> str:
    return encode(value).decode()


_BYTE = re.compile(r"\(byte (\d+)\)")


class Malformed(Struct, frozen=True):
    """Why a text is not JSON: the rule it breaks, and the message for its reader."""

    rule: Rule
    message: str


def parse(text: str | bytes | memoryview) -> Any:
    """The value that JSON text holds, or a `Malformed` (never an exception)."""
    if len(text) > reading.MAX_DEPTH and is_deeper(text):
        return Malformed(reading.TOO_DEEP, _TOO_DEEP)
    try:
        return decode_shallow(text)
    except ValueError as error:  # of msgspec, or of a number of thousands of digits
        try:
            text = text if isinstance(text, str) else bytes(text).decode()
        except UnicodeDecodeError as wrong:
            return Malformed(reading.MALFORMED_JSON, f"expected JSON in UTF-8, got {byte_at(wrong)}")
        if text.startswith("\ufeff"):
            return parse(text[1:])
        try:
            json.loads(text, parse_constant=_refuse)
        except _NaN:
            # Only a text that is JSON except for such literals is reported as such, at the first of them.
            found = next(m for m in _STRING_OR_NAN.finditer(text) if m.group(1))
            offset = len(text[: found.start()].encode("utf-8", "replace"))
            return Malformed(reading.NAN_LITERAL, f"expected JSON, got the literal {found.group()} at byte {offset}")
        except ValueError:
            return Malformed(reading.MALFORMED_JSON, f"expected JSON, got malformed text: {_reason(text, error)}")
        if _SURROGATE.search(text):
            return Malformed(reading.LONE_SURROGATE, "expected JSON, got an escaped lone surrogate")
        message = f"expected JSON, got a value that no reader takes: {_reason(text, error)}"
        return Malformed(reading.MALFORMED_JSON, message)


def parse_leniently(text: str, shallow: bool = False) -> Any:
    """What mlflow's own reader makes of the text: NaN is read as null, text that is not JSON stays text. One that is
    known to be `shallow` is not measured."""
    if not shallow and len(text) > reading.MAX_DEPTH and is_deeper(text):
        return text
    try:
        return decode_shallow(text)
    except ValueError:
        try:
            return cleaned(json.loads(text, parse_constant=lambda _: None, parse_float=_finite))
        except ValueError:
            return text


def _finite(digits: str) -> float | None:
    """A number, but one that is too large for a float is as NaN."""
    return number if math.isfinite(number := float(digits)) else None


OPENING = ("{", "[")
"""How the text of an object or a list begins. What our own readers wrote has no blanks before it."""


def is_structured(text: str) -> bool:
    """Whether a text begins like a JSON object or list, maybe after blanks."""
    return text.lstrip().startswith(OPENING)


def escapes_nul(text: str) -> bool:
    """Whether a JSON text has an escaped NUL; a backslash before `\\u0000` may itself be escaped."""
    return "\\u0000" in text and _ESCAPED_NUL.search(text) is not None


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def is_json(text: str | bytes) -> bool:
    """Whether a text is JSON; it is skipped, not read."""
    try:
        _skip(text)
    except ValueError:
        return False
    return True


_skip = decoder(msgspec.Raw)


def structured(value: Any) -> Any:
    """A list or an object that came as JSON text, as in the cells of a CSV file; any other value as it is."""
    return parse_leniently(value) if isinstance(value, str) and is_structured(value) else value


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def without_null(value: Any) -> Any:
    """The value without the keys that are null, in every part: an object of Arrow has all keys of its type."""
    if isinstance(value, dict):
        return {k: without_null(v) for k, v in value.items() if v is not None}
    return [without_null(v) for v in value] if isinstance(value, list) else value


def parse_exactly(text: str) -> Any:
    """The value of a text that can be rewritten without loss, else a `Malformed`: duplicate keys, NaN, surrogates."""
    try:
        if is_too_deep(text):
            raise TooDeep(_TOO_DEEP)
        value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
        write_exactly(value)
    except (ValueError, _NaN):
        return Malformed(reading.MALFORMED_JSON, "expected JSON that can be written again without loss")
    return value


def write_exactly(value: Any) -> str:
    """The JSON text of a value. Raises ValueError for what UTF-8 or JSON cannot hold and for too deep a value."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError:  # which no value of MAX_DEPTH levels causes
        raise TooDeep(_TOO_DEEP) from None
    text.encode()
    if is_too_deep(text):
        raise TooDeep(_TOO_DEEP)
    return text


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is duplicated")
    return value


def without_null_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object without its keys that are null."""
    return {k: v for k, v in value.items() if v is not None}


def cleaned(value: Any) -> Any:
    """The value with lone surrogates replaced, which no UTF-8 file can hold."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [cleaned(v) for v in value]
    if isinstance(value, dict):
        return {cleaned(k): cleaned(v) for k, v in value.items()}
    return value


_STRING_OR_NAN = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _reason(text: str, error: Exception) -> str:
    size = len(text.encode("utf-8", "replace"))
    if not text.strip():
        return "only whitespace"
    if "truncated" in str(error):
        return f"it ends at byte {size} in the middle of a value"
    words = str(error) if isinstance(error, msgspec.DecodeError) else error_text(error)  # msgspec's texts quote nothing
    found = _BYTE.search(words)
    reason = _BYTE.sub("", words).removeprefix("JSON is malformed: ").strip()
    return f"{reason} at byte {found.group(1)} of {size}" if found else reason


class _NaN(Exception):
    pass


def _refuse(literal: str) -> None:
    raise _NaN(literal)


# --- equality of JSON: the order of keys is irrelevant, and 1.0 is 1
#
# Of a text, numbers stay exact: beyond 2**53 a number with a point is another one than its digits. Of a value, as an
# agent or a Python caller has it, every whole number is the same number, and NaN is equal to itself.
_sorted = msgspec.json.Encoder(enc_hook=str, order="sorted")
encode_sorted, encode_sorted_lines = _sorted.encode, _sorted.encode_lines
"""JSON with its keys in order, for values whose numbers are plain; that of each value of a list, a line each."""

NOT_JSON = (ValueError, OverflowError)


def canonical_json(text: str) -> str:
    """The same text for the same JSON value; text that is not JSON stays as it is."""
    try:
        return encode_sorted(decode_exact(text)).decode()
    except NOT_JSON:
        return text


def canonical_bytes(view: memoryview | None) -> bytes | None:
    """As `canonical_json`, of UTF-8."""
    try:
        return None if view is None else encode_sorted(decode_exact(view))
    except NOT_JSON:
        return bytes(view or b"")


def _exact_number(text: str) -> float | int | str:
    value = float(text)
    if abs(value) < 2**53:
        return int(value) if value.is_integer() else value
    return value if abs(value) != float("inf") else text


decode_exact: Callable[[JSONText], Any] = decoder(object, float_hook=_exact_number)


def value_key(value: Any) -> bytes:
    """A text that two values share if they are equal as JSON."""
    return encode_sorted(_with_plain_numbers(value))


def _with_plain_numbers(value: Any) -> Any:
    """The value with every whole number written in one way."""
    if isinstance(value, float):
        # JSON has neither NaN nor infinity, but a Python object that was never JSON may.
        return f"\0{value}" if not math.isfinite(value) else int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {k: _with_plain_numbers(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_with_plain_numbers(v) for v in value]
    return value


# --- Text that Python's `str` wrote of a list or an object, as `DataFrame.to_csv` and `csv.DictWriter` do.
#
# "['You have 12 days.', 'Leave is paid.']"      not JSON, and not a retrieved text
def python_value(text: Any) -> list[Any] | dict[str, Any] | None:
    """The list or object that Python writes as exactly this text; None for other texts and values that JSON lacks."""
    if not isinstance(text, str) or not is_structured(text) or len(text) > LONGEST:
        return None
    try:
        value = ast.literal_eval(text.strip())
        exact = repr(value) == text.strip()
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, list | dict) and exact and _is_json_like(value) else None


LONGEST = 1 << 20
"""Python's parser takes a hundred times the memory of the text."""


def _is_json_like(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json_like, value))
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json_like(k) and _is_json_like(v) for k, v in value.items())
    if isinstance(value, str):  # UTF-8 has no lone surrogate
        return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    return value is None or isinstance(value, int | float)


def python_list(text: Any) -> list[Any] | None:
    """The list of texts, numbers and lists that Python writes as this text."""
    value = python_value(text)
    return value if isinstance(value, list) and not _has_object(value) else None


def _has_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_object, value)))


def listed(value: Any) -> Any:
    """As `structured`, of a cell that holds a list, which may be written as Python writes it."""
    parsed = structured(value)
    items = python_list(parsed) if isinstance(parsed, str) else None
    return parsed if items is None else items


# --- cells that must hold JSON and do not
def explain_malformed(problem: Malformed, text: str) -> Finding:
    """The finding for a text that is not JSON."""
    return written_by_python(text) or Finding(problem.rule, problem.message)


def written_by_python(text: str) -> Finding | None:
    """The finding for a text that is Python's `str` of a list or an object; None for any other text."""
    value = python_value(text)
    if value is None:
        return None
    noun = "a list" if isinstance(value, list) else "an object"
    message = f"expected JSON, got the text that Python writes of {noun}"
    if python_list(text) is not None:
        return Finding(PYTHON_LIST, message)
    return Finding(MALFORMED_JSON, message, hint="Write the cell with `json.dumps`; `--fix` reads it.")


# --- Paths into values: `modelResponses[0].response`, as issues name them and as formats declare where a value is.
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@lru_cache(maxsize=1024)
def steps_of(path: str) -> tuple[str | int, ...]:
    """`messages[0].role` → ("messages", 0, "role")."""
    return tuple(int(number) if number else key for number, key in _STEP.findall(path))


def column_of(path: str) -> str:
    """The column that a path begins with; a path of brackets and dots alone is the name of a column."""
    return str(next(iter(steps_of(path)), path))


def texts_in(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The texts in a value, each with its path below this one."""
    stack = [(path, value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            stack += [(f"{path}.{key}", part) for key, part in reversed(list(value.items()))]
        elif isinstance(value, list):
            stack += reversed([(f"{path}[{i}]", part) for i, part in enumerate(value)])


def value_at(row: Any, path: str) -> Any:
    """The value at a path; what is there instead of an object or a list is returned for a rule to report."""
    for step in steps_of(path):
        row = structured(row)
        if isinstance(step, int):
            if not isinstance(row, list):
                return row
            row = row[step] if step < len(row) else None
        else:
            if not isinstance(row, Mapping):
                return row
            row = row.get(step)
        if row is None:
            return None
    return row


def put(row: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a path; with a value that is there already it is joined (lists, objects), else that one stays."""
    at: Any = row
    *above, (step, _) = _with_containers(path)
    for here, container in above:
        if isinstance(here, int):
            _fill(at, here)
            at[here] = at[here] or container()
            at = at[here]
        else:
            at = at[here] if here in at else at.setdefault(here, container())
    if isinstance(step, int):
        _fill(at, step)
        at[step] = value
        return
    before = at.setdefault(step, value)
    if before is not value and isinstance(before, list) and isinstance(value, list):
        at[step] = [*before, *value]
    elif before is not value and isinstance(before, dict) and isinstance(value, dict):
        at[step] = {**value, **before}


@lru_cache(maxsize=1024)
def _with_containers(path: str) -> tuple[tuple[str | int, type], ...]:
    """The steps of a path, each with the container of the next one."""
    steps = steps_of(path)
    return tuple(
        (step, list if isinstance(after, int) else dict) for step, after in zip(steps, (*steps[1:], ""), strict=True)
    )


def _fill(items: list[Any], place: int) -> None:
    items.extend({} for _ in range(place + 1 - len(items)))


# --- Keys that an object of a JSON text has twice: parsers keep one of the values and drop the others without a word.
class Repeated(dict[str, Any]):
    """An object whose JSON text has duplicate keys; the last value of each was kept."""

    repeated: tuple[str, ...] = ()


def parse_keeping_repeats(text: str) -> Any:
    """The value of JSON text, with `Repeated` objects; or a `Malformed` with the reason."""
    value = parse(text)
    if isinstance(value, Malformed):
        return value
    return _pairs_decoder.decode(text.lstrip("\ufeff"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    repeated = Repeated(value)
    repeated.repeated = tuple(dict.fromkeys(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return repeated


_pairs_decoder = json.JSONDecoder(object_pairs_hook=_object)


def repeated_keys(text: bytes, column: str) -> list[Finding]:
    """A finding per key that an object of a JSON text has twice; none of a text that is not JSON.

    A text that has as many keys as its value is not parsed again: a quote before a colon ends a key, and inside of a
    string it is escaped, in the text as in what is written of its value. It is not nested too deep.
    """
    keys = text.count(b'":')
    try:
        is_usual = _SPACED(text) is None and b"\\u0022" not in text
        if is_usual and (keys < 2 or keys == encode(decode_shallow(text)).count(b'":')):
            return []
    except ValueError:
        return []
    pairs = _repeats(parse_keeping_repeats(text.decode()), column)
    return [Finding(REPEATED_KEY, f"expected `{key}` once, got it several times", column, path) for path, key in pairs]


_SPACED = re.compile(rb'"\s+:').search
"""A way of writing a colon behind a key that the count of keys does not know; an escaped quote is another one. To look
for both at once would take fifty times as long."""


def _repeats(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Repeated):
        yield from ((f"{path}.{key_name(key)}", key_name(key)) for key in value.repeated)
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _repeats(part, f"{path}.{key_name(key)}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _repeats(part, f"{path}[{i}]")
