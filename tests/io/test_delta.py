"""Delta folders, read and written: the rows of one version, in one order, without those that were deleted."""

import datetime
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from agent_eval_schema import EvalSetError, diff_eval_sets, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import delta
from agent_eval_schema.io.delta import delta_batches, open_table, write_delta
from agent_eval_schema.io.write import write_batches
from agent_eval_schema.schema import ROW_SCHEMA
from agent_eval_schema.validation.report import summary_of
from agent_eval_schema.validation.validate import check_source
from tests.helpers.delta_tables import DataFile, make_delta


def payloads(first: int, size: int) -> pa.Table:
    """Rows with the columns of an AI Gateway table; `execution_duration_ms` counts them."""
    numbers = range(first, first + size)
    day = datetime.date(2026, 11, 1)
    return pa.table(
        {
            "databricks_request_id": [f"id-{n}" for n in numbers],
            "request_date": [day + datetime.timedelta(n // 1000) for n in numbers],
            "request_time": pa.array([1_793_000_000_000_000 + n for n in numbers], pa.timestamp("us", "UTC")),
            "status_code": pa.array([200] * size, pa.int32()),
            "sampling_fraction": [1.0] * size,
            "execution_duration_ms": pa.array(numbers, pa.int64()),
            "request": [json.dumps({"messages": [{"role": "user", "content": f"question {n}"}]}) for n in numbers],
            "response": [None if n % 7 == 3 else f"answer {n}" for n in numbers],
            "logging_error_codes": pa.array([["X"] if n % 2 else None for n in numbers], pa.list_(pa.string())),
        }
    )


def numbers(name: str) -> list[int]:
    return [n for batch in delta_batches(open_table(name)) for n in batch.column("execution_duration_ms").to_pylist()]


# ---------------------------------------------------------------------------------------------------------------------
# deleted rows


@pytest.mark.parametrize("checkpoint", [False, True], ids=["commit", "checkpoint"])
@pytest.mark.parametrize("inline", [False, True], ids=["file", "inline"])
def test_deleted_rows_are_skipped(inline: bool, checkpoint: bool, tmp_path: Path) -> None:
    files = [DataFile(payloads(0, 10), [0, 3, 9]), DataFile(payloads(10, 10)), DataFile(payloads(20, 5), range(5))]
    name = make_delta(tmp_path / "t", files, inline=inline, checkpoint=checkpoint)
    assert numbers(name) == [1, 2, 4, 5, 6, 7, 8, *range(10, 20)]
    assert validate_eval_set(name).row_count == 17


def test_deleted_rows_are_skipped_in_every_row_group(tmp_path: Path) -> None:
    """Deletion vectors count the rows of the file, not of a group."""
    size = 150_000
    deleted = [n for n in range(size) if n % 3 == 1]  # dense enough for the bitmap's second form
    rows = payloads(0, size).select(["request_date", "execution_duration_ms", "request"])
    name = make_delta(tmp_path / "t", [DataFile(rows, deleted)], row_group=10_000)
    assert numbers(name) == [n for n in range(size) if n % 3 != 1]


def test_rows_that_delta_rs_deletes(tmp_path: Path) -> None:
    name = str(tmp_path / "t")
    write_deltalake(name, payloads(0, 20))
    DeltaTable(name).delete("execution_duration_ms % 5 = 0")
    assert sorted(numbers(name)) == [n for n in range(20) if n % 5]


def test_a_table_without_rows_keeps_its_columns(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 2), [0, 1])])
    (batch,) = delta_batches(open_table(name))
    assert (batch.num_rows, batch.schema.names) == (0, payloads(0, 1).schema.names)
    assert validate_eval_set(name).counts["AE101"] == 1


# ---------------------------------------------------------------------------------------------------------------------
# one order, one version


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> str:
    name = str(tmp_path_factory.mktemp("delta") / "t")
    for part in range(12):
        write_deltalake(name, payloads(part * 400, 400), mode="append", partition_by=["request_date"])
    return name


