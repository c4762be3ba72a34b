"""A logged table → an evaluation set: eval_set_from_inference_table → build_set → stages.

    table ─▶ convert ─▶ decide ─▶ finish ─┬─▶ rows       (in memory, or a file: Parquet, JSONL, a new Delta table)
             (stages.py)                  ├─▶ set aside  (each row with its reason)
                                          └─▶ summary    (the funnel), report, manifest

Whatever is logged ends as a row or is set aside with exactly one reason; everything on the way is in a work folder, so
memory does not grow with the table.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.cells.arrow import filtered, one_batch
from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.formats.inference_tables import detect_family
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.decide.duckdb import require_duckdb
from agent_eval_schema.inference_tables.finish.finish import (
    ROWS,
    evaluation_rows,
    finish_plan,
    label_counts,
    redacted_counts,
)
from agent_eval_schema.inference_tables.finish.redact import Hook, Redactor
from agent_eval_schema.inference_tables.finish.set_aside import SET_ASIDE, invalid_rows, redacted, rows_set_aside
from agent_eval_schema.inference_tables.options import FEEDBACK, aliases_of, plan_of
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.side_tables import add_labels, add_traces
from agent_eval_schema.inference_tables.stages import BuildJob, convert, decided, finish
from agent_eval_schema.inference_tables.summary import (
    Summarized,
    Summary,
    feedback_counts,
    funnel_steps,
    issue_counts,
)
from agent_eval_schema.inference_tables.work_folder import PartKey, WorkFolder, decisions_by_part
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.pandas import frame_of, to_pandas
from agent_eval_schema.io.parquet import files_of, parquet_columns
from agent_eval_schema.io.source import Source, rows_where, schema_of, worth_workers
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.funnel.summary import Stratum
from agent_eval_schema.render.shown import Saved
from agent_eval_schema.rules import dataset
from agent_eval_schema.runtime.progress import ProgressDisplay, notebook, progress
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.report_builder import ISSUES_KEPT, ReportBuilder

STRATA_KEPT = 100

GROUP_ROWS, GROUP_BYTES = 1_024, 4 << 20
"""Rows are written in groups of this size or more, however few of them each part of the table has."""


class EvalSetBuild(Summarized, Saved):
    """What was made of a logged table.

    Attributes
    ----------
    rows
        The evaluation set, a pandas frame with the canonical columns and `request_time`, `status_code`,
        `served_entity`; in the order of the table.
    set_aside
        Every other row, a pandas frame: `request_id`, `reason`, `message`, `time`, `status_code`, `request`,
        `response`. Both have a request_id, and together they account for every logged row (`<id>#<n>` is a record of a
        batch call).
    summary
        The funnel in numbers (`Summary`); `print(build.summary)`.
    report
        The `Report` on the rows: issues, metrics, as of `validate_eval_set`.

    Frames are made when they are asked for. Of a large table, `iter_batches`, `iter_set_aside`, `write` and
    `write_set_aside` stream.
    """

    def __init__(
        self,
        work: WorkFolder,
        plan: BuildPlan,
        summary: Summary,
        builder: ReportBuilder,
        check: Plan,
        hook: Hook | None,
        rows: Source,
    ) -> None:
        self.summary = summary
        self._work, self._plan, self._hook, self._rows = work, plan, hook, rows
        self._builder, self._check = builder, check

    @cached_property
    def rows(self) -> pd.DataFrame:
        frame = to_pandas(self.iter_batches(), self._rows)
        return _with_times(frame, "request_time")

    @cached_property
    def set_aside(self) -> pd.DataFrame:
        table = pa.Table.from_batches(list(self.iter_set_aside()), schema=SET_ASIDE)
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        for name in ("request_id", "reason", "message", "request", "response"):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
        frame["status_code"] = frame["status_code"].astype("Int32")
        return frame

    @property
    def report(self) -> Report:
        """The report on the rows."""
        return Report(self._rows, self._check, self._builder, self.summary.seconds)

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, streamed."""
        return self._rows.batches()

    def iter_set_aside(self) -> Iterator[pa.RecordBatch]:
        """What was set aside as Arrow batches, streamed, in the order of the table."""
        redactor = self._hook or self._plan.redact
        for place, decisions in decisions_by_part(self._work.folder / "decided.parquet"):
            reasons = decisions.column("reason")
            gone = np.asarray(reasons.is_valid())
            rows = filtered(self._work.rows(place), gone) if gone.any() else None
            batches = [] if rows is None else [rows_set_aside(rows, reasons.drop_null())]
            for batch in [*batches, *self._work.invalid(place)]:
                yield redacted(batch, Redactor(redactor)) if redactor else batch

    def write(self, path: str | os.PathLike[str]) -> int:
        """Stream the rows into a file (.parquet, .jsonl) or a new Delta table (any other name: a folder); returns their
        number. Raises EvalSetError if it cannot be written."""
        return write_rows(os.fspath(path), self.iter_batches(), ROWS)

    def write_set_aside(self, path: str | os.PathLike[str]) -> int:
        """Stream what was set aside into a file or a new Delta table; returns the number of rows."""
        return write_rows(os.fspath(path), self.iter_set_aside(), SET_ASIDE)

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()

    def __repr__(self) -> str:
        return f"<EvalSetBuild: {self.summary.funnel}>"


