"""What is written is read again as the same rows, whatever the cells hold."""

import csv
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import (
    EvalSetError,
    FormulaWarning,
    ValuesAsTextWarning,
    normalize_eval_set,
    prepare_for_evaluate,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.integrations.mlflow.frames import EVALUATORS, Evaluator
from tests.conftest import Row

PARTS = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Yo"}]}]}
MIXED: dict[str, list[Row]] = {
    "texts and lists of parts": [{"request": "Hi"}, {"request": PARTS}],
    "one key, two types": [{"request": "Hi", "custom_expected": {"a": v}} for v in (1, "x", [1], {"b": None})],
    "other keys in each row": [{"request": "Hi", "custom_expected": {k: 1}} for k in "ab"],
    "integers of more than 64 bits": [
        {"request": "Hi", "reference_trajectory": [{"tool_name": "t", "tool_input": {"n": 10**30}}]}
    ],
    "no input, and two types of one": [
        {"request": "Hi", "reference_trajectory": [{"tool_name": "t", "tool_input": given}]}
        for given in ({}, {"n": 1}, {"n": "1"})
    ],
}
ENDINGS = ("parquet", "jsonl", "json", "csv", "delta")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("target", [t for t in EVALUATORS if t != "mlflow.evaluate"])
@pytest.mark.parametrize("rows", MIXED.values(), ids=MIXED)
def test_a_prepared_frame_comes_back_as_it_was(tmp_path: Path, rows: list[Row], target: Evaluator, ending: str) -> None:
    frame = prepare_for_evaluate([{**row, "response": "a"} for row in rows], evaluator=target)
    assert write_eval_set(frame, tmp_path / f"rows.{ending}") == len(rows)
    again = prepare_for_evaluate(tmp_path / f"rows.{ending}", evaluator=target)
    assert again.to_dict("list") == frame.to_dict("list")


@pytest.mark.parametrize("ending", ENDINGS)
def test_normalized_rows_come_back_as_they_were(tmp_path: Path, ending: str) -> None:
    frame = normalize_eval_set(pd.DataFrame([{**row, "response": "a"} for rows in MIXED.values() for row in rows]))
    write_eval_set(frame, tmp_path / f"rows.{ending}")
    again = validate_eval_set(tmp_path / f"rows.{ending}").rows
    pd.testing.assert_frame_equal(again, frame)


@pytest.mark.parametrize("kind", [list, pa.Table.from_pylist, pd.DataFrame])
def test_any_rows_are_written(tmp_path: Path, kind: Any) -> None:
    rows = [{"request": "Hi", "total_token_count": 1}, {"request": "Ho", "total_token_count": 2}]
    assert write_eval_set(kind(rows), str(tmp_path / "rows.parquet")) == 2
    assert validate_eval_set(tmp_path / "rows.parquet").rows["total_token_count"].tolist() == [1, 2]


def test_columns_of_numbers_stay_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"request": ["Hi", "Ho"], "n": [1, 2], "at": pd.to_datetime(["2026-11-03", None], utc=True)})
    write_eval_set(frame, tmp_path / "rows.parquet")
    again = pd.read_parquet(tmp_path / "rows.parquet")
    assert again["n"].tolist() == [1, 2]
    assert again["at"].equals(frame["at"].astype(again["at"].dtype))


def test_a_column_that_only_later_rows_have_is_written(tmp_path: Path) -> None:
    rows: list[Row] = [{"request": "Hi"}] * 9_000 + [{"request": "Ho", "tags": {"a": "b"}}]
    write_eval_set(rows, tmp_path / "rows.parquet")
    assert pd.read_parquet(tmp_path / "rows.parquet")["tags"].iloc[-1] == '{"a":"b"}'


def test_the_index_is_written_if_it_is_a_column(tmp_path: Path) -> None:
    frame = prepare_for_evaluate([{"request": "Hi", "response": "a"}])
    write_eval_set(frame.reset_index(), tmp_path / "rows.parquet")
    assert pd.read_parquet(tmp_path / "rows.parquet")["row"].tolist() == [0]


