"""Parquet, a file or the files of a folder or glob → batches, one page at a time: memory does not grow with row groups.

A folder is what Spark and others write: its files in the order of their names (`places.files_of`). Each file may have
columns of its own; folders in it that are named `column=value` give that column of all their rows.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import is_text
from agent_eval_schema.cells.batch import without_marks
from agent_eval_schema.cells.sizes import joined, split_batches
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.arrow import fitted
from agent_eval_schema.io.parts import columns_of_folders, with_constants
from agent_eval_schema.io.places import files_of
from agent_eval_schema.io.source import BATCH_BYTES, CUT_BYTES, Share, grouped, rows_per_batch
from agent_eval_schema.io.streams import CHUNK, Position, too_large, unpacked_limit

if TYPE_CHECKING:
    import pyarrow.parquet as pq


FEW = 256
"""Rows that are decoded at once."""

MUCH = 8
"""Times the size of a file: what is larger unpacked is looked at first, which takes longer than reading other files."""


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    import pyarrow.parquet as pq  # whoever reads JSON does not wait for it

    # A buffered stream reads page by page; without it a whole row group's columns would be in memory.
    with (
        _reporting_errors(path),
        open(path, "rb") as file,
        pq.ParquetFile(file, buffer_size=CHUNK, pre_buffer=False) as table,
    ):
        yield table


@contextmanager
def _reporting_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError, pa.ArrowException) as error:  # the names of columns are not UTF-8
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise EvalSetError(f"{path}: cannot be read as Parquet: {why}") from error


class _File(NamedTuple):
    """An open file of a table: its name, the columns of its folders, and the most rows that are read at once."""

    name: str
    table: pq.ParquetFile
    constants: dict[str, str | None]
    step: int

    def batches(self, group: int | None = None) -> Iterator[pa.RecordBatch]:
        """The batches of a row group, which are of one size unless their cells are large, or of all."""
        groups, step = None, self.step
        if group is not None:  # batches of one size, without a small one at the end
            rows: int = max(self.table.metadata.row_group(group).num_rows, 1)
            groups, step = [group], math.ceil(rows / math.ceil(rows / self.step))
        with _reporting_errors(self.name):  # a page is decoded when it is asked for
            sizes = _sizes(self.table)
            packs_well = sum(sizes) > max(MUCH * os.path.getsize(self.name), unpacked_limit() // FEW)
            few = self._few(groups or range(len(sizes))) if packs_well else FEW
            for batch in decoded(self.table, step, groups, few=few):
                yield with_constants(without_marks(batch), self.constants)

    def _few(self, groups: Iterable[int]) -> int:
        """How many rows may be decoded at once: every row may have the longest text of a dictionary, which is in the
        file once, so that one of 1 KB would fill the memory."""
        import pyarrow.parquet as pq

        schema, widest = self.table.schema, 1
        texts = [c.path for c in map(schema.column, range(len(schema))) if c.physical_type == "BYTE_ARRAY"]
        options = {"metadata": self.table.metadata, "buffer_size": CHUNK, "pre_buffer": False, "read_dictionary": texts}
        with open(self.name, "rb") as file, pq.ParquetFile(file, **options) as encoded:
            for group in groups:
                first = next(encoded.iter_batches(1, row_groups=[group]), None)
                widest = max(widest, *map(_longest, first.columns if first else ()))
        if widest > unpacked_limit():
            raise too_large(self.name)
        return min(FEW, unpacked_limit() // widest)


def _longest(array: pa.Array) -> int:
    """The bytes of the longest text in a dictionary of the array, or of one in it."""
    if pa.types.is_dictionary(array.type):
        return pc.max(pc.binary_length(array.dictionary)).as_py() or 0
    if pa.types.is_struct(array.type):
        return max((_longest(array.field(i)) for i in range(array.type.num_fields)), default=0)
    return _longest(array.values) if pa.types.is_nested(array.type) else 0


def decoded(
    table: pq.ParquetFile,
    step: int,
    groups: list[int] | None = None,
    columns: list[str] | None = None,
    few: int = FEW,
) -> Iterator[pa.RecordBatch]:
    """The rows in batches of about `step` rows, or fewer if they are large. Their size is not known before: a page may
    hold a text once for many rows. So a few are decoded at once."""
    if not table.num_row_groups:  # which is an error in older versions of pyarrow
        return
    # Each batch has the whole dictionary of a column that stays encoded: hundreds of small ones take long.
    # with a quarter of it, reading takes twice as long
    few *= 4 if few == FEW and any(map(pa.types.is_dictionary, table.schema_arrow.types)) else 1
    joins = step > 2 * few  # joining copies the cells: not worth it for two
    batches = table.iter_batches(batch_size=few if joins else step, row_groups=groups, columns=columns)
    yield from split_batches(joined(batches, step, BATCH_BYTES) if joins else batches, BATCH_BYTES, CUT_BYTES)


def _files(path: str) -> Iterator[_File]:
    for name in files_of(path):
        with _parquet(name) as table:
            # computed once: the metadata of a file of many groups takes longer to go through than one of them
            step = rows_per_batch(sum(_sizes(table)) / max(table.metadata.num_rows, 1))
            yield _File(name, table, columns_of_folders(path, name), step)


def _sizes(table: pq.ParquetFile) -> list[int]:
    return [table.metadata.row_group(i).total_byte_size for i in range(table.metadata.num_row_groups)]


def parquet_batches(path: str, position: Position | None = None) -> Iterator[pa.RecordBatch]:
    if position is not None:
        position.rows = parquet_rows(path)
    any_rows = False
    for file in _files(path):
        any_rows |= file.table.metadata.num_rows > 0
        yield from file.batches()
    if not any_rows:
        yield with_constants(
            without_marks(pa.RecordBatch.from_pylist([], schema=file.table.schema_arrow)), file.constants
        )


def parquet_shares(path: str, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Every row group is a unit, so that a worker only reads its own; few groups are shared batch by batch."""
    sizes = [size for file in _files(path) for size in _sizes(file.table)]
    if len(sizes) < 4 * share.workers:
        yield from ((i, b) for i, b in enumerate(parquet_batches(path)) if share.has(i, BATCH_BYTES))
        return
    mean = sum(sizes) / len(sizes)
    for number, group, file in _groups(path):
        if share.has(number, mean):
            yield from ((number, batch) for batch in file.batches(group))


