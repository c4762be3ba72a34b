"""What an agent returned → its answer and the calls that it made.

    "text"                                                     answer
    {"response": …, "predicted_trajectory": […] | "[…]"}       as documented for a function of the prompt
    {"output": …, "intermediate_steps": [(action, …), …]}      LangChain's agents
    {"messages": […]}, a message, a list of messages           LangGraph, LangChain, OpenAI
    anything that chat.py reads                                OpenAI completions and responses, {"answer": …} …

Objects of pydantic are read as their dump, a DataFrame or list of one row as that row.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd
from msgspec import Struct

from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import decode_column
from agent_eval_schema.decoding.values import FAILED
from agent_eval_schema.issues import Severity
from agent_eval_schema.metrics.batch.columns import PREDICTED
from agent_eval_schema.rules import RULES
from agent_eval_schema.schema import ToolCall
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.depth import STAND_IN, is_too_deep
from agent_eval_schema.text.describe import describe


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
    return "role" in value or value.get("type") in chat.LANGCHAIN_ROLES


# ---------------------------------------------------------------------------------------------------------------------
# the forms, in the order in which they are tried
def _read_documented(value: dict[str, Any]) -> Answer:
    response, failed = _text(value.get("response"))
    given = value.get(PREDICTED)
    calls, problem = read_calls(given) if given is not None else (None, None)
    if response is None and PREDICTED not in value:
        return _no_answer(f"an object whose response is {describe(value.get('response'))}")
    return Answer(response, given if calls is None and not is_too_deep(_json_text(given)) else calls, problem or failed)


def _read_steps(value: dict[str, Any]) -> Answer:
    response, failed = _text(value.get("output"))
    steps = value["intermediate_steps"]
    actions = [step[0] if isinstance(step, list) and step else step for step in steps or ()]
    calls = [_action(action) for action in actions]
    if None in calls:
        at = calls.index(None)
        return Answer(
            response, None, f"intermediate_steps[{at}]: expected an action with a tool, got {describe(actions[at])}"
        )
    return Answer(response, [c for c in calls if c is not None], failed)


def _action(action: Any) -> dict[str, Any] | None:
    """One action, as an object or as LangChain writes it into JSON (its fields are then in `kwargs`)."""
    if not isinstance(action, dict):
        return None
    fields = action["kwargs"] if isinstance(action.get("kwargs"), dict) else action
    name = fields.get("tool")
    if not isinstance(name, str) or not name.strip():
        return None
    return {"tool_name": name, "tool_input": chat.read_arguments(fields.get("tool_input")) or {}}


def _read_chat(value: Any) -> Answer:
    """Every format of chat.py; a value without a text is not an answer, unless tools were called. Only a whole
    conversation shows that no tool was called: a last message does not show the messages before it."""
    messages = _messages(value)
    given = value if messages is None else {"messages": messages}
    calls = [{"tool_name": n, "tool_input": a or {}} for n, a in chat.read_tool_calls(given)]
    response, known = chat.read_answer(given)
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


def _text(value: Any) -> tuple[str | None, str | None]:
    """An answer's text, or the reason why there is none. An answer may be a message or another chat object."""
    if value is None or isinstance(value, str):
        return value, None
    text, _ = chat.read_answer(value)
    return text, None if text is not None else f"response: expected text, got {describe(value)}"


def read_calls(value: Any) -> tuple[list[dict[str, Any]] | None, str | None]:
    """A trajectory as a cell of the data would be read, and its problems."""
    text, log = _json_text(value), IssueLog(1)
    found = decode_column(PREDICTED, Cells(not isinstance(value, str), [text], deep=is_too_deep(text)), log)[0]
    if found is not FAILED and found is not None:
        return as_plain(found), None
    wrong = [note for note in log.notes if RULES[note[0]].severity is Severity.ERROR]
    return None, "; ".join(f"{path}: {message}" for _, _, path, message, _ in wrong) or f"{PREDICTED}: it is empty"


def _json_text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else msgspec.json.encode(_plain(value), enc_hook=str).decode()
    except RecursionError:  # an object that holds itself, or is deeper than the encoder goes
        return STAND_IN


def as_plain(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """Calls as cells hold them."""
    return [{"tool_name": c.tool_name, "tool_input": c.tool_input or {}} for c in calls]


def encode_plain(value: Any) -> bytes:
    """The JSON of an answer's part, with half characters replaced, which no file can hold."""
    return jsontext.encode(jsontext.cleaned(value))
