"""Which questions are the same, on texts that versions of Unicode, of Python and of Arrow treat differently.

All expected values are written here: each leg of CI compares its own versions with them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_eval_schema import eval_set_from_inference_table, profile_eval_set, validate_eval_set
from agent_eval_schema.similarity.shingles import normalized, question_hashes, shingled
from tests.conftest import SAMPLES, Row
from tests.helpers.characters import FILE, LATER, kind_of
from tests.helpers.logged_calls import chat, table

WORDS = {
    "Hi,  how do I\treset MY password?!": "hi how do i reset my password",
    "Straße ẞ Ⅳ ﬁve": "strasse ss iv five",
    "ΟΔΥΣΣΕΥΣ Οδυσσεύς": "οδυσσευσ οδυσσεύσ",
    "İstanbul ISTANBUL ıstanbul": "i\u0307stanbul istanbul ıstanbul",
    "Ｆｕｌｌ　ｗｉｄｔｈ　１２，ｏｋ": "full width 12 ok",
    "caf\u00e9 cafe\u0301": "caf\u00e9 caf\u00e9",
    "\u1100\u1161\u11a8 \uac01": "\uac01 \uac01",
    "我的密码，在哪里": "我 的 密 码 在 哪 里",
    "ガ ｶﾞ カ\u3099 かな": "ガ ガ ガ か な",
    "ราคา 5 บาท": "ร า ค า 5 บ า ท",
    "हिन्दी में": "हिन्दी में",
    "re\u00adset\u200d my\ufeff \u2764\ufe0f pass\u2060word": "reset my password",
    "two\u200bwords\u00a0and\u2003more\u3000blanks\u2028here\u0085now": "two words and more blanks here now",
    "don’t don't “quoted” …": "don t don t quoted",
    "👍🏽 thanks \U0001f600": "thanks",
    "C, C++ and C#": "c c + + and c #",
    "5 - 3, 5−3, 5+3, -1, 6/2, 6*2, 50 %": "5 − 3 5 − 3 5 + 3 − 1 6 / 2 6 * 2 50 %",
    "covid-19 e-mail gpt-4 - yes": "covid 19 e mail gpt 4 yes",
    "$5 €5 £5 ﹩5": "$ 5 € 5 £ 5 $ 5",
    "½ ² ™": "1 ⁄ 2 2 tm",
    "\ud800 lone": "lone",
    "a\x00b": "a b",
    "¿?": "",
    "": "",
    # since Unicode 14, 15 and 16: an emoji, an ideograph, a letter with a lower case and one whose lower case is older
    "hm \U0001fae0\U0001fae8\U0001fae9": "hm",
    "\U00031350\U0002ebf0": "\U00031350 \U0002ebf0",
    "\U00010d50 \u2c2f é": "\U00010d50 \u2c2f é",
    "É\ua7dcÉ \ua7cb": "é\ua7dcé \ua7cb",
    "\U00010781 \U0001df1e": "\U00010781 \U0001df1e",  # one that decomposes
    "a\U0001e08fb": "a\U0001e08fb",  # a combining letter
}
"""Texts, and their words."""

GROUPS = (
    (
        "Where is my order?",
        "where is MY order",
        "  Where, is\u00a0my\u200b order ?! ",
        "Ｗｈｅｒｅ is my or\u00adder 👍",
    ),
    ("Where is my orders?",),
    ("Wie heißt die Straße?", "WIE HEISST DIE STRASSE", "wie heisst die straße"),
    ("Où est le café ?", "Ou\u0300 est le cafe\u0301", "OÙ EST LE CAFÉ"),
    ("Ou est le cafe ?",),
    ("ガイドはどこ", "ｶﾞｲﾄﾞはどこ？", "カ\u3099イト\u3099はどこ"),
    ("What is 5 - 3?", "what is 5-3", "What is 5 − 3"),
    ("What is 5 + 3?",),
    ("Is C++ fast?",),
    ("Is C# fast?",),
    ("Ποιος είναι ο Οδυσσεύς;", "ΠΟΙΟΣ ΕΊΝΑΙ Ο ΟΔΥΣΣΕΎΣ"),
    ("İyi mi bu?", "i\u0307yi mi bu"),
    ("Say \U0001fae8 it \U00010d50", "say it \U00010d50"),
    ("👍",),
    ("👎", " 👎 "),
)
"""Texts that ask the same."""

ASKED = [text for group in GROUPS for text in group]
FIRSTS = [text for group in GROUPS for text in group[:1]]


def test_the_words_of_a_text() -> None:
    assert dict(zip(WORDS, normalized(list(WORDS)), strict=True)) == WORDS
    assert {text: normalized([text])[0] for text in WORDS} == WORDS  # alone, too
    assert normalized([None, "x"]) == ["", "x"]


def test_the_hashes_of_questions_are_the_same_in_every_version() -> None:
    found = shingled(["Where is my order?", "Où est le CAFÉ", "👍", "", "我的密码"])
    assert found.exact.tolist() == EXACT
    assert question_hashes(["where is my order", "où est le café", " 👍 ", " ", "我的密码？"]).tolist() == EXACT
    assert found.shingles.tolist() == SHINGLES
    assert question_hashes(["Hi", "Hi", "", ""], ['{"id": 1}', None, '{"id": 1}', None]).astype(bool).tolist() == [
        *(True, True, True, False)
    ]


EXACT = [14451517913162432597, 2039595475945974455, 11333544772158848004, 0, 7888642166178324913]
SHINGLES = [
    *(2174947307, 2997520040, 3470110180, 2486880182, 2762654819, 2882037939),
    *(2902455871, 3840239157, 3975232091),
]


def test_the_kinds_of_characters_are_those_of_this_python() -> None:
    """Of those that Unicode 13.0 has; `tests/helpers/characters.py` wrote the table."""
    runs = [line.split() for line in FILE.read_text("ascii").splitlines() if not line.startswith("#")]
    starts = [int(start, 16) for start, _ in runs] + [sys.maxunicode + 1]
    written = np.repeat([int(kind) for _, kind in runs], np.diff(starts))
    here = np.fromiter(map(kind_of, range(sys.maxunicode + 1)), np.int64)
    assert np.flatnonzero((written != here) & (written != LATER)).tolist() == []


def rows_of(texts: list[str]) -> list[Row]:
    return [{"request_id": str(i), "request": text, "response": "An answer."} for i, text in enumerate(texts)]


def test_a_profile_counts_each_question_once(tmp_path: Path) -> None:
    profile = profile_eval_set(rows_of(ASKED), near=1)
    assert (profile.counts["distinct"], profile.counts["near_duplicates"]) == (len(GROUPS), 0)
    assert [
        (ASKED[row], ASKED[first]) for row, first in zip(*map(profile.duplicates.get, ("row", "first")), strict=True)
    ] == [(text, group[0]) for group in GROUPS for text in group[1:]]
    assert profile.write(tmp_path / "distinct.jsonl") == len(GROUPS)
    lines = (tmp_path / "distinct.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["request"] for line in lines] == FIRSTS
    assert profile_eval_set(tmp_path / "distinct.jsonl", near=1).counts["exact_duplicates"] == 0


def test_a_build_keeps_each_question_once() -> None:
    pytest.importorskip("duckdb")
    calls = table([chat(f"r{i}", text, minute=len(ASKED) - i) for i, text in enumerate(ASKED)])
    kept = eval_set_from_inference_table(calls, dedupe="question")
    assert [asked(text) for text in kept.rows["request"]] == FIRSTS  # the latest call of each
    assert kept.summary.excluded == {"duplicate_question": len(ASKED) - len(FIRSTS)}
    assert profile_eval_set(kept.rows, near=1).counts["exact_duplicates"] == 0
    more = eval_set_from_inference_table(calls, dedupe="question", extend=kept.rows)
    assert (len(more.rows), more.summary.rows) == (len(FIRSTS), 0)  # all of them are in the dataset


def asked(request: Any) -> str:
    value = json.loads(request) if isinstance(request, str) else request
    return str(value["messages"][0]["content"])


def image(url: str) -> Row:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"request": {"messages": [{"role": "user", "content": parts}]}, "response": "A cat."}


def with_prompt(prompt: str) -> Row:
    return {
        "request": {"messages": [{"role": "system", "content": prompt}, {"role": "user", "content": "What is this?"}]},
        "response": "A cat.",
    }


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (image("https://a.example/1.png"), image("https://a.example/1.png"), True),
        (image("https://a.example/1.png"), image("https://a.example/2.png"), False),
        (image("https://a.example/1.png"), {"request": "What is this?", "response": "A cat."}, False),
        (with_prompt("Be brief."), with_prompt("Be polite."), True),
        (
            {"inputs": {"question": "What is this?", "document": "a"}, "outputs": "A cat."},
            {"inputs": {"question": "What is this?", "document": "b"}, "outputs": "A cat."},
            False,
        ),
    ],
)
def test_what_belongs_to_a_question(one: Row, other: Row, is_same: bool) -> None:
    assert profile_eval_set([one, other]).counts["exact_duplicates"] == is_same


def test_conflicts_are_of_the_same_request_in_a_profile_as_in_a_report() -> None:
    """AE902 and `profile` count the same rows: case and punctuation make no other request."""
    given = [("Hi", "a"), ("Hi", "b"), ("hi!", "c"), ("Hi", "a"), ("Hi", "b"), ("Ho", "a")]
    rows = [{"request": text, "response": "x", "expected_response": truth} for text, truth in given]
    rows.append({"request": "Hi", "expected_response": "c", "response": 5, "retrieved_context": "no list"})  # invalid
    profile, report = profile_eval_set(rows), validate_eval_set(rows)
    assert report.issues.loc[report.issues["code"] == "AE902", "row"].tolist() == [1, 2, 4, 6]
    assert profile.counts["conflicts"] == 4 == profile.summary.duplicates.conflict_count
    pairs = profile.summary.duplicates.conflicts
    assert [(one.row, other.row, one.truth, other.truth) for one, other in pairs] == [
        *((0, 1, "a", "b"), (0, 2, "a", "c"), (0, 4, "a", "b"), (0, 6, "a", "c"))
    ]


def test_a_profile_whose_rows_are_all_invalid_has_conflicts_too() -> None:
    rows = [{"request": "Hi", "response": "x", "expected_response": t, "retrieved_context": "x"} for t in "ab"]
    assert profile_eval_set(rows).counts["conflicts"] == 1


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.json*")))
def test_conflicts_of_samples_are_those_of_a_report(name: str) -> None:
    counts = validate_eval_set(SAMPLES / name).counts
    assert profile_eval_set(SAMPLES / name).counts["conflicts"] == counts.get("AE902", 0)