def _groups(path: str) -> Iterator[tuple[int, int, _File]]:
    """The row groups of all files: the number in the table, that in the file, and the file."""
    groups = ((group, file) for file in _files(path) for group in range(file.table.metadata.num_row_groups))
    return ((number, group, file) for number, (group, file) in enumerate(groups))


def parquet_columns(path: str) -> list[str]:
    """The columns of a file; of a folder or glob, those of all its files."""
    if os.path.isfile(path):
        return [n for file in _files(path) for n in file.table.schema_arrow.names]
    return list(dict.fromkeys(n for file in _files(path) for n in [*file.table.schema_arrow.names, *file.constants]))


def parquet_rows(path: str) -> int:
    return sum(file.table.metadata.num_rows for file in _files(path))


def parquet_metadata(path: str) -> dict[bytes, bytes]:
    """The metadata of the schema of a file; for a folder, that which all of its files have."""
    by_file = [(file.table.schema_arrow.metadata or {}).items() for file in _files(path)]
    return dict(set(by_file[0]).intersection(*by_file)) if by_file else {}


def parquet_places(path: str, share: Share) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The batches of a share, each with its row group and its number in it: the same for any number of workers."""
    # too few groups to go round
    by_batch = sum(file.table.metadata.num_row_groups for file in _files(path)) < 4 * share.workers
    for number, group, file in _groups(path):
        if by_batch or number % share.workers == share.worker:
            for place, batch in enumerate(file.batches(group)):
                if not by_batch or (number + place) % share.workers == share.worker:
                    yield number, place, batch


def write_parquet(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    import pyarrow.parquet as pq

    schema = pa.schema([f.remove_metadata() for f in schema], metadata=schema.metadata)
    for field in schema:
        try:
            pq.write_metadata(pa.schema([field]), io.BytesIO())
        except pa.ArrowException as error:  # a type that Parquet does not have
            raise pa.ArrowInvalid(f"the column {field.name!r} of type {field.type}: {error}") from error
    count = 0
    # The minimum and maximum of large texts are of no use, and stay in memory until the file is closed.
    narrow = [f.name for f in schema if not is_text(f.type) and not pa.types.is_nested(f.type)]
    with pq.ParquetWriter(path, schema, write_statistics=narrow or False, **_PARQUET) as writer:
        tables = (fitted(batch, schema) for batch in batches)
        for table in map(pa.concat_tables, grouped(tables, lambda table: table.nbytes, GROUP_BYTES)):
            try:
                writer.write_table(table)
            except pa.ArrowException:
                for name in table.schema.names:
                    try:
                        pq.write_table(table.select([name]), io.BytesIO())
                    except pa.ArrowException as error:
                        raise pa.ArrowInvalid(f"the column {name!r}: {error}") from error
                raise
            count += table.num_rows
    return count


def write_tables(path: str, tables: Iterable[pa.Table | pa.RecordBatch], schema: pa.Schema) -> None:
    """Write what a warehouse returns, with the types that it has."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, **_PARQUET) as writer:
        for table in tables:
            writer.write(table)


GROUP_BYTES = 16 << 20
"""The minimum size of a row group of Parquet. The metadata of a group stays in memory until the file is closed, 25 KB
of an evaluation dataset: small groups would make memory grow with the file."""


_PARQUET: dict[str, Any] = {"compression": "snappy", "use_dictionary": False}
"""Snappy takes half the time of zstd for 1.5 times the disk. Cells hardly ever repeat: no dictionary."""
