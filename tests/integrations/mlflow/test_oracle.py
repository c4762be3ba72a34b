"""Metric coverage against MLflow itself: kinds of rows × all built-in scorers, through `mlflow.genai.evaluate`.

Each kind of row is prepared and evaluated by the real MLflow on a sqlite store. Where a judge would be asked, a stub
answers "yes" with the prompt as its rationale, so each score shows what the judge would have read. A scorer that MLflow
gives a score must be one that the row supports, and the other way round; EXCEPTIONS has the few cells in which this
package is stricter on purpose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import (
    EvalSetError,
    evaluate_eval_set,
    prepare_for_evaluate,
    supported_scorers,
    validate_eval_set,
)
from agent_eval_schema.metrics.support import metrics_of
from tests.conftest import Row
from tests.helpers.mlflow_store import mlflow_store, without_its_warnings

pytestmark = [pytest.mark.xdist_group("mlflow"), pytest.mark.oracle]

MODEL = "openai:/stub"

NAMES = [metric.name for metric in metrics_of("mlflow")]

ARGUMENTS: dict[str, dict[str, Any]] = {
    "Guidelines": {"guidelines": "Be kind"},
    "ConversationalGuidelines": {"guidelines": "Be kind"},
    "RegexMatch": {"pattern": "."},
    "ResponseLength": {"max_length": 1000},
}

SESSIONS = {name for name in NAMES if name.startswith(("Conversation", "User", "Knowledge"))}
RETRIEVAL = ("RetrievalGroundedness", "RetrievalRelevance", "RetrievalSufficiency")
CALLS = ("ToolCallEfficiency", "ToolCallCorrectness")

Q = {"question": "How many days?"}
A = "Twelve days."
DOCUMENT = "Leave is twelve days."
TRUTH = {"expected_response": "12 days"}


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory, no_runs: Path) -> Iterator[Any]:
    """The real MLflow on a new store, with the stub in the place of the client of judges."""
    folder = tmp_path_factory.mktemp("oracle")
    with mlflow_store(folder, no_runs, "oracle", MLFLOW_GENAI_EVAL_MAX_WORKERS="4", OPENAI_API_KEY="none") as found:
        if tuple(map(int, found.__version__.split(".")[:2])) < (3, 17):
            pytest.skip("the coverage is that of the newest MLflow")
        from mlflow.entities import Feedback
        from mlflow.genai.judges.adapters import base_adapter, gateway_adapter

        def invoke(_: Any, asked: Any) -> Any:
            prompt = asked.prompt
            text = prompt if isinstance(prompt, str) else "\n".join(str(message.content) for message in prompt)
            feedback = Feedback(name=asked.assessment_name, value="yes", rationale=text)
            return base_adapter.AdapterInvocationOutput(feedback=feedback)

        def extract_nothing(*_: Any, **__: Any) -> Any:
            raise OSError("no judge is asked what a trace contains")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gateway_adapter.GatewayAdapter, "invoke", invoke)
            patch.setattr(gateway_adapter.GatewayAdapter, "invoke_with_structured_output", extract_nothing)
            yield found


def scorers(mlflow: Any) -> list[Any]:
    classes = {name: getattr(mlflow.genai.scorers, name) for name in NAMES}
    judged = {metric.name for metric in metrics_of("mlflow") if metric.judged}
    return [
        kind(**({"model": MODEL} if name in judged else {}), **ARGUMENTS.get(name, {}), name=name)
        for name, kind in classes.items()
    ]


def spans(*children: tuple[str, str, Any, Any], inputs: Any = Q, outputs: Any = A, session: str | None = None) -> str:
    """A trace as MLflow 3.6 and newer write it: a root span, and a child per name, type, inputs and outputs."""
    drawn = []
    for i, (name, kind, given, returned) in enumerate([("agent", "AGENT", inputs, outputs), *children]):
        attributes = {"mlflow.traceRequestId": "tr-1", "mlflow.spanType": kind, "mlflow.spanInputs": given}
        attributes |= {} if returned is None else {"mlflow.spanOutputs": returned}
        drawn.append(
            {
                "trace_id": "AAAAAAAAAAAAAAAAAAAAAQ==",
                "span_id": f"AAAAAAAA{i}AA=",
                "parent_span_id": "AAAAAAAA0AA=" if i else None,
                "name": name,
                "start_time_unix_nano": 1_700_000_000_000_000_000 + i,
                "end_time_unix_nano": 1_700_000_001_000_000_000,
                "events": [],
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "attributes": {key: json.dumps(value) for key, value in attributes.items()},
            }
        )
    metadata = {"mlflow.trace_schema.version": "3"} | ({"mlflow.trace.session": session} if session else {})
    info = {
        "trace_id": "tr-1",
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "7"}},
        "request_time": "2026-01-01T00:00:00Z",
        "state": "OK",
        "execution_duration_ms": 5,
        "trace_metadata": metadata,
        "tags": {},
    }
    return json.dumps({"info": info, "data": {"spans": drawn}})


def retriever(outputs: Any) -> tuple[str, str, Any, Any]:
    return "retrieve", "RETRIEVER", Q, outputs


TOOL = ("look_up", "TOOL", {"policy": "leave"}, "twelve")
DOCUMENTS = [{"page_content": DOCUMENT, "metadata": {"doc_uri": "leave.md"}}]
ROW: Row = {"inputs": Q, "outputs": A}

KINDS: dict[str, Row] = {
    "inputs, outputs": ROW,
    "inputs only": {"inputs": Q},
    "request, response": {"request": "How many days?", "response": A},
    "messages": {"inputs": {"messages": [{"role": "user", "content": "How many days?"}]}, "outputs": A},
    "outputs: choices": {**ROW, "outputs": {"choices": [{"message": {"role": "assistant", "content": A}}]}},
    "outputs: an object": {**ROW, "outputs": {"answer": A, "score": 1}},
    "outputs: a list": {**ROW, "outputs": [A, 1]},
    "outputs: an empty text": {**ROW, "outputs": ""},
    "outputs: a number": {**ROW, "outputs": 42},
    "outputs: a fraction": {**ROW, "outputs": 4.5},
    "outputs: a boolean": {**ROW, "outputs": True},
    "outputs: a list of numbers": {**ROW, "outputs": [42]},
    "expected_response": {**ROW, "expectations": TRUTH},
    "expected_facts": {**ROW, "expectations": {"expected_facts": ["12 days"]}},
    "both of them": {**ROW, "expectations": {**TRUTH, "expected_facts": ["12 days"]}},
    "both of them, documents": {
        "inputs": Q,
        "trace": spans(retriever(DOCUMENTS)),
        "expectations": {**TRUTH, "expected_facts": ["12 days"]},
    },
    "another expectation": {**ROW, "expectations": {"tone": "kind"}},
    "empty facts": {**ROW, "expectations": {"expected_facts": []}},
    "guidelines": {**ROW, "expectations": {"guidelines": ["Name the number"]}},
    "a guideline": {**ROW, "expectations": {"guidelines": "Name the number"}},
    "named guidelines": {**ROW, "expectations": {"guidelines": {"tone": ["Name the number"], "more": ["Be brief"]}}},
    "guidelines of a column": {"request": "How many?", "response": A, "guidelines": {"tone": ["Name the number"]}},
    "a trace": {"trace": spans()},
    "a trace, its row": {**ROW, "trace": spans()},
    "a trace with a tool": {"trace": spans(TOOL)},
    "a trace with a session": {"trace": spans(session="s1")},
    "documents": {"trace": spans(retriever(DOCUMENTS))},
    "documents and truth": {"trace": spans(retriever(DOCUMENTS)), "expectations": TRUTH},
    "documents: content": {"trace": spans(retriever([{"content": DOCUMENT}]))},
    "documents: texts": {"trace": spans(retriever([DOCUMENT])), "expectations": TRUTH},
    "documents: one text": {"trace": spans(retriever(DOCUMENT)), "expectations": TRUTH},
    "documents: in an object": {"trace": spans(retriever({"documents": DOCUMENTS})), "expectations": TRUTH},
    "documents: none": {"trace": spans(retriever([])), "expectations": TRUTH},
    "documents: in a column": {**ROW, "retrieved_context": [{"doc_uri": "a", "content": DOCUMENT}]},
    "documents in a column, truth": {
        **ROW,
        "retrieved_context": [{"doc_uri": "a", "content": DOCUMENT}],
        "expectations": TRUTH,
    },
    "documents without content": {**ROW, "retrieved_context": [{"doc_uri": "a"}]},
    "calls in a column": {**ROW, "predicted_trajectory": [{"tool_name": "look_up", "tool_input": {"policy": "leave"}}]},
    "no calls in a column": {**ROW, "predicted_trajectory": []},
    "a session column": {**ROW, "session": "s1"},
    "a session column, a trace": {"trace": spans(), "session": "s1"},
    "a session column, its row": {**ROW, "trace": spans(), "session": "s1"},
    "a session_id, a trace": {"trace": spans(), "session_id": "s1"},
    "a trace that returned a number": {"trace": spans(outputs=42)},
    "calls and documents in columns": {
        "request": "How many days?",
        "response": A,
        "retrieved_context": [{"doc_uri": "a", "content": DOCUMENT}],
        "predicted_trajectory": [{"tool_name": "look_up", "tool_input": {"policy": "leave"}}],
        "expected_facts": ["12 days"],
    },
    "tokens in a column": {**ROW, "input_token_count": 5},
}

CALLING = ("a trace with a tool", "calls in a column", "calls and documents in columns")
ANSWERS = ("Completeness", "Fluency", "PIIDetection", "RegexMatch", "ResponseLength", "Summarization")
NO_TRUTH = ("documents", "documents: content", "documents: in a column")

EXCEPTIONS: dict[str, dict[str, Sequence[str]]] = {
    "the judge would be asked about no tool call": {kind: CALLS for kind in KINDS if kind not in CALLING},
    "the judge would read an empty answer": {
        "inputs only": ANSWERS,
        "outputs: an empty text": [*ANSWERS, "Guidelines", "RelevanceToQuery", "Safety"],
    },
    "the judge would compare the answer with nothing": {"empty facts": ["Correctness"]},
    "the documentation asks for a ground truth": dict.fromkeys(NO_TRUTH, ("RetrievalSufficiency",)),
    "the judge would read an empty context": {
        "documents: none": ["RetrievalGroundedness", "RetrievalSufficiency"],
        "documents without content": RETRIEVAL,
    },
}
"""Cells that MLflow scores and this package does not support, by the argument."""


def stricter(kind: str) -> set[str]:
    return {name for kinds in EXCEPTIONS.values() for name in kinds.get(kind, ())}


READS = {
    **dict.fromkeys(RETRIEVAL, DOCUMENT),
    **dict.fromkeys(CALLS, "look_up"),
    "ExpectationsGuidelines": "Name the number",
    "Correctness": "12 days",
}
"""What must be in the prompt of a judge that scores a row."""


def scored(mlflow: Any, row: Row) -> dict[str, str]:
    """The scorers that give a score on a row as `prepare_for_evaluate` returns it, each with the prompts of its
    judge."""
    with without_its_warnings():
        result = mlflow.genai.evaluate(data=prepare_for_evaluate([row]), scorers=scorers(mlflow))
        (trace,) = mlflow.search_traces(run_id=result.run_id, return_type="list")
    found: dict[str, str] = {}
    for given in trace.info.assessments:
        if given.expectation is None and given.error is None and given.value is not None and given.name in NAMES:
            found[given.name] = f"{found.get(given.name, '')}\n{given.rationale or ''}"
    return found


def supported_by(row: Row) -> set[str]:
    """The scorers that the coverage, its table and `supported_scorers` name for a row: the same."""
    report = validate_eval_set([row], outputs="provided")
    found = {name for name in NAMES if report.metric_support[name][0]}
    table = report.metrics[report.metrics["system"] == "mlflow"]
    assert set(table[table["supported"] == 1]["metric"]) == found
    lines = supported_scorers(report, model=MODEL).table.set_index("scorer")
    assert {name for name in NAMES if lines.loc[name, "rows"]} == found
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_supports_what_mlflow_scores(
    kind: str, mlflow: Any, record_property: Callable[[str, object], None]
) -> None:
    found, supported = scored(mlflow, KINDS[kind]), supported_by(KINDS[kind])
    agreeing = len(NAMES) - len(found.keys() ^ supported)
    record_property("oracle", ("MLflow", len(NAMES), agreeing, len(stricter(kind) & found.keys() - supported)))
    assert supported - found.keys() == set()
    assert found.keys() - supported == stricter(kind)
    for name in supported & READS.keys():
        assert READS[name] in found[name], name


MIXED = {kind: row for kind, row in KINDS.items() if {"request", "session", "session_id"}.isdisjoint(row)}


@pytest.mark.usefixtures("mlflow")
def test_the_reasons_of_an_evaluation_are_those_of_the_coverage() -> None:
    """All kinds in one dataset: a row has a score of each scorer that it supports, and of the others a reason."""
    rows = [{**row, "request_id": kind} for kind, row in MIXED.items()]
    from agent_eval_schema.scorers import SCORERS

    own = {kind.model_fields["name"].default for kind in SCORERS}
    chosen = [s for s in supported_scorers(rows, model=MODEL) if s.name not in own]
    with without_its_warnings():
        result = evaluate_eval_set(rows, chosen)
    scores, reasons = result.scores.set_index("request_id"), result.reasons.set_index("request_id")
    by_name = {snake(name): name for name in NAMES if name not in ARGUMENTS}
    support = validate_eval_set(rows, outputs="provided").metric_support
    assert [name for name in by_name if name not in scores] == []
    for row, kind in enumerate(MIXED):
        for name, scorer in by_name.items():
            if scorer not in SESSIONS:  # which has one score, on its first row
                assert (scores.loc[kind, name] is not None) == support[scorer][row], (kind, name)
                assert (reasons.loc[kind, name] is not None) or support[scorer][row], (kind, name)


def snake(name: str) -> str:
    """The name under which MLflow logs a scorer: PIIDetection is pii_detection."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@pytest.mark.parametrize("row", [{"inputs": Q, "session": "s1"}, {"request": "How many days?", "session_id": "s1"}])
