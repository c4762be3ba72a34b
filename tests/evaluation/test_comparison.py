"""Two results of the same rows, by hand."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_eval_schema import CustomMetric, EvalSetError, EvalTask, ScoreComparison, load_result
from agent_eval_schema.render.blocks import Block, Cell, Effect, Table
from tests.evaluation.test_result import result
from tests.evaluation.test_task import SEED
from tests.render.test_script import embedded


def _blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _blocks(getattr(block, "blocks", ()))


def test_a_comparison_by_hand() -> None:
    old = result([{**row, "id": i} for i, row in enumerate(SEED)])
    better = [{**row, "predicted_trajectory": row["reference_trajectory"], "id": i} for i, row in enumerate(SEED)]
    found = old.compare(result(better))
    line = found.lines[-1]
    assert (line.metric, line.rows, line.old, line.new, line.difference) == ("trajectory_recall", 2, 0.25, 1, 0.75)
    assert (line.higher, line.lower, line.note) == (2, 0, "cannot be tested")
    assert math.isnan(line.p_value)
    changed = found.rows.query("metric == 'trajectory_recall'")
    assert changed[["row", "old", "new", "difference"]].to_numpy().tolist() == [[0, 0, 1, 1], [1, 0.5, 1, 0.5]]
    assert "+0.75" in str(found)


def test_rows_that_ask_different_things_are_matched_by_question() -> None:
    rows = [{**SEED[i % 2], "prompt": p} for i, p in enumerate(["a", "b", None, "A!"])]
    assert result(rows).compare(result(rows)).matched_by == "position"
    found = result(rows).compare(result([rows[3], {**SEED[0], "prompt": "c"}, rows[1], rows[0]]))
    assert (found.matched_by, found.only_old, found.only_new) == ("question", [2], [1])
    assert found.lines[0].rows == 3
    # the same question twice: the first of both, then the second
    assert found.rows.query("metric == 'trajectory_recall'")[["key", "old", "new"]].to_numpy().tolist() == [
        [0, 0.0, 0.5],
        [3, 0.5, 0.0],
    ]
    text = " ".join(str(found).split())
    assert "Rows are matched by question. 1 row only before 1 row only after" in text


def test_a_prompt_is_the_request_of_another_table() -> None:
    rows = [{"prompt": f"question {i}", "response": "4", "reference": "4"} for i in range(3)]
    renamed = [{"request": {"messages": [{"role": "user", "content": r["prompt"]}]}, **RIGHT} for r in rows]
    old = EvalTask(rows, ["exact_match"]).evaluate()
    same, turned = (EvalTask(new, ["exact_match"]).evaluate() for new in (renamed, renamed[::-1]))
    assert (old.compare(same).matched_by, old.compare(turned).matched_by) == ("position", "question")


def test_rows_without_a_request_need_a_key() -> None:
    with pytest.raises(EvalSetError, match="the results have 2 and 1 rows: set key="):
        result().compare(result(SEED[:1]))
    with pytest.raises(EvalSetError, match="the two results share no row, by question"):
        result([{**SEED[0], "prompt": "a"}]).compare(result([{**SEED[0], "prompt": "b"}]))


def test_rows_are_matched_by_request_id_before_the_question() -> None:
    rows = [{**SEED[i % 2], "prompt": "same", "request_id": f"r{i}"} for i in range(4)]
    found = result(rows).compare(result(rows[:0:-1]))
    assert (found.matched_by, found.only_old, found.only_new) == ("request_id", [0], [])
    assert found.rows.empty
    other = [{**row, "request_id": f"other {row['request_id']}"} for row in rows]
    assert result(rows).compare(result(other)).matched_by == "question"


def test_results_without_a_common_metric_are_no_comparison() -> None:
    rows = [{"response": "4", "reference": "4"}]
    old, new = (EvalTask(rows, [metric]).evaluate() for metric in ("exact_match", "rouge_1"))
    with pytest.raises(EvalSetError, match="share no metric: exact_match; rouge_1"):
        old.compare(new)


def test_what_else_differs_is_reported() -> None:
    old = EvalTask(SEED, ["trajectory_recall"]).evaluate()
    new = EvalTask(SEED, ["trajectory_recall", "trajectory_precision"], match="tool_name").evaluate()
    assert old.compare(new).remarks == [
        "Metrics only after: trajectory_precision.",
        "The setting match differs: the default before, tool_name after.",
    ]
    assert "Metrics only after: trajectory_precision." in old.compare(new).to_html()


def test_rows_are_matched_by_a_key() -> None:
    rows = [{**SEED[i % 2], "id": f"r{i}"} for i in range(4)]
    found = result(rows).compare(result([*rows[:0:-1], {**SEED[0], "id": "new"}]), key="id")
    assert found.rows.empty
    assert (found.only_old, found.only_new) == (["r0"], ["new"])
    assert "1 row only before" in str(found)
    with pytest.raises(EvalSetError, match="does not identify rows"):
        result(rows).compare(result([rows[0], rows[0]]), key="id")
    with pytest.raises(EvalSetError, match="share no row"):
        result(rows[:1]).compare(result(rows[1:]), key="id")


def test_a_score_that_came_or_went_is_a_change() -> None:
    lost = [{**SEED[0], "predicted_trajectory": None}, SEED[1]]
    found = result().compare(result(lost))
    assert found.rows["row"].tolist() == [0] * 5
    assert found.rows["new"].isna().all()
    assert [(line.rows, line.lost, line.gained) for line in found.lines] == [(1, 1, 0)] * 5
    assert "1 (1 lost)" in str(found)
    assert "1 (1 gained)" in str(result(lost).compare(result()))


def test_positions_stay_whole_numbers_if_a_metric_is_unchanged() -> None:
    old = [{"prompt": f"{i}", "response": "x", "reference": "x", "a": i} for i in range(3)]
    metrics = ["exact_match", CustomMetric("a", lambda row: row["a"])]
    changed = [{**row, "a": 9} for row in old]
    found = EvalTask(old, metrics).evaluate().compare(EvalTask(changed, metrics).evaluate())
    assert found.rows["key"].tolist() == [0, 1, 2]
    assert found.rows["key"].dtype.kind == "i"
    assert "<td>0.0</td>" not in found.to_html()


RIGHT, WRONG = {"response": "4", "reference": "4"}, {"response": "3", "reference": "4"}


def compared(old: list[bool], new: list[bool], *, sessions: list[str] | None = None, **options: Any) -> ScoreComparison:
    """Two runs on different questions, right or wrong."""
    results = []
    for run in (old, new):
        rows = [{**(RIGHT if right else WRONG), "prompt": f"question {i}"} for i, right in enumerate(run)]
        for row, session in zip(rows, sessions or (), strict=False):
            row["session_id"] = session
        results.append(EvalTask(rows, ["exact_match", "rouge_1"]).evaluate())
    return results[0].compare(results[1], **options)


def test_more_better_than_worse_is_no_failure() -> None:
    found = compared([False] * 28 + [True] * 12, [True] * 28 + [False] + [True] * 11)
    line = found.lines[0]
    assert (line.higher, line.lower, line.units) == (28, 1, 40)
    assert line.p_value == pytest.approx(2 * 30 / 2**29)
    assert line.low > 0
    assert found._view().mood == "good"
    worse = compared([True] * 40, [False] * 12 + [True] * 28)
    assert worse._view().mood == "error"


def test_two_metrics_are_adjusted_by_holm_and_the_colors_follow() -> None:
    found = compared([False] * 6 + [True] * 20, [True] * 26)
    assert [line.p_value for line in found.lines] == [0.03125, 0.03125]
    assert [line.p_adjusted for line in found.lines] == [0.0625, 0.0625]
    means = found.to_html().split("Scores that differ")[0]
    assert 'class="num good"' not in means
    text = str(found)
    assert "Holm p" in text
    assert "Holm p: adjusted for 2 metrics" in " ".join(text.split())


def test_the_picture_of_a_change_has_better_to_the_right_and_shows_what_may_be_chance() -> None:
    points, faults = (
        CustomMetric(name, lambda row, name=name: row[name], lower_is_better=name == "faults", scale=(0.0, 1.0))
        for name in ("points", "faults")
    )
    old, new = (
        EvalTask([{"points": p, "faults": f} for p, f in zip(of, faulty, strict=True)], [points, faults]).evaluate()
        for of, faulty in (([1.0] * 20, [0.5, 0.4] * 10), ([0.0] * 20, [0.4, 0.5] * 9 + [0.5, 0.0]))
    )
    found = old.compare(new)
    means = next(block for block in _blocks(found._view().blocks) if isinstance(block, Table))
    pictures = [cell.picture for row in means.rows for cell in row if isinstance(cell, Cell) and cell.picture]
    certain, chance = (picture for picture in pictures if isinstance(picture, Effect))
    assert (certain.point, certain.is_certain, certain.mood) == (2.0, True, "error")  # −1: the whole left half
    assert chance.point > 50  # fewer faults are better
    assert not chance.is_certain
    assert chance.interval is not None
    assert chance.interval[0] < 50 < sum(chance.interval)
    page = found.to_html()
    assert page.count('class="effect ') == 2
    assert 'aria-label="points: worse, significant"' in page
    assert "worse ← → better" not in str(found)


def test_a_row_of_the_page_has_its_question_and_both_answers() -> None:
    old, new = (
        result([{**SEED[0], "prompt": f"Where is <order> {i}?", "response": f"{answer} {i}"} for i in range(8)])
        for answer in ("Here", "There")
    )
    rows = [{**SEED[i % 2], "prompt": f"Where is <order> {i}?", "response": f"There {i}"} for i in range(8)]
    page = old.compare(result(rows)).to_html()
    assert "Where is &lt;order&gt; 1?" in page
    assert "<order>" not in page
    assert page.index("response, before") < page.index("Here 1") < page.index("response, after") < page.index("There 1")
    assert new.compare(old).to_markdown().count("Here") == 0


def test_a_metric_with_too_few_rows_is_named_beside_those_that_are_tested() -> None:
    own = [CustomMetric(name, lambda row, name=name: row[name]) for name in ("all", "few")]  # type: ignore[misc]
    old, new = (
        EvalTask(
            [{"prompt": f"q{i}", "all": i % 2 * a, "few": a if i < 3 else None} for i in range(16)], own
        ).evaluate()
        for a in (0.0, 1.0)
    )
    text = old.compare(new).to_text(width=200)
    assert "few: cannot be tested: 3 independent units." in text
    assert "all: cannot be tested" not in text


def test_one_session_cannot_be_tested() -> None:
    found = compared([False] * 9, [True] * 9, sessions=["a"] * 9)
    assert (
        str(found)
        == """metric       before  after  change  95% interval  up  down  rows  p
