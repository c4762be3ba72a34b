"""What all results have in common: three forms; one is printed, and each can be a file.

    to_text ──▶ str(result), print(result)
    to_html ─┐
    to_json ─┼▶ save(path), by the file extension
    to_text ─┘

A result class has its blocks and its JSON (`_view`, `_json`), and methods of its own where a form has options.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.atomic import write_text
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.text.choices import path_of

if TYPE_CHECKING:
    from agent_eval_schema.render.blocks import View


def as_text(view: View, *, color: bool = False, width: int | None = None) -> str:
    """The document for a terminal of the given width (that of the terminal, or 100, if not given)."""
    from agent_eval_schema.render.block_text import view_text

    return view_text(view, color=color, width=width)


def as_inline(view: View) -> str:
    from agent_eval_schema.render.block_html import view_inline

    return view_inline(view)


GUESSES = {
    **dict.fromkeys(("errors", "warnings", "messages", "problems", "findings"), ("issues", "losses")),
    **dict.fromkeys(("is_valid", "valid_", "success", "passed", "has_errors"), ("ok", "lossless")),
    **dict.fromkeys(
        ("to_df", "to_pandas", "df", "dataframe", "to_frame", "table"), ("rows", "metrics_table", "data", "changes")
    ),
    **dict.fromkeys(("html", "to_markdown", "render"), ("to_html",)),
    **dict.fromkeys(("to_dict", "json", "as_dict"), ("to_json",)),
    "summary": ("to_text",),
    "rows": ("data",),
}
"""Attributes that people try, and the attributes of results that have it here."""


class Printable:
    """A result as text and as an HTML page; printed, it is its text."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker would find any attribute

        def __getattr__(self, name: str) -> object:
            """Raise AttributeError with the attribute that is meant; close names are Python's own suggestion."""
            meant = next((own for own in GUESSES.get(name, ()) if hasattr(self, own)), "")
            use = f"; use `{meant}`" if meant else ""
            message = f"{type(self).__name__!r} object has no attribute {name!r}{use}"
            raise AttributeError(message, name=name, obj=self)

    def to_text(self, *, color: bool = False, width: int | None = None) -> str:
        """Return the result as text for a terminal.

        Parameters
        ----------
        color : bool, default False
            If True, use ANSI colors.
        width : int or None, default None
            The number of characters per line. None uses the width of the terminal.

        Returns
        -------
        str
            The numbers, with a few examples, and last the result and what to do next.

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> "distinct" in profile_eval_set([{"request": "Hi"}] * 2).to_text(width=80)
        True
        """
        return as_text(self._view(), color=color, width=width)

    def to_html(self) -> str:
        """Return the result as a standalone HTML page.

        Returns
        -------
        str
            A page that loads nothing from the network; all cell text is escaped.

        Examples
        --------
        >>> from agent_eval_schema import profile_eval_set
        >>> profile_eval_set([{"request": "Hi"}]).to_html().startswith("<!doctype html>")
        True
        """
        return self._page()

    def _page(self) -> str:
        from agent_eval_schema.render.block_html import view_page

        return view_page(self._view())

    def _view(self) -> View:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return as_inline(self._view())

    def __str__(self) -> str:
        return self.to_text()


class Savable(Printable):
    """A result that can be saved to a file."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return the result as JSON.

        Returns
        -------
        str
            An object with a version and all numbers: of a report also its issues and the metric coverage, of a
            conversion its losses, of a diff and a profile examples. A number that would mean nothing is null.

        Examples
        --------
        >>> import json
        >>> from agent_eval_schema import validate_eval_set
        >>> json.loads(validate_eval_set([{"request": "Hi", "response": "Hello!"}]).to_json())["rows"]
        {'total': 1, 'valid': 1, 'invalid': 0}
        """
        return self._json()

    def _json(self) -> str:
        raise NotImplementedError

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
            The file extension is not supported, or the file cannot be written or is an input of the result.

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
        settle({"": out}, {"the data": self._inputs()})
        write_text(out, forms[extension]())

    def _inputs(self) -> object:
        """The paths and sources that the result was made of: nothing of it is written over them."""
        return ()

    def _forms(self) -> dict[str, Callable[[], str]]:
        return {".html": self.to_html, ".htm": self.to_html, ".json": self.to_json, ".txt": self.to_text}
