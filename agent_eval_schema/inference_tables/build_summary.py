"""The funnel: row counts per step, and the changes of the rows that are kept.

    1,000,000 logged → 962,114 calls → 958,020 readable → 957,998 distinct → 500 sampled → 498 rows

Numbers only (`FunnelSummary`): funnel_blocks.py shows them. `records == rows + sum(excluded.values())`, always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.inference_tables.funnel_blocks import funnel_document, funnel_json, funnel_line
from agent_eval_schema.inference_tables.funnel_summary import FunnelStep, FunnelSummary, Removed, Stratum
from agent_eval_schema.inference_tables.options import BuildPlan
from agent_eval_schema.render.blocks import Document
from agent_eval_schema.render.printable import Printable, as_page, as_text
from agent_eval_schema.rules.exclusions import REASON_NAMES
from agent_eval_schema.rules.production import UNKNOWN_REQUEST

if TYPE_CHECKING:
    from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.shown import shown_on_page

FUNNEL_STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("calls", ("filtered", "feedback")),
    (
        "readable",
        ("outside_window", "status", "oversize", "malformed", "partial", "batch_mismatch", "no_request", "defect"),
    ),
    ("distinct", ("repeated", "duplicate_question", "near_duplicate")),
    ("new", ("in_existing", "question_in_existing", "near_in_existing")),
    ("sampled", ("not_sampled",)),
    ("rows", ("invalid",)),
)
"""The steps of the funnel: the name of the remaining rows, and the reasons for which rows are excluded in it."""


class BuildSummary(FunnelSummary, Printable, frozen=True, kw_only=True):  # numpydoc ignore=PR01
    """The row counts of a build, per step.

    `records` is the sum of `rows` and of the values of `excluded`.

    Attributes
    ----------
    table : str or None
        The path of the table; None for data in memory.
    format : str
        The format of the table.
    format_reason : str
        The columns that identify it.
    logged : int
        The number of rows of the table.
    records : int
        The same, with each record of a batch call counted.
    steps : tuple of FunnelStep
        The steps, each with `name`, `left` (rows that are left) and `removed` (tuples of `reason` and `rows`).
    rows : int
        The number of rows of the evaluation dataset.
    feedback : dict of str to int
        The feedback in the table: `given`, `latest` (the last of each kind), and of these `attached` to rows of the
        dataset, `elsewhere` (on excluded rows or batch calls) and `unknown` (there is no such ID).
    labels : dict of str to int
        The number of rows per label: `expected_response` (`copied`: of these, the response),
        `expected_retrieved_context`.
    redacted : dict of str to int
        The number of replacements per kind.
    traces_joined : int
        The number of rows with a trace of the table of traces.
    existing : dict of str to int
        The dataset that is extended, empty if there is none: its `rows`, those that later feedback `updated`, and the
        labels that it changed: `expected_response`, `expected_retrieved_context`, and copies that are `withdrawn`.
        These rows are not part of `rows`.
    notes : tuple of str
        What the numbers do not show, as sentences.
    strata : tuple of Stratum
        The largest strata, at most 100, each with `stratum`, `calls` and `sampled`.
    issues : dict of str to int
        The number of issues per code, including excluded rows and feedback.
    sample : int, float or None
        The sample size, as given.
    seed : int
        The seed, as given.
    redaction : str or None
        `"default"`, the name of a function, `"hook"` for a function without a name, or None.
    engine : str
        `"embedded"` or `"spark"`.
    seconds : float
        The duration of the build, in seconds.

    See Also
    --------
    eval_set_from_inference_table : Build an evaluation dataset.

    Examples
    --------
    >>> from agent_eval_schema import eval_set_from_inference_table
    >>> summary = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5).summary
    >>> [(step.name, step.left) for step in summary.steps]
    [('calls', 22), ('readable', 15), ('distinct', 14), ('sampled', 5), ('rows', 5)]
    """

    @property
    def funnel(self) -> str:
        """The row counts in one line.

        Returns
        -------
        str
            The number of rows that are left after each step.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> print(eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5).summary.funnel)
        27 logged → 29 records → 22 calls → 15 readable → 14 distinct → 5 sampled
        """
        return funnel_line(self)

    def to_text(self, *, color: bool = False, width: int | None = None) -> str:
        """Return the row counts per step as text for a terminal.

        Parameters
        ----------
        color : bool, default False
            If True, use ANSI colors.
        width : int or None, default None
            The number of characters per line. None uses the width of the terminal.

        Returns
        -------
        str
            The reasons for exclusion, the labels, the issues, and last the row counts.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> print(build.summary.to_text(width=80))
        Excluded rows...
        """
        return as_text(self._document(), color=color, width=width)

    def to_json(self) -> str:
        """Return the numbers as JSON.

        Returns
        -------
        str
            An object with a version and the attributes.

        Examples
        --------
        >>> import json
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> json.loads(eval_set_from_inference_table("sample_data/inference_table.jsonl").summary.to_json())["logged"]
        27
        """
        return funnel_json(self)

    def to_html(self) -> str:
        """Return the row counts as a standalone HTML page.

        Returns
        -------
        str
            A page that loads nothing from the network.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> page = eval_set_from_inference_table("sample_data/inference_table.jsonl").summary.to_html()
        >>> page.startswith("<!doctype html>")
        True
        """
        return as_page(self._document())

    def _document(self) -> Document:
        return funnel_document(self)


class Build(Protocol):
    """What became of a table, in numbers, and the report on the rows that were made of it."""

    @property
    def summary(self) -> BuildSummary: ...

    @property
    def report(self) -> Report: ...

    @property
    def _run(self) -> CheckedRun: ...


class Summarized(Printable):
    """A build in each form: its summary, and on the page the report on its rows too."""

    def to_text(self: Build, *, color: bool = False, width: int | None = None) -> str:
        """Return the row counts per step as text for a terminal.

        Parameters
        ----------
        color : bool, default False
            If True, use ANSI colors.
        width : int or None, default None
            The number of characters per line. None uses the width of the terminal.

        Returns
        -------
        str
            The reasons for exclusion, the labels, the issues, and last the row counts.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> print(build.to_text(width=80))
        Excluded rows...
        """
        return self.summary.to_text(color=color, width=width)

    def to_json(self: Build) -> str:
        """Return the row counts per step as JSON.

        Returns
        -------
        str
            An object with a version and the numbers of `summary`.

        Examples
        --------
        >>> import json
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> json.loads(build.to_json())["logged"]
        27
        """
        return self.summary.to_json()

    def to_html(self: Build) -> str:
        """Return the row counts and the validation report as a standalone HTML page.

        Returns
        -------
        str
            A page that loads nothing from the network; all cell text is escaped.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
        >>> build.to_html().startswith("<!doctype html>")
        True
        """
        from agent_eval_schema.render.report.html import report_page

        page = shown_on_page(self._run)
        return report_page(self.report.summary, page, funnel_document(self.summary, alone=False))

    def _document(self: Build) -> Document:
        return funnel_document(self.summary)


STRATA_KEPT = 100


class Counts(Struct, kw_only=True):
    """What an engine counts of a build.

    logged, records
        As in `BuildSummary`.
    reasons
        How many rows were excluded for which reason.
    feedback
        The table `tallies` of the decisions.
    strata
        The table `strata` of the decisions, largest first.
    labels, redacted
        As in `BuildSummary`, of the rows of the set.
    codes
        How many issues of each code the rows have, also those that were excluded as invalid.
    traces_joined, existing
        As in `BuildSummary`.
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
    existing: Mapping[str, int]


