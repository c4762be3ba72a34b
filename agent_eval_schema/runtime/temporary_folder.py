"""A temporary folder that lives as long as what reads from it."""

import os
import shutil
import tempfile
import weakref

from agent_eval_schema.runtime.signals import TEMPORARY


class TemporaryFolder:
    """A folder that only its owner may read; deleted when nothing refers to this object any more, or by `remove`."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="agent-eval-schema-")
        TEMPORARY.add(self.path)
        self.remove = weakref.finalize(self, _remove, self.path)

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    def append(self, name: str, content: bytes) -> None:
        with open(self.file(name), "ab") as file:
            file.write(content)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)
    TEMPORARY.discard(path)
