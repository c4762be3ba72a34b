"""What is read and written: each format with the columns by which it is known, and an example.

The examples are in a file, so that a command shows them without loading a writer or Arrow. They are what the writers
make of one canonical row: tests/formats/test_overview.py compares and rewrites them.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.formats.catalog import CATALOG, About
from agent_eval_schema.text.choices import require_choice


class FormatOverview(Struct, frozen=True):
    """A format: whether it is written, the groups of columns that are sure signs of it (any group suffices), the system
    whose metrics its users ask about first, and an example: a row, a document, or the text of a file."""

    name: str
    summary: str
    written: bool
    signs: tuple[tuple[str, ...], ...]
    system: str
    example: Any


def overview() -> Iterator[FormatOverview]:
    """Every format, in the order of the catalog."""
    found = examples()
    return (_of(about, found[about.name]) for about in CATALOG)


def overview_of(name: str) -> FormatOverview:
    """One format. Raises EvalSetError if there is none of that name."""
    known = {about.name: about for about in CATALOG}
    require_choice("format", name, known)
    return _of(known[name], examples()[name])


def _of(about: About, example: Any) -> FormatOverview:
    return FormatOverview(about.name, about.summary, about.written, about.signs, about.system, example)


def examples() -> dict[str, Any]:
    """The example of each format, by its name; shortened where the format is not written."""
    found: dict[str, Any] = msgspec.json.decode(files(__package__).joinpath("catalog_examples.json").read_bytes())
    return found
