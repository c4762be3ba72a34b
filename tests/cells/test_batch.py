"""A key that an object in a cell has twice is reported at its path: no parser keeps both values."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import validate_eval_set
from agent_eval_schema.text.jsontext import repeated_keys

MESSAGE = '{"role": "user", "content": "a", "content": "b"}'
CELLS = {
    "a message": ('{"messages": [' + MESSAGE + "]}", "request.messages[0].content"),
    "a message, compact": ('{"messages":[{"role":"user","content":"a","content":"b"}]}', "request.messages[0].content"),
    "the object": ('{"messages": [], "messages": [{"role": "user", "content": "a"}]}', "request.messages"),
    "a blank before the colon": ('{"messages": [{"role": "user", "content" : "a", "content": "b"}]}', None),
    "an escaped quote": (MESSAGE.join(['{"messages": [{"role": "user", "content": "\\u0022:"}, ', "]}"]), None),
}


@pytest.mark.parametrize("container", ["jsonl", "csv", "frame"])
@pytest.mark.parametrize("case", CELLS)
def test_a_key_twice_in_a_cell_is_an_error_at_its_path(case: str, container: str, tmp_path: Path) -> None:
    cell, path = CELLS[case]
    frame = pd.DataFrame({"request": [cell, "Hi"], "response": ["x", "y"]})
    data: Any = frame
    if container == "csv":
        frame.to_csv(data := tmp_path / "rows.csv", index=False)
    elif container == "jsonl":
        (data := tmp_path / "rows.jsonl").write_text(f'{{"request": {cell}, "response": "x"}}\n')
    found = validate_eval_set(data, select=["AE114"]).issues
    assert found["row"].tolist() == [0]
    assert found["path"].tolist() == [path or found["path"][0]]
    assert "got it several times" in found["message"][0]


def test_a_format_that_reads_a_column_of_its_own_reports_it_too(tmp_path: Path) -> None:
    (path := tmp_path / "rows.jsonl").write_text('{"inputs": {"q": "a", "q": "b"}, "outputs": "x"}\n')
    found = validate_eval_set(path, select=["AE114"]).issues
    assert found["path"].tolist() == ["inputs.q"]


def test_what_an_agent_or_a_user_wrote_is_a_text() -> None:
    written = '{"a": 1, "a": 2}'
    frame = pd.DataFrame({"request": [written], "response": [written], "expected_response": [written]})
    assert validate_eval_set(frame, select=["AE114"]).issues.empty


_VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=5) | st.sampled_from(['":', '" :', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.property
@given(_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_a_value_that_was_written_has_no_key_twice(value: Any, ascii_only: bool, indent: int | None) -> None:
    assert repeated_keys(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(), "cell") == []
