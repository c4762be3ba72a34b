"""Files as people keep them: shapes of real files that no sample has, each made small. Questions, ground truth and
calls are read, and what is valid is converted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import validate_eval_set
from tests.helpers.verbs import report_of_all

Row = dict[str, Any]
READ = ("request_id", "session_id", "response", "expected_response", "predicted_trajectory", "reference_trajectory")


def read(path: Path, content: Any, format: str) -> list[Row]:
    """The rows of a file with this content, which has this format and no issue that needs an action. All verbs agree on
    which rows can be used."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    report = report_of_all(path)
    assert (report.format, [i for i in report.iter_issues() if i.severity != "info"]) == (format, [])
    return list(report.iter_rows())


def asked(row: Row) -> list[Any]:
    """The texts of the messages of a request."""
    return [message["content"] for message in row["request"]["messages"]]


def filled(row: Row) -> Row:
    return {name: row[name] for name in READ if row.get(name) is not None}


CALL = {"tool_name": "book", "tool_input": {"day": 1}}


# ---------------------------------------------------------------------------------------------------------------------
# agent data of the Gen AI evaluation service
def said(author: str, *parts: Row | str) -> Row:
    texts = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"author": author, "content": {"role": "user" if author == "user" else "model", "parts": texts}}


CALLED = said("agent", {"function_call": {"name": "book", "args": {"day": 1}}})
ANSWERED = said("user", {"function_response": {"name": "book", "response": {}}})


def dataset(*turns: list[Row], **case: Any) -> Row:
    events = [{"turn_index": i, "events": turn} for i, turn in enumerate(turns)]
    return {"eval_cases": [{"eval_case_id": "c", "agent_data": {"turns": events}, **case}]}


def test_the_prompt_of_a_case_is_the_question_where_no_event_of_the_user_comes_first(tmp_path: Path) -> None:
    prompt = said("user", "Hi?")["content"]
    (row,) = read(tmp_path / "d.json", dataset([said("agent", "Hello")], prompt=prompt), "vertex-genai")
    assert (asked(row), row["response"]) == (["Hi?"], "Hello")


def test_another_prompt_beside_the_events_of_the_user_is_passed_through(tmp_path: Path) -> None:
    content = dataset([said("user", "Hi?"), said("agent", "Hello")], prompt="Good day?")
    (row,) = read(tmp_path / "d.json", content, "vertex-genai")
    assert (asked(row), row["case_prompt"]) == (["Hi?"], "Good day?")


@pytest.mark.parametrize("last", [[], [CALLED, said("agent", "Done")]])
def test_the_last_event_of_the_user_is_the_request_of_a_turn(tmp_path: Path, last: list[Row]) -> None:
    turn = [said("user", "Book it"), said("agent", "Which day?"), said("user", "The first"), *last]
    (row,) = read(tmp_path / "d.json", dataset(turn), "vertex-genai")
    assert asked(row) == ["Book it", "Which day?", "The first"]
    calls = {"response": "Done", "predicted_trajectory": [CALL]} if last else {}
    assert filled(row) == {"request_id": "c", **calls}


def test_turns_of_one_case_have_ids_of_their_own_and_results_of_functions_are_no_turns(tmp_path: Path) -> None:
    turns = [said("user", "Hi?"), said("agent", "Hello")], [said("user", "Book it"), CALLED], [ANSWERED]
    rows = read(tmp_path / "d.json", dataset(*turns, [said("agent", "Done")]), "vertex-genai")
    assert list(map(filled, rows)) == [
        {"request_id": "c#1", "session_id": "c", "response": "Hello"},
        {"request_id": "c#2", "session_id": "c", "response": "Done", "predicted_trajectory": [CALL]},
    ]
    assert asked(rows[1]) == ["Hi?", "Hello", "Book it"]


SCENARIO = {"starting_prompt": "Hi?", "conversation_plan": "Book a day."}


@pytest.mark.parametrize(
    "content",
    [
        {"eval_cases": [{"eval_case_id": "c", "user_scenario": SCENARIO}]},
        {"evalCases": [{"userScenario": {"startingPrompt": "Hi?", "conversationPlan": "Book a day."}}]},
        [SCENARIO],
        {"eval_cases": [SCENARIO]},
    ],
)
def test_the_first_question_of_a_simulated_user_is_the_request(tmp_path: Path, content: Any) -> None:
    (row,) = read(tmp_path / "d.json", content, "vertex-genai")
    assert asked(row) == ["Hi?"]
    assert "Book a day." in json.dumps(row)


