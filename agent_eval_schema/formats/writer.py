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


class Written(Struct, frozen=True):
    """What was made of rows.

    `back` is what a check reads to see what became of them, in `format`; `places` says which of the rows there is which
    (None: it is not there); `losses` are those that the writer knows, `row` is the place in the rows.
    """

    data: Any
    back: Any
    format: str
    places: Sequence[int | None]
    losses: Sequence[Issue] = ()


class Writer(Struct, frozen=True):
    """The writer of a format: `row` makes one row, with the `columns` that it may have; or `document` one thing of all
    rows, which `save` puts into a file."""

    row: Callable[[CanonicalRow], dict[str, Any]] | None = None
    columns: tuple[str, ...] = ()
    document: Callable[[Sequence[CanonicalRow]], Written] | None = None
    save: Callable[[Any, str], Any] | None = None


def save_json(made: Any, path: str) -> None:
    """Write one JSON value."""
    write_text(path, msgspec.json.format(jsontext.encode(made), indent=2).decode() + "\n")