exact_match       0      1      +1             –   9     0     9  –
rouge_1           0      1      +1             –   9     0     9  –
Cannot be tested: 1 session. At least 6 independent units are needed.

✓ 0 scores lower, 18 higher
Lists the scores that differ, regressions first:
  comparison.save("comparison.html")
"""
    )


def test_repeats_of_a_question_are_one_unit() -> None:
    """Ten questions ten times: an improvement of three questions is not one of thirty rows."""
    rows = [{**(WRONG if i < 3 else RIGHT), "prompt": f"question {i}"} for i in range(10) for _ in range(10)]
    new = [{**RIGHT, "prompt": row["prompt"]} for row in rows]
    old = EvalTask(rows, ["exact_match"]).evaluate()
    line = old.compare(EvalTask(new, ["exact_match"]).evaluate()).lines[0]
    assert (line.units, line.p_value) == (10, 0.25)
    assert line.std_error == pytest.approx(math.sqrt(10 / 9 * (3 * 7**2 + 7 * 3**2)) / 100)
    alone = old.compare(EvalTask(new, ["exact_match"]).evaluate(), cluster=None).lines[0]
    assert alone.p_value < 1e-8


def test_a_comparison_by_a_column() -> None:
    old = EvalTask([{**WRONG, "team": f"{i % 7}"} for i in range(14)], ["exact_match"]).evaluate()
    new = EvalTask([{**RIGHT, "team": f"{i % 7}"} for i in range(14)], ["exact_match"]).evaluate()
    found = old.compare(new, cluster="team")
    assert found.lines[0].p_value == 2 / 2**7
    assert "two-sided, of 7 clusters" in " ".join(str(found).split())
    with pytest.raises(EvalSetError, match=r"cluster: expected auto, None or a column .*team.*; got 'nothing'"):
        old.compare(new, cluster="nothing")


def test_random_patterns_show_no_smaller_p_than_their_number() -> None:
    rows = [{"prompt": f"{i}", "a": 1 + i / 100} for i in range(40)]
    metrics = [CustomMetric("a", lambda row: row["a"])]
    old = EvalTask([{**row, "a": 0.0} for row in rows], metrics).evaluate()
    found = old.compare(EvalTask(rows, metrics).evaluate())
    assert found.lines[0].p_value == 1 / 10_001
    assert "≤ 0.0001" in str(found)


def test_numbers_stay_on_their_lines_at_80_columns() -> None:
    """With the widest numbers that there are, and long names."""
    random = np.random.default_rng(3)
    names = ["trajectory_in_order_match", "document_recall", "tone"]
    metrics = [CustomMetric(name, lambda row, name=name: row[name]) for name in names]
    old, new = (
        EvalTask(
            [{n: float(x) for n, x in zip(names, random.normal(mean, 0.5, 3), strict=True)} for _ in range(80)], metrics
        )
        for mean in (0.1234, 2.345)
    )
    text = old.evaluate().compare(new.evaluate()).to_text(width=80)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "Holm p" in lines[0] or "Holm p" in lines[1]
    assert len(re.findall(r" to \+[\d.]+ +\d+ +\d+ +80 +≤ 0\.0001 +0\.0003$", text, re.MULTILINE)) == 3


def test_the_page_names_both_runs_their_data_and_the_date(tmp_path: Path) -> None:
    data = tmp_path / "support.jsonl"
    data.write_text('{"response": "a", "reference": "a"}\n' * 3)
    result = EvalTask(data, ["exact_match"]).evaluate()
    for name in ("old.parquet", "new.parquet"):
        result.write(tmp_path / name)
        os.utime(tmp_path / name, (1_790_000_000, 1_790_000_000))
    found = load_result(tmp_path / "old.parquet").compare(load_result(tmp_path / "new.parquet"))
    assert "- Before: old.parquet, 3 rows of support.jsonl, written 2026-09-21 14:13 UTC" in found.to_markdown()
    page = found.to_html()
    start = page[page.index("<header>") : page.index("<h1")]
    assert "<dt>Before</dt><dd>old.parquet, 3 rows of support.jsonl, written 2026-09-21 14:13 UTC</dd>" in start
    assert "<dt>After</dt><dd>new.parquet, 3 rows of support.jsonl, written 2026-09-21 14:13 UTC</dd>" in start
    assert "<dd>in memory, 1 row</dd>" in compared([True], [False]).to_html()


def test_the_calls_of_both_runs_are_beside_those_that_are_expected() -> None:
    calls = [{"tool_name": "search", "tool_input": {"q": "a"}}]
    old, new = (
        EvalTask(
            [{"prompt": "Where?", "predicted_trajectory": made, "reference_trajectory": calls}], ["trajectory_recall"]
        )
        for made in (calls, [])
    )
    (row,) = embedded(old.evaluate().compare(new.evaluate()).to_html())["rows"]
    assert [(title, [p["predicted"] and p["predicted"]["mark"] for p in pairs]) for title, pairs in row["calls"]] == [
        ("Tool calls, before", ["matched"]),
        ("Tool calls, after", [None]),
    ]
    assert not [name for name, _ in row.get("cells", ()) if "trajectory" in name]


@pytest.mark.parametrize("key", [None, "request_id"])
def test_an_id_is_the_same_in_every_kind_of_file(key: str | None, tmp_path: Path) -> None:
    """A number of JSON and Parquet is a text in CSV; 0 is an ID, too."""
    rows = [{"request_id": i, "response": "1", "reference": str(i % 2)} for i in range(10)]
    result = EvalTask(rows, ["exact_match"]).evaluate()
    paths = [tmp_path / f"rows.{ending}" for ending in ("parquet", "csv", "jsonl", "json")]
    for path in paths:
        result.write(path)
    for old, new in itertools.permutations(paths, 2):
        found = load_result(old).compare(load_result(new), key=key)
        assert (found.matched_by, found.only_old, found.only_new) == (key or "position", [], [])


def test_an_id_as_a_number_and_as_a_text_identifies_no_row() -> None:
    rows = [{"request_id": of, "response": "1", "reference": "1"} for of in (1, "1", "2")]
    old, new = (EvalTask(data, ["exact_match"]).evaluate() for data in (rows, rows[:2]))
    with pytest.raises(EvalSetError, match="the column 'request_id' does not identify rows: 1 repeat another"):
        old.compare(new, key="request_id")
    with pytest.raises(EvalSetError, match="the results have 3 and 2 rows: set key="):
        old.compare(new)


def test_rows_that_were_numbered_again_are_reported() -> None:
    rows = [{"request_id": str(i), "prompt": f"q{i}", "reference": "a", "response": "a"} for i in range(5)]
    again = [{**row, "request_id": str(i)} for i, row in enumerate(rows[1:])]
    old, new = (EvalTask(data, ["exact_match"]).evaluate() for data in (rows, again))
    found = old.compare(new)
    assert found.matched_by == "request_id"
    assert [remark for remark in found.remarks if remark.startswith("4 of 4 rows matched by request_id have another")]
    assert not [remark for remark in old.compare(new, key="prompt").remarks if "another question" in remark]
