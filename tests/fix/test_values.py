"""Each fix by itself: the value that it gives, or the very same object where its one reading does not fit."""

import copy
from typing import Any

import pytest

from agent_eval_schema import validate_eval_set
from agent_eval_schema.fix import values
from agent_eval_schema.fix.values import FixFunction

HI = {"role": "user", "content": "Hi"}
DOC = {"doc_uri": "a.md", "content": "text"}


def messages(value: Any) -> Any:
    return values.in_chats(values.entries(values.message_role))(value)


FIXED: list[tuple[FixFunction, Any, Any]] = [
    (values.opened_json_text, "[1]", [1]),
    (values.opened_json_text, '{"a": 1}', {"a": 1}),
    (values.python_text, "['a', None]", ["a", None]),
    (values.blank_to_null, " \n", None),
    (values.blank_to_null, "", None),
    # request
    (values.messages_to_object, [HI], {"messages": [HI]}),
    (values.request_keys, {"Prompt": "Hi"}, {"query": "Hi"}),
    (values.request_keys, {"chat": HI}, {"messages": HI}),
    (values.request_keys, {"question": "Hi", "previous": None}, {"query": "Hi", "history": None}),
    (values.request_keys, {"question": "Hi", "previous": [HI]}, {"query": "Hi", "history": [HI]}),
    (messages, {"messages": [{"role": "human"}], "n": 1}, {"messages": [{"role": "user"}], "n": 1}),
    (
        messages,
        {"messages": [HI], "history": [{"role": "ai"}, HI]},
        {"messages": [HI], "history": [{"role": "assistant"}, HI]},
    ),
    (values.message_role, {"role": " Human "}, {"role": "user"}),
    (values.message_role, {"role": "SYSTEM", "content": "x"}, {"role": "system", "content": "x"}),
    (values.message_role, {"role": "asistant"}, {"role": "assistant"}),
    (values.message_role, {"role": "Model"}, {"role": "assistant"}),
    (values.message_role, {"content": "x", "author": "bot"}, {"content": "x", "role": "assistant"}),
    (values.message_role, {"type": "User", "content": "Hi"}, HI),
    (values.message_role, {"role": None, "speaker": "AI", "type": "message"}, {"role": "assistant", "type": "message"}),
    (values.message_content, {"role": "user", "text": "Hi"}, HI),
    # expectations
    (values.text_to_list, "a fact", ["a fact"]),
    (values.named_texts, {"tone": "be brief", "form": ["a"]}, {"tone": ["be brief"], "form": ["a"]}),
    (values.without_blanks, ["a", " ", 1], ["a", 1]),
    (values.without_blanks, ["", " "], None),
    (values.without_blanks, {"tone": ["a", ""]}, {"tone": ["a"]}),
    (values.without_blanks, {"tone": ["a", ""], "form": ["b"]}, {"tone": ["a"], "form": ["b"]}),
    (values.number_to_text, 0, "0"),
    (values.number_to_text, -12, "-12"),
    # documents
    (values.document_to_list, {"url": "a.md"}, [{"url": "a.md"}]),
    (values.document_to_list, {"text": "x", "n": 1}, [{"text": "x", "n": 1}]),
    (values.document_to_list, {"metadata": {}}, [{"metadata": {}}]),
    (values.document_content, {"doc_uri": "a.md", "chunk": "text"}, DOC),
    (values.document_content, {"content": None, "snippet": "", "doc_uri": "a"}, {"content": "", "doc_uri": "a"}),
    (values.document_uri, {"uri": "s3://b/a", "content": "x"}, {"doc_uri": "s3://b/a", "content": "x"}),
    (values.document_uri, {"source": "docs/a"}, {"doc_uri": "docs/a"}),
    (values.document_uri, {"path": "a.html "}, {"doc_uri": "a.html "}),
    (values.document_uri, {"url": "a.md"}, {"doc_uri": "a.md"}),
    (values.document_uri, {"doc_id": 7, "content": "x"}, {"doc_uri": "7", "content": "x"}),
    (values.document_uri, {"Document-ID": "seven"}, {"doc_uri": "seven"}),
    (values.document_uri, {"doc_urn": "seven"}, {"doc_uri": "seven"}),
    (values.document_uri, {"doc_uri": " ", "url": "a.md"}, {"doc_uri": "a.md"}),
    (values.document_uri, {"url": "a.md", "id": "7"}, {"doc_uri": "a.md", "id": "7"}),
    (
        values.document_uri,
        {"doc_uri": None, "content": "x", "metadata": {"source": "a.md", "page": 1}},
        {"doc_uri": "a.md", "content": "x", "metadata": {"source": "a.md", "page": 1}},
    ),
    (
        values.document_uri,
        {"metadata": {"doc_uri": "a", "source": "b.md"}},
        {"doc_uri": "a", "metadata": {"doc_uri": "a", "source": "b.md"}},
    ),
    (
        values.document_uri,
        {"url": "a.md", "metadata": {"source": "a.md"}},
        {"doc_uri": "a.md", "metadata": {"source": "a.md"}},
    ),
    (values.document_uri_text, {"doc_uri": 0, "content": "x"}, {"doc_uri": "0", "content": "x"}),
    # tool calls
    (values.call_to_list, {"name": "f"}, [{"name": "f"}]),
    (values.call_to_list, {"args": {}, "n": 1}, [{"args": {}, "n": 1}]),
    (
        values.call_function,
        {"id": "1", "function": {"name": "f", "arguments": "{}"}},
        {"tool_name": "f", "tool_input": "{}", "id": "1"},
    ),
    (values.call_name, {"tool": "f", "tool_input": {}}, {"tool_name": "f", "tool_input": {}}),
    (values.call_name, {"tool_name": None, "function": "f"}, {"tool_name": "f"}),
    (values.call_input, {"tool_name": "f", "args": {"x": 1}}, {"tool_name": "f", "tool_input": {"x": 1}}),
    (values.call_input, {"tool_input": None, "arguments": '{"x": 1}'}, {"tool_input": '{"x": 1}'}),
]


