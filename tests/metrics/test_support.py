"""Which metric each row supports: the seed's table in both modes, what would unlock the rest, and why."""

import argparse
import re
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from agent_eval_schema import EvalSetError, metric_support, validate_eval_set
from agent_eval_schema.cli import argument_parser
from agent_eval_schema.formats.names import FORMAT_NAMES
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.metrics.catalog import BIT, FIELD_WORDS, METRICS, SUPPORT_FIELDS, SYSTEMS
from agent_eval_schema.metrics.support import System, metrics_of, shown_systems, support_of, why_supported
from agent_eval_schema.validation.report import summary_of

HEADER = "display_name,turn_index,action_type,text_content,response_agent,tool_name\n"

R = {"request": "How long is parental leave?"}
E = {"expected_response": "16 weeks."}
C = {"expected_retrieved_context": [{"doc_uri": "leave.pdf"}]}
FACTS = {"expected_facts": ["16 weeks"]}
RESPONSE = {"response": "You get 16 weeks."}
DOCUMENTS = {"retrieved_context": [{"doc_uri": "leave.pdf", "content": "16 weeks of leave"}]}
TOKENS = {"input_token_count": 1, "output_token_count": 2, "total_token_count": 3}

ANY = (
    "relevance_to_query",
    "safety",
    "global_guideline_adherence",
    "groundedness",
    "chunk_relevance_precision",
    *TOKENS,
)
WITH_TRUTH = ("correctness", "context_sufficiency")
WITH_DOCUMENTS = ("document_recall",)


def supported(rows: list[dict[str, Any]], **options: Any) -> set[str]:
    """The short names of the metrics that the first row supports."""
    frame = metric_support(rows, **options)
    return {_short(name) for name in frame.columns if frame[name].iloc[0]}


def _short(name: str) -> str:
    return name.removesuffix("/rating").split("/")[-1]


@pytest.mark.parametrize(
    ("row", "columns_of_the_seed"),
    [(R, ANY), ({**R, **E}, ANY + WITH_TRUTH), ({**R, **E, **C}, ANY + WITH_TRUTH + WITH_DOCUMENTS)],
    ids=["R", "R+E", "R+E+C"],
)
def test_the_table_of_seed_003_with_the_app_passed(row: dict[str, Any], columns_of_the_seed: tuple[str, ...]) -> None:
    assert supported([row], outputs="generated") == {*columns_of_the_seed, "latency_seconds"}


JUDGED = ("relevance_to_query", "safety", "global_guideline_adherence")

PROVIDED = [
    (R | RESPONSE, {*JUDGED}),
    (R | RESPONSE | E, {*JUDGED, "correctness"}),
    (R | RESPONSE | FACTS, {*JUDGED, "correctness"}),
    (R | RESPONSE | DOCUMENTS, {*JUDGED, "groundedness", "chunk_relevance_precision"}),
    (
        R | RESPONSE | DOCUMENTS | E,
        {*JUDGED, "groundedness", "chunk_relevance_precision", *WITH_TRUTH},
    ),
    (
        R | RESPONSE | DOCUMENTS | C,
        {*JUDGED, "groundedness", "chunk_relevance_precision", "document_recall"},
    ),
    (R | RESPONSE | C, {*JUDGED}),
    (R | RESPONSE | TOKENS, {*JUDGED, *TOKENS}),
    (R | RESPONSE | {"guidelines": ["Be kind"]}, {*JUDGED, "guideline_adherence"}),
    (
        R | RESPONSE | {"guidelines": ["Be kind"], "guidelines_context": {"policy": "16 weeks"}},
        {*JUDGED, "guideline_adherence"},
    ),
    # the judge of guidelines reads the context where there is no answer
    (
        R | {"response": " ", "guidelines": ["Be kind"], "guidelines_context": {"policy": "16 weeks"}},
        {"guideline_adherence"},
    ),
    (R | RESPONSE | {"latency_seconds": 0.5}, {*JUDGED, "latency_seconds"}),
    # nothing to judge: a blank answer, documents without content, documents without a URI to find
    (R | {"response": " "}, set()),
    (R | RESPONSE | {"retrieved_context": [{"doc_uri": "a"}]}, {*JUDGED}),
    # looked for and not found: a recall of 0, and nothing to judge
    (R | RESPONSE | C | {"retrieved_context": []}, {*JUDGED, "document_recall"}),
]


