"""What can be run: a table of kinds, each with how it is called with a prompt.

object with .query(input=)            as documented: Reasoning Engine's own template
LangChain, LangGraph (.invoke)        {"messages": [...]}, {"input": ...}, or the prompt, by the runnable's own schema;
                                      the same for its bound method, graph.ainvoke
ChatAgent, ResponsesAgent of mlflow   messages, before the agent is logged as a model
mlflow pyfunc model (.predict)        by the model's signature
function, async function, callable    with the prompt

A LangChain runnable with a part that is only async (a node, a tool of an MCP server) is awaited. Every call of a graph
with a checkpointer is a conversation of its own.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agent_eval_schema.decoding.chat import user_message
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import visible


def _as_it_is(_: Any) -> Callable[[Any], Any]:
    return lambda prompt: prompt


class _Kind(NamedTuple):
    """A kind of runnable: how it is recognized, the function to call, and the conversion of a prompt into its input."""

    is_one: Callable[[Any], bool]
    method: Callable[[Any], Callable[[Any], Any]]
    make_input: Callable[[Any], Callable[[Any], Any]] = _as_it_is


def calling(runnable: Any, make_input: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """The function that calls a runnable with a prompt (a coroutine function if the runnable is one).

    `make_input` converts a prompt into the input of the runnable, where the kinds below choose the wrong one. Raises
    EvalSetError for an object that cannot be run, or whose input schema is unknown.
    """
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

    async def call_async(given: Any) -> Any:
        return await call(given)

    return call_async


def _query(runnable: Any) -> Callable[[Any], Any]:
    run = runnable.query
    return _like(run, lambda prompt: run(input=prompt))


# ---------------------------------------------------------------------------------------------------------------------
# LangChain, LangGraph
def _is_langchain(value: Any) -> bool:
    return any(cls.__module__.partition(".")[0].startswith(("langchain", "langgraph")) for cls in type(value).__mro__)


def _is_only_async(part: Any) -> bool:
    """Whether there is something in a runnable that only a coroutine can call."""
    if not _is_langchain(part):
        return False
    waits = callable(getattr(part, "afunc", None)) or callable(getattr(part, "coroutine", None))
    if waits and not callable(getattr(part, "func", None)):
        return True
    nodes, tools = (getattr(part, name, None) for name in ("nodes", "tools_by_name"))
    parts = [getattr(part, "bound", None), *(getattr(part, "steps", None) or ())]
    parts += [
        *(nodes if isinstance(nodes, dict) else {}).values(),
        *(tools if isinstance(tools, dict) else {}).values(),
    ]
    return any(map(_is_only_async, parts))


def _with_memory(runnable: Any, run: Callable[..., Any]) -> Callable[[Any], Any]:
    """A graph with a checkpointer requires a thread_id: rows do not continue one another. A graph that was configured
    with a thread_id keeps it."""
    configured = (getattr(runnable, "config", None) or {}).get("configurable") or {}
    if getattr(runnable, "checkpointer", None) in (None, False) or "thread_id" in configured:
        return run
    return _like(run, lambda given: run(given, config={"configurable": {"thread_id": uuid.uuid4().hex}}))


def _langchain_input(runnable: Any) -> Callable[[Any], Any]:
    keys = getattr(runnable, "input_keys", None)
    if isinstance(keys, list) and keys:  # an AgentExecutor, a Chain
        return lambda prompt: {keys[0]: prompt}
    return _by_schema(_input_schema(runnable))


def _input_schema(runnable: Any) -> dict[str, Any]:
    """The JSON Schema of a runnable's input; empty if it has none. A graph whose state pydantic cannot describe, such
    as a TypedDict before Python 3.12, still has the keys."""
    ask = getattr(runnable, "get_input_jsonschema", None)
    try:
        found: dict[str, Any] = ask() if callable(ask) else {}
    except Exception:
        state = getattr(getattr(runnable, "builder", None), "input_schema", None)
        found = {"type": "object", "properties": dict(getattr(state, "__annotations__", {}))}
    return found


def _by_schema(schema: dict[str, Any]) -> Callable[[Any], Any]:
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
    found = names[0] if len(names) == 1 else next((name for name in _USUAL if name in names), None)
    if found is None:
        keys, example = ", ".join(map(visible, names)), visible(names[0])
        raise EvalSetError(
            f"the runnable takes an object with the keys {keys}: name the key of the prompt, for example "
            f'make_input=lambda prompt: {{"{example}": prompt}}'
        )
    return found


def messages_of(prompt: Any) -> Any:
    """A prompt as chat messages: those that it holds, or one of the user."""
    if isinstance(prompt, dict) and isinstance(prompt.get("messages"), list):
        return prompt["messages"]
    return user_message(prompt) if isinstance(prompt, str) else prompt


# ---------------------------------------------------------------------------------------------------------------------
# mlflow
_AGENTS = {"ChatAgent": "messages", "ResponsesAgent": "input"}
"""The base classes of mlflow's agents, and where their requests have the messages."""


def _agent_key(runnable: Any) -> str | None:
    classes = (cls for cls in type(runnable).__mro__ if cls.__module__.startswith("mlflow."))
    return next((_AGENTS[cls.__name__] for cls in classes if cls.__name__ in _AGENTS), None)


def _agent_input(runnable: Any) -> Callable[[Any], Any]:
    key = _agent_key(runnable)
    return lambda prompt: {key: messages_of(prompt)}


def _pyfunc_input(model: Any) -> Callable[[Any], Any]:
    signature = getattr(model.metadata, "signature", None)
    inputs = getattr(signature, "inputs", None)
    names = [n for n in (inputs.input_names() if inputs is not None else ()) if isinstance(n, str)]
    if "messages" in names:  # a ChatModel, a ChatAgent
        return lambda prompt: {"messages": messages_of(prompt)}
    if "input" in names and len(names) > 1:  # a ResponsesAgent
        return lambda prompt: {"input": messages_of(prompt)}
    if not names:
        return lambda prompt: [prompt]
    key = _key_of(names)
    return lambda prompt: [{key: prompt}]


_KINDS = (
    _Kind(lambda r: callable(getattr(r, "query", None)), _query),
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
    _Kind(callable, lambda r: r),
)
