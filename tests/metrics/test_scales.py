"""Scores as numbers, and the scales of metrics."""

import math

import numpy as np

from agent_eval_schema.metrics.catalog import METRICS
from agent_eval_schema.metrics.scales import direction_of, direction_of_metric, numbers_of, scale_of, scale_of_metric


def test_words_of_judges_are_numbers() -> None:
    found = numbers_of(["yes", "no", True, 0.25, [1.0, "no"], None, "what", [], float("inf")])
    assert found[:5].tolist() == [1.0, 0.0, 1.0, 0.25, 0.5]
    assert np.isnan(found[5:]).all()


def test_scales_of_the_catalog() -> None:
    scales = {(m.system, m.name): scale_of_metric(m) for m in METRICS}
    assert scales["azure", "relevance"] == (1, 5)
    assert scales["azure", "violence"] == (0, 7)
    assert scales["azure", "qa"] is None
    assert scales["azure", "task_completion"] == (0, 1)
    assert scales["ces", "semanticSimilarityResult"] == (0, 4)
    assert scales["adk", "tool_call_count_v1"] == (0, math.inf)
    assert scales["databricks", "agent/latency_seconds"] == (0, math.inf)
    assert scales["databricks", "retrieval/ground_truth/document_recall"] == (0, 1)


def test_every_named_scale_and_direction_is_that_of_a_metric() -> None:
    """A misspelled name would leave the metric on the scale from 0 to 1."""
    from agent_eval_schema.metrics.scales import _CATALOG, _DIRECTIONS

    assert {*_CATALOG, *_DIRECTIONS} <= {(m.system, m.name.removeprefix(f"{m.system}/")) for m in METRICS}


def test_directions_of_the_catalog() -> None:
    found = {(m.system, m.name): direction_of_metric(m) for m in METRICS}
    assert found["azure", "violence"] == found["ragas", "NoiseSensitivity"] == found["vertex", "failure"] == -1
    assert found["databricks", "agent/total_token_count"] == found["ces", "turnLatency"] == -1
    assert found["azure", "relevance"] == found["deepeval", "ToxicityMetric"] == found["mlflow", "PIIDetection"] == 1
    assert found["strands", "strands/RefusalEvaluator"] == found["azure", "qa"] == 0


def test_a_name_has_the_direction_that_all_platforms_give_it() -> None:
    assert direction_of("trajectory_recall") == direction_of("relevance_to_query") == direction_of("Safety") == 1
    assert direction_of("failure") == direction_of("latency_in_seconds") == direction_of("agent/latency_seconds") == -1
    assert direction_of("toxicity") == direction_of("leaks_data") == 0
    assert direction_of("groundedness", shares=True) == 0  # from 1 to 5 in Azure
    assert direction_of("failure", shares=True) == -1
    assert direction_of("latency_in_seconds", shares=True) == 0


def test_scales_of_metrics_that_are_computed() -> None:
    assert scale_of("trajectory_recall") == scale_of("bleu") == (0, 1)
    assert scale_of("latency_in_seconds") == scale_of("total_token_count") == (0, math.inf)
    assert scale_of("my metric") is None
