"""FORMATS: how a table of each format is recognized by its columns, how its columns become ours, and how it is written.

A format knows columns and cells, not rules. `read` renames and selects; it never decodes a cell.
"""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct, structs

from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.decoding.columns import Typed
from agent_eval_schema.formats import catalog
from agent_eval_schema.formats.adk import ADK, ADK_LEGACY, ADK_LEGACY_WRITER, ADK_WRITER
from agent_eval_schema.formats.agentcore import AGENTCORE, AGENTCORE_TURNS, STRANDS, STRANDS_WRITER
from agent_eval_schema.formats.azure import AZURE
from agent_eval_schema.formats.bedrock import BEDROCK
from agent_eval_schema.formats.bedrock_rag import BEDROCK_RAG, BEDROCK_TURNS
from agent_eval_schema.formats.catalog import About
from agent_eval_schema.formats.ces.tables import (
    EVALUATION_SIGNS,
    GOLDEN_SIGNS,
    inspect_evaluations,
    prepare_golden,
    read_evaluation_batch,
)
from agent_eval_schema.formats.ces.writer import EVALUATION_WRITER, GOLDEN_WRITER
from agent_eval_schema.formats.databricks import write_databricks
from agent_eval_schema.formats.deepeval import DEEPEVAL, as_csv_cells, kind_of_golden
from agent_eval_schema.formats.detection import SHOWN, Detection, Signs, detect_among, naming, nearest_formats
from agent_eval_schema.formats.examples import BRAINTRUST, INSPECT, LANGFUSE, PHOENIX
from agent_eval_schema.formats.genai import GENAI
from agent_eval_schema.formats.inference_tables import TABLE_FAMILIES
from agent_eval_schema.formats.langsmith import LANGSMITH
from agent_eval_schema.formats.layout import Layout, same
from agent_eval_schema.formats.mlflow import MLFLOW_OWN, MLFLOW_ROW, ORIGINS, WORDS, write_mlflow
from agent_eval_schema.formats.mlflow_form import remarks
from agent_eval_schema.formats.mlflow_traces import (
    MLFLOW_SIGNS,
    SEARCH_TRACES_COLUMNS,
    SEARCH_TRACES_SIGNS,
    TRACES_SIGNS,
    read_beside_traces,
    read_search_traces,
    read_trace_rows,
)
from agent_eval_schema.formats.openai import OPENAI
from agent_eval_schema.formats.otel_traces import OTEL_SIGNS, read_otel_rows, remarks_on_content
from agent_eval_schema.formats.promptfoo import PROMPTFOO
from agent_eval_schema.formats.ragas import RAGAS, kind_of_sample
from agent_eval_schema.formats.suggestions import naming_columns
from agent_eval_schema.formats.table import Table
from agent_eval_schema.formats.vertex import VERTEX
from agent_eval_schema.formats.writer import Writer
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Finding
from agent_eval_schema.rules.columns import UNKNOWN_FORMAT
from agent_eval_schema.schema import COLUMNS, are_canonical
from agent_eval_schema.text.choices import no_choice
from agent_eval_schema.text.describe import names as listed

Inspect = Callable[[pa.RecordBatch, Container[int]], Iterator[tuple[int, str | None, list[Finding]]]]
"""A batch, without the records that are not rows → for each row its place, its name and its issues."""


FormatName = Literal[
    "ces-csv", "ces-evaluation", "traces", "search_traces", "adk", "adk-legacy", "langsmith", "ragas", "deepeval",
    "openai", "vertex", "vertex-genai", "azure", "bedrock", "bedrock-rag", "agentcore", "strands", "langfuse",
    "braintrust", "phoenix", "inspect", "promptfoo", "otel", "mlflow", "databricks",
]  # fmt: skip
"""The type of a format's name: the values of `format`, besides `"auto"`."""

InputFormat = FormatName | Literal["auto"]
"""What `format=` takes."""


