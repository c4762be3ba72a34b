"""`evaluate_eval_set` gives the scores of `mlflow.genai.evaluate`: scorers and apps see what mlflow alone shows them.

Each set is evaluated twice, by mlflow alone and by this package, and compared row by row: the scores and the errors of
every scorer. The scorers report what they were handed, so whatever is changed on the way is seen.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import evaluate_eval_set
from agent_eval_schema.evaluation.mlflow_run import RUN_OF
from agent_eval_schema.integrations.mlflow.evaluate import OLD
from tests.helpers.mlflow_store import mlflow_store

pytestmark = pytest.mark.xdist_group("mlflow")

Q = {"question": "How many days?"}


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    """The real MLflow with an experiment on a new store."""
    folder = tmp_path_factory.mktemp("mlflow")
    # MLflow's default exhausts SQLAlchemy's pool on sqlite
    with mlflow_store(folder, no_runs, "as mlflow alone", MLFLOW_GENAI_EVAL_MAX_WORKERS="2") as found:
        yield found


# ---------------------------------------------------------------------------------------------------------------------
# the scorers
def told(value: Any) -> str:
    """A value with its types: 1, 1.0 and True are three values, None and NaN two."""
    return json.dumps(value, sort_keys=True, default=lambda v: f"{type(v).__name__}: {v!r}")


def all_of_it(inputs: Any, outputs: Any, expectations: Any) -> str:
    return told([inputs, outputs, expectations])


def spans(trace: Any) -> str:
    found = sorted(trace.data.spans, key=lambda span: span.start_time_ns)
    return told([[span.name, span.inputs, span.outputs, str(span.span_type)] for span in found])


def equivalent(outputs: Any, expectations: Any) -> bool:
    return bool(outputs == expectations["expected_response"])


def key(inputs: Any) -> Any:
    """Raises an exception where the row has no k, and gives no score where it is None."""
    return inputs["k"]


def confident(outputs: Any) -> float:
    return float(outputs["confidence"])


def judged(outputs: Any, expectations: Any) -> Any:
    from mlflow.entities import Feedback

    return Feedback(value=len(outputs) / 2, rationale=f"half of {told(outputs)} for {told(expectations)}")


def several(outputs: Any) -> Any:
    from mlflow.entities import Feedback

    return [Feedback(name="first", value=told(outputs)[0]), Feedback(name="type", value=type(outputs).__name__)]


SCORERS = (all_of_it, spans, equivalent, key, confident, judged, several)


def scorers() -> list[Any]:
    from mlflow.genai.scorers import scorer

    return [scorer(function) for function in SCORERS]


# ---------------------------------------------------------------------------------------------------------------------
# both sides: of each row {scorer: [its score, its rationale], or why there is none}
Scores = dict[str, Any]


def quietly(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def alone(mlflow: Any, data: Any, app: Callable[..., Any] | None) -> list[Scores]:
    """What mlflow's own evaluate finds, read from the traces of its run, which are in no order."""
    app = app and as_function(app, waits=mlflow.__version__.startswith(OLD))
    result = quietly(mlflow.genai.evaluate, data=data, scorers=scorers(), predict_fn=app)
    traces = mlflow.search_traces(run_id=result.run_id, return_type="list")
    return [scores_of(trace, result.run_id) for trace in traces]


def as_function(app: Callable[..., Any], *, waits: bool) -> Callable[..., Any]:
    """The app as mlflow can run it: it loses the rows of an app that has no name, and up to 3.5 awaits none."""
    asynchronous = waits and inspect.iscoroutinefunction(app)
    if hasattr(app, "__name__") and not asynchronous:
        return app

    @functools.wraps(app)
    def called(**inputs: Any) -> Any:
        return asyncio.run(app(**inputs)) if asynchronous else app(**inputs)

    called.__name__ = getattr(app, "__name__", type(app).__name__)
    return called


def scores_of(trace: Any, run_id: str) -> Scores:
    events = [event for span in trace.data.spans for event in span.events if event.name == "exception"]
    failed = f"predict_fn raised an exception: {events[0].attributes['exception.message']}" if events else None
    found = {}
    for given in trace.info.assessments:
        if given.expectation is None and (given.metadata or {}).get(RUN_OF) == run_id:
            error = given.error and (failed or f"the scorer raised an exception: {given.error.error_message}")
            found[given.name] = error or [given.value, given.rationale]
    return found


