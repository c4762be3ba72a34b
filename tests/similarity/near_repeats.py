"""How many made-up edits of questions are found as near duplicates: ``python -m tests.similarity.near_repeats``.

Each question has one edit of it, among all the other questions. Edits that change how something is asked should be
found, edits that change what is asked should not. Also printed: pairs of different questions that were grouped.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from agent_eval_schema.similarity import near
from agent_eval_schema.similarity.near import NEAR, near_groups
from agent_eval_schema.similarity.shingles import shingled

Words = list[str]

LENGTHS = {"6 to 9 words": (6, 9), "10 to 15 words": (10, 15), "16 to 25 words": (16, 25)}
QUESTIONS = 2_000
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def _typed(word: str, draw: random.Random) -> str:
    at = draw.randrange(len(word))
    return word[:at] + draw.choice("xyz") + word[at:]


def _at(words: Words, draw: random.Random, change: Callable[[str], Words]) -> Words:
    i = draw.randrange(1, len(words) - 1)
    return [*words[:i], *change(words[i]), *words[i + 1 :]]


SAME: dict[str, Callable[[Words, random.Random], Words]] = {
    "case and punctuation": lambda words, _: [f"{w.upper()}," for w in words],
    "a greeting before": lambda words, _: ["Hello,", *words],
    "thanks behind": lambda words, _: [*words, "thanks"],
    "greeting and thanks": lambda words, _: ["Hello", *words, "thanks"],
    "a word more inside": lambda words, draw: _at(words, draw, lambda w: ["really", w]),
    "a word less inside": lambda words, draw: _at(words, draw, lambda _: []),
    "a typing error": lambda words, draw: _at(words, draw, lambda w: [_typed(w, draw)]),
}
OTHER: dict[str, Callable[[Words, random.Random], Words]] = {
    "another word inside": lambda words, draw: _at(words, draw, lambda _: ["another"]),
    "another number": lambda words, draw: [str(draw.randrange(10_000, 20_000)), *words[1:]],
    "a negation": lambda words, draw: _at(words, draw, lambda w: ["not", w]),
    "two other words": lambda words, draw: [*_at(words[:-1], draw, lambda _: ["another"]), "ending"],
}


def found(
    edit: Callable[[Words, random.Random], Words], length: tuple[int, int], threshold: float
) -> tuple[float, int]:
    """The share of the edits that are grouped with their question, and the number of questions grouped with others."""
    draw = random.Random(1)
    vocabulary = ["".join(draw.choices("abcdefghijklmnoprstuw", k=6)) for _ in range(2_000)]
    asked = [draw.choices(vocabulary, k=draw.randint(*length)) for _ in range(QUESTIONS)]
    for words in asked:  # an order number, as in questions of a support desk
        words[0] = str(draw.randrange(1_000, 10_000))
    texts = [" ".join(words) for words in (*asked, *(edit(words, draw) for words in asked))]
    of = shingled(texts)
    labels = near_groups(of.shingles, of.ends, threshold)
    hits = labels[QUESTIONS:] == labels[:QUESTIONS]
    return float(hits.mean()), int(np.count_nonzero(labels[:QUESTIONS] != np.arange(QUESTIONS)))


TEMPLATES = (
    "how do i reset the password of my {} account in the {} portal when i am at {}",
    "please tell me how many days of {} leave i get in {} if i started in {}",
    "which documents do i need for a {} trip to {} when i travel for {}",
    "my {} does not start since the {} update what can i do about the {} error",
)


def of_templates(questions: int, threshold: float = NEAR) -> tuple[int, int]:
    """The groups of questions that are made of a few templates, of which very many are alike; and those that four times
    as many bands find."""
    draw = random.Random(2)
    words = ["".join(draw.choices("abcdefghijklmnoprstuw", k=6)) for _ in range(300)]
    of = shingled([draw.choice(TEMPLATES).format(*draw.choices(words, k=3)) for _ in range(questions)])
    found = len(np.unique(near.near_groups(of.shingles, of.ends, threshold)))
    with patch.object(near, "bands_for", lambda t, bands=near.bands_for: 4 * bands(t)):
        return found, len(np.unique(near.near_groups(of.shingles, of.ends, threshold)))


def main() -> None:
    """Print a table per length."""
    for name, length in LENGTHS.items():
        print(f"\n| {name} | " + " | ".join(f"from {t:g}" for t in THRESHOLDS) + " |")
        print("|---|" + "--:|" * len(THRESHOLDS))
        wrong = [0] * len(THRESHOLDS)
        for kind, edits in (("same", SAME), ("other", OTHER)):
            for title, edit in edits.items():
                shares = [found(edit, length, t) for t in THRESHOLDS]
                wrong = [w + n for w, (_, n) in zip(wrong, shares, strict=True)]
                print(f"| {kind}: {title} | " + " | ".join(f"{share:.0%}" for share, _ in shares) + " |")
        print("| different questions in one group | " + " | ".join(map(str, wrong)) + " |")
    found_, more = of_templates(60_000)
    print(f"\ngroups of 60,000 questions of four templates: {found_:,}; with four times as many bands: {more:,}")


if __name__ == "__main__":
    main()
