"""The same rows in every container, and the damage that a container may have.

Rows that are damaged have the same verdict in each; a file that is damaged is read, or rejected in one line that names
it, and the option if it unpacks to more than is allowed.
"""

from __future__ import annotations

import bz2
import gzip
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import yaml

from tests.conftest import KINDS, as_arrow, as_csv, as_json, as_jsonl, as_list, columns_of
from tests.helpers.mutations import Row
from tests.helpers.places import file_server

Make = Callable[[list[Row], Path], Any]


def as_tsv(rows: list[Row], folder: Path) -> str:
    path = folder / "rows.tsv"
    pd.DataFrame(rows, columns=columns_of(rows)).to_csv(path, sep="\t", index=False, lineterminator="\n")
    return str(path)


def as_xlsx(rows: list[Row], folder: Path) -> str:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    names = columns_of(rows)
    for line, cells in enumerate([names, *([row.get(name) for name in names] for row in rows)], 1):
        for column, value in enumerate(cells, 1):
            cell = sheet.cell(line, column, value)
            cell.data_type = "s" if isinstance(value, str) else cell.data_type  # `=1+1` is text, too
    book.save(folder / "rows.xlsx")
    return str(folder / "rows.xlsx")


def as_yaml(rows: list[Row], folder: Path) -> str:
    (folder / "rows.yaml").write_text(yaml.safe_dump(rows, allow_unicode=True, sort_keys=False), "utf-8")
    return str(folder / "rows.yaml")


def as_polars(rows: list[Row], folder: Path) -> Any:
    import polars

    return polars.from_arrow(as_arrow(rows, folder))


def as_duckdb(rows: list[Row], folder: Path) -> Any:
    import duckdb

    return duckdb.from_arrow(as_arrow(rows, folder))


def as_hugging_face(rows: list[Row], folder: Path) -> Any:
    import datasets

    return datasets.Dataset(as_arrow(rows, folder))


def packed(make: Make, pack: Callable[[bytes], bytes], extension: str) -> Make:
    def packed_rows(rows: list[Row], folder: Path) -> str:
        path = Path(make(rows, folder))
        (folder / (path.name + extension)).write_bytes(pack(path.read_bytes()))
        return f"{path}{extension}"

    return packed_rows


def in_folder(make: Make) -> Make:
    """A folder of several files, as far as there are rows."""

    def parts(rows: list[Row], folder: Path) -> str:
        shutil.rmtree(folder / "parts", ignore_errors=True)
        (folder / "parts").mkdir()
        for i, half in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
            if half or i:
                path = Path(make([{n: row.get(n) for n in columns_of(rows)} for row in half], folder))
                path.rename(folder / "parts" / f"part-{i}{path.suffix}")
        return str(folder / "parts")

    return parts


@cache
def _served() -> tuple[Path, str]:
    """A folder whose files a server on this machine has, until the process ends."""
    folder = Path(tempfile.mkdtemp())
    context = file_server(folder)
    _open.append(context)
    return folder, context.__enter__()


_open: list[Any] = []


def at_url(make: Make) -> Make:
    def served(rows: list[Row], folder: Path) -> str:
        return served_at(make(rows, folder))

    return served


def served_at(path: str) -> str:
    folder, address = _served()
    shutil.copy(path, folder)
    return f"{address}/{Path(path).name}"


