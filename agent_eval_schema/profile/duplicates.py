"""Questions that are asked more than once, or that another dataset, a text or the row's own prompt contains."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.cells.hashing import Array
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.places import ending_of
from agent_eval_schema.io.streams import STDIN_NAME
from agent_eval_schema.io.texts import read_bytes
from agent_eval_schema.profile.facts import Facts, gather
from agent_eval_schema.similarity.characters import normalized
from agent_eval_schema.similarity.near import near_groups, repeats
from agent_eval_schema.similarity.shingles import Shingled, shingled
from agent_eval_schema.validation.plan import make_plan

GROUPS = 20
"""Groups that are listed, the largest first."""

ROWS_OF_A_GROUP = 3


class Repeats(Struct, frozen=True):
    """For each row the first row of its group, of the same questions (`exact`) and also of similar ones (`near`);
    `asked` are the valid rows with a question. A row that is not asked is alone."""

    asked: Array
    exact: Array
    near: Array

    @property
    def distinct(self) -> int:
        return int(np.count_nonzero(self.asked & (self.near == np.arange(len(self.near)))))

    @property
    def exact_rows(self) -> Array:
        """The rows that repeat an earlier question."""
        return np.flatnonzero(self.exact != np.arange(len(self.exact)))

    @property
    def near_rows(self) -> Array:
        """The rows that are a near duplicate of an earlier question."""
        here = np.arange(len(self.near))
        return np.flatnonzero((self.near != here) & (self.exact == here))

    def groups(self) -> list[Array]:
        """The rows of each group of several, the largest group first; GROUPS of them."""
        sizes = np.bincount(self.near, minlength=len(self.near))
        firsts = np.flatnonzero(sizes > 1)
        largest = firsts[np.argsort(-sizes[firsts], kind="stable")][:GROUPS]
        return [np.flatnonzero(self.near == first) for first in largest.tolist()]

    @property
    def group_count(self) -> int:
        return int(np.count_nonzero(np.bincount(self.near, minlength=len(self.near)) > 1))


def find_repeats(facts: Facts, threshold: float) -> Repeats:
    exact = facts.array("exact")
    asked = facts.valid & (exact != 0)
    return Repeats(asked, *repeats(exact, asked, *facts.shingles, threshold))


SAME, NEAR, TRUTH = "the same question", "a near duplicate of the question", "the ground truth"

TEXT_FILES = (".txt", ".md", ".prompt", ".jinja", ".j2")
"""What is read as one text, and not as rows."""


class Other(Struct, frozen=True):
    """Something with which the rows are compared: its name, and its text or its questions."""

    name: str
    text: str | None
    questions: Shingled


class FoundLeak(Struct, frozen=True):
    """The rows that another place contains."""

    source: str
    kind: str
    rows: list[int]


def open_others(against: Any) -> list[Other]:
    """What a user compares with: datasets, and the paths of datasets and of texts."""
    given = [against] if isinstance(against, str | os.PathLike) or not isinstance(against, Sequence) else against
    if given and all(isinstance(row, dict) for row in given):  # the rows of one dataset
        given = [given]
    return [_open(one, i) for i, one in enumerate(given)]


def _open(one: Any, place: int) -> Other:
    name = os.fspath(one) if isinstance(one, str | os.PathLike) else f"against[{place}]"
    if isinstance(one, str | os.PathLike) and ending_of(name) in TEXT_FILES:
        text = read_bytes(name).decode("utf-8", "replace")
        return Other(name, normalized([text])[0], shingled(text.splitlines()))
    source = open_source(one, "against")
    name = STDIN_NAME if source.name == STDIN_NAME else name
    facts = gather(source, make_plan(source, "auto", "generated"))
    shingles, ends = facts.shingles
    exact = np.where(facts.valid, facts.array("exact"), 0)
    return Other(name, None, Shingled(exact, facts.array("words"), shingles, ends))


def find_leaks(facts: Facts, repeats: Repeats, others: Sequence[Other], threshold: float) -> Iterator[FoundLeak]:
    """The rows that are elsewhere, place by place; a row is of one kind per place, the surest."""
    texts = [i for i, other in enumerate(others) if other.text is not None]
    for i, other in enumerate(others):
        exact = repeats.asked & np.isin(facts.array("exact"), other.questions.exact[other.questions.exact != 0])
        answered = np.zeros(facts.row_count, bool)
        if i in texts:
            exact[facts.found.get(2 * texts.index(i), [])] = True
            answered[facts.found.get(2 * texts.index(i) + 1, [])] = True
        near = _near(facts, other.questions, threshold) & repeats.asked & ~exact
        kinds = {SAME: exact, NEAR: near, TRUTH: answered}
        for kind, rows in kinds.items():
            if rows.any():
                yield FoundLeak(other.name, kind, np.flatnonzero(rows).tolist())
    for place, found in facts.in_prompt.items():
        if found:
            yield FoundLeak(place, TRUTH, found)


def _near(facts: Facts, questions: Shingled, threshold: float) -> Array:
    """The rows whose question is a near duplicate of one of these."""
    mine, ends = facts.shingles
    shingles = np.concatenate([questions.shingles, mine])
    sizes = np.concatenate([np.diff(questions.ends), np.diff(ends)])
    labels = near_groups(shingles, bounds(sizes), threshold)
    count = len(questions.exact)
    theirs = np.zeros(len(labels), bool)
    theirs[labels[:count]] = True
    found: Array = theirs[labels[count:]] & (np.diff(ends) > 0)
    return found
