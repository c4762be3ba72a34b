"""The losses of a conversion: one issue per field that was read back differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.conversion.unread import ORIGINALS, UnreadValues
from agent_eval_schema.formats.format import POSITION, CanonicalRow, Written
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.issues import Finding, Issue, Rule
from agent_eval_schema.rules import conversion
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.edits import edits
from agent_eval_schema.text.jsontext import column_of
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import Plan, make_plan
from agent_eval_schema.validation.shown import rows_one_by_one

SOURCE = "__source__"
"""The key under which it has what its format has read of the source row, without the trace."""

TAKEN = "__taken__"
"""The key under which it has the names of the originals that come from the trace."""


class Losses:
    """The losses of a conversion, found by reading back its output."""

    def __init__(self, target: str, plan: Plan) -> None:
        self.issues: list[Issue] = []
        self._target, self._plan = target, replace(plan, columns=True, nests=True)
        self._unread = UnreadValues(self._plan)

    def compare(self, rows: Sequence[CanonicalRow], written: Written) -> None:
        """Note what does not come back of these rows."""
        back: list[dict[str, Any]] = []
        if rows:
            source = open_source(written.back)
            back = list(rows_one_by_one(CheckedRun(source, make_plan(source, written.format, "generated"))))
        if any(place is not None and place >= len(back) for place in written.places):  # they are read as something else
            back = [dict.fromkeys(COLUMNS) for _ in range(len(written.places))]
        self.issues += [replace(loss, row=rows[loss.row or 0][POSITION]) for loss in written.losses]
        pairs = list(zip(rows, written.places, strict=True))
        for row, place in pairs:
            came = {} if place is None else back[place]
            self._compare_row(row, came)
            self._passed_through(row, came)
        found = [(dict.fromkeys(COLUMNS) if p is None else back[p], r) for r, p in pairs if SOURCE in r]
        self._compare_sources([row for _, row in found], [{**row, **came} for came, row in found])

    def _compare_sources(self, rows: Sequence[CanonicalRow], back: Sequence[CanonicalRow]) -> None:
        """Note the values of the source rows that were read back differently, or were not read at all."""
        spelled = as_source(self._plan.format, back) if rows else None
        if spelled is None:
            return
        for found, columns in self._unread.among([row[SOURCE] for row in rows], spelled):
            row, came = rows[found.row], back[found.row]
            path = path_text(found.path)
            if not columns:
                self.unread(row[POSITION], path, found.value)
            elif found.is_changed:
                message = f"{describe(found.value)} would be read back as {describe(found.came)}"
                self.add(conversion.CHANGED, row, str(found.path[0]), message, path)
            elif columns <= ORIGINALS and any(row[name] != came[name] for name in columns):
                message = f"{self._target} has no place for {describe(found.value)}"
                self.add(conversion.NO_PLACE, row, str(found.path[0]), message, path)

    def _compare_row(self, row: CanonicalRow, back: CanonicalRow) -> None:
        for column in COLUMNS:
            value, came = row[column], back.get(column)
            if value is None or value == came or (column in ORIGINALS and column not in row.get(TAKEN, ORIGINALS)):
                continue  # of originals of the source's own the paths that are lost are named one by one
            if came is None:
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")
            else:
                message, path = _difference(column, value, came)
                self.add(conversion.CHANGED, row, column, message, path)

    def _passed_through(self, row: CanonicalRow, back: CanonicalRow) -> None:
        """The keys of a document are not columns."""
        known = (*COLUMNS, POSITION, SOURCE, TAKEN, "eval_set_id")
        for column, value in row.items():
            if column not in known and value is not None and value not in (back.get(column), back.get(apart(column))):
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")

    def unread(self, row: int, path: str, value: Any) -> None:
        """Note the values of a row of the source that no canonical column can represent."""
        place = {POSITION: row, "request_id": None}
        self.add(conversion.NOT_READ, place, column_of(path), f"{describe(value)} has no column", path)

    def as_text(self, row: CanonicalRow, cells: Mapping[str, Any]) -> None:
        """Note the cells that come back as text from a file that holds them as text."""
        for name, value in cells.items():
            if value is not None and not isinstance(value, str):
                message = f"{describe(value)} would be read back as text from a file of this kind: write .jsonl"
                self.add(conversion.CHANGED, row, name, message)

    def left_out(self, rows: Sequence[int], kind: str) -> None:
        """Note the rows (or evaluations, or turns) that are invalid."""
        for row in rows:
            place = {POSITION: row, "request_id": None}
            self.add(conversion.LEFT_OUT, place, None, f"the {kind} is invalid and was not converted")

    def add(self, rule: Rule, row: CanonicalRow, column: str | None, message: str, path: str | None = None) -> None:
        """Note one loss."""
        self.issues.append(Finding(rule, message, column, path).issue(row[POSITION], row["request_id"]))

    def in_order(self) -> list[Issue]:
        """The losses in the order of the rows."""
        return sorted(self.issues, key=lambda issue: -1 if issue.row is None else issue.row)


def as_source(format: str, rows: Sequence[CanonicalRow]) -> list[dict[str, Any]] | None:
    """Rows in the format of the source, as its reader returns them; None for a format without a writer."""
    writer = find_format(format).writer
    if writer is None:
        return None
    if writer.row is not None:
        return [writer.row(row) for row in rows]
    assert writer.document is not None
    document = writer.document(rows)
    turns = [row for batch in open_source(document.back).batches() for row in native_rows(batch)]
    return [{} if place is None else turns[place] for place in document.places]


PREFIX = "passed_through."
"""The prefix for a column that is passed through a format in which its name has another meaning."""


def apart(name: str) -> str:
    """The name of a column that is passed through, apart from those that the target reads."""
    return PREFIX + name


def path_text(path: Sequence[str | int]) -> str:
    """A path as messages have it: `request.messages[0].content`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _difference(column: str, value: Any, came: Any) -> tuple[str, str]:
    """The difference of the value that was read back, in words, and its path: the first place of several."""
    found, count = edits(column, value, came)
    if not found:
        return f"{describe(value)} would be read back as {describe(came)}", column
    first, others = found[0], len(found) - 1 + count
    more = f" (and in {others} more {'places' if others > 1 else 'place'})" if others else ""
    before, after = first.text("old"), first.text("new")
    if after is None:
        return f"`{visible(before)}` would not be read back{more}", first.path
    if before is None:
        return f"`{visible(after)}` would be read back besides{more}", first.path
    return f"`{visible(before)}` would be read back as `{visible(after)}`{more}", first.path
