"""Rows that were normalized are the same rows when they are normalized again, from whatever holds them."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import FormulaWarning, normalize_eval_set, validate_eval_set, write_eval_set
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.schema import CANONICAL
from agent_eval_schema.text.jsontext import parse_leniently
from agent_eval_schema.validation.report import summary_of
from tests.conftest import CONTAINERS, DATA, KINDS
from tests.helpers.mutations import Row, mutated, samples
from tests.helpers.wild import EXAMPLES


def written(ending: str) -> Callable[[Any, Path], str]:
    def write(rows: Any, folder: Path) -> str:
        path = str(folder / f"again{ending}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FormulaWarning)
            write_eval_set(rows, path)
        return path

    return write


AGAIN: dict[str, Callable[[Any, Path], Any]] = {
    "in the same container": lambda rows, _: rows,
    **{ending: written(ending) for ending in (".jsonl", ".json", ".csv", ".parquet")},
}


def rows_of(normalized: Any) -> list[Row]:
    """The cells that are there. What Arrow and CSV hold as JSON text is compared as its value."""
    if isinstance(normalized, pa.Table):
        normalized = validate_eval_set(normalized).rows
    rows = (
        normalized if isinstance(normalized, list) else pd.DataFrame(normalized).to_dict("records")
    )  # a list as it is
    return [{str(n): _value(v) for n, v in row.items() if not is_absent(v)} for row in rows]


def _value(value: Any) -> Any:
    if isinstance(value, str):  # JSON text of JSON text, too, which a file has for its text
        inner = parse_leniently(value)
        return inner if inner == value or not isinstance(inner, str) else _value(inner)
    return value.isoformat() if isinstance(value, datetime.date) else value


@pytest.mark.parametrize("text", ['"q"', '"{\\"question\\": \\"x\\"}"', '"\\"q\\""', "q", "\ufeff{}", '\ufeff"q"'])
@pytest.mark.parametrize("kind", [list, pd.DataFrame])
def test_text_inputs_that_look_like_json_stay_texts(kind: Callable[[list[Row]], Any], text: str) -> None:
    once = normalize_eval_set(kind([{"inputs": text, "outputs": "a"}]), on_invalid="keep")
    again = normalize_eval_set(once, on_invalid="keep")
    (first,), (second,) = (rows if isinstance(rows, list) else rows.to_dict("records") for rows in (once, again))
    assert first["inputs"] == second["inputs"] == text
    assert first["request"] == second["request"]


def require_same_again(data: Any, folder: Path, ways: dict[str, Callable[[Any, Path], Any]] = AGAIN) -> None:
    """Of the rows that are valid; those of CES files are evaluations, which convert_eval_set makes rows of."""
    once = normalize_eval_set(data, on_invalid="drop")
    before = rows_of(once)
    if not before or not summary_of(validate_eval_set(data)).has_metrics:
        return
    for name, way in ways.items():
        again = way(once, folder)
        assert rows_of(normalize_eval_set(again)) == before, name


@pytest.mark.parametrize("seed", range(1, len(samples()), 12))
@pytest.mark.parametrize("kind", ["list", "pandas", "arrow", "jsonl"])
def test_samples(kind: str, seed: int, tmp_path: Path) -> None:
    _, rows = mutated(seed)
    require_same_again(KINDS[kind](rows, tmp_path), tmp_path)


OTHERS = [kind for kind in KINDS if kind not in CONTAINERS]
"""What test_one_verdict.py shows to be read alike: one of them by turns."""


@pytest.mark.property
@pytest.mark.parametrize("start", range(5_000, 5_000 + EXAMPLES, 10))
def test_many_samples(start: int, tmp_path: Path) -> None:
    ways = {**AGAIN, "delta": lambda rows, folder: written(f"{len(list(folder.iterdir()))}.delta")(rows, folder)}
    for seed in range(start, start + 10):
        name, rows = mutated(seed)
        for kind in (*CONTAINERS, OTHERS[seed % len(OTHERS)]):
            try:
                require_same_again(KINDS[kind](rows, tmp_path), tmp_path, ways if seed % 5 == 0 else AGAIN)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {name}, {kind}: {error}") from error


TRACE = (DATA / "traces" / "mlflow_v3_18_2.json").read_text()
OF_A_FRAME = {"trace": TRACE, "trace_id": "t", "status": "OK", "request_time": 1, "state": "OK", "spans": "[]"}

KNOWN: dict[str, list[Row]] = {
    "beside columns of search_traces": [{"request": "Hi", "response": "Hello", **OF_A_FRAME}],
    "beside columns of an example of LangSmith": [
        {"request": "Hi", "response": "Hello", "dataset_id": "d", "metadata": {"a": 1}, "created_at": "2026"}
    ],
    "with originals": [
        {"inputs": {"question": "multi", "k": 3}, "outputs": {"answer": "a", "docs": [1, 2]}},
        {"inputs": {"question": "number"}, "outputs": 42, "expectations": {"expected_response": 42}},
        {"inputs": {"question": "bool"}, "outputs": True},
        {"inputs": {"question": "text"}, "outputs": '{"answer": "a"}'},
    ],
    "of a log": [
        {"request": "Hi", "response": "Hello", "databricks_request_id": "d", "status_code": 200, "date": "2026"}
    ],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", KNOWN.values(), ids=KNOWN)
def test_columns_that_are_signs_of_another_format(rows: list[Row], kind: str, tmp_path: Path) -> None:
    once = normalize_eval_set(rows, format="mlflow" if "inputs" in rows[0] else "databricks")
    require_same_again(KINDS[kind](once, tmp_path), tmp_path)


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_a_file_of_normalized_rows_says_that_it_is_one(ending: str, tmp_path: Path) -> None:
    rows = KNOWN["beside columns of search_traces"]
    path = tmp_path / f"rows{ending}"
    validate_eval_set(rows, format="databricks").write(path)
    report = validate_eval_set(path)
    assert (report.format, report.ok) == ("databricks", True)
    assert summary_of(report).format_reason == "the canonical columns of rows that were normalized before"
    table = normalize_eval_set(pa.Table.from_pylist([{"request": "Hi", "response": "Hello"}]))
    assert CANONICAL.items() <= table.schema.metadata.items()


def test_what_a_schema_says_is_believed_while_there_are_canonical_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    validate_eval_set(KNOWN["beside columns of search_traces"], format="databricks").write(path)
    table = pq.read_table(path, columns=["request_id", "request", "response", "trace", "status", "request_time"])
    assert validate_eval_set(table).format == "databricks"
    renamed = table.select(["request", "response"]).rename_columns(["question", "answer"])
    assert validate_eval_set(renamed).format != "databricks"
    unmarked = table.replace_schema_metadata(None)
    assert validate_eval_set(unmarked).format == "search_traces"
