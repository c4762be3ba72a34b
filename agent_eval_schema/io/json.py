"""A JSON file that holds an array of objects, or objects one after another → batches, element by element in a sliding
window."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.io.jsonl import cell_batches, replaced_cells, row_texts
from agent_eval_schema.io.streams import (
    CHUNK,
    DROPPED,
    Edits,
    Position,
    Renames,
    creating,
    require_bounded,
    text_chunks,
)
from agent_eval_schema.text.jsontext import is_json


def json_batches(path: str, position: Position | None = None) -> Iterator[pa.RecordBatch]:
    elements = enumerate(json_elements(path, position), start=1)
    return cell_batches((text, f"element {number}", problem) for number, (text, problem) in elements)


def json_elements(path: str, position: Position | None = None) -> Iterator[tuple[bytes, str]]:
    """The texts of the elements of a JSON array, or of the objects in the file.

    Elements end where a comma or the closing bracket stands outside of strings and brackets. The text after a place
    that is not valid JSON is one last element, with the reason why it is invalid: nothing is dropped.
    """
    return ((part.text, part.problem) for part in json_parts(path, position) if part.text is not None)


class ElementPart(NamedTuple):
    """An element, the text of the file before it, and why it is invalid. The last part has no element, only the text
    after all of them: in their order the parts are the file."""

    before: bytes
    text: bytes | None = None
    problem: str = ""


def json_parts(path: str, position: Position | None = None) -> Iterator[ElementPart]:
    """The elements of `json_elements` with the text between them."""
    window = _Window(path, position)
    start = window.skip_blanks(0)
    if window.byte(start) != b"[":
        yield from _objects(window, start)
        return
    end, problem, at = 0, "", window.skip_blanks(start + 1)
    closed = window.byte(at) == b"]"
    while not (closed or problem):
        if window.byte(at) in (b"", b"]"):
            problem = "expected another element of the array"
            break
        before, end = window.text(end, at), window.end_of_value(at)
        yield ElementPart(before, window.text(at, end))
        end = window.release(end)
        at = window.skip_blanks(end)
        closed = window.byte(at) == b"]"
        if window.byte(at) == b",":
            at = window.skip_blanks(at + 1)
        elif not closed:
            problem = "expected a comma or the end of the array"
    if problem:
        problem += "" if window.byte(at) else ", the file ends"
    else:
        at += 1
    before, rest = window.text(end, at), window.rest(at)
    text = rest.strip()
    if problem or text:
        yield ElementPart(before, text, problem or "expected the end of the file after the array")
    else:
        yield ElementPart(before + rest)


def _objects(window: _Window, at: int) -> Iterator[ElementPart]:
    """Objects one after another, whether on a line each or not; text that does not begin as one is one last element."""
    end, problem = 0, ""
    while window.byte(at) == b"{":
        before, end = window.text(end, at), window.end_of_value(at)
        yield ElementPart(before, window.text(at, end))
        end, problem = window.release(end), "expected another object, or the end of the file"
        at = window.skip_blanks(end)
    before, rest = window.text(end, at), window.rest(at)
    text = rest.rstrip()
    if text:
        yield ElementPart(before, text, problem)
    yield ElementPart(rest[len(text) :] if text else before)


def holds_json(path: str) -> bool:
    """Whether a file of JSON Lines has no line per row: it is an array of objects, or its objects are on several
    lines."""
    first, _, rest = (part.strip() for part in next(text_chunks(path)).lstrip().partition(b"\n"))
    if first.startswith(b"["):
        inner = first[1:].lstrip() or rest
        return inner.startswith(b"{") and not (rest and is_json(first))
    return first.startswith(b"{") and first.endswith((b"{", b",")) and rest.startswith(b'"')


def holds_array(path: str) -> bool:
    """Whether a file of JSON is an array, whose elements are the rows, even if there is one."""
    return next(text_chunks(path)).lstrip().startswith(b"[")


class _Window:
    """A sliding window over a file's bytes: only the element that is being read is in memory."""

    def __init__(self, path: str, position: Position | None) -> None:
        self._path, self._chunks = path, text_chunks(path, position)
        self._data = bytearray(next(self._chunks))

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._data += chunk
        require_bounded(self._path, len(self._data))
        return bool(chunk)

    def byte(self, at: int) -> bytes:
        while at >= len(self._data):
            if not self._more():
                return b""
        return bytes(self._data[at : at + 1])

    def skip_blanks(self, at: int) -> int:
        while (byte := self.byte(at)) and byte in b" \t\r\n":
            at += 1
        return at

    def text(self, start: int, end: int) -> bytes:
        return bytes(self._data[start:end])

    def rest(self, start: int) -> bytes:
        while self._more():
            pass
        return bytes(self._data[start:])

    def release(self, end: int) -> int:
        """Forget the text up to `end`; returns the new offset of that place."""
        if end < CHUNK:
            return end
        del self._data[:end]
        return 0

    def end_of_value(self, start: int) -> int:
        """The place behind the value that begins at `start` (the end of the file if it does not end)."""
        at, depth = start, 0
        while True:
            found = (_INSIDE if depth else _OUTSIDE).search(self._data, at)
            if found is None:
                at = len(self._data)
                if not self._more():
                    return len(self._data)
                continue
            byte = found.group()
            if byte == b'"':
                at = self._end_of_string(found.end())
            elif byte in (b"[", b"{"):
                depth, at = depth + 1, found.end()
            elif depth == 0:
                return found.start()
            else:
                depth, at = depth - 1, found.end()
                if depth == 0:
                    return at

    def _end_of_string(self, start: int) -> int:
        """The place behind the closing quote. A step takes 64 KiB at most and never goes back: strings may be large."""
        at = start
        while True:
            found = _STRING_PART.match(self._data, at, min(len(self._data), at + 65536))
            at = found.end() if found else at
            if self._data[at : at + 1] == b'"':
                return at + 1
            if at + 1 >= len(self._data) and not self._more():
                return len(self._data)


_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\[\]{}]')
_STRING_PART = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


def write_json(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write a JSON array, one row per line."""
    count = 0
    with creating(path) as file:
        for count, text in enumerate(row_texts(batches, schema), start=1):
            file.write((b",\n" if count > 1 else b"[\n") + text)
        file.write(b"\n]\n" if count else b"[]\n")
    return count


def rewrite_json(path: str, renames: Renames, edits: Edits) -> Iterator[bytes]:
    """The text of the file with other cells (`edits`, row by row) and other names of columns; the rest to the byte."""
    opening: bytes | None = None  # what is before the first element, if that is excluded
    has_element = False
    for number, part in enumerate(json_parts(path), start=1):
        if part.problem:
            raise EvalSetError(f"{path}: element {number}: {part.problem}: correct this first, then fix the file")
        cells = {} if part.text is None else next(edits)
        if cells is DROPPED:
            opening = part.before if opening is None and not has_element else opening
            continue
        if has_element or opening is None:
            yield part.before
        else:
            yield opening if part.text is not None else opening + part.before
        if part.text is not None:
            has_element = True
            yield replaced_cells(part.text, renames, cells)
