"""A comparison as HTML, in the order of a summary; the shells, the style and the safety are those of page.py.

Computes nothing: every number is the DiffSummary's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import COMMON
from agent_eval_schema.render.diff.stories import row_stories
from agent_eval_schema.render.diff.summary import (
    CellChange,
    DiffPlace,
    DiffSummary,
    FieldChange,
    IssueChange,
    MetricChange,
)
from agent_eval_schema.render.diff.text import described, headline, metric_reasons, moves, next_commands
from agent_eval_schema.render.page import inline, page
from agent_eval_schema.render.phrases import plural

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
            drawn = [{**_place(p), "asks": p.asks, "errors": ", ".join(p.errors)} for p in places]
            more, has_errors = count - len(places), any(p["errors"] for p in drawn)
            told = {"title": title, "mood": mood, "count": count, "places": drawn, "more": more}
            yield {**told, "has_errors": has_errors, "has_ids": _has_ids(drawn), "open": count <= ROWS_OPEN}


def _has_ids(places: list[dict[str, Any]]) -> bool:
    return any(place["request_id"] for place in places)


def _place(place: DiffPlace) -> dict[str, Any]:
    rows = [f"{row:,}" for row in dict.fromkeys((place.old_row, place.new_row)) if row is not None]
    return {"rows": " → ".join(rows), "request_id": place.request_id or ""}


def _field(field: FieldChange) -> dict[str, Any]:
    changes = [line for change in field.examples for line in _change(field.field, change)]
    more = field.rows - len(field.examples)
    has_paths = any(change["path"] for change in changes)
    told = {"name": field.field, "count": plural(field.rows, "row"), "changes": changes, "more": more}
    return {**told, "has_paths": has_paths, "has_ids": _has_ids(changes), "open": field.rows <= ROWS_OPEN}


def _change(field: str, change: CellChange) -> Iterator[dict[str, Any]]:
    last = len(change.edits) - 1
    for i, edit in enumerate(change.edits):
        path = "" if edit.path == field else edit.path
        more = change.more_edits if i == last else 0
        yield {**_place(change.row), "path": path, "parts": edit.parts, "more": more}


def _issue(line: IssueChange) -> dict[str, Any]:
    found = [_found("+", i) for i in line.gained_examples] + [_found("−", i) for i in line.lost_examples]
    return {
        "code": line.code,
        "name": line.name,
        "severity": str(line.severity),
        "numbers": f"{line.old:,} → {line.new:,}",
        "moves": ", ".join(moves(line)),
        "open": line.severity is Severity.ERROR and line.gained + line.lost <= ROWS_OPEN,
        "found": found,
    }


def _found(sign: str, issue: Issue) -> dict[str, Any]:
    row = f"{issue.row:,}" if issue.row is not None else ""
    return {"sign": sign, "row": row, "path": issue.path or "", "message": issue.message}


def _systems(summary: DiffSummary) -> Iterator[dict[str, Any]]:
    for name in COMMON:
        of_system = [line for line in summary.metrics if line.system == name]
        lines = [_metric(line) for line in of_system if line.gained or line.lost or line.old != line.new]
        if lines:
            yield {"name": name, "summary": f"{len(lines)} of {len(of_system)} metrics differ", "lines": lines}


def _metric(line: MetricChange) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "old": f"{line.old:,} / {line.old_rows:,}",
        "new": f"{line.new:,} / {line.new_rows:,}",
        "mood": "error" if line.lost else "good" if line.gained else "",
        "why": metric_reasons(line).plain,
    }
