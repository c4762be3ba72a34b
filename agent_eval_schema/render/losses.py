"""What a conversion lost, as it is printed in a terminal: each kind of loss with its number and an example, then the
verdict and the next command."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.render.console import drawn, print_verdict
from agent_eval_schema.render.phrases import STYLES, NextCommand, command_on, plural
from agent_eval_schema.text.visible import visible


def losses_text(
    head: str, issues: Sequence[Issue], source: str | None = None, *, color: bool = False, width: int | None = None
) -> str:
    """Exact counts: a line for each code and column, with the first loss as an example; then the head and the next
    command. `source` is the file that was converted."""

    def draw(console: Console) -> None:
        _print_losses(console, issues)
        losses = "no losses" if not issues else "1 loss" if len(issues) == 1 else f"{len(issues):,} losses"
        errors = any(issue.severity is Severity.ERROR for issue in issues)
        sign, style = ("✓ ", "green") if not issues else ("✗ ", "red") if errors else ("", "")
        print_verdict(console, f"{sign}{head}, {losses}", style, next_commands(issues, source))

    return drawn(draw, color, width)


def next_commands(issues: Sequence[Issue], source: str | None) -> list[NextCommand]:
    """What shows why rows were not converted."""
    if all(issue.severity is not Severity.ERROR for issue in issues):
        return []
    command = command_on(source, "validate", instead="validate_eval_set(data)")
    return [NextCommand(command, "shows why rows were not converted")]


def grouped(issues: Sequence[Issue]) -> list[list[Issue]]:
    """The losses of each code and column, errors first."""
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.column or ""), []).append(issue)
    severities = list(Severity)
    return [groups[key] for key in sorted(groups, key=lambda key: (severities.index(groups[key][0].severity), key))]


def _print_losses(console: Console, issues: Sequence[Issue]) -> None:
    for found in grouped(issues):
        first = found[0]
        where = f" {visible(first.column)}" if first.column else ""
        severity = (f"{first.severity!s:7}", STYLES[first.severity])
        console.print(Text.assemble(f"{first.code} ", severity, f" {first.name}{where}: {plural(len(found), 'time')}"))
        place = [] if first.row is None else [f"row {first.row:,}", visible(first.path or "the row")]
        console.print(Padding(Text(": ".join([*place, visible(first.message)])), (0, 0, 0, 6)))
    if issues:
        console.print()
    for hint in dict.fromkeys(f"{issue.code}: {issue.hint}" for issue in issues):
        console.print(Text(visible(hint), style="dim"))
    if issues:
        console.print()
