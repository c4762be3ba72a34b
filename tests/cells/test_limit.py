"""The largest cell that a run reads: a larger one is an issue, whatever holds it, and the rest of its row is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cells.sizes import without_large_cells
from agent_eval_schema.cli import main
from tests.conftest import KINDS
from tests.helpers.traces import span, trace

LONG = "é" * 50 + "a"
"""101 bytes."""

ROWS = [
    {"request": "Hi", "response": "Hello"},
    {"request": "Ho", "response": LONG},
    {"request": "Hu", "response": "x" * 100},
]


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "delta"])
def test_a_large_cell_is_an_error_in_every_container(kind: str, tmp_path: Path) -> None:
    report = validate_eval_set(KINDS[kind](ROWS, tmp_path), max_cell_bytes=100)
    errors = [(i.row, i.code, i.column, i.message) for i in report.iter_issues() if i.severity == "error"]
    assert errors == [(1, "AE011", "response", "expected at most 100 bytes, got 101")]
    assert report.valid_mask.tolist() == [True, False, True]
    assert report.rows["request"].notna().all()
    assert [text if isinstance(text, str) else None for text in report.rows["response"]] == ["Hello", None, "x" * 100]


def test_the_limit_is_the_largest_cell_that_is_read() -> None:
    assert validate_eval_set(ROWS, max_cell_bytes=101).ok
    assert validate_eval_set(ROWS).ok
    assert validate_eval_set(ROWS, max_cell_bytes=99).counts["AE011"] == 2


def test_a_column_of_another_format_is_reported_by_its_name() -> None:
    rows = [{"inputs": {"question": LONG}, "outputs": "Hello"}]
    (issue,) = [i for i in validate_eval_set(rows, max_cell_bytes=50).iter_issues() if i.severity == "error"]
    assert issue.code == "AE011"
    assert (issue.row, issue.column) == (0, "inputs")
    assert "`--max-cell-bytes`" in issue.hint


def test_notes_and_nothing_else_is_changed() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["x", "yyy"], "b": [[1, 2, 3], None], "c": [1, 2]})
    assert without_large_cells(batch, 100).equals(batch)
    cut = without_large_cells(batch, 8)
    assert cut.select(["a", "b", "c"]).to_pydict() == {"a": ["x", "yyy"], "b": [None, None], "c": [1, 2]}


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())]
)
def test_types_of_text(kind: pa.DataType) -> None:
    table = pa.table({"request": pa.array(["Hi", "Ho"]), "response": pa.array(["Hello", LONG]).cast(kind)})
    assert validate_eval_set(table, max_cell_bytes=100).valid_mask.tolist() == [True, False]


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "1"])
def test_a_limit_that_is_none(given: Any) -> None:
    with pytest.raises(EvalSetError, match="max_cell_bytes: expected a whole number of at least 1"):
        validate_eval_set(ROWS, max_cell_bytes=given)


def test_option_and_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert main(["validate", "rows.jsonl"]) == 0
    assert main(["validate", "rows.jsonl", "--show-settings"]) == 0
    assert "max-cell-bytes" not in capsys.readouterr().out
    assert main(["validate", "rows.jsonl", "--max-cell-bytes", "100", "--output", "concise"]) == 1
    assert "rows.jsonl:2: error AE011" in capsys.readouterr().out
    (tmp_path / "agent-eval-schema.toml").write_text("max-cell-bytes = 100")
    assert main(["validate", "rows.jsonl"]) == 1
    assert main(["validate", "rows.jsonl", "--max-cell-bytes", "101"]) == 0
    assert main(["validate", "rows.jsonl", "--fix", "out.jsonl"]) == 1
    assert (tmp_path / "out.jsonl").read_bytes() == path.read_bytes()
    assert main(["validate", "rows.jsonl", "--show-settings"]) == 0
    assert "max-cell-bytes = 100\n" in capsys.readouterr().out
    (tmp_path / "agent-eval-schema.toml").write_text("max-cell-bytes = 0")
    assert main(["validate", "rows.jsonl"]) == 2
    assert "max-cell-bytes" in capsys.readouterr().err


def test_a_row_whose_trace_is_too_large_lacks_nothing_else() -> None:
    given = trace(span(inputs={"query": "Hi"}, outputs="Hello " * 500))
    report = validate_eval_set([{"trace": given}], outputs="provided", max_cell_bytes=1_000)
    assert [i.code for i in report.iter_issues()] == ["AE011"]
