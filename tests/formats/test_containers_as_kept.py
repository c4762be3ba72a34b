"""Containers as people keep them: each is read, or one error names what it is and the command that helps."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, normalize_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from tests.conftest import COMPONENTS_REQUIRED
from tests.helpers.verbs import report_of_all

ROWS = [{"request": "Hi, you?", "response": "Hello"}, {"request": "Bye; you?", "response": "Bye"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
SEVERAL_LINES = "\n".join(json.dumps(row, indent=2) for row in ROWS)
TEXTS = {
    "lines.json": LINES,
    "several_lines.json": SEVERAL_LINES,
    "several_lines.jsonl": SEVERAL_LINES,
    "array.jsonl": json.dumps(ROWS),
    "indented_array.jsonl": json.dumps(ROWS, indent=2),
    "semicolons.csv": 'request;response\nHi, you?;Hello\n"Bye; you?";Bye\n',
    "quoted.csv": '"request";"response"\n"Hi, you?";"Hello"\n"Bye; you?";"Bye"\n',
    "tabs.csv": "request\tresponse\nHi, you?\tHello\nBye; you?\tBye\n",
    "commas.tsv": 'request,response\n"Hi, you?",Hello\nBye; you?,Bye\n',
    "bars.csv": "request|response\nHi, you?|Hello\nBye; you?|Bye\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_in_another_container_than_its_name_says_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TEXTS[name])
    report = report_of_all(path)
    assert (report.ok, list(report.iter_issues()), report.row_count) == (True, [], 2)
    asked = [r["messages"][0]["content"] for r in normalize_eval_set(path)["request"]]
    assert asked == [row["request"] for row in ROWS]


def test_files_of_one_folder_may_be_lines_and_arrays(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(LINES)
    (tmp_path / "b.jsonl").write_text(json.dumps(ROWS))
    assert (validate_eval_set(tmp_path).ok, validate_eval_set(tmp_path).row_count) == (True, 4)


@pytest.mark.parametrize("name", TEXTS)
def test_a_fix_keeps_the_container(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(TEXTS[name].replace("response", "respones"))
    assert main(["validate", str(path), "--fix", str(path)]) == 0
    assert path.read_text() == TEXTS[name]


def test_a_line_that_is_cut_is_an_issue_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"request": "Hi",\n' + LINES)
    (tmp_path / "d.json").write_text(LINES + '{"request": "Hi",\n')
    for name, message in (("d.jsonl", "line 1: "), ("d.json", "element 3: ")):
        (issue,) = validate_eval_set(tmp_path / name).iter_issues()
        assert (issue.code, issue.message.startswith(message)) == ("AE007", True)


@pytest.mark.parametrize("key", ["questions", "samples", "examples", "evals", "data", "anything"])
def test_the_only_list_of_objects_of_a_document_has_its_rows(tmp_path: Path, key: str) -> None:
    rows = [{"question": "Hi?", "ground_truth": "Hello"}, {"question": "Bye?", "ground_truth": "Bye"}]
    document = {"name": "d", "version": 1, key: rows, "topics": ["a"]}
    path = tmp_path / "d.json"
    path.write_text(json.dumps(document))
    for report in (validate_eval_set(path), validate_eval_set(document)):
        assert (report.format, report.row_count, report.ok) == ("ragas", 2, True)
        assert [(r["expected_response"], r["dataset_name"]) for r in report.iter_rows()] == [
            ("Hello", "d"),
            ("Bye", "d"),
        ]


def test_conversations_in_one_list_are_unfolded_too() -> None:
    chat = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Hello"}]
    document = {"version": 1, "conversations": [{"messages": chat, "tool_definitions": []}]}
    (row,) = validate_eval_set(document).iter_rows()
    assert (row["request"]["messages"], row["response"]) == (chat[:1], "Hello")


@pytest.mark.parametrize(
    "document",
    [{"question": "Hi?", "sources": [{"id": 1}]}, {"old": [{"name": "Hi"}], "new": [{"name": "?"}]}, ROWS[0]],
)
def test_a_row_is_no_document_and_of_two_lists_without_a_question_none_is_chosen(tmp_path: Path, document: Any) -> None:
    (tmp_path / "d.json").write_text(json.dumps(document))
    report = validate_eval_set(tmp_path / "d.json")
    assert (report.row_count, report.format) == (1, "databricks" if "request" in document else "unknown")


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"


@pytest.mark.parametrize("name", ["d.jsonl", "d.json", "d.csv", "d.parquet", "d.jsonl.gz"])
def test_a_pointer_of_git_lfs_is_named_with_the_command(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(POINTER)
    with pytest.raises(EvalSetError, match=r"got a pointer of Git LFS: run `git -C \S+ lfs pull`"):
        validate_eval_set(tmp_path / name)


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.json"])
def test_windows_1252_is_named_with_a_command_that_keeps_its_quotes(tmp_path: Path, name: str) -> None:
    rows = [{"request": "“café”?", "response": "Hello"}, {"request": "garçon?", "response": "Hello"}]
    text = json.dumps(rows, ensure_ascii=False)
    if name != "d.json":
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    if name == "d.csv":
        text = "request,response\n" + "".join(f"{r['request']},Hello\n" for r in rows)
    (tmp_path / name).write_bytes(text.encode("cp1252"))
    with pytest.raises(EvalSetError, match="expected UTF-8, got Windows-1252") as raised:
        validate_eval_set(tmp_path / name)
    command = str(raised.value).partition("run `")[2].rstrip("`")
    subprocess.run(command, shell=True, check=True)
    report = validate_eval_set(command.rpartition("> ")[2])
    assert (report.ok, next(iter(report.iter_rows()))["request"]["messages"][0]["content"]) == (True, "“café”?")


def test_one_byte_that_is_not_utf_8_is_the_issue_of_its_row(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_bytes(LINES.encode() + '{"request": "café"}\n'.encode("cp1252"))
    (issue,) = validate_eval_set(tmp_path / "d.jsonl").iter_issues()
    assert (issue.code, issue.row, "cp1252" in issue.hint) == ("AE005", 2, True)


# ---------------------------------------------------------------------------------------------------------------------
# Excel
def book(path: Path, **sheets: list[dict[str, Any]]) -> Path:
    if not COMPONENTS_REQUIRED:
        pytest.importorskip("openpyxl")
    with pd.ExcelWriter(path) as writer:
        for name, rows in sheets.items():
            pd.DataFrame(rows).to_excel(writer, sheet_name=name, index=False)
    return path


def test_the_sheet_of_an_excel_file_is_read(tmp_path: Path) -> None:
    rows = [*ROWS, {"request": "When?", "response": pd.Timestamp("2026-11-24")}, {"request": "NA?", "response": "NA"}]
    path = book(tmp_path / "d.xlsx", Rows=rows, Empty=[])
    report = validate_eval_set(path)
    assert [row["response"] for row in report.iter_rows()] == ["Hello", "Bye", "2026-11-24", "NA"]
    assert [i for i in report.iter_issues() if i.severity == "error"] == []
    assert convert_eval_set(path, "databricks").converted == 4


def test_of_several_sheets_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = book(tmp_path / "d.xlsx", First=ROWS, Second=ROWS[:1])
    with pytest.raises(EvalSetError, match=r"got 2 sheets with rows: use one of \S+#First \(2\), \S+d.xlsx#Second"):
        validate_eval_set(path)
    with pytest.raises(EvalSetError, match="got no sheet with rows named 'Third'"):
        validate_eval_set(f"{path}#Third")
    assert main(["validate", f"{path}#Second"]) == 0
    assert "The row is valid." in capsys.readouterr().out


@pytest.mark.parametrize(("name", "message"), [("no.xlsx", "no such file"), ("d.xlsx", "cannot be read as Excel")])
def test_an_excel_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, message: str) -> None:
    if not COMPONENTS_REQUIRED:
        pytest.importorskip("openpyxl")
    (tmp_path / "d.xlsx").write_text("no zip")
    with pytest.raises(EvalSetError, match=message):
        validate_eval_set(tmp_path / name)


# ---------------------------------------------------------------------------------------------------------------------
# Lists in the CSV files that pandas writes
@pytest.mark.parametrize(
    ("row", "column", "content"),
    [
        ({"user_input": "q", "retrieved_contexts": ["a", "b"], "response": "x"}, "retrieved_context", ["a", "b"]),
        ({"question": "q", "contexts": ["a"], "answer": "x", "ground_truth": "y"}, "retrieved_context", ["a"]),
        ({"input": "q", "actual_output": "x", "retrieval_context": ["a", "it's"]}, "retrieved_context", ["a", "it's"]),
    ],
    ids=str,
)
def test_the_list_that_pandas_writes_is_read_with_a_warning(
    tmp_path: Path, row: dict[str, Any], column: str, content: list[str]
) -> None:
    pd.DataFrame([row]).to_csv(tmp_path / "d.csv", index=False)
    report = validate_eval_set(tmp_path / "d.csv")
    assert (report.ok, report.counts["AE182"]) == (True, 1)
    (read,) = report.iter_rows()
    assert [document["content"] for document in read[column]] == content


def test_an_answer_that_is_the_text_of_a_list_stays_text(tmp_path: Path) -> None:
    row = {"user_input": "Which?", "retrieved_contexts": '["a"]', "response": "['a', 'b']", "reference": "['a']"}
    pd.DataFrame([row]).to_csv(tmp_path / "d.csv", index=False)
    (read,) = validate_eval_set(tmp_path / "d.csv").iter_rows()
    assert (read["response"], read["expected_response"]) == ("['a', 'b']", "['a']")


def test_an_array_of_one_object_is_one_row(tmp_path: Path) -> None:
    row = {"note": "x", "log": [{"question": "a"}, {"question": "b"}]}
    path = tmp_path / "rows.json"
    for content, rows in (([row], 1), (row, 2)):
        path.write_text(json.dumps(content), "utf-8")
        assert [validate_eval_set(place).row_count for place in (path, tmp_path)] == [rows, rows]
