"""METRICS: every metric that an evaluation platform computes, and the fields that a row must have for it.

A need is a field; a tuple of fields means that any one of them suffices. Sources: the judge reference of Databricks,
the scorers of MLflow 3.18 (measured), the trajectory metrics of Vertex AI, TurnReplayResult of CES.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from agent_eval_schema.metrics.platforms import PLATFORMS, Need
from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS

_TOKENS = ("input_tokens", "output_tokens", "total_tokens")

SUPPORT_FIELDS = (
    "request",
    "response",
    "retrieved_content",
    "retrieved_uri",
    "expected_uri",
    "expected_response",
    "expected_facts",
    "guidelines",
    "trace",
    "retriever_span",
    "tool_span",
    *_TOKENS,
    "latency",
    "session",
    "recorded_session",
    "judged_text",
    "one_truth",
    "failure",
    "predicted_trajectory",
    "reference_trajectory",
    "expected_output",
    "rubrics",
    "reference_topics",
    "tool_definitions",
    "tool_results",
)
"""The fields of a row that metrics read: one bit each, in this order, in the presence mask of a checked batch."""

BIT = {name: 1 << i for i, name in enumerate(SUPPORT_FIELDS)}

FIELD_WORDS = {
    "retrieved_content": "content in retrieved_context",
    "retrieved_uri": "doc_uri in retrieved_context",
    "expected_uri": "expected_retrieved_context",
    "retriever_span": "a trace with a RETRIEVER span, or content in retrieved_context",
    "tool_span": "a trace with a TOOL span, or predicted_trajectory",
    "recorded_session": "a recorded session: session_id, or a trace with a session",
    "one_truth": "expected_response or expected_facts",
    "judged_text": "a response that is no number or boolean",
    **dict.fromkeys(_TOKENS, "a trace that reports token usage"),
    "latency": "a trace or latency_seconds",
    "session": "a trace with a session, or session_id",
    "failure": "a trace or failure",
    "tool_results": "results of tools in the messages of the response",
    **{key: f"{key} in custom_expected" for key in ("expected_output", "rubrics", "reference_topics")},
}
"""How a report names a field that a user should add; the others go by their column's name."""

MADE_BY_THE_APP = {
    **dict.fromkeys(("response", "judged_text", "trace", "latency", "failure"), ""),
    **dict.fromkeys(("retrieved_content", "retrieved_uri", "retriever_span"), "if the agent retrieves documents"),
    **dict.fromkeys(("predicted_trajectory", "tool_results", "tool_span"), "if the agent calls tools"),
    **dict.fromkeys(_TOKENS, "if the agent's trace reports token usage"),
}
"""The fields that will exist after the agent has run, and the condition that a report adds."""


class Metric(NamedTuple):
    """A metric of a system (databricks, mlflow, vertex, …), its needs, and whether a judge model is asked."""

    system: str
    name: str
    needs: tuple[Need, ...]
    judged: bool = False

    @property
    def fields(self) -> list[str]:
        return [field for need in self.needs for field in ((need,) if isinstance(need, str) else need)]


TRUTH = ("expected_response", "expected_facts")


def _alike(system: str, judged: bool, names: str, *needs: Need) -> Iterator[Metric]:
    return (Metric(system, name, needs, judged) for name in names.split())


def _databricks() -> tuple[Metric, ...]:
    judged, computed = partial(_alike, "databricks", True), partial(_alike, "databricks", False)
    return (
        *judged("response/llm_judged/relevance_to_query/rating", "request", "response"),
        *judged("response/llm_judged/safety/rating", "response"),
        *judged("response/llm_judged/groundedness/rating", "request", "response", "retrieved_content"),
        *judged("retrieval/llm_judged/chunk_relevance_precision", "request", "retrieved_content"),
        *computed("agent/total_token_count", "total_tokens"),
        *computed("agent/input_token_count", "input_tokens"),
        *computed("agent/output_token_count", "output_tokens"),
        *computed("agent/latency_seconds", "latency"),
        *judged("response/llm_judged/correctness/rating", "request", "response", TRUTH),
        *judged("retrieval/llm_judged/context_sufficiency/rating", "request", "retrieved_content", TRUTH),
        *judged("response/llm_judged/guideline_adherence/rating", "request", "response", "guidelines"),
        *computed("retrieval/ground_truth/document_recall", "retrieved_uri", "expected_uri"),
    )


