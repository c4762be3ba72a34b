"""What a column holds, by the words of its name, in fifteen languages: `Musterantwort` → the ground truth.

    name                 words, by their meaning      role
    user_query           user, ask                    request
    Musterantwort        truth, answer                ground truth: expected_response
    goldDocIds           truth, document, id          expected documents
    question_type        ask, meta                    metadata
    期望答案              truth, answer                ground truth

`words.json` has the words of each meaning by language; one that ends with `*` is the beginning of a word. A name is
taken apart at what is no letter and at capitals; what is left is one word, or words that are written as one.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from agent_eval_schema.runtime.tables import packaged

Meanings = frozenset[str]


class Role(Struct, frozen=True):
    """What a column holds: a name for people, the column of ours that holds the same (None: no column does), and
    whether all words of the name have a meaning (else it is a guess)."""

    name: str
    column: str | None = None
    sure: bool = True


NO_ROLE = Role("", None, False)


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role:
    """What a column of this name holds. Of a path the last key counts, and what the keys before it change."""
    *above, last = name.split(".")
    meanings, sure = meanings_of(last)
    role = next((r for needs, without, r in _RULES if needs <= meanings and not without & meanings), NO_ROLE)
    around = frozenset(m for key in above for m in meanings_of(key)[0])
    if around & _TRUE and role.column in TRUTHS:
        role = Role("ground truth", TRUTHS[role.column])
    elif role.column == "request" and not around.isdisjoint({"sql", "meta", "score", "tool", "call", "document"}):
        role = Role("SQL", "expected_response") if "sql" in around else Role("metadata")
    return role if sure or role is NO_ROLE else Role(role.name, role.column, sure=False)


TRUTHS = {
    "response": "expected_response",
    "retrieved_context": "expected_retrieved_context",
    "predicted_trajectory": "reference_trajectory",
}
"""By the column of an output, the one of its ground truth."""

_TRUE = frozenset({"truth", "guideline"})

_NONE: Meanings = frozenset()


class _Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """The meanings that a name must have, those that it must not have, and its role."""

    needs: str
    role: str
    column: str | None = None
    without: str = ""


_RULES = tuple(
    (frozenset(rule.needs.split()), frozenset(rule.without.split()), Role(rule.role, rule.column))
    for rule in packaged(__package__, "roles.json", list[_Rule])
)
"""The first one that fits counts."""


def is_of_truth(name: str) -> bool:
    """Whether the name of a column shows that it has ground truth."""
    return not _TRUE.isdisjoint(m for key in name.split(".") for m in meanings_of(key)[0])


# --- words
@lru_cache(maxsize=1)
def _words() -> tuple[Mapping[str, Meanings], Sequence[tuple[str, str]], frozenset[str]]:
    """The meanings of each word, the beginnings of words with theirs, and the words that form compounds."""
    table = packaged(__package__, "words.json", dict[str, dict[str, str]])
    listed = [
        (letters(w), m, lang) for m, langs in table.items() for lang, words in langs.items() for w in words.split()
    ]
    words: dict[str, Meanings] = {}
    for word, meaning, _ in listed:
        if not word.endswith("*"):
            words[word] = words.get(word, _NONE) | {meaning}
    begins = [(word[:-1], meaning) for word, meaning, _ in listed if word.endswith("*")]
    heads = frozenset(w for w, _, lang in listed if lang in ("de", "nl") and len(w) >= _HEAD and not w.endswith("*"))
    return words, begins, heads


_ENDING = 4
"""The letters of an ending, at most: `oczekiwanymi`."""

_HEAD = 5
"""The letters of a word that may end a compound, at least: `Kundenfrage`."""


def words_of(*meanings: str) -> frozenset[str]:
    """The words that have one of these meanings."""
    return frozenset(word for word, senses in _words()[0].items() if not senses.isdisjoint(meanings))


def letters(text: str) -> str:
    """A text in lower case, without marks above and below its letters."""
    plain = unicodedata.normalize("NFKD", text.casefold()).translate(_UNMARKED)
    return "".join(c for c in plain if not unicodedata.combining(c))


_UNMARKED = str.maketrans("łıø", "lio")


@lru_cache(maxsize=4096)
def meanings_of(name: str) -> tuple[Meanings, bool]:
    """The meanings of the words of a name, and whether each of its words has one."""
    words = _split(name)[:_MOST_WORDS]
    meanings: set[str] = set()
    start, sure = 0, bool(words)
    while start < len(words):
        for end in range(min(len(words), start + 4), start, -1):
            known = _meanings("".join(words[start:end])) if end > start + 1 else None
            if known:
                break
        else:
            known, is_whole = _of_parts(words[start])
            end, sure = start + 1, sure and is_whole
        meanings |= known
        start = end
    return frozenset(meanings) - {"filler"}, sure


_MOST_WORDS = 12
_LONGEST = 40
"""The words of a name, and the letters of one, that are looked at: longer ones are no names."""


def _split(name: str) -> list[str]:
    spaced = "".join(
        f" {c}" if c.isupper() and i and name[i - 1].islower() else c if unicodedata.category(c)[0] in "LM" else " "
        for i, c in enumerate(name[: _MOST_WORDS * _LONGEST])
    )
    words = [letters(word)[:_LONGEST] for word in spaced.split()]
    return [word for word in words if word[1:] or not any(c.isdigit() for c in name)]  # `q-1` is an ID


def _meanings(word: str) -> Meanings:
    words, begins, _ = _words()
    return words.get(word) or frozenset(
        m for begin, m in begins if word.startswith(begin) and len(word) <= len(begin) + _ENDING
    )


def _of_parts(word: str) -> tuple[Meanings, bool]:
    """The meanings of a word, or of the words that are written as one, and whether nothing else is in it."""
    if known := _meanings(word):
        return known, True
    if not word.isascii():
        return _of_script(word)
    if (parts := _all_parts(word)) is not None:
        return parts, True
    words, _, heads = _words()
    for start in range(1, len(word) - _HEAD + 1):
        if word[start:] in heads:
            first = next((m for end in range(start, 3, -1) if (m := _meanings(word[:end]))), _NONE)
            return words[word[start:]] | first, bool(first)
    return _NONE, False


def _all_parts(word: str) -> Meanings | None:
    """The meanings of the words that make up a word, all of its letters."""
    words = _words()[0]
    reached: dict[int, Meanings] = {0: _NONE}
    for end in range(1, len(word) + 1):
        for start, before in list(reached.items()):
            part = word[start:end]
            if (len(part) > 2 or (part == "id" and end == len(word))) and part in words:
                reached[end] = reached.get(end) or before | words[part]
    return reached.get(len(word))


def _of_script(word: str) -> tuple[Meanings, bool]:
    """The meanings of a text without spaces: at each place those of the longest known word."""
    words = _words()[0]
    meanings: Meanings = _NONE
    start, sure = 0, True
    while start < len(word):
        end = next((end for end in range(len(word), start, -1) if word[start:end] in words), None)
        meanings, sure = meanings | words.get(word[start:end], _NONE), sure and end is not None
        start = start + 1 if end is None else end
    return meanings, sure
