"""The names of the formats, for type checkers and for the help of commands, which imports no format.

Generated from the registry: `UPDATE_GOLDEN=1 python -m pytest tests/generated`.
"""

from typing import Literal, get_args

FormatName = Literal[
    "adk", "adk-legacy", "agent-skills", "agentcore", "azure", "bedrock", "bedrock-rag", "braintrust", "ces-csv",
    "ces-evaluation", "databricks", "deepeval", "inspect", "langfuse", "langsmith", "m365-copilot", "mlflow", "openai",
    "otel", "phoenix", "promptfoo", "pydantic-evals", "ragas", "search_traces", "strands", "traces", "vertex",
    "vertex-genai",
]  # fmt: skip
"""The type of a format's name: the values of `format`, besides `"auto"`."""

TargetFormat = Literal[
    "adk", "adk-legacy", "agent-skills", "agentcore", "azure", "bedrock", "bedrock-rag", "braintrust", "ces-csv",
    "ces-evaluation", "databricks", "deepeval", "inspect", "langfuse", "langsmith", "m365-copilot", "mlflow", "openai",
    "phoenix", "promptfoo", "pydantic-evals", "ragas", "strands", "vertex", "vertex-genai",
]  # fmt: skip
"""The type of the name of a format that is written."""

InputFormat = FormatName | Literal["auto"]
"""What `format=` takes."""

FORMAT_NAMES: tuple[str, ...] = get_args(FormatName)
TARGETS: tuple[str, ...] = get_args(TargetFormat)
