"""FIXES: which function may fix which columns, and the issues that it settles."""

from __future__ import annotations

from msgspec import Struct

from agent_eval_schema.decoding.columns import SHAPES
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
from agent_eval_schema.issues import Rule
from agent_eval_schema.rules import columns, expectations, reading, requests, retrieval, tools
from agent_eval_schema.schema import COLUMNS


class Fix(Struct, frozen=True):
    """One fix: the columns whose cells it may touch, the codes that it may settle, and its effect in a few words.

    The docstring of `apply` has the reason why it is safe.
    """

    columns: tuple[str, ...]
    codes: tuple[str, ...]
    what: str
    apply: FixFunction


def _codes(*rules: Rule) -> tuple[str, ...]:
    return tuple(r.code for r in rules)


_CONTEXTS = ("expected_retrieved_context", "retrieved_context")
_TRAJECTORIES = ("predicted_trajectory", "reference_trajectory")
_TEXTS = ("expected_facts", "guidelines")
_OBJECTS = ("custom_expected", "tags")
_FACTS_OR_GUIDELINES = (expectations.EXPECTED_FACTS_SHAPE, expectations.GUIDELINES_SHAPE)

FIXES: tuple[Fix, ...] = (
    Fix(
        ("request", *_CONTEXTS, *_TRAJECTORIES, *_TEXTS, *_OBJECTS, *LISTS),
        _codes(reading.MALFORMED_JSON),
        "read the text that Python wrote of it",
        python_text,
    ),
    Fix(
        ("request", "expected_response", *SHAPES),
        _codes(
            requests.BLANK_REQUEST,
            expectations.BLANK_EXPECTATION,
            *_FACTS_OR_GUIDELINES,
            expectations.CUSTOM_EXPECTED_SHAPE,
            retrieval.CONTEXT_SHAPE,
            tools.TRAJECTORY_SHAPE,
            columns.CELL_TYPE,
        ),
        "made blank text null",
        blank_to_null,
    ),
    Fix(
        ("request", *_CONTEXTS, *_TRAJECTORIES, *_TEXTS),
        _codes(requests.JSON_TEXT_REQUEST),
        "read the JSON text",
        opened_json_text,
    ),
    Fix(
        ("request",),
        _codes(requests.REQUEST_TYPE),
        "put the messages into an object",
        messages_to_object,
    ),
    Fix(("request",), _codes(requests.REQUEST_KEY), "renamed a key of the request", request_keys),
    Fix(
        ("request",),
        _codes(requests.REQUEST_TYPE),
        "put the single message into a list",
        in_chats(lambda v: [v] if isinstance(v, dict) else opened_json_text(v)),
    ),
    Fix(
        ("request",),
        _codes(requests.MESSAGE_SHAPE),
        "read a message's JSON text",
        in_chats(entries(opened_json_text)),
    ),
    Fix(
        ("request",),
        _codes(requests.MESSAGE_ROLE, requests.MESSAGE_SHAPE),
        "wrote a role as the schema has it",
        in_chats(entries(message_role)),
    ),
    Fix(
        ("request",),
        _codes(requests.MESSAGE_CONTENT),
        "renamed a message's key to content",
        in_chats(entries(message_content)),
    ),
    Fix(_TEXTS, _codes(*_FACTS_OR_GUIDELINES), "put the text into a list", text_to_list),
    Fix(("guidelines",), _codes(expectations.GUIDELINES_SHAPE), "put a named text into a list", named_texts),
    Fix(_TEXTS, _codes(*_FACTS_OR_GUIDELINES), "wrote a number as text", entries(number_to_text)),
    Fix(_TEXTS, _codes(*_FACTS_OR_GUIDELINES), "dropped a blank entry", without_blanks),
    Fix(
        ("request_id", "expected_response"),
        _codes(columns.REQUEST_ID_TYPE, expectations.EXPECTED_RESPONSE_TYPE),
        "wrote the number as text",
        number_to_text,
    ),
    Fix(_CONTEXTS, _codes(retrieval.CONTEXT_SHAPE), "put the single document into a list", document_to_list),
    Fix(_CONTEXTS, _codes(retrieval.DOCUMENT_SHAPE), "read a document's JSON text", entries(opened_json_text)),
    Fix(
        _CONTEXTS,
        _codes(retrieval.DOCUMENT_KEY),
        "renamed a document's key to content",
        entries(document_content),
    ),
    Fix(
        _CONTEXTS,
        _codes(retrieval.MISSING_DOC_URI, retrieval.DOC_URI_VALUE),
        "took doc_uri from another key of the document",
        entries(document_uri),
    ),
    Fix(_CONTEXTS, _codes(retrieval.DOC_URI_VALUE), "wrote a doc_uri as text", entries(document_uri_text)),
    Fix(_TRAJECTORIES, _codes(tools.TRAJECTORY_SHAPE), "put the single call into a list", call_to_list),
    Fix(_TRAJECTORIES, _codes(tools.TRAJECTORY_SHAPE), "read a call's JSON text", entries(opened_json_text)),
    Fix(
        _TRAJECTORIES,
        _codes(tools.MISSING_TOOL_NAME, tools.TOOL_CALL_KEY),
        "took the name and arguments out of `function`",
        entries(call_function),
    ),
    Fix(
        _TRAJECTORIES,
        _codes(tools.MISSING_TOOL_NAME, tools.TOOL_CALL_KEY),
        "renamed a call's key to tool_name",
        entries(call_name),
    ),
    Fix(_TRAJECTORIES, _codes(tools.TOOL_CALL_KEY), "renamed a call's key to tool_input", entries(call_input)),
)
"""In the order in which they are applied to a cell."""

FIXES_OF: dict[str, tuple[Fix, ...]] = {
    name: found for name in (*COLUMNS, *LISTS) if (found := tuple(r for r in FIXES if name in r.columns))
}
"""The fixes of each column that has any, in order: ours, and those of Ragas that hold lists."""

CODES_OF = {name: frozenset(code for fix in fixes for code in fix.codes) for name, fixes in FIXES_OF.items()}
"""The codes of the issues that may be fixed in each column."""

MOVED = "moved columns next to inputs into expectations"

FIXABLE: dict[str, tuple[str, ...]] = {
    columns.MISSPELT_COLUMN.code: ("renamed the column",),  # as a whole, see fix.py
    expectations.BESIDE_INPUTS.code: (MOVED,),  # of several columns, see moves.py
    **{code: tuple(r.what for r in FIXES if code in r.codes) for code in sorted({c for r in FIXES for c in r.codes})},
}
"""What can be done about the issues of each code, in the words of `explain`."""
