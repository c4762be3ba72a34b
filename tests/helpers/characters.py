"""Writes `similarity/characters.txt`: ``python -m tests.helpers.characters``, on a Python that has Unicode 13.0."""

import sys
import unicodedata
from itertools import groupby
from pathlib import Path

from agent_eval_schema.similarity import shingles
from agent_eval_schema.similarity.shingles import ALONE, IGNORED, LATER, SEPARATOR, SYMBOL, WORD

FILE = Path(shingles.__file__).with_name("characters.txt")
VERSION = "13.0.0"

HEAD = f"""# The first code point (hexadecimal) of each run of characters of one kind, Unicode {VERSION}.
# {SEPARATOR} separator, {WORD} word, {ALONE} alone, {SYMBOL} symbol, {IGNORED} ignored, {LATER} later
"""


def _points(*ranges: tuple[int, int]) -> frozenset[int]:
    return frozenset(point for first, last in ranges for point in range(first, last + 1))


SYMBOLS = frozenset("#%&*/@^")
"""Besides those of Unicode (Sm, Sc): without them C# would be C, and 6 / 2 the same as 6 * 2."""

INVISIBLE = _points(
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180E)),
    *((0x200C, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Default_Ignorable_Code_Point of Unicode, but for the zero width space, which is between words."""

WITHOUT_BLANKS = _points(
    *((0x2E80, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD)),  # Han, and the planes that are reserved for it
    *((0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FD, 0x30FF), (0x31F0, 0x31FF), (0x32D0, 0x32FE)),
    *((0x3300, 0x3357), (0xFF66, 0xFF6F), (0xFF71, 0xFF9D), (0x1B000, 0x1B16F)),  # Hiragana, Katakana
    *((0x0E01, 0x0E3A), (0x0E40, 0x0E5B)),  # Thai
)
"""The scripts that have no blanks between words."""


def kind_of(point: int) -> int:
    """The kind of a character in the Unicode version of this Python."""
    category = unicodedata.category(chr(point))
    if point in INVISIBLE:
        return IGNORED
    if category == "Cn":
        return ALONE if point in WITHOUT_BLANKS and point >= 0x20000 else LATER
    if category in ("Sm", "Sc") or chr(point) in SYMBOLS:
        return SYMBOL
    if category[0] in "LMN":
        return ALONE if point in WITHOUT_BLANKS else WORD
    return SEPARATOR


def table() -> str:
    """The content of the file."""
    runs = groupby(range(sys.maxunicode + 1), kind_of)
    return HEAD + "".join(f"{next(points):X} {kind}\n" for kind, points in runs)


if __name__ == "__main__":
    if unicodedata.unidata_version != VERSION:
        sys.exit(f"expected a Python with Unicode {VERSION}, such as 3.10; got {unicodedata.unidata_version}")
    FILE.write_text(table(), "ascii")
