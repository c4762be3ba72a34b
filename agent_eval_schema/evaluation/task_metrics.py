"""The metrics that an EvalTask takes: names, and objects with options.

    "trajectory_exact_match" … , ToolUseMetric(tool_name=…)    all rows at once (trajectories.py)
    "rouge_l_sum", "document_recall", "tool_invocation" …                columns of a row → a score
    CustomMetric(name, function)                                         a row as a dict → {name: score, …}
    PointwiseMetric(name, template, model=…)                             a model, by mlflow's judges

Each gives `Measured`: columns for the table, and why rows have no score. A metric that raises on a row costs that score
only.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from agent_eval_schema.errors import RAISED, EvalSetError, missing
from agent_eval_schema.evaluation.runner import error_line, run_all
from agent_eval_schema.evaluation.table import EvalInputs, Measured
from agent_eval_schema.evaluation.trajectories import ToolUseMetric, TrajectoryMetric
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.metrics.catalog import FAILURE, LATENCY, Direction
from agent_eval_schema.metrics.definitions import (
    DEFINITIONS,
    SINGLE_TOOL_USE,
    Definition,
    RowMetric,
    metrics_of_packages,
)
from agent_eval_schema.metrics.metric_info import MetricInfo, numbers_of
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
from agent_eval_schema.render.phrases import plural
from agent_eval_schema.schema import Document, ToolCall
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import meant, require_kind, shown
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.jsontext import cleaned
from agent_eval_schema.text.privacy import first_line
from agent_eval_schema.text.visible import visible

_TYPED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("retrieved_context", "expected_retrieved_context"),
        lambda cells: [Document(c["doc_uri"], c.get("content")) for c in cells],  # one of a trace may have no doc_uri
    ),
    **dict.fromkeys(("predicted_trajectory", "reference_trajectory"), partial(msgspec.convert, type=list[ToolCall])),
}
"""How the values of columns become what metrics take; others are given as they are."""

_OF_TRAJECTORIES = (*TRAJECTORY_METRICS, SINGLE_TOOL_USE)  # computed for all rows at once

ROW_METRICS: dict[str, Definition] = {
    name: definition
    for name, definition in DEFINITIONS.items()
    if name not in _OF_TRAJECTORIES and definition.measure is not float  # the number of a column is no metric here
}
"""Metrics of a row that need no options, by name."""


def row_metrics() -> dict[str, Definition | RowMetric]:
    """Those metrics, and those of other packages."""
    return {**ROW_METRICS, **{name: other.value for name, other in metrics_of_packages().items()}}


def measure_row_metric(metric: Definition | RowMetric, table: EvalInputs) -> Measured:
    columns = [table.values.get(name) or [None] * table.size for name in metric.reads]
    other = metrics_of_packages().get(metric.name) if isinstance(metric, RowMetric) else None
    with nullcontext() if other is None else other.watch(f"for {plural(table.size, 'row')}", table.size):
        pairs = [_scored(metric, table, row, cells) for row, cells in enumerate(zip(*columns, strict=True))]
    reasons = [reason if math.isnan(score) else None for score, reason in pairs]
    return {"score": [score for score, _ in pairs]}, reasons


def _scored(metric: Definition | RowMetric, table: EvalInputs, row: int, cells: Sequence[Any]) -> tuple[float, str]:
    """The score of a row, and the reason in case that it is NaN."""
    for name, cell in zip(metric.reads, cells, strict=True):
        if cell is None:
            return math.nan, table.why_lacking(row, name)
    try:
        values = [_TYPED[name](c) if name in _TYPED else c for name, c in zip(metric.reads, cells, strict=True)]
        score = float(metric.measure(*values))
        return (math.nan, "the metric gave an infinite score") if math.isinf(score) else (score, metric.undefined)
    except EvalSetError:
        raise  # a package that is not installed
    except RAISED as error:
        return math.nan, f"the metric raised an exception: {error_line(error)}"


class CustomMetric(Struct, frozen=True):
    """A user-defined metric.

    Parameters
    ----------
    name : str
        The name of the metric.
    metric_function : callable
        A function that is called with each row as a dict: the columns of the data, and `prompt`, `response`,
        `reference`, `predicted_trajectory` and `reference_trajectory` (None where absent). It returns the score, or a
        dict with the score under the name of the metric and other values, which become columns `<name>/<key>`. A row on
        which it raises an exception has no score.
    lower_is_better : bool or None, default None
        Whether lower scores are better. None: not known; then a comparison reports which direction it assumes.
    scale : tuple of float, or None, default None
        The lowest and the highest score, such as `(0, 1)`; a highest of None has no limit. None: not known.

    See Also
    --------
    EvalTask : Compute the metric on a dataset.
    MetricInfo : What is known of the scores of a metric.

    Examples
    --------
    >>> from agent_eval_schema import CustomMetric, EvalTask
    >>> def short(row):
    ...     return {"short": len(row["response"]) < 20, "length": len(row["response"])}
    >>> data = [{"response": "A table format."}, {"response": "Delta Lake is a table format."}]
    >>> EvalTask(data, [CustomMetric("short", short)]).evaluate().metrics_table[["short/score", "short/length"]]
       short/score short/length
    0          1.0           15
    1          0.0           29
    """

    name: str
    metric_function: Callable[[dict[str, Any]], Mapping[str, Any] | float]
    lower_is_better: bool | None = None
    scale: tuple[float, float | None] | None = None

    def __post_init__(self) -> None:
        require_kind("name", self.name, str, "a string")
        require_kind("metric_function", self.metric_function, Callable, "a function of a row")  # type: ignore[arg-type]
        _ = self._info

    @property
    def _info(self) -> MetricInfo | None:
        return _stated_info(self.name, self.lower_is_better, self.scale)


def _stated_info(
    name: str, lower_is_better: bool | None, scale: tuple[float, float | None] | None
) -> MetricInfo | None:
    """What the user stated of the scores of a metric; None for nothing."""
    require_kind("lower_is_better", lower_is_better, (bool, type(None)), "True, False or None")
    if lower_is_better is None and scale is None:
        return None
    directions: dict[bool | None, Direction] = {None: "unknown", True: "lower", False: "higher"}
    return MetricInfo(name, directions[lower_is_better], scale)


def measure_custom(metric: CustomMetric, table: EvalInputs) -> Measured:
    """The scores of a user-defined metric; a row on which it raises an exception has none."""
    results = [_custom_row(metric, row) for row in table.rows()]
    parts = dict.fromkeys(["score", *(part for columns, _ in results for part in columns)])
    return {part: [columns.get(part) for columns, _ in results] for part in parts}, [reason for _, reason in results]


def _custom_row(metric: CustomMetric, row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    try:
        result = metric.metric_function(row)
        result = result if isinstance(result, Mapping) else {metric.name: result}
        if metric.name != "score" and {metric.name, "score"} <= result.keys():
            return {"score": math.nan}, f"the metric gave two scores: under {metric.name!r} and under 'score'"
        columns = {"score" if name == metric.name else cleaned(str(name)): _further(of) for name, of in result.items()}
        absent = is_absent(columns.get("score"))
        columns["score"] = math.nan if absent else float(columns["score"])
        if math.isinf(columns["score"]):
            return {**columns, "score": math.nan}, "the metric gave an infinite score"
    except RAISED as error:
        return {"score": math.nan}, f"the metric raised an exception: {error_line(error)}"
    return columns, "the metric gave no score" if absent else None


def _further(value: Any) -> Any:
    """A further value of a metric as a page and a file can have it: half of an emoji, which a cut text may have, is
    replaced, and what JSON cannot have is described."""
    if isinstance(value, int | float | np.number | np.bool_) or is_absent(value):
        return value
    try:
        plain = cleaned(msgspec.to_builtins(value, enc_hook=str))
        return describe(plain) if is_too_deep(jsontext.encode(plain)) else plain
    except RAISED:
        return describe(value)


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
    lower_is_better : bool or None, default None
        Whether lower scores are better. None: not known; then a comparison reports which direction it assumes.
    scale : tuple of float, or None, default None
        The lowest and the highest score, such as `(1, 5)`. None: those of `rating_rubric`, if all are numbers.

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
    lower_is_better: bool | None = None
    scale: tuple[float, float | None] | None = None

    def __post_init__(self) -> None:
        _ = self._info
        if not self.model:
            raise EvalSetError(f"{self.name}: name the judge, such as model='openai:/gpt-4o'")
        if not self.variables:
            raise EvalSetError(f"{self.name}: give a template with {{response}} or so, or criteria and input_variables")

    @property
    def _info(self) -> MetricInfo | None:
        scores = sorted(set(numbers_of(self.rating_rubric).tolist()))
        is_scale = len(scores) > 1 and not any(map(math.isnan, scores))
        scale = (scores[0], scores[-1]) if is_scale else None
        return _stated_info(self.name, self.lower_is_better, self.scale or scale)

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


def measure_pointwise(metric: PointwiseMetric, table: EvalInputs, max_workers: int) -> Measured:
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
    for outcome in run_all(lambda question: judge(inputs=question), questions, max_workers=max_workers):
        scores[outcome.row], reasons[outcome.row] = _score_of_feedback(outcome.value, outcome.error)
    explanations = [None if math.isnan(score) else reason for score, reason in zip(scores, reasons, strict=True)]
    return {"score": scores, "explanation": explanations}, reasons


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
        raise EvalSetError(f"{metric.name}: {first_line(error)}") from error


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str) if not isinstance(value, str | Mapping | list) else value


def _score_of_feedback(feedback: Any, error: str | None) -> tuple[float, str]:
    """The score and its rationale, or NaN and the reason why there is none."""
    problem = error or getattr(getattr(feedback, "error", None), "error_message", None)
    if problem:
        return math.nan, f"the judge raised an exception: {visible(str(problem).splitlines()[0])}"
    with suppress(TypeError, ValueError):
        if math.isfinite(score := float(feedback.value)):
            return score, visible(feedback.rationale or "")
    return math.nan, "the judge returned no number"


# --- metrics of any kind
MetricName = Literal[
    "trajectory_exact_match", "trajectory_in_order_match", "trajectory_any_order_match", "trajectory_precision",
    "trajectory_recall", "trajectory_f1", "exact_match", "bleu", "rouge_1", "rouge_2", "rouge_l", "rouge_l_sum",
    "document_recall", "document_precision", "tool_invocation", "tool_ordered_invocation", "parameter_correctness",
    "tool_calls_pass", "tool_call_valid", "tool_name_match", "tool_parameter_key_match", "tool_parameter_kv_match",
]  # fmt: skip
"""The type of a metric's name: the names that `EvalTask` accepts."""

