"""Which keys were seen before, at a few bytes a key: sorted runs of 64-bit hashes that are merged as they grow.

A dict of a hundred million ids would take ten gigabytes; this takes 16 bytes an id, and a batch is looked up with a few
binary searches.
"""

import hashlib
import string
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple
from unicodedata import category, is_normalized, normalize

import numpy as np
import pyarrow as pa
import xxhash

from agent_eval_schema.cells.arrow import Array as Array
from agent_eval_schema.cells.arrow import text_views

Texts = Sequence[bytes | memoryview]


def hash_texts(texts: Sequence[str | bytes | None]) -> tuple[Array, Array | None]:
    """A 64-bit hash of each text, the same on every machine; and, if some texts are absent, which."""
    absent = np.array([t is None for t in texts], bool) if None in texts else None
    encoded: list[bytes]
    try:
        encoded = [t if t.__class__ is bytes else t.encode() if t else b"" for t in texts]  # type: ignore[union-attr]
    except UnicodeEncodeError:  # a lone surrogate
        encoded = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else t or b"" for t in texts]
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(texts)), absent


def hashes_of(texts: Sequence[str | bytes | None]) -> Array:
    """The hashes of texts; 0 of an absent one."""
    hashes, absent = hash_texts(texts)
    if absent is not None:
        hashes[absent] = 0
    return hashes


def hash_array(texts: pa.Array) -> pa.Array:
    """The same of an array of texts, without a Python string for each: uint64, null where the text is."""
    return _hashed(texts, lambda values: values)


def hash_words(texts: pa.Array) -> pa.Array:
    """A hash of each text without differences of case, of width and composition, of blanks and of punctuation, so that
    questions that are worded alike have the same. A hyphen may be a minus, and symbols are words (`C++`)."""
    return _hashed(texts, _words)


def _hashed(texts: pa.Array, keys: Callable[[Texts], Texts]) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.uint64())
    absent = np.asarray(texts.is_null()) if texts.null_count else None
    if texts.nbytes > _LARGE * len(texts):
        cells = [text or b"" for text in text_views(texts)]
    else:
        cells = (texts if absent is None else texts.fill_null("")).cast(pa.large_binary()).to_pylist()
    values = chain.from_iterable(keys(cells[at : at + _AT_ONCE]) for at in range(0, len(cells), _AT_ONCE))
    return pa.array(np.fromiter(map(xxhash.xxh3_64_intdigest, values), np.uint64, len(cells)), mask=absent)


def _words(texts: Texts) -> Texts:
    """The words of each text, a blank between them. One text of all lines is read a few times by functions of C, which
    takes a quarter of the time that a regular expression takes."""
    words = _NO_UTF8.join(texts)
    letters = _letters(words) if np.count_nonzero(np.frombuffer(words, np.int8) < 0) >= len(texts) else set[str]()
    if not all(map(_is_normal, letters)):
        words = normalize("NFKC", words.decode(errors=_KEPT)).encode(errors=_KEPT)
        letters = _letters(words)
    words = _folded(words, letters)
    for escaped in (b"\\n", b"\\r", b"\\t") if b"\\" in words else ():  # of JSON text
        words = words.replace(escaped, b" ")
    signs = np.frombuffer(words.translate(_BLANKS_AND_LINES), np.uint8)
    needed = signs != ord(" ")
    needed[:-1] |= needed[1:]
    return list(map(bytes.strip, bytes(signs[needed]).split(b"\n")))


def _letters(words: bytes) -> set[str]:
    """The signs that are not ASCII."""
    return set(words.translate(None, _ASCII_AND_LINES).decode(errors=_KEPT))


def _is_normal(sign: str) -> bool:
    """Whether NFKC leaves a sign as it is, whatever is beside it: no mark, and no vowel or final of Hangul."""
    is_joined = category(sign)[0] == "M" or "\u1160" <= sign <= "\u11ff"
    return not is_joined and is_normalized("NFKC", sign)


