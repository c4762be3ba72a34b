"""What a result shows, as blocks: one renderer draws them as text (block_text.py), another as HTML (block_html.py).

    View ─ title, verdict, next commands
         └ Section ─ Line · Terms · Table · Examples · Changes · Group (opened and closed on a page) · Issues
                     Meter and Strip in the cells of a table; Histograms, Curve and Funnel

A result has one function that returns its View: it decides on words, numbers and order. Its values are plain: texts
of cells go in as they are, and the renderers escape everything that they draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, NextCommand, plural
from agent_eval_schema.render.rows import ShownRow
from agent_eval_schema.text.edits import Edit

Form = Literal["text", "html", "page", "notebook"]
"""Where a block is drawn: as text, or as HTML: on a page, in the output cell of a notebook."""


class Part(NamedTuple):
    """A piece of text and how it looks: words separated by blanks, which are classes on a page.

    A mood (`error`, `warning`, `info`, `good`, `muted`), `tag`, `count`, `path`, `code`, `old` and `new` (deleted,
    inserted), `mark`, `message` (code between backticks), `name` (may be broken after `_` and `/`), `command` (can be
    copied); `#part` leads to a part of the page, if it is one, `https://…` to another page.
    """

    text: str
    kind: str = ""


Words = str | Part | tuple[str | Part, ...]
"""A text, or its pieces."""


def parts_of(words: Words) -> Iterator[Part]:
    """The pieces of a text."""
    for part in words if isinstance(words, tuple) and not isinstance(words, Part) else (words,):
        yield part if isinstance(part, Part) else Part(part)


class Meter(Struct, frozen=True):
    """A bar of `share` percent, and below it an interval as its start and length (percent); `is_loss`: the rest is
    lost."""

    share: float
    label: str
    kind: str = ""
    interval: tuple[float, float] | None = None
    is_loss: bool = False


class Strip(Struct, frozen=True):
    """The rows in order as a strip of `width` steps: layers of (color, rectangles of page.runs)."""

    width: int
    layers: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]
    label: str


class Effect(Struct, frozen=True):
    """A change and its interval on a line with zero in the middle, in percent of the line; better is to the right.
    `is_certain`: the interval is on one side of zero by the test that counts."""

    point: float
    interval: tuple[float, float] | None
    label: str
    mood: str = ""
    is_certain: bool = False


class Cell(Struct, frozen=True):
    """Words and a picture, the number by which a page sorts the cell, the columns that it covers, what a pointer shows,
    and data for the script of a page."""

    words: Words = ""
    mood: str = ""
    number: float | None = None
    picture: Meter | Strip | Effect | None = None
    span: int = 1
    title: str | None = None
    data: Mapping[str, Any] = {}


class Block(Struct, frozen=True):
    """A part of what a result shows."""


class Line(Block, frozen=True):
    """A paragraph."""

    words: Words
    mood: str = ""
    indent: int = 0


class Heading(Block, frozen=True):
    """A title inside of a section."""

    title: str


class Terms(Block, frozen=True):
    """Facts: a term and its text per line."""

    pairs: Sequence[tuple[str, str]]


class Column(NamedTuple):
    """A column of a table: its name, or that of the column whose name it shares."""

    name: str
    is_shared: bool = False
    is_number: bool = False
    is_for_pages: bool = False


class Table(Block, frozen=True):
    """A table whose first column names the row.

    The name of a column of numbers begins with `#`, that of a column for pages alone with `%`; one without a name
    shares that of the column before it; a name of the data is a `Column`. A table with a `title` scrolls by itself.
    `total` counts all rows. `at_once`: the rows that a notebook does not fold, `in_text`: those that a text shows. With
    `notes`, the last column is written below the rows that share it in a text. A `sortable` one is searched and sorted
    on a page.
    """

    columns: Sequence[str | Column]
    rows: Sequence[Sequence[Words | Cell]]
    title: str = ""
    kind: str = "reasons"
    total: int = 0
    at_once: int | None = None
    in_text: int | None = None
    notes: bool = False
    sortable: bool = False


def columns_of(table: Table) -> Iterator[Column]:
    """The columns of a table, by the signs before their names."""
    shared = ""
    for column in table.columns:
        if isinstance(column, Column):
            yield column
        else:
            name = column.lstrip("%#")
            shared = name or shared
            yield Column(shared, not name, "#" in column[:2], column.startswith("%"))


class Example(Struct, frozen=True):
    """A row of the data: its position (or both, of two datasets), its ID, and what is shown of it, per column. A page
    with the row among its OpenRows leads to it if it `opens`."""

    row: str
    request_id: str | None
    cells: Sequence[Words]
    sign: str = ""
    opens: bool = False


class Detail(NamedTuple):
    """A column of examples: its heading, its look, and its separator in a text (None: it is not in a text)."""

    heading: str
    kind: str = ""
    before: str | None = "  "


class Examples(Block, frozen=True):
    """Few of `total` rows, without empty columns. `signs`: the signs' heading; a text shows `in_text` rows per sign."""

    columns: Sequence[Detail]
    rows: Sequence[Example]
    total: int = 0
    signs: str = ""
    in_text: int = EXAMPLES_SHOWN


