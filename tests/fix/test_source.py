"""Repairs: what is mended, what is left alone, and that nothing else changes."""

import copy
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_eval_schema import (
    EvalSetError,
    FormulaWarning,
    InvalidEvalSetError,
    explain,
    normalize_eval_set,
    profile_eval_set,
    validate_eval_set,
    write_eval_set,
)
from agent_eval_schema.cli import main
from agent_eval_schema.fix import fix as fixing
from agent_eval_schema.fix import search
from agent_eval_schema.fix.effects import FIXABLE
from agent_eval_schema.fix.fix import FixedSource, fix_source
from agent_eval_schema.fix.search import CellFix
from agent_eval_schema.fix.values import CODES_OF, FIXES
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.io import source as source_
from agent_eval_schema.io.source import Source
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text.spelling import meant
from agent_eval_schema.validation.plan import make_plan
from agent_eval_schema.validation.report import Report
from agent_eval_schema.validation.validate import check_source
from tests.conftest import KINDS, SAMPLES, as_jsonl, as_parquet
from tests.render.report.test_text import GOLDEN, compare

ROW = {"request": "Hi", "response": "Hello"}
HI = {"role": "user", "content": "Hi"}
DOC = {"doc_uri": "a.md", "content": "text"}
CALL = {"tool_name": "f", "tool_input": {"x": 1}}
TRACE = {
    "info": {"trace_id": "t"},
    "data": {
        "spans": [
            {
                "name": "agent",
                "span_id": "1",
                "attributes": {"mlflow.spanInputs": '"Hi"', "mlflow.spanOutputs": '"Hello"'},
            }
        ]
    },
}

Rows = list[dict[str, Any]]


def changes_of(data: Any, **options: Any) -> list[CellFix]:
    return [c for _, changes in fix_source(open_source(data, **options)).batches() for c in changes]


def repaired_report(data: Any, **options: Any) -> Report:
    repaired = fix_source(open_source(data, **options))
    return check_source(repaired.source.read_as(outputs=repaired.plan.outputs))


