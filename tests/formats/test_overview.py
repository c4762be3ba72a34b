"""What is read and written, and the examples: formats/overview.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.overview import overview, overview_of
from agent_eval_schema.formats.registry import FORMATS


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
    assert document["formats"][0].keys() == {"name", "summary", "written", "signs", "system", "example", "package"}
