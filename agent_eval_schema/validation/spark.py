"""Validate a Spark DataFrame on its executors: only validation results are collected on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from agent_eval_schema.io.spark import Stream, backticked, ddl_of, in_python, named, plainly_named, spark_source
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.rules import RULES, words
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan, make_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


VALID, ISSUES = "_valid", "_issues"
"""The columns of `spark_validate` beside those of the caller."""

ISSUE = pa.struct([(name, pa.string()) for name in ("code", "name", "severity", "column", "path", "message", "hint")])


def spark_validate(
    df: DataFrame,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    values: bool = True,
    keep: Iterable[str] = ("request_id",),
) -> DataFrame:
    """Check every row of a Spark DataFrame on its executors: a DataFrame with a line a row, lazily.

    Its columns are those of `df` that `keep` names (as far as there are such), `_valid`, and `_issues`: an array of
    structs (code, name, severity, column, path, message, hint). `_issues` of all rows as lines of their own:
    `spark_validate(df).selectExpr("request_id", "inline(_issues)")`; the invalid rows, whole:
    `spark_validate(df, keep=df.columns).where("not _valid")`.

    The options are those of `validate_eval_set`, which takes a Spark DataFrame too and gives the Report, with the rules
    that compare rows (AE9). With `outputs="auto"` the data is looked through for a response or a trace, as far as the
    first one.

    Raises EvalSetError for an unknown option.
    """
    plan = make_plan(spark_source(df), format, outputs, words(select), words(ignore), values)
    kept = [name for name in dict.fromkeys(words(keep)) if name in df.columns]
    for name in (VALID, ISSUES):
        if name in kept:
            raise EvalSetError(
                f"the verdict is written to {VALID} and {ISSUES}: rename the column {name} or do not keep it"
            )
    fields = [
        f"{backticked(f.name)} {f.dataType.simpleString()}" for n in kept for f in df.schema.fields if f.name == n
    ]
    schema = ", ".join([*fields, f"{VALID} boolean", f"{ISSUES} {ddl_of(pa.list_(ISSUE))}"])
    return in_python(plainly_named(df), partial(_verdicts, plan, df.columns, kept), schema)


def _verdicts(plan: Plan, names: Sequence[str], kept: Sequence[str], batches: Stream) -> Stream:
    for batch in named(names, batches):
        checked = check_batch(batch, plan)
        arrays = [
            *(batch.column(name) for name in kept),
            verdict(checked, "valid"),
            _issues(verdict(checked, "issues")),
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=[*kept, VALID, ISSUES])


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
