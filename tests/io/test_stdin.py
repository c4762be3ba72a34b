"""`-` is stdin, in every command that reads a file: its form is told by its content."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.validation.report import summary_of
from tests.conftest import KINDS, SAMPLES

ROWS: list[dict[str, Any]] = [{"request": f"question {i}", "response": "x", "respones": "y"} for i in range(5)]


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give bytes to stdin."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_each_kind_of_file_is_read_as_from_its_path(give: Any, tmp_path: Path) -> None:
    for kind in ("jsonl", "json", "csv", "parquet"):
        path = Path(KINDS[kind](ROWS, tmp_path))
        plain = validate_eval_set(path)
        give(path.read_bytes())
        report = validate_eval_set("-")
        assert summary_of(report).name == "<stdin>"
        assert list(report.iter_issues()) == list(plain.iter_issues())
        assert list(report.iter_rows()) == list(plain.iter_rows())


ROW = b'{"request": "a", "response": "b"}'
FORMS = {
    "one object": (ROW, "json", 1),
    "one object and a line end": (ROW + b"\n", "json", 1),
    "an object per line": (ROW + b"\n" + ROW, "jsonl", 2),
    "blank lines and a BOM": (b"\xef\xbb\xbf\n\n" + ROW + b"\r\n\r\n" + ROW, "jsonl", 2),
    "the first line is broken": (ROW[:-1] + b"\n" + ROW, "jsonl", 2),
    "the second line is broken": (ROW + b"\n{", "jsonl", 2),
    "an indented object": (json.dumps(json.loads(ROW), indent=2).encode(), "json", 1),
    "an indented list": (json.dumps([json.loads(ROW)] * 3, indent=2).encode(), "json", 3),
    "an object that goes on below": (b'{"evaluations": [\n{"displayName": "a"}\n]}', "json", 1),
    "commas": (b"request,response\na,b\n", "csv", 1),
    "tabs": (b"request\tresponse\na\tb\n", "csv", 1),
    "gzip": (gzip.compress(ROW + b"\n" + ROW), "jsonl", 2),
    "bzip2": (bz2.compress(b"request,response\na,b\n"), "csv", 1),
    "Zstandard": (pa.compress(b"[" + ROW + b"]", "zstd", asbytes=True), "json", 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_form_is_told_by_the_content(form: str, give: Any) -> None:
    data, kind, rows = FORMS[form]
    give(data)
    source = open_source("-")
    report = validate_eval_set(source)  # type: ignore[arg-type]
    assert (source.kind, report.row_count) == (kind, rows)
    if report.format == "databricks" and "broken" not in form:
        assert report.ok


def test_a_row_that_is_longer_than_what_is_read_at_once(give: Any) -> None:
    long = json.dumps({"request": "a" * (3 << 20), "response": "b"}).encode()
    give(long + b"\n" + ROW)
    assert validate_eval_set("-").row_count == 2


COMMANDS = {
    "validate -": SAMPLES / "good.jsonl",
    "validate - --output json": SAMPLES / "good.csv",
    "validate - --fix fixed.jsonl": SAMPLES / "broken.jsonl",
    "validate - --diff": SAMPLES / "broken.jsonl",
    "metrics -": SAMPLES / "good.jsonl",
    f"diff - {SAMPLES / 'edited_broken.jsonl'}": SAMPLES / "good.jsonl",
    f"diff {SAMPLES / 'good.jsonl'} -": SAMPLES / "edited_broken.jsonl",
    "convert - out.jsonl --to mlflow": SAMPLES / "good.jsonl",
    "convert - out.jsonl": SAMPLES / "help_desk.evalset.json",
    "score -": SAMPLES / "vertex.jsonl",
    "from-traces - out.jsonl": SAMPLES / "search_traces.jsonl",
    "from-inference-table - out.jsonl": SAMPLES / "inference_table.jsonl",
    f"ces update - --against {SAMPLES / 'evaluation.json'} --dry-run": SAMPLES / "evaluation_edited.json",
    f"ces update {SAMPLES / 'evaluation_edited.json'} --against - --dry-run": SAMPLES / "evaluation.json",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_and_writes_the_same_from_stdin(
    command: str, give: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "inference" in command:
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    source = COMMANDS[command]

    def outcome(name: str) -> tuple[int, str, dict[str, bytes]]:
        code = main([str(source) if word == "-" and name != "-" else word for word in command.split()])
        written = {path.name: path.read_bytes() for path in tmp_path.iterdir() if "manifest" not in path.name}
        for path in tmp_path.iterdir():
            path.unlink()
        text = capsys.readouterr().out.replace(f"validate {source}", "validate -")  # commands to type
        text = text.replace(f"review {source}", "review -")
        text = text.partition("Shows the rows")[0]  # which would need the rows once more
        return code, " ".join(text.replace(str(source), "<stdin>").split()), written

    given = outcome(str(source))
    give(source.read_bytes())
    assert outcome("-") == given
    assert given[0] in (0, 1)


@pytest.mark.parametrize(
    ("command", "data", "said"),
    [
        ("validate -", b"", "<stdin>: expected JSON Lines, JSON, CSV or Parquet; got no data"),
        ("diff - -", ROW, "-: stdin can be read only once, for one argument"),
        ("validate - --write-normalized - --write-invalid -", ROW, "-: stdout can take rows only once"),
        ("validate - --html -", ROW, "-: expected the path of a file"),
        ("validate -", "request\na".encode("utf-16"), "<stdin>: line 1: expected UTF-8, got UTF-16"),
        (
            "validate -",
            b"<!DOCTYPE html>",
            "<stdin>: expected rows, got an HTML page: log in, or use the address of the fi",
        ),
        ("validate -", "a,b\né,c\nü,d\n".encode("cp1252"), "got Windows-1252: save it as UTF-8 in a file"),
        ("validate -", b"PAR1 and no more", "<stdin>: cannot be read"),
        ("validate -", gzip.compress(ROW * 9, mtime=0)[:-9], "<stdin>: cannot be read"),
        ("ces update - --mask displayName", b'{"a"', "<stdin>: "),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line(
    command: str, data: bytes, said: str, give: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    give(data)
    code, told = main(command.split()), capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (2, "", 1)
    assert said in told.err
    assert list(tmp_path.iterdir()) == []


def test_no_stdin_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(EvalSetError, match="got no data"):
        validate_eval_set("-")


def test_the_copy_goes_with_the_report(give: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    give(ROW)
    report = validate_eval_set("-")
    assert len(report.rows) == 1
    assert list(tmp_path.iterdir()) != []
    del report
    gc.collect()
    assert list(tmp_path.iterdir()) == []
