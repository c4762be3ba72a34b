"""The places from which a user names data: each puts the lines of a JSON Lines file there, and gives the name."""

from __future__ import annotations

import functools
import gzip
import http.server
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Put = Callable[[bytes, Path, pytest.MonkeyPatch], str]

_numbers = count()


def _halves(lines: bytes) -> list[bytes]:
    """The file in two, so that the rows of both together are those of the file."""
    rows = lines.splitlines(keepends=True)
    return [b"".join(rows[: len(rows) // 2]), b"".join(rows[len(rows) // 2 :])]


def _table(lines: bytes) -> pa.Table:
    """The rows as a warehouse has them: lists and objects are JSON text."""
    rows = [json.loads(line) for line in lines.splitlines()]
    plain = [{k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()} for row in rows]
    names = dict.fromkeys(name for row in plain for name in row)
    return pa.table({name: pa.array([row.get(name) for row in plain]) for name in names})


def _file(lines: bytes, folder: Path, _: pytest.MonkeyPatch) -> str:
    (folder / "rows.jsonl").write_bytes(lines)
    return str(folder / "rows.jsonl")


def _gz(lines: bytes, folder: Path, _: pytest.MonkeyPatch) -> str:
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(lines))
    return str(folder / "rows.jsonl.gz")


def _zst(lines: bytes, folder: Path, _: pytest.MonkeyPatch) -> str:
    (folder / "rows.jsonl.zst").write_bytes(pa.compress(lines, "zstd", asbytes=True))
    return str(folder / "rows.jsonl.zst")


def _folder(lines: bytes, folder: Path, _: pytest.MonkeyPatch) -> str:
    (folder / "parts").mkdir()
    for i, half in enumerate(_halves(lines)):
        (folder / "parts" / f"part-{i}.jsonl").write_bytes(half)
    (folder / "parts" / "_SUCCESS").touch()
    return str(folder / "parts")


def _glob(lines: bytes, folder: Path, patch: pytest.MonkeyPatch) -> str:
    return _folder(lines, folder, patch) + "/part-*.jsonl"


def _parquet_folder(lines: bytes, folder: Path, _: pytest.MonkeyPatch) -> str:
    (folder / "table").mkdir()
    for i, half in enumerate(_halves(lines)):
        pq.write_table(_table(half), folder / "table" / f"part-{i}.parquet")
    return str(folder / "table")


def _parquet_glob(lines: bytes, folder: Path, patch: pytest.MonkeyPatch) -> str:
    return _parquet_folder(lines, folder, patch) + "/*.parquet"


def _stdin(lines: bytes, _: Path, patch: pytest.MonkeyPatch) -> str:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    return "-"


def _memory(lines: bytes, _: Path, __: pytest.MonkeyPatch) -> str:
    return _stored(f"memory://places/{next(_numbers)}/rows.jsonl", lines)


def _memory_folder(lines: bytes, _: Path, __: pytest.MonkeyPatch) -> str:
    place = f"memory://places/{next(_numbers)}/parts"
    for i, half in enumerate(_halves(lines)):
        _stored(f"{place}/part-{i}.jsonl", half)
    return place


def _memory_glob(lines: bytes, folder: Path, patch: pytest.MonkeyPatch) -> str:
    return _memory_folder(lines, folder, patch) + "/*.jsonl"


def _stored(url: str, data: bytes) -> str:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(url, "wb") as file:
        file.write(data)
    return url


def _bigquery(lines: bytes, _: Path, patch: pytest.MonkeyPatch) -> str:
    bigquery_stand_in(patch, {"project.evals.rows": _table(lines)})
    return "bq://project.evals.rows"


def _unity_catalog(lines: bytes, _: Path, patch: pytest.MonkeyPatch) -> str:
    connector_stand_in(patch, {"`main`.`evals`.`rows`": _table(lines)})
    return "main.evals.rows"


PLACES: dict[str, Put] = {
    "file": _file,
    "gz": _gz,
    "zst": _zst,
    "folder": _folder,
    "glob": _glob,
    "parquet-folder": _parquet_folder,
    "parquet-glob": _parquet_glob,
    "stdin": _stdin,
    "url": _memory,
    "url-of-a-folder": _memory_folder,
    "url-glob": _memory_glob,
    "bigquery": _bigquery,
    "unity-catalog": _unity_catalog,
}


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """An HTTP server of the files in a folder, on this machine; gives its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def bigquery_stand_in(patch: pytest.MonkeyPatch, tables: dict[str, pa.Table]) -> None:
    """What is used of `google.cloud.bigquery`."""

    class Client:
        def __init__(self, project: str | None = None) -> None:
            self.project = project

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def list_rows(self, table: str) -> Any:
            rows = ModuleType("rows")
            rows.to_arrow_iterable = lambda: iter(tables[table].to_batches(max_chunksize=2))  # type: ignore[attr-defined]
            return rows

    module = ModuleType("google.cloud.bigquery")
    module.Client = Client  # type: ignore[attr-defined]
    cloud = ModuleType("google.cloud")
    cloud.bigquery = module  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "google.cloud", cloud)
    patch.setitem(sys.modules, "google.cloud.bigquery", module)


class ServerOperationError(Exception):
    """What the connector raises for a table that does not exist."""


def connector_stand_in(patch: pytest.MonkeyPatch, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """What is used of `databricks.sql`: PEP 249 and the Arrow methods of its cursor. Returns what was given to
    `connect`, and how many connections are open."""
    seen: dict[str, Any] = {"open": 0}

    class Cursor:
        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def execute(self, operation: str) -> Cursor:
            name = operation.removeprefix("SELECT * FROM ")
            if name not in tables:
                raise ServerOperationError(f"[TABLE_OR_VIEW_NOT_FOUND] {name} cannot be found.\nmore\nlines")
            self.rest = tables[name]
            return self

        def fetchmany_arrow(self, size: int) -> pa.Table:
            taken, self.rest = self.rest.slice(0, min(size, 2)), self.rest.slice(min(size, 2))
            return taken

    class Connection:
        def __enter__(self) -> Connection:
            seen["open"] += 1
            return self

        def __exit__(self, *_: object) -> None:
            seen["open"] -= 1

        def cursor(self) -> Cursor:
            return Cursor()

    def connect(**options: Any) -> Connection:
        seen.update(options)
        return Connection()

    module = ModuleType("databricks.sql")
    module.connect = connect  # type: ignore[attr-defined]
    package = ModuleType("databricks")
    package.sql = module  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "databricks", package)
    patch.setitem(sys.modules, "databricks.sql", module)
    patch.setitem(sys.modules, "pyspark.sql", None)  # another test may have left a session, which would be asked first
    for name, value in {"HOST": "https://w.example", "HTTP_PATH": "/sql/1.0/warehouses/a", "TOKEN": "t"}.items():
        patch.setenv(f"DATABRICKS_{name}", value)
    return seen
