"""One fixture feeds a test through every kind of input; another finds the data that users get too."""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from xdist.scheduler import WorkStealingScheduling

from tests.helpers.mlflow_store import empty_store, mlflow_store
from tests.helpers.spark_session import start_spark

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_data"
DATA = ROOT / "tests" / "data"

PATIENCE = 120
"""Seconds for what must end: a machine that does much else has taken forty times as long as one at rest."""

# No test measures time: on a busy machine the first example of a test takes seconds.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What a profile estimates does not depend on what tiktoken has fetched on this machine: it has no cache.
os.environ["TIKTOKEN_CACHE_DIR"] = ""
# MLflow fetches the prices of models from the network, and waits for a server that does not answer.
os.environ["MLFLOW_MODEL_CATALOG_URI"] = ""

Row = dict[str, Any]


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def columns_of(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def as_pandas(rows: list[Row], _: Path) -> pd.DataFrame:
    return pd.DataFrame({n: pd.Series([r.get(n) for r in rows], dtype="object") for n in columns_of(rows)})


def as_list(rows: list[Row], _: Path) -> list[Row]:
    return rows


def as_arrow(rows: list[Row], _: Path) -> pa.Table:
    """Nested cells as JSON text: an Arrow column cannot mix strings and objects."""
    return pa.table({n: pa.array([_as_text(r.get(n)) for r in rows], pa.string()) for n in columns_of(rows)})


def as_jsonl(rows: list[Row], folder: Path) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return str(path)


def as_json(rows: list[Row], folder: Path) -> str:
    path = folder / "rows.json"
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=2), encoding="utf-8")
    return str(path)


def as_csv(rows: list[Row], folder: Path) -> str:
    path = folder / "rows.csv"
    names = columns_of(rows)
    lines = [names, *([_as_text(r.get(n)) or "" for n in names] for r in rows)]
    text = "".join(",".join(map(_quoted, line)) + "\r\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def _quoted(text: str) -> str:
    """As RFC 4180 says; the csv module of Python 3.10 cannot write a NUL."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in '",\r\n\0') else text


def as_parquet(rows: list[Row], folder: Path) -> str:
    path = folder / "rows.parquet"
    pq.write_table(as_arrow(rows, folder), path)
    return str(path)


def as_delta(rows: list[Row], folder: Path) -> str:
    from deltalake import write_deltalake

    path = folder / "rows"
    shutil.rmtree(path, ignore_errors=True)
    write_deltalake(path, as_arrow(rows, folder))
    return str(path)


KINDS: dict[str, Callable[[list[Row], Path], Any]] = {
    "pandas": as_pandas,
    "list": as_list,
    "arrow": as_arrow,
    "jsonl": as_jsonl,
    "json": as_json,
    "csv": as_csv,
    "parquet": as_parquet,
    "delta": as_delta,
}


NEEDS = {
    "spark": "starts Spark",
    "browser": "opens pages in Chromium",
    "mlflow": "runs MLflow, mostly on a tracking store",
    "mcp": "calls an MCP or HTTP server on loopback",
    "process": "starts other processes: workers, kernels of notebooks, commands, builds",
    "property": "tries many examples",
    "containers": "repeats a test with the other containers and places, which are read alike",
    "oracle": "compares with a package that only the group `dev` installs",
    "docs": "builds the documentation, or runs the code of its pages",
}
"""What a test needs besides Python packages and a moment. A test has the mark of each of its needs."""

WITHOUT_NEEDS = f"not ({' or '.join(NEEDS)})"

QUICK = f"smoke or {WITHOUT_NEEDS}"
"""What `pytest` without a path or a mark runs: the tests without needs, and each component once (tests/smoke)."""

NEED_OF_FIXTURE = {
    "spark": "spark",
    "tracking_store": "mlflow",
    "browser": "browser",
    **dict.fromkeys(("google_adk", "adk", "agentevals", "model"), "oracle"),
}

NEED_OF_PLACE = {
    "integrations/mlflow/": "mlflow",
    "integrations/ces/": "mcp",
    "integrations/test_pytest_plugin.py": "process",
    "evaluation/test_journal.py": "process",
    "evaluation/test_judges.py": "mlflow",
    "inference_tables/test_build_file.py": "process",
    "project/test_notebooks.py": "process",
    "project/test_package.py": "process",
    "render/test_page.py": "browser",
    "review/test_page.py": "browser",
    "validation/test_checked_run.py": "process",
}


COMPONENTS_REQUIRED = os.environ.get("AGENT_EVAL_SCHEMA_COMPONENTS") == "required"
"""Whether a test fails, and is not skipped, where a package, Chromium or Spark is missing: so in `.ci/run`."""


CASES = int(os.environ.get("AGENT_EVAL_SCHEMA_CASES", "0"))
"""The number of cases of a parametrized test that run; 0: all. Another version of a package breaks what a test calls,
and hardly ever one of its cases alone."""


def _imported(name: str, *_: Any, **__: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # while thousands of tests are collected, nothing that is made is thrown away
    if COMPONENTS_REQUIRED:
        pytest.importorskip = _imported
    for name, text in NEEDS.items():
        config.addinivalue_line("markers", f"{name}: {text}")
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if not (named or config.option.markexpr or config.option.keyword):
        config.option.markexpr = QUICK


def _need_of(path: Path) -> str | None:
    place = path.relative_to(ROOT / "tests").as_posix()
    return next((need for start, need in NEED_OF_PLACE.items() if place.startswith(start)), None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where nothing is to run, not even what it imports is loaded."""
    return (config.option.markexpr in (QUICK, WITHOUT_NEEDS) and _need_of(collection_path) is not None) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WorkStealingScheduling | None:
    """Without needs there are no groups, and no use for their scheduler, whose work grows with the square of the number
    of tests."""
    return WorkStealingScheduling(config, log) if config.option.markexpr in (QUICK, WITHOUT_NEEDS) else None


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)  # before pytest deselects by mark, and after it
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        needs = {NEED_OF_FIXTURE.get(name) for name in item.fixturenames} | {_need_of(item.path)}  # type: ignore[attr-defined]
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            needs.add("property")
        for need in needs - {None}:
            item.add_marker(need)
        if "spark" in needs and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))  # one session, in one process
    yield
    if CASES:
        kept = some_cases(items, CASES)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def some_cases(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """Of each test its first and its last case, and others between them."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    steps = range(most)
    return [
        cases[i] for cases in tests.values() for i in sorted({s * (len(cases) - 1) // max(most - 1, 1) for s in steps})
    ]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how far coverage agrees with each platform, as its tests recorded: the property `oracle` has the platform
    and the numbers of cells, of those that agree, and of those in which this package is stricter on purpose."""
    totals: dict[str, list[int]] = {}
    for report in (r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())):
        for platform, *counts in (value for name, value in report.user_properties if name == "oracle"):
            old = totals.get(platform, [0, 0, 0, 0])
            totals[platform] = [a + b for a, b in zip(old, (1, *counts), strict=True)]
    if totals:
        terminalreporter.section("agreement with the platforms")
        line = "{:<28} {:>8} {:>8} {:>8} {:>20}"
        terminalreporter.write_line(line.format("platform", "cases", "cells", "agree", "stricter on purpose"))
        for platform, numbers in totals.items():
            terminalreporter.write_line(line.format(platform, *numbers))
    loaded = [
        value
        for report in terminalreporter.stats.get("passed", ())
        for name, value in report.user_properties
        if name == "loaded"
    ]
    if loaded:
        terminalreporter.section("what the classes of platforms load")
        line = "{:<28} {:>12} {:<16} {}"
        terminalreporter.write_line(line.format("platform", "rows loaded", "kept", "demanded of a file"))
        for values in loaded:
            terminalreporter.write_line(line.format(*values))


