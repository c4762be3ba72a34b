"""What a conversion lost: one issue per field that did not come back as it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from msgspec.structs import replace

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.writer import CanonicalRow, Written
from agent_eval_schema.issues import Issue, Rule
from agent_eval_schema.rules import conversion
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.edits import edits
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.report import issues_frame
from agent_eval_schema.validation.validate import check_source

POSITION = "__position__"
"""The key under which a canonical row has its place in the source while it is converted."""


class Losses:
    """What a conversion loses, found by reading back what it wrote."""

    def __init__(self, target: str) -> None:
        self.issues: list[Issue] = []
        self._target = target

    def compare(self, rows: Sequence[CanonicalRow], made: Written) -> None:
        """Note what does not come back of these rows."""
        back = (
            list(check_source(open_source(made.back), format=made.format, outputs="generated").iter_rows())
            if rows
            else []
        )
        self.issues += [replace(loss, row=rows[loss.row or 0][POSITION]) for loss in made.losses]
        for row, place in zip(rows, made.places, strict=True):
            came = {} if place is None else back[place]
            self._compare_row(row, came)
            if not isinstance(made.data, list) or made.data is not made.back:
                self._carried(row, came)

    def _compare_row(self, row: CanonicalRow, back: CanonicalRow) -> None:
        for column in COLUMNS:
            value, came = row[column], back.get(column)
            if value is None or value == came:
                continue
            if came is None:
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")
            else:
                message, path = _difference(column, value, came)
                self.add(conversion.CHANGED, row, column, message, path)

    def _carried(self, row: CanonicalRow, back: CanonicalRow) -> None:
        """A document has no columns beside its own."""
        known = (*COLUMNS, POSITION, "eval_set_id")
        for column, value in row.items():
            if column not in known and value is not None and value != back.get(column):
                self.add(conversion.NO_PLACE, row, column, f"{self._target} has no place for {describe(value)}")

    def unread(self, row: int, path: str, value: Any) -> None:
        """Note what a row of the source says that no canonical column can hold."""
        column = path.partition(".")[0].partition("[")[0]
        place = {POSITION: row, "request_id": None}
        self.add(conversion.NOT_READ, place, column, f"{describe(value)} has no column", path)

    def left_out(self, rows: Sequence[int], kind: str) -> None:
        """Note the rows (or evaluations, or turns) that are invalid."""
        for row in rows:
            place = {POSITION: row, "request_id": None}
            self.add(conversion.LEFT_OUT, place, None, f"the {kind} is invalid and was not converted")

    def add(self, rule: Rule, row: CanonicalRow, column: str | None, message: str, path: str | None = None) -> None:
        """Note one loss."""
        place, identity, severity = row[POSITION], row["request_id"], rule.severity
        self.issues.append(
            Issue(place, identity, column, path or column, rule.code, rule.name, severity, message, rule.hint)
        )

    def frame(self) -> pd.DataFrame:
        """The losses in the order of the rows."""
        return issues_frame(sorted(self.issues, key=lambda issue: -1 if issue.row is None else issue.row))


def _difference(column: str, value: Any, came: Any) -> tuple[str, str]:
    """What comes back different, in words, and its path: the first place of several."""
    found, count = edits(column, value, came)
    if not found:
        return f"{describe(value)} would be read back as {describe(came)}", column
    first = found[0]
    more = f" (and in {count - 1} more places)" if count > 1 else ""
    before, after = first.text("old"), first.text("new")
    if after is None:
        return f"`{visible(before)}` would not be read back{more}", first.path
    if before is None:
        return f"`{visible(after)}` would be read back besides{more}", first.path
    return f"`{visible(before)}` would be read back as `{visible(after)}`{more}", first.path
