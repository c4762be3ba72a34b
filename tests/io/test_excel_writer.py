"""Rows in a new sheet: read back they are the same, no text is a formula, and issues are comments of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, convert_eval_set, validate_eval_set, write_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.io import excel_writer
from tests.conftest import SAMPLES

openpyxl = pytest.importorskip("openpyxl")

FORMULAS = ["=1+1", "+1", "-2", "@SUM(A1)", '=HYPERLINK("https://example.com")', "#N/A", "'x"]
TEXTS = [*FORMULAS, "42", "007", "TRUE", "2026-01-01", " a", "b \n", "c\td", "Größe € 😀", '{"a": 1}', "<b>&amp;"]


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    return list(openpyxl.load_workbook(path).active.iter_rows(values_only=True))


def test_texts_stay_texts(tmp_path: Path) -> None:
    rows = [{"request": "Why?", "response": text, "=a": text} for text in TEXTS]
    path = tmp_path / "rows.xlsx"
    assert write_eval_set(rows, path) == len(TEXTS)
    sheet = openpyxl.load_workbook(path).active
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s"}
    assert rows_of(path) == [("request", "response", "=a"), *(("Why?", text, text) for text in TEXTS)]
    assert [row["response"] for row in validate_eval_set(path).iter_rows()] == TEXTS


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="_\ufffe\uffff")), min_size=1)
)
def test_any_text_without_control_characters_comes_back(tmp_path_factory: Any, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("sheet") / "rows.xlsx"
    write_eval_set([{"request": "Why?", "note": text} for text in texts], path)
    assert rows_of(path)[1:] == [("Why?", text or None) for text in texts]


def test_numbers_are_numbers_if_a_sheet_holds_them_exactly(tmp_path: Path) -> None:
    row = {"request": "Why?", "response": "x", "latency_seconds": 1.5, "n": 3, "big": 2**60, "flag": True, "none": None}
    write_eval_set([row], path := tmp_path / "rows.xlsx")
    assert rows_of(path)[1] == ("Why?", "x", 1.5, 3, str(2**60), True, None)


def test_a_conversion_is_read_back_as_from_a_csv_file(tmp_path: Path) -> None:
    conversion = convert_eval_set(SAMPLES / "good.csv", "mlflow")
    for name in ("rows.xlsx", "rows.csv"):
        conversion.write(tmp_path / name)
    sheet, text = (validate_eval_set(tmp_path / name) for name in ("rows.xlsx", "rows.csv"))
    assert (sheet.format, sheet.counts, sheet.row_count) == ("mlflow", text.counts, text.row_count)
    assert list(sheet.iter_rows()) == list(text.iter_rows())


def test_the_issues_of_a_row_are_comments_of_its_cells(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        '{"request": "Why?", "response": "x"}\n{"request": " ", "response": "=1", "expected_facts": "\\u202efact"}\n'
    )
    path = tmp_path / "invalid.xlsx"
    assert main(["validate", str(tmp_path / "rows.jsonl"), "--write-invalid", str(path)]) == 1
    sheet = openpyxl.load_workbook(path).active
    header = [cell.value for cell in sheet[1]]
    assert "_issues" not in header
    assert sheet.max_row == 2
    comments = {name: cell.comment.text for name, cell in zip(header, sheet[2], strict=True) if cell.comment}
    assert set(comments) == {"request", "expected_facts"}
    assert comments["request"].startswith("AE202 expected a question, got blank text\n→ Fill in the question")
    assert "AE303" in comments["expected_facts"]
    assert "\u202e" not in comments["expected_facts"]


@pytest.mark.parametrize(
    ("text", "got"),
    [("a\r\nb", r"'\\r'"), ("\x01", r"'\\x01'"), ("x" * 32_768, "32,768 characters"), ("_x000D_", "'_x000D_'")],
)
def test_a_text_that_a_sheet_would_change_is_an_error_and_nothing_is_left(tmp_path: Path, text: str, got: str) -> None:
    rows = [{"request": "Why?", "response": "x"}, {"request": "Why?", "response": text}]
    with pytest.raises(EvalSetError, match=f"^row 1, response: expected a text that a sheet holds .* got {got}: write"):
        write_eval_set(rows, tmp_path / "rows.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_sheet_has_a_number_of_rows_and_is_compressed_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel_writer, "MOST_ROWS", 2)
    with pytest.raises(EvalSetError, match="expected at most 2 rows, which a sheet has"):
        write_eval_set([{"request": "Why?"}] * 3, tmp_path / "rows.xlsx")
    with pytest.raises(EvalSetError, match=r"expected \.xlsx without \.gz: it is compressed itself"):
        write_eval_set([{"request": "Why?"}], tmp_path / "rows.xlsx.gz")
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_whose_rows_are_not_its_lines_is_not_fixed_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its title, its styles and its other sheets would be gone."""
    path = tmp_path / "runs.xlsx"
    book = openpyxl.Workbook()
    for row in (["Catalog"], ["eval_set_id", "eval_cases"], ["a", '[{"eval_id": "x", "conversation": []}]']):
        book.active.append(row)
    book.create_sheet("Notes")
    book.save(path)
    before = path.read_bytes()
    assert main(["validate", str(path), "--fix", str(path)]) == 2
    assert "--fix would overwrite FILE: choose another path" in capsys.readouterr().err
    assert path.read_bytes() == before
