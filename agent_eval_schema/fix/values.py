"""The fixes of a cell with exactly one interpretation, and why they are safe: pure functions on a cell's value.

A function returns the very same object if it changes nothing, and a new one otherwise: its argument is never
changed. It applies only where one reading fits; where two do (`url` and `source`, `text` and `page_content`) it leaves
the cell to its author. Whether a fix helped is decided in search.py, which validates the row again.

Left alone on purpose: `messages` next to `query`, JSON that was cut off, NaN, null entries of a list (the ranks of the
documents behind would move), a list of bare texts as documents (URI or content?), and all outputs of the agent.
"""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from agent_eval_schema.decoding.chat import ROLES
from agent_eval_schema.decoding.columns import SHAPES
from agent_eval_schema.decoding.requests import meant_of_value
from agent_eval_schema.fix import effects
from agent_eval_schema.fix.effects import Effect
from agent_eval_schema.formats.ragas import LISTS
from agent_eval_schema.schema import COLUMNS
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import python_value
from agent_eval_schema.text.spelling import ALIASES, is_unwritten, meant, meant_value, named_value, plain_name

FixFunction = Callable[[Any], Any]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _members(value: Any, fix: Callable[[str, Any], Any]) -> Any:
    """An object with its members fixed; anything else as it is."""
    if not isinstance(value, dict):
        return value
    fixed = {k: fix(k, v) for k, v in value.items()}
    return fixed if any(fixed[k] is not v for k, v in value.items()) else value


def entries(fix: FixFunction) -> FixFunction:
    """The fix of a list whose entries `fix` fixes."""

    def fix_entries(values: Any) -> Any:
        if not isinstance(values, list):
            return values
        fixed = [fix(v) for v in values]
        return fixed if any(m is not v for m, v in zip(fixed, values, strict=True)) else values

    fix_entries.__doc__ = fix.__doc__
    return fix_entries


# --- any cell that holds a list or an object
def opened_json_text(value: Any) -> Any:
    """Text that is, from end to end, the JSON of a list or an object: it has the same content, in quotes."""
    if isinstance(value, str) and jsontext.is_structured(value):
        content = jsontext.parse_exactly(value)
        return content if isinstance(content, list | dict) else value
    return value


def python_text(value: Any) -> Any:
    """Text that is exactly what Python's `str` writes of a list or an object (as a frame's `to_csv` does), in a cell
    that must be one: it has one reading, and NaN, cut-off text and other objects are not it."""
    content = python_value(value)
    return value if content is None else content


def blank_to_null(value: Any) -> Any:
    """Blank text has no content, like null. (A blank response may be an answer of the agent: it is not fixed.)"""
    return None if _is_blank(value) else value


# --- request
def messages_to_object(value: Any) -> Any:
    """A list of messages where the object around it is missing: every entry has a role, so it can only be the chat."""
    chat = isinstance(value, list) and value and all(isinstance(m, dict) and "role" in m for m in value)
    return {"messages": value} if chat else value


def request_keys(value: Any) -> Any:
    """Every key of the object is another name of `messages`, `query` or `history`, each meant once and of the right
    type: no part of the request remains under an unknown name."""
    if not isinstance(value, dict) or any(value.get(k) is not None for k in ("messages", "query")):
        return value
    right = {k: meant_of_value(meant(k, _REQUEST_KEYS), v) for k, v in value.items()}
    request = {r: value[k] for k, r in right.items() if r is not None}
    if None in right.values() or len(request) < len(right) or not all(_REQUEST_KEYS[r](v) for r, v in request.items()):
        return value
    return request if ("messages" in request) != ("query" in request) else value


def _is_chat(value: Any) -> bool:
    messages = [value] if isinstance(value, dict) else value
    return isinstance(messages, list) and all(isinstance(m, dict) for m in messages)


_REQUEST_KEYS: dict[str, Callable[[Any], bool]] = {
    "messages": _is_chat,
    "query": _is_text,
    "history": lambda v: v is None or _is_chat(v),
}


def in_chats(fix: FixFunction) -> FixFunction:
    """The fix of a request whose lists of messages `fix` fixes."""

    def fix_chats(value: Any) -> Any:
        return _members(value, lambda k, v: fix(v) if k in ("messages", "history") else v)

    fix_chats.__doc__ = fix.__doc__
    return fix_chats


def message_role(message: Any) -> Any:
    """A role in another notation (`User`), by its name in another library (human, ai, bot, model) or with a typo that
    is a close match of one role only: the speaker is the same. A role with a number or a name is not changed."""
    if not isinstance(message, dict):
        return message
    if isinstance(message.get("role"), str):
        if message["role"] in ROLES:
            return message
        role = meant_value(message["role"], ROLES)
        return {**message, "role": role} if role else message
    keys = [k for k in ALIASES["role"] if isinstance(message.get(k), str) and named_value(message[k], ROLES)]
    if message.get("role") is not None or len(keys) != 1:
        return message
    return with_key_renamed({**message, keys[0]: named_value(message[keys[0]], ROLES)}, keys[0], "role")


