"""Scorers in the real mlflow: values by hand, rows that cannot be scored, what is listed and why the rest is not."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, evaluate_eval_set, supported_scorers, validate_eval_set
from agent_eval_schema.integrations.mlflow.scored_row import HOLDS, ScoredRow
from agent_eval_schema.integrations.mlflow.supported import ARGUMENTS, SupportedScorers
from agent_eval_schema.metrics.catalog import METRICS
from agent_eval_schema.metrics.support import metrics_of
from agent_eval_schema.schema import Document, ToolCall
from tests.conftest import SAMPLES
from tests.helpers.mlflow_store import mlflow_store, without_its_warnings

Row = dict[str, Any]
Scores = dict[str, tuple[Any, str | None]]
"""By the scorer's name: the value and the rationale."""


def document(uri: str) -> Row:
    return {"doc_uri": uri}


def call(tool: str, /, **arguments: Any) -> Row:
    return {"tool_name": tool, "tool_input": arguments}


# ---------------------------------------------------------------------------------------------------------------------
# what mlflow hands over, read as a row: no mlflow needed


REFERENCE = [ToolCall("book", {"day": 1})]


@pytest.mark.parametrize(
    "expectations",
    [
        {"reference_trajectory": [call("book", day=1)]},
        {"reference_trajectory": json.dumps([call("book", day=1)])},
        {"reference_trajectory": np.array([call("book", day=1)])},
        {"reference_trajectory": [{"tool_name": "book", "tool_input": '{"day": 1}'}]},
        {"expected_tool_calls": [{"name": "book", "arguments": {"day": 1}}]},
        {"expected_tool_calls": json.dumps([{"name": "book", "arguments": {"day": 1}}])},
        {"expected_tool_calls": np.array([{"name": "book", "arguments": '{"day": 1}'}])},
        {"reference_trajectory": None, "expected_tool_calls": [{"name": "book", "arguments": {"day": 1}}]},
        {"reference_trajectory": [call("book", day=1)], "expected_tool_calls": [{"name": "pay"}]},
    ],
)
def test_writings_of_a_reference(expectations: Row) -> None:
    row = ScoredRow(None, None, expectations, None)
    assert row.read("reference_trajectory") == REFERENCE
    assert row.read("predicted_trajectory") is None


@pytest.mark.parametrize(
    ("expectations", "problem"),
    [
        ({"expected_tool_calls": [{"arguments": {}}]}, "`tool_name` is missing"),
        ({"expected_tool_calls": ["book"]}, "expected an object"),
        ({"expected_tool_calls": "book"}, "expected a list"),
        ({"expected_tool_calls": 3}, "expected a list"),
        ({"reference_trajectory": {"tool_name": "book"}}, "expected a list"),
        ({"reference_trajectory": [object()]}, "expected plain data"),
    ],
)
def test_a_reference_that_cannot_be_read_says_why(expectations: Row, problem: str) -> None:
    row = ScoredRow(None, None, expectations, None)
    assert row.read("reference_trajectory") is None
    assert problem in row.unread["reference_trajectory"]


@pytest.mark.parametrize("expectations", [None, {}, float("nan"), "text", {"reference_trajectory": float("nan")}])
def test_no_reference(expectations: Any) -> None:
    row = ScoredRow(None, None, expectations, None)
    assert row.read("reference_trajectory") is None
    assert row.unread == {}


def trace(*spans: Row, **info: Any) -> Row:
    return {"info": {"trace_id": "tr-1", "state": "OK", **info}, "data": {"spans": list(spans)}}


def span(id: str, kind: str, parent: str | None = None, **given: Any) -> Row:
    keys = {"inputs": "mlflow.spanInputs", "outputs": "mlflow.spanOutputs"}
    attributes = {"mlflow.spanType": f'"{kind}"', **{keys[k]: json.dumps(v) for k, v in given.items()}}
    return {"name": kind.lower(), "span_id": id, "parent_span_id": parent, "attributes": attributes}


TRACED = trace(
    span("1", "AGENT", inputs={"q": "?"}, outputs="!"),
    span("2", "RETRIEVER", "1", outputs=[{"page_content": "x", "metadata": {"doc_uri": "a"}}]),
    execution_duration_ms=250,
)


