"""What a command prints: text to stdout, notes to stderr, and its exit code."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any

from agent_eval_schema.errors import (
    EvalSetError,
    ExtensionWarning,
    FormulaWarning,
    HardLinkWarning,
    UnwrittenScoreWarning,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from agent_eval_schema.render.printable import Printable
    from agent_eval_schema.runtime.progress import ProgressDisplay
    from agent_eval_schema.validation.report import Report


class ExitCode(IntEnum):
    """How a command ended. FOUND: there are issues at or above --fail-on; of a diff: differences."""

    CLEAN = 0
    FOUND = 1
    COULD_NOT_RUN = 2


_has_rows_on_stdout = False
"""Whether rows go to stdout, so that the report goes to stderr."""


@contextmanager
def leaving_stdout(to_rows: bool) -> Iterator[None]:
    """Print reports to stderr, if stdout is an output for rows."""
    global _has_rows_on_stdout
    before, _has_rows_on_stdout = _has_rows_on_stdout, to_rows
    try:
        yield
    finally:
        _has_rows_on_stdout = before


def print_text(text: str, form: str = "text") -> None:
    """Print to stdout, in a form of `--output` or as a script; to stderr, if stdout takes rows. A CI runner finds no
    command in it, unless that is the form or it is for a shell; characters that the encoding lacks are written as
    escapes.

    Raises EvalSetError if stdout cannot be written, but BrokenPipeError if its reader has seen enough.
    """
    from agent_eval_schema.text.visible import JSON_ESCAPE, TEXT_ESCAPE, XML_ESCAPE, escape_ci_commands

    if form not in ("github", "script"):
        escapes = {"json": JSON_ESCAPE, "sarif": JSON_ESCAPE, "junit": XML_ESCAPE}
        text = escape_ci_commands(text, escapes.get(form, TEXT_ESCAPE))
    stream = sys.stderr if _has_rows_on_stdout else sys.stdout
    encoding = stream.encoding or "utf-8"
    with writing_stdout():
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


@contextmanager
def writing_stdout() -> Iterator[None]:
    """Raises EvalSetError if stdout cannot be written: the disk is full. Nothing more is written to it then."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        close_stdout()
        raise EvalSetError(f"the report cannot be written: {error.strerror or error}") from error


def close_stdout() -> None:
    """Write nothing more to stdout, when Python ends neither."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_note(text: str, arguments: argparse.Namespace) -> None:
    """Print to stderr, unless the command is to be quiet."""
    if not arguments.quiet:
        print_line(text)


_NOTED = (ExtensionWarning, FormulaWarning, HardLinkWarning, UnwrittenScoreWarning)


@contextmanager
def noting_warnings(arguments: argparse.Namespace) -> Iterator[None]:
    """Print what a user has to know, unless the command is to be quiet: what a spreadsheet would run in a CSV file,
    other names of a file that is replaced, and formats of other packages that cannot be used."""
    import warnings

    with warnings.catch_warnings():
        for noted in _NOTED:
            warnings.simplefilter("always", noted)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, _NOTED):
                others(message, category, *where, **more)
            elif not getattr(arguments, "quiet", False):
                print_line(str(message))

        warnings.showwarning = show
        yield


def print_error(error: object) -> None:
    """Print to stderr why something could not run; a terminal gets it broken at words."""
    from agent_eval_schema.text.visible import wrapped

    for line in wrapped(f"agent-eval-schema: {error}", width_of(sys.stderr), "  "):
        print_line(line)


def width_of(stream: IO[str]) -> int | None:
    """The columns of a terminal; None for a file or a pipe, in which a line stays whole for what searches it."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def print_line(text: str) -> None:
    """A line on stderr, which may hold names that anyone has given to a file, and URLs with a password."""
    from agent_eval_schema.text.visible import escape_ci_commands, visible, without_secrets

    print(escape_ci_commands(visible(without_secrets(text))), file=sys.stderr)


def print_traceback() -> None:
    """Print to stderr where the exception that is handled was raised."""
    import traceback

    for line in traceback.format_exc().splitlines():
        print_line(line)


def print_internal_error(error: BaseException, argv: Sequence[str], *, values: bool) -> None:
    """Print to stderr, in one line, what nobody expected, and the command that says where it was raised."""
    import shlex

    from agent_eval_schema.runtime.extensions import MODULES
    from agent_eval_schema.text.privacy import first_line, quoting

    with quoting(values):
        why = f"{type(error).__name__}: {first_line(error)}"
    command = shlex.join(["agent-eval-schema", *argv, *([] if "--debug" in argv else ["--debug"])])
    frame = error.__traceback__
    while frame is not None:  # a package of others may have raised it
        if package := MODULES.get(frame.tb_frame.f_globals.get("__name__", "").partition(".")[0]):
            print_error(f"{package} raised an exception: {why}: report it to its authors, or uninstall it")
            return
        frame = frame.tb_next
    print_line(f"agent-eval-schema: internal error: {why}: please report it with the output of: {command}")


def print_pace(reports: Sequence[Report], arguments: argparse.Namespace) -> None:
    """Print how fast a long run was; of a short one nobody wants to know."""
    from agent_eval_schema.runtime.progress import PATIENCE, pace_text
    from agent_eval_schema.validation.report import run_of

    seconds = sum(run_of(report).seconds for report in reports)
    if seconds >= PATIENCE:
        print_note(pace_text(sum(report.row_count for report in reports), seconds), arguments)


def in_color() -> bool:
    """Whether stdout takes color: a terminal does, unless NO_COLOR is set; with FORCE_COLOR, a file or a pipe too."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def progress_screen(arguments: argparse.Namespace, name: str = "") -> ProgressDisplay | None:
    """Where the progress of reading a file of this name is shown, unless the command is to be quiet."""
    from agent_eval_schema.runtime.progress import terminal
    from agent_eval_schema.text.visible import visible

    return None if arguments.quiet else terminal(name=visible(os.path.basename(name)))


def save_page(result: Printable, what: str, arguments: argparse.Namespace) -> None:
    """Write the HTML page that `--html` asks for, and print a note of it."""
    if not arguments.html:
        return
    from agent_eval_schema.io.atomic import write_text

    write_text(arguments.html, result.to_html())
    print_note(f"HTML {what} written to {arguments.html}", arguments)
