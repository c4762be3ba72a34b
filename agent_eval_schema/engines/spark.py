"""A Spark DataFrame is checked where it is: the kernel goes to the rows, verdicts come back.

    spark_validate(df)       df ──mapInArrow(check_batch)──▶ verdicts, a line a row
    validate_eval_set(df)    df ──mapInArrow(check_batch)──▶ packed verdicts ──▶ the driver's Fold ──▶ Report

No row is collected. The driver fetches what a Fold needs: a few bytes a row, packed, a partition at a time. What a
Report is asked for later (`rows`, excerpts of cells) is streamed; `valid` and `invalid` are DataFrames.

The package must be installed where the executors run. Works with the API of Spark 3.5, and so with 4.x and Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from agent_eval_schema.arrow_types import cast_all, in_utc
from agent_eval_schema.cells import filtered, repeated, without_marks
from agent_eval_schema.check import check_batch, make_plan, words
from agent_eval_schema.frames import Source, rows_per_batch
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.plan import Plan
from agent_eval_schema.rules import RULES
from agent_eval_schema.verdict import verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]

VALID, ISSUES = "_valid", "_issues"
"""The columns of `spark_validate` beside those of the caller."""

ISSUE = pa.struct([(name, pa.string()) for name in ("code", "name", "severity", "column", "path", "message", "hint")])


def spark_validate(
    df: DataFrame,
    *,
    format: str = "auto",
    outputs: str = "auto",
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    values: bool = True,
    keep: Iterable[str] = ("request_id",),
) -> DataFrame:
    """Check every row of a Spark DataFrame on its executors: a DataFrame with a line a row, lazily.

    Its columns are those of `df` that `keep` names (as far as there are such), `_valid`, and `_issues`: an array of
    structs (code, name, severity, column, path, message, hint). `_issues` of all rows as lines of their own:
    `spark_validate(df).selectExpr("request_id", "inline(_issues)")`; the invalid rows, whole:
    `spark_validate(df, keep=df.columns).where("not _valid")`.

    The options are those of `validate_eval_set`, which takes a Spark DataFrame too and gives the Report, with the rules
    that compare rows (AE9). With `outputs="auto"` the data is looked through for a response or a trace, as far as the
    first one.

    Raises EvalSetError for an unknown option.
    """
    plan = make_plan(spark_source(df), format, outputs, words(select), words(ignore), values)
    kept = [name for name in dict.fromkeys(words(keep)) if name in df.columns]
    for name in (VALID, ISSUES):
        if name in kept:
            raise EvalSetError(
                f"the verdict is written to {VALID} and {ISSUES}: rename the column {name} or do not keep it"
            )
    fields = [f"{quoted(f.name)} {f.dataType.simpleString()}" for n in kept for f in df.schema.fields if f.name == n]
    schema = ", ".join([*fields, f"{VALID} boolean", f"{ISSUES} {ddl_of(pa.list_(ISSUE))}"])
    return in_python(plainly_named(df), partial(_verdicts, plan, df.columns, kept), schema)


def spark_source(df: DataFrame) -> Source:
    """The source for a Spark DataFrame. Rows are in the order of its partitions; that must be the same at each reading,
    as it is for files and tables (else persist the DataFrame first)."""
    there = OnSpark(df)
    return Source(
        kind="spark",
        batches=there.batches,
        take=there.take,
        nests=False,
        repeated_columns=repeated(df.columns),
        elsewhere=there,
    )


class OnSpark:
    """The rows of a DataFrame, as a `Source` needs them; see `frames.Elsewhere`."""

    def __init__(self, df: DataFrame) -> None:
        self._names = df.columns
        self._df = plainly_named(df)

    def batches(self) -> Batches:
        """The rows, streamed to the driver; first a batch without rows, which has the columns."""
        yield self._columns
        yield from self._fetched(without_marks)

    def any(self, test: Callable[[pa.RecordBatch], bool]) -> bool:
        """Whether the test is true of any batch; looks no further than it must."""
        return bool(in_python(self._df, partial(_any, test, self._names), "found boolean").limit(1).collect())

    def checked(self, plan: Plan) -> Batches:
        """The checked batches, in the order of the rows."""
        yield check_batch(self._columns, plan)
        yield from self._fetched(partial(_checked, plan))

    def take(self, mask: np.ndarray[Any, Any]) -> DataFrame:
        """The rows where the mask is true, as a DataFrame with the columns of this one."""
        rows = numbered(self._df)
        parts = rows.selectExpr(f"CAST(shiftright(place, {PLACE_BITS}) AS int) AS part").groupBy("part").count()
        sizes: dict[int, int] = {row[0]: row[1] for row in parts.collect()}
        starts = np.zeros(max(sizes, default=0) + 2, np.int64)
        for part, size in sizes.items():
            starts[part + 1] = size
        taken = in_python(rows, partial(_taken, np.packbits(mask), np.cumsum(starts)), self._df.schema)
        return taken.toDF(*self._names)

    @cached_property
    def _columns(self) -> pa.RecordBatch:
        """A batch without rows: of the types that Spark's rows have, if there is one to see."""
        messages = partial(_messages, without_marks, self._names)
        for row in in_python(self._df.limit(1), messages, "message binary").collect():
            return unpack(row[0]).slice(0, 0)
        return without_marks(pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(self._names), self._names))

    def _fetched(self, work: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Batches:
        with held(in_python(self._df, partial(_messages, work, self._names), "message binary")) as messages:
            for row in messages.toLocalIterator():
                yield unpack(row[0])


def plainly_named(df: DataFrame) -> DataFrame:
    """The DataFrame with columns c0, c1 …: mapInArrow looks columns up by name, and fails on a name with a dot or a
    backtick, or that stands twice. `named` gives the names back."""
    return df.toDF(*(f"c{i}" for i in range(len(df.columns))))


PLACE_BITS = 33
"""Where Spark's own numbers of rows have the partition: `monotonically_increasing_id` is documented so."""


def numbered(df: DataFrame) -> DataFrame:
    """The DataFrame, plainly named, with a first column that says where each row is: its partition and its place in it.
    (The number that a task has is no such thing: in a union of two DataFrames those of the second count on.)"""
    from pyspark.sql.functions import monotonically_increasing_id

    plain = plainly_named(df)
    return plain.select(monotonically_increasing_id().alias("place"), *plain.columns)


def in_python(df: DataFrame, work: Callable[[Batches], Batches], schema: Any) -> DataFrame:
    """What `work` makes of the rows of a plainly named DataFrame, as mapInArrow gives it, but for the time that null
    lists take."""
    return lists_filled(df).mapInArrow(partial(_with_nulls, work), schema)


def lists_filled(df: DataFrame) -> DataFrame:
    """The DataFrame with empty lists and maps for those that are null, and behind its columns one for each of these, in
    their order, that says where. Spark 4 measures what it has gathered for Python at each row, and goes through all
    nulls of a list again: with mostly null lists that takes longer than all else."""
    empty = {f.name: f"{kind}()" for f in df.schema.fields if (kind := f.dataType.typeName()) in ("array", "map")}
    filled = [f"COALESCE({name}, {empty[name]}) AS {name}" if name in empty else name for name in df.columns]
    return df.selectExpr(*filled, *(f"{name} IS NULL AS {name}_null" for name in empty))


def pack(batch: pa.RecordBatch, codec: str = "zstd") -> bytes:
    """A batch as it goes through a cell: with its own schema, as each names the columns that it has."""
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(cell: bytes | bytearray | pa.Buffer) -> pa.RecordBatch:
    """The batch in a cell."""
    return pa.ipc.open_stream(cell).read_next_batch()


@contextmanager
def held(df: DataFrame) -> Iterator[DataFrame]:
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
        df.unpersist()


# ---------------------------------------------------------------------------------------------------------------------
# on the executors


def named(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Batches:
    """Batches with their real names, of our size (those of Spark have 10,000 rows, however large a row is), moments in
    UTC (Spark writes those of the session's zone)."""
    for batch in batches:
        batch = cast_all(pa.RecordBatch.from_arrays(batch.columns, names=list(names)), in_utc)
        # not nbytes: it reads offsets, and Spark 3.5 writes none for a list without items below another; Arrow crashes
        step = rows_per_batch(batch.get_total_buffer_size() / max(batch.num_rows, 1))
        for start in range(0, batch.num_rows, step):
            yield without_marks(batch.slice(start, step))


def _with_nulls(work: Callable[[Batches], Batches], batches: Batches) -> Batches:
    return work(_as_they_were(batches))


def _as_they_were(batches: Batches) -> Batches:
    """The rows as they were before `lists_filled`."""
    for batch in batches:
        lists = [i for i, f in enumerate(batch.schema) if pa.types.is_list(f.type) or pa.types.is_map(f.type)]
        columns = batch.columns[: batch.num_columns - len(lists)]
        for i, absent in zip(lists, batch.columns[len(columns) :], strict=True):
            columns[i] = _absent(columns[i], absent)
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names[: len(columns)])


def _absent(lists: pa.Array, absent: pa.BooleanArray) -> pa.Array:
    """The lists or maps, null where that is said. What is in them is not looked at: see `named`."""
    valid = pa.compute.invert(absent).buffers()[1]
    return pa.Array.from_buffers(lists.type, len(lists), [valid, lists.buffers()[1]], children=[lists.values])


def _verdicts(plan: Plan, names: Sequence[str], kept: Sequence[str], batches: Batches) -> Batches:
    for batch in named(names, batches):
        checked = check_batch(batch, plan)
        arrays = [
            *(batch.column(name) for name in kept),
            verdict(checked, "valid"),
            _issues(verdict(checked, "issues")),
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=[*kept, VALID, ISSUES])


def _issues(lists: pa.ListArray) -> pa.Array:
    """The notes with the name and the severity that follow from their codes."""
    notes = lists.flatten()
    codes = notes.field("code").to_pylist()
    more = {
        "name": pa.array([RULES[code].name for code in codes], pa.string()),
        "severity": pa.array([str(RULES[code].severity) for code in codes], pa.string()),
    }
    arrays = [more[f.name] if f.name in more else notes.field(f.name) for f in ISSUE]
    return pa.ListArray.from_arrays(lists.offsets, pa.StructArray.from_arrays(arrays, fields=list(ISSUE)))


def _messages(work: Callable[[pa.RecordBatch], pa.RecordBatch], names: Sequence[str], batches: Batches) -> Batches:
    """What was made of each batch, packed into one cell."""
    for batch in named(names, batches):
        yield pa.RecordBatch.from_arrays([pa.array([pack(work(batch))], pa.binary())], names=["message"])


def _checked(plan: Plan, batch: pa.RecordBatch) -> pa.RecordBatch:
    return check_batch(batch, plan)


def _any(test: Callable[[pa.RecordBatch], bool], names: Sequence[str], batches: Batches) -> Batches:
    if any(map(test, named(names, batches))):
        yield pa.RecordBatch.from_arrays([pa.array([True])], names=["found"])


def _taken(bits: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], batches: Batches) -> Batches:
    mask = np.unpackbits(bits).astype(bool)
    for batch in batches:
        places = np.asarray(batch.column(0))
        rows = starts[places >> PLACE_BITS] + (places & ((1 << PLACE_BITS) - 1))
        yield filtered(batch.select(range(1, batch.num_columns)), mask[rows])


# ---------------------------------------------------------------------------------------------------------------------
# types


def ddl_of(kind: pa.DataType) -> str:
    """An Arrow type as Spark's DDL writes it."""
    if pa.types.is_map(kind):
        return f"map<{ddl_of(kind.key_type)},{ddl_of(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{ddl_of(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{quoted(f.name)}:{ddl_of(f.type)}' for f in kind)}>"
    return _DDL[kind]


_DDL = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


def ddl(schema: pa.Schema) -> str:
    """An Arrow schema as Spark's DDL writes it."""
    return ", ".join(f"{quoted(f.name)} {ddl_of(f.type)}" for f in schema)


def quoted(name: str) -> str:
    """A name as Spark SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
