"""Scores as text: a line a row, a column a scorer; what has no score has a letter, and the letters are explained."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

import pandas as pd
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from agent_eval_schema.render.console import drawn, print_verdict
from agent_eval_schema.render.numbers import number
from agent_eval_schema.render.phrases import NextCommand
from agent_eval_schema.text.visible import visible

SHOWN = 50
"""Rows that are drawn; the frames have them all."""

WIDEST = 160
"""Characters of a line at most, however wide the terminal is."""

HEADING = 13
"""Characters of a line of a scorer's name at most; in a narrow table fewer."""
LEAST = 8


def scores_text(
    scores: pd.DataFrame,
    reasons: pd.DataFrame,
    width: int | None = None,
    *,
    headline: str = "",
    following: Sequence[NextCommand] = (),
    without_judge: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """The table, what its letters stand for, the scorers that no judge was named for, and what was not scored."""
    letters: dict[str, str] = {}
    columns = width or min(shutil.get_terminal_size((100, 24)).columns, WIDEST)
    rows = list(map(visible, scores.index[:SHOWN]))
    drawn_columns = []
    for name, heading in zip(scores.columns, _headings([visible(n) for n in scores.columns], columns), strict=True):
        pairs = zip(scores[name].tolist()[:SHOWN], reasons[name].tolist()[:SHOWN], strict=True)
        cells = [visible(score or "") if name == "request_id" else _cell(score, why, letters) for score, why in pairs]
        drawn_columns.append((heading, cells))
    tables = [_table(rows, part) for part in _parts(rows, drawn_columns, columns)]

    def draw(console: Console) -> None:
        for table in tables:
            console.print(table)
        if len(scores) > SHOWN:
            console.print(f"… and {len(scores) - SHOWN:,} more rows")
        for reason, letter in letters.items():
            console.print(f"{letter}  {reason}")
        if without_judge:
            skipped = ", ".join(f"{name} {rows:,}" for name, rows in without_judge.items())
            console.print(f"Skipped without a judge (model=), with the rows that each could score: {skipped}")
        if headline:
            console.print()
            print_verdict(console, f"✗ {headline}", "red", following)

    return drawn(draw, False, columns)


_DrawnColumn = tuple[str, list[str]]
"""The heading of a column and its cells."""


def _parts(rows: list[str], columns: list[_DrawnColumn], width: int) -> list[list[_DrawnColumn]]:
    """The columns in as many tables as it takes, so that no number is broken."""
    first = max(map(cell_len, ["row", *rows]))
    parts: list[list[_DrawnColumn]] = [[]]
    left = width - first
    for heading, cells in columns:
        needed = 2 + max(map(cell_len, [*heading.split("\n"), *cells]))
        if needed > left and parts[-1]:
            parts.append([])
            left = width - first
        parts[-1].append((heading, cells))
        left -= needed
    return parts


def _table(rows: list[str], columns: list[_DrawnColumn]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("row", justify="right")
    for heading, _ in columns:
        table.add_column(heading, justify="right", overflow="fold")
    for row, *cells in zip(rows, *(cells for _, cells in columns), strict=True):
        table.add_row(row, *cells)
    return table


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
    return shown_score(score) or letters.setdefault(visible(reason), _letter(len(letters)))


def shown_score(score: Any) -> str:
    """A score, or several of one row; nothing for None."""
    if isinstance(score, list):
        return ", ".join(map(shown_score, score))
    return "" if score is None else number(score) if isinstance(score, float) else visible(score)


def _letter(number: int) -> str:
    """(a), (b) … (z), (aa) …"""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = ascii_lowercase[digit] + name
    return f"({name})"
