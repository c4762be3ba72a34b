"""Layouts of a table in one JSON document × formats: each is read as the same rows as the list of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cli import main

Row = dict[str, Any]

TABLES: dict[str, list[Row]] = {
    "databricks": [{"request": f"Q{n}?", "expected_response": f"A{n}."} for n in range(3)],
    "databricks of chats": [
        {"request": {"messages": [{"role": "user", "content": f"Q{n}?"}]}, "expected_facts": ["a"]} for n in range(3)
    ],
    "mlflow": [{"inputs": {"question": f"Q{n}?"}, "outputs": "x"} for n in range(3)],
    "ragas": [{"question": f"Q{n}?", "contexts": [f"C{n}"], "ground_truth": "g"} for n in range(3)],
    "azure": [{"query": f"Q{n}?", "response": "x", "ground_truth": "g"} for n in range(3)],
    "deepeval": [{"input": f"Q{n}?", "expected_output": "x"} for n in range(3)],
    "unknown": [{"Kundenfrage": f"Q{n}?", "Musterantwort": "x"} for n in range(3)],
}


def _orient(orient: Any) -> Callable[[list[Row]], Any]:
    return lambda rows: json.loads(pd.DataFrame(rows).to_json(orient=orient))


LAYOUTS: dict[str, Callable[[list[Row]], Any]] = {
    "object of columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    **{f"pandas, {orient}": _orient(orient) for orient in ("records", "columns", "index", "split", "table")},
    "under a key": lambda rows: {"version": 1, "items": rows},
    "two levels down": lambda rows: {"run": {"cases": rows, "scores": [{"name": "a"}]}},
    "Hugging Face": lambda rows: {
        "features": [{"feature_idx": i, "name": name} for i, name in enumerate(rows[0])],
        "rows": [{"row_idx": i, "row": row, "truncated_cells": []} for i, row in enumerate(rows)],
        "num_rows_total": len(rows),
    },
    "beside a list of something else": lambda rows: {"authors": [{"name": "a"}, {"name": "b"}], "samples": rows},
}


def read(data: Any) -> tuple[str, list[tuple[Any, ...]]]:
    report = validate_eval_set(data)
    if report.format == "unknown":
        report = validate_eval_set(data, columns="auto")
    names = ("request", "response", "expected_response", "expected_facts")
    return report.format, [tuple(row[name] for name in names) for row in report.iter_rows()]


@pytest.mark.parametrize("kind", ["json", "yaml"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("table", TABLES)
def test_each_layout_is_read_as_the_list_of_its_rows(table: str, layout: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"d.{kind}"
    path.write_text(json.dumps(LAYOUTS[layout](TABLES[table])))
    assert read(path) == read(TABLES[table])


@pytest.mark.parametrize("table", TABLES)
def test_a_dict_of_columns_is_data(table: str) -> None:
    assert read(LAYOUTS["object of columns"](TABLES[table])) == read(TABLES[table])


def test_the_key_of_a_row_is_its_id(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps({f"q-{n}": row for n, row in enumerate(TABLES["databricks"])}))
    assert [row["request_id"] for row in validate_eval_set(path).iter_rows()] == ["q-0", "q-1", "q-2"]


def test_a_run_of_deepeval_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    cases = [{"input": "Hi?", "actualOutput": "x", "expectedOutput": "y"}]
    path.write_text(json.dumps({"testRunData": {"testFile": "t.py", "testCases": cases, "metricsScores": []}}))
    report = validate_eval_set(path)
    assert (report.format, report.ok) == ("deepeval", True)


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_of_two_lists_the_user_chooses_one(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"d.{kind}"
    rows = TABLES["ragas"]
    path.write_text(json.dumps({"easy": rows[:1], "hard": rows[1:]}))
    with pytest.raises(EvalSetError, match=rf"got easy \(1\) and hard \(2\): use .*d\.{kind}#easy or .*#hard"):
        validate_eval_set(path)
    for key, wanted in (("easy", rows[:1]), ("hard", rows[1:])):
        report = validate_eval_set(f"{path}#{key}")
        assert [report.format, len(report.valid)] == ["ragas", len(wanted)]
    assert main(["validate", f"{path}#hard"]) == 0
    assert f"{path}#hard" in capsys.readouterr().out.replace("\n", "")
    with pytest.raises(EvalSetError, match="a list of objects at other"):
        validate_eval_set(f"{path}#other")


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
        {"user_input": [{"type": "human", "content": "a"}], "reference_tool_calls": [{"name": "f", "args": {}}]},
        {"request": {"messages": [{"role": "user", "content": "a"}]}, "expected_facts": ["a"]},
        {"prompt": "Hi", "reference_trajectory": [{"tool_name": "f", "tool_input": {}}]},
    ],
    ids=str,
)
def test_a_row_alone_is_no_table_of_columns(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(row))
    assert len(validate_eval_set(path).valid) == 1


def test_a_key_golden_is_no_evaluation() -> None:
    rows = [{"question": f"Q{n}?", "golden": "a"} for n in range(3)]
    assert validate_eval_set(rows).format == "unknown"
    assert [row["expected_response"] for row in validate_eval_set(rows, columns="auto").iter_rows()] == ["a"] * 3


def test_the_list_that_was_not_chosen_is_in_no_row(tmp_path: Path) -> None:
    """Beside a million rows it would be there a million times; what is no list of rows stays with them."""
    path = tmp_path / "d.json"
    rows = TABLES["ragas"]
    path.write_text(json.dumps({"easy": rows, "hard": rows, "version": 2, "authors": [{"name": "Ann"}]}))
    (row, *_) = validate_eval_set(f"{path}#hard").iter_rows()
    assert {name: value for name, value in row.items() if name.startswith("dataset_")} == {
        "dataset_version": 2,
        "dataset_authors": [{"name": "Ann"}],
    }
