"""Rules that look at several cells of a row: what each of them reports, and where it stops."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import normalize_eval_set, profile_eval_set, validate_eval_set
from agent_eval_schema.cli import main

ROW = {"request": "Hi", "response": "Hello"}
TRACE = {"info": {"trace_id": "t"}, "data": {"spans": []}}


def messages(code: str, *rows: dict[str, Any], **options: Any) -> list[tuple[int, str, str]]:
    """The row, the path and the message of each issue of one rule."""
    issues = validate_eval_set(list(rows), select=[code], **options).issues
    assert all(path.startswith(column) for path, column in zip(issues["path"], issues["column"], strict=True))
    found: list[tuple[int, str, str]] = list(
        issues[["row", "path", "message"]].itertuples(index=False, name=None)  # type: ignore[arg-type]
    )
    return found


# ---------------------------------------------------------------------------------------------------------------------
# tags

NAME = "expected a name of letters, digits, spaces and _ - . / : without empty, . or .. path segments, got another"
RESERVED = "expected a name that MLflow does not reserve, got a reserved one"


@pytest.mark.parametrize("name", ["a b", "team/x", "a.b-c_d:1", "ünï", "a/b", "n" * 250, ".a", "mlflow.source"])
def test_a_tag_that_mlflow_takes(name: str) -> None:
    assert messages("AE112", {**ROW, "tags": {name: "v" * 8_000}}) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, NAME) for name in ("a,b", "a//b", "a/../b", "a/", "./a", ".", "..", "..a", "/a", "")),
        ("n" * 251, "expected a name of at most 250 characters, got one of 251"),
        ("mlflow.user", RESERVED),
    ],
)
def test_the_name_of_a_tag_that_mlflow_refuses(name: str, message: str) -> None:
    ((row, path, found),) = messages("AE112", ROW, {**ROW, "tags": {"a": "b", name: "v"}})
    assert (row, found) == (1, message)
    assert path.startswith("tags")
    assert name != "mlflow.user" or path == "tags.mlflow.user"


def test_a_tag_that_mlflow_cuts_off() -> None:
    found = messages("AE112", {**ROW, "tags": {"short": "v", "long": "v" * 8_001, "number": 10**9}})
    assert found == [(0, "tags.long", "expected at most 8,000 characters, got 8,001")]


OF_MLFLOW = ("artifactLocation", "trace.spansLocation", "trace.archiveLocation", "trace.archivalFailure")


@pytest.mark.parametrize("name", [f"mlflow.{name}" for name in OF_MLFLOW])
def test_tags_that_mlflow_sets_itself_are_no_issue(name: str) -> None:
    assert messages("AE112", {**ROW, "tags": {name: "v" * 9_000}}) == []


def test_beside_a_trace_the_tags_of_mlflow_are_its_own() -> None:
    tags = {"mlflow.user": "x", "mlflow.long": "v" * 9_000, "mine": "v" * 9_000}
    assert [path for _, path, _ in messages("AE112", {**ROW, "tags": tags})] == [
        *("tags.mlflow.user", "tags.mlflow.long", "tags.mine")
    ]
    assert [path for _, path, _ in messages("AE112", {**ROW, "tags": tags, "trace": TRACE})] == ["tags.mine"]


# ---------------------------------------------------------------------------------------------------------------------
# placeholders for null

OF_NAN = ("nan", "NaN", "-nan", "-NaN", "<NA>", "NaT", "#N/A", "#NA", "#N/A N/A", "#REF!", "#DIV/0!", "#NAME?")
OTHERS = ("NA", "N/A", "n/a", "NULL", "null", "None")


@pytest.mark.parametrize("word", [*OF_NAN, *OTHERS])
def test_a_request_that_is_a_placeholder_for_null(word: str) -> None:
    message = f"expected a request, got the text '{word}'"
    rows = [ROW, {**ROW, "request": word}]
    assert messages("AE115", *rows) == [(1, "request", message)]
    in_json = {"request": {"query": "Hi"}, "response": "Hello"}  # the column has values that are no text
    assert messages("AE115", in_json, *rows) == [(2, "request", message)]
    for kind in (pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        table = pa.table({name: pa.array([row[name] for row in rows]).cast(kind) for name in ROW})
        assert len(validate_eval_set(table, select=["AE115"]).issues) == 1


@pytest.mark.parametrize("word", [*OF_NAN, *OTHERS])
def test_a_response_may_be_none_but_no_app_answers_nan(word: str) -> None:
    message = f"expected the agent's answer, got the text '{word}'"
    expected = [(0, "response", message)] if word in OF_NAN else []
    assert messages("AE115", {**ROW, "response": word}) == expected
    assert messages("AE115", {**ROW, "response": word}, {**ROW, "response": {"messages": []}}) == expected


def test_a_row_that_is_rejected_as_a_whole_may_have_placeholders_too() -> None:
    """The issue of the format is not about the cells: both have to be corrected."""
    turn = {"query": "NaN", "expected_tool_use": [{"tool_name": "search"}], "reference": "30 days", "response": "nan"}
    found = validate_eval_set([turn], columns={"query": "request"}, ignore=["AE103", "AE119"]).issues
    assert found[["code", "path"]].to_numpy().tolist() == [
        ["AE160", "expected_tool_use[0].tool_input"],  # google-adk rejects the turn
        ["AE115", "request"],
        ["AE115", "response"],
    ]


def test_other_values_and_columns_are_no_placeholders() -> None:
    assert messages("AE115", {"request": 1, "response": 2}) == []
    assert messages("AE115", {"request": "Hi", "a_note": "NaN"}) == []


# ---------------------------------------------------------------------------------------------------------------------
# what a row needs


def test_a_row_needs_a_request_and_with_outputs_an_answer() -> None:
    report = validate_eval_set([ROW, {"request": "Hi"}, {"response": "Hello"}], outputs="provided")
    assert report.issues[["row", "code", "path", "message"]].to_numpy().tolist() == [
        [1, "AE223", "response", "expected a response or a trace in each row (`outputs=provided`), got neither"],
        [2, "AE201", "request", "expected a request, got none"],
    ]
    assert validate_eval_set([{"request": "Hi"}], outputs="generated").counts == {}


def test_a_cell_that_may_stand_for_the_request_and_cannot_be_read_is_one_issue() -> None:
    report = validate_eval_set([{"predicted_trajectory": 5}], format="vertex")
    assert [i.code for i in report.iter_issues()] == ["AE501"]


def test_a_misspelled_column_explains_what_is_missing() -> None:
    report = validate_eval_set([{"reqest": "Hi", "response": "Hello"}])
    hints = dict(report.issues[["code", "hint"]].to_numpy().tolist())
    assert hints["AE201"] == "Did you mean `request`? Rename the column `reqest`."


# ---------------------------------------------------------------------------------------------------------------------
# ground truth


def test_ground_truth_is_a_response_or_facts() -> None:
    both = {**ROW, "expected_response": "a", "expected_facts": ["b"]}
    message = "expected at most one of expected_response and expected_facts, got both"
    rows = [ROW, both, {**both, "expected_facts": []}, {**both, "expected_response": None}]
    assert messages("AE301", *rows) == [(1, "expected_response", message)]


def signs(**row: Any) -> str:
    """What is said of the ground truth of the second of two rows."""
    found = messages("AE306", {**ROW, "expected_response": "x"}, {**ROW, **row})
    assert [(row, path) for row, path, _ in found] == [(1, "expected_response")] * len(found)
    return found[0][2].partition(": ")[2] if found else ""


SAME, LONG = "it is identical to the response", "it is {} times as long as the response"
POLITE, THERE = "it holds a greeting or a closing phrase", "it occurs verbatim in a retrieved document"
TEXT = "The budget of a team is set by its lead, once in every year."  # 60 characters


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"expected_response": TEXT, "response": TEXT}, SAME),
        ({"expected_response": TEXT[:-1], "response": TEXT[:-1]}, ""),
        ({"expected_response": "x" * 201, "response": "y"}, LONG.format(201)),
        ({"expected_response": "x" * 200, "response": "y"}, ""),
        ({"expected_response": "x" * 201, "response": ""}, LONG.format(201)),
        ({"expected_response": "x" * 300, "response": "y" * 100}, ""),
        ({"expected_response": "x" * 301, "response": "y" * 100}, LONG.format(3)),
        ({"expected_response": "x" * 301, "response": None}, ""),
        ({"expected_response": TEXT, "retrieved_context": [{"doc_uri": "a", "content": f"1. {TEXT} 2."}]}, THERE),
        ({"expected_response": TEXT[:-1], "retrieved_context": [{"doc_uri": "a", "content": TEXT}]}, ""),
        (
            {
                "expected_response": f"Hello! {TEXT}",
                "response": f"Hello! {TEXT}",
                "retrieved_context": [{"doc_uri": "a", "content": f"Hello! {TEXT}"}],
            },
            f"{SAME}; {THERE}; {POLITE}",
        ),
    ],
)
def test_signs_that_ground_truth_was_copied(row: dict[str, Any], expected: str) -> None:
    assert signs(**row) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(f"{word}, the budget is 3." for word in ("Hi", "Hello", "hey", " Dear", "Thank you", "Thanks for", "Sure")),
        *(f"{word}, the budget is 3." for word in ("Great question", "certainly", "Of course")),
        *(f"The budget is 3. {words} more!" for words in ("Hope this helps", "I hope that helps", "Let me know if")),
        *(f"The budget is 3. {words} more." for words in ("Feel free to", "We are happy to help", "best regards")),
        "Hi, 12 letters",
        f"{'x' * 500}. Feel free to ask {'y' * 90}.",
    ],
)
def test_a_greeting_or_a_closing_phrase_is_a_sign(text: str) -> None:
    assert signs(expected_response=text, response="x" * 300) == POLITE


@pytest.mark.parametrize(
    "text",
    [
        "Hi, 11 letter",
        "History of the budget",
        "Say Hello to the budget of 2024.",
        "Feel free to ask. The budget is 3.",
        f"Feel free to ask {'y' * 121}",
    ],
)
def test_no_greeting(text: str) -> None:
    assert signs(expected_response=text, response="x" * 300) == ""


# ---------------------------------------------------------------------------------------------------------------------
# the same question, other answers
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("How do I reset it?", "how do I reset it ?", True),
        ("How do I  reset it", "How do I\nreset it!", True),
        ("如何重置？", "如何重置", True),
        ("Ｈｏｗ?", "how", True),
        ("«Wie geht das?»", "Wie geht das", True),
        ("What is -5 + 3?", "What is 5 + 3?", False),
        ("Use C++?", "Use C?", False),
        ("How do I reset it?", "How do I set it?", False),
    ],
)
@pytest.mark.parametrize("as_chat", [False, True])
def test_a_question_that_is_worded_alike_with_another_answer_is_a_conflict(
    one: str, other: str, same: bool, as_chat: bool
) -> None:
    rows: list[dict[str, Any]] = [
        {"request": {"messages": [{"role": "user", "content": text}]} if as_chat else text, "expected_response": truth}
        for text, truth in ((one, "a"), (other, "b"))
    ]
    report = validate_eval_set(rows)
    assert report.counts.get("AE902", 0) == same
    assert profile_eval_set(rows).overruled == same


def test_what_drops_rows_counts_the_conflicts_that_it_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "d.jsonl"
    truths = {"Where is it?": "Here.", "where is it": "There.", "WHERE IS IT": "Here."}
    lines = [json.dumps({"request": text, "expected_response": truth}) for text, truth in truths.items()]
    path.write_text("\n".join(lines))
    assert main(["profile", str(path), "--write-distinct", str(tmp_path / "out.jsonl")]) == 0
    noted = capsys.readouterr().err
    assert "1 row excluded with another ground truth than the row that is kept: decide first" in noted
    assert f"`agent-eval-schema review {path} --queue conflicts`" in noted


@pytest.mark.parametrize("fact", ["TODO", "-", "n/a", "tbd."])
def test_a_placeholder_in_a_list_of_facts_is_named(fact: str) -> None:
    (issue,) = validate_eval_set([{"request": "Hi", "expected_facts": ["a", fact]}]).iter_issues()
    assert (issue.code, issue.path) == ("AE311", "expected_facts[1]")


@pytest.mark.parametrize("fact", ["TODO", "n/a", "xxx"])
def test_no_fix_makes_a_fact_of_a_placeholder(fact: str) -> None:
    rows = [{"request": "Hi", "expected_facts": text} for text in (fact, "16 weeks")]
    fixed = normalize_eval_set(rows, fix=True, on_invalid="keep")
    assert [row["expected_facts"] for row in fixed] == [None, ["16 weeks"]]


def test_a_numbered_question_is_no_header() -> None:
    rows = [{"request": "question 7", "response": "answer 7"}, {"request": "Question:", "response": "Answer"}]
    assert [(i.row, i.code) for i in validate_eval_set(rows).issues.itertuples()] == [(1, "AE118")]


def test_guidelines_that_someone_was_to_write_are_placeholders() -> None:
    rows = [
        {"request": "Hi", "guidelines": g} for g in (["TODO", "Be kind"], {"tone": ["n/a"]}, ["None of them may lie"])
    ]
    found = [(i.row, i.path) for i in validate_eval_set(rows).iter_issues() if i.code == "AE311"]
    assert found == [(0, "guidelines[0]"), (1, "guidelines.tone[0]")]
