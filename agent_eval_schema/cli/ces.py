"""ces: files of Google Customer Engagement Suite: a golden CSV to start from, and what the service stores."""

import argparse
import math
from contextlib import ExitStack
from typing import Any

from agent_eval_schema.cli.options import Commands, Parser, add_command, number_below
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text
from agent_eval_schema.rule import Severity
from agent_eval_schema.text.visible import visible


def add(commands: Commands) -> None:
    group = add_command(commands, "ces", None, "work with files of Google CES: golden CSV, Evaluation JSON")
    verbs = group.add_subparsers(required=True, metavar="VERB", prog=group.prog)
    command = add_command(verbs, "template", _template, "write a golden CSV to start from", ["ces template golden.csv"])
    command.add_argument("output", metavar="OUT", nargs="?", help="file to write (default: stdout)")
    command.reads_and_writes([], places=["output"])
    command.add_quiet()

    examples = [
        "ces update sample_data/evaluation_edited.json --against sample_data/evaluation.json --dry-run",
        "ces update sample_data/evaluation_edited.json --mask displayName --dry-run --output json",
        "ces update sample_data/evaluation_edited.json --against sample_data/evaluation.json --dry-run "
        "--app projects/acme-helpdesk/locations/eu/apps/hr-desk",
    ]
    command = add_command(verbs, "update", _update, "update stored evaluations, sending only changed fields", examples)
    command.add_argument("file", metavar="FILE", help="desired state of the evaluations (JSON), or - for stdin")
    command.reads_and_writes(["file", "against"])
    command.option("fields", "--against", "stored evaluations (JSON), or -: update what differs", metavar="STORED")
    command.option("fields", "--mask", "fields to update: displayName,golden.turns; '*' replaces all", metavar="MASK")
    app = "app of the evaluations, where FILE has only IDs or display names; new ones are imported"
    command.option("fields", "--app", app, metavar="APP")
    dry = "show the update mask and the changes without sending them"
    command.option("request", "--dry-run", dry, action="store_true")
    command.option("request", "--rest", "PATCH over REST (https://ces.googleapis.com), not MCP", action="store_true")
    _add_service(command, "https://ces.googleapis.com/mcp")
    command.add_output("changes, or of the request (json),")

    example = "ces import sample_data/golden.csv projects/p/locations/us/apps/a"
    command = add_command(verbs, "import", _import, "import a golden CSV file into an app", [example])
    command.add_argument("file", metavar="FILE", help="golden CSV file, or gs://BUCKET/OBJECT")
    command.add_argument("app", metavar="APP", help="resource name of the app")
    conflict = "what to do with an evaluation that exists (default: as the service does)"
    command.option("request", "--conflict", conflict, choices=("OVERWRITE", "SKIP", "DUPLICATE"))
    _add_service(command, timeout=300.0)

    for verb, name, what, of in (
        ("get", "NAME", "a stored evaluation", "/evaluations/e"),
        ("list", "APP", "all stored evaluations of an app", ""),
    ):
        example = f"ces {verb} projects/p/locations/us/apps/a{of} stored.json"
        command = add_command(verbs, verb, _stored, f"write {what} as JSON", [example])
        command.add_argument("name", metavar=name, help=f"resource name of the {'evaluation' if of else 'app'}")
        command.add_argument("output", metavar="OUT", nargs="?", help="file to write (default: stdout)")
        command.reads_and_writes([], places=["output"])
        command.set_defaults(every=not of)
        _add_service(command)


def _add_service(command: Parser, endpoint: str = "https://ces.googleapis.com", timeout: float = 60.0) -> None:
    seconds = number_below(math.inf, "a positive number of seconds")
    command.option("request", "--endpoint", f"service URL (default: {endpoint})", metavar="URL")
    total = f"total seconds (default: {timeout:g})"
    command.option("request", "--timeout", total, metavar="S", type=seconds, default=timeout)
    token = "The access token is read from CES_ACCESS_TOKEN=$(gcloud auth print-access-token)."
    command.group("request").description = token
    command.add_quiet()


