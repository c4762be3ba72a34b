"""What to do next: the steps that gain most, each with its number and the command that helps."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from agent_eval_schema.metrics.support import Support
from agent_eval_schema.profile.duplicates import TRUTH
from agent_eval_schema.profile.profile_blocks import NextStep, ProfileSummary, short_name
from agent_eval_schema.render.phrases import plural

MOST_STEPS = 7
"""Steps that are reported, at most."""

LEAST_TRUTHS = 4
"""From this many rows with ground truth on, it means something that most have the same."""

POINTS = 0.05
"""The difference that a metric should be able to detect."""


def next_steps(summary: ProfileSummary, support: list[Support]) -> tuple[NextStep, ...]:
    """The steps in order of gain: the share of the rows, or of what a metric lacks, that they improve."""
    file = shlex.quote(summary.source or "FILE")
    if summary.logged_calls:
        text = "The rows are logged calls: failed, repeated and feedback requests count as questions."
        return (NextStep(1.0, text, f"agent-eval-schema from-inference-table {file} OUT"),)
    # Logged calls are added to this dataset if it has the columns of one that is built of them.
    extends = summary.format == "databricks" and summary.outputs == "provided" and not summary.invalid
    grow = "agent-eval-schema from-inference-table TABLE OUT" + (f" --extend {file}" if extends else "")
    steps = []
    if summary.invalid:
        text = f"{_share(summary.invalid, summary.rows)} of the rows are invalid and support no metric."
        steps.append(NextStep(summary.invalid / summary.rows, text, f"agent-eval-schema validate {file}"))
    if summary.valid:
        steps += [*_from_rows(summary, file), *_power(summary, grow), *_from_coverage(summary, support, file, grow)]
    return tuple(sorted(steps, key=lambda step: -step.gain)[:MOST_STEPS])


def _from_rows(summary: ProfileSummary, file: str) -> Iterator[NextStep]:
    """Repeated and conflicting questions, and leaks."""
    found = summary.duplicates
    if repeated := found.exact + found.near:
        kind = "are exact or near duplicates of an earlier question" if found.near else "repeat an earlier question"
        text = f"{_share(repeated, found.rows)} of the rows {kind}: {found.distinct:,} of {found.rows:,} are distinct."
        yield NextStep(repeated / found.rows, text, f"agent-eval-schema profile {file} --write-distinct OUT")
    if count := found.conflict_count:
        verbs = ("has", "expects") if count == 1 else ("have", "expect")
        text = f"{plural(count, 'row')} {verbs[0]} the request of an earlier one and {verbs[1]} another answer."
        yield NextStep(count / summary.rows, text, f"agent-eval-schema validate {file} --select AE902")
    for leak in summary.leaks:
        what = "have their ground truth" if leak.kind == TRUTH else f"have {leak.kind}"
        text = f"{_share(leak.rows, summary.valid)} of the rows {what} in {leak.source}: they measure memory."
        against = f" --against {shlex.quote(leak.source)}" if leak.source in summary.compared_with else ""
        yield NextStep(leak.rows / summary.valid, text, f"agent-eval-schema profile {file}{against} --output json")


def _power(summary: ProfileSummary, grow: str) -> Iterator[NextStep]:
    known = [p for p in summary.power if p.unit == "points" and p.half_width is not None and p.rows_needed is not None]
    weak = [p for p in known if p.paired is not None and p.paired > POINTS]
    if not weak:
        return
    worst = max(weak, key=lambda p: (p.half_width or 0.0, p.metric))
    width, rows = round(100 * (worst.half_width or 0.0)), worst.rows_needed or (0,)
    supported = [p.half_width for p in summary.power if p.rows and p.unit == "points"]
    which = f"{short_name(worst.metric)} has {plural(worst.rows, 'row')}: ± {width} points"
    if worst.rows == summary.valid and {p.half_width for p in known} == {worst.half_width}:
        every = " for each metric" if len(supported) == len(known) > 1 else ""
        which = f"The dataset has {plural(worst.rows, 'row')}: ± {width} points{every}"
    text = f"{which}; a difference of 5 points needs {rows[0]:,} rows."
    yield NextStep(0.35 * (1 - min(worst.rows / rows[0], 1)), text, grow)


def _from_coverage(summary: ProfileSummary, support: list[Support], file: str, grow: str) -> Iterator[NextStep]:
    """Fields that would enable metrics; tools, ground truth, documents and values that the rows do not cover."""
    covered = summary.coverage
    open_ = [s for s in support if s.unlock and s.unlock_rows]
    if open_:
        alike = Counter((s.unlock_rows, s.unlock) for s in open_)
        rows, unlock = max(alike, key=lambda k: (k[0] * alike[k], k))
        enabled = [short_name(s.metric) for s in open_ if (s.unlock_rows, s.unlock) == (rows, unlock)]
        what = enabled[0] if len(enabled) == 1 else plural(len(enabled), "metric")
        text = f"{unlock} in {plural(rows, 'more row')} would enable {what} there."
        command = f"agent-eval-schema metrics {file} --system {summary.system}"
        yield NextStep(0.2 * rows / summary.rows, text, command)
    if unused := [t.tool for t in covered.tools if not t.expected and not t.called]:
        names = ", ".join(f"`{name}`" for name in unused[:3]) + (f" and {len(unused) - 3} more" if unused[3:] else "")
        text = f"No row exercises {names}: {len(unused)} of {plural(len(covered.tools), 'tool')}."
        yield NextStep(0.5 * len(unused) / len(covered.tools), text, grow)
    found = summary.balance
    if found.truths >= LEAST_TRUTHS and found.top_truth_rows * 2 > found.truths:
        share = _share(found.top_truth_rows, found.truths)
        text = f"{share} of the rows with ground truth have the same one: an agent that always gives it scores as much."
        gain = found.top_truth_rows / summary.rows
        yield NextStep(0.8 * gain, text, f"agent-eval-schema profile {file} --output json")
    documents = covered.documents
    if documents.unknown_rows:
        text = f"{_share(documents.unknown_rows, summary.valid)} of the rows expect a document that is not in the list."
        command = f"agent-eval-schema profile {file} --documents LIST --output json"
        yield NextStep(documents.unknown_rows / summary.valid, text, command)
    if documents.retrieved and (lost := documents.never_retrieved):
        count = f"{lost:,} of {plural(documents.expected, 'expected document')}"
        text = f"{count} {'is' if lost == 1 else 'are'} never retrieved."
        yield NextStep(0.3 * lost / documents.expected, text, f"agent-eval-schema validate {file} --select AE903")
    # values that are as many as the rows are no groups
    groups = [b for b in covered.breakdowns if 2 * b.values <= summary.valid]
    if thin := [(b.name, c.value) for b in groups for c in b.thin]:
        name, value = thin[0]
        more = f" and {len(thin) - 1} more" if thin[1:] else ""
        text = f"Fewer than {covered.min_rows} rows have {name} `{value}`{more}: too few for their own score."
        yield NextStep(0.1, text, f"{grow} --sample N --balance-by COLUMN")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if part * 200 >= whole else "Less than 1 %"
