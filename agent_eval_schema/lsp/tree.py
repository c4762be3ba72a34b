"""The places of the parts of a row: JSON that may be incomplete, JSON in its strings, fields of CSV, nodes of YAML.

    {"request": "{\\"messages\\": [{\\"role\\": \\"usr\\"}]}"}       request.messages[0].role  →  \\"usr\\"

An editor asks while someone types, so the reader here takes what is there: it does not judge, and it stops at nothing.
What is judged is read by the readers of `io/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from agent_eval_schema.rules.reading import MAX_DEPTH
from agent_eval_schema.text.jsontext import is_structured


class Layer(NamedTuple):
    """A text, and the offset in the file of each of its characters, and of its end."""

    text: str
    places: Sequence[int]


class Node:
    """A value: where it is in the file, its key, and its parts; of a string what it holds."""

    def __init__(self, kind: str, start: int, end: int, layer: Layer | None = None) -> None:
        self.kind = kind  # { [ " or, of any other scalar, nothing
        self.start, self.end, self.layer = start, end, layer
        self.key: str | int | None = None
        self.key_start = self.key_end = start
        self.parts: list[Node] = []

    def add(self, part: Node, key: str | int, start: int, end: int) -> None:
        """Add a part, whose key is at these places."""
        part.key, part.key_start, part.key_end = key, start, end
        self.parts.append(part)

    @cached_property
    def inner(self) -> Node | None:
        """The object or list that a string is the JSON text of."""
        return parse(self.layer).root if self.layer is not None and is_structured(self.layer.text) else None

    @property
    def children(self) -> list[Node]:
        return self.parts or (self.inner.children if self.inner is not None else [])

    def find(self, path: str) -> tuple[Node, bool]:
        """The part at a path such as `messages[0].role`; else the last one on the way that is there, and False."""
        node = self
        while path:
            following = _next(node, path)
            if following is None:
                return node, False
            node, path = following
        return node, True

    def walk(self) -> Iterator[tuple[str, Node]]:
        """All parts, each with its path, in which lists have no numbers: `messages[].role`."""
        stack = [("", self)]
        while stack:
            path, node = stack.pop()
            yield path, node
            stack += [(join(path, child.key, numbers=False), child) for child in reversed(node.children)]


def join(path: str, key: str | int | None, numbers: bool = True) -> str:
    if isinstance(key, int):
        return f"{path}[{key if numbers else ''}]"
    return f"{path}.{key}" if path else str(key)


_NUMBER = re.compile(r"\[(\d{1,9})\]")
_NAME = re.compile(r"[^.\[\]]+")


def _next(node: Node, path: str) -> tuple[Node, str] | None:
    """The part that a path begins with, and the rest of the path. A key may have dots in it."""
    children, path = node.children, path.removeprefix(".")
    if found := _NUMBER.match(path):
        at = int(found[1])
        is_list = at < len(children) and children[at].key == at
        return (children[at], path[found.end() :]) if is_list else None
    keys = [(child.key, child) for child in children if isinstance(child.key, str) and path.startswith(child.key)]
    fitting = [(key, child) for key, child in keys if path[len(key) : len(key) + 1] in ("", ".", "[")]
    if fitting:  # of a key that is there twice the last one holds
        key, best = max(reversed(fitting), key=lambda pair: len(pair[0]))
        return best, path[len(key) :]
    if children and children[0].key == 0 and (name := _NAME.match(path)):  # `messages` of a list that is the messages
        return node, path[name.end() :]
    return None


class Parsed(NamedTuple):
    """The value of a text, and where the text ends in it: the open objects and lists, the key of the value that comes,
    whether a key comes, and what is there of the string that is open."""

    root: Node | None
    open: list[Node]
    key: str | None
    wants_key: bool
    prefix: Layer | None

    @property
    def path(self) -> str:
        """The path of the value that comes, or of the object whose key does."""
        path = ""
        for node in self.open[1:]:
            path = join(path, node.key)
        if self.open and self.open[-1].kind == "[":
            return join(path, len(self.open[-1].parts))
        return path if self.wants_key or self.key is None else join(path, self.key)


_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[{}\[\]:,]|[^\s"{}\[\]:,]+', re.DOTALL)
_MOST_TOKENS, _MOST_OPEN = 200_000, MAX_DEPTH + 64
"""Parts of a row that are read, at most, and levels of them: a place behind them is that of the row."""


def parse(layer: Layer) -> Parsed:
    """The value of a JSON text that may be wrong or end anywhere."""
    text, places = layer
    root: Node | None = None
    open_: list[Node] = []
    key: tuple[str, int, int] | None = None  # of the value that comes
    colon, prefix = False, None
    for number, token in enumerate(_TOKEN.finditer(text)):
        sign, start, end = token[0][0], places[token.start()], places[token.end()]
        in_object = bool(open_) and open_[-1].kind == "{"
        prefix = None
        if number == _MOST_TOKENS or len(open_) > _MOST_OPEN:
            break
        if sign in "}],":
            if open_ and sign != ",":
                open_.pop().end = end
            key, colon = None, False
            continue
        if sign == ":":
            colon = True
            continue
        string = _unescaped(layer, token.start(), token.end()) if sign == '"' else None
        if string is not None and (len(token[0]) == 1 or not token[0].endswith('"') or _is_open(token[0])):
            prefix = string
        if in_object and not colon:
            key = (token[0] if string is None else string.text, start, end)
            continue
        node = Node(sign if sign in '{["' else "", start, end, string)
        if open_:
            open_[-1].add(node, *(key or (len(open_[-1].parts), start, start)))
            key, colon = (key, colon) if prefix is not None else (None, False)
        root = root or node
        if sign in "{[":
            open_.append(node)
    for node in open_:
        node.end = places[len(text)]
    wants_key = bool(open_) and open_[-1].kind == "{" and not colon
    if prefix is not None and not wants_key and open_:  # the open string is the value that comes
        open_[-1].parts.pop()
    return Parsed(root, open_, key[0] if key and not wants_key else None, wants_key, prefix)


def _is_open(token: str) -> bool:
    """Whether the quote at the end of a string is escaped."""
    inner = token[1:-1]
    return (len(inner) - len(inner.rstrip("\\"))) % 2 == 1


_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]+|\\", re.DOTALL
)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def _unescaped(layer: Layer, start: int, end: int) -> Layer:
    """What a JSON string holds."""
    text, places = layer
    has_end = end - start > 1 and text[end - 1] == '"' and not _is_open(text[start:end])
    first, last = start + 1, end - has_end
    inner = text[first:last]
    if "\\" not in inner:
        return Layer(inner, places[first : last + 1])
    parts, offsets = list[str](), list[int]()
    for piece in _ESCAPE.finditer(text, first, last):
        raw = piece[0]
        if raw[0] != "\\":
            parts.append(raw)
            offsets.extend(places[piece.start() : piece.end()])
            continue
        if len(raw) == 12:
            value = (raw.encode().decode("unicode_escape").encode("utf-16", "surrogatepass")).decode("utf-16")
        elif len(raw) == 6:
            value = chr(int(raw[2:], 16))
        else:
            value = _CONTROLS.get(raw[1:], raw[1:])
        parts.append(value)
        offsets.extend([places[piece.start()]] * len(value))
    return Layer("".join(parts), [*offsets, places[last]])


_QUOTES = re.compile(r'""|[^"]+|"')


def field(text: str, start: int, end: int) -> Node:
    """A field of a CSV record as it is in the text: a string, maybe in quotes."""
    if text[start : start + 1] != '"':
        return Node('"', start, end, Layer(text[start:end], range(start, end + 1)))
    last = end - (end - start > 1 and text[end - 1] == '"')
    parts, places = list[str](), list[int]()
    for piece in _QUOTES.finditer(text, start + 1, last):
        parts.append('"' if piece[0] == '""' else piece[0])
        places.extend([piece.start()] if piece[0] == '""' else range(piece.start(), piece.end()))
    return Node('"', start, end, Layer("".join(parts), [*places, last]))


def of_yaml(node: Any, depth: int = 0, budget: list[int] | None = None) -> Node:
    """A node of a YAML document; PyYAML counts its places in characters. The parts of aliases that multiply have no
    places: a document has at most a part per character, and some more."""
    start, end = node.start_mark.index, node.end_mark.index
    budget = budget or [end - start + _MOST_ALIASED]
    budget[0] -= 1
    is_known = depth < _MOST_LEVELS and budget[0] > 0
    quotes = end - start - len(node.value) if node.id == "scalar" else -1  # more, if it has escapes or lines
    layer = Layer(node.value, range(start + quotes // 2, end + 1)) if quotes in (0, 2) else None
    tree = Node({"mapping": "{", "sequence": "["}.get(node.id, '"'), start, end, layer)
    for number, entry in enumerate(node.value if is_known and node.id != "scalar" else ()):
        key, value = entry if node.id == "mapping" else (None, entry)
        part = of_yaml(value, depth + 1, budget)
        if key is None:
            tree.add(part, number, part.start, part.start)
        else:
            tree.add(part, str(key.value), key.start_mark.index, key.end_mark.index)
    return tree


_MOST_ALIASED = 1000
_MOST_LEVELS = 64
"""Levels of a YAML document whose places are known: an alias may repeat them."""


def at(node: Node, offset: int) -> tuple[str, list[Node]]:
    """The path of the innermost part at an offset (its key counts), and the parts on the way."""
    path, way = "", [node]
    while True:
        inner = next((c for c in way[-1].children if min(c.key_start, c.start) <= offset <= c.end), None)
        if inner is None:
            return path, way
        path, way = join(path, inner.key), [*way, inner]
