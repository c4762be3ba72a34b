"""Public names that are loaded on first use (PEP 562), so importing the package costs next to nothing.

A module with such names has a stub (`.pyi`) beside it, which imports each of them (`as` itself, which exports it): type
checkers and editors read it, and so does `load_on_use`.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from types import FunctionType, MappingProxyType
from typing import Any

_PACKAGE = __name__.partition(".")[0]


KEYWORDS = {
    **dict.fromkeys(("fmt", "file_format", "input_format"), "format"),
    **dict.fromkeys(("target", "to_format", "output_format"), "to"),
    **dict.fromkeys(("mapping", "rename", "column_mapping"), "columns"),
    "fix": "normalize_eval_set(data, fix=True)",
    "ignore": "validate_eval_set(data, ignore=…), and pass its report as the data",
    "select": "validate_eval_set(data, select=…), and pass its report as the data",
    "sheet_name": "a path with the sheet: FILE.xlsx#SHEET",
    "sheet": "a path with the sheet: FILE.xlsx#SHEET",
}
"""Keywords that people try, with the one that a function has for it, or another call."""


def _answering(function: FunctionType) -> Callable[..., Any]:
    """The function, whose error about an unknown keyword names what does it here."""

    @wraps(function)
    def answering(*arguments: Any, **keywords: Any) -> Any:
        known = function.__kwdefaults__ or {}
        unknown = next((name for name in keywords if name not in known), None)
        if unknown is None or _accepts(function, unknown):
            return function(*arguments, **keywords)
        from difflib import get_close_matches

        names = [*function.__code__.co_varnames[: function.__code__.co_argcount], *known]
        meant = KEYWORDS.get(unknown, "")
        if meant == "format" and "to" in {*names[len(arguments) :]} - keywords.keys():
            meant = "to"
        meant = meant if meant in names or "(" in meant or "#" in meant else ""
        close = get_close_matches(unknown, names, n=1)
        why = f"; use `{meant}`" if meant else f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown!r}{why}")

    return answering


def _accepts(function: FunctionType, name: str) -> bool:
    """Whether a function has a parameter of that name, or takes any."""
    from inspect import CO_VARKEYWORDS  # only for a name that is not known: it is slow to load

    code = function.__code__
    return name in code.co_varnames[: code.co_argcount] or bool(code.co_flags & CO_VARKEYWORDS)


def _homes(module: str) -> dict[str, str]:
    """The public names in the stub of a module, each with the module that defines it."""
    spec: Any = sys.modules[module].__spec__
    stub = spec.loader.get_data(f"{os.path.splitext(spec.origin)[0]}.pyi").decode()  # it may be in a zip file
    imports = (line.split() for line in stub.splitlines() if line.startswith("from "))
    return {name: home for _, home, _, name, *_ in imports if not name.startswith("_")}


def load_on_use(
    module: str, guesses: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of the module of that name, in the order of its stub.
    `guesses` are names that people try, with what does it here.
    """
    homes = _homes(module)

    def load(name: str) -> Any:
        if name not in homes:
            from difflib import get_close_matches  # only for a name that is not there

            close = [home for home in homes if home.startswith(name)] or get_close_matches(name, homes)
            why = f"; did you mean {close[0]!r}?" if close and not name.startswith("_") else ""
            why = f"; use `{guesses[name]}`" if name in guesses else why
            raise AttributeError(f"module {module!r} has no attribute {name!r}{why}")
        if homes[name] == _PACKAGE:  # which imports it from here
            return import_module(f"{_PACKAGE}.{name}")
        home = import_module(homes[name])
        value = getattr(home, name)
        if isinstance(value, FunctionType):
            value = _answering(value)
            setattr(home, name, value)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted([*homes, *(name for name in vars(sys.modules[module]) if name.startswith("__"))])

    return load, names, list(homes)


# --- A command that makes no DataFrame does not wait for pandas, whose import takes as long as the check of a small
# file.
#
# pyarrow looks for pandas at its first array, whatever that is made of. If it was not found, pyarrow looks again as
# soon as it has to make a DataFrame.
class _NoPandas:
    """A finder of modules, before all others: there is no pandas."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def put_off_pandas() -> None:
    """Let pyarrow look for pandas now, and not find it. Only for a process that is ours."""
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(None)
    finally:
        sys.meta_path.remove(_NoPandas)


def find_pandas() -> None:
    """Let pyarrow look again, before it is handed what pandas made."""
    import pyarrow as pa

    pa.nulls(0).to_pandas()
