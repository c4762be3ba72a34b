"""The public verbs that take several parts of the package.

data ──open_source──▶ Source ──check_source──▶ Report ──▶ validate_eval_set, metric_support
                        │ fix_source               └────▶ normalize_eval_set, eval_set_from_traces
                        └──write_batches──▶ write_eval_set
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, overload

import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.notes import free, own_columns, reading_problems
from agent_eval_schema.errors import EvalSetError, warn_caller
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.inference_tables import payload_table
from agent_eval_schema.formats.nested import require_one_format
from agent_eval_schema.formats.opening import (
    ArrowArray,
    ArrowStream,
    EvalSetLike,
    LocalEvalSet,
    SparkFrame,
    is_spark,
    open_source,
)
from agent_eval_schema.formats.otel_traces import are_spans
from agent_eval_schema.formats.registry import InputFormat, find_format
from agent_eval_schema.formats.values_as_text import TextCounts
from agent_eval_schema.inference_tables.options import FEEDBACK
from agent_eval_schema.io.arrow import fitted, like
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.io.source import Source, schema_of
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.metrics.support import System, metrics_of, systems
from agent_eval_schema.rules.traces import MALFORMED_TRACE, NOT_A_TRACE
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.similarity.near import NEAR
from agent_eval_schema.text.choices import path_of, require_bool, require_choice
from agent_eval_schema.text.jsontext import structured
from agent_eval_schema.traces.otel.envelopes import is_document
from agent_eval_schema.validation.ces_turns import report_on_rows
from agent_eval_schema.validation.chosen_rules import find_rule
from agent_eval_schema.validation.plan import OnInvalid, Outputs, make_plan
from agent_eval_schema.validation.report import InvalidEvalSetError, Report, run_of
from agent_eval_schema.validation.unreadable import UNREADABLE, unreadable_cells
from agent_eval_schema.validation.validate import check_source, report_on

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack

    from agent_eval_schema.inference_tables.result import EvalSetBuild
    from agent_eval_schema.validation.spark_frames import CheckedFrame


# The options of the overloads; the functions have their defaults.
class _Supporting(TypedDict, total=False):
    system: System
    format: InputFormat
    outputs: Outputs
    columns: ColumnNames


class _Normalizing(TypedDict, total=False):
    format: InputFormat
    outputs: Outputs
    on_invalid: OnInvalid
    fix: bool
    columns: ColumnNames
    select: Iterable[str]
    ignore: Iterable[str]


class _FromTraces(TypedDict, total=False):
    columns: ColumnNames
    extend: EvalSetLike | None
    dedupe: Literal["id", "question", "near"] | None
    near: float
    labels: EvalSetLike | None


def validate_eval_set(
    data: EvalSetLike,
    *,
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    columns: ColumnNames = None,
    show_values: bool = True,
    max_cell_bytes: int | None = None,
) -> Report:
    """Validate every row of an evaluation dataset.

    Parameters
    ----------
    data : EvalSetLike
        A pandas DataFrame; an object with `__arrow_c_stream__` (Arrow, Polars, DuckDB); a list of dicts; a Hugging Face
        Dataset; an MLflow EvaluationDataset; a Spark DataFrame; the path or URL of a JSON Lines, JSON, CSV or Parquet
        file, or a folder or glob of them (`"evals/*.jsonl"`); a Delta folder (`"folder@v12"` is its version 12); `"-"`
        for standard input; a table of Unity Catalog (`"catalog.schema.table"`) or BigQuery
        (`"bq://project.dataset.table"`); or a Report: its data, read with its options. The data is not changed.
    format : FormatName or "auto", default "auto"
        The format of the data: `"adk"`, `"adk-legacy"`, `"agent-skills"`, `"agentcore"`, `"azure"`, `"bedrock"`,
        `"bedrock-rag"`, `"braintrust"`, `"ces-csv"`, `"ces-evaluation"`, `"databricks"`, `"deepeval"`, `"inspect"`,
        `"langfuse"`, `"langsmith"`, `"m365-copilot"`, `"mlflow"`, `"openai"`, `"otel"`, `"phoenix"`, `"promptfoo"`,
        `"pydantic-evals"`, `"ragas"`, `"search_traces"`, `"strands"`, `"traces"`, `"vertex"` or `"vertex-genai"`.
        `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data. `"provided"`: every row must have a response or a trace.
        `"generated"`: the agent will be called with the requests. `"auto"`: `"provided"` if any row has a response or a
        trace.
    select : iterable of str, default ()
        Rules to apply: codes (`"AE206"`), prefixes of codes (`"AE2"`) or names (`"message-role"`). Empty means all
        rules.
    ignore : iterable of str, default ()
        Rules to disable, in the same notation.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, such as `{"question": "request"}`. A path leads into objects and lists:
        `{"item.ticket_text": "request", "ctx[].text": "retrieved_context[].content"}`. None uses the names of the data.
    show_values : bool, default True
        If False, omit cell values and request IDs from messages, hints and paths. Column names and row numbers are
        still reported; `report.rows`, `report.valid` and `report.invalid` contain the data.
    max_cell_bytes : int or None, default None
        The largest cell that is read, in bytes. A larger one is an error (AE011). None sets no limit.

    Returns
    -------
    Report
        The issues, the normalized rows, and the metrics that each row supports. Invalid data never raises.

    Raises
    ------
    EvalSetNotFoundError
        The file does not exist.
    EvalSetError
        The data cannot be read as a table, or an option is not one of the allowed values.

    See Also
    --------
    normalize_eval_set : Return the normalized rows.
    metric_support : Return the metrics that each row supports.
    explain : Return the documentation of a rule.

    Examples
    --------
    >>> from agent_eval_schema import validate_eval_set
    >>> report = validate_eval_set([
    ...     {"request_id": "q1", "request": "What is Delta Lake?", "response": "A table format."},
    ...     {"request_id": "q2", "request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello!"},
    ... ])
    >>> report
    <Report: 1 of 2 rows valid, 1 errors, 0 warnings>
    >>> report.issues[["row", "path", "code", "name"]]
       row                      path   code          name
    0    1  request.messages[0].role  AE206  message-role

    The report is data of the other functions, which then need no option again:

    >>> from agent_eval_schema import normalize_eval_set
    >>> [row["request_id"] for row in normalize_eval_set(report, on_invalid="drop")]
    ['q1']

    Files take the same options:

    >>> validate_eval_set("sample_data/broken.jsonl", select=["message-role"]).counts
    {'AE206': 1}
    """
    from agent_eval_schema.fix.preview import preview_fixes

    source = open_source(
        data,
        "data",
        columns,
        format=format,
        outputs=outputs,
        select=select,
        ignore=ignore,
        show_values=show_values,
        max_cell_bytes=max_cell_bytes,
    )
    return data if isinstance(data, Report) else check_source(source, preview=partial(preview_fixes, source))


@overload
def normalize_eval_set(
    data: pd.DataFrame | Mapping[str, Any] | str | os.PathLike[str], **options: Unpack[_Normalizing]
) -> pd.DataFrame: ...
@overload
def normalize_eval_set(data: SparkFrame, **options: Unpack[_Normalizing]) -> DataFrame: ...
@overload
def normalize_eval_set(data: Sequence[Mapping[str, Any]], **options: Unpack[_Normalizing]) -> list[dict[str, Any]]: ...
@overload
def normalize_eval_set(data: ArrowStream | ArrowArray, **options: Unpack[_Normalizing]) -> Any: ...
def normalize_eval_set(
    data: EvalSetLike,
    *,
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    on_invalid: OnInvalid = "raise",
    fix: bool = False,
    columns: ColumnNames = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Any:
    """Return the canonical rows of an evaluation dataset.

    A request becomes `{"messages": [...]}`, values from the trace fill empty cells, and unknown columns are passed
    through. `json_schema("canonical")` is the schema of a row.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`. The data is not changed.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`.
    on_invalid : {"raise", "drop", "keep"}, default "raise"
        What to do with invalid rows. `"raise"` raises InvalidEvalSetError. `"drop"` excludes them. `"keep"` keeps them:
        a cell that cannot be read is None, and a column `unreadable` holds the original cells of the row as the JSON
        text of an object (of a line that is not a row: the text of the line).
    fix : bool, default False
        If True, apply the safe fixes first: misspelled keys, roles and columns, a single document in place of a list,
        JSON text in place of an object. A value without exactly one valid interpretation is not changed.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.
    select : iterable of str, default ()
        Rules that make a row invalid, as in `validate_eval_set`. Empty means all rules.
    ignore : iterable of str, default ()
        Rules that make no row invalid, in the same forms.

    Returns
    -------
    pandas.DataFrame, list of dict, pyarrow.Table, RecordBatch or RecordBatchReader, or pyspark.sql.DataFrame
        The same kind of container as the data (also of Polars, DuckDB and Hugging Face); a DataFrame for a path. A
        Spark DataFrame is lazy: one job settles its columns and the duplicates of an ID, then rows are normalized where
        they are, in the types of an Arrow table. A pandas DataFrame has the index of the data (a RangeIndex for other
        data), the canonical columns and the columns that were passed through. Cells of dtype object hold str, list or
        dict, or None where the value is absent; token counts are Int64, `latency_seconds` is float64, `failure` is
        boolean.

    Raises
    ------
    InvalidEvalSetError
        There are invalid rows and `on_invalid="raise"`. Its `report` lists the issues.
    EvalSetError
        The data cannot be read as a table, or an option is not one of the allowed values.

    See Also
    --------
    validate_eval_set : Report the issues of each row.
    prepare_for_evaluate : Return the rows in the form that an evaluator reads.
    write_eval_set : Write rows to a file.

    Examples
    --------
    >>> import pandas as pd
    >>> from agent_eval_schema import normalize_eval_set
    >>> data = pd.DataFrame({"request": ["What is Delta Lake?"], "response": ["A table format."], "team": ["docs"]})
    >>> rows = normalize_eval_set(data)
    >>> rows["request"][0]
    {'messages': [{'role': 'user', 'content': 'What is Delta Lake?'}]}
    >>> rows[["response", "team"]]
              response  team
    0  A table format.  docs

    A misspelled role has one valid interpretation, so it can be fixed:

    >>> chat = [{"request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello!"}]
    >>> normalize_eval_set(chat, fix=True)[0]["request"]
    {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    require_choice("on_invalid", on_invalid, get_args(OnInvalid))
    require_bool("fix", fix)
    source = open_source(data, "data", columns, format=format, outputs=outputs, select=select, ignore=ignore)
    if is_spark(source.data):
        checked = _checked_on_spark(source, fix)
        if on_invalid == "raise" and checked.invalid_count:
            raise InvalidEvalSetError(check_source(source))
        return checked.normalized(on_invalid)
    if fix:
        from agent_eval_schema.fix.fix import fix_source

        source = fix_source(source).source
    report = check_source(source) if fix else report_on(data, source)
    if on_invalid == "raise" and not report.ok:
        raise InvalidEvalSetError(report)
    unread = unreadable_cells(run_of(report)) if on_invalid == "keep" else {}
    mask = report.valid_mask if on_invalid == "drop" else None
    beside = [unread.get(row) for row in range(report.row_count)] if unread else []
    if (back := like(source.data)) is not None:
        schema = run_of(report).schema
        parts = (fitted(batch, schema) for batch in run_of(report).normalized())
        table = pa.concat_tables([schema.empty_table(), *parts])
        table = table if mask is None else table.filter(pa.array(mask))
        table = table.append_column(free(UNREADABLE, table.column_names), pa.array(beside)) if beside else table
        return back(table)
    frame = report.rows
    if beside:
        import pandas as pd

        frame[free(UNREADABLE, frame.columns)] = pd.Series(beside, frame.index, dtype="object")
    frame = frame if mask is None else frame[mask]
    if not isinstance(source.data, list | tuple):
        return frame
    cells = [[None if v is None or is_absent(v) else v for v in frame[n].tolist()] for n in frame.columns]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*cells, strict=True)]


def _checked_on_spark(source: Source, fix: bool = False) -> CheckedFrame:
    from agent_eval_schema.fix.fix import fixes_of_batches
    from agent_eval_schema.validation.spark_frames import CheckedFrame, require_rows_apart

    require_rows_apart(source)
    plan = make_plan(source)
    return CheckedFrame(source.data, source, plan, fixes_of_batches(source, plan) if fix else None)


@overload
def metric_support(data: LocalEvalSet, **options: Unpack[_Supporting]) -> pd.DataFrame: ...
@overload
def metric_support(data: SparkFrame, **options: Unpack[_Supporting]) -> DataFrame: ...
@overload
def metric_support(data: EvalSetLike, **options: Unpack[_Supporting]) -> Any: ...
def metric_support(
    data: EvalSetLike,
    *,
    system: System = "auto",
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    columns: ColumnNames = None,
) -> Any:
    """Return the metrics that each row of an evaluation dataset supports.

    Parameters
    ----------
    data : EvalSetLike
        Any input of `validate_eval_set`.
    system : str, default "auto"
        The system whose metrics are the columns: `"databricks"`, `"mlflow"`, `"vertex"`, `"ces"`, `"adk"`, `"azure"`,
        `"bedrock"`, `"bedrock-rag"`, `"agentcore"`, `"vertex-genai"`, `"m365-copilot"`, `"strands"`, `"braintrust"`,
        `"phoenix"`, `"inspect"`, `"promptfoo"`, `"ragas"`, `"deepeval"`, `"langsmith"`, `"langfuse"`, `"openai"`,
        `"mlflow-third-party"` or `"all"`. `"auto"` is the system of the data's format.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.

    Returns
    -------
    pandas.DataFrame or pyspark.sql.DataFrame
        One row per row of the data and one column per metric, dtype bool. A Spark DataFrame, of one, is lazy; it has
        the columns `row` (the 0-based position) and `request_id` before those of the metrics. The index is that of the
        data if it is a DataFrame, otherwise a RangeIndex. An invalid row supports no metric. For files of Google
        Customer Engagement Suite there is one row per turn.

    Raises
    ------
    EvalSetError
        The data cannot be read as a table, or an option is not one of the allowed values.

    See Also
    --------
    Report.metrics : Count the supported rows per metric.
    Report.why : Explain the support of one row.

    Examples
    --------
    >>> from agent_eval_schema import metric_support
    >>> support = metric_support([
    ...     {"request": "What is Delta Lake?", "response": "A table format.", "expected_response": "A format."},
    ...     {"request": "Who made it?", "response": "Databricks."},
    ... ])
    >>> support["response/llm_judged/correctness/rating"].tolist()
    [True, False]
    """
    require_choice("system", system, (*systems(), "all", "auto"))
    source = open_source(data, "data", columns, format=format, outputs=outputs)
    if is_spark(source.data):
        checked = _checked_on_spark(source)
        return checked.metric_support(_metric_names(checked.plan.format, system))
    report = report_on(data, source)
    return report_on_rows(report).metric_support[_metric_names(report.format, system)]


def _metric_names(format: str, system: System) -> list[str]:
    return [m.name for m in metrics_of(find_format(format).system if system == "auto" else system)]


def explain(code: str) -> str:
    """Return the documentation of a rule.

    Parameters
    ----------
    code : str
        The code of the rule (`"AE206"`) or its name (`"message-role"`).

    Returns
    -------
    str
        What the rule requires, why, how to fix an issue, and an example.

    Raises
    ------
    EvalSetError
        There is no such rule.

    See Also
    --------
    validate_eval_set : Report the issues of each row.

    Examples
    --------
    >>> from agent_eval_schema import explain
    >>> print(explain("AE206"))
    AE206 message-role (error)
    ...
    """
    from agent_eval_schema.fix.effects import FIXABLE
    from agent_eval_schema.render.rule import rule_text

    rule = find_rule(code)
    return rule_text(rule, FIXABLE.get(rule.code, ()))


class UnreadableTraceWarning(UserWarning):
    """Some traces could not be read; their rows contain the trace only.

    See Also
    --------
    eval_set_from_traces : The function that emits the warning.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import UnreadableTraceWarning, eval_set_from_traces
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     rows = eval_set_from_traces(['{"info": {'])
    >>> [w.category is UnreadableTraceWarning for w in caught]
    [True]
    """


@overload
def eval_set_from_traces(traces: SparkFrame, **options: Unpack[_FromTraces]) -> DataFrame: ...
@overload
def eval_set_from_traces(traces: Any, **options: Unpack[_FromTraces]) -> pd.DataFrame: ...
def eval_set_from_traces(
    traces: Any,
    *,
    columns: ColumnNames = None,
    extend: EvalSetLike | None = None,
    dedupe: Literal["id", "question", "near"] | None = None,
    near: float = NEAR,
    labels: EvalSetLike | None = FEEDBACK,
) -> Any:
    """Return the canonical rows of MLflow or OpenTelemetry traces.

    Request, response, retrieved context, trajectory, token counts, latency and expectations are derived from each
    trace.

    Parameters
    ----------
    traces : list, pandas.DataFrame, pyspark.sql.DataFrame, str, os.PathLike, mlflow.entities.Trace or Source
        A list of `mlflow.entities.Trace`, of dicts or of JSON strings; one trace; a DataFrame of
        `mlflow.search_traces()` or with a column `trace`; the path of a file of traces; or the result of
        `traces_from_store`. Documents of OpenTelemetry (`resourceSpans`, exports of Tempo, Jaeger, Phoenix and
        Langfuse) are dicts or JSON strings, too; the spans of a trace may be in several of them. A Spark DataFrame has
        a trace per row, or a span of OpenTelemetry per row.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`: `{"payload": "trace"}`.
    extend : EvalSetLike or None, default None
        An evaluation dataset whose rows come first, as in `eval_set_from_inference_table`: only traces that it does not
        have are added, and later feedback updates its labels. None starts a new dataset.
    dedupe : {"id", "question", "near"} or None, default None
        Which of several traces are kept, as in `eval_set_from_inference_table`. None keeps all; with `extend` it is
        `"id"`.
    near : float, default 0.7
        The similarity of near duplicates, as in `eval_set_from_inference_table`. Used with `dedupe="near"`.
    labels : "feedback", EvalSetLike or None, default "feedback"
        The source of ground-truth labels, as in `eval_set_from_inference_table`. `"feedback"`: the human assessments of
        the traces; a response with which people were content is the `expected_response` (AE714). None adds no labels.

    Returns
    -------
    pandas.DataFrame or pyspark.sql.DataFrame
        One row per trace, in input order, with the canonical columns; of a Spark DataFrame a lazy one, in the order of
        the traces or, of spans, in no order. A trace of OpenTelemetry whose spans are in
        several documents has the place of the last one. The index is that of the input if it is a
        DataFrame, otherwise a RangeIndex. The columns have the dtypes that `normalize_eval_set` returns. With `extend`,
        `dedupe` or a table of labels it is the `rows` of an `EvalSetBuild`, without invalid rows.

    Raises
    ------
    MissingExtraError
        DuckDB is not installed, and an option requires it: `extend`, `dedupe` or a table of labels.
    EvalSetError
        The input contains no traces: no column `trace`, or no such file. `extend`, `dedupe` or a table of labels is
        given for a Spark DataFrame (use `eval_set_from_inference_table`).

    Warns
    -----
    UnreadableTraceWarning
        A trace cannot be read. Its row contains the trace only.

    See Also
    --------
    traces_from_store : Read traces from an MLflow tracking store.
    eval_set_from_inference_table : Build an evaluation dataset from a request log, or from traces, and count the steps.

    Examples
    --------
    >>> from agent_eval_schema import eval_set_from_traces
    >>> rows = eval_set_from_traces("sample_data/search_traces.jsonl")
    >>> rows[["total_token_count", "latency_seconds"]].head(3)
       total_token_count  latency_seconds
    0                491            0.836
    1               <NA>            0.232
    2                392            0.506
    >>> rows["predicted_trajectory"][0][0]["tool_name"]
    'get_leave_balance'
    """
    is_build = extend is not None or dedupe is not None or not (labels is None or isinstance(labels, str))
    if is_spark(traces):
        if is_build:
            raise EvalSetError(
                "traces: `extend`, `dedupe` and tables of labels of a Spark DataFrame are options of "
                "`eval_set_from_inference_table(df, ...)`"
            )
        return _of_traces_on_spark(traces, columns, labels)
    if is_build:
        if extend is not None and dedupe is None:
            dedupe = "id"
        with build_from_traces(traces, columns, extend=extend, dedupe=dedupe, near=near, labels=labels) as build:
            return build.rows
    report = validate_traces(traces, columns=columns, labels=None if labels is None else FEEDBACK)
    failed = {i.row: i for i in report.iter_issues() if i.code in _UNREADABLE and i.row is not None}
    if failed:
        row, issue = next(iter(failed.items()))
        message = f"{len(failed)} of {report.row_count} traces could not be read; row {row}: {issue.message}"
        warn_caller(message, UnreadableTraceWarning)
    return report.rows[list(COLUMNS)]


_UNREADABLE = (MALFORMED_TRACE.code, NOT_A_TRACE.code)


def _of_traces_on_spark(df: Any, columns: ColumnNames, labels: Any) -> DataFrame:
    from agent_eval_schema.io.spark import traces_of_spans
    from agent_eval_schema.validation.spark_frames import CheckedFrame

    df = traces_of_spans(df) if columns is None and are_spans(df.columns) else df
    source = open_source(df, "traces", columns, outputs="provided")
    plan = make_plan(source, labeled=labels is not None)
    _require_traces(plan.format, source.column_names())
    checked = CheckedFrame(df, source, plan)
    if failed := sum(checked.counts[code] for code in _UNREADABLE):
        message = f"{failed:,} of {checked.row_count:,} traces could not be read: see spark_validate"
        warn_caller(message, UnreadableTraceWarning)
    return checked.normalized("keep").select(*COLUMNS)


def _require_traces(format: str, names: Sequence[str]) -> None:
    """Raise EvalSetError if rows of this format, with these columns, have no traces."""
    if "trace" not in names and (format == "databricks" or not find_format(format).is_rows):
        logged = payload_table(tuple(names))
        advice = f". This is {logged[0].summary}: eval_set_from_inference_table reads it" if logged is not None else ""
        raise EvalSetError(f"no traces found: expected a `trace` column, or one trace (info, data) a row{advice}")


def validate_traces(
    traces: Any,
    *,
    values: bool = True,
    columns: ColumnNames = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    labels: str | None = None,
) -> Report:
    """The report on rows that consist of traces. Raises EvalSetError if there are no traces in `traces`."""
    source, labeled = _open_traces(traces, columns), labels is not None
    source = source.read_as(advised=True, outputs="provided", show_values=values, select=select, ignore=ignore)
    report = check_source(source, labeled=labeled)
    if report.row_count:
        _require_traces(report.format, run_of(report).read_schema.names)
    return report


def build_from_traces(traces: Any, columns: ColumnNames, **options: Any) -> EvalSetBuild[pd.DataFrame]:
    """A dataset that is built from traces as from a logged table. Raises EvalSetError if it cannot run."""
    from agent_eval_schema.inference_tables.build import eval_set_from_inference_table

    return eval_set_from_inference_table(_open_traces(traces, columns), **options)


def _open_traces(traces: Any, columns: ColumnNames = None) -> Source:
    import pandas as pd

    if columns is not None:
        return open_source(traces, "traces", columns)
    if isinstance(traces, pd.Series | np.ndarray):
        traces = traces.tolist()
    is_json = isinstance(traces, str) and traces.lstrip()[:1] in ("{", "[", '"')
    if isinstance(traces, pd.DataFrame | os.PathLike) or (isinstance(traces, str) and not is_json):
        return open_source(traces)
    if is_json or isinstance(traces, Mapping) or hasattr(traces, "to_dict"):
        traces = [traces]
    if isinstance(traces, list | tuple):
        if traces and all(is_document(structured(t)) for t in traces):  # the spans of a trace may be in several
            documents = map(structured, traces)
            return open_source([row for d in documents for row in (d if isinstance(d, list) else [d])])
        are_rows = [isinstance(t, Mapping) and "trace" in t and "info" not in t for t in traces]
        return open_source([t if is_row else {"trace": t} for t, is_row in zip(traces, are_rows, strict=True)])
    return open_source(traces, "traces")


def write_eval_set(data: EvalSetLike, path: str | os.PathLike[str]) -> int:
    """Write the rows of an evaluation dataset to a file.

    The file is written completely or not at all.

    Parameters
    ----------
    data : EvalSetLike
        A pandas DataFrame, an Arrow table, a list of dicts or a Spark DataFrame, such as the result of
        `normalize_eval_set` or `prepare_for_evaluate`. The index of a DataFrame is not written; `frame.reset_index()`
        makes a column of it.
    path : str or os.PathLike
        The path or URL of the file, or `"-"` for JSON Lines on standard output. The file extension selects the kind:
        `.parquet`, `.jsonl`, `.json`, `.csv` (also compressed: `.jsonl.gz`, `.csv.zst`), or `.delta` for a new Delta
        folder. The executors of Spark write a new folder, `.parquet` or `.delta`. In Parquet and CSV, columns that hold
        lists or objects are written as JSON text.

    Returns
    -------
    int
        The number of rows that were written.

    Raises
    ------
    EvalSetError
        The file extension is not supported, the file cannot be written, two columns have the same name, the data has
        documents of two formats, or a cell cannot be written as data.

    Warns
    -----
    ValuesAsTextWarning
        Values that are not text are read back as text from a file of this kind.

    See Also
    --------
    Report.write : Stream the normalized rows of a large file.
    normalize_eval_set : Return the canonical rows.

    Examples
    --------
    >>> from agent_eval_schema import validate_eval_set, write_eval_set
    >>> write_eval_set([{"request": "What is Delta Lake?", "response": "A table format."}], "rows.parquet")
    1
    >>> validate_eval_set("rows.parquet").ok
    True
    """
    out = path_of(path)
    source = open_source(data)
    if is_spark(source.data):
        from agent_eval_schema.io.spark import require_new, write_table

        require_new(out)
        return write_table(source.data, out)
    require_writable(out)
    require_one_format(source, out)
    if source.repeated_columns:
        raise EvalSetError(f"two columns are called {source.repeated_columns[0]!r}: only one could be written")
    settle({"": out}, {"the data": source})
    schema = schema_of(source)
    counts = TextCounts(schema, out)
    written = write_batches(out, counts.of(_whole(source)), schema)
    counts.warn()
    return written


def _whole(source: Source) -> Iterator[pa.RecordBatch]:
    """The batches of the source, none of which lacks a cell that could not be read."""
    start = 0
    for batch in source.batches():
        for row, (problem, *_) in reading_problems(batch).items():
            place = f", column {problem.column}" if problem.column else ""
            raise EvalSetError(f"row {start + row}{place}: {problem.message}")
        start += batch.num_rows
        yield batch.select(own_columns(batch.schema))
