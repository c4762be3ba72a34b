"""Rows that are Python objects → batches of cells."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.arrow import deep_cells, strings
from agent_eval_schema.cells.batch import make_batch, repeated
from agent_eval_schema.cells.notes import Notes
from agent_eval_schema.cells.numbers import READ_COLUMNS, may_be_lost, note_of, with_literals
from agent_eval_schema.io.source import Source, ranges
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules import reading
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.privacy import byte_at, error_text
from agent_eval_schema.text.visible import visible


def column_name(label: Any) -> str:
    """A column's label as text that every file can hold."""
    return "None" if is_absent(label) else str(label).encode("utf-8", "replace").decode()


def bytes_per_row(head: Iterable[Iterable[Any]]) -> float:
    sizes = [sum(map(_size, row)) for row in head]
    return sum(sizes) / max(len(sizes), 1)


def _size(value: Any) -> int:
    """The approximate size of a cell in bytes; a cell that cannot be written is reported later."""
    try:
        return len(value) if isinstance(value, str) else len(_encode(value))
    except Exception:
        return 64


# --- Python values in cells
def encode_cells(values: Iterable[Any], name: str, problems: Notes) -> tuple[pa.Array, bool]:
    """The cells of a column of Python values: strings as they are, or, if there is anything else, JSON texts."""
    with suppress(pa.ArrowException, TypeError, ValueError, UnicodeError):  # not only text
        array = strings(values)
        array.validate(full=True)  # bytes are taken for text without a look
        return array, False
    texts: list[bytes | str | None] = []
    for i, value in enumerate(values):
        try:
            text = None if is_absent(value) else _json_text(value)
            if text is not None and b"null" in text and may_be_lost(repr(value)):
                plain = msgspec.to_builtins(value, enc_hook=_plain)
                if name in READ_COLUMNS or isinstance(plain, float):  # the infinite numbers are errors there
                    text = with_literals(plain)
                note = note_of(plain, name)
                problems.setdefault(i, []).extend([] if note is None else [note])
            texts.append(text)
        except Exception as error:
            if name in READ_COLUMNS:
                texts.append(None)
                problems.setdefault(i, []).append(_cell_problem(name, value, error))
            else:  # only passed through: any text suffices
                texts.append(_encode(_passed_through(value)))
    array = strings(texts)
    if deep := frozenset(deep_cells(array)):
        for i, value in enumerate(values):
            if i in deep and name in READ_COLUMNS:
                texts[i] = None
                problems.setdefault(i, []).append(_too_deep(name, value))
            elif i in deep:
                texts[i] = _encode(f"{describe(value)}, nested too deep to read")
        array = strings(texts)
    return array, True


def _passed_through(value: Any) -> Any:
    """What is passed through of a value that no JSON text has: bytes become base64, a period its text."""
    if isinstance(value, bytes | bytearray):
        return value
    if isinstance(value, str):
        return visible(value)
    return str(value) if type(value).__module__.partition(".")[0] == "pandas" else describe(value)


def _json_text(value: Any) -> bytes:
    if value.__class__ is dict or value.__class__ is list or value.__class__ is str:
        return _encode(value)
    if isinstance(value, bytes | bytearray):
        return _encode(value.decode())
    if type(value).__module__.startswith("mlflow.") and hasattr(value, "to_json"):
        return _encode(value.to_json())  # a live Trace: its fields are not those of its JSON
    return _encode(value)


def is_absent(value: Any) -> bool:
    """None, NaN, NaT and pandas' NA are absent; an empty list or text is a value."""
    if value.__class__ is str or value.__class__ is dict or value.__class__ is list:
        return False
    if value is None or value.__class__.__name__ in ("NAType", "NaTType"):  # pandas need not be imported for it
        return True
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)


def is_of_pandas(value: Any, *names: str) -> bool:
    """Whether a value has one of these types of pandas: only if pandas was imported can it have one."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, tuple(getattr(pandas, name) for name in names))


def _plain(value: Any) -> Any:
    """JSON-like data for types that msgspec does not support: objects of numpy, pandas, pydantic, MLflow."""
    if isinstance(value, np.ndarray | np.generic) or is_of_pandas(value, "Series", "Index"):
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
        return Finding(reading.NOT_UTF8, f"expected UTF-8, got {byte_at(error)}", name)
    if isinstance(error, UnicodeError):
        return Finding(reading.LONE_SURROGATE, "text with a lone surrogate", name)
    if isinstance(error, RecursionError):  # an object that holds itself, or is deeper than the encoder goes
        return _too_deep(name, value)
    why = visible(error_text(error))[:200]
    return Finding(reading.UNREADABLE_CELL, f"expected plain data, got {describe(value)}: {why}", name)


def _too_deep(name: str, value: Any) -> Finding:
    message = f"expected at most {reading.MAX_DEPTH} levels of lists and objects, got {describe(value)} nested too deep"
    return Finding(reading.TOO_DEEP, message, name)


def from_list(rows: list[Any]) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        for start, end in ranges(len(rows), lambda sample: bytes_per_row([rows[i]] for i in sample)):
            yield batch_of_rows(rows[start:end])

    def take(mask: np.ndarray[Any, Any]) -> list[Any]:
        return [rows[i] for i in np.flatnonzero(mask)]

    @cache
    def labels() -> dict[str, list[Any]]:
        """The labels of each column's name: two may read the same."""
        by_name: dict[str, list[Any]] = {}
        for label in {k: None for row in rows for k in _as_mapping(row) or ()}:
            by_name.setdefault(column_name(label), []).append(label)
        return by_name

    def original(name: str) -> list[Any] | None:
        same = labels().get(name)
        objects = (_as_mapping(row) or {} for row in rows)
        return same and [next((row[label] for label in same if label in row), None) for row in objects]

    keys, all_objects = dict[Any, None](), True
    for row in rows:
        if row.__class__ is dict or isinstance(row, Mapping):
            keys |= dict.fromkeys(row)
        else:
            all_objects = False
    names = tuple(map(column_name, keys))
    return Source(
        "list",
        batches,
        take,
        columns=names if all_objects else None,
        original=original,
        repeated_columns=repeated(names),
        read_share=lambda done: done / max(len(rows), 1),
    )


def batch_of_rows(rows: list[Any]) -> pa.RecordBatch:
    """The cells of rows that are objects; other rows are reported."""
    problems: Notes = {}
    objects = []
    for i, row in enumerate(rows):
        values = row if row.__class__ is dict else _as_mapping(row)
        if values is None:
            problems[i] = [Finding(reading.NOT_A_ROW, f"expected an object with columns, got {describe(row)}")]
        objects.append(values or {})
    keys: dict[str, Any] = {}  # in the order in which they come up; of two labels that read the same the first
    for row in objects:
        for key in row:
            if key not in keys:
                keys.setdefault(column_name(key), key)
    columns = {
        n: encode_cells([row[k] if k in row else None for row in objects], n, problems)  # noqa: SIM401 (no call a cell)
        for n, k in keys.items()
    }
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
