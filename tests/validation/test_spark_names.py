"""Columns with hostile names on Spark: each verb gives what it gives of the same table in memory."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import convert_eval_set, normalize_eval_set, spark_validate, validate_eval_set, write_eval_set

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

NAMES = {
    "hostile": [
        *("a.b", "a`b", 'a"b', "a'b", "-", "\\", "*", "`", "a,b;{}()\n\t="),
        *("a b", " a ", "", " ", "__index_level_0__", "__proto__", "_c0", "größe", "名前", "x" * 300),
        *("place", "part", "row", "found", "valid", "c0", "c1", "__place__", "__found__", "__notes__", "wanted"),
    ],
    "of one spelling": ["Team", "team", "TEAM"],
}


def of_names(kind: str) -> pa.Table:
    names = ["request_id", "request", "response", *NAMES[kind]]
    cells = [[f"{name[:9]} {i % 3}" for name in names] for i in range(4)]  # the last row has the ID of the first
    return pa.table(dict(zip(names, map(list, zip(*cells, strict=True)), strict=True)))


def on_spark(spark: Any, table: pa.Table) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in table.column_names])
    return spark.createDataFrame([list(row.values()) for row in table.to_pylist()], schema)


@pytest.fixture(scope="module", params=NAMES)
def tables(request: pytest.FixtureRequest, spark: Any) -> tuple[Any, pa.Table, list[str]]:
    table = of_names(request.param)
    return on_spark(spark, table), table, table.column_names


def test_the_verdict(tables: tuple[Any, pa.Table, list[str]]) -> None:
    df, table, names = tables
    report, expected = validate_eval_set(df), validate_eval_set(table)
    assert list(report.iter_issues()) == list(expected.iter_issues())
    assert [list(row) for row in report.valid.collect()] == [list(row.values()) for row in table.to_pylist()[:3]]
    checked = spark_validate(df, keep=names)
    assert checked.columns == [*names, "_valid", "_issues"]
    assert [list(row)[: len(names)] for row in checked.collect()] == [list(row.values()) for row in table.to_pylist()]


def test_normalized_rows(tables: tuple[Any, pa.Table, list[str]]) -> None:
    df, table, names = tables
    rows, expected = normalize_eval_set(df, on_invalid="drop"), normalize_eval_set(table, on_invalid="drop")
    assert rows.columns == expected.column_names
    places = [rows.columns.index(name) for name in names if name != "request"]
    found = [[row[at] for at in places] for row in rows.collect()]
    assert found == [[row[n] for n in names if n != "request"] for row in table.to_pylist()[:3]]


def test_converted_rows(tables: tuple[Any, pa.Table, list[str]]) -> None:
    df, table, _ = tables
    found, expected = convert_eval_set(df, "ragas"), convert_eval_set(table, "ragas")
    names = list(expected.data.columns)
    assert set(found.data.columns) >= set(names)  # Spark's have all columns of the target
    places = [found.data.columns.index(name) for name in names]
    assert [[row[at] for at in places] for row in found.data.collect()] == expected.data.to_numpy().tolist()
    losses = sorted((row["code"], row["column"] or "", row["message"]) for row in found.losses.collect())
    assert losses == sorted((i.code, i.column or "", i.message) for i in expected.losses.fillna("").itertuples())


def test_written_rows(tables: tuple[Any, pa.Table, list[str]], tmp_path: Path) -> None:
    df, _, names = tables
    rows = normalize_eval_set(df, on_invalid="drop")
    if len({name.lower() for name in names}) < len(names):
        with pytest.raises(Exception, match=r"rows.parquet: .*team"):
            write_eval_set(rows, tmp_path / "rows.parquet")
        return
    assert write_eval_set(rows, tmp_path / "rows.parquet") == 3
    assert validate_eval_set(str(tmp_path / "rows.parquet")).row_count == 3
