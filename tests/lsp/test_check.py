"""An open file has the issues of `validate`, each at its place, also when only its new lines are checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.lsp import check
from agent_eval_schema.lsp.check import Found, Mark, check_all, check_lines, marks_of
from agent_eval_schema.lsp.text import Place, Text
from agent_eval_schema.validation.validate import check_source
from tests.conftest import DATA, SAMPLES

FILES = sorted(p for p in (*SAMPLES.iterdir(), *DATA.glob("ces/**/*.yaml")) if check.is_dataset(str(p)))


def read(path: Path | str) -> Text:
    return Text.of(Path(path).read_bytes().decode())


def checked(path: Path | str) -> tuple[Text, Found, list[Mark]]:
    text = read(path)
    found = check_all(str(path), text)
    assert found is not None
    marks, more = marks_of(found, text)
    assert more == 0
    return text, found, marks


def marked(text: Text, mark: Mark) -> str:
    return text.whole[text.offset(mark.start) : text.offset(mark.end)]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_issues_of_every_sample_are_those_of_validate(path: Path) -> None:
    _, _, marks = checked(path)
    issues = check_source(open_source(str(path))).iter_issues()
    expected = [(issue.code, issue.message, issue.hint, issue.path or "") for issue in issues]
    assert sorted((m.code, m.message, m.hint, m.path or "") for m in marks) == sorted(expected)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_a_part_of_a_line_of_json_is_marked_to_the_character(path: Path) -> None:
    """An oracle: what is marked is, read as JSON, the value at the path of the issue."""
    text, found, marks = checked(path)
    lines = text.lines if found.lines is not None else []
    for mark in marks:
        assert text.offset(mark.start) <= text.offset(mark.end)
        if not lines or mark.path is None or mark.path.count(".") > 1 or mark.first is not None:
            continue
        try:
            row = json.loads(lines[mark.start.line])
            part = json.loads(marked(text, mark))
        except ValueError:
            continue
        assert part == _value(row, mark.path) or part in mark.path.split("."), mark  # or the name of what lacks it


def _value(row: Any, path: str) -> Any:
    for step in path.replace("[", ".[").split("."):
        try:
            row = json.loads(row) if isinstance(row, str) else row
            row = row[int(step[1:-1])] if step[0] == "[" else row[step]
        except (TypeError, KeyError, IndexError):
            return row
    return row


CHAT = '{"messages": [{"role": "usr", "content": "é😀"}]}'
IN_TEXT = CHAT.replace('"', r"\"")
IN_CSV = CHAT.replace('"', '""').replace('""content"": ', '""content"":\n')
LISTED = '{"version": 1, "questions": [{"request": "a", "response": "b"}, {"request": " ", "response": "b"}]}'

PLACES = [
    ("role.jsonl", f'{{"request": {CHAT}, "response": "a"}}\n', "AE206", '"usr"'),
    ("inner.jsonl", f'{{"request": "{IN_TEXT}", "response": "a"}}', "AE206", r"\"usr\""),
    ("cell.csv", f'request,response\n"{IN_CSV}",a\n', "AE206", '""usr""'),
    ("pretty.json", f'[\n  {{\n    "request": {CHAT},\n    "response": "a"}}\n]', "AE206", '"usr"'),
    ("rows.yaml", "- request:\n    messages:\n    - role: usr\n      content: é😀\n  response: a\n", "AE206", "usr"),
    ("bom.jsonl", '\ufeff{"request": " ", "response": "a"}\n', "AE202", '" "'),
    ("listed.json", LISTED, "AE202", '" "'),
    ("blank.jsonl", '\n \n{"request": " ", "response": "a"}\n', "AE202", '" "'),
    ("lacks.jsonl", '{"response": "a"}\n', "AE201", "{"),
    ("cut.jsonl", '{"request": "a", "response": "b"}\n{"request": "a", "resp\n', "AE007", "p"),
    ("nan.jsonl", '{"request": "a", "response": "é", "latency_seconds": NaN}\n', "AE003", "N"),
    ("column.csv", "request,expected_respones,response\na,b,c\n", "AE102", "expected_respones"),
    ("short.csv", "request,response,tags\na,b,{\nc,d\n", "AE002", "{"),
    ("separator.jsonl", '{"request": "\u2028", "response": 12}\n', "AE220", "12"),
]


@pytest.mark.parametrize(("name", "content", "code", "expected"), PLACES, ids=[place[0] for place in PLACES])
def test_where_an_issue_is(name: str, content: str, code: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    text, _, marks = checked(tmp_path / name)
    assert expected in [marked(text, mark) for mark in marks if mark.code == code], marks


def test_the_row_that_another_is_compared_with_is_named(tmp_path: Path) -> None:
    rows = [{"request": "a", "response": "b", "request_id": i} for i in ("of row 7", "x", "of row 7")]
    rows += [{"request": "q", "response": "b", "expected_response": t} for t in ("one", "two")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, _, marks = checked(tmp_path / "rows.jsonl")
    assert [(m.code, m.start.line, m.first) for m in marks if m.first is not None] == [("AE901", 2, 0), ("AE902", 4, 3)]


def test_the_settings_of_the_repository_apply(tmp_path: Path) -> None:
    (tmp_path / "agent-eval-schema.toml").write_text('ignore = ["AE202"]\ncolumns = {frage = "request"}\n')
    (tmp_path / "rows.jsonl").write_text('{"frage": " ", "response": "a"}\n{"frage": {"messages": 1}, "response": 7}\n')
    text, _, marks = checked(tmp_path / "rows.jsonl")
    assert {m.code for m in marks}.isdisjoint({"AE202", "AE201"})
    assert "1" in [marked(text, m) for m in marks]


def test_criteria_beside_a_file_count_though_its_text_is_a_copy(tmp_path: Path) -> None:
    (tmp_path / "test_config.json").write_text('{"criteria": {"nonsense": 1}}')
    path = tmp_path / "rows.test.json"
    path.write_text((SAMPLES / "help_desk.test.json").read_text())
    expected = [issue.code for issue in check_source(open_source(str(path))).iter_issues()]
    assert expected
    assert [m.code for m in checked(path)[2]] == expected


# --- while someone types
UNFOLDED = ("bedrock_rag", "otel_traces")  # whose rows are not their lines
EDITABLE = [path for path in FILES if path.suffix == ".jsonl" and not path.name.startswith(UNFOLDED)]
PIECES = st.sampled_from(
    ["", '"', "}", "\n", "usr", " ", "é😀", '{"request": " ", "response": "a"}\n', "\\", "\r\n", "null"]
)


@given(
    st.sampled_from(EDITABLE), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES), min_size=1, max_size=4)
)
def test_checking_the_new_lines_finds_what_checking_all_does(path: Path, edits: list[tuple[float, int, str]]) -> None:
    text, found, _ = checked(path)
    for share, length, new in edits:
        start = int(share * text.size)
        text, _, _ = text.edited(text.place(start), text.place(start + length), new)
    check_lines(str(path), found, text)
    typed = sorted(
        (m.code, m.message, m.path or "", m.start, m.end)
        for m in marks_of(found, text)[0][: -len(found.compared) or None]
    )
    plan = found.plan
    again = check_all(str(path), text)
    if again is None or again.plan != plan or again.columns != found.columns or again.lines is None:
        return  # another format, or other columns: a check of the lines waits for that of the whole file
    whole = marks_of(again, text)[0][: -len(again.compared) or None]
    assert typed == sorted((m.code, m.message, m.path or "", m.start, m.end) for m in whole)
    assert [(s.mask, s.usable) for s in found.states if s.notes] == [
        (s.mask, s.usable) for s in again.states if s.notes
    ]


def test_of_20_000_rows_a_key_checks_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"request_id": f"q{i}", "request": f"question {i}", "response": "an answer"} for i in range(20_000)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text, found, _ = checked(path)
    sizes = list[int]()
    check_batch = check.check_batch
    monkeypatch.setattr(
        check, "check_batch", lambda batch, plan: sizes.append(batch.num_rows) or check_batch(batch, plan)
    )
    line = text.lines[7_000]
    text, _, _ = text.edited(
        text.place(text.starts[7_000] + line.index("question")),
        text.place(text.starts[7_000] + line.index('7000", "resp') + 4),
        " ",
    )
    assert check_lines(str(path), found, text) == 1
    assert sizes == [1]
    assert [(m.code, m.start.line) for m in marks_of(found, text)[0]] == [("AE202", 7_000)]
    text, _, _ = text.edited(text.place(0), text.place(0), "\n")  # all lines move
    assert check_lines(str(path), found, text) == 0
    assert [(m.code, m.start.line) for m in marks_of(found, text)[0]] == [("AE202", 7_001)]


def test_a_line_that_is_no_row_keeps_its_number_when_it_moves(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"request": "a", "response": "b"}\n{"request"\n')
    text, found, marks = checked(tmp_path / "rows.jsonl")
    assert marks[0].message.startswith("line 2: ")
    text, _, _ = text.edited(text.place(0), text.place(0), "\n\n{]\n")
    check_lines(str(tmp_path / "rows.jsonl"), found, text)
    assert [m.message.partition(":")[0] for m in marks_of(found, text)[0]] == ["line 3", "line 5"]


def test_the_issues_shown_are_bounded_errors_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_MARKS", 3)
    rows = [{"request": "a", "response": "b", "expected_facts": "x", "team": i} for i in range(9)]
    rows += [{"request": " ", "response": "b"}] * 2
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = read(tmp_path / "rows.jsonl")
    found = check_all(str(tmp_path / "rows.jsonl"), text)
    assert found is not None
    marks, more = marks_of(found, text)
    assert len(marks) - len(found.compared) == 3
    assert more == sum(len(state.notes) for state in found.states) - 3
    assert "AE202" in {m.code for m in marks} or all(m.severity == "error" for m in marks[:3])


def test_a_check_that_is_stopped_ends(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"request": "a", "response": "b"}\n')
    assert check_all(str(tmp_path / "rows.jsonl"), read(tmp_path / "rows.jsonl"), lambda: True) is None


@pytest.mark.parametrize(
    ("header", "settings", "why"),
    [
        ('request,"re"x"sponse', "", "rows.csv: line 1: the header cannot be read: "),
        ("request,response", 'format = "vertex"\n= 3\n', "agent-eval-schema.toml: malformed TOML: "),
    ],
    ids=["header", "settings"],
)
def test_a_file_that_cannot_be_read_is_marked_at_its_start(
    header: str, settings: str, why: str, tmp_path: Path
) -> None:
    """A line of the settings is none of the file."""
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\na,b\n")
    (tmp_path / "agent-eval-schema.toml").write_text(settings)
    with pytest.raises(EvalSetError, match=why) as raised:
        check_all(str(path), read(path))
    mark = check.problem_mark(raised.value)
    assert (mark.message, mark.start, mark.end) == (str(raised.value), Place(0, 0), Place(0, 1))
