"""What each format is, with an example, for a command that loads no reader, no writer and no Arrow.

`overview.json` is generated from the registry: `UPDATE_GOLDEN=1 python -m pytest tests/generated`. The example of a
format is what its writer makes of one canonical row.
"""

from importlib.resources import files
from typing import Any

import msgspec


class FormatOverview(msgspec.Struct, frozen=True):
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
    from agent_eval_schema.text.choices import require_choice

    known = {entry.name: entry for entry in overview()}
    require_choice("format", name, known)
    return known[name]
