"""Formats that are a table: what is read of each platform's rows, and that nothing is lost in silence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    EvalTask,
    ValuesAsTextWarning,
    convert_eval_set,
    explain,
    metric_support,
    normalize_eval_set,
    score_trajectories,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.format import Field, Format
from agent_eval_schema.formats.registry import FORMATS, find_format
from agent_eval_schema.text.jsontext import put, value_at
from agent_eval_schema.validation.report import run_of, summary_of
from tests.conftest import DATA, SAMPLES

Row = dict[str, Any]
NEIGHBORS = DATA / "neighbors"
FORMAT_OF = {
    "azure_ai": "azure",
    "rag": "bedrock-rag",
    "inspect_ai": "inspect",
    "hf_rag": "ragas",
    "strands": "strands",
    "openai": "openai",
}
FILES = sorted(path for path in NEIGHBORS.glob("*/*"))
FLAT = [form for form in FORMATS if form.fields and form.originals is None]
CONVERSATION = "a conversation is written as one row per answer, with the messages before it"
CALL = {"tool_name": "get_weather", "tool_input": {"location": "Paris"}}


def format_of(path: Path) -> str:
    """By the first word of the file, if it is one of a platform, else by the folder."""
    folder = FORMAT_OF.get(path.parent.name, path.parent.name.replace("_", "-"))
    return FORMAT_OF.get(path.name.replace("-", "_").split("_")[0], folder)


def read(data: Any, **options: Any) -> list[Row]:
    """The canonical values of valid rows, without what is absent."""
    report = validate_eval_set(data, **options)
    assert report.ok, report.to_text()
    return [{name: value for name, value in row.items() if value is not None} for row in report.iter_rows()]


def one(row: Row, **options: Any) -> Row:
    (found,) = read([row], **options)
    return found


def asked(row: Row) -> list[str]:
    return [message["content"] for message in row["request"]["messages"]]


def written(data: Any, target: str) -> Any:
    """What a conversion to the format of the data writes."""
    made = convert_eval_set(data, target)
    assert made.lossless, made.to_text()
    if not hasattr(made.data, "to_dict"):
        return made.data
    return [{n: v for n, v in row.items() if v is not None} for row in made.data.to_dict("records")]


# ---------------------------------------------------------------------------------------------------------------------
# every platform
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_of_a_platform_is_known_and_nothing_of_it_is_lost(path: Path) -> None:
    report = validate_eval_set(str(path))
    assert report.format == format_of(path), summary_of(report).format_reason
    assert report.count("error") == 0, report.to_text()
    names = {issue.code for issue in report.iter_issues()}
    assert not names & {"AE102", "AE103"}, report.to_text()
    made = convert_eval_set(str(path), "databricks")
    # rows that need no request, which databricks does; calls of a session, which are passed through
    is_asked = made.losses["column"].isin(find_format(report.format).request_columns)
    others = made.losses[(made.losses["message"] != CONVERSATION) & ~is_asked]
    assert set(others["code"]) <= {"AE814", "AE815"}
    own = convert_eval_set(str(path), report.format)
    assert own.converted == own.given
    assert set(own.losses["message"]) <= {CONVERSATION} or path.parent.name == "hf_rag", own.to_text()


@pytest.mark.parametrize("table", FLAT, ids=lambda table: table.name)
def test_a_sample_is_written_as_it_is(table: Format) -> None:
    (path,) = SAMPLES.glob(f"{table.name.replace('-', '_')}.json*")
    given = [json.loads(line) for line in path.read_text().splitlines()] if path.suffix == ".jsonl" else None
    found = written(str(path), table.name)
    expected = json.loads(path.read_text()) if given is None else given
    assert json.loads(json.dumps(found)) == without_null(expected)


def without_null(rows: Any) -> Any:
    return [{k: v for k, v in row.items() if v is not None} for row in rows] if isinstance(rows, list) else rows


def test_each_platform_of_a_table_has_its_metrics_or_those_of_mlflow() -> None:
    for table in FLAT:
        report = validate_eval_set(str(next(SAMPLES.glob(f"{table.name.replace('-', '_')}.json*"))))
        assert summary_of(report).system == table.system
        assert any(support.supported for support in run_of(report).coverage(table.system)), table.name


# ---------------------------------------------------------------------------------------------------------------------
# the mechanism
def test_a_value_is_read_at_its_path() -> None:
    row = {"a": [{"b": 1}], "c": '{"d": [2]}', "e": "text", "f": None}
    assert (value_at(row, "a[0].b"), value_at(row, "c.d[0]")) == (1, 2)
    assert (value_at(row, "a[1].b"), value_at(row, "f.g"), value_at(row, "z")) == (None, None, None)
    assert (value_at(row, "e.g"), value_at(row, "a.b")) == ("text", [{"b": 1}])  # for a rule to report
    assert (value_at(row, "e[0]"), value_at({"c": {"d": 1}}, "c[0].d")) == ("text", {"d": 1})


def test_a_value_is_put_at_its_path_and_lists_are_joined() -> None:
    row: Row = {}
    for path, value in (("a[1].b", 1), ("a[1].c.d", 2), ("l", [1]), ("l", [2]), ("x", 1), ("x", 2)):
        put(row, path, value)
    assert row == {"a": [{}, {"b": 1, "c": {"d": 2}}], "l": [1, 2], "x": 1}
    put(row, "l[1]", 3)
    assert row["l"] == [1, 3]


PATHS = st.lists(st.sampled_from("abc") | st.integers(0, 2).map(lambda i: f"[{i}]"), min_size=1, max_size=4).map(
    lambda steps: "a" + "".join(s if s[0] == "[" else f".{s}" for s in steps)
)


@given(PATHS)
def test_what_is_put_at_a_path_is_there(path: str) -> None:
    row: Row = {}
    put(row, path, "value")
    assert value_at(row, path) == "value"


def test_a_column_that_contains_more_is_kept_while_it_agrees() -> None:
    fields = (Field("q.text", "request"), Field("a", "response"))
    table = Format(name="mine", title="", summary="", page="", signs=Signs((("q", "a"),)), fields=fields)
    row = table.read_row({"q": {"text": "Hi", "lang": "en"}, "a": "Hello"})
    assert row == {"request": "Hi", "response": "Hello", "mine_q": {"text": "Hi", "lang": "en"}}
    changed = {**row, "request": "Bye"}
    assert table.write_row(row) == {"q": {"text": "Hi", "lang": "en"}, "a": "Hello"}
    assert table.write_row(changed) == {"q": {"text": "Bye"}, "a": "Hello"}


# ---------------------------------------------------------------------------------------------------------------------
# Azure AI Foundry
MESSAGES = [
    {
        "role": "assistant",
        "run_id": "run_1",
        "content": [{"type": "tool_call", "tool_call_id": "c", "name": "get_weather", "arguments": CALL["tool_input"]}],
    },
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "tool_result", "tool_result": {"temperature": 18}}]},
    {"role": "assistant", "content": [{"type": "text", "text": "18 degrees."}]},
]


_TURN = {"role": "user", "content": "What is the weather?"}
_TOOL_CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
_WEATHER = [{"tool_name": "weather", "tool_input": {"city": "Oslo"}}]


@pytest.mark.parametrize(
    ("answer", "expected", "calls"),
    [
        ({"content": "Sunny."}, "Sunny.", None),
        ({"content": [{"type": "text", "text": "Sun"}, {"type": "text", "text": "ny."}]}, "Sunny.", None),
        ({"content": None, "tool_calls": [_TOOL_CALL]}, None, _WEATHER),
        ({"content": "I look.", "tool_calls": [_TOOL_CALL]}, "I look.", _WEATHER),
    ],
)
def test_the_last_message_of_a_chat_of_openai_is_ground_truth(answer: Any, expected: Any, calls: Any) -> None:
    report = validate_eval_set([{"messages": [_TURN, {"role": "assistant", **answer}]}], format="openai")
    assert report.ok
    (row,) = report.iter_rows()
    assert (row["expected_response"], row["reference_trajectory"]) == (expected, calls)
    assert row["request"] == {"messages": [_TURN]}


@pytest.mark.parametrize("call", [{"tool_call": _TOOL_CALL}, {"tool_call": _TOOL_CALL["function"]}, _TOOL_CALL])
def test_a_call_of_azure_is_in_its_part_or_in_an_object_of_it(call: Row) -> None:
    response = [{"role": "assistant", "content": [{**call, "type": "tool_call", "tool_call_id": "c"}]}]
    (row,) = validate_eval_set([{"query": "Which weather?", "response": response}], format="azure").iter_rows()
    assert row["predicted_trajectory"] == _WEATHER


@pytest.mark.parametrize("call", [{"tool_call": "x"}, {"tool_call": {"function": {"arguments": "{}"}}}, {}])
def test_a_call_of_azure_without_a_name_stays_in_the_response(call: Row) -> None:
    content = [{**call, "type": "tool_call"}, {"type": "text", "text": "Sunny."}]
    row = {"query": "Which weather?", "response": [{"role": "assistant", "content": content}]}
    found = one(row, format="azure")
    assert (found["response"], found["azure_response"]) == ("Sunny.", row["response"])
    assert "predicted_trajectory" not in found


def test_an_expected_document_of_azure_may_have_our_keys() -> None:
    documents = [{"document_id": 7, "query_relevance_label": 1}, {"doc_uri": "b"}]
    found = one({"query": "q", "response": "r", "retrieval_ground_truth": documents}, format="azure")
    assert [document["doc_uri"] for document in found["expected_retrieved_context"]] == ["7", "b"]


_DEFINITIONS = [{"name": "weather", "parameters": {}}]
_CALL_OF_FOUNDRY = {"type": "tool_call", "tool_call_id": "c", "name": "weather", "arguments": {"city": "Oslo"}}
_OF_FOUNDRY = [
    {"role": "assistant", "content": [_CALL_OF_FOUNDRY]},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "tool_result", "tool_result": "sunny"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}]},
]


@pytest.mark.parametrize(
    ("more", "supported"),
    [
        ({"response": _OF_FOUNDRY, "tool_definitions": _DEFINITIONS}, [True, True, True]),
        ({"response": _OF_FOUNDRY}, [False, False, True]),
        ({"response": _OF_FOUNDRY, "tool_definitions": []}, [False, False, True]),
        (
            {"response": "Sunny.", "tool_calls": [_CALL_OF_FOUNDRY], "tool_definitions": _DEFINITIONS},
            [True, False, False],
        ),
    ],
)
def test_evaluators_of_tools_need_definitions_or_results(more: dict[str, Any], supported: list[bool]) -> None:
    frame = metric_support([{"query": "What is the weather?", **more}], format="azure")
    names = ["tool_call_accuracy", "tool_output_utilization", "tool_call_success"]
    assert frame[names].iloc[0].tolist() == supported


def test_messages_beside_tool_definitions_are_a_conversation_of_foundry() -> None:
    row = {"messages": [_TURN, *_OF_FOUNDRY], "tool_definitions": _DEFINITIONS}
    report, conversation = (
        validate_eval_set([r])
        for r in (row, {"conversation": {"messages": row["messages"]}, "tool_definitions": _DEFINITIONS})
    )
    assert (report.format, report.ok) == ("azure", True)
    assert list(report.iter_rows()) == list(conversation.iter_rows())
    assert [row["response"] for row in report.iter_rows()] == [None, "Sunny."]


def test_the_explanation_of_a_missing_tool_input_and_its_hint_agree() -> None:
    row = {"prompt": "Book", "response": "Done.", "predicted_trajectory": [{"tool_name": "book"}]}
    (issue,) = validate_eval_set([row], format="vertex").iter_issues()
    rule = explain(issue.code)
    assert (issue.code, issue.message) == ("AE503", "expected `tool_input`, got none: Vertex AI drops the trajectory")
    assert "Vertex AI drops a trajectory with a call that has no `tool_input`" in rule
    for hint in (issue.hint, rule):
        assert re.search("`{}` if there are no", hint)


def test_inspect_has_the_function_of_a_call_as_its_name() -> None:
    messages = [
        _TURN,
        {"role": "assistant", "content": None, "tool_calls": [{"function": {**_TOOL_CALL["function"]}}]},
        {"role": "tool", "tool_call_id": "call_0", "content": "Sunny."},
        {"role": "user", "content": "And tomorrow?"},
    ]
    (written,) = convert_eval_set([{"request": {"messages": messages}}], "inspect").data.to_dict("records")
    call = {"id": "call_0", "type": "function", "function": "weather", "arguments": {"city": "Oslo"}}
    assert written["input"][1] == {"role": "assistant", "content": "", "tool_calls": [call]}
    (read,) = validate_eval_set([written], format="inspect").iter_rows()
    (again,) = read["request"]["messages"][1]["tool_calls"]
    assert again["function"] == {"name": "weather", "arguments": '{"city":"Oslo"}'}


def test_a_row_of_langsmith_with_outputs_and_reference_has_a_response() -> None:
    row = {"inputs": {"question": "How many days?"}, "outputs": {"answer": "12"}, "reference_outputs": {"answer": "13"}}
    report = validate_eval_set([row], format="langsmith")
    (read,) = report.iter_rows()
    assert (report.ok, read["response"], read["expected_response"]) == (True, "12", "13")


def test_a_table_for_gen_ai_has_an_id_that_its_client_accepts() -> None:
    """The client names the cases of a table itself: `eval_case_id` raises a TypeError."""
    rows = [{"request_id": "a", "request": "Why?", "response": "So.", "expected_response": "So."}]
    (written,) = convert_eval_set(rows, "vertex-genai").data.to_dict("records")
    assert written["case_id"] == "a"
    (again,) = validate_eval_set([written]).iter_rows()
    (older,) = validate_eval_set([{"prompt": "Why?", "eval_case_id": "a"}]).iter_rows()
    assert again["request_id"] == older["request_id"] == "a"


def test_messages_of_foundry_hold_the_answer_and_the_calls() -> None:
    found = one({"query": [{"role": "user", "content": "Weather?"}], "response": MESSAGES})
    assert (asked(found), found["response"], found["predicted_trajectory"]) == (["Weather?"], "18 degrees.", [CALL])


def test_calls_and_results_in_a_chat_of_foundry_are_messages() -> None:
    query = [{"role": "user", "content": "Weather?"}, *MESSAGES, {"role": "user", "content": "And in Rome?"}]
    (first, call, result, answer, last) = one({"query": query, "response": "25"})["request"]["messages"]
    assert call["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"location":"Paris"}'}
    assert (result["content"], answer["content"]) == ('{"temperature":18}', "18 degrees.")
    assert (first["content"], last["content"]) == ("Weather?", "And in Rome?")


def test_the_sample_of_a_run_of_foundry_is_the_response_and_not_that_of_openai() -> None:
    path = NEIGHBORS / "azure_ai" / "run_by_shape.jsonl"
    (found,) = read(str(path))
    assert found["predicted_trajectory"] == [CALL]
    assert [d["content"] for d in found["retrieved_context"]] == ["Paris: 18 degrees"]
    assert (found["response"], found["expected_response"]) == ("It is 18 degrees in Paris.", "18 degrees")
    row = {"item": {"question": "q", "answer": "a"}, "sample": {"output_text": "b"}}
    assert validate_eval_set([row]).format == "openai"
    report = validate_eval_set([{"item": {"query": "q", "ground_truth": "g"}, "sample": {"output_text": "b"}}])
    assert (report.format, [row["response"] for row in report.iter_rows()]) == ("azure", ["b"])


def test_a_text_of_a_sample_that_is_not_its_items_is_passed_through() -> None:
    items = [{"role": "assistant", "content": "Sunny."}]
    for text, rest in (("Sunny.", None), ("Rainy.", {"output_text": "Rainy."})):
        found = one({"item": {"query": "q"}, "sample": {"output_items": items, "output_text": text}})
        assert (found["response"], found.get("sample")) == ("Sunny.", rest)


def test_each_answer_of_a_conversation_of_foundry_is_a_row() -> None:
    first, second = read(str(NEIGHBORS / "azure_ai" / "conversation_by_shape.jsonl"))
    assert (asked(first), first["response"]) == (["Weather in Paris?"], "18 degrees.")
    assert (len(asked(second)), second["response"]) == (3, "25 degrees.")
    assert second["retrieved_context"][0]["content"] == "Rome: 25 degrees"
    assert first["session_id"] == second["session_id"]


def test_a_question_after_the_last_answer_of_a_conversation_is_a_row() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    question = {"role": "user", "content": "c", "context": "ctx"}
    row = {"conversation": {"messages": [*messages, json.dumps(question)]}, "context": "of all"}
    answered, unanswered = read([row])
    assert answered["retrieved_context"][0]["content"] == "of all"
    assert (asked(answered), answered["response"]) == (["a"], "b")
    assert (asked(unanswered), unanswered.get("response")) == (["a", "b", "c"], None)
    assert unanswered["retrieved_context"][0]["content"] == "ctx"
    assert answered["session_id"] == unanswered["session_id"]


_ASKED = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize("conversation", [{"messages": [_ASKED], "topic": "leave"}, {"topic": "leave"}, "c-1"])
def test_what_is_beside_the_messages_of_a_conversation_is_passed_through(conversation: Any) -> None:
    rows = [
        {"conversation": {"messages": [_ASKED, {"role": "assistant", "content": "Hello"}]}},
        {"conversation": conversation},
    ]
    report = validate_eval_set(rows)
    assert [(i.code, i.column) for i in report.iter_issues() if i.row is None] == [("AE103", "conversation")]
    expected = conversation if isinstance(conversation, str) else {"topic": "leave"}
    assert [row["conversation"] for row in normalize_eval_set(rows, on_invalid="keep")] == [None, expected]


def test_a_row_beside_conversations_of_foundry_keeps_its_question() -> None:
    conversation = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    row = {"query": "q", "response": "r"}
    found = read([row, {"conversation": conversation}, {**row, "conversation": "c-17"}])
    assert [(*asked(row), row["response"]) for row in found] == [("q", "r"), ("a", "b"), ("q", "r")]
    assert [row.get("session_id") for row in found] == [None, "conversation 1", None]


def test_the_result_of_a_call_after_the_last_answer_of_a_conversation_is_part_of_the_answer() -> None:
    call = {"role": "assistant", "content": [{"type": "tool_call", "name": "get_weather", "arguments": {}}]}
    result = {"role": "tool", "content": [{"type": "tool_result", "tool_result": "18 degrees"}]}
    (found,) = read([{"conversation": {"messages": [{"role": "user", "content": "a"}, call, result]}}])
    assert found["azure_response"] == [call, result]
    assert found["predicted_trajectory"] == [{"tool_name": "get_weather", "tool_input": {}}]


@pytest.mark.parametrize(
    ("truth", "calls"),
    [
        (["a", "b"], [{"tool_name": "a", "tool_input": {}}, {"tool_name": "b", "tool_input": {}}]),
        ([["a"], {"a": {"x": 1}}], [{"tool_name": "a", "tool_input": {"x": 1}}]),
    ],
)
def test_a_ground_truth_that_is_a_list_of_tools_is_a_trajectory(truth: Any, calls: Any) -> None:
    row = {"response": MESSAGES, "ground_truth": truth}
    assert one(row)["reference_trajectory"] == calls
    assert written([row], "azure") == [row]


def test_documents_of_no_relevance_are_not_expected() -> None:
    row = {
        "retrieval_ground_truth": [
            {"document_id": "1", "query_relevance_label": 4},
            {"document_id": "2", "query_relevance_label": 0},
        ],
        "retrieved_documents": [{"document_id": "2", "relevance_score": 45.1}],
    }
    found = one(row)
    assert [d["doc_uri"] for d in found["expected_retrieved_context"]] == ["1"]
    assert [d["doc_uri"] for d in found["retrieved_context"]] == ["2"]


# ---------------------------------------------------------------------------------------------------------------------
# Bedrock and AgentCore
def test_a_prompt_of_bedrock_with_responses_is_not_one_of_vertex() -> None:
    row = {
        "prompt": "6 * 7?",
        "referenceResponse": "42",
        "category": "math",
        "modelResponses": [{"response": "It is 42.", "modelIdentifier": "mine"}],
    }
    found = one(row)
    assert validate_eval_set([row]).format == "bedrock"
    assert (found["response"], found["expected_response"], found["tags"]) == ("It is 42.", "42", {"category": "math"})
    assert written([row], "bedrock") == [row]


def test_a_response_for_bedrock_names_a_model() -> None:
    made = convert_eval_set([{"request": "Hi", "response": "Hello"}], "bedrock").data["modelResponses"][0]
    assert made == [{"response": "Hello", "modelIdentifier": "agent"}]


def test_a_record_of_a_result_of_bedrock_is_read() -> None:
    row = {"inputRecord": {"prompt": "6 * 7?", "referenceResponse": "42"}, "automatedEvaluationResult": {"scores": []}}
    assert (asked(one(row)), one(row)["expected_response"]) == (["6 * 7?"], "42")
    assert written([row], "bedrock")[0]["inputRecord"] == row["inputRecord"]


def test_passages_of_bedrock_are_documents_and_earlier_turns_history() -> None:
    first, one_turn, two_turns = read(str(SAMPLES / "bedrock_rag.jsonl"))
    assert first["retrieved_context"][0]["doc_uri"] == "handbook/leave.md"
    assert asked(two_turns) == [*asked(one_turn), "Up to five days.", "Until when?"]


def test_rows_of_one_conversation_are_written_as_one() -> None:
    rows = [
        {"request": "Hi", "expected_response": "Hello", "session_id": "s"},
        {
            "request": {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello"},
                    {"role": "user", "content": "Bye"},
                ]
            },
            "expected_response": "Bye!",
            "session_id": "s",
            "reference_trajectory": [{"tool_name": "leave", "tool_input": {}}],
        },
    ]
    made = convert_eval_set(rows, "agentcore")
    (scenario,) = made.data["scenarios"]
    assert made.lossless
    assert [turn["input"] for turn in scenario["turns"]] == ["Hi", "Bye"]
    assert (scenario["scenario_id"], scenario["expected_trajectory"]) == ("s", ["leave"])
    (later,) = convert_eval_set(rows[1:], "agentcore").data["scenarios"]
    assert later == scenario  # the history of a row alone


def test_what_belongs_to_a_session_is_on_its_last_turn() -> None:
    first, last = read(str(SAMPLES / "agentcore.json"))[:2]
    assert not {"guidelines", "reference_trajectory"} & first.keys()
    assert [call["tool_name"] for call in last["reference_trajectory"]] == ["get_leave_balance", "book_leave"]
    assert (last["guidelines"], first["session_id"], last["session_id"]) == (
        {"assertions": ["The agent reads the balance before it books."]},
        "leave",
        "leave",
    )


@pytest.mark.parametrize("as_document", [True, False])
def test_a_case_of_strands_is_not_one_of_deepeval_and_its_trajectory_a_reference(as_document: bool) -> None:
    cases = [{"name": "a", "input": "q", "expected_output": "t", "expected_trajectory": ["f"]}]
    report = validate_eval_set({"cases": cases, "evaluators": []} if as_document else cases)
    (found,) = report.iter_rows()
    assert (report.format, report.counts) == ("strands", {})
    assert found["reference_trajectory"] == [{"tool_name": "f", "tool_input": {}}]
    assert (found["request_id"], found["expected_response"]) == ("a", "t")


def test_names_of_tools_are_compared_by_name_and_the_result_is_marked() -> None:
    row = {"input": "q", "expected_trajectory": ["get_weather"]}
    data = [{**one(row), "predicted_trajectory": [CALL], "trace": None}]
    plain, named = (score_trajectories(data, match=match, tool_name="get_weather") for match in ("call", "tool_name"))
    assert [r.summary_metrics["trajectory_exact_match/mean"] for r in (plain, named)] == [0.0, 1.0]
    assert named.summary_metrics["trajectory_single_tool_use/mean"] == 1.0
    assert (plain.options.get("match"), named.options["match"]) == (None, "tool_name")
    assert "compared by tool name" in named.to_text()
    assert "compared by tool name" not in plain.to_text()
    assert EvalTask(data, ["trajectory_recall"], match="tool_name").evaluate().options["match"] == "tool_name"
    with pytest.raises(EvalSetError, match="match: expected one of call, tool_name"):
        score_trajectories(data, match="name")


@pytest.mark.parametrize("key", ["args", "arguments", "input"])
@pytest.mark.parametrize("write", [lambda value: value, json.dumps], ids=["object", "text"])
def test_a_trajectory_of_agentcore_may_have_calls(key: str, write: Any) -> None:
    call = {"name": CALL["tool_name"], key: write(CALL["tool_input"])}
    row = {"scenario_id": "s", "turns": [{"input": "q"}], "expected_trajectory": [call, "look_up"]}
    found = one(row, format="agentcore")
    assert found["reference_trajectory"] == [CALL, {"tool_name": "look_up", "tool_input": {}}]


def test_arguments_that_a_list_of_names_cannot_hold_are_a_loss() -> None:
    row = {"request": "q", "reference_trajectory": [CALL]}
    for target in ("agentcore", "strands"):
        assert convert_eval_set([row], target).losses["column"].tolist() == ["reference_trajectory"]


# ---------------------------------------------------------------------------------------------------------------------
# Microsoft 365 Copilot
def test_a_dataset_of_copilot_is_read_and_written_the_same() -> None:
    path = SAMPLES / "m365_copilot.json"
    plain, first, second = read(str(path))
    assert plain["expected_retrieved_context"][0]["content"] == "The balance of E1042 is 12 days."
    assert [first["request_id"], second["request_id"]] == ["desk#1", "desk#2"]
    assert asked(second) == ["Which desks are free in Berlin on Tuesday?", "4B and 7A.", "Book the first one."]
    assert second["reference_trajectory"] == [{"tool_name": "Desks.book_desk", "tool_input": {}}]
    assert written(str(path), "m365-copilot") == json.loads(path.read_text())


@pytest.mark.parametrize("version", ["1.0.0", "1.2.0", "1.6.0", "2.0.0", None])
def test_every_version_of_a_dataset_of_copilot_is_known(version: str | None) -> None:
    items = [{"prompt": "q", "expected_response": "a"}]
    report = validate_eval_set(items if version is None else {"schemaVersion": version, "items": items})
    (found,) = report.iter_rows()
    assert (report.format, report.counts, found["expected_response"]) == ("m365-copilot", {}, "a")


@pytest.mark.parametrize("evaluators", [2.0, "ToolCallSelection", ["ToolCallSelection"], True])
def test_evaluators_of_another_format_make_no_dataset_of_copilot_one_of_schema_2(evaluators: Any) -> None:
    converted = convert_eval_set([{"inputs": "q", "evaluators": evaluators}], "m365-copilot", format="pydantic-evals")
    assert converted.data["schemaVersion"] == "1.6.0"


def test_expected_tools_make_a_dataset_of_copilot_one_of_schema_2() -> None:
    rows = [{"request": "q", "reference_trajectory": [{"tool_name": "f"}]}, {"request": "r"}]
    two, one_six = convert_eval_set(rows, "m365-copilot"), convert_eval_set(rows[1:], "m365-copilot")
    call = {"prompt": "q", "evaluators": {"ToolCallSelection": {"calls": [{"tool": "f"}]}}}
    assert two.data == {"schemaVersion": "2.0.0", "items": [call, {"prompt": "r"}]}
    assert one_six.data == {"schemaVersion": "1.6.0", "items": [{"prompt": "r"}]}


@pytest.mark.parametrize(
    ("edited", "selection"),
    [
        ([{"tool_name": "g", "tool_input": {}}], {"threshold": 0.5, "calls": [{"tool": "g"}]}),
        (None, {"threshold": 0.5}),
    ],
)
def test_an_edited_trajectory_costs_no_other_evaluator(edited: Any, selection: dict[str, Any]) -> None:
    tools = {
        "ToolCallSelection": {"calls": [{"tool": "f"}], "threshold": 0.5},
        "ToolCallExecution": {"calls": [{"tool": "f"}]},
        "Similarity": {"threshold": 4},
        "Relevance": {},
    }
    (row,) = convert_eval_set([{"prompt": "q", "evaluators": tools}], "databricks").data.to_dict("records")
    assert convert_eval_set([row], "m365-copilot").data["items"] == [{"prompt": "q", "evaluators": tools}]
    conversion = convert_eval_set([{**row, "reference_trajectory": edited}], "m365-copilot")
    others = {"Similarity": {"threshold": 4}, "Relevance": {}}
    assert conversion.data["items"][0]["evaluators"] == {**others, "ToolCallSelection": selection}
    assert conversion.losses.empty


def test_evaluators_that_are_no_objects_are_lost_with_a_report() -> None:
    tools = {"ToolCallSelection": "strict", "ToolCallExecution": {"calls": [{"tool": "f"}]}}
    row = {"request": "q", "reference_trajectory": [{"tool_name": "g"}], "m365_copilot_evaluators": tools}
    conversion = convert_eval_set([row], "m365-copilot")
    assert conversion.losses["column"].tolist() == ["m365_copilot_evaluators"]


# ---------------------------------------------------------------------------------------------------------------------
# Gen AI evaluation service
def test_history_instruction_context_and_events_are_read_and_not_passed_through() -> None:
    plain, agent = read(str(SAMPLES / "vertex_genai.jsonl"))
    assert plain["retrieved_context"][0]["content"].startswith("Employees")
    assert [m["role"] for m in agent["request"]["messages"]] == ["system", "user", "assistant", "user"]
    assert agent["predicted_trajectory"] == [{"tool_name": "get_leave_balance", "tool_input": {"employee": "E1042"}}]
    assert agent["guidelines"] == {"tone": ["The response names a number of days."]}


def test_an_entry_of_a_history_that_is_no_content_is_an_issue() -> None:
    history = [{"role": "user", "parts": [{"text": "Hi"}]}, "Hello", None]
    row = {"prompt": "Bye", "response": "See you", "conversation_history": history}
    issues = validate_eval_set([row], format="vertex-genai").issues
    assert issues[["code", "message"]].values.tolist() == [
        ["AE208", "expected an object, got the text 'Hello'"],
        ["AE208", "expected an object, got null"],
    ]


def test_a_trajectory_of_contents_is_their_calls() -> None:
    contents = [{"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": CALL["tool_input"]}}]}]
    row = {"prompt": "q", "response": "r", "reference_trajectory": contents}
    assert one(row, format="vertex-genai")["reference_trajectory"] == [CALL]


@pytest.mark.parametrize(
    ("groups", "path", "message"),
    [
        ("x", "rubric_groups", "expected a list or an object, got the text 'x'"),
        ([1], "rubric_groups[0]", "expected text, got the number 1"),
    ],
)
def test_rubric_groups_that_are_no_object_are_an_issue(groups: Any, path: str, message: str) -> None:
    row = {"prompt": "q", "response": "r", "rubric_groups": groups}
    (issue,) = validate_eval_set([row], format="vertex-genai").iter_issues()
    assert (issue.path, issue.message) == (path, message)


def test_a_row_beside_results_of_vertex_is_a_row() -> None:
    datasets = [{"eval_cases": [{"prompt": "p", "responses": [{"response": {"parts": [{"text": "a"}]}}]}]}]
    result = {"eval_case_results": [{"response_candidate_results": []}], "evaluation_dataset": datasets}
    events = [
        {"author": name, "content": {"parts": [{"text": text}]}} for name, text in (("user", "t"), ("agent", "u"))
    ]
    others = [{"prompt": "q", "response": "z"}, {"agent_data": {"turns": [{"events": events}]}}]
    rows = read([result, *others], format="vertex-genai")
    assert [(asked(row), row["response"]) for row in rows] == [(["p"], "a"), (["q"], "z"), (["t"], "u")]


def test_cases_of_an_evaluation_dataset_are_not_those_of_adk() -> None:
    path = NEIGHBORS / "vertex_genai" / "eval_cases_by_shape.json"
    (found,) = read(str(path))
    assert (asked(found), found["response"], found["expected_response"]) == (["Hi", "Weather?"], "18", "18 degrees")
    assert found["predicted_trajectory"] == [{"tool_name": "book", "tool_input": {"id": 7}}]


def test_an_event_of_agent_data_that_is_no_object_is_an_issue() -> None:
    said = {"author": "user", "content": {"parts": [{"text": "Hi"}]}}
    turns = [{"events": [said, "x"]}, {"events": [[]]}, {"events": 3}]
    issues = validate_eval_set([{"agent_data": {"turns": turns}}], ignore="AE2").issues
    assert issues[["code", "row", "path"]].values.tolist() == [
        ["AE008", 0, "agent_data.turns[0].events[1]"],
        ["AE008", 1, "agent_data.turns[1].events[0]"],
        ["AE012", 2, "agent_data.turns[2].events"],
    ]


def test_a_turn_of_agent_data_is_a_row_with_the_turns_before_it() -> None:
    def turn(asked: str, answer: str) -> Row:
        content = {"role": "model", "parts": [{"text": answer}]}
        user = {"author": "user", "content": {"role": "user", "parts": [{"text": asked}]}}
        return {"events": [user, {"author": "agent", "content": content}]}

    data = {"turns": [turn("Hi", "Hello"), turn("Bye", "See you")]}
    first, second = read([{"agent_data": json.dumps(data)}])
    assert (asked(first), asked(second)) == (["Hi"], ["Hi", "Hello", "Bye"])
    assert (second["response"], first["session_id"]) == ("See you", second["session_id"])


# ---------------------------------------------------------------------------------------------------------------------
# datasets of examples
def test_a_document_of_deepeval_has_a_source_and_a_context() -> None:
    row = {"input": "q", "actual_output": "a", "retrieval_context": [{"source": "s", "context": "c"}]}
    assert one(row, format="deepeval")["retrieved_context"] == [{"doc_uri": "s", "content": "c"}]


def test_a_message_of_inspect_that_is_no_object_is_an_issue_beside_a_role_that_it_does_not_have() -> None:
    messages = [5, {"role": "developer", "content": "x"}, {"role": "user", "content": "Hi"}]
    issues = validate_eval_set([{"input": messages, "target": "t"}], format="inspect").iter_issues()
    assert sorted((issue.path, issue.message) for issue in issues if issue.severity != "info") == [
        ("input.messages[0]", "expected an object, got the number 5"),
        ("input[1].role", "expected the role `system`, got the text 'developer'"),
    ]


def test_an_expected_output_of_langfuse_is_ground_truth_by_its_keys() -> None:
    row = {"id": "i", "datasetId": "d", "status": "ACTIVE", "input": {"question": "q", "k": 3}}
    row["expectedOutput"] = {"answer": "a", "n": 1}
    found = one(row)
    assert (asked(found), found["expected_response"], found["custom_expected"]) == (["q"], "a", {"n": 1})
    assert found["inputs"] == {"question": "q", "k": 3}
    assert written([row], "langfuse") == [row]


def test_an_archived_item_is_reported() -> None:
    row = {"id": "i", "datasetId": "d", "input": "q", "expectedOutput": "a", "status": "ARCHIVED"}
    report = validate_eval_set([row])
    assert (report.ok, report.counts) == (True, {"AE116": 1})


@pytest.mark.parametrize("page", [{"data": [], "meta": {"totalItems": 1}}, {"data": {"examples": []}}])
def test_a_page_of_an_api_is_its_items(page: Row) -> None:
    item = {"id": "i", "input": {"question": "q"}, "datasetId": "d", "expectedOutput": "a"}
    if isinstance(page["data"], list):
        report = validate_eval_set({**page, "data": [item]})
        assert (report.format, report.row_count) == ("langfuse", 1)
    else:
        item = {"id": "i", "input": {"question": "q"}, "output": {"answer": "a"}, "metadata": {}}
        report = validate_eval_set({"data": {"examples": [item]}})
        assert (report.format, report.row_count) == ("phoenix", 1)


def test_what_is_no_item_of_a_page_is_reported_and_the_others_are_read() -> None:
    item = {"id": "i", "input": "Hi", "expectedOutput": "Hello", "datasetId": "d"}
    first, second = ({"data": [{**item, "id": "h"}], "meta": {}}, {"data": [item, {"id": "j"}, 5], "meta": {}})
    report = validate_eval_set([first, second, {"data": "items.json", "meta": {}}])
    assert (report.format, report.row_count) == ("langfuse", 5)
    assert [(i.row, i.code, i.path) for i in report.iter_issues() if i.severity.value == "error"] == [
        *((1, "AE008", "data[2]"), (3, "AE201", "input"), (4, "AE012", "data"))
    ]
    examples = [
        {"data": {"examples": [{"id": "e", "input": {"q": "Hi"}, "output": {}, "metadata": {}}] * n}} for n in (1, 2)
    ]
    report = validate_eval_set([*examples, {"data": {"examples": [{"id": "f"}]}}, {"data": {}}])
    assert (report.format, report.row_count) == ("phoenix", 5)


def test_a_document_with_a_part_nested_too_deep_is_reported_as_that() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    cases = [{"input": "q", "actual_output": "a"}, {"input": "p", "actual_output": "b", "tags": deep}]
    first, *others = validate_eval_set([{"testCases": cases}, {"testCases": cases[:1]}]).iter_issues()
    assert (first.code, first.path, others) == ("AE012", "testCases", [])
    assert "a list of 2, nested too deep to read" in first.message


@pytest.mark.parametrize("odd", [{"id": "j", "datasetId": "d"}, {"text": "no item"}, 5])
def test_a_page_is_known_by_any_of_its_items(odd: Any) -> None:
    item = {"id": "i", "input": "Hi", "expectedOutput": "Hello", "datasetId": "d", "status": "ACTIVE"}
    for items in ([item, odd], [odd, item], [json.dumps(item), odd]):
        report = validate_eval_set({"data": items, "meta": {"page": 1}})
        assert (report.format, report.row_count, report.invalid_count) == ("langfuse", 2, 1)


@pytest.mark.parametrize("as_text", [False, True])
def test_the_last_of_several_pages_has_to_be_the_last(*, as_text: bool) -> None:
    item = {"input": "Hi", "expectedOutput": "Hello", "datasetId": "d", "status": "ACTIVE"}
    metas = [{"page": number, "limit": 1, "totalItems": 3, "totalPages": 3} for number in (1, 2, 3)]
    pages = [{"data": [{**item, "id": str(m["page"])}], "meta": json.dumps(m) if as_text else m} for m in metas]
    assert "AE151" not in validate_eval_set(pages).counts
    report = validate_eval_set(pages[:2])
    found = [(i.row, i.path, i.message) for i in report.iter_issues() if i.code == "AE151"]
    assert found == [(1, "meta.totalPages", "expected all 3 pages, got none after page 2")]
    assert report.ok


@pytest.mark.parametrize("meta", [{}, 5, {"page": 1}, {"page": "1", "totalPages": 2}, {"page": 1, "totalPages": None}])
def test_what_does_not_count_pages_is_no_page_of_several(meta: Any) -> None:
    item = {"id": "i", "input": "Hi", "expectedOutput": "Hello", "datasetId": "d", "status": "ACTIVE"}
    assert "AE151" not in validate_eval_set({"data": [item], "meta": meta}).counts


def test_items_of_a_page_that_all_lack_an_input_are_reported_one_by_one() -> None:
    report = validate_eval_set({"data": [{"id": name, "datasetId": "d"} for name in "ab"], "meta": {}})
    assert (report.format, report.row_count, report.invalid_count) == ("langfuse", 2, 2)
    assert validate_eval_set([{"data": [{"id": "a"}], "meta": {}}]).format == "unknown"


def test_labels_of_braintrust_stay_a_list() -> None:
    row = {"id": "r", "_xact_id": "1", "input": "q", "expected": "a", "metadata": {"team": "hr"}, "tags": ["x", "y"]}
    assert one(row)["tags"] == {"team": "hr", "tags": '["x","y"]'}
    assert written([row], "braintrust") == [row]


def test_the_output_of_an_example_of_phoenix_is_the_reference() -> None:
    row = {"id": "e", "node_id": "n", "input": {"question": "q"}, "output": {"answer": "a"}, "metadata": {}}
    found = one(row)
    assert (found.get("response"), found["expected_response"]) == (None, "a")


def test_each_of_several_targets_of_inspect_stays() -> None:
    row = {"id": "s", "input": "q", "target": ["4", "four"]}
    assert (one(row)["expected_response"], one(row)["custom_expected"]) == ("4", {"target": ["4", "four"]})
    assert written([row], "inspect") == [row]


# ---------------------------------------------------------------------------------------------------------------------
# promptfoo
def test_assertions_of_promptfoo_are_ground_truth() -> None:
    row = {
        "vars": {"question": "q", "context": ["c"], "lang": "en"},
        "assert": [
            {"type": "equals", "value": "a"},
            {"type": "contains-all", "value": ["b", "c"]},
            {"type": "llm-rubric", "value": "polite", "metric": "tone"},
            {"type": "trajectory:tool-used", "value": "f"},
            {"type": "trajectory:tool-args-match", "value": {"name": "f", "args": {"x": 1}}},
            {"type": "javascript", "value": "output.length < 9"},
        ],
    }
    found = one(row)
    assert (asked(found), found["expected_facts"]) == (["q"], ["a", "b", "c"])
    assert (found["guidelines"], found["retrieved_context"][0]["content"]) == ({"tone": ["polite"]}, "c")
    assert found["reference_trajectory"] == [{"tool_name": "f", "tool_input": {"x": 1}}]
    assert written([row], "promptfoo") == [row]


@pytest.mark.parametrize("name", ["question", "query", "prompt", "topic"])
def test_the_variable_that_is_the_request(name: str) -> None:
    row = {"vars": {name: "q", "context": "c"}, "assert": []}
    assert asked(one(row)) == ["q"]
    assert written([row], "promptfoo") == [row]


def test_of_variables_without_a_known_name_the_user_may_name_the_request() -> None:
    row = {"vars": {"city": "Berlin", "wish": "A desk."}, "assert": [{"type": "equals", "value": "a"}]}
    assert asked(one(row)) == ['{"city":"Berlin","wish":"A desk."}']
    found = one(row, columns={"vars.wish": "request"})
    assert (asked(found), found["expected_response"]) == (["A desk."], "a")


def test_a_cell_of_a_csv_file_of_promptfoo_has_a_type_or_is_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    path.write_text(
        "question,__expected1,__expected2,__metadata:team,__description\n"
        'q,contains-all: a,"similar(0.8): Note: b",hr,first\n'
        "r,Note: none,,hr,\n",
        encoding="utf-8",
    )
    first, second = read(str(path))
    assert (first["expected_facts"], first["tags"]) == (["Note: b", "a"], {"team": "hr"})
    assert second["expected_response"] == "Note: none"


def test_the_default_of_a_configuration_is_part_of_each_test(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "defaultTest:\n  assert: [{type: llm-rubric, value: polite}]\n"
        "tests:\n  - vars: {question: q}\n    assert: [{type: equals, value: a}]\n",
        encoding="utf-8",
    )
    (found,) = read(str(path))
    assert (found["guidelines"], found["expected_response"]) == ({"guidelines": ["polite"]}, "a")


CHAT = [
    *({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}),
    {"role": "user", "content": "How many days?"},
]
SCENARIOS: list[dict[str, Any]] = [
    {
        "config": [{"vars": {"lang": "es", "hello": "Hola"}}, {"vars": {"lang": "fr", "hello": "Salut"}}],
        "tests": [
            {"vars": {"question": "Hello"}, "assert": [{"type": "equals", "value": "{{ hello }}, {{name}}"}]},
            {"vars": {"question": "Hi"}, "assert": [{"type": "contains-all", "value": ["{{hello}}", "!"]}]},
        ],
    }
]


@pytest.mark.parametrize("as_text", [False, True], ids=["opened", "as text"])
def test_each_scenario_of_a_configuration_runs_all_tests_on_all_its_data(as_text: bool) -> None:
    default = {"metadata": {"team": "hr"}, "assert": [{"type": "llm-rubric", "value": "polite"}]}
    scenarios = json.dumps(SCENARIOS) if as_text else SCENARIOS
    document = {"providers": ["x"], "defaultTest": default, "scenarios": scenarios}
    found = read([document])
    assert [(*asked(row), row["inputs"]["lang"]) for row in found] == [
        *(("Hello", "es"), ("Hi", "es"), ("Hello", "fr"), ("Hi", "fr"))
    ]
    assert [row.get("expected_response") for row in found] == ["Hola, {{name}}", None, "Salut, {{name}}", None]
    assert found[3]["expected_facts"] == ["Salut", "!"]
    assert {str(row["tags"]) for row in found} == {"{'team': 'hr'}"}
    assert {str(row["guidelines"]) for row in found} == {"{'guidelines': ['polite']}"}
    rows = convert_eval_set([document], "promptfoo").data.to_dict("records")
    assert rows[0]["assert"] == [*default["assert"], *SCENARIOS[0]["tests"][0]["assert"]]


def test_a_configuration_has_tests_and_scenarios() -> None:
    document = {"prompts": ["x"], "tests": [{"vars": {"question": "first"}, "assert": []}], "scenarios": SCENARIOS}
    assert len(read([document])) == 5
    no_data = {"prompts": ["x"], "scenarios": [{"tests": [{"vars": {"question": "q"}}]}]}
    assert [asked(row) for row in read([no_data])] == [["q"]]


@pytest.mark.parametrize("empty", ["config", "tests"])
def test_a_scenario_with_an_empty_list_runs_no_test_and_is_reported(empty: str) -> None:
    several = [{**SCENARIOS[0], empty: []}, *SCENARIOS, {"config": [], "tests": []}]
    report = validate_eval_set([{"prompts": ["x"], "scenarios": several}])
    assert (report.row_count, report.invalid_count) == (6, 2)
    assert [(i.row, i.code, i.path) for i in report.iter_issues()] == [
        *((0, "AE012", f"scenarios[0].{empty}"), (5, "AE012", "scenarios[2].config"))
    ]
    cut = {"config": ["data.yaml"], "tests": []}
    (issue,) = validate_eval_set([{"prompts": ["x"], "scenarios": [cut]}]).iter_issues()
    assert issue.path == "scenarios[0].config[0]"


def test_several_texts_of_a_context_stay_one_test() -> None:
    """A variable that is a list becomes a test for each of its entries."""
    texts = [{"doc_uri": name, "content": name} for name in "ab"]
    several, single = ([{"request": "q", "retrieved_context": texts[:n]}] for n in (2, 1))
    (made,) = convert_eval_set(several, "promptfoo").data.to_dict("records")
    assert (made["vars"]["context"], made["options"]) == (["a", "b"], {"disableVarExpansion": True})
    assert "options" not in convert_eval_set(single, "promptfoo").data


# ---------------------------------------------------------------------------------------------------------------------
# files whose cells are text
@pytest.mark.parametrize(
    ("target", "row", "column"),
    [
        ("inspect", {"request": {"messages": CHAT}, "expected_response": "12"}, "input"),
        ("inspect", {"request": "q", "custom_expected": {"target": ["a", "b"]}, "expected_response": "a"}, "target"),
        ("promptfoo", {"request": "q"}, "vars"),
    ],
)
def test_a_value_that_a_platform_reads_as_text_is_a_loss_of_a_csv_file(
    target: str, row: dict[str, Any], column: str, tmp_path: Path
) -> None:
    given = tmp_path / "given.json"
    given.write_text(json.dumps([row]), encoding="utf-8")
    assert convert_file(str(given), str(tmp_path / "made.jsonl"), target).lossless
    losses = convert_file(str(given), str(tmp_path / "made.csv"), target).losses
    assert {"code": "AE812", "column": column} in losses[["code", "column"]].to_dict("records")
    made = convert_eval_set([row], target)
    with pytest.warns(ValuesAsTextWarning, match=rf"\(1 of `{column}`"):
        made.write(tmp_path / "written.csv")
    with pytest.warns(ValuesAsTextWarning):
        write_eval_set(made.data, tmp_path / "again.csv")
    made.write(tmp_path / "written.jsonl")


# ---------------------------------------------------------------------------------------------------------------------
# damaged rows
@pytest.mark.parametrize(
    ("data", "target"),
    [
        ([{"response": MESSAGES, "ground_truth": [{"name": "a"}]}], "azure"),
        ([{"_xact_id": "1", "input": "q", "expected": "a", "metadata": "text", "tags": ["x"]}], "braintrust"),
        ({"scenarios": [{"scenario_id": [[]], "input": "q"}]}, "agentcore"),
        ([{"agent_data": {"agents": "[1", "turns": [{"events": [{"author": "user", "content": 3}]}]}}], "vertex-genai"),
        ([{"messages": {"parts": "x"}}], "openai"),
        ([{"vars": 7, "assert": [7, {"type": "equals"}, {"type": "trajectory:tool-used", "value": {}}]}], "promptfoo"),
        ([{"conversationTurns": [7, {"prompt": 3, "output": {"retrievedPassages": [1]}}]}], "bedrock-rag"),
        ({"cases": [7, {"input": {"a": 1}, "expected_trajectory": {"toolNames": 3}}]}, "strands"),
    ],
)
def test_damaged_rows_are_reported_and_never_raise(data: Any, target: str) -> None:
    report = validate_eval_set(data)
    assert (report.format, report.row_count > 0) == (target, True)
    made = convert_eval_set(data, target)
    assert made.converted + (made.losses["code"] == "AE814").sum() == made.given


NOT_A_LIST = [
    ({"scenarios": 3}, "agentcore", "scenarios"),
    ({"scenarios": [{"scenario_id": "a", "turns": 4}]}, "agentcore", "scenarios[0].turns"),
    ({"cases": "cases.json"}, "strands", "cases"),
    ({"conversationTurns": 3}, "bedrock-rag", "conversationTurns"),
    ({"testCases": {"input": "q"}}, "deepeval", "testCases"),
    ({"conversation": {"messages": 3}}, "azure", "conversation.messages"),
    ({"prompts": ["{{question}}"], "tests": "file://tests.csv"}, "promptfoo", "tests"),
    ({"prompts": ["{{question}}"], "scenarios": "file://scenarios.yaml"}, "promptfoo", "scenarios"),
    ({"providers": ["x"], "scenarios": [{"config": [], "tests": "tests.csv"}]}, "promptfoo", "scenarios[0].tests"),
]
NOT_AN_OBJECT = [
    ({"scenarios": [3]}, "agentcore", "scenarios[0]"),
    ({"cases": [{"input": "q", "expected_assertion": "a"}, "b"]}, "strands", "cases[1]"),
    ({"conversationTurns": ["q"]}, "bedrock-rag", "conversationTurns[0]"),
    ({"test_cases": [None]}, "deepeval", "test_cases[0]"),
    ({"prompts": ["{{question}}"], "tests": ["file://tests.csv"]}, "promptfoo", "tests[0]"),
    ({"prompts": ["{{question}}"], "scenarios": ["file://scenarios.yaml"]}, "promptfoo", "scenarios[0]"),
    ({"prompts": ["{{question}}"], "scenarios": [{"config": ["a.yaml"]}]}, "promptfoo", "scenarios[0].config[0]"),
    ({"eval_set_id": "a", "eval_cases": [3]}, "adk", "eval_cases[0]"),
]


@pytest.mark.parametrize(
    ("code", "document", "format", "path"),
    [*(("AE012", *entry) for entry in NOT_A_LIST), *(("AE008", *entry) for entry in NOT_AN_OBJECT)],
)
def test_a_document_without_its_list_of_rows_names_the_place(
    code: str, document: Any, format: str, path: str, tmp_path: Path
) -> None:
    file = tmp_path / "document.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    report = validate_eval_set(str(file))
    (issue,) = report.issues[report.issues["severity"] == "error"].to_dict("records")
    code = "AE162" if format == "adk" else code
    assert (report.format, issue["code"], issue["path"]) == (format, code, path)
    assert re.match("expected an? .*, got .", issue["message"])
    assert issue["hint"]
    assert report.invalid_count == 1


@pytest.mark.parametrize(
    ("document", "row", "format"),
    [
        ({"cases": [{"input": "q", "expected_output": "a"}]}, {"input": "Hi", "expected_output": "b"}, "strands"),
        ({"testCases": [{"input": "q", "actualOutput": "a"}]}, {"input": "Hi", "actualOutput": "b"}, "deepeval"),
        ({"prompts": ["{{q}}"], "tests": [{"vars": {"q": "x"}}]}, {"vars": {"q": "Hi"}}, "promptfoo"),
        ({"eval_cases": [{"prompt": "q", "responses": []}]}, {"prompt": "Hi"}, "vertex-genai"),
        ({"data": [{"input": "q", "datasetId": "d"}], "meta": {}}, {"input": "Hi", "datasetId": "d"}, "langfuse"),
    ],
)
def test_a_row_beside_documents_is_a_row(document: Row, row: Row, format: str) -> None:
    empty = {name: [] for name, value in document.items() if isinstance(value, list)}
    report = validate_eval_set([document, row, empty, dict.fromkeys(document)])
    assert (report.format, report.row_count) == (format, 3)
    assert not any(issue.row == 1 for issue in report.iter_issues() if issue.severity == "error")
    assert "Hi" in json.dumps(list(report.iter_rows())[1])
    assert "AE201" in {issue.code for issue in report.iter_issues() if issue.row == 2}


@pytest.mark.parametrize("keys", [("eval_cases", "evalCases"), ("evalCases", "eval_cases")])
def test_the_cases_under_both_spellings_of_the_key_are_read(keys: tuple[str, str]) -> None:
    """google-adk reads those under `eval_cases`: its issues are on them."""
    parts = {"parts": [{"text": "Hi"}]}
    cases = [{"eval_id": name, "conversation": [{"user_content": parts}]} for name in "ab"]
    cases[1]["conversation"][0]["comment"] = "checked"
    evalset = {"eval_cases": cases, "evalCases": [{**cases[0], "eval_id": "c"}]}
    report = validate_eval_set({"eval_set_id": "s", **{key: evalset[key] for key in keys}})
    assert [row["request_id"] for row in report.iter_rows()] == ["a", "b", "c"]
    assert [(i.row, i.path) for i in report.iter_issues()] == [(1, "eval_cases[1].conversation[0].comment")]
    for first in ([], [{"prompt": "a", "responses": []}]):
        dataset = dict(zip(keys, (first, [{"prompt": "b", "responses": []}]), strict=True))
        report = validate_eval_set(dataset)
        assert (report.format, report.row_count) == ("vertex-genai", 1 + len(first))


def test_what_is_no_case_of_a_dataset_is_reported_and_the_others_are_read() -> None:
    case = {"prompt": "a", "responses": []}
    report = validate_eval_set([{"eval_cases": [case, 4, json.dumps(case)]}, {"evalCases": "cases.json"}])
    assert (report.format, report.row_count, report.invalid_count) == ("vertex-genai", 4, 2)
    assert [(i.code, i.path) for i in report.iter_issues()] == [("AE008", "eval_cases[1]"), ("AE012", "evalCases")]


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_document_that_is_not_utf8_stays_in_its_place(bad: int) -> None:
    cells = [b'[{"prompt": {"content": [{"text": "q"}]}}]'] * 3
    cells[bad] = b'[{"prompt": "\xff"}]'
    report = validate_eval_set(pa.table({"conversationTurns": pa.array(cells, pa.binary()).view(pa.string())}))
    assert report.valid_mask.tolist() == [i != bad for i in range(3)]
    (issue,) = (i for i in report.iter_issues() if i.severity == "error")
    assert (issue.row, issue.code, issue.path) == (bad, "AE005", "conversationTurns")
    gemini = [b'{"contents": "\xff"}', b'{"contents": [{"parts": [{"text": "Hi"}]}]}']
    found = validate_eval_set(pa.table({"request": pa.array(gemini, pa.binary()).view(pa.string())}))
    assert (found.format, found.valid_mask.tolist()) == ("vertex-genai", [False, True])


@pytest.mark.parametrize("name", ["scenarios", "cases", "tests", "eval_cases", "conversationTurns", "messages"])
def test_a_column_of_the_user_is_no_list_of_rows_where_rows_have_requests(name: str) -> None:
    for row in ({"request": "q", "response": "a"}, {"inputs": {"question": "q"}, "outputs": "a"}):
        report = validate_eval_set([{**row, name: [{"input": "x"}]}, {**row, name: None}])
        assert (report.ok, report.row_count) == (True, 2)


def test_a_list_of_tests_in_another_file_is_named() -> None:
    (issue,) = validate_eval_set([{"prompts": ["x"], "tests": "file://tests.csv"}]).issues.to_dict("records")
    assert issue["message"] == "expected a list of objects, got the text 'file://tests.csv'"
    assert issue["hint"] == "Give the file that it names."


# ---------------------------------------------------------------------------------------------------------------------
# rows of no format of their own
def test_a_row_of_weave_is_read_by_a_mapping_only() -> None:
    """Weave has no column of its own: the names are those of the user's function."""
    row = {"id": "0", "sentence": "Capital of France?", "correct": "Paris"}
    assert validate_eval_set([row]).format == "unknown"
    found = one(row, columns={"sentence": "request", "correct": "expected_response"})
    assert (asked(found), found["expected_response"]) == (["Capital of France?"], "Paris")


