"""Notes that readers attach to a batch: hidden columns in addition to those of the user, and the log of issues."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple, replace

from agent_eval_schema.cells.arrow import list_array, present
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Rule, Severity
from agent_eval_schema.rules import RULES

NOTES = "__notes__"
"""list<NOTE> a row: what its reader, a fix or its format found; null where all is well."""

LINE = "__line__"
"""The original text of a line that is not a row: returned with the invalid rows, never part of a normalized one."""

PLAIN = "__plain_requests__"
"""bool: the requests that are plain chats as this package writes them, which need not be read again or rewritten."""

_NOTES, _LINE, _PLAIN = {b"cells": b"notes"}, {b"cells": b"line"}, {b"cells": b"plain"}
"""The metadata of hidden columns: only readers mark fields, what users give is stripped."""

Notes = dict[int, list[Finding]]
"""The findings in rows, by the row of a batch."""

NOTE = pa.struct([(name, pa.string()) for name in ("code", "column", "path", "message", "hint")])
"""One issue in a checked batch, and one finding next to the cells; name and severity follow from the code."""


def without_notes(size: int) -> pa.RecordBatch:
    """Rows without a column of their own, on which notes can be put."""
    fields = [pa.field(NOTES, pa.list_(NOTE), metadata=_NOTES)]
    return pa.RecordBatch.from_arrays([pa.nulls(size, pa.list_(NOTE))], schema=pa.schema(fields))


def with_notes(batch: pa.RecordBatch, notes: Notes) -> pa.RecordBatch:
    """The batch with these notes on its rows, behind those that it has."""
    if not notes:
        return batch
    at = _hidden(batch.schema, _NOTES)
    rows: list[list[dict[str, Any]] | None] = [None] * batch.num_rows if at is None else batch.column(at).to_pylist()
    for row, findings in notes.items():
        values = [(f.rule.code, f.column, f.path or f.column, f.message, f.hint) for f in findings]
        rows[row] = [*(rows[row] or ()), *(dict(zip(NOTE.names, note, strict=True)) for note in values)]
    return _with_hidden(batch, NOTES, pa.array(rows, pa.list_(NOTE)), _NOTES, at)


def hidden_names(schema: pa.Schema) -> list[str]:
    """The hidden columns of a batch, by NOTES, LINE and PLAIN: a column may have another name, if that was taken."""
    roles = ((NOTES, _NOTES), (LINE, _LINE), (PLAIN, _PLAIN))
    return [name for name, role in roles if _hidden(schema, role) is not None]


def notes_on(batch: pa.RecordBatch) -> Notes:
    """The notes on the rows that have any."""
    at = _hidden(batch.schema, _NOTES)
    if at is None:
        return {}
    rows = enumerate(batch.column(at).to_pylist())
    return {
        row: [Finding(RULES[n["code"]], n["message"], n["column"], n["path"], n["hint"]) for n in notes]
        for row, notes in rows
        if notes
    }


def reading_problems(batch: pa.RecordBatch) -> Notes:
    """What could not be read: cells, and (without a column) whole rows."""
    problems = {row: list(filter(is_unread, findings)) for row, findings in notes_on(batch).items()}
    return {row: findings for row, findings in problems.items() if findings}


def is_unread(finding: Finding) -> bool:
    """Whether nothing else is known of the cell or row: the errors of family 0."""
    return finding.rule.code.startswith("AE0") and finding.rule.severity is Severity.ERROR


def rename_notes(batch: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    """The batch whose notes on cells that could not be read name the columns that these became."""
    return _changed(
        batch, lambda f: replace(f, column=names.get(f.column, f.column), path=None) if f.column and is_unread(f) else f
    )


def with_rules_of_notes(batch: pa.RecordBatch, rules: Mapping[str, Rule]) -> pa.RecordBatch:
    """The batch whose notes of these codes are of other rules; those on parts of cells are the format's to find."""

    def change(note: Finding) -> Finding | None:
        rule = rules.get(note.rule.code)
        return note if rule is None else replace(note, rule=rule) if note.path == note.column else None

    return _changed(batch, change)


def _changed(batch: pa.RecordBatch, change: Callable[[Finding], Finding | None]) -> pa.RecordBatch:
    at = _hidden(batch.schema, _NOTES)
    if at is None:
        return batch
    notes = {row: [new for f in findings if (new := change(f))] for row, findings in notes_on(batch).items()}
    return with_notes(batch.remove_column(at), {row: findings for row, findings in notes.items() if findings})


def with_line_texts(batch: pa.RecordBatch, lines: Mapping[int, str]) -> pa.RecordBatch:
    """The batch with the original texts of the lines that are not rows."""
    texts = pa.array([lines.get(row) for row in range(batch.num_rows)], pa.string())
    return _with_hidden(batch, LINE, texts, _LINE) if lines else batch


