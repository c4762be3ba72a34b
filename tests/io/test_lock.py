"""One owner at a time, whoever comes and goes."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from agent_eval_schema import EvalSetError
from agent_eval_schema.io import locks
from agent_eval_schema.io.locks import lock_file, open_locked, sole_writer


def test_the_second_owner_is_told_and_nothing_stays(tmp_path: Path) -> None:
    path, link = tmp_path / "set.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(path)
    with sole_writer([str(path), None]):
        for other in (path, link):
            with (
                pytest.raises(EvalSetError, match=rf"another run \(process {os.getpid()}\) is writing it"),
                sole_writer([str(other)]),
            ):
                pass
        with sole_writer([str(tmp_path / "other.jsonl")]):
            pass
    with sole_writer([str(path)]):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["link.jsonl"]


def test_of_many_that_come_and_go_one_holds_it(tmp_path: Path) -> None:
    """An owner removes the file that others may have opened already."""
    path, inside, most = str(tmp_path / "set.jsonl"), [0], [0]

    def work() -> None:
        turns = 0
        while turns < 40:
            try:
                with sole_writer([path]):
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    turns += 1
                    inside[0] -= 1
            except EvalSetError:
                time.sleep(0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="cannot be written"), sole_writer([str(tmp_path / "no" / "set.jsonl")]):
        pass


def test_a_file_of_the_users_is_no_lock(tmp_path: Path) -> None:
    """Neither is one behind a link: it is not emptied, and stays."""
    (tmp_path / "notes").write_text("agent-eval-schema: my notes\n")
    (tmp_path / ".b.jsonl.lock").symlink_to(tmp_path / "notes")
    (tmp_path / ".a.jsonl.lock").write_text("my notes\n")
    with (
        pytest.raises(EvalSetError, match=r"is not a lock of agent-eval-schema"),
        sole_writer([str(tmp_path / "a.jsonl")]),
    ):
        pass
    with pytest.raises(EvalSetError, match="cannot be written"), sole_writer([str(tmp_path / "b.jsonl")]):
        pass
    assert (tmp_path / "notes").read_text() == "agent-eval-schema: my notes\n"
    assert (tmp_path / ".a.jsonl.lock").read_text() == "my notes\n"


def test_a_lock_that_a_killed_run_left_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".a.jsonl.lock").write_text("agent-eval-schema: process 1 on elsewhere\n")
    with sole_writer([str(tmp_path / "a.jsonl")]):
        assert f"process {os.getpid()} on " in (tmp_path / ".a.jsonl.lock").read_text()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.parametrize(
    ("error", "is_locked"), [(errno.ENOLCK, False), (errno.EIO, None)], ids=["no locks", "a fault"]
)
def test_without_locks_a_file_is_written_and_a_fault_is_an_error(
    error: int, is_locked: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def flock(*_: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        open(tmp_path / "a", "wb") as file,
        nullcontext() if is_locked is False else pytest.raises(OSError, match="Input/output"),
    ):
        assert lock_file(file.fileno()) == is_locked


def test_a_file_that_is_removed_before_it_is_locked_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(handle: int) -> bool:
        if not removed:
            removed.append((tmp_path / "a").unlink())
        return lock_file(handle)

    removed: list[None] = []
    monkeypatch.setattr(locks, "lock_file", lock)
    with open_locked(str(tmp_path / "a")) as file:
        assert os.path.samestat(os.fstat(file.fileno()), os.stat(tmp_path / "a"))
    assert len(removed) == 1
