"""profile: what an evaluation set can show, before it is run."""

import argparse

from agent_eval_schema.cli.options import EXIT, INPUT, OUTPUT, ROW_FILES, Commands, add_command, open_input
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text, save_page

FAILING = ("never", "invalid", "duplicates", "leaks", "conflicts")


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "profile",
        run,
        "report size, power, duplicates, leakage, coverage and cost of an evaluation dataset",
        [
            "profile sample_data/good.jsonl",
            "profile sample_data/good.jsonl --against sample_data/good.csv --fail-on leaks --html profile.html",
            "profile sample_data/search_traces.jsonl --price input=2.5,output=10 --calls-per-minute 60",
        ],
    )
    command.add_argument("file", metavar="FILE", help=ROW_FILES)
    command.reads_and_writes(["file", "against", "past", "documents"], ["write_distinct"])
    command.add_reading()
    group = command.group(INPUT)
    group.add_argument(
        "--against",
        metavar="OTHER",
        action="append",
        default=[],
        help="dataset, or text (.txt, .md, .prompt, .jinja; a file or URL), that must not contain the questions; "
        "repeatable",
    )
    group.add_argument(
        "--past", metavar="RESULT", action="append", default=[], help="scores of an earlier evaluation; repeatable"
    )
    group.add_argument(
        "--documents", metavar="LIST", help="text file or URL with the doc_uri of every document, one per line"
    )
    group = command.group("assumptions")
    _add_number(group, "--near", 0.7, "similarity of near duplicates")
    group.add_argument(
        "--price", metavar="PRICES", type=_price, help="of a judge per million tokens: input=2.5,output=10"
    )
    group.add_argument("--calls-per-minute", metavar="N", type=float, help="rate of the calls, for the duration")
    group.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="encoding of tiktoken that counts tokens: o200k_base, fetched once "
        "(default: o200k_base if tiktoken has it on this machine, else 4 bytes per token)",
    )
    _add_number(group, "--instruction-tokens", 400, "of a judge's instructions, per call")
    _add_number(group, "--answer-tokens", 150, "of a judge's answer, per call")
    command.add_system("auto", "auto, by the format")
    command.add_output("profile", default=None)
    command.add_settings("format", "outputs", "columns", "output", "profile_fail_on")
    command.add_html("profile")
    command.group(OUTPUT).add_argument(
        "--write-distinct", metavar="PATH", help="write the rows that do not repeat an earlier question to PATH"
    )
    command.add_no_values()
    command.group(EXIT).add_argument(
        "--fail-on",
        dest="profile_fail_on",
        choices=FAILING,
        action="append",
        help="what causes exit code 1: invalid rows, duplicates (exact or near), leaks, conflicts (AE902: same "
        "request, other ground truth) or never (default); repeatable",
    )


def _add_number(group: argparse._ArgumentGroup, option: str, default: float, meaning: str) -> None:
    """An option that is a number of the kind of its default."""
    group.add_argument(option, metavar="N", type=type(default), default=default, help=f"{meaning} ({default})")


def run(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.profile.options import Options
    from agent_eval_schema.profile.profile import profile_eval_set
    from agent_eval_schema.render.phrases import Call, plural

    options = {name: getattr(arguments, name) for name in (*Options.__struct_fields__, "against", "documents")}
    source = open_input(arguments.file, arguments)
    found = profile_eval_set(source, past=arguments.past or None, **options)
    text = found.to_json() if arguments.output == "json" else found.to_text(color=in_color())
    print_text(text, arguments.output)
    save_page(found, "profile", arguments)
    if arguments.write_distinct:
        rows = found.write(arguments.write_distinct)
        print_note(f"{rows:,} distinct rows written to {arguments.write_distinct}", arguments)
        if found.overruled:
            rows_left = f"{plural(found.overruled, 'row')} excluded with another ground truth than the row that is kept"
            command = Call(source.name, source.options).command("review", "--queue", "conflicts")
            print_note(f"{rows_left}: decide first{f' (`{command}`)' if command else ''}", arguments)
    counts = found.counts
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
