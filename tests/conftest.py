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

from tests.helpers.spark_session import start_spark

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_data"
DATA = ROOT / "tests" / "data"

# No test measures time: on a busy machine the first example of a test takes seconds.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What a profile estimates does not depend on what tiktoken has fetched on this machine: it has no cache.
os.environ["TIKTOKEN_CACHE_DIR"] = ""

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


SLOW_FIXTURES = frozenset({"spark", "tracking_store", "mlflow_folder"})
SLOW_PLACES = (
    *("integrations", "project/test_notebooks.py", "render/test_page.py"),
    *("inference_tables/test_build_file.py", "validation/test_workers.py", "evaluation/test_journal.py"),
    "evaluation/test_judges.py",
)


def _is_slow_place(path: Path) -> bool:
    return path.relative_to(ROOT / "tests").as_posix().startswith(SLOW_PLACES)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where all is slow, and is not to run, not even what it imports is loaded."""
    return (config.option.markexpr in WITHOUT_SERVICES and _is_slow_place(collection_path)) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WorkStealingScheduling | None:
    """Without slow tests there are no groups, and no need for their scheduler, whose work grows with the square of the
    number of tests."""
    return WorkStealingScheduling(config, log) if config.option.markexpr in WITHOUT_SERVICES else None


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


WITHOUT_SERVICES = ("not slow", "not slow or long")
"""The fast tests, and all that need nothing but Python packages."""

LONG = frozenset((ROOT / "tests" / "long.txt").read_text().split())
"""The tests that took longest when `python -m tests.durations` last looked."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what needs Spark, a tracking store, a browser, a kernel, a server or other processes, and the
    properties, of which hypothesis tries many examples; and, as long, what takes its time without any of these."""
    for item in items:
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if is_property or _is_slow_place(item.path) or not SLOW_FIXTURES.isdisjoint(item.fixturenames):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.slow)
        elif item.nodeid.partition("[")[0] in LONG and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.slow)


FAST_KINDS = ("list", "jsonl", "csv", "parquet")
"""Python values, JSON texts, plain text and typed columns: the kinds of input that the fast run reads."""


@pytest.fixture(params=[pytest.param(k, marks=() if k in FAST_KINDS else pytest.mark.slow) for k in KINDS])
def every_input(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[list[Row]], Any]:
    """Turns rows into one kind of input; the test runs once for each kind."""
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
    """A folder for a tracking store, whose tables cost seconds to make: tests share it, each with an experiment or a
    dataset of its own."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def tracking_store(mlflow_folder: Path) -> Iterator[str]:
    """The URI of a tracking store of the real mlflow, which mlflow is set to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mlflow warns of its own parts while they are loaded
        mlflow = pytest.importorskip("mlflow")
        importlib.import_module("mlflow.pyfunc")
        importlib.import_module("mlflow.genai")
    uri = f"sqlite:///{mlflow_folder}/mlflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        # set_experiment and set_tracking_uri write these; the next module is to find them as they were
        patch.setenv("MLFLOW_TRACKING_URI", uri)
        patch.setenv("MLFLOW_EXPERIMENT_ID", "0")
        patch.setattr(mlflow.tracking.fluent, "_active_experiment_id", None)
        patch.chdir(mlflow_folder)  # where mlflow puts what belongs to no experiment
        mlflow.set_tracking_uri(uri)
        yield uri
        mlflow.set_tracking_uri(None)
        mlflow.tracing.reset()
