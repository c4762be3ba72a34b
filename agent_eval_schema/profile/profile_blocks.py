"""The numbers and examples of a profile, as plain values (its JSON) and as blocks: size and power, duplicates, leakage,
coverage, balance, cost, and what to do next."""

import math
import os
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from agent_eval_schema.render.blocks import (
    Block,
    Cell,
    Curve,
    Detail,
    Example,
    Examples,
    Fold,
    Group,
    Heading,
    Line,
    Meter,
    Only,
    OpenRows,
    Part,
    Section,
    Several,
    Table,
    Terms,
    View,
    Words,
)
from agent_eval_schema.render.page import percent
from agent_eval_schema.render.phrases import EXAMPLES_SHOWN, NextCommand, counted, number, plural, share
from agent_eval_schema.render.rows import ShownRow
from agent_eval_schema.runtime.groups import by_key


class RowExample(Struct, frozen=True):
    """A row by its position, its ID, its question and, where it matters, its ground truth; texts are shortened."""

    row: int
    request_id: str | None = None
    question: str | None = None
    truth: str | None = None


class MetricPower(Struct, frozen=True):
    """How exact a metric is on its rows, and which difference between two versions a run detects at 80 % power.

    `unit` is "points" for a score from 0 to 1, whose numbers are shares of 1, "steps" for one with another `scale`, and
    "value" for an amount or a score of unknown scale. Numbers are None where they would mean nothing; `note` gives the
    reason. `paired` is the smallest difference of two versions on the same rows (None: the test shows none), `paired_8`
    that on eight times as many. `rows_needed` are those for 5, 3 and 1 points (percent of the scale, or of the mean).
    """

    system: str
    metric: str
    unit: str
    scale: tuple[float, float] | None
    rows: int
    distinct: int
    units: int
    design_effect: float
    effective_rows: float
    mean: float | None
    deviation: float | None
    measured: bool
    half_width: float | None
    paired: float | None
    paired_8: float | None
    rows_needed: tuple[int, ...] | None
    note: str


def short_name(metric: str) -> str:
    """The telling part of a metric's name."""
    return next((part for part in reversed(metric.split("/")) if part != "rating"), metric)


class DuplicateGroup(Struct, frozen=True):
    """Rows that ask the same (`kind` is "exact"), or are near duplicates ("near"); the first example has the commonest
    question."""

    kind: str
    rows: int
    examples: tuple[RowExample, ...]


class Duplicates(Struct, frozen=True):
    """Repeated questions: `rows` that have one, `distinct` of them, the rows that repeat an earlier question and
    those that are near duplicates, the largest groups, and pairs with the same request and another ground truth
    (AE902).
    """

    rows: int
    distinct: int
    exact: int
    near: int
    threshold: float
    group_count: int
    groups: tuple[DuplicateGroup, ...]
    conflict_count: int
    conflicts: tuple[tuple[RowExample, RowExample], ...]


class Leak(Struct, frozen=True):
    """Rows whose question or ground truth is in another place: `source` names it, `kind` describes it."""

    source: str
    kind: str
    rows: int
    examples: tuple[RowExample, ...]


class ToolCoverage(Struct, frozen=True):
    """The rows whose agent was offered a tool, which expect it, and which call it."""

    tool: str
    offered: int
    expected: int
    called: int


class DocumentCoverage(Struct, frozen=True):
    """The rows that expect a document, and those that retrieved it."""

    doc_uri: str
    expected: int
    retrieved: int


class Documents(Struct, frozen=True):
    """Distinct documents, and the most frequent; `unknown_rows` expect one that is not listed (None: no list)."""

    expected: int
    retrieved: int
    never_retrieved: int
    rows_expecting: int
    top: tuple[DocumentCoverage, ...]
    unknown_rows: int | None


class Counted(Struct, frozen=True):
    """A value and the number of rows that have it."""

    value: str
    rows: int


class Breakdown(Struct, frozen=True):
    """The rows per value of something; `thin` values have too few rows to be scored by themselves."""

    name: str
    values: int
    top: tuple[Counted, ...]
    thin: tuple[Counted, ...]


class Cluster(Struct, frozen=True):
    """Questions with words in common: their number, the most telling words, one of them."""

    rows: int
    terms: tuple[str, ...]
    example: RowExample


