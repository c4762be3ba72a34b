"""Scores as numbers, and what is known of metrics."""

import math

import msgspec
import numpy as np
import pytest

from agent_eval_schema import EvalSetError, MetricInfo
from agent_eval_schema.evaluation.score import METRIC_INPUTS
from agent_eval_schema.metrics.catalog import FAILURE, SUPPORT_FIELDS
from agent_eval_schema.metrics.definitions import DEFINITIONS, FIELD_OF_INPUT, Definition, RowMetric
from agent_eval_schema.metrics.known_metrics import CATALOG, metric_info
from agent_eval_schema.metrics.metric_info import numbers_of, parse_scale
from agent_eval_schema.schema import COLUMNS


def test_words_of_judges_are_numbers() -> None:
    found = numbers_of(["yes", "no", True, 0.25, [1.0, "no"], None, "what", [], float("inf")])
    assert found[:5].tolist() == [1.0, 0.0, 1.0, 0.25, 0.5]
    assert np.isnan(found[5:]).all()


_OF = {(metric.system, metric.name): info for metric, info in CATALOG.items()}


@pytest.mark.parametrize("reads", [(), ("mood",), ("response", "mood")])
def test_a_metric_of_a_row_reads_columns_that_rows_have(reads: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"^reads: expected columns among .*response.*; got "):
        RowMetric(info=MetricInfo("bleu"), reads=reads, measure=len, better={}, worse={})
    metric = RowMetric(info=MetricInfo("bleu"), reads=("prompt", "reference"), measure=len, better={}, worse={})
    assert metric.needs == (FIELD_OF_INPUT["prompt"], FIELD_OF_INPUT["reference"])


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_reads_columns_and_needs_fields_that_there_are(name: str) -> None:
    reads, needs, *_ = DEFINITIONS[name]
    assert set(reads) <= {*METRIC_INPUTS, *COLUMNS, FAILURE}, "METRIC_INPUTS of evaluation/score.py, or a figure"
    fields = {field for need in needs for field in (need if isinstance(need, tuple) else (need,))}
    assert fields <= set(SUPPORT_FIELDS), "a key of metrics/fields.json"


def test_a_definition_states_what_its_scores_mean() -> None:
    copied = Definition(("response",), ("response",), len, direction="lower", scale=(0.0, None), unit="words")
    assert copied.info("copied") == MetricInfo("copied", "lower", (0.0, None), unit="words")
    assert DEFINITIONS["bleu"].info("bleu") == MetricInfo("bleu", "higher", (0.0, 1.0))


def test_scales_and_units_of_the_catalog() -> None:
    scales = {key: info.ends for key, info in _OF.items()}
    assert scales["azure", "relevance"] == (1, 5)
    assert scales["azure", "violence"] == (0, 7)
    assert scales["azure", "qa"] is None
    assert scales["azure", "task_completion"] == (0, 1)
    assert scales["ces", "semanticSimilarityResult"] == (0, 4)
    assert scales["adk", "tool_call_count_v1"] == (0, math.inf)
    assert scales["databricks", "agent/latency_seconds"] == (0, math.inf)
    assert scales["databricks", "retrieval/ground_truth/document_recall"] == (0, 1)
    assert [_OF[key].unit for key in (("azure", "relevance"), ("ces", "turnLatency"), ("adk", "token_usage_v1"))] == [
        *("steps", "s", "tokens")
    ]


def test_directions_of_the_catalog() -> None:
    for key in (("azure", "violence"), ("ragas", "NoiseSensitivity"), ("vertex", "failure")):
        assert _OF[key].direction == "lower"
    assert _OF["databricks", "agent/total_token_count"].direction == _OF["ces", "turnLatency"].direction == "lower"
    for key in (("azure", "relevance"), ("deepeval", "ToxicityMetric"), ("mlflow", "PIIDetection")):
        assert _OF[key].direction == "higher"
    assert _OF["strands", "strands/RefusalEvaluator"].direction == _OF["vertex-genai", "VERBOSITY"].direction == "none"
    assert _OF["azure", "qa"].direction == _OF["agentcore", "agentcore/Builtin.Harmfulness"].direction == "unknown"


