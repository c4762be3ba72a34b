"""The search for near duplicates, against a comparison of every pair."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.similarity import near
from agent_eval_schema.similarity.near import bands_for, joined, near_groups, similarity
from agent_eval_schema.similarity.shingles import MOST_SHINGLES, contained, normalized, shingled
from tests.similarity.near_repeats import OTHER, SAME, found, of_templates


def pairs_of(text: str) -> set[tuple[str, str]]:
    words = normalized([text])[0].split()
    return set(pairwise(words if len(words) != 1 else ["", *words]))


def jaccard(one: str, other: str) -> float:
    a, b = pairs_of(one), pairs_of(other)
    return len(a & b) / len(a | b) if a | b else 0.0


def groups_by_hand(texts: list[str], threshold: float) -> list[int]:
    labels = list(range(len(texts)))
    for i, j in combinations(range(len(texts)), 2):
        if jaccard(texts[i], texts[j]) >= threshold:
            low, high = sorted((labels[i], labels[j]))
            labels = [low if label == high else label for label in labels]
    return labels


def test_the_words_of_a_text() -> None:
    texts = ["Hi,  how do I\treset MY password?!", "Straße Ⅳ", "我的密码", "", None, "¿?"]
    assert normalized(texts) == [
        "hi how do i reset my password",
        "strasse iv",
        "我 的 密 码",
        "",
        "",
        "",
    ]


def test_the_shingles_of_a_text_by_hand() -> None:
    of = shingled(["a b a b", "", "a b", "A, b!", "a + b", "我 $"])
    assert of.words.tolist() == [4, 0, 2, 2, 2, 1]  # without symbols
    assert np.diff(of.ends).tolist() == [2, 0, 1, 1, 2, 1]  # ab, ba; nothing; ab; a+, +b
    assert of.exact[1] == 0
    assert of.exact[2] == of.exact[3] != of.exact[0]


def test_similarity_by_hand() -> None:
    texts = ["how do i reset my password", "how do i reset my password please", "who are you"]
    of = shingled(texts)
    found = similarity(of.shingles, of.ends, np.array([0, 0]), np.array([1, 2]))
    assert found.tolist() == [5 / 6, 0.0] == [jaccard(texts[0], texts[1]), jaccard(texts[0], texts[2])]


WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(" ".join)


@given(st.lists(WORDS, max_size=12), st.sampled_from([0.6, 0.8, 1.0]))
def test_no_pair_is_found_that_is_none(texts: list[str], threshold: float) -> None:
    of = shingled(texts)
    found = near_groups(of.shingles, of.ends, threshold).tolist()
    expected = groups_by_hand(texts, threshold)
    for i, j in combinations(range(len(texts)), 2):
        assert found[i] != found[j] or expected[i] == expected[j]
    assert all(label <= i for i, label in enumerate(found))


def test_pairs_above_the_threshold_are_found() -> None:
    """Questions of 12 words with a word more, whose similarity is 11 / 12, among others."""
    random = np.random.default_rng(3)
    words = [f"w{i}" for i in range(400)]
    texts = [" ".join(random.choice(words, 12)) for _ in range(500)]
    texts += [f"{text} please" for text in texts[:300]]
    of = shingled(texts)
    found = near_groups(of.shingles, of.ends, 0.7)
    assert found[500:].tolist() == list(range(300))
    assert found[:500].tolist() == list(range(500))


def _names(count: int) -> list[str]:
    return ["".join(chr(97 + i // 26**k % 26) for k in range(4)) for i in range(count)]


def test_questions_that_differ_in_a_number_or_a_negation_are_apart() -> None:
    texts = [
        f"Where is my order {number} that I placed in the shop in town last week?" for number in range(4_400, 4_600)
    ]
    texts += [
        "Can I book a desk for the visitors of my team on Friday afternoon?",
        "Can I not book a desk for the visitors of my team on Friday afternoon?",
        "Hello, can I book a desk for the visitors of my team on Friday afternoon? Thanks",
    ]
    of = shingled(texts)
    assert near_groups(of.shingles, of.ends, 0.7).tolist() == [*range(202), 200]


def test_many_alike_are_one_group() -> None:
    texts = [f"please tell me how many days of leave i get in {word}" for word in _names(3_000)]
    of = shingled(texts)
    assert set(near_groups(of.shingles, of.ends, 0.7).tolist()) == {0}


def test_few_questions_of_a_template_are_left_over() -> None:
    """Very many are alike, and only two others of a bucket are compared."""
    found, more = of_templates(3_000)
    assert more <= found <= 1.03 * more


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    texts = [" ".join(random.choice(list("abcdefghij"), 6)) for _ in range(300)]
    of = shingled(texts)
    whole = near_groups(of.shingles, of.ends, 0.6).tolist()
    monkeypatch.setattr(near, "CHUNK", 7)
    assert near_groups(of.shingles, of.ends, 0.6).tolist() == whole


def test_batches_do_not_matter() -> None:
    texts = ["where is my order", "where is my other order", "", "who are you"]
    whole = shingled(texts)
    parts = [shingled([text]) for text in texts]
    assert whole.exact.tolist() == [int(p.exact[0]) for p in parts]
    assert whole.shingles.tolist() == [s for p in parts for s in p.shingles.tolist()]


def test_a_long_text_is_drawn_alike() -> None:
    words = [f"w{i}" for i in range(5_000)]
    of = shingled([" ".join(words), " ".join([*words, "more"]), " ".join(reversed(words))])
    assert np.diff(of.ends).tolist() == [MOST_SHINGLES] * 3
    assert near_groups(of.shingles, of.ends, 0.9).tolist() == [0, 0, 2]


def test_bands_for_a_threshold_by_hand() -> None:
    # 1 − (1 − 0.7⁴)ᵇ ≥ 0.98  ⇔  b ≥ ln 0.02 / ln 0.7599 = 14.25
    assert bands_for(0.7) == 15
    assert bands_for(1.0) == 1


def test_groups_are_joined_whatever_the_order_of_the_pairs() -> None:
    labels = joined(np.arange(6), np.array([4, 2, 1]), np.array([5, 4, 2]))
    assert labels.tolist() == [0, 1, 1, 3, 1, 1]


def test_word_for_word_is_whole_words_and_not_too_few() -> None:
    texts = normalized(["Q: How many days of leave do I get? A: 30", "other"])
    parts = ["how many days of LEAVE", "ow many days of leave", "how many days", "days of leave do I"]
    assert contained(parts, texts) == [[0], [], [], [0]]


@pytest.mark.parametrize("edit", ["case and punctuation", "a greeting before", "thanks behind", "greeting and thanks"])
def test_who_greets_asks_the_same(edit: str) -> None:
    share, wrong = found(SAME[edit], (6, 9), 0.7)
    assert share >= near.FOUND
    assert wrong == 0


@pytest.mark.parametrize("edit", OTHER)
def test_who_asks_for_something_else_does_not(edit: str) -> None:
    assert found(OTHER[edit], (6, 9), 0.7) == (0.0, 0)