def test_sessions_of_an_agent_that_will_run_have_no_score(row: Row) -> None:
    """MLflow raises an exception for its session scorers with predict_fn."""
    report = validate_eval_set([row], outputs="generated")
    assert [name for name in SESSIONS if report.metric_support[name][0]] == []
    assert {snake(name) for name in SESSIONS}.isdisjoint(s.name for s in supported_scorers(report, model=MODEL))


CASES: list[Row] = [
    {"goal": "Know the days", "persona": "In a hurry", "context": {"team": "hr"}, "expectations": TRUTH},
    {"goal": "Book a day", "simulation_guidelines": ["Be brief"]},
]


@pytest.mark.parametrize("form", ["test cases", "records", "as JSON Lines"])
def test_a_test_case_supports_what_mlflow_scores_in_its_conversation(
    form: str, mlflow: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """MLflow's simulator takes the prepared test cases, and its sessions, read again, support the same scorers."""
    from mlflow.genai.simulators import BaseSimulatedUserAgent, ConversationSimulator

    class User(BaseSimulatedUserAgent):  # type: ignore[misc]
        def generate_message(self, context: Any) -> str:
            return f"{context.goal} ({context.turn})"

    def agent(messages: list[Any], team: str = "", **_: Any) -> str:
        return f"Twelve days, {team}, {len(messages)}."

    records = [
        {"inputs": {k: v for k, v in case.items() if k != "expectations"}, "expectations": case.get("expectations")}
        for case in CASES
    ]
    data: Any = CASES if form == "test cases" else records
    if form == "as JSON Lines":
        (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
        data = str(tmp_path / "cases.jsonl")
    report = validate_eval_set(data)
    assert (report.ok, report.outputs, len(report.issues)) == (True, "generated", 0)
    assert all(report.metric_support[name].all() for name in SESSIONS)

    monkeypatch.setattr(ConversationSimulator, "_check_goal_achieved", lambda *_: False)
    with without_its_warnings():
        simulator = ConversationSimulator(
            test_cases=prepare_for_evaluate(data), max_turns=2, user_model=MODEL, user_agent_class=User
        )
        chosen = [s for s in scorers(mlflow) if s.name in SESSIONS]
        result = mlflow.genai.evaluate(data=simulator, predict_fn=agent, scorers=chosen)
        traces = mlflow.search_traces(run_id=result.run_id, return_type="list")
    assert {a.name for t in traces for a in t.info.assessments if a.expectation is None and a.value} == SESSIONS
    sessions = validate_eval_set([trace.to_dict() for trace in traces])
    assert (sessions.row_count, sessions.ok) == (4, True)
    assert all(sessions.metric_support[name].all() for name in SESSIONS)
    truths = [row["expected_response"] for row in sessions.iter_rows()]
    assert sorted(map(str, truths)) == ["12 days", "None", "None", "None"]  # that of a session is on its first trace


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ({"persona": "In a hurry", "goal": ""}, "goal"),
        ({"persona": "In a hurry", "goal": None}, "inputs"),
        ({"goal": "Go", "persona": "In a hurry", "context": "from SFO"}, "context"),
        ({"goal": "Go", "persona": "In a hurry", "context": {"messages": []}}, "context.messages"),
        ({"goal": "Go", "persona": "In a hurry", "context": {"mlflow_session_id": "s"}}, "context.mlflow_session_id"),
    ],
)
@pytest.mark.usefixtures("mlflow")
def test_what_the_simulator_rejects_is_an_error(case: Row, path: str) -> None:
    from mlflow.genai.simulators import ConversationSimulator

    with pytest.raises(ValueError, match="Test cases at indices"):
        ConversationSimulator(test_cases=[case], user_model=MODEL)
    (issue,) = validate_eval_set([case]).iter_issues()
    assert (issue.code, issue.path) == ("AE231", path)
    if "goal" in case and case["goal"] is not None:  # as a record of a dataset
        (issue,) = validate_eval_set([{"inputs": case}]).iter_issues()
        assert (issue.code, issue.path) == ("AE231", f"inputs.{path}")


def test_test_cases_are_not_evaluated_without_the_simulator() -> None:
    with pytest.raises(EvalSetError, match="ConversationSimulator"):
        evaluate_eval_set(CASES, [], predict_fn=lambda goal: goal)
