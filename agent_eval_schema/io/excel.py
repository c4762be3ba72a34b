"""A sheet of an Excel file → a pandas frame: `FILE.xlsx`, or `FILE.xlsx#Sheet` of a file with several.

Needs openpyxl (the extra `excel`). A cell with a date is its ISO text, as a CSV file has it; an empty cell is absent.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, missing
from agent_eval_schema.io.places import part_of
from agent_eval_schema.io.streams import require_bounded
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    import pandas as pd

EXCEL = ".xlsx"


def is_excel(name: str) -> bool:
    return part_of(name)[0].lower().endswith(EXCEL)


def read_excel(name: str) -> pd.DataFrame:
    """The rows of a sheet. Raises EvalSetError if the file cannot be read, or the name does not say which sheet."""
    import pandas as pd

    path, sheet = part_of(name)
    if not os.path.isfile(path):
        raise EvalSetNotFoundError(f"{path}: no such file")
    try:
        with ZipFile(path) as archive:
            require_bounded(path, sum(part.file_size for part in archive.infolist()))
        filled = {title: frame for title, frame in _sheets(path) if len(frame)}
    except ImportError as error:
        raise missing("excel", "openpyxl 3.1", error) from error
    except EvalSetError:
        raise
    except Exception as error:  # openpyxl raises exceptions of many types
        raise EvalSetError(f"{path}: cannot be read as Excel: {type(error).__name__}: {first_line(error)}") from error
    if sheet not in filled and (sheet or len(filled) > 1):
        got = f"no sheet with rows named {sheet!r}" if sheet else f"{len(filled)} sheets with rows"
        names = ", ".join(f"{path}#{title}" for title in filled)
        raise EvalSetError(f"{path}: expected the name of a sheet, got {got}: use one of {names}")
    return filled[sheet] if sheet else next(iter(filled.values()), pd.DataFrame())


def _sheets(path: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The sheets with their rows. Only cells with a value take memory and time, wherever they are: a sheet has room for
    17 billion."""
    import pandas as pd
    from openpyxl import load_workbook
    from openpyxl.worksheet._reader import WorkSheetParser

    book = load_workbook(path, read_only=True, data_only=True)
    try:
        for sheet in book.worksheets:
            columns: dict[int, dict[int, Any]] = {}
            header, count = None, 0
            with sheet._get_source() as source:
                dates = {"date_formats": book._date_formats, "timedelta_formats": book._timedelta_formats}
                parser = WorkSheetParser(source, sheet._shared_strings, data_only=True, epoch=book.epoch, **dates)
                for _, cells in parser.parse():
                    row = {cell["column"]: _value(cell) for cell in cells if not _is_blank(cell)}
                    if header is None:
                        header = row or None
                        continue
                    for at, value in row.items():
                        columns.setdefault(at, {})[count] = value
                    count += bool(row)
            names = header or {}
            places = sorted({*names, *columns})
            found = [pd.Series(columns.get(at, {}), index=range(count), dtype=object) for at in places]
            titles = [str(names.get(at, f"Unnamed: {at - 1}")) for at in places]
            yield (
                sheet.title,
                pd.concat(found, axis=1, keys=range(len(found))).set_axis(titles, axis=1)
                if found
                else (pd.DataFrame()),
            )
    finally:
        book.close()


def _is_blank(cell: dict[str, Any]) -> bool:
    return cell["value"] in (None, "") or cell["data_type"] == "e"


def _value(cell: dict[str, Any]) -> Any:
    value = _text_of_date(cell["value"])
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text_of_date(cell: Any) -> Any:
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else cell
