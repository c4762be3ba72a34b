"""A comparison as blocks, in the order of a summary: rows, fields from what to what, issues, what can be measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent_eval_schema.diff.diff_summary import (
    DatasetSummary,
    DiffPlace,
    DiffSummary,
    IssueChange,
    MetricChange,
    MetricRow,
)
from agent_eval_schema.issues import Issue, Severity
from agent_eval_schema.metrics.catalog import COMMON, SYSTEMS
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Change,
    Changes,
    Detail,
    Document,
    Example,
    Examples,
    Fold,
    Group,
    Items,
    Line,
    Only,
    Part,
    Section,
    Several,
    Table,
    Words,
    edit_words,
)
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, NextCommand, command_on, counted, plural
from agent_eval_schema.rules import RULES

ROWS_OPEN = 20
"""Rows of a group that is open at once on a page; a longer one is closed."""

ROWS_IN_TEXT = 5
"""Rows added, removed, made invalid … in a text; the other forms have more."""

STORIES_SHOWN, STORIES_AT_ONCE = 100, 5
"""Rows whose story a page has, those with new errors first; those that a notebook does not fold."""

STORIES = "What changed, the issues that came or went with it, and the metrics that the row supports no longer, or now."

METRICS_NAMED = 8
"""Metrics of a story that are named; the others are counted."""

MOST_SELECTED = 5
"""Codes that a command selects, at most: with more it would be no line to type."""


def diff_document(summary: DiffSummary, system: str = "databricks") -> Document:
    """The comparison; a text has the metrics of one system, or of "all", and a page those of all common ones."""
    stories = _stories(summary)
    details = [*_rows(summary), *_fields(summary), *_issues(summary)]
    names = [os.path.basename(s.source) if s.source else "evaluation set" for s in (summary.old, summary.new)]
    story_blocks: list[Block] = [
        Line(STORIES, "muted"),
        Several(stories, "more rows", at_once=STORIES_AT_ONCE),
    ]
    return Document(
        title=f"{names[0]} → {names[1]}",
        about=[
            Line((Part("---", "code"), f" {_described(summary.old)}"), "muted old"),
            Line((Part("+++", "code"), f" {_described(summary.new)}"), "muted new"),
        ],
        verdict=diff_headline(summary),
        mood="error" if summary.losses else "good" if summary.same else "",
        following=_next_commands(summary),
        blocks=[
            *([Only("html", [Section("stories", "Row by row", story_blocks)])] if stories else []),
            *([Fold("Rows, changes and issues", details)] if stories and details else details),
            *_metrics(summary, system),
        ],
        kind="comparison",
        footer=". Row numbers are zero-based; “row OLD → NEW” is a moved row.",
    )


# ---------------------------------------------------------------------------------------------------------------------
# the verdict and the next command
def _described(side: DatasetSummary) -> str:
    where = f"{side.source}: " if side.source else ""
    return f"{where}{plural(side.rows, 'row')}, {side.valid:,} valid; {side.format} format, outputs {side.outputs}"


def diff_headline(summary: DiffSummary) -> str:
    """Return what happened to the dataset, in one sentence."""
    rows = summary.rows
    if summary.same:
        moved = f"; {rows.moved:,} of them moved" if rows.moved else ""
        return f"No difference: {'the row is' if rows.new == 1 else f'all {rows.new:,} rows are'} the same{moved}."
    head = f"{rows.changed:,} of {plural(rows.matched, 'matched row')} changed" if rows.changed else "No row changed"
    parts = counted([(rows.added, "added"), (rows.removed, "removed"), (rows.moved, "moved")])
    metrics = (rows.lost_a_metric, "lost a metric"), (rows.gained_a_metric, "gained a metric")
    validity = (rows.became_invalid, "became invalid"), (rows.became_valid, "became valid")
    return "; ".join([", ".join([head, *parts]), *counted([*validity, *metrics])]) + "."


def _next_commands(summary: DiffSummary) -> list[NextCommand]:
    """What shows why the new version is worse: its new issues, else the metrics that it lost."""
    name = summary.new.source
    severities = (Severity.ERROR, Severity.WARNING)
    codes = [i.code for i in summary.issues if i.severity in severities and (i.gained or i.on_added)]
    if codes:
        chosen = ("--select", ",".join(codes)) if len(codes) <= MOST_SELECTED else ()
        command = command_on(name, "validate", *chosen, instead="validate_eval_set(new)")
        return [NextCommand(command, "shows the new issues")]
    if summary.rows.lost_a_metric and (command := command_on(name, "metrics")):
        return [NextCommand(command, "shows what would enable more metrics")]
    return []


# ---------------------------------------------------------------------------------------------------------------------
# rows, fields and issues
def _rows(summary: DiffSummary) -> Iterator[Block]:
    rows, groups, texts = summary.rows, list[Block](), list[Block]()
    columns = [("dropped", "-", summary.columns_dropped), ("added", "+", summary.columns_added)]
    columns = [column for column in columns if column[-1]]
    if columns:
        signed = [Example("", None, [", ".join(names)], sign) for _, sign, names in columns]
        texts.append(Section("columns", "Columns", [Examples([Detail("Columns")], signed)]))
    for title, mood, sign, count, places in (
        ("Removed", "error", "-", rows.removed, summary.removed),
        ("Added", "good", "+", rows.added, summary.added),
        ("Invalid now", "error", "✗", rows.became_invalid, summary.became_invalid),
        ("Valid now", "good", "✓", rows.became_valid, summary.became_valid),
    ):
        if count:
            found = [Example(p.rows, p.request_id, [p.asks, ", ".join(p.errors)], sign) for p in places]
            details = [Detail("Asks"), Detail("Errors", "error", "  invalid: ")]
            examples = Examples(details, found, count, in_text=ROWS_IN_TEXT)
            head = [Part(title, f"tag {mood}"), Part(f"{count:,}", "count")]
            groups.append(Group(head, [examples], is_open=count <= ROWS_OPEN))
            texts.append(Section(title, f"{title} ({count:,})", [examples]))
    if texts:
        yield Only("text", texts)
        yield Only("html", [Section("rows", "Rows", [*(_columns(verb, names) for verb, _, names in columns), *groups])])


def _columns(verb: str, names: Sequence[str]) -> Line:
    return Line((f"Columns {verb}:", *(piece for name in names for piece in (" ", Part(name, "code")))))


def _fields(summary: DiffSummary) -> Iterator[Block]:
    groups = [
        Group(
            [Part(field.field, "tag path"), plural(field.rows, "row")],
            [
                Changes(
                    field.field,
                    [Change(c.row.rows, c.row.request_id, c.edits, c.more_edits) for c in field.examples],
                    field.rows,
                )
            ],
            is_open=field.rows <= ROWS_OPEN,
        )
        for field in summary.fields
    ]
    if groups:
        yield Section("changes", "Changed", groups, short="Changes", text_title=f"Changed ({summary.rows.changed:,})")


def _issues(summary: DiffSummary) -> Iterator[Block]:
    groups = [
        Group(
            [
                Part(f"{line.code} {line.name}", f"tag {line.severity}"),
                Part(f"{line.old:,} → {line.new:,}", "count"),
                Part(f"({_moves(line)})", "muted"),
            ],
            [
                Examples(
                    [Detail("Where", "path"), Detail("What is wrong", before=": ")],
                    [*(_found(i, "+") for i in line.gained_examples), *(_found(i, "-") for i in line.lost_examples)],
                    signs="Change",
                )
            ],
            is_open=line.severity is Severity.ERROR and 0 < line.gained + line.lost <= ROWS_OPEN,
        )
        for line in summary.issues
    ]
    if groups:
        yield Section("issues", "Issues gained and lost", groups, short="Issues", text_title="Issues")


def _moves(line: IssueChange) -> str:
    """In words, why a number is another one."""
    on_others = (line.on_added, "on added rows"), (line.on_removed, "on removed rows")
    return ", ".join(counted([(line.gained, "gained"), (line.lost, "lost"), *on_others]))


def _found(issue: Issue, sign: str) -> Example:
    row = "" if issue.row is None else f"{issue.row:,}"
    return Example(row, issue.request_id, [issue.path or "", Part(issue.message, "message")], sign)


# ---------------------------------------------------------------------------------------------------------------------
# metrics
def _metrics(summary: DiffSummary, system: str) -> Iterator[Block]:
    differing: dict[str, list[MetricChange]] = {}
    totals = Counter(line.system for line in summary.metrics)
    for line in summary.metrics:
        if line.gained or line.lost or line.old != line.new:
            differing.setdefault(line.system, []).append(line)
    texts: list[Block] = [
        Section(name, f"Metric coverage ({name}): {len(lines)} of {totals[name]} metrics differ", [_in_text(lines)])
        for name in (SYSTEMS if system == "all" else (system,))
        if (lines := differing.get(name))
    ]
    others = {
        name: sum(bool(line.gained or line.lost) for line in lines)
        for name, lines in differing.items()
        if system not in (name, "all") and name in COMMON
    }
    if any(others.values()):
        counts = ", ".join(f"{plural(count, 'metric')} of {name}" for name, count in others.items() if count)
        texts.append(Line(f"Gained or lost as well: {counts} (--system all)", "muted", indent=2))
    if summary.rows.moved:
        moved = "Row numbers are zero-based. “row OLD → NEW” is a moved row."
        texts.append(Section("moved", "", [Line(moved, "muted")], indent=0))
    yield Only("text", texts)
    groups = [
        Group(
            [Part(name, "tag"), f"{len(differing[name])} of {totals[name]} metrics differ"],
            [Table(["Metric", "#before", "#now", "Why"], list(map(_on_page, differing[name])), kind="metrics")],
        )
        for name in COMMON
        if name in differing
    ]
    if groups:
        groups[0] = replace(groups[0], is_open=True)
        yield Only("html", [Section("metrics", "Metric coverage", groups, short="Metrics")])


def _in_text(lines: Sequence[MetricChange]) -> Table:
    rows = [
        (line.metric, f"{line.old:,}/{line.old_rows:,} → {line.new:,}/{line.new_rows:,}", _reasons(line))
        for line in lines
    ]
    return Table(["", "#", ""], rows, notes=True)


def _on_page(line: MetricChange) -> list[Words | Cell]:
    mood = "error" if line.lost else "good" if line.gained else ""
    reasons = "".join(part.text if isinstance(part, Part) else part for part in _reasons(line))
    before, now = f"{line.old:,} / {line.old_rows:,}", f"{line.new:,} / {line.new_rows:,}"
    return [Part(line.metric, "name"), before, Cell(now, mood), Cell(reasons, "muted")]


def _reasons(line: MetricChange) -> tuple[str | Part, ...]:
    """Which rows lost and gained it, and why; rows that came and went are only counted."""
    found: list[str | Part] = []
    for rows, count, sign, kind in (
        (line.lost_examples, line.lost, "-", "old"),
        (line.gained_examples, line.gained, "+", "new"),
    ):
        if count:
            more = "; …" if count > EXAMPLES_SHOWN else ""
            found += ["; "] if found else []
            found += [Part(f"{sign}{count:,} ", kind), "; ".join(map(_reason, rows[:EXAMPLES_SHOWN])) + more]
    for count, sign, what, kind in (
        (line.on_removed, "-", "removed", "old"),
        (line.on_added, "+", "added", "new"),
    ):
        if count:
            found += ["; "] if found else []
            found += [Part(f"{sign}{count:,} ", kind), what]
    return tuple(found)


def _reason(row: MetricRow) -> str:
    name = row.row.request_id or f"row {row.row.new_row:,}"
    return f"{name} {row.why}"


# ---------------------------------------------------------------------------------------------------------------------
# row by row
def _stories(summary: DiffSummary) -> list[Group]:
    """Each matched row that changed, of the examples: the change, the issues that came or went with it, and the metrics
    lost or gained. Rows with new errors come first."""
    changes: dict[tuple[int | None, int | None], list[tuple[str, Words]]] = {}
    places: dict[tuple[int | None, int | None], DiffPlace] = {}
    for field in summary.fields:
        for change in field.examples:
            places[change.row.key] = change.row
            changes.setdefault(change.row.key, []).extend(edit_words(change.edits, change.more_edits))
    stories = [_story(summary, places[key], changes[key]) for key in changes]
    stories.sort(key=lambda story: story[0])
    shown = stories[:STORIES_SHOWN]
    return [
        replace(group, is_open=len(shown) <= ROWS_OPEN, open_in_notebook=i < STORIES_AT_ONCE)
        for i, (_, group) in enumerate(shown)
    ]


_MOODS = ("error", "warning", "", "good")


def _story(
    summary: DiffSummary, place: DiffPlace, changes: Sequence[tuple[str, Words]]
) -> tuple[tuple[int, int], Group]:
    """The story of a row, and where it stands among the others."""
    gained = [i for line in summary.issues for i in line.gained_examples if i.row == place.new_row]
    lost = [i for line in summary.issues for i in line.lost_examples if i.row == place.old_row]
    metrics = [*_story_metrics(summary, place, "−"), *_story_metrics(summary, place, "+")]
    severities = {issue.severity for issue in gained}
    if Severity.ERROR in severities or any(sign == "−" for sign, _, _ in metrics):
        mood = "error"
    else:
        mood = "warning" if Severity.WARNING in severities else "good" if metrics else ""
    items: list[tuple[str, Words]] = []
    for path, words in changes:
        items.append(("", (Part(path, "path"), ": ", *(words if isinstance(words, tuple) else (words,)))))
    for sign, issues in (("+", gained), ("−", lost)):
        for issue in issues:
            of = "good" if sign == "−" else "" if issue.severity is Severity.INFO else str(issue.severity)
            items.append((of, (f"{sign} {issue.code} {RULES[issue.code].name}: ", Part(issue.message, "message"))))
    for sign, names, why in metrics:
        more = f" and {len(names) - METRICS_NAMED:,} more" if len(names) > METRICS_NAMED else ""
        items.append(("error" if sign == "−" else "good", f"{sign} {', '.join(names[:METRICS_NAMED])}{more}: {why}"))
    summed_up = [
        *dict.fromkeys(path for path, _ in changes),
        *(f"+{issue.code}" for issue in gained),
        *(f"−{issue.code}" for issue in lost),
        *(f"{sign}{plural(len(names), 'metric')}" for sign, names, _ in metrics),
    ]
    head: list[str | Part] = [
        Part(f"row {place.rows}", f"tag {mood}".rstrip()),
        place.request_id or "",
        Part(", ".join(summed_up), "muted"),
    ]
    return (_MOODS.index(mood), place.new_row or 0), Group(head, [Items(items)])


def _story_metrics(summary: DiffSummary, place: DiffPlace, sign: str) -> Iterator[tuple[str, list[str], str]]:
    """The metrics that the row lost (−) or gained (+), those with the same reason together."""
    by_why: dict[str, list[str]] = {}
    for line in summary.metrics:
        if line.system in COMMON:
            for found in line.lost_examples if sign == "−" else line.gained_examples:
                if found.row.key == place.key:
                    by_why.setdefault(found.why, []).append(line.metric)
    yield from ((sign, names, why) for why, names in by_why.items())
