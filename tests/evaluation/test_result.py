"""A result: its numbers by hand, and the forms that it takes."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import (
    CustomMetric,
    EvalSetError,
    EvalTask,
    ToolUseMetric,
    load_result,
    score_trajectories,
    validate_eval_set,
)
from agent_eval_schema.cli import main
from agent_eval_schema.evaluation.mlflow_run import MlflowEvaluation
from agent_eval_schema.evaluation.result import EvalResult, result_of_evaluation
from agent_eval_schema.evaluation.result_blocks import _label, pictures_of
from agent_eval_schema.metrics.trajectory import DEFAULT_METRICS
from tests.conftest import KINDS, SAMPLES, Row
from tests.evaluation.test_task import PROMPTS, SEED, WARM, agent
from tests.helpers.mlflow_store import without_its_warnings
from tests.helpers.scores import reasons_of
from tests.render.report.test_html import ALLOWED, HOSTILE, Tags

NAN = math.nan

# ---------------------------------------------------------------------------------------------------------------------
# results


def result(rows: list[Row] = SEED) -> EvalResult:
    return score_trajectories(rows)


def test_by_a_column() -> None:
    rows = [{**SEED[i % 2], "kind": kind} for i, kind in enumerate(["b", "a", "b", "b"])]
    found = result(rows).groupby("kind")
    assert found.index.tolist() == ["b", "a"]
    assert found["row_count"].tolist() == [3, 1]
    assert found["trajectory_recall/mean"].tolist() == pytest.approx([0.5 / 3, 0.5])
    assert result([*rows, {**SILENT, "kind": "a"}]).groupby("kind")["trajectory_recall/scored"].tolist() == [3, 1]
    with pytest.raises(EvalSetError, match="got 'mood'"):
        result(rows).groupby("mood")


def test_quantiles_are_those_of_pandas() -> None:
    found = EvalTask(PROMPTS, []).evaluate(agent)
    latency = found.metrics_table["latency_in_seconds"]
    assert found.quantile() == pytest.approx(latency.median())
    assert found.quantile(0.9) == pytest.approx(latency.quantile(0.9))
    pd.testing.assert_series_equal(found.quantile([0.5, 0.9]), latency.quantile([0.5, 0.9]))
    with pytest.raises(EvalSetError, match="got 'latency_in_seconds'"):
        result().quantile()
    for q in (90, -0.1, float("nan")):
        with pytest.raises(EvalSetError, match="q: expected a number from 0 to 1"):
            found.quantile(q)


def test_bounds() -> None:
    found = result()
    assert found.failing({"trajectory_recall": 0.25, "trajectory_precision": 0.3}) == {"trajectory_precision": 0.25}
    with pytest.raises(EvalSetError, match="got 'bleu'"):
        found.failing({"bleu": 1})
    with pytest.raises(EvalSetError, match="between 0 and 1"):
        found.confidence_interval("trajectory_recall", 95)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_gives_the_same(kind: str, tmp_path: Path) -> None:
    rows = [*SEED, {"predicted_trajectory": [], "reference_trajectory": [WARM]}, {"reference_trajectory": [WARM]}]
    found = score_trajectories(KINDS[kind](rows, tmp_path), tool_name="set_temperature")
    table = found.metrics_table
    assert len(table) == found.row_count == 4
    assert table["trajectory_recall/score"].tolist() == pytest.approx([0, 0.5, 0, NAN], nan_ok=True)
    assert table["trajectory_single_tool_use/score"].tolist() == pytest.approx([0, 1, 0, NAN], nan_ok=True)
    assert found.issue_counts == {"AE505": 1}
    assert reasons_of(found)["trajectory_recall", "the row lacks predicted_trajectory"] == 1
    assert found.unscored["rows"].sum() == 6
    like_the_service = score_trajectories(KINDS[kind](rows, tmp_path), tool_name="set_temperature", empty="nan")
    scores = like_the_service.metrics_table["trajectory_single_tool_use/score"].tolist()
    assert scores == pytest.approx([0, 1, NAN, NAN], nan_ok=True)
    assert reasons_of(like_the_service)["trajectory_recall", "predicted_trajectory is empty"] == 1
    assert like_the_service.unscored["rows"].sum() == 12


def test_a_file_is_scored_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 7)
    rows = [{**SEED[i % 2], "n": i} for i in range(50)]
    path = KINDS["parquet"](rows, tmp_path)
    found = score_trajectories(path)
    assert sum(1 for _ in found.iter_parts()) == 8
    assert found.metrics_table["trajectory_recall/score"].tolist() == [0, 0.5] * 25
    assert found.metrics_table["n"].astype(int).tolist() == list(range(50))
    assert [int(row.row) for row in pictures_of(found, 30).worst.rows] == [*range(0, 50, 2), *range(1, 10, 2)]
    assert found.compare(score_trajectories(rows)).rows.empty


def test_formats_that_call_trajectories_otherwise() -> None:
    calls = [{"name": "a", "input_parameters": {"x": 1}}]
    rows = [{"input": "q", "actual_output": "r", "tools_called": calls, "expected_tools": calls}]
    found = score_trajectories([*rows, {**rows[0], "tools_called": [{"x": 1}]}])
    assert found.metrics_table["trajectory_exact_match/score"].tolist() == pytest.approx([1, NAN], nan_ok=True)
    assert reasons_of(found)["trajectory_recall", "predicted_trajectory cannot be read"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metrics": ["taste"]},
            r"metrics: expected names \(trajectory_exact_match, .*\) or ToolUseMetric; got 'taste'",
        ),
        (
            {"metrics": ["exactmatch"]},
            r"exactmatch is not a trajectory metric: EvalTask\(data, \['exact_match'\]\).evaluate\(\) measures exact",
        ),
        ({"metrics": ["trajectory_recal"]}, "; did you mean 'trajectory_recall'"),
        (
            {"metrics": ["bleu"]},
            r"bleu is not a trajectory metric: EvalTask\(data, \['bleu'\]\).evaluate\(\) measures bleu",
        ),
        ({"metrics": ["trajectory_single_tool_use"]}, r"ToolUseMetric\(tool_name=\"search\"\) \(--tool-name"),
        ({"duplicates": "once"}, "duplicates: expected one of"),
        ({"empty": "zero"}, "empty: expected one of"),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalSetError, match=message):
        score_trajectories(SEED, **options)


# ---------------------------------------------------------------------------------------------------------------------
# forms


def hostile_result() -> EvalResult:
    texts = [text.encode("utf-16", "surrogatepass").decode("utf-16") for text in HOSTILE]
    rows = [
        {
            **dict.fromkeys(("request_id", "prompt", "response", "reference", text), text),
            "predicted_trajectory": [{"tool_name": text, "tool_input": {text: text}}],
            "reference_trajectory": [WARM, {"tool_name": text}, {"name": text}] if i % 2 else [WARM],
        }
        for i, text in enumerate(texts)
    ]

    def agent(prompt: str) -> Any:
        if prompt == texts[0]:
            raise ValueError(prompt)
        return {"response": prompt, "predicted_trajectory": [{"tool_name": prompt, "tool_input": {prompt: prompt}}]}

    return EvalTask(rows, ["trajectory_recall", "exact_match"]).evaluate(agent)


@pytest.mark.parametrize("form", ["to_html", "_repr_html_"])
def test_hostile_cells_stay_text(form: str) -> None:
    tags = Tags(getattr(hostile_result(), form)())
    assert tags.open == []
    assert {t for t, _ in tags.seen} <= ALLOWED | {"b"}
    for _, attributes in tags.seen:
        assert not [n for n in attributes if n.startswith("on") or n in ("src", "action")]


def test_hostile_cells_do_not_reach_the_terminal() -> None:
    found = hostile_result()
    assert not [c for c in found.to_text() + found.to_json() if c in "\x1b\x9b\u202e\u2066\x00"]


def test_the_page_shows_both_trajectories_and_their_marks() -> None:
    page = result().to_html()
    for words in ('aria-label="matched"', 'aria-label="extra"', 'aria-label="missing"', "user_z", "user_y", "0.25"):
        assert words in page


def test_json() -> None:
    found = json.loads(EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent).to_json())
    assert found["summary_metrics"]["row_count"] == 3
    assert found["summary_metrics"]["failure/mean"] == pytest.approx(1 / 3)
    assert found["rows"][2]["trajectory_recall/score"] is None
    assert found["rows"][0]["predicted_trajectory"][0]["tool_name"] == "set_device_info"
    assert found["options"] == {"duplicates": "membership", "empty": "define"}


def test_parquet(tmp_path: Path) -> None:
    found = EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent)
    assert found.write(tmp_path / "result.parquet") == 3
    read = pd.read_parquet(tmp_path / "result.parquet")
    assert read.columns.tolist() == [*found.metrics_table.columns, "trajectory_recall/reason", "eval_result/keys"]
    assert read["trajectory_recall/score"].dtype == "float64"
    assert json.loads(read["predicted_trajectory"][1]) == found.metrics_table["predicted_trajectory"][1]
    again = score_trajectories(tmp_path / "result.parquet", ["trajectory_recall"])
    assert again.summary_metrics["trajectory_recall/mean"] == found.summary_metrics["trajectory_recall/mean"]


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl", "table.parquet"])
def test_a_saved_table_can_be_scored_again(tmp_path: Path, name: str) -> None:
    found = EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent)
    found.write(tmp_path / name)
    again = EvalTask(tmp_path / name, [CustomMetric("seen", lambda row: float(row["trajectory_recall/score"] or -1))])
    scores = again.evaluate().metrics_table["seen/score"].tolist()
    assert scores == [-1 if math.isnan(s) else s for s in found.metrics_table["trajectory_recall/score"]]
    once_more = score_trajectories(tmp_path / name, ["trajectory_recall"])
    assert once_more.summary_metrics["trajectory_recall/mean"] == found.summary_metrics["trajectory_recall/mean"]


def test_latency_is_drawn_in_units_that_can_be_read() -> None:
    page = EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent).to_html()
    assert re.search(r"median [\d.]+\s[mµ]?s, p90", page)
    assert "e-05" not in re.sub(r'data-n="[^"]*"', "", page)  # by which the script sorts
    assert "1 rows" not in page


def test_a_page_tells_one_percentile_of_a_metric() -> None:
    rows = [{"prompt": f"{n}", "seconds": n / 8} for n in (1, 2, 4)]
    found = EvalTask(rows, [CustomMetric("seen", lambda row: row["seconds"])]).evaluate(str)
    page = found.to_html()
    latency = re.search(r"Latency: p50 ([^,]+), p90 ([^,]+),", page)
    assert latency is not None
    assert f"median {latency[1]}, p90 {latency[2]}, p99" in page
    assert f"p90 {found.quantile(0.9, 'seen'):.3g}" in page


def test_save_by_the_ending(tmp_path: Path) -> None:
    found = result()
    for name, start in (("r.html", "<!doctype html>"), ("r.json", "{"), ("r.txt", "metric ")):
        found.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with pytest.raises(EvalSetError, match="cannot be written"):
        found.save(tmp_path / "nowhere" / "r.html")
    with pytest.raises(EvalSetError, match=r"to .html, .htm, .json, .txt; write\(path\) writes the rows"):
        found.save(tmp_path / "r.parquet")
    with pytest.raises(EvalSetError, match="unknown file extension"):
        found.write(tmp_path / "r.html")


def test_an_mlflow_run(tracking_store: str) -> None:  # noqa: ARG001
    import mlflow

    with without_its_warnings():
        mlflow.set_experiment("results")
        run_id = EvalTask(PROMPTS, ["trajectory_recall"]).evaluate(agent).log_to_mlflow()
    run = mlflow.get_run(run_id)
    assert run.data.metrics["row_count"] == 3
    assert run.data.metrics["trajectory_recall/mean"] == 0.75
    assert run.data.metrics["trajectory_recall/scored"] == 2
    assert run.data.params["trajectory_empty"] == "define"
    names = {f.path for f in mlflow.MlflowClient().list_artifacts(run_id, "eval_result")}
    assert names == {f"eval_result/{n}" for n in ("result.html", "result.json", "metrics_table.parquet")}
    assert mlflow.active_run() is None


# ---------------------------------------------------------------------------------------------------------------------
# the command line


@pytest.fixture
def seed_file(tmp_path: Path) -> str:
    return str(KINDS["jsonl"](SEED, tmp_path))


def test_score_prints_the_table(seed_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", seed_file, "--tool-name", "set_temperature", "--quiet"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["metric", "mean", "95%", "interval", "std", "rows", "scored", "coverage"]
    assert ["trajectory_recall", "0.25", "–", "0.354", "2", "of", "2", "100%"] in lines
    assert ["trajectory_single_tool_use", "0.50", "–", "0.707", "2", "of", "2", "100%"] in lines


def test_score_writes(seed_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, table = tmp_path / "r.html", tmp_path / "r.parquet"
    assert main(["score", seed_file, "--html", str(page), "--write-scores", str(table), "--output", "json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["summary_metrics"]["trajectory_recall/mean"] == 0.25
    assert "2 rows with their scores written to" in said.err
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(pd.read_parquet(table)) == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--min", "trajectory_recall=0.2"], 0),
        (["--min", "trajectory_recall=0.3"], 1),
        (["--metrics", "trajectory_recall", "--min", "trajectory_precision=0.1"], 2),
        (["--metrics", "blue"], 2),
        (["--metrics", "exact_match"], 1),  # no row has a response
        (["--write-scores", "/nowhere/at/all.parquet"], 2),
    ],
)
def test_exit_codes(seed_file: str, options: list[str], code: int) -> None:
    assert main(["score", seed_file, "--quiet", *options]) == code


def test_score_computes_any_metric_that_needs_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As an EvalTask does; the command that it prints computes them again."""
    path = KINDS["jsonl"](
        [{"request": "Hi", "response": text, "expected_response": "Yes."} for text in ("Yes.", "No")], tmp_path
    )
    metrics, page = ["exact_match", "trajectory_recall", "rouge_l"], tmp_path / "again.html"
    command = ["score", str(path), "--metrics", ",".join(metrics), "--tool-name", "search", "--allow-unscored"]
    assert main([*command, "--output", "json"]) == 0
    made = EvalTask(path, [*metrics, ToolUseMetric("search")]).evaluate()
    assert json.loads(capsys.readouterr().out)["summary_metrics"] == json.loads(made.to_json())["summary_metrics"]
    assert main(["score", str(path), "--metrics", "exact_match,rouge_l"]) == 0
    _, *words = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert words == ["score", str(path), "--metrics", "exact_match,rouge_l", "--html", "scores.html"]
    assert main([*words[:-1], str(page)]) == 0
    assert "rouge_l" in page.read_text("utf-8")
    capsys.readouterr()
    assert main([*command, "--html", str(page)]) == 0
    assert "result." not in capsys.readouterr().out  # a command line has no variable


