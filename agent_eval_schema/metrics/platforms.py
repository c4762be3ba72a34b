"""PLATFORMS: the evaluators of further platforms, and the fields that a row must have for each.

A platform has those that ask a judge model, and those that compute. Where a platform takes one of several inputs, the
need is the usual one. Sources: the validators of azure-ai-evaluation 1.18.10; the user guides of Amazon Bedrock and
AgentCore; the managed metrics of the Gen AI evaluation service (google-cloud-aiplatform 2.7.0); strands-agents-evals
1.0; autoevals 0.0.130; phoenix-evals 2; inspect-ai 0.3.285; the documentation of promptfoo.
"""

from __future__ import annotations

Need = str | tuple[str, ...]
"""A field; a tuple of fields means that any one of them suffices."""

Metrics = dict[str, tuple[Need, ...]]

_Q, _A, _TRUTH, _DOCS = "request", "response", "expected_response", "retrieved_content"
_CALLS: Need = ("predicted_trajectory", "trace")
_BOTH = (_CALLS, "reference_trajectory")


def _all(names: str, *needs: Need) -> Metrics:
    """Metrics with the same needs."""
    return dict.fromkeys(names.split(), needs)


_AZURE: tuple[Metrics, Metrics] = (
    {
        **_all("relevance coherence intent_resolution task_adherence task_completion", _Q, _A),
        **_all("fluency", _A),
        **_all("groundedness groundedness_pro ungrounded_attributes", _A, _DOCS),
        **_all("retrieval", _Q, _DOCS),
        **_all("similarity", _Q, _A, _TRUTH),
        **_all("qa", _Q, _A, _DOCS, _TRUTH),
        **_all("response_completeness", _A, _TRUTH),
        **_all("tool_call_accuracy tool_selection tool_input_accuracy", _Q, _CALLS),
        **_all("tool_output_utilization", _Q, _A, _CALLS),
        **_all("tool_call_success", _CALLS),
        **_all("violence sexual self_harm hate_unfairness protected_material indirect_attack code_vulnerability", _A),
    },
    {
        **_all("f1_score bleu_score gleu_score rouge_score meteor_score", _A, _TRUTH),
        **_all("document_retrieval", "retrieved_uri", "expected_uri"),
        **_all("task_navigation_efficiency", *_BOTH),
    },
)