def eval_set_from_inference_table(
    table: Any,
    *,
    sample: int | float | None = None,
    seed: int = 0,
    stratify: str | None = None,
    dedupe: Literal["id", "question"] | None = "id",
    labels: Any = FEEDBACK,
    redact: str | Hook | None = None,
    traces: Any = None,
    since: Any = None,
    until: Any = None,
    where: str | None = None,
    family: str = "auto",
    map: Mapping[str, str] | Iterable[str] | None = None,
    keep: Iterable[str] = (),
    values: bool = True,
    engine: Literal["embedded", "spark"] = "embedded",
    jobs: int = 0,
) -> Any:
    """Turn a table of logged calls into a clean, labelled, sampled and validated evaluation set.

    Parameters
    ----------
    table
        A payload table of an endpoint (legacy, AI Gateway, Unity AI Gateway), a table derived of one, or traces: a
        pandas frame, an Arrow table, a list of dicts, or the path of a Parquet, JSONL, JSON or CSV file, of a folder of
        Parquet files or of a Delta folder. It is not changed.
    sample, seed
        How many rows to draw: a number (500) or a fraction (0.1). They are drawn by a hash of the seed and the
        request_id, so the same rows come whatever their order, the engine or the number of processes.
    stratify
        Share a sample over strata, by largest remainder: a column of the table, `"day"`, `"served_entity"`, `"failed"`,
        `"thumbs"` (what the feedback in the table says), or an SQL expression over the columns of the table.
    dedupe
        `"id"`: of rows with the same id the earliest stays (delivery is at least once). `"question"`: also only the
        latest call of those that ask the same. None: all stay.
    labels
        `"feedback"`: the feedback calls in the table become expected_response and expected_retrieved_context of the
        rows whose ids they name, and so do the judgements of people in the rows' traces. Or an assessment-log table (a
        frame or path), to be read in place of both. None: none.
    redact
        None: nothing is replaced. `"default"`: e-mail addresses, phone numbers and card numbers. A function from text
        to text, or its name ("module:function").
    traces
        A table of traces (a frame or path), for rows whose trace is not in the table: joined where the row's id is the
        trace's client_request_id, or its own id. Rows that were too large to be logged take request and response from
        it; those that it does not have are then set aside as `invalid`.
    since, until
        The time window, `since <= time < until`: ISO text, a date or a datetime; in UTC if it has no zone.
    where
        SQL over the columns of the table: which rows are wanted. Feedback is read from all rows.
    family, map
        The kind of table, if its columns do not tell; and where a log of another kind has what:
        `{"request": "body.input"}`, a column or a dotted path into its JSON.
    keep
        Reasons whose step is switched off, such as `"status"` or `"invalid"`: such rows stay.
    values
        Without, no message quotes what stands in a cell.
    engine
        `"embedded"`: this machine, with DuckDB. `"spark"`: `table` is a Spark DataFrame, and so are the rows.
    jobs
        How many processes read a file (0: one a core if it is large).

    Returns
    -------
    EvalSetBuild
        `rows`, `set_aside` and `summary`: `summary.records == len(rows) + len(set_aside)`.

    Raises
    ------
    EvalSetError
        It could not run: no such file, a table of no known family, an option without meaning, DuckDB is not installed.
    """
    options = {
        "sample": sample,
        "seed": seed,
        "stratify": stratify,
        "dedupe": dedupe,
        "labels": labels,
        "redact": redact,
        "since": since,
        "until": until,
        "where": where,
        "family": family,
        "map": map,
        "keep": keep,
        "values": values,
    }
    if engine == "spark":
        from agent_eval_schema.inference_tables.spark import spark_from_inference_table

        if jobs:
            raise EvalSetError("jobs: on Spark its own settings say how many processes there are")
        return spark_from_inference_table(table, traces=traces, **options)
    if engine != "embedded":
        raise EvalSetError(f"engine: expected embedded or spark, got {engine!r}")
    work = WorkFolder(tempfile.mkdtemp(prefix="agent-eval-schema-"))
    try:
        build = build_set(table, work, traces=traces, jobs=jobs, screen=notebook(), **options)
    except BaseException:
        work.remove()
        raise
    weakref.finalize(build, shutil.rmtree, work.folder, ignore_errors=True)
    return build


