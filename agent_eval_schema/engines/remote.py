"""Data that is elsewhere → a source: it is copied to a temporary file, which goes when nobody needs it any more.

    gs:// s3:// abfss:// memory:// …    fsspec, with the driver of the user (gcsfs, s3fs, adlfs)
    bq://project.dataset.table          the official client of BigQuery, batch by batch

A copy is read as often as it takes and does not change meanwhile.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from agent_eval_schema.frames import Source, open_source
from agent_eval_schema.integrations.extra import missing
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.quoting import error_text

BIGQUERY = "bq://"


def open_dataset(data: Any) -> Source:
    """The source for anything that `open_source` takes, the URL of a file, or a BigQuery table.

    Raises EvalSetError if it cannot be fetched, or the package that fetches it is not installed.
    """
    url = os.fspath(data) if isinstance(data, str | os.PathLike) else ""
    if "://" not in url:
        return open_source(data)
    if url.startswith(BIGQUERY):
        from agent_eval_schema.integrations.bigquery import fetch_table

        return _copied(url, "table.parquet", lambda path: fetch_table(url.removeprefix(BIGQUERY), path))
    return _copied(url, PurePosixPath(url.partition("://")[2].partition("?")[0]).name, lambda path: _fetch(url, path))


class _Folder:
    """A temporary folder that lives as long as what reads from it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="agent-eval-schema-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _copied(url: str, name: str, fetch: Callable[[str], None]) -> Source:
    folder = _Folder()
    path = os.path.join(folder.path, name or "data")
    try:
        fetch(path)
    except EvalSetError:
        raise
    except Exception as error:  # drivers raise what they like
        raise EvalSetError(f"{url}: cannot be read: {type(error).__name__}: {error_text(error)}") from error
    source = open_source(path)

    def batches() -> Any:
        assert os.path.isdir(folder.path)  # which also keeps the folder
        return source.batches()

    return replace(source, name=url, batches=batches)


def _fetch(url: str, path: str) -> None:
    try:
        import fsspec
    except ImportError as error:
        raise missing("remote", "fsspec (and the driver of the store: gcsfs, s3fs, adlfs)", error) from None
    with fsspec.open(url, "rb") as remote, open(path, "wb") as local:
        shutil.copyfileobj(remote, local)
