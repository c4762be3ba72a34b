"""What can be run, and what it returned: tables of kinds, each with how it is called with a prompt, or read.

object with .query(input=)            as documented: Reasoning Engine's own template
LangChain, LangGraph (.invoke)        {"messages": [...]}, {"input": ...}, or the prompt, by the runnable's own schema;
                                      the same for its bound method, graph.ainvoke
ChatAgent, ResponsesAgent of mlflow   messages, before the agent is logged as a model
mlflow pyfunc model (.predict)        by the model's signature
function, async function, callable    with the text of the prompt; its messages, or the request, if the first parameter
                                      is called `messages`, or `request` or `inputs`

A LangChain runnable with a part that is only async (a node, a tool of an MCP server) is awaited. Every call of a graph
with a checkpointer is a conversation of its own.

What an agent returned → its answer and the calls that it made:

    "text"                                                     answer
    {"response": …, "predicted_trajectory": […] | "[…]"}       as documented for a function of the prompt
    {"output": …, "intermediate_steps": [(action, …), …]}      LangChain's agents
    {"messages": […]}, a message, a list of messages           LangGraph, LangChain, OpenAI
    anything that chat.py reads                                OpenAI completions and responses, {"answer": …} …

Objects of pydantic are read as their dump, a DataFrame or list of one row as that row.
"""

import inspect
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from msgspec import Struct

from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.chat import user_message
from agent_eval_schema.decoding.columns import decode_column
from agent_eval_schema.decoding.requests import last_question
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.metrics.trajectory_columns import PREDICTED
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.choices import require_choice
from agent_eval_schema.text.depth import STAND_IN, is_too_deep
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible


class _Kind(NamedTuple):
    """A kind of runnable: how it is recognized, the function to call, and the conversion of a prompt into its input."""

    is_one: Callable[[Any], bool]
    method: Callable[[Any], Callable[[Any], Any]]
    make_input: Callable[[Any], Callable[[Any], Any]]


def agent_name(agent: Any) -> str:
    """The name of an agent: its own, or that of its function or class."""
    names = (getattr(agent, attribute, None) for attribute in ("name", "__name__"))
    return visible(next((name for name in names if name and isinstance(name, str)), type(agent).__name__))


def calling(runnable: Any, make_input: Callable[[Any], Any] | str | None = None) -> Callable[[Any], Any]:
    """The function that calls a runnable with a prompt (a coroutine function if the runnable is one).

    `make_input` converts a prompt into the input of the runnable, where the kinds below choose the wrong one: a
    function, or a name of INPUTS. Raises EvalSetError for an object that cannot be run, or whose input schema is
    unknown.
    """
    if isinstance(make_input, str):
        require_choice("make_input", make_input, list(INPUTS))
        make_input = INPUTS[make_input]
    if isinstance(runnable, type) and any(hasattr(runnable, name) for name in _METHODS):
        name = visible(runnable.__name__)
        raise EvalSetError(f"cannot run the class {name}: give an object of it, such as {name}()")
    kind = next((kind for kind in _KINDS if kind.is_one(runnable)), None)
    if kind is None:
        known = "a function, an object with .query(input=) or .invoke, or a model that mlflow loaded"
        raise EvalSetError(f"cannot run {describe(runnable)}: expected {known}")
    run, input_of = kind.method(runnable), make_input or kind.make_input(runnable)
    return _like(run, lambda prompt: run(input_of(prompt)))


_METHODS = ("query", "invoke", "predict")
"""The method that runs an object, if it is not a function."""


