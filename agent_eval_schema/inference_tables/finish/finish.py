"""Converted rows that are kept → rows of the evaluation dataset: labeled, redacted, normalized, judged.

    CONVERTED + entries ─labels─▶ expected_* ─redact─▶ ─check_batch─▶ VERDICT + canonical columns + CARRIED + TALLY

Pure and picklable, like `convert_batch`: the embedded engine and Spark's mapInArrow run the same function.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import as_type, filtered, list_array
from agent_eval_schema.cells.batch import make_batch
from agent_eval_schema.cells.notes import NOTE, with_plain_requests
from agent_eval_schema.inference_tables.finish.labels import CHANGES, label, updated
from agent_eval_schema.inference_tables.finish.redact import STRUCTURAL, Redactor, redactor_of
from agent_eval_schema.inference_tables.plan import REASONS, BuildPlan, Hook
from agent_eval_schema.inference_tables.read.convert import CONVERTED
from agent_eval_schema.io.source import Source
from agent_eval_schema.issues import Finding
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES, all_rules, dataset
from agent_eval_schema.rules.production import LOGGING_ERROR
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.text.privacy import quoting
from agent_eval_schema.validation.checked_batch import VERDICT, rows_of, verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.kernel import check_batch
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report_builder import ISSUES_KEPT

CARRIED = pa.schema(
    [("request_time", pa.timestamp("us", "UTC")), ("status_code", pa.int32()), ("served_entity", pa.string())]
)
"""The columns of an evaluation row, in addition to the canonical ones, that come from the logged call."""

TALLY = pa.schema(
    [
        ("redacted", pa.map_(pa.string(), pa.int64())),
        ("labels", pa.list_(pa.string())),
        ("changes", CHANGES),
        ("unread", pa.string()),
    ]
)
"""The changes of a row: redactions per kind, its labels, and those of an extended dataset that feedback changed; and
the request, if it cannot be read."""

ROWS = pa.schema([*ROW_SCHEMA, *CARRIED], metadata=ROW_SCHEMA.metadata)
"""The columns of an evaluation dataset that is built from a table."""


def finish_batch(batch: pa.RecordBatch, plan: BuildPlan, hook: Hook | None = None) -> pa.RecordBatch:
    """Finish the rows of a batch: as many rows result, each with its validation result, then the columns of ROWS and
    TALLY.

    `batch` has the columns of CONVERTED and `entries` (FEEDBACK_LISTS), the latest feedback on each row or null. `hook`
    is the redaction, if it is a function without a name by which the plan could call it.
    """
    with quoting(plan.values):
        columns, notes, label_names = label(batch, plan)
    redactor, rows = redactor_of(plan, hook), np.arange(batch.num_rows)
    columns |= {n: batch.column({"request_time": "time"}.get(n, n)) for n in CARRIED.names}
    if redactor is not None:
        # A hook is not asked about IDs, as it is not in the trace: by them calls and traces belong together.
        own = {n: a for n, a in columns.items() if redactor.hook is None or n not in STRUCTURAL}
        columns |= {name: redactor.values(array, rows) for name, array in own.items()}
    carried = [columns.pop(f.name).cast(f.type) for f in CARRIED]
    # inputs are bodies that `convert_batch` encoded; the output of a redaction must be examined again
    json = () if redactor else ("inputs",)
    rows_to_check = make_batch({n: (a, n in json) for n, a in columns.items()}, {}, batch.num_rows)
    plain = batch.column("plain_request")  # the plain chats that `convert_batch` wrote
    if redactor:
        plain = pc.and_(plain, pc.equal(columns["request"], batch.column("request")))
    checked = check_batch(with_plain_requests(rows_to_check, plain), finish_plan(plan))
    checked = _with_notes(checked, [batch.column("notes"), notes], redactor_of(plan, hook))
    maps = None if redactor is None else [redactor.counts(i) for i in range(batch.num_rows)]
    replaced = pa.array(maps or [None] * batch.num_rows, TALLY.field("redacted").type)
    is_unread = rows_of(checked).column("request").is_null()
    unread = pc.if_else(is_unread, columns["request"].cast(pa.string()), pa.scalar(None, pa.string()))
    tallies = [replaced, label_names, pa.nulls(batch.num_rows, CHANGES), unread]
    return _finished(checked, [*carried, *tallies])


def finish_existing(rows: pa.RecordBatch, plan: BuildPlan, hook: Hook | None = None) -> pa.RecordBatch:
    """The same of rows that a dataset has (side_tables.py), with `entries` behind them: they stay as they are, but
    for the labels that later feedback changes. Columns of their own, which are behind the hash, follow."""
    columns = {name: rows.column(i) for i, name in enumerate(ROW_SCHEMA.names)}
    carried = rows.columns[len(ROW_SCHEMA) : len(ROWS)]
    judged = pa.RecordBatch.from_arrays([rows.columns[-1], carried[0]], ["entries", "time"])
    redactor = redactor_of(plan, hook)
    with quoting(plan.values):
        columns, notes, changes = updated(columns, judged, plan, redactor)
    fields = [rows.schema.field(i) for i in range(len(ROW_SCHEMA))]
    canonical = pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(fields))
    checked = _with_notes(check_batch(canonical, finish_plan(plan)), [notes], redactor)
    finished = _finished(checked, [*carried, *fitted({"changes": changes}, TALLY, rows.num_rows).columns])
    more = range(len(ROWS) + 1, rows.num_columns - 1)
    return _joined(finished, [rows.schema.field(i) for i in more], [rows.column(i) for i in more])


CONTENT_HASH = "__content_hash__"
"""The column behind ROWS in rows of a dataset that is extended, known by its place: any name may be taken."""


def is_existing(rows: pa.RecordBatch) -> bool:
    """Whether these are rows of the dataset that is extended, rather than calls."""
    return bool(rows.schema.names[len(ROWS) : len(ROWS) + 1] == [CONTENT_HASH])


@lru_cache(maxsize=8)
def finish_plan(plan: BuildPlan) -> Plan:
    reason = "the canonical columns, made of logged calls"
    return Plan(
        "databricks", "provided", False, frozenset(all_rules()), columns=True, reason=reason, values=plan.values
    )


def _finished(checked: pa.RecordBatch, more: list[pa.Array]) -> pa.RecordBatch:
    """The checked batch with the columns of CARRIED and TALLY."""
    # the other columns that a check passes through are not for the evaluation dataset
    own = checked.select(list(range(len(VERDICT) + len(COLUMNS))))
    return _joined(own, [*CARRIED, *TALLY], more)


def _joined(batch: pa.RecordBatch, fields: Iterable[pa.Field], arrays: Iterable[pa.Array]) -> pa.RecordBatch:
    """The batch with further columns; the metadata of its columns is kept."""
    schema = pa.schema([*batch.schema, *fields], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays([*batch.columns, *arrays], schema=schema)


# --- notes
def _with_notes(checked: pa.RecordBatch, more: Iterable[pa.Array], redactor: Redactor | None) -> pa.RecordBatch:
    """The checked batch with further notes of its rows: warnings and infos from before they were redacted."""
    added = [m.cast(pa.list_(NOTE)) for m in more if len(m.flatten())]
    if redactor is not None:
        added = [_redacted_notes(notes, redactor) for notes in added]
    lists = [verdict(checked, "issues"), *added]
    if len(lists) == 1:
        return checked
    of = np.concatenate([np.asarray(pc.list_parent_indices(each)) for each in lists])
    notes = pa.concat_arrays([each.flatten() for each in lists]).take(pa.array(np.argsort(of, kind="stable")))
    at = VERDICT.get_field_index("issues")
    arrays = list(checked.columns)
    arrays[at] = list_array(np.bincount(of, minlength=checked.num_rows), notes)
    return pa.RecordBatch.from_arrays(arrays, schema=checked.schema)


class FinishedRows(NamedTuple):
    """The finished `rows` that stay, the `invalid` ones (EXCLUDED), changed labels (UPDATES), and counts by kind."""

    rows: pa.RecordBatch
    invalid: pa.RecordBatch
    updates: pa.RecordBatch
    counts: dict[str, Counter[str]]


def _redacted_notes(lists: pa.Array, redactor: Redactor) -> pa.Array:
    notes, names = lists.flatten(), ("path", "message")
    parts = [redactor.column(a) if n in names else a for n, a in zip(NOTE.names, notes.flatten(), strict=True)]
    return list_array(pc.list_value_length(lists).fill_null(0), pa.StructArray.from_arrays(parts, fields=list(NOTE)))


def split_by_validity(finished: pa.RecordBatch, plan: BuildPlan, existing: bool) -> FinishedRows:
    """The finished rows of a batch; invalid ones are excluded, unless they are kept or `existing`."""
    lists = _tally(finished, "changes")
    ids = finished.column(len(VERDICT) + COLUMNS.index("request_id")).take(pc.list_parent_indices(lists))
    updates = pa.RecordBatch.from_arrays([ids, *lists.flatten().flatten()], schema=UPDATES)
    if existing:
        rows_of_updates, columns_of_updates, _, after = (column.to_pylist() for column in updates.columns)
        pairs = zip(columns_of_updates, after, strict=True)
        changed = Counter(name if new is not None else "withdrawn" for name, new in pairs)
        first = Counter(rows=finished.num_rows, updated=len({*rows_of_updates}))
        return FinishedRows(finished, EXCLUDED.empty_table(), updates, {"existing": first + changed})
    valid = np.asarray(verdict(finished, "valid")).astype(bool) | ("invalid" in plan.kept)
    good, bad = filtered(finished, valid), filtered(finished, ~valid)
    rows = _evaluation_rows(bad)
    columns = {**{n: rows.column(n) for n in rows.schema.names}, "time": rows.column("request_time")}
    columns["request"] = pc.coalesce(columns["request"], _tally(bad, "unread"))
    columns["reason"] = pa.array(["invalid"] * bad.num_rows)
    columns["message"] = pa.array(errors_of(bad), pa.string())
    replaced = Counter[str]()
    for pairs in _tally(good, "redacted").drop_null().to_pylist():
        replaced.update(dict(pairs))
    counts = {
        "kept": Counter({"": good.num_rows}),
        "reason": Counter({"invalid": bad.num_rows} if bad.num_rows else ()),
        "labels": _counted(_tally(good, "labels").flatten()),
        "redacted": replaced,
        "codes": _counted(verdict(bad, "issues").flatten().field("code")),
    }
    return FinishedRows(good, fitted(columns, EXCLUDED, bad.num_rows), updates, counts)


def errors_of(finished: pa.RecordBatch) -> list[str]:
    """The reason why each row is invalid, in words: the errors of its cells, and the errors of logging it."""
    return [
        "; ".join(
            f"{n['code']} {n['message']}"
            for n in notes
            if RULES[n["code"]].severity is Severity.ERROR or n["code"] == LOGGING_ERROR.code
        )
        for notes in verdict(finished, "issues").to_pylist()
    ]


def _tally(finished: pa.RecordBatch, name: str) -> pa.Array:
    return finished.column(len(VERDICT) + len(ROWS) + TALLY.get_field_index(name))


def _evaluation_rows(finished: pa.RecordBatch) -> pa.RecordBatch:
    return rows_of(finished).select(list(range(len(ROWS))))


def out_rows(finished: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of ROWS and the columns of their own that rows of the dataset have: null in those of calls."""
    own = {f.name: finished.column(i) for i, f in enumerate(finished.schema) if i >= len(VERDICT) + len(ROWS)}
    rows = _evaluation_rows(finished)
    more = list(schema)[len(ROWS) :]
    return _joined(rows, more, fitted(own, pa.schema(more), rows.num_rows).columns)


