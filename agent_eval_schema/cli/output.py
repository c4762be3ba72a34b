"""What a command prints: text to stdout, notes to stderr, and its exit code."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from agent_eval_schema.issues import EvalSetError
    from agent_eval_schema.runtime.progress import ProgressDisplay
    from agent_eval_schema.validation.report import Report


class ExitCode(IntEnum):
    """How a command ended. FOUND: there are issues at or above --fail-on; of a diff: differences."""

    CLEAN = 0
    FOUND = 1
    COULD_NOT_RUN = 2


def print_text(text: str) -> None:
    """Print to stdout; characters that its encoding lacks are written as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def print_note(text: str, arguments: argparse.Namespace) -> None:
    """Print to stderr, with names that anyone may have given to a file."""
    from agent_eval_schema.text.visible import escape_ci_commands, visible

    if not arguments.quiet:
        print(escape_ci_commands(visible(text)), file=sys.stderr)


def print_error(error: EvalSetError) -> None:
    """Print to stderr why something could not run."""
    from agent_eval_schema.text.visible import escape_ci_commands, visible

    print(escape_ci_commands(f"agent-eval-schema: {visible(error)}"), file=sys.stderr)


def print_pace(reports: Sequence[Report], arguments: argparse.Namespace) -> None:
    """Print how fast a long run was; of a short one nobody wants to know."""
    from agent_eval_schema.runtime.progress import PATIENCE, pace_text

    seconds = sum(report.seconds for report in reports)
    if seconds >= PATIENCE:
        print_note(pace_text(sum(report.row_count for report in reports), seconds), arguments)


def terminal_text(report: Report) -> str:
    """The report for this terminal."""
    return report.to_text(color=in_color())


def in_color() -> bool:
    """Whether stdout is a terminal that takes color."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def progress_screen(arguments: argparse.Namespace) -> ProgressDisplay | None:
    """Where progress is shown, unless the command is to be quiet."""
    from agent_eval_schema.runtime.progress import terminal

    return None if arguments.quiet else terminal()


def save_page(path: str, page: str, what: str, arguments: argparse.Namespace) -> None:
    """Write an HTML page, and print a note of it."""
    from agent_eval_schema.io.atomic import write_text

    write_text(path, page)
    print_note(f"the {what} as a page written to {path}", arguments)
