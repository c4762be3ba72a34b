"""Queues, one row, its live rules, several reviewers: what a page is told."""

import html
import json
import os
import random
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalResult,
    EvalSetError,
    EvalTask,
    load_result,
    profile_eval_set,
    review_eval_set,
    score_trajectories,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.review import bundle, dataset
from agent_eval_schema.review.agreement import Agreement, agreement_text, alpha, matched
from agent_eval_schema.review.dataset import Reviewed, _last_questions
from agent_eval_schema.review.journal import Change, Journal
from agent_eval_schema.review.session import Session
from agent_eval_schema.runtime.progress import shown_on
from tests.conftest import SAMPLES
from tests.render.test_script import embedded

Row = dict[str, Any]

DOCS = [{"doc_uri": "a", "content": "A"}, {"doc_uri": "b", "content": "B"}]
ROWS: list[Row] = [
    {"request_id": "0", "request": "What?", "response": "x"},
    {"request_id": "1", "request": "Which documents?", "response": "x", "retrieved_context": DOCS},
    {"request_id": "2", "request": "Who?", "response": "x", "expected_facts": ["f"]},
    {"request_id": "3", "request": "Who?", "response": "x", "expected_facts": ["g"]},
    {"request_id": "4", "request": "What?", "response": "x"},
    {"request_id": "5", "request": {"messages": [{"role": "human", "content": "A"}]}, "response": "x"},
    {"request_id": "6", "request": {"messages": [{"role": "human", "content": "B"}]}, "response": "x"},
    {"request_id": "7", "request": {"messages": 3}, "response": "x"},
]


def session(rows: list[Row] | str = ROWS, by: str = "maria", others: tuple[Journal, ...] = (), **more: Any) -> Session:
    return Session(Reviewed(open_source(rows)), Journal(by), others, **more)


def queues(found: Session) -> dict[str, list[int]]:
    return {q["name"]: list(q["rows"]) for q in found.overview()["queues"]}


def test_the_rules_make_the_queues() -> None:
    found = queues(session())
    # documents can be expected too, so row 1 gains most; of a repeated question the second one gains nothing more
    assert found["truth"] == [1, 0, 4, 5, 6]
    assert found["errors"] == [7]
    assert found["fixes"] == [5, 6]
    assert found["conflicts"] == [2]
    assert found["duplicates"] == [0, 2]
    assert found["all"] == list(range(8))


@pytest.mark.parametrize("name", ["broken.jsonl", "broken_mlflow.jsonl", "ragas_broken.jsonl", "strands_broken.json"])
def test_the_page_of_a_report_names_the_queue_and_its_rows(name: str) -> None:
    page = validate_eval_set(str(SAMPLES / name)).to_html()
    command = r"<code>agent-eval-schema review \S+ --queue (\w+)</code>"
    found = re.search(rf"run {command} .*\(opens a page to decide about (\d+) rows?\)", page)
    assert found
    assert (found[1], int(found[2])) == ("errors", len(queues(session(str(SAMPLES / name)))["errors"]))