def test_the_rows_of_a_dataset_that_was_made_of_a_dataframe_are_read(tmp_path: Path) -> None:
    rows = [{"prompt": "Hi?", "response": "Hello", "reference": "Hello!"}]
    content = {"eval_cases": None, "eval_dataset_df": rows, "candidate_name": "a"}
    (row,) = read(tmp_path / "d.json", content, "vertex-genai")
    assert (asked(row), filled(row)) == (["Hi?"], {"response": "Hello", "expected_response": "Hello!"})


# ---------------------------------------------------------------------------------------------------------------------
# other platforms
def test_a_file_of_the_action_of_azure_is_azures(tmp_path: Path) -> None:
    """Its rows have the keys of a session of ADK, too, which has no ground truth."""
    content = {"name": "d", "evaluators": ["Fluency"], "data": [{"query": "Hi?", "ground_truth": "Hello"}]}
    (row,) = read(tmp_path / "d.json", content, "azure")
    assert (asked(row), filled(row)) == (["Hi?"], {"expected_response": "Hello"})
    assert read(tmp_path / "e.json", [{"name": "s", "data": [{"query": "Hi?", "reference": "Hello"}]}], "adk-legacy")


def test_cases_of_strands_may_have_objects_and_the_name_of_the_file_is_not_theirs(tmp_path: Path) -> None:
    case = {"input": {"question": "Hi?", "lang": "en"}, "expected_output": {"answer": "Hello", "score": 1}}
    rows = read(tmp_path / "d.json", {"name": "d", "cases": [case, {"input": "Bye?"}]}, "strands")
    assert [(asked(row), filled(row)) for row in rows] == [(["Hi?"], {"expected_response": "Hello"}), (["Bye?"], {})]
    assert (rows[0]["inputs"], rows[0]["custom_expected"]) == (case["input"], {"score": 1})


def test_a_dataset_of_phoenix_is_read_as_its_dict_and_as_the_csv_file_of_its_dataframe(tmp_path: Path) -> None:
    example = {"id": "e1", "input": {"question": "Hi?"}, "output": {"answer": "Hello"}, "metadata": {"topic": "a"}}
    content = {"id": "d", "name": "d", "version_id": "v", "metadata": {}, "examples": [example]}
    frame = f"example_id,input,output,metadata\ne1,{example['input']},{example['output']},{example['metadata']}\n"
    for row in (*read(tmp_path / "d.json", content, "phoenix"), *read(tmp_path / "d.csv", frame, "phoenix")):
        assert (asked(row), filled(row)) == (["Hi?"], {"request_id": "e1", "expected_response": "Hello"})
        assert row["tags"] == {"topic": "a"}


@pytest.mark.parametrize("inputs", [{}, {"inputs": {"question": "Hi?"}}])
def test_trajectories_of_agentevals_have_the_question_the_answer_and_the_calls(tmp_path: Path, inputs: Row) -> None:
    called = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "book", "arguments": '{"day":1}'}}],
    }
    chat = [{"role": "user", "content": "Hi?"}, called, {"role": "tool", "content": "ok"}]
    outputs, expected = [[*chat, {"role": "assistant", "content": text}] for text in ("Hello", "Hello!")]
    (row,) = read(tmp_path / "d.json", [{**inputs, "outputs": outputs, "reference_outputs": expected}], "langsmith")
    texts = {"response": "Hello", "expected_response": "Hello!"}
    assert (asked(row), filled(row)) == (["Hi?"], {**texts, **{key: [CALL] for key in READ[-2:]}})


def test_results_of_tools_of_ragas_have_no_id(tmp_path: Path) -> None:
    call = {"type": "ai", "content": "", "tool_calls": [{"name": "book", "args": {}}]}
    chat = [
        {"type": "human", "content": "Hi"},
        call,
        {"type": "tool", "content": "ok"},
        {"type": "human", "content": "?"},
    ]
    (row,) = read(tmp_path / "d.jsonl", json.dumps({"user_input": chat, "reference": "Hello"}), "ragas")
    assert [message.get("tool_call_id") for message in row["request"]["messages"]] == [None, None, "call_0", None]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("python: len(output) > 3", {}),
        ("fn: output.length", {}),
        ("file://check.py", {}),
        ("is-json", {}),
        ("perplexity(3):", {}),
        ("not-icontains: Hello", {}),
        ("grade: is polite", {"guidelines": {"guidelines": ["is polite"]}}),
        ("contains: Hello", {"expected_facts": ["Hello"]}),
        ("similar:cosine(0.9): Hello", {"expected_response": "Hello"}),
        ("Note: Hello", {"expected_response": "Note: Hello"}),
    ],
)
def test_an_assertion_of_a_csv_file_is_of_its_kind(tmp_path: Path, cell: str, expected: Row) -> None:
    (row,) = read(tmp_path / "d.csv", f"question,__expected\nHi?,{cell}\n", "promptfoo")
    names = ("expected_response", "expected_facts", "guidelines")
    assert {name: row[name] for name in names if row.get(name) is not None} == expected
    assert len(row.get("promptfoo_assert", [0])) == 1


