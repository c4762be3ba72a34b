"""A comparison row by row: the change, the issues that came or went with it, and the metrics lost or gained.

The rows are those of the summary's examples. Computes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import COMMON
from agent_eval_schema.render.diff.summary import DiffPlace, DiffSummary, MetricRow
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.rules import RULES

STORIES_SHOWN = 100
"""The rows that are shown, at most; rows with new errors come first."""


METRICS_NAMED = 8
"""Metrics of a story that are named; the others are counted."""


def row_stories(summary: DiffSummary) -> Iterator[dict[str, Any]]:
    """A story of each matched row that changed."""
    changes: dict[tuple[int | None, int | None], list[dict[str, Any]]] = {}
    places: dict[tuple[int | None, int | None], DiffPlace] = {}
    for field in summary.fields:
        for change in field.examples:
            key = change.row.key
            places[key] = change.row
            for edit, more in change.counted_edits():
                changes.setdefault(key, []).append({"path": edit.path, "parts": edit.parts, "more": more})
    stories = [_story(summary, places[key], changes[key]) for key in changes]
    stories.sort(key=lambda story: (_MOODS.index(story["mood"]), story["number"]))
    yield from stories[:STORIES_SHOWN]


_MOODS = ("error", "warning", "", "good")


def _story(summary: DiffSummary, place: DiffPlace, changes: list[dict[str, Any]]) -> dict[str, Any]:
    gained = [_issue("+", i) for line in summary.issues for i in line.gained_examples if i.row == place.new_row]
    lost = [_issue("−", i) for line in summary.issues for i in line.lost_examples if i.row == place.old_row]
    metrics = list(_metrics(summary, place))
    moods = {issue["mood"] for issue in gained}
    loses = any(metric["mood"] == "error" for metric in metrics)
    mood = "error" if "error" in moods or loses else "warning" if "warning" in moods else "good" if metrics else ""
    codes = [f"{issue['sign']}{issue['code']}" for issue in (*gained, *lost)]
    counts = [f"{metric['sign']}{plural(metric['count'], 'metric')}" for metric in metrics]
    return {
        "number": place.new_row or 0,
        "rows": place.rows,
        "request_id": place.request_id or "",
        "mood": mood,
        "told": ", ".join([*dict.fromkeys(change["path"] for change in changes), *codes, *counts]),
        "changes": changes,
        "issues": gained + lost,
        "metrics": metrics,
    }


def _issue(sign: str, issue: Issue) -> dict[str, Any]:
    mood = "good" if sign == "−" else "" if issue.severity is Severity.INFO else str(issue.severity)
    told = {"sign": sign, "code": issue.code, "name": RULES[issue.code].name, "message": issue.message}
    return {**told, "mood": mood}


def _metrics(summary: DiffSummary, place: DiffPlace) -> Iterator[dict[str, Any]]:
    """The metrics of the row, those with the same reason together."""
    for sign, mood in (("−", "error"), ("+", "good")):
        by_why: dict[str, list[str]] = {}
        for line in (line for line in summary.metrics if line.system in COMMON):
            rows: tuple[MetricRow, ...] = line.lost_examples if sign == "−" else line.gained_examples
            for found in rows:
                if found.row.key == place.key:
                    by_why.setdefault(found.why, []).append(line.metric)
        for why, names in by_why.items():
            yield {"sign": sign, "mood": mood, "names": _some(names), "why": why, "count": len(names)}


def _some(names: list[str]) -> str:
    more = len(names) - METRICS_NAMED
    return ", ".join(names[:METRICS_NAMED]) + (f" and {more:,} more" if more > 0 else "")
