"""Ground truth next to `inputs` → into `expectations`, where MLflow reads it.

    {"inputs": …, "expected_response": "12"}   →   {"inputs": …, "expectations": {"expected_response": "12"}}

Safe: the value stays as it is, and a key that `expectations` have already is left where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.fix.effects import MOVED
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.formats.mlflow import EXPECTED
from agent_eval_schema.text import jsontext

PLACE = "expectations"
"""The column that mlflow reads."""


def moves_in(batch: pa.RecordBatch, start: int) -> Iterator[CellFix]:
    """The moves in the rows of a batch, of which `start` is the first."""
    names = [n for n in EXPECTED if n in batch.schema.names] if "inputs" in batch.schema.names else []
    if not names:
        return
    columns = {name: _values(batch, name) for name in names}
    ids = _values(batch, "request_id")
    for row, before in enumerate(_values(batch, PLACE)):
        beside = {name: cells[row] for name, cells in columns.items() if cells[row] is not None}
        if not beside or any(isinstance(value, jsontext.Malformed) for value in beside.values()):
            continue
        if isinstance(before, dict | None):
            after, emptied = _joined(before or {}, beside)
            if emptied:
                name = ids[row] if isinstance(ids[row], str) else None
                yield CellFix(start + row, name, PLACE, MOVED.what, before, after, emptied)


def _joined(given: dict[str, Any], beside: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Expectations with the columns next to them, and the names of these columns."""
    made, moved = dict(given), []
    for name, value in beside.items():
        parts = value if name == "custom_expected" and isinstance(value, dict) else {name: value}
        if not parts.keys() & made.keys():
            made |= parts
            moved.append(name)
    return made, tuple(moved)


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """The cells of a column; text that is an object or a list is parsed."""
    cells = read_cells(batch, name)
    if cells is None:
        return [None] * batch.num_rows
    return [None if text is None else _value(text, cells.json) for text in cells.texts]


def _value(text: str, is_json: bool) -> Any:
    value = jsontext.parse_exactly(text) if is_json else text
    if isinstance(value, str) and jsontext.is_structured(value):
        inner = jsontext.parse_exactly(value)
        return value if isinstance(inner, jsontext.Malformed) else inner
    return value
