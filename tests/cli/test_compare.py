"""compare and score as gates: the direction in which a metric is judged, what fails, and that the verdict agrees."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import __version__
from agent_eval_schema.cli import main
from tests.conftest import DATA
from tests.render.report.test_text import compare

Scores = dict[str, list[Any]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compare two tables of scores; the exit code, what was printed, and the verdict's sign."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def compared(old: Scores, new: Scores, *options: str) -> tuple[int, str, str]:
        for name, scores in (("old", old), ("new", new)):
            rows = max(map(len, scores.values()))
            frame = pd.DataFrame({"prompt": [f"question {i}" for i in range(rows)], **scores})
            frame.to_json(f"{name}.jsonl", orient="records", lines=True)
        code = main(["compare", "old.jsonl", "new.jsonl", *options])
        captured = capsys.readouterr()
        text = captured.out + captured.err
        sign = next((line[0] for line in text.splitlines() if line[:1] in "✓⚠✗" and line), "")
        return code, text, sign

    return compared


LOW, HIGH = [0.1, 0.12, 0.08] * 10, [0.4, 0.41, 0.38] * 10


def test_a_metric_that_a_name_says_is_bad_is_not_judged_before_its_direction_is_stated(run: Any) -> None:
    """Toxicity from 0.1 to 0.4 is no improvement, and from 0.4 to 0.1 no regression."""
    for old, new in ((LOW, HIGH), (HIGH, LOW)):
        code, text, sign = run({"toxicity/score": old}, {"toxicity/score": new})
        assert (code, sign) == (2, "✗")
        assert "set --lower-is-better toxicity or --higher-is-better toxicity" in text
        assert "toxicity: direction assumed from the name: lower is better" in text


@pytest.mark.parametrize(
    ("option", "old", "new", "code"),
    [
        ("--lower-is-better", LOW, HIGH, 1),
        ("--lower-is-better", HIGH, LOW, 0),
        ("--higher-is-better", LOW, HIGH, 0),
        ("--higher-is-better", HIGH, LOW, 1),
    ],
)
def test_a_stated_direction_decides(run: Any, option: str, old: list[float], new: list[float], code: int) -> None:
    found, text, sign = run({"toxicity/score": old}, {"toxicity/score": new}, option, "toxicity")
    assert (found, sign) == (code, "✗" if code else "✓")
    assert "direction assumed" not in text
    assert f"compare old.jsonl new.jsonl {option}=toxicity --html comparison.html" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lower-is-better", "qualty"], "--lower-is-better: expected one of quality; got 'qualty'; did you mean 'q"),
        (["--lower-is-better", "quality/score"], "--lower-is-better: expected one of quality; got 'quality/score'"),
        (["--higher-is-better", "Quality"], "--higher-is-better: expected one of quality; got 'Quality'"),
        (["--scale", "qualty=0..1"], "--scale: expected one of quality; got 'qualty'"),
        (["--lower-is-better", "quality", "--higher-is-better", "quality"], "expected one direction of quality"),
    ],
)
def test_a_metric_that_no_result_has_is_not_stated(run: Any, options: list[str], message: str) -> None:
    """The gate would judge the metric that was meant the other way round, and pass."""
    code, text, _ = run({"quality/score": LOW}, {"quality/score": HIGH}, *options)
    assert code == 2
    assert message in text


def test_a_direction_is_stated_in_the_settings(run: Any) -> None:
    setting = '[metrics]\ntoxicity = { direction = "lower", scale = "0..1" }\n'
    Path("agent-eval-schema.toml").write_text(setting, "utf-8")
    assert run({"toxicity/score": LOW}, {"toxicity/score": HIGH})[0] == 1
    assert run({"toxicity/score": HIGH}, {"toxicity/score": LOW})[0] == 0
    assert run({"toxicity/score": LOW}, {"toxicity/score": HIGH}, "--higher-is-better", "toxicity")[0] == 0


def test_an_assumed_direction_is_said(run: Any) -> None:
    code, text, sign = run({"quality/score": LOW}, {"quality/score": HIGH})
    assert (code, sign) == (0, "✓")
    assert "quality: direction assumed: higher is better (`--lower-is-better quality`)." in text
    assert "the scale of quality is not known: the interval assumes that it is from 0 to 1" in text
    assert "is not known" not in run({"quality/score": LOW}, {"quality/score": HIGH}, "--scale", "quality=0..1")[1]


@pytest.mark.parametrize("form", ["txt", "json", "html"])
def test_the_forms_of_an_assumed_direction(run: Any, form: str) -> None:
    """Golden: assumed to be higher, assumed from the name, none, and stated, in the terminal, as JSON and as a page."""
    scores = [
        {f"{name}/score": found for name in ("quality", "toxicity", "stated")} | {"num_turns/score": turns}
        for found, turns in ((LOW, [3, 4] * 15), (HIGH, [5, 6] * 15))
    ]
    options = {"txt": [], "json": ["--output", "json"], "html": ["--html", "comparison.html"]}[form]
    _, text, _ = run(*scores, "--lower-is-better", "stated", "--scale", "stated=0..1", *options)
    text = Path("comparison.html").read_text("utf-8") if form == "html" else text
    text = re.sub(r"written [\d-]+ [\d:]+ UTC", "written DATE", text.replace(__version__, "VERSION"))
    compare(DATA / "golden" / f"directions.{form}", text)


def test_a_metric_without_direction_is_shown_and_not_judged(run: Any) -> None:
    turns = {"num_turns/score": [3, 4] * 10}, {"num_turns/score": [5, 6] * 10}
    recall = {"recall/score": [1.0, 0.0] * 10}
    code, text, sign = run({**turns[0], **recall}, {**turns[1], **recall})
    assert (code, sign) == (0, "✓")
    assert "No score differs" in text  # of those that are judged
    assert "num_turns" in text
    code, text, sign = run(*turns)
    assert (code, sign) == (0, "⚠")
    assert "no metric is judged: only figures differ" in text


def test_latency_is_no_headline_and_does_not_count_for_holm(run: Any) -> None:
    """A metric that halved at p = 0.031 fails the gate, however latency and failures are."""
    recall = [1.0] * 6 + [1.0, 0.0] * 7, [0.0] * 6 + [1.0, 0.0] * 7
    latency = [0.1 + i * 1e-6 for i in range(20)], [0.1 + i * 2e-6 for i in range(20)]
    tables: tuple[Scores, Scores] = tuple(  # type: ignore[assignment]
        {"recall/score": recall[i], "latency_in_seconds": latency[i], "failure": [0] * 20} for i in range(2)
    )
    code, text, sign = run(*tables)
    assert (code, sign) == (1, "✗")
    assert "✗ 6 scores lower, 0 higher: recall significantly lower" in text
    assert "Figures and constants, which are not judged" in text
    text = run(*tables, "--metrics", "recall,latency_in_seconds,failure")[1]
    assert "recall: the mean" not in text  # all three were asked for, and adjusted for
    assert "Holm p: adjusted for 3 metrics" in text


def test_lost_scores_fail(run: Any) -> None:
    old = [1.0, 0.0] * 25
    new = [*old[:30], *[None] * 20]
    code, text, sign = run({"recall/score": old}, {"recall/score": new}, "--fail-on", "any")
    assert (code, sign) == (1, "✗")
    assert "20 rows that had a score have none in NEW; --allow-unscored accepts them" in text
    assert "of 30 rows" in text
    code, text, sign = run({"recall/score": old}, {"recall/score": new}, "--fail-on", "any", "--allow-unscored")
    assert code == 0
    assert sign != "✗"


def test_scores_that_are_not_missing_at_random(run: Any) -> None:
    old = [1.0, 1.0, 1.0, 0.0] * 8 + [0.0] * 10
    new = [*old[:32], *[None] * 10]
    text = run({"recall/score": old}, {"recall/score": new}, "--allow-unscored")[1]
    assert "10 rows that lost the score had 0 before, the others 0.75: the missing scores may not be missing" in text
    same = [1.0, 0.0] * 21
    assert "at random" not in run({"recall/score": same}, {"recall/score": [*same[:32], *[None] * 10]})[1]


def test_the_smallest_effect_has_a_unit(run: Any) -> None:
    old = {"recall/score": [1.0] * 30, "response_completeness/score": [5.0] * 30}
    new = {"recall/score": [0.0] * 30, "response_completeness/score": [4.5] * 30}
    code, text, _ = run(old, new, "--min-effect", "0.6")
    assert code == 2
    assert "is no difference of metrics in different units: recall (points), response_completeness (steps)" in text
    code, text, sign = run(old, new, "--min-effect", "response_completeness=0.6")
    assert (code, sign) == (1, "✗")
    assert "recall: the mean changed" in text
    assert "response_completeness: the mean changed" not in text
    code, _, sign = run(old, new, "--min-effect", "recall=2", "--min-effect", "response_completeness=0.6")
    assert (code, sign) == (0, "⚠")
    assert run(old, new, "--min-effect", "recall=0")[::2] == (1, "✗")
    assert run(old, new, "--min-effect", "recall=0", "--min-effect", "0.1")[0] == 2


def test_a_significance_level_is_that_of_the_verdict(run: Any) -> None:
    old, new = {"recall/score": [1.0] * 6 + [0.0] * 9}, {"recall/score": [0.0] * 15}
    assert run(old, new)[::2] == (1, "✗")
    code, text, sign = run(old, new, "--alpha", "0.01")
    assert (code, sign) == (0, "⚠")
    assert "no significant change" in text
    assert run(old, new, "--fail-on", "never")[::2] == (0, "⚠")


def test_a_metric_has_the_name_that_is_printed(run: Any) -> None:
    scores = {"exact_match/score": [1.0, 0.0] * 10, "other/score": [1.0] * 20}
    for name in ("exact_match", "exact_match/score"):
        code, text, _ = run(scores, scores, "--metrics", name)
        assert code == 0
        assert "other" not in text
    code, text, _ = run(scores, scores, "--metrics", "exact_mach")
    assert code == 2
    assert "did you mean 'exact_match'" in text


def test_numbers_under_names_of_ones_own_are_named_where_only_failures_are_known(run: Any) -> None:
    """A file whose scores were not read was compared by its failures alone: no score differed."""
    better = {"request_id": [str(i) for i in range(20)], "correctness": [1] * 20, "failure": [0] * 20}
    worse = better | {"correctness": [0] * 20}
    code, text, _ = run(better, worse)
    assert code == 2
    assert "got the numbers correctness" in text
    code, text, _ = run(better, worse, "--metrics", "correctness", "--fail-on", "any")
    assert code == 1
    code, text, _ = run(better, worse, "--metrics", "corectness")
    assert "expected one of correctness, failure; got 'corectness'" in text


def test_an_expectation_is_no_metric(run: Any) -> None:
    table = {"expected_response/value": ["yes", "no"] * 10, "safety/value": ["yes", "no"] * 10}
    note = [{"assessment_name": "is_refund", "expectation": {"value": True}}]
    table |= {"is_refund/value": ["yes", "no"] * 10, "assessments": [note] * 20}
    document = json.loads(run(table, table, "--output", "json")[1])
    assert [line["metric"] for line in document["lines"]] == ["safety"]


def test_a_perfect_run_passes_a_gate_that_a_worse_one_passes() -> None:
    """Twelve scores of 1, and eleven with one of 0.99."""
    from agent_eval_schema import CustomMetric, EvalTask

    for scale in (None, (0.0, 1.0)):
        points = CustomMetric("points", lambda row: row["points"], lower_is_better=False, scale=scale)
        perfect, worse = (
            EvalTask([{"points": 1.0}] * 11 + [{"points": last}], [points]).evaluate() for last in (1.0, 0.99)
        )
        for bound in (0.7, 0.75, 0.76, 0.8, 0.99):
            assert worse.failing({"points": bound}, 0.95) or not perfect.failing({"points": bound}, 0.95)


def test_a_perfect_run_passes_the_gate_of_the_command_that_a_worse_one_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recall of 1 on twelve rows, and of 1 on eleven and 0.99 on one."""
    calls = [{"tool_name": f"tool {i}", "tool_input": {}} for i in range(100)]
    codes = []
    for name, made in (("perfect", 100), ("worse", 99)):
        predicted = [calls] * 11 + [calls[:made]]
        rows = [
            {"prompt": f"question {i}", "reference_trajectory": calls, "predicted_trajectory": found}
            for i, found in enumerate(predicted)
        ]
        pd.DataFrame(rows).to_json(tmp_path / f"{name}.jsonl", orient="records", lines=True)
        command = ["score", str(tmp_path / f"{name}.jsonl"), "--confidence", "0.95"]
        codes.append([main([*command, "--min", f"trajectory_recall={bound}"]) for bound in (0.7, 0.75, 0.8)])
    assert "trajectory_recall: the lower bound at 0.95 confidence 0.758 is below 0.8" in capsys.readouterr().err
    assert codes == [[0, 0, 1], [0, 0, 1]]


