"""The report as HTML: a standalone page, and the same body inline in a notebook.

What is shown is model output and user text, so a page is safe by construction: every value that a template prints goes
through `visible` and is escaped, and the page's own policy forbids loading anything and any script but one of ours.
"""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.metrics.support import all_metrics
from agent_eval_schema.render.block_html import part_of_page
from agent_eval_schema.render.blocks import OpenRows, View
from agent_eval_schema.render.console import TITLES
from agent_eval_schema.render.figures import CELLS, FEWEST, FIGURES
from agent_eval_schema.render.page import csv_link, drawn, heat, inline, page, plot, runs
from agent_eval_schema.render.phrases import plural, share
from agent_eval_schema.render.report.summary import ReportSummary, Shown
from agent_eval_schema.render.report.text import (
    enabled,
    invalid_advice,
    left_codes,
    needs_no_action,
    next_commands,
    no_action_line,
    renames_columns,
    report_headline,
    rows_to_review,
    support_advice,
)
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__

EXAMPLES_ON_A_PAGE = 600
"""Examples that a page shows in all, so that it opens at once however many codes there are."""

EXAMPLES_INLINE = 3
"""Examples of a code in a notebook, whose file holds every output."""

ISSUES_INLINE = 5
"""Codes that a notebook shows at once; the others are folded."""

KINDS_SHOWN = 20
"""Different messages of a code that are shown."""

ROWS_NAMED = 3
"""Rows of a code that are named beside it; if there are more, they are only counted."""


def report_page(report: ReportSummary, shown: Shown, before: View | None = None) -> str:
    """The report as a standalone HTML page; `before` comes first, with its title."""
    values = _values(report, shown, 20, report.systems, inline=False)
    if before is not None:  # the page begins with one action: that of the report if rows are invalid
        first = values["following"] if not report.ok or not before.following else before.following
        before = replace(before, following=first)
        values |= {"following": [], "review": ""}
    body = drawn("report.html", page=True, is_first=before is None, **values)
    if before is not None:
        return page(before.title, part_of_page(before) + body, script=True)
    where = os.path.basename(report.name) if report.name else "evaluation set"
    rows = f"{report.valid_count:,} of {report.row_count:,} rows valid"
    return page(f"{where}: {report_headline(report) if report.unselected else rows}", body, script=True)


def report_inline(report: ReportSummary, shown: Shown) -> str:
    values = _values(report, shown, EXAMPLES_INLINE, (report.system,), inline=True)
    return inline(drawn("report.html", page=False, is_first=True, **values))


