"""What all forms share and no console is needed for: numbers with their nouns, styles, the next command."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from agent_eval_schema.issues import Severity

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}


EXAMPLES_SHOWN = 3
"""Examples of a field, of a code and of a metric, and edits of a cell, in a text; counts beside them are exact, and the
other forms have more."""


class NextCommand(NamedTuple):
    """What to type next, and what it does."""

    command: str
    effect: str


def command_on(name: str | None, verb: str, *options: str, instead: str = "") -> str:
    """The command that reads a file; for data in memory and stdin another call, if there is one."""
    return instead if name in (None, "-") else shlex.join(["agent-eval-schema", verb, str(name), *options])


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
