"""Spreadsheets as teams have them, made by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

Lines = list[list[Any]]

SUPPORT: Lines = [
    *(["Testfälle Kundensupport, Stand November"], []),
    ["Nr.", "Kundenfrage", "Musterantwort", "Wichtige Punkte", "Quelle", "Stand"],
    [1, "Wie ändere ich meine Adresse?", "In der App.", "• App\n• Profil", "faq.md", dt.date(2026, 11, 1)],
    [2, "Storniere bitte Bestellung 4711", "Erledigt.", "n/a", "agb.md; faq.md", dt.date(2026, 11, 2)],
    [],
    [3, "Wann kommt mein Paket?", "TODO", "• Montag", "faq.md", None],
    [4, "Setze mein Passwort zurück", "Ist erledigt.", None, "faq.md", None],
    [5, "Wie kündige ich?", "Schriftlich.", "• schriftlich\n• 3 Monate", None, None],
    [6, "Wie viel Prozent Rabatt habe ich?", 0.125, None, "agb.md", None],
    [7, "Was kostet der Versand?", 4.9, "-", "agb.md", None],
    [8, "Wann endet die Aktion?", dt.date(2026, 12, 24), None, "agb.md", None],
    [9, "Wie viele Filialen gibt es?", 1250, "", None, None],
    [10, "Gilt die Garantie in der Schweiz?", "Ja.", "• ja\n• zwei Jahre", "agb.md", None],
    [11, "Buche einen Termin in Köln", "Gebucht.", "TBD", None, None],
    [12, "Wie lautet die Nummer der Hotline?", "0800 123", None, "faq.md", None],
]
"""A title, bullets, placeholders, an empty line, an answer beside key points, numbers and a date among answers."""

FORMATS = {"C10": "0.0%", "C11": '#,##0.00 "€"', "C12": "dd.mm.yyyy", "C13": "#,##0", "F4": "dd.mm.yyyy"}
"""How the numbers and dates of the sheet are shown."""


def book(path: Path, merged: str = "", formats: dict[str, str] | None = None, **sheets: Lines) -> Path:
    import openpyxl

    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
        if merged:
            sheet.merge_cells(merged)
        for place, format in (formats or {}).items():
            sheet[place].number_format = format
    made.save(path)
    return path


def cells_of(path: Path, **options: Any) -> dict[str, Any]:
    import openpyxl

    sheet = openpyxl.load_workbook(path, **options).worksheets[0]
    return {cell.coordinate: cell.value for row in sheet.iter_rows() for cell in row if cell.value is not None}


SHEET = "xl/worksheets/sheet1.xml"


def parts_of(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as parts:
        assert parts.testzip() is None
        return {name: parts.read(name) for name in parts.namelist()}


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    parts = parts_of(path)
    with ZipFile(path, "w") as new:
        for name, content in parts.items():
            new.writestr(name, change(name, content))