def chat(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


# ---------------------------------------------------------------------------------------------------------------------
# one by one

NATIVE = ("list", "pandas", "jsonl", "json")
"""Kinds of input whose cells can hold numbers and objects; in the others every cell is text."""

MENDED: list[tuple[str, Any, Any, str]] = [
    # request
    ("request", [HI], chat(HI), "put the messages into an object"),
    ("request", {"mesages": [HI]}, chat(HI), "renamed a key of the request"),
    ("request", {"question": "Hi"}, {"query": "Hi"}, "renamed a key of the request"),
    (
        "request",
        {"Question": "And?", "chat_history": [HI]},
        {"query": "And?", "history": [HI]},
        "renamed a key of the request",
    ),
    ("request", {"messages": HI}, chat(HI), "put the single message into a list"),
    ("request", {"messages": json.dumps([HI])}, chat(HI), "put the single message into a list"),
    ("request", chat(json.dumps(HI)), chat(HI), "read a message's JSON text"),
    *(
        ("request", chat({**HI, "role": role}), chat(HI), "wrote a role as the schema has it")
        for role in ("human", "Human", "usr", "User", " USER ")
    ),
    *(
        (
            "request",
            {"query": "And?", "history": [HI, {"role": role, "content": "Ho"}]},
            {"query": "And?", "history": [HI, {"role": "assistant", "content": "Ho"}]},
            "wrote a role as the schema has it",
        )
        for role in ("ai", "AI", "bot", "model", "asistant")
    ),
    ("request", chat({"type": "human", "content": "Hi"}), chat(HI), "wrote a role as the schema has it"),
    ("request", chat({"role": "user", "text": "Hi"}), chat(HI), "renamed a message's key to content"),
    ("request", {"mesages": {"role": "human", "text": "Hi"}}, chat(HI), "renamed a key of the request"),
    # expectations
    ("expected_response", "  ", None, "made blank text null"),
    ("expected_facts", "16 weeks", ["16 weeks"], "put the text into a list"),
    ("expected_facts", ["16 weeks", 16], ["16 weeks", "16"], "wrote a number as text"),
    ("expected_facts", ["16 weeks", " "], ["16 weeks"], "dropped a blank entry"),
    ("expected_facts", ["", " "], None, "dropped a blank entry"),
    ("expected_facts", "['16 weeks', \"it's paid\"]", ["16 weeks", "it's paid"], "read the text"),
    ("guidelines", "Be polite", ["Be polite"], "put the text into a list"),
    ("guidelines", {"tone": "Be polite"}, {"tone": ["Be polite"]}, "put a named text into a list"),
    ("custom_expected", "{'mode': None, 'n': [1, 2.5, True]}", {"mode": None, "n": [1, 2.5, True]}, "read the text"),
    ("tags", " ", None, "made blank text null"),
    # documents
    ("retrieved_context", DOC, [DOC], "put the single document into a list"),
    ("retrieved_context", [json.dumps(DOC)], [DOC], "read a document's JSON text"),
    ("retrieved_context", [{"doc_uri": "a.md", "page_content": "text"}], [DOC], "renamed a document's key to content"),
    ("retrieved_context", [{"doc_uri": "a.md", "text": "text"}], [DOC], "renamed a document's key to content"),
    (
        "retrieved_context",
        [{"doc_uri": "a.md", "content": None, "text": "text"}],
        [DOC],
        "renamed a document's key to content",
    ),
    ("retrieved_context", [{"doc_url": "a.md", "content": "text"}], [DOC], "took doc_uri"),
    ("retrieved_context", [{"docUri": "a.md", "content": "text"}], [DOC], "took doc_uri"),
    ("retrieved_context", [{"source": "a.md", "content": "text"}], [DOC], "took doc_uri"),
    ("retrieved_context", [{"doc_id": 7, "content": "text"}], [{"doc_uri": "7", "content": "text"}], "took doc_uri"),
    (
        "retrieved_context",
        [{"content": "text", "metadata": {"doc_uri": "a.md", "source": "wiki/x", "page": 3}}],
        [{**DOC, "metadata": {"doc_uri": "a.md", "source": "wiki/x", "page": 3}}],
        "took doc_uri",
    ),
    (
        "retrieved_context",
        [{"page_content": "text", "metadata": {"source": "a.md"}}],
        [{**DOC, "metadata": {"source": "a.md"}}],
        "renamed a document's key to content; took doc_uri",
    ),
    (
        "retrieved_context",
        [{"doc_uri": " ", "content": "text", "metadata": {"url": "https://x.org/a"}}],
        [{"doc_uri": "https://x.org/a", "content": "text", "metadata": {"url": "https://x.org/a"}}],
        "took doc_uri",
    ),
    ("expected_retrieved_context", [{"doc_uri": 4711}], [{"doc_uri": "4711"}], "wrote a doc_uri as text"),
    ("expected_retrieved_context", "[{'doc_uri': 'a.md'}]", [{"doc_uri": "a.md"}], "read the text"),
    ("retrieved_context", " ", None, "made blank text null"),
    # tool calls
    ("predicted_trajectory", CALL, [CALL], "put the single call into a list"),
    ("predicted_trajectory", [json.dumps(CALL)], [CALL], "read a call's JSON text"),
    ("predicted_trajectory", [{"name": "f", "tool_input": {"x": 1}}], [CALL], "renamed a call's key to tool_name"),
    ("predicted_trajectory", [{"tool_name": "f", "args": {"x": 1}}], [CALL], "renamed a call's key to tool_input"),
    (
        "reference_trajectory",
        [{"function": {"name": "f", "arguments": {"x": 1}}, "id": "c1"}],
        [{**CALL, "id": "c1"}],
        "took the name and arguments",
    ),
]

MENDED_NATIVE: list[tuple[str, Any, Any, str]] = [
    ("request", json.dumps(chat(HI)), chat(HI), "read the JSON text"),
    ("request", json.dumps({"question": "Hi"}), {"query": "Hi"}, "read the JSON text; renamed a key of the request"),
    ("request_id", 7, "7", "wrote the number as text"),
    ("expected_response", 42, "42", "wrote the number as text"),
]


@pytest.mark.parametrize(("column", "before", "after", "what"), MENDED)
def test_what_is_mended_in_both_kinds_of_input(
    column: str, before: Any, after: Any, what: str, two_inputs: Callable[[Rows], Any]
) -> None:
    rows = [ROW, {**ROW, column: before}]
    (change,) = changes_of(two_inputs(rows))
    assert (change.row, change.column, change.before, change.after) == (1, column, before, after)
    assert change.what.startswith(what)


@pytest.mark.parametrize(("column", "before", "what"), [(c, b, w) for c, b, _, w in MENDED + MENDED_NATIVE])
def test_the_issue_is_gone_and_a_note_says_so(column: str, before: Any, what: str) -> None:
    rows = [ROW, {**ROW, column: before}]
    found, left = validate_eval_set(rows), repaired_report(rows)
    assert left.count("error") + left.count("warning") < found.count("error") + found.count("warning") or "AE211" in (
        set(found.counts) - set(left.counts)
    )
    assert left.ok
    (note,) = (i for i in left.iter_issues() if i.code == "AE108")
    assert (note.row, note.column, str(note.severity)) == (1, column, "info")
    assert note.path is not None
    assert note.path.startswith(column)
    assert note.message.startswith(what)
    assert " became " in note.message


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize(("column", "before", "after", "what"), MENDED_NATIVE)
def test_what_is_mended_where_a_cell_can_hold_it(
    kind: str, column: str, before: Any, after: Any, what: str, tmp_path: Path
) -> None:
    (change,) = changes_of(KINDS[kind]([ROW, {**ROW, column: before}], tmp_path))
    assert (change.row, change.before, change.after, change.what) == (1, before, after, what)


def test_every_repair_has_an_example() -> None:
    shown = {part for _, _, _, what in MENDED + MENDED_NATIVE for part in what.split("; ")}
    assert [r.effect.what for r in FIXES if not any(r.effect.what.startswith(s) for s in shown)] == []


def test_a_blank_request_gives_way_to_the_trace() -> None:
    rows = [{"request": " ", "trace": TRACE}]
    (change,) = changes_of(rows)
    assert (change.column, change.after) == ("request", None)
    assert normalize_eval_set(rows, fix=True)[0]["request"] == chat(HI)


LEFT_ALONE: list[tuple[str, Any]] = [
    # which of two was meant
    ("request", {**chat(HI), "query": "Hi"}),
    ("request", {"question": "Hi", "prompt": "Ho"}),
    ("request", {"question": "Hi", "documents": ["a"]}),  # a part of what was asked would be left unread
    ("request", {"question": "Hi", "context": "You are a pirate"}),
    ("retrieved_context", [{"doc_uri": "a.md", "text": "one", "page_content": "two"}]),
    ("retrieved_context", [{"url": "a/b", "source": "a/c", "content": "x"}]),
    ("retrieved_context", [{"content": "x", "metadata": {"url": "a/b", "source": "a/c"}}]),
    ("retrieved_context", [{"url": "a/b", "content": "x", "metadata": {"source": "a/c"}}]),
    ("predicted_trajectory", [{"tool_name": "f", "args": {"x": 1}, "input": {"y": 2}}]),
    ("predicted_trajectory", [{"name": "f", "tool": "g"}]),
    # it may be something else
    ("request", chat({"role": "user_2", "content": "Hi"})),
    ("request", chat({"role": "assistant1", "content": "Hi"}, HI)),
    ("request", chat({"role": "customer", "content": "Hi"})),
    ("request", chat("Hi")),
    ("request", chat({"role": "user", "content": None})),
    ("response", " "),
    ("retrieved_context", ["hr/leave.pdf"]),
    ("retrieved_context", [DOC, None]),
    ("retrieved_context", [{"source": "confluence", "content": "x"}]),
    ("retrieved_context", [{"id": "chunk/7", "content": "x"}]),
    ("retrieved_context", [{"doc_uri": 1.5}]),
    ("retrieved_context", [{"doc_uri": True}]),
    ("retrieved_context", [{"doc_uri": "a.md", "content": ["x"]}]),
    ("expected_facts", "paid\n16 weeks"),
    ("expected_facts", "paid; 16 weeks"),
    ("expected_facts", ["a", None]),
    ("expected_facts", [1.5]),
    ("guidelines", {"tone": [""]}),
    ("predicted_trajectory", [{"tool_name": "f", "tool_input": "{x"}]),
    ("predicted_trajectory", [{"tool_name": "f", "args": ["x"]}]),
    # it cannot be read
    ("retrieved_context", '[{"doc_uri": "a.md"'),
    ("retrieved_context", "[{'doc_uri': 'a.md'}, Document(3)]"),
    ("retrieved_context", "[{'doc_uri':'a.md'}]"),  # nearly what Python writes, but not it
    ("custom_expected", "{'a': nan}"),
    ("custom_expected", '{"a": NaN}'),
    ("custom_expected", "{1: 2}"),
    # it would uncover an error that is there as well
    ("retrieved_context", {"content": "x"}),
    ("request", {"mesages": [{"role": "customer", "content": "Hi"}]}),
]

LEFT_ALONE_NATIVE: list[tuple[str, Any]] = [
    ("request", 42),
    ("response", 42),
    ("expected_response", ["16 weeks"]),
    ("expected_response", 1.5),
]


@pytest.mark.parametrize(("column", "cell"), LEFT_ALONE)
def test_what_is_left_alone(column: str, cell: Any, two_inputs: Callable[[Rows], Any]) -> None:
    assert_left_alone(two_inputs([ROW, {**ROW, column: cell}]))


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize(("column", "cell"), LEFT_ALONE_NATIVE)
def test_what_is_left_alone_where_a_cell_can_hold_it(kind: str, column: str, cell: Any, tmp_path: Path) -> None:
    assert_left_alone(KINDS[kind]([ROW, {**ROW, column: cell}], tmp_path))


def assert_left_alone(data: Any) -> None:
    assert changes_of(data) == []
    found, left = validate_eval_set(data), repaired_report(data)
    assert left.counts == found.counts
    assert found.counts, "nothing to be mended here: the example shows nothing"


def test_valid_cells_are_left_alone_though_a_repair_could_read_them_otherwise() -> None:
    rows = [
        {**ROW, "retrieved_context": json.dumps([DOC]), "expected_facts": '["a"]'},
        {"request": '{"a": 1}', "response": "['a']", "expected_response": "{'a': 1}"},
        {"request": "human", "response": '{"page_content": "x"}', "tags": {"role": "human"}},
    ]
    assert changes_of(rows) == []


def test_a_repair_that_causes_another_error_is_not_applied() -> None:
    row = {**ROW, "expected_response": "16 weeks", "expected_facts": "16 weeks"}
    assert changes_of([row]) == []
    assert [c.column for c in changes_of([{**row, "expected_response": " "}])] == [
        "expected_response",
        "expected_facts",
    ]


def test_of_the_repairs_of_a_cell_those_are_kept_that_help() -> None:
    """The document is put into a list; renaming its key would uncover that the content is no text."""
    row = {**ROW, "retrieved_context": {"doc_uri": 7, "content": "x", "text": "y"}}
    (change,) = changes_of([row])
    assert change.after == [{"doc_uri": "7", "content": "x", "text": "y"}]
    assert repaired_report([row]).counts == {"AE108": 1, "AE406": 1}


def test_a_fix_names_the_smallest_parts() -> None:
    documents = [{"doc_uri": 1}, DOC, {"doc_uri": 2, "content": "x"}]
    (change,) = changes_of([{**ROW, "retrieved_context": documents}])
    assert [tuple(p) for p in change.parts] == [
        ("retrieved_context[0].doc_uri", 1, "1"),
        ("retrieved_context[2].doc_uri", 2, "2"),
    ]
    (note,) = (i for i in repaired_report([{**ROW, "retrieved_context": documents}]).iter_issues() if i.code == "AE108")
    assert (note.path, note.message) == (
        "retrieved_context[0].doc_uri",
        'wrote a doc_uri as text: 1 became "1" (the first of 2 places)',
    )


def test_big_numbers_and_floats_beside_a_repair_keep_their_digits(tmp_path: Path) -> None:
    text = '{"x": 123456789012345678901234567890, "y": 0.1, "z": 1e400}'
    path = tmp_path / "a.jsonl"
    for given_, kept in ((text, False), (text.replace(', "z": 1e400', ""), True)):
        row = json.dumps(ROW)[:-1] + ', "predicted_trajectory": [{"tool_name": "f", "args": ' + given_ + "}]}"
        path.write_text(row + "\n")
        fix_source(open_source(str(path))).write(str(path))
        assert ('"tool_input": {"x": 123456789012345678901234567890, "y": 0.1}' in path.read_text()) is kept
        assert kept or path.read_text() == row + "\n"


def test_a_cell_with_a_key_that_stands_twice_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    cell = '[{"doc_uri": 7, "doc_uri": 8}]'
    path.write_text(json.dumps(ROW)[:-1] + f', "retrieved_context": {cell}}}\n')
    assert changes_of(str(path)) == []


def test_hostile_text_is_shown_and_not_sent() -> None:
    report = repaired_report([{**ROW, "expected_facts": "red \x1b[31m"}])
    (note,) = (i for i in report.iter_issues() if i.code == "AE108")
    assert "\x1b" not in note.message
    assert "\\u001b[31m" in note.message


# ---------------------------------------------------------------------------------------------------------------------
# columns

RENAMED = [
    ("expected_respones", "expected_response", "x"),
    ("Request_ID", "request_id", "r1"),
    ("requestId", "request_id", "r1"),
    ("expected facts", "expected_facts", ["x"]),
    ("retrieved_contexts", "retrieved_context", [DOC]),
]


@pytest.mark.parametrize(("wrong", "right", "cell"), RENAMED)
def test_a_misspelled_column_is_renamed(wrong: str, right: str, cell: Any, every_input: Callable[[Rows], Any]) -> None:
    data = every_input([{**ROW, wrong: cell}, {**ROW, "team": "x"}])
    repaired = fix_source(open_source(data))
    assert repaired.renames == {wrong: right}
    report = check_source(repaired.source)
    assert report.counts == {"AE103": 1, "AE109": 1}
    (note,) = (i for i in report.iter_issues() if i.code == "AE109")
    assert (note.row, note.column, note.message) == (None, right, f"renamed from `{wrong}`")
    assert report.rows[right][0] == validate_eval_set([{**ROW, right: cell}]).rows[right][0]
    assert wrong not in report.rows


def test_a_misspelled_column_that_only_later_lines_have_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_eval_schema.io.source.MAX_BATCH_ROWS", 2)
    monkeypatch.setattr("agent_eval_schema.io.source.HEAD_ROWS", 2)
    report = repaired_report(as_jsonl([*[ROW] * 4, {**ROW, "expected_respones": "a"}], tmp_path))
    assert report.rows["expected_response"].tolist() == [None] * 4 + ["a"]
    assert report.counts == {"AE109": 1}


def test_a_misspelled_column_moves_into_the_gaps_of_the_right_one(every_input: Callable[[Rows], Any]) -> None:
    data = every_input([{**ROW, "expected_respones": "a"}, {**ROW, "request": "Ho", "expected_response": "b"}, ROW])
    report = repaired_report(data)
    assert report.rows["expected_response"].tolist() == ["a", "b", None]
    assert report.counts == {"AE109": 1}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([{**ROW, "respones": "x"}], id="a row fills both"),
        pytest.param([{**ROW, "expected_respones": "x", "expected_reponse": "y"}], id="two columns mean the same"),
        pytest.param([{**ROW, "response_2": "x"}], id="a number is a name of its own"),
        pytest.param([{**ROW, "response_b": "x"}], id="a word more is a name of its own"),
        pytest.param(
            [{**ROW, "retrieved_contexts": "x"}, {**ROW, "retrieved_contexts": [DOC]}], id="the type is wrong"
        ),
        pytest.param([{**ROW, "request_ids": "1"}, {**ROW, "request_ids": "1"}], id="ids would repeat"),
        pytest.param([{**ROW, "expected_respones": "x", "expected_facts": ["y"]}], id="two truths"),
        pytest.param([{"request": " ", "response": "a", "retrieved_contexts": [1]}], id="one more error"),
    ],
)
def test_a_column_that_is_not_renamed(rows: Rows, every_input: Callable[[Rows], Any]) -> None:
    data = every_input(rows)
    repaired = fix_source(open_source(data, outputs="provided"))
    assert repaired.renames == {}
    found = validate_eval_set(data, outputs="provided")
    assert check_source(repaired.source).counts == found.counts


