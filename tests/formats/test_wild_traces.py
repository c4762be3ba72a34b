"""Wild variations of MLflow traces: those that versions 2 and 3 logged, with other values and without what is optional,
as traces, artifacts and frames of search_traces in any kind of file: detected, valid, and each saying the same."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_eval_schema import convert_eval_set, validate_eval_set
from tests.helpers.traces import DATA
from tests.helpers.wild import EXAMPLES, NAMES, VALUES, WORDS, files_of, write

many = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
pytestmark = pytest.mark.property

Trace = dict[str, Any]
LOGGED = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*.json"))]
OPTIONAL = (
    *("client_request_id", "assessments", "request_preview", "response_preview", "tags"),
    *("execution_duration_ms", "execution_time_ms", "trace_metadata", "request_metadata"),
)
ASKED = st.one_of(
    st.fixed_dictionaries({"messages": st.just([{"role": "user", "content": "Hi"}])}, optional={"temperature": VALUES}),
    st.fixed_dictionaries({"query": WORDS}),
    st.dictionaries(NAMES, VALUES, min_size=1, max_size=2),
    st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": WORDS}), min_size=1, max_size=2),
    WORDS,
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """A trace that was logged, of another question and answer, without some of what is optional, with other keys."""
    trace = copy.deepcopy(draw(st.sampled_from(LOGGED)))
    info, spans = trace["info"], trace["data"]["spans"]
    for name in draw(st.lists(st.sampled_from(OPTIONAL), max_size=4)):
        info.pop(name, None)
    info.update(draw(st.dictionaries(NAMES.map(lambda name: f"x_{name}"), VALUES, max_size=1)))
    info["trace_id" if "trace_id" in info else "request_id"] = f"tr-{draw(st.uuids()).hex}"
    if info.get("client_request_id"):
        info["client_request_id"] = f"crid-{draw(st.uuids()).hex}"
    for key in ("request", "response"):
        if draw(st.booleans()):
            trace["data"].pop(key, None)
    root = next((s for s in spans if not (s.get("parent_span_id") or s.get("parent_id"))), None)
    if root is not None and draw(st.booleans()):
        root["attributes"]["mlflow.spanInputs"] = json.dumps(draw(ASKED))
        trace["data"].pop("request", None)
    if root is not None and draw(st.booleans()):
        root["attributes"]["mlflow.spanOutputs"] = json.dumps(draw(WORDS | VALUES))
        trace["data"].pop("response", None)
    if draw(st.booleans()):
        for span in spans:
            for key in ("events", "links", "kind"):
                span.pop(key, None)
    return trace


SETS = st.lists(traces(), min_size=1, max_size=3)


def frame_row(trace: Trace, *, as_text: bool) -> dict[str, Any]:
    """A row of mlflow.search_traces."""
    info, data = trace["info"], trace["data"]
    if "trace_id" in info:
        names = ("trace_id", "client_request_id", "state", "request_time", "trace_metadata", "tags", "assessments")
        own = {"execution_duration": info.get("execution_duration_ms")}
    else:
        names = ("request_id", "timestamp_ms", "status", "execution_time_ms", "request_metadata", "tags", "assessments")
        own = {}
    whole = json.dumps(trace) if as_text else trace
    beside = {"trace": whole, "spans": data["spans"], "request": data.get("request"), "response": data.get("response")}
    return {**{name: info.get(name) for name in names}, **own, **beside}


def said(path: str, format: str) -> list[Any]:
    report = validate_eval_set(path)
    assert (report.format, report.ok) == (format, True), report.to_text()
    return [{k: v for k, v in row.items() if k in READ} for row in report.iter_rows()]


READ = (
    *("request_id", "request", "response", "retrieved_context", "predicted_trajectory", "session_id"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds", "failure"),
)


@given(st.data())
@many
def test_traces_in_the_wild(tmp_path: Path, data: st.DataObject) -> None:
    logged = data.draw(SETS)
    path = write(tmp_path, *data.draw(files_of(logged)))
    rows = said(path, "traces")
    assert len(rows) == len(logged)
    as_rows = convert_eval_set(path, "databricks")
    assert as_rows.converted == len(logged)
    assert said_of(as_rows.data) == rows


def said_of(data: Any) -> list[Any]:
    return [{k: v for k, v in row.items() if k in READ} for row in validate_eval_set(data).iter_rows()]


@given(st.data())
@many
def test_frames_of_search_traces_in_the_wild(tmp_path: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["trace_id", "request_id"]))
    logged = [trace for trace in data.draw(SETS) if kind in trace["info"]] or [
        next(trace for trace in LOGGED if kind in trace["info"])
    ]
    as_text = data.draw(st.booleans())
    frame = [frame_row(trace, as_text=as_text) for trace in logged]
    if data.draw(st.booleans()):
        text = io.StringIO()
        pd.DataFrame([{k: v if isinstance(v, str) else json.dumps(v) for k, v in r.items()} for r in frame]).to_csv(
            text
        )
        form, content = ".csv", text.getvalue()
    else:
        form, content = data.draw(files_of(frame))
    rows = said(write(tmp_path, form, content), "search_traces")
    assert rows == said_of(logged)


@given(traces(), st.booleans())
@many
def test_artifacts_of_traces_in_the_wild(tmp_path: Path, trace: Trace, pretty: bool) -> None:
    artifact = {k: v for k, v in trace["data"].items() if k in ("spans", "request", "response")}
    path = write(tmp_path, ".json", json.dumps(artifact, indent=2 if pretty else None))
    (row,), (whole,) = said(path, "traces"), said_of([trace])
    for name in ("request", "response", "retrieved_context", "predicted_trajectory"):
        assert row[name] == whole[name]
