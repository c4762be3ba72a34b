"""fix_source: a source → the same source with everything fixed that is safe to fix, to be validated and written.

source ──columns renamed──▶ batches ──search.py──▶ batches with fixed cells, and a note on each
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, simplified
from agent_eval_schema.cells.batch import JSON_CELLS, is_json_column
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.edit import json_texts, with_cells, with_edits, with_json
from agent_eval_schema.cells.notes import LINE, Notes, filled_rows, is_hidden, line_texts, own_columns, with_notes
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.fix.search import PLACE, CellFix, fixes_in, moves_in, read_exactly, tries_of, twins_in
from agent_eval_schema.fix.values import CODES_OF, FIXES_OF
from agent_eval_schema.formats.column_names import in_sheet
from agent_eval_schema.formats.nested import require_one_format
from agent_eval_schema.io.atomic import require_place
from agent_eval_schema.io.excel import EXCEL
from agent_eval_schema.io.excel_editor import edit_workbook
from agent_eval_schema.io.files import same_form
from agent_eval_schema.io.jsonl import REMOVED
from agent_eval_schema.io.places import ending_of, with_part
from agent_eval_schema.io.records import encode_cells
from agent_eval_schema.io.source import BatchFunction, Source, schema_of
from agent_eval_schema.io.streams import DROPPED, STDOUT, Edits, Renames
from agent_eval_schema.io.write import REWRITTEN, copy_file, require_writable, rewrite_file, write_batches
from agent_eval_schema.issues import Finding, Issue
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES, columns
from agent_eval_schema.rules.expectations import BESIDE_INPUTS
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_difference, excerpt_names
from agent_eval_schema.text.privacy import may_quote
from agent_eval_schema.text.spelling import meant
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.rows import misspelled_columns
from agent_eval_schema.validation.validate import check_source

OUR_COLUMNS = ("databricks", "vertex")
"""The formats whose fixable columns are ours: names and cells are the same in the file and in the rules."""

FIXED_FORMATS = (*OUR_COLUMNS, "ragas", "mlflow")
"""The formats with fixable cells (of MLflow beside `inputs`). Others have shapes of their own, or are evidence."""


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
        return replace(
            self.original,
            batches=lambda: (batch for batch, _ in self.batches()),
            columns=self.original.columns and tuple(self.renames.get(name, name) for name in self.original.columns),
            shares=None,
            differs_from_file=True,
            renamed=tuple(self.renames.items()),
        )

    def written_to(self, path: str) -> Source:
        """The fixed source as the file to which it is written."""
        source, options = self.source, {k: v for k, v in self.original.options.items() if k != "columns"}
        lines = source.lines if is_rewritten(self.original, path) else None
        if source.sheet is not None and lines is not None:  # it keeps its names, and its other sheets
            return replace(source, name=with_part(path, source.name), options=self.original.options)
        return source if path == STDOUT else replace(source, name=path, options=options, lines=lines)

    def batches(self) -> FixedBatches:
        """The fixed batches, each with the fixes of its cells, in the order of the rows."""
        start = 0
        for batch in self.original.batches():
            for wrong, right in self.renames.items():
                batch = _renamed(batch, wrong, right)
            fixes = list(self._fixes(batch, start))
            for name in self.as_json:
                batch = with_json(batch, name)
            cells: dict[str, dict[int, Any]] = {}
            notes = Notes()
            for fix in fixes:
                for column, value in {fix.column: fix.after, **dict.fromkeys(fix.emptied)}.items():
                    cells.setdefault(column, {})[fix.row - start] = value
                notes.setdefault(fix.row - start, []).append(_note(fix))
            yield with_notes(with_edits(batch, cells, self.plan.can_hold_objects), notes), fixes
            start += batch.num_rows

    def unfixed(self, batch: pa.RecordBatch, start: int) -> Iterator[Unfixed]:
        """The cells of a fixed batch that have a fix and were not fixed; `start` is the position of its first row."""
        if self.plan.format in FIXED_FORMATS and self.plan.format != "mlflow":
            checked = check_batch(batch, self.plan)
            ids = verdict(checked, "id")
            twins = twins_in(batch)
            for row, notes in enumerate(verdict(checked, "issues").to_pylist()):
                seen = set[tuple[str, str]]()
                for note in notes or ():
                    column, code = note["column"], note["code"]
                    if (column, code) in seen or code not in self.codes & CODES_OF.get(column, frozenset()):
                        continue
                    seen.add((column, code))
                    reason = (
                        f"the cell may be in `{twins[column][0]}`, which is not renamed"
                        if column in twins and twins[column][1][row]
                        else _reason(batch.slice(row, 1), column, code, notes, self.plan)
                    )
                    yield Unfixed(start + row, ids[row].as_py(), note["path"] or column, code, reason)

    def _fixes(self, batch: pa.RecordBatch, start: int) -> Iterator[CellFix]:
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
        # a fix may need a column that a file with a header lacks
        adds_a_column = self.plan.format == "mlflow" and self.original.kind == "csv"
        if is_rewritten(self.original, path) and not adds_a_column:
            rewrite(self.original, path, self.renames, edits_of(batches))
            return counts
        schema = schema_of(self.source)
        if any(line_texts(batch) is not None for batch in self.original.batches()):
            schema = schema.append(pa.field(LINE, pa.string()))
        own = (batch.select(own_columns(batch.schema)) for batch, _ in batches)
        write_batches(path, own, schema, self.original.state)
        return counts


def edits_of(batches: FixedBatches) -> Iterator[dict[str, Any]]:
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
        parts = [plural(self.columns, "column name")] if self.columns else []
        if self.cells or not self.columns:
            parts.insert(0, f"{plural(self.cells, 'cell')} in {plural(self.rows, 'row')}")
        return " and ".join(parts)

    def __bool__(self) -> bool:
        return bool(self.cells or self.columns)


def require_fixable(source: Source, path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if the fixed rows cannot be written to `path`."""
    if is_rewritten(source, path):
        require_place(path, stdout=True)
        return
    require_writable(path)
    require_one_format(source, path)
    if source.repeated_columns:
        names = visible(", ".join(source.repeated_columns))
        raise EvalSetError(f"{path}: cannot be written: only the first of several columns would be kept: {names}")


