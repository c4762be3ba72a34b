"""An evaluation set in any form → exactly the frame that an evaluator takes.

    mlflow.genai       inputs (what predict_fn takes), outputs, expectations, trace, tags        mlflow.genai.evaluate
    databricks-agent   the canonical columns that have a value                                   mlflow.evaluate
    mlflow.evaluate    inputs, predictions, targets as texts; what our metrics read              mlflow.models.evaluate
    vertex             prompt, reference, response, reference_trajectory, predicted_trajectory   EvalTask

Nothing that kills an evaluator is left: every cell is plain Python (no numpy, no NaN), every object is an object,
expectations hold only the keys that are there, traces are what mlflow reads. Needs no mlflow. Pitfalls: mlflow.md.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.decoding import chat
from agent_eval_schema.formats.mlflow import EXPECTED_COLUMNS, expectations_of
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format, require_rows
from agent_eval_schema.io.arrow import canonical_values
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import EvalSetError, Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.gc_pause import gc_paused
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.traces.encode import made_of, rewritten
from agent_eval_schema.validation.checked_batch import FIELDS, rows_of, verdict
from agent_eval_schema.validation.fill_from_traces import trace_texts
from agent_eval_schema.validation.kernel import check_stream
from agent_eval_schema.validation.plan import Outputs, make_plan
from agent_eval_schema.validation.report import InvalidEvalSet, Report
from agent_eval_schema.validation.report_builder import ReportBuilder
from agent_eval_schema.validation.validate import check_source

Target = Literal["mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex"]
Inputs = Literal["auto", "messages", "query", "question"]

EVALUATORS: tuple[Target, ...] = ("mlflow.genai", "databricks-agent", "mlflow.evaluate", "vertex")


class RowsSetAside(UserWarning):
    """Invalid rows were left out of a prepared frame; the report on the data says why."""


class Prepared(Struct, frozen=True):
    """A frame for an evaluator, whose index holds the 0-based positions of the rows in the input; the report on all of
    the input; and the positions of the rows that are not in the frame."""

    frame: pd.DataFrame
    report: Report
    set_aside: list[int]


def prepare_for_evaluate(
    data: Any,
    *,
    target: Target = "mlflow.genai",
    inputs: Inputs = "auto",
    on_invalid: Literal["set_aside", "raise"] = "set_aside",
    format: str = "auto",
    outputs: Outputs = "auto",
) -> pd.DataFrame:
    """The rows of an evaluation set as the frame that an evaluator takes.

    Parameters
    ----------
    data
        Anything that `validate_eval_set` takes, but files of CES, whose rows are no evaluation rows (their turns are:
        `convert_eval_set(data, target="databricks").data`). It is not changed.
    target
        `"mlflow.genai"` for mlflow.genai.evaluate, `"databricks-agent"` for
        `mlflow.evaluate(model_type="databricks-agent")`, `"mlflow.evaluate"` for `mlflow.models.evaluate` with a model
        type of texts and `mlflow_metrics`, `"vertex"` for the trajectory metrics.
    inputs
        What `inputs` of mlflow.genai hold, which is how predict_fn is called: `"messages"` for
        `{"messages": [...]}`, `"query"` for `{"query": ..., "history": [...]}`, `"question"` for
        `{"question": ...}`. `"auto"` keeps the objects of a frame that has `inputs`, else messages.
    on_invalid
        Invalid rows are left out, which a RowsSetAside warning says (`"set_aside"`), or InvalidEvalSet is raised.
    format, outputs
        As in `validate_eval_set`. With outputs `"generated"` the frame has neither outputs nor traces.

    Returns
    -------
    pandas.DataFrame
        One line a valid row, in order; the index holds the positions of the rows in the input. To keep it in a file
        use `write_eval_set`: objects of many shapes in one column are nothing for `DataFrame.to_parquet`.

    Raises
    ------
    EvalSetError
        An unknown target or option, a file of CES, or no valid row at all.
    InvalidEvalSet
        There are invalid rows, and `on_invalid="raise"`.
    """
    if on_invalid not in ("set_aside", "raise"):
        raise EvalSetError(f"on_invalid must be set_aside or raise, got {on_invalid!r}")
    source = open_source(data)
    prepared = _prepare(source, target, inputs, format, outputs)
    if on_invalid == "raise" and not prepared.report.ok:
        raise InvalidEvalSet(check_source(source, format=format, outputs=outputs))
    if prepared.set_aside:
        message = (
            f"{len(prepared.set_aside):,} of {prepared.report.row_count:,} rows are invalid and left out, the first at "
            f"position {prepared.set_aside[0]}: {_says_why(format, outputs)}"
        )
        warnings.warn(message, RowsSetAside, stacklevel=2)
    return prepared.frame


def prepare(
    data: Any,
    *,
    target: Target = "mlflow.genai",
    inputs: Inputs = "auto",
    format: str = "auto",
    outputs: Outputs = "auto",
) -> Prepared:
    """As `prepare_for_evaluate`, with the report and the positions of the rows that were left out."""
    source = open_source(data)
    prepared = _prepare(source, target, inputs, format, outputs)
    if target in _HAND_ON_TRACES and any(line.field == "trace" for line in prepared.report.presence):
        return replace(prepared, report=check_source(source, format=format, outputs=outputs))
    return prepared


_HAND_ON_TRACES = ("mlflow.genai",)
"""The targets for which a trace is read by the evaluator, not here."""


def _prepare(source: Source, target: Target, inputs: Inputs, format: str, outputs: Outputs) -> Prepared:
    """As `prepare`; the report lacks the figures of traces that are handed on."""
    if target not in EVALUATORS:
        raise EvalSetError(f"no target {target!r}: use one of {', '.join(EVALUATORS)}")
    if inputs not in _INPUTS:
        raise EvalSetError(f"inputs must be one of {', '.join(_INPUTS)}, got {inputs!r}")
    plan = make_plan(source, format, outputs)
    require_rows(plan.format)
    form = find_format(plan.format)
    builder = ReportBuilder(plan.codes, plan.outputs, source, origins=form.origins)
    beside = target in _HAND_ON_TRACES
    kept = []
    with gc_paused():
        for checked in check_stream(source.batches(), replace(plan, columns=True, beside_traces=beside)):
            builder.add(checked)
            kept.append(_kept(checked))
        report = Report(source, plan, builder)
        valid = report.valid_mask
        if not valid.any():
            raise EvalSetError(f"there is no row to evaluate: {_why_none(report, format, outputs)}")
        columns = _columns(kept, valid)
    if beside and any(state is not None for state in columns[TRACE_STATE]):
        plain = all(columns[TRACE_STATE])
        columns["trace"] = _trace_cells(source, form.read, valid, plain)
    given = _given_inputs(source, valid) if inputs == "auto" and report.format == "mlflow" else None
    frame = _DRAW[target](columns, plan.outputs, inputs, given)
    frame.index = pd.Index(np.flatnonzero(valid), name="row")
    return Prepared(frame, report, np.flatnonzero(~valid).tolist())


def _says_why(format: str, outputs: str) -> str:
    options = {"format": format, "outputs": outputs}
    given = "".join(f', {name}="{option}"' for name, option in options.items() if option != "auto")
    return f"validate_eval_set(data{given}) says why"


def _why_none(report: Report, format: str, outputs: str) -> str:
    if not report.row_count:
        return "the data has none"
    errors = {code: n for code, n in report.counts.items() if RULES[code].severity is Severity.ERROR}
    code = max(errors, key=errors.__getitem__)
    count = f"{report.invalid_count:,} of {report.row_count:,} are invalid"
    return f"{count} (most often {code} {RULES[code].name}): {_says_why(format, outputs)}"


_Columns = dict[str, Any]
"""A list of values a column; but a series where a column of the input is handed on."""
_Flags = np.ndarray[Any, Any]

TRACE_STATE = "__trace__"
"""The column that says of each row's trace whether mlflow reads it as it is (None: there is no trace)."""


