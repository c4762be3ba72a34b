"""The funnel: row counts per step, and the changes of the rows that are kept.

    1,000,000 logged → 962,114 calls → 958,020 readable → 957,998 distinct → 500 sampled → 498 rows

`records == rows + sum(excluded.values())`, always.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.formats.inference_tables import MAPPED, TABLE_FAMILIES
from agent_eval_schema.formats.roles import is_of_truth
from agent_eval_schema.inference_tables.finish.redact import DEFAULT, redactor_of
from agent_eval_schema.inference_tables.options import COMMAND_LINE, flag
from agent_eval_schema.inference_tables.plan import REASONS, BuildPlan, Hook
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Fold,
    Funnel,
    Line,
    Only,
    Part,
    Section,
    Table,
    Terms,
    View,
    Words,
)
from agent_eval_schema.render.document import json_text
from agent_eval_schema.render.phrases import Call, NextCommand, counted, plural
from agent_eval_schema.render.printable import Printable
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.production import UNKNOWN_REQUEST

STRATA_SHOWN = 12
"""Strata in a text; the page has them all."""

REDACTED = {
    "email": "e-mail",
    "phone": "phone number",
    "card": "card number",
    "iban": "IBAN",
    "secret": "secret",
    "id": "national ID",
    "hook": "text",
}

_PACKAGES = {"phonenumbers": "phonenumbers", "stdnum": "python-stdnum"}

FUNNEL_STEPS = [(step, tuple(r.name for r in of)) for step, of in groupby(REASONS.values(), lambda r: r.step)]
"""The steps of the funnel: the name of the remaining rows, and the reasons for which rows are excluded in it."""


class Removed(Struct, frozen=True):
    """How many rows were excluded for a reason (plan.py)."""

    reason: str
    rows: int


class FunnelStep(Struct, frozen=True):
    """One step: the name and number of the rows that are left, and the reasons for which others were removed."""

    name: str
    left: int
    removed: tuple[Removed, ...]


class Stratum(Struct, frozen=True):
    """A part of the calls that the sample was shared over: how many calls it has, how many were drawn."""

    stratum: str
    calls: int
    sampled: int


class BuildSummary(Struct, Printable, frozen=True, kw_only=True):  # numpydoc ignore=PR01
    """The row counts of a build, per step.

    `records` is the sum of `rows` and of the values of `excluded`.

    Attributes
    ----------
    table : str or None
        The path of the table; None for data in memory.
    format : str
        The format of the table.
    format_reason : str
        The columns that identify it; of traces, what is a row.
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
    conflicts : dict of str to int
        Per reason, the excluded rows that differ from the row that was kept: copies of an ID (`repeated`) with another
        request or response, and calls with the same or a similar question whose edited answer the kept row lacks.
    labels : dict of str to int
        The number of rows per label: `expected_response` (`copied`: of these, the response),
        `expected_retrieved_context`.
    redacted : dict of str to int
        The number of values that were replaced per kind: one that is in several places of a row counts once.
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
    redacted_by : tuple of str
        What the default redaction searched with: `"patterns"`, and `"phonenumbers"` and `"python-stdnum"` if they are
        installed and used.
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

    table: str | None
    format: str
    format_reason: str
    logged: int
    records: int
    steps: tuple[FunnelStep, ...]
    rows: int
    feedback: dict[str, int]
    labels: dict[str, int]
    redacted: dict[str, int]
    traces_joined: int
    strata: tuple[Stratum, ...]
    issues: dict[str, int]
    sample: int | float | None
    seed: int
    conflicts: dict[str, int] = {}
    redaction: str | None = None
    redacted_by: tuple[str, ...] = ()
    existing: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    engine: str = "embedded"
    seconds: float = 0.0

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
        parts = [f"{self.logged:,} logged"]
        if self.records != self.logged:
            parts.append(f"{self.records:,} records")
        parts += [f"{step.left:,} {step.name}" for step in _steps(self)]
        return " → ".join(parts)

    @property
    def excluded(self) -> dict[str, int]:
        """The number of excluded rows per reason, in the order of the steps.

        Returns
        -------
        dict of str to int
            Reasons without a row are not in it.

        Examples
        --------
        >>> from agent_eval_schema import eval_set_from_inference_table
        >>> eval_set_from_inference_table("sample_data/inference_table.jsonl").summary.excluded["status"]
        2
        """
        return {gone.reason: gone.rows for step in self.steps for gone in step.removed}

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
        return json_text({"version": 1, "funnel": self.funnel, **funnel_numbers(self)})

    def _view(self) -> View:
        return funnel_view(self)


