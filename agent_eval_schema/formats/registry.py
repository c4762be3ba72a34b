"""FORMATS: how a table of each form is recognised by its columns, how its columns become ours, and how it is written.

A format knows columns and cells, not rules. `read` renames and selects; it never decodes a cell.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.decoding.columns import Typed
from agent_eval_schema.formats.adk import ADK, ADK_LEGACY_WRITER, ADK_OWN, ADK_WRITER, detect_adk, detect_legacy
from agent_eval_schema.formats.ces.tables import (
    detect_evaluations,
    detect_golden,
    inspect_evaluations,
    prepare_evaluations,
    prepare_golden,
    read_evaluation_batch,
)
from agent_eval_schema.formats.ces.writer import EVALUATION_WRITER, GOLDEN_WRITER
from agent_eval_schema.formats.deepeval import DEEPEVAL, detect_deepeval
from agent_eval_schema.formats.langsmith import LANGSMITH, LANGSMITH_OWN, detect_langsmith
from agent_eval_schema.formats.layout import Layout
from agent_eval_schema.formats.mlflow import MLFLOW_ROW, ORIGINS, WORDS, write_mlflow
from agent_eval_schema.formats.mlflow_traces import (
    SEARCH_TRACES_COLUMNS,
    detect_beside_traces,
    detect_search_traces,
    detect_traces,
    read_beside_traces,
    read_search_traces,
    read_trace_rows,
)
from agent_eval_schema.formats.openai import OPENAI, detect_openai
from agent_eval_schema.formats.ragas import RAGAS, detect_ragas
from agent_eval_schema.formats.vertex import VERTEX, detect_vertex
from agent_eval_schema.formats.writer import CanonicalRow, Writer
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Finding
from agent_eval_schema.schema import COLUMNS

Inspect = Callable[[pa.RecordBatch, Container[int]], Iterator[tuple[int, str | None, list[Finding]]]]
"""A batch, without the rows that are no rows → of each other row its place, its name, and what is wrong with it."""


def _as_it_is(source: Source) -> Source:
    return source


class Format(Struct, frozen=True):
    """A form of evaluation data. `detect` gives the reason why the columns are of this form, or None.

    `own_columns` are the columns that belong to the form beside ours: they are carried along without a word.
    `origins` names the places of our columns in a table of the form, where they have other names there; `words` reads
    the columns in whose cells the keys have (`decode_column`). `system` is the one whose metrics its users ask about
    first.

    A form whose rows are no evaluation rows (`is_rows`) has no metrics, and looks itself for what is wrong with them
    (`inspect`) and for columns that it does not know (`knows_columns`). `prepare` makes the source whose batches are
    checked. `writer` is None if nothing is converted into the form.
    """

    name: str
    summary: str
    detect: Callable[[Sequence[str]], str | None]
    read: Callable[[pa.RecordBatch], pa.RecordBatch]
    own_columns: frozenset[str] = frozenset()
    origins: dict[str, str] = {}
    words: Mapping[str, Callable[[Any, str], Typed]] = {}
    system: str = "databricks"
    is_rows: bool = True
    knows_columns: bool = False
    inspect: Inspect | None = None
    prepare: Callable[[Source], Source] = _as_it_is
    writer: Writer | None = None


def _detect_databricks(names: Sequence[str]) -> str | None:
    known = [n for n in names if n in COLUMNS]
    return f"the columns {', '.join(known[:4])}" if known else None


def _canonical(row: CanonicalRow) -> dict[str, Any]:
    return {name: row[name] for name in COLUMNS if row[name] is not None}


def _of(
    layout: Layout,
    name: str,
    summary: str,
    detect: Callable[[Sequence[str]], str | None],
    system: str,
    own: frozenset[str] = frozenset(),
    words: Mapping[str, Callable[[Any, str], Typed]] | None = None,
    writer: Writer | None = None,
) -> Format:
    return Format(
        name,
        summary,
        detect,
        layout.read,
        layout.columns | own,
        layout.origins,
        words or {},
        system,
        writer=writer or Writer(layout.write, layout.written),
    )


FORMATS: tuple[Format, ...] = (
    Format(
        "ces-csv",
        "a golden CSV of Google CES: evaluations and their conversations",
        detect_golden,
        lambda batch: batch,
        system="ces",
        is_rows=False,
        knows_columns=True,
        prepare=prepare_golden,
        writer=GOLDEN_WRITER,
    ),
    Format(
        "ces-evaluation",
        "Evaluation JSON of Google CES: golden or scenario",
        detect_evaluations,
        read_evaluation_batch,
        system="ces",
        is_rows=False,
        knows_columns=True,
        inspect=inspect_evaluations,
        prepare=prepare_evaluations,
        writer=EVALUATION_WRITER,
    ),
    Format("traces", "one MLflow trace a row (info, data)", detect_traces, read_trace_rows),
    Format(
        "search_traces",
        "a frame of mlflow.search_traces()",
        detect_search_traces,
        read_search_traces,
        SEARCH_TRACES_COLUMNS,
    ),
    _of(
        ADK,
        "adk",
        "turns of an evalset of Google's Agent Development Kit",
        detect_adk,
        "vertex",
        ADK_OWN,
        writer=ADK_WRITER,
    ),
    _of(
        ADK,
        "adk-legacy",
        "turns of an older test list of the ADK",
        detect_legacy,
        "vertex",
        writer=ADK_LEGACY_WRITER,
    ),
    _of(
        LANGSMITH,
        "langsmith",
        "examples of LangSmith: inputs, outputs (the reference), metadata",
        detect_langsmith,
        "mlflow",
        LANGSMITH_OWN,
        WORDS,
    ),
    _of(
        RAGAS, "ragas", "samples of Ragas: user_input, response, reference, retrieved_contexts", detect_ragas, "mlflow"
    ),
    _of(
        DEEPEVAL, "deepeval", "test cases of DeepEval: input, actual_output, expected_output", detect_deepeval, "mlflow"
    ),
    _of(OPENAI, "openai", "OpenAI evals: item and sample, or input and ideal", detect_openai, "mlflow"),
    _of(VERTEX, "vertex", "trajectory data sets of Vertex AI: prompt, reference_trajectory", detect_vertex, "vertex"),
    Format(
        "mlflow",
        "what mlflow.genai.evaluate takes: inputs, outputs, expectations",
        detect_beside_traces,
        read_beside_traces,
        origins=ORIGINS,
        words=WORDS,
        system="mlflow",
        writer=Writer(write_mlflow, MLFLOW_ROW),
    ),
    Format(
        "databricks",
        "the Databricks Agent Evaluation schema, which is ours too",
        _detect_databricks,
        lambda batch: batch,
        writer=Writer(_canonical, COLUMNS),
    ),
)
"""In the order in which they are tried."""


def column_at(place: str, origins: Mapping[str, str]) -> str | None:
    """The canonical column of which an issue with this path (or column) in the user's table speaks; where several stand
    in one place, the first of them."""
    at = {origins.get(c, c): c for c in reversed(COLUMNS)}
    found = [p for p in at if place == p or place.startswith((f"{p}.", f"{p}["))]
    return at[max(found, key=len)] if found else None


def find_format(name: str) -> Format:
    """The format of that name. Raises EvalSetError if there is none."""
    for format in FORMATS:
        if format.name == name:
            return format
    raise EvalSetError(f"no format {name!r}: use one of {', '.join(f.name for f in FORMATS)}, auto")


def require_rows(name: str) -> None:
    """Raise EvalSetError if the rows of a format are no evaluation rows."""
    spec = find_format(name)
    if not spec.is_rows:
        raise EvalSetError(
            f"expected evaluation rows, got {spec.summary}: the rows of their turns are "
            'convert_eval_set(data, target="databricks").data'
        )


def detect(names: Sequence[str]) -> tuple[Format, str]:
    """The format of a table with these columns, and the reason in words."""
    for format in FORMATS:
        reason = format.detect(names)
        if reason is not None:
            return format, reason
    return find_format("databricks"), "no column of another format was found"
