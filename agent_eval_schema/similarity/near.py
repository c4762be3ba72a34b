"""Which questions are near duplicates: sets of shingles whose Jaccard similarity reaches a threshold.

    shingles ──minima of random permutations, ROWS per band──▶ buckets ──▶ pairs ──exact similarity──▶ groups

MinHash (Broder 1997) with the banding of locality-sensitive hashing: two sets share the minimum of a permutation with a
probability that is their similarity, and a bucket if they share all minima of a band. There are as many bands as find
98 % of the pairs that are just at the threshold. In a bucket each set is compared with the first one and with the one
before it, so that the time grows with the number of questions, however many are alike; sets that shared the bucket of
the last band too are beside each other.

Written on flat arrays, as the libraries for it keep one Python object or one list of integers per question.
"""

import math
from collections.abc import Iterator

import numpy as np

from agent_eval_schema.cells.hashing import Array, joined

NEAR = 0.7
"""The similarity from which on two questions are near duplicates, by default."""

ROWS = 4
FOUND = 0.98
"""Permutations per band, and the share of the pairs at the threshold that the bands are to find."""

CHUNK = 1 << 18
"""Questions whose minima are taken, and pairs that are compared, at once."""


def bands_for(threshold: float) -> int:
    """The bands that find pairs of this similarity."""
    return max(1, math.ceil(math.log(1 - FOUND) / math.log(1 - threshold**ROWS))) if threshold < 1 else 1


def repeats(exact: Array, chosen: Array, shingles: Array, ends: Array, threshold: float) -> tuple[Array, Array]:
    """For each question the first one with the same words (`exact` are their hashes), and the first one of its group of
    similar ones. Those that are not `chosen` are alone."""
    # for each question the first one with the same hash; those that are not chosen are their own
    firsts, rows = np.arange(len(exact)), np.flatnonzero(chosen)
    _, index, inverse = np.unique(exact[rows], return_index=True, return_inverse=True)
    firsts[rows] = rows[index[inverse]]
    alone = np.flatnonzero(chosen & (firsts == np.arange(len(firsts))))
    sizes = np.diff(ends)
    mask = np.zeros(len(sizes), bool)
    mask[alone] = True
    if np.any(sizes[~mask]):
        shingles = shingles[np.repeat(mask, sizes)]
    groups = near_groups(shingles, np.concatenate([[0], np.cumsum(sizes[alone])]), threshold)
    return firsts, joined(firsts, alone, alone[groups])


def near_groups(shingles: Array, ends: Array, threshold: float) -> Array:
    """For each set the first one of its group, which is itself if it has none. Sets without a shingle are alone.
    Pairs make groups: two sets of a group may be less alike than the threshold, if others are between them."""
    labels = np.arange(len(ends) - 1)
    filled = np.flatnonzero(np.diff(ends) > 0)
    random = np.random.default_rng(0)
    before = np.zeros(len(filled), np.uint64)
    for _ in range(bands_for(threshold)):
        factors = random.integers(0, 1 << 63, (2, ROWS), np.uint64)
        keys = np.concatenate([*_keys(shingles, ends, filled, factors), np.zeros(0, np.uint64)])
        one, other = _pairs(keys, before, filled)
        before = keys
        apart = labels[one] != labels[other]
        one, other = one[apart], other[apart]
        for start in range(0, len(one), CHUNK):
            pairs = one[start : start + CHUNK], other[start : start + CHUNK]
            alike = similarity(shingles, ends, *pairs) >= threshold
            labels = joined(labels, pairs[0][alike], pairs[1][alike])
    return labels


def _keys(shingles: Array, ends: Array, filled: Array, factors: Array) -> Iterator[Array]:
    """The bucket of each set that is not empty, in chunks."""
    for start in range(0, len(filled), CHUNK):
        some = filled[start : start + CHUNK]
        first, last = ends[some[0]], ends[some[-1] + 1]
        values, offsets = shingles[first:last].astype(np.uint64), ends[some] - first
        keys = np.zeros(len(some), np.uint64)
        for factor, term in factors.T.tolist():
            mixed = (values + np.uint64(1)) * np.uint64(factor | 1) + np.uint64(term)
            minima = np.minimum.reduceat(mixed >> np.uint64(20), offsets)
            keys = (keys ^ minima) * np.uint64(0x9E3779B97F4A7C15)
        yield keys


def _pairs(keys: Array, before: Array, places: Array) -> tuple[Array, Array]:
    """Of each bucket every set with the first one and with the one before it, in the order of the buckets `before`."""
    order = np.lexsort((before, keys))
    keys, places = keys[order], places[order]
    same = np.concatenate([np.zeros(1, bool), keys[1:] == keys[:-1]]) if len(keys) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(keys))))
    at = np.flatnonzero(same)
    further = at[first[at] != at - 1]
    return np.concatenate([places[at - 1], places[first[further]]]), np.concatenate([places[at], places[further]])


def similarity(shingles: Array, ends: Array, one: Array, other: Array) -> Array:
    """The Jaccard similarity of each pair of sets."""
    sizes = np.diff(ends)
    keys = np.concatenate([_tagged(shingles, ends, one), _tagged(shingles, ends, other)])
    keys.sort()
    shared = np.bincount((keys[1:][keys[1:] == keys[:-1]] >> np.uint64(32)).astype(np.int64), minlength=len(one))
    jaccard: Array = shared / np.maximum(sizes[one] + sizes[other] - shared, 1)
    return jaccard


def _tagged(shingles: Array, ends: Array, sets: Array) -> Array:
    """The shingles of each set, each with the place of the set in front."""
    sizes = ends[sets + 1] - ends[sets]
    tags = np.repeat(np.arange(len(sets)), sizes)
    within = np.arange(len(tags)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    keys: Array = (tags.astype(np.uint64) << np.uint64(32)) | shingles[np.repeat(ends[sets], sizes) + within]
    return keys
