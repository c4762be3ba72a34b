"""Metrics that ask a model about one row: instructions, and the values of some columns, for a judge of mlflow."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.evaluation.runner import run_all
from agent_eval_schema.evaluation.table import Measured, Table
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.text.visible import visible

_VARIABLE = re.compile(r"\{(\w+)\}")
"""A column that a template names; other braces are the template's own."""


class PointwiseMetric(Struct, frozen=True):
    """A metric that a model judges, row by row, through mlflow's judge interface (mlflow 3.4 or newer).

    Either `template`, a text with `{prompt}`, `{response}`, `{reference}`, `{predicted_trajectory}` or other columns of
    the table, or `criteria` and `rating_rubric` with `input_variables`, the columns that the judge is shown. `model` is
    the judge, as mlflow names it (`"openai:/gpt-4o"`). The judge gives a number, and why.
    """

    name: str
    template: str = ""
    model: str = ""
    criteria: Mapping[str, str] = {}
    rating_rubric: Mapping[str, str] = {}
    input_variables: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.model:
            raise EvalSetError(f"{self.name}: name the judge, such as model='openai:/gpt-4o'")
        if not self.variables:
            raise EvalSetError(f"{self.name}: give a template with {{response}} or so, or criteria and input_variables")

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns that the judge is shown."""
        return tuple(dict.fromkeys([*_VARIABLE.findall(self.template), *self.input_variables]))

    @property
    def instructions(self) -> str:
        """The instructions of the judge, with the names of columns in place of their values."""
        parts = [_VARIABLE.sub(r"`\1`", self.template)] if self.template else ["Rate the agent's behaviour."]
        parts += ["# Criteria", *(f"{name}: {words}" for name, words in self.criteria.items())] if self.criteria else []
        if self.rating_rubric:
            parts += ["# Ratings", *(f"{score}: {words}" for score, words in self.rating_rubric.items())]
        return "\n".join(parts)


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
    text = metric.instructions.replace("{{", "{ {").replace("}}", "} }")
    instructions = f"{text}\n\nAnswer with a number. The values of this row:\n{{{{ inputs }}}}"
    try:
        return make_judge(name=metric.name, instructions=instructions, model=metric.model, feedback_value_type=float)
    except MlflowException as error:
        raise EvalSetError(f"{metric.name}: {visible(str(error).splitlines()[0])}") from error


def _require_columns(metric: PointwiseMetric, cells: dict[str, Any]) -> None:
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
