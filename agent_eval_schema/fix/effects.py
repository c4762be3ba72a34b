"""The effects of fixes, in the words of `explain`, and the issues that they resolve.

The functions that do it are elsewhere (values.py), as they need Arrow: `explain` starts without it.
"""

from typing import NamedTuple

from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import columns, expectations, reading, requests, retrieval, tools


class Effect(NamedTuple):
    """The effect of a fix, in a few words, and the codes that it may resolve."""

    what: str
    codes: tuple[str, ...]


_EFFECTS: list[Effect] = []


def _effect(what: str, *rules: Rule) -> Effect:
    effect = Effect(what, tuple(rule.code for rule in rules))
    _EFFECTS.append(effect)
    return effect


_FACTS_OR_GUIDELINES = (expectations.EXPECTED_FACTS_SHAPE, expectations.GUIDELINES_SHAPE)

READ_PYTHON_TEXT = _effect("read the text that Python wrote of it", reading.MALFORMED_JSON, reading.PYTHON_LIST)
MADE_BLANK_NULL = _effect(
    "made blank text null",
    requests.BLANK_REQUEST,
    expectations.BLANK_EXPECTATION,
    *_FACTS_OR_GUIDELINES,
    expectations.CUSTOM_EXPECTED_SHAPE,
    retrieval.CONTEXT_SHAPE,
    tools.TRAJECTORY_SHAPE,
    columns.CELL_TYPE,
)
READ_JSON_TEXT = _effect("read the JSON text", requests.JSON_TEXT_REQUEST)
PUT_MESSAGES_INTO_OBJECT = _effect("put the messages into an object", requests.REQUEST_TYPE)
RENAMED_REQUEST_KEY = _effect("renamed a key of the request", requests.REQUEST_KEY)
PUT_MESSAGE_INTO_LIST = _effect("put the single message into a list", requests.REQUEST_TYPE)
READ_MESSAGE_TEXT = _effect("read a message's JSON text", requests.MESSAGE_SHAPE)
WROTE_ROLE = _effect("wrote a role as the schema has it", requests.MESSAGE_ROLE, requests.MESSAGE_SHAPE)
RENAMED_MESSAGE_KEY = _effect("renamed a message's key to content", requests.MESSAGE_CONTENT)
PUT_TEXT_INTO_LIST = _effect("put the text into a list", *_FACTS_OR_GUIDELINES)
PUT_NAMED_TEXT_INTO_LIST = _effect("put a named text into a list", expectations.GUIDELINES_SHAPE)
WROTE_ENTRY_AS_TEXT = _effect("wrote a number as text", *_FACTS_OR_GUIDELINES)
DROPPED_BLANK_ENTRY = _effect("dropped a blank entry", *_FACTS_OR_GUIDELINES)
WROTE_NUMBER_AS_TEXT = _effect("wrote the number as text", columns.REQUEST_ID_TYPE, expectations.EXPECTED_RESPONSE_TYPE)
PUT_DOCUMENT_INTO_LIST = _effect("put the single document into a list", retrieval.CONTEXT_SHAPE)
READ_DOCUMENT_TEXT = _effect("read a document's JSON text", retrieval.DOCUMENT_SHAPE)
RENAMED_DOCUMENT_KEY = _effect("renamed a document's key to content", retrieval.DOCUMENT_KEY)
TOOK_DOC_URI = _effect(
    "took doc_uri from another key of the document", retrieval.MISSING_DOC_URI, retrieval.DOC_URI_VALUE
)
WROTE_DOC_URI_AS_TEXT = _effect("wrote a doc_uri as text", retrieval.DOC_URI_VALUE)
PUT_CALL_INTO_LIST = _effect("put the single call into a list", tools.TRAJECTORY_SHAPE)
READ_CALL_TEXT = _effect("read a call's JSON text", tools.TRAJECTORY_SHAPE)
TOOK_CALL_OUT = _effect("took the name and arguments out of `function`", tools.MISSING_TOOL_NAME, tools.TOOL_CALL_KEY)
RENAMED_TOOL_NAME = _effect("renamed a call's key to tool_name", tools.MISSING_TOOL_NAME, tools.TOOL_CALL_KEY)
RENAMED_TOOL_INPUT = _effect("renamed a call's key to tool_input", tools.TOOL_CALL_KEY)

RENAMED_COLUMN = _effect("renamed the column", columns.MISSPELLED_COLUMN)  # as a whole, see fix.py
MOVED = _effect("moved columns next to inputs into expectations", expectations.BESIDE_INPUTS)  # search.py: moves_in

FIXABLE: dict[str, tuple[str, ...]] = {
    code: tuple(effect.what for effect in _EFFECTS if code in effect.codes)
    for code in sorted({code for effect in _EFFECTS for code in effect.codes})
}
"""What can be done about the issues of each code, in the words of `explain`."""
