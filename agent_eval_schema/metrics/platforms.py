"""PLATFORMS: the metrics of every evaluation platform, and the fields that a row must have for each.

A platform has those that ask a judge model, and those that compute, from embeddings too. Where a platform takes one of
several inputs, the need is the usual one. What belongs to the evaluator and not to a row is no need: a pattern, the
name of a tool. A tool's answer is in a trace only, not in a trajectory. Evaluators of images, of speech, of
translations, and of what no field of a row holds are excluded: `tests/metrics/test_catalogs.py` names them, and
compares each list with the package that it comes from. Sources, and how each is
checked; "rows of each kind" are those of `tests/formats/test_scored.py`:

    databricks      Databricks, evaluation input schema and built-in AI judges: read, as there is no open package
    mlflow          mlflow 3.17.2: what `mlflow.genai.evaluate` scores on rows of each kind, with a stub as the judge
                    (`tests/integrations/mlflow/test_oracle.py`)
    vertex          google-cloud-aiplatform 2.7.0: the requests for trajectories that its client builds of rows of each
                    kind; latency and failure by "Evaluate an agent"
    ces             google-cloud-ces 0.7.2: the fields of `TurnReplayResult`
    adk             google-adk 2.13.0: its evaluators on rows of each kind, with a stub as the judge and the service
    azure           azure-ai-evaluation 1.18.10: its evaluators on rows of each kind, with a stub as the judge
    bedrock         botocore 1.44.5: the `metricNames` of an evaluation job; the needs by its user guide
    bedrock-rag     botocore 1.44.5: the same; the needs by "Use metrics to understand RAG system performance", with
                    the citations
    agentcore       aws-cdk.aws-bedrock-agentcore-alpha 2.275.0a0: the names; the needs by the user guide: the table of
                    "Ground truth evaluations", and in "Prompt templates" the placeholders, which come from a trace
    vertex-genai    google-cloud-aiplatform 2.7.0: the requests that its client builds of rows of each kind; the
                    metrics whose prompts it loads from the service by "Details for managed rubric-based metrics"
    strands         strands-agents-evals 1.7.0: its evaluators on rows of each kind, with a stub as the judge
    braintrust      autoevals 0.4.1: the names, `check_required` and the templates, read
    phoenix         arize-phoenix-evals 3.9.4: its evaluators on rows of each kind, with a stub as the judge
    inspect         inspect-ai 0.3.285: its scorers on rows of each kind, with a stub as the judge
    promptfoo       promptfoo 0.121.20: the handlers of assertions, read
    ragas           ragas 0.4.3: its collections on rows of each kind, with a stub as the judge
    deepeval        deepeval 4.3.1: its metrics of a single turn on rows of each kind, with a stub as the judge
    langsmith       openevals 0.2.2: its prompts as judges on rows of each kind, with a stub as the model
    langfuse        langfuse 0a6ecf1 (the repository): `managed-evaluators.json`: the variables of the prompts, read
    openai          openai 2.0.0: the graders of the Evals API, with `{{ item.… }}` and `{{ sample.output_text }}`, read
    mlflow-third-party
                    mlflow 3.17.2: `mlflow.genai.scorers.deepeval`, `.ragas`, `.trulens`, `.phoenix`, `.guardrails` and
                    `.google_adk`, and what each reads of inputs, outputs, expectations and trace: read
"""

from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS

Need = str | tuple[str, ...]
"""A field; a tuple of fields means that any one of them suffices."""

Metrics = dict[str, tuple[bool, tuple[Need, ...]]]
"""By name: whether a judge model computes it, and the needs."""

_Q, _A, _TRUTH, _DOCS = "request", "response", "expected_response", "retrieved_content"
_CALLS: Need = ("predicted_trajectory", "trace")
_CONVERSATION = ("recorded_session",)
_ONE_TURN = "single_turn"
_ANY_TRUTH: Need = ("expected_response", "expected_facts")
_RETRIEVER, _OUTPUT = "retriever_span", "expected_output"


TOOL_CALL_NEEDS: tuple[Need, ...] = (_CALLS, "reference_trajectory")
"""An agent that called nothing has failed: a trace without a call suffices."""


