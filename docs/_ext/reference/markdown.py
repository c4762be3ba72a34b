"""Markdown of the generated pages: tables, code and links whose texts come from the package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

Pages = dict[str, str]
"""The path of each page below docs/, and its text."""


def code(text: object) -> str:
    """Text as inline code."""
    shown = str(text)
    ticks = "``" if "`" in shown else "`"
    return f"{ticks} {shown} {ticks}" if "`" in shown else f"{ticks}{shown}{ticks}"


def codes(texts: Iterable[object]) -> str:
    """Several, separated by commas."""
    return ", ".join(code(text) for text in texts)


def prose(text: str) -> str:
    """A sentence of the package as Markdown: code in backticks stays code, all else is text."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") and len(part) > 1 else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<>\[\]{}#$~|])", r"\\\1", text)


def fence(text: str, language: str = "") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split())) or " "


def json_block(value: Any) -> str:
    """A value as JSON of short lines: one per row where it fits."""
    return fence(json_lines(value), "json")


def json_rows(rows: Iterable[Any]) -> str:
    """Rows as lines of JSON; without colors where a number of Python is none of JSON."""
    text = "\n".join(json_lines(row) for row in rows)
    return fence(text, "text" if re.search(r"\b(NaN|Infinity)\b", text) else "json")


def json_lines(value: Any, width: int = 100) -> str:
    """A value as JSON, objects on one line where they fit."""
    return _drawn(value, width, 0)


def _drawn(value: Any, width: int, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace").decode()
    if len(flat) + depth <= width or not value or not isinstance(value, dict | list):
        return flat
    pad, end = " " * (depth + 2), " " * depth
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(str(k))}: {_drawn(v, width, depth + 2)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner) + f"\n{end}}}"
    return "[\n" + ",\n".join(pad + _drawn(item, width, depth + 2) for item in value) + f"\n{end}]"


def shortened(value: Any, limit: int = 160) -> Any:
    """A value whose long strings are cut, for an example that fits a screen."""
    if isinstance(value, str):
        return value if len(value) <= limit else value[:limit] + " …"
    if isinstance(value, dict):
        return {k: shortened(v, limit) for k, v in value.items()}
    if isinstance(value, list):
        return [shortened(v, limit) for v in value]
    return value


def first_sentence(text: str | None) -> str:
    """The summary line of a docstring."""
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")


CONTENTS = "```{include} pages.inc\n```\n"
"""Where the index of a folder includes the order of its pages, which only a build makes."""


def entry(name: str, shown: str) -> str:
    """The first cell of a row of an index: its anchor, and the link that a build leads to the page `name`."""
    return f'<a id="{name}"></a>[{shown}](#{name})'


def toctree(entries: Iterable[str], *options: str) -> str:
    """A table of contents, which the sidebar shows; an option is `name` or `name: value`."""
    lines = [f":{name}:{value}" for name, _, value in (option.partition(":") for option in ("hidden", *options))]
    return "```{toctree}\n" + "\n".join([*lines, "", *entries]) + "\n```\n"
