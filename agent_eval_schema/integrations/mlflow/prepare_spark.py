"""A Spark DataFrame → the frame of an evaluator as a lazy DataFrame: rows are prepared where they are.

What a frame has depends on the whole table: a column that some row fills, an ID that every row has. So each part is
prepared behind two rows that represent the table (one with all that some row has, one with what every row has), which
are cut off again: the frames (frames.py) decide the same for every part, and as they do in memory.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.databricks import GUIDELINES_CONTEXT
from agent_eval_schema.formats.mlflow import is_test_case
from agent_eval_schema.formats.registry import find_format, require_rows
from agent_eval_schema.formats.shapes import as_text
from agent_eval_schema.integrations.mlflow.frames import (
    FRAMES,
    TRACE_STATE,
    Columns,
    Evaluator,
    Inputs,
    Omitted,
    columns_of,
    excluded,
    of_two_kinds,
    omits,
    omitted,
    read_by_frames,
    reduced,
)
from agent_eval_schema.io.source import Source
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.checked_run import with_invalid
from agent_eval_schema.validation.fill_from_traces import trace_texts
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import OnInvalid, Plan, make_plan
from agent_eval_schema.validation.report import InvalidEvalSetError
from agent_eval_schema.validation.spark_frames import CheckedFrame, Part, require_rows_apart
from agent_eval_schema.validation.validate import check_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CALL = {"tool_name": "t", "tool_input": {}}
_DOCUMENTS = [{"doc_uri": "d", "content": "t"}]
_FILLED: dict[str, Any] = {
    "request": {"messages": [{"role": "user", "content": "t"}]},
    "expected_facts": ["t"],
    "guidelines": {"guidelines": ["t"]},
    "expected_retrieved_context": _DOCUMENTS,
    "retrieved_context": _DOCUMENTS,
    "trace": "{}",
    "predicted_trajectory": [_CALL],
    "reference_trajectory": [_CALL],
    **dict.fromkeys(("input_token_count", "output_token_count", "total_token_count", "latency_seconds"), 1),
    "failure": False,
    **{name: {"t": "t"} for name in ("custom_expected", "tags", "inputs", "expectations")},
}
"""A value of each canonical column; of the others, a text."""


def prepare_frame(
    source: Source, evaluator: Evaluator, inputs: Inputs, on_invalid: OnInvalid
) -> tuple[DataFrame, str, str, str]:
    """As `prepare_for_evaluate`: the frame, and what to warn of. Raises EvalSetError if a row of the DataFrame is not a
    row of the dataset, and for test cases of MLflow's simulator, which are few."""
    require_rows_apart(source)
    plan = make_plan(source, complete=True)
    require_rows(plan.format)
    beside = evaluator == "mlflow.genai"  # which reads the traces itself
    plan = replace(plan, columns=True, beside_traces=beside, figures=not beside)
    checked, keep = CheckedFrame(source.data, source, plan), on_invalid == "keep"
    if on_invalid == "raise" and checked.invalid_count:
        raise InvalidEvalSetError(check_source(source, complete=True))
    total = checked.row_count if keep else checked.valid_count
    if not total:
        why = f"all {checked.row_count:,} are invalid: see spark_validate" if checked.row_count else "the data has none"
        raise EvalSetError(f"no row to evaluate: {why}")
    table = _table(checked, keep)
    mixed = ""
    asks_itself = plan.outputs == "generated" and inputs == "auto" and evaluator == "mlflow.genai"
    if asks_itself and table.get("inputs", [None, None])[1] is not None:
        cases = checked.frame(partial(_cases, plan, keep), pa.schema([("row", pa.int64())]))
        first = [row["row"] for row in cases.orderBy("row").limit(11).collect()]
        count = cases.count() if first else 0
        mixed = of_two_kinds(count, total, first)
        if mixed and on_invalid == "raise":
            raise InvalidEvalSetError(check_source(source, complete=True), mixed)
        if count == total:
            raise EvalSetError(
                "data: expected rows with questions, got test cases for MLflow's simulator of conversations: prepare "
                "them on the driver, `prepare_for_evaluate(df.toPandas())`"
            )
    names = FRAMES[evaluator](table, plan.outputs, inputs).columns
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in names])
    invalid = checked.invalid_count
    return (
        checked.frame(partial(_prepared, plan, keep, table, evaluator, inputs, schema), schema),
        excluded(invalid, checked.row_count, on_invalid, ": see spark_validate") if invalid else "",
        mixed,
        _reduced(checked, plan, keep, total, evaluator, inputs) if any(omits(evaluator, inputs)) else "",
    )


