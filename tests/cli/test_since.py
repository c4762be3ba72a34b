"""`diff --since COMMIT`: the datasets of a repository beside those of a commit; no dataset disappears in silence."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from tests.conftest import SAMPLES


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two datasets, a README, a script and a binary file beside them."""
    monkeypatch.chdir(tmp_path)
    evals = tmp_path / "evals"
    evals.mkdir()
    for name in ("good.jsonl", "ragas.jsonl"):
        shutil.copy(SAMPLES / name, evals / name)
    (evals / "README.md").write_text("Our datasets.\n")
    (evals / "make.py").write_text("print('rows')\n")
    (evals / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "datasets")
    return tmp_path


def shorter(path: Path, rows: int) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-rows]))


def merge(folder: Path) -> None:
    """A merge commit under way, by which a row is lost."""
    git("checkout", "-q", "-b", "other")
    (folder / "notes.txt").write_text("a\n")
    git("add", "-A")
    git("commit", "-q", "-m", "notes")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-commit", "--no-ff", "other")
    shorter(folder / "evals" / "good.jsonl", 1)


LOSSES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a row less": (lambda here: shorter(here / "evals/good.jsonl", 1), "--- HEAD:evals/good.jsonl"),
    "git rm": (lambda _: git("rm", "-q", "evals/good.jsonl"), "HEAD:evals/good.jsonl: the dataset is deleted"),
    "deleted, not staged": (lambda here: (here / "evals/good.jsonl").unlink(), "HEAD:evals/good.jsonl: the dataset is"),
    "git mv with a row less": (
        lambda here: (git("mv", "evals/good.jsonl", "evals/better.jsonl"), shorter(here / "evals/better.jsonl", 1)),
        "--- HEAD:evals/good.jsonl",
    ),
    "git mv out of the folder, cut": (
        lambda here: (git("mv", "evals/good.jsonl", "rows.jsonl"), shorter(here / "rows.jsonl", 10), git("add", "-A")),
        "HEAD:evals/good.jsonl: the dataset is deleted",
    ),
    "a merge commit": (merge, "--- HEAD:evals/good.jsonl"),
}


@pytest.mark.parametrize("change", LOSSES)
@pytest.mark.parametrize("files", [[], ["evals"], ["evals/*.jsonl"]], ids=["default", "folder", "pattern"])
def test_what_is_lost_is_found(
    change: str, files: list[str], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, shown = LOSSES[change]
    make(repository)
    assert main(["diff", "--since", "HEAD", *files, "--fail-on", "loss"]) == 1
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("files", [[], ["evals"], ["evals/*.jsonl"]], ids=["default", "folder", "pattern"])
def test_other_changes_are_no_losses(files: list[str], repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git("mv", "evals/ragas.jsonl", "evals/rag.jsonl")
    (repository / "evals/README.md").write_text("Changed.\n")
    (repository / "evals/make.py").unlink()
    (repository / "evals/logo.png").write_bytes(b"\x00")
    with (repository / "evals/good.jsonl").open("a") as file:
        file.write('{"request_id": "new", "request": "On Sundays?", "response": "No."}\n')
    assert main(["diff", "--since", "HEAD", *files, "--fail-on", "loss"]) == 0
    out = capsys.readouterr().out
    assert "1 added" in out
    assert "README" not in out


def test_without_a_change_that_is_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert repository.is_dir()
    assert main(["diff", "--since", "HEAD"]) == 0
    assert capsys.readouterr().out == "✓ No evaluation dataset has changed since HEAD.\n"


def test_as_markdown_no_cell_ends_its_block(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (repository / "evals/good.jsonl").open("a") as file:
        file.write('{"request_id": "new", "request": "````\\n# Title <b>", "response": "No."}\n')
    git("rm", "-q", "evals/ragas.jsonl")
    assert main(["diff", "--since", "HEAD", "--output", "markdown", "--fail-on", "never"]) == 0
    lines = capsys.readouterr().out.splitlines()
    fences = [line for line in lines if line.startswith("```")]
    assert len(fences) == 4
    assert all(opened == f"{closed}text" for opened, closed in zip(fences[::2], fences[1::2], strict=True))
    text = "\n".join(lines)
    assert "1 added" in text
    assert "evals/ragas.jsonl: the dataset is deleted" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--since", "HEAD", "evals/none.jsonl"], "no file of this repository matches evals/none.jsonl"),
        (["--since", "nope"], "--since: expected a commit of this repository, got 'nope'"),
        (["--since=--output=x"], "--since: expected a commit of this repository, got '--output=x'"),
        (["--since", "HEAD", "--html", "page.html"], "--since prints text or Markdown"),
        (["evals/good.jsonl"], "expected OLD and NEW, or --since COMMIT; got 1 file"),
    ],
)
def test_what_cannot_run_says_why(
    words: list[str], message: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (repository / "x").exists()


def test_before_the_first_commit_there_is_nothing_to_compare_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    assert main(["diff", "--since", "HEAD", "--fail-on", "loss"]) == 0


def test_outside_of_a_repository_git_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["diff", "--since", "HEAD"]) == 2
    assert "not a git repository" in capsys.readouterr().err


def test_advice_on_an_earlier_version_names_no_copy(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = repository / "evals" / "large.jsonl"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n")
    git("add", "-A")
    git("commit", "-q", "-m", "a pointer")
    shutil.copy(SAMPLES / "good.jsonl", path)
    assert main(["diff", "--since", "HEAD"]) == 2
    error = capsys.readouterr().err
    assert "HEAD:evals/large.jsonl: expected the data, got a pointer of Git LFS" in error
    assert "git -C . lfs pull" in " ".join(error.split())


def test_without_git_there_is_no_commit(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert main(["diff", "--since", "HEAD"]) == 2
    assert capsys.readouterr().err == "agent-eval-schema: --since: git is not installed\n"
