"""What a trace says about its row: real traces of many versions of mlflow, every rule by example, damaged traces.

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
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import EvalSetError, eval_set_from_traces, validate_eval_set
from agent_eval_schema.api import UnreadableTrace, report_on_traces
from agent_eval_schema.traces.decode import Trace, decode_trace
from agent_eval_schema.traces.derive import derive
from tests.conftest import DATA as TEST_DATA

DATA = TEST_DATA / "traces"

Row = dict[str, Any]


def rows(traces: Any) -> list[Row]:
    """The canonical rows of traces without their trace cell and without what is absent."""
    frame = eval_set_from_traces(traces).drop(columns="trace").astype(object)
    return [{k: v for k, v in r.items() if v is not None} for r in frame.where(frame.notna(), None).to_dict("records")]


def row(trace: Any) -> Row:
    [only] = rows([trace])
    return only


def codes(trace: Any) -> list[str]:
    """What is said of the trace: the families 4 (documents) and 6, without the notice that a request was derived."""
    found = [i.code for i in report_on_traces([trace]).iter_issues()]
    return sorted(c for c in found if c[:3] in ("AE4", "AE6") and c != "AE606")


# ---------------------------------------------------------------------------------------------------------------------
# a builder: the smallest trace that shows a rule


def span(id: str = "1", parent: str | None = None, kind: str | None = None, **given: Any) -> Row:
    """A span of mlflow 3. `inputs`, `outputs`, `usage`, `function`, `tool` are written as JSON text, as mlflow does.

    It has no `mlflow.traceRequestId`, for want of which mlflow's own reader rejects a whole trace.
    """
    keys = {"inputs": "mlflow.spanInputs", "outputs": "mlflow.spanOutputs", "usage": "mlflow.chat.tokenUsage"}
    keys |= {"function": "mlflow.spanFunctionName", "tool": "gen_ai.tool.name"}
    attributes = {keys[k]: json.dumps(given.pop(k)) for k in list(given) if k in keys}
    attributes |= {"mlflow.spanType": json.dumps(kind)} if kind else {}
    start = given.pop("start", int(id) * 10)
    end = given.pop("end") if "end" in given else start + 5
    times = {"start_time_unix_nano": start, "end_time_unix_nano": end}
    return {"name": "agent", "span_id": id, "parent_span_id": parent, **times, "attributes": attributes, **given}


def trace(*spans: Any, **info: Any) -> Row:
    return {"info": {"trace_id": "tr-1", "state": "OK", **info}, "data": {"spans": list(spans)}}


def user(text: str) -> Row:
    return {"role": "user", "content": text}


def assistant(text: str | None, **more: Any) -> Row:
    return {"role": "assistant", "content": text, **more}


def completion(text: str | None, **more: Any) -> Row:
    return {"choices": [{"message": assistant(text, **more)}]}


def document(uri: str | None, content: str | None) -> Row:
    return {"doc_uri": uri, "content": content}


def call(name: str, /, **arguments: Any) -> Row:
    return {"tool_name": name, "tool_input": arguments}


ROOT = span(kind="AGENT", inputs={"messages": [user("Hi")]}, outputs="Hello")
ASKED = {"messages": [user("Hi")]}


# ---------------------------------------------------------------------------------------------------------------------
# real traces


def tokens(given: int, made: int, total: int) -> Row:
    return {"input_token_count": given, "output_token_count": made, "total_token_count": total}


WHAT = {
    "request": {"messages": [user("What?")]},
    "response": "hi",
    "retrieved_context": [document("docs/a.md", "MLflow is an ML platform"), document(None, "x")],
    "predicted_trajectory": [call("search_web", query="q", k=2), call("search_web", query="boom", k=2)],
    "failure": False,
    **tokens(20, 6, 26),
}
"""Each encoding of mlflow recorded the same agent: a tool that raises, and an answer in spite of it."""

MLFLOW = {
    "request_id": "crid-1",
    "response": "MLflow is an ML platform.",
    "retrieved_context": [
        document("docs/a.md", "MLflow is an ML platform"),
        document("docs/b.md", "Spark is a data engine"),
    ],
    "failure": False,
    "expected_response": "MLflow is an ML platform.",
    "guidelines": {"tone": ["be nice"]},
    **tokens(20, 6, 26),
}

RAG = {"request": {"messages": [user("What is RAG?")]}, "failure": False}
RAG_ANSWER = "RAG is retrieval augmented generation."
DOCS_12 = [document("doc-1.md", "content 1"), document("doc-2.md", "content 2")]
DOCS_34 = [document("doc-3.md", "content 3"), document("doc-4.md", "content 4")]
WEATHER = {"response": "It is sunny", "predicted_trajectory": [call("get_weather", city="Paris")]}

FILES: dict[str, Row] = {
    "mlflow_v2_13_2": {**WHAT, "request_id": "d9ca3c3605ac4a5993df738a141d19c7", "latency_seconds": 0.658},
    "mlflow_v2_22_5": {**WHAT, "request_id": "dd7b3ac47088499fa1a576c258d803e1", "latency_seconds": 0.153},
    "mlflow_v3_1_4": {**WHAT, "request_id": "edfee1cebed3495cb02c8bf0efe0b766", "latency_seconds": 0.457},
    "mlflow_v3_5_0": {**WHAT, "request_id": "tr-027ef1f65160bd39e62e207e54f142c7", "latency_seconds": 0.072},
    "mlflow_v3_6_0": {**WHAT, "request_id": "tr-4a391279c2fc64913639317c2122fa6e", "latency_seconds": 0.042},
    "mlflow_v3_18_0": {
        **MLFLOW,
        "request": {"messages": [user("What is MLflow? 0")]},
        "predicted_trajectory": [call("search_web", query="What is MLflow? 0", k=2)],
        "reference_trajectory": [call("search_web", query="What is MLflow? 0", k=2)],
        "session_id": "sess-1",
        "latency_seconds": 0.060,
    },
    "mlflow_v3_18_1": {
        **MLFLOW,
        "request": {"messages": [user("What is MLflow? 1")]},
        "predicted_trajectory": [call("search_web", query="boom", k=2)],
        "session_id": "sess-1",
        "latency_seconds": 0.007,
    },
    "mlflow_v3_18_2": {
        **MLFLOW,
        "request": {"messages": [user("What is MLflow? 2")]},
        "predicted_trajectory": [call("search_web", query="What is MLflow? 2", k=2)],
        "session_id": "sess-2",
        "latency_seconds": 0.001,
    },
    "v2_chat_agent_dict": {
        **RAG,
        "request_id": "277bec82876845048d9e0c5a3610730a",
        "response": "final chat agent answer",
        "retrieved_context": [document("obj.md", "obj")],
        "latency_seconds": 0.005,
        **tokens(100, 20, 120),
    },
    "v2_exception": {
        **RAG,
        "request_id": "55246be22864489bbb6051e5bfe9f654",
        "retrieved_context": DOCS_12,
        "latency_seconds": 0.007,
        "failure": True,
        "error": "upstream model exploded",
    },
    "v2_last_retriever_empty_nested_llm": {
        **RAG,
        "request_id": "fdf114aedaea4a788c9a8f5fd8153583",
        "response": "last retriever empty",
        "retrieved_context": [],
        "latency_seconds": 0.005,
        **tokens(100, 20, 120),
    },
    "v2_rag_two_retrievers_chat_completion": {
        **RAG,
        "request_id": "3344b7444ed34d3f87478b1e5638f5c8",
        "response": RAG_ANSWER,
        "retrieved_context": DOCS_34,
        "latency_seconds": 0.082,
        **tokens(100, 20, 120),
    },
    "v2_string_response": {
        **RAG,
        "request_id": "ff9c3e3127c447e5893449bb51c538f2",
        "response": "plain string answer",
        "latency_seconds": 0.004,
    },
    "v2_tool_calling_chat_model": {
        **RAG,
        **WEATHER,
        "request_id": "0422841cd8c5414e8098e1bc7f14935a",
        "latency_seconds": 0.005,
        **tokens(200, 40, 240),
    },
    "v2_tool_spans_only_dict_output": {
        **RAG,
        **WEATHER,
        "request_id": "f6d2969ee2144b8f8cefbc6e84232118",
        "latency_seconds": 0.005,
        **tokens(100, 20, 120),
    },
    "v3_chat_agent_real": {
        **RAG,
        "request": {"messages": [{**user("What is RAG?"), "id": "u1"}]},
        "request_id": "tr-d53451d36f4e97fc7c5ad93fdf02d5bb",
        "response": "real chat agent",
        "latency_seconds": 0.0,
        **tokens(100, 20, 120),
    },
    "v3_chat_completion": {
        **RAG,
        "request_id": "tr-2fe69306685e9f7b0a4ac08f07eec842",
        "response": RAG_ANSWER,
        "latency_seconds": 0.001,
        **tokens(100, 20, 120),
    },
    "v3_nested_retrievers": {
        **RAG,
        "request_id": "tr-272b7a992ceafdd3935290a1d6ba8ef3",
        "response": "nested",
        "retrieved_context": [document("doc-9.md", "content 9"), document("doc-8.md", "content 8")],
        "latency_seconds": 0.0,
    },
    "v3_odd_retriever_null_output": {
        **RAG,
        "request_id": "tr-66759dad635969b0e317e68554cc199a",
        "retrieved_context": [document("d", "c")],
        "latency_seconds": 0.001,
    },
    "v3_query_history_stringresponse": {
        "request": {"messages": [user("hi"), assistant("hello"), user("Explain broadcast variables")]},
        "request_id": "tr-7f3f3e76ce1ce00dabeee4e03be74bd0",
        "response": "string-response obj",
        "latency_seconds": 0.001,
        "failure": False,
    },
    "v3_rag_two_retrievers_chat_completion": {
        **RAG,
        "request_id": "tr-83b0d075875142abd7938ab9bc9c1311",
        "response": RAG_ANSWER,
        "retrieved_context": DOCS_34,
        "latency_seconds": 0.118,
        **tokens(100, 20, 120),
    },
    "v3_responses_agent": {
        **RAG,
        "request_id": "tr-d764efa9d28573d7b94076fec56677cd",
        "response": "responses agent answer",
        "latency_seconds": 0.005,
        **tokens(100, 20, 120),
    },
    "v3_tool_calling_chat_model": {
        **RAG,
        **WEATHER,
        "request_id": "tr-2a4e90b5b1ab95849e3c40ebe609ae31",
        "latency_seconds": 0.001,
        **tokens(200, 40, 240),
    },
    "v3_tool_spans_only_str_output": {
        **RAG,
        "request_id": "tr-f37b1182d3d81a02031db3683a97ed16",
        "response": "noon",
        "predicted_trajectory": [call("get_time", tz="UTC")],
        "latency_seconds": 0.002,
        **tokens(100, 20, 120),
    },
}

REMARKS = {
    "mlflow_v2_13_2": ["AE410", "AE610"],
    "mlflow_v2_22_5": ["AE410", "AE610"],
    "mlflow_v3_1_4": ["AE410", "AE610"],
    "mlflow_v3_5_0": ["AE410", "AE610"],
    "mlflow_v3_6_0": ["AE410", "AE610"],
    "mlflow_v3_18_0": ["AE411", "AE603"],
    "mlflow_v3_18_1": ["AE411", "AE603", "AE610"],
    "mlflow_v3_18_2": ["AE411", "AE603"],
}
"""Documents without a doc_uri (410) or with a guessed one (411), facts beside an expected response (603), and tools
that failed behind the state OK (610)."""


def text_of(name: str) -> str:
    return (DATA / f"{name}.json").read_text(encoding="utf-8")


def test_every_trace_has_its_expectation() -> None:
    assert set(FILES) == {path.stem for path in DATA.glob("*.json")}


@pytest.mark.parametrize("name", FILES)
def test_real_traces(name: str) -> None:
    assert row(text_of(name)) == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_remarks_on_real_traces(name: str) -> None:
    assert codes(text_of(name)) == REMARKS.get(name, [])


WITHOUT_URI = [name for name, remarks in REMARKS.items() if "AE410" in remarks]


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
def test_rows_that_were_made_of_traces_can_be_read_again(ending: str, tmp_path: Path) -> None:
    made = eval_set_from_traces([text_of(name) for name in FILES])
    report = validate_eval_set(made)
    path = tmp_path / f"rows.{ending}"
    report.write_normalized(path)
    for again in (report, validate_eval_set(path)):
        errors = set(again.issues.query("severity == 'error'").code)
        assert (errors, again.counts.get("AE410")) == ({"AE901"}, len(WITHOUT_URI))  # three files are of one request
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
    assert set(told.hint) == {"make doc_uri the document's URI as text"}
    assert "AE410" not in report.counts


def test_traces_keep_their_order() -> None:
    assert rows([text_of(name) for name in FILES]) == list(FILES.values())


def test_all_the_expectations_of_a_trace_are_derived() -> None:
    derived = derive(decode_trace(text_of("mlflow_v3_18_0")))
    assert derived.expectations == {
        "expected_response": "MLflow is an ML platform.",
        "expected_facts": ["MLflow", "platform"],
        "guidelines": {"tone": ["be nice"]},
        "expected_tool_calls": [{"name": "search_web", "arguments": {"query": "What is MLflow? 0", "k": 2}}],
    }


# ---------------------------------------------------------------------------------------------------------------------
# encodings of which there is no file

STEPS = {
    "app_version_id": "avi-3",
    "start_timestamp": "2024-04-03T19:51:10.686454",
    "end_timestamp": "2024-04-03T19:51:12.9",
    "is_truncated": False,
    "steps": [
        {
            "step_id": "2947",
            "name": "Retriever",
            "type": "RETRIEVAL",
            "retrieval": {
                "query_text": "How long?",
                "chunks": [{"chunk_id": "c1", "doc_uri": "hr/leave.pdf", "content": "16 weeks"}],
            },
            "start_timestamp": "2024-04-03T19:51:10.7",
            "end_timestamp": "2024-04-03T19:51:11.2",
        },
        {
            "step_id": "9283",
            "name": "LLM",
            "type": "LLM_GENERATION",
            "text_generation": {"prompt": "...", "generated_text": "16 weeks."},
            "start_timestamp": "2024-04-03T19:51:11.3",
            "end_timestamp": "2024-04-03T19:51:12.9",
        },
    ],
}


def test_v1_steps() -> None:
    """They do not say what was asked, how it went or what it cost."""
    assert row(STEPS) == {
        "response": "16 weeks.",
        "retrieved_context": [document("hr/leave.pdf", "16 weeks")],
        "latency_seconds": pytest.approx(2.213546, abs=1e-6),
    }


def test_v1_steps_beside_a_request() -> None:
    [found] = rows([{"request": "How long?", "trace": STEPS}])
    assert found["request"] == {"messages": [user("How long?")]}
    assert found["response"] == "16 weeks."


def flat_span(id: str, parent: str | None, times: tuple[int, int], code: str, **attributes: Any) -> Row:
    named = {f"mlflow.{k}": v for k, v in attributes.items()}
    context = {"span_id": id, "trace_id": "0x2"}
    start_end = {"start_time": times[0], "end_time": times[1]}
    return {
        "name": "a", "context": context, "parent_id": parent, **start_end, "status_code": code,
        "attributes": json.dumps(named),
    }  # fmt: skip


@pytest.mark.parametrize(
    "written", [json.dumps, lambda value: value], ids=["values as JSON text", "values as they are"]
)
def test_flat_v2(written: Callable[[Any], Any]) -> None:
    """The attributes are one JSON text; there is no info, so the root span gives latency and failure."""
    docs = [{"page_content": "16 weeks", "metadata": {"doc_uri": "hr/leave.pdf"}}]
    flat = {
        "spans": [
            flat_span("0x1", None, (1_000_000_000, 3_500_000_000), "OK", spanType=written("CHAIN"),
                      spanInputs=written(ASKED), spanOutputs=written(completion("Hello"))),
            flat_span("0x2", "0x1", (1_100_000_000, 1_200_000_000), "OK", spanType=written("RETRIEVER"),
                      spanInputs=written("q"), spanOutputs=written(docs)),
        ],
        "mlflow.trace_schema.version": "2",
        "app_version_id": "avi-3",
    }  # fmt: skip
    assert row(flat) == {
        "request": ASKED,
        "response": "Hello",
        "retrieved_context": [document("hr/leave.pdf", "16 weeks")],
        "latency_seconds": 2.5,
        "failure": False,
    }


def test_mlflow_3_5_0() -> None:
    """For one version the ids were hex, the root had no parent again, and the status a bare word."""
    written = {"trace_id": "tr-1f", "status": {"code": "OK"}}
    raised = {
        "status": {"code": "ERROR"},
        "events": [{"name": "exception", "attributes": {"exception.message": "no"}}],
    }
    found = row(
        trace(
            span("01", inputs="Hi", outputs="Hello", **written),
            span("02", "01", "TOOL", **{**written, **raised, "name": "search"}, inputs={"q": "x"}),
            state="ERROR",
        )
    )
    assert found["response"] == "Hello"
    assert found["predicted_trajectory"] == [call("search", q="x")]
    assert (found["failure"], found["error"]) == (True, "no")


def test_is_truncated_is_said() -> None:
    assert codes({**STEPS, "is_truncated": True}) == ["AE609"]
    assert codes(trace(ROOT, trace_metadata={"is_truncated": "true"})) == ["AE609"]


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


# ---------------------------------------------------------------------------------------------------------------------
# rules: the root span


def says(*texts: str, **more: Any) -> Row:
    return {"inputs": texts[0], "outputs": texts[1], **more}


ROOTS = {
    "no parent": [span("1", **says("Hi", "Hello")), span("2", "1", **says("x", "y"))],
    "an empty parent": [span("2", "1", **says("x", "y")), span("1", "", **says("Hi", "Hello"))],
    "the earliest of several": [span("2", **says("x", "y")), span("1", **says("Hi", "Hello")), span("3", "2")],
    "every parent is missing": [span("2", "8", **says("x", "y")), span("1", "9", **says("Hi", "Hello"))],
    "no parent beats earlier": [span("1", "9", **says("x", "y")), span("2", **says("Hi", "Hello"))],
}


@pytest.mark.parametrize("case", ROOTS)
def test_root(case: str) -> None:
    found = row(trace(*ROOTS[case]))
    assert (found["request"], found["response"]) == (ASKED, "Hello")


def test_v2_copies_of_request_and_response_serve_where_the_root_has_none() -> None:
    beside = {"request": json.dumps(ASKED), "response": json.dumps(completion("Hello"))}
    found = row({"info": {"request_id": "1", "status": "OK"}, "data": {"spans": [span()], **beside}})
    assert (found["request"], found["response"]) == (ASKED, "Hello")


# ---------------------------------------------------------------------------------------------------------------------
# rules: request and response

REQUESTS = {
    "text": "Hi",
    "messages and other arguments": {"messages": [user("Hi")], "user": None, "k": 3},
    "query": {"query": "Hi", "history": []},
    "Responses text": {"input": "Hi"},
    "Responses items": {
        "input": [{"type": "message", "content": [{"type": "input_text", "text": "Hi"}], **user("Hi")}]
    },
    "question": {"question": "Hi", "k": 3},
    "prompt": {"prompt": "Hi"},
    "text key": {"text": "Hi"},
    "the one argument": {"request": {"messages": [user("Hi")]}},
}


@pytest.mark.parametrize("case", REQUESTS)
def test_request(case: str) -> None:
    given = trace(span(inputs=REQUESTS[case], outputs="Hello"))
    assert row(given)["request"] == ASKED
    assert codes(given) == []


@pytest.mark.parametrize(
    "inputs", [{"city": "Paris", "now": None, "vip": True}, {"question": "a", "text": "b"}, [1, 2]]
)
def test_request_of_no_known_format_is_its_json_text(inputs: Any) -> None:
    given = trace(span(inputs=inputs, outputs="Hello"))
    [message] = row(given)["request"]["messages"]
    assert message["role"] == "user"
    assert json.loads(message["content"]) == inputs
    assert codes(given) == ["AE607"]


RESPONSES = {
    "text": "Hello",
    "choices": completion("Hello"),
    "messages": {"messages": [assistant("let me look"), assistant("Hello"), assistant(""), user("Thanks")]},
    "Responses": {
        "output": [
            {"type": "function_call", "name": "search", "arguments": "{}", "call_id": "c1"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
        ]
    },
    "parts": {"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    "content": {"content": "Hello"},
    "response": {"response": "Hello"},
    "output": {"output": "Hello"},
    "answer": {"answer": "Hello", "documents": 3},
    "result": {"result": "Hello"},
    "text key": {"text": "Hello"},
    "a list of one": [{"content": "Hello"}],
}


@pytest.mark.parametrize("case", RESPONSES)
def test_response(case: str) -> None:
    given = trace(span(inputs="Hi", outputs=RESPONSES[case]))
    assert row(given)["response"] == "Hello"
    assert codes(given) == []


def test_text_that_is_not_json_is_taken_as_it_is() -> None:
    plain = {"mlflow.spanInputs": "Hi", "mlflow.spanOutputs": "Hello"}
    found = row(trace({**span(), "attributes": plain}))
    assert (found["request"], found["response"]) == (ASKED, "Hello")


@pytest.mark.parametrize("outputs", [None, completion(None, tool_calls=[])])
def test_null_is_no_response(outputs: Any) -> None:
    assert "response" not in row(trace(span(inputs="Hi", outputs=outputs)))
    assert codes(trace(span(inputs="Hi", outputs=outputs))) == []


@pytest.mark.parametrize("outputs", [{"ok": True, "n": None}, {"answer": "a", "result": "b"}, ["a", "b"], 42])
def test_response_of_no_known_format_is_its_json_text(outputs: Any) -> None:
    given = trace(span(inputs="Hi", outputs=outputs))
    assert json.loads(row(given)["response"]) == outputs
    assert codes(given) == ["AE608"]


# ---------------------------------------------------------------------------------------------------------------------
# rules: retrieved_context


def retrieved(output: Any) -> Row:
    return trace(ROOT, span("2", "1", "RETRIEVER", outputs=output))


def doc(uri: str) -> Row:
    return {"page_content": f"on {uri}", "metadata": {"doc_uri": uri}}


DOCUMENTS: dict[str, tuple[Any, Row, list[str]]] = {
    "metadata.doc_uri": (
        {"page_content": "x", "doc_uri": "b", "metadata": {"doc_uri": "a", "source": "c"}},
        document("a", "x"),
        [],
    ),
    "metadata.doc_uri of other words": (
        {"content": "x", "doc_uri": "b", "metadata": {"doc_uri": "a", "source": "c"}},
        document("a", "x"),
        [],
    ),
    "top-level doc_uri": ({"content": "x", "doc_uri": "a", "metadata": {"source": "c"}}, document("a", "x"), []),
    "source": ({"text": "x", "metadata": {"url": "b", "source": "a"}}, document("a", "x"), ["AE411"]),
    "url": ({"text": "x", "metadata": {"uri": "b", "url": "a"}}, document("a", "x"), ["AE411"]),
    "uri": ({"text": "x", "metadata": {"document_id": "b", "uri": "a"}}, document("a", "x"), ["AE411"]),
    "document_id": ({"text": "x", "metadata": {"document_id": "a"}}, document("a", "x"), ["AE411"]),
    "page_content before content": (
        {"text": "z", "content": "y", "page_content": "x", "doc_uri": "a"},
        document("a", "x"),
        [],
    ),
    "content before text": ({"text": "y", "content": "x", "doc_uri": "a"}, document("a", "x"), []),
    "no uri": ({"page_content": "x", "metadata": {"page": 3}}, document(None, "x"), ["AE410"]),
    "a blank uri": ({"page_content": "x", "metadata": {"doc_uri": " "}}, document(None, "x"), ["AE410"]),
    "null metadata": ({"page_content": "x", "metadata": None}, document(None, "x"), ["AE410"]),
    "a bare text": ("x", document(None, "x"), ["AE410"]),
    "no text": ({"metadata": {"doc_uri": "a"}}, document("a", None), []),
    "neither": ({"score": 0.5}, document(None, None), ["AE412"]),
    "a number": (7, document(None, None), ["AE412"]),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_document(case: str) -> None:
    entry, found, remarks = DOCUMENTS[case]
    assert row(retrieved([doc("b"), entry]))["retrieved_context"] == [document("b", "on b"), found]
    assert codes(retrieved([doc("b"), entry])) == remarks


@pytest.mark.parametrize("key", ["documents", "docs", "results", "chunks", "context"])
def test_wrapped_documents(key: str) -> None:
    assert row(retrieved({"took": 3, key: [doc("a"), doc("b")]}))["retrieved_context"] == [
        document("a", "on a"),
        document("b", "on b"),
    ]


@pytest.mark.parametrize("output", [[doc("a")], {"docs": [doc("a")]}], ids=["list", "wrapped"])
def test_documents_as_json_text(output: Any) -> None:
    assert row(retrieved(json.dumps(output)))["retrieved_context"] == [document("a", "on a")]
    assert codes(retrieved(json.dumps(output))) == []


@pytest.mark.parametrize("output", [[], {"documents": []}, "[]"])
def test_nothing_retrieved_is_an_empty_list(output: Any) -> None:
    assert row(retrieved(output))["retrieved_context"] == []


def test_without_a_retriever_or_its_output_there_is_no_context() -> None:
    assert "retrieved_context" not in row(trace(ROOT))
    assert "retrieved_context" not in row(trace(ROOT, span("2", "1", "RETRIEVER")))
    assert "retrieved_context" not in row(retrieved(None))


GLIMPSED: dict[str, Any] = {
    **{f"a document with {case}": [doc("b"), entry] for case, (entry, _, _) in DOCUMENTS.items()},
    "content in the last one only": [{**doc("a"), "page_content": ""}, doc("b")],
    "no content": [{**doc("a"), "page_content": ""}],
    "content that is null": [{**doc("a"), "page_content": None}],
    "content that is a number": [{**doc("a"), "page_content": 7}],
    "half a character": '[{"page_content": "\\ud800", "metadata": {"doc_uri": "a"}}]',
    "malformed text": '[{"page_content": "\\x", "metadata": {"doc_uri": "a"}}]',
    "no documents": [],
    "nothing": None,
}


@pytest.mark.parametrize("case", GLIMPSED)
def test_a_verdict_is_the_same_whether_documents_are_read_or_only_looked_at(case: str) -> None:
    text = json.dumps(retrieved(GLIMPSED[case]))
    read, glimpsed = (derive(decode_trace(text), values) for values in (True, False))
    for holds in (lambda d: d.content, lambda d: d.doc_uri):
        assert any(map(holds, glimpsed.retrieved_context or ())) == any(map(holds, read.retrieved_context or ()))
    assert (glimpsed.retrieved_context is None, glimpsed.retrieved_context == []) == (
        read.retrieved_context is None,
        read.retrieved_context == [],
    )
    assert glimpsed.notes == read.notes


RETRIEVERS = {
    "the last to start, not to stand or to end": [
        span("2", "1", "RETRIEVER", start=30, end=40, outputs=[doc("a")]),
        span("3", "1", "RETRIEVER", start=20, end=90, outputs=[doc("b")]),
    ],
    "a nested one is a step of its parent": [
        span("2", "1", "RETRIEVER", outputs=[doc("a")]),
        span("3", "2", "RETRIEVER", outputs=[doc("b")]),
    ],
    "nested with a span between": [
        span("2", "1", "RETRIEVER", outputs=[doc("a")]),
        span("3", "2", "CHAIN"),
        span("4", "3", "RETRIEVER", outputs=[doc("b")]),
    ],
    "below a tool it counts": [
        span("2", "1", "TOOL", outputs=[doc("b")]),
        span("3", "2", "RETRIEVER", outputs=[doc("a")]),
    ],
}


@pytest.mark.parametrize("case", RETRIEVERS)
def test_retriever(case: str) -> None:
    assert row(trace(ROOT, *RETRIEVERS[case]))["retrieved_context"] == [document("a", "on a")]


def test_a_retriever_that_is_the_root() -> None:
    given = trace(
        span("1", None, "RETRIEVER", inputs="Hi", outputs=[doc("a")]), span("2", "1", "RETRIEVER", outputs=[doc("b")])
    )
    assert row(given)["retrieved_context"] == [document("a", "on a")]


# ---------------------------------------------------------------------------------------------------------------------
# rules: predicted_trajectory


def test_tools_in_the_order_of_their_starts() -> None:
    given = trace(ROOT, span("3", "1", "TOOL", name="b"), span("2", "1", "TOOL", name="a", inputs={"q": "x"}))
    assert row(given)["predicted_trajectory"] == [call("a", q="x"), call("b")]


def test_a_tool_that_raised_still_counts() -> None:
    raised = {"status": {"code": "STATUS_CODE_ERROR", "message": "ValueError: no"}}
    given = trace(ROOT, span("2", "1", "TOOL", name="search", inputs={"q": "x"}, **raised))
    assert row(given)["predicted_trajectory"] == [call("search", q="x")]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"name": "search"}, "search"),
        ({"name": "search", "function": "run"}, "search"),
        ({"name": "search_2", "function": "search"}, "search"),
        ({"name": "search_2"}, "search_2"),
        ({"name": "search_2", "function": "run"}, "search_2"),
        ({"name": "sha_256", "function": "sha_256"}, "sha_256"),
        ({"name": "search_x", "function": "search"}, "search_x"),
        ({"name": "search_2", "function": "search", "tool": "web.search"}, "web.search"),
    ],
)
def test_tool_name(given: Row, name: str) -> None:
    assert row(trace(ROOT, span("2", "1", "TOOL", **given)))["predicted_trajectory"] == [call(name)]


def asks(*names: str) -> list[Row]:
    return [{"id": n, "type": "function", "function": {"name": n, "arguments": '{"q": "x"}'}} for n in names]


TOOL_CALLS = {
    "choices": [span("2", "1", "CHAT_MODEL", outputs=completion(None, tool_calls=asks("a", "b")))],
    "messages": [span("2", "1", "LLM", outputs={"messages": [assistant("", tool_calls=asks("a", "b"))]})],
    "in the order of the models": [
        span("3", "1", "LLM", outputs=completion(None, tool_calls=asks("b"))),
        span("2", "1", "LLM", outputs=completion(None, tool_calls=asks("a"))),
        span("4", "1", "LLM", outputs=completion("Hello")),
    ],
}


@pytest.mark.parametrize("case", TOOL_CALLS)
def test_tool_calls_of_the_models_where_there_are_no_tool_spans(case: str) -> None:
    assert row(trace(ROOT, *TOOL_CALLS[case]))["predicted_trajectory"] == [call("a", q="x"), call("b", q="x")]


def test_tool_spans_beat_tool_calls() -> None:
    model = span("2", "1", "CHAT_MODEL", outputs=completion(None, tool_calls=asks("a", "b")))
    given = trace(ROOT, model, span("3", "1", "TOOL", name="a", inputs={"q": "x"}))
    assert row(given)["predicted_trajectory"] == [call("a", q="x")]


def test_tool_calls_of_other_spans_are_none() -> None:
    given = trace(ROOT, span("2", "1", "CHAIN", outputs=completion(None, tool_calls=asks("a"))))
    assert "predicted_trajectory" not in row(given)


# ---------------------------------------------------------------------------------------------------------------------
# rules: token counts


def usage(given: int, made: int) -> Row:
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}


def openai(given: int, made: int) -> Row:
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def used(given: int, made: int) -> Row:
    return {"usage": openai(given, made)}


METADATA = {"trace_metadata": {"mlflow.trace.tokenUsage": json.dumps(usage(3, 4))}}

TOKENS = {
    "mlflow.chat.tokenUsage": trace(ROOT, span("2", "1", "CHAT_MODEL", usage=usage(3, 4))),
    "it beats the output": trace(ROOT, span("2", "1", "LLM", usage=usage(3, 4), outputs=used(9, 9))),
    "usage of the output": trace(ROOT, span("2", "1", "LLM", outputs=used(3, 4))),
    "in other words": trace(ROOT, span("2", "1", "LLM", outputs={"usage": usage(3, 4)})),
    "the total is the sum": trace(ROOT, span("2", "1", "LLM", usage={"input_tokens": 3, "output_tokens": 4})),
    "two models": trace(
        ROOT, span("2", "1", "LLM", usage=usage(1, 2)), span("3", "1", "CHAT_MODEL", outputs=used(2, 2))
    ),
    "a wrapper and what it wraps": trace(
        ROOT, span("2", "1", "LLM", usage=usage(3, 4)), span("3", "2", "CHAT_MODEL", usage=usage(3, 4))
    ),
    "a wrapper, with a span between": trace(
        ROOT,
        span("2", "1", "LLM", outputs=used(3, 4)),
        span("3", "2", "CHAIN"),
        span("4", "3", "CHAT_MODEL", outputs=used(3, 4)),
    ),
    "a wrapper that is the root": trace(
        span("1", None, "LLM", inputs="Hi", outputs=used(3, 4)), span("2", "1", "CHAT_MODEL", outputs=used(3, 4))
    ),
    "a wrapper that does not say": trace(
        ROOT,
        span("2", "1", "LLM"),
        span("3", "2", "CHAT_MODEL", usage=usage(1, 2)),
        span("4", "2", "CHAT_MODEL", usage=usage(2, 2)),
    ),
    "other spans are not counted": trace(
        ROOT, span("2", "1", "LLM", usage=usage(3, 4)), span("3", "1", "EMBEDDING", usage=usage(9, 9))
    ),
    "spans beat the trace's metadata": trace(
        ROOT,
        span("2", "1", "LLM", usage=usage(3, 4)),
        trace_metadata={"mlflow.trace.tokenUsage": json.dumps(usage(9, 9))},
    ),
    "metadata": trace(ROOT, span("2", "1", "LLM", outputs="Hello"), **METADATA),
    "metadata of v2": trace(ROOT, request_metadata=METADATA["trace_metadata"]),
    "metadata beats the root's output": trace(span(kind="AGENT", inputs="Hi", outputs=used(9, 9)), **METADATA),
    "the root's output": trace(span(kind="AGENT", inputs="Hi", outputs={**completion("Hello"), **used(3, 4)})),
    "NaN beside the usage": trace(ROOT, span("2", "1", "LLM", outputs={"score": float("nan"), **used(3, 4)})),
    "half of a character beside the usage": trace(
        ROOT, span("2", "1", "LLM", outputs={**completion("\ud800"), **used(3, 4)})
    ),
}


@pytest.mark.parametrize("case", TOKENS)
def test_tokens(case: str) -> None:
    found = row(json.dumps(TOKENS[case]))
    assert {k: v for k, v in found.items() if k.endswith("_token_count")} == tokens(3, 4, 7)


def test_no_usage_is_no_count() -> None:
    assert not [k for k in row(trace(ROOT, span("2", "1", "LLM", outputs={"usage": None}))) if "token" in k]


# ---------------------------------------------------------------------------------------------------------------------
# rules: latency, failure, error, ids

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("info", "seconds"),
    [
        ({"execution_duration_ms": 1500}, 1.5),
        ({"execution_time_ms": 1500}, 1.5),
        ({"execution_duration_ms": 0}, 0.0),
        ({"execution_duration_ms": None}, 4.0),
        ({}, 4.0),
    ],
)
def test_latency(info: Row, seconds: float) -> None:
    given = trace(span("2", "1", start=0, end=9 * SECOND), span("1", start=SECOND, end=5 * SECOND), **info)
    assert row(given)["latency_seconds"] == seconds


def test_a_root_that_never_ended_has_no_latency() -> None:
    assert "latency_seconds" not in row(trace(span(end=None)))


def raised(message: str) -> Row:
    event = {"name": "exception", "attributes": {"exception.type": "ValueError", "exception.message": message}}
    return {"status": {"code": "STATUS_CODE_ERROR", "message": f"ValueError: {message}"}, "events": [event]}


FAILURES: dict[str, tuple[Row, tuple[bool | None, str | None]]] = {
    "the root's exception first": (
        trace(span("1", start=20, **raised("root")), span("2", "1", start=10, **raised("tool")), state="ERROR"),
        (True, "root"),
    ),
    "else the first one": (
        trace(span("1"), span("3", "1", **raised("later")), span("2", "1", **raised("first")), state="ERROR"),
        (True, "first"),
    ),
    "status of v2": ({"info": {"status": "ERROR"}, "data": {"spans": [span(**raised("no"))]}}, (True, "no")),
    "an error without an exception": (trace(span(), state="ERROR"), (True, None)),
    "all went well": (trace(span()), (False, None)),
    "a tool failed, the trace did not": (trace(ROOT, span("2", "1", "TOOL", **raised("no"))), (False, None)),
    "the state is missing": (trace(span(**raised("no")), state=None), (True, "no")),
    "state and status are missing": (trace(span(), state=None), (None, None)),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failure_and_error(case: str) -> None:
    given, expected = FAILURES[case]
    found = row(given)
    assert (found.get("failure"), found.get("error")) == expected


def test_a_failure_behind_the_state_ok_is_said() -> None:
    assert codes(trace(ROOT, span("2", "1", "TOOL", **raised("no")))) == ["AE610"]
    assert codes(trace(ROOT, span("2", "1", "TOOL", **raised("no")), state="ERROR")) == []


@pytest.mark.parametrize(
    ("info", "id"),
    [
        ({"trace_id": "tr-1", "client_request_id": "c1"}, "c1"),
        ({"trace_id": "tr-1", "client_request_id": None}, "tr-1"),
        ({"request_id": "r1"}, "r1"),
    ],
)
def test_request_id(info: Row, id: str) -> None:
    assert row({"info": info, "data": {"spans": [ROOT]}})["request_id"] == id


@pytest.mark.parametrize("key", ["trace_metadata", "request_metadata"])
def test_session(key: str) -> None:
    assert row(trace(ROOT, **{key: {"mlflow.trace.session": "s1"}}))["session_id"] == "s1"


# ---------------------------------------------------------------------------------------------------------------------
# rules: expectations


def expects(name: str, value: Any, **more: Any) -> Row:
    """As mlflow writes it: lists and dicts are JSON text in serialized_value."""
    packed = {"serialization_format": "JSON_FORMAT", "value": json.dumps(value)}
    held = {"serialized_value": packed} if isinstance(value, list | dict) else {"value": value}
    return {"assessment_name": name, "expectation": held, "valid": True, **more}


TRUTHS = ("expected_", "guidelines", "reference_trajectory", "custom_expected")

EXPECTATIONS: dict[str, tuple[list[Any], Row]] = {
    "response": ([expects("expected_response", "Hello")], {"expected_response": "Hello"}),
    "facts": ([expects("expected_facts", ["a", "b"])], {"expected_facts": ["a", "b"]}),
    "guidelines by name": ([expects("guidelines", {"tone": ["kind"]})], {"guidelines": {"tone": ["kind"]}}),
    "guidelines": ([expects("guidelines", ["be kind"])], {"guidelines": {"guidelines": ["be kind"]}}),
    "documents": (
        [expects("expected_retrieved_context", [{"doc_uri": "a"}])],
        {"expected_retrieved_context": [document("a", None)]},
    ),
    "tool calls": (
        [expects("expected_tool_calls", [{"name": "search", "arguments": {"q": "x"}}, {"name": "now"}])],
        {"reference_trajectory": [call("search", q="x"), call("now")]},
    ),
    "tool calls in our words, with an id, and arguments as text": (
        [expects("expected_tool_calls", [call("f", x=1), {"name": "g", "id": "c1", "arguments": '{"y": 2}'}])],
        {"reference_trajectory": [call("f", x=1), call("g", y=2)]},
    ),
    "documents with keys that nobody reads": (
        [expects("expected_retrieved_context", [{"doc_uri": "a", "score": 0.5}])],
        {"expected_retrieved_context": [document("a", None)]},
    ),
    "lists as text": (
        [expects("expected_facts", '["a"]'), expects("guidelines", '{"tone": ["be nice"]}')],
        {"expected_facts": ["a"], "guidelines": {"tone": ["be nice"]}},
    ),
    "text that looks like a list": ([expects("expected_response", "[1]")], {"expected_response": "[1]"}),
    "a trajectory": (
        [expects("reference_trajectory", [call("search", q="x"), {"tool_name": "now"}])],
        {"reference_trajectory": [call("search", q="x"), call("now")]},
    ),
    "names of the user's own": (
        [expects("tone", "kind"), expects("score", 3), expects("parts", {"a": [1]}), expects("polite", False)],
        {"custom_expected": {"tone": "kind", "score": 3, "parts": {"a": [1]}, "polite": False}},
    ),
    "overridden": (
        [expects("expected_response", "Bye", valid=False), expects("expected_response", "Hello", overrides="a-1")],
        {"expected_response": "Hello"},
    ),
    "withdrawn": ([expects("expected_response", "Bye", valid=False)], {}),
    "validity is not said": ([expects("expected_response", "Hello", valid=None)], {"expected_response": "Hello"}),
    "feedback is none": ([{"assessment_name": "thumbs", "feedback": {"value": True}, "valid": True}], {}),
    "odd ones": ([7, {}, {"expectation": {"value": "x"}}, {"assessment_name": "a", "expectation": None}], {}),
}


@pytest.mark.parametrize("case", EXPECTATIONS)
def test_expectations(case: str) -> None:
    assessments, expected = EXPECTATIONS[case]
    found = row(trace(ROOT, assessments=assessments))
    assert {k: v for k, v in found.items() if k.startswith(TRUTHS)} == expected


def test_an_expectation_of_the_wrong_type_is_left_out_and_said() -> None:
    given = trace(ROOT, assessments=[expects("expected_facts", "a"), expects("tone", "kind")])
    assert "expected_facts" not in row(given)
    assert row(given)["custom_expected"] == {"tone": "kind"}
    assert codes(given) == ["AE603"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expected_response", " "),
        ("expected_response", ["a"]),
        ("expected_facts", '["a"'),
        ("guidelines", 3),
        ("expected_retrieved_context", [{"content": "a"}]),
        ("expected_tool_calls", [{"arguments": {}}]),
        ("expected_tool_calls", "f"),
        ("reference_trajectory", ["f"]),
    ],
)
def test_an_expectation_that_no_cell_could_hold_is_left_out(name: str, value: Any) -> None:
    given = trace(ROOT, assessments=[expects(name, value)])
    assert [k for k in row(given) if k.startswith(TRUTHS)] == []
    assert codes(given) == ["AE603"]


def test_what_a_cell_would_be_warned_of_an_expectation_is() -> None:
    given = trace(ROOT, assessments=[expects("expected_retrieved_context", [{"doc_uri": "a", "score": 0.5}])])
    (issue,) = validate_eval_set([{"trace": given}]).examples["AE406"]
    assert (issue.column, issue.path) == ("trace", "trace.info.assessments.expected_retrieved_context[0].score")


# ---------------------------------------------------------------------------------------------------------------------
# columns and traces


def test_a_column_wins_over_the_trace_and_the_difference_is_said() -> None:
    given = {"request": "Hi", "response": "Bye", "trace": trace(ROOT)}
    assert row(given)["response"] == "Bye"
    assert codes(given) == ["AE605"]
    assert codes({**given, "response": "Hello"}) == []


# ---------------------------------------------------------------------------------------------------------------------
# tolerance: mlflow rejects many of these


DAMAGED: dict[str, tuple[Any, list[str]]] = {
    "unknown keys": (trace({**ROOT, "flags": 3, "links": [{}]}, new_in_4={"x": [1]}, tags=None), []),
    "no state": (trace(ROOT, state=None), []),
    "an unknown state": (trace(ROOT, state="PAUSED"), []),
    "no info": ({"data": {"spans": [ROOT]}}, []),
    "info that is none": ({"info": [], "data": {"spans": [ROOT]}}, ["AE603"]),
    "state as a number": (trace(ROOT, state=1), ["AE603"]),
    "metadata as a list": (trace(ROOT, trace_metadata=[1]), ["AE603"]),
    "duration as text": (trace(ROOT, execution_duration_ms="fast"), ["AE603"]),
    "assessments as text": (trace(ROOT, assessments='"expectation"'), []),
    "a number among the spans": (trace(17, ROOT), ["AE603"]),
    "null among the spans": (trace(ROOT, None), ["AE603"]),
    "a span without a name": (trace({**ROOT, "name": None}), []),
    "a name as a number": (trace({**ROOT, "name": 7}), ["AE603"]),
    "a kind as a number": (trace(ROOT, {**span("2", "1"), "attributes": {"mlflow.spanType": 7}}), ["AE603"]),
    "attributes as a list": (trace(ROOT, {**span("2", "1"), "attributes": [1]}), ["AE603"]),
    "no attributes": (trace(ROOT, {**span("2", "1"), "attributes": None}), []),
    "status as a list": (trace({**ROOT, "status": ["OK"]}), ["AE603"]),
    "events as text": (trace({**ROOT, "events": "exception"}, state="ERROR"), []),
    "a span that is its own parent": (trace(ROOT, span("2", "2", "RETRIEVER", outputs=[])), []),
    "two spans that are each other's parent": (
        trace(ROOT, span("2", "3", "LLM", usage=usage(1, 2)), span("3", "2", "LLM", usage=usage(1, 2))),
        [],
    ),
    "models that are their own parents": (
        trace(
            span("1", "1", "LLM", inputs="Hi", outputs="Hello", usage=usage(1, 2)),
            span("2", "2", "LLM", usage=usage(1, 2)),
        ),
        [],
    ),
    "spans without ids": (
        trace({k: v for k, v in ROOT.items() if k != "span_id"}, {**span("2", kind="LLM"), "span_id": None}),
        [],
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_costs_no_more_than_the_damaged_part(case: str) -> None:
    given, remarks = DAMAGED[case]
    assert {k: row(given).get(k) for k in ("request", "response")} == {"request": ASKED, "response": "Hello"}
    assert codes(given) == remarks


@pytest.mark.parametrize(("start", "end"), [("1000", "3500000001000"), (1000.0, 3500000001000.0)])
def test_times_as_text_or_float(start: Any, end: Any) -> None:
    """protobuf's JSON writes 64-bit integers as text."""
    assert row(trace(span(start=start, end=end, inputs="Hi")))["latency_seconds"] == 3500.0


