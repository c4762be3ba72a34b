"""The rows of an open file, each as the node of its text: so that an issue of row 7 has a place.

.jsonl   a line each          .json   the elements of the array          .csv   the records below the header
.yaml    the entries          a document with rows in it: the entries of the list that has as many as there are rows
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from agent_eval_schema.io.csv import placed_records
from agent_eval_schema.io.json import json_parts
from agent_eval_schema.io.yaml import yaml_nodes
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.lsp.tree import Layer, Node, field, of_yaml, parse

BOM = "\ufeff"


class Rows(NamedTuple):
    """The nodes of rows, made when they are asked for. `header` has the names of the columns of a table, `documents`
    what the file is, if its rows are parts of that, `names` the columns that are read under names of ours, `lines` the
    lines of the rows of JSON Lines."""

    size: int
    node: Callable[[int], Node | None]
    header: Node | None = None
    documents: Sequence[Node] = ()
    names: Mapping[str, str] = {}
    lines: Sequence[int] = ()

    def path(self, path: str | None) -> str:
        """The path in the file of one under our names."""
        column = column_in(path or "")
        return self.names.get(column, column) + (path or "").removeprefix(column)


def column_in(path: str) -> str:
    """The column that a path begins with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def json_node(text: str, start: int, end: int) -> Node | None:
    """The node of a JSON text in a part of the text."""
    start += text.startswith(BOM, start)
    return parse(Layer(text[start:end], range(start, end + 1))).root


def rows_of(kind: str, path: str, text: Text, count: int | None = None) -> Rows:
    """The rows of a file that has a copy at `path`; `count` is the number of rows that its checker
    found (None: as many as there are)."""
    whole = text.whole
    if kind == "csv":
        return _of_csv(path, whole)
    if kind == "jsonl":
        starts, lines = text.starts, [i for i, line in enumerate(text.lines) if not is_blank(line)]
        rows = Rows(len(lines), lambda row: json_node(whole, starts[lines[row]], starts[lines[row] + 1]), lines=lines)
    else:
        nodes = _of_yaml(whole) if kind == "yaml" else _elements(path, whole)
        rows = Rows(len(nodes), lambda row: nodes[row]() if row < len(nodes) else None)
    if count is None or rows.size == count:
        return rows
    documents = [node for row in range(rows.size) if (node := rows.node(row)) is not None]
    parts = _listed(documents, count)
    return Rows(count, lambda row: parts[row] if row < len(parts) else None, documents=documents)


_Nodes = list[Callable[[], Node | None]]


def is_blank(line: str) -> bool:
    return line[:1] != "{" and not line.strip(" \t\r\n\v\f")


def _of_csv(path: str, whole: str) -> Rows:
    shift = int(whole.startswith(BOM))
    records = [(at + shift, places) for record, at, places in placed_records(path)]
    header = _record(whole, *records[0], shift, None) if records else None
    names = [c.layer.text.strip() if c.layer else "" for c in header.parts] if header else []
    return Rows(
        len(records) - 1,
        lambda row: _record(whole, *records[row + 1], shift, names) if row + 1 < len(records) else None,
        header,
    )


def _record(whole: str, at: int, places: list[tuple[int, int]], shift: int, names: list[str] | None) -> Node:
    node = Node("{", at, places[-1][1] + shift if places else at)
    for number, (start, end) in enumerate(places):
        part = field(whole, start + shift, end + shift)
        name = names[number] if names is not None and number < len(names) else part.layer.text if part.layer else ""
        node.add(part, name.strip(), part.start, part.start)
    return node


def _of_yaml(whole: str) -> _Nodes:
    try:
        return [partial(of_yaml, node) for node in yaml_nodes(whole.encode("utf-8", "surrogatepass"))]
    except ValueError:
        return []


def _elements(path: str, whole: str) -> _Nodes:
    nodes: _Nodes = []
    at = int(whole.startswith(BOM))
    for part in json_parts(path):
        at += len(part.before.decode("utf-8", "replace"))
        if part.text is not None:
            end = at + len(part.text.decode("utf-8", "replace"))
            nodes.append(partial(json_node, whole, at, end))
            at = end
    return nodes


def _listed(documents: list[Node], count: int) -> list[Node]:
    """The objects of the outermost lists, or objects by ID, if their number is that of the rows."""
    lists: dict[str, list[Node]] = {}
    for path, node in (entry for document in documents for entry in document.walk()):
        objects = [child for child in node.parts if child.kind == "{"]
        if objects and len(objects) == len(node.parts):
            lists.setdefault(path, []).extend(objects)
    fitting = [(path, objects) for path, objects in lists.items() if len(objects) == count]
    return min(fitting, key=lambda pair: len(pair[0]), default=("", []))[1]


def place_of(rows: Rows, row: int | None, path: str | None) -> tuple[int, int]:
    """The start and the end of what an issue is about. What is not there is shown on the name of what lacks it, and of
    a row on its first character; an issue of the data as a whole on the name of its column."""
    path = rows.path(path)
    if row is None:
        return _column(rows, path)
    node = rows.node(row)
    found, is_there = (node, not path) if node is None else node.find(path)
    if found is node and path and rows.documents:  # the path may begin at the document
        for document in rows.documents:
            if document.find(path)[0] is not document:
                found, is_there = document.find(path)
                break
    if found is None:
        return rows.documents[0].start if rows.documents else 0, 0
    if is_there and path:
        return found.start, found.end
    if found is node or isinstance(found.key, int):
        return found.start, found.start + 1
    return (found.key_start, found.key_end) if found.key_end > found.key_start else (found.start, found.end)


def place_of_byte(node: Node | None, path: str | None, byte: int, whole: str) -> tuple[int, int] | None:
    """The place of a byte of the text of a row, or of a cell that is a string."""
    if node is not None and path:
        node, is_there = node.find(path)
        if node.layer is None or not is_there:
            return None
        text, places = node.layer
    elif node is not None:
        line = max(whole.rfind("\n", 0, node.start), -1) + 1
        start = line + whole.startswith(BOM, line) if not whole[line : node.start].strip(BOM + " \t\r") else node.start
        text, places = whole[start : start + byte], range(start, start + byte + 1)
    else:
        return None
    at = len(text.encode("utf-8", "surrogatepass")[:byte].decode("utf-8", "ignore"))
    return places[at], places[min(at + 1, len(places) - 1)]


_LOOKED_AT = 100
"""Rows in which the name of a column is looked for."""


def _column(rows: Rows, path: str) -> tuple[int, int]:
    tables = [rows.header] if rows.header is not None else map(rows.node, range(min(rows.size, _LOOKED_AT)))
    for node in tables if path else ():
        if node is not None and (found := node.find(path))[0] is not node:
            part = found[0]
            is_named = part.key_end > part.key_start
            return (part.key_start, part.key_end) if is_named else (part.start, part.end)
    return 0, 0


def span(text: Text, start: int, end: int) -> tuple[Place, Place]:
    """A part of the text as an editor marks it: at least one character wide, if there is one."""
    at, end = max(start, 0), max(end, start + 1)
    if end == at + 1 and at > 0 and text.whole[at : at + 1] in ("", "\r", "\n") and text.whole[at - 1] not in "\r\n":
        at, end = at - 1, at  # what is missing at the end of a line is shown on the character before
    first = text.place(at)
    return first, max(first, text.place(end))
