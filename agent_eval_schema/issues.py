"""What is wrong with a cell: severities, rules, issues, and the log that a batch of rows writes them to."""

from __future__ import annotations

from enum import Enum
from typing import Any

from msgspec import Struct


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


class Finding(Struct, frozen=True):
    """One thing that is wrong: the rule that it breaks, what is the matter, and where. A log adds the row.

    Without a `column` it concerns the whole row; without a `hint` that of the rule holds.
    """

    rule: Rule
    message: str
    column: str | None = None
    path: str | None = None
    hint: str = ""


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
