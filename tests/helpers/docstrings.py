"""The objects whose docstrings users read: the public names, and the methods and properties of public classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

import agent_eval_schema
from agent_eval_schema import Source, ces, scorers


def documented() -> dict[str, Any]:
    """Return what has a docstring of its own, by its public path, such as `agent_eval_schema.Report.valid`.

    An inherited member comes once, with the first class that has it. A scorer has no members but those of mlflow.
    """
    found: dict[str, Any] = {agent_eval_schema.__name__: agent_eval_schema}
    for module in (agent_eval_schema, ces, scorers):
        for name in module.__all__:
            value = getattr(module, name)
            path = f"{module.__name__}.{name}"
            if isinstance(value, ModuleType) or inspect.isfunction(value):
                found[path] = value
            elif inspect.isclass(value):
                found[path] = value
                own = members(value) if module is not scorers else ()
                found |= {f"{path}.{member}": kind for member, kind in own if kind not in found.values()}
    return found


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that classes of ours define; fields of a Struct have no docstring, and a
    source has no public member."""
    if kind is Source:
        return
    for base in kind.__mro__:
        if base.__module__.startswith("agent_eval_schema"):
            for name, value in vars(base).items():
                is_member = inspect.isfunction(value) or isinstance(value, property | cached_property)
                if is_member and not name.startswith("_") and inspect.getattr_static(kind, name) is value:
                    yield name, value