def test_outputs_win_over_expectations_and_these_over_the_trace() -> None:
    homes: list[Row] = [{"retrieved_context": [document(uri)]} for uri in "oe"]
    assert ScoredRow(None, homes[0], homes[1], TRACED).read("retrieved_context") == [Document("o")]
    assert ScoredRow(None, {}, homes[1], TRACED).read("retrieved_context") == [Document("e")]
    assert ScoredRow(None, "!", {}, TRACED).read("retrieved_context") == [Document("a", "x")]
    assert ScoredRow(None, "!", {}, None).read("retrieved_context") is None


def test_what_cannot_be_read_may_be_a_key_of_the_app() -> None:
    assert ScoredRow(None, {"failure": "none so far"}, {}, TRACED).read("failure") is False
    row = ScoredRow(None, {"failure": "none so far"}, {}, None)
    assert row.read("failure") is None
    assert "expected" in row.unread["failure"]


def test_what_a_trace_says() -> None:
    row = ScoredRow(None, None, None, TRACED)
    assert row.read("latency_seconds") == 0.25
    assert row.read("failure") is False
    assert row.read("input_token_count") is None
    assert row.read("predicted_trajectory") == []  # it was traced, and called nothing
    assert ScoredRow(None, None, None, json.dumps(TRACED)).read("latency_seconds") == 0.25
    assert ScoredRow(None, None, None, "no trace").read("latency_seconds") is None


def test_expectations_of_the_trace_are_read() -> None:
    value = json.dumps([{"name": "book", "arguments": {"day": 1}}])
    logged = {"assessment_name": "expected_tool_calls", "expectation": {"serialized_value": {"value": value}}}
    row = ScoredRow(None, None, None, trace(span("1", "AGENT"), assessments=[logged]))
    assert row.read("reference_trajectory") == REFERENCE


@pytest.mark.parametrize(
    ("handed", "held"),
    [
        ({}, set()),
        ({"inputs": {"q": "?"}, "outputs": "!"}, {"request", "response"}),
        ({"inputs": {}, "outputs": " ", "expectations": {"expected_response": "", "expected_facts": []}}, set()),
        ({"expectations": {"expected_response": "yes"}}, {"expected_response", "one_truth"}),
        ({"expectations": {"expected_facts": np.array(["yes"])}}, {"expected_facts", "one_truth"}),
        (
            {"expectations": {"expected_response": "yes", "expected_facts": ["yes"]}},
            {"expected_response", "expected_facts"},
        ),
        ({"expectations": {"guidelines": ["be kind"], "expected_facts": np.nan}}, {"guidelines"}),
        ({"outputs": "False"}, {"response"}),
        ({"trace": TRACED}, {"request", "response", "retriever_span"}),
        ({"trace": trace(span("1", "AGENT", outputs=None))}, set()),
    ],
)
def test_fields_that_a_row_holds(handed: Row, held: set[str]) -> None:
    row = ScoredRow(**{"inputs": None, "outputs": None, "expectations": None, "trace": None} | handed)
    assert {field for field, holds in HOLDS.items() if holds(row)} == held | {"judged_text"}


@pytest.mark.parametrize("outputs", [42, 4.5, True, [42], [[False]]])
def test_some_scorers_of_mlflow_make_no_text_of_a_number(outputs: Any) -> None:
    row = ScoredRow({"q": "?"}, outputs, None, None)
    assert row.lacks(("response", "judged_text")) == ["a response that is no number or boolean"]


def test_every_need_of_a_guarded_scorer_is_known() -> None:
    needs = [n for m in METRICS if m.system == "mlflow" for n in m.needs]
    fields = {f for need in needs for f in ((need,) if isinstance(need, str) else need)}
    assert fields - {"recorded_session"} == set(HOLDS)  # scorers of sessions are not guarded


def test_a_guard_agrees_with_the_report() -> None:
    rows = [json.loads(line) for line in (SAMPLES / "search_traces.jsonl").read_text().splitlines()]
    report = validate_eval_set(rows)
    assert report.ok
    for metric in metrics_of("mlflow"):
        if "recorded_session" not in metric.needs:
            lacking = [ScoredRow(None, None, None, row["trace"]).lacks(metric.needs) for row in rows]
            assert [not found for found in lacking] == report.metric_support[metric.name].tolist(), metric.name


def test_needs_are_said_in_words() -> None:
    needs = ("retriever_span", ("expected_response", "expected_facts"))
    lacking = ScoredRow(None, None, None, None).lacks(needs)
    assert lacking == [
        "a trace with a RETRIEVER span, or content in retrieved_context",
        "expected_response or expected_facts",
    ]


