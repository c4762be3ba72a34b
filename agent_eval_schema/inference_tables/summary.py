"""The funnel: how many rows were logged, what became of them step by step, and what was done to those that stayed.

    1,000,000 logged → 962,114 calls → 958,020 readable → 957,998 distinct → 500 sampled → 498 rows

Numbers only: the renderers (render/funnel) draw it. `records == rows + sum(set_aside.values())`, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from agent_eval_schema.render.funnel.summary import Removed, Step, Stratum
from agent_eval_schema.render.shown import Shown
from agent_eval_schema.rules.production import UNKNOWN_REQUEST
from agent_eval_schema.rules.set_aside import REASON_NAMES

if TYPE_CHECKING:
    from agent_eval_schema.validation.report import Report

FUNNEL_STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("calls", ("filtered", "feedback")),
    (
        "readable",
        ("outside_window", "status", "oversize", "malformed", "partial", "batch_mismatch", "no_request", "defect"),
    ),
    ("distinct", ("repeated", "duplicate_question")),
    ("sampled", ("not_sampled",)),
    ("rows", ("invalid",)),
)
"""The steps of the funnel: what the rows that are left are called, and the reasons for which rows go in it."""


class Summary(Shown, Struct, frozen=True, kw_only=True):
    """What became of a table.

    table
        The path of the table, if it was a file or folder.
    family, family_reason
        The kind of table (formats/inference_tables.py), and why it was taken for one.
    logged
        Rows of the table.
    records
        The same, with the records of batch calls counted one by one: rows + set aside.
    steps
        The funnel.
    rows
        Rows of the evaluation set.
    feedback
        Judgements in the table by what became of them: `given` in all; those that are `latest` (the last click of each
        kind) are `attached` to rows of the set, `elsewhere` (on a row that was set aside, or a whole batch), or
        `unknown` (the table has no such id: AE717). Those inside traces are not counted here.
    labels
        How many rows got which label from it: `expected_response` (`copied`: of these, the response itself),
        `expected_retrieved_context`.
    redacted
        How much was replaced in the rows of the set, by kind (`hook`: texts that a function of the user changed).
    traces_joined
        Rows that got their trace from the traces table.
    strata
        The largest strata (at most 100) of a sample that is shared over strata.
    issues
        How many issues of each code the rows have, those that were set aside as invalid too, and the feedback (AE717).
    sample, seed
        As asked.
    engine
        Which engine built the set.
    seconds
        How long it took.
    """

    table: str | None
    family: str
    family_reason: str
    logged: int
    records: int
    steps: tuple[Step, ...]
    rows: int
    feedback: dict[str, int]
    labels: dict[str, int]
    redacted: dict[str, int]
    traces_joined: int
    strata: tuple[Stratum, ...]
    issues: dict[str, int]
    sample: int | float | None
    seed: int
    redaction: str | None = None
    engine: str = "embedded"
    seconds: float = 0.0

    @property
    def set_aside(self) -> dict[str, int]:
        """How many rows were set aside, by reason, in the order of the funnel."""
        return {gone.reason: gone.rows for step in self.steps for gone in step.removed}

    @property
    def funnel(self) -> str:
        """The funnel in one line: `1,000,000 logged → 962,114 calls → … → 500 sampled → 498 rows`."""
        from agent_eval_schema.render.funnel.draw import funnel_line

        return funnel_line(self)

    def to_text(self, *, color: bool = False, width: int | None = None) -> str:
        """The funnel as it is printed in a terminal."""
        from agent_eval_schema.render.funnel.draw import funnel_text

        return funnel_text(self, color=color, width=width)

    def to_json(self) -> str:
        """All numbers as versioned JSON."""
        from agent_eval_schema.render.funnel.draw import funnel_json

        return funnel_json(self)

    def to_html(self) -> str:
        """The funnel as a standalone HTML page."""
        from agent_eval_schema.render.funnel.draw import funnel_page

        return funnel_page(self)

    def _repr_html_(self) -> str:
        from agent_eval_schema.render.funnel.draw import funnel_inline

        return funnel_inline(self)


class Build(Protocol):
    """What became of a table, in numbers, and the report on the rows that were made of it."""

    @property
    def summary(self) -> Summary: ...

    @property
    def report(self) -> Report: ...


class Summarized(Shown):
    """A build in each form: its summary, and on the page the report on its rows too."""

    def to_text(self: Build, *, color: bool = False, width: int | None = None) -> str:
        """The funnel as it is printed in a terminal."""
        return self.summary.to_text(color=color, width=width)

    def to_json(self: Build) -> str:
        """The funnel as versioned JSON."""
        return self.summary.to_json()

    def to_html(self: Build) -> str:
        """The funnel and the report on the rows as a standalone page."""
        from agent_eval_schema.render.funnel.page import build_page

        return build_page(self.summary, self.report)


def feedback_counts(tallies: Mapping[str, int]) -> dict[str, int]:
    """What became of the feedback, from what was counted in the table."""
    elsewhere = tallies["latest"] - tallies["attached"] - tallies["unknown"]
    return {**tallies, "elsewhere": max(elsewhere, 0)}


def issue_counts(of_rows: Mapping[str, int], feedback: Mapping[str, int]) -> dict[str, int]:
    """How many issues there are of each code: those of the rows, and of feedback that belongs to no row."""
    found = {**of_rows, UNKNOWN_REQUEST.code: feedback["unknown"]}
    return {code: count for code, count in sorted(found.items()) if count}


def funnel_steps(records: int, set_aside: Mapping[str, int]) -> tuple[Step, ...]:
    """The funnel from the number of rows and how many went for which reason."""
    left, steps = records, []
    for name, reasons in FUNNEL_STEPS:
        removed = tuple(Removed(r, set_aside[r]) for r in reasons if set_aside.get(r))
        left -= sum(gone.rows for gone in removed)
        steps.append(Step(name, left, removed))
    unknown = set(set_aside) - set(REASON_NAMES)
    assert not unknown, f"reasons without a place in the funnel: {unknown}"
    return tuple(steps)
