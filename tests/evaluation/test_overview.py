"""The pictures of a result's page: scores over the rows, by group, and the order of the rows."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import CustomMetric, EvalSetError, EvalTask
from agent_eval_schema.evaluation.result import EvalResult
from agent_eval_schema.evaluation.result_blocks import pictures_of, score_steps
from agent_eval_schema.render.figures import CELLS
from tests.conftest import KINDS, Row


def scored(rows: list[Row]) -> EvalResult:
    """Rows with the score in their column `s` (None: no score)."""
    return EvalTask(rows, [CustomMetric("m", lambda row: math.nan if row["s"] is None else row["s"])]).evaluate()


@settings(max_examples=25)
@given(st.lists(st.sampled_from([0.0, 0.25, 1.0, None]), min_size=1, max_size=3 * CELLS))
def test_the_steps_add_up_to_what_is_lost(scores: list[float | None]) -> None:
    found = list(score_steps(scored([{"prompt": "a", "s": score} for score in scores])))
    if found and any(score not in (0, 1, None) for score in scores):  # otherwise a 0 may be what is wanted
        (line,) = found
        assert len(line.lost) == len(line.unscored) == min(len(scores), CELLS)
        sizes = np.diff(np.linspace(0, len(scores), len(line.lost) + 1).astype(int))
        assert float(sizes @ line.lost) == pytest.approx(sum(1 - s for s in scores if s is not None), abs=0.3)
        assert float(sizes @ line.unscored) == pytest.approx(scores.count(None), abs=0.3)
    else:
        assert not any(any(line.lost) for line in found)
        assert {0.25}.isdisjoint(scores)


@settings(max_examples=25)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=1, max_size=40), st.integers(1, 50))
def test_rows_come_in_the_order_in_which_they_are_to_be_examined(scores: list[float | None], most: int) -> None:
    found = pictures_of(scored([{"prompt": "a", "s": score} for score in scores]), most).worst
    assert found is not None
    order = {0.0: 0, 0.5: 1, None: 2, 1.0: 3}
    wanted = sorted(range(len(scores)), key=lambda i: (order[scores[i]], i))[:most]
    assert [int(row.row) for row in found.rows] == wanted


@pytest.mark.parametrize("kind", ["pandas", "jsonl", "parquet"])
def test_groups_are_those_of_columns_with_few_values(kind: str, tmp_path: Path) -> None:
    common = {"none": None, "tags": {"a": "b"}}
    rows: list[Row] = [
        {"request_id": f"{i}", "prompt": "ab"[i % 2], "team": "xy"[i % 3 == 0], "kind": i % 2, "n": i, **common}
        for i in range(12)
    ]
    found = EvalTask(KINDS[kind](rows, tmp_path), [CustomMetric("m", lambda row: row["kind"])]).evaluate()
    groups = pictures_of(found, 1).groups
    assert list(groups) == ["team", "kind"]  # not the prompts, nor numbers that are different in each row
    assert [(g.value, g.rows) for g in groups["team"]] == Counter(row["team"] for row in rows).most_common()
    (y,) = (g.means["m"] for g in groups["team"] if g.value == "y")
    assert (y.rows, y.mean) == (4, 0.5)
    assert np.isnan([y.low, y.high]).all()  # of four rows


def test_a_group_has_the_interval_of_its_units() -> None:
    """Six rows of a team are three questions: too few; ten of the other are ten."""
    rows = [{"prompt": f"question {i % 3}", "team": "x", "s": i % 2} for i in range(6)]
    rows += [{"prompt": f"other {i}", "team": "y", "s": 1} for i in range(10)]
    y, x = pictures_of(scored(rows), 1).groups["team"]
    assert (y.means["m"].low, y.means["m"].high) == (pytest.approx(10 / (10 + 1.959964**2)), 1)
    assert math.isnan(x.means["m"].low)


def test_a_page_has_as_many_rows_as_asked() -> None:
    found = scored([{"prompt": f"prompt {i}", "s": i % 2} for i in range(20)])
    assert found.to_html().count("<tbody><tr><th") == 20
    page = found.to_html(rows=3)
    assert page.count("<tbody><tr><th") == 3
    assert "… and 17 more rows: to_html(rows=…) draws more." in page
    for rows in (0, -1, True, "3"):
        with pytest.raises(EvalSetError, match="rows: expected a whole number of at least 1"):
            found.to_html(rows=rows)  # type: ignore[arg-type]


def test_a_page_has_each_row_once_and_the_first_for_readers_without_scripts() -> None:
    rows = [{"prompt": f"{i}?", "response": f"a unique answer {i}.", "reference": "b"} for i in range(60)]
    page = EvalTask(rows, ["exact_match"]).evaluate().to_html()
    counts = [page.count(f"a unique answer {i}.") for i in range(60)]
    assert counts == [2] * 50 + [1] * 10
    assert "Without scripts, this page shows 50 of its 60 rows." in page
    assert "Without scripts" not in EvalTask(rows[:50], ["exact_match"]).evaluate().to_html()


def test_a_mean_has_the_interval_that_the_result_has() -> None:
    found = scored([{"prompt": f"question {i}", "s": i % 2} for i in range(20)])
    low, high = found.confidence_interval("m")
    line = found.standard_errors().iloc[0]
    assert (
        (line["low"], line["high"]) == (low, high) == (pytest.approx(0.299, abs=1e-3), pytest.approx(0.701, abs=1e-3))
    )
    assert f"{low:.3g} to {high:.3g}" in found.to_text()
    assert json.loads(found.to_json())["intervals"]["m"]["low"] == low
    page = found.to_html()
    assert f'data-label="95% interval">{low:.3g} to {high:.3g}</td>' in page
    assert f"m: 0.5, 95% interval {low:.3g} to {high:.3g}" in page
    alone = scored([{"prompt": "a", "s": 1}]).to_html()
    assert 'data-label="95% interval">–</td>' in alone
    assert 'class="interval"' not in alone


def test_failed_calls_are_grouped_by_their_error() -> None:
    def agent(text: str) -> str:
        if text == "a":
            raise KeyError("no voice")
        return {"b": "x"}[text]

    found = EvalTask([{"prompt": text, "reference": "x"} for text in "aabca"], ["exact_match"]).evaluate(agent)
    page = found.to_html()
    (table,) = re.findall(r"Error of the call.*?</table>", page, re.DOTALL)
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[dh](?: [^>]*)?>(.*?)</t[dh]>", table)][1:]
    assert cells == ["KeyError: &#39;no voice&#39;", "3", "KeyError: &#39;c&#39;", "1"]
    assert page.index("KeyError: &#39;no voice&#39;") < page.index(">Rows</h2>")
    assert "result.failures" in found.to_text()
    assert 'Start here:</b> <a href="#rows">row 0</a>, which failed: KeyError: &#39;no voice&#39;' in page
    assert len(found.failures) == 4


def test_a_false_of_a_scorer_that_a_user_wrote_is_not_called_bad() -> None:
    rows = [{"prompt": "a", "response": "x", "reference": "y", "s": score} for score in (0, 1)]
    found = EvalTask(rows, ["exact_match", CustomMetric("leaks_data", lambda row: bool(row["s"]))]).evaluate()
    worst = pictures_of(found, 2).worst
    assert worst is not None
    moods = {name: [row.columns[i][1] for row in worst.rows] for i, name in enumerate(worst.heads)}
    assert moods == {"exact_match": ["h4", "h4"], "leaks_data": ["", ""]}
    shares = pictures_of(scored([{"prompt": "a", "s": 0.5}, {"prompt": "b", "s": 0.0}]), 2).worst
    assert shares is not None
    assert [row.columns[0][1] for row in shares.rows] == ["h4", "h3"]