ODD_NUMBERS = {
    "a word": "noon",
    "no text": "",
    "a digit that is no number": "²",
    "too many digits": "1" * 5000,
    "beyond every float": 10**400,
    "infinite": float("inf"),
    "negative": -1,
    "true": True,
    "a list": [1],
}


@pytest.mark.parametrize("case", ODD_NUMBERS)
def test_numbers_that_are_none(case: str) -> None:
    odd = ODD_NUMBERS[case]
    given = trace({**ROOT, "start_time_unix_nano": odd, "end_time_unix_nano": odd})
    assert row(json.dumps(given))["response"] == "Hello"
    assert row(json.dumps(trace(ROOT, execution_duration_ms=odd)))["response"] == "Hello"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_nan_in_the_trace(literal: str) -> None:
    given = json.dumps(trace(ROOT, score=0)).replace('"score": 0', f'"score": {literal}')
    assert row(given)["response"] == "Hello"
    assert codes(given) == ["AE611"]


def test_nan_in_what_a_span_holds() -> None:
    nan = float("nan")
    root = span(inputs={"messages": [user("Hi")], "top_p": nan}, outputs={"content": "Hello", "score": nan})
    tool = span("3", "1", "TOOL", name="search", inputs={"q": "x", "boost": nan})
    retriever = span("2", "1", "RETRIEVER", outputs=[{**doc("a"), "score": nan}])
    found = row(trace(root, retriever, tool))
    assert (found["request"], found["response"]) == (ASKED, "Hello")
    assert found["retrieved_context"] == [document("a", "on a")]
    assert found["predicted_trajectory"] == [call("search", q="x", boost=None)]