def test_a_misspelled_response_says_that_outputs_are_provided() -> None:
    report = repaired_report([{"request": "Hi", "Response": "Hello"}, {"request": "Ho", "Response": None}])
    assert (report.outputs, report.invalid_count) == ("provided", 1)
    assert "AE223" in report.counts


def test_a_misspelled_column_of_rows_on_a_cluster_is_renamed_by_the_user() -> None:
    source = open_source([{**ROW, "expected_respones": "x"}])
    words = (
        r"^fix: rename the column `expected_respones` of the Spark DataFrame first \(`expected_response`\), or drop it$"
    )
    with pytest.raises(EvalSetError, match=words):
        fixing.fixes_of_batches(source, make_plan(source))


def test_a_column_whose_name_would_change_the_format_is_not_renamed() -> None:
    fixed = fix_source(open_source([{"response": "Hello", "inputss": {"question": "Hi"}}]))
    assert (fixed.renames, fixed.plan.format) == ({}, "databricks")
    assert fixed.unrenamed == {"inputss": "as `inputs` it would make the rows those of the mlflow format"}


def test_a_cell_that_only_has_a_description_is_no_reason_to_rename() -> None:
    assert fix_source(open_source([{"request": "Hi", "respones": "Hi \ud83d"}])).renames == {}
    assert fix_source(open_source([{"request": "Hi", "respones": "Hi"}])).renames == {"respones": "response"}


