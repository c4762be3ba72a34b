"""`import`: spreadsheets made by hand, in three languages, with a person at a terminal and without."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, import_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.excel_editor import edit_workbook
from tests.conftest import PATIENCE
from tests.helpers.sheets import FORMATS, SUPPORT, book

openpyxl = pytest.importorskip("openpyxl")

GERMAN = [
    *(["Testfälle Kundensupport, Stand November"], []),
    ["Nr.", "Kundenfrage", "Musterantwort", "Wichtige Punkte", "Quelle", "Stand", "Thema"],
    [1, "Wie ändere ich meine Adresse?", "In der App.", "• App\n• Profil", "faq.md", dt.date(2026, 11, 1), "Konto"],
    [2, "Storniere bitte Bestellung 4711", "Erledigt.", "n/a", "agb.md; faq.md", dt.date(2026, 11, 2), "Konto"],
    [],
    [3, "Wann kommt mein Paket?", "TODO", "• Montag", "faq.md", None, "Versand"],
    [4, "Passwort zurücksetzen", 42, None, "faq.md", None, "Konto"],
    [4, "Passwort zurücksetzen", 42, None, "faq.md", None, "Konto"],
    [5, "Wie kündige ich?", "Schriftlich.", "• schriftlich\n• 3 Monate", None, None, "Vertrag"],
]
FRENCH = [["Question du client", "Réponse attendue"], ["Où est mon colis ?", "À Lyon."], ["Annule tout", "Fait."]]
JAPANESE = [["質問", "期待される回答"], ["返品できますか", "はい。"], ["注文を取り消して", "取り消しました。"]]


@pytest.fixture
def german(tmp_path: Path) -> Path:
    notes = [["Hinweise"], ["Nur Spalte C ausfüllen"], ["Danke"]]
    return book(tmp_path / "support.xlsx", "A1:G1", Fälle=GERMAN, Hinweise=notes)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_a_terminal_the_question_is_the_error(german: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(german), str(german.parent / "out.jsonl")]) == 2
    error = capsys.readouterr().err
    assert "2 rows with `expected_response` (Musterantwort) and `expected_facts` (Wichtige Punkte[\\n])" in error
    assert "`--prefer expected_facts` or `--prefer expected_response`" in error
    assert [path.name for path in german.parent.iterdir()] == ["support.xlsx"]


def test_the_spreadsheet_becomes_rows_of_mlflow(german: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = german.parent / "out.jsonl"
    assert main(["import", str(german), str(out), "--prefer", "expected_facts"]) == 0
    assert [row["expectations"] for row in rows_of(out)] == [
        {"expected_facts": ["App", "Profil"], "expected_retrieved_context": [{"doc_uri": "faq.md"}]},
        {
            "expected_response": "Erledigt.",
            "expected_retrieved_context": [{"doc_uri": "agb.md"}, {"doc_uri": "faq.md"}],
        },
        {"expected_facts": ["Montag"], "expected_retrieved_context": [{"doc_uri": "faq.md"}]},
        *[{"expected_response": "42", "expected_retrieved_context": [{"doc_uri": "faq.md"}]}] * 2,
        {"expected_facts": ["schriftlich", "3 Monate"]},
    ]
    assert [row.get("Stand") for row in rows_of(out)][:3] == ["2026-11-01", "2026-11-02", None]
    report = validate_eval_set(out)
    assert (report.format, report.ok, report.row_count) == ("mlflow", True, 6)
    shown = capsys.readouterr().out
    assert "6 of 6 rows imported; 1 placeholder of expected_response read as absent" in shown.replace("\n", " ")
    assert "Thema" in shown
    assert "metadata: text, 6 of 6 rows" in shown


def test_rows_that_are_not_imported_have_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["Frage", "Musterantwort"], ["Wann?", "Heute."], [None, "Ohne Frage."], ["Wo?", "Hier."], [None, "Auch."]]
    path = book(tmp_path / "rows.xlsx", Fälle=rows)
    assert main(["import", str(path), str(tmp_path / "rows.jsonl")]) == 1
    shown = capsys.readouterr().out
    assert "2 of 4 rows imported" in shown
    listed = shown[shown.index("Rows that were not imported") :].splitlines()
    assert [line.split()[:3] for line in listed if "AE201" in line] == [["row", n, "request"] for n in ("1", "3")]


def test_the_next_sheet_is_one_command(german: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, names = german.parent / "out.jsonl", german.parent / "out.columns.toml"
    assert main(["import", str(german), str(out), "--prefer", "expected_facts"]) == 0
    before = names.read_text()
    again = german.parent / "again.jsonl"
    assert main(["import", str(german), str(again), "--columns", str(names)]) == 0
    assert again.read_bytes() == out.read_bytes()
    assert not (german.parent / "again.columns.toml").exists()
    fixed = str(german.parent / "fixed.jsonl")
    assert main(["validate", f"{german}#Fälle", "--columns", str(names), "--fix", fixed]) == 0
    assert "All 6 rows are valid" in capsys.readouterr().out
    assert names.read_text() == before


@pytest.mark.parametrize(
    ("rows", "first"),
    [(FRENCH, ("Où est mon colis ?", "À Lyon.")), (JAPANESE, ("返品できますか", "はい。"))],
    ids=["fr", "ja"],
)
def test_other_languages_leave_no_question(tmp_path: Path, rows: list[list[str]], first: tuple[str, str]) -> None:
    imported = import_eval_set(book(tmp_path / "d.xlsx", Sheet=rows), "databricks")
    (row, _) = imported.conversion.data.to_dict("records")
    assert (row["request"]["messages"][0]["content"], row["expected_response"]) == first
    assert imported.unused == {}


def test_a_column_of_infinite_numbers_is_not_used_whatever_the_container() -> None:
    rows = [{"question": f"{i}?", "ground_truth": "x", "weight": sign * math.inf} for i, sign in enumerate((1, -1))]
    for data in (rows, pd.DataFrame(rows)):
        assert import_eval_set(data).unused["weight"] == "score: number, 2 of 2 rows"


def test_a_csv_file_with_a_title_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("Test cases;\n;\nQuestion;Gold answer\nWhen?;TBD\nWhere?;Here\n")
    imported = import_eval_set(path)
    assert imported.columns == {"Question": "request", "Gold answer": "expected_response"}
    assert imported.conversion.data["expectations"].tolist() == [None, {"expected_response": "Here"}]


def test_the_second_column_of_a_name_is_no_silent_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.csv"
    path.write_text("request,expected_response,expected_response\na?,b,c\nd?,,e\n")
    assert main(["import", str(path)]) == 1
    assert "AE104: expected one column `expected_response`, got several; the first is read" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "Question,Expected answer\n"])
def test_a_table_without_rows_is_told_as_such(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path := tmp_path / "d.csv").write_text(text)
    assert main(["import", str(path)]) == 2
    assert capsys.readouterr().err == f"agent-eval-schema: {path}: expected at least one row, got none\n"
    assert main(["import", str(path), "--columns", "Question=request"]) == (1 if text else 2)


def test_numbers_and_dates_are_what_a_spreadsheet_shows_in_each_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a text belongs; a column of numbers that is passed through stays one."""
    path = book(tmp_path / "d.xlsx", "A1:F1", FORMATS, Fälle=SUPPORT)
    out, names = tmp_path / "out.jsonl", str(tmp_path / "out.columns.toml")
    assert main(["import", str(path), str(out), "--prefer", "expected_response"]) == 0
    rows = rows_of(out)
    truths = [row["expectations"].get("expected_response") for row in rows]
    assert truths[5:9] == ["12.5%", "4.90 €", "24.12.2026", "1,250"]
    assert [row.get("Stand") for row in rows][:2] == ["01.11.2026", "2026-11-02"]
    assert [row["Nr."] for row in rows] == list(range(1, 13))
    assert main(["validate", str(path), "--columns", names, "--fix", str(tmp_path / "fixed.jsonl")]) == 0
    fixed = {row["Nr."]: row.get("expected_response") for row in rows_of(tmp_path / "fixed.jsonl")}
    assert [fixed[number] for number in range(6, 10)] == truths[5:9]
    capsys.readouterr()


