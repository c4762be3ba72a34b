"""Batches → a file, by its extension: Parquet, JSON Lines, JSON, CSV, Excel or a Delta folder; and a text file → the
same file with some cells replaced."""

import codecs
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from agent_eval_schema.errors import EvalSetError, import_extra
from agent_eval_schema.io.atomic import FileState, replacing, require_place, require_unchanged
from agent_eval_schema.io.csv import Formulas, formulas_in, rewrite_csv, write_csv
from agent_eval_schema.io.excel_writer import write_excel
from agent_eval_schema.io.json import rewrite_json, write_json
from agent_eval_schema.io.jsonl import rewrite_jsonl, write_jsonl
from agent_eval_schema.io.parquet import write_parquet
from agent_eval_schema.io.places import compression_of, ending_of
from agent_eval_schema.io.streams import STDOUT, Edits, Renames, creating, opened


def write_batches(
    path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, read: FileState | None = None
) -> int:
    """Stream rows into a JSONL, JSON, CSV, Parquet or Excel file, or a new Delta folder `….delta`, by its file
    extension; to stdout (`"-"`) as JSON Lines. Returns the number of rows.

    `schema` names all columns: a batch may lack some, and then they are null. `read` is the state of the file that the
    rows come from: if it is the one that is replaced, it must not have changed.
    """
    require_writable(path)
    if ending_of(path) == DELTA:
        from agent_eval_schema.io.delta import write_delta

        return write_delta(path, batches, schema)
    formulas = Formulas()
    write = partial(write_csv, formulas=formulas) if ending_of(path) == ".csv" else _WRITERS[ending_of(path)]
    with replacing(path, read) as temporary:
        count = write(temporary, batches, schema)
    formulas.warn(path)
    return count


def require_writable(path: str) -> None:
    """Raise EvalSetError now, rather than after the work, if rows cannot be written to `path`."""
    ending = ending_of(path)
    if ending == DELTA:
        from agent_eval_schema.io.delta import require_new_delta

        return require_new_delta(path)
    require_place(path, stdout=True)
    if ending not in _WRITERS:
        raise EvalSetError(f"{path}: unknown file extension: expected {' or '.join([*_WRITERS, DELTA])}")
    if compression_of(path) and _WRITERS[ending] in (write_parquet, write_excel):
        raise EvalSetError(f"{path}: expected {ending} without {compression_of(path)}: it is compressed itself")
    if ending == ".xlsx":
        import_extra("openpyxl", "excel", "openpyxl 3.1")
    return None


def require_document_place(path: str, endings: Sequence[str]) -> None:
    """As `require_writable`, for a document that files with these extensions can contain."""
    require_place(path, stdout=True)
    ending = ending_of(path)
    if path != STDOUT and ending not in endings and ending in (*_WRITERS, DELTA):
        raise EvalSetError(f"{path}: expected {endings[0]} for a document of the format, got {ending}")


DELTA = ".delta"
"""The file extension that distinguishes the folder of a new Delta table from a file; one that is read needs none."""


def keeps_types(path: str) -> bool:
    """Whether a file of this extension distinguishes text from other values."""
    return ending_of(path) in (".jsonl", ".ndjson", ".json")


_WRITERS: dict[str, Callable[[str, Iterable[pa.RecordBatch], pa.Schema], int]] = {
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
    ".json": write_json,
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".pq": write_parquet,
    ".xlsx": write_excel,
}


# --- a text file with some cells replaced: everything else is unchanged, byte for byte
#
#     .jsonl   a line without a fix is copied; in another one only the values (and keys) that are fixed are replaced
#     .json    the same for the elements of the array, or the one object
#     .csv     the same for records and their fields
#
# So nulls, spaces, quotes, the order of keys, lines that are not rows and the end of the file are kept, and version
# control shows the fixes only. A fixed value looks like the one before: in ASCII where that was, on as many lines.
def copy_file(path: str, target: str, read: FileState | None) -> None:
    """Write the text of the file at `path` to `target`, which may be the same."""
    require_unchanged(path, read)
    with opened(path) as stream, replacing(target, read) as temporary, creating(temporary) as file:
        shutil.copyfileobj(stream, file)


def rewrite_file(path: str, kind: str, target: str, renames: Renames, edits: Edits, read: FileState | None) -> None:
    """Write the file at `path` (of a kind of `REWRITTEN`) to `target`, with columns renamed and cells replaced. The two
    may be the same: the new file takes the place of the old one when it is complete. `read` is the state of the file
    when `edits` were found."""
    require_unchanged(path, read)
    with replacing(target, read) as temporary, creating(temporary) as file:
        with opened(path) as stream:
            head = stream.read(len(codecs.BOM_UTF8))
        if head == codecs.BOM_UTF8:
            file.write(head)
        for piece in REWRITTEN[kind](path, renames, edits):
            file.write(piece)
    if kind == "csv" and os.path.isfile(target):
        formulas_in(target).warn(target)


REWRITTEN: dict[str, Callable[[str, Renames, Edits], Iterator[bytes]]] = {
    "jsonl": rewrite_jsonl,
    "json": rewrite_json,
    "csv": rewrite_csv,
}
"""The kinds of files that can be rewritten in their own form."""
