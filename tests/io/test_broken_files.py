"""A file whose bytes were damaged is read, or told in one line, whatever kind of file it is, wherever the damage is."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_eval_schema.cli import main

pytestmark = pytest.mark.process

ROWS = [
    {
        "request": f"question {i}",
        "response": "answer " * (i % 9),
        "retrieved_context": [{"doc_uri": "u", "content": "é"}],
    }
    for i in range(60)
]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def parquet(compression: str, dictionary: bool) -> Callable[[Path], None]:
    return lambda path: pq.write_table(
        pa.Table.from_pylist(ROWS), path, compression=compression, use_dictionary=dictionary, row_group_size=25
    )


KINDS: dict[str, Callable[[Path], object]] = {
    "snappy.parquet": parquet("snappy", True),
    "zstd.parquet": parquet("zstd", False),
    "plain.parquet": parquet("none", False),
    "dictionary.parquet": parquet("none", True),
    "rows.jsonl": lambda path: path.write_bytes(LINES),
    "rows.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINES)),
    "rows.jsonl.bz2": lambda path: path.write_bytes(bz2.compress(LINES)),
    "rows.jsonl.zst": lambda path: path.write_bytes(pa.compress(LINES, "zstd", asbytes=True)),
    "rows.json": lambda path: path.write_text(json.dumps(ROWS)),
    "rows.csv": lambda path: path.write_bytes(b"request,response\n" + b'"what, ""is"" it",an answer\n' * 60),
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The file with other bytes in some places, cut off, or with a hole."""
    broken, at = bytearray(data), chance.randrange(len(data))
    if chance.random() < 0.7:
        for _ in range(chance.choice([1, 1, 2, 8])):
            broken[chance.randrange(len(data))] = chance.randrange(256)
    elif chance.random() < 0.5:
        del broken[at:]
    else:
        del broken[at : at + chance.randrange(20)]
    return bytes(broken)


@pytest.mark.parametrize("name", KINDS)
def test_damage_is_read_or_told(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    KINDS[name](path)
    data, chance, codes = path.read_bytes(), random.Random(name), set()
    for _ in range(60):
        path.write_bytes(damaged(data, chance))
        codes.add(main(["validate", str(path)]))
        told = capsys.readouterr().err
        assert "internal error" not in told, path.read_bytes()
        assert told.count("\n") <= 1
    path.write_bytes(data)
    assert main(["validate", str(path)]) == 0
    assert codes & {1, 2}, "no damage was seen"
