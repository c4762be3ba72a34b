"""What all results have in common: three forms, of which one is printed, and each can be a file.

    to_text ──▶ str(result), print(result)
    to_html ─┐
    to_json ─┼▶ save(path), by the file extension
    to_text ─┘

A result class writes its own `to_text`, `to_json` and `to_html`, a line each, with the options that it has.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_eval_schema.io.atomic import write_text


class Shown:
    """A result as text, as JSON and as an HTML page; printed, it is its text."""

    __slots__ = ()

    def to_text(self) -> str:
        """The result as it is printed in a terminal."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The result as versioned JSON."""
        raise NotImplementedError

    def to_html(self) -> str:
        """The result as a standalone HTML page."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.to_text()


class Saved(Shown):
    """A result that can be kept as a file."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write HTML for `.html`, JSON for `.json`, text otherwise. Raises EvalSetError if the file cannot be
        written."""
        forms = {".html": self.to_html, ".htm": self.to_html, ".json": self.to_json}
        write_text(os.fspath(path), forms.get(Path(path).suffix.lower(), self.to_text)())