def test_a_metric_of_ones_own_is_in_no_command(tmp_path: Path) -> None:
    path = KINDS["jsonl"]([{"request": "Hi", "response": "No", "expected_response": "Yes."}], tmp_path)
    result = EvalTask(path, ["exact_match", CustomMetric("size", lambda row: len(row["response"]))]).evaluate()
    assert 'result.save("scores.html")' in str(result)


def test_why_a_minimum_is_missed_is_said_even_with_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = KINDS["jsonl"]([{"predicted_trajectory": [WARM], "reference_trajectory": None}], tmp_path)
    assert main(["score", str(path), "--quiet", "--min", "trajectory_recall=0.3"]) == 1
    assert capsys.readouterr().err == "trajectory_recall: no row has a score, so no mean reaches 0.3\n"


@pytest.mark.parametrize("bound", ["nan", "inf", "", "50%"])
def test_a_minimum_is_a_number(seed_file: str, bound: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["score", seed_file, "--min", f"trajectory_recall={bound}"])
    assert "expected METRIC=MEAN, such as trajectory_recall=0.9" in capsys.readouterr().err


@pytest.mark.parametrize(("fail_on", "code"), [("error", 1), ("warning", 1), ("never", 0)])
def test_cells_that_cannot_be_read_fail(tmp_path: Path, fail_on: str, code: int) -> None:
    path = KINDS["jsonl"]([*SEED, {"predicted_trajectory": [{"a": 1}], "reference_trajectory": [WARM]}], tmp_path)
    assert main(["score", str(path), "--quiet", "--fail-on", fail_on]) == code


