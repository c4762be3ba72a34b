"""What a comparison found, ready to be drawn: every number is exact, every list of examples holds at most 20.

    DiffSummary ─ rows added, removed, made invalid, made valid  (DiffPlace)
                ├ fields that changed                                (FieldChange ─ CellChange ─ Edit)
                ├ issues gained and lost, a line per code            (IssueChange)
                └ metric support gained and lost, a line per metric  (MetricChange)

As JSON it is what `Diff.to_json` writes; as blocks it is in the order of a summary.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.issues import Issue
from agent_eval_schema.metrics.catalog import COMMON
from agent_eval_schema.metrics.support import systems
from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Change,
    Changes,
    Detail,
    Example,
    Examples,
    Fold,
    Group,
    Line,
    Only,
    OpenRows,
    Part,
    Section,
    Table,
    View,
    Words,
)
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, Call, NextCommand, counted, plural
from agent_eval_schema.render.rows import RowContent, ShownRow
from agent_eval_schema.rule import Severity
from agent_eval_schema.rules import RULES
from agent_eval_schema.runtime.groups import by_key
from agent_eval_schema.text.edits import Edit

EXAMPLES_KEPT = 20
"""Examples of a kind in a DiffSummary; counts are always exact, and the frames of a Diff are complete."""


class DatasetSummary(Struct, frozen=True):
    """One side as its report has it. `source` is the file's path."""

    source: str | None
    format: str
    format_reason: str
    outputs: str
    rows: int
    valid: int
    invalid: int


class DiffPlace(Struct, frozen=True):
    """A row: its 0-based positions (None on the side where it is not), its id, an excerpt of what it asks, and the
    codes for which it is invalid now (or was, if it was removed)."""

    old_row: int | None
    new_row: int | None
    request_id: str | None
    asks: str
    errors: tuple[str, ...]

    @property
    def key(self) -> tuple[int | None, int | None]:
        return self.old_row, self.new_row

    @property
    def rows(self) -> str:
        """The position, or both if they differ: `3`, `3 → 5`."""
        return " → ".join(f"{row:,}" for row in dict.fromkeys(self.key) if row is not None)


class CellChange(Struct, frozen=True):
    """A cell whose value differs: the first edits, and the number of further ones."""

    row: DiffPlace
    edits: tuple[Edit, ...]
    more_edits: int


class FieldChange(Struct, frozen=True):
    """A field, and the number of matched rows whose value differs."""

    field: str
    rows: int
    examples: tuple[CellChange, ...] = ()


class IssueChange(Struct, frozen=True):
    """A code and the rows that have it: old - lost - on_removed + gained + on_added = new.

    `gained` and `lost` count matched rows. A finding on the dataset as a whole counts like a row.
    """

    code: str
    name: str
    severity: Severity
    old: int
    new: int
    gained: int
    lost: int
    on_added: int
    on_removed: int
    gained_examples: tuple[Issue, ...] = ()
    lost_examples: tuple[Issue, ...] = ()


class MetricRow(Struct, frozen=True):
    """A row that supports a metric now or no longer, and why."""

    row: DiffPlace
    why: str


class MetricChange(Struct, frozen=True):
    """A metric and the rows that support it: old - lost - on_removed + gained + on_added = new.

    `gained` and `lost` count matched rows; `old_rows` and `new_rows` are all rows of each side.
    """

    system: str
    metric: str
    old: int
    old_rows: int
    new: int
    new_rows: int
    gained: int
    lost: int
    on_added: int
    on_removed: int
    gained_examples: tuple[MetricRow, ...] = ()
    lost_examples: tuple[MetricRow, ...] = ()

    @property
    def same(self) -> bool:
        """Whether no row supports it that did not, and the other way round."""
        return not (self.gained or self.lost or self.on_added or self.on_removed)


class DiffSummary(Struct, frozen=True):
    """A comparison of two datasets, in the order in which a reader would ask.

    `same`: nothing differs but, perhaps, the order of the rows. `losses`: a row is gone, invalid now, or lost a metric.
    `columns_added` and `columns_dropped` name those that hold something on one side only. `metrics` has all metrics of
    the catalog, the others only what differs.
    """

    same: bool
    losses: bool
    old: DatasetSummary
    new: DatasetSummary
    rows: dict[str, int]
    columns_added: tuple[str, ...]
    columns_dropped: tuple[str, ...]
    added: tuple[DiffPlace, ...]
    removed: tuple[DiffPlace, ...]
    became_invalid: tuple[DiffPlace, ...]
    became_valid: tuple[DiffPlace, ...]
    fields: tuple[FieldChange, ...]
    issues: tuple[IssueChange, ...]
    metrics: tuple[MetricChange, ...]


# --- the blocks
ROWS_OPEN = 20
"""Rows of a group that is open at once on a page; a longer one is closed."""

