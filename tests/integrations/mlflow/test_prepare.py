"""A prepared frame holds nothing that kills an evaluator; mlflow itself is the judge of the traces."""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    InvalidEvalSetError,
    convert_eval_set,
    prepare_for_evaluate,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.integrations.mlflow.frames import Evaluator
from agent_eval_schema.integrations.mlflow.prepare import InvalidRowsWarning, ReducedInputsWarning, prepare
from agent_eval_schema.rules import RULES
from agent_eval_schema.rules.requests import INCOMPLETE_ROW
from agent_eval_schema.schema import Document
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from agent_eval_schema.traces.encode import MADE, made_of, rewritten
from agent_eval_schema.traces.mlflow_readable import decode_for_mlflow
from agent_eval_schema.traces.spans import Trace
from agent_eval_schema.validation.ces_turns import CES_FORMATS
from agent_eval_schema.validation.cross_field import OF_MLFLOW
from agent_eval_schema.validation.report import summary_of
from tests.conftest import DATA, SAMPLES, Row

TRACES = sorted((DATA / "traces").glob("*.json"))
ROW: Row = {"request": "What is RAG?", "response": "Retrieval first."}


def only(row: Row, **options: Any) -> Row:
    (line,) = prepare_for_evaluate([row], **options).to_dict("records")
    return line


def parts(value: Any) -> Iterator[Any]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(item)


def test_the_columns_of_mlflow_genai(every_input: Callable[[list[Row]], Any]) -> None:
    row = {
        **ROW,
        "request_id": "r1",
        "expected_facts": ["It retrieves"],
        "guidelines": {"tone": ["Be kind"], "length": ["Be brief"]},
        "expected_retrieved_context": [{"doc_uri": "a", "content": None}],
        "reference_trajectory": [{"tool_name": "search", "tool_input": {"q": 1}}],
        "custom_expected": {"level": 3},
        "tags": {"team": "a"},
    }
    (line,) = prepare_for_evaluate(every_input([row])).to_dict("records")
    assert line == {
        "inputs": {"messages": [{"role": "user", "content": "What is RAG?"}]},
        "outputs": "Retrieval first.",
        "expectations": {
            "level": 3,
            "expected_facts": ["It retrieves"],
            "guidelines": ["Be kind", "Be brief"],
            "expected_retrieved_context": [{"doc_uri": "a"}],
            "expected_tool_calls": [{"name": "search", "arguments": {"q": 1}}],
        },
        "tags": {"team": "a"},
        "request_id": "r1",
    }


CHAT = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
ASKED = {"role": "user", "content": [{"type": "text", "text": "c"}]}


@pytest.mark.filterwarnings("ignore::agent_eval_schema.integrations.mlflow.prepare.ReducedInputsWarning")
@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("messages", {"messages": [*CHAT["messages"], ASKED]}),
        ("query", {"query": "c", "history": CHAT["messages"]}),
        ("question", {"question": "c"}),
    ],
)
def test_inputs_as_the_predict_function_takes_them(inputs: Any, expected: Row) -> None:
    row = {**ROW, "request": {"messages": [*CHAT["messages"], ASKED]}}
    assert only(row, inputs=inputs)["inputs"] == expected


CHATS = [
    ROW,
    {"request": {"messages": [*CHAT["messages"], ASKED]}, "response": "x"},
    {"request": {"query": "c", "history": CHAT["messages"]}, "response": "x"},
    {"request": {"messages": [{"role": "system", "content": "Be kind"}, CHAT["messages"][0]]}, "response": "x"},
    {"request": {"messages": [ASKED]}, "response": "x"},
]
ARGUMENTS: list[Row] = [
    {"inputs": {"question": "a", "k": 3}, "outputs": "x"},
    {"inputs": {"messages": CHAT["messages"][:1], "temperature": 0}, "outputs": "x"},
    {"inputs": {"question": "a"}, "outputs": "x"},
    {"inputs": {"topic": "RAG", "tone": "brief"}, "outputs": "x"},
]


@pytest.mark.parametrize(
    ("options", "form", "instead"),
    [
        ({"inputs": "question"}, 'inputs="question"', 'inputs="messages"'),
        ({"evaluator": "vertex"}, 'evaluator="vertex"', 'evaluator="mlflow.genai"'),
        ({"evaluator": "mlflow.evaluate"}, 'evaluator="mlflow.evaluate"', 'evaluator="mlflow.genai"'),
    ],
)
def test_a_conversation_that_is_dropped_is_reported_with_its_rows(
    options: Row, form: str, instead: str, every_input: Callable[[list[Row]], Any]
) -> None:
    told = f"{form} keeps only the last message of 3 of 5 rows (at the positions 1, 2, 3): {instead} keeps all of them"
    with pytest.warns(ReducedInputsWarning, match=f"^{re.escape(told)}$"):
        frame = prepare_for_evaluate(every_input(CHATS), **options)
    assert len(frame) == 5


