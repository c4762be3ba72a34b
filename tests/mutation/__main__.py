"""Change the kernel in one place at a time, and see whether its tests notice: `python -m tests.mutation --count 300`.

Prints the mutants that survive and the share that was killed; exit code 1 below `--least`. With `--whole` they are of
all modules, and each is shown to the tests nearest to it for a minute and a half of processor time. A survivor that is
the same program is listed, with the reason, in tests/mutation/equivalent.txt. Each mutant is a fork of one process that
has all modules loaded: of a function only its code is exchanged, and the tests that call it are run; for a change
elsewhere, and of a function that no test calls, all modules are loaded again, and all of their tests are run.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import importlib.abc
import importlib.util
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tests.conftest import WITHOUT_NEEDS
from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "agent_eval_schema"

RULES, REQUESTS, BUILDER = (
    "tests/rules/test_rules.py",
    "tests/decoding/test_requests.py",
    "tests/validation/test_report_builder.py",
)
TRACES = "tests/validation/test_fill_from_traces.py"
MODULES: dict[str, tuple[str, ...]] = {
    "decoding/requests.py": (REQUESTS, "tests/decoding/test_chat.py", RULES, BUILDER),
    "decoding/columns.py": (
        "tests/decoding/test_values_of_columns.py",
        "tests/decoding/test_columns.py",
        "tests/decoding/test_diagnose.py",
        RULES,
        "tests/validation/test_numbers.py",
    ),
    "decoding/texts.py": ("tests/decoding/test_texts.py", "tests/decoding/test_columns.py", RULES, REQUESTS),
    "validation/cross_field.py": (
        "tests/validation/test_cross_field.py",
        "tests/decoding/test_columns.py",
        "tests/formats/test_adk.py",
        RULES,
        TRACES,
        BUILDER,
    ),
    "validation/doc_uris.py": ("tests/validation/test_doc_uris.py", BUILDER, TRACES, RULES),
    "validation/report_builder.py": (
        BUILDER,
        "tests/validation/test_report.py",
        "tests/validation/test_repeated_ids.py",
        "tests/decoding/test_columns.py",
        RULES,
    ),
    "traces/derive.py": ("tests/traces/test_derive.py", "tests/traces/test_decode.py", TRACES),
    "traces/documents.py": ("tests/traces/test_documents.py", "tests/traces/test_derive.py", TRACES),
    "metrics/support.py": ("tests/metrics/test_support.py", "tests/validation/test_report.py"),
    "metrics/trajectory.py": ("tests/metrics/test_trajectory.py", "tests/metrics/test_trajectory_oracles.py"),
    "conversion/losses.py": ("tests/conversion/test_losses.py", "tests/conversion/test_convert.py"),
    "text/jsontext.py": ("tests/cells/test_repeats.py", RULES),
    "fix/values.py": ("tests/fix", RULES),
    "inference_tables/make_plan.py": (
        "tests/inference_tables/decide",
        "tests/inference_tables/test_build.py",
        "tests/inference_tables/test_make_plan.py",
    ),
    "inference_tables/finish/redact.py": ("tests/inference_tables/finish",),
    "formats/ces/update.py": ("tests/formats/ces/test_update.py",),
    "formats/ces/golden_reader.py": ("tests/formats/ces", "tests/conversion/test_ces.py", RULES),
}
"""The modules of the kernel, each with the tests that should notice a change."""


def _modules() -> list[str]:
    return sorted(str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if file.stem[:2] != "__")


def tests_of(module: str) -> tuple[str, ...]:
    """The tests that should notice a change, the nearest first: those that are named above, else the file of tests that
    is called like the module, those that import it, and those of its folder."""
    folder, _, name = module.removesuffix(".py").rpartition("/")
    named = sorted(ROOT.glob(f"tests/**/test_{name}.py"), key=lambda file: folder not in str(file))
    imported = re.compile(rf"^ *from agent_eval_schema\.{module[:-3].replace('/', '.')} import", re.MULTILINE)
    importing = [file for file in sorted(ROOT.glob("tests/**/test_*.py")) if imported.search(file.read_text("utf-8"))]
    folders = [f"tests/{folder}"] if (ROOT / "tests" / folder).is_dir() and folder else ["tests/project", "tests/cli"]
    files = dict.fromkeys(str(file.relative_to(ROOT)) for file in [*named, *importing])
    return MODULES.get(module) or (*files, *folders)


EQUIVALENT = Path(__file__).with_name("equivalent.txt")

_CHOSEN = ["-m", "not (spark or browser or mlflow or mcp or process or docs)"]
"""The tests that a mutant is shown: those that a fork can run, or with --quick those of README's command."""