MISSPELLED = {
    "request": "reqest",
    "expected_response": "expected_respones",
    "expected_facts": "expected_fact",
    "guidelines": "guidlines",
    "custom_expected": "custom_expectd",
    "retrieved_context": "retrieved_contxt",
    "expected_retrieved_context": "expected_retrieved_contxt",
    "predicted_trajectory": "predicted_trajectry",
    "reference_trajectory": "reference_trajectry",
}


@pytest.mark.parametrize(("column", "before", "after"), [m[:3] for m in MENDED if m[0] in MISSPELLED])
def test_a_renamed_column_is_repaired_too(
    column: str, before: Any, after: Any, two_inputs: Callable[[Rows], Any]
) -> None:
    """Renamed is the column, mended are its cells, in one go, though neither helps without the other."""
    wrong = MISSPELLED[column]
    row = {**{k: v for k, v in ROW.items() if k != column}, wrong: before}
    for rows in ([row], [row, {**ROW, "request": "Ho"}]):
        data = two_inputs(rows)
        assert fix_source(open_source(data)).renames == {wrong: column}
        (change,) = changes_of(data)
        assert (change.row, change.column, change.after) == (0, column, after)


ODD = {"url": "a.md", "source": "b.md", "page_content": "text"}
"""A document of which either key may be the uri."""


@pytest.mark.parametrize(
    ("wrong", "right", "good", "bad", "code"),
    [
        ("retrieved_contxt", "retrieved_context", [{"url": "a.md", "page_content": "text"}], [ODD, ODD], "AE403"),
        ("expected_fact", "expected_facts", "16 weeks", "16 weeks; paid", "AE303"),
    ],
)
def test_one_bad_row_does_not_keep_a_column_from_being_renamed_for_the_others(
    wrong: str, right: str, good: Any, bad: Any, code: str, every_input: Callable[[Rows], Any]
) -> None:
    rows = [{**ROW, "request": str(i), wrong: bad if i == 2 else good} for i in range(4)]
    repaired = fix_source(open_source(every_input(rows)))
    report = check_source(repaired.source)
    assert repaired.renames == {wrong: right}
    assert report.valid_mask.tolist() == [True, True, False, True]
    assert {i.code for i in report.iter_issues() if i.row == 2 and i.severity == "error"} == {code}
    assert report.rows[right][[0, 1, 3]].notna().all()


def test_a_column_that_is_wrong_in_half_of_its_rows_is_not_renamed() -> None:
    rows = [{**ROW, "request": str(i), "retrieved_contxt": [ODD] if i < 2 else [DOC]} for i in range(4)]
    repaired = fix_source(open_source(rows))
    why = "2 of 4 cells would be invalid as `retrieved_context`; the first, in row 0: AE403 no key `doc_uri`"
    assert repaired.renames == {}
    assert repaired.unrenamed["retrieved_contxt"].startswith(why)


def test_a_repeated_column_is_not_renamed() -> None:
    frame = pd.DataFrame([["Hi", "Hello", "a", "b"]], columns=["request", "response", "guidlines", "guidlines"])
    assert fix_source(open_source(frame)).renames == {}


@pytest.mark.parametrize(
    ("name", "known", "right"),
    [
        ("Doc-URI", ("doc_uri", "content"), "doc_uri"),
        ("text", ("doc_uri", "content"), "content"),
        ("tool_input2", ("tool_name", "tool_input"), None),
        ("iutput_token_count", COLUMNS, None),
        ("shoe_size", COLUMNS, None),
        ("text", ("query", "content"), None),  # an alias of both
    ],
)
def test_which_name_was_meant(name: str, known: tuple[str, ...], right: str | None) -> None:
    assert meant(name, known) == right


# ---------------------------------------------------------------------------------------------------------------------
# types


def test_a_typed_column_keeps_its_type_if_that_holds_the_repair() -> None:
    table = pa.table({"request": ["a", "b"], "response": ["a", "b"], "expected_facts": [["x"], ["y", " "]]})
    repaired = fix_source(open_source(table))
    (batch,) = (b for b, _ in repaired.batches())
    assert batch.schema.field("expected_facts").type == pa.list_(pa.string())
    assert batch.column(batch.schema.get_field_index("expected_facts")).to_pylist() == [["x"], ["y"]]


@pytest.mark.parametrize("step", [1, 8192])
def test_a_typed_column_becomes_json_in_every_batch_if_it_must(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_, "MAX_BATCH_ROWS", step)
    monkeypatch.setattr(source_, "BATCH_BYTES", 0 if step == 1 else 8 << 20)
    monkeypatch.setattr(source_, "rows_per_batch", lambda _: step)
    documents = [[{"doc_uri": "a.md", "page_content": "x"}], [{"doc_uri": "b.md", "page_content": None}]]
    table = pa.table({"request": ["a", "b"], "response": ["a", "b"], "retrieved_context": documents})
    repaired = fix_source(open_source(table))
    assert repaired.as_json == {"retrieved_context"}
    cells = [
        c for b, _ in repaired.batches() for c in b.column(b.schema.get_field_index("retrieved_context")).to_pylist()
    ]
    assert [json.loads(c) for c in cells] == [
        [{"doc_uri": "a.md", "content": "x"}],
        [{"doc_uri": "b.md", "page_content": None}],
    ]


def test_a_column_of_numbers_becomes_text() -> None:
    frame = pd.DataFrame({"request_id": [1, 2], "request": ["a", "b"], "response": ["a", "b"]})
    rows = normalize_eval_set(frame, fix=True)
    assert rows["request_id"].tolist() == ["1", "2"]
    assert frame["request_id"].tolist() == [1, 2]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.large_string()])
def test_text_in_other_encodings_is_mended(kind: pa.DataType) -> None:
    facts = pa.array(["a", '["b"]', None], pa.string()).cast(kind)
    table = pa.table({"request": ["a", "b", "c"], "response": ["a", "b", "c"], "expected_facts": facts})
    assert repaired_report(table).rows["expected_facts"].tolist() == [["a"], ["b"], None]


# ---------------------------------------------------------------------------------------------------------------------
# normalize_eval_set


def test_nothing_is_repaired_unless_asked() -> None:
    rows = [{**ROW, "expected_facts": "16 weeks"}]
    with pytest.raises(InvalidEvalSetError):
        normalize_eval_set(rows)
    assert normalize_eval_set(rows, fix=True)[0]["expected_facts"] == ["16 weeks"]
    assert rows == [{**ROW, "expected_facts": "16 weeks"}]


