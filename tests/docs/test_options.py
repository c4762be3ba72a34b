"""Each option of the command line is explained on a page, beside the generated reference."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from agent_eval_schema.cli import argument_parser
from tests.conftest import ROOT

GENERATED = ROOT / "docs/reference/cli"


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from options(command)


def test_each_option_is_on_a_page() -> None:
    pages = (ROOT / "docs").rglob("*.md")
    texts = [page.read_text("utf-8") for page in pages if GENERATED not in page.parents]
    named = {name for text in texts for name in re.findall(r"--[a-z][a-z-]*", text)}
    assert {*options(argument_parser())} - named == set()