def _mlflow() -> tuple[Metric, ...]:
    """Without documents, calls or a session in a trace MLflow reads those of the trace that prepare_for_evaluate makes
    of the columns. Some scorers make text of an answer, and others raise an exception at a number."""
    judged, computed = partial(_alike, "mlflow", True), partial(_alike, "mlflow", False)
    return (
        *judged("RelevanceToQuery Completeness Summarization", "request", "response"),
        *judged("Guidelines", "request", "response", "judged_text"),
        *judged("Safety", "response", "judged_text"),
        *judged("Fluency", "response"),
        *judged("Correctness", "request", "response", "judged_text", "one_truth"),
        *judged("Equivalence", "response", "expected_response"),
        *judged("ExpectationsGuidelines", "request", "response", "guidelines"),
        *judged("RetrievalGroundedness RetrievalRelevance", "request", "retriever_span"),
        *judged("RetrievalSufficiency", "request", "retriever_span", TRUTH),
        *judged("ToolCallEfficiency ToolCallCorrectness", "request", "tool_span"),
        *computed("RegexMatch PIIDetection ResponseLength", "response", "judged_text"),
        *judged("UserFrustration KnowledgeRetention ConversationCompleteness", "recorded_session"),
        *judged("ConversationalSafety ConversationalToolCallEfficiency", "recorded_session"),
        *judged("ConversationalRoleAdherence ConversationalGuidelines", "recorded_session"),
    )


def _vertex() -> tuple[Metric, ...]:
    both = ("predicted_trajectory", "reference_trajectory")
    return (
        *(Metric("vertex", name, both) for name in TRAJECTORY_METRICS),
        Metric("vertex", "trajectory_single_tool_use", ("predicted_trajectory",)),
        Metric("vertex", "latency", ("latency",)),
        Metric("vertex", "failure", ("failure",)),
    )


TOOL_CALL_NEEDS: tuple[Need, ...] = (("predicted_trajectory", "trace"), "reference_trajectory")
"""The inputs that Customer Engagement Suite compares. An agent that called nothing has failed: a trace without a call
suffices."""


def _ces() -> tuple[Metric, ...]:
    """Of a turn of a golden evaluation; by the names of its result."""
    judged, computed = partial(_alike, "ces", True), partial(_alike, "ces", False)
    return (
        *computed("toolInvocationScore toolOrderedInvocationScore parameterCorrectnessScore", *TOOL_CALL_NEEDS),
        *computed("overallToolInvocationResult", *TOOL_CALL_NEEDS),
        *judged("semanticSimilarityResult", "response", "expected_response"),
        *judged("hallucinationResult", "request", "response"),
        *computed("turnLatency", "latency"),
    )


def _platforms(others: Sequence[Metric]) -> Iterator[Metric]:
    """The metrics of PLATFORMS; one whose name another system has, too, has the name of its system before it."""
    taken = Counter([*(m.name for m in others), *(name for metrics in PLATFORMS.values() for name in metrics)])
    for (system, is_judged), metrics in PLATFORMS.items():
        for name, needs in metrics.items():
            yield Metric(system, name if taken[name] == 1 else f"{system}/{name}", needs, is_judged)


_FIRST = (*_databricks(), *_mlflow(), *_vertex(), *_ces())

METRICS: tuple[Metric, ...] = (*_FIRST, *_platforms(_FIRST))

SYSTEMS: tuple[str, ...] = tuple(dict.fromkeys(m.system for m in METRICS))

COMMON: tuple[str, ...] = tuple(dict.fromkeys(m.system for m in _FIRST))
"""The systems that every report shows; one of another platform is shown for its own formats, and where it is named."""

LATENCY, FAILURE = "latency_in_seconds", "failure"
