"""The two naming conventions: `projects/p/locations/us/apps/a/tools/7f3e` of the API is `get_order` in an app package.

The user provides the map from display names to resource names. A name without an entry is not changed. Where a tool and
an agent have the same display name, the kind distinguishes them: `{"tools/refund": …, "agents/refund": …}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_eval_schema.formats.ces import schema

Names = Mapping[str, str]
"""Display name (or kind/display name) → resource name."""

_KIND = re.compile(r"/(\w+)/[^/]+$")


def kind_of(name: str) -> str:
    """The kind of a resource, from its name: `…/tools/7f3e` → `tools`."""
    found = _KIND.search(name)
    return found[1] if found else ""


def in_full(name: str, kind: str, names: Names) -> str | None:
    """The resource name of a display name; None if the map does not have it."""
    if "/" in name:
        return name
    full = names.get(f"{kind}/{name}") or names.get(name)
    return full if full and kind_of(full) in ("", kind) else None


def display(name: str, kind: str, names: Names) -> str | None:
    """The display name of a resource name; None if the map does not have it."""
    if "/" not in name:
        return name
    found = [shown.rpartition("/")[2] for shown, full in names.items() if full == name]
    return found[0] if found and kind_of(name) in ("", kind) else None


def with_names(value: Any, names: Names, root: str = schema.EVALUATION) -> Any:
    """A copy of an evaluation that refers to resources by their resource names; its own `name` and unknown fields stay
    as they are."""
    if not isinstance(value, dict):
        return value
    message = schema.message(root)
    return {key: _renamed(message, key, item, names) for key, item in value.items()}


def _renamed(message: schema.MessageType, key: str, value: Any, names: Names) -> Any:
    json_name = message.json_name(key)
    field = message.fields[json_name] if json_name else None
    if field is None or field.behavior == "IDENTIFIER":
        return value
    if isinstance(value, list):
        return [_renamed(message, key, item, names) for item in value]
    if field.resource_format and isinstance(value, str):
        return in_full(value, kind_of(field.resource_format[0]), names) or value
    return with_names(value, names, field.message) if field.message else value
