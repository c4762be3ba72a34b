"""The profile of a dataset: every number by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

from agent_eval_schema import EvalSetError, EvalTask, Profile, profile_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.metrics.intervals import t_quantile
from agent_eval_schema.metrics.power import rows_for_difference, rows_for_rate_difference, smallest_rate_difference
from agent_eval_schema.profile import coverage
from agent_eval_schema.profile import options as tokens
from tests.conftest import Row

CORRECTNESS = "response/llm_judged/correctness/rating"
RECALL = "retrieval/ground_truth/document_recall"

LEAVE = "How many days of parental leave do I get this year?"

QUESTIONS = [
    "Where do I find the canteen?",
    "Who pays for my desk at home?",
    "When is the office closed in winter?",
    "Which laptop can I choose as a developer?",
]


DIFFERENT = [
    {"request": " ".join(f"{word}{i}" for word in ("alpha", "beta", "gamma", "delta")), "response": "An answer."}
    | {"expected_response": f"truth {i}"}
    for i in range(20)
]
"""Twenty questions without a word in common."""


def row(question: str, truth: str | None = None, **more: Any) -> Row:
    return {"request": question, "response": "An answer.", **({"expected_response": truth} if truth else {}), **more}


def line(profile: Profile, metric: str) -> Any:
    return profile.metrics.set_index("metric").loc[metric]


# ---------------------------------------------------------------------------------------------------------------------
# size and power
def test_size_and_power_by_hand() -> None:
    profile = profile_eval_set(DIFFERENT)
    found = line(profile, CORRECTNESS)
    assert (found["rows"], found["distinct"], found["design_effect"], found["effective_rows"]) == (20, 20, 1.0, 20.0)
    z = 1.959964
    assert found["half_width"] == pytest.approx(z / (1 + z**2 / 20) * math.sqrt(1 / 80 + z**2 / 1600))  # Wilson
    assert found["paired"] == pytest.approx(smallest_rate_difference(0.5, 20, 0.5))
    assert (found["rows_for_5"], found["rows_for_3"], found["rows_for_1"]) == (821, 2248, 19824)
    assert not found["measured"]


def test_few_units_have_no_interval_and_no_difference() -> None:
    four = line(profile_eval_set(DIFFERENT[:4]), CORRECTNESS)
    assert four["note"] == "no interval: 4 independent units, at least 5 are needed"
    five = line(profile_eval_set(DIFFERENT[:5]), CORRECTNESS)
    assert five["half_width"] > 0
    assert math.isnan(five["paired"])
    (text,) = (t for t in profile_eval_set(DIFFERENT[:5]).to_text().splitlines() if t.split()[:1] == ["correctness"])
    assert text.split()[4] == "none"


def test_a_template_is_named_as_the_cause() -> None:
    """Questions that differ in one name are near duplicates; the note names them and the option."""
    words = ["Anna", "Bert", "Carl", "Dora", "Emil", "Fritz", "Gerd", "Hans", "Ida", "Jana"]
    text = "When will the parcel that I sent last week to my good friend {} arrive at the post office in town?"
    rows = [row(text.format(word), "t") for word in words]
    assert line(profile_eval_set(rows), CORRECTNESS)["note"] == (
        "no interval: 1 independent unit, at least 5 are needed (10 rows ask 1 different question; near=1 counts near "
        "duplicates apart)"
    )
    assert line(profile_eval_set(rows, near=1), CORRECTNESS)["distinct"] == 10


def test_scales_with_steps_are_in_their_steps() -> None:
    rows = [row(q["request"], "t", retrieved_context=[{"doc_uri": "a", "content": "x"}]) for q in DIFFERENT]
    metrics = profile_eval_set(rows, system="azure").metrics.set_index("metric")
    relevance = metrics.loc["relevance"]
    assert (relevance["unit"], relevance["scale"], relevance["mean"], relevance["deviation"]) == ("steps", (1, 5), 3, 2)
    assert relevance["half_width"] == pytest.approx(t_quantile(0.975, 19) * 2 / math.sqrt(20))
    assert metrics.loc["qa", "note"] == "no interval without past results: the scale of the scores is unknown"
    assert metrics.loc["task_completion", "unit"] == "points"
    assert "relevance (1 to 5)" in profile_eval_set(rows, system="azure").to_text()
    past = pd.DataFrame({"relevance/score": [4, 5, 4, 5] * 5})
    measured = profile_eval_set(rows, system="azure", past=past).metrics.set_index("metric").loc["relevance"]
    assert measured["half_width"] == pytest.approx(t_quantile(0.975, 19) * past.std().item() / math.sqrt(20))


def test_repeated_questions_count_once() -> None:
    profile = profile_eval_set([row(QUESTIONS[i % 2], f"truth {i % 2}") for i in range(8)])
    found = line(profile, CORRECTNESS)
    assert (found["rows"], found["distinct"], found["effective_rows"]) == (8, 2, 2.0)


def test_a_session_is_a_cluster() -> None:
    rows = [row(q, "t", session_id="a" if i < 3 else f"s{i}") for i, q in enumerate(QUESTIONS)]
    found = line(profile_eval_set(rows), CORRECTNESS)
    # sizes 3 and 1: a row is in a cluster of (9 + 1) / 4 = 2.5 rows on average
    assert found["design_effect"] == pytest.approx(1 + 1.5 * 0.2)
    assert found["effective_rows"] == pytest.approx(4 / 1.3)


def test_an_expected_document_is_a_cluster() -> None:
    documents = [{"doc_uri": "a"}]
    rows = [row(q, expected_retrieved_context=documents, retrieved_context=documents) for q in QUESTIONS]
    found = line(profile_eval_set(rows), RECALL)
    assert found["effective_rows"] == pytest.approx(4 / (1 + 3 * 0.2))
    assert profile_eval_set(rows).summary.assumptions.clusters == "expected document"


def test_a_rate_of_past_results() -> None:
    rows = [row(f"{q} {i}", "t") for i in range(3) for q in QUESTIONS]
    past = pd.DataFrame({CORRECTNESS: ["yes"] * 9 + ["no"] * 3})
    found = line(profile_eval_set(rows, past=past), CORRECTNESS)
    assert found["measured"]
    assert found["mean"] == 0.75
    assert found["deviation"] == pytest.approx(math.sqrt((11 / 16) * (5 / 16)))  # two of each added to 9 of 12


def test_a_mean_of_past_results_in_its_own_unit() -> None:
    rows = [{**r, "latency_seconds": 1.0} for r in DIFFERENT]
    assert line(profile_eval_set(rows), "agent/latency_seconds")["note"].endswith("the spread of the values is unknown")
    past = pd.DataFrame({"agent/latency_seconds": [1.0, 2.0, 3.0, 4.0]})
    found = line(profile_eval_set(rows, past=past), "agent/latency_seconds")
    deviation = math.sqrt(5 / 3)
    assert (found["unit"], found["mean"], found["deviation"]) == ("value", 2.5, pytest.approx(deviation))
    assert found["half_width"] == pytest.approx(t_quantile(0.975, 19) * deviation / math.sqrt(20))
    assert found["rows_for_5"] == rows_for_difference(deviation, 0.05 * 2.5, 0.5)


def test_the_correlation_of_two_past_results() -> None:
    rows = [row(f"{q} {i}", "t", request_id=f"{i}-{j}") for i in range(2) for j, q in enumerate(QUESTIONS)]
    one = pd.DataFrame({CORRECTNESS: [1, 1, 1, 1, 0, 0, 0, 0], "request_id": [r["request_id"] for r in rows]})
    other = pd.DataFrame({CORRECTNESS: [0, 1, 1, 1, 1, 0, 0, 0], "request_id": one["request_id"]})[::-1]
    found = line(profile_eval_set(rows, past=[one, other], near=1), CORRECTNESS)
    # both have a mean of 1/2 and differ on two of eight rows: r = 1 - 2 · 2 / 8 = 1/2
    assert found["rows_for_5"] == rows_for_rate_difference(0.5, 0.05, 0.5)


def test_the_design_effect_of_differences_is_their_own() -> None:
    """Scores that are alike in a session, of which the differences are not."""
    rows = [{**r, "session_id": f"s{i // 2}"} for i, r in enumerate(DIFFERENT)]
    one = pd.DataFrame({CORRECTNESS: [float(i // 2 % 2) for i in range(20)]})
    other = one.copy()
    other.loc[::4, CORRECTNESS] = 1 - other.loc[::4, CORRECTNESS]
    found = line(profile_eval_set(rows, past=[one, other]), CORRECTNESS)
    assert found["design_effect"] == 2.0
    r = float(np.corrcoef(one[CORRECTNESS], other[CORRECTNESS])[0, 1])
    assert found["paired"] == pytest.approx(smallest_rate_difference(0.5, 20, r))


def test_the_correlation_within_sessions_is_measured() -> None:
    rows = [row(f"{q} {i}", "t", session_id=str(i)) for i in range(2) for q in QUESTIONS[:2]]
    past = pd.DataFrame({CORRECTNESS: [1, 1, 0, 0]})
    found = line(profile_eval_set(rows, past=past), CORRECTNESS)
    assert found["design_effect"] == 2.0  # clusters of two, in which all is alike


def test_past_results_of_an_evaluation_and_of_its_file(tmp_path: Path) -> None:
    call = [{"tool_name": "search", "tool_input": {}}]
    rows = [
        {
            "prompt": q,
            "predicted_trajectory": call,
            "reference_trajectory": call if i else [{"tool_name": "book", "tool_input": {}}],
        }
        for i, q in enumerate(QUESTIONS)
    ]
    result = EvalTask(rows, ["trajectory_exact_match"]).evaluate()
    result.write(tmp_path / "scores.jsonl")
    result.save(tmp_path / "report.json")
    for past in (result, tmp_path / "scores.jsonl", str(tmp_path / "report.json")):
        found = line(profile_eval_set(rows, past=past), "trajectory_exact_match")
        assert (found["rows"], found["mean"], found["measured"]) == (4, 0.75, True)


@pytest.mark.parametrize(
    ("rows", "notes"),
    [
        ([], ("The dataset has no rows.",)),
        (
            [{"prompt": q, "predicted_trajectory": [], "reference_trajectory": []} for q in (LEAVE, None)],
            ("No row has ground truth: correctness cannot be scored.", "1 valid row without a question: not compared."),
        ),
        ([{"request": ""}], ("No row is valid: there is nothing to profile.",)),
        (
            [{"request": "Hi"}],
            (
                "One row is valid: it shows nothing about an agent.",
                "No row has ground truth: correctness cannot be scored.",
            ),
        ),
    ],
)
def test_numbers_that_mean_nothing_are_sentences(rows: list[Row], notes: tuple[str, ...]) -> None:
    profile = profile_eval_set(rows)
    assert profile.summary.notes == notes
    assert profile.metrics[["half_width", "paired"]].isna().all().all()
    assert "nan" not in profile.to_json().lower()
    assert "nan" not in profile.to_text().lower().split()
    assert notes[0] in profile.to_text(width=200)
    assert notes[0] in profile.to_html()


def test_invalid_rows_are_excluded_and_counted() -> None:
    rows = [*(row(q, "t") for q in QUESTIONS), {"request": {"messages": []}, "response": "x"}, row(QUESTIONS[0], "t")]
    profile = profile_eval_set(rows)
    assert profile.counts["invalid"] == 1
    assert profile.counts["exact_duplicates"] == 1
    assert "1 invalid row excluded." in profile.summary.notes
    assert line(profile, CORRECTNESS)["rows"] == 5


def test_a_repeated_id_makes_a_row_invalid() -> None:
    rows = [row(QUESTIONS[0], "t", request_id="a"), row(QUESTIONS[0], "t", request_id="a")]
    profile = profile_eval_set(rows)
    assert (profile.counts["invalid"], profile.counts["exact_duplicates"]) == (1, 0)
    assert profile.summary.coverage.breakdowns[0].top[0].rows == 1


# ---------------------------------------------------------------------------------------------------------------------
# duplicates
def test_duplicates_by_hand() -> None:
    rows = [row(LEAVE), row(LEAVE.upper()), row(f"{LEAVE} Thanks!"), *map(row, QUESTIONS)]
    profile = profile_eval_set(rows)
    assert profile.duplicates.to_dict("list") == {"row": [1, 2], "first": [0, 0], "kind": ["exact", "near"]}
    assert (profile.counts["distinct"], profile.counts["exact_duplicates"], profile.counts["near_duplicates"]) == (
        5,
        1,
        1,
    )
    (group,) = profile.summary.duplicates.groups
    assert (group.kind, group.rows, group.examples[0].question) == ("near", 3, LEAVE)


def test_the_threshold_of_near_duplicates() -> None:
    rows = [row(LEAVE), row(f"{LEAVE} Thanks!")]  # 10 of 11 pairs of words
    assert profile_eval_set(rows, near=10 / 11).counts["near_duplicates"] == 1
    assert profile_eval_set(rows, near=0.92).counts["near_duplicates"] == 0


def test_two_questions_that_differ_in_what_they_ask_are_two() -> None:
    assert profile_eval_set([row(LEAVE), row(LEAVE.replace("parental", "sick"))]).counts["distinct"] == 2


def test_the_whole_conversation_is_the_question() -> None:
    def chat(*texts: str) -> Row:
        roles = ("system", "user", "assistant", "user")
        messages = [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)]
        return {"request": {"messages": messages}, "response": "x"}

    rows = [chat("Be brief.", "Book a desk", "Which day?", "Yes"), chat("Be kind.", "Cancel it", "Sure?", "Yes")]
    assert profile_eval_set(rows).counts["distinct"] == 2
    assert profile_eval_set([chat("Be brief.", LEAVE), chat("Be kind.", LEAVE)]).counts["distinct"] == 1


def test_inputs_that_differ_beside_the_question() -> None:
    rows = [{"inputs": {"question": LEAVE, "country": c, "session_id": c}} for c in ("France", "Spain", "Spain")]
    assert profile_eval_set(rows).duplicates["row"].tolist() == [2]


def test_the_same_question_with_another_truth() -> None:
    rows = [row(LEAVE, "16 weeks"), row(LEAVE, "12 weeks"), row(LEAVE), row(LEAVE, "16 weeks")]
    profile = profile_eval_set(rows)
    assert profile.counts["conflicts"] == 1
    ((one, other),) = profile.summary.duplicates.conflicts
    assert (one.row, one.truth, other.row, other.truth) == (0, "16 weeks", 1, "12 weeks")


def test_the_distinct_rows_as_a_file(tmp_path: Path) -> None:
    rows = [row(LEAVE, note="first"), row(f"{LEAVE} Please!"), {"request": "", "response": "x"}, row(QUESTIONS[0])]
    path = tmp_path / "distinct.jsonl"
    assert profile_eval_set(rows).write(path) == 3
    written = [json.loads(text) for text in path.read_text().splitlines()]
    assert [r["request"] for r in written] == [LEAVE, "", QUESTIONS[0]]
    assert written[0]["note"] == "first"


# ---------------------------------------------------------------------------------------------------------------------
# leakage
def leaks(profile: Profile) -> list[tuple[str, str, list[int]]]:
    return [tuple(r) for r in profile.leaks[["source", "kind", "positions"]].itertuples(index=False)]


def test_leakage_from_a_dataset() -> None:
    rows = [row(LEAVE), *map(row, QUESTIONS)]
    train = [{"inputs": {"question": f"{LEAVE} Thanks!"}}, {"inputs": {"question": QUESTIONS[1]}}]
    profile = profile_eval_set(rows, against=[train])
    assert leaks(profile) == [
        ("against[0]", "the same question", [2]),
        ("against[0]", "a near duplicate of the question", [0]),
    ]
    assert profile.counts["leaked"] == 2
    assert leaks(profile_eval_set(rows, against=train)) == leaks(profile)
    assert "No row is in against[0]." in profile_eval_set(rows, against=[[row("Hi")]]).to_text(width=200)


def test_leakage_from_texts(tmp_path: Path) -> None:
    text = tmp_path / "few_shot.txt"
    text.write_text(f"Examples\nQ: {LEAVE}\nA: You get sixteen weeks of leave.\n")
    rows = [row(LEAVE), row(QUESTIONS[0], "sixteen weeks of leave"), row(QUESTIONS[1], "sixteen weeks")]
    assert leaks(profile_eval_set(rows, against=text)) == [
        (str(text), "the same question", [0]),
        (str(text), "the ground truth", [1]),
    ]


def traced(prompt: list[Row], truth: str, retrieved: str | None = None) -> Row:
    def span(name: str, kind: str, parent: str | None, inputs: Any, outputs: Any) -> Row:
        attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
        attributes = {key: json.dumps(value) for key, value in attributes.items()}
        if kind == "CHAT_MODEL":
            tools = [{"type": "function", "function": {"name": "refund"}}]
            attributes["mlflow.chat.tools"] = json.dumps(tools)
        times = {"start_time_unix_nano": 1_700_000_000_000_000_000, "end_time_unix_nano": 1_700_000_001_000_000_000}
        return {"span_id": name, "parent_span_id": parent, "name": name, "attributes": attributes, **times}

    spans = [
        span("root", "AGENT", None, {"messages": [prompt[-1]]}, "An answer."),
        span("model", "CHAT_MODEL", "root", {"messages": prompt}, "An answer."),
        span("look_up", "TOOL", "root", {"id": 1}, "found"),
    ]
    if retrieved:
        documents = [{"page_content": retrieved, "metadata": {"doc_uri": "a"}}]
        spans.append(span("search", "RETRIEVER", "root", "q", documents))
    info = {"trace_id": "tr-1", "state": "OK", "trace_metadata": {}, "tags": {}}
    return {"trace": json.dumps({"info": info, "data": {"spans": spans}}), "expected_response": truth}


TOLD = "Parental leave lasts sixteen weeks."


@pytest.mark.parametrize(
    ("prompt", "retrieved", "place"),
    [
        ([("system", f"Know this. {TOLD}"), ("user", LEAVE)], None, "the system prompt"),
        (
            [("user", "How long?"), ("assistant", TOLD.upper()), ("user", LEAVE)],
            None,
            "an earlier message of the prompt",
        ),
        ([("system", f"Context: {TOLD}"), ("user", LEAVE)], TOLD, None),
        ([("system", "Be brief."), ("user", f"{LEAVE} {TOLD}")], None, None),
    ],
)
def test_ground_truth_in_the_prompt(prompt: list[tuple[str, str]], retrieved: str | None, place: str | None) -> None:
    messages = [{"role": role, "content": text} for role, text in prompt]
    found = profile_eval_set([traced(messages, TOLD, retrieved)])
    assert found.leaks["source"].tolist() == ([place] if place else [])


# ---------------------------------------------------------------------------------------------------------------------
# coverage, balance, cost
def test_tools_by_hand() -> None:
    rows = [traced([{"role": "user", "content": LEAVE}], "t")]
    rows[0]["reference_trajectory"] = [{"tool_name": "book"}, {"tool_name": "book"}]
    profile = profile_eval_set(rows)
    tools = {t.tool: (t.offered, t.expected, t.called) for t in profile.summary.coverage.tools}
    assert tools == {"refund": (1, 0, 0), "book": (0, 1, 0), "look_up": (1, 0, 1)}
    assert any("No row exercises `refund`: 1 of 3 tools." in step for step in profile.next_steps)
    assert (profile.summary.balance.first, profile.summary.coverage.days) == ("2023-11-14", 1)


def test_tools_are_offered_by_the_definitions_in_a_request() -> None:
    definitions = [{"type": "function", "function": {"name": "refund"}}, {"name": "book"}, {"function": {}}, "cancel"]
    chats = [{"messages": [{"role": "user", "content": LEAVE}], "tools": tools} for tools in (definitions, "refund")]
    rows: list[Row] = [*({"request": chat} for chat in chats), {"request": chats[0], "inputs": ["tools"]}]
    profile = profile_eval_set(rows)
    assert profile.counts["valid"] == 3
    assert {t.tool: t.offered for t in profile.summary.coverage.tools} == {"refund": 1, "book": 1}


def test_documents_by_hand() -> None:
    def documents(*uris: str) -> list[Row]:
        return [{"doc_uri": uri} for uri in uris]

    rows = [
        row(QUESTIONS[0], expected_retrieved_context=documents("a", "b"), retrieved_context=documents("a", "a", "c")),
        row(QUESTIONS[1], expected_retrieved_context=documents("a"), retrieved_context=documents("c")),
        row(QUESTIONS[2]),
    ]
    profile = profile_eval_set(rows, documents=["a", "c"])
    found = profile.summary.coverage.documents
    assert (found.expected, found.retrieved, found.never_retrieved, found.rows_expecting) == (2, 2, 1, 2)
    assert {d.doc_uri: (d.expected, d.retrieved) for d in found.top} == {"a": (2, 1), "b": (1, 0), "c": (0, 2)}
    assert found.unknown_rows == 1
    assert "1 row with an expected document that is not in the list." in profile.to_text(width=200)
    assert profile_eval_set(rows).summary.coverage.documents.unknown_rows is None


def test_a_list_of_documents_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a\n\nb\n")
    rows = [row(q, expected_retrieved_context=[{"doc_uri": u}]) for q, u in zip(QUESTIONS, "abcd", strict=True)]
    profile = profile_eval_set(rows, documents=tmp_path / "list.txt")
    assert profile.summary.coverage.documents.unknown_rows == 2


def test_kinds_of_rows_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.profile.coverage.LEAST_ROWS", 2)
    tags = [{"intent": "leave"}, {"intent": "leave"}, {"intent": "desk"}, {}]
    texts = [LEAVE, "Сколько дней отпуска?", "有多少天的假期", "休暇は何日ですか"]
    rows = [row(text, tags=tag) for text, tag in zip(texts, tags, strict=True)]
    found = {b.name: b for b in profile_eval_set(rows).summary.coverage.breakdowns}
    assert {c.value: c.rows for c in found["script"].top} == {"Latin": 1, "Cyrillic": 1, "Chinese": 1, "Japanese": 1}
    assert {c.value: c.rows for c in found["tag intent"].top} == {"leave": 2, "desk": 1}
    assert [c.value for c in found["tag intent"].thin] == ["desk"]


def test_lengths_sessions_and_turns_by_hand() -> None:
    def chat(*texts: str) -> Row:
        roles = ("user", "assistant") * len(texts)
        return {"messages": [{"role": r, "content": t} for r, t in zip(roles, texts, strict=False)]}

    rows: list[Row] = [
        {"request": "Why is the sky blue?", "session_id": "a"},  # 5 words
        {"request": "Who are you?", "session_id": "a"},  # 3 words
        {"request": chat("Book a desk", "Which day?", "Friday"), "session_id": "b"},  # 3 + 2 + 1 words, two turns
        {"request": "Hi"},
    ]
    found = profile_eval_set([{**r, "response": "x"} for r in rows]).summary.coverage
    assert (found.sessions, found.median_words, found.longest_words) == (2, 4.0, 6)
    turns = next(b for b in found.breakdowns if b.name == "turns")
    assert (turns.values, [(c.value, c.rows) for c in turns.top]) == (2, [("1 turn", 3), ("2 turns", 1)])


def test_the_share_of_a_document_and_of_guidelines_by_hand() -> None:
    rows = [
        row(q, expected_retrieved_context=[{"doc_uri": u}], guidelines=g)
        for q, u, g in zip(QUESTIONS, "aaab", (["Be kind"], ["Be kind", "Be brief"], None, None), strict=True)
    ]
    profile = profile_eval_set(rows)
    assert (profile.summary.balance.guideline_rows, profile.summary.balance.shared_guidelines) == (2, ("Be kind",))
    assert "75% of the rows that expect a document expect a." in profile.to_text(width=200)  # 3 of 4


def test_the_steps_have_their_shares_by_hand() -> None:
    rows = [row(LEAVE, "a"), row(LEAVE, "b"), *map(row, QUESTIONS), {"request": "", "response": "x"}]
    steps = {s.text: s.gain for s in profile_eval_set(rows, against=[[{"request": QUESTIONS[0]}]]).summary.next_steps}
    shares = {
        "14% of the rows are invalid and support no metric.": 1 / 7,
        "17% of the rows repeat an earlier question: 5 of 6 are distinct.": 1 / 6,
        "1 row has the request of an earlier one and expects another answer.": 1 / 7,
        "17% of the rows have the same question in against[0]: they measure memory.": 1 / 6,
    }
    assert {text: gain for text, gain in steps.items() if text in shares} == pytest.approx(shares)


def test_several_rows_with_another_answer_are_told_in_the_plural() -> None:
    steps = profile_eval_set([row(LEAVE, answer) for answer in "abc"]).summary.next_steps
    assert "2 rows have the request of an earlier one and expect another answer." in {step.text for step in steps}


def test_the_power_curve_of_a_page_by_hand() -> None:
    page = profile_eval_set(DIFFERENT).to_html()
    now, later = (100 * (smallest_rate_difference(0.5, rows, 0.5) or 0) for rows in (20, 160))
    top = min(10 * math.ceil(2 * now / 10), 100)
    assert f"20 rows: {now:.0f} points; 8 times as many: {later:.0f} points" in page
    axis = re.findall(r"<text[^>]*>(.*?)</text>", page)
    assert axis == ["0", "20", "160 rows", "0", f"{top / 2:g}", f"{top:g} points"]


def test_truth_that_is_all_alike() -> None:
    rows = [row(q, "yes", guidelines=["Be kind", f"Rule {i}"]) for i, q in enumerate(QUESTIONS)]
    profile = profile_eval_set(rows)
    found = profile.summary.balance
    assert (found.truths, found.distinct_truths, found.top_truth_rows, found.top_truth) == (4, 1, 4, "yes")
    assert found.shared_guidelines == ("Be kind",)
    assert profile.next_steps[0].startswith("100% of the rows with ground truth have the same one")


def test_the_span_of_time_of_a_column() -> None:
    times = ["2026-01-02T03:04:05Z", "2026-03-01", None, "never"]
    rows = [row(q, request_time=t) for q, t in zip(QUESTIONS, times, strict=True)]
    found = profile_eval_set(rows).summary
    assert (found.balance.first, found.balance.last, found.coverage.days) == ("2026-01-02", "2026-03-01", 2)


def test_the_cost_by_hand() -> None:
    rows = [{"request": "a" * 40, "response": "b" * 20, "expected_response": "c" * 8}] * 3
    profile = profile_eval_set(rows, price={"input": 2.0, "output": 10.0}, calls_per_minute=6)
    lines = {m.metric: m for m in profile.summary.cost.metrics}
    found = lines[CORRECTNESS]
    assert (found.calls, found.input_tokens, found.output_tokens) == (3, 3 * 68 // 4 + 3 * 400, 450)
    assert found.money == pytest.approx((1251 * 2 + 450 * 10) / 1e6)
    assert lines["response/llm_judged/safety/rating"].input_tokens == 15 + 1200
    judged = ("relevance_to_query", "safety", "global_guideline_adherence")
    assert set(lines) == {CORRECTNESS, *(f"response/llm_judged/{n}/rating" for n in judged)}
    assert (profile.summary.cost.calls, profile.summary.cost.minutes) == (12, 2.0)


def test_the_tokens_of_a_tokenizer_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoding whose tokens are words of letters: one per byte, but for `the` and ` the`."""
    tiktoken = pytest.importorskip("tiktoken")
    tiktoken.list_encoding_names()
    ranks = {bytes([i]): i for i in range(256)} | {b"th": 256, b"the": 257}
    made = {"name": "own", "pat_str": r"\w+|\W+", "mergeable_ranks": ranks, "special_tokens": {}}
    monkeypatch.setitem(tiktoken.registry.ENCODING_CONSTRUCTORS, "own", lambda: made)
    context = [{"doc_uri": "a", "content": "the"}, {"doc_uri": "b", "content": "the x"}]
    rows = [{"request": "the the", "response": "the", "expected_response": "on the", "retrieved_context": context}]
    options = {"tokenizer": "own", "instruction_tokens": 10, "answer_tokens": 2}
    cost = profile_eval_set(rows, **options).summary.cost  # type: ignore[arg-type]
    found = {m.metric: m.input_tokens for m in cost.metrics}
    assert found[CORRECTNESS] == 10 + 3 + 1 + 4
    assert found["retrieval/llm_judged/chunk_relevance_precision"] == 2 * 10 + 2 * 3 + 1 + 3
    assert cost.output_tokens == 2 * cost.calls
    assert "tokens of the rows by own, 10 tokens of instructions and 2 tokens of answer" in cost.note


