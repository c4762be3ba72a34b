"""Arguments that several commands share, and the types of their values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from agent_eval_schema.errors import EvalSetError, EvalSetNotFoundError
from agent_eval_schema.formats.names import FORMAT_NAMES
from agent_eval_schema.rule import FAILING
from agent_eval_schema.text.visible import wrapped

if TYPE_CHECKING:
    from agent_eval_schema.io.source import Source

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
Run: TypeAlias = Callable[[argparse.Namespace], "int | None"]
"""A command: it returns its exit code, or None if it ended clean."""


class Parser(argparse.ArgumentParser):
    """A parser whose options are in groups, and whose errors are one line that a terminal only shows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)  # the beginning of an option is not part of the interface

    def group(self, title: str) -> argparse._ArgumentGroup:
        groups = [group for group in self._action_groups if group.title == title]
        return groups[0] if groups else self.add_argument_group(title)

    def format_help(self) -> str:
        """The help, with what every command has at the end."""
        self._optionals.title = "general"
        self._action_groups.sort(key=lambda group: group is self._optionals)
        return super().format_help()

    def require_known(self, unknown: Sequence[str]) -> None:
        """Stop with an error if there are arguments that the command does not have."""
        if not unknown:
            return
        from agent_eval_schema.text.choices import meant

        first = unknown[0].partition("=")[0]
        if first in self._option_string_actions:
            self.error(f"{first}: expected after the command")
        what = "option" if first.startswith("-") else "argument"
        self.error(f"unexpected {what} {first!r}{meant(first, self._option_string_actions)}")

    def error(self, message: str) -> NoReturn:
        """Print the problem in one line, and exit with code 2."""
        from agent_eval_schema.cli.output import ExitCode, print_line

        hint = "" if message.endswith("?") else f"; see `{self.prog} --help`"
        print_line(f"{self.prog}: {message.removeprefix('argument ')}{hint}")
        self.exit(ExitCode.COULD_NOT_RUN)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Replaces argparse's message, which names the closest choice on some versions of Python only."""
        if action.choices is not None and value not in action.choices:
            from agent_eval_schema.text.choices import choice_problem

            raise argparse.ArgumentError(action, choice_problem(value, action.choices))

    def option(self, title: str, name: str, help: str, **how: Any) -> None:
        """Add an option to the group of this title; `how` it is read is in the words of argparse."""
        self.group(title).add_argument(name, help=help, **how)

    # the options that several commands have

    def add_format(self, name: str = "the input", formats: Sequence[str] = FORMAT_NAMES) -> None:
        help = f"format of {name}: {', '.join(formats)} (default: auto, detected from the column names)"
        self.option(INPUT, "--format", help, metavar="FORMAT")
        self.add_columns()

    def add_columns(self) -> None:
        named = (
            "read the column or key PATH as our column NAME: item.text=request, "
            "ctx[].text=retrieved_context[].content, sources[;]=… for parts between semicolons; or a FILE of them "
            "(.json, .toml); or auto: as the columns look, where that is unambiguous; repeatable"
        )
        self.option(INPUT, "--columns", named, metavar="PATH=NAME|FILE|auto", action=AddColumns, default=[])
        self.set_defaults(column_files=[])
        prefer = "rows with an answer and facts as ground truth keep this one (expected_facts or expected_response)"
        self.option(INPUT, "--prefer", prefer, metavar="COLUMN", dest="columns", action=AddColumns, choices=_TRUTHS)

    def add_reading(self, formats: Sequence[str] = FORMAT_NAMES) -> None:
        """--format and --outputs: how a file is read; and --quiet."""
        self.add_format(formats=formats)
        source = (
            "whether the agent's outputs are in the data (provided: each row needs one) or will be generated "
            "(default: auto, provided if a row has one; rows that their platform takes without need none)"
        )
        self.option(INPUT, "--outputs", source, choices=["auto", "provided", "generated"])
        self.add_quiet()

    def add_max_cell_bytes(self) -> None:
        help = "report cells of more than N bytes as AE011 without reading them (default: no limit)"
        self.option(INPUT, "--max-cell-bytes", help, metavar="N", type=_positive)

    def add_rules(self) -> None:
        enabled = "codes, prefixes or names of the rules to enable, comma-separated, such as AE2,AE401"
        self.option(RULES, "--select", enabled, metavar="CODES", **REPEATABLE)
        self.option(RULES, "--ignore", "rules to disable", metavar="CODES", **REPEATABLE)

    def add_settings(self, *names: str) -> None:
        """--config and --show-settings; `names` are the arguments that the settings of a repository complete."""
        place = "file with the settings (default: agent-eval-schema.toml or pyproject.toml, here or in a folder above)"
        self.option("settings", "--config", place, metavar="PATH")
        self.option("settings", "--show-settings", "print the settings of this run, as TOML", action="store_true")
        self.set_defaults(settings=names)

    def add_output(self, form_of: str, *others: str, dest: str = "output", default: str | None = "text") -> None:
        """--output: as text, or in another form; the default is None where the settings complete it."""
        choices = ["text", *(others or ("json",))]
        help = f"form of the {form_of} on stdout (default: text)"
        self.option(OUTPUT, "--output", help, dest=dest, choices=choices, default=default)
        self.set_defaults(output_choices=choices)

    def add_system(self, default: str | None, meaning: str) -> None:
        help = f"metrics of {SYSTEM_NAMES} (default: {meaning})"
        self.option(OUTPUT, "--system", help, metavar="SYSTEM", default=default)

    def add_html(self, what: str) -> None:
        self.option(OUTPUT, "--html", f"write the {what} as an HTML page to PATH", metavar="PATH")

    def add_fail_on(self, why: str = "lowest severity that causes exit code 1 (default: error)") -> None:
        """--fail-on: the severities that fail the run; if it is not given, as the settings say."""
        self.option(EXIT, "--fail-on", why, choices=list(FAILING))

    def add_no_values(self) -> None:
        help = "omit cell values from all output, for sensitive data"
        self.option(OUTPUT, "--no-values", help, dest="values", action="store_false")

    def add_quiet(self) -> None:
        self.add_argument("-q", "--quiet", action="store_true", help="suppress progress and informational messages")

    def add_jobs(self) -> None:
        help = "number of worker processes (default: one per core where the first rows show that it pays)"
        self.add_argument("--jobs", metavar="N", type=_positive, default=0, help=help)

    def reads_and_writes(
        self, reads: Sequence[str], rows: Sequence[str] = (), places: Sequence[str] = (), in_place: str = ""
    ) -> None:
        """Note which arguments are places that are read, and that are written: `rows` in any form, `places` in the
        form of the command; `-` can be one of each. `in_place` may be the first that is read."""
        own = {"reads": tuple(reads), "writes": (*rows, *places), "rows": tuple(rows), "in_place": in_place}
        self.set_defaults(**own)


