"""The words of a question: what of its characters counts.

    Hi,  how do I reset MY e-mail password?   →  hi how do i reset my e mail password
    C++ or C#? 我的密码                       →  c + + or c # 我 的 密 码

Width and composition (NFKC), case, punctuation, blanks and emoji do not count, nor do characters without a look.
Symbols such as + and $ do: each is a word. So is each character of a script that has no blanks between words.

What is the same question must depend neither on the Unicode version of Python nor on that of Arrow. So `characters.txt`
has the kinds of the characters of Unicode 13.0, that of Python 3.10 (`python -m tests.helpers.characters` writes it).
Unicode guarantees that their composition and case stay what they are. A character that Unicode got later is part of a
word, as it is; a later emoji does not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np

from agent_eval_schema.cells.hashing import Array

SEPARATOR, WORD, ALONE, SYMBOL, IGNORED, LATER = range(6)
"""Between words; part of a word; a word by itself; a symbol by itself; without a look (U+00AD); not in Unicode 13.0."""

_LATER_EMOJI = range(0x1F000, 0x1FB00)


def normalized(texts: Sequence[str | None]) -> list[str]:
    """The words of each text, separated by one blank."""
    is_later = _kinds()[_points("".join(text for text in texts if text and not text.isascii()))] == LATER
    fold = _fold_earlier if is_later.any() else _fold
    return [_words(fold(text)) if text else "" for text in texts]


def is_symbol(word: str) -> bool:
    """Whether a normalized word is a symbol: it is compared, but not counted."""
    return len(word) == 1 and bool(_kinds()[ord(word)] == SYMBOL)


def _words(text: str) -> str:
    """The words of a folded text."""
    if _special().search(text):
        return " ".join(text.translate(_replacements()).split())
    # letters, and punctuation of ASCII: as bytes it takes a third of the time
    return b" ".join(text.encode().translate(_ascii()).split()).decode()


def _fold(text: str) -> str:
    """The text without differences of case, width and composition, and with minus signs."""
    text = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _MINUS.sub("\u2212", text) if "-" in text else text


_MINUS = re.compile("(?<![a-z])-(?= ?[0-9])")
"""A hyphen before a number, unless it is in a word such as covid-19."""


def _fold_earlier(text: str) -> str:
    """The same for the characters of Unicode 13.0 only, the later ones stay as they are."""
    cuts = np.flatnonzero(np.diff(_kinds()[_points(text)] == LATER)) + 1
    edges = [0, *cuts.tolist(), len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    return "".join(part if _kinds()[ord(part[0])] == LATER else _fold(part) for part in parts if part)


def _points(text: str) -> Array:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _kinds() -> Array:
    """The kind of each code point."""
    lines = files(__package__).joinpath("characters.txt").read_text("ascii").splitlines()
    runs = [line.split() for line in lines if not line.startswith("#")]
    starts = [int(start, 16) for start, _ in runs]
    return np.repeat(np.array([int(kind) for _, kind in runs], np.uint8), np.diff([*starts, 0x110000]))


@cache
def _special() -> re.Pattern[str]:
    """Finds a character that is neither a part of a word nor between words and ASCII."""
    kinds = _kinds()[:0x10000]
    plain = (kinds == WORD) | ((kinds == SEPARATOR) & (np.arange(len(kinds)) < 0x80))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], plain, [False]]))).reshape(-1, 2).tolist()
    ranges = (f"{re.escape(chr(first))}-{re.escape(chr(end - 1))}" for first, end in edges)
    return re.compile(f"[^{''.join(ranges)}]")


@cache
def _ascii() -> bytes:
    """The bytes of UTF-8, with a blank in the place of the ASCII characters that are between words."""
    return bytes(ord(" ") if point < 0x80 and _kinds()[point] == SEPARATOR else point for point in range(0x100))


class _Replacements(dict[int, int | str | None]):
    """What `str.translate` puts in the place of each character; filled as the characters occur."""

    def __missing__(self, point: int) -> int | str | None:
        kind = _kinds()[point]
        if kind == SEPARATOR or (kind == LATER and point in _LATER_EMOJI):
            self[point] = " "
        elif kind in (ALONE, SYMBOL):
            self[point] = f" {chr(point)} "
        else:
            self[point] = None if kind == IGNORED else point
        return self[point]


@cache
def _replacements() -> _Replacements:
    return _Replacements()