SILENT: Row = {"predicted_trajectory": [WARM], "reference_trajectory": None}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("rows", [[], [SILENT], [SILENT, SILENT]], ids=len)
def test_score_of_nothing_fails_and_says_so_last(
    rows: list[Row], form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    cells = [json.dumps(row["predicted_trajectory"]).replace('"', '""') for row in rows]
    path.write_text("predicted_trajectory,reference_trajectory\n" + "".join(f'"{cell}",\n' for cell in cells))
    assert main(["score", str(path), "--quiet", "--output", form]) == 1
    out, said = capsys.readouterr().out, "no row was scored" if rows else "no row to score"
    ends = f"✗ {said}\nShows which field would enable the most rows:\n  agent-eval-schema" if rows else f"✗ {said}\n"
    assert json.loads(out)["headline"] == said if form == "json" else ends in out
    assert main(["score", str(path), "--quiet", "--fail-on", "never"]) == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--allow-unscored"], 0),
        (["--fail-on", "never"], 0),
        (["--fail-on", "never", "--min", "trajectory_recall=0.2"], 1),
        (["--fail-on", "never", "--min", "trajectory_recall=0.2", "--allow-unscored"], 0),
    ],
)
def test_silent_rows_do_not_pass_a_gate(
    options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = KINDS["jsonl"]([*SEED, SILENT, SILENT], tmp_path)
    assert main(["score", str(path), "--quiet", *options]) == code
    why = "2 of 4 rows have no score; --allow-unscored accepts them\n"
    assert capsys.readouterr().err == (why if code else "")


def test_a_mean_of_fewer_rows_than_given_is_reported_beside_it() -> None:
    found = result([*SEED, SILENT])
    said = "2 of 3 rows scored"
    assert found._headline == said
    assert f"\n⚠ {said}: trajectory_exact_match" in found.to_text()
    assert json.loads(found.to_json())["headline"] == said
    assert found.to_html().index(said) < found.to_html().index("trajectory_recall")
    assert repr(found) == f"<EvalResult: 3 rows, 5 metrics: {said}>"
    assert (result()._headline, json.loads(result().to_json())["headline"]) == ("", None)


def test_metrics_that_cover_different_rows_are_named() -> None:
    rows = [{**SEED[0], "response": "a", "reference": "a"}, {**SEED[1], "response": "a"}, {**SILENT, "response": "a"}]
    found = EvalTask(rows, ["exact_match", "trajectory_recall", CustomMetric("long", lambda _: 1)]).evaluate()
    assert found._headline == "1 of 3 rows scored by exact_match; 2 of 3 rows scored by trajectory_recall"
    several = ["trajectory_exact_match", "trajectory_precision", "trajectory_recall"]
    found = EvalTask(rows, [*several, CustomMetric("long", lambda _: 1)]).evaluate()
    assert found._headline == "2 of 3 rows scored by 3 of 4 metrics"
    found = EvalTask(rows, ["exact_match", *several]).evaluate()
    assert found._headline == "1 of 3 rows scored by exact_match; 2 of 3 rows scored by 3 of 4 metrics"


def test_calls_that_failed_are_failures_and_are_named() -> None:
    def app(prompt: str) -> str:
        if prompt != "good":
            raise RuntimeError("out of tokens")
        return prompt

    rows: list[Row] = [{"prompt": "good", "reference": "good"}, {"prompt": "bad", "reference": "x"}]
    found = EvalTask([*rows, {"prompt": None, "reference": "x"}], ["exact_match"]).evaluate(app)
    assert found._headline == "2 of 3 calls failed (rows 1, 2); 1 of 3 rows scored"
    assert found.summary_metrics["failure/mean"] == pytest.approx(2 / 3)
    assert "2 of 3 calls failed" in found.to_html()
    named = EvalTask([{"request_id": f"r{i}", **rows[i > 0]} for i in range(30)], ["exact_match"]).evaluate(app)
    shown = ", ".join(f"r{i}" for i in range(1, 11))
    assert named._headline == f"29 of 30 calls failed (rows {shown}, …); 1 of 30 rows scored"


@pytest.mark.parametrize(
    ("is_run", "start", "line"),
    [
        (True, "1 × ValueError: q", "… and 57 other errors"),
        (False, "1 row without a score: ", "… and 10 other reasons"),
    ],
    ids=["calls", "scores"],
)
def test_of_many_errors_the_first_are_named_and_the_others_counted(is_run: bool, start: str, line: str) -> None:
    def failing(given: Any) -> float:
        raise ValueError(given if is_run else given["prompt"])

    task = EvalTask([{"prompt": f"q{i}", "response": "x"} for i in range(60)], [CustomMetric("own", failing)])
    found = (task.evaluate(failing) if is_run else task.evaluate()).to_text(width=200).splitlines()
    assert line in found
    assert sum(line.startswith(start) for line in found) == 60 - int(line.split()[2])


def test_a_page_has_no_review_of_data_that_are_gone(tmp_path: Path) -> None:
    (path := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SEED))
    score_trajectories(path).write(tmp_path / "scores.jsonl")
    for text in (path.read_text(), "<html>"):
        path.write_text(text)
        os.utime(path, (0, 0))  # else they were written after the scores
        page = load_result(tmp_path / "scores.jsonl").to_html()
        assert ("opens a page to review" in page) == (text != "<html>")


