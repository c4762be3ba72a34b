"""Misspelled columns → those that are renamed, and why the others are not.

A column is renamed for the whole dataset or not at all: where one column of the schema is a close match, no row fills
both, and the cells (with the fixes of their own) are right in most rows. A row whose cell is wrong under the right name
gets an error that names it; it does not keep the others from being read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

import numpy as np
from msgspec.structs import replace

from agent_eval_schema.cells.notes import Notes, filled_rows, is_hidden
from agent_eval_schema.fix.names import meant
from agent_eval_schema.fix.source import FixedSource
from agent_eval_schema.io.records import encode_cells
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import excerpt_names
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.rows import misspelled_columns

Check = Callable[[FixedSource], Report]


def with_columns_renamed(fixed: FixedSource, format: str, outputs: str, check: Check) -> FixedSource:
    """The fixes with as many columns renamed as it helps, one after the other, and why the others are not."""
    found, reasons = _clear_renames(fixed.given)
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
    names = _names(source)
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


def _names(source: Source) -> tuple[str, ...]:
    """All columns. In a table the first batch has them, in a list of objects any batch may bring more."""
    some = source.batches() if source.vary else islice(source.batches(), 1)
    return tuple(dict.fromkeys(f.name for batch in some for f in batch.schema if not is_hidden(f)))


def _moves(source: Source, wrong: str, right: str) -> bool:
    """Whether every cell can be read as one of the right column: in a column that is only passed through, a cell that
    cannot be written as JSON is described in words, which are not its content."""
    problems = Notes()
    given = None if source.original is None else source.original(wrong)
    if given is not None:
        encode_cells(list(given), right, problems)
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
    filled = sum(int(filled_rows(batch, wrong).sum()) for batch in fixed.given.batches())
    if 2 * len(worse) < filled:
        return trial
    row, issue = next(iter(worse.items()))
    of = f"{len(worse):,} of {filled:,} cells would be invalid as `{right}`"
    return f"{of}; the first, in row {row}: {issue.code} {issue.message}"


def _errors_by_row(before: Report, after: Report) -> dict[int | None, Issue]:
    """The rows that have more errors after than before, each with the first one that is new."""
    given = Counter((i.row, i.code) for i in before.iter_issues() if i.severity is Severity.ERROR)
    counts = Counter[int | None]()
    for (row, _), count in given.items():
        counts[row] += count
    found: dict[int | None, Issue] = {}
    for issue in after.iter_issues():
        if issue.severity is Severity.ERROR:
            counts[issue.row] -= 1
            given[issue.row, issue.code] -= 1
            if given[issue.row, issue.code] < 0:
                found.setdefault(issue.row, issue)
    return {row: issue for row, issue in found.items() if counts[row] < 0}
