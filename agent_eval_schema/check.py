"""The check itself, top-down: validate_eval_set → check_stream → check_batch.

    data ──open_source──▶ batches of cells ──check_batch──▶ checked batches ──Fold──▶ Report

`check_batch` is pure and picklable: the same function serves a frame in a notebook, a file of any size and Spark's
mapInArrow. What needs the whole data set runs in the fold (fold.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.assemble import assemble
from agent_eval_schema.cells import free
from agent_eval_schema.collector import without_collector
from agent_eval_schema.engines.workers import check_with_workers, worth_workers
from agent_eval_schema.fold import Fold
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.frames import Source, is_absent, one_batch, open_source
from agent_eval_schema.issues import EvalSetError, InvalidEvalSet
from agent_eval_schema.metrics.support import metrics_of
from agent_eval_schema.plan import Plan
from agent_eval_schema.progress import Screen, notebook, progress
from agent_eval_schema.quoting import error_text, quoting
from agent_eval_schema.report import Report
from agent_eval_schema.rows import Rows
from agent_eval_schema.rules import chosen
from agent_eval_schema.rules.reading import INTERNAL
from agent_eval_schema.steps import OWN_STEPS, STEPS
from agent_eval_schema.unreadable import UNREADABLE

Outputs = Literal["auto", "provided", "generated"]


# ---------------------------------------------------------------------------------------------------------------------
# the public verbs


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

    `fix` applies the safe repairs first (repairs.py): another spelling of a key, role or column, a single document for
    a list, JSON text for an object. What cannot be repaired safely stays as it is; `data` is never changed.
    """
    if on_invalid not in ("raise", "keep", "drop"):
        raise EvalSetError(f"on_invalid must be raise, keep or drop, got {on_invalid!r}")
    source = open_source(data)
    if fix:
        from agent_eval_schema.repairing import repair

        source = repair(source, format=format, outputs=outputs).source
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
    from agent_eval_schema.convert import report_on_rows

    wanted = [m.name for m in metrics_of(system)]
    report = validate_eval_set(data, format=format, outputs=outputs)
    return report_on_rows(report, outputs).metric_support[wanted]


def words(given: Iterable[str]) -> tuple[str, ...]:
    """One name, or several."""
    return (given,) if isinstance(given, str) else tuple(given)


def check_source(
    source: Source,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    values: bool = True,
    jobs: int = 0,
    screen: Screen | None = None,
) -> Report:
    """The report on a source. A file is checked by `jobs` processes (0: one a core if the file is large). What takes
    long shows its progress on the screen, if there is one."""
    start = time.perf_counter()
    source = source.quoting(values)
    with progress(source, screen) as so_far:
        plan = make_plan(source, format, outputs, select, ignore, values)
        form = find_format(plan.format)
        source = form.prepare(source).quoting(values)
        fold = Fold(plan.codes, plan.outputs, source, values=values, origins=form.origins)
        for checked in _checked(source, plan, jobs):
            fold.add(checked)
            so_far.add(checked.num_rows)
    return Report(source, plan, fold, time.perf_counter() - start)


def _checked(source: Source, plan: Plan, jobs: int) -> Iterator[pa.RecordBatch]:
    if source.elsewhere is not None:
        return source.elsewhere.checked(plan)
    workers = jobs or worth_workers(source.name, source.stored_bytes)
    if source.name is None or source.repaired or source.in_order or workers == 1:
        return check_stream(source.batches(), plan)
    return check_with_workers(source, source.name, plan, workers)


# ---------------------------------------------------------------------------------------------------------------------
# plan


def make_plan(
    source: Source,
    format: str,
    outputs: str,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    values: bool = True,
) -> Plan:
    """Settle what "auto" means for this source. Reads as many batches as it takes to see an output."""
    if outputs not in ("auto", "provided", "generated"):
        raise EvalSetError(f"outputs must be provided, generated or auto, got {outputs!r}")
    codes = chosen(select, ignore)
    batches = source.batches()
    first = next(batches, None)
    chosen_format, reason = (find_format(format), "as asked") if format != "auto" else detect(first)
    if outputs == "auto":
        has_output = partial(_has_output, chosen_format.name)
        head = [] if first is None else [first]
        elsewhere = source.elsewhere
        found = elsewhere.any(has_output) if elsewhere else any(has_output(b) for b in chain(head, batches))
        outputs = "provided" if found else "generated"
    return Plan(chosen_format.name, outputs, source.nests, codes, reason=reason, values=values)


def _has_output(format: str, batch: pa.RecordBatch) -> bool:
    rows = find_format(format).read(batch)
    places = [i for i in map(rows.schema.get_field_index, ("response", "trace")) if i >= 0]
    return any(rows.column(i).null_count < rows.num_rows for i in places)


# ---------------------------------------------------------------------------------------------------------------------
# the kernel


Finish = Callable[[Rows, Plan], pa.RecordBatch]


def check_stream(batches: Iterable[pa.RecordBatch], plan: Plan, finish: Finish = assemble) -> Iterator[pa.RecordBatch]:
    """Check batch after batch, in order; the next one is read while this one is checked."""
    with ThreadPoolExecutor(1) as reader:
        source = iter(batches)
        coming = reader.submit(next, source, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield check_batch(batch, plan, finish)


def check_batch(batch: pa.RecordBatch, plan: Plan, finish: Finish = assemble) -> pa.RecordBatch:
    """Check the rows of a batch: a row-aligned batch of verdicts (and, if the plan asks, of normalised columns).

    A defect in a rule costs the row that it broke on, not the run: the batch is halved until the row is found. So
    `finish`, which makes the checked batch of judged rows, is called for all rows in order, but for part of them maybe;
    if it raises, it is called again for the same rows.
    """
    with quoting(plan.values):
        return _check_batch(batch, plan, finish)


def _check_batch(batch: pa.RecordBatch, plan: Plan, finish: Finish) -> pa.RecordBatch:
    rows: Rows | None = None
    try:
        with without_collector():
            rows = Rows(find_format(plan.format).read(batch), plan)
            for step in OWN_STEPS.get(plan.format, STEPS):
                step(rows)
            checked = finish(rows, plan)
            rows = None  # what it holds goes before the collector comes
            return checked
    except Exception as error:  # a defect of ours costs the row on which it breaks down, not the run
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            parts = (batch.slice(0, half), batch.slice(half))
            return _joined([_check_batch(part, plan, finish) for part in parts])
        return finish(_broken(rows or Rows(batch, plan), error), plan)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def _broken(rows: Rows, error: Exception) -> Rows:
    """The one row on which a rule broke down: it keeps the issues that were found before."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None and frame.tb_frame.f_globals.get("__name__") == __name__:
        frame = frame.tb_next
    name = frame.tb_frame.f_code.co_name if frame else "a rule"
    rows.log.add(INTERNAL, 0, None, f"`{name}` broke down: {type(error).__name__}: {error_text(error)}")
    rows.values, rows.derived = {}, None
    return rows
