"""Real traces of many versions of mlflow, and traces that mlflow makes here.

The expected values of `FILES` were read off the traces by hand, after the derivation table of the documentation.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import eval_set_from_traces, validate_eval_set
from agent_eval_schema.rules.retrieval import DOC_URI_VALUE
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.derive import derive
from tests.helpers.traces import (
    ASKED,
    DATA,
    FILES,
    Row,
    call,
    codes,
    completion,
    document,
    row,
    rows,
    text_of,
    tokens,
    user,
    views,
)

# ---------------------------------------------------------------------------------------------------------------------
# real traces


REMARKS = {
    "mlflow_v2_13_2": ["AE410", "AE610"],
    "mlflow_v2_22_5": ["AE410", "AE610"],
    "mlflow_v3_1_4": ["AE410", "AE610"],
    "mlflow_v3_5_0": ["AE410", "AE610"],
    "mlflow_v3_6_0": ["AE410", "AE610"],
    "mlflow_v3_18_0": ["AE411", "AE603"],
    "mlflow_v3_18_1": ["AE411", "AE603", "AE610"],
    "mlflow_v3_18_2": ["AE411", "AE603"],
    "v3_odd_retriever_null_output": ["AE621"],
}
"""Documents without a doc_uri (410) or with a guessed one (411), facts beside an expected response (603), and tools
that failed behind the state OK (610), and a root without outputs (621)."""


def test_every_trace_has_its_expectation() -> None:
    assert set(FILES) == {path.stem for path in DATA.glob("*.json")}


@pytest.mark.parametrize("name", FILES)
def test_real_traces(name: str) -> None:
    assert views(row(text_of(name))) == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_remarks_on_real_traces(name: str) -> None:
    assert codes(text_of(name)) == REMARKS.get(name, [])


WITHOUT_URI = [name for name, remarks in REMARKS.items() if "AE410" in remarks]


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
def test_rows_that_were_made_of_traces_can_be_read_again(ending: str, tmp_path: Path) -> None:
    made = eval_set_from_traces([text_of(name) for name in FILES])
    report = validate_eval_set(made)
    path = tmp_path / f"rows.{ending}"
    report.write(path)
    for again in (report, validate_eval_set(path)):
        assert again.ok
        assert again.counts["AE905"] == 2  # three files are of one request
        assert again.counts["AE410"] == len(WITHOUT_URI)
        assert list(again.iter_rows()) == list(report.iter_rows())


@pytest.mark.parametrize("context", [[{"doc_uri": None, "content": "x"}, {"doc_uri": None}], [{"doc_uri": None}]])
@pytest.mark.parametrize("has_trace", [True, False])
def test_a_document_without_uri_that_no_trace_bears_out(
    has_trace: bool, context: list[Row], every_input: Callable[[list[Row]], Any]
) -> None:
    trace = text_of("v3_rag_two_retrievers_chat_completion") if has_trace else None
    given = {"request": "Hi", "response": "Hello", "retrieved_context": context, "trace": trace}
    report = validate_eval_set(every_input([given, {"request": "Hi", "response": "Hello", "trace": trace}]))
    told = report.issues.query("code == 'AE404'")
    assert told.row.tolist() == [0] * len(context)
    assert told.path.tolist() == [f"retrieved_context[{i}].doc_uri" for i in range(len(context))]
    assert set(told.hint) == {DOC_URI_VALUE.hint}
    assert "AE410" not in report.counts


def test_traces_keep_their_order() -> None:
    assert list(map(views, rows([text_of(name) for name in FILES]))) == list(FILES.values())


def test_all_the_expectations_of_a_trace_are_derived() -> None:
    derived = derive(decode_trace(text_of("mlflow_v3_18_0")))
    assert derived.expectations == {
        "expected_response": "MLflow is an ML platform.",
        "expected_facts": ["MLflow", "platform"],
        "guidelines": {"tone": ["be nice"]},
        "expected_tool_calls": [{"name": "search_web", "arguments": {"query": "What is MLflow? 0", "k": 2}}],
    }


# ---------------------------------------------------------------------------------------------------------------------
# mlflow's own objects


@pytest.fixture(scope="module")
def mlflow() -> Iterator[Any]:
    """The real mlflow. Its own warnings are not ours."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    patch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("mlflow")
    patch.undo()


