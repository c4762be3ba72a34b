"""Every shape in which agents write a request or an answer → chat messages, or text.

Used for the root span of a trace, for responses that are chat objects, and for logged payloads. Sources of the shapes:
the input schema of Databricks Agent Evaluation (docs.databricks.com), OpenAI's API reference, and measured traces.

    read_messages   "text" · {messages} · {query, history} · {input: text | items} · {question|prompt|text: "..."} ·
                    {args: [x]}
    read_answer     "text" · {choices} · {messages} · {output: [items]} · {content} · {response|answer|...: "..."} · [x]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from agent_eval_schema.decoding.diagnose import is_type
from agent_eval_schema.schema import Message, Role
from agent_eval_schema.text import jsontext

Messages = list[dict[str, Any]]

DEEPEST_WRAPPER = 8
"""The number of nested wrappers that are searched for a request or an answer."""

LONE_TEXT_KEYS = ("question", "input", "prompt", "text")
QUESTION_NAMES = frozenset({*LONE_TEXT_KEYS, "request", "q", "message", "user_input", "user_message", "user_query"})
ROLES = frozenset(get_args(Role))
LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}

PARAMETERS = frozenset(
    [
        *("model", "temperature", "top_p", "top_k", "n", "stop", "seed", "stream", "stream_options", "user"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "tools", "tool_choice", "parallel_tool_calls"),
        *("functions", "function_call", "response_format", "frequency_penalty", "presence_penalty", "logit_bias"),
        *("logprobs", "top_logprobs", "modalities", "audio", "prediction", "reasoning", "reasoning_effort"),
        *("verbosity", "service_tier", "metadata", "store", "web_search_options", "safety_identifier"),
        *("prompt_cache_key", "extra_params", "custom_inputs", "databricks_options"),
    ]
)
"""The parameters of a chat request: those of OpenAI's API, of Databricks and of MLflow's agents."""


def is_parameter(key: str, value: Any) -> bool:
    """Whether a key of a request is a parameter of the chat API; the context of mlflow's ChatAgent is an object."""
    return key in PARAMETERS or (key == "context" and isinstance(value, dict))


def user_message(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def lone_question(messages: Sequence[dict[str, Any]]) -> str | None:
    """The text that `user_message` made these messages of; None if there is more in them."""
    first = messages[0] if len(messages) == 1 else {}
    if len(first) == 2 and first.get("role") == "user" and isinstance(first.get("content"), str):
        return str(first["content"])
    return None


def read_messages(value: Any, depth: int = 0) -> Messages | None:
    """The chat in the inputs of an agent, as OpenAI messages; None if they have no known format."""
    if isinstance(value, str):
        return user_message(value)
    if isinstance(value, list):
        return _chat(value)
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("messages"), list):
        return _chat(value["messages"])
    if isinstance(value.get("contents"), list):  # Gemini
        return _chat(value["contents"])
    if isinstance(value.get("new_message"), dict):  # a run of the ADK
        return _chat([value["new_message"]])
    if isinstance(value.get("query"), str):
        history = _chat(value.get("history") or [])
        return None if history is None else history + user_message(value["query"])
    if isinstance(value.get("input"), list):
        return _chat(value["input"])
    texts = [value[k] for k in LONE_TEXT_KEYS if isinstance(value.get(k), str)]
    if len(texts) == 1:
        return user_message(texts[0])
    arguments = [v for v in value.values() if v is not None]
    if len(arguments) == 1 and isinstance(value.get("args"), list) and len(value["args"]) == 1:
        arguments = value["args"]  # as MLflow's SDK for TypeScript logs the arguments of a function
        if isinstance(arguments[0], str | list):
            return read_messages(arguments[0], depth + 1)
    # A traced `def predict(request)` logs {"request": {...}}: the one argument is the request.
    wrapped = len(arguments) == 1 and isinstance(arguments[0], dict) and depth < DEEPEST_WRAPPER
    return read_messages(arguments[0], depth + 1) if wrapped else None


def read_question(arguments: Any) -> str | None:
    """The question to a traced function (`def answer(q)`): its only argument, or the only one with such a name."""
    if not isinstance(arguments, dict):
        return None
    named = {name: value for name, value in arguments.items() if value is not None}
    texts = [value for name, value in named.items() if len(named) == 1 or name in QUESTION_NAMES]
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) and texts[0].strip() else None


