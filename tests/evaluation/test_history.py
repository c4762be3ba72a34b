"""More than two results of the same rows, by hand."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from agent_eval_schema import CustomMetric, EvalResult, EvalSetError, EvalTask, ScoreHistory, load_result
from agent_eval_schema.cli import main
from agent_eval_schema.evaluation.history import _picture, run_names
from agent_eval_schema.render.blocks import Trend
from tests.evaluation.test_saved_result import scores_file
from tests.render.test_script import embedded


def run(scores: list[float | None], *, first: int = 0) -> EvalResult:
    rows = [{"prompt": f"question {i}", "score": score} for i, score in enumerate(scores, first)]
    return EvalTask(rows, [CustomMetric("quality", lambda row: row["score"])]).evaluate()


def history(*runs: list[float | None], configurations: list[str] | None = None) -> ScoreHistory:
    old, another, *more = map(run, runs)
    return old.compare(another, *more, configurations=configurations)


def test_the_mean_of_each_run_over_the_rows_that_all_have() -> None:
    runs = [run([1, 0, 1, 0]), run([1, 1, 1], first=1), run([0, None, 1, 1, 1])]
    found = runs[0].compare(runs[1], runs[2])
    assert found.row_count == 3  # questions 1, 2 and 3
    assert repr(found) == "<ScoreHistory: 3 runs, 3 rows>"
    assert found.summary[["rows", "mean"]].to_numpy().tolist() == [[3, 1 / 3], [3, 1], [2, 1]]
    assert found.summary["difference"].tolist()[1:] == [pytest.approx(2 / 3), 0]
    assert math.isnan(found.summary["difference"][0])


def test_units_are_those_of_a_run_that_has_its_sessions() -> None:
    """A table of scores alone has no sessions; a history with one run that has them counts its units."""
    rows = [{"prompt": f"question {i}", "score": i % 3, "session_id": f"s{i // 4}"} for i in range(24)]
    whole = EvalTask(rows, [CustomMetric("quality", lambda row: row["score"])]).evaluate()
    table = whole.metrics_table[["quality/score"]]
    lost = [load_result(table) for _ in range(3)]
    unknown = lost[0].compare(*lost[1:])
    assert (
        unknown.remarks
        == json.loads(unknown.to_json())["remarks"]
        == ["Sessions unknown: each row counts as independent."]
    )
    assert unknown.remarks[0] in str(unknown)
    for runs in ([whole, *lost], [*lost, whole]):
        found = runs[0].compare(*runs[1:])
        assert found.remarks == []
        lines = found.summary[["low", "high"]].to_numpy().tolist()
        assert lines[0] == pytest.approx(list(whole.confidence_interval("quality")))
    assert lines[0] != unknown.summary[["low", "high"]].to_numpy().tolist()[0]


def test_intervals_are_those_of_a_result() -> None:
    right = [float(i % 3 > 0) for i in range(30)]
    found = history(right, right[::-1], right).summary
    low, high = run(right).confidence_interval("quality")
    assert found[["low", "high"]].iloc[0].tolist() == [low, high]


def test_rows_that_change_sides() -> None:
    found = history([1, 0, 0.5, None], [0, 0, 0.9, 1], [1, 0, 0.4, 1], [0, 0, 0.6, 0])
    lines = found.rows[["key", "changes"]].to_numpy().tolist()
    assert lines == [[0, 3], [2, 2], [3, 1]]  # row 2 is above, above, below, above; a missing score is no side
    assert found.rows["scores"][1] == [0.5, 0.9, 0.4, 0.6]
    text = str(found)
    assert "4 runs of 4 rows: quality 0.5 → 0.475 → 0.6 → 0.15; 3 rows changed sides" in text
    assert "row 0 quality 1 → 0 → 1 → 0" in re.sub("<[^>]+>", "", found.to_html())
    assert "0.5 → 0.9 → 0.4 → 0.6" in text


def picture_of(found: ScoreHistory) -> Trend:
    (change,) = (of for of in found._changes if of.metric == "quality")
    return _picture([line for line in found.lines if line.metric == "quality"], found._infos["quality"], change)


def test_the_picture_of_a_metric_by_hand() -> None:
    found = history([0.5] * 4, [None, 0, 0, 1], [1.0] * 4)
    picture = picture_of(found)
    assert picture.points == [(0, 60), (120, 80), (240, 0)]  # from the left to the right, higher is up
    assert picture.runs[0] == "1 0.500"
    assert (picture.change, picture.moods) == ("first to last: not tested", ["", "", ""])
    page = found.to_html()
    assert page.count("<figure>") == len(found._infos)
    assert '<a href="#rows">' in page


def test_a_mean_that_never_changes_is_a_line_in_the_middle() -> None:
    picture = picture_of(history([1.0] * 4, [1.0] * 4, [1.0] * 4))
    assert (picture.points, picture.size) == ([(0, 40), (120, 40), (240, 40)], (240, 80))


def test_significant_steps_are_marked_whatever_the_direction() -> None:
    def faults(scores: list[float]) -> EvalResult:
        rows = [{"prompt": f"question {i}", "faults": score} for i, score in enumerate(scores)]
        measure = CustomMetric("faults", lambda row: row["faults"], lower_is_better=True, scale=(0.0, 1.0))
        return EvalTask(rows, [measure]).evaluate()

    old, *new = (faults([1.0] * n + [0.0] * (20 - n)) for n in (16, 15, 4, 16))
    found = old.compare(*new)
    (change,) = found._changes
    picture = _picture(found.lines, found._infos["faults"], change)
    assert picture.moods == ["", "", "good", "error"]  # fewer faults are better
    assert [mood for _, _, mood in picture.steps] == ["", "good", "error"]
    assert picture.change == "first to last: unchanged"
    steps = found.summary["p_adjusted"].tolist()
    assert math.isnan(steps[0])
    assert steps[1] == 1.0
    assert max(steps[2:]) < 0.05
    page = found.to_html()
    assert page.count('class="step good"') == page.count('class="step error"') == 1
    text = str(old.compare(new[0], new[1]))
    assert "✓ 3 runs of 20 rows: faults significantly lower (0.8 → 0.2) from the first run to the last; " in " ".join(
        text.split()
    )


def test_a_row_that_changed_sides_opens_with_its_question_and_the_answers_of_all_runs() -> None:
    results = []
    for name, right in (("a", True), ("b", False), ("c", True)):
        answers = [{"prompt": f"question {i}", "response": name if right or i else "x"} for i in range(7)]
        calls = [{"tool_name": name, "tool_input": {}}]
        rows = [{**row, "reference": name, "predicted_trajectory": calls} for row in answers]
        results.append(EvalTask(rows, ["exact_match"]).evaluate())
    found = results[0].compare(*results[1:])
    (row,) = embedded(found.to_html())["rows"]
    assert row["title"] == "question 0"
    assert row["answers"] == [["response, 1", "a"], ["response, 2", "x"], ["response, 3", "c"]]
    assert [name for name, _ in row["calls"]] == ["Tool calls, 1", "Tool calls, 2", "Tool calls, 3"]
    assert row["columns"][2][0] == "1 → 0 → 1"
    assert re.search(r"1 → 0 → 1\n +↳ question 0\n", str(found))


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["a/base.parquet", "b/new.jsonl.gz", None], ["base", "new", "3"]),
        (["gpt-4.1", "runs:/0af", "x.json"], ["gpt-4.1", "0af", "x"]),
        (["a/same.csv", "b/same.csv"], ["1", "2"]),
    ],
)
def test_runs_have_the_names_of_their_files(names: list[str | None], shown: list[str]) -> None:
    assert run_names(names) == shown


def test_scores_of_another_scale_have_no_sides() -> None:
    found = history([1, 5], [5, 1], [1, 5])
    assert found.rows.empty
    assert "no row changed sides" in str(found)


def test_repeats_by_hand() -> None:
    found = history([1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], configurations=["a", "a", "b"])
    line = found.repeats.iloc[0]
    assert found.repeats.shape[0] == 1
    assert (line["configuration"], line["runs"], line["rows"], line["agreement"], line["flaky"]) == ("a", 2, 4, 0.75, 1)
    assert line["std"] == pytest.approx(math.sqrt((0 + 0.5 + 0 + 0) / 4))
    # differences: 0, 0.5, 1, 1, of variance 0.229; noise: (0.5 / 4) · (1/2 + 1/1)
    variance = np.var([0, 0.5, 1, 1], ddof=1)
    assert found.noise == {"quality": pytest.approx(0.125 * 1.5 / variance)}
    names, values = re.findall("^ .*(?:agreement|75%).*$", str(found), re.MULTILINE)
    assert re.split("  +", names.strip()) == [
        *("metric", "configuration", "runs", "agreement", "flaky rows", "std of a row", "noise")
    ]
    assert re.split("  +", values.strip()) == ["quality", "a", "2", "75%", "1 of 4", "0.354", "82%"]


def test_noise_is_found_again_in_simulated_runs() -> None:
    """Ten runs of two configurations: each row is right with its own rate, that of `b` lower on half of the rows."""
    random = np.random.default_rng(7)
    rates = random.uniform(0.2, 0.9, 400)
    lower = rates - np.where(np.arange(400) % 2, 0.15, 0)
    runs = [(random.random(400) < (lower if i % 2 else rates)).astype(float).tolist() for i in range(10)]
    found = history(*runs, configurations=["a", "b"] * 5)
    noise = np.mean(rates * (1 - rates) + lower * (1 - lower)) / 5
    assert found.noise["quality"] == pytest.approx(noise / (noise + 0.075**2), abs=0.12)
    same = history(*runs[::2], configurations=["a", "a", "b", "b", "b"])
    assert same.noise["quality"] > found.noise["quality"]


def test_runs_that_cannot_be_compared() -> None:
    with pytest.raises(EvalSetError, match="configurations: expected a name per result, 3; got"):
        history([1], [1], [1], configurations=["a"])
    with pytest.raises(EvalSetError, match="share no row"):
        run([1]).compare(run([1], first=5), run([1], first=9))
    other = EvalTask([{"response": "a", "reference": "a"}], ["exact_match"]).evaluate()
    with pytest.raises(EvalSetError, match="share no metric"):
        other.compare(run([1]), run([1]))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [[True] * 20, [True] * 20, [False] * 8 + [True] * 12]
    files = [scores_file(tmp_path / f"{name}.parquet", right) for name, right in zip("abc", runs, strict=True)]
    page = tmp_path / "page.html"
    assert main(["compare", *files, "--configurations", "v1,v1,v2", "--html", str(page)]) == 1
    said = capsys.readouterr()
    assert "exact_match: the mean changed by −0.4" in said.err
    assert "c (v2)" in said.out
    assert 'class="meter' in page.read_text()
    assert "lists all rows that changed sides" not in page.read_text()  # the page lists them
    assert main(["compare", *files[:2], files[0], "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["mean"] for line in found["lines"]] == [1, 1, 1]
    assert found["runs"] == ["1", "b", "3"]  # the same file twice has no name of its own
    assert main(["compare", *files[:2], "--configurations", "a,b"]) == 2
    assert main(["compare", *files, "--output", "markdown", "--fail-on", "never"]) == 0
    assert capsys.readouterr().out.startswith(
        "### ✗ 3 runs of 20 rows: exact&#95;match significantly lower (1.0 → 0.6) from the first run to the last; "
        "8 rows changed sides"
    )
