"""The blocks of a result as text: its sections, and last the verdict and the next commands.

Computes nothing. All text goes through `visible`, and no markup is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Changes,
    Examples,
    Fold,
    Found,
    FoundIssue,
    Group,
    Heading,
    Issues,
    Line,
    Meter,
    Part,
    Section,
    Several,
    Table,
    Terms,
    View,
    Words,
    blocks_in,
    columns_of,
    parts_of,
)
from agent_eval_schema.render.console import (
    NEW_STYLE,
    OLD_STYLE,
    drawn,
    print_columns,
    print_more,
    print_signed,
    print_verdict,
    sides,
)
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, SIGNS, NextCommand
from agent_eval_schema.text.visible import visible, wrapped

STYLES = {
    "error": "red",
    "warning": "yellow",
    "info": "cyan",
    "good": "green",
    "muted": "dim",
    "bold": "bold",
    "tag": "bold",
    "path": "cyan",
    "old": OLD_STYLE,
    "new": NEW_STYLE,
}
"""How a part looks, by the words of its kind."""

SIGN_STYLES = {"-": OLD_STYLE, "✗": OLD_STYLE, "+": NEW_STYLE, "✓": NEW_STYLE}


def view_text(view: View, *, color: bool = False, width: int | None = None) -> str:
    """The document for a terminal of the given width (that of the terminal, or 100, if not given)."""

    def draw(console: Console) -> None:
        _print_all(console, (*view.about, *view.notes, *view.blocks), 0)
        console.print()
        following: Iterable[NextCommand] = view.following
        if view.numbered:
            following = [NextCommand(c, f"{i}. {effect.rstrip('.')}") for i, (c, effect) in enumerate(following, 1)]
        print_verdict(console, SIGNS[view.mood] + view.verdict, _style(view.mood), following)

    return drawn(draw, color, width).lstrip("\n")


def _print_all(console: Console, blocks: Iterable[Block], indent: int) -> None:
    for block in blocks_in(blocks, "text"):
        match block:
            case Section():
                console.print()
                title = block.title if block.text_title is None else block.text_title
                if title:
                    console.print(Text(visible(title), style=f"bold {_style(block.mood)}"))
                _print_all(console, block.blocks, block.indent)
            case Heading():
                console.print()
                console.print(Text(visible(block.title), style="bold"))
            case Line():
                _print_line(console, _styled_text(block.words, block.mood), indent + block.indent)
            case Terms():
                pairs = [[_styled_text(Part(term, "bold")), _styled_text(text)] for term, text in block.pairs]
                _print_lines(console, pairs, indent)
            case Table():
                _print_table(console, block, indent)
            case Examples():
                _print_examples(console, block, indent)
            case Changes():
                _print_changes(console, block, indent)
            case Group():
                _print_line(console, Text("  ").join(map(_styled_text, block.head)), indent)
                _print_all(console, block.blocks, indent + block.indent)
            case Found():
                _print_found(console, block, indent)
            case Several():
                shown = block.blocks[: block.in_text]
                _print_all(console, shown, indent)
                print_more(console, max(block.total, len(block.blocks)) - len(shown), indent)
            case Fold() | Issues():
                _print_all(console, block.blocks, indent)
            case _:
                pass  # a picture, or a block for a page


def _print_line(console: Console, text: Text, indent: int) -> None:
    console.print(Padding(text, (0, 0, 0, indent)))


def _styled_text(of: Words | Cell, kind: str = "") -> Text:
    words, kind = (of.words, of.mood) if isinstance(of, Cell) else (of, kind)
    text = Text(style=_style(kind))
    for part in parts_of(words):
        text.append(visible(part.text), style=_style(part.kind))
    return text


def _style(kind: str) -> str:
    return " ".join(STYLES[word] for word in kind.split() if word in STYLES)


# --- tables
def _print_table(console: Console, table: Table, indent: int) -> None:
    """Names and numbers in columns, or, without headings, texts that are wrapped."""
    columns = {i: column.name for i, column in enumerate(columns_of(table)) if not column.is_for_pages}
    rows = [[_bar(row[i]) or _styled_text(row[i]) for i in columns] for row in table.rows[: table.in_text]]
    if table.notes:
        notes = [row.pop() for row in rows]
        print_columns(console, None, rows, indent, notes)
    elif any(columns.values()):
        print_columns(console, list(columns.values()), rows, indent)
    elif rows:
        _print_lines(console, rows, indent, numbers=True)
    print_more(console, max(table.total, len(table.rows)) - len(rows), indent)


BAR = 10


def _bar(of: Words | Cell) -> Text | None:
    """The bar of a cell that has one; it is only full, or nothing at all, if that is exactly so."""
    if not isinstance(of, Cell) or not isinstance(of.picture, Meter):
        return None
    filled = min(math.ceil(of.picture.share * BAR / 100), BAR - (of.picture.share < 100))
    return Text("█" * filled, style="green").append("░" * (BAR - filled), style="dim")


def _print_lines(console: Console, rows: Sequence[Sequence[Text]], indent: int, *, numbers: bool = False) -> None:
    """Texts in columns, the last one wrapped; with `numbers`, the first is aligned right."""
    lines = RichTable(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    columns = len(rows[0])
    for i in range(columns):
        lines.add_column(justify="right" if numbers and not i else "left", no_wrap=i < columns - 1)
    for row in rows:
        lines.add_row(*row)
    console.print(Padding(lines, (0, 0, 0, indent)) if indent else lines)


# --- rows of the data
def _label(row: str, request_id: str | None) -> Text:
    text = Text().append(f"row {visible(row)}", style="bold") if row else Text()
    return text.append(f" ({visible(request_id)})" if request_id else "")


def _print_examples(console: Console, block: Examples, indent: int) -> None:
    shown = 0
    for sign, rows in groupby(block.rows, key=lambda example: example.sign):
        for example in list(rows)[: block.in_text]:
            line = _label(example.row, example.request_id)
            follows = False
            for (_, kind, before), words in zip(block.columns, example.cells, strict=True):
                if before is not None and words:
                    between = before if follows or before.startswith(" ") else "  "
                    line.append(between if line else "").append(_styled_text(words, kind))
                    follows = True
            shown += 1
            if sign:
                print_signed(console, sign, SIGN_STYLES[sign], line, indent)
            else:
                _print_line(console, line, indent)
    if block.total:
        print_more(console, block.total - shown, indent)


def _print_found(console: Console, block: Found, indent: int) -> None:
    """The issues that differ in their row only are together: where each is, then what they report."""
    shown = block.issues[:EXAMPLES_SHOWN]
    alike = [list(group) for _, group in groupby(shown, key=lambda issue: (issue.path, issue.message, issue.hint))]
    for issues, following in zip_longest(alike, alike[1:]):
        issue = issues[0]
        for one in issues:
            _print_place(console, one, indent)
        of_dataset = Part(f"{issue.path}: " if issue.path and not issue.row else "", "path")
        _print_line(console, _styled_text((of_dataset, issue.message)), indent + 2)
        if issue.excerpt is not None:
            _print_excerpt(console, issue.excerpt, indent + 2)
        if issue.hint and (following is None or following[0].hint != issue.hint):
            for line in wrapped(f"→ {visible(issue.hint)}", console.width - indent - 2):
                _print_line(console, Text(line, style="green"), indent + 2)
    print_more(console, block.total - len(shown), indent)


def _print_place(console: Console, issue: FoundIssue, indent: int) -> None:
    """`broken.jsonl:6  row 5 (hr-006)  request.messages[0].role`; the first part stays whole, to be clicked."""
    if not issue.row:
        return
    where = Text(visible(issue.place), style="underline")
    rest = _label(issue.row, issue.request_id).append(f"  {visible(issue.path)}" if issue.path else "", style="cyan")
    both = Text.assemble(" " * indent, *((where, "  ", rest) if where else (rest,)))
    if both.cell_len <= console.width:
        console.print(both, soft_wrap=True)
        return
    if where:
        console.print(Text.assemble(" " * indent, where), soft_wrap=True)
    _print_line(console, rest, indent)


def _print_excerpt(console: Console, excerpt: tuple[str, str, str], indent: int) -> None:
    """A line of the cell with `^^^` below the part that the issue is about; none if that part is the whole cell."""
    before, marked, after = map(visible, excerpt)
    if not (before or after) or not marked:
        return
    room = console.width - indent - 1
    marked = _clipped(marked, room // 2)
    if cell_len(before) > room // 3:
        before = _clipped(before[::-1], room // 3)[::-1]
    after = _clipped(after, room - cell_len(before) - cell_len(marked))
    console.print(Text.assemble(" " * indent, (before, "dim"), (marked, "bold"), (after, "dim")), soft_wrap=True)
    marks = " " * (indent + cell_len(before)) + "^" * cell_len(marked)
    console.print(Text(marks, style="bold red"), soft_wrap=True)


def _clipped(text: str, cells: int) -> str:
    return text if cell_len(text) <= cells else set_cell_size(text, max(cells - 1, 0)) + "…"


def _print_changes(console: Console, block: Changes, indent: int) -> None:
    for row, request_id, edits, more in block.changes[:EXAMPLES_SHOWN]:
        _print_line(console, _label(row, request_id), indent)
        for edit in edits[:EXAMPLES_SHOWN]:
            if edit.path != block.field:
                _print_line(console, _styled_text(Part(edit.path, "path")), indent + 2)
            for sign, style, line in sides(edit):
                print_signed(console, sign, style, line, indent + 2)
        print_more(console, more + len(edits[EXAMPLES_SHOWN:]), indent + 2)
    print_more(console, block.total - len(block.changes[:EXAMPLES_SHOWN]), indent)


# --- The blocks of a result as GitHub-flavored Markdown, such as for a comment on a pull request.
#
# Computes nothing. Each character that Markdown or HTML could take as markup is written as an entity, so a cell is
# text, and a blank of no width is behind what would be a mention or a reference.
OPEN_ROWS, MOST_ROWS = 20, 200
"""Rows of a table that are not folded, and rows at most: GitHub takes 65,536 characters."""

_MARKUP = re.compile(r"[\\`*_\[\]<>|&~$]")
_REFERENCE = re.compile(r"[@#]|://|(?i:www\.)")
"""What begins a mention, the number of an issue, or an address."""


def view_markdown(view: View) -> str:
    """The document with its verdict as a heading, and tables of many rows folded."""
    blocks = "\n\n".join(_all((*view.about, *view.notes, *view.blocks)))
    return f"### {SIGNS[view.mood]}{plain(view.verdict)}\n\n{blocks}\n"


def plain(text: object) -> str:
    """Text as text."""
    apart = _REFERENCE.sub(lambda found: found.group()[0] + "\N{ZERO WIDTH SPACE}" + found.group()[1:], visible(text))
    return _MARKUP.sub(lambda found: f"&#{ord(found.group())};", apart)


def _words(words: Words | Cell) -> str:
    words, mood = (words.words, words.mood) if isinstance(words, Cell) else (words, "")
    text = "".join(plain(part.text) for part in parts_of(words))
    return f"**{text}**" if text and mood in ("error", "good") else text


def _all(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks_in(blocks, "notebook"):
        match block:
            case Section(title=title):
                yield f"#### {plain(title)}"
                yield from _all(block.blocks)
            case Heading(title=title):
                yield f"#### {plain(title)}"
            case Line():
                yield _words(block.words)
            case Terms():
                yield "\n".join(f"- {plain(term)}: {plain(text)}" for term, text in block.pairs)
            case Table():
                yield _table(block)
            case Fold():
                yield _folded(block.title, "\n\n".join(_all(block.blocks)))
            case _:
                pass  # a picture, or a block for another form


def _table(table: Table) -> str:
    shown = [(i, column) for i, column in enumerate(columns_of(table)) if not column.is_for_pages]
    head = [plain(column.name) for _, column in shown]
    rules = ["---:" if column.is_number else "---" for _, column in shown]
    rows = [[_words(row[i]) for i, _ in shown] for row in table.rows[:MOST_ROWS]]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rules, *rows))
    total = max(table.total, len(table.rows))
    if total > len(rows):
        text += f"\n\n… and {total - len(rows):,} more"
    return _folded(f"{table.title} ({total:,})", text) if len(rows) > OPEN_ROWS else text


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{plain(title)}</summary>\n\n{text}\n\n</details>"
