"""What an editor is answered about a place in a file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_eval_schema.lsp import answers
from agent_eval_schema.lsp.check import Found, check_all, marks_of
from agent_eval_schema.lsp.text import Place, Text

CHAT = {"messages": [{"role": "user", "content": "Where is\nmy order?"}]}
ROW = {"request_id": "q1", "request": CHAT, "response": "Here.", "expected_response": "There."}
CALL = {"tool_name": "find_order", "tool_input": {"id": 1}}
DOCUMENT = {"doc_uri": "/docs/orders.md", "content": "x"}


def opened(folder: Path, *rows: object, name: str = "rows.jsonl") -> tuple[Text, Found]:
    path = folder / name
    lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) if name.endswith("l") else "[\n" + ",\n".join(lines) + "\n]\n")
    text = Text.of(path.read_text())
    found = check_all(str(path), text)
    assert found is not None
    return text, found


def hover(text: Text, found: Found, word: str) -> str:
    place = text.place(text.whole.index(word) + 1)
    return answers.hover(found, text, place, marks_of(found, text)[0], "https://pages")


def with_role(role: str) -> dict[str, object]:
    return {**ROW, "request_id": role, "request": {"messages": [{"role": role, "content": "a"}]}}


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_on_an_issue_its_rule_and_the_metrics_that_the_row_lost(name: str, tmp_path: Path) -> None:
    text, found = opened(tmp_path, with_role("user"), with_role("usr"), name=name)
    shown = hover(text, found, '"usr", "content')
    assert shown.startswith("**AE206 message-role** (error): ")
    assert "[AE206](https://pages/message-role.html)" in shown
    assert "**Row 1** is invalid: it supports no metric. It lost `" in shown
    supported = hover(text, found, "There")
    lost = shown.partition("It lost ")[2].partition("`.")[0]
    assert lost in supported  # what the same row without the typo supports
    assert "`response/llm_judged/correctness/rating`" in lost


def test_on_a_key_its_meaning_and_the_metrics_that_need_it(tmp_path: Path) -> None:
    text, found = opened(tmp_path, ROW)
    shown = hover(text, found, '"expected_response"')
    assert shown.startswith("`expected_response`: the facts that a correct answer must hold\n\nMetrics that need it: `")
    assert "**Row 0** supports " in shown
    assert "`response/llm_judged/correctness/rating`" in shown
    assert "relevance_to_query" not in shown.partition("**Row 0**")[0]  # it reads no expectation


def test_on_a_row_what_would_enable_the_rest(tmp_path: Path) -> None:
    text, found = opened(tmp_path, {"request": "a", "response": "b"})
    assert "`a trace or latency_seconds` would enable `agent/latency_seconds`." in hover(text, found, '"b"')


def test_a_row_that_is_invalid_only_beside_another_lost_its_metrics_too(tmp_path: Path) -> None:
    text, found = opened(tmp_path, ROW, ROW)
    assert "**Row 1** is invalid" in answers.hover(found, text, Place(1, 5), [], "")


def test_hostile_keys_are_escaped(tmp_path: Path) -> None:
    text, found = opened(tmp_path, {**ROW, "a\u202eb": 1})
    assert "\u202e" not in hover(text, found, "u202e")


COMPLETIONS = [
    ('{"request": {"messages": [{"ro', {"role"}, {"messages"}),
    ('{"request": {"messages": [{"role": "as', {"assistant"}, {"user", "role"}),
    ('{"request": {"messages": [{"role": ', {"assistant", "user", "system", "tool"}, {"q1"}),
    ('{"expected_', {"expected_response", "expected_facts"}, {"request"}),
    ('{"request": "a", "re', {"response", "retrieved_context", "request_id"}, {"request"}),
    ('{"predicted_trajectory": [{"tool_name": "', {"find_order"}, set()),
    ('{"retrieved_context": [{"doc_uri": "', {"/docs/orders.md"}, set()),
    (r'{"request": "{\"messages\": [{\"role\": \"as', {"assistant"}, {"user"}),
    ("", set(), {"request"}),
    ("[", set(), {"request"}),
]


@pytest.mark.parametrize(("typed", "proposed", "others"), COMPLETIONS)
def test_what_can_come_next(typed: str, proposed: set[str], others: set[str], tmp_path: Path) -> None:
    row = {**ROW, "reference_trajectory": [CALL], "expected_retrieved_context": [DOCUMENT]}
    text, found = opened(tmp_path, row, with_role("user"))
    text, _, _ = text.edited(text.place(0), text.place(0), f"{typed}\n")
    words = {p.text for p in answers.proposals(found, text, Place(0, len(typed)), "jsonl")}
    assert proposed <= words
    assert words.isdisjoint(others)


def test_a_document_of_json_is_completed_too(tmp_path: Path) -> None:
    text, found = opened(tmp_path, ROW, name="rows.json")
    offset = text.whole.index('"expected_response"') + len('"expected_')
    (first, *_) = answers.proposals(found, text, text.place(offset), "json")
    assert (first.is_key, first.start, first.end, first.text) == (True, offset - 9, offset, "expected_facts"), first


@pytest.mark.parametrize(
    ("is_key", "is_quoted", "expected"), [(True, False, '"a\\"b": '), (True, True, 'a\\"b'), (False, False, '"a\\"b"')]
)
def test_a_proposal_is_json(is_key: bool, is_quoted: bool, expected: str) -> None:
    assert answers.written(answers.Proposal('a"b', is_key, 0, 0, is_quoted), "json") == expected


TABLE = """request,response,predicted_trajectory
"{""messages"": [{""role"": ""user"", ""content"": ""a""}]}",b,"[{""tool_name"": ""find_order""}]"
"""
IN_A_CELL = [
    ('"{""messages"": [{""ro', "role", "role"),
    ('"{""messages"": [{""', "role", "role"),
    ('"{""messages"": [{', "role", '""role"": '),
    ('"{""messages"": [{""role"": ""as', "assistant", "assistant"),
    ('"a",b,"[{""tool_name"": ""', "find_order", "find_order"),
    ("plain te", None, ""),
    ('a,b,c,d,"{""', None, ""),
]


@pytest.mark.parametrize(("typed", "word", "new"), IN_A_CELL)
@pytest.mark.parametrize("comma", [",", ";"])
def test_json_in_a_cell_is_completed(typed: str, word: str | None, new: str, comma: str, tmp_path: Path) -> None:
    def separated(text: str) -> str:
        return text.replace('",b,"', f'"{comma}b{comma}"').replace(
            "request,response,", f"request{comma}response{comma}"
        )

    path = tmp_path / "rows.csv"
    path.write_text(separated(TABLE))
    found = check_all(str(path), Text.of(separated(TABLE)))
    text = Text.of(separated(TABLE) + separated(typed))
    proposed = answers.proposals(found, text, text.place(text.size), "csv")
    if word is None:
        assert proposed == []
        return
    (one,) = (p for p in proposed if p.text == word)
    assert (
        text.whole[: one.start] + answers.written(one, "csv")
        == separated(TABLE) + separated(typed)[: len(separated(typed)) - (one.end - one.start)] + new
    )


DOCUMENT_OF_YAML = """\
- request:
    messages:
      - role: user
        content: Where is it?
  predicted_trajectory:
    - tool_name: find_order
