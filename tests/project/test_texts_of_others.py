"""Files that the tool reads of itself can be cut, damaged or written by others: each failure is one line, and there is
one way to read them."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_eval_schema import EvalSetError, EvalTask
from agent_eval_schema.cli import main
from agent_eval_schema.io.work_folder import STATE, WorkFolder
from agent_eval_schema.text.guarded import decoded, decoded_or_none, read_json
from tests.conftest import ROOT
from tests.helpers.own_files import EVENT, FILES, prepare

DEEP = "[" * 100_000
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut early": lambda text: text[: len(text) // 4],
    "cut late": lambda text: text[:-7],
    "empty": lambda _: b"",
    "nested": lambda text: text + b"\n" + DEEP.encode() + b"\n",
    "nested alone": lambda _: DEEP.encode(),
    "nested in a value": lambda text: text.replace(b":", b":" + DEEP.encode(), 1),
    "a huge number": lambda text: text.replace(b"1", b"1" + b"0" * 400),
    "not UTF-8": lambda text: text[:9] + b"\xff\xfe" + text[9:],
    "of another type": lambda _: b'[1, "a", null]',
    "null": lambda _: b"null",
    "keys of Python": lambda text: text.replace(b'"', b"'"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_no_internal_error(
    name: str, damage: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "old.jsonl.manifest.json":
        pytest.importorskip("duckdb")
    make, command = FILES[name]
    make(here)
    path = here / name
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    try:
        code: object = main(command)
    except SystemExit as end:  # of a wrong argument
        code = end.code
    shown = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "internal error" not in shown.err
    assert "Traceback" not in shown.err
    if code == 2:
        assert name in shown.err, shown.err


@contextmanager
def rejecting(words: str) -> Iterator[None]:
    """An error is one of ours that has the words."""
    try:
        yield
    except EvalSetError as found:
        if words not in str(found):
            raise


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_file_is_no_internal_error(damage: str, here: Path) -> None:
    rows = [{"request": f"{i}", "expected_response": f"{i}"} for i in range(3)]
    path = here / "run.journal"
    EvalTask(rows, ["exact_match"]).evaluate(str, journal=path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with rejecting("run.journal"):
        assert EvalTask(rows, ["exact_match"]).evaluate(str, journal=path).row_count == 3


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_costs_the_resumption_only(damage: str, here: Path) -> None:
    job: dict[str, Any] = {"a": 1}
    folder = WorkFolder(here / ".out.work")
    folder.start(job, resume=True)
    path = here / ".out.work" / STATE
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with rejecting("without --resume"):
        WorkFolder(here / ".out.work").start(job, resume=True)
    assert WorkFolder(here / ".out.work").start(job, resume=False)


def test_a_value_that_a_row_cannot_hold_is_refused_when_it_is_set() -> None:
    from agent_eval_schema.review.journal import read_event, require_value

    value: Any = {}
    for _ in range(250):
        value = {"a": value}
    calls = [{"tool_name": "search", "tool_input": value}]
    with pytest.raises(EvalSetError, match="reference_trajectory: expected at most 240 levels of brackets"):
        require_value("reference_trajectory", calls)
    line = json.dumps({**EVENT, "path": "reference_trajectory", "new": calls}).encode()
    assert read_event(line) is None


def test_the_reader_names_the_place_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in (DEEP, "{", '{"a": "b"}', "", "\x00"):
        path.write_text(text)
        with pytest.raises(EvalSetError, match=r"a\.json: .+: write it again$"):
            read_json(str(path), dict[str, int], "write it again")
        assert decoded_or_none(text, dict[str, int]) is None
    assert decoded('{"a": 1}', dict[str, int], "here", "") == {"a": 1}
    with pytest.raises(EvalSetError, match="No such file"):
        read_json(str(tmp_path / "none.json"), dict, "")


# ---------------------------------------------------------------------------------------------------------------------
# one way to read them
PARSERS = {
    *(("json", "load"), ("json", "loads"), ("tomllib", "load"), ("tomllib", "loads")),
    *(("yaml", "load"), ("yaml", "safe_load")),
}
OF_DATA = (
    *("cells", "decoding", "formats", "traces", "similarity", "metrics/trajectory_columns.py"),
    *("inference_tables/read", "inference_tables/finish"),
)
"""Where the cells of data are decoded: a cell was measured when its batch was read."""

ALLOWED = {
    "text/guarded.py": "the reader",
    "text/jsontext.py": "the parsers of cells, which measure the depth themselves",
    "io/csv.py": "cells of data, which are measured when they are read",
    "io/jsonl.py": "lines of data, which are measured when they are read",
    "io/work_folder.py": "makes a job comparable with the one that was written",
    "validation/settings.py": "the one reader of TOML: it catches what is nested too deep",
    "validation/checked_batch.py": "what it has put into the metadata of a batch itself",
    "validation/report_builder.py": "what this process or one of its workers has put into the metadata of a batch",
    "inference_tables/spark.py": "what the executors of this run have counted",
    "integrations/mlflow/prepare_spark.py": "what the executors of this run have collected",
    "integrations/ces/client.py": "an answer of the service, whose size and types the client checks",
    "formats/overview.py": "a file of this package",
    "inference_tables/options.py": "a file of this package",
    "runtime/tables.py": "the files of this package",
    "render/rule.py": "text that it has encoded itself",
}


def test_only_the_gates_parse_files() -> None:
    found: dict[str, list[int]] = {}
    for path in sorted((ROOT / "agent_eval_schema").rglob("*.py")):
        name = path.relative_to(ROOT / "agent_eval_schema").as_posix()
        if name.startswith(OF_DATA) and name not in ALLOWED:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_parser(node.func):
                found.setdefault(name, []).append(node.lineno)
    assert found.keys() - ALLOWED.keys() == set(), found
    assert ALLOWED.keys() - found.keys() <= {"text/guarded.py", "formats/overview.py"}, "an exception without a use"


def is_parser(function: ast.Attribute) -> bool:
    owner = function.value
    if isinstance(owner, ast.Name):
        return (owner.id, function.attr) in PARSERS
    is_json = isinstance(owner, ast.Attribute) and owner.attr == "json"
    return is_json and function.attr in ("decode", "Decoder")
