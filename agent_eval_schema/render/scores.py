"""Scores as text: a line a row, a column a scorer; what has no score has a letter, and the letters are explained."""

from __future__ import annotations

import re
import shutil
from string import ascii_lowercase
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from agent_eval_schema.render.console import drawn
from agent_eval_schema.text.visible import visible

SHOWN = 50
"""Rows that are drawn; the frames have them all."""

WIDEST = 160
"""Characters of a line at most, however wide the terminal is."""

HEADING = 13
"""Characters of a line of a scorer's name at most; in a narrow table fewer."""
LEAST = 8


def scores_text(scores: pd.DataFrame, reasons: pd.DataFrame, width: int | None = None) -> str:
    """The table, and below it what its letters stand for."""
    letters: dict[str, str] = {}
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("row", justify="right")
    columns = width or min(shutil.get_terminal_size((100, 24)).columns, WIDEST)
    for heading in _headings([visible(name) for name in scores.columns], columns):
        table.add_column(heading, justify="right", overflow="fold")
    for row in scores.index[:SHOWN]:
        cells = [_cell(scores.at[row, n], reasons.at[row, n], letters) for n in scores.columns]
        table.add_row(str(row), *cells)

    def draw(console: Console) -> None:
        console.print(table)
        if len(scores) > SHOWN:
            console.print(f"… and {len(scores) - SHOWN:,} more rows")
        for reason, letter in letters.items():
            console.print(f"{letter}  {reason}")

    return drawn(draw, False, columns)


def _headings(names: list[str], columns: int) -> list[str]:
    """The names, broken only as much as it takes for all of them to stand side by side."""
    for most in range(HEADING, LEAST, -1):
        found = [_heading(name, most) for name in names]
        if len("row") + sum(2 + max(map(len, heading.split("\n"))) for heading in found) <= columns:
            return found
    return [_heading(name, LEAST) for name in names]


def _heading(name: str, most: int) -> str:
    """A name as lines that break after its underscores."""
    lines = [""]
    for part in re.findall(r"[^_]*_+|[^_]+", name):
        if lines[-1] and len(lines[-1]) + len(part) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _cell(score: Any, reason: Any, letters: dict[str, str]) -> str:
    if score is None:
        text = visible(reason)
        return letters.setdefault(text, _letter(len(letters)))
    if isinstance(score, list):
        return ", ".join(_cell(s, reason, letters) for s in score)
    return f"{score:.3g}" if isinstance(score, float) else visible(score)


def _letter(number: int) -> str:
    """(a), (b) … (z), (aa) …"""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = ascii_lowercase[digit] + name
    return f"({name})"