@pytest.mark.parametrize(("row", "metrics"), PROVIDED)
def test_with_outputs_provided_the_row_must_hold_what_the_metric_reads(row: dict[str, Any], metrics: set[str]) -> None:
    assert supported([row], outputs="provided") == metrics


def test_an_invalid_row_supports_nothing() -> None:
    rows = [R | RESPONSE | E | FACTS, R | RESPONSE | E]
    frame = metric_support(rows)
    assert not frame.iloc[0].any()
    assert frame.iloc[1].any()


SPANS = {
    "RETRIEVER": '[{"page_content": "16 weeks", "metadata": {"doc_uri": "leave.pdf"}}]',
    "TOOL": '"done"',
}


def trace(*kinds: str, session: str | None = None) -> dict[str, Any]:
    root = {"mlflow.spanInputs": '"How long is parental leave?"', "mlflow.spanOutputs": '"16 weeks"'}
    spans = [{"name": "agent", "span_id": "1", "attributes": root}]
    spans += [
        {
            "name": kind.lower(),
            "span_id": f"s{i}",
            "parent_span_id": "1",
            "attributes": {"mlflow.spanType": f'"{kind}"', "mlflow.spanOutputs": SPANS[kind]},
        }
        for i, kind in enumerate(kinds)
    ]
    info = {"trace_id": "t", "state": "OK", "trace_metadata": {"mlflow.trace.session": session} if session else {}}
    return {"trace": {"info": info, "data": {"spans": spans}}}


@pytest.mark.parametrize(
    ("row", "metric", "yes"),
    [
        (R | RESPONSE, "Correctness", False),
        (R | RESPONSE | FACTS, "Correctness", True),
        (R | RESPONSE | FACTS, "Equivalence", False),
        (R | RESPONSE | E, "Equivalence", True),
        (R | RESPONSE | DOCUMENTS, "RetrievalGroundedness", True),  # in the trace that is made of the row
        (trace("RETRIEVER"), "RetrievalGroundedness", True),
        (trace("TOOL"), "RetrievalRelevance", False),
        (trace("RETRIEVER"), "RetrievalSufficiency", False),
        (trace("RETRIEVER") | E, "RetrievalSufficiency", True),
        (trace("TOOL"), "ToolCallCorrectness", True),
        (R | RESPONSE, "ToolCallCorrectness", False),
        (trace(), "UserFrustration", False),
        (trace(session="s"), "UserFrustration", True),
        (R | RESPONSE, "ResponseLength", True),
        (R | RESPONSE | {"guidelines": {"tone": ["kind"]}}, "ExpectationsGuidelines", True),
    ],
)
def test_mlflow_scorers_by_row(row: dict[str, Any], metric: str, yes: bool) -> None:
    assert bool(metric_support([row], system="mlflow")[metric].iloc[0]) is yes


WRAPPED = "mlflow.deepeval/ExactMatch"


@pytest.mark.parametrize(
    ("expectations", "yes"),
    [({"expected_output": "16 weeks"}, True), ({"expected_output": ""}, False), ({"expected_response": "16"}, False)],
)
def test_a_wrapped_scorer_reads_an_expectation_by_its_own_name(expectations: dict[str, Any], yes: bool) -> None:
    row = {"inputs": {"query": "How long is parental leave?"}, "outputs": "16 weeks", "expectations": expectations}
    assert bool(metric_support([row], system="mlflow-third-party")[WRAPPED].iloc[0]) is yes


CALLS = [{"tool_name": "f", "tool_input": {}}]
BOTH = {"predicted_trajectory": CALLS, "reference_trajectory": CALLS}
TOOLS = (
    "toolInvocationScore",
    "toolOrderedInvocationScore",
    "parameterCorrectnessScore",
    "overallToolInvocationResult",
)


@pytest.mark.parametrize(
    ("row", "metrics"),
    [
        (R | RESPONSE, set()),
        (R | RESPONSE | {"predicted_trajectory": CALLS}, {"trajectory_single_tool_use"}),
        (R | RESPONSE | {"predicted_trajectory": CALLS, "reference_trajectory": []}, {"trajectory_single_tool_use"}),
        (trace("TOOL"), {"trajectory_single_tool_use", "failure"}),
        (
            R | RESPONSE | {"predicted_trajectory": CALLS, "reference_trajectory": CALLS},
            {f"trajectory_{n}" for n in ["exact_match", "in_order_match", "any_order_match", "precision", "recall"]}
            | {"trajectory_single_tool_use"},
        ),
    ],
)
def test_trajectory_metrics_by_row(row: dict[str, Any], metrics: set[str]) -> None:
    assert supported([row], system="vertex") == metrics


