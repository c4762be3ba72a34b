"""Every shape in which agents write a request, an answer or a tool call, one example a line."""

from typing import Any

import pytest

from agent_eval_schema.decoding.chat import (
    lone_question,
    read_answer,
    read_arguments,
    read_messages,
    read_tool_calls,
    user_message,
)

USER = {"role": "user", "content": "Hi"}
EARLIER = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "rag"}'}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "found"}

MESSAGES: dict[str, tuple[Any, list[dict[str, Any]] | None]] = {
    "text": ("Hi", [USER]),
    "a list of messages": ([*EARLIER, USER], [*EARLIER, USER]),
    "messages": ({"messages": [USER]}, [USER]),
    "other arguments of the function": ({"messages": [USER], "user": None, "k": 3}, [USER]),
    "query": ({"query": "Hi"}, [USER]),
    "query and history": ({"query": "Hi", "history": EARLIER}, [*EARLIER, USER]),
    "query and null history": ({"query": "Hi", "history": None}, [USER]),
    "Responses: text": ({"input": "Hi", "model": "m"}, [USER]),
    "Responses: items": ({"input": [USER]}, [USER]),
    "Responses: a message item with text parts": (
        {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]},
        [USER],
    ),
    "Responses: a call and its output": (
        {
            "input": [
                {"type": "message", "role": "user", "content": "Hi", "status": None},
                {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"q": "rag"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "found"},
            ]
        },
        [USER, ASKS, TOOL],
    ),
    "question": ({"question": "Hi", "k": 3}, [USER]),
    "prompt": ({"prompt": "Hi"}, [USER]),
    "text key": ({"text": "Hi", "temperature": 0.1}, [USER]),
    "two texts: which one?": ({"question": "Hi", "text": "Ho"}, None),
    "wrapped in the one argument": ({"request": {"messages": [USER]}}, [USER]),
    "wrapped, beside nulls": ({"request": {"input": [USER], "text": None}, "context": None}, [USER]),
    "LangChain": (
        {"messages": [{"type": "system", "content": "Be kind"}, {"type": "human", "content": "Hi", "id": None}]},
        [{"role": "system", "content": "Be kind"}, USER],
    ),
    "null keys of a message are absent": ({"messages": [{**USER, "name": None}]}, [USER]),
    "null content stays beside tool calls": ({"messages": [USER, ASKS, TOOL]}, [USER, ASKS, TOOL]),
    "parts stay parts": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ),
    "no messages": ({"messages": []}, []),
    "an unknown role": ({"messages": [{"role": "robot", "content": "Hi"}]}, None),
    "history that is no chat": ({"query": "Hi", "history": "a, b"}, None),
    "other keys": ({"city": "Paris"}, None),
    "an empty object": ({}, None),
    "a number": (7, None),
    "null": (None, None),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_inputs_are_read_as_messages(case: str) -> None:
    inputs, messages = MESSAGES[case]
    assert read_messages(inputs) == messages


def test_a_request_is_the_only_argument_of_up_to_eight_functions() -> None:
    inputs: Any = {"messages": [USER]}
    for _ in range(8):
        inputs = {"request": inputs}
    assert read_messages(inputs) == [USER]
    assert read_messages({"request": inputs}) is None


