"""Text that anyone may have written → text that a terminal only shows.

Cells are model output and user text. Control characters (an escape sequence clears the screen or renames the window),
bidirectional overrides (which reorder what the eye reads), line separators and what no XML can hold are written out,
not sent.
"""

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def visible(text: object) -> str:
    """The text with every unsafe character written as an escape, such as `\\x1b`."""
    return _UNSAFE.sub(_escape, str(text))


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
