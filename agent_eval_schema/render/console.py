"""What texts share: a console that reads no markup, an issue in one line, edits from old to new. Computes nothing."""

import io
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agent_eval_schema.issues import Issue
from agent_eval_schema.render.phrases import NextCommand
from agent_eval_schema.rule import Severity
from agent_eval_schema.text.edits import Edit, Side
from agent_eval_schema.text.visible import escape_ci_commands, visible


def finding(issue: Issue, *, with_row: bool = True) -> str:
    """Where, and what: `row 5, hr-006, request.messages[0].role: expected …`."""
    where = (f"row {issue.row}" if with_row and issue.row is not None else None, issue.request_id, issue.path)
    place = ", ".join(visible(w) for w in where if w)
    return f"{place}: {visible(issue.message)}" if place else visible(issue.message)


OLD_STYLE, NEW_STYLE = "red", "green"


def sides(edit: Edit) -> Iterator[tuple[str, str, Text]]:
    """The old text and the new one, what differs in bold."""
    sides: tuple[tuple[Side, str, str], ...] = (("old", "-", OLD_STYLE), ("new", "+", NEW_STYLE))
    for side, sign, style in sides:
        if edit.text(side) is not None:
            line = Text(style=style)
            for part in edit.parts:
                if part.side in ("both", side):
                    line.append(visible(part.text), style="" if part.side == "both" else f"bold {style}")
            yield sign, style, line


def print_signed(console: Console, sign: str, style: str, text: Text, indent: int) -> None:
    """A text behind its sign; its further lines begin where the first one does."""
    line = Table.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(Text(sign, style=style), text)
    console.print(Padding(line, (0, 0, 0, indent)))


def print_more(console: Console, count: int, indent: int) -> None:
    """How many there are beyond those shown, if any."""
    if count > 0:
        console.print(Padding(Text(f"… and {count:,} more", style="dim"), (0, 0, 0, indent)))


WIDEST = 120
"""Characters of a line at most, however wide the terminal is."""

TITLES = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.INFO: "Info"}


def drawn(draw: Callable[[Console], None], color: bool, width: int | None) -> str:
    """What is drawn on a console of the given width (that of the terminal, or 100), as text."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width or min(shutil.get_terminal_size((100, 24)).columns, WIDEST),
        force_terminal=color,
        force_jupyter=False,  # in a notebook rich would show it at once, and the text would be empty
        color_system="standard" if color else None,
        no_color=not color,  # whoever asked for color has read NO_COLOR, which older versions of rich obey when empty
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    draw(console)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return escape_ci_commands("\n".join(lines)) + "\n"


def print_columns(
    console: Console,
    headings: Sequence[str] | None,
    rows: Sequence[Sequence[Text]],
    indent: int,
    notes: Sequence[Text] = (),
) -> None:
    """A name and its numbers per line, aligned; where the console is too narrow, the numbers stand below the name. No
    number is broken or cut. A note is written below the rows that share it."""
    lines = [*([[Text(visible(heading)) for heading in headings]] if headings else []), *rows]
    longest, *widths = (max(cell.cell_len for cell in column) for column in zip(*lines, strict=True))
    room = console.width - indent - sum(widths)
    fitting = next((gap for gap in (2, 1) if longest + gap * len(widths) <= room), 0)
    for i, (name, *numbers) in enumerate(lines, len(rows) - len(lines)):
        style = "bold" if i < 0 else ""
        pairs = zip(numbers, widths, strict=True)
        aligned = [(" " * ((fitting or 2) + width - cell.cell_len), cell) for cell, width in pairs]
        cells = [piece for pair in aligned for piece in pair]
        if fitting:
            line = Text.assemble(" " * indent, name, " " * (longest - name.cell_len), *cells, style=style)
        else:
            console.print(Padding(name, (0, 0, 0, indent), style=style))
            line = Text.assemble(" " * indent, *cells, style=style)
        line.rstrip()
        console.print(line, soft_wrap=True)
        if notes and i >= 0 and notes[i] and notes[i + 1 : i + 2] != [notes[i]]:
            console.print(Padding(Text("↳ ", style="dim").append(notes[i]), (0, 0, 0, indent + 2)))


def print_verdict(console: Console, verdict: str, style: str, following: Iterable[NextCommand] = ()) -> None:
    """The last lines of every text: the verdict, then what to type next."""
    console.print(Text(visible(verdict), style=f"bold {style}".rstrip()))
    for command, effect in following:
        console.print(Text(f"{visible(effect[0].upper() + effect[1:])}:", style="dim"))
        console.print(Text(f"  {visible(command)}", style="bold"), soft_wrap=True)  # one line, to be copied
