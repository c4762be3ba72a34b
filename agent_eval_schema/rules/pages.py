"""The pages of the vendors that document the behavior behind the rules, and how a rule of a page is written."""

from functools import partialmethod
from typing import Any, Final

from agent_eval_schema.rule import Rule, Severity

Rows = tuple[dict[str, Any], ...]

ADK_EVALUATE: Final = "https://google.github.io/adk-docs/evaluate/"
AGENT_FEEDBACK: Final = "https://docs.databricks.com/gcp/en/generative-ai/agent-framework/request-assessment-logs"
CES_EVALUATION: Final = (
    "https://docs.cloud.google.com/customer-engagement-ai/conversational-agents/ps/reference/rest/v1beta/"
    "projects.locations.apps.evaluations"
)
CORRECTNESS: Final = "https://docs.databricks.com/aws/mlflow3/genai/eval-monitor/concepts/judges/is_correct"
EVALUATION_SCHEMA: Final = "https://docs.databricks.com/aws/en/generative-ai/agent-evaluation/evaluation-schema"
GOLDEN_CSV: Final = (
    "https://docs.cloud.google.com/customer-engagement-ai/conversational-agents/ps/evaluation-batch-upload"
)
INFERENCE_TABLES: Final = "https://docs.databricks.com/aws/en/ai-gateway/inference-tables"
JSON: Final = "https://www.rfc-editor.org/rfc/rfc8259"
LANGFUSE_DATASETS: Final = "https://langfuse.com/docs/evaluation/experiments/datasets"
MLFLOW_EVALUATE: Final = "https://mlflow.org/docs/latest/genai/eval-monitor/running-evaluation/eval-examples"
MLFLOW_RETRIEVER: Final = "https://mlflow.org/docs/latest/genai/data-model/traces/#retriever-spans"
MLFLOW_SIMULATOR: Final = "https://mlflow.org/docs/latest/genai/eval-monitor/running-evaluation/conversation-simulation"
MLFLOW_TAGS: Final = "https://mlflow.org/docs/latest/genai/tracing/attach-tags"
MLFLOW_TRACES: Final = "https://mlflow.org/docs/latest/genai/data-model/traces/"
OPENAI_CHAT: Final = "https://platform.openai.com/docs/api-reference/chat/create"
OPENAI_EVALS: Final = "https://platform.openai.com/docs/guides/evals"
OPENAI_RESPONSES: Final = "https://platform.openai.com/docs/api-reference/responses/create"
OTEL_GENAI: Final = "https://opentelemetry.io/docs/specs/semconv/gen-ai/"
PANDAS_CSV: Final = "https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html"
AZURE_EVALUATE: Final = "https://learn.microsoft.com/azure/ai-foundry/how-to/develop/evaluate-sdk"
RAGAS_DATASET: Final = "https://docs.ragas.io/en/stable/concepts/components/eval_dataset/"
VERTEX_AGENTS: Final = "https://cloud.google.com/vertex-ai/generative-ai/docs/models/evaluation-agents"


class Page:
    """A page, and what its rules share; the head of a rule is written as it is printed: `AE206 message-role`."""

    def __init__(self, url: str = "", good: Rows = (), no_example: str = "") -> None:
        self.url, self.good, self.no_example = url, good, no_example

    def _rule(
        self,
        severity: Severity,
        head: str,
        summary: str,
        *,
        why: str,
        hint: str,
        url: str = "",
        bad: Rows = (),
        good: Rows = (),
        no_example: str = "",
    ) -> Rule:
        code, name = head.split()
        url, good, no_example = url or self.url, good or self.good, no_example or self.no_example
        return Rule(code, name, severity, summary, why, hint, url, bad, good, no_example)

    error = partialmethod(_rule, Severity.ERROR)
    warning = partialmethod(_rule, Severity.WARNING)
    info = partialmethod(_rule, Severity.INFO)


NO_PAGE = Page()
