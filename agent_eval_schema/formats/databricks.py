"""The Databricks format, whose columns are canonical: how a canonical row is written in it.

A request or response that the format can represent with all its keys is written whole: `request` is then the source's
own object, and there is no `inputs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.requests import KEYS
from agent_eval_schema.schema import COLUMNS


def write_databricks(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a canonical row that have a value."""
    made = {name: row[name] for name in COLUMNS if row.get(name) is not None}
    for view, name, holds in _WHOLE:
        if name in made and view in made and holds(made[name]):
            made[view] = made.pop(name)
    return made


def _is_request(inputs: Any) -> bool:
    return isinstance(inputs, dict) and ("messages" in inputs) != ("query" in inputs) and not set(inputs) <= set(KEYS)


_WHOLE = (("request", "inputs", _is_request), ("response", "outputs", chat.is_chat_object))
"""A column, the original that it can hold, and which values of it the form reads as such."""