def _like(run: Callable[..., Any], call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A call of a function, which is a coroutine function if that is one."""
    if not inspect.iscoroutinefunction(run):
        return call

    async def call_async(prompt: Any) -> Any:
        return await call(prompt)

    return call_async


def _query(runnable: Any) -> Callable[[Any], Any]:
    run = runnable.query
    return _like(run, lambda prompt: run(input=prompt))


# --- LangChain, LangGraph
def _is_langchain(value: Any) -> bool:
    return any(cls.__module__.partition(".")[0].startswith(("langchain", "langgraph")) for cls in type(value).__mro__)


def _is_only_async(part: Any) -> bool:
    """Whether there is something in a runnable that only a coroutine can call."""
    if not _is_langchain(part):
        return False
    waits = callable(getattr(part, "afunc", None)) or callable(getattr(part, "coroutine", None))
    if waits and not callable(getattr(part, "func", None)):
        return True
    parts = [getattr(part, "bound", None), *(getattr(part, "steps", None) or ())]
    for named in (getattr(part, name, None) for name in ("nodes", "tools_by_name")):
        parts += named.values() if isinstance(named, dict) else ()
    return any(map(_is_only_async, parts))


def _with_memory(runnable: Any, run: Callable[..., Any]) -> Callable[[Any], Any]:
    """A graph with a checkpointer requires a thread_id, one per row; one that was configured with an ID keeps it."""
    configured = (getattr(runnable, "config", None) or {}).get("configurable") or {}
    if getattr(runnable, "checkpointer", None) in (None, False) or "thread_id" in configured:
        return run
    return _like(run, lambda prompt: run(prompt, config={"configurable": {"thread_id": uuid.uuid4().hex}}))


def _langchain_input(runnable: Any) -> Callable[[Any], Any]:
    keys = getattr(runnable, "input_keys", None)
    if isinstance(keys, list) and keys:  # an AgentExecutor, a Chain
        return lambda prompt: {keys[0]: prompt}
    # the JSON Schema of a runnable's input; empty if it has none. A graph whose state pydantic cannot describe, such as
    # a TypedDict before Python 3.12, still has the keys
    ask = getattr(runnable, "get_input_jsonschema", None)
    try:
        schema: dict[str, Any] = ask() if callable(ask) else {}
    except Exception:
        state = getattr(getattr(runnable, "builder", None), "input_schema", None)
        schema = {"type": "object", "properties": dict(getattr(state, "__annotations__", {}))}
    properties = schema.get("properties") or {}
    if "messages" in properties:
        return lambda prompt: {"messages": messages_of(prompt)}
    names = [n for n in schema.get("required") or properties if n in properties]
    if schema.get("type") != "object" or not names:
        return lambda prompt: prompt
    key = _key_of(names)
    return lambda prompt: {key: prompt}


_USUAL = ("input", "question", "query", "prompt", "request")
"""The key of a prompt, where the input has several."""


def _key_of(names: Sequence[str]) -> str:
    """The key under which a runnable takes its prompt."""
    key = names[0] if len(names) == 1 else next((name for name in _USUAL if name in names), None)
    if key is None:
        keys, example = ", ".join(map(visible, names)), visible(names[0])
        raise EvalSetError(
            f"the runnable takes an object with the keys {keys}: name the key of the prompt, for example "
            f'make_input=lambda prompt: {{"{example}": prompt}}'
        )
    return key


def messages_of(prompt: Any) -> Any:
    """A prompt as chat messages: those that it holds, or one of the user."""
    if isinstance(prompt, dict) and isinstance(prompt.get("messages"), list):
        return prompt["messages"]
    return user_message(prompt) if isinstance(prompt, str) else prompt


# --- mlflow
_AGENTS = {"ChatAgent": "messages", "ResponsesAgent": "input"}
"""The base classes of mlflow's agents, and where their requests have the messages."""


def _agent_key(runnable: Any) -> str | None:
    classes = (cls for cls in type(runnable).__mro__ if cls.__module__.startswith("mlflow."))
    return next((_AGENTS[cls.__name__] for cls in classes if cls.__name__ in _AGENTS), None)


def _agent_input(runnable: Any) -> Callable[[Any], Any]:
    key = _agent_key(runnable)
    return lambda prompt: {key: messages_of(prompt)}


def _pyfunc_input(model: Any) -> Callable[[Any], Any]:
    inputs = getattr(getattr(model.metadata, "signature", None), "inputs", None)
    names = [n for n in (inputs.input_names() if inputs is not None else ()) if isinstance(n, str)]
    if "messages" in names:  # a ChatModel, a ChatAgent
        return lambda prompt: {"messages": messages_of(prompt)}
    if "input" in names and len(names) > 1:  # a ResponsesAgent
        return lambda prompt: {"input": messages_of(prompt)}
    if not names:
        return lambda prompt: [prompt]
    key = _key_of(names)
    return lambda prompt: [{key: prompt}]


def _text_of(prompt: Any) -> Any:
    """The text of the last user message, if it has text; otherwise the whole prompt."""
    return (last_question(prompt) or prompt) if isinstance(prompt, dict) else prompt


def _request_of(prompt: Any) -> Any:
    return {"messages": user_message(prompt)} if isinstance(prompt, str) else prompt


INPUTS: dict[str, Callable[[Any], Any]] = {"text": _text_of, "messages": messages_of, "request": _request_of}
"""What a function can be called with, by the name of its first parameter (`inputs` is `request`; else `text`)."""


def _function_input(function: Callable[..., Any]) -> Callable[[Any], Any]:
    try:
        name = next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):  # of a builtin
        name = ""
    return INPUTS.get("request" if name == "inputs" else name, _text_of)


