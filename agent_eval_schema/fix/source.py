"""A source with fixed cells and columns, which is validated, normalized and written like any other.

source ──columns renamed──▶ batches ──search.py──▶ batches with fixed cells, and a note on each
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.batch import JSON_CELLS, is_json_column
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.edit import json_texts, with_cells, with_json
from agent_eval_schema.cells.notes import LINE, Notes, line_texts, own_columns, with_notes
from agent_eval_schema.fix.catalog import CODES_OF, FIXES_OF
from agent_eval_schema.fix.search import CellFix, Try, fixes_in, moves_in, read_exactly, tries_of, twins_in
from agent_eval_schema.io.atomic import require_place
from agent_eval_schema.io.files import same_form
from agent_eval_schema.io.jsonl import REMOVED
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import REWRITTEN, copy_file, require_writable, rewrite_file, write_batches
from agent_eval_schema.issues import EvalSetError, Finding, Severity
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules import RULES, columns
from agent_eval_schema.rules.expectations import BESIDE_INPUTS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_difference
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan

OUR_COLUMNS = ("databricks", "vertex")
"""The formats whose columns, where they have a fix, are ours: names and cells are the same in the file and in the
rules."""

FIXED_FORMATS = (*OUR_COLUMNS, "ragas", "mlflow")
"""The formats of which some cells can be fixed (for MLflow the columns next to `inputs`). Others have shapes of their
own, or are traces, which are evidence."""


class FixedSource(Struct, frozen=True):
    """A source and its fixes: `source` is what to validate or normalize, `batches()` the fixed batches and their fixes.

    `renames` maps misspelled columns to their new names, `unrenamed` others to the reason why they are not renamed; the
    columns `as_json` have an Arrow type that cannot hold the fixed cells and become JSON text in every batch.
    """

    original: Source
    plan: Plan
    codes: frozenset[str]
    renames: dict[str, str] = {}
    unrenamed: dict[str, str] = {}
    as_json: frozenset[str] = frozenset()

    @property
    def source(self) -> Source:
        """The source as it is with its fixes."""
        return replace(
            self.original,
            batches=lambda: (batch for batch, _ in self.batches()),
            columns=self.original.columns and tuple(self.renames.get(name, name) for name in self.original.columns),
            shares=None,
            fixed=True,
            renamed=tuple(self.renames.items()),
        )

    def batches(self) -> FixedBatches:
        """The fixed batches, each with the fixes of its cells, in the order of the rows."""
        start = 0
        for original in self.original.batches():
            batch = _with_renames(original, self.renames)
            fixes = list(self._fixes(batch, start))
            for name in self.as_json:
                batch = with_json(batch, name)
            yield _with_fixes(batch, start, fixes, self.plan.nests), fixes
            start += batch.num_rows

    def unfixed(self, batch: pa.RecordBatch, start: int) -> Iterator[Unfixed]:
        """The cells of a fixed batch, of which `start` is the first row, that have a fix and were not fixed."""
        if self.plan.format in FIXED_FORMATS and self.plan.format != "mlflow":
            yield from unfixed_in(batch, start, self.plan, self.codes)

    @property
    def _adds_a_column(self) -> bool:
        """Whether a fix may need a column that a file with a header lacks."""
        return self.plan.format == "mlflow" and self.original.kind == "csv"

    def _fixes(self, batch: pa.RecordBatch, start: int) -> Iterator[CellFix]:
        """The fixes of the cells of a batch, of which `start` is the first row."""
        if self.plan.format != "mlflow":
            return fixes_in(batch, start, self.plan, self.codes) if self.codes else iter(())
        return moves_in(batch, start) if BESIDE_INPUTS.code in self.codes else iter(())

    def write(self, path: str) -> FixCounts:
        """Write all rows with their fixes: in the file's own format everything else is unchanged, byte for byte.

        The file itself may be given: it is replaced when the new one is complete. Raises EvalSetError if it cannot be
        written, or if some content of the file would be lost.
        """
        require_fixable(self.original, path)
        counts = FixCounts(len(self.renames))
        if self.plan.format not in FIXED_FORMATS and _is_of_form(self.original, path, self.original.kind):
            copy_file(str(self.original.path), path, self.original.state)
            return counts
        batches = counts.over(self.batches())
        if _is_rewritten(self.original, path) and not self._adds_a_column:
            edits, state = _edits(batches), self.original.state
            rewrite_file(str(self.original.path), self.original.kind, path, self.renames, edits, state)
            return counts
        schema = schema_of(self.source)
        if any(line_texts(batch) is not None for batch in self.original.batches()):
            schema = schema.append(pa.field(LINE, pa.string()))
        own = (batch.select(own_columns(batch.schema)) for batch, _ in batches)
        write_batches(path, own, schema, self.original.state)
        return counts


def _edits(batches: FixedBatches) -> Iterator[dict[str, Any]]:
    """For each row what its fixed cells hold now: {column: value}."""
    start = 0
    for batch, fixes in batches:
        rows: dict[int, dict[str, Any]] = {}
        for fix in fixes:
            row = rows.setdefault(fix.row - start, {})
            row |= {fix.column: fix.after, **dict.fromkeys(fix.emptied, REMOVED)}
        yield from (rows.get(row, {}) for row in range(batch.num_rows))
        start += batch.num_rows


FixedBatches = Iterator[tuple[pa.RecordBatch, list[CellFix]]]


class FixCounts:
    """How much was fixed: columns, and cells in rows, counted as the batches pass."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.cells = self.rows = 0

    def over(self, batches: FixedBatches) -> FixedBatches:
        for batch, fixes in batches:
            self.cells += len(fixes)
            self.rows += len({c.row for c in fixes})
            yield batch, fixes

    def __str__(self) -> str:
        counts = f"{plural(self.cells, 'cell')} in {plural(self.rows, 'row')}"
        return counts + (f" and {plural(self.columns, 'column name')}" if self.columns else "")

    def __bool__(self) -> bool:
        return bool(self.cells or self.columns)


