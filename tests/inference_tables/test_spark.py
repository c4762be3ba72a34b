"""A set built on Spark is the set that the embedded engine builds, row for row."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetBuild, EvalSetError
from agent_eval_schema.cells.arrow import unpack
from agent_eval_schema.cli import main
from agent_eval_schema.inference_tables.build import eval_set_from_inference_table
from agent_eval_schema.inference_tables.finish.finish import EXCLUDED
from agent_eval_schema.inference_tables.spark import spark_from_inference_table
from agent_eval_schema.schema import COLUMNS
from tests.helpers import logged_calls as logged

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

UTC = datetime.timezone.utc
RECORDS = [{"messages": [{"role": "user", "content": text}]} for text in ("one", "two")]
EDITED = {"ratings": {"answer_correct": {"value": "positive"}}, "suggested_output": "better"}


def call(n: int, **other: Any) -> dict[str, Any]:
    """A call as an AI Gateway logs it."""
    asked = {"messages": [{"role": "user", "content": f"What is {n % 40}? I am ann{n}@example.org, +1 202 555 0143"}]}
    said = {"choices": [{"message": {"role": "assistant", "content": f"It is {n}."}}]}
    time = datetime.datetime(2026, 11, 1 + n % 3, n % 24, tzinfo=UTC)
    return {
        "databricks_request_id": f"id-{n}",
        "client_request_id": None,
        "request_time": time,
        "request_date": time.date(),
        "status_code": 200,
        "execution_duration_ms": n,
        "request": json.dumps(asked),
        "response": json.dumps(said),
        "logging_error_codes": None,
        "served_entity_id": f"entity {n % 2}",
        "requester": "ann",
        **other,
    }


def feedback(n: int, on: str, **assessment: Any) -> dict[str, Any]:
    record = {"request_id": on, "source": {"type": "human", "id": "bo"}, "text_assessments": assessment}
    return call(n, request=json.dumps({"dataframe_records": [record]}), response="")


TABLE = [
    *(call(n) for n in range(90)),
    *(call(n) for n in range(7)),  # delivered again
    *(call(n, status_code=429) for n in (100, 101)),
    call(110, request='{"messages": [{"role'),
    call(111, request=None, logging_error_codes=["MAX_REQUEST_SIZE_EXCEEDED"]),
    call(112, response=None),
    call(120, request=json.dumps({"dataframe_records": RECORDS}), response=json.dumps({"predictions": ["a", "b"]})),
    call(121, request=json.dumps({"dataframe_records": RECORDS}), response=json.dumps({"predictions": ["a"]})),
    feedback(130, "id-5", **EDITED),
    feedback(131, "id-6", ratings={"answer_correct": {"value": "negative"}}),
    feedback(132, "id-5", ratings={"answer_correct": {"value": "positive"}}),
    feedback(133, "nobody", **EDITED),
    call(8, response=json.dumps({"choices": [{"message": {"role": "assistant", "content": "other"}}]})),  # a conflict
    call(140),  # the question of call 60
    feedback(141, "id-60", **EDITED),
]
"""Every reason, in few rows."""

SCHEMA = pa.schema(
    [
        ("databricks_request_id", pa.string()),
        ("client_request_id", pa.string()),
        ("request_time", pa.timestamp("us", "UTC")),
        ("request_date", pa.date32()),
        ("status_code", pa.int32()),
        ("execution_duration_ms", pa.int64()),
        ("request", pa.string()),
        ("response", pa.string()),
        ("logging_error_codes", pa.list_(pa.string())),
        ("served_entity_id", pa.string()),
        ("requester", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.Table.from_pylist(TABLE, SCHEMA)


@pytest.fixture(scope="module")
def df(spark: Any, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("payload")
    for part in range(3):
        pq.write_table(table.slice(part * 40, 40), folder / f"{part}.parquet")
    return spark.read.parquet(str(folder))


def hashes(rows: list[dict[str, Any]]) -> list[str]:
    """One hash a row, sorted: what a row says, without what engines write differently."""
    return sorted(hashlib.sha256(repr(sorted(map(plain, row.items()))).encode()).hexdigest() for row in rows)


def plain(item: tuple[str, Any]) -> tuple[str, Any]:
    name, value = item
    if isinstance(value, datetime.datetime):
        return name, value.timestamp()
    if isinstance(value, dict) and name != "request":
        return name, sorted(value.items())
    if isinstance(value, list):
        return name, [v.asDict() if hasattr(v, "asDict") else v for v in value]
    return name, value


def embedded_rows(build: EvalSetBuild[Any]) -> list[dict[str, Any]]:
    rows = [row for batch in build.iter_batches() for row in batch.to_pylist()]
    return [{n: dict(v) if n in ("tags", "guidelines") and v is not None else v for n, v in r.items()} for r in rows]


def spark_rows(df: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in df.collect()]


OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "fraction of strata, by question": {"sample": 0.3, "stratify": "day", "dedupe": "question"},
    "thumbs": {"sample": 30, "stratify": "thumbs", "dedupe": None},
    "redacted": {
        "since": "2026-11-02",
        "until": "2026-11-03T09:00:00Z",
        "include": ["status", "invalid"],
        "redact": "default",
    },
    "near duplicates, balanced": {"dedupe": "near", "near": 0.6, "balance_by": "day", "sample": 9},
    "SQL": {"where": "execution_duration_ms < 60", "stratify": "execution_duration_ms % 3", "sample": 12, "seed": 3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_both_engines_build_the_same_set(table: pa.Table, df: Any, options: dict[str, Any]) -> None:
    here = eval_set_from_inference_table(table, **options)
    with spark_from_inference_table(df, **options) as there:
        assert hashes(spark_rows(there.rows)) == hashes(embedded_rows(here))
        aside = [row for batch in here.iter_excluded() for row in batch.to_pylist()]
        assert hashes(spark_rows(there.excluded)) == hashes(aside)
        assert numbers(there) == numbers(here)
        assert there.rows.columns[: len(COLUMNS)] == list(COLUMNS)
        assert there.excluded.columns == EXCLUDED.names


@pytest.mark.parametrize(
    "options",
    [
        {"dedupe": "near", "sample": 0.5, "stratify": "day", "labels": None},
        {"dedupe": "question", "balance_by": "execution_duration_ms % 3", "sample": 30, "redact": "default"},
    ],
)
def test_both_engines_extend_a_dataset_alike(
    spark: Any, table: pa.Table, df: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    first = eval_set_from_inference_table(table, sample=20, labels=None)
    known = pa.Table.from_batches(first.iter_batches())
    known = known.append_column("reviewer", pa.array([f"r{i % 2}" for i in range(len(known))]))
    pq.write_table(known, tmp_path / "first.parquet")
    here = eval_set_from_inference_table(table, extend=str(tmp_path / "first.parquet"), **options)
    existing = spark.read.parquet(str(tmp_path / "first.parquet"))
    with spark_from_inference_table(df, extend=existing, **options) as there:
        assert hashes(spark_rows(there.rows)) == hashes(embedded_rows(here))
        assert numbers(there) == numbers(here)
        assert there.rows.columns[-1] == "reviewer"
        changed = [row.asDict() for row in there.updates.collect()]
        assert hashes(changed) == hashes(here.updates.to_dict("records"))
        assert len(changed) == here.summary.existing["updated"]


def test_what_is_made_of_a_build_is_planned_without_its_steps(df: Any) -> None:
    """Of 120 rows, analyzing the plan of all steps again for each table took most of the time."""
    with spark_from_inference_table(df, dedupe="near", sample=0.5, stratify="day") as build:
        plan = build.rows._jdf.queryExecution().analyzed().toString()
        assert "LogicalRDD" in plan
        assert plan.count("\n") < 6


def numbers(build: EvalSetBuild[Any]) -> dict[str, Any]:
    """All numbers of the summary: the two only differ in who built it, and how long that took."""
    found: dict[str, Any] = json.loads(build.summary.to_json())
    return {name: value for name, value in found.items() if name not in ("engine", "seconds")}


def test_the_report_is_that_of_the_embedded_engine(table: pa.Table, df: Any) -> None:
    here = eval_set_from_inference_table(table, include=["invalid"])
    with spark_from_inference_table(df, include=["invalid"]) as there:
        assert there.report.counts == here.report.counts
        assert there.report.counts["AE223"] == 1
        assert there.report.row_count == there.rows.count() == len(here.rows)
        invalid = [row["request_id"] for row in there.report.invalid.collect()]
        assert invalid == here.report.invalid["request_id"].tolist() == ["id-112"]
        assert "AE223" in there.to_html()


def test_tables_beside(spark: Any, table: pa.Table, df: Any) -> None:
    """Traces and an assessment log are joined as the embedded engine joins them."""
    traces = pa.table({"trace": [trace(n) for n in (3, 4)]})
    log = pa.table(
        {
            "request_id": ["id-8"],
            "source": [json.dumps({"type": "human", "id": "cy"})],
            "timestamp": pa.array([datetime.datetime(2026, 11, 5, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "text_assessment": [json.dumps(EDITED)],
            "retrieval_assessment": pa.array([None], pa.string()),
        }
    )
    here = eval_set_from_inference_table(table, traces=traces, labels=log)
    with spark_from_inference_table(df, traces=there_of(spark, traces), labels=there_of(spark, log)) as there:
        assert hashes(spark_rows(there.rows)) == hashes(embedded_rows(here))
        assert numbers(there) == numbers(here)
        assert there.summary.traces_joined == 2
        assert there.summary.labels == {"expected_response": 1}


def there_of(spark: Any, table: pa.Table) -> Any:
    types = ", ".join(f"{f.name} {'timestamp' if pa.types.is_timestamp(f.type) else 'string'}" for f in table.schema)
    return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], types)


def trace(n: int) -> str:
    asked = {"messages": [{"role": "user", "content": f"What is {n}?"}]}
    attributes = {"mlflow.spanInputs": json.dumps(asked), "mlflow.spanOutputs": json.dumps(f"It is {n}, by the trace.")}
    span = {
        "name": "agent",
        "trace_id": "AAAAAAAAAAAAAAAAAAAAAA==",
        "span_id": "AAAAAAAAAAA=",
        "parent_span_id": None,
        "start_time_unix_nano": 1,
        "end_time_unix_nano": 2,
        "status": {"code": "STATUS_CODE_OK"},
        "attributes": {**attributes, "mlflow.spanType": json.dumps("AGENT")},
    }
    info = {"trace_id": f"tr-{n}", "client_request_id": f"id-{n}", "state": "OK", "trace_metadata": {}, "tags": {}}
    return json.dumps({"info": info, "data": {"spans": [span]}})


def test_a_function_redacts(df: Any) -> None:
    with spark_from_inference_table(df, redact=lambda text: text.replace("ann", "***"), sample=5) as build:
        asked = " ".join(row["request"] for row in build.rows.collect())
        assert "***" in asked
        assert "ann" not in asked
        assert build.summary.redaction == "hook"


def answered_anew(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        at = batch.schema.get_field_index("response")
        yield batch.set_column(at, "response", pa.array([str(uuid.uuid4()) for _ in range(batch.num_rows)]))


def test_a_table_is_read_once(df: Any) -> None:
    """What was read is kept: rows that another reading would not give are no trouble."""
    with spark_from_inference_table(df.mapInArrow(answered_anew, df.schema), sample=20) as build:
        assert build.rows.count() == build.summary.rows == 20
        assert build.rows.count() + build.excluded.count() == build.summary.records


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on serverless compute, or after executors were lost."""
    monkeypatch.setattr("agent_eval_schema.inference_tables.spark.persisted", lambda df, **_: df)
    monkeypatch.setattr("agent_eval_schema.inference_tables.spark.unpersist", id)


