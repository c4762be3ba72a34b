"""An old value and a new one → where they differ, as a reader would mark it.

    "Within 30 days."   "Within 45 days."                    →  Within [30 → 45] days.
    {"messages": [..]}  the same with another second message →  messages[1].content: …

Objects and lists are walked to the leaves that differ; texts are compared word by word, and equal parts are cut down to
a little context.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import shared_start
from agent_eval_schema.text.jsontext import canonical_json

EDITS = 5
"""Edits of one cell that are shown; how many more there are is counted."""

CONTEXT = 40
"""Characters of context on either side of a change."""

LONGEST_TEXT = 240
"""Characters of a changed part that are shown."""

_WORDS_COMPARED = 600
"""Texts that differ in more words than this are shown as rewritten; finding the words would take seconds."""

_LIST_ALIGNED = 500
_PARTS = 24

Side = Literal["both", "old", "new"]


class TextPart(Struct, frozen=True):
    """A piece of text that is on both sides, or on one."""

    side: Side
    text: str


class Edit(Struct, frozen=True):
    """One place in a cell: its path (`request.messages[0].content`) and its text on both sides. The old text is that of
    the parts `both` and `old`, the new one that of `both` and `new`, with … for parts that were cut."""

    path: str
    parts: tuple[TextPart, ...]

    def text(self, side: Side) -> str | None:
        """The text of one side, or None if there is none."""
        if not any(part.side in ("both", side) for part in self.parts):
            return None
        return "".join(part.text for part in self.parts if part.side in ("both", side))


def edits(field: str, old: Any, new: Any) -> tuple[tuple[Edit, ...], int]:
    """The first places where two values of a field differ, and how many more there are."""
    old, new = (_NOTHING if value is None else _unpacked(value) for value in (old, new))
    # Nothing differs in the values where only one of them could be read.
    differences = list(_differences(old, new, field)) or [(field, old, new)]
    shown = tuple(Edit(path, _parts_of_edit(a, b)) for path, a, b in differences[:EDITS])
    return shown, len(differences) - len(shown)


def _unpacked(value: Any) -> Any:
    """Text that holds an object or a list (a trace, a cell of a CSV file) is that value; after blanks, it is text."""
    return jsontext.parse_leniently(value) if isinstance(value, str) and value.startswith(jsontext.OPENING) else value


class _Nothing(Struct, frozen=True):
    """The placeholder for a key or an entry that a side does not have."""


_NOTHING = _Nothing()

Difference = tuple[str, Any, Any]


def _differences(old: Any, new: Any, path: str) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key, _NOTHING), new.get(key, _NOTHING), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if max(len(old), len(new)) > _LIST_ALIGNED:
            blocks = [("replace", 0, len(old), 0, len(new))]
        else:
            old_texts, new_texts = ([_canonical(value) for value in side] for side in (old, new))
            blocks = [*SequenceMatcher(None, old_texts, new_texts, autojunk=False).get_opcodes()]
        for kind, a, a_end, b, b_end in blocks:
            if kind == "equal":
                continue
            for i, (left, right) in enumerate(zip_longest(old[a:a_end], new[b:b_end], fillvalue=_NOTHING)):
                yield from _differences(left, right, f"{path}[{b + i if right is not _NOTHING else a + i}]")
    elif _canonical(old) != _canonical(new):
        yield path, old, new


def _canonical(value: Any) -> str:
    return "" if value is _NOTHING else canonical_json(_json(value))


def _json(value: Any) -> str:
    return _encode(value).decode()


_encode = msgspec.json.Encoder(enc_hook=str).encode


# --- words
def _parts_of_edit(old: Any, new: Any) -> tuple[TextPart, ...]:
    if isinstance(old, str) and isinstance(new, str) and old.strip() and new.strip():
        a, b = _TOKENS.findall(old), _TOKENS.findall(new)
        start = shared_start(a, b)
        end = shared_start(a[start:][::-1], b[start:][::-1])
        head, tail = "".join(a[:start]), "".join(a[len(a) - end :])
        a, b = a[start : len(a) - end], b[start : len(b) - end]
        parts = [TextPart("both", head), *_changed(a, b), TextPart("both", tail)]
        return tuple(_cut([part for part in parts if part.text]))
    sides: tuple[tuple[Side, Any], ...] = (("old", old), ("new", new))
    return tuple(_cut([TextPart(side, _shown(v)) for side, v in sides if v is not _NOTHING]))


def _shown(value: Any) -> str:
    """A text that is empty or blank is quoted: it would not be seen."""
    return value if isinstance(value, str) and value.strip() else _json(value)


_TOKENS = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")


def _changed(a: list[str], b: list[str]) -> Iterator[TextPart]:
    """The words that changed. A word or two that happen to stay between changes belong to the change."""
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if max(len(a), len(b)) > _WORDS_COMPARED or matcher.ratio() < 0.4:
        yield from (TextPart("old", "".join(a)), TextPart("new", "".join(b)))
        return
    removed = added = ""
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if kind == "equal" and a_to - a_from > 2:
            yield from (TextPart("old", removed), TextPart("new", added), TextPart("both", "".join(a[a_from:a_to])))
            removed = added = ""
        else:
            removed += "".join(a[a_from:a_to])
            added += "".join(b[b_from:b_to])
    yield from (TextPart("old", removed), TextPart("new", added))


def _cut(parts: list[TextPart]) -> Iterator[TextPart]:
    """The parts with long texts cut to the length that a reader needs."""
    for i, part in enumerate(parts[:_PARTS]):
        last = i + 1 == len(parts)
        if part.side != "both":
            yield TextPart(part.side, _middle(part.text, LONGEST_TEXT - CONTEXT, CONTEXT))
        else:
            yield TextPart("both", _middle(part.text, 0 if i == 0 else CONTEXT, 0 if last else CONTEXT))
    if len(parts) > _PARTS:
        yield TextPart("both", "…")


def _middle(text: str, first: int, last: int) -> str:
    """The text with … in place of its middle."""
    if len(text) <= first + last + 1:
        return text
    return text[:first] + "…" + text[len(text) - last :]
