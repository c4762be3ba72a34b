"""Rows of a sheet are converted in their lines, in a copy of the workbook."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from agent_eval_schema import convert_eval_set, import_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from tests.conftest import SAMPLES
from tests.helpers.sheets import SUPPORT, book, cells_of

openpyxl = pytest.importorskip("openpyxl")


def test_a_column_of_the_team_has_the_name_of_the_target_after_a_conversion(tmp_path: Path) -> None:
    path = book(tmp_path / "s.xlsx", Support=[["Frage", "Kunde", "Antwort"], ["Wo?", "a", "Hier."]])
    conversion = convert_eval_set(path, "ragas", columns={"Frage": "request", "Antwort": "expected_response"})
    assert conversion.write(out := tmp_path / "o.xlsx") == 1
    assert cells_of(out) == {
        "A1": "user_input",
        "B1": "Kunde",
        "C1": "reference",
        "A2": "Wo?",
        "B2": "a",
        "C2": "Hier.",
    }


def test_rows_that_are_no_lines_are_a_new_workbook(tmp_path: Path) -> None:
    """The turns of a golden CSV are lines of one evaluation."""
    with (SAMPLES / "golden.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    path, out = book(tmp_path / "golden.xlsx", rows=lines, more=[["x"]]), tmp_path / "out.xlsx"
    assert convert_eval_set(f"{path}#rows", "openai").write(out) == 4
    assert openpyxl.load_workbook(out).sheetnames == ["rows"]


def test_a_converted_workbook_is_read_as_a_converted_csv_file(tmp_path: Path) -> None:
    path = book(tmp_path / "s.xlsx", Support=SUPPORT)
    mapping = import_eval_set(path, prefer="expected_facts").columns
    for out in ("o.xlsx", "o.csv"):
        convert_eval_set(path, "ragas", columns=mapping).write(tmp_path / out)
    sheet, text = (list(validate_eval_set(tmp_path / out).iter_rows()) for out in ("o.xlsx", "o.csv"))
    assert [{**row, "Nr.": str(row["Nr."])} for row in sheet] == text


def test_a_resumed_conversion_is_in_the_same_lines(tmp_path: Path) -> None:
    """Of rows of two kinds, of which Ragas loads one, the lines of the fewer are empty."""
    talk = json.dumps({"messages": [{"role": r, "content": r} for r in ("user", "assistant", "user")]})
    lines = [["request", "response", "owner"], ["Why?", "x", "a"], [talk, "y", "b"], ["When?", "z", "c"]]
    path = book(tmp_path / "s.xlsx", Support=lines)
    for name, options in (("once.xlsx", []), ("resumed.xlsx", ["--resume"])):
        assert main(["convert", str(path), str(tmp_path / name), "--to", "ragas", *options]) == 1
    cells = cells_of(tmp_path / "resumed.xlsx")
    assert cells == cells_of(tmp_path / "once.xlsx")
    assert [cell for cell in cells if cell[1] == "3"] == []
    assert (cells["A2"], cells["A4"], cells["C4"]) == ("Why?", "When?", "c")
