"""fix_source: a source → the same source with everything fixed that is safe to fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import Notes, filled_rows, is_hidden
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.fix.search import PLACE
from agent_eval_schema.fix.source import FIXED_FORMATS, OUR_COLUMNS, FixedSource
from agent_eval_schema.fix.values import FIXES_OF, meant
from agent_eval_schema.io.records import encode_cells
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.rules import RULES, columns
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import excerpt_names
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.rows import misspelled_columns
from agent_eval_schema.validation.validate import check_source


def fix_source(
    source: Source, *, format: str = "auto", outputs: str = "auto", codes: frozenset[str] = frozenset(RULES)
) -> FixedSource:
    """The source with every safe fix for issues of these codes. The cells are fixed when they are read; only what
    concerns whole columns is decided now: which are renamed, and whose type cannot stay."""
    fixed = FixedSource(source, make_plan(source, format, outputs), codes & FIXABLE.keys())
    if fixed.plan.format not in FIXED_FORMATS:
        return replace(fixed, codes=frozenset())
    if columns.MISSPELT_COLUMN.code in codes and fixed.plan.format in OUR_COLUMNS:
        fixed = with_columns_renamed(
            fixed,
            format,
            outputs,
            lambda f: check_source(_with_types(f).source, format=f.plan.format, outputs=f.plan.outputs),
        )
    return _with_types(fixed)


# ---------------------------------------------------------------------------------------------------------------------
# columns
def _with_types(fixed: FixedSource) -> FixedSource:
    """The fixes with the columns named whose Arrow type cannot hold them: where some have a type, one look ahead."""
    first = fixed.original.head()
    names = set() if first is None else {fixed.renames.get(f.name, f.name) for f in first.schema if _is_typed(f)}
    if not names & {*FIXES_OF, PLACE}:
        return fixed
    misfits: set[str] = set()
    for batch, fixes in fixed.batches():
        misfits |= {c.column for c in fixes if c.column in names and is_json_column(batch.schema.field(c.column))}
    return replace(fixed, as_json=frozenset(misfits))


def _is_typed(field: pa.Field) -> bool:
    """Whether the cells are values of an Arrow type, rather than texts."""
    return not is_json_column(field) and not is_text(simplified(pa.nulls(0, field.type)).type)


# ---------------------------------------------------------------------------------------------------------------------
# misspelled columns → those that are renamed, and why the others are not
#
# A column is renamed for the whole dataset or not at all: where one column of the schema is a close match, no row fills
# both, and the cells (with the fixes of their own) are right in most rows. A row whose cell is wrong under the right
# name gets an error that names it; it does not keep the others from being read.
Check = Callable[[FixedSource], Report]


def with_columns_renamed(fixed: FixedSource, format: str, outputs: str, check: Check) -> FixedSource:
    """The fixes with as many columns renamed as it helps, one after the other, and why the others are not."""
    found, reasons = _clear_renames(fixed.original)
    is_progress = True
    while is_progress:  # one that is renamed may have cleared the way for another one
        is_progress = False
        for wrong, right in found.items():
            trial = _renaming(fixed, wrong, right, format, outputs, check)
            if isinstance(trial, FixedSource):
                fixed, is_progress = trial, True
                found = {w: r for w, r in found.items() if w != wrong}
                break
            reasons[wrong] = trial
    return replace(fixed, unrenamed={wrong: reasons[wrong] for wrong in reasons if wrong not in fixed.renames})


def _clear_renames(source: Source) -> tuple[dict[str, str], dict[str, str]]:
    """The misspelled columns with one clear meaning that no other column has, where no row fills both; and why others
    have none."""
    # in a table the first batch has all columns, in a list of objects any batch may have more
    some = source.batches() if source.vary else islice(source.batches(), 1)
    names = tuple(dict.fromkeys(f.name for batch in some for f in batch.schema if not is_hidden(f)))
    near = misspelled_columns(names)
    claims: dict[str, list[str]] = {}
    for wrong, right in near.items():
        if meant(wrong, COLUMNS, cutoff=0.85) == right:
            claims.setdefault(right, []).append(wrong)
    reasons = {
        wrong: why for wrong, right in near.items() if (why := _unclear(source, wrong, right, claims.get(right, [])))
    }
    found = {wrong: right for wrong, right in near.items() if wrong not in reasons}
    start = 0
    for batch in source.batches() if found else ():
        for wrong, right in list(found.items()):
            both = np.flatnonzero(filled_rows(batch, wrong) & filled_rows(batch, right))
            if len(both):
                reasons[wrong] = f"row {start + int(both[0]):,} has a cell in `{right}` too"
                del found[wrong]
        start += batch.num_rows
    return found, reasons


def _unclear(source: Source, wrong: str, right: str, same: list[str]) -> str:
    """Why a misspelled column has no clear meaning, by the columns alone; "" if it has one. `same` are the columns that
    clearly mean `right`."""
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


def _renaming(fixed: FixedSource, wrong: str, right: str, format: str, outputs: str, check: Check) -> FixedSource | str:
    """The fixes with one more column renamed, or why that does not help. `outputs` is the option with the new name: a
    misspelled response column does not mean that the agent will be run."""
    trial = replace(fixed, renames={**fixed.renames, wrong: right})
    trial = replace(trial, plan=make_plan(trial.source, format, outputs))
    if trial.plan.format != fixed.plan.format:
        return f"as `{right}` it would make the rows those of the {trial.plan.format} format"
    before, after = check(replace(fixed, plan=trial.plan)), check(trial)
    if not (before.valid_mask & ~after.valid_mask).any() and after.count("error") <= before.count("error"):
        return trial
    worse = _errors_by_row(before, after)
    filled = sum(int(filled_rows(batch, wrong).sum()) for batch in fixed.original.batches())
    if 2 * len(worse) < filled:
        return trial
    row, issue = next(iter(worse.items()))
    of = f"{len(worse):,} of {filled:,} cells would be invalid as `{right}`"
    return f"{of}; the first, in row {row}: {issue.code} {issue.message}"


def _errors_by_row(before: Report, after: Report) -> dict[int | None, Issue]:
    """The rows that have more errors after than before, each with the first one that is new."""
    known = Counter((i.row, i.code) for i in before.iter_issues() if i.severity is Severity.ERROR)
    counts = Counter[int | None]()
    for (row, _), count in known.items():
        counts[row] += count
    found: dict[int | None, Issue] = {}
    for issue in after.iter_issues():
        if issue.severity is Severity.ERROR:
            counts[issue.row] -= 1
            known[issue.row, issue.code] -= 1
            if known[issue.row, issue.code] < 0:
                found.setdefault(issue.row, issue)
    return {row: issue for row, issue in found.items() if counts[row] < 0}
