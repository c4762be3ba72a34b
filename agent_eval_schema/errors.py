"""Errors and warnings, and the import of what an extra installs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


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


@contextmanager
def reading_file(path: object) -> Iterator[None]:
    """A block that reads a file. Raises EvalSetError if it cannot be read."""
    try:
        yield
    except OSError as error:
        kind = EvalSetNotFoundError if isinstance(error, FileNotFoundError) else EvalSetError
        raise kind(f"{path}: cannot be read: {error.strerror}") from error


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


class ExtensionWarning(UserWarning):
    """A format, a rule or a metric of another package cannot be used, or is slow; everything else works without it.

    The package does not load, its object is not one of `agent_eval_schema.extend`, or the name is taken; or it takes
    more than a second to load, to detect its format, or for some rows (5 ms for each).

    See Also
    --------
    validate_eval_set : Emits this warning when data is read, as every function that reads data does.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import ExtensionWarning
    >>> warnings.simplefilter("error", ExtensionWarning)  # in CI: a package that is installed has to work
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


class UnwrittenScoreWarning(UserWarning):
    """A result was written in a form that has no place for some of its scores.

    Every-eval-ever demands the direction of each metric, and of each score whether the answer is correct. The message
    names the metrics and why. `load_result` reads them all the same.

    See Also
    --------
    EvalResult.write : Emits this warning.

    Examples
    --------
    >>> import warnings
    >>> from agent_eval_schema import UnwrittenScoreWarning
    >>> warnings.simplefilter("error", UnwrittenScoreWarning)  # in CI: every score has to be published
    """


RAISED = (Exception, SystemExit)
"""What the code of another package may raise; an exit would end the command, with 0 as if all were well."""

_PACKAGE = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn about the line of the user that called the package, however many of its frames are between."""
    level, frame = 2, sys._getframe(1).f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def missing(extra: str, needs: str, error: ImportError) -> MissingExtraError:
    """The exception for an import that failed; `needs` names the required package (`"mlflow 3.3"`)."""
    return MissingExtraError(f"this needs {needs} or newer ({error}): pip install -U 'agent-eval-schema[{extra}]'")


def import_extra(module: str, extra: str, needs: str) -> Any:
    """Import a module of an extra. Raises MissingExtraError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(extra, needs, error) from None
