"""PLATFORMS: the evaluators of further platforms, and the fields that a row must have for each.

A platform has those that ask a judge model, and those that compute, from embeddings too. Where a platform takes one of
several inputs, the need is the usual one. What belongs to the evaluator and not to a row is no need: a pattern, the
name of a tool. A tool's answer is in a trace only, not in a trajectory. Evaluators of
images, of speech, of translations, and of what no field of a row holds are excluded: `tests/metrics/test_catalogs.py`
names them, and compares each list with the package that it comes from. Sources:

    adk             google-adk 2.13.0: `PrebuiltMetrics` and their evaluators
    azure           azure-ai-evaluation 1.18.10: the signatures and validators of its evaluators
    bedrock         botocore 1.44.5: `metricNames` of an evaluation job
    bedrock-rag     botocore 1.44.5; its user guide: "Use metrics to understand RAG system performance", with the
                    citations
    agentcore       aws-cdk.aws-bedrock-agentcore-alpha 2.275.0a0: names; its user guide: the table of "Ground truth
                    evaluations", and in "Prompt templates" the placeholders, all of which come from a trace
    vertex-genai    google-cloud-aiplatform 2.7.0: `RubricMetric` and the handlers of metrics; its user guide: "Details
                    for managed rubric-based metrics", their inputs
    strands         strands-agents-evals 1.7.0
    braintrust      autoevals 0.4.1: `check_required` and the templates
    phoenix         arize-phoenix-evals 3.9.4: the input schemas
    inspect         inspect-ai 0.3.285
    promptfoo       promptfoo 0.121.20: the handlers of assertions
    ragas           ragas 0.4.3: `_required_columns`, and the arguments of `ascore` of its collections
    deepeval        deepeval 4.3.1: `_required_params`
    langsmith       openevals 0.2.2, the evaluators of LangSmith's documentation: the variables of its prompts
    langfuse        langfuse 0a6ecf1 (the repository): `managed-evaluators.json`: the variables of the prompts
    openai          openai 2.0.0: the graders of the Evals API, with `{{ item.… }}` and `{{ sample.output_text }}`
    mlflow-third-party
                    mlflow 3.17.2: `mlflow.genai.scorers.deepeval`, `.ragas`, `.trulens`, `.phoenix`, `.guardrails` and
                    `.google_adk`, and what each reads of inputs, outputs, expectations and trace
"""

from __future__ import annotations

Need = str | tuple[str, ...]
"""A field; a tuple of fields means that any one of them suffices."""

Metrics = dict[str, tuple[Need, ...]]

_Q, _A, _TRUTH, _DOCS = "request", "response", "expected_response", "retrieved_content"
_CALLS: Need = ("predicted_trajectory", "trace")
_BOTH = (_CALLS, "reference_trajectory")
_CONVERSATION = ("recorded_session",)
_ANY_TRUTH: Need = ("expected_response", "expected_facts")
_RETRIEVER, _OUTPUT = "retriever_span", "expected_output"


def _all(names: str, *needs: Need) -> Metrics:
    return dict.fromkeys(names.split(), needs)


def _of(library: str, names: str, *needs: Need) -> Metrics:
    """Scorers of another library that MLflow wraps; they read documents and tool calls from the trace only."""
    return {f"mlflow.{library}/{name}": needs for name in names.split()}


JUDGED, COMPUTED = True, False

