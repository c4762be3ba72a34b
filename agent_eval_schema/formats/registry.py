"""FORMATS: the formats of evaluation data. Each is declared in its own file; `format.py` has the mechanism.

A format knows columns and cells, not rules: reading renames and selects, it never decodes a cell.
"""

import json
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
from msgspec import structs

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.adk import ADK, ADK_LEGACY
from agent_eval_schema.formats.agent_skills import AGENT_SKILLS
from agent_eval_schema.formats.agentcore import AGENTCORE, STRANDS
from agent_eval_schema.formats.azure import AZURE
from agent_eval_schema.formats.bedrock import BEDROCK, BEDROCK_RAG
from agent_eval_schema.formats.ces.tables import CES_CSV, CES_EVALUATION
from agent_eval_schema.formats.databricks import DATABRICKS
from agent_eval_schema.formats.deepeval import DEEPEVAL
from agent_eval_schema.formats.detection import SHOWN, Detection, Signs, detect_among, naming, nearest_formats
from agent_eval_schema.formats.examples import BRAINTRUST, INSPECT, LANGFUSE, PHOENIX, PYDANTIC_EVALS
from agent_eval_schema.formats.format import Format as Format
from agent_eval_schema.formats.format import Inspected
from agent_eval_schema.formats.genai import GENAI
from agent_eval_schema.formats.langsmith import LANGSMITH
from agent_eval_schema.formats.m365_copilot import M365_COPILOT
from agent_eval_schema.formats.mlflow import MLFLOW, SEARCH_TRACES, TRACES
from agent_eval_schema.formats.names import FORMAT_NAMES, TARGETS
from agent_eval_schema.formats.names import FormatName as FormatName
from agent_eval_schema.formats.names import InputFormat as InputFormat
from agent_eval_schema.formats.openai import OPENAI
from agent_eval_schema.formats.otel_traces import OTEL
from agent_eval_schema.formats.promptfoo import PROMPTFOO
from agent_eval_schema.formats.ragas import RAGAS
from agent_eval_schema.formats.suggestions import are_messages, naming_columns, reason_for
from agent_eval_schema.formats.vertex import VERTEX
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import UNKNOWN_FORMAT
from agent_eval_schema.runtime.extensions import Extension, extensions
from agent_eval_schema.schema import COLUMNS, are_canonical
from agent_eval_schema.text.choices import no_choice
from agent_eval_schema.text.describe import names as listed

FORMATS: tuple[Format, ...] = (
    *(CES_CSV, CES_EVALUATION, TRACES, OTEL, SEARCH_TRACES, ADK, ADK_LEGACY, LANGSMITH, RAGAS, DEEPEVAL, OPENAI),
    *(PYDANTIC_EVALS, AGENT_SKILLS, VERTEX, GENAI, AZURE, BEDROCK, BEDROCK_RAG, PROMPTFOO, AGENTCORE, STRANDS),
    M365_COPILOT,
    *(LANGFUSE, BRAINTRUST, PHOENIX, INSPECT, MLFLOW, DATABRICKS),
)
"""Every format. Of several that claim a table alike, the first one has it, and of those that are near it, the last."""


def formats_of_packages() -> dict[str, Extension[Format]]:
    """The formats that other packages declare (entry point `agent_eval_schema.formats`), by name."""
    return extensions("formats", Format, frozenset(FORMAT_NAMES))


def all_formats() -> tuple[Format, ...]:
    """Every format of this package and of others; those of others last, so that a claim alike is ours."""
    return (*FORMATS, *(extension.value for extension in formats_of_packages().values()))


@lru_cache(maxsize=1)
def _signs() -> dict[str, Signs]:
    return {form.name: form.signs for form in all_formats()}


NORMALIZED = structs.replace(
    DATABRICKS,
    summary="rows that were normalized before, of any format",
    **{
        need: tuple(name for name in COLUMNS if any(name in getattr(form, need) for form in FORMATS))
        for need in ("instead_of_request", "instead_of_response", "outputs")
    },
)
"""What rows are that were normalized before: those that were valid in their own format stay valid."""


