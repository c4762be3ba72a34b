"""Results of evaluations in tests."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from agent_eval_schema import EvalResult, validate_eval_set
from agent_eval_schema.evaluation.comparison import ScoreComparison
from agent_eval_schema.evaluation.mlflow_run import MlflowEvaluation
from agent_eval_schema.evaluation.result import result_of_evaluation
from agent_eval_schema.evaluation.result_blocks import MetricComparison
from agent_eval_schema.render.blocks import View


def reasons_of(result: EvalResult) -> dict[tuple[str, str], int]:
    """The number of rows without a score, by metric and reason."""
    return {(metric, reason): rows for metric, reason, rows in result.unscored.itertuples(index=False)}


def scores_view(scores: pd.DataFrame, reasons: pd.DataFrame) -> View:
    """What a text shows of these scores."""
    report = validate_eval_set([{"request": "a", "response": "b"}] * len(scores))
    return result_of_evaluation(MlflowEvaluation(scores, reasons, {}, "", report, None))._view()


def comparison_of(lines: list[MetricComparison], rows: pd.DataFrame, only_new: Iterable[int] = ()) -> ScoreComparison:
    """A comparison with these lines and scores that differ, without the results that it would be computed from."""
    found = ScoreComparison.__new__(ScoreComparison)
    found.lines, found.rows, found.only_old, found.only_new = lines, rows, [], list(only_new)
    found._units, found.matched_by, found.remarks = "10 rows", "position", []
    return found
