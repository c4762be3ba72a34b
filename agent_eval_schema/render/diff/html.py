"""A comparison as HTML, in the order of a review; the shells, the style and the safety are those of html.py.

Computes nothing: every number is the Review's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.render.console import plural
from agent_eval_schema.render.diff.summary import Change, FieldChange, IssueChange, MetricChange, Place, Review
from agent_eval_schema.render.diff.text import described, moves, reasons, verdict
from agent_eval_schema.render.page import inline, page
from agent_eval_schema.runtime.version import __version__


def diff_page(review: Review) -> str:
    """The comparison as a standalone HTML page."""
    names = [os.path.basename(s.source) if s.source else "evaluation set" for s in (review.old, review.new)]
    return page(f"{names[0]} → {names[1]}", "diff.html", **_drawn(review))


def diff_inline(review: Review) -> str:
    """The comparison for the output cell of a notebook."""
    return inline("diff.html", **_drawn(review))


def _drawn(review: Review) -> dict[str, Any]:
    groups, fields, issues = list(_groups(review)), list(map(_field, review.fields)), list(map(_issue, review.issues))
    systems = list(_systems(review))
    columns = [("dropped", review.columns_dropped), ("added", review.columns_added)]
    kept = {
        ("rows", "Rows"): groups,
        ("changes", "Changes"): fields,
        ("issues", "Issues"): issues,
        ("metrics", "Metrics"): systems,
    }
    return {
        "sides": [("---", described(review.old)), ("+++", described(review.new))],
        "verdict": verdict(review),
        "mood": "error" if review.losses else "good" if review.same else "",
        "parts": [part for part, content in kept.items() if content],
        "columns": [(sign, names) for sign, names in columns if names],
        "groups": groups,
        "fields": fields,
        "issues": issues,
        "systems": systems,
        "version": __version__,
    }


def _groups(review: Review) -> Iterator[dict[str, Any]]:
    rows = review.rows
    for title, mood, count, places in (
        ("Removed", "error", rows.removed, review.removed),
        ("Added", "good", rows.added, review.added),
        ("Invalid now", "error", rows.became_invalid, review.became_invalid),
        ("Valid now", "good", rows.became_valid, review.became_valid),
    ):
        if count:
            drawn = [{**_place(p), "asks": p.asks, "errors": ", ".join(p.errors)} for p in places]
            yield {"title": title, "mood": mood, "count": count, "places": drawn, "more": count - len(places)}


def _place(place: Place) -> dict[str, Any]:
    rows = [f"{row:,}" for row in dict.fromkeys((place.old_row, place.new_row)) if row is not None]
    return {"rows": " → ".join(rows), "request_id": place.request_id or ""}


def _field(field: FieldChange) -> dict[str, Any]:
    changes = [line for change in field.examples for line in _change(field.field, change)]
    more = field.rows - len(field.examples)
    return {"name": field.field, "count": plural(field.rows, "row"), "changes": changes, "more": more}


def _change(field: str, change: Change) -> Iterator[dict[str, Any]]:
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
        "open": line.severity is Severity.ERROR,
        "found": found,
    }


def _found(sign: str, issue: Issue) -> dict[str, Any]:
    row = f"{issue.row:,}" if issue.row is not None else ""
    return {"sign": sign, "row": row, "path": issue.path or "", "message": issue.message}


def _systems(review: Review) -> Iterator[dict[str, Any]]:
    for name in SYSTEMS:
        of_system = [line for line in review.metrics if line.system == name]
        lines = [_metric(line) for line in of_system if line.gained or line.lost or line.old != line.new]
        if lines:
            yield {"name": name, "summary": f"{len(lines)} of {len(of_system)} metrics differ", "lines": lines}


def _metric(line: MetricChange) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "old": f"{line.old:,} / {line.old_rows:,}",
        "new": f"{line.new:,} / {line.new_rows:,}",
        "mood": "error" if line.lost else "good" if line.gained else "",
        "why": reasons(line).plain,
    }