class Change(NamedTuple):
    """A row with the edits of a cell, and how many more there are."""

    row: str
    request_id: str | None
    edits: Sequence[Edit]
    more: int


def edit_words(edits: Sequence[Edit], more: int) -> Iterator[tuple[str, Words]]:
    """The path and the words of each edit; the last one has the number of those that are left out."""
    for i, edit in enumerate(edits, 1):
        words = tuple(Part(part.text, "" if part.side == "both" else part.side) for part in edit.parts)
        rest = Part(f" … and {plural(more, 'more place')}", "muted")
        yield edit.path, (*words, rest) if more and i == len(edits) else words


class Changes(Block, frozen=True):
    """The cells of a field that changed, in few of `total` rows."""

    field: str
    changes: Sequence[Change]
    total: int


class Group(Block, frozen=True):
    """Blocks below a head, which a page opens and closes; in a text they are indented. `id` is its address on a page,
    `data` is for the script of a page."""

    head: Sequence[str | Part | Cell]
    blocks: Sequence[Block]
    is_open: bool = False
    open_in_notebook: bool = True
    indent: int = 4
    id: str | None = None
    data: Mapping[str, Any] = {}


class Issues(Block, frozen=True):
    """Groups of issues, which a page filters by `severity` and `fixable` of their data, searches and sorts; a notebook
    folds all but `at_once`. `filters`: the severities with their titles."""

    blocks: Sequence[Group]
    filters: Sequence[tuple[str, str]]
    at_once: int


class FoundIssue(NamedTuple):
    """An issue: its row, ID, file and line, path, what it reports, what to do, and the text of the cell before, at and
    behind the place."""

    row: str
    request_id: str | None
    place: str
    path: str
    message: str
    hint: str
    excerpt: tuple[str, str, str] | None = None
    opens: bool = False


class Found(Block, frozen=True):
    """The first of `total` issues of a kind. A page does not repeat the `hint`, a text that of the issue before."""

    issues: Sequence[FoundIssue]
    total: int
    hint: str = ""


def issue_words(path: str, message: str, hint: str, shared: str) -> Words:
    """What an issue reports, and its hint if not all of its kind share it."""
    before = (Part(path, "path"), ": ") if path else ()
    after = (Part(f"→ {hint}", "message fix muted"),) if hint not in ("", shared) else ()
    return (*before, Part(message, "message"), *after)


class Download(Block, frozen=True):
    """A file in a page, which a browser saves."""

    title: str
    name: str
    address: str
    note: str = ""


class Several(Block, frozen=True):
    """The first of `total` blocks of a kind: a text shows `in_text`, a notebook `at_once`; `noun` names the rest."""

    blocks: Sequence[Block]
    noun: str
    total: int = 0
    in_text: int | None = None
    at_once: int | None = None


class Only(Block, frozen=True):
    """Blocks for one form."""

    form: Form
    blocks: Sequence[Block]


class Fold(Block, frozen=True):
    """Blocks that a notebook folds under a title."""

    title: str
    blocks: Sequence[Block]