def is_rewritten(source: Source, path: str) -> bool:
    """Whether each row is a part of the file's text, or of its sheet; of a table that is one object by columns none
    is."""
    if source.sheet is not None:
        return ending_of(path) == EXCEL
    return _is_of_form(source, path, *REWRITTEN) and not source.in_order


def rewrite(source: Source, path: str, renames: Renames, edits: Edits) -> None:
    """Write the file of a source whose rows are parts of it, with columns renamed and cells replaced."""
    if source.sheet is not None:
        own = (cells if cells is DROPPED else in_sheet(source, cells) for cells in edits)
        edit_workbook(source.sheet, path, renames, own)
    else:
        rewrite_file(str(source.path), source.kind, path, renames, edits, source.state)


def _is_of_form(source: Source, path: str, *kinds: str) -> bool:
    """Whether a file becomes one of its own form, and is of one of these kinds."""
    if source.path is None or source.file_of is not None:  # several files are written as one, by rows
        return False
    return source.kind in kinds and same_form(source.path, path) and not source.reading.columns


# --- batches
def _renamed(batch: pa.RecordBatch, wrong: str, right: str) -> pa.RecordBatch:
    """A batch with a column renamed; it is merged with an existing one of that name if no row fills both."""
    at, to = batch.schema.get_field_index(wrong), batch.schema.get_field_index(right)
    if at < 0 or to < 0:
        return batch if at < 0 else batch.rename_columns([right if n == wrong else n for n in batch.schema.names])
    field, other, array = batch.schema.field(right), batch.schema.field(wrong), None
    if field.type == other.type and is_json_column(field) == is_json_column(other):
        with suppress(pa.ArrowNotImplementedError):
            array = pc.coalesce(batch.column(right), batch.column(wrong))
    if array is None:
        both = zip(json_texts(batch, right), json_texts(batch, wrong), strict=True)
        field = pa.field(right, pa.string(), metadata=JSON_CELLS)
        array = pa.array([a if a is not None else b for a, b in both], pa.string())
    return batch.set_column(to, field, array).remove_column(at)


def _note(fix: CellFix) -> Finding:
    parts = fix.parts
    before, after = excerpt_difference(jsontext.write_exactly(parts[0].before), jsontext.write_exactly(parts[0].after))
    if not may_quote():
        return Finding(columns.REPAIRED_CELL, fix.what, fix.column, parts[0].path)
    more = f" (the first of {len(parts)} places)" if len(parts) > 1 else ""
    return Finding(columns.REPAIRED_CELL, f"{fix.what}: {before} became {after}{more}", fix.column, parts[0].path)


