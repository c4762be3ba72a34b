"""How deep brackets are nested in a text: the limit is a count of ours, not the recursion limit of the interpreter.

    [{"a": "[["}]      2: the brackets in the string are text

Parsers of JSON recurse, and how far they get depends on the Python and on the stack of the caller. So a text is
measured before a parser reads it, and what is deeper is no JSON for us, wherever it is read.
"""

import msgspec
import numpy as np

from agent_eval_schema.rules.reading import MAX_DEPTH

JSONText = str | bytes | bytearray | memoryview | msgspec.Raw


STAND_IN = "[" * (MAX_DEPTH + 2)
"""A text in the place of a cell or a row that is nested too deep: it is reported like that, and harms no parser."""


class TooDeep(msgspec.DecodeError):
    """A text or a value is nested deeper than MAX_DEPTH."""


def is_too_deep(text: JSONText, levels: int = MAX_DEPTH) -> bool:
    """Whether the brackets of a text that may be JSON are nested deeper than this number of levels."""
    return len(text) > levels and is_deeper(text, levels)


def is_deeper(text: JSONText, levels: int = MAX_DEPTH) -> bool:
    """Like `is_too_deep`, without the length check."""
    if isinstance(text, str):
        if text.count("[") + text.count("{") <= levels:
            return False
        data = text.encode("utf-8", "surrogatepass")
    else:
        data = bytes(text)
    if not data or not MAY_BE_FIRST[data[0]] or data.count(b"[") + data.count(b"{") <= levels:
        return False
    return _depth(data) > levels


MAY_BE_FIRST = np.isin(np.arange(256), [*b"[{", *b"\t\n\v\f\r\x1c\x1d\x1e\x1f ", *range(128, 256)])
"""The bytes that a list or an object may begin with, blanks included: behind any other, no parser reads a bracket."""


def _depth(data: bytes) -> int:
    """The largest number of brackets that are open at once, outside of strings."""
    if b"\\\\" in data:
        data = data.replace(b"\\\\", b"")  # a backslash before a quote then escapes it
    codes = np.frombuffer(data, np.uint8)
    mask = codes == _QUOTE
    mask[1:] &= codes[:-1] != _BACKSLASH
    lower = codes | 0x20  # of brackets that of braces
    mask |= lower == ord("{")
    mask |= lower == ord("}")
    marks = codes[mask]
    outside = np.cumsum(marks == _QUOTE, dtype=np.int32) & 1 == 0
    return int(np.cumsum(_STEPS[marks[outside]], dtype=np.int32).max(initial=0))


_QUOTE, _BACKSLASH = ord('"'), ord("\\")

_STEPS = np.array([(code in b"[{") - (code in b"]}") for code in range(256)], np.int8)
"""What each byte adds to the depth."""
