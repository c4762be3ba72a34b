"""Golden CSV: each action of the vendor's table, each decision where its page is silent, each with its line."""

import base64
import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agent_eval_schema import EvalSetError, Issue, ces, json_schema, validate_eval_set
from agent_eval_schema.cli import main
from agent_eval_schema.formats.ces.golden import ACTIONS, GOLDEN_COLUMNS, REQUIRED
from agent_eval_schema.rules.golden import HEADER
from tests.conftest import DATA as TEST_DATA

DATA = TEST_DATA / "ces"
APP = "projects/p1/locations/us/apps/a1"
NAMES = {
    "get_order": f"{APP}/tools/get_order",
    "scan_receipt": f"{APP}/tools/scan_receipt",
    "refunds_agent": f"{APP}/agents/refunds_agent",
}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


def golden(*rows: dict[str, str], columns: tuple[str, ...] = GOLDEN_COLUMNS, **options: Any) -> ces.GoldenFile:
    """The file of these rows, read."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return ces.read_golden_csv(buffer.getvalue(), **options)


def named(name: str = "Refund", **cells: str) -> dict[str, str]:
    return {"display_name": name, **cells}


def step(action: str, turn: str = "1", **cells: str) -> dict[str, str]:
    return {"turn_index": turn, "action_type": action, **cells}


HI = step("INPUT_TEXT", text_content="Hi")


def said(file: ces.GoldenFile) -> list[tuple[str, int | None, str | None]]:
    """What is wrong: the code, the row, the column."""
    return [(issue.code, issue.row, issue.column) for issue in file.issues]


def only(file: ces.GoldenFile) -> Issue:
    assert len(file.issues) == 1, file.issues
    return file.issues[0]


def steps(file: ces.GoldenFile) -> list[Any]:
    return [s for turn in file.evaluations[0]["golden"]["turns"] for s in turn["steps"]]


# ---------------------------------------------------------------------------------------------------------------------
# the shared example


def test_the_shared_example_is_read_as_the_api_says_it() -> None:
    file = ces.read_golden_csv(DATA / "golden_example.csv", parent=APP, names=NAMES)
    expected = [json.loads((DATA / f"golden_example_expected_{n}.json").read_text()) for n in (1, 2)]
    assert file.evaluations == expected
    assert file.groups == {"Refund happy path": ["Regression", "Billing"]}
    assert file.issues == []


def test_the_shared_example_comes_back_as_the_rows_that_it_was() -> None:
    file = ces.read_golden_csv(DATA / "golden_example.csv", parent=APP, names=NAMES)
    text, losses = ces.golden_csv_text(file.evaluations, groups=file.groups, names=NAMES)
    assert [(i.code, i.path) for i in losses] == [("AE805", "name")]  # the app, which a CSV does not say
    ours, theirs = (list(csv.DictReader(io.StringIO(t))) for t in (text, (DATA / "golden_example.csv").read_text()))
    for row in (*ours, *theirs):
        row.update({c: json.loads(row[c]) for c in row if c.endswith("_json") and row[c]})
    assert ours == theirs


# ---------------------------------------------------------------------------------------------------------------------
# the table of actions

MADE: dict[str, tuple[dict[str, str], Any]] = {
    "INPUT_TEXT": ({"text_content": "Hi"}, {"userInput": {"text": "Hi"}}),
    "INPUT_IMAGE": (
        {"image_mime_type": "image/png", "image_content": PNG},
        {"userInput": {"image": {"mimeType": "image/png", "data": PNG}}},
    ),
    "INPUT_TOOL_RESPONSE": (
        {"tool_name": "f", "tool_response_json": '{"output": 1.5}'},
        {"userInput": {"toolResponses": {"toolResponses": [{"tool": "f", "response": {"output": 1.5}}]}}},
    ),
    "INPUT_UPDATED_VARIABLES": (
        {"updated_variables_json": '{"id": "C-1"}'},
        {"userInput": {"variables": {"id": "C-1"}}},
    ),
    "EXPECTATION_TEXT": (
        {"response_agent": "root", "text_content": "Hello", "expectation_note": "polite"},
        {"expectation": {"note": "polite", "agentResponse": {"role": "root", "chunks": [{"text": "Hello"}]}}},
    ),
    "EXPECTATION_TOOL_CALL": (
        {"tool_name": "f", "tool_call_args_json": '{"a": [1, null]}', "expectation_note": "calls"},
        {"expectation": {"note": "calls", "toolCall": {"tool": "f", "args": {"a": [1, None]}}}},
    ),
    "EXPECTATION_TOOL_RESPONSE": (
        {"tool_name": "f", "expectation_note": "answers"},
        {"expectation": {"note": "answers", "toolResponse": {"tool": "f", "response": {}}}},
    ),
    "EXPECTATION_AGENT_TRANSFER": (
        {"agent_transfer_target": "other", "expectation_note": "hands over"},
        {"expectation": {"note": "hands over", "agentTransfer": {"targetAgent": "other"}}},
    ),
}


def test_every_action_has_its_example() -> None:
    assert list(MADE) == list(ACTIONS)
    for name, (cells, _) in MADE.items():
        assert set(cells) == set(ACTIONS[name].columns), name


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_makes_the_step_of_the_table(action: str) -> None:
    cells, expected = MADE[action]
    file = golden(named(), HI, step(action, **cells))
    assert file.issues == []
    assert steps(file) == [{"userInput": {"text": "Hi"}}, expected]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_does_without_what_is_optional(action: str) -> None:
    cells = {c: MADE[action][0][c] for c in ACTIONS[action].required}
    file = golden(named(), HI, step(action, **cells))
    assert file.issues == []
    assert len(steps(file)) == 2


@pytest.mark.parametrize(("action", "column"), [(a, c) for a, action in ACTIONS.items() for c in action.required])
def test_a_required_column_of_an_action_must_be_filled(action: str, column: str) -> None:
    cells = {**MADE[action][0], column: "  "}
    file = golden(named(), HI, step(action, **cells))
    assert said(file) == [("AE129", 2, column)]
    assert only(file).message == f"line 4: {action} needs `{column}`, it is blank"
    assert len(steps(file)) == 1


@pytest.mark.parametrize("action", ACTIONS)
def test_a_column_that_an_action_does_not_use_is_told_and_ignored(action: str) -> None:
    cells, expected = MADE[action]
    unused = next(c for c in ("agent_transfer_target", "tool_name") if c not in ACTIONS[action].columns)
    file = golden(named(), HI, step(action, **cells, **{unused: "x"}))
    assert said(file) == [("AE130", 2, unused)]
    assert steps(file)[1] == expected


def test_rows_of_one_turn_index_make_one_turn_in_row_order() -> None:
    file = golden(named(), HI, step("INPUT_TEXT", text_content="there"), step("INPUT_TEXT", "2", text_content="Bye"))
    turns = file.evaluations[0]["golden"]["turns"]
    assert [[s["userInput"]["text"] for s in turn["steps"]] for turn in turns] == [["Hi", "there"], ["Bye"]]


def test_metadata_stands_on_the_evaluation_row() -> None:
    row = named(evaluation_id="r-1", description="Why", tags=" b ;; a ", evaluation_groups="G 1; G 2")
    file = golden(row, HI)
    made = file.evaluations[0]
    assert (made["displayName"], made["name"], made["description"]) == ("Refund", "r-1", "Why")
    assert made["tags"] == ["b", "a"]  # split, stripped, without empty ones, in their order
    assert file.groups == {"Refund": ["G 1", "G 2"]}
    assert golden(row, HI, parent=APP).evaluations[0]["name"] == f"{APP}/evaluations/r-1"


def test_blanks_in_names_are_a_note() -> None:
    file = golden(
        named("Refund ", evaluation_id=" refund ", tags=" p0 ; p0  smoke", evaluation_groups="a; b"),
        step("INPUT_TEXT", text_content=" Hi  there "),
        step("EXPECTATION_TOOL_CALL", tool_name="get_order ", tool_call_args_json='{"id":  1}'),
        step("EXPECTATION_TEXT", response_agent="billing  desk", text_content="Sure. "),
        step("EXPECTATION_AGENT_TRANSFER", agent_transfer_target="\tbilling"),
    )
    columns = ((0, "display_name"), (0, "tags"), (2, "tool_name"), (3, "response_agent"), (4, "agent_transfer_target"))
    assert sorted(said(file), key=str) == sorted((("AE156", row, column) for row, column in columns), key=str)


def test_a_blank_id_stays_blank() -> None:
    assert "name" not in golden(named(evaluation_id=" "), HI).evaluations[0]


# ---------------------------------------------------------------------------------------------------------------------
# the header


@pytest.mark.parametrize("column", REQUIRED)
def test_a_required_column_must_be_in_the_header(column: str) -> None:
    columns = tuple(c for c in GOLDEN_COLUMNS if c != column)
    file = golden({"text_content": "Hi"}, columns=columns)
    assert said(file)[0] == ("AE120", None, column)
    assert file.issues[0].hint == HEADER.hint
    assert not file.ok


def test_a_misspelled_required_column_is_recognized() -> None:
    file = ces.read_golden_csv("display_name,turn_idx,action_type\nRefund,,\n")
    assert said(file) == [("AE120", None, "turn_index")]
    assert file.issues[0].hint == "Rename the column `turn_idx`."


def test_the_optional_columns_may_be_in_any_order_or_absent() -> None:
    file = golden(named(), HI, columns=("turn_index", "display_name", "action_type", "text_content", "description"))
    assert file.issues == []


def test_the_required_columns_come_first() -> None:
    columns = ("text_content", *REQUIRED)
    assert said(golden(named(), HI, columns=columns)) == [("AE121", None, "display_name")]


def test_an_unknown_column_is_a_warning() -> None:
    file = golden(named(), HI, columns=(*REQUIRED, "text_content", "text_contents"))
    assert said(file) == [("AE121", None, "text_contents")]
    file = golden(named(), columns=(*REQUIRED, "text_contnt"))
    assert "Did you mean `text_content`?" in [i.hint for i in file.issues]


def test_a_repeated_header_is_an_error() -> None:
    file = ces.read_golden_csv("display_name,turn_index,action_type,tags,tags\nRefund,,,a,b\n")
    assert ("AE104", None, "tags") in said(file)


# ---------------------------------------------------------------------------------------------------------------------
# evaluation rows


def test_a_name_that_repeats_an_earlier_one_is_an_error() -> None:
    file = golden(named(), HI, named("Other"), HI, named(), HI)
    assert said(file) == [("AE123", 4, "display_name")]
    assert "'Refund' is the name of row 0 already" in only(file).message


def test_a_name_that_repeats_the_current_one_is_read_as_blank() -> None:
    file = golden(named(), {**HI, "display_name": "Refund"})
    assert said(file) == [("AE124", 1, "display_name")]
    assert file.ok
    assert len(file.evaluations) == 1
    assert len(steps(file)) == 1


def test_an_evaluation_row_that_acts_is_an_error() -> None:
    assert said(golden({**HI, "display_name": "Refund"})) == [("AE122", 0, "display_name")]
    found = said(golden({"display_name": "Refund", "turn_index": "1"}, HI))
    assert found == [("AE122", 0, "display_name"), ("AE128", 0, "action_type")]


def test_the_first_row_must_be_an_evaluation_row() -> None:
    file = golden(HI, HI)
    assert said(file) == [("AE122", 0, "display_name")]
    assert file.evaluations == []


def test_metadata_on_a_conversation_row_is_ignored() -> None:
    file = golden(named(), {**HI, "tags": "p0", "description": "x"})
    assert sorted(said(file), key=str) == [("AE125", 1, "description"), ("AE125", 1, "tags")]
    assert file.ok
    assert "tags" not in file.evaluations[0]


def test_an_id_is_unique_in_the_file() -> None:
    file = golden(named(evaluation_id="a"), HI, named("Other", evaluation_id="a"), HI)
    assert said(file) == [("AE134", 2, "evaluation_id")]


def test_an_evaluation_without_conversation_is_an_error() -> None:
    assert said(golden(named(), named("Other"), HI)) == [("AE135", 0, "display_name")]
    assert said(golden(named(), HI, named("Last"))) == [("AE135", 2, "display_name")]


# ---------------------------------------------------------------------------------------------------------------------
# turns


@pytest.mark.parametrize("index", ["2", "0", "-1", "one", "", "1.5", "1e0", "٣"])
def test_the_first_turn_is_1(index: str) -> None:
    file = golden(named(), {**HI, "turn_index": index})
    assert said(file) == [("AE126", 1, "turn_index")]


def test_a_turn_index_never_goes_down() -> None:
    file = golden(named(), HI, {**HI, "turn_index": "2"}, HI)
    assert said(file) == [("AE126", 3, "turn_index")]
    assert "expected a whole number from 2 on, got the text '1'" in only(file).message


def test_a_gap_is_a_warning() -> None:
    file = golden(named(), HI, {**HI, "turn_index": "3"}, {**HI, "turn_index": "4"})
    assert said(file) == [("AE127", 2, "turn_index")]
    assert file.ok
    assert len(file.evaluations[0]["golden"]["turns"]) == 3


def test_a_whole_number_with_decimals_is_a_warning() -> None:
    file = golden(named(), {**HI, "turn_index": "1.0"}, HI)
    assert said(file) == [("AE127", 1, "turn_index")]
    assert len(file.evaluations[0]["golden"]["turns"]) == 1


def test_turns_start_anew_with_each_evaluation() -> None:
    assert golden(named(), HI, {**HI, "turn_index": "2"}, named("Other"), HI).issues == []


def test_a_turn_without_input_is_a_warning() -> None:
    expectation = step("EXPECTATION_TEXT", response_agent="a", text_content="b")
    assert said(golden(named(), expectation)) == [("AE136", 1, "action_type")]
    assert said(golden(named(), HI, {**expectation, "turn_index": "2"}, {**HI, "turn_index": "3"})) == [
        ("AE136", 2, "action_type")
    ]
    assert golden(named(), expectation, HI).issues == []  # the input of a turn may come later in it


def test_a_row_that_may_be_the_input_of_a_turn_is_not_missed() -> None:
    turn = {**step("EXPECTATION_TEXT", response_agent="a", text_content="b"), "turn_index": "2"}
    assert said(golden(named(), HI, {**HI, "turn_index": "two"}, turn)) == [("AE126", 2, "turn_index")]
    text = HEAD + "Refund,,,\n,1,INPUT_TEXT,Z\xfcrich\n,1,EXPECTATION_AGENT_TRANSFER,\n"
    found = said(ces.read_golden_csv(text.encode("latin-1")))
    assert ("AE005", 1, None) in found
    assert not [code for code, *_ in found if code == "AE136"]


def test_at_most_100_turns() -> None:
    turns = [{**HI, "turn_index": str(n)} for n in range(1, 103)]
    assert golden(named(), *turns[:100]).issues == []
    assert said(golden(named(), *turns)) == [("AE149", 101, "turn_index")]


# ---------------------------------------------------------------------------------------------------------------------
# cells


def test_an_unknown_action_is_an_error_with_a_guess() -> None:
    file = golden(named(), HI, step("INPUT_TXT", text_content="x"))
    assert said(file) == [("AE128", 2, "action_type")]
    assert only(file).hint == "Did you mean INPUT_TEXT?"
    assert said(golden(named(), HI, {"turn_index": "1", "text_content": "x"})) == [("AE128", 2, "action_type")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[1]", "AE131"),
        ('"a"', "AE131"),
        ("1", "AE131"),
        ("null", "AE131"),
        ('{"a": 1, "a": 2}', "AE131"),
        ('{"b": {"a": 1, "a": 2}}', "AE131"),
        ('{"a": NaN}', "AE003"),
        ('{"a": 1', "AE002"),
        ("{'a': 1}", "AE002"),
        ('{"a": ' * 60 + "1" + "}" * 60, "AE004"),
    ],
)
@pytest.mark.parametrize("column", ["tool_call_args_json", "tool_response_json", "updated_variables_json"])
def test_a_json_cell_holds_an_object(column: str, text: str, code: str) -> None:
    action = next(a for a, known in ACTIONS.items() if column in known.columns)
    file = golden(named(), HI, step(action, **{**MADE[action][0], column: text}))
    assert said(file) == [(code, 2, column)]
    assert len(steps(file)) == 1


def test_a_number_that_a_double_cannot_hold_is_a_warning() -> None:
    file = golden(
        named(), HI, step("EXPECTATION_TOOL_CALL", tool_name="f", tool_call_args_json='{"id": 9007199254740993}')
    )
    assert said(file) == [("AE146", 2, "tool_call_args_json")]
    assert only(file).path == "tool_call_args_json.id"
    assert steps(file)[1]["expectation"]["toolCall"]["args"] == {"id": 9007199254740993}


def test_no_arguments_are_not_the_same_as_any() -> None:
    file = golden(
        named(),
        HI,
        step("EXPECTATION_TOOL_CALL", tool_name="f"),
        step("EXPECTATION_TOOL_CALL", tool_name="f", tool_call_args_json="{}"),
    )
    assert [s["expectation"]["toolCall"] for s in steps(file)[1:]] == [{"tool": "f"}, {"tool": "f", "args": {}}]


def image(content: str, kind: str = "image/png") -> ces.GoldenFile:
    return golden(named(), step("INPUT_IMAGE", image_mime_type=kind, image_content=content))


BYTES = b"\x89PNG\r\n\x1a\n\xfb\xff\xfe?"


UNUSUAL = "the URL-safe alphabet, line breaks or no padding"


@pytest.mark.parametrize(
    ("content", "spelling"),
    [
        ("data:image/png;base64," + base64.b64encode(BYTES).decode(), "a data: URI"),
        (base64.urlsafe_b64encode(BYTES + b"??>").decode(), UNUSUAL),
        (base64.b64encode(BYTES + b"1").decode().rstrip("="), UNUSUAL),
        (base64.encodebytes(BYTES * 12).decode(), UNUSUAL),
    ],
    ids=["data-uri", "url-safe", "unpadded", "line-breaks"],
)
def test_base64_in_another_spelling_is_read_with_a_warning(content: str, spelling: str) -> None:
    file = image(content)
    assert said(file) == [("AE133", 1, "image_content")]
    assert only(file).message.endswith(f"expected plain base64, got {spelling}: it is accepted")
    data = steps(file)[0]["userInput"]["image"]["data"]
    assert base64.b64decode(data, validate=True).startswith(BYTES)


@pytest.mark.parametrize("content", ["b'\\x89PNG'", 'b"\\x89PNG"', "/9j/ not base64", "A", "https://example.org/a.png"])
def test_what_is_no_base64_is_an_error(content: str) -> None:
    assert said(image(content)) == [("AE132", 1, "image_content")]


BEGINNINGS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/webp": b"RIFF\x10\x00\x00\x00WEBP",
    "image/heic": b"\x00\x00\x00\x18ftypheic",
    "image/heif": b"\x00\x00\x00\x18ftypmif1",
}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_the_bytes_of_an_image_are_of_its_type(kind: str) -> None:
    assert image(base64.b64encode(BEGINNINGS[kind]).decode(), kind).issues == []
    other = "image/png" if kind != "image/png" else "image/jpeg"
    file = image(base64.b64encode(BEGINNINGS[kind]).decode(), other)
    assert (said(file), steps(file)) == ([("AE132", 1, "image_content")], [])


@pytest.mark.parametrize("kind", ["image/gif", "image/jpg", "png"])
def test_other_types_of_images_are_errors(kind: str) -> None:
    file = image(PNG, kind)
    assert said(file) == [("AE132", 1, "image_mime_type")]
    assert steps(file) == []


@pytest.mark.parametrize("text", ["=1+1", "+49 30 1234", "-5", "@root"])
def test_a_cell_like_a_formula_is_pointed_out_and_not_altered(text: str) -> None:
    file = golden(named(), step("INPUT_TEXT", text_content=text))
    assert said(file) == [("AE137", 1, "text_content")]
    assert file.ok
    assert steps(file) == [{"userInput": {"text": text}}]


def test_blanks_around_an_action_change_nothing() -> None:
    assert said(golden(named(), {**HI, "action_type": " INPUT_TEXT "})) == []


def test_groups_are_those_of_the_first_evaluation_of_a_name() -> None:
    file = golden(named(evaluation_groups="G1"), HI, named("B"), HI, named(evaluation_groups="G2"), HI)
    assert said(file) == [("AE123", 4, "display_name")]
    assert file.groups == {"Refund": ["G1"]}


def test_blank_rows_are_skipped() -> None:
    file = golden(named(), HI, {}, {"text_content": " "})
    assert said(file) == [("AE138", 2, None), ("AE138", 3, None)]
    assert file.ok


def test_a_nul_character_is_told() -> None:
    text = HEAD + "Refund,,,\n,1,INPUT_TEXT,a\0b\n"  # the csv module of Python 3.10 cannot write a NUL
    assert said(ces.read_golden_csv(text)) == [("AE010", 1, "text_content")]


# ---------------------------------------------------------------------------------------------------------------------
# the file

HEAD = "display_name,turn_index,action_type,text_content\n"


def test_a_mark_crlf_and_newlines_in_cells(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    text = HEAD + 'Refund,,,\n,1,INPUT_TEXT,"Hi\nthere, ""you"""\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    file = ces.read_golden_csv(path)
    assert file.issues == []
    assert steps(file) == [{"userInput": {"text": 'Hi\r\nthere, "you"'}}]


