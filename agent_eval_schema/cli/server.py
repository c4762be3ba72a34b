"""server: a language server, for editors."""

import argparse
import sys

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode
from agent_eval_schema.errors import EvalSetError


def add(commands: Commands) -> None:
    add_command(
        commands, "server", run, "check evaluation datasets in an editor (a language server over stdin)", ["server"]
    )


def run(_: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        raise EvalSetError("server: expected an editor on stdin, got a terminal: name the command in its settings")
    from agent_eval_schema.lsp.server import serve

    serve()
    return ExitCode.CLEAN
