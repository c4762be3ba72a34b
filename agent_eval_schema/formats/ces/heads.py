"""The fields of an evaluation as a whole ⇄ request_id and tags of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_eval_schema.formats.ces.golden import SEPARATOR
from agent_eval_schema.formats.ces.parts import Object, without_none

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
    given = {
        "display_name": shown if evaluation.get("name") else None,
        "description": evaluation.get("description"),
        "tags": SEPARATOR.join(tags),
        "evaluation_groups": SEPARATOR.join(groups),
    }
    return {k: v for k, v in given.items() if isinstance(v, str) and v}


def head_by(identity_: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """The fields that follow from an ID and tags."""
    shown = tags.get("display_name")
    return without_none(
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
