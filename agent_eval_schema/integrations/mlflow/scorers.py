"""Our own deterministic metrics as mlflow scorers.

    mlflow.genai.evaluate(data, scorers=[DocumentRecall(), TrajectoryRecall(duplicates="one_to_one")])

A scorer is an entry of `SCORERS`: a class with the name and the options of a metric, whose definition says which
columns it reads (scored_row.py says where they are found), what a row must hold, and how it is measured. A row that it
cannot score gets a Feedback without a value whose rationale says what is lacking: mlflow 3.17 keeps the rationale,
counts no error and leaves the row out of the aggregates. mlflow 3.3 has no such thing: there the row gets no Feedback.
A NaN would not do: mlflow then fails to write its table of results.

What mlflow allows for scorers that it does not know (measured, 3.3 to 3.17): a class is neither serialised nor
registered, a decorated function is, as its source. So ours serialise as a function of two lines that calls the class,
which runs wherever this package is installed. Loading it back needs a Databricks workspace or, from the release that
has the switch, MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS=true; so does registering, which on a store of one's own mlflow 3.3
does not have at all. Options are part of what is written, `pass_if` is not.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, ClassVar

from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.metrics.catalog import Need
from agent_eval_schema.metrics.definitions import DEFINITIONS, Definition
from agent_eval_schema.metrics.tool_calls import ExtraCalls
from agent_eval_schema.metrics.trajectory import Duplicates, Empty
from agent_eval_schema.runtime.extras import missing

try:
    from mlflow.entities import AssessmentSource, AssessmentSourceType, Feedback
    from mlflow.exceptions import MlflowException
    from mlflow.genai.scorers.base import Scorer, ScorerKind, SerializedScorer
    from pydantic import Field
except ImportError as error:
    raise missing("mlflow", "mlflow 3.3", error) from None

PUBLIC_PATH = "agent_eval_schema.integrations.scorers"
"""Where a serialised scorer finds its class, whatever file defines it."""

AGGREGATIONS = ("mean", "min", "max", "p90")


class RowScorer(Scorer):
    """A scorer that measures columns of a row.

    `reads` names the columns, whose values `measure` gets in that order; `needs` are the same in the terms of the
    metric catalogue. `undefined` says why a row that holds all of them may still have no score (NaN).
    """

    reads: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[Need, ...]]
    undefined: ClassVar[str] = "the metric is not defined for this row"

    aggregations: list[Any] | None = Field(default_factory=lambda: list(AGGREGATIONS))

    def measure(self, *values: Any) -> float:
        """The score, or NaN."""
        raise NotImplementedError

    def score(self, row: ScoredRow) -> tuple[float, str]:
        """The score of a row and "", or NaN and why there is none."""
        values = [row.read(column) for column in self.reads]
        absent = [c for c, value in zip(self.reads, values, strict=True) if value is None]
        score = math.nan if absent else float(self.measure(*values))
        why = "; ".join(_why(row, c) for c in absent) or self.undefined
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
        """The options of this scorer beyond those of every scorer; they stand in the metadata of each score."""
        return {n: getattr(self, n) for n in type(self).model_fields if n not in RowScorer.model_fields}

    @property
    def kind(self) -> ScorerKind:
        """mlflow keeps what `model_dump` gives, a function's source, as it keeps that of decorated functions."""
        return ScorerKind.DECORATOR

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The serialised form that `Scorer.model_validate` reads: the source of a function that calls this class."""
        given = {"name": self.name, **self.options}
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        handed = ", ".join(f"{name}={name}" for name in _HANDED)
        written = SerializedScorer(
            name=self.name,
            aggregations=self.aggregations,
            call_source=f"from {PUBLIC_PATH} import {type(self).__name__}\n"
            f"return {type(self).__name__}({arguments})({handed})",
            call_signature=f"({', '.join(f'{name}=None' for name in _HANDED)})",
            original_func_name=type(self).model_fields["name"].default,
        )
        fields = asdict(written)
        return fields | {n: getattr(self, n) for n in ("description", "timeout") if n in fields}


def skipped(scorer: Scorer, rationale: str) -> Feedback | None:
    """What to answer for a row that cannot be scored: a Feedback without a value, which mlflow 3.3 refuses to make."""
    try:
        return Feedback(name=scorer.name, value=None, rationale=rationale, source=_by_code(scorer))
    except MlflowException:
        return None


def _by_code(scorer: Scorer) -> AssessmentSource:
    return AssessmentSource(source_type=AssessmentSourceType.CODE, source_id=scorer.name)


_HANDED = ("inputs", "outputs", "expectations", "trace")
"""What mlflow hands to a scorer."""


def _why(row: ScoredRow, column: str) -> str:
    problem = row.unread.get(column)
    return f"{column} cannot be read: {problem}" if problem else f"the row lacks {column}"


# ---------------------------------------------------------------------------------------------------------------------
# the metrics of metrics/definitions.py
class _Defined(RowScorer):
    """A metric of DEFINITIONS: the class's name for mlflow is the metric's, its options are those of the metric."""

    definition: ClassVar[Definition]

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        found = DEFINITIONS.get(cls.model_fields["name"].default)
        if found is not None:  # a class of a user's own may have another name
            cls.definition, cls.reads, cls.needs, cls.undefined = found, found.reads, found.needs, found.undefined

    def measure(self, *values: Any) -> float:
        return self.definition.measure(*values, **self.options)


class DocumentRecall(_Defined):
    """The share of the expected documents that were retrieved."""

    name: str = "document_recall"


class DocumentPrecision(_Defined):
    """The share of the retrieved documents that were expected."""

    name: str = "document_precision"


class TrajectoryExactMatch(_Defined):
    """1 if the agent made the reference calls in their order and no others, else 0."""

    name: str = "trajectory_exact_match"
    empty: Empty = "nan"


class TrajectoryInOrderMatch(_Defined):
    """1 if the agent made the reference calls in their order, others between them allowed, else 0."""

    name: str = "trajectory_in_order_match"
    empty: Empty = "nan"


class TrajectoryAnyOrderMatch(_Defined):
    """1 if the agent made all reference calls, others allowed, else 0."""

    name: str = "trajectory_any_order_match"
    empty: Empty = "nan"


class TrajectoryPrecision(_Defined):
    """The share of the agent's calls that the reference holds too."""

    name: str = "trajectory_precision"
    empty: Empty = "nan"
    duplicates: Duplicates = "membership"