SYSTEM_NAMES = (
    "databricks, mlflow, vertex, ces, adk, azure, bedrock, bedrock-rag, agentcore, vertex-genai, "
    "m365-copilot, strands, braintrust, phoenix, inspect, promptfoo, ragas, deepeval, langsmith, "
    "langfuse, openai, mlflow-third-party or all"
)
"""The systems whose metrics there are, written out here since the catalog of metrics need not be imported for a
command's help."""

ROW_FILES = (
    "JSONL, JSON, CSV or Parquet file (.gz, .zst), a folder or quoted glob of them, a Delta folder, a URL, a table "
    "(catalog.schema.table, bq://project.dataset.table), or - for stdin"
)
"""What every command reads rows from."""

ROWS_OUT = "a .jsonl, .json, .csv (.gz, .zst), .parquet or .xlsx file, a URL of one, or - for JSON Lines on stdout"
"""Where a command writes rows."""

INPUT, OUTPUT, RULES, EXIT = "input", "output", "rules", "exit code"
"""The titles of the groups that several commands have."""

REPEATABLE: dict[str, Any] = {"action": "append", "default": []}
"""How an option is read that may be given several times."""


def add_command(commands: Commands, name: str, run: Run | None, summary: str, examples: Sequence[str] = ()) -> Parser:
    """Add a command; `run` is None for one that has verbs. The `examples` run in the folder that has sample_data."""
    lines = "".join(f"\n  agent-eval-schema {example}" for example in examples)
    command = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:{lines}" if lines else None,
        formatter_class=_HelpFormatter,
    )
    command.set_defaults(parser=command)
    if run is not None:
        command.set_defaults(run=run)
        command.add_argument("--debug", action="store_true", help="print the traceback of an error")
    return command


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """The help with its texts broken at words; an example goes on after a backslash, so that a shell runs it."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in text.splitlines():
            is_command = line.startswith("  agent-eval-schema ")
            parts = wrapped(line, width - 2, "      ") if is_command else wrapped(line, width, indent)
            lines.append((" \\\n" if is_command else "\n").join(parts))
        return "\n".join(lines)


def require_streams_once(arguments: argparse.Namespace) -> bool:
    """Whether rows are written to stdout. Raises EvalSetError if stdin or stdout is to serve two arguments."""
    for kind, stream in (("reads", "stdin can be read"), ("writes", "stdout can take rows")):
        by_argument = [_places(getattr(arguments, name)) for name in getattr(arguments, kind, ())]
        if sum(places.count("-") for places in by_argument) > 1:
            raise EvalSetError(f"-: {stream} only once, for one argument")
    return any("-" in _places(getattr(arguments, name)) for name in getattr(arguments, "writes", ()))


def settle_outputs(arguments: argparse.Namespace) -> None:
    """Raise EvalSetError before the work if an output of the command cannot be written, or would overwrite an input,
    what is kept for it, the settings or another output."""
    pages = [name for name in ("html", "bundle") if getattr(arguments, name, None)]
    written = [name for name in (*getattr(arguments, "writes", ()), *pages) if getattr(arguments, name)]
    if not written:
        return
    from agent_eval_schema.io.atomic import require_place
    from agent_eval_schema.io.outputs import settle
    from agent_eval_schema.io.write import require_writable

    names = {action.dest: str((*action.option_strings, action.metavar)[0]) for action in arguments.parser._actions}
    names["output"] = "OUT"  # of --output there is no place
    for name in written:
        if name in pages or name in arguments.rows:
            (require_place if name in pages else require_writable)(getattr(arguments, name))
    read = {names[name]: getattr(arguments, name) for name in arguments.reads}
    in_place = (names[arguments.in_place], names[arguments.reads[0]]) if arguments.in_place else None
    files = {"the settings": "settings_path", "--columns": "column_files"}
    read |= {what: getattr(arguments, name, None) for what, name in files.items()}
    settle({names[name]: getattr(arguments, name) for name in written}, read, in_place)


def _places(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


_TRUTHS = ("expected_facts", "expected_response")


class AddColumns(argparse.Action):
    """Add pairs to the mapping, and note the file that they are from."""

    def __call__(self, *call: Any) -> None:
        _, namespace, text, option = call
        if option == "--prefer":
            text = f"{text}=preferred"
        try:
            pairs = column_pairs(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), *pairs])
        namespace.column_files = [*getattr(namespace, "column_files", ()), text]  # a build has no default


def column_pairs(text: str) -> list[tuple[str, str]]:
    """A pair of the mapping, or those in a file."""
    if text == "auto":
        return [(text, text)]
    path, equals, name = text.rpartition("=")
    if not equals and text.lower().endswith((".json", ".toml")):
        return list(_in_file(text).items())
    if not (path and equals and name):
        raise argparse.ArgumentTypeError(f"expected PATH=NAME, auto, or a file .json or .toml; got {text!r}")
    return [(path, name)]


def _in_file(path: str) -> dict[str, str]:
    """The mapping in a file, `{"question": "request"}`."""
    import msgspec

    from agent_eval_schema.text.guarded import read_json
    from agent_eval_schema.validation.settings import read_toml

    try:
        if path.lower().endswith(".toml"):
            return msgspec.convert(read_toml(path), dict[str, str])
        return read_json(path, dict[str, str], "write the columns as a flat object")
    except EvalSetNotFoundError:
        raise argparse.ArgumentTypeError(f"{path}: No such file or directory") from None
    except (msgspec.ValidationError, EvalSetError) as error:
        raise argparse.ArgumentTypeError(f"{path}: expected {{column of the data: our name}}: {error}") from None


def typed_options(arguments: argparse.Namespace) -> dict[str, object]:
    """The options by which rows are read, as they were typed: advice repeats them."""
    names = ("format", "outputs", "select", "ignore", "max_cell_bytes", "config")
    values = {name: getattr(arguments, name, None) for name in names}
    return {**values, **{name: codes_in(values[name] or []) for name in ("select", "ignore")}}


def open_input(path: str, arguments: argparse.Namespace) -> Source:
    """The rows of a file, under the names of `--columns`, as the command line and the settings of the repository ask;
    advice repeats the command line."""
    from agent_eval_schema.formats.opening import open_source

    values = getattr(arguments, "values", True)
    has_rules = hasattr(arguments, "ignore")
    return open_source(
        path,
        "FILE",
        arguments.columns or None,
        format=getattr(arguments, "format", "auto"),
        outputs=getattr(arguments, "outputs", "auto"),
        select=codes_in(arguments.select) if has_rules else (),
        ignore=(*codes_in(arguments.ignore), *arguments.ignored(path)) if has_rules else (),
        show_values=values,
        max_cell_bytes=getattr(arguments, "max_cell_bytes", None),
        advice={**arguments.typed, **({} if values else HIDDEN)},
    )


HIDDEN = {"show_values": False, "no_values": True}
"""The options that hide cell values, of functions and of commands."""


def codes_in(entries: list[str]) -> tuple[str, ...]:
    """The names in an option that may be given again, each time with several separated by commas."""
    return tuple(code.strip() for entry in entries for code in entry.split(",") if code.strip())


def whole(text: str) -> int:
    if not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number; got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1; got {text!r}")
    return int(text)


def number_below(bound: float, expected: str) -> Callable[[str], float]:
    """The type of an option that is a number between 0 and a bound."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if 0 < (number := float(text)) < bound:
                return number
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}")

    return read
