"""Lines of styled text, one below the other: all that `rules`, `explain` and `formats` print.

Without color nothing is drawn, so rich is loaded for a terminal only: a command in a script starts in half the time.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_eval_schema.text.visible import escape_ci_commands

Part = str | tuple[str, str]
"""Text, or text and its style."""
Line = tuple[Part, ...]


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