def test_nan_in_the_attributes_of_flat_v2() -> None:
    one = flat_span("0x1", None, (0, 1), "OK", spanInputs="Hi", spanOutputs={"content": "Hello", "score": float("nan")})
    assert row({"spans": [one]})["response"] == "Hello"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(trace(span(inputs="Hi", outputs="Hello \ud800"))),
        json.dumps(trace({**span(), "attributes": {"mlflow.spanInputs": "Hi", "mlflow.spanOutputs": "Hello \ud800"}})),
    ],
    ids=["in the inner JSON", "in the outer JSON"],
)
def test_half_of_a_character(text: str) -> None:
    """A lone surrogate is JSON, but no UTF-8 file can hold it."""
    found = row(text)
    assert found["request"] == ASKED
    assert found["response"].startswith("Hello ")
    found["response"].encode("utf-8")


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def attribute(text: str) -> str:
    return json.dumps({**span(), "attributes": {"mlflow.spanInputs": text, "mlflow.spanOutputs": text}})


DEEP: dict[str, Callable[[str], str]] = {
    "in a key that nobody reads": lambda deep: f'{{"info": {{"tags": {deep}}}, "data": {{"spans": []}}}}',
    "for a span": lambda deep: f'{{"info": {{}}, "data": {{"spans": [{deep}]}}}}',
    "for an attribute": lambda deep: attribute("Hi").replace('"Hi"', deep),
    "in an attribute": lambda deep: f'{{"spans": [{attribute(deep)}]}}',
    "in an attribute, as objects": lambda deep: (
        f'{{"spans": [{attribute(deep.replace("[]", "1").replace("[", OPEN).replace("]", "}"))}]}}'
    ),
    "in the documents": lambda deep: json.dumps(trace(ROOT, span("2", "1", "RETRIEVER", outputs=deep))),
    "in the attributes of flat v2": lambda deep: json.dumps({"spans": [{"attributes": f'{{"x": {deep}}}'}]}),
    "in the steps of v1": lambda deep: f'{{"steps": {deep}}}',
}
OPEN = '{"a":'


