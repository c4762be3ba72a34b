"""The journal of a review: nothing that was saved is lost, whatever happened to the process."""

import json
import os
import resource
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from agent_eval_schema import EvalSetError, validate_eval_set
from agent_eval_schema.io import atomic
from agent_eval_schema.io.locks import locked
from agent_eval_schema.review import journal as journals
from agent_eval_schema.review.journal import (
    Change,
    Journal,
    RowKey,
    Stale,
    journal_path,
    journal_schema,
    own_journal,
    read_journal,
)

ROW = RowKey(id="q1", hash="00ff", n=3)


def change(new: object, old: object = None, path: str = "expected_facts", row: RowKey = ROW) -> Change:
    return Change(row, path, old, new)


def at(folder: Path) -> Journal:
    return Journal("maria", str(folder / "rows.jsonl.maria.review.jsonl"))


def test_each_change_is_a_line_and_the_state_is_their_fold(tmp_path: Path) -> None:
    journal = at(tmp_path)
    journal.append([change(["a"])])
    journal.append([change(["a", "b"], ["a"]), change("submitted", path="status")])
    lines = [json.loads(line) for line in Path(str(journal.path)).read_text().splitlines()]
    assert [(e["seq"], e["op"], e["path"], e["by"]) for e in lines] == [
        (1, "set", "expected_facts", "maria"),
        (2, "set", "expected_facts", "maria"),
        (3, "set", "status", "maria"),
    ]
    assert lines[0]["row"] == {"id": "q1", "hash": "00ff", "n": 3}
    assert at(tmp_path).states() == {ROW: {"expected_facts": ["a", "b"], "status": "submitted"}}


def test_undo_takes_back_whole_steps_over_restarts(tmp_path: Path) -> None:
    at(tmp_path).append([change(["a"])])
    at(tmp_path).append([change(["b"], ["a"]), change("submitted", path="status")])
    assert len(at(tmp_path).undo()) == 2
    assert at(tmp_path).states() == {ROW: {"expected_facts": ["a"]}}
    assert len(at(tmp_path).undo()) == 1
    assert at(tmp_path).states() == {ROW: {}}
    assert at(tmp_path).undo() == []
    at(tmp_path).append([change(["c"])])
    assert at(tmp_path).states()[ROW] == {"expected_facts": ["c"]}


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_line_is_ignored_and_the_next_one_stands_alone(tmp_path: Path, cut: int) -> None:
    journal = at(tmp_path)
    journal.append([change(["a"])])
    journal.append([change(["b"], ["a"])])
    path = Path(str(journal.path))
    path.write_bytes(path.read_bytes()[:-cut])
    again = at(tmp_path)
    kept = {"expected_facts": ["b" if cut == 1 else "a"]}  # without its line end alone the line is whole
    assert again.states() == {ROW: kept}
    assert again.unread == (cut != 1)
    again.append([change(["c"], kept["expected_facts"])])
    assert at(tmp_path).states() == {ROW: {"expected_facts": ["c"]}}


def test_a_line_with_a_value_of_another_type_is_ignored(tmp_path: Path) -> None:
    journal = at(tmp_path)
    journal.append([change(["a"])])
    path = Path(str(journal.path))
    path.write_text(path.read_text() + path.read_text().replace('["a"]', "3") + path.read_text().replace("facts", "x"))
    again = at(tmp_path)
    assert (again.states(), again.unread) == ({ROW: {"expected_facts": ["a"]}}, 2)


def test_a_value_that_another_tab_changed_is_not_overwritten(tmp_path: Path) -> None:
    one, other = at(tmp_path), at(tmp_path)
    one.append([change(["a"])])
    with pytest.raises(Stale):
        other.append([change(["b"])])
    assert other.states() == {ROW: {"expected_facts": ["a"]}}  # it has read what the other process wrote
    other.append([change(["b"], ["a"])])
    one.append([change(["c"], ["b"])])
    assert [event.seq for event in at(tmp_path).events] == [1, 2, 3]


