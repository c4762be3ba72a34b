"""PLATFORMS: the evaluators of further platforms, and the fields that a row must have for each.

A platform has those that ask a judge model, and those that compute, from embeddings too. Where a platform takes one of
several inputs, the need is the usual one. What belongs to the evaluator and not to a row is no need: a pattern, the
name of a tool, the definitions of the tools. A tool's answer is in a trace only, not in a trajectory. Evaluators of
images, of translations, and of what no field of a row holds are excluded. Sources:

    azure           azure-ai-evaluation 1.18.10: the signatures and validators of its evaluators
    bedrock         botocore 1.44.5: `metricNames` of an evaluation job
    bedrock-rag     the same; its user guide: "Use metrics to understand RAG system performance", with the citations
    agentcore       aws-cdk.aws-bedrock-agentcore-alpha 2.275.0a0: names; its user guide: the table of "Ground truth
                    evaluations", and in "Prompt templates" the placeholders, all of which come from a trace
    vertex-genai    google-cloud-aiplatform 2.7.0: `RubricMetric` and the handlers of metrics; its user guide: "Details
                    for managed rubric-based metrics", their inputs
    strands         strands-agents-evals 1.7.0
    braintrust      autoevals 0.4.1: `check_required` and the templates
    phoenix         arize-phoenix-evals 3.9.4: the input schemas
    inspect         inspect-ai 0.3.285
    promptfoo       promptfoo 0.121.20: the handlers of assertions
"""

from __future__ import annotations

Need = str | tuple[str, ...]
"""A field; a tuple of fields means that any one of them suffices."""

Metrics = dict[str, tuple[Need, ...]]

_Q, _A, _TRUTH, _DOCS = "request", "response", "expected_response", "retrieved_content"
_CALLS: Need = ("predicted_trajectory", "trace")
_BOTH = (_CALLS, "reference_trajectory")


def _all(names: str, *needs: Need) -> Metrics:
    return dict.fromkeys(names.split(), needs)


