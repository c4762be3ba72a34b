"""What all forms share and no console is needed for: numbers with their nouns, styles, the next command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
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
    """The command that reads a file, or stdin once more; for data in memory another call, if there is one."""
    from agent_eval_schema.io.streams import STDIN, STDIN_NAME, STDOUT  # not above: `rules` needs no Arrow

    if name in (None, STDOUT):
        return instead
    return shlex.join(["agent-eval-schema", verb, STDIN if name == STDIN_NAME else str(name), *options])


def counted(counts: Iterable[tuple[int, str]]) -> list[str]:
    """`["2 added", "1 moved"]`: each number with its words, without those that are 0."""
    return [f"{count:,} {words}" for count, words in counts if count]


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