@pytest.mark.parametrize(
    ("row", "metrics"),
    [
        (R | RESPONSE, {"hallucinationResult"}),
        (R | RESPONSE | E, {"hallucinationResult", "semanticSimilarityResult"}),
        (R | RESPONSE | {"latency_seconds": 1}, {"hallucinationResult", "turnLatency"}),
        (R | RESPONSE | {"predicted_trajectory": CALLS}, {"hallucinationResult"}),
        (R | RESPONSE | BOTH, {"hallucinationResult", *TOOLS}),
        # the agent was to call a tool, and its trace has none: it failed, and that can be told
        (trace() | {"reference_trajectory": CALLS}, {"hallucinationResult", *TOOLS}),
    ],
)
def test_ces_metrics_by_row(row: dict[str, Any], metrics: set[str]) -> None:
    assert supported([row], system="ces") == metrics


def test_a_trace_will_be_there_whether_the_app_calls_tools_or_not() -> None:
    lines = {
        line.metric: line for line in summary_of(validate_eval_set([R | {"reference_trajectory": CALLS}])).coverage
    }
    assert lines["toolInvocationScore"].supported == 1
    assert lines["toolInvocationScore"].condition == ""
    assert lines["trajectory_recall"].condition == "if the agent calls tools"


def test_the_report_names_the_field_that_would_unlock_most_rows() -> None:
    rows = [R | RESPONSE | E] * 2 + [R | RESPONSE] * 3 + [R | {"trace": None, "response": " "}]
    line = validate_eval_set(rows).metrics.set_index("metric").loc["response/llm_judged/correctness/rating"]
    assert (line["supported"], line["total"]) == (2, 6)
    assert (line["unlock"], line["unlock_rows"]) == ("expected_response or expected_facts", 3)


def test_fields_that_are_only_missing_together_are_named_together() -> None:
    line = validate_eval_set([R | RESPONSE]).metrics.set_index("metric").loc["retrieval/ground_truth/document_recall"]
    assert line["unlock"] == "doc_uri in retrieved_context, and expected_retrieved_context"
    assert line["unlock_rows"] == 1


def test_what_the_app_must_do_is_said_when_it_is_to_be_run() -> None:
    lines = validate_eval_set([R]).metrics.set_index("metric")["condition"]
    assert lines["response/llm_judged/groundedness/rating"] == "if the agent retrieves documents"
    assert lines["response/llm_judged/safety/rating"] == ""


@pytest.mark.parametrize(
    ("row", "metric", "words"),
    [
        (0, "correctness", "row 0 supports response/llm_judged/correctness/rating"),
        (1, "correctness", "row 1 does not support response/llm_judged/correctness/rating: it lacks "
                           "expected_response or expected_facts"),
        (2, "safety", "row 2 does not support response/llm_judged/safety/rating: it is invalid (AE201 expected a "
                      "request, got none)"),
    ],
)  # fmt: skip
def test_why(row: int, metric: str, words: str) -> None:
    report = validate_eval_set([R | RESPONSE | E, R | RESPONSE, RESPONSE])
    assert report.why(row, metric) == words


def test_why_refuses_a_row_or_metric_that_is_not_there() -> None:
    report = validate_eval_set([R | RESPONSE])
    with pytest.raises(IndexError, match="row 5"):
        report.why(5, "safety")
    with pytest.raises(EvalSetError, match="got 'taste'"):
        report.why(0, "taste")


def test_an_unknown_system_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(EvalSetError, match="databricks, mlflow, vertex, ces, adk, azure, bedrock"):
        metric_support([R], system="excel")


def test_metric_support_has_a_line_for_each_row_and_all_metrics_of_the_system() -> None:
    frame = metric_support([R, R, {}], system="all", outputs="generated")
    assert frame.shape == (3, len(METRICS))
    assert set(frame.dtypes) == {"bool"} or {str(t) for t in frame.dtypes} == {"bool"}


