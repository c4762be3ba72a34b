"""`from-inference-table TABLE OUT`: a build whose rows go into a file, with its manifest, and that can be resumed.

OUT                  the rows: Parquet, JSONL, or a new Delta table (a name without ending)
OUT.manifest.json    inputs, versions, options, seed and counts: what it takes to build the same set again
.OUT.work            the work folder; it goes when the set is there, and stays if the run is killed (--resume)
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.build import build_set
from agent_eval_schema.inference_tables.input_tables import input_of
from agent_eval_schema.inference_tables.options import BuildOptions
from agent_eval_schema.inference_tables.row_files import require_out
from agent_eval_schema.inference_tables.summary import Summary
from agent_eval_schema.inference_tables.work_folder import WorkFolder
from agent_eval_schema.io.atomic import require_apart, require_place, write_text
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.render.funnel.draw import funnel_numbers
from agent_eval_schema.runtime.progress import ProgressDisplay
from agent_eval_schema.runtime.version import __version__

MANIFEST_VERSION = 1

FLAGS = {name: f"--{name}" for name in BuildOptions.__struct_fields__ if name != "values"}
"""The options of a build and the words of the command line for them."""


def build_file(
    table: str,
    out: str,
    given: Mapping[str, Any],
    *,
    set_aside: str | None = None,
    html: str | None = None,
    resume: bool = False,
    jobs: int = 0,
    screen: ProgressDisplay | None = None,
) -> Summary:
    """Build into a file, with its manifest. `given` are the options (`BuildOptions`) that were given. What could not be
    written is told before the work. Raises EvalSetError if it cannot run."""
    for path in (out, set_aside):
        if path:
            require_out(path)
    for path in (html, manifest_of(out)):
        if path:
            require_place(path)
    require_apart(_read(table, given), {"OUT": out, "--set-aside": set_aside, "--html": html})
    # What is read is what the manifest records, however the tables beside change in the meantime.
    given = {**given, **{name: _version_of(path) for name, path in BuildOptions(**given).tables.items()}}
    work = WorkFolder(work_of(out))
    try:
        build = build_set(table, work, BuildOptions(**given), jobs=jobs, screen=screen, resume=resume, out=out)
    except EvalSetError:
        if not work.parts():  # nothing was done that a second run could go on with
            work.remove()
        raise
    if set_aside:
        build.write_set_aside(set_aside)
    if html:
        build.save(html)
    write_text(manifest_of(out), manifest(table, out, given, build.summary))
    work.remove()
    return build.summary


def build_on_spark(
    table: str, out: str, given: Mapping[str, Any], *, set_aside: str | None = None, html: str | None = None
) -> Summary:
    """Build with Spark: tables are folders or files of Parquet, Delta folders or names of Spark's catalogue, and `out`
    is a new folder of Parquet files, or a Delta table if it has no ending. Raises EvalSetError if it cannot run."""
    from agent_eval_schema.io.spark_tables import read_table, require_new, spark_session, write_table

    require_apart(_read(table, given), {"OUT": out, "--set-aside": set_aside, "--html": html})
    for path in (out, set_aside):
        if path:
            require_new(path)
    for path in (html, manifest_of(out)):
        if path:
            require_place(path)
    from agent_eval_schema.inference_tables.spark import build_set_on_spark

    spark = spark_session()
    tables = {name: read_table(spark, path) for name, path in BuildOptions(**given).tables.items()}
    with build_set_on_spark(read_table(spark, table), BuildOptions(**{**given, **tables})) as build:
        write_table(build.rows, out)
        if set_aside:
            write_table(build.set_aside, set_aside)
        if html:
            write_text(html, build.to_html())
        summary: Summary = build.summary
    write_text(manifest_of(out), manifest(table, out, given, summary, more=("--engine", "spark")))
    return summary


def _read(table: str, given: Mapping[str, Any]) -> dict[str, str | None]:
    """The files that a build reads, by their names on the command line."""
    beside = {FLAGS[name]: str(path) for name, path in BuildOptions(**given).tables.items() if os.path.exists(path)}
    return {"TABLE": table, **beside}


def work_of(out: str) -> Path:
    """The work folder of a build that writes `out`."""
    place = Path(os.path.abspath(out))
    return place.with_name(f".{place.name}.work")


def manifest_of(out: str) -> str:
    return f"{out.rstrip(os.sep)}.manifest.json"


def manifest(table: str, out: str, given: Mapping[str, Any], summary: Summary, more: tuple[str, ...] = ()) -> str:
    """What a set was made of and how, so that it can be made again: as JSON."""
    inputs = [summary.table or table, *BuildOptions(**given).tables.values()]
    body = {
        "version": MANIFEST_VERSION,
        "made_by": {"agent-eval-schema": __version__, **_versions("duckdb", "pyarrow", "pandas", "deltalake")},
        "inputs": [input_of(path) for path in inputs],
        "options": {**given, "seed": summary.seed},
        "command": command(inputs[0], out, given, more),
        "output": out,
        "summary": {k: v for k, v in funnel_numbers(summary).items() if k != "seconds"},
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"


def _version_of(path: str) -> str:
    """The name of a file, or of a Delta folder at the version that it has now."""
    return open_source(path).name or path if is_delta(path) else path


def _versions(*packages: str) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def command(table: str, out: str, given: Mapping[str, Any], more: tuple[str, ...] = ()) -> str:
    """The command line that builds the set again (of a Delta folder, from the same version)."""
    words = ["agent-eval-schema", "from-inference-table", table, out]
    for name, value in given.items():
        if name in FLAGS:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [FLAGS[name], "none" if one is None else str(one)]
        elif name == "values" and value is False:
            words.append("--no-values")
    return shlex.join([*words, *more])
