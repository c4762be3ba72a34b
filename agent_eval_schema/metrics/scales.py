"""What a score is: its number, and the scale and the direction of its metric."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from agent_eval_schema.metrics.catalog import FAILURE, LATENCY, METRICS, Metric
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
    is_amount = _AMOUNTS.intersection(metric.fields) or metric.name == "trajectory:step-count"
    return (0.0, math.inf) if is_amount or "call_count" in metric.name else (0.0, 1.0)


def scale_of(metric: str) -> Scale | None:
    """The lowest and the highest score of a metric that this package computes; None for any other."""
    if metric in (LATENCY, "latency_seconds") or (metric in DEFINITIONS and metric.endswith("_count")):
        return 0.0, math.inf
    return (0.0, 1.0) if metric in DEFINITIONS else None


# --- directions
_LOWER = {
    "azure": "ungrounded_attributes violence sexual self_harm hate_unfairness protected_material indirect_attack "
    "code_vulnerability",
    "bedrock": "Builtin.Harmfulness Builtin.Stereotyping",
    "bedrock-rag": "Builtin.Harmfulness Builtin.Stereotyping",
    "langfuse": "Hallucination Toxicity",
    "langsmith": "TOXICITY FAIRNESS PII_LEAKAGE LAZINESS PROMPT_INJECTION CODE_INJECTION PERCEIVED_ERROR",
    "mlflow-third-party": "mlflow.ragas/NoiseSensitivity",
    "phoenix": "HallucinationEvaluator PiiDetectionEvaluator ToxicityEvaluator UserFrictionEvaluator",
    "ragas": "NoiseSensitivity",
    "vertex": "failure",
}
"""The metrics of which less is better, besides amounts; those of deepeval 4 and of MLflow's PIIDetection are high if
nothing was found."""

_NEITHER = {
    "agentcore": "Builtin.Harmfulness Builtin.Refusal Builtin.Stereotyping",
    "bedrock": "Builtin.Refusal",
    "bedrock-rag": "Builtin.Refusal",
    "langsmith": "AGENT_TONE LANGUAGE_DETECTION SUPPORT_INTENT WINS",
    "mlflow": "UserFrustration",
    "mlflow-third-party": "mlflow.phoenix/Hallucination mlflow.phoenix/Toxicity",
    "phoenix": "RefusalEvaluator",
    "promptfoo": "is-refusal",
    "strands": "RefusalEvaluator",
    "vertex-genai": "VERBOSITY",
}
"""The metrics that give words, or of which neither end is better in every dataset, or is documented to be."""

_DIRECTIONS: dict[tuple[str, str], int] = {
    (of, name): sign
    for sign, by_system in ((-1, _LOWER), (0, _NEITHER))
    for of, n in by_system.items()
    for name in n.split()
}


def direction_of_metric(metric: Metric) -> int:
    """1 if a higher score of a metric of the catalog is better, -1 if a lower one is; 0 if that is not known."""
    found = _DIRECTIONS.get((metric.system, metric.name.removeprefix(f"{metric.system}/")))
    if found is not None:
        return found
    scale = scale_of_metric(metric)
    return 0 if scale is None else -1 if scale[1] == math.inf else 1


def _word(metric: str) -> str:
    return metric.rpartition("/")[2].replace("_", "").lower()


def _by_word() -> dict[str, set[tuple[int, bool]]]:
    """By the name of a metric, in any spelling: the directions, and whether the scores are from 0 to 1."""
    found: dict[str, set[tuple[int, bool]]] = {}
    for metric in METRICS:
        pair = direction_of_metric(metric), scale_of_metric(metric) == (0.0, 1.0)
        found.setdefault(_word(metric.name), set()).add(pair)
    for name in (*DEFINITIONS, LATENCY):
        is_share = scale_of(name) == (0.0, 1.0)
        found.setdefault(_word(name), set()).add((1 if is_share and name != FAILURE else -1, is_share))
    return found


_BY_WORD = _by_word()


def direction_of(metric: str, *, shares: bool = False) -> int:
    """1 if higher scores of a metric of this name are better, -1 if lower ones are; 0 if that is not known: of a scorer
    that a user wrote, a False may be what is wanted, and platforms mean different things by one name. `shares`: also 0
    if the scale may not be that from 0 to 1."""
    found = {sign if is_share or not shares else 0 for sign, is_share in _BY_WORD.get(_word(metric), ())}
    return found.pop() if len(found) == 1 else 0
