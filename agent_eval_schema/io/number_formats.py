"""A number or a date of a sheet → the text that a spreadsheet shows: `(0.856, "0.0%")` → `85.6%`.

    #,##0.00 "EUR";[Red]-0      the positive numbers ; the negative ones ; zero
    dd.mm.yyyy hh:mm            of a date

A file does not have the language of the program that shows it: separators are those of English. A format that is not
read here, and a date format whose order depends on that language, gives the number or the ISO text of the date.
Source: ECMA-376, Part 1, 18.8.31.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import NamedTuple

GENERAL = "General"


def text_of_number(value: float, format: str) -> str:
    """The text of a number."""
    if not abs(value) < _LARGEST:  # nor NaN
        return f"{value:.15g}"
    amount, parts = Decimal(repr(value)), _sections(format)
    at = 0 if amount > 0 or len(parts) == 1 else 1 if amount < 0 else 2 if len(parts) > 2 else 0
    section = _read_section(parts[at])
    if section is None:  # a format that is not read
        return f"{value:.15g}"
    if section.most is None:
        return section.before.strip()
    amount = amount.scaleb(2 * section.percents - 3 * section.thousands)
    number = amount.copy_abs().quantize(Decimal(1).scaleb(-section.most), ROUND_HALF_UP)
    whole, _, part = f"{number:{',' if section.is_grouped else ''}f}".partition(".")
    whole = (whole if section.zeros else whole.lstrip("0")).rjust(section.zeros, "0")
    part = part[: section.fewest] + part[section.fewest :].rstrip("0")
    sign = "-" if at != 1 and amount < 0 and number else ""
    return f"{sign}{section.before}{whole}{'.' if section.most else ''}{part}{section.after}".strip()


_LARGEST = 1e15
"""From this number on, not all digits are known."""


class _Section(NamedTuple):
    """A part of a format for numbers: what is around the digits, and which digits there are."""

    before: str
    after: str
    zeros: int
    fewest: int
    most: int | None  # None: it shows a text in place of the number
    is_grouped: bool
    thousands: int
    percents: int


@lru_cache(maxsize=256)
def _sections(format: str) -> list[str]:
    tokens = re.findall(rf"{_LITERAL}|;|[^;]", format)
    ends = [at for at, token in enumerate(tokens) if token == ";"][:3]
    return ["".join(tokens[a:b]) for a, b in zip([0, *(end + 1 for end in ends)], [*ends, None], strict=True)]


_LITERAL = r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]'


@lru_cache(maxsize=256)
def _read_section(part: str) -> _Section | None:
    """What a part of a format shows; None if there is something in it that is not read."""
    texts, digits = ["", ""], ""
    for token in re.findall(rf"{_LITERAL}|[#0?.,]+|.", part):
        if token[0] in "#0?" or (token[0] in ".," and token[1:]):
            if digits:
                return None  # a fraction, or digits between words
            digits = token
        elif (text := _text_of(token)) is None:
            return None
        else:
            texts[bool(digits)] += text
    whole, dot, after = digits.partition(".")
    if not digits:  # text in place of a number
        return _Section(texts[0], "", 0, 0, None, False, 0, 0) if texts[0].strip() else None
    if "," in after.rstrip(",") or (dot and not after.rstrip(",")):
        return None
    tail = after if dot else whole
    thousands, zeros = len(tail) - len(tail.rstrip(",")), whole.count("0")
    fewest, most = sum(c in "0?" for c in after), len(after.rstrip(","))
    is_grouped = "," in whole.rstrip(",")
    return _Section(texts[0], texts[1], zeros, fewest, most, is_grouped, thousands, part.count("%"))


def _text_of(token: str) -> str | None:
    """The text of a part of a format that is no digit."""
    if token[0] == '"':
        return token[1:-1]
    if token[0] == "[":
        currency = re.match(r"\[\$([^-\]]*)", token)
        return currency[1] if currency else "" if token[1:-1].lower() in _COLORS else None
    if token[0] in "\\_*":
        return token[1] if token[0] == "\\" else " " if token[0] == "_" else ""
    return token if token in "$€£¥+-()!^&'~{}<>=:% /" or not token.isascii() else None


_COLORS = ("black", "blue", "cyan", "green", "magenta", "red", "white", "yellow")


# --- dates
_BY_LANGUAGE = ("mm-dd-yy", "m/d/yy h:mm")
"""The built-in formats (14 and 22) that each language shows in an order of its own."""

_TOKEN = re.compile(rf"{_LITERAL}|am/pm|a/p|y+|m+|d+|h+|s+|.", re.IGNORECASE)


def text_of_date(value: dt.date | dt.time, format: str) -> str:
    """The text of a date, a time or both."""
    at_midnight = isinstance(value, dt.datetime) and value.time() == dt.time()
    parts = _date_parts(format)
    if parts is None or (at_midnight and any(code in _OF_TIME for code, _ in parts)):
        return (value.date() if at_midnight and isinstance(value, dt.datetime) else value).isoformat()
    texts = [(value.strftime(code) if code else text, text) for code, text in parts]
    return "".join(shown if text != "1" else shown.lstrip("0") or "0" for shown, text in texts).strip()


@lru_cache(maxsize=256)
def _date_parts(format: str) -> list[tuple[str, str]] | None:
    """The parts of a format: a code of strftime with "1" if zeros in front are not shown, or no code and a text. None
    if the format has what is not read: the name of a month or a day, parts of a second."""
    tokens = _TOKEN.findall(_sections(format)[0])
    kinds = [token[0].lower() if token[0].isalpha() else "" for token in tokens]
    is_half = any(token.lower() in ("am/pm", "a/p") for token in tokens)
    parts: list[tuple[str, str] | None] = []
    for at, (kind, token) in enumerate(zip(kinds, tokens, strict=True)):
        if kind in _PARTS and not (kind in "md" and len(token) > 2):
            is_minute = kind == "m" and _is_minute(kinds, at)
            code = "%M" if is_minute else "%I" if kind == "h" and is_half else _PARTS[kind]
            parts.append(("%y" if kind == "y" and len(token) < 3 else code, "1" if len(token) == 1 else ""))
        elif kind == "a" and len(token) > 1:
            parts.append(("%p", ""))
        else:
            text = token if token in (".", ",") else _text_of(token) if not kind else None
            parts.append(None if text is None else ("", text))
    is_read = format not in _BY_LANGUAGE and None not in parts
    return [part for part in parts if part is not None] if is_read else None


_PARTS = {"y": "%Y", "m": "%m", "d": "%d", "h": "%H", "s": "%S"}
_OF_TIME = frozenset({"%H", "%I", "%M", "%S"})


def _is_minute(kinds: list[str], at: int) -> bool:
    """Whether an m means minutes: after hours, or before seconds."""
    before = next((kind for kind in reversed(kinds[:at]) if kind), "")
    after = next((kind for kind in kinds[at + 1 :] if kind), "")
    return before == "h" or after == "s"