def test_thresholds_have_a_direction() -> None:
    from agent_eval_schema import CustomMetric, EvalSetError, EvalTask

    rows = [{"prompt": str(i)} for i in range(10)]
    metrics = [CustomMetric("toxicity", lambda _: 0.2), CustomMetric("cost", lambda _: 0.2, lower_is_better=True)]
    found = EvalTask(rows, metrics).evaluate(lambda prompt: prompt)
    assert found.failing({"failure": 0.1, "latency_in_seconds": 2}) == {}
    assert found.failing({"cost": 0.1}) == {"cost": pytest.approx(0.2)}
    assert found.failing({"cost": 0.3}) == {}
    assert found.failing({"toxicity": (None, 0.3)}) == {}
    assert found.failing({"toxicity": (0.3, None)}) == {"toxicity": pytest.approx(0.2)}
    with pytest.raises(EvalSetError, match="toxicity: direction assumed from the name: lower is better"):
        found.failing({"toxicity": 0.3})


def test_what_is_stated_is_in_the_file_of_a_result(tmp_path: Path) -> None:
    from agent_eval_schema import CustomMetric, EvalTask, MetricInfo, load_result

    metric = CustomMetric("toxicity", lambda row: row["points"], lower_is_better=True, scale=(0, 10))
    result = EvalTask([{"points": i} for i in range(8)], [metric]).evaluate()
    for name in ("scores.parquet", "scores.jsonl"):
        result.write(tmp_path / name)
        assert load_result(tmp_path / name).infos["toxicity"] == MetricInfo("toxicity", "lower", (0, 10))
    stated = [MetricInfo("toxicity", "higher")]
    assert load_result(tmp_path / "scores.parquet", infos=stated).infos["toxicity"].direction == "higher"


