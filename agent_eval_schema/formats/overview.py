"""What each format is, with an example, for a command that loads no reader, no writer and no Arrow.

`overview.json` is generated from the registry: `UPDATE_GOLDEN=1 python -m pytest tests/generated`. The example of a
format is what its writer makes of one canonical row.
"""

import json
from pkgutil import get_data  # the import of importlib.resources takes longer than all else of this command
from typing import Any, NamedTuple


class FormatOverview(NamedTuple):
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
    entries = json.loads(get_data(__package__, "overview.json") or "")
    return [FormatOverview(**{**entry, "signs": tuple(map(tuple, entry["signs"]))}) for entry in entries]


def overview_of(name: str) -> FormatOverview:
    """One format. Raises EvalSetError if there is none of that name."""
    from agent_eval_schema.text.choices import require_choice

    known = {entry.name: entry for entry in overview()}
    require_choice("format", name, known)
    return known[name]