def _zst(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


TABLES: dict[str, Make] = {
    **{name: KINDS[name] for name in ("pandas", "arrow")},
    "polars": as_polars,
    "duckdb": as_duckdb,
    "datasets": as_hugging_face,
}
"""In memory."""

FILES: dict[str, Make] = {
    **{name: KINDS[name] for name in ("jsonl", "json", "csv", "parquet")},
    "tsv": as_tsv,
    "xlsx": as_xlsx,
    "yaml": as_yaml,
    "jsonl.gz": packed(as_jsonl, gzip.compress, ".gz"),
    "jsonl.zst": packed(as_jsonl, _zst, ".zst"),
    "jsonl.bz2": packed(as_jsonl, bz2.compress, ".bz2"),
    "json.gz": packed(as_json, gzip.compress, ".gz"),
    "csv.zst": packed(as_csv, _zst, ".zst"),
}

FOLDERS: dict[str, Make] = {
    "delta": KINDS["delta"],
    **{f"folder of {name}": in_folder(KINDS[name]) for name in ("jsonl", "csv", "parquet")},
}

CONTAINERS: dict[str, Make] = {
    "list": as_list,
    **TABLES,
    **FILES,
    **FOLDERS,
    **{f"{name} at a URL": at_url(FILES[name]) for name in ("jsonl", "csv.zst", "parquet", "xlsx")},
}


# ---------------------------------------------------------------------------------------------------------------------
# damage to the rows: the same verdict in every container
ROW: Row = {"request": "Where is it?", "response": "In “Zürich”.", "expected_response": "Zürich"}


def _rows(**last: Any) -> list[Row]:
    return [ROW, ROW | {"request": "Who is it?"}, ROW | last]


ROWS: dict[str, list[Row]] = {
    "none": _rows(),
    "a word for NaN": _rows(response="NaN"),
    "an absent cell": _rows(response=None),
    "a blank cell": _rows(response=" \t"),
    "a depth of 300": _rows(retrieved_context="[" * 300 + "]" * 300),
    "a depth of 100,000": _rows(retrieved_context="[" * 100_000),
    "a huge cell": _rows(retrieved_context='[{"doc_uri": "a", "content": "' + "a" * 200_000 + '"}]'),
    "a formula": _rows(response="=1+1"),
    "lines": _rows(response="a\r\nb\nc\rd\u2028e\x85f"),
    "a NUL": _rows(response="a\0b\x1b[31m"),
    "hostile columns": _rows(**dict.fromkeys(('a"b', "c,d", "e\tf", "__proto__", "=1", "a.b[0]", "$", "é"), "x")),
    "names of objects": _rows(**dict.fromkeys(("constructor", "toString", "None", "self"), '{"a": 1}')),
}

NOT_IN: dict[str, tuple[str, ...]] = {
    "a depth of 100,000": ("xlsx",),  # a cell has up to 32,767 characters
    "a huge cell": ("xlsx",),
    "a NUL": ("xlsx",),  # XML has none
}
"""Rows that a container cannot have, as its name begins."""


def can_have(container: str, rows: str) -> bool:
    return not container.startswith(NOT_IN.get(rows, ()) or "-")


# ---------------------------------------------------------------------------------------------------------------------
# damage to the file: read, or one line
Damage = Callable[[bytes, Random], bytes]


def _recoded(encoding: str) -> Damage:
    return lambda data, _: data.decode("utf-8", "replace").encode(encoding, "replace")


BYTES: dict[str, Damage] = {
    "cut": lambda data, chance: data[: chance.randrange(1, len(data))],
    "cut near its end": lambda data, chance: data[: -chance.randrange(1, min(30, len(data)))],
    "empty": lambda *_: b"",
    "one byte": lambda data, _: data[:1],
    "twice": lambda data, _: data + data,
    "zeros": lambda data, _: bytes(len(data)),
    "a hole": lambda data, _: data[: len(data) // 2] + bytes(20) + data[len(data) // 2 + 20 :],
    "a tail": lambda data, _: data + b"tail",
    "a page": lambda *_: b"<!DOCTYPE html><html><body>Sign in</body></html>",
    **{name: _recoded(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32-be", "cp1252", "utf-8-sig")},
    "gzip": lambda data, _: gzip.compress(data),
    "zstd": lambda data, _: _zst(data),
}

EXTENSIONS = (
    *(".jsonl", ".json", ".csv", ".tsv", ".parquet", ".xlsx", ".yaml", ".zip", ".jsonl.gz", ".csv.zst", ".json.bz2"),
    *(".arrow", ".feather", ".xls", ".txt", ""),
)
"""Of a file under another name."""

_BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">%s]><x>&j;</x>' % b"".join(
    b'<!ENTITY %c "%s">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9)
)
PARTS: dict[str, Damage] = {
    **{name: BYTES[name] for name in ("cut", "empty", "zeros", "a hole", "utf-16")},
    "another element": lambda *_: b"<a/>",
    "entities": lambda *_: _BOMB,
    "a file of the system": lambda *_: b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
    "deep": lambda *_: b"<a>" * 100_000,
}
"""Of one file in an archive, which may also be missing."""

CELLS: dict[str, tuple[bytes, bytes]] = {
    **{f"a cell {ref}": (b'r="A2"', b'r="%s"' % ref.encode()) for ref in ("??", "A0", "ZZZZZZZ2", "")},
    **{f"a line {n}": (b'<row r="3"', b'<row r="%s"' % n.encode()) for n in ("x", "-2", "9" * 20, "")},
    **{f"a style {n}": (b'<c r="A2"', b'<c s="%s" r="A2"' % n.encode()) for n in ("999", "-1", "x")},
    **{
        f"the type {t}": (b'<c r="A2" t="inlineStr"', b'<c r="A2" t="%s"' % t.encode())
        for t in ("s", "n", "d", "e", "z")
    },
    "a line twice": (b'<row r="3"', b'<row r="2"'),
    "a cell twice": (b'r="B2"', b'r="A2"'),
    "merged beyond": (b"</sheetData>", b'</sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'),
    "merged nowhere": (b"</sheetData>", b'</sheetData><mergeCells><mergeCell ref="Q"/></mergeCells>'),
}
"""What is wrong in a sheet."""

PACKED = tuple(name for name in FILES if name == "parquet" or name.endswith((".gz", ".zst", ".bz2")))
"""Files that may be small and have much in them; Excel writes no cell that is large."""
