"""Rows of DeepEval, Ragas, OpenAI evals, Vertex AI and LangSmith, as real files have them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, prepare_for_evaluate, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.fix.fix import fix_source
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.text.jsontext import structured

Row = dict[str, Any]
CALL = {"tool_name": "get_balance", "tool_input": {"employee": "E1042"}}


def read(row: Row, **options: Any) -> Row:
    """The canonical values of a valid row, without what is absent."""
    report = validate_eval_set([row], **options)
    assert report.ok, report.to_text()
    (found,) = report.iter_rows()
    return {name: value for name, value in found.items() if value is not None}


def found(row: Row, **options: Any) -> list[tuple[str, str | None]]:
    """The codes and paths of the issues of a row."""
    return [(issue.code, issue.path) for issue in validate_eval_set([row], **options).iter_issues()]


def asked(row: Row) -> str:
    return str(row["request"]["messages"][-1]["content"])


def written(row: Row, target: str) -> Row:
    made = convert_eval_set([row], target)
    (back,) = made.data.to_dict("records")
    return {name: value for name, value in back.items() if value is not None}


# ---------------------------------------------------------------------------------------------------------------------
# Ragas
@pytest.mark.parametrize("format", ["auto", "ragas"])
@pytest.mark.parametrize(
    "row",
    [
        {"question": "q", "answer": "a", "contexts": ["c"], "ground_truth": "t"},
        {"question": "q", "answer": "a", "contexts": ["c"], "ground_truths": ["t"]},
        {
            "question": "q",
            "answer": "a",
            "contexts": json.dumps(["c"]),
            "ground_truth": "t",
            "evolution_type": "simple",
        },
        {"user_input": "q", "response": "a", "retrieved_contexts": ["c"], "reference": "t"},
    ],
)
def test_samples_of_every_version_of_ragas_are_read(row: Row, format: str) -> None:
    assert validate_eval_set([row], format=format).format == "ragas"
    made = read(row, format=format)
    assert (asked(made), made["response"], made["expected_response"]) == ("q", "a", "t")
    assert [d["content"] for d in made["retrieved_context"]] == ["c"]


def test_the_first_of_several_truths_of_an_older_ragas_is_the_reference_and_all_stay() -> None:
    made = read({"question": "q", "ground_truths": ["t", "u"]})
    assert (made["expected_response"], made["custom_expected"]) == ("t", {"ground_truths": ["t", "u"]})


def test_an_issue_names_the_column_that_an_older_version_has() -> None:
    assert found({"question": "q", "ground_truth": 5, "contexts": "c"}) == [
        ("AE302", "ground_truth"),
        ("AE401", "contexts"),
    ]
    assert found({"user_input": "q", "reference": 5}) == [("AE302", "reference")]


def test_a_list_that_python_wrote_is_a_warning_and_repaired(tmp_path: Path) -> None:
    path, mended = tmp_path / "rag.csv", tmp_path / "mended.csv"
    path.write_text('question,contexts\nq,"[\'a\', \'b\']"\nr,"[""c""]"\n', encoding="utf-8")
    report = validate_eval_set(str(path))
    assert (report.counts, report.valid_count) == ({"AE182": 1}, 2)
    assert main(["validate", str(path), "--fix", str(mended), "-q"]) == 0
    assert validate_eval_set(str(mended)).counts == {}
    rows = list(validate_eval_set(str(mended)).iter_rows())
    assert [[d["content"] for d in row["retrieved_context"]] for row in rows] == [["a", "b"], ["c"]]


def test_a_text_in_brackets_is_no_list_that_python_wrote() -> None:
    assert asked(read({"user_input": "[1] is a citation", "response": "a"})) == "[1] is a citation"
    assert fix_source(open_source([{"user_input": "[1] is", "response": "a"}])).plan.format == "ragas"


@pytest.mark.parametrize("row", [{"response": "a", "reference": "b"}, {"retrieved_contexts": ["a"], "response": "b"}])
def test_a_sample_of_ragas_needs_no_question(row: Row) -> None:
    assert read(row, format="ragas")["response"]


# ---------------------------------------------------------------------------------------------------------------------
# DeepEval
@pytest.mark.parametrize("key", ["inputParameters", "input_parameters"])
@pytest.mark.parametrize("column", ["expected_tools", "expectedTools"])
def test_the_arguments_of_a_tool_of_deepeval_are_read_in_both_spellings(key: str, column: str) -> None:
    row = {"input": "q", "actual_output": "a", column: [{"name": "get_balance", "type": "FUNCTION", key: {"a": 1}}]}
    assert read(row)["reference_trajectory"] == [{"tool_name": "get_balance", "tool_input": {"a": 1}}]


def test_texts_of_deepeval_are_split_as_it_splits_them() -> None:
    row = {
        "input": "q",
        "expected_output": "a",
        "context": "one|two",
        "retrieval_context": "deepeval_source=a.md,deepeval_context=three|four",
        "expected_tools": "search; book",
    }
    made = read(row)
    assert [d["content"] for d in made["expected_retrieved_context"]] == ["one", "two"]
    assert made["retrieved_context"][0] == {"doc_uri": "a.md", "content": "three"}
    assert [c["tool_name"] for c in made["reference_trajectory"]] == ["search", "book"]
    assert written(row, "deepeval")["retrieval_context"] == ["deepeval_source=a.md,deepeval_context=three", "four"]


CONVERSATION: Row = {
    "scenario": "Ann wants a day off.",
    "expected_outcome": "The day is booked.",
    "turns": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Friday off?"},
        {
            "role": "assistant",
            "content": "Booked.",
            "toolsCalled": [{"name": "book", "inputParameters": {"day": "Friday"}}],
            "retrieval_context": ["Fridays are fine."],
        },
    ],
}


def test_a_conversation_of_deepeval_is_read_and_written_again() -> None:
    made = read(CONVERSATION)
    assert [m["content"] for m in made["request"]["messages"]] == ["Hi", "Hello!", "Friday off?"]
    assert (made["response"], made["expected_response"]) == ("Booked.", "The day is booked.")
    assert made["predicted_trajectory"] == [{"tool_name": "book", "tool_input": {"day": "Friday"}}]
    assert [d["content"] for d in made["retrieved_context"]] == ["Fridays are fine."]
    assert written(CONVERSATION, "deepeval") == CONVERSATION


def test_a_scenario_that_is_yet_to_be_played_is_what_is_asked() -> None:
    row = {"scenario": "Bob asks for his balance.", "expected_outcome": "He knows it.", "turns": None}
    assert validate_eval_set([row]).format == "deepeval"
    assert asked(read(row)) == row["scenario"]


def test_labels_metadata_and_expectations_of_deepeval_are_kept() -> None:
    row = {
        "input": "q",
        "actual_output": "a",
        "tags": ["smoke", "hr"],
        "metadata": {"level": 2, "team": "hr"},
        "expectations": {"must": ["names 12"]},
    }
    made = read(row)
    assert made["tags"] == {"level": "2", "team": "hr", "tags": '["smoke","hr"]'}
    assert made["custom_expected"] == {"expectations": {"must": ["names 12"]}}
    again = {**row, "additional_metadata": row["metadata"]}
    del again["metadata"]
    assert written(row, "deepeval") == again


def test_a_text_of_a_csv_file_is_joined_as_deepeval_splits_it(tmp_path: Path) -> None:
    path, out = tmp_path / "rows.json", tmp_path / "out.csv"
    path.write_text(json.dumps([{"input": "q", "expected_output": "a", "context": ["one", "two"]}]), encoding="utf-8")
    assert main(["convert", str(path), str(out), "--to", "deepeval", "-q"]) == 0
    assert "one|two" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        (
            [{"user_input": "q"}, {"user_input": [{"type": "human", "content": "q"}, {"type": "ai", "content": "a"}]}],
            "ragas",
        ),
        ([CONVERSATION, {"input": "q", "expected_output": "a"}], "deepeval"),
    ],
)
def test_rows_of_two_kinds_are_told_which_no_loader_takes_in_one_file(rows: list[Row], target: str) -> None:
    assert set(convert_eval_set(rows, target, on_invalid="keep").losses["code"]) == {"AE816"}
    for row in rows:
        assert convert_eval_set([row], target).lossless


# ---------------------------------------------------------------------------------------------------------------------
# OpenAI evals
def test_the_keys_of_an_item_are_its_authors_own() -> None:
    row = {"item": {"ticket_text": "It is dark.", "correct_label": "Hardware", "tier": 2, "tags": ["a"], "error": 7}}
    made = read(row)
    assert (asked(made), made["expected_response"]) == ("It is dark.", "Hardware")
    assert made["custom_expected"] == {"tier": 2, "tags": ["a"], "error": 7}
    assert found(row) == [("AE225", "item.ticket_text")]
    assert written(row, "openai") == row


@pytest.mark.parametrize(
    ("item", "question", "truth"),
    [
        ({"customer": "Ann", "note": "Hi there", "gold_standard": True}, "Hi there", "true"),
        ({"passage": "A long text.", "summary_label": "short"}, "A long text.", "short"),
        ({"question": "6 * 7?", "answer": 42}, "6 * 7?", "42"),
        ({"a": 1, "b": [2]}, '{"a":1,"b":[2]}', None),
    ],
)
def test_an_item_without_the_usual_keys_is_valid(item: Row, question: str, truth: str | None) -> None:
    made = read({"item": item})
    assert (asked(made), made.get("expected_response")) == (question, truth)
    assert written({"item": item}, "openai") == {"item": item}


# ---------------------------------------------------------------------------------------------------------------------
# Vertex AI
TRAJECTORIES: Row = {"predicted_trajectory": [CALL], "reference_trajectory": [CALL]}


@pytest.mark.parametrize("format", ["auto", "vertex"])
@pytest.mark.parametrize("more", [{}, {"latency_in_seconds": 0.5, "failure": 0}, {"prompt": None, "response": None}])
def test_trajectories_need_no_prompt(format: str, more: Row) -> None:
    report = validate_eval_set([{**TRAJECTORIES, **more}], format=format)
    assert (report.format, report.ok, report.outputs) == ("vertex", True, "provided")


def test_a_prompt_is_needed_where_there_is_nothing_to_compare() -> None:
    assert found({"prompt": None, "latency_in_seconds": 1.0}) == [("AE201", "prompt")]


def test_rows_without_a_request_are_left_out_where_one_is_needed() -> None:
    made = convert_eval_set([TRAJECTORIES], "deepeval")
    assert (made.converted, set(made.losses["code"])) == (0, {"AE814"})
    with pytest.warns(match="1 of 2 rows are invalid"):
        assert len(prepare_for_evaluate([TRAJECTORIES, {**TRAJECTORIES, "prompt": "q", "response": "a"}])) == 1


def test_the_input_of_a_tool_of_vertex_may_be_any_value_but_has_to_be_there() -> None:
    row = {"reference_trajectory": [{"tool_name": "f", "tool_input": "E1042"}]}
    assert found(row) == []
    assert written(row, "vertex") == row
    assert found({"reference_trajectory": [{"tool_name": "f"}]}) == [("AE503", "reference_trajectory[0]")]


# ---------------------------------------------------------------------------------------------------------------------
# LangSmith
EXAMPLE: Row = {
    "id": "3f1c7a52-0000-4000-8000-000000000001",
    "inputs": {"question": "How many days?", "k": 3},
    "outputs": {"output": "12 days.", "score": 0.5},
    "metadata": {"level": 2, "team": "hr", "reviewed": True, "note": None},
}


def test_an_example_of_langsmith_is_written_as_it_was() -> None:
    assert written(EXAMPLE, "langsmith") == EXAMPLE
    assert read(EXAMPLE)["tags"] == {"level": "2", "team": "hr", "reviewed": "true"}


@pytest.mark.parametrize("sign", [{"dataset_id": "d"}, {"source_run_id": None}, {"metadata": {"level": 1}}])
def test_examples_without_outputs_are_langsmiths_by_their_other_signs(sign: Row) -> None:
    report = validate_eval_set([{"inputs": {"question": "q"}, **sign}])
    assert (report.format, report.ok) == ("langsmith", True)


def test_an_id_that_is_no_uuid_goes_into_the_metadata() -> None:
    row = {"request_id": "case 1", "request": "q", "expected_response": "a"}
    made = written(row, "langsmith")
    assert (made.get("id"), made["metadata"]) == (None, {"request_id": "case 1"})
    assert read(made)["request_id"] == "case 1"


@pytest.mark.parametrize("format", ["deepeval", "ragas", "openai", "langsmith"])
def test_a_row_that_is_yet_to_be_answered_is_valid_beside_others(format: str) -> None:
    """These platforms take goldens and finished cases in one file; asked for, each row has to have its outputs."""
    rows = [{"request": "q", "response": "a", "tags": {"a": "1"}}, {"request": "r", "tags": {"a": "1"}}]
    if format == "langsmith":  # whose outputs are the reference
        return
    made = convert_eval_set(rows, format).data.to_dict("records")
    assert validate_eval_set(made, format=format).ok
    report = validate_eval_set(made, format=format, outputs="provided")
    (issue,) = [issue for issue in report.iter_issues() if issue.code == "AE223"]
    assert issue.message == "expected a response or a trace in each row (`outputs=provided`), got neither"
    assert issue.row == 1


# ---------------------------------------------------------------------------------------------------------------------
# columns that the user names
def test_the_keys_of_an_item_can_be_named(every_input: Callable[[list[Row]], Any]) -> None:
    rows = [{"item": {"customer": "Ann", "note": "Hi", "kind": "greeting"}, "sample": {"output_text": "Hey"}}] * 2
    names = {"item.note": "request", "item.kind": "expected_response", "sample.output_text": "response"}
    report = validate_eval_set(every_input(rows), columns=names)
    assert (report.ok, report.counts) == (True, {"AE103": 1}), report.to_text()
    for row in report.iter_rows():
        assert (asked(row), row["expected_response"], row["response"]) == ("Hi", "greeting", "Hey")
        assert structured(row["item"]) == {"customer": "Ann"}


def test_a_column_can_be_named_whole() -> None:
    report = validate_eval_set([{"question": "[1]", "label": "b"}], columns={"question": "request"})
    assert (report.format, report.counts) == ("databricks", {"AE103": 1})


@pytest.mark.parametrize(
    ("columns", "message"),
    [({"a": "question"}, "got 'question'"), ({"b.c": "request"}, "got 'b.c'")],
)
def test_a_name_that_does_not_fit_is_an_error_of_the_call(columns: dict[str, str], message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        validate_eval_set([{"a": "Hi"}], columns=columns)


@pytest.mark.parametrize("blank", ["", " ", "\n"])
@pytest.mark.parametrize(
    "row",
    [
        {"query": "Hi", "response": "x", "context": "BLANK"},
        {"query": "Hi", "response": "x", "context": ["BLANK"]},
        {"prompt": "Hi", "response": "x", "context": "BLANK"},
        {"user_input": "Hi", "retrieved_contexts": ["BLANK"]},
        {"vars": {"question": "Hi", "context": "BLANK"}, "assert": []},
    ],
    ids=str,
)
def test_blank_text_is_no_document(row: Row, blank: str) -> None:
    given = json.loads(json.dumps(row).replace("BLANK", json.dumps(blank)[1:-1]))
    report = validate_eval_set([given])
    assert [found["retrieved_context"] or [] for found in report.iter_rows()] == [[]]
    mixed = json.loads(json.dumps(row).replace('["BLANK"]', json.dumps([blank, "a"])))
    if mixed != row:
        (found,) = validate_eval_set([mixed]).iter_rows()
        assert [document["content"] for document in found["retrieved_context"]] == ["a"]


def test_a_file_of_promptfoo_is_a_reference() -> None:
    (row,) = validate_eval_set([{"vars": {"question": "Hi", "context": "file://docs/a.md"}, "assert": []}]).iter_rows()
    (document,) = row["retrieved_context"]
    assert (document["doc_uri"], document.get("content")) == ("file://docs/a.md", None)


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({"city": "Rome", "days": "3"}, '{"city":"Rome","days":"3"}'),
        ({"city": "Rome", "user_question": "How long?"}, "How long?"),
        ({"Kundenfrage": "Wie lange?", "Ort": "Rom", "context": "Rom."}, "Wie lange?"),
    ],
)
def test_a_test_of_promptfoo_with_several_variables_is_a_row(variables: Row, asked: str) -> None:
    report = validate_eval_set([{"vars": variables, "assert": [{"type": "equals", "value": "x"}]}])
    (row,) = report.iter_rows()
    assert (report.ok, row["request"]["messages"][-1]["content"]) == (True, asked)
    assert row["inputs"] == {name: value for name, value in variables.items() if name != "context"}
    assert convert_eval_set(report, "promptfoo").data["vars"].tolist() == [variables]
