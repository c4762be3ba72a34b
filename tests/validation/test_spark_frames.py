"""Spark in, Spark out: the rows that a verb returns are those of the same table in memory, and none is collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import (
    EvalSetError,
    InvalidEvalSetError,
    metric_support,
    normalize_eval_set,
    spark_validate,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.formats.opening import open_source
from tests.conftest import SAMPLES, as_arrow
from tests.helpers.spark_tables import nothing_collected, on_spark

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

FILES = ["broken.jsonl", "broken_mlflow.jsonl", "inspect_broken.jsonl", "search_traces.jsonl", "ragas.jsonl"]


def table_of(name: str) -> pa.Table:
    """The rows of a sample as a table of texts."""
    rows = [row for batch in open_source(SAMPLES / name).batches() for row in native_rows(batch)]
    return as_arrow(rows, SAMPLES)


def rows_of(df: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]


def in_memory(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of an Arrow table, its maps as dicts."""
    maps = [f.name for f in table.schema if pa.types.is_map(f.type)]
    return [{n: dict(v) if n in maps and v is not None else v for n, v in row.items()} for row in table.to_pylist()]


@pytest.mark.parametrize("name", FILES)
def test_normalized_rows_are_those_of_the_table_in_memory(spark: Any, name: str) -> None:
    table = table_of(name)
    df = on_spark(spark, table)
    with nothing_collected(df):
        kept = normalize_eval_set(df, on_invalid="keep")
        valid = normalize_eval_set(df, on_invalid="drop")
    assert rows_of(kept) == in_memory(normalize_eval_set(table, on_invalid="keep"))
    assert rows_of(valid) == in_memory(normalize_eval_set(table, on_invalid="drop"))
    assert kept.count() == valid.count() + validate_eval_set(table).invalid_count


LOGGED = json.dumps({"info": {"trace_id": "tr-1"}, "data": {"spans": []}})
SHARED = [
    {"request": " ", "response": "invalid", "trace": LOGGED},  # the first row of the trace
    {"request": "Hi", "response": "its trace", "trace": LOGGED},
    {"request_id": "tr-1", "request": "Ho", "response": "an ID of its own"},
    {"request_id": "a", "request": "Hi", "response": "a"},
    {"request_id": "a", "request": "Hi", "response": "b"},
    {"request_id": "b", "request": "Hi", "response": "c"},
    {"request_id": "tr-1", "request": "Ha", "response": "the same ID of its own"},
    {"request": "He", "response": "the trace again", "trace": LOGGED},
    {"request_id": "a", "request": "Hu", "response": "d"},
]


def test_an_id_of_a_row_in_another_partition_is_a_duplicate(spark: Any) -> None:
    table = as_arrow(SHARED, SAMPLES)
    df = on_spark(spark, table)
    assert df.rdd.getNumPartitions() == 2
    expected = normalize_eval_set(table, on_invalid="drop")["response"].to_pylist()
    assert expected == ["its trace", "an ID of its own", "a", "c", "the trace again"]
    with nothing_collected(df):
        found = normalize_eval_set(df, on_invalid="drop")
    assert [row["response"] for row in found.collect()] == expected


ISSUE = ("code", "severity", "column", "path", "message", "hint")


@pytest.mark.parametrize("name", [*FILES, "an ID twice", "names of their own"])
def test_the_issues_of_each_row_are_those_of_the_report(spark: Any, name: str) -> None:
    table = table_of(name) if name in FILES else as_arrow(SHARED, SAMPLES)
    columns = None
    if name == "names of their own":
        truths = [{**row, "expected_response": row["response"]} for row in SHARED]
        table = as_arrow(truths, SAMPLES).rename_columns({"request_id": "key", "expected_response": "truth"})
        columns = {"key": "request_id", "truth": "expected_response"}
    df = on_spark(spark, table)
    with nothing_collected(df):
        checked = spark_validate(df, columns=columns, keep=df.columns)
    report = validate_eval_set(table, columns=columns)
    found = checked.collect()
    assert [row["_valid"] for row in found] == report.valid_mask.tolist()
    assert [row.asDict()[table.column_names[0]] for row in found] == table.column(0).to_pylist()
    expected = [issue for issue in report.iter_issues() if issue.row is not None]
    issues = [(at, *(issue[n] for n in ISSUE)) for at, row in enumerate(found) for issue in row["_issues"] or ()]
    issues = [issue for issue in issues if issue[1] != "AE909"]  # which the report has once
    assert issues == [
        (i.row, *(str(getattr(i, n)) if n == "severity" else getattr(i, n) for n in ISSUE)) for i in expected
    ]
    if name == "names of their own":
        assert {"AE901", "AE902"} <= {code for _, code, *_ in issues}


