"""The rows of a batch → the fixes of their cells that help.

    rows with a fixable issue ──▶ try: a cell with all its fixes, else with fewer
                 ▲                                     │
                 └── kept, and searched again ◀── validate the row again ──▶ given up

A try is kept if the row is better: some errors are gone and no other one came; or the errors are the same, and so for
the warnings. So a fix that does not help, or that uncovers an error which it cannot fix as well, leaves the cell as it
came, and a row never has more errors than before. A row is decided by itself, whatever else is in the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.edit import with_cells
from agent_eval_schema.cells.notes import filled_rows
from agent_eval_schema.cells.sizes import taken
from agent_eval_schema.fix.effects import FIXABLE, MOVED
from agent_eval_schema.fix.values import CODES_OF, FIXES, FIXES_OF, opened_json_text
from agent_eval_schema.formats.mlflow import EXPECTED
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.rows import misspelled_columns


class FixedPart(NamedTuple):
    """The places where two values differ, and the values there."""

    path: str
    before: Any
    after: Any


class CellFix(Struct, frozen=True):
    """One fixed cell; `row` is 0-based, `emptied` are the columns whose cells it used."""

    row: int
    request_id: str | None
    column: str
    what: str
    before: Any
    after: Any
    emptied: tuple[str, ...] = ()

    @property
    def parts(self) -> list[FixedPart]:
        """The smallest parts of the cell that differ, each with its path."""
        return list(_fixed_parts(self.column, self.before, self.after))


def _fixed_parts(path: str, before: Any, after: Any) -> Iterator[FixedPart]:
    if isinstance(before, dict) and isinstance(after, dict) and list(before) == list(after):
        parts = [(f"{path}.{k}", before[k], after[k]) for k in before]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        parts = [(f"{path}[{i}]", b, a) for i, (b, a) in enumerate(zip(before, after, strict=True))]
    else:
        yield FixedPart(path, before, after)
        return
    for where, old, new in parts:
        if old is not new and old != new:
            yield from _fixed_parts(where, old, new)


class _RowIssues(NamedTuple):
    """The issues of a row: errors and warnings by code, the number of others with a fix, the codes per column."""

    errors: Counter[str]
    warnings: Counter[str]
    others: int
    codes: dict[str, set[str]]

    def better_than(self, other: _RowIssues) -> bool:
        if self.errors != other.errors:
            return self.errors <= other.errors
        if self.warnings != other.warnings:
            return self.warnings <= other.warnings
        return self.others < other.others


_CLEAN = _RowIssues(Counter(), Counter(), 0, {})


class Try(NamedTuple):
    """A value that a cell may get, and the fixes that lead to it."""

    column: str
    value: Any
    what: tuple[str, ...]


class _Row(Struct):
    """A row that is being fixed: the current content of its fixable cells, and the fixes that are yet to be tried."""

    at: int
    issues: _RowIssues
    original: dict[str, Any] = {}
    cells: dict[str, Any] = {}
    what: dict[str, tuple[str, ...]] = {}
    tries: list[Try] = []

    def find_tries(self, codes: frozenset[str]) -> None:
        """Find what to try next: for each cell with a fixable issue all its fixes, then ever fewer."""
        self.tries = [
            attempt
            for column, value in self.cells.items()
            if self.issues.codes.get(column, set()) & codes & CODES_OF[column]
            for attempt in reversed(tries_of(column, value))
        ]

    def accept(self, attempt: Try, issues: _RowIssues) -> None:
        self.issues = issues
        self.cells[attempt.column] = attempt.value
        self.what[attempt.column] = (*self.what.get(attempt.column, ()), *attempt.what)


def tries_of(column: str, value: Any) -> list[Try]:
    """The cell after its first fix, after the second one, …"""
    tries: list[Try] = []
    what: tuple[str, ...] = ()
    for fix in FIXES_OF[column]:
        fixed = fix.apply(value)
        if fixed is not value:
            with suppress(ValueError):  # it cannot be written
                jsontext.write_exactly(fixed)
                value, what = fixed, (*what, fix.effect.what)
                tries.append(Try(column, value, what))
    return tries


def fixes_in(batch: pa.RecordBatch, start: int, plan: Plan, codes: frozenset[str]) -> Iterator[CellFix]:
    """The fixes of a batch that help, in the order of the rows."""
    checked = check_batch(batch, plan)
    ids = verdict(checked, "id")
    rows = _rows_to_fix(batch, checked, plan, codes)
    for row in rows:
        row.find_tries(codes)
    rest = rows
    # Try and validate again, one cell of each row at a time, until no row has anything left to try. After a fix that
    # helped, all fixes are tried again: so a second run finds nothing more.
    while rest := [row for row in rest if row.tries]:
        tries = [row.tries.pop(0) for row in rest]
        for row, attempt, issues in zip(rest, tries, _issues_of_rows(_checked(batch, rest, tries, plan)), strict=True):
            if issues.better_than(row.issues):
                row.accept(attempt, issues)
                row.find_tries(codes)
    for row in rows:
        for column in (c for c in FIXES_OF if c in row.what):
            what = "; ".join(dict.fromkeys(row.what[column]))
            yield CellFix(start + row.at, ids[row.at].as_py(), column, what, row.original[column], row.cells[column])


def _rows_to_fix(batch: pa.RecordBatch, checked: pa.RecordBatch, plan: Plan, codes: frozenset[str]) -> list[_Row]:
    read, twins = cache(partial(read_cells, batch)), twins_in(batch)
    rows = []
    for row in (_Row(at, issues) for at, issues in enumerate(_issues_of_rows(checked)) if issues.codes):
        for column, own_codes in row.issues.codes.items():
            if column in twins and twins[column][1][row.at]:
                continue
            if own_codes & codes & CODES_OF.get(column, frozenset()):
                value = read_exactly(read(column), row.at, column, plan.can_hold_objects)
                if value is not None and not isinstance(value, jsontext.Malformed):
                    row.original[column] = row.cells[column] = value
        if row.cells:
            rows.append(row)
    return rows


def twins_in(batch: pa.RecordBatch) -> dict[str, tuple[str, np.ndarray[Any, Any]]]:
    """For a column the misspelled one that was not renamed, and the rows that fill it: their cells may be there."""
    misspelled = misspelled_columns(tuple(batch.schema.names))
    return {right: (wrong, filled_rows(batch, wrong)) for wrong, right in misspelled.items()}


def read_exactly(cells: Cells | None, row: int, column: str, can_hold_objects: bool) -> Any:
    """The value of a cell if it can be written again without loss, else a `Malformed`; None if there is none. A cell
    that is text because its column cannot contain an object is parsed as the object."""
    text = cells.texts[row] if cells is not None else None
    if cells is None or text is None:
        return None
    value = jsontext.parse_exactly(text) if cells.json else text
    return opened_json_text(value) if not cells.json and not can_hold_objects and column in _OPENED else value


_OPENED = frozenset(name for fix in FIXES if fix.apply is opened_json_text for name in fix.columns)


def _issues_of_rows(checked: pa.RecordBatch) -> list[_RowIssues]:
    rows = []
    for notes in verdict(checked, "issues").to_pylist():
        if not notes:
            rows.append(_CLEAN)
            continue
        codes: dict[str, set[str]] = {}
        for note in notes:
            codes.setdefault(note["column"], set()).add(note["code"])
        errors, warnings = (
            Counter(n["code"] for n in notes if RULES[n["code"]].severity is severity)
            for severity in (Severity.ERROR, Severity.WARNING)
        )
        others = sum(RULES[n["code"]].severity is Severity.INFO and n["code"] in FIXABLE for n in notes)
        rows.append(_RowIssues(errors, warnings, others, codes))
    return rows


def _checked(batch: pa.RecordBatch, rows: list[_Row], tries: list[Try], plan: Plan) -> pa.RecordBatch:
    """The validation result of these rows, with the cells that are tried."""
    trial = taken(batch, [row.at for row in rows])
    cells: dict[str, dict[int, Any]] = {}
    for i, (row, attempt) in enumerate(zip(rows, tries, strict=True)):
        for column in row.what:
            cells.setdefault(column, {})[i] = row.cells[column]
        cells.setdefault(attempt.column, {})[i] = attempt.value
    for column, values in cells.items():
        trial = with_cells(trial, column, values, plan.can_hold_objects)
    return check_batch(trial, plan)


# --- ground truth next to `inputs` → into `expectations`, where MLflow reads it
#
#     {"inputs": …, "expected_response": "12"}   →   {"inputs": …, "expectations": {"expected_response": "12"}}
#
# Safe: the value stays as it is, and a key that `expectations` have already is left where it is.
PLACE = "expectations"
"""The column that mlflow reads."""


def moves_in(batch: pa.RecordBatch, start: int) -> Iterator[CellFix]:
    """The moves in the rows of a batch; `start` is the position of the first."""
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


def _joined(expectations: dict[str, Any], beside: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Expectations with the columns next to them, and the names of these columns."""
    joined, moved = dict(expectations), []
    for name, value in beside.items():
        parts = value if name == "custom_expected" and isinstance(value, dict) else {name: value}
        if not parts.keys() & joined.keys():
            joined |= parts
            moved.append(name)
    return joined, tuple(moved)


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
