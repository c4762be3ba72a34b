"""The arguments of every command: groups and examples in the help, and one line for a wrong one."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_eval_schema import cli
from agent_eval_schema.cli import argument_parser, main
from agent_eval_schema.text.choices import meant
from tests.conftest import SAMPLES


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its commands and verbs."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


RUNNABLE = [parser for parser in parsers(argument_parser()) if parser.get_default("run")]


@pytest.mark.parametrize("name", cli._COMMANDS)
def test_the_parser_of_one_command_is_that_of_the_whole_command_line(name: str) -> None:
    """A command adds only its own arguments when it runs."""
    alone, among_all = (
        next(p for p in parsers(parser) if p.prog == f"agent-eval-schema {name}")
        for parser in (argument_parser(name), argument_parser())
    )
    assert alone.format_help() == among_all.format_help()
    assert len(list(parsers(argument_parser(name)))) < len(list(parsers(argument_parser()))) / 2


def test_options_are_in_a_few_groups_of_the_same_names() -> None:
    titles = {group.title for parser in parsers(argument_parser()) for group in parser._action_groups}
    of_data = {"input", "fields", "content of the rows", "rows", "rules", "metrics", "fixes", "review", "assumptions"}
    of_argparse = {"commands", "options", "positional arguments"}
    assert titles == of_data | of_argparse | {"output", "exit code", "request", "settings", "tracking store"}


def examples_of(parser: argparse.ArgumentParser) -> list[str]:
    """The command lines below `examples:`."""
    return [line.strip() for line in (parser.epilog or "").splitlines()[1:]]


@pytest.mark.parametrize("parser", RUNNABLE, ids=lambda parser: parser.prog)
def test_the_help_of_a_command_has_groups_and_ends_with_examples(parser: argparse.ArgumentParser) -> None:
    words = parser.format_help().replace(" \\\n      ", " ")
    options = [a for a in parser._actions if a.option_strings]
    grouped = [a for group in parser._action_groups if group.title != "general" for a in group._group_actions]
    general = {"--help", "--debug", "--quiet", "--jobs", "--resume", "--engine", "--stdio"}
    assert {a.option_strings[-1] for a in options if a not in grouped} <= general
    assert words.index("general:") > max((words.index(f"\n{g.title}:") for g in _filled(parser)), default=0)
    examples = examples_of(parser)
    assert examples or parser.prog == "agent-eval-schema server"  # which an editor starts
    assert words.rstrip().endswith((examples or [""])[-1])
    assert [a.dest for a in parser._actions if not a.help] == []


@pytest.mark.parametrize("parser", RUNNABLE, ids=lambda parser: parser.prog)
def test_the_help_fits_a_terminal_and_its_examples_can_be_copied(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = parser.format_help()
    lines = [line for line in words.splitlines() if "[--" not in line]  # of the usage, which argparse breaks
    assert [line for line in lines if len(line) > 80] == []
    prose, _, examples = words.partition("\nexamples:\n")
    commands = examples.replace(" \\\n", " ").splitlines()
    assert [shlex.split(line) for line in commands] == [shlex.split(line) for line in examples_of(parser)]
    assert str(parser.description) in prose.replace("\n", " ")


def _filled(parser: argparse.ArgumentParser) -> list[argparse._ArgumentGroup]:
    return [g for g in parser._action_groups if g._group_actions and g.title != "general"]


@pytest.mark.parametrize("example", [e for parser in RUNNABLE for e in examples_of(parser)])
def test_each_example_of_the_help_runs(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if example == "agent-eval-schema server":
        return  # which takes the stdin and stdout of its process: tests/lsp runs it
    if "from-inference-table" in example:
        pytest.importorskip("duckdb")
    shutil.copytree(SAMPLES, tmp_path / "sample_data")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(example)
    assert program == "agent-eval-schema"
    written = None
    if arguments[-2:-1] == ["<"]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(arguments[-1]).read_bytes())))
    elif arguments[-2:-1] == [">"]:
        written = Path(arguments[-1])
    arguments = arguments[:-2] if arguments[-2:-1] in (["<"], [">"]) else arguments
    found = [str(path) for word in arguments for path in (sorted(Path().glob(word)) if "*" in word else [word])]
    if arguments[0] == "ces" and arguments[1] in ("import", "get", "list"):  # which call the service
        monkeypatch.delenv("CES_ACCESS_TOKEN", raising=False)
        assert main(found) == 2
        assert "no access token: set CES_ACCESS_TOKEN" in capsys.readouterr().err
        return
    assert main(found) in (0, 1)
    said = capsys.readouterr()
    if written is not None:
        written.write_text(said.out)
        assert written.stat().st_size
    named = [word for word in shlex.split(example)[1:] if os.path.splitext(word)[1] in (".jsonl", ".html", ".csv")]
    assert [name for name in named if "*" not in name and not Path(name).exists()] == []
    assert said.out or said.err


def test_an_option_that_a_command_has_by_another_name_is_meant() -> None:
    assert meant("--outfile", ["--out", "--help"]) == MEANT("--out")
    assert meant("--outfile", ["--html", "--help"]).startswith("; OUT is an argument")


MEANT = "; did you mean {!r}?".format
WRONG = {
    "validat x.jsonl": ("COMMAND: expected one of validate, metrics, ", MEANT("validate")),
    "lint x.jsonl": ("COMMAND: expected one of ", MEANT("validate")),
    "fix x.jsonl": ("COMMAND: expected one of ", MEANT("validate FILE --fix OUT")),
    "validate good.jsonl --json": ("unexpected option '--json'", MEANT("--output json")),
    "repair x.jsonl": ("COMMAND: expected one of ", MEANT("validate FILE --fix OUT")),
    "dedupe x.jsonl": ("COMMAND: expected one of ", MEANT("profile FILE --write-distinct OUT")),
    "sample x.jsonl": ("COMMAND: expected one of ", MEANT("from-inference-table TABLE OUT --sample N")),
    "load_eval_set x.jsonl": ("COMMAND: expected one of ", MEANT("import")),
    "help": ("COMMAND: expected one of ", "; use `agent-eval-schema --help`; see `agent-eval-schema --help`"),
    **{
        f"{command} {option}": (f"unexpected option '{option.split()[0]}'; {answer}", "--help`")
        for command, option, answer in (
            ("validate good.csv", "--sheet A", "name the sheet in the path: FILE.xlsx#SHEET"),
            ("validate good.csv", "--encoding latin-1", "files are UTF-8"),
            ("validate good.csv", "--skip-rows 2", "the header is found"),
            ("validate good.csv", "--header 2", "the header is found"),
            ("validate good.csv", "--delimiter ;", "the delimiter is found"),
            ("validate", "--file good.csv", "FILE is an argument without an option"),
            ("convert good.csv --to ragas", "-o out.jsonl", "OUT is an argument without an option"),
        )
    },
    "from-inference-table inference_table.jsonl x.jsonl --keep status": (
        "unexpected option '--keep'",
        MEANT("--include"),
    ),
    "profile good.jsonl --keep x": ("unexpected option '--keep'; see ", "profile --help`"),
    "score vertex.jsonl --metrics exactmatch": (
        "--metrics: expected one of trajectory_exact_match, ",
        MEANT("exact_match"),
    ),
    "explain AE31": ("code: expected a code of one rule; 'AE31' begins AE310 expectation-beside-inputs, AE311 ", ""),
    "validate good.jsonl --strict": ("unexpected option '--strict'", MEANT("--fail-on warning")),
    "Explain AE206": ("COMMAND: expected one of ", MEANT("explain")),
    "ces templat": ("VERB: expected one of template, update, import, get, list; got 'templat'", MEANT("template")),
    "explain message-rol": ("code: expected ", MEANT("message-role")),
    "validate good.jsonl --select message_role": ("select: expected codes ", MEANT("message-role")),
    "validate good.jsonl --format databrick": ("format: expected one of ", MEANT("databricks")),
    "validate good.jsonl --outputs provide": ("--outputs: expected one of ", MEANT("provided")),
    "validate good.jsonl --output jsn": ("--output: expected one of ", MEANT("json")),
    "validate good.jsonl --selct AE1": ("unexpected option '--selct'", MEANT("--select")),
    "validate good.jsonl --selct=AE1": ("unexpected option '--selct'", MEANT("--select")),
    "validate good.jsonl --jobs 0": ("--jobs: expected a whole number of at least 1; got '0'", "--help`"),
    "score vertex.jsonl --out a.json": ("unexpected option '--out'", MEANT("--write-scores")),
    "validate good.jsonl --form ragas": ("unexpected option '--form'", MEANT("--format")),
    "review good.jsonl --user ana": ("unexpected option '--user'", MEANT("--reviewer")),
    **{
        f"{command} {option}": (f"unexpected option '{option}'; see ", f"{command.split()[0]} --help`")
        for command, option in (
            ("review good.jsonl", "--open"),
            ("from-traces x.jsonl y.jsonl", "--redact"),
            ("import good.csv", "--lang"),
            ("review good.jsonl", "-x"),
        )
    },
    "validate good.jsonl good.csv --html x.html": ("--html takes one FILE at a time", ""),
    "review good.jsonl --redact default": ("--redact: expected --bundle: ", "the rows as they are"),
    "from-traces x.jsonl": ("give a file IN, or --experiment NAME (with --filter and --tracking-uri) in its place", ""),
    "from-traces x.jsonl y.jsonl --filter a": ("give a file IN, or --experiment NAME ", "in its place"),
    "compare good.jsonl good.jsonl --scale x=a": ("--scale: expected a scale, such as 0..1 or 0..; got 'a'", "--help`"),
    "--quiet validate good.jsonl": ("--quiet: expected after the command", "see `agent-eval-schema validate --help`"),
    "metrics good.jsonl good.csv": ("unexpected argument 'good.csv'", "see `agent-eval-schema metrics --help`"),
    "metrics good.jsonl --system databrick": ("system: expected one of ", MEANT("databricks")),
    "diff good.jsonl": ("expected OLD and NEW, or --since COMMIT", "got 1 file"),
    "convert good.jsonl out.jsonl --to raga": ("to: expected one of ", MEANT("ragas")),
    "score vertex.jsonl --min trajectory_recal": ("--min: expected METRIC=MEAN, ", MEANT("trajectory_recall")),
    "score vertex.jsonl --min trajectory_recal=0.9": ("--min: expected one of ", MEANT("trajectory_recall")),
    "score vertex.jsonl --min trajectory_recall=high": ("--min: expected METRIC=MEAN, ", MEANT("trajectory_recall")),
    "score vertex.jsonl --metrics trajectory_recal": ("--metrics: expected one of ", MEANT("trajectory_recall")),
    "schema databrick": ("format: expected one of ", MEANT("databricks")),
    "ces update evaluation.json --timeout soon": ("--timeout: expected a positive number of seconds; ", "--help`"),
    "from-inference-table inference_table.jsonl x.jsonl --format legcy": ("format: expected one of ", MEANT("legacy")),
    "from-inference-table inference_table.jsonl x.jsonl --include parial": (
        "include: expected one of ",
        MEANT("partial"),
    ),
    "from-inference-table inference_table.jsonl x.jsonl --dedupe questions": ("--dedupe: expected ", MEANT("question")),
    "from-inference-table inference_table.jsonl x.jsonl --seed one": (
        "--seed: expected a whole number; got 'one'",
        "--help`",
    ),
    "from-inference-table inference_table.jsonl x.jsonl --engine spark --jobs 2": (
        *("--resume and --jobs are of the embedded engine: ", "Spark shares and repeats work itself"),
    ),
    "from-inference-table inference_table.jsonl x.jsonl --engine sparc": ("--engine: expected one of ", MEANT("spark")),
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_argument_is_one_line_with_the_closest_that_works(
    arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if arguments.startswith("from-inference-table"):
        pytest.importorskip("duckdb")
    for name in ("good.jsonl", "good.csv", "vertex.jsonl", "evaluation.json", "inference_table.jsonl"):
        shutil.copy(SAMPLES / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    try:
        code: object = main(arguments.split())
    except SystemExit as stopped:
        code = stopped.code
    told = capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (2, "", 1)
    start, end = WRONG[arguments]
    assert told.err.partition(": ")[2].startswith(start)
    assert told.err.rstrip().endswith(end)
