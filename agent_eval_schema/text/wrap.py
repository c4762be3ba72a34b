"""Texts broken at words: what is in quotes, such as a command or a name, stays in one line and can be copied."""

import re
import textwrap


def wrapped(text: str, width: int | None, indent: str = "") -> list[str]:
    """The lines of a text, which is one line; after the first they begin with the `indent`. Without a width, and for a
    word that is wider, a line stays as long as it is."""
    if width is None or len(text) <= width:
        return [text]
    kept = _QUOTED.sub(lambda found: found[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(kept, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


_QUOTED = re.compile(r"`[^`]*`|(?<!\w)'[^'`]*'(?!\w)")