@pytest.mark.usefixtures("nothing_kept")
def test_rows_that_change_between_two_readings_are_told_not_mixed_up(df: Any) -> None:
    """What was decided about one row is not done to another."""
    from pyspark.errors import PySparkException

    restless = df.mapInArrow(answered_anew, df.schema)
    with (
        spark_from_inference_table(restless) as build,
        pytest.raises(PySparkException, match="persist it, or write it"),
    ):
        build.rows.collect()


@pytest.mark.usefixtures("nothing_kept")
def test_a_set_is_built_where_nothing_can_be_kept(table: pa.Table, df: Any) -> None:
    here = eval_set_from_inference_table(table, sample=20)
    with spark_from_inference_table(df, sample=20) as there:
        assert hashes(spark_rows(there.rows)) == hashes(embedded_rows(here))


def test_a_table_without_rows(df: Any) -> None:
    with spark_from_inference_table(df.limit(0)) as build:
        assert build.rows.count() == build.excluded.count() == 0
        assert build.summary.logged == build.summary.rows == build.report.row_count == 0


def test_few_packed_rows_go_into_python_at_once(df: Any) -> None:
    """Spark sends 10,000 lines at once: a packed batch stands in the first of as many lines as it has rows."""
    with spark_from_inference_table(df, sample=20) as build:
        for name in ("rows", "excluded"):
            packed = [row[name] for row in build._built.select(name).collect()]
            cells = [cell for cell in packed if cell is not None]
            assert len(packed) == build.summary.records
            assert sum(unpack(cell).num_rows for cell in cells) == getattr(build, name).count()


