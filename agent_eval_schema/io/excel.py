"""A sheet of an Excel file → rows: `FILE.xlsx`, or `FILE.xlsx#Sheet` of a file with several.

Needs openpyxl (the extra `excel`). A cell with a date is its ISO text, as a CSV file has it; an empty cell is absent.
The header may be below a title; empty lines and columns are none.
"""

from __future__ import annotations

import datetime as dt
import os
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile

from msgspec.structs import replace

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, missing
from agent_eval_schema.io.header import LOOKED_AT, above_header, header_at
from agent_eval_schema.io.pandas import from_pandas
from agent_eval_schema.io.places import part_of
from agent_eval_schema.io.source import Source
from agent_eval_schema.io.streams import require_bounded, too_large, unpacked_limit
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    import pandas as pd

EXCEL = ".xlsx"


def is_excel(name: str) -> bool:
    return part_of(name)[0].lower().endswith(EXCEL)


def open_excel(name: str) -> Source:
    """The source for a sheet. Raises EvalSetError if the file cannot be read, or the name does not say which sheet."""
    sheet = read_excel(name)
    source = replace(from_pandas(sheet.frame), name=name, remarks=above_header(sheet.above))
    return replace(source, lines=lambda rows: {row: sheet.lines[row] for row in rows})


class Sheet(NamedTuple):
    """The rows of a sheet, the line of each, and how many lines with text are above the header."""

    frame: pd.DataFrame
    lines: list[int]
    above: int


def read_excel(name: str) -> Sheet:
    """The rows of a sheet. Raises EvalSetError if the file cannot be read, or the name does not say which sheet."""
    path, title = part_of(name)
    filled = _filled(path)
    if title not in filled and (title or len(filled) > 1):
        got = f"no sheet with rows named {title!r}" if title else f"{len(filled)} sheets with rows"
        names = ", ".join(f"{path}#{title} ({len(sheet.lines):,})" for title, sheet in filled.items())
        raise EvalSetError(f"{path}: expected the name of a sheet, got {got}: use one of {names}")
    return filled[title] if title else next(iter(filled.values()))


def sheet_names(name: str) -> list[str]:
    """The sheets with rows of a file; none of a name with a sheet."""
    path, title = part_of(name)
    return [] if title else list(_filled(path))


def _filled(path: str) -> dict[str, Sheet]:
    """The sheets of a file that have rows, or all if none has."""
    if not os.path.isfile(path):
        raise EvalSetNotFoundError(f"{path}: no such file")
    try:
        with ZipFile(path) as archive:
            require_bounded(path, sum(part.file_size for part in archive.infolist()))
        sheets = dict(_sheets(path))
    except ImportError as error:
        raise missing("excel", "openpyxl 3.1", error) from error
    except EvalSetError:
        raise
    except Exception as error:  # openpyxl raises exceptions of many types
        raise EvalSetError(f"{path}: cannot be read as Excel: {type(error).__name__}: {first_line(error)}") from error
    return {title: sheet for title, sheet in sheets.items() if sheet.lines} or sheets


_Cells = dict[int, Any]
"""The filled cells of a line by their columns."""


def _sheets(path: str) -> Iterator[tuple[str, Sheet]]:
    """The sheets with their rows. Only cells with a value take memory and time, wherever they are: a sheet has room for
    17 billion."""
    from openpyxl import load_workbook
    from openpyxl.worksheet._reader import WorkSheetParser

    book = load_workbook(path, read_only=True, data_only=True)
    try:
        for sheet in book.worksheets:
            with sheet._get_source() as source:
                dates = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
                parser = WorkSheetParser(source, sheet._shared_strings, data_only=True, epoch=book.epoch, **dates)
                lines: dict[int, _Cells] = {}
                for number, cells in parser.parse():
                    filled = {cell["column"]: _value(cell) for cell in cells if not _is_blank(cell)}
                    if filled:
                        lines[number] = filled
            ranges = [merged.bounds for merged in parser.merged_cells.mergeCell] if parser.merged_cells else []
            yield sheet.title, _sheet_of(lines, ranges, path)
    finally:
        book.close()


def _sheet_of(lines: dict[int, _Cells], merged: list[tuple[int, int, int, int]], path: str) -> Sheet:
    """The rows below the header. A cell that is merged over several lines is that of each; above a header, cells that
    are merged over several columns are the names of groups."""
    import pandas as pd

    numbers = list(lines)
    at = header_at([list(lines[number].values()) for number in numbers[:LOOKED_AT]])
    top = numbers[at] if numbers else 0
    wide = {left: right for left, first, right, _ in merged if first == top and right > left}
    below = lines[numbers[at + 1]] if at + 1 < len(numbers) else {}
    places = sorted(below)
    is_grouped = any(bisect_right(places, left) < bisect_right(places, right) for left, right in wide.items())
    is_grouped = is_grouped and wide.keys() >= lines[top].keys() & below.keys()  # else they are values
    _fill_down(lines, merged, path)
    at += is_grouped
    names, rows = lines[numbers[at]] if numbers else {}, numbers[at + 1 :]
    columns: dict[int, dict[int, Any]] = {}
    for row, number in enumerate(rows):
        for place, value in lines[number].items():
            columns.setdefault(place, {})[row] = value
    places = sorted({*names, *columns})
    found = [pd.Series(columns.get(place, {}), index=range(len(rows)), dtype=object) for place in places]
    titles = [str(names.get(place, f"Unnamed: {place - 1}")) for place in places]
    frame = pd.concat(found, axis=1, keys=places).set_axis(titles, axis=1) if found else pd.DataFrame()
    return Sheet(frame, rows, at)


def _fill_down(lines: dict[int, _Cells], merged: list[tuple[int, int, int, int]], path: str) -> None:
    """Give each line its part of the cells that are merged over several lines: of a small file they may be billions."""
    numbers, room = list(lines), unpacked_limit() // _BYTES_OF_A_CELL
    filled: dict[int, int] = {}  # by column, up to which line: ranges that overlap, as no spreadsheet writes them
    for left, first, _, last in sorted(merged):
        value = lines.get(first, {}).get(left)
        if value is None or first <= filled.get(left, 0):
            continue
        filled[left] = last
        below = numbers[bisect_right(numbers, first) : bisect_right(numbers, last)]
        room -= len(below)
        if room < 0:
            raise too_large(path)
        for number in below:
            lines[number].setdefault(left, value)


_BYTES_OF_A_CELL = 128


def _is_blank(cell: dict[str, Any]) -> bool:
    return cell["value"] in (None, "") or cell["data_type"] == "e"


def _value(cell: dict[str, Any]) -> Any:
    value = _text_of_date(cell["value"])
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text_of_date(cell: Any) -> Any:
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else cell
