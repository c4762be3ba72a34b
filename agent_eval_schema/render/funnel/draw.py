"""What became of a logged table as a line, as text, JSON and HTML. Computes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from agent_eval_schema.render.console import drawn, print_verdict
from agent_eval_schema.render.document import json_text
from agent_eval_schema.render.funnel.summary import FunnelStep, FunnelSummary
from agent_eval_schema.render.page import inline, page
from agent_eval_schema.render.phrases import NextCommand, command_on, counted, plural
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.exclusions import find_reason
from agent_eval_schema.text.visible import visible

FUNNEL_VERSION = 1
"""Of the JSON form."""

STRATA_SHOWN = 12

REDACTED = {
    "email": "e-mail",
    "phone": "phone number",
    "card": "card number",
    "hook": "text",
}


def funnel_line(summary: FunnelSummary) -> str:
    """`1,000,000 logged → 962,114 calls → … → 500 sampled → 498 rows`: every step that took rows away."""
    parts = [f"{summary.logged:,} logged"]
    if summary.records != summary.logged:
        parts.append(f"{summary.records:,} records")
    parts += [f"{step.left:,} {step.name}" for step in shown_steps(summary)]
    return " → ".join(parts)


def shown_steps(summary: FunnelSummary) -> list[FunnelStep]:
    """The steps that took rows away; if there are none, the last."""
    return [step for step in summary.steps if step.removed] or [summary.steps[-1]]


def facts(summary: FunnelSummary) -> Iterator[tuple[str, str]]:
    """What else is to be said, as a title and a text."""
    yield "Table", f"{summary.family} ({summary.family_reason})"
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


# ---------------------------------------------------------------------------------------------------------------------
# text
def funnel_text(summary: FunnelSummary, *, color: bool, width: int | None = None, output: str | None = None) -> str:
    """The funnel for a terminal; `output` is the file with the rows."""
    return drawn(lambda console: print_funnel(console, summary, output), color, width)


def print_funnel(console: Console, summary: FunnelSummary, output: str | None) -> None:
    """Draw it on a console that reads no markup."""
    gone = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    gone.add_column(justify="right", no_wrap=True)
    gone.add_column(no_wrap=True, style="cyan")
    gone.add_column(style="dim")
    for reason, rows in summary.excluded.items():
        gone.add_row(f"{rows:,}", reason, find_reason(reason).sentence)
    if summary.excluded:
        console.print("Excluded rows", style="bold")
        console.print(gone)
        console.print()
    about = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    about.add_column(no_wrap=True, style="bold")
    about.add_column()
    for title, text in facts(summary):
        about.add_row(title, visible(text))
    for line in summary.strata[:STRATA_SHOWN]:
        about.add_row("Stratum", f"{visible(line.stratum) or '(none)'}: {line.sampled:,} of {line.calls:,}")
    if len(summary.strata) > STRATA_SHOWN:
        about.add_row("", f"… and {len(summary.strata) - STRATA_SHOWN} more strata")
    for code, count in summary.issues.items():
        about.add_row(f"{code}", f"{RULES[code].name} ({RULES[code].severity}) on {count:,}")
    console.print(about)
    console.print()
    sign, style = ("✓", "green") if summary.rows else ("✗", "red")
    command = command_on(output, "profile") if summary.rows else ""
    following = [NextCommand(command, "shows which differences the rows can measure")] if command else []
    print_verdict(console, f"{sign} {funnel_line(summary)}", style, following)


# ---------------------------------------------------------------------------------------------------------------------
# JSON
def funnel_json(summary: FunnelSummary) -> str:
    """All numbers, and the funnel as a line."""
    body = {"version": FUNNEL_VERSION, "funnel": funnel_line(summary), **funnel_numbers(summary)}
    return json_text(body)


def funnel_numbers(summary: FunnelSummary) -> dict[str, Any]:
    """The numbers as JSON-like data."""
    found: dict[str, Any] = msgspec.to_builtins(summary)
    return {**found, "excluded": summary.excluded}


# ---------------------------------------------------------------------------------------------------------------------
# HTML
def funnel_page(summary: FunnelSummary) -> str:
    """The funnel as a standalone page."""
    where = os.path.basename(summary.table or "") or "table"
    return page(
        f"{where}: {summary.rows:,} rows of {summary.logged:,} logged",
        "funnel.html",
        funnel=funnel_values(summary, alone=True),
    )


def funnel_inline(summary: FunnelSummary) -> str:
    """The funnel for the output cell of a notebook."""
    return inline("funnel.html", funnel=funnel_values(summary, alone=True))


def funnel_values(summary: FunnelSummary, *, alone: bool) -> dict[str, Any]:
    """What the template funnel.html draws; if not alone, the report on the rows comes after it."""
    most = max(summary.records, 1)
    first = "logged" if summary.records == summary.logged else "records"
    steps: list[tuple[str, int, list[dict[str, str]]]] = [(first, summary.records, [])]
    steps += [(s.name, s.left, [_removed(gone.reason, gone.rows) for gone in s.removed]) for s in shown_steps(summary)]
    return {
        "name": os.path.basename(summary.table or ""),
        "line": funnel_line(summary),
        "steps": [
            {"name": name, "left": f"{left:,}", "share": round(100 * left / most, 2), "gone": _gone(removed)}
            for name, left, removed in steps
        ],
        "excluded": [gone for _, _, removed in steps for gone in removed],
        "facts": list(facts(summary)),
        "strata": [(s.stratum or "(none)", f"{s.calls:,}", f"{s.sampled:,}") for s in summary.strata],
        "issues": [(c, RULES[c].name, str(RULES[c].severity), f"{n:,}") for c, n in summary.issues.items()],
        "alone": alone,
    }


def _gone(removed: list[dict[str, str]]) -> str:
    """`− 2 status, − 1 feedback-call`."""
    return ", ".join(f"− {gone['rows']} {gone['reason']}" for gone in removed)


def _removed(reason: str, rows: int) -> dict[str, str]:
    found = find_reason(reason)
    return {"reason": reason, "rows": f"{rows:,}", "sentence": found.sentence, "remedy": found.remedy}
