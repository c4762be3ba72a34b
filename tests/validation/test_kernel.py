"""Data never raises, no row is lost, the input is not changed, and nothing of it reaches a terminal as a command.

`whole` states what holds for any data at all; the tables say what is found in which bad file, cell, row or column.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import gzip
import json
import math
import os
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_eval_schema import EvalSetError, Report, normalize_eval_set, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats import deepeval
from agent_eval_schema.io import files, source
from agent_eval_schema.io import json as json_module
from agent_eval_schema.render.report.report_blocks import report_text
from agent_eval_schema.render.report.summary import Shown
from agent_eval_schema.validation import kernel
from agent_eval_schema.validation.checked_batch import join
from agent_eval_schema.validation.plan import Plan
from agent_eval_schema.validation.report import summary_of
from agent_eval_schema.validation.steps import STEPS, Step

GOOD = {"request": "Hi", "response": "Hello"}
LINE = json.dumps(GOOD) + "\n"
ARRAY = json.dumps([GOOD])
DEPTH = 100_000

UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def whole(data: Any, **options: Any) -> Report:
    """The report, after what holds for every report: the rows are all there, and no rule broke down."""
    report = validate_eval_set(data, **options)
    assert "AE001" not in report.counts, summary_of(report).examples["AE001"][0].message
    assert report.row_count == report.valid_count + report.invalid_count == len(report.rows)
    assert len(report.valid) == report.valid_count
    assert len(report.invalid) == report.invalid_count
    assert not UNSAFE.findall(
        report_text(replace(summary_of(report), has_metrics=False), Shown(), color=False, width=100, system="all")
    )
    return report


def messages(report: Report, code: str) -> list[str]:
    assert code in report.counts, f"{code} is not in {report.counts}"
    return [i.message for i in report.iter_issues() if i.code == code]


def file(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def nested(depth: int = DEPTH) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def holding_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@dataclasses.dataclass
class DataclassRow:
    request: str
    response: str


class PydanticRow(pydantic.BaseModel):
    request: str
    response: str


class StructRow(msgspec.Struct):
    request: str
    response: str


# ---------------------------------------------------------------------------------------------------------------------
# JSON Lines

BAD_LINES = {
    "malformed": ('{"request": "Hi", "response": ?}', "AE007", "byte 30"),
    "truncated": (LINE[:-5], "AE007", f"ends at byte {len(LINE) - 5}"),
    "NaN": ('{"request": "is: NaN", "response": "x", "latency_seconds": NaN}', "AE003", "NaN at byte 59"),
    "Infinity": ('{"request": "x", "response": "x", "latency_seconds": -Infinity}', "AE003", "-Infinity at byte 53"),
    "deep": ('{"request": "x", "custom_expected": ' + "[" * DEPTH + "]" * DEPTH + "}", "AE004", "deep"),
    "surrogate": (r'{"request": "Hi \ud800", "response": "x"}', "AE006", "surrogate"),
    "surrogate-key": (r'{"\ud800": 1, "request": "Hi", "response": "x"}', "AE006", "surrogate"),
    "raw-nul": ('{"request": "a\0b", "response": "x"}', "AE007", "byte 14"),
    "latin-1": (b'{"request": "caf\xe9", "response": "x"}', "AE005", "0xE9 at byte 16"),
    "array": ("[1, 2]", "AE008", "a list of 2"),
    "number": ("3", "AE008", "the number 3"),
    "text": ('"x"', "AE008", "the text"),
    "null": ("null", "AE008", "null"),
    "two-rows": (LINE.strip() + " " + LINE.strip(), "AE007", "trailing"),
}


@pytest.mark.parametrize(("line", "code", "words"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_line_that_is_no_row_costs_only_itself(line: str | bytes, code: str, words: str, tmp_path: Path) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    report = whole(file(tmp_path, "a.jsonl", LINE.encode() + b"\n" + raw + b"\n" + LINE.encode()))
    assert report.valid_mask.tolist() == [True, False, True]
    assert set(report.counts) == {code}
    assert messages(report, code)[0].startswith("line 3: ")
    assert words in messages(report, code)[0]


LAYOUTS = {
    "bom": ("\ufeff" + LINE * 2, 2),
    "crlf": (LINE.replace("\n", "\r\n") * 2, 2),
    "no-newline": (LINE + LINE.strip(), 2),
    "blank-lines": ("\n\n" + LINE + "  \r\n\t\n" + LINE + "\n\n", 2),
    "line-separators": ('{"request": "a\u2028b\u0085c", "response": "x"}\n', 1),
    "escaped-nul": (r'{"request": "a\u0000b", "response": "x"}', 1),
    "empty-name": ('{"": 1, "request": "a", "response": "x"}', 1),
}


@pytest.mark.parametrize(("text", "rows"), LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_of_json_lines_that_are_fine(text: str, rows: int, tmp_path: Path) -> None:
    report = whole(file(tmp_path, "a.jsonl", text))
    assert report.row_count == report.valid_count == rows


def test_a_row_without_columns_is_a_row(tmp_path: Path) -> None:
    assert whole(file(tmp_path, "a.jsonl", "{}\n")).counts == {"AE201": 1}


def test_rows_that_only_a_carriage_return_parts_are_not_taken_for_one(tmp_path: Path) -> None:
    report = whole(file(tmp_path, "a.jsonl", LINE.replace("\n", "\r") * 2))
    assert report.row_count == 2 or not report.ok


def test_of_a_repeated_key_the_last_counts_as_in_any_json_parser(tmp_path: Path) -> None:
    line = '{"request": "a", "request": "b", "response": "x", "custom_expected": {"k": 1, "k": 2}}'
    row = whole(file(tmp_path, "a.jsonl", line)).rows.iloc[0]
    assert row.request["messages"][0]["content"] == json.loads(line)["request"]
    assert row.custom_expected == json.loads(line)["custom_expected"]


NO_ROWS = {
    "empty.jsonl": "",
    "blank.jsonl": "\n \n",
    "bom.jsonl": "\ufeff",
    "empty.json": "",
    "array.json": "[ ]",
    "empty.csv": "",
    "header.csv": "request,response\n",
    "no-newline.csv": "request,response",
    "empty.tsv": "\n\n",
}


@pytest.mark.parametrize(("name", "text"), NO_ROWS.items(), ids=NO_ROWS)
def test_a_file_without_rows_is_told(name: str, text: str, tmp_path: Path) -> None:
    report = whole(file(tmp_path, name, text))
    assert (report.row_count, report.counts) == (0, {"AE101": 1})


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", LINE * 2), ("a.json", ARRAY), ("a.csv", "request,response\nHi,x\nHo,y\n")]
)
def test_a_utf_16_file_without_bom_is_named(name: str, text: str, encoding: str, tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="line 1: expected UTF-8, got UTF-16 or UTF-32: save the file as UTF-8"):
        whole(file(tmp_path, name, text.encode(encoding)))


# ---------------------------------------------------------------------------------------------------------------------
# cells that hold JSON text, in every kind of input

MALFORMED_CELLS = {
    "offset-is-in-bytes": ("expected_retrieved_context", '[{"doc_uri": "é", x}]', "AE002", "byte 19"),
    "cut-off": ("custom_expected", '{"a": [1, 2', "AE002", "ends at byte 11"),
    "request": ("request", '{"messages": [{"role": "user"', "AE002", "ends at byte 29"),
    "NaN": ("custom_expected", '{"a": "b: NaN", "c": NaN}', "AE003", "NaN at byte 21"),
    "deep": ("custom_expected", '{"a": ' * DEPTH + "1" + "}" * DEPTH, "AE004", "deep"),
    "deep-request": ("request", '{"messages": ' + "[" * DEPTH, "AE004", "deep"),
    "surrogate": ("custom_expected", r'{"a": "\ud800"}', "AE006", "surrogate"),
    "trace": ("trace", '{"info": {}, "data": {"spans": [', "AE601", "ends at byte 32"),
}


@pytest.mark.parametrize(("column", "cell", "code", "words"), MALFORMED_CELLS.values(), ids=MALFORMED_CELLS)
def test_malformed_json_in_a_cell_is_told_with_its_byte(
    column: str, cell: str, code: str, words: str, every_input: Callable[[list[dict[str, Any]]], Any]
) -> None:
    report = whole(every_input([GOOD, {**GOOD, column: cell}, GOOD]))
    assert report.valid_mask.tolist() == [True, False, True]
    assert words in messages(report, code)[0]


@pytest.mark.parametrize("cut", [1, 40, 200, 1000, -1])
def test_a_truncated_trace_is_told_with_the_byte_where_it_ends(
    cut: int, samples: Path, every_input: Callable[[list[dict[str, Any]]], Any]
) -> None:
    trace = json.loads((samples / "search_traces.jsonl").read_text(encoding="utf-8").splitlines()[0])["trace"]
    text = (trace if isinstance(trace, str) else json.dumps(trace, ensure_ascii=False))[:cut]
    report = whole(every_input([{"request": "Hi", "trace": text}]))
    assert f"ends at byte {len(text.encode())}" in messages(report, "AE601")[0]
    assert report.invalid_count == 1


def test_a_cell_of_ten_megabytes_is_read(every_input: Callable[[list[dict[str, Any]]], Any]) -> None:
    report = whole(every_input([{"request": "x" * 10_000_000, "response": "y"}, GOOD]))
    assert report.valid_count == 2


def test_each_byte_of_a_large_string_in_a_json_array_is_scanned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps([{"request": "\\\n" * 2_000_000, "response": "y"}])
    pattern, scanned = json_module._STRING_PART, [0]

    class Counted:
        def match(self, data: bytearray, start: int, end: int) -> re.Match[bytes] | None:
            found = pattern.match(data, start, end)
            scanned[0] += found.end() - start if found else 0
            return found

    monkeypatch.setattr(json_module, "_STRING_PART", Counted())
    assert validate_eval_set(file(tmp_path, "a.json", text)).valid_count == 1
    readings = 2  # the first batch is looked at before all are read
    assert len(text) // 2 < scanned[0] <= readings * len(text)


def test_nul_is_a_warning_in_every_kind_of_input(every_input: Callable[[list[dict[str, Any]]], Any]) -> None:
    report = whole(every_input([{"request": "a\0b", "response": "c\0d"}]))
    assert report.counts == {"AE010": 2}


# ---------------------------------------------------------------------------------------------------------------------
# numbers

NUMBERS = [
    ("total_token_count", 12.0, None),
    ("total_token_count", 2**63 - 1, None),
    ("total_token_count", 2**63, "AE107"),
    ("total_token_count", -(2**63) - 1, "AE107"),
    ("total_token_count", 10**400, "AE107"),
    ("total_token_count", 1e300, "AE107"),
    ("total_token_count", 1.5, "AE107"),
    ("latency_seconds", 10**400, "AE107"),
    ("session_id", 10**400, None),
]


@pytest.mark.parametrize("kind", ["list", "pandas", "jsonl"])
@pytest.mark.parametrize(("column", "number", "code"), NUMBERS, ids=[f"{c}-{str(n)[:8]}" for c, n, _ in NUMBERS])
def test_a_number_that_the_normalized_column_cannot_hold_is_an_error_of_its_row(
    column: str, number: float, code: str | None, kind: str, tmp_path: Path
) -> None:
    rows = [{**GOOD, column: number}, GOOD]
    data = {"list": rows, "pandas": pd.DataFrame(rows, dtype="object")}.get(kind)
    report = whole(file(tmp_path, "a.jsonl", "".join(json.dumps(r) + "\n" for r in rows)) if data is None else data)
    assert list(report.counts) == ([code] if code else [])
    assert report.rows.response.tolist() == ["Hello", "Hello"]
    if code is None:
        assert report.rows[column][0] == (str(number) if column == "session_id" else number)


def test_counts_that_pandas_made_floats_are_counts() -> None:
    frame = pd.DataFrame({"request": ["a", "b"], "response": ["c", "d"], "total_token_count": [12.0, float("nan")]})
    report = whole(frame)
    assert report.counts == {}
    assert report.rows.total_token_count.tolist() == [12, pd.NA]


def test_a_number_out_of_range_is_not_called_something_else(tmp_path: Path) -> None:
    line = '{"request": "a", "response": "b", "latency_seconds": 1e400, "custom_expected": {"a": 1e400}}'
    report = whole(file(tmp_path, "a.jsonl", line))
    assert report.invalid_count == 1
    assert "AE006" not in report.counts


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_is_not_called_null(value: float) -> None:
    report = whole([{**GOOD, "latency_seconds": value}])
    assert report.invalid_count == 1
    assert "null" not in " ".join(i.message for i in report.iter_issues())


# ---------------------------------------------------------------------------------------------------------------------
# JSON files

NOT_JSON = {
    "garbage-after": (f"{ARRAY} garbage", 1),
    "second-array": (f"{ARRAY}{ARRAY}", 1),
    "unterminated": (ARRAY[:-1], 1),
    "unterminated-after-comma": (ARRAY[:-1] + ",", 1),
    "cut-in-a-row": (ARRAY[:-1] + ', {"request": "a', 1),
    "double-comma": (f"[{LINE},,{LINE}]", 2),
    "leading-comma": (f"[,{LINE}]", 1),
    "trailing-comma": (f"[{LINE},]", 1),
    "no-comma": (f"[{LINE} {LINE}]", 1),
    "brace": ("[}]", 0),
    "garbage": ("garbage", 0),
    "empty-array-then-garbage": ("[] x", 0),
}


@pytest.mark.parametrize(("text", "valid"), NOT_JSON.values(), ids=NOT_JSON)
def test_a_json_file_that_no_parser_reads_is_never_ok(text: str, valid: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line"):
        json.loads(text)
    report = whole(file(tmp_path, "a.json", text))
    assert not report.ok
    assert report.invalid_count >= 1, "what cannot be read is a row of its own, so that nothing is dropped"
    assert report.valid_count == valid


NOT_ROWS = {
    "number": ("3", "AE008"),
    "text": ('"x"', "AE008"),
    "null": ("null", "AE008"),
    "nested-array": (f"[{ARRAY}]", "AE008"),
    "scalars": ('[1, null, "a"]', "AE008"),
    "deep": ("[" * DEPTH + "]" * DEPTH, "AE004"),
    "latin-1": (b'[{"request": "caf\xe9"}]', "AE005"),
    "NaN": ('[{"request": "a", "response": "b", "latency_seconds": NaN}]', "AE003"),
}


@pytest.mark.parametrize(("text", "code"), NOT_ROWS.values(), ids=NOT_ROWS)
def test_elements_of_a_json_file_that_are_no_rows(text: str | bytes, code: str, tmp_path: Path) -> None:
    report = whole(file(tmp_path, "a.json", text))
    assert report.row_count == report.invalid_count == report.counts[code] >= 1


def test_one_object_in_a_json_file_is_one_row(tmp_path: Path) -> None:
    assert whole(file(tmp_path, "a.json", "\ufeff" + json.dumps(GOOD, indent=1))).valid_count == 1


# ---------------------------------------------------------------------------------------------------------------------
# CSV

HEADER = "request,response\n"
BAD_RECORDS = {
    "too-few, in two lines": (
        HEADER + 'x,y\n"a\nb"\n',
        [True, False],
        "AE007",
        "line 3 has 1 fields, the header has 2",
    ),
    "too-few": (HEADER + '"a\nb",c\nx\n', [True, False], "AE169", "line 4 has 1 fields, the header has 2"),
    "too-many": (HEADER + '"a\r\n\nb","c\nd"\n1,2,3\ne,f\n', [True, False, True], "AE007", "line 6 has 3 fields"),
    "unterminated": (HEADER + 'a,b\n"c,d\ne,f\n', [True, False], "AE007", "line 3"),
    "quote-inside": (HEADER + '"a"b,c\nd,e\n', [False, True], "AE007", "line 2"),
    "latin-1": ((HEADER + '"x\ny",z\ncafé,d\n').encode("latin-1"), [True, False], "AE005", "line 4"),
    "surrogate": (HEADER.encode() + b"\xed\xa0\x80,b\n", [False], "AE005", "line 2"),
    "json": (HEADER + '"{""messages"": [{""role""",b\n', [False], "AE002", "ends at byte 21"),
}