# --- its text, page and JSON
def funnel_view(
    summary: BuildSummary,
    *,
    output: str | None = None,
    report: ReportSummary | None = None,
    of_traces: ReportSummary | None = None,
) -> View:
    """The row counts per step; `output` is the file with the rows. The report on the rows follows, if there is one.
    `of_traces` is the report on rows that consist of traces: of it, the derived and the missing fields are shown."""
    alone = report is None
    where, line = os.path.basename(summary.table or ""), summary.funnel
    command = Call(output).command("profile") or "profile_eval_set(build.rows)" * (not alone)
    review = Call(output).command("review", "--queue", "truth") or "review_eval_set(build.rows)" * (not alone)
    unlabeled = summary.rows - sum(count for name, count in summary.labels.items() if is_of_truth(name))
    on_page_rows, lines = list[tuple[str, str, str, Cell]](), list[tuple[str, Part, Part]]()
    for name, count in summary.excluded.items():
        reason = REASONS[name]
        remedy = Cell(Part(_typed(reason.remedy, output), "message"), "muted")
        on_page_rows.append((name, f"{count:,}", reason.sentence, remedy))
        lines.append((f"{count:,}", Part(name, "path"), Part(reason.sentence, "muted")))
    facts = list(_facts(summary))
    for title, fields in of_traces.derivation(of_traces=True) if of_traces else ():
        facts.append((title.partition(" ")[0], f"{fields} (rows)"))
    on_page: list[Block] = [Terms(facts)]
    in_text: list[Block] = [Section("facts", "", on_page, indent=0)]
    if lines:
        on_page = [Table(["Excluded", "#Rows", "Reason", "What to do"], on_page_rows, kind="examples"), *on_page]
        in_text = [Section("excluded", "Excluded rows", [Table(["#", "", ""], lines)], indent=0), *in_text]
    more: list[Block] = []
    if summary.strata:
        strata = [(s.stratum or "(none)", f"{s.calls:,}", f"{s.sampled:,}") for s in summary.strata]
        table = Table(["Stratum", "#Calls", "#Sampled"], strata, kind="metrics", in_text=STRATA_SHOWN)
        more.append(Section("strata", "Strata", [table]))
    if summary.issues and alone:
        rows: list[list[Words | Cell]] = [
            [Part(code, f"tag {RULES[code].severity}"), RULES[code].name, str(RULES[code].severity), f"{count:,}"]
            for code, count in summary.issues.items()
        ]
        table = Table(["Code", "Name", "Severity", "#Issues"], rows, kind="examples")
        more.append(Section("issues", "Validation issues", [table], short="Issues"))
    first = ("", summary.records, "logged" if summary.records == summary.logged else "records")
    removed = [(", ".join(f"− {gone.rows:,} {gone.reason}" for gone in s.removed), s) for s in _steps(summary)]
    levels = [first, *((text, step.left, step.name) for text, step in removed)]
    most, mood = max(summary.records, 1), "good" if report is None or report.ok else "warning"
    funnel = Funnel([(gone, round(100 * size / most, 2), f"{size:,}", name) for gone, size, name in levels])
    return View(
        title=f"{where or 'table'}: " + (f"{summary.rows:,} rows of {summary.logged:,} logged" if alone else line),
        about=[Only("html", [Line(where, "muted")])] if where else [],
        verdict=_verdict(summary, report),
        notes=[Line(line, "muted")],
        mood=mood if summary.rows or summary.existing else "error",
        following=[
            NextCommand(words, effect)
            for words, effect, rows in (
                (review, "opens a page on which people give rows their ground truth", unlabeled),
                (command, "shows which differences the rows can measure", summary.rows),
            )
            if words and rows > 0
        ],
        blocks=[
            Only("html", [funnel, Fold("Excluded rows, labels and sample", on_page)]),
            Only("text", in_text),
            *more,
        ],
        kind="build",
    )


def _verdict(summary: BuildSummary, report: ReportSummary | None) -> str:
    """`13 rows of 27 logged: 13 valid, 3 with expected_response`."""
    if report is None:
        rows, parts, truth = summary.rows, [], summary.labels
    else:
        rows, parts = report.row_count, [f"{report.valid_count:,} valid"]
        truth = {line.field: line.rows for line in report.presence if line.rows}
    with_truth = [f"{count:,} with {name}" for name, count in truth.items() if is_of_truth(name)]
    parts += with_truth or ["none with ground truth"]
    return f"{plural(rows, 'row')} of {summary.logged:,} logged: {', '.join(parts)}"


def _typed(remedy: str, output: str | None) -> str:
    """A remedy with its options as they are typed: on the command line if there is a file for the rows."""
    if output is None:
        return remedy
    words = {
        name: argument.get("metavar", "").split("|")[0]
        for group in COMMAND_LINE.values()
        for name, argument in group.items()
    }
    return re.sub(r"(\w+)=(?:'(\w+)'|\.\.\.)", lambda m: f"{flag(m[1])} {m[2] or words[m[1]]}", remedy)


def funnel_numbers(summary: BuildSummary) -> dict[str, Any]:
    return {**msgspec.to_builtins(summary), "excluded": summary.excluded}


def _steps(summary: BuildSummary) -> list[FunnelStep]:
    """The steps that took rows away; if there are none, the last."""
    return [step for step in summary.steps if step.removed] or [summary.steps[-1]]


