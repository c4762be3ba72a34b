"""A validation that writes normalized rows and is interrupted after any part is, resumed, the one that was not."""

from __future__ import annotations

import random
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema.cli import main
from agent_eval_schema.io.work_folder import PartsFolder, work_of
from tests.conftest import SAMPLES
from tests.conversion.test_resume import Interrupted, interrupted_after

LINES = [
    line
    for name in ("good.jsonl", "broken.jsonl", "traces_mlflow2.jsonl")
    for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()
]


def run(path: Path, folder: Path, *options: str) -> tuple[str, bytes, bytes]:
    """What a validation of a file prints and writes."""
    folder.mkdir(exist_ok=True)
    rows, invalid = folder / "rows.jsonl", folder / "invalid.jsonl"
    written = ["--write-normalized", str(rows), "--write-invalid", str(invalid), *options]
    with redirect_stdout(StringIO()) as printed:
        assert main(["validate", str(path), "-q", "--output", "json", *written]) in (0, 1)
    return printed.getvalue(), rows.read_bytes(), invalid.read_bytes()


def interrupted(path: Path, folder: Path, parts: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        interrupted_after(parts, patch)
        with pytest.raises(Interrupted):
            run(path, folder, "--resume")


@settings(deadline=None, max_examples=12)
@given(chosen=st.lists(st.sampled_from(LINES), min_size=1, max_size=12), chance=st.randoms())
def test_the_result_is_that_of_one_run(
    chosen: list[str], chance: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("resumed")
    path, out = folder / "rows.jsonl", folder / "resumed"
    path.write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 2)
        expected = run(path, folder / "whole")
        parts = -(-len(chosen) // 2)
        done = chance.randrange(parts)
        interrupted(path, out, done)
        assert sorted(p.name for p in out.iterdir()) == [".rows.jsonl.work"]
        made: list[int] = []
        commit = PartsFolder.commit
        patch.setattr(
            PartsFolder, "commit", lambda self, number, *more: [made.append(number), commit(self, number, *more)]
        )
        assert run(path, out, "--resume") == expected
    assert made == list(range(done, parts))  # once, although the rows are written after the report
    assert sorted(p.name for p in out.iterdir()) == ["invalid.jsonl", "rows.jsonl"]


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of rows beside which an interrupted run has left its work."""
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 2)
    path = tmp_path / "in.jsonl"
    path.write_bytes((SAMPLES / "good.jsonl").read_bytes())
    interrupted(path, tmp_path, 3)
    return path


def test_the_work_of_another_run_is_not_taken(left: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = left.with_name("rows.jsonl")
    options = [
        "validate",
        str(left),
        "--write-normalized",
        str(out),
        "--write-invalid",
        str(left.with_name("invalid.jsonl")),
    ]
    assert main([*options, "--resume", "--ignore", "AE6"]) == 2
    assert "cannot resume: it was left by a run on other data or with other options" in capsys.readouterr().err
    left.write_bytes((SAMPLES / "broken.jsonl").read_bytes())
    assert main([*options, "--resume"]) == 2
    assert work_of(str(out)).exists()
    assert main(options) == 1  # a run that does not continue it removes it
    assert not work_of(str(out)).exists()


def test_data_that_changed_behind_a_url_is_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 2)
    path, out = tmp_path / "in.jsonl", tmp_path / "rows.jsonl"
    lines = (SAMPLES / "good.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines), encoding="utf-8")
    options = ["validate", path.as_uri(), "--write-normalized", str(out), "--resume"]
    with pytest.MonkeyPatch.context() as patch:
        interrupted_after(2, patch)
        with pytest.raises(Interrupted):
            main(options)
    path.write_text("".join([lines[5], *lines[1:]]), encoding="utf-8")
    assert main(options) == 2
    assert "the data has changed since the run was begun" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "--resume requires --write-normalized with a file on this machine"),
        (["--write-normalized", "-"], "--resume requires --write-normalized with a file on this machine"),
        (
            ["--write-normalized", "memory://a/b.jsonl"],
            "--resume requires --write-normalized with a file on this machine",
        ),
        (["--write-normalized", "OUT", "--jobs", "2"], "--resume excludes --fix, --diff and --jobs"),
        (["--write-normalized", "OUT", "--diff"], "--resume excludes --fix, --diff and --jobs"),
    ],
)
def test_what_cannot_be_resumed_is_an_error(
    options: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [str(tmp_path / "out.jsonl") if word == "OUT" else word for word in options]
    assert main(["validate", str(SAMPLES / "good.jsonl"), *options, "--resume"]) == 2
    assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
