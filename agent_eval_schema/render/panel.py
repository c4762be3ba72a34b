"""Small results as HTML: a title, a few facts, and tables. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from agent_eval_schema.render.page import inline, page

ROWS_ON_A_PAGE, ROWS_INLINE = 500, 50
"""Rows of a table that are drawn."""

ROWS_SHOWN = 5
"""Rows of a table that a notebook shows at once; the others are folded."""


class PanelCell(Struct, frozen=True):
    """A text, the class of its color, and the number by which a sortable table sorts it (None: the text)."""

    text: str
    mood: str = ""
    number: float | None = None


class PanelTable(Struct, frozen=True):
    """A table: columns of numbers have a name that begins with `#`; `row_count` is the number of all rows; a `sortable`
    one is searched and sorted on a page."""

    id: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[PanelCell]]
    row_count: int
    sortable: bool = False


class Panel(Struct, frozen=True):
    """A title and the class of its color, facts as (term, text), tables."""

    title: str
    mood: str = ""
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[PanelTable] = ()


def table(
    id: str, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, sortable: bool = False
) -> PanelTable:
    """A table of texts; a cell may be a PanelCell."""
    cells = [[c if isinstance(c, PanelCell) else PanelCell(str(c)) for c in row] for row in rows]
    return PanelTable(id, title, columns, cells[:ROWS_ON_A_PAGE], len(cells), sortable)


def panel_page(panel: Panel) -> str:
    """The result as a standalone HTML page."""
    script = any(t.sortable and t.rows for t in panel.tables)
    return page(panel.title, "panel.html", "result.css", script=script, **_drawn(panel, ROWS_ON_A_PAGE, ROWS_ON_A_PAGE))


def panel_inline(panel: Panel) -> str:
    """The result for the output cell of a notebook."""
    return inline("panel.html", "result.css", **_drawn(panel, ROWS_SHOWN, ROWS_INLINE))


def _drawn(panel: Panel, shown: int, most: int) -> dict[str, Any]:
    tables = [t for t in panel.tables if t.rows]
    return {
        "verdict": panel.title,
        "mood": panel.mood or None,
        "facts": panel.facts,
        "parts": [(t.id, t.title) for t in tables],
        "tables": [(t, t.rows[:shown], t.rows[shown:most], t.row_count - len(t.rows[:most])) for t in tables],
    }
