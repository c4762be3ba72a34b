"""The facts of all rows, added batch by batch: a few numbers per row, and counts of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agent_eval_schema.cells.arrow import bounds
from agent_eval_schema.cells.hashing import Array, hash_array
from agent_eval_schema.io.source import Source
from agent_eval_schema.profile.row_facts import (
    EARLIER_MESSAGE,
    NAMES,
    SYSTEM_PROMPT,
    TEXTS,
    column_of,
    fact,
    fact_batch,
)
from agent_eval_schema.runtime.progress import ProgressDisplay, progress
from agent_eval_schema.validation.checked_batch import verdict
from agent_eval_schema.validation.checked_run import CheckedRun
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report import Report

PER_ROW = ("exact", "words", "session", "document", "chunks", *(f"{name}_length" for name in TEXTS))
DAY = 86_400 * 1_000_000


class Facts:
    """What is known of the rows that a run checks. Arrays have one entry per row; counts are of valid rows. `format` is
    that of the data, of which the plan reads the rows."""

    def __init__(self, run: CheckedRun, documents: frozenset[str] | None) -> None:
        self.run, self.source, self.plan = run, run.source, run.plan
        self.format = run.plan.format
        self.row_count = 0
        self._columns: dict[str, list[Array]] = {name: [] for name in (*PER_ROW, "truth", "id")}
        self._shingles: list[Array] = []
        self._sizes: list[Array] = []
        self.names = {name: Counter[str]() for name in NAMES}
        self.scripts, self.turns, self.days = Counter[str](), Counter[int](), Counter[int]()
        self.in_prompt: dict[str, list[int]] = {SYSTEM_PROMPT: [], EARLIER_MESSAGE: []}
        self.found: dict[int, list[int]] = {}
        self.guideline_rows = self.unknown_documents = 0
        self.has_documents = documents is not None
        self._documents = None if documents is None else pa.array(sorted(documents), pa.string())

    def add(self, facts: pa.RecordBatch) -> None:
        """Take in the facts of the next rows."""
        start = self.row_count
        self.row_count += facts.num_rows
        valid = np.asarray(verdict(facts, "valid")).astype(bool)
        for name in PER_ROW:
            self._columns[name].append(column_of(facts, name).copy())
        self._columns["truth"].append(np.asarray(verdict(facts, "truth_hash").fill_null(0)).copy())
        self._columns["id"].append(np.asarray(hash_array(verdict(facts, "id")).fill_null(0)))
        shingles = fact(facts, "shingles")
        sizes = np.asarray(pc.list_value_length(shingles)).astype(np.int64)
        self._shingles.append(np.asarray(shingles.flatten())[np.repeat(valid, sizes)])
        self._sizes.append(np.where(valid, sizes, 0))
        self._count(facts, valid, start)

    def _count(self, facts: pa.RecordBatch, valid: Array, start: int) -> None:
        kept = pa.array(valid)
        for name in NAMES:
            self.names[name].update(_counts(fact(facts, name).filter(kept).flatten()))
        guidelines = pc.list_value_length(fact(facts, "guidelines").filter(kept)).fill_null(0)
        self.guideline_rows += int(np.count_nonzero(np.asarray(guidelines)))
        if self._documents is not None:
            self.unknown_documents += _outside(fact(facts, "uris_expected").filter(kept), self._documents)
        self.scripts.update(_counts(fact(facts, "script").filter(kept)))
        self.turns.update(_counts(fact(facts, "turns").filter(kept)))
        moments = np.asarray(fact(facts, "moment").filter(kept).drop_null())
        self.days.update((moments // DAY).tolist())
        for row in np.flatnonzero(valid & np.asarray(fact(facts, "in_prompt").is_valid())).tolist():
            self.in_prompt[fact(facts, "in_prompt")[row].as_py()].append(start + row)
        found = fact(facts, "found")
        for row in np.flatnonzero(valid & (np.asarray(pc.list_value_length(found).fill_null(0)) > 0)).tolist():
            for code in found[row].as_py():
                self.found.setdefault(code, []).append(start + row)

    def array(self, name: str) -> Array:
        """A column of all rows: the numbers of PER_ROW, and the hashes (0: absent) of `truth` and `id`."""
        parts = self._columns[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0] if parts else np.zeros(0, np.uint64)

    @cached_property
    def shingles(self) -> tuple[Array, Array]:
        """The shingles of the questions of valid rows, and where those of each row end."""
        sizes = np.concatenate([*self._sizes, np.zeros(0, np.int64)])
        flat, end = np.zeros(int(sizes.sum()), np.uint32), 0
        for part in _taken(self._shingles):  # they may be a gigabyte, which is not to be there twice
            flat[end : end + len(part)] = part
            end += len(part)
        return flat, bounds(sizes)

    @cached_property
    def report(self) -> Report:
        """The validation report, when all rows were added."""
        return Report(self.run)

    @property
    def valid(self) -> Array:
        return self.run.builder.valid

    @cached_property
    def masks(self) -> Array:
        return self.run.builder.masks

    def clusters(self) -> Array:
        """A number per row; rows of one session, or without one of one expected document, have the same."""
        session, document = self.array("session"), self.array("document")
        keys = np.where(session != 0, session, document).astype(np.uint64)
        alone = keys == 0
        keys[alone] = np.arange(np.count_nonzero(alone), dtype=np.uint64)
        _, codes = np.unique(keys, return_inverse=True)
        codes[alone] += len(keys)  # a row by itself is no part of a cluster whose hash happens to be its number
        return np.unique(codes, return_inverse=True)[1]

    def cluster_words(self) -> str:
        """What the clusters are, "" if there are none."""
        kinds = {"session": self.array("session"), "expected document": self.array("document")}
        present = {name: hashes[self.valid & (hashes != 0)] for name, hashes in kinds.items()}
        return " or ".join(name for name, hashes in present.items() if len(np.unique(hashes)) < len(hashes))


def gather(
    source: Source,
    plan: Plan,
    texts: tuple[str, ...] = (),
    documents: frozenset[str] | None = None,
    screen: ProgressDisplay | None = None,
    tokenizer: str | None = None,
) -> Facts:
    """The facts of all rows of a source, made where the rows are. With a list of documents, rows that expect another
    one are counted; with a tokenizer the tokens of the texts are, else their bytes."""
    run = CheckedRun(source, plan, check=partial(fact_batch, texts=texts, tokenizer=tokenizer))
    facts = Facts(run, documents)
    with progress(source.read_share, screen) as so_far:
        for batch in run.batches():
            facts.add(batch)
            so_far.add(batch.num_rows)
    return facts


def _taken(parts: list[Array]) -> Iterator[Array]:
    """The parts, in their order; each is gone from the list."""
    parts.reverse()
    while parts:
        yield parts.pop()


def _outside(lists: pa.Array, known: pa.Array) -> int:
    """The lists with a value that is not known."""
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0))
    unknown = ~np.asarray(pc.is_in(lists.flatten(), value_set=known)).astype(bool)
    return len(np.unique(np.repeat(np.arange(len(lists)), lengths)[unknown]))


def _counts(values: pa.Array) -> dict[Any, int]:
    return {e["values"]: e["counts"] for e in values.drop_null().value_counts().to_pylist()}
