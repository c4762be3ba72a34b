"""Messages in parts → messages of OpenAI's form, for each vendor's form of a part."""

from __future__ import annotations

from typing import Any

import pytest

from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.chat import of_parts

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q":1}'}}

CALLS: dict[str, Any] = {
    "genai": {"parts": [{"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": 1}}]},
    "gemini": {"parts": [{"function_call": {"id": "c1", "name": "find", "args": {"q": 1}}}]},
    "gemini in camel case": {"parts": [{"functionCall": {"id": "c1", "name": "find", "args": {"q": 1}}}]},
    "vercel": {"content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"q": 1}}]},
    "vercel up to 4": {"content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "find", "args": '{"q":1}'}]},
    "bedrock": {"content": [{"toolUse": {"toolUseId": "c1", "name": "find", "input": {"q": 1}}}]},
}


@pytest.mark.parametrize("form", CALLS)
def test_calls(form: str) -> None:
    message = {"role": "assistant", **CALLS[form]}
    assert of_parts(message) == [{"role": "assistant", "content": None, "tool_calls": [CALL]}]
    assert chat.read_tool_calls([message]) == [("find", {"q": 1})]
    assert chat.read_answer([message]) == (None, True)


RESULTS: dict[str, Any] = {
    "genai": {"parts": [{"type": "tool_call_response", "id": "c1", "response": {"n": 2}}]},
    "genai of Google": {"parts": [{"type": "tool_call_response", "id": "c1", "result": {"n": 2}}]},
    "gemini": {"parts": [{"function_response": {"id": "c1", "name": "find", "response": {"n": 2}}}]},
    "vercel": {"content": [{"type": "tool-result", "toolCallId": "c1", "output": {"n": 2}}]},
    "bedrock": {"content": [{"toolResult": {"toolUseId": "c1", "content": {"n": 2}}}]},
}


@pytest.mark.parametrize("form", RESULTS)
def test_results_are_messages_of_the_tool(form: str) -> None:
    messages = [{"role": "user", "content": "Find it"}, {"role": "user", **RESULTS[form]}]
    assert chat.read_messages(messages) == [
        {"role": "user", "content": "Find it"},
        {"role": "tool", "tool_call_id": "c1", "content": '{"n":2}'},
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]},
        {"role": "model", "parts": [{"text": "I think", "thought": True}, {"text": "Hel"}, {"text": "lo"}]},
        {"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finish_reason": "STOP"},
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "I think"}, {"type": "text", "content": "Hello"}],
        },
        {"role": "assistant", "content": [{"text": "Hello"}]},
    ],
)
def test_the_text_of_an_answer(message: Any) -> None:
    assert chat.read_answer(message) == ("Hello", True)
    assert chat.read_answer([message]) == ("Hello", True)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "Hi"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"parts": "Hi"},
        17,
        None,
    ],
)
def test_other_messages_are_not_touched(message: Any) -> None:
    assert of_parts(message) is None


def test_requests_of_gemini_and_of_the_adk() -> None:
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    expected = [{"role": "user", "content": "Hi"}]
    assert chat.read_messages({"model": "gemini", "contents": contents}) == expected
    assert chat.read_messages({"user_id": "u", "new_message": contents[0]}) == expected
