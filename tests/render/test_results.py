"""The pages of scores: what the means cover comes first, and of a comparison the regressions."""

import math
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

from agent_eval_schema import (
    CustomMetric,
    EvalResult,
    EvalTask,
    diff_eval_sets,
    profile_eval_set,
    score_trajectories,
    validate_eval_set,
)
from agent_eval_schema.evaluation.result_blocks import MetricComparison, pictures_of, score_steps
from agent_eval_schema.render.blocks import View
from agent_eval_schema.render.printable import Savable
from tests.conftest import SAMPLES
from tests.evaluation.test_history import history
from tests.helpers.scores import comparison_of
from tests.render.report.test_html import Tags
from tests.render.results import comparison
from tests.render.test_script import embedded


def test_the_headline_states_the_coverage_in_the_color_of_a_warning() -> None:
    page = score_trajectories(SAMPLES / "vertex_broken.jsonl").to_html()
    assert '<h1 class="warning">⚠ 2 of 4 rows scored; 2 unreadable: trajectory_exact_match 0.5, ' in page
    assert page.count('class="bar hatched"') == page.count('<td class="n warning" data-label="coverage">50%') == 5
    whole = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate().to_html()
    assert '<h1 class="good">✓ 1 row evaluated: every score is perfect</h1>' in whole
    assert 'class="bar hatched"' not in whole
    assert '<td class="n" data-label="coverage">100%' in whole


def result_with(scores: list[float | None], metric: str = "exact_match") -> EvalResult:
    """A result of a metric with these scores."""
    measure = CustomMetric(metric, lambda row: math.nan if row["s"] is None else row["s"])
    return EvalTask([{"prompt": f"question {i}", "s": score} for i, score in enumerate(scores)], [measure]).evaluate()


@pytest.mark.parametrize(
    ("scores", "metric", "verdict", "mean"),
    [
        ([1, 1], "exact_match", "✓ 2 rows evaluated: every score is perfect", "✓ 1"),
        ([0, 1], "exact_match", "2 rows evaluated: exact_match 0.5", "0.5"),
        ([0, 0], "exact_match", "2 rows evaluated: exact_match 0", "✗ 0"),
        ([1, None], "exact_match", "⚠ 1 of 2 rows scored: exact_match 1", "✓ 1"),
        ([None, None], "exact_match", "✗ no row was scored", "not scored"),
        ([0, 0], "ungrounded_attributes", "✓ 2 rows evaluated: every score is perfect", "✓ 0"),
        ([1, 1], "ungrounded_attributes", "2 rows evaluated: ungrounded_attributes 1", "✗ 1"),
        ([0, 0], "leaks_data", "2 rows evaluated: leaks_data 0", "0"),
        ([1, 1], "leaks_data", "2 rows evaluated: leaks_data 1", "1"),
        ([0, 1] * 10, "exact_match", "20 rows evaluated: exact_match 0.5 (95% interval 0.299 to 0.701)", "0.5"),
    ],
)
def test_good_bad_and_missing_scores_differ_in_words(
    scores: list[float | None], metric: str, verdict: str, mean: str
) -> None:
    found = result_with(scores, metric)
    text = found.to_text(width=100)
    assert f"\n{verdict}\n" in text
    assert re.search(rf"^{metric}(?: ↓)? +{re.escape(mean)} ", text, re.MULTILINE)
    inline = re.sub(
        r"<style>.*?</style>|<[^>]*>", " ", found._repr_html_(), flags=re.DOTALL
    )  # as an untrusted notebook
    assert verdict in inline
    assert re.search(rf"{metric.replace('_', '_ ')}(?: +↓)?\s+{re.escape(mean)}\s", inline)
    assert ("↓ lower is better" in text) is (metric == "ungrounded_attributes")


def test_colors_follow_what_is_better() -> None:
    def bars(page: str) -> list[str]:
        return re.findall(r'<span class="meter(.*?)" role.*?<span class="bar(.*?)"', page)

    assert bars(result_with([0, 1]).to_html()) == [(" loss", "")]
    assert bars(result_with([0, 1], "ungrounded_attributes").to_html()) == [("", " bad")]
    assert bars(result_with([0, 1], "leaks_data").to_html()) == [("", " plain")]
    assert bars(result_with([0, None]).to_html()) == [(" loss", " hatched")]
    worst = pictures_of(result_with([0, 1], "ungrounded_attributes"), 2).worst
    assert worst is not None
    assert [(row.row, row.columns[0][1]) for row in worst.rows] == [(1, "h4"), (0, "")]
    (line,) = score_steps(result_with([0, 1], "ungrounded_attributes"))
    assert line.lost == [0, 1]


def test_an_imperfect_score_has_a_first_action() -> None:
    found = result_with([1, 0])
    assert found.to_text().endswith('worst scores first:\n  result.save("scores.html")\n')
    page = found.to_html()
    assert '<b>Start here:</b> <a href="#rows">row 1</a>, which has the worst scores: question 1</p>' in page
    assert "result.reasons" in result_with([1, None]).to_text()
    assert '<a href="#reasons">the reasons</a> why rows have no score' in result_with([1, None]).to_html()
    for done in (result_with([1, 1]), result_with([])):
        assert "Start here" not in done.to_html()
        assert "result." not in done.to_text()


PAGES: dict[str, Callable[[], Savable]] = {
    "scores": lambda: result_with([1, 0]),
    "missing scores": lambda: score_trajectories(SAMPLES / "vertex_broken.jsonl"),
    "comparison": lambda: comparison(["a", "b", "c"]),
    "history": lambda: history([1, 0], [0, 1], [1, 1], configurations=["a", "a", "b"]),
    "report": lambda: validate_eval_set(SAMPLES / "broken.jsonl"),
    "diff": lambda: diff_eval_sets(SAMPLES / "good.jsonl", SAMPLES / "broken.jsonl"),
    "profile": lambda: profile_eval_set(SAMPLES / "good.jsonl"),
}


