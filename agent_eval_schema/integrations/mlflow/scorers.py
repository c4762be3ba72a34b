"""Our own deterministic metrics as mlflow scorers.

    mlflow.genai.evaluate(data, scorers=[DocumentRecall(), TrajectoryRecall(duplicates="one_to_one")])

A scorer is an entry of `SCORERS`: a class that says which columns it reads (scored_row.py says where they are found),
what the catalogue must find in a row, and how it measures. A row that it cannot score gets a Feedback without a value
whose rationale says what is lacking: mlflow 3.17 keeps the rationale, counts no error and leaves the row out of the
aggregates. mlflow 3.3 has no such thing: there the row gets no Feedback. A NaN would not do: mlflow then fails to write
its table of results.

What mlflow allows for scorers that it does not know (measured, 3.3 to 3.17): a class is neither serialised nor
registered, a decorated function is, as its source. So ours serialise as a function of two lines that calls the class,
which runs wherever this package is installed. Loading it back needs a Databricks workspace or, from the release that
has the switch, MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS=true; so does registering, which on a store of one's own mlflow 3.3
does not have at all. Options are part of what is written, `pass_if` is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from agent_eval_schema.integrations.mlflow.scored_row import ScoredRow
from agent_eval_schema.metrics import retrieval, tool_calls, trajectory
from agent_eval_schema.metrics.catalog import TOOL_CALLS, Need
from agent_eval_schema.runtime.extras import missing
from agent_eval_schema.schema import Document, ToolCall

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

Calls = Sequence[ToolCall]
Documents = Sequence[Document]


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
# retrieval
class _Retrieval(RowScorer):
    reads = ("retrieved_context", "expected_retrieved_context")
    needs = ("retrieved_uri", "expected_uri")


class DocumentRecall(_Retrieval):
    """The share of the expected documents that were retrieved."""

    name: str = "document_recall"
    undefined = "expected_retrieved_context is empty, or no retrieved document has a doc_uri"

    def measure(self, retrieved: Documents, expected: Documents) -> float:
        return retrieval.document_recall(_uris(retrieved), _uris(expected))


class DocumentPrecision(_Retrieval):
    """The share of the retrieved documents that were expected."""

    name: str = "document_precision"
    undefined = "expected_retrieved_context is empty, or no document with a doc_uri was retrieved"

    def measure(self, retrieved: Documents, expected: Documents) -> float:
        return retrieval.document_precision(_uris(retrieved), _uris(expected))


def _uris(documents: Documents) -> list[str | None]:
    return [d.doc_uri for d in documents]


# ---------------------------------------------------------------------------------------------------------------------
# trajectories
class _Trajectory(RowScorer):
    """A metric of TRAJECTORY_METRICS: the class's name for mlflow is the metric's."""

    reads = ("predicted_trajectory", "reference_trajectory")
    needs = ("predicted_trajectory", "reference_trajectory")
    undefined = 'a trajectory is empty, which has no score unless empty="define"'

    empty: trajectory.Empty = "nan"

    def measure(self, predicted: Calls, reference: Calls) -> float:
        metric = type(self).model_fields["name"].default
        return trajectory.score_trajectory(metric, predicted, reference, **self.options)


class TrajectoryExactMatch(_Trajectory):
    """1 if the agent made the reference calls in their order and no others, else 0."""

    name: str = "trajectory_exact_match"


class TrajectoryInOrderMatch(_Trajectory):
    """1 if the agent made the reference calls in their order, others between them allowed, else 0."""

    name: str = "trajectory_in_order_match"


class TrajectoryAnyOrderMatch(_Trajectory):
    """1 if the agent made all reference calls, others allowed, else 0."""

    name: str = "trajectory_any_order_match"


class TrajectoryPrecision(_Trajectory):
    """The share of the agent's calls that the reference holds too."""

    name: str = "trajectory_precision"
    duplicates: trajectory.Duplicates = "membership"


class TrajectoryRecall(_Trajectory):
    """The share of the reference calls that the agent made."""

    name: str = "trajectory_recall"
    duplicates: trajectory.Duplicates = "membership"


class TrajectorySingleToolUse(RowScorer):
    """1 if the agent called the tool `tool_name` at all, else 0."""

    reads = ("predicted_trajectory",)
    needs = ("predicted_trajectory",)
    undefined = _Trajectory.undefined

    name: str = "trajectory_single_tool_use"
    tool_name: str
    empty: trajectory.Empty = "nan"

    def measure(self, predicted: Calls) -> float:
        return trajectory.single_tool_use(predicted, self.tool_name, empty=self.empty)


# ---------------------------------------------------------------------------------------------------------------------
# tool calls, as Customer Engagement Suite scores them
class _ToolCalls(RowScorer):
    """A metric of the system "ces" in the catalogue."""

    reads = ("predicted_trajectory", "reference_trajectory")
    needs = TOOL_CALLS
    undefined = "reference_trajectory is empty: no call is expected"


class ToolInvocation(_ToolCalls):
    """The share of the expected tools that were called."""

    name: str = "tool_invocation"

    def measure(self, predicted: Calls, reference: Calls) -> float:
        return tool_calls.tool_invocation(predicted, reference)


class ToolOrderedInvocation(_ToolCalls):
    """The share of the expected tools that were called in the expected order."""

    name: str = "tool_ordered_invocation"

    def measure(self, predicted: Calls, reference: Calls) -> float:
        return tool_calls.tool_ordered_invocation(predicted, reference)


class ParameterCorrectness(_ToolCalls):
    """The share of an expected call's parameters that the actual call has with equal values, on average."""

    name: str = "parameter_correctness"

    def measure(self, predicted: Calls, reference: Calls) -> float:
        return tool_calls.parameter_correctness(predicted, reference)


_SHARE = Field(default=1.0, ge=0, le=1)


class ToolCallsPass(_ToolCalls):
    """1 if the expected calls were made with the expected parameters, and no others, else 0."""

    name: str = "tool_calls_pass"
    invocation_threshold: float = _SHARE
    parameter_threshold: float = _SHARE
    extra_calls: tool_calls.ExtraCalls = "FAIL"

    def measure(self, predicted: Calls, reference: Calls) -> float:
        return tool_calls.tool_calls_pass(predicted, reference, **self.options)


# ---------------------------------------------------------------------------------------------------------------------
# what a trace counts
class _Number(RowScorer):
    def measure(self, value: float) -> float:
        return value


class InputTokenCount(_Number):
    """The tokens that the models of a run were given."""

    reads = ("input_token_count",)
    needs = ("input_tokens",)
    name: str = "input_token_count"


class OutputTokenCount(_Number):
    """The tokens that the models of a run made."""

    reads = ("output_token_count",)
    needs = ("output_tokens",)
    name: str = "output_token_count"


class TotalTokenCount(_Number):
    """The tokens that the models of a run were given and made."""

    reads = ("total_token_count",)
    needs = ("total_tokens",)
    name: str = "total_token_count"


class LatencySeconds(_Number):
    """The seconds that a run took."""

    reads = ("latency_seconds",)
    needs = ("latency",)
    name: str = "latency_seconds"


class RunFailure(_Number):
    """1 if the run failed, else 0."""

    reads = ("failure",)
    needs = ("failure",)
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
