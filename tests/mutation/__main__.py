"""Change the package in one place at a time, and see whether a test notices: `python -m tests.mutation --count 300`.

Prints the mutants that survive and the share that was killed; exit code 1 below `--least`. A survivor that is the same
program is listed, with the reason, in tests/mutation/equivalent.txt.

`--record EXPRESSION` runs the tests with these marks once, without those of earlier records, and notes which blocks
each of them runs; to begin anew, remove `.mutation/`. Then all tests are collected once, and each mutant is a fork of
that process: of a function only its code is exchanged, and the tests that run the changed block are run, those of the
nearest file first and of these the fastest, until one fails. For a change outside of functions, and for a block that
importing runs, all modules are loaded again.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from hypothesis import settings
from msgspec import Struct

from tests.conftest import WITHOUT_NEEDS
from tests.mutation.coverage import FOLDER, PACKAGE, ROOT, Block, Coverage, Loader, Recorder, blocks
from tests.mutation.mutants import Mutant, equivalent, mutants, name_of

LIMIT = 60
"""Seconds of processor time. A mutant that needs more does not end: it is killed."""


def main() -> int:
    arguments = _arguments()
    os.chdir(ROOT)
    settings.register_profile("mutation", deadline=None, database=None, derandomize=True)
    if arguments.record:
        _record(arguments.record, arguments.tests, arguments.jobs)
    if not FOLDER.is_dir():
        sys.exit("no test is recorded yet: python -m tests.mutation --record")
    run, some = Run(Coverage(), arguments), _sample(arguments)
    inner = [c for c in some if c.mutant.function]
    if inner:
        _pytest(sorted({name.partition("::")[0] for name in run.coverage.seconds if name}), _Loop(run, inner))
    run.again([*(c for c in some if not c.mutant.function), *run.postponed])
    return run.summary()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="change the package, run its tests")
    parser.add_argument("--record", metavar="MARKS", nargs="?", const=WITHOUT_NEEDS, help="record the tests first")
    parser.add_argument("--tests", nargs="+", metavar="PATH", default=["tests"], help="record only these files")
    parser.add_argument("--count", type=int, default=300, help="how many mutants of all")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--seconds", type=float, default=12, help="how long the tests of a mutant took when recorded")
    parser.add_argument("--least", type=float, default=95, help="the percentage that has to be killed")
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="modules whose path contains one of these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--of", metavar="FILE", help="only what survived in an earlier run, whose output is in FILE")
    parser.add_argument("--verbose", action="store_true", help="print every mutant")
    return parser.parse_args()


def _record(marks: str, tests: Sequence[str], jobs: int) -> None:
    def record(part: int) -> int:
        recorder = Recorder(part, jobs)
        _import_again(recorder)
        return _pytest(tests, recorder, marks=marks)

    start, pids = time.monotonic(), [_forked(lambda part=part: record(part), None) for part in range(jobs)]  # type: ignore[misc]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    if not {*codes} <= {0, 1}:  # 1: some tests fail
        sys.exit(f"the tests of {marks!r} do not run: pytest ends with {codes}")
    print(f"recorded in {time.monotonic() - start:.0f} s", flush=True)


class Change(Struct, frozen=True):
    """A mutant of a module: its name and the code of the module with it."""

    module: str
    mutant: Mutant
    name: str
    code: CodeType
    block: Block | None
    reads: frozenset[str]
    """Names that a change outside of functions defines."""


def _sample(arguments: argparse.Namespace) -> list[Change]:
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        module = str(file.relative_to(PACKAGE))
        if file.stem[:2] != "__" and (not arguments.only or any(name in module for name in arguments.only)):
            tree = ast.parse(file.read_text("utf-8"))
            found += [(module, tree, mutant) for mutant in mutants(tree)]
    if arguments.of:
        lines = Path(arguments.of).read_text().splitlines()
        names = {line.split("  ", 2)[2] for line in lines if line.startswith(("survived", "no test"))}
        found = [entry for entry in found if name_of(entry[0], entry[2]) in names]
    some = sorted(random.Random(arguments.seed).sample(range(len(found)), min(arguments.count, len(found))))
    same = equivalent()
    left = [entry for i in some if name_of(*(entry := found[i])[::2]) not in same]
    print(f"{len(left)} of {len(found)} mutants, {len(some) - len(left)} equivalent ones left out", flush=True)
    random.Random(arguments.seed).shuffle(left)  # what is judged first is a sample, too
    return [_change(*entry) for entry in left]


def _change(module: str, tree: ast.Module, mutant: Mutant) -> Change:
    around = [b for b in blocks(module, tree) if b.first <= mutant.line <= b.last] if mutant.function else []
    block = min(around, key=lambda b: b.last - b.first, default=None)
    reads = frozenset(n for s in tree.body if s.lineno <= mutant.line <= (s.end_lineno or 0) for n in _defined(s))
    mutant.make()
    try:
        code = compile(tree, str(PACKAGE / module), "exec")
    finally:
        mutant.undo()
    return Change(module, mutant, name_of(module, mutant), code, block, reads)


def _defined(statement: ast.stmt) -> Iterable[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    return [n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


class Run:
    """The verdicts on mutants, of which some run at once."""

    def __init__(self, coverage: Coverage, arguments: argparse.Namespace) -> None:
        self.coverage, self._arguments = coverage, arguments
        self._start = time.monotonic()
        self._running: dict[int, tuple[Change, float]] = {}
        self._verdicts = Counter[str]()
        self.postponed: list[Change] = []
        self.killers: dict[str, list[Change]] = {}

    def try_all(self, changes: Sequence[Change], work: Callable[[Change], int], *, last: bool) -> None:
        """Fork for each change; `last`: who survives is not tried once more with all modules loaded again."""
        limit = LIMIT * 3 if last else LIMIT  # to load and collect is no test
        for change in changes:
            while len(self._running) >= self._arguments.jobs:
                self._finish(last)
            self._running[_forked(lambda: work(change), limit)] = change, time.monotonic()  # noqa: B023
        while self._running:
            self._finish(last)

    def _finish(self, last: bool) -> None:
        pid, status = os.wait()
        change, start = self._running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == _AGAIN or (code == 0 and not last and change.block and "" in self.coverage.of(change.block.key)):
            self.postponed.append(change)
            return
        if (killer := FOLDER / f"{pid}.killer").exists():
            self.killers.setdefault(killer.read_text(), []).append(change)
            killer.unlink()
        verdict = {0: "survived", _NOT_RUN: "no test", -signal.SIGALRM: "no verdict"}.get(code, "killed")
        self._verdicts[verdict] += 1
        if self._arguments.verbose or verdict != "killed":
            seconds = f", {time.monotonic() - start:.1f} s, {code}" if self._arguments.verbose else ""
            print(f"{verdict}  line {change.mutant.line}{seconds}  {change.name}", flush=True)

    def chosen(self, change: Change) -> list[str]:
        """The tests of a change, the nearest and fastest first, as many as take `--seconds`."""
        if change.block:
            tests = self.coverage.of(change.block.key) - {""}
        else:
            readers = _readers(change.reads)
            tests = {test for key in readers for test in self.coverage.of(key)} - {""}
            tests |= self.coverage.of_module(change.module)
        folder, _, name = change.module[:-3].rpartition("/")
        near = (f"tests/{folder}/test_{name}.py::", f"tests/{folder}/")
        seconds = self.coverage.seconds
        ordered = sorted(
            tests,
            key=lambda test: (
                (seconds[test] + 0.02) * (1 if test.startswith(near[0]) else 4 if test.startswith(near[1]) else 10)
            ),
        )
        sums, kept = 0.0, []
        for test in ordered:
            sums += seconds[test]
            if sums > self._arguments.seconds:
                break
            kept.append(test)
        return kept

    def discount(self, test: str) -> None:
        """What a test killed that fails without a mutant has no verdict."""
        print(f"fails without a mutant: {test}", *(f"  {c.name}" for c in self.killers[test]), sep="\n", flush=True)
        self._verdicts["killed"] -= len(self.killers[test])
        self._verdicts["no verdict"] += len(self.killers[test])

    def again(self, changes: Sequence[Change]) -> None:
        """Try changes with all modules loaded again."""

        def work(change: Change) -> int:
            tests = self.chosen(change)
            if not tests:
                return _NOT_RUN
            _import_again(_Mutated(change))
            # one file after the other: to collect them takes longer than most mutants live
            files = dict.fromkeys(test.partition("::")[0] for test in tests)
            return next((1 for file in files if _pytest([file], _Some(tests), more=["-x"]) not in _PASSED), 0)

        self.try_all(changes, work, last=True)

    def summary(self) -> int:
        verdicts = self._verdicts
        judged = verdicts.total() - verdicts["no verdict"]
        share = verdicts["killed"] / max(judged, 1)
        seconds = time.monotonic() - self._start
        print(", ".join(f"{count} {name}" for name, count in sorted(verdicts.items())))
        seed = f"seed {self._arguments.seed}, {seconds:.0f} s"
        print(f"{verdicts['killed']} of {judged} mutants killed ({share:.1%}), {seed}")
        return 0 if share >= self._arguments.least / 100 else 1


_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
_AGAIN, _NOT_RUN = 101, 102
"""Exit codes of a fork: the change needs all modules loaded again; no test runs it."""


def _readers(names: frozenset[str]) -> set[str]:
    """The blocks of the package in which one of these names is read."""
    found, words = set(), re.compile(rf"\b({'|'.join(map(re.escape, names))})\b") if names else None
    for file in PACKAGE.rglob("*.py") if words else ():
        text = file.read_text("utf-8")
        lines = [n for n, line in enumerate(text.split("\n"), 1) if words.search(line)]  # type: ignore[union-attr]
        if lines:
            module = str(file.relative_to(PACKAGE))
            found |= {b.key for b in blocks(module, ast.parse(text)) if any(b.first <= n <= b.last for n in lines)}
    return found


class _Loop:
    """A plugin of pytest: instead of running the tests that it has collected, it forks for each mutant."""

    def __init__(self, run: Run, changes: Sequence[Change]) -> None:
        self._run, self._changes = run, changes

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for file in sorted(PACKAGE.rglob("*.py")):
            if file.stem != "__main__":
                importlib.import_module(
                    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                )
        functions = _functions_of_package()
        factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        base = factory.getbasetemp()
        session.config.pluginmanager.getplugin("terminalreporter")._tw._file = open(os.devnull, "w")  # noqa: SIM115

        def run_until_failure(tests: Sequence[pytest.Item]) -> str | None:
            factory._basetemp = base / str(os.getpid())
            factory._basetemp.mkdir()
            try:
                for item, following in zip(tests, [*tests[1:], None], strict=True):
                    session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if session.testsfailed:
                        return item.nodeid
                return None
            finally:
                shutil.rmtree(factory._basetemp, ignore_errors=True)

        def work(change: Change) -> int:
            tests = [items[name] for name in self._run.chosen(change) if name in items]
            if not tests:
                return _AGAIN if change.block and "" in self._run.coverage.of(change.block.key) else _NOT_RUN
            if not _exchanged(functions, change):
                return _AGAIN
            killer = run_until_failure(tests)
            if killer:
                (FOLDER / f"{os.getpid()}.killer").write_text(killer)
            return int(killer is not None)

        self._run.try_all(self._changes, work, last=False)

        def fails(*tests: str) -> bool:
            pid = _forked(lambda: int(run_until_failure([items[test] for test in tests]) is not None), None)
            return os.waitpid(pid, 0)[1] != 0

        if fails(*sorted(self._run.killers, key=list(items).index)):  # alone each takes longer, and one may be to blame
            for test in filter(fails, self._run.killers):
                self._run.discount(test)
        return True


class _Some:
    """A plugin of pytest that keeps some tests, in their order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._places = {test: i for i, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self._places), key=lambda i: self._places[i.nodeid])