@pytest.mark.parametrize("case", DEEP)
def test_depth_raises_nothing(case: str) -> None:
    """Python gives up at about 1000; where exactly depends on who calls."""
    for depth in (500, *range(880, 1010, 2), 100_000):
        said(DEEP[case](nested(depth)))


def said(text: str | bytes) -> list[str]:
    """The codes of the notes on a trace: those of its derivation, or those that say why there is none."""
    found = decode_trace(text)
    notes = derive(found).notes if isinstance(found, Trace) else found
    assert isinstance(found, Trace) or notes, "no trace and no reason"
    return [rule.code for rule, _, _ in notes]


def test_a_trace_cut_at_any_byte_is_malformed() -> None:
    whole = text_of("mlflow_v3_6_0").strip().encode()
    assert {tuple(said(whole[:size])) for size in range(len(whole))} == {("AE601",)}
    assert "AE601" not in said(whole)


def test_a_value_cut_at_any_character_is_text() -> None:
    whole = json.dumps(completion("Hello"))
    for size in range(1, len(whole)):
        found = row(trace({**span(), "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": whole[:size]}}))
        assert found["response"] == whole[:size]


def test_bytes_that_are_no_text() -> None:
    whole = json.dumps(trace(ROOT, assessments=[expects("tone", "kind")])).encode()
    for at in range(len(whole)):
        said(whole[:at] + b"\xff" + whole[at + 1 :])


