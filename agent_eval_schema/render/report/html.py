"""The report as HTML: a standalone page, and the same body inline in a notebook.

What is shown is model output and user text, so a page is safe by construction: every value that a template prints goes
through `visible` and is escaped, there is no script, and the page's own policy forbids loading anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.metrics.support import Support
from agent_eval_schema.render.console import TITLES, plural
from agent_eval_schema.render.figures import CELLS, FIGURES, Presence
from agent_eval_schema.render.page import inline, page, percent, plot
from agent_eval_schema.render.report.summary import Excerpt, Location, ReportSummary
from agent_eval_schema.render.report.text import report_headline, support_advice
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.version import __version__

EXAMPLES_ON_A_PAGE = 600
"""Examples that a page shows in all, so that it opens at once however many codes there are."""

EXAMPLES_OPEN = 8
"""So few examples are all shown at once; of more, only those of the first error."""

EXAMPLES_INLINE = 3
"""Examples of a code in a notebook, whose file holds every output."""


Excerpts = Mapping[Location, Excerpt]
"""The cells around what the examples are about."""


def report_page(report: ReportSummary, excerpts: Excerpts) -> str:
    """The report as a standalone HTML page."""
    return page(_title(report), "report.html", **page_values(report, excerpts))


def report_inline(report: ReportSummary, excerpts: Excerpts) -> str:
    """The report for the output cell of a notebook."""
    return inline("report.html", **_values(report, excerpts, EXAMPLES_INLINE, (report.system,), inline=True))


def page_values(report: ReportSummary, excerpts: Excerpts) -> dict[str, Any]:
    """What the template report.html draws on a page."""
    return _values(report, excerpts, 20, SYSTEMS, inline=False)


def _title(report: ReportSummary) -> str:
    where = os.path.basename(report.name) if report.name else "evaluation set"
    return f"{where}: {report.valid_count:,} of {report.row_count:,} rows valid"


def _values(
    report: ReportSummary, excerpts: Excerpts, most: int, systems: Iterable[str], *, inline: bool
) -> dict[str, Any]:
    groups = _groups(report, excerpts, most)
    bad = report.count(Severity.ERROR) + report.count(Severity.WARNING)
    plots = [plot(*FIGURES[name], d) for name, d in report.distributions.items()]
    parts = [("issues", "Issues")] if groups else []
    parts += [("metrics", "Metrics"), ("fields", "Fields")] if report.row_count and report.has_metrics else []
    parts += [("numbers", "Latency, tokens, tool calls")] if plots else []
    return {
        "name": os.path.basename(report.name) if report.name else "",
        "verdict": report_headline(report),
        "mood": "good" if report.ok and report.row_count else "error",
        "valid": report.valid_count,
        "total": report.row_count,
        "valid_share": percent(report.valid_count, report.row_count),
        "rules_off": f"{plural(len(report.codes_off), 'rule')} switched off" if report.codes_off else "",
        "parts": [*parts, ("source", "Source")],
        "groups": groups,
        "issues_title": "What is wrong, and how to mend it" if bad else "Worth knowing",
        "has_metrics": report.has_metrics,
        "generated": report.outputs == "generated",
        "systems": [_system(report, system, inline) for system in systems],
        "step": -(-report.row_count // CELLS),
        "presence": [_presence(line) for line in report.presence],
        "plots": plots,
        "facts": _facts(report),
        "version": __version__,
    }


def _groups(report: ReportSummary, excerpts: Excerpts, most: int) -> list[dict[str, Any]]:
    by_severity = {s: report.codes_of(s) for s in Severity}
    most = min(most, max(EXAMPLES_ON_A_PAGE // max(len(report.counts), 1), 1))
    few = sum(len(e) for e in report.examples.values()) <= EXAMPLES_OPEN
    return [
        {
            "severity": str(severity),
            "title": f"{TITLES[severity]} ({report.count(severity):,})",
            "codes": [_code(report, excerpts, code, most, open=few or i == 0) for i, code in enumerate(codes)],
        }
        for severity, codes in by_severity.items()
        if codes
    ]


def _code(report: ReportSummary, excerpts: Excerpts, code: str, most: int, *, open: bool) -> dict[str, Any]:
    rule, shown = RULES[code], report.examples.get(code, [])[:most]
    what, _, why = rule.doc.partition("\n")
    return {
        "code": code,
        "name": rule.name,
        "count": report.counts[code],
        "what": what,
        "why": [" ".join(p.split()) for p in why.split("\n\n") if p.strip()],
        "hint": rule.hint,
        "open": open and rule.severity is Severity.ERROR,
        "examples": [_example(issue, excerpts) for issue in shown],
        "more": report.counts[code] - len(shown),
    }


def _example(issue: Issue, excerpts: Excerpts) -> dict[str, Any]:
    return {
        "row": f"{issue.row:,}" if issue.row is not None else "",
        "request_id": issue.request_id or "",
        "path": issue.path or "",
        "message": issue.message,
        "hint": issue.hint if issue.hint != RULES[issue.code].hint else "",
        "excerpt": None if issue.row is None else excerpts.get((issue.row, issue.column, issue.path)),
    }


def _system(report: ReportSummary, system: str, inline: bool) -> dict[str, Any]:
    lines = report.support(system)
    full = sum(line.supported > 0 for line in lines)
    return {
        "name": system,
        "summary": f"{full} of {len(lines)} metrics can score at least one row",
        "open": inline or system == report.system,
        "lines": [_metric(line) for line in lines],
    }


def _metric(line: Support) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "supported": line.supported,
        "total": line.total,
        "share": percent(line.supported, line.total),
        "advice": support_advice(line),
    }


def _presence(line: Presence) -> dict[str, Any]:
    """Neighbouring steps that are equally full are one rectangle."""
    runs: list[dict[str, Any]] = []
    for x, share in enumerate(line.shares):
        opacity = 0.0 if share == 0 else round(0.2 + 0.8 * share, 2)
        if runs and runs[-1]["opacity"] == opacity:
            runs[-1]["width"] += 1
        else:
            runs.append({"x": x, "width": 1, "opacity": opacity})
    kept = [run for run in runs if run["opacity"]]
    field = "valid rows" if line.field == "valid" else line.field
    return {"field": field, "rows": line.rows, "width": len(line.shares), "runs": kept}


def _facts(report: ReportSummary) -> list[tuple[str, str]]:
    derived = ", ".join(f"{name} {rows:,}" for name, rows in report.derived.items())
    facts = {
        "File": report.name or "data in memory",
        "Rows": f"{report.row_count:,}, of which {report.invalid_count:,} invalid",
        "Format": f"{report.format} ({report.format_reason})",
        "Outputs": f"{report.outputs}: {_OUTPUTS[report.outputs]}",
        "Taken from traces (rows)": derived,
        "Rules switched off": ", ".join(report.codes_off),
        "Checked with": f"agent-eval-schema {__version__}",
    }
    return [(term, value) for term, value in facts.items() if value]


_OUTPUTS = {
    "provided": "a response or a trace is expected in every row",
    "generated": "the app will be run on the requests",
}