def summarized(plan: BuildPlan, counts: Counts, **beside: Any) -> BuildSummary:
    """The summary of a build; `beside` are the fields that follow neither from the plan nor from the counts."""
    steps = funnel_steps(counts.records, counts.reasons, plan.extends)
    tallies = counts.feedback
    elsewhere = tallies["latest"] - tallies["attached"] - tallies["unknown"]
    issues = {**counts.codes, UNKNOWN_REQUEST.code: tallies["unknown"]}  # of the rows, and of feedback on none of them
    return BuildSummary(
        format=plan.family,
        logged=counts.logged,
        records=counts.records,
        steps=steps,
        rows=steps[-1].left,
        feedback={**tallies, "elsewhere": max(elsewhere, 0)},
        labels=dict(sorted(counts.labels.items())),
        redacted=dict(sorted(counts.redacted.items())),
        traces_joined=counts.traces_joined,
        existing=dict(counts.existing),
        strata=tuple(Stratum(*line) for line in islice(counts.strata, STRATA_KEPT)) if plan.stratified else (),
        issues={code: count for code, count in sorted(issues.items()) if count},
        sample=plan.sample,
        seed=plan.seed,
        notes=tuple(_notes(plan, beside.get("redaction"))),
        **beside,
    )


def _notes(plan: BuildPlan, redaction: str | None) -> Iterator[str]:
    if plan.extends and redaction and plan.by_question:
        by = "ID only" if plan.near is None else "ID, or as a near duplicate"
        yield (
            "Questions are compared as they were logged: a call whose question is redacted in the dataset that is "
            f"extended is recognized by its {by}."
        )


def existing_counts(rows: int, updates: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """What there is to count of a dataset that is extended, from its changed labels (UPDATES)."""
    found, updated = Counter[str](), set[Any]()
    for batch in updates:
        ids, columns, after = (batch.column(i).to_pylist() for i in (0, 1, 3))
        updated.update(ids)
        found.update(name if new is not None else "withdrawn" for name, new in zip(columns, after, strict=True))
    return {"rows": rows, "updated": len(updated), **dict(sorted(found.items()))}


def funnel_steps(records: int, excluded: Mapping[str, int], extends: bool = False) -> tuple[FunnelStep, ...]:
    """The funnel from the number of rows and how many went for which reason; calls are new to a dataset that is
    extended."""
    left, steps = records, []
    for name, reasons in FUNNEL_STEPS:
        if name == "new" and not extends:
            continue
        removed = tuple(Removed(r, excluded[r]) for r in reasons if excluded.get(r))
        left -= sum(gone.rows for gone in removed)
        steps.append(FunnelStep(name, left, removed))
    unknown = set(excluded) - set(REASON_NAMES)
    assert not unknown, f"reasons without a place in the funnel: {unknown}"
    return tuple(steps)
