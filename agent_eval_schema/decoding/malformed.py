"""Cells that must hold JSON and do not: what their text is instead."""

from __future__ import annotations

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import MALFORMED_JSON
from agent_eval_schema.text.jsontext import Malformed
from agent_eval_schema.text.python_text import python_value


def explain_malformed(problem: Malformed, text: str) -> Finding:
    """The finding for a text that is not JSON."""
    return written_by_python(text) or Finding(problem.rule, problem.message)


def written_by_python(text: str) -> Finding | None:
    """The finding for a text that is Python's `str` of a list or an object; None for any other text."""
    found = python_value(text)
    if found is None:
        return None
    noun = "a list" if isinstance(found, list) else "an object"
    message = f"expected JSON, got the text that Python writes of {noun}"
    return Finding(MALFORMED_JSON, message, hint="write the cell with json.dumps; `--fix` reads it")