def message_content(message: Any) -> Any:
    """A message of a role and one text under another name: there is nothing else that the content could be."""
    if not isinstance(message, dict) or len(message) != 2 or "role" not in message:
        return message
    return with_lone_key_renamed(message, "content", ("content",), _is_text)


# --- expectations
def text_to_list(value: Any) -> Any:
    """A line of text as a list of one text. (Several lines, or parts between semicolons, may be several texts, and a
    placeholder is none.)"""
    is_one = _is_text(value) and not re.search(r"[\n;•]", value) and not jsontext.is_structured(value)
    return [value] if is_one and not is_unwritten(value) else value


def named_texts(value: Any) -> Any:
    """A named text where named lists are expected: a list of that one."""
    return _members(value, lambda _, v: text_to_list(v))


def without_blanks(value: Any) -> Any:
    """A blank entry has no content; a list of only blank entries is null, as blank ground truth counts as missing."""
    if isinstance(value, dict):
        content = _members(value, lambda _, v: _not_blank(v))
        return value if [] in content.values() else content  # the rest of a named list of blanks
    content = _not_blank(value)
    return value if content is value else content or None


def _not_blank(values: Any) -> Any:
    """A list without its blank texts, the same list if there are none."""
    if not isinstance(values, list) or not any(map(_is_blank, values)):
        return values
    return [v for v in values if not _is_blank(v)]


def number_to_text(value: Any) -> Any:
    """A whole number where text is expected: its digits. (A number with a fraction has more than one writing.)"""
    return str(value) if _is_whole(value) else value


# --- documents
def document_to_list(value: Any) -> Any:
    """A single document where a list is expected: a list of that one."""
    return [value] if isinstance(value, dict) and any(meant(k, _DOCUMENT) or k == "metadata" for k in value) else value


_DOCUMENT = ("doc_uri", "content")


def document_content(document: Any) -> Any:
    """The document's only text under another name (page_content, text, …) while `content` is absent."""
    return with_lone_key_renamed(document, "content", _DOCUMENT, lambda v: isinstance(v, str))


def document_uri(document: Any) -> Any:
    """An absent doc_uri that the document has elsewhere: `metadata.doc_uri`, else the only URI or path under another
    name, in the document or in its metadata. A bare word as `source` (the name of a system), and `id` (mostly the
    chunk's, not the document's) are not URIs. The metadata is not changed."""
    if not isinstance(document, dict) or blank_to_null(document.get("doc_uri")) is not None:
        return document
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    above = {k: str(v) for k, v in document.items() if _is_uri(k, v)}
    below = {str(v) for k, v in metadata.items() if _is_uri(k, v)}
    if _is_text(metadata.get("doc_uri")):
        below = {metadata["doc_uri"]}
    uris = {*above.values(), *below}
    if len(uris) != 1 or len(above) > 1:
        return document
    for key, uri in above.items():
        return with_key_renamed({**document, key: uri}, key, "doc_uri")
    return {"doc_uri": uris.pop(), **{k: v for k, v in document.items() if k != "doc_uri"}}


_PLACE = re.compile(r"/|\.\w{2,5}$")


def _is_uri(key: str, value: Any) -> bool:
    plain = plain_name(key)
    if plain in ("uri", "url", "source", "path"):
        return isinstance(value, str) and bool(_PLACE.search(value.strip()))
    named = plain != "id" and meant(key, _DOCUMENT) == "doc_uri"
    return named and (_is_text(value) or _is_whole(value))


def document_uri_text(document: Any) -> Any:
    """A whole number as doc_uri: its digits."""
    if not isinstance(document, dict) or not _is_whole(document.get("doc_uri")):
        return document
    return {**document, "doc_uri": str(document["doc_uri"])}


# --- tool calls
def call_to_list(value: Any) -> Any:
    """A single call where a list is expected: a list of that one."""
    return [value] if isinstance(value, dict) and any(meant(k, _CALL) for k in value) else value


_CALL = ("tool_name", "tool_input")


def call_function(call: Any) -> Any:
    """A call as the chat API of OpenAI writes it, name and arguments within `function`."""
    inner = call.get("function") if isinstance(call, dict) else None
    if not isinstance(inner, dict) or set(inner) != {"name", "arguments"} or any(k in call for k in _CALL):
        return call
    others = {k: v for k, v in call.items() if k != "function"}
    return {"tool_name": inner["name"], "tool_input": inner["arguments"], **others}


def call_name(call: Any) -> Any:
    """The call's only name under another key (name, tool, function) while `tool_name` is absent."""
    return with_lone_key_renamed(call, "tool_name", _CALL, _is_text)


