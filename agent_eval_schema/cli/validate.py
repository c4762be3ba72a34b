"""validate: every row of evaluation sets; with --fix or --diff, what can be repaired in them."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_eval_schema.cli.options import (
    FAILING,
    ROW_FILES,
    Commands,
    add_command,
    add_fail_on,
    add_jobs,
    add_no_values,
    add_output,
    add_reading,
    codes_in,
)
from agent_eval_schema.cli.output import (
    ExitCode,
    in_color,
    print_error,
    print_note,
    print_pace,
    print_text,
    progress_screen,
    save_page,
    terminal_text,
)
from agent_eval_schema.issues import EvalSetError

if TYPE_CHECKING:
    from agent_eval_schema.fix.source import FixedSource
    from agent_eval_schema.validation.report import Report


def add(commands: Commands) -> None:
    """Add the command."""
    command = add_command(commands, "validate", run, "check every row of evaluation sets")
    command.add_argument("files", metavar="FILE", nargs="+", help=ROW_FILES)
    add_reading(command)
    add_output(command, "report", *_WHOLE_RUN)
    command.add_argument("--html", metavar="PATH", help="write the report as a page to look at")
    command.add_argument("--select", metavar="CODES", action="append", default=[], help="only these: AE2,AE401")
    command.add_argument("--ignore", metavar="CODES", action="append", default=[], help="not these")
    add_fail_on(command)
    add_no_values(command)
    command.add_argument("--write-normalized", metavar="PATH", help="write the canonical rows (.jsonl, .parquet)")
    command.add_argument("--write-invalid", metavar="PATH", help="write the invalid rows with their issues")
    fixes = command.add_mutually_exclusive_group()
    fixes.add_argument("--fix", metavar="OUT", help="write all rows with what is safe repaired (OUT may be FILE)")
    fixes.add_argument("--diff", action="store_true", help="show what --fix would change; nothing is written")
    add_jobs(command)


def run(arguments: argparse.Namespace) -> int:
    """Validate every file; one that cannot be read does not keep the others from being reported."""
    from agent_eval_schema.formats.registry import find_format
    from agent_eval_schema.rules import chosen

    _require_places(arguments)
    if arguments.fix or arguments.diff:
        return _fix(arguments)
    chosen(codes_in(arguments.select), codes_in(arguments.ignore))  # a wrong name is told before a file is read
    if arguments.format != "auto":
        find_format(arguments.format)
    reports: list[Report] = []
    unread = 0
    for path in arguments.files:
        try:
            report = _check(path, arguments)
        except EvalSetError as error:  # which is no reason to say nothing of the other files
            if len(arguments.files) == 1:
                raise
            print_error(error)
            unread += 1
            continue
        if arguments.output == "text":
            print_text(("\n" if reports else "") + terminal_text(report))
        reports.append(report)
    if arguments.output != "text" and reports:
        print_text(_WHOLE_RUN[arguments.output](reports, arguments))
    for report in reports:
        _write(report, arguments)
    print_pace(reports, arguments)
    return ExitCode.COULD_NOT_RUN if unread else _exit_code(reports, arguments)


def _require_places(arguments: argparse.Namespace) -> None:
    """Raise EvalSetError now, rather than after the work, if something cannot be written."""
    from agent_eval_schema.io.atomic import require_apart, require_place
    from agent_eval_schema.io.write import require_writable

    if len(arguments.files) > 1 and (arguments.write_normalized or arguments.write_invalid):
        raise EvalSetError("--write-normalized and --write-invalid take one FILE at a time")
    for target in (arguments.write_normalized, arguments.write_invalid):
        if target:
            require_writable(target)
    if arguments.html:
        if len(arguments.files) > 1:
            raise EvalSetError("--html takes one FILE at a time")
        require_place(arguments.html)
    written = ("html", "write_normalized", "write_invalid")
    outputs = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in written}
    require_apart({"FILE": arguments.files[0], "--fix": arguments.fix}, outputs)  # OUT of --fix may be FILE


def _check(path: str, arguments: argparse.Namespace) -> Report:
    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.validation.validate import check_source

    return check_source(
        open_source(path),
        format=arguments.format,
        outputs=arguments.outputs,
        select=codes_in(arguments.select),
        ignore=codes_in(arguments.ignore),
        values=arguments.values,
        jobs=arguments.jobs,
        screen=progress_screen(arguments),
    )


def _write(report: Report, arguments: argparse.Namespace) -> None:
    if arguments.html:
        save_page(arguments.html, report.to_html(), "report", arguments)
    if arguments.write_normalized:
        count = report.write_normalized(arguments.write_normalized)
        bad = report.invalid_count
        lacking = f"; {bad:,} of them are invalid, and lack what could not be read" if bad else ""
        print_note(f"{count:,} normalised rows written to {arguments.write_normalized}{lacking}", arguments)
    if arguments.write_invalid:
        count = report.write_invalid(arguments.write_invalid)
        print_note(f"{count:,} invalid rows, each with its issues, written to {arguments.write_invalid}", arguments)


def _exit_code(reports: list[Report], arguments: argparse.Namespace) -> int:
    failing = FAILING[arguments.fail_on]
    return ExitCode.FOUND if any(report.count(s) for report in reports for s in failing) else ExitCode.CLEAN


# ---------------------------------------------------------------------------------------------------------------------
# --fix, --diff
def _fix(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.fix.fix import fix_source
    from agent_eval_schema.fix.source import require_fixable
    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.rules import chosen
    from agent_eval_schema.validation.validate import check_source

    if len(arguments.files) > 1:
        raise EvalSetError("--fix and --diff take one FILE at a time")
    if not arguments.values:
        raise EvalSetError("--fix and --diff show what cells hold, so they do not go with --no-values")
    select, ignore = codes_in(arguments.select), codes_in(arguments.ignore)
    source = open_source(arguments.files[0])
    if arguments.fix:
        require_fixable(source, arguments.fix)
    fixed = fix_source(source, format=arguments.format, outputs=arguments.outputs, codes=chosen(select, ignore))
    if arguments.diff:
        return _show_fixes(fixed, arguments)
    outputs = fixed.plan.outputs
    report = check_source(fixed.source, format=arguments.format, outputs=outputs, select=select, ignore=ignore)
    whole_run = _WHOLE_RUN.get(arguments.output)
    print_text(whole_run([report], arguments) if whole_run else terminal_text(report))
    _write(report, arguments)
    counts = fixed.write(arguments.fix)
    print_note(f"{counts} repaired, written to {arguments.fix}", arguments)
    if not counts:
        print_note(_nothing_fixed(fixed.plan.format), arguments)
    return _exit_code([report], arguments)


def _show_fixes(fixed: FixedSource, arguments: argparse.Namespace) -> int:
    """Show what --fix would do; nothing is written. Like diff, exit code 1 says that something would change."""
    from agent_eval_schema.fix.source import FixCounts
    from agent_eval_schema.render.fixes import cell_lines, file_lines

    counts, color = FixCounts(len(fixed.renames)), in_color()
    head = "".join(file_lines(fixed.given.name, fixed.renames, color=color))
    if counts:
        print_text(head)
        head = ""
    for _, fixes in counts.over(fixed.batches()):
        for fix in fixes:
            print_text(head + "".join(cell_lines(fix.row, fix.request_id, fix.what, fix.parts, color=color)))
            head = ""
    found = f"{counts} can be repaired; nothing was written" if counts else _nothing_fixed(fixed.plan.format)
    print_note(found, arguments)
    return ExitCode.FOUND if counts else ExitCode.CLEAN


def _nothing_fixed(format: str) -> str:
    from agent_eval_schema.fix.source import FIXED_FORMATS

    if format in FIXED_FORMATS:
        return "there is nothing that can be repaired safely"
    return f"rows of the {format} format are not repaired, only of {' and '.join(FIXED_FORMATS)}"


# ---------------------------------------------------------------------------------------------------------------------
# the forms that are printed once for all files
def _json(reports: list[Report], _: argparse.Namespace) -> str:
    texts = [report.to_json() for report in reports]
    return texts[0] if len(texts) == 1 else "[\n" + ",\n".join(t.rstrip("\n") for t in texts) + "\n]\n"


def _github(reports: list[Report], arguments: argparse.Namespace) -> str:
    from agent_eval_schema.render.report.github import github_text

    lines_of = {report.summary: report.lines for report in reports}
    return github_text(lines_of, root=os.environ.get("GITHUB_WORKSPACE") or ".", command=_listing_all(arguments))


def _listing_all(arguments: argparse.Namespace) -> str:
    """The command that lists every issue of this one."""
    given = {f"--{n}": getattr(arguments, n) for n in ("format", "outputs")}
    options = [word for name, value in given.items() if value != "auto" for word in (name, value)]
    for name, codes in (("--select", codes_in(arguments.select)), ("--ignore", codes_in(arguments.ignore))):
        options += [name, ",".join(codes)] if codes else []
    options += [] if arguments.values else ["--no-values"]
    return shlex.join(["agent-eval-schema", "validate", *arguments.files, *options, "--output", "json"])


def _junit(reports: list[Report], arguments: argparse.Namespace) -> str:
    from agent_eval_schema.render.report.junit import junit_xml

    return junit_xml([report.summary for report in reports], failing=FAILING[arguments.fail_on])


_WHOLE_RUN: dict[str, Callable[[list[Report], argparse.Namespace], str]] = {
    "json": _json,
    "github": _github,
    "junit": _junit,
}
