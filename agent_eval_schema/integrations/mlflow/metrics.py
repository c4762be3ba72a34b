"""Our metrics for `mlflow.evaluate`, which has no scorers but metrics over the columns of a DataFrame.

    frame = prepare_for_evaluate(data, evaluator="mlflow.evaluate")
    mlflow.models.evaluate(data=frame, predictions="predictions", targets="targets", model_type="question-answering",
                           extra_metrics=mlflow_metrics(frame), evaluators="default")

`question-answering` adds mlflow's own (measured, 3.17): exact match, if the frame has targets; a token count, without
whose package tiktoken and the vocabulary that this downloads mlflow gives up; readability (package textstat) and
toxicity (evaluate, torch and a model to download), which MLflow omits with a warning if they are not available. With
`model_type=None` only the given metrics are measured, and only MLflow is required.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow

if TYPE_CHECKING:
    from mlflow.models import EvaluationMetric

    from agent_eval_schema.integrations.mlflow.scorers import RowScorer


_AGGREGATES: dict[str, Callable[[list[float]], Any]] = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
    "p90": lambda scores: np.percentile(scores, 90),
}

LESS_IS_BETTER = ("input_token_count", "output_token_count", "total_token_count", "latency_seconds", "failure")


def mlflow_metrics(frame: pd.DataFrame, scorers: Iterable[RowScorer] | None = None) -> list[EvaluationMetric]:
    """Return the metrics of this package for `mlflow.models.evaluate`.

    Parameters
    ----------
    frame : pandas.DataFrame
        The result of `prepare_for_evaluate(data, evaluator="mlflow.evaluate")`.
    scorers : iterable of RowScorer or None, default None
        Instances of classes in `agent_eval_schema.scorers`. None uses all that require no argument. Scorers whose
        columns are not in `frame` are skipped.

    Returns
    -------
    list of mlflow.models.EvaluationMetric
        Each metric gives one score per row (NaN, with the reason as justification, if it is missing) and the mean,
        minimum, maximum and 90th percentile of the scores.

    Raises
    ------
    MissingExtraError
        MLflow 3.3 or newer is not installed.

    See Also
    --------
    prepare_for_evaluate : Return the DataFrame.
    evaluate_eval_set : Evaluate with `mlflow.genai.evaluate`.

    Examples
    --------
    >>> from agent_eval_schema import mlflow_metrics, prepare_for_evaluate
    >>> data = [{"request": "Hi", "response": "Hello!", "input_token_count": 3}]
    >>> frame = prepare_for_evaluate(data, evaluator="mlflow.evaluate")
    >>> [metric.name for metric in mlflow_metrics(frame)]
    ['input_token_count']
    """
    from agent_eval_schema.integrations.mlflow.scorers import SCORERS, TrajectorySingleToolUse

    if scorers is None:
        scorers = [kind() for kind in SCORERS if kind is not TrajectorySingleToolUse]  # type: ignore[call-arg]
    return [_metric(scorer) for scorer in scorers if set(scorer.reads) <= set(frame.columns)]


def _metric(scorer: RowScorer) -> EvaluationMetric:
    from mlflow.metrics import MetricValue, make_metric

    def measure(_: Any, *columns: pd.Series) -> MetricValue:
        lines = zip(*(column.tolist() for column in columns), strict=True)
        rows = [ScoredRow(None, dict(zip(scorer.reads, cells, strict=True)), None, None) for cells in lines]
        results = [scorer.score(row) for row in rows]
        scores = [score for score, _ in results]
        defined = [score for score in scores if not math.isnan(score)]
        aggregates = {name: float(of(defined)) for name, of in _AGGREGATES.items()} if defined else {}
        return MetricValue(scores=scores, justifications=[why for _, why in results], aggregate_results=aggregates)

    # MLflow reads the columns of a metric from its signature, unless that has two parameters without this name.
    names = ("predictions", *scorer.reads)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    measure.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    better = scorer.name not in LESS_IS_BETTER
    metric: EvaluationMetric = make_metric(eval_fn=measure, greater_is_better=better, name=scorer.name)  # type: ignore[no-untyped-call]
    return metric