def build_set(
    table: Any,
    work: WorkFolder,
    *,
    traces: Any = None,
    jobs: int = 0,
    screen: ProgressDisplay | None = None,
    resume: bool = False,
    out: str | None = None,
    **options: Any,
) -> EvalSetBuild:
    """Build in a work folder; what an earlier run of the same job left there is used if `resume`. With `out` the rows
    go into that file or new Delta table, else into the work folder. The other options are those of
    `eval_set_from_inference_table`."""
    require_duckdb()
    start = time.perf_counter()
    source = open_source(table)
    plan, reason = plan_of(columns_of(source, table, options), joins_traces=traces is not None, **options)
    job_told = {"plan": msgspec.to_builtins(plan), "inputs": inputs_of(source, options.get("labels"), traces)}
    plan = msgspec.structs.replace(plan, now=work.start(job_told, resume=resume))
    hook = options.get("redact") if callable(options.get("redact")) else None
    workers = jobs or worth_workers(source.path, source.stored_bytes)
    job = BuildJob(source.path or "", str(work.folder), plan, workers=workers if source.path else 1)
    logged = 0
    with progress(source.read_share, screen) as so_far:
        for size in convert(source, job):
            logged += size
            so_far.add(size)
    add_labels(work, options.get("labels", FEEDBACK), plan)
    add_traces(work, traces)
    found = decided(work, plan)
    tally = _Tally(plan, work)
    kept = dict(found["reasons"]).get(None, 0)
    with progress(lambda done: done / max(kept, 1), screen) as so_far:
        rows_in_order = regrouped(tally.rows(finish(job, hook), so_far.add))
        rows = _stored(rows_in_order, work, out)
    summary = tally.summary(source.name, reason, logged, found, hook, time.perf_counter() - start)
    return EvalSetBuild(work, plan, summary, tally.builder, finish_plan(plan), hook, rows)


def columns_of(source: Source, table: Any, options: Mapping[str, Any]) -> list[str]:
    """The columns of a table: of Parquet those of all files; of a table whose rows have each their own, those of the
    first batch, or of all if these do not tell what it is, or an option may name another one."""
    if source.kind == "parquet" and source.path is not None:
        return parquet_columns(source.path)
    first = source.head()
    if first is None:  # data in memory without rows has columns all the same
        return [str(n) for n in getattr(table, "column_names", getattr(table, "columns", ()))]
    names = column_names(first.schema)
    if source.kind in ("jsonl", "json", "list") and (_names_columns(options) or not _is_known(names, options)):
        return [str(n) for n in schema_of(source.kind, source.batches()).names]
    return names


def _names_columns(options: Mapping[str, Any]) -> bool:
    """Whether an option may name any column of the table."""
    return any(options.get(name) is not None for name in ("where", "stratify", "map"))


def _is_known(names: list[str], options: Mapping[str, Any]) -> bool:
    if options.get("family", "auto") != "auto":
        return True
    try:
        detect_family(names, aliases_of(options.get("map")))
    except EvalSetError:
        return False
    return True


def inputs_of(source: Source, labels: Any, traces: Any) -> list[dict[str, Any]]:
    """What a set is made of: each file with its size and when it was changed, so that another one is told apart."""
    others = [open_source(t).name for t in (labels, traces) if t is not None and not _is_option(t)]
    # What stands at a URL may be another table each time: what was made of the last one is not used again.
    return [
        input_of(name) | ({"fetched_ns": time.time_ns()} if "://" in name else {})
        for name in (source.name, *others)
        if name is not None
    ]


def _is_option(labels: Any) -> bool:
    return isinstance(labels, str) and labels == FEEDBACK


def input_of(path: str) -> dict[str, Any]:
    """A file, or a folder of Parquet files, by name, size and time; a version of a Delta folder by its name, which
    holds the version."""
    if is_delta(path) or not os.path.exists(path):
        return {"path": path}
    said = [os.stat(name) for name in files_of(path)]
    told = {"path": path, "bytes": sum(s.st_size for s in said), "modified_ns": max(s.st_mtime_ns for s in said)}
    return {**told, "files": len(said)} if os.path.isdir(path) else told