def _facts(summary: BuildSummary) -> Iterator[tuple[str, str]]:
    """Everything beside the counts, as a title and a text."""
    is_table = any(family.name == summary.format for family in (*TABLE_FAMILIES, MAPPED))
    yield "Table" if is_table else "Traces", f"{summary.format} ({summary.format_reason})"
    feedback = summary.feedback
    if feedback.get("given"):
        feedback = {**feedback, "replaced": feedback["given"] - feedback["latest"]}
        rest = counted((feedback.get(k, 0), text) for k, text in _FEEDBACK)
        yield "Feedback", f"{plural(feedback['given'], 'judgment')}: {', '.join(rest)}"
    for reason, count in summary.conflicts.items():
        what = "another request or response than" if reason == "repeated" else "an edited answer that is not in"
        yield "Conflicts", f"{count:,} {reason} with {what} the row that is kept"
    labels = summary.labels
    if labels.get("expected_response"):
        copied = labels.get("copied", 0)
        how = f", {copied:,} of them copied from the response" if copied else ""
        yield "Labels", f"expected_response on {plural(labels['expected_response'], 'row')}{how}"
    if labels.get("expected_retrieved_context"):
        yield "Labels", f"expected_retrieved_context on {plural(labels['expected_retrieved_context'], 'row')}"
    if summary.traces_joined:
        yield "Traces", f"joined to {plural(summary.traces_joined, 'row')}"
    if existing := summary.existing:
        yield "Extends", f"{plural(existing['rows'], 'row')}; {summary.rows + existing['rows']:,} with the new ones"
        changes = counted((existing.get(k, 0), text) for k, text in _CHANGES)
        if changes:
            yield "Updated", f"labels of {plural(existing['updated'], 'row')}: {', '.join(changes)}"
    if summary.redaction:
        counts = [plural(n, REDACTED.get(kind, kind)) for kind, n in summary.redacted.items()]
        by = f" (by {', '.join(summary.redacted_by)})" if summary.redacted_by else ""
        yield "Redacted", (", ".join(counts) or "no matches") + by
    if summary.sample is not None:
        yield "Sample", f"{summary.sample:,} with seed {summary.seed}"
    for note in summary.notes:
        yield "Note", note


_FEEDBACK = (
    ("attached", "on rows of the set"),
    ("elsewhere", "on excluded rows"),
    ("unknown", "on ids that the table does not have"),
    ("replaced", "replaced by a later one"),
)


_CHANGES = (
    ("expected_response", "expected_response from feedback"),
    ("expected_retrieved_context", "expected_retrieved_context from feedback"),
    ("withdrawn", "copied expected_response withdrawn"),
)


STRATA_KEPT = 100


def summarized(
    plan: BuildPlan,
    hook: Hook | None,
    decided: Mapping[str, Any],
    counts: Mapping[str, Mapping[str, int]],
    *,
    records: int,
    **more: Any,
) -> BuildSummary:
    """The summary of a build. `decided` are the small results of the decisions (RESULTS), `counts` what was counted of
    the finished rows: the excluded ones by reason, and the issues of the rows and of those that are invalid."""
    reasons, existing = counts["reason"], counts["existing"]
    tallies = {**dict.fromkeys(("given", "latest", "attached", "unknown"), 0), **dict(decided["feedback"])}
    rows, steps = records, list[FunnelStep]()
    for name, of_step in FUNNEL_STEPS:
        if name != "new" or plan.extends:  # calls are new to a dataset that is extended
            removed = tuple(Removed(r, reasons[r]) for r in of_step if reasons.get(r))
            rows -= sum(gone.rows for gone in removed)
            steps.append(FunnelStep(name, rows, removed))
    assert reasons.keys() <= REASONS.keys(), set(reasons) - REASONS.keys()
    elsewhere = tallies["latest"] - tallies["attached"] - tallies["unknown"]
    # of the rows, and of feedback on none of them
    issues = {**counts["codes"], UNKNOWN_REQUEST.code: tallies["unknown"]}
    redaction, notes = "hook" if hook else plan.redact, list[str]()
    redactor = redactor_of(plan, hook)
    drawn = [Stratum(*line) for line in islice(decided["strata"], STRATA_KEPT)] if plan.stratified else []
    if redactor is not None:
        drawn = [replace(stratum, stratum=redactor.cell(stratum.stratum)) for stratum in drawn]
    if plan.extends and redaction and plan.by_question:
        by = "ID only" if plan.near is None else "ID, or as a near duplicate"
        notes.append(
            "Questions are compared as they were logged: a call whose question is redacted in the dataset that is "
            f"extended is recognized by its {by}."
        )
    return BuildSummary(
        records=records,
        steps=tuple(steps),
        rows=steps[-1].left,
        feedback={**tallies, "elsewhere": max(elsewhere, 0)},
        conflicts=dict(decided["conflicts"]),
        existing={"rows": 0, "updated": 0, **dict(sorted(existing.items()))} if plan.extends else {},
        labels=dict(sorted(counts["labels"].items())),
        redacted=dict(sorted(counts["redacted"].items())),
        strata=tuple(drawn),
        issues={code: count for code, count in sorted(issues.items()) if count},
        sample=plan.sample,
        seed=plan.seed,
        notes=tuple(notes),
        redaction=redaction,
        redacted_by=("patterns", *(_PACKAGES[name] for name in plan.redact_with)) if redaction == DEFAULT else (),
        **more,
    )
