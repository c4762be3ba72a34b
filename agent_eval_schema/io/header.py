"""Where the header is in a table that people made: below a title, and the blank lines that set it off.

Test cases of the help desk                title: one cell, above lines of more

No.   Question          Answer             header
1     How do I …?       With …
"""

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import LINES_ABOVE_HEADER

LOOKED_AT = 20
"""The lines among which the header is."""


def header_at(lines: Sequence[Sequence[Any]]) -> int:
    """The place of the header in the first lines of a table, each with its filled cells: below lines of one cell,
    if most lines below it have more and its cells are names; else 0."""
    at = next((i for i, line in enumerate(lines) if len(line) > 1), 0)
    below = [line for line in lines[at + 1 :] if line]
    are_wide = 2 * sum(len(line) > 1 for line in below) > len(below)
    is_wide = 2 * len(lines[at]) > max(map(len, below), default=0) if at else False
    return at if is_wide and are_wide and all(map(_is_name, lines[at])) else 0


def _is_name(cell: Any) -> bool:
    """Whether a cell can be the name of a column: a short text that is no sentence, and no part of one."""
    is_short = isinstance(cell, str) and len(cell) <= _LONGEST
    return is_short and cell[:1] != " " and not (" " in cell and cell.endswith((".", "?", "!")))


_LONGEST = 60


def above_header(count: int) -> tuple[Finding, ...]:
    """The issue of the lines above the header."""
    message = "1 line above the header is no row" if count == 1 else f"{count} lines above the header are no rows"
    return (Finding(LINES_ABOVE_HEADER, message),) if count else ()
