"""A full disk, a place that may not be written, a file that changes, two runs at once: one line, and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, ROOT
from tests.kill.__main__ import FINE, SIGNALS, Runs
from tests.kill.commands import COMMANDS, PAIR, SAMPLES
from tests.project.test_outputs import COMMANDS as OUTPUTS

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="of Linux")]

ROW = '{"request": "Hi", "response": "Hello"}\n'


def run(*arguments: object, cwd: Path, before: str = "") -> tuple[int, str, str]:
    """A command in a process of its own, in which `before` is run first."""
    code = f"import sys\n{before}\nfrom agent_eval_schema.cli import main\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


def require_told(result: tuple[int, str, str], *words: str) -> None:
    code, _, err = result
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("agent-eval-schema: ")
    assert "internal error" not in err
    assert all(word in err for word in words), err


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW * 500)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "convert to JSON Lines",
        "convert --resume",
        "validate --resume",
        "from-inference-table",
        "score --write-scores, of every-eval-ever",
    ],
)
def test_a_few_kills(name: str, tmp_path: Path) -> None:
    runs = Runs(name, tmp_path / "runs", 300)
    for number, share in zip(SIGNALS[1:3], (0.7, 0.95), strict=True):
        assert runs.killed(number, share)[0] in FINE


@pytest.mark.parametrize("name", COMMANDS)
def test_two_runs_at_once(name: str, tmp_path: Path) -> None:
    assert Runs(name, tmp_path / "runs", 300).at_once() == ""


def test_every_command_that_writes_is_killed() -> None:
    killed = {command.arguments[0] for command in COMMANDS.values()}
    assert {name for name, _ in OUTPUTS if not name.startswith("ces")} == killed, "the others ask a service"
    written = {word for command in COMMANDS.values() for word in command.arguments if word.startswith("out")}
    assert {Path(word).suffix for word in written} >= {".jsonl", ".parquet", ".csv", ".json", ".html"}


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
"""
"""No file may have more than 2,000 bytes: the error at the end of it is another one than that of a full disk."""


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "rows.jsonl", "out.jsonl", "--to", "vertex"),
        ("convert", "rows.jsonl", "out.csv", "--to", "vertex"),
        ("validate", "rows.jsonl", "--write-normalized", "out.parquet"),
        ("validate", "rows.jsonl", "--html", "out.html"),
    ],
)
def test_a_disk_that_is_full(arguments: tuple[str, ...], rows: Path) -> None:
    out = rows.parent / arguments[-1 if arguments[0] == "validate" else 2]
    out.write_text("old")
    require_told(run(*arguments, cwd=rows.parent, before=FULL), out.name, "cannot be written")
    assert out.read_text() == "old"
    assert sorted(rows.parent.iterdir()) == sorted([out, rows])


def test_a_disk_that_is_full_for_the_second_file_of_a_pair(tmp_path: Path) -> None:
    calls, old = [{"tool_name": "search", "tool_input": {}}], b"old"
    (tmp_path / "in.jsonl").write_text(json.dumps({"reference_trajectory": calls, "predicted_trajectory": calls}))
    files = [tmp_path / PAIR, tmp_path / SAMPLES]
    files[0].parent.mkdir(parents=True)
    for file in files:
        file.write_bytes(old)
    words = ["score", "in.jsonl", "--metrics", "trajectory_exact_match", "--write-scores", PAIR]
    require_told(run(*words, cwd=tmp_path, before=FULL.replace("2000", "1500")), PAIR[:-5], "cannot be written")
    assert [file.read_bytes() for file in files] == [old, old]
    assert sorted(files[0].parent.iterdir()) == sorted(files)
    assert run(*words, cwd=tmp_path)[0] == 0
    sizes = [file.stat().st_size for file in files]
    assert sizes[0] > 1_500 > sizes[1] > 0, "the aggregate is the one that does not fit"


def test_a_report_for_a_full_device(rows: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agent_eval_schema", "validate", str(rows)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    require_told((done.returncode, "", done.stderr), "No space left on device")


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv of util-linux is not installed")
@pytest.mark.parametrize("what", ["the folder", "the input"])
def test_what_may_not_be_touched(what: str, rows: Path) -> None:
    """Root may do anything, unless it gives that up."""
    out = rows.parent / "out.jsonl"
    out.write_text("old")
    (rows.parent if what == "the folder" else rows).chmod(0o555 if what == "the folder" else 0o200)
    limits = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    convert = ["convert", "rows.jsonl", "out.jsonl", "--to", "vertex"]
    command = [*limits, sys.executable, "-m", "agent_eval_schema", *convert]
    done = subprocess.run(command, cwd=rows.parent, capture_output=True, text=True, check=False)
    rows.parent.chmod(0o755)
    require_told(
        (done.returncode, "", done.stderr),
        "out.jsonl: cannot be written: the folder is read-only: " if what == "the folder" else "rows",
    )
    assert out.read_text() == "old"
    assert sorted(rows.parent.iterdir()) == [out, rows]


@pytest.mark.parametrize("change", ["cut", "removed", "replaced"])
def test_a_file_that_changes_while_it_is_read(change: str, tmp_path: Path) -> None:
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    path.write_text(ROW * 30_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_eval_schema", "convert", str(path), str(out), "--to", "vertex", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(tmp_path.glob(".out.jsonl.*")):
        time.sleep(0.01)
    if change == "cut":
        os.truncate(path, len(ROW) * 100 + 7)
    elif change == "removed":
        path.unlink()
    else:
        path.with_name("other").write_text('{"request": "Ho", "response": "Hi"}\n')
        path.with_name("other").replace(path)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.count("\n")) in ((0, 0), (2, 1)), err
    assert "internal error" not in err
    assert (out.read_text().count("\n") if out.exists() else 0) == (30_000 if process.returncode == 0 else 0)
    assert not list(tmp_path.glob(".*"))


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    """The file is that of one of them, whole."""
    out = tmp_path / "out.jsonl"
    processes = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(f'{{"request": "{name}", "response": "Hello"}}\n' * 3_000)
        command = [sys.executable, "-m", "agent_eval_schema", "convert", str(path), str(out), "--to", "vertex", "-q"]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
    for process in processes:
        assert process.communicate(timeout=PATIENCE)[1].count(b"\n") <= 1
    lines = out.read_text().splitlines()
    assert len(lines) == 3_000
    assert len(set(lines)) == 1
    assert not list(tmp_path.glob(".*"))


def test_a_temporary_file_is_its_owners(tmp_path: Path) -> None:
    """Until it has the name and the permissions of the file that it replaces."""
    from agent_eval_schema.io.atomic import as_new_folder, replacing

    path = tmp_path / "rows.jsonl"
    path.write_text("old")
    path.chmod(0o640)
    with replacing(str(path)) as temporary:
        assert Path(temporary).parent == tmp_path
        assert Path(temporary).stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o640
    with as_new_folder(str(tmp_path / "new")) as temporary:
        assert Path(temporary).parent.stat().st_mode & 0o777 == 0o700
        Path(temporary).mkdir()