def test_bytes_of_a_trajectory_that_are_no_text_are_an_issue_of_its_row(tmp_path: Path) -> None:
    (path := tmp_path / "rows.csv").write_bytes(b"predicted_trajectory,reference_trajectory\n\xff,[]\n")
    found = score_trajectories(path, ["trajectory_recall"])
    assert found.issues[["code", "row", "message"]].to_numpy().tolist()[0] == [
        *("AE005", 0, "line 2: expected UTF-8 in `predicted_trajectory`, got the byte 0xFF")
    ]
    assert found.reasons["trajectory_recall"].tolist() == ["predicted_trajectory cannot be read"]


def test_what_an_interval_assumes_of_a_scale_that_is_not_known_is_reported() -> None:
    rows = [{"prompt": f"q{i}", "score": float(i)} for i in range(8)]
    text = EvalTask(rows, [CustomMetric("own", lambda row: row["score"])]).evaluate().to_text(width=200)
    assert "own: the scale of own is not known: the interval assumes that no score is far from the others." in text


def test_evaluations_that_are_left_out_are_counted(tmp_path: Path) -> None:
    evaluations = json.loads((SAMPLES / "evaluation.json").read_text())
    path = tmp_path / "evaluations.json"
    path.write_text(json.dumps([evaluations[0], {"displayName": "x", "golden": 1}]))
    assert score_trajectories(path)._headline.endswith("1 invalid evaluation left out")