@pytest.mark.parametrize(("text", "valid", "code", "words"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_a_csv_record_that_is_no_row_is_told_with_its_line(
    text: str | bytes, valid: list[bool], code: str, words: str, tmp_path: Path
) -> None:
    report = whole(file(tmp_path, "a.csv", text))
    assert report.valid_mask.tolist() == valid
    assert words in messages(report, code)[0]


def test_the_original_text_of_a_bad_record_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "invalid.jsonl"
    whole(file(tmp_path, "a.csv", HEADER + '"a,b","say ""x""",d\n')).write_invalid(str(out))
    assert json.loads(out.read_text())["__line__"].rstrip("\n") == '"a,b","say ""x""",d'


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEADER + "a,b\nc,d",
        HEADER.replace("\n", "\r\n") + "a,b\r\nc,d\r\n",
        HEADER.replace("\n", "\r") + "a,b\rc,d",
        "\n" + HEADER + "\n\na,b\n\nc,d\n\n",
        " request , response \na,b\nc,d\n",
    ],
    ids=["bom", "crlf", "cr", "blank-lines", "spaces"],
)
def test_layouts_of_csv_that_are_fine(text: str, tmp_path: Path) -> None:
    report = whole(file(tmp_path, "a.csv", text))
    assert report.valid_count == report.row_count == 2


