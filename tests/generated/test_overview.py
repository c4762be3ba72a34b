"""The list of the formats, with what the writer of each makes of one row: formats/overview.json."""

from __future__ import annotations

import json
import os
from typing import Any

from msgspec import to_builtins

from agent_eval_schema.formats.format import Format
from agent_eval_schema.formats.overview import FormatOverview, overview
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.schema import COLUMNS
from tests.conftest import ROOT

FILE = ROOT / "agent_eval_schema" / "formats" / "overview.json"

ROW: dict[str, Any] = {
    **dict.fromkeys(COLUMNS),
    "request_id": "leave-1",
    "request": {"messages": [{"role": "user", "content": "How many days of leave do I have left?"}]},
    "response": "You have 12 days left.",
    "expected_response": "12 days",
    "reference_trajectory": [{"tool_name": "get_leave_balance", "tool_input": {"employee": "E1042"}}],
}


def example(form: Format) -> Any:
    """What the writer makes of the row; a format that is not written has its example."""
    if form.writer is None:
        return form.example
    if form.writer.document is not None:
        return form.writer.document([ROW]).data
    assert form.writer.row is not None
    return {name: value for name, value in form.writer.row(ROW).items() if value is not None}


def test_the_list_is_that_of_the_registry() -> None:
    made = [
        FormatOverview(f.name, f.summary, f.writer is not None, f.signs.groups, f.system, example(f))
        for f in sorted(FORMATS, key=lambda form: form.name)
    ]
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(json.dumps(to_builtins(made), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert overview() == made