# ---------------------------------------------------------------------------------------------------------------------
# text that happens to be JSON
TYPED = '{"message": {"data": "aGk="}, "subscription": "s"}'


@pytest.mark.parametrize(
    ("format", "row"),
    [
        ("databricks", {"request": TYPED, "guidelines": ["is polite"]}),
        ("vertex", {"prompt": TYPED, "reference": "Hello"}),
        ("vertex-genai", {"prompt": TYPED, "context": TYPED, "response": "Hello"}),
        ("azure", {"query": TYPED, "context": TYPED, "response": "Hello"}),
        ("promptfoo", {"vars": {"question": TYPED, "context": TYPED}, "assert": []}),
        ("ragas", {"user_input": TYPED, "reference": "Hello"}),
        ("langsmith", {"inputs": TYPED, "outputs": "Hello", "metadata": {}}),
        ("phoenix", {"input": TYPED, "output": "Hello", "metadata": {}}),
    ],
)
def test_json_without_a_key_of_a_request_is_the_text_of_the_user(tmp_path: Path, format: str, row: Row) -> None:
    (found,) = read(tmp_path / "d.jsonl", json.dumps(row), format)
    assert asked(found) == [TYPED]
    assert [d["content"] for d in found.get("retrieved_context") or []] == [TYPED] * ('"context"' in json.dumps(row))


@pytest.mark.parametrize(
    "text", ['{"message": "Hi"}', '{"queries": "Hi"}', '{"expenses": [1]}', '{"messages_total": 3}']
)
def test_a_key_that_is_like_one_of_a_request_makes_no_request_of_a_text(tmp_path: Path, text: str) -> None:
    (row,) = read(tmp_path / "d.jsonl", json.dumps({"request": text, "response": "Hello"}), "databricks")
    assert asked(row) == [text]


# ---------------------------------------------------------------------------------------------------------------------
# dirt
def codes(path: Path, content: str) -> list[tuple[str, int | None, str | None]]:
    path.write_text(content)
    report = validate_eval_set(path)
    assert report.ok
    return [(issue.code, issue.row, issue.column) for issue in report.iter_issues()]


def test_a_header_that_is_repeated_is_a_warning(tmp_path: Path) -> None:
    header, rows = "question,ground_truth\n", "Hi?,Hello\n"
    assert codes(tmp_path / "d.csv", header + rows + header + rows) == [("AE118", 1, "question")]
    assert codes(tmp_path / "e.csv", "request,response\nquestion,Which question?\nWhat?,Response\n") == []


@pytest.mark.parametrize("cell", ["2026-11-24 00:00:00", "2026-11-24T00:00:00Z", "2026-11-24 00:00"])
def test_a_date_that_became_a_timestamp_is_a_warning(tmp_path: Path, cell: str) -> None:
    content = f"request,response,expected_response\nWhen?,2026-11-24,{cell}\n"
    assert codes(tmp_path / "d.csv", content) == [("AE314", 0, "expected_response")]
    assert codes(tmp_path / "e.csv", content.replace("00:00", "10:30")) == []


def test_a_column_of_dates_in_a_dataframe_is_a_warning() -> None:
    frame = pd.DataFrame({"request": ["When?"], "expected_response": [pd.Timestamp("2026-11-24")]})
    assert [issue.code for issue in validate_eval_set(frame).iter_issues()] == ["AE314"]


@pytest.mark.parametrize("cell", ["TBD", "N/A", "-", "?", "todo", "#N/A", "none", "xxx"])
def test_placeholders_are_warnings(tmp_path: Path, cell: str) -> None:
    content = f"request,response,expected_response\nHi?,Hello,{cell}\n"
    assert codes(tmp_path / "d.csv", content) == [("AE311", 0, "expected_response")]
