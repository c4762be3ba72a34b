"""Options: an invalid value is an error of one line, with the closest valid one."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.text.visible import visible


def require_choice(option: str, value: Any, choices: Iterable[Any]) -> None:
    known = list(choices)
    if value not in known:
        raise no_choice(option, value, known)


def no_choice(option: str, value: Any, choices: Iterable[Any]) -> EvalSetError:
    return EvalSetError(f"{option}: {choice_problem(value, choices)}")


def choice_problem(value: Any, choices: Iterable[Any]) -> str:
    """`expected one of …; got 'databrick'; did you mean 'databricks'?`."""
    known = list(choices)
    return f"expected one of {', '.join(map(str, known))}; got {shown(value)}{meant(value, known)}"


def require_kind(option: str, value: Any, kind: type | tuple[type, ...], expected: str) -> None:
    """Raise EvalSetError if the value of an option is of another type."""
    if not isinstance(value, kind):
        raise EvalSetError(f"{option}: expected {expected}; got {shown(value)}")


def require_dicts(option: str, values: Any, expected: str = "an iterable of dicts") -> Iterator[Mapping[str, Any]]:
    """The dicts of an option; raise EvalSetError at a value that is none."""
    require_kind(option, values, Iterable, expected)
    for i, value in enumerate(values):
        require_kind(f"{option}[{i}]", value, Mapping, "a dict")
        yield value


def require_bool(option: str, value: Any) -> None:
    """Raise EvalSetError if the value of an option is neither True nor False (of Python or of NumPy)."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise EvalSetError(f"{option}: expected True or False; got {shown(value)}")


def require_count(option: str, value: Any) -> None:
    """Raise EvalSetError if the value of an option is not a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise EvalSetError(f"{option}: expected a whole number of at least 1; got {shown(value)}")


def path_of(value: Any, option: str = "path") -> str:
    """The path that was given for an option, or EvalSetError if it is of another type."""
    require_kind(option, value, (str, os.PathLike), "a path (str or os.PathLike)")
    path: str = os.fspath(value)
    return path


def shown(value: Any) -> str:
    """The given value of an option: a string or number as it is written, of anything else the type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    plain = value is None or isinstance(value, str | int | float)
    kind = type(value).__name__
    return visible(repr(value))[:80] if plain else f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def meant(value: Any, choices: Iterable[Any]) -> str:
    """`; did you mean 'databricks'?`, or nothing if no choice is close."""
    plain = value.strip().lower().replace(" ", "_") if isinstance(value, str) else ""
    known = {choice.lower(): choice for choice in reversed(list(choices)) if isinstance(choice, str)}
    if (same := _WORDS_OF_OTHERS.get(plain, "")).partition(" ")[0] in known:
        return f"; did you mean {same!r}?"
    if (is_option := plain.startswith("-")) or "validate" in known:
        for names, answer in _ANSWERS:
            if plain in names.split() and (not is_option or not known.keys() & set(names.split())):
                return f"; {answer}"
    if is_option:  # the dashes make any two alike; a message about an option names `--help` anyway
        known = {name[2:]: choice for name, choice in known.items() if name.startswith("--") and name != "--help"}
    close = closest(plain.lstrip("-"), known)
    return f"; did you mean {known[close]!r}?" if close else ""


def closest(name: Any, choices: Iterable[str]) -> str:
    """The choice that is spelled most like a name; "" if none is close."""
    spellings, known = ([name, name.replace("_", "-")] if isinstance(name, str) else []), list(choices)
    from difflib import get_close_matches  # only for a value that is not known

    return next((close for text in spellings for close in get_close_matches(text, known, n=1)), "")


_WORDS_OF_OTHERS = {
    **dict.fromkeys(("check", "lint", "test", "verify"), "validate"),
    **dict.fromkeys(("evaluate", "eval", "run"), "score"),
    **dict.fromkeys(("fix", "repair"), "validate FILE --fix OUT"),
    **dict.fromkeys(("load", "read", "load_eval_set"), "import"),
    **dict.fromkeys(("dedupe", "deduplicate"), "profile FILE --write-distinct OUT"),
    **dict.fromkeys(("sample", "split"), "from-inference-table TABLE OUT --sample N"),
    **dict.fromkeys(("redact", "anonymize"), "from-inference-table TABLE OUT --redact default"),
    "compare": "diff",
    "stats": "profile",
    "build": "from-inference-table",
    "--json": "--output json",
    "--keep": "--include",
    "--strict": "--fail-on warning",
    "--target": "--to",
    **dict.fromkeys(("--out", "-o"), "--write-scores"),
    "--user": "--reviewer",
}
"""What other tools call a command or an option, and what it is here, if it begins with one of the choices."""

_ANSWERS = (
    ("help", "use `agent-eval-schema --help`"),
    ("--sheet --sheet-name --worksheet", "name the sheet in the path: FILE.xlsx#SHEET"),
    ("--encoding", "files are UTF-8: convert another one (`iconv -f WINDOWS-1252 -t UTF-8 FILE`)"),
    ("--skip-rows --skiprows --header --header-row --no-header", "the header is found: no option is needed"),
    ("--delimiter --sep --separator", "the delimiter is found: no option is needed"),
    ("--file --input -i -f", "FILE is an argument without an option"),
    ("-o --out --outfile --output-file", "OUT is an argument without an option; `--fix` writes rows, `--html` a page"),
)
"""What has no option or command here, and what to do instead."""
