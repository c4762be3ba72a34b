"""The report: its numbers can be re-derived, no row is lost, nothing is changed, and every input gives the same one."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import (
    EvalSetError,
    EvalTask,
    InvalidEvalSetError,
    Issue,
    Severity,
    eval_set_from_traces,
    metric_support,
    normalize_eval_set,
    prepare_for_evaluate,
    score_trajectories,
    validate_eval_set,
)
from agent_eval_schema.integrations.mlflow.frames import EVALUATORS, Evaluator
from agent_eval_schema.integrations.mlflow.prepare import InvalidRowsWarning
from agent_eval_schema.metrics.support import shown_systems
from agent_eval_schema.schema import COLUMNS, ROW_SCHEMA
from agent_eval_schema.validation import report_builder
from agent_eval_schema.validation.report import run_of, summary_of
from tests.conftest import as_arrow, as_jsonl, as_list, as_pandas, as_parquet

GOOD = {
    "request_id": "g",
    "request": {"query": "Hi", "history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
    "response": "Hello",
    "expected_facts": ["x"],
    "guidelines": ["be kind"],
    "retrieved_context": [{"doc_uri": "a.md", "content": "text"}],
    "reference_trajectory": [{"tool_name": "f", "tool_input": {"x": 1}}],
    "custom_expected": {"k": [1]},
    "tags": {"team": "x"},
    "team": "search",
}
BAD = {"request_id": "b", "request": {"messages": [{"role": "usr", "content": "Hi"}]}, "response": "Hello", "team": "y"}
ROWS: list[dict[str, Any]] = [GOOD, BAD, {**GOOD, "request_id": "g2", "request": "Ho"}]


def test_the_same_report_from_every_kind_of_input(every_input: Callable[[list[dict[str, Any]]], Any]) -> None:
    found = validate_eval_set(every_input(ROWS))
    assert (found.row_count, found.valid_count, found.invalid_count, found.ok) == (3, 2, 1, False)
    assert found.counts == {"AE103": 1, "AE206": 1}
    assert list(found.issues["path"]) == ["request.messages[0].role", "team"]
    assert list(found.issues["request_id"]) == ["b", None]
    rows = found.rows
    assert list(rows.columns) == [*COLUMNS, "team"]
    assert rows["request"][0]["messages"][-1] == {"role": "user", "content": "Hi"}
    assert list(rows["request_id"]) == ["g", "b", "g2"]
    assert rows["guidelines"][0] == {"guidelines": ["be kind"]}
    assert rows["custom_expected"][0] == {"k": [1]}
    assert list(rows["team"]) == ["search", "y", "search"]
    assert rows["request"][1] is None
    assert list(found.metric_support.iloc[1].unique()) == [False]


def test_valid_and_invalid_are_the_input_in_its_own_form(tmp_path: Path) -> None:
    frame = as_pandas(ROWS, tmp_path)
    frame.index = pd.Index(["x", "y", "z"])
    found = validate_eval_set(frame)
    pd.testing.assert_frame_equal(found.valid, frame.iloc[[0, 2]])
    pd.testing.assert_frame_equal(found.invalid, frame.iloc[[1]])
    found = validate_eval_set(as_list(ROWS, tmp_path))
    assert (found.valid, found.invalid) == ([ROWS[0], ROWS[2]], [ROWS[1]])
    table = as_arrow(ROWS, tmp_path)
    found = validate_eval_set(table)
    assert found.valid.equals(table.filter(pa.array([True, False, True])))
    assert found.invalid.equals(table.slice(1, 1))
    found = validate_eval_set(as_jsonl(ROWS, tmp_path))
    assert list(found.valid["request"]) == [ROWS[0]["request"], ROWS[2]["request"]]
    assert list(found.invalid["request"]) == [ROWS[1]["request"]]


INDEXES = {
    "texts": pd.Index(["x", "y", "z"]),
    "repeated": pd.Index([7, 7, 5], name="case"),
    "times": pd.date_range("2025-01-01", periods=3, tz="UTC"),
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["team", "n"]),
}
FRAMES: dict[str, Callable[[Any], pd.DataFrame]] = {
    "rows": lambda data: validate_eval_set(data).rows,
    "report.metric_support": lambda data: validate_eval_set(data).metric_support,
    "metric_support": metric_support,
    "normalize": lambda data: normalize_eval_set(data, on_invalid="keep"),
    "traces": eval_set_from_traces,
    "metrics_table": lambda data: EvalTask(data, ["exact_match"]).evaluate().metrics_table,
    "run": lambda data: EvalTask(data, ["exact_match"]).evaluate(str).metrics_table,
    "score_trajectories": lambda data: score_trajectories(data).metrics_table,
}


@pytest.mark.parametrize("frames", FRAMES)
@pytest.mark.parametrize("index", INDEXES)
def test_frames_of_rows_have_the_index_of_the_frame_that_was_given(index: str, frames: str) -> None:
    given = pd.DataFrame({"request": ["a", " ", "c"], "response": ["x", "y", "z"], "trace": None}, INDEXES[index])
    found = FRAMES[frames](given)
    pd.testing.assert_index_equal(found.index, given.index)
    kept = given[[True, False, True]]  # filtered, as a user would
    pd.testing.assert_index_equal(FRAMES[frames](kept).index, kept.index)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_prepared_frame_joins_the_frame_that_was_given(evaluator: Evaluator) -> None:
    given = pd.DataFrame({"request": ["a", " ", "c"], "response": ["x", "y", "z"], "team": list("rst")}, list("uvw"))
    with pytest.warns(InvalidRowsWarning):
        prepared = prepare_for_evaluate(given, evaluator=evaluator)
    assert prepared.join(given[["team"]])["team"].to_dict() == {"u": "r", "w": "t"}


def test_a_row_can_be_asked_for_by_its_id(tmp_path: Path) -> None:
    rows = [*ROWS, {"request_id": "twice", "request": "Hi"}, {"request_id": "twice", "request": "Ho"}]
    for found in (validate_eval_set(rows), validate_eval_set(as_jsonl(rows, tmp_path))):
        assert found.why("g2", "correctness") == found.why(2, "correctness")
        with pytest.raises(EvalSetError, match="no row has the request_id 'nobody'"):
            found.why("nobody", "correctness")
        with pytest.raises(EvalSetError, match="the rows 3, 4 have the request_id 'twice'"):
            found.why("twice", "correctness")


def test_batches_and_readers_are_read_too(tmp_path: Path) -> None:
    batch = as_arrow(ROWS, tmp_path).to_batches()[0]
    assert isinstance(validate_eval_set(batch).invalid, pa.RecordBatch)
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch.slice(0, 0)])
    assert validate_eval_set(reader).row_count == 3


def test_inputs_are_not_changed(tmp_path: Path) -> None:
    rows = copy.deepcopy(ROWS)
    frame = as_pandas(rows, tmp_path)
    before = frame.copy()
    for data in (rows, frame):
        found = validate_eval_set(data)
        found.rows["request"][0]["messages"].clear()
        normalize_eval_set(data, on_invalid="keep")
    assert rows == ROWS
    pd.testing.assert_frame_equal(frame, before)


def test_the_report_is_of_the_frame_as_it_was(tmp_path: Path) -> None:
    frame = as_pandas(ROWS, tmp_path)
    found = validate_eval_set(frame)
    frame["response"] = None
    assert list(found.rows["response"]) == ["Hello"] * 3


def test_the_numbers_can_be_counted_again() -> None:
    found = validate_eval_set([*ROWS, {"request": "", "response": "", "expected_facts": [1, 2]}])
    issues = found.issues
    assert found.counts == issues["code"].value_counts().sort_index().to_dict()
    assert found.count("error") == (issues["severity"] == "error").sum()
    assert found.invalid_count == issues[issues["severity"] == "error"]["row"].nunique()
    assert [i.code for i in found.iter_issues()] == list(issues["code"])


def test_issues_are_a_frame_with_one_line_each() -> None:
    issues = validate_eval_set(ROWS).issues
    assert list(issues.columns) == [
        *["row", "request_id", "column", "path", "code", "name", "severity", "message", "hint", "url"]
    ]
    assert str(issues["row"].dtype) == "Int64"
    assert issues["severity"][0] == "error" == Severity.ERROR
    assert issues.loc[0, "request_id"] == "b"


def test_an_empty_frame_of_issues_has_its_columns_too() -> None:
    issues = validate_eval_set([{"request": "a", "response": "b"}]).issues
    assert len(issues) == 0
    assert "message" in issues.columns


def test_invalid_rows_of_an_indented_file_are_lines(tmp_path: Path) -> None:
    path, out = tmp_path / "a.json", tmp_path / "b.jsonl"
    rows = [{"request": {"messages": [{"role": "usr", "content": "a\nb"}]}, "response": "x", "more": {"a": [1, 2]}}]
    path.write_text(json.dumps(rows, indent=2).replace("\n", "\r\n"))
    assert validate_eval_set(str(path)).write_invalid(str(out)) == 1
    (line,) = out.read_text().splitlines()
    assert {k: v for k, v in json.loads(line).items() if k != "_issues"} == rows[0]


def test_raise_if_invalid() -> None:
    good = validate_eval_set([{"request": "a", "response": "b"}])
    assert good.raise_if_invalid() is good
    with pytest.raises(InvalidEvalSetError, match="AE206") as caught:
        validate_eval_set(ROWS).raise_if_invalid()
    assert caught.value.report.counts["AE206"] == 1


# normalize


def test_normalize_gives_the_same_kind_of_container(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[2]]
    frame = as_pandas(rows, tmp_path)
    frame.index = pd.Index([5, 7])
    normal = normalize_eval_set(frame)
    assert isinstance(normal, pd.DataFrame)
    assert list(normal.index) == [5, 7]
    table = normalize_eval_set(as_arrow(rows, tmp_path))
    assert isinstance(table, pa.Table)
    assert table.schema.equals(pa.schema([*ROW_SCHEMA, ("team", pa.string())]))
    dicts = normalize_eval_set(rows)
    assert dicts[0]["request"] == normal["request"].iloc[0]
    assert dicts[0]["total_token_count"] is None
    assert isinstance(normalize_eval_set(as_jsonl(rows, tmp_path)), pd.DataFrame)
    batch = as_arrow(rows, tmp_path).to_batches()[0]
    assert isinstance(normalize_eval_set(batch), pa.RecordBatch)
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    assert isinstance(normalize_eval_set(reader), pa.RecordBatchReader)


def test_invalid_rows_raise_are_kept_or_are_dropped_as_asked() -> None:
    with pytest.raises(InvalidEvalSetError):
        normalize_eval_set(ROWS)
    assert [r["request_id"] for r in normalize_eval_set(ROWS, on_invalid="keep")] == ["g", "b", "g2"]
    assert [r["request_id"] for r in normalize_eval_set(ROWS, on_invalid="drop")] == ["g", "g2"]
    with pytest.raises(EvalSetError, match="on_invalid"):
        normalize_eval_set(ROWS, on_invalid="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [as_pandas, as_list, as_arrow, as_parquet], ids=lambda f: f.__name__)
def test_normal_rows_are_valid_and_stay_as_they_are(kind: Callable[..., Any], tmp_path: Path) -> None:
    once = normalize_eval_set(kind([ROWS[0], ROWS[2]], tmp_path))
    again = validate_eval_set(once)
    assert again.counts == {"AE103": 1}
    twice = again.rows if isinstance(once, list) else normalize_eval_set(once)
    if isinstance(once, pa.Table):
        assert twice.equals(once)
    else:
        expected = pd.DataFrame(once) if isinstance(once, list) else once
        for name in COLUMNS:
            assert [_plain(v) for v in twice[name]] == [_plain(v) for v in expected[name]], name


def _plain(value: Any) -> Any:
    return None if value is pd.NA or (isinstance(value, float) and np.isnan(value)) else value


# files: what would be large is read again


def test_a_report_on_a_file_keeps_no_cells_and_reads_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_builder, "ISSUES_KEPT", 3)
    rows = [{"request_id": str(i % 7), "request": "", "response": "x"} for i in range(10)]
    found = validate_eval_set(as_jsonl(rows, tmp_path))
    everything = validate_eval_set(rows)
    assert found.counts == everything.counts == {"AE202": 10, "AE901": 3}
    assert len(run_of(found).builder.take_issues()) <= 10
    pd.testing.assert_frame_equal(found.issues, everything.issues)


def test_rows_can_be_streamed(tmp_path: Path) -> None:
    found = validate_eval_set(as_jsonl(ROWS, tmp_path))
    streamed = list(found.iter_rows())
    assert [r["request_id"] for r in streamed] == ["g", "b", "g2"]
    assert streamed[0]["request"] == found.rows["request"][0]
    assert streamed[0]["team"] == "search"


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_normalized_rows_are_written_and_valid(ending: str, tmp_path: Path) -> None:
    source = as_jsonl([ROWS[0], ROWS[2], {"request": "a", "response": "b", "late": 1}], tmp_path)
    target = str(tmp_path / f"out.{ending}")
    found = validate_eval_set(source)
    assert found.write(target) == 3
    again = validate_eval_set(target)
    assert (again.row_count, again.invalid_count) == (3, 0)
    assert list(again.rows["request"]) == list(found.rows["request"])
    assert list(again.rows["reference_trajectory"]) == list(found.rows["reference_trajectory"])


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_invalid_rows_are_written_with_their_cells_and_issues(ending: str, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"request": "", "response": "a", "request_id": "1"}\n{"cut": \n{"request": "b", "response": "c"}\n'
    )
    target = str(tmp_path / f"bad.{ending}")
    assert validate_eval_set(source).write_invalid(target) == 2
    if ending == "jsonl":
        first, second = (json.loads(line) for line in Path(target).read_text().splitlines())
    else:
        first, second = pq.read_table(target).to_pylist()
    assert first["response"] == "a"
    assert [i["code"] for i in first["_issues"]] == ["AE202"]
    assert second["__line__"] == '{"cut": '
    assert [i["code"] for i in second["_issues"]] == ["AE007"]


def test_original_parquet_cells_are_handed_back_as_they_were(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("doc_uri", pa.string()), ("content", pa.string())]))
    table = pa.table(
        {"request": ["a", ""], "response": ["b", "c"], "retrieved_context": pa.array([[], [{"doc_uri": "u"}]], kind)}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    target = str(tmp_path / "bad.parquet")
    validate_eval_set(tmp_path / "in.parquet").write_invalid(target)
    assert pq.read_table(target).select(table.schema.names).equals(table.slice(1))


# JSON and text


def test_json_is_versioned_and_complete() -> None:
    found = validate_eval_set(ROWS)
    document = json.loads(found.to_json())
    assert document["schema_version"] == 1
    assert document["rows"] == {"total": 3, "valid": 2, "invalid": 1}
    assert document["counts"] == found.counts
    assert document["issues_listed"] == len(document["issues"]) == 2
    assert document["issues"][0] == {
        "row": 1,
        "request_id": "b",
        "column": "request",
        "path": "request.messages[0].role",
        "code": "AE206",
        "name": "message-role",
        "severity": "error",
        "message": "expected one of assistant, developer, function, system, tool, user, got the text 'usr'",
        "hint": "Did you mean 'user'?",
        "url": "https://platform.openai.com/docs/api-reference/chat/create",
    }
    shown = found.metrics[found.metrics["system"].isin(shown_systems(summary_of(found).system))]
    assert {m["metric"] for m in document["metrics"]} == set(shown["metric"]) < set(found.metrics["metric"])


def test_json_names_its_source_with_escapes_or_has_null(tmp_path: Path) -> None:
    path = tmp_path / "a\u202eb.json"
    path.write_text(json.dumps(ROWS))
    for data, name in ((path, str(path).replace("\u202e", "\\u202e")), (ROWS, None)):
        assert json.loads(validate_eval_set(data).to_json())["source"] == name


def test_save_writes_json_or_text_by_the_ending(tmp_path: Path) -> None:
    found = validate_eval_set(ROWS)
    found.save(tmp_path / "r.json")
    found.save(tmp_path / "r.txt")
    assert json.loads((tmp_path / "r.json").read_text())["ok"] is False
    assert (tmp_path / "r.txt").read_text() == found.to_text()
    with pytest.raises(EvalSetError, match="cannot be written"):
        found.save(tmp_path / "no" / "such" / "r.txt")


def test_repr_is_one_line() -> None:
    assert repr(validate_eval_set(ROWS)) == "<Report: 2 of 3 rows valid, 1 errors, 0 warnings>"


HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202eabc [bold red]x[/] \x00"


def test_text_sends_no_control_characters_of_the_data() -> None:
    rows = [{"request_id": HOSTILE, "request": {HOSTILE: 1}, "response": 1, HOSTILE: 1, "retrieved_context": HOSTILE}]
    text = validate_eval_set(rows).to_text()
    assert not {c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"}
    assert "\\x1b[2J" in text
    assert "[bold red]x[/]" in text


def test_color_is_only_sent_when_asked_for() -> None:
    found = validate_eval_set(ROWS)
    assert "\x1b[" not in found.to_text()
    assert "\x1b[" in found.to_text(color=True)


def test_issue_is_a_value() -> None:
    issue = next(validate_eval_set(ROWS).iter_issues())
    assert isinstance(issue, Issue)
    assert issue.severity is Severity.ERROR
    with pytest.raises(AttributeError):
        issue.row = 3  # type: ignore[misc]


def test_a_report_in_a_condition_is_ok() -> None:
    assert validate_eval_set([{"request": "Hi", "response": "Hello!"}])
    assert not validate_eval_set([{"request": " ", "response": "Hello!"}])
    assert not validate_eval_set([{"request": "Hi", "request_id": "a"}, {"request": "Ho", "request_id": "a"}])
