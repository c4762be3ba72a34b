"""SIGINT and SIGTERM end a command, whatever it waits for, with the exit code of a shell and no temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agent_eval_schema.runtime import signals
from agent_eval_schema.runtime.signals import Terminated, ending_on_signals, exit_code
from tests.conftest import PATIENCE, ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")

ROW = '{"request": "Hi", "response": "Hello"}\n'


def started(*arguments: object) -> subprocess.Popen[bytes]:
    """A command that has its own signals, as that of a terminal; SIGINT may be ignored in the process of the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", "agent_eval_schema", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def opened_for_writing(pipe: Path, reader: subprocess.Popen[bytes]) -> int:
    """The other end of a named pipe, as soon as it is read."""
    while reader.poll() is None:
        with suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)
    raise AssertionError(reader.communicate()[1])


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"terminated")]
)
@pytest.mark.parametrize("at", ["a pipe", "work"])
def test_a_signal_ends_a_command(number: int, code: int, word: bytes, at: str, tmp_path: Path) -> None:
    """One that waits for a pipe that nobody writes, and one that has begun to write."""
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    out.write_text("old")
    if at == "a pipe":
        os.mkfifo(path)
        process = started("validate", path)
        writer = opened_for_writing(path, process)
    else:
        path.write_text(ROW * 200_000)
        process = started("convert", path, out, "--to", "vertex")
        while process.poll() is None and not list(tmp_path.glob(".out.jsonl.*")):
            time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=PATIENCE)[1]
    if at == "a pipe":
        os.close(writer)
    assert process.returncode == code
    assert said in (b"agent-eval-schema: " + word + b"\n", b"")
    assert out.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == [out, path]


IMPORTED = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.{name})
    time.sleep(30)
except KeyboardInterrupt:
    print("broken off", flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_no_import_is_broken_off(name: str, code: int, word: str, tmp_path: Path) -> None:
    """A process was seen to crash in the first decoder that msgspec made, where a signal raised in an import."""
    (tmp_path / "imported.py").write_text(IMPORTED.format(name=name))
    run = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from agent_eval_schema.runtime.signals import ending_on_signals\n"
        "with ending_on_signals():\n    import imported"
    )
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", run], env=paths, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"agent-eval-schema: {word}\n")


@pytest.mark.parametrize("ignored", [False, True], ids=["taken", "ignored"])
def test_the_import_of_the_command_line_is_ended_with_the_process(ignored: bool, tmp_path: Path) -> None:
    """Nothing is written yet; a signal that is ignored, as `nohup` does, stays so."""
    (tmp_path / "argparse.py").write_text(IMPORTED.format(name="SIGINT").replace("time.sleep(30)", "os._exit(7)"))
    handler = "SIG_IGN" if ignored else "default_int_handler"
    run = (
        f"import signal; signal.signal(signal.SIGINT, signal.{handler})\n"
        "from agent_eval_schema.__main__ import main; main()"
    )
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", run], env=paths, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (7 if ignored else -signal.SIGINT, "", "")


@pytest.mark.process
def test_rows_through_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    process = started("validate", path, "--quiet")
    path.write_text(ROW * 3)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, b"")
    assert "All 3 rows are valid" in out.decode()
    process = started("validate", path)
    path.write_text("")
    told = f"{path}: expected JSON Lines, JSON, CSV or Parquet; got no data through the pipe\n"
    assert (process.communicate(timeout=PATIENCE)[1].decode(), process.returncode) == (f"agent-eval-schema: {told}", 2)
    process = started("convert", path, path, "--to", "vertex")
    assert b"would overwrite" in process.communicate(timeout=PATIENCE)[1]


@pytest.mark.parametrize("made_of_it", [None, RuntimeError])
@pytest.mark.parametrize(("number", "kind", "code"), [("SIGINT", KeyboardInterrupt, 130), ("SIGTERM", Terminated, 143)])
def test_a_signal_raises_once(
    number: str, kind: type[KeyboardInterrupt], code: int, made_of_it: type[Exception] | None
) -> None:
    """In a process of its own: afterwards that would end. An error that a library makes of a signal is the signal:
    DuckDB raises `RuntimeError: Query interrupted`, which was reported as a defect of ours."""
    pid = os.fork()
    if pid == 0:
        signals.GRACE = 60
        signal.signal(signal.SIGINT, signal.default_int_handler)
        status = 1
        try:
            with ending_on_signals():
                try:
                    signal.raise_signal(getattr(signal, number))
                except KeyboardInterrupt:
                    if made_of_it is None:
                        raise
                    raise made_of_it("Query interrupted") from None
        except KeyboardInterrupt as error:
            signal.raise_signal(getattr(signal, number))  # ignored
            is_so = type(error) is kind and type(error.__cause__) is (made_of_it or type(None))
            status = exit_code(error) if is_so else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code


def test_an_error_without_a_signal_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="none"), ending_on_signals():
        raise RuntimeError("none")


def test_a_block_without_a_signal_leaves_nothing() -> None:
    """The handlers are those of before, nothing is written to a pipe, and the thread that reads from it ends."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    threads = set(threading.enumerate())
    with ending_on_signals():
        assert signal.getsignal(signal.SIGTERM) is not before[1]
        (watching,) = set(threading.enumerate()) - threads
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert signal.set_wakeup_fd(-1) == -1
    watching.join(timeout=PATIENCE)
    assert not watching.is_alive()


def test_what_does_not_end_is_ended_without_its_files(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("x")
    (folder / "in it").mkdir(parents=True)
    pid = os.fork()
    if pid == 0:
        signals.GRACE = 0.05
        signals.TEMPORARY.clear()
        signals.TEMPORARY.update({str(file), str(folder), str(tmp_path / "gone")})
        try:
            with ending_on_signals():
                os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            time.sleep(60)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 143
    assert list(tmp_path.iterdir()) == []