class Coverage(Struct, frozen=True):
    tools: tuple[ToolCoverage, ...]
    documents: Documents
    breakdowns: tuple[Breakdown, ...]
    sessions: int
    days: int
    median_words: float | None
    longest_words: int | None
    min_rows: int
    clusters: tuple[Cluster, ...]
    cluster_note: str


class Balance(Struct, frozen=True):
    """How even the ground truth is, and its span of time. `top_truth` is the most frequent one, `shared_guidelines` are
    those of every row that has guidelines; `first` and `last` are ISO dates."""

    truths: int
    distinct_truths: int
    top_truth_rows: int
    top_truth: str | None
    guideline_rows: int
    shared_guidelines: tuple[str, ...]
    first: str | None
    last: str | None


class MetricCost(Struct, frozen=True):
    """The calls of a judge that a metric needs, with their tokens and, if prices are given, what they cost."""

    system: str
    metric: str
    calls: int
    input_tokens: int
    output_tokens: int
    money: float | None


class Cost(Struct, frozen=True):
    """What one evaluation needs: calls of judges, of the agent, tokens, money, and minutes at the given rate."""

    metrics: tuple[MetricCost, ...]
    calls: int
    agent_calls: int
    input_tokens: int
    output_tokens: int
    money: float | None
    minutes: float | None
    note: str


class NextStep(Struct, frozen=True):
    """What to do next: the share of the rows that gain, a sentence with its number, the command that helps, and the
    same in Python."""

    gain: float
    text: str
    command: str
    code: str = ""


class Assumptions(Struct, frozen=True):
    """What is taken for granted where no past results are given: the rate of a score (0.5 has the widest interval), the
    correlation of two versions on the same rows, and of rows of one session or expected document."""

    rate: float = 0.5
    correlation: float = 0.5
    cluster_correlation: float = 0.2
    clusters: str = ""


class ProfileSummary(Struct, frozen=True):
    """Everything that a profile contains. `logged_calls`: the data is an inference table, not an evaluation dataset."""

    source: str | None
    format: str
    outputs: str
    system: str
    rows: int
    valid: int
    invalid: int
    notes: tuple[str, ...]
    next_steps: tuple[NextStep, ...]
    power: tuple[MetricPower, ...]
    assumptions: Assumptions
    duplicates: Duplicates
    leaks: tuple[Leak, ...]
    compared_with: tuple[str, ...]
    coverage: Coverage
    balance: Balance
    cost: Cost
    logged_calls: bool = False


# --- the blocks
POWER_COLUMNS = ("#Rows", "#Worth", "#±", "#Paired", "#for 5", "#for 3", "#for 1")

POWER_NOTE = (
    "Points of 100; of other scales their steps. Worth: effective rows. Paired: smallest difference between two "
    "versions on the same rows; none: the test shows none. For 5, 3, 1: rows for a difference of so many points "
    "(percent of the scale)."
)

LISTED = 10
"""Lines of a table in a text."""

CURVE_SIZE = (300, 90)


def rows_with_reasons(summary: ProfileSummary) -> dict[int, list[str]]:
    """The rows of the examples, and why each is there: it repeats or contradicts another one, or is elsewhere, too."""
    reasons: dict[int, list[str]] = {}
    for earlier, later in summary.duplicates.conflicts:
        reasons.setdefault(later.row, []).append(f"another ground truth than row {earlier.row:,}")
        reasons.setdefault(earlier.row, []).append(f"another ground truth than row {later.row:,}")
    for leak in summary.leaks:
        for example in leak.examples:
            reasons.setdefault(example.row, []).append(f"{leak.kind} in {os.path.basename(leak.source)}")
    for group in summary.duplicates.groups:
        first, *others = group.examples
        reasons.setdefault(first.row, []).append(f"the first of {plural(group.rows, 'row')} ({group.kind})")
        for other in others:
            reasons.setdefault(other.row, []).append(f"repeats row {first.row:,} ({group.kind})")
    return reasons


