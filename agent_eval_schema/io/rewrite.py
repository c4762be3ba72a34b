"""A text file → the same file with some cells replaced: what is not replaced goes out as it came, byte for byte.

    .jsonl   a line without a repair is copied; in another one only the values (and keys) that are repaired are replaced
    .json    the same for the elements of the array, or the one object
    .csv     the same for records and their fields

So nulls, spaces, quotes, the order of keys, lines that are no rows and the end of the file stay, and version control
shows the repairs only. A repaired value looks like the one before: in ASCII where that was, on as many lines.
"""

from __future__ import annotations

import codecs
import json
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from agent_eval_schema.io.atomic import replacing
from agent_eval_schema.io.csv import Record, csv_records
from agent_eval_schema.io.json import json_parts
from agent_eval_schema.io.jsonl import jsonl_lines
from agent_eval_schema.io.streams import opened
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text import jsontext

Edits = Iterator[dict[str, Any]]
"""For each row of the file, in order, the cells that are replaced: {column, as it is called now: value}."""

Renames = dict[str, str]


def copy_file(path: str, target: str) -> None:
    """Write the text of the file at `path` to `target`, which may be the same."""
    with opened(path) as stream, replacing(target) as temporary, open(temporary, "wb") as file:
        shutil.copyfileobj(stream, file)


def rewrite_file(path: str, kind: str, target: str, renames: Renames, edits: Edits) -> None:
    """Write the file at `path` (of a kind of `REWRITTEN`) to `target`, with columns renamed and cells replaced. The two
    may be the same: the new file takes the place of the old one when it is complete."""
    with replacing(target) as temporary, open(temporary, "wb") as file:
        for piece in chain([_byte_order_mark(path)], REWRITTEN[kind](path, renames, edits)):
            file.write(piece)


def _byte_order_mark(path: str) -> bytes:
    with opened(path) as stream:
        head = stream.read(len(codecs.BOM_UTF8))
    return head if head == codecs.BOM_UTF8 else b""


# ---------------------------------------------------------------------------------------------------------------------
# JSON
def _jsonl(path: str, renames: Renames, edits: Edits) -> Iterator[bytes]:
    between = b""
    for line in jsonl_lines(path):
        blank = not line or line.isspace()
        yield between + (line if blank else _rewritten(line, renames, next(edits)))
        between = b"\n"


def _json(path: str, renames: Renames, edits: Edits) -> Iterator[bytes]:
    for number, part in enumerate(json_parts(path), start=1):
        if part.problem:
            raise EvalSetError(f"{path}: element {number}: {part.problem}: mend this first, then repair the file")
        yield part.before
        if part.text is not None:
            yield _rewritten(part.text, renames, next(edits))


class _Pair(NamedTuple):
    """A key of an object and its value: where they stand in the text."""

    key: str
    start: int
    key_end: int
    value: int
    end: int


def _rewritten(text: bytes, renames: Renames, cells: dict[str, Any]) -> bytes:
    if not cells and not any(wrong.encode() in text or b"\\" in text for wrong in renames):
        return text
    try:
        line = text.decode()
        pairs = _pairs(line)
    except (ValueError, RecursionError):
        return text  # no row
    return _spliced(line, _splices(line, pairs, renames, cells)).encode()


def _pairs(text: str) -> list[_Pair]:
    """The pairs of the object that the text is. Raises ValueError if it is none."""
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


def _splices(text: str, pairs: list[_Pair], renames: Renames, cells: dict[str, Any]) -> list[_Splice]:
    place = {p.key: i for i, p in enumerate(pairs)}  # of a repeated key the last one was read
    splices, gone = [], []
    values = {pairs[i].key: text[pairs[i].value : pairs[i].end] for i in place.values()}
    for wrong, right in renames.items():
        if wrong in place and right in place:  # one of the two is null
            given = values[wrong] if values[right] == "null" else values[right]
            values[right] = given
            gone.append(place.pop(wrong))
        elif wrong in place:
            pair = pairs[place[wrong]]
            splices.append((pair.start, pair.key_end, json.dumps(right, ensure_ascii=False)))
            place[right], values[right] = place.pop(wrong), values.pop(wrong)
    style = (", ", ": ") if any(text[p.key_end : p.value] != ":" for p in pairs) else (",", ":")
    values |= {k: _in_the_form_of(values[k], v, style) for k, v in cells.items() if k in values}
    changed = {k: i for k, i in place.items() if values[k] != text[pairs[i].value : pairs[i].end]}
    splices += [(*_span(pairs, i, gone), "") for i in gone]
    return splices + [(pairs[i].value, pairs[i].end, values[k]) for k, i in changed.items()]


