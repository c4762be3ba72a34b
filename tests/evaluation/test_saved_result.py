"""Results as files: written, read and compared on another day."""

from __future__ import annotations

import json
import math
import platform
import shutil
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from agent_eval_schema import CustomMetric, EvalResult, EvalSetError, EvalTask, load_result, score_trajectories
from agent_eval_schema.cli import main
from agent_eval_schema.evaluation import saved_result
from agent_eval_schema.evaluation.saved_result import _expectations
from tests.conftest import ROOT
from tests.evaluation.test_task import SEED

RESULTS = ROOT / "tests/data/results"
KINDS = ["parquet", "jsonl", "json"]

ROWS: list[dict[str, Any]] = [
    {"request_id": "a", "prompt": "2 + 2", "reference": "4"},
    {"request_id": "b", "prompt": "2 / 0", "reference": "undefined"},
    {"request_id": "c", "prompt": [{"role": "user", "content": "3 + 3"}], "reference": None},
    {"request_id": "d", "prompt": "4 + 4", "reference": "9"},
]


def agent(prompt: Any) -> str:
    left, operator, right = (prompt if isinstance(prompt, str) else prompt[0]["content"]).split()
    return str(int(left) + int(right) if operator == "+" else int(left) // int(right))


def run_of_today() -> EvalResult:
    return EvalTask(ROWS, ["exact_match", "rouge_1"]).evaluate(agent)


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_is_read_is_the_one_that_was_written(kind: str, tmp_path: Path) -> None:
    result = run_of_today()
    assert result.write(tmp_path / f"scores.{kind}") == 4
    read = load_result(tmp_path / f"scores.{kind}")
    pd.testing.assert_frame_equal(read.scores, result.scores)
    assert list(read.metrics_table.columns) == list(result.metrics_table.columns)
    assert read.reasons.to_dict("list") == result.reasons.to_dict("list")
    assert read.summary_metrics == pytest.approx(result.summary_metrics, nan_ok=True)
    assert (read.metrics, read.row_count, read.scored) == (result.metrics, 4, result.scored)
    assert read.failures == result.failures == {1: "ZeroDivisionError: integer division or modulo by zero"}
    assert read.unscored.sort_values(["metric", "reason"]).to_dict("list") == result.unscored.sort_values(
        ["metric", "reason"]
    ).to_dict("list")
    assert read.provenance == {**result.provenance, "source": None}
    pd.testing.assert_frame_equal(read.standard_errors(), result.standard_errors())
    assert str(read).splitlines()[1:] == str(result).splitlines()[1:]
    assert read.write(tmp_path / f"again.{kind}") == 4  # a copy has the same provenance
    assert load_result(tmp_path / f"again.{kind}").provenance == result.provenance


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_without_rows(kind: str, tmp_path: Path) -> None:
    result = EvalTask(pd.DataFrame({"response": [], "reference": []}), ["exact_match"]).evaluate()
    assert result.write(tmp_path / f"none.{kind}") == 0
    read = load_result(tmp_path / f"none.{kind}")
    assert (read.row_count, read.metrics, math.isnan(read.summary_metrics["exact_match/mean"])) == (
        0,
        ("exact_match",),
        True,
    )


def test_rows_of_a_file_are_scored_and_saved_in_parts(tmp_path: Path) -> None:
    rows = [{**SEED[i % 2], "prompt": f"question {i}"} for i in range(20_000)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = score_trajectories(tmp_path / "rows.jsonl", ["trajectory_recall"])
    result.write(tmp_path / "scores.jsonl")
    read = load_result(tmp_path / "scores.jsonl")
    assert len(list(read.iter_parts())) > 1
    assert read.metrics_table.index.tolist() == list(range(20_000))
    assert read.summary_metrics == result.summary_metrics
    assert read.provenance["source"] == str(tmp_path / "rows.jsonl")
    assert read.compare(result).rows.empty


@pytest.mark.parametrize("kind", [*KINDS, "csv"])
def test_files_of_the_first_version_are_read(kind: str) -> None:
    """These files never change: they are what a user has kept."""
    read = load_result(RESULTS / f"version_1.{kind}")
    assert read.metrics == ("exact_match", "rouge_1")
    assert read.scores["exact_match"].fillna(-1).tolist() == [1, -1, -1, 0]
    assert read.failures == {1: "ZeroDivisionError: integer division or modulo by zero"}
    assert read.reasons["exact_match"].tolist() == [None, "the call failed", "the row lacks reference", None]
    hash_ = "" if kind == "csv" else run_of_today().provenance["data_hash"]
    assert read.provenance["data_hash"] == hash_
    found = read.compare(run_of_today())
    assert found.rows.query("metric != 'latency_in_seconds'").empty
    assert found.matched_by == "position"


def test_what_a_file_has_beside_its_rows(tmp_path: Path) -> None:
    result = EvalTask(ROWS, ["exact_match"]).evaluate(agent)
    result.write(tmp_path / "scores.parquet")
    result.write(tmp_path / "scores.jsonl")
    in_parquet = json.loads(pq.read_schema(tmp_path / "scores.parquet").metadata[b"eval_result"])
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [sorted(line) for line in lines[1:]] == [sorted(line.keys() - {"eval_result"}) for line in lines[1:]]
    assert lines[0]["eval_result"] == in_parquet
    assert (in_parquet["version"], in_parquet["metrics"], in_parquet["row_count"]) == (1, ["exact_match"], 4)
    assert {"python", "agent_eval_schema"} <= in_parquet["versions"].keys()


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "agent_eval_schema":
            return "1.2"
        raise PackageNotFoundError

    monkeypatch.setattr(saved_result, "version", version)
    assert saved_result.versions.__wrapped__() == {"python": platform.python_version(), "agent_eval_schema": "1.2"}


def test_the_hash_is_that_of_the_data_not_of_the_run() -> None:
    hashes = [
        EvalTask(rows, metrics).evaluate(app).provenance["data_hash"]
        for rows, metrics, app in [
            (ROWS, ["exact_match"], agent),
            (pd.DataFrame(ROWS), ["rouge_1", "exact_match"], lambda _: "5"),
            (ROWS[:3], ["exact_match"], agent),
            ([*ROWS[:3], {**ROWS[3], "reference": "8"}], ["exact_match"], agent),
        ]
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_files_that_are_not_whole_or_newer(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    run_of_today().write(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))
    with pytest.raises(EvalSetError, match="expected 4 rows, got 3: the file is not complete"):
        load_result(path)
    newer = json.loads(lines[0])
    newer["eval_result"]["version"] = 2
    path.write_text(json.dumps(newer) + "\n" + "".join(lines[1:]))
    with pytest.raises(EvalSetError, match="version 2 of a result"):
        load_result(path)
    newer["eval_result"] = {"version": "one"}
    path.write_text(json.dumps(newer) + "\n")
    with pytest.raises(EvalSetError, match=r"record of the result .* is malformed"):
        load_result(path)


TABLES: dict[str, tuple[dict[str, list[Any]], dict[str, list[float]]]] = {
    "Vertex AI SDK, mlflow.evaluate": (
        {
            "prompt": ["a", "b"],
            "bleu/score": [0.5, None],
            "toxicity/v1/score": [0.1, 0.2],
            "bleu/explanation": ["", ""],
        },
        {"bleu": [0.5, -1], "toxicity/v1": [0.1, 0.2]},
    ),
    "mlflow.genai.evaluate": (
        {"request": ["a", "b"], "safety/value": ["yes", "no"], "guidelines/value": ["no", None]},
        {"safety": [1, 0], "guidelines": [0, -1]},
    ),
    "LangSmith": ({"inputs": ["a", "b"], "feedback.correct": [1, 0]}, {"correct": [1, 0]}),
}


@pytest.mark.parametrize("tool", TABLES)
def test_tables_of_scores_of_other_tools(tool: str, tmp_path: Path) -> None:
    cells, scores = TABLES[tool]
    pd.DataFrame(cells).to_csv(tmp_path / "scores.csv", index=False)
    for data in (tmp_path / "scores.csv", pd.DataFrame(cells)):
        read = load_result(data)
        assert read.scores.drop(columns="request_id", errors="ignore").fillna(-1).to_dict("list") == scores


def test_the_columns_of_scores_can_be_named() -> None:
    frame = pd.DataFrame({"prompt": ["a", "b"], "quality": ["pass", "fail"], "other/score": [1, 2]})
    read = load_result(frame, metrics=["quality"])
    assert read.scores.to_dict("list") == {"quality": [1.0, 0.0]}
    assert load_result(frame.rename(columns={"prompt": "q"}), metrics=["quality"], columns={"q": "request"}).row_count
    with pytest.raises(EvalSetError, match=r"metrics: expected one of .*; got 'qualty'"):
        load_result(frame, metrics=["qualty"])
    with pytest.raises(EvalSetError, match="expected columns of scores such as exact_match/score"):
        load_result(frame[["prompt"]])


# --- the command
RIGHT, WRONG = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}


def scores_file(path: Path, right: list[bool], *, first: int = 0) -> str:
    rows = [{**(RIGHT if ok else WRONG), "prompt": f"question {i}"} for i, ok in enumerate(right, first)]
    EvalTask(rows, ["exact_match"]).evaluate().write(path)
    return str(path)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),  # McNemar's exact test: 8 of 8 lower, p = 2 / 2**8 = 0.0078
        (["--alpha", "0.005"], 0),
        (["--min-effect", "0.5"], 0),
        (["--fail-on", "never"], 0),
        (["--fail-on", "any", "--alpha", "0.005"], 1),
    ],
)
def test_the_exit_code(options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = scores_file(tmp_path / "old.parquet", [True] * 20)
    new = scores_file(tmp_path / "new.jsonl", [False] * 8 + [True] * 12)
    assert main(["compare", old, new, *options]) == code
    said = capsys.readouterr()
    assert "scores lower, 0 higher" in said.out
    assert ("exact_match: the mean changed by −0.4" in said.err) == (code == 1)
    assert main(["compare", new, old, *options]) == 0


def test_other_rows_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = scores_file(tmp_path / "old.parquet", [True] * 20)
    new = scores_file(tmp_path / "new.parquet", [True] * 20, first=5)
    page = tmp_path / "page.html"
    assert main(["compare", old, new, "--output", "json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["matched_by"], found["only_old"], found["only_new"]) == (
        "question",
        [0, 1, 2, 3, 4],
        [15, 16, 17, 18, 19],
    )
    assert found["lines"][0]["rows"] == 15
    assert "The data differs: a score can change because its row did." in found["remarks"]
    assert "5 rows" in page.read_text()


def test_cells_are_text_in_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "@octocat | <img src=x> `a` [b](http://c) #1 www.d.org"
    metric = CustomMetric(hostile, lambda row: row["score"])
    files = []
    for i in range(2):
        rows = [{"request_id": hostile + str(n), "score": float(i)} for n in range(30)]
        EvalTask(rows, [metric]).evaluate().write(tmp_path / f"{i}.parquet")
        files.append(str(tmp_path / f"{i}.parquet"))
    assert main(["compare", *files, "--output", "markdown"]) == 0
    text = capsys.readouterr().out
    for markup in ("<img", "`a`", "[b]", "@octocat", "#1 ", "http://", "www.d", " | &#60;"):
        assert markup not in text, markup
    assert "@\u200boctocat &#124; &#60;img src=x&#62;" in text
    assert "| ---: |" in text
    lines = [line for line in text.splitlines() if line.startswith("| ") and "octocat" in line]
    assert {line.count("|") for line in lines} == {7, 10}  # each row has the cells of its table
    assert "<details><summary>Scores that differ, regressions first (30)</summary>" in text


def test_places_that_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = scores_file(tmp_path / "old.parquet", [True] * 6)
    assert main(["compare", path, str(tmp_path / "none.parquet")]) == 2
    shutil.copy(path, tmp_path / "copy.parquet")
    assert main(["compare", path, str(tmp_path / "copy.parquet"), "--key", "id"]) == 2
    assert "no column 'id' in the result" in capsys.readouterr().err


@pytest.mark.oracle
def test_statsmodels_finds_the_same_p_value(tmp_path: Path) -> None:
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    old = [i % 3 > 0 for i in range(60)]
    new = [i % 4 > 0 for i in range(60)]
    files = [scores_file(tmp_path / f"{name}.jsonl", run) for name, run in (("old", old), ("new", new))]
    pairs = list(zip(old, new, strict=True))
    table = [[pairs.count((a, b)) for b in (True, False)] for a in (True, False)]
    line = load_result(files[0]).compare(files[1]).lines[0]
    assert line.p_value == pytest.approx(tables.mcnemar(table, exact=True).pvalue)


def test_what_mlflow_expects_is_told_from_feedback() -> None:
    notes = [{"assessment_name": "tone", "feedback": {"value": 1}}, {"name": "facts", "expectation": {"value": "a"}}, 7]
    found = _expectations(pd.DataFrame({"assessments": [json.dumps(notes), None]}))
    assert "facts" in found
    assert "tone" not in found


def test_a_result_has_issues_of_a_rule_whose_package_is_not_installed(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    run_of_today().write(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["eval_result"]["issue_counts"] = {"TEAM001": 3}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    read = load_result(path)
    assert read.issue_counts == {"TEAM001": 3}
    assert "TEAM001 rule-not-installed: 3 ×" in str(read)
    read.save(tmp_path / "scores.html")
    assert main(["compare", str(path), str(path)]) == 0


def test_a_file_of_another_tool_has_failures_without_an_error() -> None:
    rows = [{"prompt": "q", "exact_match/score": 1, "failure": i % 2} for i in range(3)]
    assert load_result(rows).failures == {1: "no error is recorded"}
    assert "1 × no error is recorded" in str(load_result(rows))


def test_a_column_of_the_data_is_no_failure_of_a_run(tmp_path: Path) -> None:
    rows = [{"response": "a", "reference": "a", "failure": 1, "error": "old", "latency_in_seconds": 2.0}]
    for name in ("rows.parquet", "rows.jsonl"):
        (written := EvalTask(rows, ["exact_match"]).evaluate()).write(tmp_path / name)
        read = load_result(tmp_path / name)
        assert read.summary_metrics == written.summary_metrics
        assert (read.failures, list(read.tallies)) == ({}, ["exact_match"])


def test_a_metric_may_have_a_line_break_in_its_name(tmp_path: Path) -> None:
    EvalTask([{"response": "a"}], [CustomMetric("m\nn", lambda _: 0.5)]).evaluate().write(tmp_path / "rows.csv")
    assert load_result(tmp_path / "rows.csv").metrics == ("m\nn",)


def test_a_file_without_rows_has_the_scores_of_none() -> None:
    read = load_result(pd.DataFrame({"exact_match/score": pd.Series(dtype="float64")}))
    assert (list(read.scores), len(read.scores), read.failures) == (["exact_match"], 0, {})
