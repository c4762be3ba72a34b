"""A build on Spark's executors: batches of logged rows → lines, and lines with their decisions → packed rows.

convert_batches    logged rows ──▶ a line per converted row, the first of each batch with all of it, packed
build_batches      lines with decisions ──▶ the result of each batch: packed rows, and counts
unpacked_batches   packed rows ──▶ rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import filtered, pack, unpack
from agent_eval_schema.cells.sizes import one_batch
from agent_eval_schema.inference_tables.build_summary import existing_counts
from agent_eval_schema.inference_tables.decide.spark import DECISIONS, PACKED
from agent_eval_schema.inference_tables.decide.tables import CALL_TABLE, call_columns
from agent_eval_schema.inference_tables.existing import existing_rows
from agent_eval_schema.inference_tables.finish.excluded import invalid_rows, redacted, rows_excluded
from agent_eval_schema.inference_tables.finish.finish import (
    ROWS,
    changed_labels,
    finish_batch,
    finish_existing,
    is_existing,
    issue_counts,
    label_counts,
    out_rows,
    redacted_counts,
    valid_rows,
)
from agent_eval_schema.inference_tables.options import Hook
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_LISTS
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.side_tables import trace_pairs
from agent_eval_schema.inference_tables.stages import convert_logged
from agent_eval_schema.io.spark import Stream, named
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.validation.checked_batch import VERDICT

WANTED, STRATUM = "wanted", "stratum"
"""The columns after those of the table: the result of the user's SQL for each row."""

CALL_LINE = pa.schema([*CALL_TABLE, ("feedback", FEEDBACK_LISTS), (PACKED, pa.binary())])
"""The facts of a converted row for the decisions, and the packed batch: `part` is the number of the first logged row in
the batch, `place` that of the converted row in it."""

BUILT = pa.schema(
    [
        ("rows", pa.binary()),
        ("excluded", pa.binary()),
        ("updates", pa.binary()),  # of labels of the dataset that is extended
        ("verdicts", pa.binary()),  # on the rows
        ("counts", pa.string()),  # JSON: {the counted thing: {name: number}}
    ]
)
"""The result of a batch: packed, and counted."""

COUNTED = ("kept", "existing", "joined", "reason", "labels", "redacted", "codes")


def _numbered_batches(names: Sequence[str], batches: Stream) -> Iterator[tuple[np.ndarray[Any, Any], pa.RecordBatch]]:
    """The batches with their real names, each with the numbers of its rows."""
    for batch in named(["__place__", *names], batches):
        yield np.asarray(batch.column(0)), _columns(batch, 1)


def _columns(batch: pa.RecordBatch, start: int, end: int | None = None) -> pa.RecordBatch:
    return batch.select(list(range(batch.num_columns))[start:end])


def convert_batches(plan: BuildPlan, names: Sequence[str], batches: Stream) -> Stream:
    for places, batch in _numbered_batches([*names, WANTED, STRATUM], batches):
        rows, stratum = _converted(batch, plan)
        index = call_columns(int(places[0]), rows, stratum)
        packed = pack(rows, "lz4")
        yield _in_first(CALL_LINE, {**index, "feedback": rows.column("feedback"), PACKED: packed}, rows.num_rows)


def existing_batches(plan: BuildPlan, names: Sequence[str], batches: Stream) -> Stream:
    """The lines of the rows of a dataset that is extended: parts below 0."""
    for places, batch in _numbered_batches(names, batches):
        found = existing_rows(batch, plan)
        index = call_columns(int(places[0]) - EXISTING_PARTS, found.facts, found.stratum)
        given = {**index, "feedback": found.facts.column("feedback"), PACKED: pack(found.rows, "lz4")}
        yield _in_first(CALL_LINE, given, batch.num_rows)


EXISTING_PARTS = 1 << 62


def _in_first(schema: pa.Schema, given: Mapping[str, Any], lines: int) -> pa.RecordBatch:
    """A batch of `lines` lines; values that are not arrays are in the first of them, those that are absent in none."""
    cells = [(given.get(f.name), f.type) for f in schema]
    arrays = [c if isinstance(c, pa.Array) else pa.array([c, *[None] * (lines - 1)], kind) for c, kind in cells]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _converted(batch: pa.RecordBatch, plan: BuildPlan) -> tuple[pa.RecordBatch, pa.Array | None]:
    """The converted rows of logged ones, which are followed by the result of the user's SQL."""
    computed = {"selected": plan.where and batch.column(-2), "stratum": plan.stratum_sql and batch.column(-1)}
    logged = _columns(batch, 0, -2)
    return convert_logged(logged, plan, {name: array for name, array in computed.items() if array})


