"""import: the spreadsheet of a team into evaluation rows."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from agent_eval_schema.cli.options import OUTPUT, ROW_FILES, ROWS_OUT, Commands, add_command
from agent_eval_schema.cli.output import ExitCode, in_color, print_line, print_note, print_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_eval_schema.conversion.importing import EvalSetImport, UndecidedError


def add(commands: Commands) -> None:
    examples = [
        "import sample_data/good.csv rows.jsonl",
        "import sample_data/good.csv rows.jsonl --to ragas --prefer expected_facts",
    ]
    summary = "make evaluation rows of a spreadsheet or any table of questions"
    command = add_command(commands, "import", run, summary, examples)
    command.add_argument("input", metavar="FILE", help=f"an .xlsx file (FILE#SHEET for one sheet), or {ROW_FILES}")
    command.add_argument("output", metavar="OUT", nargs="?", help=f"{ROWS_OUT}; without it, the rows are only shown")
    command.reads_and_writes(["input"], ["output"], ["mapping"])
    command.add_columns()
    command.option(OUTPUT, "--to", "format of OUT (default: mlflow)", metavar="TARGET", default="mlflow")
    mapping = (
        "write the names of the columns to PATH, for --columns of every command (default: OUT with .columns.toml, "
        "unless --columns has a file)"
    )
    command.option(OUTPUT, "--mapping", mapping, metavar="PATH")
    command.add_settings("columns")
    command.add_quiet()


def run(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.conversion.importing import require_own
    from agent_eval_schema.render.phrases import plural
    from agent_eval_schema.text.choices import require_choice

    out, mapping = arguments.output, arguments.mapping
    has_file = any(text.endswith((".toml", ".json")) for text in arguments.column_files)
    if mapping is None and out not in (None, "-") and not has_file:
        mapping = f"{os.path.splitext(out)[0]}.columns.toml"
    if mapping is not None:
        require_choice("--mapping", os.path.splitext(mapping)[1], (".toml",))
        require_own(mapping)
    imported = _decided(arguments)
    count = imported.write(out) if out is not None else 0
    if mapping is not None:
        imported.write_columns(mapping)
    print_text(imported.to_text(color=in_color()))
    if out is not None:
        print_note(f"{plural(count, 'row')} written to {out}", arguments)
    if mapping is not None:
        print_note(f"columns written to {mapping}: use --columns {mapping} for the next table", arguments)
    return ExitCode.CLEAN if imported._ok else ExitCode.FOUND


def _decided(arguments: argparse.Namespace) -> EvalSetImport:
    """The import, after its open questions were answered on a terminal; elsewhere the question is the error."""
    from agent_eval_schema.conversion.importing import UndecidedError, import_eval_set

    columns = dict(arguments.columns or ())
    while True:
        try:
            return import_eval_set(arguments.input, arguments.to, columns=columns or None)
        except UndecidedError as error:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            columns |= _answer(error)


def _answer(error: UndecidedError) -> Mapping[str, str]:
    """The entries of the mapping that a person chooses."""
    from agent_eval_schema.text.visible import visible

    answers = {str(number): entries for number, entries in enumerate(error.choices.values(), 1)}
    print_line(visible(error.question))
    for number, choice in zip(answers, error.choices, strict=True):
        print_line(f"  {number}  {visible(choice)}")
    while True:
        print_line(f"Keep which, 1 to {len(answers)}?")
        line = sys.stdin.readline()
        if not line:
            raise error
        if line.strip() in answers:
            return answers[line.strip()]
