"""A comparison as HTML, in the order of a summary; the shells, the style and the safety are those of page.py.

Computes nothing: every number is the DiffSummary's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from agent_eval_schema.issues import Severity
from agent_eval_schema.metrics.catalog import COMMON
from agent_eval_schema.render.diff.stories import row_stories
from agent_eval_schema.render.diff.summary import DiffSummary, FieldChange, IssueChange
from agent_eval_schema.render.diff.text import described, headline, metric_reasons, moves, next_commands
from agent_eval_schema.render.page import inline, page

ROWS_OPEN = 20
"""Rows of a section that is open at once; a longer one is closed."""

ROWS_INLINE = 5
"""Rows whose story a notebook shows at once; the others are folded."""


def diff_page(summary: DiffSummary) -> str:
    """The comparison as a standalone HTML page."""
    names = [os.path.basename(s.source) if s.source else "evaluation set" for s in (summary.old, summary.new)]
    return page(f"{names[0]} → {names[1]}", "diff.html", **_drawn(summary))


def diff_inline(summary: DiffSummary) -> str:
    """The comparison for the output cell of a notebook."""
    return inline("diff.html", **_drawn(summary, ROWS_INLINE))


def _drawn(summary: DiffSummary, shown: int | None = None) -> dict[str, Any]:
    stories = list(row_stories(summary))
    groups, systems = list(_groups(summary)), list(_systems(summary))
    fields, issues = list(map(_field, summary.fields)), list(map(_issue, summary.issues))
    columns = [("dropped", summary.columns_dropped), ("added", summary.columns_added)]
    kept = {
        ("stories", "Row by row"): stories,
        ("rows", "Rows"): groups,
        ("changes", "Changes"): fields,
        ("issues", "Issues"): issues,
        ("metrics", "Metrics"): systems,
    }
    return {
        "sides": [("---", described(summary.old)), ("+++", described(summary.new))],
        "verdict": headline(summary),
        "following": next_commands(summary),
        "mood": "error" if summary.losses else "good" if summary.same else "",
        "parts": [part for part, content in kept.items() if content],
        "columns": [(sign, names) for sign, names in columns if names],
        "stories": stories[:shown],
        "folded": stories[shown:] if shown else [],
        "groups": groups,
        "fields": fields,
        "issues": issues,
        "systems": systems,
    }


def _groups(summary: DiffSummary) -> Iterator[dict[str, Any]]:
    rows = summary.rows
    for title, mood, count, places in (
        ("Removed", "error", rows.removed, summary.removed),
        ("Added", "good", rows.added, summary.added),
        ("Invalid now", "error", rows.became_invalid, summary.became_invalid),
        ("Valid now", "good", rows.became_valid, summary.became_valid),
    ):
        if count:
            told = {"title": title, "mood": mood, "count": count, "places": places, "more": count - len(places)}
            has = {"has_errors": any(p.errors for p in places), "has_ids": any(p.request_id for p in places)}
            yield {**told, **has, "open": count <= ROWS_OPEN}


def _field(field: FieldChange) -> dict[str, Any]:
    changes = [(change.row, *edit) for change in field.examples for edit in change.counted_edits()]
    return {
        "name": field.field,
        "count": field.rows,
        "changes": changes,
        "more": field.rows - len(field.examples),
        "has_paths": any(edit.path not in ("", field.field) for _, edit, _ in changes),
        "has_ids": any(row.request_id for row, _, _ in changes),
        "open": field.rows <= ROWS_OPEN,
    }


def _issue(line: IssueChange) -> dict[str, Any]:
    return {
        "of": line,
        "moves": moves(line),
        "open": line.severity is Severity.ERROR and line.gained + line.lost <= ROWS_OPEN,
        "found": [*(("+", i) for i in line.gained_examples), *(("−", i) for i in line.lost_examples)],
    }


def _systems(summary: DiffSummary) -> Iterator[dict[str, Any]]:
    for name in COMMON:
        of_system = [line for line in summary.metrics if line.system == name]
        differing = (line for line in of_system if line.gained or line.lost or line.old != line.new)
        lines = [(line, metric_reasons(line).plain) for line in differing]
        if lines:
            yield {"name": name, "summary": f"{len(lines)} of {len(of_system)} metrics differ", "lines": lines}
