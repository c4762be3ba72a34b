"""Every rule, by code: one module per family, named after its subject.

    0 reading · 1 columns · 2 requests · 3 expectations · 4 retrieval · 5 tools · 6 traces · 7 production
    8 conversion · 9 dataset

(Golden CSV files have 12 and 13, evaluations of CES 14 and 15, evalsets of google-adk 16.) A rule is a row of a table:
its text is its documentation, ``explain`` prints it, and its examples are its test. A `Page` (pages.py) has what the
rules of one page share: the page and, where most of them share it, the good example.
"""

from collections.abc import Iterable
from types import MappingProxyType

from agent_eval_schema.rule import RowRule, Rule, Severity
from agent_eval_schema.rules import (
    adk,
    ces,
    columns,
    conversion,
    dataset,
    expectations,
    golden,
    production,
    reading,
    requests,
    retrieval,
    tools,
    traces,
)
from agent_eval_schema.runtime.extensions import Extension, extensions

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
        "9": "Whole dataset",
    }
)


def _collect() -> dict[str, Rule]:
    rows = (reading, columns, golden, ces, adk, requests, expectations, retrieval, tools, traces)
    modules = (*rows, production, conversion, dataset)
    rules = [v for m in modules for v in vars(m).values() if isinstance(v, Rule)]
    by_code = {r.code: r for r in sorted(rules, key=lambda r: r.code)}
    assert len(by_code) == len(rules), "a code is never used twice"
    return by_code


class _Rules(dict[str, Rule]):
    """The rules of this package; one of another package is found when its code is looked up."""

    def __missing__(self, code: str) -> Rule:
        return rules_of_packages()[code].value.rule


RULES = MappingProxyType(_Rules(_collect()))


def rules_of_packages() -> dict[str, Extension[RowRule]]:
    """The rules that other packages declare (entry point `agent_eval_schema.rules`), by code."""
    return extensions("rules", RowRule, _TAKEN, lambda row_rule: (row_rule.name, row_rule.rule.name))


_TAKEN = frozenset(name for rule in RULES.values() for name in (rule.code, rule.name))


def all_rules() -> dict[str, Rule]:
    """Every rule of this package and of others, by code."""
    return {**RULES, **{code: extension.value.rule for code, extension in rules_of_packages().items()}}


def rule_of(code: str) -> Rule:
    """The rule of a code that a file names; a stand-in if the package that declares it is not installed."""
    return all_rules().get(code) or Rule(code, "rule-not-installed", Severity.WARNING, "", "", "")


def words(value: Iterable[str]) -> tuple[str, ...]:
    """One name, or several."""
    return (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
