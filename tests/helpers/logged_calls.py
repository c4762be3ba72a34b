"""Rows of a payload table as an endpoint logs them, for the tests of the build."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

START = datetime(2025, 11, 3, 9, tzinfo=timezone.utc)

PAYLOAD = pa.schema(
    [
        ("databricks_request_id", pa.string()),
        ("request_time", pa.timestamp("us", "UTC")),
        ("status_code", pa.int32()),
        ("execution_duration_ms", pa.int64()),
        ("request", pa.string()),
        ("response", pa.string()),
        ("logging_error_codes", pa.list_(pa.string())),
        ("served_entity_id", pa.string()),
        ("requester", pa.string()),
    ]
)
"""The columns of an AI Gateway table that are read."""


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def logged(request_id: str | None, request: Any, response: Any, minute: float = 0, **more: Any) -> Row:
    """One row; objects are logged as their JSON text."""
    return {
        "databricks_request_id": request_id,
        "request_time": at(minute),
        "status_code": 200,
        "execution_duration_ms": 800,
        "request": request if request is None or isinstance(request, str) else json.dumps(request),
        "response": response if response is None or isinstance(response, str) else json.dumps(response),
        "logging_error_codes": [],
        "served_entity_id": "agent-1",
        "requester": "svc",
        **more,
    }


def chat(
    request_id: str | None, question: str = "How many days?", answer: str = "80.", minute: float = 0, **more: Any
) -> Row:
    trace = more.pop("trace", None)
    response: Row = {"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}}]}
    if trace is not None:
        response["databricks_output"] = {"trace": trace}
    return logged(request_id, {"messages": [{"role": "user", "content": question}]}, response, minute, **more)


def batch(request_id: str, questions: list[str], answers: list[str], minute: float = 0) -> Row:
    records = [{"query": q} for q in questions]
    return logged(request_id, {"dataframe_records": records}, {"predictions": answers}, minute)


def feedback(
    about: str,
    value: str | None = "positive",
    *,
    edit: str | None = None,
    chunks: list[Row] = [],  # noqa: B006 -- never changed
    source: str = "ana",
    minute: float = 30,
) -> Row:
    ratings = {"answer_correct": {"value": value}} if value else {}
    text = [{"step_id": None, "ratings": ratings, "suggested_output": edit}] if value or edit else []
    record = {
        "request_id": about,
        "source": json.dumps({"id": source, "type": "human"}),
        "text_assessments": json.dumps(text),
        "retrieval_assessments": json.dumps(chunks),
    }
    name = f"fb-{about}-{source}-{minute}-{value}"
    return logged(name, {"dataframe_records": [record]}, "", minute)


def chunk(step: str, position: int, value: str = "positive") -> Row:
    return {"step_id": step, "position": position, "ratings": {"answer_correct": {"value": value}}}


def retrieval(step: str, *documents: tuple[str, str], start: int = 0) -> Row:
    """A RETRIEVER span that found (doc_uri, content)."""
    found = [{"page_content": text, "metadata": {"doc_uri": uri}} for uri, text in documents]
    return span(step, "RETRIEVER", "parental leave", found, parent="root", start=start)


def span(span_id: str, kind: str, inputs: Any, outputs: Any, parent: str | None = None, start: int = 0) -> Row:
    return {
        "name": kind.lower(),
        "span_id": span_id,
        "parent_span_id": parent,
        "start_time_unix_nano": 1762160471_000000000 + start,
        "end_time_unix_nano": 1762160472_000000000,
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps(inputs),
            "mlflow.spanOutputs": json.dumps(outputs),
        },
    }


def trace(request_id: str, question: str, answer: str, *spans: Row) -> Row:
    messages = {"messages": [{"role": "user", "content": question}]}
    info = {"trace_id": f"tr-{request_id}", "client_request_id": request_id, "state": "OK", "execution_duration_ms": 7}
    return {"info": info, "data": {"spans": [span("root", "AGENT", messages, answer), *spans]}}


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=PAYLOAD)


EVERYTHING = [
    chat("good", minute=1),
    chat("good", minute=2),
    batch("batch", ["a?", "b?"], ["A", "B"]),
    batch("odd", ["a?", "b?"], ["A"]),
    chat("late", minute=90),
    chat("failed", status_code=500),
    logged("broken", '{"messages": [', "{}"),
    logged("large", None, None, logging_error_codes=["MAX_REQUEST_SIZE_EXCEEDED"]),
    logged("silent", "{}", {"choices": []}),
    feedback("good"),
]
"""Ten rows, eleven records: a row of each fate."""
