"""What can be run: a table of kinds, each with how it is called with a prompt.

object with .query(input=)            as documented: Reasoning Engine's own template
LangChain, LangGraph (.invoke)        {"messages": [...]}, {"input": ...}, or the prompt, by the runnable's own schema
mlflow pyfunc model (.predict)        by the model's signature
function, async function, callable    with the prompt
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from agent_eval_schema.chat import user_message
from agent_eval_schema.diagnose import describe
from agent_eval_schema.issues import EvalSetError


class _Kind(NamedTuple):
    is_one: Callable[[Any], bool]
    call: Callable[[Any], Callable[[Any], Any]]


def calling(runnable: Any, make_input: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """The function that calls a runnable with a prompt (a coroutine function if the runnable is one).

    `make_input` makes of a prompt what the runnable is called with, where the kinds below guess wrong. Raises
    EvalSetError for something that cannot be run.
    """
    kind = next((kind for kind in _KINDS if kind.is_one(runnable)), None)
    if kind is None:
        known = "a function, or an object with .query(input=), .invoke or .predict"
        raise EvalSetError(f"cannot run {describe(runnable)}: expected {known}")
    return _composed(_method(runnable), make_input) if make_input else kind.call(runnable)


def _method(runnable: Any) -> Callable[[Any], Any]:
    """The method that a runnable is run by."""
    if callable(getattr(runnable, "query", None)):
        return _keyword(runnable.query, "input")
    for name in ("invoke", "predict"):
        if callable(getattr(runnable, name, None)) and not inspect.isfunction(runnable):
            found: Callable[[Any], Any] = getattr(runnable, name)
            return found
    return runnable  # type: ignore[no-any-return]


def _composed(run: Callable[[Any], Any], make_input: Callable[[Any], Any]) -> Callable[[Any], Any]:
    if inspect.iscoroutinefunction(run):

        async def call_async(prompt: Any) -> Any:
            return await run(make_input(prompt))

        return call_async
    return lambda prompt: run(make_input(prompt))


def _keyword(run: Callable[..., Any], name: str) -> Callable[[Any], Any]:
    if inspect.iscoroutinefunction(run):

        async def call_async(prompt: Any) -> Any:
            return await run(**{name: prompt})

        return call_async
    return lambda prompt: run(**{name: prompt})


# ---------------------------------------------------------------------------------------------------------------------
# LangChain, LangGraph


def _is_langchain(runnable: Any) -> bool:
    return callable(getattr(runnable, "invoke", None))


def _langchain(runnable: Any) -> Callable[[Any], Any]:
    keys = getattr(runnable, "input_keys", None)
    if isinstance(keys, list) and keys:  # an AgentExecutor, a Chain
        return _composed(runnable.invoke, lambda prompt: {keys[0]: prompt})
    return _composed(runnable.invoke, _by_schema(_input_schema(runnable)))


def _input_schema(runnable: Any) -> dict[str, Any]:
    """The JSON Schema that a runnable gives of its input; nothing if it has none."""
    ask = getattr(runnable, "get_input_jsonschema", None)
    try:
        found: dict[str, Any] = ask() if callable(ask) else {}
    except Exception:  # types that pydantic cannot write
        return {}
    return found


def _by_schema(schema: dict[str, Any]) -> Callable[[Any], Any]:
    properties = schema.get("properties") or {}
    if "messages" in properties:
        return lambda prompt: {"messages": messages_of(prompt)}
    names = [n for n in schema.get("required") or properties if n in properties]
    if schema.get("type") == "object" and len(names) == 1:
        return lambda prompt: {names[0]: prompt}
    return lambda prompt: prompt


def messages_of(prompt: Any) -> Any:
    """A prompt as chat messages: those that it holds, or one of the user."""
    if isinstance(prompt, dict) and isinstance(prompt.get("messages"), list):
        return prompt["messages"]
    return user_message(prompt) if isinstance(prompt, str) else prompt


# ---------------------------------------------------------------------------------------------------------------------
# mlflow


def _is_pyfunc(runnable: Any) -> bool:
    return callable(getattr(runnable, "predict", None)) and hasattr(runnable, "metadata")


def _pyfunc(model: Any) -> Callable[[Any], Any]:
    signature = getattr(model.metadata, "signature", None)
    inputs = getattr(signature, "inputs", None)
    names = [n for n in (inputs.input_names() if inputs is not None else ()) if isinstance(n, str)]
    if "messages" in names:  # a ChatModel, a ChatAgent
        return _composed(model.predict, lambda prompt: {"messages": messages_of(prompt)})
    if "input" in names and len(names) > 1:  # a ResponsesAgent
        return _composed(model.predict, lambda prompt: {"input": messages_of(prompt)})
    if names:
        return _composed(model.predict, lambda prompt: [{names[0]: prompt}])
    return _composed(model.predict, lambda prompt: [prompt])


_KINDS = (
    _Kind(lambda r: callable(getattr(r, "query", None)), lambda r: _keyword(r.query, "input")),
    _Kind(_is_langchain, _langchain),
    _Kind(_is_pyfunc, _pyfunc),
    _Kind(callable, lambda r: r),
)
