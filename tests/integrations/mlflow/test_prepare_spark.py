"""A frame that is prepared on Spark has the rows of that in memory, as MLflow reads them there."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import (
    EvalSetError,
    InvalidEvalSetError,
    InvalidRowsWarning,
    ReducedInputsWarning,
    UnreadableTraceWarning,
    eval_set_from_traces,
    prepare_for_evaluate,
)
from agent_eval_schema.integrations.mlflow.frames import EVALUATORS
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.traces.derive import MADE
from tests.conftest import SAMPLES, as_arrow
from tests.helpers.spark_tables import nothing_collected, on_spark
from tests.validation.test_spark_frames import SHARED, table_of

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

FILES = ["good.jsonl", "broken.jsonl", "broken_mlflow.jsonl", "vertex.jsonl", "search_traces.jsonl"]


def cells_of(frame: pd.DataFrame, as_texts: bool) -> list[dict[str, Any]]:
    """The cells; of objects and lists the JSON text. A trace that was made of a row has an ID and a time of its own."""
    rows = []
    for row in frame.to_dict("records"):
        if row.get("trace") is not None:
            trace = json.loads(row["trace"])
            is_made = MADE in trace["info"].get("tags", {})
            row["trace"] = sorted(span["name"] for span in trace["data"]["spans"]) if is_made else trace
        plain = ("tags", "trace")
        rows.append({n: _text(v) if as_texts and n not in plain else v for n, v in row.items()})
    return rows


def _text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, list | dict) else value


PAIRS = [(name, evaluator) for name in [*FILES, "an ID twice"] for evaluator in EVALUATORS]


# Each file, and each evaluator, once.
@pytest.mark.parametrize(
    ("name", "evaluator"), [p for p in PAIRS if p[0] == FILES[1] or p[1] == next(iter(EVALUATORS))]
)
def test_the_rows_are_those_in_memory(spark: Any, name: str, evaluator: Any) -> None:
    table = table_of(name) if name in FILES else as_arrow(SHARED, SAMPLES)
    df = on_spark(spark, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidRowsWarning)
        warnings.simplefilter("ignore", ReducedInputsWarning)
        with nothing_collected(df):
            found = prepare_for_evaluate(df, evaluator=evaluator)
        expected = prepare_for_evaluate(table, evaluator=evaluator)
    assert found.columns == expected.columns.tolist()
    rows = found.toPandas().astype(object)
    assert cells_of(rows.where(pd.notna(rows), None), False) == cells_of(expected, True)


def test_a_part_decides_as_the_whole_table(spark: Any) -> None:
    """Each partition has one row: only one of all has expectations, an ID or a trace."""
    rows = [
        {"request": "Hi", "response": "a"},
        {"request": "Ho", "response": "b", "expected_facts": ["b"], "request_id": "r"},
        {"request": "Ha", "response": "c", "latency_seconds": 0.5, "tags": {"a": "b"}},
    ]
    table = as_arrow(rows, SAMPLES)
    df = on_spark(spark, table).repartition(3, "request")
    found = prepare_for_evaluate(df)
    assert found.columns == prepare_for_evaluate(table).columns.tolist()
    by_answer = {row["outputs"]: row for row in found.collect()}
    assert {n: by_answer[n]["expectations"] for n in "abc"} == {"a": "{}", "b": '{"expected_facts":["b"]}', "c": "{}"}
    assert {n: by_answer[n]["tags"] for n in "abc"} == {"a": {}, "b": {}, "c": {"a": "b"}}
    assert all(json.loads(row["trace"])["info"] for row in by_answer.values())


def test_mlflow_reads_the_frame(spark: Any) -> None:
    pytest.importorskip("mlflow")
    from mlflow.genai.evaluation.utils import _convert_to_eval_set

    df = prepare_for_evaluate(on_spark(spark, table_of("good.jsonl")))
    there, here = _convert_to_eval_set(df), _convert_to_eval_set(prepare_for_evaluate(table_of("good.jsonl")))
    for name in ("inputs", "expectations"):
        assert there[name].tolist() == here[name].tolist()
    assert there["outputs"].tolist() == list(map(_text, here["outputs"]))
    assert [t.data.spans[0].inputs for t in there["trace"]] == [t.data.spans[0].inputs for t in here["trace"]]


def test_what_is_left_out_is_counted(spark: Any) -> None:
    chat = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}
    rows = [{"request": chat, "response": "a"}, {"request": " ", "response": "b"}, {"request": "Hi", "response": "c"}]
    table = as_arrow(rows, SAMPLES)
    df = on_spark(spark, table)
    with pytest.warns(InvalidRowsWarning, match=r"^1 of 3 rows are invalid and excluded: see spark_validate$"):
        assert prepare_for_evaluate(df).count() == 2
    with pytest.warns(InvalidRowsWarning, match="kept as far as they could be read"):
        assert prepare_for_evaluate(df, on_invalid="keep").count() == 3
    with pytest.warns(ReducedInputsWarning) as there, pytest.warns(InvalidRowsWarning):
        prepare_for_evaluate(df, inputs="question")
    with pytest.warns(ReducedInputsWarning) as here, pytest.warns(InvalidRowsWarning):
        prepare_for_evaluate(table, inputs="question")
    reduced = [[str(w.message) for w in found if w.category is ReducedInputsWarning] for found in (there, here)]
    assert reduced[0] == reduced[1]
    with pytest.raises(InvalidEvalSetError):
        prepare_for_evaluate(df, on_invalid="raise")
    with pytest.raises(EvalSetError, match="no row to evaluate: all 1 are invalid"):
        prepare_for_evaluate(df.where("request = ' '"))


def test_test_cases_of_a_simulator_are_prepared_on_the_driver(spark: Any) -> None:
    rows = [{"inputs": {"goal": "Book a desk", "persona": "New"}}, {"inputs": {"goal": "Cancel it"}}]
    table = as_arrow(rows, SAMPLES)
    assert "goal" in prepare_for_evaluate(table).columns
    with pytest.raises(EvalSetError, match="test cases for MLflow's simulator"):
        prepare_for_evaluate(on_spark(spark, table))


def test_test_cases_beside_other_rows_are_named_as_in_memory(spark: Any) -> None:
    rows = [{"inputs": {"question": "Hi"}}, {"inputs": {"goal": "Book a desk"}}, {"inputs": {"question": "Ho"}}]
    table = as_arrow(rows, SAMPLES)
    for data in (rows, pd.DataFrame(rows), table, on_spark(spark, table)):
        message = r"1 test case of a simulated user beside 2 other rows \(test cases at the positions 1\)"
        with pytest.warns(InvalidRowsWarning, match=message):
            prepare_for_evaluate(data)
        with pytest.raises(InvalidEvalSetError, match=message):
            prepare_for_evaluate(data, on_invalid="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare_for_evaluate(rows[::2])
        prepare_for_evaluate([{**row, "outputs": "a"} for row in rows])  # which were simulated


def test_rows_of_traces_are_those_in_memory(spark: Any) -> None:
    table = table_of("search_traces.jsonl")
    df = on_spark(spark, table)
    with nothing_collected(df):
        found = eval_set_from_traces(df)
    assert found.columns == list(COLUMNS)
    expected = eval_set_from_traces(table)
    rows = [row.asDict(recursive=True) for row in found.collect()]
    for name in ("request_id", "response", "latency_seconds", "total_token_count", "expected_response"):
        there = pd.Series([row[name] for row in rows], dtype=expected[name].dtype)
        pd.testing.assert_series_equal(there, expected[name], check_names=False)
    assert [json.loads(row["request"]) for row in rows if row["request"]] == expected["request"].dropna().tolist()


def test_traces_that_cannot_be_read_are_counted(spark: Any) -> None:
    df = spark.createDataFrame([('{"info": {',), ("[]",)], "trace string")
    with pytest.warns(UnreadableTraceWarning, match=r"^2 of 2 traces could not be read: see spark_validate$"):
        assert eval_set_from_traces(df).count() == 2
    with pytest.raises(EvalSetError, match="no traces found"):
        eval_set_from_traces(spark.createDataFrame([("Hi", "Ho")], "request string, response string"))
    with pytest.raises(EvalSetError, match="eval_set_from_inference_table"):
        eval_set_from_traces(df, dedupe="id")