def test_two_processes_lose_no_change_and_number_each_once(tmp_path: Path) -> None:
    """Each changes rows of its own, and both one row that they share; a stale change is made again."""
    code = """
import sys
from agent_eval_schema.review.journal import Change, Journal, RowKey, Stale
journal, own, shared = Journal("maria", sys.argv[1]), sys.argv[2], RowKey(hash="shared", n=0)
for i in range(60):
    journal.append([Change(RowKey(hash=f"{own}{i}", n=i), "note", None, own)])
    while True:
        now = journal.states().get(shared, {}).get("note", "")
        try:
            journal.append([Change(shared, "note", now or None, now + own)])
        except Stale:
            continue
        break
"""
    path = str(at(tmp_path).path)
    processes = [subprocess.Popen([sys.executable, "-c", code, path, own]) for own in "ab"]
    watching = at(tmp_path)
    while any(process.poll() is None for process in processes):
        watching.catch_up()  # a line may be half written when it is read
        time.sleep(0.001)
    watching.catch_up()
    assert [process.returncode for process in processes] == [0, 0]
    for journal in (watching, at(tmp_path)):
        assert [event.seq for event in journal.events] == list(range(1, 241))
        states = journal.states()
        assert sorted(states.pop(RowKey(hash="shared", n=0))["note"]) == ["a"] * 60 + ["b"] * 60
        assert states == {RowKey(hash=f"{own}{i}", n=i): {"note": own} for own in "ab" for i in range(60)}
        assert journal.unread == 0
    assert [p.name for p in tmp_path.iterdir()] == [Path(path).name]


def test_a_journal_that_another_process_holds_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "WAIT", 0.05)
    journal = at(tmp_path)
    with (
        locked(str(journal.path)),
        pytest.raises(EvalSetError, match=rf"not saved: another run \(process {os.getpid()}\) is writing it"),
    ):
        journal.append([change(["a"])])
    assert not Path(str(journal.path)).exists()
    journal.append([change(["a"])])


def test_a_journal_that_became_shorter_is_told(tmp_path: Path) -> None:
    journal = at(tmp_path)
    journal.append([change(["a"])])
    Path(str(journal.path)).write_text("")
    with pytest.raises(EvalSetError, match="was cut or replaced: open the review again"):
        journal.append([change(["b"], ["a"])])


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    journal = at(tmp_path)
    journal.append([change(["a"])])
    path = Path(str(journal.path))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
    try:
        with pytest.raises(EvalSetError, match=r"not saved: File too large"):
            journal.append([change(["b"], ["a"])])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert journal.states() == {ROW: {"expected_facts": ["a"]}}
    journal.append([change(["b"], ["a"])])
    assert at(tmp_path).states() == {ROW: {"expected_facts": ["b"]}}


def test_a_line_is_synced_before_the_call_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(atomic.os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_size), real(handle))[1])
    journal = at(tmp_path)
    journal.append([change(["a"])])
    assert os.path.getsize(str(journal.path)) in synced


def test_the_schema_describes_every_line(tmp_path: Path) -> None:
    journal = at(tmp_path)
    journal.append([change(["a"]), change("note", path="note")])
    journal.undo()
    validator = Draft202012Validator(journal_schema())
    lines = Path(str(journal.path)).read_text().splitlines()
    assert [list(validator.iter_errors(json.loads(line))) for line in lines] == [[]] * 4
    assert list(validator.iter_errors({"v": 2, "seq": 1}))


def test_a_journal_is_no_part_of_the_table_beside_it(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"request": "Hi", "response": "x"}\n', encoding="utf-8")
    at(tmp_path).append([change(["a"])])
    for place in (str(tmp_path), str(tmp_path / "*.jsonl")):
        assert validate_eval_set(place).row_count == 1
    assert validate_eval_set(str(tmp_path / "*.review.jsonl")).row_count == 1