def _inspect_unknown(batch: pa.RecordBatch, unread: Container[int]) -> Inspected:
    names = column_names(batch.schema)
    lacks = ", ".join(f"{format} ({lacks})" for format, lacks in nearest_formats(_signs(), names))
    message = f"expected the columns of a format, got {listed(names[:SHOWN])}; nearest: {lacks}"
    hint = hint_for_unknown(batch, {}, {})
    for row in range(batch.num_rows):
        if row not in unread:
            yield row, None, [Finding(UNKNOWN_FORMAT, message, None, hint=hint)]


def hint_for_unknown(
    batch: pa.RecordBatch, suggested: Mapping[str, str], unread: Mapping[str, str], then: str = ""
) -> str:
    """What to do with a table of no format: its columns may look like ours, which has consequences (`then`); those
    that are left may have more."""
    names = column_names(batch.schema)
    format = naming(nearest_formats(_signs(), names)[0][0])
    if suggested:
        rest = "; ".join(f"`{name}` ({what})" for name, what in unread.items())
        also = f" Not used: {rest}." if rest else ""
        like = ", ".join(f"`{path}` like `{name}` by {reason_for(path, name)}" for path, name in suggested.items())
        named = f"the columns as they look ({naming_columns(suggested)}): {like}"
        return f"Name the format ({format}), or {named}.{then}{also}"
    lists = [row.get(names[0]) for row in native_rows(batch)] if len(names) == 1 else []
    if lists and all(isinstance(value, list) and not are_messages(value) for value in lists):
        return f"Pass the list of rows itself: `data[{json.dumps(names[0], ensure_ascii=False)}]`."
    return f"Name the format ({format}), or the column with the question (`--columns PATH=request`)."


UNKNOWN = Format(
    name="unknown",
    title="unknown",
    summary="a table whose columns are of no format",
    system="databricks",
    page="",
    signs=Signs(((),)),
    instead_of_response=(),
    inspect=_inspect_unknown,
    writer=None,
)
"""The format of a table that no format claims: only that is reported of its rows."""


def column_at(place: str, origins: Mapping[str, str]) -> str | None:
    """The canonical column for a path (or column) of the user's table; the first where several come from one place."""
    at = {origins.get(c, c): c for c in reversed(COLUMNS)}
    paths = [p for p in at if place == p or place.startswith((f"{p}.", f"{p}["))]
    return at[max(paths, key=len)] if paths else None


_BY_NAME = {form.name: form for form in (*FORMATS, UNKNOWN)}


def find_format(name: str) -> Format:
    """The format of that name. Raises EvalSetError if there is none."""
    found = _BY_NAME.get(name) if isinstance(name, str) else None
    if found is None:
        others = formats_of_packages()
        if not isinstance(name, str) or name not in others:
            raise no_choice("format", name, [*FORMAT_NAMES, *others, "auto"])
        found = others[name].value
    return found


def targets() -> list[str]:
    """The formats that conversions write."""
    return [*TARGETS, *(name for name, entry in formats_of_packages().items() if entry.value.writer is not None)]


def require_rows(name: str) -> None:
    """Raise EvalSetError if the rows of a format are evaluations of CES, whose turns are the evaluation rows."""
    spec = find_format(name)
    if spec.system == "ces":
        raise EvalSetError(
            f"expected evaluation rows, got {spec.summary}: the rows of their turns are "
            'convert_eval_set(data, "databricks").data'
        )


def detect(names: Sequence[str], metadata: Mapping[bytes, bytes] | None = None) -> Detection:
    """The format of a table with these columns, and this metadata of its schema, and the reason in words. A table
    without any column is canonical, and so are rows that were normalized before, whatever their other columns are."""
    if are_canonical(names, metadata):
        return Detection("databricks", "the canonical columns of rows that were normalized before")
    return _detected(tuple(names)) if names else Detection("databricks", "the data has no columns")


@lru_cache(maxsize=64)
def _detected(names: tuple[str, ...]) -> Detection:
    """The tables of one run mostly have the same columns; comparing them takes as long as checking twenty rows."""
    return detect_among(_signs(), names)
