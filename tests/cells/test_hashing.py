"""Keys of texts that are worded alike, by the plain way: a regular expression over each text."""

from __future__ import annotations

import re
from unicodedata import normalize

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.cells.hashing import hash_array, hash_texts, hash_words

BETWEEN_WORDS = re.compile(r"(\\[nrt]|[\s.,:;!?。、،؟¿¡\"'`‘’“”„«»()\[\]{}\\])+")
LETTERS = (
    "abenrtXÉßΣ가語-+ \\\n\t.,:;!?\"'`()[]{}。、،؟¿¡‘’“”„«»\u1680\u2028\u3000\u00a0Ａ！½\0\u0301\u1100\u1161\u11a8"
)
"""Among them an accent, and the parts of a letter of Hangul."""


def plainly(text: str) -> str:
    return BETWEEN_WORDS.sub(" ", normalize("NFKC", text).casefold()).strip()


@pytest.mark.property
@given(st.lists(st.one_of(st.none(), st.text(LETTERS), st.text()), max_size=9))
def test_texts_have_the_same_words_if_a_regular_expression_finds_the_same(texts: list[str | None]) -> None:
    texts = [t for t in texts if t is None or t.isprintable() or set(t) <= set(LETTERS)]
    plain = [None if t is None else plainly(t) for t in texts]
    assert hash_words(pa.array(texts, pa.string())).equals(hash_array(pa.array(plain, pa.string())))


@pytest.mark.parametrize("parts", ["e\u0301", "\u1100\u1161", "가\u11a8", "Ａ"])
def test_letters_that_are_written_in_parts_are_those_that_are_not(parts: str) -> None:
    assert hash_words(pa.array([parts])).equals(hash_words(pa.array([normalize("NFKC", parts)])))


def test_a_lone_surrogate_changes_the_hash_of_no_other_text() -> None:
    texts = ["a", b"b", None, ""]
    hashes, absent = hash_texts(["\ud800", *texts])
    assert hashes[1:].tolist() == hash_texts(texts)[0].tolist()
    assert absent is not None
    assert absent.tolist() == [False, False, False, True, False]
    assert len({*hashes.tolist()}) == 4


def test_a_text_between_others_keeps_its_row() -> None:
    texts = pa.array(["", "?!", "A b.", None, " a\nB", "a\0b", "ä", " Ä"])
    assert (
        hash_words(texts).to_pylist()
        == hash_array(pa.array(["", "", "a b", None, "a b", "a\0b", "ä", "ä"])).to_pylist()
    )


def test_many_letters_with_a_case_are_folded() -> None:
    texts = ["".join(map(chr, range(first, first + 900))) for first in (0xC0, 0x370, 0x10400)]
    assert hash_words(pa.array(texts)).equals(hash_array(pa.array(map(plainly, texts))))
