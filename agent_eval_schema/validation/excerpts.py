"""Where in a cell is it? A row, a column and a path → the part of the cell around it, with the offending part apart.

    {"messages": [{"role": "usr", "content": …}]}   request.messages[0].role   →   …[{"role": ▐"usr"▌, "content": "Whi…

The cells of the examples that a report shows are read from the source once more, as the report keeps no cells.
"""

import re
from collections.abc import Iterable, Iterator
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]

import msgspec
import pyarrow as pa

from agent_eval_schema.cells.arrow import plain_values, to_values
from agent_eval_schema.cells.batch import is_json_column
from agent_eval_schema.cells.notes import is_own, line_texts
from agent_eval_schema.io.source import BatchFunction
from agent_eval_schema.issues import Issue
from agent_eval_schema.render.report.summary import Excerpt, Location
from agent_eval_schema.text import jsontext

BEFORE, MARKED, AFTER = 60, 160, 60
"""Characters of a cell that an excerpt shows at most: before the offending part, of it, after it."""


def excerpts(
    issues: Iterable[Issue], batches: Iterable[pa.RecordBatch], read: BatchFunction
) -> dict[Location, Excerpt]:
    """The excerpts of the cells that the issues are about; an issue whose cell is absent has none.

    A cell is looked for in the batch as its format reads it, then in the batch as it came.

    Reads `batches` (in the order of the rows) up to the last row of these issues.
    """
    of_rows: dict[int, set[Location]] = {}
    for issue in issues:
        if issue.row is not None:
            of_rows.setdefault(issue.row, set()).add((issue.row, issue.column, issue.path))
    by_location: dict[Location, Excerpt] = {}
    for row, place, batch, read_batch in rows_in(batches, of_rows, read):
        cells: dict[str | None, _Cell | None] = {}  # a cell may have thousands of issues, and is parsed once
        for location in of_rows[row]:
            _, column, path = location
            if column not in cells:
                cells[column] = _cell(read_batch, place, column) or _cell(batch, place, column)
            if (cell := cells[column]) is not None:
                by_location[location] = cell.excerpt(path)
    return by_location


def rows_in(
    batches: Iterable[pa.RecordBatch], rows: Iterable[int], read: BatchFunction
) -> Iterator[tuple[int, int, pa.RecordBatch, pa.RecordBatch]]:
    """Each of these rows, its place in its batch, the batch as it came and as its format reads it; no later batch."""
    wanted, start, at = sorted(rows), 0, 0
    for batch in batches if wanted else ():
        read_batch: pa.RecordBatch | None = None
        while at < len(wanted) and wanted[at] < start + batch.num_rows:
            read_batch = read_batch or read(batch)
            yield wanted[at], wanted[at] - start, batch, read_batch
            at += 1
        start += batch.num_rows
        if at == len(wanted):
            break


class _Cell:
    """The text of a cell of a column, and the places of the values in it."""

    def __init__(self, text: str, is_json: bool, column: str | None) -> None:
        # JSON that is a text which is JSON, as traces are kept: the inner one is what an issue is about
        inner = jsontext.parse_leniently(text) if is_json and text.startswith('"') else None
        self._text = inner if isinstance(inner, str) and jsontext.is_structured(inner) else text
        self._is_json, self._column = is_json, column
        self._place = _skip(self._text, 0) if is_json else 0, len(self._text.rstrip() if is_json else self._text)
        self._members: dict[int, dict[str | int, tuple[int, int]]] = {}
        self._is_read = is_json
        if is_json:
            try:
                jsontext.decode(self._text)
            except ValueError as error:
                self._is_read = False
                self._place = _stopped(self._text, str(error)) or (0, len(self._text))

    def excerpt(self, path: str | None) -> Excerpt:
        """The part that the path leads to, or the last one on the way that is there, with its surroundings."""
        # `request.messages[0].role` below the column `request` leads to ["messages", 0, "role"]
        steps = _STEP.finditer((path or "").removeprefix(self._column or ""))
        return _cut(self._text, *self.place_of(int(m[1]) if m[1] else m[2] for m in steps), self._is_json)

    def place_of(self, steps: Iterable[str | int]) -> tuple[int, int]:
        """The start and the end of the value that the steps lead to, or of the last one on the way that is there."""
        start, end = self._place
        for step in steps if self._is_read else ():
            if start not in self._members:
                self._members[start] = _members(self._text, start)
            place = self._members[start].get(step)
            if place is None:
                break
            start, end = place
        return start, end