@pytest.mark.parametrize(("fix", "value", "fixed"), FIXED)
def test_what_a_fix_gives(fix: FixFunction, value: Any, fixed: Any) -> None:
    before = copy.deepcopy(value)
    found = fix(value)
    assert found == fixed
    assert not isinstance(fixed, dict) or list(found) == list(fixed), "the keys keep their order"
    assert value == before, "the argument is not changed"


LEFT: list[tuple[FixFunction, Any]] = [
    (messages, {"messages": "Hi"}),
    (values.opened_json_text, '"text"'),
    (values.opened_json_text, "[1] and more"),
    (values.opened_json_text, "[1"),
    (values.opened_json_text, 1),
    (values.python_text, "[1, nan]"),
    (values.blank_to_null, "x"),
    (values.blank_to_null, 0),
    # request
    (values.messages_to_object, []),
    (values.messages_to_object, "Hi"),
    (values.messages_to_object, [HI, "Hi"]),
    (values.messages_to_object, [HI, {"content": "Hi"}]),
    (values.request_keys, {"messages": [HI], "question": "Hi"}),
    (values.request_keys, {"query": "Hi", "turns": [HI]}),
    (values.request_keys, {"messages": [HI], "previous": [HI]}),
    (values.request_keys, {"query": "Hi", "previous": [HI]}),
    (values.request_keys, {"messages": None, "question": "Hi"}),
    (values.request_keys, {"question": "Hi", "language": "de"}),
    (values.request_keys, {"question": "Hi", "prompt": "Ho"}),
    (values.request_keys, {"question": " "}),
    (values.request_keys, {"question": "Hi", "chat": [HI]}),
    (values.request_keys, {"previous": [HI]}),
    (values.request_keys, {"question": "Hi", "previous": "Ho"}),
    (values.request_keys, {"chat": [HI, "Hi"]}),
    (values.request_keys, "Hi"),
    (messages, {"messages": [HI], "history": None}),
    (messages, {"turns": [{"role": "human"}]}),
    (messages, "Hi"),
    (values.message_role, "Hi"),
    (values.message_role, HI),
    (values.message_role, {"role": "user", "type": "ai"}),
    (values.message_role, {"role": "user2"}),
    (values.message_role, {"role": "Anna"}),
    (values.message_role, {"role": 1, "type": "ai"}),
    (values.message_role, {"type": "text"}),
    (values.message_role, {"type": "ai", "author": "human"}),
    (values.message_role, {"type": 1}),
    (values.message_content, {"role": "user", "text": "Hi", "n": 1}),
    (values.message_content, {"author": "user", "text": "Hi"}),
    (values.message_content, {"role": "user", "content": None}),
    (values.message_content, {"role": "user", "text": " "}),
    (values.message_content, {"role": "user", "text": 1}),
    (values.message_content, "Hi"),
    # expectations
    (values.text_to_list, " "),
    (values.text_to_list, "one\ntwo"),
    (values.text_to_list, "one; two"),
    (values.text_to_list, "• one"),
    (values.text_to_list, '["a"]'),
    (values.text_to_list, ["a"]),
    (values.named_texts, {"tone": ["be brief"]}),
    (values.named_texts, "be brief"),
    (values.without_blanks, ["a", 1, None]),
    (values.without_blanks, []),
    (values.without_blanks, " "),
    (values.without_blanks, {"tone": ["a"]}),
    (values.without_blanks, {"tone": ["a"], "form": []}),
    (values.without_blanks, {"tone": [""], "form": ["a", ""]}),
    (values.number_to_text, True),
    (values.number_to_text, 1.0),
    # documents
    (values.document_to_list, {"name": "x"}),
    (values.document_to_list, [DOC]),
    (values.document_content, {"doc_uri": "a.md", "content": "", "text": "x"}),
    (values.document_content, {"doc_uri": "a.md", "text": "x", "body": "y"}),
    (values.document_content, {"doc_uri": "a.md", "text": 1}),
    (values.document_content, "x"),
    (values.document_uri, {"doc_uri": "a", "url": "b.md"}),
    (values.document_uri, {"url": "a.md", "source": "a.md"}),
    (values.document_uri, {"url": "a.md", "metadata": {"source": "b.md"}}),
    (values.document_uri, {"metadata": {"url": "a.md", "source": "b.md"}}),
    (values.document_uri, {"metadata": "a.md"}),
    (values.document_uri, {"metadata": {"doc_uri": " "}}),
    *((values.document_uri, {name: "wiki"}) for name in ("uri", "url", "source", "path")),
    (values.document_uri, {"source": "release 1.2 notes"}),
    (values.document_uri, {"path": 7}),
    (values.document_uri, {"id": "7"}),
    (values.document_uri, {"doc_id": " "}),
    (values.document_uri, {"doc_id": True}),
    (values.document_uri, {"content": "a/b.md"}),
    (values.document_uri, "a.md"),
    (values.document_uri_text, {"doc_uri": "1"}),
    (values.document_uri_text, {"doc_uri": True}),
    (values.document_uri_text, 1),
    # tool calls
    (values.call_to_list, {"x": 1}),
    (values.call_to_list, [{"name": "f"}]),
    (values.call_function, {"function": "f"}),
    (values.call_function, {"function": {"name": "f"}}),
    (values.call_function, {"function": {"name": "f", "arguments": {}}, "tool_name": "g"}),
    (values.call_function, {"function": {"name": "f", "arguments": {}}, "tool_input": None}),
    (values.call_function, "f"),
    (values.call_name, {"tool_name": "f", "name": "g"}),
    (values.call_name, {"name": "f", "tool": "g"}),
    (values.call_name, {"name": " "}),
    (values.call_name, "f"),
    (values.call_input, {"tool_input": {}, "args": {"x": 1}}),
    (values.call_input, {"args": {"x": 1}, "input": {"x": 1}}),
    (values.call_input, {"args": [1]}),
    (values.call_input, {"args": "x"}),
    (values.call_input, "f"),
]


@pytest.mark.parametrize(("fix", "value"), LEFT)
def test_what_a_fix_leaves_alone(fix: FixFunction, value: Any) -> None:
    before = copy.deepcopy(value)
    assert fix(value) is value
    assert value == before


@pytest.mark.parametrize(
    "role", ["usr", "User ", "human", "Human", "AI", "bot", "model", "asistant", "user_2", "agent"]
)
def test_the_hint_for_a_role_is_what_a_fix_writes(role: str) -> None:
    written = values.message_role({"role": role, "content": "a"})["role"]
    request = {"messages": [{"role": role, "content": "a"}]}
    issues = validate_eval_set([{"request": request, "response": "b"}]).issues
    (hint,) = issues.loc[issues["code"] == "AE206", "hint"]
    assert hint.startswith(f"Did you mean '{written}'?" if written != role else "Use one of ")
