"""fix_source: a source → the same source with everything fixed that is safe to fix."""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, simplified
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.fix.catalog import FIXES_OF
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.fix.moves import PLACE
from agent_eval_schema.fix.renames import with_columns_renamed
from agent_eval_schema.fix.source import FIXED_FORMATS, OUR_COLUMNS, FixedSource
from agent_eval_schema.io.source import Source
from agent_eval_schema.rules import RULES, columns
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report
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
        fixed = with_columns_renamed(fixed, format, outputs, _report)
    return _with_types(fixed)


# ---------------------------------------------------------------------------------------------------------------------
# columns
def _report(fixed: FixedSource) -> Report:
    plan = fixed.plan
    return check_source(_with_types(fixed).source, format=plan.format, outputs=plan.outputs)


def _with_types(fixed: FixedSource) -> FixedSource:
    """The fixes with the columns named whose Arrow type cannot hold them: where some have a type, one look ahead."""
    first = fixed.given.head()
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
