"""Every rule, by code: one module a family, named after what it looks at.

    0 reading · 1 columns · 2 requests · 3 expectations · 4 retrieval · 5 tools · 6 traces · 7 production
    8 conversion · 9 dataset

(Files of CES have 12 to 15.) A rule is a row of a table: its text is its
documentation, what ``explain`` prints, and, through its examples, its test.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from types import MappingProxyType

from agent_eval_schema.issues import EvalSetError, Rule
from agent_eval_schema.rules import (
    ces,
    columns,
    conversion,
    dataset,
    expectations,
    production,
    reading,
    requests,
    retrieval,
    tools,
    traces,
)

FAMILIES = MappingProxyType(
    {
        "0": "Reading",
        "1": "Structure and columns",
        "2": "Request, response, messages",
        "3": "Expectations",
        "4": "Retrieval",
        "5": "Tools and trajectories",
        "6": "Traces",
        "7": "Production tables",
        "8": "Conversion losses",
        "9": "Whole data set",
    }
)


def _collect() -> dict[str, Rule]:
    rows = (reading, columns, ces, requests, expectations, retrieval, tools, traces)
    modules = (*rows, production, conversion, dataset)
    found = [v for m in modules for v in vars(m).values() if isinstance(v, Rule)]
    return {r.code: r for r in sorted(found, key=lambda r: r.code)}


RULES = MappingProxyType(_collect())


@lru_cache(maxsize=64)
def chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    """The codes that are on. A prefix names a family (`AE4`), a name works as well as a code; ignore beats select.

    Raises EvalSetError for a selector that matches nothing, so that a typing mistake does not switch a check off.
    """
    on = _matching(select) if select else frozenset(RULES)
    return on - _matching(ignore)


def _matching(selectors: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for selector in selectors:
        hits = {r.code for r in RULES.values() if r.code.startswith(selector.upper()) or r.name == selector}
        if not hits or not selector:
            raise EvalSetError(f"no rule matches {selector!r}: give a code (AE206), a prefix (AE2) or a name")
        found |= hits
    return frozenset(found)


def words(given: Iterable[str]) -> tuple[str, ...]:
    """One name, or several."""
    return (given,) if isinstance(given, str) else tuple(given)
