"""A comparison as text, in the order of a summary: rows, fields from what to what, issues, what can be measured, and
last the verdict.

Computes nothing: every number is the DiffSummary's. All text from cells goes through `visible`, and no markup is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import COMMON, SYSTEMS
from agent_eval_schema.metrics.support import metrics_of
from agent_eval_schema.render.console import NEW_STYLE, OLD_STYLE, drawn, print_more, print_signed, print_verdict, sides
from agent_eval_schema.render.diff.summary import (
    CellChange,
    DatasetSummary,
    DiffPlace,
    DiffSummary,
    IssueChange,
    MetricChange,
    MetricRow,
)
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, STYLES, NextCommand, command_on, counted, plural
from agent_eval_schema.text.visible import visible

ROWS_SHOWN = 5
"""Rows added, removed, made invalid … in a text; JSON and the frames of a Diff have more."""

MOST_SELECTED = 5
"""Codes that a command selects, at most: with more it would be no line to type."""


def diff_text(summary: DiffSummary, *, color: bool, width: int | None, system: str) -> str:
    """The whole comparison for a terminal of the given width (that of the terminal, or 100, if not given)."""
    metrics_of(system)  # a wrong name is told, not drawn as nothing
    return drawn(lambda console: print_diff(console, summary, system), color, width)


def print_diff(console: Console, summary: DiffSummary, system: str = "databricks") -> None:
    """Draw the comparison on a console that reads no markup."""
    for sign, side, style in (("---", summary.old, OLD_STYLE), ("+++", summary.new, NEW_STYLE)):
        console.print(Text(f"{sign} {described(side)}", style="dim " + style))
    _print_rows(console, summary)
    _print_fields(console, summary)
    _print_issues(console, summary)
    _print_metrics(console, summary, system)
    if summary.rows.moved:
        console.print("\nRow numbers are zero-based. “row OLD → NEW” is a moved row.", style="dim")
    sign, style = ("✗ ", "red") if summary.losses else ("✓ ", "green") if summary.same else ("", "")
    console.print()
    print_verdict(console, sign + headline(summary), style, next_commands(summary))


# ---------------------------------------------------------------------------------------------------------------------
# the verdict and the next command
def described(side: DatasetSummary) -> str:
    """One side in a line."""
    where = f"{visible(side.source)}: " if side.source else ""
    return f"{where}{plural(side.rows, 'row')}, {side.valid:,} valid; {side.format} format, outputs {side.outputs}"


def headline(summary: DiffSummary) -> str:
    """One sentence: what happened to the data set?"""
    rows = summary.rows
    if summary.same:
        moved = f"; {rows.moved:,} of them moved" if rows.moved else ""
        return f"No difference: {'the row is' if rows.new == 1 else f'all {rows.new:,} rows are'} the same{moved}."
    head = f"{rows.changed:,} of {plural(rows.matched, 'matched row')} changed" if rows.changed else "No row changed"
    parts = counted([(rows.added, "added"), (rows.removed, "removed"), (rows.moved, "moved")])
    metrics = (rows.lost_a_metric, "lost a metric"), (rows.gained_a_metric, "gained a metric")
    validity = (rows.became_invalid, "became invalid"), (rows.became_valid, "became valid")
    return "; ".join([", ".join([head, *parts]), *counted([*validity, *metrics])]) + "."


def next_commands(summary: DiffSummary) -> list[NextCommand]:
    """What shows why the new version is worse: its new issues, else the metrics that it lost."""
    name = summary.new.source
    severities = (Severity.ERROR, Severity.WARNING)
    codes = [i.code for i in summary.issues if i.severity in severities and (i.gained or i.on_added)]
    if codes:
        chosen = ("--select", ",".join(codes)) if len(codes) <= MOST_SELECTED else ()
        command = command_on(name, "validate", *chosen, instead="validate_eval_set(new)")
        return [NextCommand(command, "shows the new issues")]
    if summary.rows.lost_a_metric and (command := command_on(name, "metrics")):
        return [NextCommand(command, "shows what would enable more metrics")]
    return []


# ---------------------------------------------------------------------------------------------------------------------
# rows and fields
def _print_rows(console: Console, summary: DiffSummary) -> None:
    rows = summary.rows
    _print_columns(console, summary)
    for title, count, places, sign, style in (
        ("Removed", rows.removed, summary.removed, "-", OLD_STYLE),
        ("Added", rows.added, summary.added, "+", NEW_STYLE),
        ("Invalid now", rows.became_invalid, summary.became_invalid, "✗", OLD_STYLE),
        ("Valid now", rows.became_valid, summary.became_valid, "✓", NEW_STYLE),
    ):
        if count:
            _print_title(console, f"{title} ({count:,})")
            for place in places[:ROWS_SHOWN]:
                line = _label(place).append(f"  {visible(place.asks)}")
                line.append(f"  invalid: {', '.join(place.errors)}" if place.errors else "", style=OLD_STYLE)
                print_signed(console, sign, style, line, 2)
            print_more(console, count - len(places[:ROWS_SHOWN]), 2)


def _print_columns(console: Console, summary: DiffSummary) -> None:
    if not (summary.columns_added or summary.columns_dropped):
        return
    _print_title(console, "Columns")
    for names, sign, style in ((summary.columns_dropped, "-", OLD_STYLE), (summary.columns_added, "+", NEW_STYLE)):
        if names:
            print_signed(console, sign, style, Text(", ".join(map(visible, names))), 2)


def _print_fields(console: Console, summary: DiffSummary) -> None:
    if not summary.fields:
        return
    _print_title(console, f"Changed ({summary.rows.changed:,})")
    for field in summary.fields:
        name = Text(visible(field.field), style="cyan").append(f"  {plural(field.rows, 'row')}", style="default")
        console.print(Padding(name, (0, 0, 0, 2)))
        for change in field.examples[:EXAMPLES_SHOWN]:
            _print_change(console, field.field, change)
        print_more(console, field.rows - len(field.examples[:EXAMPLES_SHOWN]), 6)


def _print_change(console: Console, field: str, change: CellChange) -> None:
    console.print(Padding(_label(change.row), (0, 0, 0, 6)))
    for edit in change.edits[:EXAMPLES_SHOWN]:
        if edit.path != field:
            console.print(Padding(Text(visible(edit.path), style="cyan"), (0, 0, 0, 8)))
        for sign, style, line in sides(edit):
            print_signed(console, sign, style, line, 8)
    print_more(console, change.more_edits + len(change.edits[EXAMPLES_SHOWN:]), 8)


# ---------------------------------------------------------------------------------------------------------------------
# issues and metrics
def _print_issues(console: Console, summary: DiffSummary) -> None:
    if not summary.issues:
        return
    _print_title(console, "Issues")
    for line in summary.issues:
        title = Text(f"{line.code} {line.name}", style=STYLES[line.severity])
        title.append(f"  {line.old:,} → {line.new:,}  ", style="not bold default")
        title.append(f"({moves(line)})", style="not bold default")
        console.print(Padding(title, (0, 0, 0, 2)))
        _print_found(console, line.gained_examples, "+", NEW_STYLE)
        _print_found(console, line.lost_examples, "-", OLD_STYLE)


def moves(line: IssueChange) -> str:
    """In words, why a number is another one."""
    on_others = (line.on_added, "on added rows"), (line.on_removed, "on removed rows")
    return ", ".join(counted([(line.gained, "gained"), (line.lost, "lost"), *on_others]))


def _print_found(console: Console, issues: Sequence[Issue], sign: str, style: str) -> None:
    for issue in issues[:EXAMPLES_SHOWN]:
        line = Text()
        if issue.row is not None:
            line.append(f"row {issue.row:,}", style="bold")
            line.append(f" ({visible(issue.request_id)})" if issue.request_id else "").append("  ")
        line.append(f"{visible(issue.path)}: " if issue.path else "", style="cyan")
        line.append(visible(issue.message))
        print_signed(console, sign, style, line, 6)


def _print_metrics(console: Console, summary: DiffSummary, system: str) -> None:
    for name in SYSTEMS if system == "all" else (system,):
        of_system = [line for line in summary.metrics if line.system == name]
        differing = [line for line in of_system if line.gained or line.lost or line.old != line.new]
        if differing:
            _print_title(console, f"Metric coverage ({name}): {len(differing)} of {len(of_system)} metrics differ")
            _print_changes(console, differing)
    others = Counter(
        line.system
        for line in summary.metrics
        if (line.gained or line.lost) and system not in (line.system, "all") and line.system in COMMON
    )
    if others:
        counts = ", ".join(f"{plural(count, 'metric')} of {name}" for name, count in others.items())
        console.print(Padding(Text(f"Gained or lost as well: {counts} (--system all)", style="dim"), (0, 0, 0, 2)))


def _print_changes(console: Console, lines: list[MetricChange]) -> None:
    """A line per metric; what neighbors have as the reason is on one line below them."""
    numbers = [f"{line.old:,}/{line.old_rows:,} → {line.new:,}/{line.new_rows:,}" for line in lines]
    longest, widest = max(len(line.metric) for line in lines), max(map(len, numbers))
    reasons = [metric_reasons(line) for line in lines]
    one_line = 4 + longest + widest <= console.width
    for i, (line, told) in enumerate(zip(lines, numbers, strict=True)):
        if one_line:
            console.print(f"  {line.metric:<{longest}}  {told:>{widest}}", soft_wrap=True)
        else:
            console.print(f"  {line.metric}\n    {told}", soft_wrap=True)
        if i + 1 == len(lines) or reasons[i + 1] != reasons[i]:
            console.print(Padding(Text("↳ ", style="dim").append(reasons[i]), (0, 0, 0, 4)))


def metric_reasons(line: MetricChange) -> Text:
    """Which rows lost and gained it, and why; rows that came and went are only counted."""
    text = Text()
    for rows, count, sign, style in (
        (line.lost_examples, line.lost, "-", OLD_STYLE),
        (line.gained_examples, line.gained, "+", NEW_STYLE),
    ):
        if count:
            text.append("; " if text else "").append(f"{sign}{count:,} ", style=style)
            more = "; …" if count > EXAMPLES_SHOWN else ""
            text.append("; ".join(map(_reason, rows[:EXAMPLES_SHOWN])) + more)
    for count, sign, what, style in (
        (line.on_removed, "-", "removed", OLD_STYLE),
        (line.on_added, "+", "added", NEW_STYLE),
    ):
        if count:
            text.append("; " if text else "").append(f"{sign}{count:,} ", style=style).append(what)
    return text


def _reason(row: MetricRow) -> str:
    name = visible(row.row.request_id) if row.row.request_id else f"row {row.row.new_row:,}"
    return f"{name} {row.why}"


# ---------------------------------------------------------------------------------------------------------------------
# parts
def _label(place: DiffPlace) -> Text:
    text = Text().append(f"row {place.rows}", style="bold")
    return text.append(f" ({visible(place.request_id)})" if place.request_id else "")


def _print_title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))
