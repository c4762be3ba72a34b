"""The three request formats of Databricks, decided per cell, and what is said of a request that is none."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pydantic
import pytest

from agent_eval_schema import normalize_eval_set, validate_eval_set
from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding.chat import is_parameter
from agent_eval_schema.decoding.requests import Chat as PlainChat
from agent_eval_schema.decoding.requests import (
    decode_requests,
    is_plain_chat,
    last_question,
    last_user_text,
    meant_of_value,
    odd_turns,
    request_key,
)
from agent_eval_schema.decoding.values import FAILED, TextColumn
from agent_eval_schema.rules.requests import REQUEST_EXTRA_KEY, RESPONSES_REQUEST

USER = {"role": "user", "content": "Hi"}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]

ACCEPTED = {
    "text": ("Hi", [USER]),
    "messages": ({"messages": [USER]}, [USER]),
    "query": ({"query": "Hi"}, [USER]),
    "query and history": (
        {"query": "Hi", "history": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, USER],
    ),
    "null history": ({"query": "Hi", "history": None}, [USER]),
    "system first": ({"messages": [{"role": "system", "content": "Be kind"}, USER]}, None),
    "parts": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "u"}}],
                }
            ]
        },
        None,
    ),
    "a function call": (
        {
            "messages": [
                USER,
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "user", "content": "And?"},
            ]
        },
        None,
    ),
    "tool calls": (
        {
            "messages": [
                USER,
                {"role": "assistant", "content": None, "tool_calls": CALLS},
                {"role": "tool", "content": "4", "tool_call_id": "c1"},
            ]
        },
        None,
    ),
    "a key of the user's own in a message": ({"messages": [{**USER, "id": "m1"}]}, [{**USER, "id": "m1"}]),
    "null keys of a message are absent": ({"messages": [{**USER, "name": None}]}, [USER]),
    "a question that is JSON": ('["a"]', [{"role": "user", "content": '["a"]'}]),
    "a question with a brace": ("{not json", [{"role": "user", "content": "{not json"}]),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_requests_become_messages(case: str, every_input: Callable[[list[dict[str, Any]]], Any]) -> None:
    request, messages = ACCEPTED[case]
    report = validate_eval_set(every_input([{"request": request, "response": "ok"}]))
    assert report.ok, report.to_text()
    assert report.rows["request"][0] == {"messages": messages or request["messages"]}


def test_one_column_may_mix_all_formats(every_input: Callable[[list[dict[str, Any]]], Any]) -> None:
    requests = ["Hi", {"messages": [USER]}, {"query": "Hi"}, {"query": "Hi", "history": []}]
    report = validate_eval_set(every_input([{"request": r, "response": "ok"} for r in requests]))
    assert list(report.rows["request"]) == [{"messages": [USER]}] * 4
    assert report.valid_count == 4


@dataclass
class Turn:
    role: str
    content: str


class Chat(pydantic.BaseModel):
    messages: list[dict[str, str]]


@pytest.mark.parametrize(
    "request_cell",
    [
        Chat(messages=[USER]),
        {"messages": np.array([USER], dtype=object)},
        {"messages": [Turn("user", "Hi")]},
        {"messages": (USER,)},
        pd.Series({"messages": [USER]}).to_dict(),
    ],
    ids=["pydantic", "numpy", "dataclass", "tuple", "dict"],
)
def test_objects_and_arrays_in_cells_are_read(request_cell: Any) -> None:
    frame = pd.DataFrame({"request": pd.Series([request_cell], dtype="object"), "response": ["ok"]})
    report = validate_eval_set(frame)
    assert (report.counts, report.rows["request"][0]) == ({}, {"messages": [USER]})


REFUSED = [
    # cell, [(code, path)], part of the message or the hint
    ("", [("AE202", "request")], "empty text"),
    ("  \n", [("AE202", "request")], "blank text"),
    ({"query": " "}, [("AE202", "request.query")], "blank text"),
    ({"messages": []}, [("AE202", "request.messages")], "an empty list"),
    ({"messages": [{"role": "user", "content": " "}]}, [("AE202", "request")], "only blank user messages"),
    ({"messages": [USER], "query": "Hi"}, [("AE203", "request")], "got both"),
    (42, [("AE204", "request")], "the number 42"),
    (True, [("AE204", "request")], "got true"),
    ([USER], [("AE204", "request")], 'Put the messages into an object: `{"messages": [...]}`.'),
    ({"messages": "Hi"}, [("AE204", "request.messages")], "expected a list"),
    ({"query": 3}, [("AE204", "request.query")], "expected text"),
    ({"query": "Hi", "history": "none"}, [("AE204", "request.history")], "expected a list"),
    ({}, [("AE205", "request")], "an empty object"),
    ({"foo": 1}, [("AE205", "request")], "the keys foo"),
    ({"mesages": [USER]}, [("AE205", "request.mesages")], "Did you mean `messages`?"),
    ({"question": "Hi"}, [("AE205", "request.question")], "Did you mean `query`?"),
    ({"messages": [{"role": "usr", "content": "a"}]}, [("AE206", "request.messages[0].role")], "Did you mean 'user'?"),
    ({"messages": [{"role": 3, "content": "a"}]}, [("AE206", "request.messages[0].role")], "the number 3"),
    ({"messages": [USER, {"content": "a"}]}, [("AE208", "request.messages[1]")], "`role` is missing"),
    ({"messages": [{"rol": "user", "content": "a"}]}, [("AE208", "request.messages[0].rol")], "Did you mean `role`?"),
    ({"messages": [{"role": "user", "content": None}]}, [("AE207", "request.messages[0].content")], "got null"),
    ({"messages": [{"role": "user"}]}, [("AE207", "request.messages[0].content")], "got nothing"),
    ({"messages": [{"role": "user", "content": 5}]}, [("AE207", "request.messages[0].content")], "the number 5"),
    (
        {"messages": [{"role": "user", "content": [{"text": "a"}]}]},
        [("AE207", "request.messages[0].content[0]")],
        "type",
    ),
    ({"messages": ["Hi"]}, [("AE208", "request.messages[0]")], "expected an object"),
    ({"messages": [None, USER]}, [("AE208", "request.messages[0]")], "got null"),
    (
        {"query": "Hi", "history": [{"role": "bot", "content": "a"}]},
        [("AE206", "request.history[0].role")],
        "expected one of",
    ),
    # every problem of the cell, not the first
    (
        {"messages": [{"role": "usr", "content": "a"}, {"role": "user", "content": 5}, "x"]},
        [
            ("AE206", "request.messages[0].role"),
            ("AE207", "request.messages[1].content"),
            ("AE208", "request.messages[2]"),
        ],
        "",
    ),
]


@pytest.mark.parametrize(("cell", "found", "words"), REFUSED, ids=lambda v: str(v)[:50])
def test_a_request_that_is_none_is_refused_with_path_and_hint(
    cell: Any, found: list[tuple[str, str]], words: str
) -> None:
    report = validate_eval_set([{"request": cell, "response": "ok"}, {"request": "good", "response": "ok"}])
    errors = report.issues[report.issues["severity"] == "error"]
    assert list(zip(errors["code"], errors["path"], strict=True)) == found
    assert (set(errors["row"]), set(errors["column"])) == ({0}, {"request"})
    assert words in " ".join([*errors["message"], *errors["hint"]])
    assert (report.valid_count, report.invalid_count) == (1, 1)
    assert report.rows["request"][0] is None or found[0][1] == "request"


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([USER, {"role": "assistant", "content": "a"}], "AE210"),
        ([{"role": "system", "content": "a"}], "AE212"),
        ([USER, USER], "AE213"),
        ([{"role": "tool", "content": "a"}, USER], "AE209"),
    ],
)
def test_a_chat_that_weakens_its_metrics_is_a_warning(messages: list[Any], code: str) -> None:
    report = validate_eval_set([{"request": {"messages": messages}, "response": "ok"}])
    assert (report.counts, report.ok) == ({code: 1}, True)
    assert report.issues["column"][0] == "request"


def test_a_list_that_a_user_typed_is_a_question() -> None:
    assert validate_eval_set([{"request": '["a", "b"]', "response": "ok"}]).counts == {}


ANSWER, ASKED = {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "How long is leave?"}
SYSTEM, ANN, BOB = {"role": "system", "content": "Be kind"}, {**USER, "name": "ann"}, {**ASKED, "name": "bob"}


@pytest.mark.parametrize(
    ("request_cell", "found"),
    [
        ({"messages": [USER, ANSWER, USER, ASKED]}, [("AE218", "request.messages[3]")]),
        ({"messages": [USER, ANSWER, USER, SYSTEM, ASKED]}, [("AE218", "request.messages[4]")]),
        ({"messages": [USER, ANSWER, USER, USER, ANSWER, ASKED]}, [("AE218", "request.messages[3]")]),
        ({"query": "Paid?", "history": [USER, ANSWER, ASKED]}, [("AE218", "request.query")]),
        ({"messages": [ANSWER, ASKED]}, [("AE219", "request.messages[0]")]),
        ({"messages": [SYSTEM, ANSWER, ASKED]}, [("AE219", "request.messages[1]")]),
        ({"query": "Paid?", "history": [ANSWER, USER]}, [("AE219", "request.history[0]"), ("AE218", "request.query")]),
        ({"messages": [USER, ANSWER, ASKED, ASKED]}, [("AE213", "request")]),
        ({"messages": [USER, ASKED]}, []),
        ({"messages": [USER, ANSWER, ANN, BOB]}, []),
        ({"messages": [SYSTEM, USER, ANSWER, SYSTEM, ASKED]}, []),
    ],
)
def test_turns_out_of_order_are_reported_with_their_place(
    request_cell: Any, found: list[tuple[str, str]], every_input: Callable[[list[dict[str, Any]]], Any]
) -> None:
    report = validate_eval_set(every_input([{"request": request_cell, "response": "ok"}]), ignore=["AE211"])
    assert list(zip(report.issues["code"], report.issues["path"], strict=True)) == found
    assert report.ok


@pytest.mark.parametrize("text", ['{"messages": [{"role": "user", "content": "Hi"}]}', '{"query": "Hi"}'])
def test_an_object_written_as_text_is_read_and_said_where_an_object_could_have_stood(text: str) -> None:
    rows = [{"request": text, "response": "ok"}]
    report = validate_eval_set(rows)
    assert (report.counts, report.rows["request"][0]) == ({"AE211": 1}, {"messages": [USER]})


def test_a_container_of_text_has_no_other_way_to_hold_an_object(tmp_path: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text('request,response\n"{""query"": ""Hi""}",ok\n')
    assert validate_eval_set(path).counts == {}


def test_malformed_json_that_begins_like_a_request_names_the_byte() -> None:
    report = validate_eval_set([{"request": '{"messages": [{"role": "user"', "response": "ok"}])
    assert report.counts == {"AE002": 1}
    assert "ends at byte 29" in report.issues["message"][0]


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ({"histroy": [{"role": "user", "content": "a"}]}, "Did you mean `history`?"),
        ({"chat_history": []}, "Did you mean `history`?"),
        ({"history": [], "histroy": []}, REQUEST_EXTRA_KEY.hint),
        ({"context": [{"doc_uri": "a"}]}, REQUEST_EXTRA_KEY.hint),
    ],
)
def test_a_history_under_a_name_that_nobody_reads_is_known(more: dict[str, Any], hint: str) -> None:
    report = validate_eval_set([{"request": {"query": "b", **more}, "response": "c"}])
    assert report.issues[["code", "hint"]].to_numpy().tolist() == [["AE214", hint]]


NAMED = [
    *("temperature", "max_tokens", "tools", "tool_choice", "stream", "model", "n", "stop", "top_p", "response_format"),
    *("metadata", "user", "seed", "custom_inputs"),
]


@pytest.mark.parametrize("name", NAMED)
def test_a_parameter_of_the_chat_api_is_no_warning_and_is_preserved(
    name: str, every_input: Callable[[list[dict[str, Any]]], Any]
) -> None:
    request = {"messages": [USER], name: 1}
    report = validate_eval_set(every_input([{"request": request, "response": "ok"}]), ignore=["AE211"])
    assert report.issues[["code", "severity"]].to_numpy().tolist() == [["AE228", "info"]]
    assert f"chat API: {name}" in report.issues["message"][0]
    assert report.rows["inputs"][0] == request


def test_the_parameters_of_mlflow_s_agents_are_known() -> None:
    llm, agent = (pytest.importorskip(f"mlflow.types.{name}") for name in ("llm", "agent"))
    fields = {*llm.ChatCompletionRequest.__dataclass_fields__, *agent.ChatAgentRequest.model_fields}
    assert all(is_parameter(name, {}) for name in fields - {"messages"})


def test_unknown_keys_beside_parameters_are_a_warning_and_are_preserved() -> None:
    request = {"query": "Hi", "temperature": 0, "customer": {"id": 7}, "trace_id": None}
    report = validate_eval_set([{"request": request, "response": "ok"}])
    assert report.counts == {"AE214": 1, "AE228": 1}
    said = dict(zip(report.issues["code"], report.issues["message"], strict=True))
    assert said["AE214"].endswith("preserved in inputs: customer")
    assert said["AE228"].endswith("chat API: temperature")
    assert report.rows["inputs"][0]["customer"] == {"id": 7}
    assert set(report.issues["column"]) == {"request"}


@pytest.mark.parametrize(
    ("request_cell", "right"),
    [
        ({"prompt": [USER]}, "messages"),
        ({"prompt": "Hi"}, "query"),
        ({"question": [USER]}, "messages"),
        ({"message": "Hi"}, "query"),
        ({"mesages": [USER]}, "messages"),
        ({"qery": "Hi"}, "query"),
    ],
)
def test_the_key_that_is_meant_fits_the_value_and_is_what_a_fix_writes(request_cell: Any, right: str) -> None:
    rows = [{"request": request_cell, "response": "ok"}]
    (wrong,) = request_cell
    assert validate_eval_set(rows).issues["hint"][0] == f"Did you mean `{right}`? Rename `{wrong}`."
    assert normalize_eval_set(rows, fix=True)[0]["request"] == {"messages": [USER]}


def test_python_text_of_a_request_is_no_question_and_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame({"request": [{"messages": [USER]}, {"query": "It's?"}], "response": ["a", "b"]}).to_csv(path)
    issues = validate_eval_set(path, select=["AE2", "AE0"]).issues
    assert issues[["row", "code"]].to_numpy().tolist() == [[0, "AE002"], [1, "AE002"]]
    assert issues["message"][0] == "expected JSON, got the text that Python writes of an object"
    assert "--fix" in issues["hint"][0]
    fixed = normalize_eval_set(path, fix=True)["request"]
    assert [r["messages"][0]["content"] for r in fixed] == ["Hi", "It's?"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "name": "f"},
    ],
)
def test_content_is_null_beside_a_call_only(message: dict[str, Any]) -> None:
    issues = validate_eval_set([{"request": {"messages": [USER, message, USER]}, "response": "ok"}]).issues
    first = issues[issues["severity"] == "error"].iloc[0]
    assert (first["code"], first["path"]) == ("AE207", "request.messages[1].content")
    assert first["message"].endswith("got null" if "content" in message else "got nothing")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Hi", "Hi"),
        ([USER, {"role": "assistant", "content": "Hello"}], "Hi"),
        ([{"role": "user", "content": "first"}, {"role": "user", "content": "last"}], "last"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], "ab"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}], None),
        ([{"role": "user", "content": None}], None),
        ([{"role": "system", "content": "Be kind"}], None),
        ([], None),
    ],
)
def test_the_last_text_of_the_user(value: Any, text: str | None) -> None:
    assert last_user_text(value) == text


def test_requests_of_one_meaning_have_one_key() -> None:
    assert request_key("Hi") == request_key([USER]) == "Hi"
    others = [
        [USER, USER],
        [{**USER, "name": "ana"}],
        [{"role": "system", "content": "Hi"}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ]
    assert len({request_key(value) for value in others} | {"Hi"}) == 5


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ('{"messages": [{"role": "user", "content": "Hi"}], "query": "Ho"}', "AE203"),
        ('{"messages": [{"role": "user", "content": "Hi"}], "temperature": 1}', "AE228"),
        ('{"messages": []}', "AE202"),
    ],
)
def test_chats_in_text_cells_that_look_plain_are_examined(cell: str, code: str) -> None:
    plain = '{"messages": [{"role": "user", "content": "Hi"}]}'
    report = validate_eval_set(pa.table({"request": [plain, cell], "response": ["a", "b"]}), select=["AE2"])
    assert [(i.row, i.code) for i in report.iter_issues()] == [(1, code)]


def test_a_plain_chat_is_equal_to_its_messages_and_to_nothing_else() -> None:
    found = PlainChat(b'{"messages":[{"role":"user","content":"Hi"}]}')
    assert found.messages == list(found) == [USER]
    assert (len(found), found[0]) == (1, USER)
    for same in (
        [USER],
        [{"content": "Hi", "role": "user"}],
        PlainChat(b'{"messages": [{"role": "user", "content": "Hi"}]}'),
    ):
        assert found == same
    for other in ([], [{**USER, "content": "Ho"}], [USER, USER], "Hi", PlainChat(b'{"messages":[]}')):
        assert found != other


@pytest.mark.parametrize(
    ("cell", "text"),
    [({"messages": [USER]}, "Hi"), ('{"query": "Ho"}', "Ho"), ([USER], "Hi"), ({"messages": []}, None), (5, None)],
)
def test_the_question_in_a_cell(cell: Any, text: str | None) -> None:
    assert last_question(cell) == text


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("messages", "Hi", "query"),
        ("messages", [USER], "messages"),
        ("messages", [], "messages"),
        ("query", [USER], "messages"),
        ("query", 5, "query"),
        ("history", "Hi", "history"),
        (None, "Hi", None),
    ],
)
def test_the_key_that_fits_a_value(name: str | None, value: Any, meant: str | None) -> None:
    assert meant_of_value(name, value) == meant


@pytest.mark.parametrize(
    ("request_cell", "codes"),
    [
        ('{"messages": [{"role": "user"', ["AE002"]),
        ('{"messages": [{"role": "user", "content": "Hi"}], "k": NaN}', ["AE003"]),
        ({"query": "Hi", "history": [{"role": "user", "content": None}]}, ["AE207"]),
        (5, ["AE204"]),
        (float("inf"), ["AE003"]),
        ([USER], ["AE204"]),
    ],
)
def test_a_request_that_cannot_be_read_is_one_error_of_its_column(request_cell: Any, codes: list[str]) -> None:
    rows = [{"request": request_cell, "response": "Hello"}]
    issues = [i for i in validate_eval_set(rows).iter_issues() if i.row == 0]
    assert [i.code for i in issues] == codes
    assert {i.column for i in issues} == {"request"}
    assert ("Put the messages into an object" in issues[0].hint) == isinstance(request_cell, list)
    assert normalize_eval_set(rows, on_invalid="keep")[0]["request"] is None


def test_a_request_of_the_responses_api_is_read_and_reported() -> None:
    issues = list(validate_eval_set([{"request": {"input": "Hi", "mine": 1}, "response": "Hello"}]).iter_issues())
    (extra,) = [i for i in issues if i.code == REQUEST_EXTRA_KEY.code]
    assert (extra.column, extra.message.endswith("in inputs: mine")) == ("request", True)
    assert [i.column for i in issues if i.code == RESPONSES_REQUEST.code] == ["request"]


def test_requests_of_a_normalized_file_are_the_same_bytes_again(tmp_path: Path) -> None:
    """The fast path of chats that this package wrote itself."""
    rows = [
        {"request": {"messages": [{"role": "system", "content": "Be kind"}, {**USER, "content": f"Hi {i}"}]}}
        for i in range(3)
    ]
    once, twice = tmp_path / "once.parquet", tmp_path / "twice.parquet"
    validate_eval_set([{**row, "response": "Hello"} for row in rows]).write(once)
    validate_eval_set(once).write(twice)
    assert pd.read_parquet(twice)["request"].tolist() == pd.read_parquet(once)["request"].tolist()
    assert validate_eval_set(once).rows["request"].tolist() == [row["request"] for row in rows]


# ---------------------------------------------------------------------------------------------------------------------
# cells that contain text
HI = '{"messages": [{"role": "user", "content": "Hi"}]}'


def requests_in(
    *texts: str | None, array: bool = True, plain: list[bool] | None = None
) -> tuple[Any, list[tuple[int, str, str | None]]]:
    """The requests in cells of text, and of each issue its row, code and path; without an array, as of a column where
    a cell is not UTF-8."""
    column = pa.array(texts, pa.string()) if array else None
    cells = Cells(False, texts, column, nul=any(t and "\0" in t for t in texts))
    log = IssueLog(len(texts))
    found = decode_requests(cells, False, log, plain or ())
    return found, [(row, code, path) for row, (code, _, path, *_) in zip(log.rows, log.notes, strict=True)]


def test_a_column_of_questions_stays_in_arrow() -> None:
    found, issues = requests_in("Hi", None, "Ho")
    assert (type(found), list(found), issues) == (TextColumn, ["Hi", None, "Ho"], [])


def test_chats_beside_questions_are_read_with_and_without_an_array() -> None:
    for array in (True, False):
        assert requests_in(HI, "Hi", None, array=array) == ([[USER], "Hi", None], [])
        assert requests_in(HI, None, array=array) == ([[USER], None], [])


def test_what_is_known_to_be_a_plain_chat_is_not_read_again() -> None:
    (found,), issues = requests_in('{"messages": [5]}', plain=[True])
    assert (type(found), bytes(found.text), issues) == (PlainChat, b'{"messages": [5]}', [])
    assert requests_in('{"messages": [5]}', plain=[False]) == ([FAILED], [(0, "AE208", "request.messages[0]")])


@pytest.mark.parametrize(
    ("text", "issue"),
    [
        ('[{"role": "user", "content": "Hi"}]', (0, "AE204", "request")),
        ('{"mesages": [{"role": "user", "content": "Hi"}]}', (0, "AE205", "request.mesages")),
        ('{"history": []}', (0, "AE205", "request")),
    ],
)
def test_text_that_is_meant_as_a_request_is_no_question(text: str, issue: tuple[int, str, str]) -> None:
    assert requests_in(text) == ([FAILED], [issue])


def test_other_json_that_a_user_typed_is_a_question() -> None:
    texts = ['[{"role": "user"}, 5]', "[]", "[5]", '{"country": "France"}']
    assert requests_in(*texts) == (texts, [(3, "AE215", "request")])


def test_a_nul_character_is_found_in_its_row() -> None:
    texts = ["Hi", "H\0i", None, "\\u0000"]
    assert requests_in(*texts) == (texts, [(1, "AE010", "request")])
    cells = Cells(True, ['"Hi"', '"H\\u0000i"', None, '"\\\\u0000"'], nul=True)
    log = IssueLog(4)
    assert decode_requests(cells, True, log) == texts
    assert [(row, note[:2]) for row, note in zip(log.rows, log.notes, strict=True)] == [(1, ("AE010", "request"))]


PLAIN = [[USER], [{"role": "system", "content": "Be kind"}, USER], [USER, {"role": "assistant", "content": "?"}, USER]]
ODD = [
    *([], [{**USER, "content": " "}], [USER, USER], [USER, {"role": "assistant", "content": "Hello"}]),
    *([{**USER, "name": "ana"}], [USER, {"role": "tool", "content": "4"}, USER], ["Hi"]),
]


def test_which_chats_are_plain() -> None:
    assert [is_plain_chat(json.dumps({"messages": chat})) for chat in PLAIN] == [True] * len(PLAIN)
    assert [is_plain_chat(json.dumps({"messages": chat})) for chat in ODD] == [False] * len(ODD)
    assert [is_plain_chat(text) for text in ("Hi", '"Hi"', '{"messages": ', '{"query": "Hi"}', b"\xff")] == [False] * 5


def test_the_instructions_of_a_developer_are_no_turn() -> None:
    assert list(odd_turns(["developer", "assistant", "user"])) == [1]
    assert list(odd_turns(["developer", "user", "assistant", "user"])) == []


def test_a_role_that_is_null_is_none_of_the_schema() -> None:
    rows = [{"request": {"messages": [{"role": None, "content": "Hi"}]}, "response": "Hello"}]
    assert validate_eval_set(rows).counts == {"AE206": 1}


def test_a_plain_chat_is_normalized_to_itself() -> None:
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    [row] = normalize_eval_set([{"request": chat, "response": "Hello"}])
    assert row["request"] == chat
