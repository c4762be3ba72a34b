"""The public verbs that take several parts of the package.

data ──open_source──▶ Source ──check_source──▶ Report ──▶ validate_eval_set, metric_support
                        │ fix_source               └────▶ normalize_eval_set, eval_set_from_traces
                        └──write_batches──▶ write_eval_set
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.cells.arrow import one_batch
from agent_eval_schema.cells.notes import free, own_columns, reading_problems
from agent_eval_schema.formats.inference_tables import payload_table
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.metrics.support import metrics_of
from agent_eval_schema.rules import RULES, words
from agent_eval_schema.rules.traces import MALFORMED_TRACE, NOT_A_TRACE
from agent_eval_schema.runtime.progress import ProgressDisplay, notebook
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.validation.ces_turns import report_on_rows
from agent_eval_schema.validation.plan import Outputs
from agent_eval_schema.validation.report import InvalidEvalSet, Report
from agent_eval_schema.validation.unreadable import UNREADABLE
from agent_eval_schema.validation.validate import check_source


def validate_eval_set(
    data: Any,
    *,
    format: str = "auto",
    outputs: Outputs = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    values: bool = True,
) -> Report:
    """Check every row of an evaluation set; say what is wrong, where, how to mend it, and what can be measured.

    Parameters
    ----------
    data
        A pandas frame, an Arrow table, batch or reader, a list of dicts, or the path of a JSONL, JSON, CSV or Parquet
        file or of a Delta folder (`"folder@v12"`: its version 12), a Spark DataFrame. It is not changed.
    format
        The form that the data has: `"ces-csv"`, `"ces-evaluation"`, `"traces"`, `"search_traces"`, `"adk"`,
        `"adk-legacy"`, `"langsmith"`, `"ragas"`, `"deepeval"`, `"openai"`, `"vertex"`, `"mlflow"` or `"databricks"`;
        `"auto"` looks at the columns.
    outputs
        `"provided"`: response or trace is required on every row. `"generated"`: the app will be run on the requests.
        `"auto"`: provided if any row has a response or a trace.
    select, ignore
        Codes (`"AE206"`), prefixes (`"AE2"`) or names of the rules to apply, or not to.
    values
        Without, nothing that stands in a cell is said in any message, hint or path, nor are request ids: for private
        data. The names of columns and the numbers of rows are told; `report.rows`, `valid` and `invalid` are the data.

    Returns
    -------
    Report
        The verdict; it never raises for what a row holds.

    Raises
    ------
    EvalSetError
        The check could not run: no such file, not a table, an unknown option.
    """
    return check_source(
        open_source(data),
        format=format,
        outputs=outputs,
        select=words(select),
        ignore=words(ignore),
        values=values,
        screen=notebook(),
    )


def normalize_eval_set(
    data: Any,
    *,
    format: str = "auto",
    outputs: Outputs = "auto",
    on_invalid: Literal["raise", "keep", "drop"] = "raise",
    fix: bool = False,
) -> Any:
    """The canonical rows of an evaluation set, in the same kind of container (a frame for a path).

    Requests become `{"messages": [...]}`, what a trace says fills absent cells, unknown columns are carried along.
    Invalid rows raise InvalidEvalSet (its `report` says why), are kept with what could be read, or dropped; say
    `"drop"` only if you look at the report as well. A cell that could not be read is None where rows are kept: its
    column has one type. What it holds stands in a column `unreadable`, as JSON text by column: `{"request": {"q":
    "Hi"}}`, or, of a line that is no row, the line's text. Without such cells there is no such column.

    `fix` applies the safe fixes first: another spelling of a key, role or column, a single document for a list, JSON
    text for an object. What cannot be fixed safely stays as it is; `data` is never changed.
    """
    if on_invalid not in ("raise", "keep", "drop"):
        raise EvalSetError(f"on_invalid must be raise, keep or drop, got {on_invalid!r}")
    source = open_source(data)
    if fix:
        from agent_eval_schema.fix.fix import fix_source

        source = fix_source(source, format=format, outputs=outputs).source
    report = check_source(source, format=format, outputs=outputs)
    if on_invalid == "raise" and not report.ok:
        raise InvalidEvalSet(report)
    unread = report.unreadable() if on_invalid == "keep" else {}
    return _same_kind(report, data, report.valid_mask if on_invalid == "drop" else None, unread)


def _same_kind(report: Report, data: Any, mask: np.ndarray[Any, Any] | None, unread: dict[int, str]) -> Any:
    beside = [unread.get(row) for row in range(report.row_count)] if unread else []
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        table = report.to_arrow()
        table = table if mask is None else table.filter(pa.array(mask))
        table = table.append_column(free(UNREADABLE, table.column_names), pa.array(beside)) if beside else table
        if isinstance(data, pa.RecordBatchReader):
            return table.to_reader()
        return one_batch(table) if isinstance(data, pa.RecordBatch) else table
    frame = report.rows
    if beside:
        frame[free(UNREADABLE, frame.columns)] = pd.Series(beside, dtype="object")
    if isinstance(data, pd.DataFrame):
        frame.index = data.index
    frame = frame if mask is None else frame[mask]
    return _as_dicts(frame) if isinstance(data, list | tuple) else frame


def _as_dicts(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts, absent is None in every column."""
    columns = [[None if is_absent(v) else v for v in frame[n].tolist()] for n in frame.columns]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def metric_support(
    data: Any, *, system: str = "databricks", format: str = "auto", outputs: Outputs = "auto"
) -> pd.DataFrame:
    """Which metric each row can support: a bool frame with one line a row and one column a metric.

    `system` is `"databricks"`, `"mlflow"`, `"vertex"`, `"ces"` or `"all"`. `data`, `format` and `outputs` are as in
    `validate_eval_set`. An invalid row supports nothing. Of files of CES the lines are the rows that
    `convert_eval_set(data, target="databricks")` makes, one a turn.
    """
    wanted = [m.name for m in metrics_of(system)]
    report = validate_eval_set(data, format=format, outputs=outputs)
    return report_on_rows(report, outputs).metric_support[wanted]