# ---------------------------------------------------------------------------------------------------------------------
# without mlflow


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_package_does_not_import_mlflow() -> None:
    code = "import sys; from agent_eval_schema import supported_scorers; print('mlflow' in sys.modules)"
    assert run_python(code) == "False\n"


@pytest.mark.parametrize(
    "statement",
    ["supported_scorers([])", "import agent_eval_schema.integrations.mlflow.scorers"],
)
def test_without_mlflow_one_line_names_the_extra(statement: str) -> None:
    code = f"""
import sys
sys.modules["mlflow"] = None
from agent_eval_schema import EvalSetError, supported_scorers
try:
    {statement}
except EvalSetError as error:
    print(error)
"""
    said = run_python(code)
    assert said.startswith("this needs mlflow 3.3 or newer (")
    assert said.endswith("pip install -U 'agent-eval-schema[mlflow]'\n")
    assert said.count("\n") == 1


# ---------------------------------------------------------------------------------------------------------------------
# in mlflow


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    """The real MLflow with an experiment on a new store."""
    folder = tmp_path_factory.mktemp("mlflow")
    # MLflow's default exhausts SQLAlchemy's pool on sqlite
    with mlflow_store(folder, no_runs, "scorers", MLFLOW_GENAI_EVAL_MAX_WORKERS="4") as found:
        yield found


def version(mlflow: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in mlflow.__version__.split(".")[:2])


class Evaluated:
    """The scores that an evaluation logged on its traces, by the `q` of the inputs, and the aggregates."""

    def __init__(self, mlflow: Any, scorers: list[Any], rows: list[Row], **options: Any) -> None:
        with without_its_warnings():
            result = mlflow.genai.evaluate(data=rows, scorers=scorers, **options)
            traces = mlflow.search_traces(run_id=result.run_id, return_type="list")
        self.metrics: dict[str, float] = result.metrics
        self.by_question = {asked(t): [a for a in t.info.assessments if a.feedback is not None] for t in traces}

    def scores(self, question: str) -> Scores:
        found = self.by_question[question]
        assert [a.feedback.error for a in found] == [None] * len(found)
        return {a.name: (a.feedback.value, a.rationale) for a in found}

    def values(self, question: str) -> dict[str, Any]:
        """The scores there are: a skipped row has none."""
        return {name: value for name, (value, _) in self.scores(question).items() if value is not None}


def asked(trace: Any) -> str:
    return str(next(s for s in trace.data.spans if s.parent_id is None).inputs["q"])


def made() -> list[Any]:
    """One of each of our scorers."""
    from agent_eval_schema.integrations.mlflow.scorers import SCORERS, TrajectorySingleToolUse

    with without_its_warnings():
        options: dict[Any, Row] = {TrajectorySingleToolUse: {"tool_name": "book"}}
        return [kind(**options.get(kind, {})) for kind in SCORERS]


IN_COLUMNS: list[Row] = [
    {
        "inputs": {"q": "all"},
        "outputs": {
            "response": "Done.",
            "retrieved_context": [document("a"), document("a"), document("b")],
            "predicted_trajectory": [call("find", city="Bern"), call("find", city="Bern"), call("book", day=2)],
            "latency_seconds": 1.5,
        },
        "expectations": {
            "expected_retrieved_context": [document("a"), document("c"), document("d"), document("e")],
            "expected_tool_calls": [
                {"name": "find", "arguments": {"city": "Bern"}},
                {"name": "book", "arguments": {"day": 1}},
            ],
        },
    },
    {
        "inputs": {"q": "right"},
        "outputs": {"retrieved_context": "[]", "predicted_trajectory": [call("book")], "latency_seconds": 0.5},
        "expectations": {"expected_retrieved_context": [document("a")], "reference_trajectory": [call("book")]},
    },
    {
        "inputs": {"q": "empty"},
        "outputs": {"retrieved_context": [document("a")], "predicted_trajectory": []},
        "expectations": {"expected_retrieved_context": [], "reference_trajectory": [call("book")]},
    },
    {
        "inputs": {"q": "unreadable"},
        "outputs": {"predicted_trajectory": [call("book")]},
        "expectations": {"reference_trajectory": [{"tool": "book"}]},
    },
    {"inputs": {"q": "nothing"}, "outputs": "Hello", "expectations": {}},
]

COMPARED = ("exact_match", "in_order_match", "any_order_match", "precision", "recall", "f1")


@pytest.fixture(scope="module")
def in_columns(mlflow: Any) -> Evaluated:
    return Evaluated(mlflow, made(), IN_COLUMNS)


