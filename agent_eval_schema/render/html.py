"""The report as HTML: a standalone page, and the same body inline in a notebook.

What is shown is model output and user text, so a page is safe by construction: every value that a template prints goes
through `visible` and is escaped, there is no script, and the page's own policy forbids loading anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from agent_eval_schema import __version__
from agent_eval_schema.excerpts import Excerpt, Place
from agent_eval_schema.figures import CELLS, FIGURES, Bar, Distribution, Presence
from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.metrics.support import Support
from agent_eval_schema.render.text import TITLES, advice, plural, verdict
from agent_eval_schema.rules import RULES
from agent_eval_schema.visible import visible

if TYPE_CHECKING:
    from agent_eval_schema.production.summary import Summary
    from agent_eval_schema.report import Report

EXAMPLES_ON_A_PAGE = 600
"""Examples that a page shows in all, so that it opens at once however many codes there are."""

EXAMPLES_OPEN = 8
"""So few examples are all shown at once; of more, only those of the first error."""

EXAMPLES_INLINE = 3
"""Examples of a code in a notebook, whose file holds every output."""


def page(title: str, template: str, *styles: str, **values: Any) -> str:
    """A standalone page around a template's body; `styles` are those that it needs beside the one of all pages."""
    return _rendered(
        "page.html", title=title, style=_style(*styles), body=Markup(_rendered(template, page=True, **values))
    )


def inline(template: str, *styles: str, **values: Any) -> str:
    """The same body for the output cell of a notebook."""
    return _rendered("inline.html", style=_style(*styles), body=Markup(_rendered(template, page=False, **values)))


def _rendered(template: str, **values: Any) -> str:
    return str(_environment().get_template(template).render(**values))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("agent_eval_schema", "render/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["code"] = _with_code
    return environment


def _with_code(text: str) -> Markup:
    """`names` of a message in the typeface of code; every part is escaped by itself."""
    parts = visible(text).split("`")
    if len(parts) % 2 == 0:  # one without its partner
        return escape(visible(text))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))


def _shown(value: Any) -> Any:
    """What a template prints: only the renderer's own markup goes out as it is."""
    return value if isinstance(value, Markup) else visible(value)


@lru_cache(maxsize=8)
def _style(*more: str) -> Markup:
    files = ("style.css", *more)
    return Markup("".join(_environment().loader.get_source(_environment(), f)[0] for f in files))  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------------------------------
# a report


def report_page(report: Report) -> str:
    """The report as a standalone HTML page."""
    return page(_title(report), "report.html", **_drawn(report, 20, "all", inline=False))


def build_page(summary: Summary, report: Report) -> str:
    """What became of a logged table, and the report on the rows that were made of it, as one page."""
    from agent_eval_schema.render.funnel import funnel_values

    title = f"{os.path.basename(summary.table or '') or 'table'}: {summary.funnel}"
    return page(
        title, "build.html", funnel=funnel_values(summary, alone=False), **_drawn(report, 20, "all", inline=False)
    )


def report_inline(report: Report) -> str:
    """The report for the output cell of a notebook."""
    return inline("report.html", **_drawn(report, EXAMPLES_INLINE, report.system, inline=True))


def _title(report: Report) -> str:
    where = os.path.basename(report.name) if report.name else "evaluation set"
    return f"{where}: {report.valid_count:,} of {report.row_count:,} rows valid"


