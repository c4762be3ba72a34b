"""Rows that are Python objects → batches of cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.batch import make_batch, repeated
from agent_eval_schema.cells.cells import infinite_told
from agent_eval_schema.cells.notes import Notes
from agent_eval_schema.io.source import Source, rows_per_batch
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import reading
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.privacy import byte_name, error_text
from agent_eval_schema.text.visible import visible


def column_name(label: Any) -> str:
    """A column's label as text that every file can hold."""
    return "None" if is_absent(label) else str(label).encode("utf-8", "replace").decode()


def bytes_per_row(head: Iterable[Iterable[Any]]) -> float:
    sizes = [sum(map(_size, row)) for row in head]
    return sum(sizes) / max(len(sizes), 1)


def _size(value: Any) -> int:
    """About how many bytes a cell has; what cannot be written says so later."""
    try:
        return len(value) if isinstance(value, str) else len(_encode(value))
    except Exception:
        return 64


# ---------------------------------------------------------------------------------------------------------------------
# Python values in cells
READ_COLUMNS = frozenset({*COLUMNS, "inputs", "outputs", "expectations"})
"""The columns that some format reads: a cell that cannot be read is told there, and not replaced by words."""


def encode_cells(values: Iterable[Any], name: str, problems: Notes) -> tuple[pa.Array, bool]:
    """The cells of a column of Python values: strings as they are, or, if there is anything else, JSON texts."""
    try:
        array = pa.array(values, pa.string(), from_pandas=True)
        array.validate(full=True)  # bytes are taken for text without a look
        return array, False
    except (pa.ArrowException, TypeError, ValueError, UnicodeError):
        pass  # not only text
    texts: list[bytes | str | None] = []
    for i, value in enumerate(values):
        try:
            texts.append(None if is_absent(value) else _json_text(value, name in READ_COLUMNS))
        except Exception as error:
            if name in READ_COLUMNS:
                texts.append(None)
                problems.setdefault(i, []).append(_cell_problem(name, value, error))
            else:  # only carried along: some text will do
                texts.append(_encode(visible(value) if isinstance(value, str) else describe(value)))
    return pa.array(texts, pa.string()), True


def _json_text(value: Any, is_read: bool) -> bytes | str:
    """The JSON text of a value; of one that is read, with the infinite numbers in it, which are told."""
    if isinstance(value, bytes | bytearray):
        return _encode(value.decode())
    if type(value).__module__.startswith("mlflow.") and hasattr(value, "to_json"):
        return _encode(value.to_json())  # a live Trace: its fields are not those of its JSON
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity"  # which is no JSON, and is told as such
    return infinite_told(value, _encode(value), _plain) if is_read else _encode(value)


def is_absent(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA are absent; an empty list or text is a value."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)


def _plain(value: Any) -> Any:
    """JSON-like data for what msgspec does not know: numpy, pandas, pydantic, mlflow objects."""
    if isinstance(value, np.ndarray | np.generic | pd.Series | pd.Index):
        return value.tolist()
    if value is None:
        raise TypeError("a key must be text")
    if is_absent(value):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    for method in ("model_dump", "to_dict", "isoformat", "_asdict"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def _cell_problem(name: str, value: Any, error: Exception) -> Finding:
    if isinstance(error, UnicodeDecodeError):
        byte = f"{byte_name(error.object[error.start])} at byte {error.start}"
        return Finding(reading.NOT_UTF8, f"expected UTF-8, got {byte}", name)
    if isinstance(error, UnicodeError):
        return Finding(reading.LONE_SURROGATE, "text with half of a character (a lone surrogate)", name)
    if isinstance(error, RecursionError):
        return Finding(
            reading.TOO_DEEP, f"expected a value of ordinary depth, got {describe(value)} nested too deep", name
        )
    why = visible(error_text(error))[:200]
    return Finding(reading.UNREADABLE_CELL, f"expected plain data, got {describe(value)}: {why}", name)


# ---------------------------------------------------------------------------------------------------------------------
# lists
def from_list(rows: list[Any]) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        step = rows_per_batch(bytes_per_row([row] for row in rows[:64]))
        for start in range(0, len(rows), step):
            yield batch_of_rows(rows[start : start + step])

    def take(mask: np.ndarray[Any, Any]) -> list[Any]:
        return [rows[i] for i in np.flatnonzero(mask)]

    def original(name: str) -> list[Any]:
        return [next((v for k, v in (_as_mapping(row) or {}).items() if column_name(k) == name), None) for row in rows]

    keys = {k for row in rows if isinstance(row, Mapping) for k in row}
    names = tuple(map(column_name, keys))
    return Source(
        "list",
        batches,
        take,
        original=original,
        repeated_columns=repeated(names),
        read_share=lambda done: done / max(len(rows), 1),
    )


def batch_of_rows(rows: list[Any]) -> pa.RecordBatch:
    """The cells of rows that are objects; what is no object is told."""
    problems: Notes = {}
    objects = []
    for i, row in enumerate(rows):
        given = _as_mapping(row)
        if given is None:
            problems[i] = [Finding(reading.NOT_A_ROW, f"expected an object with columns, got {describe(row)}")]
        objects.append(given or {})
    keys: dict[str, Any] = {}  # in the order in which they come up; of two labels that read the same the first
    for row in objects:
        for key in row:
            keys.setdefault(column_name(key), key)
    columns = {n: encode_cells([row.get(k) for row in objects], n, problems) for n, k in keys.items()}
    return make_batch(columns, problems, len(rows))


def _as_mapping(row: Any) -> Mapping[Any, Any] | None:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    if isinstance(row, Struct):
        return {name: getattr(row, name) for name in row.__struct_fields__}
    try:
        plain = _plain(row)
    except Exception:
        return None
    return plain if isinstance(plain, dict) else None
