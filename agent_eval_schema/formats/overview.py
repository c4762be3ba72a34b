"""What is read and written: each format with the columns by which it is known, and an example.

The list is a file, so that a command shows it without loading a reader, a writer or Arrow. It is generated from the
registry; the example of a format is what its writer makes of one canonical row: `UPDATE_GOLDEN=1 python -m pytest
tests/generated`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

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


def overview() -> list[FormatOverview]:
    """Every format, by name."""
    return msgspec.json.decode(files(__package__).joinpath("overview.json").read_bytes(), type=list[FormatOverview])


def overview_of(name: str) -> FormatOverview:
    """One format. Raises EvalSetError if there is none of that name."""
    known = {entry.name: entry for entry in overview()}
    require_choice("format", name, known)
    return known[name]