# --- fixes that are not written
class Unfixed(Struct, frozen=True):
    """A cell that was not fixed: its row (0-based) and id, the place in it, the code of its issue, and the reason."""

    row: int
    request_id: str | None
    path: str
    code: str
    reason: str


def _reason(row: pa.RecordBatch, column: str, code: str, notes: list[dict[str, Any]], plan: Plan) -> str:
    value = read_exactly(read_cells(row, column), 0, column, plan.can_hold_objects)
    if value is None or isinstance(value, jsontext.Malformed):
        return "the cell cannot be written again without loss"
    tries = tries_of(column, value)
    if not tries:
        known = "; ".join(fix.effect.what for fix in FIXES_OF[column] if code in fix.effect.codes)
        return f"no fix has exactly one interpretation ({known})"
    attempt = tries[-1]
    fixed = check_batch(with_cells(row, attempt.column, {0: attempt.value}, plan.can_hold_objects), plan)
    rest = [n for n in verdict(fixed, "issues").to_pylist()[0] or () if RULES[n["code"]].severity is not Severity.INFO]
    noted = [(n["code"], n["path"]) for n in notes]
    new = [n for n in rest if (n["code"], n["path"]) not in noted] or [n for n in rest if n["column"] == attempt.column]
    what = "; ".join(dict.fromkeys(attempt.what))
    return (
        f"with it ({what}) the row would have {new[0]['code']}: {new[0]['message']}" if new else f"{what} has no effect"
    )


# --- what is fixed of a source
def fix_source(source: Source, *, codes: frozenset[str] = frozenset(RULES)) -> FixedSource:
    """The source with every safe fix for issues of these codes. The cells are fixed when they are read; only what
    concerns whole columns is decided now: which are renamed, and whose type cannot stay."""
    fixed = FixedSource(source, make_plan(source), codes & FIXABLE.keys())
    if fixed.plan.format not in FIXED_FORMATS:
        return replace(fixed, codes=frozenset())
    if columns.MISSPELLED_COLUMN.code in codes and fixed.plan.format in OUR_COLUMNS:
        fixed = with_columns_renamed(fixed)
    return _with_types(fixed)


def _checked(fixed: FixedSource) -> Report:
    plan = fixed.plan
    return check_source(_with_types(fixed).source.read_as(format=plan.format, outputs=plan.outputs))


# --- rows of a cluster
def fixes_of_batches(source: Source, plan: Plan) -> BatchFunction:
    """The function that fixes the cells of each batch, wherever its rows are. Raises EvalSetError if a column has to be
    renamed: whether that helps is seen in the whole dataset."""
    wrong = misspelled_columns(tuple(source.column_names())) if plan.format in OUR_COLUMNS else {}
    for name, meant_name in wrong.items():
        raise EvalSetError(f"fix: rename the column `{name}` of the Spark DataFrame first (`{meant_name}`), or drop it")
    return partial(_fixed_batch, plan, frozenset(FIXABLE) if plan.format in FIXED_FORMATS else frozenset())