_KINDS = (
    _Kind(lambda r: callable(getattr(r, "query", None)), _query, lambda _: _text_of),
    _Kind(
        lambda r: callable(getattr(r, "invoke", None)),
        lambda r: _with_memory(r, r.ainvoke if _is_only_async(r) else r.invoke),
        _langchain_input,
    ),
    _Kind(  # `graph.invoke` or `graph.ainvoke`, which lets a user choose between the two
        lambda r: inspect.ismethod(r) and r.__name__ in ("invoke", "ainvoke") and _is_langchain(r.__self__),
        lambda r: _with_memory(r.__self__, r),
        lambda r: _langchain_input(r.__self__),
    ),
    _Kind(lambda r: _agent_key(r) is not None, lambda r: r.predict, _agent_input),
    _Kind(
        lambda r: callable(getattr(r, "predict", None)) and hasattr(r, "metadata"), lambda r: r.predict, _pyfunc_input
    ),
    _Kind(callable, lambda r: r, _function_input),
)


class Answer(Struct):
    """The result of reading: the text, the calls (None: unknown; as they were returned if they cannot be read, for the
    row to have their issues), the parts that could not be read; `failed` if there is no answer."""

    response: str | None = None
    trajectory: Any = None
    error: str | None = None
    failed: bool = False


def read_output(value: Any) -> Answer:
    """The answer in the return value of a runnable; never raises."""
    if isinstance(value, Generator | AsyncGenerator):
        return _no_answer("a generator: give a function that reads it to its end, and returns all of the answer")
    try:
        plain = _alone(_plain(value))
        for reads, read in _FORMS:
            if reads(plain):
                return read(plain)
    except Exception as error:  # reading objects of other packages may raise anything
        return _no_answer(f"{describe(value)} that cannot be read ({type(error).__name__})")
    return _no_answer(describe(plain))


def _no_answer(got: str) -> Answer:
    return Answer(error=f'expected a text or {{"response", "predicted_trajectory"}}, got {got}', failed=True)


def _plain(value: Any) -> Any:
    """JSON-like data; the objects of LangChain, pydantic and pandas as their content."""
    if isinstance(value, pd.DataFrame):
        return [_plain(row) for row in value.to_dict("records")]
    if isinstance(value, pd.Series):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tool") and hasattr(value, "tool_input"):  # AgentAction, before it dumps itself
        return {"tool": value.tool, "tool_input": _plain(value.tool_input)}
    for method in ("model_dump", "to_dict", "tolist"):
        if callable(getattr(value, method, None)) and not isinstance(value, type):
            return _plain(getattr(value, method)())
    return value


def _alone(value: Any) -> Any:
    """A batch of one row is that row; a list of one message is a list of messages."""
    if isinstance(value, list) and len(value) == 1 and not (isinstance(value[0], Mapping) and _is_message(value[0])):
        return _alone(value[0])
    return value


def _is_message(value: Mapping[str, Any]) -> bool:
    return "role" in value or str(value.get("type")) in chat.LANGCHAIN_ROLES


