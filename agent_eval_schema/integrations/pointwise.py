"""PointwiseMetric → mlflow's judge: one question a row, several at a time.

mlflow's `make_judge` knows no variables but its own, so the instructions name the columns and `{{ inputs }}` holds what
they are in this row, as JSON: what an agent wrote is never part of the instructions themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_eval_schema.evaluation.metrics import Measured, PointwiseMetric, Row, Table
from agent_eval_schema.evaluation.runner import run_all
from agent_eval_schema.integrations.extra import missing
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.visible import visible


def measure_pointwise(metric: PointwiseMetric, table: Table, max_workers: int) -> Measured:
    """The judge's score and explanation of each row. A row that lacks what the judge is to see is not asked about."""
    judge = _judge(metric)
    scores, explanations = [math.nan] * table.size, [None] * table.size
    unscored: Counter[str] = Counter()
    questions: list[tuple[int, dict[str, Any]]] = []
    for row, cells in enumerate(table.rows()):
        _require_columns(metric, cells)
        lacking = [name for name in metric.variables if cells[name] is None]
        if lacking:
            unscored[table.why_lacking(row, lacking[0])] += 1
        else:
            questions.append((row, {name: _plain(cells[name]) for name in metric.variables}))
    for outcome in run_all(lambda given: judge(inputs=given), questions, max_workers=max_workers):
        score, why = _read(outcome.value, outcome.error)
        scores[outcome.row] = score
        if math.isnan(score):
            unscored[why] += 1
        else:
            explanations[outcome.row] = why  # type: ignore[call-overload]
    return Measured({"score": scores, "explanation": explanations}, unscored)


def _judge(metric: PointwiseMetric) -> Any:
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.genai.judges import make_judge
    except ImportError as error:
        raise missing("mlflow", "mlflow 3.4", error) from None
    # What a template says in double braces would be variables of mlflow.
    told = metric.instructions.replace("{{", "{ {").replace("}}", "} }")
    instructions = f"{told}\n\nAnswer with a number. The values of this row:\n{{{{ inputs }}}}"
    try:
        return make_judge(name=metric.name, instructions=instructions, model=metric.model, feedback_value_type=float)
    except MlflowException as error:
        raise EvalSetError(f"{metric.name}: {visible(str(error).splitlines()[0])}") from error


def _require_columns(metric: PointwiseMetric, cells: Row) -> None:
    unknown = [name for name in metric.variables if name not in cells]
    if unknown:
        raise EvalSetError(f"{metric.name}: no column {unknown[0]!r} in the data: there are {', '.join(cells)}")


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str) if not isinstance(value, str | Mapping | list) else value


def _read(feedback: Any, error: str | None) -> tuple[float, str]:
    """The score and its rationale, or NaN and why there is none."""
    problem = error or getattr(getattr(feedback, "error", None), "error_message", None)
    if problem:
        return math.nan, f"the judge broke down: {visible(str(problem).splitlines()[0])}"
    try:
        return float(feedback.value), visible(feedback.rationale or "")
    except (TypeError, ValueError):
        return math.nan, "the judge gave no number"
