"""The pictures of the validation page and of the funnel: their numbers are those of the report."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import eval_set_from_inference_table, validate_eval_set
from agent_eval_schema.render.figures import codes_together
from agent_eval_schema.validation.report import Report, summary_of
from agent_eval_schema.validation.report_builder import ANSWERS_SHOWN, LONGEST_ANSWER
from tests.conftest import SAMPLES


def pairs_of(report: Report) -> dict[tuple[str, str], int]:
    """The rows per pair of codes, from the list of all issues."""
    issues = report.issues.dropna(subset="row")
    codes = issues.groupby("row")["code"].agg(lambda found: sorted(set(found)))
    return dict(Counter(pair for found in codes for pair in combinations(found, 2)))


@pytest.mark.parametrize("batch", [4, 10_000])
def test_issues_that_occur_together_are_counted_exactly(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", batch)
    rows = [
        {"request_id": "same", "request": {"messages": [{"role": "usr", "content": "a"}]}, "expected_facts": "b"}
        for _ in range(10)
    ]
    report = validate_eval_set([*rows, {"request": "a", "response": "b", "expected_facts": "b"}])
    assert summary_of(report).together == pairs_of(report)
    assert summary_of(report).together["AE206", "AE901"] == 9
    page = report.to_html()
    assert 'title="AE206 and AE901: 9 rows, 90% of AE206">9</td>' in page
    alone = validate_eval_set([{"request": " ", "response": "b"}])
    assert summary_of(alone).together == {}
    assert "occur together" not in alone.to_html()


@pytest.mark.parametrize("name", ["broken.jsonl", "broken_mlflow.jsonl", "edited_broken.jsonl"])
def test_the_samples_have_the_pairs_of_their_issues(name: str) -> None:
    report = validate_eval_set(SAMPLES / name)
    assert summary_of(report).together == pairs_of(report)


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(["A", "B", "C"]), st.lists(st.integers(0, 9), max_size=20)))
def test_a_row_counts_once_for_a_pair(rows: dict[str, list[int]]) -> None:
    together = codes_together({code: np.array(found, np.int64) for code, found in rows.items()}, 10)
    expected = {(a, b): len({*rows[a]} & {*rows[b]}) for a, b in combinations(sorted(rows), 2)}
    assert together == {pair: count for pair, count in expected.items() if count}


def answers_in(page: str) -> list[tuple[str, str]]:
    table = page[page.index('<table class="answers">') :]
    found: list[tuple[str, str]] = re.findall(r'<th scope="row">(.*?)</th>.*?<td class="n">(.*?)</td>', table)
    return found


def answering(texts: list[Any]) -> list[dict[str, Any]]:
    return [{"request": f"question {i}", "response": text} for i, text in enumerate(texts)]


def test_the_most_frequent_answers_are_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 4)
    long = "x" * 1_000
    texts = ["no", "yes", long, None, "yes", "once", "no", "yes", long, "yes"]
    page = validate_eval_set(answering(texts)).to_html()
    shown = [("yes", "4 of 9 rows"), ("no", "2 of 9 rows"), (long[: LONGEST_ANSWER - 1] + "…", "2 of 9 rows")]
    assert answers_in(page) == shown
    many = [text for i in range(ANSWERS_SHOWN + 3) for text in [f"answer {i}"] * (i + 2)]
    assert [text for text, _ in answers_in(validate_eval_set(answering(many)).to_html())] == [
        f"answer {i}" for i in range(ANSWERS_SHOWN + 2, 2, -1)
    ]


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["yes"] * 4, {}),  # too few rows
        (["a", "b", "c", "d", "e", "f"], {}),  # none is repeated
        (["yes"] * 10, {"show_values": False}),
    ],
)
def test_there_are_no_frequent_answers(texts: list[str], options: dict[str, Any]) -> None:
    assert "Most frequent answers" not in validate_eval_set(answering(texts), **options).to_html()


def test_answers_of_traces_count_and_a_file_that_is_gone_has_none(tmp_path: Path) -> None:
    report = validate_eval_set(SAMPLES / "search_traces.jsonl")
    assert sum(map(np.count_nonzero, report._run.builder.answers)) == report.rows["response"].notna().sum()
    path = tmp_path / "a.jsonl"
    path.write_text('{"request": "a", "response": "b"}\n' * 6)
    report = validate_eval_set(path)
    assert answers_in(report.to_html()) == [("b", "6 of 6 rows")]
    path.unlink()
    assert "Most frequent answers" not in report.to_html()


def test_lengths_are_those_of_the_last_question_and_of_the_response() -> None:
    chat = {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "four"}]}
    found = summary_of(
        validate_eval_set([{"request": chat, "response": "äöü"}, {"request": "12345", "response": None}])
    ).distributions
    assert {name: (d.count, d.highest) for name, d in found.items()} == {
        "request_length": (2, 5),
        "response_length": (1, 3),
    }


@pytest.mark.parametrize(("rows", "drawn"), [(4, False), (5, True)])
def test_distributions_are_drawn_from_five_rows_on(rows: int, drawn: bool) -> None:
    page = validate_eval_set(answering([f"{i}" for i in range(rows)])).to_html()
    assert ("<figcaption>Request length" in page) == drawn


def test_the_funnel_has_the_number_of_every_step() -> None:
    pytest.importorskip("duckdb")
    build = eval_set_from_inference_table(SAMPLES / "inference_table.jsonl", sample=9)
    for page in (build.to_html(), build.summary.to_html(), build._repr_html_()):
        picture = re.sub(' style="[^"]*"', "", page[page.index('<ul class="funnel"') : page.index("</ul>")])
        steps = re.findall(r'<b class="count">([\d,]+)</b> (\w+)</span>', picture)
        assert steps[0] == (str(build.summary.records), "records")
        assert steps[1:] == [(str(step.left), step.name) for step in build.summary.steps if step.removed]
        for reason, count in build.summary.excluded.items():
            assert f"− {count} {reason}" in picture
