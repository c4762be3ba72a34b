"""Our own deterministic metrics as mlflow scorers.

    mlflow.genai.evaluate(data, scorers=[DocumentRecall(), TrajectoryRecall(duplicates="one_to_one")])

A scorer is an entry of `SCORERS`: a class with the name and the options of a metric, whose definition has the columns
that it reads (scored_row.py has their places), the requirements on a row, and the function. A row that it cannot score
gets a Feedback without a value whose rationale names the missing fields: mlflow 3.17 keeps the rationale, counts no
error and leaves the row out of the aggregates. MLflow 3.3 has no Feedback without a value: there the row gets no
Feedback. A NaN would not do: mlflow then fails to write its table of results.

What MLflow allows for custom scorers (measured, 3.3 to 3.18): a class is neither serialized nor registered, a decorated
function is, as its source. So ours serialize as a function of two lines that calls the class, which runs wherever this
package is installed. Loading it back needs a Databricks workspace or, from the release that has the switch,
MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS=true; so does registering, which MLflow 3.3 does not support on other stores at all.
Options are serialized, `pass_if` is not.
"""

from __future__ import annotations

import inspect
import json
import math
import textwrap
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, get_args

from agent_eval_schema.errors import missing
from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.metrics.catalog import Metric, Need
from agent_eval_schema.metrics.definitions import DEFINITIONS, Definition
from agent_eval_schema.metrics.tool_calls import ExtraCalls
from agent_eval_schema.metrics.trajectory import Duplicates, Empty, Match
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.choices import require_choice

try:
    from mlflow.entities import AssessmentSource, AssessmentSourceType, Feedback
    from mlflow.exceptions import MlflowException
    from mlflow.genai.scorers.base import Scorer, ScorerKind, SerializedScorer
    from pydantic import Field, PrivateAttr
except ImportError as error:
    raise missing("mlflow", "mlflow 3.3", error) from None


class RowScorer(Scorer):  # numpydoc ignore=PR01
    """Compute a metric from the columns of a row.

    It is the base class of the scorers of this package. A row without a required field gets no score, and a rationale
    that names the field. A subclass sets `reads` and `needs` and defines `measure`.

    Parameters
    ----------
    name : str
        The name of the scorer.

    Attributes
    ----------
    reads : tuple of str
        The canonical columns whose values are the arguments of `measure`. `response` is the text of the outputs,
        `request` an object with the messages of the inputs.
    needs : tuple
        The fields that a row must have.
    undefined : str
        The reason for a score of NaN.

    See Also
    --------
    SCORERS : The classes of all scorers of this package.

    Examples
    --------
    >>> from agent_eval_schema import scorers
    >>> class Calls(scorers.RowScorer):
    ...     name: str = "calls"
    ...     reads = ("predicted_trajectory",)
    ...     needs = ("predicted_trajectory",)
    ...     def measure(self, calls):
    ...         return len(calls)
    >>> Calls()(outputs={"predicted_trajectory": [{"tool_name": "search", "tool_input": {}}]}).value
    1.0
    """

    reads: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[Need, ...]]
    undefined: ClassVar[str] = "the metric is not defined for this row"

    aggregations: list[Any] | None = Field(default_factory=lambda: ["mean", "min", "max", "p90"])

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        for column in cls.__dict__.get("reads", ()):
            require_choice("reads", column, COLUMNS)

    def measure(self, *values: Any) -> float:
        """The score, or NaN."""
        raise NotImplementedError

    def score(self, row: ScoredRow) -> tuple[float, str]:
        """The score of a row and "", or NaN and the reason why there is none."""
        values = [row.read(column) for column in self.reads]
        absent = [c for c, value in zip(self.reads, values, strict=True) if value is None]
        score = math.nan if absent else float(self.measure(*values))
        unread = row.unread
        reasons = (f"{c} cannot be read: {unread[c]}" if c in unread else f"the row lacks {c}" for c in absent)
        why = "; ".join(reasons) or self.undefined
        return score, why if math.isnan(score) else ""

    def __call__(  # type: ignore[override]  # mlflow hands over what the signature names
        self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None
    ) -> Feedback | None:
        score, why = self.score(ScoredRow(inputs, outputs, expectations, trace))
        if why:
            return skipped(self, why)
        used = {name: str(option) for name, option in self.options.items()}
        return Feedback(name=self.name, value=score, source=_by_code(self), metadata=used or None)

    @property
    def options(self) -> dict[str, Any]:
        """The options of this scorer beyond those of every scorer, which are in the metadata of each score."""
        return {n: getattr(self, n) for n in type(self).model_fields if n not in RowScorer.model_fields}

    @property
    def kind(self) -> ScorerKind:
        """mlflow keeps what `model_dump` gives, a function's source, as it keeps that of decorated functions."""
        return ScorerKind.DECORATOR

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The serialized form that `Scorer.model_validate` reads: the source of a function that calls this class."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in {"name": self.name, **self.options}.items())
        passed_on = ", ".join(f"{name}={name}" for name in _ARGUMENTS)
        written = SerializedScorer(
            name=self.name,
            aggregations=self.aggregations,
            call_source=f"from agent_eval_schema.scorers import {type(self).__name__}\n"
            f"return {type(self).__name__}({arguments})({passed_on})",
            call_signature=f"({', '.join(f'{name}=None' for name in _ARGUMENTS)})",
            original_func_name=type(self).model_fields["name"].default,
        )
        fields = asdict(written)
        return fields | {n: getattr(self, n) for n in ("description", "timeout") if n in fields}

    def _check_has_source_code(self) -> None:
        """Skip a check of MLflow 3.18, which reads the decorated function: the source is in `model_dump`."""


