"""What each format is, with an example, for a command that loads no reader, no writer and no Arrow.

`overview.json` is generated from the registry: `UPDATE_GOLDEN=1 python -m pytest tests/generated`. The example of a
format is what its writer makes of one canonical row. The formats of other packages, if there are any, follow.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_eval_schema.runtime.extensions import is_any_extension
from agent_eval_schema.runtime.tables import file_of_package

if TYPE_CHECKING:
    from agent_eval_schema.formats.format import Format


class FormatOverview(NamedTuple):
    """A format: whether it is written, the groups of columns that are sure signs of it (any group suffices), the system
    whose metrics its users ask about first, an example (a row, a document, or the text of a file), and the package that
    has it, if that is another one."""

    name: str
    summary: str
    written: bool
    signs: tuple[tuple[str, ...], ...]
    system: str
    example: Any
    package: str = ""

    @classmethod
    def of(cls, form: Format, package: str = "") -> FormatOverview:
        written = form.writer is not None
        return cls(form.name, form.summary, written, form.signs.groups, form.system, _example(form), package)


ROW: dict[str, Any] = {
    "request_id": "leave-1",
    "request": {"messages": [{"role": "user", "content": "How many days of leave do I have left?"}]},
    "response": "You have 12 days left.",
    "expected_response": "12 days",
    "reference_trajectory": [{"tool_name": "get_leave_balance", "tool_input": {"employee": "E1042"}}],
}
"""The canonical row of the examples."""


def _example(form: Format) -> Any:
    """What the writer makes of the row; a format that is not written has its example."""
    from agent_eval_schema.schema import COLUMNS

    if form.writer is None:
        return form.example
    row = {**dict.fromkeys(COLUMNS), **ROW}
    if form.writer.document is not None:
        return form.writer.document([row]).data
    if form.writer.row is None:
        return form.example
    return {name: value for name, value in form.writer.row(row).items() if value is not None}


def overview() -> list[FormatOverview]:
    """Every format, by name."""
    entries = json.loads(file_of_package(__package__, "overview.json"))
    formats = [FormatOverview(**{**entry, "signs": tuple(map(tuple, entry["signs"]))}) for entry in entries]
    if is_any_extension("formats"):
        from agent_eval_schema.formats.registry import formats_of_packages

        formats += [FormatOverview.of(other.value, other.package) for other in formats_of_packages().values()]
    return formats


def overview_of(name: str) -> FormatOverview:
    """One format. Raises EvalSetError if there is none of that name."""
    from agent_eval_schema.text.choices import require_choice

    known = {entry.name: entry for entry in overview()}
    require_choice("format", name, known)
    return known[name]
