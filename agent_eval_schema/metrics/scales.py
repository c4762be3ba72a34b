"""What a score is: its number, and the scale of its metric."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from agent_eval_schema.metrics.catalog import LATENCY, METRICS, Metric
from agent_eval_schema.metrics.definitions import DEFINITIONS

Numbers = np.ndarray[Any, Any]

WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0}


def numbers_of(values: Iterable[Any]) -> Numbers:
    """Scores as numbers: words of judges as 0 and 1, several scores of a row as their mean, NaN where there is none."""
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    if isinstance(value, list | tuple | np.ndarray):
        found = [n for n in map(_number, value) if n == n]
        return sum(found) / len(found) if found else math.nan
    if isinstance(value, str):
        word = value.strip('" ').lower()
        value = WORDS.get(word, word)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


# --- scales
Scale = tuple[float, float]

_STEPS: dict[str, dict[Scale, str]] = {
    "adk": {(1, 5): "response_evaluation_score"},
    "azure": {
        (1, 5): "relevance coherence fluency groundedness retrieval similarity response_completeness intent_resolution "
        "tool_call_accuracy",
        (0, 7): "violence sexual self_harm hate_unfairness",
    },
    "ces": {(0, 4): "semanticSimilarityResult"},
    "mlflow-third-party": {(1, 5): "mlflow.google_adk/ResponseEvaluation mlflow.ragas/RubricsScore"},
    "ragas": {(1, 5): "DomainSpecificRubrics RubricsScoreWithoutReference RubricsScoreWithReference"},
    "vertex-genai": {
        (1, 5): "COHERENCE FLUENCY SUMMARIZATION_QUALITY QUESTION_ANSWERING_QUALITY MULTI_TURN_CHAT_QUALITY",
        (-2, 2): "VERBOSITY",
    },
}
"""The scales of judges that give steps: docstrings and templates of the packages that platforms.py names."""

_UNKNOWN = {
    "azure": "qa content_safety",
    "bedrock": "Builtin.ProfessionalStyleAndTone",
    "langfuse": "Goal-Accuracy",
    "mlflow-third-party": "mlflow.ragas/DiscreteMetric mlflow.ragas/InstanceSpecificRubrics",
    "openai": "score_model label_model",
}
"""Judges that give several numbers, or whose scale is chosen with their prompt."""

_AMOUNTS = {"latency", "input_tokens", "output_tokens", "total_tokens"}

_CATALOG: dict[tuple[str, str], Scale | None] = {
    **{(of, n): scale for of, by_scale in _STEPS.items() for scale, names in by_scale.items() for n in names.split()},
    **{(of, name): None for of, names in _UNKNOWN.items() for name in names.split()},
}


def scale_of_metric(metric: Metric) -> Scale | None:
    """The lowest and the highest score of a metric of the catalog; None if it is unknown."""
    key = (metric.system, metric.name.removeprefix(f"{metric.system}/"))
    if key in _CATALOG:
        return _CATALOG[key]
    is_amount = _AMOUNTS.intersection(metric.fields) or metric.name in ("ResponseLength", "trajectory:step-count")
    return (0.0, math.inf) if is_amount or "call_count" in metric.name else (0.0, 1.0)


def scale_of(metric: str) -> Scale | None:
    """The lowest and the highest score of a metric that this package computes; None for any other."""
    if metric in (LATENCY, "latency_seconds") or (metric in DEFINITIONS and metric.endswith("_count")):
        return 0.0, math.inf
    return (0.0, 1.0) if metric in DEFINITIONS else None


_WANTED_HIGH = {name.replace("_", "").lower() for name in (*(m.name for m in METRICS), *DEFINITIONS)} - {"failure"}


def is_wanted_high(metric: str) -> bool:
    """Whether a 1 is known to be better than a 0: of a scorer that a user wrote, a False may be what is wanted."""
    return metric.replace("_", "").lower() in _WANTED_HIGH
