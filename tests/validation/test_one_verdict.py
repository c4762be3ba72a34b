"""A row has one verdict: the same issues and the same normalized row from every container and in batches of any size.

The rows are the samples of the repository with seeded damage (tests/helpers/mutations.py). Each sample comes in three
forms, and within a form all containers have to agree with a list:

    nested   Python values: a list, a frame of objects, JSON Lines, a JSON array
    flat     text only, nested cells as JSON text: these, and CSV, Arrow, Parquet, Delta, Spark
    typed    whatever types Arrow finds for the cells: an Arrow table, Parquet, Delta
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.io import source
from agent_eval_schema.io.records import is_absent
from agent_eval_schema.issues import Issue
from agent_eval_schema.text.jsontext import parse_leniently
from tests.conftest import DATA, KINDS, as_arrow, as_list, columns_of
from tests.helpers.mutations import Row, mutated, samples
from tests.helpers.wild import EXAMPLES

Kinds = Mapping[str, Callable[[list[Row], Path], Any]]

NESTED: Kinds = {name: KINDS[name] for name in ("list", "pandas", "jsonl", "json")}
QUICK: Kinds = {name: make for name, make in KINDS.items() if name != "delta"}
SIZES = (1, 2, 3, 8_192)

OF_THE_CONTAINER = ("AE211", "AE115")
"""Reported of an object that is written as text where it could be an object, which CSV and a column of texts do not
have, and of a word for null in an answer, which only CSV needs."""


def verdict(data: Any) -> dict[str, Any]:
    report = validate_eval_set(data)
    return {
        "format": report.format,
        "valid": report.valid_mask.tolist(),
        "issues": [_issue(i) for i in report.iter_issues() if i.code not in OF_THE_CONTAINER],
        "rows": [_cells(row) for row in report.rows.to_dict("records")],
        "metrics": report.metrics.to_dict("records"),
    }


def _issue(issue: Issue) -> tuple[Any, ...]:
    """An issue without the names of files and the numbers of lines."""
    message = re.sub(r"^line \d+: ", "", issue.message)
    hint = None if issue.row is None else issue.hint
    return (issue.row, issue.request_id, issue.code, issue.column, issue.path, message, hint)


def _cells(row: Mapping[str, Any]) -> Row:
    """The cells that are there; a trace as the value of its JSON text, in which a file may have blanks."""
    found = {str(name): _plain(value) for name, value in row.items() if not is_absent(value)}
    return found | ({"trace": parse_leniently(found["trace"])} if "trace" in found else {})


def _plain(value: Any, depth: int = 200) -> Any:
    """A value without what a container adds to it: keys without a value, types of numpy. What is nested deeper was JSON
    text, to which no container adds anything."""
    if depth and isinstance(value, dict):
        return {k: _plain(v, depth - 1) for k, v in value.items() if v is not None}
    if depth and isinstance(value, list | tuple | np.ndarray):
        return [_plain(v, depth - 1) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def require_one_verdict(
    rows: list[Row], kinds: Kinds, folder: Path, patch: pytest.MonkeyPatch, at: str, turn: int | None = None
) -> None:
    """In batches of every size; with a turn only a list, and the others in one small size, which the turns change."""
    if not columns_of(rows):  # a table without columns has no rows
        return
    expected = verdict(as_list(rows, folder))
    for place, (kind, make) in enumerate(kinds.items()):
        data = make(rows, folder)
        for size in SIZES if turn is None or kind == "list" else (SIZES[(turn + place) % 3], SIZES[-1]):
            with patch.context() as limit:
                limit.setattr(source, "MAX_BATCH_ROWS", size)
                assert verdict(data) == expected, f"{at}: {kind}, in batches of {size}"


def flat(rows: list[Row]) -> list[Row]:
    """The rows as a table of texts has them, in which an empty cell is absent."""
    return [{n: _text(v) for n, v in row.items() if v is not None and v != ""} for row in rows]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed(rows: list[Row]) -> pa.Table | None:
    """The rows as Arrow takes them, if it does."""
    try:
        table = pa.Table.from_pylist([{n: row.get(n) for n in columns_of(rows)} for row in rows])
        pq.write_table(table, pa.BufferOutputStream())
    except (pa.ArrowException, OverflowError):
        return None
    return table


def require_everywhere(seed: int, kinds: Kinds, folder: Path, patch: pytest.MonkeyPatch) -> None:
    name, rows = mutated(seed)
    at = f"seed {seed}, {name}"
    require_one_verdict(rows, NESTED, folder, patch, f"{at}, nested", seed)
    require_one_verdict(flat(rows), kinds, folder, patch, f"{at}, flat", seed)
    table = typed(rows)
    if table is not None:
        file = folder / "typed.parquet"
        pq.write_table(table, file)
        tables: Kinds = {"arrow": lambda *_: table, "parquet": lambda *_: str(file)}
        require_one_verdict(table.to_pylist(), tables, folder, patch, f"{at}, typed", seed)


TRACE = json.loads((DATA / "traces" / "mlflow_v3_18_2.json").read_text())

KNOWN: dict[str, list[Row]] = {
    "the data of traces as JSON text": [{**TRACE, "data": json.dumps(TRACE["data"])}],
    "the data of some traces as JSON text": [TRACE, {**TRACE, "data": json.dumps(TRACE["data"])}],
    "the first rows have no traces": [
        *({"request_id": str(i), "state": "OK", "request_time": i, "response": "Hello"} for i in range(3)),
        {"request_id": "3", "state": "OK", "request_time": 3, "trace": json.dumps(TRACE)},
    ],
    "a session of the ADK": [{"query": f"q {i}", "expected_tool_use": [], "reference": f"a {i}"} for i in range(4)],
    "texts of CES that look like JSON": [
        {
            "displayName": f"of {text}",
            "description": text,
            "golden": {"turns": [{"steps": [{"userInput": {"text": "[1]"}}]}]},
        }
        for text in ("[1]", '{"a": 1}', "Hi")
    ],
    "ground truth in both of its places": [
        {"inputs": {"question": "a"}, "outputs": "b", "expected_response": "its own"},
        {"inputs": {"question": "c"}, "outputs": "d", "expectations": {"expected_response": "mlflow's"}},
    ],
    "a key twice in an object that is text": [
        {"request": '{"messages": [{"role": "user", "content": "a", "content": "b"}]}', "response": "c"},
        {"request": "Hi", "response": "c", "expected_facts": '[{"a": 1, "a": 2}]', "tags": '{"a": "1", "a": "2"}'},
    ],
    "a key twice in inputs that are text": [{"inputs": '{"a": 1, "a": 2}', "outputs": "b"}],
    "expectations that are malformed JSON text beside an object": [
        {"inputs": {"question": "Hi"}, "outputs": "b", "expectations": {"expected_response": "b"}},
        {"inputs": {"question": "Hi"}, "outputs": "b", "expectations": '{"expected_response": "\x1b"}'},
    ],
    "the word null as inputs": [{"inputs": "null"}, {"inputs": {"question": "Hi"}, "outputs": "null"}],
    "the first row is no span": [
        {"name": "a", "context": "[x", "attributes": {}},
        {"name": "b", "context": {"trace_id": "1" * 32, "span_id": "2" * 16}, "attributes": {"input.value": "Hi"}},
    ],
    "the first row is no request of Gemini": [
        {"request": "Hi"},
        {"request": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}},
    ],
    "the first row is no session of the ADK": [
        {"name": "a", "data": []},
        {"name": "b", "data": [{"query": "Hi", "expected_tool_use": [], "reference": "Hello"}]},
    ],
}


@pytest.mark.parametrize("rows", KNOWN.values(), ids=KNOWN)
def test_what_differed_once(rows: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_one_verdict(rows, NESTED, tmp_path, monkeypatch, "nested")
    require_one_verdict(flat(rows), QUICK, tmp_path, monkeypatch, "flat")


def test_a_row_alone_in_the_types_of_arrow() -> None:
    """Together most rows of a sample have no types that Arrow finds; one has those of a table with rows like it."""
    found = {f"{name}, row {i}": typed([row]) for name, rows in samples().items() for i, row in enumerate(rows[:8])}
    tables = {at: table for at, table in found.items() if table is not None and table.num_columns}
    assert len(tables) > 200
    for at, table in tables.items():
        assert verdict(table) == verdict(table.to_pylist()), at


def test_json_text_is_read_where_it_stands_for_an_object() -> None:
    """A text is what it says, unless only an object or a list can stand in its place."""
    as_text = verdict([{**TRACE, "data": json.dumps(TRACE["data"])}])
    assert as_text == verdict([TRACE])
    assert as_text["rows"][0]["request"]
    assert verdict(KNOWN["texts of CES that look like JSON"])["valid"] == [True] * 3
    assert [row["expected_response"] for row in verdict(KNOWN["ground truth in both of its places"])["rows"]] == [
        "its own",
        "mlflow's",
    ]


SEEDS = [pytest.param(n, marks=pytest.mark.property if n % 15 else ()) for n in range(0, len(samples()), 3)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_rows(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_everywhere(seed, QUICK, tmp_path, monkeypatch)


@pytest.mark.property
@pytest.mark.parametrize("start", range(1_000, 1_000 + EXAMPLES, 10))
def test_many_rows(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 10):
        require_everywhere(seed, KINDS if seed % 5 == 0 else QUICK, tmp_path, monkeypatch)


def is_export(seed: int) -> bool:
    """Whether a sample has spans of OpenTelemetry, which are not collected over the rows of a table on a cluster."""
    return "otel" in mutated(seed)[0]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("seed", [n for n in range(2_000, 2_000 + len(samples()), 7) if not is_export(n)])
def test_spark(spark: Any, seed: int, tmp_path: Path) -> None:
    """Spark makes batches of its own, by its own limit."""
    name, rows = mutated(seed)
    texts = flat(rows)
    expected = verdict(texts)
    frame = spark.createDataFrame(
        as_arrow(texts, tmp_path).to_pandas().astype(object).where(pd.notna, None),
        schema=", ".join(f"`{n}` string" for n in columns_of(texts)),
    )
    for size in (1, 10_000):
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", size)
        assert verdict(frame.coalesce(1)) == expected, f"seed {seed}, {name}, in batches of {size}"
