"""Earlier versions of the datasets of a repository: what changed since a commit, with renames and deletions.

git diff -M HEAD     M evals/a.jsonl · R evals/b.jsonl → evals/c.jsonl · D evals/d.jsonl
"""

import os
import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.places import KINDS, is_glob, kind_of
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.text.visible import visible

DEFAULT = re.compile(rf"(^|/)eval[^/]*(/.*)?({'|'.join(map(re.escape, KINDS))})(\.(gz|bz2|zst))?$")
"""The datasets of a repository, if none is named: files whose name, or the name of a folder above, begins with eval."""


class Change(NamedTuple):
    """A dataset that differs from the commit: its path there, and here (None: it was deleted)."""

    old: str
    new: str | None


class Commit:
    """A commit, and the datasets that have changed since. `files` are files, and folders and patterns whose files
    with rows count; none: DEFAULT."""

    def __init__(self, revision: str, files: Sequence[str]) -> None:
        self.revision, self._folder = revision, TemporaryFolder()
        self.changes: list[Change] = []
        if revision.startswith("-") or not _git("rev-parse", "-q", "--verify", f"{revision}^{{commit}}", check=False):
            if revision == "HEAD" and _git("rev-parse", "--git-dir") and not _git("rev-list", "-n", "1", "--all"):
                return  # before the first commit there is nothing to compare with
            raise EvalSetError(f"--since: expected a commit of this repository, got {visible(revision)!r}")
        paths = [f":(glob){file}" if is_glob(file) else file for file in files]
        listed = _git("diff", "-M", "-z", "--relative", "--name-status", "--diff-filter=DMRT", revision, "--", *paths)
        fields = iter(listed.split("\0")[:-1])
        for status in fields:
            old = next(fields)
            new = next(fields) if status[0] == "R" else old
            if old in files or (kind_of(old) if files else DEFAULT.search(old) or DEFAULT.search(new)):
                self.changes.append(Change(old, None if status[0] == "D" else new))
        if files and not self.changes and not _git("ls-files", "-z", "--", *paths):
            raise EvalSetError(f"no file of this repository matches {' '.join(map(visible, files))}")

    def name(self, path: str) -> str:
        """What a file of the commit is called."""
        return f"{self.revision}:{path}"

    def fetch(self, number: int, path: str) -> str:
        """The path of a copy of a file as the commit has it, with its file extension."""
        name = f"{number}-{os.path.basename(path)}"
        self._folder.append(name, _bytes("show", f"{self.revision}:./{path}"))
        return self._folder.file(name)


def _git(*arguments: str, check: bool = True) -> str:
    return _bytes(*arguments, check=check).decode("utf-8", "surrogateescape")


def _bytes(*arguments: str, check: bool = True) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise EvalSetError("--since: git is not installed") from None
    if check and done.returncode:
        raise EvalSetError(f"--since: git {arguments[0]}: {visible(done.stderr.decode(errors='replace').strip())}")
    return done.stdout if not done.returncode else b""