CES = {
    "toolInvocationScore": "ToolInvocation",
    "toolOrderedInvocationScore": "ToolOrderedInvocation",
    "parameterCorrectnessScore": "ParameterCorrectness",
    "overallToolInvocationResult": "ToolCallsPass",
    "turnLatency": "LatencySeconds",
}


def test_every_ces_metric_that_needs_no_model_has_a_scorer_with_its_needs() -> None:
    pytest.importorskip("mlflow")
    from agent_eval_schema.integrations.mlflow import scorers

    catalogue = {metric.name: metric.needs for metric in metrics_of("ces") if not metric.judged}
    assert catalogue == {name: getattr(scorers, kind).needs for name, kind in CES.items()}


def test_scores_of_a_row(in_columns: Evaluated) -> None:
    assert in_columns.values("all") == {
        "document_recall": 0.25,
        "document_precision": 0.5,
        "trajectory_exact_match": 0,
        "trajectory_in_order_match": 0,
        "trajectory_any_order_match": 0,
        "trajectory_precision": pytest.approx(2 / 3),
        "trajectory_recall": 0.5,
        "trajectory_f1": pytest.approx(4 / 7),
        "trajectory_single_tool_use": 1,
        "tool_invocation": 1,
        "tool_ordered_invocation": 1,
        "parameter_correctness": 0.5,
        "tool_calls_pass": 0,
        "latency_seconds": 1.5,
    }


def test_scores_of_a_row_whose_calls_are_right(in_columns: Evaluated) -> None:
    assert in_columns.values("right") == {
        "document_recall": 0,  # it looked, and found nothing
        **{f"trajectory_{name}": 1 for name in (*COMPARED, "single_tool_use")},
        **dict.fromkeys(("tool_invocation", "tool_ordered_invocation", "parameter_correctness", "tool_calls_pass"), 1),
        "latency_seconds": 0.5,
    }


def test_an_agent_that_called_nothing_fails(in_columns: Evaluated) -> None:
    assert in_columns.values("empty") == {
        **{f"trajectory_{name}": 0 for name in (*COMPARED, "single_tool_use")},
        "tool_invocation": 0,
        "tool_ordered_invocation": 0,
        "parameter_correctness": 0,
        "tool_calls_pass": 0,
    }


def test_a_row_that_feeds_nothing_has_no_scores_and_no_errors(in_columns: Evaluated) -> None:
    # mlflow made a trace of it to log scores on: that nothing was run must not show as a latency
    assert in_columns.values("nothing") == {}


def test_a_skipped_row_says_why(mlflow: Any, in_columns: Evaluated) -> None:
    if version(mlflow) < (3, 17):
        pytest.skip("this mlflow has no Feedback without a value")
    lacking = in_columns.scores("nothing")
    assert set(lacking) == {s.name for s in made()}
    assert lacking["document_recall"] == (
        None,
        "the row lacks retrieved_context; the row lacks expected_retrieved_context",
    )
    assert lacking["latency_seconds"] == (None, "the row lacks latency_seconds")
    assert "expected_retrieved_context is empty" in str(in_columns.scores("empty")["document_recall"][1])
    assert "no document with a doc_uri was retrieved" in str(in_columns.scores("right")["document_precision"][1])
    unreadable = str(in_columns.scores("unreadable")["trajectory_recall"][1])
    assert unreadable.startswith("reference_trajectory cannot be read: ")


def test_aggregates_are_of_the_scored_rows(in_columns: Evaluated) -> None:
    found = {name: value for name, value in in_columns.metrics.items() if name.startswith("latency_seconds/")}
    assert found == {
        "latency_seconds/mean": 1.0,
        "latency_seconds/min": 0.5,
        "latency_seconds/max": 1.5,
        "latency_seconds/p90": pytest.approx(1.4),
    }
    assert in_columns.metrics["trajectory_recall/mean"] == 0.5
    assert in_columns.metrics["tool_calls_pass/mean"] == pytest.approx(1 / 3)
    assert "input_token_count/mean" not in in_columns.metrics


def test_options_are_in_the_metadata(in_columns: Evaluated) -> None:
    [used] = [a.metadata for a in in_columns.by_question["all"] if a.name == "trajectory_precision"]
    assert (used["duplicates"], used["empty"]) == ("membership", "define")


