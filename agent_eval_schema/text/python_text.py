"""Text that Python's `str` wrote of a list or an object, as `DataFrame.to_csv` and `csv.DictWriter` do.

"['You have 12 days.', 'Leave is paid.']"      not JSON, and not a retrieved text
"""

from __future__ import annotations

import ast
from typing import Any

from agent_eval_schema.issues import Finding
from agent_eval_schema.rules.reading import MALFORMED_JSON
from agent_eval_schema.text import jsontext
from agent_eval_schema.text.jsontext import Malformed


def python_value(text: Any) -> list[Any] | dict[str, Any] | None:
    """The list or object of which Python wrote exactly this text; None for any other text, and for NaN, text that was
    cut off and values that JSON does not have."""
    if not isinstance(text, str) or not jsontext.is_structured(text) or len(text) > LONGEST:
        return None
    try:
        found = ast.literal_eval(text.strip())
        exact = repr(found) == text.strip()
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, list | dict) and exact and _is_json_like(found) else None


LONGEST = 1 << 20
"""Python's parser takes a hundred times the memory of the text."""


def _is_json_like(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json_like, value))
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json_like(v) for k, v in value.items())
    return value is None or isinstance(value, str | int | float)


# ---------------------------------------------------------------------------------------------------------------------
# cells that must hold JSON and do not
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