def test_the_name_of_a_reviewer_is_part_of_a_file_name() -> None:
    assert journal_path("a/rows.jsonl", "maria") == "a/rows.jsonl.maria.review.jsonl"
    assert journal_path("rows.jsonl", "../maria") == "rows.jsonl...%2Fmaria.review.jsonl"
    assert journal_path("rows.jsonl", "José O'Neil 王") == "rows.jsonl.José O'Neil 王.review.jsonl"
    for name in ("", " ", " maria", "a\nb", "\u202ea", "x" * 65):
        with pytest.raises(EvalSetError, match="--reviewer: expected a name"):
            journal_path("rows.jsonl", name)


def test_a_file_of_somebody_else_is_no_journal_of_mine(tmp_path: Path) -> None:
    data = str(tmp_path / "rows.jsonl")
    Journal("Maria", journal_path(data, "maria")).append([change(["a"])])
    with pytest.raises(EvalSetError, match="expected the journal of maria, got that of Maria"):
        own_journal(data, "maria")
    Journal("maria", journal_path(data, "maria")).append([change(["b"], ["a"])])
    with pytest.raises(EvalSetError, match="expected the journal of one reviewer, got lines of Maria, maria"):
        read_journal(journal_path(data, "maria"))


def test_a_step_that_is_sent_again_is_made_once_over_restarts(tmp_path: Path) -> None:
    steps = [("1", change(["a"])), ("2", change(["b"], ["a"])), ("3", change(["a"], ["b"]))]
    for name, own in steps:
        assert len(at(tmp_path).append([own], name)) == 1
    assert [at(tmp_path).append([own], name) for name, own in steps] == [[], [], []]
    assert at(tmp_path).states() == {ROW: {"expected_facts": ["a"]}}


def test_the_cells_of_a_row_are_those_of_its_first_change_that_has_them(tmp_path: Path) -> None:
    """Those of a page without a server have none."""
    journal = at(tmp_path)
    for path, cells in (("note", None), ("rating", {"request": "Hi"}), ("reason", {"request": "Bye"})):
        journal.append([Change(ROW, path, None, "right", cells)])
    assert journal.cells == at(tmp_path).cells == {ROW: {"request": "Hi"}}
    assert [event.cells for event in at(tmp_path).events] == [None, {"request": "Hi"}, None]


def test_what_is_typed_and_not_entered_is_no_step_to_undo(tmp_path: Path) -> None:
    journal = at(tmp_path)
    journal.append([change("It is", path="draft:expected_facts")])
    journal.append([change(["It is"]), change(None, "It is", path="draft:expected_facts")])
    journal.append([change("And", path="draft:expected_facts")])
    assert [event.path for event in journal.undo()] == ["expected_facts"]
    assert journal.states() == {ROW: {"draft:expected_facts": "And"}}
    assert journal.undo() == []


def test_exact_copies_are_rows_of_their_own(tmp_path: Path) -> None:
    journal, copy = at(tmp_path), RowKey(id="q1", hash="00ff", n=4)
    journal.append([change(["a"])])
    journal.append([change(True, path="dropped", row=copy)])
    assert at(tmp_path).states() == {ROW: {"expected_facts": ["a"]}, copy: {"dropped": True}}


def test_a_clock_that_goes_back_changes_neither_order_nor_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        now = staticmethod(lambda _: times.pop())

    times = [datetime(2025, 1, 1, tzinfo=timezone.utc), datetime(2026, 1, 1, tzinfo=timezone.utc)]
    monkeypatch.setattr(journals, "datetime", Clock)
    at(tmp_path).append([change(["a"])])
    at(tmp_path).append([change(["b"], ["a"])])
    assert [event.at[:4] for event in at(tmp_path).events] == ["2026", "2025"]
    assert at(tmp_path).state_of(ROW) == {"expected_facts": ["b"]}
    times.append(datetime(2024, 1, 1, tzinfo=timezone.utc))
    at(tmp_path).undo()
    assert at(tmp_path).state_of(ROW) == {"expected_facts": ["a"]}