def _values(report: ReportSummary, shown: Shown, most: int, systems: Iterable[str], *, inline: bool) -> dict[str, Any]:
    codes = _codes(report, shown, most)
    plots = [plot(*FIGURES[name], d) for name, d in report.distributions.items() if d.count >= FEWEST]
    plots_title = ", ".join(dict.fromkeys(p["title"] for p in plots))
    pairs = None if inline else together(report)
    to_review, queue = rows_to_review(report, shown.fixes)
    review = report.call.command("review", "--queue", queue) if to_review else ""
    following = next_commands(report, shown.fixes) if report.row_count else []
    # columns that are read by their likely names change every issue
    left = left_codes(report, shown.fixes) if report.row_count and not renames_columns(report) else []
    some = len(shown.rows) < report.row_count
    about = f"{len(shown.rows):,} of {report.row_count:,} rows are in this page, invalid ones first." if some else ""
    parts = [("issues", "Issues")] if report.counts else []
    parts += [("together", "Issues that occur together")] if pairs else []
    parts += [("metrics", "Metrics"), ("fields", "Fields")] if report.row_count and report.has_metrics else []
    parts += [("numbers", plots_title)] if plots else []
    parts += [("answers", "Most frequent answers")] if shown.answers else []
    parts += [("rows", "Rows")] if shown.rows and not inline else []
    return {
        "report": report,
        "shown": shown,
        "rules": RULES,
        "numbers": {metric.name: number for number, metric in enumerate(all_metrics())},
        "enabled": enabled,
        "advice": support_advice,
        "name": os.path.basename(report.name) if report.name else "",
        "verdict": report_headline(report),
        "mood": "error"
        if not (report.ok and report.row_count)
        else ""
        if report.unselected or report.unscored
        else "good",
        "has_health": bool(report.row_count) and not (report.ok and report.unselected),
        "parts": [*parts, ("source", "Source")],
        "following": [step for step in following if inline or step.command != review],
        "review": review,
        "to_review": to_review,
        "left": left,
        "codes": codes[:ISSUES_INLINE] if inline else codes,
        "folded": codes[ISSUES_INLINE:] if inline else [],
        "severities": [(str(s), TITLES[s], report.count(s)) for s in Severity if report.codes_of(s)],
        "no_action": no_action_line(report),
        "systems": list(systems),
        "invalid_advice": invalid_advice(report) if report.usable_count < report.row_count else "",
        "step": -(-report.row_count // CELLS),
        "plots": plots,
        "plots_title": plots_title,
        "together": pairs,
        "listed": OpenRows([], shown.rows, report.row_count, about, opens=False, edits="Fix, before and after"),
        "facts": _facts(report),
    }


def _codes(report: ReportSummary, shown: Shown, most: int) -> list[dict[str, Any]]:
    most = min(most, max(EXAMPLES_ON_A_PAGE // max(len(report.counts), 1), 1))
    found = [code for severity in Severity for code in report.codes_of(severity) if not needs_no_action(report, code)]
    return [_code(report, shown, code, most) for code in found]


def _code(report: ReportSummary, shown: Shown, code: str, most: int) -> dict[str, Any]:
    rule, occurrences = RULES[code], report.occurrences[code]
    examples = report.examples.get(code, [])
    kinds = occurrences.kinds.most_common(KINDS_SHOWN)
    count, fixed = report.counts[code], shown.fixes.codes.get(code, 0) if shown.fixes else 0
    hint = kinds[0][0].hint if len({kind.hint for kind, _ in kinds}) == 1 else rule.hint
    # equal issues as one line; a hint that all of the code have is not repeated
    alike = [{**k._asdict(), "hint": k.hint if k.hint != hint else "", "count": number} for k, number in kinds]
    of_dataset = report.is_of_dataset(code)
    fixable = "" if fixed == 0 else "may be fixable" if fixed is None else f"{fixed:,} fixable"
    fixable = "fixable" if fixed == count else fixable
    shares = [] if of_dataset else occurrences.shares(report.row_count)
    most_rows = max(shares, default=0) or 1  # a step is the fuller the more rows of the code it has
    strip = runs([s / most_rows for s in shares], 0.35, 0.65)
    return {
        "code": code,
        "rule": rule,
        "severity": str(rule.severity),
        "count": count,
        "rows": occurrences.rows,
        "share": "" if of_dataset and not occurrences.rows else share(occurrences.rows, report.row_count),
        "fixable": fixable,
        "where": _where(report, code),
        "hint": hint,
        "strip": None if of_dataset else {"width": len(shares), "runs": strip},
        "kinds": alike if len(kinds) < count else [],
        "others": count - sum(number for _, number in kinds),
        "examples": examples[:most],
        "more": count - len(examples[:most]),
        **_csv(report, shown, code),
    }


def _csv(report: ReportSummary, shown: Shown, code: str) -> dict[str, Any]:
    """The issues of a code on the rows that the page can open, as a CSV file, and how many of how many it has."""
    rows: list[list[object]] = [["row", "line", "column", "path", *(["value"] if report.values else []), "message"]]
    for issue in (i for i in shown.issues if i.code == code):
        row = issue.row
        value = [shown.values.get((row, issue.column, issue.path))] if report.values and row is not None else []
        line = None if row is None else shown.lines.get(row)
        rows.append([row, line, issue.column, issue.path, *value, issue.message])
    link, lines = csv_link(rows)
    return {"csv": link, "listed": lines - 1 if len(rows) > 1 else 0}


def _where(report: ReportSummary, code: str) -> str:
    """The column or path, and the rows if they are few."""
    occurrences, examples = report.occurrences[code], report.examples[code]
    paths = list(dict.fromkeys(kind.path for kind in occurrences.kinds if kind.path))
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    parts = [f"{paths[0]}{more}"] if paths else []
    if report.is_of_dataset(code):
        parts.append("whole dataset")
    elif occurrences.rows <= ROWS_NAMED:
        named = dict.fromkeys((i.row, i.request_id) for i in examples)
        parts.append(", ".join(f"row {row:,}" + (f" ({id})" if id else "") for row, id in named if row is not None))
    return " · ".join(parts)


def _facts(report: ReportSummary) -> list[tuple[str, str]]:
    facts = {
        "File": report.name or "data in memory",
        "Rows": f"{report.row_count:,}, {report.invalid_count:,} invalid",
        "Format": f"{report.format} ({report.format_reason})",
        "Outputs": f"{report.outputs}: {_OUTPUTS[report.outputs]}" if report.has_metrics else "",
        **dict(report.derivation()),
        "Rules switched off": ", ".join(report.codes_off),
        "Checked with": f"agent-eval-schema {__version__}",
    }
    return [(term, value) for term, value in facts.items() if value]


_OUTPUTS = {
    "provided": "a response or a trace is expected in every row",
    "generated": "the agent will be run on the requests",
}


CODES = 12
"""Codes of the table of issues that occur together, at most."""


def together(report: ReportSummary) -> dict[str, Any] | None:
    """A line and a column per code; None if no two rows have issues of the same two codes."""
    rows = Counter[str]()
    for (one, other), count in report.together.items():
        if count > 1:  # in one row, it is chance
            rows[one] += count
            rows[other] += count
    if not rows:
        return None
    codes = sorted(code for code, _ in rows.most_common(CODES))
    return {"codes": codes, "lines": [_line(report, code, codes) for code in codes], "more": len(rows) - len(codes)}


def _line(report: ReportSummary, code: str, codes: list[str]) -> dict[str, Any]:
    """The rows of a code, then of those the rows that have each of the codes."""
    own = report.occurrences[code].rows
    counts = [report.together.get((min(code, c), max(code, c)), 0) if c != code else None for c in codes]
    return {
        "code": code,
        "name": RULES[code].name,
        "rows": own,
        "cells": [
            {"text": "·" if count is None else f"{count:,}" if count else "", "mood": heat((count or 0) / max(own, 1))}
            | {"title": f"{code} and {other}: {plural(count, 'row')}, {share(count, own)} of {code}" if count else ""}
            for other, count in zip(codes, counts, strict=True)
        ],
    }