_BEDROCK: tuple[Metrics, Metrics] = (
    {
        **_all("Builtin.Correctness Builtin.Completeness Builtin.Faithfulness Builtin.Helpfulness", _Q, _A),
        **_all("Builtin.Coherence Builtin.Relevance Builtin.FollowingInstructions", _Q, _A),
        **_all("Builtin.ProfessionalStyleAndTone Builtin.Readability", _Q, _A),
        **_all("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
    },
    {},
)

_BEDROCK_RAG: tuple[Metrics, Metrics] = (
    {
        **_all("Builtin.ContextRelevance", _Q, _DOCS),
        **_all("Builtin.ContextCoverage", _Q, _DOCS, _TRUTH),
        **_all("Builtin.Correctness Builtin.Completeness", _Q, _A),
        **_all("Builtin.Helpfulness Builtin.LogicalCoherence", _Q, _A),
        **_all("Builtin.Faithfulness Builtin.CitationPrecision Builtin.CitationCoverage", _Q, _A, _DOCS),
        **_all("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
    },
    {},
)

_AGENTCORE: tuple[Metrics, Metrics] = (
    {
        **_all("Builtin.Helpfulness Builtin.Conciseness Builtin.Coherence Builtin.InstructionFollowing", _Q, _A),
        **_all("Builtin.ResponseRelevance Builtin.Refusal Builtin.Harmfulness Builtin.Stereotyping", _Q, _A),
        **_all("Builtin.Correctness", _Q, _A),
        **_all("Builtin.Faithfulness", _Q, _A, (_DOCS, "trace")),
        **_all("Builtin.ToolSelectionAccuracy Builtin.ToolParameterAccuracy", _Q, _CALLS),
        **_all("Builtin.GoalSuccessRate", _Q, _A, "session"),
    },
    _all(
        "Builtin.TrajectoryExactOrderMatch Builtin.TrajectoryInOrderMatch Builtin.TrajectoryAnyOrderMatch",
        *_BOTH,
        "session",
    ),
)

_GENAI: tuple[Metrics, Metrics] = (
    {
        **_all("GENERAL_QUALITY TEXT_QUALITY INSTRUCTION_FOLLOWING SAFETY", _Q, _A),
        **_all("MULTI_TURN_GENERAL_QUALITY MULTI_TURN_TEXT_QUALITY", _Q, _A),
        **_all("GROUNDING", _Q, _A, _DOCS),
        **_all("FINAL_RESPONSE_MATCH", _Q, _A, _TRUTH),
        **_all("FINAL_RESPONSE_REFERENCE_FREE", _Q, _A, "guidelines"),
        **_all("FINAL_RESPONSE_QUALITY", _Q, _A),
        **_all("HALLUCINATION TOOL_USE_QUALITY", _Q, _A, _CALLS),
    },
    _all("exact_match bleu rouge_1 rouge_l_sum", _A, _TRUTH),
)

_STRANDS: tuple[Metrics, Metrics] = (
    {
        **_all("OutputEvaluator", _Q, _A),
        **_all("TrajectoryEvaluator", _Q, _CALLS),
        **_all("HelpfulnessEvaluator", _Q, _A, "trace"),
        **_all("FaithfulnessEvaluator", _A, "trace"),
        **_all("ToolSelectionAccuracyEvaluator ToolParameterAccuracyEvaluator", "trace"),
        **_all("GoalSuccessRateEvaluator", "trace", "session"),
    },
    {},
)

_BRAINTRUST: tuple[Metrics, Metrics] = (
    {
        **_all("Factuality Battle", _Q, _A, _TRUTH),
        **_all("ClosedQA", _Q, _A),
        **_all("AnswerCorrectness", _Q, _A, _TRUTH),
        **_all("AnswerSimilarity", _A, _TRUTH),
        **_all("Faithfulness AnswerRelevancy", _Q, _A, _DOCS),
        **_all("ContextPrecision ContextRecall", _Q, _DOCS, _TRUTH),
        **_all("ContextRelevancy", _Q, _DOCS),
        **_all("Moderation", _A),
    },
    _all("ExactMatch Levenshtein EmbeddingSimilarity JSONDiff NumericDiff", _A, _TRUTH),
)

_PHOENIX: tuple[Metrics, Metrics] = (
    {
        **_all("HallucinationEvaluator", _Q, _A, _DOCS),
        **_all("QAEvaluator", _Q, _A, _DOCS),
        **_all("RelevanceEvaluator", _Q, _DOCS),
        **_all("ToxicityEvaluator", _Q),
        **_all("SummarizationEvaluator", _Q, _A),
        **_all("CorrectnessEvaluator", _Q, _A),
    },
    _all("exact_match", _A, _TRUTH),
)

_INSPECT: tuple[Metrics, Metrics] = (
    _all("model_graded_qa model_graded_fact", _Q, _A, _TRUTH),
    _all("includes match pattern answer exact f1 choice math", _A, _TRUTH),
)

_PROMPTFOO: tuple[Metrics, Metrics] = (
    {
        **_all("factuality", _Q, _A, _TRUTH),
        **_all("similar", _A, _TRUTH),
        **_all("llm-rubric g-eval model-graded-closedqa", _A, "guidelines"),
        **_all("answer-relevance", _Q, _A),
        **_all("context-recall", _DOCS, _TRUTH),
        **_all("context-relevance", _Q, _DOCS),
        **_all("context-faithfulness", _Q, _A, _DOCS),
    },
    {
        **_all("equals levenshtein rouge-n bleu", _A, _TRUTH),
        **_all("contains-all icontains-all", _A, "expected_facts"),
        **_all("trajectory:tool-used trajectory:tool-sequence trajectory:tool-args-match", *_BOTH),
        **_all("latency", "latency"),
    },
)

PLATFORMS: dict[str, tuple[Metrics, Metrics]] = {
    "azure": _AZURE,
    "bedrock": _BEDROCK,
    "bedrock-rag": _BEDROCK_RAG,
    "agentcore": _AGENTCORE,
    "vertex-genai": _GENAI,
    "strands": _STRANDS,
    "braintrust": _BRAINTRUST,
    "phoenix": _PHOENIX,
    "inspect": _INSPECT,
    "promptfoo": _PROMPTFOO,
}
"""By system: the metrics that ask a judge model, and those that compute."""
