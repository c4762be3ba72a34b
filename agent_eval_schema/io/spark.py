"""A Spark DataFrame is checked where it is: the kernel runs on the executors, validation results come back.

    spark_validate(df)       df ──mapInArrow(check_batch)──▶ results, one line per row
    validate_eval_set(df)    df ──mapInArrow(check_batch)──▶ packed results ──▶ the driver's CheckedRun ──▶ Report

No row is collected. The driver fetches what a CheckedRun counts: a few bytes per row, packed, a partition at a time.
Data that a Report reads later (`rows`, excerpts of cells) is streamed; `valid` and `invalid` are DataFrames.

The package must be installed where the executors run. Works with the API of Spark 3.5, and so with 4.x and Connect.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import cast_all, filtered, in_utc, pack, unpack
from agent_eval_schema.cells.batch import repeated, without_marks
from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.io.atomic import as_new_folder, require_local_place
from agent_eval_schema.io.source import HEAD_ROWS, Source, rows_per_batch
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


Stream = Iterator[pa.RecordBatch]


def spark_source(df: DataFrame) -> Source:
    """The source for a Spark DataFrame. Rows are in the order of its partitions; that must be the same at each reading,
    as it is for files and tables (else persist the DataFrame first)."""
    there = OnSpark(df)
    return Source(
        kind="spark",
        batches=there.batches,
        take=there.take,
        columns=tuple(df.columns),
        can_hold_objects=False,
        repeated_columns=repeated(df.columns),
        remote=there,
    )


class OnSpark:
    """The rows of a DataFrame, as a `Source` needs them; see `Remote`."""

    def __init__(self, df: DataFrame) -> None:
        self._names = df.columns
        self._df = plainly_named(df)

    def batches(self) -> Stream:
        """The rows, streamed to the driver; first a batch without rows, which has the columns."""
        return self.map(without_marks)

    def any(self, test: Callable[[pa.RecordBatch], bool]) -> bool:
        """Whether the test is true of any batch; looks no further than it must."""
        frame = in_python(self._df, partial(_any, test, self._names), "found boolean")
        with naming_missing_packages():
            return bool(frame.limit(1).collect())

    def map(self, work: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Stream:
        """What `work` makes of every batch on the executors, in the order of the rows; first of one without rows."""
        yield work(self._columns)
        yield from self._fetched(work)

    def take(self, mask: np.ndarray[Any, Any]) -> DataFrame:
        """The rows where the mask is true, as a DataFrame with the columns of this one."""
        rows = with_places(self._df)
        parts = rows.selectExpr(f"CAST(shiftright(place, {PLACE_BITS}) AS int) AS part").groupBy("part").count()
        sizes: dict[int, int] = {row[0]: row[1] for row in parts.collect()}
        starts = np.zeros(max(sizes, default=0) + 2, np.int64)
        for part, size in sizes.items():
            starts[part + 1] = size
        taken = in_python(rows, partial(_taken, np.packbits(mask), np.cumsum(starts)), self._df.schema)
        return taken.toDF(*self._names)

    def first(self, most: int) -> list[pa.RecordBatch]:
        """The first rows, at most HEAD_ROWS, in batches."""
        starts = accumulate((batch.num_rows for batch in self._head), initial=0)  # and the end of the last one
        return [b.slice(0, most - start) for b, start in zip(self._head, starts, strict=False) if start < most]

    @cached_property
    def _head(self) -> list[pa.RecordBatch]:
        messages = partial(_messages, without_marks, self._names)
        with naming_missing_packages():
            rows = in_python(self._df.limit(HEAD_ROWS), messages, "message binary").collect()
        return [unpack(row[0]) for row in rows]

    @property
    def _columns(self) -> pa.RecordBatch:
        """A batch without rows: of the types that Spark's rows have, if there is one to see."""
        if self._head:
            return self._head[0].slice(0, 0)
        return without_marks(pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(self._names), self._names))

    def _fetched(self, work: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Stream:
        frame = in_python(self._df, partial(_messages, work, self._names), "message binary")
        with naming_missing_packages(), kept_until_read(frame) as messages:
            for row in messages.toLocalIterator():
                yield unpack(row[0])


def plainly_named(df: DataFrame) -> DataFrame:
    """The DataFrame with columns c0, c1 …: mapInArrow looks columns up by name, and fails on a name with a dot or a
    backtick, or a duplicate. `named` restores the names."""
    return df.toDF(*(f"c{i}" for i in range(len(df.columns))))


PLACE_BITS = 33
"""Where Spark's own numbers of rows have the partition: `monotonically_increasing_id` is documented so."""


def with_places(df: DataFrame) -> DataFrame:
    """The DataFrame, plainly named, with a first column with the place of each row: its partition and its position in
    it. (The number of a task is not the partition: in a union of two DataFrames those of the second continue the
    first.)"""
    from pyspark.sql.functions import monotonically_increasing_id

    plain = plainly_named(df)
    return plain.select(monotonically_increasing_id().alias("place"), *plain.columns)


def traces_of_spans(df: DataFrame) -> DataFrame:
    """The traces of a table with a span per row: their spans as JSON, in a column `trace`. In each partition by ID, so
    that the rows are in the same order at each reading."""
    from pyspark.sql.functions import expr

    spans = df.groupBy("trace_id").agg(expr("TO_JSON(COLLECT_LIST(STRUCT(*)))").alias("trace"))
    return spans.sortWithinPartitions("trace_id").select("trace")


def in_python(df: DataFrame, work: Callable[[Stream], Stream], schema: Any) -> DataFrame:
    """The result of `work` on the rows of a plainly named DataFrame, without the time that null lists take. Workers on
    this machine use this interpreter, which has the package, unless the user chose one: Spark takes any `python3`."""
    context = getattr(df.sparkSession, "_sc", None)  # Spark Connect has none: its server chooses
    if context is not None and context.master.startswith("local"):
        is_chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
        context.pythonExec = context.pythonExec if is_chosen else sys.executable
    return lists_filled(df).mapInArrow(partial(_with_nulls, work), schema)


@contextmanager
def naming_missing_packages() -> Iterator[None]:
    """Raise EvalSetError, in one line, if a package is missing where the rows are."""
    try:
        yield
    except Exception as error:  # of Spark or of Spark Connect, in all versions
        missing = re.search(r"No module named '[\w.]+'", str(error))
        if missing is None or isinstance(error, EvalSetError):
            raise
        raise EvalSetError(
            f"the Python of Spark's workers cannot import agent_eval_schema ({missing[0]}): install it there, or set "
            f"PYSPARK_PYTHON to an interpreter that has it, such as {sys.executable}, before Spark starts"
        ) from error


def lists_filled(df: DataFrame) -> DataFrame:
    """The DataFrame with empty lists and maps for those that are null, and behind its columns one for each of these, in
    their order, with their places. Spark 4 measures what it has gathered for Python at each row, and goes through all
    nulls of a list again: with mostly null lists that takes longer than all else."""
    empty = {f.name: f"{kind}()" for f in df.schema.fields if (kind := f.dataType.typeName()) in ("array", "map")}
    filled = [f"COALESCE({name}, {empty[name]}) AS {name}" if name in empty else name for name in df.columns]
    return df.selectExpr(*filled, *(f"{name} IS NULL AS {name}_null" for name in empty))


@contextmanager
def kept_until_read(df: DataFrame) -> Iterator[DataFrame]:
    """The DataFrame, computed on all executors at once and kept until it has been read: partitions that are fetched in
    turn would be computed in turn. Where nothing can be kept (serverless compute) they are."""
    from pyspark.errors import PySparkException

    try:
        df = df.persist()
    except PySparkException:
        yield df
        return
    try:
        df.count()
        yield df
    finally:
        # a stream that is dropped half-read ends when the garbage collector comes, perhaps within a call of Spark
        with suppress(Exception):
            df.unpersist()


def persisted(df: DataFrame, on_disk: bool = False) -> DataFrame:
    """The DataFrame, kept once it is computed, where Spark can keep anything: in memory, as far as there is room. There
    is none for payloads: those of 1,000,000 rows would drive out what is sent to all executors."""
    from pyspark import StorageLevel
    from pyspark.errors import PySparkException

    try:
        return df.persist(StorageLevel.DISK_ONLY) if on_disk else df.persist()
    except PySparkException:  # serverless compute
        return df


def with_short_plan(df: DataFrame) -> DataFrame:
    """The rows of a persisted DataFrame, which plans what is made of them as if they came from a table: Spark analyzes
    the whole plan of a DataFrame again for each that is made of it, once for each time that it is named."""
    try:
        session, own = df.sparkSession, df._jdf
        rows = own.queryExecution().toRdd()
        return type(df)(session._jsparkSession.internalCreateDataFrame(rows, own.schema(), False), session)
    except Exception:  # Spark Connect plans on its server, and a cluster may allow no such call
        return df


def unpersist(df: DataFrame) -> None:
    from pyspark.errors import PySparkException

    with suppress(PySparkException):  # serverless compute has kept nothing
        df.unpersist()


# --- on the executors
def named(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Stream:
    """Batches with their real names, of our size (those of Spark have 10,000 rows, however large a row is), moments in
    UTC (Spark writes those of the session's zone)."""
    for batch in batches:
        batch = cast_all(pa.RecordBatch.from_arrays(batch.columns, names=list(names)), in_utc)
        # not nbytes: it reads offsets, and Spark 3.5 writes none for a list without items below another; Arrow crashes
        step = rows_per_batch(batch.get_total_buffer_size() / max(batch.num_rows, 1))
        for start in range(0, batch.num_rows, step):
            yield without_marks(batch.slice(start, step))


def _with_nulls(work: Callable[[Stream], Stream], batches: Stream) -> Stream:
    """The work on the rows as they were before `lists_filled`."""

    def restored(batch: pa.RecordBatch) -> pa.RecordBatch:
        lists = [i for i, f in enumerate(batch.schema) if pa.types.is_list(f.type) or pa.types.is_map(f.type)]
        columns = batch.columns[: batch.num_columns - len(lists)]
        for i, absent in zip(lists, batch.columns[len(columns) :], strict=True):
            # null where marked; the content of the lists is not examined: see `named`
            buffers, values = [pc.invert(absent).buffers()[1], columns[i].buffers()[1]], columns[i].values
            columns[i] = pa.Array.from_buffers(columns[i].type, len(batch), buffers, children=[values])
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names[: len(columns)])

    return work(map(restored, batches))


def _messages(work: Callable[[pa.RecordBatch], pa.RecordBatch], names: Sequence[str], batches: Stream) -> Stream:
    """The result of each batch, packed into one cell."""
    for batch in named(names, batches):
        yield pa.RecordBatch.from_arrays([pa.array([pack(work(batch), "zstd")], pa.binary())], names=["message"])


def _any(test: Callable[[pa.RecordBatch], bool], names: Sequence[str], batches: Stream) -> Stream:
    if any(map(test, named(names, batches))):
        yield pa.RecordBatch.from_arrays([pa.array([True])], names=["found"])


def _taken(bits: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], batches: Stream) -> Stream:
    mask = np.unpackbits(bits).astype(bool)
    for batch in batches:
        places = np.asarray(batch.column(0))
        rows = starts[places >> PLACE_BITS] + (places & ((1 << PLACE_BITS) - 1))
        yield filtered(batch.select(range(1, batch.num_columns)), mask[rows])