@pytest.mark.usefixtures("mlflow")
def test_options() -> None:
    from agent_eval_schema.integrations.mlflow.scorers import ToolCallsPass, TrajectoryPrecision, TrajectoryRecall

    row = IN_COLUMNS[0]
    assert TrajectoryPrecision(duplicates="one_to_one")(**row).value == pytest.approx(1 / 3)
    assert getattr(TrajectoryRecall(empty="nan")(**IN_COLUMNS[2]), "value", None) is None  # of 3.3 no feedback at all
    assert ToolCallsPass(extra_calls="ALLOW")(**row).value == 0
    assert ToolCallsPass(extra_calls="ALLOW", parameter_threshold=0)(**row).value == 1


ASKED = {"messages": [{"role": "user", "content": "How far?"}]}


@pytest.mark.usefixtures("mlflow")
@pytest.mark.parametrize(
    ("column", "handed", "value"),
    [
        ("response", {"outputs": "Ten miles"}, "Ten miles"),
        ("response", {"outputs": {"response": "Ten miles", "score": 3}}, "Ten miles"),
        ("response", {"outputs": {"choices": [{"message": {"role": "assistant", "content": "Ten"}}]}}, "Ten"),
        ("response", {"outputs": {"miles": 10}}, '{"miles":10}'),
        ("response", {}, None),
        ("request", {"inputs": ASKED}, ASKED),
        ("request", {"inputs": {"question": "How far?"}}, ASKED),
        ("request", {"inputs": {"from": "a", "to": "b"}}, {"messages": [{"role": "user", "content": ANY}]}),
        ("inputs", {"inputs": {"from": "a"}}, {"from": "a"}),
        ("expectations", {"expectations": {"tone": "calm"}}, {"tone": "calm"}),
        ("expected_response", {"expectations": {"expected_response": "Ten"}}, "Ten"),
        ("expected_facts", {"expectations": {"expected_facts": ["Ten"]}}, ["Ten"]),
        ("session_id", {}, None),
        ("trace", {}, None),
    ],
)
def test_a_scorer_of_a_user_reads_any_column(column: str, handed: Row, value: Any) -> None:
    from agent_eval_schema import scorers

    got = []

    class Reader(scorers.RowScorer):
        name: str = "reader"
        reads = (column,)
        needs = ()

        def measure(self, *values: Any) -> float:
            got.extend(values)
            return 1.0

    score = Reader()(**handed)
    assert got == ([] if value is None else [value])
    if value is None and score is not None:  # mlflow 3.3 has no feedback without a value
        assert score.rationale == f"the row lacks {column}"


@pytest.mark.usefixtures("mlflow")
def test_a_scorer_reads_canonical_columns_only() -> None:
    from agent_eval_schema import scorers

    with pytest.raises(EvalSetError, match=r"reads: expected one of .*; got 'respons'; did you mean 'response'\?"):
        type("Reader", (scorers.RowScorer,), {"reads": ("respons",), "__module__": __name__})


FIGURES = {"input_token_count": 3, "output_token_count": 2, "total_token_count": 5, "latency_seconds": 1.5}


@pytest.mark.parametrize("names", [[name] for name in (*FIGURES, "failure")])
def test_each_supported_scorer_scores_a_row(mlflow: Any, names: list[str]) -> None:
    if version(mlflow) < (3, 17):
        pytest.skip("an older mlflow hands no trace of the data to a scorer")
    figures = {**FIGURES, "failure": True}
    rows = [{"request": "How far?", "response": "Ten miles", **{name: figures[name] for name in names}}]
    supported = [s for s in supported_scorers(rows) if s.name in figures]
    assert [s.name for s in supported] == names
    with without_its_warnings():
        found = evaluate_eval_set(rows, supported)
    assert {name: found.scores[name].tolist() for name in names} == {name: [float(figures[name])] for name in names}


@pytest.mark.usefixtures("mlflow")
@pytest.mark.parametrize(
    ("scorer", "option"),
    [
        ("TrajectoryPrecision", {"duplicates": "once"}),
        ("TrajectoryRecall", {"empty": "zero"}),
        ("TrajectorySingleToolUse", {}),
        ("ToolCallsPass", {"parameter_threshold": 1.5}),
        ("ToolCallsPass", {"extra_calls": "MAYBE"}),
    ],
)
def test_options_that_there_are_not(scorer: str, option: Row) -> None:
    from agent_eval_schema.integrations.mlflow import scorers

    with pytest.raises(ValueError, match="1 validation error"):
        getattr(scorers, scorer)(**option)


# a real agent, run by mlflow and recorded before

