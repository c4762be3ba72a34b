"""Cells of a CSV file that a spreadsheet runs: written as they are, and reported, whatever writes the file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import (
    FormulaWarning,
    convert_eval_set,
    profile_eval_set,
    score_trajectories,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.cli import main
from agent_eval_schema.io.csv import is_formula

RUNS = '=HYPERLINK("http://x.example","Hi")'
ROWS = [{"request": "Hi", "response": "-3.5"}, {"request": "Ho", "response": RUNS}]


@pytest.mark.parametrize("cell", ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "-", "- 1", "-1_0", "+1e", "--1"])
def test_what_a_spreadsheet_runs(cell: str) -> None:
    assert is_formula(cell) == (len(cell) > 1)


@pytest.mark.parametrize(
    "cell", ["", "a", "1", "-3.5", "+1", "-.5", "-1.", "-1e-9", "+1E+300", " =1", "'=1", "a=1", "é"]
)
def test_what_it_shows_as_it_is(cell: str) -> None:
    assert not is_formula(cell)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers())
def test_no_number_is_a_formula(number: float) -> None:
    assert not is_formula(str(number))
    assert not is_formula(f"{number:+}")


CALLS = {"predicted_trajectory": [], "reference_trajectory": [{"tool_name": "a", "tool_input": {}}]}
WRITERS: dict[str, Callable[[Path], object]] = {
    "write_eval_set": lambda path: write_eval_set(ROWS, path),
    "write": lambda path: validate_eval_set(ROWS).write(path),
    "write_invalid": lambda path: validate_eval_set([*ROWS, {"response": RUNS}]).write_invalid(path),
    "conversion": lambda path: convert_eval_set(ROWS, "vertex").write(path),
    "scores": lambda path: score_trajectories([{**row, **CALLS} for row in ROWS]).write(path),
    "distinct": lambda path: profile_eval_set(ROWS).write(path),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_writer_reports_it_and_changes_nothing(write: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with pytest.warns(
        FormulaWarning, match=r"rows\.csv: a spreadsheet reads 1 cell as a formula, .* in row \d, column"
    ):
        write(path)
    cells = [cell for row in csv.reader(path.read_text().splitlines()) for cell in row]
    assert RUNS in [json.loads(cell) if cell[:1] == '"' else cell for cell in cells]


def test_a_name_of_a_column_is_a_cell(tmp_path: Path) -> None:
    frame = pd.DataFrame({"request": ["Hi"], "=1+1": ["a"]})
    with pytest.warns(FormulaWarning, match="reads 1 cell as a formula, the first one in the header: open"):
        write_eval_set(frame, tmp_path / "rows.csv")


def test_many_are_counted_over_the_batches(tmp_path: Path) -> None:
    rows = [{"request": "Hi", "response": RUNS if i > 8_000 else "Hello"} for i in range(9_000)]
    with pytest.warns(
        FormulaWarning, match="reads 999 cells as formulas, the first one in row 8001, column `response`"
    ):
        write_eval_set(rows, tmp_path / "rows.csv")


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_other_files_have_no_formulas(ending: str, tmp_path: Path) -> None:
    assert write_eval_set(ROWS, tmp_path / f"rows.{ending}") == 2  # a warning is an error here


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "IN", "OUT", "--to", "vertex"),
        ("validate", "IN", "--write-normalized", "OUT"),
        ("validate", "IN", "--fix", "OUT"),
        ("profile", "IN", "--write-distinct", "OUT"),
    ],
    ids=lambda words: f"{words[0]} {words[2]}",
)
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_commands_note_it_once(
    arguments: tuple[str, ...], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = tmp_path / f"in.{kind}", tmp_path / "out.csv"
    given.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    if kind == "csv":
        pd.DataFrame(ROWS).to_csv(given, index=False)
    words = [{"IN": str(given), "OUT": str(out)}.get(word, word) for word in arguments]
    assert main(words) == 0
    assert capsys.readouterr().err.count(f"{out}: a spreadsheet reads 1 cell as a formula") == 1
    assert main([*words, "--quiet"]) == 0
    assert "spreadsheet" not in capsys.readouterr().err