ROWS_IN_TEXT = 5
"""Rows added, removed, made invalid … in a text; the other forms have more."""

STORIES_SHOWN, STORIES_AT_ONCE = 100, 5
"""Rows whose changes a page shows, those with new errors first; those that a notebook has."""

STORIES = "A row opens to what changed, the issues that came or went with it, and its metrics gained and lost."

METRICS_NAMED = 8
"""Metrics of a story that are named; the others are counted."""

MOST_SELECTED = 5
"""Codes that a command selects, at most: with more it would be no line to type."""


def diff_view(summary: DiffSummary, call: Call, system: str = "databricks", rows: Sequence[ShownRow] = ()) -> View:
    """The comparison, with these `rows`; a text has the metrics of one system, or of "all", and a page those of all
    common ones."""
    details = [*_rows(summary), *_fields(summary), *_issues(summary)]
    names = [os.path.basename(s.source) if s.source else "evaluation set" for s in (summary.old, summary.new)]
    total = max(len(rows), summary.rows["changed"] + summary.rows["added"] + summary.rows["removed"])
    more = "more rows: the frames of the diff, such as `changed`, have all"
    few = [replace(row, content=_without_cells(row.content)) for row in rows[:STORIES_AT_ONCE]]
    stories: list[Block] = [
        Only("page", [OpenRows(["what changed"], rows, total, STORIES, more)]),
        Only("notebook", [OpenRows(["what changed"], few, total, STORIES, more)]),
    ]
    return View(
        title=f"{names[0]} → {names[1]}",
        about=[
            Line((Part("---", "code"), f" {_described(summary.old)}"), "muted old"),
            Line((Part("+++", "code"), f" {_described(summary.new)}"), "muted new"),
        ],
        verdict=diff_headline(summary),
        mood="error" if summary.losses else "good" if summary.same else "",
        following=_next_commands(summary, call),
        blocks=[
            Only("html", [Section("stories", "Row by row", stories)]),
            *([Fold("Rows, changes and issues", details)] if rows and details else details),
            *_metrics(summary, system),
        ],
        kind="comparison",
        footer=". Row numbers are zero-based; “row OLD → NEW” is a moved row.",
    )


# --- the verdict and the next command
def _described(side: DatasetSummary) -> str:
    where = f"{side.source}: " if side.source else ""
    return f"{where}{plural(side.rows, 'row')}, {side.valid:,} valid; {side.format} format, outputs {side.outputs}"


def diff_headline(summary: DiffSummary) -> str:
    """Return what happened to the dataset, in one sentence."""
    rows = summary.rows
    new, changed, matched = f"{rows['new']:,}", f"{rows['changed']:,}", plural(rows["matched"], "matched row")
    if summary.same:
        moved = f"; {rows['moved']:,} of them moved" if rows["moved"] else ""
        return f"No difference: {'the row is' if new == '1' else f'all {new} rows are'} the same{moved}."
    head = f"{changed} of {matched} changed" if rows["changed"] else "No row changed"
    names = ("became_invalid", "became_valid", "lost_a_metric", "gained_a_metric")
    first = counted([(rows[name], name) for name in ("added", "removed", "moved")])
    rest = counted([(rows[name], name.replace("_", " ")) for name in names])
    return "; ".join([", ".join([head, *first]), *rest]) + "."


def _next_commands(summary: DiffSummary, call: Call) -> list[NextCommand]:
    """What shows why the new version is worse: its new issues, else the metrics that it lost."""
    severities = (Severity.ERROR, Severity.WARNING)
    codes = [i.code for i in summary.issues if i.severity in severities and (i.gained or i.on_added)]
    if codes:
        chosen = codes if len(codes) <= MOST_SELECTED else ()
        return [NextCommand(call.validation(chosen, data="new"), "shows the new issues")]
    if summary.rows["lost_a_metric"] and (command := call.command("metrics")):
        return [NextCommand(command, "shows what would enable more metrics")]
    return []


# --- rows, fields and issues
def _rows(summary: DiffSummary) -> Iterator[Block]:
    rows, groups, texts = summary.rows, list[Block](), list[Block]()
    columns = [("dropped", "-", summary.columns_dropped), ("added", "+", summary.columns_added)]
    columns = [column for column in columns if column[-1]]
    if columns:
        signed = [Example("", None, [", ".join(names)], sign) for _, sign, names in columns]
        texts.append(Section("columns", "Columns", [Examples([Detail("Columns")], signed)]))
    for title, mood, sign, count, places in (
        ("Removed", "error", "-", rows["removed"], summary.removed),
        ("Added", "good", "+", rows["added"], summary.added),
        ("Invalid now", "error", "✗", rows["became_invalid"], summary.became_invalid),
        ("Valid now", "good", "✓", rows["became_valid"], summary.became_valid),
    ):
        if count:
            entries = [Example(p.rows, p.request_id, [p.asks, ", ".join(p.errors)], sign) for p in places]
            details = [Detail("Asks"), Detail("Errors", "error", "  invalid: ")]
            examples = Examples(details, entries, count, in_text=ROWS_IN_TEXT)
            head = [Part(title, f"tag {mood}"), Part(f"{count:,}", "count")]
            groups.append(Group(head, [examples], is_open=count <= ROWS_OPEN))
            texts.append(Section(title, f"{title} ({count:,})", [examples]))
    yield Only("text", texts)
    lines = [
        Line((f"Columns {verb}:", *(piece for name in names for piece in (" ", Part(name, "code")))))
        for verb, _, names in columns
    ]
    yield Only("html", [Section("rows", "Rows", [*lines, *groups])])