def test_what_is_no_data_frame_is_told(df: Any, table: pa.Table) -> None:
    with pytest.raises(EvalSetError, match="table: on Spark expected a DataFrame of Spark, got a Table"):
        spark_from_inference_table(table)
    with pytest.raises(EvalSetError, match="traces: on Spark expected a DataFrame"):
        spark_from_inference_table(df, traces="traces.parquet")
    with pytest.raises(EvalSetError, match="missing column"):
        spark_from_inference_table(df, labels=df)
    with pytest.raises(EvalSetError, match="sample"):
        spark_from_inference_table(df, sample=-1)


def test_the_verb_takes_data_frames(df: Any) -> None:
    build = eval_set_from_inference_table(df, engine="spark", sample=4)
    assert build.rows.count() == 4
    build.close()


@pytest.fixture
def no_broadcast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.inference_tables.spark.SENT_TO_ALL", 0)


@pytest.mark.usefixtures("no_broadcast")
def test_decisions_that_are_too_many_to_be_sent_are_joined(
    spark: Any, table: pa.Table, df: Any, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        with spark_from_inference_table(df, sample=20) as there:
            there.rows.write.parquet(str(tmp_path / "rows"))
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    found = pq.read_table(tmp_path / "rows").column("request_id").to_pylist()
    assert sorted(found) == sorted(eval_set_from_inference_table(table, sample=20).rows["request_id"])


def test_the_command_line_on_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same rows as without, in a folder of Parquet files that is there whole, with its manifest."""
    source, aside = tmp_path / "t.parquet", tmp_path / "aside.parquet"
    pq.write_table(logged.table(logged.EVERYTHING), source)
    outs = {engine: tmp_path / f"{engine}.parquet" for engine in ("embedded", "spark")}
    assert main(["from-inference-table", str(source), str(outs["embedded"]), "--sample", "3", "-q"]) == 0
    more = ["--sample", "3", "--engine", "spark", "--excluded", str(aside), "-q"]
    assert main(["from-inference-table", str(source), str(outs["spark"]), *more]) == 0
    found = [sorted(pq.read_table(out).column("request_id").to_pylist()) for out in outs.values()]
    assert found[0] == found[1]
    assert len(found[0]) + pq.read_table(aside).num_rows == 11
    told = json.loads((tmp_path / "spark.parquet.manifest.json").read_text())
    assert told["summary"]["rows"] == 3
    assert told["command"].endswith("--engine spark")
    capsys.readouterr()
    assert main(["from-inference-table", str(source), str(outs["spark"]), *more]) == 2
    assert "there is something already" in capsys.readouterr().err


def test_a_table_may_have_columns_that_are_named_like_ours(spark: Any, tmp_path: Path) -> None:
    more = {"wanted": "no", "stratum": "one", "__place__": "here", "__found__": "x", "a.b": "dot", "a`b": "tick"}
    table = pa.Table.from_pylist([call(n, logging_error_codes="", **more) for n in range(30)])
    pq.write_table(table, tmp_path / "logged.parquet")
    options: dict[str, Any] = {"where": "execution_duration_ms < 20", "stratify": "execution_duration_ms % 2"}
    here = eval_set_from_inference_table(table, sample=6, seed=1, **options)
    df = spark.read.parquet(str(tmp_path / "logged.parquet"))
    with spark_from_inference_table(df, sample=6, seed=1, **options) as there:
        assert hashes(spark_rows(there.rows)) == hashes(embedded_rows(here))
        assert numbers(there) == numbers(here)
        assert len(here.rows) == 6
