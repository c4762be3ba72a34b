"""Which tests run which blocks of the package: recorded once, kept in `.mutation/`, asked for each mutant.

A block is the body of a function, a branch or a loop. Every block gets a call as its first statement, which costs a
tenth of tracing. Blocks are named by their function and their place in it, so a record stays useful after small edits.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.util
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import msgspec
import pytest
from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agent_eval_schema"
FOLDER = ROOT / ".mutation"


class Block(Struct, frozen=True):
    """Statements that run together, with their lines."""

    key: str
    body: list[ast.stmt]
    first: int
    last: int


def blocks(module: str, tree: ast.AST) -> Iterator[Block]:
    """All blocks of the functions of a module."""
    for function, name in _functions(tree, ""):
        for i, body in enumerate(_bodies(function)):
            if body:
                yield Block(f"{module}:{name}:{i}", body, body[0].lineno, body[-1].end_lineno or body[-1].lineno)


def _functions(node: ast.AST, name: str) -> Iterator[tuple[ast.AST, str]]:
    for inner in ast.iter_child_nodes(node):
        own = f"{name}.{inner.name}" if isinstance(inner, _NAMED) else name
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner, own
        yield from _functions(inner, own)


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(inner, _NAMED):
            yield from _bodies(inner)


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads modules of the package from other code than that of their files."""

    def code(self, module: str, path: Path) -> CodeType | None:
        """The code of a module; None: as its file has it."""
        raise NotImplementedError

    def find_spec(self, name: str, *_: Any) -> Any:
        path = ROOT / (name.replace(".", "/") + ".py")
        if name.partition(".")[0] != PACKAGE.name or not path.is_file():
            return None
        code = self.code(str(path.relative_to(PACKAGE)), path)
        spec = importlib.util.spec_from_loader(name, self, origin=str(path)) if code else None
        if spec:
            spec.loader_state = code
        return spec

    def get_data(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = module.__spec__.origin  # type: ignore[union-attr]
        exec(module.__spec__.loader_state, module.__dict__)  # type: ignore[union-attr]


class Recorder(Loader):
    """Loads the package with its blocks marked; a plugin of pytest that notes the blocks of each test that passes."""

    def __init__(self, part: int, parts: int) -> None:
        self._keys: list[str] = []
        self._hit, self._failed = set[int](), False
        self._part, self._parts = part, parts
        self._tests: dict[str, tuple[float, list[int]]] = {}
        builtins.__hit__ = self._hit.add  # type: ignore[attr-defined]

    def code(self, module: str, path: Path) -> CodeType:
        tree = ast.parse(path.read_text("utf-8"))
        for block in list(blocks(module, tree)):
            call = ast.parse(f"__hit__({len(self._keys)})").body[0]
            for node in ast.walk(call):
                ast.copy_location(node, block.body[0])
            self._keys.append(block.key)
            block.body.insert(int(_is_docstring(block.body[0])), call)
        return compile(tree, str(path), "exec")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = Coverage().seconds
        items[:] = [item for item in items if item.nodeid not in known]
        files = {path: i for i, path in enumerate(sorted({str(item.path) for item in items}))}
        items[:] = [item for item in items if files[str(item.path)] % self._parts == self._part]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not self._tests:  # what importing and collecting ran
            self._tests[""] = 0.0, sorted(self._hit)
        self._hit.clear()
        self._failed, start, begin = False, time.process_time(), time.monotonic()
        result = yield
        if not self._failed:
            # who waits for another process takes long, too, but on a busy machine everyone waits
            seconds = max(time.process_time() - start, (time.monotonic() - begin) / 4)
            self._tests[item.nodeid] = seconds, sorted(self._hit)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= not report.passed

    def pytest_sessionfinish(self) -> None:
        FOLDER.mkdir(exist_ok=True)
        name = f"{time.time_ns()}-{self._part}.json"
        (FOLDER / name).write_bytes(msgspec.json.encode(_Record(self._keys, self._tests)))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Record(Struct):
    keys: list[str]
    tests: dict[str, tuple[float, list[int]]]


class Coverage:
    """The tests of each block, and the seconds of each test."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._tests = defaultdict[str, list[str]](list)
        for file in sorted(FOLDER.glob("*.json")):
            record = msgspec.json.decode(file.read_bytes(), type=_Record)
            for test, (seconds, hit) in record.tests.items():
                self.seconds[test] = seconds
                for i in hit:
                    self._tests[record.keys[i]].append(test)

    def of(self, block: str) -> set[str]:
        """The tests that run a block, and "" if importing does."""
        return set(self._tests.get(block, ()))

    def of_module(self, module: str) -> set[str]:
        """The tests that run a block of a module."""
        return {test for key, tests in self._tests.items() if key.startswith(module + ":") for test in tests} - {""}