def fitted(columns: Mapping[str, pa.Array], schema: pa.Schema, size: int) -> pa.RecordBatch:
    """The columns of a schema: null where there are none."""
    arrays = [as_type(columns[f.name], f.type) if f.name in columns else pa.nulls(size, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


UPDATES = pa.schema([("request_id", pa.string()), *CHANGES.value_type])
"""A changed label: its row, its column, its value before and after."""


def _counted(array: pa.Array) -> Counter[str]:
    entries: list[dict[str, Any]] = array.value_counts().to_pylist()
    return Counter({entry["values"]: entry["counts"] for entry in entries})


def new_run(plan: BuildPlan, remarks: tuple[Finding, ...] = ()) -> CheckedRun:
    """The run that counts the finished rows, for every engine; where they can be read again is known later."""
    # No ID is there twice by now; to look again takes memory for each row.
    unique = () if "repeated" in plan.kept else dataset.REPEATED
    nowhere = Source("arrow", lambda: iter(()), lambda _: None, remarks=remarks)
    return CheckedRun(nowhere, finish_plan(plan), satisfied=unique, keep=ISSUES_KEPT)


# --- excluded rows: rows of a table that are not in the evaluation dataset, each with the reason and its payload
_PAYLOAD = ("time", "status_code", "request", "response")
EXCLUDED = pa.schema(
    [*map(CONVERTED.field, ("request_id", "reason")), ("message", pa.string()), *map(CONVERTED.field, _PAYLOAD)]
)
"""The columns of an excluded row: its place, the reason (plan.py), the details, and the payload."""


def rows_excluded(rows: pa.RecordBatch, reasons: pa.Array) -> pa.RecordBatch:
    """Converted rows as excluded rows: the reason, and its meaning or the details in words."""
    columns = {n: rows.column(n) for n in rows.schema.names}
    sentences = pa.array([REASONS[r].sentence for r in reasons.to_pylist()], pa.string())
    own = pc.equal(columns["reason"], reasons).fill_null(False)
    columns["message"] = pc.if_else(own, pc.coalesce(columns["detail"], sentences), sentences)
    columns["reason"] = reasons
    return fitted(columns, EXCLUDED, rows.num_rows)


def redacted(batch: pa.RecordBatch, redactor: Redactor | None) -> pa.RecordBatch:
    """Excluded rows, with their content replaced as in the rows that are kept."""
    if redactor is None:
        return batch
    names = ("message", "request", "response", *(() if redactor.hook else ("request_id",)))
    arrays = [redactor.column(a) if n in names else a for n, a in zip(EXCLUDED.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EXCLUDED)