def test_the_metrics_are_the_five() -> None:
    assert result().metrics == DEFAULT_METRICS
    assert repr(result()) == "<EvalResult: 2 rows, 5 metrics>"


@pytest.mark.parametrize("kind", ["list", "file"])
def test_each_row_has_a_score_or_its_reason(kind: str, tmp_path: Path) -> None:
    rows = [*SEED, {"predicted_trajectory": "search"}, {"reference_trajectory": []}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = rows if kind == "list" else tmp_path / "rows.jsonl"
    found = score_trajectories(data, ["trajectory_recall"])
    assert found.scores["trajectory_recall"].notna().tolist() == [True, True, False, False]
    assert found.reasons["trajectory_recall"].tolist() == [
        *(None, None, "predicted_trajectory cannot be read", "the row lacks predicted_trajectory")
    ]
    assert found.scored == {"trajectory_recall": 2}
    counts = found.reasons["trajectory_recall"].value_counts().to_dict()
    assert counts == {reason: rows for (_, reason), rows in reasons_of(found).items()}


def test_reasons_of_metrics_of_every_kind_and_the_rows_that_failed() -> None:
    def agent(prompt: str) -> str:
        return str(1 // len(prompt.strip()))

    def picky(row: dict[str, Any]) -> float:
        return 1 / float(row["response"])

    rows = [{"prompt": "a", "reference": "1"}, {"prompt": " ", "reference": "1"}, {"prompt": "bb"}]
    metrics = ["exact_match", "trajectory_recall", CustomMetric("picky", picky)]
    found = EvalTask(rows, metrics).evaluate(agent)
    assert found.failures == {1: "ZeroDivisionError: integer division or modulo by zero"}
    assert found.reasons["exact_match"].tolist() == [None, "the call failed", "the row lacks reference"]
    assert found.reasons["trajectory_recall"].tolist()[1] == "the call failed"
    assert found.reasons["picky"].tolist()[0] is None
    assert found.reasons["picky"].tolist()[2].startswith("the metric raised an exception: ZeroDivisionError")
    assert (found.scores.notna() | found.reasons.notna()).all(axis=None)


def trajectories(right: int, wrong: int, path: Path) -> str:
    call = [{"tool_name": "a", "tool_input": {}}]
    rows = [
        {"prompt": f"question {i}", "predicted_trajectory": call if i < right else [], "reference_trajectory": call}
        for i in range(right + wrong)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("right", "options", "code", "said"),
    [
        (12, ["--min", "trajectory_recall=0.8"], 0, ""),
        (
            12,
            ["--min", "trajectory_recall=0.8", "--confidence", "0.95"],
            1,
            "lower bound at 0.95 confidence 0.758 is",
        ),
        (20, ["--min", "trajectory_recall=0.8", "--confidence", "0.95"], 0, ""),
        (4, ["--min", "trajectory_recall=0.2", "--confidence", "0.95"], 1, "there is no interval, so no lower bound"),
    ],
)
def test_a_gate_judges_the_lower_bound(
    right: int, options: list[str], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = trajectories(right, 0, tmp_path / "new.jsonl")
    assert main(["score", file, "--metrics", "trajectory_recall", "--quiet", *options]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("right", "options", "code"),
    [
        (30, ["--fail-on-regression", "any"], 0),
        (29, ["--fail-on-regression", "any"], 1),
        (29, ["--fail-on-regression", "any", "--min-effect", "0.05"], 0),
        (29, ["--fail-on-regression", "significant"], 0),  # one of thirty rows is chance
        (15, ["--fail-on-regression", "significant"], 1),
        (15, ["--fail-on-regression", "significant", "--min-effect", "0.6"], 0),
        (15, [], 0),
    ],
)
def test_a_gate_asks_for_significance_and_effect(
    right: int, options: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (trajectories(n, 30 - n, tmp_path / f"{n}{name}.jsonl") for n, name in ((30, "old"), (right, "new")))
    assert main(["score", new, "--metrics", "trajectory_recall", "--quiet", "--against", old, *options]) == code
    said = capsys.readouterr()
    assert ("trajectory_recall: the mean changed by −" in said.err) == bool(code)
    assert re.search("before +after +change", said.out)
    main(["score", new, "--metrics", "trajectory_recall", "--quiet", "--against", old, "--output", "json"])
    [compared] = json.loads(capsys.readouterr().out)["comparison"]
    assert (compared["metric"], compared["old"], compared["new"]) == ("trajectory_recall", 1.0, right / 30)


def test_options_of_a_comparison_need_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = trajectories(3, 0, tmp_path / "new.jsonl")
    assert main(["score", file, "--fail-on-regression", "any"]) == 2
    assert "--fail-on-regression needs --against OLD" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["score", file, "--min", "trajectory_recall=0.8", "--confidence", "95"])
    assert "expected a level between 0 and 1, such as 0.95; got '95'" in capsys.readouterr().err


def test_rouge_of_another_script_has_no_score() -> None:
    pytest.importorskip("rouge_score")
    rows = [{"prompt": "a", "response": text, "reference": text} for text in ("東京", "Tokyo", "Привет")]
    found = EvalTask(rows, ["rouge_1", "rouge_l_sum"]).evaluate()
    assert found.scored == {"rouge_1": 1, "rouge_l_sum": 1}
    assert set(found.unscored["reason"]) == {
        "the reference has no word of ASCII letters or digits, the only ones that ROUGE compares"
    }


def test_an_infinite_score_is_none() -> None:
    rows = [{"prompt": text} for text in ("1", "inf", "-inf")]
    found = EvalTask(rows, [CustomMetric("m", lambda row: float(row["prompt"]))]).evaluate()
    assert found.summary_metrics["m/mean"] == 1.0
    assert found.unscored["reason"].tolist() == ["the metric gave an infinite score"]


@pytest.mark.parametrize(("value", "label"), [("x" * 60, "x" * 60), ("x" * 61, ""), ("{a", ""), ("[a", "")])
def test_a_long_or_structured_text_is_no_group(value: str, label: str) -> None:
    assert _label(value) == label


def test_the_issues_of_rows_that_mlflow_scored_are_those_of_their_report() -> None:
    report = validate_eval_set([{"request": "a", "response": "b"}, {"request": " ", "response": "b"}])
    scores, reasons = pd.DataFrame({"safety": [1.0, None]}), pd.DataFrame({"safety": [None, "no request"]})
    found = result_of_evaluation(MlflowEvaluation(scores, reasons, {}, "", report, None))
    assert not report.ok
    assert found.issue_counts == report.counts != {}