def explain(code: str) -> str:
    """What a code means, why it matters, how to mend it, with an example.

    `code` is a code (`"AE206"`) or a name (`"message-role"`). Raises EvalSetError if there is no such rule.
    """
    rule = next((r for r in RULES.values() if code.upper() == r.code or code == r.name), None)
    if rule is None:
        raise EvalSetError(f"no rule {code!r}: `agent-eval-schema rules` lists them all")
    from agent_eval_schema.fix.catalog import FIXABLE
    from agent_eval_schema.render.rule import rule_text

    return rule_text(rule, FIXABLE.get(rule.code, ()))


UNREADABLE_TRACES = (MALFORMED_TRACE.code, NOT_A_TRACE.code)


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
    report = validate_traces(traces, screen=notebook())
    failed = {i.row: i for i in report.iter_issues() if i.code in UNREADABLE_TRACES and i.row is not None}
    if failed:
        row, issue = next(iter(failed.items()))
        message = f"{len(failed)} of {report.row_count} traces could not be read; row {row}: {issue.message}"
        warnings.warn(message, UnreadableTrace, stacklevel=2)
    return report.rows[list(COLUMNS)]


def validate_traces(traces: Any, *, values: bool = True, screen: ProgressDisplay | None = None) -> Report:
    """The report on rows that consist of traces. Raises EvalSetError if there are no traces in `traces`."""
    source = _open_traces(traces)
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


def _open_traces(traces: Any) -> Source:
    if isinstance(traces, pd.DataFrame | os.PathLike):
        return open_source(traces)
    if isinstance(traces, pd.Series | np.ndarray):
        return _open_traces(traces.tolist())
    if isinstance(traces, str):
        return open_source([{"trace": traces}]) if traces.lstrip()[:1] in ("{", '"') else open_source(traces)
    if isinstance(traces, Mapping) or hasattr(traces, "to_dict"):
        return open_source([{"trace": traces}])
    if isinstance(traces, list | tuple):
        return open_source([t if _is_row(t) else {"trace": t} for t in traces])
    return open_source(traces)


def _is_row(item: Any) -> bool:
    return isinstance(item, Mapping) and "trace" in item and "info" not in item


def write_eval_set(data: Any, path: str | os.PathLike[str]) -> int:
    """Write rows into a file: `.parquet`, `.jsonl`, `.json`, `.csv`, or a new Delta folder `….delta`.

    Parameters
    ----------
    data
        A pandas frame, an Arrow table or a list of dicts, such as what `prepare_for_evaluate` and
        `normalize_eval_set` give. In Parquet and CSV a column of Python objects (every column of a list) that holds
        anything but text is JSON text. The index of a frame is not written: `frame.reset_index()` makes a column of it.
    path
        Where to. The file is there whole, or not at all.

    Returns
    -------
    int
        How many rows were written. What takes an evaluation set takes the file: `prepare_for_evaluate(path)` makes of a
        written frame the same cells again.

    Raises
    ------
    EvalSetError
        The kind of file is not known, it cannot be written, two columns have one name, or a cell is no data.
    """
    out = os.fspath(path)
    require_writable(out)
    source = open_source(data)
    if source.remote is not None:
        raise EvalSetError("a Spark DataFrame is not here: write it with its own df.write")
    if source.repeated_columns:
        raise EvalSetError(f"two columns are called {source.repeated_columns[0]!r}: only one could be written")
    return write_batches(out, _whole(source), schema_of(source.kind, source.batches()))


def _whole(source: Source) -> Iterator[pa.RecordBatch]:
    """The batches of the source, none of which lacks a cell that could not be read."""
    start = 0
    for batch in source.batches():
        for row, (problem, *_) in reading_problems(batch).items():
            place = f", column {problem.column}" if problem.column else ""
            raise EvalSetError(f"row {start + row}{place}: {problem.message}")
        start += batch.num_rows
        yield batch.select(own_columns(batch.schema))
