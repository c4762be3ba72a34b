"""Results of evaluations in tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd

from agent_eval_schema import EvalResult
from agent_eval_schema.evaluation.mlflow_evaluation import MlflowEvaluation
from agent_eval_schema.evaluation.table import ScoreStats
from agent_eval_schema.metrics.metric_info import numbers_of
from agent_eval_schema.render.blocks import View


def reasons_of(result: EvalResult) -> dict[tuple[str, str], int]:
    """The number of rows without a score, by metric and reason."""
    return {(metric, reason): rows for metric, reason, rows in result.unscored.itertuples(index=False)}


def scores_view(scores: pd.DataFrame, reasons: pd.DataFrame) -> View:
    """What a text shows of these scores."""
    good: Any = SimpleNamespace(ok=True, counts={})
    evaluation = MlflowEvaluation(scores, reasons, {}, "", report=good, result=None)
    tallies = {name: ScoreStats(numbers_of(scores[name].tolist())) for name in evaluation.scorers}
    found = EvalResult(
        metrics=evaluation.scorers,
        tallies=tallies,
        row_count=len(scores),
        parts=lambda: iter(()),
        reasons=dict,
        unscored={},
    )
    return evaluation.document(found.summary())
