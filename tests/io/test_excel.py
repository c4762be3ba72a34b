"""Excel files that are small and unpack to much."""

import datetime as dt
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, normalize_eval_set, validate_eval_set
from agent_eval_schema.io import streams
from agent_eval_schema.io.excel import read_excel
from agent_eval_schema.text.spelling import SHEET_ERRORS
from tests.helpers.sheets import rewritten

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
    frame = read_excel(str(path)).frame
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
    frame = read_excel(str(path)).frame
    assert frame.columns.tolist() == ["a", "b", "c", "d", "a"]
    assert frame.iloc[0].tolist() == [1, 1.5, True, "2026-01-02", "x"]
    assert frame.iloc[1].tolist()[1] == "#N/A"
    assert len(frame) == 2
    assert validate_eval_set(path).counts["AE104"] == 1


@pytest.mark.parametrize("error", SHEET_ERRORS)
def test_a_row_of_errors_is_a_row_in_a_workbook_and_in_its_csv(error: str, tmp_path: Path) -> None:
    lines = [["request", "response", "expected_response"], ["Hi", "Hello", error], [error] * 3]
    path = sheet(tmp_path / "errors.xlsx", *lines)
    (tmp_path / "errors.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    reports = [validate_eval_set(file) for file in (path, tmp_path / "errors.csv")]
    for report in reports:
        assert report.row_count == 2
        found = {(i.code, i.row, i.column) for i in report.iter_issues()}
        assert found >= {("AE115", 1, "request"), ("AE115", 1, "response")}
        assert {(row, column) for code, row, column in found if code != "AE115"} >= {
            (row, "expected_response") for row in range(2)
        }
    assert reports[0].counts == reports[1].counts


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sheet(tmp_path / "bomb.xlsx", ["request", "response"], *([f"{i} " * 200, "x"] for i in range(2_000)))
    monkeypatch.setattr(streams, "MOST_UNPACKED", 100_000)
    with pytest.raises(EvalSetError, match=r"bomb\.xlsx: expected a file of up to 0 MB, got more: set AGENT_EVAL_"):
        validate_eval_set(path)
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_MAX_UNPACKED", "9")
    assert validate_eval_set(path).row_count == 2_000


HEADER = ["Nr.", "Kundenfrage", "Musterantwort", "Thema"]
LINES = [[1, "Wie geht das?", "So.", "a"], [2, "Storniere Bestellung 4711", "Erledigt.", None], [3, "Wo?", None, "b"]]


@pytest.mark.parametrize("above", [[["Testfälle"]], [["Testfälle"], [], ["Stand: 1. November"], []], [[], []]], ids=str)
def test_a_title_above_the_header_is_no_name(tmp_path: Path, above: list[list[Any]]) -> None:
    path = sheet(tmp_path / "t.xlsx", *above, HEADER, LINES[0], [], *LINES[1:])
    assert read_excel(str(path)).frame.columns.tolist() == HEADER
    report = validate_eval_set(path, columns="auto")
    assert [row["expected_response"] for row in report.iter_rows()] == ["So.", "Erledigt.", None]
    lines = {0: [], 1: ["1 line above the header is no row"], 2: ["2 lines above the header are no rows"]}
    found = [issue.message for issue in report.iter_issues() if issue.code == "AE181"]
    assert found == lines[sum(map(bool, above))]
    text = validate_eval_set(path, format="databricks").to_text()
    assert [f"t.xlsx:{len(above) + line}" in text for line in (2, 3, 4)] == [True, False, True]


@pytest.mark.parametrize(
    "rows",
    [
        [["question"], ["Hi"], ["Bye"]],
        [["question"], ["Hi", "a note"], ["Bye"], ["Who?"]],
        [["question", "answer"], ["Hi"], ["Bye"]],
        [[None, "question"], [0, "Hi"], [1, "Bye"]],
        [["Hi there"], ["How is it returned?", "In a box."], ["When?", "Today."]],
        [["a"]],
    ],
    ids=str,
)
def test_the_first_line_is_the_header_otherwise(tmp_path: Path, rows: list[list[Any]]) -> None:
    found = read_excel(str(sheet(tmp_path / "t.xlsx", *rows)))
    assert (found.above, len(found.frame)) == (0, len(rows) - 1)


def merged_sheet(path: Path, rows: list[list[Any]], *ranges: str) -> Path:
    sheet(path, *rows)
    book = openpyxl.load_workbook(path)
    for cells in ranges:
        book.active.merge_cells(cells)
    book.save(path)
    return path


def test_merged_cells_are_those_of_each_line_and_groups_of_columns_no_names(tmp_path: Path) -> None:
    rows = [["Title"], ["Topic", "Question", "Expected", None], [None, None, "Answer", "Points"]]
    rows += [["a", "q1", "a1", "p1"], [None, "q2", "a2", "p2"], ["b", "q3", "a3", "p3"]]
    path = merged_sheet(tmp_path / "t.xlsx", rows, "A1:D1", "A2:A3", "B2:B3", "C2:D2", "A4:A5")
    found = read_excel(str(path))
    assert found.frame.columns.tolist() == ["Topic", "Question", "Answer", "Points"]
    assert found.frame["Topic"].tolist() == ["a", "a", "b"]
    assert found.place.lines == [4, 5, 6]


def test_cells_that_are_merged_over_more_lines_than_memory_should_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[list[Any]] = [["request", "response", "c"], ["a", "b", "c"], *([[None, None, i] for i in range(9_000)])]
    path = merged_sheet(tmp_path / "t.xlsx", rows, "A2:A9002", "B2:B9002")
    assert validate_eval_set(path).row_count == 9_001
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_MAX_UNPACKED", "2")
    with pytest.raises(EvalSetError, match=r"t\.xlsx: expected a file of up to 2 MB, got more: set AGENT_EVAL_"):
        validate_eval_set(path)


def test_of_merged_cells_that_overlap_the_first_are_read(tmp_path: Path) -> None:
    path = sheet(tmp_path / "t.xlsx", ["request", "response"], ["q1", "a"], ["q2", "b"], [None, "c"])
    merged = b'</sheetData><mergeCells count="2"><mergeCell ref="A2:A3"/><mergeCell ref="A3:A4"/></mergeCells>'
    rewritten(path, lambda _, xml: xml.replace(b"</sheetData>", merged))
    assert read_excel(str(path)).frame["request"].dropna().tolist() == ["q1", "q2"]


def test_two_cells_at_one_place_are_refused(tmp_path: Path) -> None:
    path = sheet(tmp_path / "t.xlsx", ["request", "response"], ["q", "a"])
    rewritten(path, lambda _, xml: xml.replace(b'r="B2"', b'r="A2"'))
    with pytest.raises(EvalSetError, match=r"t\.xlsx: cannot be read as Excel: .*line 2 of 'Sheet' has two cells of "):
        validate_eval_set(path)


def test_without_openpyxl_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sheet(tmp_path / "t.xlsx", ["request", "response"], ["q", "a"])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(EvalSetError, match=r"agent-eval-schema\[excel\]"):
        validate_eval_set(path)


def test_a_workbook_of_charts_has_no_rows(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_chartsheet("Chart").add_chart(openpyxl.chart.BarChart())
    book.remove(book.active)
    book.save(path := tmp_path / "t.xlsx")
    with pytest.raises(
        EvalSetError, match=r"t\.xlsx: expected a sheet with rows, got charts at most: add a sheet, or open"
    ):
        validate_eval_set(path)


def test_a_number_and_a_flag_in_a_column_of_texts_are_as_shown(tmp_path: Path) -> None:
    path = sheet(tmp_path / "t.xlsx", ["request", "response", "own"], ["q", True, True], ["r", 0.5, 0.5])
    assert validate_eval_set(path).rows[["response", "own"]].to_numpy().tolist() == [["TRUE", True], ["0.5", 0.5]]


def test_of_two_columns_with_one_name_each_has_its_own_formats(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(sheet(tmp_path / "t.xlsx", ["request", "response", "response"], ["q", 0.5, 0.25]))
    book.active["B2"].number_format, book.active["C2"].number_format = "0%", "0.00"
    book.save(tmp_path / "t.xlsx")
    assert validate_eval_set(tmp_path / "t.xlsx").rows["response"].tolist() == ["50%"]


def test_a_merged_name_above_two_columns_of_values_is_the_header(tmp_path: Path) -> None:
    path = merged_sheet(tmp_path / "t.xlsx", [["q", "Points", None], ["q1", "p1", "p2"], ["q2", "p3", None]], "B1:C1")
    found = read_excel(str(path)).frame
    assert (found.columns.tolist(), len(found)) == (["q", "Points", "Unnamed: 2"], 2)


def test_of_sheets_with_rows_each_is_named_with_its_count(tmp_path: Path) -> None:
    path = sheet(tmp_path / "t.xlsx", HEADER, *LINES)
    book = openpyxl.load_workbook(path)
    book.create_sheet("Notes").append(["Only column C"])
    book.save(path)
    assert validate_eval_set(path, columns="auto").row_count == 3
    book["Notes"].append(["and no other one"])
    book["Notes"].append(["Thanks"])
    book.save(path)
    with pytest.raises(EvalSetError, match=r"use one of \S+t.xlsx#Sheet \(3\), \S+t.xlsx#Notes \(2\)"):
        validate_eval_set(path)


def test_a_formula_without_a_stored_result_is_its_text(tmp_path: Path) -> None:
    """A text that begins with `=` is one for pandas; what a spreadsheet has calculated is the result, also if empty."""
    frame = pd.DataFrame({"request": ["a?", "b?"], "expected_response": ["=> go on", "x"]})
    frame.to_excel(tmp_path / "rows.xlsx", index=False)
    assert normalize_eval_set(str(tmp_path / "rows.xlsx"))["expected_response"].tolist() == ["=> go on", "x"]
    cells = [
        ("<f>1+1</f><v>2</v>", "", "2"),
        ("<f>1+1</f><v></v>", "", "=1+1"),
        ('<f t="array" ref="B2">A2:A3</f><v></v>', "", "=A2:A3"),
        ('<f t="shared" ref="B2:B3" si="0">"</f><v/>', "", '="'),  # which openpyxl cannot parse
        ("<f>IF(1,&quot;&quot;)</f><v></v>", ' t="str"', None),
    ]
    for xml, kind, expected in cells:
        with ZipFile(tmp_path / "rows.xlsx") as old, ZipFile(tmp_path / "other.xlsx", "w") as new:
            for name in old.namelist():
                text = old.read(name).decode()
                new.writestr(name, re.sub(r'<c r="B2"[^>]*>.*?</c>', f'<c r="B2"{kind}>{xml}</c>', text))
        rows = normalize_eval_set(str(tmp_path / "other.xlsx"))
        assert rows["expected_response"].tolist() == [expected, "x"], xml