def test_every_reading_gives_the_rows_in_one_order(many_files: str) -> None:
    found = [numbers(many_files) for _ in range(4)]
    assert sorted(found[0]) == list(range(4800))
    assert found[1:] == found[:1] * 3


def test_rows_are_known_by_their_position(many_files: str) -> None:
    report = validate_eval_set(many_files)
    order = numbers(many_files)
    assert report.rows["execution_duration_ms"].tolist() == order
    assert [order[row] for row in report.issues.query("code == 'AE223'")["row"]] == [n for n in order if n % 7 == 3]
    assert report.invalid["execution_duration_ms"].tolist() == [n for n in order if n % 7 == 3]


@pytest.mark.process
def test_several_processes_agree_with_one(many_files: str) -> None:
    one, two = (check_source(open_source(many_files), jobs=jobs) for jobs in (1, 2))
    assert two.to_json() == one.to_json()
    assert two.valid_mask.tolist() == one.valid_mask.tolist()


@pytest.mark.process
def test_an_open_table_stays_at_its_version(tmp_path: Path) -> None:
    name = str(tmp_path / "t")
    write_deltalake(name, payloads(0, 5))
    report = validate_eval_set(name)
    write_deltalake(name, payloads(5, 5), mode="append")
    assert (summary_of(report).name, len(report.rows)) == (f"{name}@v0", 5)
    assert check_source(open_source(f"{name}@v0"), jobs=2).row_count == 5
    assert validate_eval_set(name).row_count == 10
    assert len(diff_eval_sets(f"{name}@v0", name).added) == 5