def test_a_ragged_row_is_an_error_with_the_line_of_the_file() -> None:
    file = ces.read_golden_csv(HEAD + 'Refund,,,\n,1,INPUT_TEXT,"two\nlines"\n,1,INPUT_TEXT\n,1,INPUT_TEXT,Bye\n')
    assert said(file) == [("AE007", 2, None)]
    assert only(file).message == "line 5 has 3 fields, the header has 4"
    assert len(steps(file)) == 2


def test_a_ragged_row_before_the_first_evaluation_may_be_its_row() -> None:
    file = ces.read_golden_csv(HEAD + "Refund\n,1,INPUT_TEXT,Bye\nOther,,,\n,1,INPUT_TEXT,Hi\n")
    assert said(file) == [("AE007", 0, None)]
    assert [evaluation["displayName"] for evaluation in file.evaluations] == ["Other"]


def test_a_broken_quote_is_an_error_and_a_broken_row_is_the_only_cause() -> None:
    file = ces.read_golden_csv(HEAD + 'Refund,,,\n,1,INPUT_TEXT,"a"b\n')
    assert said(file) == [("AE007", 1, None)]


def test_bytes_that_are_not_utf8_are_an_error() -> None:
    file = ces.read_golden_csv((HEAD + "Refund,,,\n,1,INPUT_TEXT,gr\xfcn\n").encode("latin-1"))
    assert said(file) == [("AE005", 1, None)]


