"""Tables in addition to the inference table: an assessment log in place of its own feedback, traces that are not in it,
and a dataset that is extended.

Each is read once, in batches, into files of the work folder; DuckDB joins them (decide/duckdb.py). The rows of a
dataset go through a build as parts below 0, before the calls of the table:

    EXISTING ─existing_rows─▶ canonical rows + facts ─decide─▶ with later feedback ─finish_existing─▶ rows, updates

They are never excluded. A call that the dataset has, by its ID or as `dedupe` requires by its question, is.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.cells import read_cells
from agent_eval_schema.cells.hashing import hash_texts
from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.inference_tables import find_family
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import detect, find_format
from agent_eval_schema.inference_tables.decide.sql import CALL_TABLE, TRACE_TABLE, entry_table
from agent_eval_schema.inference_tables.finish.finish import CARRIED, CONTENT_HASH, ROWS, errors_of, finish_plan, fitted
from agent_eval_schema.inference_tables.plan import BuildOptions, BuildPlan
from agent_eval_schema.inference_tables.read.calls import decode_ids
from agent_eval_schema.inference_tables.read.convert import CONVERTED, FEEDBACK_LISTS, convert_batch, question_columns
from agent_eval_schema.inference_tables.read.payloads import read_chat, request_content
from agent_eval_schema.inference_tables.work_folder import EXISTING_UNIT, BuildFolder, PartKey
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import is_too_deep
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.kernel import check_batch

ASSESSMENT_LOGS = "assessment_logs"
"""The family of an assessment-log table."""


def add_side_tables(work: BuildFolder, options: BuildOptions) -> None:
    """Put the judgments of an assessment log, and traces by all IDs of a call, into the work folder, once."""
    for name in ("labels", "traces"):
        table = options.tables.get(name)
        if table is None or work.read_json(f"{name}.json"):
            continue
        count = 0
        for number, batch in enumerate(open_source(table).batches()):
            if name == "labels":
                require_assessments(batch.schema.names)
                rows = entry_table(number, convert_batch(batch, label_plan(options)))
            else:
                rows = trace_pairs(batch)
            count += len(rows)
            work.commit_table(name, number, rows)
        if name == "traces" and not count:
            raise EvalSetError("traces: expected traces with an id: a column `trace`, or one trace (info, data) a row")
        work.commit_json(f"{name}.json", True)


def label_plan(options: BuildOptions) -> BuildPlan:
    return BuildPlan(ASSESSMENT_LOGS, values=options.show_values)


def require_assessments(columns: Iterable[str]) -> None:
    """Raise EvalSetError unless these are the columns of an assessment log."""
    names = set(columns)
    for group in find_family(ASSESSMENT_LOGS).signs:
        if names.isdisjoint(group):
            raise EvalSetError(
                "labels: expected an assessment-log table (request_id, text_assessment or retrieval_assessment); "
                f"missing column {' or '.join(group)}"
            )


_ID_COLUMNS = ("client_request_id", "databricks_request_id", "request_id", "trace_id")


def trace_pairs(batch: pa.RecordBatch) -> pa.Table:
    """(key, trace) of a batch of traces: a line for each id by which the trace is known."""
    form = detect(column_names(batch.schema)).format
    cells = read_cells(find_format(form).read(batch) if form else batch, "trace")
    if cells is None:
        return TRACE_TABLE.empty_table()
    columns = [c for n in _ID_COLUMNS if (c := read_cells(batch, n)) is not None]
    keys: list[str] = []
    rows: list[int] = []
    for row, trace in enumerate(cells.texts):
        if trace is not None:
            ids = [c.texts[row] for c in columns]  # an ID in a cell of a JSON file is JSON text
            known = {i[1:-1] if i and i[:1] == i[-1:] == '"' else i for i in ids} | _ids(trace)
            own = sorted(k for k in known if k)
            keys += own
            rows += [row] * len(own)
    texts = pa.array(cells.texts, pa.string()).take(pa.array(np.array(rows, np.int64)))
    return pa.table([pa.array(keys, pa.string()), texts], schema=TRACE_TABLE)


def _ids(trace: str) -> set[str | None]:
    try:
        info = decode_ids(trace).info
    except msgspec.MsgspecError:
        return set()
    return {info.client_request_id, info.request_id, info.trace_id} if info else set()


# --- a dataset that is extended
class ExistingRows(NamedTuple):
    """Rows of a dataset: in the columns of ROWS, then their own ones and a hash of each row; and their `facts` for the
    decisions, in the columns of converted rows."""

    rows: pa.RecordBatch
    facts: pa.RecordBatch
    stratum: pa.Array | None


def add_existing(work: BuildFolder, plan: BuildPlan, options: BuildOptions) -> None:
    """Put the rows of the dataset that is extended into the work folder, unless they are there."""
    if options.extend is None or work.read_json("existing.json") is not None:
        return
    count = 0
    for number, batch in enumerate(open_source(options.extend, "extend").batches()):
        part = existing_rows(batch, plan, count)
        work.commit(PartKey(EXISTING_UNIT, number), part.rows, part.stratum, part.facts)
        count += batch.num_rows
    work.commit_json("existing.json", count)


def rows_schema(work: BuildFolder) -> pa.Schema:
    """The columns of the dataset that is built: ROWS, and those that only the rows of the dataset before it have."""
    more: dict[str, pa.Field] = {}
    for part in work.parts():
        if part.unit != EXISTING_UNIT:
            break
        more = {f.name: f for f in own_fields(work.rows(part).schema)} | more
    return pa.schema([*ROWS, *more.values()], metadata=ROWS.metadata)


def own_fields(schema: pa.Schema) -> list[pa.Field]:
    """The columns that only the rows of the dataset have."""
    return list(schema)[len(ROWS) + 1 :]


def existing_rows(batch: pa.RecordBatch, plan: BuildPlan, start: int = 0) -> ExistingRows:
    """Read rows of a dataset; the first is row `start`. Raises EvalSetError unless they are valid canonical rows."""
    names = column_names(batch.schema)
    if (form := detect(names, batch.schema.metadata).format) not in ("databricks", ""):
        raise EvalSetError(
            f"extend: expected an evaluation dataset with the canonical columns, got the format {form}: "
            "run `agent-eval-schema convert` with --to databricks first"
        )
    checked = check_batch(batch, finish_plan(plan))
    wrong = np.flatnonzero(~np.asarray(verdict(checked, "valid")).astype(bool))
    if len(wrong) and "invalid" not in plan.kept:
        row = int(wrong[0])
        raise EvalSetError(
            f"extend: row {start + row} is invalid: {errors_of(checked.slice(row, 1))[0]}; run "
            "`agent-eval-schema validate` on the dataset, or keep invalid rows (include=['invalid'], --include invalid)"
        )
    normalized = rows_of(checked)
    at = {name: i for i, name in enumerate(normalized.schema.names)}
    carried = [_carried(normalized, f) for f in CARRIED]
    more = [at[n] for n in at if n not in ROWS.names]
    canonical = [at[name] for name in COLUMNS]
    identity = zip(*(normalized.column(at[n]).to_pylist() for n in ("request_id", "request", "response")), strict=True)
    content = hash_texts(["\0".join(str(cell) for cell in cells) for cells in identity])[0].view(np.int64)
    fields = [*map(normalized.schema.field, canonical), *CARRIED, pa.field(CONTENT_HASH, pa.int64())]
    arrays = [*map(normalized.column, canonical), *carried, pa.array(content), *map(normalized.column, more)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *map(normalized.schema.field, more)]))
    size, ids = rows.num_rows, rows.column(COLUMNS.index("request_id"))
    known: dict[str, pa.Array] = {
        **dict.fromkeys(("logged_id", "request_id", "label_id"), ids),
        "time": rows.column(ROWS.get_field_index("request_time")),
        "content_hash": rows.column(len(ROWS)),
        "sample_hash": pa.array(np.zeros(size, np.int64)),
        "trace": rows.column(COLUMNS.index("trace")),
        "feedback": pa.nulls(size, FEEDBACK_LISTS),
    }
    if plan.by_question:
        requests = [_question(text) for text in rows.column(COLUMNS.index("request")).to_pylist()]
        known |= question_columns(requests, rows.column(COLUMNS.index("inputs")).to_pylist(), plan)
    fact_fields = [f for f in CALL_TABLE if f.name in CONVERTED.names]
    fact_fields += [pa.field("trace", ROW_SCHEMA.field("trace").type), pa.field("feedback", FEEDBACK_LISTS)]
    return ExistingRows(rows, fitted(known, pa.schema(fact_fields), size), _stratum(rows, plan))


def _carried(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """A column of the call that a row was made of; it may be text."""
    at = rows.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(at)
    try:
        if not is_text(column.type):
            return column.cast(field.type)
        is_json = is_json_column(rows.schema.field(at))
        texts = [jsontext.parse(t) if is_json and t is not None else t for t in column.to_pylist()]
        values = [None if value == "" else value for value in texts]
        if pa.types.is_timestamp(field.type):
            values = [None if v is None else micros_since_epoch(read_iso(v)) for v in values]
        elif pa.types.is_integer(field.type):
            values = [None if v is None else int(v) for v in values]
        return pa.array(values, field.type)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        expected = {"request_time": "times such as 2025-11-03T09:00:00Z", "status_code": "numbers such as 200"}
        raise EvalSetError(
            f"extend: {field.name}: expected {expected.get(field.name, 'text')}; {visible(str(error))[:120]}"
        ) from error


def _question(text: str | None) -> bytes | None:
    """The question as a call with this request has it."""
    if text is None:
        return None
    read = (None if is_too_deep(text) else read_chat(text.encode())) or request_content(jsontext.parse(text))
    return getattr(read, "question", None)


def _stratum(rows: pa.RecordBatch, plan: BuildPlan) -> pa.Array | None:
    """The stratum of each row, as far as it is in the row; that of its call takes precedence."""
    if plan.stratum_column == "day":
        return rows.column(ROWS.get_field_index("request_time")).cast(pa.date32()).cast(pa.string())
    name = {"served_entity": "served_entity", "failed": "failure"}.get(plan.stratum_column or "")
    return None if name is None else pc.cast(rows.column(ROWS.get_field_index(name)), pa.string())