def skipped(scorer: Scorer, rationale: str) -> Feedback | None:
    """The result for a row that cannot be scored: a Feedback without a value, which MLflow 3.3 rejects."""
    try:
        return Feedback(name=scorer.name, value=None, rationale=rationale, source=_by_code(scorer))
    except MlflowException:
        return None


def _by_code(scorer: Scorer) -> AssessmentSource:
    return AssessmentSource(source_type=AssessmentSourceType.CODE, source_id=scorer.name)


_ARGUMENTS = ("inputs", "outputs", "expectations", "trace")
"""The arguments with which MLflow calls a scorer."""


# --- the metrics of metrics/definitions.py
class _Defined(RowScorer):
    """A metric of DEFINITIONS: the class's name for mlflow is the metric's, its options are those of the metric."""

    definition: ClassVar[Definition]
    example: ClassVar[tuple[str, str, str, float] | None] = None
    """For the docstring: options, predicted and expected calls (of `search` and `read`), the score."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        found = DEFINITIONS.get(cls.model_fields["name"].default)
        if found is not None:  # a class of a user's own may have another name
            cls.definition, cls.reads, cls.needs, cls.undefined = found, found.reads, found.needs, found.undefined
            if cls.__module__ == __name__:
                cls.__doc__ = _docstring(cls)

    def measure(self, *values: Any) -> float:
        return self.definition.measure(*values, **self.options)


_Empty = Annotated[
    Empty,
    Field(
        description='The score of an empty trajectory. `"define"`: that of the definition, 0 for no calls against a '
        'reference with calls. `"nan"`: none.'
    ),
]
_Duplicates = Annotated[
    Duplicates,
    Field(
        description='How repeated calls are counted. `"membership"`: each call that occurs in the other trajectory. '
        '`"one_to_one"`: each call at most as often as it occurs there.'
    ),
]
_Match = Annotated[
    Match,
    Field(
        description="When two calls are the same: if names and inputs are equal; if names are; or if names are and the "
        "call has all arguments of the reference."
    ),
]


def _lowest(of: str) -> Any:
    return Field(1.0, ge=0, le=1, description=f"The lowest accepted fraction of the expected {of}, from 0 to 1.")


def _docstring(scorer: type[_Defined]) -> str:
    """The docstring of the class, with its parameters; unless it has them, with a related name and an example."""
    summary, _, after = inspect.cleandoc(scorer.__doc__ or "").partition("\n\nSee Also\n--------\n")
    lines = [summary, "", "Parameters", "----------"]
    for name, field in scorer.model_fields.items():
        if name == "name" or name not in RowScorer.model_fields:
            choices = ", ".join(map(json.dumps, get_args(field.annotation)))
            kind = f"{{{choices}}}" if choices else getattr(field.annotation, "__name__", "")
            default = "" if field.is_required() else f", default {json.dumps(field.default)}"
            description = field.description or "The name of the scorer."
            lines += [f"{name} : {kind}{default}", textwrap.indent(textwrap.fill(description, 112), "    ")]
    related = "agent_eval_schema.evaluate_eval_set : Evaluate with MLflow."
    call = f'scorer(outputs={{"{scorer.reads[0]}": 1}}).value'
    example = [f">>> scorer = scorers.{scorer.__name__}()", f">>> {call}", "1.0"]
    if scorer.example is not None:
        options, predicted, reference, score = scorer.example
        related = "agent_eval_schema.score_trajectories : Compute trajectory metrics without MLflow."
        example = [
            '>>> search, read = {"tool_name": "search", "tool_input": {}}, {"tool_name": "read", "tool_input": {}}',
            f">>> scorer = scorers.{scorer.__name__}({options})",
            f'>>> outputs = {{"predicted_trajectory": [{predicted}]}}',
            f'>>> scorer(outputs=outputs, expectations={{"reference_trajectory": [{reference}]}}).value',
            str(score),
        ]
    lines += ["", "See Also", "--------", after or related]
    if "Examples\n" not in after:
        lines += ["", "Examples", "--------", ">>> from agent_eval_schema import scorers", *example]
    return "\n".join(lines)


class DocumentRecall(_Defined):  # numpydoc ignore=PR01
    """Compute the fraction of the expected documents that were retrieved.

    See Also
    --------
    DocumentPrecision : The fraction of the retrieved documents that were expected.

    Examples
    --------
    >>> from agent_eval_schema import scorers
    >>> scorer = scorers.DocumentRecall()
    >>> outputs = {"retrieved_context": [{"doc_uri": "a.md"}, {"doc_uri": "b.md"}]}
    >>> scorer(outputs=outputs, expectations={"expected_retrieved_context": [{"doc_uri": "a.md"}]}).value
    1.0
    """

    name: str = "document_recall"


class DocumentPrecision(_Defined):  # numpydoc ignore=PR01
    """Compute the fraction of the retrieved documents that were expected.

    See Also
    --------
    DocumentRecall : The fraction of the expected documents that were retrieved.

    Examples
    --------
    >>> from agent_eval_schema import scorers
    >>> scorer = scorers.DocumentPrecision()
    >>> outputs = {"retrieved_context": [{"doc_uri": "a.md"}, {"doc_uri": "b.md"}]}
    >>> scorer(outputs=outputs, expectations={"expected_retrieved_context": [{"doc_uri": "a.md"}]}).value
    0.5
    """

    name: str = "document_precision"


class TrajectoryExactMatch(_Defined):  # numpydoc ignore=PR01
    """Return 1 if the agent made the reference calls in their order and no others, else 0."""

    name: str = "trajectory_exact_match"
    empty: _Empty = "define"
    match: _Match = "call"
    example = ("", "search", "search, read", 0.0)


class TrajectoryInOrderMatch(_Defined):  # numpydoc ignore=PR01
    """Return 1 if the agent made the reference calls in their order, else 0.

    Other calls between them are allowed.
    """

    name: str = "trajectory_in_order_match"
    empty: _Empty = "define"
    match: _Match = "call"
    example = ("", "search, read", "search", 1.0)


class TrajectoryAnyOrderMatch(_Defined):  # numpydoc ignore=PR01
    """Return 1 if the agent made all reference calls in any order, else 0.

    Other calls are allowed.
    """

    name: str = "trajectory_any_order_match"
    empty: _Empty = "define"
    match: _Match = "call"
    example = ("", "read, search", "search, read", 1.0)


class TrajectoryPrecision(_Defined):  # numpydoc ignore=PR01
    """Compute the fraction of the agent's calls that are in the reference."""

    name: str = "trajectory_precision"
    empty: _Empty = "define"
    duplicates: _Duplicates = "membership"
    match: _Match = "call"
    example = ("", "search, read", "search", 0.5)


