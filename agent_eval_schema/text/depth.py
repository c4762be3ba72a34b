"""How deep brackets are nested in a text: the limit is a count of ours, not the recursion limit of the interpreter.

    [{"a": "[["}]      2: the brackets in the string are text

Parsers of JSON recurse, and how far they get depends on the Python and on the stack of the caller. So a text is
measured before a parser reads it, and what is deeper is no JSON for us, wherever it is read.
"""

from __future__ import annotations

import msgspec
import numpy as np

from agent_eval_schema.rules.reading import MAX_DEPTH

JSONText = str | bytes | bytearray | memoryview | msgspec.Raw


STAND_IN = "[" * (MAX_DEPTH + 2)
"""A text in the place of a cell or a row that is nested too deep: it is reported like that, and harms no parser."""


class TooDeep(msgspec.DecodeError):
    """A text or a value is nested deeper than MAX_DEPTH."""


def is_too_deep(text: JSONText, levels: int = MAX_DEPTH) -> bool:
    """Whether the brackets of a text, JSON or not, are nested deeper than so many levels."""
    if len(text) <= levels:
        return False
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    if data[:1] == b'"':  # behind which no parser reads a bracket
        return False
    return len(data.translate(None, _NOT_OPENING)) > levels and _depth(data) > levels


_NOT_OPENING = bytes(set(range(256)) - set(b"[{"))


def _depth(data: bytes) -> int:
    """The largest number of brackets that are open at once, outside of strings."""
    codes = np.frombuffer(data, np.uint8)
    is_quote = codes == ord('"')
    if b"\\" in data:
        at = np.flatnonzero(codes == ord("\\"))
        begins = np.diff(at, prepend=-2) != 1
        in_run = np.arange(len(at)) - np.maximum.accumulate(np.where(begins, np.arange(len(at)), 0))
        escaped = at[in_run % 2 == 0] + 1
        is_quote[escaped[escaped < len(codes)]] = False
    steps = np.frombuffer(data.translate(_STEPS), np.int8)
    brackets = np.flatnonzero(steps)
    outside = np.searchsorted(np.flatnonzero(is_quote), brackets) % 2 == 0
    return int(np.cumsum(steps[brackets[outside]], dtype=np.int64).max(initial=0))


_STEPS = bytes({ord("["): 1, ord("{"): 1, ord("]"): 255, ord("}"): 255}.get(code, 0) for code in range(256))
"""What each byte adds to the depth, as a signed number."""
