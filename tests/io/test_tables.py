"""Tables of other libraries: judged like the same rows in a list, and given back as tables of the library."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, convert_eval_set, normalize_eval_set, validate_eval_set
from agent_eval_schema.io.arrow import from_arrow, like, to_arrow

ROWS: list[dict[str, Any]] = [
    {"request": "How many days?", "response": "12 days.", "expected_facts": ["12 days"], "team": "hr"},
    {"request": None, "response": "Hello", "expected_facts": None, "team": "it"},
    {"request": "Who approves?", "response": "Your manager.", "expected_facts": ["the manager"], "team": None},
]


def polars(rows: Any) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def lazy_polars(rows: Any) -> Any:
    return polars(rows).lazy()


def duckdb(rows: Any) -> Any:
    return pytest.importorskip("duckdb").from_arrow(pa.Table.from_pylist(rows))


def hugging_face(rows: Any) -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(rows)


class Stream:
    """An object of which only the Arrow PyCapsule interface is known."""

    def __init__(self, rows: Any) -> None:
        self._table = pa.Table.from_pylist(rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Batch:
    """The same for a single batch."""

    def __init__(self, rows: Any) -> None:
        self._batch = pa.RecordBatch.from_pylist(rows)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


MAKERS = [
    *(pytest.param(make, marks=pytest.mark.oracle) for make in (polars, lazy_polars, hugging_face)),
    *(duckdb, Stream, Batch),
]


def arrow_of(table: Any) -> pa.Table:
    table = to_arrow(table, "data")
    assert isinstance(table, pa.Table)
    return table


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_of_another_library_is_validated_and_given_back(make: Callable[[Any], Any]) -> None:
    data = make(ROWS)
    report, expected = validate_eval_set(data), validate_eval_set(ROWS)
    assert list(report.iter_issues()) == list(expected.iter_issues())
    assert report.metric_support.equals(expected.metric_support)
    kind = pa.Table if make in (Stream, Batch) else type(make(ROWS))
    normalized = normalize_eval_set(make(ROWS), on_invalid="drop")
    for given, rows in ((report.valid, [0, 2]), (report.invalid, [1])):
        assert isinstance(given, kind)
        assert arrow_of(given).to_pylist() == [ROWS[i] for i in rows]
    assert isinstance(normalized, kind)
    table = arrow_of(normalized)
    assert table["response"].to_pylist() == ["12 days.", "Your manager."]
    assert table["team"].to_pylist() == ["hr", None]
    assert validate_eval_set(normalized).ok
    assert convert_eval_set(make(ROWS), "mlflow").data["outputs"].tolist() == ["12 days.", "Your manager."]


@pytest.mark.oracle
def test_a_data_set_of_several_splits_is_not_guessed() -> None:
    datasets = pytest.importorskip("datasets")
    splits = datasets.DatasetDict(train=hugging_face(ROWS), test=hugging_face(ROWS[:1]))
    with pytest.raises(
        EvalSetError, match=r"^data: expected one split, got a DatasetDict of train, test; use data\['train'\]$"
    ):
        validate_eval_set(splits)
    assert validate_eval_set(splits["test"]).ok


@pytest.mark.oracle
def test_a_type_that_arrow_lacks_is_named_with_its_column() -> None:
    import polars as pl

    frame = polars(ROWS).with_columns(big=pl.lit(2**100, pl.Int128))
    for data in (frame, frame.lazy()):
        with pytest.raises(EvalSetError, match=r"^data: the column 'big' has the type Int128, which Arrow does not"):
            validate_eval_set(data)


@pytest.mark.oracle
def test_a_column_is_not_a_table() -> None:
    for column in (pa.array(["a"]), pd.Series(["a"]), polars(ROWS)["request"]):
        with pytest.raises(EvalSetError, match=r"^data: expected a DataFrame, an Arrow table"):
            validate_eval_set(column)


def chunks_of(*requests: pa.Array) -> pa.Table:
    return pa.Table.from_batches([pa.record_batch([cells], ["request"]) for cells in requests])


def test_small_chunks_are_checked_together_where_arrow_can_join_them() -> None:
    texts = pa.array(["a question"])
    wrong = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, -1, 1], pa.int32()).buffers()[1], pa.py_buffer(b"a")]
    )
    dictionaries = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{name} {i}" for i in range(100)])
        for name in "ab"  # 200 values have no place in indices of 8 bits
    ]
    for cells, sizes in (([texts] * 99, [99]), (dictionaries, [100, 100]), ([texts, wrong], [3])):
        table = chunks_of(*cells)
        assert [batch.num_rows for batch in from_arrow(table, lambda table: table).batches()] == sizes
        assert validate_eval_set(table).row_count == sum(sizes)


def test_what_exchanges_no_tables_with_arrow_has_no_kind_of_its_own() -> None:
    assert like(pd.DataFrame(ROWS)) is None
    assert like(ROWS) is None
    assert like("rows.jsonl") is None


def test_a_table_of_another_library_is_refused_with_its_own_conversion() -> None:
    class Frame:
        def to_pandas(self) -> None: ...

    with pytest.raises(EvalSetError, match=r"got a Frame; use data\.to_pandas\(\)$"):
        validate_eval_set(Frame())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (pd.Timestamp("2024-01-01", tz="Europe/Berlin"), "2024-01-01"),
        (pd.Timestamp("2024-01-01", tz="UTC"), "2024-01-01"),
        (pd.Period("2024-01", "M"), None),
    ],
)
def test_a_column_of_one_type_has_the_text_of_its_values(value: Any, shown: str | None) -> None:
    """Not the day before in UTC, and not the number of a period."""
    rows = normalize_eval_set(pd.DataFrame({"request": ["a"], "expected_response": [value]}), on_invalid="keep")
    assert [text and text[:10] for text in rows["expected_response"]] == [shown]
    passed = convert_eval_set(pd.DataFrame({"request": ["a"], "month": [value]}), "ragas").data["month"].tolist()
    assert str(passed[0]).startswith("2024-01")


def test_bytes_that_are_passed_through_are_base64() -> None:
    rows = [{"request": "a", "response": "r", "thumb": b"\x89PNG\xff", "name": b"caf\xc3\xa9"}]
    for data in (rows, pd.DataFrame(rows), pa.Table.from_pylist(rows)):
        row = convert_eval_set(data, "vertex").data.to_dict("records")[0]
        assert (base64.b64decode(row["thumb"]), row["name"]) == (b"\x89PNG\xff", "café")