def require_fixable(source: Source, path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if the fixed rows cannot be written to `path`."""
    if _is_rewritten(source, path):
        require_place(path, stdout=True)
        return
    require_writable(path)
    if source.repeated_columns:
        names = ", ".join(source.repeated_columns)
        raise EvalSetError(
            f"{path}: cannot be written: only the first of several columns would be kept: {visible(names)}"
        )


def _is_rewritten(source: Source, path: str) -> bool:
    """Whether each row is a part of the file's text. Of a table that is one object by columns (`in_order`) none is: it
    is written by rows."""
    return _is_of_form(source, path, *REWRITTEN) and not source.in_order


def _is_of_form(source: Source, path: str, *kinds: str) -> bool:
    """Whether a file becomes one of its own form, and is of one of these kinds."""
    if source.path is None or source.file_of is not None:  # several files are written as one, by rows
        return False
    return source.kind in kinds and same_form(source.path, path)


# ---------------------------------------------------------------------------------------------------------------------
# batches
def _with_renames(batch: pa.RecordBatch, renames: dict[str, str]) -> pa.RecordBatch:
    for wrong, right in renames.items():
        at, to = batch.schema.get_field_index(wrong), batch.schema.get_field_index(right)
        if at >= 0 and to >= 0:
            field, array = _merged(batch, wrong, right)
            batch = batch.set_column(to, field, array).remove_column(at)
        elif at >= 0:
            batch = batch.rename_columns([right if n == wrong else n for n in batch.schema.names])
    return batch


def _merged(batch: pa.RecordBatch, wrong: str, right: str) -> tuple[pa.Field, pa.Array]:
    """Two columns of which no row fills both, as one."""
    field, other = batch.schema.field(right), batch.schema.field(wrong)
    if field.type == other.type and is_json_column(field) == is_json_column(other):
        try:
            return field, pc.coalesce(batch.column(right), batch.column(wrong))
        except pa.ArrowNotImplementedError:
            pass
    texts = [a if a is not None else b for a, b in zip(json_texts(batch, right), json_texts(batch, wrong), strict=True)]
    return pa.field(right, pa.string(), metadata=JSON_CELLS), pa.array(texts, pa.string())


def _with_fixes(batch: pa.RecordBatch, start: int, fixes: list[CellFix], nests: bool) -> pa.RecordBatch:
    cells: dict[str, dict[int, Any]] = {}
    notes = Notes()
    for fix in fixes:
        for column, value in {fix.column: fix.after, **dict.fromkeys(fix.emptied)}.items():
            cells.setdefault(column, {})[fix.row - start] = value
        notes.setdefault(fix.row - start, []).append(_note(fix))
    for column, values in cells.items():
        if column not in batch.schema.names:
            absent = pa.field(column, pa.string(), metadata=JSON_CELLS)
            batch = batch.append_column(absent, pa.nulls(batch.num_rows, pa.string()))
        batch = with_cells(batch, column, values, nests)
    return with_notes(batch, notes)


def _note(fix: CellFix) -> Finding:
    parts = fix.parts
    before, after = excerpt_difference(jsontext.write_exactly(parts[0].before), jsontext.write_exactly(parts[0].after))
    more = f" (the first of {len(parts)} places)" if len(parts) > 1 else ""
    return Finding(columns.REPAIRED_CELL, f"{fix.what}: {before} became {after}{more}", fix.column, parts[0].path)


# ---------------------------------------------------------------------------------------------------------------------
# fixes that are not written
class Unfixed(Struct, frozen=True):
    """A cell that was not fixed: its row (0-based) and id, the place in it, the code of its issue, and the reason."""

    row: int
    request_id: str | None
    path: str
    code: str
    reason: str


def unfixed_in(batch: pa.RecordBatch, start: int, plan: Plan, codes: frozenset[str]) -> Iterator[Unfixed]:
    """The cells of a fixed batch, of which `start` is the first row, with an issue that has a fix."""
    checked = check_batch(batch, plan)
    ids = verdict(checked, "id")
    twins = twins_in(batch)
    for row, notes in enumerate(verdict(checked, "issues").to_pylist()):
        seen = set[tuple[str, str]]()
        for note in notes or ():
            column, code = note["column"], note["code"]
            if (column, code) in seen or code not in codes & CODES_OF.get(column, frozenset()):
                continue
            seen.add((column, code))
            reason = (
                f"the cell may be in `{twins[column][0]}`, which is not renamed"
                if column in twins and twins[column][1][row]
                else _reason(batch.slice(row, 1), column, code, notes, plan)
            )
            yield Unfixed(start + row, ids[row].as_py(), note["path"] or column, code, reason)


def _reason(row: pa.RecordBatch, column: str, code: str, notes: list[dict[str, Any]], plan: Plan) -> str:
    """Why no fix of a cell was applied."""
    value = read_exactly(read_cells(row, column), 0, column, plan.nests)
    if value is None or isinstance(value, jsontext.Malformed):
        return "the cell cannot be written again without loss"
    tries = tries_of(column, value)
    if not tries:
        known = "; ".join(fix.effect.what for fix in FIXES_OF[column] if code in fix.effect.codes)
        return f"no fix has exactly one interpretation ({known})"
    return _why_no_better(row, tries[-1], notes, plan)


def _why_no_better(row: pa.RecordBatch, attempt: Try, notes: list[dict[str, Any]], plan: Plan) -> str:
    """The issues that a cell with all its fixes would still have, or have then."""
    fixed = check_batch(with_cells(row, attempt.column, {0: attempt.value}, plan.nests), plan)
    left = [n for n in verdict(fixed, "issues").to_pylist()[0] or () if RULES[n["code"]].severity is not Severity.INFO]
    known = [(n["code"], n["path"]) for n in notes]
    new = [n for n in left if (n["code"], n["path"]) not in known] or [n for n in left if n["column"] == attempt.column]
    what = "; ".join(dict.fromkeys(attempt.what))
    return (
        f"with it ({what}) the row would have {new[0]['code']}: {new[0]['message']}" if new else f"{what} has no effect"
    )