# ---------------------------------------------------------------------------------------------------------------------
# the check could not run


def _truncated_parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"request": ["a"], "response": ["b"]}), sink)
    return bytes(sink.getvalue().to_pybytes()[:-20])


PACKED = gzip.compress(b"".join(json.dumps({**GOOD, "request_id": str(i)}).encode() + b"\n" for i in range(3000)))

UNREADABLE = {
    "ending.txt": (LINE, "file extension"),
    "no.parquet": ("hello", "Parquet"),
    "empty.parquet": ("", "Parquet"),
    "cut.parquet": (_truncated_parquet(), "Parquet"),
    "cut.jsonl.gz": (PACKED[:-20], "cannot be read"),
    "half.jsonl.gz": (PACKED[: len(PACKED) // 2], "cannot be read"),
    "plain.jsonl.gz": (LINE, "cannot be read"),
    "cut.csv.gz": (gzip.compress((HEADER + "a,b\n" * 9999).encode())[:-20], "cannot be read"),
    "bom.jsonl": (LINE.encode("utf-16"), "UTF-16"),
    "bom.json": (ARRAY.encode("utf-16"), "UTF-16"),
    "bom.csv": (HEADER.encode("utf-32"), "UTF-16"),
    "latin-1-header.csv": (b"requ\xeate,response\na,b\n", "line 1"),
}


@pytest.mark.parametrize(("name", "content", "words"), [(n, *c) for n, c in UNREADABLE.items()], ids=UNREADABLE)
def test_a_file_that_is_no_table_is_told_in_one_line(
    name: str, content: str | bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, name, content)
    with pytest.raises(EvalSetError, match=re.escape(path)) as caught:
        validate_eval_set(path)
    assert words in str(caught.value)
    _could_not_run(path, capsys)


def _could_not_run(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", path]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert not UNSAFE.search(printed.err)


@pytest.mark.parametrize(
    "name", ["missing.jsonl", "", "a\nb.jsonl", "a\x1b[2Jb.jsonl", "a\0b.jsonl", "x" * 300 + ".jsonl", "\udce9.jsonl"]
)
def test_no_such_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / name) if name else ""
    with pytest.raises(EvalSetError, match="no such file"):
        validate_eval_set(path)
    _could_not_run(path, capsys)


def test_a_directory_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(EvalSetError, match="directory"):
        validate_eval_set(tmp_path / "a.jsonl")
    _could_not_run(str(tmp_path / "a.jsonl"), capsys)


def test_a_file_that_may_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    path = file(tmp_path, "a.jsonl", LINE)
    monkeypatch.setattr(files, "open", refuse, raising=False)  # tests may run as root, who may read everything
    with pytest.raises(EvalSetError, match="Permission denied"):
        validate_eval_set(path)
    _could_not_run(path, capsys)


def test_a_file_name_that_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(LINE)
    assert validate_eval_set(path).valid_count == 1
    for output in ("text", "json"):
        assert main(["validate", path, "--output", output]) == 0
    assert not UNSAFE.search(capsys.readouterr().out)


@pytest.mark.parametrize("data", [None, 5, {}, {"request": "a"}, iter([GOOD]), b"a.jsonl", np.array([1]), Silent()])
def test_what_is_no_table_is_told(data: Any) -> None:
    with pytest.raises(EvalSetError, match=r"^data: expected"):
        validate_eval_set(data)


def test_good_compressed_files_are_read(tmp_path: Path) -> None:
    assert whole(file(tmp_path, "a.jsonl.gz", PACKED)).valid_count == 3000


# ---------------------------------------------------------------------------------------------------------------------
# cells of Python objects

UNWRITABLE = {
    "deep": (nested, "AE004"),
    "itself": (holding_itself, "AE004"),
    "object": (object, "AE009"),
    "object-inside": (lambda: {"a": [object()]}, "AE009"),
    "no-repr": (Silent, "AE009"),
    "function": (lambda: len, "AE009"),
    "class": (lambda: PydanticRow, "AE009"),
    "complex": (lambda: 1j, "AE009"),
    "generator": (lambda: (i for i in "ab"), "AE009"),
    "tuple-keys": (lambda: {(1, 2): 3}, "AE009"),
    "none-key": (lambda: {None: 1}, "AE009"),
    "number-of-5000-digits": (lambda: 10**5000, "AE009"),
    "surrogate": (lambda: "Hi \ud83d", "AE006"),
    "surrogate-inside": (lambda: {"a": ["\ud800"]}, "AE006"),
    "surrogate-key": (lambda: {"\ud800": 1}, "AE006"),
    "bytes-not-utf-8": (lambda: b"caf\xe9", "AE005"),
}


def in_list(column: str, cell: Any) -> Any:
    return [GOOD, {**GOOD, column: cell}, GOOD]


def in_pandas(column: str, cell: Any) -> Any:
    cells = np.empty(3, dtype=object)
    cells[1] = cell
    frame = pd.DataFrame({n: pd.Series([v] * 3, dtype=object) for n, v in GOOD.items()})
    frame[column] = pd.Series([frame[column][0], cell, frame[column][2]] if column in GOOD else cells, dtype=object)
    return frame


@pytest.mark.parametrize("place", [in_list, in_pandas])
@pytest.mark.parametrize("column", ["request", "response", "custom_expected"])
@pytest.mark.parametrize(("make", "code"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_cell_that_no_file_can_hold_is_an_error_of_its_row(
    make: Callable[[], Any], code: str, column: str, place: Callable[[str, Any], Any]
) -> None:
    report = whole(place(column, make()))
    assert report.valid_mask.tolist() == [True, False, True]
    assert list(report.counts) == [code]


@pytest.mark.parametrize("place", [in_list, in_pandas])
@pytest.mark.parametrize("make", [make for make, _ in UNWRITABLE.values()], ids=list(UNWRITABLE))
def test_an_odd_cell_in_a_column_that_nobody_reads_does_no_harm(
    make: Callable[[], Any], place: Callable[[str, Any], Any]
) -> None:
    report = whole(place("extra", make()))
    assert report.row_count == 3


ABSENT = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "ns"), np.timedelta64("NaT", "ns")]


@pytest.mark.parametrize("place", [in_list, in_pandas])
@pytest.mark.parametrize("beside", ["text", {"query": "What?"}])
@pytest.mark.parametrize("cell", ABSENT, ids=[f"{type(v).__name__}-{v}" for v in ABSENT])
def test_what_counts_as_absent(cell: Any, beside: Any, place: Callable[[str, Any], Any]) -> None:
    data = place("request", cell)
    if isinstance(data, list):
        data[0] = {**GOOD, "request": beside}
    else:
        data.at[0, "request"] = beside
    report = whole(data)
    assert report.counts == {"AE201": 1}
    assert report.rows.request[1] is None


MEANT = {
    "numpy": (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "numpy-of-arrays": (np.array([np.array([1]), np.array(["x", "y"])], dtype=object), [[1], ["x", "y"]]),
    "numpy-nan": (np.array([1.0, float("nan")]), [1.0, None]),
    "numpy-scalars": ([np.int64(5), np.float32(0.5), np.bool_(True), np.str_("s")], [5, 0.5, True, "s"]),
    "missing": ([pd.NA, pd.NaT, None, float("nan")], [None, None, None, None]),
    "dataclass": (DataclassRow("a", "b"), {"request": "a", "response": "b"}),
    "pydantic": (PydanticRow(request="a", response="b"), {"request": "a", "response": "b"}),
    "struct": (StructRow("a", "b"), {"request": "a", "response": "b"}),
    "integer-keys": ({1: 2}, {"1": 2}),
    "datetime": (datetime.datetime(2024, 1, 2), "2024-01-02T00:00:00"),
    "timestamp": (pd.Timestamp("2024-01-02"), "2024-01-02T00:00:00"),
    "decimal": (Decimal("1.50"), "1.50"),
}


@pytest.mark.parametrize("place", [in_list, in_pandas])
@pytest.mark.parametrize(("cell", "value"), MEANT.values(), ids=MEANT)
def test_what_a_python_cell_means(cell: Any, value: Any, place: Callable[[str, Any], Any]) -> None:
    report = whole(place("custom_expected", {"a": cell}))
    assert report.ok, report.to_text()
    assert report.rows.custom_expected.tolist() == [None, {"a": value}, None]


@pytest.mark.parametrize("cell", [b"Hi", np.str_("Hi"), type("Text", (str,), {})("Hi")], ids=["bytes", "numpy", "str"])
@pytest.mark.parametrize("beside", ["text", {"query": "What?"}], ids=["text", "object"])
def test_a_text_is_the_same_text_whatever_stands_in_the_other_rows(cell: Any, beside: Any) -> None:
    report = whole([{**GOOD, "request": cell}, {**GOOD, "request": beside}])
    assert report.ok, report.to_text()
    assert report.rows.request[0] == {"messages": [{"role": "user", "content": "Hi"}]}


DTYPES = {
    "category": pd.Series(["Hi", None, "Hi"], dtype="category"),
    "string": pd.Series(["Hi", None, "Hi"], dtype="string"),
    "arrow": pd.Series(["Hi", None, "Hi"], dtype=pd.ArrowDtype(pa.string())),
}


@pytest.mark.parametrize("requests", DTYPES.values(), ids=DTYPES)
def test_text_columns_of_pandas(requests: pd.Series[Any]) -> None:
    report = whole(pd.DataFrame({"request": requests, "response": "Hello"}))
    assert report.valid_mask.tolist() == [True, False, True]
    assert report.counts == {"AE201": 1}


CARRIED = {
    "datetime": pd.Series(pd.to_datetime(["2024-01-01", None])),
    "zoned": pd.Series(pd.to_datetime(["2024-01-01", None], utc=True)),
    "timedelta": pd.Series(pd.to_timedelta([1, None], unit="s")),
    "period": pd.Series(pd.period_range("2024", periods=2)),
    "interval": pd.Series(pd.interval_range(0, 2)),
    "complex": pd.Series([1j, 2j]),
    "sparse": pd.Series(pd.arrays.SparseArray([0, 1])),
    "category-of-numbers": pd.Series([1, 2], dtype="category"),
    "uint64": pd.Series([2**64 - 1, 1], dtype="uint64"),
    "float32": pd.Series([1.5, float("nan")], dtype="float32"),
    "nullable": pd.Series([True, pd.NA], dtype="boolean"),
    "decimal": pd.Series([Decimal("1.5"), Decimal("NaN")]),
    "bytes": pd.Series([b"\xe9", b"a"]),
    "far-timestamp": pd.Series(np.array(["9999-12-31", "0001-01-01"], dtype="datetime64[s]")),
}


@pytest.mark.parametrize("column", ["extra", "custom_expected", "request", "trace"])
@pytest.mark.parametrize("series", CARRIED.values(), ids=CARRIED)
def test_columns_of_any_dtype_do_not_stop_a_check(series: pd.Series[Any], column: str) -> None:
    frame = pd.DataFrame({"request": ["a", "b"], "response": ["c", "d"]})
    frame[column] = series
    report = whole(frame)
    if column == "extra":
        assert report.ok
        pd.testing.assert_series_equal(report.rows.extra, series, check_names=False)


# ---------------------------------------------------------------------------------------------------------------------
# rows

NO_ROW = [
    None,
    "text",
    "\ud800",
    [1],
    3,
    b"x",
    nested(),
    holding_itself(),
    object(),
    Silent(),
    PydanticRow,
    GOOD.items(),
]


@pytest.mark.parametrize("row", NO_ROW, ids=range(len(NO_ROW)))
def test_what_is_no_row_is_told_and_handed_back(row: Any) -> None:
    report = whole([GOOD, row, GOOD])
    assert report.counts == {"AE008": 1}
    assert report.invalid[0] is row


@pytest.mark.parametrize(
    "row", [DataclassRow("a", "b"), PydanticRow(request="a", response="b"), StructRow("a", "b")], ids=lambda r: type(r)
)
def test_rows_may_be_objects(row: Any) -> None:
    report = whole([row, GOOD])
    assert report.valid_count == 2
    assert report.rows.response.tolist() == ["b", "Hello"]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ([], 0),
        ([{}, {}], 2),
        (pd.DataFrame(), 0),
        (pd.DataFrame(index=range(3)), 3),
        (pd.DataFrame(columns=["request"]), 0),
        (pa.table({}), 0),
        (pa.table({"request": pa.array([], pa.string())}), 0),
        (pa.table({"a": [1, 2]}).select([]), 2),
        (pa.RecordBatch.from_pydict({"request": pa.array([], pa.string())}), 0),
    ],
    ids=range(9),
)
def test_no_rows_or_no_columns(data: Any, rows: int) -> None:
    report = whole(data)
    assert report.counts == ({"AE201": rows} if rows else {"AE101": 1})
    assert report.row_count == report.invalid_count == rows


# ---------------------------------------------------------------------------------------------------------------------
# names of columns

ODD_NAMES: list[Any] = [
    1,
    None,
    (1, 2),
    1.5,
    True,
    "",
    " ",
    "re\0quest",
    "\x1b[2J",
    "[bold]x[/bold]",
    "😀",
    "a.b",
    "x" * 9999,
]
OWN_NAMES = ["__issues", "__valid", "__id", "__line__", "__reading_problems__", "_issues", "__team"]


@pytest.mark.parametrize("make", [list, pd.DataFrame], ids=["list", "pandas"])
@pytest.mark.parametrize("name", ODD_NAMES + OWN_NAMES, ids=lambda n: str(n)[:12].encode("unicode_escape").decode())
def test_a_column_that_we_do_not_know_is_carried_along_whatever_its_name(name: Any, make: Callable[[Any], Any]) -> None:
    report = whole(make([{**GOOD, name: "mine"}, {**GOOD, name: "yours"}]))
    assert report.valid_count == 2
    assert report.rows[str(name)].tolist() == ["mine", "yours"]


@pytest.mark.parametrize("name", OWN_NAMES)
def test_such_a_column_is_carried_along_from_files(name: str, tmp_path: Path) -> None:
    lines = json.dumps({**GOOD, name: "mine"}) + "\n{broken\n"
    report = whole(file(tmp_path, "a.jsonl", lines))
    assert report.valid_mask.tolist() == [True, False]
    assert report.rows[name].tolist() == ["mine", None]
    whole(file(tmp_path, "a.csv", f"request,response,{name}\na,b,mine\nshort\n"))


def _frame_of_objects(rows: list[dict[Any, Any]]) -> pd.DataFrame:
    return pd.DataFrame([list(row.values()) for row in rows], columns=pd.Index(list(rows[0]), dtype="object"))


@pytest.mark.parametrize("make", [list, _frame_of_objects], ids=["list", "pandas"])
def test_a_name_that_no_file_can_hold_does_not_stop_the_check(make: Callable[[Any], Any]) -> None:
    assert whole(make([{**GOOD, "\ud800": 1}])).row_count == 1


def _duplicates(kind: str, folder: Path) -> Any:
    names, cells = ["request", "request", "response"], ["a", "b", "c"]
    table = pa.Table.from_arrays([pa.array([c]) for c in cells], names=names)
    if kind == "csv":
        return file(folder, "a.csv", "request,request,response\na,b,c\n")
    if kind == "parquet":
        pq.write_table(table, folder / "a.parquet")
        return folder / "a.parquet"
    return {"pandas": pd.DataFrame([cells], columns=names), "arrow": table, "list": [{1: "x", "1": "y", **GOOD}]}[kind]


@pytest.mark.parametrize("kind", ["pandas", "arrow", "list", "csv", "parquet"])
def test_two_columns_of_one_name_are_an_error_of_the_data(kind: str, tmp_path: Path) -> None:
    report = whole(_duplicates(kind, tmp_path))
    assert report.counts["AE104"] == 1
    assert report.row_count == 1


def test_columns_of_a_multi_index() -> None:
    frame = pd.DataFrame([["a", "b"]], columns=pd.MultiIndex.from_tuples([("x", "request"), ("y", "response")]))
    assert set(whole(frame).counts) == {"AE113"}


def test_five_thousand_columns() -> None:
    report = whole([{**GOOD, **{f"column_{i}": i for i in range(5000)}}])
    assert report.counts == {"AE103": 5000}


# ---------------------------------------------------------------------------------------------------------------------
# Arrow types

TEXTS = pa.array(["Hi", None, "Ho"])
TEXT_TYPES = {
    "dictionary": TEXTS.dictionary_encode(),
    "large-dictionary": TEXTS.cast(pa.large_string()).dictionary_encode(),
    "large": TEXTS.cast(pa.large_string()),
    "view": TEXTS.cast(pa.string_view()),
    "binary": TEXTS.cast(pa.binary()),
    "large-binary": TEXTS.cast(pa.large_binary()),
    "binary-view": TEXTS.cast(pa.binary()).cast(pa.binary_view()),
    "fixed-binary": pa.array([b"Hi", None, b"Ho"], pa.binary(2)),
    **({"json": pa.ExtensionArray.from_storage(pa.json_(), TEXTS)} if hasattr(pa, "json_") else {}),  # pyarrow 19
    "sliced": pa.array(["x", "y", "Hi", None, "Ho"])[2:],
    "sliced-dictionary": pa.array(["x", "Hi", None, "Ho"]).dictionary_encode()[1:],
    "sliced-view": pa.array(["x", "Hi", None, "Ho"]).cast(pa.string_view())[1:],
    "chunked": pa.chunked_array([TEXTS[:1], TEXTS[1:1], TEXTS[1:]]),
}


@pytest.mark.parametrize("column", ["request", "response"])
@pytest.mark.parametrize("cells", TEXT_TYPES.values(), ids=TEXT_TYPES)
def test_text_in_any_arrow_type(cells: Any, column: str) -> None:
    other = {"request": "response", "response": "request"}[column]
    report = whole(pa.table({column: cells, other: ["a", "b", "c"]}))
    assert report.valid_mask.tolist() == [True, False, True]
    texts = [r and r["messages"][0]["content"] for r in report.rows.request]
    assert (texts if column == "request" else report.rows.response.tolist()) == ["Hi", None, "Ho"]


STORED: list[list[dict[str, Any]] | None] = [
    [{"doc_uri": "x", "content": "never read"}],
    [{"doc_uri": "a", "content": "A"}],
    None,
    [{"doc_uri": "b", "content": None}],
]
TEXT_PAIR = [("doc_uri", pa.string()), ("content", pa.string())]


def _documents(text: pa.DataType) -> pa.DataType:
    return pa.struct([("doc_uri", text), ("content", text)])


DOCUMENT_TYPES = {
    "list": pa.list_(_documents(pa.string())),
    "large-list": pa.large_list(_documents(pa.string())),
    "fixed-list": pa.list_(_documents(pa.string()), 1),
    "list-view": pa.list_view(_documents(pa.string())),
    "large-text": pa.list_(_documents(pa.large_string())),
    "view-text": pa.list_(_documents(pa.string_view())),
    "binary-text": pa.list_(_documents(pa.binary())),
    "dictionary-text": pa.list_(_documents(pa.dictionary(pa.int8(), pa.string()))),
    "map": pa.list_(pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize("column", ["retrieved_context", "expected_retrieved_context"])
@pytest.mark.parametrize("kind", DOCUMENT_TYPES.values(), ids=DOCUMENT_TYPES)
def test_documents_in_any_nested_arrow_type_and_slice(kind: pa.DataType, column: str) -> None:
    cells: Any = STORED
    if pa.types.is_map(getattr(kind, "value_type", kind)):
        cells = [None if c is None else [list(d.items()) for d in c] for c in STORED]
    table = pa.table({"request": ["q"] * 4, "response": ["a"] * 4, column: pa.array(cells, kind)}).slice(1)
    report = whole(table)
    assert report.ok, report.to_text()
    assert report.rows[column].tolist() == STORED[1:]


def test_documents_under_a_null_are_not_read() -> None:
    flat = pa.array([{"doc_uri": u, "content": u} for u in "abc"], _documents(pa.string()))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), flat, mask=pa.array([False, True, False]))
    report = whole(pa.table({"request": ["q"] * 3, "response": ["a"] * 3, "retrieved_context": lists}))
    assert [c and c[0]["doc_uri"] for c in report.rows.retrieved_context] == ["a", None, "c"]


def test_nested_maps_are_objects() -> None:
    kind = pa.map_(pa.string(), pa.map_(pa.string(), pa.list_(pa.map_(pa.string(), pa.int32()))))
    cells = pa.array([[("a", [("b", [[("c", 1)]])])], None], kind)
    report = whole(pa.table({"request": ["a", "b"], "response": ["c", "d"], "custom_expected": cells}))
    assert report.ok, report.to_text()
    assert report.rows.custom_expected.tolist() == [{"a": {"b": [{"c": 1}]}}, None]


ODD_TYPES = {
    "null": pa.nulls(2),
    "decimal": pa.array([Decimal("1.5"), None]),
    "timestamp-ns": pa.array([1, None], pa.timestamp("ns")),
    "timestamp-zone": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
    "timestamp-far": pa.array([2**62, None], pa.timestamp("s")),
    "date-far": pa.array([2**30, None], pa.date32()),
    "time": pa.array([1, None], pa.time64("ns")),
    "duration": pa.array([1, None], pa.duration("ns")),
    "duration-far": pa.array([2**62, None], pa.duration("s")),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None]),
    "half-float": pa.array(np.array([1, 2], np.float16)),
    "NaN": pa.array([float("nan"), math.inf]),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "uuid": pa.array([b"0" * 16, None], pa.uuid()),
    "empty-struct": pa.array([{}, None], pa.struct([])),
    "twice-in-a-struct": pa.StructArray.from_arrays([pa.array(["a", "b"])] * 2, ["x", "x"]),
    "map-of-bytes": pa.array([[(b"\xe9", b"\xe9")], None], pa.map_(pa.binary(), pa.binary())),
    "bytes-inside": pa.array([[b"\xe9"], None]),
    "text-not-utf-8": pa.Array.from_buffers(pa.string(), 2, pa.array([b"caf\xe9", b"x"]).buffers()),
}


