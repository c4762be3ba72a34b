"""Words and lines that need no console; lines are all that `rules`, `explain` and `formats` print.

Without color nothing is drawn, so rich is loaded for a terminal only: a command in a script starts in half the time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import NamedTuple

from agent_eval_schema.issues import Severity
from agent_eval_schema.text.visible import escape_ci_commands

Part = str | tuple[str, str]
"""Text, or text and its style."""
Line = tuple[Part, ...]

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


EXAMPLES_SHOWN = 3
"""Examples of a field, of a code and of a metric, and edits of a cell, in a text; counts beside them are exact, and the
other forms have more."""


def drawn_lines(lines: Iterable[Line], color: bool) -> str:
    """Lines as text; they stay as long as they are."""
    if not color:
        text = "\n".join("".join(part if isinstance(part, str) else part[0] for part in line) for line in lines)
        return escape_ci_commands("\n".join(line.rstrip() for line in text.splitlines())) + "\n"
    from rich.console import Console
    from rich.text import Text

    from agent_eval_schema.render.console import drawn

    def draw(console: Console) -> None:
        for line in lines:
            console.print(Text.assemble(*line), soft_wrap=True)

    return drawn(draw, color, None)


class NextCommand(NamedTuple):
    """What to type next, and what it does."""

    command: str
    effect: str


def command_on(name: str | None, verb: str, *options: str, instead: str = "") -> str:
    """The command that reads a file; for data in memory and stdin another call, if there is one."""
    return instead if name in (None, "-") else shlex.join(["agent-eval-schema", verb, str(name), *options])


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
