"""The texts that a spreadsheet shows for numbers and dates: expected ones as LibreOffice and Excel show them."""

import datetime as dt

import pytest

from agent_eval_schema.io.number_formats import text_of_date, text_of_number


@pytest.mark.parametrize(
    ("value", "format", "text"),
    [
        (42, "General", "42"),
        (0.1 + 0.2, "General", "0.3"),
        (1234.5, "0.00", "1234.50"),
        (-5, "0.00", "-5.00"),
        (1234567.891, "#,##0.00", "1,234,567.89"),
        (12, "#,##0", "12"),
        (0.856, "0%", "86%"),
        (0.12345, "0.00%", "12.35%"),
        (2.5, "0", "3"),  # half away from zero, by the decimal digits
        (1.005, "0.00", "1.01"),
        (-0.001, "0.00", "0.00"),
        (7, "000", "007"),
        (0.5, "#.00", ".50"),
        (5.25, "0.###", "5.25"),
        (19.9, '#,##0.00 "EUR"', "19.90 EUR"),
        (19.9, "#,##0.00\\ [$€-407]", "19.90 €"),
        (-19.9, "#,##0.00 [$€-1];[Red]-#,##0.00 [$€-1]", "-19.90 €"),
        (-5, "#,##0_);(#,##0)", "(5)"),
        (5, '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\)', "$5.00"),
        (0, '0;-0;"none"', "none"),
        (0, "0;-0", "0"),
        (1_234_567, '0,"k"', "1235k"),
        (1_234_567, '0.0,,"M"', "1.2M"),
        (3, '"Version "0', "Version 3"),
        (3, '"a;b" 0', "a;b 3"),
        # what is not read: the number
        (0.75, "# ?/?", "0.75"),
        (12345, "0.00E+00", "12345"),
        (5.5, "0.", "5.5"),
        (5.25, "0.0,0", "5.25"),
        (3, '[>=2]0" many";0" few"', "3"),
        (3, "@", "3"),
        (3, ";;;", "3"),
        (3, "", "3"),
        (1e20, "0.00", "1e+20"),
        (float("inf"), "0", "inf"),
    ],
)
def test_the_text_of_a_number(value: float, format: str, text: str) -> None:
    assert text_of_number(value, format) == text


AFTERNOON, DAY = dt.datetime(2026, 11, 1, 14, 5, 9), dt.datetime(2026, 11, 1)


@pytest.mark.parametrize(
    ("value", "format", "text"),
    [
        (DAY, "dd.mm.yyyy", "01.11.2026"),
        (DAY, "d.m.yy", "1.11.26"),
        (DAY, "dd.mm.yyyy;@", "01.11.2026"),
        (DAY, "[$-407]dd/mm/yyyy", "01/11/2026"),
        (DAY, 'yyyy"年"m"月"d"日"', "2026年11月1日"),
        (AFTERNOON, "dd.mm.yyyy hh:mm", "01.11.2026 14:05"),
        (AFTERNOON, "yyyy-mm-dd h:mm:ss", "2026-11-01 14:05:09"),
        (AFTERNOON, "h:mm AM/PM", "2:05 PM"),
        (AFTERNOON, "mm:ss", "05:09"),
        (dt.time(8, 5), "hh:mm", "08:05"),
        # no time, an order that the language of the program decides, the name of a month, parts of a second
        (DAY, "yyyy-mm-dd h:mm:ss", "2026-11-01"),
        (DAY, "mm-dd-yy", "2026-11-01"),
        (DAY, "d-mmm-yy", "2026-11-01"),
        (AFTERNOON, "hh:mm:ss.000", "2026-11-01T14:05:09"),
    ],
)
def test_the_text_of_a_date(value: dt.date, format: str, text: str) -> None:
    assert text_of_date(value, format) == text