class TrajectoryRecall(_Defined):  # numpydoc ignore=PR01
    """Compute the fraction of the reference calls that the agent made."""

    name: str = "trajectory_recall"
    empty: _Empty = "define"
    duplicates: _Duplicates = "membership"
    match: _Match = "call"
    example = ("", "search", "search, read", 0.5)


class TrajectoryF1(_Defined):  # numpydoc ignore=PR01
    """Compute the harmonic mean of precision and recall of the agent's calls."""

    name: str = "trajectory_f1"
    empty: _Empty = "define"
    duplicates: _Duplicates = "membership"
    match: _Match = "call"
    example = ("", "search, read, read", "search", 0.5)


class TrajectorySingleToolUse(_Defined):  # numpydoc ignore=PR01
    """Return 1 if the agent called a tool, else 0.

    See Also
    --------
    agent_eval_schema.ToolUseMetric : The same metric for EvalTask.
    """

    name: str = "trajectory_single_tool_use"
    tool_name: str = Field(description="The name of the tool.")
    empty: _Empty = "define"
    example = ('tool_name="search"', "search", "search, read", 1.0)


class ToolInvocation(_Defined):  # numpydoc ignore=PR01
    """Compute the fraction of the expected tools that were called.

    See Also
    --------
    ToolCallsPass : Combine the tool metrics with thresholds.
    """

    name: str = "tool_invocation"
    example = ("", "search", "search, read", 0.5)


