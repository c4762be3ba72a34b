"""Files of folders and globs, compressed files, URLs, tables of Unity Catalog, rows on stdout."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import json
import os
import re
import sys
import tempfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetError, EvalSetNotFoundError, convert_eval_set, validate_eval_set, write_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import streams
from agent_eval_schema.io.parquet import parquet_batches
from agent_eval_schema.io.places import ending_of, is_catalog_table, is_glob
from agent_eval_schema.validation.report import run_of, summary_of
from agent_eval_schema.validation.validate import check_source
from tests.helpers.places import connector_stand_in, file_server

GOOD = b'{"request": "Hi", "response": "Hello"}\n'
BAD = b'{"request": {"messages": []}, "response": "Hello"}\n'
PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True)}


def folder_of(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("rows.jsonl", ".jsonl"),
        ("Rows.JSON.GZ", ".json"),
        ("https://x.org/a.csv.zst?token=a.b", ".csv"),
        ("-", ".jsonl"),
        ("table.delta/", ".delta"),
        ("noending", ""),
    ],
)
def test_the_kind_of_a_file_is_that_of_its_extension(name: str, ending: str) -> None:
    assert ending_of(name) == ending


@pytest.mark.parametrize(
    ("name", "is_table"),
    [
        ("main.evals.rows", True),
        ("`main`.`my evals`.`rows`", True),
        ("my-catalog.evals.rows", True),
        ("rows.v2.jsonl", False),
        ("a.b.gz", False),
        ("evals.rows", False),
        ("a.b.c.d", False),
        ("./main.evals.rows", False),
    ],
)
def test_three_names_are_those_of_a_table(name: str, is_table: bool) -> None:
    assert is_catalog_table(name) is is_table


def test_a_file_wins_over_a_glob_and_over_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path, {"rows[1].jsonl": GOOD, "main.evals.rows": GOOD})
    assert not is_glob("rows[1].jsonl")
    assert validate_eval_set("rows[1].jsonl").row_count == 1
    with pytest.raises(EvalSetError, match=r"main\.evals\.rows: unknown file extension"):
        validate_eval_set("main.evals.rows")


# ---------------------------------------------------------------------------------------------------------------------
# several files


@pytest.mark.parametrize("given", ["parts", "parts/*.jsonl", "parts/**/*.jsonl"])
def test_issues_name_the_file_and_its_line(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder_of(
        tmp_path / "parts", {"a.jsonl": GOOD * 2, "b.jsonl": GOOD + b"\n" + BAD, "c.jsonl": b"", "d.jsonl": b"{\n"}
    )
    report = validate_eval_set(given)
    assert report.row_count == 5
    found = [(i.row, i.message) for i in report.iter_issues() if i.row is not None]
    assert [(row, message.partition(": ")[0]) for row, message in found] == [(3, "b.jsonl"), (4, "d.jsonl")]
    lines = run_of(report).lines_of([0, 3, 4])
    assert lines == {0: 1, 3: 3, 4: 1}
    assert main(["validate", given, "--output", "concise"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in printed] == ["parts/b.jsonl:3", "parts/d.jsonl:1"]
    assert main(["validate", given, "--output", "github"]) == 1
    assert "file=parts/b.jsonl,line=3," in capsys.readouterr().out
    assert main(["validate", given, "--output", "sarif"]) == 1
    results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    places = [r["locations"][0]["physicalLocation"] for r in results]
    assert [(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in places] == [
        ("parts/b.jsonl", 3),
        ("parts/d.jsonl", 1),
    ]


def test_the_files_of_a_store_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    fsspec = pytest.importorskip("fsspec")
    for name, data in {"a.jsonl": GOOD, "b.jsonl": BAD, "notes.txt": b"x", "_log/c.jsonl": b"x"}.items():
        with fsspec.open(f"memory://named/parts/{name}", "wb") as file:
            file.write(data)
    for url in ("memory://named/parts", "memory://named/parts/*.jsonl"):
        assert main(["validate", url, "--output", "concise"]) == 1
        assert capsys.readouterr().out.startswith("memory://named/parts/b.jsonl:1: error AE202")
    with pytest.raises(EvalSetNotFoundError, match=r"^memory://named/parts/\*\.csv: no file matches$"):
        validate_eval_set("memory://named/parts/*.csv")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "json", "parquet", "jsonl.gz"])
def test_files_may_have_columns_of_their_own(kind: str, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "day=2").mkdir()
    write_eval_set([{"request": "a", "response": "b"}], tmp_path / "parts" / f"1.{kind}")
    write_eval_set([{"request": "a", "team": "x"}] * 2, tmp_path / "parts" / "day=2" / f"2.{kind}")
    report = validate_eval_set(tmp_path / "parts")
    rows = list(report.iter_rows())
    assert [row.get("response") for row in rows] == ["b", None, None]
    assert [row.get("team") for row in rows] == [None, "x", "x"]
    assert [row.get("day") for row in rows] == [None, "2", "2"]
    assert report.rows["team"].tolist() == [None, "x", "x"]


def test_the_file_of_a_row_is_found_without_reading_all_files_before(tmp_path: Path) -> None:
    """As a worker's rows come before those of this process."""
    for kind, data in {
        "jsonl": GOOD * 3,
        "csv": b'request,response\n"a\nb",c\n' + b"d,e\n" * 2,
        "json": b"[{},{},{}]",
    }.items():
        folder_of(tmp_path / kind, {f"a.{kind}": data, f"b.{kind}": data})
        source = open_source(tmp_path / kind)
        assert source.file_of is not None
        assert [source.file_of(row) for row in (3, 2, 5, 6)] == [f"b.{kind}", f"a.{kind}", f"b.{kind}", None]
    pq.write_table(pa.table({"request": ["a", "b"]}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"request": ["a"]}), tmp_path / "y.parquet")
    source = open_source(tmp_path / "*.parquet")
    assert source.file_of is not None
    assert [source.file_of(row) for row in range(4)] == ["x.parquet", "x.parquet", "y.parquet", None]