def test_a_name_has_what_all_platforms_say_of_it() -> None:
    for name in ("trajectory_recall", "relevance_to_query", "Safety"):
        assert metric_info(name).share_sign == 1
    for name in ("failure", "latency_in_seconds", "agent/latency_seconds"):
        assert metric_info(name).direction == "lower"
    assert metric_info("toxicity").direction == metric_info("leaks_data").direction == "unknown"
    assert metric_info("groundedness").share_sign == 0  # from 1 to 5 in Azure
    assert metric_info("failure").share_sign == -1
    assert metric_info("latency_in_seconds").share_sign == 0
    assert metric_info("trajectory_recall").ends == metric_info("bleu").ends == (0, 1)
    assert metric_info("total_token_count").ends == (0, math.inf)
    assert metric_info("my metric") == MetricInfo("my metric")
    assert metric_info("bedrock/Builtin.Harmfulness").direction == "lower"


@pytest.mark.parametrize(
    "name",
    [
        "error_rate",
        "cost",
        "toxicity",
        "hallucination",
        "latencyMs",
        "duration",
        "response_time",
        "perplexity",
        "policy_violations",
        "WER",
        "num_errors",
        "bias",
        "Bias",
    ],
)
def test_a_name_of_something_bad_suggests_lower(name: str) -> None:
    assert metric_info(name).sign == -1
    assert metric_info(name).suggests_lower


@pytest.mark.parametrize(
    "name", ["sentiment", "error_free", "cost_efficiency", "non_toxic", "harmlessness", "recall", "timeliness"]
)
def test_other_names_do_not(name: str) -> None:
    assert metric_info(name).sign == 1


@pytest.mark.parametrize("name", ["num_turns", "turn_count", "response_length", "wordCount", "n_steps"])
def test_counts_have_no_direction(name: str) -> None:
    info = metric_info(name)
    assert (info.sign, info.is_quality, info.assumption) == (0, False, "")


def test_what_is_stated_wins_over_catalogs_and_names() -> None:
    known = {"toxicity": MetricInfo("toxicity", "higher"), "num_turns": MetricInfo("num_turns", "lower")}
    assert metric_info("toxicity", known).sign == 1
    assert metric_info("num_turns", known).sign == -1


def test_figures_are_no_quality() -> None:
    names = [
        "latency_in_seconds",
        "total_token_count",
        "latency",
        "my_cost",
        "num_turns",
        "recall",
        "toxicity",
        "failure",
    ]
    assert [metric_info(name).is_quality for name in names] == [*[False] * 5, *[True] * 3]


def test_the_scale_or_the_unit_is_told_where_a_number_does_not_show_it() -> None:
    told = {name: metric_info(name).told for name in ("bleu", "rouge_l_sum", "total_token_count", "recall", "fluency")}
    assert told == {
        "bleu": "0 to 1",
        "rouge_l_sum": "0 to 1",
        "total_token_count": "tokens",
        "recall": "",
        "fluency": "",
    }
    assert metric_info("response_completeness").told == "1 to 5"


def test_an_assumption_names_the_option_as_a_shell_reads_it() -> None:
    assert MetricInfo("q").assumption == "direction assumed: higher is better (`--lower-is-better q`)"
    assert MetricInfo("a b; rm").option("lower") == "--lower-is-better 'a b; rm'"
    assert MetricInfo("-x").option("lower") == "--lower-is-better=-x"
    assert MetricInfo("toxicity").assumption == (
        "direction assumed from the name: lower is better (`--lower-is-better toxicity` confirms it, "
        "`--higher-is-better toxicity` rejects it)"
    )


@pytest.mark.parametrize("scale", [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), (0,), "01"])
def test_a_scale_has_two_ends(scale: object) -> None:
    with pytest.raises(EvalSetError, match=r"^scale: expected the lowest and the highest score"):
        MetricInfo("q", scale=scale)  # type: ignore[arg-type]


def test_a_direction_is_one_of_four() -> None:
    with pytest.raises(EvalSetError, match=r"did you mean 'lower'"):
        MetricInfo("q", "lowre")  # type: ignore[arg-type]


def test_a_scale_is_written_as_two_numbers() -> None:
    assert (parse_scale("0..1"), parse_scale("-2..2.5"), parse_scale("0..")) == ((0, 1), (-2, 2.5), (0, None))
    for text in ("0-1", "1..0", "..", "0..inf", ""):
        with pytest.raises(EvalSetError, match="expected a scale, such as"):
            parse_scale(text)


def test_it_is_stored_as_json() -> None:
    infos = tuple(CATALOG.values())
    assert msgspec.json.decode(msgspec.json.encode(infos), type=tuple[MetricInfo, ...]) == infos