TRUTH = {
    "expected_retrieved_context": [document("a"), document("c")],
    "expected_tool_calls": [{"name": "book", "arguments": {"day": 1}}],
}
ASKED: list[Row] = [{"inputs": {"q": q}, "expectations": TRUTH} for q in ("book it", "only talk", "raise")]


def agent_of(mlflow: Any) -> Callable[[str], str]:
    @mlflow.trace(span_type="RETRIEVER")
    def retrieve(q: str) -> list[Any]:
        return [mlflow.entities.Document(q, metadata={"doc_uri": uri}) for uri in "ab"]

    @mlflow.trace(span_type="TOOL")
    def book(day: int) -> str:
        time.sleep(0.005)  # mlflow counts whole milliseconds
        return f"booked day {day}"

    @mlflow.trace(span_type="CHAT_MODEL")
    def model(_: str) -> Row:
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        return {"choices": [{"message": {"role": "assistant", "content": "Done."}}], "usage": usage}

    @mlflow.trace(span_type="AGENT", name="agent")
    def agent(q: str) -> str:
        if q == "raise":
            raise RuntimeError("no")
        retrieve(q)
        if q == "book it":
            book(day=1)
        return str(model(q)["choices"][0]["message"]["content"])

    return agent


BOOKED = {
    "document_recall": 0.5,
    "document_precision": 0.5,
    **{f"trajectory_{name}": 1 for name in (*COMPARED, "single_tool_use")},
    **dict.fromkeys(("tool_invocation", "tool_ordered_invocation", "parameter_correctness", "tool_calls_pass"), 1),
    "input_token_count": 20,
    "output_token_count": 5,
    "total_token_count": 25,
    "failure": 0,
}


def test_an_agent_that_mlflow_runs(mlflow: Any) -> None:
    run = Evaluated(mlflow, made(), ASKED, predict_fn=agent_of(mlflow))
    found = run.values("book it")
    assert found.pop("latency_seconds") > 0
    assert found == BOOKED
    talked = run.values("only talk")
    assert talked["tool_calls_pass"] == 0
    assert talked["trajectory_recall"] == 0
    assert run.values("raise")["failure"] == 1
    assert run.metrics["failure/mean"] == pytest.approx(1 / 3)


def test_an_agent_that_was_recorded(mlflow: Any) -> None:
    if version(mlflow) < (3, 17):
        pytest.skip("mlflow 3.3 does not hand recorded traces to scorers")
    with without_its_warnings():
        agent_of(mlflow)("book it")
        recorded = mlflow.get_trace(mlflow.get_last_active_trace_id())
    row = {"inputs": {"q": "book it"}, "outputs": "Done.", "trace": recorded, "expectations": TRUTH}
    found = Evaluated(mlflow, made(), [row]).values("book it")
    assert found.pop("latency_seconds") == recorded.info.execution_duration / 1000
    assert found == BOOKED


# serialized, registered


CUSTOM = "MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS"
"""What mlflow wants to be told before it runs the source of a scorer that it has stored."""


