"""The settings of a repository: `[tool.agent-eval-schema]` in pyproject.toml, or the file agent-eval-schema.toml.

    [tool.agent-eval-schema]
    files = ["evals/**/*.jsonl"]
    fail-on = "warning"
    per-file-ignores = { "evals/legacy/*" = ["AE5"] }

The file is looked for in the working directory and the folders above it; the first folder that has one decides, as for
ruff and pytest. An option of the command line wins over it.
"""

import glob
import json
import os
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.metrics.catalog import Direction

TABLE = "agent-eval-schema"
"""The table below `tool` in pyproject.toml."""


Codes = tuple[str, ...]
"""Codes, prefixes or names of rules."""


class MetricSetting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a repository states of a metric."""

    direction: Annotated[Direction, Meta(description="which scores are better; none: the metric is not judged")] = (
        "unknown"
    )
    scale: Annotated[str, Meta(description="lowest and highest score: 0..1, or 0.. without a highest")] = ""
    unit: Annotated[str, Meta(description="unit, such as s; empty for points")] = ""


class Settings(Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """Settings of agent-eval-schema: the defaults of the options of its commands."""

    files: Annotated[
        tuple[str, ...], Meta(description="datasets that `validate` reads if no FILE is given: globs, relative to here")
    ] = ()
    format: Annotated[str, Meta(description="format of the input")] = "auto"
    outputs: Annotated[
        Literal["auto", "provided", "generated"],
        Meta(
            description="whether the agent's outputs are in the data (provided: each row needs one) or will be "
            "generated; auto: provided if a row has one, and rows that their platform takes without need none"
        ),
    ] = "auto"
    columns: Annotated[
        dict[str, str], Meta(description="names of columns that the format does not know: path in the data → our name")
    ] = {}
    select: Annotated[Codes, Meta(description="rules to enable: codes, prefixes or names (default: all)")] = ()
    ignore: Annotated[Codes, Meta(description="rules to disable")] = ()
    per_file_ignores: Annotated[
        dict[str, Codes], Meta(description="rules to disable in the files that a glob matches, by path or by name")
    ] = {}
    max_cell_bytes: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="largest cell that `validate` reads, in bytes (default: no limit)"),
    ] = None
    fail_on: Annotated[
        Literal["error", "warning", "never"],
        Meta(description="lowest severity that causes exit code 1 of `validate`, `convert`, `score` and `from-traces`"),
    ] = "error"
    diff_fail_on: Annotated[
        Literal["any", "loss", "never"], Meta(description="differences that cause exit code 1 of `diff`")
    ] = "any"
    profile_fail_on: Annotated[
        tuple[Literal["never", "invalid", "duplicates", "leaks", "conflicts"], ...],
        Meta(description="what causes exit code 1 of `profile` (default: nothing)"),
    ] = ()
    metrics: Annotated[
        dict[str, MetricSetting], Meta(description="directions, scales and units of metrics that no catalog knows")
    ] = {}
    output: Annotated[
        Literal["text", "concise", "json", "github", "junit", "sarif"],
        Meta(description="form of the report on stdout; a command that does not have it prints text"),
    ] = "text"


class Found(Struct, frozen=True):
    """Settings and the file that they are from; without one, the defaults."""

    settings: Settings = Settings()
    path: Path | None = None

    def files(self) -> list[str]:
        """The files that the globs match, relative to the working directory."""
        if self.path is None:
            return []
        paths = [
            os.path.relpath(self.path.parent / name)
            for pattern in self.settings.files
            for name in sorted(glob.glob(pattern, root_dir=self.path.parent, recursive=True))
        ]
        if self.settings.files and not paths:
            raise EvalSetError(f"{self.path.name}: no file matches files = {json.dumps(self.settings.files)}")
        return list(dict.fromkeys(paths))

    def ignored(self, path: str) -> tuple[str, ...]:
        """The rules that are disabled for a file."""
        if self.path is None:
            return ()
        place = Path(os.path.relpath(path, self.path.parent)).as_posix()
        name = place.rpartition("/")[2]  # a pattern without a folder is that of a name, in whatever folder
        return tuple(
            code
            for pattern, codes in self.settings.per_file_ignores.items()
            if fnmatch(place, pattern) or ("/" not in pattern and fnmatch(name, pattern))
            for code in codes
        )

    def reading(self, path: str) -> dict[str, Any]:
        """The options by which a file is read, and its rules."""
        own = {name: getattr(self.settings, name) for name in ("format", "outputs", "select", "max_cell_bytes")}
        return {**own, "columns": self.settings.columns or None, "ignore": (*self.settings.ignore, *self.ignored(path))}


def find_settings(config: str | None, start: Path | None = None) -> Found:
    """The settings in a file, or (None) the nearest ones to a folder, by default the working directory."""
    if config is not None:
        found = _read_settings(Path(config))
        if found is None:
            raise EvalSetError(f"{config}: expected a table [tool.{TABLE}], got none")
        return found
    try:
        here = start or Path.cwd()
    except FileNotFoundError:  # the working directory was deleted: nothing is near to it
        return Found()
    for folder in (here, *here.parents):
        for name in ("agent-eval-schema.toml", "pyproject.toml"):
            if (folder / name).is_file() and (found := _read_settings(folder / name)) is not None:
                return found
    return Found()


def read_toml(name: str | Path) -> dict[str, Any]:
    """The table in a TOML file. Raises EvalSetError if it cannot be read."""
    path = Path(name)
    try:
        return parse_toml(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise EvalSetError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EvalSetError(f"{path}: malformed TOML: {error}") from error


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """The table in the text of a TOML file. Raises EvalSetError if it is malformed."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number of thousands of digits, and of nested lists
        why = "nested too deep" if isinstance(error, RecursionError) else error
        raise EvalSetError(f"{path}: malformed TOML: {why}") from error


def _read_settings(path: Path) -> Found | None:
    """The settings in a file; None for a pyproject.toml that has none."""
    table = read_toml(path)
    if path.name == "pyproject.toml":
        tool = table.get("tool", {})
        if not isinstance(tool, dict) or TABLE not in tool:
            return None
        table = tool[TABLE]
    names = [field.encode_name for field in msgspec.structs.fields(Settings)]
    unknown = [name for name in table if name not in names] if isinstance(table, dict) else []
    if unknown:
        from agent_eval_schema.text.choices import choice_problem

        raise EvalSetError(f"{path}: unknown setting: {choice_problem(unknown[0], names)}")
    try:
        return Found(msgspec.convert(table, Settings), path)
    except msgspec.ValidationError as error:
        raise EvalSetError(f"{path}: {str(error).replace(' - at `$.', ' - at `')}") from None


def schema() -> dict[str, Any]:
    (root,), definitions = msgspec.json.schema_components([Settings], ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}
