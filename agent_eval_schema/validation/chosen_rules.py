"""Rules by the names that users give them: a code (AE206), the prefix of a family (AE2) or a name (message-role)."""

from functools import lru_cache
from typing import Any

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.rule import Rule
from agent_eval_schema.rules import all_rules
from agent_eval_schema.text.choices import meant, shown


@lru_cache(maxsize=64)
def chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    """The codes that are on; ignore beats select. Raises EvalSetError for a selector without a match (a typo)."""
    on = _matching("select", select) if select else frozenset(all_rules())
    return on - _matching("ignore", ignore)


def _matching(option: str, selectors: tuple[Any, ...]) -> frozenset[str]:
    codes: set[str] = set()
    for selector in selectors:
        hits = {rule.code for rule in _called(selector, by_prefix=True)}
        if not hits:
            raise _no_rule(option, "codes (AE206), prefixes (AE2) or names of rules", selector)
        codes |= hits
    return frozenset(codes)


def find_rule(code: str) -> Rule:
    """The rule of that code or name. Raises EvalSetError if there is none."""
    for rule in _called(code, by_prefix=False):
        return rule
    if family := _called(code, by_prefix=True):
        listed = ", ".join(f"{rule.code} {rule.name}" for rule in family)
        raise EvalSetError(f"code: expected a code of one rule; {shown(code)} begins {listed}")
    raise _no_rule("code", "a code (AE206) or a name (message-role) that `agent-eval-schema rules` lists", code)


def _called(selector: Any, *, by_prefix: bool) -> list[Rule]:
    plain = selector.upper() if isinstance(selector, str) else ""
    of_code = str.startswith if by_prefix else str.__eq__
    return [r for r in all_rules().values() if plain and (of_code(r.code, plain) or r.name.upper() == plain)]


def _no_rule(option: str, expected: str, selector: Any) -> EvalSetError:
    is_code = str(selector).upper().startswith("AE")  # each code is as close to every other one as they are to it
    known = [] if is_code else [rule.name for rule in all_rules().values()]
    return EvalSetError(f"{option}: expected {expected}; got {shown(selector)}{meant(selector, known)}")