def _kept(checked: pa.RecordBatch) -> pa.RecordBatch:
    """The canonical columns of checked rows, and the states of their traces."""
    canonical = rows_of(checked).select(list(COLUMNS))
    return canonical.append_column(TRACE_STATE, verdict(checked, "mlflow_reads"))


def _columns(kept: list[pa.RecordBatch], valid: _Flags) -> _Columns:
    """The columns of the valid rows as Python values; a canonical column without any value is not there."""
    rows = pa.Table.from_batches(kept)
    rows = rows if valid.all() else rows.filter(pa.array(valid))
    found = {n: _values(rows.column(n), FIELDS[n]) for n in COLUMNS if rows.column(n).null_count < len(rows)}
    return {**found, TRACE_STATE: rows.column(TRACE_STATE).to_pylist()}


def _values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """The values of a normalised column; NaN is absent, too."""
    values = canonical_values(column, field)
    return [None if v != v else v for v in values] if pa.types.is_floating(field.type) else values


def _valid(values: list[Any], valid: _Flags) -> list[Any]:
    return values if valid.all() else list(itertools.compress(values, valid))


def _trace_cells(source: Source, read: Callable[[pa.RecordBatch], pa.RecordBatch], valid: _Flags, plain: bool) -> Any:
    """The JSON texts of the traces; the very texts of a frame, which are not copied.

    Of a text column of which all cells are `plain` traces of today's mlflow no Python text is made: what was read from
    Parquet stays in Arrow.
    """
    given = source.original("trace") if source.original is not None and source.kind == "pandas" else None
    if plain and given is not None and isinstance(given.dtype, pd.StringDtype):
        return given[valid].reset_index(drop=True)
    texts = given.tolist() if given is not None else []
    if set(map(type, texts)) != {str}:
        texts = [t for b in source.batches() for t in trace_texts(read(b))]
    return _valid(texts, valid)


