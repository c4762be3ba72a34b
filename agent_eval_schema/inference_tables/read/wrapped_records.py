"""One body with several records → each record as a plain request would be, and the prediction of each."""

from __future__ import annotations

from typing import Any

from agent_eval_schema.decoding import chat
from agent_eval_schema.inference_tables.read.payloads import Answered, Broken
from agent_eval_schema.text.describe import describe

WRAPPERS = ("dataframe_records", "dataframe_split", "inputs", "instances")
"""Keys under which a model server takes records."""


def records_of(wrapper: str, value: Any) -> list[Any] | Broken:
    """The records of a wrapper, each a plain request."""
    if wrapper == "dataframe_split":
        return _split_records(value)
    if isinstance(value, list):
        is_chat = bool(value) and all([isinstance(m, dict) and "role" in m for m in value])
        return [value] if is_chat else value
    if wrapper == "dataframe_records":
        return Broken("malformed", f"request.{wrapper}: expected a list of records, got {describe(value)}")
    return _column_records(wrapper, value) if isinstance(value, dict) else [value]


def _split_records(value: Any) -> list[Any] | Broken:
    """`{columns: [...], data: [[...], ...]}`, as pandas writes with orient="split"."""
    path = "request.dataframe_split"
    columns, data = (value.get(k) if isinstance(value, dict) else None for k in ("columns", "data"))
    if not isinstance(columns, list) or not isinstance(data, list):
        return Broken("malformed", f"{path}: expected `columns` and `data`, got {describe(value)}")
    for i, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(columns):
            return Broken("malformed", f"{path}.data[{i}]: expected a list of {len(columns)}, got {describe(row)}")
    return [dict(zip(map(str, columns), row, strict=True)) for row in data]


def _column_records(wrapper: str, value: dict[str, Any]) -> list[Any] | Broken:
    """`{column: [cell, ...]}`: one record per cell; an object that is a request, or whose values are not lists, is one
    record."""
    lists = [v for v in value.values() if isinstance(v, list)]
    if chat.read_messages(value) or not lists or len(lists) < len(value):
        return [value]
    sizes = {len(v) for v in lists}
    if len(sizes) > 1:
        counts = ", ".join(map(str, sorted(sizes)))
        return Broken("batch_mismatch", f"request.{wrapper}: expected columns of one length, got {counts}")
    return [dict(zip(value, cells, strict=True)) for cells in zip(*value.values(), strict=True)]


def predictions_of(answer: Answered, count: int) -> list[Any] | Broken:
    """The answer of each of `count` records. A different count is reported; nothing is assumed."""
    given = answer.value
    if isinstance(given, dict) and "predictions" in given:
        given = given["predictions"]
    if given is None:
        return [None] * count
    if isinstance(given, list) and len(given) == count:
        return given
    if count == 1 and not isinstance(given, list):
        return [given]
    columns = list(given.values()) if isinstance(given, dict) else []
    if columns and all([isinstance(c, list) and len(c) == count for c in columns]):
        return [dict(zip(given, cells, strict=True)) for cells in zip(*columns, strict=True)]
    got = f"{len(given):,}" if isinstance(given, list) else describe(given)
    return Broken("batch_mismatch", f"expected {count:,} predictions for {count:,} records, got {got}")
