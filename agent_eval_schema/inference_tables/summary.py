"""The funnel: how many rows were logged, what became of them step by step, and what was done to those that stayed.

    1,000,000 logged → 962,114 calls → 958,020 readable → 957,998 distinct → 500 sampled → 498 rows

Numbers only (`FunnelSummary`): render/funnel draws them. `records == rows + sum(set_aside.values())`, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.render.funnel.draw import funnel_inline, funnel_json, funnel_line, funnel_page, funnel_text
from agent_eval_schema.render.funnel.page import build_page
from agent_eval_schema.render.funnel.summary import FunnelStep, FunnelSummary, Removed, Stratum
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


class Summary(FunnelSummary, Shown, frozen=True, kw_only=True):
    """What became of a table, in numbers; as text, JSON and a page it is the funnel."""

    @property
    def funnel(self) -> str:
        """The funnel in one line: `1,000,000 logged → 962,114 calls → … → 500 sampled → 498 rows`."""
        return funnel_line(self)

    def to_text(self, *, color: bool = False, width: int | None = None) -> str:
        """The funnel as it is printed in a terminal."""
        return funnel_text(self, color=color, width=width)

    def to_json(self) -> str:
        """All numbers as versioned JSON."""
        return funnel_json(self)

    def to_html(self) -> str:
        """The funnel as a standalone HTML page."""
        return funnel_page(self)

    def _repr_html_(self) -> str:
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
        report = self.report
        return build_page(self.summary, report.summary, report.excerpts)


STRATA_KEPT = 100


class Counts(Struct, kw_only=True):
    """What an engine counts of a build.

    logged, records
        As in `Summary`.
    reasons
        How many rows were set aside for which reason.
    feedback
        The table `tallies` of the decisions.
    strata
        The table `strata` of the decisions, largest first.
    labels, redacted
        As in `Summary`, of the rows of the set.
    codes
        How many issues of each code the rows have, also those that were set aside as invalid.
    traces_joined
        As in `Summary`.
    """

    logged: int
    records: int
    reasons: Mapping[str, int]
    feedback: Mapping[str, int]
    strata: Iterable[Sequence[Any]]
    labels: Mapping[str, int]
    redacted: Mapping[str, int]
    codes: Mapping[str, int]
    traces_joined: int


def summarized(plan: BuildPlan, counts: Counts, **beside: Any) -> Summary:
    """The summary of a build; `beside` are the fields that neither the plan nor the counts tell."""
    steps = funnel_steps(counts.records, counts.reasons)
    feedback = feedback_counts(counts.feedback)
    return Summary(
        family=plan.family,
        logged=counts.logged,
        records=counts.records,
        steps=steps,
        rows=steps[-1].left,
        feedback=feedback,
        labels=dict(sorted(counts.labels.items())),
        redacted=dict(sorted(counts.redacted.items())),
        traces_joined=counts.traces_joined,
        strata=tuple(Stratum(*line) for line in islice(counts.strata, STRATA_KEPT)) if plan.stratified else (),
        issues=all_issues(counts.codes, feedback),
        sample=plan.sample,
        seed=plan.seed,
        **beside,
    )


def feedback_counts(tallies: Mapping[str, int]) -> dict[str, int]:
    """What became of the feedback, from what was counted in the table."""
    elsewhere = tallies["latest"] - tallies["attached"] - tallies["unknown"]
    return {**tallies, "elsewhere": max(elsewhere, 0)}


def all_issues(of_rows: Mapping[str, int], feedback: Mapping[str, int]) -> dict[str, int]:
    """How many issues there are of each code: those of the rows, and of feedback that belongs to no row."""
    found = {**of_rows, UNKNOWN_REQUEST.code: feedback["unknown"]}
    return {code: count for code, count in sorted(found.items()) if count}


def funnel_steps(records: int, set_aside: Mapping[str, int]) -> tuple[FunnelStep, ...]:
    """The funnel from the number of rows and how many went for which reason."""
    left, steps = records, []
    for name, reasons in FUNNEL_STEPS:
        removed = tuple(Removed(r, set_aside[r]) for r in reasons if set_aside.get(r))
        left -= sum(gone.rows for gone in removed)
        steps.append(FunnelStep(name, left, removed))
    unknown = set(set_aside) - set(REASON_NAMES)
    assert not unknown, f"reasons without a place in the funnel: {unknown}"
    return tuple(steps)