@pytest.mark.parametrize("column", ["extra", "custom_expected", "request", "trace", "request_id"])
@pytest.mark.parametrize("cells", ODD_TYPES.values(), ids=ODD_TYPES)
def test_arrow_columns_of_any_type_do_not_stop_a_check(cells: pa.Array, column: str) -> None:
    table = {"request": pa.array(["a", "b"]), "response": pa.array(["c", "d"]), column: cells}
    report = whole(pa.table(table))
    assert report.row_count == 2
    if column == "extra":
        assert report.valid_count == 2


@pytest.mark.parametrize("cells", ODD_TYPES.values(), ids=ODD_TYPES)
def test_rows_of_any_arrow_type_are_written_or_refused_in_words(cells: pa.Array, tmp_path: Path) -> None:
    report = validate_eval_set(pa.table({"request": ["a", ""], "response": ["c", "d"], "extra": cells}))
    for ending in ("jsonl", "parquet"):
        try:
            assert report.write(str(tmp_path / f"rows.{ending}")) == 2
            assert report.write_invalid(str(tmp_path / f"invalid.{ending}")) == 1
        except EvalSetError as error:
            assert "extra" in str(error)  # noqa: PT017 -- either outcome is right, an unexplained crash is not


@pytest.mark.parametrize("kind", ["string", "binary"])
@pytest.mark.parametrize("before", ["caf", "a" * 70_000, "ü" * 10], ids=["short", "long", "other text"])
def test_bytes_that_are_not_utf_8_are_told(kind: str, before: str) -> None:
    cells = pa.array([before.encode() + b"\xe9", b"x"])
    cells = pa.Array.from_buffers(pa.string(), 2, cells.buffers()) if kind == "string" else cells
    report = whole(pa.table({"request": cells, "response": ["a", "b"]}))
    assert report.counts == {"AE005": 1}