class Section(Block, frozen=True):
    """A part of a page, with an entry in its navigation; in a text it begins with `text_title` (None: the title)."""

    id: str
    title: str
    blocks: Sequence[Block]
    short: str = ""
    text_title: str | None = None
    indent: int = 2
    mood: str = ""
    meter: Meter | None = None


class Funnel(Block, frozen=True):
    """Levels from the widest to the narrowest: the words before it, the width (percent), the number, the name."""

    levels: Sequence[tuple[str, float, str, str]]


class Histograms(Block, frozen=True):
    """Distributions, as page.plot returns them."""

    plots: Sequence[Mapping[str, Any]]


class Curve(Block, frozen=True):
    """A line with a point on it, and the positions and the words on its axes."""

    title: str
    subject: str
    points: str
    point: tuple[float, float]
    size: tuple[int, int]
    across: Sequence[tuple[float, str]]
    up: Sequence[tuple[float, str]]
    label: str


class Trend(Struct, frozen=True):
    """A number over the runs: where it is in a picture of `size` (None where a run has none), the mood of the step to
    each run ("" if it may be chance), the band of its intervals as the points of a polygon, the words of each run and
    those of the first and the last, and what became of it."""

    title: Words
    name: str
    points: Sequence[tuple[float, float] | None]
    moods: Sequence[str]
    band: str
    runs: Sequence[str]
    ends: tuple[str, str]
    size: tuple[int, int]
    change: str
    mood: str = ""

    @property
    def steps(self) -> Iterator[tuple[tuple[float, float], tuple[float, float], str]]:
        """From where to where, and the mood; a run without the number is passed over."""
        there = [(point, mood) for point, mood in zip(self.points, self.moods, strict=True) if point is not None]
        yield from ((before, after, mood) for (before, _), (after, mood) in pairwise(there))


class Trends(Block, frozen=True):
    """Pictures beside each other, one per number."""

    trends: Sequence[Trend]


class OpenRows(Block, frozen=True):
    """The first of `total` rows in the order that `about` says, each with its cells in `columns`; a page searches and
    sorts them, and opens the first if it `opens`. `more` says how to see the others. `heads`: the names of columns,
    `edits`: the title of what changed in a row, `noun`: what is counted, if a row may be there several times, `still`:
    whether a page has rows without a script, too."""

    heads: Sequence[str]
    rows: Sequence[ShownRow]
    total: int
    about: str = ""
    more: str = ""
    opens: bool = True
    edits: str = "Changes"
    noun: str = "rows"
    still: bool = True


def blocks_in(blocks: Iterable[Block], form: Form) -> Iterator[Block]:
    """The blocks that a form draws: those for all forms or for it, without those in which there is nothing to draw."""
    for block in blocks:
        if isinstance(block, Only):
            if block.form == form or (block.form == "html" and form != "text"):
                yield from blocks_in(block.blocks, form)
        elif _has_content(block, form):
            yield block


def _has_content(block: Block, form: Form) -> bool:
    match block:
        case Line():
            return bool(block.words)
        case Terms():
            return bool(block.pairs)
        case Table():
            return bool(block.rows or block.total)
        case OpenRows():
            return bool(block.rows)
        case Section() | Fold() | Issues():
            return any(True for _ in blocks_in(block.blocks, form))
        case _:
            return True


class View(Struct, frozen=True, kw_only=True):
    """What a result shows.

    `title` is that of the browser's tab, `verdict` the title of the page and the last line of a text, in the color of
    its `mood`, `meter` the picture below it. `about` comes before it, `notes` after it. `following`: what to type next;
    `numbered`: in this order. `kind` names the result, `footer` is the last line of a page. A page has `first` in place
    of `following`, and then `then`.
    """

    title: str
    verdict: str
    blocks: Sequence[Block]
    mood: str = ""
    meter: Meter | None = None
    about: Sequence[Block] = ()
    notes: Sequence[Block] = ()
    following: Sequence[NextCommand] = ()
    numbered: bool = False
    kind: str = "result"
    footer: str = "."
    first: Words = ""
    then: Sequence[NextCommand] = ()
