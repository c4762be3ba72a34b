"""What is read and written, and the examples: formats/overview.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.catalog import CATALOG
from agent_eval_schema.formats.overview import examples, overview, overview_of
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.formats.writer import Writer
from agent_eval_schema.schema import COLUMNS
from tests.conftest import ROOT

FILE = ROOT / "agent_eval_schema" / "formats" / "catalog_examples.json"

ROW: dict[str, Any] = {
    **dict.fromkeys(COLUMNS),
    "request_id": "leave-1",
    "request": {"messages": [{"role": "user", "content": "How many days of leave do I have left?"}]},
    "response": "You have 12 days left.",
    "expected_response": "12 days",
    "reference_trajectory": [{"tool_name": "get_leave_balance", "tool_input": {"employee": "E1042"}}],
}


def example(writer: Writer) -> Any:
    if writer.document is not None:
        return writer.document([ROW]).data
    assert writer.row is not None
    return {name: value for name, value in writer.row(ROW).items() if value is not None}


def test_the_examples_are_what_the_writers_make_of_a_row() -> None:
    """Those of formats that are not written are made by hand. `UPDATE_GOLDEN=1` writes the others."""
    known = examples()
    made = {form.name: example(form.writer) if form.writer else known[form.name] for form in FORMATS}
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(FILE.read_text(encoding="utf-8")) == made


@pytest.mark.parametrize("name", [form.name for form in FORMATS if form.writer is not None])
def test_the_example_of_a_format_is_known_and_valid(name: str, tmp_path: Path) -> None:
    data: Any = overview_of(name).example
    if isinstance(data, str):
        (tmp_path / "golden.csv").write_text(data)
        data = str(tmp_path / "golden.csv")
    report = validate_eval_set([data] if isinstance(data, dict) and name != "adk" else data)
    assert (report.format, report.ok) == (name, True), report.to_text()


def test_every_format_has_signs_and_an_example() -> None:
    found = list(overview())
    assert [entry.name for entry in found] == [form.name for form in FORMATS]
    assert all(entry.signs and all(entry.signs) and entry.example is not None for entry in found)


def test_the_catalog_is_what_the_registry_reads_and_writes() -> None:
    assert [(form.about, form.writer is not None) for form in FORMATS] == [(a, a.written) for a in CATALOG]
    assert [(form.signs.sure, form.signs.needs) for form in FORMATS] == [(a.sure, a.needs) for a in CATALOG]


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
