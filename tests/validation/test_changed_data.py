"""A report is of the data that it validated: after a file has changed, none of its rows are handed out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, Report, load_result, score_trajectories, validate_eval_set
from tests.conftest import SAMPLES, as_csv, as_json, as_jsonl, as_parquet

ROWS = [{"request": "one", "response": "a"}, {"request": " ", "response": "b"}, {"request": "three", "response": "c"}]
LONGER = [{"request": " ", "response": "x"}, *ROWS]
SHORTER = ROWS[:1]
SAME_SIZE = [ROWS[2], ROWS[1], ROWS[0]]

READS: dict[str, Callable[[Report, Path], Any]] = {
    "valid": lambda report, _: report.valid,
    "invalid": lambda report, _: report.invalid,
    "rows": lambda report, _: report.rows,
    "iter_rows": lambda report, _: list(report.iter_rows()),
    "write": lambda report, folder: report.write(folder / "out.jsonl"),
    "write_invalid": lambda report, folder: report.write_invalid(folder / "out.jsonl"),
}


def one_file(kind: Callable[..., str]) -> Callable[[list[dict[str, Any]], Path], str]:
    return lambda rows, folder: kind(rows, folder)


def compressed(rows: list[dict[str, Any]], folder: Path) -> str:
    import gzip

    path = folder / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(Path(as_jsonl(rows, folder)).read_bytes()))
    return str(path)


def folder_of(kind: Callable[..., str]) -> Callable[[list[dict[str, Any]], Path], str]:
    def written(rows: list[dict[str, Any]], folder: Path) -> str:
        parts = folder / "parts"
        parts.mkdir(exist_ok=True)
        for i, some in enumerate((ROWS, rows)):
            file = Path(kind(some, folder))
            shutil.copyfile(file, parts / f"{i}{file.suffix}")
        return str(parts)

    return written


CONTAINERS = {
    **{kind.__name__: one_file(kind) for kind in (as_jsonl, as_json, as_csv, as_parquet)},
    "gz": compressed,
    "folder of jsonl": folder_of(as_jsonl),
    "folder of csv": folder_of(as_csv),
    "folder of parquet": folder_of(as_parquet),
}


def require_refused(report: Report, folder: Path) -> None:
    for read in READS.values():
        with pytest.raises(EvalSetError, match=r": changed since it was read: validate it again$"):
            read(report, folder)
    assert not (folder / "out.jsonl").exists()
    assert report.to_html()  # the page is drawn without the cells
    assert str(report)


@pytest.mark.parametrize("rows", [LONGER, SHORTER, SAME_SIZE], ids=["longer", "shorter", "as long"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_of_a_changed_file_are_refused(container: str, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    path = CONTAINERS[container](ROWS, tmp_path)
    report = validate_eval_set(path)
    assert report.valid_count == report.row_count - report.invalid_count == len(report.valid)
    CONTAINERS[container](rows, tmp_path)
    require_refused(report, tmp_path)


def test_rows_of_a_changed_golden_csv_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_bytes((SAMPLES / "golden.csv").read_bytes())
    report = validate_eval_set(path)
    assert len(list(report.iter_rows())) == report.row_count
    path.write_bytes(path.read_bytes() + b"\n")
    require_refused(report, tmp_path)


def test_content_of_the_same_size_and_time_is_another(tmp_path: Path) -> None:
    path = Path(as_jsonl(ROWS, tmp_path))
    report = validate_eval_set(path)
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"three", b"eerht"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    require_refused(report, tmp_path)


def test_a_file_that_is_added_to_a_folder_or_gone_from_it_is_a_change(tmp_path: Path) -> None:
    path = Path(folder_of(as_jsonl)(ROWS, tmp_path))
    report = validate_eval_set(path)
    (path / "2.jsonl").write_bytes((path / "1.jsonl").read_bytes())
    require_refused(report, tmp_path)
    report = validate_eval_set(path)
    (path / "2.jsonl").unlink()
    require_refused(report, tmp_path)


def test_a_version_of_a_delta_table_is_kept_and_its_data_files_are_compared(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa

    table = tmp_path / "table"
    deltalake.write_deltalake(table, pa.Table.from_pylist(ROWS))
    report = validate_eval_set(table)
    deltalake.write_deltalake(table, pa.Table.from_pylist(LONGER), mode="overwrite")
    assert report.valid["request"].tolist() == ["one", "three"]  # a new version is another one
    file = next(table.glob("*.parquet"))
    shutil.copyfile(file, tmp_path / "copy")
    for data in table.glob("*.parquet"):
        os.utime(data, ns=(1, 1))
    require_refused(report, tmp_path)


def test_the_copy_of_a_url_stays_as_it_was(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/changed/rows.jsonl", Path(as_jsonl(ROWS, tmp_path)).read_bytes())
    report = validate_eval_set("memory://changed/rows.jsonl")
    store.pipe("/changed/rows.jsonl", Path(as_jsonl(LONGER, tmp_path)).read_bytes())
    assert report.valid["request"].tolist() == ["one", "three"]
    assert report.rows["response"].tolist() == ["a", "b", "c"]


CALLS = [{"predicted_trajectory": [], "reference_trajectory": [], "trajectory_recall/score": n} for n in (1.0, 0.5)]


@pytest.mark.parametrize("kind", [as_jsonl, as_csv, as_parquet])
@pytest.mark.parametrize("read", [score_trajectories, load_result])
def test_scores_of_a_changed_file_are_refused(read: Callable[[str], Any], kind: Any, tmp_path: Path) -> None:
    result = read(kind(CALLS, tmp_path))
    kind(CALLS[::-1], tmp_path)
    for use in (lambda: result.metrics_table, lambda: result.write(tmp_path / "out.jsonl"), lambda: result.to_html()):
        with pytest.raises(EvalSetError, match=": changed since it was read"):
            use()
    assert not (tmp_path / "out.jsonl").exists()
    assert str(result)