@pytest.mark.parametrize("form", ["messages", "query", "question"])
def test_other_arguments_that_are_dropped_are_reported_with_their_rows(form: Any) -> None:
    told = f'inputs="{form}" omits other arguments (k, temperature) of 2 of 4 rows (at the positions 0, 1)'
    with pytest.warns(ReducedInputsWarning, match=f'^{re.escape(told)}: inputs="auto" keeps them$'):
        prepare_for_evaluate(ARGUMENTS, inputs=form)


@pytest.mark.parametrize("inputs", ["auto", "messages", "query"])
def test_forms_that_have_a_place_for_conversations_say_nothing(inputs: Any) -> None:
    assert prepare(CHATS, inputs=inputs).reduced == ""
    assert prepare(ARGUMENTS).reduced == ""


def test_inputs_of_mlflow_stay_as_they_are() -> None:
    given = {"question": "Hi", "user": {"id": 7}}
    assert only({"inputs": given, "outputs": "x"})["inputs"] == given
    assert only({"inputs": "Hi", "outputs": "x"})["inputs"] == {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize("target", ["mlflow.genai", "databricks-agent"])
def test_requests_and_responses_are_those_of_the_normalized_rows(
    target: Any, every_input: Callable[[list[Row]], Any]
) -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    answered = {"role": "tool", "tool_call_id": "1", "content": "2"}
    question = CHAT["messages"][0]
    requests = ["a", {"messages": [question]}, {"query": "c", "history": CHAT["messages"]}]
    for others in ([], [{"messages": [question, asked, answered, question]}], [{"messages": [ASKED]}]):
        data = every_input([{"request": r, "response": "b\u00e9"} for r in [*requests, *others]])
        names = {"mlflow.genai": ("inputs", "outputs")}.get(target, ("request", "response"))
        frame, rows = prepare_for_evaluate(data, evaluator=target), validate_eval_set(data).rows
        assert [frame[n].tolist() for n in names] == [rows["request"].tolist(), rows["response"].tolist()]
        assert {type(r["messages"]) for r in frame[names[0]]} == {list}


def test_rows_with_equal_requests_have_objects_of_their_own() -> None:
    frame = prepare_for_evaluate([ROW, ROW])
    frame["inputs"][0]["messages"].append("changed")
    assert frame["inputs"][1] == only(ROW)["inputs"]


def test_a_custom_expectation_of_nothing_is_no_key() -> None:
    """mlflow ends the evaluation of all rows for one."""
    rows = [{**ROW, "custom_expected": {"a": None, "b": 1, "c": float("nan")}}, {**ROW, "custom_expected": {"a": None}}]
    assert prepare_for_evaluate(rows)["expectations"].tolist() == [{"b": 1}, {}]


def test_spans_that_stand_before_their_parent_are_plain() -> None:
    trace = json.loads((DATA / "traces" / "mlflow_v3_6_0.json").read_text(encoding="utf-8"))
    trace["data"]["spans"].reverse()
    text = json.dumps(trace)
    assert prepare_for_evaluate([{"trace": text}])["trace"].tolist() == [text]


def test_an_absent_expectation_is_no_key_and_no_column() -> None:
    frame = prepare_for_evaluate([{**ROW, "expected_facts": ["a"]}, {**ROW, "expected_facts": None}, ROW])
    assert frame["expectations"].tolist() == [{"expected_facts": ["a"]}, {}, {}]
    assert list(prepare_for_evaluate([ROW]).columns) == ["inputs", "outputs"]


def test_every_row_has_a_trace_or_none_has() -> None:
    traced = {"trace": TRACES[-1].read_text(encoding="utf-8")}
    context = {**ROW, "retrieved_context": [{"doc_uri": "u", "content": "c"}]}
    frame = prepare_for_evaluate([ROW, traced, context])
    found = [derive(t) for text in frame["trace"] if isinstance(t := decode_trace(text), Trace)]
    assert len(found) == 3
    assert frame["trace"][1] == traced["trace"]
    assert found[0].response == "Retrieval first."
    assert found[2].retrieved_context == [Document("u", "c")]
    assert found[2].has_retriever_span


@pytest.mark.parametrize("dtype", ["object", "string"])
def test_traces_that_mlflow_reads_are_handed_on_as_they_stand(dtype: str) -> None:
    text = (DATA / "traces" / "mlflow_v3_6_0.json").read_text(encoding="utf-8")
    texts = pd.Series([text, "{", f"{text} ", text], index=[5, 5, 6, 7], dtype=dtype)
    with pytest.warns(InvalidRowsWarning, match="1 of 4"):
        frame = prepare_for_evaluate(pd.DataFrame({"trace": texts, "request_id": list("abcd")}))
    assert frame["trace"].tolist() == [text, f"{text} ", text]
    assert frame.index.tolist() == [5, 6, 7]
    assert frame["trace"].dtype == texts.dtype


@pytest.mark.parametrize("failing", [False, True])
def test_the_report_on_prepared_rows_is_that_of_validating_them(failing: bool) -> None:
    traces = [json.loads(path.read_text(encoding="utf-8")) for path in TRACES]
    for trace in traces if failing else ():
        for span in trace.get("data", {}).get("spans", ())[-1:]:
            span["status"] = {"code": "STATUS_CODE_ERROR", "message": "boom"}
    rows = [{"trace": json.dumps(trace), "request_id": str(i)} for i, trace in enumerate(traces)]
    prepared, validated = prepare(rows).report, validate_eval_set(rows)
    pd.testing.assert_frame_equal(prepared.issues, validated.issues)
    pd.testing.assert_frame_equal(prepared.metric_support, validated.metric_support)
    assert ("AE610" in prepared.counts) >= failing


def test_nothing_that_the_app_will_make_is_handed_on() -> None:
    row = {**ROW, "trace": TRACES[0].read_text(encoding="utf-8"), "expected_response": "x"}
    assert set(only(row, outputs="generated")) == {"inputs", "expectations", "request_id"}
    assert "response" not in only(row, outputs="generated", evaluator="databricks-agent")


def test_the_columns_of_databricks_agent() -> None:
    row = {**ROW, "request_id": "r", "expected_facts": ["a"], "tags": {"a": "b"}, "latency_seconds": 2.0}
    assert only(row, evaluator="databricks-agent") == {
        "request_id": "r",
        "request": {"messages": [{"role": "user", "content": "What is RAG?"}]},
        "response": "Retrieval first.",
        "expected_facts": ["a"],
    }


def test_the_columns_of_vertex() -> None:
    calls = [{"tool_name": "f", "tool_input": {"a": 1}}]
    row = {**ROW, "expected_response": "y", "predicted_trajectory": calls, "reference_trajectory": calls}
    assert only(row, evaluator="vertex") == {
        "prompt": "What is RAG?",
        "response": "Retrieval first.",
        "reference": "y",
        "reference_trajectory": calls,
        "predicted_trajectory": calls,
    }


def test_invalid_rows_are_excluded_and_said() -> None:
    data = pd.DataFrame({"request": ["a", " ", "c"], "response": ["x", "y", "z"]}, index=[7, 8, 9])
    with pytest.warns(InvalidRowsWarning, match="1 of 3 rows are invalid and excluded, the first at position 1"):
        frame = prepare_for_evaluate(data)
    assert frame.index.tolist() == [7, 9]
    assert frame["outputs"].tolist() == ["x", "z"]
    prepared = prepare(data)
    assert (prepared.positions, prepared.report.counts) == ([0, 2], {"AE202": 1})
    with pytest.raises(InvalidEvalSetError):
        prepare_for_evaluate(data, on_invalid="raise")


@pytest.mark.parametrize("rows", [1, 2])
def test_raise_has_the_report_if_no_row_is_valid_too(rows: int) -> None:
    data = [{"request": " ", "response": "a"}] * rows
    with pytest.raises(InvalidEvalSetError) as raised:
        prepare_for_evaluate(data, on_invalid="raise")
    expected = validate_eval_set(data)
    assert (raised.value.report.counts, raised.value.report.to_text()) == (expected.counts, expected.to_text())
    assert str(raised.value) == expected.to_text()


KEPT = [
    r.bad
    for r in RULES.values()
    if r.bad
    and r.code[2] != "7"
    and r is not INCOMPLETE_ROW
    and validate_eval_set(list(r.bad)).format not in CES_FORMATS
]


@pytest.mark.filterwarnings("ignore::agent_eval_schema.integrations.mlflow.prepare.ReducedInputsWarning")
@pytest.mark.filterwarnings("ignore::agent_eval_schema.integrations.mlflow.prepare.InvalidRowsWarning")
@pytest.mark.parametrize("evaluator", get_args(Evaluator))
def test_with_keep_frames_line_up(evaluator: Any) -> None:
    """For the examples of all rules, which are invalid in every way that there is."""
    for bad in KEPT:
        kept = prepare_for_evaluate(list(bad), evaluator=evaluator, on_invalid="keep")
        valid = validate_eval_set(list(bad)).valid_mask  # a conversation has a row per answer
        assert kept.index.tolist() == list(range(len(valid)))
        if valid.any():
            dropped = prepare_for_evaluate(list(bad), evaluator=evaluator)
            assert dropped.index.tolist() == np.flatnonzero(valid).tolist()


def test_kept_rows_hold_what_could_be_read() -> None:
    data = pd.DataFrame({"request": ["a", {"messages": 3}, "c"], "response": ["x", "y", "z"]}, index=[7, 8, 9])
    with pytest.warns(InvalidRowsWarning, match="1 of 3 rows are invalid and kept as far as they could be read"):
        frame = prepare_for_evaluate(data, on_invalid="keep")
    assert frame.index.tolist() == [7, 8, 9]
    assert frame["inputs"].tolist()[1] is None
    assert frame["outputs"].tolist() == ["x", "y", "z"]


def test_the_report_is_that_of_the_check() -> None:
    """Figures of traces too, which a frame for mlflow does without."""
    data = [{"trace": path.read_text(encoding="utf-8")} for path in TRACES] + [{"request": " ", "response": "x"}]
    expected = validate_eval_set(data)
    shown = {name: vars(d) for name, d in summary_of(expected).distributions.items()}
    traced = {"latency_seconds", "total_token_count", "tool_calls"}
    assert set(shown) == {*traced, "request_length", "response_length"}
    with pytest.raises(InvalidEvalSetError) as raised:
        prepare_for_evaluate(data, on_invalid="raise")
    for report in (prepare(data).report, raised.value.report):
        assert report.counts == expected.counts
        assert {n: vars(d) for n, d in summary_of(report).distributions.items()} == shown
        assert report.metric_support.equals(expected.metric_support)
    with pytest.warns(InvalidRowsWarning):
        assert prepare_for_evaluate(data).index.tolist() == np.flatnonzero(expected.valid_mask).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluator": "mlflow.gen"}, r"^evaluator: expected one of mlflow.genai, .*; did you mean 'mlflow.genai'\?$"),
        ({"inputs": "x"}, "inputs: expected one of auto, messages, query, question; got 'x'"),
        ({"on_invalid": "excluded"}, "on_invalid: expected one of raise, drop, keep; got 'excluded'"),
    ],
)
def test_a_wrong_option_is_told(options: Row, message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        prepare_for_evaluate([ROW], **options)


def test_no_valid_row_is_told() -> None:
    told = r"no row to evaluate: 1 of 1 are invalid \(most often AE202 blank-request\): see validate_eval_set\(data\)"
    with pytest.raises(EvalSetError, match=told):
        prepare_for_evaluate([{"request": " ", "response": "x"}])


def test_a_row_that_is_invalid_for_an_option_is_told_with_it() -> None:
    told = (
        r'1 of 2 rows are invalid .* position 1: see validate_eval_set\(data, format="databricks", outputs="provided"\)'
    )
    with pytest.warns(InvalidRowsWarning, match=told):
        prepare_for_evaluate([ROW, {"request": "a"}], format="databricks", outputs="provided")


@pytest.mark.filterwarnings("ignore::agent_eval_schema.integrations.mlflow.prepare.ReducedInputsWarning")
@pytest.mark.parametrize("target", ["mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex"])
@pytest.mark.parametrize("name", ["golden.csv", "golden_broken.csv", "evaluation.json"])
def test_conversations_of_ces_have_to_be_converted_first(name: str, target: Any) -> None:
    told = r'expected evaluation rows, got .* of Google CES: .*: .* convert_eval_set\(data, "databricks"\).data'
    with pytest.raises(EvalSetError, match=told):
        prepare_for_evaluate(SAMPLES / name, evaluator=target)
    turns = convert_eval_set(SAMPLES / name, "databricks").data
    if len(turns):
        assert len(prepare_for_evaluate(turns, evaluator=target)) == len(turns)


@pytest.mark.parametrize(
    "name", ["good.jsonl", "good.csv", "search_traces.jsonl", "traces_mlflow2.jsonl", "broken.jsonl"]
)
@pytest.mark.filterwarnings("ignore::agent_eval_schema.integrations.mlflow.prepare.InvalidRowsWarning")
def test_samples_are_plain_python_that_mlflow_reads(name: str) -> None:
    from mlflow.entities import Trace as MlflowTrace

    frame = prepare_for_evaluate(SAMPLES / name)
    assert len(frame) == validate_eval_set(SAMPLES / name).valid_count
    for value in (v for column in frame.columns for cell in frame[column] for v in parts(cell)):
        assert type(value) in (str, int, float, bool, dict, list, type(None))
        assert not (isinstance(value, float) and math.isnan(value))
    for text in frame.get("trace", ()):
        MlflowTrace.from_json(text)
    assert all(isinstance(i, dict) for i in frame["inputs"])
    json.dumps(frame.to_dict("records"), allow_nan=False)


def test_numpy_in_cells_becomes_plain() -> None:
    cell = np.array([{"doc_uri": "u", "content": "c"}], object)
    frame = pd.DataFrame({"request": ["a"], "response": ["b"], "expected_retrieved_context": [cell]})
    assert prepare_for_evaluate(frame)["expectations"][0] == {
        "expected_retrieved_context": [{"doc_uri": "u", "content": "c"}]
    }
    assert frame["expected_retrieved_context"][0] is cell


def test_mixed_outputs_go_to_a_file_and_come_back_as_they_are(tmp_path: Path) -> None:
    completion = {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}
    outputs = ["text", completion, {"answer": 3}, ["x", "y"]]
    rows = [{"inputs": {"question": str(i)}, "outputs": given} for i, given in enumerate(outputs)]
    write_eval_set(prepare_for_evaluate(pd.DataFrame(rows)), tmp_path / "rows.jsonl")
    assert prepare_for_evaluate(tmp_path / "rows.jsonl")["outputs"].tolist() == outputs


# traces that mlflow would not read


@pytest.mark.parametrize("path", TRACES, ids=lambda p: p.stem)
def test_a_rewritten_trace_says_the_same_and_mlflow_reads_it(path: Path) -> None:
    from mlflow.entities import Trace as MlflowTrace

    text = path.read_text(encoding="utf-8")
    again = rewritten(text)
    assert again is not None
    before, after = decode_trace(text), decode_for_mlflow(again)
    assert isinstance(before, Trace)
    assert isinstance(after, Trace)
    assert after.plain
    ours, theirs = derive(before), derive(after)
    for field in (
        "request",
        "response",
        "retrieved_context",
        "predicted_trajectory",
        "token_counts",
        "failure",
        "error",
    ):
        assert getattr(ours, field) == getattr(theirs, field)
    found = MlflowTrace.from_json(again)
    assert len(found.data.spans) == len(before.spans)
    assert found.info.tags[MADE] == "rewritten"


def test_a_rewritten_trace_keeps_what_happened_in_its_spans() -> None:
    from mlflow.entities import Trace as MlflowTrace

    trace = json.loads(next(p for p in TRACES if p.stem == "mlflow_v3_18_1").read_text(encoding="utf-8"))
    failed = [s for s in trace["data"]["spans"] if s["events"]]
    assert failed
    for span in failed:
        span["status"]["message"] = "ValueError: no such order"
    trace["info"]["colour"] = "red"  # mlflow reads no trace with a key that it does not know
    again = rewritten(json.dumps(trace))
    assert again is not None
    spans = {s.name: s for s in MlflowTrace.from_json(again).data.spans}
    for span in failed:
        found = spans[span["name"]]
        assert [(e.name, e.attributes) for e in found.events] == [(e["name"], e["attributes"]) for e in span["events"]]
        assert found.status.description == "ValueError: no such order"


SAID: list[Row] = [
    {
        "assessment_name": "expected_response",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
        "create_time": "2026-11-03T09:00:00Z",
        "last_update_time": "2026-11-03T09:00:01.500Z",
        "expectation": {"value": "Within 30 days."},
        "metadata": {"team": "ops"},
    },
    {
        "assessment_name": "facts",
        "source": {"source_type": "HUMAN"},
        "create_time": "2026-11-03T09:00:00Z",
        "last_update_time": "2026-11-03T09:00:00Z",
        "expectation": {"serialized_value": {"serialization_format": "JSON_FORMAT", "value": '["a", "b"]'}},
    },
    {
        "assessment_name": "polite",
        "source": {"source_type": "LLM_JUDGE", "source_id": "a judge"},
        "create_time": "2026-11-03T09:00:00Z",
        "last_update_time": "2026-11-03T09:00:00Z",
        "feedback": {"value": False, "error": {"error_code": "SLOW", "error_message": "late"}},
        "rationale": "no greeting",
        "assessment_id": "a-2",
        "overrides": "a-1",
        "valid": True,
    },
]


def test_a_rewritten_trace_keeps_what_was_said_of_it() -> None:
    from mlflow.entities import Trace as MlflowTrace

    trace = json.loads(next(p for p in TRACES if p.stem == "mlflow_v3_18_1").read_text(encoding="utf-8"))
    before = {s.name: s for s in MlflowTrace.from_dict(trace).data.spans}
    span = next(iter(before.values()))
    trace["info"]["assessments"] = [*SAID[:2], {**SAID[2], "span_id": span.span_id}]
    given = MlflowTrace.from_json(json.dumps(trace)).info.assessments
    trace["info"]["colour"] = "red"  # mlflow reads no trace with a key that it does not know
    again = rewritten(json.dumps(trace))
    assert again is not None
    found = MlflowTrace.from_json(again)
    spans = {s.name: s for s in found.data.spans}
    of_now = {"trace_id": found.info.trace_id}
    expected = [{**a.to_dictionary(), **of_now} for a in given]
    expected[2]["span_id"] = spans[span.name].span_id
    assert [a.to_dictionary() for a in found.info.assessments] == expected


def test_a_rewritten_trace_leaves_out_what_mlflow_cannot_read_of_what_was_said() -> None:
    from mlflow.entities import Trace as MlflowTrace

    trace = json.loads(next(p for p in TRACES if p.stem == "mlflow_v3_18_1").read_text(encoding="utf-8"))
    bare: Row = {"assessment_name": "bare", "feedback": {"value": 1}, "colour": "red"}  # of no one, at no time
    odd: list[Any] = [
        7,
        {"assessment_name": "an issue", "issue": {"issue_name": "slow"}},
        {**bare, "feedback": {}},
        {**bare, "feedback": {"value": 1, "error": {"code": 7}}},
        {**bare, "source": {"source_type": "A GHOST"}},
        {**bare, "expectation": {"value": 1}},
        {**bare, "create_time": "yesterday"},
        {"assessment_name": "nothing", "expectation": {"value": None}},
        {"assessment_name": "no JSON", "expectation": {"serialized_value": {"serialization_format": "", "value": "{"}}},
    ]
    trace["info"]["assessments"] = [*odd, bare]
    again = rewritten(json.dumps(trace))
    assert again is not None
    found = MlflowTrace.from_json(again)
    (judged,) = found.info.assessments
    assert (judged.name, judged.source.source_type, judged.feedback.value) == ("bare", "SOURCE_TYPE_UNSPECIFIED", 1)
    assert judged.create_time_ms == found.info.request_time


@given(st.data())
@settings(max_examples=80)
def test_assessments_that_we_call_plain_mlflow_reads(data: st.DataObject) -> None:
    """Cut any part out of what was said, or put another in its place."""
    from mlflow.entities import Trace as MlflowTrace

    trace = json.loads(next(p for p in TRACES if p.stem == "mlflow_v3_18_1").read_text(encoding="utf-8"))
    said = json.loads(json.dumps(data.draw(st.sampled_from(SAID))))
    parts = [said, *(v for v in said.values() if isinstance(v, dict))]
    home = data.draw(st.sampled_from(parts + [v for p in parts[1:] for v in p.values() if isinstance(v, dict)]))
    key = data.draw(st.sampled_from([*sorted(home), "colour"]))
    home[key] = data.draw(st.none() | st.integers(0, 9) | st.text(max_size=3) | st.just([]) | st.just({}))
    if data.draw(st.booleans()):
        del home[key]
    trace["info"]["assessments"] = [said]
    text = json.dumps(trace)
    found = decode_for_mlflow(text)
    if isinstance(found, Trace) and found.plain:
        MlflowTrace.from_json(text)
    again = rewritten(text)
    assert again is not None
    MlflowTrace.from_json(again)
    assert isinstance(after := decode_for_mlflow(again), Trace)
    assert after.plain


def broken(trace: Row, how: str) -> Row:
    info, spans = trace["info"], trace["data"]["spans"]
    match how:
        case "unknown info key":
            info["colour"] = "red"
        case "no state":
            del info["state"]
        case "no trace id in a span":
            del spans[0]["attributes"]["mlflow.traceRequestId"]
        case "no location":
            del info["trace_location"]
        case "numbers as text":
            spans[0]["start_time_unix_nano"] = str(spans[0]["start_time_unix_nano"])
        case "two roots":
            spans[-1]["parent_span_id"] = None
        case "odd status":
            spans[0]["status"] = {"code": "FINE"}
        case "lost parents":
            for span in spans:
                span["parent_span_id"] = "AAAAAAAAAAA="
        case "a lost parent":
            spans[-1]["parent_span_id"] = "AAAAAAAAAAA="
        case "a span below itself":
            spans[-1]["parent_span_id"] = spans[-1]["span_id"]
        case "two spans below each other":
            spans[-1]["parent_span_id"], spans[-2]["parent_span_id"] = spans[-2]["span_id"], spans[-1]["span_id"]
        case "a type that is an object":
            spans[-1]["attributes"]["mlflow.spanType"] = "{}"
        case "a type that is a list":
            spans[-1]["attributes"]["mlflow.spanType"] = [1]
        case "a span id that is no base64":
            spans[-1]["span_id"] = "AAAAAAAAAA!="
        case "span ids that are right only side by side":
            spans[0]["span_id"], spans[-1]["span_id"] = "AAAAAA", "AAAAA=AAAAAAAAAAA="
        case "a trace id of another length":
            spans[-1]["trace_id"] = "AAAA"
        case "a request id that is no JSON text":
            spans[-1]["attributes"]["mlflow.traceRequestId"] = "tr-1"
        case "a time in the thirteenth month":
            info["request_time"] = "2026-13-01T00:00:00Z"
        case "a time in other digits":
            info["request_time"] = "\u0662\u0660\u0662\u0666-01-01T00:00:00Z"
        case "an empty trace id":
            spans[0]["trace_id"] = ""
        case "an empty request id":
            spans[0]["attributes"]["mlflow.traceRequestId"] = ""
        case "a parent that is no base64":
            spans[-1]["parent_span_id"] = "AAAA\u00e9AAAAAA="
        case "a span id with its end inside":
            spans[-1]["span_id"] = "AAAAA=AAAAA="
        case "an event that is none":
            spans[-1]["events"] = [{"name": "exception"}]
        case "null links":
            spans[-1]["links"] = None
    return trace


BREAKS = (
    *("unknown info key", "no state", "no trace id in a span", "no location", "numbers as text"),
    *("two roots", "odd status", "lost parents", "a span id that is no base64", "null links"),
    *("span ids that are right only side by side", "a trace id of another length", "a request id that is no JSON text"),
    *("an empty trace id", "an empty request id", "a parent that is no base64", "a span id with its end inside"),
    *("a lost parent", "a span below itself", "two spans below each other"),
    *("a type that is an object", "a type that is a list"),
    *("an event that is none", "a time in the thirteenth month", "a time in other digits"),
)


@pytest.mark.parametrize("how", BREAKS)
def test_a_trace_that_mlflow_refuses_is_written_anew(how: str) -> None:
    from mlflow.entities import Trace as MlflowTrace

    whole = json.loads((DATA / "traces" / "mlflow_v3_6_0.json").read_text(encoding="utf-8"))
    text = json.dumps(broken(whole, how))
    (line,) = prepare_for_evaluate([{"trace": text}]).to_dict("records")
    assert line["trace"] != text
    root = MlflowTrace.from_json(line["trace"]).data._get_root_span()
    assert root is not None
    assert (line["inputs"], line["outputs"]) == (root.inputs, root.outputs)


@given(
    st.text(st.characters(codec="utf-8") | st.sampled_from("./: -"), max_size=9)
    | st.sampled_from(["a" * 250, "a" * 251])
)
@example("..a")
@example("a/../b")
@example("/a")
@example(".")
@example("")
def test_a_tag_that_mlflow_refuses_is_told(name: str) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.utils.validation import _validate_trace_tag

    assume(not name.endswith("\n"))  # which its pattern lets pass by mistake
    report = validate_eval_set([{**ROW, "tags": {name: "x"}}])
    assert report.ok
    try:
        _validate_trace_tag(name, "x")
    except MlflowException:
        assert set(report.counts) - {"AE180"} == {"AE112"}
    else:
        assert set(report.counts) <= {"AE180"}  # blanks at an end, which MLflow keeps


def test_a_tag_that_mlflow_cuts_is_told() -> None:
    from mlflow.utils.validation import MAX_TRACE_TAG_VAL_LENGTH as LONGEST

    report = prepare([{**ROW, "tags": {"a": "x" * LONGEST}}, {**ROW, "tags": {"a": "x" * (LONGEST + 1)}}]).report
    (issue,) = summary_of(report).examples["AE112"]
    assert (issue.row, issue.path, issue.message) == (1, "tags.a", "expected at most 8,000 characters, got 8,001")


def test_a_tag_that_mlflow_keeps_for_itself_is_told() -> None:
    from mlflow.utils.mlflow_tags import IMMUTABLE_TAGS

    assert IMMUTABLE_TAGS <= OF_MLFLOW  # an older mlflow has fewer of them
    report = prepare([{**ROW, "tags": dict.fromkeys(OF_MLFLOW, "x")}]).report
    assert (report.counts, report.issues["path"].tolist()) == ({"AE112": 1}, ["tags.mlflow.user"])


def test_what_mlflow_itself_set_on_a_trace_is_no_issue() -> None:
    trace = (DATA / "traces" / "mlflow_v3_6_0.json").read_text(encoding="utf-8")
    tags = {**dict.fromkeys(OF_MLFLOW, "x"), "mlflow.traceName": "x" * 9_000}
    assert validate_eval_set([{"trace": trace, "tags": tags}], select=["AE112"]).counts == {}
    assert validate_eval_set([{"trace": trace, "tags": {"team (new)": "x"}}], select=["AE112"]).counts == {"AE112": 1}


@pytest.mark.parametrize("names", [["trace", "tags"], ["trace", "tags", "request"]])
def test_the_tags_of_traces_from_a_store_are_no_issue(names: list[str]) -> None:
    lines = (SAMPLES / "search_traces.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{name: json.loads(line)[name] for name in names} for line in lines]
    assert all({"mlflow.artifactLocation", "mlflow.traceName"} <= set(row["tags"]) for row in rows)
    assert validate_eval_set(rows, select=["AE112"]).counts == {}


@given(st.data())
@settings(max_examples=60)
def test_what_we_call_plain_mlflow_reads(data: st.DataObject) -> None:
    """Cut any part out of a real trace, or put another in its place: what is then still plain, mlflow reads."""
    from mlflow.entities import Trace as MlflowTrace

    path = data.draw(st.sampled_from([p for p in TRACES if "v3" in p.stem]))
    trace = json.loads(path.read_text(encoding="utf-8"))
    homes = [trace["info"], trace["data"], *trace["data"]["spans"], *(s["attributes"] for s in trace["data"]["spans"])]
    home = data.draw(st.sampled_from([h for h in homes if h]))
    key = data.draw(st.sampled_from(sorted(home)))
    if data.draw(st.booleans()):
        del home[key]
    else:
        home[key] = data.draw(st.none() | st.integers(0, 9) | st.text(max_size=3) | st.just([]) | st.just({}))
    text = json.dumps(trace)
    found = decode_for_mlflow(text)
    if isinstance(found, Trace) and found.plain:
        MlflowTrace.from_json(text)
    again = rewritten(text)
    assert (again is None) == (not isinstance(found, Trace))
    if again is not None:
        MlflowTrace.from_json(again)


def test_a_made_trace_holds_what_the_row_holds() -> None:
    row: Row = {
        "request": {"messages": [{"role": "user", "content": "a"}]},
        "response": "b",
        "retrieved_context": [{"doc_uri": "u", "content": None}, {"doc_uri": None, "content": "c"}],
        "predicted_trajectory": [{"tool_name": "f", "tool_input": {"x": 1}}, {"tool_name": "f", "tool_input": {}}],
        "latency_seconds": 1.5,
        "input_token_count": 3,
        "session_id": "s",
        "failure": True,
    }
    found = decode_for_mlflow(made_of(row, "row 1", 10**18))
    assert isinstance(found, Trace)
    assert found.plain
    derived = derive(found)
    assert (derived.response, derived.latency_seconds, derived.failure) == ("b", 1.5, True)
    assert derived.retrieved_context == [Document("u", ""), Document(None, "c")]
    assert [c.tool_name for c in derived.predicted_trajectory or ()] == ["f", "f"]
    assert (derived.token_counts, derived.session_id) == ((3, None, None), "s")
