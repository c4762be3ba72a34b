"""Results of evaluations in tests."""

from __future__ import annotations

import pandas as pd

from agent_eval_schema import EvalResult, validate_eval_set
from agent_eval_schema.evaluation.mlflow_run import MlflowEvaluation
from agent_eval_schema.evaluation.result import result_of_evaluation
from agent_eval_schema.render.blocks import View


def reasons_of(result: EvalResult) -> dict[tuple[str, str], int]:
    """The number of rows without a score, by metric and reason."""
    return {(metric, reason): rows for metric, reason, rows in result.unscored.itertuples(index=False)}


def scores_view(scores: pd.DataFrame, reasons: pd.DataFrame) -> View:
    """What a text shows of these scores."""
    report = validate_eval_set([{"request": "a", "response": "b"}] * len(scores))
    return result_of_evaluation(MlflowEvaluation(scores, reasons, {}, "", report, None))._view()