class Format(Struct, frozen=True):
    """A format of evaluation data. `about` is its description; `signs` are the columns by which it is known.

    `own_columns` are the columns of the format in addition to ours: they are passed through and not reported, except
    those that it `reads`, which become ours. `origins` names, for a table with these columns, the places of ours in it,
    where they have other names there; `words` reads the columns in whose cells the keys have (`decode_column`).
    A row may lack its request if it has one of `instead_of_request`, and its response if it has one of
    `instead_of_response`. `outputs` are the columns that an agent produces; `given` are such columns that are inputs
    here. `expects_no_call` means that an empty list of expected calls means that no tool is to be called.

    A format whose rows are not evaluation rows (`is_rows`) has no metrics, and inspects them itself (`inspect`),
    including unknown columns (`knows_columns`). `prepare` makes the source whose batches are checked; `remarks` are
    what its first rows show of the data as a whole. `writer` is None if the format is not a target of conversions.
    """

    about: About
    signs: Signs
    read: Callable[[pa.RecordBatch], pa.RecordBatch]
    own_columns: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    origins: Callable[[Collection[str]], dict[str, str]] = lambda _: {}
    words: Mapping[str, Callable[[Any, str], Typed]] = {}
    instead_of_request: tuple[str, ...] = ()
    instead_of_response: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("response", "trace")
    given: tuple[str, ...] = ()
    expects_no_call: bool = False
    is_rows: bool = True
    knows_columns: bool = False
    inspect: Inspect | None = None
    prepare: Callable[[Source], Source] = same
    remarks: Callable[[Sequence[pa.RecordBatch]], list[Finding]] | None = None
    writer: Writer | None = None

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def summary(self) -> str:
        return self.about.summary

    @property
    def system(self) -> str:
        """The system whose metrics its users ask about first."""
        return self.about.system


_LOGS = (group for f in TABLE_FAMILIES if f.name != "search_traces" for group in product(*f.signs))
_DATABRICKS_SIGNS = Signs(
    catalog.DATABRICKS.sure,
    likely=(
        *((name,) for name in ("trace", "expected_response", "expected_facts", "guidelines", "custom_expected")),
        *((name,) for name in ("retrieved_context", "expected_retrieved_context")),
        *_LOGS,  # which validation recognizes by their columns, and reports
    ),
    columns=frozenset(COLUMNS),
    complete=True,
    spelt=True,
)


def _of(layout: Layout, **more: Any) -> Format:
    """The format of a layout, with its own columns in addition to those that are read."""
    read = layout.columns
    given = {"own_columns": read | layout.own, "writer": Writer(layout.write, layout.written), **more}
    return Format(layout.about, layout.signs, layout.read, reads=read, origins=layout.origins, **given)


def _of_table(table: Table) -> Format:
    layout = table.layout
    kept = tuple(map(table.kept, table.columns))
    return _of(
        layout,
        own_columns=layout.columns | table.own_columns,
        instead_of_request=table.instead_of_request,
        instead_of_response=table.instead_of_response,
        outputs=table.outputs,
        given=table.given,
        writer=_DOCUMENTS.get(table.name)
        or Writer(
            layout.write,
            (*layout.written, *table.marks),
            cells=table.cells,
            texts=table.texts,
            replaces=kept,
            marks=table.marks,
        ),
    )


TABLES = (GENAI, AZURE, BEDROCK, BEDROCK_RAG, AGENTCORE, STRANDS, LANGFUSE, BRAINTRUST, PHOENIX, INSPECT, PROMPTFOO)
"""The formats that are a table each."""

_DOCUMENTS = {
    BEDROCK_RAG.name: BEDROCK_TURNS.writer(),
    AGENTCORE.name: AGENTCORE_TURNS.writer(),
    STRANDS.name: STRANDS_WRITER,
}
"""Those whose rows are written at once."""

