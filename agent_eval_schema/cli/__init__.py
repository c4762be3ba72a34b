"""The command line: every command reads its arguments, calls one public function and prints what came back.

Findings go to stdout, notes to stderr. Exit 0: clean, 1: findings at or above --fail-on, 2: could not run.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_eval_schema.issues import EvalSetError, Severity

if TYPE_CHECKING:
    from agent_eval_schema.fix.source import Repaired
    from agent_eval_schema.formats.ces.evaluation import Evaluation
    from agent_eval_schema.formats.ces.update import Update
    from agent_eval_schema.runtime.progress import Screen
    from agent_eval_schema.validation.report import Report


CLEAN, FINDINGS, COULD_NOT_RUN = 0, 1, 2

FAILING = {"error": (Severity.ERROR,), "warning": (Severity.ERROR, Severity.WARNING), "never": ()}
"""The severities that fail a run, by --fail-on."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed, as `>&-` does: nobody wants to read it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except EvalSetError as error:
        _say(error)
        return COULD_NOT_RUN
    except BrokenPipeError:  # the reader has seen enough, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLEAN
    except OSError as error:  # stdout cannot be written: a full disk
        print(f"agent-eval-schema: the report cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("agent-eval-schema: interrupted", file=sys.stderr)
        return COULD_NOT_RUN
    return code


# ---------------------------------------------------------------------------------------------------------------------
# commands
def _validate(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.registry import find_format
    from agent_eval_schema.io.atomic import require_apart, require_place
    from agent_eval_schema.io.write import require_writable
    from agent_eval_schema.rules import chosen

    if len(arguments.files) > 1 and (arguments.write_normalized or arguments.write_invalid):
        raise EvalSetError("--write-normalized and --write-invalid take one FILE at a time")
    for target in (arguments.write_normalized, arguments.write_invalid):
        if target:
            require_writable(target)
    if arguments.html:
        if len(arguments.files) > 1:
            raise EvalSetError("--html takes one FILE at a time")
        require_place(arguments.html)
    written = {f"--{name}": getattr(arguments, name.replace("-", "_")) for name in _WRITTEN}
    require_apart({"FILE": arguments.files[0], "--fix": arguments.fix}, written)  # OUT of --fix may be FILE
    if arguments.fix or arguments.diff:
        return _repair(arguments)
    chosen(_codes(arguments.select), _codes(arguments.ignore))  # a wrong name is told before a file is read
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
            _say(error)
            unread += 1
            continue
        if arguments.output == "text":
            _print(("\n" if reports else "") + _text(report))
        reports.append(report)
    if arguments.output != "text" and reports:
        _print(_WHOLE_RUN[arguments.output](reports, arguments))
    for report in reports:
        _write(report, arguments)
    _say_pace(reports, arguments)
    if unread:
        return COULD_NOT_RUN
    return FINDINGS if any(_found(report, arguments.fail_on) for report in reports) else CLEAN


_WRITTEN = ("html", "write-normalized", "write-invalid")


def _repair(arguments: argparse.Namespace) -> int:
    """validate --fix, --diff."""
    from agent_eval_schema.fix.source import repair, require_repairable
    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.rules import chosen
    from agent_eval_schema.validation.validate import check_source

    if len(arguments.files) > 1:
        raise EvalSetError("--fix and --diff take one FILE at a time")
    if not arguments.values:
        raise EvalSetError("--fix and --diff show what cells hold, so they do not go with --no-values")
    select, ignore = _codes(arguments.select), _codes(arguments.ignore)
    source = open_source(arguments.files[0])
    if arguments.fix:
        require_repairable(source, arguments.fix)
    repaired = repair(source, format=arguments.format, outputs=arguments.outputs, codes=chosen(select, ignore))
    if arguments.diff:
        return _show_repairs(repaired, arguments)
    outputs = repaired.plan.outputs
    report = check_source(repaired.source, format=arguments.format, outputs=outputs, select=select, ignore=ignore)
    whole_run = _WHOLE_RUN.get(arguments.output)
    _print(whole_run([report], arguments) if whole_run else _text(report))
    _write(report, arguments)
    tally = repaired.write(arguments.fix)
    _note(f"{tally} repaired, written to {arguments.fix}", arguments)
    if not tally:
        _note(_nothing_repaired(repaired.plan.format), arguments)
    return FINDINGS if _found(report, arguments.fail_on) else CLEAN


def _show_repairs(repaired: Repaired, arguments: argparse.Namespace) -> int:
    """Show what --fix would do; nothing is written. Like diff, exit code 1 says that something would change."""
    from agent_eval_schema.fix.source import Tally
    from agent_eval_schema.render.fixes import head_of, lines_of

    tally, color = Tally(len(repaired.renames)), _in_color()
    head = head_of(repaired, color=color)
    if tally:
        _print("".join(head))
    for _, changes in tally.over(repaired.batches()):
        _print("".join(line for change in changes for line in [*head, *lines_of(change, color=color)]))
    found = f"{tally} can be repaired; nothing was written" if tally else _nothing_repaired(repaired.plan.format)
    _note(found, arguments)
    return FINDINGS if tally else CLEAN


def _nothing_repaired(format: str) -> str:
    from agent_eval_schema.fix.source import REPAIRED

    if format in REPAIRED:
        return "there is nothing that can be repaired safely"
    return f"rows of the {format} format are not repaired, only of {' and '.join(REPAIRED)}"


def _check(path: str, arguments: argparse.Namespace) -> Report:
    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.validation.validate import check_source

    return check_source(
        open_source(path),
        format=arguments.format,
        outputs=arguments.outputs,
        select=_codes(arguments.select),
        ignore=_codes(arguments.ignore),
        values=arguments.values,
        jobs=arguments.jobs,
        screen=_screen(arguments),
    )


def _codes(given: list[str]) -> tuple[str, ...]:
    return tuple(code.strip() for entry in given for code in entry.split(",") if code.strip())


def _found(report: Report, fail_on: str) -> bool:
    return any(report.count(severity) for severity in FAILING[fail_on])


def _write(report: Report, arguments: argparse.Namespace) -> None:
    if arguments.html:
        from agent_eval_schema.io.atomic import write_text

        write_text(arguments.html, report.to_html())
        _note(f"the report as a page written to {arguments.html}", arguments)
    if arguments.write_normalized:
        count = report.write_normalized(arguments.write_normalized)
        bad = report.invalid_count
        lacking = f"; {bad:,} of them are invalid, and lack what could not be read" if bad else ""
        _note(f"{count:,} normalised rows written to {arguments.write_normalized}{lacking}", arguments)
    if arguments.write_invalid:
        count = report.write_invalid(arguments.write_invalid)
        _note(f"{count:,} invalid rows, each with its issues, written to {arguments.write_invalid}", arguments)


def _metrics(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.opening import open_source
    from agent_eval_schema.metrics.support import metrics_of
    from agent_eval_schema.render.report.text import metrics_text
    from agent_eval_schema.validation.ces_turns import report_on_rows
    from agent_eval_schema.validation.validate import check_source

    metrics_of(arguments.system or "all")  # a wrong name is told before the file is read
    report = check_source(
        open_source(arguments.file), format=arguments.format, outputs=arguments.outputs, screen=_screen(arguments)
    )
    measured, system = report_on_rows(report, arguments.outputs), arguments.system or report.system
    if arguments.output == "json":
        from agent_eval_schema.render.document import json_text

        _print(json_text(measured.support(system)))
    else:
        _print(metrics_text(measured, color=_in_color(), system=system))
    if measured is not report:
        _note(f"counted are the turns of the valid evaluations: {measured.row_count:,}", arguments)
    if report.invalid_count:
        text = f"{report.invalid_count:,} of {report.row_count:,} rows are invalid and support nothing: see validate"
        _note(text, arguments)
    return CLEAN


def _diff(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.diff.diff import diff_eval_sets
    from agent_eval_schema.io.atomic import require_apart, require_place
    from agent_eval_schema.metrics.support import metrics_of

    metrics_of(arguments.system)  # a wrong name is told before the files are read
    if arguments.html:
        require_place(arguments.html)
    require_apart({"OLD": arguments.old, "NEW": arguments.new}, {"--html": arguments.html})
    found = diff_eval_sets(arguments.old, arguments.new, format=arguments.format, outputs=arguments.outputs)
    if arguments.output == "json":
        _print(found.to_json())
    else:
        _print(found.to_text(color=_in_color(), system=arguments.system))
    if arguments.html:
        from agent_eval_schema.io.atomic import write_text

        write_text(arguments.html, found.to_html())
        _note(f"the comparison as a page written to {arguments.html}", arguments)
    fails = {"any": not found.same, "loss": found.losses, "never": False}
    return FINDINGS if fails[arguments.fail_on] else CLEAN


def _from_traces(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.api import report_on_traces
    from agent_eval_schema.io.atomic import require_apart
    from agent_eval_schema.io.write import require_writable

    require_writable(arguments.output)
    require_apart({"IN": arguments.input}, {"OUT": arguments.output})
    report = report_on_traces(_traces(arguments), values=arguments.values, screen=_screen(arguments))
    count = report.write_normalized(arguments.output, carry=False)
    _note(f"{count:,} rows written to {arguments.output}", arguments)
    if report.counts:
        _print(_text(report))
    return CLEAN if report.ok else FINDINGS


def _traces(arguments: argparse.Namespace) -> object:
    """The file of traces, or what a tracking store has of an experiment."""
    store_only = arguments.filter or arguments.tracking_uri
    if (arguments.input is None) == (arguments.experiment is None) or (arguments.input and store_only):
        raise EvalSetError("give a file IN, or --experiment NAME (with --filter and --tracking-uri) in its place")
    if arguments.input is not None:
        return arguments.input
    from agent_eval_schema.integrations.mlflow.tracking import traces_from_store

    return traces_from_store(arguments.experiment, filter_string=arguments.filter, tracking_uri=arguments.tracking_uri)


def _from_inference_table(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.inference_tables.build_file import build_file, build_on_spark

    given = {name: getattr(arguments, name) for name in _BUILD_OPTIONS}
    options = {name: None if v == "none" else v for name, v in given.items() if v is not None and v != []}
    if not arguments.values:
        options["values"] = False
    out, beside = arguments.output, {"set_aside": arguments.set_aside, "html": arguments.html}
    if arguments.engine == "spark":
        if arguments.resume or arguments.jobs:
            raise EvalSetError("--resume and --jobs are of the embedded engine: Spark shares and repeats work itself")
        summary = build_on_spark(arguments.table, out, options, **beside)
    else:
        how = {"resume": arguments.resume, "jobs": arguments.jobs, "screen": _screen(arguments)}
        summary = build_file(arguments.table, out, options, **beside, **how)
    _print(summary.to_json() if arguments.summary == "json" else summary.to_text(color=_in_color()))
    _note(f"{summary.rows:,} rows written to {out}", arguments)
    if arguments.set_aside:
        _note(f"{sum(summary.set_aside.values()):,} rows set aside to {arguments.set_aside}", arguments)
    return CLEAN


_BUILD_OPTIONS = (
    *("sample", "seed", "stratify", "dedupe", "labels", "redact", "traces", "since", "until", "where"),
    *("family", "map", "keep"),
)


def _convert(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.conversion.convert import convert_file

    target = arguments.target or ("adk" if arguments.output.endswith(".evalset.json") else "databricks")
    made = convert_file(arguments.input, arguments.output, source=arguments.source, target=target)
    _print(str(made))
    _note(f"{made.converted:,} of {made.given:,} written to {arguments.output}", arguments)
    fails = FAILING[arguments.fail_on]
    return FINDINGS if made.losses["severity"].isin([str(severity) for severity in fails]).any() else CLEAN


def _score(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.evaluation.score import score_dataset
    from agent_eval_schema.io.atomic import require_apart, require_place
    from agent_eval_schema.metrics.trajectory import TRAJECTORY_METRICS
    from agent_eval_schema.render.result.json import result_json
    from agent_eval_schema.render.result.text import result_text

    for target in (arguments.html, arguments.write_scores):
        if target:
            require_place(target)
    require_apart({"FILE": arguments.file}, {"--html": arguments.html, "--write-scores": arguments.write_scores})
    metrics = _codes(arguments.metrics) or tuple(TRAJECTORY_METRICS)
    lowest = dict(arguments.min)
    result = score_dataset(
        arguments.file,
        metrics,
        arguments.tool_name,
        arguments.duplicates,
        arguments.empty,
        arguments.format,
        _screen(arguments),
    )
    too_low = result.below(lowest)
    if arguments.output == "json":
        _print(result_json(result, rows=0))
    else:
        _print(result_text(result, color=_in_color()))
    if arguments.html:
        from agent_eval_schema.io.atomic import write_text

        write_text(arguments.html, result.to_html())
        _note(f"the result as a page written to {arguments.html}", arguments)
    if arguments.write_scores:
        as_text = arguments.write_scores.lower().endswith((".csv", ".jsonl", ".ndjson"))
        (result.save if as_text else result.to_parquet)(arguments.write_scores)
        _note(f"{result.row_count:,} rows with their scores written to {arguments.write_scores}", arguments)
    for metric, mean in too_low.items():
        why = "no row has a score, so no mean reaches" if math.isnan(mean) else f"the mean {mean:.3g} is below"
        print(f"{metric}: {why} {lowest[metric]:g}", file=sys.stderr)
    found = any(result.count(severity) for severity in FAILING[arguments.fail_on])
    return FINDINGS if too_low or found else CLEAN


def _schema(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.json_schema import json_schema
    from agent_eval_schema.render.document import json_text

    _print(json_text(json_schema(arguments.name)))
    return CLEAN


def _ces_template(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.ces.golden_writer import golden_template
    from agent_eval_schema.io.atomic import require_place, write_text

    if arguments.output is None:
        _print(golden_template())
        return CLEAN
    require_place(arguments.output)
    write_text(arguments.output, golden_template())
    _note(f"a golden CSV to start from written to {arguments.output}", arguments)
    return CLEAN


def _ces_update(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.ces.update import faults_of, plan_updates, request_of
    from agent_eval_schema.render.console import finding
    from agent_eval_schema.text.visible import inert

    planned = plan_updates(arguments.file, arguments.against, arguments.mask)
    if faults := [issue for update, _ in planned for issue in faults_of(update)]:
        _print("".join(inert(f"{issue.code} {finding(issue, with_row=False)}") + "\n" for issue in faults))
        _note("nothing was sent: the service would refuse this", arguments)
        return FINDINGS
    planned = [(update, old) for update, old in planned if update.paths]
    if not planned:
        _note("nothing differs from what is stored: there is nothing to update", arguments)
        return CLEAN
    requests = [request_of(update) for update, _ in planned]
    if arguments.output == "json":
        from agent_eval_schema.render.document import json_text

        _print(json_text(requests if len(requests) > 1 else requests[0]))
    else:
        _print("\n".join(_update_text(update, old) for update, old in planned))
    if arguments.dry_run:
        _note("nothing was sent (--dry-run)", arguments)
        return CLEAN
    return _send(requests, arguments)


def _update_text(update: Update, old: Evaluation | None) -> str:
    from agent_eval_schema.formats.ces.review import review_update
    from agent_eval_schema.render.update import update_text

    return update_text(review_update(update, old), color=_in_color())


def _send(requests: list[dict[str, Any]], arguments: argparse.Namespace) -> int:
    """Send one after the other; the first that fails is the last, and the notes say which were made."""
    from agent_eval_schema.integrations.ces.client import update_evaluation

    for request in requests:
        update_evaluation(request, endpoint=arguments.endpoint, rest=arguments.rest, timeout=arguments.timeout)
        _note(f"updated {request['params']['arguments']['evaluation']['name']}", arguments)
    return CLEAN


def _explain(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.api import explain

    _print(explain(arguments.code))
    return CLEAN


def _rules(_: argparse.Namespace) -> int:
    from agent_eval_schema.rules import FAMILIES, RULES

    family = ""
    for rule in RULES.values():
        if rule.code[2] != family:
            family = rule.code[2]
            _print(f"\n{FAMILIES[family]} (AE{family})\n".lstrip("\n" if family == "0" else ""))
        _print(f"  {rule.code}  {rule.severity!s:7}  {rule.name:30}  {rule.doc.partition(chr(10))[0]}\n")
    return CLEAN


# ---------------------------------------------------------------------------------------------------------------------
# printing
def _in_color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _text(report: Report) -> str:
    return report.to_text(color=_in_color())


def _json(reports: list[Report], _: argparse.Namespace) -> str:
    texts = [report.to_json() for report in reports]
    return texts[0] if len(texts) == 1 else "[\n" + ",\n".join(t.rstrip("\n") for t in texts) + "\n]\n"


def _github(reports: list[Report], arguments: argparse.Namespace) -> str:
    from agent_eval_schema.render.report.github import github_text

    return github_text(reports, root=os.environ.get("GITHUB_WORKSPACE") or ".", command=_listing_all(arguments))


def _listing_all(arguments: argparse.Namespace) -> str:
    """The command that lists every finding of this one."""
    given = {f"--{n}": getattr(arguments, n) for n in ("format", "outputs")}
    options = [word for name, value in given.items() if value != "auto" for word in (name, value)]
    for name, codes in (("--select", _codes(arguments.select)), ("--ignore", _codes(arguments.ignore))):
        options += [name, ",".join(codes)] if codes else []
    options += [] if arguments.values else ["--no-values"]
    return shlex.join(["agent-eval-schema", "validate", *arguments.files, *options, "--output", "json"])


def _junit(reports: list[Report], arguments: argparse.Namespace) -> str:
    from agent_eval_schema.render.report.junit import junit_xml

    return junit_xml(reports, failing=FAILING[arguments.fail_on])


_WHOLE_RUN: dict[str, Callable[[list[Report], argparse.Namespace], str]] = {
    "json": _json,
    "github": _github,
    "junit": _junit,
}
"""The forms that are printed once for all files."""


def _print(text: str) -> None:
    """To stdout; characters that its encoding lacks are written as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _say(error: EvalSetError) -> None:
    """Why something could not run, to stderr."""
    from agent_eval_schema.text.visible import inert, visible

    print(inert(f"agent-eval-schema: {visible(error)}"), file=sys.stderr)


def _note(text: str, arguments: argparse.Namespace) -> None:
    """To stderr, with names that anyone may have given to a file."""
    from agent_eval_schema.text.visible import inert, visible

    if not arguments.quiet:
        print(inert(visible(text)), file=sys.stderr)


def _screen(arguments: argparse.Namespace) -> Screen | None:
    from agent_eval_schema.runtime.progress import terminal

    return None if arguments.quiet else terminal()


def _say_pace(reports: list[Report], arguments: argparse.Namespace) -> None:
    """How fast a long run was; of a short one nobody wants to know."""
    from agent_eval_schema.runtime.progress import PATIENCE, pace_text

    seconds = sum(report.seconds for report in reports)
    if seconds >= PATIENCE:
        _note(pace_text(sum(report.row_count for report in reports), seconds), arguments)


# ---------------------------------------------------------------------------------------------------------------------
# arguments
def _parser() -> argparse.ArgumentParser:
    from agent_eval_schema.runtime.version import __version__

    parser = argparse.ArgumentParser(
        prog="agent-eval-schema", description="Check evaluation sets for agents, and see what can be measured on them."
    )
    parser.add_argument("--version", action="version", version=f"agent-eval-schema {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_validate(commands)
    _add_metrics(commands)
    _add_diff(commands)

    _add_score(commands)

    command = _add(commands, "from-traces", _from_traces, "turn MLflow traces into evaluation rows")
    command.add_argument(
        "input", metavar="IN", nargs="?", help="traces: JSONL, JSON, CSV or Parquet, or a search_traces table"
    )
    command.add_argument("output", metavar="OUT", help="rows: .jsonl or .parquet")
    command.add_argument("--experiment", metavar="NAME", help="the traces of a tracking store, in place of IN")
    command.add_argument("--filter", metavar="F", help="those of them that mlflow.search_traces finds")
    command.add_argument("--tracking-uri", metavar="URI", help="the store (that of MLFLOW_TRACKING_URI)")
    _add_no_values(command)
    _add_quiet(command)

    _add_from_inference_table(commands)
    command = _add(commands, "convert", _convert, "turn one format into another, and say what is lost")
    command.add_argument("input", metavar="IN", help="JSONL, JSON, CSV or Parquet")
    command.add_argument("output", metavar="OUT", help="the same kinds; an ADK evalset is .evalset.json")
    command.add_argument("--from", dest="source", metavar="F", default="auto", help="format of IN (found by columns)")
    command.add_argument("--to", dest="target", metavar="F", help="format of OUT (databricks; see README)")
    command.add_argument(
        "--fail-on",
        choices=["error", "warning", "never"],
        default="error",
        help="what makes the exit code 1: rows left out as invalid (error), any loss (warning)",
    )
    _add_quiet(command)

    command = _add(commands, "schema", _schema, "print the JSON Schema of a row")
    command.add_argument(
        "name",
        metavar="FORMAT",
        help="databricks, mlflow (what may be given), canonical (what comes out) or ces-evaluation",
    )

    _add_ces(commands)

    command = _add(commands, "explain", _explain, "explain a code")
    command.add_argument("code", metavar="CODE", help="such as AE206 or message-role")

    _add(commands, "rules", _rules, "list all rules")
    return parser


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    command.set_defaults(run=run)
    return command


def _add_ces(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "files of Google CES: golden CSV, Evaluation JSON"
    group = commands.add_parser("ces", help=summary, description=summary[0].upper() + summary[1:] + ".")
    verbs = group.add_subparsers(required=True, metavar="VERB")
    command = _add(verbs, "template", _ces_template, "write a golden CSV to start from")
    command.add_argument("output", metavar="OUT", nargs="?", help="the file (stdout)")
    _add_quiet(command)

    command = _add(verbs, "update", _ces_update, "store evaluations, and of them only what changed")
    command.add_argument("file", metavar="FILE", help="evaluations as they are to be (JSON)")
    command.add_argument("--against", metavar="STORED", help="the stored ones (JSON): what differs is updated")
    command.add_argument("--mask", metavar="M", help="the fields to update, displayName,golden.turns; '*' replaces all")
    command.add_argument("--dry-run", action="store_true", help="show the mask and what changes; nothing is sent")
    command.add_argument("--output", choices=["text", "json"], default="text", help="what changes, or the request")
    command.add_argument("--endpoint", metavar="URL", help="where to (https://ces.googleapis.com/mcp)")
    command.add_argument("--rest", action="store_true", help="PATCH over REST (https://ces.googleapis.com), not MCP")
    command.add_argument("--timeout", metavar="S", type=_seconds, default=60.0, help="seconds for all of it (60)")
    command.epilog = "The token is read from the environment: CES_ACCESS_TOKEN=$(gcloud auth print-access-token)"
    _add_quiet(command)


def _add_validate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "validate", _validate, "check every row of evaluation sets")
    command.add_argument("files", metavar="FILE", nargs="+", help="JSONL, JSON, CSV or Parquet")
    _add_reading(command)
    command.add_argument("--output", choices=["text", *_WHOLE_RUN], default="text", help="form of the report (text)")
    command.add_argument("--html", metavar="PATH", help="write the report as a page to look at")
    command.add_argument("--select", metavar="CODES", action="append", default=[], help="only these: AE2,AE401")
    command.add_argument("--ignore", metavar="CODES", action="append", default=[], help="not these")
    command.add_argument(
        "--fail-on", choices=["error", "warning", "never"], default="error", help="what makes the exit code 1 (error)"
    )
    _add_no_values(command)
    command.add_argument("--write-normalized", metavar="PATH", help="write the canonical rows (.jsonl, .parquet)")
    command.add_argument("--write-invalid", metavar="PATH", help="write the invalid rows with their issues")
    repairs = command.add_mutually_exclusive_group()
    repairs.add_argument("--fix", metavar="OUT", help="write all rows with what is safe repaired (OUT may be FILE)")
    repairs.add_argument("--diff", action="store_true", help="show what --fix would change; nothing is written")
    command.add_argument(
        "--jobs", metavar="N", type=_positive, default=0, help="processes (one a core for a large file)"
    )


def _add_score(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "score", _score, "score predicted against reference trajectories")
    command.add_argument(
        "file", metavar="FILE", help="JSONL, JSON, CSV or Parquet, its URL, or bq://project.dataset.table"
    )
    command.add_argument("--metrics", metavar="NAMES", action="append", default=[], help="only these (all five)")
    command.add_argument("--tool-name", metavar="T", help="adds trajectory_single_tool_use of this tool")
    command.add_argument(
        "--duplicates",
        choices=["membership", "one_to_one"],
        default="membership",
        help="how precision and recall count repeated calls (membership)",
    )
    command.add_argument(
        "--empty",
        choices=["nan", "define"],
        default="nan",
        help="the score of an empty trajectory: none, or as defined",
    )
    command.add_argument("--format", metavar="F", default="auto", help="the data's format (found by its columns)")
    command.add_argument("--output", choices=["text", "json"], default="text", help="form of the summary (text)")
    command.add_argument("--html", metavar="PATH", help="write the result as a page to look at")
    command.add_argument(
        "--write-scores",
        metavar="PATH",
        help="write all rows with their scores (Parquet, or by its ending CSV or JSONL)",
    )
    command.add_argument(
        "--min", metavar="METRIC=MEAN", type=_bound, action="append", default=[], help="exit code 1 if a mean is lower"
    )
    command.add_argument(
        "--fail-on", choices=["error", "warning", "never"], default="error", help="what makes the exit code 1 (error)"
    )
    _add_quiet(command)


def _bound(text: str) -> tuple[str, float]:
    metric, _, bound = text.partition("=")
    with suppress(ValueError):
        if math.isfinite(mean := float(bound)):
            return metric, mean
    raise argparse.ArgumentTypeError(f"expected METRIC=MEAN, such as trajectory_recall=0.9, got {text!r}")


def _add_no_values(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--no-values", dest="values", action="store_false", help="say nothing that stands in a cell (private data)"
    )


def _add_quiet(command: argparse.ArgumentParser) -> None:
    command.add_argument("-q", "--quiet", action="store_true", help="no progress and no notes on stderr, only errors")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, got {text!r}")
    return seconds


def _add_metrics(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "metrics", _metrics, "show which metrics the rows can support")
    command.add_argument("file", metavar="FILE", help="JSONL, JSON, CSV or Parquet")
    _add_reading(command)
    command.add_argument("--system", help="databricks, mlflow, vertex, ces or all (that of the format)")
    command.add_argument("--output", choices=["text", "json"], default="text", help="form of the table (text)")


def _add_diff(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "diff", _diff, "show what changed between two versions of an evaluation set")
    command.add_argument("old", metavar="OLD", help="JSONL, JSON, CSV or Parquet")
    command.add_argument("new", metavar="NEW", help="the same, or another kind of file")
    _add_reading(command)
    command.add_argument(
        "--system", default="databricks", help="metrics of: databricks (default), mlflow, vertex, ces, all"
    )
    command.add_argument("--output", choices=["text", "json"], default="text", help="form of the comparison (text)")
    command.add_argument("--html", metavar="PATH", help="write the comparison as a page to look at")
    command.add_argument(
        "--fail-on",
        choices=["any", "loss", "never"],
        default="any",
        help="what makes the exit code 1: any difference but the order of the rows (default), or a loss: "
        "a row that is gone, became invalid, or no longer supports a metric of any system",
    )


def _add_from_inference_table(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(
        commands, "from-inference-table", _from_inference_table, "turn a table of logged calls into an evaluation set"
    )
    command.add_argument("table", metavar="TABLE", help="the logged calls: Parquet (file or folder), JSONL, CSV, Delta")
    command.add_argument(
        "output",
        metavar="OUT",
        help="rows: .parquet, .jsonl, .csv or a new Delta folder (no ending); how they were made: OUT.manifest.json",
    )
    command.add_argument("--since", metavar="TIME", help="logged at this time or later: 2025-11-03, 2025-11-03T09:00Z")
    command.add_argument("--until", metavar="TIME", help="logged before this time (UTC if it has no zone)")
    command.add_argument("--sample", metavar="N", help="draw so many rows, or a fraction such as 0.1 (all rows)")
    command.add_argument("--seed", metavar="N", type=int, help="of the sample: the same seed draws the same rows (0)")
    command.add_argument(
        "--stratify",
        metavar="COL",
        help="share the sample over the values of a column, day, served_entity, failed, thumbs, or SQL",
    )
    command.add_argument(
        "--dedupe",
        choices=["id", "question", "none"],
        help="one row per request id (default); also one per distinct question, the latest; or every row",
    )
    command.add_argument(
        "--labels",
        metavar="TABLE",
        help="where ground truth is taken from: feedback (in the table, default), none, or an assessment-log table",
    )
    command.add_argument(
        "--redact",
        metavar="HOW",
        help="replace in texts: default (e-mail, phone and card numbers) or MODULE:FUNCTION; none is as without it",
    )
    command.add_argument(
        "--traces", metavar="TABLE", help="traces, for the rows that came without one or were too large to be logged"
    )
    command.add_argument("--where", metavar="SQL", help="which rows: \"served_entity_id = 'a'\"")
    command.add_argument(
        "--family",
        metavar="F",
        help="the kind of table, if its columns do not tell: assessment_logs, request_logs, ai_gateway, legacy, "
        "unity_ai_gateway, search_traces, archived_traces, mapped",
    )
    command.add_argument(
        "--map",
        metavar="WHAT=COL",
        action="append",
        default=[],
        help="which column (or key in it) holds what, for other logs: request=body.input; may be given again",
    )
    command.add_argument(
        "--keep",
        metavar="REASON",
        action="append",
        default=[],
        help="do not set rows aside for this reason: outside_window, status, partial, repeated, duplicate_question or "
        "invalid; may be given again",
    )
    command.add_argument("--set-aside", metavar="PATH", help="write what was set aside, each row with its reason")
    command.add_argument("--resume", action="store_true", help="go on where a killed run has stopped")
    command.add_argument("--engine", choices=["embedded", "spark"], default="embedded", help="where it runs (embedded)")
    command.add_argument(
        "--output", dest="summary", choices=["text", "json"], default="text", help="form of the summary (text)"
    )
    command.add_argument("--html", metavar="PATH", help="write the funnel and the report on the rows as a page")
    _add_no_values(command)
    _add_quiet(command)
    command.add_argument(
        "--jobs", metavar="N", type=_positive, default=0, help="processes (one a core for a large file)"
    )


def _add_reading(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--format",
        metavar="F",
        default="auto",
        help="ces-csv, ces-evaluation, traces, search_traces, adk, "
        "adk-legacy, langsmith, ragas, deepeval, openai, vertex, mlflow or databricks (found by its columns)",
    )
    command.add_argument(
        "--outputs",
        choices=["auto", "provided", "generated"],
        default="auto",
        help="whether the outputs are in the data",
    )
    _add_quiet(command)
