"""What a repair changes, as text: like a unified diff, with a cell in the place of a line.

    @@ row 5 (hr-006)  request.messages[0].role: wrote a role as the schema has it
    - "usr"
    + "user"

Cells are JSON, so that a number and its text look different; a long one is cut around what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_difference
from agent_eval_schema.text.visible import escape_ci_commands, visible

if TYPE_CHECKING:
    from agent_eval_schema.fix.search import Change
    from agent_eval_schema.fix.source import Repaired


WIDTH = 96
"""Characters of a cell that are shown, about."""

_COLORS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}


def head_of(repaired: Repaired, *, color: bool) -> Iterator[str]:
    """The lines before the cells: the file, and the columns that are renamed."""
    name = visible(repaired.given.name)
    yield from _painted([f"--- {name}", f"+++ {name} (repaired)"], color)
    for wrong, right in repaired.renames.items():
        yield from _painted(
            [f"@@ column {visible(wrong)}: renamed", f"- {visible(wrong)}", f"+ {visible(right)}"], color
        )


def lines_of(change: Change, *, color: bool) -> Iterator[str]:
    """The lines of a repaired cell: a block for each place in it."""
    who = f" ({visible(change.request_id)})" if change.request_id else ""
    for path, before, after in change.places:
        old, new = excerpt_difference(jsontext.write_exactly(before), jsontext.write_exactly(after), WIDTH)
        head = f"@@ row {change.row:,}{who}  {visible(path)}: {change.what}"
        yield from _painted([head, f"- {old}", f"+ {new}"], color)


def _painted(lines: list[str], color: bool) -> Iterator[str]:
    safe = map(escape_ci_commands, lines)
    return (f"{_COLORS[line[0]]}{line}\x1b[0m\n" if color else f"{line}\n" for line in safe)