# --- types
def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of an Arrow schema in Spark's types."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([f.remove_metadata() for f in schema]), True)


def backticked(name: str) -> str:
    """A name in the notation of Spark SQL, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"


# --- tables that Spark reads and writes itself, for the command line: folders of Parquet, Delta folders, its catalog
@contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """A block that calls Spark: its exceptions, of Java, a cluster or a disk, become one line after `what` failed."""
    try:
        yield
    except EvalSetError:
        raise
    except Exception as error:  # Spark has no type for all of them
        raise EvalSetError(f"{what}: {first_line(error)}") from error


def spark_session() -> SparkSession:
    """The running session, or a new one with the settings of the machine. Raises EvalSetError if there is none."""
    sql = import_extra("pyspark.sql", "spark", "pyspark 3.5")
    with spark_errors("Spark cannot be started"):
        session: SparkSession = sql.SparkSession.builder.appName("agent-eval-schema").getOrCreate()
        return session


def read_table(spark: SparkSession, name: str) -> DataFrame:
    """A Parquet file or folder, a Delta folder, or a table of the catalog. Raises EvalSetError."""
    with spark_errors(f"{name}: Spark cannot read it"):
        if not os.path.exists(name) and "://" not in name:
            return spark.table(name)
        if os.path.isdir(os.path.join(name, "_delta_log")):
            return spark.read.format("delta").load(name)
        return spark.read.parquet(name)


def require_new(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if no new folder can be written at `path`."""
    if os.path.splitext(path)[1] not in ("", ".parquet", ".delta"):
        raise EvalSetError(f"{path}: Spark writes a folder of Parquet files (NAME.parquet) or a Delta table (NAME)")
    if os.path.lexists(path):
        raise EvalSetError(f"{path}: there is something already: Spark writes a new folder")
    require_local_place(path)


def write_table(df: Any, path: str) -> int:
    """Write a new folder; it appears under its name when all of it is there. Returns the number of rows, which are
    counted in the files: the DataFrame is computed once."""
    form = "parquet" if path.endswith(".parquet") else "delta"
    with spark_errors(f"{path}: cannot be written"), as_new_folder(path) as new:
        df.write.format(form).save(new)
        rows: int = df.sparkSession.read.format(form).load(new).count()
    return rows