def _judged(names: str, *needs: Need, of: str = "") -> Metrics:
    """Metrics that ask a judge model. `of`: the library that MLflow wraps, which reads documents and calls."""
    return {f"mlflow.{of}/{name}" if of else name: (True, needs) for name in names.split()}


def _computed(names: str, *needs: Need, of: str = "") -> Metrics:
    return {name: (False, fields) for name, (_, fields) in _judged(names, *needs, of=of).items()}


PLATFORMS: dict[str, Metrics] = {
    "databricks": {
        **_judged("response/llm_judged/relevance_to_query/rating", _Q, _A),
        **_judged("response/llm_judged/safety/rating", _A),
        **_judged("response/llm_judged/groundedness/rating", _Q, _A, _DOCS),
        **_judged("retrieval/llm_judged/chunk_relevance_precision", _Q, _DOCS),
        **_computed("agent/total_token_count", "total_tokens"),
        **_computed("agent/input_token_count", "input_tokens"),
        **_computed("agent/output_token_count", "output_tokens"),
        **_computed("agent/latency_seconds", "latency"),
        **_judged("response/llm_judged/correctness/rating", _Q, _A, _ANY_TRUTH),
        **_judged("retrieval/llm_judged/context_sufficiency/rating", _Q, _DOCS, _ANY_TRUTH),
        **_judged("response/llm_judged/guideline_adherence/rating", _Q, (_A, "guidelines_context"), "guidelines"),
        **_judged("response/llm_judged/global_guideline_adherence/rating", _Q, _A),
        **_computed("retrieval/ground_truth/document_recall", "retrieved_uri", "expected_uri"),
    },
    # Without documents, calls or a session in a trace MLflow reads those of the trace that prepare_for_evaluate makes
    # of the columns. Some scorers make text of an answer, and others raise an exception at a number.
    "mlflow": {
        **_judged("RelevanceToQuery Completeness Summarization", _Q, _A),
        **_judged("Guidelines", _Q, _A, "judged_text"),
        **_judged("Safety", _A, "judged_text"),
        **_judged("Fluency", _A),
        **_judged("Correctness", _Q, _A, "judged_text", "one_truth"),
        **_judged("Equivalence", _A, _TRUTH),
        **_judged("ExpectationsGuidelines", _Q, _A, "guidelines"),
        **_judged("RetrievalGroundedness RetrievalRelevance", _Q, _RETRIEVER),
        **_judged("RetrievalSufficiency", _Q, _RETRIEVER, _ANY_TRUTH),
        **_judged("ToolCallEfficiency ToolCallCorrectness", _Q, "tool_span"),
        **_computed("RegexMatch PIIDetection ResponseLength", _A, "judged_text"),
        **_judged("UserFrustration KnowledgeRetention ConversationCompleteness", *_CONVERSATION),
        **_judged("ConversationalSafety ConversationalToolCallEfficiency", *_CONVERSATION),
        **_judged("ConversationalRoleAdherence ConversationalGuidelines", *_CONVERSATION),
    },
    "vertex": {
        **_computed(" ".join(TRAJECTORY_METRICS), "predicted_trajectory", "reference_trajectory"),
        **_computed("trajectory_single_tool_use", "predicted_trajectory"),
        **_computed("latency", "latency"),
        **_computed("failure", "failure"),
    },
    "ces": {  # of a turn of a golden evaluation; by the names of its result
        **_computed("toolInvocationScore toolOrderedInvocationScore parameterCorrectnessScore", *TOOL_CALL_NEEDS),
        **_computed("overallToolInvocationResult", *TOOL_CALL_NEEDS),
        **_judged("semanticSimilarityResult", _A, _TRUTH),
        **_judged("hallucinationResult", _Q, _A),
        **_computed("turnLatency", "latency"),
    },
    "adk": {
        # a reference response is required, though the coherence of the response alone is judged
        **_judged("response_evaluation_score final_response_match_v2", _Q, _A, _TRUTH),
        **_judged("safety_v1", _A),
        **_judged("rubric_based_final_response_quality_v1", _Q, _A, "response_rubrics"),
        **_judged("rubric_based_tool_use_quality_v1", _Q, _CALLS, "tool_use_rubrics"),
        **_judged("rubric_based_multi_turn_trajectory_quality_v1", _Q, _A, "trajectory_rubrics"),
        **_judged("hallucinations_v1", _Q, _A),
        **_judged("multi_turn_task_success_v1 multi_turn_trajectory_quality_v1", _Q, _A),
        **_judged("multi_turn_tool_use_quality_v1", _Q, _CALLS),
        **_computed("tool_trajectory_avg_score", *TOOL_CALL_NEEDS),
        **_computed("response_match_score", _A, _TRUTH),
        **_computed("tool_call_count_v1", _CALLS),
        **_computed("inference_call_count_v1", "trace"),
        **_computed("token_usage_v1", "total_tokens"),
        **_computed("invocation_duration_v1", "latency"),
    },
    "azure": {
        **_judged("relevance coherence intent_resolution task_adherence task_completion", _Q, _A),
        **_judged("fluency", _A),
        **_judged("groundedness groundedness_pro ungrounded_attributes", _A, _DOCS),
        **_judged("retrieval", _Q, _DOCS),
        **_judged("similarity", _Q, _A, _TRUTH),
        **_judged("qa", _Q, _A, _DOCS, _TRUTH),
        **_judged("response_completeness", _A, _TRUTH),
        **_judged("tool_call_accuracy tool_selection tool_input_accuracy", _Q, _CALLS, "tool_definitions"),
        **_judged("tool_output_utilization", _Q, _A, "tool_results", "tool_definitions"),
        **_judged("tool_call_success", "tool_results"),
        **_judged("violence sexual self_harm hate_unfairness content_safety", _A),
        **_judged("protected_material indirect_attack code_vulnerability", _A),
        **_computed("f1_score bleu_score gleu_score rouge_score meteor_score", _A, _TRUTH),
        **_computed("document_retrieval", "retrieved_documents", "expected_uri"),
        **_computed("task_navigation_efficiency", "calls_in_response", "reference_trajectory"),
    },
    "bedrock": {
        **_judged("Builtin.Correctness Builtin.Completeness Builtin.Faithfulness Builtin.Helpfulness", _Q, _A),
        **_judged("Builtin.Coherence Builtin.Relevance Builtin.FollowingInstructions", _Q, _A),
        **_judged("Builtin.ProfessionalStyleAndTone", _Q, _A),
        **_judged("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
    },
    "bedrock-rag": {
        **_judged("Builtin.ContextRelevance", _Q, _DOCS),
        **_judged("Builtin.ContextCoverage", _Q, _DOCS, _TRUTH),
        **_judged("Builtin.Correctness Builtin.Completeness", _Q, _A),
        **_judged("Builtin.Helpfulness Builtin.LogicalCoherence", _Q, _A),
        **_judged("Builtin.Faithfulness Builtin.CitationPrecision Builtin.CitationCoverage", _Q, _A, _DOCS),
        **_judged("Builtin.Harmfulness Builtin.Stereotyping Builtin.Refusal", _Q, _A),
    },
    "agentcore": {
        **_judged("Builtin.Helpfulness Builtin.Conciseness Builtin.Coherence Builtin.InstructionFollowing", "trace"),
        **_judged("Builtin.ResponseRelevance Builtin.Refusal Builtin.Harmfulness Builtin.Stereotyping", "trace"),
        **_judged("Builtin.Correctness Builtin.Faithfulness", "trace"),
        **_judged("Builtin.ToolSelectionAccuracy Builtin.ToolParameterAccuracy", "trace"),
        **_judged("Builtin.GoalSuccessRate", "trace", "session"),
        **_computed(
            "Builtin.TrajectoryExactOrderMatch Builtin.TrajectoryInOrderMatch Builtin.TrajectoryAnyOrderMatch",
            "trace",
            "reference_trajectory",
            "session",
        ),
    },
    "vertex-genai": {
        **_judged("GENERAL_QUALITY TEXT_QUALITY INSTRUCTION_FOLLOWING SAFETY", _Q, _A),
        **_judged("MULTI_TURN_GENERAL_QUALITY MULTI_TURN_TEXT_QUALITY", _Q, _A),
        **_judged("GROUNDING", _Q, _A, _DOCS),
        **_judged("FINAL_RESPONSE_MATCH", _Q, _A, _TRUTH),
        **_judged("FINAL_RESPONSE_REFERENCE_FREE", _Q, _A, "guidelines"),
        **_judged("FINAL_RESPONSE_QUALITY COHERENCE FLUENCY VERBOSITY SUMMARIZATION_QUALITY", _Q, _A),
        **_judged("QUESTION_ANSWERING_QUALITY MULTI_TURN_CHAT_QUALITY MULTI_TURN_SAFETY", _Q, _A),
        **_judged("HALLUCINATION", _A, "trace"),
        **_judged("TOOL_USE_QUALITY", _Q, _A, _CALLS),
        **_judged("MULTI_TURN_TASK_SUCCESS MULTI_TURN_TOOL_USE_QUALITY MULTI_TURN_TRAJECTORY_QUALITY", "trace"),
        **_computed("exact_match bleu rouge_1 rouge_l_sum", _A, _TRUTH),
    },
    "strands": {
        **_judged("OutputEvaluator", _Q, _A),
        **_judged("TrajectoryEvaluator", _Q, _CALLS),
        **_judged("HelpfulnessEvaluator ConcisenessEvaluator CoherenceEvaluator ResponseRelevanceEvaluator", "trace"),
        **_judged("CorrectnessEvaluator FaithfulnessEvaluator InstructionFollowingEvaluator", "trace"),
        **_judged("HarmfulnessEvaluator RefusalEvaluator StereotypingEvaluator", "trace"),
        **_judged("ToolSelectionAccuracyEvaluator ToolParameterAccuracyEvaluator", "trace"),
        **_judged("GoalSuccessRateEvaluator", "trace"),
        **_judged("SkillSelectionAccuracyEvaluator SkillInstructionFollowingEvaluator", "trace"),
        **_computed("Equals", _A, _TRUTH),
        **_computed("Contains StartsWith", _A),
        **_computed("ToolCalled", _CALLS),
        **_computed("SkillInvoked", "trace"),
    },
    "braintrust": {
        **_judged("Factuality Battle Sql Summary AnswerCorrectness", _Q, _A, _TRUTH),
        **_judged("ClosedQA Possible", _Q, _A),
        **_judged("Faithfulness AnswerRelevancy", _Q, _A, _DOCS),
        **_judged("ContextPrecision ContextRecall", _Q, _DOCS, _TRUTH),
        **_judged("ContextEntityRecall", _DOCS, _TRUTH),
        **_judged("ContextRelevancy", _Q, _DOCS),
        **_judged("Humor Moderation Security", _A),
        **_computed("ExactMatch Levenshtein EmbeddingSimilarity AnswerSimilarity JSONDiff NumericDiff", _A, _TRUTH),
        **_computed("ListContains", _A, "expected_facts"),
        **_computed("ValidJSON", _A),
    },
    "phoenix": {
        **_judged("FaithfulnessEvaluator", _Q, _A, _DOCS),
        **_judged("DocumentRelevanceEvaluator RetrievalRelevanceEvaluator", _Q, _DOCS),
        **_judged("CorrectnessEvaluator ConcisenessEvaluator RefusalEvaluator HallucinationEvaluator", _Q, _A),
        **_judged("CompletenessEvaluator PiiDetectionEvaluator", _Q, _A),
        **_judged("ToxicityEvaluator", (_A, _Q)),
        **_judged("UserFrictionEvaluator", _Q),
        **_judged("ToolSelectionEvaluator ToolInvocationEvaluator", _Q, _CALLS, "tool_definitions"),
        **_judged("ToolResponseHandlingEvaluator", _Q, _A, "trace"),
        **_computed("exact_match", _A, _TRUTH),
        **_computed("MatchesRegex", _A),
    },
    "inspect": {
        **_judged("model_graded_qa model_graded_fact", _Q, _A, _TRUTH),
        **_computed("includes match pattern answer exact f1 math", _A, _TRUTH),
        **_computed("choice", _A, "choices", "letter"),
    },
    "promptfoo": {
        **_judged("factuality", _Q, _A, _TRUTH),
        **_judged("llm-rubric g-eval", _A, "guidelines"),
        **_judged("model-graded-closedqa", _Q, _A, "guidelines"),
        **_judged("answer-relevance conversation-relevance", _Q, _A),
        **_judged("context-recall", _DOCS, _TRUTH),
        **_judged("context-relevance", _Q, _DOCS),
        **_judged("context-faithfulness", _Q, _A, _DOCS),
        **_judged("trajectory:goal-success", _A, "trace"),
        **_computed("equals similar levenshtein rouge-n bleu gleu meteor", _A, _TRUTH),
        **_computed("contains-all icontains-all", _A, "expected_facts"),
        **_computed("is-refusal", _A),
        **_computed(
            "trajectory:tool-used trajectory:tool-sequence trajectory:tool-args-match",
            "trace",
            "reference_trajectory",
        ),
        **_computed("trajectory:step-count", "trace"),
        **_computed("tool-call-f1", *TOOL_CALL_NEEDS),
        **_computed("latency", "latency"),
    },
    "ragas": {
        **_judged("ContextPrecision ContextPrecisionWithReference ContextRecall", _Q, _DOCS, _TRUTH, _ONE_TURN),
        **_judged("ContextPrecisionWithoutReference ContextUtilization Faithfulness", _Q, _A, _DOCS, _ONE_TURN),
        **_judged("ContextEntityRecall", _DOCS, _TRUTH, _ONE_TURN),
        **_judged("ContextRelevance", _Q, _DOCS, _ONE_TURN),
        **_judged("NoiseSensitivity", _Q, _A, _DOCS, _TRUTH, _ONE_TURN),
        **_judged("ResponseGroundedness", _A, _DOCS, _ONE_TURN),
        **_judged("AnswerRelevancy", _Q, _A, _ONE_TURN),
        **_judged("AnswerCorrectness AnswerAccuracy", _Q, _A, _TRUTH, _ONE_TURN),
        **_judged("FactualCorrectness", _A, _TRUTH, _ONE_TURN),
        **_judged("DomainSpecificRubrics RubricsScoreWithoutReference", _Q, _A, _ONE_TURN),
        **_judged("RubricsScoreWithReference", _Q, _A, _TRUTH, _ONE_TURN),
        # of messages: the calls make a conversation of a row
        **_judged("AgentGoalAccuracy AgentGoalAccuracyWithReference", _Q, _TRUTH, _CALLS),
        **_judged("AgentGoalAccuracyWithoutReference", _Q, _A, _CALLS),
        **_computed("BleuScore CHRFScore RougeScore ExactMatch StringPresence", _A, _TRUTH, _ONE_TURN),
        **_computed("NonLLMStringSimilarity SemanticSimilarity DataCompyScore", _A, _TRUTH, _ONE_TURN),
        **_computed("QuotedSpansAlignment", _A, _DOCS, _ONE_TURN),
        **_computed("ToolCallAccuracy ToolCallF1", *TOOL_CALL_NEEDS),
        **_computed("IDBasedContextPrecision IDBasedContextRecall", "retrieved_uri", "expected_uri", _ONE_TURN),
    },
    "deepeval": {
        **_judged("AnswerRelevancyMetric BiasMetric ToxicityMetric MisuseMetric NonAdviceMetric", _Q, _A),
        **_judged("PIILeakageMetric RoleViolationMetric SummarizationMetric PromptAlignmentMetric", _Q, _A),
        **_judged("TaskCompletionMetric StepEfficiencyMetric PlanAdherenceMetric PlanQualityMetric", _Q, _A, "trace"),
        **_judged("AgentLoopDetectionMetric", _Q, _A, "trace"),
        **_judged("GEval", _Q, _A),
        **_judged("FaithfulnessMetric", _Q, _A, _DOCS),
        **_judged("HallucinationMetric", _Q, _A, "expected_uri"),
        **_judged("ContextualPrecisionMetric ContextualRecallMetric", _Q, _DOCS, _TRUTH),
        **_judged("ContextualRelevancyMetric", _Q, _DOCS),
        **_judged("ArgumentCorrectnessMetric", _Q, _CALLS),
        **_judged("ConversationCompletenessMetric KnowledgeRetentionMetric RoleAdherenceMetric", _Q, _A),
        **_judged("TurnRelevancyMetric TopicAdherenceMetric GoalAccuracyMetric ToolUseMetric", _Q, _A),
        **_judged("ConversationalGEval", _Q, _A),
        **_judged("TurnFaithfulnessMetric TurnContextualRelevancyMetric", _Q, _A, _DOCS),
        **_judged("TurnContextualPrecisionMetric TurnContextualRecallMetric", _Q, _A, _DOCS, _TRUTH),
        **_computed("ExactMatchMetric", _Q, _A, _TRUTH),
        **_computed("PatternMatchMetric JsonCorrectnessMetric", _Q, _A),
        **_computed("ToolPermissionMetric", _CALLS),
        **_computed("ToolCorrectnessMetric", _Q, *TOOL_CALL_NEEDS),
    },
    "langsmith": {
        **_judged("CORRECTNESS", _Q, _A, _TRUTH),
        **_judged("CONCISENESS ANSWER_RELEVANCE RAG_HELPFULNESS TOXICITY FAIRNESS PII_LEAKAGE", _Q, _A),
        **_judged("CODE_CORRECTNESS LAZINESS", _Q, _A),
        **_judged("HALLUCINATION", _Q, _A, _DOCS, _TRUTH),
        **_judged("RAG_GROUNDEDNESS", _A, _DOCS),
        **_judged("RAG_RETRIEVAL_RELEVANCE", _Q, _DOCS),
        **_judged("PROMPT_INJECTION CODE_INJECTION", _Q),
        **_judged("TRAJECTORY_ACCURACY TOOL_SELECTION TASK_COMPLETION", "trace"),
        **_judged("AGENT_TONE KNOWLEDGE_RETENTION LANGUAGE_DETECTION PERCEIVED_ERROR SUPPORT_INTENT", "trace"),
        **_judged("USER_SATISFACTION WINS", "trace"),
    },
    "langfuse": {
        **_judged("Hallucination Helpfulness Relevance Toxicity Conciseness", _Q, _A),
        **_judged("Correctness", _Q, _A, _TRUTH),
        **_judged("Contextrelevance", _Q, _DOCS),
        **_judged("Contextcorrectness", _Q, _DOCS, _TRUTH),
        **_judged("Answer-Correctness", _A, _TRUTH),
        **_judged("Answer-Relevance", _A),
        **_judged("Context-Precision", _Q, _A, _DOCS),
        **_judged("Context-Recall", _A, _DOCS),
        **_judged("Faithfulness", _Q, _A),
        **_judged("Goal-Accuracy", _Q, _A, _TRUTH),
    },
    "openai": {
        **_judged("score_model label_model", _A),
        **_computed("string_check text_similarity", _A, _TRUTH),
    },
    "mlflow-third-party": {
        **_judged(
            "AnswerRelevancy TaskCompletion StepEfficiency PlanAdherence PlanQuality Bias", _Q, _A, of="deepeval"
        ),
        **_judged("Toxicity NonAdvice Misuse PIILeakage RoleViolation Summarization", _Q, _A, of="deepeval"),
        **_judged("JsonCorrectness PromptAlignment", _Q, _A, of="deepeval"),
        **_judged("Faithfulness", _Q, _A, _RETRIEVER, of="deepeval"),
        **_judged("ContextualRelevancy", _Q, _RETRIEVER, of="deepeval"),
        **_judged("ContextualRecall ContextualPrecision", _Q, _RETRIEVER, _OUTPUT, of="deepeval"),
        **_judged("Hallucination", _Q, _A, _ANY_TRUTH, of="deepeval"),
        **_judged("ToolCorrectness", _Q, "tool_span", "reference_trajectory", of="deepeval"),
        **_judged("ArgumentCorrectness", _Q, "tool_span", of="deepeval"),
        **_judged("TurnRelevancy RoleAdherence KnowledgeRetention TopicAdherence", *_CONVERSATION, of="deepeval"),
        **_judged("ConversationCompleteness GoalAccuracy ToolUse", *_CONVERSATION, of="deepeval"),
        **_judged("ContextPrecision ContextRecall", _Q, _RETRIEVER, _ANY_TRUTH, of="ragas"),
        **_judged("ContextEntityRecall", _RETRIEVER, _ANY_TRUTH, of="ragas"),
        **_judged("ContextUtilization Faithfulness", _Q, _A, _RETRIEVER, of="ragas"),
        **_judged("NoiseSensitivity", _Q, _A, _RETRIEVER, _ANY_TRUTH, of="ragas"),
        **_judged("AnswerRelevancy AspectCritic RubricsScore DiscreteMetric", _Q, _A, of="ragas"),
        **_judged("AnswerAccuracy", _Q, _A, _ANY_TRUTH, of="ragas"),
        **_judged("ContextRelevance", _Q, _RETRIEVER, of="ragas"),
        **_judged("ResponseGroundedness SummarizationScore", _A, _RETRIEVER, of="ragas"),
        **_judged("FactualCorrectness", _A, _ANY_TRUTH, of="ragas"),
        **_judged("InstanceSpecificRubrics", _Q, _A, "rubrics", of="ragas"),
        **_judged("TopicAdherence", "trace", "reference_topics", of="ragas"),
        **_judged("AgentGoalAccuracyWithReference", "trace", _OUTPUT, of="ragas"),
        **_judged("AgentGoalAccuracyWithoutReference", "trace", of="ragas"),
        **_judged("Groundedness", _A, (_OUTPUT, _RETRIEVER), of="trulens"),
        **_judged("ContextRelevance", _Q, (_OUTPUT, _RETRIEVER), of="trulens"),
        **_judged("AnswerRelevance", _Q, _A, of="trulens"),
        **_judged("Coherence", _A, of="trulens"),
        **_judged("logical_consistency execution_efficiency plan_adherence plan_quality", "trace", of="trulens"),
        **_judged("tool_selection tool_calling", "trace", of="trulens"),
        **_judged("Hallucination QA", _Q, _A, (_TRUTH, _OUTPUT, _RETRIEVER), of="phoenix"),
        **_judged("Relevance", _Q, (_TRUTH, _OUTPUT, _RETRIEVER), of="phoenix"),
        **_judged("Toxicity", _Q, of="phoenix"),
        **_judged("Summarization", _Q, _A, of="phoenix"),
        **_judged("ResponseEvaluation", _A, (_TRUTH, _OUTPUT), of="google_adk"),
        **_judged("Hallucination", _Q, _A, of="google_adk"),
        **_judged("Safety", _A, of="google_adk"),
        **_computed("ExactMatch", _Q, _A, _OUTPUT, of="deepeval"),
        **_computed("PatternMatch", _Q, _A, of="deepeval"),
        **_computed("NonLLMContextPrecisionWithReference NonLLMContextRecall", _RETRIEVER, of="ragas"),
        **_computed("SemanticSimilarity NonLLMStringSimilarity BleuScore ChrfScore", _A, _ANY_TRUTH, of="ragas"),
        **_computed("RougeScore StringPresence ExactMatch", _A, _ANY_TRUTH, of="ragas"),
        **_computed("ToolCallAccuracy ToolCallF1", "trace", "reference_trajectory", of="ragas"),
        **_computed("ToxicLanguage NSFWText DetectJailbreak DetectPII SecretsPresent", (_A, _Q), of="guardrails"),
        **_computed("GibberishText", (_A, _Q), of="guardrails"),
        **_computed("ToolTrajectory", "trace", "reference_trajectory", of="google_adk"),
        **_computed("ResponseMatch", _A, (_TRUTH, _OUTPUT), of="google_adk"),
    },
}
