"""The check itself, top-down: validate_eval_set → check_stream → check_batch.

    data ──open_source──▶ batches of cells ──check_batch──▶ checked batches ──Fold──▶ Report

`check_batch` is pure and picklable: the same function serves a frame in a notebook, a file of any size and Spark's
mapInArrow. What needs the whole data set runs in the fold (report.py).
"""

from __future__ import annotations

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Struct

from agent_eval_schema import jsontext
from agent_eval_schema.cells import CANONICAL_CELLS, JSON_CELLS, is_hidden
from agent_eval_schema.decoding import FAILED, Values
from agent_eval_schema.documents import DocumentColumn
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.frames import Source, is_absent, one_batch, open_source
from agent_eval_schema.issues import EvalSetError, InvalidEvalSet, IssueLog, Severity
from agent_eval_schema.metrics.catalog import BIT
from agent_eval_schema.metrics.support import metrics_of
from agent_eval_schema.model import COLUMNS, JSON_COLUMNS, ROW_SCHEMA, ToolCall
from agent_eval_schema.report import Fold, Report
from agent_eval_schema.request import canonical_request, request_key
from agent_eval_schema.rows import STEPS, Rows
from agent_eval_schema.rules import RULES, chosen
from agent_eval_schema.rules.reading import INTERNAL
from agent_eval_schema.uris import nearness
from agent_eval_schema.verdict import VERDICT

Outputs = Literal["auto", "provided", "generated"]


class Plan(Struct, frozen=True):
    """How a data set is checked: names only, so that it can be pickled.

    `columns` asks for the normalised columns too; without them a check only gives verdicts.
    """

    format: str
    outputs: str
    nests: bool
    codes: frozenset[str]
    columns: bool = False
    reason: str = ""


# ---------------------------------------------------------------------------------------------------------------------
# the public verbs