def read_inputs(inputs: dict[str, Any]) -> Any:
    """The request in the inputs of an agent: messages or a query as they are, for their reader to judge, else the chat
    that the inputs contain; None if they have no known format. Other parts of the inputs are not part of the
    request."""
    filled = jsontext.without_null_keys(inputs)
    messages, query = filled.get("messages"), {k: filled[k] for k in ("query", "history") if k in filled}
    if isinstance(messages, list) and messages and not any(_of_langchain(m) for m in messages):
        return {"messages": messages}  # a query in addition to them is an argument of the agent
    if isinstance(query.get("query"), str) and isinstance(query.get("history", []), list):
        return query
    if messages == []:
        return {"messages": []} if filled.keys() == {"messages"} else None
    chat = read_messages(inputs)
    return chat if chat is None else {"messages": chat} if chat else inputs


def _chat(items: Any) -> Messages | None:
    if not isinstance(items, list):
        return None
    if all([is_plain(m) for m in items]):
        return items
    # The Responses API puts the model's reasoning between the messages; it is not a message.
    spoken = [item for item in items if not (isinstance(item, dict) and item.get("type") == "reasoning")]
    messages = [message for item in spoken for message in of_parts(item) or [_message(item)]]
    return messages if all([is_plain(m) for m in messages]) or is_type(list[Message], messages) else None


def is_plain(message: Any) -> bool:
    """The commonest messages are right at a glance, which is quicker than the types."""
    return (
        message.__class__ is dict
        and (role := message.get("role")).__class__ is str
        and role in ROLES
        and message.get("content").__class__ is str
        and len(message) == 2
    )


def lacks_content(message: dict[str, Any]) -> bool:
    """Whether a message has no content, which is null only next to tool calls: its type cannot express that."""
    return message.get("content") is None and not message.get("tool_calls") and not message.get("function_call")


def _message(item: Any) -> Any:
    """One entry as an OpenAI message: items of the Responses API and LangChain messages are translated."""
    item = _of_langchain(item) or item
    if not isinstance(item, dict):
        return item
    kind = item.get("type")
    if kind == "function_call":
        call = {"id": item.get("call_id"), "type": "function", "function": _only(item, "name", "arguments")}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        output = item.get("output")
        content = output if isinstance(output, str) else jsontext.encode_text(output)
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": content}
    if "role" not in item and isinstance(kind, str) and kind in LANGCHAIN_ROLES:
        return without_nulls({**_only(item, "content", "name", "tool_call_id"), "role": LANGCHAIN_ROLES[kind]})
    if kind == "message":
        return {"role": item.get("role"), "content": join_text(item.get("content"))}
    return without_nulls(item)


def _of_langchain(item: Any) -> dict[str, Any] | None:
    """A message as LangChain writes it, its keys at the top; None if it is not a message.

    Known are {"type": "human", "content": …}, the same keys below `data` or the `kwargs` of a constructor, and a pair
    of role and text.
    """
    if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item):
        role = LANGCHAIN_ROLES.get(item[0], item[0])
        return {"role": role, "content": item[1]} if role in ROLES else None
    if not isinstance(item, dict) or "role" in item:
        return None
    keys = item["kwargs"] if item.keys() == {"kwargs"} else item.get("data", item)
    kind = keys.get("type") if keys is item.get("kwargs") and isinstance(keys, dict) else item.get("type")
    if kind == "constructor" and isinstance(item.get("id"), list) and item["id"]:
        kind, keys = str(item["id"][-1]).partition("Message")[0].lower(), item.get("kwargs")
    known = isinstance(kind, str) and kind in LANGCHAIN_ROLES and isinstance(keys, dict)
    return {**keys, "type": kind} if known else None


def without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    """The message without its null keys, except content, where null is a value (next to tool_calls)."""
    if None in message.values():
        return {k: v for k, v in message.items() if v is not None or k == "content"}
    return message


def _only(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {k: item[k] for k in keys if k in item}


def join_text(content: Any) -> Any:
    """Content given as parts: their texts joined. Content with other parts, or none, comes back as it is."""
    if isinstance(content, list) and content:
        texts = [p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str)]
        return "".join(texts) if texts else content
    return content


def read_answer(value: Any) -> tuple[str | None, bool]:
    """The answer's text in the outputs of an agent, and whether their format is known. Text stays text, even JSON as
    the user requested it, unless it is that of a chat object.

    `(None, True)` means that there is no answer, `(None, False)` that the format is unknown.
    """
    text, known = _read_answer(value, 0)
    while text and text[0] == "{" and any(f'"{key}"' in text for key in _OF_CHAT_OBJECT):
        inner = jsontext.parse(text)
        answer = _read_answer(inner, 0)[0] if is_chat_object(inner) else None
        if answer is None:
            break
        text = answer
    return text, known


