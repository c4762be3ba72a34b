"""Progress: nothing for a second, then on a terminal or in a notebook only; and the pace of a long run at its end."""

import gzip
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from agent_eval_schema import cli, eval_set_from_traces, validate_eval_set
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io.source import Share
from agent_eval_schema.runtime import progress
from agent_eval_schema.runtime.progress import PATIENCE, PAUSE, pace_text, progress_text, terminal
from agent_eval_schema.validation import checked_run
from agent_eval_schema.validation.validate import check_source
from tests.conftest import KINDS

ROWS = [{"request": f"question {i}", "response": "Hello " * 200} for i in range(3_000)]
"""Several pieces of a text file, which is read piece by piece."""


class Paper:
    """A screen that keeps what was drawn."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, float | None]] = []
        self.closed: list[str] = []

    def show(self, text: str, share: float | None) -> None:
        self.shown.append((text, share))

    def close(self, text: str) -> None:
        self.closed.append(text)


def drawn_at(times: list[float]) -> Paper:
    """What was drawn when a batch of 100 rows was done at each of these times; the check begins at 0."""
    paper, clock = Paper(), iter([0.0, *times, times[-1]])
    share = open_source([{}] * 1000).read_share
    now = patch.object(progress, "monotonic", lambda: next(clock))
    with now, progress.shown_on(lambda: paper), progress.progress(share) as so_far:
        for _ in times:
            so_far.add(100)
    return paper


def test_nothing_is_shown_for_a_second() -> None:
    paper = drawn_at([0.1, 0.5, PATIENCE - 0.01])
    assert (paper.shown, paper.closed) == ([], [])


def test_after_a_second_every_batch_is_shown_but_not_too_often() -> None:
    paper = drawn_at([0.5, PATIENCE, PATIENCE + PAUSE / 2, PATIENCE + PAUSE, 2.0])
    assert paper.shown == [
        ("20%, 200 rows, 200 rows/s, 0:04 left", 0.2),
        ("40%, 400 rows, 364 rows/s, 0:02 left", 0.4),
        ("50%, 500 rows, 250 rows/s, 0:02 left", 0.5),
    ]
    assert paper.closed == ["500 rows in 2.0 s (250 rows/s)"]


def test_a_check_that_fails_leaves_no_bar_behind() -> None:
    paper, clock = Paper(), iter([0.0, 5.0, 5.0])

    def interrupted() -> None:
        share = open_source([{}]).read_share
        now = patch.object(progress, "monotonic", lambda: next(clock))
        with now, progress.shown_on(lambda: paper), progress.progress(share) as so_far:
            so_far.add(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(paper.closed) == 1


@pytest.mark.parametrize(
    ("rows", "seconds", "text"),
    [
        (1_000_000, 4.8, "1,000,000 rows in 4.8 s (208,000 rows/s)"),
        (7, 3.0, "7 rows in 3.0 s (2 rows/s)"),
        (0, 1.2, "0 rows in 1.2 s (0 rows/s)"),
        (5, 0.0, "5 rows in 0.0 s (5,000,000,000 rows/s)"),
    ],
)
def test_the_pace_in_words(rows: int, seconds: float, text: str) -> None:
    assert pace_text(rows, seconds) == text


def test_the_share_is_said_if_it_is_known() -> None:
    assert progress_text(1200, 2.0, None) == "1,200 rows, 600 rows/s"
    assert progress_text(1200, 2.0, 0.25) == "25%, 1,200 rows, 600 rows/s, 0:06 left"
    assert progress_text(1200, 3000.0, 0.25) == "25%, 1,200 rows, 0 rows/s, 2:30:00 left"


# how much has been read


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)


@pytest.fixture
def several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some thousand rows are several batches, in this process."""
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 1_000)


def shares(data: Any, rows: int = len(ROWS), **options: Any) -> list[float | None]:
    paper = Paper()
    with progress.shown_on(lambda: paper):
        report = check_source(open_source(data), **options)
    assert report.row_count == rows
    return [share for _, share in paper.shown]


@pytest.mark.usefixtures("impatient", "several_batches")
@pytest.mark.parametrize("kind", KINDS)
def test_the_share_grows_to_all_of_it(kind: str, tmp_path: Path) -> None:
    found = shares(KINDS[kind](ROWS, tmp_path))
    assert len(found) > 2
    assert all(share is not None and 0 < share <= 1 for share in found)
    assert found == sorted(found, key=lambda s: s or 0)
    assert found[-1] == 1
    assert found[0] != 1


@pytest.mark.usefixtures("impatient", "several_batches")
def test_the_share_of_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    noise = ({**row, "noise": os.urandom(300).hex()} for row in ROWS)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in noise).encode(), 1))
    found = shares(str(path))
    assert found[0] is not None
    assert 0 < found[0] < 1
    assert found[-1] == 1


@pytest.mark.process
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_workers_are_counted_too(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_run, "Share", partial(Share, head_start=0))
    found = shares(KINDS[kind](ROWS * 5, tmp_path), 5 * len(ROWS), jobs=2)
    assert found == sorted(found, key=lambda s: s or 0)
    assert found[-1] == 1


# terminals


