"""The mutants of a module: each changes one place of its syntax tree.

Not changed is what no test can see or should pin: annotations, docstrings, decorators, the words of messages, the names
that a module offers, whether the garbage collector looks at a Struct, and whether `zip` compares lengths, which are
equal wherever it does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.LShift: ast.RShift,
}  # fmt: skip
_KEY = re.compile(r"[A-Za-z_][\w.]{2,40}")


class Mutant(Struct, frozen=True):
    """A change: where it is, what it does, and the functions that make and undo it in the tree of the module."""

    line: int
    function: tuple[str, int] | None
    text: str
    make: Callable[[], None]
    undo: Callable[[], None]


def name_of(module: str, mutant: Mutant) -> str:
    """The name of a mutant of a module, whose path is relative to the package."""
    return f"{module}:{mutant.function[0] if mutant.function else ''}: {mutant.text}"


def equivalent() -> frozenset[str]:
    """The names of the mutants that are the same program."""
    lines = Path(__file__).with_name("equivalent.txt").read_text("utf-8").splitlines()
    return frozenset(line.partition("  ")[0] for line in lines if line and line[0] != "#")


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its lines."""
    yield from _of(tree, None)


def _of(node: ast.AST, function: tuple[str, int] | None) -> Iterator[Mutant]:
    outer = function  # defaults are not part of the function's code
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        function = function or (node.name, first)
    yield from _changes(node, function)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params") or _is_type(node, name):
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST) and not _is_text_of_reader(inner):
                yield from _of(inner, outer if name == "args" else function)


def _is_type(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.If) and name == "body" and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_text_of_reader(node: ast.AST) -> bool:
    """A docstring or a message, or what has no effect; a string alone on its line explains the name above it."""
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__slots__"):
        return True
    if isinstance(node, ast.keyword) and node.arg in ("gc", "strict"):
        return True
    return isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _changes(node: ast.AST, function: tuple[str, int] | None) -> Iterator[Mutant]:
    def change(owner: Any, name: str, new: Any, text: str) -> Mutant:
        old = getattr(owner, name)
        line = getattr(node, "lineno", 0)
        return Mutant(line, function, text, lambda: setattr(owner, name, new), lambda: setattr(owner, name, old))

    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if type(op) in _COMPARED:
                ops = [_COMPARED[type(op)]() if j == i else o for j, o in enumerate(node.ops)]
                yield change(node, "ops", ops, f"{ast.unparse(node)}: {type(op).__name__} → {type(ops[i]).__name__}")
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield change(node, "op", other, f"{ast.unparse(node)}: {type(node.op).__name__} → {type(other).__name__}")
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        yield change(node, "op", _COMPUTED[type(node.op)](), f"{ast.unparse(node)}: {type(node.op).__name__}")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        twice = ast.UnaryOp(ast.Not(), node.operand, lineno=node.lineno, col_offset=0)
        yield change(node, "operand", twice, f"{ast.unparse(node)}: not removed")
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and ast.unparse(node.test) != "TYPE_CHECKING":
        for value in (False,) if isinstance(node, ast.While) else (True, False):
            constant = ast.Constant(value, lineno=node.lineno, col_offset=0)
            yield change(node, "test", constant, f"if {ast.unparse(node.test)}: {value}")
    elif isinstance(node, ast.Constant):
        yield from _constants(node, change)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        none = ast.Constant(None, lineno=node.lineno, col_offset=0)
        yield change(node, "value", none, f"{ast.unparse(node)}: None")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        none = ast.Constant(None, lineno=node.lineno, col_offset=0)
        yield change(node, "value", none, f"{ast.unparse(node)}: removed")


def _constants(node: ast.Constant, change: Callable[..., Mutant]) -> Iterator[Mutant]:
    value = node.value
    if isinstance(value, bool):
        yield change(node, "value", not value, f"{value}: {not value}")
    elif isinstance(value, int | float):
        yield change(node, "value", value + 1, f"{value}: {value + 1}")
    elif isinstance(value, str) and _KEY.fullmatch(value):
        yield change(node, "value", f"{value}_", f"{value!r}: misspelled")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