# ---------------------------------------------------------------------------------------------------------------------
# Pydantic Evals
_CASES_AS_YAML = """name: help
cases:
- name: leave
  inputs: How many days?
  metadata: {topic: leave}
  expected_output: 12 days.
  evaluators: [EqualsExpected]
- name: null
  inputs: {question: Who?, k: 3}
  expected_output: {answer: Ann}
evaluators:
- IsInstance: str
"""


def test_cases_of_pydantic_evals_are_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "help.yaml"
    path.write_text(_CASES_AS_YAML)
    report = validate_eval_set(path)
    assert (report.format, report.ok) == ("pydantic-evals", True)
    first, second = report.iter_rows()
    assert (first["request_id"], first["expected_response"], first["tags"]) == ("leave", "12 days.", {"topic": "leave"})
    assert second["request_id"] is None  # the name of a dataset is not that of a case
    assert (asked(second), second["inputs"], second["expected_response"]) == (
        ["Who?"],
        {"question": "Who?", "k": 3},
        "Ann",
    )


# ---------------------------------------------------------------------------------------------------------------------
# Agent Skills
def test_an_eval_of_a_skill_is_read() -> None:
    first, second, _ = read(str(SAMPLES / "agent_skills.json"))
    assert (first["request_id"], asked(first)) == ("1", ["How many days of leave do I have left? My number is E1042."])
    assert first["expected_response"] == "The remaining days of leave of E1042: 12 days."
    assert first["guidelines"] == {
        "expectations": ["The answer states 12 days", "The answer names the source of the number"]
    }
    assert (first["skill_name"], first["files"]) == ("help-desk", ["evals/files/leave_2026.csv"])
    assert "guidelines" not in second


