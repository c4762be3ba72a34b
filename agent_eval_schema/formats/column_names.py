"""Columns that the user names: `{"item.ticket_text": "request"}` moves a key of each item into the column `request`.

A path is the name of a column, or of one and keys in its objects. What else is in such an object stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import no_choice, require_choice, shown
from agent_eval_schema.text.jsontext import structured


def with_names(source: Source, columns: Mapping[str, str]) -> Source:
    """The source with the columns under these names. Raises EvalSetError for a name that no column has here, or a
    column that the data does not have."""
    if not isinstance(columns, Mapping):
        raise EvalSetError(f"columns: expected a dict {{column of the data: our name}}; got {shown(columns)}")
    for name in columns.values():
        require_choice("columns", name, COLUMNS)
    if source.remote is not None:
        raise EvalSetError("columns: expected data that is here, got a DataFrame of Spark: rename its columns in Spark")
    places = {_place(path, source.column_names()): name for path, name in columns.items()}
    return replace(
        source,
        batches=lambda: (_renamed(batch, places) for batch in source.batches()),
        columns=None,
        shares=None,
        in_order=True,
    )


Place = tuple[str, ...]
"""A column and the keys below it."""


def _place(path: str, names: list[str]) -> Place:
    """A column whose name is the whole path, dots and all, wins over keys in another one."""
    keys = path.split(".")
    for end in range(len(keys), 0, -1):
        if (column := ".".join(keys[:end])) in names:
            return (column, *keys[end:])
    raise no_choice("columns", path, names)


def _renamed(batch: pa.RecordBatch, places: Mapping[Place, str]) -> pa.RecordBatch:
    taken = frozenset(place[0] for place in places)
    made: dict[str, list[str | None]] = {}
    for i, row in enumerate(native_rows(batch)):
        for name, value in _moved({n: row[n] for n in taken if row.get(n) is not None}, places):
            made.setdefault(name, [None] * batch.num_rows)[i] = jsontext.encode(value).decode()
    return with_columns(batch, made, taken)


def _moved(row: dict[str, Any], places: Mapping[Place, str]) -> Iterator[tuple[str, Any]]:
    rest = {n: structured(v) if any(n == p[0] and len(p) > 1 for p in places) else v for n, v in row.items()}
    for (column, *keys), name in places.items():
        rest[column], value = _without(rest.get(column), keys)
        if value is not None:
            yield name, value
    yield from ((name, value) for name, value in rest.items() if value not in (None, {}))


def _without(value: Any, keys: list[str]) -> tuple[Any, Any]:
    """A value without the entry at these keys, and that entry."""
    if not keys:
        return None, value
    if not isinstance(value, dict) or keys[0] not in value:
        return value, None
    inner, found = _without(value[keys[0]], keys[1:])
    rest = {k: v for k, v in value.items() if k != keys[0]}
    return (rest if inner in (None, {}) else {**rest, keys[0]: inner}), found
