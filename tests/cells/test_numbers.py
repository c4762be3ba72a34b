"""Numbers that JSON does not have are named with row and path before null takes their place, in every container."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import Report, convert_eval_set, normalize_eval_set, validate_eval_set, write_eval_set
from agent_eval_schema.cells.numbers import with_lost_numbers
from agent_eval_schema.fix.fix import fix_source
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.validate import check_source

INF, NAN = float("inf"), float("nan")
ROWS: list[dict[str, Any]] = [
    {"request": "Which plan?", "response": "A", "margin": 0.5, "notes": {"of": [1.0, 2.0], "z": 1.0}, "ids": [1.0]},
    {"request": "Which city?", "response": "B", "margin": -INF, "notes": {"of": [1.0, INF], "z": NAN}, "ids": [NAN]},
    {"request": "Which year?", "response": "C", "margin": NAN, "notes": None, "ids": [None, 2.0]},
]
LOST = [
    (1, "ids[0]", "expected a finite number, got NaN: null takes its place in JSON"),
    (1, "margin", "expected a finite number, got -Infinity: null takes its place in JSON"),
    (1, "notes.of[1]", "expected a finite number, got Infinity: null takes its place in JSON (and 1 more in the cell)"),
]


def _table() -> pa.Table:
    return pa.Table.from_pylist(ROWS)


def _parquet(folder: Path) -> str:
    pq.write_table(_table(), folder / "rows.parquet")
    return str(folder / "rows.parquet")


def _delta(folder: Path) -> str:
    from deltalake import write_deltalake

    write_deltalake(folder / "rows", _table())
    return str(folder / "rows")


def _polars(_: Path) -> Any:
    import polars

    return polars.from_arrow(_table())


def _duckdb(_: Path) -> Any:
    import duckdb

    return duckdb.from_arrow(_table())


def _hugging_face(_: Path) -> Any:
    import datasets

    return datasets.Dataset(_table())


CONTAINERS: dict[str, Callable[[Path], Any]] = {
    "list": lambda _: ROWS,
    "pandas": lambda _: pd.DataFrame(ROWS),
    "arrow": lambda _: _table(),
    "parquet": _parquet,
    "delta": _delta,
    "polars": _polars,
    "duckdb": _duckdb,
    "datasets": _hugging_face,
}


def _lost(report: Report) -> list[tuple[int | None, str | None, str]]:
    found = [(i.row, i.path, i.message) for i in report.iter_issues() if i.code == "AE185"]
    return sorted(found, key=lambda note: str(note[1]))


OF_OTHERS = ("polars", "duckdb", "datasets")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.containers] * (n in OF_OTHERS)) for n in CONTAINERS]
)
def test_each_container_names_them(name: str, tmp_path: Path) -> None:
    report = validate_eval_set(CONTAINERS[name](tmp_path))
    assert _lost(report) == LOST
    assert report.valid_count == 3


@pytest.mark.parametrize("name", ["list", "pandas", "arrow"])
def test_what_becomes_null_in_a_file_is_what_was_named(name: str, tmp_path: Path) -> None:
    data = CONTAINERS[name](tmp_path)
    write_eval_set(normalize_eval_set(data), tmp_path / "rows.jsonl")
    written = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [written[1].get(n) for n in ("margin", "notes", "ids")] == [None, {"of": [1.0, None], "z": None}, [None]]
    assert [written[0][n] for n in ("margin", "notes", "ids")] == [0.5, {"of": [1.0, 2.0], "z": 1.0}, [1.0]]


@pytest.mark.parametrize("target", ["langsmith", "mlflow", "adk", "databricks"])
@pytest.mark.parametrize("name", ["list", "pandas", "parquet"])
def test_they_are_losses_of_a_conversion(name: str, target: str, tmp_path: Path) -> None:
    losses = convert_eval_set(CONTAINERS[name](tmp_path), target).losses
    found = losses[losses["code"].eq("AE812") & losses["row"].eq(1)]
    assert sorted(zip(found["row"], found["path"], found["message"], strict=True), key=lambda n: n[1]) == LOST
    if target == "databricks":
        assert losses["code"].tolist() == ["AE812"] * 3


def test_a_fix_names_them() -> None:
    assert _lost(check_source(fix_source(open_source(ROWS)).source)) == LOST


def test_an_infinite_number_of_a_column_that_is_read_is_an_error_and_nan_in_it_is_named() -> None:
    rows = [{"request": "Hi", "response": "Hello", "custom_expected": {"n": n, "m": NAN}} for n in (INF, 1.0)]
    for data in (rows, pa.Table.from_pylist(rows)):
        report = validate_eval_set(data)
        assert [(i.code, i.row, i.path) for i in report.iter_issues() if i.code in ("AE003", "AE185")] == [
            ("AE185", 0, "custom_expected.m"),
            ("AE003", 0, "custom_expected"),
            ("AE185", 1, "custom_expected.m"),
        ]


def test_numbers_that_python_does_not_print_are_found() -> None:
    class Score:
        def to_dict(self) -> dict[str, float]:
            return {"score": INF}

    many = np.ones(5000)
    many[2500] = INF
    values = [many, np.float32(INF), {"x": many}, Score(), [{"y": (1.0, NAN)}]]
    rows = [{"request": f"Question {i}?", "response": "A", "value": v} for i, v in enumerate(values)]
    paths = ["value[2500]", "value", "value.x[2500]", "value.score", "value[0].y[1]"]
    for data in (rows, pd.DataFrame(rows)):
        assert [path for _, path, _ in sorted(_lost(validate_eval_set(data)))] == paths


def test_words_and_absent_cells_are_none() -> None:
    values: list[Any] = ["inf", {"a": "nan", "b": None}, [None, "Infinity ..."], NAN, None, {"inf": 1, "nan": None}]
    rows = [{"request": f"Question {i}?", "response": "A", "value": v} for i, v in enumerate(values)]
    assert _lost(validate_eval_set(rows)) == []
    assert _lost(validate_eval_set(pd.DataFrame(rows))) == []


def test_keys_are_hidden_with_the_values() -> None:
    report = validate_eval_set([{"request": "Hi", "response": "A", "value": {"Ann Smith": INF}}], show_values=False)
    assert [note[1] for note in _lost(report)] == ["value.*"]


@pytest.mark.parametrize(
    ("array", "paths"),
    [
        (pa.array([1.0, INF, None, NAN], pa.float32()), {1: "x"}),
        (pa.array([1.0, INF, None, NAN], pa.float64()).dictionary_encode(), {1: "x"}),
        (pa.array([None, np.float16(-INF)], pa.float16()), {1: "x"}),
        (pa.array([[("k", 1.0)], [("k", 2.0), ("l", NAN)]], pa.map_(pa.string(), pa.float64())), {1: "x.l"}),
        (pa.array([[1.0, 2.0], [1.0, INF]], pa.list_(pa.float64(), 2)), {1: "x[1]"}),
        (pa.array([{"a": [{"b": NAN}]}, {"a": None}, None]), {0: "x.a[0].b"}),
        (pa.array([{"a": [INF]}, {"a": [1.0]}, {"a": [2.0]}]).slice(1), {}),
        (pa.array([1, 2]), {}),
    ],
)
def test_arrays_of_arrow(array: pa.Array, paths: dict[int, str]) -> None:
    batch = with_lost_numbers(pa.RecordBatch.from_arrays([array], ["x"]))
    notes = batch.column(1).to_pylist() if batch.num_columns > 1 else []
    assert {row: note[0]["path"] for row, note in enumerate(notes) if note} == paths


def test_the_values_of_sound_columns_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.cells.numbers.to_values", lambda _: pytest.fail("a value was made"))
    values = pa.array([{"a": [0.5, None]}] * 10)
    batch = pa.RecordBatch.from_arrays([values, pa.array([NAN] * 10)], ["x", "y"])
    assert with_lost_numbers(batch) is batch
