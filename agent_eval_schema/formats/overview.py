"""What is read and written: each format with the columns by which it is known, and an example row.

An example is made by the writer of its format, of one canonical row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from agent_eval_schema.formats.registry import FORMATS, Format, find_format
from agent_eval_schema.schema import COLUMNS

CALL = {"tool_name": "get_leave_balance", "tool_input": {"employee": "E1042"}}
ROW: dict[str, Any] = {
    **dict.fromkeys(COLUMNS),
    "request_id": "leave-1",
    "request": {"messages": [{"role": "user", "content": "How many days of leave do I have left?"}]},
    "response": "You have 12 days left.",
    "expected_response": "12 days",
    "reference_trajectory": [CALL],
}
"""The row of which the examples are made."""

_READ_ONLY: dict[str, Any] = {
    "traces": {"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": []}},
    "otel": {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "…", "spanId": "…", "attributes": []}]}]}]},
    "search_traces": {"trace_id": "tr-1", "trace": "{…}", "request": "{…}", "response": "…", "state": "OK"},
}
"""Examples of formats that are not written, shortened."""


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
    """Every format, in the order of the registry."""
    return map(_of, FORMATS)


def overview_of(name: str) -> FormatOverview:
    """One format. Raises EvalSetError if there is none of that name."""
    return _of(find_format(name))


def _of(form: Format) -> FormatOverview:
    about = form.about
    return FormatOverview(about.name, about.summary, about.written, about.signs, about.system, _example(form))


def _example(form: Format) -> Any:
    writer = form.writer
    if writer is None:
        return _READ_ONLY.get(form.name)
    if writer.document is not None:
        return writer.document([ROW]).data
    assert writer.row is not None
    return {name: value for name, value in writer.row(ROW).items() if value is not None}
