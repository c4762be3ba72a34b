"""diff: the changes between two versions of an evaluation dataset."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from agent_eval_schema.cli.options import EXIT, INPUT, ROW_FILES, Commands, add_command
from agent_eval_schema.cli.output import ExitCode, in_color, print_text, save_page
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.render.phrases import SIGNS, code_block, plural

if TYPE_CHECKING:
    from agent_eval_schema.diff.diff import Diff


def add(commands: Commands) -> None:
    examples = [
        "diff sample_data/good.jsonl sample_data/edited_broken.jsonl",
        "diff sample_data/good.jsonl sample_data/edited_broken.jsonl --fail-on loss --html diff.html",
    ]
    summary = "show what changed between two versions of an evaluation dataset"
    command = add_command(commands, "diff", run, summary, examples)
    both = f"OLD and NEW, of the same or another kind: {ROW_FILES}; with --since files, folders and patterns"
    command.add_argument("files", metavar="FILE", nargs="*", help=both)
    since = (
        "compare the datasets that differ from a commit of git with their versions there: renamed ones are followed, "
        "and a deleted one is lost. Without FILE: files and folders whose name begins with eval"
    )
    command.option(INPUT, "--since", since, metavar="COMMIT")
    command.reads_and_writes(["files"])
    command.add_reading()
    command.add_system("databricks", "databricks")
    command.add_output("comparison", "json", "markdown", default=None)
    command.add_settings("format", "outputs", "columns", "output", "diff_fail_on")
    command.add_html("comparison")
    failing = (
        "what causes exit code 1: any difference except the order of rows (default), or a loss: "
        "a row was removed, became invalid, or no longer supports a metric"
    )
    command.option(EXIT, "--fail-on", failing, dest="diff_fail_on", choices=["any", "loss", "never"])


def run(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.diff.diff import diff_eval_sets
    from agent_eval_schema.metrics.support import metrics_of

    metrics_of(arguments.system)  # a wrong name is reported before the files are read
    if arguments.since is not None:
        return _since(arguments)
    if len(arguments.files) != 2:
        raise EvalSetError(f"expected OLD and NEW, or --since COMMIT; got {plural(len(arguments.files), 'file')}")
    old, new = arguments.files
    diff = diff_eval_sets(old, new, **_reading(arguments))
    if arguments.output == "json":
        print_text(diff.to_json(), "json")
    else:
        _print(_text_of(diff, arguments), arguments)
    save_page(diff, "comparison", arguments)
    return _exit_code(arguments, not diff.same, diff.losses)


def _since(arguments: argparse.Namespace) -> int:
    """Compare the datasets that changed since a commit with their versions there."""
    from msgspec.structs import replace

    from agent_eval_schema.diff.diff import diff_eval_sets
    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.io.git import Commit
    from agent_eval_schema.io.streams import naming
    from agent_eval_schema.text.visible import visible

    if arguments.html or arguments.output == "json":
        raise EvalSetError("--since prints text or Markdown: --html and --output json compare OLD with NEW")
    commit, is_different, has_losses = Commit(arguments.since, arguments.files), False, False
    for number, (old, new) in enumerate(commit.changes):
        name = commit.name(old)
        if new is None:
            _print(f"{SIGNS['error']}{visible(name)}: the dataset is deleted: all of its rows are lost.\n", arguments)
            is_different = has_losses = True
            continue
        copy = commit.fetch(number, old)
        with naming(os.path.dirname(copy), "."), naming(copy, name):  # advice names no copy of ours
            diff = diff_eval_sets(replace(open_source(copy, "old"), name=name), new, **_reading(arguments))
        _print(_text_of(diff, arguments), arguments)
        is_different, has_losses = is_different or not diff.same, has_losses or diff.losses
    if not commit.changes:
        _print(f"{SIGNS['good']}No evaluation dataset has changed since {visible(commit.revision)}.\n", arguments)
    return _exit_code(arguments, is_different, has_losses)


def _text_of(diff: Diff, arguments: argparse.Namespace) -> str:
    return diff.to_text(color=in_color() and arguments.output != "markdown", system=arguments.system)


def _print(text: str, arguments: argparse.Namespace) -> None:
    """Print the text of a comparison; as Markdown, in a block of code, which shows cells and names as they are."""
    print_text(code_block(text) if arguments.output == "markdown" else text, arguments.output)


def _reading(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"format": arguments.format, "outputs": arguments.outputs, "columns": arguments.columns}


def _exit_code(arguments: argparse.Namespace, is_different: bool, has_losses: bool) -> int:
    fails = {"any": is_different, "loss": has_losses, "never": False}
    return ExitCode.FOUND if fails[arguments.diff_fail_on] else ExitCode.CLEAN
