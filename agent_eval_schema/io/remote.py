"""A URL → a local copy."""

from __future__ import annotations

import shutil

from agent_eval_schema.runtime.extras import missing


def fetch_url(url: str, path: str) -> None:
    try:
        import fsspec
    except ImportError as error:
        raise missing("remote", "fsspec (and the driver of the store: gcsfs, s3fs, adlfs)", error) from None
    with fsspec.open(url, "rb") as remote, open(path, "wb") as local:
        shutil.copyfileobj(remote, local)