@pytest.fixture(scope="module")
def recorded(mlflow: Any, tracking_store: str) -> Iterator[tuple[Any, pd.DataFrame]]:  # noqa: ARG001 (mlflow's store)
    """One trace in an experiment of its own on sqlite: as an object, and as the frame of search_traces."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.set_experiment("recorded traces")
        _run_agent(mlflow)
        [only] = mlflow.search_traces(return_type="list")
        yield only, mlflow.search_traces()


def _run_agent(mlflow: Any) -> None:
    @mlflow.trace(span_type="RETRIEVER")
    def retrieve(question: str) -> list[Any]:
        return [mlflow.entities.Document(page_content=f"on {question}", metadata={"doc_uri": "hr/leave.pdf"})]

    @mlflow.trace(span_type="TOOL")
    def search(query: str, k: int) -> Row:
        return {"hits": k, "query": query}

    @mlflow.trace(span_type="AGENT")
    def agent(messages: list[Row]) -> Row:
        mlflow.update_current_trace(metadata={"mlflow.trace.session": "s1"}, client_request_id="c1")
        retrieve(messages[0]["content"])
        search("a", k=2)
        search("b", k=1)
        return {**completion("Hello"), "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}}

    agent([user("Hi")])
    id = mlflow.get_last_active_trace_id()
    source = mlflow.entities.AssessmentSource("HUMAN", "ann")
    mlflow.log_expectation(trace_id=id, name="expected_facts", value=["hello"], source=source)
    mlflow.log_expectation(trace_id=id, name="tone", value="friendly", source=source)


RECORDED = {
    "request_id": "c1",
    "session_id": "s1",
    "request": ASKED,
    "response": "Hello",
    "outputs": {
        "choices": [{"message": {"role": "assistant", "content": "Hello"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    },
    "retrieved_context": [document("hr/leave.pdf", "on Hi")],
    "predicted_trajectory": [call("search", query="a", k=2), call("search", query="b", k=1)],
    "expected_facts": ["hello"],
    "custom_expected": {"tone": "friendly"},
    "failure": False,
    **tokens(3, 4, 7),
}


GIVEN: dict[str, Callable[[Any, pd.DataFrame, Path], Any]] = {
    "an object": lambda trace, *_: trace,
    "a list of objects": lambda trace, *_: [trace],
    "a dict": lambda trace, *_: trace.to_dict(),
    "a list of dicts": lambda trace, *_: [trace.to_dict()],
    "JSON text": lambda trace, *_: trace.to_json(),
    "a list of JSON texts": lambda trace, *_: [trace.to_json(pretty=True)],
    "JSON text, encoded twice": lambda trace, *_: [json.dumps(trace.to_json())],
    "a search_traces frame": lambda _, frame, __: frame,
    "the trace column alone": lambda _, frame, __: frame[["trace"]],
    "the trace column as a series": lambda _, frame, __: frame["trace"],
    "a frame of objects": lambda trace, *_: pd.DataFrame({"trace": [trace]}),
    "rows with a trace": lambda trace, *_: [{"trace": trace}],
    "a file of traces": lambda trace, _, folder: jsonl(folder, trace.to_json()),
    "a file of rows": lambda trace, _, folder: jsonl(folder, json.dumps({"trace": trace.to_json()})),
}


def jsonl(folder: Path, line: str) -> Path:
    path = folder / "traces.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("given", GIVEN)
def test_every_way_to_give_a_recorded_trace(given: str, recorded: tuple[Any, pd.DataFrame], tmp_path: Path) -> None:
    live, frame = recorded
    [found] = rows(GIVEN[given](live, frame, tmp_path))
    assert found == {**RECORDED, "latency_seconds": live.info.execution_duration / 1000}


def test_the_trace_cell_of_an_object_is_what_mlflow_writes(recorded: tuple[Any, pd.DataFrame]) -> None:
    live, _ = recorded
    [cell] = eval_set_from_traces([live])["trace"]
    assert json.loads(cell) == live.to_dict()


# ---------------------------------------------------------------------------------------------------------------------
# mlflow as a second opinion


V3_FILES = [name for name in FILES if "v3" in name]


UNKNOWN_TO_MLFLOW = ("v3_query_history_stringresponse", "v3_odd_retriever_null_output")
"""mlflow makes JSON text of {content}, and a blank of null."""


UNKNOWN_TO_OLDER = ("v3_responses_agent", "v3_odd_retriever_null_output")
"""Up to 3.5 mlflow makes JSON text of a Responses answer, and reads no document but those of `page_content`."""


@pytest.mark.parametrize("name", V3_FILES)
def test_mlflow_reads_the_same_out_of_a_trace(name: str, mlflow: Any) -> None:
    from mlflow.genai.utils import trace_utils

    if name == "mlflow_v3_5_0" and mlflow.__version__.startswith(("3.3.", "3.4.")):
        pytest.skip("mlflow cannot read what its 3.5.0 wrote before 3.5")
    theirs, ours = mlflow.entities.Trace.from_json(text_of(name)), row(text_of(name))
    [root] = [s for s in theirs.data.spans if s.parent_id is None]
    tools = sorted(theirs.search_spans(span_type="TOOL"), key=lambda s: s.start_time_ns)
    unknown = mlflow.__version__.startswith(("3.3.", "3.4.", "3.5.")) and name in UNKNOWN_TO_OLDER
    contexts = [] if unknown else list(trace_utils.extract_retrieval_context_from_trace(theirs).values())
    expectations = {a.name: a.expectation.value for a in theirs.search_assessments(type="expectation")}

    assert ours["request"]["messages"][-1]["content"] == asked_last(root.inputs)
    extract_response = getattr(trace_utils, "extract_response_from_trace", None)  # 3.3 has none
    if extract_response is not None and name not in UNKNOWN_TO_MLFLOW and not unknown:
        assert ours["response"] == extract_response(theirs)
    if contexts:
        assert [d["content"] for d in ours["retrieved_context"]] == [c["content"] for c in contexts[-1]]
        stated = [
            (d["doc_uri"], c.get("doc_uri")) for d, c in zip(ours["retrieved_context"], contexts[-1], strict=True)
        ]
        assert all(uri == theirs for uri, theirs in stated if theirs is not None)
    assert [c["tool_input"] for c in ours.get("predicted_trajectory", [])] == [t.inputs for t in tools]
    if theirs.info.token_usage:
        assert theirs.info.token_usage == {k[: -len("_count")] + "s": ours[k] for k in tokens(0, 0, 0)}
    assert ours.get("expected_response") == expectations.get("expected_response")
    assert ours.get("guidelines") == expectations.get("guidelines")
    assert ours["latency_seconds"] == theirs.info.execution_duration / 1000
    assert ours["failure"] == (theirs.info.state == "ERROR")


def asked_last(inputs: Row) -> str:
    inputs = inputs.get("request", inputs)
    return inputs.get("query") or (inputs.get("messages") or inputs["input"])[-1]["content"]