# --- the forms, in the order in which they are tried
def _read_documented(value: dict[str, Any]) -> Answer:
    response, failed = _answer_text(value.get("response"))
    cell = value.get(PREDICTED)
    calls, problem = parse_calls(cell) if cell is not None else (None, None)
    if response is None and PREDICTED not in value:
        return _no_answer(f"an object whose response is {describe(value.get('response'))}")
    return Answer(response, cell if calls is None and not is_too_deep(_json_text(cell)) else calls, problem or failed)


def _read_steps(value: dict[str, Any]) -> Answer:
    response, failed = _answer_text(value.get("output"))
    actions = [step[0] if isinstance(step, list) and step else step for step in value["intermediate_steps"]]
    calls = list(map(_action, actions))
    if None in calls:
        at = calls.index(None)
        problem = f"intermediate_steps[{at}]: expected an action with a tool, got {describe(actions[at])}"
        return Answer(response, None, problem)
    return Answer(response, calls, failed)


def _action(action: Any) -> dict[str, Any] | None:
    """One action, as an object or as LangChain writes it into JSON (its fields are then in `kwargs`)."""
    if not isinstance(action, dict):
        return None
    fields = action["kwargs"] if isinstance(action.get("kwargs"), dict) else action
    name, inputs = fields.get("tool"), chat.read_arguments(fields.get("tool_input")) or {}
    return {"tool_name": name, "tool_input": inputs} if isinstance(name, str) and name.strip() else None


def _read_chat(value: Any) -> Answer:
    """Every format of chat.py; a value without a text is not an answer, unless tools were called. Only a whole
    conversation shows that no tool was called: a last message does not show the messages before it."""
    messages = _messages(value)
    chat_ = value if messages is None else {"messages": messages}
    calls = [{"tool_name": n, "tool_input": a or {}} for n, a in chat.read_tool_calls(chat_)]
    response, known = chat.read_answer(chat_)
    if not known or (response is None and not calls):
        return _no_answer(describe(value) + (" without an assistant's answer" if known else ""))
    return Answer(response, calls if calls or (messages is not None and len(messages) > 1) else None)


def _messages(value: Any) -> list[Any] | None:
    """The conversation that a value is, if it is one."""
    if isinstance(value, dict):
        return [value] if _is_message(value) else value["messages"] if isinstance(value.get("messages"), list) else None
    return value if all(isinstance(item, dict) for item in value) else None


_FORMS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Answer]], ...] = (
    (lambda v: isinstance(v, str), lambda v: Answer(v)),
    (lambda v: isinstance(v, dict) and (PREDICTED in v or "response" in v), _read_documented),
    (lambda v: isinstance(v, dict) and isinstance(v.get("intermediate_steps"), list), _read_steps),
    (lambda v: isinstance(v, dict | list) and bool(v), _read_chat),
)


def _answer_text(value: Any) -> tuple[str | None, str | None]:
    """An answer's text, or the reason why there is none. An answer may be a message or another chat object."""
    if value is None or isinstance(value, str):
        return value, None
    text, _ = chat.read_answer(value)
    return text, None if text is not None else f"response: expected text, got {describe(value)}"


def parse_calls(value: Any) -> tuple[list[dict[str, Any]] | None, str | None]:
    """A trajectory as a cell of the data would be read, and its problems."""
    text, log = _json_text(value), IssueLog(1)
    calls = decode_column(PREDICTED, Cells(not isinstance(value, str), [text], deep=is_too_deep(text)), log)[0]
    if calls is not FAILED and calls is not None:
        return as_plain(calls), None
    wrong = [note for note in log.notes if RULES[note[0]].severity is Severity.ERROR]
    return None, "; ".join(f"{path}: {message}" for _, _, path, message, _ in wrong) or f"{PREDICTED}: it is empty"


def _json_text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else msgspec.json.encode(_plain(value), enc_hook=str).decode()
    except RecursionError:  # an object that holds itself, or is deeper than the encoder goes
        return STAND_IN


def as_plain(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [{"tool_name": c.tool_name, "tool_input": c.tool_input or {}} for c in calls]


def encode_plain(value: Any) -> bytes:
    """The JSON of an answer's part, with half characters replaced, which no file can hold."""
    return jsontext.encode(jsontext.cleaned(value))
