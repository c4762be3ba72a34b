"""Markdown as a tree of elements, from which a page makes its nodes: no HTML text, no address that is followed.

"a **b**" ──markdown-it──▶ ["p", ["a ", ["strong", ["b"]]]]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

ELEMENTS = frozenset(
    (
        *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s"),
        *("table", "thead", "tbody", "tr", "th", "td", "hr", "br"),
    )
)
"""The elements that a page makes; of others it makes what is in them."""

MOST_CHARACTERS = 100_000
"""A longer text stays as it is."""

_MARK = re.compile(r"[*_`~|\\&<\[]|^\s*(?:[#>+\-=]|\d+[.)])|^(?: {4}|\t)|  $", re.MULTILINE)
"""What can begin Markdown: a text without it is not parsed."""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported late: only a page with marks needs it

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])


def tree_of(text: Any) -> list[Any] | None:
    """The elements of a text with Markdown; None if it has none, so that it is shown as it is."""
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS or not _MARK.search(text):
        return None
    tokens = _parser().parse(text)
    from markdown_it.tree import SyntaxTreeNode

    parts = _joined_parts(SyntaxTreeNode(tokens))
    is_plain = all(part[0] == "p" and all(isinstance(p, str) or p[0] == "br" for p in part[1]) for part in parts)
    return None if is_plain else parts


def trees_of(texts: Iterable[Any], most: float = float("inf")) -> list[list[Any]]:
    """Each text with Markdown and its elements, up to a total number of characters."""
    trees: list[list[Any]] = []
    for text in dict.fromkeys(texts):
        if most > 0 and (tree := tree_of(text)) is not None:
            trees.append([text, tree])
            most -= len(text)
    return trees


def _joined_parts(node: SyntaxTreeNode) -> list[Any]:
    parts: list[Any] = []
    for part in (part for child in node.children for part in _part(child)):
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part:
            parts.append(part)
    return parts


def _part(node: SyntaxTreeNode) -> list[Any]:
    if node.type in ("text", "html_inline", "html_block"):
        return [node.content]
    if node.type == "softbreak":
        return ["\n"]
    if node.type in ("fence", "code_block"):
        return [["pre", [node.content]]]
    if node.type == "code_inline":
        return [["code", [node.content]]]
    if node.type in ("link", "image"):  # where it leads is text beside it
        address = str(node.attrs.get("href") or node.attrs.get("src") or "")
        words = [node.content] if node.type == "image" else _joined_parts(node)
        return [*words, *([] if words == [address] else [f" ({address})"])]
    inside = _joined_parts(node)
    return [[node.tag, inside]] if node.tag in ELEMENTS else inside
