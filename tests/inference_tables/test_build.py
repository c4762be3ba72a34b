"""A logged table becomes an evaluation set, and every row of it is accounted for."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("duckdb")

from agent_eval_schema import (
    EvalSetBuild,
    EvalSetError,
    diff_eval_sets,
    eval_set_from_inference_table,
    validate_eval_set,
)
from agent_eval_schema.cells.hashing import seeded_hashes
from agent_eval_schema.inference_tables.build_file import build_file
from agent_eval_schema.inference_tables.make_plan import KEEPABLE
from agent_eval_schema.io import source as source_
from agent_eval_schema.schema import COLUMNS
from tests.helpers.logged_calls import (
    EVERYTHING,
    PAYLOAD,
    Row,
    at,
    batch,
    chat,
    chunk,
    feedback,
    logged,
    retrieval,
    table,
    trace,
)

BUILD = eval_set_from_inference_table


def ids(build: EvalSetBuild[pd.DataFrame]) -> list[str]:
    return build.rows["request_id"].tolist()


def reasons(build: EvalSetBuild[pd.DataFrame]) -> dict[str, str]:
    return dict(zip(build.excluded["request_id"], build.excluded["reason"], strict=True))


def row(build: EvalSetBuild[pd.DataFrame], request_id: str) -> dict[str, Any]:
    return build.rows.set_index("request_id").loc[request_id].to_dict()


def test_everything_is_a_row_or_excluded_with_one_reason() -> None:
    build = BUILD(table(EVERYTHING), until=at(60))
    assert ids(build) == ["good", "batch#0", "batch#1"]
    assert build.excluded[["request_id", "reason"]].to_numpy().tolist() == [
        ["good", "repeated"],
        ["odd", "batch_mismatch"],
        ["late", "outside_window"],
        ["failed", "status"],
        ["broken", "malformed"],
        ["large", "oversize"],
        ["silent", "no_request"],
        ["fb-good-ana-30-positive", "feedback"],
    ]
    summary = build.summary
    assert (summary.logged, summary.records, summary.rows) == (10, 11, 3)
    assert summary.funnel == "10 logged → 11 records → 10 calls → 4 readable → 3 distinct"


def test_rows_are_canonical_and_say_when_they_were_logged() -> None:
    build = BUILD(table([chat("a", "Why?", "Because.", minute=1)]))
    assert list(build.rows.columns) == [*COLUMNS, "request_time", "status_code", "served_entity"]
    found = row(build, "a")
    assert found["request"] == {"messages": [{"role": "user", "content": "Why?"}]}
    assert (found["response"], found["latency_seconds"], found["status_code"]) == ("Because.", 0.8, 200)
    assert (found["request_time"], found["served_entity"]) == (pd.Timestamp(at(1)), "agent-1")
    assert validate_eval_set(build.rows).ok


def test_what_is_excluded_keeps_its_payload_and_says_why() -> None:
    build = BUILD(table([logged("a", '{"messages": [', "{}"), chat("b", status_code=429, minute=3)]))
    first, second = build.excluded.to_dict("records")
    assert first["request"] == '{"messages": ['
    assert "byte" in first["message"]
    assert (second["time"], second["status_code"]) == (pd.Timestamp(at(3)), 429)


@pytest.mark.parametrize("kind", ["frame", "list", "jsonl", "parquet", "csv"])
def test_every_kind_of_table_gives_the_same_set(kind: str, tmp_path: Path) -> None:
    expected = BUILD(table(EVERYTHING))
    rows = [{**r, "request_time": r["request_time"].isoformat()} for r in EVERYTHING]
    path = tmp_path / f"t.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    elif kind == "parquet":
        pq.write_table(table(EVERYTHING), path)
    elif kind == "csv":
        pd.DataFrame(rows).assign(logging_error_codes=[json.dumps(r["logging_error_codes"]) for r in rows]).to_csv(
            path, index=False
        )
    data: Any = {"frame": table(EVERYTHING).to_pandas(), "list": rows}.get(kind, str(path))
    build = BUILD(data)
    pd.testing.assert_frame_equal(build.rows, expected.rows)
    assert reasons(build) == reasons(expected)


def test_the_table_is_not_changed() -> None:
    frame = table(EVERYTHING).to_pandas()
    before = frame.copy(deep=True)
    BUILD(frame, sample=2, redact="default", labels="feedback")
    pd.testing.assert_frame_equal(frame, before)


# ---------------------------------------------------------------------------------------------------------------------
# the funnel, for any table

KINDS: dict[str, Callable[[int, int], Row]] = {
    "chat": lambda i, n: chat(f"c{i % 7}", f"q{n % 3}", f"a{n}", minute=n),
    "batch": lambda i, n: batch(f"b{i}", ["x?"] * (n % 3), ["y"] * (n % 3), minute=n),
    "mismatch": lambda i, _: batch(f"m{i}", ["x?", "y?"], ["z"]),
    "failed": lambda i, n: chat(f"f{i}", status_code=400 + n),
    "broken": lambda i, n: logged(f"x{i}", "{" * n, "{}"),
    "anonymous": lambda _, n: chat(None, f"q{n}"),
    "feedback": lambda _, n: feedback(f"c{n % 9}", "positive" if n % 2 else "negative", minute=n),
    "blank": lambda i, _: chat(f"e{i}", " ", ""),
}
"""Rows of every kind, from their place in the table and a number."""

rows = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 12)), max_size=30).map(
    lambda made: [KINDS[kind](i, n) for i, (kind, n) in enumerate(made)]
)
options = st.fixed_dictionaries(
    {},
    optional={
        "sample": st.integers(1, 9) | st.sampled_from([0.2, 0.8]),
        "dedupe": st.sampled_from(["id", "question", None]),
        "stratify": st.sampled_from(["day", "served_entity", "failed", "thumbs", "requester", "status_code % 2"]),
        "labels": st.sampled_from(["feedback", None]),
        "since": st.just(at(2)),
        "until": st.just(at(8)),
        "where": st.just("status_code <> 405"),
        "include": st.sampled_from([(), ("status", "invalid")]),
        "redact": st.sampled_from([None, "default"]),
    },
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(rows, options)
def test_the_funnel_adds_up(logged_rows: list[Row], options: dict[str, Any]) -> None:
    build = BUILD(table(logged_rows), **options)
    summary = build.summary
    assert summary.logged == len(logged_rows)
    assert summary.records == len(build.rows) + len(build.excluded)
    assert summary.rows == len(build.rows) == summary.steps[-1].left
    assert Counter(build.excluded["reason"]) == summary.excluded
    left = summary.records
    for step in summary.steps:
        left -= sum(gone.rows for gone in step.removed)
        assert step.left == left
    # every logged row is in one of the two, under its id or as the records of its call
    found = {i.partition("#")[0] for i in [*ids(build), *build.excluded["request_id"]]}
    assert {r["databricks_request_id"] for r in logged_rows} - {None} <= found
    if not options.get("include") and options.get("dedupe", "id") is not None:  # else repeats stay, as was asked
        assert build.report.valid_count == len(build.rows)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, options, st.randoms(use_true_random=False))
def test_order_and_batches_change_nothing(
    monkeypatch: pytest.MonkeyPatch, logged_rows: list[Row], options: dict[str, Any], shuffled: random.Random
) -> None:
    def outcome(build: EvalSetBuild[pd.DataFrame]) -> Any:
        kept = sorted(zip(ids(build), map(str, build.rows["response"]), map(str, build.rows["tags"]), strict=True))
        aside = sorted(zip(*(map(str, build.excluded[n]) for n in ("request_id", "reason", "time")), strict=True))
        return kept, aside

    once = outcome(BUILD(table(logged_rows), **options))
    other = list(logged_rows)
    shuffled.shuffle(other)
    with monkeypatch.context() as context:
        context.setattr(source_, "MAX_BATCH_ROWS", 3)
        assert outcome(BUILD(table(other), **options)) == once


# ---------------------------------------------------------------------------------------------------------------------
# labels

ASKED = trace(
    "a", "Leave?", "80 days.", retrieval("s1", ("u1", "one"), ("u2", "two")), retrieval("s2", ("u3", "three"), start=5)
)


def test_an_edited_answer_is_what_was_expected() -> None:
    build = BUILD(table([chat("a", answer="80."), feedback("a", "negative", edit="18 weeks.")]))
    found = row(build, "a")
    assert found["expected_response"] == "18 weeks."
    assert found["tags"] == {"expected_response_source": "feedback: edited"}
    assert build.summary.labels == {"expected_response": 1}


def test_a_good_answer_is_copied_and_says_so() -> None:
    build = BUILD(table([chat("a", answer="80."), feedback("a", "positive")]))
    found = row(build, "a")
    assert found["expected_response"] == "80."
    assert found["tags"] == {"expected_response_source": "feedback: copied from the response"}
    assert build.report.counts["AE714"] == 1
    assert build.summary.labels == {"copied": 1, "expected_response": 1}
    assert "expected_response on 1 row, 1 of them copied from the response" in build.to_text()


def test_a_bad_answer_without_an_edit_expects_nothing() -> None:
    build = BUILD(table([chat("a"), feedback("a", "negative")]))
    assert row(build, "a")["expected_response"] is None


def test_the_last_click_counts() -> None:
    clicks = [
        feedback("a", "positive", minute=3),
        feedback("a", "negative", minute=5),
        feedback("a", "positive", minute=4),
    ]
    for said in (clicks, clicks[::-1]):
        assert row(BUILD(table([chat("a"), *said])), "a")["expected_response"] is None


def test_feedback_may_come_before_its_call_and_from_another_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_, "MAX_BATCH_ROWS", 2)
    rows = [feedback("a", edit="18 weeks."), *(chat(f"x{i}") for i in range(9)), chat("a")]
    assert row(BUILD(table(rows)), "a")["expected_response"] == "18 weeks."


def test_documents_are_matched_by_step_and_position() -> None:
    said = feedback("a", None, chunks=[chunk("s2", 0), chunk("s1", 1), chunk("s1", 0, "negative"), chunk("s1", 7)])
    build = BUILD(table([chat("a", "Leave?", "80 days.", trace=ASKED), said]))
    assert row(build, "a")["expected_retrieved_context"] == [
        {"doc_uri": "u2", "content": "two"},
        {"doc_uri": "u3", "content": "three"},
    ]
    assert build.report.counts["AE716"] == 1
    assert build.summary.labels == {"expected_retrieved_context": 1}


def test_labels_can_be_left_out() -> None:
    build = BUILD(table([chat("a"), feedback("a")]), labels=None)
    assert row(build, "a")["expected_response"] is None
    assert reasons(build) == {"fb-a-ana-30-positive": "feedback"}


def test_feedback_on_unknown_ids_is_counted() -> None:
    rows = [chat("a"), chat("b", status_code=500), *(feedback(i) for i in ("a", "b", "gone"))]
    summary = BUILD(table(rows)).summary
    assert summary.feedback == {"given": 3, "latest": 3, "attached": 1, "unknown": 1, "elsewhere": 1}
    assert summary.issues["AE717"] == 1
    assert "AE717" not in BUILD(table(rows), labels=None).summary.issues


def test_the_summary_has_each_kind_of_feedback_in_words() -> None:
    rows = [chat("a"), chat("b", status_code=500), *(feedback(i) for i in ("a", "b", "gone"))]
    later = feedback("a", edit="Later.", minute=90)
    text = BUILD(table([*rows, later])).summary.to_text()
    assert (
        "4 judgments: 1 on rows of the set, 1 on excluded rows, 1 on ids that the table does not have, "
        "1 replaced by a later one"
    ) in " ".join(text.split())


def test_feedback_that_cannot_be_read_is_told() -> None:
    odd = {"dataframe_records": [{"request_id": "a", "text_assessments": [17], "retrieval_assessments": []}]}
    build = BUILD(table([chat("a"), logged("fb", odd, "")]))
    assert build.excluded["message"].tolist() == [
        "0 judgments of other rows; omitted: request.dataframe_records[0].text_assessments[0]: "
        "expected an assessment (an object), got the number 17"
    ]


# ---------------------------------------------------------------------------------------------------------------------
# what traces say


def assessed(trace: Row, *assessments: Row) -> Row:
    return {**trace, "info": {**trace["info"], "assessments": list(assessments)}}


def expects(name: str, value: Any) -> Row:
    packed = {"serialization_format": "JSON_FORMAT", "value": json.dumps(value)}
    source = {"source_type": "HUMAN", "source_id": "hr-team"}
    return {"assessment_name": name, "source": source, "expectation": {"serialized_value": packed}, "valid": True}


def thumb(value: Any, name: str = "answer_correct", kind: str = "HUMAN", who: str = "ana", **more: Any) -> Row:
    source = {"source_type": kind, "source_id": who}
    return {"assessment_name": name, "source": source, "feedback": {"value": value}, **more}


@pytest.mark.parametrize(
    ("name", "value", "edit", "response", "facts", "code"),
    [
        ("expected_facts", ["16 weeks"], None, None, ["16 weeks"], "AE718"),
        ("expected_response", "16 weeks.", None, "16 weeks.", None, "AE718"),
        ("expected_facts", ["16 weeks"], "18 weeks.", "18 weeks.", None, "AE715"),
        ("expected_response", "16 weeks.", "18 weeks.", "18 weeks.", None, "AE715"),
        ("expected_facts", [], None, "80 days.", None, "AE714"),
        ("expected_facts", "no list", None, "80 days.", None, "AE714"),
        ("politeness", 3, None, "80 days.", None, "AE714"),
    ],
)
def test_a_row_has_one_truth(name: str, value: Any, edit: str | None, response: Any, facts: Any, code: str) -> None:
    """What the trace expects is better than a thumb, and an edited answer better than both."""
    rows = [chat("a", "Leave?", "80 days.", trace=assessed(ASKED, expects(name, value))), feedback("a", edit=edit)]
    build = BUILD(table(rows))
    found = row(build, "a")
    assert (found["expected_response"], found["expected_facts"]) == (response, facts)
    assert {"AE714", "AE715", "AE718"} & set(build.report.counts) == {code}
    assert build.summary.labels.get("expected_response", 0) == (code != "AE718")


def test_expected_documents_of_a_trace_are_better_than_rated_ones() -> None:
    stated = assessed(ASKED, expects("expected_retrieved_context", [{"doc_uri": "u9"}]))
    build = BUILD(table([chat("a", trace=stated), feedback("a", None, chunks=[chunk("s1", 0)])]))
    assert row(build, "a")["expected_retrieved_context"] == [{"doc_uri": "u9", "content": None}]
    assert build.report.counts["AE718"] == 1


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(
    ("assessments", "label"),
    [
        ([thumb(True)], "80 days."),
        ([thumb("yes", "user_feedback")], "80 days."),
        ([thumb(False)], None),
        ([thumb(True, kind="LLM_JUDGE")], None),
        ([thumb(True, valid=False)], None),
        ([thumb(True, "polite"), thumb(False)], None),  # the answer as a whole is what counts
        ([thumb(False, "polite"), thumb(True, "short")], None),  # nothing is said of the answer as a whole
        (
            [thumb(True, last_update_time="2025-11-03T10:00:00Z"), thumb(False, create_time_ms=1762160000000)],
            "80 days.",
        ),
        ([thumb(True), thumb(False, who="ben")], None),
        ([thumb(0.5)], None),
    ],
)
def test_people_judge_in_traces_too(assessments: list[Row], label: str | None, joined: bool) -> None:
    judged = assessed(ASKED, *assessments)
    rows = [chat("a", "Leave?", "80 days.", trace=None if joined else judged)]
    options: Row = {"traces": [{"trace": judged}]} if joined else {}
    assert row(BUILD(table(rows), **options), "a")["expected_response"] == label
    if label is not None:
        assert row(BUILD(table(rows), **options, labels=None), "a")["expected_response"] is None


def test_the_last_click_counts_wherever_it_was_made() -> None:
    judged = assessed(ASKED, thumb(True, last_update_time="2025-11-03T09:10:00Z"))
    for minute, label in ((5, "80 days."), (15, None)):
        rows = [chat("a", "Leave?", "80 days.", trace=judged), feedback("a", "negative", minute=minute)]
        assert row(BUILD(table(rows)), "a")["expected_response"] == label


def test_an_assessment_log_in_place_of_the_feedback() -> None:
    log = [
        {
            "request_id": "a",
            "step_id": None,
            "source": {"type": "human", "id": "ana"},
            "timestamp": "2025-11-03T10:00:00Z",
            "text_assessment": {"ratings": {"answer_correct": {"value": "negative"}}, "suggested_output": "18 weeks."},
            "retrieval_assessment": None,
        }
    ]
    build = BUILD(table([chat("a"), feedback("a", edit="not this")]), labels=log)
    assert row(build, "a")["expected_response"] == "18 weeks."
    with pytest.raises(EvalSetError, match="labels: expected an assessment-log table"):
        BUILD(table([chat("a")]), labels=[{"x": 1}])


# ---------------------------------------------------------------------------------------------------------------------
# traces from another table


def test_rows_without_a_trace_get_theirs_from_a_table_of_traces() -> None:
    own = trace("b", "Own?", "Own.")
    rows = [chat("a", "Leave?", "80 days."), chat("b", "Own?", "Own.", trace=own), chat("c")]
    other = {"trace": [json.dumps(ASKED), json.dumps(trace("b", "Other?", "Other."))]}
    build = BUILD(table(rows), traces=pd.DataFrame(other))
    assert [d["doc_uri"] for d in row(build, "a")["retrieved_context"]] == ["u3"]
    assert json.loads(row(build, "b")["trace"])["data"] == own["data"]
    assert row(build, "c")["trace"] is None
    assert build.summary.traces_joined == 1
    assert "Traces  joined to 1 row" in build.summary.to_text().replace("   ", "")


@pytest.mark.parametrize("lost", ["request", "response", "both"])
def test_a_row_too_large_to_be_logged_is_told_by_its_trace(lost: str) -> None:
    whole = chat("a", "Leave?", "80 days.")
    cells = {n: None for n in ("request", "response") if lost in (n, "both")}
    large = {**whole, **cells, "logging_error_codes": [f"MAX_{n.upper()}_SIZE_EXCEEDED" for n in cells]}
    unknown = {**large, "databricks_request_id": "b"}
    alone = BUILD(table([large]))
    assert alone.summary.excluded == {"oversize": 1}
    build = BUILD(table([large, unknown, chat("c")]), traces=[{"trace": ASKED}])
    told = row(build, "a")
    assert (told["request"], told["response"]) == (row(BUILD(table([whole])), "a")["request"], "80 days.")
    assert (build.summary.traces_joined, build.summary.excluded) == (1, {"invalid": 1})
    [why] = build.excluded["message"]
    assert why.startswith("AE2")
    assert "AE711" in why
    assert "SIZE_EXCEEDED" in why


def test_feedback_on_documents_of_a_joined_trace() -> None:
    rows = [chat("a", "Leave?", "80 days."), feedback("a", None, chunks=[chunk("s1", 0)])]
    build = BUILD(table(rows), traces=[{"trace": ASKED}])
    assert row(build, "a")["expected_retrieved_context"] == [{"doc_uri": "u1", "content": "one"}]


def test_a_table_without_traces_is_told() -> None:
    with pytest.raises(EvalSetError, match="traces: expected traces with an id"):
        BUILD(table([chat("a")]), traces=[{"x": 1}])


# ---------------------------------------------------------------------------------------------------------------------
# choosing rows


def test_a_sample_is_drawn_by_the_hash_of_the_ids() -> None:
    rows = [chat(f"id{i}", f"q{i}") for i in range(40)]
    names = np.array([r["databricks_request_id"] for r in rows])
    expected = set(names[np.argsort(seeded_hashes(names.tolist(), 5))[:9]])
    assert set(ids(BUILD(table(rows), sample=9, seed=5))) == expected
    assert set(ids(BUILD(table(rows[::-1]), sample=9, seed=5))) == expected
    assert set(ids(BUILD(table(rows), sample=9, seed=6))) != expected


@pytest.mark.parametrize(
    ("stratify", "strata"),
    [
        ("requester", {"ana": 6, "ben": 3}),
        ("served_entity", {"x": 6, "y": 3}),
        ("day", {"2025-11-03": 6, "2025-11-04": 3}),
        ("upper(requester) || status_code", {"ANA200": 6, "BEN200": 3}),
    ],
)
def test_strata(stratify: str, strata: dict[str, int]) -> None:
    rows = [
        chat(
            f"id{i}",
            minute=0 if i % 3 else 24 * 60,
            requester="ana" if i % 3 else "ben",
            served_entity_id="x" if i % 3 else "y",
        )
        for i in range(60)
    ]
    build = BUILD(table(rows), sample=9, stratify=stratify)
    assert {s.stratum: s.sampled for s in build.summary.strata} == strata
    assert {s.stratum: s.calls for s in build.summary.strata} == {k: 20 * n // 3 for k, n in strata.items()}
    assert build.summary.rows == 9


@pytest.mark.parametrize("option", ["stratify", "balance_by"])
def test_a_column_without_a_name_has_strata(option: str) -> None:
    """As a spreadsheet writes it."""
    rows = [chat(f"id{i}", f"{i}?") for i in range(12)]
    nameless = table(rows).append_column("", pa.array(["n", "m", "m"] * 4))
    assert {s.stratum for s in BUILD(nameless, sample=6, **{option: ""}).summary.strata} == {"n", "m"}


def test_one_row_a_question() -> None:
    rows = [chat("a", "Same?", minute=1), chat("b", "Same?", minute=2), chat("c", "Other?")]
    build = BUILD(table(rows), dedupe="question")
    assert (ids(build), reasons(build)) == (["b", "c"], {"a": "duplicate_question"})


@pytest.mark.parametrize("messages", [["a text"], [{"role": 5, "content": "Hi"}], 5])
def test_a_request_that_is_no_chat_asks_nothing_and_is_invalid(messages: Any) -> None:
    rows = [logged(name, {"messages": messages}, "Hello") for name in ("a", "b")]
    build = BUILD(table([*rows, chat("c")]), dedupe="question")
    assert (ids(build), reasons(build)) == (["c"], {"a": "invalid", "b": "invalid"})
    assert list(map(json.loads, build.excluded["request"])) == [{"messages": messages}] * 2


def test_a_request_that_cannot_be_read_is_redacted_where_it_is_excluded() -> None:
    row = logged("a", {"messages": ["ana@example.com"]}, "Hello")
    assert json.loads(BUILD(table([row]), redact="default").excluded["request"][0]) == {"messages": ["[EMAIL]"]}


def test_a_row_that_is_dropped_for_another_one_is_a_conflict_if_it_differs() -> None:
    """A copy with another answer, and a correction that is on a call which is not kept."""
    rows = [
        *(chat("a", "Same?", "1.", minute=1), chat("a", "Same?", "1.", minute=2), chat("a", "Same?", "2.", minute=3)),
        *(chat("b", "Same?", minute=4), chat("c", "Same?", minute=5), chat("d", "same", minute=6)),
        *(feedback("a", edit="Ten."), feedback("b", edit="Nine."), feedback("b", edit="Eight.", minute=31)),
        *(feedback("c", "negative"), feedback("d", edit="Ten.")),
    ]
    build = BUILD(table(rows), dedupe="question")
    assert build.summary.excluded == {"feedback": 5, "repeated": 2, "duplicate_question": 3}
    assert build.summary.conflicts == {"duplicate_question": 1, "repeated": 1}
    assert row(build, "d")["expected_response"] == "Ten."
    text = " ".join(str(build.summary).split())
    assert "1 duplicate_question with an edited answer that is not in the row that is kept" in text
    assert "1 repeated with another request or response than the row that is kept" in text
    assert json.loads(build.summary.to_json())["conflicts"] == build.summary.conflicts
    assert BUILD(table(rows)).summary.conflicts == {"repeated": 1}
    assert BUILD(table(rows), dedupe=None, include="invalid").summary.conflicts == {}


def test_a_correction_of_a_call_whose_question_the_dataset_has_is_a_conflict() -> None:
    first = BUILD(table([chat("a", "Same?", minute=1), feedback("a", edit="Ten.")])).rows
    rows = [chat("b", "Same?", minute=4), feedback("b", edit="Nine."), chat("a", "Same?", "other", minute=1)]
    for dedupe in ("question", "near"):
        summary = BUILD(table(rows), extend=first, dedupe=dedupe).summary  # type: ignore[arg-type]
        assert summary.excluded == {"feedback": 1, "in_existing": 1, "question_in_existing": 1}
        assert summary.conflicts == {"question_in_existing": 1}


def test_repeated_ids_stay_if_asked_and_are_told() -> None:
    rows = [chat("a", minute=1), chat("a", minute=2)]
    build = BUILD(table(rows), dedupe=None, include="invalid")
    assert ids(build) == ["a", "a"]
    assert build.report.counts["AE901"] == 1


@pytest.mark.parametrize(
    ("since", "until", "kept"),
    [
        ("2025-11-03", None, ["first", "noon", "next"]),
        (None, "2025-11-04", ["first", "noon"]),
        (date(2025, 11, 4), None, ["next"]),
        ("2025-11-03T12:00:00Z", "2025-11-04T00:00:00", ["noon"]),
        ("2025-11-03T13:00:00+01:00", None, ["noon", "next"]),
        (datetime(2025, 11, 3, 12, 0, 0, 1), None, ["next"]),
        (pd.Timestamp("2025-11-03 12:00", tz="UTC"), datetime(2025, 11, 4, tzinfo=timezone.utc), ["noon"]),
    ],
)
def test_the_window_is_half_open_and_in_utc(since: Any, until: Any, kept: list[str]) -> None:
    rows = [chat("first", minute=0), chat("noon", minute=180), chat("next", minute=15 * 60)]
    assert ids(BUILD(table(rows), since=since, until=until)) == kept


def test_where_chooses_calls_and_spares_their_feedback() -> None:
    rows = [chat("a", requester="ana"), chat("b", requester="ben"), chat("c", requester=None), feedback("a", edit="X")]
    build = BUILD(table(rows), where="requester = 'ana'")
    assert reasons(build) == {"b": "filtered", "c": "filtered", "fb-a-ana-30-positive": "feedback"}
    assert row(build, "a")["expected_response"] == "X"


def test_sql_sees_the_cells_of_a_json_file_as_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [{**chat(f"id{i}", requester="ana" if i else "ben"), "request_time": None} for i in range(3)]
    path.write_text("".join(json.dumps(r) + "\n" for r in lines))
    build = BUILD(str(path), where="requester = 'ana' AND status_code = 200 AND databricks_request_id LIKE '%2'")
    assert ids(build) == ["id2"]


def test_sql_over_batch_calls_counts_logged_rows() -> None:
    rows = [batch("x", ["a?", "b?", "c?"], ["A", "B", "C"]), chat("y", requester="ana"), batch("z", ["d?"], ["D"])]
    build = BUILD(table(rows), where="requester = 'svc'", sample=2, stratify="databricks_request_id || '!'")
    assert reasons(build)["y"] == "filtered"
    assert {s.stratum: s.calls for s in build.summary.strata} == {"x!": 3, "z!": 1}


@pytest.mark.parametrize(
    "sql", ["nothing > 1", "status_code >", "read_text('/etc/hostname') IS NULL", "SUM(status_code) > 1"]
)
def test_sql_that_cannot_be_computed_is_told(sql: str) -> None:
    with pytest.raises(EvalSetError, match="the SQL"):
        BUILD(table([chat("a"), chat("b")]), where=sql)


def test_sql_over_a_column_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(EvalSetError, match=r'"served_entity" not found .*; its columns are .*served_entity_id') as told:
        BUILD(table([chat("a")]), where="served_entity = 'x'")
    assert "__row__" not in str(told.value)


def test_times_in_a_csv_file_are_no_json(tmp_path: Path) -> None:
    build = BUILD(table([chat("a")]))
    csv, lines, parquet = (tmp_path / f"rows.{ending}" for ending in ("csv", "jsonl", "parquet"))
    for path in (csv, lines, parquet):
        build.write(path)
    assert pd.read_csv(csv)["request_time"].tolist() == [json.loads(lines.read_text())["request_time"]]
    assert diff_eval_sets(csv, parquet).changed.empty


def test_a_log_of_another_kind_with_a_mapping() -> None:
    rows = [{"id": "1", "body": {"input": {"messages": [{"role": "user", "content": "Hi"}]}}, "out": "Hello."}]
    build = BUILD(rows, columns={"body.input": "request", "out": "response", "id": "request_id"})
    assert (ids(build), build.rows["response"].tolist(), build.summary.format) == (["1"], ["Hello."], "mapped")


LOGS: dict[str, tuple[Row, list[str]]] = {
    "Bedrock, Anthropic's messages": (
        {
            "requestId": "1",
            "timestamp": "2025-11-03T09:00:00Z",
            "input": {"inputBodyJson": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi?"}]}]}},
            "output": {"outputBodyJson": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}},
        },
        {
            "input.inputBodyJson": "request",
            "output.outputBodyJson": "response",
            "requestId": "request_id",
            "timestamp": "time",
        },
    ),
    "Bedrock, Converse": (
        {
            "requestId": "1",
            "timestamp": "2025-11-03T09:00:00Z",
            "input": {"inputBodyJson": {"messages": [{"role": "user", "content": [{"text": "Hi?"}]}]}},
            "output": {"outputBodyJson": {"output": {"message": {"content": [{"text": "Hello."}]}}}},
        },
        {
            "input.inputBodyJson.messages.0.content.0.text": "request",
            "requestId": "request_id",
            "timestamp": "time",
            "output.outputBodyJson.output.message.content.0.text": "response",
        },
    ),
    "Vertex": (
        {
            "request_id": "1",
            "logging_time": "2025-11-03 09:00:00 UTC",
            "full_request": {"contents": [{"role": "user", "parts": [{"text": "Hi?"}]}]},
            "full_response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}]},
        },
        {
            "full_request.contents.0.parts.0.text": "request",
            "request_id": "request_id",
            "logging_time": "time",
            "full_response.candidates.0.content.parts.0.text": "response",
        },
    ),
    "SageMaker": (
        {
            "captureData": {
                "endpointInput": {"data": json.dumps({"messages": [{"role": "user", "content": "Hi?"}]})},
                "endpointOutput": {"data": json.dumps([{"generated_text": "Hello."}])},
            },
            "eventMetadata": {"eventId": "1", "inferenceTime": "2025-11-03T09:00:00Z"},
        },
        {
            "captureData.endpointInput.data": "request",
            "captureData.endpointOutput.data.0.generated_text": "response",
            "eventMetadata.eventId": "request_id",
            "eventMetadata.inferenceTime": "time",
        },
    ),
    "LiteLLM": (
        {
            "request_id": "1",
            "startTime": "2025-11-03 09:00:00",
            "messages": json.dumps([{"role": "user", "content": "Hi?"}]),
            "response": json.dumps({"choices": [{"message": {"content": "Hello."}}]}),
        },
        {"messages": "request", "response": "response", "request_id": "request_id", "startTime": "time"},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_of_others_with_a_mapping(name: str) -> None:
    logged_row, mapping = LOGS[name]
    build = BUILD([logged_row], columns=mapping)
    found = row(build, "1")
    said = found["request"]["messages"][-1]["content"]
    assert said in ("Hi?", [{"type": "text", "text": "Hi?"}])
    assert (found["response"], found["request_time"]) == ("Hello.", pd.Timestamp("2025-11-03 09:00", tz="UTC"))
    assert build.summary.issues == {}


def test_clocks_that_are_wrong() -> None:
    """A year that nanoseconds do not reach is a time like others, and told."""
    times = {"late": datetime(2999, 1, 1, tzinfo=timezone.utc), "early": datetime(1960, 1, 1, tzinfo=timezone.utc)}
    build = BUILD(table([*(chat(i, request_time=t) for i, t in times.items()), chat("never", request_time=None)]))
    assert row(build, "late")["request_time"].year == 2999
    assert row(build, "early")["request_time"].year == 1960
    assert build.rows["request_time"].isna().tolist() == [False, False, True]
    assert build.report.counts["AE704"] == 1


def test_lines_that_are_no_rows_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    good = {**chat("a"), "request_time": None}
    path.write_text("\n".join([json.dumps(good), '{"cut', "[1, 2]", '{"cut too', ""]))
    for options in ({}, {"since": "2025-01-01"}, {"show_values": False}):
        aside = BUILD(str(path), **options).excluded.query("reason == 'malformed'")
        assert aside["request"].tolist() == ['{"cut', "[1, 2]", '{"cut too']
        assert aside["request_id"].is_unique
        assert aside["message"].str.startswith("the line is not a row").all()
        assert ("byte" in aside["message"].iloc[0]) == options.get("show_values", True)


@pytest.mark.parametrize("kind", ["typed", "untyped", "pandas"])
def test_null_everywhere(kind: str) -> None:
    nothing: Any = pa.Table.from_pylist([{}, {}], schema=PAYLOAD)
    if kind == "untyped":
        nothing = pa.table({n: pa.nulls(2) for n in PAYLOAD.names})
    elif kind == "pandas":
        nothing = pd.DataFrame({n: [None, float("nan")] for n in PAYLOAD.names})
    build = BUILD(nothing, sample=2, stratify="day", dedupe="question", redact="default", where="requester IS NULL")
    assert build.summary.excluded == {"no_request": 2}
    assert len(set(build.excluded["request_id"])) == 1  # a hash of what they hold


# ---------------------------------------------------------------------------------------------------------------------
# options and environments


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sample": True}, "sample: expected a number of rows"),
        ({"sample": -3}, "sample: expected a number of rows"),
        ({"seed": "x"}, "seed: expected a whole number"),
        ({"since": "yesterday"}, "since: expected a date or time such as 2025-11-03"),
        ({"until": 5}, "until: expected a date or time"),
        ({"since": "2025-11-04", "until": "2025-11-03"}, "since must be before until"),
        ({"dedupe": "answer"}, "dedupe: expected one of id, question, near, None"),
        ({"stratify": "nothing"}, "stratify: the table has no column 'nothing'"),
        ({"redact": "no_module_of_that_name:f"}, "redact: cannot find no_module_of_that_name:f"),
        ({"redact": "json:nothing"}, "redact: cannot find json:nothing"),
        ({"redact": "strong"}, "redact: expected default, none or MODULE:FUNCTION"),
        ({"redact": 5}, "redact: expected default"),
        ({"include": "malformed"}, "include: expected one of"),
        ({"include": "duplicate_question"}, "include: .* repeated, invalid; got 'duplicate_question'"),
        ({"format": "other"}, "format: expected one of"),
        ({"columns": {"a": "requst"}}, "did you mean 'request'"),
        ({"columns": {"request": "request", "body": "request"}}, "expected one column for request; got request, body"),
        ({"columns": ["body=request"]}, "columns: expected a dict"),
        ({"columns": {"body.input": "request"}}, "columns: the table has no column for 'body.input'"),
        ({"engine": "spark", "jobs": 2}, "jobs: Spark's own settings"),
        ({"engine": "dask"}, "engine: expected one of embedded, spark"),
        ({"where": " "}, "where: expected an SQL expression"),
        ({"traces": "/no/such.parquet"}, "no such file"),
        ({"labels": "/no/such.parquet"}, "no such file"),
    ],
)
def test_wrong_options_are_told(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(EvalSetError, match=said):
        BUILD(table([chat("a")]), **wrong)


def test_a_table_of_no_known_family_is_told() -> None:
    with pytest.raises(EvalSetError, match="no known inference table"):
        BUILD(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", ""), ("a.csv", ""), ("a.csv", "request,response\n")])
def test_a_file_without_rows_is_told_as_such(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(EvalSetError, match="the table has no rows and therefore no columns"):
        BUILD(str(tmp_path / name))


def test_sql_that_names_no_column_is_told_which_there_are() -> None:
    with pytest.raises(EvalSetError, match=r"not found in FROM clause!; its columns are .*request") as told:
        BUILD(table([chat("a")]), where="nothing = 1")
    assert "__row__" not in str(told.value)


def test_an_evaluation_set_is_no_table_of_calls() -> None:
    with pytest.raises(EvalSetError, match="an evaluation dataset, by the columns expected_response: run"):
        BUILD(pd.DataFrame({"request": ["Hi"], "response": ["Hello"], "expected_response": ["Hello"]}))
    rows = BUILD(table([chat("a")])).rows
    with pytest.raises(EvalSetError, match="an evaluation dataset"):
        BUILD(rows)  # though it has a trace, an id and a time, as a frame of search_traces has
    carried = table([chat("a")]).append_column("expected_response", pa.array(["carried along"]))
    assert len(BUILD(carried).rows) == 1


def test_an_empty_table_gives_an_empty_set() -> None:
    build = BUILD(table([]))
    assert (len(build.rows), len(build.excluded), build.summary.funnel) == (0, 0, "0 logged → 0 rows")
    assert list(build.rows.columns)[:2] == ["request_id", "request"]


def test_without_duckdb_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(EvalSetError, match=r"pip install -U 'agent-eval-schema\[production\]'"):
        BUILD(table([chat("a")]))


def test_a_row_that_breaks_a_rule_is_excluded_with_it() -> None:
    build = BUILD(table([chat("a", " ", ""), chat("b")]))
    assert reasons(build) == {"a": "invalid"}
    assert "AE" in build.excluded["message"][0]
    kept = BUILD(table([chat("a", " ", ""), chat("b")]), include=("invalid",))
    assert (ids(kept), kept.report.invalid_count) == (["a", "b"], 1)


def test_failed_calls_can_stay() -> None:
    rows = [chat("a", answer="No.", status_code=500), chat("b")]
    build = BUILD(table(rows), include=("status",))
    assert ids(build) == ["a", "b"]
    assert row(build, "a")["failure"] is True


CUT = "data: " + json.dumps({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "80"}}]}) + "\n\n"

EXCLUDED: dict[str, tuple[Row, dict[str, Any]]] = {
    "outside_window": (chat("a", minute=90), {"until": at(60)}),
    "status": (chat("a", status_code=500), {}),
    "partial": (logged("a", {"messages": [{"role": "user", "content": "How many?"}]}, CUT), {}),
    "repeated": (chat("b", minute=9), {}),
    "invalid": (chat("a", " ", ""), {}),
}


@pytest.mark.parametrize("reason", KEEPABLE)
def test_whatever_may_be_kept_is_kept(reason: str) -> None:
    logged_row, options = EXCLUDED[reason]
    rows = table([chat("b"), logged_row])
    assert BUILD(rows, **options).summary.excluded == {reason: 1}
    kept = {reason, "invalid"} if reason == "repeated" else {reason}  # a repeated ID is an error of its row
    assert len(BUILD(rows, **options, include=kept).rows) == 2


def test_the_forms_of_the_summary() -> None:
    build = BUILD(table(EVERYTHING), sample=2, stratify="thumbs", redact="default")
    numbers = json.loads(build.to_json())
    assert (numbers["version"], numbers["logged"], numbers["excluded"]) == (1, 10, build.summary.excluded)
    assert numbers["funnel"] == build.summary.funnel in build.to_text()
    assert "<code>traces=...</code>" in build.to_html()
    for page in (build.to_html(), build.summary.to_html(), build._repr_html_()):
        assert build.summary.funnel in page
        assert page.count("<script") == (2 if page == build.to_html() else 0)  # the rows and ours


def test_hostile_names_are_only_shown(tmp_path: Path) -> None:
    path = tmp_path / "<u>\x1b[2J.parquet"
    pq.write_table(table([chat("a", served_entity_id="<i>\x1b[2J"), chat("b")]), path)
    build = BUILD(str(path), sample=1, stratify="served_entity")
    assert "\x1b" not in build.to_text()
    assert "<i>" not in build.to_html()
    assert "<u>" not in build.to_html()


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    build = BUILD(table(EVERYTHING))
    assert len(list(tmp_path.iterdir())) == 1
    assert len(build.rows)
    del build
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(EvalSetError):
        BUILD(table(EVERYTHING), where="nothing > 1")
    assert list(tmp_path.iterdir()) == []


def test_without_values_no_message_quotes_a_cell() -> None:
    rows = [logged("a", '{"messages": "SECRET"}', "{}"), logged("b", "SECRET{", "{}"), chat("c", "SECRET", "")]
    build = BUILD(table(rows), show_values=False)
    assert "SECRET" not in " ".join(build.excluded["message"])
    assert "SECRET" not in build.to_text() + build.report.to_text() + build.to_html()


def test_arrow_batches_stream() -> None:
    build = BUILD(table([chat(f"id{i}") for i in range(50)]))
    whole = pa.Table.from_batches(list(build.iter_batches()))
    assert whole.column("request_id").to_pylist() == ids(build)


@pytest.mark.parametrize("more", [{}, {"stratify": "served_entity"}, {"balance_by": "served_entity"}])
def test_a_sample_has_as_many_valid_rows_as_were_asked_for(more: dict[str, Any]) -> None:
    """Calls without a response, which are never valid, are excluded before it is drawn."""
    empty = (None, "", "{}", "null", '{"choices": []}')
    asked = {"messages": [{"role": "user", "content": "Hi?"}]}
    calls = [chat(f"c{i}", f"Question {i}?", served_entity_id=f"agent-{i % 3}") for i in range(53)]
    calls += [logged(f"s{i}", asked, empty[i % 5], served_entity_id=f"agent-{i % 3}") for i in range(7)]
    for sample in (20, 53):
        build = BUILD(table(calls), sample=sample, **more)
        assert len(build.rows) == sample
        assert build.report.ok
        assert build.summary.excluded.get("no_response") == 7
        assert "invalid" not in build.summary.excluded
    assert len(BUILD(table(calls), include=["invalid"]).rows) == 60


def test_a_record_of_a_batch_without_a_prediction_is_excluded() -> None:
    call = logged("b", {"dataframe_records": [{"query": "a?"}, {"query": "b?"}]}, {"predictions": ["A", None]})
    build = BUILD(table([call]), sample=1)
    assert build.rows["request_id"].tolist() == ["b#0"]
    [row] = build.excluded.to_dict("records")
    assert (row["request_id"], row["reason"]) == ("b#1", "no_response")
    assert row["message"] == "record 1: expected a response, got none"


@pytest.mark.parametrize("option", ["out", "excluded"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("rows.docx", "unknown file extension"),
        ("missing/rows.jsonl", "no such folder"),
        ("missing/rows", "no such folder"),
        ("folder", "there is something already"),
    ],
)
def test_an_output_that_cannot_be_written_is_reported_before_the_table_is_read(
    name: str, why: str, option: str, tmp_path: Path
) -> None:
    (tmp_path / "folder" / "in it").mkdir(parents=True)
    outputs: dict[str, Any] = {"out": str(tmp_path / "rows.jsonl"), option: str(tmp_path / name)}
    with pytest.raises(EvalSetError, match=why):
        build_file("no-such-table.jsonl", chosen={}, **outputs)
