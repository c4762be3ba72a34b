"""The text of an open file: its lines, the changes that an editor sends, and places as an editor counts them.

An editor counts lines by \\n, \\r\\n and \\r alone, and columns in units of UTF-16 (or of what it agreed on): a line
separator of Unicode in a cell ends no line.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

_BYTES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class Place(NamedTuple):
    """A line and a column, both counted from 0, the column in the units of the editor."""

    line: int
    column: int

    def below(self, lines: int) -> Place:
        return self._replace(line=self.line + lines)


def width(text: str, units: str = "utf-16") -> int:
    """The number of units of a text."""
    if text.isascii():
        return len(text)
    encoding, size = _BYTES[units]
    return len(text.encode(encoding, "surrogatepass")) // size


class Text:
    """The lines of a file with their ends; it is replaced, not changed."""

    def __init__(self, lines: list[str], units: str = "utf-16") -> None:
        self.lines, self.units = lines, units

    @staticmethod
    def of(text: str, units: str = "utf-16") -> Text:
        return Text(split(text), units)

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line, and of the end of the text."""
        return list(accumulate(map(len, self.lines), initial=0))

    @cached_property
    def whole(self) -> str:
        return "".join(self.lines)

    @property
    def size(self) -> int:
        return self.starts[-1]

    def column(self, line: int, units: int) -> int:
        """The characters of a line before a column; a column behind its end, or in a character, is moved back."""
        text = self.lines[line].rstrip("\r\n")
        if text.isascii():
            return min(units, len(text))
        encoding, size = _BYTES[self.units]
        part = text.encode(encoding, "surrogatepass")[: units * size]
        if size == 2 and len(part) > 1 and 0xD8 <= part[-1] <= 0xDB:  # the first half of a pair
            part = part[:-2]
        return len(part.decode(encoding, "surrogatepass" if size > 1 else "ignore"))

    def offset(self, place: Place) -> int:
        if place.line >= len(self.lines):
            return self.size
        return self.starts[place.line] + self.column(place.line, place.column)

    def place(self, offset: int) -> Place:
        """The place of an offset; one in the end of a line is before that."""
        line = min(bisect_right(self.starts, max(offset, 0)), len(self.lines)) - 1
        start, text = self.starts[line], self.lines[line].rstrip("\r\n")
        return Place(line, width(text[: max(offset, 0) - start], self.units))

    def edited(self, start: Place, end: Place, new: str) -> tuple[Text, int, int]:
        """The text with another one between two places; the lines before and behind the change that stayed."""
        first = max(min(start.line, len(self.lines)) - 1, 0)
        last = min(end.line + 2, len(self.lines))  # with a line on either side, whose end may become part of another
        head = self.whole_of(first, last, 0, self.offset(start))
        lines = split(head + new + self.whole_of(first, last, self.offset(end), None))
        lines = lines[:-1] if last < len(self.lines) else lines
        return Text([*self.lines[:first], *lines, *self.lines[last:]], self.units), first, len(self.lines) - last

    def whole_of(self, first: int, last: int, start: int, end: int | None) -> str:
        """The part of some lines from one offset to another."""
        base, text = self.starts[first], "".join(self.lines[first:last])
        return text[max(start - base, 0) : None if end is None else max(end - base, 0)]


def split(text: str) -> list[str]:
    """The lines of a text with their ends; the last one has none."""
    lines = list(io.StringIO(text, newline=""))
    return lines if lines and not lines[-1].endswith(("\n", "\r")) else [*lines, ""]