def test_formulas_have_the_value_that_was_shown_and_are_not_written_as_such(tmp_path: Path) -> None:
    path = book(tmp_path / "d.xlsx", Sheet=[["Question", "Gold answer"], ["When?", "=1+1"], ["=A2", "Now"]])
    imported = import_eval_set(path)
    message = "expected values, got 2 formulas without a stored result (B2, A3), read as text"
    assert [issue.message for issue in imported.conversion.report.iter_issues() if issue.code == "AE115"] == [message]
    assert f"AE115: {message}" in " ".join(str(imported).split())
    assert imported.conversion.data["expectations"].tolist()[0] == {"expected_response": "=1+1"}


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([{"question": "When?", "answer": "Now."}], ["answer=expected_response", "answer=response"]),
        ([{"question": "When?", "user query": "x", "gold": "y"}], ["'user query=request'", "question=request"]),
    ],
    ids=["whose answer", "which column"],
)
def test_a_question_has_the_options_that_answer_it(rows: list[Any], options: list[str]) -> None:
    with pytest.raises(EvalSetError) as error:
        import_eval_set(rows)
    for option in options:
        assert f"--columns {option}" in str(error.value)


def test_the_first_rows_are_shown_in_their_own_letters() -> None:
    shown = str(import_eval_set([{"質問": "返品できますか", "期待される回答": "はい。"}]))
    assert shown.count("返品できますか") == shown.count("はい。") == 1