def _read_answer(value: Any, depth: int) -> tuple[str | None, bool]:
    if value is None or isinstance(value, str):
        return value, True
    if isinstance(value, list):
        alone = len(value) == 1 and depth < DEEPEST_WRAPPER
        return _read_answer(value[0], depth + 1) if alone else _last_assistant(value)
    if not isinstance(value, dict):
        return None, False
    if isinstance(value.get("choices"), list):
        choices = value["choices"]
        first = choices[0] if choices else {}
        message = first.get("message") if isinstance(first, dict) else None
        if isinstance(message, dict):
            return _text_of_content(message.get("content")), True
        text = first.get("text") if isinstance(first, dict) else None
        return (text, True) if isinstance(text, str) else (None, not choices)
    for key in ("messages", "output"):
        if isinstance(value.get(key), list):
            return _last_assistant(value[key])
    if (parts := of_parts(value)) is not None:
        return _last_assistant(parts)
    if "content" in value and ((text := _text_of_content(value["content"])) is not None or value["content"] is None):
        return text, True
    texts = [value[k] for k in ("response", "output", "answer", "result", "text") if isinstance(value.get(k), str)]
    return (texts[0], True) if len(texts) == 1 else (None, False)


def is_chat_object(value: Any) -> bool:
    """Whether a response is an object of a chat API (and not just any JSON that a model was asked to write)."""
    return isinstance(value, dict) and any(isinstance(value.get(k), list) for k in _OF_CHAT_OBJECT)


_OF_CHAT_OBJECT = ("choices", "messages", "output")


def _last_assistant(items: list[Any]) -> tuple[str | None, bool]:
    items = [message for item in items for message in of_parts(item) or [_of_langchain(item) or item]]
    spoken = [m for m in items if isinstance(m, dict) and _role(m) == "assistant"]
    for message in reversed(spoken):
        text = _text_of_content(message.get("content"))
        if text:
            return text, True
    return None, all(isinstance(m, dict) and (_role(m) or "type" in m) for m in items)


def _role(message: dict[str, Any]) -> Any:
    return message.get("role") or LANGCHAIN_ROLES.get(str(message.get("type")))


def _text_of_content(content: Any) -> str | None:
    joined = join_text(content)
    return joined if isinstance(joined, str) else None


def read_tool_calls(value: Any) -> list[tuple[str, dict[str, Any] | None]]:
    """The (name, arguments) of the tool calls in a model's output, in order."""
    spoken = [message for item in _spoken(value) for message in of_parts(item) or [item]]
    calls: list[tuple[str, dict[str, Any] | None] | None] = []
    for message in spoken:
        entries = [message] if message.get("type") == "function_call" else message.get("tool_calls")
        calls += map(_call, entries) if isinstance(entries, list) else ()
    return [c for c in calls if c is not None]


