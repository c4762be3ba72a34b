"""Changes of the text that an editor applies: the fixes of `validate --fix`, to the byte, and a code that is ignored.

The file is rewritten as `--fix` does, piece by piece; a piece that differs is a change, without its equal ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.fix.fix import edits_of, fix_source, is_rewritten
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.io.write import REWRITTEN
from agent_eval_schema.lsp.check import Found, opened, settings_of
from agent_eval_schema.lsp.rows import BOM
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.rules.columns import MISSPELLED_COLUMN
from agent_eval_schema.text.describe import shared_start
from agent_eval_schema.validation.settings import TABLE, parse_toml


class Change(NamedTuple):
    """A part of the text, and what takes its place."""

    start: Place
    end: Place
    new: str


MOST_FIXES = 20
"""Fixes that are offered at one place, at most."""


def fixes_at(path: str, text: Text, found: Found, first: int, last: int) -> list[tuple[CellFix, list[Change]]]:
    """The fixes of the cells in some lines, each with its changes. Raises EvalSetError if the file cannot be fixed."""
    if found.lines is not None:  # a row is fixed by itself, whatever else is in the file
        part, shift = Text(text.lines[first : last + 1], text.units), first
    else:
        part, shift = text, 0
    codes = found.plan.codes - {MISSPELLED_COLUMN.code}
    start, end = text.starts[first], text.starts[min(last + 1, len(text.lines))]

    cells: list[CellFix] = []

    def note(fix: CellFix) -> bool:
        node = None if found.lines is not None else found.rows.node(fix.row)
        if found.lines is not None or (node is not None and node.start < end and start <= node.end):
            cells.append(fix)
        return False

    fixes_of(path, part, found, codes, note)
    return [
        (fix, [Change(start.below(shift), end.below(shift), new) for start, end, new in changes])
        for fix in cells[:MOST_FIXES]
        for changes in [fixes_of(path, part, found, codes, fix.__eq__)]
    ]


def fixes_of(
    path: str, text: Text, found: Found, codes: frozenset[str], keep: Callable[[CellFix], bool] = lambda _: True
) -> list[Change]:
    """The changes that the fixes for issues of these codes make in the file: all of them, or those to `keep`."""
    plan = found.plan
    _, source = opened(path, text, format=plan.format, outputs=plan.outputs_option)
    if not is_rewritten(source, path) or (plan.format == "mlflow" and source.kind == "csv"):  # which needs a new column
        return []
    fixed = fix_source(source, codes=codes & plan.codes)
    batches = ((batch, [fix for fix in fixes if keep(fix)]) for batch, fixes in fixed.batches())
    rewrite, copy = REWRITTEN[source.kind], str(source.path)
    pieces = zip(rewrite(copy, {}, repeat({})), rewrite(copy, fixed.renames, edits_of(batches)), strict=True)
    return list(_differences(text, pieces))


def _differences(text: Text, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[Change]:
    at = int(text.whole.startswith(BOM))
    for old_bytes, new_bytes in pieces:
        old = old_bytes.decode("utf-8", "surrogatepass")
        if old_bytes != new_bytes:
            new = new_bytes.decode("utf-8", "surrogatepass")
            head = shared_start(old, new)
            tail = shared_start(old[head:][::-1], new[head:][::-1])
            start, end = at + head, at + len(old) - tail
            yield Change(text.place(start), text.place(end), new[head : len(new) - tail])
        at += len(old)


# --- a code that is ignored in the repository
def ignoring(path: str, code: str, root: str) -> tuple[str, Change] | None:
    """The settings file that ignores a code in the repository, and its change; None where it has a form of its own.
    Without one it is a new file in the folder `root`."""
    config = settings_of(path)
    if config.path is None:
        return str(Path(root) / f"{TABLE}.toml"), Change(Place(0, 0), Place(0, 0), f'ignore = ["{code}"]\n')
    text = config.path.read_text("utf-8")
    is_table = config.path.name == "pyproject.toml"
    head = re.search(rf"^\[tool\.{TABLE}\][ \t]*(?:#.*)?\r?\n?", text, re.M) if is_table else re.match("", text)
    if head is None:
        return None
    end = re.search(r"^\[", text[head.end() :], re.M)
    section = text[head.end() : head.end() + end.start() if end else len(text)]
    listed = re.search(r"^ignore\s*=\s*\[", section, re.M)
    if listed is None:
        at, new = head.end(), f'ignore = ["{code}"]\n'
    else:
        at, new = head.end() + listed.end(), f'"{code}"' + (", " if config.settings.ignore else "")
    try:
        table = parse_toml(text[:at] + new + text[at:], str(config.path))
    except EvalSetError:
        return None
    table = table["tool"][TABLE] if is_table else table
    place = Text.of(text).place(at)
    is_right = table.get("ignore") == [code, *config.settings.ignore]
    return (str(config.path), Change(place, place, new)) if is_right else None
