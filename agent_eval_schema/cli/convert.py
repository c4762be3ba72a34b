"""convert: one format into another, with every loss."""

import argparse

from agent_eval_schema.cli.options import OUTPUT, ROW_FILES, ROWS_OUT, Commands, add_command
from agent_eval_schema.cli.output import ExitCode, in_color, print_line, print_note, print_text, save_page
from agent_eval_schema.rule import FAILING


def add(commands: Commands) -> None:
    examples = [
        "convert sample_data/ragas.jsonl rows.jsonl",
        "convert sample_data/good.jsonl rows.parquet --to mlflow",
        "convert sample_data/vertex.jsonl help_desk.evalset.json --to adk --html losses.html",
        "convert - rows.jsonl --to ragas < sample_data/good.jsonl",
    ]
    command = add_command(commands, "convert", run, "convert between dataset formats and report data loss", examples)
    command.add_argument("input", metavar="IN", help=ROW_FILES)
    command.add_argument("output", metavar="OUT", help=f"{ROWS_OUT}; or .evalset.json")
    command.reads_and_writes(["input"], places=["output"])
    command.add_format("IN")
    command.option(OUTPUT, "--to", "format of OUT (default: databricks, or adk for .evalset.json)", metavar="TARGET")
    rejected = "rows that the platform of TARGET rejects: exclude them (default), write them, or write nothing"
    command.option(OUTPUT, "--on-invalid", rejected, choices=["drop", "keep", "raise"], default="drop")
    command.add_html("losses")
    command.add_fail_on("what causes exit code 1: excluded rows (error, default) or any loss (warning)")
    resume = "keep what is done beside OUT, and continue an interrupted conversion"
    command.add_argument("--resume", action="store_true", help=resume)
    command.add_settings("format", "columns", "fail_on")
    command.add_quiet()


def run(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.conversion.convert import convert_file
    from agent_eval_schema.validation.report import InvalidEvalSetError

    to = arguments.to or ("adk" if arguments.output.endswith(".evalset.json") else "databricks")
    options = {name: getattr(arguments, name) for name in ("format", "columns", "resume", "on_invalid")}
    try:
        conversion = convert_file(arguments.input, arguments.output, to, **options)
    except InvalidEvalSetError as error:
        print_text(str(error).rstrip("\n") + "\n")
        advice = "--on-invalid drop excludes these rows, keep writes those that can be"
        print_line(f"{arguments.output}: not written; {advice}")
        return ExitCode.FOUND
    print_text(conversion.to_text(color=in_color()))
    save_page(conversion, "report of losses", arguments)
    print_note(f"{conversion.converted:,} of {conversion.given:,} written to {arguments.output}", arguments)
    return ExitCode.FOUND if conversion.severities().intersection(FAILING[arguments.fail_on]) else ExitCode.CLEAN
