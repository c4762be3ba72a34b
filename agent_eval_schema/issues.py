"""Issues: the problems that are found, each with its rule and its place."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.rule import Rule, Severity


class Finding(Struct, frozen=True):
    """One problem: rule, message, place. Without a `column` it concerns the row; without a `hint` the rule's holds."""

    rule: Rule
    message: str
    column: str | None = None
    path: str | None = None
    hint: str = ""

    def issue(self, row: int | None = None, request_id: str | None = None) -> Issue:
        """The finding as an issue of a row, or of the dataset as a whole."""
        path, hint = self.path or self.column, self.hint or self.rule.hint
        return issue_of(self.rule, row, request_id, self.column, path, self.message, hint)


def with_hint(code: str, hint: str) -> Callable[[Finding], Finding]:
    """A function that gives the findings of a rule without a hint of their own this one (`Format.adapt_issue`)."""
    return lambda finding: replace(finding, hint=hint) if finding.rule.code == code and not finding.hint else finding


def issue_of(
    rule: Rule, row: int | None, request_id: str | None, column: str | None, path: str | None, message: str, hint: str
) -> Issue:
    """An issue of a rule: of a row, or of the dataset as a whole."""
    return Issue(row, request_id, column, path, rule.code, rule.name, rule.severity, message, hint, rule.url)


class Issue(Struct, frozen=True):  # numpydoc ignore=PR01
    """One issue of a row, or of the data as a whole.

    Attributes
    ----------
    row : int or None
        The 0-based position of the row in the data; None for the data as a whole.
    request_id : str or None
        The ID of the row; None if the row has none.
    column : str or None
        The column; None if the issue concerns the whole row.
    path : str or None
        The location in the cell, such as `request.messages[0].role`; None if the issue concerns the whole row.
    code : str
        The code of the rule, such as `"AE206"`.
    name : str
        The name of the rule, such as `"message-role"`.
    severity : Severity
        The severity of the rule.
    message : str
        The expected and the actual value.
    hint : str
        How to fix the issue.
    url : str
        The page of the vendor that documents the requirement; empty if no vendor documents it.

    See Also
    --------
    Report.issues : All issues as a DataFrame.

    Examples
    --------
    >>> from agent_eval_schema import validate_eval_set
    >>> report = validate_eval_set([{"request_id": "q1", "request": " ", "response": "Hello!"}])
    >>> issue = next(report.iter_issues())
    >>> issue.row, issue.request_id, issue.path, str(issue.severity)
    (0, 'q1', 'request', 'error')
    """

    row: int | None
    request_id: str | None
    column: str | None
    path: str | None
    code: str
    name: str
    severity: Severity
    message: str
    hint: str
    url: str


class FileLine(int):
    """The line of a file, counted from 1. Of data in several files, `file` is the name of the line's file."""

    file: str | None = None

    @staticmethod
    def of(file: str, number: int) -> FileLine:
        """The line of one of several files."""
        line = FileLine(number)
        line.file = file
        return line


def file_of(line: int | None, name: str) -> str:
    """The file of a line; `name` is that of the data."""
    return getattr(line, "file", None) or name
