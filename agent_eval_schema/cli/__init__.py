"""The command line: every command reads its arguments, calls one public function and prints what came back.

A file per command: `add` declares its arguments, `run` does it; what is heavy is imported there, so that `--help` is
quick. Findings go to stdout, notes to stderr. Exit 0: clean, 1: findings at or above --fail-on, 2: could not run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from agent_eval_schema.cli import (
    ces,
    convert,
    diff,
    from_inference_table,
    from_traces,
    metrics,
    rules,
    schema,
    score,
    validate,
)
from agent_eval_schema.cli.output import ExitCode, print_error
from agent_eval_schema.issues import EvalSetError
from agent_eval_schema.runtime.version import __version__

_COMMANDS = (validate, metrics, diff, score, from_traces, from_inference_table, convert, schema, ces, rules)
"""In the order in which `--help` lists them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as `>&-` does: nobody wants to read it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    arguments = argument_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except EvalSetError as error:
        print_error(error)
        return ExitCode.COULD_NOT_RUN
    except BrokenPipeError:  # the reader has seen enough, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.CLEAN
    except OSError as error:  # stdout cannot be written: a full disk
        print(f"agent-eval-schema: the report cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.COULD_NOT_RUN
    except KeyboardInterrupt:
        print("agent-eval-schema: interrupted", file=sys.stderr)
        return ExitCode.COULD_NOT_RUN
    return code


def argument_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="agent-eval-schema", description="Check evaluation sets for agents, and see what can be measured on them."
    )
    parser.add_argument("--version", action="version", version=f"agent-eval-schema {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add(commands)
    return parser
