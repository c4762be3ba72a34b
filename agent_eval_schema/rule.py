"""What a rule is, and its severity. The rules themselves are in `rules/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple


class Severity(str, Enum):  # numpydoc ignore=PR01
    """The severity of an issue.

    `ERROR`: the platform rejects the row or would score something that was not intended. `WARNING`: the row is
    accepted, but a field is ignored or a metric is weakened. `INFO`: a value was derived, detected, fixed or passed
    through. A severity is also a str.

    See Also
    --------
    Report.count : Count the issues of a severity.

    Examples
    --------
    >>> from agent_eval_schema import Severity
    >>> Severity.ERROR == "error"
    True
    >>> [str(severity) for severity in Severity]
    ['error', 'warning', 'info']
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def __str__(self) -> str:
        return self.value


FAILING = {"error": (Severity.ERROR,), "warning": (Severity.ERROR, Severity.WARNING), "never": ()}
"""The severities that fail a run, by the lowest of them."""


class Rule(NamedTuple):
    """One kind of issue and its documentation: what is wrong, why it matters, what to do, and the page of the vendor.

    `bad` and `good` are examples: lists of rows as an engineer would write them. The tests check that the bad rows
    raise exactly this code and the good ones do not, so the documentation cannot drift from the behavior. A rule that
    rows cannot show states the reason in `no_example`. A rule that no vendor documents has no `url`.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    why: str
    hint: str
    url: str = ""
    bad: tuple[dict[str, Any], ...] = ()
    good: tuple[dict[str, Any], ...] = ()
    no_example: str = ""


class RowRule:
    """A rule of another package, and the function that judges a row by it.

    `check` is called with the row as `normalize_eval_set` gives it, limited to `columns`: None where a cell is absent.
    It returns the path and the message of each issue, such as `("expected_response", "expected a sentence, got …")`. A
    row whose cells could not be read is not judged.
    """

    __slots__ = ("check", "columns", "rule")
    rule: Rule
    columns: tuple[str, ...]
    check: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]

    def __init__(
        self, rule: Rule, columns: tuple[str, ...], check: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]]
    ) -> None:
        if not re.fullmatch("(?!AE)[A-Z]{2,6}[0-9]{3}", rule.code):
            raise ValueError(f"code: expected two to six letters, not AE, and three digits; got {rule.code!r}")
        if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name):
            raise ValueError(f"name: expected lower case, such as message-role; got {rule.name!r}")
        self.rule, self.columns, self.check = rule, columns, check

    @property
    def name(self) -> str:
        return self.rule.code
