"""Traces for tests: the smallest ones that show a rule, and real ones of many versions of mlflow."""

from __future__ import annotations

import json
from typing import Any

from agent_eval_schema import eval_set_from_traces
from agent_eval_schema.api import validate_traces
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


def views(row: Row) -> Row:
    """The columns that metrics read, without the originals."""
    return {name: value for name, value in row.items() if name not in ("inputs", "outputs", "expectations")}


def codes(trace: Any) -> list[str]:
    """What is said of the trace: the families 4 (documents) and 6, without the notice that a request was derived."""
    found = [i.code for i in validate_traces([trace]).iter_issues()]
    return sorted(c for c in found if c[:3] in ("AE4", "AE6") and c != "AE606")


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


def text_of(name: str) -> str:
    return (DATA / f"{name}.json").read_text(encoding="utf-8")


def doc(uri: str) -> Row:
    return {"page_content": f"on {uri}", "metadata": {"doc_uri": uri}}


def usage(given: int, made: int) -> Row:
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}


def raised(message: Any) -> Row:
    event = {"name": "exception", "attributes": {"exception.type": "ValueError", "exception.message": message}}
    return {"status": {"code": "STATUS_CODE_ERROR", "message": f"ValueError: {message}"}, "events": [event]}


def expects(name: str, value: Any, **more: Any) -> Row:
    """As mlflow writes it: lists and dicts are JSON text in serialized_value."""
    packed = {"serialization_format": "JSON_FORMAT", "value": json.dumps(value)}
    held = {"serialized_value": packed} if isinstance(value, list | dict) else {"value": value}
    return {"assessment_name": name, "expectation": held, "valid": True, **more}