def call_input(call: Any) -> Any:
    """The call's only arguments under another key (args, arguments, input, …) while `tool_input` is absent."""
    return with_lone_key_renamed(call, "tool_input", _CALL, lambda v: isinstance(opened_json_text(v), dict))


def with_lone_key_renamed(value: Any, right: str, known: tuple[str, ...], fits: Callable[[Any], bool]) -> Any:
    """An object without `right`, with the only key renamed that means it and fits; else the value as it is."""
    if not isinstance(value, dict) or value.get(right) is not None:
        return value
    keys = [k for k, v in value.items() if k not in known and meant(k, known) == right and fits(v)]
    return with_key_renamed(value, keys[0], right) if len(keys) == 1 else value


def with_key_renamed(value: dict[str, Any], wrong: str, right: str) -> dict[str, Any]:
    """The object with one key renamed, in its place; a null under the right name gives way."""
    return {right if k == wrong else k: v for k, v in value.items() if k != right}


# --- FIXES: which function may fix which columns, and to which effect
class Fix(Struct, frozen=True):
    """One fix: the columns whose cells it may touch, and its effect. The docstring of `apply` states why it is safe."""

    columns: tuple[str, ...]
    effect: Effect
    apply: FixFunction


_CONTEXTS = ("expected_retrieved_context", "retrieved_context")
_TRAJECTORIES = ("predicted_trajectory", "reference_trajectory")
_TEXTS = ("expected_facts", "guidelines")
_STRUCTURED = ("request", *_CONTEXTS, *_TRAJECTORIES, *_TEXTS)

FIXES: tuple[Fix, ...] = (
    Fix((*_STRUCTURED, *("custom_expected", "tags"), *LISTS), effects.READ_PYTHON_TEXT, python_text),
    Fix(("request", "expected_response", *SHAPES), effects.MADE_BLANK_NULL, blank_to_null),
    Fix(_STRUCTURED, effects.READ_JSON_TEXT, opened_json_text),
    Fix(("request",), effects.PUT_MESSAGES_INTO_OBJECT, messages_to_object),
    Fix(("request",), effects.RENAMED_REQUEST_KEY, request_keys),
    Fix(
        ("request",),
        effects.PUT_MESSAGE_INTO_LIST,
        in_chats(lambda v: [v] if isinstance(v, dict) else opened_json_text(v)),
    ),
    Fix(("request",), effects.READ_MESSAGE_TEXT, in_chats(entries(opened_json_text))),
    Fix(("request",), effects.WROTE_ROLE, in_chats(entries(message_role))),
    Fix(("request",), effects.RENAMED_MESSAGE_KEY, in_chats(entries(message_content))),
    Fix(_TEXTS, effects.PUT_TEXT_INTO_LIST, text_to_list),
    Fix(("guidelines",), effects.PUT_NAMED_TEXT_INTO_LIST, named_texts),
    Fix(_TEXTS, effects.WROTE_ENTRY_AS_TEXT, entries(number_to_text)),
    Fix(_TEXTS, effects.DROPPED_BLANK_ENTRY, without_blanks),
    Fix(("request_id", "expected_response"), effects.WROTE_NUMBER_AS_TEXT, number_to_text),
    Fix(_CONTEXTS, effects.PUT_DOCUMENT_INTO_LIST, document_to_list),
    Fix(_CONTEXTS, effects.READ_DOCUMENT_TEXT, entries(opened_json_text)),
    Fix(_CONTEXTS, effects.RENAMED_DOCUMENT_KEY, entries(document_content)),
    Fix(_CONTEXTS, effects.TOOK_DOC_URI, entries(document_uri)),
    Fix(_CONTEXTS, effects.WROTE_DOC_URI_AS_TEXT, entries(document_uri_text)),
    Fix(_TRAJECTORIES, effects.PUT_CALL_INTO_LIST, call_to_list),
    Fix(_TRAJECTORIES, effects.READ_CALL_TEXT, entries(opened_json_text)),
    Fix(_TRAJECTORIES, effects.TOOK_CALL_OUT, entries(call_function)),
    Fix(_TRAJECTORIES, effects.RENAMED_TOOL_NAME, entries(call_name)),
    Fix(_TRAJECTORIES, effects.RENAMED_TOOL_INPUT, entries(call_input)),
)
"""In the order in which they are applied to a cell."""

FIXES_OF: dict[str, tuple[Fix, ...]] = {
    name: fixes for name in (*COLUMNS, *LISTS) if (fixes := tuple(r for r in FIXES if name in r.columns))
}
"""The fixes of each column that has any, in order: ours, and those of Ragas that hold lists."""

CODES_OF = {name: frozenset(code for fix in fixes for code in fix.effect.codes) for name, fixes in FIXES_OF.items()}
"""The codes of the issues that may be fixed in each column."""