@pytest.mark.parametrize(
    ("answers", "texts"),
    [([7, 12], ["7", "12"]), ([7, 8.5], ["7", "8.5"]), ([7, math.nan], ["7", None]), ([7, "x"], ["7", "x"])],
    ids=str,
)
@pytest.mark.parametrize("form", [pd.DataFrame, lambda table: pd.DataFrame(table).to_dict("records")])
def test_a_number_is_a_text_without_the_point_that_pandas_adds(answers: Any, texts: Any, form: Any) -> None:
    table = form({"Question": ["a", "b"], "A": answers})
    imported = import_eval_set(table, "databricks", columns={"Question": "request", "A": "expected_response"})
    assert imported.conversion.data["expected_response"].tolist() == texts


def test_a_table_without_a_question_is_an_error() -> None:
    with pytest.raises(EvalSetError, match="expected a column with the question, got a"):
        import_eval_set([{"a": 1}])


def test_a_file_of_someone_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book(path := tmp_path / "d.xlsx", Sheet=FRENCH)
    (tmp_path / "names.toml").write_text("a = 1\n")
    command = ["import", str(path), str(tmp_path / "out.jsonl"), "--mapping"]
    assert main([*command, str(tmp_path / "names.toml")]) == 2
    assert "no import wrote it" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
    for wrong, message in ((path, "overwrite FILE"), ("out.jsonl", "one of .toml"), ("m.txt", "one of .toml")):
        assert main([*command, str(tmp_path / wrong)]) == 2
        assert message in capsys.readouterr().err.replace("overwrite OUT", "one of .toml")
    assert main([*command, str(tmp_path / "own.toml")]) == 0
    assert main([*command, str(tmp_path / "own.toml")]) == 0


