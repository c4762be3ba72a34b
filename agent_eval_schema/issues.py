"""Issues: severities, rules, findings, and the log that a batch of rows writes them to."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any

from msgspec import Struct


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


class HardLinkWarning(UserWarning):
    """A file was replaced that has other names (hard links), which keep the old content.

    See Also
    --------
    write_eval_set : Emits this warning, as every function that replaces a file does.

    Examples
    --------
    >>> import os, warnings
    >>> from agent_eval_schema import write_eval_set
    >>> _ = write_eval_set([{"request": "Hi"}], "rows.jsonl")
    >>> os.link("rows.jsonl", "other.jsonl")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = write_eval_set([{"request": "Hello"}], "rows.jsonl")
    >>> [w.category.__name__ for w in caught]
    ['HardLinkWarning']
    """


class FormulaWarning(UserWarning):
    """A CSV file was written with cells that a spreadsheet reads as formulas.

    Such a cell starts with `=`, `+`, `-`, `@`, a tab or a carriage return, and is not a number. It is written as it is.
    Open the file as text, or write JSON Lines.

    See Also
    --------
    write_eval_set : Emits this warning, as every function that writes a CSV file of rows does.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import write_eval_set
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = write_eval_set([{"request": "Add 1 and 1.", "response": "=1+1"}], "rows.csv")
    >>> str(caught[0].message).partition(": open")[0]
    'rows.csv: a spreadsheet reads 1 cell as a formula, the first one in row 0, column `response`'
    """


FAILING = {"error": (Severity.ERROR,), "warning": (Severity.ERROR, Severity.WARNING), "never": ()}
"""The severities that fail a run, by the lowest of them."""


class EvalSetError(ValueError):
    """An operation cannot run: the data cannot be read or an option is not valid.

    It is never raised for the content of a row.

    See Also
    --------
    InvalidEvalSetError : Validation found errors and the caller requested an exception.

    Examples
    --------
    >>> from agent_eval_schema import EvalSetError, explain
    >>> try:
    ...     explain("AE000")
    ... except EvalSetError as error:
    ...     print(isinstance(error, ValueError))
    True
    """


class EvalSetNotFoundError(EvalSetError, FileNotFoundError):
    """A file does not exist.

    See Also
    --------
    EvalSetError : The base class of all errors of this package.

    Examples
    --------
    >>> from agent_eval_schema import validate_eval_set
    >>> try:
    ...     validate_eval_set("missing.jsonl")
    ... except FileNotFoundError as error:
    ...     print(type(error).__name__)
    EvalSetNotFoundError
    """


def cannot_read(path: object, error: OSError) -> EvalSetError:
    """What to raise for a file that cannot be read."""
    kind = EvalSetNotFoundError if isinstance(error, FileNotFoundError) else EvalSetError
    return kind(f"{path}: cannot be read: {error.strerror}")


class MissingExtraError(EvalSetError, ImportError):
    """A package that an optional feature requires is missing or too old.

    The message contains the command that installs it.

    See Also
    --------
    EvalSetError : The base class of all errors of this package.

    Examples
    --------
    >>> from agent_eval_schema import EvalSetError, MissingExtraError
    >>> issubclass(MissingExtraError, ImportError) and issubclass(MissingExtraError, EvalSetError)
    True
    """


class Rule(Struct, frozen=True):
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

    def issue(
        self, row: int | None, request_id: str | None, column: str | None, path: str | None, message: str, hint: str
    ) -> Issue:
        """An issue of this rule: of a row, or of the dataset as a whole."""
        return Issue(row, request_id, column, path, self.code, self.name, self.severity, message, hint, self.url)


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
        return self.rule.issue(row, request_id, self.column, path, self.message, hint)


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


def missing(extra: str, needs: str, error: ImportError) -> MissingExtraError:
    """The exception for an import that failed; `needs` names the required package (`"mlflow 3.3"`)."""
    return MissingExtraError(f"this needs {needs} or newer ({error}): pip install -U 'agent-eval-schema[{extra}]'")


def import_extra(module: str, extra: str, needs: str) -> Any:
    """Import a module of an extra. Raises MissingExtraError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(extra, needs, error) from None