def _in_the_form_of(given: str, value: Any, style: tuple[str, str]) -> str:
    """The JSON text of a value that takes the place of another one: if that was in ASCII, escapes stay escapes (a
    character that reorders what the eye reads above all), and if it stood on several lines, so does this one."""
    head, *inner = given.splitlines()
    base, step = (_indent(inner[-1]), _indent(inner[0])) if inner else ("", "")
    if not step.startswith(base) or step == base:
        return json.dumps(value, ensure_ascii=given.isascii(), separators=style)
    text = json.dumps(value, ensure_ascii=given.isascii(), indent=step[len(base) :])
    return text.replace("\n", given[len(head) : given.index(inner[0], len(head))] + base)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _span(pairs: list[_Pair], at: int, gone: list[int]) -> tuple[int, int]:
    """A pair that is taken out, and the comma that goes with it: the one before it if any pair stays before it."""
    leads = all(i in gone for i in range(at))
    return (pairs[at].start, pairs[at + 1].start) if leads else (pairs[at - 1].end, pairs[at].end)


def _spliced(text: str, splices: list[_Splice]) -> str:
    for start, end, new in sorted(splices, reverse=True):
        text = text[:start] + new + text[end:]
    return text


# ---------------------------------------------------------------------------------------------------------------------
# CSV
def _csv(path: str, renames: Renames, edits: Edits) -> Iterator[bytes]:
    records = csv_records(path, blanks=True)
    for header in records:
        if header.fields:
            break
        yield _bytes(header.text)
    comma = "\t" if ".tsv" in path.lower() else ","
    given = [n.strip() for n in header.fields]
    names = [renames.get(n, n) for n in given]
    # where a column moves into one that is there, its fields move too
    moves = {given.index(w): given.index(r) for w, r in renames.items() if w in given and r in given}
    kept = [i for i in range(len(names)) if i not in moves]
    place = {names[i]: i for i in reversed(kept)}
    new = {i: renames[n] for i, n in enumerate(given) if n in renames}
    yield _bytes(_record(header, new, kept, comma) if renames else header.text)
    for record in records:
        cells = next(edits) if record.fields or record.error else {}
        if record.error or len(record.fields) != len(names) or not (cells or moves):
            yield _bytes(record.text)
            continue
        fields = {r: record.fields[r] or record.fields[w] for w, r in moves.items()}
        fields |= {place[name]: _field(value) for name, value in cells.items()}
        yield _bytes(_record(record, fields, kept, comma))


def _field(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else jsontext.write_exactly(value)


def _record(record: Record, new: dict[int, str], kept: list[int], comma: str) -> str:
    """The text of the kept fields of a record, with other values in some."""
    text = record.text.rstrip("\r\n")
    texts = _FIELDS[comma].findall(text)
    for i, field in new.items():
        if field != record.fields[i]:
            texts[i] = _quoted(field, texts[i], comma)
    return comma.join(texts[i] for i in kept) + record.text[len(text) :]


_FIELDS = {comma: re.compile(rf'(?:^|{comma})("[^"]*(?:""[^"]*)*"|[^{comma}]*)') for comma in (",", "\t")}
"""The fields of a record as they stand in its text."""


def _quoted(field: str, given: str, comma: str) -> str:
    """The text of a field that takes the place of another one."""
    plain = not given.startswith('"') and not any(sign in field for sign in (comma, '"', "\r", "\n"))
    return field if plain else '"' + field.replace('"', '""') + '"'


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


REWRITTEN: dict[str, Callable[[str, Renames, Edits], Iterator[bytes]]] = {"jsonl": _jsonl, "json": _json, "csv": _csv}
"""The kinds of files that can be rewritten in their own form."""
