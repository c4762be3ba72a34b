"""Notes that readers attach to a batch: hidden columns beside those of the user, and the log of issues."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import list_array
from agent_eval_schema.issues import Rule, Severity

READING = "__reading_problems__"
"""list<struct<column, code, message>> a row; a problem without a column concerns the whole row."""

LINE = "__line__"
"""The original text of a line that is no row: handed back with the invalid rows, never part of a normalised one."""

REPAIRS = "__repairs__"
"""list<struct<column, path, message>> a row: which of its cells were repaired, where, and what they were."""

FINDINGS = "__findings__"
"""list<struct<code, column, path, message, hint>> a row: what a format that looks across rows found in each."""

_ROLE_FINDINGS = {b"cells": b"findings"}
_ROLE_READING = {b"cells": b"reading"}
_ROLE_LINE = {b"cells": b"line"}
_ROLE_REPAIRS = {b"cells": b"repairs"}
_ROLE_PLAIN = {b"cells": b"plain"}

_OF_READERS = (_ROLE_READING, _ROLE_REPAIRS, _ROLE_FINDINGS, _ROLE_PLAIN)
"""Columns that readers add to those of the user."""

READING_TYPE = pa.list_(pa.struct([("column", pa.string()), ("code", pa.string()), ("message", pa.string())]))
REPAIRS_TYPE = pa.list_(pa.struct([("column", pa.string()), ("path", pa.string()), ("message", pa.string())]))

FINDINGS_TYPE = pa.list_(pa.struct([(name, pa.string()) for name in ("code", "column", "path", "message", "hint")]))

PLAIN = "__plain_requests__"
"""bool: which requests are plain chats as this package writes them (request.py), so that they need not be read again,
nor written anew."""

Problem = tuple[str | None, str, str]
"""What a reader says of a row: the column (None: the whole row), the code of the rule, the message."""

FindingNote = tuple[str, str | None, str | None, str, str]
"""A finding of a format: the code of the rule, the column, the path, the message, the hint."""

RepairNote = tuple[str, str, str]
"""What is said of a repaired cell: its column, the path of what changed in it, the message."""


def reading_problems(batch: pa.RecordBatch) -> list[list[Problem]]:
    """What the reader said of each row (nothing at all if all was well)."""
    at = _with_role(batch.schema, _ROLE_READING)
    rows = batch.column(at).to_pylist() if at is not None else []
    return [[(p["column"], p["code"], p["message"]) for p in row or ()] for row in rows]


def with_repairs(batch: pa.RecordBatch, notes: dict[int, list[RepairNote]]) -> pa.RecordBatch:
    """The batch with what is said of its repaired cells."""
    if not notes:
        return batch
    rows = [
        [{"column": c, "path": path, "message": m} for c, path, m in notes.get(i, ())] or None
        for i in range(batch.num_rows)
    ]
    field = pa.field(free(REPAIRS, batch.schema.names), REPAIRS_TYPE, metadata=_ROLE_REPAIRS)
    arrays = [*batch.columns, pa.array(rows, REPAIRS_TYPE)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*batch.schema, field]))


def repair_notes(batch: pa.RecordBatch) -> list[list[RepairNote]]:
    """What is said of the repaired cells of each row (nothing at all if there are none)."""
    at = _with_role(batch.schema, _ROLE_REPAIRS)
    rows = batch.column(at).to_pylist() if at is not None else []
    return [[(n["column"], n["path"], n["message"]) for n in row or ()] for row in rows]


def with_findings(batch: pa.RecordBatch, notes: dict[int, list[FindingNote]]) -> pa.RecordBatch:
    """The batch with what its format found in its rows."""
    if not notes:
        return batch
    keys = [field.name for field in FINDINGS_TYPE.value_type]
    rows = [[dict(zip(keys, n, strict=True)) for n in notes.get(i, ())] or None for i in range(batch.num_rows)]
    field = pa.field(free(FINDINGS, batch.schema.names), FINDINGS_TYPE, metadata=_ROLE_FINDINGS)
    arrays = [*batch.columns, pa.array(rows, FINDINGS_TYPE)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*batch.schema, field]))


def findings_in(batch: pa.RecordBatch) -> list[list[FindingNote]]:
    """What the format found in each row (nothing at all if all was well)."""
    at = _with_role(batch.schema, _ROLE_FINDINGS)
    rows = batch.column(at).to_pylist() if at is not None else []
    return [[(n["code"], n["column"], n["path"], n["message"], n["hint"]) for n in row or ()] for row in rows]


def with_plain_requests(batch: pa.RecordBatch, plain: pa.Array) -> pa.RecordBatch:
    """The batch with the knowledge which of its requests are plain chats."""
    field = pa.field(free(PLAIN, batch.schema.names), pa.bool_(), metadata=_ROLE_PLAIN)
    return batch.append_column(field, plain)


def plain_requests(batch: pa.RecordBatch) -> list[bool]:
    """For each row whether its request is known to be a plain chat."""
    at = _with_role(batch.schema, _ROLE_PLAIN)
    return [False] * batch.num_rows if at is None else [v is True for v in batch.column(at).to_pylist()]


def lines(batch: pa.RecordBatch) -> pa.Array | None:
    """The original texts of the lines that are no rows, if there are any."""
    at = _with_role(batch.schema, _ROLE_LINE)
    return None if at is None else batch.column(at)


def filled_rows(batch: pa.RecordBatch, name: str) -> np.ndarray[Any, Any]:
    """The rows where there is something in the column, readable or not."""
    at = batch.schema.get_field_index(name)
    filled = np.zeros(batch.num_rows, bool) if at < 0 else np.asarray(batch.column(at).is_valid()).astype(bool)
    for row, problems in enumerate(reading_problems(batch)):
        filled[row] |= any(column == name for column, _, _ in problems)
    return filled


def _with_role(schema: pa.Schema, role: dict[bytes, bytes]) -> int | None:
    return next((i for i, field in enumerate(schema) if field.metadata == role), None)


def original_lines(batch: pa.RecordBatch) -> pa.Array | None:
    """The original text of each line that is no row (null for the others), if there is one in the batch."""
    at = _with_role(batch.schema, _ROLE_LINE)
    return None if at is None else batch.column(at)


def is_hidden(field: pa.Field) -> bool:
    """Whether a column is the reader's, not the user's: only readers mark fields, what users give is stripped."""
    return field.metadata in (*_OF_READERS, _ROLE_LINE)


def own_columns(schema: pa.Schema) -> list[int]:
    """The places of the user's columns, and of the original lines."""
    return [i for i, field in enumerate(schema) if field.metadata not in _OF_READERS]