PLATFORMS: dict[tuple[str, bool], Metrics] = {
    ("adk", JUDGED): {
        # a reference response is required, though the coherence of the response alone is judged
        **_all("response_evaluation_score final_response_match_v2", _Q, _A, _TRUTH),
        **_all("safety_v1", _A),
        **_all("rubric_based_final_response_quality_v1", _Q, _A, "guidelines"),
        **_all("rubric_based_tool_use_quality_v1", _Q, _CALLS, "guidelines"),
        **_all("rubric_based_multi_turn_trajectory_quality_v1", _Q, _A, "guidelines"),
        **_all("hallucinations_v1", _Q, _A),
        **_all("multi_turn_task_success_v1 multi_turn_trajectory_quality_v1", _Q, _A),
        **_all("multi_turn_tool_use_quality_v1", _Q, _CALLS),
    },
    ("adk", COMPUTED): {
        **_all("tool_trajectory_avg_score", *_BOTH),
        **_all("response_match_score", _A, _TRUTH),
        **_all("tool_call_count_v1", _CALLS),
        **_all("inference_call_count_v1", "trace"),
        **_all("token_usage_v1", "total_tokens"),
        **_all("invocation_duration_v1", "latency"),
    },
    ("azure", JUDGED): {
        **_all("relevance coherence intent_resolution task_adherence task_completion", _Q, _A),
        **_all("fluency", _A),
        **_all("groundedness groundedness_pro ungrounded_attributes", _A, _DOCS),
        **_all("retrieval", _Q, _DOCS),
        **_all("similarity", _Q, _A, _TRUTH),
        **_all("qa", _Q, _A, _DOCS, _TRUTH),
        **_all("response_completeness", _A, _TRUTH),
        **_all("tool_call_accuracy tool_selection tool_input_accuracy", _Q, _CALLS, "tool_definitions"),
        **_all("tool_output_utilization", _Q, _A, "tool_results", "tool_definitions"),
        **_all("tool_call_success", "tool_results"),
        **_all("violence sexual self_harm hate_unfairness content_safety", _A),
        **_all("protected_material indirect_attack code_vulnerability", _A),
    },
    ("azure", COMPUTED): {
        **_all("f1_score bleu_score gleu_score rouge_score meteor_score", _A, _TRUTH),
        **_all("document_retrieval", "retrieved_uri", "expected_uri"),
        **_all("task_navigation_efficiency", *_BOTH),
    },
    ("bedrock", JUDGED): {
        **_all("Builtin.Correctness Builtin.Completeness Builtin.Faithfulness Builtin.Helpfulness", _Q, _A),
        **_all("Builtin.Coherence Builtin.Relevance Builtin.FollowingInstructions", _Q, _A),
        **_all("Builtin.ProfessionalStyleAndTone", _Q, _A),
        **_all("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
    },
    ("bedrock-rag", JUDGED): {
        **_all("Builtin.ContextRelevance", _Q, _DOCS),
        **_all("Builtin.ContextCoverage", _Q, _DOCS, _TRUTH),
        **_all("Builtin.Correctness Builtin.Completeness", _Q, _A),
        **_all("Builtin.Helpfulness Builtin.LogicalCoherence", _Q, _A),
        **_all("Builtin.Faithfulness Builtin.CitationPrecision Builtin.CitationCoverage", _Q, _A, _DOCS),
        **_all("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
    },
    ("agentcore", JUDGED): {
        **_all("Builtin.Helpfulness Builtin.Conciseness Builtin.Coherence Builtin.InstructionFollowing", "trace"),
        **_all("Builtin.ResponseRelevance Builtin.Refusal Builtin.Harmfulness Builtin.Stereotyping", "trace"),
        **_all("Builtin.Correctness Builtin.Faithfulness", "trace"),
        **_all("Builtin.ToolSelectionAccuracy Builtin.ToolParameterAccuracy", "trace"),
        **_all("Builtin.GoalSuccessRate", "trace", "session"),
    },
    ("agentcore", COMPUTED): _all(
        "Builtin.TrajectoryExactOrderMatch Builtin.TrajectoryInOrderMatch Builtin.TrajectoryAnyOrderMatch",
        "trace",
        "reference_trajectory",
        "session",
    ),
    ("vertex-genai", JUDGED): {
        **_all("GENERAL_QUALITY TEXT_QUALITY INSTRUCTION_FOLLOWING SAFETY", _Q, _A),
        **_all("MULTI_TURN_GENERAL_QUALITY MULTI_TURN_TEXT_QUALITY", _Q, _A),
        **_all("GROUNDING", _Q, _A, _DOCS),
        **_all("FINAL_RESPONSE_MATCH", _Q, _A, _TRUTH),
        **_all("FINAL_RESPONSE_REFERENCE_FREE", _Q, _A, "guidelines"),
        **_all("FINAL_RESPONSE_QUALITY COHERENCE FLUENCY VERBOSITY SUMMARIZATION_QUALITY", _Q, _A),
        **_all("QUESTION_ANSWERING_QUALITY MULTI_TURN_CHAT_QUALITY MULTI_TURN_SAFETY", _Q, _A),
        **_all("HALLUCINATION", _A, "trace"),
        **_all("TOOL_USE_QUALITY", _Q, _A, _CALLS),
        **_all("MULTI_TURN_TASK_SUCCESS MULTI_TURN_TOOL_USE_QUALITY MULTI_TURN_TRAJECTORY_QUALITY", "trace"),
    },
    ("vertex-genai", COMPUTED): _all("exact_match bleu rouge_1 rouge_l_sum", _A, _TRUTH),
    ("strands", JUDGED): {
        **_all("OutputEvaluator", _Q, _A),
        **_all("TrajectoryEvaluator", _Q, _CALLS),
        **_all("HelpfulnessEvaluator ConcisenessEvaluator CoherenceEvaluator ResponseRelevanceEvaluator", "trace"),
        **_all("CorrectnessEvaluator FaithfulnessEvaluator InstructionFollowingEvaluator", "trace"),
        **_all("HarmfulnessEvaluator RefusalEvaluator StereotypingEvaluator", "trace"),
        **_all("ToolSelectionAccuracyEvaluator ToolParameterAccuracyEvaluator", "trace"),
        **_all("GoalSuccessRateEvaluator", "trace"),
        **_all("SkillSelectionAccuracyEvaluator SkillInstructionFollowingEvaluator", "trace"),
    },
    ("strands", COMPUTED): {
        **_all("Equals StructuredOutputSimilarity", _A, _TRUTH),
        **_all("Contains StartsWith", _A),
        **_all("ToolCalled", _CALLS),
        **_all("SkillInvoked", "trace"),
    },
    ("braintrust", JUDGED): {
        **_all("Factuality Battle Sql Summary AnswerCorrectness", _Q, _A, _TRUTH),
        **_all("ClosedQA Possible", _Q, _A),
        **_all("Faithfulness AnswerRelevancy", _Q, _A, _DOCS),
        **_all("ContextPrecision ContextRecall", _Q, _DOCS, _TRUTH),
        **_all("ContextEntityRecall", _DOCS, _TRUTH),
        **_all("ContextRelevancy", _Q, _DOCS),
        **_all("Humor Moderation Security", _A),
    },
    ("braintrust", COMPUTED): {
        **_all("ExactMatch Levenshtein EmbeddingSimilarity AnswerSimilarity JSONDiff NumericDiff", _A, _TRUTH),
        **_all("ListContains", _A, "expected_facts"),
        **_all("ValidJSON", _A),
    },
    ("phoenix", JUDGED): {
        **_all("FaithfulnessEvaluator", _Q, _A, _DOCS),
        **_all("DocumentRelevanceEvaluator RetrievalRelevanceEvaluator", _Q, _DOCS),
        **_all("CorrectnessEvaluator ConcisenessEvaluator RefusalEvaluator HallucinationEvaluator", _Q, _A),
        **_all("CompletenessEvaluator PiiDetectionEvaluator", _Q, _A),
        **_all("ToxicityEvaluator", (_A, _Q)),
        **_all("UserFrictionEvaluator", _Q),
        **_all("ToolSelectionEvaluator ToolInvocationEvaluator", _Q, _CALLS),
        **_all("ToolResponseHandlingEvaluator", _Q, _A, "trace"),
    },
    ("phoenix", COMPUTED): {
        **_all("exact_match", _A, _TRUTH),
        **_all("MatchesRegex", _A),
    },
    ("inspect", JUDGED): _all("model_graded_qa model_graded_fact", _Q, _A, _TRUTH),
    ("inspect", COMPUTED): _all("includes match pattern answer exact f1 choice math", _A, _TRUTH),
    ("promptfoo", JUDGED): {
        **_all("factuality", _Q, _A, _TRUTH),
        **_all("llm-rubric g-eval", _A, "guidelines"),
        **_all("model-graded-closedqa", _Q, _A, "guidelines"),
        **_all("answer-relevance conversation-relevance", _Q, _A),
        **_all("context-recall", _DOCS, _TRUTH),
        **_all("context-relevance", _Q, _DOCS),
        **_all("context-faithfulness", _Q, _A, _DOCS),
        **_all("trajectory:goal-success", _A, "trace"),
    },
    ("promptfoo", COMPUTED): {
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
    ("ragas", JUDGED): {
        **_all("ContextPrecision ContextPrecisionWithReference ContextRecall", _Q, _DOCS, _TRUTH),
        **_all("ContextPrecisionWithoutReference ContextUtilization Faithfulness", _Q, _A, _DOCS),
        **_all("ContextEntityRecall", _DOCS, _TRUTH),
        **_all("ContextRelevance", _Q, _DOCS),
        **_all("NoiseSensitivity", _Q, _A, _DOCS, _TRUTH),
        **_all("ResponseGroundedness", _A, _DOCS),
        **_all("AnswerRelevancy", _Q, _A),
        **_all("AnswerCorrectness AnswerAccuracy", _Q, _A, _TRUTH),
        **_all("FactualCorrectness", _A, _TRUTH),
        **_all("DomainSpecificRubrics RubricsScoreWithoutReference", _Q, _A),
        **_all("RubricsScoreWithReference", _Q, _A, _TRUTH),
        **_all("AgentGoalAccuracy AgentGoalAccuracyWithReference", _Q, _TRUTH),
        **_all("AgentGoalAccuracyWithoutReference", _Q, _A),
    },
    ("ragas", COMPUTED): {
        **_all("BleuScore CHRFScore RougeScore ExactMatch StringPresence", _A, _TRUTH),
        **_all("NonLLMStringSimilarity SemanticSimilarity DataCompyScore", _A, _TRUTH),
        **_all("QuotedSpansAlignment", _A, _DOCS),
        **_all("ToolCallAccuracy ToolCallF1", *_BOTH),
        **_all("IDBasedContextPrecision IDBasedContextRecall", "retrieved_uri", "expected_uri"),
    },
    ("deepeval", JUDGED): {
        **_all("AnswerRelevancyMetric BiasMetric ToxicityMetric MisuseMetric NonAdviceMetric", _Q, _A),
        **_all("PIILeakageMetric RoleViolationMetric SummarizationMetric PromptAlignmentMetric", _Q, _A),
        **_all("TaskCompletionMetric StepEfficiencyMetric PlanAdherenceMetric PlanQualityMetric", _Q, _A, "trace"),
        **_all("AgentLoopDetectionMetric", _Q, _A, "trace"),
        **_all("GEval", _Q, _A),
        **_all("FaithfulnessMetric", _Q, _A, _DOCS),
        **_all("HallucinationMetric", _Q, _A, "expected_uri"),
        **_all("ContextualPrecisionMetric ContextualRecallMetric", _Q, _DOCS, _TRUTH),
        **_all("ContextualRelevancyMetric", _Q, _DOCS),
        **_all("ArgumentCorrectnessMetric", _Q, _CALLS),
        **_all("ToolPermissionMetric", _CALLS),
        **_all("ConversationCompletenessMetric KnowledgeRetentionMetric RoleAdherenceMetric", _Q, _A),
        **_all("TurnRelevancyMetric TopicAdherenceMetric GoalAccuracyMetric ToolUseMetric", _Q, _A),
        **_all("ConversationalGEval", _Q, _A),
        **_all("TurnFaithfulnessMetric TurnContextualRelevancyMetric", _Q, _A, _DOCS),
        **_all("TurnContextualPrecisionMetric TurnContextualRecallMetric", _Q, _A, _DOCS, _TRUTH),
    },
    ("deepeval", COMPUTED): {
        **_all("ExactMatchMetric", _Q, _A, _TRUTH),
        **_all("PatternMatchMetric JsonCorrectnessMetric", _Q, _A),
        **_all("ToolCorrectnessMetric", _Q, *_BOTH),
    },
    ("langsmith", JUDGED): {
        **_all("CORRECTNESS", _Q, _A, _TRUTH),
        **_all("CONCISENESS ANSWER_RELEVANCE RAG_HELPFULNESS TOXICITY FAIRNESS PII_LEAKAGE", _Q, _A),
        **_all("CODE_CORRECTNESS LAZINESS", _Q, _A),
        **_all("HALLUCINATION", _Q, _A, _DOCS, _TRUTH),
        **_all("RAG_GROUNDEDNESS", _A, _DOCS),
        **_all("RAG_RETRIEVAL_RELEVANCE", _Q, _DOCS),
        **_all("PROMPT_INJECTION CODE_INJECTION", _Q),
        **_all("TRAJECTORY_ACCURACY TOOL_SELECTION TASK_COMPLETION", "trace"),
        **_all("AGENT_TONE KNOWLEDGE_RETENTION LANGUAGE_DETECTION PERCEIVED_ERROR SUPPORT_INTENT", "trace"),
        **_all("USER_SATISFACTION WINS", "trace"),
    },
    ("langfuse", JUDGED): {
        **_all("Hallucination Helpfulness Relevance Toxicity Conciseness", _Q, _A),
        **_all("Correctness", _Q, _A, _TRUTH),
        **_all("Contextrelevance", _Q, _DOCS),
        **_all("Contextcorrectness", _Q, _DOCS, _TRUTH),
        **_all("Answer-Correctness", _A, _TRUTH),
        **_all("Answer-Relevance", _A),
        **_all("Context-Precision", _Q, _A, _DOCS),
        **_all("Context-Recall", _A, _DOCS),
        **_all("Faithfulness", _Q, _A),
        **_all("Goal-Accuracy", _Q, _A, _TRUTH),
    },
    ("openai", JUDGED): _all("score_model label_model", _A),
    ("openai", COMPUTED): _all("string_check text_similarity", _A, _TRUTH),
    ("mlflow-third-party", JUDGED): {
        **_of("deepeval", "AnswerRelevancy TaskCompletion StepEfficiency PlanAdherence PlanQuality Bias", _Q, _A),
        **_of("deepeval", "Toxicity NonAdvice Misuse PIILeakage RoleViolation Summarization", _Q, _A),
        **_of("deepeval", "JsonCorrectness PromptAlignment", _Q, _A),
        **_of("deepeval", "Faithfulness", _Q, _A, _RETRIEVER),
        **_of("deepeval", "ContextualRelevancy", _Q, _RETRIEVER),
        **_of("deepeval", "ContextualRecall ContextualPrecision", _Q, _RETRIEVER, _OUTPUT),
        **_of("deepeval", "Hallucination", _Q, _A, _ANY_TRUTH),
        **_of("deepeval", "ToolCorrectness", _Q, "tool_span", "reference_trajectory"),
        **_of("deepeval", "ArgumentCorrectness", _Q, "tool_span"),
        **_of("deepeval", "TurnRelevancy RoleAdherence KnowledgeRetention TopicAdherence", *_CONVERSATION),
        **_of("deepeval", "ConversationCompleteness GoalAccuracy ToolUse", *_CONVERSATION),
        **_of("ragas", "ContextPrecision ContextRecall", _Q, _RETRIEVER, _ANY_TRUTH),
        **_of("ragas", "ContextEntityRecall", _RETRIEVER, _ANY_TRUTH),
        **_of("ragas", "ContextUtilization Faithfulness", _Q, _A, _RETRIEVER),
        **_of("ragas", "NoiseSensitivity", _Q, _A, _RETRIEVER, _ANY_TRUTH),
        **_of("ragas", "AnswerRelevancy AspectCritic RubricsScore DiscreteMetric", _Q, _A),
        **_of("ragas", "AnswerAccuracy", _Q, _A, _ANY_TRUTH),
        **_of("ragas", "ContextRelevance", _Q, _RETRIEVER),
        **_of("ragas", "ResponseGroundedness SummarizationScore", _A, _RETRIEVER),
        **_of("ragas", "FactualCorrectness", _A, _ANY_TRUTH),
        **_of("ragas", "InstanceSpecificRubrics", _Q, _A, "rubrics"),
        **_of("ragas", "TopicAdherence", "trace", "reference_topics"),
        **_of("ragas", "AgentGoalAccuracyWithReference", "trace", _OUTPUT),
        **_of("ragas", "AgentGoalAccuracyWithoutReference", "trace"),
        **_of("trulens", "Groundedness", _A, (_OUTPUT, _RETRIEVER)),
        **_of("trulens", "ContextRelevance", _Q, (_OUTPUT, _RETRIEVER)),
        **_of("trulens", "AnswerRelevance", _Q, _A),
        **_of("trulens", "Coherence", _A),
        **_of("trulens", "logical_consistency execution_efficiency plan_adherence plan_quality", "trace"),
        **_of("trulens", "tool_selection tool_calling", "trace"),
        **_of("phoenix", "Hallucination QA", _Q, _A, (_TRUTH, _OUTPUT, _RETRIEVER)),
        **_of("phoenix", "Relevance", _Q, (_TRUTH, _OUTPUT, _RETRIEVER)),
        **_of("phoenix", "Toxicity", _Q),
        **_of("phoenix", "Summarization", _Q, _A),
        **_of("google_adk", "ResponseEvaluation", _A, (_TRUTH, _OUTPUT)),
        **_of("google_adk", "Hallucination", _Q, _A),
        **_of("google_adk", "Safety", _A),
    },
    ("mlflow-third-party", COMPUTED): {
        **_of("deepeval", "ExactMatch", _Q, _A, _OUTPUT),
        **_of("deepeval", "PatternMatch", _Q, _A),
        **_of("ragas", "NonLLMContextPrecisionWithReference NonLLMContextRecall", _RETRIEVER),
        **_of("ragas", "SemanticSimilarity NonLLMStringSimilarity BleuScore ChrfScore", _A, _ANY_TRUTH),
        **_of("ragas", "RougeScore StringPresence ExactMatch", _A, _ANY_TRUTH),
        **_of("ragas", "ToolCallAccuracy ToolCallF1", "trace", "reference_trajectory"),
        **_of("guardrails", "ToxicLanguage NSFWText DetectJailbreak DetectPII SecretsPresent", (_A, _Q)),
        **_of("guardrails", "GibberishText", (_A, _Q)),
        **_of("google_adk", "ToolTrajectory", "trace", "reference_trajectory"),
        **_of("google_adk", "ResponseMatch", _A, (_TRUTH, _OUTPUT)),
    },
}
"""By system, the metrics that ask a judge model, then those that compute."""