def _template(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.formats.ces.golden_writer import golden_template
    from agent_eval_schema.io.atomic import require_place, write_text

    if arguments.output is None:
        print_text(golden_template())
    else:
        require_place(arguments.output)
        write_text(arguments.output, golden_template())
        print_note(f"a golden CSV to start from written to {arguments.output}", arguments)


def _update(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.ces.evaluation import validate_evaluation
    from agent_eval_schema.formats.ces.golden_writer import golden_csv_text
    from agent_eval_schema.formats.ces.update import faults_of, import_request, plan_updates, request_of, review_update
    from agent_eval_schema.io.streams import STDIN
    from agent_eval_schema.io.texts import stdin_as_file
    from agent_eval_schema.render.console import finding
    from agent_eval_schema.render.document import json_text
    from agent_eval_schema.render.fixes import update_text

    with ExitStack() as copies:
        files = (arguments.file, arguments.against)
        new, old = (copies.enter_context(stdin_as_file()) if path == STDIN else path for path in files)
        planned, added = plan_updates(new, old, arguments.mask, arguments.app)
    text, losses = golden_csv_text(added) if added else ("", [])
    faults = [issue for update, _ in planned for issue in faults_of(update)]
    faults += [issue for e in added for issue in validate_evaluation(e) if issue.severity is Severity.ERROR]
    if faults := faults + losses:  # an import takes a golden CSV, which must hold all of a new evaluation
        print_text("".join(f"{issue.code} {finding(issue, with_row=False)}\n" for issue in faults))
        print_note("request not sent: the service would reject it", arguments)
        return ExitCode.FOUND
    planned = [(update, old) for update, old in planned if update.paths]
    if not planned and not added:
        print_note("no changes: the stored evaluation is up to date", arguments)
        return ExitCode.CLEAN
    requests = [request_of(update) for update, _ in planned]
    imported = import_request(text, conflict="SKIP") if added else None
    new_names = ", ".join(str(evaluation.get("displayName")) for evaluation in added)
    if arguments.output == "json":
        bodies = [*requests, *([imported] if imported else [])]
        print_text(json_text(bodies if len(bodies) > 1 else bodies[0]), "json")
    else:
        print_text("\n".join(update_text(review_update(update, old), color=in_color()) for update, old in planned))
        print_text(f"to import into {arguments.app}: {visible(new_names)}\n" if added else "")
    if arguments.dry_run:
        print_note("request not sent (--dry-run)", arguments)
        return ExitCode.CLEAN
    from agent_eval_schema.integrations.ces.client import update_evaluation

    for request in requests:  # the first that fails is the last, and the notes name those that were made
        update_evaluation(request, endpoint=arguments.endpoint, rest=arguments.rest, timeout=arguments.timeout)
        print_note(f"updated {request['params']['arguments']['evaluation']['name']}", arguments)
    return _send_import(arguments.app, imported, arguments) if imported else ExitCode.CLEAN


def _import(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.ces.golden_reader import read_golden_csv
    from agent_eval_schema.formats.ces.update import import_request
    from agent_eval_schema.render.console import finding

    request = import_request(arguments.file, conflict=arguments.conflict)
    issues = [] if "gcsUri" in request else read_golden_csv(arguments.file).issues
    if faults := [issue for issue in issues if issue.severity is Severity.ERROR]:
        print_text("".join(f"{issue.code} {finding(issue)}\n" for issue in faults))
        print_note("request not sent: the service would reject it", arguments)
        return ExitCode.FOUND
    return _send_import(arguments.app, request, arguments)


def _send_import(app: str, request: dict[str, Any], arguments: argparse.Namespace) -> int:
    from agent_eval_schema.integrations.ces.client import import_evaluations

    endpoint = (arguments.endpoint or "").removesuffix("/mcp") or None  # an import is a call over REST
    result = import_evaluations(app, request, endpoint=endpoint, timeout=arguments.timeout)
    imported = [evaluation.get("name", "") for evaluation in result.get("evaluations") or []]
    print_text("".join(f"{visible(name)}\n" for name in imported))
    print_text("".join(f"{visible(message)}\n" for message in result.get("errorMessages") or []))
    failed = result.get("importFailureCount") or 0
    print_note(f"{len(imported)} imported, {failed} failed", arguments)
    return ExitCode.FOUND if failed else ExitCode.CLEAN


def _stored(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.formats.ces.evaluation import write_evaluation, write_evaluations
    from agent_eval_schema.integrations.ces import client
    from agent_eval_schema.io.atomic import require_place

    if arguments.output is not None:
        require_place(arguments.output)
    service = {"endpoint": arguments.endpoint, "timeout": arguments.timeout}
    if arguments.every:
        evaluations = client.list_evaluations(arguments.name, **service)
        text = write_evaluations(evaluations, arguments.output)
    else:
        evaluations = [client.get_evaluation(arguments.name, **service)]
        text = write_evaluation(evaluations[0], arguments.output)
    if arguments.output is None:
        print_text(text, "json")
    else:
        print_note(f"{len(evaluations)} written to {arguments.output}", arguments)
