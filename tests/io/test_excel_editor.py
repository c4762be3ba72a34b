"""Cells and comments in the workbook that rows came from: whatever else it has is the same, byte for byte."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, import_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.excel_editor import comment_workbook, edit_workbook
from agent_eval_schema.io.source import SheetPlace
from agent_eval_schema.review.dataset import Reviewed
from agent_eval_schema.review.write import Reviewing, out_path
from tests.helpers.sheets import SHEET, SUPPORT, book, cells_of, parts_of, rewritten

openpyxl = pytest.importorskip("openpyxl")

HEADER = ["request", "expected_response", "expected_facts", "owner", "hours"]
ROWS: list[list[Any]] = [
    ["Where is it?", None, "['here', 'there']", "a", "=1+2"],
    ["  ", None, "one", "b", 3],
    ["When?", "=now", None, "c", 4.5],
]
COMMENTS = "xl/comments/comment1.xml"


def team(path: Path, *, note: str | None = None, change: Callable[[Any], None] = id) -> Path:
    """A title, a header in color, a formula with a value, a chart, a second sheet with a comment."""
    from openpyxl.chart import BarChart, Reference
    from openpyxl.comments import Comment
    from openpyxl.styles import PatternFill

    made = openpyxl.Workbook()
    sheet = made.active
    for row in (["Catalog"], [], HEADER, *ROWS):
        sheet.append(row)
    sheet["B6"].data_type = "s"
    sheet["A3"].fill = PatternFill("solid", fgColor="FFFF00")
    sheet["C5"].fill = PatternFill("solid", fgColor="FF0000")
    sheet.column_dimensions["A"].width = 44
    sheet.merge_cells("A1:E1")
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=5, min_row=4, max_row=6))
    sheet.add_chart(chart, "H2")
    if note:
        sheet[note].comment = Comment("by a person", "ana")
    other = made.create_sheet("Notes")
    other.append(["x"])
    other["A1"].comment = Comment("elsewhere", "bob")
    change(sheet)
    made.save(path)
    with_value = {SHEET: parts_of(path)[SHEET].replace(b"<f>1+2</f><v></v>", b"<f>1+2</f><v>3</v>")}
    with ZipFile(path) as old, ZipFile(path.with_suffix(".tmp"), "w") as new:
        for name in old.namelist():
            new.writestr(name, with_value.get(name, old.read(name)))
    path.with_suffix(".tmp").replace(path)
    return path


def comments_of(path: Path) -> dict[str, str]:
    sheets = openpyxl.load_workbook(path).worksheets
    return {
        f"{sheet.title}!{cell.coordinate}": cell.comment.text
        for sheet in sheets
        for row in sheet.iter_rows()
        for cell in row
        if cell.comment
    }


FIXED = {"C4": '["here","there"]', "C5": '["one"]'}


@pytest.mark.parametrize("out", ["team.xlsx", "fixed.xlsx"], ids=["in place", "another file"])
def test_only_the_fixed_cells_differ(tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = team(tmp_path / "team.xlsx")
    before, cells, values = parts_of(path), cells_of(path), cells_of(path, data_only=True)
    assert main(["validate", f"{path}#Sheet", "--fix", str(tmp_path / out)]) == 1
    assert f"{out}#Sheet:5" in capsys.readouterr().out
    after = parts_of(tmp_path / out)
    assert {name for name in before if before[name] != after[name]} == {SHEET}
    assert before.keys() == after.keys()
    assert cells_of(tmp_path / out) == cells | FIXED
    assert cells_of(tmp_path / out, data_only=True) == values | FIXED
    assert values["E4"] == 3
    sheet = openpyxl.load_workbook(tmp_path / out).worksheets[0]
    assert (sheet["C5"].fill.fgColor.rgb, sheet["B6"].data_type) == ("00FF0000", "s")
    assert validate_eval_set(tmp_path / out).counts == {"AE103": 2, "AE181": 1, "AE202": 1}


def test_advice_names_a_workbook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(team(tmp_path / "team.xlsx"))]) == 1
    assert "team.xlsx --fix fixed.xlsx" in capsys.readouterr().out


@pytest.mark.parametrize("note", [None, "A5", "E6"])
def test_issues_are_comments_behind_those_of_a_person(tmp_path: Path, note: str | None) -> None:
    path = team(tmp_path / "team.xlsx", note=note)
    before, own = parts_of(path), comments_of(path)
    out = tmp_path / "invalid.xlsx"
    assert main(["validate", str(path), "--write-invalid", str(out)]) == 1
    assert cells_of(out) == cells_of(path)
    found = comments_of(out)
    assert found.keys() == own.keys() | {"Sheet!A5", "Sheet!C5"}
    assert all(text in found[cell] for cell, text in own.items())
    assert "AE202 expected a question, got blank text\n→ Fill in the question" in found["Sheet!A5"]
    assert "AE303" in found["Sheet!C5"]
    own_parts = {name for name in before if before[name] != parts_of(out)[name]}
    files = {SHEET, "xl/worksheets/_rels/sheet1.xml.rels", "[Content_Types].xml"}
    assert own_parts == ({COMMENTS, "xl/drawings/commentsDrawing1.vml"} if note else files)
    again = tmp_path / "again.xlsx"
    assert validate_eval_set(out).write_invalid(again) == 1
    assert comments_of(again)["Sheet!C5"].count("AE303") == 2


def test_comments_of_each_sheet_have_parts_of_their_own(tmp_path: Path) -> None:
    path = book(tmp_path / "d.xlsx", a=[HEADER, ROWS[1]], b=[HEADER, ROWS[1]])
    for sheet, out in (("a", "a.xlsx"), ("b", "b.xlsx")):
        validate_eval_set(f"{path}#{sheet}").write_invalid(path := tmp_path / out)
    assert {cell.partition("!")[0] for cell in comments_of(path)} == {"a", "b"}


TEXTS = ["=1+1", "+1", "-2", "@SUM(A1)", "#N/A", "<b>&amp;]]>", " a \n", "Größe 😀"]


def test_texts_stay_texts_in_a_reviewed_workbook(tmp_path: Path) -> None:
    path = book(tmp_path / "d.xlsx", Sheet=[["request", "own"], *([f"q{n}", "=1+1"] for n in range(len(TEXTS)))])
    reviewing = Reviewing(
        Reviewed(open_source(str(path))), {row: {"expected_response": text} for row, text in enumerate(TEXTS)}
    )
    reviewing.write(str(tmp_path / "out.xlsx"))
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert [cell.value for cell in sheet["C"]] == ["expected_response", *TEXTS]
    assert {cell.data_type for cell in sheet["C"]} == {"s"}
    assert {cell.value for cell in sheet["B"]} == {"own", "=1+1"}
    assert out_path(f"{path}#Sheet") == "d.reviewed.xlsx"


def test_a_dropped_row_is_an_empty_line(tmp_path: Path) -> None:
    rows = [[f"q{n}", "x", None] for n in range(4)]
    path = book(tmp_path / "d.xlsx", Sheet=[["request", "expected_response"], *rows])
    Reviewing(Reviewed(open_source(str(path))), {1: {"dropped": True}, 3: {"expected_response": "y"}}).write(
        str(out := tmp_path / "out.xlsx")
    )
    assert [row["request_id"] for row in validate_eval_set(out).iter_rows()] == [None] * 3
    cells = cells_of(out)
    assert (cells["A2"], "A3" in cells, cells["A4"], cells["B5"]) == ("q0", False, "q2", "y")


NAMES = {
    "Kundenfrage": "request",
    "Musterantwort": "expected_response",
    "Wichtige Punkte[\\n]": "expected_facts",
    "Quelle[;]": "expected_retrieved_context[].doc_uri",
    "expected_facts": "preferred",
}


def test_a_review_is_written_in_the_columns_of_the_team(tmp_path: Path) -> None:
    """The names, the lines of the points and the separators of the sources are those of the sheet."""
    path = book(tmp_path / "support.xlsx", "A1:F1", Fälle=SUPPORT, Hinweise=[["x"], ["y"], ["z"]])
    names = import_eval_set(path, columns=NAMES).columns
    reviewed = Reviewed(open_source(f"{path}#Fälle", columns=names))
    states = {
        0: {"expected_facts": ["App", "Profil", "Adresse"]},
        1: {"documents": {"agb.md": False, "neu.md": True}},
        3: {"expected_response": "=Ja"},
    }
    Reviewing(reviewed, states).write(str(out := tmp_path / "out.xlsx"))
    cells = cells_of(path)
    assert cells_of(out) == cells | {"D4": "App\nProfil\nAdresse", "E5": "faq.md; neu.md", "C8": "=Ja"}
    rows = list(validate_eval_set(f"{out}#Fälle", columns=names).iter_rows())
    assert rows[0]["expected_facts"] == ["App", "Profil", "Adresse"]
    impossible = {0: {"expected_facts": ["two\nlines"]}}
    with pytest.raises(EvalSetError, match="`expected_facts` is read from 'Wichtige Punkte': expected a value that"):
        Reviewing(reviewed, impossible).write(str(tmp_path / "no.xlsx"))
    assert not (tmp_path / "no.xlsx").exists()


def test_comments_and_fixes_are_in_the_columns_of_the_team(tmp_path: Path) -> None:
    rows = [["Frage", "Punkte"], ["Wo?", "['a', 'b']"], [" ", "c"]]
    path, names = book(tmp_path / "d.xlsx", Sheet=rows), {"Frage": "request", "Punkte": "expected_facts"}
    report = validate_eval_set(path, columns=names)
    report.write_invalid(tmp_path / "invalid.xlsx")
    assert comments_of(tmp_path / "invalid.xlsx").keys() == {"Sheet!B2", "Sheet!A3", "Sheet!B3"}
    options = [f"--columns={title}={name}" for title, name in names.items()]
    assert main(["validate", str(path), *options, "--fix", str(path)]) == 1
    assert cells_of(path) == {"A1": "Frage", "B1": "Punkte", "A2": "Wo?", "B2": '["a","b"]', "A3": " ", "B3": '["c"]'}


def _table(sheet: Any) -> None:
    from openpyxl.worksheet.table import Table

    sheet["C3"] = "expected_fact"
    sheet.add_table(Table(displayName="t", ref="A3:E6"))


def _with_both(sheet: Any) -> None:
    sheet["F3"], sheet["F4"], sheet["C4"] = "expected_fact", "['x']", None


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda sheet: sheet.merge_cells("C4:C5"), "C4: .* got merged cells"),
        (lambda sheet: sheet.merge_cells("C4:D4"), ""),
        (_table, "C3: .* got the header of a table"),
        (_with_both, "the header: .* got two columns that become one"),
    ],
    ids=["over lines", "over columns", "table", "two columns"],
)
def test_what_cannot_be_replaced_is_an_error(
    tmp_path: Path, change: Callable[[Any], None], got: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = team(tmp_path / "team.xlsx", change=change)
    before = path.read_bytes()
    status = main(["validate", str(path), "--fix", str(path)])
    error = capsys.readouterr().err
    assert (status == 2) == bool(got)
    assert re.search(got, error.replace("\n", " "))
    assert (path.read_bytes() == before) == bool(got)


def test_numbers_and_flags_are_written_as_such(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", Sheet=[["a", "b", "c"], ["x", "y", "z"]])
    edit_workbook(open_sheet(path), str(tmp_path / "out.xlsx"), {}, iter([{"a": 4.5, "b": True, "c": 2**53 - 1}]))
    cells = cells_of(tmp_path / "out.xlsx")
    assert [cells[place] for place in ("A2", "B2", "C2")] == [4.5, True, 2**53 - 1]
    assert type(cells["B2"]) is bool


def test_a_formula_is_not_replaced(tmp_path: Path) -> None:
    path = team(tmp_path / "team.xlsx")
    with pytest.raises(EvalSetError, match=r"team\.xlsx: E4: expected a cell that can be replaced, got a formula: wri"):
        Reviewing(Reviewed(open_source(str(path))), {0: {"dropped": True}}).write(str(tmp_path / "out.xlsx"))
    assert [file.name for file in tmp_path.iterdir()] == ["team.xlsx"]


@pytest.mark.parametrize(
    ("old", "new", "got"),
    [
        (b"<worksheet", b"<!DOCTYPE a><worksheet", "a document type"),
        (b"<worksheet", b'<?xml version="1.0" encoding="iso-8859-1"?><worksheet', "XML in iso-8859-1"),
    ],
)
def test_a_part_that_may_be_read_otherwise_is_an_error(tmp_path: Path, old: bytes, new: bytes, got: str) -> None:
    path = team(tmp_path / "team.xlsx")
    rewritten(path, lambda name, xml: xml.replace(old, new, 1) if name == SHEET else xml)
    with pytest.raises(EvalSetError, match=got):
        validate_eval_set(path).write_invalid(tmp_path / "out.xlsx")


@pytest.mark.parametrize(
    ("comments", "got"),
    [
        (None, "no such part"),
        (b"<comments>", r"comment1\.xml: .* got XML that cannot be read \(no element found"),
        (b"<comments><authors/><commentList/></comments>", "no element authors, or an empty one"),
    ],
)
def test_comments_that_cannot_be_continued_are_an_error(tmp_path: Path, comments: bytes | None, got: str) -> None:
    path = team(tmp_path / "team.xlsx", note="A5")
    parts = parts_of(path) | ({} if comments is None else {COMMENTS: comments})
    with ZipFile(path, "w") as new:
        for name in parts.keys() - ({COMMENTS} if comments is None else set()):
            new.writestr(name, parts[name])
    with pytest.raises(EvalSetError, match=got):
        comment_workbook(open_sheet(path), str(tmp_path / "out.xlsx"), [(0, NOTES)])
    assert not (tmp_path / "out.xlsx").exists()


def test_a_thread_of_comments_is_not_continued(tmp_path: Path) -> None:
    path = team(tmp_path / "team.xlsx", note="A4")
    thread = b'<Relationship Id="t" Type="http://schemas.microsoft.com/x/threadedComment" Target="/xl/t.xml"/></Relat'
    rewritten(path, lambda name, xml: xml.replace(b"</Relat", thread) if f"{Path(SHEET).name}.rels" in name else xml)
    with pytest.raises(EvalSetError, match=r"team\.xlsx: A4: .* got a thread of comments"):
        comment_workbook(open_sheet(path), str(tmp_path / "out.xlsx"), [(0, NOTES)])


NOTES = [{"code": "AE202", "column": "request", "path": "request", "message": "m", "hint": "h"}]


def open_sheet(path: Path) -> SheetPlace:
    place = open_source(str(path)).sheet
    assert place is not None
    return place


def test_cells_without_places_and_with_a_prefix_are_found(tmp_path: Path) -> None:
    """As some programs write them: no `r`, elements with a prefix, empty elements."""
    main_ = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cell = "<x:c t='inlineStr'><x:is><x:t>{}</x:t></x:is></x:c>".format
    lines = [["request", "expected_facts"], ["a", "one"], ["b", "two"]]
    rows = "".join(f"<x:row><x:c s='0'/>{''.join(map(cell, line))}</x:row>" for line in lines)
    xml = f"<x:worksheet xmlns:x='{main_}'><x:sheetData>{rows}</x:sheetData></x:worksheet>".encode()
    path = book(tmp_path / "d.xlsx", Sheet=[["a"]])
    rewritten(path, lambda name, content: xml if name == SHEET else content)
    assert main(["validate", str(path), "--fix", str(tmp_path / "out.xlsx")]) == 0
    cells = cells_of(tmp_path / "out.xlsx")
    assert cells == {"B1": "request", "C1": "expected_facts", "B2": "a", "C2": '["one"]', "B3": "b", "C3": '["two"]'}


def test_a_workbook_that_was_changed_since_it_was_read_is_kept(tmp_path: Path) -> None:
    path = team(tmp_path / "team.xlsx")
    report = validate_eval_set(path)
    team(path, note="A4")
    with pytest.raises(EvalSetError, match="changed"):
        report.write_invalid(tmp_path / "out.xlsx")
    assert not (tmp_path / "out.xlsx").exists()


@pytest.mark.process
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is missing")
def test_libre_office_opens_what_is_written(tmp_path: Path) -> None:
    """Its values, formulas and comments after a round trip through it."""
    path = team(tmp_path / "team.xlsx", note="A5")
    main(["validate", str(path), "--fix", str(tmp_path / "fixed.xlsx")])
    validate_eval_set(tmp_path / "fixed.xlsx").write_invalid(tmp_path / "invalid.xlsx")
    fresh = team(tmp_path / "fresh.xlsx")
    validate_eval_set(fresh).write_invalid(tmp_path / "first.xlsx")
    for name in ("invalid.xlsx", "first.xlsx"):
        command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", "xlsx"]
        command += ["--outdir", str(tmp_path / "office"), str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True, timeout=240)
    back = tmp_path / "office" / "invalid.xlsx"
    assert cells_of(back) == cells_of(path) | FIXED
    assert cells_of(back, data_only=True)["E4"] == 3
    comments = comments_of(back)
    assert comments["Notes!A1"].endswith("elsewhere")
    assert "by a person" in comments["Sheet!A5"]
    assert "AE202" in comments["Sheet!A5"]
    first = comments_of(tmp_path / "office" / "first.xlsx")
    assert {cell: code in first[cell] for cell, code in (("Sheet!A5", "AE202"), ("Sheet!C5", "AE303"))} == {
        "Sheet!A5": True,
        "Sheet!C5": True,
    }


@pytest.mark.parametrize("by", ["command", "function"])
def test_a_conversion_is_in_the_lines_that_its_rows_come_from(tmp_path: Path, by: str) -> None:
    path, out = team(tmp_path / "team.xlsx"), tmp_path / "vertex.xlsx"
    before = parts_of(path)
    if by == "command":
        assert main(["convert", f"{path}#Sheet", str(out), "--to", "vertex"]) == 1
    else:
        assert convert_eval_set(f"{path}#Sheet", "vertex").write(out) == 2
    after = parts_of(out)
    assert {name for name in before if before[name] != after.get(name)} == {SHEET}
    was, cells = cells_of(path), cells_of(out)
    passed = {cell: value for cell, value in was.items() if cell[0] in "DE" and cell not in ("D5", "E5")}
    own = {"A1": "Catalog", "A3": "prompt", "B3": "reference", "A4": "Where is it?", "A6": "When?", "B6": "=now"}
    assert cells == passed | own
    sheet = openpyxl.load_workbook(out).worksheets[0]
    assert (sheet["A3"].fill.fgColor.rgb, sheet["B6"].data_type) == ("00FFFF00", "s")
    assert validate_eval_set(f"{out}#Sheet", format="vertex", outputs="generated").row_count == 2