def _fields(summary: DiffSummary) -> Iterator[Block]:
    groups = []
    for field in summary.fields:
        changes = [Change(c.row.rows, c.row.request_id, c.edits, c.more_edits) for c in field.examples]
        head: list[str | Part | Cell] = [Part(field.field, "tag path"), plural(field.rows, "row")]
        groups.append(Group(head, [Changes(field.field, changes, field.rows)], is_open=field.rows <= ROWS_OPEN))
    yield Section("changes", "Changed", groups, short="Changes", text_title=f"Changed ({summary.rows['changed']:,})")


def _issues(summary: DiffSummary) -> Iterator[Block]:
    details = [Detail("Where", "path"), Detail("What is wrong", before=": ")]
    groups = []
    for line in summary.issues:
        on_others = (line.on_added, "on added rows"), (line.on_removed, "on removed rows")
        moves = counted([(line.gained, "gained"), (line.lost, "lost"), *on_others])
        rows = Part(f"{line.old:,} → {line.new:,}", "count")
        head = [Part(f"{line.code} {line.name}", f"tag {line.severity}"), rows, Part(f"({', '.join(moves)})", "muted")]
        entries = [*(_example(i, "+") for i in line.gained_examples), *(_example(i, "-") for i in line.lost_examples)]
        is_open = line.severity is Severity.ERROR and 0 < line.gained + line.lost <= ROWS_OPEN
        groups.append(Group(head, [Examples(details, entries, signs="Change")], is_open=is_open))
    yield Section("issues", "Issues gained and lost", groups, short="Issues", text_title="Issues")


def _example(issue: Issue, sign: str) -> Example:
    row = "" if issue.row is None else f"{issue.row:,}"
    return Example(row, issue.request_id, [issue.path or "", Part(issue.message, "message")], sign)


# --- metrics
def _metrics(summary: DiffSummary, system: str) -> Iterator[Block]:
    totals = Counter(line.system for line in summary.metrics)
    differing = by_key((x.system, x) for x in summary.metrics if x.gained or x.lost or x.old != x.new)
    differ = {name: f"{len(lines)} of {totals[name]} metrics differ" for name, lines in differing.items()}
    columns = ["Metric", "#before → now", "Why"]
    tables = {
        name: Table(columns, list(map(_metric, lines)), kind="metrics", notes=True) for name, lines in differing.items()
    }
    named = [name for name in (systems() if system == "all" else (system,)) if name in tables]
    texts: list[Block] = [Section(name, f"Metric coverage ({name}): {differ[name]}", [tables[name]]) for name in named]
    moved = [line.system for line in summary.metrics if (line.gained or line.lost) and line.system in COMMON]
    if others := Counter(name for name in moved if system not in (name, "all")):
        counts = ", ".join(f"{plural(count, 'metric')} of {name}" for name, count in others.items())
        texts.append(Line(f"Gained or lost as well: {counts} (--system all)", "muted", indent=2))
    if summary.rows["moved"]:
        words = "Row numbers are zero-based. “row OLD → NEW” is a moved row."
        texts.append(Section("moved", "", [Line(words, "muted")], indent=0))
    yield Only("text", texts)
    groups = [Group([Part(name, "tag"), differ[name]], [tables[name]]) for name in COMMON if name in tables]
    if groups:
        groups[0] = replace(groups[0], is_open=True)
        yield Only("html", [Section("metrics", "Metric coverage", groups, short="Metrics")])


def _metric(line: MetricChange) -> list[Words | Cell]:
    counts = f"{line.old:,}/{line.old_rows:,} → {line.new:,}/{line.new_rows:,}"
    return [Part(line.metric, "name"), counts, _reasons(line)]


def _reasons(line: MetricChange) -> tuple[str | Part, ...]:
    """Which rows lost and gained it, and why; rows that came and went are only counted."""
    parts: list[str | Part] = []
    for count, sign, what, kind in (
        (line.lost, "-", _examples(line.lost_examples, line.lost), "error"),
        (line.gained, "+", _examples(line.gained_examples, line.gained), "good"),
        (line.on_removed, "-", "removed", "error"),
        (line.on_added, "+", "added", "good"),
    ):
        if count:
            parts += ["; "] if parts else []
            parts += [Part(f"{sign}{count:,} ", kind), what]
    return tuple(parts)