def test_score_has_upper_thresholds_and_confidence_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.conftest import ROOT

    file = str(ROOT / "sample_data" / "vertex.jsonl")
    assert main(["score", file, "--max", "trajectory_recall=0.01", "--allow-unscored"]) == 1
    captured = capsys.readouterr()
    assert "is above 0.01" in captured.out + captured.err
    assert main(["score", file, "--max", "trajectory_recall=1", "--allow-unscored"]) == 0
    assert main(["score", file, "--confidence", "0.95"]) == 2
    assert "--confidence has no effect without --min or --max" in capsys.readouterr().err


def test_a_comparison_is_printed_as_markdown(run: Any) -> None:
    text = run({"accuracy/score": LOW}, {"accuracy/score": HIGH}, "--output", "markdown")[1]
    assert [line for line in text.splitlines() if set(line) <= set("|-: ") and "--" in line]  # a table
    assert "accuracy" in text


def test_the_page_leads_on_to_the_same_as_markdown(run: Any) -> None:
    run({"quality/score": HIGH}, {"quality/score": LOW}, "--html", "page.html")
    page = Path("page.html").read_text("utf-8")
    (command,) = re.findall(r"<code>(agent-eval-schema compare [^<]*)</code>", page)
    assert command == "agent-eval-schema compare old.jsonl new.jsonl --output markdown"
    assert '<button type="button" class="copy"' in page
