"""The report as text: a headline, the issues by code, and what can be measured.

Computes nothing: every number is the summary's. All text from cells goes through `visible`, and no markup is read.
"""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.metrics.support import Support
from agent_eval_schema.render.console import EXAMPLES_SHOWN, STYLES, TITLES, drawn, plural
from agent_eval_schema.render.report.summary import ReportSummary
from agent_eval_schema.rules import RULES
from agent_eval_schema.text.visible import visible

BAR = 10


def report_text(report: ReportSummary, *, color: bool, width: int | None, system: str) -> str:
    """The whole report for a terminal of the given width (that of the terminal, or 100, if not given)."""
    return drawn(lambda console: print_report(console, report, system), color, width)


def metrics_text(report: ReportSummary, *, color: bool, width: int | None = None, system: str | None = None) -> str:
    """Only the part of the report that says what can be measured, a block a system."""
    systems = SYSTEMS if system == "all" else (system or report.system,)

    def draw(console: Console) -> None:
        for name in systems:
            _print_metrics(console, report.support(name), name, report.outputs)

    return drawn(draw, color, width).lstrip("\n")


def print_report(console: Console, report: ReportSummary, system: str | None = None) -> None:
    """Draw the report on a console that reads no markup."""
    system = system or report.system
    _print_headline(console, report)
    for severity in Severity:
        _print_issues(console, report, severity)
    if report.has_metrics:
        _print_metrics(console, report.support(system), system, report.outputs)
    if report.counts:
        console.print(
            "\nRows are counted from 0. `agent-eval-schema explain CODE` says more about a code.", style="dim"
        )


def _print_headline(console: Console, report: ReportSummary) -> None:
    where = f"{visible(report.name)}: " if report.name else ""
    outputs = f", outputs {report.outputs}" if report.has_metrics else ""
    console.print(f"{where}{report.format} format ({visible(report.format_reason)}){outputs}", style="dim")
    console.print(Text(report_headline(report), style="bold green" if report.ok else "bold red"))
    if report.codes_off:
        console.print(f"{plural(len(report.codes_off), 'rule')} switched off", style="yellow")
    if not report.values:
        console.print("Nothing that stands in a cell is shown.", style="dim")
    if report.derived:
        fields = ", ".join(f"{name} {rows:,}" for name, rows in report.derived.items())
        console.print(f"Taken from traces (rows): {fields}", style="dim")


def report_headline(report: ReportSummary) -> str:
    """One sentence: can this data set be evaluated?"""
    errors, warnings = report.count(Severity.ERROR), report.count(Severity.WARNING)
    if not report.row_count:
        return "✗ There are no rows."
    if report.invalid_count:
        head = f"✗ {report.invalid_count:,} of {report.row_count:,} rows cannot be evaluated"
    elif errors:
        head = f"✗ All {report.row_count:,} rows are valid, but the data set is not"
    else:
        head = f"✓ All {report.row_count:,} rows are valid" if report.row_count > 1 else "✓ The row is valid"
    return f"{head}: {plural(errors, 'error')}, {plural(warnings, 'warning')}." if errors or warnings else f"{head}."


def _print_issues(console: Console, report: ReportSummary, severity: Severity) -> None:
    codes = report.codes_of(severity)
    if not codes:
        return
    console.print()
    console.print(Text(f"{TITLES[severity]} ({report.count(severity):,})", style=STYLES[severity]))
    for code in codes:
        _print_code(console, report, code, severity)


def _print_code(console: Console, report: ReportSummary, code: str, severity: Severity) -> None:
    rule, count = RULES[code], report.counts[code]
    title = Text.assemble((f"{code} {rule.name}", STYLES[severity]), f"  {count:,} ×  " if count > 1 else "  ")
    title.append(rule.doc.partition("\n")[0])
    console.print(Padding(title, (0, 0, 0, 2)))
    shown = report.examples.get(code, [])[:EXAMPLES_SHOWN]
    for i, issue in enumerate(shown):
        same_follows = i + 1 < len(shown) and shown[i + 1].hint == issue.hint
        console.print(Padding(_example(issue, with_hint=not same_follows), (0, 0, 0, 6)))
    if count > len(shown):
        console.print(Padding(Text(f"… and {count - len(shown):,} more", style="dim"), (0, 0, 0, 6)))


def _example(issue: Issue, *, with_hint: bool) -> Text:
    text = Text()
    if issue.row is not None:
        text.append(f"row {issue.row:,}", style="bold")
        text.append(f" ({visible(issue.request_id)})" if issue.request_id else "")
        text.append("  ")
    if issue.path:
        text.append(f"{visible(issue.path)}: ", style="cyan")
    text.append(visible(issue.message))
    text.append(f"\n  → {visible(issue.hint)}" if with_hint and issue.hint else "", style="green")
    return text


def _print_metrics(console: Console, support: list[Support], system: str, outputs: str) -> None:
    title = f"What can be measured ({system})" + (" once the app has run" if outputs == "generated" else "")
    console.print()
    console.print(Text(title, style="bold"))
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for line in support:
        rows = f"{line.supported:,}/{line.total:,}"
        table.add_row(line.metric, _bar(line), rows, Text(support_advice(line), style="dim"))
    console.print(Padding(table, (0, 0, 0, 2)))


def _bar(line: Support) -> Text:
    filled = -(-line.supported * BAR // line.total) if line.total else 0
    if line.supported < line.total:
        filled = min(filled, BAR - 1)
    bar = Text("█" * filled, style="green")
    bar.append("░" * (BAR - filled), style="dim")
    return bar


def support_advice(line: Support) -> str:
    """What the support of a metric depends on, and what would give it more rows."""
    parts = [line.condition] if line.condition and line.supported else []
    if line.unlock:
        parts.append(f"+{line.unlock_rows:,} with {line.unlock}")
    return "; ".join(parts)