def _given_inputs(source: Source, valid: _Flags) -> list[Any]:
    """The objects in a column `inputs`, as they came; None where it holds something else."""
    found: list[Any] = []
    for batch in source.batches():
        cells = read_cells(batch, "inputs")
        texts = cells.texts if cells is not None else [None] * batch.num_rows
        found.extend(None if t is None else _object(t) for t in texts)
    return _valid(found, valid)


def _object(text: str) -> dict[str, Any] | None:
    value = jsontext.parse_leniently(text)
    value = jsontext.parse_leniently(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) and value else None


# ---------------------------------------------------------------------------------------------------------------------
# mlflow.genai
def _for_genai(columns: _Columns, outputs: str, inputs: Inputs, given: list[Any] | None) -> pd.DataFrame:
    requests = columns["request"]
    shape = _INPUTS[inputs]
    made = [shape(r) for r in requests]
    frame: _Columns = {"inputs": made if given is None else [g or m for g, m in zip(given, made, strict=True)]}
    if outputs == "provided":
        frame["outputs"] = columns.get("response", [None] * len(requests))
    expectations = list(_expectations(columns, len(requests)))
    if any(expectations):
        frame["expectations"] = expectations
    if outputs == "provided" and any(name in columns for name in _NEED_TRACE):
        frame["trace"] = columns["trace"] if all(columns[TRACE_STATE]) else list(_traces(columns, len(requests)))
    if "tags" in columns:
        frame["tags"] = [{k: t for k, t in (v or {}).items() if t is not None} for v in columns["tags"]]
    if "request_id" in columns and None not in columns["request_id"]:
        frame["request_id"] = columns["request_id"]
    return _frame(frame)


def _messages(request: dict[str, Any]) -> dict[str, Any]:
    return request


def _query(request: dict[str, Any]) -> dict[str, Any]:
    """The last message, of whatever role, since an app is called with what it is to answer."""
    *history, last = request["messages"]
    return {"query": chat.join_text(last.get("content")), "history": history}


def _question(request: dict[str, Any]) -> dict[str, Any]:
    """The newest question alone; a chat that led to it has no place here."""
    return {"question": _query(request)["query"]}


_INPUTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "auto": _messages,
    "messages": _messages,
    "query": _query,
    "question": _question,
}