def test_a_file_of_evals_needs_no_name_of_a_skill_and_may_call_the_expectations_assertions() -> None:
    given = {"evals": [{"id": 1, "prompt": "Hi", "assertions": ["It greets"]}, {"prompt": "Bye"}]}
    report = validate_eval_set(given)  # type: ignore[arg-type]
    assert (report.format, report.ok) == ("agent-skills", True)
    assert [row["guidelines"] for row in report.iter_rows()] == [{"expectations": ["It greets"]}, None]
    made = written(given, "agent-skills")
    assert made == {
        "skill_name": "skill",
        "evals": [{"id": 1, "prompt": "Hi", "assertions": ["It greets"]}, {"id": 2, "prompt": "Bye"}],
    }


def test_rows_of_other_formats_become_evals_with_numbers_of_their_own() -> None:
    rows = [
        {"request": "Hi", "request_id": "greeting", "guidelines": {"tone": ["Be brief"], "form": ["No list"]}},
        {"request": "Bye", "request_id": "1"},
        {"request": "And?"},
    ]
    made = convert_eval_set(rows, "agent-skills")
    assert [(case["id"], case["prompt"]) for case in made.data["evals"]] == [
        ("greeting", "Hi"),
        (1, "Bye"),
        (2, "And?"),
    ]
    assert made.data["evals"][0]["expectations"] == ["Be brief", "No list"]
    assert list(made.losses["column"]) == ["guidelines"]  # the names of their groups


def test_a_column_of_results_that_is_called_evals_is_no_file_of_evals() -> None:
    report = validate_eval_set([{"request": "Hi", "evals": [{"name": "correctness", "score": 1}]}])
    assert report.format == "databricks"
    assert validate_eval_set([{"input": "Hi", "target": "Ho", "evals": [{"score": 1}]}]).format == "inspect"
