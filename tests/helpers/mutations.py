"""Rows with seeded damage: every sample of the repository, each time with a few values changed somewhere in it."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

Row = dict[str, Any]

_MOST_ROWS = 4
_NOT_SAMPLES = ("golden", "fuzz")
_TOO_LARGE = 60_000


@lru_cache(maxsize=1)
def samples() -> dict[str, list[Row]]:
    """The rows of every sample file, by its name."""
    files = sorted((ROOT / "sample_data").iterdir()) + sorted((ROOT / "tests" / "data").glob("*/*"))
    found = {
        str(f.relative_to(ROOT)): _rows_of(f)
        for f in files
        if f.suffix in _READERS and f.parent.name not in _NOT_SAMPLES and not f.name.endswith(".schema.json")
    }
    return {name: rows for name, rows in found.items() if rows and len(json.dumps(rows)) < _TOO_LARGE}


def _rows_of(path: Path) -> list[Row]:
    return [row for row in _READERS[path.suffix](path.read_text(encoding="utf-8-sig")) if isinstance(row, dict)]


def _jsonl(text: str) -> list[Any]:
    found = []
    for line in filter(str.strip, text.splitlines()):
        try:
            found.append(json.loads(line, parse_constant=str))
        except ValueError:
            continue
    return found


def _json(text: str) -> list[Any]:
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


def _csv(text: str) -> list[Any]:
    return [
        {k: v for k, v in row.items() if k is not None and isinstance(v, str)}
        for row in csv.DictReader(text.splitlines(keepends=True))
    ]


_READERS: dict[str, Callable[[str], list[Any]]] = {".jsonl": _jsonl, ".json": _json, ".csv": _csv}


def copied(value: Any) -> Any:
    """A copy of a JSON value, which may be nested deeper than Python calls itself."""
    whole = [value]
    todo: list[Any] = [whole]
    while todo:
        holder = todo.pop()
        for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if isinstance(inner, dict | list):
                holder[key] = inner.copy()
                todo.append(holder[key])
    return whole[0]


def mutated(seed: int) -> tuple[str, list[Row]]:
    """A sample by the number, in turn, with some of its rows and some of their values changed; the same for the same
    number on every machine."""
    names = sorted(samples())
    name = names[seed % len(names)]
    chance = random.Random(seed)
    rows = copied(samples()[name])
    start = chance.randrange(max(1, len(rows) - _MOST_ROWS + 1))
    rows = rows[start : start + _MOST_ROWS]
    for _ in range(chance.randrange(4)):
        damage(chance, chance.choice(rows))
    if chance.random() < 0.2:
        rows.append(copied(chance.choice(rows)))
    return name, [row for row in rows if row] or [{"request": "Hi"}]


def damage(chance: random.Random, value: Any) -> None:
    """Change the value somewhere."""
    places = list(_places(value))
    if places:
        chance.choice(_CHANGES)(chance, *chance.choice(places))


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Every container in a value with each of its keys; those on top several times, as there are few of them."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from [(value, key)] * (4 if depth == 0 else 1)
        yield from _places(inner, depth + 1)


VALUES: tuple[Any, ...] = (
    *(None, "", " ", "Hi", "[1]", "{}", "[]", '{"a": 1}', ' {"a": [1]}', '"Hi"', "null", "1", "true", "{broken", "[x"),
    *(1, 0, -1, 1.5, 2.0, True, False, [], {}, [1], ["a"], [None], [{}], {"a": None}, {"a": {"b": [1, "2"]}}, "\u2028"),
    *("NaN", "Infinity", 2**53 + 1, 10**30, 1e300, -0.0, '{"messages": [{"role": "user", "content": "Hi"}]}', "a\r\nb"),
    *([{"role": "user", "content": "Hi"}], {"messages": [{"role": "user", "content": "Hi"}]}, {"query": "Hi"}, "\x00"),
)


def _replace(chance: random.Random, holder: Any, key: Any) -> None:
    holder[key] = copied(chance.choice(VALUES))


def _as_text(chance: random.Random, holder: Any, key: Any) -> None:  # noqa: ARG001
    holder[key] = json.dumps(holder[key], ensure_ascii=False)


def _as_value(chance: random.Random, holder: Any, key: Any) -> None:  # noqa: ARG001
    try:
        holder[key] = json.loads(holder[key], parse_constant=str)
    except (TypeError, ValueError):
        holder[key] = [holder[key]]


def _remove(chance: random.Random, holder: Any, key: Any) -> None:  # noqa: ARG001
    del holder[key]


def _beside(chance: random.Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[chance.choice(_NAMES)] = copied(chance.choice([*VALUES, holder[key]]))
    else:
        holder.insert(key, copied(chance.choice([*VALUES, holder[key]])))


_NAMES = (
    *("extra", "note", "trace", "request", "response", "tags", "status", "request_time", "state", "id", "inputs"),
    *("session_id", "expected_response", "reference", "turn", "data", "info", "latency_seconds", "total_token_count"),
)


def _rename(chance: random.Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[f"{key}_" if chance.random() < 0.5 else str(key)[:-1] or "x"] = holder.pop(key)


_CHANGES = (_replace, _replace, _replace, _as_text, _as_text, _as_value, _remove, _beside, _beside, _rename)
