"""A file that is replaced holds what was made of it, or it stays as it is: nobody's rows are lost on the way."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pyarrow as pa
import pytest

from agent_eval_schema import EvalSetError, validate_eval_set, write_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.errors import HardLinkWarning
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import atomic
from agent_eval_schema.io import source as source_
from agent_eval_schema.io.atomic import FileState, as_new_folder, replacing, require_place
from tests.conftest import SAMPLES, as_csv, as_json, as_jsonl, as_parquet

ROWS = [{"request": "Hi", "response": "a", "expected_facts": "one"}, {"request": " ", "response": "b"}]


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"request": "late", "response": "c"}\n')


def exchange(path: Path) -> None:
    """As an editor or another `--fix` does: another file takes the place, here one of the same size."""
    other = path.with_name("other")
    other.write_bytes(b"x" * path.stat().st_size)
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


def overwrite(path: Path) -> None:
    """In place, with as many bytes."""
    changed = path.stat().st_mtime_ns
    path.write_bytes(b"x" * path.stat().st_size)
    os.utime(path, ns=(changed, changed + 1))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def remove(path: Path) -> None:
    path.unlink()


CHANGES = [append, exchange, overwrite, remove]


def deepeval(_: object, folder: Path) -> str:
    """Of a format that is not fixed: the file is copied."""
    path = folder / "rows.json"
    path.write_bytes((SAMPLES / "deepeval.json").read_bytes())
    return str(path)


class Meanwhile(StringIO):
    """A stdout whose reader changes the file as soon as the report is there."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__()
        self._change: Callable[[], None] | None = change

    def write(self, text: str) -> int:
        if self._change is not None:
            self._change()
            self._change = None
        return super().write(text)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [as_jsonl, as_json, as_csv, as_parquet, deepeval])
