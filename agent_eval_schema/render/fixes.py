"""What a fix changes, as text: like a unified diff, with a cell in the place of a line.

    @@ row 5 (hr-006)  request.messages[0].role: wrote a role as the schema has it
    - "usr"
    + "user"

    @@ row 7 (hr-008)  retrieved_context[0].doc_uri: not repaired
    ! AE403: no fix fits the cell without a guess (took doc_uri from another key of the document)

Cells are JSON, so that a number and its text look different; a long one is cut around what differs.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agent_eval_schema.formats.ces.update import UpdateReview
from agent_eval_schema.render.console import drawn, print_more, print_signed, sides
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import excerpt_difference
from agent_eval_schema.text.visible import escape_ci_commands, visible

WIDTH = 96
"""Characters of a cell that are shown, about."""

_COLORS = {"!": "\x1b[33m", "-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m"}


def file_lines(name: str | None, renames: Mapping[str, str], *, color: bool) -> list[str]:
    """The lines before the cells: the file, and the columns that are renamed."""
    shown = visible(name)
    lines = [f"--- {shown}", f"+++ {shown} (repaired)"]
    for wrong, right in renames.items():
        lines += [f"@@ column {visible(wrong)}: renamed", f"- {visible(wrong)}", f"+ {visible(right)}"]
    return list(_painted(lines, color))


def cell_lines(
    row: int, request_id: str | None, what: str, parts: Iterable[tuple[str, Any, Any]], *, color: bool
) -> Iterator[str]:
    """The lines of a fixed cell: a block for each part of it (path, before, after) that changes."""
    who = f" ({visible(request_id)})" if request_id else ""
    for path, before, after in parts:
        old, new = excerpt_difference(jsontext.write_exactly(before), jsontext.write_exactly(after), WIDTH)
        yield from _painted([f"@@ row {row:,}{who}  {visible(path)}: {what}", f"- {old}", f"+ {new}"], color)


def unrenamed_lines(reasons: Mapping[str, str], *, color: bool) -> list[str]:
    """The lines of the misspelled columns that are not renamed."""
    lines = [f"@@ column {visible(wrong)}: not renamed\n! {visible(why)}" for wrong, why in reasons.items()]
    return list(_painted("\n".join(lines).splitlines(), color))


def unfixed_lines(row: int, request_id: str | None, path: str, code: str, reason: str, *, color: bool) -> Iterator[str]:
    """The lines of a cell that is not fixed."""
    who = f" ({visible(request_id)})" if request_id else ""
    yield from _painted([f"@@ row {row:,}{who}  {visible(path)}: not repaired", f"! {code}: {visible(reason)}"], color)


def _painted(lines: Iterable[str], color: bool) -> Iterator[str]:
    safe = map(escape_ci_commands, lines)
    return (f"{_COLORS[line[0]]}{line}\x1b[0m\n" if color else f"{line}\n" for line in safe)


# --- What an update of an evaluation would change, as text: its mask, then a block for each place.
#
#     projects/p1/…/evaluations/refund
#     mask  displayName,golden.turns
#
#       displayName
#         - Refund
#         + Refunds
#
# Computes nothing; all text goes through `visible`.
def update_text(review: UpdateReview, *, color: bool, width: int | None = None) -> str:
    """The review for a terminal of the given width (that of the terminal, or 100, if not given)."""

    def draw(console: Console) -> None:
        console.print(Text(visible(review.name), style="bold"), soft_wrap=True)  # one line each, to be copied
        console.print(Text("mask  ", style="dim").append(visible(review.mask), style="not dim cyan"), soft_wrap=True)
        if not review.compared:
            advice = "not compared with the stored evaluation: use --against STORED to show the changes"
            console.print(Text(advice, style="dim"))
        for field in review.fields:
            if not field.edits:
                same = Text(visible(field.path), style="cyan").append("  the same", style="dim")
                console.print(Padding(same, (1, 0, 0, 2)))
            for edit in field.edits:
                console.print(Padding(Text(visible(edit.path), style="cyan"), (1, 0, 0, 2)))
                for sign, style, line in sides(edit):
                    print_signed(console, sign, style, line, 4)
            print_more(console, field.more_edits, 4)

    return drawn(draw, color, width)