def test_normalizing_with_repairs_gives_the_kind_that_came(every_input: Callable[[Rows], Any]) -> None:
    data = every_input([{**ROW, "expected_facts": "16 weeks", "team": "a"}, {**ROW, "team": "b"}])
    got = normalize_eval_set(data, fix=True)
    rows = got.to_pylist() if isinstance(got, pa.Table) else got if isinstance(got, list) else got.to_dict("records")
    assert [r["expected_facts"] for r in rows] == [["16 weeks"], None]
    assert [r["team"] for r in rows] == ["a", "b"]


def test_what_is_left_raises_with_a_report_that_lists_the_repairs() -> None:
    with pytest.raises(InvalidEvalSetError) as caught:
        normalize_eval_set([{**ROW, "expected_facts": "16 weeks"}, {"request": " ", "response": "x"}], fix=True)
    assert caught.value.report.counts == {"AE108": 1, "AE202": 1}
    assert caught.value.report.invalid == [{"request": " ", "response": "x"}]


@pytest.mark.parametrize("name", ["search_traces.jsonl", "traces_mlflow2.jsonl", "good.jsonl", "good.csv"])
def test_good_samples_need_no_repair(name: str, samples: Path) -> None:
    repaired = fix_source(open_source(str(samples / name)))
    assert not repaired.renames
    assert changes_of(str(samples / name)) == []


# ---------------------------------------------------------------------------------------------------------------------
# properties

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "doc_uri", "text", "source", "metadata", "name", "args", "messages", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def cell_of(column: str) -> st.SearchStrategy[Any]:
    known = [cell for c, cell, *_ in [*MENDED, *MENDED_NATIVE, *LEFT_ALONE, *LEFT_ALONE_NATIVE] if c == column]
    return st.sampled_from([*known, None, "text", [HI], [DOC], [CALL]]) | JSON


NAMES = {
    **{c: c for c in ("request", "response", "expected_response", "expected_facts", "guidelines", "retrieved_context")},
    **{c: c for c in ("predicted_trajectory", "request_id", "custom_expected", "tags")},
    "expected_respones": "expected_response",
    "Retrieved_Context": "retrieved_context",
    "team": "team",
}
ROWS = st.lists(
    st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=5, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({n: cell_of(NAMES[n]) for n in names}).map(lambda row: {**ROW, **row})
    ),
    min_size=1,
    max_size=4,
)


def facts(changes: list[CellFix]) -> list[str]:
    return [repr((c.row, c.column, c.what, c.before, c.after)) for c in changes]


def errors_by_row(report: Report) -> Counter[int | None]:
    return Counter(i.row for i in report.iter_issues() if str(i.severity) == "error")


def lines_without_repairs(repaired: FixedSource, lines: list[bytes]) -> list[bytes]:
    touched = {c.row for _, changes in repaired.batches() for c in changes}
    return [line for i, line in enumerate(lines) if i not in touched]


NESTED = JSON | st.lists(JSON, max_size=2) | st.dictionaries(st.sampled_from(["messages", "history", "query"]), JSON)


@settings(max_examples=500)
@given(NESTED | st.lists(st.dictionaries(st.sampled_from(["role", "type", "doc_uri", "metadata", "function"]), JSON)))
def test_a_repair_takes_any_value_and_never_changes_what_it_is_given(value: Any) -> None:
    before = repr(value)
    for entry in FIXES:
        mended = entry.apply(value)
        assert mended is value or repr(mended) != before, f"{entry.effect.what}: nothing was repaired"
        assert repr(value) == before
        again = entry.apply(mended)
        assert again is mended or entry.apply.__name__ == "json_text", f"{entry.effect.what}: does it in two steps"


@settings(max_examples=150)
@given(ROWS)
def test_repairs_only_make_it_better(rows: Rows) -> None:
    before = copy.deepcopy(rows)
    found = validate_eval_set(rows, outputs="provided")
    repaired = fix_source(open_source(rows, outputs="provided"))
    left = check_source(repaired.source)
    assert repr(rows) == repr(before), "the caller's rows were changed"
    assert left.row_count == found.row_count
    before_, after_ = errors_by_row(found), errors_by_row(left)
    worse = {row for row, n in after_.items() if n > before_[row]}
    for wrong, right in repaired.renames.items():  # in most rows the cell is right under the right name
        renamed = {i for i, row in enumerate(rows) if row.get(wrong) is not None}
        assert 2 * len(worse & renamed) < len(renamed) or not worse, (wrong, right)
        worse -= renamed
    assert not worse, "a row has more errors"
    assert left.counts.get("AE108", 0) == sum(len(changes) for _, changes in repaired.batches())


@settings(max_examples=50)
@given(ROWS, st.sampled_from([1, 2]))
def test_a_second_run_finds_nothing_and_what_was_not_repaired_is_byte_for_byte(rows: Rows, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "rows.jsonl")
        given_lines = [json.dumps(row, ensure_ascii=False, indent=None).encode() for row in rows]
        path.write_bytes(b"".join(line + b"\n" for line in given_lines))
        first = fix_source(open_source(str(path), outputs="provided"))
        untouched = lines_without_repairs(first, given_lines)
        changes, renames = facts(changes_of(str(path), outputs="provided")), first.renames
        patch.setattr(source_, "MAX_BATCH_ROWS", step)
        small = fix_source(open_source(str(path), outputs="provided"))
        assert (facts([c for _, cs in small.batches() for c in cs]), small.renames) == (changes, renames)

        first.write(str(path))
        now = path.read_bytes().splitlines()
        assert len(now) == len(rows)
        assert renames or set(untouched) <= set(now)
        again = fix_source(open_source(str(path), outputs="provided"))
        assert facts([c for _, cs in again.batches() for c in cs]) == []
        assert again.renames == {}