def test_traces_of_any_arrow_type_do_not_stop_a_check() -> None:
    """A table of traces (info, data) is put together from its columns before any rule runs."""
    for cells in ODD_TYPES.values():
        whole(pa.table({"info": cells, "data": ['{"spans": []}'] * 2}))


def test_nan_is_absent_in_arrow_as_in_pandas() -> None:
    table = pa.table({"request": ["a"], "response": ["b"], "latency_seconds": [math.nan]})
    assert whole(table).counts == whole(table.to_pandas()).counts == {}


def test_a_line_that_is_no_row_is_one_issue_in_a_file_of_traces_too(tmp_path: Path) -> None:
    trace = json.dumps({"info": {"trace_id": "t"}, "data": {"spans": []}})
    report = whole(file(tmp_path, "a.jsonl", f"{trace}\n{{broken\n"))
    assert report.format == "traces"
    assert [i.code for i in report.iter_issues() if i.row == 1] == ["AE007"]


# ---------------------------------------------------------------------------------------------------------------------
# what is written can be read again


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("sample", ["broken.jsonl"])
def test_invalid_rows_that_were_written_have_the_same_errors(
    sample: str, ending: str, samples: Path, tmp_path: Path
) -> None:
    report = validate_eval_set(samples / sample, ignore=["AE9"])
    out = str(tmp_path / f"invalid.{ending}")
    assert report.write_invalid(out) == report.invalid_count
    again = whole(out, ignore=["AE9"], outputs="provided")
    lines = {
        "AE003",
        "AE007",
        "AE201",
        "AE223",
    }  # of lines that were no rows: now they are rows that hold only the line
    errors = set(report.issues.query("severity == 'error'").code) - lines
    assert {c: again.counts.get(c) for c in errors} == {c: report.counts[c] for c in errors}
    assert errors | lines >= set(again.issues.query("severity == 'error'").code)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_invalid_rows_that_were_written_can_be_written_again(ending: str, tmp_path: Path) -> None:
    first, second = (str(tmp_path / f"{n}.{ending}") for n in ("first", "second"))
    whole([{"request": "", "response": "x", "tags": {"a": "b"}}, GOOD]).write_invalid(first)
    again = whole(first)
    assert again.counts["AE202"] == 1
    assert again.write_invalid(second) == 1
    assert whole(second).counts["AE202"] == 1


