"""CATALOG: what each format is, the columns that are sure signs of it, and whether it is written.

How a format is read and written is in its own module, and in the registry; both need Arrow, which a list does not.
"""

from __future__ import annotations

from msgspec import Struct

Columns = tuple[str, ...]


class About(Struct, frozen=True):
    """What a format is. A table has it if it has all columns of a group of `sure`.

    `needs` are the columns that a file of the format must have where its rows are made from it (formats/nested.py);
    `system` is the one whose metrics its users ask about first.
    """

    name: str
    summary: str
    sure: tuple[Columns, ...]
    system: str
    needs: Columns = ()
    written: bool = True

    @property
    def signs(self) -> tuple[Columns, ...]:
        """The groups of columns by which a file of the format is known: any of them suffices."""
        return (self.needs,) if self.needs else self.sure


def _each(column: str, *others: str) -> tuple[Columns, ...]:
    """The column with each of the others."""
    return tuple((column, other) for other in others)


# ---------------------------------------------------------------------------------------------------------------------
# Customer Engagement Suite
CES_CSV = About(
    "ces-csv",
    "a golden CSV of Google CES: evaluations and their conversations",
    (("display_name", "turn_index", "action_type"),),
    "ces",
)
CES_EVALUATION = About(
    "ces-evaluation",
    "Evaluation JSON of Google CES: golden or scenario",
    (("golden",), ("scenario",), ("goldenResult",), ("scenarioResult",), ("golden_result",), ("scenario_result",)),
    "ces",
)

# ---------------------------------------------------------------------------------------------------------------------
# traces
TRACES = About(
    "traces", "one MLflow trace a row (info, data)", (("info", "data"), ("spans",)), "databricks", written=False
)
OTEL = About(
    "otel",
    "traces of OpenTelemetry, one per row: resourceSpans",
    (("resourceSpans",),),
    "databricks",
    written=False,
)
SEARCH_TRACES = About(
    "search_traces",
    "a DataFrame of mlflow.search_traces()",
    _each("trace", "trace_id", "request_id"),
    "databricks",
    written=False,
)