FORMATS: tuple[Format, ...] = (
    Format(
        catalog.CES_CSV,
        GOLDEN_SIGNS,
        same,
        is_rows=False,
        knows_columns=True,
        prepare=prepare_golden,
        writer=GOLDEN_WRITER,
    ),
    Format(
        catalog.CES_EVALUATION,
        EVALUATION_SIGNS,
        read_evaluation_batch,
        is_rows=False,
        knows_columns=True,
        inspect=inspect_evaluations,
        writer=EVALUATION_WRITER,
    ),
    Format(catalog.TRACES, TRACES_SIGNS, read_trace_rows),
    Format(
        catalog.OTEL,
        OTEL_SIGNS,
        read_otel_rows,
        remarks=remarks_on_content,
    ),
    Format(
        catalog.SEARCH_TRACES,
        SEARCH_TRACES_SIGNS,
        read_search_traces,
        SEARCH_TRACES_COLUMNS,
    ),
    _of(ADK, writer=ADK_WRITER, expects_no_call=True, knows_columns=True),
    _of(ADK_LEGACY, writer=ADK_LEGACY_WRITER, expects_no_call=True, knows_columns=True),
    _of(
        LANGSMITH,
        words=WORDS,
        instead_of_response=("request",),
        writer=Writer(LANGSMITH.write, LANGSMITH.written, replaces=("reference_outputs",)),
    ),
    _of(
        RAGAS,
        instead_of_request=("expected_response", "retrieved_context", "expected_retrieved_context"),
        instead_of_response=("request", "expected_response", "retrieved_context", "expected_retrieved_context"),
        outputs=("response", "trace", "retrieved_context"),
        writer=Writer(RAGAS.write, RAGAS.written, kind=kind_of_sample),
    ),
    _of(
        DEEPEVAL,
        writer=Writer(DEEPEVAL.write, DEEPEVAL.written, cells=as_csv_cells, kind=kind_of_golden),
        instead_of_response=("request",),
        outputs=("response", "trace", "retrieved_context", "predicted_trajectory"),
    ),
    _of(OPENAI, instead_of_response=("request",)),
    _of(
        VERTEX,
        instead_of_request=("predicted_trajectory", "reference_trajectory", "expected_response"),
        instead_of_response=("request", "predicted_trajectory", "reference_trajectory"),
        outputs=("response", "trace", "predicted_trajectory"),
    ),
    *map(_of_table, TABLES),
    Format(
        catalog.MLFLOW,
        MLFLOW_SIGNS,
        read_beside_traces,
        MLFLOW_OWN,
        origins=lambda names: {ours: place for ours, place in ORIGINS.items() if ours not in names},
        words=WORDS,
        instead_of_response=("request",),
        remarks=remarks,
        writer=Writer(write_mlflow, MLFLOW_ROW, texts=("outputs",)),
    ),
    Format(
        catalog.DATABRICKS,
        _DATABRICKS_SIGNS,
        same,
        writer=Writer(write_databricks, COLUMNS),
    ),
)
"""In the order of the catalog."""

_SIGNS = {form.name: form.signs for form in FORMATS}


def _asked_by_none(field: str) -> tuple[str, ...]:
    """The columns of which a row needs one, in the format with the fewest requirements."""
    return tuple(name for name in COLUMNS if any(name in getattr(form, field) for form in FORMATS))


NORMALIZED = structs.replace(
    FORMATS[-1],
    about=structs.replace(catalog.DATABRICKS, summary="rows that were normalized before, of any format"),
    instead_of_request=_asked_by_none("instead_of_request"),
    instead_of_response=_asked_by_none("instead_of_response"),
    outputs=_asked_by_none("outputs"),
)
"""What rows are that were normalized before: those that were valid in their own format stay valid."""


def _say_unknown(batch: pa.RecordBatch, unread: Container[int]) -> Iterator[tuple[int, str | None, list[Finding]]]:
    names = column_names(batch.schema)
    near = nearest_formats(_SIGNS, names)
    lacks = ", ".join(f"{format} ({lacks})" for format, lacks in near)
    message = f"expected the columns of a format, got {listed(names[:SHOWN])}; nearest: {lacks}"
    hint = hint_for_unknown(batch, {})
    for row in range(batch.num_rows):
        if row not in unread:
            yield row, None, [Finding(UNKNOWN_FORMAT, message, None, hint=hint)]


def hint_for_unknown(batch: pa.RecordBatch, suggested: Mapping[str, str]) -> str:
    """What to do with a table of no format: its columns may look like ours."""
    names = column_names(batch.schema)
    format = naming(nearest_formats(_SIGNS, names)[0][0])
    if suggested:
        return f"name the format ({format}), or the columns as they look ({naming_columns(suggested)})"
    return f'name the format ({format}), or rename the columns (columns={{"{listed(names[:1])}": "request"}})'


UNKNOWN = Format(
    About("unknown", "a table whose columns are of no format", ((),), "databricks"),
    Signs(((),)),
    same,
    is_rows=False,
    knows_columns=True,
    inspect=_say_unknown,
)
"""The format of a table that no format claims: only that is reported of its rows."""


def column_at(place: str, origins: Mapping[str, str]) -> str | None:
    """The canonical column that an issue with this path (or column) in the user's table is about; where several come
    from one place, the first of them."""
    at = {origins.get(c, c): c for c in reversed(COLUMNS)}
    found = [p for p in at if place == p or place.startswith((f"{p}.", f"{p}["))]
    return at[max(found, key=len)] if found else None


def find_format(name: str) -> Format:
    """The format of that name. Raises EvalSetError if there is none."""
    for format in (*FORMATS, UNKNOWN):
        if format.name == name:
            return format
    raise no_choice("format", name, [*(f.name for f in FORMATS), "auto"])


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
    return detect_among(_SIGNS, names) if names else Detection("databricks", "the data has no columns")
