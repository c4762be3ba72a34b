"""Paths into values: `modelResponses[0].response`, as issues name them and as formats declare where a value is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agent_eval_schema.text.jsontext import structured

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@lru_cache(maxsize=1024)
def steps_of(path: str) -> tuple[str | int, ...]:
    """`messages[0].role` → ("messages", 0, "role")."""
    return tuple(int(number) if number else key for number, key in _STEP.findall(path))


def column_of(path: str) -> str:
    """The column that a path begins with."""
    return str(steps_of(path)[0])


def value_at(row: Any, path: str) -> Any:
    """The value at a path. Where an object or a list is expected and there is something else, that: a rule reports
    it."""
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
    steps: tuple[Any, ...] = steps_of(path)
    at: Any = row
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        if isinstance(step, int):
            at.extend({} for _ in range(step + 1 - len(at)))
        if following is not None:
            new: Any = [] if isinstance(following, int) else {}
            if isinstance(at, list) and not at[step]:
                at[step] = new
            at = at.setdefault(step, new) if isinstance(at, dict) else at[step]
        elif isinstance(at, list):
            at[step] = value
        elif isinstance(at.get(step), list) and isinstance(value, list):
            at[step] = [*at[step], *value]
        elif isinstance(at.get(step), dict) and isinstance(value, dict):
            at[step] = {**value, **at[step]}
        else:
            at.setdefault(step, value)
