"""The changes that an editor applies give the bytes of `validate --fix`."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_eval_schema.cli import main
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.lsp.check import Found, check_all
from agent_eval_schema.lsp.fixes import Change, fixes_at, fixes_of, ignoring
from agent_eval_schema.lsp.text import Text
from agent_eval_schema.validation.settings import find_settings
from tests.conftest import SAMPLES, as_csv, as_json

ALL = frozenset(FIXABLE)
NAMES = (
    "broken.jsonl",
    "broken_mlflow.jsonl",
    "ragas_broken.jsonl",
    "vertex_broken.jsonl",
    "rows.csv",
    "rows.json",
    "bom.jsonl",
)

ROWS = [
    {"request": {"messages": [{"role": "User ", "content": "é😀"}]}, "response": "a", "expected_facts": "x"},
    {"request": {"messages": [{"role": "human", "content": "b"}]}, "response": "a", "expected_facts": ["x", " "]},
]


@pytest.fixture(params=NAMES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with issues that can be fixed."""
    name = str(request.param)
    if name in ("rows.csv", "rows.json"):
        return Path((as_csv if name == "rows.csv" else as_json)(ROWS, tmp_path))
    data = (SAMPLES / name.replace("bom", "broken")).read_bytes()
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" * name.startswith("bom") + data)
    return tmp_path / name


def checked(path: Path) -> tuple[Text, Found]:
    text = Text.of(path.read_bytes().decode())
    found = check_all(str(path), text)
    assert found is not None
    return text, found


def applied(text: Text, changes: list[Change]) -> str:
    whole = text.whole
    for start, end, new in sorted(changes, reverse=True):
        whole = whole[: text.offset(start)] + new + whole[text.offset(end) :]
    return whole


def fixed_by_the_command(path: Path, *options: str) -> bytes:
    out = path.with_name(f"fixed{path.suffix}")
    main(["validate", str(path), "--fix", str(out), "-q", *options])
    return out.read_bytes()


def test_all_fixes_of_a_file_are_those_of_the_command(path: Path) -> None:
    text, found = checked(path)
    changes = fixes_of(str(path), text, found, ALL)
    assert bool(changes) == (path.name != "ragas_broken.jsonl")  # which has none
    assert applied(text, changes).encode() == fixed_by_the_command(path)


def test_each_fix_of_a_cell_changes_what_the_command_changes_there(path: Path) -> None:
    text, found = checked(path)
    fixed = fixed_by_the_command(path, "--ignore", "AE102").decode()  # the names of columns are not of a cell
    found.plan = found.plan
    changes = [
        change
        for line in range(len(text.lines))
        for _, changes in fixes_at(str(path), text, found, line, line)
        for change in changes
    ]
    assert applied(text, list(dict.fromkeys(changes))) == fixed


def test_fixes_of_a_kind_leave_the_others(tmp_path: Path) -> None:
    path = Path(as_json(ROWS, tmp_path))
    text, found = checked(path)
    changed = applied(text, fixes_of(str(path), text, found, frozenset({"AE206"})))
    assert '"expected_facts": "x"' in changed
    assert '"role": "user"' in changed


SETTINGS = [
    ("pyproject.toml", '[tool.agent-eval-schema]\nfail-on = "warning"\n[tool.ruff]\nignore = ["E1"]\n'),
    ("pyproject.toml", '[tool.agent-eval-schema]\nignore = [\n  "AE1",  # a comment\n]\n'),
    ("agent-eval-schema.toml", 'ignore = ["AE1", "AE2"]\n[per-file-ignores]\n"a" = ["AE3"]\n'),
    ("agent-eval-schema.toml", ""),
    ("agent-eval-schema.toml", "ignore = []"),
    (None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), SETTINGS)
def test_a_code_is_ignored_in_the_settings_of_the_repository(name: str | None, content: str, tmp_path: Path) -> None:
    if name is not None:
        (tmp_path / name).write_text(content)
    data = tmp_path / "evals" / "rows.jsonl"
    data.parent.mkdir()
    before = find_settings(None, data.parent).settings
    change = ignoring(str(data), "AE206", str(tmp_path))
    assert change is not None
    Path(change[0]).write_text(applied(Text.of(content), [change[1]]))
    after = find_settings(None, data.parent).settings
    assert after.ignore == ("AE206", *before.ignore)
    assert (after.fail_on, after.per_file_ignores) == (before.fail_on, before.per_file_ignores)


def test_settings_of_another_form_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('tool = {agent-eval-schema = {ignore = ["AE1"]}}\n')
    assert ignoring(str(tmp_path / "rows.jsonl"), "AE206", str(tmp_path)) is None
