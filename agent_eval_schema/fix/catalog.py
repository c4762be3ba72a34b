"""FIXES: which function may fix which columns, and to which effect."""

from __future__ import annotations

from msgspec import Struct

from agent_eval_schema.decoding.columns import SHAPES
from agent_eval_schema.fix import effects, values
from agent_eval_schema.fix.effects import Effect
from agent_eval_schema.fix.values import entries, in_chats
from agent_eval_schema.formats.ragas import LISTS
from agent_eval_schema.schema import COLUMNS


class Fix(Struct, frozen=True):
    """One fix: the columns whose cells it may touch, and its effect.

    The docstring of `apply` has the reason why it is safe.
    """

    columns: tuple[str, ...]
    effect: Effect
    apply: values.FixFunction


_CONTEXTS = ("expected_retrieved_context", "retrieved_context")
_TRAJECTORIES = ("predicted_trajectory", "reference_trajectory")
_TEXTS = ("expected_facts", "guidelines")
_OBJECTS = ("custom_expected", "tags")
_STRUCTURED = ("request", *_CONTEXTS, *_TRAJECTORIES, *_TEXTS)

FIXES: tuple[Fix, ...] = (
    Fix((*_STRUCTURED, *_OBJECTS, *LISTS), effects.READ_PYTHON_TEXT, values.python_text),
    Fix(("request", "expected_response", *SHAPES), effects.MADE_BLANK_NULL, values.blank_to_null),
    Fix(_STRUCTURED, effects.READ_JSON_TEXT, values.opened_json_text),
    Fix(("request",), effects.PUT_MESSAGES_INTO_OBJECT, values.messages_to_object),
    Fix(("request",), effects.RENAMED_REQUEST_KEY, values.request_keys),
    Fix(
        ("request",),
        effects.PUT_MESSAGE_INTO_LIST,
        in_chats(lambda v: [v] if isinstance(v, dict) else values.opened_json_text(v)),
    ),
    Fix(("request",), effects.READ_MESSAGE_TEXT, in_chats(entries(values.opened_json_text))),
    Fix(("request",), effects.WROTE_ROLE, in_chats(entries(values.message_role))),
    Fix(("request",), effects.RENAMED_MESSAGE_KEY, in_chats(entries(values.message_content))),
    Fix(_TEXTS, effects.PUT_TEXT_INTO_LIST, values.text_to_list),
    Fix(("guidelines",), effects.PUT_NAMED_TEXT_INTO_LIST, values.named_texts),
    Fix(_TEXTS, effects.WROTE_ENTRY_AS_TEXT, entries(values.number_to_text)),
    Fix(_TEXTS, effects.DROPPED_BLANK_ENTRY, values.without_blanks),
    Fix(("request_id", "expected_response"), effects.WROTE_NUMBER_AS_TEXT, values.number_to_text),
    Fix(_CONTEXTS, effects.PUT_DOCUMENT_INTO_LIST, values.document_to_list),
    Fix(_CONTEXTS, effects.READ_DOCUMENT_TEXT, entries(values.opened_json_text)),
    Fix(_CONTEXTS, effects.RENAMED_DOCUMENT_KEY, entries(values.document_content)),
    Fix(_CONTEXTS, effects.TOOK_DOC_URI, entries(values.document_uri)),
    Fix(_CONTEXTS, effects.WROTE_DOC_URI_AS_TEXT, entries(values.document_uri_text)),
    Fix(_TRAJECTORIES, effects.PUT_CALL_INTO_LIST, values.call_to_list),
    Fix(_TRAJECTORIES, effects.READ_CALL_TEXT, entries(values.opened_json_text)),
    Fix(_TRAJECTORIES, effects.TOOK_CALL_OUT, entries(values.call_function)),
    Fix(_TRAJECTORIES, effects.RENAMED_TOOL_NAME, entries(values.call_name)),
    Fix(_TRAJECTORIES, effects.RENAMED_TOOL_INPUT, entries(values.call_input)),
)
"""In the order in which they are applied to a cell."""

FIXES_OF: dict[str, tuple[Fix, ...]] = {
    name: found for name in (*COLUMNS, *LISTS) if (found := tuple(r for r in FIXES if name in r.columns))
}
"""The fixes of each column that has any, in order: ours, and those of Ragas that hold lists."""

CODES_OF = {name: frozenset(code for fix in fixes for code in fix.effect.codes) for name, fixes in FIXES_OF.items()}
"""The codes of the issues that may be fixed in each column."""
