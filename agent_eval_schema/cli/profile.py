"""profile: what an evaluation set can show, before it is run."""

import argparse

from agent_eval_schema.cli.options import (
    EXIT,
    INPUT,
    OUTPUT,
    REPEATABLE,
    ROW_FILES,
    Commands,
    Parser,
    add_command,
    open_input,
)
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text, save_page

FAILING = ("never", "invalid", "duplicates", "leaks", "conflicts")
ASSUMED = "assumptions"


def add(commands: Commands) -> None:
    examples = [
        "profile sample_data/good.jsonl",
        "profile sample_data/good.jsonl --against sample_data/good.csv --fail-on leaks --html profile.html",
        "profile sample_data/search_traces.jsonl --price input=2.5,output=10 --calls-per-minute 60",
    ]
    summary = "report size, power, duplicates, leakage, coverage and cost of an evaluation dataset"
    command = add_command(commands, "profile", run, summary, examples)
    command.add_argument("file", metavar="FILE", help=ROW_FILES)
    command.reads_and_writes(["file", "against", "past", "documents"], ["write_distinct"])
    command.add_reading()
    other = (
        "dataset, or text (.txt, .md, .prompt, .jinja; a file or URL), that must not contain the questions; repeatable"
    )
    command.option(INPUT, "--against", other, metavar="OTHER", **REPEATABLE)
    command.option(INPUT, "--past", "scores of an earlier evaluation; repeatable", metavar="RESULT", **REPEATABLE)
    documents = "text file or URL with the doc_uri of every document, one per line"
    command.option(INPUT, "--documents", documents, metavar="LIST")
    _add_number(command, "--near", 0.7, "similarity of near duplicates")
    price = "of a judge per million tokens: input=2.5,output=10"
    command.option(ASSUMED, "--price", price, metavar="PRICES", type=_price)
    command.option(ASSUMED, "--calls-per-minute", "rate of the calls, for the duration", metavar="N", type=float)
    tokenizer = (
        "encoding of tiktoken that counts tokens: o200k_base, fetched once "
        "(default: o200k_base if tiktoken has it on this machine, else 4 bytes per token)"
    )
    command.option(ASSUMED, "--tokenizer", tokenizer, metavar="NAME")
    _add_number(command, "--instruction-tokens", 400, "of a judge's instructions, per call")
    _add_number(command, "--answer-tokens", 150, "of a judge's answer, per call")
    command.add_system("auto", "auto, by the format")
    command.add_output("profile", default=None)
    command.add_settings("format", "outputs", "columns", "output", "profile_fail_on")
    command.add_html("profile")
    distinct = "write the rows that do not repeat an earlier question to PATH"
    command.option(OUTPUT, "--write-distinct", distinct, metavar="PATH")
    command.add_no_values()
    failing = (
        "what causes exit code 1: invalid rows, duplicates (exact or near), leaks, conflicts (AE902: same "
        "request, other ground truth) or never (default); repeatable"
    )
    command.option(EXIT, "--fail-on", failing, dest="profile_fail_on", choices=FAILING, action="append")


def _add_number(command: Parser, name: str, default: float, meaning: str) -> None:
    """An option that is a number of the kind of its default."""
    command.option(ASSUMED, name, f"{meaning} ({default})", metavar="N", type=type(default), default=default)


def run(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.profile.options import Options
    from agent_eval_schema.profile.profile import profile_eval_set
    from agent_eval_schema.render.phrases import Call, plural

    options = {name: getattr(arguments, name) for name in (*Options.__struct_fields__, "against", "documents")}
    source = open_input(arguments.file, arguments)
    profile = profile_eval_set(source, past=arguments.past or None, **options)
    print_text(profile.to_json() if arguments.output == "json" else profile.to_text(color=in_color()), arguments.output)
    save_page(profile, "profile", arguments)
    if arguments.write_distinct:
        rows = profile.write(arguments.write_distinct)
        print_note(f"{rows:,} distinct rows written to {arguments.write_distinct}", arguments)
        if profile.overruled:
            note = f"{plural(profile.overruled, 'row')} excluded with another ground truth than the row that is kept"
            command = Call(source.name, source.options).command("review", "--queue", "conflicts")
            print_note(f"{note}: decide first{f' (`{command}`)' if command else ''}", arguments)
    counts = profile.counts
    failing = {
        "invalid": counts["invalid"],
        "duplicates": counts["exact_duplicates"] + counts["near_duplicates"],
        "leaks": counts["leaked"],
        "conflicts": counts["conflicts"],
    }
    return ExitCode.FOUND if any(failing.get(name) for name in arguments.profile_fail_on) else ExitCode.CLEAN


def _price(text: str) -> dict[str, float]:
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    try:
        price = {name.strip(): float(amount) for name, amount in pairs}
    except ValueError:
        price = {}
    if set(price) != {"input", "output"}:
        raise argparse.ArgumentTypeError(f"expected input=AMOUNT,output=AMOUNT; got {text!r}")
    return price
