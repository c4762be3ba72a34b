"""Traces → canonical rows: one row a trace."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from agent_eval_schema.frames import Source, open_source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.model import COLUMNS
from agent_eval_schema.production.tables import payload_table
from agent_eval_schema.progress import Screen, notebook
from agent_eval_schema.report import Report
from agent_eval_schema.rules.traces import MALFORMED_TRACE, NOT_A_TRACE

UNREADABLE = (MALFORMED_TRACE.code, NOT_A_TRACE.code)


class UnreadableTrace(UserWarning):
    """Some traces could not be read; their rows hold the trace and nothing else."""


def eval_set_from_traces(traces: Any) -> pd.DataFrame:
    """The canonical rows of MLflow traces: request, response, retrieved_context, trajectory, tokens, expectations …

    Parameters
    ----------
    traces
        A list of `mlflow.entities.Trace`, of dicts or of JSON texts; one of these alone; a frame of
        `mlflow.search_traces()` or any frame with a `trace` column; the path of a file of either; or what
        `traces_from_store("my experiment", filter_string=...)` fetched from a tracking store.

    Returns
    -------
    pandas.DataFrame
        One row a trace, in order, with the canonical columns (DERIVATIONS in traces/derive.py says what comes from
        where). A trace that cannot be read gives a row that holds only the trace, and an UnreadableTrace warning.

    Raises
    ------
    EvalSetError
        There are no traces in it: no `trace` column, no such file.
    """
    report = report_on_traces(traces, screen=notebook())
    failed = {i.row: i for i in report.iter_issues() if i.code in UNREADABLE and i.row is not None}
    if failed:
        row, issue = next(iter(failed.items()))
        message = f"{len(failed)} of {report.row_count} traces could not be read; row {row}: {issue.message}"
        warnings.warn(message, UnreadableTrace, stacklevel=2)
    return report.rows[list(COLUMNS)]


def report_on_traces(traces: Any, *, values: bool = True, screen: Screen | None = None) -> Report:
    """The report on rows that consist of traces. Raises EvalSetError if there are none in `traces`."""
    from agent_eval_schema.check import check_source
    from agent_eval_schema.formats.registry import find_format

    source = _source(traces)
    report = check_source(source, outputs="provided", values=values, screen=screen)
    has_no_traces = report.format == "databricks" or not find_format(report.format).is_rows
    if report.row_count and "trace" not in report.source_schema.names and has_no_traces:
        raise EvalSetError(
            f"no traces found: expected a `trace` column, or one trace (info, data) a row{_advice(report)}"
        )
    return report


def _advice(report: Report) -> str:
    logged = payload_table(tuple(report.source_schema.names))
    return f". This is {logged[0].summary}: eval_set_from_inference_table reads it" if logged is not None else ""


def _source(traces: Any) -> Source:
    if isinstance(traces, pd.DataFrame | os.PathLike):
        return open_source(traces)
    if isinstance(traces, pd.Series | np.ndarray):
        return _source(traces.tolist())
    if isinstance(traces, str):
        return open_source([{"trace": traces}]) if traces.lstrip()[:1] in ("{", '"') else open_source(traces)
    if isinstance(traces, Mapping) or hasattr(traces, "to_dict"):
        return open_source([{"trace": traces}])
    if isinstance(traces, list | tuple):
        return open_source([t if _is_row(t) else {"trace": t} for t in traces])
    return open_source(traces)


def _is_row(item: Any) -> bool:
    return isinstance(item, Mapping) and "trace" in item and "info" not in item
