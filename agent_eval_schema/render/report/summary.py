"""What a validation report shows, as plain values: renderers draw them and compute nothing."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.support import Support, metrics_of
from agent_eval_schema.render.figures import Distribution, Presence
from agent_eval_schema.rules import RULES

Location = tuple[int, str | None, str | None]
"""A row, a column and a path: what an issue reports of where it is."""


class Excerpt(NamedTuple):
    """A part of a cell; `marked` is what an issue is about, and has all of the excerpt if no part of the cell stands
    out."""

    before: str
    marked: str
    after: str


class ReportSummary(Struct, frozen=True, kw_only=True, eq=False):
    """The numbers of a report, each as the attribute of `Report` with its name, and few examples.

    `coverage` has a line per metric of every system, `examples` at most 20 issues per code. Excerpts of cells, line
    numbers and the list of all issues are not in it: renderers that show them take them as arguments. A summary is
    equal only to itself.
    """

    name: str | None
    format: str
    format_reason: str
    system: str
    has_metrics: bool
    outputs: str
    values: bool
    codes: list[str]
    codes_off: list[str]
    row_count: int
    valid_count: int
    counts: dict[str, int]
    examples: dict[str, list[Issue]]
    derived: dict[str, int]
    coverage: list[Support]
    presence: list[Presence]
    distributions: dict[str, Distribution]
    seconds: float

    @property
    def invalid_count(self) -> int:
        return self.row_count - self.valid_count

    @property
    def ok(self) -> bool:
        """Whether there is no issue of severity error."""
        return self.count(Severity.ERROR) == 0

    def count(self, severity: Severity) -> int:
        """The number of issues of a severity."""
        return sum(self.counts[code] for code in self.codes_of(severity))

    def codes_of(self, severity: Severity) -> list[str]:
        """The codes of a severity that were found."""
        return [code for code in self.counts if RULES[code].severity is severity]

    def support(self, system: str) -> list[Support]:
        """The metrics of a system, or of "all". Raises EvalSetError if there is no such system."""
        metrics_of(system)
        return [line for line in self.coverage if system in ("all", line.system)]