# ---------------------------------------------------------------------------------------------------------------------
# on the command line


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_diff_of_the_broken_sample(
    capsys: pytest.CaptureFixture[str], samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(samples.parent)
    code, out, err = run(capsys, "validate", "sample_data/broken.jsonl", "--diff")
    compare(GOLDEN / "broken.diff", out)
    assert (code, err.splitlines()) == (
        1,
        [
            "8 cells in 8 rows and 1 column name can be fixed; no file was written. To write it:",
            "  agent-eval-schema validate sample_data/broken.jsonl --fix fixed.jsonl",
        ],
    )


def test_the_diff_of_good_data_is_empty(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    assert run(capsys, "validate", samples / "good.jsonl", "--diff") == (
        0,
        "",
        "no safe fixes available\n",
    )


def test_the_diff_says_that_rows_of_a_format_are_not_repaired(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    code, out, err = run(capsys, "validate", samples / "deepeval_broken.json", "--diff")
    assert (code, out, err) == (
        0,
        "",
        "rows of the deepeval format cannot be fixed, only those of databricks, vertex, ragas, mlflow\n",
    )


def test_a_parquet_file_of_documents_that_are_not_fixed_is_copied(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    given, made = tmp_path / "given.parquet", tmp_path / "made.parquet"
    pq.write_table(pa.table({"cases": ['[{"input": "q", "expected_trajectory": 7}]'], "other": [1]}), given)
    run(capsys, "validate", given, "--fix", made)
    assert made.read_bytes() == given.read_bytes()


def test_a_trajectory_data_set_that_pandas_wrote_as_csv_is_repaired(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call = {"tool_name": "set", "tool_input": {"device": 9, "on": True, "room": None}}
    path, mended = tmp_path / "vertex.csv", tmp_path / "mended.csv"
    frame = pd.DataFrame({"prompt": ["on", "off"], "predicted_trajectory": [[call], [call, call]]})
    frame.assign(reference_trajectory=frame["predicted_trajectory"]).to_csv(path, index=False)
    code, out, err = run(capsys, "validate", path, "--fix", mended)
    assert (code, err) == (0, f"4 cells in 2 rows fixed, written to {mended}\n")
    assert out.replace("\n", "").startswith(f"{mended}: vertex format")  # a long path is cut into lines
    assert [json.loads(cell) for cell in pd.read_csv(mended)["reference_trajectory"]] == [[call], [call, call]]
    assert list(pd.read_csv(mended)["prompt"]) == ["on", "off"]


@pytest.mark.parametrize("by_number", [False, True])
@pytest.mark.parametrize("request_column", ["prompt", "request"])
def test_a_table_that_is_one_object_by_columns_is_repaired_as_rows(
    tmp_path: Path, by_number: bool, request_column: str
) -> None:
    columns = {request_column: ["on", "off"], "reference_trajectory": [str([CALL]), str([CALL, CALL])]}
    path = tmp_path / "table.json"
    path.write_text(json.dumps({n: dict(enumerate(c)) for n, c in columns.items()} if by_number else columns))
    fix_source(open_source(str(path))).write(str(path))
    assert json.loads(path.read_text()) == [
        {request_column: "on", "reference_trajectory": [CALL]},
        {request_column: "off", "reference_trajectory": [CALL, CALL]},
    ]


@pytest.mark.parametrize("name", ["help_desk_broken.evalset.json", "deepeval_broken.json", "golden_broken.csv"])
def test_a_file_of_a_format_that_is_not_repaired_stays_as_it_is(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    _, _, err = run(capsys, "validate", samples / name, "--fix", out)
    assert out.read_bytes() == (samples / name).read_bytes()
    assert "format cannot be fixed, only those of databricks, vertex, ragas" in err


def test_a_page_without_evaluations_is_written_by_fix(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_text('{"evaluations": []}')
    fix_source(open_source(str(path), format="ces-evaluation")).write(str(tmp_path / "out.json"))
    assert (tmp_path / "out.json").read_text() == path.read_text()


def test_a_file_of_one_object_stays_one_object(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_bytes(b'\xef\xbb\xbf{"request": "Hi",\n "retrieved_context": {"doc_uri": "a"}}\n')
    fix_source(open_source(str(path))).write(str(path))
    assert path.read_bytes() == b'\xef\xbb\xbf{"request": "Hi",\n "retrieved_context": [{"doc_uri": "a"}]}\n'


def test_a_misspelled_column_of_a_trajectory_data_set_is_renamed() -> None:
    rows = [{"prompt": "on", "predicted_trajectry": [{"name": "f", "args": {"x": 1}}], "reference_trajectory": [CALL]}]
    repaired = fix_source(open_source(rows))
    assert (repaired.plan.format, repaired.renames) == ("vertex", {"predicted_trajectry": "predicted_trajectory"})
    assert [c.after for _, changes in repaired.batches() for c in changes] == [[CALL]]
    assert repaired_report(rows).ok


def test_the_diff_of_long_and_hostile_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**ROW, "retrieved_context": [{"doc_uri": "a", "text": "\u202ex" * 9000}]}))
    _, out, _ = run(capsys, "validate", path, "--diff")
    assert "\u202e" not in out
    old, new = out.splitlines()[-2:]
    assert old.startswith('- {"doc_uri":"a","text":"')
    assert new.startswith('+ {"doc_uri":"a","content":"')
    assert max(len(old), len(new)) < 1000


def test_fix_replaces_the_file_and_changes_nothing_else(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    path = tmp_path / "broken.jsonl"
    before = (samples / "broken.jsonl").read_bytes().splitlines()
    path.write_bytes(b"\xef\xbb\xbf\n" + b"\r\n".join(before) + b"\nnot \xff a row")
    code, out, err = run(capsys, "validate", path, "--fix", path)
    assert code == 1  # by what is still wrong
    assert "AE108 repaired-cell  8 ×" in out
    assert "AE109 repaired-column" in out
    assert err == f"8 cells in 8 rows and 1 column name fixed, written to {path}\n"
    assert [p.name for p in tmp_path.iterdir()] == ["broken.jsonl"]
    head, *after = path.read_bytes().split(b"\n")
    assert (head, after.pop()) == (b"\xef\xbb\xbf", b"not \xff a row")
    changed = {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b.rstrip(b"\r")}
    assert changed == {5, 8, 9, 12, 13, 14, 15, 18, 19, 20}
    assert after[5] == before[5].replace(b'"usr"', b'"user"') + b"\r"
    assert run(capsys, "validate", path, "--diff")[0] == 0


def test_fix_that_leaves_nothing_wrong_exits_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = as_jsonl([{**ROW, "expected_facts": "a"}], tmp_path)
    assert run(capsys, "validate", path, "--fix", path)[0] == 0
    assert json.loads(Path(path).read_text()) == {**ROW, "expected_facts": ["a"]}


def test_only_the_selected_codes_are_repaired(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = as_jsonl([{**ROW, "expected_facts": "a", "guidlines": ["b"]}, {**ROW, "retrieved_context": DOC}], tmp_path)
    run(capsys, "validate", path, "--fix", path, "--select", "AE4")
    assert [json.loads(line) for line in Path(path).read_text().splitlines()] == [
        {**ROW, "expected_facts": "a", "guidlines": ["b"]},
        {**ROW, "retrieved_context": [DOC]},
    ]


def test_json_keeps_its_elements(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '[\n {"request": "a", "response":"b", "x": null},\n'
        ' {"request":[{"role":"user","content":"Hi"}],"response":"c"}]'
    )
    run(capsys, "validate", path, "--fix", path)
    assert path.read_text() == (
        '[\n {"request": "a", "response":"b", "x": null},\n'
        ' {"request":{"messages":[{"role":"user","content":"Hi"}]},"response":"c"}]'
    )


FORMS = [  # all but the cell `%s` stays as it is
    pytest.param("a.jsonl", '{"request": "a", "response": "b"}\r\n{"expected_facts":%s,%s}', id="no-line-end"),
    pytest.param("a.jsonl", '\n\n{"expected_facts": %s, %s}\n \n\n', id="blank-lines"),
    pytest.param("a.json", ' [{"request": "a","response":"b"} ,\n\n\t{"expected_facts": %s, %s} ]\r\n', id="array"),
    pytest.param("a.json", '\t{"expected_facts": %s, %s}', id="one-object"),
]
CELLS = [
    pytest.param('"x"', '["x"]', id="plain"),
    pytest.param('"\\u202ex \\ud83d\\ude00"', '["\\u202ex \\ud83d\\ude00"]', id="escapes"),
    pytest.param('"é"', '["é"]', id="letters"),
]


@pytest.mark.parametrize(("name", "text"), FORMS)
@pytest.mark.parametrize(("before", "after"), CELLS)
def test_what_is_not_repaired_stays_as_it_is(tmp_path: Path, name: str, text: str, before: str, after: str) -> None:
    path, rest = tmp_path / name, '"request": "a", "response": null, "x": 1.0e5'
    path.write_bytes((text % (before, rest)).encode())
    tally = fix_source(open_source(str(path), outputs="generated")).write(str(path))
    assert (str(tally), path.read_bytes().decode()) == ("1 cell in 1 row", text % (after, rest))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", "{}"),
        ("a.json", " [ ]"),
        ("a.json", ""),
        ("a.json", "\n{} "),
        ("a.csv", "\r\nrequest\r\n\r\na\n\n"),
    ],
)
def test_a_file_without_repairs_is_copied(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode())
    fix_source(open_source(str(path))).write(str(path))
    assert path.read_bytes().decode() == text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", [1, 4, "\t"])
def test_a_repaired_value_stands_on_lines_as_the_one_before(tmp_path: Path, indent: int | str, end: str) -> None:
    path = tmp_path / "a.json"
    rows = [{"request": {"messages": [{"role": role, "content": "h\u00e9"}]}, "x": [1]} for role in ("human", "user")]
    texts = [json.dumps([row, rows[1]], indent=indent).replace("\n", end) for row in rows]
    path.write_bytes(texts[0].encode())
    fix_source(open_source(str(path))).write(str(path))
    assert path.read_bytes().decode() == texts[1]


def test_fields_of_a_csv_file_keep_their_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'"reqest","response",expected_facts,note\r\n"a","","x","=1+1\r\n"\r\n\r\n"b","c",y,a"b\r\nd,,,')
    with pytest.warns(FormulaWarning, match="a spreadsheet reads 1 cell as a formula"):
        fix_source(open_source(str(path), outputs="generated")).write(str(path))
    assert path.read_bytes() == (
        b'"request","response",expected_facts,note\r\n"a","","[""x""]","=1+1\r\n"\r\n\r\n"b","c","[""y""]",a"b\r\nd,,,'
    )


def test_json_that_is_cut_off_is_not_rewritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"request": "a", "response": "b", "expected_facts": "x"}, {"request": "b"')
    given_text = path.read_text()
    code, _, err = run(capsys, "validate", path, "--fix", path)
    assert (code, path.read_text()) == (2, given_text)
    assert "correct this first" in err


def test_csv_keeps_its_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b"\xef\xbb\xbfrequest,response,expected_respones,expected_facts,expected_response,x,x\r\n"
        b'"a","b ""c""",,,"d",1,2\r\n'
        b"a2,b2,,short facts,,1,2\r\n"
        b"a3,b3,late,,,1,2\r\n"
        b"too,few\r\n"
        b"\xff,b5,,,e,1,2\n"
    )
    run(capsys, "validate", path, "--fix", path)
    assert path.read_bytes() == (
        b"\xef\xbb\xbfrequest,response,expected_facts,expected_response,x,x\r\n"
        b'"a","b ""c""",,"d",1,2\r\n'
        b'a2,b2,"[""short facts""]",,1,2\r\n'
        b"a3,b3,,late,1,2\r\n"
        b"too,few,,,,\r\n"  # with the cells that it lacks, which AE169 reports
        b"\xff,b5,,e,1,2\n"
    )


def test_csv_records_without_a_repair_are_not_quoted_anew(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b'request\tresponse\texpected_facts\n"a"\t"b"\t["x"]\nc\t"d"\ty\n')
    run(capsys, "validate", path, "--fix", path)
    assert path.read_bytes() == b'request\tresponse\texpected_facts\n"a"\t"b"\t["x"]\nc\t"d"\t"[""y""]"\n'


def test_parquet_keeps_its_columns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "request": ["a", "b"],
            "response": ["a", "b"],
            "expected_facts": ["x", None],
            "day": pa.array([1, 2], pa.date32()),
            "retrieved_context": [[DOC], None],
        }
    )
    pq.write_table(table, path)
    run(capsys, "validate", path, "--fix", path)
    assert pq.read_table(path).equals(table.set_column(2, "expected_facts", pa.array(['["x"]', None])))


def test_another_form_keeps_the_lines_that_are_no_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "a.parquet"
    path.write_text(json.dumps({**ROW, "expected_facts": "x"}) + '\n{"request": "cut\n')
    assert run(capsys, "validate", path, "--fix", out)[0] == 1
    assert pq.read_table(out).to_pylist() == [
        {**ROW, "expected_facts": '["x"]', "__line__": None},
        {"request": None, "response": None, "expected_facts": None, "__line__": '{"request": "cut'},
    ]


def test_a_compressed_file_is_written_plain_or_compressed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl"
    path.write_bytes(gzip.compress(json.dumps({**ROW, "expected_facts": "x"}).encode()))
    assert run(capsys, "validate", path, "--fix", out)[0] == 0
    assert json.loads(out.read_text())["expected_facts"] == ["x"]
    assert run(capsys, "validate", path, "--fix", path)[0] == 0
    assert gzip.decompress(path.read_bytes()) == out.read_bytes()


def test_a_repeated_column_is_not_lost(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.jsonl"
    path.write_text("request,response,x,x\na,b,1,2\n")
    code, _, err = run(capsys, "validate", path, "--fix", out)
    assert (code, out.exists()) == (2, False)
    assert "only the first of several columns would be kept: x" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["good.jsonl", "good.csv", "--diff"], "--fix and --diff take one FILE"),
        (["good.jsonl", "--fix", "x.xls"], "unknown file extension"),
        (["good.jsonl", "--fix", "no-folder/x.jsonl"], "no such folder"),
    ],
)
def test_what_cannot_run(
    capsys: pytest.CaptureFixture[str], samples: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(samples)
    code, _, err = run(capsys, "validate", *arguments)
    assert code == 2
    assert words in err


@pytest.mark.parametrize("code", FIXABLE)
def test_explain_names_the_fixes_of_a_rule(code: str) -> None:
    assert f"valid ({'; '.join(FIXABLE[code])})" in " ".join(explain(code).split())


def test_a_parquet_file_of_many_batches_is_mended_throughout(tmp_path: Path) -> None:
    rows = [{**ROW, "expected_facts": "x" if i % 3 == 0 else None} for i in range(9000)]
    source: Source = open_source(as_parquet(rows, tmp_path))
    assert len(list(source.batches())) > 1
    assert [c.row for _, changes in fix_source(source).batches() for c in changes] == list(range(0, 9000, 3))


# ---------------------------------------------------------------------------------------------------------------------
# ground truth beside the inputs of mlflow
BESIDE_INPUTS = [
    {"inputs": {"question": "a"}, "outputs": "x", "expected_response": "12", "team": "hr"},
    {"inputs": {"question": "b"}, "outputs": "y", "guidelines": ["Be brief."], "expectations": {"tone": "kind"}},
    {"inputs": {"question": "c"}, "outputs": "z", "expected_response": "1", "expectations": {"expected_response": "2"}},
    {"inputs": {"question": "d"}, "outputs": "z", "custom_expected": {"tone": "kind"}, "expected_facts": ["e"]},
]
MOVED = [
    {"expected_response": "12"},
    {"tone": "kind", "guidelines": ["Be brief."]},
    {"expected_response": "2"},
    {"tone": "kind", "expected_facts": ["e"]},
]


@pytest.mark.parametrize("kind", KINDS)
def test_ground_truth_beside_inputs_moves_into_expectations(kind: str, tmp_path: Path) -> None:
    data = KINDS[kind](BESIDE_INPUTS, tmp_path)
    repaired = fix_source(open_source(data))
    report = check_source(repaired.source)
    assert (report.ok, report.counts) == (True, {"AE103": 1, "AE108": 3, "AE310": 1})
    rows = list(report.iter_rows())
    assert [row["expectations"] or {} for row in rows][:1] == [{}]  # what other columns say need not be kept
    assert [row["expected_response"] for row in rows] == ["12", None, "2", None]
    assert [row["guidelines"] for row in rows] == [None, {"guidelines": ["Be brief."]}, None, None]
    assert [row["custom_expected"] for row in rows] == [None, {"tone": "kind"}, None, {"tone": "kind"}]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.csv"])
def test_moved_ground_truth_is_in_the_file_where_mlflow_reads_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = KINDS[name.partition(".")[2]](BESIDE_INPUTS, tmp_path)
    out = tmp_path / f"fixed.{name}"
    assert main(["validate", str(path), "--fix", str(out), "--quiet"]) == 0
    capsys.readouterr()
    if name.endswith(".csv"):
        assert [json.loads(cell) for cell in pd.read_csv(out)["expectations"]] == MOVED
        return
    text = out.read_text(encoding="utf-8")
    rows = json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    assert [row["expectations"] for row in rows] == MOVED
    assert [list(row) for row in rows] == [
        ["inputs", "outputs", "expectations", "team"],
        ["inputs", "outputs", "expectations"],
        ["inputs", "outputs", "expected_response", "expectations"],
        ["inputs", "outputs", "expectations"],
    ]
    assert [c.column for c in changes_of(str(out))] == []


# ---------------------------------------------------------------------------------------------------------------------
# why not

UNFIXED = [
    ({"request": " ", "response": "x"}, "request", "AE202", "with it (made blank text null) the row would have AE201"),
    (
        {**ROW, "retrieved_context": [ODD]},
        "retrieved_context[0].url",
        "AE403",
        "no fix has exactly one interpretation (took doc_uri from another key of the document)",
    ),
    (
        {**ROW, "expected_facts": "a; b"},
        "expected_facts",
        "AE303",
        "no fix has exactly one interpretation (made blank text null; put the text into a list;",
    ),
    (
        {**ROW, "retrieved_context": [17], "retrieved_contxt": [DOC]},
        "retrieved_context[0]",
        "AE402",
        "the cell may be in `retrieved_contxt`, which is not renamed",
    ),
]


@pytest.mark.parametrize(("row", "path", "code", "why"), UNFIXED)
def test_the_diff_says_of_a_cell_why_it_was_not_fixed(
    row: dict[str, Any], path: str, code: str, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = {**ROW, "request": {"mesages": [HI]}}
    data = as_jsonl([good, {**row, "request_id": "r1"}], tmp_path)
    out = run(capsys, "validate", data, "--diff", "--outputs", "provided")[1].splitlines()
    at = out.index(f"@@ row 1 (r1)  {path}: not repaired")
    assert out[at + 1].startswith(f"! {code}: {why}")
    assert out.index("@@ row 0  request: renamed a key of the request") < at


def test_a_cell_that_cannot_be_written_again_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"request": "Hi", "response": "x", "guidelines": {"tone": "Be kind", "tone": "Be brief"}}')
    out = run(capsys, "validate", path, "--diff")[1]
    assert "guidelines.tone: not repaired\n! AE304: the cell cannot be written again without loss" in out


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{**ROW, "expected_respones": "x", "expected_response": "y"}], "row 0 has a cell in `expected_response` too"),
        ([{**ROW, "expected_respones": "x", "expected_reponse": "y"}], "several columns may mean `expected_response`"),
        ([{**ROW, "response_2": "x"}], "it may be a different name, not a misspelling of `response`"),
        (
            [{**ROW, "request_ids": "1"}] * 2,
            "1 of 2 cells would be invalid as `request_id`; the first, in row 1: AE901",
        ),
    ],
)
def test_the_diff_says_of_a_column_why_it_was_not_renamed(
    rows: Rows, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, "validate", as_jsonl(rows, tmp_path), "--diff")
    wrong = next(name for name in rows[0] if name not in COLUMNS)
    lines = out.splitlines()
    assert lines[lines.index(f"@@ column {wrong}: not renamed") + 1].startswith(f"! {why}")
    assert (code, "no safe fixes available" in err) == (0, True)


