"""The blocks of a result as GitHub-flavored Markdown, such as for a comment on a pull request.

Computes nothing. Each character that Markdown or HTML could take as markup is written as an entity, so a cell is text,
and a blank of no width is behind what would be a mention or a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Fold,
    Heading,
    Line,
    Only,
    Part,
    Section,
    Table,
    Terms,
    View,
    Words,
    columns_of,
)
from agent_eval_schema.render.phrases import SIGNS
from agent_eval_schema.text.visible import visible

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
    parts = words if isinstance(words, tuple) and not isinstance(words, Part) else (words,)
    text = "".join(plain(part.text if isinstance(part, Part) else part) for part in parts)
    return f"**{text}**" if text and mood in ("error", "good") else text


def _all(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
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
            case Only(form="html" | "notebook"):
                yield from _all(block.blocks)
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