KEYS = (
    *("info", "data", "spans", "steps", "attributes", "events", "name", "span_id", "parent_span_id", "status", "code"),
    *("context", "start_time_unix_nano", "end_time", "trace_id", "state", "trace_metadata", "assessments", "messages"),
    *("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage", "mlflow.trace.session"),
    *("type", "retrieval", "chunks", "text_generation", "choices", "message", "content", "role", "tool_calls", "usage"),
    *("input", "output", "documents", "metadata", "doc_uri", "expectation", "assessment_name", "serialized_value"),
)
TYPES = st.sampled_from(["RETRIEVER", "TOOL", "LLM", '"CHAT_MODEL"', "assistant", "STATUS_CODE_ERROR", "0x1", ""])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TYPES
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
        | inner.map(json.dumps)  # JSON text in JSON, as in attributes
    ),
    max_leaves=30,
)


@settings(max_examples=200)
@given(VALUES)
def test_no_json_raises(value: Any) -> None:
    said(json.dumps(value))


@settings(max_examples=100)
@given(st.lists(VALUES, max_size=4), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_no_spans_raise(spans: list[Any], info: Row) -> None:
    said(json.dumps(trace(ROOT, *spans, **info)))


@settings(max_examples=200)
@given(st.data())
def test_no_change_of_a_real_trace_raises(data: st.DataObject) -> None:
    changed = json.loads(text_of(data.draw(st.sampled_from(sorted(FILES)))))
    place: Any = changed
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 3)) == 0:
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    said(json.dumps(changed))


