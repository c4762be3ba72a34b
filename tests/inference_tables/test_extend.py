"""A dataset grows: its rows stay, calls that it does not have are added, and later feedback updates its labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("duckdb")

from agent_eval_schema import EvalSetBuild, EvalSetError, eval_set_from_inference_table, profile_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.inference_tables.finish.finish import CONTENT_HASH
from tests.helpers.logged_calls import Row, at, batch, chat, chunk, feedback, logged, retrieval, table, trace

BUILD = eval_set_from_inference_table
LOGGED = "sample_data/inference_table.jsonl"
TAG = "expected_response_source"


def ids(build: EvalSetBuild[pd.DataFrame]) -> list[str]:
    return build.rows["request_id"].tolist()


def reasons(build: EvalSetBuild[pd.DataFrame]) -> dict[str, str]:
    return dict(zip(build.excluded["request_id"], build.excluded["reason"], strict=True))


def row(build: EvalSetBuild[pd.DataFrame], request_id: str) -> dict[str, Any]:
    return build.rows.set_index("request_id").loc[request_id].to_dict()


ASKED = [chat(f"id-{n}", f"How do I book flight number {n} to Zurich on the first of May?", minute=n) for n in range(6)]


# ---------------------------------------------------------------------------------------------------------------------
# which calls are added
def test_a_call_that_the_dataset_has_is_not_added_again() -> None:
    first = BUILD(table(ASKED[:3]))
    build = BUILD(table(ASKED), extend=first.rows)
    assert ids(build) == ["id-0", "id-1", "id-2", "id-3", "id-4", "id-5"]
    assert reasons(build) == dict.fromkeys(["id-0", "id-1", "id-2"], "in_existing")
    summary = build.summary
    assert (summary.records, summary.rows, summary.existing) == (6, 3, {"rows": 3, "updated": 0})
    assert summary.funnel == "6 logged → 3 new"
    assert build.report.row_count == 6


def test_a_delivery_again_is_repeated_and_the_first_is_in_the_dataset() -> None:
    build = BUILD(table([*ASKED[:1], *ASKED[:1]]), extend=BUILD(table(ASKED[:1])).rows)
    assert build.summary.excluded == {"repeated": 1, "in_existing": 1}


@pytest.mark.parametrize(
    ("dedupe", "found"),
    [
        ("id", {}),
        ("question", {"again": "question_in_existing", "older": "duplicate_question"}),
        (
            "near",
            {"again": "question_in_existing", "older": "duplicate_question", "typo": "near_in_existing"}
            | {"near": "near_duplicate"},
        ),
    ],
)
def test_what_dedupe_compares_is_compared_with_the_dataset_too(dedupe: str, found: dict[str, str]) -> None:
    asked = "How can I reset the password of my work laptop when I am at home?"
    other = "Which documents do I need for a visa to Japan if I travel for work?"
    calls = [
        chat("again", asked, minute=9),
        chat("older", asked, minute=8),
        chat("typo", asked.replace("laptop", "Laptop, please,").replace("?", "")),
        chat("new", other, minute=5),
        chat("near", other.replace("?", " please"), minute=4),
    ]
    build = BUILD(table(calls), extend=BUILD(table([chat("a", asked)])).rows, dedupe=dedupe)
    assert reasons(build) == found
    assert set(ids(build)) == {"a", *(r["databricks_request_id"] for r in calls)} - set(found)


def test_near_duplicates_are_those_of_a_profile() -> None:
    """One mechanism: the profile of all calls finds as many distinct questions as the build keeps."""
    words = [f"word{i}" for i in range(20)]
    calls = [
        chat(f"c{i}", " ".join([*words[i % 4 : i % 4 + 9], f"end{i % 3}", f"part{i // 20}"]), minute=i)
        for i in range(40)
    ]
    everything = BUILD(table(calls)).rows
    for threshold in (0.5, 0.9):
        kept = BUILD(table(calls), dedupe="near", near=threshold)
        assert kept.summary.rows == profile_eval_set(everything, near=threshold).counts["distinct"] < 40


def test_a_question_that_was_asked_of_another_document_is_another_question() -> None:
    asked = {"messages": [{"role": "user", "content": "Summarize this contract for me in three sentences"}]}
    calls = [logged(f"c{n}", {**asked, "document": f"{n}.pdf"}, {"choices": []}) for n in (1, 2)]
    assert "near_duplicate" not in BUILD(table(calls), dedupe="near").summary.excluded


def test_a_redacted_question_is_recognized_by_its_id_and_the_report_says_so() -> None:
    calls = [chat("a", "Write to ann@example.com"), chat("b", "Write to ann@example.com", minute=1)]
    first = BUILD(table(calls[:1]), redact="default").rows
    build = BUILD(table(calls), extend=first, redact="default", dedupe="question")
    assert reasons(build) == {"a": "in_existing"}
    (note,) = build.summary.notes
    assert note.endswith(
        "a call whose question is redacted in the dataset that is extended is recognized by its ID only."
    )
    for form in (build.to_text(width=300), build.to_json(), build.to_html()):
        assert note in form
    assert BUILD(table(calls), extend=first, redact="default").summary.notes == ()
    assert BUILD(table(calls), redact="default", dedupe="question").summary.notes == ()


# ---------------------------------------------------------------------------------------------------------------------
# rows stay as they are
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "frame"])
def test_the_rows_of_the_dataset_stay(kind: str, tmp_path: Path) -> None:
    first = BUILD(LOGGED, sample=5)
    path = tmp_path / f"first.{kind}"
    if kind != "frame":
        first.write(path)
    build = BUILD(LOGGED, sample=9, extend=first.rows if kind == "frame" else str(path))
    pd.testing.assert_frame_equal(build.rows[:5], first.rows)
    assert set(ids(build)) == set(ids(BUILD(LOGGED, sample=9)))
    if kind == "jsonl":  # to the byte
        build.write(tmp_path / "second.jsonl")
        assert (tmp_path / "second.jsonl").read_bytes().startswith(path.read_bytes())


def test_columns_of_somebody_else_stay(tmp_path: Path) -> None:
    first = tmp_path / "first.jsonl"
    BUILD(table(ASKED[:2])).write(first)
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    lines[1]["reviewer"] = {"name": "Ann", "done": [True]}
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))
    build = BUILD(table(ASKED[:3]), extend=str(first))
    build.write(tmp_path / "second.jsonl")
    written = [json.loads(line) for line in (tmp_path / "second.jsonl").read_text().splitlines()]
    assert [r.get("reviewer") for r in written] == [None, {"name": "Ann", "done": [True]}, None]
    build.write(tmp_path / "second.parquet")
    assert BUILD(table(ASKED), extend=str(tmp_path / "second.parquet")).rows["reviewer"].notna().sum() == 1


def test_a_dataset_that_was_written_by_hand_can_grow() -> None:
    own = [{"request": "Where is my order?", "response": "Sent.", "expected_response": "On its way."}]
    build = BUILD(table([chat("a", "Where is my order?"), chat("b", "Who are you?")]), extend=own, dedupe="question")
    assert (ids(build), reasons(build)) == ([None, "b"], {"a": "question_in_existing"})


def test_a_column_with_the_name_of_an_internal_one_stays() -> None:
    own = [{"request": "Hi", "response": "Hello", "team": "docs", CONTENT_HASH: 7}]
    rows = BUILD(table(ASKED[:1]), extend=own).rows
    assert (rows["team"].iloc[0], rows[CONTENT_HASH].iloc[0]) == ("docs", 7)


def test_two_steps_give_what_one_gives() -> None:
    once = BUILD(LOGGED, dedupe="question", sample=11)
    twice = BUILD(LOGGED, dedupe="question", sample=11, extend=BUILD(LOGGED, dedupe="question", sample=4).rows)
    assert set(ids(once)) == set(ids(twice))


# ---------------------------------------------------------------------------------------------------------------------
# samples
DAYS = [
    *(chat(f"a{n}", f"a {n}?", minute=n) for n in range(8)),
    *(chat(f"b{n}", f"b {n}?", minute=24 * 60 + n) for n in range(4)),
    *(chat(f"c{n}", f"c {n}?", minute=48 * 60 + n) for n in range(2)),
]


def days(build: EvalSetBuild[pd.DataFrame]) -> dict[str, int]:
    return Counter(name[0] for name in ids(build))


def test_equally_many_rows_of_each_value() -> None:
    assert days(BUILD(table(DAYS), balance_by="day", sample=6)) == {"a": 2, "b": 2, "c": 2}
    assert days(BUILD(table(DAYS), balance_by="day", sample=10)) == {"a": 4, "b": 4, "c": 2}
    assert days(BUILD(table(DAYS), balance_by="day", sample=99)) == {"a": 8, "b": 4, "c": 2}


def test_a_balanced_sample_holds_the_smaller_one() -> None:
    drawn = [set(ids(BUILD(table(DAYS), balance_by="day", sample=size))) for size in (1, 4, 7, 10, 14)]
    assert all(small < large for small, large in pairwise(drawn))


def test_what_a_dataset_has_counts() -> None:
    """Three rows of the first day are there: the others catch up."""
    first = BUILD(table(DAYS[:8]), sample=3)
    assert days(BUILD(table(DAYS), extend=first.rows, balance_by="day", sample=7)) == {"a": 3, "b": 2, "c": 2}
    assert days(BUILD(table(DAYS), extend=first.rows, stratify="day", sample=7)) == {"a": 4, "b": 2, "c": 1}
    assert days(BUILD(table(DAYS), extend=first.rows, sample=3)) == {"a": 3}
    assert days(BUILD(table(DAYS), extend=first.rows, stratify="day", sample=2)) == {"a": 3}


def test_strata_of_rows_whose_calls_are_gone() -> None:
    """The table no longer has the calls of the first day; their rows say when they were."""
    first = BUILD(table(DAYS[:8]), sample=3)
    assert days(BUILD(table(DAYS[8:]), extend=first.rows, balance_by="day", sample=7)) == {"a": 3, "b": 2, "c": 2}


KINDS: dict[str, Callable[[int], Row]] = {
    "chat": lambda n: chat(f"c{n}", f"q{n % 5}", f"a{n}", minute=n),
    "batch": lambda n: batch(f"b{n}", ["x?"] * (n % 3), ["y"] * (n % 3), minute=n),
    "feedback": lambda n: feedback(f"c{n}", "positive" if n % 2 else "negative", minute=n),
    "failed": lambda n: chat(f"c{n}", status_code=400),
}
rows = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 12)), max_size=16).map(
    lambda made: [KINDS[kind](n) for kind, n in made]
)
options = st.fixed_dictionaries(
    {"dedupe": st.sampled_from(["id", "question", "near"])},
    optional={"sample": st.integers(1, 12), "stratify": st.sampled_from(["day", "thumbs", "status_code % 2"])},
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(rows, rows, options)
def test_every_call_is_a_row_or_excluded_and_rows_stay(before: list[Row], after: list[Row], chosen: Any) -> None:
    first = BUILD(table(before), dedupe=chosen["dedupe"])
    build = BUILD(table([*before, *after]), extend=first.rows, **chosen)
    summary, held = build.summary, len(first.rows)
    assert summary.existing["rows"] == held
    assert summary.records == summary.rows + len(build.excluded)
    assert len(build.rows) == summary.rows + held
    assert Counter(build.excluded["reason"]) == summary.excluded
    assert ids(build)[:held] == ids(first)
    assert len(set(ids(build))) == len(build.rows)
    labels = ["expected_response", "expected_retrieved_context", "tags"]
    pd.testing.assert_frame_equal(build.rows[:held].drop(columns=labels), first.rows.drop(columns=labels))
    if "sample" in chosen:
        assert len(build.rows) <= max(chosen["sample"], held)


# ---------------------------------------------------------------------------------------------------------------------
# labels
RETRIEVED = trace("a", "Leave?", "80 days.", retrieval("s1", ("u1", "one"), ("u2", "two")))
CALL = chat("a", "Leave?", "80 days.", trace=RETRIEVED)
GOOD, BAD, EDIT = feedback("a"), feedback("a", "negative", minute=40), feedback("a", edit="18 weeks.", minute=40)


@pytest.mark.parametrize(
    ("before", "later", "expected", "source", "counted"),
    [
        ([], [GOOD], "80 days.", "copied from the response", "expected_response"),
        ([], [EDIT], "18 weeks.", "edited", "expected_response"),
        ([GOOD], [EDIT], "18 weeks.", "edited", "expected_response"),
        ([GOOD], [BAD], None, None, "withdrawn"),
        ([GOOD], [GOOD], "80 days.", "copied from the response", None),
        ([EDIT], [GOOD], "18 weeks.", "edited", None),
        ([EDIT], [BAD], "18 weeks.", "edited", None),
        ([EDIT], [feedback("a", edit="16 weeks.", minute=50)], "16 weeks.", "edited", "expected_response"),
    ],
)
@pytest.mark.parametrize("call_is_there", [True, False])
def test_later_feedback_updates_a_label(
    before: list[Row], later: list[Row], expected: Any, source: Any, counted: Any, call_is_there: bool
) -> None:
    first = BUILD(table([CALL, *before]))
    build = BUILD(table([*([CALL] if call_is_there else []), *later]), extend=first.rows)
    found = row(build, "a")
    assert found["expected_response"] == expected
    assert (found["tags"] or {}).get(TAG) == (source and f"feedback: {source}")
    changes = [] if counted is None else [("a", "expected_response", row(first, "a")["expected_response"], expected)]
    assert [tuple(r) for r in build.updates.to_numpy().tolist()] == changes
    assert build.summary.existing == {"rows": 1, "updated": len(changes), **({counted: 1} if counted else {})}


def test_ground_truth_of_somebody_stays_and_that_is_reported() -> None:
    first = BUILD(table([CALL])).rows
    first.at[0, "expected_response"] = "16 weeks, says HR."
    build = BUILD(table([EDIT]), extend=first)
    assert row(build, "a")["expected_response"] == "16 weeks, says HR."
    assert (build.report.counts["AE718"], len(build.updates)) == (1, 0)


def test_a_copied_label_that_somebody_edited_is_their_own() -> None:
    first = BUILD(table([CALL, GOOD])).rows
    first.at[0, "expected_response"] = "16 weeks, says HR."
    assert row(BUILD(table([BAD]), extend=first), "a")["expected_response"] == "16 weeks, says HR."


def test_documents_that_are_rated_later_are_added() -> None:
    first = BUILD(table([CALL, feedback("a", None, chunks=[chunk("s1", 1)])]))
    build = BUILD(table([feedback("a", None, chunks=[chunk("s1", 0)], minute=40)]), extend=first.rows)
    assert [d["doc_uri"] for d in row(build, "a")["expected_retrieved_context"]] == ["u2", "u1"]
    (change,) = build.updates.to_dict("records")
    assert change["column"] == "expected_retrieved_context"
    assert [d["doc_uri"] for d in json.loads(change["after"])] == ["u2", "u1"]
    stated = first.rows.copy()
    stated.at[0, "expected_retrieved_context"] = [{"doc_uri": "of-hr", "content": None}]
    build = BUILD(table([feedback("a", None, chunks=[chunk("s1", 0)])]), extend=stated)
    assert [d["doc_uri"] for d in row(build, "a")["expected_retrieved_context"]] == ["of-hr"]
    assert build.report.counts["AE718"] == 1


def test_labels_none_updates_nothing() -> None:
    assert len(BUILD(table([EDIT]), extend=BUILD(table([CALL])).rows, labels=None).updates) == 0


def test_a_new_label_is_redacted() -> None:
    edit = feedback("a", edit="Ask ann@example.org.")
    build = BUILD(table([CALL, edit]), extend=BUILD(table([CALL])).rows, redact="default")
    assert row(build, "a")["expected_response"] == "Ask [EMAIL]."


# ---------------------------------------------------------------------------------------------------------------------
# what cannot be extended
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"extend": "sample_data/ragas.jsonl"}, "extend: expected an evaluation dataset with the canonical columns"),
        ({"extend": [{"request": 3, "response": "x"}]}, "extend: row 0 is invalid: AE"),
        (
            {"extend": [{"request": "x", "response": "y", "request_time": "noon"}]},
            "extend: request_time: expected times such as",
        ),
        ({"extend": [{"request": "x"}], "dedupe": None}, "extend: needs dedupe"),
        ({"extend": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"balance_by": "day"}, "balance_by: needs a sample that is a number of rows"),
        ({"balance_by": "day", "sample": 0.5}, "balance_by: needs a sample that is a number of rows"),
        ({"balance_by": "day", "stratify": "day", "sample": 5}, "balance_by: expected no stratify"),
        ({"balance_by": "nothing", "sample": 5}, "balance_by: the table has no column 'nothing'"),
        ({"dedupe": "near", "near": 0}, "near: expected a similarity above 0, at most 1, got 0"),
        ({"dedupe": "near", "near": "much"}, "near: expected a similarity"),
    ],
)
def test_what_cannot_be_built_is_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(EvalSetError, match=said):
        BUILD(table(ASKED), **given)


def test_invalid_rows_can_be_kept() -> None:
    rows = [{"request_id": "x", "request": 3, "response": "y"}]
    assert ids(BUILD(table(ASKED[:1]), extend=rows, include=["invalid"])) == ["x", "id-0"]


# ---------------------------------------------------------------------------------------------------------------------
# files
def test_the_manifest_keeps_the_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(tmp_path / f"{n}.jsonl") for n in range(3)]
    assert main(["from-inference-table", LOGGED, names[0], "--sample", "3", "-q"]) == 0
    for n in (1, 2):
        more = ["--extend", names[n - 1], "--dedupe", "near", "--near", "0.8", "--sample", str(3 + 3 * n)]
        assert main(["from-inference-table", LOGGED, names[n], *more]) == 0
    said = capsys.readouterr()
    assert "Extends   6 rows; 9 with the new ones" in said.out
    assert "9 rows written to" in said.err
    last = json.loads(Path(names[2] + ".manifest.json").read_text())
    assert [build["output"] for build in last["extends"]] == names[:2]
    assert [build["summary"]["rows"] for build in last["extends"]] == [3, 3]
    assert all("extends" not in build for build in last["extends"])
    assert f"--extend {names[1]}" in last["command"]
    assert {Path(i["path"]).name for i in last["inputs"]} == {"inference_table.jsonl", "1.jsonl"}


def test_a_dataset_without_a_manifest_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "more.jsonl")
    assert main(["from-inference-table", LOGGED, out, "--extend", "sample_data/good.jsonl", "-q"]) == 0
    assert json.loads(Path(out + ".manifest.json").read_text())["extends"] == [{"output": "sample_data/good.jsonl"}]
    assert main(["from-inference-table", LOGGED, out, "--extend", out]) == 2
    assert "--extend" in capsys.readouterr().err


@pytest.mark.process
def test_workers_build_the_same(tmp_path: Path) -> None:
    first = tmp_path / "first.jsonl"
    BUILD(LOGGED, sample=4).write(first)
    once = BUILD(LOGGED, extend=str(first), dedupe="near", since=at(-9e6))
    twice = BUILD(LOGGED, extend=str(first), dedupe="near", since=at(-9e6), jobs=2)
    pd.testing.assert_frame_equal(once.rows, twice.rows)
