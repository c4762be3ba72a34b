"""What is known of a source before its rows are read, and what each reading of it returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from agent_eval_schema.cells.cells import native_rows
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import source as source_
from agent_eval_schema.io.source import Batches, Share, units_of
from tests.conftest import KINDS


@pytest.mark.parametrize("looked_at", [True, False])
def test_every_batch_of_every_reading_has_the_columns_of_the_head(
    looked_at: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_, "MAX_BATCH_ROWS", 10)
    source = open_source([{"request": "Hi"} | ({"tags": {"a": 1}} if i == 15 else {}) for i in range(100)])
    if looked_at:
        head = source.head()
        assert head is not None
        assert head.schema.names == ["request", "tags"]
    for _ in range(2):
        batches = list(source.batches())
        assert [batch.num_rows for batch in batches] == [10] * 10
        assert {tuple(batch.schema.names) for batch in batches} == {("request", "tags")}


def test_a_head_is_read_once_and_is_part_of_the_next_reading() -> None:
    opened = []

    def read() -> Iterator[pa.RecordBatch]:
        opened.append(len(opened))
        yield from (pa.RecordBatch.from_pydict({"a": [i]}) for i in range(3))

    batches = Batches(read, ragged=False)
    first = batches.head()
    assert first is not None
    assert first.to_pydict() == {"a": [0]}
    assert [batch.column(0)[0].as_py() for batch in batches()] == [0, 1, 2]
    assert opened == [0]
    assert [batch.column(0)[0].as_py() for batch in batches()] == [0, 1, 2]
    assert opened == [0, 1]


def test_a_source_is_shown_by_its_name_or_its_kind() -> None:
    assert repr(open_source([{"request": "Hi"}])) == "<Source: list>"
    assert repr(open_source("sample_data/good.jsonl")) == "<Source: sample_data/good.jsonl>"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_each_batch_of_a_file_belongs_to_one_of_several_workers(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_, "MAX_BATCH_ROWS", 5)
    path = KINDS[kind]([{"request": f"q{i}"} for i in range(23)], tmp_path)
    units = [(u, b) for n in range(3) for u, b in units_of(open_source(path), Share(n, 3, head_start=0))]
    rows = [row for _, batch in sorted(units, key=lambda unit: unit[0]) for row in native_rows(batch)]
    assert rows == [{"request": f"q{i}"} for i in range(23)]
    alone = list(units_of(open_source(path), Share(0, 3)))
    assert sum(batch.num_rows for _, batch in alone) == 23, "a small file is read by one worker"
