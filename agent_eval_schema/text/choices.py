"""Options: an invalid value is an error of one line, with the closest valid one."""

import difflib
import os
from collections.abc import Iterable
from typing import Any

from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.text.visible import visible


def require_choice(option: str, given: Any, choices: Iterable[Any]) -> None:
    """Raise EvalSetError if the value of an option is not one of the choices."""
    known = list(choices)
    if given not in known:
        raise no_choice(option, given, known)


def no_choice(option: str, given: Any, choices: Iterable[Any]) -> EvalSetError:
    """The exception for a value that is not one of the choices."""
    return EvalSetError(f"{option}: {choice_problem(given, choices)}")


def choice_problem(given: Any, choices: Iterable[Any]) -> str:
    """`expected one of …; got 'databrick'; did you mean 'databricks'?`."""
    known = list(choices)
    return f"expected one of {', '.join(map(str, known))}; got {shown(given)}{meant(given, known)}"


def require_kind(option: str, given: Any, kind: type | tuple[type, ...], expected: str) -> None:
    """Raise EvalSetError if the value of an option is of another type."""
    if not isinstance(given, kind):
        raise EvalSetError(f"{option}: expected {expected}; got {shown(given)}")


def require_bool(option: str, given: Any) -> None:
    """Raise EvalSetError if the value of an option is neither True nor False (of Python or of NumPy)."""
    if type(given).__name__ not in ("bool", "bool_"):
        raise EvalSetError(f"{option}: expected True or False; got {shown(given)}")


def require_count(option: str, given: Any) -> None:
    """Raise EvalSetError if the value of an option is not a whole number of at least 1."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise EvalSetError(f"{option}: expected a whole number of at least 1; got {shown(given)}")


def path_of(given: Any, option: str = "path") -> str:
    """The path that was given for an option, or EvalSetError if it is of another type."""
    require_kind(option, given, (str, os.PathLike), "a path (str or os.PathLike)")
    path: str = os.fspath(given)
    return path


def shown(given: Any) -> str:
    """The given value of an option: a string or number as it is written, of anything else the type."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if callable(given) and hasattr(given, "__name__"):
        return f"the function {given.__name__}"
    plain = given is None or isinstance(given, str | int | float)
    kind = type(given).__name__
    return visible(repr(given))[:80] if plain else f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def meant(given: Any, choices: Iterable[Any]) -> str:
    """`; did you mean 'databricks'?`, or nothing if no choice is close."""
    plain = given.strip().lower().replace(" ", "_") if isinstance(given, str) else ""
    known = {choice.lower(): choice for choice in reversed(list(choices)) if isinstance(choice, str)}
    for spelling in (plain, plain.replace("_", "-")):
        for close in difflib.get_close_matches(spelling, known, n=1):
            return f"; did you mean {known[close]!r}?"
    return ""