def profile_view(summary: ProfileSummary, rows: Sequence[ShownRow] = ()) -> View:
    """The whole profile, with these rows on a page; a dataset without a valid row has only its notes."""
    name = os.path.basename(summary.source) if summary.source else "evaluation dataset"
    where = f"{summary.source}: " if summary.source else ""
    read = f"{summary.format} format, outputs {summary.outputs}"
    blocks: list[Block] = []
    if summary.valid:
        curve, cost = _curve(summary.power), list[Block](map(Line, _about_cost(summary)))
        lines: list[list[Words]] = [
            [Part(of.metric, "name"), *(f"{number:,}" for number in (of.calls, of.input_tokens, of.output_tokens))]
            for of in summary.cost.metrics
        ]
        names = ["Metric", "#Calls", "#Tokens in", "#Tokens out"]
        cost += [Only("html", [Table(names, lines, title="Cost per metric", kind="cost")])] if cost else []
        sections = [
            *_power(summary, curve),
            *_duplicates(summary.duplicates),
            *_leaks(summary),
            *_rows(summary, rows),
            Section("coverage", "Coverage", list(_coverage(summary.coverage, summary.valid))),
            Section("balance", "Balance and age", list(map(Line, _about_balance(summary.balance)))),
            Section("cost", "Cost of one evaluation", cost, short="Cost"),
        ]
        summed_up = "Size and power, repeated questions, leakage, coverage, balance and cost"
        blocks = [Only("notebook", [Terms(list(_key_numbers(summary, curve)))]), Fold(summed_up, sections)]
    questions = plural(summary.duplicates.distinct, "distinct question")
    bad = [(summary.invalid, "invalid"), (summary.duplicates.conflict_count, "with conflicting ground truth")]
    worst = sorted(summary.leaks, key=lambda leak: -leak.rows)[:1]
    bad += [(leak.rows, f"with {leak.kind} in {os.path.basename(leak.source)}") for leak in worst]
    bad_rows = "".join(f"; {count}" for count in counted(bad))
    no_rows = summary.notes[0] if summary.notes else "There is nothing to profile."
    return View(
        title=f"Profile of {name}",
        about=[Line(f"{where}{plural(summary.rows, 'row')}, {summary.valid:,} valid; {read}", "muted")],
        notes=[Line(note, "warning") for note in (summary.notes if summary.valid else summary.notes[1:])],
        verdict=f"{questions} in {plural(summary.valid, 'valid row')}{bad_rows}" if summary.valid else no_rows,
        mood="error" if not summary.valid else "warning" if bad_rows else "",
        following=[NextCommand(step.command, step.text) for step in summary.next_steps],
        numbered=True,
        blocks=blocks,
        kind="profile",
        footer=". Row numbers are zero-based.",
    )


def _key_numbers(summary: ProfileSummary, curve: Curve | None) -> Iterator[tuple[str, str]]:
    """The numbers that a notebook shows at once."""
    if curve is not None:
        yield "Smallest paired difference", f"{curve.label} ({curve.subject})"
    elif any(p.half_width is not None and p.paired is None for p in summary.power):
        yield "Smallest paired difference", f"none: {plural(summary.valid, 'row')} show no difference"
    duplicates = summary.duplicates
    yield "Repeated questions", f"{duplicates.exact + duplicates.near:,} of {plural(duplicates.rows, 'row')}"
    for leak in summary.leaks:
        yield "Leakage", f"{plural(leak.rows, 'row')}: {leak.kind} in {leak.source}"
    if tools := summary.coverage.tools:
        used = sum(bool(tool.expected or tool.called) for tool in tools)
        yield "Tools exercised", f"{used:,} of {len(tools):,}"
    for line in islice(_about_cost(summary), 1):
        yield "Cost of one evaluation", line


