"""An id that was given twice is an error of the later row; one that only a trace says, or that was made, never is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import convert_eval_set, normalize_eval_set, prepare_for_evaluate, validate_eval_set
from agent_eval_schema.formats.names import TARGETS
from agent_eval_schema.io import source
from agent_eval_schema.rules.dataset import REPEATED
from tests.conftest import Row

TRACE = json.dumps({"info": {"trace_id": "tr-1", "state": "OK"}, "data": {"spans": []}})
CALL = {"tool_name": "search", "tool_input": {"q": "leave"}}


def traced(request: str, **cells: Any) -> Row:
    return {"request": request, "response": "a", "trace": TRACE, **cells}


def repeated(data: Any) -> list[tuple[int | None, str, str]]:
    report = validate_eval_set(data)
    assert report.valid_mask.tolist() == [
        not any(i.row == row and i.code == "AE901" for i in report.iter_issues()) for row in range(report.row_count)
    ]
    return [(i.row, i.code, i.message) for i in report.iter_issues() if i.code in REPEATED]


@pytest.fixture(params=[1, 2, 100], ids=lambda n: f"batches-of-{n}")
def _batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_BATCH_ROWS", request.param)


@pytest.mark.usefixtures("_batches")
def test_the_id_of_a_trace_that_repeats_is_a_warning(every_input: Callable[[list[Row]], Any]) -> None:
    data = every_input([traced("a"), traced("b"), traced("c", request_id="1"), traced("d")])
    said = "'tr-1' is already the ID of row 0"
    assert repeated(data) == [(1, "AE905", said), (3, "AE905", said)]


@pytest.mark.usefixtures("_batches")
def test_only_an_id_that_was_given_twice_is_an_error(every_input: Callable[[list[Row]], Any]) -> None:
    given = {"request": "c", "response": "a", "request_id": "tr-1"}
    assert repeated(every_input([traced("a"), given, traced("b"), given, given])) == [
        (1, "AE905", "'tr-1' is already the ID of row 0"),
        (2, "AE905", "'tr-1' is already the ID of row 0"),
        (3, "AE901", "'tr-1' is already the ID of row 1"),
        (4, "AE901", "'tr-1' is already the ID of row 1"),
    ]
    assert repeated(every_input([given, traced("a")])) == [(1, "AE905", "'tr-1' is already the ID of row 0")]


def test_normalized_rows_have_the_ids_of_their_traces_still(tmp_path: Path) -> None:
    rows = [traced("a"), traced("b")]
    once = normalize_eval_set(rows)
    assert [row["request_id"] for row in once] == ["tr-1", "tr-1"]
    assert repeated(once) == repeated(rows)
    for ending in ("jsonl", "parquet", "csv"):
        path = tmp_path / f"rows.{ending}"
        validate_eval_set(rows).write(path)
        assert repeated(path) == repeated(rows)


def test_each_of_the_rules_can_be_switched_off() -> None:
    given = {"request": "c", "response": "a", "request_id": "1"}
    rows = [traced("a"), traced("b"), given, given]
    for off, on in (("AE901", "AE905"), ("AE905", "AE901")):
        report = validate_eval_set(rows, ignore=[off])
        assert (report.counts.keys() & REPEATED, report.valid_count) == ({on}, 4 if off == "AE901" else 3)
    hidden = validate_eval_set(rows, show_values=False).to_text()
    assert "tr-1" not in hidden


@pytest.mark.xdist_group("spark")
def test_on_spark_as_well(spark: Any) -> None:
    given = {"request": "c", "response": "a", "request_id": "tr-1", "trace": None}
    rows = [{"request_id": None, **traced("a")}, given, given]
    names = ("request_id", "request", "response", "trace")
    frame = spark.createDataFrame([tuple(r[n] for n in names) for r in rows], ", ".join(f"{n} string" for n in names))
    assert repeated(frame.coalesce(1)) == repeated(rows) != []


# ---------------------------------------------------------------------------------------------------------------------
# ids that are made here
def test_turns_of_the_adk_without_an_eval_id_have_no_id(tmp_path: Path) -> None:
    conversation = [{"user_content": {"parts": [{"text": f"q{i}"}]}} for i in range(2)]
    path = tmp_path / "x.evalset.json"
    path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": [{"conversation": conversation}] * 3}))
    turns = [{"turn": i + 1, "turns": 2, "history": [], "user_content": f"q {i}"} for i in range(2)]
    sessions = [{"query": "a", "expected_tool_use": [], "reference": "b"}] * 3
    for data in (path, turns * 2, sessions):
        report = validate_eval_set(data)
        assert report.format.startswith("adk")
        assert {row["request_id"] for row in report.iter_rows()} == {None}
        assert not report.counts.keys() & REPEATED


@pytest.mark.parametrize("eval_id", ["leave", 7])
def test_turns_of_one_case_have_ids_of_their_own(eval_id: Any, tmp_path: Path) -> None:
    conversation = [{"user_content": {"parts": [{"text": f"q{i}"}]}} for i in range(3)]
    path = tmp_path / "x.evalset.json"
    path.write_text(
        json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": eval_id, "conversation": conversation}]})
    )
    assert [row["request_id"] for row in validate_eval_set(path).iter_rows()] == [
        f"{eval_id}#{turn}" for turn in (1, 2, 3)
    ]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.usefixtures("_batches")
def test_traces_that_are_made_for_mlflow_are_of_one_row_each(rows: int) -> None:
    row = {"request": "Hi", "response": "Hello", "predicted_trajectory": [CALL]}
    data = [row] * rows
    made = convert_eval_set(data, "mlflow").data
    ids = [json.loads(text)["info"]["trace_id"] for text in made.trace]
    assert len(set(ids)) == rows
    assert convert_eval_set(data, "mlflow").data.trace.tolist() == made.trace.tolist()
    assert repeated(made) == []
    assert validate_eval_set(made).valid_count == rows
    prepared = prepare_for_evaluate(data)
    assert len({json.loads(text)["info"]["trace_id"] for text in prepared.trace}) == rows


RESULT = "projects/p/locations/l/apps/a/evaluations/leave/results"


def test_results_of_one_evaluation_that_ran_twice() -> None:
    outcome = {
        "expectation": {"agentResponse": {"chunks": [{"text": "x"}]}},
        "observedAgentResponse": {"chunks": [{"text": "x"}]},
    }
    turns = [{"expectationOutcome": [outcome]}] * 2
    results = [
        {"name": f"{RESULT}/{i}", "displayName": f"run {i}", "goldenResult": {"turnReplayResults": turns}}
        for i in (1, 2)
    ]
    assert validate_eval_set(results).format == "ces-evaluation"
    made = convert_eval_set(results, "databricks").data
    assert made.request_id.tolist() == ["leave#1", "leave#2", "leave (2)#1", "leave (2)#2"]
    assert repeated(made) == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_conversion_repeats_no_id(target: Any, tmp_path: Path) -> None:
    """Rows with traces of one id, and rows without an id beside one that is called as such rows would be."""
    cells = {"response": "a", "expected_response": "a", "reference_trajectory": [CALL], "predicted_trajectory": [CALL]}
    rows = [traced("a", **cells), traced("b", **cells)]
    nameless = [{"request": name, **cells} for name in "abc"]
    for data in (rows, [{**nameless[0], "request_id": "row 2"}, *nameless[1:]]):
        made = convert_eval_set(data, target).data
        if isinstance(made, str):
            (tmp_path / "golden.csv").write_text(made)
        report = validate_eval_set(tmp_path / "golden.csv" if isinstance(made, str) else made)
        assert report.valid_count == report.row_count >= len(data)


def test_an_id_that_is_left_out_is_a_loss() -> None:
    made = convert_eval_set([traced("a"), traced("b")], "ragas")
    said = "an earlier row has the same ID, which is that of the row's trace; the row is written without it"
    assert said in made.losses[made.losses.row == 1].message.tolist()
    assert said not in convert_eval_set([traced("a"), traced("b")], "mlflow").losses.message.tolist()
