"""Arguments that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from agent_eval_schema.issues import Severity

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]

ROW_FILES = "JSONL, JSON, CSV or Parquet"
"""The kinds of file that every command reads."""

FAILING = {"error": (Severity.ERROR,), "warning": (Severity.ERROR, Severity.WARNING), "never": ()}
"""The severities that fail a run, by --fail-on."""


def add_command(commands: Commands, name: str, run: Run | None, summary: str) -> argparse.ArgumentParser:
    """Add a command; `run` is None for one that has verbs."""
    command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    if run is not None:
        command.set_defaults(run=run)
    return command


def add_reading(command: argparse.ArgumentParser) -> None:
    """--format and --outputs: how a file is read; and --quiet."""
    command.add_argument(
        "--format",
        metavar="F",
        default="auto",
        help="ces-csv, ces-evaluation, traces, search_traces, adk, "
        "adk-legacy, langsmith, ragas, deepeval, openai, vertex, mlflow or databricks (found by its columns)",
    )
    command.add_argument(
        "--outputs",
        choices=["auto", "provided", "generated"],
        default="auto",
        help="whether the outputs are in the data",
    )
    add_quiet(command)


def add_output(command: argparse.ArgumentParser, form_of: str, *others: str, dest: str = "output") -> None:
    """--output: as text, or in another form."""
    choices = ["text", *(others or ("json",))]
    command.add_argument("--output", dest=dest, choices=choices, default="text", help=f"form of the {form_of} (text)")


def add_fail_on(command: argparse.ArgumentParser, why: str = "what makes the exit code 1 (error)") -> None:
    """--fail-on: the severities that fail the run."""
    command.add_argument("--fail-on", choices=list(FAILING), default="error", help=why)


def add_no_values(command: argparse.ArgumentParser) -> None:
    """--no-values: for private data."""
    command.add_argument(
        "--no-values", dest="values", action="store_false", help="say nothing that stands in a cell (private data)"
    )


def add_quiet(command: argparse.ArgumentParser) -> None:
    """--quiet: only errors on stderr."""
    command.add_argument("-q", "--quiet", action="store_true", help="no progress and no notes on stderr, only errors")


def add_jobs(command: argparse.ArgumentParser) -> None:
    """--jobs: how many processes."""
    command.add_argument(
        "--jobs", metavar="N", type=_positive, default=0, help="processes (one a core for a large file)"
    )


def codes_in(given: list[str]) -> tuple[str, ...]:
    """The names in an option that may be given again, each time with several separated by commas."""
    return tuple(code.strip() for entry in given for code in entry.split(",") if code.strip())


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)
