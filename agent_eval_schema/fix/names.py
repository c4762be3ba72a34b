"""Which of the known names a name is another spelling of."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

from agent_eval_schema.text.spelling import ALIASES


def meant(name: str, known: Iterable[str], cutoff: float = 0.8) -> str | None:
    """The known name that `name` is another spelling of, or None if there is none or more than one.

    A name with a digit (`response_2`) or with a word more (`response_b`) is a name of its own, not a misspelling.
    """
    known = list(known)
    plain = plain_name(name)
    bare = plain.replace("_", "")
    aliases = [k for k in known if bare == k.replace("_", "") or plain in ALIASES.get(k, ())]
    if aliases or any(c.isdigit() for c in plain):
        return aliases[0] if len(aliases) == 1 else None
    close = difflib.get_close_matches(plain, known, n=2, cutoff=cutoff)
    own = any(set(k.split("_")) < set(plain.split("_")) for k in close)
    return close[0] if len(close) == 1 and not own else None


def plain_name(name: str) -> str:
    """The name in the one spelling in which names are compared."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def with_lone_key_renamed(value: Any, right: str, known: tuple[str, ...], fits: Callable[[Any], bool]) -> Any:
    """An object without `right`, with the only key renamed that means `right` and holds what `right` should; any other
    value as it is."""
    if not isinstance(value, dict) or value.get(right) is not None:
        return value
    keys = [k for k, v in value.items() if k not in known and meant(k, known) == right and fits(v)]
    return with_key_renamed(value, keys[0], right) if len(keys) == 1 else value


def with_key_renamed(value: dict[str, Any], wrong: str, right: str) -> dict[str, Any]:
    """The object with one key renamed, in its place; a null under the right name gives way."""
    return {right if k == wrong else k: v for k, v in value.items() if k != right}