@contextmanager
def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """stderr is a terminal; gives the function that says what was written to it."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    monkeypatch.setenv("TERM", "xterm")

    def written() -> str:
        text = b""
        while True:
            try:
                text += os.read(master, 1 << 16)
            except BlockingIOError:
                return text.decode()

    with os.fdopen(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        try:
            yield written
        finally:
            os.close(master)


@pytest.fixture
def large(tmp_path: Path) -> str:
    return str(KINDS["jsonl"](ROWS, tmp_path))


COMMANDS: dict[str, Callable[[str, Path], list[str]]] = {
    "validate": lambda path, _: ["validate", path],
    "metrics": lambda path, _: ["metrics", path],
    "from-traces": lambda path, folder: ["from-traces", path, str(folder / "out.jsonl")],
}


@pytest.mark.usefixtures("impatient", "several_batches")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_shows_a_bar_that_goes(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"trace": {"info": {"trace_id": str(i)}, "data": {"spans": []}}} for i in range(2_000)]
    path = str(KINDS["jsonl"](rows if command == "from-traces" else ROWS, tmp_path))
    with a_terminal(monkeypatch) as written:
        cli.main(COMMANDS[command](path, tmp_path))
        shown = written()
    assert "1,000 rows, " in shown
    assert "rows/s" in shown
    assert "%, " in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor is back
    assert shown[shown.rindex("━") :].count("\x1b[2K") == 1  # and the bar's line is wiped
    assert "rows/s" not in capsys.readouterr().out


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("why", ["--quiet", "-q", "TERM=dumb", "no terminal"])
def test_nothing_is_drawn(why: str, large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_eval_schema.cli.validate.print_pace", lambda *_: None)
    with a_terminal(monkeypatch) as written:
        if why == "TERM=dumb":
            monkeypatch.setenv("TERM", "dumb")
        if why == "no terminal":
            monkeypatch.setattr(sys, "stderr", io.StringIO())
        cli.main(["validate", large, *([why] if why.startswith("-") else [])])
        assert written() == ""
        assert why != "no terminal" or sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_a_short_run_shows_nothing_on_a_terminal_either(
    monkeypatch: pytest.MonkeyPatch, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with a_terminal(monkeypatch) as written:
        assert cli.main(["validate", str(samples / "good.jsonl")]) == 0
        assert written() == ""
    assert "All 12 rows are valid" in capsys.readouterr().out


def test_a_stream_that_is_no_terminal_has_no_screen() -> None:
    assert terminal(io.StringIO()) is None


# the end of a run


def test_a_long_run_says_its_pace_in_a_log_too(
    capsys: pytest.CaptureFixture[str], samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(samples / "good.jsonl")
    cli.main(["validate", path])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    for output in ("text", "json", "github", "junit"):
        cli.main(["validate", path, path, "--output", output])
        out, err = capsys.readouterr()
        assert err.startswith("24 rows in ")
        assert err.endswith(" rows/s)\n")
        assert "rows/s" not in out
    cli.main(["validate", path, "--quiet"])
    assert capsys.readouterr().err == ""


def test_quiet_leaves_out_the_notes_but_not_the_errors(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    target = tmp_path / "a.jsonl"
    cli.main(["validate", str(samples / "good.jsonl"), "-q", "--write-normalized", str(target)])
    assert target.exists()
    assert capsys.readouterr().err == ""
    assert cli.main(["validate", "no-such-file.jsonl", "-q"]) == 2
    assert "no such file" in capsys.readouterr().err


# notebooks


class Kernel:
    """What IPython offers in a notebook."""

    def __init__(self, kernel: object) -> None:
        self.lines: list[str] = []
        self.display = SimpleNamespace(display=self._show)
        self.get_ipython = lambda: SimpleNamespace(kernel=kernel)

    def _show(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.lines.append(data["text/plain"])
        return SimpleNamespace(update=lambda data, raw: self.lines.append(data["text/plain"]) if raw else None)


@pytest.mark.usefixtures("impatient", "several_batches")
def test_a_notebook_shows_one_line_of_plain_text(monkeypatch: pytest.MonkeyPatch, large: str) -> None:
    ipython = Kernel(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    validate_eval_set(large)
    *shown, last = ipython.lines
    assert len(shown) > 2
    assert all("%, " in line and " rows/s" in line for line in shown)
    assert last.startswith("3,000 rows in ")
    ipython.lines.clear()
    eval_set_from_traces([{"info": {"trace_id": "1"}, "data": {"spans": []}}])
    assert len(ipython.lines) == 2


def test_a_short_check_in_a_notebook_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = Kernel(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    validate_eval_set([{"request": "a", "response": "b"}])
    assert ipython.lines == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("where", ["a script", "IPython without a kernel", "a terminal"])
def test_the_library_shows_nothing_elsewhere(
    where: str, large: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ipython = Kernel(kernel=None)
    if where == "IPython without a kernel":
        monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    else:
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
    if where == "a terminal":
        with a_terminal(monkeypatch) as written:
            validate_eval_set(large)
            assert written() == ""
    else:
        validate_eval_set(large)
    assert capsys.readouterr() == ("", "")
    assert ipython.lines == []
