"""Spark: the verdicts and the report of a DataFrame are those of the same rows anywhere else."""

import datetime
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetError, diff_eval_sets, eval_set_from_traces, normalize_eval_set, validate_eval_set
from agent_eval_schema.io.spark import in_python, kept_until_read, lists_filled, plainly_named
from agent_eval_schema.validation.spark import spark_validate

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

DOCUMENTS = pa.list_(pa.struct([("doc_uri", pa.string()), ("content", pa.string())]))


def rows(first: int, size: int) -> pa.Table:
    """Rows of which every fifth asks nothing and every 100th has the id of the first such."""
    numbers = range(first, first + size)
    return pa.table(
        {
            "request_id": [f"id-{1 if n % 100 == 1 else n}" for n in numbers],
            "request": [
                " " if n % 5 == 0 else json.dumps({"messages": [{"role": "user", "content": f"q {n}"}]})
                for n in numbers
            ],
            "response": [f"answer {n}" for n in numbers],
            "expected_retrieved_context": pa.array(
                [[{"doc_uri": f"d/{n}", "content": None}] for n in numbers], DOCUMENTS
            ),
            "tags": pa.array([[("n", str(n))] for n in numbers], pa.map_(pa.string(), pa.string())),
            "asked at": pa.array(
                [datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)] * size, pa.timestamp("us", "UTC")
            ),
            "day": [datetime.date(2026, 11, 1)] * size,
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for part in range(3):
        pq.write_table(rows(part * 150, 150), folder / f"{part}.parquet")
    return folder


@pytest.fixture
def df(spark: Any, files: Path) -> Any:
    return spark.read.parquet(str(files))


@pytest.fixture
def in_order(df: Any) -> pd.DataFrame:
    """The same rows in memory, in Spark's order."""
    order = [int(row["response"].split()[1]) for row in df.select("response").toLocalIterator()]
    table = rows(0, 450)
    return table.take([table["response"].to_pylist().index(f"answer {n}") for n in order])


def test_the_report_is_that_of_the_rows_in_memory(df: Any, in_order: pa.Table) -> None:
    there, here = validate_eval_set(df), validate_eval_set(in_order)
    assert there.counts == here.counts
    assert there.counts["AE901"] == 4
    assert json.loads(there.to_json()) == json.loads(here.to_json())
    assert there.valid_mask.tolist() == here.valid_mask.tolist()
    pd.testing.assert_frame_equal(there.issues, here.issues)
    pd.testing.assert_frame_equal(there.metric_support, here.metric_support)
    columns = [name for name in here.rows if name not in ("asked at", "day")]
    pd.testing.assert_frame_equal(there.rows[columns], here.rows[columns])


def test_valid_and_invalid_rows_are_data_frames(df: Any) -> None:
    report = validate_eval_set(df)
    assert report.invalid.schema == df.schema
    assert report.invalid.count() == report.invalid_count == 94
    assert report.valid.count() == report.valid_count
    asked = [row["request"] for row in report.invalid.where("request_id <> 'id-1'").select("request").collect()]
    assert set(asked) == {" "}
    found = report.valid.unionByName(report.invalid).select("response")
    assert sorted(r[0] for r in found.collect()) == sorted(r[0] for r in df.select("response").collect())


def test_a_verdict_for_every_row(df: Any) -> None:
    verdicts = spark_validate(df)
    assert verdicts.columns == ["request_id", "_valid", "_issues"]
    found = verdicts.collect()
    assert len(found) == 450
    wrong = [row for row in found if not row["_valid"]]
    assert Counter(row["_issues"][0]["code"] for row in wrong) == {"AE202": 90, "AE901": 4}
    issue = next(row for row in wrong if row["_issues"][0]["code"] == "AE202")["_issues"][0].asDict()
    assert {n: issue[n] for n in ("name", "severity", "column")} == {
        "name": "blank-request",
        "severity": "error",
        "column": "request",
    }
    lines = verdicts.selectExpr("request_id", "inline(_issues)")
    assert lines.columns[:4] == ["request_id", "code", "name", "severity"]


def test_whole_rows_with_their_verdict(df: Any) -> None:
    invalid = spark_validate(df, keep=df.columns).where("not _valid").drop("_valid", "_issues")
    assert invalid.schema == df.schema
    assert invalid.drop("tags").exceptAll(df.drop("tags")).count() == 0
    blank = invalid.where("request_id <> 'id-1'")
    assert {tuple(row) for row in blank.select("request", "asked at").collect()} == {
        (" ", df.select("asked at").first()[0])
    }


def test_rules_can_be_chosen(df: Any) -> None:
    assert spark_validate(df, ignore=["AE202", "AE901"]).where("not _valid").count() == 0
    assert validate_eval_set(df, select="AE9").counts.keys() == {"AE901"}
    with pytest.raises(EvalSetError, match="nonsense"):
        spark_validate(df, select="nonsense")
    with pytest.raises(EvalSetError, match="format: expected one of"):
        spark_validate(df, format="odd")


@pytest.mark.parametrize(("column", "outputs"), [("response", "provided"), ("expected_response", "generated")])
def test_outputs_are_looked_for(spark: Any, column: str, outputs: str) -> None:
    """A single response in the last partition says that outputs are provided."""
    given = spark.range(0, 400, 1, 4).selectExpr("'Hi' AS request", f"CASE WHEN id = 399 THEN 'x' END AS {column}")
    report = validate_eval_set(given)
    assert (report.outputs, report.row_count) == (outputs, 400)
    invalid = spark_validate(given).where("not _valid").count()
    assert invalid == (399 if outputs == "provided" else 0)


def test_values_are_not_said(df: Any) -> None:
    said = {row["message"] for row in spark_validate(df, show_values=False).selectExpr("inline(_issues)").collect()}
    assert said == {i.message for i in validate_eval_set(df, show_values=False).iter_issues() if i.row is not None}


def test_a_data_frame_without_rows(df: Any) -> None:
    report = validate_eval_set(df.limit(0))
    assert (report.row_count, report.counts["AE101"]) == (0, 1)
    assert report.format == "databricks"
    assert spark_validate(df.limit(0)).count() == 0


def test_names_that_need_quotes(spark: Any) -> None:
    given = spark.createDataFrame([("Hi", 1, 2)], "request string, `a``b c` int, `request.id` int")
    assert spark_validate(given, keep=given.columns).first()[:3] == ("Hi", 1, 2)
    assert validate_eval_set(given).valid.collect() == given.collect()
    taken = spark.createDataFrame([("Hi", True)], "request string, _valid boolean")
    with pytest.raises(EvalSetError, match="rename the column _valid"):
        spark_validate(taken, keep=taken.columns)
    assert spark_validate(taken).columns == ["_valid", "_issues"]


def test_other_verbs_take_data_frames(df: Any, in_order: pa.Table) -> None:
    assert diff_eval_sets(in_order, df).same
    assert normalize_eval_set(df.where("request <> ' ' AND request_id <> 'id-1'")).count() == 355


def test_the_report_as_a_page_shows_the_cells(df: Any) -> None:
    assert "AE202" in validate_eval_set(df).to_html()


def test_null_lists_come_back_as_they_were(spark: Any) -> None:
    """On the way to Python there are none."""
    cells = [(1, ["a"], None, None), (2, None, {}, [[]]), (3, [], {"k": "v"}, []), (4, [None], {"k": None}, [None])]
    df = plainly_named(
        spark.createDataFrame(cells, "n int, l array<string>, m map<string,string>, d array<array<int>>")
    )
    assert lists_filled(df).where("c1 IS NULL OR c2 IS NULL OR c3 IS NULL").count() == 0
    assert [tuple(row) for row in in_python(df, iter, df.schema).orderBy("c0").collect()] == cells
    none = in_python(df.where("c0 = 2").select("c0", "c1"), iter, "c0 int, c1 array<string>")
    assert [tuple(row) for row in none.collect()] == [(2, None)]


FOREIGN = {"question": "request", "info.reply": "response", "ctx[].text": "retrieved_context[].content"}


def test_columns_are_named_where_the_rows_are(spark: Any) -> None:
    given = [
        {
            "request_id": f"id-{n}",
            "question": " " if n == 1 else f"q {n}",
            "info": {"reply": "a"},
            "ctx": [{"text": "t"}],
        }
        for n in range(4)
    ]
    schema = "request_id string, question string, info struct<reply: string>, ctx array<struct<text: string>>"
    df = spark.createDataFrame([tuple(row.values()) for row in given], schema)
    there, here = validate_eval_set(df, columns=FOREIGN), validate_eval_set(given, columns=FOREIGN)
    assert there.counts == here.counts
    assert there.counts["AE202"] == 1
    assert there.metric_support.equals(here.metric_support)
    checked = spark_validate(df, columns=FOREIGN, keep=["request_id", "question"]).collect()
    assert {row["request_id"]: row["_valid"] for row in checked} == {f"id-{n}": n != 1 for n in range(4)}
    with pytest.raises(EvalSetError, match="columns: expected one of"):
        spark_validate(df, columns={"qestion": "request"})


def test_spans_in_rows_are_collected_by_trace(spark: Any) -> None:
    told = {"openinference.span.kind": "AGENT", "input.value": "How many days?", "output.value": "12 days."}
    spans = [
        (
            trace,
            f"{trace}{n}",
            None if n == 0 else f"{trace}0",
            "agent",
            1_000 * n,
            1_000 * n + 9,
            told if n == 0 else {},
        )
        for n in range(2)
        for trace in ("a", "b")
    ]
    names = "trace_id string, span_id string, parent_span_id string, name string, start_time bigint, end_time bigint"
    df = spark.createDataFrame(spans, f"{names}, attributes map<string, string>")
    found = eval_set_from_traces(df)
    assert {tuple(row) for row in found.select("request_id", "response").collect()} == {
        ("a", "12 days."),
        ("b", "12 days."),
    }
    with pytest.raises(EvalSetError, match="expected a trace per row, got a span per row: collect them first"):
        spark_validate(df)
    from pyspark.sql.functions import collect_list, struct, to_json

    traces = df.groupBy("trace_id").agg(to_json(collect_list(struct("*"))).alias("trace"))
    checked = spark_validate(traces, keep=["trace_id"]).collect()
    assert {row["trace_id"]: row["_valid"] for row in checked} == {"a": True, "b": True}


def test_a_stream_ends_where_spark_does_not_listen(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector may end a stream within another call of Spark, which takes no second one."""
    df = spark.range(3)

    def unpersist() -> None:
        raise RuntimeError("reentrant call")

    monkeypatch.setattr(df, "unpersist", unpersist)
    with kept_until_read(df) as kept:
        assert kept.count() == 3