def _folded(words: bytes, letters: set[str]) -> bytes:
    """The words without differences of case but those of ASCII. Python folds a text that is not ASCII sign by sign; few
    signs have a case, and to replace them where they are takes a tenth of the time."""
    folded = {sign.encode(): fold.encode() for sign in letters if (fold := _fold(sign)) != sign}
    if not folded:
        return words
    if len(folded) > _FEW or any(len(old) != len(new) for old, new in folded.items()):
        words = words.decode(errors=_KEPT).casefold().encode(errors=_KEPT)
        folded = {sign.encode(): _fold(sign).encode() for sign in _WIDE_SIGNS}
    signs = np.frombuffer(bytearray(words + b"   "), np.uint8)
    at = np.flatnonzero(signs >= 0xC2)
    codes = signs[at[:, None] + np.arange(4)].view(">u4")[:, 0]
    for old, new in folded.items():
        places = at[codes >> 8 * (4 - len(old)) == int.from_bytes(old, "big")]
        for offset, byte in enumerate(new):
            signs[places + offset] = byte
    return bytes(signs[:-3])


def _fold(sign: str) -> str:
    """A sign without its case; blanks for one that NFKC leaves: it makes wide forms, as of Chinese, and other blanks
    plain."""
    return " " * len(sign.encode()) if sign in _WIDE_SIGNS else sign.casefold()


_LARGE = 1_000
"""Bytes per text from which on it takes longer to copy it than to make a view of it."""
_FEW = 40
_AT_ONCE = 1024
"""Texts that are read together: their words stay in the processor's cache."""
_NO_UTF8, _KEPT = b"\xff", "surrogateescape"
_ASCII_AND_LINES = bytes(range(128)) + _NO_UTF8
_WIDE_SIGNS = "\u1680\u2028\u2029。、،؟¿¡‘’“”„«»"
_SIGNS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f.,:;!?\"'`()[]{}\\"
_BLANKS_AND_LINES = bytes.maketrans(
    _SIGNS + string.ascii_uppercase.encode() + _NO_UTF8, b" " * len(_SIGNS) + string.ascii_lowercase.encode() + b"\n"
)


def seeded_hashes(texts: Sequence[str | bytes | None], seed: int) -> Array:
    """A hash (int64) of each text under a seed, the same in every process and on every machine: who is drawn for a
    sample does not depend on who draws. Absent texts count as empty."""
    import pandas as pd

    key = hashlib.blake2b(str(seed).encode(), digest_size=8).hexdigest()
    filled = np.array(["" if t is None else t for t in texts], dtype=object)
    return np.asarray(pd.util.hash_array(filled, hash_key=key, categorize=False)).view(np.int64)


def joined(labels: Array, one: Array, other: Array) -> Array:
    """The labels (the first member of each group) after these pairs were found to be alike."""
    while len(one):
        low, high = np.minimum(labels[one], labels[other]), np.maximum(labels[one], labels[other])
        labels = labels.copy()
        np.minimum.at(labels, high, low)
        while (further := labels[labels]).tobytes() != labels.tobytes():
            labels = further
        apart = labels[one] != labels[other]
        one, other = one[apart], other[apart]
    return labels


class _Run(NamedTuple):
    keys: Array  # uint64, sorted, unique
    rows: Array  # uint32 (4 billion rows)
    payloads: Array  # uint32


class FirstSeen:
    """For each key the row where it was first seen, and 32 bits that were noted there."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def add(self, keys: Array, rows: Array, payloads: Array) -> tuple[Array, Array]:
        """Look up keys in the order of their rows, then remember them.

        Returns for each key the earlier row that had it (-1 if none) and that row's payload.
        """
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        found, found_payloads = np.full(len(unique), -1, np.int64), np.zeros(len(unique), np.uint32)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run.keys, unique), len(run.keys) - 1)
            hit = run.keys[at] == unique
            found[hit], found_payloads[hit] = run.rows[at][hit], run.payloads[at][hit]
        new = found < 0
        home = np.where(new, rows[first], found)
        payload = np.where(new, payloads[first], found_payloads)
        self._push(_Run(unique[new], rows[first][new].astype(np.uint32), payloads[first][new].astype(np.uint32)))
        earlier, payload = home[inverse], payload[inverse]
        return np.where(earlier == rows, -1, earlier), payload

    def _push(self, run: _Run) -> None:
        """Add a run; runs of like size are merged, so that there are few of them (a binary counter)."""
        if not len(run.keys):
            return
        while self._runs and len(self._runs[-1].keys) <= 2 * len(run.keys):
            one = self._runs.pop()
            keys = np.concatenate([one.keys, run.keys])
            order = np.argsort(keys, kind="stable")
            keys = keys[order]  # one column after the other: no more than one is in memory twice
            rows = np.concatenate([one.rows, run.rows])[order]
            run = _Run(keys, rows, np.concatenate([one.payloads, run.payloads])[order])
        self._runs.append(run)
