"""The matrix: every container with every damage, to the rows and to the bytes of the file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from zipfile import ZipFile

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import agent_eval_schema as aes
from agent_eval_schema.io import streams
from tests.fuzz.checks import command, require_read_or_named, verdict_in_a_file
from tests.fuzz.containers import (
    BYTES,
    CELLS,
    CONTAINERS,
    EXTENSIONS,
    FILES,
    PACKED,
    PARTS,
    ROW,
    ROWS,
    can_have,
    served_at,
)

pytestmark = pytest.mark.containers

SEVERAL = [ROW | {"request": f"Where is number {i}?"} for i in range(20)]
AT_A_URL = ("cut", "empty", "utf-16", "a page")


@pytest.mark.oracle
@pytest.mark.parametrize("name", ROWS)
def test_the_same_rows_have_one_verdict_in_every_container(name: str, tmp_path: Path) -> None:
    expected = verdict_in_a_file(ROWS[name])
    for container, make in CONTAINERS.items():
        if can_have(container, name):
            assert verdict_in_a_file(make(ROWS[name], tmp_path)) == expected, container


@pytest.mark.parametrize("container", FILES)
def test_a_damaged_file_is_read_or_named_in_one_line(container: str, tmp_path: Path) -> None:
    path = Path(FILES[container](SEVERAL, tmp_path))
    data = path.read_bytes()
    for damage, damaged in BYTES.items():
        path.write_bytes(damaged(data, Random(damage)))
        require_read_or_named(str(path))
        if damage in AT_A_URL:
            require_read_or_named(served_at(str(path)))
    for extension in EXTENSIONS:
        other = tmp_path / f"other{extension}"
        other.write_bytes(data)
        require_read_or_named(str(other))
        other.unlink()
    path.unlink()
    path.mkdir()
    require_read_or_named(str(path), "directory" if path.suffix != ".xlsx" else "no such file")


def require_all_or_named(path: str, advice: str) -> None:
    """All rows are read, or the file is rejected with what to do: no row of it is lost without a word."""
    code, told, error = command(["validate", path, "--output", "json"])
    if code == 2:
        require_read_or_named(path, advice)
    else:
        assert json.loads(told)["rows"]["total"] in (len(SEVERAL), 0), error  # none of another XML document


def test_a_workbook_with_damage_inside_is_read_or_named(tmp_path: Path) -> None:
    path = Path(FILES["xlsx"](SEVERAL, tmp_path))
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"

    def require(changed: dict[str, bytes]) -> None:
        with ZipFile(path, "w") as archive:
            for name, content in changed.items():
                archive.writestr(name, content)
        require_all_or_named(str(path), "open it in a spreadsheet, and save it as .xlsx without a password")

    for name, content in parts.items():
        require({other: parts[other] for other in parts if other != name})
        for damage, damaged in PARTS.items():
            require(parts | {name: damaged(content, Random(damage))})
    for old, new in CELLS.values():
        assert old in parts[sheet]
        require(parts | {sheet: parts[sheet].replace(old, new)})
    require({"rows.jsonl": b"{}"})
    require({})
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))  # of Excel 97, or with a password
    require_all_or_named(str(path), "without a password")


def test_a_delta_table_with_a_damaged_file_is_read_or_named(tmp_path: Path) -> None:
    table = tmp_path / "table.delta"
    for row in SEVERAL[:3]:
        write_deltalake(str(table), pa.table({name: [str(value)] for name, value in row.items()}), mode="append")
    DeltaTable(str(table)).create_checkpoint()
    write_deltalake(str(table), pa.table({n: [str(row[n]) for row in SEVERAL[3:]] for n in ROW}), mode="append")
    files = {file: file.read_bytes() for file in table.rglob("*") if file.is_file() and file.suffix != ".crc"}
    assert len(files) == 4 + 4 + 2
    for file, content in files.items():
        file.unlink()
        if file.name != f"{3:020}.json":  # without its last version the table is an older one
            require_all_or_named(str(table), "restore")
        for damage in ("cut", "cut near its end", "empty", "zeros", "a page"):
            file.write_bytes(BYTES[damage](content, Random(damage)))
            require_all_or_named(str(table), "restore")
        file.write_bytes(content)
    assert aes.validate_eval_set(table).row_count == len(SEVERAL)


def test_a_missing_part_of_a_delta_table_is_named_with_the_version_that_lacks_it(tmp_path: Path) -> None:
    table = tmp_path / "table.delta"
    for row in SEVERAL[:2]:
        before = set(table.glob("*.parquet"))
        write_deltalake(str(table), pa.table({name: [str(value)] for name, value in row.items()}), mode="append")
    (last,) = set(table.glob("*.parquet")) - before
    last.unlink()
    with pytest.raises(aes.EvalSetError, match="restore it, or read the last version without it: ") as raised:
        aes.validate_eval_set(table)
    assert aes.validate_eval_set(str(raised.value).rpartition(": ")[2]).row_count == 1
    before.pop().unlink()
    with pytest.raises(aes.EvalSetError, match=r"restore it from a copy$"):
        aes.validate_eval_set(table)


COMPRESSED = r"expected text, got what a \.gz file begins with: save it under a name that ends with \.jsonl\.gz"

ADVICE = {
    "gzip": ("rows.jsonl", "gzip", COMPRESSED),
    "twice compressed": ("rows.jsonl.gz", "gzip", r"got what a \.gz file begins with: unpack the file"),
    "Parquet": ("rows.csv", "parquet", r"begins with: save it under a name that ends with \.parquet"),
    "a page": ("rows.csv", "a page", "expected rows, got an HTML page: log in, or use the address of the file itself"),
    **{
        of: ("rows.csv", of, "expected UTF-8, got UTF-16 or UTF-32: save the file as UTF-8")
        for of in ("utf-16", "utf-16-le", "utf-16-be", "utf-32-be")
    },
    "cp1252": ("rows.jsonl.gz", "cp1252", "got Windows-1252: save it as UTF-8 before it is compressed"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_what_is_no_text_is_named_with_what_to_do(name: str, tmp_path: Path) -> None:
    file, damage, message = ADVICE[name]
    kind = "parquet" if damage == "parquet" else Path(file.removesuffix(".gz")).suffix[1:]
    data = Path(FILES[kind](SEVERAL, tmp_path)).read_bytes()
    data = BYTES[damage](data, Random(1)) if damage in BYTES else data
    (tmp_path / file).write_bytes(gzip.compress(data) if file.endswith(".gz") else data)
    with pytest.raises(aes.EvalSetError, match=message):
        aes.validate_eval_set(tmp_path / file)


def test_a_file_at_a_url_is_not_for_iconv(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("request,response\nWo ist Zürich?,Hier ä\n".encode("cp1252"))
    require_read_or_named(str(path), f"run `iconv -f cp1252 -t utf-8 {path} > {tmp_path / 'latin.utf-8.csv'}`")
    with pytest.raises(aes.EvalSetError, match=r"/latin\.csv: expected UTF-8, got Windows-1252: save it as UTF-8 in a"):
        aes.validate_eval_set(served_at(str(path)))


@pytest.mark.parametrize("container", PACKED)
def test_what_unpacks_to_too_much_is_one_line_with_the_option(
    container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_MAX_UNPACKED", "1")
    path = FILES[container]([ROW, ROW | {"response": "a" * 3_000_000}], tmp_path)
    require_read_or_named(path, "expected rows of up to 1 MB", "set AGENT_EVAL_SCHEMA_MAX_UNPACKED to more MB")
    require_read_or_named(served_at(path), "set AGENT_EVAL_SCHEMA_MAX_UNPACKED to more MB")
    monkeypatch.setenv("AGENT_EVAL_SCHEMA_MAX_UNPACKED", "9")
    assert command(["validate", path])[0] == 0
    assert set(streams.COMPRESSIONS) <= {Path(name).suffix or f".{name}" for name in PACKED}
