"""What is read and written, and the examples: formats/overview.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.format import Format
from agent_eval_schema.formats.overview import FormatOverview, overview, overview_of
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
    """`UPDATE_GOLDEN=1` writes it."""
    made = [
        FormatOverview(f.name, f.summary, f.writer is not None, f.signs.groups, f.system, example(f))
        for f in sorted(FORMATS, key=lambda form: form.name)
    ]
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(json.dumps(to_builtins(made), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert overview() == made


@pytest.mark.parametrize("name", [form.name for form in FORMATS if form.writer is not None])
def test_the_example_of_a_format_is_known_and_valid(name: str, tmp_path: Path) -> None:
    data: Any = overview_of(name).example
    if isinstance(data, str):
        (tmp_path / "golden.csv").write_text(data)
        data = str(tmp_path / "golden.csv")
    report = validate_eval_set([data] if isinstance(data, dict) and name != "adk" else data)
    assert (report.format, report.ok) == (name, True), report.to_text()


def test_every_format_has_signs_and_an_example() -> None:
    found = overview()
    assert [entry.name for entry in found] == sorted(form.name for form in FORMATS)
    assert all(entry.signs and all(entry.signs) and entry.example is not None for entry in found)


def test_there_is_no_overview_of_another_format() -> None:
    with pytest.raises(EvalSetError, match="format: expected one of"):
        overview_of("excel")


def test_the_command_lists_all_formats_or_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{form.name} " in f"\n{listed}" for form in FORMATS)
    assert "known by       input, target" in listed
    assert main(["formats", "inspect"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("inspect (read and written)")
    assert '"target": "12 days"' in shown
    assert main(["formats", "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema_version"], len(document["formats"])) == (1, len(FORMATS))
    assert document["formats"][0].keys() == {"name", "summary", "written", "signs", "system", "example"}
