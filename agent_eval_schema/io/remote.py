"""A URL → a local copy that lives as long as its source."""

from __future__ import annotations

import shutil
import tempfile
import weakref

from agent_eval_schema.runtime.extras import missing


class TemporaryFolder:
    """A temporary folder that lives as long as what reads from it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="agent-eval-schema-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def fetch_url(url: str, path: str) -> None:
    try:
        import fsspec
    except ImportError as error:
        raise missing("remote", "fsspec (and the driver of the store: gcsfs, s3fs, adlfs)", error) from None
    with fsspec.open(url, "rb") as remote, open(path, "wb") as local:
        shutil.copyfileobj(remote, local)
