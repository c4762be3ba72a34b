"""Excel files that are small and unpack to much."""

import datetime as dt
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.io import streams
from agent_eval_schema.io.excel import read_excel

openpyxl = pytest.importorskip("openpyxl")


def sheet(path: Path, *rows: list[Any], **far: Any) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for place, value in far.items():
        book.active[place] = value
    book.save(path)
    return path


def test_a_cell_at_the_end_of_a_sheet_costs_nothing(tmp_path: Path) -> None:
    path = sheet(tmp_path / "far.xlsx", ["request", "response"], ["Hi", "Hello"], XFD1048576="x")
    tracemalloc.start()
    frame = read_excel(str(path))
    assert tracemalloc.get_traced_memory()[1] < 24 << 20
    tracemalloc.stop()
    assert frame.columns.tolist() == ["request", "response", "Unnamed: 16383"]
    assert frame.to_numpy(object)[0, :2].tolist() == ["Hi", "Hello"]
    assert len(frame) == 2


def test_what_a_cell_holds_is_kept(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "kinds.xlsx",
        ["a", "b", "c", "d", "a"],
        [],
        [1.0, 1.5, True, dt.date(2026, 1, 2), "x"],
        [None, "#N/A"],
    )
    frame = read_excel(str(path))
    assert frame.columns.tolist() == ["a", "b", "c", "d", "a"]
    assert frame.iloc[0].tolist() == [1, 1.5, True, "2026-01-02", "x"]
    assert len(frame) == 1
    assert validate_eval_set(path).counts["AE104"] == 1


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sheet(tmp_path / "bomb.xlsx", ["request", "response"], *([f"{i} " * 200, "x"] for i in range(2_000)))
    monkeypatch.setattr(streams, "MOST_UNPACKED", 100_000)
    with pytest.raises(EvalSetError, match=r"bomb\.xlsx: expected a file of up to 0 MB, got more: set AGENT_EVAL_"):
        validate_eval_set(path)
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_MAX_UNPACKED", "9")
    assert validate_eval_set(path).row_count == 2_000
