"""The glossary in .vale/styles, as Vale applies it: which terms of a text have another name."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator
from functools import cache

import yaml

from tests.conftest import ROOT

STYLES = ROOT / ".vale/styles/AgentEvalSchema"
NAMES = "Names.yml"

_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<a id=[^>]*>|https?://\S+", re.DOTALL)


def wrong_terms(text: str, *, names: bool = True, allowed: Collection[str] = ()) -> list[str]:
    """What Vale reports of a text: one message per term that the glossary replaces. Code and addresses are skipped.

    Without `names`, product names may be written as packages and options are (`mlflow`). `allowed` are terms, in lower
    case, that are not reported.
    """
    prose = _CODE.sub("`", text)
    return [
        message % (term, found[0])
        for style, pattern, term, message in _substitutions()
        if names or style != NAMES
        for found in pattern.finditer(prose)
        if found[0].lower() not in allowed
    ]


def messages(source: str) -> list[tuple[int, str]]:
    """The strings of a module that may be a message, or a part of one: those that contain a space, but no docstring
    and no head of a rule (`AE206 message-role`)."""
    tree = ast.parse(source)
    documentation = {id(node) for _, node in _docstrings(tree)}
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) or _is_string(n)]
    parts = {id(part) for n in strings if isinstance(n, ast.JoinedStr) for part in n.values}
    return [
        (node.lineno, text)
        for node in strings
        if id(node) not in documentation | parts
        and " " in (text := text_of(node))
        and not re.fullmatch(r"AE\d{3} [a-z0-9-]+", text)
    ]


def comments(source: str) -> list[tuple[int, str]]:
    """The docstrings of a module, its classes, functions and constants, and its comments."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    return sorted([*found, *((line, text_of(node)) for line, node in _docstrings(ast.parse(source)))])


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and _is_string(node.value):
            yield node.lineno, node.value


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def text_of(node: ast.AST) -> str:
    """The text of a string; the values of an f-string are code."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "…"


@cache
def _substitutions() -> list[tuple[str, re.Pattern[str], str, str]]:
    found = []
    for path in sorted(STYLES.glob("*.yml")):
        style = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert style["extends"] == "substitution", f"{path.name}: only substitutions are applied here"
        flags = re.IGNORECASE if style["ignorecase"] else 0
        found += [
            (path.name, re.compile(rf"\b(?:{pattern})(?!\w)", flags), term, style["message"])
            for pattern, term in style["swap"].items()
        ]
    return found


def is_hint(text: str) -> bool:
    """Whether a hint has the form of all hints: sentences, in sentence case."""
    return re.fullmatch(r"[A-Z`].*[.?]", text, re.DOTALL) is not None