def test_a_large_table_deserves_workers(many_files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is measured by its files: a folder is small."""
    from agent_eval_schema.io import source as source_

    size = sum(p.stat().st_size for p in Path(many_files).rglob("*.parquet"))
    source = open_source(many_files)
    assert source.stored_bytes == size
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_JOBS", "8")
    monkeypatch.setattr(source_, "WORTH_IT", size)
    assert source_.worth_workers(source_.size_of(source)) == 8
    monkeypatch.setattr(source_, "WORTH_IT", size + 1)
    assert source_.worth_workers(source_.size_of(source)) == 1


# ---------------------------------------------------------------------------------------------------------------------
# columns


def test_columns_that_came_later_and_partitions(tmp_path: Path) -> None:
    name = str(tmp_path / 'a b"é')
    day = pa.array([datetime.date(2026, 11, 1), None])
    write_deltalake(name, pa.table({"request": ["a", "b"], "day/é 20%": day}), partition_by=["day/é 20%"])
    later = pa.table({"request": ["c"], "day/é 20%": day[:1], 'Team "x"': ["ops"]})
    write_deltalake(name, later, mode="append", schema_mode="merge")
    rows = sorted(
        (row for b in delta_batches(open_table(name)) for row in b.to_pylist()), key=lambda row: str(row["request"])
    )
    assert rows == [
        {"request": "a", "day/é 20%": day[0].as_py(), 'Team "x"': None},
        {"request": "b", "day/é 20%": None, 'Team "x"': None},
        {"request": "c", "day/é 20%": day[0].as_py(), 'Team "x"': "ops"},
    ]


def test_texts_are_ordinary_texts_at_any_depth(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "a": pa.array([[{"x": "y"}]], pa.list_(pa.struct([("x", pa.string())]))),
            "b": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
            "c": [b"z"],
        }
    )
    name = str(tmp_path / "t")
    write_deltalake(name, rows)
    (batch,) = delta_batches(open_table(name))
    assert "view" not in str(batch.schema)
    assert batch.to_pylist() == rows.to_pylist()


# ---------------------------------------------------------------------------------------------------------------------
# what cannot be read


def could_not_read(name: str) -> str:
    with pytest.raises(EvalSetError) as told:
        validate_eval_set(name)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_missing_data_file_is_told_at_once(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3)), DataFile(payloads(3, 3))])
    gone = tmp_path / "t" / "part-00001.snappy.parquet"
    gone.unlink()
    told = could_not_read(name)
    assert told.startswith(f"{name}: the log of version 0 lists a data file that is missing: {gone}")
    with pytest.raises(EvalSetError, match="is missing"):
        next(delta_batches(open_table(name)))


def test_of_a_table_whose_last_version_cannot_be_read_the_one_before_is_named(tmp_path: Path) -> None:
    name = str(tmp_path / "t")
    for start in (0, 3):
        write_deltalake(name, payloads(start, 3), mode="append")
    (gone,) = {*DeltaTable(name).file_uris()} - {*DeltaTable(name, version=0).file_uris()}
    os.unlink(gone)
    assert could_not_read(name).endswith(f"restore it, or read the last version without it: {name}@v0")
    (log := tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text("")
    assert could_not_read(name).startswith(
        f"{name}: cannot be read as a Delta table: the log has an empty file: {log}: "
    )
    assert validate_eval_set(f"{name}@v0").row_count == 3


def test_a_missing_deletion_vector(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3), [1])])
    for path in (tmp_path / "t").glob("*.bin"):
        path.unlink()
    assert "cannot be read as a Delta table" in could_not_read(name)


def test_a_damaged_data_file(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3))])
    (tmp_path / "t" / "part-00000.snappy.parquet").write_bytes(b"PAR1 no more PAR1")
    assert "cannot be read as a Delta table" in could_not_read(name)


@pytest.mark.parametrize("log", ["", '{"add":', "[]\n", '{"commitInfo": {}}\n'])
def test_a_broken_log(log: str, tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3))])
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text(log)
    assert could_not_read(name).startswith(f"{name}: cannot be read as a Delta table: ")


def test_a_feature_that_delta_rs_does_not_know(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3))])
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"v2Checkpoint"', '"v9Checkpoint"'))
    assert "v9Checkpoint" in could_not_read(name)


def test_a_version_that_is_not_there(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3))])
    assert could_not_read(f"{name}@v7") == f"{name}@v7: unknown version 7: the newest is 0"


def test_a_folder_without_a_log_is_a_directory(tmp_path: Path) -> None:
    assert could_not_read(str(tmp_path)).startswith(f"{tmp_path}: is a directory without files of rows")


def test_a_folder_may_be_called_like_a_version(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "t@v3", [DataFile(payloads(0, 3))])
    assert summary_of(validate_eval_set(name)).name == f"{name}@v0"
    assert validate_eval_set(f"{name}@v0").row_count == 3


def test_a_percent_sign_in_the_name_would_lead_elsewhere(tmp_path: Path) -> None:
    name = make_delta(tmp_path / "a%20b", [DataFile(payloads(0, 3))])
    assert "rename the folder" in could_not_read(name)
    with pytest.raises(EvalSetError, match="rename the folder"):
        write_delta(str(tmp_path / "c%20d"), [], ROW_SCHEMA)
    assert os.listdir(tmp_path) == ["a%20b"]


def test_without_deltalake_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3))])
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert "pip install -U 'agent-eval-schema[delta]'" in could_not_read(name)


def test_an_older_deltalake_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3))])
    monkeypatch.delattr(DeltaTable, "scan")
    assert "deltalake 1.6.6 or newer" in could_not_read(name)


# ---------------------------------------------------------------------------------------------------------------------
# written


SCHEMA = pa.schema([("request", pa.string()), ("n", pa.int64())])


def batch(*rows: tuple[str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"request": r, "n": n} for r, n in rows], SCHEMA)


def test_a_new_table(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    assert write_delta(path, [batch(("a", 1), ("b", 2)), batch().slice(0, 0), batch(("c", 3))], SCHEMA) == 3
    rows = [row for b in delta_batches(open_table(path)) for row in b.to_pylist()]
    assert sorted(rows, key=lambda r: r["n"]) == [
        {"request": "a", "n": 1},
        {"request": "b", "n": 2},
        {"request": "c", "n": 3},
    ]
    assert os.listdir(tmp_path) == ["t"]
    assert os.stat(path).st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


def test_normalized_rows_come_back(tmp_path: Path) -> None:
    rows = [
        {
            "request": "Hi",
            "response": "x",
            "guidelines": {"tone": ["kind"]},
            "tags": {"a": "b"},
            "custom_expected": {"k": 1},
        },
        {"request": {"messages": [{"role": "user", "content": "Ho"}]}, "response": "y", "input_token_count": 3},
        {"request": "He", "response": "z", "expected_retrieved_context": [{"doc_uri": "d", "content": None}]},
    ]
    report = validate_eval_set(rows)
    path = str(tmp_path / "rows.delta")
    assert report.write(path) == 3
    again = validate_eval_set(path)
    assert again.ok
    in_order = again.rows.sort_values("response", ignore_index=True)
    pd.testing.assert_frame_equal(in_order, report.rows)


def test_an_empty_folder_is_taken_any_other_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.mkdir()
    assert write_delta(str(path), [batch(("a", 1))], SCHEMA) == 1
    for taken in (path, tmp_path):
        with pytest.raises(EvalSetError, match="there is something already"):
            write_delta(str(taken), [batch(("b", 2))], SCHEMA)
    assert validate_eval_set(str(path)).row_count == 1


def test_rows_that_fail_leave_nothing_behind(tmp_path: Path) -> None:
    class Lost(Exception):
        """What breaks off the rows."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(("a", 1))
        raise Lost("the cable")

    with pytest.raises(Lost, match="the cable"):
        write_delta(str(tmp_path / "t"), rows(), SCHEMA)
    assert os.listdir(tmp_path) == []


def test_types_that_delta_lacks(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("a", pa.uint8()),
            ("b", pa.uint64()),
            ("c", pa.null()),
            ("d", pa.timestamp("ns", "UTC")),
            ("e", pa.string_view()),
        ]
    )
    given = {
        "a": 255,
        "b": 2**63 - 1,
        "c": None,
        "d": datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
        "e": "f",
    }
    rows = pa.RecordBatch.from_pylist([given], schema)
    write_delta(str(tmp_path / "t"), [rows], schema)
    (found,) = delta_batches(open_table(str(tmp_path / "t")))
    assert found.to_pylist() == [given]