@pytest.mark.usefixtures("mlflow")
def test_scorers_are_serialized_with_their_options(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.genai.scorers import Scorer

    monkeypatch.setenv(CUSTOM, "true")
    for scorer in made():
        written = json.loads(json.dumps(scorer.model_dump()))
        again = Scorer.model_validate(written)
        assert (again.name, again.aggregations) == (scorer.name, ["mean", "min", "max", "p90"])
        for row in IN_COLUMNS:
            one, other = scorer.run(**row), again.run(**row)
            assert value_of(one) == value_of(other)


def value_of(feedback: Any) -> Any:
    return None if feedback is None else (feedback.value, feedback.rationale, feedback.metadata)


@pytest.mark.usefixtures("mlflow")
def test_options_survive_serialization(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.genai.scorers import Scorer

    from agent_eval_schema.integrations.mlflow.scorers import TrajectoryPrecision

    monkeypatch.setenv(CUSTOM, "true")
    scorer = TrajectoryPrecision(name="it's mine", duplicates="one_to_one", aggregations=["median"])
    again = Scorer.model_validate(scorer.model_dump())
    assert (again.name, again.aggregations) == ("it's mine", ["median"])
    assert again.run(**IN_COLUMNS[0]).value == pytest.approx(1 / 3)


def test_registering(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_eval_schema.integrations.mlflow.scorers import TrajectoryPrecision

    if version(mlflow) < (3, 17):
        pytest.skip("mlflow 3.3 only registers scorers on Databricks")
    scorer = TrajectoryPrecision(duplicates="one_to_one")
    with without_its_warnings():
        with pytest.raises(mlflow.exceptions.MlflowException, match=CUSTOM):
            scorer.register()
        monkeypatch.setenv(CUSTOM, "true")
        scorer.register(name="ours")
        again = mlflow.genai.scorers.get_scorer(name="ours")
    assert again.name == "ours"
    assert again.run(**IN_COLUMNS[0]).value == pytest.approx(1 / 3)


# ---------------------------------------------------------------------------------------------------------------------
# supported_scorers

GUARDED: list[Row] = [
    {"inputs": {"q": "clean"}, "outputs": "Hello", "expectations": {}},
    {"inputs": {"q": "leaks"}, "outputs": "Call 555-123-4567", "expectations": {}},
    {"inputs": {"q": "blank"}, "outputs": " ", "expectations": {}},
]
MODEL = "openai:/none"


def listed(data: Any, **options: Any) -> SupportedScorers:
    with without_its_warnings():
        return supported_scorers(data, **options)


def why(found: SupportedScorers) -> dict[str, str]:
    return {line.scorer: line.why_left_out for line in found.table.itertuples()}


def has(mlflow: Any, name: str) -> bool:
    with without_its_warnings():
        return hasattr(mlflow.genai.scorers, name)


@pytest.mark.usefixtures("mlflow")
def test_every_scorer_has_a_line() -> None:
    from agent_eval_schema.integrations.mlflow.scorers import SCORERS

    found = listed([{"request": "Hi", "response": "Hello"}])
    assert list(found.table.columns) == ["scorer", "system", "rows", "total", "included", "why_left_out"]
    builtin = [m.name for m in metrics_of("mlflow")]
    assert found.table.scorer.tolist() == [*builtin, *(kind.__name__ for kind in SCORERS)]
    assert found.table.included.sum() == len(found)
    assert (found.table.included == (found.table.why_left_out == "")).all()
    assert set(ARGUMENTS) <= set(found.table.scorer)


def test_the_catalogue_has_every_scorer_of_mlflow(mlflow: Any) -> None:
    if version(mlflow) < (3, 17):
        pytest.skip("an older mlflow has fewer")
    from mlflow.genai.scorers.builtin_scorers import _get_all_concrete_builtin_scorers

    assert {kind.__name__ for kind in _get_all_concrete_builtin_scorers()} == {m.name for m in metrics_of("mlflow")}


@pytest.mark.usefixtures("mlflow")
def test_no_data_feeds_nothing() -> None:
    found = listed([])
    assert found == []
    assert set(found.table.total) == {0}
    assert why(found)["LatencySeconds"] == "no row is valid"


def test_scorers_that_the_rows_feed(mlflow: Any) -> None:
    rows = [
        {"request": "Hi", "response": "Hello", "latency_seconds": 0.5},
        {"request": "Ho", "response": "Hello", "retrieved_context": [document("a")]},
        {"request": "He", "response": "Ho", **{k: [document("a")] for k in TRUTH_AND_RETRIEVED}},
        {"request": "Ha"},  # no response: invalid, feeds nothing
    ]
    found = listed(rows)
    ours = found.table[found.table.system == "agent_eval_schema"].set_index("scorer")
    assert ours[ours.included].rows.to_dict() == {"DocumentRecall": 1, "DocumentPrecision": 1, "LatencySeconds": 1}
    assert set(ours.total) == {4}
    names = ["document_recall", "document_precision", "latency_seconds"]
    assert [s.name for s in found] == [*(["pii_detection"] if has(mlflow, "PIIDetection") else []), *names]


TRUTH_AND_RETRIEVED = ("retrieved_context", "expected_retrieved_context")


@pytest.mark.usefixtures("mlflow")
def test_why_a_scorer_is_left_out() -> None:
    said = why(listed([{"request": "Hi", "response": "Hello"}]))
    assert said["RelevanceToQuery"] == "needs a judge: name one with model="
    assert said["Correctness"] == "no row has all of its inputs; most lack expected_response or expected_facts"
    assert said["Guidelines"] == "needs guidelines: make it yourself"
    assert said["TrajectorySingleToolUse"] == "needs tool_name: make it yourself"
    assert said["DocumentRecall"].startswith("no row has all of its inputs; most lack ")


def test_scorers_that_an_older_mlflow_lacks(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_its_warnings():
        from mlflow.genai import scorers

        monkeypatch.setattr(scorers, "_LAZY_IMPORTS", {"RelevanceToQuery"}, raising=False)
        monkeypatch.delattr(scorers, "PIIDetection", raising=False)
    found = listed([{"request": "Hi", "response": "Hello"}])
    assert why(found)["PIIDetection"] == f"mlflow {mlflow.__version__} does not have it"
    assert found == []


@pytest.mark.usefixtures("mlflow")
def test_judges_are_asked_if_a_model_is_named() -> None:
    found = listed([{"request": "Hi", "response": "Hello"}], model=MODEL)
    relevance = next(s for s in found if s.name == "relevance_to_query")
    assert relevance._within.model == MODEL
    assert why(found)["ExpectationsGuidelines"] == "no row has all of its inputs; most lack guidelines"


@pytest.mark.parametrize(
    ("message", "shown"), [("only on the platform\nTo get it, ...", "only on the platform"), ("", "RuntimeError")]
)
def test_scorers_that_mlflow_refuses_to_make(
    message: str, shown: str, mlflow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(mlflow.genai.scorers, "Safety", refuse, raising=False)
    said = why(listed([{"request": "Hi", "response": "Hello"}], model=MODEL))
    assert said["Safety"] == f"mlflow cannot make it: {shown}"


def test_scorers_of_sessions(mlflow: Any) -> None:
    if not has(mlflow, "UserFrustration"):
        pytest.skip("this mlflow has no scorers of sessions")
    recorded = {**TRACED, "info": {**TRACED["info"], "trace_metadata": {"mlflow.trace.session": "s1"}}}
    found = listed([{"trace": recorded}], model=MODEL)
    [scorer] = [s for s in found if s.name == "user_frustration"]
    assert scorer.is_session_level_scorer
    again = listed(validate_eval_set([{"trace": recorded}], outputs="generated"), model=MODEL)
    assert "a recorded session (session_id, or a trace with a session)" in why(again)["UserFrustration"]


@pytest.mark.usefixtures("mlflow")
def test_a_report_will_do() -> None:
    rows = [{"request": "Hi"}]
    report = validate_eval_set(rows)
    assert listed(report).table.equals(listed(rows).table)
    assert why(listed(report))["LatencySeconds"] == ""  # the app will be run


@pytest.mark.usefixtures("mlflow")
def test_scorers_of_the_turns_of_a_file_of_ces() -> None:
    found, turns = (listed(d) for d in (str(GOLDEN), convert_eval_set(GOLDEN, "databricks").data))
    assert found.table.equals(turns.table)
    assert why(found)["DocumentRecall"].startswith("no row has all of its inputs; most lack ")


GOLDEN = SAMPLES / "golden.csv"


def test_no_table() -> None:
    pytest.importorskip("mlflow", "3.3")
    with pytest.raises(EvalSetError, match=r"data: expected a DataFrame, .*; got 3"):
        listed(3)


def test_guarded_scorers_skip_rows(mlflow: Any) -> None:
    rows = pd.DataFrame({"request": ["a", "b"], "response": ["x", "y"], "expected_response": ["x", None]})
    scorers = [s for s in listed(rows, model=MODEL) if s.name in ("correctness", "pii_detection")]
    # No judge is asked, as no row has a ground truth.
    run = Evaluated(mlflow, scorers, GUARDED)
    if has(mlflow, "PIIDetection"):
        assert [run.values(q) for q in ("clean", "leaks", "blank")] == [
            {"pii_detection": "yes"},
            {"pii_detection": "no"},
            {},
        ]
        assert run.metrics == {"pii_detection/mean": 0.5}
        lacking = "the row lacks expected_response or expected_facts"
        assert run.scores("clean")["correctness"] == (None, lacking)
        assert run.scores("blank")["pii_detection"] == (None, "the row lacks response")
    else:
        assert run.metrics == {}


def test_a_guarded_scorer_is_serialized_and_registered_as_the_one_within(mlflow: Any) -> None:
    from mlflow.genai.scorers import Correctness, Scorer

    truth = [{"request": "Hi", "response": "Hello", "expected_response": "Hello"}]
    [guarded] = [s for s in listed(truth, model=MODEL) if s.name == "correctness"]
    again = Scorer.model_validate(guarded.model_dump())
    assert type(again) is Correctness
    assert (again.name, again.model) == ("correctness", MODEL)
    if version(mlflow) >= (3, 17):
        with without_its_warnings():
            guarded.register(name="right")
            assert type(mlflow.genai.scorers.get_scorer(name="right")) is Correctness
