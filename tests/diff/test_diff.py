"""A diff: every row is in a pair or in none, the same is the same in whatever file, and what changed reads like a
review."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema import Diff, EvalSetError, diff_eval_sets, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.diff.diff_blocks import EXAMPLES_KEPT
from agent_eval_schema.io import source
from agent_eval_schema.io.source import rows_where
from agent_eval_schema.text.edits import Edit, TextPart, edits
from agent_eval_schema.text.jsontext import canonical_json
from agent_eval_schema.validation.report import run_of
from tests.conftest import KINDS, ROOT, Row, as_csv, as_jsonl, as_list
from tests.render.report.test_text import GOLDEN, compare

"""Two checks of a data set take a while on a machine that is busy with other tests."""

MESSAGES = {"messages": [{"role": "user", "content": "Hi"}]}
BROKEN = {"messages": [{"role": "usr", "content": "Hi"}]}


def row(request_id: str | None = "a", request: Any = "Hi", **cells: Any) -> Row:
    given = {"request_id": request_id, "request": request, "response": "Hello", **cells}
    return {name: cell for name, cell in given.items() if cell is not None}


def changes(diff: Diff) -> list[tuple[int, int, str, Any, Any]]:
    return [tuple(line) for line in diff.changed[["old_row", "new_row", "field", "old", "new"]].itertuples(index=False)]


# ---------------------------------------------------------------------------------------------------------------------
# the same


@pytest.mark.parametrize(
    "name", ["good.jsonl", "broken.jsonl", "good.csv", "traces_mlflow2.jsonl", "search_traces.jsonl"]
)
def test_a_file_is_the_same_as_itself(name: str, samples: Path) -> None:
    diff = diff_eval_sets(samples / name, samples / name)
    assert diff.same
    assert not diff.losses
    assert diff.counts["unchanged"] == diff.counts["old"] == diff.counts["new"] > 0
    text = diff.to_text(width=200)
    assert text.splitlines()[2:] == ["", f"✓ No difference: all {diff.counts['new']} rows are the same."]


SAME = [
    row("1", request={"query": "And?", "history": [{"role": "user", "content": "Hi"}]}, team="x", score=3),
    row("2", expected_facts=["b", "a"], guidelines={"tone": ["short"], "scope": ["HR"]}, score=0.5),
    row("3", retrieved_context=[{"doc_uri": "a.md", "content": "text"}, {"doc_uri": "b.md"}], score=None),
    row("4", request=BROKEN, custom_expected={"k": [1, {"z": None}]}, note={"a": [1, 2], "b": "c"}),
    row("5", reference_trajectory=[{"tool_name": "f", "tool_input": {"x": 1, "y": 2}}], tags={"a": "b"}),
    row("6", latency_seconds=0.25, input_token_count=7, failure=False, note=["x"]),
]


def test_the_same_rows_are_the_same_from_every_kind_of_input(every_input: Callable[[list[Row]], Any]) -> None:
    diff = diff_eval_sets(SAME, every_input(SAME))
    assert changes(diff) == []
    assert diff.same, str(diff)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (row(), row(request=MESSAGES)),
        (row(), row(request=json.dumps({"messages": [{"content": "Hi", "role": "user"}]}))),
        (row(request={"query": "Hi"}), row(request=MESSAGES)),
        (row(tags={"a": "1", "b": "2"}), row(tags={"b": "2", "a": "1"})),
        (row(guidelines=["x"]), row(guidelines={"guidelines": ["x"]})),
        (row(custom_expected={"a": {"x": 1, "y": 2}}), row(custom_expected={"a": {"y": 2, "x": 1.0}})),
        (row(team={"a": 1, "b": [2]}), row(team='{"b": [2.0], "a": 1}')),
        (row(team=3), row(team=3.0)),
        (row(team="x"), row(team="x", session_id=None)),
    ],
    ids=str,
)
def test_what_says_the_same_is_no_change(old: Row, new: Row) -> None:
    assert changes(diff_eval_sets(pd.DataFrame([old]), pd.DataFrame([new]))) == []


def test_a_trace_is_the_same_as_an_object_and_as_text(samples: Path) -> None:
    lines = [json.loads(line) for line in (samples / "good.jsonl").read_text().splitlines()]
    traced = [line for line in lines if "trace" in line]
    reordered = [{**r, "trace": dict(reversed(json.loads(r["trace"]).items()))} for r in traced]
    assert diff_eval_sets(traced, reordered).same


def test_normalized_rows_are_the_same_as_what_they_were_made_from(samples: Path, tmp_path: Path) -> None:
    report = validate_eval_set(samples / "good.jsonl")
    report.write(str(tmp_path / "n.parquet"))
    assert changes(diff_eval_sets(samples / "good.jsonl", tmp_path / "n.parquet")) == []


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("response", "Hello", "hello"),
        ("response", "Hello", ""),
        ("expected_facts", ["a", "b"], ["b", "a"]),
        ("expected_facts", ["a", "b"], ["ab"]),
        ("expected_facts", [], None),
        ("retrieved_context", [{"doc_uri": "a", "content": "b"}], [{"doc_uri": "b", "content": "a"}]),
        ("retrieved_context", [{"doc_uri": "a", "content": ""}], [{"doc_uri": "a"}]),
        ("retrieved_context", [], None),
        ("guidelines", {"a": ["x"], "b": ["y"]}, {"a": ["y"], "b": ["x"]}),
        ("tags", {"a": "b"}, {"b": "a"}),
        ("custom_expected", {"a": 1}, {"a": "1"}),
        ("reference_trajectory", [{"tool_name": "f", "tool_input": {"x": 1}}], [{"tool_name": "f"}]),
        ("latency_seconds", 0.25, 0.26),
        ("latency_seconds", 0, None),
        ("input_token_count", 0, None),
        ("failure", False, None),
        ("failure", False, True),
        ("team", "a", "b"),
        ("team", "1.10", "1.1"),
        ("team", "", None),
        ("team", [1], [2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["list", "jsonl"])
def test_each_change_of_a_value_is_one_change(field: str, old: Any, new: Any, kind: str, tmp_path: Path) -> None:
    before, after = tmp_path / "1", tmp_path / "2"
    before.mkdir()
    after.mkdir()
    rows = [{**row(), field: old}, row("z", "Ho")], [{**row(), field: new}, row("z", "Ho")]
    diff = diff_eval_sets(KINDS[kind](rows[0], before), KINDS[kind](rows[1], after))
    assert diff.fields == {field: 1}
    assert diff.counts["changed"] == 1
    assert not diff.same
    assert [e.row.old_row for f in diff.review.fields for e in f.examples] == [0]


# ---------------------------------------------------------------------------------------------------------------------
# which row is which


MATCHING: dict[str, tuple[list[Row], list[Row], list[tuple[int, int]]]] = {
    "by id, wherever they stand": ([row("a"), row("b")], [row("b", "new"), row("a", "newer")], [(1, 0), (0, 1)]),
    "by request without ids": ([row(None), row(None, "Ho")], [row(None, "Ho"), row(None)], [(1, 0), (0, 1)]),
    "the id is surer than the request": (
        [row("a", "x"), row("b", "y")],
        [row("a", "y"), row("b", "x")],
        [(0, 0), (1, 1)],
    ),
    "by request where one side has no id": ([row(None)], [row("a")], [(0, 0)]),
    "by request where ids were given anew": ([row("a"), row("b", "Ho")], [row("c", "Ho"), row("d")], [(1, 0), (0, 1)]),
    "neither the id nor the request": ([row("a")], [row("b", "Ho")], []),
    "repeated ids by their requests": (
        [row("a", "x"), row("a", "y")],
        [row("a", "y"), row("a", "x")],
        [(1, 0), (0, 1)],
    ),
    "repeated ids else in order": ([row("a", "x"), row("a", "y")], [row("a", "z")], [(0, 0)]),
    "repeated requests in order": (
        [row(None, response=r) for r in ("1", "2", "3")],
        [row(None, response=r) for r in ("4", "5")],
        [(0, 0), (1, 1)],
    ),
    "repeated requests by what else they say": (
        [row(None, response=r) for r in ("1", "2", "3")],
        [row(None, response=r) for r in ("3", "4")],
        [(2, 0), (0, 1)],
    ),
    "ids given anew to repeated requests": (
        [row("a", response="1"), row("b", response="2")],
        [row("c", response="2")],
        [(1, 0)],
    ),
    "a request that is read only on one side": ([row("a", BROKEN)], [row("a")], [(0, 0)]),
    "a broken request is not the request": ([row(None, BROKEN)], [row(None)], []),
    "rows of which nothing can be read": ([None, row()], [row(), None], [(1, 0), (0, 1)]),  # type: ignore[list-item]
}


@pytest.mark.parametrize(("old", "new", "pairs"), MATCHING.values(), ids=MATCHING)
def test_rows_are_matched(old: list[Row], new: list[Row], pairs: list[tuple[int, int]]) -> None:
    diff = diff_eval_sets(old, new)
    found = diff._pairs
    assert list(zip(found.old.tolist(), found.new.tolist(), strict=True)) == pairs
    assert set(diff.removed["row"]) == set(range(len(old))) - {a for a, _ in pairs}
    assert set(diff.added["row"]) == set(range(len(new))) - {b for _, b in pairs}


def test_rows_that_only_moved_are_the_same() -> None:
    rows = [row(str(i), f"Question {i}") for i in range(10)]
    diff = diff_eval_sets(rows, [rows[9], *rows[:9]])
    assert (diff.same, diff.counts["moved"]) == (True, 1)
    assert "No difference: all 10 rows are the same; 1 of them moved." in str(diff)


@given(st.permutations(range(8)))
def test_moved_is_the_fewest_rows_to_move(order: list[int]) -> None:
    rows = [row(str(i), f"Question {i}") for i in range(8)]
    kept = max(
        sum(1 for _ in subset)
        for bits in range(256)
        if (subset := [n for i, n in enumerate(order) if bits >> i & 1]) == sorted(subset)
    )
    assert diff_eval_sets(rows, [rows[i] for i in order]).counts["moved"] == 8 - kept


def test_empty_sides() -> None:
    assert diff_eval_sets([], []).same
    diff = diff_eval_sets([], [row()])
    assert (diff.counts["added"], diff.counts["removed"], diff.same, diff.losses) == (1, 0, False, False)
    assert diff_eval_sets([row()], []).losses
    assert list(diff.changed.columns) == ["old_row", "new_row", "request_id", "field", "old", "new"]
    assert list(diff.added["request"]) == ["Hi"]


# ---------------------------------------------------------------------------------------------------------------------
# what is said of it


def test_the_frame_of_changes_is_complete_and_in_the_order_of_the_new_rows() -> None:
    old = [row(str(i), f"Question {i}", expected_response="old") for i in range(50)]
    new = [{**r, "response": "Bye", "expected_response": "new"} for r in reversed(old)]
    diff = diff_eval_sets(old, new)
    assert diff.fields == {"response": 50, "expected_response": 50}
    assert changes(diff)[:3] == [
        (49, 0, "response", "Hello", "Bye"),
        (49, 0, "expected_response", "old", "new"),
        (48, 1, "response", "Hello", "Bye"),
    ]
    assert len(diff.changed) == 100
    assert list(diff.changed["request_id"][:3]) == ["49", "49", "48"]
    assert [len(f.examples) for f in diff.review.fields] == [EXAMPLES_KEPT, EXAMPLES_KEPT]
    assert [f.rows for f in diff.review.fields] == [50, 50]


def test_a_cell_that_cannot_be_read_is_compared_as_it_is() -> None:
    old, new = row(expected_facts="one"), row(expected_facts="two")
    assert diff_eval_sets([old], [old]).same
    assert changes(diff_eval_sets([old], [new])) == [(0, 0, "expected_facts", "one", "two")]
    assert changes(diff_eval_sets([row(expected_facts=["one"])], [old])) == [(0, 0, "expected_facts", ["one"], "one")]
    assert changes(diff_eval_sets([row()], [row(request=BROKEN)])) == [(0, 0, "request", MESSAGES, BROKEN)]
    text, value = row(response='{"a":1}'), row(response={"a": 1})  # an answer, and an object that holds none
    assert diff_eval_sets([text], [value]).fields == {"response": 1}


def test_a_cell_that_can_be_read_is_compared_as_such_even_if_an_error_is_logged_there() -> None:
    old, new = row(expected_response="x"), row(expected_response="x", expected_facts=["y"])
    diff = diff_eval_sets([old], [new])
    assert list(diff.issues_gained["column"]) == ["expected_response"]
    assert diff.fields == {"expected_facts": 1}


def test_ground_truth_that_is_blank_is_none_in_an_invalid_row_too() -> None:
    old, new = row(expected_response=" "), row(expected_response=" ", expected_facts="no list")
    assert list(diff_eval_sets([old], [new]).fields) == ["expected_facts"]


def test_lines_that_are_no_rows_take_part(tmp_path: Path) -> None:
    for name, line in (("old", '{"request": "Hi'), ("same", '{"request": "Hi'), ("new", '{"request": "Ho')):
        (tmp_path / f"{name}.jsonl").write_text(f"{line}\n{json.dumps(row())}\n")
    assert diff_eval_sets(tmp_path / "old.jsonl", tmp_path / "same.jsonl").same
    diff = diff_eval_sets(tmp_path / "old.jsonl", tmp_path / "new.jsonl")
    assert (diff.counts["removed"], diff.counts["added"], diff.counts["unchanged"]) == (1, 1, 1)
    assert list(diff.added["request"]) == ['{"request": "Ho']
    assert diff.review.added[0].errors == ("AE007",)
    assert diff.columns_added == ()


def test_columns_added_and_dropped() -> None:
    diff = diff_eval_sets([row(team="x", old_note=1)], [row(team="x", guidelines=["be kind"], new_note=1, none=None)])
    assert diff.columns_added == ("guidelines", "new_note")
    assert diff.columns_dropped == ("old_note",)
    assert diff.fields == {"guidelines": 1, "new_note": 1, "old_note": 1}


def test_issues_gained_and_lost_by_row() -> None:
    old = [row("1", "A"), row("2", BROKEN), row("3", "C", response=""), row("gone", BROKEN)]
    new = [row("1", BROKEN), row("2", "B"), row("3", "C", response="", expected_facts="x"), row("came", {"a": 1})]
    diff = diff_eval_sets(old, new)
    lines = diff.issues.set_index("code")
    numbers = ["old", "new", "gained", "lost", "on_added", "on_removed"]
    assert lines.loc["AE206", numbers].tolist() == [2, 1, 1, 1, 0, 1]
    assert lines.loc["AE205", numbers].tolist() == [0, 1, 0, 0, 1, 0]
    assert lines.loc["AE303", numbers].tolist() == [0, 1, 1, 0, 0, 0]
    assert len(lines) == 3  # the blank response was there before
    assert list(diff.issues_gained[["row", "code"]].itertuples(index=False, name=None)) == [(0, "AE206"), (2, "AE303")]
    assert list(diff.issues_lost[["row", "code"]].itertuples(index=False, name=None)) == [(1, "AE206")]
    assert list(diff.became_invalid["request_id"]) == ["1", "3"]
    assert list(diff.became_valid["request_id"]) == ["2"]


def test_issues_of_the_data_set_as_a_whole_count_once_a_column() -> None:
    diff = diff_eval_sets([row(team="x", unit="y")], [row(team="x", floor="z", room="1")])
    assert list(diff.issues_gained["column"]) == ["floor", "room"]
    assert list(diff.issues_lost["column"]) == ["unit"]
    line = diff.issues.set_index("code").loc["AE103"]
    assert (line["old"], line["new"], line["gained"], line["lost"]) == (2, 3, 2, 1)
    (found,) = diff.review.issues
    assert [i.column for i in found.gained_examples] == ["floor", "room"]
    assert [i.column for i in found.lost_examples] == ["unit"]


def test_examples_of_issues_are_few_and_counts_exact() -> None:
    many = {f"column_{i}": "x" for i in range(EXAMPLES_KEPT + 5)}
    old = [row(str(i), f"Question {i}") for i in range(EXAMPLES_KEPT + 5)]
    diff = diff_eval_sets(old, [{**r, "expected_facts": "x", **many} for r in old])
    found = {line.code: line for line in diff.review.issues}
    assert found["AE303"].gained == found["AE103"].gained == EXAMPLES_KEPT + 5
    assert [i.row for i in found["AE303"].gained_examples] == list(range(EXAMPLES_KEPT))
    assert len(found["AE103"].gained_examples) == EXAMPLES_KEPT
    assert len(diff.issues_gained) == 2 * (EXAMPLES_KEPT + 5)


def test_findings_of_rules_that_compare_rows_count_too() -> None:
    diff = diff_eval_sets([row("1"), row("2", "Ho")], [row("1"), row("2", "Ho"), row("1", "Hm")])
    assert diff.issues.set_index("code").loc["AE901", ["new", "gained", "on_added"]].tolist() == [1, 0, 1]
    diff = diff_eval_sets([row(None, "a"), row(None, "b")], [row("1", "a"), row("1", "b")])
    assert list(diff.issues_gained["row"]) == [1]
    assert diff.counts["became_invalid"] == 1


def test_metric_support_gained_and_lost() -> None:
    old = [row("1", "A"), row("2", "B", expected_facts=["x"]), row("3", "C", expected_facts=["x"]), row("gone", "D")]
    new = [row("1", "A", expected_facts=["x"]), row("2", "B"), row("3", BROKEN, expected_facts=["x"]), row("came", "E")]
    diff = diff_eval_sets(old, new)
    line = diff.metrics.set_index("metric").loc["response/llm_judged/correctness/rating"]
    assert line.drop("system").tolist() == [2, 4, 1, 4, 1, 2, 0, 0]
    line = diff.metrics.set_index("metric").loc["response/llm_judged/safety/rating"]
    assert line.drop("system").tolist() == [4, 4, 3, 4, 0, 1, 1, 1]
    assert (diff.counts["gained_a_metric"], diff.counts["lost_a_metric"]) == (1, 2)
    (found,) = (m for m in diff.review.metrics if m.metric == "response/llm_judged/correctness/rating")
    assert [(e.row.request_id, e.why) for e in found.lost_examples] == [
        ("2", "lacks expected_response or expected_facts"),
        ("3", "is invalid now"),
    ]
    assert [(e.row.request_id, e.why) for e in found.gained_examples] == [
        ("1", "has expected_response or expected_facts")
    ]


def test_the_same_rows_with_other_outputs_differ_in_what_can_be_measured() -> None:
    old, new = [{"request": "Hi"}], [{"request": "Hi", "response": "Hello"}]
    assert (diff_eval_sets(old, new).old.outputs, diff_eval_sets(old, new).new.outputs) == ("generated", "provided")
    diff = diff_eval_sets(old, new, outputs="provided")
    assert diff.old.outputs == "provided"
    assert diff.counts["became_valid"] == 1


# ---------------------------------------------------------------------------------------------------------------------
# properties


REQUESTS = st.sampled_from(["Hi", "Ho", MESSAGES, BROKEN, "", None, {"query": "Ho"}])
ROWS = st.lists(
    st.builds(
        lambda **cells: {name: cell for name, cell in cells.items() if cell is not None},
        request_id=st.sampled_from(["a", "b", "c", None]),
        request=REQUESTS,
        response=st.sampled_from(["Hello", "Bye", None]),
        expected_facts=st.sampled_from([["x"], ["x", "y"], "x", [], None]),
        team=st.sampled_from(["x", 1, [1], None]),
    ),
    max_size=8,
)


@given(ROWS)
def test_a_data_set_is_the_same_as_itself(rows: list[Row]) -> None:
    diff = diff_eval_sets(rows, rows)
    assert diff.same, str(diff)
    assert diff.counts["moved"] == 0


@given(ROWS, st.randoms())
def test_the_order_of_rows_with_ids_of_their_own_does_not_matter(rows: list[Row], order: random.Random) -> None:
    rows = [{**r, "request_id": str(i)} for i, r in enumerate(rows)]
    shuffled = rows.copy()
    order.shuffle(shuffled)
    diff = diff_eval_sets(rows, shuffled, outputs="provided")
    assert (diff.counts["added"], diff.counts["removed"], diff.counts["changed"]) == (0, 0, 0)


@given(ROWS, ROWS)
def test_nothing_is_lost(old: list[Row], new: list[Row]) -> None:
    diff = diff_eval_sets(old, new)
    counts = diff.counts
    assert counts["old"] == len(old) == counts["removed"] + counts["matched"]
    assert counts["new"] == len(new) == counts["added"] + counts["matched"]
    assert counts["matched"] == counts["changed"] + counts["unchanged"]
    pairs = diff._pairs
    assert sorted([*pairs.old.tolist(), *diff.removed["row"]]) == list(range(len(old)))
    assert sorted([*pairs.new.tolist(), *diff.added["row"]]) == list(range(len(new)))
    for line in [*diff.review.issues, *diff.review.metrics]:
        assert line.old - line.lost - line.on_removed + line.gained + line.on_added == line.new
    # All metrics, as `Report.metrics` has them; the summary of rows of no known format shows none.
    assert {line.metric: line.new for line in diff.review.metrics} == {
        s.metric: s.supported for s in run_of(diff.new).coverage()
    }
    assert diff.new.invalid_count - diff.old.invalid_count == (
        counts["became_invalid"]
        - counts["became_valid"]
        + int((~diff.added["valid"]).sum())
        - int((~diff.removed["valid"]).sum())
    )


@given(ROWS, ROWS)
def test_values_tell_the_same_as_hashes(old: list[Row], new: list[Row]) -> None:
    """The other way to compare: the normalized rows of both reports, value by value."""
    diff = diff_eval_sets(old, new, outputs="generated")
    before, after = (list(r.iter_rows()) for r in (diff.old, diff.new))
    found = {(a, b, field) for a, b, field, *_ in changes(diff)}
    pairs = diff._pairs
    for a, b in zip(pairs.old.tolist(), pairs.new.tolist(), strict=True):
        for field in dict.fromkeys([*before[a], *after[b]]):
            ours, theirs = before[a].get(field), after[b].get(field)
            if ours is not None or theirs is not None:
                assert (ours != theirs) == ((a, b, field) in found)


@given(ROWS, ROWS)
def test_the_other_way_round_it_is_the_opposite(old: list[Row], new: list[Row]) -> None:
    there, back = diff_eval_sets(old, new), diff_eval_sets(new, old)
    swapped = {"old": "new", "added": "removed", "became_invalid": "became_valid", "gained_a_metric": "lost_a_metric"}
    swapped |= {b: a for a, b in swapped.items()}
    assert there.counts == {swapped.get(name, name): count for name, count in back.counts.items()}
    assert there.fields.items() == back.fields.items()
    assert (there.columns_added, there.columns_dropped) == (back.columns_dropped, back.columns_added)
    pd.testing.assert_frame_equal(there.issues_gained, back.issues_lost)
    pd.testing.assert_frame_equal(there.added, back.removed)
    one, other = there.changed.set_index(["old_row", "field"]), back.changed.set_index(["new_row", "field"])
    assert {k: v["old"] for k, v in one.iterrows()} == {k: v["new"] for k, v in other.iterrows()}


def test_every_kind_of_input_gives_the_same_diff(every_input: Callable[[list[Row]], Any]) -> None:
    new = [
        {**SAME[0], "team": "y"},
        {**SAME[1], "expected_facts": ["a"]},
        *SAME[3:],
        row("7", "new", retrieved_context=[{"doc_uri": "c"}]),
    ]
    expected, found = diff_eval_sets(SAME, new), diff_eval_sets(SAME, every_input(new))
    assert found.counts == expected.counts
    assert found.fields == expected.fields == {"expected_facts": 1, "team": 1}
    assert [r.asks for r in found.review.added] == ["new"]
    assert changes(found) == changes(expected)
    pd.testing.assert_frame_equal(found.metrics, expected.metrics)
    pd.testing.assert_frame_equal(found.issues, expected.issues)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_size_of_batches_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [row(str(i), f"Question {i}", team=i % 7) for i in range(100)]
    new = [{**r, "request": BROKEN} if i % 10 == 3 else r for i, r in enumerate(old) if i % 9]
    new[40] = {**new[40], "late_column": "x"}
    new.append(row("1", "repeated"))
    expected = diff_eval_sets(old, new)
    monkeypatch.setattr(source, "rows_per_batch", lambda _: size)
    found = diff_eval_sets(old, new)
    assert found.to_json() == expected.to_json()
    assert changes(found) == changes(expected)
    assert found.counts["became_invalid"] == 9


def test_files_of_several_batches(tmp_path: Path) -> None:
    """More rows than a batch has: what is shown is read from all over the file."""
    rows = [row(str(i), f"Question {i}") for i in range(20_000)]
    (tmp_path / "old").mkdir()
    new = [{**r, "response": "Bye"} if i in (5, 19_990) else r for i, r in enumerate(rows) if i != 9_000]
    diff = diff_eval_sets(as_jsonl(rows, tmp_path / "old"), as_csv(new, tmp_path))
    assert changes(diff) == [(5, 5, "response", "Hello", "Bye"), (19_990, 19_989, "response", "Hello", "Bye")]
    assert [p.request_id for p in diff.review.removed] == ["9000"]
    assert diff.counts["moved"] == 0


def test_nothing_is_read_behind_the_last_row_that_is_wanted() -> None:
    batches = iter([pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3, 4]}), pa.record_batch({"x": [5]})])
    found = rows_where(batches, np.array([False, True, False, False, False]))
    assert [b.to_pydict() for b in found] == [{"x": [2]}]
    assert [b.num_rows for b in batches] == [1]


def test_what_is_kept_of_a_row_is_a_few_bytes() -> None:
    old = [row(str(i), "x" * 1000) for i in range(300)]
    side = diff_eval_sets(old, old)._old
    assert {name: hashes.dtype for name, hashes in side.hashes.items()} == dict.fromkeys(
        ("request_id", "request", "response"), np.dtype(np.uint64)
    )
    assert side.findings.nbytes == 0


def test_inputs_are_not_changed() -> None:
    old, new = [row("1", MESSAGES, team={"a": [1]})], [row("1", {"query": "Ho"})]
    kept = json.dumps([old, new])
    diff_eval_sets(old, new).to_text()
    assert json.dumps([old, new]) == kept


def test_what_cannot_be_read_is_an_error() -> None:
    with pytest.raises(EvalSetError, match="no such file"):
        diff_eval_sets([row()], "no-such-file.jsonl")
    with pytest.raises(EvalSetError, match="format: expected one of"):
        diff_eval_sets([row()], [row()], format="excel")
    with pytest.raises(EvalSetError, match="system: expected one of"):
        diff_eval_sets([row()], [row()]).to_text(system="excel")


def test_columns_that_arrow_holds_in_other_ways() -> None:
    texts = pa.array(["x", "y", "x"])
    old = pa.table({"request": ["a", "b", "c"], "response": ["1", "2", "3"], "team": texts})
    for array in (texts.dictionary_encode(), texts.cast(pa.large_string()), texts.cast(pa.binary())):
        assert diff_eval_sets(old, old.set_column(2, "team", array)).same
    days = pa.array([0, 1, None], pa.date32())
    diff = diff_eval_sets(old.append_column("day", days), old.append_column("day", days.cast(pa.date64())))
    assert diff.fields.get("response") is None
    nested = pa.array([{"a": [1, None]}, None, {"a": []}])
    assert diff_eval_sets(old.append_column("n", nested), old.append_column("n", nested)).same


# ---------------------------------------------------------------------------------------------------------------------
# from what to what


def parts(old: Any, new: Any) -> dict[str, list[tuple[str, str]]]:
    found, more = edits("f", old, new)
    assert more == 0
    return {edit.path: [(part.side, part.text) for part in edit.parts] for edit in found}


def test_words_that_changed() -> None:
    assert parts("Within 30 days.", "Within 45 days.") == {
        "f": [("both", "Within "), ("old", "30 "), ("new", "45 "), ("both", "days.")]
    }


def test_what_is_the_same_is_cut_to_a_little_context() -> None:
    long = "word " * 100
    (edit,), _ = edits("f", f"{long}old {long}", f"{long}new {long}")
    assert edit.text("old") == f"…{long[-40:]}old {long[:40]}…"
    assert edit.text("new") == f"…{long[-40:]}new {long[:40]}…"


def test_words_that_happen_to_stay_belong_to_the_change() -> None:
    assert parts("Take one of the pills", "Take all of the tablets")["f"] == [
        ("both", "Take "),
        ("old", "one of the pills"),
        ("new", "all of the tablets"),
    ]


def test_texts_that_share_little_are_shown_whole() -> None:
    old, new = "I have no document about the canteen.", "Ask the reception: they have today's menu."
    assert parts(old, new) == {"f": [("old", old[:-1]), ("new", new[:-1]), ("both", ".")]}


def test_a_long_text_is_cut_and_quickly() -> None:
    rng = random.Random(0)
    old, new = (" ".join(str(rng.random()) for _ in range(100_000)) for _ in range(2))
    (edit,), _ = edits("f", old, new)
    assert len("".join(part.text for part in edit.parts)) < 1000


def test_objects_are_walked_to_what_differs() -> None:
    old = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}], "k": 1}
    new = {"messages": [{"role": "usr", "content": "Hi"}, {"role": "assistant", "content": "Yes"}], "l": None}
    assert parts(old, new) == {
        "f.messages[0].role": [("old", "user"), ("new", "usr")],
        "f.k": [("old", "1")],
        "f.l": [("new", "null")],
    }


def test_an_entry_that_came_first_does_not_change_the_others() -> None:
    assert parts(["a", "b", "c"], ["new", "a", "b"]) == {"f[0]": [("new", "new")], "f[2]": [("old", "c")]}


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (None, "x", [("new", "x")]),
        ("x", None, [("old", "x")]),
        ("", "x", [("old", '""'), ("new", "x")]),
        (" \n", "x", [("old", '" \\n"'), ("new", "x")]),
        (True, 1, [("old", "true"), ("new", "1")]),
        (["a"], "a", [("old", '["a"]'), ("new", "a")]),
        ({}, [], [("old", "{}"), ("new", "[]")]),
    ],
    ids=str,
)
def test_values_of_other_types(old: Any, new: Any, shown: list[tuple[str, str]]) -> None:
    assert parts(old, new) == {"f": shown}


def test_more_places_than_are_shown_are_counted() -> None:
    found, more = edits("f", dict.fromkeys("abcdefgh", 1), dict.fromkeys("abcdefgh", 2))
    assert (len(found), more) == (5, 3)


@pytest.mark.parametrize(("places", "words"), [("abcdef", " … and 1 more place"), ("abcdefg", " … and 2 more places")])
def test_a_changed_row_on_a_page_has_the_number_of_more_places(places: str, words: str) -> None:
    old, new = ([row("1", tags=dict.fromkeys(places, value))] for value in ("old", "new"))
    shown = re.sub(r"</?span[^>]*>", "", diff_eval_sets(old, new).to_html())
    assert words in shown
    assert f"{words}s" not in shown


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab ", max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, JSON)
def test_values_that_differ_have_an_edit_that_says_so(old: Any, new: Any) -> None:
    found, _ = edits("f", old, new)
    if canonical_json(json.dumps(old)) != canonical_json(json.dumps(new)):
        assert all(edit.text("old") != edit.text("new") for edit in found)


WORDS = st.lists(st.sampled_from(["one", "two ", "three, ", " ", "four."]), max_size=12).map("".join)


@given(WORDS.filter(str.strip), WORDS.filter(str.strip))
def test_the_parts_of_a_short_text_are_the_text(old: str, new: str) -> None:
    (edit,), _ = edits("f", old, new)
    if not any("…" in part.text for part in edit.parts):
        assert (edit.text("old"), edit.text("new")) == (old, new)


def test_an_edit_has_a_text_for_each_side() -> None:
    edit = Edit("f", (TextPart("both", "a "), TextPart("old", "b "), TextPart("both", "c")))
    assert (edit.text("old"), edit.text("new")) == ("a b c", "a c")
    assert Edit("f", (TextPart("new", "x"),)).text("old") is None


# ---------------------------------------------------------------------------------------------------------------------
# pictures


@pytest.fixture
def _at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


OLD, NEW = "sample_data/good.jsonl", "sample_data/edited_broken.jsonl"


@pytest.mark.usefixtures("_at_home")
def test_the_sample_diff_reads_like_a_review() -> None:
    compare(GOLDEN / "diff.txt", diff_eval_sets(OLD, NEW).to_text(width=100))


@pytest.mark.usefixtures("_at_home")
def test_json() -> None:
    document = json.loads(diff_eval_sets(OLD, NEW).to_json())
    document["tool"]["version"] = "VERSION"
    document["metrics"] = [m for m in document["metrics"] if m["system"] == "databricks"]
    compare(GOLDEN / "diff.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.usefixtures("_at_home")
def test_repr_is_one_line() -> None:
    assert repr(diff_eval_sets(OLD, OLD)) == "<Diff: 12 → 12 rows, the same>"
    assert repr(diff_eval_sets(OLD, NEW)) == (
        "<Diff: 12 → 12 rows, 1 added, 1 removed, 5 changed, 1 became invalid, 1 lost a metric>"
    )


HOSTILE = "\x1b[2J\u202e[red]evil[/red]\u2028\x9b"


@pytest.mark.parametrize("color", [False, True])
def test_hostile_cells_are_shown_and_not_sent(color: bool) -> None:
    old = [row("1" + HOSTILE, "A" + HOSTILE), row("gone" + HOSTILE, "B" + HOSTILE), row("2" + HOSTILE, "C")]
    new = [
        row("1" + HOSTILE, "A" + HOSTILE, response=HOSTILE, custom_expected={HOSTILE: HOSTILE}, **{HOSTILE: HOSTILE}),
        row("came" + HOSTILE, HOSTILE),
        row("2" + HOSTILE, {"messages": [{"role": HOSTILE, "content": "C"}]}),
    ]
    diff = diff_eval_sets(old, new)
    text = diff.to_text(color=color, width=200, system="all")
    if color:
        text = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", text)
    assert text.count("[red]evil[/red]") >= 8
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", diff.to_json()) is None
    assert json.loads(diff.to_json())["removed"][0]["request_id"] == "gone" + HOSTILE


def test_hostile_file_names_are_shown_and_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.jsonl"
    path.write_text(json.dumps(row()))
    assert "\x1b" not in diff_eval_sets(path, path).to_text(width=300)


def test_hostile_values_have_bounded_pictures() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    old, new = row(custom_expected={"a": deep}), row(custom_expected={"a": [deep]}, response="word " * 200_000)
    diff = diff_eval_sets([old], [new])
    assert set(diff.fields) == {"custom_expected", "response"}
    assert len(diff.to_text()) < 20_000
    assert len(diff.to_json()) < 200_000


def test_a_narrow_terminal_cuts_nothing_off() -> None:
    text = diff_eval_sets([row()], [row(expected_facts=["x" * 50])]).to_text(width=40)
    assert "".join(text.split()).count("x" * 50) == 1


# ---------------------------------------------------------------------------------------------------------------------
# command line


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["diff", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("_at_home")
def test_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, OLD, OLD)[0] == 0
    assert run(capsys, OLD, NEW)[0] == 1
    assert run(capsys, OLD, NEW, "--fail-on", "loss")[0] == 1
    assert run(capsys, OLD, NEW, "--fail-on", "never")[0] == 0
    (tmp_path / "more.jsonl").write_text((ROOT / OLD).read_text() + json.dumps(row("new", "One more")) + "\n")
    assert run(capsys, OLD, tmp_path / "more.jsonl", "--fail-on", "loss")[0] == 0
    assert run(capsys, OLD, tmp_path / "more.jsonl")[0] == 1


@pytest.mark.usefixtures("_at_home")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([OLD, "no-such-file.jsonl"], "no such file"),
        ([OLD, NEW, "--system", "excel"], "system: expected one of"),
        ([OLD, NEW, "--format", "excel"], "format: expected one of"),
    ],
)
def test_what_cannot_run_exits_2_with_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.usefixtures("_at_home")
def test_output_as_json_and_of_all_systems(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, OLD, NEW, "--output", "json")
    assert (json.loads(out)["rows"]["changed"], err) == (5, "")
    _, out, _ = run(capsys, OLD, NEW, "--system", "all")
    assert "(mlflow)" in out
    assert "(vertex)" in out


def test_one_side_may_be_another_kind_of_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    old, new = as_jsonl(SAME, tmp_path), as_csv(SAME, tmp_path)
    code, out, _ = run(capsys, old, new)
    assert code == 0
    assert " ".join(out.split()).count("6 rows, 5 valid") == 2
    assert as_list(SAME, tmp_path) == SAME


@pytest.mark.parametrize(
    ("good", "bad"), [("golden.csv", "golden_broken.csv"), ("evaluation.json", "evaluation_broken.json")]
)
def test_files_of_ces_are_compared_with_their_own_checks(samples: Path, good: str, bad: str) -> None:
    found = diff_eval_sets(samples / good, samples / bad)
    for side, name in ((found.old, good), (found.new, bad)):
        alone = validate_eval_set(samples / name)
        assert (side.row_count, side.valid_count, side.counts) == (alone.row_count, alone.valid_count, alone.counts)
    assert found.new.valid_count < found.new.row_count
    assert "Metric coverage" not in str(found)
    assert diff_eval_sets(samples / bad, samples / bad).same


def test_blanks_and_the_order_of_keys_in_an_original_are_no_change(tmp_path: Path) -> None:
    row = '{"inputs": {"question": "a", "k": 3}, "outputs": {"answer": "x", "y": []}, "expectations": {"t": 1, "u": 2}}'
    other = '{"inputs":{"k":3,"question":"a"},"outputs":{"y":[],"answer":"x"},"expectations":{"u":2,"t":1}}'
    for name, text in (("a", row), ("b", other), ("c", other.replace("3", "4"))):
        (tmp_path / f"{name}.jsonl").write_text(text + "\n")
    assert diff_eval_sets(tmp_path / "a.jsonl", tmp_path / "b.jsonl").same
    assert not diff_eval_sets(tmp_path / "a.jsonl", tmp_path / "c.jsonl").same


@pytest.mark.parametrize("identity", [{"a": 1}, ["x"], 7, True], ids=str)
def test_an_id_that_is_no_text_is_shown_as_its_json_text(identity: Any) -> None:
    found = diff_eval_sets([{"request": "a"}], [{"request": "a"}, {"request": "b", "request_id": identity}])
    assert [place.request_id for place in found.review.added] == [json.dumps(identity, separators=(",", ":"))]
    found.to_html()


def test_how_the_columns_of_a_table_were_named_is_no_difference() -> None:
    table, rows = [{"Question": "a?", "Expected answer": "b"}], [{"request": "a?", "expected_response": "b"}]
    named = diff_eval_sets(table, rows, columns={"Question": "request", "Expected answer": "expected_response"})
    assert named.same
    assert not diff_eval_sets(table, [{**rows[0], "expected_response": "c"}], columns="auto").same
