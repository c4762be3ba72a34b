"""Delta tables made by hand, after the protocol: what the tables of an AI Gateway have and delta-rs cannot write.

Reader version 3, writer version 7; deletion vectors (in a file of their own or inside the log), row tracking,
clustering, v2 checkpoints. The format: github.com/delta-io/delta, PROTOCOL.md; that of the bitmaps:
github.com/RoaringBitmap/RoaringFormatSpec.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Action = dict[str, Any]

READER_FEATURES = ["deletionVectors", "v2Checkpoint"]
WRITER_FEATURES = [*READER_FEATURES, "rowTracking", "domainMetadata", "clustering", "appendOnly", "invariants"]

TYPES = {
    pa.string(): "string",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


class DataFile(NamedTuple):
    """One file of a table: its rows, and the places of those that were deleted since."""

    rows: pa.Table
    deleted: Sequence[int] = ()


def make_delta(
    folder: Path, files: Iterable[DataFile], *, inline: bool = False, checkpoint: bool = False, row_group: int = 1 << 20
) -> str:
    """Write a table whose log has one commit, or (`checkpoint`) a v2 checkpoint in its place and an empty commit after
    it. Deletion vectors are written into the log (`inline`) or into files beside the data."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    adds, first = list[Action](), 0
    for number, file in enumerate(files):
        adds.append(_add(folder, number, file, first, inline, row_group))
        first += len(file.rows)
        schema = file.rows.schema
    actions = [_protocol(), _metadata(schema), _clustering(schema.names[0]), *adds]
    if checkpoint:
        head = [{"checkpointMetadata": {"version": 0}}]
        _write(log / f"{0:020}.checkpoint.{uuid.uuid4()}.json", head + actions)
        actions = [{"commitInfo": {"timestamp": 1, "operation": "OPTIMIZE", "operationParameters": {}}}]
    _write(log / f"{int(checkpoint):020}.json", actions)
    return str(folder)


def _write(path: Path, actions: Iterable[Action]) -> None:
    path.write_text("".join(f"{json.dumps(a)}\n" for a in actions), encoding="utf-8")


def _protocol() -> Action:
    features = {"readerFeatures": READER_FEATURES, "writerFeatures": WRITER_FEATURES}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}


def _metadata(schema: pa.Schema) -> Action:
    fields = [{"name": f.name, "type": _type(f.type), "nullable": True, "metadata": {}} for f in schema]
    settings = {"enableDeletionVectors": "true", "enableRowTracking": "true", "checkpointPolicy": "v2"}
    return {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {f"delta.{name}": value for name, value in settings.items()},
            "createdTime": 1,
        }
    }


def _type(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    return TYPES[kind]


def _clustering(column: str) -> Action:
    configuration = json.dumps({"clusteringColumns": [[column]]})
    return {"domainMetadata": {"domain": "delta.clustering", "configuration": configuration, "removed": False}}


def _add(folder: Path, number: int, file: DataFile, first: int, inline: bool, row_group: int) -> Action:
    path = folder / f"part-{number:05}.snappy.parquet"
    pq.write_table(file.rows, path, compression="snappy", row_group_size=row_group)
    action = {
        "path": path.name,
        "partitionValues": {},
        "size": path.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
        "stats": json.dumps({"numRecords": len(file.rows), "tightBounds": False}),
        "baseRowId": first,
        "defaultRowCommitVersion": 0,
    }
    if file.deleted:
        action["deletionVector"] = _deletion_vector(folder, file.deleted, inline)
    return {"add": action}


def _deletion_vector(folder: Path, deleted: Sequence[int], inline: bool) -> Action:
    data = bitmap(deleted)
    common = {"sizeInBytes": len(data), "cardinality": len(deleted)}
    if inline:
        return {"storageType": "i", "pathOrInlineDv": z85(data + b"\0" * (-len(data) % 4)), **common}
    name = uuid.uuid4()
    framed = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (folder / f"deletion_vector_{name}.bin").write_bytes(b"\1" + framed)
    return {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1, **common}


def bitmap(rows: Sequence[int]) -> bytes:
    """A 64-bit roaring bitmap of numbers below 2**32, behind Delta's magic number."""
    return struct.pack("<IQI", 1_681_511_377, 1, 0) + _roaring(sorted(rows))


def _roaring(rows: Sequence[int]) -> bytes:
    containers = {key: [r & 0xFFFF for r in group] for key, group in groupby(rows, lambda r: r >> 16)}
    bodies = [_container(low) for low in containers.values()]
    head = struct.pack("<II", 12_346, len(containers))
    keys = b"".join(struct.pack("<HH", key, len(low) - 1) for key, low in containers.items())
    start = len(head) + len(keys) + 4 * len(bodies)
    offsets = [start + sum(map(len, bodies[:i])) for i in range(len(bodies))]
    return head + keys + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(bodies)


def _container(low: Sequence[int]) -> bytes:
    """Up to 4,096 numbers stand one by one; more are the bits of 65,536."""
    if len(low) <= 4096:
        return struct.pack(f"<{len(low)}H", *low)
    bits = bytearray(8192)
    for number in low:
        bits[number >> 3] |= 1 << (number & 7)
    return bytes(bits)


Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> str:
    """ZeroMQ's base 85: four bytes are five letters."""
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
