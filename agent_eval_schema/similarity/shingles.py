"""Questions → what of them is compared: normalized words, one hash of them all, and hashes of pairs of words.

    "Hi, how do I reset my VPN password?"  →  hi how do i reset my vpn password  →  hi how, how do, do i, i reset, …

Normalized are width and composition of characters (NFKC), case, punctuation and blanks. Where a script has no blanks
between words, each character is a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.cells.hashing import Array, hash_texts

MOST_SHINGLES = 256
"""Of a longer text the smallest hashes are kept, which are a sample that is drawn alike of every text."""


class Shingled(Struct, frozen=True):
    """What is compared of some questions: a hash of each one's words, 0 if it has none, the number of its words, and
    the sorted hashes (uint32) of its pairs of words, those of question i from `ends[i]` to `ends[i + 1]`."""

    exact: Array
    words: Array
    shingles: Array
    ends: Array


def normalized(texts: Sequence[str | None]) -> pa.Array:
    """The words of each text, separated by one blank."""
    found = pc.utf8_lower(pc.utf8_normalize(pa.array(texts, pa.string()), form="NFKC"))
    found = pc.replace_substring_regex(found, r"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}])", r" \1 ")
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(found, r"[^\p{L}\p{M}\p{N}]+", " ")).fill_null("")


def shingled(texts: Sequence[str | None], beside: Sequence[str | None] = ()) -> Shingled:
    """What is compared of these questions. Two of them have nothing in common if they differ in what is given
    `beside` them."""
    whole = normalized(texts)
    exact, _ = hash_texts(whole.to_pylist())
    empty = np.asarray(pc.equal(whole, ""))
    seeds = np.zeros(len(texts), np.uint64)
    if any(beside):
        seeds, absent = hash_texts(beside)
        seeds[absent if absent is not None else []] = 0
        exact ^= seeds
    exact[empty] = 0
    words = pc.split_pattern(whole, " ")
    counts = np.where(empty, 0, np.asarray(pc.list_value_length(words)))
    flat = words.flatten().dictionary_encode()
    hashes = hash_texts(flat.dictionary.to_pylist())[0][np.asarray(flat.indices)]
    hashes = hashes[np.repeat(~empty, np.asarray(pc.list_value_length(words)))]
    before = np.concatenate([np.zeros(1, np.uint64), hashes[:-1]])
    starts = bounds(counts)[:-1]
    before[starts[counts > 0]] = 0  # of a single word; where there are pairs, the first word is only in its pair
    paired = np.ones(len(hashes), bool)
    paired[starts[counts > 1]] = False
    pairs = before * np.uint64(0x9E3779B97F4A7C15) ^ hashes ^ np.repeat(seeds, counts)
    pairs = (pairs ^ (pairs >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    sizes = np.where(counts > 1, counts - 1, counts)
    shingles, ends = _sets((pairs >> np.uint64(32)).astype(np.uint32)[paired], sizes)
    return Shingled(exact, counts.astype(np.int64), shingles, ends)


def _sets(values: Array, counts: Array) -> tuple[Array, Array]:
    """The values of each question sorted, each once, and no more than MOST_SHINGLES."""
    rows = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    keys = (rows << np.uint64(32)) | values
    keys.sort()  # np.unique would hash them first, in fifty times the time
    keys = keys[np.concatenate([np.ones(min(len(keys), 1), bool), keys[1:] != keys[:-1]])]
    rows = (keys >> np.uint64(32)).astype(np.int64)
    ends = bounds(np.bincount(rows, minlength=len(counts)))
    place = np.arange(len(keys)) - ends[rows]
    kept = place < MOST_SHINGLES
    return (keys[kept] & np.uint64(0xFFFFFFFF)).astype(np.uint32), bounds(
        np.bincount(rows[kept], minlength=len(counts))
    )


MIN_WORDS = 4
"""Fewer words may be in any text."""


def contained(parts: Sequence[str], texts: Sequence[str]) -> list[list[int]]:
    """For each part of at least MIN_WORDS words, the places of the normalized texts that contain it word for word."""
    padded = [f" {text} " for text in texts]
    return [
        [i for i, text in enumerate(padded) if f" {words} " in text] if words.count(" ") >= MIN_WORDS - 1 else []
        for words in normalized(parts).to_pylist()
    ]
