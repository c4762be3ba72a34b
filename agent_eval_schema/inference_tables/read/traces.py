"""Traces of any form → a table of traces, which a build reads like that of `mlflow.search_traces`.

A row per trace: its ID, the start of its first span, the trace, and its assessments.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.formats.format import Format
from agent_eval_schema.formats.inference_tables import is_family
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.io.source import Source
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.traces.decode import decode_trace
from agent_eval_schema.traces.reading import start_of
from agent_eval_schema.traces.spans import Trace
from agent_eval_schema.validation.fill_from_traces import trace_texts

_TABLE = pa.schema(
    [
        *((name, pa.string()) for name in ("request_id", "trace", "assessments")),
        ("request_time", pa.timestamp("us", "UTC")),
    ]
)


def table_of_traces(source: Source) -> tuple[Source, Format | None]:
    """The table of a source that has only traces, and their format: a trace per row, spans of OpenTelemetry, or a
    column `trace`; any other source as it is."""
    names = source.column_names()
    if is_family(names):
        return source, None
    form = find_format(detect(names, source.metadata).format or "databricks")
    is_column = "trace" in names and {"trace", "request_id"}.issuperset(set(names).intersection(COLUMNS))
    if not (is_column or form.name in ("traces", "otel")):
        return source, None
    batches = partial(_batches, form, form.prepare(source))
    return replace(source, kind="arrow", batches=batches, columns=tuple(_TABLE.names), path=None, shares=None), form


def _batches(form: Format, source: Source) -> Iterator[pa.RecordBatch]:
    for batch in source.batches():
        yield pa.RecordBatch.from_pylist([_row(text) for text in trace_texts(form.read(batch))], schema=_TABLE)


def _row(text: str | None) -> dict[str, str | int | None]:
    trace = decode_trace(text) if text is not None else None
    if not isinstance(trace, Trace):
        return {"trace": text}
    info = trace.info
    return {
        "request_id": info.client_request_id or info.request_id or info.trace_id,
        "trace": text,
        "assessments": bytes(info.assessments).decode() or None,
        "request_time": min((start // 1000 for start in map(start_of, trace.spans) if start), default=None),
    }