def test_an_empty_file_says_so() -> None:
    assert ("AE101", None, None) in said(ces.read_golden_csv(HEAD))


@pytest.mark.parametrize("text", [b"", "\n\n", (HEAD + "A,,,\n").encode("utf-16")])
def test_a_text_without_a_header_in_utf8_is_no_golden_csv(text: str | bytes) -> None:
    with pytest.raises(EvalSetError, match="the text: line 1: expected a header row in UTF-8"):
        ces.read_golden_csv(text)


def test_columns_separated_by_semicolons_are_told_in_one_line() -> None:
    with pytest.raises(EvalSetError, match="the text: line 1: expected commas between the columns, got semicolons"):
        ces.read_golden_csv((HEAD + "A,,,\n").replace(",", ";"))


def test_a_header_without_rows_is_still_a_header(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text(HEAD)
    assert list(validate_eval_set(path, format="ces-csv").counts) == ["AE101"]


def test_lines_may_end_in_cr() -> None:
    file = ces.read_golden_csv(f"{HEAD}Refund,,,\n,1,INPUT_TEXT,Hi\n".replace("\n", "\r"))
    assert file.ok
    assert steps(file) == [{"userInput": {"text": "Hi"}}]


def test_no_such_file() -> None:
    with pytest.raises(EvalSetError, match="no such file"):
        ces.read_golden_csv("nowhere.csv")


def test_strict_reading_raises_for_errors_only() -> None:
    assert golden(named(), HI, {**HI, "turn_index": "3"}, strict=True).ok
    with pytest.raises(EvalSetError, match="AE128 line 3"):
        golden(named(), step("INPUT"), strict=True)


def test_every_problem_of_a_file_is_told(samples: Path) -> None:
    file = ces.read_golden_csv(samples / "golden_broken.csv")
    assert {code for code, _, _ in said(file)} >= {"AE002", "AE123", "AE126", "AE128", "AE129", "AE131", "AE132"}


# ---------------------------------------------------------------------------------------------------------------------
# as a report


@pytest.mark.parametrize("name", ["golden.csv", "golden_broken.csv"])
def test_the_report_says_what_the_reader_says(name: str, samples: Path) -> None:
    report, file = validate_eval_set(samples / name), ces.read_golden_csv(samples / name)
    assert report.format == "ces-csv"
    found = [(i.code, i.row, i.column, i.path, i.message, i.hint) for i in report.iter_issues()]
    assert sorted(found, key=str) == sorted(
        [(i.code, i.row, i.column, i.path, i.message, i.hint) for i in file.issues], key=str
    )
    assert report.ok == file.ok


def test_a_frame_and_a_list_of_rows_are_read_like_a_file(samples: Path) -> None:
    frame = pd.read_csv(samples / "golden_broken.csv", dtype=str)
    by_file = validate_eval_set(samples / "golden_broken.csv").counts
    rows = [{k: v for k, v in row.items() if isinstance(v, str)} for row in frame.to_dict("records")]
    assert validate_eval_set(frame).counts == by_file
    assert validate_eval_set([{c: row.get(c) for c in frame.columns} for row in rows]).counts == by_file


def test_an_object_in_a_cell_is_read_alike_however_its_file_is_laid_out(tmp_path: Path) -> None:
    rows = [{**dict.fromkeys(REQUIRED), **named("A"), "tags": {"team": ["a", "b"]}}, HI]
    path = tmp_path / "golden.json"
    path.write_text(json.dumps(rows, indent=4), encoding="utf-8")
    report = validate_eval_set(path)
    assert (report.format, report.counts) == ("ces-csv", validate_eval_set(rows).counts)


def test_findings_across_batches_stand_at_their_row(tmp_path: Path) -> None:
    """An evaluation row that ends a batch is only judged with the first row of the next one."""
    rows = [row for n in range(4096) for row in (f"E{n},,,", ",1,INPUT_TEXT,Hi")]
    del rows[8192 - 1]  # the conversation of the last one of the first batch: its row is row 8190
    path = tmp_path / "golden.csv"
    path.write_text(HEAD + "\n".join(rows[:8191]) + "\nBare,,,\nLast,,,\n,1,INPUT_TEXT,Hi\n")
    report = validate_eval_set(path)
    assert [(i.code, i.row) for i in report.iter_issues()] == [("AE135", 8190), ("AE135", 8191)]
    assert report.invalid_count == 2


def test_batches_may_bring_columns_of_their_own(tmp_path: Path) -> None:
    first = [row for n in range(5000) for row in (named(f"E{n}"), HI)]
    last = [named("Last", description="new"), {**HI, "expectation_note": "not here"}]
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps({**dict.fromkeys(REQUIRED), **row}) + "\n" for row in (*first, *last)))
    report = validate_eval_set(path)
    assert (report.format, report.row_count, report.counts) == ("ces-csv", 10_002, {"AE130": 1})