def _drawn(report: Report, most: int, system: str, *, inline: bool) -> dict[str, Any]:
    groups = _groups(report, most)
    bad = report.count(Severity.ERROR) + report.count(Severity.WARNING)
    plots = [plot(*FIGURES[name], d) for name, d in report.distributions.items()]
    parts = [("issues", "Issues")] if groups else []
    parts += [("metrics", "Metrics"), ("fields", "Fields")] if report.row_count and report.has_metrics else []
    parts += [("numbers", "Latency, tokens, tool calls")] if plots else []
    return {
        "name": os.path.basename(report.name) if report.name else "",
        "verdict": verdict(report),
        "mood": "good" if report.ok and report.row_count else "error",
        "valid": report.valid_count,
        "total": report.row_count,
        "valid_share": percent(report.valid_count, report.row_count),
        "rules_off": f"{plural(report.rules_off, 'rule')} switched off" if report.rules_off else "",
        "parts": [*parts, ("source", "Source")],
        "groups": groups,
        "issues_title": "What is wrong, and how to mend it" if bad else "Worth knowing",
        "has_metrics": report.has_metrics,
        "generated": report.outputs == "generated",
        "systems": [_system(report, s, inline) for s in (SYSTEMS if system == "all" else (system,))],
        "step": -(-report.row_count // CELLS),
        "presence": [_presence(line) for line in report.presence],
        "plots": plots,
        "facts": _facts(report),
        "version": __version__,
    }


def percent(part: float, whole: float) -> float:
    """A width: it is only full, or nothing at all, if that is exactly so."""
    if part in (0, whole):
        return 100.0 if part else 0.0
    return min(max(round(100 * part / whole, 1), 0.5), 99.5)


def _groups(report: Report, most: int) -> list[dict[str, Any]]:
    by_severity = {s: [c for c in report.counts if RULES[c].severity is s] for s in Severity}
    most = min(most, max(EXAMPLES_ON_A_PAGE // max(len(report.counts), 1), 1))
    places = report.excerpts
    few = sum(len(e) for e in report.examples.values()) <= EXAMPLES_OPEN
    return [
        {
            "severity": str(severity),
            "title": f"{TITLES[severity]} ({report.count(severity):,})",
            "codes": [_code(report, code, most, places, open=few or i == 0) for i, code in enumerate(codes)],
        }
        for severity, codes in by_severity.items()
        if codes
    ]


def _code(report: Report, code: str, most: int, places: dict[Place, Excerpt], *, open: bool) -> dict[str, Any]:
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
        "examples": [_example(issue, places) for issue in shown],
        "more": report.counts[code] - len(shown),
    }


def _example(issue: Issue, places: dict[Place, Excerpt]) -> dict[str, Any]:
    return {
        "row": f"{issue.row:,}" if issue.row is not None else "",
        "request_id": issue.request_id or "",
        "path": issue.path or "",
        "message": issue.message,
        "hint": issue.hint if issue.hint != RULES[issue.code].hint else "",
        "excerpt": None if issue.row is None else places.get((issue.row, issue.column, issue.path)),
    }


def _system(report: Report, system: str, inline: bool) -> dict[str, Any]:
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
        "advice": advice(line),
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


WIDTH, HEIGHT = 300, 72
"""Of a distribution's bars."""


def plot(
    title: str,
    unit: str,
    distribution: Distribution,
    bars: list[Bar] | None = None,
    show: Callable[[float], str] | None = None,
    quantile: Callable[[float], float] | None = None,
) -> dict[str, Any]:
    """A distribution for the figure of a template, in its own bars or in others, its numbers as `show` writes them; its
    quantiles too may be told by somebody who knows them better."""
    show, quantile = show or _short, quantile or distribution.quantile
    bars, end = (distribution.bars(), distribution.highest) if bars is None else (bars, bars[-1].high)
    marks = {"median": 0.5, "p90": 0.9, "p99": 0.99}
    quantiles = ", ".join(f"{k} {show(quantile(q))}" for k, q in marks.items())
    low, high, count = show(bars[0].low), show(end), plural(distribution.count, "row")
    return {
        "title": title,
        "unit": unit,
        "count": count,
        "bars": [_bar(bar, i, bars, show) for i, bar in enumerate(bars)],
        "low": low,
        "high": high,
        "quantiles": f"{quantiles}, highest {show(distribution.highest)}",
        "label": f"{title} of {count} from {low} to {' '.join([high, unit]).rstrip()}: {quantiles}",
    }


def _bar(bar: Bar, i: int, bars: list[Bar], show: Callable[[float], str]) -> dict[str, Any]:
    step = min(WIDTH / len(bars), 40.0)
    height = round(HEIGHT * bar.count / max(b.count for b in bars), 1)
    height = max(height, 1.5) if bar.count else 0
    values = show(bar.low) if bar.low == bar.high else f"{show(bar.low)} to {show(bar.high)}"
    return {
        "x": round(i * step, 1),
        "y": round(4 + HEIGHT - height, 1),
        "width": round(step - 1, 1),
        "height": height,
        "title": f"{values}: {plural(bar.count, 'row')}",
    }


def _short(value: float) -> str:
    """Three digits are what a distribution knows."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _facts(report: Report) -> list[tuple[str, str]]:
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
