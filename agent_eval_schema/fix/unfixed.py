"""The cells that have an issue with a fix and are left as they are: why each was not fixed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.edit import with_cells
from agent_eval_schema.fix.catalog import CODES_OF, FIXES_OF
from agent_eval_schema.fix.search import Try, read_exactly, tries_of, twins_in
from agent_eval_schema.issues import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.text import jsontext
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan


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
    given = [(n["code"], n["path"]) for n in notes]
    new = [n for n in left if (n["code"], n["path"]) not in given] or [n for n in left if n["column"] == attempt.column]
    what = "; ".join(dict.fromkeys(attempt.what))
    return (
        f"with it ({what}) the row would have {new[0]['code']}: {new[0]['message']}" if new else f"{what} has no effect"
    )
