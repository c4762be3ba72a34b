"""The command `profile`: what it prints and writes, and its exit codes."""

import contextlib
import json
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from tests.cli.test_main import run

QUESTION = "How many days of parental leave do I get this year?"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = [{"request": QUESTION, "response": "16", "expected_response": str(i)} for i in range(2)]
    lines += [{"request": "", "response": "x"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_text_and_json(capsys: pytest.CaptureFixture[str], rows: Path) -> None:
    code, out, err = run(capsys, "profile", rows)
    assert (code, err) == (0, "")
    assert "1 distinct question in 2 valid rows" in out
    code, out, _ = run(capsys, "profile", rows, "--output", "json")
    assert code == 0
    assert json.loads(out)["invalid"] == 1


@pytest.mark.parametrize("what", ["invalid", "duplicates", "conflicts"])
def test_fail_on(capsys: pytest.CaptureFixture[str], rows: Path, samples: Path, what: str) -> None:
    assert run(capsys, "profile", rows, "--fail-on", what)[0] == 1
    assert run(capsys, "profile", rows, "--fail-on", "leaks", "--fail-on", what)[0] == 1
    assert run(capsys, "profile", samples / "good.jsonl", "--fail-on", what)[0] == 0


def test_leaks(capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "few_shot.txt"
    prompt.write_text(f"Q: {QUESTION}")
    code, out, _ = run(capsys, "profile", rows, "--against", prompt, "--fail-on", "leaks")
    assert code == 1
    assert "2 rows: the same question in" in out


def test_files(capsys: pytest.CaptureFixture[str], rows: Path, tmp_path: Path) -> None:
    page, distinct = tmp_path / "p.html", tmp_path / "distinct.jsonl"
    code, _, err = run(capsys, "profile", rows, "--html", page, "--write-distinct", distinct)
    assert code == 0
    assert "2 distinct rows written to" in err
    assert page.read_text().startswith("<!doctype html>")
    assert len(distinct.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--price", "2.5"], "expected input=AMOUNT,output=AMOUNT"),
        (["--near", "2"], "near: expected a number from 0 to 1"),
        (["--against", "no-such.txt"], "no-such.txt: No such file"),
        (["--write-distinct", "x.docx"], "expected .jsonl or"),
    ],
)
def test_what_cannot_run(capsys: pytest.CaptureFixture[str], rows: Path, arguments: list[str], words: str) -> None:
    with contextlib.suppress(SystemExit):  # argparse ends so
        assert main(["profile", str(rows), *arguments]) == 2
    assert words in capsys.readouterr().err