def _forked(work: Callable[[], int], limit: float | None) -> int:
    """The number of a process that does the work and ends with its status, or by a signal after its limit."""
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        if limit:
            signal.setitimer(signal.ITIMER_PROF, limit)
            signal.setitimer(signal.ITIMER_REAL, 5 * limit)
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    return pid


def _pytest(tests: Sequence[str], *plugins: object, marks: str = "", more: Sequence[str] = ()) -> int:
    options = [*more, "-n", "0", "-q", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-m", marks]
    options += ["--hypothesis-profile=mutation", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with tempfile.TemporaryDirectory() as folder:  # other runs of pytest on this machine remove its usual ones
        return int(pytest.main([*options, f"--basetemp={folder}/base", *tests], plugins))


def _functions_of_package() -> dict[tuple[str, str, int], list[FunctionType]]:
    gc.unfreeze()
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for f in gc.get_objects():
        if type(f) is FunctionType and f.__code__.co_filename.startswith(str(PACKAGE)):
            key = f.__code__.co_filename, f.__code__.co_name, f.__code__.co_firstlineno
            found.setdefault(key, []).append(f)
    gc.freeze()
    return found


def _exchanged(functions: dict[tuple[str, str, int], list[FunctionType]], change: Change) -> bool:
    """Give a function the code that it has in the mutant; False if it is not one alone."""
    assert change.mutant.function
    new = [c for c in _codes(change.code) if (c.co_name, c.co_firstlineno) == change.mutant.function]
    old = functions.get((change.code.co_filename, *change.mutant.function), [])
    if len(new) != 1 or not old or any(f.__code__.co_freevars != new[0].co_freevars for f in old):
        return False
    for f in old:
        f.__code__ = new[0]
    return True


def _codes(code: CodeType) -> list[CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [*inner, *(found for c in inner for found in _codes(c))]


class _Mutated(Loader):
    """Loads one module from the code of a mutant."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def code(self, module: str, _: Path) -> CodeType | None:
        return self._change.code if module == self._change.module else None


def _import_again(loader: Loader) -> None:
    """Forget all modules of ours, and load some of them from other code."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("agent_eval_schema", "tests", "conftest")]:
        del sys.modules[name]
    sys.meta_path.insert(0, loader)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what forks share is not taken down: libraries print what they leak
