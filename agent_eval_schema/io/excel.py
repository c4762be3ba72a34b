"""A sheet of an Excel file → rows: `FILE.xlsx`, or `FILE.xlsx#Sheet` of a file with several.

Needs openpyxl (the extra `excel`). A cell with a date is the text that a spreadsheet shows, and so are an error such as
#N/A and a number in a column of texts (number_formats.py); an empty cell is absent. A formula without a stored result,
as programs write it, is its text: pandas makes one of each text with `=`. The header may be below a title; empty lines
and columns are none.
"""

from __future__ import annotations

import datetime as dt
import os
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile, is_zipfile

from msgspec.structs import replace

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, missing
from agent_eval_schema.io.atomic import FileState
from agent_eval_schema.io.csv import LOOKED_AT, above_header, header_at
from agent_eval_schema.io.number_formats import GENERAL, text_of_date, text_of_number
from agent_eval_schema.io.pandas import from_pandas
from agent_eval_schema.io.places import part_of
from agent_eval_schema.io.source import Merged, SheetPlace, Source
from agent_eval_schema.io.streams import require_bounded, too_large, unpacked_limit
from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.columns import NULL_PLACEHOLDER
from agent_eval_schema.schema import ChatRequest, Facts, NamedGuidelines, columns_of
from agent_eval_schema.text.describe import first_names
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    import pandas as pd

EXCEL = ".xlsx"


def is_excel(name: str) -> bool:
    return part_of(name)[0].lower().endswith(EXCEL)


def open_excel(name: str) -> Source:
    """The source for a sheet. Raises EvalSetError if the file cannot be read, or the name does not say which sheet."""
    return _source_of(read_excel(name), name, frozenset())


def _source_of(sheet: Sheet, name: str, texts: frozenset[str]) -> Source:
    return replace(
        from_pandas(_with_texts(sheet, texts)),
        name=name,
        remarks=(*above_header(sheet.above), *_without_results(sheet.uncalculated)),
        can_hold_objects=False,
        lines=lambda rows: {row: sheet.place.lines[row] for row in rows},
        as_text=lambda names: _source_of(sheet, name, texts.union(names)),
        sheet=sheet.place,
    )


_TEXTS = columns_of(str, ChatRequest, Facts, NamedGuidelines)


def _without_results(cells: Sequence[str]) -> list[Finding]:
    if not cells:
        return []
    count = f"{len(cells):,} formula{'' if len(cells) == 1 else 's'}"
    got = f"{count} without a stored result ({first_names(cells, 5)}), read as text"
    return [Finding(NULL_PLACEHOLDER, f"expected values, got {got}", hint=_CALCULATE)]


_CALCULATE = "Open the file in a spreadsheet and save it, which calculates them."


class Sheet(NamedTuple):
    """The rows of a sheet, how many lines with text are above the header, the column of the sheet of each of the frame,
    by column and line how numbers are shown that have a format, and where all that is in the file."""

    frame: pd.DataFrame
    above: int
    columns: list[int]
    formats: dict[int, dict[int, str]]
    place: SheetPlace
    uncalculated: Sequence[str] = ()
    """The cells with a formula that has no result."""


def _with_texts(sheet: Sheet, names: Collection[str]) -> pd.DataFrame:
    """The rows with the numbers of these columns, and of ours with texts, as a spreadsheet shows them."""
    frame = sheet.frame.copy(deep=False)
    for at, title in enumerate(frame.columns):
        if title in names or title in _TEXTS:
            formats = sheet.formats.get(sheet.columns[at], {})
            cells = zip(sheet.place.lines, frame.iloc[:, at].tolist(), strict=True)
            frame.isetitem(at, [_shown(value, formats.get(line, GENERAL)) for line, value in cells])
    return frame


def _shown(value: Any, format: str) -> Any:
    if isinstance(value, bool):
        return str(value).upper()
    return text_of_number(value, format) if isinstance(value, int | float) and value == value else value


def read_excel(name: str) -> Sheet:
    """The rows of a sheet. Raises EvalSetError if the file cannot be read, or the name does not say which sheet."""
    path, title = part_of(name)
    filled = _filled(path)
    if title not in filled and (title or len(filled) > 1):
        got = f"no sheet with rows named {title!r}" if title else f"{len(filled)} sheets with rows"
        names = ", ".join(f"{path}#{title} ({len(sheet.place.lines):,})" for title, sheet in filled.items())
        raise EvalSetError(f"{path}: expected the name of a sheet, got {got}: use one of {names}")
    return filled[title] if title else next(iter(filled.values()))


def sheet_names(name: str) -> list[str]:
    """The sheets with rows of a file that has several; none of a name with a sheet."""
    path, title = part_of(name)
    parts = ZipFile(path).namelist() if not title and is_zipfile(path) else []
    if title or sum(part.startswith("xl/worksheets/") and part.endswith(".xml") for part in parts) == 1:
        return []
    return list(_filled(path))