# ---------------------------------------------------------------------------------------------------------------------
# libraries and platforms
ADK = About(
    "adk",
    "turns of an evalset of Google's Agent Development Kit",
    (("turn", "history", "user_content"),),
    "vertex",
    needs=("eval_cases",),
)
ADK_LEGACY = About(
    "adk-legacy",
    "turns of an older test list of the ADK",
    (("turn", "history", "query"),),
    "vertex",
    needs=("query", "expected_tool_use"),
)
LANGSMITH = About(
    "langsmith",
    "examples of LangSmith: inputs, outputs (the reference), metadata",
    _each(
        *("inputs", "dataset_id", "source_run_id", "example_id"),
        *("metadata", "modified_at", "reference_outputs", "attachments"),
    ),
    "mlflow",
)
RAGAS = About(
    "ragas",
    "samples of Ragas: user_input, response, reference, retrieved_contexts",
    (("user_input",), *_each("question", "contexts", "ground_truth", "ground_truths")),
    "mlflow",
)
DEEPEVAL = About(
    "deepeval",
    "goldens and test cases of DeepEval: input, actual_output, expected_output; scenario, turns",
    (
        *_each(
            *("input", "actual_output", "expected_output", "expected_tools", "tools_called", "retrieval_context"),
            *("additional_metadata", "source_file"),
            *("actualOutput", "expectedOutput", "expectedTools", "toolsCalled", "retrievalContext"),
            *("additionalMetadata", "sourceFile"),
        ),
        *_each("scenario", "turns", "expected_outcome", "expectedOutcome"),
        *_each("turns", "expected_outcome", "expectedOutcome"),
        *_each("scenario", "user_description", "userDescription", "persona", "chatbot_role"),
        *_each("turns", "chatbot_role", "chatbotRole"),
    ),
    "mlflow",
)
OPENAI = About(
    "openai",
    "OpenAI evals: item and sample, or input and ideal",
    (("item",), ("input", "ideal")),
    "mlflow",
)
VERTEX = About(
    "vertex",
    "trajectory datasets of Vertex AI: prompt, reference_trajectory",
    (("prompt",), ("latency_in_seconds",), ("predicted_trajectory",), ("reference_trajectory",)),
    "vertex",
)
GENAI = About(
    "vertex-genai",
    "rows and cases for the Gen AI evaluation service of Vertex AI: prompt, history, response, intermediate_events",
    (
        *_each("prompt", "conversation_history", "history", "instruction", "system_instruction", "context"),
        *_each("prompt", "intermediate_events", "rubric_groups", "responses", "eval_case_id", "agent_data"),
        ("response", "intermediate_events"),
        ("starting_prompt", "conversation_plan"),
    ),
    "vertex-genai",
)
AZURE = About(
    "azure",
    "rows for the evaluators of Azure AI Foundry: query, response, context, ground_truth",
    (
        *_each("query", "response", "ground_truth", "context", "tool_calls", "tool_definitions"),
        *_each("query", "retrieval_ground_truth", "retrieved_documents"),
        ("retrieval_ground_truth", "retrieved_documents"),
        ("response", "ground_truth"),
    ),
    "azure",
)
BEDROCK = About(
    "bedrock",
    "prompts for model evaluation of Amazon Bedrock: prompt, referenceResponse, modelResponses",
    (*_each("prompt", "referenceResponse", "modelResponses"), ("inputRecord",)),
    "bedrock",
)
BEDROCK_RAG = About(
    "bedrock-rag",
    "conversations for RAG evaluation of Amazon Bedrock: conversationTurns",
    (("turn", "turns", "prompt"), ("turn", "turns", "referenceResponses")),
    "bedrock-rag",
    needs=("conversationTurns",),
)
AGENTCORE = About(
    "agentcore",
    "scenarios of an AgentCore dataset: turns, assertions and the names of the expected tools",
    (("scenario_id", "input"), ("turn", "turns", "input")),
    "agentcore",
    needs=("scenarios",),
)
STRANDS = About(
    "strands",
    "cases of Strands Evals: input, expected_output, expected_trajectory",
    _each("input", "expected_trajectory", "expected_interactions", "expected_assertion"),
    "strands",
)
LANGFUSE = About(
    "langfuse",
    "items of a Langfuse dataset: input, expectedOutput, metadata",
    (
        *_each("input", "datasetId", "datasetName", "sourceTraceId", "sourceObservationId"),
        ("input", "expectedOutput", "status"),
    ),
    "mlflow",
)
BRAINTRUST = About(
    "braintrust",
    "rows of a Braintrust dataset: input, expected, metadata, tags",
    (*_each("input", "_xact_id", "_pagination_key", "root_span_id"), ("input", "expected", "metadata")),
    "braintrust",
)
PHOENIX = About(
    "phoenix",
    "examples of a Phoenix dataset: input, output (the reference), metadata",
    tuple(("input", "output", name) for name in ("node_id", "splits", "example_id", "metadata")),
    "phoenix",
)
INSPECT = About(
    "inspect",
    "samples of Inspect AI: input, target, choices, metadata",
    (("input", "target"),),
    "inspect",
)
PROMPTFOO = About(
    "promptfoo",
    "tests of promptfoo: vars and assertions",
    _each("vars", "assert", "metadata", "options", "threshold"),
    "promptfoo",
)

# ---------------------------------------------------------------------------------------------------------------------
# rows of MLflow and Databricks
MLFLOW = About(
    "mlflow",
    "what mlflow.genai.evaluate takes: inputs, outputs, expectations",
    (("inputs",), ("outputs",), ("expectations",)),
    "mlflow",
)
DATABRICKS = About(
    "databricks",
    "the Databricks Agent Evaluation schema, which is also the canonical one",
    (("request",),),
    "databricks",
)

CATALOG = (
    *(CES_CSV, CES_EVALUATION, TRACES, OTEL, SEARCH_TRACES, ADK, ADK_LEGACY, LANGSMITH, RAGAS, DEEPEVAL, OPENAI),
    *(VERTEX, GENAI, AZURE, BEDROCK, BEDROCK_RAG, AGENTCORE, STRANDS, LANGFUSE, BRAINTRUST, PHOENIX, INSPECT),
    *(PROMPTFOO, MLFLOW, DATABRICKS),
)
"""Every format. Of several that claim a table alike, the first one has it."""