def says(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


PART = {"type": "output_text", "text": "Hel", "annotations": []}
NO_ANSWER = (None, True)
UNKNOWN = (None, False)

ANSWERS: dict[str, tuple[Any, tuple[str | None, bool]]] = {
    "text": ("Hello", ("Hello", True)),
    "null": (None, NO_ANSWER),
    "choices": ({"choices": [{"index": 0, "message": says("Hello")}], "usage": {}}, ("Hello", True)),
    "the first of two choices": ({"choices": [{"message": says("Hello")}, {"message": says("B")}]}, ("Hello", True)),
    "choices with content parts": (
        {"choices": [{"message": says([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}])}]},
        ("Hello", True),
    ),
    "a choice that only calls tools": ({"choices": [{"message": ASKS}]}, NO_ANSWER),
    "no choices": ({"choices": []}, NO_ANSWER),
    "messages": ({"messages": [says("let me look"), says("Hello")]}, ("Hello", True)),
    "the last message is a tool's": ({"messages": [says("Hello"), TOOL]}, ("Hello", True)),
    "the last assistant message is empty": ({"messages": [says("Hello"), says("")]}, ("Hello", True)),
    "only calls": ({"messages": [USER, ASKS, TOOL]}, NO_ANSWER),
    "LangChain messages": (
        {"messages": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]},
        ("Hello", True),
    ),
    "Responses": (
        {
            "output": [
                {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"},
                {"type": "reasoning", "id": "r1", "summary": []},
                {"type": "message", **says([PART, {**PART, "text": "lo"}])},
            ]
        },
        ("Hello", True),
    ),
    "Responses: only calls": ({"output": [{"type": "function_call", "name": "search"}]}, NO_ANSWER),
    "content": ({"content": "Hello"}, ("Hello", True)),
    "content parts": ({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}, ("Hello", True)),
    "null content": ({"content": None}, NO_ANSWER),
    "response": ({"response": "Hello", "sources": ["a"]}, ("Hello", True)),
    "output": ({"output": "Hello"}, ("Hello", True)),
    "answer": ({"answer": "Hello"}, ("Hello", True)),
    "result": ({"result": "Hello"}, ("Hello", True)),
    "text key": ({"text": "Hello"}, ("Hello", True)),
    "two texts: which one?": ({"answer": "Hello", "result": "Ho"}, UNKNOWN),
    "a list of one text": (["Hello"], ("Hello", True)),
    "a list of one object": ([{"content": "Hello"}], ("Hello", True)),
    "a list of messages": ([USER, says("Hello")], ("Hello", True)),
    "a list of texts": (["Hello", "Ho"], UNKNOWN),
    "other keys": ({"score": 3}, UNKNOWN),
    "an answer that is no text": ({"answer": {"score": 3}}, UNKNOWN),
    "a number": (7, UNKNOWN),
    "a chat object as text": ('{"messages": [{"role": "assistant", "content": "Hello"}]}', ("Hello", True)),
    "JSON as text": ('{"output": "Hello"}', ('{"output": "Hello"}', True)),
    "a chat object without an answer as text": ('{"choices": []}', ('{"choices": []}', True)),
    "parts of an odd type": ({"output": [says([{"type": {}}])]}, NO_ANSWER),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_outputs_are_read_as_an_answer(case: str) -> None:
    outputs, answer = ANSWERS[case]
    assert read_answer(outputs) == answer


SEARCH = ("search", {"q": "rag"})

CALLS: dict[str, tuple[Any, list[tuple[str, dict[str, Any] | None]]]] = {
    "choices": ({"choices": [{"message": ASKS}]}, [SEARCH]),
    "two calls of one message": ({"choices": [{"message": {**ASKS, "tool_calls": [CALL, CALL]}}]}, [SEARCH, SEARCH]),
    "a message": (ASKS, [SEARCH]),
    "messages": ({"messages": [USER, ASKS, TOOL, says("Hello")]}, [SEARCH]),
    "a list of messages": ([ASKS, ASKS], [SEARCH, SEARCH]),
    "Responses": ({"output": [{"type": "function_call", "name": "search", "arguments": '{"q": "rag"}'}]}, [SEARCH]),
    "LangChain": (says("", tool_calls=[{"name": "search", "args": {"q": "rag"}, "id": "c1"}]), [SEARCH]),
    "no arguments": (says(None, tool_calls=[{"function": {"name": "now"}}]), [("now", None)]),
    "a call without a name": (says(None, tool_calls=[{"function": {"arguments": "{}"}}, CALL]), [SEARCH]),
    "null calls": (says("Hello", tool_calls=None), []),
    "calls that are none": (says("Hello", tool_calls=[7, None, "search"]), []),
    "no calls": ({"choices": [{"message": says("Hello")}]}, []),
    "text": ("search(q='rag')", []),
    "null": (None, []),
}


@pytest.mark.parametrize("case", CALLS)
def test_outputs_are_read_as_tool_calls(case: str) -> None:
    outputs, calls = CALLS[case]
    assert read_tool_calls(outputs) == calls


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"q": "rag"}, {"q": "rag"}),
        ('{"q": "rag"}', {"q": "rag"}),
        ('{"q": NaN}', {"q": None}),
        ("rag", {"tool_input": "rag"}),
        ('{"q": "ra', {"tool_input": '{"q": "ra'}),
        ("[1, 2]", {"tool_input": "[1, 2]"}),
        (7, {"tool_input": 7}),
        ({}, {}),
        ("", None),
        (None, None),
    ],
)
def test_arguments_are_read_as_an_object(given: Any, arguments: dict[str, Any] | None) -> None:
    assert read_arguments(given) == arguments


@pytest.mark.parametrize(
    "item", [{"role": [], "content": "x"}, {"role": {}, "content": "x"}, {"type": [], "content": "x"}]
)
def test_a_role_that_is_no_text_is_no_message(item: Any) -> None:
    assert read_messages({"messages": [item]}) is None


@pytest.mark.parametrize(
    ("messages", "question"),
    [
        (user_message("What is RAG?"), "What is RAG?"),
        ([{"content": "", "role": "user"}], ""),
        ([], None),
        ([{"role": "assistant", "content": "Hi"}], None),
        ([{"role": "user", "content": "Hi", "name": "Ann"}], None),
        ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], None),
        (user_message("a") + user_message("b"), None),
    ],
)
def test_a_lone_question_is_a_chat_of_one_plain_user_message(messages: Any, question: str | None) -> None:
    assert lone_question(messages) == question
