"""A text file → the same file with some cells replaced: everything else is unchanged, byte for byte.

    .jsonl   a line without a fix is copied; in another one only the values (and keys) that are fixed are replaced
    .json    the same for the elements of the array, or the one object
    .csv     the same for records and their fields

So nulls, spaces, quotes, the order of keys, lines that are not rows and the end of the file are kept, and version
control shows the fixes only. A fixed value looks like the one before: in ASCII where that was, on as many lines.
"""

from __future__ import annotations

import codecs
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import chain

from agent_eval_schema.io.atomic import FileState, replacing
from agent_eval_schema.io.csv import formulas_in, rewrite_csv
from agent_eval_schema.io.json import rewrite_json
from agent_eval_schema.io.jsonl import rewrite_jsonl
from agent_eval_schema.io.streams import Edits, Renames, creating, opened


def copy_file(path: str, target: str, read: FileState | None) -> None:
    """Write the text of the file at `path` to `target`, which may be the same."""
    with opened(path) as stream, replacing(target, read) as temporary, creating(temporary) as file:
        shutil.copyfileobj(stream, file)


def rewrite_file(path: str, kind: str, target: str, renames: Renames, edits: Edits, read: FileState | None) -> None:
    """Write the file at `path` (of a kind of `REWRITTEN`) to `target`, with columns renamed and cells replaced. The two
    may be the same: the new file takes the place of the old one when it is complete. `read` is the state of the file
    when `edits` were found."""
    with replacing(target, read) as temporary, creating(temporary) as file:
        for piece in chain([_byte_order_mark(path)], REWRITTEN[kind](path, renames, edits)):
            file.write(piece)
    if kind == "csv" and os.path.isfile(target):
        formulas_in(target).warn(target)


def _byte_order_mark(path: str) -> bytes:
    with opened(path) as stream:
        head = stream.read(len(codecs.BOM_UTF8))
    return head if head == codecs.BOM_UTF8 else b""


REWRITTEN: dict[str, Callable[[str, Renames, Edits], Iterator[bytes]]] = {
    "jsonl": rewrite_jsonl,
    "json": rewrite_json,
    "csv": rewrite_csv,
}
"""The kinds of files that can be rewritten in their own form."""