_STEP = re.compile(r"\[(\d+)\]|\.([^.\[]+)")


def _cell(batch: pa.RecordBatch, row: int, column: str | None) -> _Cell | None:
    if column is None:  # of a line that is not a row
        texts = line_texts(batch)
        line = None if texts is None else texts[row].as_py()
        return None if line is None else _Cell(line, True, column)
    same_name = batch.schema.get_all_field_indices(column)  # of a thousand columns, for each of a thousand issues
    at = next((i for i in same_name if is_own(batch.schema.field(i))), None)
    if at is None:
        return None
    value = cell_at(batch, at, row)
    if isinstance(value, str):
        return _Cell(value, is_json_column(batch.schema.field(at)) or jsontext.is_structured(value), column)
    return None if value is None else _Cell(value.decode("utf-8", "replace"), True, column)


def cell_at(batch: pa.RecordBatch, column: int, row: int) -> str | bytes | None:
    """The text of a cell, or the JSON of one that is no text; None for an absent one."""
    (value,) = to_values(batch.column(column).slice(row, 1))
    if value is None or value != value:
        return None
    if isinstance(value, str):
        return value
    return msgspec.json.encode(plain_values(batch.column(column).type)(value), enc_hook=str)


_BYTE = re.compile(r"\(byte (\d+)\)")


def _stopped(text: str, error: str) -> tuple[int, int] | None:
    match = _BYTE.search(error)
    if match is None:  # the text ends too early
        return (max(len(text) - 1, 0), len(text)) if "truncated" in error else None
    start = len(text.encode("utf-8", "replace")[: int(match[1])].decode("utf-8", "ignore"))
    literal = re.match(r"-?\w+", text[start:])
    return start, start + (len(literal.group()) if literal else 1)


_decoder = JSONDecoder(strict=False)
_BLANK = re.compile(r"[ \t\r\n]*")


def _members(text: str, at: int) -> dict[str | int, tuple[int, int]]:
    """The start and end of each entry of the object or list at a place of well-formed JSON, by name or number."""
    kind = text[at : at + 1]
    at = _skip(text, at + 1)
    members: dict[str | int, tuple[int, int]] = {}
    number = 0
    while kind in ("{", "[") and text[at] not in "}]":
        name: str | int = number
        if kind == "{":
            name, at = scanstring(text, at + 1, False)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _decoder.raw_decode(text, at)
        members.setdefault(name, (at, end))
        number += 1
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return members


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None  # no blank matches, too
    return match.end()


def _cut(text: str, start: int, end: int, is_json: bool) -> Excerpt:
    """The part from `start` to `end` with its surroundings, each shortened to the displayed length."""
    before = _on_one_line(text[max(start - 4 * BEFORE, 0) : start], is_json)
    marked = _on_one_line(text[start : min(end, start + 4 * MARKED)], is_json)
    after = _on_one_line(text[end : end + 4 * AFTER], is_json)
    before = before if len(before) <= BEFORE else "…" + before[-BEFORE:]
    if len(marked) > MARKED:
        return Excerpt(before, marked[:MARKED] + "…", "")
    return Excerpt(before, marked, after if len(after) <= AFTER else after[:AFTER] + "…")


_INDENT = re.compile(r"\s*\n\s*")


def _on_one_line(text: str, is_json: bool) -> str:
    """JSON without its indentation; in a text, a line break is part of the content."""
    return _INDENT.sub(" ", text) if is_json else text
