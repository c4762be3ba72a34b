"""Public names that are loaded on first use (PEP 562), so importing the package costs next to nothing.

A module with such names lists each of them twice: in a table, with the module that defines it, and as an import under
TYPE_CHECKING (`as` itself, which exports it), for type checkers and editors.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def load_on_use(
    module: str, homes: Mapping[str, str], guesses: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of the module of that name. `homes` has each public name, in
    the order of a reader's interest, and the module that defines it, such as `"diff.diff"`; a module has its own name.
    `guesses` are names that people try, with what does it here.
    """

    def load(name: str) -> Any:
        if name not in homes:
            from difflib import get_close_matches  # only for a name that is not there

            close = [home for home in homes if home.startswith(name)] or get_close_matches(name, homes)
            why = f"; did you mean {close[0]!r}?" if close and not name.startswith("_") else ""
            why = f"; use `{guesses[name]}`" if name in guesses else why
            raise AttributeError(f"module {module!r} has no attribute {name!r}{why}")
        home = import_module(f"{_PACKAGE}.{homes[name]}")
        value = home if homes[name] == name else getattr(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted([*homes, *(name for name in vars(sys.modules[module]) if name.startswith("__"))])

    return load, names, list(homes)