# --- size and power
def _power(summary: ProfileSummary, curve: Curve | None) -> Iterator[Block]:
    supported = [power for power in summary.power if power.rows]
    lines: list[Sequence[Words | Cell]] = []
    texts: list[Sequence[Words]] = []
    notes = by_key((power.note, short_name(power.metric)) for power in supported if power.note)
    for power in supported:
        scale = "" if power.scale is None else f" ({power.scale[0]:g} to {power.scale[1]:g})"
        name = Part(f"{power.metric}{scale}", "name")
        if power.note:
            lines.append([name, f"{power.rows:,}", Cell(power.note, "muted", span=6)])
        else:
            # the effective rows, the width and the differences, and the rows for 5, 3 and 1 points
            amounts = [_amount(power, power.half_width), _amount(power, power.paired) or "none"]
            needed = [f"{rows:,}" for rows in power.rows_needed] if power.rows_needed else [""] * 3
            numbers = [f"{power.rows:,}", f"{power.effective_rows:,.0f}", *amounts, *needed]
            texts.append([f"{short_name(power.metric)}{scale}", *numbers])
            lines.append([name, *numbers])
    explained = Line(f"{POWER_NOTE} {_assumptions(summary)}", "muted")
    table = Table(["Metric", *POWER_COLUMNS], lines, title="Size and power", kind="power")
    if supported:
        yield Only("html", [Section("power", "Size and power", [*([curve] if curve else []), table, explained])])
    in_text: list[Block] = [Table(["Metric", *POWER_COLUMNS], texts), explained] if texts else []
    in_text += [Line(f"{', '.join(metrics)}: {note}.") for note, metrics in notes.items()]
    yield Only("text", [Section("power", "Size and power", in_text or [Line("No row supports a metric.")])])


def _amount(power: MetricPower, value: float | None) -> str:
    """A width or a difference in points, or in the unit of the metric."""
    if value is None:
        return ""
    if power.unit != "points":
        return number(value)
    points = 100 * value
    return f"{points:.1f}" if points < 10 else f"{points:,.0f}"


def _assumptions(summary: ProfileSummary) -> str:
    """What the numbers on power take for granted."""
    assumed, measured = summary.assumptions, any(p.measured for p in summary.power)
    clusters, one = "", assumed.clusters
    if one:
        clusters = f" Rows of one {one} are clusters, with a correlation of {assumed.cluster_correlation:g}."
    source = "Where past results say nothing else, a" if measured else "A"
    near = summary.duplicates.near
    alike = f" {plural(near, 'near duplicate')} of earlier questions do not count; near=1 counts them." if near else ""
    return (
        f"95% intervals; smallest differences at 80% power. {source}ssumed: a rate of {assumed.rate:g}, and a "
        f"correlation of {assumed.correlation:g} between two versions on the same rows.{clusters}{alike}"
    )


def _curve(powers: Sequence[MetricPower]) -> Curve | None:
    """The smallest paired difference over the number of rows, of the metric with most rows, and where it is now."""
    known = [p for p in powers if p.unit == "points" and p.paired and p.rows]
    if not known:
        return None
    best = max(known, key=lambda p: (p.rows, p.metric))
    difference, rows = best.paired or 0.0, best.rows
    later = best.paired_8 or difference / math.sqrt(8)
    end, (width, height) = rows * 8, CURVE_SIZE
    slope = math.log(difference / later) / math.log(8)
    top = min(math.ceil(20 * difference) / 10, 1.0)  # twice the difference now, as whole tens of points

    def place(count: float) -> tuple[float, float]:
        reached = min(difference * (rows / count) ** slope, top)
        return round(width * count / end, 1), round(height * (1 - reached / top), 1)

    return Curve(
        title="Smallest difference that a paired run detects",
        subject=best.metric,
        points=" ".join(f"{x},{y}" for x, y in (place(max(end * i / 120, 1)) for i in range(1, 121))),
        point=place(rows),
        size=CURVE_SIZE,
        across=[(0, "0"), (place(rows)[0], f"{rows:,}"), (width, f"{end:,} rows")],
        up=[(height, "0"), (height / 2, f"{50 * top:g}"), (0, f"{100 * top:g} points")],
        label=f"{rows:,} rows: {_amount(best, difference)} points; 8 times as many: {_amount(best, later)} points",
    )