def build_batches(plan: BuildPlan, hook: Hook | None, schema: pa.Schema, batches: Stream) -> Stream:
    """Finish the packed rows; those of the dataset have the columns of `schema`."""
    for batch in named([DECISIONS, PACKED], batches):
        for i in np.flatnonzero(batch.column(1).is_valid()):
            rows = unpack(batch.column(1)[i].as_buffer())
            work = _built_existing if is_existing(rows) else _built
            made = work(rows, _matching(batch.column(0).slice(i, 1), rows), plan, hook, schema)
            yield _in_first(BUILT, made, rows.num_rows)


def unpacked_batches(batches: Stream) -> Stream:
    for batch in batches:
        for cell in batch.column(0).drop_null():
            yield unpack(cell.as_buffer())


def _matching(lists: pa.ListArray, rows: pa.RecordBatch) -> pa.StructArray:
    """The decisions about converted rows, one each. Each was made about the row with the same hash, or this is not the
    order in which the rows were before."""
    found = lists.flatten()
    hashes = rows.column(len(ROWS) if is_existing(rows) else "content_hash")
    if not found.field("content_hash").equals(hashes):
        raise EvalSetError(OTHER_ROWS)
    return found


OTHER_ROWS = (
    "the DataFrame gave other rows, or gave them in another order, when it was read again: persist it, or write it to "
    "a table, before a set is built from it"
)


def _complete(rows: pa.RecordBatch, decisions: pa.StructArray) -> pa.RecordBatch:
    """The converted rows with their feedback and the traces that were joined."""
    at = rows.schema.get_field_index("trace")
    traces = pc.coalesce(decisions.field("trace"), rows.column(at)).cast(rows.schema.field(at).type)
    filled = rows.set_column(at, rows.schema.field(at), traces)
    return filled.append_column("entries", _entry_lists(decisions.field("entries")))


def _entry_lists(lists: pa.ListArray) -> pa.ListArray:
    """The entries of each row: null where there are none. If there are none at all, the content of the lists is not
    examined: see `named`."""
    sizes = pc.list_value_length(lists)
    if not pc.sum(sizes).as_py():
        return pa.nulls(len(lists), FEEDBACK_LISTS)
    return pc.if_else(pc.equal(sizes, 0), pa.scalar(None, FEEDBACK_LISTS), lists.cast(FEEDBACK_LISTS))


def _built_existing(
    rows: pa.RecordBatch, decisions: pa.StructArray, plan: BuildPlan, hook: Hook | None, schema: pa.Schema
) -> dict[str, bytes]:
    """The result of a batch of rows of the dataset that is extended: the columns of BUILT."""
    finished = finish_existing(rows.append_column("entries", _entry_lists(decisions.field("entries"))), plan, hook)
    changed = changed_labels(finished)
    counts = {"existing": existing_counts(finished.num_rows, [changed])}
    return {**_packed(finished, counts, schema), "updates": pack(changed, "lz4")}


def _built(
    rows: pa.RecordBatch, decisions: pa.StructArray, plan: BuildPlan, hook: Hook | None, schema: pa.Schema
) -> dict[str, bytes]:
    """The result of a batch of converted rows: the columns of BUILT."""
    reasons = decisions.field("reason")
    stays = np.asarray(reasons.is_null())
    finished = finish_batch(filtered(_complete(rows, decisions), stays), plan, hook)
    valid = valid_rows(finished, plan)
    good, bad = filtered(finished, valid), filtered(finished, ~valid)
    others = redacted(rows_excluded(filtered(rows, ~stays), reasons.drop_null()), hook or plan.redact)
    others = one_batch([others, invalid_rows(bad)])
    counts = {
        "kept": Counter({"": good.num_rows}),
        "joined": Counter({"": rows.num_rows - decisions.field("trace").null_count}),
        "reason": Counter(others.column("reason").to_pylist()),
        "labels": label_counts(good),
        "redacted": redacted_counts(good),
        "codes": issue_counts(bad),
    }
    return {**_packed(good, counts, schema), "excluded": pack(others, "lz4")}


def _packed(finished: pa.RecordBatch, counts: Mapping[str, Mapping[str, int]], schema: pa.Schema) -> dict[str, bytes]:
    """The columns of BUILT that all finished rows have."""
    out = out_rows(finished, schema)
    rows = pa.RecordBatch.from_arrays([out.column(f.name).cast(f.type) for f in schema], schema=schema)
    return {
        "rows": pack(rows, "lz4"),
        "verdicts": pack(finished.select(list(range(len(VERDICT)))), "zstd"),
        "counts": msgspec.json.encode(counts),
    }


def trace_batches(names: Sequence[str], batches: Stream) -> Stream:
    for _, batch in _numbered_batches(names, batches):
        yield from trace_pairs(batch).to_batches()
