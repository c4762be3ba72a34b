"""ces: files of Google Customer Engagement Suite: a golden CSV to start from, and updates of stored evaluations."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agent_eval_schema.cli.options import Commands, add_command, add_quiet
from agent_eval_schema.cli.output import ExitCode, in_color, print_note, print_text

if TYPE_CHECKING:
    from agent_eval_schema.formats.ces.evaluation import Evaluation
    from agent_eval_schema.formats.ces.update import Update


def add(commands: Commands) -> None:
    """Add the command and its verbs."""
    group = add_command(commands, "ces", None, "files of Google CES: golden CSV, Evaluation JSON")
    verbs = group.add_subparsers(required=True, metavar="VERB")
    command = add_command(verbs, "template", _template, "write a golden CSV to start from")
    command.add_argument("output", metavar="OUT", nargs="?", help="the file (stdout)")
    add_quiet(command)

    command = add_command(verbs, "update", _update, "store evaluations, and of them only what changed")
    command.add_argument("file", metavar="FILE", help="evaluations as they are to be (JSON)")
    command.add_argument("--against", metavar="STORED", help="the stored ones (JSON): what differs is updated")
    command.add_argument("--mask", metavar="M", help="the fields to update, displayName,golden.turns; '*' replaces all")
    command.add_argument("--dry-run", action="store_true", help="show the mask and what changes; nothing is sent")
    command.add_argument("--output", choices=["text", "json"], default="text", help="what changes, or the request")
    command.add_argument("--endpoint", metavar="URL", help="where to (https://ces.googleapis.com/mcp)")
    command.add_argument("--rest", action="store_true", help="PATCH over REST (https://ces.googleapis.com), not MCP")
    command.add_argument("--timeout", metavar="S", type=_seconds, default=60.0, help="seconds for all of it (60)")
    command.epilog = "The token is read from the environment: CES_ACCESS_TOKEN=$(gcloud auth print-access-token)"
    add_quiet(command)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, got {text!r}")
    return seconds


def _template(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.ces.golden_template import golden_template
    from agent_eval_schema.io.atomic import require_place, write_text

    if arguments.output is None:
        print_text(golden_template())
        return ExitCode.CLEAN
    require_place(arguments.output)
    write_text(arguments.output, golden_template())
    print_note(f"a golden CSV to start from written to {arguments.output}", arguments)
    return ExitCode.CLEAN


def _update(arguments: argparse.Namespace) -> int:
    from agent_eval_schema.formats.ces.update import faults_of, plan_updates, request_of
    from agent_eval_schema.render.console import finding
    from agent_eval_schema.render.document import json_text
    from agent_eval_schema.text.visible import escape_ci_commands

    planned = plan_updates(arguments.file, arguments.against, arguments.mask)
    if faults := [issue for update, _ in planned for issue in faults_of(update)]:
        lines = (escape_ci_commands(f"{issue.code} {finding(issue, with_row=False)}") for issue in faults)
        print_text("".join(f"{line}\n" for line in lines))
        print_note("nothing was sent: the service would refuse this", arguments)
        return ExitCode.FOUND
    planned = [(update, old) for update, old in planned if update.paths]
    if not planned:
        print_note("nothing differs from what is stored: there is nothing to update", arguments)
        return ExitCode.CLEAN
    requests = [request_of(update) for update, _ in planned]
    if arguments.output == "json":
        print_text(json_text(requests if len(requests) > 1 else requests[0]))
    else:
        print_text("\n".join(_update_text(update, old) for update, old in planned))
    if arguments.dry_run:
        print_note("nothing was sent (--dry-run)", arguments)
        return ExitCode.CLEAN
    return _send(requests, arguments)


def _update_text(update: Update, old: Evaluation | None) -> str:
    from agent_eval_schema.formats.ces.review import review_update
    from agent_eval_schema.render.update import update_text

    return update_text(review_update(update, old), color=in_color())


def _send(requests: list[dict[str, Any]], arguments: argparse.Namespace) -> int:
    """Send one after the other; the first that fails is the last, and the notes say which were made."""
    from agent_eval_schema.integrations.ces.client import update_evaluation

    for request in requests:
        update_evaluation(request, endpoint=arguments.endpoint, rest=arguments.rest, timeout=arguments.timeout)
        print_note(f"updated {request['params']['arguments']['evaluation']['name']}", arguments)
    return ExitCode.CLEAN