def _fixed_batch(plan: Plan, codes: frozenset[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    fixed = FixedSource(Source("spark", lambda: iter([batch]), lambda _: None, can_hold_objects=False), plan, codes)
    return next(fixed_batch for fixed_batch, _ in fixed.batches())


# --- columns
def _with_types(fixed: FixedSource) -> FixedSource:
    """The fixes with the columns named whose Arrow type cannot hold them: where some have a type, one look ahead."""
    first = fixed.original.head()
    fields = [] if first is None else [f for f in first.schema if not is_json_column(f)]
    typed = {fixed.renames.get(f.name, f.name) for f in fields if not is_text(simplified(pa.nulls(0, f.type)).type)}
    if not typed & {*FIXES_OF, PLACE}:
        return fixed
    misfits: set[str] = set()
    for batch, fixes in fixed.batches():
        misfits |= {c.column for c in fixes if c.column in typed and is_json_column(batch.schema.field(c.column))}
    return replace(fixed, as_json=frozenset(misfits))


# --- misspelled columns → those that are renamed, and why the others are not
#
# A column is renamed for the whole dataset or not at all: where one column of the schema is a close match, no row fills
# both, and the cells (with the fixes of their own) are right in most rows. A row whose cell is wrong under the right
# name gets an error that names it; it does not keep the others from being read.
def with_columns_renamed(fixed: FixedSource) -> FixedSource:
    """The fixes with as many columns renamed as it helps, one after the other, and why the others are not."""
    # in a table the first batch has all columns, in a list of objects any batch may have more
    some = fixed.original.batches() if fixed.original.ragged else islice(fixed.original.batches(), 1)
    names = tuple(dict.fromkeys(f.name for batch in some for f in batch.schema if not is_hidden(f)))
    near = misspelled_columns(names)
    claims: dict[str, list[str]] = {}
    for wrong, right in near.items():
        if meant(wrong, COLUMNS, cutoff=0.85) == right:
            claims.setdefault(right, []).append(wrong)
    unclear = {wrong: _unclear(fixed.original, wrong, right, claims.get(right, [])) for wrong, right in near.items()}
    reasons = {wrong: why for wrong, why in unclear.items() if why}
    renames = {wrong: right for wrong, right in near.items() if wrong not in reasons}
    start = 0
    for batch in fixed.original.batches() if renames else ():
        for wrong, right in list(renames.items()):
            both = np.flatnonzero(filled_rows(batch, wrong) & filled_rows(batch, right))
            if len(both):
                reasons[wrong] = f"row {start + int(both[0]):,} has a cell in `{right}` too"
                del renames[wrong]
        start += batch.num_rows
    is_progress = True
    while is_progress:  # one that is renamed may have cleared the way for another one
        is_progress = False
        for wrong, right in renames.items():
            trial = _renaming(fixed, wrong, right)
            if isinstance(trial, FixedSource):
                fixed, is_progress = trial, True
                renames = {w: r for w, r in renames.items() if w != wrong}
                break
            reasons[wrong] = trial
    return replace(fixed, unrenamed={wrong: reasons[wrong] for wrong in reasons if wrong not in fixed.renames})


def _unclear(source: Source, wrong: str, right: str, same: list[str]) -> str:
    """Why a column is no clear misspelling, by names alone; "" if it is. `same` are the columns that mean `right`."""
    if wrong not in same:
        return f"it may be a different name, not a misspelling of `{right}`"
    if len(same) > 1:
        return f"several columns may mean `{right}`: {excerpt_names(same)}"
    if wrong in source.repeated_columns or right in source.repeated_columns:
        return "there are several columns of the name"
    return "" if _moves(source, wrong, right) else "a cell of it cannot be written as JSON"


def _moves(source: Source, wrong: str, right: str) -> bool:
    """Whether every cell can be read as one of the right column: in a column that is only passed through, a cell that
    cannot be written as JSON is described in words, which are not its content."""
    problems = Notes()
    cells = None if source.original is None else source.original(wrong)
    if cells is not None:
        encode_cells(list(cells), right, problems)
    return not problems


def _renaming(fixed: FixedSource, wrong: str, right: str) -> FixedSource | str:
    """The fixes with one more column renamed, or why that does not help. `outputs` is the option with the new name: a
    misspelled response column does not mean that the agent will be run."""
    trial = replace(fixed, renames={**fixed.renames, wrong: right})
    trial = replace(trial, plan=make_plan(trial.source))
    if trial.plan.format != fixed.plan.format:
        return f"as `{right}` it would make the rows those of the {trial.plan.format} format"
    before, after = _checked(replace(fixed, plan=trial.plan)), _checked(trial)
    if not (before.valid_mask & ~after.valid_mask).any() and after.count("error") <= before.count("error"):
        return trial
    known = Counter((i.row, i.code) for i in before.iter_issues() if i.severity is Severity.ERROR)
    counts = Counter(row for row, _ in known.elements())
    issues: dict[int | None, Issue] = {}
    for issue in after.iter_issues():
        if issue.severity is Severity.ERROR:
            counts[issue.row] -= 1
            known[issue.row, issue.code] -= 1
            if known[issue.row, issue.code] < 0:
                issues.setdefault(issue.row, issue)
    worse = {row: issue for row, issue in issues.items() if counts[row] < 0}
    filled = sum(int(filled_rows(batch, wrong).sum()) for batch in fixed.original.batches())
    if 2 * len(worse) < filled:
        return trial
    row, issue = next(iter(worse.items()))
    of = f"{len(worse):,} of {filled:,} cells would be invalid as `{right}`"
    return f"{of}; the first, in row {row}: {issue.code} {issue.message}"