def test_the_numbers_of_the_table_follow_from_the_frame() -> None:
    report = validate_eval_set([R | RESPONSE | E, R | RESPONSE, RESPONSE])
    sums = report.metric_support.sum()
    assert dict(zip(report.metrics["metric"], report.metrics["supported"], strict=True)) == sums.to_dict()


def test_the_catalogue_is_consistent() -> None:
    assert len({(m.system, m.name) for m in METRICS}) == len(METRICS) == len({m.name for m in METRICS})
    needs = {f for m in METRICS for n in m.needs for f in ((n,) if isinstance(n, str) else n)}
    assert needs <= set(SUPPORT_FIELDS)
    assert set(FIELD_WORDS) <= set(SUPPORT_FIELDS)
    assert len(set(BIT.values())) == len(SUPPORT_FIELDS) <= 64


# ---------------------------------------------------------------------------------------------------------------------
# documentation


def test_the_documentation_names_every_format_and_system() -> None:
    assert set(FORMAT_NAMES) == {format.name for format in FORMATS}
    options = {a.dest: a.help or "" for a in command("metrics")._actions}
    for name in (format.name for format in FORMATS):
        assert f'`"{name}"`' in str(validate_eval_set.__doc__)
        assert re.search(rf"\b{name}\b", options["format"])
    for name in (*SYSTEMS, "all"):
        assert f'"{name}"' in str(metric_support.__doc__)
        assert re.search(rf"\b{name}\b", options["system"])


def command(name: str) -> argparse.ArgumentParser:
    """The parser of a command."""
    (commands,) = (a for a in argument_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return cast(argparse.ArgumentParser, commands.choices[name])


def test_of_a_golden_csv_the_turns_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text(
        f"{HEADER}A,,,,,\n,1,INPUT_TEXT,Hi,,\n,1,EXPECTATION_TOOL_CALL,,,f\n"
        ",2,INPUT_TEXT,Bye,,\n,2,EXPECTATION_TEXT,Bye,a,\n"
    )
    frame = metric_support(path, system="ces")
    assert frame["toolInvocationScore"].tolist() == [True, False]
    assert frame["semanticSimilarityResult"].tolist() == [False, True]


def test_of_a_result_the_replayed_turns_are_measured() -> None:
    said = {"role": "a", "chunks": [{"text": "Hi"}]}
    outcome = {"expectation": {"agentResponse": said}, "observedAgentResponse": said}
    turns = [{"turnLatency": "1s", "expectationOutcome": [outcome]}, {"expectationOutcome": [outcome]}]
    frame = metric_support([{"name": "r", "goldenResult": {"turnReplayResults": turns}}], system="ces")
    assert frame["turnLatency"].tolist() == [True, False]
    assert frame["semanticSimilarityResult"].tolist() == [True, True]


def test_an_evaluation_without_rows_supports_nothing() -> None:
    assert metric_support([{"displayName": "A", "golden": {"turns": []}}], system="ces").empty


def test_the_systems_that_may_be_asked_for_are_those_there_are() -> None:
    assert sorted(get_args(System)) == sorted({"auto", "all", *SYSTEMS})
    with pytest.raises(EvalSetError, match="system: expected"):
        metrics_of("nobody")
    assert {metric.system for metric in metrics_of("vertex")} == {"vertex"}
    assert metrics_of("all") == METRICS


def test_what_the_app_must_do_is_part_of_why() -> None:
    every = sum(BIT.values())
    conditions = {metric: support_of(metric, {every: 1}, 1, "generated").condition for metric in METRICS}
    assert any(conditions.values())
    for metric, condition in conditions.items():
        more = f", {condition}" if condition else ""
        assert why_supported(metric, every, "generated") == f"supports {metric.name}{more}"
        assert why_supported(metric, every, "provided") == f"supports {metric.name}"


def test_a_report_shows_the_system_of_its_format_beside_the_common_ones() -> None:
    assert shown_systems("mlflow") == ("databricks", "mlflow", "vertex", "ces")
    assert shown_systems("azure") == ("azure", "databricks", "mlflow", "vertex", "ces")


def test_the_support_of_a_metric_is_a_value() -> None:
    relevance, safety = (support_of(METRICS[i], {}, 1, "provided") for i in (0, 1))
    assert {relevance, safety, support_of(METRICS[0], {}, 1, "provided")} == {relevance, safety}
    assert relevance.condition == ""
