"""The blocks of a result as HTML: a standalone page, and the same blocks in the output cell of a notebook.

Computes nothing. Every text goes through `visible` and is escaped; the markup is that of templates/blocks.html.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import zip_longest
from typing import Any

from markupsafe import Markup, escape

from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Changes,
    Column,
    Detail,
    Example,
    Examples,
    Form,
    Found,
    FoundIssue,
    Group,
    Issues,
    OpenRows,
    Part,
    Section,
    Table,
    View,
    Words,
    blocks_in,
    columns_of,
    edit_words,
    issue_words,
    parts_of,
)
from agent_eval_schema.render.page import breakable, drawn, inline, page, with_code
from agent_eval_schema.text.visible import visible

STYLE = "blocks.css"

ROWS_OF_A_TABLE = {"page": 500, "notebook": 50}
"""Rows of a table that are drawn."""


def view_page(view: View) -> str:
    blocks = _all_blocks(view.blocks, "page")
    live = (isinstance(b, OpenRows | Issues) or (isinstance(b, Table) and b.sortable) for b in blocks)
    script = bool(view.then or (view.following and not view.first)) or any(live)
    return page(view.title, _drawn(view, "page"), STYLE, script=script)


def view_inline(view: View) -> str:
    return inline(_drawn(view, "notebook"), STYLE)


def _drawn(view: View, form: Form) -> Markup:
    sections = [block for block in _all_blocks(view.blocks, form) if isinstance(block, Section)]
    parts = [(section.id, section.short or section.title) for section in sections]
    return drawn(
        "blocks.html",
        page=form == "page",
        view=view,
        parts=[("next", NEXT)] * bool(view.numbered and view.following) + parts,
        next_title=NEXT,
        form=form,
        words=partial(_words, form=form),
        table_of=_table,
        data_of=_data_of,
        blocks_in=blocks_in,
        command_of=lambda command: _part(Part(command, "command"), form),
    )


NEXT = "What to do next"


def _all_blocks(blocks: Iterable[Block], form: Form) -> Iterator[Block]:
    """The blocks that are drawn, also those inside of others."""
    for block in blocks_in(blocks, form):
        yield block
        yield from _all_blocks(getattr(block, "blocks", ()), form)


# --- what the template calls
def _words(words: Words, form: Form) -> Markup:
    """Words as markup; each part is escaped by itself."""
    return Markup("").join(_part(part, form) for part in parts_of(words))


_TAGS = {"old": "del", "new": "ins", "code": "code", "bold": "b", "mark": "mark", "command": "code"}

_LINKS = {"#": '<a href="{}">{}</a>', "h": '<a href="{}" rel="noreferrer">{}</a>'}

_COPY = Markup(' <button type="button" class="copy" data-script hidden>Copy</button>')


def _part(part: Part, form: Form) -> Markup:
    text, kind = part
    first, _, classes = kind.partition(" ")
    if first in _WRITTEN:
        content, kind = _WRITTEN[first](text), classes
    else:
        content = escape(visible(text))
    if kind.startswith("https://") or (first[:1] == "#" and form == "page"):
        return Markup(_LINKS[kind[0]]).format(first, content)
    if first[:1] == "#":  # in a notebook no part has an address
        kind = classes
    if kind in _TAGS:
        marked = Markup("<{0}>{1}</{0}>").format(Markup(_TAGS[kind]), content)
        return marked + _COPY if kind == "command" and form == "page" else marked
    return Markup('<span class="{}">{}</span>').format(kind, content) if kind else content


_WRITTEN = {"message": with_code, "name": breakable}


def _table(block: Table | Examples | Changes | Found, form: Form) -> dict[str, Any]:
    """A table as the template draws it: its headings, the rows that are seen at once, those that a notebook folds, and
    the number of those that are not drawn."""
    table = block if isinstance(block, Table) else _table_of_rows(block, form)
    columns = list(columns_of(table))
    heads = []
    for column, following in zip_longest(columns, columns[1:]):
        is_wide = following is not None and following.is_shared
        alone = {"class": "n" if column.is_number else None}
        if not column.is_shared:
            heads.append({"name": column.name, "attributes": {"colspan": 2} if is_wide else alone})
    of_data = table is not block
    labeled = table.kind in ("examples", "metrics scores")  # whose cells are below each other on a narrow page
    rows = [
        [
            _cell(of, column, form, is_name=not (i or of_data or column.is_number), labeled=labeled)
            for i, (of, column) in enumerate(zip(row, columns, strict=False))
        ]
        for row in table.rows[: ROWS_OF_A_TABLE[form]]
    ]
    first = len(rows) if form == "page" or table.at_once is None else table.at_once
    return {
        "title": table.title,
        "kind": "reasons rows" if table.sortable and form == "page" else table.kind,
        "sortable": table.sortable and form == "page",
        "heads": heads,
        "rows": rows[:first],
        "folded": rows[first:],
        "more": max(table.total, len(table.rows)) - len(rows),
        "noun": "more" if of_data else "more rows",
    }


def _cell(of: Words | Cell, column: Column, form: Form, *, is_name: bool, labeled: bool) -> dict[str, Any]:
    cell = of if isinstance(of, Cell) else Cell(of)
    is_number = column.is_number and cell.span == 1
    kinds = " ".join(filter(None, ("n" if is_number else "", cell.mood)))
    attributes = {
        "scope": "row" if is_name else None,
        "class": kinds or None,
        "colspan": cell.span if cell.span > 1 else None,
        "data-label": visible(column.name.lower()) if labeled and is_number and cell.words else None,
        "data-n": cell.number,
        "title": cell.title,
        **_data_of(cell, form),
    }
    return {"tag": "th" if is_name else "td", "attributes": attributes, "words": cell.words, "picture": cell.picture}


def _data_of(block: Cell | Group, form: Form) -> dict[str, Any]:
    """What the script of a page reads of it."""
    return {f"data-{name}": value for name, value in block.data.items()} if form == "page" else {}


def _row_link(row: str) -> Part:
    return Part(row, f"#row-{row.replace(',', '')}")


def _table_of_rows(block: Examples | Changes | Found, form: Form) -> Table:
    """Rows of the data as a table without the columns that are empty in all of them; changes have a line per edit."""
    if isinstance(block, Changes):
        edits = [
            Example(row, request_id, ("" if path == block.field else path, words))
            for row, request_id, edits, more in block.changes
            for path, words in edit_words(edits, more)
        ]
        total = len(edits) + block.total - len(block.changes)
        block = Examples([Detail("Where", "path"), Detail("From what to what")], edits, total)
    elif isinstance(block, Found):
        details = [Detail("#Line"), Detail("What is wrong", "what"), Detail("In the cell", "cell")]
        block = Examples(details, [_example(issue, block.hint) for issue in block.issues], block.total)
    heads = [(block.signs, ""), ("#Row", ""), ("request_id", ""), *((name, kind) for name, kind, _ in block.columns)]
    names = [_row_link(e.row) if e.opens and form == "page" else e.row for e in block.rows]
    signs = [e.sign.replace("-", "−") for e in block.rows]
    rows = [(sign, name, e.request_id or "", *e.cells) for sign, name, e in zip(signs, names, block.rows, strict=True)]
    columns = [i for i, (name, _) in enumerate(heads) if name and any(row[i] for row in rows)]
    cells = [[Cell(row[i], heads[i][1]) for i in columns] for row in rows]
    return Table([heads[i][0] for i in columns], cells, kind="examples", total=block.total)


def _example(issue: FoundIssue, hint: str) -> Example:
    before, marked, after = issue.excerpt or ("", "", "")
    cell = (before, Part(marked, "mark"), after) if issue.excerpt else ""
    line = issue.place.rpartition(":")[2]
    words = issue_words(issue.path, issue.message, issue.hint, hint)
    return Example(issue.row, issue.request_id, [line, words, cell], opens=issue.opens)