# --- repeated questions and leakage
def _duplicates(duplicates: Duplicates) -> Iterator[Block]:
    repeated: list[Block] = []
    if duplicates.exact or duplicates.near:
        most = duplicates.groups[0].rows if duplicates.groups else 1
        groups = []
        for group in duplicates.groups:
            size = f"{plural(group.rows, 'row')}, {group.kind}"
            meter = Cell(picture=Meter(percent(group.rows, most), size, "warn"))
            examples = _examples(group.examples, group.rows)
            head: list[str | Part | Cell] = [Part(size, "tag"), group.examples[0].question or "", meter]
            groups.append(Group(head, [examples], indent=2))
        several = Several(groups, "more groups", total=duplicates.group_count, in_text=EXAMPLES_SHOWN)
        counts = f"{plural(duplicates.exact, 'row')} exact, {plural(duplicates.near, 'row')} near"
        groups_of = plural(duplicates.group_count, "group")
        repeated = [Line(f"{counts} (similarity from {duplicates.threshold:g}), in {groups_of}."), several]
    if duplicates.conflict_count:
        title = f"Same request, other ground truth ({duplicates.conflict_count:,})"
        yield Section("conflicts", title, [_conflicts(duplicates)], short="Conflicts")
    if repeated:
        yield Section("duplicates", "Repeated questions", repeated)


def _conflicts(duplicates: Duplicates) -> Examples:
    """A line per row that conflicts with an earlier one, those with the same earlier row together."""
    rows = []
    for earlier, later in sorted(duplicates.conflicts, key=lambda pair: (pair[0].row, pair[1].row)):
        place = f"row {earlier.row:,}" + (f" ({earlier.request_id})" if earlier.request_id else "")
        texts = [later.question or "", later.truth or "", place, earlier.truth or ""]
        rows.append(Example(f"{later.row:,}", later.request_id, texts, opens=True))
    names = [Detail("Question"), Detail("Ground truth", before=": ")]
    names += [Detail("Earlier row", before="; "), Detail("Its ground truth", before=": ")]
    return Examples(names, rows, duplicates.conflict_count)


def _examples(examples: Sequence[RowExample], total: int = 0) -> Examples:
    """Rows with their question and, on a page, their ground truth."""
    rows = [Example(f"{e.row:,}", e.request_id, [e.question or "", e.truth or ""], opens=True) for e in examples]
    return Examples([Detail("Question"), Detail("Ground truth", before=None)], rows, total)


def _leaks(summary: ProfileSummary) -> Iterator[Block]:
    groups: list[Block] = []
    for leak in summary.leaks:
        head = Part(f"{plural(leak.rows, 'row')}: {leak.kind} in {leak.source}", "tag error")
        groups.append(Group([head], [_examples(leak.examples, leak.rows)], is_open=True, indent=2))
    if summary.compared_with and not summary.leaks:
        groups = [Line(f"No row is in {', '.join(summary.compared_with)}.")]
    yield Section("leaks", "Leakage", groups)


def _rows(summary: ProfileSummary, rows: Sequence[ShownRow]) -> Iterator[Block]:
    """The rows of the examples, which a page opens."""
    reasons, shown = rows_with_reasons(summary), {row.row: row for row in rows}
    items = [replace(shown[row], columns=[("; ".join(why), "", None)]) for row, why in reasons.items() if row in shown]
    about = "The rows that repeat or contradict another one, or that are elsewhere, too; of each kind some."
    section = Section("rows", "Rows to look at", [OpenRows(["why"], items, len(items), about, opens=False)])
    yield Only("page", [section])


# --- coverage, balance and cost
def _coverage(coverage: Coverage, valid: int) -> Iterator[Block]:
    if coverage.median_words is not None and coverage.longest_words is not None:
        words = "word" if coverage.median_words == 1 else "words"
        yield Line(f"Questions have {coverage.median_words:g} {words} (median), at most {coverage.longest_words:,}.")
    if coverage.sessions:
        yield Line(f"{plural(coverage.sessions, 'session')}.")
    yield from map(Line, _about_documents(coverage.documents))
    names = ["Tool", "%Share", "#Offered", "#Expected", "#Called"]
    yield Table(names, [_tool(tool, valid) for tool in coverage.tools], title="Tools", kind="offered", in_text=LISTED)
    for breakdown in coverage.breakdowns:
        thin = f"{len(breakdown.thin):,} with fewer than {coverage.min_rows} rows" if breakdown.thin else ""
        yield Only("text", [Line(_values(breakdown, thin))])
        values = [_share(c.value, c.rows, valid) for c in breakdown.top]
        table = Table(["Value", "%Share", "#Rows"], values, title=breakdown.name, kind="values", total=breakdown.values)
        yield Only("html", [Heading(breakdown.name), table, Line(thin, "muted")])
    if coverage.clusters:
        terms = [(", ".join(cluster.terms) or "other things", cluster.rows) for cluster in coverage.clusters]
        in_text = [Line(f"{plural(rows, 'question')} about {words}") for words, rows in terms[:LISTED]]
        shares = [_share(words, rows, valid) for words, rows in terms]
        table = Table(["Words in common", "%Share", "#Questions"], shares, title="Clusters of questions", kind="values")
        yield Only("text", in_text)
        yield Only("html", [Heading("Clusters of questions"), table])
    elif coverage.cluster_note:
        yield Line(f"No clusters: {coverage.cluster_note}.")


