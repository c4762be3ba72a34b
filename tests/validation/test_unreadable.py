"""Rows that are kept lose nothing: what no canonical column can hold stands beside it, as it came."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from agent_eval_schema import normalize_eval_set, validate_eval_set
from agent_eval_schema.rules import RULES
from tests.conftest import Row, as_pandas

GOOD: Row = {"request": "Hi", "response": "Hello"}


def kept(data: Any) -> list[Any]:
    """The column, decoded."""
    rows = normalize_eval_set(data, on_invalid="keep")
    frame = rows.to_pandas() if isinstance(rows, pa.Table) else pd.DataFrame(rows)
    texts = frame["unreadable"].tolist() if "unreadable" in frame else [None] * len(frame)
    return [None if text is None or text != text else json.loads(text) for text in texts]


def test_the_cells_that_could_not_be_read(every_input: Callable[[list[Row]], Any]) -> None:
    bad = {"request": {"mesages": [{"role": "user", "content": "a"}]}, "response": "x", "expected_facts": {"a": 1}}
    data = every_input([GOOD, bad])
    _, found = kept(data)
    as_came = {n: json.loads(c) if isinstance(c, str) else c for n, c in found.items()}  # text in Arrow and CSV
    assert as_came == {"request": {"mesages": [{"role": "user", "content": "a"}]}, "expected_facts": {"a": 1}}


def test_what_could_be_read_is_not_told_twice() -> None:
    both = {**GOOD, "expected_response": "a", "expected_facts": ["a"]}
    assert kept([both, {"response": "x"}, {**GOOD, "request_id": "a"}, {**GOOD, "request_id": "a"}]) == [None] * 4
    assert "unreadable" not in normalize_eval_set([both], on_invalid="keep")[0]


@pytest.mark.parametrize("row", [7, "Hi", ["Hi"], b"\xff"], ids=repr)
def test_what_is_no_row(row: Any) -> None:
    assert kept([GOOD, row]) == [None, "\\xff" if isinstance(row, bytes) else row if row == "Hi" else repr(row)]


def test_lines_that_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps(GOOD), '{"request": "H', '{"request": "a", "response": NaN}', "3"]
    path.write_text("\n".join(lines))
    assert kept(path) == [None, *lines[1:]]
    path = tmp_path / "rows.csv"
    path.write_text("request,response\na,b\na,b,c\n")
    assert kept(path) == [None, "a,b,c"]


def test_cells_that_no_json_holds() -> None:
    class Odd:
        def __repr__(self) -> str:
            return "an odd thing"

    rows = [{**GOOD, "response": b"\xff"}, {**GOOD, "request": "a\ud800"}, {**GOOD, "tags": Odd()}]
    expected = [{"response": "\\xff"}, {"request": "a\\ud800"}, {"tags": "an odd thing"}]
    assert kept(rows) == expected
    assert kept(pd.DataFrame(rows, dtype="object")) == expected


def test_a_cell_that_raises_when_it_is_shown_has_its_type() -> None:
    class Raising:
        def __repr__(self) -> str:
            raise RuntimeError

    assert kept([{**GOOD, "tags": Raising()}]) == [{"tags": "a Raising"}]


def test_text_that_is_not_utf8() -> None:
    bad = pa.array([b"ok", b"a\xff"]).view(pa.string())
    assert kept(pa.table({"request": ["a", "b"], "response": bad})) == [None, {"response": "a\\xff"}]


def test_the_form_of_mlflow() -> None:
    inputs = {"messages": [{"role": "usr", "content": "a"}]}
    rows = [
        {"inputs": inputs, "outputs": "x", "expectations": {"expected_facts": "a", "tone": "kind"}},
        {"inputs": {"question": "a"}, "outputs": "x", "expectations": "x"},
    ]
    assert kept(rows) == [
        {"inputs": inputs, "expectations": {"expected_facts": "a", "tone": "kind"}},
        {"expectations": "x"},
    ]


def test_a_trace_that_could_not_be_read() -> None:
    whole = {"info": {"trace_id": "t"}, "data": {"spans": []}}
    assert kept([whole]) == [whole]
    assert kept([{**GOOD, "trace": "nope"}]) == [{"trace": "nope"}]


def test_a_column_of_that_name_stays(tmp_path: Path) -> None:
    frame = as_pandas([{**GOOD, "unreadable": "mine"}, {**GOOD, "request": 3, "unreadable": None}], tmp_path)
    frame.index = pd.Index(["a", "b"])
    found = normalize_eval_set(frame, on_invalid="keep")
    assert found["unreadable"].tolist() == ["mine", None]
    assert found["unreadable_"].tolist() == [None, '{"request":3}']
    assert list(found.index) == ["a", "b"]


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.bad and rule.severity == "error"])
def test_no_cell_of_an_invalid_row_is_lost(code: str) -> None:
    """Of the bad examples of all rules: a cell is in its column, or beside it."""
    for row in RULES[code].bad:
        if validate_eval_set([row]).format == "databricks":  # others have columns that ours are made of
            (normal,), (beside,) = normalize_eval_set([row], on_invalid="keep"), kept([row])
            there = {n for n, v in normal.items() if v is not None} | set(beside or ())
            assert {n for n, v in row.items() if v is not None} <= there


def test_the_rows_of_a_file_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (GOOD, {"response": "x"}, GOOD, {"request": 3})))
    report = validate_eval_set(path)
    assert list(report.valid.index) == [0, 2]
    assert list(report.invalid.index) == [1, 3]
    assert report.invalid.loc[3, "request"] == 3