_TYPES = {f.name: f.type for f in ROW_SCHEMA if pa.types.is_primitive(f.type) or f.name == "tags"}
"""The types of columns that are not texts, or JSON texts."""


def _table(checked: CheckedFrame, keep: bool) -> Columns:
    """The two rows that represent the table."""
    some, every = checked.filled("some" if keep else "some_valid"), checked.filled("every" if keep else "every_valid")
    columns: Columns = {}
    for name in ROW_SCHEMA.names:
        if name in some:
            value = _FILLED.get(name, "t")
            columns[name] = [value, value if name in every else None]
    for name in {GUIDELINES_CONTEXT}.intersection(checked.beside.names):
        columns[name] = [["t"], None]
    columns[TRACE_STATE] = [None if trace is None else True for trace in columns.get("trace", (None, None))]
    return columns


# --- on the executors
def _rows(plan: Plan, keep: bool, part: Part) -> tuple[Columns, list[int]]:
    """The rows of a part that are evaluated, and their positions."""
    checked = with_invalid(check_batch(part.batch, plan), part.repeated(plan))
    valid = np.asarray(verdict(checked, "valid")).astype(bool)
    valid = np.ones_like(valid) if keep else valid
    columns = columns_of(pa.Table.from_batches([read_by_frames(checked).filter(pa.array(valid))]))
    if plan.beside_traces and any(state is not None for state in columns[TRACE_STATE]):
        columns["trace"] = list(compress(trace_texts(find_format(plan.format).read(part.batch)), valid))
    return columns, part.positions[valid].tolist()


def _prepared(
    plan: Plan, keep: bool, table: Columns, evaluator: Evaluator, inputs: Inputs, schema: pa.Schema, part: Part
) -> pa.Table:
    columns, rows = _rows(plan, keep, part)
    absent = [None] * len(rows)
    behind = {name: [*cells, *columns.get(name, absent)] for name, cells in table.items()}
    frame = FRAMES[evaluator](behind, plan.outputs, inputs).iloc[2:]
    arrays = [pa.array(map(_plain if f.type != pa.string() else as_text, frame[f.name]), f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _plain(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _cases(plan: Plan, keep: bool, part: Part) -> pa.Table:
    columns, rows = _rows(plan, keep, part)
    cases = [row for row, case in zip(rows, columns.get("inputs", rows), strict=True) if is_test_case(case)]
    return pa.table({"row": pa.array(cases, pa.int64())})


_OMITTED = pa.schema([("row", pa.int64()), ("is_chat", pa.bool_()), ("keys", pa.string())])


def _omitted(plan: Plan, keep: bool, part: Part) -> pa.Table:
    chats, others = omitted(*_rows(plan, keep, part))
    lines = [{"row": row, "is_chat": True} for row in chats]
    return pa.Table.from_pylist([*lines, *({"row": r, "keys": json.dumps(k)} for r, k in others.items())], _OMITTED)


def _reduced(checked: CheckedFrame, plan: Plan, keep: bool, total: int, evaluator: Evaluator, inputs: Inputs) -> str:
    frame = checked.frame(partial(_omitted, plan, keep), _OMITTED)

    def of(kind: str) -> Omitted:
        rows = frame.where(kind)
        first = rows.orderBy("row").limit(11).collect()
        keys = dict.fromkeys(chain.from_iterable(json.loads(row["keys"] or "[]") for row in first))
        return Omitted(int(rows.count()), [row["row"] for row in first], keys)

    return reduced(of("is_chat"), of("is_chat IS NULL"), total, evaluator, inputs)
