"""A profile as HTML; the shells, the style and the safety are those of page.py. Computes nothing but pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from agent_eval_schema.render.page import inline, page
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.profile.summary import MetricPower, ProfileSummary
from agent_eval_schema.render.profile.words import (
    POWER_COLUMNS,
    about_balance,
    about_cost,
    about_documents,
    about_duplicates,
    about_rows,
    about_thin,
    amount,
    assumptions,
    described,
    headline,
    power_numbers,
)

WIDTH, HEIGHT = 300, 90
"""Of the power curve."""


def profile_page(summary: ProfileSummary) -> str:
    """The profile as a standalone HTML page."""
    name = os.path.basename(summary.source) if summary.source else "evaluation dataset"
    return page(f"Profile of {name}", "profile.html", **_drawn(summary))


def profile_inline(summary: ProfileSummary) -> str:
    """The profile for the output cell of a notebook."""
    return inline("profile.html", **_drawn(summary))


def _drawn(summary: ProfileSummary) -> dict[str, Any]:
    found, cover = summary.duplicates, summary.coverage
    values: dict[str, Any] = {
        "described": described(summary),
        "verdict": headline(summary),
        "mood": "" if summary.valid else "error",
        "notes": summary.notes if summary.valid else summary.notes[1:],
        "steps": summary.next_steps,
        "power": [(p, power_numbers(p)) for p in summary.power if p.rows],
        "assumptions": f"{POWER_COLUMNS} {assumptions(summary)}",
        "curve": _curve(summary.power),
        "duplicates": about_duplicates(found) if found.exact or found.near else "",
        "groups": found.groups,
        "more_groups": found.group_count - len(found.groups),
        "conflicts": found.conflicts,
        "conflict_count": found.conflict_count,
        "leaks": summary.leaks,
        "compared": summary.compared_with,
        "facts": [*about_rows(cover), *about_documents(cover.documents)],
        "valid": summary.valid,
        "tools": cover.tools,
        "breakdowns": [(b, about_thin(b, cover.min_rows) if b.thin else "") for b in cover.breakdowns],
        "clusters": cover.clusters,
        "cluster_note": cover.cluster_note,
        "balance": list(about_balance(summary.balance)),
        "cost": list(about_cost(summary)),
        "costs": summary.cost.metrics,
    }
    values["key_numbers"] = list(_key_numbers(summary, values["curve"]))
    kept = {
        ("next", "What to do next"): values["steps"],
        ("power", "Size and power"): values["power"],
        ("duplicates", "Repeated questions"): values["duplicates"] or values["conflicts"],
        ("leaks", "Leakage"): values["leaks"] or values["compared"],
        ("coverage", "Coverage"): summary.valid,
        ("balance", "Balance and age"): values["balance"],
        ("cost", "Cost"): values["cost"],
    }
    shown = [part for part, content in kept.items() if content]
    return {**values, "parts": shown if summary.valid else []}


def _key_numbers(summary: ProfileSummary, curve: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """The numbers that a notebook shows at once."""
    if curve is not None:
        yield "Smallest paired difference", f"{curve['label']} ({curve['metric']})"
    found = summary.duplicates
    yield "Repeated questions", f"{found.exact + found.near:,} of {plural(found.rows, 'row')}"
    for leak in summary.leaks:
        yield "Leakage", f"{plural(leak.rows, 'row')}: {leak.kind} in {leak.source}"
    if tools := summary.coverage.tools:
        used = sum(bool(tool.expected or tool.called) for tool in tools)
        yield "Tools exercised", f"{used:,} of {len(tools):,}"
    for line in islice(about_cost(summary), 1):
        yield "Cost of one evaluation", line


def _curve(powers: tuple[MetricPower, ...]) -> dict[str, Any] | None:
    """The smallest paired difference over the number of rows, of the metric with most rows, and where it is now."""
    known = [p for p in powers if p.unit == "points" and p.paired and p.rows]
    if not known:
        return None
    best = max(known, key=lambda p: (p.rows, p.metric))
    difference, rows = best.paired or 0.0, best.rows
    end = rows * 8

    def place(count: float) -> tuple[float, float]:
        height = min(difference * math.sqrt(rows / count), 1.0)
        return round(WIDTH * count / end, 1), round(HEIGHT * (1 - height), 1)

    points = [place(max(end * i / 120, 1)) for i in range(1, 121)]
    here = place(rows)
    return {
        "points": " ".join(f"{x},{y}" for x, y in points),
        "x": here[0],
        "y": here[1],
        "width": WIDTH,
        "height": HEIGHT,
        "metric": best.metric,
        "end": f"{end:,} rows",
        "label": f"{rows:,} rows: {amount(best, difference)} points; 8 times as many: "
        f"{amount(best, difference / math.sqrt(8))} points",
    }
