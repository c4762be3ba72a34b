"""No layer has more lines of code than `[tool.lines]` allows: docstrings, imports, comments and blanks apart."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "agent_eval_schema"


def budgets() -> dict[str, int]:
    """`[tool.lines]` of pyproject.toml; Python 3.10 reads no TOML."""
    table = re.search(r"^\[tool\.lines\].*\n((?:\w+ = \d+.*\n)+)", (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    assert table is not None
    return {name: int(most) for name, most in re.findall(r"^(\w+) = (\d+)", table[1], re.M)}


BUDGETS = budgets()


def lines_of_code(text: str) -> int:
    tree = ast.parse(text)
    code = {i for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(tree):
        inner = [node] if isinstance(node, ast.Import | ast.ImportFrom) else _texts_of(node)
        for part in inner:
            code.difference_update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return len(code)


def _texts_of(node: ast.AST) -> list[ast.stmt]:
    """The texts that are statements: docstrings, also those of names."""
    body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else []
    return [s for s in body if isinstance(s, ast.Expr) and isinstance(getattr(s.value, "value", None), str)]


def layer_of(path: Path) -> str:
    inside = path.relative_to(PACKAGE).parts
    return inside[0] if len(inside) > 1 else "top"


@cache
def counts() -> Counter[str]:
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        found[layer_of(path)] += lines_of_code(path.read_text(encoding="utf-8"))
    return found


def test_every_layer_has_a_budget() -> None:
    assert set(BUDGETS) == {*counts(), "total"}


@pytest.mark.parametrize("layer", BUDGETS)
def test_a_layer_keeps_to_its_budget(layer: str) -> None:
    lines = counts().total() if layer == "total" else counts()[layer]
    place = f"`{layer} = {BUDGETS[layer]}` of [tool.lines] in pyproject.toml"
    assert lines <= BUDGETS[layer], f"remove what is superfluous; else raise {place}, with the reason in the commit"
    assert lines > BUDGETS[layer] * 0.9, f"lower {place}"


def test_lines_are_counted_as_the_budgets_mean_it() -> None:
    heading, function = (
        ['"""Doc."""', "import a", "", "# comment"],
        ["def f():", '    """Doc', '    more."""', '    return "x"'],
    )
    assert lines_of_code("\n".join([*heading, "X = 1  # why", '"""Doc of X."""', *function])) == 3
