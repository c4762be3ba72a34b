"""JSON documents that can stand anywhere: in a file, a log or a page."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.describe import describe
from agent_eval_schema.text.visible import JSON_ESCAPE, escape_ci_commands


def json_text(document: Any) -> str:
    """A document as text that a terminal only shows, and in which a CI runner finds no command."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    # No line of it begins with a colon, so all may be looked at as one.
    safe = _UNSAFE.sub(lambda found: JSON_ESCAPE.format(ord(found.group())), text)
    return escape_ci_commands(safe, JSON_ESCAPE) + "\n"


# What a terminal would obey or reorder stands only inside of strings, where an escape means the same.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")


def versioned(body: Mapping[str, Any]) -> dict[str, Any]:
    """A document for other programs: `schema_version` changes if a key changes or goes, not if one is added."""
    return {"schema_version": 1, "tool": {"name": "agent-eval-schema", "version": __version__}, **body}


def summary_json(summary: Struct) -> str:
    """A summary as a document: its fields are the keys."""
    return json_text(versioned(msgspec.structs.asdict(summary)))


def plain_values(value: Any, depth: int = 100) -> Any:
    """What JSON can hold: absent cells are null, what is no data is its text, what is nested too deep its kind."""
    from agent_eval_schema.io.records import is_absent  # which needs numpy, and `rules` does not

    if is_absent(value):
        return None
    if isinstance(value, dict | list | tuple) and not depth:
        return describe(value)
    if isinstance(value, dict):
        return {str(k): plain_values(v, depth - 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(v, depth - 1) for v in value]
    try:
        return msgspec.to_builtins(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return plain_values(value.tolist(), depth) if hasattr(value, "tolist") else str(value)
