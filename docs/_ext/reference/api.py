"""A page per public name, from its docstring, and the role that links single backticks in docstrings to them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxRole

import agent_eval_schema
from agent_eval_schema import ces, scorers
from reference.markdown import CONTENTS, Pages, code, entry, first_sentence, prose, table, toctree

MODULES = (agent_eval_schema, scorers, ces)

GROUPS = {
    "Validate": "validate_eval_set Report normalize_eval_set assert_valid metric_support explain json_schema "
    "write_eval_set",
    "Profile": "profile_eval_set Profile",
    "Review": "review_eval_set Review",
    "Compare and convert": "diff_eval_sets Diff convert_eval_set Conversion import_eval_set EvalSetImport",
    "Traces": "eval_set_from_traces traces_from_store Source",
    "Evaluate with MLflow": "prepare_for_evaluate supported_scorers SupportedScorers evaluate_eval_set "
    "mlflow_metrics to_mlflow_dataset WrittenDataset from_mlflow_dataset",
    "Inference tables": "eval_set_from_inference_table EvalSetBuild BuildSummary",
    "Spark": "spark_validate spark_from_inference_table",
    "Run and score agents": "EvalTask score_trajectories EvalResult load_result ScoreComparison ScoreHistory "
    "ToolUseMetric CustomMetric PointwiseMetric MetricInfo",
    "Issues, errors and warnings": "Issue Severity EvalSetError InvalidEvalSetError EvalSetNotFoundError "
    "MissingExtraError UndecidedError ExtensionWarning FormulaWarning HardLinkWarning InvalidRowsWarning "
    "ReducedInputsWarning UnreadableRecordWarning UnreadableTraceWarning "
    "UnwrittenScoreWarning ValuesAsTextWarning",
    "Types": "EvalSetLike FormatName MetricName",
    "Modules": "ces scorers",
}
"""The public names by task. A name that is in no group fails the build."""


def pages(_: Path) -> Pages:
    """The pages below reference/api, and their order."""
    grouped = [name for names in GROUPS.values() for name in names.split()]
    if sorted(grouped) != sorted(names_of(agent_eval_schema)):
        raise ValueError(f"GROUPS has not each public name once: {set(grouped) ^ set(names_of(agent_eval_schema))}")
    made = {f"reference/api/{path}.rst": _page(path, value) for path, value in public().items()}
    made["reference/api/pages.inc"] = toctree(
        f"{name} <agent_eval_schema.{name}>" for name in names_of(agent_eval_schema)
    )
    for module in (scorers, ces):
        made[f"reference/api/{module.__name__}.rst"] = _module_page(module)
    return made


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module, which are loaded on first use."""
    return list(vars(module)["__all__"])


@cache
def public() -> dict[str, Any]:
    """Every public name that is no module, by its path."""
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in MODULES
        for name in names_of(module)
        if not isinstance(getattr(module, name), ModuleType)
    }


@cache
def documented() -> dict[str, str]:
    """Every path that has an anchor, by each name that a docstring can call it by."""
    paths = [*public(), *(f"{path}.{name}" for path, value in public().items() for name in members(value))]
    return {name: path for path in reversed(paths) for name in (path, path.removeprefix("agent_eval_schema."))} | {
        path.split(".", 2)[2]: path for path in reversed(paths) if path.startswith("agent_eval_schema.ces.")
    }


def members(value: Any) -> Iterator[str]:
    """The methods and properties of a public class that classes of this package define."""
    if not inspect.isclass(value) or value in vars(scorers).values() or value.__name__ in names_of(scorers):
        return
    if value is agent_eval_schema.Source:  # it has no public members
        return
    seen: set[str] = set()
    for base in value.__mro__:
        if base.__module__.startswith("agent_eval_schema"):
            for name, member in vars(base).items():
                is_member = inspect.isfunction(member) or isinstance(member, property | cached_property)
                if is_member and not name.startswith("_") and name not in seen:
                    seen.add(name)
                    yield name


# ---------------------------------------------------------------------------------------------------------------------
def index() -> str:
    """The tables of the public names."""
    parts = [
        "# Python API\n",
        "Import the names from `agent_eval_schema`. They are loaded on first use, so an import is quick, and "
        "optional packages are imported only by the functions that need them. `help(NAME)` prints the parameters of a "
        "function, with examples.\n",
    ]
    for title, names in GROUPS.items():
        rows = []
        for path in (f"agent_eval_schema.{name}" for name in names.split()):
            name = path.partition(".")[2]
            summary = first_sentence(_doc(path, getattr(agent_eval_schema, name))).replace("``", "`")
            rows.append((entry(path, code(name)), prose(summary)))
        parts += [f"## {title}\n", table(("Name", "Summary"), rows)]
    return "\n".join([*parts, CONTENTS])


