"""The public surface: one readable file lists names and signatures, so that every change of it is seen in review."""

import hashlib
import inspect
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import agent_eval_schema
from agent_eval_schema import FormatName, MetricName, Source, ces, extend, scorers
from agent_eval_schema.evaluation.task_metrics import NAMES
from agent_eval_schema.formats.registry import FORMATS
from agent_eval_schema.metrics.catalog import SYSTEMS
from agent_eval_schema.metrics.support import System

pytest.importorskip("mlflow", minversion="3.3")

SURFACE = Path(__file__).with_name("public_api.txt")


def members(kind: type) -> list[str]:
    if kind is Source:  # it has no public members
        return []
    lines = []
    for name in sorted({*dir(kind), *getattr(kind, "__struct_fields__", ())}):
        if name.startswith("_") or (name in dir(getattr(kind, "__base__", object)) and not _is_ours(kind.__base__)):
            continue
        member = inspect.getattr_static(kind, name, None)
        if inspect.isfunction(member):
            lines.append(f"    .{name}{signature(member)}")
        else:
            lines.append(f"    .{name}")
    return lines


def _is_ours(kind: Any) -> bool:
    module = type.__getattribute__(kind, "__module__") if isinstance(kind, type) else getattr(kind, "__module__", "")
    return str(module).startswith("agent_eval_schema")  # a class of the tests has no names


def signature(function: Any) -> str:
    """Without annotations of types, which the type checkers test."""
    found = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def surface(module: ModuleType) -> list[str]:
    lines = [module.__name__]
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if inspect.isclass(value) and issubclass(value, BaseException):
            lines.append(f"  {name}({', '.join(base.__name__ for base in value.__bases__)})")
        elif inspect.isclass(value) and module is not scorers:
            lines += [f"  {name}", *members(value)]
        elif inspect.isfunction(value):
            lines.append(f"  {name}{signature(value)}")
        else:
            lines.append(f"  {name}")
    return lines


def test_the_public_surface_is_the_recorded_one() -> None:
    found = (
        "\n".join([*surface(agent_eval_schema), "", *surface(ces), "", *surface(extend), "", *surface(scorers)]) + "\n"
    )
    if os.environ.get("UPDATE_GOLDEN"):
        SURFACE.write_text(found, encoding="utf-8")
    assert found == SURFACE.read_text(encoding="utf-8")


def test_a_change_of_what_authors_import_is_in_the_changelog() -> None:
    """Packages of others break with it: the changelog names the surface by its hash."""
    found = hashlib.sha256("\n".join(surface(extend)).encode()).hexdigest()[:8]
    text = (SURFACE.parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"surface {found}" in text, f"state the change of `agent_eval_schema.extend`, ending with (surface {found})"


@pytest.mark.parametrize("module", [agent_eval_schema, ces, scorers], ids=lambda m: m.__name__)
def test_dir_offers_public_names_only(module: ModuleType) -> None:
    assert sorted(n for n in dir(module) if not n.startswith("__")) == sorted(module.__all__)


def test_the_types_of_names_are_the_names() -> None:
    assert set(get_args(FormatName)) == {f.name for f in FORMATS}
    assert set(get_args(MetricName)) == set(NAMES)
    assert set(get_args(System)) == {*SYSTEMS, "all", "auto"}


def kinds_of(annotation: str, module: ModuleType) -> set[str]:
    """The classes of ours that an annotation names."""
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in annotation).split())
    return {w for w in words if inspect.isclass(kind := getattr(module, w, None)) and _is_ours(kind)}


@pytest.mark.parametrize("module", [agent_eval_schema, ces], ids=lambda m: m.__name__)
def test_what_public_functions_return_has_a_public_name(module: ModuleType) -> None:
    for name in module.__all__:
        function = getattr(module, name)
        if inspect.isfunction(function):
            home = inspect.getmodule(function)
            assert home is not None
            named = kinds_of(str(function.__annotations__["return"]), home)
            assert named <= {*module.__all__, *agent_eval_schema.__all__}, name


def test_every_error_and_warning_has_a_public_name() -> None:
    """Whatever class of ours is an exception, once the package is imported, is exported. Only the signal of a parser
    that a text is too deep, which becomes AE004, of a journal, and of a conversion never leave the package."""
    for name in agent_eval_schema.__all__:
        getattr(agent_eval_schema, name)
    todo, found = [Exception, UserWarning], set()
    while todo:
        for kind in type.__subclasses__(todo.pop()):
            todo.append(kind)
            if _is_ours(kind) and not kind.__name__.startswith("_"):
                found.add(kind.__name__)
    assert (
        {"InvalidRowsWarning", "InvalidEvalSetError"}
        <= found
        <= {*agent_eval_schema.__all__, "TooDeep", "Stale", "MixedKinds"}
    )


def test_an_error_is_of_the_builtin_kind_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file") as missing:
        agent_eval_schema.validate_eval_set(tmp_path / "nothing.jsonl")
    assert isinstance(missing.value, agent_eval_schema.EvalSetError)
    with pytest.raises(ValueError, match="format: expected one of"):
        agent_eval_schema.validate_eval_set([{"request": "a"}], format="x")  # type: ignore[arg-type]
    for read in (ces.read_golden_csv, ces.read_evaluation, ces.import_request):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing.csv")


CLASSES = [
    (module, name)
    for module in (agent_eval_schema, ces)
    for name in module.__all__
    if inspect.isclass(kind := getattr(module, name)) and _is_ours(kind) and not issubclass(kind, Exception)
]


@pytest.mark.parametrize(("module", "name"), CLASSES, ids=[name for _, name in CLASSES])
def test_each_public_member_is_documented(module: ModuleType, name: str) -> None:
    """By a docstring of its own, or by name in that of its class."""
    kind = getattr(module, name)
    told = " ".join(base.__doc__ or "" for base in kind.__mro__ if _is_ours(base))
    found = {line.strip(" .").partition("(")[0] for line in members(kind)}
    fields = set(getattr(kind, "__struct_fields__", ()))
    bare = {m for m in found if m in fields or not getattr(inspect.getattr_static(kind, m), "__doc__", None)}
    assert [m for m in sorted(bare) if not re.search(rf"\b{m}\b", told)] == []
