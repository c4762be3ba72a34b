"""What all results have in common: three forms, of which one is printed, and each can be a file.

    to_text ──▶ str(result), print(result)
    to_html ─┐
    to_json ─┼▶ save(path), by the file extension
    to_text ─┘

A result class writes its own `to_text`, `to_json` and `to_html`, a line each, with the options that it has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.choices import path_of

if TYPE_CHECKING:
    from agent_eval_schema.render.blocks import Document


def as_text(document: Document, *, color: bool = False, width: int | None = None) -> str:
    """The document for a terminal of the given width (that of the terminal, or 100, if not given)."""
    from agent_eval_schema.render.block_text import document_text

    return document_text(document, color=color, width=width)


def as_page(document: Document) -> str:
    from agent_eval_schema.render.block_html import document_page

    return document_page(document)


def as_inline(document: Document) -> str:
    from agent_eval_schema.render.block_html import document_inline

    return document_inline(document)


class Printable:
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

    def _document(self) -> Document:
        """What it shows, as blocks."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return as_inline(self._document())

    def __str__(self) -> str:
        return self.to_text()


class Savable(Printable):
    """A result that can be kept as a file."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file.

        Parameters
        ----------
        path : str or os.PathLike
            The path of the file. The file extension selects the form: `.html`, `.json` or `.txt`; a validation report
            also takes `.xml` (JUnit).

        Raises
        ------
        EvalSetError
            The file extension is not supported, or the file cannot be written.

        Examples
        --------
        >>> from agent_eval_schema import validate_eval_set
        >>> report = validate_eval_set([{"request": "Hi", "response": "Hello!"}])
        >>> report.save("report.html")
        """
        forms = self._forms()
        out = path_of(path)
        extension = Path(out).suffix.lower()
        if extension not in forms:
            instead = "; write(path) writes the rows" if hasattr(self, "write") else ""
            raise EvalSetError(f"{out}: save writes a report, to {', '.join(forms)}{instead}")
        write_text(out, forms[extension]())

    def _forms(self) -> dict[str, Callable[[], str]]:
        return {".html": self.to_html, ".htm": self.to_html, ".json": self.to_json, ".txt": self.to_text}