def test_a_mark_in_a_users_file_does_not_change_how_it_is_read(tmp_path: Path) -> None:
    field = pa.field("request", pa.string(), metadata={"cells": "json"})
    table = pa.table([pa.array(["Hi"]), pa.array(["Hello"])], schema=pa.schema([field, ("response", pa.string())]))
    pq.write_table(table, tmp_path / "a.parquet")
    for data in (table, str(tmp_path / "a.parquet")):
        assert whole(data).counts == {}


# ---------------------------------------------------------------------------------------------------------------------
# hostile text

HOSTILE = "\x1b[2J\x1b]0;pwned\x07\x9b31m[bold]x[/bold]\u202egnp\u2066\u2028\r\x08\x00:smile: 😀 é\n{{7*7}}</script>"
HOSTILE_ROWS = [
    {
        "request_id": HOSTILE,
        "request": {"msgs": 1, HOSTILE: 2},
        "response": {HOSTILE: 1},
        "expected_retrieved_context": [{HOSTILE: 1}],
        "expected_facts": HOSTILE,
        "guidelines": {HOSTILE: [1]},
        "tags": {HOSTILE: [1]},
        "custom_expected": HOSTILE,
        "predicted_trajectory": [{"tool_name": "x", HOSTILE: 1}],
        "trace": HOSTILE,
        HOSTILE: 1,
    },
    {"request_id": HOSTILE, "request": {"messages": [{"role": HOSTILE, "content": HOSTILE}]}, "response": HOSTILE},
]