def test_the_command_line_tells_clean_from_findings(samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(samples / "golden.csv")]) == 0
    assert "✓ All 19 rows are valid." in capsys.readouterr().out
    assert main(["validate", str(samples / "golden_broken.csv")]) == 1
    out = capsys.readouterr().out
    assert "line 8: expected an action, got the text 'INPUT_TXT'" in out
    assert "Metric coverage" not in out


def test_the_form_can_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("display_name,turn_idx,action_type\nRefund,,\n")
    assert validate_eval_set(path, format="ces-csv").counts["AE120"] == 1


def test_reports_in_other_forms(samples: Path) -> None:
    report = validate_eval_set(samples / "golden_broken.csv")
    assert "Metric coverage" not in report.to_html()
    assert json.loads(report.to_json())["format"] == "ces-csv"
    assert len(report.invalid) == report.invalid_count


def test_nothing_of_a_header_is_said_where_nothing_may_be_said(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text(HEAD + "Secret name,,,\nSecret name,,,\n,7,SECRET,secret text\n")
    text = validate_eval_set(path, show_values=False).to_text()
    assert "ecret" not in text
    path.write_text(HEAD + "A,,,\n,1,INPUT_TEXT,a\n,943,INPUT_TXT,b\n,12,INPUT_TEXT,c\n")
    text = validate_eval_set(path, show_values=False).to_text()
    assert [code for code in ("AE126", "AE127", "AE128") if code in text] == ["AE126", "AE127", "AE128"]
    assert "943" not in text, "the number of a turn"
    assert "Did you mean" not in text, "an action of a like name"


# ---------------------------------------------------------------------------------------------------------------------
# the template


def test_the_template_shows_every_action_and_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ces", "template", str(tmp_path / "golden.csv")]) == 0
    file = ces.read_golden_csv(tmp_path / "golden.csv")
    assert file.issues == []
    with (tmp_path / "golden.csv").open(newline="") as stream:
        assert {row["action_type"] for row in csv.DictReader(stream)} == {*ACTIONS, ""}
    capsys.readouterr()
    assert main(["ces", "template"]) == 0
    assert capsys.readouterr().out == ces.golden_template()


def test_the_json_schema_is_that_of_an_evaluation() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema("ces-evaluation"))
    file = ces.read_golden_csv(ces.golden_template())
    assert validator.is_valid(dict(file.evaluations[0]))


def test_a_folder_of_golden_csv_files_is_read(tmp_path: Path, samples: Path) -> None:
    for name in ("a.csv", "b.csv"):
        shutil.copy(samples / "golden.csv", tmp_path / name)
    report = validate_eval_set(tmp_path)
    assert report.format == "ces-csv"
    assert report.row_count == 2 * validate_eval_set(samples / "golden.csv").row_count