# ---------------------------------------------------------------------------------------------------------------------
# rows
class _Tally:
    """Counts the finished rows while they pass, and sets the invalid ones aside."""

    def __init__(self, plan: BuildPlan, work: WorkFolder) -> None:
        self._plan, self._work = plan, work
        self._check = finish_plan(plan)
        nowhere = Source("arrow", lambda: iter(()), lambda _: pd.DataFrame())
        # that no id is there twice is settled already; to look again takes memory for each row
        settled = frozenset[str]() if plan.keeps("repeated") else frozenset([dataset.REPEATED_REQUEST_ID.code])
        codes = self._check.codes - settled
        self.builder = ReportBuilder(codes, self._check.outputs, nowhere, keep=ISSUES_KEPT, values=plan.values)
        self._issues: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._redacted: Counter[str] = Counter()
        self._invalid = self._rows = 0

    def rows(self, finished: Iterable[tuple[PartKey, pa.RecordBatch]], seen: Any) -> Iterator[pa.RecordBatch]:
        """The rows that stay, in the columns of ROWS."""
        for place, batch in finished:
            valid = np.asarray(verdict(batch, "valid")).astype(bool) | self._plan.keeps("invalid")
            if not valid.all():
                self._set_aside(place, filtered(batch, ~valid))
                batch = filtered(batch, valid)
            self._add(batch)
            seen(len(valid))
            if batch.num_rows:
                yield evaluation_rows(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self.builder.add(batch)
        self._labels += label_counts(batch)
        self._redacted += redacted_counts(batch)

    def _set_aside(self, place: PartKey, batch: pa.RecordBatch) -> None:
        self._invalid += batch.num_rows
        codes = verdict(batch, "issues").flatten().field("code").value_counts().to_pylist()
        self._issues.update({entry["values"]: entry["counts"] for entry in codes})
        self._work.commit_invalid(place, invalid_rows(batch))

    def _strata(self, lines: list[list[Any]]) -> tuple[Stratum, ...]:
        return tuple(Stratum(*line) for line in lines[:STRATA_KEPT]) if self._plan.stratified else ()

    def summary(
        self, name: str | None, reason: str, logged: int, found: dict[str, Any], hook: Hook | None, seconds: float
    ) -> Summary:
        reasons = {r: n for r, n in found["reasons"] if r is not None}
        records = sum(n for _, n in found["reasons"])
        if self._invalid:
            reasons["invalid"] = self._invalid
        steps = funnel_steps(records, reasons)
        assert steps[-1].left == self._rows, "a row was lost"
        said = feedback_counts(dict(found["feedback"]))
        self.builder.finish()
        issues = issue_counts(self._issues + Counter(self.builder.counts), said)
        return Summary(
            table=name,
            family=self._plan.family,
            family_reason=reason,
            logged=logged,
            records=records,
            steps=steps,
            rows=self._rows,
            feedback=said,
            labels=dict(sorted(self._labels.items())),
            redacted=dict(sorted(self._redacted.items())),
            traces_joined=found["joined"],
            strata=self._strata(found["strata"]),
            issues=issues,
            sample=self._plan.sample,
            seed=self._plan.seed,
            redaction="hook" if hook is not None else self._plan.redact,
            seconds=seconds,
        )


def regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches, at least one (without rows, if there are none)."""
    held: list[pa.RecordBatch] = []
    rows = size = total = 0
    for batch in batches:
        held.append(batch)
        total += batch.num_rows
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield one_batch(held)
            held, rows, size = [], 0, 0
    if held:
        yield one_batch(held)
    if not total:
        yield pa.RecordBatch.from_pylist([], schema=ROWS)


def _stored(rows: Iterator[pa.RecordBatch], work: WorkFolder, out: str | None) -> Source:
    """Write the rows where they belong; gives the source that reads them again."""
    if out is not None:
        write_rows(out, rows, ROWS)
        return open_source(out)
    path = work.write_rows(rows)

    def batches() -> Iterator[pa.RecordBatch]:
        return work.read_rows(path)

    return Source("arrow", batches, lambda mask: frame_of(rows_where(batches(), mask)), nests=False)


def write_rows(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a Parquet or JSONL file, by its ending, or else into a new Delta table; whole or not at all."""
    if os.path.splitext(path)[1]:
        return write_batches(path, batches, schema)
    from agent_eval_schema.io.delta import write_delta

    return write_delta(path, batches, schema)


def require_out(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    if os.path.splitext(path)[1]:
        require_writable(path)
        return
    from agent_eval_schema.io.delta import require_new_delta

    require_new_delta(path)


def _with_times(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with the column as microseconds in UTC: nanoseconds end in 2262, clocks that are wrong do not."""
    times = [None if t is pd.NaT else t for t in frame[name].tolist()]
    frame[name] = pa.array(times, pa.timestamp("us", "UTC")).to_pandas().array
    return frame
