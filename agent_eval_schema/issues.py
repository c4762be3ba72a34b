"""What is wrong with a cell: severities, rules, issues, and the log that a batch of rows writes them to."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

if TYPE_CHECKING:
    from agent_eval_schema.report import Report


class Severity(str, Enum):
    """error: the platform refuses the row or would score something that was not meant. warning: accepted, but a
    field is ignored or a metric weakened. info: derived, guessed, repaired or carried along."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def __str__(self) -> str:
        return self.value


class EvalSetError(Exception):
    """The check could not run: no such file, not a table, an unknown option. Never raised for what a row holds."""


class InvalidEvalSet(EvalSetError):
    """Raised on request when rows are invalid; `report` says which and why."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(report.to_text())


class Rule(Struct, frozen=True):
    """One thing that can be wrong, with the words that explain it.

    `bad` and `good` are examples: lists of rows as an engineer would write them. The tests check that the bad rows
    raise exactly this code and the good ones do not, so the documentation cannot drift from the behaviour.
    """

    code: str
    name: str
    severity: Severity
    hint: str
    doc: str
    bad: tuple[dict[str, Any], ...] = ()
    good: tuple[dict[str, Any], ...] = ()


class Issue(Struct, frozen=True):
    """One finding. `row` is the 0-based position in the input, or None when it concerns the whole data set."""

    row: int | None
    request_id: str | None
    column: str | None
    path: str | None
    code: str
    name: str
    severity: Severity
    message: str
    hint: str


NOTE = pa.struct(
    [
        ("code", pa.string()),
        ("column", pa.string()),
        ("path", pa.string()),
        ("message", pa.string()),
        ("hint", pa.string()),
    ]
)
"""One issue as it stands in the `issues` column of a checked batch; name and severity follow from the code."""


class IssueLog:
    """The issues of one batch of rows, in flat lists: appending costs no object per issue.

    A row in `failed` has an issue of severity error.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[int] = []
        self.notes: list[tuple[str, str | None, str | None, str, str]] = []
        self.failed: set[int] = set()

    def add(
        self, rule: Rule, row: int, column: str | None, message: str, *, path: str | None = None, hint: str = ""
    ) -> None:
        """Log one finding of `row`; an empty `hint` takes the rule's own."""
        self.rows.append(row)
        self.notes.append((rule.code, column, path or column, message, hint or rule.hint))
        if rule.severity is Severity.ERROR:
            self.failed.add(row)

    def to_arrow(self) -> pa.Array:
        """A list<NOTE> array with one entry a row, the issues of a row in the order they were found."""
        parents = np.array(self.rows, np.int64)
        order = np.argsort(parents, kind="stable").tolist()
        offsets = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=self.size))])
        notes = [self.notes[i] for i in order]
        columns = list(zip(*notes, strict=True)) if notes else [()] * 5
        values = pa.StructArray.from_arrays([pa.array(c, pa.string()) for c in columns], fields=list(NOTE))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