def free(name: str, taken: Container[str]) -> str:
    """A column's name that is not taken, as near to this one as can be."""
    while name in taken:
        name += "_"
    return name


NOTE = pa.struct(
    [
        ("code", pa.string()),
        ("column", pa.string()),
        ("path", pa.string()),
        ("message", pa.string()),
        ("hint", pa.string()),
    ]
)
"""One issue as it stands in the `issues` column of a checked batch; name and severity follow from the code."""


class IssueLog:
    """The issues of one batch of rows, in flat lists: appending costs no object per issue.

    A row in `failed` has an issue of severity error.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[int] = []
        self.notes: list[tuple[str, str | None, str | None, str, str]] = []
        self.failed: set[int] = set()

    def add(
        self, rule: Rule, row: int, column: str | None, message: str, *, path: str | None = None, hint: str = ""
    ) -> None:
        """Log one finding of `row`; an empty `hint` takes the rule's own."""
        self.rows.append(row)
        self.notes.append((rule.code, column, path or column, message, hint or rule.hint))
        if rule.severity is Severity.ERROR:
            self.failed.add(row)

    def to_arrow(self) -> pa.Array:
        """A list<NOTE> array with one entry a row, the issues of a row in the order they were found."""
        parents = np.array(self.rows, np.int64)
        order = np.argsort(parents, kind="stable").tolist()
        notes = [self.notes[i] for i in order]
        columns = list(zip(*notes, strict=True)) if notes else [()] * 5
        values = pa.StructArray.from_arrays([pa.array(c, pa.string()) for c in columns], fields=list(NOTE))
        return list_array(np.bincount(parents, minlength=self.size), values)
