"""METRICS: every metric that an evaluation platform computes, and the fields that a row must have for it.

A need is a field; a tuple of fields means that any one of them suffices.
"""

from collections import Counter
from typing import NamedTuple

from agent_eval_schema.metrics.platforms import PLATFORMS, Need

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
    "guidelines_context",
    "retrieved_documents",
    "calls_in_response",
    "choices",
    "letter",
    "response_rubrics",
    "tool_use_rubrics",
    "trajectory_rubrics",
    "single_turn",
    "scenario",
)
"""The fields of a row that metrics read: one bit each, in this order, in the presence mask of a checked batch."""

BIT = {name: 1 << i for i, name in enumerate(SUPPORT_FIELDS)}

GROUND_TRUTH = sum(
    BIT[name]
    for name in (
        *("expected_response", "expected_facts", "guidelines", "expected_uri", "reference_trajectory"),
        *("expected_output", "rubrics", "reference_topics"),
    )
)
"""The mask of the fields that people give a row: a row with none of them has no ground truth."""

FIELD_WORDS = {
    "retrieved_content": "content in retrieved_context",
    "retrieved_uri": "doc_uri in retrieved_context",
    "expected_uri": "expected_retrieved_context",
    "retriever_span": "a trace with a RETRIEVER span, or content in retrieved_context",
    "tool_span": "a trace with a TOOL span, or predicted_trajectory",
    "recorded_session": "a recorded session (session_id, or a trace with a session), or a test case with a goal",
    "one_truth": "expected_response or expected_facts",
    "judged_text": "a response that is no number or boolean",
    **dict.fromkeys(_TOKENS, "a trace that reports token usage"),
    "latency": "a trace or latency_seconds",
    "session": "a trace with a session, or session_id",
    "failure": "a trace or failure",
    "tool_results": "results of tools in the messages of the response",
    "retrieved_documents": "retrieved_documents with a relevance_score each",
    "calls_in_response": "tool calls in the messages of the response",
    "letter": "the letter of a choice as expected_response",
    "response_rubrics": "guidelines, in ADK rubrics of the type FINAL_RESPONSE_QUALITY",
    "tool_use_rubrics": "rubrics of the type TOOL_USE_QUALITY",
    "trajectory_rubrics": "rubrics of the type TRAJECTORY_QUALITY",
    "single_turn": "a text as user_input, and no conversation",
    "scenario": "a scenario of DeepEval",
    **{key: f"{key} in custom_expected" for key in ("expected_output", "rubrics", "reference_topics")},
}
"""How a report names a field that a user should add; the others go by their column's name."""

MADE_BY_THE_APP = {
    **dict.fromkeys(("response", "judged_text", "trace", "latency", "failure"), ""),
    **dict.fromkeys(("retrieved_content", "retrieved_uri", "retriever_span"), "if the agent retrieves documents"),
    **dict.fromkeys(
        ("predicted_trajectory", "tool_results", "tool_span", "calls_in_response"), "if the agent calls tools"
    ),
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


COMMON = ("databricks", "mlflow", "vertex", "ces")
"""The systems that every report shows; one of another platform is shown for its own formats, and where it is named."""

_TAKEN = Counter(name for metrics in PLATFORMS.values() for name in metrics)

METRICS: tuple[Metric, ...] = tuple(
    Metric(
        system,
        name if system in COMMON or _TAKEN[name] == 1 else f"{system}/{name}",
        line.fields,
        bool(line.judged),
    )
    for system, metrics in PLATFORMS.items()
    for name, line in metrics.items()
)
"""A metric of another platform whose name a second system has, too, has the name of its system before it."""

SYSTEMS = tuple(PLATFORMS)

LATENCY, FAILURE = "latency_in_seconds", "failure"