def test_the_page_of_valid_rows_leads_to_those_without_ground_truth(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.jsonl")
    write_eval_set([ROWS[0], ROWS[1], ROWS[2]], path)
    assert "(opens a page to give 2 rows ground truth)" in validate_eval_set(path).to_html()
    step = next(s for s in json.loads(profile_eval_set(path).to_json())["next_steps"] if "ground truth" in s["text"])
    assert step["text"] == "2 rows have no ground truth."
    assert step["command"] == f"agent-eval-schema review {path} --queue truth"
    steps = json.loads(profile_eval_set(ROWS[:2]).to_json())["next_steps"]
    assert 'review_eval_set(data, queue="truth")' in [s["command"] for s in steps]
    evaluations = profile_eval_set(str(SAMPLES / "golden.csv"))
    assert "--queue" not in json.dumps(json.loads(evaluations.to_json())["next_steps"])


def test_a_large_file_opens_with_its_progress_and_is_searched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        def __init__(self) -> None:
            self.shown: list[str | float | None] = []

        def show(self, text: str, share: float | None) -> None:
            self.shown += [text.partition(" rows")[0], share]

        def close(self, text: str) -> None:
            self.shown.append(text.partition(" rows")[0])

    screen = Screen()
    monkeypatch.setattr("agent_eval_schema.runtime.progress.PATIENCE", 0)
    with shown_on(lambda: screen):
        found = Session(Reviewed(open_source(ROWS)), Journal("maria"))
    assert screen.shown == ["100%, 8", 1.0, "8"] * 2  # the rules, then the fixes
    monkeypatch.setattr("agent_eval_schema.review.session.native_rows", None)  # no cell is read for a search
    assert found.search("WHICH doc") == [1]


def test_a_queue_keeps_its_rows_until_it_is_refreshed() -> None:
    work = session()
    work.apply([{"row": 1, "path": "status", "new": "flagged"}, {"row": 1, "path": "expected_facts", "new": ["f"]}])
    assert queues(work)["truth"] == [1, 0, 4, 5, 6]
    assert "flagged" not in queues(work)
    work.refresh()
    assert queues(work)["flagged"] == [1]


def test_two_sessions_of_a_reviewer_see_each_others_changes(tmp_path: Path) -> None:
    """Two servers, each with a browser of its own; the counts of both have all changes too."""
    path = str(tmp_path / "rows.jsonl.maria.review.jsonl")
    one, other = (Session(Reviewed(open_source(ROWS)), Journal("maria", path)) for _ in range(2))
    one.apply([{"row": 0, "path": "expected_facts", "new": ["f"]}])
    with other.up_to_date():
        assert other.detail(0)["state"] == {"expected_facts": ["f"]}
        assert other.progress() == one.progress()
    seen = other.apply([{"row": 1, "path": "expected_response", "new": "y"}])
    assert [event.seq for event in seen] == [2]
    with one.up_to_date():
        assert one.states == other.states
        assert one.progress() == other.progress()
        assert one.progress()["coverage"] != session().progress()["coverage"]


def test_a_row_with_everything_that_a_page_shows() -> None:
    found = session().detail(1)
    assert found["turns"] == [{"role": "user", "text": "Which documents?", "calls": [], "images": []}]
    assert found["answer"] == "x"
    assert [d["uri"] for d in found["documents"]] == ["a", "b"]
    assert found["truth"]["expected_facts"] == []
    assert {"request", "response", "retrieved_uri"} <= set(found["fields"])
    twin = session().detail(2)
    assert twin["conflicting"]
    assert [(g["n"], g["truth"]["expected_facts"]) for g in twin["group"]] == [(3, ["g"])]
    assert [i["code"] for i in session().detail(3)["issues"]] == ["AE902"]


def test_markdown_is_a_tree_of_elements_and_nothing_else() -> None:
    answer = "## Fees\n\n| a | b |\n|---|---|\n| **1** | `2` |\n\n"
    answer += "<img src=x onerror=alert(1)> [here](javascript:alert(2)) ![i](http://x/y.png)"
    answer += "\n\n```py\nf(<b>)\n```\n\n    g()"
    row = {"request_id": "0", "request": "What?", "response": answer}
    ((text, tree),) = session([row]).detail(0, with_markdown=True)["trees"]
    assert text == answer
    assert tree[0] == ["h2", ["Fees"]]
    head = ["thead", [["tr", [["th", ["a"]], ["th", ["b"]]]]]]
    body = ["tbody", [["tr", [["td", [["strong", ["1"]]]], ["td", [["code", ["2"]]]]]]]]
    assert tree[1] == ["table", [head, body]]
    assert tree[2] == ["p", ["<img src=x onerror=alert(1)> [here](javascript:alert(2)) i (http://x/y.png)"]]
    assert tree[3:] == [["pre", ["f(<b>)\n"]], ["pre", ["g()\n"]]]
    assert session().detail(1, with_markdown=True)["trees"] == []


def test_the_title_of_a_row_is_its_last_question() -> None:
    said = [("user", "Hello"), ("assistant", "Hi"), ("user", "And the fee?")]
    row = {"request": {"messages": [{"role": role, "content": text} for role, text in said]}, "response": "x"}
    assert session([row, ROWS[1]]).overview()["titles"] == ["And the fee?", "Which documents?"]


def test_images_of_a_message_are_shown_if_they_are_in_it() -> None:
    urls = ["data:image/png;base64,AAAA", "https://example.com/x.png", "data:image/svg+xml;base64,AAAA", "javascript:1"]
    content = [{"type": "text", "text": "Look"}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]
    row = {"request": {"messages": [{"role": "user", "content": content}]}, "response": "x"}
    assert session([row]).detail(0)["turns"][0]["images"] == urls[:1]


def test_each_queue_counts_what_it_means_by_done() -> None:
    work = session()
    for row, path, new in (
        (0, "status", "submitted"), (1, "expected_facts", ["f"]), (1, "status", "submitted"),
        (5, "fix:request", "reject"), (2, "choice", "row 2"), (7, "dropped", True),
    ):  # fmt: skip
        work.apply([{"row": row, "path": path, "new": new}])
    found = work.progress()
    assert {name: found["done"][name] for name in ("truth", "fixes", "conflicts", "errors")} == dict.fromkeys(
        ("truth", "fixes", "conflicts", "errors"), 1
    )
    assert found["empty"]["truth"] == 1


@pytest.mark.parametrize(
    ("cells", "wrong", "truth"),
    [
        ({"expected_facts": {"a": 1}}, {"expected_facts": '{"a":1}'}, {}),
        ({"expected_facts": ["f", 3]}, {"expected_facts": "3"}, {"expected_facts": ["f"]}),
        ({"expected_response": 5, "guidelines": ["g"]}, {"expected_response": "5"}, {"guidelines": ["g"]}),
        ({"guidelines": 5, "expected_facts": ["f"]}, {"guidelines": "5"}, {"expected_facts": ["f"]}),
        ({"expected_facts": ["f"], "tags": [1]}, {}, {"expected_facts": ["f"]}),
        ({"expected_response": {"a": "r"}}, {"expected_response": '{"a":"r"}'}, {}),
        ({"reference_trajectory": "search"}, {"reference_trajectory": "search"}, {}),
    ],
)
def test_a_wrong_value_is_in_the_field_it_belongs_to(cells: Row, wrong: Row, truth: Row) -> None:
    found = session([{"request": "What?", "response": "x", **cells}]).detail(0)
    assert found["wrong"] == wrong
    assert {label: value for label, value in found["truth"].items() if value} == truth
    issue = next(i for i in found["issues"] if i["severity"] == "error")
    before, marked, _ = issue["excerpt"]
    assert before in str(cells).replace("'", '"')
    assert marked in ('{"a":1}', "3", "5", "[1]", '{"a":"r"}', "search")


def test_a_wrong_value_below_a_column_is_found_too() -> None:
    expectations = {"expected_facts": {"a": 1}, "guidelines": ["g"]}
    row = {"inputs": {"question": "What?"}, "outputs": "x", "expectations": expectations}
    found = session([row]).detail(0)
    assert found["wrong"] == {"expected_facts": '{"a":1}'}
    assert found["truth"]["guidelines"] == ["g"]
    assert session().detail(1)["wrong"] == {}


def test_all_rows_that_ask_the_same_are_shown() -> None:
    rows = [{"request": "Who?", "response": "x", "expected_facts": [f"{i}"]} for i in range(16)]
    found = session(rows).detail(0)
    assert (len(found["group"]), found["group_rest"]) == (15, 0)


def test_steps_of_a_trace_are_shown() -> None:
    steps = session(str(SAMPLES / "search_traces.jsonl")).detail(0)["steps"]
    assert [(step[0], step[1], step[5]) for step in steps[:2]] == [  # as templates/row.js takes them
        ("helpdesk_followup", "AGENT", 0),
        ("search_documents", "RETRIEVER", 1),
    ]


def test_the_rules_say_live_what_a_label_does() -> None:
    both = session().check(0, {"expected_facts": ["f"], "expected_response": "r"})
    assert [(i["code"], i["severity"]) for i in both["issues"]] == [("AE301", "error")]
    assert not both["usable"]
    copied = session().check(0, {"expected_response": "x"})
    assert [i["code"] for i in copied["issues"]] == ["AE904"]
    assert [i["code"] for i in session().check(0, {"expected_facts": ["f", "x "]})["issues"]] == ["AE904"]
    good = session().check(0, {"expected_facts": ["f"]})
    assert good["issues"] == []
    assert {"expected_facts", "one_truth"} <= set(good["fields"])


def test_the_coverage_follows_the_labels_and_the_undoing() -> None:
    work = session()
    rows = {c["metric"]: c["rows"] for c in work.progress()["coverage"]}
    work.apply([{"row": 0, "path": "expected_facts", "new": ["f"]}])
    more = {c["metric"]: c["rows"] for c in work.progress()["coverage"]}
    name = "response/llm_judged/correctness/rating"
    assert (rows[name], more[name]) == (2, 3)
    work.undo()
    assert work.progress()["coverage"] == session().progress()["coverage"]


def test_the_interval_is_that_of_a_profile() -> None:
    rows = [{"request": f"Question {i}?", "response": f"{i}", "expected_facts": ["f"]} for i in range(40)]
    name = "response/llm_judged/correctness/rating"
    here = next(c for c in session(rows).progress()["coverage"] if c["metric"] == name)
    power = json.loads(profile_eval_set(rows).to_json())["power"]
    there = next(p for p in power if p["metric"] == name)
    assert here["half"] == pytest.approx(100 * there["half_width"], abs=0.06)


def test_the_interval_knows_sessions_as_a_profile_does() -> None:
    rows = [
        {"request": f"Question {i}?", "response": f"{i}", "expected_facts": ["f"], "session_id": f"s{i // 4}"}
        for i in range(40)
    ]
    name = "response/llm_judged/correctness/rating"
    halves = [c["half"] for c in session(rows).progress()["coverage"] if c["metric"] == name]
    there = next(p for p in json.loads(profile_eval_set(rows).to_json())["power"] if p["metric"] == name)
    assert halves == [pytest.approx(100 * there["half_width"], abs=0.06)]
    apart = [{k: v for k, v in row.items() if k != "session_id"} for row in rows]
    assert halves > [c["half"] for c in session(apart).progress()["coverage"] if c["metric"] == name]


def test_the_rows_that_narrow_the_interval_most_come_first() -> None:
    rows = [
        {"request": "Known?", "response": "a", "expected_facts": ["f"], "session_id": "one"},
        {"request": "Of a known session?", "response": "a", "session_id": "one"},
        {"request": "New?", "response": "a", "session_id": "two"},
        {"request": "Of the same?", "response": "a", "session_id": "two"},
        {"request": "Known?", "response": "b"},
        {"request": "Alone?", "response": "a"},
    ]
    assert next(q["rows"] for q in session(rows).overview()["queues"] if q["name"] == "truth") == [2, 5, 1, 3, 4]


def test_the_coverage_is_that_of_a_validation_of_the_labeled_rows() -> None:
    work = session()
    work.apply([{"row": i, "path": "expected_facts", "new": ["f"]} for i in (0, 1)])
    report = validate_eval_set([{**row, "expected_facts": ["f"]} if i < 2 else row for i, row in enumerate(ROWS)])
    metrics = report.metrics[report.metrics["system"] == "databricks"]
    expected = dict(zip(metrics["metric"], metrics["supported"].tolist(), strict=True))
    assert {c["metric"]: c["rows"] for c in work.progress()["coverage"]} == expected


def test_all_fixes_of_one_kind_are_one_step() -> None:
    work = session()
    kind = work.detail(5)["fixes"][0]["kind"]
    assert work.detail(5)["fixes"][0]["same"] == 2
    work.accept_kind(kind)
    assert [work.state(row) for row in (5, 6)] == [{"fix:request": "accept", "status": "submitted"}] * 2
    assert work.reviewed.valid.tolist() == [True] * 7 + [False]
    work.undo()
    assert work.states == {5: {}, 6: {}}


def test_what_cannot_be_set_is_an_error() -> None:
    with pytest.raises(EvalSetError, match="row 99"):
        session().apply([{"row": 99, "path": "note", "new": "x"}])
    with pytest.raises(EvalSetError, match="fix:response: expected a fix of the row"):
        session().apply([{"row": 5, "path": "fix:response", "new": "accept"}])
    with pytest.raises(EvalSetError, match="path: expected expected_facts, "):
        session().apply([{"row": 5, "path": "response", "new": "x"}])
    with pytest.raises(EvalSetError, match="documents: Expected `object"):
        session().apply([{"row": 5, "path": "documents", "new": ["x"]}])
    with pytest.raises(EvalSetError, match="--queue"):
        session().overview("nothing")


def test_the_search_is_in_all_cells() -> None:
    assert session().search("which DOC") == [1]
    assert session().search("  ") == []
    assert session().search("human") == [5, 6]


def test_guidelines_and_facts_of_other_rows_are_offered_those_of_most_rows_first() -> None:
    own = {"guidelines": ["Be kind"], "expected_facts": ["f0"]}
    rows = [{"request": f"{i}?", "response": "b", **cells} for i, cells in enumerate([own, {}, own])]
    work = session([*rows, {**rows[0], "guidelines": ["Be brief"], "expected_facts": ["f1"]}])
    assert [work.overview()[name] for name in ("guidelines", "facts")] == [["Be kind", "Be brief"], ["f0", "f1"]]
    alone = session([{**ROWS[0], **own}, ROWS[1]])
    assert [alone.overview()[name] for name in ("guidelines", "facts")] == [["Be kind"], ["f0"]]


def test_a_reviewer_signs_rows_that_were_submitted_or_labeled_and_none_that_was_flagged() -> None:
    work = session()
    work.apply([{"row": 0, "path": "status", "new": "submitted"}, {"row": 1, "path": "status", "new": "flagged"}])
    work.apply([{"row": 2, "path": "expected_facts", "new": ["f"]}, {"row": 4, "path": "note", "new": "n"}])
    assert work.reviewers() == {0: ["maria"], 2: ["maria"]}


def written(folder: Path, rows: list[Row]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_labels_of_a_row_that_changed_come_up_again(tmp_path: Path) -> None:
    journal = Journal("maria", str(tmp_path / "j"))
    first = Session(Reviewed(open_source(written(tmp_path, ROWS))), journal)
    first.apply([{"row": 0, "path": "expected_facts", "new": ["f"]}, {"row": 1, "path": "note", "new": "n"}])
    first.apply([{"row": 4, "path": "note", "new": "gone"}, {"row": 0, "path": "status", "new": "submitted"}])
    changed = [ROWS[2], {**ROWS[0], "response": "another", "tags": {"a": "b"}}, ROWS[1]]
    again = Session(Reviewed(open_source(written(tmp_path, changed))), Journal("maria", str(tmp_path / "j")))
    assert queues(again)["changed"] == [1]
    assert again.states == {1: {"expected_facts": ["f"]}, 2: {"note": "n"}}
    assert again.detail(1)["changed"] == [
        {"field": "response", "old": "x", "new": "another"}, {"field": "tags", "old": None, "new": '{"a":"b"}'},
    ]  # fmt: skip
    assert (again.detail(2)["changed"], first.detail(0)["changed"]) == (None, None)
    assert again.overview()["notes"] == ["1 rows of the journals are not in this file: their labels stay there."]
    again.apply([{"row": 1, "path": "expected_facts", "old": ["f"], "new": ["f", "g"]}])
    again.apply([{"row": 1, "path": "status", "new": "submitted"}])
    again.refresh()
    assert "changed" not in queues(again)
    assert again.states[1] == {"expected_facts": ["f", "g"], "status": "submitted"}
    later = Session(Reviewed(open_source(written(tmp_path, changed))), Journal("maria", str(tmp_path / "j")))
    assert "changed" not in queues(later)


def test_a_journal_keeps_the_start_and_the_hash_of_a_long_cell(tmp_path: Path) -> None:
    journal, long = Journal("maria", str(tmp_path / "j")), "a" * 50_000
    first = session([{**ROWS[0], "response": long}, ROWS[1]])
    first = Session(first.reviewed, journal)
    for note in ("a", "b"):
        first.apply([{"row": 0, "path": "note", "new": note, "old": None if note == "a" else "a"}])
    assert (tmp_path / "j").stat().st_size < 20_000
    again = Session(session([{**ROWS[0], "response": f"{long}b"}]).reviewed, Journal("maria", str(tmp_path / "j")))
    (change,) = again.detail(0)["changed"]
    assert [change["old"][9_999:10_012], change["new"][9_999:10_012]] == ["a… (50,000 ch", "a… (50,001 ch"]


def labeled(by: str, decisions: dict[int, dict[str, bool]]) -> Journal:
    journal = Journal(by)
    work = Session(Reviewed(open_source(ROWS)), journal)
    for row, documents in decisions.items():
        work.apply([{"row": row, "path": "documents", "new": documents}])
        work.apply([{"row": row, "path": "status", "new": "submitted"}])
    return journal


def test_the_labels_of_others_stay_hidden_until_a_row_is_submitted() -> None:
    work = session(others=(labeled("jonas", {1: {"a": True}}),))
    assert work.detail(1)["others"] == []
    work.apply([{"row": 1, "path": "documents", "new": {"a": False}}])
    assert work.detail(1)["others"] == []
    work.apply([{"row": 1, "path": "status", "new": "submitted"}])
    assert [(o["by"], o["state"]["documents"]) for o in work.detail(1)["others"]] == [("jonas", {"a": True})]


def test_everybody_gets_the_same_rows_of_an_overlap() -> None:
    first, second = (queues(session(by=by, overlap=3))["overlap"] for by in ("maria", "jonas"))
    assert first == second
    assert len(first) == 3


def test_agreement_and_what_is_to_be_decided_together() -> None:
    jonas = labeled("jonas", {0: {"a": True}, 1: {"a": True, "b": False}, 2: {"a": True}})
    work = Session(
        Reviewed(open_source(ROWS)), labeled("maria", {0: {"a": True}, 1: {"a": False, "b": False}}), (jonas,)
    )
    # units: 0a (1 1), 1a (0 1), 1b (0 0); α = 1 - (n - 1) · observed / expected pairs = 1 - 5 · 2 / (2 · 3 · 3)
    documents = next(found for found in work.agreement() if found.kind == "documents")
    assert documents == Agreement("documents", 2, 3, 2, pytest.approx(1 - 5 * 2 / 18, abs=1e-4))
    assert (
        agreement_text(documents)
        == "documents: the same in 67% of 3 documents of 2 rows that several submitted, α = 0.44"
    )
    assert queues(work)["together"] == [1]
    assert sorted(work.together()) == [0, 2]
    work.apply([{"row": 1, "path": "documents", "old": {"a": False, "b": False}, "new": {"a": True, "b": False}}])
    work.apply([{"row": 1, "path": "decided", "new": True}])
    work.refresh()
    assert "together" not in queues(work)
    assert work.together()[1]["documents"] == {"a": True, "b": False}


def test_alpha_of_the_example_of_its_author() -> None:
    # Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), B: nominal data, two observers
    one = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    other = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    data = [(by, str(i), str(v)) for by, values in (("a", one), ("b", other)) for i, v in enumerate(values)]
    assert alpha(data) == pytest.approx(0.095, abs=5e-4)
    assert alpha([("a", "1", "x"), ("b", "1", "x")]) is None


@pytest.mark.oracle
@pytest.mark.property
@given(st.lists(st.lists(st.sampled_from([None, 0, 1, 2]), min_size=2, max_size=4), min_size=1, max_size=30))
def test_alpha_is_that_of_the_reference_implementation(items: list[list[int | None]]) -> None:
    """For two to four reviewers, of whom some gave no value."""
    krippendorff = pytest.importorskip("krippendorff")
    pairable = [item for item in items if sum(value is not None for value in item) > 1]
    data = [(str(by), str(i), str(v)) for i, item in enumerate(pairable) for by, v in enumerate(item) if v is not None]
    assume(len({value for _, _, value in data}) > 1)
    counts = [[item.count(value) for value in range(3)] for item in pairable]
    expected = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    assert alpha(data) == pytest.approx(expected, abs=1e-4)


def test_agreement_is_over_all_rows_that_both_have_submitted() -> None:
    """Rows on which nobody marked anything count: random marks agree as chance does."""
    chance = random.Random(3)
    rows = [{**ROWS[1], "request_id": f"{i}", "request": f"{i}?"} for i in range(60)]
    journals, marks = [], []
    for by in ("ana", "bob"):
        work = session(rows, by)
        marks.append([[chance.random() < 0.2 for _ in "ab"] for _ in rows])
        for row, own in enumerate(marks[-1]):
            marked = {uri: True for uri, is_marked in zip("ab", own, strict=True) if is_marked}
            if marked:
                work.apply([{"row": row, "path": "documents", "new": marked}])
            work.apply([{"row": row, "path": "status", "new": "submitted"}])
        journals.append(work.journal)
    found = session(rows, "merged", tuple(journals)).agreement()
    assert [(part.kind, part.rows, part.items) for part in found] == [("documents", 60, 120)]
    data = [(by, f"{row} {i}", str(m)) for by, own in zip("ab", marks, strict=True)
            for row, pair in enumerate(own) for i, m in enumerate(pair)]  # fmt: skip
    assert found[0].alpha == alpha(data)
    assert abs(found[0].alpha or 1) < 0.2


def test_facts_are_matched_one_to_one() -> None:
    assert matched(["It lasts 16 weeks.", "It is paid", "x", "x"], ["it lasts  16 weeks", "X!", "It is not paid"]) == (
        2,
        2,
        1,
    )
    assert matched(["−5 °C", "C++", "1.5"], ["5 °C", "C", "15"]) == (0, 3, 3)
    journals = []
    for by, facts in (("ana", ["It lasts 16 weeks"]), ("bob", ["It lasts 16 weeks."])):
        work = session(by=by)
        work.apply(
            [{"row": 0, "path": "expected_facts", "new": facts}, {"row": 0, "path": "status", "new": "submitted"}]
        )
        if by == "bob":
            work.apply([{"row": 1, "path": "expected_facts", "new": ["a", "b"]}])
        work.apply([{"row": 1, "path": "status", "new": "submitted"}])
        journals.append(work.journal)
    merged = session(by="merged", others=tuple(journals))
    assert merged.agreement()[-1] == Agreement("expected_facts", 2, 3, 1, None, {"ana": 0, "bob": 2})
    assert agreement_text(merged.agreement()[-1]) == (
        "expected_facts: 1 the same, 0 only ana, 2 only bob (2 rows that several submitted)"
    )
    assert sorted(merged.together()) == [0]


def test_a_sample_for_audit_is_the_same_again() -> None:
    rows = [{"request": f"{i}", "response": "x", "expected_facts": ["f"]} for i in range(200)]
    first, again = (queues(session(rows))["audit"] for _ in range(2))
    assert first == again
    assert len(first) == 50
    assert np.median(first) == pytest.approx(100, abs=40)


def work_of_a_change(labels: int) -> int:
    """The calls that one change, its check, the counts and the labels of another reviewer take."""
    rows: list[Row] = [{"request_id": str(i), "request": f"question {i}", "response": "x"} for i in range(302)]
    reviewed = Reviewed(open_source(rows))
    journals = [Journal(by) for by in ("maria", "jonas")]
    for journal in journals:
        given = [("expected_response", "y"), ("status", "submitted")]
        journal.append([Change(reviewed.key(i), path, None, value) for i in range(labels) for path, value in given])
    work, calls = Session(reviewed, journals[0], journals[1:]), 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def change(row: int) -> None:
        work.apply(
            [{"row": row, "path": "expected_response", "new": "z"}, {"row": row, "path": "status", "new": "submitted"}]
        )
        work.progress(), work.check(row, work.state(row)), work.others_of(row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "states", None)  # which copies all
        change(300)  # what is made once
        sys.setprofile(count)
        change(301)
        sys.setprofile(None)
    again = Session(reviewed, journals[0], journals[1:])
    assert (work.progress(), work.state(301)) == (again.progress(), {"expected_response": "z", "status": "submitted"})
    assert work.progress()["done"]["all"] == labels + 2
    return calls


def test_a_change_costs_the_same_whatever_is_labeled() -> None:
    few, many = work_of_a_change(3), work_of_a_change(299)
    assert many < few + 100


@pytest.mark.parametrize("queue", ["", "all"])
def test_a_page_of_too_many_rows_is_rejected_before_the_work(
    queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page, checked = (
        written(tmp_path, [{**ROWS[0], "request_id": str(i)} for i in range(40)]),
        tmp_path / "p.html",
        [],
    )
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 4)
    monkeypatch.setattr(bundle, "MOST_ROWS", 10)
    monkeypatch.setattr(dataset, "_last_questions", lambda rows: checked.append(rows.num_rows) or _last_questions(rows))
    command = ["review", path, "--reviewer", "maria", "--bundle", str(page), *(["--queue", queue] if queue else [])]
    assert main(command) == 2
    assert "--bundle: expected at most 10 rows, got at least 12: name a queue (--queue)" in capsys.readouterr().err
    assert (checked, page.exists()) == ([4, 4], False)
    assert main([*command[:6], "--queue", "errors"]) == 0


# --- rows by their numbers, as pages of scores name them
def review_in(page: str) -> tuple[list[str], str]:
    """The words of the review's command on a page, and what the page says of it."""
    found = re.search(r"run <code>agent-eval-schema (review [^<]+)</code>[^(]*\((opens a page to review [^)]+)\)", page)
    return (shlex.split(html.unescape(found[1])), found[2]) if found else ([], "")


def scored(name: str, wrong: Iterable[int], size: int = 40) -> EvalResult:
    """The result of a file, whose rows `wrong` get no points."""
    rows = [{"Frage": f"{i}?", "response": "b" if i in wrong else "a", "expected_response": "a"} for i in range(size)]
    write_eval_set(rows, name)
    return EvalTask(name, ["exact_match"], columns={"Frage": "request"}).evaluate()


def test_the_page_of_scores_opens_the_rows_that_lack_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, words = review_in(scored("rows.jsonl", [1, 7, 3]).to_html(rows=1))
    assert words == "opens a page to review the 3 rows that failed or lost points, the worst first"
    assert command == ["review", "rows.jsonl", "--columns", "Frage=request", "--rows", "1,3,7"]
    assert main([*command, "--reviewer", "maria", "--bundle", "page.html"]) == 0
    overview = embedded(Path("page.html").read_text())["overview"]
    assert (overview["queue"], overview["queues"][0]["rows"]) == ("rows", [1, 3, 7])
    assert [title for title in overview["titles"] if title] == ["1?", "3?", "7?"]
    assert review_in(scored("rows.jsonl", ()).to_html()) == ([], "")


def test_a_comparison_and_a_history_open_the_rows_that_became_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = []
    for name, wrong in (("old", [0, 39]), ("mid", [0]), ("new", range(5, 40))):
        scored(f"{name}.jsonl", wrong).write(f"{name}.parquet")
        runs.append(load_result(f"{name}.parquet"))
    old, mid, new = runs
    command, words = review_in(old.compare(new).to_html())
    assert words == "opens a page to review 20 of the 34 rows that became worse, the worst first"
    assert command == [
        *("review", "new.jsonl", "--columns", "Frage=request", "--rows", ",".join(map(str, range(5, 25))))
    ]
    assert review_in(old.compare(mid).to_html()) == ([], "")
    command, words = review_in(old.compare(new, mid).to_html())
    assert (command, words) == ([], "")
    command, words = review_in(new.compare(old, mid, new, old).to_html())
    assert (command[1], command[-1], words) == (
        "old.jsonl",
        "0",
        "opens a page to review the 1 row that changed sides for the worse, the worst first",
    )


def test_what_a_review_cannot_open_is_not_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    in_memory = EvalTask([{"prompt": "a", "response": "b", "reference": "a"}], ["exact_match"]).evaluate()
    assert "agent-eval-schema review" not in in_memory.to_html()
    scored("rows.jsonl", [1]).write("scores.parquet")
    assert "agent-eval-schema review" in load_result("scores.parquet").to_html()
    later = os.path.getmtime("scores.parquet") + 1  # other rows may be at these positions now
    os.utime("rows.jsonl", (later, later))
    assert "agent-eval-schema review" not in load_result("scores.parquet").to_html()
    Path("rows.jsonl").unlink()
    assert "agent-eval-schema review" not in load_result("scores.parquet").to_html()
    evaluations = score_trajectories(str(SAMPLES / "golden.csv"))
    assert "agent-eval-schema review" not in evaluations.to_html()
    table = pd.DataFrame({"a": [1, 2], "tone/score": [0.5, 1.0]})
    table.to_json("unknown.jsonl", orient="records", lines=True)
    assert "agent-eval-schema review" not in load_result("unknown.jsonl").to_html()


def test_rows_that_were_named_are_the_queue_that_opens() -> None:
    reviewed = Reviewed(open_source(ROWS))
    found = Session(reviewed, Journal("maria"), rows=[5, 2, 5])
    assert (found.overview()["queue"], queues(found)["rows"]) == ("rows", [5, 2])
    assert "rows" not in queues(session())
    with pytest.raises(EvalSetError, match=r"rows: row 8: expected a row from 0 to 7"):
        Session(reviewed, Journal("maria"), rows=[8])
    with pytest.raises(EvalSetError, match=r"rows: expected row numbers; got '3'"):
        review_eval_set(ROWS, rows="3,4")  # type: ignore[arg-type]