def test_hostile_text_is_shown_and_not_sent() -> None:
    report = whole(HOSTILE_ROWS)  # `whole` looks for control characters
    text = report.to_text(width=500)
    assert r"\x1b[2J" in text
    assert "[bold]x[/bold]" in text
    assert r"\u202e" in text
    assert ":smile: 😀 é" in text
    assert not UNSAFE.findall(re.sub(r"\x1b\[[0-9;]*m", "", report.to_text(color=True)))


@pytest.mark.parametrize("output", ["text", "json"])
def test_the_command_line_sends_no_control_characters(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(tmp_path, "a\x1b[2J\u202e.jsonl", "".join(json.dumps(r) + "\n" for r in HOSTILE_ROWS) + HOSTILE)
    assert main(["validate", path, "--output", output]) == 1
    printed = capsys.readouterr()
    assert not UNSAFE.findall(printed.out + printed.err)


def test_why_can_be_printed() -> None:
    assert not UNSAFE.findall(whole(HOSTILE_ROWS).why(0, "safety"))


# ---------------------------------------------------------------------------------------------------------------------
# properties

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
JSON = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v, max_size=3), max_leaves=6)
DOCUMENTS = st.lists(
    st.fixed_dictionaries({"doc_uri": TEXT}, optional={"content": TEXT, "page_content": TEXT}), max_size=3
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "usr"]), "content": TEXT | st.none()}
)
PLAUSIBLE = {
    "request": TEXT | st.fixed_dictionaries({"messages": st.lists(MESSAGE, max_size=3)}) | st.just('{"messages": [}'),
    "response": TEXT | st.just({"choices": [{"message": {"role": "assistant", "content": "ok"}}]}),
    "request_id": st.sampled_from(["a", "b", "c", 1, 2.0]),
    "expected_response": TEXT,
    "expected_facts": st.lists(TEXT, max_size=2),
    "retrieved_context": DOCUMENTS | st.just('[{"doc_uri": "a"}]') | st.just('[{"doc_uri": "a"'),
    "expected_retrieved_context": DOCUMENTS,
    "guidelines": st.dictionaries(TEXT, st.lists(TEXT, max_size=2), max_size=2) | st.lists(TEXT, max_size=2),
    "predicted_trajectory": st.lists(st.fixed_dictionaries({"tool_name": TEXT}, optional={"args": JSON}), max_size=2),
    "trace": st.sampled_from(['{"info": {}, "data": {"spans": []}}', '{"info": {', {"info": {}, "data": {}}]),
    "total_token_count": st.integers(0, 2**70) | st.just("many"),
    "tags": st.dictionaries(TEXT, SCALARS, max_size=2),
    "custom_expected": st.dictionaries(TEXT, JSON, max_size=2),
    "team": JSON,
    "expected_respones": TEXT,
}
ROW = st.fixed_dictionaries({}, optional={name: cell | st.none() | JSON for name, cell in PLAUSIBLE.items()})
ROWS = st.lists(ROW, min_size=1, max_size=6)