def test_fix_leaves_a_file_alone_that_changed_meanwhile(
    kind: Callable[..., str],
    change: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(kind(ROWS, tmp_path))
    after: list[bytes | None] = []

    def changing() -> None:
        change(path)
        after.append(path.read_bytes() if path.exists() else None)

    monkeypatch.setattr(sys, "stdout", Meanwhile(changing))
    assert main(["validate", str(path), "--fix", str(path)]) == 2
    assert after == [path.read_bytes() if path.exists() else None]
    told = capsys.readouterr().err
    assert f"{path}: " in told
    assert not list(tmp_path.glob("rows.new*"))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("write", ["write", "write_invalid", "write_eval_set"])
def test_no_function_replaces_the_file_that_it_reads(write: str, tmp_path: Path) -> None:
    path = Path(as_jsonl(ROWS, tmp_path))
    before, source, report = path.read_bytes(), open_source(path), validate_eval_set(path)
    with pytest.raises(EvalSetError, match=r"rows.jsonl: would overwrite the data: choose another path"):
        write_eval_set(source, path) if write == "write_eval_set" else getattr(report, write)(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_is_kept_under_a_name_that_nobody_has(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    (tmp_path / "a.new.txt").write_text("another one's")
    read = FileState.of(str(path))
    append(path)
    with pytest.raises(EvalSetError, match=r"a\.new2\.txt"), replacing(str(path), read) as temporary:
        Path(temporary).write_text("made")
    assert (tmp_path / "a.new.txt").read_text() == "another one's"
    assert (tmp_path / "a.new2.txt").read_text() == "made"


def test_an_error_in_a_file_that_changes_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    read = FileState.of(str(path))
    append(path)
    with pytest.raises(EvalSetError, match="changed while it was read"), replacing(str(path), read):
        raise ValueError("fewer rows than before")
    with pytest.raises(ValueError, match="ours"), replacing(str(path), FileState.of(str(path))):
        raise ValueError("ours")


def test_a_link_and_another_target_are_told_apart(tmp_path: Path) -> None:
    """The file behind a link is the one that is read; a target that is not read is replaced whatever it holds."""
    path, link, other = Path(as_jsonl(ROWS, tmp_path)), tmp_path / "link.jsonl", tmp_path / "b.jsonl"
    link.symlink_to(path)
    other.write_text("old")
    with pytest.raises(EvalSetError, match="would overwrite the data"):
        write_eval_set(path, link)
    assert write_eval_set(path, other) == 2


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    path = Path(as_jsonl(ROWS, tmp_path))
    write_eval_set(path, tmp_path / "new.jsonl")
    assert (tmp_path / "new.jsonl").stat().st_mode == path.stat().st_mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_root_leaves_a_file_to_its_owner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(as_jsonl(ROWS, tmp_path))
    path.chmod(0o640)
    os.chown(path, 12_345, 23_456)
    assert main(["validate", str(path), "--fix", str(path)]) in (0, 1)
    assert b"expected_facts" in path.read_bytes()
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12_345, 23_456, 0o640)
    assert "hard link" not in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")
def test_a_replaced_file_keeps_its_extended_attributes(tmp_path: Path) -> None:
    """An access control list is one: `system.posix_acl_access`."""
    path = Path(as_jsonl(ROWS, tmp_path))
    try:
        os.setxattr(path, "user.origin", b"team")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    before = path.stat().st_mtime_ns
    write_eval_set(ROWS[:1], path)
    assert os.getxattr(path, "user.origin") == b"team"
    assert path.stat().st_mtime_ns > before


@pytest.mark.parametrize(
    ("others", "message"), [(1, "another hard link, which has"), (2, "2 other hard links, which have")]
)
def test_other_names_of_a_replaced_file_are_reported(
    others: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = Path(as_jsonl(ROWS, tmp_path)), tmp_path / "0.jsonl"
    for number in range(others):
        os.link(path, tmp_path / f"{number}.jsonl")
    old = other.read_bytes()
    with pytest.warns(HardLinkWarning, match=rf"rows.jsonl: is a new file: the old one had {message} the old content"):
        write_eval_set(ROWS[:1], path)
    assert other.read_bytes() == old != path.read_bytes()
    os.unlink(path)
    os.link(other, path)
    main(["convert", str(SAMPLES / "good.jsonl"), str(path), "--to", "mlflow"])
    assert f"{path}: is a new file" in capsys.readouterr().err


def test_rows_of_a_file_that_was_cut_are_not_taken_for_all(tmp_path: Path) -> None:
    path, out = Path(as_jsonl(ROWS * 50, tmp_path)), tmp_path / "out.jsonl"
    report = validate_eval_set(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(EvalSetError, match=r"rows.jsonl: changed since it was read: validate it again$"):
        report.write(out)
    assert not out.exists()
    assert validate_eval_set(path).row_count == 50
    append(path)  # what is added is no loss
    assert validate_eval_set(path).row_count == 51


@pytest.mark.parametrize(("change", "error"), [(append, ""), (cut, "was cut while it was read: try again")])
def test_a_file_may_grow_while_it_is_read_for_the_first_time(
    change: Callable[[Path], None], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log is written while it is validated: the report is of the rows up to some place."""
    monkeypatch.setattr(source_, "MAX_BATCH_ROWS", 1)
    path = Path(as_jsonl([{"request": "q" * (3 << 20), "response": "a"}] * 6, tmp_path))
    batches = iter(open_source(path).batches())
    next(batches)
    change(path)
    with pytest.raises(EvalSetError, match=error) if error else nullcontext():
        assert len(list(batches)) >= 5


KILLED = """
import sys, time
from pathlib import Path
from agent_eval_schema.io.atomic import as_new_folder, replacing
with replacing(sys.argv[1]) as file, as_new_folder(sys.argv[2]) as folder:
    Path(file).write_text("half")
    Path(folder).mkdir()
    Path(folder, "part").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be renamed")
def test_what_a_killed_run_left_is_removed_by_the_next_one_and_nothing_else(tmp_path: Path) -> None:
    out, folder = tmp_path / "a.jsonl", tmp_path / "a.delta"
    command = [sys.executable, "-c", KILLED, str(out), str(folder)]
    users = [tmp_path / ".a.jsonl.0123abcd", tmp_path / ".a.jsonl.work", tmp_path / ".ab.jsonl.agent-eval-schema-1-2"]
    for path in users:
        path.write_text("of the user")

    def left() -> set[Path]:
        return set(tmp_path.iterdir()) - {*users, out, folder}

    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(command, stdout=subprocess.PIPE) as alive,
    ):
        for process in (killed, alive):
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        assert len(left()) == 4
        killed.kill()
        killed.wait()
        for write in (write_eval_set, write_eval_set):
            write(ROWS, out)
            assert len(left()) == 3, "the file of the killed run, not that of the other one"
        write_eval_set(ROWS, folder)
        assert len(left()) == 2
        alive.kill()
    shutil.rmtree(folder)
    write_eval_set(ROWS, folder)
    write_eval_set(ROWS, out)
    assert not left()
    assert [path.read_text() for path in users] == ["of the user"] * 3


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be renamed")
def test_a_folder_that_a_killed_run_has_not_marked_is_removed_if_it_is_empty(tmp_path: Path) -> None:
    empty, filled = (tmp_path / f".a.jsonl.agent-eval-schema-{atomic._MACHINE}-{end}" for end in ("01", "02"))
    for folder in (empty, filled):
        folder.mkdir()
    (filled / "own.txt").write_text("of the user")
    write_eval_set(ROWS, tmp_path / "a.jsonl")
    assert (empty.exists(), filled.exists()) == (False, True)


def test_a_folder_that_another_run_has_written_meanwhile_is_kept(tmp_path: Path) -> None:
    place = tmp_path / "set"

    def write() -> None:
        with as_new_folder(str(place)) as new:
            os.mkdir(new)
            place.mkdir()
            (place / "own.txt").write_text("of the other run")

    with pytest.raises(EvalSetError, match=r"set: cannot be written: another run has written it in the meantime$"):
        write()
    assert [file.name for file in tmp_path.rglob("*")] == ["set", "own.txt"]


class Full(BytesIO):
    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("stdout", "why"),
    [
        (StringIO(), "-: cannot be written: there is no stdout for bytes"),
        (TextIOWrapper(Full()), "<stdout>: cannot be written: No space left on device"),
    ],
    ids=["a notebook", "a full disk"],
)
def test_rows_that_stdout_does_not_take_are_an_error(
    stdout: StringIO, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", stdout)
    with pytest.raises(EvalSetError, match=f"^{why}$"), replacing("-") as temporary:
        Path(temporary).write_bytes(b"{}")


def test_a_type_that_a_file_at_a_url_does_not_have_is_named_with_its_column() -> None:
    pytest.importorskip("fsspec")
    table = pa.table({"request": ["Hi"], "own": pa.array([None], pa.month_day_nano_interval())})
    with pytest.raises(
        EvalSetError, match=r"^memory://m/x\.parquet: cannot be written: the column 'own' of type month"
    ):
        write_eval_set(table, "memory://m/x.parquet")


def test_a_folder_without_permission_is_reported_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(EvalSetError, match=rf"a\.jsonl: cannot be written: the folder is read-only: {tmp_path}$"):
        require_place(str(tmp_path / "a.jsonl"))


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be renamed")
def test_what_another_machine_left_is_removed_after_a_day(tmp_path: Path) -> None:
    """Its locks may not be seen here."""
    left = tmp_path / ".a.jsonl.agent-eval-schema-ffffff-01234567"
    left.write_text("half")
    write_eval_set(ROWS, tmp_path / "a.jsonl")
    assert left.exists()
    os.utime(left, (time.time() - 90_000,) * 2)
    write_eval_set(ROWS, tmp_path / "a.jsonl")
    assert not left.exists()


def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    path = tmp_path / f"{'ä' * 120}.jsonl"
    assert write_eval_set(ROWS, path) == len(ROWS)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
