"""validate: every row of evaluation datasets; with --fix or --diff, their safe fixes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from agent_eval_schema.cli.options import OUTPUT, ROW_FILES, Commands, add_command, codes_in, open_input
from agent_eval_schema.cli.output import (
    ExitCode,
    in_color,
    print_error,
    print_note,
    print_pace,
    print_text,
    progress_screen,
    save_page,
)
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.rule import FAILING
from agent_eval_schema.runtime.progress import shown_on

if TYPE_CHECKING:
    from agent_eval_schema.fix.fix import FixedSource
    from agent_eval_schema.io.work_folder import PartsFolder
    from agent_eval_schema.validation.report import Report


CONCISE_PART = 100_000
"""Issues of `--output concise` that are held at once."""


def add(commands: Commands) -> None:
    examples = [
        "validate sample_data/good.jsonl",
        "validate sample_data/*.csv --select AE1,AE2 --output github",
        "validate sample_data/broken.jsonl --diff",
        "validate sample_data/broken.jsonl --fix fixed.jsonl --html report.html",
        "validate - --no-values < sample_data/good.jsonl",
        "validate sample_data/good.jsonl --show-settings",
    ]
    command = add_command(commands, "validate", run, "validate evaluation datasets", examples)
    command.add_argument("files", metavar="FILE", nargs="*", help=f"{ROW_FILES} (default: `files` of the settings)")
    command.reads_and_writes(["files"], ["write_normalized", "write_invalid"], ["fix"], in_place="fix")
    command.add_reading()
    command.add_output("report", "concise", *_WHOLE_RUN, default=None)
    command.add_html("report")
    command.add_no_values()
    command.option(OUTPUT, "--write-normalized", "write the canonical rows (.jsonl, .parquet)", metavar="PATH")
    command.option(OUTPUT, "--write-invalid", "write the invalid rows with their issues", metavar="PATH")
    resume = "keep what is done beside --write-normalized, continue an interrupted run"
    command.option(OUTPUT, "--resume", resume, action="store_true")
    command.add_rules()
    fixes = command.group("fixes").add_mutually_exclusive_group()
    fixes.add_argument("--fix", metavar="OUT", help="apply safe fixes and write all rows to OUT (may be FILE)")
    fixes.add_argument("--diff", action="store_true", help="show what --fix would change without writing a file")
    command.add_fail_on()
    command.add_jobs()
    command.add_max_cell_bytes()
    settings = ("files", "format", "outputs", "columns", "select", "ignore", "max_cell_bytes", "fail_on", "output")
    command.add_settings(*settings)


def run(arguments: argparse.Namespace) -> int:
    """Validate every file; one that cannot be read does not keep the others from being reported."""
    from agent_eval_schema.io.locks import sole_writer

    several = len(arguments.files) > 1
    if several and (arguments.write_normalized or arguments.write_invalid):
        raise EvalSetError("--write-normalized and --write-invalid take one FILE at a time")
    if several and arguments.html:
        raise EvalSetError("--html takes one FILE at a time")
    if arguments.resume:
        _require_resumable(arguments)
    if arguments.fix or arguments.diff:
        return _fix(arguments)
    with sole_writer([arguments.write_normalized] if arguments.resume else ()):
        return _validate(arguments)


def _validate(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.registry import find_format
    from agent_eval_schema.validation.chosen_rules import chosen

    several = len(arguments.files) > 1
    chosen(codes_in(arguments.select), codes_in(arguments.ignore))  # a wrong name is reported before a file is read
    if arguments.format != "auto":
        find_format(arguments.format)
    reports: list[Report] = []
    unread = 0
    for path in arguments.files:
        try:
            report = _check(path, arguments)
        except EvalSetError as error:  # the other files are still reported
            if not several:
                raise
            print_error(error)
            unread += 1
            continue
        if arguments.output == "text":
            metrics = not several and not arguments.quiet  # of many files they would be long
            print_text(("\n" if reports else "") + report.to_text(color=in_color(), metrics=metrics))
        elif arguments.output == "concise":
            _print_concise(report)
        reports.append(report)
    if arguments.output in _WHOLE_RUN and reports:
        print_text(_WHOLE_RUN[arguments.output](reports, arguments), arguments.output)
    for report in reports:
        _write(report, arguments)
    print_pace(reports, arguments)
    if several and arguments.output == "text":
        failed = unread + sum(_exit_code([report], arguments) != ExitCode.CLEAN for report in reports)
        count = len(arguments.files)
        line = f"✗ {failed:,} of {count:,} files failed." if failed else f"✓ All {count:,} files passed."
        print_text(f"\n{line}\n")
    return ExitCode.COULD_NOT_RUN if unread else _exit_code(reports, arguments)


def _print_concise(report: Report) -> None:
    """One line per issue, a part of them at a time, so that a long list needs no memory."""
    from itertools import islice

    from agent_eval_schema.render.report.summary import concise_text
    from agent_eval_schema.validation.report import run_of, summary_of

    issues = report.iter_issues()
    while part := list(islice(issues, CONCISE_PART)):
        print_text(concise_text(summary_of(report), part, run_of(report).lines(part)))


def _require_resumable(arguments: argparse.Namespace) -> None:
    """Raise EvalSetError if a run cannot be resumed: that is one of a file on this machine, in this process."""
    from agent_eval_schema.io.places import is_url
    from agent_eval_schema.io.streams import STDIN, STDOUT

    out = arguments.write_normalized
    if not out or out == STDOUT or is_url(out) or STDIN in arguments.files:
        raise EvalSetError("--resume requires --write-normalized with a file on this machine, and reads no stdin")
    if arguments.fix or arguments.diff or arguments.jobs:
        raise EvalSetError("--resume excludes --fix, --diff and --jobs")


def _parts_folder(name: str, arguments: argparse.Namespace) -> PartsFolder | None:
    """The parts of an interrupted run, if this run continues it; else what it left is removed."""
    from agent_eval_schema import __version__
    from agent_eval_schema.io.places import is_url
    from agent_eval_schema.io.work_folder import PartsFolder

    if not (out := arguments.write_normalized) or is_url(out):
        return None
    if not arguments.resume:
        PartsFolder.forget(out)
        return None
    read = ("format", "outputs", "columns", "select", "values", "max_cell_bytes")
    options = {option: getattr(arguments, option) for option in read}
    run = {**options, "ignore": _ignored(arguments.files[0], arguments), "version": __version__}
    return PartsFolder.of(out, name, "validate", run)


def _check(path: str, arguments: argparse.Namespace) -> Report:
    from agent_eval_schema.fix.preview import preview_fixes
    from agent_eval_schema.validation.validate import check_source

    source = open_input(path, arguments)
    preview, parts = partial(preview_fixes, source), _parts_folder(source.name or path, arguments)
    with shown_on(partial(progress_screen, arguments, path)):
        return check_source(source, jobs=arguments.jobs, preview=preview, parts=parts)


def _ignored(path: str, arguments: argparse.Namespace) -> tuple[str, ...]:
    """The rules that are disabled for a file."""
    return (*codes_in(arguments.ignore), *arguments.ignored(path))


def _write(report: Report, arguments: argparse.Namespace) -> None:
    from agent_eval_schema.io.work_folder import PartsFolder, work_of

    save_page(report, "report", arguments)
    if arguments.write_normalized:
        count = report.write(arguments.write_normalized)
        bad = report.invalid_count
        lacking = f"; {bad:,} of them are invalid: cells that could not be parsed are null" if bad else ""
        print_note(f"{count:,} normalized rows written to {arguments.write_normalized}{lacking}", arguments)
    if arguments.write_invalid:
        count = report.write_invalid(arguments.write_invalid)
        print_note(f"{count:,} invalid rows, each with its issues, written to {arguments.write_invalid}", arguments)
    if arguments.resume:
        PartsFolder(work_of(arguments.write_normalized)).remove()


def _exit_code(reports: list[Report], arguments: argparse.Namespace) -> int:
    failing = FAILING[arguments.fail_on]
    return ExitCode.FOUND if any(report.count(s) for report in reports for s in failing) else ExitCode.CLEAN


# --- --fix, --diff
def _fix(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.fix.fix import fix_source, is_rewritten, require_fixable
    from agent_eval_schema.io.outputs import settle
    from agent_eval_schema.io.places import ending_of
    from agent_eval_schema.validation.chosen_rules import chosen
    from agent_eval_schema.validation.validate import check_source

    if len(arguments.files) > 1:
        raise EvalSetError("--fix and --diff take one FILE at a time")
    if arguments.diff and not arguments.values:
        raise EvalSetError("--diff shows cell values: it excludes --no-values")
    select, ignore = codes_in(arguments.select), _ignored(arguments.files[0], arguments)
    source = open_input(arguments.files[0], arguments)
    if arguments.fix:
        is_excel = ending_of(arguments.fix) == ".xlsx"
        if (arguments.columns or is_excel) and not is_rewritten(source, arguments.fix):
            settle({"--fix": arguments.fix}, {"FILE": arguments.files[0]})  # only the rows would be left
        require_fixable(source, arguments.fix)
    fixed = fix_source(source, codes=chosen(select, ignore))
    if arguments.diff:
        return _show_fixes(fixed, arguments)
    report = check_source(fixed.written_to(arguments.fix))
    whole_run = _WHOLE_RUN.get(arguments.output)
    if arguments.output == "concise":
        _print_concise(report)
    else:
        text = whole_run([report], arguments) if whole_run else report.to_text(color=in_color())
        print_text(text, arguments.output)
    _write(report, arguments)
    counts = fixed.write(arguments.fix)
    print_note(f"{counts} fixed, written to {arguments.fix}", arguments)
    if not counts:
        print_note(_nothing_fixed(fixed.plan.format), arguments)
    return _exit_code([report], arguments)


def _show_fixes(fixed: FixedSource, arguments: argparse.Namespace) -> int:
    """Show the effect of --fix; nothing is written. Like diff, exit code 1 means that something would change."""
    from msgspec.structs import astuple

    from agent_eval_schema.fix.fix import FixCounts
    from agent_eval_schema.fix.preview import fix_command
    from agent_eval_schema.render.fixes import cell_lines, file_lines, unfixed_lines, unrenamed_lines
    from agent_eval_schema.render.phrases import Call

    counts, color, start = FixCounts(len(fixed.renames)), in_color(), 0
    head = "".join(file_lines(fixed.original.name, fixed.renames, color=color))
    why = "".join(unrenamed_lines(fixed.unrenamed, color=color))
    if counts or why:
        print_text(head + why)
        head = ""
    for batch, fixes in counts.over(fixed.batches()):
        shown = [(f.row, cell_lines(f.row, f.request_id, f.what, f.parts, color=color)) for f in fixes]
        rest = [(u.row, unfixed_lines(*astuple(u), color=color)) for u in fixed.unfixed(batch, start)]
        for _, lines in sorted([*shown, *rest], key=itemgetter(0)):
            print_text(head + "".join(lines))
            head = ""
        start += batch.num_rows
    if counts:
        print_note(f"{counts} can be fixed; no file was written. To write it:", arguments)
        print_note(f"  {fix_command(Call(fixed.original.name, fixed.original.options))}", arguments)
    else:
        print_note(_nothing_fixed(fixed.plan.format), arguments)
    return ExitCode.FOUND if counts else ExitCode.CLEAN


def _nothing_fixed(format: str) -> str:
    from agent_eval_schema.fix.fix import FIXED_FORMATS

    if format in FIXED_FORMATS:
        return "no safe fixes available"
    return f"rows of the {format} format cannot be fixed, only those of {', '.join(FIXED_FORMATS)}"


# --- the forms that are printed once for all files
def _json(reports: list[Report], _: argparse.Namespace) -> str:
    texts = [report.to_json() for report in reports]
    return texts[0] if len(texts) == 1 else "[\n" + ",\n".join(t.rstrip("\n") for t in texts) + "\n]\n"


def _github(reports: list[Report], arguments: argparse.Namespace) -> str:
    from agent_eval_schema.io.streams import STDIN
    from agent_eval_schema.render.report.github import github_text
    from agent_eval_schema.validation.report import run_of, summary_of

    call = run_of(reports[0]).call
    others = [path for path in arguments.files if path not in (call.name, STDIN)]
    listing_all = call.command("validate", *others, "--output", "json")
    lines_of = {summary_of(report): run_of(report).lines_of for report in reports}
    return github_text(lines_of, root=_root(), command=listing_all)


def _junit(reports: list[Report], arguments: argparse.Namespace) -> str:
    from agent_eval_schema.validation.report import junit_of

    return junit_of(reports, FAILING[arguments.fail_on])


def _sarif(reports: list[Report], _: argparse.Namespace) -> str:
    from agent_eval_schema.validation.report import sarif_of

    return sarif_of(reports, _root())


def _root() -> str:
    """The folder from which a CI runner names files."""
    return os.environ.get("GITHUB_WORKSPACE") or "."


_WHOLE_RUN: dict[str, Callable[[list[Report], argparse.Namespace], str]] = {
    "json": _json,
    "github": _github,
    "junit": _junit,
    "sarif": _sarif,
}
