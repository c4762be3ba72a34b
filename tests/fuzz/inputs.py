"""The inputs: every sample of the repository with seeded damage, which is the same for the same seed on every machine.

A case is JSON, so that it can be kept in a file. What only Python has (a set, a Decimal, half of a character) is in it
as a mark, `{"$python": "set"}`, and `in_python` puts it in.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from msgspec import Struct

from agent_eval_schema import validate_eval_set
from agent_eval_schema.formats.opening import open_source
from tests.helpers.ces_messages import complete
from tests.helpers.mutations import VALUES, Row, copied, damage, samples

MARK = "$python"

SMALL = 40
"""Rows of a case that are of one sample."""

Change = Callable[[random.Random, Row], None]


class Case(Struct, frozen=True):
    """Rows, the sample that they come from, the seed, and whether only Python can hold them."""

    seed: str
    sample: str
    rows: list[Row]
    is_python: bool = False

    @property
    def cells(self) -> int:
        return sum(len(row) for row in self.rows)

    @property
    def chance(self) -> random.Random:
        """For what a check chooses; the same each time."""
        return random.Random(f"{self.seed} in a check")

    def part(self, most: int) -> Case:
        """Neighboring rows of a large case, for a check that takes long."""
        start = self.chance.randrange(max(1, len(self.rows) - most + 1))
        return Case(self.seed, self.sample, self.rows[start : start + most], self.is_python)

    def some(self, options: Sequence[str], count: int) -> Sequence[str]:
        """A few of the options; all of them for a case that was found before, and has no seed."""
        return self.chance.sample(options, count) if self.seed else options


def case(seed: int, number: int, most_rows: int) -> Case:
    """The case of a number: neighboring rows of a sample, some of them damaged. A large case is many of these: of
    samples of one format, with as many damages, and with few columns more, which would change its format."""
    chance = random.Random(f"{seed}-{number}")
    names = sorted(samples())
    name = names[number % len(names)]
    count = chance.choice((1, 4, most_rows, most_rows))
    changes = _OF_PYTHON if (is_python := chance.random() < 0.15) else _CHANGES
    rows = _damaged(samples()[name], min(count, SMALL), changes, chance)
    if count > SMALL:
        others = _same_format()[name]
        while len(rows) < count:
            rows += _damaged(samples()[chance.choice(others)], SMALL, changes, chance)
        rows = [row for row in rows if is_python or not is_of_python([row])][:count]
        known = {column for other in others for row in samples()[other] for column in row}
        new = list(dict.fromkeys(column for row in rows for column in row if column not in known))
        known.update(chance.sample(new, min(len(new), chance.choice((0, 1, 4, 16)))))
        rows = [{column: value for column, value in row.items() if column in known} for row in rows]
    rows = [row for row in rows if row] or [{"request": "Hi"}]
    return Case(f"{seed}-{number}", name, rows, is_of_python(rows))


# ---------------------------------------------------------------------------------------------------------------------
# every place
KINDS: tuple[Any, ...] = (None, True, 7, "", "a", '{"a": 1}', [], ["a"], [{}], {}, {"a": 1})
"""A value of every type that a reader, a look-up or a comparison may stumble on."""

Path = tuple[Any, ...]


@cache
def place_cases() -> list[tuple[str, list[tuple[int, Path]]]]:
    """The places of all samples, those of one format once: a sample with rows of it and the path in each, for a case.

    A path leads into JSON text, too: a trace is mostly a text.
    """
    seen, found = set[tuple[Any, Path]](), list[tuple[str, list[tuple[int, Path]]]]()
    for form, names in {**_names_by_format(), "ces-evaluation of every field": [EVERY_FIELD]}.items():
        for name in names:
            paths = [(at, path) for at, row in enumerate(_sample(name)) for path in _paths(row)]
            new = [(at, path) for at, path in paths if _is_new(seen, form, path)]
            size = SMALL // (len(KINDS) + 1)
            found += [(name, new[i : i + size]) for i in range(0, len(new), size)]
    return found


def place_case(number: int) -> Case:
    """Rows that differ from a sample in one place each: it has a value of each type in turn, or is not there."""
    name, places = place_cases()[number]
    rows = [_with(_sample(name)[at], path, kind) for at, path in places for kind in (*KINDS, _REMOVED)]
    return Case(f"places-{number}", name, [row for row in rows if row] or [{"request": "Hi"}])


EVERY_FIELD = "an evaluation of every field"


def _sample(name: str) -> list[Row]:
    return complete("Evaluation") if name == EVERY_FIELD else samples()[name]


def _is_new(seen: set[tuple[Any, Path]], form: Any, path: Path) -> bool:
    shape = (form, tuple("*" if isinstance(key, int) else key for key in path))
    return shape not in seen and not seen.add(shape)  # type: ignore[func-returns-value]


_REMOVED = object()


def _paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """The paths of all values in a value; None as a key: what a text of JSON holds."""
    if isinstance(value, str) and (inner := _structured(value)) is not None:
        yield from _paths(inner, (*above, None))
    for key, inner in _entries(value):
        yield (*above, key)
        yield from _paths(inner, (*above, key))


def _entries(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def _structured(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None


def _with(value: Any, path: Path, kind: Any) -> Any:
    """The value with another one in a place."""
    key, *rest = path
    if key is None:
        return json.dumps(_with(json.loads(value), tuple(rest), kind), ensure_ascii=False)
    entries = dict(_entries(value))
    entries[key] = _with(entries[key], tuple(rest), kind) if rest else copied(kind) if kind is not _REMOVED else kind
    if entries[key] is _REMOVED:
        del entries[key]
    return entries if isinstance(value, dict) else list(entries.values())


def _damaged(given: list[Row], count: int, changes: Sequence[Change], chance: random.Random) -> list[Row]:
    start = chance.randrange(len(given))
    rows = [copied(given[(start + i) % len(given)]) for i in range(count)]
    for _ in range(chance.randrange(1, 2 + count)):
        chance.choice(changes)(chance, chance.choice(rows))
    return rows


@cache
def _names_by_format() -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = {}
    for name, rows in sorted(samples().items()):
        found.setdefault((validate_eval_set(rows).format, open_source(rows).in_order), []).append(name)
    return found


@cache
def _same_format() -> dict[str, list[str]]:
    """The samples with the format of each."""
    return {name: names for names in _names_by_format().values() for name in names}


def is_of_python(rows: list[Row]) -> bool:
    """Whether no file can hold the rows: they have a mark, half of a character, or a number that is not finite."""
    try:
        text = json.dumps(rows, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return True
    return MARK in text or re.search("[\ud800-\udfff]", text) is not None


# ---------------------------------------------------------------------------------------------------------------------
# damage
def _somewhere(value: Any, chance: random.Random) -> tuple[Any, Any] | None:
    """A container in the value and one of its keys; those near the top more often than by their number."""
    while isinstance(value, dict | list) and value:
        key = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        inner = value[key]
        if not (isinstance(inner, dict | list) and inner) or chance.random() < 0.25:
            return value, key
        value = inner
    return None


def _put(values: tuple[Any, ...]) -> Change:
    def put(chance: random.Random, row: Row) -> None:
        if (place := _somewhere(row, chance)) is not None:
            place[0][place[1]] = copied(chance.choice(values))

    return put


def _graft(chance: random.Random, row: Row) -> None:
    """A part of another sample, in the place of a part of this row or beside it."""
    other = chance.choice(samples()[chance.choice(sorted(samples()))])
    place, taken = _somewhere(row, chance), _somewhere(other, chance)
    if place is None or taken is None:
        return
    holder, key = place
    value = copied(taken[0][taken[1]])
    if isinstance(holder, dict) and isinstance(taken[1], str) and chance.random() < 0.5:
        holder[taken[1]] = value
    else:
        holder[key] = value


def _mix(chance: random.Random, row: Row) -> None:
    """Columns of another sample, beside those of this one."""
    other = chance.choice(samples()[chance.choice(sorted(samples()))])
    for name in chance.sample(sorted(other), min(len(other), chance.randrange(1, 4))):
        row.setdefault(name, copied(other[name]))


def _text_damage(chance: random.Random, row: Row) -> None:
    """A change in the text of a cell: of one that holds JSON, or of the JSON text of an object."""
    if not row:
        return
    name = chance.choice(list(row))
    text = row[name] if isinstance(row[name], str) else json.dumps(row[name], ensure_ascii=chance.random() < 0.5)
    at = chance.randrange(len(text) + 1)
    for _ in range(chance.choice((1, 1, 2, 5))):
        what = chance.choice(_PIECES)
        text = text[:at] + what + text[at + chance.choice((0, 1, len(what), 7)) :]
        at = chance.randrange(len(text) + 1)
    row[name] = text[:at] if chance.random() < 0.1 else text


def _twice(chance: random.Random, row: Row) -> None:
    """A list that is longer: an entry of it again, or many of them."""
    place = _somewhere(row, chance)
    if place is not None and isinstance(place[0], list):
        place[0].extend([copied(place[0][place[1]])] * chance.choice((1, 2, 50)))


_PIECES = (
    *('"', "\\", "{", "}", "[", "]", ",", ":", " ", "\n", "\r\n", "\t", "null", "true", "1", "-", "1e999", "-0", ".5"),
    *("\\ud800", "\\u0000", "\x00", "\ufeff", "\u2028", "é", "😀", "NaN", "-Infinity", '"a":1,', '{"a":1}', "[1]"),
    *('"role":"user",', "9" * 25, "data: ", "\n\n", "\x1b[31m", "'", "None", "True", "[DONE]", "<script>", "{{", "%s"),
    *("\\/", "\\x", "0x1", "\x85", "\u0130", "data:image/png;base64,", "```", "=1+1", "__proto__"),
)

HOSTILE = "<script>alert(1)</script>\x1b[31m::error::x"
"""What neither a page nor a terminal may take as its own."""

_TEXTS = (
    *(
        HOSTILE,
        f'{{"{HOSTILE}": 1}}',
        "a" * 20_000,
        "\n".join("ab" * 30),
        "[" * 600,
        "[" * 600 + "]" * 600,
        '{"a":' * 300,
    ),
    *('{"a":' * 300 + "1" + "}" * 300, '"\\ud800"', "\ud800", {"\ud800": "\udfff"}, {"": ""}, {"a.b": 1, "[0]": 2}),
    *('{"a": 1, "a": 2}', "1" * 400, 10**400, -(2**63) - 1, 2**64, 1e308, 5e-324, '{"a": 1e400}', "\ufeff{}", "=1+1"),
    *(
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        1_700_000_000_000,
        "9999-12-31T23:59:59.999Z",
        "0001-01-01",
        "25:61",
        10**18,
    ),
    *(["\x1b[31m"], [[[]]], [[], {}], [None, {}], {"role": "user"}, {"content": None}, {"type": "text"}, {"text": 1}),
    *({"messages": []}, {"messages": None}, {"messages": [None]}, {"messages": [{}]}, {"messages": {"role": "user"}}),
    *([{"role": 1, "content": 2}], [{"role": "tool", "content": []}], {"choices": [{}]}, {"choices": [None]}),
    *({"spans": []}, {"info": {}, "data": {}}, {"data": {"spans": [None]}}, {"info": None}, {"object": "trace"}),
    *([{"doc_uri": None}], [{"doc_uri": "", "content": ""}], [{"page_content": 1, "metadata": []}], [["a", "b"]]),
    *([{"tool_name": None}], [{"tool_name": "t", "tool_input": "{"}], [{"name": "t", "args": "[]"}], {"a": HOSTILE}),
    *(([{"a": [{"b": [{}]}]}] * 3), {"x" * 3_000: 1}, {str(i): i for i in range(300)}),
)

_CHANGES: tuple[Change, ...] = (
    *((damage,) * 4),
    *(_put(VALUES), _put(_TEXTS), _put(_TEXTS), _graft, _graft, _graft, _mix, _text_damage, _text_damage, _twice),
)


# ---------------------------------------------------------------------------------------------------------------------
# what only Python has
class Color(enum.Enum):
    RED = 1


class Silent:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError("no")


def _deep(size: int) -> Any:
    value: Any = 1
    for _ in range(size):
        value = [value]
    return value


def _circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def _numbers() -> Any:
    yield 1


PYTHON: dict[str, Callable[[], Any]] = {
    "nan": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "tuple": lambda: (1, "a"),
    "set": lambda: {1},
    "frozenset": lambda: frozenset("a"),
    "bytes": lambda: b"\xff\x00",
    "bytearray": lambda: bytearray(b"a"),
    "decimal": lambda: decimal.Decimal("1.10"),
    "decimal nan": lambda: decimal.Decimal("sNaN"),
    "complex": lambda: 1j,
    "datetime": lambda: datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc),
    "date": lambda: datetime.date(2024, 1, 1),
    "time": lambda: datetime.time(1, 2),
    "timedelta": lambda: datetime.timedelta(seconds=1.5),
    "uuid": lambda: uuid.UUID(int=1),
    "enum": lambda: Color.RED,
    "class": lambda: Color,
    "silent": Silent,
    "deep": lambda: _deep(500),
    "deeper": lambda: _deep(5_000),
    "circle": _circle,
    "generator": _numbers,
    "na": lambda: pd.NA,
    "nat": lambda: pd.NaT,
    "timestamp": lambda: pd.Timestamp("2024-01-01", tz="Europe/Berlin"),
    "series": lambda: pd.Series([1, None]),
    "frame": lambda: pd.DataFrame({"a": [1]}),
    "array": lambda: np.array(["a", None], dtype=object),
    "matrix": lambda: np.ones((2, 2)),
    "empty array": lambda: np.array([]),
    "numpy int": lambda: np.int64(1),
    "numpy float": lambda: np.float32("nan"),
    "numpy bool": lambda: np.bool_(True),
    "numpy text": lambda: np.str_("a"),
    "numpy time": lambda: np.datetime64("NaT", "ns"),
    "number keys": lambda: {1: "a", None: "b", (1, 2): "c", False: 1},
    "mixed keys": lambda: {"1": "a", 1: "b"},
    "ellipsis": lambda: ...,
    "function": lambda: print,
}

_NAMES = tuple(PYTHON)
_OF_PYTHON = (*_CHANGES, *[_put(tuple({MARK: name} for name in PYTHON))] * len(_CHANGES))


def in_python(value: Any) -> Any:
    """A copy of the value with everything in it that only Python has."""
    whole = [copied(value)]
    todo: list[Any] = [whole]
    while todo:
        holder = todo.pop()
        for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(inner, dict) and len(inner) == 1 and inner.get(MARK) in _NAMES:
                holder[key] = PYTHON[inner[MARK]]()
            elif isinstance(inner, dict | list):
                todo.append(inner)
    return whole[0]


def smaller(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows without one part of them, each in turn, the larger parts first: to find what an error needs."""
    size = len(rows) // 2
    while size:
        yield from (rows[:i] + rows[i + size :] for i in range(0, len(rows), size))
        size //= 2
    for holder, key in _all_places(rows):
        if isinstance(holder, dict) and MARK in holder:
            continue
        kept = copy.copy(holder)
        del holder[key]
        if all(rows):
            yield copied(rows)
        holder.clear()
        holder.update(kept) if isinstance(holder, dict) else holder.extend(kept)
    for holder, key in _all_places(rows):
        if isinstance(holder[key], str) and len(holder[key]) > 3:
            kept = holder[key]
            for part in (kept[: len(kept) // 2], kept[len(kept) // 2 :], kept[:-1], kept[1:]):
                holder[key] = part
                yield copied(rows)
            holder[key] = kept


def _all_places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        holder = todo.pop(0)
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            if holder is not value:
                found.append((holder, key))
            if isinstance(holder[key], dict | list):
                todo.append(holder[key])
    return found
