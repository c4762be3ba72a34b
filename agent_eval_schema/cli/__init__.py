"""The command line: every command reads its arguments, calls one public function and prints the result.

One file per command: `add` declares its arguments, `run` executes it and imports heavy modules, so that `--help` is
quick. Issues are printed to stdout, notes to stderr. Exit 0: clean, 1: issues at or above --fail-on, 2: could not run,
130 and 143: ended by SIGINT or SIGTERM.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module

from agent_eval_schema.cli.options import Parser, require_streams_once, settle_outputs
from agent_eval_schema.cli.output import (
    ExitCode,
    close_stdout,
    leaving_stdout,
    noting_warnings,
    print_error,
    print_internal_error,
    print_traceback,
    progress_screen,
    writing_stdout,
)
from agent_eval_schema.errors import RAISED, EvalSetError
from agent_eval_schema.runtime.lazy import put_off_pandas
from agent_eval_schema.runtime.progress import shown_on
from agent_eval_schema.runtime.signals import Terminated, ending_on_signals, exit_code, remove_temporary
from agent_eval_schema.runtime.version import __version__

_COMMANDS = {
    "validate": "validate.add",
    "metrics": "metrics.add",
    "profile": "profile.add",
    "diff": "diff.add",
    "review": "review.add",
    "score": "score.add",
    "compare": "compare.add",
    "from-traces": "from_traces.add",
    "from-inference-table": "from_inference_table.add",
    "import": "import_table.add",
    "convert": "convert.add",
    "formats": "lookup.add_formats",
    "schema": "lookup.add_schema",
    "ces": "ces.add",
    "explain": "lookup.add_rules",
    "rules": "lookup.add_rules",
    "completion": "typing_help.add_completion",
    "server": "typing_help.add_server",
}
"""In the order in which `--help` lists them; the module of a command is imported when it is run."""

_WITHOUT_FRAMES = ("validate", "metrics", "diff", "convert")
"""The commands that make no DataFrame of most files."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as `>&-` does: it has no reader
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    is_own_process = argv is None  # this process: it is not a user's who calls this function
    argv = sys.argv[1:] if argv is None else argv
    command = next(iter(argv), None)
    arguments, unknown = argument_parser(command).parse_known_args(argv)
    arguments.parser.require_known(unknown)
    if is_own_process and command in _WITHOUT_FRAMES:
        put_off_pandas()
    try:
        with ending_on_signals() if is_own_process else nullcontext(), leaving_stdout(require_streams_once(arguments)):
            code: int = _run(arguments)
        with writing_stdout():
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough, as in `… | head`
        close_stdout()
        return ExitCode.CLEAN
    except KeyboardInterrupt as error:
        remove_temporary()  # of a block that had no time to do so itself
        print_error("terminated" if isinstance(error, Terminated) else "interrupted")
        return exit_code(error)
    except RAISED as error:
        if arguments.debug:
            print_traceback()
        if isinstance(error, EvalSetError):
            print_error(error)
        elif isinstance(error, OSError) and error.filename is not None:  # a file that went away, a disk that is full
            print_error(f"{error.filename}: {error.strerror}")
        elif isinstance(error, MemoryError):
            print_error("there is not enough memory")
        else:
            print_internal_error(error, argv, values=getattr(arguments, "values", True))
    return ExitCode.COULD_NOT_RUN


def _run(arguments: argparse.Namespace) -> int:
    """Run a command with the settings of the repository, or show them."""
    if hasattr(arguments, "settings"):
        from agent_eval_schema.cli.settings import show_or_apply

        if show_or_apply(arguments):
            return ExitCode.CLEAN
    settle_outputs(arguments)
    with noting_warnings(arguments), shown_on(partial(progress_screen, arguments)):
        code: int | None = arguments.run(arguments)
    return code or ExitCode.CLEAN


def argument_parser(command: str | None = None) -> Parser:
    """The parser of the whole command line; of a command line that begins with this command, which is quicker."""
    parser = Parser(
        prog="agent-eval-schema",
        description="Validate, convert and score evaluation datasets for AI agents.",
        epilog="`agent-eval-schema COMMAND --help` shows the options of a command, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"agent-eval-schema {__version__}")
    # with `prog` argparse need not format a usage, for which it would look at the terminal
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands", prog=parser.prog)
    parser.set_defaults(whole=argument_parser)
    for place in {_COMMANDS[command]} if command in _COMMANDS else dict.fromkeys(_COMMANDS.values()):
        module, _, add = place.partition(".")
        getattr(import_module(f"{__name__}.{module}"), add)(commands)
    return parser
