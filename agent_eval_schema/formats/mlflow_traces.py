"""Traces of MLflow: one per row, and DataFrames of `mlflow.search_traces`."""

from collections.abc import Sequence

import pyarrow as pa

from agent_eval_schema.cells.cells import row_texts
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.formats.detection import Signs, each_with
from agent_eval_schema.formats.format import Format
from agent_eval_schema.rules.pages import MLFLOW_TRACES

_ARTIFACT = frozenset({"spans", "request", "response"})


def _are_traces(names: Sequence[str]) -> bool:
    """Whether a table of these columns may be one of traces, or of their artifacts (traces.json)."""
    return {"spans", "request"}.isdisjoint(names) or {"spans"} <= set(names) <= _ARTIFACT


def read_trace_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each row is a trace: put its columns back together into one JSON text."""
    return with_columns(batch, {"trace": row_texts(batch, ("info", "data", "spans"))}, batch.schema.names)


TRACES = Format(
    name="traces",
    title="MLflow traces since 2.13",
    summary="one MLflow trace a row (info, data)",
    system="databricks",
    page=MLFLOW_TRACES,
    signs=Signs(sure=(("info", "data"), ("spans",)), columns=_ARTIFACT, test=_are_traces),
    example={"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": []}},
    read=read_trace_rows,
    instead_of_response=(),
    writer=None,
)


# search_traces of MLflow 3, then what MLflow 2 called otherwise
_SEARCH_TRACES_SIGNS = (
    *("trace_metadata", "spans", "state", "request_time"),
    *("request_metadata", "status", "timestamp_ms"),
)
SEARCH_TRACES_COLUMNS = frozenset(_SEARCH_TRACES_SIGNS) | {
    *("trace_id", "trace", "client_request_id", "execution_duration", "execution_time_ms", "assessments"),
    *("experiment_id", "trace_location", "request_preview", "response_preview"),
}

_COPIES = frozenset({"request_id", "request", "response", "tags"})
"""The columns of search_traces that repeat the traces: the root span's inputs and outputs, IDs, mlflow's own tags."""


def _trace_signs(names: Sequence[str]) -> list[str]:
    """The columns by which a frame of search_traces is known; none of another table."""
    signs = [n for n in names if n in _SEARCH_TRACES_SIGNS]
    is_frame = "trace" in names and ("trace_id" in names or "request_id" in names) and len(signs) >= 2
    return signs if is_frame else []


def without_copies(names: Sequence[str]) -> list[int]:
    """The columns that are read: for a DataFrame of search_traces not the copies, but ground truth that was added."""
    copies = _COPIES if _trace_signs(names) else ()
    return [i for i, n in enumerate(names) if n not in copies]


def read_search_traces(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(without_copies(batch.schema.names))


SEARCH_TRACES = Format(
    name="search_traces",
    title="`mlflow.search_traces`",
    summary="a DataFrame of mlflow.search_traces()",
    system="databricks",
    page=MLFLOW_TRACES,
    signs=Signs(
        sure=each_with("trace", "trace_id", "request_id"),
        columns=SEARCH_TRACES_COLUMNS | _COPIES,
        never=frozenset({"inputs", "outputs", "expectations"}),
        test=lambda names: bool(_trace_signs(names)),
    ),
    example={"trace_id": "tr-1", "trace": "{…}", "request": "{…}", "response": "…", "state": "OK"},
    own=SEARCH_TRACES_COLUMNS,
    read=read_search_traces,
    instead_of_response=(),
    writer=None,
)
