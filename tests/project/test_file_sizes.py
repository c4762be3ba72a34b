"""A file of the package has at most 400 lines of code and comments: docstrings, which users read, are not counted."""

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

MOST_LINES = 400

PACKAGE = ROOT / "agent_eval_schema"


def lines_without_docstrings(text: str) -> int:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    firsts = [body[0] for body in bodies if body and isinstance(body[0], ast.Expr)]
    docstrings = [
        first for first in firsts if isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    ]
    return len(text.splitlines()) - sum((d.end_lineno or d.lineno) - d.lineno + 1 for d in docstrings)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""One."""\n\nx = 1\n', 2),
        ('class A:\n    """One.\n\n    Two.\n    """\n\n    y = """no\n    docstring"""\n', 4),
        ('def f():\n    """One."""\n    return """a\n    b"""\n', 3),
    ],
)
def test_docstrings_are_not_counted(text: str, lines: int) -> None:
    assert lines_without_docstrings(text) == lines


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_is_short_enough_to_be_read(path: Path) -> None:
    assert lines_without_docstrings(path.read_text(encoding="utf-8")) <= MOST_LINES
