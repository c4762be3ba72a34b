"""The pages of scores: what the means cover comes first, and of a comparison the regressions."""

import math
import re

from agent_eval_schema import EvalTask, score_trajectories
from agent_eval_schema.evaluation.comparison import comparison_view
from agent_eval_schema.evaluation.result_blocks import MetricComparison
from tests.conftest import SAMPLES
from tests.render.results import comparison


def test_the_headline_states_the_coverage_in_the_color_of_a_warning() -> None:
    page = score_trajectories(SAMPLES / "vertex_broken.jsonl").to_html()
    assert '<h1 class="warning">⚠ 2 of 4 rows scored; 2 unreadable</h1>' in page
    assert page.count('class="meter hatched"') == page.count('<td class="n warning" data-label="coverage">50%') == 5
    whole = EvalTask([{"response": "4", "reference": "4"}], ["exact_match"]).evaluate().to_html()
    assert '<h1 class="good">✓ 1 row evaluated</h1>' in whole
    assert 'class="meter hatched"' not in whole
    assert '<td class="n" data-label="coverage">100%' in whole


def test_a_comparison_lists_regressions_first() -> None:
    found = comparison(["a", "b", "c"])
    page = found.to_html()
    scores = page[page.index("Scores that differ") :]
    differences = re.findall(r'<td class="n(?: error| good)?" data-n="[^"]*">([+−–][\d.]*)</td></tr>', scores)
    assert len(differences) == len(found.rows) > 0
    assert "lower or missing" in page[page.index("<h1") : page.index("</h1>")]


def test_less_latency_is_better_and_a_lost_score_is_a_loss() -> None:
    lines = [MetricComparison("recall", 10, 1, 0, 0.5, 0.4, -0.1, -0.15, -0.05, 1, 3, 0.01, 0.01, 0.02, 10, "")]
    changed = [
        ("0", "", "latency_in_seconds", 2.0, 1.0, -1.0),
        ("1", "", "recall", 1.0, math.nan, math.nan),
        ("2", "", "recall", 0.0, 1.0, 1.0),
        ("3", "", "recall", 1.0, 0.5, -0.5),
    ]
    document = comparison_view(lines, changed, 0, 2, "10 rows")
    assert document.verdict == "2 scores lower or missing, 2 higher"
    facts, *sections = document.blocks[-1].blocks  # type: ignore[union-attr]
    assert facts.pairs == [("Only after", "2 rows")]
    means, scores = (section.blocks[0] for section in sections)
    assert means.rows[0][4] == "−0.15 to −0.05"
    assert [row[0] for row in scores.rows] == ["1", "3", "0", "2"]
    assert [row[-1].mood for row in scores.rows] == ["error", "error", "good", "good"]
