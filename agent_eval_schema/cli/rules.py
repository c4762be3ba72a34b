"""explain, rules: what a code means, and the list of them all."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode, print_text


def add(commands: Commands) -> None:
    """Add the commands."""
    command = add_command(commands, "explain", _explain, "explain a code")
    command.add_argument("code", metavar="CODE", help="such as AE206 or message-role")
    add_command(commands, "rules", run, "list all rules")


def _explain(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.api import explain

    print_text(explain(arguments.code))
    return ExitCode.CLEAN


def run(_: argparse.Namespace) -> int:
    """List all rules by family."""
    from agent_eval_schema.rules import FAMILIES, RULES

    family = ""
    for rule in RULES.values():
        if rule.code[2] != family:
            family = rule.code[2]
            print_text(f"\n{FAMILIES[family]} (AE{family})\n".lstrip("\n" if family == "0" else ""))
        print_text(f"  {rule.code}  {rule.severity!s:7}  {rule.name:30}  {rule.doc.partition(chr(10))[0]}\n")
    return ExitCode.CLEAN
