"""Formats as `formats` prints them: what is read and written, the signs, an example."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from agent_eval_schema.formats.overview import FormatOverview
from agent_eval_schema.render.lines import Line, drawn_lines

SHOWN = 3
"""Groups of columns that a list shows of each format."""


def formats_text(formats: Sequence[FormatOverview], *, color: bool = False) -> str:
    """Two lines per format: its content, and the columns by which it is known."""
    width = max(len(entry.name) for entry in formats)
    lines: list[Line] = []
    for entry in formats:
        use = "read, written" if entry.written else "read"
        lines.append(((f"{entry.name:{width}}", "bold"), f"  {use:13}  {entry.summary}"))
        signs = _signs(entry.signs[:SHOWN], len(entry.signs) > SHOWN)
        lines.append((f"{'':{width}}  known by       {signs}",))
    return drawn_lines(lines, color)


def format_text(entry: FormatOverview, *, color: bool = False) -> str:
    """One format, with all signs and an example."""
    use = "read and written" if entry.written else "read"
    lines: list[Line] = [((entry.name, "bold"), f" ({use})"), ("",), (f"{entry.summary}.",), ("",)]
    lines.append((("Known by all columns of a group:", "bold"),))
    lines += [(f"  {', '.join(group)}",) for group in entry.signs]
    lines += [("",), (f"Metrics: --system {entry.system}",)]
    if entry.example is not None:
        lines += [("",), (("Example:", "bold"),)]
        lines += [(f"  {line}",) for line in _example(entry.example)]
    return drawn_lines(lines, color)


def formats_json(formats: Sequence[FormatOverview]) -> str:
    """The formats as JSON."""
    from agent_eval_schema.render.document import json_text

    return json_text({"schema_version": 1, "formats": to_builtins(formats)})


def _signs(groups: Sequence[Sequence[str]], more: bool) -> str:
    return " | ".join(", ".join(group) for group in groups) + (" | …" if more else "")


def _example(example: Any) -> list[str]:
    text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
    return text.splitlines()
