"""The scores of an evaluation with MLflow as a report shows them, without an evaluation."""

from __future__ import annotations

from typing import Any

import pandas as pd

from agent_eval_schema.evaluation.mlflow_evaluation import MlflowEvaluation
from agent_eval_schema.render.blocks import Document


def scores_document(scores: pd.DataFrame, reasons: pd.DataFrame) -> Document:
    """What a text shows of these scores."""
    nothing: Any = None
    return MlflowEvaluation(scores, reasons, {}, "", report=nothing, result=None).document("", {})
