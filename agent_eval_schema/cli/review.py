"""review: a page on which people give rows their ground truth."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_eval_schema.cli.options import INPUT, OUTPUT, ROW_FILES, ROWS_OUT, Commands, add_command, open_input, whole
from agent_eval_schema.cli.output import print_note, print_text, progress_screen
from agent_eval_schema.errors import EvalSetError
from agent_eval_schema.formats.names import FORMAT_NAMES
from agent_eval_schema.runtime.progress import shown_on

if TYPE_CHECKING:
    from agent_eval_schema.review.session import Session
    from agent_eval_schema.review.write import Reviewing


def add(commands: Commands) -> None:
    examples = [
        "review sample_data/broken.jsonl --reviewer maria",
        "review sample_data/broken.jsonl --bundle review.html --queue truth",
    ]
    summary = "open a page on which people give rows their ground truth, and write the reviewed file"
    command = add_command(commands, "review", run, summary, examples)
    command.add_argument("file", metavar="FILE", help=ROW_FILES)
    command.reads_and_writes(["file", "merge", "guide"], ["out"])
    command.add_reading([name for name in FORMAT_NAMES if not name.startswith("ces-")])  # see `Reviewed`
    command.option("review", "--reviewer", "name in the journal and of its file (default: the user)", metavar="NAME")
    queue = (
        "queue that opens: truth, errors, fixes, conflicts, duplicates, audit, flagged, changed, overlap, "
        "together, rows or all (default: the first with rows)"
    )
    command.option("review", "--queue", queue, metavar="QUEUE", default="")
    rows = "comma-separated numbers of rows, such as 3,17,40: they are the queue that opens, in this order"
    command.option("review", "--rows", rows, metavar="NUMBERS", type=_rows, default=[])
    overlap = "rows that every reviewer gets, to measure agreement"
    command.option("review", "--overlap", overlap, metavar="N", type=whole, default=0)
    command.option("review", "--guide", "Markdown file with instructions, shown beside the form", metavar="PATH")
    command.option("review", "--port", "port of the page (default: a free one)", metavar="N", type=whole, default=0)
    command.option("review", "--no-browser", "print the address without opening a browser", action="store_true")
    journals = "journals of several reviewers: --out takes what they agree on or decided together"
    command.option(INPUT, "--merge", journals, metavar="JOURNAL", nargs="+", default=[])
    command.option(OUTPUT, "--out", f"where the page (or --merge) writes the rows: {ROWS_OUT}", metavar="PATH")
    command.option(OUTPUT, "--bundle", "write one page that works without a server to PATH", metavar="PATH")
    redact = "redact the texts of a bundle: default, or a function (module:function)"
    command.option(OUTPUT, "--redact", redact, metavar="HOW")
    to = (
        "write the labels in the journals and their reviewers to mlflow:DATASET, or to mlflow: as expectations of "
        "the traces of the rows"
    )
    command.option(OUTPUT, "--to", to, metavar="PLACE", type=_place)
    command.option(OUTPUT, "--tracking-uri", "tracking store of --to (default: MLFLOW_TRACKING_URI)", metavar="URI")
    command.add_settings("format", "outputs", "columns")


def run(arguments: argparse.Namespace) -> None:
    from agent_eval_schema.review.review import merge, merged, open_session
    from agent_eval_schema.rules.columns import UNREAD_TRUTH

    if arguments.redact and not arguments.bundle:
        raise EvalSetError("--redact: expected --bundle: the page of a server shows the rows as they are")
    if arguments.tracking_uri and arguments.to is None:
        raise EvalSetError("--tracking-uri: expected --to mlflow or --to mlflow:DATASET")
    if arguments.overlap < 0:
        raise EvalSetError(f"--overlap: expected a whole number of at least 0; got {arguments.overlap}")
    if arguments.queue:
        from agent_eval_schema.review.dataset import QUEUE_NAMES
        from agent_eval_schema.text.choices import require_choice

        require_choice("queue", arguments.queue, QUEUE_NAMES)
    source = open_input(arguments.file, arguments)
    if arguments.merge:
        session = merge(source, _named(arguments.merge))
        reviewing = merged(session)
        print_text("".join(f"{line}\n" for line in merge_report(session, reviewing)))
        if arguments.out:
            reviewing.write(arguments.out)
            print_note(f"reviewed rows written to {arguments.out}", arguments)
        if arguments.to is not None:
            _to_mlflow(session, arguments)
        return
    if arguments.redact:  # a message quotes a part of a cell, in which half of an address may be
        source = source.read_as(show_values=False)
    options: dict[str, Any] = {"overlap": arguments.overlap, "guide": arguments.guide, "rows": arguments.rows}
    arguments.queue = arguments.queue or "rows" * bool(arguments.rows)
    if arguments.bundle and arguments.queue in ("", "all"):  # which would be found out when all is read
        from agent_eval_schema.review.bundle import require_few

        options["check"] = require_few
    with shown_on(partial(progress_screen, arguments, arguments.file)):
        session = open_session(source, arguments.reviewer, **options)
    for issue in session.reviewed.run.builder.overall:
        if issue.code == UNREAD_TRUTH.code:
            print_note(f"{issue.message}: {issue.hint}", arguments)
    if arguments.bundle:
        from agent_eval_schema.io.atomic import write_text
        from agent_eval_schema.review.bundle import bundle_page

        write_text(arguments.bundle, bundle_page(session, arguments.queue, arguments.redact))
        print_note(f"HTML review written to {arguments.bundle}", arguments)
    elif arguments.to is not None:
        _to_mlflow(session, arguments)
    else:
        _serve(session, arguments)


def _rows(text: str) -> list[int]:
    return list(map(whole, text.split(",")))


def _place(text: str) -> str:
    """The dataset of `mlflow:DATASET`, "" for the traces of `mlflow`."""
    place, colon, dataset = text.partition(":")
    if place != "mlflow" or (colon and not dataset):
        raise argparse.ArgumentTypeError(f"expected mlflow or mlflow:DATASET, got {text!r}")
    return dataset


def _to_mlflow(session: Session, arguments: argparse.Namespace) -> None:
    """Write the labels and their reviewers to MLflow, and print what was written."""
    from agent_eval_schema.render.phrases import plural
    from agent_eval_schema.review.to_mlflow import log_labels, write_dataset

    if arguments.to:
        written = write_dataset(session, arguments.to, tracking_uri=arguments.tracking_uri)
        print_text(f"{written.written:,} of {plural(written.rows_in, 'row')} written to the dataset {arguments.to}\n")
        others = {"merged into rows with the same request": len(written.collapsed), "excluded": len(written.excluded)}
        others["written into records that keep their first source"] = sum("source" in r.lost for r in written.updated)
    else:
        done = log_labels(session, tracking_uri=arguments.tracking_uri)
        counts = ", ".join(f"{done[name]:,} {name}" for name in ("written", "deleted", "unchanged"))
        print_text(f"expectations of traces: {counts}\n")
        others = {
            "without a trace": done["rows_without_trace"],
            "with tags that were not written": done["tags_not_kept"],
        }
    print_text("".join(f"{plural(count, 'row')} {what}\n" for what, count in others.items() if count))


def _serve(session: Session, arguments: argparse.Namespace) -> None:
    """Serve the page until the user ends it."""
    from agent_eval_schema.review.server import ReviewServer

    server = ReviewServer(session, port=arguments.port, queue=arguments.queue, out=arguments.out)
    print_text(f"{server.url}\n")
    print_note(f"each change is saved to {session.journal.path}; Ctrl+C ends the review", arguments)
    if not arguments.no_browser:
        server.open_in_browser()
    try:
        server.wait()
    except KeyboardInterrupt:
        server.stop()
        print_note(f"{len(session.journal.events):,} changes are in {session.journal.path}", arguments)


def _named(patterns: list[str]) -> list[str]:
    """The files that names and quoted globs mean."""
    import glob

    return [path for pattern in patterns for path in (sorted(glob.glob(pattern)) or [pattern])]


def merge_report(session: Session, found: Reviewing) -> list[str]:
    """How far the reviewers agree, and what is written."""
    from agent_eval_schema.render.phrases import plural
    from agent_eval_schema.review.agreement import agreement_text, excluded_rows, submitted

    everybody = session.of_others()
    lines = [f"{plural(len(everybody), 'reviewer')}: {plural(len(submitted(everybody)), 'row')} submitted"]
    lines += map(agreement_text, session.agreement())
    lines += [f"{plural(count, 'row')} excluded: {why}" for why, count in excluded_rows(everybody).items()]
    return [*lines, *found.summary()]
