"""Text that anyone may have written → text that a terminal only shows.

Cells are model output and user text. Control characters (an escape sequence clears the screen or renames the window),
bidirectional overrides (which reorder what the eye reads), line separators, characters that XML does not allow and
signs of no width (two texts that differ would look the same) are escaped; joiners stay, as scripts and emojis need
them. In the log of a CI run the lines are read as well: there is a command in one that begins with `::` or holds `##[`
(GitHub) or `##vso[` (Azure), and where a line begins is only known when the text is wrapped.
"""

import re
import shlex
import textwrap
from collections.abc import Iterable

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ud800-\udfff"
    "\ufeff\ufffe\uffff]"
)


def visible(text: object) -> str:
    """The text with every unsafe character written as an escape, such as `\\x1b`."""
    return _UNSAFE.sub(_escape, str(text))


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def shell_words(words: Iterable[str]) -> str:
    """Words as a command that can be pasted: what a terminal would not show of one is escaped as shells read it."""
    escaped = ((word, visible(word.replace("\\", "\\\\").replace("'", "\\'"))) for word in words)
    return " ".join(f"$'{shown}'" if _UNSAFE.search(word) else shlex.quote(word) for word, shown in escaped)


_COMMAND = re.compile(r"(?:^|(?<=\r))((?:[^\S\r\n]|\x1b\[[\d;]*m)*):(?=:)|(##(?:vso)?)\[", re.MULTILINE)

TEXT_ESCAPE, JSON_ESCAPE, XML_ESCAPE = r"\x{:02x}", r"\u{:04x}", "&#{};"
"""How a character is written by its number. To a reader of JSON or XML it is the character itself."""


def escape_ci_commands(lines: str, escape: str = TEXT_ESCAPE) -> str:
    """Whole lines of output so that no CI runner takes one for a command: what makes it one is written as an escape.

    Sources: docs.github.com, "Workflow commands"; actions/runner, which also reads `##[`; Azure's "Logging commands".
    """
    colon, bracket = escape.format(ord(":")), escape.format(ord("["))
    return _COMMAND.sub(lambda m: m[1] + colon if m[2] is None else m[2] + bracket, lines)


_USER = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")
_REST = re.compile(r"(?<=://)[^\s'\"<>]+")


def without_secrets(text: object) -> str:
    """The text without what may give access in the URLs in it: a user with a password, and a query, which may hold a
    signature. A message of a library may quote a URL in full."""
    return _REST.sub(_without_query, _USER.sub("***", str(text)))


def _without_query(rest: re.Match[str]) -> str:
    place, _, query = rest.group().partition("?")
    return f"{place}?***" if "=" in query else rest.group()


# --- a text broken at words: what is in quotes, such as a command or a name, stays in one line and can be copied
def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """The lines of a text, which is one line; after the first they begin with the `indent`. Without a width, and for a
    word that is wider, a line stays as long as it is."""
    if width is None or len(text) <= width:
        return [text]
    unbroken = _QUOTED.sub(lambda found: found[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(unbroken, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


_QUOTED = re.compile(r"`[^`]*`|(?<!\w)'[^'`]*'(?!\w)")
