"""What a conversion lost, as blocks: each kind of loss with its number and examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.render.blocks import (
    Block,
    Detail,
    Document,
    Example,
    Examples,
    Group,
    Line,
    Only,
    Part,
    Section,
    Several,
)
from agent_eval_schema.render.phrases import NextCommand, command_on, plural

LISTED = 20
"""Losses of a kind on a page; the JSON and the DataFrame have them all."""

KINDS_AT_ONCE = 5
"""Kinds of loss that a notebook does not fold."""


def losses_document(headline: str, issues: Sequence[Issue], source: str | None = None) -> Document:
    """Exact counts: a line or a group for each code and column; then the next command. `source` is the file that was
    converted."""
    is_error = any(issue.severity is Severity.ERROR for issue in issues)
    following = []
    if is_error:
        command = command_on(source, "validate", instead="validate_eval_set(data)")
        following.append(NextCommand(command, "shows why rows were not converted"))
    losses = "no losses" if not issues else "1 loss" if len(issues) == 1 else f"{len(issues):,} losses"
    kinds = _by_kind(issues)
    section = Section(
        "losses", "Losses", [Several(list(map(_group, kinds)), "more kinds of loss", at_once=KINDS_AT_ONCE)]
    )
    return Document(
        title=headline,
        verdict=f"{headline}, {losses}",
        mood="good" if not issues else "error" if is_error else "",
        following=following,
        blocks=[Only("html", [section]), Only("text", list(_lines(kinds, issues)))] if issues else [],
        kind="conversion",
        footer=". Row numbers are zero-based.",
    )


def _by_kind(issues: Sequence[Issue]) -> list[list[Issue]]:
    """The losses of each code and column, errors first."""
    groups: dict[tuple[str, str], list[Issue]] = {}
    for issue in issues:
        groups.setdefault((issue.code, issue.column or ""), []).append(issue)
    severities = list(Severity)
    return [groups[key] for key in sorted(groups, key=lambda key: (severities.index(groups[key][0].severity), key))]


def _group(losses: list[Issue]) -> Group:
    first = losses[0]
    head = [Part(f"{first.code} {first.name}", f"tag {first.severity}")]
    head += [Part(first.column, "code")] if first.column else []
    rows = [
        Example("" if i.row is None else f"{i.row:,}", i.request_id, (i.path or "", Part(i.message, "message")))
        for i in losses[:LISTED]
    ]
    return Group(
        [*head, Part(f"{len(losses):,}\N{NO-BREAK SPACE}×", "count")],
        [
            *([Line(Part(first.hint, "message"), "muted")] if first.hint else []),
            Examples([Detail("Where", "path"), Detail("Loss")], rows, total=len(losses)),
        ],
        is_open=first.severity is Severity.ERROR,
        open_in_notebook=False,
    )


def _lines(kinds: Sequence[list[Issue]], issues: Sequence[Issue]) -> Iterator[Block]:
    """A line per kind with its first loss; below them all, what to do about each."""
    for losses in kinds:
        first = losses[0]
        column = f" {first.column}" if first.column else ""
        severity = Part(f"{first.severity!s:7}", f"bold {first.severity}")
        yield Line((f"{first.code} ", severity, f" {first.name}{column}: {plural(len(losses), 'time')}"))
        place = [] if first.row is None else [f"row {first.row:,}", first.path or "the row"]
        yield Line(": ".join([*place, first.message]), indent=6)
    hints = dict.fromkeys(f"{issue.code}: {issue.hint}" for issue in issues)
    yield Section("hints", "", [Line(hint, "muted") for hint in hints], indent=0)
