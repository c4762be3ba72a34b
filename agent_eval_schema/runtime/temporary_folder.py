"""A temporary folder that lives as long as what reads from it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class TemporaryFolder:
    """A folder that only its owner may read; deleted when nothing refers to this object any more, or by `remove`."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="agent-eval-schema-")
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def file(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.path, name)
