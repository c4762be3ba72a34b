"""Metrics that ask a model about one row: instructions, and the values of some columns, for a judge of mlflow."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.evaluation.runner import run_all
from agent_eval_schema.evaluation.table import Measured, RowTable
from agent_eval_schema.issues import EvalSetError, missing
from agent_eval_schema.text.visible import visible

_VARIABLE = re.compile(r"\{(\w+)\}")
"""A column that a template names; other braces are the template's own."""


class PointwiseMetric(Struct, frozen=True):
    """A metric that an LLM judge computes for each row.

    It uses the judges of MLflow, which requires MLflow 3.4 or newer. The judge gives a number and an explanation.

    Parameters
    ----------
    name : str
        The name of the metric.
    template : str, default ""
        The instructions for the judge, with the names of columns in braces, such as `{prompt}` and `{response}`.
    model : str
        The judge model, such as `"openai:/gpt-4o"`. It is required.
    criteria : mapping of str to str, default {}
        Names of criteria and their descriptions; an alternative to `template`.
    rating_rubric : mapping of str to str, default {}
        Scores and their descriptions.
    input_variables : sequence of str, default ()
        The columns that the judge is given, besides those in `template`.

    Raises
    ------
    EvalSetError
        `model` is missing, or neither `template` nor `input_variables` names a column.

    See Also
    --------
    EvalTask : Compute the metric on a dataset.

    Examples
    --------
    >>> from agent_eval_schema import PointwiseMetric
    >>> metric = PointwiseMetric("polite", "Rate from 1 to 5 how polite {response} is.", model="openai:/gpt-4o")
    >>> metric.variables
    ('response',)
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
        """The columns that the judge is given.

        Returns
        -------
        tuple of str
            The columns of `template`, then `input_variables`, each once.

        Examples
        --------
        >>> from agent_eval_schema import PointwiseMetric
        >>> PointwiseMetric("polite", "Does {response} answer {prompt}?", model="openai:/gpt-4o").variables
        ('response', 'prompt')
        """
        return tuple(dict.fromkeys([*_VARIABLE.findall(self.template), *self.input_variables]))

    @property
    def instructions(self) -> str:
        """The instructions for the judge.

        Returns
        -------
        str
            The template with the names of columns in backticks, the criteria and the ratings.

        Examples
        --------
        >>> from agent_eval_schema import PointwiseMetric
        >>> rubric = {"1": "rude", "5": "polite"}
        >>> metric = PointwiseMetric("polite", "Rate {response}.", model="openai:/gpt-4o", rating_rubric=rubric)
        >>> print(metric.instructions)
        Rate `response`.
        # Ratings
        1: rude
        5: polite
        """
        parts = [_VARIABLE.sub(r"`\1`", self.template)] if self.template else ["Rate the agent's behavior."]
        parts += ["# Criteria", *(f"{name}: {words}" for name, words in self.criteria.items())] if self.criteria else []
        if self.rating_rubric:
            parts += ["# Ratings", *(f"{score}: {words}" for score, words in self.rating_rubric.items())]
        return "\n".join(parts)


def measure_pointwise(metric: PointwiseMetric, table: RowTable, max_workers: int) -> Measured:
    """The judge's score and explanation of each row. For a row that lacks an input, the judge is not called."""
    judge = _judge(metric)
    scores, reasons = [math.nan] * table.size, list[str | None]([None] * table.size)
    questions: list[tuple[int, dict[str, Any]]] = []
    for row, cells in enumerate(table.rows()):
        if unknown := [name for name in metric.variables if name not in cells]:
            raise EvalSetError(f"{metric.name}: no column {unknown[0]!r} in the data: there are {', '.join(cells)}")
        lacking = [name for name in metric.variables if cells[name] is None]
        if lacking:
            reasons[row] = table.why_lacking(row, lacking[0])
        else:
            questions.append((row, {name: _plain(cells[name]) for name in metric.variables}))
    for outcome in run_all(lambda given: judge(inputs=given), questions, max_workers=max_workers):
        scores[outcome.row], reasons[outcome.row] = _read(outcome.value, outcome.error)
    explanations = [None if math.isnan(score) else reason for score, reason in zip(scores, reasons, strict=True)]
    return Measured({"score": scores, "explanation": explanations}, reasons)


def _judge(metric: PointwiseMetric) -> Any:
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.genai.judges import make_judge
    except ImportError as error:
        raise missing("mlflow", "mlflow 3.4", error) from None
    # Text of a template in double braces would be variables of MLflow.
    text = metric.instructions.replace("{{", "{ {").replace("}}", "} }")
    instructions = f"{text}\n\nAnswer with a number. The values of this row:\n{{{{ inputs }}}}"
    try:
        return make_judge(name=metric.name, instructions=instructions, model=metric.model, feedback_value_type=float)
    except MlflowException as error:
        raise EvalSetError(f"{metric.name}: {visible(str(error).splitlines()[0])}") from error


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str) if not isinstance(value, str | Mapping | list) else value


def _read(feedback: Any, error: str | None) -> tuple[float, str]:
    """The score and its rationale, or NaN and the reason why there is none."""
    problem = error or getattr(getattr(feedback, "error", None), "error_message", None)
    if problem:
        return math.nan, f"the judge raised an exception: {visible(str(problem).splitlines()[0])}"
    try:
        return float(feedback.value), visible(feedback.rationale or "")
    except (TypeError, ValueError):
        return math.nan, "the judge returned no number"