def main() -> int:
    arguments = _arguments()
    os.chdir(ROOT)
    if arguments.quick:
        _CHOSEN[:] = ["-m", WITHOUT_NEEDS]
    modules = _modules() if arguments.whole else MODULES
    chosen = [m for m in modules if not arguments.only or any(name in m for name in arguments.only)]
    end = time.monotonic() + arguments.minutes * 60
    if arguments.whole:
        importlib.import_module("pandas"), importlib.import_module("pyarrow.parquet")  # which every fork shares
    else:
        _load(chosen)
    same = {line.partition("  ")[0] for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"}
    start, tried, killed, skipped = time.monotonic(), Counter[str](), Counter[str](), 0
    running: dict[int, _Try] = {}

    def finish() -> None:
        pid, status = os.wait()
        done = running.pop(pid)
        if arguments.whole and os.WIFSIGNALED(status):
            print(f"no verdict  line {done.line}  {done.name}", flush=True)
            return
        tried[done.module] += 1
        killed[done.module] += status != 0
        if status == 0:
            print(f"survived  line {done.line}  {done.name}", flush=True)
        elif arguments.verbose:
            print(f"killed  line {done.line}  {done.name}", flush=True)

    for module, tree, mutant in _sample(chosen, arguments.count, arguments.seed, arguments.of):
        name = _name(module, mutant)
        if name in same:
            skipped += 1
            continue
        if time.monotonic() > end:
            print("the time is over")
            break
        while len(running) >= arguments.jobs:
            finish()
        running[_start(module, tree, mutant)] = _Try(module, mutant.line, name)
    while running:
        finish()
    for module in tried:
        print(f"{module:40} {killed[module]:5} of {tried[module]:5}  {killed[module] / max(tried[module], 1):.1%}")
    share = killed.total() / max(tried.total(), 1)
    print(
        f"{killed.total()} of {tried.total()} mutants killed ({share:.1%}), {skipped} equivalent ones left out, ",
        end="",
    )
    print(f"seed {arguments.seed}, {time.monotonic() - start:.0f} s")
    return 0 if share >= arguments.least / 100 else 1


class _Try(Struct, frozen=True):
    """A mutant whose tests run."""

    module: str
    line: int
    name: str


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="change the kernel, run its tests")
    parser.add_argument("--count", type=int, default=300, help="how many mutants of all")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--minutes", type=float, default=600, help="stop after so many minutes")
    parser.add_argument("--least", type=float, default=92, help="the percentage that has to be killed")
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="modules whose path contains one of these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--of", metavar="FILE", help="only the survivors that an earlier run has printed into FILE")
    parser.add_argument("--quick", action="store_true", help="only the tests that README's command runs")
    parser.add_argument("--whole", action="store_true", help="of all modules, each with its nearest tests")
    parser.add_argument("--verbose", action="store_true", help="print every mutant")
    return parser.parse_args()


def _load(chosen: Sequence[str]) -> None:
    """All modules of the package and of the tests, which every fork shares; and what each test calls. The tests have
    to pass, those of the first module also where all modules are loaded again."""
    _run([*{test for module in chosen for test in MODULES[module]}, "--collect-only"])
    gc.collect()
    gc.freeze()
    for module in chosen:
        start = time.monotonic()
        path = str(ROOT / "agent_eval_schema" / module)
        code = compile(Path(path).read_text(), path, "exec")
        with tempfile.NamedTemporaryFile() as file:
            calls = _Calls(path, file.name)
            _require_pass(module, _forked(lambda: _run(MODULES[module], calls)))  # noqa: B023
            _CALLED[module] = msgspec.json.decode(file.read(), type=list[_Test])
            if module == chosen[0]:
                _require_pass(module, _forked(lambda: _again(module, code)))  # noqa: B023
        print(f"{module}: {len(_CALLED[module])} tests, {time.monotonic() - start:.0f} s", flush=True)


def _require_pass(module: str, pid: int) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        sys.exit(f"the tests of {module} do not pass, or take too long: {status}")


def _name(module: str, mutant: Mutant) -> str:
    return f"{module}:{mutant.function[0] if mutant.function else ''}: {mutant.text}"


def _sample(chosen: Sequence[str], count: int, seed: int, again: str | None) -> list[tuple[str, ast.Module, Mutant]]:
    found = []
    for module in chosen:
        tree = ast.parse((ROOT / "agent_eval_schema" / module).read_text())
        found += [(module, tree, mutant) for mutant in mutants(tree)]
    if again:
        names = {line.split("  ", 2)[2] for line in Path(again).read_text().splitlines() if line[:8] == "survived"}
        found = [entry for entry in found if _name(entry[0], entry[2]) in names]
    some = random.Random(seed).sample(range(len(found)), min(count, len(found)))
    print(f"{len(some)} of {len(found)} mutants", flush=True)
    return [found[i] for i in sorted(some)]


