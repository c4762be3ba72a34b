"""A sheet of an Excel file → a pandas frame: `FILE.xlsx`, or `FILE.xlsx#Sheet` of a file with several.

Needs openpyxl (the extra `excel`). A cell with a date is its ISO text, as a CSV file has it; an empty cell is absent.
"""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError, missing
from agent_eval_schema.text.privacy import first_line

if TYPE_CHECKING:
    import pandas as pd

EXCEL = ".xlsx"


def is_excel(name: str) -> bool:
    return name.lower().endswith(EXCEL) or f"{EXCEL}#" in name.lower()


def read_excel(name: str) -> pd.DataFrame:
    """The rows of a sheet. Raises EvalSetError if the file cannot be read, or the name does not say which sheet."""
    import pandas as pd

    at = -1 if os.path.exists(name) else name.lower().find(f"{EXCEL}#")
    path, sheet = (name, "") if at < 0 else (name[: at + len(EXCEL)], name[at + len(EXCEL) + 1 :])
    if not os.path.isfile(path):
        raise EvalSetNotFoundError(f"{path}: no such file")
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = book.parse(None, dtype=object, keep_default_na=False, na_values=[""])
    except ImportError as error:
        raise missing("excel", "openpyxl 3.1", error) from error
    except Exception as error:  # openpyxl raises exceptions of many types
        raise EvalSetError(f"{path}: cannot be read as Excel: {type(error).__name__}: {first_line(error)}") from error
    filled = {str(title): frame.dropna(how="all") for title, frame in sheets.items() if not frame.empty}
    if sheet not in filled and (sheet or len(filled) > 1):
        got = f"no sheet with rows named {sheet!r}" if sheet else f"{len(filled)} sheets with rows"
        names = ", ".join(f"{path}#{title}" for title in filled)
        raise EvalSetError(f"{path}: expected the name of a sheet, got {got}: use one of {names}")
    frame = filled[sheet] if sheet else next(iter(filled.values()), pd.DataFrame())
    return pd.DataFrame({column: frame[column].map(_text_of_date) for column in frame})


def _text_of_date(cell: Any) -> Any:
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, dt.date | dt.time) else cell
