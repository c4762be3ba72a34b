"""`from-inference-table TABLE OUT`: a build whose rows go into a file, with its manifest, and that can be resumed.

OUT                  the rows: Parquet, JSONL, or a new Delta table (a name without file extension)
OUT.manifest.json    inputs, versions, options, seed and counts: everything needed to build the same dataset again
.OUT.work            the work folder; it goes when the set is there, and stays if the run is killed (--resume)
.OUT.lock            there while a build runs: two at once would leave the rows of one and the manifest of the other
"""

import os
import shlex
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.opening import open_source
from agent_eval_schema.inference_tables.build import build_set, require_out
from agent_eval_schema.inference_tables.build_summary import BuildSummary, funnel_numbers
from agent_eval_schema.inference_tables.options import flag
from agent_eval_schema.inference_tables.plan import BuildOptions
from agent_eval_schema.inference_tables.work_folder import BuildFolder
from agent_eval_schema.io.atomic import replacing, require_place, write_text
from agent_eval_schema.io.delta import is_delta
from agent_eval_schema.io.locks import sole_writer
from agent_eval_schema.io.outputs import settle
from agent_eval_schema.io.places import ending_of, is_url
from agent_eval_schema.io.streams import STDOUT, creating
from agent_eval_schema.io.work_folder import input_of, work_of
from agent_eval_schema.runtime.signals import TemporaryFolder
from agent_eval_schema.runtime.version import __version__
from agent_eval_schema.text.guarded import read_json


def build_file(
    table: str,
    out: str,
    chosen: Mapping[str, Any],
    *,
    excluded: str | None = None,
    html: str | None = None,
    resume: bool = False,
    jobs: int = 0,
) -> BuildSummary:
    """Build into a file, with its manifest. `chosen` are the options (`BuildOptions`) that were chosen. An output that
    cannot be written is reported before the work. Raises EvalSetError if it cannot run."""
    for path in filter(None, (out, excluded)):
        require_out(path)
    for path in filter(None, (html, None if out == STDOUT else manifest_of(out))):
        require_place(path)
    settle(_written(out, excluded, html), _inputs(table, chosen))
    # What goes to stdout or to a URL is built in a temporary folder.
    folder = TemporaryFolder() if out == STDOUT or is_url(out) else None
    if folder is not None and resume:
        raise EvalSetError(f"{out}: expected a path on this machine for --resume")
    here = [path for path in (out, excluded, html) if path and path != STDOUT and not is_url(path)]
    with sole_writer(here):
        # The manifest records the input as it is read, however the tables change in the meantime: a Delta folder by the
        # name of the version that it has now.
        tables = BuildOptions(**chosen).tables.items()
        versions = {name: open_source(path).name or path if is_delta(path) else path for name, path in tables}
        chosen = {**chosen, **versions}
        local = out if folder is None else folder.file(f"rows{ending_of(out)}")
        work = BuildFolder(work_of(local))
        try:
            build = build_set(table, work, BuildOptions(**chosen), out=local, resume=resume, jobs=jobs)
        except EvalSetError:
            if not work.parts():  # nothing was done that a second run could resume
                work.remove()
            raise
        if excluded:
            build.write_excluded(excluded)
        if html:
            write_text(html, build._page(out))
        if folder is not None:
            with replacing(out) as temporary, open(local, "rb") as rows, creating(temporary) as file:
                shutil.copyfileobj(rows, file)
        if out != STDOUT:
            write_text(manifest_of(out), manifest(table, out, chosen, build.summary))
        work.remove()
        return build.summary


def build_on_spark(
    table: str, out: str, chosen: Mapping[str, Any], *, excluded: str | None = None, html: str | None = None
) -> BuildSummary:
    """Build with Spark: tables are folders or files of Parquet, Delta folders or names of Spark's catalog, and `out` is
    a new folder of Parquet files, or a Delta table if it has no file extension. Raises EvalSetError if it cannot
    run."""
    from agent_eval_schema.io.spark import read_table, require_new, spark_session

    settle(_written(out, excluded, html), _inputs(table, chosen))
    for path in filter(None, (out, excluded)):
        require_new(path)
    for path in filter(None, (html, manifest_of(out))):
        require_place(path)
    from agent_eval_schema.inference_tables.spark import build_set_on_spark

    spark = spark_session()
    tables = {name: read_table(spark, path) for name, path in BuildOptions(**chosen).tables.items()}
    options = BuildOptions(**{**chosen, **tables})
    with sole_writer((out, excluded, html)), build_set_on_spark(read_table(spark, table), options) as build:
        build.write(out)
        if excluded:
            build.write_excluded(excluded)
        if html:
            write_text(html, build._page(out))
        write_text(manifest_of(out), manifest(table, out, chosen, build.summary, more=("--engine", "spark")))
        return build.summary


def _written(out: str, excluded: str | None, html: str | None) -> dict[str, str | None]:
    """What a build writes, by the names on the command line."""
    manifest = None if out == STDOUT else manifest_of(out)
    return {"OUT": out, "the manifest of OUT": manifest, "--excluded": excluded, "--html": html}


def _inputs(table: str, chosen: Mapping[str, Any]) -> dict[str, str | None]:
    """The files that a build reads, by their names on the command line."""
    beside = {flag(name): str(path) for name, path in BuildOptions(**chosen).tables.items() if os.path.exists(path)}
    return {"TABLE": table, **beside}


def manifest_of(out: str) -> str:
    return f"{out.rstrip(os.sep)}.manifest.json"


def manifest(table: str, out: str, chosen: Mapping[str, Any], summary: BuildSummary, more: tuple[str, ...] = ()) -> str:
    """The manifest of a dataset, from which it can be built again: as JSON."""
    tables = BuildOptions(**chosen).tables
    inputs = [summary.table or table, *tables.values()]
    versions = {"agent-eval-schema": __version__}
    for package in ("duckdb", "pyarrow", "pandas", "deltalake", "phonenumbers", "python-stdnum"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    body = {
        "version": 1,
        "made_by": versions,
        "inputs": [input_of(path) for path in inputs],
        "options": {**chosen, "seed": summary.seed},
        "command": command(inputs[0], out, chosen, more),
        **({"extends": chain_of(str(tables["extend"]))} if "extend" in tables else {}),
        "output": out,
        "summary": {k: v for k, v in funnel_numbers(summary).items() if k != "seconds"},
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"


def chain_of(existing: str) -> list[dict[str, Any]]:
    """The builds that made a dataset, the first one first, by their manifests; without a manifest its name."""
    path = manifest_of(existing.partition("@v")[0] if not os.path.exists(existing) else existing)
    try:
        build = read_json(path, dict[str, Any], "")
        earlier = msgspec.convert(build.pop("extends", []), list[dict[str, Any]])
    except (EvalSetError, msgspec.ValidationError):
        return [{"output": existing}]
    return [*earlier, build]


def command(table: str, out: str, chosen: Mapping[str, Any], more: tuple[str, ...] = ()) -> str:
    """The command line that builds the set again (of a Delta folder, from the same version)."""
    words = ["agent-eval-schema", "from-inference-table", table, out]
    for name, value in chosen.items():
        if name == "show_values":
            words += [] if value else ["--no-values"]
        elif isinstance(value, Mapping):
            words += [word for path, field in value.items() for word in (flag(name), f"{path}={field}")]
        else:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for one in values for word in (flag(name), "none" if one is None else str(one))]
    return shlex.join([*words, *more])