PLATFORMS: dict[str, tuple[Metrics, Metrics]] = {
    "azure": (
        {
            **_all("relevance coherence intent_resolution task_adherence task_completion", _Q, _A),
            **_all("fluency", _A),
            **_all("groundedness groundedness_pro ungrounded_attributes", _A, _DOCS),
            **_all("retrieval", _Q, _DOCS),
            **_all("similarity", _Q, _A, _TRUTH),
            **_all("qa", _Q, _A, _DOCS, _TRUTH),
            **_all("response_completeness", _A, _TRUTH),
            **_all("tool_call_accuracy tool_selection tool_input_accuracy", _Q, _CALLS),
            **_all("tool_output_utilization", _Q, _A, "trace"),
            **_all("tool_call_success", "trace"),
            **_all("violence sexual self_harm hate_unfairness content_safety", _A),
            **_all("protected_material indirect_attack code_vulnerability", _A),
        },
        {
            **_all("f1_score bleu_score gleu_score rouge_score meteor_score", _A, _TRUTH),
            **_all("document_retrieval", "retrieved_uri", "expected_uri"),
            **_all("task_navigation_efficiency", *_BOTH),
        },
    ),
    "bedrock": (
        {
            **_all("Builtin.Correctness Builtin.Completeness Builtin.Faithfulness Builtin.Helpfulness", _Q, _A),
            **_all("Builtin.Coherence Builtin.Relevance Builtin.FollowingInstructions", _Q, _A),
            **_all("Builtin.ProfessionalStyleAndTone", _Q, _A),
            **_all("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
        },
        {},
    ),
    "bedrock-rag": (
        {
            **_all("Builtin.ContextRelevance", _Q, _DOCS),
            **_all("Builtin.ContextCoverage", _Q, _DOCS, _TRUTH),
            **_all("Builtin.Correctness Builtin.Completeness", _Q, _A),
            **_all("Builtin.Helpfulness Builtin.LogicalCoherence", _Q, _A),
            **_all("Builtin.Faithfulness Builtin.CitationPrecision Builtin.CitationCoverage", _Q, _A, _DOCS),
            **_all("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
        },
        {},
    ),
    "agentcore": (
        {
            **_all("Builtin.Helpfulness Builtin.Conciseness Builtin.Coherence Builtin.InstructionFollowing", "trace"),
            **_all("Builtin.ResponseRelevance Builtin.Refusal Builtin.Harmfulness Builtin.Stereotyping", "trace"),
            **_all("Builtin.Correctness Builtin.Faithfulness", "trace"),
            **_all("Builtin.ToolSelectionAccuracy Builtin.ToolParameterAccuracy", "trace"),
            **_all("Builtin.GoalSuccessRate", "trace", "session"),
        },
        _all(
            "Builtin.TrajectoryExactOrderMatch Builtin.TrajectoryInOrderMatch Builtin.TrajectoryAnyOrderMatch",
            "trace",
            "reference_trajectory",
            "session",
        ),
    ),
    "vertex-genai": (
        {
            **_all("GENERAL_QUALITY TEXT_QUALITY INSTRUCTION_FOLLOWING SAFETY", _Q, _A),
            **_all("MULTI_TURN_GENERAL_QUALITY MULTI_TURN_TEXT_QUALITY", _Q, _A),
            **_all("GROUNDING", _Q, _A, _DOCS),
            **_all("FINAL_RESPONSE_MATCH", _Q, _A, _TRUTH),
            **_all("FINAL_RESPONSE_REFERENCE_FREE", _Q, _A, "guidelines"),
            **_all("FINAL_RESPONSE_QUALITY", _Q, _A),
            **_all("HALLUCINATION", _A, "trace"),
            **_all("TOOL_USE_QUALITY", _Q, _A, _CALLS),
            **_all("MULTI_TURN_TASK_SUCCESS MULTI_TURN_TOOL_USE_QUALITY MULTI_TURN_TRAJECTORY_QUALITY", "trace"),
        },
        _all("exact_match bleu rouge_1 rouge_l_sum", _A, _TRUTH),
    ),
    "strands": (
        {
            **_all("OutputEvaluator", _Q, _A),
            **_all("TrajectoryEvaluator", _Q, _CALLS),
            **_all("HelpfulnessEvaluator ConcisenessEvaluator CoherenceEvaluator ResponseRelevanceEvaluator", "trace"),
            **_all("CorrectnessEvaluator FaithfulnessEvaluator InstructionFollowingEvaluator", "trace"),
            **_all("HarmfulnessEvaluator RefusalEvaluator StereotypingEvaluator", "trace"),
            **_all("ToolSelectionAccuracyEvaluator ToolParameterAccuracyEvaluator", "trace"),
            **_all("GoalSuccessRateEvaluator", "trace"),
        },
        {
            **_all("Equals StructuredOutputSimilarity", _A, _TRUTH),
            **_all("Contains StartsWith", _A),
            **_all("ToolCalled", _CALLS),
        },
    ),
    "braintrust": (
        {
            **_all("Factuality Battle Sql Summary AnswerCorrectness", _Q, _A, _TRUTH),
            **_all("ClosedQA Possible", _Q, _A),
            **_all("Faithfulness AnswerRelevancy", _Q, _A, _DOCS),
            **_all("ContextPrecision ContextRecall", _Q, _DOCS, _TRUTH),
            **_all("ContextEntityRecall", _DOCS, _TRUTH),
            **_all("ContextRelevancy", _Q, _DOCS),
            **_all("Humor Moderation Security", _A),
        },
        {
            **_all("ExactMatch Levenshtein EmbeddingSimilarity AnswerSimilarity JSONDiff NumericDiff", _A, _TRUTH),
            **_all("ValidJSON", _A),
        },
    ),
    "phoenix": (
        {
            **_all("FaithfulnessEvaluator", _Q, _A, _DOCS),
            **_all("DocumentRelevanceEvaluator RetrievalRelevanceEvaluator", _Q, _DOCS),
            **_all("CorrectnessEvaluator ConcisenessEvaluator RefusalEvaluator HallucinationEvaluator", _Q, _A),
            **_all("CompletenessEvaluator PiiDetectionEvaluator", _Q, _A),
            **_all("ToxicityEvaluator", (_A, _Q)),
            **_all("UserFrictionEvaluator", _Q),
            **_all("ToolSelectionEvaluator ToolInvocationEvaluator", _Q, _CALLS),
            **_all("ToolResponseHandlingEvaluator", _Q, _A, "trace"),
        },
        {
            **_all("exact_match", _A, _TRUTH),
            **_all("MatchesRegex", _A),
        },
    ),
    "inspect": (
        _all("model_graded_qa model_graded_fact", _Q, _A, _TRUTH),
        _all("includes match pattern answer exact f1 choice math", _A, _TRUTH),
    ),
    "promptfoo": (
        {
            **_all("factuality", _Q, _A, _TRUTH),
            **_all("llm-rubric g-eval", _A, "guidelines"),
            **_all("model-graded-closedqa", _Q, _A, "guidelines"),
            **_all("answer-relevance conversation-relevance", _Q, _A),
            **_all("context-recall", _DOCS, _TRUTH),
            **_all("context-relevance", _Q, _DOCS),
            **_all("context-faithfulness", _Q, _A, _DOCS),
            **_all("trajectory:goal-success", _A, "trace"),
        },
        {
            **_all("equals similar levenshtein rouge-n bleu gleu meteor", _A, _TRUTH),
            **_all("contains-all icontains-all", _A, "expected_facts"),
            **_all("is-refusal", _A),
            **_all(
                "trajectory:tool-used trajectory:tool-sequence trajectory:tool-args-match",
                "trace",
                "reference_trajectory",
            ),
            **_all("trajectory:step-count", "trace"),
            **_all("tool-call-f1", *_BOTH),
            **_all("latency", "latency"),
        },
    ),
}
"""By system: the metrics that ask a judge model, and those that compute."""