def line_texts(batch: pa.RecordBatch) -> pa.Array | None:
    """The original text of each line that is not a row (null for the others), if there is one in the batch."""
    at = _hidden(batch.schema, _LINE)
    return None if at is None else batch.column(at)


def with_plain_requests(batch: pa.RecordBatch, plain: pa.Array) -> pa.RecordBatch:
    """The batch with the knowledge which of its requests are plain chats."""
    return _with_hidden(batch, PLAIN, plain, _PLAIN)


def plain_requests(batch: pa.RecordBatch) -> list[bool]:
    """For each row whether its request is known to be a plain chat; an empty list if nothing is known."""
    at = _hidden(batch.schema, _PLAIN)
    return [] if at is None else [v is True for v in batch.column(at).to_pylist()]


def filled_rows(batch: pa.RecordBatch, name: str) -> np.ndarray[Any, Any]:
    """The rows where there is something in the column, readable or not."""
    at = batch.schema.get_field_index(name)
    filled = np.zeros(batch.num_rows, bool) if at < 0 else present(batch.column(at))
    filled[[row for row, findings in reading_problems(batch).items() if any(f.column == name for f in findings)]] = True
    return filled


def _hidden(schema: pa.Schema, role: dict[bytes, bytes]) -> int | None:
    return next((i for i, field in enumerate(schema) if field.metadata == role), None)


def _with_hidden(
    batch: pa.RecordBatch, name: str, array: pa.Array, role: dict[bytes, bytes], at: int | None = None
) -> pa.RecordBatch:
    """The batch with a hidden column, in the place of one that it has or behind the others."""
    if at is not None:
        return batch.set_column(at, batch.schema.field(at), array)
    return batch.append_column(pa.field(free(name, batch.schema.names), array.type, metadata=role), array)


def is_hidden(field: pa.Field) -> bool:
    """Whether a column is the reader's, not the user's."""
    return field.metadata in (_NOTES, _LINE, _PLAIN)


def column_names(schema: pa.Schema) -> list[str]:
    """The names of the user's columns."""
    return [field.name for field in schema if not is_hidden(field)]


def is_own(field: pa.Field) -> bool:
    """Whether it is a column of the user, or that of the original lines."""
    return field.metadata not in (_NOTES, _PLAIN)


def own_columns(schema: pa.Schema) -> list[int]:
    """The places of the user's columns, and of the original lines."""
    return [i for i, field in enumerate(schema) if is_own(field)]


def free(name: str, taken: Container[str]) -> str:
    """A column's name that is not taken, as near to this one as can be."""
    while name in taken:
        name += "_"
    return name


class IssueLog:
    """The issues of one batch of rows, in flat lists: appending costs no object per issue.

    A row in `failed` has an issue of severity error. `adapt` turns an issue into the one of these rows, if there
    is one.
    """

    def __init__(self, size: int, adapt: Callable[[Finding], Finding | None] | None = None) -> None:
        self.size = size
        self._adapt = adapt
        self.rows: list[int] = []
        self.notes: list[tuple[str, str | None, str | None, str, str]] = []
        self.failed: set[int] = set()

    def add(
        self, rule: Rule, row: int, column: str | None, message: str, *, path: str | None = None, hint: str = ""
    ) -> None:
        """Log one finding of `row`; an empty `hint` takes the rule's own."""
        if self._adapt is not None:
            finding = self._adapt(Finding(rule, message, column, path, hint))
            if finding is None:
                return
            rule, message, column, path, hint = astuple(finding)
        self.rows.append(row)
        self.notes.append((rule.code, column, path or column, message, hint or rule.hint))
        if rule.severity is Severity.ERROR:
            self.failed.add(row)

    def add_finding(self, row: int, finding: Finding, column: str | None = None) -> None:
        """Log the findings in `row`, of `column` if the finding names none."""
        self.add(finding.rule, row, finding.column or column, finding.message, path=finding.path, hint=finding.hint)

    def extend(self, log: IssueLog, rows: Sequence[int]) -> None:
        """Add the issues of some of the rows, which have these numbers here."""
        self.rows += [rows[row] for row in log.rows]
        self.notes += log.notes
        self.failed |= {rows[row] for row in log.failed}

    def to_arrow(self) -> pa.Array:
        """A list<NOTE> array with one entry a row, the issues of a row in the order they were found."""
        parents = np.array(self.rows, np.int64)
        order = np.argsort(parents, kind="stable").tolist()
        notes = [self.notes[i] for i in order]
        columns = list(zip(*notes, strict=True)) if notes else [()] * 5
        values = pa.StructArray.from_arrays([pa.array(c, pa.string()) for c in columns], fields=list(NOTE))
        return list_array(np.bincount(parents, minlength=self.size), values)
