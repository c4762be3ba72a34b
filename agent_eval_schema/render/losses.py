"""What a conversion lost, as it is printed in a terminal: each kind of loss with its number and an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from agent_eval_schema.issues import Issue
from agent_eval_schema.render.console import STYLES, drawn_lines, plural
from agent_eval_schema.text.visible import visible


def losses_text(head: str, issues: Sequence[Issue], *, color: bool = False, width: int | None = None) -> str:
    """The head, then exact counts: a line for each code and column, with the first loss as an example."""
    return drawn_lines(_lines(head, issues), color, width)


def grouped(issues: Sequence[Issue]) -> list[list[Issue]]:
    """The losses of each code and column."""
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.column or ""), []).append(issue)
    return [found for _, found in sorted(groups.items())]


def _lines(head: str, issues: Sequence[Issue]) -> Iterator[Text]:
    yield Text(head if issues else f"{head}, no losses", style="" if issues else "green")
    if not issues:
        return
    yield Text()
    for found in grouped(issues):
        first = found[0]
        where = f" {visible(first.column)}" if first.column else ""
        severity = (f"{first.severity!s:7}", STYLES[first.severity])
        yield Text.assemble(f"  {first.code} ", severity, f" {first.name}{where}: {plural(len(found), 'time')}")
        yield Text(f"        row {first.row}: {visible(first.path or 'the row')}: {visible(first.message)}")
    yield Text()
    yield from (Text(f"  {hint}", style="dim") for hint in dict.fromkeys(f"{i.code}: {i.hint}" for i in issues))
