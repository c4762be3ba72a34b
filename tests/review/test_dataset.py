"""Batches that are kept for long."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.review import dataset
from agent_eval_schema.review.dataset import Reviewed

BATCH = pa.record_batch({"text": ["a" * 1000] * 1000})


def test_later_batches_take_no_memory_and_leave_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(dataset, "IN_MEMORY", BATCH.nbytes)
    kept = dataset.Shelf()
    assert kept.put(BATCH) is BATCH
    before = pa.total_allocated_bytes()
    others = [kept.put(BATCH.slice(1)) for _ in range(3)]
    assert pa.total_allocated_bytes() - before < BATCH.nbytes
    assert others == [BATCH.slice(1)] * 3
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]
    del kept
    assert others == [BATCH.slice(1)] * 3
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_leaves_the_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dataset, "IN_MEMORY", 0)
    monkeypatch.setattr(dataset, "write_one", full)
    assert dataset.Shelf().put(BATCH) is BATCH


def test_the_rows_of_a_review_and_what_is_searched_in_them_are_kept_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "IN_MEMORY", 0)
    before = pa.total_allocated_bytes()
    reviewed = Reviewed(open_source([{"request": f"Where is {n}?", "response": "a" * 10_000} for n in range(1000)]))
    assert pa.total_allocated_bytes() - before < 5_000_000
    assert sum(batch.nbytes for batch in reviewed.batches) > 10_000_000
    assert reviewed.batch_of(999).column("request").to_pylist() == ["Where is 999?"]
