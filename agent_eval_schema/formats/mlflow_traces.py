"""Frames of MLflow traces, and rows that evaluate reads beside a trace."""

from collections.abc import Sequence

import pyarrow as pa

from agent_eval_schema.cells.cells import row_texts
from agent_eval_schema.cells.edit import with_columns
from agent_eval_schema.formats import catalog
from agent_eval_schema.formats.detection import Signs
from agent_eval_schema.formats.mlflow import MLFLOW_COLUMNS, ORIGINS, read_mlflow
from agent_eval_schema.schema import COLUMNS

_ARTIFACT = frozenset({"spans", "request", "response"})


def _are_traces(names: Sequence[str]) -> bool:
    """Whether a table of these columns may be one of traces, or of their artifacts (traces.json)."""
    return {"spans", "request"}.isdisjoint(names) or {"spans"} <= set(names) <= _ARTIFACT


TRACES_SIGNS = Signs(catalog.TRACES.sure, columns=_ARTIFACT, test=_are_traces)


def read_trace_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each row is a trace: put its columns back together into one JSON text."""
    return with_columns(batch, {"trace": row_texts(batch, ("info", "data", "spans"))}, batch.schema.names)


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


def _without_copies(names: Sequence[str]) -> list[int]:
    """The columns that are read: for a DataFrame of search_traces not the copies, but ground truth that was added."""
    copies = _COPIES if _trace_signs(names) else ()
    return [i for i, n in enumerate(names) if n not in copies]


def read_search_traces(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(_without_copies(batch.schema.names))


def read_beside_traces(batch: pa.RecordBatch) -> pa.RecordBatch:
    """mlflow too reads inputs, outputs and expectations that were added to a frame of search_traces, not its copies."""
    return read_mlflow(read_search_traces(batch))


SEARCH_TRACES_SIGNS = Signs(
    catalog.SEARCH_TRACES.sure,
    columns=SEARCH_TRACES_COLUMNS | _COPIES,
    never=frozenset(MLFLOW_COLUMNS),
    test=lambda names: bool(_trace_signs(names)),
)
MLFLOW_SIGNS = Signs(
    catalog.MLFLOW.sure,
    columns=SEARCH_TRACES_COLUMNS.union(ORIGINS.values(), COLUMNS) - {"request", "response"},
    test=lambda names: "request" not in [names[i] for i in _without_copies(names)],
)
"""Of a frame of search_traces with columns of mlflow's too: mlflow reads these, and the traces, but not the copies."""