class ToolOrderedInvocation(_Defined):  # numpydoc ignore=PR01
    """Compute the fraction of the expected tools that were called in order.

    See Also
    --------
    ToolCallsPass : Combine the tool metrics with thresholds.
    """

    name: str = "tool_ordered_invocation"
    example = ("", "read, search", "search, read", 0.5)


class ParameterCorrectness(_Defined):  # numpydoc ignore=PR01
    """Compute the mean fraction of the expected parameters that have equal values.

    See Also
    --------
    ToolCallsPass : Combine the tool metrics with thresholds.

    Examples
    --------
    >>> from agent_eval_schema import scorers
    >>> scorer = scorers.ParameterCorrectness()
    >>> calls = [{"tool_name": "search", "tool_input": {"q": "Delta", "n": 5}}]
    >>> expected = [{"tool_name": "search", "tool_input": {"q": "Delta", "n": 3}}]
    >>> scorer(outputs={"predicted_trajectory": calls}, expectations={"reference_trajectory": expected}).value
    0.5
    """

    name: str = "parameter_correctness"


class ToolCallsPass(_Defined):  # numpydoc ignore=PR01
    """Return 1 if the expected calls were made with the expected parameters, else 0.

    See Also
    --------
    ToolInvocation : The fraction of the expected tools that were called.
    """

    name: str = "tool_calls_pass"
    invocation_threshold: float = _lowest("tools that were called")
    parameter_threshold: float = _lowest("parameters with equal values")
    extra_calls: ExtraCalls = Field("FAIL", description="Whether calls that are not expected give 0.")
    example = ('extra_calls="ALLOW"', "search, read", "search", 1.0)


class InputTokenCount(_Defined):  # numpydoc ignore=PR01
    """Return the number of input tokens of a run."""

    name: str = "input_token_count"


class OutputTokenCount(_Defined):  # numpydoc ignore=PR01
    """Return the number of output tokens of a run."""

    name: str = "output_token_count"


class TotalTokenCount(_Defined):  # numpydoc ignore=PR01
    """Return the number of input and output tokens of a run."""

    name: str = "total_token_count"


class LatencySeconds(_Defined):  # numpydoc ignore=PR01
    """Return the duration of a run, in seconds."""

    name: str = "latency_seconds"


class RunFailure(_Defined):  # numpydoc ignore=PR01
    """Return 1 if a run failed, else 0.

    See Also
    --------
    agent_eval_schema.evaluate_eval_set : Evaluate with MLflow.

    Examples
    --------
    >>> from agent_eval_schema import scorers
    >>> scorer = scorers.RunFailure()
    >>> scorer(outputs={"failure": False}).value
    0.0
    """

    name: str = "failure"


SCORERS: tuple[type[RowScorer], ...] = tuple(_Defined.__subclasses__())
"""All scorers of this package, in the order in which they are defined: that of the table of `supported_scorers`."""


# --- MLflow's own scorers, guarded: they raise an error on rows that they cannot score
class Guarded(Scorer):
    """A scorer of MLflow that is only called for rows with all of its inputs; for the others it reports the missing
    fields.

    It is serialized and registered as the scorer within, so mlflow can load it without this package.
    """

    _within: Scorer = PrivateAttr()
    _metric: Metric = PrivateAttr()

    def __init__(self, within: Scorer, metric: Metric) -> None:
        super().__init__(name=within.name, aggregations=within.aggregations)
        self._within, self._metric = within, metric

    def __call__(  # type: ignore[override]  # mlflow hands over what the signature names
        self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None
    ) -> Any:
        lacking = ScoredRow(inputs, outputs, expectations, trace).lacks(self._metric.needs)
        if lacking:
            return skipped(self, f"the row lacks {', and '.join(lacking)}")
        return self._within.run(  # type: ignore[no-untyped-call]
            inputs=inputs, outputs=outputs, expectations=expectations, trace=trace
        )

    @property
    def kind(self) -> ScorerKind:
        return self._within.kind

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return self._within.model_dump(**options)

    def register(self, **options: Any) -> Scorer:
        return self._within.register(**options)