def _examples(rows: Sequence[MetricRow], count: int) -> str:
    texts = [f"{at.row.request_id or f'row {at.row.new_row:,}'} {at.why}" for at in rows[:EXAMPLES_SHOWN]]
    return "; ".join(texts) + ("; …" if count > EXAMPLES_SHOWN else "")


# --- row by row
def _without_cells(content: RowContent) -> RowContent:
    """The content for a notebook, whose file holds it: what changed, and no cell that did not."""
    return replace(content, cells=[(name, text) for name, text in content.cells if name[:2] in ("− ", "+ ")])


RowsOfSide = Mapping[int | str, ShownRow]


def changed_rows(summary: DiffSummary) -> dict[DiffPlace, list[CellChange]]:
    """The rows of the examples, each with its cells that changed."""
    changes = by_key((change.row, change) for field in summary.fields for change in field.examples)
    others = (*summary.became_invalid, *summary.removed, *summary.added, *summary.became_valid)
    return changes | {place: [] for place in others if place not in changes}


def row_by_row(summary: DiffSummary, old: RowsOfSide, new: RowsOfSide) -> list[ShownRow]:
    """The rows of the examples as they are now (of removed ones: were), with what changed; those with new errors first.
    `old` and `new` have the rows of each side."""
    rows = []
    for place, changes in changed_rows(summary).items():
        side, at = (old, place.old_row) if place.new_row is None else (new, place.new_row)
        rows.append(_row(summary, place, changes, side.get(at or 0, ShownRow(at or 0))))
    return [row for _, row in sorted(rows, key=lambda ranked: ranked[0])[:STORIES_SHOWN]]


_MOODS = ("error", "warning", "", "good")


def _row(
    summary: DiffSummary, place: DiffPlace, changes: Sequence[CellChange], shown: ShownRow
) -> tuple[tuple[int, bool, int], ShownRow]:
    """A row with its changes, the issues and the metrics that came or went with them, and where it is in the list."""
    gains = [i for line in summary.issues for i in line.gained_examples if i.row == place.new_row is not None]
    losses = [i for line in summary.issues for i in line.lost_examples if i.row == place.old_row is not None]
    metrics = [*_story_metrics(summary, place, "−"), *_story_metrics(summary, place, "+")]
    severities = {issue.severity for issue in gains}
    is_removed = place.new_row is None
    if is_removed or Severity.ERROR in severities or any(sign == "−" for sign, _, _ in metrics):
        mood = "error"
    else:
        mood = "warning" if Severity.WARNING in severities else "good" if metrics or place.old_row is None else ""
    edits = []
    for change in changes:
        edits += [(edit.path, [(part.side, part.text) for part in edit.parts]) for edit in change.edits]
        if change.more_edits:
            edits[-1][1].append(("both", f" … and {plural(change.more_edits, 'more place')}"))
    cells = [(f"− {issue.code} {RULES[issue.code].name}", issue.message) for issue in losses]
    for sign, names, why in metrics:
        more = f" and {len(names) - METRICS_NAMED:,} more" if len(names) > METRICS_NAMED else ""
        cells.append((f"{sign} metrics", f"{', '.join(names[:METRICS_NAMED])}{more}: {why}"))
    summed_up = [
        *(["removed"] if is_removed else ["added"] if place.old_row is None else []),
        *dict.fromkeys(path for path, _ in edits),
        *(f"+{issue.code}" for issue in gains),
        *(f"−{issue.code}" for issue in losses),
        *(f"{sign}{plural(len(names), 'metric')}" for sign, names, _ in metrics),
    ]
    rank = _MOODS.index(mood), is_removed, place.new_row or place.old_row or 0
    return rank, replace(
        shown,
        row=shown.row if place.old_row in (None, place.new_row) or is_removed else place.rows,
        id=place.request_id,
        title=place.asks,
        columns=[(", ".join(summed_up), mood, None)],
        content=replace(shown.content, edits=edits, cells=[*cells, *shown.content.cells]),
    )


def _story_metrics(summary: DiffSummary, place: DiffPlace, sign: str) -> Iterator[tuple[str, list[str], str]]:
    """The metrics that the row lost (−) or gained (+), those with the same reason together."""
    lines = [line for line in summary.metrics if line.system in COMMON]
    rows = ((row, x.metric) for x in lines for row in (x.lost_examples if sign == "−" else x.gained_examples))
    by_why = by_key((row.why, metric) for row, metric in rows if row.row.key == place.key)
    return ((sign, names, why) for why, names in by_why.items())
