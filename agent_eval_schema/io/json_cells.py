"""The text of a JSON object → the same text with some of its values and keys replaced, the rest to the byte.

A value that is replaced looks like the one before: in ASCII where that was, on as many lines.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.depth import is_too_deep

REMOVED: Any = object()
"""The placeholder for a cell that is removed with its key. A key that the object lacks takes the first place of such a
one."""


class _Pair(NamedTuple):
    """A key of an object and its value: their places in the text."""

    key: str
    start: int
    key_end: int
    value: int
    end: int


def replaced_cells(text: bytes, renames: dict[str, str], cells: dict[str, Any]) -> bytes:
    """The text with other keys and other values in their cells; a text that is not an object is returned unchanged."""
    if not cells and not any(wrong.encode() in text or b"\\" in text for wrong in renames):
        return text
    try:
        line = text.decode()
        if is_too_deep(line, MAX_DEPTH + 1):
            return text
        pairs = _pairs(line)
    except ValueError:
        return text  # no row
    return _spliced(line, _splices(line, pairs, renames, cells)).encode()


def repeated_keys(text: bytes) -> dict[str, int]:
    """The keys that the object has more than once, and how often."""
    try:
        counts = Counter(key for key, _ in _decode_pairs(text.decode()))
    except ValueError:
        return {}
    return {key: count for key, count in counts.items() if count > 1}


_decode_pairs = json.JSONDecoder(object_pairs_hook=list).decode


def _pairs(text: str) -> list[_Pair]:
    """The pairs of the object in the text. Raises ValueError if it is not an object."""
    found, at = [], _skip(text, 0, "{")
    while text[at : at + 1] != "}":
        key, key_end = _decode(text, at)
        value = _skip(text, key_end, ":")
        end = _decode(text, value)[1]
        found.append(_Pair(key, at, key_end, value, end))
        at = _skip(text, end)
        if text[at : at + 1] != "}":
            at = _skip(text, at, ",")
    return found


_decode = json.JSONDecoder().raw_decode


def _skip(text: str, at: int, sign: str = "") -> int:
    """The place behind blanks, the sign, and blanks."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    if not sign:
        return at
    if text[at : at + 1] != sign:
        raise ValueError(f"expected {sign} at {at}")
    return _skip(text, at + 1)


_Splice = tuple[int, int, str]


def _splices(text: str, pairs: list[_Pair], renames: dict[str, str], cells: dict[str, Any]) -> list[_Splice]:
    place = {p.key: i for i, p in enumerate(pairs)}  # of a repeated key the last one was read
    splices, removed = [], []
    values = {pairs[i].key: text[pairs[i].value : pairs[i].end] for i in place.values()}
    for wrong, right in renames.items():
        if wrong in place and right in place:  # one of the two is null
            values[right] = values[wrong] if values[right] == "null" else values[right]
            removed.append(place.pop(wrong))
        elif wrong in place:
            pair = pairs[place[wrong]]
            splices.append((pair.start, pair.key_end, json.dumps(right, ensure_ascii=False)))
            place[right], values[right] = place.pop(wrong), values.pop(wrong)
    removed += [place.pop(k) for k, v in cells.items() if v is REMOVED and k in place]
    cells = {k: v for k, v in cells.items() if v is not REMOVED}
    style = (", ", ": ") if any(text[p.key_end : p.value] != ":" for p in pairs) else (",", ":")
    values |= {k: _in_the_form_of(values[k], v, style) for k, v in cells.items() if k in values}
    changed = {k: i for k, i in place.items() if values[k] != text[pairs[i].value : pairs[i].end]}
    for key in (k for k in cells if k not in values and removed):
        pair = pairs[removed.pop(0)]
        value = _in_the_form_of(text[pair.value : pair.end], cells[key], style)
        splices.append((pair.start, pair.end, f"{json.dumps(key)}{style[1]}{value}"))
    for i in removed:  # with a comma: the one before the pair, if any pair stays before it
        leads = all(before in removed for before in range(i))
        start, end = (pairs[i].start, pairs[i + 1].start) if leads else (pairs[i - 1].end, pairs[i].end)
        splices.append((start, end, ""))
    return splices + [(pairs[i].value, pairs[i].end, values[k]) for k, i in changed.items()]


def _in_the_form_of(old: str, value: Any, style: tuple[str, str]) -> str:
    """The JSON text of a value that takes the place of another one: if that was in ASCII, escapes stay escapes (above
    all those of characters that reorder a line), and if it was on several lines, so is this one."""
    head, *inner = old.splitlines()
    base, step = (_indent(inner[-1]), _indent(inner[0])) if inner else ("", "")
    if not step.startswith(base) or step == base:
        return json.dumps(value, ensure_ascii=old.isascii(), separators=style)
    text = json.dumps(value, ensure_ascii=old.isascii(), indent=step[len(base) :])
    return text.replace("\n", old[len(head) : old.index(inner[0], len(head))] + base)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _spliced(text: str, splices: list[_Splice]) -> str:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text
