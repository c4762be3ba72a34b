"""What became of a logged table as a line, as blocks and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Document,
    Fold,
    Funnel,
    Line,
    Only,
    Part,
    Section,
    Table,
    Terms,
    Words,
)
from agent_eval_schema.render.document import json_text
from agent_eval_schema.render.phrases import NextCommand, command_on, counted, plural
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.exclusions import find_reason

FUNNEL_VERSION = 1
"""Of the JSON form."""

STRATA_SHOWN = 12
"""Strata in a text; the page has them all."""

REDACTED = {
    "email": "e-mail",
    "phone": "phone number",
    "card": "card number",
    "hook": "text",
}


def funnel_document(summary: FunnelSummary, *, output: str | None = None, alone: bool = True) -> Document:
    """The row counts per step; `output` is the file with the rows. If not `alone`, the report on the rows comes after
    it, with their issues."""
    where, line = os.path.basename(summary.table or ""), funnel_line(summary)
    command = command_on(output, "profile") if summary.rows else ""
    excluded = [
        (reason, f"{rows:,}", find_reason(reason).sentence, Cell(find_reason(reason).remedy, "muted"))
        for reason, rows in summary.excluded.items()
    ]
    facts = list(_facts(summary))
    details: list[Block] = [
        *([Table(["Excluded", "#Rows", "Reason", "What to do"], excluded, kind="examples")] if excluded else []),
        Terms(facts),
    ]
    on_page: list[Block] = [
        _levels(summary),
        Fold("Excluded rows, labels and sample", details),
        *_strata(summary),
        *(_issues(summary) if alone else []),
    ]
    return Document(
        title=f"{where or 'table'}: " + (f"{summary.rows:,} rows of {summary.logged:,} logged" if alone else line),
        about=[Only("html", [Line(where, "muted")])] if where else [],
        verdict=line,
        mood="good" if summary.rows else "error",
        following=[NextCommand(command, "shows which differences the rows can measure")] if command else [],
        blocks=[Only("text", list(_in_text(summary, facts))), Only("html", on_page)],
        kind="build",
    )


def funnel_line(summary: FunnelSummary) -> str:
    """`1,000,000 logged → 962,114 calls → … → 500 sampled → 498 rows`: every step that took rows away."""
    parts = [f"{summary.logged:,} logged"]
    if summary.records != summary.logged:
        parts.append(f"{summary.records:,} records")
    parts += [f"{step.left:,} {step.name}" for step in _steps(summary)]
    return " → ".join(parts)


def funnel_json(summary: FunnelSummary) -> str:
    """All numbers, and the funnel as a line."""
    body = {"version": FUNNEL_VERSION, "funnel": funnel_line(summary), **funnel_numbers(summary)}
    return json_text(body)


def funnel_numbers(summary: FunnelSummary) -> dict[str, Any]:
    """The numbers as JSON-like data."""
    found: dict[str, Any] = msgspec.to_builtins(summary)
    return {**found, "excluded": summary.excluded}


def _steps(summary: FunnelSummary) -> list[FunnelStep]:
    """The steps that took rows away; if there are none, the last."""
    return [step for step in summary.steps if step.removed] or [summary.steps[-1]]


def _levels(summary: FunnelSummary) -> Funnel:
    first = "logged" if summary.records == summary.logged else "records"
    levels = [
        ("", summary.records, first),
        *(
            (", ".join(f"− {gone.rows:,} {gone.reason}" for gone in step.removed), step.left, step.name)
            for step in _steps(summary)
        ),
    ]
    most = max(summary.records, 1)
    return Funnel([(gone, round(100 * left / most, 2), f"{left:,}", name) for gone, left, name in levels])


def _strata(summary: FunnelSummary) -> Iterator[Section]:
    if summary.strata:
        rows = [(s.stratum or "(none)", f"{s.calls:,}", f"{s.sampled:,}") for s in summary.strata]
        yield Section("strata", "Strata", [Table(["Stratum", "#Calls", "#Sampled"], rows, kind="metrics")])


def _issues(summary: FunnelSummary) -> Iterator[Section]:
    if summary.issues:
        rows: list[list[Words | Cell]] = [
            [Part(code, f"tag {RULES[code].severity}"), RULES[code].name, f"{count:,}"]
            for code, count in summary.issues.items()
        ]
        table = Table(["Code", "Name", "#Issues"], rows, kind="examples")
        yield Section("issues", "Validation issues", [table], short="Issues")


def _in_text(summary: FunnelSummary, facts: list[tuple[str, str]]) -> Iterator[Block]:
    """The excluded rows, then everything else as terms."""
    if summary.excluded:
        rows = [
            (f"{rows:,}", Part(reason, "path"), Part(find_reason(reason).sentence, "muted"))
            for reason, rows in summary.excluded.items()
        ]
        yield Section("excluded", "Excluded rows", [Table(["#", "", ""], rows)], indent=0)
    terms = [
        *facts,
        *(("Stratum", f"{s.stratum or '(none)'}: {s.sampled:,} of {s.calls:,}") for s in summary.strata[:STRATA_SHOWN]),
    ]
    if len(summary.strata) > STRATA_SHOWN:
        terms.append(("", f"… and {len(summary.strata) - STRATA_SHOWN} more strata"))
    for code, count in summary.issues.items():
        terms.append((code, f"{RULES[code].name} ({RULES[code].severity}) on {count:,}"))
    yield Section("facts", "", [Terms(terms)], indent=0)


def _facts(summary: FunnelSummary) -> Iterator[tuple[str, str]]:
    """Everything beside the counts, as a title and a text."""
    yield "Table", f"{summary.format} ({summary.format_reason})"
    said = summary.feedback
    if said.get("given"):
        said = {**said, "replaced": said["given"] - said["latest"]}
        rest = counted((said.get(k, 0), text) for k, text in _FEEDBACK)
        yield "Feedback", f"{plural(said['given'], 'judgment')}: {', '.join(rest)}"
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
        yield "Redacted", ", ".join(counts) or "no matches"
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


class Removed(Struct, frozen=True):
    """How many rows were excluded for a reason (rules/exclusions.py)."""

    reason: str
    rows: int


class FunnelStep(Struct, frozen=True):
    """One step: what the rows that are left are called, how many they are, and which went, most frequent reason in the
    order of the funnel."""

    name: str
    left: int
    removed: tuple[Removed, ...]


class Stratum(Struct, frozen=True):
    """A part of the calls that the sample was shared over: how many calls it has, how many were drawn."""

    stratum: str
    calls: int
    sampled: int


class FunnelSummary(Struct, frozen=True, kw_only=True):
    """What became of a table.

    table
        The path of the table, if it was a file or folder.
    format, format_reason
        The kind of table (formats/inference_tables.py), and why it was taken for one.
    logged
        Rows of the table.
    records
        The same, with the records of batch calls counted one by one: rows + excluded.
    steps
        The funnel.
    rows
        Rows of the evaluation set.
    feedback
        Judgments in the table by what became of them: `given` in all; those that are `latest` (the last click of each
        kind) are `attached` to rows of the set, `elsewhere` (on a row that was excluded, or a whole batch), or
        `unknown` (the table has no such id: AE717). Those inside traces are not counted here.
    labels
        How many rows got which label from it: `expected_response` (`copied`: of these, the response itself),
        `expected_retrieved_context`.
    redacted
        How much was replaced in the rows of the set, by kind (`hook`: texts that a function of the user changed).
    traces_joined
        Rows that got their trace from the traces table.
    existing
        The dataset that was extended, if there is one: its `rows`, how many of them later feedback `updated`, and the
        labels that it set (`expected_response`, `expected_retrieved_context`) or took away (`withdrawn`).
    strata
        The largest strata (at most 100) of a sample that is shared over strata.
    issues
        How many issues of each code the rows have, those that were excluded as invalid too, and the feedback (AE717).
    sample, seed
        As asked.
    notes
        What the numbers do not show, as sentences.
    engine
        Which engine built the set.
    seconds
        How long it took.
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
    redaction: str | None = None
    existing: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    engine: str = "embedded"
    seconds: float = 0.0

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
