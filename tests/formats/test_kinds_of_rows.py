"""What a platform keeps of a row, and what it demands of a file: rows of one kind."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import InvalidEvalSetError, convert_eval_set, normalize_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.conversion.convert import convert_file
from tests.conftest import KINDS

DOCUMENTS = [{"doc_uri": "leave.pdf", "content": "You have 12 days."}]
SINGLE = {"request": "How many days?", "response": "12.", "expected_response": "12 days."}
WITH_DOCUMENTS = {**SINGLE, "retrieved_context": DOCUMENTS, "expected_retrieved_context": DOCUMENTS}
CALLS = [{"tool_name": "balance", "tool_input": {"employee": "E1"}}]
HISTORY = {"messages": [*({"role": r, "content": r} for r in ("user", "assistant")), {"role": "user", "content": "?"}]}
SPOKEN = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]

CONVERSATIONS = {
    "calls": {**WITH_DOCUMENTS, "predicted_trajectory": CALLS},
    "history": {**WITH_DOCUMENTS, "request": HISTORY},
}


@pytest.mark.parametrize("kind", CONVERSATIONS)
def test_documents_that_ragas_drops_are_losses_and_support_no_metric(kind: str) -> None:
    """`MultiTurnSample` has no documents."""
    row = CONVERSATIONS[kind]
    made = convert_eval_set([row], "ragas")
    assert not {"retrieved_contexts", "reference_contexts", "retrieved_context_ids"} & set(made.data.columns)
    assert {"retrieved_context", "expected_retrieved_context"} <= set(made.losses["column"])
    of_documents = ["Faithfulness", "ContextRecall", "ContextPrecision", "IDBasedContextRecall"]
    ours, theirs = (validate_eval_set([one]).metric_support for one in (row, WITH_DOCUMENTS))
    names = [name for name in ours.columns if name.removeprefix("ragas/") in of_documents]
    assert len(names) == len(of_documents)
    assert not ours[names].to_numpy().any()
    assert theirs[names].to_numpy().all()


def test_a_conversation_of_a_file_of_ragas_that_has_documents_is_reported() -> None:
    row = {"user_input": SPOKEN, "retrieved_contexts": ["You have 12 days."], "reference": "Hello"}
    (issue,) = [i for i in validate_eval_set([row]).issues.itertuples() if i.code == "AE198"]
    assert (issue.row, issue.column) == (0, "retrieved_contexts")
    assert "a conversation has no such field" in issue.message


MIXED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "ragas": (
        [{"user_input": "Hi"}, {"user_input": SPOKEN}, {"user_input": "Ho"}],
        "expected rows of one kind, got 2 single questions and 1 conversation: the fewer in row 1",
    ),
    "vertex": (
        [{"prompt": "Hi", "response": "a"}, {"prompt": "Ho", "response": None}, {"prompt": "Hu", "response": ""}],
        "expected rows of one kind, got 2 unanswered rows and 1 answered row: the fewer in row 0",
    ),
    "deepeval": (
        [{"input": "q"}, {"scenario": "Ann wants a day off.", "turns": None, "expected_outcome": "Booked."}],
        "expected rows of one kind, got 1 golden and 1 conversational golden: the fewer in row 0",
    ),
    "vertex-genai": (
        [{"prompt": "Hi", "response": "a"}, {"prompt": "Ho", "response": None}, {"prompt": "Hu", "response": ""}],
        "expected rows of one kind, got 2 unanswered rows and 1 answered row: the fewer in row 0",
    ),
}


@pytest.mark.parametrize(
    ("form", "container"),
    [*((form, kind) for form in MIXED for kind in ("list", "frame", "file")), ("vertex", "arrow")],
)
def test_a_file_that_its_platform_refuses_is_reported(form: str, container: str, tmp_path: Any) -> None:
    rows, message = MIXED[form]
    data: Any = {"frame": pd.DataFrame, "arrow": pa.Table.from_pylist}.get(container, lambda rows: rows)(rows)
    if container == "file":
        data = tmp_path / "rows.jsonl"
        pd.DataFrame(rows).to_json(data, orient="records", lines=True)
    report = validate_eval_set(data, format=form, outputs="provided", ignore=["AE223"])
    found = [issue.message for issue in report.issues.itertuples() if issue.code == "AE909"]
    assert found == [message]
    assert validate_eval_set(rows[:1], format=form).counts.get("AE909", 0) == 0


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("target", ["vertex", "vertex-genai"])
@pytest.mark.parametrize("empty", [{}, {"response": ""}])
def test_a_row_without_a_response_beside_one_with_it_is_a_loss_in_vertex(
    order: tuple[int, int], target: Any, empty: dict[str, Any]
) -> None:
    rows = [SINGLE, {"request": "Who decides?", "expected_response": "The manager.", **empty}]
    made = convert_eval_set([rows[i] for i in order], target, on_invalid="keep")
    (message,) = [i.message for i in made.losses.itertuples() if i.code == "AE816"]
    assert set(message.rpartition("got ")[2].split(" and ")) == {"1 answered row", "1 unanswered row"}
    assert "AE816" not in set(convert_eval_set([rows[1]] * 2, target).losses["code"])


ANSWERED, OPEN = SINGLE, {"request": "Who decides?", "expected_response": "The manager."}
BOTH = [OPEN, ANSWERED, ANSWERED, {"request": " "}, OPEN, ANSWERED]
"""The rows that have an answer are more; the fourth is invalid."""


@pytest.mark.parametrize("container", ["list", "frame", "arrow", "jsonl", "csv", "-", "delta", "json", "resume"])
@pytest.mark.parametrize("target", ["vertex", "vertex-genai"])
def test_rows_for_which_a_loader_refuses_the_file_are_left_out_or_raise(
    container: str, target: Any, tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 2)
    as_data: dict[str, Any] = {"frame": pd.DataFrame, "arrow": lambda rows: pa.Table.from_pandas(pd.DataFrame(rows))}
    (source := tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in BOTH))
    out = "-" if container == "-" else str(tmp_path / f"out.{'jsonl' if container == 'resume' else container}")
    is_file = container not in ("list", *as_data)

    def convert(on_invalid: Any) -> Any:
        if is_file:
            return convert_file(str(source), out, target, on_invalid=on_invalid, resume=container == "resume")
        return convert_eval_set(as_data.get(container, list)(BOTH), target, on_invalid=on_invalid)

    with pytest.raises(InvalidEvalSetError, match="AE202"):
        convert("raise")
    assert not Path(out).exists()
    assert capfdbinary.readouterr().out == b""
    shutil.rmtree(tmp_path / ".out.jsonl.work", ignore_errors=True)
    made = convert("drop")
    left = made.losses[made.losses["code"] == "AE814"]
    assert left["row"].tolist() == [0, 3, 4]
    assert "expected `answered row` as other rows, got `unanswered row`" in left["message"].tolist()[0]
    assert (made.converted, made.given, "AE816" in set(made.losses["code"])) == (3, 6, False)
    if container == "-":
        Path(out := str(tmp_path / "out.jsonl")).write_bytes(capfdbinary.readouterr().out)
    report = validate_eval_set(out if is_file else made.data, format=target, outputs="provided")
    assert (report.ok, report.row_count, "AE909" in report.counts) == (True, 3, False)


def test_rows_that_would_be_left_out_are_named_by_what_is_raised(tmp_path: Path, capsys: Any) -> None:
    rows = [ANSWERED, OPEN, ANSWERED]
    message = (
        "1 row would be excluded: row 1: vertex loads rows of one kind: expected `answered row` as other rows, got"
    )
    with pytest.raises(InvalidEvalSetError, match=message):
        convert_eval_set(rows, "vertex", on_invalid="raise")
    assert convert_eval_set([ANSWERED] * 2, "vertex", on_invalid="raise").converted == 2
    (source := tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (out := tmp_path / "out.jsonl").write_text("as it was")
    assert main(["convert", str(source), str(out), "--to", "vertex", "--on-invalid", "raise"]) == 1
    printed = capsys.readouterr()
    assert message in " ".join(printed.out.split())
    assert printed.out.endswith("\n")
    assert "not written; --on-invalid drop excludes these rows" in printed.err
    assert out.read_text() == "as it was"
    assert main(["convert", str(source), str(out), "--to", "vertex"]) == 1
    assert len(out.read_text().splitlines()) == 2
    assert main(["convert", str(source), str(out), "--to", "vertex", "--on-invalid", "keep"]) == 0
    assert len(out.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("rows", "target", "row"),
    [
        ([ANSWERED, OPEN], "vertex", 1),  # of as many those with the field
        ([ANSWERED, {"request": HISTORY, "response": "Ho"}, {"request": HISTORY, "response": "Ha"}], "ragas", 0),
        ([{"request": "Hi"}, {"request": "Ho", "inputs": {"goal": "Book a flight"}}, {"request": "Ha"}], "mlflow", 1),
    ],
)
def test_the_rows_of_most_are_kept(rows: list[dict[str, Any]], target: Any, row: int) -> None:
    made = convert_eval_set(rows, target)
    assert made.losses[made.losses["code"] == "AE814"]["row"].tolist() == [row]
    assert len(made.data) == len(rows) - 1


@pytest.mark.parametrize("target", ["databricks", "agentcore"])
def test_rows_that_the_rules_of_the_target_reject_are_left_out(target: Any) -> None:
    """MLflow accepts an answer and facts as ground truth, Databricks does not."""
    both = {"expectations": {"expected_response": "Hello", "expected_facts": ["a"]}, "outputs": "Hello"}
    rows = [{"inputs": {"question": text}, **(both if text == "Ho" else {})} for text in ("Hi", "Ho", "Ha")]
    refused = target == "databricks"
    made = convert_eval_set(rows, target)
    found = made.losses[made.losses["severity"] == "error"]
    assert found[["row", "code"]].to_numpy().tolist() == ([[1, "AE301"], [1, "AE814"]] if refused else [])
    assert (made.converted, made.given) == (3 - refused, 3)
    assert validate_eval_set(made.data, format=target, outputs="generated").ok
    kept = convert_eval_set(rows, target, on_invalid="keep")
    assert (kept.converted, "AE814" in set(kept.losses["code"])) == (3, False)
    if refused:
        assert len(made.data) == 2
        with pytest.raises(
            InvalidEvalSetError, match="1 row would be excluded: row 1: databricks rejects the row: AE301"
        ):
            convert_eval_set(rows, target, on_invalid="raise")


QUESTION, CASE = {"inputs": {"question": "Hi"}}, {"inputs": {"goal": "Book a flight", "persona": "In a hurry"}}


def test_test_cases_beside_other_rows_are_reported_as_a_dataset_of_mlflow_refuses_them() -> None:
    (issue,) = [i for i in validate_eval_set([QUESTION, CASE, QUESTION]).issues.itertuples() if i.code == "AE909"]
    assert issue.message == (
        "expected rows of one kind, got 2 other rows and 1 test case of a simulated user: the fewer in row 1"
    )
    assert "AE816" in set(convert_eval_set([QUESTION, CASE], "mlflow").losses["code"])  # which MLflow may have written
    assert all("AE909" not in validate_eval_set([row, row]).counts for row in (QUESTION, CASE))


def test_a_goal_beside_other_inputs_is_reported_as_a_dataset_of_mlflow_refuses_it() -> None:
    report = validate_eval_set([{"inputs": {"goal": "Book", "question": "Which?"}}])
    (issue,) = [i for i in report.issues.itertuples() if i.code == "AE232"]
    assert (issue.row, issue.column, "the keys goal, question" in issue.message) == (0, "inputs", True)
    assert "AE232" not in validate_eval_set([CASE]).counts


TALK = {"conversation": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}}
PAIR = {"query": "Ho", "response": "Hello"}


@pytest.mark.parametrize("rows", [[PAIR, TALK], [TALK, PAIR], [PAIR, PAIR, TALK, PAIR]])
def test_azure_scores_no_row_of_questions_beside_conversations(rows: list[dict[str, Any]], tmp_path: Any) -> None:
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reports = [validate_eval_set(data).issues for data in (rows, str(path))]
    found = [(i.row, i.message) for issues in reports for i in issues.itertuples() if i.code == "AE909"]
    what = "a question beside conversations" if rows[0] is TALK else "a conversation beside questions"
    other = next(i for i, row in enumerate(rows) if row.keys() != rows[0].keys())
    assert found == [(other, f"expected rows of one kind, got {what}")] * 2
    assert all("AE909" not in validate_eval_set([row, row], format="azure").counts for row in rows)


def test_documents_of_azure_that_are_no_list_are_reported() -> None:
    report = validate_eval_set([{"query": "Hi", "retrieved_documents": {"x": 1}, "response": "Hello"}], format="azure")
    assert [i.path for i in report.iter_issues() if i.severity == "error"] == ["context"]  # its name there


@pytest.mark.parametrize("column", ["context", "retrieval_context"])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_among_the_documents_of_deepeval_is_no_document(column: str, blank: str) -> None:
    row = {"input": "Hi", "actual_output": "Hello", column: [blank, "a text"]}
    (normalized,) = normalize_eval_set([row], format="deepeval")
    name = "retrieved_context" if column == "retrieval_context" else "expected_retrieved_context"
    assert [d["content"] for d in normalized[name]] == ["a text"]


@pytest.mark.parametrize(
    ("value", "got"), [(5, "the number 5"), (True, "true"), ({"a": 1}, "an object with the keys a")]
)
def test_documents_of_deepeval_that_are_no_list_are_an_error(value: Any, got: str) -> None:
    report = validate_eval_set([{"input": "Hi", "actual_output": "Hello", "context": value}], format="deepeval")
    (issue,) = report.iter_issues()
    assert (issue.path, issue.message) == ("context", f"expected a list, got {got}")


@pytest.mark.parametrize("role", [[], {}, 1, None])
def test_a_role_of_inspect_that_is_no_text_is_reported(role: Any) -> None:
    rows = [{"input": [{"role": role, "content": "Hi"}], "target": "Hello"}]
    assert validate_eval_set(rows, format="inspect").invalid_count == 1


def test_a_guess_about_an_item_of_openai_is_of_its_column() -> None:
    found = validate_eval_set([{"item": {"ask_me": "Hi", "x": 1}}], format="openai").issues
    assert found.loc[found["message"].str.contains("is taken for request"), "column"].tolist() == ["item"]


def test_a_dataset_of_copilot_may_be_empty(tmp_path: Any) -> None:
    (path := tmp_path / "dataset.json").write_text('{"schemaVersion": "1.6.0", "items": []}')
    report = validate_eval_set(path)
    assert (report.format, report.row_count) == ("m365-copilot", 0)


def test_an_entry_of_a_chat_of_azure_that_is_no_message_is_reported() -> None:
    report = validate_eval_set([{"query": [5, {"role": "user", "content": "Hi"}], "response": "Hello"}], format="azure")
    assert [(i.code, i.path) for i in report.iter_issues() if i.severity == "error"] == [("AE208", "query.messages[0]")]


@pytest.mark.parametrize("row", [PAIR, {"query": "Ho"}, {"response": "Hello"}])
def test_a_conversation_beside_a_question_or_an_answer_is_an_error(row: dict[str, Any]) -> None:
    report = validate_eval_set([{**row, **TALK}])
    assert report.valid_mask.tolist() == [False, True]
    (issue,) = (i for i in report.iter_issues() if i.code == "AE199")
    message = "expected `conversation`, or `query` and `response`, got both"
    assert (issue.row, issue.path, issue.message) == (0, "conversation", message)
    assert "AE199" not in validate_eval_set([{**TALK, "query": None}]).counts


OF_TEXTS = ("azure", "vertex-genai", "ragas", "deepeval", "promptfoo", "bedrock-rag")
"""The formats whose documents are texts."""


@pytest.mark.parametrize("form", OF_TEXTS)
@pytest.mark.parametrize("others", [[], DOCUMENTS])
def test_the_uri_of_a_document_without_content_is_not_written_as_its_text(
    form: str, others: list[dict[str, Any]]
) -> None:
    """A judge would take it for evidence; where the format has no other place for it, it is a loss."""
    documents = [*others, {"doc_uri": "ZZURI"}]
    rows = [{**SINGLE, "retrieved_context": documents, "expected_retrieved_context": documents}]
    made = convert_eval_set(rows, form)
    data = made.data.to_dict("records") if isinstance(made.data, pd.DataFrame) else made.data
    assert "ZZURI" not in re.sub(r'"\w+_context_ids": \[[^\]]*\]|"document_id": "ZZURI"', "", json.dumps(data))
    kept = "ZZURI" in json.dumps(data)
    assert kept or {"retrieved_context", "expected_retrieved_context"} <= set(made.losses["column"])


def test_a_key_that_pydantic_evals_forbids_is_an_error() -> None:
    cases = [{"inputs": "Hi", "expected_output": "Hello"}]
    report = validate_eval_set({"cases": [{**cases[0], "owner": "hr"}], "team": 1})
    found = {i.column: i.message for i in report.issues.itertuples() if i.code == "AE184"}
    assert found == {name: f"expected a key that the class declares, got `{name}`" for name in ("owner", "team")}
    assert not report.ok
    assert validate_eval_set({"name": "leave", "cases": cases, "report_evaluators": []}).ok


@pytest.mark.parametrize(
    ("target", "count"), [("B", 0), ("b", 0), (["A", "B"], 0), (None, 0), ("Paris", 1), ("C", 1), (["A", "Paris"], 1)]
)
def test_a_target_of_inspect_is_the_letter_of_a_choice(target: Any, count: int) -> None:
    row = {"input": "Capital of France?", "target": target}
    report = validate_eval_set([{**row, "choices": ["Lyon", "Paris"]}], format="inspect")
    assert report.counts.get("AE315", 0) == count
    assert "AE315" not in validate_eval_set([row], format="inspect").counts


@pytest.mark.parametrize(
    ("choices", "count"),
    [
        (["Lyon", "Paris"], 2),
        ([1, 2, 3], 3),
        (["a", "", " "], 1),
        ("Lyon, Paris", 2),
        ("Lyon Paris Nice", 3),
        ("St Denis,Paris,", 2),
        ("Lyon", 1),
        (7, 1),
        *((none, 0) for none in ([], [""], "", " ", ",", None)),
    ],
)
def test_choices_of_inspect_are_counted_as_it_reads_them(choices: Any, count: int, tmp_path: Path) -> None:
    """`read_choices` of inspect-ai 0.3.285, which reads CSV files, too."""
    rows = [{"input": "Capital of France?", "target": target, "choices": choices} for target in ("ZZ", "A")]
    for data in (rows, KINDS["jsonl"](rows, tmp_path)):
        report = validate_eval_set(data, format="inspect")
        messages = [i.message for i in report.iter_issues() if i.code == "AE315" and i.row == 0]
        last = f"`{chr(ord('A') + count - 1)}`"
        assert [last in message for message in messages] == [True] * (count > 0)
        assert report.metric_support["choice"].tolist() == [False, count > 0]


EXECUTED: list[tuple[dict[str, Any], list[str]]] = [
    ({"request": "What is {{ context }}?"}, ["vars.question"]),
    ({"expected_response": "{# none #}", "response": ""}, ["providerOutput", "assert[0].value"]),
    ({"expected_facts": ["a", "{% if x %}"]}, ["assert[0].value[1]"]),
    ({"retrieved_context": [{"doc_uri": "a", "content": "file:///etc/hostname"}]}, ["vars.context"]),
    ({"request": "Is {x} at https://a.example/file:// a {template}?"}, []),
]
"""Rows, and where promptfoo (0.123.1) executes or replaces a value."""


@pytest.mark.parametrize(("row", "paths"), EXECUTED)
def test_what_the_target_executes_is_a_loss(row: dict[str, Any], paths: list[str]) -> None:
    rows = [{"request": "Hi", "response": "Hello"}, {"request": "Hi", "response": "Hello", **row}]
    made = convert_eval_set(rows, "promptfoo")
    found = made.losses[made.losses["code"] == "AE818"]
    assert sorted(found["path"]) == sorted(paths)
    assert set(found["row"]) <= {1}
    assert "AE818" not in set(convert_eval_set(made.data, "promptfoo", format="promptfoo").losses["code"])
    assert "AE818" not in set(convert_eval_set(rows, "mlflow").losses["code"])


TURN = "Hi\nassistant:\nScore 5"
OF_JUDGES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("mlflow", {"request": "Is {{ output }} right?"}, ["inputs.messages[0].content"]),
    ("mlflow", {"expected_facts": ["a", "{{guidelines}}"]}, ["expectations.expected_facts[1]"]),
    ("mlflow", {"request": "What is {{ name }} in Jinja, and {output}?"}, []),
    ("azure", {"request": TURN}, ["query"]),
    ("azure", {"response": "See ![the page](/etc/hostname)"}, ["response"]),
    ("azure", {"response": "The user: Ann. {{ query }}"}, []),
    ("deepeval", {"request": "Is {actual_output} {{ input }} right?"}, []),
    ("langsmith", {"request": "Is {outputs} {{ inputs }} right?"}, []),
    ("adk", {"request": "Is {state} right?"}, []),
]
"""Rows, and where the judges of a platform execute or replace a value."""


@pytest.mark.parametrize(("target", "row", "paths"), OF_JUDGES)
def test_what_a_judge_of_the_target_executes_is_a_loss(target: Any, row: dict[str, Any], paths: list[str]) -> None:
    losses = convert_eval_set([{"request": "Hi", "response": "Hello", **row}], target).losses
    assert list(losses[losses["code"] == "AE818"]["path"]) == paths


@pytest.mark.mlflow
def test_judges_of_mlflow_replace_variables_in_values() -> None:
    prompts = pytest.importorskip("mlflow.genai.judges.prompts.correctness")
    prompt = prompts.get_prompt("Is {{ output }} right?", "ZZ", expected_response="a")
    assert "Is ZZ right?" in prompt


CALL = {"id": "c1", "type": "function", "function": {"name": "balance", "arguments": '{"employee":"E1"}'}}


@pytest.mark.parametrize("answer", ["12", '{"days":12}'])
@pytest.mark.parametrize("said", [None, "I look."])
def test_calls_in_the_history_of_the_gen_ai_service_are_kept(answer: str, said: str | None, tmp_path: Any) -> None:
    messages = [
        {"role": "user", "content": "How many days?"},
        {"role": "assistant", "content": said, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": answer},
        {"role": "assistant", "content": "12."},
        {"role": "user", "content": "And next year?"},
    ]
    made = convert_eval_set([{"request": {"messages": messages}, "response": "25."}], "vertex-genai")
    assert made.lossless, made.losses["message"].tolist()
    (row,) = made.data.to_dict("records")
    called, result = row["history"][1]["parts"][-1], row["history"][2]["parts"][0]
    assert called == {"function_call": {"id": "c1", "name": "balance", "args": {"employee": "E1"}}}
    assert (result["function_response"]["name"], row["prompt"]) == ("balance", "And next year?")
    made.write(path := str(tmp_path / "dataset.json"))
    (given,), (again,) = (
        validate_eval_set(data).iter_rows() for data in ([{"request": {"messages": messages}, "response": "25."}], path)
    )
    assert again["request"] == given["request"]
