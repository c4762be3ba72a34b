"""Tables in addition to the inference table: an assessment log in place of its own feedback, and traces that are not in
it.

Both are read once, in batches, into narrow files of the work folder; DuckDB joins them (decide/duckdb.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.formats.inference_tables import find_family
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.inference_tables.decide.tables import TRACE_TABLE, entry_table
from agent_eval_schema.inference_tables.options import BuildOptions
from agent_eval_schema.inference_tables.read.convert import convert_batch
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.work_folder import WorkFolder
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text import jsontext

ASSESSMENT_LOGS = "assessment_logs"
"""The family of an assessment-log table."""


def add_labels(work: WorkFolder, options: BuildOptions) -> None:
    """Put the judgments of an assessment-log table into the work folder, unless they are there."""
    labels = options.tables.get("labels")
    if labels is None or work.read_json("labels.json"):
        return
    reading = label_plan(options)
    for number, batch in enumerate(open_source(labels).batches()):
        require_assessments(batch.schema.names)
        work.commit_table("labels", number, entry_table(number, convert_batch(batch, reading)))
    work.commit_json("labels.json", True)


def label_plan(options: BuildOptions) -> BuildPlan:
    """How an assessment-log table is read."""
    return BuildPlan(ASSESSMENT_LOGS, values=options.show_values)


def require_assessments(columns: Iterable[str]) -> None:
    """Raise EvalSetError unless these are the columns of an assessment log."""
    names = set(columns)
    for group in find_family(ASSESSMENT_LOGS).signs:
        if names.isdisjoint(group):
            raise EvalSetError(
                "labels: expected an assessment-log table (request_id, text_assessment or retrieval_assessment); "
                f"missing column {' or '.join(group)}"
            )


def add_traces(work: WorkFolder, options: BuildOptions) -> None:
    """Put the traces of a table into the work folder, each under all IDs that a call may have for it."""
    if options.traces is None or work.read_json("traces.json"):
        return
    found = 0
    for number, batch in enumerate(open_source(options.traces).batches()):
        pairs = trace_pairs(batch)
        found += len(pairs)
        work.commit_table("traces", number, pairs)
    if not found:
        raise EvalSetError("traces: expected traces with an id: a column `trace`, or one trace (info, data) a row")
    work.commit_json("traces.json", True)


_ID_COLUMNS = ("client_request_id", "databricks_request_id", "request_id", "trace_id")


class _Info(Struct, gc=False):
    client_request_id: str | None = None
    request_id: str | None = None
    trace_id: str | None = None


class _Trace(Struct, gc=False):
    info: _Info | None = None


_decode = jsontext.decoder(_Trace)


def trace_pairs(batch: pa.RecordBatch) -> pa.Table:
    """(key, trace) of a batch of traces: a line for each id by which the trace is known."""
    form = detect(column_names(batch.schema)).format
    cells = read_cells(find_format(form).read(batch) if form else batch, "trace")
    if cells is None:
        return TRACE_TABLE.empty_table()
    columns = [c for n in _ID_COLUMNS if (c := read_cells(batch, n)) is not None]
    keys: list[str] = []
    rows: list[int] = []
    for row, trace in enumerate(cells.texts):
        if trace is not None:
            known = {_plain(c.texts[row]) for c in columns} | _ids(trace)
            own = sorted(k for k in known if k)
            keys += own
            rows += [row] * len(own)
    texts = pa.array(cells.texts, pa.string()).take(pa.array(np.array(rows, np.int64)))
    return pa.table([pa.array(keys, pa.string()), texts], schema=TRACE_TABLE)


def _plain(text: str | None) -> str | None:
    """An id in a cell of a JSON file is JSON text."""
    return text[1:-1] if text is not None and text[:1] == text[-1:] == '"' else text


def _ids(trace: str) -> set[str | None]:
    try:
        info = _decode(trace).info
    except msgspec.MsgspecError:
        return set()
    return {info.client_request_id, info.request_id, info.trace_id} if info else set()