SPOKEN = json.dumps([{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}])
KINDS: dict[str, list[dict[str, Any]]] = {
    "vertex": [
        {"prompt": "Hi", "response": "a"},
        {"prompt": "Ho", "response": None},
        {"prompt": "Hu", "response": "b"},
    ],
    "ragas": [{"user_input": "Hi"}, {"user_input": SPOKEN}, {"user_input": "Ho"}],
    "mlflow": [{"inputs": {"question": "Hi"}}, {"inputs": {"goal": "Book a flight"}}, {"inputs": {"question": "Ho"}}],
}


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_the_less_frequent_kind_have_the_warning_of_the_report(spark: Any, name: Any) -> None:
    for kinds in (KINDS[name], KINDS[name][::2]):
        table = as_arrow(kinds, SAMPLES)
        options: dict[str, Any] = {
            "format": name,
            "outputs": "generated" if name == "mlflow" else "provided",
            "ignore": ["AE223"],
        }
        issues = spark_validate(on_spark(spark, table), keep=[], **options).select("_issues").collect()
        found = [[issue["message"] for issue in row[0] if issue["code"] == "AE909"] for row in issues]
        reported = [i.message for i in validate_eval_set(table, **options).issues.itertuples() if i.code == "AE909"]
        assert [message for row in found for message in row] == [m.partition(": the fewer")[0] for m in reported]
        assert [bool(row) for row in found] == [False, len(kinds) == 3, False][: len(kinds)]
        ignored = spark_validate(on_spark(spark, table), keep=[], **{**options, "ignore": ["AE909"]}).select("_issues")
        assert not any(issue["code"] == "AE909" for row in ignored.collect() for issue in row[0])


@pytest.mark.xdist_group("spark")
def test_a_column_that_a_format_adds_for_one_row_is_there(spark: Any) -> None:
    """Of a batch per row only that of the last row has the column, and none without rows has it."""
    table = table_of("azure.jsonl")
    expected = in_memory(normalize_eval_set(table, on_invalid="keep"))
    assert [row["azure_ground_truth"] is None for row in expected] == [True, True, False]
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    size = spark.conf.get(setting)
    spark.conf.set(setting, 1)
    try:
        assert rows_of(normalize_eval_set(on_spark(spark, table), on_invalid="keep")) == expected
    finally:
        spark.conf.set(setting, size)


def test_columns_keep_their_types(spark: Any) -> None:
    types = "n smallint, x float, d decimal(10,2), day date, at timestamp, local timestamp_ntz, s struct<`a b`: int>"
    cells = "1S AS n, 1.5F AS x, 2.25BD AS d, DATE'2026-01-01' AS day, TIMESTAMP'2026-01-01' AS at"
    more = "TIMESTAMP_NTZ'2026-01-01' AS local, NAMED_STRUCT('a b', 1) AS s, INTERVAL '1' DAY AS i"
    df = spark.sql(f"SELECT 'Hi' AS request, 'Ho' AS response, {cells}, {more}")
    names = [part.split()[0] for part in types.replace("(10,2)", "").split(", ")]
    found = normalize_eval_set(df).select(*names)
    assert found.collect() == df.select(*names).collect()
    assert dict(found.dtypes)["d"] != dict(found.dtypes)["n"] == "smallint"


def test_invalid_rows_raise(spark: Any) -> None:
    table = as_arrow(SHARED, SAMPLES)
    with pytest.raises(InvalidEvalSetError) as raised:
        normalize_eval_set(on_spark(spark, table))
    assert raised.value.report.invalid_count == 4
    assert raised.value.report.counts == validate_eval_set(table).counts


def test_cells_are_fixed_where_they_are(spark: Any) -> None:
    chat = json.dumps({"messages": [{"role": "usr", "content": "Hi"}]})
    df = spark.createDataFrame([(chat, "Ho")], "request string, response string")
    assert json.loads(normalize_eval_set(df, fix=True).first()["request"])["messages"][0]["role"] == "user"
    with pytest.raises(EvalSetError, match="rename the column `respone`"):
        normalize_eval_set(df.withColumnRenamed("response", "respone"), fix=True)


def test_rows_that_are_no_rows_of_a_dataset_are_not_fetched(spark: Any) -> None:
    spans = spark.createDataFrame(
        [("a", "b", None, "n")], "trace_id string, span_id string, parent_id string, name string"
    )
    with nothing_collected(spans), pytest.raises(EvalSetError, match="a row of the dataset per row"):
        normalize_eval_set(spans.selectExpr("array(struct(*)) AS resourceSpans"))


def test_an_empty_table_has_the_canonical_columns(spark: Any) -> None:
    df = spark.createDataFrame([], "request string, response string, team string")
    assert normalize_eval_set(df).columns[-1] == "expectations"


def test_metric_support_is_that_of_the_table_in_memory(spark: Any) -> None:
    table = as_arrow(SHARED, SAMPLES)
    df = on_spark(spark, table)
    with nothing_collected(df):
        support = metric_support(df, system="databricks")
    found = rows_of(support)
    assert [(row.pop("row"), row.pop("request_id")) for row in found][2:4] == [(2, "tr-1"), (3, "a")]
    assert found == metric_support(table, system="databricks").to_dict("records")


def test_rows_are_written_by_the_executors(spark: Any, tmp_path: Path) -> None:
    df = on_spark(spark, as_arrow(SHARED, SAMPLES))
    with nothing_collected(df):
        assert write_eval_set(normalize_eval_set(df, on_invalid="drop"), tmp_path / "rows.parquet") == 5
    assert validate_eval_set(tmp_path / "rows.parquet").valid_count == 5
    with pytest.raises(EvalSetError, match=r"rows\.csv: Spark writes a folder"):
        write_eval_set(df, tmp_path / "rows.csv")
