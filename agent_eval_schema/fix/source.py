"""A source → the same source with repaired cells and columns, which is checked, normalised and written like any other.

    source ──columns renamed──▶ batches ──mending.py──▶ batches with repaired cells, and a note on each

A misspelt column is renamed for the whole data set or not at all: where one column of the schema is near, no row fills
both, no valid row becomes invalid, and there are no more errors than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.arrow import is_text, simplified
from agent_eval_schema.cells.batch import JSON_CELLS, is_json_column
from agent_eval_schema.cells.edit import json_texts, with_cells, with_json
from agent_eval_schema.cells.notes import LINE, RepairNote, filled_rows, is_hidden, lines, own_columns, with_repairs
from agent_eval_schema.fix.catalog import REPAIRABLE, REPAIRS_OF, meant
from agent_eval_schema.fix.search import Change, changes_in
from agent_eval_schema.io.atomic import require_place
from agent_eval_schema.io.files import same_form
from agent_eval_schema.io.records import encode_cells
from agent_eval_schema.io.rewrite import REWRITTEN, copy_file, rewrite_file
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.rules import RULES, columns
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_difference
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.rows import misspelt_columns
from agent_eval_schema.validation.validate import check_source


class Repaired(Struct, frozen=True):
    """A source and the repairs of it: `source` is what to check or normalise, `batches()` what changes.

    `renames` maps misspelt columns to what they are called now; the columns `as_json` have an Arrow type that cannot
    hold the repaired cells and become JSON text in every batch.
    """

    given: Source
    plan: Plan
    codes: frozenset[str]
    renames: dict[str, str] = {}
    as_json: frozenset[str] = frozenset()

    @property
    def source(self) -> Source:
        return replace(
            self.given,
            batches=lambda: (batch for batch, _ in self.batches()),
            shares=None,
            repaired=True,
            renamed=tuple(self.renames.items()),
        )

    def batches(self) -> Batches:
        """The repaired batches, each with its changes, in the order of the rows."""
        start = 0
        for given in self.given.batches():
            batch = _with_renames(given, self.renames)
            changes = list(changes_in(batch, start, self.plan, self.codes)) if self.codes else []
            for name in self.as_json:
                batch = with_json(batch, name)
            yield _with_changes(batch, start, changes, self.plan.nests), changes
            start += batch.num_rows

    def write(self, path: str) -> Tally:
        """Write all rows with their repairs: in the file's own form only what was repaired is new, byte for byte.

        The file itself may be given: it is replaced when the new one is complete. Raises EvalSetError if it cannot be
        written, or if something that stands in the file would be lost.
        """
        require_repairable(self.given, path)
        tally = Tally(len(self.renames))
        if self.plan.format not in REPAIRED and _is_of_form(self.given, path):
            copy_file(str(self.given.name), path)
            return tally
        batches = tally.over(self.batches())
        if _is_rewritten(self.given, path):
            rewrite_file(str(self.given.name), self.given.kind, path, self.renames, _edits(batches))
            return tally
        schema = schema_of(self.given.kind, self.source.batches())
        if any(lines(batch) is not None for batch in self.given.batches()):
            schema = schema.append(pa.field(LINE, pa.string()))
        write_batches(path, (batch.select(own_columns(batch.schema)) for batch, _ in batches), schema)
        return tally


def _edits(batches: Batches) -> Iterator[dict[str, Any]]:
    """For each row what its repaired cells hold now: {column: value}."""
    start = 0
    for batch, changes in batches:
        rows: dict[int, dict[str, Any]] = {}
        for change in changes:
            rows.setdefault(change.row - start, {})[change.column] = change.after
        yield from (rows.get(row, {}) for row in range(batch.num_rows))
        start += batch.num_rows


Batches = Iterator[tuple[pa.RecordBatch, list[Change]]]


class Tally:
    """How much was repaired: columns, and cells in rows, counted as the batches pass."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.cells = self.rows = 0

    def over(self, batches: Batches) -> Batches:
        for batch, changes in batches:
            self.cells += len(changes)
            self.rows += len({c.row for c in changes})
            yield batch, changes

    def __str__(self) -> str:
        said = f"{_plural(self.cells, 'cell')} in {_plural(self.rows, 'row')}"
        return said + (f" and {_plural(self.columns, 'column name')}" if self.columns else "")

    def __bool__(self) -> bool:
        return bool(self.cells or self.columns)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def require_repairable(source: Source, path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if the repaired rows cannot be written to `path`."""
    if _is_rewritten(source, path):
        require_place(path)
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
    return _is_of_form(source, path) and not source.in_order


def _is_of_form(source: Source, path: str) -> bool:
    return source.kind in REWRITTEN and source.name is not None and same_form(source.name, path)


def repair(
    source: Source, *, format: str = "auto", outputs: str = "auto", codes: frozenset[str] = frozenset(RULES)
) -> Repaired:
    """The source with every safe repair for issues of these codes. The cells are repaired when they are read; only
    what concerns whole columns is settled now: which are renamed, and whose type cannot stay."""
    repaired = Repaired(source, make_plan(source, format, outputs), codes & REPAIRABLE.keys())
    if repaired.plan.format not in REPAIRED:
        return replace(repaired, codes=frozenset())
    if columns.MISSPELT_COLUMN.code in codes:
        repaired = _renamed(repaired, _clear_renames(source), format, outputs)
    return _with_types(repaired)


REPAIRED = ("databricks", "vertex")
"""The formats whose columns, where they have a repair, are ours: names and cells are the same in the file and in the
rules. Other formats say the same in a shape of their own, or are traces, which are evidence."""


def _with_changes(batch: pa.RecordBatch, start: int, changes: list[Change], nests: bool) -> pa.RecordBatch:
    cells: dict[str, dict[int, Any]] = {}
    notes: dict[int, list[RepairNote]] = {}
    for change in changes:
        cells.setdefault(change.column, {})[change.row - start] = change.after
        notes.setdefault(change.row - start, []).append(_note(change))
    for column, values in cells.items():
        batch = with_cells(batch, column, values, nests)
    return with_repairs(batch, notes)


def _note(change: Change) -> RepairNote:
    places = change.places
    before, after = excerpt_difference(
        jsontext.write_exactly(places[0].before), jsontext.write_exactly(places[0].after)
    )
    more = f" (the first of {len(places)} places)" if len(places) > 1 else ""
    return change.column, places[0].path, f"{change.what}: {before} became {after}{more}"


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
    problems: dict[int, list[Any]] = {}
    if source.original is not None:
        encode_cells(list(source.original(wrong)), right, problems)
    return not problems


def _renamed(repaired: Repaired, found: dict[str, str], format: str, outputs: str) -> Repaired:
    """The repairs with as many columns renamed as do no harm, one after the other."""
    for wrong, right in found.items():
        trial = _renaming(repaired, wrong, right, format, outputs)
        if trial is not None:  # which may have cleared the way for another one
            others = {w: r for w, r in found.items() if w != wrong}
            return _renamed(trial, others, format, outputs)
    return repaired


def _renaming(repaired: Repaired, wrong: str, right: str, format: str, outputs: str) -> Repaired | None:
    """The repairs with one more column renamed, or None if that makes the data worse. `outputs` is what it is with the
    new name: a misspelt response column does not say that the app is to be run."""
    trial = replace(repaired, renames={**repaired.renames, wrong: right})
    trial = replace(trial, plan=make_plan(trial.source, format, outputs))
    if trial.plan.format != repaired.plan.format:
        return None
    before, after = _report(replace(repaired, plan=trial.plan)), _report(trial)
    worse = (before.valid_mask & ~after.valid_mask).any() or after.count("error") > before.count("error")
    return None if worse else trial


def _report(repaired: Repaired) -> Report:
    plan = repaired.plan
    return check_source(_with_types(repaired).source, format=plan.format, outputs=plan.outputs)


def _with_types(repaired: Repaired) -> Repaired:
    """The repairs with the columns named whose Arrow type cannot hold them: where some have a type, one look ahead."""
    first = next(repaired.given.batches(), None)
    names = set() if first is None else {repaired.renames.get(f.name, f.name) for f in first.schema if _is_typed(f)}
    if not names & REPAIRS_OF.keys():
        return repaired
    misfits: set[str] = set()
    for batch, changes in repaired.batches():
        misfits |= {c.column for c in changes if c.column in names and not _holds(batch, c)}
    return replace(repaired, as_json=frozenset(misfits))


def _is_typed(field: pa.Field) -> bool:
    """Whether the cells are values of an Arrow type, rather than texts."""
    return not is_json_column(field) and not is_text(simplified(pa.nulls(0, field.type)).type)


def _holds(batch: pa.RecordBatch, change: Change) -> bool:
    """Whether the repaired batch still has the type that the column came in."""
    return not is_json_column(batch.schema.field(change.column))


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