_NEED_TRACE = ("trace", "retrieved_context", "predicted_trajectory", "session_id")
"""Columns that the scorers of mlflow look for in a trace only."""


def _expectations(columns: _Columns, size: int) -> Iterator[dict[str, Any]]:
    names = [n for n in ("custom_expected", *EXPECTED_COLUMNS) if n in columns]
    for row in range(size if names else 0):
        yield expectations_of({n: columns[n][row] for n in names})


def _traces(columns: _Columns, size: int) -> Iterator[str]:
    """A trace for every row, as mlflow reads it: all have one, or evaluate dies."""
    start = time.time_ns()
    given = columns.get("trace", [None] * size)
    for row, (text, plain) in enumerate(zip(given, columns[TRACE_STATE], strict=True)):
        if text is not None and plain:
            yield text
            continue
        found = rewritten(text) if text is not None else None
        yield found or made_of({n: v[row] for n, v in columns.items()}, f"row {row} of {start}", start + row)


# ---------------------------------------------------------------------------------------------------------------------
# the others
_AGENT_COLUMNS = (
    *("request_id", "request", "response", "expected_response", "expected_facts", "guidelines"),
    *("expected_retrieved_context", "retrieved_context", "trace", "custom_expected"),
)
_OUTPUTS = ("response", "retrieved_context", "trace")


def _for_databricks_agent(columns: _Columns, outputs: str, _: Inputs, __: list[Any] | None) -> pd.DataFrame:
    """The documented input columns, those that have a value; what the app will make is left out."""
    names = [n for n in _AGENT_COLUMNS if n in columns and not (outputs == "generated" and n in _OUTPUTS)]
    return _frame({n: columns[n] for n in names})


_MEASURED = (
    *("retrieved_context", "expected_retrieved_context", "predicted_trajectory", "reference_trajectory"),
    *("input_token_count", "output_token_count", "total_token_count", "latency_seconds", "failure"),
)
"""The columns that our metrics read (metrics.py)."""


def _for_mlflow_evaluate(columns: _Columns, outputs: str, _: Inputs, __: list[Any] | None) -> pd.DataFrame:
    """Texts for mlflow's own metrics; targets only if every row has one, as these compare all rows."""
    frame: _Columns = {"inputs": [_query(r)["query"] for r in columns["request"]]}
    if outputs == "provided":
        frame["predictions"] = ["" if v is None else v for v in columns.get("response", [None] * len(frame["inputs"]))]
    if None not in columns.get("expected_response", [None]):
        frame["targets"] = columns["expected_response"]
    frame.update({n: columns[n] for n in _MEASURED if n in columns})
    return _frame(frame)


def _for_vertex(columns: _Columns, outputs: str, _: Inputs, __: list[Any] | None) -> pd.DataFrame:
    renamed = {"response": "response", "expected_response": "reference"}
    frame: _Columns = {"prompt": [_query(r)["query"] for r in columns["request"]]}
    frame.update({name: columns[column] for column, name in renamed.items() if column in columns})
    for name in ("reference_trajectory", "predicted_trajectory"):
        if name in columns:
            frame[name] = columns[name]
    made = ("response", "predicted_trajectory") if outputs == "generated" else ()
    return _frame({n: v for n, v in frame.items() if n not in made})


_DRAW: dict[str, Callable[[_Columns, str, Inputs, list[Any] | None], pd.DataFrame]] = {
    "mlflow.genai": _for_genai,
    "databricks-agent": _for_databricks_agent,
    "mlflow.evaluate": _for_mlflow_evaluate,
    "vertex": _for_vertex,
}


def _frame(columns: _Columns) -> pd.DataFrame:
    """Objects as they are: pandas must not turn None into NaN, or texts into its own kind."""
    series = {n: v if isinstance(v, pd.Series) else _objects(v) for n, v in columns.items()}
    return pd.DataFrame(series)


def _objects(values: list[Any]) -> pd.Series[Any]:
    # numpy looks into each object of a list, but not of an iterator
    return pd.Series(np.fromiter(values, object, len(values)), dtype="object")
