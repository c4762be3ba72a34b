"""explain, rules, formats, schema: the documentation of rules and formats, and JSON Schemas."""

import argparse
import sys

from agent_eval_schema.cli.options import Commands, add_command
from agent_eval_schema.cli.output import in_color, print_text, width_of


def add_formats(commands: Commands) -> None:
    examples = ["formats", "formats langfuse", "formats --output json"]
    command = add_command(commands, "formats", _formats, "list the formats that are read and written", examples)
    command.add_argument("name", metavar="FORMAT", nargs="?", help="show one format, with all signs and an example")
    command.add_output("list")


def add_schema(commands: Commands) -> None:
    examples = ["schema databricks > row.schema.json", "schema settings > settings.schema.json"]
    command = add_command(commands, "schema", _schema, "print the JSON Schema of a row or of the settings", examples)
    names = "databricks, mlflow or ces-evaluation (input), canonical (output), or settings (of a repository)"
    command.add_argument("name", metavar="SCHEMA", help=names)


def add_rules(commands: Commands) -> None:
    examples = ["explain AE206", "explain message-role"]
    command = add_command(commands, "explain", _explain, "show the documentation of a rule", examples)
    command.add_argument("code", metavar="CODE", help="a code or name, such as AE206 or message-role")
    command = add_command(commands, "rules", _rules, "list all rules", ["rules", "rules --output json"])
    command.add_output("list")


def _formats(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.formats.overview import overview, overview_of
    from agent_eval_schema.render.rule import format_text, formats_json, formats_text

    formats = overview() if arguments.name is None else [overview_of(arguments.name)]
    if arguments.output == "json":
        print_text(formats_json(formats), "json")
    elif arguments.name is None:
        print_text(formats_text(formats, color=in_color(), width=width_of(sys.stdout)))
    else:
        print_text(format_text(formats[0], color=in_color(), width=width_of(sys.stdout)))


def _schema(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.formats.json_schema import json_schema
    from agent_eval_schema.render.document import json_text
    from agent_eval_schema.validation.settings import schema

    print_text(json_text(schema() if arguments.name == "settings" else json_schema(arguments.name)), "json")


def _explain(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.fix.effects import FIXABLE
    from agent_eval_schema.render.rule import rule_text
    from agent_eval_schema.validation.chosen_rules import find_rule

    rule = find_rule(arguments.code)
    print_text(rule_text(rule, FIXABLE.get(rule.code, ()), color=in_color(), width=width_of(sys.stdout)))


def _rules(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.fix.effects import FIXABLE
    from agent_eval_schema.render.rule import rules_json, rules_text
    from agent_eval_schema.rules import all_rules

    rules = list(all_rules().values())
    as_json = arguments.output == "json"
    text = rules_json(rules, FIXABLE) if as_json else rules_text(rules, color=in_color(), width=width_of(sys.stdout))
    print_text(text, arguments.output)
