"""Tables with names of their own: the mapping that is proposed, and `columns="auto"`, which applies it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    EvalSetError,
    convert_eval_set,
    diff_eval_sets,
    normalize_eval_set,
    prepare_for_evaluate,
    profile_eval_set,
    validate_eval_set,
)
from agent_eval_schema.cli import main
from tests.helpers.verbs import report_of_all

Row = dict[str, Any]


def named(row: Row) -> Row:
    """What `columns="auto"` reads of a row."""
    report = report_of_all([row], columns="auto")
    assert report.ok, report.to_text()
    assert {issue.code for issue in report.iter_issues()} <= {"AE117", "AE103"}
    (found,) = report.iter_rows()
    return {k: v for k, v in found.items() if v is not None and k not in row}


def hint(row: Row) -> str:
    """The hint of the error of a row without options."""
    (issue,) = (issue for issue in report_of_all([row]).iter_issues() if issue.severity == "error")
    return str(issue.hint)


ASKED = {"request": {"messages": [{"role": "user", "content": "Hi?"}]}}


def calls(*names: str) -> list[Row]:
    return [{"tool_name": name, "tool_input": {}} for name in names]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"question": "Hi?", "truth": "Hello"}, {"expected_response": "Hello"}),
        (
            {"User Prompt": "Hi?", "Ideal Answer": "Hello", "Bot answer": "Bye"},
            {"expected_response": "Hello", "response": "Bye"},
        ),
        ({"question": "Hi?", "answer": "Bye", "gold": "Hello"}, {"expected_response": "Hello", "response": "Bye"}),
        ({"question": "Hi?", "answer": "Hello", "reply": "Bye"}, {"expected_response": "Hello", "response": "Bye"}),
        ({"utterance": "Hi?", "expected_tools": ["a", "b"]}, {"reference_trajectory": calls("a", "b")}),
        ({"question": "Hi?", "expected_tool": "a"}, {"reference_trajectory": calls("a")}),
        ({"question": "Hi?", "expected_action": [{"name": "a", "args": {}}]}, {"reference_trajectory": calls("a")}),
        (
            {"question": "Hi?", "evaluation_criteria": {"actions": [{"name": "a", "arguments": {}}]}},
            {"reference_trajectory": calls("a")},
        ),
        ({"question": "Hi?", "expected": {"output": "Hello"}}, {"expected_response": "Hello"}),
    ],
)
def test_names_of_others_are_applied_and_each_is_an_info(row: Row, expected: Row) -> None:
    assert named(row) == ASKED | expected
    infos = [issue for issue in validate_eval_set([row], columns="auto").iter_issues() if issue.code == "AE117"]
    assert {issue.column for issue in infos} == {"request", *expected}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"question": "Hi?", "answer": "Hello"},
            "--columns answer=expected_response` or `.* --columns answer=response`",
        ),
        (
            {"question": "Hi?", "query": "?", "truth": "x"},
            "--columns question=request` or `.* --columns query=request`",
        ),
        ({"title": "x", "label": "y"}, r"expected a column with the question, got title, label"),
    ],
)
def test_names_that_are_ambiguous_are_refused_with_the_candidates(row: Row, message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        validate_eval_set([row], columns="auto")


@pytest.mark.parametrize("row", [{"request": "Hi?", "response": "x"}, {"question": "Hi?", "ground_truth": "Hello"}])
def test_a_table_of_a_known_format_is_read_as_it_is(row: Row) -> None:
    assert list(validate_eval_set([row], columns="auto").iter_issues()) == []


def test_every_command_applies_the_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "d.json", tmp_path / "out.jsonl"
    path.write_text(json.dumps([{"question": "Hi?", "truth": "Hello"}]))
    assert normalize_eval_set(path, columns="auto")["expected_response"].tolist() == ["Hello"]
    assert convert_eval_set(path, "ragas", columns="auto").data["reference"].tolist() == ["Hello"]
    assert "1 of 1 rows valid" in repr(profile_eval_set(path, columns="auto"))
    assert diff_eval_sets(path, path, columns="auto").same
    assert main(["convert", str(path), str(out), "--to", "ragas", "--columns", "auto"]) == 0
    assert json.loads(out.read_text())["reference"] == "Hello"
    capsys.readouterr()
    assert main(["validate", str(path)]) == 1
    assert f"agent-eval-schema validate {path} --columns question=request" in capsys.readouterr().out
    assert main(["validate", str(path), "--columns", "auto"]) == 0


def test_a_text_is_split_on_request(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("Question,Sources,Ideal Answer\nHi?,kb/a.md; kb/b.md,Hello\n")
    columns = {"Sources[;]": "expected_retrieved_context[].doc_uri", "auto": "auto"}
    (row,) = report_of_all(path, columns=columns).iter_rows()
    assert [document["doc_uri"] for document in row["expected_retrieved_context"]] == ["kb/a.md", "kb/b.md"]
    assert row["expected_response"] == "Hello"


def test_a_hint_names_no_column_for_want_of_a_question() -> None:
    assert hint({"title": "x", "label": "y"}).endswith("or the column with the question (`--columns PATH=request`).")


def test_a_missing_request_has_the_mapping_that_helps() -> None:
    row = {"outputs": "Hello", "question": "Hi?"}
    assert "--columns question=inputs.question" in hint(row)
    (found,) = validate_eval_set([row], columns={"question": "inputs.question"}).iter_rows()
    assert found | ASKED | {"response": "Hello"} == found


@pytest.mark.parametrize("key", ["cases", "test_cases", "evals", "scenarios"])
def test_rows_under_a_key_of_a_platform_are_not_its_own(key: str) -> None:
    (row,) = report_of_all({"name": "d", key: [{"question": "Hi?", "truth": "Hello"}]}, columns="auto").iter_rows()
    assert row | ASKED | {"expected_response": "Hello", "dataset_name": "d", "request_id": None} == row


def test_names_of_tools_alone_are_reported_in_a_row_of_deepeval() -> None:
    (issue,) = report_of_all([{"input": "Hi?", "expected_tools": ["a"]}]).iter_issues()
    assert (issue.code, issue.path) == ("AE502", "expected_tools[0]")


def test_a_trace_without_an_agent_is_named_as_such() -> None:
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    span = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "GET /", **times}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    assert hint(document).startswith("Export the spans of the agent")


@pytest.mark.parametrize(
    ("text", "step", "facts"),
    [
        ("Send the form\nCall twice", r"[\n]", ["Send the form", "Call twice"]),
        ("• Send the form\n• Call twice\n", r"[\n]", ["Send the form", "Call twice"]),
        ("1. Send the form\n2) Call twice", r"[\n]", ["Send the form", "Call twice"]),
        ("• Send the form • Call twice", "[•]", ["Send the form", "Call twice"]),
        ("Send the form; call twice", "[;]", ["Send the form", "call twice"]),
        ("-5 degrees\n3.5 bar", r"[\n]", ["-5 degrees", "3.5 bar"]),
    ],
)
def test_facts_in_one_cell_are_split_as_the_values_show(text: str, step: str, facts: list[str]) -> None:
    rows = [{"question": f"Q{n}?", "Key points": text} for n in range(3)]
    report = validate_eval_set(rows, columns="auto")
    assert [row["expected_facts"] for row in report.iter_rows()] == [facts] * 3
    issue = next(issue for issue in validate_eval_set(rows).iter_issues() if issue.code == "AE113")
    assert json.dumps(f"Key points{step}", ensure_ascii=False) in str(issue.hint)
    named = {"question": "request", f"Key points{step}": "expected_facts"}
    assert [row["expected_facts"] for row in validate_eval_set(rows, columns=named).iter_rows()] == [facts] * 3


@pytest.mark.parametrize(
    ("path", "cell", "hint"),
    [
        ("Punkte[]", "a; b", '{"Punkte[;]": "expected_facts"}'),
        ("Punkte[]", "a", '{"Punkte": "expected_facts[]"}'),
        ("Punkte[].text", ["a"], "a list, `.key` a key of an object."),
        ("Punkte.text", {"texte": "a"}, "a list, `.key` a key of an object."),
    ],
)
def test_a_path_that_matches_nothing_is_a_warning(path: str, cell: Any, hint: str) -> None:
    rows = [{"question": f"Q{n}?", "Punkte": cell} for n in range(3)]
    report = validate_eval_set(rows, columns={"question": "request", path: "expected_facts"})
    (issue,) = (issue for issue in report.iter_issues() if issue.code == "AE168")
    assert (issue.column, f"`{path}` matches nothing in the first rows (3), got " in issue.message) == ("Punkte", True)
    assert hint in str(issue.hint)
    hidden = validate_eval_set(rows, columns={"question": "request", path: "expected_facts"}, show_values=False)
    assert all("texte" not in issue.message for issue in hidden.iter_issues())
    if "columns=" in str(issue.hint):
        named = json.loads(str(issue.hint).partition("columns=")[2].rpartition("}")[0] + "}")
        read = validate_eval_set(rows, columns={"question": "request", **named})
        assert "AE168" not in read.counts
        assert all(row["expected_facts"] for row in read.iter_rows())


def test_a_path_that_matches_in_some_row_is_no_warning() -> None:
    rows: list[Row] = [{"question": "Q?", "facts": None}, {"question": "R?", "facts": ["a"]}]
    report = validate_eval_set(rows, columns={"question": "request", "facts[]": "expected_facts"})
    assert "AE168" not in report.counts


def test_rows_that_nothing_can_score_are_no_plain_success() -> None:
    report = validate_eval_set([{"prompt": f"Hi {n}", "response": "x"} for n in range(2)])
    assert report.format == "vertex"
    text = report.to_text()
    assert "All 2 rows are valid, and nothing can be scored as vertex; as mlflow " in text
    assert "✓" not in text


def test_what_mlflow_accepts_is_said_where_another_platform_rejects_it() -> None:
    rows = [{"question": "Hi?", "facts": ["a"], "truth": "b"}]
    report = validate_eval_set(rows, columns="auto", outputs="generated")
    (issue,) = (issue for issue in report.iter_issues() if issue.code == "AE301")
    assert (report.format, "`--format mlflow`" in str(issue.hint)) == ("databricks", True)
    assert validate_eval_set(rows, columns="auto", format="mlflow", outputs="generated").ok


# ---------------------------------------------------------------------------------------------------------------------
# An answer and facts in one row
BOTH = [
    {"request": "Q0?", "expected_response": "A0.", "expected_facts": ["F0"]},
    {"request": "Q1?", "expected_response": "A1."},
    {"request": "Q2?", "expected_response": "A2.", "expected_facts": ["n/a"]},
    {"request": "Q3?", "expected_response": "TODO", "expected_facts": ["F3"]},
]
FACTS = [(None, ["F0"]), ("A1.", None), ("A2.", None), (None, ["F3"])]
RESPONSES = [("A0.", None), ("A1.", None), ("A2.", None), (None, ["F3"])]


def truths(report: Any) -> list[tuple[Any, Any]]:
    return [(row["expected_response"], row["expected_facts"]) for row in report.iter_rows()]


@pytest.mark.parametrize(("name", "wanted"), [("expected_facts", FACTS), ("expected_response", RESPONSES)])
@pytest.mark.parametrize("form", ["databricks", "mlflow"])
def test_one_decision_for_rows_with_an_answer_and_facts(form: str, name: str, wanted: list[Any]) -> None:
    rows: list[Any] = BOTH
    if form == "mlflow":
        truth = [{key: value for key, value in row.items() if key != "request"} for row in BOTH]
        rows = [{"inputs": {"q": "Hi?"}, "expectations": expected} for expected in truth]
    report = validate_eval_set(rows, columns={name: "preferred"})
    assert (report.ok, truths(report), report.counts["AE183"]) == (True, wanted, 3)
    assert not {"AE301", "AE313", "AE311"} & set(report.counts)
    normalized = normalize_eval_set(rows, columns={name: "preferred"})
    assert [(r["expected_response"], r["expected_facts"]) for r in normalized] == wanted
    prepared = validate_eval_set(prepare_for_evaluate(rows, columns={name: "preferred"}))
    assert truths(prepared) == wanted


def test_prefer_is_an_option_and_an_entry_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in BOTH))
    (tmp_path / "names.toml").write_text('expected_facts = "preferred"\n')
    for options in (["--prefer", "expected_facts"], ["--columns", str(tmp_path / "names.toml")]):
        assert main(["validate", str(path), *options, "--fix", str(tmp_path / "out.jsonl")]) == 0
        assert truths(validate_eval_set(tmp_path / "out.jsonl")) == FACTS
        (tmp_path / "out.jsonl").unlink()
    with pytest.raises(EvalSetError, match="one preferred column, got expected_facts and expected_response"):
        validate_eval_set(path, columns={"expected_facts": "preferred", "expected_response": "preferred"})
    with pytest.raises(SystemExit):
        main(["validate", str(path), "--prefer", "response"])
    assert "expected one of expected_facts, expected_response" in capsys.readouterr().err
