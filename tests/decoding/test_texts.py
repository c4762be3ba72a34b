"""The columns of plain text: which cells are taken, what is logged of the others, and the answer in an object."""

import json
from typing import Any

import pyarrow as pa
import pytest

from agent_eval_schema.cells.batch import make_batch
from agent_eval_schema.cells.cells import Cells, read_cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.texts import decode_response, decode_text
from agent_eval_schema.decoding.values import FAILED, TextColumn

BOTH = pytest.mark.parametrize("is_json", [False, True], ids=["text", "json"])
AT_8 = "expected text without NUL, got one at character 8"


def decoded(name: str, *values: Any, is_json: bool = True) -> tuple[list[Any], list[tuple[int, str, str]]]:
    """The values of a column, of text or of JSON, and of each issue its row, code and message."""
    texts = [json.dumps(v) if is_json and v is not None else v for v in values]
    return decoded_texts(name, *texts, is_json=is_json)


def decoded_texts(name: str, *texts: str | None, is_json: bool) -> tuple[list[Any], list[tuple[int, str, str]]]:
    batch = make_batch({name: (pa.array(texts, pa.string()), is_json)}, {}, len(texts))
    cells, log = read_cells(batch, name), IssueLog(len(texts))
    assert cells is not None
    found = decode_response(cells, log) if name == "response" else decode_text(name, cells, log)
    assert {note[1] for note in log.notes} <= {name}
    return list(found), [(row, note[0], note[3]) for row, note in zip(log.rows, log.notes, strict=True)]


@BOTH
@pytest.mark.parametrize("name", ["request_id", "response", "expected_response", "error", "session_id"])
def test_text_is_taken_as_it_is(name: str, is_json: bool) -> None:
    assert decoded(name, "a", None, " b ", is_json=is_json) == (["a", None, " b "], [])


@pytest.mark.parametrize("name", ["response", "expected_response", "error"])
def test_a_column_of_plain_texts_stays_in_arrow(name: str) -> None:
    texts = pa.array(["a", None, "b "])
    cells, log = Cells(False, texts.to_pylist(), texts), IssueLog(3)
    found = decode_response(cells, log) if name == "response" else decode_text(name, cells, log)
    assert (type(found), found.array is texts, log.notes) == (TextColumn, True, [])


@BOTH
def test_blank_ground_truth_counts_as_none(is_json: bool) -> None:
    values, issues = decoded("expected_response", "a", " \n", "", None, is_json=is_json)
    assert values == ["a", None, None, None]
    assert [(row, code) for row, code, _ in issues] == [(1, "AE305"), (2, "AE305")]


@BOTH
def test_all_that_python_calls_blank_is_blank(is_json: bool) -> None:
    blank = [c for c in map(chr, range(0x3001)) if c.isspace()]
    values, issues = decoded("expected_response", *blank, "\u200b", is_json=is_json)
    assert (values, len(issues)) == ([*[None] * len(blank), "\u200b"], len(blank))


def test_the_cells_to_look_at_are_those_that_are_blank_or_open_json() -> None:
    texts = [*map(chr, range(1, 0x3001)), "", None, " a", "a ", "{}", "a{}"]
    array = pa.array(texts, pa.string())
    wanted = [i for i, t in enumerate(texts) if t is not None and (not t.strip() or t.lstrip()[0] in "{[" or t == " a")]
    assert Cells(False, texts).suspects() == wanted, "where a cell is not UTF-8"
    assert Cells(False, texts, array).suspects() == wanted


@BOTH
def test_blank_text_elsewhere_is_kept(is_json: bool) -> None:
    assert decoded("error", " ", is_json=is_json) == ([" "], [])
    values, issues = decoded("response", "a", " ", "", is_json=is_json)
    assert values == ["a", " ", ""]
    assert [(row, code) for row, code, _ in issues] == [(1, "AE221"), (2, "AE221")]


@BOTH
@pytest.mark.parametrize("name", ["response", "expected_response", "error"])
def test_a_nul_character_is_found_where_it_is(name: str, is_json: bool) -> None:
    assert decoded(name, "a", "it is\t 8\0", None, is_json=is_json) == (
        ["a", "it is\t 8\0", None],
        [(1, "AE010", AT_8)],
    )


@pytest.mark.parametrize(("name", "codes"), [("request_id", ["AE106"] * 3), ("session_id", [])])
def test_numbers_are_ids(name: str, codes: list[str]) -> None:
    values, issues = decoded(name, 7, 7.0, 7.5)
    assert (values, [code for _, code, _ in issues]) == (["7", "7", "7.5"], codes)


@pytest.mark.parametrize(
    ("name", "value", "code", "got"),
    [
        ("request_id", True, "AE107", "expected text, got true"),
        ("session_id", [1], "AE107", "expected text, got a list of 1"),
        ("error", 3, "AE107", "expected text, got the number 3"),
        ("expected_response", 3, "AE302", "expected text, got the number 3"),
    ],
)
def test_other_values_are_no_text(name: str, value: Any, code: str, got: str) -> None:
    assert decoded(name, "a", value) == (["a", FAILED], [(1, code, got)])


@pytest.mark.parametrize("name", ["error", "expected_response", "response"])
def test_json_that_cannot_be_read_says_why(name: str) -> None:
    values, [(row, code, message)] = decoded_texts(name, '"a"', '{"a": ', is_json=True)
    assert (values, row, code) == (["a", FAILED], 1, "AE002")
    assert "ends at byte 6" in message


ANSWER = {"role": "assistant", "content": "Hello"}
CHATS = [
    {"messages": [{"role": "user", "content": "Hi"}, ANSWER]},
    {"choices": [{"message": ANSWER}]},
    {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]},
]


@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: next(iter(chat)))
def test_the_answer_of_a_chat_object_is_taken(chat: Any) -> None:
    text = json.dumps(chat)
    for is_json, value in ((True, chat), (True, text), (False, text)):
        values, [(row, code, message)] = decoded("response", "a", value, is_json=is_json)
        assert (values, row, code) == (["a", "Hello"], 1, "AE222")
        assert message.startswith("the text was taken from an object with the key")


@pytest.mark.parametrize(
    "value", [{"answer": "x"}, {"messages": []}, {"messages": "x"}, {"choices": [1]}, ["messages"]]
)
def test_other_objects_in_text_are_the_answer(value: Any) -> None:
    """The agent may have been asked to write JSON."""
    text = json.dumps(value)
    assert decoded("response", text, is_json=False) == ([text], [])
    assert decoded("response", text, is_json=True) == ([text], [])


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (42, "the number 42"),
        ({"foo": 1}, "an object with the keys foo"),
        ({"messages": []}, "an object with the keys messages without an assistant's answer"),
    ],
)
def test_an_object_without_an_answer_is_no_response(value: Any, got: str) -> None:
    message = f"expected text or a chat object with an answer, got {got}"
    assert decoded("response", "a", value) == (["a", FAILED], [(1, "AE220", message)])