- request_id: q2
"""
IN_YAML = [
    ("  expected_re", "expected_response", "expected_response: "),
    ("  request:\n    messages:\n      - ro", "role", "role: "),
    ("  request:\n    messages:\n      - content: a\n        ro", "role", "role: "),
    ("  request:\n    messages:\n      - role: as", "assistant", "assistant"),
    ('  request:\n    messages:\n      - role: "as', "assistant", "assistant"),
    ("  predicted_trajectory:\n    - tool_name: ", "find_order", "find_order"),
    ("  response: |\n    some text of s", None, ""),
    ("  response: |\n    s", None, ""),
    ("  response: [a, ", None, ""),
    ("  request: {a", None, ""),
]


@pytest.mark.parametrize(("typed", "word", "new"), IN_YAML)
def test_yaml_is_completed(typed: str, word: str | None, new: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text(DOCUMENT_OF_YAML)
    found = check_all(str(path), Text.of(DOCUMENT_OF_YAML))
    text = Text.of(f"{DOCUMENT_OF_YAML}{typed}\n- request: another\n")
    proposed = answers.proposals(found, text, text.place(len(DOCUMENT_OF_YAML) + len(typed)), "yaml")
    assert "request_id" not in {p.text for p in proposed}  # which the row has
    if word is None:
        assert proposed == []
        return
    (one,) = (p for p in proposed if p.text == word)
    assert (text.whole[one.start : one.end], answers.written(one, "yaml")) == (
        typed.rstrip("_").rpartition(" ")[2].lstrip('"'),
        new,
    )


def test_a_row_is_listed_by_its_question(tmp_path: Path) -> None:
    text, found = opened(tmp_path, ROW, {"request": "Why?", "response": "b"}, {"response": "only"})
    questions = [answers.question(found, node) for _, node in answers.rows_listed(found)]
    assert questions == ["Where is my order?", "Why?", "only"]
    assert text.lines


@pytest.fixture
def session(tmp_path: Path) -> Any:
    """A session of the server with an open file, in this process."""
    pytest.importorskip("pygls")
    from agent_eval_schema.lsp.server import File, Session

    path, session = tmp_path / "rows.json", Session(None)
    path.write_text('[\n {"request": "Why?",\n  "response": "b"},\n {"request": "How?", "response": "b"}\n]\n')
    text = Text.of(path.read_text())
    file = session.files["uri"] = File("uri", str(path), text, 1)
    file.found, file.shown = check_all(str(path), text), 1
    return session


def asked_for(lines: tuple[int, int] = (0, 9)) -> SimpleNamespace:
    start, end = (SimpleNamespace(line=line, character=0) for line in lines)
    return SimpleNamespace(text_document=SimpleNamespace(uri="uri"), range=SimpleNamespace(start=start, end=end))


def test_the_symbol_of_a_row_is_its_question_and_leads_to_its_brace(session: Any) -> None:
    found = asyncio.run(session.symbols(asked_for()))
    places = [[(p.line, p.character) for r in (s.range, s.selection_range) for p in (r.start, r.end)] for s in found]
    assert [s.name for s in found] == ["0: Why?", "1: How?"]
    assert places == [[(1, 1), (2, 18), (1, 1), (1, 2)], [(3, 1), (3, 37), (3, 1), (3, 2)]]


@pytest.mark.parametrize(
    ("lines", "ends"), [((0, 9), [2, 3]), ((2, 2), [2]), ((3, 3), [3]), ((0, 1), []), ((4, 9), [])], ids=str
)
def test_hints_are_at_the_rows_that_end_in_the_shown_lines(
    lines: tuple[int, int], ends: list[int], session: Any
) -> None:
    assert asyncio.run(session.inlay_hints(asked_for(lines))) == []  # the editor did not switch them on
    session.initialize(SimpleNamespace(initialization_options={"inlayHints": True}))
    hints = asyncio.run(session.inlay_hints(asked_for(lines)))
    assert [hint.position.line for hint in hints] == ends
    assert all(hint.label.endswith(" metrics") for hint in hints)
