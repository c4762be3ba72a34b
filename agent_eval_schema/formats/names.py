"""The names of the formats, for type checkers and for the help of commands, which imports no format; and what each is,
with an example, for a command that loads no reader, no writer and no Arrow.

Generated from the registry: `UPDATE_GOLDEN=1 python -m pytest tests/generated`. The example of a format is what its
writer makes of one canonical row.
"""

from importlib.resources import files
from typing import Any, Literal, get_args

import msgspec

FormatName = Literal[
    "adk", "adk-legacy", "agent-skills", "agentcore", "azure", "bedrock", "bedrock-rag", "braintrust", "ces-csv",
    "ces-evaluation", "databricks", "deepeval", "inspect", "langfuse", "langsmith", "mlflow", "openai", "otel",
    "phoenix", "promptfoo", "pydantic-evals", "ragas", "search_traces", "strands", "traces", "vertex", "vertex-genai",
]  # fmt: skip
"""The type of a format's name: the values of `format`, besides `"auto"`."""

TargetFormat = Literal[
    "adk", "adk-legacy", "agent-skills", "agentcore", "azure", "bedrock", "bedrock-rag", "braintrust", "ces-csv",
    "ces-evaluation", "databricks", "deepeval", "inspect", "langfuse", "langsmith", "mlflow", "openai", "phoenix",
    "promptfoo", "pydantic-evals", "ragas", "strands", "vertex", "vertex-genai",
]  # fmt: skip
"""The type of the name of a format that is written."""

InputFormat = FormatName | Literal["auto"]
"""What `format=` takes."""

FORMAT_NAMES: tuple[str, ...] = get_args(FormatName)
TARGETS: tuple[str, ...] = get_args(TargetFormat)


class FormatOverview(msgspec.Struct, frozen=True):
    """A format: whether it is written, the groups of columns that are sure signs of it (any group suffices), the system
    whose metrics its users ask about first, and an example: a row, a document, or the text of a file."""

    name: str
    summary: str
    written: bool
    signs: tuple[tuple[str, ...], ...]
    system: str
    example: Any


def overview() -> list[FormatOverview]:
    """Every format, by name."""
    return msgspec.json.decode(files(__package__).joinpath("overview.json").read_bytes(), type=list[FormatOverview])


def overview_of(name: str) -> FormatOverview:
    """One format. Raises EvalSetError if there is none of that name."""
    from agent_eval_schema.text.choices import require_choice

    known = {entry.name: entry for entry in overview()}
    require_choice("format", name, known)
    return known[name]