CONTAINERS = ("list", "parquet")
"""Python values, and columns of texts: the two kinds of input that always run."""


@pytest.fixture(params=[pytest.param(k, marks=() if k in CONTAINERS else pytest.mark.containers) for k in KINDS])
def every_input(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[list[Row]], Any]:
    """Turns rows into one kind of input; the test runs once for each kind."""
    return lambda rows: KINDS[request.param](rows, tmp_path)


@pytest.fixture(params=CONTAINERS)
def two_inputs(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[list[Row]], Any]:
    """As `every_input`, for what is crossed with so many cases that two kinds are enough."""
    return lambda rows: KINDS[request.param](rows, tmp_path)


@pytest.fixture
def samples() -> Path:
    return SAMPLES


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The one Spark of a test session. Mark tests with `xdist_group("spark")`, so that one process runs them all."""
    session = start_spark(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def mlflow_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a tracking store that tests share, each with an experiment or a dataset of its own."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def no_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty tracking store, made once for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    return empty_store((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "no_runs.db")


@pytest.fixture(scope="module")
def tracking_store(mlflow_folder: Path, no_runs: Path) -> Iterator[str]:
    """The URI of a tracking store of the real MLflow, which MLflow is set to."""
    with mlflow_store(mlflow_folder, no_runs) as mlflow:
        yield mlflow.get_tracking_uri()


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a program keeps for a user stays out of the home of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A Chromium, closed with its module, as an event loop runs while it is open. Debian's packages are enough; the one
    without windows opens a page in a quarter of the time.

    Without one the tests are skipped, unless components are required.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    program = next((p for n in names if (p := shutil.which(n))), None)
    if program is None:
        assert not COMPONENTS_REQUIRED, "no Chromium on this machine"
        pytest.skip("no Chromium on this machine")
    with pytest.importorskip("playwright.sync_api").sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The Chromium, whose pages are closed with the test: each that stays open is a process that slows the next."""
    yield chromium
    for context in chromium.contexts:
        context.close()
