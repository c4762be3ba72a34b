"""The parts of evaluations and their results, as rows contain them: texts, calls, expectations, ID and tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_eval_schema.formats.ces.golden import SEPARATOR
from agent_eval_schema.text.jsontext import without_null_keys

Object = Mapping[str, Any]
Row = dict[str, Any]

EXPECTATIONS_KEY = "expectations"
"""The key of custom_expected for the expectations that no column represents, as the API writes them."""

EVALUATION_KEY = "evaluation"
"""The key of custom_expected for the part of an evaluation that its rows do not represent: fields of it, and the
original turns of a row if its columns would give others."""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none if the value is not a list."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def each(items: Iterable[Object], key: str) -> list[dict[str, Any]]:
    """The objects that the items have under a key."""
    return [item[key] for item in items if isinstance(item.get(key), dict)]


def tool_name(call: Object) -> str:
    """The tool of a ToolCall or ToolResponse: `tool`, or toolset and ID with a slash between."""
    toolset = call.get("toolsetTool")
    if isinstance(toolset, dict):
        return f"{toolset.get('toolset', '')}/{toolset.get('toolId', '')}"
    return str(call.get("tool") or call.get("displayName") or "?")


def tool_call(call: Object) -> Row:
    return {"tool_name": tool_name(call), "tool_input": call.get("args") if isinstance(call.get("args"), dict) else {}}


def message_text(message: Object) -> str | None:
    """The text of a Message {role, chunks}."""
    chunks = objects(message.get("chunks"))
    texts = [t for c in chunks for t in (c.get("text"), c.get("transcript")) if isinstance(t, str)]
    return "".join(texts) if texts else None


def joined_text(messages: Iterable[Object]) -> str | None:
    """The texts of messages as one; None if there is none."""
    texts = [text for message in messages if (text := message_text(message)) is not None]
    return "\n".join(texts) if texts else None


def expected_text(expected: Sequence[Object]) -> tuple[str | None, list[str]]:
    """The expected text, and the agents that say it."""
    responses = each(expected, "agentResponse")
    return joined_text(responses), [r["role"] for r in responses if isinstance(r.get("role"), str)]


def expected_calls(expected: Sequence[Object]) -> list[Row] | None:
    """The expected calls; an empty list is an expectation only where it is explicit."""
    calls = list(map(tool_call, each(expected, "toolCall")))
    return calls or ([] if any(e.get("noToolCalls") is True for e in expected) else None)


def has_column(expectation: Object) -> bool:
    """Whether the columns of a row represent all of an expectation."""
    call, response = expectation.get("toolCall"), expectation.get("agentResponse")
    if isinstance(call, dict):
        return expectation.keys() == {"toolCall"} and call.keys() == {"tool", "args"}
    if isinstance(response, dict):
        chunks = objects(response.get("chunks"))
        plain = all(chunk.keys() == {"text"} for chunk in chunks) and len(chunks) == 1
        return expectation.keys() == {"agentResponse"} and response.keys() <= {"role", "chunks"} and plain
    return expectation == {"noToolCalls": True}


# ---------------------------------------------------------------------------------------------------------------------
# the fields of an evaluation as a whole ⇄ request_id and tags of its rows
HEAD = ("name", "displayName", "description", "tags")
HEAD_TAGS = ("display_name", "description", "tags")
"""The fields of an evaluation that are read here, and their tags."""


def identity(evaluation: Object) -> str:
    """The id of an evaluation: the last part of its resource name, else its display name."""
    name = evaluation.get("name")
    return str(name).rpartition("/")[2] if name else str(evaluation.get("displayName") or "evaluation")


def head_tags(evaluation: Object, groups: Sequence[str] = ()) -> dict[str, str]:
    """The tags of an evaluation's rows; the display name only where the id is another."""
    tags = [t for t in evaluation.get("tags") or () if isinstance(t, str)]
    shown = evaluation.get("displayName")
    texts = {
        "display_name": shown if evaluation.get("name") else None,
        "description": evaluation.get("description"),
        "tags": SEPARATOR.join(tags),
        "evaluation_groups": SEPARATOR.join(groups),
    }
    return {k: v for k, v in texts.items() if isinstance(v, str) and v}


def head_by(identity_: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The fields that follow from an ID and tags."""
    shown = tags.get("display_name")
    return without_null_keys(
        {
            "name": identity_ if shown else None,
            "displayName": shown or identity_,
            "description": tags.get("description"),
            "tags": _items(tags.get("tags")) or None,
        }
    )


def groups_by(tags: Mapping[str, str]) -> list[str]:
    """The names of the datasets of a row, which only the CSV has."""
    return _items(tags.get("evaluation_groups"))


def _items(text: str | None) -> list[str]:
    return [item for item in (text or "").split(SEPARATOR) if item]