def _filled(path: str) -> dict[str, Sheet]:
    """The sheets of a file that have rows, or all if none has."""
    if not os.path.isfile(path):
        raise EvalSetNotFoundError(f"{path}: no such file")
    try:
        with ZipFile(path) as archive:
            require_bounded(path, sum(part.file_size for part in archive.infolist()))
        with open(path, "rb") as file:  # openpyxl leaves one open that it cannot read
            sheets = dict(_sheets(path, file))
    except ImportError as error:
        raise missing("excel", "openpyxl 3.1", error) from error
    except EvalSetError:
        raise
    except Exception as error:  # openpyxl raises exceptions of many types
        why = f"{type(error).__name__}: {first_line(error)}"
        raise EvalSetError(f"{path}: cannot be read as Excel: {why}: {_SAVE_AGAIN}") from error
    if not sheets:
        raise EvalSetError(f"{path}: expected a sheet with rows, got charts at most: add a sheet, or {_SAVE_AGAIN}")
    return {title: sheet for title, sheet in sheets.items() if sheet.place.lines} or sheets


_SAVE_AGAIN = "open it in a spreadsheet, and save it as .xlsx without a password"


_Cells = dict[int, Any]
"""The filled cells of a line by their columns."""


def _sheets(path: str, file: IO[bytes]) -> Iterator[tuple[str, Sheet]]:
    """The sheets with their rows. Only cells with a value take memory and time, wherever they are: a sheet has room for
    17 billion."""
    from openpyxl import load_workbook
    from openpyxl.styles.numbers import BUILTIN_FORMATS
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        """Gives a formula without a stored result as its text; to openpyxl such a cell is empty."""

        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell: dict[str, Any] = super().parse_cell(element)
            if cell["value"] is None and cell["data_type"] != "str" and element.find(FORMULA_TAG) is not None:
                uncalculated.append(element.get("r") or f"line {cell['row']}")
                cell["value"] = f"={element.findtext(FORMULA_TAG) or ''}"
            return cell

    state = FileState.of(path)
    with closing(load_workbook(file, read_only=True, data_only=True)) as book:

        @cache
        def format_of(style: int) -> str:
            number, own = book._cell_styles[style].numFmtId, book._number_formats
            return BUILTIN_FORMATS.get(number) or (own[number - _OWN] if _OWN <= number < _OWN + len(own) else GENERAL)

        for sheet in book.worksheets:
            with sheet._get_source() as source:
                dates = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
                uncalculated = list[str]()
                parser = Parser(source, sheet._shared_strings, data_only=True, epoch=book.epoch, **dates)
                lines: dict[int, _Cells] = {}
                formats: dict[int, dict[int, str]] = {}
                for number, cells in parser.parse():
                    for cell in cells:
                        if cell["value"] not in (None, ""):
                            format, column = format_of(cell["style_id"]), cell["column"]
                            filled = lines.setdefault(number, {})
                            if column in filled:
                                raise ValueError(f"line {number} of {sheet.title!r} has two cells of column {column}")
                            filled[column] = _value(cell, format)
                            if cell["data_type"] == "n" and format != GENERAL:
                                formats.setdefault(column, {})[number] = format
            ranges = [merged.bounds for merged in parser.merged_cells.mergeCell] if parser.merged_cells else []
            place = SheetPlace(path, sheet._worksheet_path, ranges, state)
            yield sheet.title, _sheet_of(lines, ranges, formats, place)._replace(uncalculated=uncalculated)


_OWN = 164
"""The number of the first format of a file itself."""


def _sheet_of(lines: dict[int, _Cells], merged: Merged, formats: dict[int, dict[int, str]], where: SheetPlace) -> Sheet:
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
    _fill_down(lines, merged, where.path)
    at += is_grouped
    names, rows = lines[numbers[at]] if numbers else {}, numbers[at + 1 :]
    columns: dict[int, dict[int, Any]] = {}
    for row, number in enumerate(rows):
        for column, value in lines[number].items():
            columns.setdefault(column, {})[row] = value
    places = sorted({*names, *columns})
    series = [pd.Series(columns.get(place, {}), index=range(len(rows)), dtype=object) for place in places]
    titles = [str(names.get(place, f"Unnamed: {place - 1}")) for place in places]
    frame = pd.concat(series, axis=1, keys=places).set_axis(titles, axis=1) if series else pd.DataFrame()
    header, columns_at = numbers[at] if numbers else 0, dict(reversed([*zip(titles, places, strict=True)]))
    sheet_place = replace(where, header=header, lines=rows, columns=columns_at)
    return Sheet(frame, at, places, formats, sheet_place)


def _fill_down(lines: dict[int, _Cells], merged: Merged, path: str) -> None:
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


def _value(cell: dict[str, Any], format: str) -> Any:
    value = cell["value"]
    if isinstance(value, dt.date | dt.time):
        return text_of_date(value, format)
    return int(value) if isinstance(value, float) and value.is_integer() else value