# ---------------------------------------------------------------------------------------------------------------------
# one mutant
SECONDS = 90
"""Of processor time."""


class _Test(Struct, frozen=True):
    """A test, how long it takes, and the functions of the module that it calls, with their first lines."""

    name: str
    seconds: float
    called: list[tuple[str, int]]


_CALLED: dict[str, list[_Test]] = {}
"""The tests of each module."""


_PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
"""No test collected: all of a file have needs."""


class _Calls:
    """A plugin of pytest that writes which functions of a file each test calls."""

    def __init__(self, path: str, out: str) -> None:
        self._path, self._out = path, out
        self._called = set[tuple[str, int]]()
        self._tests: list[_Test] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._called, start = set(), time.monotonic()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        yield
        sys.settrace(None)
        self._tests.append(_Test(item.nodeid, time.monotonic() - start, sorted(self._called)))

    def _trace(self, frame: FrameType, *_: Any) -> None:
        if frame.f_code.co_filename == self._path:
            self._called.add((frame.f_code.co_name, frame.f_code.co_firstlineno))

    def pytest_sessionfinish(self) -> None:
        Path(self._out).write_bytes(msgspec.json.encode(self._tests))


class _Some:
    """A plugin of pytest that keeps some tests, the fastest first."""

    def __init__(self, tests: Sequence[_Test]) -> None:
        self._seconds = {test.name: test.seconds for test in tests}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._seconds), key=lambda item: self._seconds[item.nodeid]
        )


def _start(module: str, tree: ast.Module, mutant: Mutant) -> int:
    """Run the tests of a mutant in a fork; returns the number of the process."""
    mutant.make()
    try:
        code = compile(tree, str(ROOT / "agent_eval_schema" / module), "exec")
    finally:
        mutant.undo()
    function = mutant.function

    def run() -> int:
        if module not in _CALLED:  # what its tests call is not known
            _import_again(module, code)
            # one after the other: to collect a folder takes longer than most mutants live
            return next((status for tests in tests_of(module) if (status := _run([tests])) not in _PASSED), 0)
        tests = [test for test in _CALLED[module] if function in test.called]
        if not tests or not _exchanged(code.co_filename, code, function):  # it may be called where modules are loaded
            return _again(module, code)
        return _run(sorted({test.name.partition("::")[0] for test in tests}), _Some(tests))

    return _forked(run)


def _again(module: str, code: CodeType) -> int:
    """Run all tests with all modules loaded again, one of them from this code."""
    _import_again(module, code)
    return _run(MODULES[module], _Some(_CALLED[module]))


def _forked(work: Callable[[], int]) -> int:
    """The number of a process that does the work and ends with its status, or by a signal after SECONDS."""
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    return pid


def _run(tests: Sequence[str], *plugins: object) -> int:
    options = ["-n", "0", "-x", "-q", *_CHOSEN, "-p", "no:cacheprovider", "--tb=no"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is loaded already
    return int(pytest.main([*options, *tests], plugins))


def _exchanged(path: str, code: CodeType, function: tuple[str, int]) -> bool:
    """Give a function the code that it has in the mutant; False if it is not one alone."""
    new = [c for c in _codes(code) if (c.co_name, c.co_firstlineno) == function]
    gc.unfreeze()
    old = [
        f
        for f in gc.get_objects()
        if isinstance(f, FunctionType)
        and f.__code__.co_filename == path
        and (f.__code__.co_name, f.__code__.co_firstlineno) == function
    ]
    if len(new) != 1 or not old or any(f.__code__.co_freevars != new[0].co_freevars for f in old):
        return False
    for f in old:
        f.__code__ = new[0]
    return True


def _codes(code: CodeType) -> list[CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [*inner, *(found for c in inner for found in _codes(c))]


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from the code of the mutant."""

    def __init__(self, name: str, code: CodeType) -> None:
        self._name, self._code = name, code

    def find_spec(self, name: str, *_: Any) -> Any:
        return (
            importlib.util.spec_from_loader(name, self, origin=self._code.co_filename) if name == self._name else None
        )

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._code.co_filename
        exec(self._code, module.__dict__)


def _import_again(module: str, code: CodeType) -> None:
    """Forget all modules of ours, and load one of them from other code. It is loaded at once: pytest has a loader of
    its own for the modules of a package that is a plugin."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("agent_eval_schema", "tests", "conftest")]:
        del sys.modules[name]
    name = "agent_eval_schema." + module[:-3].replace("/", ".")
    sys.meta_path.insert(0, _Mutated(name, code))
    loaded = importlib.import_module(name)
    assert isinstance(loaded.__loader__, _Mutated)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # what forks share is not taken down: libraries print what they leak
