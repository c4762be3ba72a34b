"""A Conversion as it is printed in a terminal: how many rows, and what each kind of loss is, with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from agent_eval_schema.issues import Issue
from agent_eval_schema.text.visible import visible

if TYPE_CHECKING:
    from agent_eval_schema.conversion.convert import Conversion


def conversion_text(made: Conversion) -> str:
    """Exact counts, a line for each code and column, with the first finding as an example."""
    losses = made.losses.to_dict("records")
    issues = [msgspec.convert({str(k): v for k, v in loss.items()}, Issue) for loss in losses]
    kind = "evaluations" if made.source.startswith("ces-") else "rows"
    head = f"{made.source} → {made.target}: {made.converted:,} of {made.given:,} {kind} converted"
    if not issues:
        return f"{head}, nothing lost\n"
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.column or ""), []).append(issue)
    lines = [head, ""]
    for (code, column), found in sorted(groups.items()):
        first = found[0]
        where = f" {visible(column)}" if column else ""
        lines.append(f"  {code} {first.severity!s:7} {first.name}{where}: {len(found):,} {_rows(len(found))}")
        lines.append(f"        row {first.row}: {visible(first.path or 'the row')}: {visible(first.message)}")
    lines += ["", *(f"  {hint}" for hint in dict.fromkeys(f"{i.code}: {i.hint}" for i in issues))]
    return "\n".join(lines) + "\n"


def _rows(count: int) -> str:
    return "time" if count == 1 else "times"
