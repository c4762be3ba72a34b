"""A JSON file that holds an array of objects (or one object) → batches, element by element in a sliding window."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import pyarrow as pa

from agent_eval_schema.engines.jsonl import CellBuilder
from agent_eval_schema.engines.streams import CHUNK, Position, opened


def json_batches(path: str, position: Position | None = None) -> Iterator[pa.RecordBatch]:
    builder = CellBuilder()
    for number, (text, problem) in enumerate(json_elements(path, position), start=1):
        builder.add(text, f"element {number}", problem)
        if builder.full:
            yield builder.take()
    if builder.size:
        yield builder.take()


def json_elements(path: str, position: Position | None = None) -> Iterator[tuple[bytes, str]]:
    """The texts of the elements of a JSON array, or the one text if the file is not an array.

    Elements end where a comma or the closing bracket stands outside of strings and brackets. What follows a place that
    cannot be JSON comes as one last element, with the reason why it is none: nothing is dropped.
    """
    window = _Window(path, position)
    start = window.skip_blanks(0)
    if window.byte(start) != b"[":
        rest = window.rest(start)
        if rest:
            yield rest, ""
        return
    at = window.skip_blanks(start + 1)
    closed = window.byte(at) == b"]"
    while not closed:
        if window.byte(at) in (b"", b"]"):
            yield (
                window.rest(at),
                "expected another element of the array" + ("" if window.byte(at) else ", the file ends"),
            )
            return
        end = window.end_of_value(at)
        yield window.text(at, end), ""
        at = window.skip_blanks(window.release(end))
        byte = window.byte(at)
        closed = byte == b"]"
        if byte == b",":
            at = window.skip_blanks(at + 1)
        elif not closed:
            yield window.rest(at), "expected a comma or the end of the array" + ("" if byte else ", the file ends")
            return
    rest = window.rest(at + 1)
    if rest:
        yield rest, "expected nothing after the array"


class _Window:
    """A sliding window over a file's bytes: only the element that is being read is in memory."""

    def __init__(self, path: str, position: Position | None) -> None:
        self._chunks = self._read(path, position)
        self._data = bytearray(next(self._chunks, b"").removeprefix(codecs.BOM_UTF8))

    @staticmethod
    def _read(path: str, position: Position | None) -> Iterator[bytes]:
        with opened(path, position) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._data += chunk
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
        return bytes(self._data[start:]).strip()

    def release(self, end: int) -> int:
        """Forget what was read up to `end`; returns where that place is now."""
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