@pytest.mark.process
@pytest.mark.parametrize("given", ["parts", "parts/*.jsonl"])
def test_workers_share_the_files(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {f"{i}.jsonl": (GOOD * 9 + BAD) * 900 for i in range(3)}
    folder_of(tmp_path / "parts", files)
    one, two = (check_source(open_source(given), jobs=jobs) for jobs in (1, 2))
    assert list(one.iter_issues()) == list(two.iter_issues())
    assert one.counts == two.counts == {"AE202": 2700}
    assert np.array_equal(one.valid_mask, two.valid_mask)


@pytest.mark.parametrize(
    ("files", "given", "said"),
    [
        ({}, "x/*.jsonl", r"^x/\*\.jsonl: no file matches$"),
        ({"x/a.txt": b"a"}, "x", r"^x: is a directory without files of rows"),
        ({"x/a.txt": b"a"}, "x/*", r"^x/a\.txt: unknown file extension"),
        (
            {"x/a.jsonl": GOOD, "x/b.csv": b"a"},
            "x",
            r"^x: expected files of one kind, got 1 jsonl and 1 csv: choose one",
        ),
        (
            {"x/a.jsonl": GOOD, "x/b.parquet": b"a"},
            "x/*",
            r"^x/\*: expected files of one kind, .*, such as x/\*\.jsonl$",
        ),
        ({"x/a.jsonl": GOOD, "x/b.jsonl.gz": b"no gzip"}, "x", r"^x/b\.jsonl\.gz: cannot be read"),
        ({"x/a.jsonl": GOOD, "x/b.jsonl": "a".encode("utf-16")}, "x", r"^x/b\.jsonl: line 1: expected UTF-8"),
    ],
)
def test_what_is_no_table_is_told_in_one_line(
    files: dict[str, bytes],
    given: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder_of(tmp_path, files))
    with pytest.raises(EvalSetError, match=said) as raised:
        validate_eval_set(given)
    assert "\n" not in str(raised.value)
    assert main(["convert", given, "out.jsonl"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_of_the_folder_is_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of(tmp_path, {"a.jsonl": GOOD})
    for given in (str(tmp_path), str(tmp_path / "*.jsonl")):
        assert main(["convert", given, str(tmp_path / "a.jsonl")]) == 2
        assert "OUT would overwrite IN" in capsys.readouterr().err
    assert (tmp_path / "a.jsonl").read_bytes() == GOOD


# ---------------------------------------------------------------------------------------------------------------------
# compressed files


@pytest.mark.parametrize("packing", list(PACKED))
@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_what_is_written_compressed_is_read_again(kind: str, packing: str, tmp_path: Path) -> None:
    rows = [{"request": f"question {i} ü", "response": "x" * i} for i in range(50)]
    plain, packed = tmp_path / f"rows.{kind}", tmp_path / f"rows.{kind}{packing}"
    assert write_eval_set(rows, plain) == write_eval_set(rows, packed) == 50
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}[packing]
    with pa.CompressedInputStream(pa.OSFile(str(packed)), codec) as stream:
        assert stream.read() == plain.read_bytes()
    assert validate_eval_set(packed).rows.equals(validate_eval_set(plain).rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([plain.name, packed.name])


def test_parquet_is_not_compressed_again(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match=r"expected \.parquet without \.gz"):
        write_eval_set([{"request": "a"}], tmp_path / "rows.parquet.gz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("packing", list(PACKED))
def test_a_file_that_was_appended_to_has_all_rows(packing: str, tmp_path: Path) -> None:
    (tmp_path / f"a.jsonl{packing}").write_bytes(PACKED[packing](GOOD * 3) + PACKED[packing](GOOD * 4))
    assert validate_eval_set(tmp_path / f"a.jsonl{packing}").row_count == 7


@pytest.mark.parametrize("packing", list(PACKED))
def test_a_compressed_file_that_was_cut_off_is_told(packing: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = b"".join(b'{"request": "%s", "response": "x"}\n' % rng.bytes(30).hex().encode() for _ in range(100))
    packed = PACKED[packing](data)
    for end in (len(packed) - 1, len(packed) // 2, 5):
        (tmp_path / f"a.jsonl{packing}").write_bytes(packed[:end])
        with pytest.raises(EvalSetError, match=rf"a\.jsonl{packing}: cannot be read"):
            validate_eval_set(tmp_path / f"a.jsonl{packing}")


@pytest.mark.parametrize("packing", [name for name in PACKED if name])
@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_a_row_that_unpacks_to_more_than_memory_should_hold_is_refused(
    kind: str, packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_UNPACKED", 2 << 20)
    text = b"x" * (8 << 20)
    data = {"jsonl": b'{"request": "%s"}\n', "json": b'[{"request": "%s"}]', "csv": b'request\n"%s"\n'}[kind] % text
    (tmp_path / f"bomb.{kind}{packing}").write_bytes(PACKED[packing](data))
    tracemalloc.start()
    with pytest.raises(EvalSetError, match=rf"bomb\.{kind}\{packing}: expected rows of up to 2 MB, got a larger one"):
        validate_eval_set(tmp_path / f"bomb.{kind}{packing}")
    assert tracemalloc.get_traced_memory()[1] < 24 << 20
    tracemalloc.stop()
    (tmp_path / f"large.{kind}").write_bytes(data)
    assert validate_eval_set(tmp_path / f"large.{kind}").row_count == 1, "a file that is this large is no bomb"
    (tmp_path / f"many.{kind}.gz").write_bytes(gzip.compress(GOOD * 90_000, 1))
    if kind == "jsonl":
        assert validate_eval_set(tmp_path / "many.jsonl.gz").row_count == 90_000, "many rows are none either"


def test_an_app_whose_files_unpack_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_UNPACKED", 3 << 20)
    with zipfile.ZipFile(tmp_path / "app.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(4):
            archive.writestr(f"evaluations/{i}.json", b" " * (1 << 20) + b"{}")
    with pytest.raises(EvalSetError, match=r"app\.zip: expected a file of up to 3 MB, got more: set AGENT_EVAL_"):
        validate_eval_set(tmp_path / "app.zip")


@pytest.mark.parametrize("is_inside", [False, True], ids=["a column", "a field"])
@pytest.mark.parametrize("encoded", [True, False])
def test_a_text_that_a_file_of_parquet_has_once_is_not_in_memory_for_each_row(
    encoded: bool, is_inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 rows are decoded at once, and a file of 1 KB would be 256 times its longest text."""
    monkeypatch.setattr(streams, "MOST_UNPACKED", 8 << 20)
    text, path = "x" * (2 << 20), str(tmp_path / "rows.parquet")
    texts = pa.array([text, "Hi"]).take([0] * 40) if not encoded else pa.array([text] * 40).dictionary_encode()
    requests = pa.StructArray.from_arrays([texts], ["query"]) if is_inside else texts
    table = pa.table({"request": requests, "response": ["a"] * 40})
    pq.write_table(table, path, dictionary_pagesize_limit=1 << 30, store_schema=False)
    assert os.path.getsize(path) < 400_000
    sizes = [batch.num_rows for batch in parquet_batches(path)]
    assert sum(sizes) == 40
    assert max(sizes) <= 4
    monkeypatch.setattr(streams, "MOST_UNPACKED", 1 << 20)
    with pytest.raises(
        EvalSetError, match=r"rows\.parquet: expected rows of up to 1 MB, got a larger one: set [A-Z_]* to"
    ):
        validate_eval_set(path)


# ---------------------------------------------------------------------------------------------------------------------
# URLs


def test_a_web_server(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    folder_of(tmp_path, {"rows.jsonl": GOOD + BAD, "rows.jsonl.gz": gzip.compress(GOOD), "a b.csv": b"request\nHi\n"})
    with file_server(tmp_path) as address:
        report = validate_eval_set(f"{address}/rows.jsonl")
        assert (summary_of(report).name, report.counts) == (f"{address}/rows.jsonl", {"AE202": 1})
        assert run_of(report).lines_of([1]) == {1: 2}
        assert validate_eval_set(f"{address}/rows.jsonl?version=1").row_count == 2
        assert validate_eval_set(f"{address}/rows.jsonl.gz").row_count == 1
        assert validate_eval_set(f"{address}/a%20b.csv").row_count == 1
        with pytest.raises(
            EvalSetError, match=r"/nothing\.jsonl: cannot be read: the server answers 404 \(Not Found\)"
        ):
            validate_eval_set(f"{address}/nothing.jsonl")


def test_nothing_that_data_names_is_fetched(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    folder_of(tmp_path, {"secret.jsonl": GOOD})
    with file_server(tmp_path) as address:
        url = f"{address}/secret.jsonl"
        rows = [
            {"request": url, "response": url, "trace": url, "retrieved_context": [{"doc_uri": url, "content": "x"}]}
        ]
        report = validate_eval_set(rows)
    assert report.row_count == 1
    assert report.rows["request"][0]["messages"][0]["content"] == url


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv.gz", "rows.parquet"])
def test_rows_are_written_to_a_store(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    url = f"memory://written/{name}"
    assert write_eval_set([{"request": "a", "response": "b"}] * 3, url) == 3
    assert validate_eval_set(url).row_count == 3
    gc.collect()
    assert list(tmp_path.iterdir()) == [], "a copy was left behind"


def test_a_store_keeps_the_old_file_where_writing_fails(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    url = "memory://kept/rows.jsonl"
    with fsspec.open(url, "wb") as file:
        file.write(b"old")
    with pytest.raises(EvalSetError):
        write_eval_set(tmp_path / "nothing.jsonl", url)
    with fsspec.open(url) as file:
        assert file.read() == b"old"
    with pytest.raises(EvalSetError, match=r"nosuch://x/y\.jsonl: cannot be written"):
        write_eval_set([{"request": "a"}], "nosuch://x/y.jsonl")
    with pytest.raises(EvalSetError, match="expected a path on this machine, got a URL"):
        write_eval_set([{"request": "a"}], "memory://kept/rows.delta")


def test_a_build_into_a_store(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fsspec = pytest.importorskip("fsspec")
    table, url = str(samples / "inference_table.jsonl"), "memory://built/rows.jsonl.gz"
    assert main(["from-inference-table", table, str(tmp_path / "rows.jsonl"), "-q"]) == 0
    assert main(["from-inference-table", table, url, "-q"]) == 0
    with fsspec.open(url, compression="gzip") as file:
        assert file.read() == (tmp_path / "rows.jsonl").read_bytes()
    with fsspec.open(f"{url}.manifest.json") as file:
        assert json.loads(file.read())["output"] == url
    capsys.readouterr()
    assert main(["from-inference-table", table, url, "--resume"]) == 2
    assert "expected a path on this machine for --resume" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------------
# stdout


@pytest.mark.parametrize(
    "command",
    [
        "convert IN OUT --to mlflow",
        "convert IN OUT --to adk",
        "validate IN --fix OUT",
        "validate IN --write-normalized OUT --output json",
        "validate IN --write-invalid OUT",
        "profile IN --write-distinct OUT",
        "score IN --write-scores OUT",
        "from-inference-table LOG OUT",
        "from-inference-table LOG rows.jsonl --excluded OUT",
        "from-traces TRACES OUT",
    ],
)
def test_rows_go_to_stdout_and_the_report_to_stderr(
    command: str,
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"IN": "vertex.jsonl", "LOG": "inference_table.jsonl", "TRACES": "search_traces.jsonl"}
    words = [str(samples / names[word]) if word in names else word for word in command.split()]
    file = "out.evalset.json" if "adk" in words else "out.jsonl"
    code = main([file if word == "OUT" else word for word in words])
    report = capfd.readouterr().out
    assert main(["-" if word == "OUT" else word for word in words]) == code
    printed = capfd.readouterr()
    assert printed.out == (tmp_path / file).read_text()
    told = re.split("\nShows |\nOpens ", report)[0]  # what is on stdout has no name for a next command
    assert len(printed.err) >= len(told) - 40 > 0


def test_a_pipe_of_commands(samples: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(samples / "ragas.jsonl"), "-", "--quiet"]) == 0
    first = capfd.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(first.encode())))
    assert main(["convert", "-", "-", "--to", "ragas", "--quiet"]) == 0
    again = convert_eval_set([json.loads(line) for line in first.splitlines()], "ragas").data
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()] == [
        {name: value for name, value in row.items() if value is not None} for row in again.to_dict("records")
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Unity Catalog


TABLE = pa.table({"request": ["a", "b", "c"], "response": ["x", "y", None], "turns": [1, 2, 3]})


def test_a_table_of_unity_catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = connector_stand_in(monkeypatch, {"`main`.`my evals`.`rows`": TABLE, "`a`.`b`.`empty`": TABLE.slice(0, 0)})
    report = validate_eval_set("main.`my evals`.rows")
    assert (summary_of(report).name, report.row_count) == ("main.`my evals`.rows", 3)
    assert report.rows["response"].tolist() == ["x", "y", None]
    assert report.rows["turns"].tolist() == [1, 2, 3]
    assert seen == {
        "open": 0,
        "server_hostname": "w.example",
        "http_path": "/sql/1.0/warehouses/a",
        "access_token": "t",
    }
    assert validate_eval_set("a.b.empty").counts["AE101"] == 1
    with pytest.raises(EvalSetError, match=r"^a\.b\.c: cannot be read: ServerOperationError: .*`c` cannot be found\.$"):
        validate_eval_set("a.b.c")
    del report
    gc.collect()
    assert list(tmp_path.iterdir()) == [], "a copy was left behind"


def test_what_a_connection_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    connector_stand_in(monkeypatch, {"`a`.`b`.`c`": TABLE})
    monkeypatch.delenv("DATABRICKS_HTTP_PATH")
    monkeypatch.delenv("DATABRICKS_TOKEN")
    with pytest.raises(
        EvalSetError, match=r"^a\.b\.c: no such file; .*, set DATABRICKS_HTTP_PATH or .*, DATABRICKS_TOKEN"
    ):
        validate_eval_set("a.b.c")
    monkeypatch.setenv("DATABRICKS_TOKEN", "t")
    monkeypatch.setenv("DATABRICKS_WAREHOUSE_ID", "w")
    assert validate_eval_set("a.b.c").row_count == 3
    monkeypatch.setitem(sys.modules, "databricks.sql", None)
    with pytest.raises(EvalSetError, match=r"agent-eval-schema\[unity-catalog\]"):
        validate_eval_set("a.b.c")


@pytest.mark.xdist_group("spark")
def test_a_table_of_the_active_session(spark: Any, samples: Path) -> None:
    report = validate_eval_set(samples / "good.jsonl")
    rows = [{"request": str(i), "response": "x"} for i in range(4)]
    catalog = spark.catalog.currentCatalog()
    spark.createDataFrame(rows).write.mode("overwrite").saveAsTable("default.places_rows")
    try:
        found = validate_eval_set(f"{catalog}.default.places_rows")
        assert (summary_of(found).name, found.row_count, found.counts) == (f"{catalog}.default.places_rows", 4, {})
        with pytest.raises(EvalSetError, match="Spark cannot read it"):
            validate_eval_set(f"{catalog}.default.nothing")
    finally:
        spark.sql("DROP TABLE default.places_rows")
    assert report.ok
