"""Columns of plain text: request_id, response, expected_response, error, session_id."""

from collections.abc import Sequence
from typing import Any

from agent_eval_schema.cells.cells import Cells
from agent_eval_schema.cells.notes import IssueLog
from agent_eval_schema.decoding import chat
from agent_eval_schema.decoding.columns import whole_number
from agent_eval_schema.decoding.values import FAILED, TextColumn, Values
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import columns, expectations, reading, requests
from agent_eval_schema.schema import columns_of
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.describe import describe

TEXT_COLUMNS: dict[str, Rule] = {
    **{name: columns.CELL_TYPE for name in columns_of(str) if name not in ("response", "trace")},
    "expected_response": expectations.EXPECTED_RESPONSE_TYPE,
}
"""The columns of plain text, and the rule for a cell that is not plain text."""


# ---------------------------------------------------------------------------------------------------------------------
# plain text
def decode_text(name: str, cells: Cells, log: IssueLog) -> Values | TextColumn:
    """The texts of a column of TEXT_COLUMNS."""
    if plain := TextColumn.of(cells):
        return plain
    if not cells.json:
        values: Values = list(cells.texts)
    else:
        values = [None if text is None else _text_of_json(name, text, row, log) for row, text in enumerate(cells.texts)]
    if cells.nul:
        note_nul(name, values, log)
    if name == "expected_response":
        for row in range(len(values)) if cells.json else cells.suspects():
            value = values[row]
            if isinstance(value, str) and not value.strip():  # blank ground truth counts as none
                message = f"expected the ground truth, got {describe(value)}"
                log.add(expectations.BLANK_EXPECTATION, row, "expected_response", message)
                values[row] = None
    return values


def _text_of_json(name: str, text: str, row: int, log: IssueLog) -> Any:
    value = jsontext.parse(text)
    if isinstance(value, str):
        return value
    if name in ("request_id", "session_id") and isinstance(value, int | float) and not isinstance(value, bool):
        if name == "request_id":
            log.add(columns.REQUEST_ID_TYPE, row, name, f"expected text, got {describe(value)}")
        return str(whole_number(value))
    problem = value if isinstance(value, jsontext.Malformed) else None
    rule = problem.rule if problem else TEXT_COLUMNS.get(name) or columns.CELL_TYPE
    log.add(rule, row, name, problem.message if problem else f"expected text, got {describe(value)}")
    return FAILED


def note_nul(name: str, values: Sequence[Any], log: IssueLog) -> None:
    """Log the texts that contain a NUL character."""
    for row, value in enumerate(values):
        if isinstance(value, str) and "\0" in value:
            where = value.index("\0")
            log.add(reading.CONTROL_CHARACTER, row, name, f"expected text without NUL, got one at character {where}")


# ---------------------------------------------------------------------------------------------------------------------
# response
def decode_response(cells: Cells, log: IssueLog) -> Values | TextColumn:
    """The answers' texts. A chat object is accepted, as a value or as JSON text."""
    if plain := TextColumn.of(cells):
        return plain
    values: Values = list(cells.texts)
    if cells.json:
        for row, text in enumerate(cells.texts):
            if text is not None:
                value = jsontext.parse(text)
                values[row] = value if isinstance(value, str) else _answer(value, row, log)
    for row in range(len(values)) if cells.json else cells.suspects():
        text = values[row]
        if not isinstance(text, str):
            continue
        answer, _ = chat.read_answer(text)  # text stays text, unless it is that of a chat object
        if answer is not None and answer != text:
            log.add(requests.CHAT_OBJECT_RESPONSE, row, "response", _taken_from(jsontext.parse(text)))
            text = values[row] = answer
        if not text.strip():
            log.add(requests.BLANK_RESPONSE, row, "response", f"expected the agent's response, got {describe(text)}")
    if cells.nul:
        note_nul("response", values, log)
    return values


def _taken_from(value: Any) -> str:
    return f"the text was taken from {describe(value)}"


def _answer(value: Any, row: int, log: IssueLog) -> Any:
    if isinstance(value, jsontext.Malformed):
        log.add(value.rule, row, "response", value.message)
        return FAILED
    text, known = chat.read_answer(value)
    if text is None:
        got = f"{describe(value)}" + (" without an assistant's answer" if known else "")
        log.add(requests.RESPONSE_TYPE, row, "response", f"expected text or a chat object with an answer, got {got}")
        return FAILED
    log.add(requests.CHAT_OBJECT_RESPONSE, row, "response", _taken_from(value))
    return text
