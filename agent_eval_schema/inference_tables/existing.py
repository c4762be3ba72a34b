"""A dataset that is extended: its rows go through a build as parts below 0, before the calls of the table.

    EXISTING ─existing_rows─▶ canonical rows + facts ─decide─▶ with later feedback ─finish_existing─▶ rows, updates

They are never excluded. A call that the dataset has, by its ID or as `dedupe` requires by its question, is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.hashing import hash_texts
from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import detect
from agent_eval_schema.inference_tables.decide.tables import CALL_TABLE
from agent_eval_schema.inference_tables.finish.finish import CARRIED, CONTENT_HASH, ROWS, errors_of, finish_plan, fitted
from agent_eval_schema.inference_tables.options import BuildOptions
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_LISTS, question_columns
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.read.request_payloads import asked_of, read_chat
from agent_eval_schema.inference_tables.work_folder import EXISTING_UNIT, PartKey, WorkFolder
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.moments import micros_since_epoch, read_iso
from agent_eval_schema.text.visible import visible
from agent_eval_schema.validation.checked_batch import rows_of, verdict
from agent_eval_schema.validation.kernel import check_batch


class ExistingRows(NamedTuple):
    """Rows of a dataset: in the columns of ROWS, then their own ones and a hash of each row; and their `facts` for the
    decisions, in the columns of converted rows."""

    rows: pa.RecordBatch
    facts: pa.RecordBatch
    stratum: pa.Array | None


def add_existing(work: WorkFolder, plan: BuildPlan, options: BuildOptions) -> None:
    """Put the rows of the dataset that is extended into the work folder, unless they are there."""
    if options.extend is None or work.read_json("existing.json") is not None:
        return
    count = 0
    for number, batch in enumerate(open_source(options.extend, "extend").batches()):
        found = existing_rows(batch, plan, count)
        work.commit(PartKey(EXISTING_UNIT, number), found.rows, found.stratum, found.facts)
        count += batch.num_rows
    work.commit_json("existing.json", count)


def rows_schema(work: WorkFolder) -> pa.Schema:
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
    """Read rows of a dataset; the first is row `start`. Raises EvalSetError unless they are valid rows with the
    canonical columns."""
    names = column_names(batch.schema)
    if (form := detect(names, batch.schema.metadata).format) not in ("databricks", ""):
        raise EvalSetError(
            f"extend: expected an evaluation dataset with the canonical columns, got the format {form}: "
            "run `agent-eval-schema convert` with --to databricks first"
        )
    checked = check_batch(batch, finish_plan(plan))
    _require_valid(checked, plan, start)
    given = rows_of(checked)
    at = {name: i for i, name in enumerate(given.schema.names)}
    carried = [_carried(given, f) for f in CARRIED]
    more = [at[n] for n in at if n not in ROWS.names]
    canonical = [at[name] for name in COLUMNS]
    content = hash_texts(_contents(given, at))[0].view(np.int64)
    fields = [*map(given.schema.field, canonical), *CARRIED, pa.field(CONTENT_HASH, pa.int64())]
    arrays = [*map(given.column, canonical), *carried, pa.array(content), *map(given.column, more)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*fields, *map(given.schema.field, more)]))
    return ExistingRows(rows, _facts(rows, plan), _stratum(rows, plan))


def _require_valid(checked: pa.RecordBatch, plan: BuildPlan, start: int) -> None:
    wrong = np.flatnonzero(~np.asarray(verdict(checked, "valid")).astype(bool))
    if len(wrong) and not plan.keeps("invalid"):
        row = int(wrong[0])
        raise EvalSetError(
            f"extend: row {start + row} is invalid: {errors_of(checked.slice(row, 1))[0]}; run "
            "`agent-eval-schema validate` on the dataset, or keep invalid rows (include=['invalid'], --include invalid)"
        )


def _contents(rows: pa.RecordBatch, at: dict[str, int]) -> list[str]:
    columns = [rows.column(at[n]).to_pylist() for n in ("request_id", "request", "response")]
    return ["\0".join(str(cell) for cell in cells) for cells in zip(*columns, strict=True)]


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
        values = [_plain(t, is_json) for t in column.to_pylist()]
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


def _plain(text: str | None, is_json: bool) -> Any:
    value = jsontext.parse(text) if is_json and text is not None else text
    return None if value == "" else value


def _facts(rows: pa.RecordBatch, plan: BuildPlan) -> pa.RecordBatch:
    """What the decisions read of the rows."""
    size, ids = rows.num_rows, rows.column(COLUMNS.index("request_id"))
    given: dict[str, pa.Array] = {
        "logged_id": ids,
        "request_id": ids,
        "label_id": ids,
        "time": rows.column(ROWS.get_field_index("request_time")),
        "content_hash": rows.column(len(ROWS)),
        "sample_hash": pa.array(np.zeros(size, np.int64)),
        "trace": rows.column(COLUMNS.index("trace")),
        "feedback": pa.nulls(size, FEEDBACK_LISTS),
    }
    if plan.by_question:
        requests = [_question(text) for text in rows.column(COLUMNS.index("request")).to_pylist()]
        given |= question_columns(requests, rows.column(COLUMNS.index("inputs")).to_pylist(), plan)
    fields = [f for f in CALL_TABLE if f.name not in ("part", "place", "stratum", "without_trace")]
    fields += [pa.field("trace", ROW_SCHEMA.field("trace").type), pa.field("feedback", FEEDBACK_LISTS)]
    return fitted(given, pa.schema(fields), size)


def _question(text: str | None) -> bytes | None:
    """The question as a call with this request has it."""
    if text is None:
        return None
    asked = read_chat(text.encode()) or asked_of(jsontext.parse(text))
    return getattr(asked, "question", None)


def _stratum(rows: pa.RecordBatch, plan: BuildPlan) -> pa.Array | None:
    """The stratum of each row, as far as it is in the row; that of its call takes precedence."""
    if plan.stratum_column == "day":
        return rows.column(ROWS.get_field_index("request_time")).cast(pa.date32()).cast(pa.string())
    name = {"served_entity": "served_entity", "failed": "failure"}.get(plan.stratum_column or "")
    return None if name is None else pc.cast(rows.column(ROWS.get_field_index(name)), pa.string())
