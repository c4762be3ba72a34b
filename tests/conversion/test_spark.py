"""A conversion on Spark: its rows and its losses are those of a conversion to a file, and none is collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import EvalSetError, InvalidEvalSetError, convert_eval_set, validate_eval_set
from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.conversion.convert import convert_file
from agent_eval_schema.conversion.spark import LOSS, Choice, _losses, _written
from agent_eval_schema.conversion.work import Work, plan_of
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.formats.registry import find_format
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.spark_frames import Part
from tests.conftest import SAMPLES, as_arrow
from tests.helpers.spark_tables import nothing_collected, on_spark

Row = dict[str, Any]

OF_ROWS = [name for name in TARGETS if (writer := find_format(name).writer) is not None and writer.document is None]


def table_of(name: str) -> pa.Table:
    rows = [row for batch in open_source(SAMPLES / name).batches() for row in native_rows(batch)]
    return as_arrow(rows, SAMPLES)


def is_of_rows(name: str) -> bool:
    """Whether a row of the sample is read and written without the others, as those of a conversation are not."""
    source = open_source(table_of(name))
    form = find_format(plan_of(source, "databricks").format)
    return not source.in_order and form.is_rows and not (form.writer and form.writer.document)


FILES = [
    path.name for path in sorted(SAMPLES.iterdir()) if path.suffix in (".json", ".jsonl") and is_of_rows(path.name)
]


def by_file(table: pa.Table, to: str, folder: Path, on_invalid: Any = "drop") -> tuple[list[Row], list[Row], Any]:
    """The rows and the losses of a conversion from a file of Parquet to one, and the conversion."""
    pq.write_table(table, folder / "in.parquet")
    conversion = convert_file(str(folder / "in.parquet"), str(folder / "out.parquet"), to, on_invalid=on_invalid)
    losses = conversion.losses.astype(object).where(conversion.losses.notna(), None).to_dict("records")
    return pq.read_table(folder / "out.parquet").to_pylist(), losses, conversion


def in_order(losses: list[Row]) -> list[str]:
    return sorted(json.dumps(loss, sort_keys=True) for loss in losses)


@pytest.mark.parametrize("at", range(len(FILES)))
def test_an_executor_converts_a_sample_as_a_file_is_converted(at: int, tmp_path: Path) -> None:
    """Each sample to three targets, in parts of two rows."""
    table, count = table_of(FILES[at]), len(OF_ROWS)
    for to in (OF_ROWS[at % count], OF_ROWS[(at + 7) % count], OF_ROWS[(at + 13) % count]):
        source = open_source(table)
        plan = plan_of(source, to)
        run = CheckedRun(source, plan)
        counts = validate_eval_set(table).counts.keys()
        if counts & {"AE901", "AE905"}:  # what Spark finds by keys
            continue
        schema = Work(run, to).schema(run.read_schema.names)
        parts = [
            Part(batch, batch, np.arange(start, start + batch.num_rows))
            for start in range(0, len(table), 2)
            for batch in table.slice(start, 2).combine_chunks().to_batches()
        ]
        rows, losses, _ = by_file(table, to, tmp_path, "keep")
        choice = Choice(to, plan, "keep")
        found = pa.concat_tables(_losses(choice, part) for part in parts)
        assert pa.concat_tables(_written(choice, schema, part) for part in parts).to_pylist() == rows, to
        assert in_order(found.to_pylist()) == in_order([loss for loss in losses if loss["row"] is not None]), to


def test_a_column_that_was_not_declared_is_no_silent_loss() -> None:
    table = table_of("azure.jsonl")
    plan = plan_of(open_source(table), "azure")
    part = Part(table.to_batches()[0], table.to_batches()[0], np.arange(len(table)))
    with pytest.raises(EvalSetError, match="azure: no column was declared for context, ground_truth, query"):
        _written(Choice("azure", plan), pa.schema([("response", pa.string())]), part)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(("name", "to"), [("broken.jsonl", "vertex"), ("azure.jsonl", "mlflow")])
def test_rows_and_losses_are_those_of_a_file(spark: Any, name: str, to: str, tmp_path: Path) -> None:
    table = table_of(name)
    df = on_spark(spark, table)
    with nothing_collected(df):
        conversion = convert_eval_set(df, to)
        by_code = {(n["code"], n["column"]): n["losses"] for n in conversion._counts()}  # type: ignore[attr-defined]
        page, lossless = conversion.to_text(width=100), conversion.lossless
    rows, losses, there = by_file(table, to, tmp_path)
    assert [row.asDict(recursive=True) for row in conversion.data.collect()] == rows
    found = [row.asDict() for row in conversion.losses.collect()]
    assert conversion.losses.columns == LOSS.names == list(there.losses.columns)
    assert in_order(found) == in_order(losses)
    assert (conversion.given, conversion.converted) == (there.given, there.converted)
    assert conversion.given == conversion.converted + conversion.losses.where("code = 'AE814'").count()
    assert conversion.severities() == there.severities()
    assert sum(by_code.values()) == len(losses)
    assert lossless == there.lossless
    assert (f"{len(losses):,} losses" if losses else "no losses") in page
    assert {n["code"] for n in json.loads(conversion.to_json())["counts"]} == {loss["code"] for loss in losses}
    assert json.loads(conversion.to_json())["metrics"] == there._metrics
    assert conversion.report.counts == there.report.counts


LOGGED = json.dumps({"info": {"trace_id": "tr-1"}, "data": {"spans": []}})


@pytest.mark.xdist_group("spark")
def test_an_id_that_another_partition_has_is_written_once(spark: Any, tmp_path: Path) -> None:
    rows = [
        {"request": " ", "response": "invalid", "trace": LOGGED},
        {"request": "Hi", "response": "its trace", "trace": LOGGED},
        {"request_id": "tr-1", "request": "Ho", "response": "an ID of its own"},
        {"request_id": "a", "request": "Hi", "response": "a"},
        {"request_id": "a", "request": "Ha", "response": "b"},
        {"request": "He", "response": "the trace again", "trace": LOGGED},
    ]
    table = as_arrow(rows, tmp_path)
    conversion = convert_eval_set(on_spark(spark, table), "braintrust")
    expected, losses, _ = by_file(table, "braintrust", tmp_path)
    assert [row.asDict(recursive=True) for row in conversion.data.collect()] == expected
    assert in_order([row.asDict() for row in conversion.losses.collect()]) == in_order(losses)


@pytest.mark.xdist_group("spark")
def test_rows_of_two_kinds_are_one_loss(spark: Any, tmp_path: Path) -> None:
    chat = json.dumps([{"role": r, "content": c} for r, c in (("user", "Hi"), ("assistant", "Ho"), ("user", "Ha"))])
    rows = [{"request": "Hi", "response": "Ho"}, {"request": f'{{"messages": {chat}}}', "response": "Hu"}] * 2
    table = as_arrow([*rows, rows[0]], tmp_path)
    df = on_spark(spark, table)
    for on_invalid, count in (("keep", 5), ("drop", 3)):
        conversion = convert_eval_set(df, "ragas", on_invalid=on_invalid)
        found = [row.asDict() for row in conversion.losses.collect()]
        expected, losses, there = by_file(table, "ragas", tmp_path, on_invalid)
        assert in_order(found) == in_order(losses)
        assert [row.asDict(recursive=True) for row in conversion.data.collect()] == expected
        assert (conversion.converted, there.converted, len(expected)) == (count, count, count)
        assert json.loads(conversion.to_json())["metrics"] == there._metrics
        assert [loss["message"] for loss in found if loss["code"] == "AE816"] == [
            "expected rows of one kind, got 3 single questions and 2 conversations"
        ] * (on_invalid == "keep")
    with pytest.raises(
        InvalidEvalSetError, match=r"2 rows would be excluded: row 1: ragas loads .*; row 3: ragas loads"
    ):
        convert_eval_set(df, "ragas", on_invalid="raise")


@pytest.mark.xdist_group("spark")
def test_a_document_of_all_rows_is_not_collected(spark: Any) -> None:
    df = spark.createDataFrame([("Hi", "Ho")], "request string, response string")
    with nothing_collected(df), pytest.raises(EvalSetError, match="adk is one document of all rows"):
        convert_eval_set(df, "adk")


@pytest.mark.xdist_group("spark")
def test_rows_are_written_by_the_executors(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame([("Hi", "Ho"), (" ", "Hu")], "request string, response string")
    with nothing_collected(df):
        assert convert_eval_set(df, "openai").write(tmp_path / "out.parquet") == 1
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1