class TrajectoryRecall(_Defined):
    """The share of the reference calls that the agent made."""

    name: str = "trajectory_recall"
    empty: Empty = "nan"
    duplicates: Duplicates = "membership"


class TrajectorySingleToolUse(_Defined):
    """1 if the agent called the tool `tool_name` at all, else 0."""

    name: str = "trajectory_single_tool_use"
    tool_name: str
    empty: Empty = "nan"


class ToolInvocation(_Defined):
    """The share of the expected tools that were called."""

    name: str = "tool_invocation"


class ToolOrderedInvocation(_Defined):
    """The share of the expected tools that were called in the expected order."""

    name: str = "tool_ordered_invocation"


class ParameterCorrectness(_Defined):
    """The share of an expected call's parameters that the actual call has with equal values, on average."""

    name: str = "parameter_correctness"


_SHARE = Field(default=1.0, ge=0, le=1)


class ToolCallsPass(_Defined):
    """1 if the expected calls were made with the expected parameters, and no others, else 0."""

    name: str = "tool_calls_pass"
    invocation_threshold: float = _SHARE
    parameter_threshold: float = _SHARE
    extra_calls: ExtraCalls = "FAIL"


class InputTokenCount(_Defined):
    """The tokens that the models of a run were given."""

    name: str = "input_token_count"


class OutputTokenCount(_Defined):
    """The tokens that the models of a run made."""

    name: str = "output_token_count"


class TotalTokenCount(_Defined):
    """The tokens that the models of a run were given and made."""

    name: str = "total_token_count"


class LatencySeconds(_Defined):
    """The seconds that a run took."""

    name: str = "latency_seconds"


class RunFailure(_Defined):
    """1 if the run failed, else 0."""

    name: str = "failure"


SCORERS: tuple[type[RowScorer], ...] = (
    DocumentRecall,
    DocumentPrecision,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryAnyOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
    TrajectorySingleToolUse,
    ToolInvocation,
    ToolOrderedInvocation,
    ParameterCorrectness,
    ToolCallsPass,
    InputTokenCount,
    OutputTokenCount,
    TotalTokenCount,
    LatencySeconds,
    RunFailure,
)
"""Every scorer of ours, in the order in which a table names them."""
