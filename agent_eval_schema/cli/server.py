"""server: a language server, for editors."""

import argparse
import sys

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode
from agent_eval_schema.errors import EvalSetError


def add(commands: Commands) -> None:
    command = add_command(
        commands, "server", run, "check evaluation datasets in an editor (a language server over stdin)", ["server"]
    )
    command.add_argument("--stdio", action="store_true", help="as always; for editors that name it")


def run(_: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        raise EvalSetError("server: expected an editor on stdin, got a terminal: name the command in its settings")
    from agent_eval_schema.lsp.server import serve

    serve()
    return ExitCode.CLEAN