def _module_page(module: ModuleType) -> str:
    entries = [
        (
            f":doc:`{name} <{module.__name__}.{name}>`",
            first_sentence(_doc(f"{module.__name__}.{name}", getattr(module, name))),
        )
        for name in names_of(module)
    ]
    parts = [
        _title(module.__name__, "="),
        f".. automodule:: {module.__name__}\n   :no-members:\n",
        _list_table(entries),
    ]
    return "\n".join([*parts, _toctree([f"{module.__name__}.{name}" for name in names_of(module)])])


def _page(path: str, value: Any) -> str:
    name = path.rpartition(".")[2]
    parts = [_title(name, "=")]
    if inspect.isclass(value) and issubclass(value, BaseException):
        parts += [f".. autoexception:: {path}\n"]
    elif inspect.isclass(value):
        parts += [f".. autoclass:: {path}\n"]
    elif inspect.isfunction(value):
        parts += [f".. autofunction:: {path}\n"]
    else:
        parts += [_data(path, value)]
    found = list(members(value))
    if found:
        kinds = {n: inspect.getattr_static(value, n) for n in found}
        properties = [n for n in found if not inspect.isfunction(kinds[n])]
        methods = [n for n in found if inspect.isfunction(kinds[n])]
        for title, names in (("Properties", properties), ("Methods", methods)):
            if names:
                rows = [(f":py:obj:`{n} <{path}.{n}>`", first_sentence(inspect.getdoc(kinds[n]))) for n in names]
                parts += [_title(title, "-"), _list_table(rows)]
                directive = "autoproperty" if title == "Properties" else "automethod"
                parts += [f".. {directive}:: {path}.{n}\n" for n in names]
    return "\n".join(parts)


def _data(path: str, value: Any) -> str:
    text = _doc(path, value)
    body = "\n".join(f"   {line}" for line in text.splitlines())
    shown = ""
    choices = get_args(value) if str(get_origin(value)) == "typing.Literal" else ()
    if choices:
        shown = "\n   One of " + ", ".join(f'``"{choice}"``' for choice in choices) + ".\n"
    elif isinstance(value, tuple):
        shown = "\n   " + ", ".join(f"`{kind.__name__}`" for kind in value) + ".\n"
    return f".. py:data:: {path}\n\n{body}\n{shown}"


def _doc(path: str, value: Any) -> str:
    """The docstring of a name; a type alias has the string that follows it in the module where it is defined."""
    if inspect.isclass(value) or inspect.isfunction(value) or isinstance(value, ModuleType):
        return inspect.getdoc(value) or ""
    name = path.rpartition(".")[2]
    for module in [m for n, m in sys.modules.items() if n.startswith("agent_eval_schema.") and name in vars(m)]:
        lines = ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", name))
        if lines:
            return "\n".join(lines)
    raise ValueError(f"{path} has no description")


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _list_table(rows: list[tuple[str, str]]) -> str:
    lines = [".. list-table::", "   :widths: 30 70", ""]
    for first, second in rows:
        lines += [f"   * - {first}", f"     - {second}"]
    return "\n".join([*lines, ""])


def _toctree(entries: list[str]) -> str:
    return "\n".join(
        [".. toctree::", "   :hidden:", "", *(f"   {entry.rpartition('.')[2]} <{entry}>" for entry in entries), ""]
    )


# ---------------------------------------------------------------------------------------------------------------------
class PublicRole(SphinxRole):
    """Single backticks: a link for a public name, else code."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        shown = self.text.replace("\x00", "\\")
        target = documented().get(shown.removesuffix("()"))
        if target is None:
            return [nodes.literal(self.rawtext, shown)], []
        place = {"refdomain": "py", "reftype": "obj", "reftarget": target, "refexplicit": True, "refwarn": True}
        node = pending_xref(self.rawtext, refdoc=self.env.docname, **place)
        node += nodes.literal(self.rawtext, shown, classes=["xref", "py", "py-obj"])
        return [node], []


def resolve_public(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> Any:
    """A name of See Also as the docstring has it: `Report.valid` from any module."""
    target = documented().get(str(node.get("reftarget", "")))
    if node.get("refdomain") != "py" or target is None:
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)
