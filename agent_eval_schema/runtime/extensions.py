"""What other packages add, by entry points: found when it is needed; one that cannot be used costs only itself.

[project.entry-points."agent_eval_schema.formats"]
giskard = "giskard_eval_schema:GISKARD"
"""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from glob import escape as glob_escape
from glob import glob
from itertools import repeat
from time import monotonic
from types import UnionType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from agent_eval_schema.errors import RAISED, EvalSetError, ExtensionWarning, warn_caller

PREFIX = "agent_eval_schema."
"""What the groups of entry points begin with: `agent_eval_schema.formats`."""


class Named(Protocol):
    """What can be an extension."""

    @property
    def name(self) -> str:
        """The name that users give; no other object of the group may have it."""


T = TypeVar("T", bound=Named)

PATIENCE, PER_ROW = 1.0, 0.005
"""Seconds that the code of another package may take: at a time, and for a row. More is a warning."""


class Watch:
    """A block in which the code of another package runs: if it is slow, the end of the block warns."""

    def __init__(self, name: str, package: str, doing: str, rows: int = 0) -> None:
        self._who, self._doing, self._limit = f"{name} of {package}", doing, max(PATIENCE, PER_ROW * rows)

    def __enter__(self) -> None:
        self._began = monotonic()

    def __exit__(self, *_: object) -> None:
        if (took := monotonic() - self._began) > self._limit:
            warn_caller(f"{self._who} took {took:.1f} s {self._doing}", ExtensionWarning)


class Extension(Generic[T]):
    """An object of another package, and the package with its version."""

    def __init__(self, value: T, package: str) -> None:
        self.value, self.package = value, package

    @property
    def project(self) -> str:
        """The name of the package, without its version."""
        return self.package.partition(" ")[0]

    def watch(self, doing: str, rows: int = 0) -> Watch:
        """A block in which its code runs, for a number of rows."""
        return Watch(self.value.name, self.package, doing, rows)


MODULES: dict[str, str] = {}
"""The packages whose extensions are used, by their modules."""

_FOUND: dict[str, dict[str, Extension[Any]]] = {}
"""The extensions of each group, which are found once per process."""


def extensions(
    group: str, kind: type[T], taken: Collection[str], names: Callable[[T], tuple[str, ...]] = lambda one: (one.name,)
) -> dict[str, Extension[T]]:
    """The extensions of a group by the name of each object, all of one kind. One that does not load, is of another
    kind, or has one of its `names` that is taken, by the core or by another package, is excluded with an
    ExtensionWarning."""
    if group not in _FOUND:
        _FOUND[group] = {}  # a package that asks for formats while it is imported has none of its own
        _FOUND[group] = _installed(group, kind, taken, names) if is_any_extension(group) else {}
    return _FOUND[group]


def _installed(
    group: str, kind: type[T], taken: Collection[str], names: Callable[[T], tuple[str, ...]]
) -> dict[str, Extension[T]]:
    from importlib.metadata import entry_points  # imports the parsers of mails: 40 ms that few need

    entries = list[Extension[T]]()
    owners: dict[str, list[str]] = {name: ["agent-eval-schema"] for name in taken}
    for point in entry_points(group=PREFIX + group):
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
        try:
            with Watch(point.name, package, f"to load ({PREFIX}{group})"):
                value = point.load()
            if not isinstance(value, kind):
                raise TypeError(f"expected a {kind.__name__}, got a {type(value).__name__}")
            _require_parts(value)
            if not re.fullmatch(r"\w[\w./-]*", value.name, re.ASCII):
                raise ValueError(f"name: expected letters, digits, `_`, `-`, `.` and `/`; got {value.name!r}")
            if group == "formats":  # what a rule or a metric returns is judged row by row
                value = _checked(value, f"{value.name} of {package}: ")
        except RAISED as error:
            _warn(group, point.name, package, f"{type(error).__name__}: {error}")
            continue
        MODULES[point.module.partition(".")[0]] = package
        entries.append(Extension(value, package))
        for name in names(value):
            owners.setdefault(name, []).append(package)
    shared = {name: packages for name, packages in owners.items() if len(packages) > 1}
    for name, packages in shared.items():
        _warn(group, name, " and ".join(sorted(packages)), "the name is taken: rename one, or uninstall a package")
    return {one.value.name: one for one in entries if shared.keys().isdisjoint(names(one.value))}