@settings(max_examples=60)
@given(ROWS)
def test_a_cell_with_an_issue_that_has_a_fix_is_fixed_or_says_why(rows: Rows) -> None:
    repaired = fix_source(open_source(rows, outputs="provided"))
    ((batch, _),) = repaired.batches()
    found = {(u.row, u.code) for u in repaired.unfixed(batch, 0)}
    left = check_source(repaired.source).iter_issues()
    expected = {(i.row, i.code) for i in left if i.code in CODES_OF.get(i.column or "", ()) and i.row is not None}
    assert found == expected
    assert all(u.reason for u in repaired.unfixed(batch, 0))


def test_many_columns_of_like_names_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each with each: 4,000 of them took minutes."""
    looked: list[str] = []
    meant, filled = fixing.meant, search.filled_rows
    monkeypatch.setattr(fixing, "meant", lambda name, *rest, **how: looked.append(name) or meant(name, *rest, **how))
    monkeypatch.setattr(search, "filled_rows", lambda batch, name: looked.append(name) or filled(batch, name))
    names = [f"expected_respons{i}" for i in range(200)]
    fixed = fix_source(open_source([{**ROW, **dict.fromkeys(names, "x")}]))
    assert len(looked) <= 2 * len(names)
    assert all(len(reason) < 500 for reason in fixed.unrenamed.values())


def test_only_what_is_fixed_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"request": "Hi", "respones": "Hello"}\n')
    assert main(["validate", str(path), "--fix", str(path)]) == 0
    assert f"\n1 column name fixed, written to {path}\n" in f"\n{capsys.readouterr().err}"
    assert main(["validate", str(path), "--fix", str(path)]) == 0
    assert "column name" not in capsys.readouterr().err


def test_documents_of_two_formats_are_not_written(tmp_path: Path) -> None:
    """The rows of the ones would be read with the lists of the others, as other rows."""
    scenarios = [{"scenario_id": "a", "turns": [{"input": "Hi"}, {"input": "Bye"}]}]
    turns = [{"prompt": {"content": [{"text": "Hi"}]}}]
    path, out = tmp_path / "rows.jsonl", tmp_path / "fixed.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ({"scenarios": scenarios}, {"conversationTurns": turns})))
    why = "the data has documents of two formats"
    with pytest.raises(EvalSetError, match=why):
        write_eval_set(str(path), out)
    with pytest.raises(EvalSetError, match=why):
        profile_eval_set(str(path)).write(out)
    assert main(["validate", str(path), "--fix", str(out)]) == 2
    assert not out.exists()
    for sample in ("help_desk.test.json", "agentcore.json"):
        assert write_eval_set(str(SAMPLES / sample), tmp_path / f"{sample}.jsonl") > 0
