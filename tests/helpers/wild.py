"""What other people's files look like, as strategies: one document, written in the ways in which files differ."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("WILD_EXAMPLES", "10"))
"""As many documents are tried of each platform (of mutated samples five times as many); after a change of a format, try
more by hand."""

WORDS = st.text("abcdeXYZ äß€😀'\"\\/#-_.,:;{}[]0123456789\n", min_size=1, max_size=12).filter(
    lambda t: bool(t.strip())
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9, allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


def optional(required: dict[str, Any], **others: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with these keys; each of the others is there, null, or left out."""
    return st.fixed_dictionaries(required, optional={name: st.none() | values for name, values in others.items()})


def camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)


@st.composite
def texts_of(draw: st.DrawFn, document: Any, *, marks: Sequence[str] = ("", "\ufeff")) -> str:
    """A JSON document as text: on one line or indented, with either end of lines, escaped or not."""
    indent = draw(st.sampled_from([None, 1, 2, "\t"]))
    text = json.dumps(document, indent=indent, ensure_ascii=draw(st.booleans()))
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    return draw(st.sampled_from(marks)) + text.replace("\n", ends) + draw(st.sampled_from(["", ends]))


@st.composite
def files_of(draw: st.DrawFn, rows: list[Any], *, marks: Sequence[str] = ("", "\ufeff")) -> tuple[str, str]:
    """Rows as a file: its extension and its text. A JSON array, JSON Lines, or of one row the object itself."""
    form = draw(st.sampled_from([".json", ".jsonl", ".ndjson", "one"] if len(rows) == 1 else [".json", ".jsonl"]))
    if form == "one":
        return ".json", draw(texts_of(rows[0], marks=marks))
    if form == ".json":
        return form, draw(texts_of(rows, marks=marks))
    escape, ends = draw(st.booleans()), draw(st.sampled_from(["\n", "\r\n"]))
    lines = ends.join(json.dumps(row, ensure_ascii=escape) for row in rows)
    return form, draw(st.sampled_from(marks)) + lines + draw(st.sampled_from(["", ends]))


def write(folder: Path, extension: str, text: str) -> str:
    path = folder / f"wild{extension}"
    path.write_bytes(text.encode())
    return str(path)