def test_a_number_that_does_not_fit_is_told_not_changed(tmp_path: Path) -> None:
    schema = pa.schema([("b", pa.uint64())])
    with pytest.raises(EvalSetError, match=r"cannot be written: .*18446744073709551615"):
        write_delta(str(tmp_path / "t"), [pa.RecordBatch.from_pylist([{"b": 2**64 - 1}], schema)], schema)
    assert os.listdir(tmp_path) == []


def test_a_type_that_nothing_holds_names_its_column(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.string()), ("pause", pa.duration("s"))])
    with pytest.raises(EvalSetError, match=r"the column 'pause' of type duration\[s\]") as told:
        write_delta(str(tmp_path / "t"), [], schema)
    assert "\n" not in str(told.value)
    assert os.listdir(tmp_path) == []


def test_there_must_be_a_place(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="no such folder"):
        write_batches(str(tmp_path / "none" / "t.delta"), [], SCHEMA)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = make_delta(tmp_path / "t", [DataFile(payloads(0, 3), [0])])
    assert main(["validate", name, "--write-normalized", str(tmp_path / "out.delta")]) == 0
    said = capsys.readouterr()
    assert f"{name}@v0" in said.out
    assert "2 normalized rows written" in said.err
    assert main(["validate", str(tmp_path / "out.delta")]) == 0
    assert delta.open_table(str(tmp_path / "out.delta")).version() == 0