REFUSED: dict[str, tuple[Any, str, str]] = {
    "no data": ([{"request": "Hi"}, {"request": object()}], "rows.parquet", "row 1, column request: expected plain"),
    "no row": ([{"request": "Hi"}, 3], "rows.jsonl", "row 1: expected an object with columns"),
    "two columns of one name": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "rows.csv", "two columns are called 'a'"),
    "another kind of file": ([{"request": "Hi"}], "rows.xls", "unknown file extension"),
    "no table": (np.int64(3), "rows.csv", "got an int64"),
}


@pytest.mark.parametrize(("data", "name", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_whole_is_refused(tmp_path: Path, data: Any, name: str, message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        write_eval_set(data, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


OUTPUTS = ["b", "42", 42, {"x": 1}, [1], None]


@pytest.mark.parametrize("ending", ["csv", "parquet", "delta", "jsonl", "json"])
def test_outputs_that_a_file_holds_as_text_are_reported(ending: str, tmp_path: Path) -> None:
    rows = [{"inputs": {"question": str(i)}, "outputs": outputs} for i, outputs in enumerate(OUTPUTS)]
    path = tmp_path / f"rows.{ending}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert write_eval_set(rows, path) == len(rows)
    came = {row["inputs"]["question"]: row["outputs"] for row in validate_eval_set(path, format="mlflow").iter_rows()}
    if ending in ("jsonl", "json"):
        assert not caught
        assert [came[str(i)] for i in range(len(rows))] == [None, None, *OUTPUTS[2:]]  # of text the response has all
    else:
        (told,) = caught
        assert (told.category, told.filename) == (ValuesAsTextWarning, __file__)
        assert "(3 of `outputs`) are read back as their JSON text: write .jsonl" in str(told.message)
        assert set(came.values()) == {None}


def test_flags_stay_flags_in_parquet_and_not_in_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame({"inputs": [{"question": "a"}] * 2, "outputs": [True, False]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_eval_set(frame, tmp_path / "rows.parquet")
    assert [row["outputs"] for row in validate_eval_set(tmp_path / "rows.parquet").iter_rows()] == [True, False]
    with pytest.warns(ValuesAsTextWarning, match=r"\(2 of `outputs`\)"):
        write_eval_set(frame, tmp_path / "rows.csv")


def test_other_forms_hold_objects_as_json_text_without_a_warning(tmp_path: Path) -> None:
    rows = [{"request": "a", "response": "b", "outputs": {"x": 1}}, {"request": "a", "response": "c", "outputs": 3}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_eval_set(rows, tmp_path / "rows.csv")


NUMBERS = pa.table(
    {
        "request": list("abcd"),
        "response": list("abcd"),
        "x": [1.5, math.nan, math.inf, -math.inf],
        "y": [{"z": [number]} for number in (1.5, math.nan, math.inf, -math.inf)],
    }
)


@pytest.mark.parametrize("of", [pa.Table.to_pylist, pa.Table.to_pandas, pa.Table.combine_chunks])
def test_infinite_numbers_are_null_in_json_and_texts_in_csv(of: Callable[[pa.Table], Any], tmp_path: Path) -> None:
    data = of(NUMBERS)

    def refused(literal: str) -> None:
        raise ValueError(literal)

    write_eval_set(data, tmp_path / "rows.jsonl")
    write_eval_set(data, tmp_path / "rows.json")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line, parse_constant=refused) for line in lines]
    assert json.loads((tmp_path / "rows.json").read_text(), parse_constant=refused) == rows
    assert [(row.get("x"), row["y"]["z"][0]) for row in rows] == [(1.5, 1.5), *[(None, None)] * 3]
    with pytest.warns(FormulaWarning, match="the first one in row 3, column `x`"):  # -Infinity
        write_eval_set(data, tmp_path / "rows.csv")
    with open(tmp_path / "rows.csv", newline="") as file:
        assert [row["x"] for row in csv.DictReader(file)] == ["1.5", "", "Infinity", "-Infinity"]