def validate_eval_set(
    data: Any,
    *,
    format: str = "auto",
    outputs: Outputs = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Report:
    """Check every row of an evaluation set; say what is wrong, where, how to mend it, and what can be measured.

    Parameters
    ----------
    data
        A pandas frame, an Arrow table, batch or reader, a list of dicts, or the path of a JSONL, JSON, CSV or Parquet
        file. It is not changed.
    format
        The form that the data has (`"databricks"`, `"search_traces"`, `"traces"`); `"auto"` looks at the columns.
    outputs
        `"provided"`: response or trace is required on every row. `"generated"`: the app will be run on the requests.
        `"auto"`: provided if any row has a response or a trace.
    select, ignore
        Codes (`"AE206"`), prefixes (`"AE2"`) or names of the rules to apply, or not to.

    Returns
    -------
    Report
        The verdict; it never raises for what a row holds.

    Raises
    ------
    EvalSetError
        The check could not run: no such file, not a table, an unknown option.
    """
    return check_source(open_source(data), format=format, outputs=outputs, select=_words(select), ignore=_words(ignore))


def normalize_eval_set(
    data: Any,
    *,
    format: str = "auto",
    outputs: Outputs = "auto",
    on_invalid: Literal["raise", "keep", "drop"] = "raise",
) -> Any:
    """The canonical rows of an evaluation set, in the same kind of container (a frame for a path).

    Requests become `{"messages": [...]}`, what a trace says fills absent cells, unknown columns are carried along.
    Invalid rows raise InvalidEvalSet (its `report` says why), are kept with what could be read, or dropped; say
    `"drop"` only if you look at the report as well.
    """
    if on_invalid not in ("raise", "keep", "drop"):
        raise EvalSetError(f"on_invalid must be raise, keep or drop, got {on_invalid!r}")
    report = validate_eval_set(data, format=format, outputs=outputs)
    if on_invalid == "raise" and not report.ok:
        raise InvalidEvalSet(report)
    return _same_kind(report, data, report.valid_mask if on_invalid == "drop" else None)


def _same_kind(report: Report, data: Any, mask: np.ndarray[Any, Any] | None) -> Any:
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        table = report.to_arrow()
        table = table if mask is None else table.filter(pa.array(mask))
        if isinstance(data, pa.RecordBatchReader):
            return table.to_reader()
        return one_batch(table) if isinstance(data, pa.RecordBatch) else table
    frame = report.rows
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

    `system` is `"databricks"`, `"mlflow"`, `"vertex"` or `"all"`. An invalid row supports nothing.
    """
    wanted = [m.name for m in metrics_of(system)]
    return validate_eval_set(data, format=format, outputs=outputs).metric_support[wanted]


def _words(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def check_source(
    source: Source,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    jobs: int = 1,
) -> Report:
    """The report on a source; with `jobs`, batches are checked in that many processes."""
    plan = make_plan(source, format, outputs, select, ignore)
    fold = Fold(plan.codes, plan.outputs, source)
    batches = source.batches()
    for checked in check_stream(batches, plan) if jobs <= 1 else check_in_processes(batches, plan, jobs):
        fold.add(checked)
    return Report(source, plan, fold)


# ---------------------------------------------------------------------------------------------------------------------
# plan


def make_plan(
    source: Source, format: str, outputs: str, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()
) -> Plan:
    """Settle what "auto" means for this source. Reads as many batches as it takes to see an output."""
    if outputs not in ("auto", "provided", "generated"):
        raise EvalSetError(f"outputs must be provided, generated or auto, got {outputs!r}")
    codes = chosen(select, ignore)
    batches = source.batches()
    first = next(batches, None)
    chosen_format, reason = (find_format(format), "as asked") if format != "auto" else detect(first)
    if outputs == "auto":
        head = [] if first is None else [first]
        outputs = "provided" if _have_outputs(chain(head, batches), chosen_format.read) else "generated"
    return Plan(chosen_format.name, outputs, source.nests, codes, reason=reason)


def _have_outputs(batches: Iterable[pa.RecordBatch], read: Callable[[pa.RecordBatch], pa.RecordBatch]) -> bool:
    for batch in batches:
        rows = read(batch)
        for at in map(rows.schema.get_field_index, ("response", "trace")):
            if at >= 0 and rows.column(at).null_count < rows.num_rows:
                return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# the kernel


def check_stream(batches: Iterable[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """Check batch after batch, in order; the next one is read while this one is checked."""
    with ThreadPoolExecutor(1) as reader:
        source = iter(batches)
        coming = reader.submit(next, source, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield check_batch(batch, plan)


def check_in_processes(batches: Iterable[pa.RecordBatch], plan: Plan, jobs: int) -> Iterator[pa.RecordBatch]:
    """The same in several processes: batches go out ahead of the results, which come back in order."""
    # spawn: Arrow's threads do not survive a fork
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: deque[Future[pa.RecordBatch]] = deque()
        for batch in batches:
            waiting.append(pool.submit(check_batch, batch, plan))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def check_batch(batch: pa.RecordBatch, plan: Plan) -> pa.RecordBatch:
    """Check the rows of a batch: a row-aligned batch of verdicts (and, if the plan asks, of normalised columns).

    A defect in a rule costs the row that it broke on, not the run: the batch is halved until the row is found.
    """
    rows = _read_rows(batch, plan)
    try:
        with _without_collector():
            for step in STEPS:
                step(rows)
            return _assemble(rows, plan)
    except Exception as error:
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            parts = [check_batch(batch.slice(0, half), plan), check_batch(batch.slice(half), plan)]
            return _joined(parts)
        return _broken(rows, plan, error)


@contextmanager
def _without_collector() -> Iterator[None]:
    """A batch makes no reference cycles, only many objects that live until its end: looking for cycles among them again
    and again took a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_rows(batch: pa.RecordBatch, plan: Plan) -> Rows:
    return Rows(find_format(plan.format).read(batch), plan.format, plan.outputs, plan.nests)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def _broken(rows: Rows, plan: Plan, error: Exception) -> pa.RecordBatch:
    """The one row on which a rule broke down: it keeps the issues that were found before."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None and frame.tb_frame.f_globals.get("__name__") == __name__:
        frame = frame.tb_next
    name = frame.tb_frame.f_code.co_name if frame else "a rule"
    rows.log.add(INTERNAL, 0, None, f"`{name}` broke down: {type(error).__name__}: {error}")
    rows.values, rows.derived = {}, None
    return _assemble(rows, plan)


def _assemble(rows: Rows, plan: Plan) -> pa.RecordBatch:
    log, truths = _switched_off(rows.log, plan.codes), _truths(rows)
    valid = np.ones(rows.size, bool)
    valid[list(log.failed)] = False
    nearness_of, pairs = nearness(rows.column("expected_retrieved_context"), rows.column("retrieved_context"))
    verdict = [
        pa.array(valid),
        log.to_arrow(),
        pa.array(_presence(rows), pa.uint32()),
        pa.array([v if isinstance(v, str) else None for v in rows.column("request_id")], pa.string()),
        _hashes(_asked(rows, truths)),
        _hashes(truths),
        pa.array(_copied(rows), pa.bool_()),
        pa.array(nearness_of, pa.int8()),
        pa.array(pairs, pa.list_(pa.string())),
        pa.array(rows.filled, pa.uint32()),
    ]
    fields = list(VERDICT)
    if plan.columns:
        for name in COLUMNS:
            verdict.append(_column(name, rows))
            fields.append(pa.field(name, ROW_SCHEMA.field(name).type, metadata=_METADATA.get(name)))
        for field, array in zip(rows.batch.schema, rows.batch.columns, strict=True):
            if field.name not in COLUMNS and not is_hidden(field):
                verdict.append(array)
                fields.append(field)
    batch = pa.RecordBatch.from_arrays(verdict, schema=pa.schema(fields))
    return batch.replace_schema_metadata({"columns": json.dumps(_column_names(rows, plan))})


def _column_names(rows: Rows, plan: Plan) -> list[str]:
    """The columns that the data set has. A frame of search_traces has columns of its own, which are no surprise."""
    known = find_format(plan.format).own_columns
    return [f.name for f in rows.batch.schema if not is_hidden(f) and f.name not in known]


def _switched_off(log: IssueLog, codes: frozenset[str]) -> IssueLog:
    """The log without the rules that are off."""
    if len(codes) == len(RULES) or not log.rows:
        return log
    kept = IssueLog(log.size)
    for row, note in zip(log.rows, log.notes, strict=True):
        if note[0] in codes:
            kept.rows.append(row)
            kept.notes.append(note)
            if RULES[note[0]].severity is Severity.ERROR:
                kept.failed.add(row)
    return kept


def _hashes(texts: list[str | None]) -> pa.Array:
    """A stable 64-bit hash of each text (null stays null): the same in every process and on every machine."""
    absent = np.array([t is None for t in texts], bool)
    objects = np.array(texts, dtype=object)
    objects[absent] = ""
    return pa.array(pd.util.hash_array(objects, categorize=False), pa.uint64(), mask=absent)


def _asked(rows: Rows, truths: list[str | None]) -> list[str | None]:
    """The canonical request of each row that has a ground truth (the others have nothing to disagree about)."""
    pairs = zip(rows.column("request"), truths, strict=True)
    return [None if v is None or t is None or v is FAILED else request_key(v) for v, t in pairs]


def _truths(rows: Rows) -> list[str | None]:
    """The ground truth of each row as one text to compare."""
    texts: list[str | None] = [v if isinstance(v, str) else None for v in rows.column("expected_response")]
    for row, facts in enumerate(rows.values.get("expected_facts", ())):
        if facts and facts is not FAILED:
            texts[row] = jsontext.encode(facts).decode()
    return texts


def _copied(rows: Rows) -> list[bool | None]:
    """Whether the ground truth is the response (null: one of the two is absent)."""
    pairs = zip(rows.column("expected_response"), rows.column("response"), strict=True)
    return [t == r if t.__class__ is str and r.__class__ is str else None for t, r in pairs]


def _presence(rows: Rows) -> np.ndarray[Any, Any]:
    """One bit per field of the metric catalogue that the row holds."""
    masks = np.zeros(rows.size, np.uint32)
    for field, name, holds in _PRESENCE:
        if name in rows.values:
            masks |= np.array(holds(rows.values[name]), np.uint32) * np.uint32(BIT[field])
    if rows.derived is not None:
        retrieves = [d is not None and d.has_retriever for d in rows.derived]
        masks |= np.array(retrieves, np.uint32) * np.uint32(BIT["retriever_span"])
    return masks


Column = Values | DocumentColumn
Flags = list[bool] | np.ndarray[Any, Any]


def _given(values: Column) -> Flags:
    return [v is not None and v is not FAILED for v in values]


def _filled(values: Column) -> Flags:
    if isinstance(values, DocumentColumn):
        return values.filled()
    return [v is not FAILED and bool(v) for v in values]


def _not_blank(values: Column) -> Flags:
    return [v.__class__ is str and v != "" and not v.isspace() for v in values]


def _with_content(values: Column) -> Flags:
    if isinstance(values, DocumentColumn):
        return values.with_content()
    return [bool(v) and v is not FAILED and any([d.content for d in v]) for v in values]


def _with_uri(values: Column) -> Flags:
    """Documents that were looked for and not found (an empty list) have a recall, so they count."""
    if isinstance(values, DocumentColumn):
        return values.given()
    return [v is not None and v is not FAILED and (not v or any([d.doc_uri for d in v])) for v in values]


_PRESENCE: tuple[tuple[str, str, Callable[[Column], Flags]], ...] = (
    ("request", "request", _given),
    ("response", "response", _not_blank),
    ("retrieved_content", "retrieved_context", _with_content),
    ("retrieved_uri", "retrieved_context", _with_uri),
    ("expected_uri", "expected_retrieved_context", _filled),
    ("expected_response", "expected_response", _given),
    ("expected_facts", "expected_facts", _filled),
    ("guidelines", "guidelines", _filled),
    ("trace", "trace", _given),
    ("input_tokens", "input_token_count", _given),
    ("output_tokens", "output_token_count", _given),
    ("total_tokens", "total_token_count", _given),
    ("latency", "latency_seconds", _given),
    ("session", "session_id", _filled),
    ("failure", "failure", _given),
    ("predicted_trajectory", "predicted_trajectory", _filled),
    ("reference_trajectory", "reference_trajectory", _filled),
)
"""A field of the metric catalogue, the column that holds it, and which of its cells count."""


# ---------------------------------------------------------------------------------------------------------------------
# normalised columns


_METADATA = {
    **dict.fromkeys(JSON_COLUMNS, JSON_CELLS),
    **dict.fromkeys(("predicted_trajectory", "reference_trajectory"), CANONICAL_CELLS),
}


def _column(name: str, rows: Rows) -> pa.Array:
    kind = ROW_SCHEMA.field(name).type
    if name not in rows.values:
        return pa.nulls(rows.size, kind)
    given = rows.values[name]
    if isinstance(given, DocumentColumn):
        return given.array
    values = [None if v is FAILED else v for v in given]
    try:
        return pa.array(_ARROW_FORMS.get(name, _as_it_is)(values), kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # A cell that Arrow cannot hold costs that cell, never the row.
        return pa.concat_arrays([_cell(name, value, kind) for value in values])


def _cell(name: str, value: Any, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(_ARROW_FORMS.get(name, _as_it_is)([value]), kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.nulls(1, kind)


def _as_it_is(values: list[Any]) -> list[Any]:
    return values


def _requests(values: list[Any]) -> list[Any]:
    return [None if v is None else canonical_request(v).decode() for v in values]


def _documents(values: list[Any]) -> list[Any]:
    return [None if v is None else [{"doc_uri": d.doc_uri, "content": d.content} for d in v] for v in values]


def _calls(values: list[Any]) -> list[Any]:
    return [None if v is None else [_call(c) for c in v] for v in values]


def _call(call: ToolCall) -> dict[str, Any]:
    given = {} if call.tool_input is None else call.tool_input
    return {"tool_name": call.tool_name, "tool_input": jsontext.encode(given).decode()}


def _guidelines(values: list[Any]) -> list[Any]:
    named = [{"guidelines": v} if isinstance(v, list) else v for v in values]
    return [None if v is None else list(v.items()) for v in named]


def _tags(values: list[Any]) -> list[Any]:
    return [None if v is None else [(k, _tag(t)) for k, t in v.items()] for v in values]


def _tag(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else jsontext.encode(value).decode()


def _objects(values: list[Any]) -> list[Any]:
    return [None if v is None else jsontext.encode(v).decode() for v in values]


def _texts(values: list[Any]) -> list[Any]:
    return [v if v is None or isinstance(v, str) else bytes(v).decode("utf-8", "replace") for v in values]


_ARROW_FORMS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "request": _requests,
    "expected_retrieved_context": _documents,
    "retrieved_context": _documents,
    "predicted_trajectory": _calls,
    "reference_trajectory": _calls,
    "guidelines": _guidelines,
    "tags": _tags,
    "custom_expected": _objects,
    "trace": _texts,
}
