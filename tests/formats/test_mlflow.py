"""The MLflow 3 form: inputs, outputs, expectations are read as mlflow logs them, and issues name the user's columns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_eval_schema import (
    convert_eval_set,
    eval_set_from_traces,
    metric_support,
    prepare_for_evaluate,
    validate_eval_set,
)
from agent_eval_schema.io import source
from agent_eval_schema.validation.report import run_of, summary_of
from tests.conftest import SAMPLES, Row


def row_of(data: Any, **options: Any) -> Row:
    report = validate_eval_set(data, **options)
    assert report.format == "mlflow"
    return next(report.iter_rows())


def user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize(
    ("inputs", "request_"),
    [
        (user("Hi"), user("Hi")),
        ({"messages": [{"role": "user", "content": "Hi"}], "thread": 7}, user("Hi")),
        ({"query": "Hi", "history": []}, user("Hi")),
        ({"question": "Hi"}, user("Hi")),
        ({"input": "Hi"}, user("Hi")),
        ({"input": [{"role": "user", "content": "Hi"}]}, user("Hi")),
        ({"request": {"query": "Hi"}}, user("Hi")),
        ({"topic": "RAG", "n": 1}, user('{"topic":"RAG","n":1}')),
        ("Hi", user("Hi")),
        ([{"role": "user", "content": "Hi"}], user("Hi")),
    ],
)
def test_inputs(inputs: Any, request_: Row, every_input: Callable[[list[Row]], Any]) -> None:
    assert row_of(every_input([{"inputs": inputs, "outputs": "x"}]))["request"] == request_


@pytest.mark.parametrize(
    ("outputs", "response"),
    [
        ("Hello", "Hello"),
        ({"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}, "Hello"),
        ({"response": "Hello"}, "Hello"),
        (["Hello"], "Hello"),
        ({"a": 1, "b": [2]}, '{"a":1,"b":[2]}'),
        (4.5, "4.5"),
        (None, None),
    ],
)
def test_outputs(outputs: Any, response: str | None) -> None:
    assert row_of([{"inputs": user("Hi"), "outputs": outputs}])["response"] == response


def test_expectations_become_columns(every_input: Callable[[list[Row]], Any]) -> None:
    expectations = {
        "expected_facts": ["a"],
        "guidelines": ["be brief"],
        "expected_retrieved_context": [{"doc_uri": "u"}],
        "expected_tool_calls": [{"name": "f", "arguments": {"x": 1}}, {"name": "g"}],
        "tone": "kind",
        "absent": None,
    }
    row = row_of(every_input([{"inputs": user("Hi"), "outputs": "x", "expectations": expectations}]))
    assert row["expected_facts"] == ["a"]
    assert row["guidelines"] == {"guidelines": ["be brief"]}
    assert row["expected_retrieved_context"] == [{"doc_uri": "u", "content": None}]
    assert row["reference_trajectory"] == [
        {"tool_name": "f", "tool_input": {"x": 1}},
        {"tool_name": "g", "tool_input": {}},
    ]
    assert row["custom_expected"] == {"tone": "kind"}


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT])
def test_absent_expectations_are_no_issue(nothing: Any) -> None:
    report = validate_eval_set(pd.DataFrame({"inputs": [user("Hi")], "outputs": ["x"], "expectations": [nothing]}))
    assert report.counts == {}


def test_sessions_tags_traces_and_other_columns_come_along() -> None:
    trace = json.loads((SAMPLES / "search_traces.jsonl").read_text(encoding="utf-8").splitlines()[0])["trace"]
    data = [{"inputs": user("Hi"), "trace": trace, "tags": {"team": "a"}, "session": "s1", "note": 3}]
    row = row_of(data)
    assert (row["session_id"], row["tags"], row["note"]) == ("s1", {"team": "a"}, 3)
    assert row["response"] == eval_set_from_traces([trace])["response"][0]


@pytest.mark.parametrize(
    ("row", "code", "column", "path"),
    [
        ({"inputs": {"messages": [{"role": "usr", "content": "x"}]}}, "AE206", "inputs", "inputs.messages[0].role"),
        ({"inputs": None}, "AE201", "inputs", "inputs"),
        ({"expectations": {"expected_facts": "x"}}, "AE303", "expectations", "expectations.expected_facts"),
        (
            {"expectations": {"expected_tool_calls": [{"arguments": {}}]}},
            "AE502",
            "expectations",
            "expectations.expected_tool_calls[0]",
        ),
        ({"expectations": "x"}, "AE110", "expectations", "expectations"),
    ],
)
def test_an_issue_names_what_the_user_wrote(row: Row, code: str, column: str, path: str) -> None:
    other = {"inputs": user("Hi"), "outputs": "x"}
    report = validate_eval_set([other, {**other, **row}])
    (issue,) = summary_of(report).examples[code]
    assert (issue.row, issue.column, issue.path) == (1, column, path)
    if row.get(column):
        assert (1, column, path) in run_of(report).excerpts([issue])


@pytest.mark.parametrize(
    ("call", "code", "path", "message", "hint"),
    [
        ({"name": 3}, "AE502", "[0].name", "expected text, got the number 3", "Write it as text: '3'."),
        ({"name": ""}, "AE502", "[0].name", "expected text that is not blank, got empty text", "Add `name`, the"),
        ({"arguments": {}}, "AE502", "[0]", "`name` is missing, got an object with the keys arguments", "Add the key"),
        ({"nmae": "f"}, "AE502", "[0].nmae", "no key `name`, but there is `nmae`", "Did you mean `name`?"),
        ({"name": "f", "arguments": [1]}, "AE503", "[0].arguments", "expected an object, got a list of 1", "Set the"),
        ({"name": "f", "inputs": {}}, "AE504", "[0].inputs", "unknown key `inputs`", "Did you mean `arguments`?"),
        ({"name": "f", "args": [1]}, "AE503", "[0].arguments", "expected an object, got a list of 1", "Set the"),
        (
            {"name": "f", "x": 1},
            "AE504",
            "[0].x",
            "unknown key `x` is kept, but no metric reads it",
            "Known keys: name, arguments",
        ),
        ("f", "AE501", "[0]", "expected an object, got the text 'f'", 'Set a list of calls: `[{"name": "...", "arg'),
        ({"tool_name": 3}, "AE502", "[0].tool_name", "expected text, got the number 3", "Write it as text: '3'."),
        ({"tool_name": "f", "x": 1}, "AE504", "[0].x", "unknown key", "Known keys: tool_name, tool_input"),
        (
            {"name": "f", "tool_input": "{"},
            "AE503",
            "[0].tool_input",
            "expected an object, got the text '{'",
            "Set the arguments",
        ),
    ],
)
def test_an_issue_of_a_tool_call_has_the_keys_that_the_user_wrote(
    call: Any, code: str, path: str, message: str, hint: str
) -> None:
    row = {"inputs": user("Hi"), "outputs": "x", "expectations": {"expected_tool_calls": [call]}}
    (issue,) = validate_eval_set([row]).iter_issues()
    assert (issue.code, issue.path) == (code, f"expectations.expected_tool_calls{path}")
    assert message in issue.message
    assert issue.hint.startswith(hint)


def test_a_tool_call_that_a_trace_expects_is_told_in_its_keys() -> None:
    given = {"assessment_name": "expected_tool_calls", "expectation": {"value": [{"name": "f", "inputs": {}}]}}
    info = {"trace_id": "tr-1", "state": "OK", "assessments": [given]}
    row = {"inputs": user("Hi"), "outputs": "x", "trace": {"info": info, "data": {"spans": [{"name": "a"}]}}}
    (issue,) = summary_of(validate_eval_set([row])).examples["AE504"]
    assert (issue.path, issue.hint) == (
        "trace.info.assessments.expected_tool_calls[0].inputs",
        "Did you mean `arguments`?",
    )


def test_our_name_of_a_trajectory_stands_for_our_keys() -> None:
    row = {"inputs": user("Hi"), "outputs": "x", "expectations": {"reference_trajectory": [{"name": "f"}]}}
    (issue,) = summary_of(validate_eval_set([row])).examples["AE502"]
    assert issue.message == "no key `tool_name`, but there is `name`"


def test_an_issue_of_the_whole_data_set_names_what_the_user_wrote() -> None:
    expected = [{"expected_response": text} for text in ("a", "b", "a")]
    report = validate_eval_set(
        [{"inputs": user("Hi"), "outputs": e["expected_response"], "expectations": e} for e in expected]
    )
    places = {i.code: (i.column, i.path) for i in report.iter_issues()}
    assert places == dict.fromkeys(("AE902", "AE904"), ("expectations", "expectations.expected_response"))
    assert (
        summary_of(report).examples["AE904"][0].message
        == "expectations.expected_response is identical to outputs in 3 of 3 rows"
    )
    (ignored,) = summary_of(validate_eval_set([{"inputs": user("Hi"), "outputs": "x"}], outputs="generated")).examples[
        "AE105"
    ]
    assert (ignored.column, ignored.message) == (
        "outputs",
        "`outputs` has values, but outputs will be generated",
    )


def test_malformed_json_in_a_csv_cell_is_told_with_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('inputs,outputs\n"{""messages"": [",x\nHi,y\n')
    report = validate_eval_set(path)
    assert report.format == "mlflow"
    assert list(report.valid_mask) == [False, True]
    (issue,) = summary_of(report).examples["AE002"]
    assert issue.column == "inputs"
    assert "byte" in issue.message


def test_the_report_asks_about_mlflow_first() -> None:
    report = validate_eval_set([{"inputs": user("Hi"), "outputs": "x"}])
    assert "Metric coverage (mlflow)" in report.to_text()
    assert metric_support([{"inputs": user("Hi"), "outputs": "x"}], system="mlflow")["RelevanceToQuery"].tolist() == [
        True
    ]


def test_numpy_in_cells_and_the_caller_s_frame() -> None:
    cell = {"messages": np.array([{"role": "user", "content": "Hi"}], object)}
    frame = pd.DataFrame({"inputs": [cell], "expectations": [{"expected_facts": np.array(["a"])}], "outputs": ["x"]})
    report = validate_eval_set(frame)
    assert report.counts == {}
    assert frame["inputs"][0] is cell
    assert report.rows["expected_facts"][0] == ["a"]


def test_invalid_rows_are_written_with_the_cells_as_they_came(tmp_path: Path) -> None:
    bad = {"inputs": {"messages": [{"role": "usr", "content": "x"}]}, "outputs": {"a": 1}, "expectations": {"k": 1}}
    validate_eval_set([bad, {"inputs": user("Hi"), "outputs": "x"}]).write_invalid(str(tmp_path / "bad.jsonl"))
    (line,) = (tmp_path / "bad.jsonl").read_text(encoding="utf-8").splitlines()
    written = json.loads(line)
    assert {k: written[k] for k in bad} == bad
    assert {n["path"] for n in written["_issues"]} == {"inputs.messages[0].role", "outputs"}


def test_invalid_traces_are_written_as_they_came(tmp_path: Path) -> None:
    bad = {"info": {"trace_id": "t"}, "data": {"spans": []}}
    report = validate_eval_set([bad])
    assert report.format == "traces"
    assert not report.ok
    report.write_invalid(str(tmp_path / "bad.jsonl"))
    written = json.loads((tmp_path / "bad.jsonl").read_text(encoding="utf-8"))
    assert {k: written[k] for k in bad} == bad


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"inputs": {"question": "a\ud800"}, "outputs": "x"}, "inputs"),
        ({"inputs": {"question": "a"}, "outputs": {"content": "a\ud800"}}, "outputs"),
        (
            {"inputs": {"question": "a"}, "outputs": "x", "expectations": {"expected_response": "\ud800"}},
            "expectations",
        ),
    ],
)
def test_half_a_character_is_told_and_nothing_else(row: Row, column: str) -> None:
    report = validate_eval_set([row, {"inputs": {"question": "b"}, "outputs": "y"}])
    assert report.counts == {"AE006": 1}
    assert summary_of(report).examples["AE006"][0].column == column
    assert list(report.valid_mask) == [False, True]


def searched(**added: Any) -> pd.DataFrame:
    """A frame of mlflow.search_traces to which somebody added ground truth."""
    lines = (SAMPLES / "search_traces.jsonl").read_text(encoding="utf-8").splitlines()
    frame = pd.DataFrame(map(json.loads, lines))
    return frame.assign(**{name: [value] * len(frame) for name, value in added.items()})


def test_ground_truth_that_is_added_to_a_frame_of_search_traces() -> None:
    report = validate_eval_set(searched(expected_facts=["a fact"], guidelines=["Be kind."], latency_seconds=2.5))
    assert report.format == "search_traces"
    for row, plain in zip(report.iter_rows(), validate_eval_set(searched()).iter_rows(), strict=True):
        added = (row["expected_facts"], row["guidelines"], row["latency_seconds"])
        assert added == (["a fact"], {"guidelines": ["Be kind."]}, 2.5)
        assert (row["request"], row["response"], row["tags"]) == (plain["request"], plain["response"], None)


def test_expectations_that_are_added_to_a_frame_of_search_traces() -> None:
    report = validate_eval_set(searched(expectations={"guidelines": 3}))
    assert set(report.issues.query("severity == 'error'").path) == {"expectations.guidelines"}
    for row, plain in zip(
        validate_eval_set(searched(expectations={"expected_facts": ["a fact"], "tone": "kind"})).iter_rows(),
        validate_eval_set(searched()).iter_rows(),
        strict=True,
    ):
        assert (row["expected_facts"], row["custom_expected"]) == (["a fact"], {"tone": "kind"})
        assert (row["request"], row["response"], row["tags"]) == (plain["request"], plain["response"], None)


def test_inputs_and_outputs_that_are_added_to_a_frame_of_search_traces_win_over_the_trace() -> None:
    row = row_of(searched(inputs={"question": "Hi"}, outputs="Hello"))
    assert (row["request"], row["response"]) == (user("Hi"), "Hello")


# ---------------------------------------------------------------------------------------------------------------------
# what mlflow.genai.evaluate makes of the table (tests/integrations/mlflow/test_verdicts.py asks it)
BESIDE = {
    "inputs": {"question": "How many days?"},
    "outputs": "x",
    "expected_response": "12",
    "guidelines": ["Be brief."],
}


def test_text_for_inputs_of_the_first_row_refuses_the_dataset() -> None:
    text, row = {"inputs": "Hi", "outputs": "x"}, {"inputs": {"question": "Hi"}, "outputs": "x"}
    assert (validate_eval_set([text, row]).ok, validate_eval_set([row, text]).ok) == (False, True)
    (issue,) = (i for i in validate_eval_set([text, row]).iter_issues() if i.code == "AE226")
    assert (issue.row, issue.column, issue.message) == (
        None,
        "inputs",
        "expected an object in the first row, got the text 'Hi'",
    )


def test_a_request_beside_inputs_is_ignored_where_rows_are_read_as_mlflow_s() -> None:
    row = {"inputs": {"question": "a"}, "request": "b", "outputs": "x", "response": "y"}
    report = validate_eval_set([row], format="mlflow")
    assert (report.ok, report.counts["AE227"]) == (True, 2)
    assert row_of([row], format="mlflow")["request"] == {"messages": [{"role": "user", "content": "a"}]}
    assert "AE227" not in validate_eval_set([row]).counts


@pytest.mark.parametrize("rows", [1, 100])
def test_what_is_ignored_does_not_depend_on_the_batches(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", rows)
    first = {"inputs": {"question": "a"}, "outputs": "x"}
    assert validate_eval_set([first, {**first, "request": "b"}], format="mlflow").counts["AE227"] == 1


def test_empty_inputs_are_a_call_without_arguments(every_input: Callable[[list[Row]], Any]) -> None:
    row = row_of(every_input([{"inputs": {}, "outputs": "x"}]))
    assert (row["request"], row["inputs"]) == ({"messages": [{"role": "user", "content": "{}"}]}, {})


def test_a_row_without_outputs_is_valid_among_others_and_not_handed_on() -> None:
    rows = [{"inputs": {"question": "a"}, "outputs": "x"}, {"inputs": {"question": "b"}}]
    assert validate_eval_set(rows).ok
    assert not validate_eval_set(rows, outputs="provided").ok


def test_ground_truth_beside_inputs_is_told_kept_and_not_counted(every_input: Callable[[list[Row]], Any]) -> None:
    data = every_input([BESIDE])
    report = validate_eval_set(data)
    assert (report.ok, report.counts) == (True, {"AE310": 2})
    assert report.metrics.set_index("metric").loc["ExpectationsGuidelines", "supported"] == 0
    row = row_of(data)
    assert (row["expected_response"], row["guidelines"]) == ("12", {"guidelines": ["Be brief."]})


def test_ground_truth_in_expectations_wins_over_what_is_beside_inputs(every_input: Callable[[list[Row]], Any]) -> None:
    rows = [{**BESIDE, "expectations": {"expected_response": "13"}}, BESIDE]
    report = validate_eval_set(every_input(rows))
    assert [row["expected_response"] for row in report.iter_rows()] == ["13", "12"]
    assert report.metrics.set_index("metric").loc["Equivalence", "supported"] == 1


def test_ground_truth_beside_inputs_is_counted_where_it_is_handed_on() -> None:
    frame = prepare_for_evaluate([BESIDE])
    assert frame["expectations"][0] == {"expected_response": "12", "guidelines": ["Be brief."]}


@pytest.mark.parametrize("arguments", ["arguments", "args", "input_parameters"])
def test_arguments_have_the_names_that_scorers_of_mlflow_read(arguments: str) -> None:
    expected = {"expected_tool_calls": [{"name": "f", arguments: {"x": 1}}]}
    data = [{"inputs": {"question": "a"}, "outputs": "x", "expectations": expected}]
    assert validate_eval_set(data).counts == {}
    row = row_of(data)
    assert row["reference_trajectory"] == [{"tool_name": "f", "tool_input": {"x": 1}}]
    assert prepare_for_evaluate(data)["expectations"][0] == expected


def test_what_a_store_adds_to_a_record_is_no_answer_and_no_tag() -> None:
    """`to_df` has an empty object for outputs where there are none, and a tag of the user who wrote the record."""
    rows = [
        {
            "dataset_record_id": str(i),
            "inputs": {"question": "Hi"},
            "outputs": outputs,
            "tags": {"mlflow.user": "ann", **t},
        }
        for i, (outputs, t) in enumerate([({}, {}), ({"response": "Hello"}, {"team": "hr"})])
    ]
    found = list(validate_eval_set(pd.DataFrame(rows)).iter_rows())
    assert [(row["response"], row["tags"]) for row in found] == [(None, {}), ("Hello", {"team": "hr"})]


def test_guidelines_by_name_are_written_as_the_list_that_a_judge_reads() -> None:
    row = {"inputs": {"question": "Hi"}, "expectations": {"guidelines": {"tone": ["Be kind."], "form": ["Be brief."]}}}
    converted = convert_eval_set([row], "mlflow", on_invalid="keep").data
    assert converted["expectations"].tolist() == [{"guidelines": ["Be kind.", "Be brief."]}]