@settings(max_examples=200)
@given(st.text() | st.binary())
def test_no_text_raises(text: str | bytes) -> None:
    said(text)


# ---------------------------------------------------------------------------------------------------------------------
# what is no trace


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "AE601"),
        ("  ", "AE601"),
        ('{"info": {"trace_id": "tr-1"', "AE601"),
        ("Trace(trace_id=tr-1)", "AE601"),
        ("{}", "AE602"),
        ('{"foo": 1}', "AE602"),
        ("[]", "AE602"),
        ("17", "AE602"),
        ("null", "AE602"),
        ('"tr-1"', "AE602"),
    ],
)
def test_no_trace(text: str, code: str) -> None:
    assert said(text) == [code]


def test_unreadable_traces_keep_their_rows_and_are_warned_of() -> None:
    with pytest.warns(UnreadableTrace, match="1 of 2 traces could not be read; row 0"):
        first, second = rows(['{"info": {"trace', trace(ROOT)])
    assert first == {}
    assert second["response"] == "Hello"


def test_previews_are_never_content() -> None:
    """They are cut short."""
    previews = {"mlflow.traceInputs": '"Hi"', "mlflow.traceOutputs": '"Hello"'}
    info = {"request_preview": "Hi", "response_preview": "Hello", "trace_metadata": previews}
    for spans in ([], [span()]):
        assert not {"request", "response"} & row(trace(*spans, **info)).keys()
    assert codes(trace(**info)) == ["AE604"]


def test_no_traces_at_all(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="no traces found"):
        eval_set_from_traces(pd.DataFrame({"request": ["Hi"], "response": ["Hello"]}))
    with pytest.raises(EvalSetError, match="no-such-file"):
        eval_set_from_traces(tmp_path / "no-such-file.jsonl")


@pytest.mark.parametrize("name", ["golden.csv", "evaluation.json"])
def test_files_of_conversations_hold_no_traces(samples: Path, name: str) -> None:
    with pytest.raises(EvalSetError, match="no traces found"):
        eval_set_from_traces(samples / name)


@pytest.mark.parametrize("text", ['{"info": null, "data": {}, "spans": false}', '{"data": {"spans": 3}, "spans": [2]}'])
def test_spans_that_are_no_list_are_left_out_wherever_they_stand(text: str) -> None:
    trace = decode_trace(text)
    assert isinstance(trace, Trace)
    assert [rule.code for rule, *_ in trace.notes] == ["AE603"] * len(trace.notes) != []
    assert trace.spans == []
