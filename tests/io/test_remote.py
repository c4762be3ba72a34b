"""Data that is elsewhere: files through fsspec (its own store in memory), tables through BigQuery's interface."""

from __future__ import annotations

import gc
import inspect
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import (
    EvalSetError,
    EvalTask,
    convert_eval_set,
    diff_eval_sets,
    score_trajectories,
    validate_eval_set,
)
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.report import summary_of
from agent_eval_schema.validation.validate import check_source
from tests.conftest import KINDS
from tests.evaluation.test_task import SEED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are put."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_a_file_in_a_store(kind: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    fsspec = pytest.importorskip("fsspec")
    local = Path(KINDS[kind](SEED, tmp_path_factory.mktemp("local")))
    with fsspec.open(f"memory://bucket/{kind}/{local.name}", "wb") as file:
        file.write(local.read_bytes())
    url = f"memory://bucket/{kind}/{local.name}"
    found = score_trajectories(url)
    assert found.name == url
    assert found.summary_metrics["trajectory_recall/mean"] == 0.25
    assert found.metrics_table["trajectory_recall/score"].tolist() == [0, 0.5]
    assert EvalTask(url, ["trajectory_recall"]).evaluate().summary_metrics["trajectory_recall/mean"] == 0.25
    del found
    gc.collect()
    assert list(folder.iterdir()) == [], "a copy was left behind"


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_every_verb_reads_a_file_in_a_store(kind: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    fsspec = pytest.importorskip("fsspec")
    rows = [{"request_id": f"r{i}", "request": f"question {i}", "respones": "x"} for i in range(5)]
    local = Path(KINDS[kind](rows, tmp_path_factory.mktemp("local")))
    url = f"memory://bucket/verbs/{kind}/{local.name}"
    with fsspec.open(url, "wb") as file:
        file.write(local.read_bytes())
    report, plain = validate_eval_set(url), validate_eval_set(local)
    assert summary_of(report).name == url
    assert (report.counts, list(report.iter_issues())) == (plain.counts, list(plain.iter_issues()))
    assert list(report.iter_rows()) == list(plain.iter_rows())
    assert diff_eval_sets(local, url).same
    assert convert_eval_set(url, "mlflow").data.equals(convert_eval_set(local, "mlflow").data)
    del report
    gc.collect()
    assert list(folder.iterdir()) == [], "a copy was left behind"


@pytest.mark.process
@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_workers_read_the_copy_of_a_file_in_a_store(kind: str, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    local = Path(KINDS[kind]([{"request": f"question {i}", "respones": "x"} for i in range(5)], tmp_path))
    url = f"memory://bucket/workers/{kind}/{local.name}"
    with fsspec.open(url, "wb") as file:
        file.write(local.read_bytes())
    report, plain = check_source(open_source(url), jobs=2), validate_eval_set(local)
    assert (report.counts, list(report.iter_issues())) == (plain.counts, list(plain.iter_issues()))


@pytest.mark.parametrize("name", ["golden.csv", "evaluation.json"])
def test_files_of_ces_in_a_store(name: str, samples: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(f"memory://bucket/{name}", "wb") as file:
        file.write((samples / name).read_bytes())
    report, plain = validate_eval_set(f"memory://bucket/{name}"), validate_eval_set(samples / name)
    assert (report.format, report.counts) == (plain.format, plain.counts)
    assert list(report.valid_mask) == list(plain.valid_mask)


def test_of_a_folder_in_a_store_the_files_of_partitions_are_read() -> None:
    fsspec = pytest.importorskip("fsspec")
    for name in ("a.jsonl", "day=1/b.jsonl", "notes/c.jsonl", "_old.jsonl", "readme.txt"):
        with fsspec.open(f"memory://parts/{name}", "wb") as file:
            file.write(b'{"request": "Hi", "response": "Hello"}\n')
    assert validate_eval_set("memory://parts/").row_count == 2


def test_files_of_one_name_in_folders_of_a_store_are_refused() -> None:
    fsspec = pytest.importorskip("fsspec")
    for name in ("a/rows.jsonl", "b/rows.jsonl"):
        with fsspec.open(f"memory://twice/{name}", "wb") as file:
            file.write(b'{"request": "Hi", "response": "Hello"}\n')
    with pytest.raises(
        EvalSetError, match=r"twice/\*/rows\.jsonl: expected files of different names: two of one name are"
    ):
        validate_eval_set("memory://twice/*/rows.jsonl")
    with pytest.raises(EvalSetError, match=r"twice/a/rows\.jsonl/b\.jsonl: cannot be written: FileExistsError"):
        validate_eval_set([{"request": "Hi"}]).write("memory://twice/a/rows.jsonl/b.jsonl")


def test_a_name_with_a_slash_too_many_is_no_url(tmp_path: Path) -> None:
    for name in (f"{tmp_path}//rows.jsonl", '{"a": "http://x"}', "table@v12"):
        with pytest.raises(EvalSetError, match="no such file"):
            validate_eval_set(name)


def test_a_file_in_a_store_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://bucket/seed.jsonl", "wb") as file:
        file.write(Path(KINDS["jsonl"](SEED, tmp_path)).read_bytes())
    assert main(["score", "memory://bucket/seed.jsonl", "--quiet"]) == 0
    assert "trajectory_recall" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "said"),
    [("memory://bucket/nowhere.jsonl", "cannot be read: FileNotFoundError"), ("nosuch://x/y.jsonl", "cannot be read")],
)
def test_a_file_that_cannot_be_fetched(url: str, said: str, folder: Path) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(EvalSetError, match=said):
        EvalTask(url, [])
    gc.collect()
    assert list(folder.iterdir()) == []


def test_the_package_that_fetches_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(EvalSetError, match=r"agent-eval-schema\[remote\]"):
        EvalTask("gs://bucket/rows.jsonl", [])
    monkeypatch.setitem(sys.modules, "google.cloud", None)
    with pytest.raises(EvalSetError, match=r"agent-eval-schema\[bigquery\]"):
        EvalTask("bq://project.dataset.table", [])


# ---------------------------------------------------------------------------------------------------------------------
# BigQuery: a stand-in with the client's interface, whose tables are Parquet files


class Client:
    """What we use of google.cloud.bigquery.Client."""

    tables: ClassVar[dict[str, Path]] = {}
    open_clients = 0

    def __init__(self, project: str | None = None) -> None:
        self.project = project

    def __enter__(self) -> Client:
        Client.open_clients += 1
        return self

    def __exit__(self, *_: object) -> None:
        Client.open_clients -= 1

    def list_rows(self, table: str) -> Rows:
        assert table.startswith(f"{self.project}.")
        if table not in self.tables:
            raise LookupError(f"404 Not found: Table {table}")
        return Rows(self.tables[table])


class Rows:
    def __init__(self, path: Path) -> None:
        self.path = path

    def to_arrow_iterable(self) -> Iterator[pa.RecordBatch]:
        yield from pq.ParquetFile(self.path).iter_batches(1)


@pytest.fixture
def bigquery(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Client]:
    module: Any = ModuleType("google.cloud.bigquery")
    module.Client = Client
    google, cloud = ModuleType("google"), ModuleType("google.cloud")
    google.cloud, cloud.bigquery = cloud, module  # type: ignore[attr-defined]
    for name, value in (("google", google), ("google.cloud", cloud), ("google.cloud.bigquery", module)):
        monkeypatch.setitem(sys.modules, name, value)
    as_text = Path(KINDS["parquet"](SEED, tmp_path))
    call = pa.struct([("tool_name", pa.string()), ("tool_input", pa.string())])
    nested = pa.table(
        {"predicted_trajectory": pa.array([[{"tool_name": "a", "tool_input": "{}"}], []], pa.list_(call))}
    )
    pq.write_table(nested, tmp_path / "nested.parquet")
    empty = pq.read_schema(as_text).empty_table()
    pq.write_table(empty, tmp_path / "empty.parquet")
    tables = {"text": as_text, "nested": tmp_path / "nested.parquet", "empty": tmp_path / "empty.parquet"}
    monkeypatch.setattr(Client, "tables", {f"project.evals.{name}": path for name, path in tables.items()})
    return Client


def test_a_table(bigquery: type[Client]) -> None:
    found = score_trajectories("bq://project.evals.text")
    assert found.summary_metrics["trajectory_recall/mean"] == 0.25
    assert bigquery.open_clients == 0


def test_a_table_with_repeated_records(bigquery: type[Client]) -> None:  # noqa: ARG001
    found = score_trajectories("bq://project.evals.nested", metrics=(), tool_name="a")
    assert sorted(found.tallies["trajectory_single_tool_use"].by_row) == [0, 1]


def test_an_empty_table(bigquery: type[Client]) -> None:  # noqa: ARG001
    assert score_trajectories("bq://project.evals.empty").row_count == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("bq://project.evals.nowhere", "cannot be read: LookupError: 404 Not found"),
        ("bq://evals.text", "expected bq://project.dataset.table"),
        ("bq://", "expected bq://project.dataset.table"),
    ],
)
def test_a_table_that_there_is_not(bigquery: type[Client], url: str, said: str) -> None:
    with pytest.raises(EvalSetError, match=said):
        EvalTask(url, [])
    assert bigquery.open_clients == 0


@pytest.mark.oracle
def test_the_stand_in_has_the_interface_of_the_client() -> None:
    real = pytest.importorskip("google.cloud.bigquery")
    from google.cloud.bigquery.table import RowIterator

    for ours, theirs in (
        (Client.list_rows, real.Client.list_rows),
        (Rows.to_arrow_iterable, RowIterator.to_arrow_iterable),
    ):
        inspect.signature(theirs).bind(*inspect.signature(ours).parameters)
    inspect.signature(real.Client).bind(project="x")
    assert hasattr(real.Client, "__enter__")
