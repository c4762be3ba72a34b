"""How a format is written: row by row into columns of its own, or all rows at once as one document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.issues import Issue
from agent_eval_schema.text import jsontext

CanonicalRow = Mapping[str, Any]

POSITION = "__position__"
"""The key under which a canonical row has its place in the source while it is converted."""

RowWriter = Callable[[CanonicalRow], dict[str, Any]]


class Written(Struct, frozen=True):
    """The output of a writer.

    `back` is the output as it is read back for verification, in `format`; `places` has the place of each row there
    (None: it is missing); `losses` are those that the writer reports, where `row` is the place in the rows.
    """

    data: Any
    back: Any
    format: str
    places: Sequence[int | None]
    losses: Sequence[Issue] = ()


class Writer(Struct, frozen=True):
    """The writer of a format: `row` makes one row, with the `columns` that it may have; or `document` one thing of all
    rows, which `save` puts into a file. `cells` converts a row into the cells of a CSV file, if lists are not JSON
    there. `texts` are columns whose text is not parsed: in a file whose cells are text, any other value comes back as
    its JSON text. `replaces` are passed-through columns whose values are in other columns now; `marks` are columns of
    the format's own that are added where a row has none. `kind` is that of a row as it is written, if the platform
    loads rows of one kind only."""

    row: RowWriter | None = None
    columns: tuple[str, ...] = ()
    document: Callable[[Sequence[CanonicalRow]], Written] | None = None
    save: Callable[[Any, str], Any] | None = None
    cells: RowWriter | None = None
    texts: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    kind: Callable[[Mapping[str, Any]], str] | None = None


def save_json(made: Any, path: str) -> None:
    """Write one JSON value."""
    write_text(path, msgspec.json.format(jsontext.encode(made), indent=2).decode() + "\n")


def save_lines(made: Any, path: str) -> None:
    """Write a JSON value per line."""
    write_text(path, "".join(jsontext.encode(value).decode() + "\n" for value in made))


def named(rows: Sequence[CanonicalRow]) -> list[dict[str, Any]]:
    """The rows with an id each: one without is called by its number, as no other row is called."""
    taken = {row.get("request_id") for row in rows}
    made = []
    for place, row in enumerate(rows):
        name, again = f"row {place}", 1
        while name in taken:
            again += 1
            name = f"row {place} ({again})"
        made.append({**row, "request_id": row.get("request_id") or name})
        taken.add(made[-1]["request_id"])
    return made
