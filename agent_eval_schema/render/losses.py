"""What a conversion lost, as it is printed in a terminal: each kind of loss with its number and an example."""

from __future__ import annotations

from collections.abc import Sequence

from agent_eval_schema.issues import Issue
from agent_eval_schema.text.visible import visible


def losses_text(head: str, issues: Sequence[Issue]) -> str:
    """The head, then exact counts: a line for each code and column, with the first loss as an example."""
    if not issues:
        return f"{head}, nothing lost\n"
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.column or ""), []).append(issue)
    lines = [head, ""]
    for (code, column), found in sorted(groups.items()):
        first = found[0]
        where = f" {visible(column)}" if column else ""
        lines.append(
            f"  {code} {first.severity!s:7} {first.name}{where}: {len(found):,} time{'' if len(found) == 1 else 's'}"
        )
        lines.append(f"        row {first.row}: {visible(first.path or 'the row')}: {visible(first.message)}")
    lines += ["", *(f"  {hint}" for hint in dict.fromkeys(f"{i.code}: {i.hint}" for i in issues))]
    return "\n".join(lines) + "\n"