NAMES: tuple[str, ...] = (*TRAJECTORY_METRICS, *ROW_METRICS)

_WITH_OPTIONS = (ToolUseMetric, CustomMetric, PointwiseMetric)
GivenMetric = MetricName | ToolUseMetric | CustomMetric | PointwiseMetric
TaskMetric = str | ToolUseMetric | CustomMetric | PointwiseMetric

_EXAMPLES: dict[object, str] = {
    ToolUseMetric: 'ToolUseMetric(tool_name="search")',
    CustomMetric: 'CustomMetric("name", function)',
    PointwiseMetric: 'PointwiseMetric("name", template=..., model=...)',
}


def metric_name(metric: TaskMetric) -> str:
    return metric if isinstance(metric, str) else metric.name


def require_metrics(
    metrics: Iterable[GivenMetric | str], names: Iterable[str] = (), kinds: tuple[type, ...] = _WITH_OPTIONS
) -> tuple[TaskMetric, ...]:
    """The metrics, of these `names` (else any) and `kinds`. Raises EvalSetError for others, and for two of one name."""
    is_list = isinstance(metrics, Iterable) and not isinstance(metrics, str | type)
    listed: tuple[Any, ...] = tuple(metrics) if is_list else (metrics,)
    names = tuple(names) or (*NAMES, *metrics_of_packages())
    for metric in listed:
        if metric not in names if isinstance(metric, str) else not isinstance(metric, kinds):
            expected = f"names ({', '.join(names)}) or {', '.join(kind.__name__ for kind in kinds)}"
            raise EvalSetError(f"metrics: expected {expected}; got {shown(metric)}{_nearest(metric, names)}")
        if not isinstance(metric, str) and metric_name(metric) in (LATENCY, FAILURE):
            raise EvalSetError(
                f"metrics: {metric_name(metric)!r} is measured of each run: give the metric another name"
            )
    twice = [name for name, n in Counter(map(metric_name, listed)).items() if n > 1]
    if twice:
        raise EvalSetError(f"several metrics are called {twice[0]!r}: give them names of their own")
    return listed


def _nearest(metric: object, names: Sequence[str]) -> str:
    if metric == SINGLE_TOOL_USE:
        return f"; use {_EXAMPLES[ToolUseMetric]} (--tool-name search)"
    if isinstance(metric, type) and issubclass(metric, _WITH_OPTIONS):
        return f"; use an instance: {_EXAMPLES[metric]}"
    if callable(metric):
        name = getattr(metric, "__name__", "function")
        return f'; use CustomMetric("{name}", {name})' if name.isidentifier() else f"; use {_EXAMPLES[CustomMetric]}"
    return meant(metric, names)


def trajectory_metrics(metrics: Iterable[TaskMetric]) -> tuple[TrajectoryMetric, ...]:
    return tuple(m for m in metrics if isinstance(m, ToolUseMetric) or (isinstance(m, str) and m in TRAJECTORY_METRICS))
