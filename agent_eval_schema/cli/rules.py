"""explain, rules: the documentation of one rule, and of all."""

from __future__ import annotations

import argparse

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import ExitCode, in_color, print_text


def add(commands: Commands) -> None:
    """Add the commands."""
    command = add_command(
        commands,
        "explain",
        _explain,
        "show the documentation of a rule",
        ["explain AE206", "explain message-role"],
    )
    command.add_argument("code", metavar="CODE", help="a code or name, such as AE206 or message-role")
    command = add_command(commands, "rules", run, "list all rules", ["rules", "rules --output json"])
    command.add_output("list")


def _explain(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.fix.effects import FIXABLE
    from agent_eval_schema.render.rule import rule_text
    from agent_eval_schema.validation.chosen_rules import find_rule

    rule = find_rule(arguments.code)
    print_text(rule_text(rule, FIXABLE.get(rule.code, ()), color=in_color()))
    return ExitCode.CLEAN


def run(arguments: argparse.Namespace) -> int:
    """List all rules by family."""
    from agent_eval_schema.fix.effects import FIXABLE
    from agent_eval_schema.render.rule import rules_json, rules_text
    from agent_eval_schema.rules import FAMILIES, RULES

    rules = list(RULES.values())
    as_json = arguments.output == "json"
    text = rules_json(FAMILIES, rules, FIXABLE) if as_json else rules_text(FAMILIES, rules, color=in_color())
    print_text(text, arguments.output)
    return ExitCode.CLEAN
