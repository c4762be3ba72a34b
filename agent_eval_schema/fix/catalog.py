"""FIXES: which function may fix which columns, and to which effect."""

from __future__ import annotations

from msgspec import Struct

from agent_eval_schema.decoding.columns import SHAPES
from agent_eval_schema.fix import effects
from agent_eval_schema.fix.effects import Effect
from agent_eval_schema.fix.values import (
    FixFunction,
    blank_to_null,
    call_function,
    call_input,
    call_name,
    call_to_list,
    document_content,
    document_to_list,
    document_uri,
    document_uri_text,
    entries,
    in_chats,
    message_content,
    message_role,
    messages_to_object,
    named_texts,
    number_to_text,
    opened_json_text,
    python_text,
    request_keys,
    text_to_list,
    without_blanks,
)
from agent_eval_schema.formats.ragas import LISTS
from agent_eval_schema.schema import COLUMNS


class Fix(Struct, frozen=True):
    """One fix: the columns whose cells it may touch, and its effect.

    The docstring of `apply` has the reason why it is safe.
    """

    columns: tuple[str, ...]
    effect: Effect
    apply: FixFunction


_CONTEXTS = ("expected_retrieved_context", "retrieved_context")
_TRAJECTORIES = ("predicted_trajectory", "reference_trajectory")
_TEXTS = ("expected_facts", "guidelines")
_OBJECTS = ("custom_expected", "tags")

FIXES: tuple[Fix, ...] = (
    Fix(("request", *_CONTEXTS, *_TRAJECTORIES, *_TEXTS, *_OBJECTS, *LISTS), effects.READ_PYTHON_TEXT, python_text),
    Fix(("request", "expected_response", *SHAPES), effects.MADE_BLANK_NULL, blank_to_null),
    Fix(("request", *_CONTEXTS, *_TRAJECTORIES, *_TEXTS), effects.READ_JSON_TEXT, opened_json_text),
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
    name: found for name in (*COLUMNS, *LISTS) if (found := tuple(r for r in FIXES if name in r.columns))
}
"""The fixes of each column that has any, in order: ours, and those of Ragas that hold lists."""

CODES_OF = {name: frozenset(code for fix in fixes for code in fix.effect.codes) for name, fixes in FIXES_OF.items()}
"""The codes of the issues that may be fixed in each column."""
