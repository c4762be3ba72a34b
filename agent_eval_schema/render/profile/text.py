"""A profile as text: size and power, duplicates, leakage, coverage, balance, cost, and last the verdict and what to do
next.

Computes nothing. All text from cells goes through `visible`, and no markup is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent_eval_schema.render.console import drawn, print_columns, print_more, print_verdict
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, NextCommand, plural
from agent_eval_schema.render.profile.summary import Breakdown, ProfileSummary, RowExample
from agent_eval_schema.render.profile.words import (
    POWER_COLUMNS,
    about_balance,
    about_cost,
    about_documents,
    about_duplicates,
    about_rows,
    about_thin,
    assumptions,
    described,
    headline,
    power_numbers,
    short,
)
from agent_eval_schema.text.visible import visible

HEADINGS = ("Metric", "Rows", "Worth", "±", "Paired", "Unpaired", "for 5", "for 3", "for 1")
"""Of the table of metrics."""

LISTED = 10
"""Lines of a table."""


def profile_text(summary: ProfileSummary, *, color: bool, width: int | None) -> str:
    """The whole profile for a terminal of the given width (that of the terminal, or 100, if not given)."""
    return drawn(lambda console: print_profile(console, summary), color, width)


def print_profile(console: Console, summary: ProfileSummary) -> None:
    """Draw the profile on a console that reads no markup."""
    console.print(Text(visible(described(summary)), style="dim"))
    for note in summary.notes if summary.valid else summary.notes[1:]:
        console.print(Text(visible(note), style="yellow"))
    if summary.valid:
        _print_power(console, summary)
        _print_duplicates(console, summary)
        _print_leaks(console, summary)
        _print_coverage(console, summary)
        _print_lines(console, "Balance and age", about_balance(summary.balance))
        _print_lines(console, "Cost of one evaluation", about_cost(summary))
    console.print()
    sign, style = ("", "") if summary.valid else ("✗ ", "red")
    print_verdict(console, sign + headline(summary), style, next_commands(summary))


def next_commands(summary: ProfileSummary) -> list[NextCommand]:
    """The steps, each with the command that helps."""
    return [NextCommand(s.command, f"{i}. {s.text.rstrip('.')}") for i, s in enumerate(summary.next_steps, 1)]


def _print_power(console: Console, summary: ProfileSummary) -> None:
    _print_title(console, "Size and power")
    supported = [p for p in summary.power if p.rows]
    if not supported:
        console.print(Padding(Text("No row supports a metric."), (0, 0, 0, 2)))
        return
    lines: list[Sequence[str]] = []
    notes: dict[str, list[str]] = {}
    for power in supported:
        if power.note:
            notes.setdefault(power.note, []).append(short(power.metric))
            continue
        lines.append((short(power.metric), f"{power.rows:,}", *power_numbers(power)))
    if lines:
        print_columns(console, HEADINGS, lines, indent=2)
        console.print(Padding(Text(f"{POWER_COLUMNS} {assumptions(summary)}", style="dim"), (0, 0, 0, 2)))
    for note, metrics in notes.items():
        _print_line(console, f"{', '.join(metrics)}: {note}.")


def _print_duplicates(console: Console, summary: ProfileSummary) -> None:
    found = summary.duplicates
    if found.exact or found.near:
        _print_title(console, "Repeated questions")
        _print_line(console, about_duplicates(found))
        for group in found.groups[:EXAMPLES_SHOWN]:
            _print_line(console, f"{plural(group.rows, 'row')}, {group.kind}")
            _print_examples(console, group.examples, group.rows)
        print_more(console, found.group_count - len(found.groups[:EXAMPLES_SHOWN]), 2)
    if found.conflict_count:
        _print_title(console, f"Same question, other ground truth ({found.conflict_count:,})")
        for pair in found.conflicts[:EXAMPLES_SHOWN]:
            for example in pair:
                _print_line(console, f"{_label(example)}{': ' + example.truth if example.truth else ''}")
        print_more(console, found.conflict_count - len(found.conflicts[:EXAMPLES_SHOWN]), 2)


def _print_leaks(console: Console, summary: ProfileSummary) -> None:
    if summary.leaks or summary.compared_with:
        _print_title(console, "Leakage")
    for leak in summary.leaks:
        _print_line(console, f"{plural(leak.rows, 'row')}: {leak.kind} in {leak.source}")
        _print_examples(console, leak.examples, leak.rows)
    if summary.compared_with and not summary.leaks:
        _print_line(console, f"No row is in {', '.join(summary.compared_with)}.")


def _print_coverage(console: Console, summary: ProfileSummary) -> None:
    found = summary.coverage
    _print_title(console, "Coverage")
    for line in (*about_rows(found), *about_documents(found.documents)):
        _print_line(console, line)
    if found.tools:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
        table.add_column("Tool", overflow="fold")
        for name in ("Offered", "Expected", "Called"):
            table.add_column(name, justify="right", no_wrap=True)
        for tool in found.tools[:LISTED]:
            numbers = (f"{rows:,}" for rows in (tool.offered, tool.expected, tool.called))
            table.add_row(visible(tool.tool), *numbers, style="" if tool.expected or tool.called else "yellow")
        console.print(Padding(table, (0, 0, 0, 2)))
        print_more(console, len(found.tools) - LISTED, 2)
    for breakdown in found.breakdowns:
        _print_line(console, _values(breakdown, found.min_rows))
    for cluster in found.clusters[:LISTED]:
        _print_line(console, f"{plural(cluster.rows, 'question')} about {', '.join(cluster.terms)}")
    if found.cluster_note:
        _print_line(console, f"No clusters: {found.cluster_note}.")


def _values(breakdown: Breakdown, min_rows: int) -> str:
    values = ", ".join(f"{c.value} {c.rows:,}" for c in breakdown.top[:LISTED])
    more = f", and {breakdown.values - LISTED:,} more" if breakdown.values > LISTED else ""
    thin = f"; {about_thin(breakdown, min_rows)}" if breakdown.thin else ""
    return f"{breakdown.name}: {values}{more}{thin}"


# ---------------------------------------------------------------------------------------------------------------------
# parts
def _label(example: RowExample) -> str:
    name = f" ({example.request_id})" if example.request_id else ""
    return f"row {example.row:,}{name}" + (f"  {example.question}" if example.question else "")


def _print_examples(console: Console, examples: Sequence[RowExample], rows: int) -> None:
    for example in examples[:EXAMPLES_SHOWN]:
        _print_line(console, _label(example), indent=4)
    print_more(console, rows - len(examples[:EXAMPLES_SHOWN]), 4)


def _print_lines(console: Console, title: str, lines: Iterable[str]) -> None:
    for i, line in enumerate(lines):
        if not i:
            _print_title(console, title)
        _print_line(console, line)


def _print_line(console: Console, line: str, indent: int = 2) -> None:
    console.print(Padding(Text(visible(line)), (0, 0, 0, indent)))


def _print_title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))
