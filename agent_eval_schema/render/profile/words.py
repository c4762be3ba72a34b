"""The words of a profile, which text and HTML share."""

from __future__ import annotations

from collections.abc import Iterator

from agent_eval_schema.render.phrases import plural
from agent_eval_schema.render.profile.summary import (
    Balance,
    Breakdown,
    Coverage,
    Documents,
    Duplicates,
    MetricPower,
    ProfileSummary,
)

POWER_COLUMNS = (
    "Points of 100. Worth: effective rows. Paired, unpaired: smallest difference; none: not even 100 points. For 5, 3, "
    "1: rows for a paired difference of so many points."
)


def headline(summary: ProfileSummary) -> str:
    """One sentence: what the dataset is worth."""
    found = summary.duplicates
    if not summary.valid:
        return summary.notes[0] if summary.notes else "There is nothing to profile."
    return f"{plural(found.distinct, 'distinct question')} in {plural(summary.valid, 'valid row')}"


def described(summary: ProfileSummary) -> str:
    """The dataset in a line."""
    where = f"{summary.source}: " if summary.source else ""
    read = f"{summary.format} format, outputs {summary.outputs}"
    return f"{where}{plural(summary.rows, 'row')}, {summary.valid:,} valid; {read}"


def short(metric: str) -> str:
    """The telling part of a metric's name."""
    return next((part for part in reversed(metric.split("/")) if part != "rating"), metric)


def amount(power: MetricPower, value: float | None) -> str:
    """A width or a difference in points, or in the unit of the metric."""
    if value is None:
        return ""
    if power.unit == "points" and value >= 1:
        return "none"
    points = 100 * value if power.unit == "points" else value
    return f"{points:.1f}" if points < 10 else f"{points:,.0f}"


def power_numbers(power: MetricPower) -> list[str]:
    """The effective rows, the width and the differences, and the rows for 5, 3 and 1 points, as in a table."""
    amounts = [amount(power, value) for value in (power.half_width, power.paired, power.unpaired)]
    needed = [f"{rows:,}" for rows in power.rows_needed] if power.rows_needed else [""] * 3
    return [f"{power.effective_rows:,.0f}", *amounts, *needed]


def assumptions(summary: ProfileSummary) -> str:
    """What the numbers on power take for granted."""
    given, measured = summary.assumptions, any(p.measured for p in summary.power)
    clusters = (
        f" Rows of one {given.clusters} are clusters, with a correlation of {given.cluster_correlation:g}."
        if given.clusters
        else ""
    )
    source = "Where past results say nothing else, a" if measured else "A"
    return (
        f"95 % intervals; smallest differences at 80 % power. {source}ssumed: a rate of {given.rate:g}, and a "
        f"correlation of {given.correlation:g} between two versions on the same rows.{clusters}"
    )


def about_duplicates(found: Duplicates) -> str:
    """The numbers on repeated questions."""
    return (
        f"{plural(found.exact, 'row')} exact, {plural(found.near, 'row')} near (similarity from {found.threshold:g}), "
        f"in {plural(found.group_count, 'group')}."
    )


def about_documents(found: Documents) -> Iterator[str]:
    """The numbers on documents."""
    if found.expected:
        lost = f", {found.never_retrieved:,} of them never retrieved" if found.never_retrieved else ""
        yield f"{plural(found.expected, 'document')} expected{lost}; {found.retrieved:,} retrieved."
    elif found.retrieved:
        yield f"{plural(found.retrieved, 'document')} retrieved, none expected."
    top = max(found.top, key=lambda d: d.expected, default=None)
    if top is not None and top.expected and found.rows_expecting > 1:
        share = 100 * top.expected / found.rows_expecting
        yield f"{share:.0f} % of the rows that expect a document expect {top.doc_uri}."
    if found.unknown_rows is not None:
        yield f"{plural(found.unknown_rows, 'row')} with an expected document that is not in the list."


def about_rows(found: Coverage) -> Iterator[str]:
    """The numbers on length and time."""
    if found.median_words is not None and found.longest_words is not None:
        words = "word" if found.median_words == 1 else "words"
        yield f"Questions have {found.median_words:g} {words} (median), at most {found.longest_words:,}."
    if found.sessions:
        yield f"{plural(found.sessions, 'session')}."


def about_thin(breakdown: Breakdown, min_rows: int) -> str:
    """The number of values with few rows."""
    return f"{len(breakdown.thin):,} with fewer than {min_rows} rows"


def about_balance(found: Balance) -> Iterator[str]:
    """The numbers on ground truth and time."""
    if found.truths:
        distinct = f", {found.distinct_truths:,} of them distinct" if found.truths > 1 else ""
        yield f"{plural(found.truths, 'row')} with ground truth{distinct}."
    if found.truths > 1 and found.distinct_truths == 1:
        yield "All ground truth is the same."
    elif found.top_truth_rows > 1:
        text = f": {found.top_truth}" if found.top_truth else ""
        yield f"The most frequent ground truth is that of {plural(found.top_truth_rows, 'row')}{text}"
    if found.shared_guidelines:
        yield f"Every row with guidelines has: {'; '.join(found.shared_guidelines)}"
    if found.first and found.last:
        yield (
            f"Logged on {found.first}." if found.first == found.last else f"Logged from {found.first} to {found.last}."
        )


def about_cost(summary: ProfileSummary) -> Iterator[str]:
    """The numbers on cost."""
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