def ours(data: Any, app: Callable[..., Any] | None) -> list[Scores]:
    """What `evaluate_eval_set` finds."""
    result = quietly(evaluate_eval_set, data, scorers(), app)
    found = []
    for scores, reasons in zip(result.scores.to_dict("records"), result.reasons.to_dict("records"), strict=True):
        row = {}
        for name in result.metrics:
            score, reason = scores[name], reasons[name]
            if reason != "the scorer gave no score" and name != "several":  # it scores under other names
                row[name] = reason if score is None else [score, reason]
        found.append(row)
    return found


def compare(mlflow: Any, data: Any, app: Callable[..., Any] | None = None) -> list[Scores]:
    """The scores of each row, which are those of mlflow alone."""
    found, expected = ours(data, app), alone(mlflow, frame_of(data), app)
    assert sorted(found, key=told) == sorted(expected, key=told)
    return found


def frame_of(data: Any) -> Any:
    """A frame of rows, as they are."""
    names = dict.fromkeys(name for row in data for name in row) if isinstance(data, list) else {}
    return pd.DataFrame({n: pd.Series([row.get(n) for row in data], dtype="object") for n in names}) if names else data


def seen(found: list[Scores], place: int) -> list[Any]:
    """The inputs (0), outputs (1) or expectations (2) that a scorer saw."""
    return [json.loads(row["all_of_it"][0])[place] for row in found]


# ---------------------------------------------------------------------------------------------------------------------
# outputs and expectations of every type
OUTPUTS: dict[str, list[Any]] = {
    "text": ["12 days", "", "null", "42", '"quoted"', '{"answer": "a"}', "é \u2028 \x07"],
    "numbers": [42, 0, 4.5, 2.0, 2**53 + 1],
    "flags": [True, False],
    "lists": [[], [1, "a", None], [{"role": "assistant", "content": "Hi"}]],
    "objects": [
        {"answer": "a", "confidence": 0.5, "docs": [1, 2]},
        {"choices": [{"message": {"role": "assistant", "content": "Hi"}}], "usage": {"total_tokens": 3}},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        {"response": "a", "b": None},
        {},
    ],
    "all at once": ["a", 42, True, [1], {"answer": 1, "confidence": 1}],
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_every_type(kind: str, mlflow: Any) -> None:
    rows = [{"inputs": {**Q, "k": i}, "outputs": outputs} for i, outputs in enumerate(OUTPUTS[kind])]
    found = compare(mlflow, rows)
    assert told(seen(found, 1)) == told(OUTPUTS[kind])


INPUTS: list[dict[str, Any]] = [
    Q,
    {"question": "multi", "k": 3},
    {"query": "a", "history": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}]},
    {"messages": [{"role": "user", "content": "a"}]},
    {"messages": [{"role": "user", "content": "a", "name": "Jo"}], "temperature": 0.2, "tools": [{"type": "function"}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}], "custom": {"a": None}},
    {"messages": [{"role": "user", "content": "c"}], "k": None},
    {"input": [{"role": "user", "content": "a"}], "k": 7},
    {"topic": "leave", "k": 3.5, "deep": {"a": [1, None, {"b": True}]}},
    {"question": ["a", "b"], "k": True},
    {"k": 0},
    {"a b": "c", "é": 1, "": 2},
]


def test_inputs_of_every_form(mlflow: Any) -> None:
    found = compare(mlflow, [{"inputs": inputs, "outputs": "a"} for inputs in INPUTS])
    assert told(seen(found, 0)) == told(INPUTS)


EXPECTATIONS: list[dict[str, Any]] = [
    {"expected_response": "12 days"},
    {"expected_response": 42},
    {"expected_response": True},
    {"expected_response": {"answer": "a", "confidence": 0.9}},
    {"expected_response": [1, "a"]},
    {"expected_facts": ["a", "b"]},
    {"guidelines": ["be kind"]},
    {"expected_tool_calls": [{"name": "f", "arguments": {"x": 1}, "id": "7"}]},
    {"expected_retrieved_context": [{"doc_uri": "a", "content": "b", "score": 0.5}]},
    {"confidence": 0.9, "label": "good", "flag": False, "some": [1, {"a": None}], "none": {}},
    {"max_length": 5, "expected_response": "a"},
    {},
]