@pytest.mark.parametrize("cached", ["whole", "damaged", "absent"])
def test_an_encoding_that_is_cached_counts_unasked(
    cached: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an encoding of bytes in the cache of the real tiktoken, and no network."""
    tiktoken = pytest.importorskip("tiktoken")
    pytest.importorskip("tiktoken.load")  # which tiktoken imports when it is needed
    lines = b"".join(base64.b64encode(bytes([i])) + f" {i}\n".encode() for i in range(256))
    digest = hashlib.sha256(lines).hexdigest()
    monkeypatch.setattr(tokens, "USUAL_SHA256", digest)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    fetched: list[str] = []
    monkeypatch.setattr(tiktoken.load, "read_file", fetched.append)
    if cached != "absent":
        name = hashlib.sha1(tokens.USUAL_URL.encode()).hexdigest()
        (tmp_path / name).write_bytes(lines if cached == "whole" else lines[:-1])
    tiktoken.list_encoding_names()

    def made() -> dict[str, Any]:
        ranks = tiktoken.load.load_tiktoken_bpe(tokens.USUAL_URL, expected_hash=digest)
        return {"name": tokens.USUAL, "pat_str": r"\w+|\W+", "mergeable_ranks": ranks, "special_tokens": {}}

    monkeypatch.setitem(tiktoken.registry.ENCODING_CONSTRUCTORS, tokens.USUAL, made)
    monkeypatch.delitem(tiktoken.registry.ENCODINGS, tokens.USUAL, raising=False)
    tokens.encoding.cache_clear()
    cost = profile_eval_set([{"request": "a" * 40, "response": "b" * 20}], instruction_tokens=0).summary.cost
    monkeypatch.delitem(tiktoken.registry.ENCODINGS, tokens.USUAL, raising=False)
    tokens.encoding.cache_clear()
    (safety,) = (m for m in cost.metrics if "safety" in m.metric)
    assert safety.input_tokens == (20 if cached == "whole" else 20 // 4)
    said = "tokens of the rows by o200k_base" if cached == "whole" else "4 bytes of UTF-8 per token (the tokenizer"
    assert said in cost.note
    assert not fetched


def test_the_usual_encoding_is_the_file_that_tiktoken_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    public = pytest.importorskip("tiktoken_ext.openai_public")
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(public, "load_tiktoken_bpe", lambda url, expected_hash: asked.append((url, expected_hash)))
    public.o200k_base()
    assert asked == [(tokens.USUAL_URL, tokens.USUAL_SHA256)]


def test_no_encoding_counts_unasked_what_is_large_or_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setattr(tokens, "_is_cached", lambda: True)
    source = open_source([{"request": LEAVE}] * 50)
    assert tokens.tokenizer_at_hand(source) == "o200k_base"
    assert tokens.tokenizer_at_hand(structs.replace(source, remote=object())) is None
    monkeypatch.setattr(tokens, "WORTH_IT", 100)
    assert tokens.tokenizer_at_hand(source) is None


def test_without_tiktoken_tokens_are_estimated_though_the_encoding_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_is_cached", lambda: True)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    cost = profile_eval_set([{"request": "a" * 40, "response": "b" * 20}]).summary.cost
    assert "4 bytes of UTF-8 per token" in cost.note


def test_an_encoding_that_cannot_be_fetched_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken")

    def fetch(_: str) -> None:
        raise ConnectionError("http://host")

    monkeypatch.setattr(tiktoken, "get_encoding", fetch)
    with pytest.raises(EvalSetError, match=r"^tokenizer: r50k_base cannot be loaded: ConnectionError$"):
        profile_eval_set([row(LEAVE)], tokenizer="r50k_base")


def test_the_usual_cache_of_encodings_is_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken")
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tokens, "USUAL_SHA256", hashlib.sha256(b"ranks").hexdigest())
    source = open_source([row(LEAVE)])
    assert tokens.tokenizer_at_hand(source) is None
    (tmp_path / "data-gym-cache").mkdir()
    (tmp_path / "data-gym-cache" / hashlib.sha1(tokens.USUAL_URL.encode()).hexdigest()).write_bytes(b"ranks")
    assert tokens.tokenizer_at_hand(source) == tokens.USUAL


def test_a_judge_of_chunks_is_called_for_each() -> None:
    context = [{"doc_uri": "a", "content": "x" * 12}, {"doc_uri": "b", "content": "y" * 8}]
    profile = profile_eval_set([{"request": "q" * 20, "retrieved_context": context}], outputs="generated")
    found = {m.metric: m for m in profile.summary.cost.metrics}["retrieval/llm_judged/chunk_relevance_precision"]
    assert (found.calls, found.input_tokens) == (2, (20 + 2 * 20) // 4 + 800)
    assert profile.summary.cost.agent_calls == 1


# ---------------------------------------------------------------------------------------------------------------------
# next steps, forms, inputs
def test_next_steps_are_at_most_seven_in_order_of_gain() -> None:
    rows = [row(LEAVE, f"t{i}") for i in range(6)] + [{"request": "", "response": "x"}]
    profile = profile_eval_set(rows, against=[[{"request": LEAVE}]])
    gains = [step.gain for step in profile.summary.next_steps[1:]]
    assert gains == sorted(gains, reverse=True)
    assert 3 <= len(gains) <= 6
    assert all(re.match(r"agent-eval-schema |\w+\(|profile\.", s.command) for s in profile.summary.next_steps)
    assert profile.next_steps[0].startswith("14% of the rows are invalid")  # first, although others gain more
    assert profile.next_steps[1].startswith("100% of the rows have the same question in against[0]")


def test_every_input_has_the_same_profile(every_input: Callable[[list[Row]], Any]) -> None:
    rows = [row(LEAVE, "a", request_id="r0"), row(f"{LEAVE} Thanks", "b", request_id="r1"), row(QUESTIONS[0], "c")]
    profile = profile_eval_set(every_input(rows))
    assert profile.duplicates.to_dict("list") == {"row": [1], "first": [0], "kind": ["near"]}
    assert line(profile, CORRECTNESS)["effective_rows"] == 2.0
    assert profile.summary.duplicates.groups[0].examples[1].request_id == "r1"


@pytest.mark.parametrize("name", ["golden.csv", "evaluation.json", "good_mlflow.jsonl", "vertex.jsonl", "openai.jsonl"])
def test_samples_of_other_formats(samples: Path, name: str) -> None:
    profile = profile_eval_set(samples / name)
    assert profile.counts["distinct"] == profile.counts["valid"] > 0
    assert profile.metrics["rows"].max() > 0


HOSTILE = "<script>alert(1)</script> \x1b[31m ::error:: what is the leave policy"


def test_hostile_cells_are_only_shown() -> None:
    rows = [row(HOSTILE, HOSTILE, tags={HOSTILE: HOSTILE}) for _ in range(3)]
    profile = profile_eval_set(rows)
    for page in (profile.to_html(), profile._repr_html_()):
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in profile.to_text() + profile.to_json()


def test_without_values_nothing_of_a_cell_is_shown() -> None:
    secret = "Xylophone4711"
    document = [{"doc_uri": secret, "content": secret}]
    rows = [
        row(
            f"{LEAVE} {secret}",
            secret,
            request_id=f"{secret}{i}",
            tags={"name": secret},
            guidelines=[secret],
            expected_retrieved_context=document,
            predicted_trajectory=[{"tool_name": secret}],
        )
        for i in range(4)
    ]
    profile = profile_eval_set(rows, show_values=False)
    assert profile.counts["exact_duplicates"] == 3
    shown = profile.to_text() + profile.to_json() + profile.to_html() + str(profile.next_steps)
    assert secret.lower() not in shown.lower()


def test_the_forms(tmp_path: Path) -> None:
    profile = profile_eval_set([row(LEAVE, "a"), row(LEAVE, "b")])
    document = json.loads(profile.to_json())
    assert (document["schema_version"], document["duplicates"]["conflict_count"]) == (1, 1)
    for name in ("p.html", "p.json", "p.txt"):
        profile.save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 500
    assert str(profile).startswith("2 rows, 2 valid; databricks format")
    assert repr(profile).startswith("<Profile: 2 of 2 rows valid, 1 distinct questions, ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"near": 0}, "near: expected a number from 0 to 1"),
        ({"near": "high"}, "near: expected a number"),
        ({"calls_per_minute": 0}, "calls_per_minute: expected a number above 0"),
        ({"price": {"input": 1}}, "price: expected amounts per million tokens"),
        ({"tokenizer": "nothing"}, "tokenizer: expected one of .*o200k_base.*; got 'nothing'"),
        ({"answer_tokens": -1}, "answer_tokens: expected a whole number from 0 on; got -1"),
        ({"system": "nowhere"}, "system: expected one of"),
        ({"past": 3}, "past: expected a result"),
        ({"past": "no-such.json"}, "^no-such.json: no such file$"),
        ({"past": pd.DataFrame({"a": [1]})}, "past: expected a table with columns of scores"),
        ({"documents": "no-such-file"}, "documents: no-such-file cannot be read"),
        ({"against": "no-such.txt"}, "no-such.txt: No such file"),
    ],
)
def test_wrong_options(options: Row, message: str) -> None:
    if "tokenizer" in options:
        pytest.importorskip("tiktoken")
    with pytest.raises(EvalSetError, match=message):
        profile_eval_set([row(LEAVE)], **options)


def test_clusters_of_questions() -> None:
    pytest.importorskip("sklearn")
    topics = {"vacation": "days vacation summer", "laptop": "laptop screen broken"}
    rows = [row(f"{words} number{i}") for words in topics.values() for i in range(10)]
    found = profile_eval_set(rows, near=1.0).summary.coverage
    assert sorted(c.rows for c in found.clusters) == [10, 10]
    assert {term for c in found.clusters for term in c.terms} >= {"vacation", "laptop"}
    few = profile_eval_set(rows[1:], near=1.0).summary.coverage
    assert (few.clusters, few.cluster_note) == ((), "19 distinct questions are too few")


def test_of_very_many_questions_some_are_clustered(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(coverage, "MOST_CLUSTERED", 30)
    rows = [row(f"{word} vacation number{i}") for word in ("summer", "winter") for i in range(20)]
    assert sum(c.rows for c in profile_eval_set(rows, near=1.0).summary.coverage.clusters) == 30


def test_without_scikit_learn_there_is_a_note_in_place_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    found = profile_eval_set(DIFFERENT).summary.coverage
    assert (found.clusters, found.cluster_note) == (
        *((), "scikit-learn is not installed (pip install 'agent-eval-schema[profile]')"),
    )


def test_clusters_are_named_by_words_that_tell_them_apart() -> None:
    pytest.importorskip("sklearn")
    names = [f"{a}{b}" for a in "bcdfg" for b in "aeiou"]
    topics = ("Hi, does order {} have vacation {}?", "Hi, does order {} have laptop {}?")
    rows = [row(topic.format(4000 + i, name)) for topic in topics for i, name in enumerate(names)]
    found = profile_eval_set(rows, near=1.0).summary.coverage.clusters
    assert {c.terms[0] for c in found} >= {"vacation", "laptop"}
    assert not {"hi", "does", "order"} & {term for c in found for term in c.terms}
    assert not [term for c in found for term in c.terms if term.isdecimal()]


def test_a_group_of_near_duplicates_is_titled_by_its_commonest_question() -> None:
    asked = ["How do I cancel my subscription plan before Friday?", *["How do I cancel my subscription plan?"] * 3]
    profile = profile_eval_set([row(q, "t") for q in asked])
    (group,) = profile.summary.duplicates.groups
    assert [e.row for e in group.examples] == [1, 0, 2]  # each question once, then more rows
    title = '<span class="tag">4 rows, near</span> How do I cancel my subscription plan? <'
    assert title in profile.to_html()
    assert "4 rows, near  How do I cancel my subscription plan?\n" in profile.to_text(width=100)


def test_what_is_bad_is_never_green() -> None:
    page = profile_eval_set([row(LEAVE, f"t{i}") for i in range(6)] + [row("")]).to_html()
    assert set(re.findall('<span class="bar([^"]*)"', page)) == {" warn", " plain"}


def test_conflicts_are_one_table() -> None:
    rows = [row(LEAVE, f"t{i}", request_id=f"id{i}") for i in range(4)]
    page = profile_eval_set(rows).to_html()
    part = page[page.index('id="conflicts"') : page.index('id="duplicates"')]
    assert part.count("<table") == 1
    cells = re.findall("<td[^>]*>(.*?)</td>", part)
    assert cells == [
        c for i in (1, 2, 3) for c in (f'<a href="#row-{i}">{i}</a>', f"id{i}", LEAVE, f"t{i}", "row 0 (id0)", "t0")
    ]


def test_the_verdict_names_invalid_conflicting_and_leaked_rows() -> None:
    rows = [row(LEAVE, "a"), row(LEAVE, "b"), row("")]
    verdict = "⚠ 1 distinct question in 2 valid rows; 1 invalid; 1 with conflicting ground truth"
    assert f"\n{verdict}\n" in profile_eval_set(rows).to_text(width=100)
    leaked = profile_eval_set([row(LEAVE)], against=[[{"request": LEAVE}]]).to_text(width=100)
    assert "\n⚠ 1 distinct question in 1 valid row; 1 with the same question in against[0]\n" in leaked


@pytest.mark.xdist_group("spark")
def test_on_spark(spark: Any) -> None:
    rows = [("r0", LEAVE, "x"), ("r1", f"{LEAVE} Thanks", "x"), ("r2", QUESTIONS[0], "x")]
    profile = profile_eval_set(spark.createDataFrame(rows, ["request_id", "request", "response"]))
    assert profile.counts["near_duplicates"] == 1
    assert profile.summary.duplicates.groups[0].examples[0].question == LEAVE


# ---------------------------------------------------------------------------------------------------------------------
# what to do next, as a colleague would say it
def test_a_dataset_that_is_small_for_each_metric_is_named_once() -> None:
    steps = profile_eval_set([row(q) for q in QUESTIONS]).next_steps
    assert steps[0].startswith(
        "The dataset has 4 rows: too few for an interval for each metric; a difference of 5 points needs 821 "
    )


def test_the_width_of_an_interval_is_named() -> None:
    step = next(s for s in profile_eval_set(DIFFERENT).next_steps if "difference of 5 points" in s)
    assert step.startswith("The dataset has 20 rows: ± 20 points for each metric; a difference of 5 points needs 821")


def test_a_metric_that_fewer_rows_support_is_named_with_its_rows() -> None:
    steps = profile_eval_set([row(QUESTIONS[0], "t"), row(QUESTIONS[1], "t"), *map(row, QUESTIONS[2:])]).next_steps
    assert steps[0].startswith("correctness has 2 rows: too few for an interval; a difference of 5 points needs 821")


def test_a_field_that_enables_one_metric_names_it() -> None:
    steps = profile_eval_set([row(q, "t", guidelines=["Be kind"]) for q in QUESTIONS], system="databricks").next_steps
    assert any("With content in retrieved_context, 4 more rows would support 3 metrics." in s for s in steps)
    steps = profile_eval_set([row(q, "t") for q in QUESTIONS], outputs="generated").next_steps
    assert any("With guidelines, 4 more rows would support guideline_adherence." in s for s in steps)


def test_logged_calls_are_no_evaluation_dataset(samples: Path) -> None:
    (step,) = profile_eval_set(samples / "inference_table.jsonl").next_steps
    assert step.startswith("The rows are logged calls: ")
    assert step.endswith("inference_table.jsonl rows.jsonl")


def test_the_turns_of_a_file_of_evaluations(samples: Path) -> None:
    good, broken = (profile_eval_set(samples / name) for name in ("golden.csv", "golden_broken.csv"))
    assert good.to_text(width=300).splitlines()[0].endswith("4 rows, 4 valid; ces-csv format, outputs generated")
    assert "Each row is a turn of an evaluation, or an invalid evaluation." in good.summary.notes
    (step,) = broken.next_steps
    assert step.startswith("100% of the rows are invalid and support no metric.")
    for form in (broken.to_text(width=300), broken.to_html()):
        assert "100% of the rows are invalid" in form
        assert "agent-eval-schema validate " in form


def test_sentences_of_one() -> None:
    """One row, one word, one day, one document: as one would say it."""
    rows = [row("Why?", "t", request_time="2026-01-02", retrieved_context=[{"doc_uri": "a"}])]
    text = profile_eval_set(rows).to_text(width=300)
    for line_ in (
        "Questions have 1 word (median), at most 1.",
        "1 row with ground truth.",
        "Logged on 2026-01-02.",
        "1 document retrieved, none expected.",
        "1 distinct question is too few.",
    ):
        assert line_ in text


def test_what_is_not_known_before_the_run_is_not_in_the_cost() -> None:
    rows = [{"request": q, "expected_response": "t"} for q in QUESTIONS]
    said = "responses and documents that the agent is yet to produce, and its own tokens, are not included."
    assert profile_eval_set(rows, outputs="generated").summary.cost.note.endswith(said)
    text = profile_eval_set(rows, outputs="generated", system="vertex").to_text(width=300)
    assert "4 calls of the agent, and none of a judge." in text
    assert "Estimates" not in text


def test_only_a_dataset_with_the_columns_of_a_build_is_extended() -> None:
    profile = profile_eval_set("sample_data/good.jsonl")
    own, in_notebook = profile.next_steps[0], profile._repr_html_()
    assert "The option `extend` adds logged calls to sample_data/good.jsonl." in own
    assert "<code>extend</code> adds logged calls to sample_data/good.jsonl." in in_notebook
    assert "--extend" not in in_notebook
    (others, *_) = profile_eval_set("sample_data/openai.jsonl").next_steps
    assert "`extend`" not in others


def test_values_of_a_small_dataset_are_not_thin() -> None:
    def steps(rows: int, values: int) -> list[str]:
        made = [row(f"What is {n} times {n + 1}, please?", tags={"team": str(n % values)}) for n in range(rows)]
        made[0]["tags"] = {"team": "rare"}
        return [s for s in profile_eval_set(made).next_steps if "Fewer than 10 rows" in s]

    assert steps(19, 2) == []  # no value of 19 rows can have enough beside another one
    (thin,) = steps(24, 2)
    assert "have tag team `rare`: too few for their own score. →" in thin
    assert thin.endswith("from-inference-table --help")
    assert steps(24, 24) == []  # as many values as rows are no groups
