"""Validate a Spark DataFrame on its executors: only validation results are collected on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from agent_eval_schema.cells.notes import NOTE
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.column_names import ColumnNames
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.otel_traces import are_spans
from agent_eval_schema.formats.registry import InputFormat
from agent_eval_schema.io.spark import backticked, spark_schema, spark_source
from agent_eval_schema.rules import RULES, words
from agent_eval_schema.rules.dataset import MIXED_KINDS
from agent_eval_schema.text.choices import require_bool
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.checked_run import with_invalid
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Outputs, Plan, make_plan
from agent_eval_schema.validation.spark_frames import CheckedFrame, Part, kinds_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


VALID, ISSUES = "_valid", "_issues"
"""The columns of `spark_validate` in addition to those of the caller."""

ISSUE = pa.struct([(name, pa.string()) for name in ("code", "name", "severity", "column", "path", "message", "hint")])


def spark_validate(
    df: DataFrame,
    *,
    format: InputFormat = "auto",
    outputs: Outputs = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    columns: ColumnNames = None,
    show_values: bool = True,
    keep: Iterable[str] = ("request_id",),
) -> DataFrame:
    """Validate every row of a Spark DataFrame on its executors.

    Rows are compared by keys: a row with the ID of an earlier row is invalid (AE901), and one with its question and a
    different ground truth has a warning (AE902). Where a platform loads rows of one kind per file, the rows of the less
    frequent kind have a warning (AE909).

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The evaluation dataset.
    format : FormatName or "auto", default "auto"
        The format of the data. `"auto"` detects it from the column names.
    outputs : {"auto", "provided", "generated"}, default "auto"
        Whether the agent's outputs are in the data, as in `validate_eval_set`. `"auto"` reads the data up to the first
        response or trace.
    select : iterable of str, default ()
        Rules to apply: codes, prefixes of codes or names. Empty means all rules.
    ignore : iterable of str, default ()
        Rules to disable, in the same notation.
    columns : mapping of str to str, {"auto"} or None, default None
        Canonical names of columns of the data, as in `validate_eval_set`.
    show_values : bool, default True
        If False, omit cell values from messages, hints and paths.
    keep : iterable of str, default ("request_id",)
        Columns of `df` to include in the result; names that `df` does not have are ignored.

    Returns
    -------
    pyspark.sql.DataFrame
        A lazy DataFrame with one row per row: the columns of `keep`, `_valid` (boolean) and `_issues` (array of structs
        with the string fields code, name, severity, column, path, message and hint). One job settles which rows share
        an ID or a question.

    Raises
    ------
    EvalSetError
        An option is not one of the allowed values, a row of the DataFrame is not a row of the dataset (spans of
        OpenTelemetry, documents), or `keep` contains `_valid` or `_issues`.

    See Also
    --------
    validate_eval_set : Return a Report, with the issues of the dataset as a whole.

    Examples
    --------
    >>> from agent_eval_schema import spark_validate
    >>> rows = [("q1", "Hi", "Hello!"), ("q2", " ", "Hello!")]
    >>> validated = spark_validate(spark.createDataFrame(rows, ["request_id", "request", "response"]))
    >>> issues = validated.where("not _valid").selectExpr("request_id", "inline(_issues)")
    >>> issues.select("request_id", "code").collect()
    [Row(request_id='q2', code='AE202')]
    """
    require_bool("show_values", show_values)
    if columns is None and are_spans(df.columns):
        raise EvalSetError(
            "df: expected a trace per row, got a span per row: collect them first, "
            '`df.groupBy("trace_id").agg(to_json(collect_list(struct("*"))).alias("trace"))`, '
            "or validate the rows of `eval_set_from_traces(df)`"
        )
    source = open_source(
        spark_source(df),
        "df",
        columns,
        format=format,
        outputs=outputs,
        select=select,
        ignore=ignore,
        show_values=show_values,
    )
    plan = make_plan(source)
    names = [name for name in dict.fromkeys(words(keep)) if name in df.columns]
    for name in (VALID, ISSUES):
        if name in names:
            both = f"{VALID} and {ISSUES}"
            raise EvalSetError(
                f"the validation result is written to {both}: rename the column {name} or do not keep it"
            )
    own = [field for name in names for field in df.schema.fields if field.name == name]
    fields = [f"{backticked(field.name)} {field.dataType.simpleString()}" for field in own]
    issues = spark_schema(pa.schema([(ISSUES, pa.list_(ISSUE))]))[ISSUES].dataType.simpleString()
    schema = ", ".join([*fields, f"{VALID} boolean", f"{ISSUES} {issues}"])
    checked = CheckedFrame(df, source, plan)
    return checked.frame(partial(_verdicts, plan, names, checked.fewer), schema)


def _verdicts(plan: Plan, names: Sequence[str], fewer: tuple[bool, str] | None, part: Part) -> pa.Table:
    checked = with_invalid(check_batch(part.batch, plan), part.repeated(plan))
    lists = verdict(checked, "issues")
    compared = {row: notes for row in part.found if (notes := part.notes(plan, checked, row))}
    if fewer is not None:
        kind, message = fewer
        note = dict(zip(NOTE.names, (MIXED_KINDS.code, None, None, message, MIXED_KINDS.hint), strict=True))
        for row in (row for row, has in enumerate(kinds_in(checked, plan).to_pylist()) if has is kind):
            if row not in part.repeated(plan):
                compared[row] = [*compared.get(row, ()), note]
    if compared:
        cells = lists.to_pylist()
        for row, notes in compared.items():
            cells[row] = [*(cells[row] or ()), *notes]
        lists = pa.array(cells, lists.type)
    arrays = [*map(part.given.column, names), verdict(checked, "valid"), _issues(lists)]
    return pa.Table.from_arrays(arrays, names=[*names, VALID, ISSUES])


def _issues(lists: pa.ListArray) -> pa.Array:
    """The notes with the name and the severity that follow from their codes."""
    notes = lists.flatten()
    codes = notes.field("code").to_pylist()
    more = {
        "name": pa.array([RULES[code].name for code in codes], pa.string()),
        "severity": pa.array([str(RULES[code].severity) for code in codes], pa.string()),
    }
    arrays = [more[f.name] if f.name in more else notes.field(f.name) for f in ISSUE]
    return pa.ListArray.from_arrays(lists.offsets, pa.StructArray.from_arrays(arrays, fields=list(ISSUE)))