@pytest.mark.parametrize("of", PAGES)
def test_every_link_within_a_page_leads_to_one_part_of_it(of: str) -> None:
    page = PAGES[of]().to_html()
    tags = [attributes for _, attributes in Tags(page).seen]
    parts = [attributes["id"] for attributes in tags if "id" in attributes]
    assert len(parts) == len(set(parts))
    if "data" in parts:
        parts += [f"row-{row['row']}" for row in embedded(page)["rows"]]  # which the script opens
    links = {href.removeprefix("#") for attributes in tags if (href := attributes.get("href") or "").startswith("#")}
    assert links
    assert links <= set(parts)


WITHOUT_STYLE = {
    *("still", "nojs", "left"),  # found by the script
    *("bar", "old", "new", "none", "cost", "offered", "power", "values"),  # kinds that look like all others
}


@pytest.mark.parametrize("of", PAGES)
def test_what_a_page_draws_has_a_style(of: str) -> None:
    page = PAGES[of]().to_html()
    styled = {name for style in re.findall("<style>(.*?)</style>", page, re.DOTALL) for name in CLASS.findall(style)}
    drawn = {name for _, attributes in Tags(page).seen for name in (attributes.get("class") or "").split()}
    assert drawn - styled <= WITHOUT_STYLE


CLASS = re.compile(r"\.([a-z][\w-]*)")


@pytest.mark.parametrize(
    ("rows", "words"), [(120, ""), (121, ", at most 2 rows per step"), (241, ", at most 3 rows per step")]
)
def test_a_picture_of_many_rows_names_the_rows_of_a_step(rows: int, words: str) -> None:
    scores = result_with([0] * rows).to_html()
    assert f"to the last (right){words}: the fuller the color, the more points are lost; gray: no score." in scores
    report = validate_eval_set([{"request": "a"}] * rows).to_html()
    fuller = ": the fuller the color, the more of them" if words else ""
    assert f"to the last (right){words}{fuller}.</p>" in report


def test_the_first_action_has_the_start_of_a_long_question() -> None:
    found = EvalTask([{"prompt": "why " * 400, "s": 0.0}], [CustomMetric("m", lambda row: row["s"])]).evaluate()
    (begin,) = re.findall(r"<b>Start here:</b>(.*)</p>", found.to_html())
    assert 90 < len(begin) < 250


def test_a_comparison_lists_regressions_first() -> None:
    found = comparison(["a", "b", "c"])
    page = found.to_html()
    scores = page[page.index('class="rows still"') :]
    differences = re.findall(r'<td class="n(?: error| good)?">([+−–][\d.]*)</td></tr>', scores)
    assert len(differences) == len(found.rows) > 0
    assert "scores lower, 0 higher" in page[page.index("<h1") : page.index("</h1>")]


def view_of(lines: list[MetricComparison], changed: list[tuple[Any, ...]], only_new: int = 0) -> View:
    """What is shown of these lines and of these scores that differ."""
    names = ["key", "metric", "old", "new", "difference", "row"]
    rows = pd.DataFrame(changed, columns=names)
    return comparison_of(lines, rows, range(only_new))._view()


def test_less_latency_is_better_and_a_lost_score_is_a_loss() -> None:
    lines = [MetricComparison("recall", 10, 1, 0, 0.5, 0.4, -0.1, -0.15, -0.05, 1, 3, 0.01, 0.01, 0.02, 10, "")]
    latency = replace(lines[0], metric="latency_in_seconds", difference=-1.0, p_value=math.nan, p_adjusted=math.nan)
    changed = [
        ("0", "latency_in_seconds", 2.0, 1.0, -1.0, 0),
        ("1", "recall", 1.0, math.nan, math.nan, 1),
        ("2", "recall", 0.0, 1.0, 1.0, 2),
        ("3", "recall", 1.0, 0.5, -0.5, 3),
    ]
    document = view_of([*lines, latency], changed, only_new=2)
    assert document.verdict == "1 score worse, 1 missing, 2 better: recall significantly lower (0.5 → 0.4)"
    lines = [replace(line, p_value=0.2, p_adjusted=0.4) for line in [*lines, latency]]
    no_change = ": no significant change in 2 metrics"
    some_worse = ((changed[:1], "0 scores higher, 1 lower"), (changed[1:], "1 score lower, 1 missing, 1 higher"))
    for some, counts in some_worse:
        assert view_of(lines, some).verdict == counts + no_change
    both = [replace(lines[0], metric="precision", old=0.4, new=0.5, difference=0.1, p_adjusted=0.01), *lines]
    assert view_of(both, changed[:1]).verdict.endswith(": precision significantly higher (0.4 → 0.5)")
    both = [*both[:1], replace(lines[0], p_adjusted=0.02), latency]
    assert view_of(both, changed[:1]).verdict.endswith(
        ": recall significantly lower (0.5 → 0.4) and 1 other significant change"
    )
    untested = [replace(lines[0], p_value=math.nan, p_adjusted=math.nan)]
    new = [("4", "recall", math.nan, 1.0, math.nan, 4)]
    assert view_of(untested, new).verdict == "0 scores lower, 1 new, 0 higher"
    facts, *sections = document.blocks[-1].blocks  # type: ignore[union-attr]
    assert facts.pairs == [("Only after", "2 rows")]
    means, scores = (section.blocks[0] for section in sections)
    assert means.rows[0][5] == "−0.15 to −0.05"
    assert [row[0] for row in scores.rows] == ["1", "3", "0", "2"]
    assert [row[-1].mood for row in scores.rows] == ["error", "error", "good", "good"]
