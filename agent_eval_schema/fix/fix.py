"""fix_source: a source → the same source with everything fixed that is safe to fix.

A misspelt column is renamed for the whole data set or not at all: where one column of the schema is near, no row fills
both, no valid row becomes invalid, and there are no more errors than before.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import Notes, filled_rows, is_hidden
from agent_eval_schema.fix.catalog import FIXABLE, FIXES_OF
from agent_eval_schema.fix.names import meant
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.fix.source import FIXED_FORMATS, FixedSource
from agent_eval_schema.io.records import encode_cells
from agent_eval_schema.io.source import Source
from agent_eval_schema.rules import RULES, columns
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.rows import misspelt_columns
from agent_eval_schema.validation.validate import check_source


def fix_source(
    source: Source, *, format: str = "auto", outputs: str = "auto", codes: frozenset[str] = frozenset(RULES)
) -> FixedSource:
    """The source with every safe fix for issues of these codes. The cells are fixed when they are read; only what
    concerns whole columns is decided now: which are renamed, and whose type cannot stay."""
    fixed = FixedSource(source, make_plan(source, format, outputs), codes & FIXABLE.keys())
    if fixed.plan.format not in FIXED_FORMATS:
        return replace(fixed, codes=frozenset())
    if columns.MISSPELT_COLUMN.code in codes:
        fixed = _renamed(fixed, _clear_renames(source), format, outputs)
    return _with_types(fixed)


# ---------------------------------------------------------------------------------------------------------------------
# columns
def _clear_renames(source: Source) -> dict[str, str]:
    """The misspelt columns with one clear meaning that no other column has, where no row fills both."""
    names = _names(source)
    near = {n: right for n, right in misspelt_columns(names).items() if meant(n, COLUMNS, cutoff=0.85) == right}
    uses = Counter(near.values())
    taken = source.repeated_columns
    found = {
        n: r for n, r in near.items() if uses[r] == 1 and n not in taken and r not in taken and _moves(source, n, r)
    }
    for batch in source.batches() if found else ():
        found = {n: r for n, r in found.items() if not (filled_rows(batch, n) & filled_rows(batch, r)).any()}
    return found


def _names(source: Source) -> tuple[str, ...]:
    """All columns. In a table the first batch has them, in a list of objects any batch may bring more."""
    some = source.batches() if source.kind in ("jsonl", "json", "list") else islice(source.batches(), 1)
    return tuple(dict.fromkeys(f.name for batch in some for f in batch.schema if not is_hidden(f)))


def _moves(source: Source, wrong: str, right: str) -> bool:
    """Whether every cell can be read as one of the right column: of a column that is only carried along, a cell that
    cannot be written as JSON is described in words, which are not its content."""
    problems = Notes()
    if source.original is not None:
        encode_cells(list(source.original(wrong)), right, problems)
    return not problems


def _renamed(fixed: FixedSource, found: dict[str, str], format: str, outputs: str) -> FixedSource:
    """The fixes with as many columns renamed as do no harm, one after the other."""
    for wrong, right in found.items():
        trial = _renaming(fixed, wrong, right, format, outputs)
        if trial is not None:  # which may have cleared the way for another one
            others = {w: r for w, r in found.items() if w != wrong}
            return _renamed(trial, others, format, outputs)
    return fixed


def _renaming(fixed: FixedSource, wrong: str, right: str, format: str, outputs: str) -> FixedSource | None:
    """The fixes with one more column renamed, or None if that makes the data worse. `outputs` is what it is with the
    new name: a misspelt response column does not say that the app is to be run."""
    trial = replace(fixed, renames={**fixed.renames, wrong: right})
    trial = replace(trial, plan=make_plan(trial.source, format, outputs))
    if trial.plan.format != fixed.plan.format:
        return None
    before, after = _report(replace(fixed, plan=trial.plan)), _report(trial)
    worse = (before.valid_mask & ~after.valid_mask).any() or after.count("error") > before.count("error")
    return None if worse else trial


def _report(fixed: FixedSource) -> Report:
    plan = fixed.plan
    return check_source(_with_types(fixed).source, format=plan.format, outputs=plan.outputs)


def _with_types(fixed: FixedSource) -> FixedSource:
    """The fixes with the columns named whose Arrow type cannot hold them: where some have a type, one look ahead."""
    first = fixed.given.head()
    names = set() if first is None else {fixed.renames.get(f.name, f.name) for f in first.schema if _is_typed(f)}
    if not names & FIXES_OF.keys():
        return fixed
    misfits: set[str] = set()
    for batch, fixes in fixed.batches():
        misfits |= {c.column for c in fixes if c.column in names and not _holds(batch, c)}
    return replace(fixed, as_json=frozenset(misfits))


def _is_typed(field: pa.Field) -> bool:
    """Whether the cells are values of an Arrow type, rather than texts."""
    return not is_json_column(field) and not is_text(simplified(pa.nulls(0, field.type)).type)


def _holds(batch: pa.RecordBatch, fix: CellFix) -> bool:
    """Whether the fixed batch still has the type that the column came in."""
    return not is_json_column(batch.schema.field(fix.column))
