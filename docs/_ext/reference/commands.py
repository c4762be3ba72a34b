"""A page per command, from the argparse parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from agent_eval_schema.cli import argument_parser
from reference.markdown import CONTENTS, Pages, code, entry, fence, prose, table, toctree

PROGRAM = "agent-eval-schema"


def pages(_: Path) -> Pages:
    """The pages below reference/cli, and their order."""
    found = dict(commands(argument_parser()))
    made = {f"reference/cli/{page_name(words)}.md": _page(words, parser) for words, parser in found.items()}
    contents = toctree(map(page_name, found), "maxdepth: 1")
    return {**made, "reference/cli/pages.inc": contents}


def page_name(words: str) -> str:
    """The page of a command."""
    return words.replace(" ", "-")


def commands(parser: argparse.ArgumentParser, *before: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that can be run, by its words, such as `ces update`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                inner = list(commands(command, *before, name))
                yield from inner or [(" ".join((*before, name)), command)]


def arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """The groups of a parser that have arguments."""
    for group in parser._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        if shown and not any(isinstance(a, argparse._SubParsersAction) for a in shown):
            yield group.title or "", shown


def index() -> str:
    """The table of all commands."""
    rows = [
        (entry(page_name(words), code(words)), prose(parser.description or ""))
        for words, parser in commands(argument_parser())
    ]
    return "\n".join(
        [
            "# Command line\n",
            fence(f"{PROGRAM} COMMAND --help", "text"),
            table(("Command", "Purpose"), rows),
            "[Exit codes and environment variables](../exit-codes-and-environment.md) apply to all commands.\n",
            CONTENTS,
        ]
    )


def _page(words: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"# {words}\n", f"{prose(parser.description or '')}\n", f"```{{program}} {PROGRAM} {words}\n```\n"]
    parts += [fence(_usage(words, parser), "text")]
    for title, actions in sorted(arguments(parser), key=lambda entry: _is_general(entry[1])):
        parts += [f"## {_TITLES.get(title, title.capitalize())}\n", *map(_option, actions)]
    if parser.epilog:
        lines = [line.strip() for line in parser.epilog.splitlines()[1:]]
        parts += ["## Examples\n", fence("\n".join(f"$ {line}" for line in lines), "text")]
    return "\n".join(parts)


_TITLES = {"positional arguments": "Arguments", "options": "General", "general": "General"}


def _is_general(actions: list[argparse.Action]) -> bool:
    return any(isinstance(a, argparse._HelpAction) for a in actions)


def _usage(words: str, parser: argparse.ArgumentParser) -> str:
    positional = [a for _, actions in arguments(parser) for a in actions if not a.option_strings]
    names = [_metavar(a) + (" ..." if a.nargs in ("+", "*") else "") for a in positional]
    shown = [f"[{n}]" if a.nargs in ("?", "*") else n for n, a in zip(names, positional, strict=True)]
    return " ".join([PROGRAM, words, *shown, "[options]"])


def _metavar(action: argparse.Action) -> str:
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest.upper())


def _option(action: argparse.Action) -> str:
    takes = action.nargs != 0
    names = action.option_strings or [_metavar(action)]
    shown = ", ".join(f"{name} {_metavar(action)}" if takes and action.option_strings else name for name in names)
    help = (action.help or "") % {**vars(action), "prog": PROGRAM} if action.help else ""
    text = prose(re.sub(r"^(\w)", lambda found: found[1].upper(), help)).rstrip(".")
    repeatable = " Can be repeated." if isinstance(action, argparse._AppendAction) else ""
    return f"````{{option}} {shown}\n{text}.{repeatable}\n````\n"