def tools_of_calls(messages: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The tool of each call in a chat, by the id of the call."""
    calls = [call for m in messages for call in m.get("tool_calls") or () if isinstance(call, dict)]
    named = [(call.get("id"), _call(call)) for call in calls]
    return {own: call[0] for own, call in named if isinstance(own, str) and call}


def _spoken(value: Any) -> Iterable[dict[str, Any]]:
    if isinstance(value, list):
        return [m for m in value if isinstance(m, dict)]
    if not isinstance(value, dict):
        return ()
    if isinstance(value.get("choices"), list):
        return [c["message"] for c in value["choices"] if isinstance(c, dict) and isinstance(c.get("message"), dict)]
    for key in ("messages", "output"):
        if isinstance(value.get(key), list):
            return [m for m in value[key] if isinstance(m, dict)]
    return [value]


def _call(entry: Any) -> tuple[str, dict[str, Any] | None] | None:
    """One call in OpenAI's form ({function: {name, arguments}}) or a flat one ({name, arguments | args})."""
    if not isinstance(entry, dict):
        return None
    call = entry["function"] if isinstance(entry.get("function"), dict) else entry
    name = call.get("name")
    return (name, read_arguments(call.get("arguments", call.get("args")))) if isinstance(name, str) else None


LONE_ARGUMENT = "tool_input"
"""The name of an argument that has none: a LangChain tool with one argument is called with its text. No tool has an
argument of this name, so that writers can tell it from one."""


def read_arguments(value: Any) -> dict[str, Any] | None:
    """A call's arguments as an object: JSON text of one is parsed, a lone value is the argument LONE_ARGUMENT."""
    if value is None or value == "":
        return None
    arguments = jsontext.structured(value)
    return arguments if isinstance(arguments, dict) else {LONE_ARGUMENT: value}


# ---------------------------------------------------------------------------------------------------------------------
# Messages that consist of parts → messages of OpenAI's form.
#
#   {role, parts: [{type: "text", content}, {type: "tool_call", id, name, arguments}, {type: "tool_call_response", id,
#                   response}]}                                                       GenAI conventions of OpenTelemetry
#   {role: "model", parts: [{text}, {function_call: {name, args}}, {function_response}]}                          Gemini
#   {role, content: [{type: "tool-call", toolName, input}, {type: "tool-result", toolCallId, output}]}         Vercel AI
#   {role, content: [{text}, {toolUse: {name, input}}, {toolResult: {toolUseId, content}}]}                      Bedrock
#
# Reasoning, images and files have no place in such a message.
_CALLS = {"function_call": "args", "functionCall": "args", "toolUse": "input"}
"""The keys of a part that is a call below a key of its own, and the key of its arguments."""

_RESULTS = {"function_response": "response", "functionResponse": "response", "toolResult": "content"}
_OF_PARTS = frozenset({"tool-call", "tool-result", "tool_call", "tool_call_response", *_CALLS, *_RESULTS})


def of_parts(message: Any) -> list[dict[str, Any]] | None:
    """The messages in one whose content is in parts, one for each result of a tool; None if it is no such message."""
    if not isinstance(message, dict):
        return None
    if "toolName" in message and "role" not in message:  # a call of Vercel's, without its message
        return of_parts({"role": "assistant", "parts": [{"type": "tool-call", **message}]})
    parts = message.get("parts")
    if not isinstance(parts, list):
        content = message.get("content")
        if isinstance(content, dict) and isinstance(content.get("parts"), list):  # a response of Gemini
            return of_parts({"role": "model", **content})
        parts = content
        if not isinstance(parts, list) or not any(isinstance(p, dict) and _is_part(p) for p in parts):
            return None
    role = "assistant" if message.get("role") == "model" else message.get("role") or "user"
    objects = [part for part in parts if isinstance(part, dict)]
    texts = [text for text in map(_text_of_part, objects) if text is not None] + [
        p for p in parts if isinstance(p, str)
    ]
    calls = [call for call in map(_call_of_part, objects) if call is not None]
    results = [result for result in map(_result, objects) if result is not None]
    if results and not texts and not calls:
        return results
    spoken: dict[str, Any] = {"role": role, "content": "".join(texts) if texts or not calls else None}
    if calls:
        spoken["tool_calls"] = calls
    return [*results, spoken]


def _is_part(part: dict[str, Any]) -> bool:
    return str(part.get("type")) in _OF_PARTS or not _OF_PARTS.isdisjoint(part) or part.keys() == {"text"}


def _text_of_part(part: dict[str, Any]) -> str | None:
    if part.get("thought") is True or part.get("type", "text") not in ("text", "input_text", "output_text"):
        return None
    text = part.get("text", part.get("content"))
    return text if isinstance(text, str) else None


def _call_of_part(part: dict[str, Any]) -> dict[str, Any] | None:
    if part.get("type") == "tool_call":
        return _function(part.get("id"), part.get("name"), part.get("arguments"))
    if part.get("type") == "tool-call":
        return _function(part.get("toolCallId"), part.get("toolName"), part.get("input", part.get("args")))
    for key, arguments in _CALLS.items():
        inner = part.get(key)
        if isinstance(inner, dict):
            return _function(inner.get("id", inner.get("toolUseId")), inner.get("name"), inner.get(arguments))
    return None


def _function(identity: Any, name: Any, arguments: Any) -> dict[str, Any] | None:
    return function_call(name, arguments, identity) if isinstance(name, str) else None


def function_call(name: Any, arguments: Any, identity: Any = None) -> dict[str, Any]:
    """A tool call of a message, as the API of OpenAI writes it."""
    text = arguments if isinstance(arguments, str) else jsontext.encode_text({} if arguments is None else arguments)
    function = {"name": name, "arguments": text}
    return {**({"id": identity} if isinstance(identity, str) else {}), "type": "function", "function": function}


def _result(part: dict[str, Any]) -> dict[str, Any] | None:
    if part.get("type") == "tool_call_response":
        return _answer(part.get("id"), part.get("response", part.get("result")))
    if part.get("type") == "tool-result":
        return _answer(part.get("toolCallId"), part.get("output", part.get("result")))
    for key, content in _RESULTS.items():
        inner = part.get(key)
        if isinstance(inner, dict):
            return _answer(inner.get("id", inner.get("toolUseId", inner.get("name"))), inner.get(content))
    return None


def _answer(identity: Any, value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else jsontext.encode(value).decode()
    return {"role": "tool", **({"tool_call_id": identity} if isinstance(identity, str) else {}), "content": text}