def _require_parts(value: Any, path: str = "") -> None:
    """Raise TypeError if a part of an extension is not of the declared type, else it would be an internal error where
    it is used; or if a text of it could write on a terminal."""
    for name, kind in get_type_hints(type(value)).items():
        if get_origin(kind) is not ClassVar and not _is_of(part := getattr(value, name), kind, f"{path}{name}"):
            raise TypeError(f"{path}{name}: expected {_shown(kind)}, got a {type(part).__name__}")


def _is_of(value: Any, kind: Any, path: str) -> bool:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return any(_is_of(value, choice, path) for choice in inner)
    if origin in _OF_ONE_KIND or (origin is tuple and inner[1:] == (...,)):
        return isinstance(value, origin) and all(_is_of(part, inner[0], path) for part in value if inner)
    if origin is tuple and inner:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_is_of, value, inner, repeat(path)))
    if origin is Any or not isinstance(origin, type):
        return True
    if isinstance(value, origin) and origin.__module__.startswith(PREFIX) and hasattr(value, "__annotations__"):
        _require_parts(value, f"{path}.")
    if isinstance(value, str) and _CONTROL.search(value):
        raise TypeError(f"{path}: expected a text without control characters")
    return isinstance(value, (int, float) if origin is float else origin)


_OF_ONE_KIND = (list, Sequence)


def _checked(value: Any, path: str) -> Any:
    """The object with its functions, and those of its parts, replaced by ones that raise EvalSetError, which names the
    package, where a result is not of the declared type: else it would be an internal error where it is used."""
    if type(value) is tuple:
        return tuple(_checked(part, f"{path[:-1]}[{i}].") for i, part in enumerate(value))
    from msgspec import Struct  # the list of formats needs none
    from msgspec.structs import replace

    if not isinstance(value, Struct):
        return value
    changed: dict[str, Any] = {}
    for name, kind in get_type_hints(type(value)).items():
        part, at = getattr(value, name), f"{path}{name}"
        kinds = [get_args(k)[1] for k in (kind, *get_args(kind)) if get_origin(k) is Callable]
        is_ours = (getattr(part, "__module__", None) or "").startswith(PREFIX)
        changed[name] = partial(_call, part, kinds, at) if kinds and part and not is_ours else _checked(part, f"{at}.")
    return replace(value, **{name: new for name, new in changed.items() if new is not getattr(value, name)})


def _call(function: Callable[..., Any], kinds: Sequence[Any], path: str, *arguments: Any, **keywords: Any) -> Any:
    result = _result(function(*arguments, **keywords), kinds, path)
    if kinds[0] in (None, type(None)):  # it completes its last argument
        _require_json(arguments[-1], path)
    return result


def _require_json(value: Any, path: str) -> None:
    from msgspec import json

    try:
        json.encode(value)
    except TypeError as error:
        shown = f"got a {type(value).__name__}: {error}"
        raise EvalSetError(f"{path}: expected JSON, {shown}: report it to its authors") from error


def _result(value: Any, kinds: Sequence[Any], path: str) -> Any:
    """A result of one of the types; the entries of one that is iterated are checked one by one."""
    for kind in kinds:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Callable and callable(value):
            return partial(_call, value, inner[1:], path)
        if origin in (Iterator, Iterable) and isinstance(value, Iterable):
            return (_result(entry, inner, path) for entry in value)
        with suppress(TypeError):
            if kind in (bool, type(None)) or _is_of(value, kind, path):
                if kind is Any or origin in (dict, UnionType):
                    _require_json(value, path)
                return value
    shown = " or ".join(map(_shown, kinds))
    raise EvalSetError(f"{path}: expected {shown}, got a {type(value).__name__}: report it to its authors")


def _shown(kind: Any) -> str:
    text = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return re.sub(r"[\w.]+\.(?=\w)", "", text)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _warn(group: str, name: str, package: str, why: str) -> None:
    warn_caller(f"{name} of {package} is not used ({PREFIX}{group}): {why}", ExtensionWarning)


@cache
def is_any_extension(group: str) -> bool:
    """Whether an installed package has an entry point of the group: reading the files takes a tenth of the time that
    importing `importlib.metadata` does, and mostly there is none."""
    header = f"[{PREFIX}{group}]".encode()
    for folder in sys.path:
        for path in glob(os.path.join(glob_escape(folder or "."), "*.*-info", "entry_points.txt")):
            with suppress(OSError), open(path, "rb") as file:
                if header in file.read():
                    return True
    return False
