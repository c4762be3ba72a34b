"""The stages of a build, each a stream over parts; between them everything is in the work folder.

    convert    source ──▶ parts            by units of the source; committed parts are not repeated
    decide     indexes ──▶ decided.parquet one process: DuckDB
    finish     parts + decided ──▶ finished batches, in the order of the table

Of a file, the first and the last are done by several processes, each on its share; of data in memory by this one.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from agent_eval_schema.cells.arrow import filtered, strings
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.decide.duckdb import Expressions, decide
from agent_eval_schema.inference_tables.finish.finish import finish_batch, finish_existing
from agent_eval_schema.inference_tables.finish.redact import DEFAULT
from agent_eval_schema.inference_tables.plan import BuildPlan, Hook
from agent_eval_schema.inference_tables.read.convert import FEEDBACK_LISTS, convert_batch
from agent_eval_schema.inference_tables.work_folder import EXISTING_UNIT, BuildFolder, PartKey, by_part
from agent_eval_schema.io.parquet import parquet_places
from agent_eval_schema.io.source import Share, Source
from agent_eval_schema.runtime.processes import AHEAD, Worker, in_order


class BuildJob(Struct, frozen=True):
    """What every process of a build receives: names and options only."""

    path: str
    folder: str
    plan: BuildPlan
    worker: int = 0
    workers: int = 1


def _by_workers(
    function: str, job: BuildJob, ahead: int = AHEAD, modules: Iterable[str] = ()
) -> Iterator[tuple[int, bytes]]:
    """The messages of a function of this module that each worker runs on its share, in the order of the units."""
    shares = [msgspec.msgpack.encode(msgspec.structs.replace(job, worker=k)) for k in range(job.workers)]
    workers = [Worker(f"{__name__}:{function}", share, ahead, modules) for share in shares]
    try:
        yield from in_order([worker.messages() for worker in workers])
    finally:
        for worker in workers:
            worker.stop()


# --- convert
def convert(source: Source, job: BuildJob) -> Iterator[int]:
    """Convert the whole source into committed parts; gives the number of logged rows of each, as they are done."""
    work = BuildFolder(job.folder)
    done = work.read_json("converted.json")
    if done is not None:
        yield from done
        return
    counts = []
    for _, size in _convert_share(source, job) if job.workers == 1 else _by_workers("convert_share", job):
        counts.append(int(size))
        yield int(size)
    work.commit_json("converted.json", counts)


def convert_share(job: bytes) -> Iterator[tuple[int, bytes]]:
    """In a worker: its share of the table."""
    share = msgspec.msgpack.decode(job, type=BuildJob)
    for unit, logged in _convert_share(open_source(share.path), share):
        yield unit, str(logged).encode()


def _convert_share(source: Source, job: BuildJob) -> Iterator[tuple[int, int]]:
    plan = job.plan
    expressions = {"selected": (plan.where, "BOOLEAN"), "stratum": (plan.stratum_sql, "VARCHAR")}
    wanted = {name: (sql, kind) for name, (sql, kind) in expressions.items() if sql}
    work, columns = BuildFolder(job.folder), Expressions(wanted, plan.sql_columns)
    for part, batch in _batches_of_share(source, job):
        if not work.has(part):
            rows, stratum = convert_logged(batch, plan, columns.over(batch))
            work.commit(part, rows, stratum)
        yield part.unit, batch.num_rows


def _batches_of_share(source: Source, job: BuildJob) -> Iterator[tuple[PartKey, pa.RecordBatch]]:
    """The batches of the share with their places, which are the same however many workers there are."""
    if source.kind == "parquet" and source.path is not None:
        share = Share(job.worker, job.workers, 0)
        return ((PartKey(unit, n), batch) for unit, n, batch in parquet_places(source.path, share))
    units = enumerate(source.batches())
    return ((PartKey(unit, 0), batch) for unit, batch in units if unit % job.workers == job.worker)


def convert_logged(
    batch: pa.RecordBatch, plan: BuildPlan, found: Mapping[str, pa.Array]
) -> tuple[pa.RecordBatch, pa.Array | None]:
    """The converted rows of a batch of logged rows, those that the user's SQL does not choose excluded; and the stratum
    of each, if there are strata. `found` is the result of that SQL for each logged row: `selected`, `stratum`."""
    rows = convert_batch(batch, plan)
    logged = logged_rows(rows)
    if found and (logged[-1] + 1 if len(logged) else 0) != batch.num_rows:
        raise EvalSetError("internal: the converted rows do not belong to the logged ones")
    if "selected" in found:
        selected = np.asarray(found["selected"].fill_null(False)).astype(bool)[logged]
        # Feedback stays feedback: it belongs to calls.
        reasons = zip(rows.column("reason").to_pylist(), selected.tolist(), strict=True)
        new = [reason if is_selected or reason == "feedback" else "filtered" for reason, is_selected in reasons]
        at = rows.schema.get_field_index("reason")
        rows = rows.set_column(at, rows.schema.field(at), pa.array(new, pa.string()))
    if plan.stratum_column:
        return rows, rows.column(plan.stratum_column).cast(pa.string())
    return rows, found["stratum"].take(pa.array(logged)).cast(pa.string()) if "stratum" in found else None


def logged_rows(rows: pa.RecordBatch) -> np.ndarray[Any, Any]:
    """The logged row of each converted row: a further record of a call continues the row before."""
    record = rows.column("record")
    starts = np.asarray(record.is_null()) | (np.asarray(record.fill_null(0)) == 0)
    return np.cumsum(starts) - 1


# --- decide
def decided(work: BuildFolder, plan: BuildPlan) -> dict[str, Any]:
    """Decide about the rows of all parts, once. Returns the small results: reasons, feedback and strata with counts."""
    found: dict[str, Any] | None = work.read_json("decided.json")
    if found is not None:
        return found
    entries = work.tables("labels") or (work.files("entries") if plan.labeled else [])
    tables = {"calls": work.files("index"), "entries": entries, "traces": work.tables("traces")}
    joined = work.folder / "traced.parquet" if tables["traces"] else None
    with work.committing("decided.parquet") as new:
        answers = decide(tables, plan, work.existing_rows(), new, work.folder / "spill", joined)
    work.commit_json("decided.json", {**answers, "joined": pq.read_metadata(joined).num_rows if joined else 0})
    return decided(work, plan)


# --- finish
def finish(job: BuildJob, hook: Hook | None = None) -> Iterator[tuple[PartKey, pa.RecordBatch]]:
    """The finished rows of all parts that have any, in the order of the table."""
    if job.workers == 1 or hook is not None:  # a function that has no name stays in this process
        yield from _finish_share(msgspec.structs.replace(job, worker=0, workers=1), hook)
        return
    modules = sys.path if job.plan.redact not in (None, DEFAULT) else ()  # the user's function, wherever we found it
    work = BuildFolder(job.folder)
    # finished batches are large: few may wait
    for number, _ in _by_workers("finish_share", job, 2, modules):
        part = PartKey.of(number - _FROM_ZERO)
        yield part, work.take_finished(part)


_FROM_ZERO = -PartKey(EXISTING_UNIT, 0).number
"""Messages of workers are numbered from 0 on."""


def finish_share(job: bytes) -> Iterator[tuple[int, bytes]]:
    """In a worker: its share of the parts. The path of a file is passed: its bytes are not copied through a pipe."""
    share = msgspec.msgpack.decode(job, type=BuildJob)
    work = BuildFolder(share.folder)
    for part, batch in _finish_share(share, None):
        work.hand_over_finished(part, batch)
        yield part.number + _FROM_ZERO, b""


def _finish_share(job: BuildJob, hook: Hook | None) -> Iterator[tuple[PartKey, pa.RecordBatch]]:
    work = BuildFolder(job.folder)
    path, sizes = work.folder / "traced.parquet", [0] * job.workers
    traced = by_part(path, "trace") if path.exists() else iter(())  # the traces of rows that came without one
    joined = next(traced, None)
    for part, decisions in by_part(work.folder / "decided.parquet", "reason", "entries"):
        stays = np.asarray(decisions.column("reason").is_null())
        # Parts differ in size (the last one of a row group is small): each goes to who has had the fewest rows.
        worker = sizes.index(min(sizes))
        sizes[worker] += int(stays.sum())
        while joined is not None and joined[0] < part:
            joined = next(traced, None)
        if worker == job.worker and stays.any():
            rows = work.rows(part)
            if joined is not None and joined[0] == part:
                texts = rows.column("trace").to_pylist()
                for row, trace in zip(*(joined[1].column(n).to_pylist() for n in ("place", "trace")), strict=True):
                    texts[row] = trace
                at, filled = rows.schema.get_field_index("trace"), strings(texts)
                rows = rows.set_column(at, rows.schema.field(at).with_type(filled.type), filled)
            batch = rows.append_column("entries", decisions.column("entries").cast(FEEDBACK_LISTS))
            run = finish_existing if part.unit == EXISTING_UNIT else finish_batch
            yield part, run(filtered(batch, stays), job.plan, hook)