def _tool(tool: ToolCoverage, valid: int) -> list[Words | Cell]:
    used = max(tool.expected, tool.called)
    numbers = [f"{rows:,}" for rows in (tool.offered, tool.expected, tool.called)]
    return [Cell(tool.tool, "" if used else "warning"), _bar(used, valid, tool.tool), *numbers]


def _share(name: str, rows: int, valid: int) -> list[Words | Cell]:
    return [name, _bar(rows, valid, name), f"{rows:,}"]


def _bar(rows: int, valid: int, label: str) -> Cell:
    """A share of the rows, which is neither good nor bad."""
    return Cell(picture=Meter(percent(rows, valid), label, "plain"))


def _values(breakdown: Breakdown, thin: str) -> str:
    values = ", ".join(f"{c.value} {c.rows:,}" for c in breakdown.top[:LISTED])
    more = f", and {breakdown.values - LISTED:,} more" if breakdown.values > LISTED else ""
    return f"{breakdown.name}: {values}{more}" + (f"; {thin}" if thin else "")


def _about_documents(docs: Documents) -> Iterator[str]:
    if docs.expected:
        suffix = f", {docs.never_retrieved:,} of them never retrieved" if docs.never_retrieved else ""
        yield f"{plural(docs.expected, 'document')} expected{suffix}; {docs.retrieved:,} retrieved."
    elif docs.retrieved:
        yield f"{plural(docs.retrieved, 'document')} retrieved, none expected."
    top = max(docs.top, key=lambda d: d.expected, default=None)
    if top is not None and top.expected and docs.rows_expecting > 1:
        yield f"{share(top.expected, docs.rows_expecting)} of the rows that expect a document expect {top.doc_uri}."
    if docs.unknown_rows is not None:
        yield f"{plural(docs.unknown_rows, 'row')} with an expected document that is not in the list."


def _about_balance(balance: Balance) -> Iterator[str]:
    if balance.truths:
        distinct = f", {balance.distinct_truths:,} of them distinct" if balance.truths > 1 else ""
        yield f"{plural(balance.truths, 'row')} with ground truth{distinct}."
    if balance.truths > 1 and balance.distinct_truths == 1:
        yield "All ground truth is the same."
    elif balance.top_truth_rows > 1:
        text = f": {balance.top_truth}" if balance.top_truth else ""
        yield f"The most frequent ground truth is that of {plural(balance.top_truth_rows, 'row')}{text}"
    if balance.shared_guidelines:
        yield f"Every row with guidelines has: {'; '.join(balance.shared_guidelines)}"
    if balance.first and balance.last:
        when = f"on {balance.first}" if balance.first == balance.last else f"from {balance.first} to {balance.last}"
        yield f"Logged {when}."


def _about_cost(summary: ProfileSummary) -> Iterator[str]:
    cost = summary.cost
    agent = f"{plural(cost.agent_calls, 'call')} of the agent"
    if cost.calls:
        tokens = f"{cost.input_tokens:,} tokens of input and {cost.output_tokens:,} of output"
        also = f", and {agent}" if cost.agent_calls else ""
        yield f"{plural(cost.calls, 'call')} of judges with about {tokens}{also}."
    elif cost.agent_calls:
        yield f"{agent}, and none of a judge."
    else:
        return
    if cost.money is not None:
        yield f"About {cost.money:,.2f} at the given prices."
    if cost.minutes is not None:
        yield f"About {cost.minutes:,.1f} minutes at the given rate."
    if cost.calls:
        yield cost.note
