"""completion, server: help while someone types, by the script of a shell or the language server of an editor."""

import argparse
import sys

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import print_text
from agent_eval_schema.errors import EvalSetError

SHELLS = ("bash", "zsh", "fish")


def add_completion(commands: Commands) -> None:
    examples = [f"completion {shell} > agent-eval-schema.{shell}" for shell in SHELLS]
    command = add_command(commands, "completion", _complete, "print the completion script of a shell", examples)
    command.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def add_server(commands: Commands) -> None:
    examples = ["server"]
    summary = "check evaluation datasets in an editor (a language server over stdin)"
    command = add_command(commands, "server", _serve, summary, examples)
    command.add_argument("--stdio", action="store_true", help="as always; for editors that name it")


def _complete(arguments: argparse.Namespace) -> None:
    """Print the script, in which formats, metrics and rules are the choices of the arguments that take them."""
    from agent_eval_schema.errors import import_extra
    from agent_eval_schema.formats.inference_tables import TABLE_FAMILIES
    from agent_eval_schema.formats.json_schema import SCHEMAS
    from agent_eval_schema.formats.registry import all_formats, targets
    from agent_eval_schema.inference_tables.make_plan import KEEPABLE
    from agent_eval_schema.metrics.support import systems
    from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
    from agent_eval_schema.rules import all_rules

    shtab = import_extra("shtab", "completion", "shtab 1.13")
    parser = arguments.whole()
    codes = [word for rule in all_rules().values() for word in (rule.code, rule.name)]
    names = {
        "CODE": codes,
        "CODES": codes,
        "TABLE_FORMAT": ["auto", *(family.name for family in TABLE_FAMILIES)],
        "FORMAT": ["auto", *(form.name for form in all_formats())],
        "METRICS": list(TRAJECTORY_METRICS),
        "METRIC=MEAN": [f"{name}=" for name in TRAJECTORY_METRICS],
        "REASON": list(KEEPABLE),
        "SCHEMA": list(SCHEMAS),
        "SYSTEM": [*systems(), "all"],
        "TARGET": targets(),
    }
    _add_choices(parser, names, shtab.FILE)
    print_text(shtab.complete(parser, arguments.shell) + "\n", "script")


def _add_choices(parser: argparse.ArgumentParser, names: dict[str, list[str]], files: object) -> None:
    """Note for shtab what each argument takes, by its metavar; this parser is not used to parse any more."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _add_choices(command, names, files)
        elif action.metavar in ("FILE", "IN", "OUT", "OLD", "NEW", "PATH", "TABLE", "STORED"):
            action.complete = files  # type: ignore[attr-defined]
        elif isinstance(action.metavar, str) and action.metavar in names:
            action.choices = names[action.metavar]


def _serve(_: argparse.Namespace) -> None:
    if sys.stdin.isatty():
        raise EvalSetError("server: expected an editor on stdin, got a terminal: name the command in its settings")
    from agent_eval_schema.lsp.server import serve

    serve()