def test_without_a_place_the_rows_are_only_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book(path := tmp_path / "d.xlsx", Sheet=FRENCH)
    assert main(["import", str(path)]) == 0
    assert "2 of 2 rows imported" in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["d.xlsx"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code"), [("3\n2\n", 0), ("3\n", 2)], ids=["an answer", "the end of the input"])
def test_a_question_is_asked_until_it_has_an_answer(
    typed: str, code: int, german: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = german.parent / "out.jsonl"
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    assert main(["import", str(german), str(out)]) == code
    assert "  1  `expected_facts` (Wichtige Punkte[\\n])" in shown.getvalue()
    assert shown.getvalue().count("Keep which, 1 to 2?\n") == 2
    assert out.exists() == (code == 0)
    assert not out.exists() or "expected_response" in rows_of(out)[0]["expectations"]


@pytest.mark.process
def test_on_a_terminal_a_person_answers(german: Path) -> None:
    """A wrong answer is asked again."""
    out = german.parent / "out.jsonl"
    shown = at_terminal(["import", str(german), str(out)], ["3", "1"])
    assert "`expected_facts` (Wichtige Punkte[\\n])" in shown
    assert shown.count("1 to 2?") == 2
    assert "expected_facts" in rows_of(out)[0]["expectations"]
    assert 'expected_facts" = "preferred"' in (german.parent / "out.columns.toml").read_text()


@pytest.mark.process
def test_on_a_terminal_without_an_answer_nothing_is_written(german: Path) -> None:
    """The end of the input is no answer."""
    shown = at_terminal(["import", str(german), str(german.parent / "out.jsonl")], ["3", "\x04"], code=2)
    assert "--prefer expected_facts" in shown
    assert [path.name for path in german.parent.iterdir()] == ["support.xlsx"]


@pytest.mark.containers
def test_20_000_lines_are_imported_and_written_back(tmp_path: Path) -> None:
    lines = [["Cases of all teams"], [], ["Kundenfrage", "Punkte"]]
    lines += [[f"Frage {n}?", f"• Punkt {n}\n• b"] for n in range(20_000)]
    path, out = book(tmp_path / "d.xlsx", "A1:B1", Sheet=lines), tmp_path / "out.xlsx"
    imported = import_eval_set(path)
    assert imported.columns == {"Kundenfrage": "request", "Punkte[\\n]": "expected_facts"}
    assert (imported.conversion.given, imported.conversion.converted) == (20_000, 20_000)
    sheet = open_source(str(path)).sheet
    assert sheet is not None
    edit_workbook(sheet, str(out), {}, ({"Punkte": f"• Punkt {n}"} for n in range(20_000)))
    found = openpyxl.load_workbook(out, read_only=True).active
    assert list(found.iter_rows(min_row=20_003, values_only=True)) == [("Frage 19999?", "• Punkt 19999")]
    found.parent.close()


def at_terminal(arguments: list[str], answers: list[str], code: int = 0) -> str:
    """What a command shows on a terminal, where each question gets the next answer."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "agent_eval_schema", *arguments]
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env={**os.environ, "COLUMNS": "200"})
    os.close(child)
    shown, end = b"", time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([parent], [], [], 0.1)[0]:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            shown += part
            if answers and shown.count(b"1 to 2?") > 2 - len(answers):
                os.write(parent, f"{answers.pop(0)}\n".encode())
    assert process.wait(timeout=PATIENCE) == code, shown.decode(errors="replace")
    os.close(parent)
    return shown.decode()


def test_a_mapping_that_a_person_has_changed_is_kept(german: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names, command = german.parent / "out.columns.toml", ["import", str(german), str(german.parent / "out.jsonl")]
    assert main([*command, "--prefer", "expected_facts"]) == 0
    assert main([*command, "--prefer", "expected_response"]) == 0  # an import may replace what an import wrote
    changed = names.read_text(encoding="utf-8").replace(
        '"Kundenfrage" = "request"', '"Kundenfrage" = "request"  # asked'
    )
    names.write_text(changed, encoding="utf-8")
    assert main([*command, "--prefer", "expected_facts"]) == 2
    assert "out.columns.toml: would be overwritten, and no import wrote it as it is" in capsys.readouterr().err
    assert names.read_text(encoding="utf-8") == changed
    assert main([*command, "--columns", str(names)]) == 0


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing"])
def test_only_a_file_is_replaced_by_a_mapping(kind: str, german: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = german.parent / "place.toml"
    {"folder": place.mkdir, "pipe": lambda: os.mkfifo(place), "link to nothing": lambda: place.symlink_to("no")}[kind]()
    out = str(german.parent / "out.jsonl")
    assert main(["import", str(german), out, "--prefer", "expected_facts", "--mapping", str(place)]) == 2
    assert "place.toml: would be overwritten" in capsys.readouterr().err
    assert not Path(out).exists()


def test_sheets_that_are_not_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Fälle"
    for row in (["Kundenfrage", "Musterantwort"], ["Wo ist es?", "In Lyon."]):
        book.active.append(row)
    for row in (["Notiz"], ["nur intern"]):
        (book["Notizen"] if "Notizen" in book else book.create_sheet("Notizen")).append(row)
    book.save(tmp_path / "zwei.xlsx")
    assert main(["import", str(tmp_path / "zwei.xlsx"), str(tmp_path / "out.jsonl")]) == 0
    shown = capsys.readouterr()
    assert "\nNot read: 1 other sheet of the file: Notizen\n" in shown.out
    assert "1 row written to" in shown.err


def test_the_ground_truth_that_a_preference_drops_is_a_loss() -> None:
    rows = [
        {"request": "a?", "expected_response": "b", "expected_facts": ["b"]},
        {"request": "c?", "expected_facts": ["d"]},
    ]
    names = {"expected_facts": "preferred"}
    made = convert_eval_set(rows, "mlflow", columns=names)
    assert made.losses["message"].tolist() == ["1 row with two kinds of ground truth: the preferred one is kept"]
    assert convert_eval_set(rows[1:], "mlflow", columns=names).lossless