property_test = settings(
    max_examples=30,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def findings(report: Report) -> list[tuple[Any, ...]]:
    found = [
        (-1 if i.row is None else i.row, i.column or "", i.path or "", i.code, i.message) for i in report.iter_issues()
    ]
    return sorted(found)


@property_test
@given(rows=ROWS)
def test_verdicts_do_not_depend_on_the_size_of_batches(rows: list[dict[str, Any]]) -> None:
    expected = validate_eval_set(rows, outputs="provided")
    for size in (1, 2, 7):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "MAX_BATCH_ROWS", size)
            report = validate_eval_set(rows, outputs="provided")
            assert findings(report) == findings(expected)
            assert report.rows.request.tolist() == expected.rows.request.tolist()
            assert report.metric_support.equals(expected.metric_support)


@property_test
@given(rows=ROWS)
def test_valid_and_invalid_are_the_input_in_order_and_unchanged(rows: list[dict[str, Any]]) -> None:
    before = copy.deepcopy(rows)
    report = whole(rows)
    valid, invalid = iter(report.valid), iter(report.invalid)
    assert [next(valid if good else invalid) for good in report.valid_mask] == before
    for row, good, response in zip(before, report.valid_mask, report.rows.response, strict=True):
        if good and isinstance(row.get("response"), str):
            assert response == row["response"]
    normalize_eval_set(rows, on_invalid="keep")
    assert rows == before


@property_test
@given(rows=ROWS)
def test_a_frame_is_not_changed(rows: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(rows, dtype="object", index=range(10, 10 + len(rows)))
    before = pd.DataFrame(copy.deepcopy(rows), dtype="object", index=frame.index)
    report = whole(frame)
    canonical = report.rows
    canonical.iloc[:, 0] = "edited"
    assert exactly(frame) == exactly(before)
    assert exactly(report.valid) == exactly(before[report.valid_mask])
    assert exactly(report.invalid) == exactly(before[~report.valid_mask])


def exactly(frame: pd.DataFrame) -> tuple[Any, ...]:
    """All of a frame that one can see, None and NaN told apart (pandas takes them for equal, or warns, or changes one
    into the other where it puts frames together)."""
    cells = [[repr(value) for value in frame.iloc[:, i]] for i in range(frame.shape[1])]
    return list(frame.index), list(frame.columns), list(frame.dtypes), cells


@property_test
@given(rows=ROWS)
def test_the_same_rows_have_the_same_issues_as_list_frame_and_lines(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = list(dict.fromkeys(n for r in rows for n in r))
    frame = pd.DataFrame(
        {n: pd.Series([r.get(n) for r in rows], dtype="object") for n in names}, index=range(len(rows))
    )
    folder = tmp_path_factory.getbasetemp() / "lines"
    folder.mkdir(exist_ok=True)
    lines = file(folder, "a.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
    expected = findings(whole(rows))
    assert findings(whole(frame)) == expected
    assert findings(whole(lines)) == expected


@pytest.mark.parametrize("at", range(len(STEPS)), ids=[s.run.__name__ for s in STEPS])
def test_a_defect_in_a_step_costs_only_the_row_that_it_broke_on(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(rows: Any) -> None:
        if "boom" in rows.batch.column("request_id").to_pylist():
            raise ZeroDivisionError("of \x1b[2J")
        STEPS[at].run(rows)

    step.__code__ = step.__code__.replace(co_name=STEPS[at].run.__name__)
    rows = [
        {**GOOD, "request_id": i, "response": r} for i, r in (("a", "x"), ("b", 3), ("boom", "y"), ("c", "z"), ("d", 4))
    ]
    sound = validate_eval_set(rows)
    monkeypatch.setattr(kernel, "STEPS", (*STEPS[:at], Step(step), *STEPS[at + 1 :]))
    broken = validate_eval_set(rows)
    assert broken.valid_mask.tolist() == [True, False, False, True, False]
    assert [f for f in findings(broken) if f[0] != 2] == findings(sound)
    (found,) = [i for i in broken.iter_issues() if i.code == "AE001"]
    assert found.row == 2
    assert f"`{STEPS[at].run.__name__}`" in found.message
    assert "ZeroDivisionError" in found.message
    assert not UNSAFE.findall(broken.to_text())


@pytest.mark.process
def test_several_processes_say_the_same_as_one(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for jobs in ("1", "2"):
        assert main(["validate", str(samples / "broken.jsonl"), "--jobs", jobs]) == 1
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


@pytest.mark.parametrize("form", [list, pd.DataFrame, pa.Table.from_pylist])
def test_an_infinite_number_inside_a_value_in_memory_is_told_as_in_a_file(form: Callable[[Any], Any]) -> None:
    values = [{"n": float("inf")}, {"n": float("nan")}, {"n": 1.0}, {"n": -float("inf")}]
    rows = [{"request": f"a{i}", "response": "inf", "custom_expected": v} for i, v in enumerate(values)]
    report = validate_eval_set(form(rows))
    assert report.issues[["row", "code", "column"]].to_numpy().tolist() == [
        [row, code, "custom_expected"] for row, code in ((0, "AE003"), (1, "AE185"), (3, "AE003"))
    ]
    assert "got the literal -Infinity at byte" in report.issues["message"][2]
    assert [value and value["n"] for value in report.rows["custom_expected"]] == [None, None, 1.0, None]


def test_a_row_that_raises_has_no_columns_of_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the rows of one batch have the same columns, with those that are passed through."""
    read = deepeval._documents

    def fail(text: Any) -> list[Any]:
        return read(text) if text != "boom" else [1 / 0]

    monkeypatch.setattr(deepeval, "_documents", fail)
    rows = [{"input": str(i), "actual_output": "a", "context": ["x"], "unknown": 1} for i in range(5)]
    rows[1]["context"] = ["boom"]
    report = validate_eval_set(rows, format="deepeval")
    assert [i.row for i in report.iter_issues() if i.code == "AE001"] == [1]
    normalized = pd.DataFrame(normalize_eval_set(rows, format="deepeval", on_invalid="keep"))
    assert normalized["request"].notna().tolist() == [True, False, True, True, True]
    assert normalized["unknown"].notna().all()
    assert "context" not in normalized


def test_checked_batches_with_different_columns_become_one() -> None:
    plan = Plan("databricks", "provided", True, frozenset(), columns=True)
    rows = [{"request": "a", "x": "1", "respones": "b"}, {"request": "a", "y": "2", "respones": "b"}]
    joined = join([kernel.check_batch(pa.RecordBatch.from_pylist([row]), plan) for row in rows], plan)
    assert [joined.column(joined.schema.get_field_index(name)).to_pylist() for name in "xy"] == [
        ["1", None],
        [None, "2"],
    ]
    assert json.loads(joined.schema.metadata[b"columns"]) == ["request", "x", "respones", "y"]
    assert json.loads(joined.schema.metadata[b"misspelled"]) == {"respones": 2}
