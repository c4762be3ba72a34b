"""A logged table → an evaluation dataset: eval_set_from_inference_table → build_set → stages.

    table ─▶ convert ─▶ decide ─▶ finish ─┬─▶ rows       (in memory, or a file: Parquet, JSONL, a new Delta table)
             (stages.py)                  ├─▶ excluded  (each row with its reason)
                                          └─▶ summary    (the funnel), report, manifest

Every logged row ends as a row or is excluded for exactly one reason; everything on the way is in a work folder, so
memory does not grow with the table.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from agent_eval_schema.cells.arrow import filtered
from agent_eval_schema.cells.notes import column_names
from agent_eval_schema.cells.sizes import joined
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.inference_tables import detect_family, fields_of
from agent_eval_schema.formats.opening import EvalSetLike, open_source
from agent_eval_schema.inference_tables.build_summary import BuildSummary, summarized
from agent_eval_schema.inference_tables.decide.duckdb import require_duckdb
from agent_eval_schema.inference_tables.finish.finish import (
    EXCLUDED,
    UPDATES,
    new_run,
    out_rows,
    redacted,
    rows_excluded,
    split_by_validity,
)
from agent_eval_schema.inference_tables.finish.redact import redactor_of
from agent_eval_schema.inference_tables.make_plan import plan_of
from agent_eval_schema.inference_tables.options import FEEDBACK
from agent_eval_schema.inference_tables.plan import BuildOptions, BuildPlan, Hook
from agent_eval_schema.inference_tables.read.traces import table_of_traces
from agent_eval_schema.inference_tables.result import EvalSetBuild, Table
from agent_eval_schema.inference_tables.side_tables import add_existing, add_side_tables, rows_schema
from agent_eval_schema.inference_tables.stages import BuildJob, convert, decided, finish
from agent_eval_schema.inference_tables.work_folder import EXISTING_UNIT, BuildFolder, PartKey, by_part
from agent_eval_schema.io.delta import require_new_delta, write_delta
from agent_eval_schema.io.pandas import frame_of, to_pandas
from agent_eval_schema.io.parquet import parquet_columns
from agent_eval_schema.io.places import ending_of
from agent_eval_schema.io.source import Source, rows_where, schema_of, size_of, worth_workers
from agent_eval_schema.io.streams import STDIN_NAME
from agent_eval_schema.io.work_folder import input_of
from agent_eval_schema.io.write import require_writable, write_batches
from agent_eval_schema.issues import Finding
from agent_eval_schema.runtime.progress import progress
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.similarity.near import NEAR
from agent_eval_schema.text.choices import require_choice

if TYPE_CHECKING:
    import pandas as pd


class EmbeddedBuild(EvalSetBuild["pd.DataFrame"]):
    """A build whose tables are in a work folder, or in a file: it counts the finished rows while they are stored."""

    summary: BuildSummary
    _rows: Source

    def __init__(self, plan: BuildPlan, work: BuildFolder, hook: Hook | None, remarks: tuple[Finding, ...]) -> None:
        self._plan, self._work, self._hook, self._run = plan, work, hook, new_run(plan, remarks)
        self._schema = rows_schema(work)
        self._updates: list[pa.RecordBatch] = []
        self._counts = defaultdict[str, Counter[str]](Counter)

    def store(
        self, finished: Iterable[tuple[PartKey, pa.RecordBatch]], seen: Callable[[int], None], out: str | None
    ) -> None:
        """Write the rows into `out`, or into the work folder."""

        def staying() -> Iterator[pa.RecordBatch]:
            for part, batch in finished:
                split = split_by_validity(batch, self._plan, part.unit == EXISTING_UNIT)
                self._updates.append(split.updates)
                for name, counts in split.counts.items():
                    self._counts[name] += counts
                if split.invalid.num_rows:
                    self._work.commit_batches(f"invalid/{part.name}.arrow", [split.invalid])
                self._run.add(split.rows)
                seen(batch.num_rows)
                if split.rows.num_rows:
                    yield out_rows(split.rows, self._schema)

        def large() -> Iterator[pa.RecordBatch]:
            batches = joined(staying(), ROWS_AT_LEAST, BYTES_AT_LEAST)
            yield next(batches, pa.RecordBatch.from_pylist([], schema=self._schema))
            yield from batches

        if out is not None:
            write_rows(out, large(), self._schema)
            self._rows = open_source(out)
        else:
            self._work.commit_batches("rows.arrow", large())
            batches = partial(self._work.batches, "rows.arrow")  # without this build: a circle would keep the folder
            self._rows = Source(
                "arrow", batches, lambda mask: frame_of(rows_where(batches(), mask)), can_hold_objects=False
            )
        self._run.builder.finish()
        self._run.source = msgspec.structs.replace(self._rows, remarks=self._run.source.remarks)

    def summarize(self, decided: dict[str, Any], **more: Any) -> None:
        """Sum up what was counted; `decided` are the small results of the decisions."""
        counts, records = self._counts, sum(rows for _, rows in decided["reasons"])
        counts["reason"] += Counter({reason: rows for reason, rows in decided["reasons"] if reason is not None})
        counts["codes"] += Counter(self._run.builder.counts)
        assert records == counts["kept"].total() + counts["reason"].total(), "a row was lost"
        self.summary = summarized(
            self._plan, self._hook, decided, counts, records=records, traces_joined=decided["joined"], **more
        )

    def _frame(self, name: Table) -> pd.DataFrame:
        import pandas as pd

        frame: pd.DataFrame
        if name == "rows":
            frame = to_pandas(self._rows.batches(), self._rows)
            # in microseconds: nanoseconds end in 2262, invalid times do not
            times = [None if t is pd.NaT else t for t in frame["request_time"].tolist()]
            frame["request_time"] = pa.array(times, pa.timestamp("us", "UTC")).to_pandas().array
            return frame
        if name == "updates":
            frame = pa.Table.from_batches(self._updates, schema=UPDATES).to_pandas(ignore_metadata=True)
            return frame.astype(object).where(frame.notna(), None)
        frame = pa.Table.from_batches(list(self._batches(name)), schema=EXCLUDED).to_pandas(ignore_metadata=True)
        for column in ("request_id", "reason", "message", "request", "response"):
            frame[column] = frame[column].astype(object).where(frame[column].notna(), None)
        frame["status_code"] = frame["status_code"].astype("Int32")
        return frame

    def _batches(self, name: Table) -> Iterator[pa.RecordBatch]:
        if name == "rows":
            yield from self._rows.batches()
            return
        for part, decisions in by_part(self._work.folder / "decided.parquet", "reason"):
            reasons = decisions.column("reason")
            gone = np.asarray(reasons.is_valid())
            if gone.any():
                excluded = rows_excluded(filtered(self._work.rows(part), gone), reasons.drop_null())
                yield redacted(excluded, redactor_of(self._plan, self._hook))
            yield from self._work.batches(f"invalid/{part.name}.arrow")

    def _write(self, name: Table, path: str) -> int:
        return write_rows(path, self._batches(name), self._schema if name == "rows" else EXCLUDED)

    def close(self) -> None:
        self._work.remove()


def eval_set_from_inference_table(
    table: EvalSetLike,
    *,
    sample: int | float | None = None,
    seed: int = 0,
    stratify: str | None = None,
    balance_by: str | None = None,
    dedupe: Literal["id", "question", "near"] | None = "id",
    near: float = NEAR,
    extend: EvalSetLike | None = None,
    labels: EvalSetLike | None = FEEDBACK,
    redact: str | Hook | None = None,
    redact_region: str | Iterable[str] = (),
    traces: EvalSetLike | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    where: str | None = None,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    include: Iterable[str] = (),
    show_values: bool = True,
    engine: Literal["embedded", "spark"] = "embedded",
    jobs: int = 0,
) -> EvalSetBuild[Any]:
    """Build an evaluation dataset from an inference table (request log).

    The result is labeled, sampled and validated. Every logged row is either in the dataset or excluded for exactly one
    reason.

    Parameters
    ----------
    table : EvalSetLike
        An inference table of an endpoint (legacy, AI Gateway, Unity AI Gateway), a table derived from one, or traces
        (also of `traces_from_store`): a pandas DataFrame, an Arrow table, a list of dicts, or the path of a Parquet,
        JSON Lines, JSON or CSV file, of a folder of Parquet files or of a Delta folder. With `engine="spark"` a Spark
        DataFrame. It is not changed.
    sample : int, float or None, default None
        The sample size: a number of rows or a fraction such as 0.1. None selects all rows.
    seed : int, default 0
        The seed of the sample. Rows are selected by a hash of the seed and the `request_id`, so the same rows are
        selected in any order, with any engine and any number of processes.
    stratify : str or None, default None
        Stratify the sample, by largest remainder: a column, `"day"`, `"served_entity"`, `"failed"`, `"thumbs"` (the
        feedback in the table), or an SQL expression over the columns of the table. None does not stratify.
    balance_by : str or None, default None
        Draw equally many rows of each value, instead of `stratify`: a value with few rows contributes all of them, and
        the others share the rest. The values are those of `stratify`; `sample` must be a number of rows.
    dedupe : {"id", "question", "near"} or None, default "id"
        `"id"` keeps the earliest of several rows with the same ID. `"question"` also keeps only the latest of several
        rows with the same question, and `"near"` only the latest of several near duplicates, both as
        `profile_eval_set` counts them. None keeps all rows.
    near : float, default 0.7
        The similarity of near duplicates, above 0 and at most 1, as `profile_eval_set` has it: of the pairs of words
        that two questions have, the share that both have. Used with `dedupe="near"`.
    extend : EvalSetLike or None, default None
        An evaluation dataset with the canonical columns, such as the rows of an earlier build. Its rows come first and
        stay as they are; only later feedback updates their labels (`updates`). Calls that it has are excluded: by ID,
        and by question or near duplicate if `dedupe` names that. `sample`, `stratify` and `balance_by` are those of the
        whole dataset, with its rows as a part. None starts a new dataset.
    labels : "feedback", EvalSetLike or None, default "feedback"
        The source of ground-truth labels. `"feedback"`: the feedback requests in the table and the human assessments in
        its traces give `expected_response` and `expected_retrieved_context`. An assessment-log table replaces both.
        None adds no labels.
    redact : str, callable or None, default None
        The redaction. `"default"` replaces email addresses, phone numbers, card numbers and IBANs. A function from str
        to str, or its name (`"module:function"`), is applied to every string. None replaces nothing.
    redact_region : str or iterable of str, default ()
        Countries, such as `"DE"` or `["DE", "US"]`, whose national phone numbers and IDs `redact="default"` replaces,
        too. It requires the extra `redact`.
    traces : EvalSetLike or None, default None
        A table of traces for rows without one, joined on the row's ID as the trace's `client_request_id` or as its ID.
        Rows that were too large for the log take request and response from it. None joins no traces.
    since : str, datetime.date, datetime.datetime or None, default None
        The start of the time window, inclusive; UTC if it has no time zone. None sets no start.
    until : str, datetime.date, datetime.datetime or None, default None
        The end of the time window, exclusive. None sets no end.
    where : str or None, default None
        An SQL condition over the columns of the table. Feedback is read from all rows. None selects all rows.
    format : str, default "auto"
        The format of the table, such as `"ai_gateway"`. `"auto"` detects it from the column names.
    columns : mapping of str to str or None, default None
        The fields of a call in columns of another log, such as `{"body.input": "request"}`: by a column, or a dotted
        path into its JSON. None uses the columns of the format.
    include : iterable of str, default ()
        Reasons for exclusion that are not applied, such as `"status"` or `"invalid"`.
    show_values : bool, default True
        If False, omit cell values from messages.
    engine : {"embedded", "spark"}, default "embedded"
        `"embedded"` runs on this machine, with DuckDB. `"spark"` runs on the executors of a Spark DataFrame.
    jobs : int, default 0
        The number of worker processes. 0 uses one per core for files over 64 MB.

    Returns
    -------
    EvalSetBuild
        The rows, the excluded rows and the row counts per step; with `engine="spark"` its tables are Spark DataFrames.

    Raises
    ------
    MissingExtraError
        DuckDB is not installed.
    EvalSetError
        There is no such file, the format of the table is unknown, or an option is not valid.

    See Also
    --------
    spark_from_inference_table : The same with the engine `"spark"`.
    eval_set_from_traces : Return the canonical rows of traces.

    Examples
    --------
    >>> from agent_eval_schema import eval_set_from_inference_table
    >>> build = eval_set_from_inference_table("sample_data/inference_table.jsonl", sample=5)
    >>> build
    <EvalSetBuild: 27 logged → 29 records → 22 calls → 15 readable → 14 distinct → 5 sampled>
    >>> build.rows[["response", "status_code"]].shape
    (5, 2)
    """
    options = BuildOptions(
        **{name: value for name, value in locals().items() if name in BuildOptions.__struct_fields__}
    )
    require_choice("engine", engine, ("embedded", "spark"))
    if engine == "spark":
        from agent_eval_schema.inference_tables.spark import build_set_on_spark

        if jobs:
            raise EvalSetError("jobs: Spark's own settings determine the number of processes")
        return build_set_on_spark(table, options)  # type: ignore[arg-type]  # which it tests
    folder = TemporaryFolder()
    try:
        return build_set(table, BuildFolder(folder), options, jobs=jobs)
    except BaseException:
        folder.remove()
        raise


def build_set(
    table: Any, work: BuildFolder, options: BuildOptions, *, jobs: int, resume: bool = False, out: str | None = None
) -> EmbeddedBuild:
    """Build in a work folder; what an earlier run of the same job left there is used if `resume`. With `out` the rows
    go into that file or new Delta table, else into the work folder."""
    require_duckdb()
    start = time.perf_counter()
    source, traces = open_source(table, "table"), None
    if options.format == "auto" and options.columns is None:
        source, traces = table_of_traces(source)
    plan, reason = plan_of(table_columns(source, table, options), options)
    # Each file with its size and modification time, so that a changed one is detected. A URL or stdin may be another
    # table each time: the results of the last one are not reused.
    names = (source.name, *(open_source(other).name for other in options.tables.values()))
    inputs = [
        input_of(name) | ({"fetched_ns": time.time_ns()} if "://" in name or name == STDIN_NAME else {})
        for name in names
        if name is not None
    ]
    job_facts = {"plan": msgspec.to_builtins(plan), "inputs": inputs}
    plan = msgspec.structs.replace(plan, now=work.start(job_facts, resume=resume))
    workers = (jobs or worth_workers(size_of(source))) if source.path else 1
    job = BuildJob(source.path or "", str(work.folder), plan, workers=workers)
    add_existing(work, plan, options)
    logged = 0
    with progress(source.read_share) as so_far:
        for size in convert(source, job):
            logged += size
            so_far.add(size)
    add_side_tables(work, options)
    decisions = decided(work, plan)
    build = EmbeddedBuild(plan, work, options.hook, source.remarks)
    build._tables = names
    total = dict(decisions["reasons"]).get(None, 0) + work.existing_rows()
    with progress(lambda done: done / max(total, 1)) as so_far:
        build.store(finish(job, options.hook), so_far.add, out)
    seconds = time.perf_counter() - start
    family, why = (plan.family, reason) if traces is None else (traces.name, "one row per trace")
    build.summarize(decisions, logged=logged, table=source.name, seconds=seconds, format=family, format_reason=why)
    return build


def table_columns(source: Source, table: Any, options: BuildOptions) -> list[str]:
    """The columns of a table: for Parquet those of all files; for a table whose rows have columns of their own, those
    of the first batch, or of all if these do not identify it, or an option may name another one."""
    if source.kind == "parquet" and source.path is not None:
        return parquet_columns(source.path)
    first = source.head()
    if first is None:  # data in memory without rows has columns all the same
        return [str(n) for n in getattr(table, "column_names", getattr(table, "columns", ()))]
    names = column_names(first.schema)
    if source.ragged:
        naming = (options.where, options.stratify, options.balance_by, options.columns)
        try:
            if options.format == "auto":
                detect_family(names, fields_of(options.columns))
        except EvalSetError:
            return [str(n) for n in schema_of(source).names]
        if any(option is not None for option in naming):
            return [str(n) for n in schema_of(source).names]
    return names


ROWS_AT_LEAST, BYTES_AT_LEAST = 1_024, 4 << 20
"""Rows are written in batches of one of these sizes or more, however few of them each part of the table has."""


def write_rows(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Stream rows into a Parquet or JSONL file, by its extension, else into a new Delta table; whole or not at all."""
    return (write_batches if ending_of(path) else write_delta)(path, batches, schema)


def require_out(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    (require_writable if ending_of(path) else require_new_delta)(path)
