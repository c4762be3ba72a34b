"""A logged table → an evaluation set: eval_set_from_inference_table → build_set → stages.

    table ─▶ convert ─▶ decide ─▶ finish ─┬─▶ rows       (in memory, or a file: Parquet, JSONL, a new Delta table)
             (stages.py)                  ├─▶ set aside  (each row with its reason)
                                          └─▶ summary    (the funnel), report, manifest

Whatever is logged ends as a row or is set aside with exactly one reason; everything on the way is in a work folder, so
memory does not grow with the table.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.decide.duckdb import require_duckdb
from agent_eval_schema.inference_tables.finish.finish import ROWS, finish_plan
from agent_eval_schema.inference_tables.finish.redact import Hook, Redactor
from agent_eval_schema.inference_tables.finish.set_aside import SET_ASIDE, redacted, rows_set_aside
from agent_eval_schema.inference_tables.finished_rows import FinishedRows
from agent_eval_schema.inference_tables.input_tables import inputs_of, table_columns
from agent_eval_schema.inference_tables.options import FEEDBACK, BuildOptions, plan_of
from agent_eval_schema.inference_tables.read.plan import BuildPlan
from agent_eval_schema.inference_tables.row_files import regrouped, stored_rows, write_rows
from agent_eval_schema.inference_tables.side_tables import add_labels, add_traces
from agent_eval_schema.inference_tables.stages import BuildJob, convert, decided, finish
from agent_eval_schema.inference_tables.summary import Summarized, Summary, summarized
from agent_eval_schema.inference_tables.work_folder import WorkFolder, decisions_by_part
from agent_eval_schema.io.pandas import to_pandas
from agent_eval_schema.io.source import Source, worth_workers
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.shown import Saved
from agent_eval_schema.runtime.progress import ProgressDisplay, notebook, progress
from agent_eval_schema.runtime.temporary_folder import TemporaryFolder
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.report_builder import ReportBuilder


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
        hook: Hook | None,
        rows: Source,
    ) -> None:
        self.summary = summary
        self._work, self._plan, self._hook, self._rows = work, plan, hook, rows
        self._builder = builder

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
        return Report(self._rows, finish_plan(self._plan), self._builder, self.summary.seconds)

    def iter_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, streamed."""
        return self._rows.batches()

    def iter_set_aside(self) -> Iterator[pa.RecordBatch]:
        """What was set aside as Arrow batches, streamed, in the order of the table."""
        redactor = self._hook or self._plan.redact
        for part, decisions in decisions_by_part(self._work.folder / "decided.parquet"):
            reasons = decisions.column("reason")
            gone = np.asarray(reasons.is_valid())
            rows = filtered(self._work.rows(part), gone) if gone.any() else None
            batches = [] if rows is None else [rows_set_aside(rows, reasons.drop_null())]
            for batch in [*batches, *self._work.invalid(part)]:
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
    options = BuildOptions(
        sample=sample,
        seed=seed,
        stratify=stratify,
        dedupe=dedupe,
        labels=labels,
        redact=redact,
        traces=traces,
        since=since,
        until=until,
        where=where,
        family=family,
        map=map,
        keep=keep,
        values=values,
    )
    if engine == "spark":
        from agent_eval_schema.inference_tables.spark import build_set_on_spark

        if jobs:
            raise EvalSetError("jobs: on Spark its own settings say how many processes there are")
        return build_set_on_spark(table, options)
    if engine != "embedded":
        raise EvalSetError(f"engine: expected embedded or spark, got {engine!r}")
    folder = TemporaryFolder()
    try:
        return build_set(table, WorkFolder(folder), options, jobs=jobs, screen=notebook())
    except BaseException:
        folder.remove()
        raise


def build_set(
    table: Any,
    work: WorkFolder,
    options: BuildOptions,
    *,
    jobs: int = 0,
    screen: ProgressDisplay | None = None,
    resume: bool = False,
    out: str | None = None,
) -> EvalSetBuild:
    """Build in a work folder; what an earlier run of the same job left there is used if `resume`. With `out` the rows
    go into that file or new Delta table, else into the work folder."""
    require_duckdb()
    start = time.perf_counter()
    source = open_source(table)
    plan, reason = plan_of(table_columns(source, table, options), options)
    job_facts = {"plan": msgspec.to_builtins(plan), "inputs": inputs_of(source, options)}
    plan = msgspec.structs.replace(plan, now=work.start(job_facts, resume=resume))
    workers = jobs or worth_workers(source.path, source.stored_bytes)
    job = BuildJob(source.path or "", str(work.folder), plan, workers=workers if source.path else 1)
    logged = 0
    with progress(source.read_share, screen) as so_far:
        for size in convert(source, job):
            logged += size
            so_far.add(size)
    add_labels(work, options)
    add_traces(work, options)
    found = decided(work, plan)
    finished = FinishedRows(plan, work)
    kept = dict(found["reasons"]).get(None, 0)
    with progress(lambda done: done / max(kept, 1), screen) as so_far:
        rows = stored_rows(regrouped(finished.staying(finish(job, options.hook), so_far.add)), work, out)
    summary = summarized(
        plan,
        finished.counts(logged, found),
        table=source.name,
        family_reason=reason,
        redaction="hook" if options.hook else plan.redact,
        seconds=time.perf_counter() - start,
    )
    return EvalSetBuild(work, plan, summary, finished.builder, options.hook, rows)


def _with_times(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with the column as microseconds in UTC: nanoseconds end in 2262, clocks that are wrong do not."""
    times = [None if t is pd.NaT else t for t in frame[name].tolist()]
    frame[name] = pa.array(times, pa.timestamp("us", "UTC")).to_pandas().array
    return frame