def test_expectations_of_every_type(mlflow: Any) -> None:
    outputs = ["12 days", 42, True, {"answer": "a", "confidence": 0.9}, [1, "a"], *"abcdefg"]
    rows = [
        {"inputs": {**Q, "k": i}, "outputs": o, "expectations": e}
        for i, (o, e) in enumerate(zip(outputs, EXPECTATIONS, strict=True))
    ]
    found = compare(mlflow, rows)
    assert told(seen(found, 2)) == told(EXPECTATIONS)
    assert [row["equivalent"] for row in found[:5]] == [[True, None]] * 5


# ---------------------------------------------------------------------------------------------------------------------
# the app
def keywords(question: str, k: int) -> dict[str, Any]:
    return {"answer": f"{question} {k}", "confidence": k / 2}


def defaults(question: str, k: int = 7, *, tone: str = "kind") -> list[Any]:
    return [question, k, tone]


def anything(**inputs: Any) -> Any:
    return inputs.get("k", inputs)


def some(question: str, **others: Any) -> list[Any]:
    return [question, others]


async def waiting(question: str, k: int = 3) -> int:
    return len(question) + k


async def waiting_for_anything(**inputs: Any) -> dict[str, Any]:
    return {"confidence": 1, "inputs": inputs}


def raising(question: str, k: int = 3) -> bool:
    if k == 4:
        raise ValueError(f"no {k} of {question}")
    return k == 3


class Agent:
    """An app that is an object, as agents of many frameworks are."""

    def __call__(self, question: str, k: int | None = None) -> tuple[str, int | None]:
        return question, k


APPS: dict[str, Callable[..., Any]] = {
    "keywords": keywords,
    "defaults": defaults,
    "anything": anything,
    "some": some,
    "async": waiting,
    "async for anything": waiting_for_anything,
    "raising": raising,
    "an object": Agent(),
    "a method": Agent().__call__,
    "a partial": functools.partial(defaults, tone="short"),
    "a lambda": lambda question, k=0: None if k == 4 else question > str(k),
}

ASKED = [{"question": "multi", "k": 3}, {"question": "multi", "k": 4}, Q]


@pytest.mark.parametrize("name", APPS)
def test_apps_of_any_signature(name: str, mlflow: Any) -> None:
    rows = [{"inputs": inputs, "expectations": {"expected_response": i % 2 == 0}} for i, inputs in enumerate(ASKED)]
    found = compare(mlflow, rows, APPS[name])
    assert told(seen(found, 0)) == told(ASKED)


# ---------------------------------------------------------------------------------------------------------------------
# traces
@pytest.fixture(scope="module")
def traces(mlflow: Any) -> pd.DataFrame:
    """The frame of search_traces, of apps that take and return values of every type."""
    mlflow.set_experiment("traced")
    for name, inputs in (("keywords", ASKED[0]), ("defaults", ASKED[1]), ("raising", ASKED[0]), ("anything", Q)):
        quietly(mlflow.trace(APPS[name]), **inputs)
    for outputs in ("text", 42):
        with mlflow.start_span("plain") as span:
            span.set_inputs({"messages": [{"role": "user", "content": "a"}], "temperature": 0.5})
            span.set_outputs(outputs)
    found = quietly(mlflow.search_traces)
    for trace_id, expected in zip(found["trace_id"], (42, "text", {"answer": 1}, [1]), strict=False):
        mlflow.log_expectation(trace_id=trace_id, name="expected_response", value=expected)
        mlflow.log_expectation(trace_id=trace_id, name="label", value={"a": [None, 1]})
    found = quietly(mlflow.search_traces)
    mlflow.set_experiment("as mlflow alone")
    return found


@pytest.mark.parametrize("columns", [None, ["trace"]])
def test_rows_that_are_traces(columns: list[str] | None, mlflow: Any, traces: pd.DataFrame) -> None:
    data = traces if columns is None else traces[columns]
    found = compare(mlflow, data)
    assert len(found) == len(traces)
